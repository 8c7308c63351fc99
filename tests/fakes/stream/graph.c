/* tests/fakes/stream/graph.c: graphs of kernels, copies and fills, and executable graphs. The nodes that only one
 * vendor's calls describe are in the vendor's folder.
 *
 * An executable graph is a copy of the graph's nodes at its instantiation. A launch enqueues the work of the nodes in
 * the launch's stream, after the previous launch of the same executable graph. If several nodes could be next, it takes
 * the one that was created last, so that a missing edge changes the result. */
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_node {
    struct fake_node *next; /* older */
    fake_graph *graph;
    const fake_node *origin; /* of a node in an executable graph */
    fake_context *context;
    fake_node_work work;
    bool done; /* used during a launch */
    size_t after_count;
    const fake_node *after[]; /* nodes of the graph, also in an executable graph */
};

struct fake_graph {
    struct fake_graph *next;
    const fake_context *context; /* current at the creation */
    fake_node *nodes;
};

struct fake_executable {
    struct fake_executable *next;
    const fake_graph *graph; /* may have been destroyed */
    const fake_context *context;
    fake_node *nodes;
    fake_point *last; /* of the latest launch */
};

static fake_graph *graphs; /* requires the lock, like `executables` */
static fake_executable *executables;

static fake_graph *graph_find(const char *function, const fake_graph *graph)
{
    fake_graph *known = graphs;
    while (known && known != graph) {
        known = known->next;
    }
    if (!known) {
        fake_report_violation("%s: no graph, or a destroyed one", function);
    }
    return known;
}

static fake_executable *executable_find(const char *function, const fake_executable *executable)
{
    fake_executable *known = executables;
    while (known && known != executable) {
        known = known->next;
    }
    if (!known) {
        fake_report_violation("%s: no executable graph, or a destroyed one", function);
    }
    return known;
}

/* Finds a node of the graph, or of any graph if @p graph is NULL. */
static fake_node *node_find(const char *function, const fake_graph *graph, const fake_node *node)
{
    for (const fake_graph *known = graphs; known; known = known->next) {
        for (fake_node *one = known->nodes; one; one = one->next) {
            if (one == node && (!graph || graph == known)) {
                return one;
            }
        }
    }
    fake_report_violation("%s: no node, a node of a destroyed graph, or of another graph", function);
    return NULL;
}

static void nodes_free(fake_node *nodes)
{
    for (fake_node *node = nodes, *next; node; node = next) {
        next = node->next;
        free(node);
    }
}

fake_code fake_node_add(const char *function, fake_context *context, fake_graph *graph, const vendor_node *after,
                        size_t count, const fake_node_work *work, vendor_node *out_node)
{
    bool good = graph_find(function, graph) != NULL;
    for (size_t i = 0; i < count && good; i++) {
        good = node_find(function, graph, after[i]) != NULL;
        for (size_t k = 0; k < i; k++) {
            good = good && after[i] != after[k];
        }
    }
    if (!good) {
        return FAKE_ERROR_INVALID_VALUE;
    }
    fake_node *node = calloc(1, sizeof *node + count * sizeof node->after[0]);
    if (!node) {
        return FAKE_ERROR_OUT_OF_MEMORY;
    }
    node->next = graph->nodes;
    node->graph = graph;
    node->context = context;
    node->work = *work;
    node->after_count = count;
    for (size_t i = 0; i < count; i++) {
        node->after[i] = after[i];
    }
    graph->nodes = node;
    *out_node = node;
    return FAKE_OK;
}

fake_code fake_fill_node_add(const char *function, fake_context *context, fake_graph *graph, const vendor_node *after,
                             size_t count, uintptr_t to, unsigned value, unsigned value_bytes, size_t elements,
                             vendor_node *out_node)
{
    const fake_node_work work = {
        .kind = FAKE_FILL_NODE, .move.to = to, .value = value, .value_bytes = value_bytes, .count = elements};
    fake_place place;
    const bool good = (value_bytes == 1 || value_bytes == 2 || value_bytes == 4) &&
                      (value_bytes == 4 || value >> 8 * value_bytes == 0) && elements && elements <= SIZE_MAX / 4 &&
                      to % value_bytes == 0 && fake_fill_fits(to, elements * value_bytes);
    fake_code code =
        good ? fake_place_find(function, context, to, elements * value_bytes, false, &place) : FAKE_ERROR_INVALID_VALUE;
    return code ? code : fake_node_add(function, context, graph, after, count, &work, out_node);
}

/* Checks a kernel node's parameters and reads its arguments, which may be gone after the call. */
static fake_code read_kernel(const vendor_kernel_node *from, const fake_context *context, fake_node_work *out)
{
    void **parameters, **extra;
    *out = (fake_node_work){.kind = FAKE_KERNEL_NODE};
    fake_kernel_node(from, &out->function, &out->launch, &parameters, &extra);
    if (!fake_function_find(out->function) || (context && out->function->module->context != context)) {
        return FAKE_ERROR_INVALID_VALUE;
    }
    const fake_code code = fake_launch_check(out->function, &out->launch, parameters, extra);
    if (code) {
        return code;
    }
    snprintf(out->launch.name, sizeof out->launch.name, "%.31s", out->function->name);
    fake_launch_read(&out->launch, parameters);
    return FAKE_OK;
}

static void graph_free(fake_graph *graph)
{
    fake_graph **at = &graphs;
    while (*at != graph) {
        at = &(*at)->next;
    }
    *at = graph->next;
    nodes_free(graph->nodes);
    free(graph);
    fake_report_get()->graphs--;
}

static void executable_free(fake_executable *executable)
{
    fake_executable **at = &executables;
    while (*at != executable) {
        at = &(*at)->next;
    }
    *at = executable->next;
    fake_point_release(executable->last);
    nodes_free(executable->nodes);
    free(executable);
    fake_report_get()->graphs--;
}

/* Those of a working context stay, because the program should have destroyed them. */
void fake_graphs_free(const fake_context *context)
{
    for (fake_graph *graph = graphs, *next; graph && context->error; graph = next) {
        next = graph->next;
        if (graph->context == context) {
            graph_free(graph);
        }
    }
    for (fake_executable *executable = executables, *next; executable && context->error; executable = next) {
        next = executable->next;
        if (executable->context == context) {
            executable_free(executable);
        }
    }
}

fake_code VENDOR(GraphCreate)(vendor_graph *out_graph, unsigned flags)
{
    fake_context *context;
    fake_code code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    fake_graph *graph = flags ? NULL : calloc(1, sizeof *graph);
    if (!graph) {
        return fake_end(flags ? FAKE_ERROR_INVALID_VALUE : FAKE_ERROR_OUT_OF_MEMORY);
    }
    *graph = (fake_graph){.next = graphs, .context = context};
    graphs = *out_graph = graph;
    fake_report_get()->graphs++;
    return fake_end(FAKE_OK);
}

fake_code VENDOR(GraphDestroy)(vendor_graph graph)
{
    fake_code code = fake_enter_current(__func__);
    if (code) {
        return code;
    }
    if (!graph_find(__func__, graph)) {
        return fake_end(FAKE_ERROR_INVALID_VALUE);
    }
    graph_free(graph);
    return fake_end(FAKE_OK);
}

fake_code VENDOR(GraphAddKernelNode)(vendor_node *out_node, vendor_graph graph, const vendor_node *after, size_t count,
                                     const vendor_kernel_node *parameters)
{
    fake_context *context;
    fake_node_work work;
    fake_code code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    code = read_kernel(parameters, context, &work);
    return fake_end(code ? code : fake_node_add(__func__, context, graph, after, count, &work, out_node));
}

fake_code VENDOR(GraphKernelNodeSetParams)(vendor_node node, const vendor_kernel_node *parameters)
{
    fake_node_work work;
    fake_code code = fake_enter_current(__func__);
    if (code) {
        return code;
    }
    fake_node *known = node_find(__func__, NULL, node);
    if (!known || known->work.kind != FAKE_KERNEL_NODE) {
        return fake_end(FAKE_ERROR_INVALID_VALUE);
    }
    code = read_kernel(parameters, known->context, &work);
    known->work = code ? known->work : work;
    return fake_end(code);
}

/* Keeps the order of the nodes. */
static bool copy_nodes(const fake_graph *graph, fake_node **out_nodes)
{
    fake_node **end = out_nodes;
    *out_nodes = NULL;
    for (const fake_node *node = graph->nodes; node; node = node->next) {
        const size_t bytes = sizeof *node + node->after_count * sizeof node->after[0];
        fake_node *copy = malloc(bytes);
        if (!copy) {
            nodes_free(*out_nodes);
            return false;
        }
        memcpy(copy, node, bytes);
        copy->next = NULL;
        copy->origin = node;
        *end = copy;
        end = &copy->next;
    }
    return true;
}

fake_code VENDOR(GraphInstantiateWithFlags)(vendor_executable *out_executable, vendor_graph graph,
                                            unsigned long long flags)
{
    fake_code code = fake_enter_current(__func__);
    if (code) {
        return code;
    }
    if (flags || !graph_find(__func__, graph)) {
        return fake_end(FAKE_ERROR_INVALID_VALUE);
    }
    fake_executable *executable = calloc(1, sizeof *executable);
    if (!executable || !copy_nodes(graph, &executable->nodes)) {
        free(executable);
        return fake_end(FAKE_ERROR_OUT_OF_MEMORY);
    }
    executable->graph = graph;
    executable->context = graph->context;
    executable->next = executables;
    executables = *out_executable = executable;
    fake_report_get()->graphs++;
    return fake_end(FAKE_OK);
}

/* Launches that are enqueued have their own copies of the arguments. CUDA 11 and earlier do not take another function;
 * neither does the fake. */
fake_code VENDOR(GraphExecKernelNodeSetParams)(vendor_executable executable, vendor_node node,
                                               const vendor_kernel_node *parameters)
{
    fake_node_work work;
    fake_code code = fake_enter_current(__func__);
    if (code) {
        return code;
    }
    fake_executable *known = executable_find(__func__, executable);
    const fake_node *origin = known ? node_find(__func__, known->graph, node) : NULL;
    fake_node *own = origin ? known->nodes : NULL;
    while (own && own->origin != origin) {
        own = own->next;
    }
    if (!own || own->work.kind != FAKE_KERNEL_NODE) {
        return fake_end(FAKE_ERROR_INVALID_VALUE);
    }
    code = read_kernel(parameters, own->context, &work);
    code = code ? code : work.function == own->work.function ? FAKE_OK : FAKE_ERROR_INVALID_VALUE;
    own->work = code ? own->work : work;
    return fake_end(code);
}

fake_code VENDOR(GraphExecDestroy)(vendor_executable executable)
{
    fake_code code = fake_enter_current(__func__);
    if (code) {
        return code;
    }
    if (!executable_find(__func__, executable)) {
        return fake_end(FAKE_ERROR_INVALID_VALUE);
    }
    executable_free(executable);
    return fake_end(FAKE_OK);
}

static bool is_ready(const fake_executable *executable, const fake_node *node)
{
    bool ready = !node->done;
    for (size_t i = 0; i < node->after_count; i++) {
        for (const fake_node *one = executable->nodes; one; one = one->next) {
            ready = ready && (one->origin != node->after[i] || one->done);
        }
    }
    return ready;
}

/* Memory and modules must exist when the graph is launched. */
static fake_code submit(const char *function, fake_stream *stream, const fake_node *node)
{
    const fake_node_work *work = &node->work;
    if (!fake_context_alive(node->context) || node->context != stream->context) {
        fake_report_violation("%s: a node of a destroyed context, or of another one than the stream's", function);
        return FAKE_ERROR_INVALID_VALUE;
    }
    fake_code code = FAKE_ERROR_INVALID_VALUE;
    if (work->kind == FAKE_COPY_NODE) {
        code = fake_submit_move(function, node->context, stream, &work->move);
    } else if (work->kind == FAKE_FILL_NODE) {
        code = fake_submit_fill(function, node->context, stream, work->move.to, work->value, work->value_bytes,
                                work->count);
    } else if (fake_function_find(work->function)) {
        code = fake_submit_launch(node->context, stream, &work->launch);
    }
    if (code == FAKE_ERROR_INVALID_VALUE) {
        fake_report_violation("%s: memory or a module of a node does not exist any more", function);
    }
    return code;
}

static fake_code submit_all(const char *function, fake_stream *stream, fake_executable *executable)
{
    for (fake_node *node = executable->nodes; node; node = node->next) {
        node->done = false;
    }
    fake_code code = executable->last && !executable->last->done
                         ? fake_submit(stream, &(fake_work){.after = executable->last})
                         : FAKE_OK;
    for (fake_node *node = executable->nodes; node && !code;) {
        const bool ready = is_ready(executable, node);
        if (ready) {
            code = submit(function, stream, node);
            node->done = true;
        }
        node = ready ? executable->nodes : node->next; /* the newest node is first */
    }
    return code;
}

fake_code VENDOR(GraphLaunch)(vendor_executable executable, vendor_stream stream)
{
    fake_stream *known;
    fake_code code = fake_enter_stream(__func__, stream, &known);
    if (code) {
        return code;
    }
    fake_executable *what = executable_find(__func__, executable);
    if (!what) {
        return fake_end(FAKE_ERROR_INVALID_VALUE);
    }
    code = submit_all(__func__, known, what);
    fake_point_release(what->last);
    what->last = known->last;
    if (what->last) {
        what->last->references++;
    }
    return fake_end(code);
}
