/* os/linux/limits.c: detects whether this process is more restricted than usual. */
#include "os/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define STATUS_BYTES_MAX 65536u

/* The lowest defaults of any Linux distribution. */
static const struct {
    unsigned char resource; /* int or enum, depending on the C library */
    const char *name;
    rlim_t usual;
} limits[] = {
    {RLIMIT_AS, "RLIMIT_AS", RLIM_INFINITY},  {RLIMIT_DATA, "RLIMIT_DATA", RLIM_INFINITY},
    {RLIMIT_STACK, "RLIMIT_STACK", 8u << 20}, {RLIMIT_NPROC, "RLIMIT_NPROC", 1024},
    {RLIMIT_NOFILE, "RLIMIT_NOFILE", 1024},
};

static unsigned long number_of(const char *status, const char *word)
{
    const char *at = strstr(status, word);
    return at ? strtoul(at + strlen(word), NULL, 10) : 0;
}

/* System call filters are per thread. A helper inherits the filter of the calling thread. */
static const char *filtered_by(void)
{
    char *status = NULL;
    size_t bytes = 0;
    if (gpuhal_os_file_read("/proc/thread-self/status", STATUS_BYTES_MAX, &status, &bytes)) {
        return "/proc is hidden, so other limits are unknown";
    }
    const char *filter = number_of(status, "\nSeccomp:")      ? "seccomp"
                         : number_of(status, "\nNoNewPrivs:") ? "NoNewPrivs"
                                                              : NULL;
    free(status);
    return filter;
}

uint64_t gpuhal_os_thread_limit(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? (uint64_t)limit.rlim_cur
                                                                                   : UINT64_MAX;
}

bool gpuhal_os_is_limited(char *out_why, size_t bytes)
{
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit limit;
        if (getrlimit(limits[i].resource, &limit) == 0 && limit.rlim_cur < limits[i].usual) {
            snprintf(out_why, bytes, "%s is %" PRIu64, limits[i].name, (uint64_t)limit.rlim_cur);
            return true;
        }
    }
    const char *filter = filtered_by();
    snprintf(out_why, bytes, "%s", filter ? filter : "");
    return filter != NULL;
}
