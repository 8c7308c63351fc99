/* schedule/lease_json.c: the ledger as JSON. It is copied in the critical section and written out after it. */
#include "schedule/leases.h"

#include "core/error.h"
#include "core/records.h"
#include "core/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS UINT64_C(1000000)

/* Bytes from the file of others: what a terminal would interpret and what is not UTF-8 is replaced. */
static void append_text(gpuhal_text *json, const char *text)
{
    char *printable = gpuhal_text_copy(text);
    json->failed = json->failed || !printable;
    if (json->failed) {
        free(printable);
        return;
    }
    gpuhal_records_clean(printable);
    gpuhal_text_append(json, "\"", 1);
    for (const char *at = printable; *at; at++) {
        gpuhal_text_append(json, "\\", *at == '"' || *at == '\\');
        gpuhal_text_append(json, at, 1);
    }
    gpuhal_text_append(json, "\"", 1);
    free(printable);
}

static void append_device(gpuhal_text *json, const gpuhal_ledger_state *state, const gpuhal_ledger_use *use,
                          uint32_t index)
{
    const gpuhal_ledger_device *device = &state->devices[index];
    gpuhal_text_printf(json, "%s\n    {\"key\": ", index > 0 ? "," : "");
    append_text(json, device->key);
    gpuhal_text_printf(json, ", \"pci_address\": ");
    if (device->address[0]) {
        append_text(json, device->address);
    } else {
        gpuhal_text_printf(json, "null");
    }
    gpuhal_text_printf(json, ", \"slots\": %" PRIu32 ", \"slots_leased\": %" PRIu64, device->slots, use->slots[index]);
    if (device->bytes > 0) {
        gpuhal_text_printf(json, ", \"bytes\": %" PRIu64, device->bytes);
    } else {
        gpuhal_text_printf(json, ", \"bytes\": null");
    }
    gpuhal_text_printf(json, ", \"bytes_leased\": %" PRIu64 ", \"bytes_foreign\": %" PRIu64 "}",
                       use->bytes[index], device->foreign_bytes);
}

static void append_items(gpuhal_text *json, const gpuhal_ledger_state *state, const gpuhal_ledger_record *record)
{
    bool first = true;
    gpuhal_text_printf(json, ", \"devices\": [");
    for (uint32_t i = 0; i < state->item_count; i++) {
        const gpuhal_ledger_item *item = &state->items[i];
        if (item->ticket == record->ticket) {
            gpuhal_text_printf(json, "%s{\"key\": ", first ? "" : ", ");
            append_text(json, state->devices[item->device].key);
            if (item->slots == GPUHAL_LEDGER_ALL_SLOTS) {
                gpuhal_text_printf(json, ", \"slots\": null, \"bytes\": %" PRIu64 "}", item->bytes);
            } else {
                gpuhal_text_printf(json, ", \"slots\": %" PRIu32 ", \"bytes\": %" PRIu64 "}", item->slots, item->bytes);
            }
            first = false;
        }
    }
    gpuhal_text_printf(json, "]");
}

/* What a waiting request wants of any devices. */
static void append_wish(gpuhal_text *json, const gpuhal_ledger_record *record)
{
    if (record->state != GPUHAL_RECORD_WAITS || record->count == 0) {
        gpuhal_text_printf(json, ", \"wants\": null");
        return;
    }
    gpuhal_text_printf(json, ", \"wants\": {\"count\": %" PRIu32 ", \"slots\": ", record->count);
    if (record->slots == GPUHAL_LEDGER_ALL_SLOTS) {
        gpuhal_text_printf(json, "null");
    } else {
        gpuhal_text_printf(json, "%" PRIu32, record->slots);
    }
    gpuhal_text_printf(json, ", \"bytes\": %" PRIu64 "}", record->bytes);
}

static uint64_t ago(uint64_t now_ns, uint64_t then_ns)
{
    return now_ns > then_ns ? (now_ns - then_ns) / NS_PER_MS : 0;
}

/* The name of the holder's program. Numbers of another namespace, and those that the system gave to another process
 * since, say nothing. */
static void append_command(gpuhal_text *json, const gpuhal_ledger *ledger, const gpuhal_ledger_record *record)
{
    char path[40], name[64];
    size_t bytes = 0;
    snprintf(path, sizeof path, "/proc/%" PRId64 "/comm", record->pid);
    const bool is_here = record->space != 0 && record->space == ledger->space &&
                         gpuhal_os_process_started(record->pid) == record->started;
    if (is_here && gpuhal_os_file_read_at(path, 0, name, sizeof name - 1, &bytes) == 0) {
        name[bytes] = 0;
        name[strcspn(name, "\n")] = 0;
        append_text(json, name);
    } else {
        gpuhal_text_printf(json, "null");
    }
}

static void append_record(gpuhal_text *json, const gpuhal_ledger *ledger, const gpuhal_ledger_state *state,
                          uint32_t index, uint64_t now_ns)
{
    const gpuhal_ledger_record *record = &state->records[index];
    const bool held = record->state == GPUHAL_RECORD_HELD;
    gpuhal_text_printf(json,
                       "%s\n    {\"number\": %" PRIu64 ", \"state\": \"%s\", \"pid\": %" PRId64 ", \"user\": %" PRIu32
                       ", \"command\": ",
                       index > 0 ? "," : "", record->ticket, held ? "held" : "waiting", record->pid, record->user);
    append_command(json, ledger, record);
    gpuhal_text_printf(json, ", \"label\": ");
    append_text(json, record->label);
    gpuhal_text_printf(json, ", \"priority\": %" PRId32 ", \"inherited\": %s, \"since_ms\": %" PRIu64, record->priority,
                       record->flags & GPUHAL_LEASE_INHERIT ? "true" : "false", ago(now_ns, record->since_ns));
    if (held && record->expires_ns > 0) {
        gpuhal_text_printf(json, ", \"expires_in_ms\": %" PRIu64, ago(record->expires_ns, now_ns));
    } else {
        gpuhal_text_printf(json, ", \"expires_in_ms\": null");
    }
    gpuhal_text_printf(json, ", \"overtaken\": %" PRIu32, record->overtaken);
    append_wish(json, record);
    append_items(json, state, record);
    gpuhal_text_printf(json, "}");
}

static void append_all(gpuhal_text *json, const gpuhal_ledger *ledger, const gpuhal_ledger_state *state)
{
    const uint64_t now_ns = gpuhal_os_boot_ns();
    gpuhal_text_printf(json, "{\n  \"schema\": \"gpuhal.lease/1\",\n  \"ledger\": ");
    append_text(json, ledger->files.folder);
    gpuhal_text_printf(json, ",\n  \"devices\": [");
    gpuhal_ledger_use use;
    gpuhal_ledger_granted(state, &use);
    for (uint32_t d = 0; d < state->device_count; d++) {
        append_device(json, state, &use, d);
    }
    gpuhal_text_printf(json, "%s],\n  \"leases\": [", state->device_count > 0 ? "\n  " : "");
    for (uint32_t i = 0; i < state->record_count; i++) {
        append_record(json, ledger, state, i, now_ns);
    }
    gpuhal_text_printf(json, "%s]\n}\n", state->record_count > 0 ? "\n  " : "");
}

static gpuhal_status copy_state(gpuhal_ledger *ledger, gpuhal_ledger_state *out)
{
    const int cancel = gpuhal_os_cancel_defer();
    gpuhal_status status = gpuhal_ledger_begin(ledger);
    if (!status) {
        gpuhal_ledger_settle(ledger, true);
        *out = *ledger->state;
        status = gpuhal_ledger_end(ledger);
    }
    gpuhal_os_cancel_restore(cancel);
    return status;
}

gpuhal_status gpuhal_lease_json(gpuhal *gpu, char *out_text, uint64_t bytes, uint64_t *out_needed)
{
    if (out_needed) {
        *out_needed = 0;
    }
    if (!gpu || (!out_text && bytes > 0)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_lease_json: an argument is NULL");
    }
    gpuhal_status status = gpuhal_check(gpu);
    status = status ? status : gpuhal_leases_open(gpu);
    if (status) {
        return status;
    }
    gpuhal_ledger *ledger = &gpu->layers.leases->ledger;
    gpuhal_ledger_state *state = malloc(sizeof *state);
    gpuhal_text json = {0};
    status = state ? copy_state(ledger, state) : gpuhal_error_host_memory();
    if (!status) {
        append_all(&json, ledger, state);
        status = json.failed ? gpuhal_error_host_memory() : GPUHAL_OK;
    }
    if (!status) {
        const uint64_t needed = json.length + 1;
        if (bytes > 0) {
            const size_t count = (size_t)(needed < bytes ? needed : bytes);
            memcpy(out_text, gpuhal_text_get(&json), count);
            out_text[count - 1] = 0;
        }
        if (out_needed) {
            *out_needed = needed;
        }
        status = needed > bytes ? gpuhal_error_set(GPUHAL_ERROR_OUT_OF_RANGE,
                                                   "gpuhal_lease_json: %" PRIu64 " bytes are needed", needed)
                                : GPUHAL_OK;
    }
    gpuhal_text_finish(&json);
    free(state);
    return status;
}
