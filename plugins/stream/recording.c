/* stream/recording.c: a recording is a graph with one node for each step, and an executable graph.
 *
 * Each node runs after the node of the previous step, so a run is exactly in the order of the steps. With edges only
 * between steps that use the same memory, the driver could run other steps at the same time; this is not done yet.
 *
 * The driver copies a launch's arguments when a node is created or changed. A change of an executable graph affects
 * only later launches (cuGraphExecKernelNodeSetParams in the manual; for HIP see hip_versions.h). Each change is also
 * made in the graph itself, so that another executable graph can be made from it. The old one may be destroyed while it
 * runs: the driver then frees it once it has ended (cuGraphExecDestroy in the manual; in the sources of HIP each launch
 * holds a reference).
 */
#include "device.h"

#include <stdlib.h>

struct gpuhal_plugin_recording {
    gpuhal_plugin_device *device;
    vendor_graph graph;
    vendor_executable executable;
    uint32_t updates;    /* of the executable graph since it was made */
    vendor_node nodes[]; /* one for each step */
};

/* If the driver cannot record the steps, the core enqueues them in each run. An error in the steps is then reported by
 * the copy, fill or launch itself. */
static gpuhal_status outcome(gpuhal_plugin_device *device, const char *call, vendor_code code)
{
    if (code == GPUHAL_VENDOR_NOT_SUPPORTED || GPUHAL_VENDOR_REFUSES_LAUNCH(code)) {
        GPUHAL_OWN(ignore)(code);
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    return GPUHAL_OWN(result)(device, call, code);
}

/* Returns whether a single command can access these bytes (transfer.c). */
static bool is_one_piece(gpuhal_stream_place place, uint64_t bytes)
{
    return gpuhal_stream_piece(place.host, bytes) == bytes;
}

/* Returns whether one node can do the step. Copies between host memories would make the driver wait. */
static bool is_one_node(const gpuhal_plugin_step *step)
{
    gpuhal_stream_place to, from;
    switch (step->kind) {
    case GPUHAL_STEP_LAUNCH:
        return true;
    case GPUHAL_STEP_FILL:
        to = gpuhal_stream_place_in(step->to, step->to_offset);
        return is_one_piece(to, step->bytes) && (step->to->address + step->to_offset) % step->pattern_bytes == 0;
    case GPUHAL_STEP_COPY:
        to = gpuhal_stream_place_in(step->to, step->to_offset);
        from = gpuhal_stream_place_in(step->from, step->from_offset);
        return is_one_piece(to, step->bytes) && is_one_piece(from, step->bytes) && !(to.host && from.host);
    default:
        return false;
    }
}

static vendor_code add_launch(vendor_graph graph, const vendor_node *after, const gpuhal_plugin_step *step,
                              vendor_node *out_node)
{
    gpuhal_stream_launch launch;
    GPUHAL_OWN(gather)(step->kernel, step->launch, &launch);
    const vendor_kernel_node node = GPUHAL_OWN(kernel_node)(&launch);
    return GPUHAL_VENDOR(GraphAddKernelNode)(out_node, graph, after, after ? 1 : 0, &node);
}

/* Inside the context: adds the node of step @p i. */
static vendor_code add_step(gpuhal_plugin_recording *recording, const gpuhal_plugin_step *step, uint32_t i,
                            const char **out_call)
{
    const vendor_node *after = i > 0 ? &recording->nodes[i - 1] : NULL;
    vendor_node *node = &recording->nodes[i];
    if (step->kind == GPUHAL_STEP_LAUNCH) {
        *out_call = GPUHAL_VENDOR_CALL(GraphAddKernelNode);
        return add_launch(recording->graph, after, step, node);
    }
    if (step->kind == GPUHAL_STEP_FILL) {
        const uint32_t element = step->pattern & (UINT32_MAX >> (32 - 8 * step->pattern_bytes));
        *out_call = GPUHAL_VENDOR_CALL(GraphAddMemsetNode);
        return GPUHAL_OWN(add_fill)(recording->device, recording->graph, after, step->to->address + step->to_offset,
                                    element, step->pattern_bytes, step->bytes, node);
    }
    const gpuhal_stream_place to = gpuhal_stream_place_in(step->to, step->to_offset);
    const gpuhal_stream_place from = gpuhal_stream_place_in(step->from, step->from_offset);
    *out_call = GPUHAL_VENDOR_COPY_NODE_CALL;
    return GPUHAL_OWN(add_copy)(recording->device, recording->graph, after, &to, &from, step->bytes, node);
}

/* Inside the context: makes an executable graph of the graph, in place of the present one. */
static vendor_code instantiate(gpuhal_plugin_recording *recording, const char **out_call)
{
    vendor_executable made = NULL;
    *out_call = GPUHAL_VENDOR_CALL(GraphInstantiateWithFlags);
    const vendor_code code = GPUHAL_VENDOR(GraphInstantiateWithFlags)(&made, recording->graph, 0);
    if (code == GPUHAL_VENDOR_OK) {
        if (recording->executable) {
            GPUHAL_OWN(ignore)(GPUHAL_VENDOR(GraphExecDestroy)(recording->executable));
        }
        recording->executable = made;
        recording->updates = 0;
    }
    return code;
}

/* Inside the context. */
static void destroy_graphs(const gpuhal_plugin_recording *recording)
{
    if (recording->executable) {
        GPUHAL_OWN(ignore)(GPUHAL_VENDOR(GraphExecDestroy)(recording->executable));
    }
    if (recording->graph) {
        GPUHAL_OWN(ignore)(GPUHAL_VENDOR(GraphDestroy)(recording->graph));
    }
}

static gpuhal_status record(gpuhal_plugin_recording *recording, const gpuhal_plugin_step *steps, uint32_t count)
{
    gpuhal_plugin_device *device = recording->device;
    gpuhal_stream_scope scope;
    const gpuhal_status status = GPUHAL_OWN(enter_or_report)(device, &scope);
    if (status != GPUHAL_OK) {
        return status;
    }
    const char *call = GPUHAL_VENDOR_CALL(GraphCreate);
    vendor_code code = GPUHAL_VENDOR(GraphCreate)(&recording->graph, 0);
    for (uint32_t i = 0; i < count && code == GPUHAL_VENDOR_OK; i++) {
        code = add_step(recording, &steps[i], i, &call);
    }
    if (code == GPUHAL_VENDOR_OK) {
        code = instantiate(recording, &call);
    }
    if (code != GPUHAL_VENDOR_OK) {
        destroy_graphs(recording);
    }
    GPUHAL_OWN(leave)(&scope);
    return outcome(device, call, code);
}

static gpuhal_status recording_create(gpuhal_plugin_device *device, const gpuhal_plugin_step *steps, uint32_t count,
                                      gpuhal_plugin_recording **out_recording)
{
    *out_recording = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (!is_one_node(&steps[i])) {
            return GPUHAL_ERROR_NOT_SUPPORTED;
        }
    }
    gpuhal_plugin_recording *recording = calloc(1, sizeof *recording + count * sizeof recording->nodes[0]);
    if (!recording) {
        return device->host->report(device->host, GPUHAL_ERROR_HOST_MEMORY, "calloc", 0, NULL);
    }
    recording->device = device;
    const gpuhal_status status = record(recording, steps, count);
    if (status != GPUHAL_OK) {
        free(recording);
        return status;
    }
    *out_recording = recording;
    return GPUHAL_OK;
}

/* Inside the context: changes the launch in the graph, and in the executable graph unless the driver refuses that. */
static vendor_code set_launch(gpuhal_plugin_recording *recording, const gpuhal_plugin_step *step, bool *out_refused,
                              const char **out_call)
{
    gpuhal_stream_launch launch;
    GPUHAL_OWN(gather)(step->kernel, step->launch, &launch);
    const vendor_kernel_node node = GPUHAL_OWN(kernel_node)(&launch);
    *out_call = GPUHAL_VENDOR_CALL(GraphKernelNodeSetParams);
    vendor_code code = GPUHAL_VENDOR(GraphKernelNodeSetParams)(recording->nodes[step->index], &node);
    if (code != GPUHAL_VENDOR_OK) {
        return code;
    }
    *out_call = GPUHAL_VENDOR_CALL(GraphExecKernelNodeSetParams);
    code = GPUHAL_VENDOR(GraphExecKernelNodeSetParams)(recording->executable, recording->nodes[step->index], &node);
    if (code == GPUHAL_VENDOR_NOT_SUPPORTED || GPUHAL_VENDOR_REFUSES_LAUNCH(code)) {
        GPUHAL_OWN(ignore)(code);
        *out_refused = true;
        return GPUHAL_VENDOR_OK;
    }
    return code;
}

static gpuhal_status recording_set(gpuhal_plugin_recording *recording, const gpuhal_plugin_step *steps, uint32_t count)
{
    gpuhal_plugin_device *device = recording->device;
    gpuhal_stream_scope scope;
    const gpuhal_status status = GPUHAL_OWN(enter_or_report)(device, &scope);
    if (status != GPUHAL_OK) {
        return status;
    }
    const char *call = NULL;
    bool refused = false;
    vendor_code code = GPUHAL_VENDOR_OK;
    for (uint32_t i = 0; i < count && code == GPUHAL_VENDOR_OK; i++) {
        code = set_launch(recording, &steps[i], &refused, &call);
        recording->updates++;
    }
    if (code == GPUHAL_VENDOR_OK && (refused || recording->updates > GPUHAL_VENDOR_UPDATES_MAX)) {
        code = instantiate(recording, &call);
    }
    GPUHAL_OWN(leave)(&scope);
    return outcome(device, call, code);
}

/* HIP would run the graph even in a stream that is being captured, and CUDA would refuse it. HIP enqueues node by node,
 * and may have enqueued some before an error, so the core must not enqueue the steps again. */
static gpuhal_status recording_run(gpuhal_plugin_queue *queue, gpuhal_plugin_recording *recording)
{
    gpuhal_plugin_device *device = recording->device;
    gpuhal_stream_call call;
    const gpuhal_status status = GPUHAL_OWN(begin)(device, queue, &call);
    if (status != GPUHAL_OK) {
        return status;
    }
    const char *name;
    vendor_code code = GPUHAL_OWN(may_record)(call.stream, &name);
    if (code == GPUHAL_VENDOR_OK) {
        name = GPUHAL_VENDOR_CALL(GraphLaunch);
        code = GPUHAL_VENDOR(GraphLaunch)(recording->executable, call.stream);
    }
    code = GPUHAL_OWN(end)(&call, code, 0, &name);
    return code == GPUHAL_VENDOR_NOT_SUPPORTED ? outcome(device, name, code) : GPUHAL_OWN(result)(device, name, code);
}

static void recording_destroy(gpuhal_plugin_recording *recording)
{
    gpuhal_stream_scope scope;
    if (GPUHAL_OWN(enter_to_release)(recording->device, &scope) == GPUHAL_VENDOR_OK) {
        destroy_graphs(recording);
        GPUHAL_OWN(leave)(&scope);
    }
    free(recording);
}

void GPUHAL_OWN(describe_recording)(gpuhal_ops *ops)
{
    static const gpuhal_recording_ops recordings = {
        .size = sizeof recordings,
        .version = GPUHAL_RECORDINGS_VERSION,
        .recording_create = recording_create,
        .recording_set = recording_set,
        .recording_run = recording_run,
        .recording_destroy = recording_destroy,
    };
    ops->recordings = GPUHAL_OWN(has_graphs)() ? &recordings : NULL;
}
