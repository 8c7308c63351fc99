/* status.c: see status.h. The table is made of the library's JSON. */
#include "status.h"

#include "../common/host.h"
#include "../common/json.h"
#include "../common/text.h"
#include "json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_BYTES = 256 };

static void format_bytes(const json_t *value, char out[CELL_BYTES])
{
    const double bytes = (double)json_integer_value(value);
    if (!json_is_integer(value)) {
        snprintf(out, CELL_BYTES, "-");
    } else if (bytes >= 1073741824.0) {
        snprintf(out, CELL_BYTES, "%.1f GiB", bytes / 1073741824.0);
    } else {
        snprintf(out, CELL_BYTES, "%.0f MiB", bytes / 1048576.0);
    }
}

/* "1:02:03" */
static void format_time(const json_t *value, char out[CELL_BYTES])
{
    const int64_t seconds = json_integer_value(value) / 1000;
    if (!json_is_integer(value)) {
        snprintf(out, CELL_BYTES, "-");
    } else {
        snprintf(out, CELL_BYTES, "%" PRId64 ":%02d:%02d", seconds / 3600, (int)(seconds / 60 % 60),
                 (int)(seconds % 60));
    }
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void print_devices(const json_t *devices)
{
    size_t index;
    const json_t *device;
    printf("%-36s %10s %12s %12s %12s\n", "DEVICE", "SLOTS", "LEASED", "OTHERS", "MEMORY");
    json_array_foreach(devices, index, device)
    {
        char leased[CELL_BYTES], others[CELL_BYTES], total[CELL_BYTES], slots[CELL_BYTES];
        format_bytes(json_object_get(device, "bytes_leased"), leased);
        format_bytes(json_object_get(device, "bytes_foreign"), others);
        format_bytes(json_object_get(device, "bytes"), total);
        snprintf(slots, sizeof slots, "%" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT,
                 json_integer_value(json_object_get(device, "slots_leased")),
                 json_integer_value(json_object_get(device, "slots")));
        printf("%-36s %10s %12s %12s %12s\n", text_of(device, "key"), slots, leased, others, total);
    }
}

static void join_devices(const json_t *lease, char out[CELL_BYTES])
{
    size_t index;
    const json_t *device;
    out[0] = 0;
    json_array_foreach(json_object_get(lease, "devices"), index, device)
    {
        gpuhal_tool_append(out, CELL_BYTES, " ", "%s", text_of(device, "key"));
    }
    const json_t *wants = json_object_get(lease, "wants");
    if (json_is_object(wants)) {
        gpuhal_tool_append(out, CELL_BYTES, " ", "any %" JSON_INTEGER_FORMAT,
                           json_integer_value(json_object_get(wants, "count")));
    }
}

static void print_leases(const json_t *leases)
{
    size_t index;
    const json_t *lease;
    printf("\n%6s %-8s %8s %-10s %-15s %4s %10s %10s  %-16s %s\n", "LEASE", "STATE", "PID", "USER", "COMMAND", "PRIO",
           "SINCE", "LEFT", "LABEL", "DEVICES");
    json_array_foreach(leases, index, lease)
    {
        char since[CELL_BYTES], left[CELL_BYTES], devices[CELL_BYTES], user[CELL_BYTES];
        const char *command = text_of(lease, "command");
        format_time(json_object_get(lease, "since_ms"), since);
        format_time(json_object_get(lease, "expires_in_ms"), left);
        join_devices(lease, devices);
        gpuhal_tool_user_name((uint32_t)json_integer_value(json_object_get(lease, "user")), user, sizeof user);
        printf("%6" JSON_INTEGER_FORMAT " %-8s %8" JSON_INTEGER_FORMAT " %-10s %-15s %4" JSON_INTEGER_FORMAT
               " %10s %10s  %-16s %s\n",
               json_integer_value(json_object_get(lease, "number")), text_of(lease, "state"),
               json_integer_value(json_object_get(lease, "pid")), user, *command ? command : "-",
               json_integer_value(json_object_get(lease, "priority")), since, left, text_of(lease, "label"), devices);
    }
}

static void print_table(const json_t *ledger)
{
    const json_t *devices = json_object_get(ledger, "devices"), *leases = json_object_get(ledger, "leases");
    if (json_array_size(devices) == 0) {
        printf("nothing was leased yet (%s)\n", text_of(ledger, "ledger"));
        return;
    }
    print_devices(devices);
    if (json_array_size(leases) > 0) {
        print_leases(leases);
    } else {
        printf("\nnothing is leased\n");
    }
}

gpuhal_status gpuhal_lease_print_status(gpuhal *gpu, bool json)
{
    char *text = NULL;
    gpuhal_status status = gpuhal_lease_read_ledger(gpu, &text);
    json_t *ledger = text && !json ? json_loads(text, 0, NULL) : NULL;
    if (text && json) {
        fputs(text, stdout);
    } else if (ledger) {
        print_table(ledger);
    } else if (text) {
        status = GPUHAL_ERROR_HOST_MEMORY;
    }
    json_decref(ledger);
    free(text);
    return status;
}
