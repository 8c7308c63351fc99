/* tests/unit/loader_support.h: common code for the loader's tests: settings that ignore the environment, a private
 * folder, and access to a candidate's result. */
#ifndef LOADER_SUPPORT_H
#define LOADER_SUPPORT_H

#include "base/config.h"
#include "base/error.h"
#include "base/text.h"
#include "loader/loader.h"
#include "os/os.h"
#include "support/process.h"
#include "support/record.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNUSED_HELPER static __attribute__((unused))

/* The time that a helper may take on a busy machine under a sanitizer. Only tests of the deadline use another value. */
#define PATIENT_NS 18000000000u

static char folder[64];

UNUSED_HELPER int remove_one(const char *path, __attribute__((unused)) const struct stat *status,
                             __attribute__((unused)) int type, __attribute__((unused)) struct FTW *walk)
{
    return remove(path);
}

UNUSED_HELPER void remove_folder(void)
{
    if (folder[0]) {
        nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
        folder[0] = 0;
    }
}

/* Replaces the test's private folder with an empty one, which is removed at exit. */
UNUSED_HELPER void new_folder(void)
{
    static bool registered;
    remove_folder();
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/gpuhal-loader-XXXXXX", base && *base ? base : "/tmp");
    assert_non_null(mkdtemp(folder));
    if (!registered) {
        registered = atexit(remove_folder) == 0;
    }
}

UNUSED_HELPER const char *own_folder(void)
{
    if (!folder[0]) {
        new_folder();
    }
    return folder;
}

/* Returns "<folder>/<name>" in one of the thread's four rotating buffers. */
UNUSED_HELPER const char *in_folder(const char *name)
{
    static _Thread_local char paths[4][512];
    static _Thread_local unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", own_folder(), name);
    return path;
}

UNUSED_HELPER void write_file(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0644), 0);
}

UNUSED_HELPER char *read_file(const char *path, size_t *out_bytes)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *out_bytes = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*out_bytes + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *out_bytes, file), *out_bytes);
    fclose(file);
    return bytes;
}

UNUSED_HELPER const char *test_plugin(const char *name)
{
    static _Thread_local char paths[4][512];
    static _Thread_local unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s/gpuhal-%s.so", GPUHAL_TEST_PLUGINS, name, name);
    return path;
}

UNUSED_HELPER void copy_file(const char *from, const char *to)
{
    size_t bytes;
    char *text = read_file(from, &bytes);
    write_file(to, text, bytes);
    free(text);
}

/* Writes a manifest into the test's folder for a library with any path. `more` contains additional lines. */
UNUSED_HELPER void write_manifest(const char *file, const char *name, const char *library, const char *more)
{
    char text[1024];
    int length = snprintf(text, sizeof text, "[plugin]\nname = %s\nlibrary = %s\nabi = 0.4\n%s", name, library, more);
    write_file(in_folder(file), text, (size_t)length);
}

UNUSED_HELPER gpuhal_settings own_settings(void)
{
    return (gpuhal_settings){
        .plugin_path = (char *)own_folder(),
        .helper_path = (char *)GPUHAL_HELPER,
        .isolation = GPUHAL_ISOLATION_ALWAYS,
        .helper_deadline_ns = PATIENT_NS,
    };
}

/* Returns the first candidate with the given name, or NULL. */
UNUSED_HELPER const gpuhal_candidate *find_candidate(const gpuhal_candidates *candidates, const char *name)
{
    for (size_t i = 0; i < candidates->count; i++) {
        if (candidates->list[i].name && strcmp(candidates->list[i].name, name) == 0) {
            return &candidates->list[i];
        }
    }
    return NULL;
}

UNUSED_HELPER const gpuhal_candidate *candidate_at(const gpuhal_candidates *candidates, const char *file)
{
    for (size_t i = 0; i < candidates->count; i++) {
        if (candidates->list[i].file && strcmp(candidates->list[i].file, file) == 0) {
            return &candidates->list[i];
        }
    }
    return NULL;
}

UNUSED_HELPER void print_candidates(const gpuhal_candidates *candidates)
{
    for (size_t i = 0; i < candidates->count; i++) {
        const gpuhal_candidate *candidate = &candidates->list[i];
        printf("# %s (%s): %s at %s: %s\n", candidate->name ? candidate->name : "-",
               candidate->file ? candidate->file : "-", gpuhal_plugin_state_name(candidate->state),
               gpuhal_plugin_stage_name(candidate->stage), candidate->reason ? candidate->reason : "");
    }
    for (size_t i = 0; i < candidates->note_count; i++) {
        printf("# note: %s\n", candidates->notes[i]);
    }
}

UNUSED_HELPER bool has_result(const gpuhal_candidate *candidate, gpuhal_plugin_state state, gpuhal_plugin_stage stage,
                               const char *words)
{
    return candidate && candidate->state == state && candidate->stage == stage &&
           (words ? candidate->reason && strstr(candidate->reason, words) : !candidate->reason);
}

UNUSED_HELPER void assert_result(const gpuhal_candidates *candidates, const gpuhal_candidate *candidate,
                                  gpuhal_plugin_state state, gpuhal_plugin_stage stage, const char *words)
{
    if (!has_result(candidate, state, stage, words)) {
        print_candidates(candidates);
        printf("# wanted: %s at %s: %s\n", gpuhal_plugin_state_name(state), gpuhal_plugin_stage_name(stage),
               words ? words : "");
        fail_msg("another result");
    }
}

UNUSED_HELPER void assert_listed(const gpuhal_candidates *candidates, const char *name)
{
    const gpuhal_candidate *candidate = find_candidate(candidates, name);
    assert_result(candidates, candidate, GPUHAL_PLUGIN_OK, GPUHAL_STAGE_DONE, NULL);
    assert_true(candidate->devices.count > 0);
}

UNUSED_HELPER gpuhal_candidates run_loader(const gpuhal_settings *settings)
{
    gpuhal_candidates candidates;
    gpuhal_status status = gpuhal_loader_run(settings, NULL, NULL, false, &candidates);
    if (status) {
        printf("# %s\n", gpuhal_last_error()->sentence);
    }
    assert_int_equal(status, GPUHAL_OK);
    return candidates;
}

/* Writes copy_0 to copy_<count - 1>, each with its own file and manifest. */
UNUSED_HELPER void write_copies(const char *plugin, int count)
{
    for (int i = 0; i < count; i++) {
        char name[32], library[48], manifest[48];
        snprintf(name, sizeof name, "copy_%d", i);
        snprintf(library, sizeof library, "%s.so", name);
        snprintf(manifest, sizeof manifest, "%s.gpuhal", name);
        copy_file(test_plugin(plugin), in_folder(library));
        write_manifest(manifest, name, library, "");
    }
}

#endif
