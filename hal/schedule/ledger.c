/* schedule/ledger.c: implements the ledger's critical section between threads and processes. Every section that
 * gpuhal_ledger_begin() begins removes expired leases. Sections also remove leases of dead processes if necessary, and
 * wake granted requests. */
#include "schedule/ledger.h"

#include "device/for_schedule.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* A section takes microseconds. A process that is stopped in a section must not block other processes. */
#define LOCK_NS        UINT64_C(2000000000)
#define FIRST_PAUSE_NS UINT64_C(10000)
#define PAUSE_NS       UINT64_C(16000000)
enum { SWEPT = 8 /* requests checked by one sweep, anywhere in the table */ };

gpuhal_status gpuhal_ledger_init(gpuhal_ledger *ledger, const char *root, const char *folder)
{
    gpuhal_mutex_init(&ledger->mutex);
    ledger->space = gpuhal_os_process_space();
    ledger->pid = gpuhal_os_process_own();
    ledger->user = gpuhal_os_user();
    ledger->started = gpuhal_os_process_started(ledger->pid);
    ledger->state = calloc(1, sizeof *ledger->state);
    ledger->places = calloc(GPUHAL_LEDGER_RECORDS, sizeof *ledger->places);
    const gpuhal_status status = gpuhal_ledger_files_init(&ledger->files, root, folder);
    return status ? status : ledger->state && ledger->places ? GPUHAL_OK : gpuhal_error_host_memory();
}

void gpuhal_ledger_finish(gpuhal_ledger *ledger)
{
    gpuhal_ledger_files_finish(&ledger->files);
    free(ledger->state);
    free(ledger->places);
    gpuhal_mutex_finish(&ledger->mutex);
}

/* ---- the lock */

static uint64_t earlier(uint64_t one, uint64_t other)
{
    return one < other ? one : other;
}

/* The reported time counts from the first unsuccessful try, which may belong to an earlier call of this object. */
static gpuhal_status locked(gpuhal_ledger *ledger, uint64_t begin_ns, uint64_t now_ns)
{
    ledger->locked_ns = ledger->locked_ns > 0 ? ledger->locked_ns : begin_ns;
    if (now_ns - begin_ns >= LOCK_NS) {
        ledger->gave_up_ns = now_ns;
    }
    return gpuhal_error_set(
        GPUHAL_ERROR_BUSY,
        "leases: another process, or another object of this one, had %s locked at every try in "
        "%" PRIu64
        " ms; if a stopped process has the lock, continue or end it (fuser lists the processes that use the file)",
        ledger->files.ledger_path, (now_ns - ledger->locked_ns) / 1000000);
}

/* The kernel's blocking lock call has no timeout. So a thread sleeps until the unlocking thread wakes it, and also
 * retries periodically, since a killed process does not wake it. It must not retry often: many such threads would take
 * CPU time from the lock's owner. For LOCK_NS after one thread has waited LOCK_NS in vain, threads try only once. */
static gpuhal_status lock_file(gpuhal_ledger *ledger, uint64_t until_ns)
{
    const gpuhal_ledger_files *files = &ledger->files;
    const uint64_t begin = gpuhal_os_monotonic_ns();
    const bool once = ledger->gave_up_ns > 0 && begin - ledger->gave_up_ns < LOCK_NS;
    const uint64_t end = once ? begin : earlier(until_ns, begin + LOCK_NS);
    for (uint64_t pause = FIRST_PAUSE_NS;; pause = earlier(2 * pause, PAUSE_NS)) {
        const uint32_t word = gpuhal_ledger_word(files->ledger, GPUHAL_LEDGER_GATE);
        const int error = gpuhal_os_byte_lock(files->ledger, 0);
        if (!error) {
            ledger->locked_ns = ledger->gave_up_ns = 0;
            return GPUHAL_OK;
        }
        if (error != EAGAIN) {
            return gpuhal_error_set(GPUHAL_ERROR_FILE,
                                    "leases: the file system of %s has no locks (error %d); name a folder on another "
                                    "one with GPUHAL_LEDGER",
                                    files->ledger_path, error);
        }
        const uint64_t now = gpuhal_os_monotonic_ns();
        if (now >= end) {
            return locked(ledger, begin, now);
        }
        gpuhal_os_word_wait(files->gate, GPUHAL_LEDGER_GATE, word, earlier(pause, end - now));
    }
}

static void unlock(gpuhal_ledger *ledger)
{
    const int error = gpuhal_os_byte_unlock(ledger->files.ledger, 0);
    gpuhal_os_word_wake(ledger->files.gate, GPUHAL_LEDGER_GATE);
    if (error) {
        gpuhal_ledger_files_close(&ledger->files);
    }
}

static bool is_linked(intptr_t file)
{
    gpuhal_file_info info;
    bool unlinked = false;
    return gpuhal_os_shared_info(file, &info, &unlinked) == 0 && !unlinked;
}

/* If the files were removed, opens new files and leaves the removed files to the processes that have opened them. */
static gpuhal_status lock(gpuhal_ledger *ledger, uint64_t until_ns)
{
    for (int tries = 0; tries < 4; tries++) {
        gpuhal_status status = gpuhal_ledger_files_open(&ledger->files);
        status = status ? status : lock_file(ledger, until_ns);
        if (status) {
            return status;
        }
        if (is_linked(ledger->files.ledger) && is_linked(ledger->files.liveness)) {
            return GPUHAL_OK;
        }
        gpuhal_ledger_files_lose(&ledger->files);
    }
    return gpuhal_error_set(GPUHAL_ERROR_FILE, "leases: %s or %s is removed again and again", ledger->files.ledger_path,
                            ledger->files.liveness_path);
}

/* ---- liveness */

static bool process_lives(const gpuhal_ledger *ledger, const gpuhal_ledger_record *record)
{
    if ((record->flags & GPUHAL_LEASE_INHERIT) || record->space == 0 || record->space != ledger->space) {
        return true;
    }
    const bool is_own = record->pid == ledger->pid && record->started == ledger->started;
    const uint64_t started =
        is_own || record->started == UINT64_MAX ? UINT64_MAX : gpuhal_os_process_started(record->pid);
    return started == UINT64_MAX || started == record->started;
}

/* If the state of the byte is unknown, the byte counts as locked. */
static bool has_its_byte(const gpuhal_ledger *ledger, const gpuhal_ledger_record *record)
{
    bool locked = true;
    return gpuhal_os_byte_is_locked(ledger->files.liveness, record->place, 1, &locked) != 0 || locked;
}

/* A forked child inherits its parent's descriptors and thereby keeps the locks. Therefore, the process is also checked,
 * unless children inherit the lease. */
static bool is_alive(void *user, const gpuhal_ledger_record *record)
{
    const gpuhal_ledger *ledger = user;
    return record->ticket == ledger->fresh || (has_its_byte(ledger, record) && process_lives(ledger, record));
}

static void remove_record(gpuhal_ledger *ledger, const gpuhal_ledger_record *record)
{
    gpuhal_ledger_remove(ledger->state, record->ticket);
    ledger->changed = true;
}

static void remove_held(gpuhal_ledger *ledger, bool (*ends)(gpuhal_ledger *, const gpuhal_ledger_record *))
{
    for (uint32_t i = ledger->state->record_count; i > 0; i--) {
        const gpuhal_ledger_record *record = &ledger->state->records[i - 1];
        if (record->state == GPUHAL_RECORD_HELD && ends(ledger, record)) {
            remove_record(ledger, record);
        }
    }
}

static bool is_dead(gpuhal_ledger *ledger, const gpuhal_ledger_record *record)
{
    return !is_alive(ledger, record);
}

bool gpuhal_ledger_drop_dead(gpuhal_ledger *ledger, const gpuhal_ledger_record *record)
{
    const bool dead = is_dead(ledger, record);
    if (dead) {
        remove_record(ledger, record);
    }
    return dead;
}

static bool is_expired(gpuhal_ledger *ledger, const gpuhal_ledger_record *record)
{
    (void)ledger;
    return record->expires_ns > 0 && record->expires_ns <= gpuhal_os_boot_ns();
}

void gpuhal_ledger_settle(gpuhal_ledger *ledger, bool reap)
{
    if (reap) {
        remove_held(ledger, is_dead);
    }
    ledger->place_count += gpuhal_grant_settle(ledger->state, gpuhal_os_boot_ns(), is_alive, ledger,
                                               ledger->places + ledger->place_count, &ledger->changed);
}

static bool waits(const gpuhal_ledger_record *record)
{
    return record->state == GPUHAL_RECORD_WAITS;
}

/* Checks a few requests anywhere in the table, different ones each time. Otherwise, requests of dead processes would
 * stay until they could be granted. Checking the byte is sufficient, and takes a tenth of the time of checking the
 * process. */
static void sweep_some(gpuhal_ledger *ledger)
{
    gpuhal_ledger_state *state = ledger->state;
    const uint64_t turn = state->generation + ledger->sweeps++;
    uint32_t at = (uint32_t)(turn * UINT64_C(0x9e3779b97f4a7c15) >> 32);
    for (uint32_t i = 0; i < SWEPT && state->record_count > 0; i++, at++) {
        const gpuhal_ledger_record *record = &state->records[at % state->record_count];
        if (waits(record) && record->ticket != ledger->fresh && !has_its_byte(ledger, record)) {
            remove_record(ledger, record);
        }
    }
}

static bool is_of_one(const gpuhal_ledger_record *const *list, uint32_t count, const gpuhal_ledger_record *record)
{
    bool found = false;
    for (uint32_t i = 0; i < count; i++) {
        found = found ||
                (list[i]->pid == record->pid && list[i]->started == record->started && list[i]->space == record->space);
    }
    return found;
}

uint32_t gpuhal_ledger_sweep(gpuhal_ledger *ledger, uint64_t ticket)
{
    gpuhal_ledger_state *state = ledger->state;
    const gpuhal_ledger_record *lookers[GPUHAL_LEDGER_LOOKERS];
    const bool full = gpuhal_ledger_is_full(state);
    uint32_t count = 0, before = 0, requests = 0;
    sweep_some(ledger);
    for (uint32_t at = 0; at < state->record_count && (full || count < GPUHAL_LEDGER_LOOKERS);) {
        const gpuhal_ledger_record *record = &state->records[at];
        if (waits(record) && !is_of_one(lookers, count, record)) {
            if (!is_alive(ledger, record)) {
                remove_record(ledger, record); /* the next record has moved to this index */
                continue;
            }
            if (count < GPUHAL_LEDGER_LOOKERS) {
                before += record->ticket < ticket;
                lookers[count++] = record;
            }
        }
        at++;
    }
    for (uint32_t i = 0; i < state->record_count && state->records[i].ticket < ticket; i++) {
        requests += waits(&state->records[i]);
    }
    return before < GPUHAL_LEDGER_LOOKERS ? before : requests;
}

/* ---- begin and end */

static gpuhal_status lock_and_load(gpuhal_ledger *ledger, uint64_t until_ns)
{
    gpuhal_status status = lock(ledger, until_ns);
    if (!status) {
        status = gpuhal_ledger_files_load(&ledger->files, ledger->state);
        if (status) {
            unlock(ledger);
        }
    }
    return status;
}

static gpuhal_status replaced(const gpuhal_ledger *ledger, const gpuhal_ledger_record *record)
{
    return gpuhal_error_set(GPUHAL_ERROR_FILE,
                            "leases: %s was removed or replaced while process %" PRId64
                            " has a lease; end that process, or remove %s if it has ended",
                            ledger->files.liveness_path, record->pid, ledger->files.ledger_path);
}

/* Handles a new `liveness` file, which does not contain the bytes of the records. Requests can no longer be woken, and
 * only the existence of processes shows whether leases are held. If no lease is held, adopts the new file. */
static gpuhal_status pair(gpuhal_ledger *ledger, bool leaves)
{
    gpuhal_ledger_state *state = ledger->state;
    const gpuhal_ledger_record *living = NULL;
    for (uint32_t i = state->record_count; i > 0; i--) {
        const gpuhal_ledger_record *record = &state->records[i - 1];
        if (record->state == GPUHAL_RECORD_HELD && !is_expired(ledger, record) && process_lives(ledger, record)) {
            living = record;
        }
    }
    if (living) {
        return leaves ? GPUHAL_OK : replaced(ledger, living);
    }
    state->record_count = state->item_count = 0;
    state->liveness_inode = ledger->files.inode;
    state->liveness_device = ledger->files.device;
    ledger->changed = true;
    return GPUHAL_OK;
}

static gpuhal_status begin(gpuhal_ledger *ledger, uint64_t until_ns, bool leaves)
{
    gpuhal_mutex_lock(&ledger->mutex);
    ledger->changed = false;
    ledger->place_count = 0;
    ledger->fresh = 0;
    gpuhal_status status = lock_and_load(ledger, until_ns);
    if (!status && !gpuhal_ledger_files_are_paired(&ledger->files, ledger->state)) {
        unlock(ledger);
        gpuhal_ledger_files_lose(&ledger->files); /* this process may have opened an old file */
        status = lock_and_load(ledger, until_ns);
    }
    if (!status && !gpuhal_ledger_files_are_paired(&ledger->files, ledger->state)) {
        status = pair(ledger, leaves);
        if (status) {
            unlock(ledger);
        }
    }
    if (status) {
        gpuhal_mutex_unlock(&ledger->mutex);
    }
    return status;
}

gpuhal_status gpuhal_ledger_begin_leave(gpuhal_ledger *ledger)
{
    return begin(ledger, UINT64_MAX, true);
}

gpuhal_status gpuhal_ledger_begin(gpuhal_ledger *ledger, uint64_t until_ns)
{
    const gpuhal_status status = begin(ledger, until_ns, false);
    if (status) {
        return status;
    }
    remove_held(ledger, is_expired);
    if (ledger->changed) {
        gpuhal_ledger_settle(ledger, false);
    }
    return GPUHAL_OK;
}

/* Changes the words of granted requests, except this thread's own. */
static void announce(gpuhal_ledger *ledger)
{
    const uint32_t word = (uint32_t)ledger->state->generation;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < ledger->place_count; i++) {
        const uint32_t place = ledger->places[i];
        if (ledger->fresh == 0 || place != ledger->fresh_place) {
            (void)gpuhal_os_shared_write(ledger->files.liveness, (uint64_t)place * sizeof word, &word, sizeof word);
            ledger->places[kept++] = place;
        }
    }
    ledger->place_count = kept;
}

static void wake(const gpuhal_ledger *ledger)
{
    for (uint32_t i = 0; i < ledger->place_count; i++) {
        gpuhal_os_word_wake(ledger->files.words, ledger->places[i]);
    }
}

gpuhal_status gpuhal_ledger_end(gpuhal_ledger *ledger)
{
    gpuhal_status status = GPUHAL_OK;
    if (ledger->changed) {
        status = gpuhal_ledger_files_store(&ledger->files, ledger->state);
    }
    if (!status) {
        announce(ledger);
    } else if (ledger->fresh > 0) {
        (void)gpuhal_os_byte_unlock(ledger->fresh_file, ledger->fresh_place);
    }
    unlock(ledger);
    if (!status) {
        wake(ledger); /* after unlock(), since a woken process first needs the lock */
    }
    gpuhal_mutex_unlock(&ledger->mutex);
    return status;
}

uint32_t gpuhal_ledger_word(intptr_t liveness, uint32_t place)
{
    uint32_t word = 0;
    uint64_t done = 0;
    (void)gpuhal_os_file_read_piece(liveness, (uint64_t)place * sizeof word, &word, sizeof word, &done);
    return word;
}
