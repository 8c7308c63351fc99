/* tests/system/own_registry.h: a registry for one test, and searches in it. */
#ifndef GPUHAL_TEST_OWN_REGISTRY_H
#define GPUHAL_TEST_OWN_REGISTRY_H

#include <gpuhal/gpuhal.h>
#include <gpuhal/node.h>

#include "support/record.h"
#include "test.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char registry_folder[256];
static char registry_parent[240]; /* parent folder of all registries of this process */
static pid_t registry_owner;

static inline void remove_registry(void)
{
    char command[2 * sizeof registry_parent];
    snprintf(command, sizeof command, "rm -rf '%s'", registry_parent);
    if (registry_owner == getpid() && system(command) != 0) {
        printf("%s is left behind\n", registry_parent);
    }
}

/* Uses a new registry from now on. All registries of the process are removed when the process exits. */
static inline void use_registry(void)
{
    static unsigned count;
    if (registry_owner != getpid()) {
        const char *base = getenv("TMPDIR");
        snprintf(registry_parent, sizeof registry_parent, "%s/gpuhal-registry-XXXXXX", base && *base ? base : "/tmp");
        assert_non_null(mkdtemp(registry_parent));
        registry_owner = getpid();
        atexit(remove_registry);
    }
    snprintf(registry_folder, sizeof registry_folder, "%s/%u", registry_parent, count++);
    assert_int_equal(mkdir(registry_folder, 0700), 0);
    setenv("GPUHAL_REGISTRY", registry_folder, 1);
}

static inline gpuhal_view *view_or_fail(void)
{
    gpuhal_view *view = NULL;
    if (gpuhal_view_read(NULL, &view)) {
        fail_msg("%s", gpuhal_last_error()->sentence);
    }
    return view;
}

/* Returns the fault of this kind, with count 0 if there is none. The fault's strings are valid until the view is
 * released. */
static inline gpuhal_fault_record find_fault(const gpuhal_view *view, const char *kind)
{
    gpuhal_fault_record fault = {.size = sizeof fault};
    for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_FAULT, i, &fault) == GPUHAL_OK; i++) {
        if (strcmp(fault.kind, kind) == 0) {
            return fault;
        }
    }
    return (gpuhal_fault_record){0};
}

/* Waits until `count` faults of this kind are on the disk. The library's own thread writes them. */
static inline void expect_fault_on_disk(const char *kind, uint64_t count)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    uint64_t found = 0;
    for (int i = 0; i < 1500 && found < count; i++) {
        nanosleep(&moment, NULL);
        gpuhal_view *view = view_or_fail();
        found = find_fault(view, kind).count;
        gpuhal_view_release(view);
    }
    assert_int_equal(found, count);
}

#endif
