/* The identity rule on random machines, compared with the simplest implementation. In that implementation every
 * interface has the label of its physical device, and a join changes labels. Most of the machines are absurd, but the
 * rule applies to them as well.
 *
 * Evidence and partitions are checked against the rule, with some devices hidden. A failure prints the seed; the
 * environment variables IDENTITY_SEED and IDENTITY_MACHINES set the first seed and the number of machines. */
#include "device/identity.h"
#include "test.h"

#include <gpuhal/device.h>

enum { INTERFACES = 10, MACHINES = 4000, ORDERS = 3 };

typedef struct plain_interface {
    const char *backend;
    uint32_t index;
    uint64_t vendor;
    const char *driver, *values[GPUHAL_IDENTITY_HOST],
        *partition; /* in the form that docs/identity.md specifies; NULL if missing */
    bool host;
    gpuhal_facts facts;
} plain_interface;

static plain_interface interfaces[INTERFACES];
static uint32_t count, seed, state;

static uint32_t roll(uint32_t sides)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 10) % sides;
}

/* ---- making machines up */

static const char *keep_text(plain_interface *iface, gpuhal_key key, const char *text)
{
    if (text) {
        gpuhal_facts_set_text(&iface->facts, key, text);
    }
    return text;
}

static void make_plain_interface(plain_interface *iface)
{
    static const char *const backends[] = {"cuda", "vulkan", "opencl"}, *const drivers[] = {NULL, "1", "2"};
    static const uint64_t vendors[] = {0, 0x10de, 0x1002, 0x8086, 0x8086, 0x8086, 0x10005};
    static const char *const slots[] = {NULL,           NULL,           NULL,          "0000:01:00.0",
                                        "0000:02:00.0", "0000:01:00.1", "0000:00:00.0"};
    static const char *const nodes[] = {NULL, NULL, NULL, "226:128", "226:129"};
    static const char *const uuids[] = {NULL, NULL, "11111111-0000-0000-0000-000000000001",
                                        "22222222-0000-0000-0000-000000000002", "00000000-0000-0000-0000-000000000000"};
    static const char *const luids[] = {NULL, NULL, NULL, "00000000000000a1", "00000000000000a2"};
    static const char *const partitions[] = {NULL, NULL, NULL, NULL, NULL, NULL, "a", "b"};
    *iface = (plain_interface){.backend = backends[roll(3)], .vendor = vendors[roll(7)]};
    for (uint32_t i = 0; &interfaces[i] != iface; i++) {
        iface->index += strcmp(interfaces[i].backend, iface->backend) == 0;
    }
    iface->host = roll(12) == 0;
    bool by_type = iface->host && roll(2);
    gpuhal_facts_set_u64(&iface->facts, GPUHAL_FACT_TYPE, by_type ? GPUHAL_DEVICE_CPU : GPUHAL_DEVICE_GPU);
    gpuhal_facts_set_u64(&iface->facts, GPUHAL_FACT_SOFTWARE, iface->host && !by_type);
    if (iface->vendor) {
        gpuhal_facts_set_u64(&iface->facts, GPUHAL_FACT_VENDOR_ID, iface->vendor);
    }
    iface->driver = keep_text(iface, GPUHAL_FACT_DRIVER_VERSION, drivers[roll(3)]);
    iface->partition = keep_text(iface, GPUHAL_FACT_PARTITION, partitions[roll(8)]);
    const char *pci = keep_text(iface, GPUHAL_FACT_PCI_ADDRESS, slots[roll(7)]);
    const char *uuid = keep_text(iface, GPUHAL_FACT_UUID, uuids[roll(5)]);
    iface->values[GPUHAL_IDENTITY_DRM] = keep_text(iface, GPUHAL_FACT_DRM_RENDER_NODE, nodes[roll(5)]);
    iface->values[GPUHAL_IDENTITY_LUID] = keep_text(iface, GPUHAL_FACT_LUID, luids[roll(5)]);
    iface->values[GPUHAL_IDENTITY_UUID] = uuid && *uuid != '0' ? uuid : NULL;
    iface->values[GPUHAL_IDENTITY_PCI] = pci && strcmp(pci, "0000:00:00.0") != 0 ? pci : NULL;
    bool function = pci && pci[11] == '1' && (iface->vendor == 0x1002 || iface->vendor == 0x10de);
    iface->values[GPUHAL_IDENTITY_PCI] = function ? slots[3] : iface->values[GPUHAL_IDENTITY_PCI];
    iface->partition = function && iface->vendor == 0x1002 && !iface->partition ? "1" : iface->partition;
    if (iface->host) {
        memset(iface->values, 0, sizeof iface->values);
        iface->partition = NULL;
    }
}

static bool same_driver(const plain_interface *a, const plain_interface *b)
{
    return strcmp(a->backend, b->backend) == 0 && !(a->driver && b->driver && strcmp(a->driver, b->driver) != 0);
}

static bool same_text(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

static void make_machine(uint32_t number)
{
    seed = state = number;
    count = 2 + roll(INTERFACES - 1);
    for (uint32_t i = 0; i < count; i++) {
        make_plain_interface(&interfaces[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < count && !interfaces[i].partition && interfaces[i].vendor == 0x1002; k++) {
            bool divided = same_text(interfaces[k].partition, "1") && same_driver(&interfaces[i], &interfaces[k]);
            if (divided &&
                same_text(interfaces[i].values[GPUHAL_IDENTITY_PCI], interfaces[k].values[GPUHAL_IDENTITY_PCI])) {
                interfaces[i].partition = "0";
            }
        }
    }
}

static void forget_machine(void)
{
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_facts_finish(&interfaces[i].facts);
    }
}

/* ---- the rule in plain words */

static uint32_t labels[INTERFACES];

static bool states_any(uint32_t label, gpuhal_identity_level level, const char *other_than)
{
    for (uint32_t i = 0; i < count; i++) {
        const char *value = interfaces[i].values[level];
        if (labels[i] == label && value && (!other_than || strcmp(value, other_than) == 0)) {
            return true;
        }
    }
    return false;
}

/* Returns whether both devices have addresses (or render nodes, depending on `level`), and none in common. */
static bool two_places(uint32_t a, uint32_t b, gpuhal_identity_level level)
{
    bool common = false;
    for (uint32_t i = 0; i < count; i++) {
        common = common ||
                 (labels[i] == a && interfaces[i].values[level] && states_any(b, level, interfaces[i].values[level]));
    }
    return states_any(a, level, NULL) && states_any(b, level, NULL) && !common;
}

static bool one_driver_lists_both(uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < count; k++) {
            bool partitions = interfaces[i].partition && interfaces[k].partition &&
                              strcmp(interfaces[i].partition, interfaces[k].partition) != 0;
            if (labels[i] == a && labels[k] == b && same_driver(&interfaces[i], &interfaces[k]) && !partitions) {
                return true;
            }
        }
    }
    return false;
}

static bool are_two(uint32_t a, uint32_t b, gpuhal_identity_level level)
{
    return a != b &&
           ((level > GPUHAL_IDENTITY_PCI && two_places(a, b, GPUHAL_IDENTITY_PCI)) ||
            (level > GPUHAL_IDENTITY_DRM && (two_places(a, b, GPUHAL_IDENTITY_DRM) || one_driver_lists_both(a, b))));
}

/* Joins all interfaces of the group, or none of them. */
static void join_group(const bool group[INTERFACES], gpuhal_identity_level level)
{
    uint32_t first = INTERFACES;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < i && group[i]; k++) {
            if (group[k] && are_two(labels[i], labels[k], level)) {
                return;
            }
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        first = group[i] && first == INTERFACES ? i : first;
        uint32_t label = labels[i];
        for (uint32_t k = 0; k < count && group[i]; k++) {
            labels[k] = labels[k] == label ? labels[first] : labels[k];
        }
    }
}

/* Returns the vendor. If the vendor is a driver's author, returns the manufacturer that other interfaces with the same
 * UUID report, if they report exactly one. */
static uint64_t maker_of(const plain_interface *iface)
{
    uint64_t maker = iface->vendor;
    for (uint32_t i = 0; i < count && iface->vendor >= 0x10000; i++) {
        bool names = same_text(interfaces[i].values[GPUHAL_IDENTITY_UUID], iface->values[GPUHAL_IDENTITY_UUID]) &&
                     interfaces[i].vendor && interfaces[i].vendor < 0x10000;
        if (names && maker < 0x10000 && maker != interfaces[i].vendor) {
            return iface->vendor;
        }
        maker = names ? interfaces[i].vendor : maker;
    }
    return maker;
}

static void join_value(const char *value, gpuhal_identity_level level)
{
    static const uint64_t makers[] = {0x1002, 0x10de, 0x8086, 0x10005};
    for (size_t m = 0; m < (level == GPUHAL_IDENTITY_UUID ? sizeof makers / sizeof *makers : 1); m++) {
        bool group[INTERFACES];
        for (uint32_t i = 0; i < count; i++) {
            bool counts = level != GPUHAL_IDENTITY_UUID || maker_of(&interfaces[i]) == makers[m];
            group[i] = counts && same_text(interfaces[i].values[level], value);
        }
        join_group(group, level);
    }
}

static void join_plainly(void)
{
    bool hosts[INTERFACES];
    for (uint32_t i = 0; i < count; i++) {
        labels[i] = i;
        hosts[i] = interfaces[i].host;
    }
    join_group(hosts, GPUHAL_IDENTITY_PCI);
    static const char *const values[] = {"0000:01:00.0",
                                         "0000:01:00.1",
                                         "0000:02:00.0",
                                         "226:128",
                                         "226:129",
                                         "11111111-0000-0000-0000-000000000001",
                                         "22222222-0000-0000-0000-000000000002",
                                         "00000000000000a1",
                                         "00000000000000a2"};
    for (gpuhal_identity_level level = GPUHAL_IDENTITY_PCI; level < GPUHAL_IDENTITY_HOST; level++) {
        for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
            join_value(values[v], level);
        }
    }
}

/* ---- the library's answer */

/* Rotates the interfaces by `turn` places. Reverses them in every second order. */
static uint32_t place_of(uint32_t iface, uint32_t turn)
{
    uint32_t place = (iface + turn) % count;
    return turn % 2 ? count - 1 - place : place;
}

static gpuhal_identity find(uint32_t turn)
{
    gpuhal_identity identity = {.interfaces = calloc(count, sizeof *identity.interfaces), .count = count};
    assert_non_null(identity.interfaces);
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_interface *iface = &identity.interfaces[place_of(i, turn)];
        iface->backend = interfaces[i].backend;
        iface->index = interfaces[i].index;
        iface->facts = &interfaces[i].facts;
    }
    assert_int_equal(gpuhal_identity_find(&identity), GPUHAL_OK);
    return identity;
}

static void check(bool holds, const char *promise, const char *a, const char *b)
{
    for (uint32_t i = 0; !holds && i < count; i++) {
        const plain_interface *iface = &interfaces[i];
        print_message("%s:%u vendor %#x, driver %s, part %s%s\n", iface->backend, iface->index, (unsigned)iface->vendor,
                      iface->driver ? iface->driver : "-", iface->partition ? iface->partition : "-",
                      iface->host ? ", on the processor" : "");
        for (gpuhal_identity_level level = GPUHAL_IDENTITY_PCI; level < GPUHAL_IDENTITY_HOST; level++) {
            print_message("    %s\n", iface->values[level] ? iface->values[level] : "-");
        }
    }
    if (!holds) {
        fail_msg("seed %u: %s: %s and %s", seed, promise, a, b);
    }
}

/* Compares, in each order of the interfaces, the pairs that share a physical device and the pairs that share a
 * partition. */
static void check_relations(void)
{
    bool same_partition[INTERFACES][INTERFACES];
    join_plainly();
    for (uint32_t turn = 0; turn < ORDERS; turn++) {
        gpuhal_identity identity = find(turn);
        for (uint32_t i = 0; i < count; i++) {
            for (uint32_t k = 0; k < i; k++) {
                const gpuhal_interface *a = &identity.interfaces[place_of(i, turn)],
                                       *b = &identity.interfaces[place_of(k, turn)];
                bool one = a->physical == b->physical;
                check(one == (labels[i] == labels[k]), one ? "not one by the rule" : "one by the rule", a->id, b->id);
                same_partition[i][k] = turn == 0 ? a->partition == b->partition : same_partition[i][k];
                check(same_partition[i][k] == (a->partition == b->partition), "parts depend on the order", a->id,
                      b->id);
                check(one || a->partition != b->partition, "a part of two things", a->id, b->id);
                check(!(a->partition == b->partition && interfaces[i].partition && interfaces[k].partition &&
                        strcmp(interfaces[i].partition, interfaces[k].partition) != 0),
                      "two parts taken for one", a->id, b->id);
            }
        }
        gpuhal_identity_finish(&identity);
    }
}

static uint32_t interface_named(const gpuhal_identity *identity, const char *id)
{
    uint32_t iface = 0;
    while (iface < count && strcmp(identity->interfaces[iface].id, id) != 0) {
        iface++;
    }
    assert_in_range(iface, 0, count - 1);
    return iface;
}

static gpuhal_identity_level level_named(const char *matched_by)
{
    static const char *const names[] = {"pci_address", "drm_render_node", "uuid", "luid", "host_processor"};
    gpuhal_identity_level level = GPUHAL_IDENTITY_PCI;
    while (strcmp(names[level], matched_by) != 0) {
        level++;
    }
    return level;
}

static void relabel(uint32_t *sets, uint32_t a, uint32_t b)
{
    uint32_t from = sets[a], to = sets[b];
    for (uint32_t i = 0; i < count; i++) {
        sets[i] = sets[i] == from ? to : sets[i];
    }
}

/* If visible devices stay separate despite equal values, items of evidence must connect them, directly or through other
 * devices. Evidence that devices are distinct must not name a hidden device. */
static void check_apart(const gpuhal_identity *identity, const bool *visible,
                        const gpuhal_identity_evidence_list *evidence, gpuhal_identity_level level)
{
    uint32_t sets[INTERFACES];
    for (uint32_t i = 0; i < count; i++) {
        sets[i] = identity->interfaces[i].physical;
    }
    for (uint32_t e = 0; e < evidence->count; e++) {
        const gpuhal_evidence *item = &evidence->list[e].evidence;
        uint32_t a = interface_named(identity, item->device), b = interface_named(identity, item->other);
        if (!item->same && level_named(item->matched_by) == level) {
            check(visible[a] && visible[b], "a hidden device is reported as distinct", item->device, item->other);
            check(identity->interfaces[a].physical != identity->interfaces[b].physical, "reported as distinct, and one",
                  item->device, item->other);
            relabel(sets, a, b);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            const gpuhal_interface *a = &identity->interfaces[i], *b = &identity->interfaces[k];
            bool alike = visible[i] && visible[k] && same_text(a->values[level], b->values[level]);
            check(!alike || sets[i] == sets[k], "no evidence for why they are distinct", a->id, b->id);
        }
    }
}

static void check_evidence(void)
{
    gpuhal_identity identity = find(0);
    gpuhal_identity_evidence_list evidence = {0};
    bool visible[INTERFACES];
    uint32_t sets[INTERFACES];
    for (uint32_t i = 0; i < count; i++) {
        visible[i] = roll(4) != 0;
        sets[i] = i;
    }
    assert_int_equal(gpuhal_identity_explain(&identity, visible, &evidence), GPUHAL_OK);
    for (uint32_t e = 0; e < evidence.count; e++) {
        const gpuhal_evidence *item = &evidence.list[e].evidence;
        uint32_t a = interface_named(&identity, item->device), b = interface_named(&identity, item->other);
        gpuhal_identity_level level = level_named(item->matched_by);
        bool host = level == GPUHAL_IDENTITY_HOST && identity.interfaces[a].host && identity.interfaces[b].host;
        check(host || same_text(identity.interfaces[a].values[level], identity.interfaces[b].values[level]),
              "evidence of what is not so", item->device, item->other);
        check(strstr(item->sentence, item->device) && strstr(item->sentence, item->other), "a sentence about others",
              item->device, item->other);
        if (item->same) {
            check(sets[a] != sets[b], "reported twice", item->device, item->other);
            relabel(sets, a, b);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < i; k++) {
            bool one = identity.interfaces[i].physical == identity.interfaces[k].physical;
            check(!(one && visible[i] && visible[k]) || sets[i] == sets[k], "no evidence for why they are one",
                  identity.interfaces[i].id, identity.interfaces[k].id);
        }
    }
    for (gpuhal_identity_level level = GPUHAL_IDENTITY_PCI; level < GPUHAL_IDENTITY_HOST; level++) {
        check_apart(&identity, visible, &evidence, level);
    }
    gpuhal_identity_evidence_finish(&evidence);
    gpuhal_identity_finish(&identity);
}

/* Each refusal must name two interfaces that contradict each other. */
static void check_refusals(void)
{
    gpuhal_identity identity = find(0);
    for (uint32_t r = 0; r < identity.refusal_count; r++) {
        const gpuhal_refusal *refusal = &identity.refusals[r];
        const gpuhal_interface *a = &identity.interfaces[refusal->witness[0]],
                               *b = &identity.interfaces[refusal->witness[1]];
        if (refusal->doubt <= GPUHAL_DOUBT_DRM) {
            gpuhal_identity_level level =
                refusal->doubt == GPUHAL_DOUBT_PCI ? GPUHAL_IDENTITY_PCI : GPUHAL_IDENTITY_DRM;
            check(!same_text(a->values[level], b->values[level]), "reported to be in two places", a->id, b->id);
        }
        check(refusal->doubt != GPUHAL_DOUBT_ONE_DRIVER || gpuhal_interface_same_driver(a, b),
              "reported to be of one driver", a->id, b->id);
    }
    gpuhal_identity_finish(&identity);
}

static void for_each_machine(void (*look)(void))
{
    const char *from = getenv("IDENTITY_SEED"), *many = getenv("IDENTITY_MACHINES");
    uint32_t first = from ? (uint32_t)strtoul(from, NULL, 10) : 1;
    uint32_t machines = many ? (uint32_t)strtoul(many, NULL, 10) : MACHINES;
    for (uint32_t number = first; number < first + machines; number++) {
        make_machine(number);
        look();
        forget_machine();
    }
}

TEST(the_identity_of_devices_follows_the_plain_rule_in_every_order)
{
    for_each_machine(check_relations);
}

TEST(evidence_explains_why_devices_are_the_same_or_distinct_with_some_hidden)
{
    for_each_machine(check_evidence);
}

TEST(a_doubt_names_two_devices_that_do_contradict_each_other)
{
    for_each_machine(check_refusals);
}

#include "test_main.h"
