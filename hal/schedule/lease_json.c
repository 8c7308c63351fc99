/* schedule/lease_json.c: writes the ledger and the devices as JSON. */
#include "schedule/leases.h"

#include "device/for_schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_MS UINT64_C(1000000)

/* Replaces control characters and invalid UTF-8. */
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

static void append_number(gpuhal_text *json, const char *name, bool known, uint64_t number)
{
    if (known) {
        gpuhal_text_printf(json, ", \"%s\": %" PRIu64, name, number);
    } else {
        gpuhal_text_printf(json, ", \"%s\": null", name);
    }
}

static void append_known(gpuhal_text *json, const char *name, const char *text)
{
    gpuhal_text_printf(json, ", \"%s\": ", name);
    if (text && *text) {
        append_text(json, text);
    } else {
        gpuhal_text_printf(json, "null");
    }
}

static const char *name_of(const gpuhal_device *device)
{
    const char *name = NULL;
    return gpuhal_device_text(device, GPUHAL_FACT_NAME, &name) == GPUHAL_OK ? name : NULL;
}

/* `own` is this object's device, or NULL. `index` is the index of the ledger entry, or GPUHAL_LEDGER_DEVICES. */
static void append_device(gpuhal_text *json, gpuhal *gpu, const gpuhal_lease_view *view, const gpuhal_lease_device *own,
                          uint32_t index)
{
    const gpuhal_ledger_device *device = index < GPUHAL_LEDGER_DEVICES ? &view->state->devices[index] : &own->described;
    gpuhal_text_printf(json, "\n    {\"key\": ");
    append_text(json, device->key);
    append_known(json, "id", own ? own->device->id : NULL);
    append_known(json, "name", own ? name_of(own->device) : NULL);
    append_known(json, "pci_address", device->address);
    append_known(json, "left_out", own ? gpuhal_lease_left_out_name(own->left_out) : NULL);
    append_number(json, "slots", true, device->slots);
    append_number(json, "slots_leased", true, index < GPUHAL_LEDGER_DEVICES ? view->use.slots[index] : 0);
    append_number(json, "bytes", device->bytes > 0, device->bytes);
    append_number(json, "bytes_leased", true, index < GPUHAL_LEDGER_DEVICES ? view->use.bytes[index] : 0);
    uint64_t foreign = 0;
    const bool knows_foreign = own && gpuhal_lease_find_foreign(gpu, view, own, &foreign);
    append_number(json, "bytes_foreign", knows_foreign, foreign);
    append_number(json, "busy_permille", own && own->sample.busy_permille <= 1000, own ? own->sample.busy_permille : 0);
    gpuhal_text_printf(json, "}");
}

static bool is_listed(const gpuhal_lease_view *view, uint32_t index)
{
    bool listed = false;
    for (uint32_t i = 0; i < view->device_count && !listed; i++) {
        listed = view->devices[i].index == index;
    }
    return listed;
}

/* Appends this object's devices in the object's order, then devices that only other processes see. */
static void append_devices(gpuhal_text *json, gpuhal *gpu, const gpuhal_lease_view *view)
{
    uint32_t listed = view->device_count;
    gpuhal_text_printf(json, ",\n  \"devices\": [");
    for (uint32_t i = 0; i < view->device_count; i++) {
        gpuhal_text_append(json, ",", i > 0);
        append_device(json, gpu, view, &view->devices[i], view->devices[i].index);
    }
    for (uint32_t d = 0; d < view->state->device_count; d++) {
        if (!is_listed(view, d)) {
            gpuhal_text_append(json, ",", listed++ > 0);
            append_device(json, gpu, view, NULL, d);
        }
    }
    gpuhal_text_printf(json, "%s]", listed > 0 ? "\n  " : "");
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

/* Appends what a waiting request for any devices asks for, or null for every other record. */
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

static void append_process(gpuhal_text *json, int64_t pid, const char *before)
{
    char name[GPUHAL_LEASE_COMMAND_BYTES];
    gpuhal_text_printf(json, "%s{\"pid\": %" PRId64, before, pid);
    append_known(json, "command", gpuhal_lease_holder_name(pid, name) ? name : NULL);
    gpuhal_text_printf(json, "}");
}

/* Appends the process that requested the lease if it still exists, else the holder with the lowest pid. A pid from
 * another namespace or a reused pid does not identify the process. */
static void append_holder(gpuhal_text *json, const gpuhal_ledger *ledger, const gpuhal_lease_view *view,
                          const gpuhal_ledger_record *record)
{
    const bool is_here = record->space != 0 && record->space == ledger->space;
    const bool lives = is_here && gpuhal_os_process_started(record->pid) == record->started;
    const gpuhal_lease_holder *first = NULL, *next = NULL;
    char name[GPUHAL_LEASE_COMMAND_BYTES];
    while (!lives && (next = gpuhal_lease_holder_next(ledger, &view->holders, record, next))) {
        first = !first || next->pid < first->pid ? next : first;
    }
    const int64_t pid = first ? first->pid : record->pid;
    const bool known = (first || lives) && gpuhal_lease_holder_name(pid, name);
    gpuhal_text_printf(json, ", \"pid\": %" PRId64 ", \"pid_is_foreign\": %s, \"user\": %" PRIu32, pid,
                       first || is_here ? "false" : "true", record->user);
    append_known(json, "command", known ? name : NULL);
    gpuhal_text_printf(json, ", \"processes\": [");
    const char *before = "";
    for (next = NULL; (next = gpuhal_lease_holder_next(ledger, &view->holders, record, next));) {
        append_process(json, next->pid, before);
        before = ", ";
    }
    gpuhal_text_printf(json, "]");
}

static void append_record(gpuhal_text *json, const gpuhal_ledger *ledger, const gpuhal_lease_view *view, uint32_t index,
                          uint64_t now_ns)
{
    const gpuhal_ledger_state *state = view->state;
    const gpuhal_ledger_record *record = &state->records[index];
    const bool held = record->state == GPUHAL_RECORD_HELD;
    gpuhal_text_printf(json, "%s\n    {\"number\": %" PRIu64 ", \"state\": \"%s\"", index > 0 ? "," : "",
                       record->ticket, held ? "held" : "waiting");
    append_holder(json, ledger, view, record);
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

static void append_all(gpuhal_text *json, gpuhal *gpu, const gpuhal_lease_view *view)
{
    const gpuhal_ledger *ledger = &gpuhal_leases_of(gpu)->ledger;
    const uint64_t now_ns = gpuhal_os_boot_ns();
    gpuhal_text_printf(json, "{\n  \"schema\": \"gpuhal.lease/1\",\n  \"ledger\": ");
    append_text(json, ledger->files.folder);
    gpuhal_text_printf(json, ",\n  \"shared\": %s", ledger->files.shared ? "true" : "false");
    append_devices(json, gpu, view);
    gpuhal_text_printf(json, ",\n  \"leases\": [");
    for (uint32_t i = 0; i < view->state->record_count; i++) {
        append_record(json, ledger, view, i, now_ns);
    }
    gpuhal_text_printf(json, "%s]\n}\n", view->state->record_count > 0 ? "\n  " : "");
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
    gpuhal_lease_view view;
    gpuhal_text json = {0};
    status = gpuhal_lease_view_read(gpu, &view);
    if (!status) {
        append_all(&json, gpu, &view);
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
    gpuhal_lease_view_finish(&view);
    return status;
}
