/* program/cache.c: keeps code compiled by drivers between runs, as files in a folder for this purpose.
 *
 * A file's name is the checksum of its key. The file contains the whole key (key.c), so it is not used if the key
 * differs in a single byte. The end of the file lists the files of the driver and of the compiler, including files that
 * may have been loaded during compilation. All listed files must be unchanged. A file is written under a temporary name
 * and then renamed, so that a file with a final name is always complete, even if a process was killed. A checksum
 * detects disk damage. Each use updates a file's modification time, and the least recently used files are removed when
 * the cache is too large. The cache removes or replaces only files that begin with its magic number; all other files in
 * the folder belong to the user. An error here never fails a program, because the driver can compile it.
 */
#include "program/program.h"

#include "base/error.h"
#include "base/log.h"
#include "registry/checksum.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_BYTES_MAX (UINT64_C(1) << 30)
/* Files left by a killed process are removed after this time. */
#define LEFT_SECONDS    3600
#define NAME_CHARACTERS 16u
#define NEW_PREFIX      "new-"

/* The beginning of a file. `magic` has another value on machines with another byte order. */
typedef struct header {
    uint64_t magic;
    uint64_t key_bytes, compiled_bytes, files_bytes;
    uint32_t checksum; /* of the bytes after the header */
    uint32_t reserved;
} header;
#define MAGIC UINT64_C(0x3330707564616867)
/* The magic number without the format version. */
#define MAGIC_OF_ALL UINT64_C(0x0000ffffffffffff)

/* Returns a path that contains two checksums with different seeds. If two keys have the same path, the newer file
 * replaces the older file. */
static char *path_of(const gpuhal_device *device, const gpuhal_program_key *key)
{
    const uint32_t first = gpuhal_checksum(0, key->text, key->bytes);
    const uint32_t second = gpuhal_checksum(~first, key->text, key->bytes / 2);
    return gpuhal_text_format("%s/%08x%08x", device->gpu->settings.program_cache, first, second);
}

/* ---- reading */

/* A driver must not load code that another user could have written. */
static bool is_ours(const char *path, bool directory)
{
    gpuhal_file_info info;
    return gpuhal_os_file_info(path, &info) == 0 && info.owner == gpuhal_os_user() && !info.group_writable &&
           !info.world_writable && (directory ? info.directory : info.regular);
}

static bool is_of_cache(const char *path)
{
    uint64_t magic = 0;
    size_t bytes = 0;
    gpuhal_file_info info;
    char *target = NULL;
    const bool regular = gpuhal_os_link_info(path, &info, &target) == 0 && info.regular;
    free(target);
    return regular && gpuhal_os_file_read_at(path, 0, &magic, sizeof magic, &bytes) == 0 && bytes == sizeof magic &&
           (magic & MAGIC_OF_ALL) == (MAGIC & MAGIC_OF_ALL);
}

/* Returns whether the header and the sections have `bytes` bytes together, and the code and the list of files are not
 * empty. The comparisons cannot overflow. */
static bool has_sizes(const header *head, uint64_t bytes)
{
    uint64_t rest = bytes - sizeof *head;
    if (head->key_bytes > rest || head->files_bytes > rest - head->key_bytes) {
        return false;
    }
    rest -= head->key_bytes + head->files_bytes;
    return head->files_bytes > 0 && head->compiled_bytes > 0 && head->compiled_bytes == rest;
}

/* Returns whether all listed files are unchanged. The list must end with a zero. */
static bool has_files(const char *files, uint64_t bytes)
{
    return files[bytes - 1] == 0 && gpuhal_driver_files_are_current(files);
}

static void *take_out(const char *text, size_t bytes, const gpuhal_program_key *key, uint64_t *out_bytes)
{
    header head;
    if (bytes < sizeof head) {
        return NULL;
    }
    memcpy(&head, text, sizeof head);
    const char *kept_key = text + sizeof head;
    if (head.magic != MAGIC || head.reserved || head.key_bytes != key->bytes || !has_sizes(&head, bytes) ||
        head.checksum != gpuhal_checksum(0, kept_key, bytes - sizeof head) ||
        memcmp(kept_key, key->text, key->bytes) != 0 ||
        !has_files(kept_key + head.key_bytes + head.compiled_bytes, head.files_bytes)) {
        return NULL;
    }
    void *compiled = malloc((size_t)head.compiled_bytes);
    if (compiled) {
        memcpy(compiled, kept_key + head.key_bytes, (size_t)head.compiled_bytes);
        *out_bytes = head.compiled_bytes;
    }
    return compiled;
}

void *gpuhal_program_cache_get(gpuhal_device *device, const gpuhal_program_key *key, uint64_t *out_bytes)
{
    char *text = NULL, *path = key->text ? path_of(device, key) : NULL;
    size_t bytes = 0;
    void *compiled = NULL;
    *out_bytes = 0;
    if (path && is_ours(device->gpu->settings.program_cache, true) && is_ours(path, false) &&
        gpuhal_os_file_read(path, FILE_BYTES_MAX, &text, &bytes) == 0) {
        compiled = take_out(text, bytes, key, out_bytes);
    }
    if (compiled) {
        gpuhal_os_file_touch(path);
    }
    free(text);
    free(path);
    return compiled;
}

/* ---- room */

typedef struct kept_file {
    char *path;
    uint64_t bytes;
    int64_t used_ns;
} kept_file;

static int by_use(const void *one, const void *other)
{
    const int64_t a = ((const kept_file *)one)->used_ns, b = ((const kept_file *)other)->used_ns;
    return (a > b) - (a < b);
}

static bool is_name(const char *name)
{
    return (strlen(name) == NAME_CHARACTERS && strspn(name, "0123456789abcdef") == NAME_CHARACTERS) ||
           strncmp(name, NEW_PREFIX, sizeof NEW_PREFIX - 1) == 0;
}

static uint64_t list_files(const char *folder, char **names, size_t count, kept_file *out_files, size_t *out_count)
{
    uint64_t total = 0;
    for (size_t i = 0; i < count; i++) {
        gpuhal_file_state state;
        char *path = is_name(names[i]) ? gpuhal_text_format("%s/%s", folder, names[i]) : NULL;
        if (!path || gpuhal_os_file_state(path, &state) != 0 || state.directory) {
            free(path);
            continue;
        }
        const int64_t age = (int64_t)gpuhal_os_wall_clock() - state.modified_ns / 1000000000;
        if (names[i][0] == NEW_PREFIX[0]) {
            if (age > LEFT_SECONDS && is_of_cache(path)) {
                (void)gpuhal_os_file_remove(path);
            }
            free(path);
            continue;
        }
        out_files[(*out_count)++] = (kept_file){path, state.bytes, state.modified_ns};
        total += state.bytes;
    }
    return total;
}

/* Removes the least recently used files until there is room for `bytes` more bytes. Returns false if there is no
 * room. */
static bool make_room(const gpuhal_settings *settings, uint64_t bytes)
{
    char **names = NULL;
    size_t name_count = 0, count = 0;
    if (bytes > settings->program_cache_bytes) {
        return false;
    }
    if (gpuhal_os_directory_names(settings->program_cache, &names, &name_count) != 0) {
        return true;
    }
    kept_file *files = calloc(name_count + 1, sizeof *files);
    uint64_t total = files ? list_files(settings->program_cache, names, name_count, files, &count) : 0;
    if (files && total > settings->program_cache_bytes - bytes) {
        qsort(files, count, sizeof *files, by_use);
    }
    for (size_t i = 0; i < count; i++) {
        const bool wanted = total > settings->program_cache_bytes - bytes;
        /* files that do not belong to the cache do not count either */
        if (wanted && (!is_of_cache(files[i].path) || gpuhal_os_file_remove(files[i].path) == 0)) {
            total -= files[i].bytes;
        }
        free(files[i].path);
    }
    free(files);
    gpuhal_os_names_free(names, name_count);
    return total <= settings->program_cache_bytes - bytes;
}

/* ---- writing */

static bool is_free(const char *path)
{
    gpuhal_file_info info;
    char *target = NULL;
    const int error = gpuhal_os_link_info(path, &info, &target);
    free(target);
    return error == ENOENT || is_of_cache(path);
}

static int write_file(gpuhal_device *device, const gpuhal_program_key *key, const char *block, size_t bytes)
{
    static _Atomic uint32_t number;
    const char *folder = device->gpu->settings.program_cache;
    char *path = path_of(device, key);
    char *fresh = gpuhal_text_format("%s/" NEW_PREFIX "%" PRId64 "-%u", folder, gpuhal_os_process_own(),
                                     atomic_fetch_add(&number, 1));
    int error = path && fresh ? gpuhal_os_directory_make(folder) : ENOMEM;
    if (!error && !is_ours(folder, true)) {
        error = EPERM;
    }
    if (!error && !is_free(path)) {
        error = EEXIST;
    }
    if (!error && !make_room(&device->gpu->settings, bytes)) {
        error = EFBIG;
    }
    error = error ? error : gpuhal_os_file_write_new(fresh, block, bytes);
    if (!error && (error = gpuhal_os_file_rename(fresh, path))) {
        (void)gpuhal_os_file_remove(fresh);
    }
    free(path);
    free(fresh);
    return error;
}

/* Gets the compiled code from the plugin in a block that begins with a gap of `before` bytes. Returns NULL if there is
 * no code to keep or host memory is short. */
static char *ask_plugin(gpuhal_program *program, size_t before, uint64_t *out_bytes)
{
    gpuhal_device *device = program->device;
    uint64_t bytes = 0;
    gpuhal_call call = gpuhal_device_begin_compiling(device); /* PoCL compiles when a binary is requested */
    gpuhal_status status =
        gpuhal_device_end_compiling(device, call, device->programs.program_compiled(program->handle, NULL, &bytes));
    const bool wanted = !status && bytes > program->kept_bytes && bytes < FILE_BYTES_MAX - before;
    char *block = wanted ? malloc(before + (size_t)bytes) : NULL;
    if (!status && bytes > program->kept_bytes) {
        atomic_store(&program->cached, false);
    }
    uint64_t room = bytes;
    if (block) {
        call = gpuhal_device_begin_compiling(device);
        status = gpuhal_device_end_compiling(device, call,
                                             device->programs.program_compiled(program->handle, block + before, &room));
    }
    if (status == GPUHAL_ERROR_DEVICE_LOST) {
        (void)gpuhal_device_failed(device, status, "keeping a program");
    }
    if (!block || status || room == 0 || room > bytes) { /* another thread has created a kernel in the meantime and will
                                                          * cache more code */
        free(block);
        return NULL;
    }
    *out_bytes = room;
    return block;
}

/* Without a usable folder every program is compiled in each run, so the first such failure is logged as a warning. */
static void log_failure(const gpuhal_program *program, int error, uint64_t bytes)
{
    gpuhal *gpu = program->device->gpu;
    const char *id = program->device->id, *folder = gpu->settings.program_cache;
    const uint64_t most = gpu->settings.program_cache_bytes;
    if (error == EFBIG && bytes > most) {
        gpuhal_log_line(gpu->log, GPUHAL_LEVEL_INFO,
                        "%s: the compiled program, %" PRIu64 " bytes, is not kept in %s, whose limit is %" PRIu64
                        " bytes (GPUHAL_PROGRAM_CACHE)",
                        id, bytes, folder, most);
        return;
    }
    gpuhal_log_line(gpu->log, atomic_exchange(&gpu->cache_warned, true) ? GPUHAL_LEVEL_INFO : GPUHAL_LEVEL_WARNING,
                    "%s: the compiled program is not kept in %s, so each run compiles it again: %s", id, folder,
                    error == EPERM    ? "the folder must belong to this user, and no other may write to it"
                    : error == EEXIST ? "a file there has the name of a cache file, but is not one"
                                      : strerror(error));
}

/* `block` contains the compiled code after a gap for the header and the key. Adds the header, the key and the list of
 * driver files, and returns the number of bytes. Returns 0 if the compiler's files are unknown, the environment
 * has changed since the key was created, or host memory is short. */
static size_t complete(gpuhal_program *program, char **block, uint64_t compiled)
{
    const gpuhal_program_key *key = &program->key;
    char *files = gpuhal_driver_files_now(gpuhal_backend_files(program->device->backend));
    const size_t files_bytes = files ? strlen(files) + 1 : 0, files_at = sizeof(header) + key->bytes + (size_t)compiled;
    char *larger =
        files && gpuhal_program_key_is_current(program->device, key) ? realloc(*block, files_at + files_bytes) : NULL;
    if (larger) {
        header head = {.magic = MAGIC, .key_bytes = key->bytes, .compiled_bytes = compiled, .files_bytes = files_bytes};
        *block = larger;
        memcpy(larger + sizeof head, key->text, key->bytes);
        memcpy(larger + files_at, files, files_bytes);
        head.checksum = gpuhal_checksum(0, larger + sizeof head, files_at + files_bytes - sizeof head);
        memcpy(larger, &head, sizeof head);
    }
    free(files);
    return larger ? files_at + files_bytes : 0;
}

/* The driver's files are listed after the compiler call, because the call may have loaded some of them. */
static void put(gpuhal_program *program)
{
    uint64_t compiled = 0;
    char *block = ask_plugin(program, sizeof(header) + program->key.bytes, &compiled);
    const size_t bytes = block ? complete(program, &block, compiled) : 0;
    if (bytes > 0) {
        const int error = write_file(program->device, &program->key, block, bytes);
        if (error) {
            log_failure(program, error, bytes);
        }
        program->kept_bytes = compiled; /* also set after a failure, because another attempt would fail too */
    } else if (block) {
        gpuhal_program_key_finish(&program->key);
    }
    free(block);
}

gpuhal_status gpuhal_program_cache_put(gpuhal_program *program)
{
    if (gpuhal_device_is_reachable(program->device)) {
        gpuhal_error_detail before;
        gpuhal_error_save(&before);
        gpuhal_mutex_lock(&program->mutex);
        if (program->key.text) {
            put(program);
        }
        gpuhal_mutex_unlock(&program->mutex);
        gpuhal_error_restore(&before);
    }
    return gpuhal_device_check(program->device);
}
