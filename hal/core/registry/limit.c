/* registry/limit.c: see limit.h. A process belongs to one group of each hierarchy, and the limits of all ancestors of
 * the group also apply. In a container, the upper part of the path is often invisible; missing levels are skipped. */
#include "registry/limit.h"

#include "base/records.h"
#include "base/text.h"
#include "os/os.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define GROUPS_BYTES_MAX 65536u
#define LIMIT_BYTES_MAX  64u
#define NO_LIMIT         (UINT64_C(1) << 62) /* cgroup v1 reports a larger value if no limit is set */

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

/* `path` is the process's own group. A group outside the visible tree counts as the root. */
static void narrow_by_all(const char *root, const char *mount, const char *path, const char *file, uint64_t *limit)
{
    char *group = gpuhal_text_copy(strstr(path, "/..") ? "" : path);
    for (char *cut = group ? group + strlen(group) : NULL; cut; cut = strrchr(group, '/')) {
        *cut = 0;
        narrow(root, mount, group, file, limit);
    }
    free(group);
}

static bool has_memory(const char *controllers)
{
    const char *at = strstr(controllers, "memory");
    return at && (at == controllers || at[-1] == ',') && (at[6] == ',' || at[6] == 0);
}

uint64_t gpuhal_limit_memory(const char *root)
{
    uint64_t limit = UINT64_MAX;
    char *text = text_of(root, "/proc/self", "", "cgroup", GROUPS_BYTES_MAX), *end = NULL;
    /* "0::/path" is cgroup v2, and "4:cpu,memory:/path" is cgroup v1. */
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

/* ---- device memory. Region keys are "drm/0000:03:00.0/vram0" with or without a number at the end, or
 * "nvidia/0000:03:00.0/vidmem" for NVIDIA drivers from 615 on. Other regions of a device are not device memory. */

static bool is_of_device(const char *line, const char *pci)
{
    static const char *const parts[][2] = {{"drm/", "/vram"}, {"nvidia/", "/vidmem"}};
    const size_t length = strlen(pci);
    bool found = false;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !found; i++) {
        const size_t front = strlen(parts[i][0]);
        found = strncmp(line, parts[i][0], front) == 0 && strncmp(line + front, pci, length) == 0 &&
                strncmp(line + front + length, parts[i][1], strlen(parts[i][1])) == 0;
    }
    return found;
}

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end + 1 : line + strlen(line);
}

static bool value_at(const char *line, size_t key, uint64_t *out_value)
{
    char *text = gpuhal_text_format("%.*s", (int)strcspn(line + key + 1, "\n"), line + key + 1);
    const bool known = text && gpuhal_records_u64(text, out_value);
    free(text);
    return known;
}

static uint64_t value_of(const char *text, const char *line, size_t key)
{
    uint64_t value = 0;
    for (; text && *text; text = next_line(text)) {
        if (strncmp(text, line, key + 1) == 0 && value_at(text, key, &value)) {
            return value;
        }
    }
    return 0;
}

/* Memory may come from any region of the device, so a single region without a limit means no limit. */
static void narrow_device(const char *root, const char *mount, const char *group, const char *pci, uint64_t *left,
                          uint64_t *limit)
{
    char *most = text_of(root, mount, group, "dmem.max", GROUPS_BYTES_MAX);
    char *current = text_of(root, mount, group, "dmem.current", GROUPS_BYTES_MAX);
    uint64_t sum = 0, rest = 0, value = 0;
    bool any = false, bounded = true;
    for (const char *line = most; line && *line && bounded; line = next_line(line)) {
        const size_t key = strcspn(line, " \n");
        if (!is_of_device(line, pci) || line[key] != ' ') {
            continue;
        }
        bounded = value_at(line, key, &value) && value < NO_LIMIT;
        const uint64_t used = value_of(current, line, key);
        sum += value;
        rest += value > used ? value - used : 0;
        any = true;
    }
    if (any && bounded && rest < *left) {
        *left = rest;
        *limit = sum;
    }
    free(most);
    free(current);
}

/* Returns the process's own cgroup v2; "" if it is outside the visible tree; NULL if there is none or if out of
 * memory. */
static char *own_group(const char *root)
{
    char *text = text_of(root, "/proc/self", "", "cgroup", GROUPS_BYTES_MAX);
    const char *line = text;
    while (line && *line && strncmp(line, "0::", 3) != 0) {
        line = next_line(line);
    }
    char *group = line && *line ? gpuhal_text_format("%.*s", (int)strcspn(line + 3, "\n"), line + 3) : NULL;
    if (group && strstr(group, "/..")) {
        *group = 0;
    }
    free(text);
    return group;
}

static bool has_limits(const char *root, const char *mount, const char *group)
{
    char *text = text_of(root, mount, group, "dmem.max", GROUPS_BYTES_MAX);
    const bool there = text != NULL;
    free(text);
    return there;
}

bool gpuhal_limit_counts_devices(const char *root)
{
    bool there = false;
    char *group = own_group(root);
    for (char *cut = group ? group + strlen(group) : NULL; cut && !there; cut = strrchr(group, '/')) {
        *cut = 0;
        there = has_limits(root, "/sys/fs/cgroup", group) || has_limits(root, "/sys/fs/cgroup/unified", group);
    }
    free(group);
    return there;
}

uint64_t gpuhal_limit_device_memory(const char *root, const char *pci, uint64_t *out_limit)
{
    uint64_t left = UINT64_MAX;
    char *group = own_group(root);
    *out_limit = UINT64_MAX;
    for (char *cut = group ? group + strlen(group) : NULL; cut; cut = strrchr(group, '/')) {
        *cut = 0;
        narrow_device(root, "/sys/fs/cgroup", group, pci, &left, out_limit);
        narrow_device(root, "/sys/fs/cgroup/unified", group, pci, &left, out_limit);
    }
    free(group);
    return left;
}
