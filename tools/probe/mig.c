/* mig.c: see mig.h. The kernel driver has a directory for each GPU instance, with a subdirectory for each compute
 * instance. The file "access" in either directory contains the minor number of the device file that opens the
 * instance. */
#include "mig.h"

#include "../common/host.h"
#include "../common/text.h"

#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MINOR "DeviceFileMinor:"
enum { LINES_MOST = 64 };

static bool read_minor(const char *path, uint64_t *out_minor)
{
    char line[128];
    bool found = false;
    FILE *file = gpuhal_tool_open_plain(path);
    for (int i = 0; file && !found && i < LINES_MOST && fgets(line, sizeof line, file); i++) {
        line[strcspn(line, "\n")] = 0;
        found = strncmp(line, MINOR, strlen(MINOR)) == 0 &&
                gpuhal_tool_read_number(gpuhal_tool_trimmed(line + strlen(MINOR)), 0, 1u << 20, out_minor, NULL);
    }
    if (file) {
        fclose(file);
    }
    return found;
}

/* Finds the path that matches the pattern below the GPU's directory. Returns false unless exactly one path matches. */
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

bool gpuhal_probe_mig_files(const char *node, const char *numbers, char *files, size_t bytes)
{
    char path[PATH_MAX], of_instance[48] = "gi*/access", of_compute[48] = "gi*/ci*/access";
    uint64_t instance, compute;
    unsigned gi, ci;
    const char *gpu = node + strcspn(node, "0123456789");
    if (sscanf(numbers, "%3u/%3u", &gi, &ci) == 2) {
        snprintf(of_instance, sizeof of_instance, "gi%u/access", gi);
        snprintf(of_compute, sizeof of_compute, "gi%u/ci%u/access", gi, ci);
    }
    if (!*gpu || !find_one(gpu, of_instance, path) || !read_minor(path, &instance) ||
        !find_one(gpu, of_compute, path) || !read_minor(path, &compute)) {
        return false;
    }
    snprintf(files, bytes, "%s,/dev/nvidia-caps/nvidia-cap%" PRIu64 ",/dev/nvidia-caps/nvidia-cap%" PRIu64, node,
             instance, compute);
    return true;
}
