/* registry/key.h: the cache key of a plugin: all dependencies of its result, as lines of text. A cached result is valid
 * while all lines are current.
 *
 *     file 65024-131-97320-1700000000000000000-1700000000000000000 /usr/lib/libcuda.so.1   device, inode, size, times;
 *                                                                                          `absent` without a file
 *     folder 65024-99-4096-…-0f1e2d3c /etc/OpenCL/vendors          and a checksum of its entries
 *     variable POCL_DEVICES=basic                                  without `=` if it is not set
 *     root /recorded/machine                                       GPUHAL_SYSTEM_ROOT, if it is set
 *     boot …, kernel …, mounts …, processors 8                     of the machine, below that root
 *     memory 8589934592, library 0.2.0                             the limit of the control groups; this library
 *     instances gpu0 gi1 access ci0                                partitions of a GPU
 *     driver nvidia 535.54.03 0000:01:00.0 …                       a kernel driver and its devices
 *     node 65024-7-…-rw /dev/nvidia0                               identified without opening
 *
 * The lines are kept as text, not as a digest: two keys are equal only if every line is, and a message can name the
 * line that changed. Nothing here may open a device node, or /dev/dri and other folders of devices: opening can wake a
 * sleeping GPU.
 */
#ifndef GPUHAL_REGISTRY_KEY_H
#define GPUHAL_REGISTRY_KEY_H

#include "os/os.h"
#include "registry/database.h"

/* Dependencies of a plugin's result besides the machine and the search path of libraries. Both may be NULL. */
typedef struct gpuhal_key_request {
    /* the plugin, its manifest, the vendors' files that the helper saw mapped, the paths of `watch` */
    const gpuhal_texts *files;
    const gpuhal_texts *variables; /* the variables that `environment` in the manifest names */
} gpuhal_key_request;

/* Lists the lines about the machine, which all plugins share (machine.c). `root` replaces `/` when /proc, /sys, /dev
 * and /etc are read; "" for the machine itself. Sets out_lines->failed without memory. */
void gpuhal_key_machine(const char *root, gpuhal_texts *out_lines);
/* Returns the text that identifies a device node, with its access rights, because the driver's answer depends on them.
 * `seen` is the path of the node. NULL without memory. */
char *gpuhal_key_node_words(const char *seen, const gpuhal_file_state *state);
/* Makes the key of one plugin; the lines of the machine come last. */
void gpuhal_key_make(const char *root, const gpuhal_key_request *request, const gpuhal_texts *machine,
                     gpuhal_texts *out_lines);
/* Returns whether every line is current. *out_why gets the first line that is not, malloc'ed; it may be NULL. Returns
 * false also without memory. */
bool gpuhal_key_is_current(const gpuhal_texts *lines, const gpuhal_texts *machine, char **out_why);
/* Returns the identity of a file's contents, for gpuhal_database_plugin.identity, malloc'ed; NULL if there is no such
 * file, or no memory. */
char *gpuhal_key_identity(const char *path);

/* Lines of one database that were found current, for one listing: plugins share most of the files that they depend on,
 * and each is checked once. All zero means none. Lines that do not fit are checked again. */
#define GPUHAL_KEY_SEEN 512u
typedef struct gpuhal_key_seen {
    const char *lines[GPUHAL_KEY_SEEN]; /* of the database; by their checksums */
    size_t count;
} gpuhal_key_seen;

/* Returns the newest record of this plugin and file whose key is current; NULL if there is none. `seen` may be NULL. */
const gpuhal_database_plugin *gpuhal_key_find(const gpuhal_database *database, const char *name, const char *identity,
                                              const gpuhal_texts *machine, gpuhal_key_seen *seen);

/* Lists the absolute paths of the executable mappings of this process, each once, in the order of their addresses. */
void gpuhal_key_mapped_files(gpuhal_texts *out_paths);

#endif
