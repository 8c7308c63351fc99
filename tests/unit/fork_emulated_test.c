/* Forks must be detected even if the system ignores all madvise() calls, as qemu-user does. */
#include "support/mock.h"
#include "test.h"

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

int __wrap_madvise(void *start, size_t bytes, int advice);
int __wrap_madvise(__attribute__((unused)) void *start, __attribute__((unused)) size_t bytes,
                   __attribute__((unused)) int advice)
{
    return 0;
}

TEST(the_child_of_a_fork_is_refused_and_the_parent_goes_on)
{
#ifdef __SANITIZE_THREAD__
    SKIP_TEST("ThreadSanitizer bears no threads in the child of a process that had several");
#endif
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 4096);
    char byte = 1;
    assert_ok(gpuhal_write(NULL, buffer, 0, &byte, 1));
    for (int child_number = 0; child_number < 2; child_number++) {
        const pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            const gpuhal_status status = gpuhal_write(NULL, buffer, 0, &byte, 1);
            gpuhal *own = gpuhal_mock_open(NULL, 1);
            gpuhal_buffer *own_buffer = gpuhal_mock_buffer(own, 0, 4096);
            const gpuhal_status own_status = gpuhal_write(NULL, own_buffer, 0, &byte, 1);
            gpuhal_buffer_release(own_buffer);
            gpuhal_close(own);
            _exit(status == GPUHAL_ERROR_FORKED && own_status == GPUHAL_OK ? 0 : 1);
        }
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_ok(gpuhal_write(NULL, buffer, 0, &byte, 1));
    }
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

#include "test_main.h"
