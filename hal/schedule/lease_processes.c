/* schedule/lease_processes.c: finds the processes that have a lease. A lease is a lock on one byte of `liveness`. The
 * lock belongs to the open file description, so every process with a descriptor of it has the lease. The kernel lists
 * these locks in /proc/PID/fdinfo/FD (proc(5): "lock:", since Linux 4.1), for processes of the same user, or for all
 * processes if this user is root. */
#include "schedule/leases.h"

#include "device/for_schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 64, FDINFO_BYTES = 4096 };

typedef struct walk {
    gpuhal_lease_holders *holders;
    uint64_t inode;
    int64_t pid;
} walk;

static void add(gpuhal_lease_holders *holders, int64_t pid, uint32_t place)
{
    const gpuhal_lease_holder *last = holders->count > 0 ? &holders->list[holders->count - 1] : NULL;
    if (holders->failed || (last && last->pid == pid && last->place == place)) {
        return;
    }
    if (holders->count == holders->capacity) {
        const uint32_t capacity = holders->capacity > 0 ? 2 * holders->capacity : 16;
        gpuhal_lease_holder *list = realloc(holders->list, capacity * sizeof *list);
        holders->failed = !list;
        if (holders->failed) {
            return;
        }
        holders->list = list;
        holders->capacity = capacity;
    }
    holders->list[holders->count++] = (gpuhal_lease_holder){.pid = pid, .place = place};
}

/* Advances *text past the number and one more character. */
static uint64_t read_number(const char **text)
{
    char *end = NULL;
    const uint64_t number = strtoull(*text, &end, 10);
    *text = *end ? end + 1 : end;
    return number;
}

/* Parses "lock:\t1: OFDLCK ADVISORY WRITE -1 08:01:1310726 5 5". The last three fields are device and inode, first
 * byte, and last byte. */
static void read_lock(const walk *own, const char *line)
{
    const char *kind = strstr(line, "OFDLCK");
    const char *colon = kind ? strchr(kind, ':') : NULL;
    colon = colon ? strchr(colon + 1, ':') : NULL;
    if (colon) {
        const char *at = colon + 1;
        const uint64_t inode = read_number(&at), first = read_number(&at), last = read_number(&at);
        if (inode == own->inode && first == last && first < GPUHAL_LEDGER_RECORDS) {
            add(own->holders, own->pid, (uint32_t)first);
        }
    }
}

static bool look_at_descriptor(void *user, const char *name, const char *target)
{
    const walk *own = user;
    const char *slash = strrchr(target, '/');
    char path[PATH_BYTES], text[FDINFO_BYTES];
    size_t bytes = 0;
    if (!slash || strncmp(slash, "/liveness", strlen("/liveness")) != 0) {
        return true;
    }
    snprintf(path, sizeof path, "/proc/%" PRId64 "/fdinfo/%.20s", own->pid, name);
    if (gpuhal_os_kernel_file_read(-1, path, text, sizeof text - 1, &bytes)) {
        return true; /* the process has closed the file */
    }
    text[bytes] = 0;
    for (char *line = strstr(text, "lock:"); line; line = strstr(line, "lock:")) {
        char *end = line + strcspn(line, "\n");
        const char kept = *end;
        *end = 0;
        read_lock(own, line);
        *end = kept;
        line = end;
    }
    return !own->holders->failed;
}

gpuhal_status gpuhal_lease_holders_read(uint64_t inode, gpuhal_lease_holders *out)
{
    char **names = NULL;
    size_t count = 0;
    *out = (gpuhal_lease_holders){0};
    if (gpuhal_os_directory_names("/proc", &names, &count)) {
        return GPUHAL_OK; /* the processes stay unknown */
    }
    for (size_t i = 0; i < count && !out->failed; i++) {
        walk own = {.holders = out, .inode = inode, .pid = strtoll(names[i], NULL, 10)};
        char path[PATH_BYTES];
        if (own.pid > 0) {
            snprintf(path, sizeof path, "/proc/%" PRId64 "/fd", own.pid);
            (void)gpuhal_os_directory_links(path, look_at_descriptor, &own); /* fails for other users' processes */
        }
    }
    gpuhal_os_names_free(names, count);
    return out->failed ? gpuhal_error_host_memory() : GPUHAL_OK;
}

void gpuhal_lease_holders_finish(gpuhal_lease_holders *holders)
{
    free(holders->list);
}

bool gpuhal_lease_holder_name(int64_t pid, char out_name[GPUHAL_LEASE_COMMAND_BYTES])
{
    char path[PATH_BYTES];
    size_t bytes = 0;
    snprintf(path, sizeof path, "/proc/%" PRId64 "/comm", pid);
    if (gpuhal_os_kernel_file_read(-1, path, out_name, GPUHAL_LEASE_COMMAND_BYTES - 1, &bytes)) {
        return false;
    }
    out_name[bytes] = 0;
    out_name[strcspn(out_name, "\n")] = 0;
    return true;
}

/* For an inherited lease or a lease of another pid namespace, every process with the descriptor is a holder. For other
 * leases, only the process that requested the lease is. */
static bool is_holder(const gpuhal_ledger *ledger, const gpuhal_ledger_record *record,
                      const gpuhal_lease_holder *holder)
{
    const bool is_own = record->space == ledger->space && holder->pid == record->pid;
    return holder->place == record->place &&
           (is_own || record->space != ledger->space || (record->flags & GPUHAL_LEASE_INHERIT));
}

const gpuhal_lease_holder *gpuhal_lease_holder_next(const gpuhal_ledger *ledger, const gpuhal_lease_holders *holders,
                                                    const gpuhal_ledger_record *record, const gpuhal_lease_holder *last)
{
    const gpuhal_lease_holder *holder = last ? last + 1 : holders->list;
    const gpuhal_lease_holder *end = holders->list + holders->count;
    while (holder && holder < end && !is_holder(ledger, record, holder)) {
        holder++;
    }
    return holder && holder < end ? holder : NULL;
}

/* Compares start times, because the requester's pid may have been reused. */
static bool has_asked(const gpuhal_ledger *ledger, const gpuhal_ledger_record *record, int64_t pid)
{
    const bool has_number = record->space == ledger->space && pid == record->pid;
    const uint64_t started = has_number && record->started != UINT64_MAX ? gpuhal_os_process_started(pid) : UINT64_MAX;
    return has_number && (started == UINT64_MAX || started == record->started);
}

bool gpuhal_lease_is_of_holder(const gpuhal_ledger *ledger, const gpuhal_lease_holders *holders,
                               const gpuhal_ledger_record *record, int64_t pid)
{
    enum { GENERATIONS = 64 };
    for (int i = 0; i < GENERATIONS && pid > 1; i++, pid = gpuhal_os_process_parent(pid)) {
        const gpuhal_lease_holder *holder = NULL;
        if (has_asked(ledger, record, pid)) {
            return true;
        }
        while ((holder = gpuhal_lease_holder_next(ledger, holders, record, holder))) {
            if (holder->pid == pid) {
                return true;
            }
        }
    }
    return false;
}
