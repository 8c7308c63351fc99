/* status.c: see status.h. The tables are printed from the library's JSON and fit into 80 columns. Longer rows wrap, and
 * names are cut. */
#include "status.h"

#include "../common/host.h"
#include "../common/json.h"
#include "../common/text.h"
#include "../common/utf8.h"
#include "json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELL_BYTES = 256, NAMES_BYTES = 4096, ID_COLUMNS = 9, NAME_COLUMNS = 26, DEVICES_AT = 64, COLUMNS = 80 };

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

/* Formats "1:02:03". */
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

/* Prints a text in `columns` columns, one for each character, and a blank. Cuts longer texts. */
static void print_cell(const char *text, size_t columns)
{
    uint32_t character;
    size_t used = 0, bytes = 0;
    for (size_t more; used < columns && (more = gpuhal_tool_utf8_next(text + bytes, &character)) > 0; used++) {
        bytes += more;
    }
    printf("%.*s%*s", (int)bytes, text, (int)(columns - used) + 1, "");
}

/* ---- devices */

static void print_why(const char *left_out)
{
    static const char *const words[][2] = {{"lost", "is lost"},
                                           {"reset_needed", "needs a reset"},
                                           {"self_test_failed", "failed its self-test"},
                                           {"prohibited", "is prohibited by its compute mode"},
                                           {"taken", "is exclusive, and another process has it"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(left_out, words[i][0]) == 0) {
            printf("%*s not leased: it %s\n", ID_COLUMNS, "", words[i][1]);
        }
    }
}

static void print_device(const json_t *device)
{
    char leased[CELL_BYTES], others[CELL_BYTES], total[CELL_BYTES], slots[CELL_BYTES], busy[CELL_BYTES] = "-";
    const json_t *permille = json_object_get(device, "busy_permille");
    format_bytes(json_object_get(device, "bytes_leased"), leased);
    format_bytes(json_object_get(device, "bytes_foreign"), others);
    format_bytes(json_object_get(device, "bytes"), total);
    if (json_is_integer(permille)) {
        snprintf(busy, sizeof busy, "%" JSON_INTEGER_FORMAT "%%", (json_integer_value(permille) + 5) / 10);
    }
    snprintf(slots, sizeof slots, "%" JSON_INTEGER_FORMAT "/%" JSON_INTEGER_FORMAT,
             json_integer_value(json_object_get(device, "slots_leased")),
             json_integer_value(json_object_get(device, "slots")));
    if (*text_of(device, "id")) {
        print_cell(text_of(device, "id"), ID_COLUMNS);
        print_cell(text_of(device, "name"), NAME_COLUMNS);
    } else { /* the device is not visible to this process */
        print_cell(text_of(device, "key"), ID_COLUMNS + 1 + NAME_COLUMNS);
    }
    printf("%7s %9s %9s %9s %4s\n", slots, leased, others, total, busy);
    print_why(text_of(device, "left_out"));
}

static void print_devices(const json_t *devices)
{
    size_t index;
    const json_t *device;
    print_cell("ID", ID_COLUMNS);
    print_cell("NAME", NAME_COLUMNS);
    printf("%7s %9s %9s %9s %4s\n", "SLOTS", "LEASED", "OTHERS", "MEMORY", "UTIL");
    json_array_foreach(devices, index, device)
    {
        print_device(device);
    }
}

/* ---- leases */

/* Returns the id of a leased device in this process, or its key if the device is not visible here. */
static const char *name_of(const json_t *devices, const char *key)
{
    size_t index;
    const json_t *device;
    json_array_foreach(devices, index, device)
    {
        if (strcmp(text_of(device, "key"), key) == 0 && *text_of(device, "id")) {
            return text_of(device, "id");
        }
    }
    return key;
}

/* Returns the number after the colon of an id, or -1. */
static int number_of(const char *id)
{
    const char *colon = strchr(id, ':');
    uint64_t number = 0;
    return colon && gpuhal_tool_read_number(colon + 1, 0, 9999, &number, NULL) ? (int)number : -1;
}

static bool follows(const char *id, const char *before)
{
    const char *colon = strchr(id, ':');
    const int number = number_of(id);
    return number > 0 && number_of(before) == number - 1 && strncmp(id, before, (size_t)(colon + 1 - id)) == 0;
}

/* Formats "cuda:0-3 cuda:5". */
static void join_devices(const json_t *lease, const json_t *devices, char out[NAMES_BYTES])
{
    const json_t *own = json_object_get(lease, "devices"), *wants = json_object_get(lease, "wants");
    const size_t count = json_array_size(own);
    out[0] = 0;
    for (size_t i = 0; i < count;) {
        const char *first = name_of(devices, text_of(json_array_get(own, i), "key")), *last = first;
        for (i++; i < count; i++) {
            const char *next = name_of(devices, text_of(json_array_get(own, i), "key"));
            if (!follows(next, last)) {
                break;
            }
            last = next;
        }
        gpuhal_tool_append(out, NAMES_BYTES, " ", "%s", first);
        if (last != first) {
            gpuhal_tool_append(out, NAMES_BYTES, "-", "%d", number_of(last));
        }
    }
    if (json_is_object(wants)) {
        gpuhal_tool_append(out, NAMES_BYTES, " ", "any %" JSON_INTEGER_FORMAT,
                           json_integer_value(json_object_get(wants, "count")));
    }
}

/* Prints the words in the last column and wraps them within the column. */
static void print_wrapped(char *words)
{
    const size_t most = COLUMNS - DEVICES_AT;
    size_t at = 0;
    char *rest = NULL;
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        const size_t length = strlen(word);
        if (at + (at > 0) + length <= most) {
            printf(" %s", word);
            at += (at > 0) + length;
        } else {
            printf("\n%*s%s", (int)(length < most ? DEVICES_AT : length < COLUMNS ? COLUMNS - length : 0), "", word);
            at = length;
        }
    }
    putchar('\n');
}

/* Returns the command that the lease is for: of `gpuhal-lease run` the command that it started, or before that the
 * label, which is the command's name if no other was given. */
static const char *command_of(const json_t *lease)
{
    const char *command = text_of(lease, "command"), *label = text_of(lease, "label");
    size_t index;
    const json_t *process;
    if (strcmp(command, "gpuhal-lease") != 0) {
        return *command ? command : "-";
    }
    json_array_foreach(json_object_get(lease, "processes"), index, process)
    {
        if (*text_of(process, "command") && strcmp(text_of(process, "command"), command) != 0) {
            return text_of(process, "command");
        }
    }
    return *label ? label : command;
}

static void print_details(const json_t *lease)
{
    const json_int_t priority = json_integer_value(json_object_get(lease, "priority"));
    const char *label = text_of(lease, "label");
    if (*label && strcmp(label, command_of(lease)) != 0) {
        printf("%6s label: %s\n", "", label);
    }
    if (priority != 0) {
        printf("%6s priority: %" JSON_INTEGER_FORMAT "\n", "", priority);
    }
}

static void print_leases(const json_t *leases, const json_t *devices)
{
    size_t index;
    const json_t *lease;
    bool has_foreign = false;
    printf("\n%6s %-7s %8s %-8s %-12s %8s %8s %s\n", "LEASE", "STATE", "PID", "USER", "COMMAND", "SINCE", "LEFT",
           "DEVICES");
    json_array_foreach(leases, index, lease)
    {
        char since[CELL_BYTES], left[CELL_BYTES], names[NAMES_BYTES], user[CELL_BYTES], pid[32];
        format_time(json_object_get(lease, "since_ms"), since);
        format_time(json_object_get(lease, "expires_in_ms"), left);
        join_devices(lease, devices, names);
        gpuhal_tool_user_name((uint32_t)json_integer_value(json_object_get(lease, "user")), user, sizeof user);
        snprintf(pid, sizeof pid, "%s%" JSON_INTEGER_FORMAT,
                 json_is_true(json_object_get(lease, "pid_is_foreign")) ? "#" : "",
                 json_integer_value(json_object_get(lease, "pid")));
        printf("%6" JSON_INTEGER_FORMAT " %-7s %8s ", json_integer_value(json_object_get(lease, "number")),
               text_of(lease, "state"), pid);
        has_foreign = has_foreign || json_is_true(json_object_get(lease, "pid_is_foreign"));
        print_cell(user, 8);
        print_cell(command_of(lease), 12);
        printf("%8s %8s", since, left);
        print_wrapped(names);
        print_details(lease);
    }
    if (has_foreign) {
        printf("\n# = the pid of another pid namespace (a container)\n");
    }
}

static void print_table(const json_t *ledger)
{
    const json_t *devices = json_object_get(ledger, "devices"), *leases = json_object_get(ledger, "leases");
    if (json_array_size(devices) == 0) {
        printf("there is no GPU, and nothing was leased yet (%s)\n", text_of(ledger, "ledger"));
        return;
    }
    print_devices(devices);
    if (json_array_size(leases) > 0) {
        print_leases(leases, devices);
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
