/* schedule/ledger_file.c: reads and writes the ledger's files (see ledger.h). `ledger` begins with a head, which is
 * written once, followed by the two copies, whose disk space is allocated in advance. A copy is written with one call.
 * If both copies have a correct checksum, the one with the higher generation is valid. */
#include "schedule/ledger.h"

#include "device/for_schedule.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct head {
    char magic[16];
    uint32_t version, byte_order;
    uint32_t device_bytes, record_bytes, item_bytes, reserved;
    uint64_t copy_bytes;
} head;

typedef struct copy_head {
    uint64_t checksum; /* of all bytes that follow */
    uint64_t generation, next_ticket;
    uint32_t device_count, record_count, item_count, reserved;
    uint64_t liveness_inode, liveness_device;
} copy_head;

enum { FIRST_COPY = 4096, COPIES = 2 };
#define PAYLOAD_MAX                                                                                                    \
    (sizeof((gpuhal_ledger_state *)0)->devices + sizeof((gpuhal_ledger_state *)0)->records +                           \
     sizeof((gpuhal_ledger_state *)0)->items)
#define COPY_BYTES (((sizeof(copy_head) + PAYLOAD_MAX) / 4096 + 1) * 4096)

_Static_assert(sizeof(gpuhal_ledger_device) % 8 == 0 && sizeof(gpuhal_ledger_record) % 8 == 0 &&
                   sizeof(gpuhal_ledger_item) % 8 == 0 && sizeof(copy_head) % 8 == 0,
               "a copy consists of whole words");
_Static_assert(sizeof(head) <= GPUHAL_LEDGER_GATE * sizeof(uint32_t) &&
                   (GPUHAL_LEDGER_GATE + 1) * sizeof(uint32_t) <= FIRST_COPY,
               "nothing is ever written to the gate");

static const head the_head = {.magic = "gpuhal ledger\n",
                              .version = 3,
                              .byte_order = 0x01020304,
                              .device_bytes = sizeof(gpuhal_ledger_device),
                              .record_bytes = sizeof(gpuhal_ledger_record),
                              .item_bytes = sizeof(gpuhal_ledger_item),
                              .copy_bytes = COPY_BYTES};

gpuhal_status gpuhal_ledger_files_failed(const char *path, const char *what, int error)
{
    const char *hint = gpuhal_os_disk_is_full(error) || error == EFBIG ? "free space there"
                       : error == ENOMEM || error == EMFILE || error == ENFILE
                           ? "the process or the machine is at a limit"
                           : "name another folder with GPUHAL_LEDGER";
    gpuhal_error_set(GPUHAL_ERROR_FILE, "leases: %s cannot be %s: %s (%d); %s", path, what, strerror(error), error,
                     hint);
    gpuhal_error_add_call(what, error, strerror(error));
    return GPUHAL_ERROR_FILE;
}

gpuhal_status gpuhal_ledger_files_init(gpuhal_ledger_files *files, const char *root, const char *folder)
{
    *files = (gpuhal_ledger_files){.ledger = -1, .liveness = -1, .spare = -1};
    const gpuhal_status status = gpuhal_ledger_folder_find(root, folder, &files->folder, &files->shared);
    if (status) {
        return status;
    }
    files->ledger_path = files->folder ? gpuhal_text_format("%s/ledger", files->folder) : NULL;
    files->liveness_path = files->folder ? gpuhal_text_format("%s/liveness", files->folder) : NULL;
    files->image = malloc(COPY_BYTES);
    return files->ledger_path && files->liveness_path && files->image ? GPUHAL_OK : gpuhal_error_host_memory();
}

static void close_one(intptr_t *file)
{
    if (*file >= 0) {
        gpuhal_os_descriptor_close(*file);
        *file = -1;
    }
}

void gpuhal_ledger_files_close(gpuhal_ledger_files *files)
{
    gpuhal_os_words_unmap(files->words, GPUHAL_LEDGER_RECORDS);
    gpuhal_os_words_unmap(files->gate, GPUHAL_LEDGER_GATE + 1);
    files->words = files->gate = NULL;
    close_one(&files->ledger);
    close_one(&files->liveness);
    close_one(&files->spare);
    files->known = 0;
}

void gpuhal_ledger_files_lose(gpuhal_ledger_files *files)
{
    gpuhal_ledger_files_close(files);
    files->inode = 0; /* the next file may reuse the inode number */
}

bool gpuhal_ledger_files_are_paired(const gpuhal_ledger_files *files, const gpuhal_ledger_state *state)
{
    return state->liveness_inode == files->inode && state->liveness_device == files->device;
}

void gpuhal_ledger_files_finish(gpuhal_ledger_files *files)
{
    gpuhal_ledger_files_close(files);
    free(files->folder);
    free(files->ledger_path);
    free(files->liveness_path);
    free(files->image);
}

/* ---- opening */

static gpuhal_status foreign(const char *path, const char *what)
{
    return gpuhal_error_set(GPUHAL_ERROR_FILE,
                            "leases: %s %s, so others could change it; name another folder with GPUHAL_LEDGER", path,
                            what);
}

/* Users share leases through a folder that root owns and a group can write to. *out_mode is the mode for files in the
 * folder. */
static gpuhal_status check_folder(const gpuhal_ledger_files *files, uint32_t *out_mode)
{
    gpuhal_file_info info;
    int error = gpuhal_os_directory_make(files->folder);
    error = error ? error : gpuhal_os_file_info(files->folder, &info);
    if (error) {
        return gpuhal_ledger_files_failed(files->folder, "used", error);
    }
    if (!info.directory) {
        return gpuhal_ledger_files_failed(files->folder, "used", ENOTDIR);
    }
    const bool of_root = files->shared && info.owner == 0;
    if (info.owner != gpuhal_os_user() && !of_root) {
        return foreign(files->folder, "belongs to another user");
    }
    if (info.world_writable || (info.group_writable && !of_root)) {
        return foreign(files->folder, "may be written to by other users");
    }
    *out_mode = info.group_writable ? 0660 : 0600;
    return GPUHAL_OK;
}

static gpuhal_status open_one(const char *path, uint32_t mode, intptr_t *out_file, gpuhal_file_info *out_info)
{
    gpuhal_file_info info;
    bool unlinked;
    int error = gpuhal_os_shared_open(path, mode, out_file);
    error = error ? error : gpuhal_os_shared_info(*out_file, &info, &unlinked);
    if (error) {
        return gpuhal_ledger_files_failed(path, "opened", error);
    }
    *out_info = info;
    if (info.owner != gpuhal_os_user() && info.owner != 0 && mode == 0600) {
        return foreign(path, "belongs to another user");
    }
    if (info.world_writable) {
        return foreign(path, "may be written to by other users");
    }
    const char *network = gpuhal_os_network_file_system(*out_file);
    return network ? gpuhal_error_set(GPUHAL_ERROR_FILE,
                                      "leases: %s lies on a network file system (%s), which may not show the locks and "
                                      "changes of other processes; name a folder of this machine with GPUHAL_LEDGER",
                                      path, network)
                   : GPUHAL_OK;
}

gpuhal_status gpuhal_ledger_files_open(gpuhal_ledger_files *files)
{
    gpuhal_file_info info = {0};
    uint32_t mode = 0;
    if (files->ledger >= 0) {
        return GPUHAL_OK;
    }
    gpuhal_status status = check_folder(files, &mode);
    status = status ? status : open_one(files->ledger_path, mode, &files->ledger, &info);
    status = status ? status : open_one(files->liveness_path, mode, &files->liveness, &info);
    if (!status) {
        files->words = gpuhal_os_words_map(files->liveness, GPUHAL_LEDGER_RECORDS); /* works even if the file is still
                                                                                     * empty */
        files->gate = gpuhal_os_words_map(files->ledger, GPUHAL_LEDGER_GATE + 1);
    }
    if (!status && (files->inode != info.inode || files->device != info.device)) {
        files->epoch++;
        files->inode = info.inode;
        files->device = info.device;
    }
    if (status) {
        gpuhal_ledger_files_close(files);
    }
    return status;
}

void gpuhal_ledger_files_close_liveness(gpuhal_ledger_files *files, intptr_t file, uint32_t place, bool reusable)
{
    const int error = gpuhal_os_byte_unlock(file, place);
    if (!error && reusable && files->spare < 0) {
        files->spare = file;
    } else {
        gpuhal_os_descriptor_close(file);
    }
}

int gpuhal_ledger_files_open_liveness(gpuhal_ledger_files *files, bool inherited, intptr_t *out_file)
{
    gpuhal_file_info own, again;
    if (files->spare >= 0 && !inherited) {
        *out_file = files->spare;
        files->spare = -1;
        return 0;
    }
    bool unlinked;
    int error = gpuhal_os_shared_open(files->liveness_path, 0, out_file);
    if (error) {
        return error;
    }
    /* If another file has this name now, it does not contain the words and bytes in use. */
    error = gpuhal_os_shared_info(files->liveness, &own, &unlinked);
    error = error ? error : gpuhal_os_shared_info(*out_file, &again, &unlinked);
    error = error ? error : own.inode == again.inode && own.device == again.device ? 0 : ENOENT;
    if (error) {
        close_one(out_file);
    }
    return error;
}

/* ---- copies */

/* Every step can be reversed, so a change of a single word always changes the checksum. */
static uint64_t checksum(const unsigned char *bytes, size_t count)
{
    uint64_t sum = count * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 0; i + 8 <= count; i += 8) {
        uint64_t word;
        memcpy(&word, bytes + i, sizeof word);
        sum = (sum ^ word) * UINT64_C(0xff51afd7ed558ccd);
        sum ^= sum >> 32;
    }
    return sum;
}

static uint64_t copy_offset(uint32_t copy)
{
    return FIRST_COPY + (uint64_t)copy * COPY_BYTES;
}

static bool read_all(intptr_t file, uint64_t offset, void *to, uint64_t bytes, int *out_error)
{
    uint64_t done = 0;
    *out_error = gpuhal_os_file_read_piece(file, offset, to, bytes, &done);
    return !*out_error && done == bytes;
}

static bool counts_are_possible(const copy_head *own)
{
    return own->device_count <= GPUHAL_LEDGER_DEVICES && own->record_count <= GPUHAL_LEDGER_RECORDS &&
           own->item_count <= GPUHAL_LEDGER_ITEMS;
}

static size_t payload_bytes(const copy_head *own)
{
    return own->device_count * sizeof(gpuhal_ledger_device) + own->record_count * sizeof(gpuhal_ledger_record) +
           own->item_count * sizeof(gpuhal_ledger_item);
}

/* Returns false if the copy is incomplete or inconsistent. Then the next ticket stays unchanged, and a new table begins
 * with it. */
static bool read_copy(gpuhal_ledger_files *files, uint32_t copy, const copy_head *own, gpuhal_ledger_state *state,
                      int *out_error)
{
    *out_error = 0;
    if (own->generation == 0 || !counts_are_possible(own)) {
        return false;
    }
    const size_t bytes = sizeof *own + payload_bytes(own);
    if (!read_all(files->ledger, copy_offset(copy), files->image, bytes, out_error) ||
        memcmp(files->image, own, sizeof *own) != 0 ||
        checksum(files->image + sizeof own->checksum, bytes - sizeof own->checksum) != own->checksum) {
        return false;
    }
    const unsigned char *at = files->image + sizeof *own;
    const uint64_t before = state->next_ticket;
    state->generation = own->generation;
    state->next_ticket = own->next_ticket;
    state->device_count = own->device_count;
    state->record_count = own->record_count;
    state->item_count = own->item_count;
    state->liveness_inode = own->liveness_inode;
    state->liveness_device = own->liveness_device;
    memcpy(state->devices, at, own->device_count * sizeof *state->devices);
    at += own->device_count * sizeof *state->devices;
    memcpy(state->records, at, own->record_count * sizeof *state->records);
    at += own->record_count * sizeof *state->records;
    memcpy(state->items, at, own->item_count * sizeof *state->items);
    const bool sound = gpuhal_ledger_is_sound(state);
    state->next_ticket = sound ? own->next_ticket : before;
    return sound;
}

gpuhal_status gpuhal_ledger_files_store(gpuhal_ledger_files *files, gpuhal_ledger_state *state)
{
    const uint32_t copy = 1 - files->copy;
    copy_head own = {.generation = state->generation + 1,
                     .next_ticket = state->next_ticket,
                     .device_count = state->device_count,
                     .record_count = state->record_count,
                     .item_count = state->item_count,
                     .liveness_inode = state->liveness_inode,
                     .liveness_device = state->liveness_device};
    const size_t bytes = sizeof own + payload_bytes(&own);
    unsigned char *at = files->image + sizeof own;
    memcpy(at, state->devices, own.device_count * sizeof *state->devices);
    at += own.device_count * sizeof *state->devices;
    memcpy(at, state->records, own.record_count * sizeof *state->records);
    at += own.record_count * sizeof *state->records;
    memcpy(at, state->items, own.item_count * sizeof *state->items);
    memcpy(files->image, &own, sizeof own);
    own.checksum = checksum(files->image + sizeof own.checksum, bytes - sizeof own.checksum);
    memcpy(files->image, &own.checksum, sizeof own.checksum);
    const int error = gpuhal_os_shared_write(files->ledger, copy_offset(copy), files->image, bytes);
    if (error) {
        /* The incomplete write must not count as damage of the table. */
        const copy_head none = {0};
        (void)gpuhal_os_shared_write(files->ledger, copy_offset(copy), &none, sizeof none);
        files->known = 0;
        return gpuhal_ledger_files_failed(files->ledger_path, "written", error);
    }
    state->generation++;
    files->copy = copy;
    files->known = own.checksum;
    return GPUHAL_OK;
}

/* ---- damage */

static bool has_unknown_leases(const gpuhal_ledger_files *files, const gpuhal_ledger_state *state)
{
    bool known[GPUHAL_LEDGER_RECORDS] = {false}, locked = true;
    if (gpuhal_os_byte_is_locked(files->liveness, 0, GPUHAL_LEDGER_RECORDS, &locked) == 0 && !locked) {
        return false;
    }
    for (uint32_t i = 0; i < state->record_count; i++) {
        known[state->records[i].place] = true;
    }
    for (uint32_t place = 0; place < GPUHAL_LEDGER_RECORDS; place++) {
        locked = true;
        if (!known[place] && (gpuhal_os_byte_is_locked(files->liveness, place, 1, &locked) || locked)) {
            return true;
        }
    }
    return false;
}

static gpuhal_status damaged(const gpuhal_ledger_files *files)
{
    return gpuhal_error_set(GPUHAL_ERROR_FILE,
                            "leases: %s is damaged while leases in it are in use; end the programs that hold them "
                            "(fuser %s lists them), then the next lease replaces the file",
                            files->ledger_path, files->liveness_path);
}

/* Returns the error for a file of another program. The file stays unchanged. */
static gpuhal_status not_ours(const char *path)
{
    return gpuhal_error_set(GPUHAL_ERROR_FILE,
                            "leases: %s is not a file of this library; remove it, or name another folder with "
                            "GPUHAL_LEDGER",
                            path);
}

/* Gives `liveness` its size. The file has no head. If the table does not name the file, it is either new or already
 * has this size. */
static gpuhal_status size_liveness(const gpuhal_ledger_files *files, bool is_named)
{
    const uint64_t wanted = (uint64_t)GPUHAL_LEDGER_RECORDS * sizeof(uint32_t);
    uint64_t bytes = 0;
    int error = gpuhal_os_file_size(files->liveness, &bytes);
    if (!error && bytes == wanted) {
        return GPUHAL_OK;
    }
    if (!error && bytes > 0 && !is_named) {
        return not_ours(files->liveness_path);
    }
    error = error ? error : gpuhal_os_file_truncate(files->liveness, wanted);
    error = error ? error : gpuhal_os_shared_allocate(files->liveness, wanted);
    return error ? gpuhal_ledger_files_failed(files->liveness_path, "written", error) : GPUHAL_OK;
}

static gpuhal_status begin_anew(gpuhal_ledger_files *files, gpuhal_ledger_state *state)
{
    const gpuhal_status status = size_liveness(files, false);
    if (status) {
        return status;
    }
    state->device_count = state->record_count = state->item_count = 0;
    state->next_ticket = state->next_ticket > 0 ? state->next_ticket : 1;
    if (has_unknown_leases(files, state)) {
        return damaged(files);
    }
    /* Clears both copies, because an older copy with a higher generation would be valid. */
    int error = gpuhal_os_file_truncate(files->ledger, 0);
    error = error ? error : gpuhal_os_shared_write(files->ledger, 0, &the_head, sizeof the_head);
    error = error ? error : gpuhal_os_shared_allocate(files->ledger, copy_offset(COPIES));
    if (error) {
        (void)gpuhal_os_file_truncate(files->ledger, 0);
        return gpuhal_ledger_files_failed(files->ledger_path, "written", error);
    }
    state->generation = 0;
    state->liveness_inode = files->inode;
    state->liveness_device = files->device;
    files->copy = 1;
    return gpuhal_ledger_files_store(files, state);
}

/* Returns OK if the head has this version. Also returns OK for an empty file and for a damaged ledger, and sets
 * *out_new. */
static gpuhal_status check_head(gpuhal_ledger_files *files, bool *out_new)
{
    head found = {0};
    uint64_t got = 0;
    const int error = gpuhal_os_file_read_piece(files->ledger, 0, &found, sizeof found, &got);
    if (error) {
        return gpuhal_ledger_files_failed(files->ledger_path, "read", error);
    }
    if (memcmp(found.magic, the_head.magic, got < sizeof found.magic ? (size_t)got : sizeof found.magic) != 0) {
        return not_ours(files->ledger_path);
    }
    *out_new = got < sizeof found || memcmp(&found, &the_head, sizeof found) != 0;
    return *out_new && got == sizeof found && found.version != the_head.version &&
                   found.byte_order == the_head.byte_order
               ? gpuhal_error_set(GPUHAL_ERROR_FILE,
                                  "leases: %s is of version %" PRIu32 ", this library writes version %" PRIu32
                                  "; end the programs that use it and remove it, or name another folder with "
                                  "GPUHAL_LEDGER",
                                  files->ledger_path, found.version, the_head.version)
               : GPUHAL_OK;
}

/* Recovers the ledger if the newer copy or both copies are incomplete. */
static gpuhal_status recover(gpuhal_ledger_files *files, gpuhal_ledger_state *state, bool has_older)
{
    if (!has_older) {
        return begin_anew(files, state);
    }
    const gpuhal_status status = size_liveness(files, gpuhal_ledger_files_are_paired(files, state));
    if (status) {
        return status;
    }
    return has_unknown_leases(files, state) ? damaged(files) : gpuhal_ledger_files_store(files, state);
}

gpuhal_status gpuhal_ledger_files_load(gpuhal_ledger_files *files, gpuhal_ledger_state *state)
{
    copy_head heads[COPIES] = {{0}};
    bool is_new = false;
    int error = 0;
    for (uint32_t copy = 0; copy < COPIES; copy++) {
        if (!read_all(files->ledger, copy_offset(copy), &heads[copy], sizeof *heads, &error)) {
            heads[copy] = (copy_head){0};
        }
        if (error) {
            return gpuhal_ledger_files_failed(files->ledger_path, "read", error);
        }
    }
    const uint32_t newer = heads[1].generation > heads[0].generation;
    /* No process has written since this process read or wrote the state. */
    if (files->known > 0 && newer == files->copy && heads[newer].checksum == files->known &&
        heads[newer].generation == state->generation) {
        return GPUHAL_OK;
    }
    files->known = 0;
    gpuhal_status status = check_head(files, &is_new);
    if (status || is_new) {
        return status ? status : begin_anew(files, state);
    }
    for (uint32_t i = 0; i < COPIES; i++) {
        const uint32_t copy = i == 0 ? newer : 1 - newer;
        const bool whole = read_copy(files, copy, &heads[copy], state, &error);
        if (error) {
            return gpuhal_ledger_files_failed(files->ledger_path, "read", error);
        }
        if (whole) {
            files->copy = copy;
            files->known = heads[copy].checksum;
            return i == 0 ? size_liveness(files, gpuhal_ledger_files_are_paired(files, state))
                          : recover(files, state, true);
        }
    }
    return recover(files, state, false);
}
