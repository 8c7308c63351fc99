/* checks_peer.c: every pair of the plugin's devices: copies between them, and the plugin's facts about their links. */
#include "work.h"

#include <inttypes.h>
#include <string.h>

/* ---- copies between two devices */

typedef struct pair {
    const gpuhal_context *context;
    gpuhal_context other; /* a copy of the context, for the other device */
    gpuhal_opened opened;
    gpuhal_area here, there;
} pair;

static void pair_init(pair *made, const gpuhal_context *context, const gpuhal_listed *other)
{
    *made = (pair){.context = context, .other = *context};
    made->other.index = other->index;
    made->other.listed = other;
    gpuhal_session_open(&made->other, &made->opened);
    const uint64_t here = gpuhal_area_usual(context), there = gpuhal_area_usual(&made->other);
    const uint64_t bytes = here > there ? here : there;
    gpuhal_area_init(&made->here, context, &context->opened, GPUHAL_MEMORY_DEVICE, bytes);
    gpuhal_area_init(&made->there, &made->other, &made->opened, GPUHAL_MEMORY_DEVICE, bytes);
}

static void pair_finish(pair *made)
{
    gpuhal_area_finish(&made->there);
    gpuhal_area_finish(&made->here);
    gpuhal_session_close(&made->other, &made->opened);
}

static uint64_t unit_of(const pair *made)
{
    const uint64_t here = gpuhal_copy_unit(made->context), there = gpuhal_copy_unit(&made->other);
    return here > there ? here : there;
}

static gpuhal_status copy_over(const gpuhal_area *to, uint64_t to_offset, const gpuhal_area *from, uint64_t from_offset,
                               uint64_t bytes, gpuhal_plugin_queue *queue)
{
    gpuhal_step("the slot peer_copy");
    return to->opened->slots.peers.peer_copy(queue, to->opened->device, &to->memory, to_offset, from->opened->device,
                                             &from->memory, from_offset, bytes);
}

static void expect_arrived(const pair *made, gpuhal_area *to, uint64_t to_offset, gpuhal_area *from,
                           uint64_t from_offset, uint64_t bytes, const char *how)
{
    const gpuhal_claim claim = {.offset = to_offset,
                                .bytes = bytes,
                                .source = from->expected,
                                .source_total = from->bytes,
                                .source_offset = from_offset};
    gpuhal_area_changed(to, to_offset, from->expected + from_offset, bytes);
    gpuhal_area_verify(to, claim, ROUTE_ANY, "peer_copy%s of %" PRIu64 " bytes from device %u to device %u", how, bytes,
                       from == &made->here ? made->context->index : made->other.index,
                       to == &made->here ? made->context->index : made->other.index);
    gpuhal_area_verify(from, (gpuhal_claim){.bytes = from->bytes}, ROUTE_ANY, "the source of peer_copy");
}

/* Returns false if the plugin refuses this pair. */
static bool copy_both_ways(pair *made)
{
    static const uint64_t sizes[] = {1, 255, 4097};
    const uint64_t unit = unit_of(made);
    for (unsigned s = 0; s < 2 * (sizeof sizes / sizeof *sizes); s++) {
        const bool here = s % 2 == 0;
        gpuhal_area *to = here ? &made->here : &made->there, *from = here ? &made->there : &made->here;
        const uint64_t bytes = gpuhal_round_up(sizes[s / 2], unit);
        gpuhal_area_reset(to, 10 + s, ROUTE_ANY);
        gpuhal_area_reset(from, 30 + s, ROUTE_ANY);
        gpuhal_status status = copy_over(to, 3 * unit, from, 5 * unit, bytes, NULL);
        if (status == GPUHAL_ERROR_NOT_SUPPORTED) {
            return false;
        }
        gpuhal_expect_ok(status, "peer_copy");
        expect_arrived(made, to, 3 * unit, from, 5 * unit, bytes, "");
    }
    return true;
}

/* Enqueues the copies after other copies within the device to the same bytes. If a copy runs too early, the earlier
 * copies overwrite its bytes. */
static void copy_in_queue(pair *made)
{
    enum { COPIES = 200 };
    gpuhal_work work;
    gpuhal_work_init(&work, made->context, 0);
    const uint64_t unit = unit_of(made), bytes = gpuhal_round_up(4096, unit);
    gpuhal_area *to = &made->here, *from = &made->there;
    gpuhal_area_reset(to, 50, ROUTE_ANY);
    gpuhal_area_reset(from, 51, ROUTE_ANY);
    for (unsigned c = 0; c < COPIES; c++) {
        gpuhal_work_copy(&work, work.queue, to, 0, &work.from, 0,
                         work.from.bytes < to->bytes ? work.from.bytes : to->bytes);
    }
    memcpy(to->expected, work.from.expected, (size_t)(work.from.bytes < to->bytes ? work.from.bytes : to->bytes));
    gpuhal_status status;
    while (gpuhal_work_full(&work, work.queue, status = copy_over(to, unit, from, 2 * unit, bytes, work.queue))) {
    }
    gpuhal_work_record(&work, work.queue, work.event);
    gpuhal_work_await(&work, work.event);
    if (status != GPUHAL_ERROR_NOT_SUPPORTED) {
        gpuhal_expect_ok(status, "peer_copy with a queue");
        expect_arrived(made, to, unit, from, 2 * unit, bytes, " behind 200 copies in a queue");
    }
    gpuhal_work_finish(&work);
}

/* A plugin may refuse to allocate memory for peer access. If it does allocate the memory, peers must be able to access
 * it. */
static void allocate_for_peer(const pair *made)
{
    const gpuhal_opened *opened = &made->context->opened;
    gpuhal_plugin_device *const peers[] = {made->opened.device};
    const gpuhal_alloc alloc = {
        .size = sizeof alloc, .bytes = gpuhal_area_usual(made->context), .peer_count = 1, .peers = peers};
    gpuhal_memory memory = {.size = sizeof memory};
    gpuhal_step("the slot allocate with a peer");
    gpuhal_status status = opened->slots.ops.allocate(opened->device, &alloc, &memory);
    if (status == GPUHAL_OK) {
        gpuhal_plain_release(opened, &memory);
    } else if (status != GPUHAL_ERROR_NOT_SUPPORTED) {
        gpuhal_expect_ok(status, "allocate with a peer");
    }
}

/* Returns whether link() reports that one device can access the other. *out_known is false if link() does not report
 * this fact. */
static bool advertised(const gpuhal_context *context, uint32_t from, uint32_t to, bool *out_known)
{
    gpuhal_device_snapshot link = {0};
    *out_known = false;
    uint64_t value = 0;
    if (gpuhal_device_snapshot_link(context->plugin, context->instance, from, to, &link) == GPUHAL_OK) {
        value = gpuhal_listed_number(&link.devices[0], GPUHAL_LINK_PEER_ADVERTISED, UINT64_MAX);
        *out_known = value != UINT64_MAX;
    }
    gpuhal_device_snapshot_finish(&link);
    return *out_known && value != 0;
}

static bool check_pair(gpuhal_context *context, const gpuhal_listed *other)
{
    pair made;
    bool known = false;
    pair_init(&made, context, other);
    const gpuhal_slots *slots = &context->opened.slots;
    const bool offered = made.opened.slots.peers.peer_copy != NULL;
    gpuhal_step("the slot peer_enable");
    gpuhal_status status =
        offered ? slots->peers.peer_enable(context->opened.device, made.opened.device) : GPUHAL_ERROR_NOT_SUPPORTED;
    const bool enabled = status == GPUHAL_OK;
    gpuhal_expect_ok(status == GPUHAL_ERROR_NOT_SUPPORTED ? GPUHAL_OK : status, "peer_enable");
    const bool stated = advertised(context, other->index, context->index, &known);
    if (enabled && known && !stated) {
        gpuhal_fail_by(39, "link says that device %u does not reach memory of device %u, and peer_enable returned %s",
                       context->index, other->index, gpuhal_status_text(status));
    }
    if (offered && !enabled && stated) { /* HIP reports this for partitions of one device */
        gpuhal_note("the driver says that device %u reaches memory of device %u, and refuses to enable that",
                    context->index, other->index);
    }
    if (enabled) {
        allocate_for_peer(&made);
        if (copy_both_ways(&made) && slots->queues.queue_create != NULL) {
            copy_in_queue(&made);
        }
        gpuhal_step("the slot peer_disable");
        slots->peers.peer_disable(context->opened.device, made.opened.device);
    }
    pair_finish(&made);
    return enabled;
}

/* The core verifies each link before it uses the link. If a plugin fails this verification, all its copies
 * are staged. */
void gpuhal_check_peers(gpuhal_context *context)
{
    unsigned enabled = 0;
    if (context->opened.slots.peers.peer_copy == NULL || context->listing.count < 2) {
        gpuhal_skip(context->listing.count < 2 ? "there is one device only" : "peers are not offered");
        return;
    }
    for (size_t d = 0; d < context->listing.count; d++) {
        if (context->listing.devices[d].index != context->index) {
            enabled += check_pair(context, &context->listing.devices[d]);
        }
    }
    if (enabled == 0) {
        gpuhal_skip("peer_enable refuses every other device");
    }
}

/* ---- links */

static const gpuhal_listed_fact *expect_number(const gpuhal_listed *link, gpuhal_key key, uint64_t least, uint64_t most)
{
    const gpuhal_listed_fact *fact = gpuhal_listed_find(link, key);
    if (fact != NULL && fact->kind == LISTED_NUMBER && (fact->number < least || fact->number > most)) {
        gpuhal_fail("link gave %s as %" PRIu64 "; it is between %" PRIu64 " and %" PRIu64, gpuhal_listed_key(key),
                    fact->number, least, most);
    }
    return fact;
}

/* Returns whether the plugin reports this number; the library provides the verified and measured values. */
static bool is_of_link(gpuhal_key key)
{
    return key >= GPUHAL_LINK_KIND && key <= GPUHAL_LINK_COUNT;
}

/* The number of a vendor-specific fabric means nothing to people, so the fabric has a name. */
static void expect_kind(const gpuhal_listed *link)
{
    const gpuhal_listed_fact *kind = gpuhal_listed_find(link, GPUHAL_LINK_KIND),
                             *name = gpuhal_listed_find(link, GPUHAL_LINK_NAME);
    const bool is_vendors = kind != NULL && kind->kind == LISTED_NUMBER && kind->number >= GPUHAL_VENDOR_FIRST &&
                            kind->number <= UINT32_MAX;
    if (!is_vendors) {
        expect_number(link, GPUHAL_LINK_KIND, GPUHAL_LINK_NVLINK, GPUHAL_LINK_HOST);
    } else if (name == NULL || name->kind != LISTED_TEXT) {
        gpuhal_fail("link gave a kind of the vendor's own, 0x%" PRIx64 ", and no link_name", kind->number);
    }
}

static void expect_facts(const gpuhal_listed *link)
{
    for (size_t f = 0; f < link->count; f++) {
        const gpuhal_listed_fact *fact = &link->facts[f];
        if (fact->key == GPUHAL_LINK_NAME || fact->key >= GPUHAL_VENDOR_FIRST) {
            continue;
        }
        if (!is_of_link(fact->key)) {
            gpuhal_fail("link gave %s, which is not a fact that a plugin gives about a link",
                        gpuhal_listed_key(fact->key));
        }
        if (fact->kind == LISTED_TEXT) {
            gpuhal_fail("link gave %s as a text, and it is a number", gpuhal_listed_key(fact->key));
        }
        if (fact->kind == LISTED_MISSING &&
            (fact->reason < GPUHAL_MISSING_NOT_SUPPORTED || fact->reason > GPUHAL_MISSING_LOST)) {
            gpuhal_fail_by(13, "link gave %s as missing with %u, which is not a reason", gpuhal_listed_key(fact->key),
                           fact->reason);
        }
    }
}

static void check_link(const gpuhal_context *context, const gpuhal_listed *other, bool peers)
{
    gpuhal_device_snapshot link = {0}, again = {0}, back = {0};
    gpuhal_expect_reported(
        gpuhal_device_snapshot_link(context->plugin, context->instance, context->index, other->index, &link), "link");
    gpuhal_expect_reported(
        gpuhal_device_snapshot_link(context->plugin, context->instance, context->index, other->index, &again),
        "the second link");
    gpuhal_expect_reported(
        gpuhal_device_snapshot_link(context->plugin, context->instance, other->index, context->index, &back),
        "link in the other direction");
    const gpuhal_listed *facts = &link.devices[0];
    expect_facts(facts);
    expect_kind(facts);
    expect_number(facts, GPUHAL_LINK_PEER_ADVERTISED, 0, 1);
    /* The slowest PCI Express lane transfers 250 MB/s; a value in MB or GB is far below this limit. */
    expect_number(facts, GPUHAL_LINK_BANDWIDTH_BYTES_PER_SECOND, 50000000, UINT64_C(100000000000000));
    expect_number(facts, GPUHAL_LINK_GENERATION, 1, 100);
    expect_number(facts, GPUHAL_LINK_COUNT, 1, 1024);
    if (peers && gpuhal_listed_find(facts, GPUHAL_LINK_PEER_ADVERTISED) == NULL) {
        gpuhal_fail("peers are offered, and link does not give link_peer_advertised for devices %u and %u",
                    context->index, other->index);
    }
    for (gpuhal_key key = GPUHAL_LINK_KIND; is_of_link(key); key++) {
        char one[64], second[64], reverse[64];
        gpuhal_listed_format(gpuhal_listed_find(facts, key), one, sizeof one);
        gpuhal_listed_format(gpuhal_listed_find(&again.devices[0], key), second, sizeof second);
        gpuhal_listed_format(gpuhal_listed_find(&back.devices[0], key), reverse, sizeof reverse);
        if (strcmp(one, second) != 0) {
            gpuhal_fail("link gave %s as %s, and as %s the second time", gpuhal_listed_key(key), one, second);
        }
        if (key == GPUHAL_LINK_KIND && strcmp(one, reverse) != 0) {
            gpuhal_fail("link gave %s as %s from device %u to %u, and as %s in the other direction",
                        gpuhal_listed_key(key), one, context->index, other->index, reverse);
        }
    }
    gpuhal_device_snapshot_finish(&link);
    gpuhal_device_snapshot_finish(&again);
    gpuhal_device_snapshot_finish(&back);
}

void gpuhal_check_links(gpuhal_context *context)
{
    const gpuhal_plugin *plugin = context->plugin;
    gpuhal_slots slots;
    if (!PLUGIN_HAS(plugin, link)) {
        gpuhal_skip("the plugin has no link");
        return;
    }
    gpuhal_expect_ok(gpuhal_session_describe(context, context->index, &slots), "describe");
    for (size_t d = 0; d < context->listing.count; d++) {
        if (context->listing.devices[d].index != context->index) {
            check_link(context, &context->listing.devices[d], slots.peers.peer_copy != NULL);
        }
    }
    gpuhal_device_snapshot nothing = {0};
    if (gpuhal_device_snapshot_link(plugin, context->instance, context->index, UINT32_MAX, &nothing) >= 0) {
        gpuhal_fail("link returned no error for device %u, which was never listed", UINT32_MAX);
    }
    gpuhal_device_snapshot_finish(&nothing);
    if (context->listing.count < 2) {
        gpuhal_skip("there is one device only");
    }
}
