/* tests/support/faulty_helper.c: code that makes a call of its helper program fail. The shared file that
 * GPUHAL_TEST_FAULTS names selects the call, and receives the number of calls. */
#include "support/faulty_helper.h"

#include "support/faults.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((constructor)) static void begin_faults(void)
{
    const char *path = getenv("GPUHAL_TEST_FAULTS");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    helper_faults *faults =
        file < 0 ? MAP_FAILED : mmap(NULL, sizeof *faults, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (faults != MAP_FAILED) {
        gpuhal_fault_begin((gpuhal_fault)faults->kind, faults->at, 0);
        gpuhal_fault_count_in(&faults->calls);
    }
    if (file >= 0) {
        close(file);
    }
}
