/* tests/system/fake.h: shared by the tests with the fake Vulkan driver. Opens the library on the fake and checks error
 * messages. */
#ifndef GPUHAL_TEST_SYSTEM_FAKE_H
#define GPUHAL_TEST_SYSTEM_FAKE_H

#include "support/fake_vulkan.h"
#include "support/record.h"
#include "system.h"

#include <time.h>

/* Opens Vulkan and the CPU in this process, so that the test can query the fake driver afterwards. */
static inline gpuhal *open_fake(void)
{
    return open_or_fail(
        &(gpuhal_config){.size = sizeof(gpuhal_config), .isolation = GPUHAL_ISOLATION_NEVER, .backends = "vulkan"});
}

/* A library that uses the fake driver with this script. end_session() checks that no object leaks and no rule was
 * broken. */
typedef struct session {
    fake_vulkan fake;
    gpuhal *gpu;
    gpuhal_device *device;
} session;

static inline session begin_session(const char *script)
{
    session s = {.fake = fake_vulkan_script(script)};
    s.gpu = open_fake();
    s.device = select_or_fail(s.gpu, "vulkan:0");
    return s;
}

static inline void end_session(session *s)
{
    gpuhal_close(s->gpu);
    fake_vulkan_expect_clean(&s->fake);
}

static inline void expect_error(gpuhal_status status, gpuhal_status wanted, const char *word)
{
    const gpuhal_error *error = gpuhal_last_error();
    if (status != wanted ||
        !(strstr(error->sentence, word) || strstr(error->vendor_text, word) || strstr(error->vendor_call, word))) {
        fail_msg("status %d (\"%s\", \"%s\", \"%s\"); wanted %d with \"%s\"", status, error->sentence,
                 error->vendor_call, error->vendor_text, wanted, word);
    }
}

static inline gpuhal_status try_buffer(gpuhal_device *device, gpuhal_memory_kind kind, uint64_t bytes,
                                       gpuhal_buffer **out_buffer)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .kind = kind, .bytes = bytes};
    *out_buffer = NULL;
    return gpuhal_buffer_create(device, &desc, out_buffer);
}

static inline double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

#endif
