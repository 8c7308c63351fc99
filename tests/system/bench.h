/* tests/system/bench.h: calls the slots of a vendor's plugin. In the same process an engine calls the vendor's library
 * directly. */
#ifndef GPUHAL_TEST_BENCH_H
#define GPUHAL_TEST_BENCH_H

#include "vendor.h"

#include <gpuhal/direct.h>

#define MS_NS UINT64_C(1000000)

typedef struct bench {
    const gpuhal_plugin *plugin;
    gpuhal_plugin_instance *instance;
    gpuhal_ops ops;
    gpuhal_plugin_device *devices[2];
} bench;

static inline void expect_fine(gpuhal_status status, const bench *with, const char *what)
{
    if (status != GPUHAL_OK) {
        gpuhal_direct_failed(with->plugin, status, what);
        fail_msg("%s: %s", what, gpuhal_last_error()->sentence);
    }
}

static inline void start(bench *out)
{
    memset(out, 0, sizeof *out);
    assert_ok(gpuhal_direct_load(OF(GPUHAL_CUDA_PLUGIN, GPUHAL_ROCM_PLUGIN), &out->plugin, NULL));
    expect_fine(out->plugin->start(gpuhal_direct_host(), &out->instance), out, "start");
    expect_fine(gpuhal_direct_enumerate(out->plugin, out->instance, &(gpuhal_direct_listener){0}), out, "enumerate");
    out->ops.size = sizeof out->ops;
    expect_fine(out->plugin->describe(gpuhal_direct_host(), out->instance, 0, &out->ops), out, "describe");
}

static inline gpuhal_status open_device(bench *with, uint32_t index, const gpuhal_native *adopt)
{
    return with->plugin->open(gpuhal_direct_host(), with->instance, index, adopt, &with->devices[index], &with->ops);
}

static inline void begin(bench *out, uint32_t count)
{
    start(out);
    for (uint32_t i = 0; i < count; i++) {
        expect_fine(open_device(out, i, NULL), out, "open");
    }
}

static inline bench begin_on(const char *machine, uint32_t count)
{
    bench out;
    use_machine(machine);
    begin(&out, count);
    return out;
}

static inline void end(bench *with)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (with->devices[i]) {
            with->plugin->close(with->devices[i]);
        }
    }
}

static inline void end_clean(bench *with)
{
    end(with);
    expect_clean();
}

static inline gpuhal_memory allocate(const bench *with, uint32_t index, gpuhal_alloc alloc)
{
    gpuhal_memory memory = {.size = sizeof memory};
    alloc.size = sizeof alloc;
    expect_fine(with->ops.allocate(with->devices[index], &alloc, &memory), with, "allocate");
    return memory;
}

static inline gpuhal_plugin_queue *queue_on(const bench *with, uint32_t index)
{
    gpuhal_plugin_queue *queue = NULL;
    expect_fine(with->ops.queues->queue_create(with->devices[index], QUEUE_DESC(.flags = 0), &queue), with,
                "queue_create");
    return queue;
}

static inline gpuhal_plugin_event *event_on(const bench *with, uint32_t index)
{
    gpuhal_plugin_event *event = NULL;
    expect_fine(with->ops.queues->event_create(with->devices[index], EVENT_DESC(.flags = GPUHAL_TIMED), &event), with,
                "event_create");
    return event;
}

static inline void finish(const bench *with, gpuhal_plugin_queue *queue)
{
    gpuhal_plugin_event *event = event_on(with, 0);
    expect_fine(with->ops.queues->event_record(queue, event), with, "event_record");
    expect_fine(with->ops.queues->event_block(event, 10000 * MS_NS), with, "event_block");
    with->ops.queues->event_destroy(event);
}

typedef struct link_facts {
    uint64_t kind, advertised, bandwidth, generation, count;
} link_facts;

/* Functions of the test's own host. They store facts about a link in a link_facts, which the plugin gets as the
 * sink. */
static inline void take_u64(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, uint64_t value)
{
    (void)host;
    link_facts *out = (link_facts *)(void *)sink;
    switch (key) {
    case GPUHAL_LINK_KIND:
        out->kind = value;
        break;
    case GPUHAL_LINK_PEER_ADVERTISED:
        out->advertised = value;
        break;
    case GPUHAL_LINK_BANDWIDTH_BYTES_PER_SECOND:
        out->bandwidth = value;
        break;
    case GPUHAL_LINK_GENERATION:
        out->generation = value;
        break;
    case GPUHAL_LINK_COUNT:
        out->count = value;
        break;
    default:
        break;
    }
}

static inline void take_missing(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, gpuhal_missing reason,
                                const char *why)
{
    (void)host;
    (void)sink;
    (void)key;
    (void)reason;
    (void)why;
}

static inline link_facts link_of(const bench *with, uint32_t from, uint32_t to)
{
    link_facts out = {0};
    gpuhal_host host = *gpuhal_direct_host();
    host.u64 = take_u64;
    host.missing = take_missing;
    expect_fine(with->plugin->link(&host, with->instance, from, to, (gpuhal_sink *)(void *)&out), with, "link");
    return out;
}

/* ---- programs */

/* The compiler's output, truncated to the buffer's size. */
typedef struct build_log {
    char *text;
    size_t size;
} build_log;

static inline void take_log(void *user, const char *text)
{
    const build_log *log = user;
    const size_t length = strlen(log->text);
    snprintf(log->text + length, log->size - length, "%s\n", text);
}

static inline gpuhal_status load_into(const bench *with, const gpuhal_code *code, char *out_log, size_t size,
                                      gpuhal_plugin_program **out_program)
{
    build_log log = {out_log, size};
    gpuhal_plugin_build build = {.size = sizeof build, .user = &log, .log = take_log};
    out_log[0] = '\0';
    return with->ops.programs->program_load(with->devices[0], code, &build, out_program);
}

static inline gpuhal_status load_with(const bench *with, const gpuhal_code *code, gpuhal_plugin_program **out_program)
{
    char log[256];
    return load_into(with, code, log, sizeof log, out_program);
}

static inline gpuhal_status load(const bench *with, const char *format, const void *code, uint64_t bytes,
                                 gpuhal_plugin_program **out_program)
{
    const gpuhal_code what = {.size = sizeof what, .format = format, .code = code, .bytes = bytes};
    return load_with(with, &what, out_program);
}

static inline gpuhal_plugin_program *load_kernels(const bench *with)
{
    gpuhal_plugin_program *program = NULL;
    const gpuhal_code code = kernels_code();
    expect_fine(load_with(with, &code, &program), with, "program_load");
    return program;
}

static const gpuhal_parameter fill_parameters[] = {{GPUHAL_PARAMETER_BUFFER, 0, GPUHAL_ACCESS_WRITE, 0},
                                                   {GPUHAL_PARAMETER_VALUE, 4, 0, 0},
                                                   {GPUHAL_PARAMETER_VALUE, 4, 0, 0}};
static const gpuhal_parameter add_parameters[] = {{GPUHAL_PARAMETER_BUFFER, 0, GPUHAL_ACCESS_WRITE, 0},
                                                  {GPUHAL_PARAMETER_BUFFER, 0, GPUHAL_ACCESS_READ, 0},
                                                  {GPUHAL_PARAMETER_BUFFER, 0, GPUHAL_ACCESS_READ, 0},
                                                  {GPUHAL_PARAMETER_VALUE, 4, 0, 0}};

/* A kernel with 64 threads per group. Its parameters are those of `add` if the name is `add`, otherwise those of
 * `fill`. */
static inline gpuhal_kernel_desc kernel_desc(const char *name)
{
    const bool adds = strcmp(name, "add") == 0;
    return (gpuhal_kernel_desc){.size = sizeof(gpuhal_kernel_desc),
                                .name = name,
                                .parameters = adds ? add_parameters : fill_parameters,
                                .parameter_count = adds ? 4 : 3,
                                .group_size = {64, 1, 1}};
}

static inline gpuhal_status kernel_with(const bench *with, gpuhal_plugin_program *program,
                                        const gpuhal_kernel_desc *desc, gpuhal_kernel_info *out_info,
                                        gpuhal_plugin_kernel **out_kernel)
{
    *out_info = (gpuhal_kernel_info){.size = sizeof *out_info};
    return with->ops.programs->kernel_create(program, desc, out_info, out_kernel);
}

static inline gpuhal_status find_kernel(const bench *with, gpuhal_plugin_program *program, const char *name,
                                        gpuhal_plugin_kernel **out_kernel)
{
    gpuhal_kernel_info info;
    const gpuhal_kernel_desc desc = kernel_desc(name);
    return kernel_with(with, program, &desc, &info, out_kernel);
}

static inline gpuhal_plugin_kernel *kernel_of(const bench *with, gpuhal_plugin_program *program, const char *name)
{
    gpuhal_plugin_kernel *kernel = NULL;
    expect_fine(find_kernel(with, program, name, &kernel), with, name);
    return kernel;
}

static inline gpuhal_plugin_argument memory_argument(const gpuhal_memory *memory, uint64_t offset)
{
    return (gpuhal_plugin_argument){.kind = GPUHAL_PARAMETER_BUFFER,
                                    .access = GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE,
                                    .memory = memory,
                                    .offset = offset,
                                    .bytes = memory->bytes - offset};
}

static inline gpuhal_plugin_argument value_argument(const void *value, uint64_t bytes)
{
    return (gpuhal_plugin_argument){.kind = GPUHAL_PARAMETER_VALUE, .bytes = bytes, .value = value};
}

/* The engine, which the vendor's header defines. It uses one device, which is current from engine_begin() to
 * engine_end(). */
#ifdef GPUHAL_CUDA_PLUGIN
#include "cuda_bench.h"
#else
#include "rocm_bench.h"
#endif

static inline vendor_stream engine_stream(const vendor_api *api)
{
    vendor_stream stream = NULL;
    /* the stream does not synchronize with the NULL stream */
    assert_int_equal(api->VENDOR(StreamCreate)(&stream, 1), FAKE_OK);
    return stream;
}

static inline bool engine_locks(void *memory, size_t bytes)
{
    engine own = engine_begin(0);
    const fake_code code = own.api.VENDOR(HostRegister)(memory, bytes, 1);
    engine_end(&own);
    return code == FAKE_OK;
}

static inline bool engine_unlocks(void *memory)
{
    engine own = engine_begin(0);
    const fake_code code = own.api.VENDOR(HostUnregister)(memory);
    engine_end(&own);
    return code == FAKE_OK;
}

static inline void reset_by_engine(void)
{
    engine own = engine_begin(0);
    engine_resets(&own);
    engine_end(&own);
}

#endif
