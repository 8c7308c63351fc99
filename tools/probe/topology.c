/* topology.c: see topology.h. Network cards are the entries with a PCI device in the kernel's classes net and
 * infiniband; a card in both classes counts once. No device is opened. */
#include "topology.h"

#include "../common/text.h"

#include <gpuhal/link.h>

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 1024, CARDS_MOST = 32, ADDRESS_BYTES = 16, NAME_BYTES = 48 };

/* ---- ids */

void gpuhal_probe_write_ids(const gpuhal_probe_machine *machine, const uint32_t *places, uint32_t count, char *to,
                            size_t bytes)
{
    *to = 0;
    for (uint32_t i = 0; i < count;) {
        const gpuhal_device *first = machine->devices[places[i]].device, *last = first;
        uint32_t run = 1;
        for (; i + run < count; run++) {
            const gpuhal_device *next = machine->devices[places[i + run]].device;
            if (strcmp(gpuhal_device_backend(next), gpuhal_device_backend(first)) != 0 ||
                gpuhal_device_index(next) != gpuhal_device_index(last) + 1) {
                break;
            }
            last = next;
        }
        if (run > 2) {
            gpuhal_tool_append(to, bytes, ", ", "%s to %s", gpuhal_device_id(first), gpuhal_device_id(last));
        }
        for (uint32_t k = 0; run <= 2 && k < run; k++) {
            gpuhal_tool_append(to, bytes, ", ", "%s", gpuhal_device_id(machine->devices[places[i + k]].device));
        }
        i += run;
    }
}

/* ---- NUMA nodes */

/* Returns the kernel's facts about the device's hardware; NULL if the kernel lists none. */
static const gpuhal_hardware_info *hardware_of(const gpuhal_probe_place *own, uint32_t place)
{
    const gpuhal_probe_machine *machine = own->machine;
    for (uint32_t i = 0; i < machine->hardware_count; i++) {
        if (machine->hardware[i].physical && machine->hardware[i].physical == machine->devices[place].physical) {
            return &machine->hardware[i];
        }
    }
    return NULL;
}

static uint32_t node_of(const gpuhal_probe_place *places, uint32_t place)
{
    uint64_t node = UINT32_MAX;
    const gpuhal_hardware_info *hardware = hardware_of(places, place);
    if (gpuhal_device_u64(places->machine->devices[place].device, GPUHAL_FACT_NUMA_NODE, &node) != GPUHAL_OK) {
        node = hardware ? hardware->numa_node : UINT32_MAX;
    }
    return (uint32_t)node;
}

bool gpuhal_probe_print_nodes(const gpuhal_probe_place *own, const gpuhal_probe_screen *screen)
{
    uint32_t *members = calloc(own->count + 1, sizeof *members);
    bool any = false;
    for (uint32_t i = 0; members && i < own->count; i++) {
        const uint32_t node = node_of(own, own->rows[i]);
        const gpuhal_hardware_info *hardware = hardware_of(own, own->rows[i]);
        const char *processors = hardware ? hardware->local_cpus : "";
        uint32_t same = 0;
        bool earlier = false;
        for (uint32_t k = 0; k < own->count; k++) {
            const bool counts = !own->machine->devices[own->rows[k]].processor;
            if (counts && node_of(own, own->rows[k]) == node) {
                earlier = earlier || k < i;
                members[same++] = own->rows[k];
            }
        }
        if (node == UINT32_MAX || earlier || own->machine->devices[own->rows[i]].processor) {
            continue;
        }
        char ids[WORDS], text[2 * WORDS];
        gpuhal_probe_write_ids(own->machine, members, same, ids, sizeof ids);
        snprintf(text, sizeof text, "NUMA node %u%s%.200s: %s", node, *processors ? ", processors " : "", processors,
                 ids);
        gpuhal_probe_screen_wrap(screen, text, 0, 4);
        any = true;
    }
    free(members);
    return any;
}

/* ---- network cards */

typedef struct network_card {
    char address[ADDRESS_BYTES], name[NAME_BYTES];
} network_card;

static bool is_address(const char *text, size_t length)
{
    static const char form[] = "xxxx:xx:xx.x";
    bool good = length == strlen(form);
    for (size_t i = 0; good && i < length; i++) {
        good = form[i] == 'x' ? strchr("0123456789abcdef", text[i]) != NULL : text[i] == form[i];
    }
    return good;
}

/* Finds the last PCI device in the link's target path. The path may be longer, because virtio devices are below a PCI
 * device. */
static bool find_address(const char *link, char address[ADDRESS_BYTES])
{
    char path[PATH_MAX];
    bool found = false;
    if (!realpath(link, path)) {
        return false;
    }
    for (const char *part = path; *part; part += strcspn(part, "/"), part += *part == '/') {
        const size_t length = strcspn(part, "/");
        if (is_address(part, length)) {
            memcpy(address, part, length);
            address[length] = 0;
            found = true;
        }
    }
    return found;
}

/* Adds a card. If the card is already in the list, appends the name. The class infiniband is read first, so its names
 * precede the names in the class net. */
static void add_card(network_card *cards, uint32_t *count, const char *address, const char *name)
{
    for (uint32_t i = 0; i < *count; i++) {
        if (strcmp(cards[i].address, address) == 0) {
            const size_t length = strlen(cards[i].name);
            snprintf(cards[i].name + length, NAME_BYTES - length, ", %.16s", name);
            return;
        }
    }
    if (*count < CARDS_MOST) {
        snprintf(cards[*count].address, ADDRESS_BYTES, "%s", address);
        snprintf(cards[*count].name, NAME_BYTES, "%.16s", name);
        ++*count;
    }
}

static int by_name(const struct dirent **one, const struct dirent **other)
{
    return strcmp((*one)->d_name, (*other)->d_name);
}

static void read_class(const char *class, network_card *cards, uint32_t *count)
{
    char folder[PATH_MAX], link[PATH_MAX], address[ADDRESS_BYTES];
    const char *root = getenv("GPUHAL_SYSTEM_ROOT");
    struct dirent **entries = NULL;
    snprintf(folder, sizeof folder, "%.1000s/sys/class/%s", root ? root : "", class);
    const int found = scandir(folder, &entries, NULL, by_name);
    for (int i = 0; i < found; i++) {
        snprintf(link, sizeof link, "%.1100s/%.255s/device", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.' && find_address(link, address)) {
            add_card(cards, count, address, entries[i]->d_name);
        }
        free(entries[i]);
    }
    free(entries);
}

static gpuhal_link_kind kind_between(const gpuhal_probe_place *own, uint32_t place, const char *card)
{
    const gpuhal_hardware_info *hardware = hardware_of(own, place);
    gpuhal_link_kind kind = 0;
    if (hardware && *hardware->address) {
        (void)gpuhal_link_between_addresses(own->machine->gpu, hardware->address, card, &kind); /* 0 if unknown */
    }
    return kind;
}

/* Prints "mlx5_0, ib0 at 0000:18:00.0: switch to cuda:0; system to cuda:1"; returns false if nothing is known. */
static bool print_card(const gpuhal_probe_place *own, const network_card *card, const char *const (*kinds)[2],
                       bool *used, const gpuhal_probe_screen *screen)
{
    char relations[WORDS] = "", ids[WORDS], text[2 * WORDS];
    uint32_t *members = calloc(own->count + 1, sizeof *members);
    for (gpuhal_link_kind kind = GPUHAL_LINK_SAME_BOARD; members && kind <= GPUHAL_LINK_SYSTEM; kind++) {
        uint32_t same = 0;
        for (uint32_t i = 0; i < own->count; i++) {
            if (kind_between(own, own->rows[i], card->address) == kind) {
                members[same++] = own->rows[i];
            }
        }
        if (same > 0) {
            gpuhal_probe_write_ids(own->machine, members, same, ids, sizeof ids);
            gpuhal_tool_append(relations, sizeof relations, "; ", "%s to %s", kinds[kind][0],
                               same == own->count && same > 1 ? "all" : ids);
            used[kind] = true;
        }
    }
    free(members);
    if (*relations) {
        text[0] = '\0';
        gpuhal_tool_append(text, sizeof text, "", "%s at %s: %s", card->name, card->address, relations);
        gpuhal_probe_screen_wrap(screen, text, 0, 4);
    }
    return *relations != 0;
}

bool gpuhal_probe_print_network_cards(const gpuhal_probe_place *own, const char *const (*kinds)[2], bool *used,
                                      const gpuhal_probe_screen *screen)
{
    network_card cards[CARDS_MOST];
    uint32_t count = 0;
    bool any = false;
    read_class("infiniband", cards, &count);
    read_class("net", cards, &count);
    for (uint32_t i = 0; i < count; i++) {
        any = print_card(own, &cards[i], kinds, used, screen) || any;
    }
    return any;
}
