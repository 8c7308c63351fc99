/* checks_leak.c: calls that are made thousands of times in the life of a server: each is repeated, and nothing may stay behind. Opening,
 * allocating, and making queues and events have checks of their own.
 */
#include "area.h"
#include "elf.h"
#include "process.h"

#include <string.h>
#include <unistd.h>

enum { WARM_UP = 10, TIMES = 80 };

static void do_enumerate(void *user)
{
    gpuhal_device_snapshot listing = {0};
    const gpuhal_trial *trial = user;
    gpuhal_expect_told(gpuhal_device_snapshot_enumerate(trial->plugin, trial->instance, &listing), "enumerate");
    gpuhal_device_snapshot_finish(&listing);
}

static void do_sample(void *user)
{
    gpuhal_device_snapshot sample = {0};
    const gpuhal_trial *trial = user;
    (void)gpuhal_device_snapshot_sample(trial->plugin, trial->instance, trial->index, NULL, 0, &sample);
    gpuhal_device_snapshot_finish(&sample);
}

/* One of the others; the device itself where there is none. */
static uint32_t other_device(const gpuhal_trial *trial)
{
    for (size_t d = 0; d < trial->listing.count; d++) {
        if (trial->listing.devices[d].index != trial->index) {
            return trial->listing.devices[d].index;
        }
    }
    return trial->index;
}

static void do_link(void *user)
{
    gpuhal_device_snapshot link = {0};
    const gpuhal_trial *trial = user;
    (void)gpuhal_device_snapshot_link(trial->plugin, trial->instance, trial->index, other_device(trial), &link);
    gpuhal_device_snapshot_finish(&link);
}

/* An object of no type that there is: refused, on a path that is easily forgotten. */
static void do_open_refused(void *user)
{
    gpuhal_slots slots;
    gpuhal_plugin_device *device = NULL;
    const gpuhal_trial *trial = user;
    const gpuhal_native nothing = {.size = sizeof nothing, .type = 0xdeadbeef};
    gpuhal_expect_ok(gpuhal_session_describe(trial, trial->index, &slots), "describe");
    gpuhal_step("open with an object to take over that it does not know");
    if (trial->plugin->open(trial->host, trial->instance, trial->index, &nothing, &device, &slots.ops) == GPUHAL_OK) {
        trial->plugin->close(device);
    }
}

static void do_allocate_refused(void *user)
{
    gpuhal_memory memory;
    const gpuhal_trial *trial = user;
    if (gpuhal_plain_allocate(&trial->opening, GPUHAL_MEMORY_DEVICE, UINT64_C(1) << 62, 0, &memory) == GPUHAL_OK) {
        gpuhal_plain_release(&trial->opening, &memory);
    }
}

/* Memory that all the calls below work on. */
typedef struct calls {
    const gpuhal_trial *trial;
    gpuhal_memory memory;
    uint64_t bytes;
} calls;

static void do_map(void *argument)
{
    const calls *own = argument;
    const gpuhal_opening *opening = &own->trial->opening;
    void *pointer = NULL;
    gpuhal_step("the slots map and unmap");
    gpuhal_expect_ok(opening->slots.ops.map(opening->device, &own->memory, 0, own->bytes, GPUHAL_ACCESS_READ, &pointer), "map");
    gpuhal_expect_ok(opening->slots.ops.unmap(opening->device, &own->memory, pointer), "unmap");
}

static void do_transfer(void *argument)
{
    const calls *own = argument;
    static unsigned char host[4096];
    const uint64_t bytes = own->bytes < sizeof host ? own->bytes : sizeof host;
    gpuhal_plain_put(&own->trial->opening, &own->memory, 0, host, bytes, ROUTE_ANY);
    gpuhal_plain_get(&own->trial->opening, &own->memory, 0, host, bytes, ROUTE_ANY);
}

static void do_native(void *argument)
{
    const calls *own = argument;
    const gpuhal_ops *ops = &own->trial->opening.slots.ops;
    gpuhal_native native = {.size = sizeof native};
    gpuhal_step("the slots native_device and native_memory");
    if (ops->native_device != NULL) {
        (void)ops->native_device(own->trial->opening.device, &native);
    }
    if (ops->native_memory != NULL) {
        native = (gpuhal_native){.size = sizeof native};
        (void)ops->native_memory(own->trial->opening.device, &own->memory, &native);
    }
}

static void do_register(void *argument)
{
    static _Alignas(4096) unsigned char host[65536];
    const calls *own = argument;
    const gpuhal_opening *opening = &own->trial->opening;
    gpuhal_step("the slots register_host and unregister_host");
    gpuhal_expect_ok(opening->slots.ops.register_host(opening->device, host, sizeof host), "register_host");
    gpuhal_expect_ok(opening->slots.ops.unregister_host(opening->device, host), "unregister_host");
}

/* The descriptor is the caller's to close. */
static void do_export(void *argument)
{
    const calls *own = argument;
    const gpuhal_opening *opening = &own->trial->opening;
    const gpuhal_alloc alloc = {.size = sizeof alloc, .bytes = own->bytes, .export_kinds = 1u << GPUHAL_HANDLE_OPAQUE_FD};
    gpuhal_memory memory = {.size = sizeof memory};
    gpuhal_handle handle = {.size = sizeof handle};
    uint64_t offset = 0;
    gpuhal_step("the slot export_memory");
    gpuhal_expect_ok(opening->slots.ops.allocate(opening->device, &alloc, &memory), "allocate for export");
    gpuhal_expect_ok(opening->slots.ops.export_memory(opening->device, &memory, GPUHAL_HANDLE_OPAQUE_FD, &handle, &offset),
                     "export_memory");
    close((int)handle.as.os);
    gpuhal_plain_release(opening, &memory);
}

static void do_peer(void *user)
{
    const gpuhal_trial *trial = user;
    const gpuhal_ops *ops = &trial->opening.slots.ops;
    gpuhal_trial other = *trial;
    gpuhal_opening opening;
    other.index = other_device(trial);
    gpuhal_session_open(&other, &opening);
    gpuhal_step("the slots peer_enable and peer_disable");
    if (opening.slots.ops.peer_copy != NULL && ops->peer_enable(trial->opening.device, opening.device) == GPUHAL_OK) {
        ops->peer_disable(trial->opening.device, opening.device);
    }
    gpuhal_session_close(&other, &opening);
}

static void repeat(const char *what, void (*once)(void *user), void *argument)
{
    gpuhal_expect_no_leak(what, WARM_UP, TIMES, once, argument);
}

static void check_memory(const gpuhal_trial *trial)
{
    const gpuhal_ops *ops = &trial->opening.slots.ops;
    calls own = {.trial = trial, .bytes = gpuhal_round_up(4096, gpuhal_copy_unit(trial))};
    gpuhal_expect_ok(gpuhal_plain_allocate(&trial->opening, GPUHAL_MEMORY_DEVICE, own.bytes, 0, &own.memory), "allocate");
    repeat("writing and reading", do_transfer, &own);
    if (ops->map != NULL) {
        repeat("mapping and unmapping", do_map, &own);
    }
    repeat("asking for native handles", do_native, &own);
    if (ops->register_host != NULL) {
        repeat("registering host memory", do_register, &own);
    }
    if (ops->export_memory != NULL &&
        (gpuhal_trial_fact(trial, GPUHAL_FACT_EXPORT_KINDS, 0) >> GPUHAL_HANDLE_OPAQUE_FD & 1) != 0) {
        repeat("exporting memory", do_export, &own);
    }
    gpuhal_plain_release(&trial->opening, &own.memory);
}

/* On the first device alone, since the plugin does the same for all, and reading all values takes some drivers long. */
static void check_closed(gpuhal_trial *trial)
{
    const gpuhal_plugin *plugin = trial->plugin;
    repeat("calling enumerate", do_enumerate, trial);
    if (plugin->size >= offsetof(gpuhal_plugin, sample) + sizeof plugin->sample && plugin->sample != NULL) {
        repeat("calling sample", do_sample, trial);
    }
    if (plugin->size >= offsetof(gpuhal_plugin, link) + sizeof plugin->link && plugin->link != NULL) {
        repeat("calling link", do_link, trial);
    }
}

/* A monitor samples every second, a rescan enumerates, an application allocates until it is refused. */
void gpuhal_check_leaks(gpuhal_trial *trial)
{
    gpuhal_session_load(trial);
    gpuhal_session_start(trial);
    gpuhal_session_enumerate(trial);
    if (trial->index == trial->listing.devices[0].index) {
        check_closed(trial);
    }
    repeat("opening with an unknown object to take over", do_open_refused, trial);
    gpuhal_session_open(trial, &trial->opening);
    repeat("allocating more than there is", do_allocate_refused, trial);
    check_memory(trial);
    if (trial->opening.slots.ops.peer_copy != NULL && trial->listing.count > 1) {
        gpuhal_expect_no_leak("enabling and disabling peers", 4, 20, do_peer, trial);
    }
    gpuhal_session_close(trial, &trial->opening);
}

/* ---- start */

static void note_thread_import(void *user, const char *name)
{
    *(bool *)user |= strcmp(name, "pthread_create") == 0 || strcmp(name, "thrd_create") == 0;
}

/* Drivers may make threads as soon as they are initialised; a plugin that cannot make one is not to blame. */
void gpuhal_check_start(gpuhal_trial *trial)
{
    bool to_blame = false;
    const gpuhal_elf_visitor visitor = {.user = &to_blame, .imported = note_thread_import};
    gpuhal_session_load(trial);
    const gpuhal_holdings before = gpuhal_holdings_now();
    gpuhal_session_start(trial);
    const gpuhal_holdings now = gpuhal_holdings_settled(&before);
    gpuhal_elf_visit(trial->options->file, &visitor);
    if (now.threads > before.threads && to_blame) {
        gpuhal_fail("start left %u threads running; they belong to the openings that need them", now.threads - before.threads);
    }
    if (now.threads > before.threads) {
        gpuhal_note("start: a library that the plugin uses left %u threads running", now.threads - before.threads);
    }
    /* The same again must not add anything: a second copy of the core does it. */
    const gpuhal_host second = *trial->host;
    gpuhal_step("start, called by a second copy of the core");
    gpuhal_plugin_instance *instance = NULL;
    gpuhal_expect_ok(trial->plugin->start(&second, &instance), "the second start");
    const gpuhal_holdings again = gpuhal_holdings_settled(&now);
    if (again.threads > now.threads || again.descriptors > now.descriptors) {
        gpuhal_fail("a second start left %u more threads and %u more descriptors", again.threads - now.threads,
                    again.descriptors - now.descriptors);
    }
}
