/* tests/fuzz/manifest_fuzz.c: arbitrary bytes as a manifest. A refusal must come with a reason, and an accepted
 * manifest must have all mandatory keys. */
#include "base/records.h"
#include "fuzz.h"
#include "loader/load.h"
#include "loader/manifest.h"

#include <gpuhal/plugin.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/gpuhal-fuzz-XXXXXX", path[64];

static void remove_folder(void)
{
    unlink(path);
    rmdir(folder);
}

static void check_text(const char *text)
{
    CHECK(*text && gpuhal_records_is_clean(text, strlen(text)));
}

static bool read_as(bool absolute_only, gpuhal_manifest *out_manifest)
{
    gpuhal_load_context load = {.name = "fuzzed"};
    bool good = gpuhal_manifest_read(&load, path, absolute_only, out_manifest);
    if (good) {
        CHECK(!load.reason && gpuhal_plugin_name_is_valid(out_manifest->name));
        CHECK(out_manifest->library[0] == '/' && out_manifest->abi && out_manifest->speaks_abi);
        check_text(out_manifest->library);
        if (out_manifest->platforms) {
            check_text(out_manifest->platforms);
        }
    } else {
        CHECK(load.reason && strstr(load.reason, path) == load.reason && load.status < 0);
    }
    gpuhal_load_finish(&load);
    return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static int file = -1;
    if (file < 0) {
        CHECK(mkdtemp(folder) != NULL && atexit(remove_folder) == 0);
        snprintf(path, sizeof path, "%s/fuzzed.gpuhal", folder);
        file = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0644);
        CHECK(file >= 0);
    }
    CHECK(ftruncate(file, 0) == 0 && pwrite(file, bytes, count, 0) == (ssize_t)count);
    gpuhal_manifest anywhere, absolute;
    bool is_good = read_as(false, &anywhere), is_absolute = read_as(true, &absolute);
    CHECK(is_good || !is_absolute);
    if (is_absolute) {
        CHECK(strcmp(anywhere.library, absolute.library) == 0);
    }
    if (is_good) {
        bool everywhere = gpuhal_manifest_has_platform(&anywhere, "no such platform");
        CHECK(everywhere == !anywhere.platforms && (!everywhere || gpuhal_manifest_has_platform(&anywhere, "linux")));
    }
    gpuhal_manifest_finish(&absolute);
    gpuhal_manifest_finish(&anywhere);
    return 0;
}
