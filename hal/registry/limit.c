/* registry/limit.c: see limit.h. A process belongs to one group of each hierarchy, and is bound by the limits of all
 * groups above too. In a container the upper part of the path is often not visible: missing levels are skipped. */
#include "registry/limit.h"

#include "core/records.h"
#include "core/text.h"
#include "os/os.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS_BYTES_MAX 65536u
#define LIMIT_BYTES_MAX  64u
#define NO_LIMIT         (UINT64_C(1) << 62) /* the first version reports a value above this where no limit is set */

/* Returns the text of a file below `root`; NULL when it cannot be read. */
static char *text_of(const char *root, const char *mount, const char *group, const char *file, size_t most)
{
    size_t bytes;
    char *text = NULL;
    char *path = gpuhal_text_format("%s%s%s/%s", root, mount, group, file);
    if (path) {
        gpuhal_os_file_read(path, most, &text, &bytes);
    }
    free(path);
    return text;
}

static void narrow(const char *root, const char *mount, const char *group, const char *file, uint64_t *limit)
{
    char *text = text_of(root, mount, group, file, LIMIT_BYTES_MAX);
    uint64_t number;
    if (text) {
        text[strcspn(text, "\n")] = 0;
    }
    /* "max" means unlimited. */
    if (text && gpuhal_records_u64(text, &number) && number < NO_LIMIT && number < *limit) {
        *limit = number;
    }
    free(text);
}

/* `path` is the process's own group, and is cut up to the top; a group outside of the visible tree counts as the top.
 */
static void narrow_by_all(const char *root, const char *mount, const char *path, const char *file, uint64_t *limit)
{
    char *group = gpuhal_text_copy(strstr(path, "/..") ? "" : path);
    for (char *cut = group ? group + strlen(group) : NULL; cut; cut = strrchr(group, '/')) {
        *cut = 0;
        narrow(root, mount, group, file, limit);
    }
    free(group);
}

/* Returns whether "memory" is in the comma-separated list. */
static bool has_memory(const char *controllers)
{
    const char *at = strstr(controllers, "memory");
    return at && (at == controllers || at[-1] == ',') && (at[6] == ',' || at[6] == 0);
}

uint64_t gpuhal_limit_memory(const char *root)
{
    uint64_t limit = UINT64_MAX;
    char *text = text_of(root, "/proc/self", "", "cgroup", GROUPS_BYTES_MAX), *end = NULL;
    /* "0::/path" is the second version, "4:cpu,memory:/path" the first. */
    for (char *line = text; line && *line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        if (end) {
            *end = 0;
        }
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path) {
            continue;
        }
        *path++ = 0;
        if (controllers[1] == 0) {
            narrow_by_all(root, "/sys/fs/cgroup", path, "memory.max", &limit);
            narrow_by_all(root, "/sys/fs/cgroup/unified", path, "memory.max", &limit);
        } else if (has_memory(controllers + 1)) {
            narrow_by_all(root, "/sys/fs/cgroup/memory", path, "memory.limit_in_bytes", &limit);
        }
    }
    free(text);
    return limit;
}
