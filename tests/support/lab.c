/* tests/support/lab.c: see lab.h. The plugin, and its devices; their memory is in lab_memory.c. */
#include "support/lab_device.h"

#include "test.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

gpuhal_lab_state gpuhal_lab;

static gpuhal_lab_device *lab_of(uint32_t index)
{
    return &gpuhal_lab.devices[index];
}

static void stop_at(uint32_t call)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    if (!(gpuhal_lab.stops & call)) {
        return;
    }
    gpuhal_lab.stopped_thread = pthread_self();
    gpuhal_lab.stopped++;
    while (gpuhal_lab.stops & call) {
        nanosleep(&pause, NULL);
    }
    gpuhal_lab.stopped--;
}

static gpuhal_status start(const gpuhal_host *host, gpuhal_plugin_instance **out_instance)
{
    (void)out_instance;
    (void)host;
    return GPUHAL_OK;
}

static gpuhal_status start_lab(const gpuhal_host *host, gpuhal_plugin_instance **out_instance)
{
    stop_at(GPUHAL_LAB_START);
    gpuhal_lab.host = host;
    return start(host, out_instance);
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

static void list_device(const gpuhal_host *host, gpuhal_sink *sink, uint32_t index, const gpuhal_lab_device *lab)
{
    uint32_t kinds = 1u << GPUHAL_MEMORY_DEVICE;
    if (!lab->no_staging_kinds) {
        kinds |= 1u << GPUHAL_MEMORY_UPLOAD | 1u << GPUHAL_MEMORY_READBACK;
    }
    host->device(host, sink, index);
    host->text(host, sink, GPUHAL_FACT_NAME, lab->name ? lab->name : "lab");
    host->u64(host, sink, GPUHAL_FACT_TYPE, lab->type ? lab->type : GPUHAL_DEVICE_GPU);
    host->u64(host, sink, GPUHAL_FACT_SOFTWARE, lab->software);
    host->u64(host, sink, GPUHAL_FACT_VENDOR_ID, 0x1ab);
    host->u64(host, sink, GPUHAL_FACT_NATIVE_INDEX, 100 + index);
    host->u64(host, sink, GPUHAL_FACT_MEMORY_KINDS, kinds);
    host->u64(host, sink, GPUHAL_FACT_MEMORY_TOTAL_BYTES, lab->total_bytes ? lab->total_bytes : 1u << 30);
    optional_text(host, sink, GPUHAL_FACT_UUID, lab->uuid);
    optional_text(host, sink, GPUHAL_FACT_PCI_ADDRESS, lab->pci);
    optional_text(host, sink, GPUHAL_FACT_DRIVER_UUID, lab->driver_uuid);
    optional_number(host, sink, GPUHAL_FACT_IMPORT_KINDS, lab->import_kinds);
    optional_number(host, sink, GPUHAL_FACT_EXPORT_KINDS, lab->export_kinds);
    optional_number(host, sink, GPUHAL_FACT_ADOPT_KINDS, lab->adopt_kinds);
    optional_number(host, sink, GPUHAL_FACT_IMPORT_ALIGNMENT_BYTES, lab->import_alignment);
    if (lab->allocation_max) {
        host->u64(host, sink, GPUHAL_FACT_ALLOCATION_MAX_BYTES, lab->allocation_max);
    }
    if (lab->copy_alignment) {
        host->u64(host, sink, GPUHAL_FACT_COPY_ALIGNMENT_BYTES, lab->copy_alignment);
    }
    if (lab->fill_alignment) {
        host->u64(host, sink, GPUHAL_FACT_FILL_ALIGNMENT_BYTES, lab->fill_alignment);
    }
}

static gpuhal_status enumerate(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink)
{
    (void)instance;
    gpuhal_lab.enumerations++;
    stop_at(GPUHAL_LAB_ENUMERATE);
    for (uint32_t i = 0; i < gpuhal_lab.count; i++) {
        if (!(gpuhal_lab.unplugged >> i & 1)) {
            list_device(host, sink, i, lab_of(i));
        }
    }
    return GPUHAL_OK;
}

static gpuhal_status enumerate_cpu(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink)
{
    (void)instance;
    static const gpuhal_lab_device plain = {.name = "processor", .type = GPUHAL_DEVICE_CPU};
    list_device(host, sink, 0, &plain);
    return GPUHAL_OK;
}

static gpuhal_status sample(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                            const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink)
{
    (void)instance;
    (void)flags;
    gpuhal_lab.sample_thread = syscall(SYS_gettid);
    for (uint32_t i = 0; i < count; i++) {
        if (gpuhal_lab.stop_key == 0 || gpuhal_lab.stop_key == keys[i]) {
            stop_at(GPUHAL_LAB_SAMPLE);
        }
        if (keys[i] == GPUHAL_VALUE_MEMORY_FREE_BYTES) {
            uint64_t total = lab_of(index)->total_bytes ? lab_of(index)->total_bytes : 1u << 30;
            host->u64(host, sink, keys[i], total - (uint64_t)lab_of(index)->allocated_bytes);
        } else {
            host->missing(host, sink, keys[i], GPUHAL_MISSING_NOT_SUPPORTED, "the lab has no such value");
        }
    }
    return GPUHAL_OK;
}

static gpuhal_status report_link(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t from, uint32_t to,
                               gpuhal_sink *sink)
{
    (void)instance;
    host->u64(host, sink, GPUHAL_LINK_PEER_ADVERTISED, 1);
    stop_at(GPUHAL_LAB_LINK);
    host->u64(host, sink, GPUHAL_LINK_COUNT, from + to);
    return GPUHAL_OK;
}

void gpuhal_lab_pause(uint32_t us)
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
    return index < gpuhal_lab.count ? gpuhal_lab_describe(lab_of(index), out_ops) : GPUHAL_ERROR_NOT_FOUND;
}

static gpuhal_lab_device lab_cpu;

static gpuhal_status describe_cpu(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                  gpuhal_ops *out_ops)
{
    (void)host, (void)instance;
    return index == 0 ? gpuhal_lab_describe(&lab_cpu, out_ops) : GPUHAL_ERROR_NOT_FOUND;
}

static gpuhal_status open_lab(const gpuhal_host *host, gpuhal_lab_device *lab, const gpuhal_native *adopt, gpuhal_plugin_device **out_device,
                              gpuhal_ops *ops)
{
    if (adopt && (adopt->type != GPUHAL_NATIVE_OPENCL_DEVICE || adopt->values[0] != GPUHAL_LAB_NATIVE)) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, "the lab does not know that object");
    }
    if (adopt) {
        ops->fill = NULL;
    }
    if (lab->fail_open) {
        return lab->quiet_failures ? lab->fail_open : host->report(host, lab->fail_open, "labOpen", 1, "made to fail");
    }
    if (gpuhal_lab.chatty_open) {
        host->log(host, GPUHAL_LOG_WARNING, "opening\nthe lab");
    }
    gpuhal_lab_pause(gpuhal_lab.slow_open_ms * 1000);
    gpuhal_plugin_device *device = malloc(sizeof *device);
    if (!device) {
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    *device = (gpuhal_plugin_device){lab, host};
    lab->openings++;
    *out_device = device;
    return GPUHAL_OK;
}

static gpuhal_status open_device(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                 const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops)
{
    (void)instance;
    stop_at(GPUHAL_LAB_OPEN);
    return open_lab(host, lab_of(index), adopt, out_device, ops);
}

static gpuhal_status open_cpu(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                              const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops)
{
    (void)instance;
    (void)index;
    return open_lab(host, &lab_cpu, adopt, out_device, ops);
}

static void close_device(gpuhal_plugin_device *device)
{
    stop_at(device->lab == &lab_cpu ? 0 : GPUHAL_LAB_CLOSE);
    device->lab->openings--;
    free(device);
}

const gpuhal_plugin *gpuhal_lab_query(uint32_t host_abi, const gpuhal_host *host)
{
    static gpuhal_plugin plugin = {.size = sizeof plugin,
                                         .abi = GPUHAL_ABI,
                                         .name = "lab",
                                         .version = "1",
                                         .start = start_lab,
                                         .enumerate = enumerate,
                                         .describe = describe,
                                         .open = open_device,
                                         .close = close_device,
                                         .sample = sample};
    (void)host;
    plugin.flags = gpuhal_lab.fork_safe ? GPUHAL_PLUGIN_FORK_SAFE : 0;
    plugin.link = gpuhal_lab.links ? report_link : NULL;
    return host_abi == GPUHAL_ABI ? &plugin : NULL;
}

const gpuhal_plugin *gpuhal_lab_cpu_query(uint32_t host_abi, const gpuhal_host *host)
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

gpuhal *gpuhal_lab_open(const gpuhal_config *config, int with_cpu)
{
    static gpuhal_builtin_fn *const both[] = {gpuhal_lab_query, gpuhal_lab_cpu_query, NULL};
    static gpuhal_builtin_fn *const alone[] = {gpuhal_lab_query, NULL};
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

gpuhal_buffer *gpuhal_lab_buffer(gpuhal *gpu, uint32_t index, uint64_t bytes)
{
    gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = bytes};
    gpuhal_buffer *buffer = NULL;
    if (gpuhal_buffer_create(gpuhal_device_at(gpu, index), &desc, &buffer)) {
        fail_msg("gpuhal_buffer_create: %s", gpuhal_last_error()->sentence);
    }
    return buffer;
}
