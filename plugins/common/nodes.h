/* common/nodes.h: whether this process may open the GPUs' device nodes. */
#ifndef GPUHAL_PLUGIN_NODES_H
#define GPUHAL_PLUGIN_NODES_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* Returns whether there are render nodes below @p root and the system refuses to open each of them. access() would not
 * notice that a container forbids a device. */
static inline bool gpuhal_plugin_nodes_refuse(const char *root)
{
    const int top = open(root[0] != '\0' ? root : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int folder = top >= 0 ? openat(top, "dev/dri", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    DIR *const list = folder >= 0 ? fdopendir(folder) : NULL;
    bool refused = false, opened = false;
    for (const struct dirent *entry; list && !opened && (entry = readdir(list));) {
        if (strncmp(entry->d_name, "renderD", 7) == 0) {
            const int node = openat(folder, entry->d_name, O_RDWR | O_CLOEXEC | O_NONBLOCK);
            opened = node >= 0;
            refused = refused || (!opened && (errno == EACCES || errno == EPERM));
            if (opened) {
                close(node);
            }
        }
    }
    if (list) {
        closedir(list); /* also closes the folder */
    } else if (folder >= 0) {
        close(folder);
    }
    if (top >= 0) {
        close(top);
    }
    return refused && !opened;
}

#endif
