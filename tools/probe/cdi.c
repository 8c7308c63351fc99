/* cdi.c: the listing as a specification for the Container Device Interface, the format that Podman, Docker and
 * Kubernetes use to give GPUs to containers. Each GPU in the file is a device named by its position among
 * these GPUs, in the order of the listing, and a device named by its UUID if that is known. One more device stands for
 * all these GPUs.
 *
 * The kind is specific to this program. The vendors' kinds, nvidia.com/gpu and amd.com/gpu, belong to their tools, and
 * a runtime rejects a device that two files define. The project owns no domain, so the vendor part is the plain name
 * "gpuhal", which is not a domain name.
 *
 * The stated version is the lowest version that has all features of the file, as the specification requires. A runtime
 * rejects files whose version is later than its own. The file is also valid for version 1.1. */
#include "cdi_libraries.h"
#include "fields.h"
#include "formats.h"
#include "mig.h"
#include "screen.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KIND    "gpuhal/gpu"
#define VERSION "0.5.0" /* the first version that allows names to begin with a digit */

enum { NODES_MOST = 8, NODE_BYTES = 64 };

typedef struct gpu {
    const gpuhal_probe_row *row;
    const char *left_out; /* the reason for omitting the GPU; NULL if it is included */
    bool is_known;        /* the exit status and other messages already report the reason */
    bool is_nvidia;
    char uuid[PROBE_UUID_BYTES]; /* "" if there is no UUID, or if the UUID is not a valid name */
    char nodes[NODES_MOST][NODE_BYTES];
    size_t node_count;
} gpu;

typedef struct gpus {
    gpu *list;
    size_t count, used;
    bool all_of_nvidia;
    json_t *mounts; /* mounts for NVIDIA's driver libraries; an empty array if they are unknown; NULL without libcuda */
} gpus;

/* ---- the contents of a device */

/* Adds the node if it exists, and returns whether it was added. A runtime refuses to start a container if a node is
 * missing. */
static bool add_node(gpu *one, const char *path)
{
    char real[4096];
    const char *root = getenv("GPUHAL_SYSTEM_ROOT");
    const int length = snprintf(real, sizeof real, "%s%s", root ? root : "", path);
    const bool there = *path && one->node_count < NODES_MOST && strlen(path) < NODE_BYTES && length > 0 &&
                       (size_t)length < sizeof real && access(real, F_OK) == 0;
    if (there) {
        memcpy(one->nodes[one->node_count++], path, strlen(path) + 1);
    }
    return there;
}

static void add_dri(gpu *one)
{
    char space[PROBE_NODE_BYTES];
    (void)add_node(one, gpuhal_probe_card_node(one->row->entry, one->row->hardware));
    (void)add_node(one, gpuhal_probe_render_node(one->row->entry, one->row->hardware, space));
}

static const char *add_part(gpu *one, const char *node)
{
    char files[256], *rest = files;
    bool all = gpuhal_probe_mig_files(node, gpuhal_probe_row_part_numbers(one->row), files, sizeof files);
    if (!all) {
        return "the kernel does not say which of the GPU's parts it is; \"nvidia-ctk cdi generate\" finds out";
    }
    for (const char *file = strsep(&rest, ","); file; file = strsep(&rest, ",")) {
        all = add_node(one, file) && all;
    }
    return all ? NULL : "device files of this part of the GPU are missing in /dev/nvidia-caps";
}

/* Returns the reason why the GPU cannot be included; NULL if it can. */
static const char *fill_nvidia(gpu *one, const json_t *mounts)
{
    static const char *const common[] = {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"};
    const char *node = one->row->hardware ? one->row->hardware->vendor_node : "", *why = NULL;
    if (!mounts) {
        return "libcuda, which programs in a container need, is not found; install the driver's libraries, or make "
               "the file with \"nvidia-ctk cdi generate\"";
    }
    if (json_array_size(mounts) == 0) {
        return "the path of libcuda does not say which other libraries are the driver's; \"nvidia-ctk cdi generate\" "
               "finds them";
    }
    if (strncmp(node, "/dev/nvidia", 11) != 0) {
        return "its device files are not known; \"nvidia-ctk cdi generate\" finds them";
    }
    if (*gpuhal_probe_row_part(one->row)) {
        why = add_part(one, node);
    } else if (add_node(one, node)) {
        add_dri(one);
    } else {
        why = "its device file is missing";
    }
    for (size_t i = 0; i < sizeof common / sizeof *common; i++) {
        (void)add_node(one, common[i]);
    }
    return why;
}

static const char *fill_other(gpu *one)
{
    if (one->row->hardware && strcmp(one->row->hardware->vendor_node, "/dev/kfd") == 0) {
        (void)add_node(one, "/dev/kfd");
    }
    const size_t before = one->node_count;
    add_dri(one);
    return one->node_count > before ? NULL : "it has no device file of its own";
}

static bool is_nvidia(const gpuhal_probe_row *row)
{
    const gpuhal_hardware_info *hardware = row->hardware;
    return (row->entry && strcmp(gpuhal_device_backend(row->entry->device), "cuda") == 0) ||
           (hardware && strcmp(hardware->kernel_driver, "nvidia") == 0);
}

/* Returns whether a container can use the GPU. A container has its own libraries, and its own permissions for nodes. */
static bool is_usable_in_a_container(const gpuhal_probe_row *row)
{
    return gpuhal_probe_row_why(row) == NULL ||
           (!row->entry && (row->hardware->state == GPUHAL_HARDWARE_NO_LIBRARY ||
                            row->hardware->state == GPUHAL_HARDWARE_NO_PERMISSION));
}

/* Sets the UUID if a runtime accepts it as a name; a driver may report any string. */
static void set_uuid(gpu *one)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-";
    char space[PROBE_FIELD_BYTES];
    const gpuhal_probe_row *row = one->row;
    const char *uuid =
        row->entry ? gpuhal_probe_field_text(gpuhal_probe_field_named("uuid", 4), row, space) : row->uuid;
    const size_t length = strlen(uuid);
    if (length >= 16 && length < sizeof one->uuid && strspn(uuid, letters) == length && uuid[0] != '-' &&
        uuid[length - 1] != '-') {
        memcpy(one->uuid, uuid, length + 1);
    }
}

static void fill(gpu *one, const gpuhal_probe_row *row, const json_t *mounts)
{
    *one = (gpu){.row = row, .is_nvidia = is_nvidia(row)};
    if (!is_usable_in_a_container(row)) {
        one->left_out = gpuhal_probe_row_why(row);
        one->is_known = row->entry || row->hardware->grade == GPUHAL_HARDWARE_PROBLEM;
        return;
    }
    set_uuid(one);
    one->left_out = one->is_nvidia ? fill_nvidia(one, mounts) : fill_other(one);
}

/* ---- the document */

/* Creates the edits for the GPU `only`, or for the GPUs with this UUID, or for all GPUs if both are NULL. */
static json_t *make_edits(gpuhal_probe_json *builder, const gpus *all, const gpu *only, const char *uuid)
{
    json_t *edits = json_object(), *nodes = json_array(), *seen = json_object();
    bool has_nvidia = false;
    for (size_t i = 0; i < all->count; i++) {
        const gpu *one = &all->list[i];
        if (one->left_out || (only && one != only) || (uuid && strcmp(one->uuid, uuid) != 0)) {
            continue;
        }
        has_nvidia = has_nvidia || one->is_nvidia;
        for (size_t k = 0; k < one->node_count; k++) {
            if (!json_object_get(seen, one->nodes[k])) {
                gpuhal_probe_put(builder, seen, one->nodes[k], json_true());
                gpuhal_probe_append(builder, nodes,
                                    json_pack("{s:s, s:s}", "path", one->nodes[k], "permissions", "rw"));
            }
        }
    }
    json_decref(seen);
    gpuhal_probe_put(builder, edits, "deviceNodes", nodes);
    if (has_nvidia && !all->all_of_nvidia) {
        gpuhal_probe_put(builder, edits, "mounts", json_incref(all->mounts));
    }
    return edits;
}

static void add_device(gpuhal_probe_json *builder, json_t *devices, const char *name, json_t *edits)
{
    gpuhal_probe_append(builder, devices, json_pack("{s:s, s:o}", "name", name, "containerEdits", edits));
}

/* Returns whether an earlier GPU has the same UUID. The partitions of a GPU may share one UUID. The device with this
 * UUID stands for all of them. */
static bool is_named(const gpus *all, size_t place)
{
    for (size_t i = 0; i < place; i++) {
        if (!all->list[i].left_out && strcmp(all->list[i].uuid, all->list[place].uuid) == 0) {
            return true;
        }
    }
    return false;
}

static bool print_document(const gpus *all, FILE *out)
{
    gpuhal_probe_json builder = {0};
    json_t *document = json_object(), *devices = json_array();
    char name[24];
    gpuhal_probe_put(&builder, document, "cdiVersion", json_string(VERSION));
    gpuhal_probe_put(&builder, document, "kind", json_string(KIND));
    for (size_t i = 0, number = 0; i < all->count; i++) {
        if (!all->list[i].left_out) {
            snprintf(name, sizeof name, "%zu", number++);
            add_device(&builder, devices, name, make_edits(&builder, all, &all->list[i], NULL));
        }
    }
    for (size_t i = 0; i < all->count; i++) {
        const gpu *one = &all->list[i];
        if (!one->left_out && *one->uuid && !is_named(all, i)) {
            add_device(&builder, devices, one->uuid, make_edits(&builder, all, NULL, one->uuid));
        }
    }
    add_device(&builder, devices, "all", make_edits(&builder, all, NULL, NULL));
    gpuhal_probe_put(&builder, document, "devices", devices);
    if (all->all_of_nvidia) {
        gpuhal_probe_put(&builder, document, "containerEdits", json_pack("{s:O}", "mounts", all->mounts));
    }
    return gpuhal_probe_json_print(&builder, document, out);
}

static void say_left_out(const gpus *all)
{
    static const char *const columns[] = {"id", "pci", "name"};
    for (size_t i = 0; i < all->count; i++) {
        const gpu *one = &all->list[i];
        char what[3 * PROBE_FIELD_BYTES] = "", space[PROBE_FIELD_BYTES];
        if (!one->left_out || one->is_known) {
            continue;
        }
        for (size_t k = 0; k < sizeof columns / sizeof *columns; k++) {
            const size_t used = strlen(what);
            const gpuhal_probe_field *column = gpuhal_probe_field_named(columns[k], strlen(columns[k]));
            const char *text = gpuhal_probe_field_text(column, one->row, space);
            snprintf(what + used, sizeof what - used, "%s%s", *text && used ? " " : "", text);
        }
        gpuhal_probe_say("left out: %.300s: %s", what, one->left_out);
    }
}

/* The path is "" if it was not found. */
static void find_libcuda(const gpuhal_probe_machine *machine, char path[4096])
{
    gpuhal_plugin_report report = {.size = sizeof report};
    path[0] = 0;
    for (uint32_t i = 0; !path[0] && gpuhal_view_get(machine->view, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK;
         i++) {
        snprintf(path, 4096, "%s", strcmp(report.name, "cuda") == 0 ? report.driver : "");
    }
}

gpuhal_probe_exit gpuhal_probe_print_cdi(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                         bool says_left_out, FILE *out)
{
    gpuhal_probe_rows rows;
    gpuhal_probe_json builder = {0};
    char libcuda[4096];
    gpus all = {.all_of_nvidia = true};
    find_libcuda(machine, libcuda);
    all.mounts = *libcuda ? gpuhal_probe_cdi_mounts(&builder, libcuda) : NULL;
    bool made = gpuhal_probe_rows_make(machine, options, &rows) && !builder.failed;
    all.list = made ? calloc(rows.count + 1u, sizeof *all.list) : NULL;
    for (uint32_t i = 0; all.list && i < rows.count; i++) {
        if (!rows.list[i].entry || !rows.list[i].entry->processor) {
            gpu *one = &all.list[all.count++];
            fill(one, &rows.list[i], all.mounts);
            all.used += !one->left_out;
            all.all_of_nvidia = all.all_of_nvidia && (one->left_out || one->is_nvidia);
        }
    }
    made = all.list && (all.used == 0 || print_document(&all, out));
    const bool is_empty = all.used == 0;
    if (made && says_left_out) {
        say_left_out(&all);
    }
    if (made && says_left_out && is_empty) {
        gpuhal_probe_say("there is no GPU for a specification of CDI, which names one at least");
    }
    free(all.list);
    json_decref(all.mounts);
    gpuhal_probe_rows_finish(&rows);
    return !made ? PROBE_INTERNAL : is_empty ? PROBE_NO_DEVICE : PROBE_COMPLETE;
}
