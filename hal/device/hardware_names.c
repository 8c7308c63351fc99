/* device/hardware_names.c: what hardware is called: the list of PCI ids where the system has it, and a short table.
 *
 * The list is searched for all hardware at once, in pieces of constant size, and only for what has no name yet. A line
 * that is not as it should be names nothing.
 */
#include "device/hardware.h"

#include "os/os.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const lists[] = {"/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"};
/* As people say it; the list has the companies' full names. */
static const struct {
    uint32_t vendor;
    const char *name;
} vendors[] = {
    {GPUHAL_VENDOR_NVIDIA, "NVIDIA"}, {GPUHAL_VENDOR_AMD, "AMD"}, {GPUHAL_VENDOR_INTEL, "Intel"},
    {0x1a03, "ASPEED"},               {0x102b, "Matrox"},         {0x1414, "Microsoft"},
    {0x15ad, "VMware"},               {0x1af4, "virtio"},         {0x1b36, "Red Hat"},
    {0x13b5, "Arm"},                  {0x5143, "Qualcomm"},       {0x14e4, "Broadcom"},
    {0x1010, "Imagination"},          {0x1ed5, "Moore Threads"},  {0x1d0f, "Amazon"},
    {0x80ee, "VirtualBox"},           {0x1013, "Cirrus Logic"},   {0x1234, "Bochs"},
};
/* GPUs on a chip have no number; their kernel driver says what they are. */
static const struct {
    const char *driver, *vendor, *name;
} chips[] = {
    {"msm", "Qualcomm", "Adreno"},          {"panfrost", "Arm", "Mali"},       {"panthor", "Arm", "Mali"},
    {"lima", "Arm", "Mali"},                {"mali", "Arm", "Mali"},           {"v3d", "Broadcom", "VideoCore"},
    {"vc4", "Broadcom", "VideoCore"},       {"etnaviv", "Vivante", "GC"},      {"nouveau", "NVIDIA", "Tegra"},
    {"tegra", "NVIDIA", "Tegra"},           {"nvgpu", "NVIDIA", "Tegra"},      {"powervr", "Imagination", "PowerVR"},
    {"pvrsrvkm", "Imagination", "PowerVR"}, {"asahi", "Apple", "Apple"},
    {"dxgkrnl", "Microsoft", "GPU of Windows"},
};
/* A paravirtual adapter of WSL, behind which is any GPU of Windows. */
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

/* ---- the list of PCI ids */

/* Reads "10de  NVIDIA Corporation" from `line`, of which `digits` are four of base 16, in small letters. */
static const char *entry_text(const char *line, size_t length, uint32_t *out_number)
{
    char digits[5] = "", *end = digits;
    memcpy(digits, line, length < 4 ? length : 4);
    *out_number = (uint32_t)strtoul(digits, &end, 16);
    return length > 6 && end == digits + 4 && digits[strspn(digits, "0123456789abcdef")] == 0 && line[4] == ' '
               ? line + 4 + strspn(line + 4, " ")
               : NULL;
}

/* "GA107M [GeForce RTX 3050 Mobile]" has the name that people know in brackets. */
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

/* One line, which ends with a 0 instead of its line end. */
static void take_line(gpuhal_hardware_view *view, const char *line, size_t length, uint32_t *vendor)
{
    const bool is_device = line[0] == '\t' && line[1] != '\t';
    uint32_t number = 0;
    const char *text = line[0] == '#' || (line[0] == '\t' && !is_device)
                           ? NULL
                           : entry_text(line + is_device, length - is_device, &number);
    if (!is_device && line[0] && line[0] != '#' && line[0] != '\t') {
        *vendor = text ? number : UINT32_MAX; /* "C 03  Display controller" begins the classes */
    }
    for (uint32_t i = 0; text && i < view->count; i++) {
        gpuhal_hardware *one = &view->list[i];
        const size_t rest = length - (size_t)(text - line);
        if (one->info.vendor_id != *vendor || !*vendor) {
            continue;
        }
        if (!is_device && !one->vendor[0]) {
            gpuhal_hardware_text(one->vendor, sizeof one->vendor, "%.*s",
                                 (int)(rest < sizeof one->vendor ? rest : sizeof one->vendor), text);
        } else if (is_device && number == one->info.device_id && !one->name[0]) {
            take_device(one, text, rest);
        }
    }
}

/* Takes the whole lines of a piece; returns how many bytes they are. A line that fills the piece is dropped. */
static size_t take_lines(gpuhal_hardware_view *view, char *piece, size_t bytes, bool last, uint32_t *vendor)
{
    size_t done = 0;
    while (done < bytes) {
        char *end = memchr(piece + done, '\n', bytes - done);
        if (!end && !last) {
            break;
        }
        const size_t length = end ? (size_t)(end - piece) - done : bytes - done;
        piece[done + length] = 0;
        take_line(view, piece + done, length, vendor);
        done += length + (end != NULL);
    }
    return done > 0 || last ? done : bytes;
}

/* Returns whether there is such a list. */
static bool search(gpuhal_hardware_view *view, const char *path)
{
    enum { PIECE = 64 << 10 };
    char whole[GPUHAL_SYSTEM_ROOT_BYTES + 64];
    char *piece = malloc(PIECE + 1);
    uint32_t vendor = UINT32_MAX;
    uint64_t offset = 0;
    size_t got = 0, kept = 0;
    snprintf(whole, sizeof whole, "%s%s", view->root, path);
    if (!piece) {
        view->error = view->error ? view->error : ENOMEM;
        return false;
    }
    bool there = false;
    do {
        const int error = gpuhal_os_file_read_at(whole, offset, piece + kept, PIECE - kept, &got);
        if (error) {
            break;
        }
        there = true;
        offset += got;
        const bool last = got < PIECE - kept;
        const size_t bytes = kept + got, done = take_lines(view, piece, bytes, last, &vendor);
        kept = bytes - done;
        memmove(piece, piece + done, kept);
        got = last ? 0 : got;
    } while (got > 0);
    free(piece);
    return there;
}

/* ---- without it */

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

static void name_by_number(gpuhal_hardware *one)
{
    if (!one->vendor[0]) {
        gpuhal_hardware_text(one->vendor, sizeof one->vendor, "vendor %04x", one->info.vendor_id & 0xffff);
    }
    gpuhal_hardware_text(one->name, sizeof one->name, "%.80s device %04x", one->vendor, one->info.device_id & 0xffff);
}

void gpuhal_hardware_name(gpuhal_hardware_view *view)
{
    bool wanted = false;
    for (uint32_t i = 0; i < view->count; i++) {
        gpuhal_hardware *one = &view->list[i];
        const char *vendor = vendor_of(one->info.vendor_id);
        gpuhal_hardware_text(one->vendor, sizeof one->vendor, "%s", vendor ? vendor : "");
        if (strcmp(one->kernel_driver, "dxgkrnl") == 0 && one->info.device_id == BASIC_RENDER) {
            gpuhal_hardware_text(one->name, sizeof one->name, "GPU of Windows");
        }
        wanted = wanted || (one->info.vendor_id && !one->name[0]);
    }
    for (size_t i = 0; wanted && i < sizeof lists / sizeof *lists; i++) {
        wanted = !search(view, lists[i]);
    }
    for (uint32_t i = 0; i < view->count; i++) {
        if (!view->list[i].name[0]) {
            (view->list[i].address[0] ? name_by_number : name_chip)(&view->list[i]);
        }
    }
}
