/* checks_leak.c: calls that a server makes thousands of times. Each call is repeated, and must not leak. Opening,
 * allocating, and creating queues and events have separate checks. */
#include "area.h"
#include "image.h"
#include "program.h"
#include "resources.h"

#include <string.h>
#include <unistd.h>

enum { WARM_UP = 10, TIMES = 80 };

static void do_enumerate(void *user)
{
    gpuhal_device_snapshot listing = {0};
    const gpuhal_context *context = user;
    gpuhal_expect_reported(gpuhal_device_snapshot_enumerate(context->plugin, context->instance, &listing), "enumerate");
    gpuhal_device_snapshot_finish(&listing);
}

static void do_sample(void *user)
{
    gpuhal_device_snapshot sample = {0};
    const gpuhal_context *context = user;
    (void)gpuhal_device_snapshot_sample(context->plugin, context->instance, context->index, NULL, 0, &sample);
    gpuhal_device_snapshot_finish(&sample);
}

/* Returns another device, or the device itself if it is the only device. */
static uint32_t other_device(const gpuhal_context *context)
{
    for (size_t d = 0; d < context->listing.count; d++) {
        if (context->listing.devices[d].index != context->index) {
            return context->listing.devices[d].index;
        }
    }
    return context->index;
}

static void do_link(void *user)
{
    gpuhal_device_snapshot link = {0};
    const gpuhal_context *context = user;
    (void)gpuhal_device_snapshot_link(context->plugin, context->instance, context->index, other_device(context), &link);
    gpuhal_device_snapshot_finish(&link);
}

/* Tries to adopt an object of an unknown type. The plugin must refuse it. Leaks on this error path are easily
 * overlooked. */
static void do_open_refused(void *user)
{
    gpuhal_slots slots;
    gpuhal_plugin_device *device = NULL;
    const gpuhal_context *context = user;
    const gpuhal_native nothing = {.size = sizeof nothing, .type = 0xdeadbeef};
    gpuhal_expect_ok(gpuhal_session_describe(context, context->index, &slots), "describe");
    gpuhal_step("open with an unknown object to take over");
    if (context->plugin->open(context->host, context->instance, context->index, &nothing, &device, &slots.ops) ==
        GPUHAL_OK) {
        context->plugin->close(device);
    }
}

static void do_allocate_refused(void *user)
{
    gpuhal_memory memory;
    const gpuhal_context *context = user;
    if (gpuhal_plain_allocate(&context->opened, GPUHAL_MEMORY_DEVICE, UINT64_C(1) << 62, 0, &memory) == GPUHAL_OK) {
        gpuhal_plain_release(&context->opened, &memory);
    }
}

/* Skips formats that are compiled, because compilers take too long for this number of calls. */
static void load_rubbish(void *user, const char *format)
{
    if (!gpuhal_format_is_text(format)) {
        gpuhal_program_refused(user, format);
    }
}

static void do_load_refused(void *user)
{
    gpuhal_formats_visit(user, load_rubbish, user);
}

typedef struct calls {
    const gpuhal_context *context;
    gpuhal_memory memory;
    uint64_t bytes;
} calls;

static void do_map(void *argument)
{
    const calls *own = argument;
    const gpuhal_opened *opened = &own->context->opened;
    void *pointer = NULL;
    gpuhal_step("the slots map and unmap");
    gpuhal_expect_ok(opened->slots.ops.map(opened->device, &own->memory, 0, own->bytes, GPUHAL_ACCESS_READ, &pointer),
                     "map");
    gpuhal_expect_ok(opened->slots.ops.unmap(opened->device, &own->memory, pointer), "unmap");
}

static void do_transfer(void *argument)
{
    const calls *own = argument;
    static unsigned char host[4096];
    const uint64_t bytes = own->bytes < sizeof host ? own->bytes : sizeof host;
    gpuhal_plain_put(&own->context->opened, &own->memory, 0, host, bytes, ROUTE_ANY);
    gpuhal_plain_get(&own->context->opened, &own->memory, 0, host, bytes, ROUTE_ANY);
}

static void do_native(void *argument)
{
    const calls *own = argument;
    const gpuhal_slots *slots = &own->context->opened.slots;
    gpuhal_native native = {.size = sizeof native};
    gpuhal_step("the slots native_device and native_memory");
    if (slots->native.native_device != NULL) {
        (void)slots->native.native_device(own->context->opened.device, &native);
    }
    if (slots->native.native_memory != NULL) {
        native = (gpuhal_native){.size = sizeof native};
        (void)slots->native.native_memory(own->context->opened.device, &own->memory, &native);
    }
}

static void do_register(void *argument)
{
    static _Alignas(4096) unsigned char host[65536];
    const calls *own = argument;
    const gpuhal_opened *opened = &own->context->opened;
    gpuhal_step("the slots register_host and unregister_host");
    gpuhal_expect_ok(opened->slots.ops.register_host(opened->device, host, sizeof host), "register_host");
    gpuhal_expect_ok(opened->slots.ops.unregister_host(opened->device, host), "unregister_host");
}

/* The caller must close the exported descriptor. */
static void do_export(void *argument)
{
    const calls *own = argument;
    const gpuhal_opened *opened = &own->context->opened;
    gpuhal_alloc alloc;
    gpuhal_memory memory;
    gpuhal_handle handle = {.size = sizeof handle};
    uint64_t offset = 0;
    gpuhal_plain_allocate_exported(own->context, gpuhal_exportable_first(own->context), GPUHAL_HANDLE_OPAQUE_FD,
                                   own->bytes, &alloc, &memory);
    gpuhal_step("the slot export_memory");
    gpuhal_expect_ok(
        opened->slots.ops.export_memory(opened->device, &memory, GPUHAL_HANDLE_OPAQUE_FD, &handle, &offset),
        "export_memory");
    close((int)handle.as.os);
    gpuhal_plain_release(opened, &memory);
}

static void do_peer(void *user)
{
    const gpuhal_context *context = user;
    const gpuhal_slots *slots = &context->opened.slots;
    gpuhal_context other = *context;
    gpuhal_opened opened;
    other.index = other_device(context);
    gpuhal_session_open(&other, &opened);
    gpuhal_step("the slots peer_enable and peer_disable");
    if (opened.slots.peers.peer_copy != NULL &&
        slots->peers.peer_enable(context->opened.device, opened.device) == GPUHAL_OK) {
        slots->peers.peer_disable(context->opened.device, opened.device);
    }
    gpuhal_session_close(&other, &opened);
}

static void repeat(const char *what, void (*once)(void *user), void *argument)
{
    gpuhal_expect_no_leak(what, WARM_UP, TIMES, once, argument);
}

static void check_memory(const gpuhal_context *context)
{
    const gpuhal_slots *slots = &context->opened.slots;
    calls own = {.context = context, .bytes = gpuhal_round_up(4096, gpuhal_copy_unit(context))};
    gpuhal_expect_ok(gpuhal_plain_allocate(&context->opened, GPUHAL_MEMORY_DEVICE, own.bytes, 0, &own.memory),
                     "allocate");
    repeat("writing and reading", do_transfer, &own);
    if (slots->ops.map != NULL) {
        repeat("mapping and unmapping", do_map, &own);
    }
    repeat("asking for native handles", do_native, &own);
    if (slots->ops.register_host != NULL) {
        repeat("registering host memory", do_register, &own);
    }
    if (slots->ops.export_memory != NULL &&
        (gpuhal_device_fact(context, GPUHAL_FACT_EXPORT_KINDS, 0) >> GPUHAL_HANDLE_OPAQUE_FD & 1) != 0) {
        repeat("exporting memory", do_export, &own);
    }
    gpuhal_plain_release(&context->opened, &own.memory);
}

/* Called only for the first device, because the plugin's code is the same for all devices, and some drivers take a long
 * time to read all values. */
static void check_closed(gpuhal_context *context)
{
    const gpuhal_plugin *plugin = context->plugin;
    repeat("calling enumerate", do_enumerate, context);
    if (PLUGIN_HAS(plugin, sample)) {
        repeat("calling sample", do_sample, context);
    }
    if (PLUGIN_HAS(plugin, link)) {
        repeat("calling link", do_link, context);
    }
}

/* A monitor samples every second, a rescan enumerates, and an application allocates until it is refused. */
void gpuhal_check_leaks(gpuhal_context *context)
{
    gpuhal_session_list(context);
    if (context->index == context->listing.devices[0].index) {
        check_closed(context);
    }
    repeat("opening with an unknown object to take over", do_open_refused, context);
    gpuhal_session_open(context, &context->opened);
    repeat("allocating more than there is", do_allocate_refused, context);
    if (context->opened.slots.programs.program_load != NULL) {
        repeat("loading an invalid program", do_load_refused, context);
    }
    check_memory(context);
    if (context->opened.slots.peers.peer_copy != NULL && context->listing.count > 1) {
        gpuhal_expect_no_leak("enabling and disabling peers", 4, 20, do_peer, context);
    }
    gpuhal_session_close(context, &context->opened);
}

/* ---- start */

static void note_thread_import(void *user, const char *name)
{
    *(bool *)user |= strcmp(name, "pthread_create") == 0 || strcmp(name, "thrd_create") == 0;
}

/* Drivers may create threads as soon as they are initialised. A plugin that imports no function to create threads is
 * not at fault. */
void gpuhal_check_start(gpuhal_context *context)
{
    bool to_blame = false;
    const gpuhal_image_visitor visitor = {.user = &to_blame, .imported = note_thread_import};
    gpuhal_session_load(context);
    const gpuhal_resources before = gpuhal_resources_now();
    gpuhal_session_start(context);
    const gpuhal_resources now = gpuhal_resources_settled(&before);
    gpuhal_image_visit(context->options->file, &visitor);
    if (now.threads > before.threads && to_blame) {
        gpuhal_fail("start left %u threads running; they belong to the opened devices that need them",
                    now.threads - before.threads);
    }
    if (now.threads > before.threads) {
        gpuhal_note("start: a library that the plugin uses left %u threads running", now.threads - before.threads);
    }
    /* A second start(), as from a second copy of the core, must not leave more threads or descriptors. */
    const gpuhal_host second = *context->host;
    gpuhal_step("start, called by a second copy of the core");
    gpuhal_plugin_instance *instance = NULL;
    gpuhal_expect_ok(context->plugin->start(&second, &instance), "the second start");
    const gpuhal_resources again = gpuhal_resources_settled(&now);
    if (again.threads > now.threads || again.descriptors > now.descriptors) {
        gpuhal_fail("a second start left %u more threads and %u more descriptors", again.threads - now.threads,
                    again.descriptors - now.descriptors);
    }
}
