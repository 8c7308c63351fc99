/* odd_plugin.c: plugins that misbehave in ways that users of gpuhal-probe notice. ODD_NAME is the backend's name, and
 * ODD_KIND selects the misbehaviour. Apart from that, each plugin has one device that uses host memory. */
#include <gpuhal/plugin.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum kind {
    CRASHES_AT_START = 1,
    HANGS_AT_START,
    IS_REFUSED_AT_START, /* no permission */
    IS_REFUSED_AT_OPEN,
    CRASHES_AT_OPEN,
    HANGS_AT_OPEN,
    PRINTS_AT_OPEN,
    COPIES_WRONG,
    HAS_A_TWIN, /* two such plugins report the same PCI address */
    HAS_A_LONG_NAME,
    HANGS_AT_COPY,
    HAS_A_LATER_GROUP,
    HAS_ITS_OWN_NUMBERS /* two devices with vendor-specific facts and a vendor-specific link */
};

struct gpuhal_plugin_device {
    const gpuhal_host *host;
};

static gpuhal_status odd_start(const gpuhal_host *host, gpuhal_plugin_instance **out_instance)
{
    (void)out_instance;
    if (ODD_KIND == CRASHES_AT_START) {
        raise(SIGSEGV);
    }
    while (ODD_KIND == HANGS_AT_START) {
        pause();
    }
    if (ODD_KIND == IS_REFUSED_AT_START) {
        return host->report(host, GPUHAL_ERROR_NO_PERMISSION, "odd_init", 13, "/dev/odd0 may not be opened");
    }
    return GPUHAL_OK;
}

static void list_device(const gpuhal_host *host, gpuhal_sink *sink, uint32_t index)
{
    const char *name =
        ODD_KIND == HAS_A_LONG_NAME
            ? "Überaus großer Grafikprozessor 图形处理器 with a name that no screen of eighty columns has room for"
            : "Odd GPU";
    host->device(host, sink, index);
    host->text(host, sink, GPUHAL_FACT_NAME, name);
    host->text(host, sink, GPUHAL_FACT_VENDOR, "Odd");
    host->u64(host, sink, GPUHAL_FACT_TYPE, GPUHAL_DEVICE_GPU);
    host->u64(host, sink, GPUHAL_FACT_SOFTWARE, 0);
    host->u64(host, sink, GPUHAL_FACT_MEMORY_KINDS,
              1u << GPUHAL_MEMORY_DEVICE | 1u << GPUHAL_MEMORY_UPLOAD | 1u << GPUHAL_MEMORY_READBACK);
    host->u64(host, sink, GPUHAL_FACT_MEMORY_TOTAL_BYTES, UINT64_C(24) << 30);
    host->text(host, sink, GPUHAL_FACT_DRIVER_VERSION, "550.54.14-odd-and-rather-long");
    host->missing(host, sink, GPUHAL_FACT_NUMA_NODE, GPUHAL_MISSING_NO_PERMISSION, "sysfs is not mounted");
    if (ODD_KIND == HAS_A_TWIN) {
        host->text(host, sink, GPUHAL_FACT_PCI_ADDRESS, "0000:c1:00.0");
    }
    if (ODD_KIND == HAS_ITS_OWN_NUMBERS) {
        host->u64(host, sink, GPUHAL_VENDOR_FIRST + 1, 42 + index);
        host->text(host, sink, GPUHAL_VENDOR_FIRST + 2, "systolic");
        host->missing(host, sink, GPUHAL_VENDOR_FIRST + 0xabcdef, GPUHAL_MISSING_NO_PERMISSION, "for administrators");
    }
}

static gpuhal_status odd_enumerate(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink)
{
    (void)instance;
    list_device(host, sink, 0);
    if (ODD_KIND == HAS_ITS_OWN_NUMBERS) {
        list_device(host, sink, 1);
    }
    return GPUHAL_OK;
}

static gpuhal_status odd_link(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t from, uint32_t to,
                              gpuhal_sink *sink)
{
    (void)instance;
    (void)from;
    (void)to;
    if (ODD_KIND == HAS_ITS_OWN_NUMBERS) {
        host->u64(host, sink, GPUHAL_LINK_KIND, GPUHAL_VENDOR_FIRST + 7);
        host->text(host, sink, GPUHAL_LINK_NAME, "Odd Fabric");
    }
    return GPUHAL_OK;
}

static gpuhal_status odd_allocate(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    if (alloc->kind >= GPUHAL_MEMORY_DEVICE_MAPPED || alloc->handle.kind || alloc->export_kinds || alloc->peer_count) {
        return GPUHAL_ERROR_NOT_SUPPORTED;
    }
    uint64_t alignment = alloc->alignment > 64 ? alloc->alignment : 64;
    void *memory = NULL;
    if (posix_memalign(&memory, (size_t)alignment, (size_t)alloc->bytes) != 0) {
        return device->host->report(device->host, GPUHAL_ERROR_OUT_OF_MEMORY, "posix_memalign", 0, "no memory");
    }
    memset(memory, 0, (size_t)alloc->bytes);
    out_memory->object = memory;
    out_memory->bytes = alloc->bytes;
    out_memory->host = alloc->kind == GPUHAL_MEMORY_DEVICE ? NULL : memory;
    out_memory->flags = GPUHAL_MEMORY_HOST_COHERENT | GPUHAL_MEMORY_HOST_CACHED;
    return GPUHAL_OK;
}

static void odd_release(gpuhal_plugin_device *device, gpuhal_memory *memory)
{
    (void)device;
    free(memory->object);
}

static gpuhal_status odd_copy(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                              uint64_t to_offset, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    (void)device;
    (void)queue;
    while (ODD_KIND == HANGS_AT_COPY) {
        pause();
    }
    char *target = (char *)to->object + to_offset;
    memmove(target, (const char *)from->object + from_offset, (size_t)bytes);
    if (ODD_KIND == COPIES_WRONG && bytes > 8) {
        target[7] ^= 1;
    }
    return GPUHAL_OK;
}

static gpuhal_status odd_describe(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                  gpuhal_ops *out_ops)
{
    (void)host, (void)instance;
    if (index > (ODD_KIND == HAS_ITS_OWN_NUMBERS)) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    out_ops->allocate = odd_allocate;
    out_ops->release = odd_release;
    out_ops->copy = odd_copy;
    static const gpuhal_program_ops later = {.size = sizeof later, .version = GPUHAL_PROGRAMS_VERSION + 1};
    out_ops->programs = ODD_KIND == HAS_A_LATER_GROUP ? &later : NULL;
    return GPUHAL_OK;
}

static gpuhal_status odd_open(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                              const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops)
{
    (void)instance;
    static gpuhal_plugin_device device;
    (void)ops;
    *out_device = NULL;
    if (index > (ODD_KIND == HAS_ITS_OWN_NUMBERS) || adopt) {
        return adopt ? GPUHAL_ERROR_NOT_SUPPORTED : GPUHAL_ERROR_NOT_FOUND;
    }
    if (ODD_KIND == CRASHES_AT_OPEN) {
        signal(SIGSEGV, SIG_DFL); /* otherwise sanitizers would catch the signal and exit */
        raise(SIGSEGV);
    }
    while (ODD_KIND == HANGS_AT_OPEN) {
        pause();
    }
    if (ODD_KIND == IS_REFUSED_AT_OPEN) {
        return host->report(host, GPUHAL_ERROR_NO_PERMISSION, "odd_open", 13, "/dev/odd0 may not be opened");
    }
    if (ODD_KIND == PRINTS_AT_OPEN) {
        puts("odd driver: hello from standard output");
        fflush(stdout);
    }
    device.host = host;
    *out_device = &device;
    return GPUHAL_OK;
}

static void odd_close(gpuhal_plugin_device *device)
{
    (void)device;
}

static const gpuhal_plugin odd_plugin = {
    .size = sizeof(gpuhal_plugin),
    .abi = GPUHAL_ABI,
    .name = ODD_NAME,
    .version = "1",
    .start = odd_start,
    .enumerate = odd_enumerate,
    .describe = odd_describe,
    .open = odd_open,
    .close = odd_close,
    .link = odd_link,
};

const gpuhal_plugin *GPUHAL_PLUGIN_QUERY(uint32_t host_abi, const gpuhal_host *host)
{
    (void)host_abi;
    (void)host;
    return &odd_plugin;
}
