/* gres.c: the listing as gres.conf for Slurm: a line for each GPU, of any vendor, that Slurm can assign to a job. Other
 * GPUs are listed in comments with the reason. AutoDetect is off, because it detects GPUs of only one vendor and would
 * conflict with these lines. */
#include "cores.h"
#include "formats.h"
#include "links.h"
#include "mig.h"
#include "plain.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_BYTES = 256, TYPE_BYTES = 96 };

typedef struct gres {
    const gpuhal_probe_row *row;
    char files[FILES_BYTES]; /* the comma-separated files that the job may access */
    bool several;
    char type[TYPE_BYTES];
    const char *left_out; /* the reason for omitting the GPU; NULL if it has a line */
} gres;

/* Sets the type: "NVIDIA H100 80GB HBM3" becomes "nvidia_h100_80gb_hbm3", as in the names of GPUs that Slurm detects.
 * A suffix such as " partition 3 of 8" is omitted, so all partitions of an AMD GPU have the same type. The type of a
 * MIG device includes its profile. */
static void set_type(gres *one)
{
    char space[PROBE_FIELD_BYTES];
    const char *name = gpuhal_probe_field_text(gpuhal_probe_field_named("name", 4), one->row, space);
    const char *part = strstr(name, " partition "), *end = part ? part : name + strlen(name);
    size_t length = 0;
    for (; name < end && length + 1 < TYPE_BYTES; name++) {
        const unsigned char letter = (unsigned char)*name;
        const bool kept = letter < 0x80 && (isalnum(letter) || letter == '.' || letter == '-');
        if (kept || (length && one->type[length - 1] != '_')) {
            one->type[length++] = kept ? (char)tolower(letter) : '_';
        }
    }
    while (length && one->type[length - 1] == '_') {
        length--;
    }
    one->type[length] = 0;
    if (length == 0) { /* the name has no character that Slurm accepts */
        snprintf(one->type, sizeof one->type, "gpu");
    }
}

static void set_files(gres *one)
{
    const gpuhal_hardware_info *hardware = one->row->hardware;
    const char *partition = gpuhal_probe_row_part(one->row);
    char space[PROBE_NODE_BYTES];
    const bool is_nvidia = hardware && strncmp(hardware->vendor_node, "/dev/nvidia", 11) == 0;
    if (is_nvidia && *partition) {
        one->several = gpuhal_probe_mig_files(hardware->vendor_node, gpuhal_probe_row_part_numbers(one->row),
                                              one->files, FILES_BYTES);
    } else if (is_nvidia) {
        snprintf(one->files, FILES_BYTES, "%s", hardware->vendor_node);
    } else {
        snprintf(one->files, FILES_BYTES, "%s", gpuhal_probe_render_node(one->row->entry, hardware, space));
    }
}

static bool is_gpu(const gpuhal_probe_row *row)
{
    return !row->entry || !row->entry->processor;
}

static const char shared[] = "other parts of the GPU have the same device file, and none is known to be its own";

/* Sets the values of the line, or the reason why there is no line. `done` contains the previous lines. If this GPU is a
 * partition and previous lines have the same file, these lines are omitted, too. */
static void fill(gres *one, gres *done, size_t count)
{
    one->left_out = gpuhal_probe_row_why(one->row);
    if (one->left_out) {
        return;
    }
    set_type(one);
    set_files(one);
    if (!*one->files) {
        one->left_out = *gpuhal_probe_row_part(one->row)
                            ? "the kernel does not say which of the GPU's parts it is; AutoDetect=nvml finds out"
                            : "it has no device file of its own";
    }
    for (size_t i = 0; *one->files && i < count; i++) {
        if (strcmp(done[i].files, one->files) != 0) {
            continue;
        }
        /* A job must not receive a partition as if it were the whole GPU. */
        if (*gpuhal_probe_row_part(one->row) && (!done[i].left_out || done[i].left_out == shared)) {
            one->left_out = done[i].left_out = shared;
        } else if (!done[i].left_out) {
            one->left_out = "its device file is that of a line above";
        }
    }
}

/* Returns the number of NVLink or xGMI links between two devices: 0 if traffic takes another path, 1 if the number is
 * unknown. */
static uint64_t count_links(const gpuhal_probe_machine *machine, const gres *from, const gres *to)
{
    for (uint32_t i = 0; i < machine->link_count; i++) {
        const gpuhal_probe_link *link = &machine->links[i];
        if (&machine->devices[link->from] == from->row->entry && &machine->devices[link->to] == to->row->entry) {
            const gpuhal_value *kind = &link->values[PROBE_LINK_KIND], *count = &link->values[PROBE_LINK_COUNT];
            const bool counts = !kind->missing && (kind->u64 == GPUHAL_LINK_NVLINK || kind->u64 == GPUHAL_LINK_XGMI ||
                                                   kind->u64 == GPUHAL_LINK_NVLINK_SWITCH);
            return !counts ? 0 : count->missing ? 1 : count->u64;
        }
    }
    return 0;
}

/* Returns whether both devices are partitions of one AMD GPU. A process can use several partitions of an AMD GPU, but
 * CUDA lets a process use only one MIG partition. MIG partitions have several files. */
static bool are_parts_of_one(const gres *one, const gres *other)
{
    return one->row->entry && other->row->entry && one->row->entry->physical &&
           one->row->entry->physical == other->row->entry->physical && !one->several &&
           *gpuhal_probe_row_part(one->row) && *gpuhal_probe_row_part(other->row);
}

static void print_links(const gpuhal_probe_machine *machine, const gres *list, size_t count, const gres *from,
                        uint64_t of_parts, FILE *out)
{
    const char *between = " Links=";
    for (size_t i = 0; i < count; i++) {
        if (&list[i] == from) {
            fprintf(out, "%s-1", between);
        } else if (!list[i].left_out) {
            fprintf(out, "%s%" PRIu64, between,
                    are_parts_of_one(from, &list[i]) ? of_parts : count_links(machine, from, &list[i]));
        }
        between = list[i].left_out ? between : ",";
    }
}

/* Returns the link count to print between partitions of one GPU. Slurm prefers devices with the most links between
 * them, and 0 means no connection. Partitions of one GPU share its memory, so the result is one more than the largest
 * number of links between two GPUs. Returns 0 if link counts make no difference on this node, so that no line needs
 * them. (Slurm 26.11 itself reports no links between AMD GPUs: gpu_rsmi.c sets all counts to 0.) */
static uint64_t find_links_of_parts(const gpuhal_probe_machine *machine, const gres *list, size_t count)
{
    uint64_t most = 0;
    bool has_parts = false, has_others = false;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; !list[i].left_out && k < count; k++) {
            if (list[k].left_out || k == i) {
                continue;
            }
            const bool parts = are_parts_of_one(&list[i], &list[k]);
            const uint64_t links = parts ? 0 : count_links(machine, &list[i], &list[k]);
            most = links > most ? links : most;
            has_parts = has_parts || parts;
            has_others = has_others || !parts;
        }
    }
    return most > 0 || (has_parts && has_others) ? most + 1 : 0;
}

static void print_comment(const gres *one, FILE *out)
{
    char space[PROBE_FIELD_BYTES];
    static const char *const columns[] = {"id", "pci", "name"};
    fputs("# left out:", out);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        const char *text =
            gpuhal_probe_field_text(gpuhal_probe_field_named(columns[i], strlen(columns[i])), one->row, space);
        fputs(*text ? " " : "", out);
        gpuhal_probe_put_plain(text, "", 0, out);
    }
    fputs(": ", out);
    gpuhal_probe_put_plain(one->left_out, "", 0, out);
    fputc('\n', out);
}

/* Prints the counts that slurm.conf needs for this node: "gpu:nvidia_h100:8,gpu:amd_mi300x:2". */
static void print_counts(const gres *list, size_t count, FILE *out)
{
    const char *between = "";
    fputs("# slurm.conf: GresTypes=gpu, and for this node Gres=", out);
    for (size_t i = 0; i < count; i++) {
        uint32_t before = 0, equal = 0;
        for (size_t k = 0; !list[i].left_out && k < count; k++) {
            const bool same = !list[k].left_out && strcmp(list[k].type, list[i].type) == 0;
            before += same && k < i;
            equal += same;
        }
        if (equal && !before) {
            fprintf(out, "%sgpu:%s:%" PRIu32, between, list[i].type, equal);
            between = ",";
        }
    }
    fputs(*between ? "\n" : "(no GPU)\n", out);
}

static bool print_lines(const gpuhal_probe_machine *machine, const gres *list, size_t count, FILE *out)
{
    gpuhal_probe_cores cores;
    char core_list[PROBE_CORE_TEXT_BYTES];
    const uint64_t of_parts = find_links_of_parts(machine, list, count);
    bool made = gpuhal_probe_cores_read(&cores);
    for (size_t i = 0; made && i < count; i++) {
        const gres *one = &list[i];
        if (one->left_out) {
            print_comment(one, out);
            continue;
        }
        made = gpuhal_probe_cores_of(&cores, one->row->hardware ? one->row->hardware->local_cpus : "", core_list);
        fprintf(out, "Name=gpu Type=%s %s=%s%s%s", one->type, one->several ? "MultipleFiles" : "File", one->files,
                *core_list ? " Cores=" : "", core_list);
        if (of_parts) {
            print_links(machine, list, count, one, of_parts, out);
        }
        fputc('\n', out);
    }
    gpuhal_probe_cores_finish(&cores);
    return made;
}

static const char *address_of(const gres *one)
{
    return one->row->hardware ? one->row->hardware->address : "";
}

/* Sorts by bus address, independent of the listing's order, because drivers number nodes and Slurm's detection lists
 * GPUs in bus order. Partitions with the same address keep their order. */
static void sort(gres *list, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const gres one = list[i];
        size_t at = i;
        for (; at > 0 && strcmp(address_of(&one), address_of(&list[at - 1])) < 0; at--) {
            list[at] = list[at - 1];
        }
        list[at] = one;
    }
}

bool gpuhal_probe_print_gres(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options, FILE *out)
{
    gpuhal_probe_rows rows;
    if (!gpuhal_probe_rows_make(machine, options, &rows)) {
        return false;
    }
    size_t count = 0;
    gres *list = calloc(rows.count + 1, sizeof *list);
    for (uint32_t i = 0; list && i < rows.count; i++) {
        if (is_gpu(&rows.list[i])) {
            list[count++].row = &rows.list[i];
        }
    }
    bool made = list != NULL;
    if (made) {
        sort(list, count);
    }
    for (size_t i = 0; made && i < count; i++) {
        fill(&list[i], list, i);
    }
    if (made) {
        fprintf(out, "# gres.conf by gpuhal-probe %s\n", gpuhal_version());
        print_counts(list, count, out);
        fputs("AutoDetect=off\n", out);
        made = print_lines(machine, list, count, out);
    }
    free(list);
    gpuhal_probe_rows_finish(&rows);
    return made;
}
