/* opencl/defects.c: workarounds that are selected by the driver's name, since they would slow down other drivers.
 * Workarounds that are applied to every driver are in other files, with comments that name the affected driver. A row
 * of the table contains the driver and its versions, a prefix of the names of affected devices, and the workaround. The
 * comment above the row names the source and the test.
 */
#include "device.h"

#include <stdio.h>
#include <string.h>

#define PLATFORM "Portable Computing Language"

typedef struct defect {
    const char *platform;  /* CL_PLATFORM_NAME */
    const char *driver;    /* precedes the version in CL_PLATFORM_VERSION */
    uint32_t from, before; /* versions, major * 100 + minor */
    const char *device;
    uint32_t cure;
} defect;

static const defect known[] = {
    /* PoCL counts the launches that use a loaded kernel. When a launch ends, PoCL looks up the launch's kernel by
     * code and group size, but not by grid width, although it loads another kernel for each new maximum width. So
     * if two launches of a kernel run at the same time, PoCL may decrement the wrong counter, and the second launch
     * aborts the process ("found->ref_count > 0" in pocl_release_dlhandle_cache(), lib/CL/devices/common.c; fixed
     * by 9184812d6 of June 2024, in 6.0). The device `basic` (since 4.0: cpu-minimal) increments the counter when a
     * launch is enqueued; `pthread` (since 4.0: cpu) when a launch starts. `pthread` of PoCL 3.1 increments the
     * counter twice, so it never returns to 0. Tests:
     * opencl_defects.launches_of_two_queues_do_not_overlap_on_basic, …_on_drivers_that_forbid_it */
    {PLATFORM, "pocl", 0, 400, "basic", GPUHAL_OPENCL_ONE_LAUNCH},
    {PLATFORM, "pocl", 400, 600, "cpu-minimal", GPUHAL_OPENCL_ONE_LAUNCH},
    {PLATFORM, "pocl", 0, 301, "pthread", GPUHAL_OPENCL_ONE_QUEUE},
    {PLATFORM, "pocl", 400, 600, "cpu", GPUHAL_OPENCL_ONE_QUEUE},
    /* Processes that compile at the same time with one POCL_CACHE_DIR remove each other's files: clBuildProgram fails
     * for correct code (pocl issue 1480; fixed by 01e32a956 of May 2024, in 6.0). Test:
     * opencl_defects.a_build_that_fails_without_a_word_about_the_code_is_tried_twice */
    {PLATFORM, "pocl", 0, 600, "", GPUHAL_OPENCL_BUILD_TWICE},
};

/* Returns the version after the driver's name, such as 301 for "OpenCL 3.0 PoCL 3.1+debian …", or 0 if there is
 * none. */
static uint32_t version_of(const char *text, const char *driver)
{
    const char *found = strcasestr(text, driver);
    unsigned major = 0, minor = 0;
    return found && sscanf(found + strlen(driver), " %3u.%2u", &major, &minor) == 2 ? major * 100 + minor : 0;
}

uint32_t gpuhal_opencl_find_defects(cl_platform_id platform, cl_device_id id)
{
    char name[256] = "", version[256] = "", device[256] = "";
    uint32_t cures = 0;
    if (gpuhal_opencl_api.clGetPlatformInfo(platform, CL_PLATFORM_NAME, sizeof name - 1, name, NULL) != CL_SUCCESS ||
        gpuhal_opencl_api.clGetPlatformInfo(platform, CL_PLATFORM_VERSION, sizeof version - 1, version, NULL) !=
            CL_SUCCESS ||
        !gpuhal_opencl_ask_text(id, CL_DEVICE_NAME, device, sizeof device)) {
        return 0;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const defect *row = &known[i];
        const uint32_t own = version_of(version, row->driver);
        if (strcmp(name, row->platform) == 0 && own > 0 && own >= row->from && own < row->before &&
            strncmp(device, row->device, strlen(row->device)) == 0) {
            cures |= row->cure;
        }
    }
    return cures;
}

/* ---- GPUHAL_OPENCL_ONE_LAUNCH, GPUHAL_OPENCL_ONE_QUEUE: the state is global, like PoCL's counters */

static struct {
    pthread_mutex_t mutex; /* held while a launch is enqueued; protects the members below */
    cl_event last;         /* event of the newest launch, retained; NULL if all launches count as finished */
    cl_command_queue commands;
    const gpuhal_plugin_device *device;
} turn = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static bool takes_turns(const gpuhal_plugin_device *device)
{
    return device->entry->defects & (GPUHAL_OPENCL_ONE_LAUNCH | GPUHAL_OPENCL_ONE_QUEUE);
}

/* Requires the mutex, like the next three functions. */
static bool has_ended(cl_event event)
{
    cl_int execution = CL_COMPLETE;
    return gpuhal_opencl_execution(event, &execution) != CL_SUCCESS || execution <= CL_COMPLETE;
}

static void forget(void)
{
    if (turn.last) {
        gpuhal_opencl_api.clReleaseEvent(turn.last);
        turn.last = NULL;
    }
}

static bool is_free(const gpuhal_plugin_device *device, cl_command_queue commands)
{
    return !turn.last || (turn.commands == commands && !(device->entry->defects & GPUHAL_OPENCL_ONE_LAUNCH)) ||
           has_ended(turn.last);
}

/* Does not hold the mutex while waiting, because closing a device only tries to lock it. If the wait fails, the launch
 * counts as finished. */
static void wait_for_last(void)
{
    const cl_event event = turn.last;
    const bool retained = gpuhal_opencl_api.clRetainEvent(event) == CL_SUCCESS;
    if (retained) {
        pthread_mutex_unlock(&turn.mutex);
        (void)gpuhal_opencl_api.clWaitForEvents(1, &event);
        pthread_mutex_lock(&turn.mutex);
    }
    if (turn.last == event) {
        forget();
    }
    if (retained) {
        gpuhal_opencl_api.clReleaseEvent(event);
    }
}

bool gpuhal_opencl_take_turn(const gpuhal_plugin_device *device, cl_command_queue commands, bool waits)
{
    if (!takes_turns(device)) {
        return true;
    }
    if (waits) {
        pthread_mutex_lock(&turn.mutex);
    } else if (pthread_mutex_trylock(&turn.mutex) != 0) {
        return false;
    }
    while (waits && !is_free(device, commands)) {
        wait_for_last();
    }
    const bool free = waits || is_free(device, commands);
    if (!free) {
        pthread_mutex_unlock(&turn.mutex);
    }
    return free;
}

void gpuhal_opencl_give_turn(const gpuhal_plugin_device *device, cl_command_queue commands, cl_event launched)
{
    if (!takes_turns(device)) {
        return;
    }
    if (launched) { /* otherwise the previous launch may still be running */
        forget();
    }
    if (launched && !has_ended(launched) && gpuhal_opencl_api.clRetainEvent(launched) == CL_SUCCESS) {
        turn.last = launched;
        turn.commands = commands;
        turn.device = device;
    }
    pthread_mutex_unlock(&turn.mutex);
}

/* If another device's launch is being enqueued, does not wait for the enqueuing call, since `basic` runs the kernel
 * inside that call. Then the next launch releases the event. Test:
 * opencl_defects.a_device_is_closed_while_basic_runs_a_kernel_of_another_inside_its_enqueue */
void gpuhal_opencl_end_turns(const gpuhal_plugin_device *device)
{
    if (!takes_turns(device) || pthread_mutex_trylock(&turn.mutex) != 0) {
        return;
    }
    if (turn.device == device) {
        forget();
    }
    pthread_mutex_unlock(&turn.mutex);
}
