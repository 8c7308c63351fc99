/* mig.c: see mig.h. The kernel driver has a folder for each GPU instance, and in that one for each compute instance;
 * the file "access" in both names the minor number of the device file that opens it. */
#include "mig.h"

#include "../common/text.h"

#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINOR "DeviceFileMinor:"

static bool read_minor(const char *path, uint64_t *out_minor)
{
    char line[128];
    bool found = false;
    FILE *file = fopen(path, "re");
    while (file && !found && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        found = strncmp(line, MINOR, strlen(MINOR)) == 0 &&
                gpuhal_tool_read_number(gpuhal_tool_trimmed(line + strlen(MINOR)), 0, 1u << 20, out_minor, NULL);
    }
    if (file) {
        fclose(file);
    }
    return found;
}

/* The one path that the pattern finds below the GPU's folder; false where there is another number of them. */
static bool find_one(const char *gpu, const char *pattern, char path[PATH_MAX])
{
    char all[PATH_MAX];
    glob_t found;
    const char *root = getenv("GPUHAL_SYSTEM_ROOT");
    const int length =
        snprintf(all, sizeof all, "%s/proc/driver/nvidia/capabilities/gpu%s/mig/%s", root ? root : "", gpu, pattern);
    if (length < 0 || (size_t)length >= sizeof all || glob(all, 0, NULL, &found) != 0) {
        return false;
    }
    const bool one = found.gl_pathc == 1;
    snprintf(path, PATH_MAX, "%s", one ? found.gl_pathv[0] : "");
    globfree(&found);
    return one;
}

bool gpuhal_probe_mig_files(const char *node, char *files, size_t bytes)
{
    char path[PATH_MAX];
    uint64_t instance, compute;
    const char *gpu = node + strcspn(node, "0123456789");
    if (!*gpu || !find_one(gpu, "gi*/access", path) || !read_minor(path, &instance) ||
        !find_one(gpu, "gi*/ci*/access", path) || !read_minor(path, &compute)) {
        return false;
    }
    snprintf(files, bytes, "%s,/dev/nvidia-caps/nvidia-cap%" PRIu64 ",/dev/nvidia-caps/nvidia-cap%" PRIu64, node,
             instance, compute);
    return true;
}
