/* opencl/defects.c: workarounds that are chosen by the driver's name, since they would cost all other drivers
 * something. A workaround that suits every driver is in the code that needs it, with the driver's name.
 *
 * A row has the driver with its versions, the beginning of the names of the devices with the defect, and its cure. The
 * comment above it has its source and its test.
 */
#include "device.h"

#include <stdio.h>
#include <string.h>

#define PLATFORM "Portable Computing Language"

typedef struct defect {
    const char *platform;  /* CL_PLATFORM_NAME */
    const char *driver;    /* before its version in CL_PLATFORM_VERSION */
    uint32_t from, before; /* versions, major * 100 + minor */
    const char *device;
    uint32_t cure;
} defect;

static const defect known[] = {
    /* PoCL counts the launches that use a loaded kernel. The end of a launch finds its kernel by code and size of
     * groups, not by the width of the grid, although PoCL loads another kernel for each new maximum. So with two
     * launches of one kernel at once, the wrong count goes down, and the second aborts the process
     * ("found->ref_count > 0" in pocl_release_dlhandle_cache(), lib/CL/devices/common.c; mended by 9184812d6 of June
     * 2024, in 6.0). `basic`, which is called cpu-minimal from 4.0 on, counts when a launch is enqueued, and pthread,
     * called cpu from 4.0 on, when it begins; pthread of 3.1 counts twice and never gets to 0.
     * Tests: opencl_defects.launches_of_two_queues_do_not_overlap_on_basic, …_on_drivers_that_forbid_it */
    {PLATFORM, "pocl", 0, 400, "basic", GPUHAL_OPENCL_ONE_LAUNCH},
    {PLATFORM, "pocl", 400, 600, "cpu-minimal", GPUHAL_OPENCL_ONE_LAUNCH},
    {PLATFORM, "pocl", 0, 301, "pthread", GPUHAL_OPENCL_ONE_QUEUE},
    {PLATFORM, "pocl", 400, 600, "cpu", GPUHAL_OPENCL_ONE_QUEUE},
    /* Processes that compile at once with one POCL_CACHE_DIR remove each other's files: clBuildProgram fails for
     * correct code (pocl issue 1480; mended by 01e32a956 of May 2024, in 6.0).
     * Test: opencl_defects.a_build_that_fails_without_a_word_about_the_code_is_tried_twice */
    {PLATFORM, "pocl", 0, 600, "", GPUHAL_OPENCL_BUILD_TWICE},
};

/* Returns the version after the driver's name: "OpenCL 3.0 PoCL 3.1+debian …" is 301. 0: there is none. */
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

/* ---- GPUHAL_OPENCL_ONE_LAUNCH, GPUHAL_OPENCL_ONE_QUEUE: PoCL counts for the whole process */

static struct {
    pthread_mutex_t mutex; /* held while a launch is enqueued; protects the members below */
    cl_event last;         /* the newest launch, retained; NULL: it is known to have ended */
    cl_command_queue commands;
    const gpuhal_plugin_device *device;
} turn = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static bool takes_turns(const gpuhal_plugin_device *device)
{
    return device->entry->defects & (GPUHAL_OPENCL_ONE_LAUNCH | GPUHAL_OPENCL_ONE_QUEUE);
}

/* Needs the mutex held, as do the next three. */
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

/* Waits for the newest launch with the mutex released, since closing a device takes it as well. If the driver cannot
 * wait, the launch counts as ended. */
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
    if (launched) { /* else the last one may still run */
        forget();
    }
    if (launched && !has_ended(launched) && gpuhal_opencl_api.clRetainEvent(launched) == CL_SUCCESS) {
        turn.last = launched;
        turn.commands = commands;
        turn.device = device;
    }
    pthread_mutex_unlock(&turn.mutex);
}

/* Does not wait for a launch of another device that is being enqueued, since `basic` runs it inside that call: the next
 * enqueued launch releases the event instead.
 * Test: opencl_defects.a_device_is_closed_while_basic_runs_a_kernel_of_another_inside_its_enqueue */
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
