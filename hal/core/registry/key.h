/* registry/key.h: a plugin's cache key, which lists all dependencies of the plugin's result as lines of text. A cached
 * result is valid while all lines are current.
 *
 *     file 65024-131-97320-1700000000000000000-1700000000000000000 /usr/lib/libcuda.so.1   device, inode, size, times;
 *     `absent` without a file
 *     folder 65024-99-4096-…-0f1e2d3c /etc/OpenCL/vendors          and a checksum of its entries
 *     variable POCL_DEVICES=basic                                  without `=` if it is not set
 *     root /recorded/machine                                       GPUHAL_SYSTEM_ROOT, if it is set
 *     boot …, kernel …, nvidia …, mounts …, processors 8           of the machine, below that root
 *     memory 8589934592, library 0.2.0                             the limit of the control groups; this library
 *     instances gpu0 gi1 access ci0                                partitions of a GPU
 *     driver nvidia 535.54.03 0000:01:00.0 …                       a kernel driver and its devices
 *     node 65024-7-…-rw /dev/nvidia0                               identified without opening
 *     settings ignored, options …                                  added by loader/probe_cache.c
 *
 * The lines are stored as text, not as a digest, so that keys are equal only if all lines are equal, and a message can
 * name the line that changed. Nothing here may open a device node, or a folder of device nodes other than /dev,
 * because opening can wake a sleeping GPU.
 */
#ifndef GPUHAL_REGISTRY_KEY_H
#define GPUHAL_REGISTRY_KEY_H

#include "os/os.h"
#include "registry/database.h"

/* Dependencies of a plugin's result besides the machine and the library search path. Both members may be NULL. */
typedef struct gpuhal_key_request {
    /* the plugin, its manifest, the vendor files that were mapped in the helper, the paths of `watch` */
    const gpuhal_texts *files;
    const gpuhal_texts *variables; /* the variables named by `environment` in the manifest */
} gpuhal_key_request;

/* Lists the lines about the machine, which all plugins share (machine.c). `root` replaces `/` for /proc, /sys, /dev and
 * /etc; "" for the real root. Sets out_lines->failed if out of memory. */
void gpuhal_key_machine(const char *root, gpuhal_texts *out_lines);
/* Returns the text that identifies a device node, with its access rights, since the driver's result depends on them.
 * `seen` is the node's path. Returns NULL if out of memory. */
char *gpuhal_key_node_words(const char *seen, const gpuhal_file_state *state);
/* The machine's lines come last. */
void gpuhal_key_make(const char *root, const gpuhal_key_request *request, const gpuhal_texts *machine,
                     gpuhal_texts *out_lines);
/* Returns whether every line is current. *out_why is the first outdated line, or the first line about the machine that
 * the key lacks; malloc'ed, or NULL. `out_why` may be NULL. Also returns false if out of memory. */
bool gpuhal_key_is_current(const gpuhal_texts *lines, const gpuhal_texts *machine, char **out_why);
/* Returns the identity of a file's contents for gpuhal_database_plugin.identity, malloc'ed; NULL if the file does not
 * exist or if out of memory. */
char *gpuhal_key_identity(const char *path);

/* Cache of a database's lines that were found current during one listing. Plugins depend mostly on the same files, each
 * of which is checked only once, unless the cache is full. A zero-initialised cache is empty. */
#define GPUHAL_KEY_SEEN 512u
typedef struct gpuhal_key_seen {
    const char *lines[GPUHAL_KEY_SEEN]; /* owned by the database; hashed by checksum */
    size_t count;
} gpuhal_key_seen;

/* Returns the newest record of this plugin and file whose key is current; NULL if there is none. `seen` may be NULL. */
const gpuhal_database_plugin *gpuhal_key_find(const gpuhal_database *database, const char *name, const char *identity,
                                              const gpuhal_texts *machine, gpuhal_key_seen *seen);

/* Lists the absolute paths of this process's executable mappings without duplicates, ordered by address. */
void gpuhal_key_mapped_files(gpuhal_texts *out_paths);

#endif
