/* program/cache.c: what drivers compiled, kept between runs in files beside the registry.
 *
 * A file is named after its key's checksum and has the whole key in it, the code included: a file whose key differs in
 * one byte is not used. A file is written under another name and then renamed, so that whichever process is killed, and
 * whenever, what has the name is whole; a checksum finds what a disk damaged. What was used last has the latest time of
 * change, and what was used longest ago goes when there is too much. Nothing here fails a program: the driver compiles.
 */
#include "program/program.h"

#include "core/error.h"
#include "core/log.h"
#include "registry/checksum.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The library writes no larger file. */
#define FILE_BYTES_MAX (UINT64_C(1) << 30)
/* What a process that was killed has left is removed after so long. */
#define LEFT_SECONDS    3600
#define NAME_CHARACTERS 16u
#define NEW_PREFIX      "new-"

/* As it stands at the beginning of a file. The number in `magic` differs where bytes have another order. */
typedef struct header {
    uint64_t magic;
    uint64_t key_bytes, compiled_bytes;
    uint32_t checksum; /* of what follows the header */
    uint32_t reserved;
} header;
#define MAGIC UINT64_C(0x3130707564616867)

/* ---- keys */

static void add_fact(gpuhal_text *text, const gpuhal_facts *facts, gpuhal_key key)
{
    const char *value = gpuhal_facts_text(facts, key);
    gpuhal_text_printf(text, "%s\n", value ? value : "");
}

/* The driver is known by its version, and by the file that it was loaded from: distributions rebuild one version. */
static void add_driver(gpuhal_text *text, const gpuhal_device *device)
{
    gpuhal_file_state state = {0};
    const char *driver = gpuhal_backend_driver(device->backend);
    if (driver) {
        (void)gpuhal_os_file_state(driver, &state);
    }
    gpuhal_text_printf(text, "%s\n%s\n%" PRIu64 " %" PRIu64 " %" PRId64 "\n", device->plugin->version,
                       driver ? driver : "", state.inode, state.bytes, state.modified_ns);
}

void gpuhal_program_key_make(gpuhal_device *device, const gpuhal_code *code, gpuhal_program_key *out_key)
{
    *out_key = (gpuhal_program_key){0};
    if (!device->gpu->settings.program_cache || !device->ops.program_compiled) {
        return;
    }
    const gpuhal_facts *facts = &gpuhal_device_current(device)->facts;
    gpuhal_text text = {0};
    gpuhal_text_printf(&text, "%s %s\n", GPUHAL_VERSION, device->candidate->name);
    add_driver(&text, device);
    add_fact(&text, facts, GPUHAL_FACT_NAME);
    add_fact(&text, facts, GPUHAL_FACT_DRIVER_VERSION);
    add_fact(&text, facts, GPUHAL_FACT_API_VERSION);
    add_fact(&text, facts, GPUHAL_FACT_TARGET_ARCHITECTURE);
    add_fact(&text, facts, GPUHAL_FACT_DRIVER_UUID);
    gpuhal_text_printf(&text, "%s\n%s\n%zu ", code->format, code->target ? code->target : "",
                       code->options ? strlen(code->options) : 0);
    gpuhal_text_printf(&text, "%s\n", code->options ? code->options : "");
    gpuhal_text_append(&text, code->code, (size_t)code->bytes);
    out_key->bytes = text.length;
    out_key->text = text.failed ? NULL : gpuhal_text_take(&text);
    gpuhal_text_finish(&text);
}

void gpuhal_program_key_finish(gpuhal_program_key *key)
{
    free(key->text);
    *key = (gpuhal_program_key){0};
}

/* Two checksums with different beginnings. That two keys share a name costs the older one its file. */
static char *path_of(const gpuhal_device *device, const gpuhal_program_key *key)
{
    const uint32_t first = gpuhal_checksum(0, key->text, key->bytes);
    const uint32_t second = gpuhal_checksum(~first, key->text, key->bytes / 2);
    return gpuhal_text_format("%s/%08x%08x", device->gpu->settings.program_cache, first, second);
}

/* ---- reading */

/* Code that others could have put there is not given to a driver. */
static bool is_ours(const char *path, bool directory)
{
    gpuhal_file_info info;
    return gpuhal_os_file_info(path, &info) == 0 && info.owner == gpuhal_os_user() && !info.group_writable &&
           !info.world_writable && (directory ? info.directory : info.regular);
}

static void *take_out(const char *text, size_t bytes, const gpuhal_program_key *key, uint64_t *out_bytes)
{
    header head;
    if (bytes < sizeof head) {
        return NULL;
    }
    memcpy(&head, text, sizeof head);
    const uint64_t rest = bytes - sizeof head;
    if (head.magic != MAGIC || head.reserved || head.key_bytes != key->bytes || head.key_bytes > rest ||
        head.compiled_bytes != rest - head.key_bytes || head.compiled_bytes == 0 ||
        head.checksum != gpuhal_checksum(0, text + sizeof head, (size_t)rest) ||
        memcmp(text + sizeof head, key->text, key->bytes) != 0) {
        return NULL;
    }
    void *compiled = malloc((size_t)head.compiled_bytes);
    if (compiled) {
        memcpy(compiled, text + sizeof head + head.key_bytes, (size_t)head.compiled_bytes);
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

/* Only what has a name as we give them is counted, and removed. */
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
            if (age > LEFT_SECONDS) {
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

/* Removes what was used longest ago until there is room for `bytes` more. False: there is none. */
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
        if (total > settings->program_cache_bytes - bytes && gpuhal_os_file_remove(files[i].path) == 0) {
            total -= files[i].bytes;
        }
        free(files[i].path);
    }
    free(files);
    gpuhal_os_names_free(names, name_count);
    return total <= settings->program_cache_bytes - bytes;
}

/* ---- writing */

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

/* NULL: nothing to keep, or no memory. */
static char *ask_plugin(gpuhal_program *program, uint64_t *out_bytes)
{
    gpuhal_device *device = program->device;
    const size_t before = sizeof(header) + program->key.bytes;
    uint64_t bytes = 0;
    gpuhal_call call = gpuhal_call_blocking(device, 0);
    gpuhal_status status =
        gpuhal_device_result(device, call, device->ops.program_compiled(program->handle, NULL, &bytes));
    const bool wanted = !status && bytes > program->kept_bytes && bytes < FILE_BYTES_MAX - before;
    char *block = wanted ? malloc(before + (size_t)bytes) : NULL;
    if (!block) {
        return NULL;
    }
    uint64_t room = bytes;
    call = gpuhal_call_blocking(device, bytes);
    status = gpuhal_device_result(device, call, device->ops.program_compiled(program->handle, block + before, &room));
    if (status || room == 0 || room > bytes) { /* another thread created a kernel meanwhile, and keeps more */
        free(block);
        return NULL;
    }
    *out_bytes = room;
    return block;
}

/* A folder that cannot be used costs every program its compilation, so the first such failure is a warning. */
static void log_failure(const gpuhal_program *program, int error, uint64_t bytes)
{
    gpuhal *gpu = program->device->gpu;
    const char *id = program->device->id, *folder = gpu->settings.program_cache;
    const uint64_t most = gpu->settings.program_cache_bytes;
    if (error == EFBIG && bytes > most) {
        gpuhal_log_line(gpu->log, GPUHAL_LEVEL_INFO,
                        "%s: what was compiled, %" PRIu64 " bytes, is not kept in %s, which has %" PRIu64
                        " at most (GPUHAL_PROGRAM_CACHE)",
                        id, bytes, folder, most);
        return;
    }
    gpuhal_log_line(gpu->log, atomic_exchange(&gpu->cache_warned, true) ? GPUHAL_LEVEL_INFO : GPUHAL_LEVEL_WARNING,
                    "%s: what was compiled is not kept in %s, and is compiled in each run: %s", id, folder,
                    error == EPERM ? "the folder must belong to this user, and no other may write to it"
                                   : strerror(error));
}

static void put(gpuhal_program *program)
{
    uint64_t compiled = 0;
    char *block = ask_plugin(program, &compiled);
    if (!block) {
        return;
    }
    const gpuhal_program_key *key = &program->key;
    header head = {.magic = MAGIC, .key_bytes = key->bytes, .compiled_bytes = compiled};
    memcpy(block + sizeof head, key->text, key->bytes);
    head.checksum = gpuhal_checksum(0, block + sizeof head, key->bytes + (size_t)compiled);
    memcpy(block, &head, sizeof head);
    const size_t bytes = sizeof head + key->bytes + (size_t)compiled;
    const int error = write_file(program->device, key, block, bytes);
    if (error) {
        log_failure(program, error, bytes);
    }
    program->kept_bytes = compiled; /* also after a failure: it would come again */
    free(block);
}

void gpuhal_program_cache_put(gpuhal_program *program)
{
    if (!program->key.text || !gpuhal_device_is_reachable(program->device)) {
        return;
    }
    gpuhal_error_detail before;
    gpuhal_error_save(&before);
    gpuhal_mutex_lock(&program->mutex);
    put(program);
    gpuhal_mutex_unlock(&program->mutex);
    gpuhal_error_restore(&before);
}
