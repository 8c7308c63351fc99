/* checks_open.c: opening a device repeatedly, both sequentially and at the same time, and the resources that remain. */
#include "../common/subprocess.h"
#include "area.h"
#include "resources.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

/* Two gpuhal objects, or two engines, may open one device at the same time and close it at any time. */
void gpuhal_check_open_twice(gpuhal_context *context)
{
    enum { OPENED = 3 };
    gpuhal_opened opened[OPENED];
    gpuhal_area areas[OPENED];
    const uint64_t bytes = gpuhal_area_usual(context);
    for (unsigned i = 0; i < OPENED; i++) {
        gpuhal_session_open(context, &opened[i]);
        gpuhal_area_init(&areas[i], context, &opened[i], GPUHAL_MEMORY_DEVICE, bytes);
        gpuhal_area_reset(&areas[i], i + 1, ROUTE_ANY);
    }
    /* Closes the first opened device first, and then the last opened device. The remaining opened devices must not be
     * affected. */
    static const unsigned order[OPENED] = {0, 2, 1};
    for (unsigned i = 0; i < OPENED; i++) {
        for (unsigned left = i; left < OPENED; left++) {
            gpuhal_area_verify(&areas[order[left]], (gpuhal_claim){.bytes = bytes}, ROUTE_ANY,
                               "memory of opened device %u after %u others were closed", order[left], i);
        }
        gpuhal_area_finish(&areas[order[i]]);
        gpuhal_session_close(context, &opened[order[i]]);
    }
}

static void expect_refused(const gpuhal_context *context, const gpuhal_native *adopt)
{
    gpuhal_slots slots;
    gpuhal_plugin_device *device = NULL;
    gpuhal_expect_ok(gpuhal_session_describe(context, context->index, &slots), "describe");
    gpuhal_step("open with an unknown object to take over");
    gpuhal_status status =
        context->plugin->open(context->host, context->instance, context->index, adopt, &device, &slots.ops);
    if (status >= 0) {
        gpuhal_fail("open returned %s for a native object of type %u, which it does not state in adopt_kinds",
                    gpuhal_status_text(status), adopt->type);
    }
}

/* A plugin that uses an invalid pointer as a vendor's context crashes inside the driver, far from the actual error. */
void gpuhal_check_open_adopt(gpuhal_context *context)
{
    static const int nothing = 0;
    const uint64_t kinds = gpuhal_device_fact(context, GPUHAL_FACT_ADOPT_KINDS, 0);
    for (uint32_t type = 0; type < 32; type++) {
        if ((kinds >> type & 1) == 0) {
            expect_refused(context, &(gpuhal_native){.size = sizeof(gpuhal_native), .type = type});
        }
    }
    expect_refused(context, &(gpuhal_native){.size = sizeof(gpuhal_native),
                                           .type = 0xdeadbeef,
                                           .typed = &nothing,
                                           .values = {1, UINT64_MAX, 0xdead, 0xbeef}});
}

/* Makes two allocations and a copy, since drivers allocate much of their memory only on first use. */
static void open_use_close(void *user)
{
    const gpuhal_context *context = user;
    const uint64_t bytes = gpuhal_round_up(4096, gpuhal_copy_unit(context));
    gpuhal_opened opened;
    gpuhal_memory one, other;
    gpuhal_session_open(context, &opened);
    gpuhal_expect_ok(gpuhal_plain_allocate(&opened, GPUHAL_MEMORY_DEVICE, bytes, 0, &one), "allocate");
    gpuhal_expect_ok(gpuhal_plain_allocate(&opened, GPUHAL_MEMORY_DEVICE, bytes, 0, &other), "allocate");
    gpuhal_plain_copy(&opened, &other, 0, &one, 0, bytes);
    gpuhal_plain_release(&opened, &one);
    gpuhal_plain_release(&opened, &other);
    gpuhal_session_close(context, &opened);
}

/* A server opens and closes devices for months. The first rounds are not counted, because drivers fill their caches. */
void gpuhal_check_open_100(gpuhal_context *context)
{
    gpuhal_session_list(context);
    gpuhal_expect_no_leak("opening and closing", 20, 80, open_use_close, context);
}

/* ---- device memory while enumerating */

#define ROUNDS 5

/* A process that lists the devices on request and exits on request. It is forked before this process loads the plugin,
 * because a driver that was started before a fork does not work in the child. */
typedef struct lister {
    const gpuhal_context *context;
    gpuhal_tool_child child; /* sends its resident size after listing */
    int orders[2];           /* a pipe to the process: 'l' lists, 'e' exits */
} lister;

/* Each listing runs in a separate process, because a driver keeps the memory that its first listing allocated. */
static void lister_main(void *user, int answer)
{
    const lister *made = user;
    gpuhal_context own = {.options = made->context->options, .index = made->context->index};
    char word = 0;
    if (read(made->orders[0], &word, 1) != 1 || word != 'l') {
        return;
    }
    gpuhal_session_list(&own);
    const uint64_t resident = gpuhal_resources_now().resident_bytes;
    gpuhal_tool_send(answer, &resident, sizeof resident);
    (void)!read(made->orders[0], &word, 1);
}

static void lister_init(lister *made, const gpuhal_context *context)
{
    made->context = context;
    if (pipe(made->orders) != 0 || !gpuhal_tool_fork(lister_main, made, &made->child)) {
        gpuhal_fail("gpuhal-check cannot make a process");
    }
    close(made->orders[0]);
}

static void lister_order(const lister *made, char word)
{
    if (write(made->orders[1], &word, 1) != 1) {
        gpuhal_fail("a second process that lists the devices is gone");
    }
}

static uint64_t lister_list(const lister *made)
{
    uint64_t resident = 0;
    lister_order(made, 'l');
    if (gpuhal_tool_hear(&made->child, GPUHAL_TOOL_FOREVER, &resident, sizeof resident) != GPUHAL_TOOL_HEARD) {
        gpuhal_fail("a second process could not list the devices");
    }
    return resident;
}

static void lister_end(lister *made)
{
    int status;
    lister_order(made, 'e');
    gpuhal_tool_end(&made->child, GPUHAL_TOOL_FOREVER, &status);
    close(made->orders[1]);
}

/* Other programs may start and exit in the meantime. A driver's context is larger than this tolerance. */
static uint64_t tolerance(const gpuhal_context *context)
{
    const uint64_t part = gpuhal_device_fact(context, GPUHAL_FACT_MEMORY_TOTAL_BYTES, UINT64_MAX) / 16;
    return part < UINT64_C(16) << 20 ? part : UINT64_C(16) << 20;
}

/* On devices that use host memory, the memory of the process itself counts as used, including the driver's
 * libraries. */
static bool shares_host_memory(const gpuhal_context *context)
{
    return gpuhal_device_fact(context, GPUHAL_FACT_UNIFIED_MEMORY, 0) == 1 ||
           gpuhal_device_fact(context, GPUHAL_FACT_SOFTWARE, 0) == 1 ||
           gpuhal_device_fact(context, GPUHAL_FACT_TYPE, 0) != GPUHAL_DEVICE_GPU;
}

/* Returns how much device memory is lost when this process lists the devices 20 more times. */
static int64_t taken_by_listing_again(const gpuhal_context *context)
{
    uint64_t before = 0, after = 0;
    gpuhal_free_memory(context, context->index, &before);
    for (int i = 0; i < 20; i++) {
        gpuhal_device_snapshot again = {0};
        gpuhal_expect_reported(gpuhal_device_snapshot_enumerate(context->plugin, context->instance, &again),
                               "enumerate");
        gpuhal_device_snapshot_finish(&again);
    }
    gpuhal_free_memory(context, context->index, &after);
    return (int64_t)before - (int64_t)after;
}

/* The round with the smallest loss counts, because other programs do not allocate memory in every round. */
static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Creating a context only to read a name costs hundreds of MiB on some devices, in every process that lists them. */
void gpuhal_check_enumerate_memory(gpuhal_context *context)
{
    lister listers[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        lister_init(&listers[i], context);
    }
    gpuhal_session_list(context);
    uint64_t before = 0, during = 0;
    const bool known = context->listed != NULL && gpuhal_free_memory(context, context->index, &before);
    int64_t taken = INT64_MAX, again = INT64_MAX;
    for (int i = 0; i < ROUNDS; i++) {
        if (known) {
            gpuhal_free_memory(context, context->index, &before);
            const uint64_t resident = lister_list(&listers[i]);
            gpuhal_free_memory(context, context->index, &during);
            taken = smaller(taken,
                            (int64_t)before - (int64_t)during - (shares_host_memory(context) ? (int64_t)resident : 0));
            again = smaller(again, taken_by_listing_again(context));
        }
        lister_end(&listers[i]);
    }
    const int64_t most = (int64_t)tolerance(context);
    if (!known) {
        gpuhal_skip("no source: sample does not give the free memory");
    } else if (taken > most) {
        gpuhal_fail("a process that only lists the devices takes %" PRId64 " KiB of device memory", taken >> 10);
    } else if (again > most) {
        gpuhal_fail("listing the devices 20 times took %" PRId64 " KiB of device memory", again >> 10);
    }
}
