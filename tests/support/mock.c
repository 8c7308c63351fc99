/* tests/support/mock.c: see mock.h. This file has the plugin and its devices. The devices' memory is in
 * mock_memory.c. */
#include "support/mock_device.h"

#include "test.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

gpuhal_mock_state gpuhal_mock;

static gpuhal_mock_device *mock_of(uint32_t index)
{
    return &gpuhal_mock.devices[index];
}

static void stop_at(uint32_t call)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    if (!(gpuhal_mock.stops & call)) {
        return;
    }
    gpuhal_mock.stopped_thread = pthread_self();
    gpuhal_mock.stopped++;
    while (gpuhal_mock.stops & call) {
        nanosleep(&pause, NULL);
    }
    gpuhal_mock.stopped--;
}

static gpuhal_status start(const gpuhal_host *host, gpuhal_plugin_instance **out_instance)
{
    (void)out_instance;
    (void)host;
    return GPUHAL_OK;
}

static gpuhal_status start_mock(const gpuhal_host *host, gpuhal_plugin_instance **out_instance)
{
    stop_at(GPUHAL_MOCK_START);
    gpuhal_mock.host = host;
    const char *const names[] = {gpuhal_mock.library, NULL};
    const gpuhal_status status = gpuhal_mock.library ? host->library(host, NULL, names, NULL, 0) : GPUHAL_OK;
    if (gpuhal_mock.driver) {
        assert_non_null(dlopen(gpuhal_mock.driver, RTLD_NOW));
    }
    return status ? status : start(host, out_instance);
}

static void optional_text(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, const char *value)
{
    if (value) {
        host->text(host, sink, key, value);
    } else {
        host->missing(host, sink, key, GPUHAL_MISSING_NOT_SUPPORTED, "not set for this test");
    }
}

static void optional_number(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, uint64_t value)
{
    if (value) {
        host->u64(host, sink, key, value);
    } else {
        host->missing(host, sink, key, GPUHAL_MISSING_NOT_SUPPORTED, "not set for this test");
    }
}

static void list_device(const gpuhal_host *host, gpuhal_sink *sink, uint32_t index, const gpuhal_mock_device *mock)
{
    uint32_t kinds = 1u << GPUHAL_MEMORY_DEVICE;
    if (!mock->no_staging_kinds) {
        kinds |= 1u << GPUHAL_MEMORY_UPLOAD | 1u << GPUHAL_MEMORY_READBACK;
    }
    kinds |= mock->migrating ? 1u << GPUHAL_MEMORY_MIGRATING : 0;
    host->device(host, sink, index);
    host->text(host, sink, GPUHAL_FACT_NAME, mock->name ? mock->name : "mock");
    host->u64(host, sink, GPUHAL_FACT_TYPE, mock->type ? mock->type : GPUHAL_DEVICE_GPU);
    host->u64(host, sink, GPUHAL_FACT_SOFTWARE, mock->software);
    optional_number(host, sink, GPUHAL_FACT_PAGEABLE_ACCESS, mock->pageable_access);
    optional_number(host, sink, GPUHAL_FACT_UNIFIED_MEMORY, mock->unified);
    host->u64(host, sink, GPUHAL_FACT_VENDOR_ID, 0x1ab);
    host->u64(host, sink, GPUHAL_FACT_NATIVE_INDEX, 100 + index);
    host->u64(host, sink, GPUHAL_FACT_MEMORY_KINDS, kinds);
    host->u64(host, sink, GPUHAL_FACT_MEMORY_TOTAL_BYTES, mock->total_bytes ? mock->total_bytes : 1u << 30);
    optional_text(host, sink, GPUHAL_FACT_UUID, mock->uuid);
    optional_text(host, sink, GPUHAL_FACT_PCI_ADDRESS, mock->pci);
    optional_text(host, sink, GPUHAL_FACT_DRIVER_UUID, mock->driver_uuid);
    optional_text(host, sink, GPUHAL_FACT_PARTITION, mock->partition);
    if (mock->unlisted) {
        host->text(host, sink, GPUHAL_FACT_UNLISTED, mock->unlisted);
    }
    optional_number(host, sink, GPUHAL_FACT_COMPUTE_MODE, mock->compute_mode);
    if (mock->formats) {
        host->text(host, sink, GPUHAL_FACT_PROGRAM_FORMATS, mock->formats);
        host->u64(host, sink, GPUHAL_FACT_BINDING_ALIGNMENT_BYTES, 8);
        host->u64(host, sink, GPUHAL_FACT_GROUP_SIZE_MAX, 256);
    }
    optional_number(host, sink, GPUHAL_FACT_COMPUTE_UNITS, mock->compute_units);
    optional_number(host, sink, GPUHAL_FACT_IMPORT_KINDS, mock->import_kinds);
    optional_number(host, sink, GPUHAL_FACT_EXPORT_KINDS, mock->export_kinds);
    optional_number(host, sink, GPUHAL_FACT_EXPORTABLE_KINDS, mock->exportable_kinds);
    optional_number(host, sink, GPUHAL_FACT_ADOPT_KINDS, mock->adopt_kinds);
    optional_number(host, sink, GPUHAL_FACT_IMPORT_ALIGNMENT_BYTES, mock->import_alignment);
    if (mock->allocation_max) {
        host->u64(host, sink, GPUHAL_FACT_ALLOCATION_MAX_BYTES, mock->allocation_max);
    }
    if (mock->copy_alignment) {
        host->u64(host, sink, GPUHAL_FACT_COPY_ALIGNMENT_BYTES, mock->copy_alignment);
    }
    if (mock->fill_alignment) {
        host->u64(host, sink, GPUHAL_FACT_FILL_ALIGNMENT_BYTES, mock->fill_alignment);
    }
}

static gpuhal_status enumerate(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink)
{
    (void)instance;
    gpuhal_mock.enumerations++;
    stop_at(GPUHAL_MOCK_ENUMERATE);
    for (uint32_t i = 0; i < gpuhal_mock.count; i++) {
        if (!(gpuhal_mock.unplugged >> i & 1)) {
            list_device(host, sink, i, mock_of(i));
        }
    }
    return GPUHAL_OK;
}

static gpuhal_status enumerate_cpu(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink)
{
    (void)instance;
    static const gpuhal_mock_device plain = {.name = "processor", .type = GPUHAL_DEVICE_CPU};
    list_device(host, sink, 0, &plain);
    return GPUHAL_OK;
}

static const gpuhal_mock_value *find_value(uint32_t index, gpuhal_key key)
{
    const gpuhal_mock_value *values = mock_of(index)->values;
    for (size_t i = 0; i < sizeof mock_of(index)->values / sizeof *values; i++) {
        if (values[i].key == key) {
            return &values[i];
        }
    }
    return NULL;
}

static gpuhal_status sample(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                            const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink)
{
    (void)instance;
    (void)flags;
    gpuhal_mock.sample_thread = syscall(SYS_gettid);
    for (uint32_t i = 0; i < count; i++) {
        if ((gpuhal_mock.stop_key == 0 || gpuhal_mock.stop_key == keys[i]) &&
            (gpuhal_mock.stop_device == 0 || gpuhal_mock.stop_device == index + 1)) {
            stop_at(GPUHAL_MOCK_SAMPLE);
        }
        const gpuhal_mock_value *own = find_value(index, keys[i]);
        if (own && own->missing) {
            host->missing(host, sink, keys[i], own->missing, "missing, as the test says");
        } else if (own) {
            host->u64(host, sink, keys[i], own->u64);
        } else if (keys[i] == GPUHAL_VALUE_MEMORY_FREE_BYTES) {
            uint64_t total = mock_of(index)->total_bytes ? mock_of(index)->total_bytes : 1u << 30;
            host->u64(host, sink, keys[i], total - (uint64_t)mock_of(index)->allocated_bytes);
        } else {
            host->missing(host, sink, keys[i], GPUHAL_MISSING_NOT_SUPPORTED, "the mock has no such value");
        }
    }
    return mock_of(index)->fail_sample;
}

static gpuhal_status report_link(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t from, uint32_t to,
                               gpuhal_sink *sink)
{
    (void)instance;
    host->u64(host, sink, GPUHAL_LINK_PEER_ADVERTISED, 1);
    stop_at(GPUHAL_MOCK_LINK);
    host->u64(host, sink, GPUHAL_LINK_COUNT, from + to);
    return GPUHAL_OK;
}

void gpuhal_mock_pause(uint32_t us)
{
    const struct timespec pause = {.tv_nsec = (long)us * 1000};
    if (us) {
        nanosleep(&pause, NULL);
    }
}

static gpuhal_status describe(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                              gpuhal_ops *out_ops)
{
    (void)host, (void)instance;
    return index < gpuhal_mock.count ? gpuhal_mock_describe(mock_of(index), out_ops) : GPUHAL_ERROR_NOT_FOUND;
}

static gpuhal_mock_device mock_cpu;

static gpuhal_status describe_cpu(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                  gpuhal_ops *out_ops)
{
    (void)host, (void)instance;
    return index == 0 ? gpuhal_mock_describe(&mock_cpu, out_ops) : GPUHAL_ERROR_NOT_FOUND;
}

static gpuhal_status open_mock(const gpuhal_host *host, gpuhal_mock_device *mock, const gpuhal_native *adopt,
                               gpuhal_plugin_device **out_device, gpuhal_ops *ops)
{
    if (adopt && (adopt->type != GPUHAL_NATIVE_OPENCL_DEVICE || adopt->values[0] != GPUHAL_MOCK_NATIVE)) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, "the mock does not know that object");
    }
    if (adopt) {
        ops->fill = NULL;
    }
    if (mock->fail_open) {
        return mock->quiet_failures ? mock->fail_open
                                    : host->report(host, mock->fail_open, "mockOpen", 1, "made to fail");
    }
    if (gpuhal_mock.chatty_open) {
        host->log(host, GPUHAL_LOG_WARNING, "opening\nthe mock");
    }
    gpuhal_mock_pause(gpuhal_mock.slow_open_ms * 1000);
    gpuhal_plugin_device *device = malloc(sizeof *device);
    if (!device) {
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    *device = (gpuhal_plugin_device){mock, host};
    mock->openings++;
    *out_device = device;
    return GPUHAL_OK;
}

static gpuhal_status open_device(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                 const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops)
{
    (void)instance;
    stop_at(GPUHAL_MOCK_OPEN);
    return open_mock(host, mock_of(index), adopt, out_device, ops);
}

static gpuhal_status open_cpu(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                              const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops)
{
    (void)instance;
    (void)index;
    return open_mock(host, &mock_cpu, adopt, out_device, ops);
}

static void close_device(gpuhal_plugin_device *device)
{
    stop_at(device->mock == &mock_cpu ? 0 : GPUHAL_MOCK_CLOSE);
    device->mock->openings--;
    free(device);
}

const gpuhal_plugin *gpuhal_mock_query(uint32_t host_abi, const gpuhal_host *host)
{
    static gpuhal_plugin plugin = {.size = sizeof plugin,
                                         .abi = GPUHAL_ABI,
                                         .name = "mock",
                                         .version = "1",
                                         .start = start_mock,
                                         .enumerate = enumerate,
                                         .describe = describe,
                                         .open = open_device,
                                         .close = close_device,
                                         .sample = sample};
    (void)host;
    plugin.flags = gpuhal_mock.fork_safe ? GPUHAL_PLUGIN_FORK_SAFE : 0;
    plugin.link = gpuhal_mock.links ? report_link : NULL;
    return host_abi == GPUHAL_ABI ? &plugin : NULL;
}

const gpuhal_plugin *gpuhal_mock_cpu_query(uint32_t host_abi, const gpuhal_host *host)
{
    static const gpuhal_plugin plugin = {.size = sizeof plugin,
                                         .abi = GPUHAL_ABI,
                                         .flags = GPUHAL_PLUGIN_FORK_SAFE,
                                         .name = "cpu",
                                         .version = "1",
                                         .start = start,
                                         .enumerate = enumerate_cpu,
                                         .describe = describe_cpu,
                                         .open = open_cpu,
                                         .close = close_device};
    (void)host;
    return host_abi == GPUHAL_ABI ? &plugin : NULL;
}

void gpuhal_mock_five_kinds(void)
{
    gpuhal_mock = (gpuhal_mock_state){
        .count = 5,
        .devices = {
            {.name = "Soft Pipe", .type = GPUHAL_DEVICE_CPU, .software = 1},
            {.name = "Small iGPU", .type = GPUHAL_DEVICE_INTEGRATED_GPU, .pci = "0000:00:02.0"},
            {.name = "Big GPU 9000", .pci = "0000:c1:00.0", .uuid = "01234567-89ab-cdef-0123-456789abcdef"},
            {.name = "Big GPU 9001", .pci = "0000:c2:00.0"},
            {.name = "NPU", .type = GPUHAL_DEVICE_ACCELERATOR},
        }};
}

gpuhal *gpuhal_mock_open(const gpuhal_config *config, int with_cpu)
{
    static gpuhal_builtin_fn *const both[] = {gpuhal_mock_query, gpuhal_mock_cpu_query, NULL};
    static gpuhal_builtin_fn *const alone[] = {gpuhal_mock_query, NULL};
    gpuhal_config mine = config ? *config : (gpuhal_config){0};
    mine.size = sizeof mine;
    mine.isolation = GPUHAL_ISOLATION_NEVER;
    mine.ignore_environment = 1;
    mine.registry = mine.registry ? mine.registry : "none";
    mine.builtins = with_cpu ? both : alone;
    gpuhal *gpu = NULL;
    if (gpuhal_open(&mine, &gpu)) {
        fail_msg("gpuhal_open: %s", gpuhal_last_error()->sentence);
    }
    return gpu;
}

gpuhal_buffer *gpuhal_mock_buffer(gpuhal *gpu, uint32_t index, uint64_t bytes)
{
    gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = bytes};
    gpuhal_buffer *buffer = NULL;
    if (gpuhal_buffer_create(gpuhal_device_at(gpu, index), &desc, &buffer)) {
        fail_msg("gpuhal_buffer_create: %s", gpuhal_last_error()->sentence);
    }
    return buffer;
}
