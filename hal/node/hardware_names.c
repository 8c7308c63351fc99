/* node/hardware_names.c: names hardware from the system's list of PCI ids, if installed, and from a short table.
 *
 * The list is read in chunks of constant size, and only for hardware without a name. Malformed lines are ignored.
 */
#include "node/hardware.h"

#include "device/for_node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const lists[] = {"/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"};
/* Short names. The PCI id list contains the full company names. */
static const struct {
    uint32_t vendor;
    char name[16];
} vendors[] = {
    {GPUHAL_VENDOR_NVIDIA, "NVIDIA"},
    {GPUHAL_VENDOR_AMD, "AMD"},
    {GPUHAL_VENDOR_INTEL, "Intel"},
    {0x1a03, "ASPEED"},
    {0x102b, "Matrox"},
    {0x1414, "Microsoft"},
    {0x15ad, "VMware"},
    {0x1af4, "virtio"},
    {0x1b36, "Red Hat"},
    {0x13b5, "Arm"},
    {0x5143, "Qualcomm"},
    {0x14e4, "Broadcom"},
    {0x1010, "Imagination"},
    {0x1ed5, "Moore Threads"},
    {0x1d0f, "Amazon"},
    {0x80ee, "VirtualBox"},
    {0x1013, "Cirrus Logic"},
    {0x1234, "Bochs"},
};
/* GPUs on a system on a chip have no PCI id, so they are named after their kernel driver. */
static const struct {
    char driver[12], vendor[12], name[16];
} chips[] = {
    {"msm", "Qualcomm", "Adreno"},
    {"panfrost", "Arm", "Mali"},
    {"panthor", "Arm", "Mali"},
    {"lima", "Arm", "Mali"},
    {"mali", "Arm", "Mali"},
    {"v3d", "Broadcom", "VideoCore"},
    {"vc4", "Broadcom", "VideoCore"},
    {"etnaviv", "Vivante", "GC"},
    {"nouveau", "NVIDIA", "Tegra"},
    {"tegra", "NVIDIA", "Tegra"},
    {"nvgpu", "NVIDIA", "Tegra"},
    {"powervr", "Imagination", "PowerVR"},
    {"pvrsrvkm", "Imagination", "PowerVR"},
    {"asahi", "Apple", "Apple"},
    {"dxgkrnl", "Microsoft", "GPU of Windows"},
};
/* PCI device id of WSL's paravirtual adapter, which may represent any Windows GPU. */
#define BASIC_RENDER 0x008eu

static const char *vendor_of(uint32_t vendor)
{
    for (size_t i = 0; i < sizeof vendors / sizeof *vendors; i++) {
        if (vendors[i].vendor == vendor) {
            return vendors[i].name;
        }
    }
    return NULL;
}

/* ---- the list of PCI ids
 *
 * The list is sorted by vendor number ("Please keep sorted" in its header), and each vendor precedes its devices. A
 * vendor is found by bisection, because reading all 1.4 MB would take longer than the rest of a survey. */

enum { PIECE = 16 << 10 };

typedef struct pci_ids {
    intptr_t file;
    uint64_t bytes, next; /* file size; file offset of the next line */
    uint64_t begin;       /* file offset of `piece` */
    size_t held;
    char piece[PIECE];
} pci_ids;

/* Returns the next line that begins before `end`, without its newline, or NULL after the last line. Lines longer than a
 * chunk are dropped. */
static const char *next_line(pci_ids *at, uint64_t end, size_t *out_length)
{
    bool is_dropped = false;
    while (at->next < end && at->next < at->bytes) {
        const bool is_held = at->next >= at->begin && at->next < at->begin + at->held;
        const char *line = at->piece + (is_held ? at->next - at->begin : 0);
        const size_t bytes = is_held ? at->held - (size_t)(line - at->piece) : 0;
        const char *stop = is_held ? memchr(line, '\n', bytes) : NULL;
        const bool is_last = is_held && at->next + bytes == at->bytes;
        if (stop || is_last || bytes == PIECE) {
            const bool is_whole = !is_dropped && (stop || is_last);
            *out_length = stop ? (size_t)(stop - line) : bytes;
            at->next += *out_length + (stop != NULL);
            if (is_whole) {
                return line;
            }
            is_dropped = !stop && !is_last;
            continue;
        }
        uint64_t got = 0;
        const uint64_t left = at->bytes - at->next;
        if (gpuhal_os_file_read_piece(at->file, at->next, at->piece, left < PIECE ? left : PIECE, &got) || got == 0) {
            break;
        }
        at->begin = at->next;
        at->held = (size_t)got;
        at->bytes = got < PIECE && got < left ? at->next + got : at->bytes; /* the file was truncated */
    }
    return NULL;
}

/* Parses "10de  NVIDIA Corporation": four lower-case hexadecimal digits, blanks, and the name. */
static const char *entry_text(const char *line, size_t length, uint32_t *out_number)
{
    uint32_t number = 0;
    for (size_t i = 0; i < 4 && length > 6; i++) {
        const bool is_digit = line[i] >= '0' && line[i] <= '9';
        if (!is_digit && (line[i] < 'a' || line[i] > 'f')) {
            return NULL;
        }
        number = number << 4 | (uint32_t)(is_digit ? line[i] - '0' : line[i] - 'a' + 10);
    }
    *out_number = number;
    size_t begin = 4;
    while (begin < length && line[begin] == ' ') {
        begin++;
    }
    return length > 6 && begin > 4 ? line + begin : NULL;
}

/* If the list contains the vendor, the vendor's line is the next line. */
static bool find_vendor(pci_ids *at, uint32_t vendor)
{
    uint64_t low = 0, high = at->bytes; /* the vendor's line begins at or after `low` and before `high` */
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        const char *line = NULL, *text = NULL;
        uint32_t number = 0;
        uint64_t begin = 0;
        size_t length = 0;
        at->next = middle > 0 ? middle - 1 : 0;
        if (middle > 0 && !next_line(at, high, &length)) {
            at->next = high; /* no readable line begins between `middle` and `high` */
        }
        do {
            begin = at->next;
            line = next_line(at, high, &length);
            text = line ? entry_text(line, length, &number) : NULL;
        } while (line && !text);
        if (text && number == vendor) {
            at->next = begin;
            return true;
        }
        low = text && number < vendor ? at->next : low;
        high = text && number < vendor ? high : middle;
    }
    return false;
}

/* In "GA107M [GeForce RTX 3050 Mobile]", the common name is in brackets. */
static void take_device(gpuhal_hardware *one, const char *text, size_t length)
{
    const char *open = memchr(text, '[', length);
    const char *close = open ? memchr(open, ']', length - (size_t)(open - text)) : NULL;
    const char *name = close ? open + 1 : text;
    const size_t bytes = close ? (size_t)(close - name) : length, vendor = strlen(one->vendor);
    const bool repeats = vendor == 0 || (bytes >= vendor && memcmp(name, one->vendor, vendor) == 0);
    gpuhal_hardware_text(one->name, sizeof one->name, "%s%s%.*s", repeats ? "" : one->vendor, repeats ? "" : " ",
                         (int)(bytes < sizeof one->name ? bytes : sizeof one->name), name);
}

/* Names the hardware that the entry describes. Returns how much hardware of the vendor still has no name. */
static uint32_t take_entry(gpuhal_hardware_survey *survey, uint32_t vendor, bool is_device, uint32_t number,
                           const char *text, size_t length)
{
    uint32_t nameless = 0;
    for (uint32_t i = 0; i < survey->count; i++) {
        gpuhal_hardware *one = &survey->list[i];
        if (one->info.vendor_id != vendor) {
            continue;
        }
        if (!is_device && !one->vendor[0]) {
            gpuhal_hardware_text(one->vendor, sizeof one->vendor, "%.*s",
                                 (int)(length < sizeof one->vendor ? length : sizeof one->vendor), text);
        } else if (is_device && number == one->info.device_id && !one->name[0]) {
            take_device(one, text, length);
        }
        nameless += !one->name[0];
    }
    return nameless;
}

/* Reads the vendor's lines up to the next vendor, or until all of the vendor's hardware has a name. */
static void take_vendor(gpuhal_hardware_survey *survey, pci_ids *at, uint32_t vendor)
{
    const char *line;
    size_t length;
    bool is_its = false;
    uint32_t nameless = 1;
    while (nameless > 0 && (line = next_line(at, at->bytes, &length)) != NULL) {
        const bool is_device = length > 0 && line[0] == '\t';
        uint32_t number = 0;
        if (length == 0 || line[0] == '#' || (is_device && (length == 1 || line[1] == '\t'))) {
            continue;
        }
        const char *text = entry_text(line + is_device, length - is_device, &number);
        if (!is_device && text && number != vendor) {
            break;
        }
        /* A class ("C 03  Display controller") has no vendor number, and the entries below it are not the vendor's. */
        is_its = is_device ? is_its : text != NULL;
        if (text && is_its) {
            nameless = take_entry(survey, vendor, is_device, number, text, length - (size_t)(text - line));
        }
    }
}

/* Returns whether entry `i` is its vendor's first entry without a name, so that each vendor is searched for once, or
 * twice if the list lacks some of its hardware. */
static bool is_looked_for(const gpuhal_hardware_survey *survey, uint32_t i)
{
    const gpuhal_hardware *one = &survey->list[i];
    bool is_wanted = one->info.vendor_id && !one->name[0];
    for (uint32_t j = 0; j < i && is_wanted; j++) {
        is_wanted = survey->list[j].name[0] || survey->list[j].info.vendor_id != one->info.vendor_id;
    }
    return is_wanted;
}

/* Returns whether the file could be opened. */
static bool search(gpuhal_hardware_survey *survey, const char *path)
{
    char whole[GPUHAL_SYSTEM_ROOT_BYTES + 64];
    gpuhal_file_info info;
    snprintf(whole, sizeof whole, "%s%s", survey->root, path);
    if (gpuhal_os_file_info(whole, &info) || !info.regular) {
        return false;
    }
    pci_ids *list = malloc(sizeof *list);
    if (!list) {
        survey->error = survey->error ? survey->error : ENOMEM;
        return false;
    }
    list->bytes = info.bytes;
    list->begin = list->held = 0;
    const bool is_there = gpuhal_os_file_open(whole, false, &list->file) == 0;
    for (uint32_t i = 0; is_there && i < survey->count; i++) {
        const uint32_t vendor = survey->list[i].info.vendor_id;
        if (is_looked_for(survey, i) && find_vendor(list, vendor)) {
            take_vendor(survey, list, vendor);
        }
    }
    if (is_there) {
        gpuhal_os_descriptor_close(list->file);
    }
    free(list);
    return is_there;
}

/* ---- without a list */

static void name_chip(gpuhal_hardware *one)
{
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++) {
        if (strncmp(one->kernel_driver, chips[i].driver, strlen(chips[i].driver)) == 0) {
            gpuhal_hardware_text(one->vendor, sizeof one->vendor, "%s", chips[i].vendor);
            gpuhal_hardware_text(one->name, sizeof one->name, "%s %s", chips[i].vendor, chips[i].name);
            return;
        }
    }
    gpuhal_hardware_text(one->name, sizeof one->name, "GPU (%s)",
                         one->kernel_driver[0] ? one->kernel_driver : "no driver");
}

void gpuhal_hardware_name_vendor(gpuhal_hardware *one)
{
    const char *vendor = vendor_of(one->info.vendor_id);
    if (vendor) {
        gpuhal_hardware_text(one->vendor, sizeof one->vendor, "%s", vendor);
    } else {
        gpuhal_hardware_text(one->vendor, sizeof one->vendor, "vendor %04x", one->info.vendor_id & 0xffff);
    }
}

static void name_by_number(gpuhal_hardware *one)
{
    if (!one->vendor[0]) {
        gpuhal_hardware_name_vendor(one);
    }
    gpuhal_hardware_text(one->name, sizeof one->name, "%.80s device %04x", one->vendor, one->info.device_id & 0xffff);
}

void gpuhal_hardware_name(gpuhal_hardware_survey *survey)
{
    bool wanted = false;
    for (uint32_t i = 0; i < survey->count; i++) {
        gpuhal_hardware *one = &survey->list[i];
        const char *vendor = vendor_of(one->info.vendor_id);
        gpuhal_hardware_text(one->vendor, sizeof one->vendor, "%s", vendor ? vendor : "");
        if (strcmp(one->kernel_driver, "dxgkrnl") == 0 && one->info.device_id == BASIC_RENDER) {
            gpuhal_hardware_text(one->name, sizeof one->name, "GPU of Windows");
        }
        wanted = wanted || (one->info.vendor_id && !one->name[0]);
    }
    for (size_t i = 0; wanted && i < sizeof lists / sizeof *lists; i++) {
        wanted = !search(survey, lists[i]);
    }
    for (uint32_t i = 0; i < survey->count; i++) {
        if (!survey->list[i].name[0]) {
            (survey->list[i].address[0] ? name_by_number : name_chip)(&survey->list[i]);
        }
    }
}
