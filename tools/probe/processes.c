/* processes.c: see processes.h. Reads one device after another. A driver that hangs uses up only its device's time
 * limit. */
#include "processes.h"

#include "rows.h"

#include "../common/host.h"
#include "../common/subprocess.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EACH_NS 300000000u  /* per device */
#define ALL_NS  1000000000u /* in total */

enum { USERS = 32, USER_BYTES = 33 }; /* the longest name that useradd(8) accepts, and a NUL */

/* A cache of user names, because looking up a name may require a server. */
struct gpuhal_probe_users {
    struct {
        uint32_t number;
        char name[USER_BYTES];
    } list[USERS];
    uint32_t count;
};

const char *gpuhal_probe_process_user(const gpuhal_probe_machine *machine, const gpuhal_process *process)
{
    gpuhal_probe_users *users = machine->users;
    uint32_t place = 0;
    if (!(process->flags & GPUHAL_PROCESS_USER_KNOWN)) {
        return "";
    }
    while (place < users->count && users->list[place].number != process->user) {
        place++;
    }
    if (place == users->count) {
        place = users->count < USERS ? users->count++ : process->user % USERS;
        users->list[place].number = process->user;
        gpuhal_tool_user_name(process->user, users->list[place].name, USER_BYTES);
    }
    return users->list[place].name;
}

void gpuhal_probe_users_finish(gpuhal_probe_machine *machine)
{
    free(machine->users);
    machine->users = NULL;
}

/* Reads all processes of the device. The number of processes may grow between two calls. Returns false if out of
 * memory. */
static bool read_one(gpuhal_device *device, uint32_t flags, uint64_t timeout_ns, gpuhal_probe_processes *to)
{
    uint32_t capacity = 32;
    to->is_read = true;
    do {
        capacity = to->count > capacity ? to->count + 32 : capacity;
        free(to->list);
        to->list = calloc(capacity, sizeof *to->list);
        if (!to->list) {
            to->count = 0;
            return false;
        }
        to->list[0].size = sizeof *to->list;
        to->status = gpuhal_device_processes(device, flags, timeout_ns, to->list, capacity, &to->count);
    } while (to->count > capacity);
    to->is_partial = flags && to->status == GPUHAL_NOT_READY && to->count;
    snprintf(to->why, sizeof to->why, "%s", to->status ? gpuhal_last_error()->sentence : "");
    return true;
}

static void leave_out_persons(gpuhal_probe_processes *of)
{
    for (uint32_t i = 0; i < of->count; i++) {
        of->list[i].flags &= ~(uint32_t)GPUHAL_PROCESS_USER_KNOWN;
        of->list[i].user = 0;
        of->list[i].command[0] = of->list[i].container[0] = 0;
    }
}

/* Returns the remaining time for one device; 0 if none is left. */
static uint64_t time_left(uint64_t until_ns)
{
    const uint64_t now = gpuhal_tool_now_ns(), left = until_ns > now ? until_ns - now : 0;
    return left < EACH_NS ? left : EACH_NS;
}

bool gpuhal_probe_processes_read(const gpuhal_probe_options *options, gpuhal_probe_machine *machine)
{
    gpuhal_probe_processes_finish(machine);
    if (options->cached || options->check || options->format == PROBE_FORMAT_GRES ||
        options->format == PROBE_FORMAT_CDI) {
        return true;
    }
    const bool rows_alone =
        (options->format == PROBE_FORMAT_TABLE || options->format == PROBE_FORMAT_WIDE) && !options->watch_ns;
    const uint32_t flags = rows_alone && !options->processes && !options->report ? GPUHAL_SAMPLE_QUICK : 0;
    uint64_t until_ns = gpuhal_tool_now_ns() + ALL_NS;
    until_ns = machine->until_ns && machine->until_ns < until_ns ? machine->until_ns : until_ns;
    machine->users = machine->users ? machine->users : calloc(1, sizeof *machine->users);
    machine->processes = calloc((size_t)machine->count + 1, sizeof *machine->processes);
    bool good = machine->users && machine->processes;
    for (uint32_t i = 0; good && i < machine->count; i++) {
        gpuhal_probe_device *entry = &machine->devices[i];
        const uint32_t source = gpuhal_probe_source_of(machine, i);
        gpuhal_probe_processes *own = &machine->processes[source];
        if (entry->processor || (rows_alone && !entry->row) || gpuhal_probe_is_lost(&machine->devices[source])) {
            continue;
        }
        entry->processes = own;
        const uint64_t left_ns = own->is_read ? 0 : time_left(until_ns);
        if (left_ns) {
            good = read_one(machine->devices[source].device, flags, left_ns, own);
        } else if (!own->is_read) {
            *own = (gpuhal_probe_processes){
                .status = GPUHAL_ERROR_TIMEOUT, .why = "there was no time left to list the processes", .is_read = true};
        }
        if (options->report && left_ns) {
            leave_out_persons(own);
        }
    }
    return good;
}

bool gpuhal_probe_processes_are_of(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry)
{
    const uint32_t place = (uint32_t)(entry - machine->devices), source = gpuhal_probe_source_of(machine, place);
    return entry->row && entry->processes && (place == source || !machine->devices[source].row);
}

void gpuhal_probe_processes_finish(gpuhal_probe_machine *machine)
{
    for (uint32_t i = 0; machine->processes && i < machine->count; i++) {
        free(machine->processes[i].list);
    }
    for (uint32_t i = 0; machine->devices && i < machine->count; i++) {
        machine->devices[i].processes = NULL;
    }
    free(machine->processes);
    machine->processes = NULL;
}
