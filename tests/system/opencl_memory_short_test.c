/* Tests a queue of the OpenCL plugin that cannot grow its list of pending commands because memory is short. The test
 * supplies realloc() and the driver's functions. */
#include "test.h"

#include "../../plugins/opencl/device.h"

#include <stdlib.h>

/* The object behind a cl_event. */
static struct {
    cl_int execution;
    unsigned released;
} commands[2];

static bool no_memory;

void *__real_realloc(void *memory, size_t bytes);
__attribute__((visibility("default"))) void *__wrap_realloc(void *memory, size_t bytes);

void *__wrap_realloc(void *memory, size_t bytes)
{
    return no_memory ? NULL : __real_realloc(memory, bytes);
}

static cl_int CL_API_CALL release_event(cl_event event)
{
    for (int i = 0; i < 2; i++) {
        commands[i].released += (void *)event == &commands[i];
    }
    return CL_SUCCESS;
}

static cl_int CL_API_CALL event_info(cl_event event, cl_event_info what, size_t room, void *to, size_t *out_bytes)
{
    assert_int_equal(what, CL_EVENT_COMMAND_EXECUTION_STATUS);
    assert_int_equal(room, sizeof(cl_int));
    assert_null(out_bytes);
    *(cl_int *)to = ((void *)event == &commands[0] ? commands[0] : commands[1]).execution;
    return CL_SUCCESS;
}

TEST(a_failure_behind_a_recording_is_kept_if_memory_is_short)
{
    gpuhal_opencl_api.clReleaseEvent = release_event;
    gpuhal_opencl_api.clGetEventInfo = event_info;
    gpuhal_plugin_queue queue = {
        .pending = malloc(sizeof(cl_event)), .pending_count = 1, .pending_space = 1, .recorded = 1};
    assert_non_null(queue.pending);
    queue.pending[0] = (cl_event)(void *)&commands[0];
    no_memory = true;
    gpuhal_opencl_queue_keep(&queue, (cl_event)(void *)&commands[1]);
    no_memory = false;
    assert_int_equal(queue.pending_count, 1);
    assert_int_equal(commands[0].released, 1);
    commands[1].execution = CL_OUT_OF_RESOURCES;
    gpuhal_opencl_queue_retire(&queue);
    assert_int_equal(queue.pending_count, 0);
    assert_int_equal(commands[1].released, 1);
    assert_int_equal(queue.error, CL_OUT_OF_RESOURCES);
    free(queue.pending);
}

#include "test_main.h"
