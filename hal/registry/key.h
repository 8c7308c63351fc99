/* registry/key.h: the circumstances under which a plugin was met, as lines of text. While all are the same, so is the answer.
 *
 *     file 65024-131-97320-1700000000000000000-1700000000000000000 /usr/lib/libcuda.so.1   device, inode, size, times; `absent`
 *     folder 65024-99-4096-…-0f1e2d3c /etc/OpenCL/vendors                                  and a checksum of what lies in it
 *     variable POCL_DEVICES=basic                                                          without `=` when it is not set
 *     boot …, kernel …, mounts …, processors 8                                             of the machine, below
 *     memory 8589934592, library 0.2.0                             the limit of the control groups; who judged
 *     instances gpu0 gi1 access ci0                                parts of a GPU
 *     driver nvidia 535.54.03 0000:01:00.0 …                                               a kernel driver and what it drives
 *     node 65024-7-…-rw /dev/nvidia0                                                       told apart without opening
 *
 * The lines are kept as they are, no digest of them: so two keys are equal only when everything in them is, and what changed can be
 * named. Nothing here opens a device, or /dev/dri and other folders of devices.
 */
#ifndef GPUHAL_REGISTRY_KEY_H
#define GPUHAL_REGISTRY_KEY_H

#include "os/os.h"
#include "registry/database.h"

/* What a plugin's answer depends on, besides the machine and where libraries are searched. Both may be NULL. */
typedef struct gpuhal_key_request {
    const gpuhal_texts *files;     /* the plugin, its manifest, the vendors' files that the helper saw mapped, what `watch` names */
    const gpuhal_texts *variables; /* what `environment` in the manifest names */
} gpuhal_key_request;

/* machine.c: the lines about the machine, for all plugins alike. `root` is the directory that stands for `/` where /proc, /sys, /dev and
 * /etc are read, "" for the machine itself. out_lines->failed without memory. */
void gpuhal_key_machine(const char *root, gpuhal_texts *out_lines);
/* What tells one device node from another; rights count, since they decide what a driver answers. `seen` is where it is found.
 * NULL without memory. */
char *gpuhal_key_node_words(const char *seen, const gpuhal_file_state *state);
/* The lines of one plugin, those of the machine last. */
void gpuhal_key_make(const char *root, const gpuhal_key_request *request, const gpuhal_texts *machine, gpuhal_texts *out_lines);
/* Whether all is as the lines say. *out_why gets the first line that is not true any more, malloc'ed; it may be NULL. false also
 * without memory. */
bool gpuhal_key_is_current(const gpuhal_texts *lines, const gpuhal_texts *machine, char **out_why);
/* What stands for the contents of a file, for gpuhal_database_plugin.identity: malloc'ed; NULL when there is no such file, or no memory. */
char *gpuhal_key_identity(const char *path);

/* The newest record of this plugin and file whose key is current; NULL when there is none. */
const gpuhal_database_plugin *gpuhal_key_find(const gpuhal_database *database, const char *name, const char *identity,
                                           const gpuhal_texts *machine);

/* Absolute paths of the files with code that are mapped into this process, each once, in the order of their addresses. */
void gpuhal_key_mapped_files(gpuhal_texts *out_paths);

#endif
