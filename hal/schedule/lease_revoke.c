/* schedule/lease_revoke.c: revokes a lease or cancels a request of another process. Only the same user and root may do
 * this. */
#include "schedule/leases.h"

#include "device/for_schedule.h"

#include <inttypes.h>

static gpuhal_status check_record(const gpuhal_ledger *ledger, uint64_t number, const gpuhal_ledger_record *record)
{
    if (!record) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "leases: %s has no lease %" PRIu64, ledger->files.ledger_path,
                                number);
    }
    if (ledger->user != 0 && ledger->user != record->user) {
        return gpuhal_error_set(GPUHAL_ERROR_NO_PERMISSION,
                                "leases: lease %" PRIu64 " is of user %" PRIu32 ": only that user and root may end it",
                                number, record->user);
    }
    return GPUHAL_OK;
}

/* Writes a list such as "process 4711 (sleep), process 4712 (train)". */
static void name_processes(const gpuhal_ledger *ledger, const gpuhal_lease_holders *holders,
                           const gpuhal_ledger_record *record, gpuhal_text *to)
{
    const gpuhal_lease_holder *holder = NULL;
    while ((holder = gpuhal_lease_holder_next(ledger, holders, record, holder))) {
        char name[GPUHAL_LEASE_COMMAND_BYTES];
        const bool named = gpuhal_lease_holder_name(holder->pid, name);
        if (named) {
            gpuhal_records_clean(name);
        }
        gpuhal_text_printf(to, "%sprocess %" PRId64 " (%s)", to->length > 0 ? ", " : "", holder->pid,
                           named ? name : "?");
    }
    if (to->length == 0) {
        const bool is_here = record->space == ledger->space;
        gpuhal_text_printf(to, "process %" PRId64 "%s", record->pid, is_here ? "" : " of another pid namespace");
    }
}

/* The lease or request was alive when it was found, because records of ended processes had been removed before. */
static gpuhal_status refuse(const gpuhal_ledger *ledger, const gpuhal_ledger_record *record, uint64_t inode)
{
    gpuhal_lease_holders holders;
    gpuhal_text names = {0};
    gpuhal_status status = gpuhal_lease_holders_read(inode, &holders);
    if (!status) {
        name_processes(ledger, &holders, record, &names);
        status = names.failed ? gpuhal_error_host_memory()
                              : gpuhal_error_set(GPUHAL_ERROR_BUSY, "leases: %s %" PRIu64 " is still used by %s",
                                                 record->state == GPUHAL_RECORD_HELD ? "lease" : "request",
                                                 record->ticket, gpuhal_text_get(&names));
    }
    gpuhal_text_finish(&names);
    gpuhal_lease_holders_finish(&holders);
    return status;
}

gpuhal_status gpuhal_lease_revoke(gpuhal *gpu, uint64_t number, uint32_t force)
{
    if (!gpu || force > 1) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_lease_revoke: gpu is NULL, or force is not 0 or 1");
    }
    gpuhal_status status = gpuhal_check(gpu);
    status = status ? status : gpuhal_leases_open(gpu);
    if (status) {
        return status;
    }
    gpuhal_ledger *ledger = &gpuhal_leases_of(gpu)->ledger;
    gpuhal_ledger_record found = {0};
    uint64_t inode = 0;
    const int cancel = gpuhal_os_cancel_defer();
    status = gpuhal_ledger_begin(ledger, UINT64_MAX);
    if (!status) {
        gpuhal_ledger_settle(ledger, true);
        (void)gpuhal_ledger_sweep(ledger, 0);
        const gpuhal_ledger_record *record = gpuhal_ledger_find(ledger->state, number);
        if (record && gpuhal_ledger_drop_dead(ledger, record)) {
            record = NULL;
        }
        status = check_record(ledger, number, record);
        found = !status ? *record : found;
        inode = ledger->files.inode;
        if (!status && force) {
            gpuhal_ledger_remove(ledger->state, number);
            ledger->changed = true;
            gpuhal_ledger_settle(ledger, false);
        }
        gpuhal_error_detail why;
        gpuhal_error_save(&why);
        const gpuhal_status ended = gpuhal_ledger_end(ledger);
        status = status ? gpuhal_error_restore(&why) : ended;
    }
    status = status || force ? status : refuse(ledger, &found, inode);
    gpuhal_os_cancel_restore(cancel);
    return status;
}
