/* links.c: see links.h. One child process reads the links in sequence and sends the results, so that each driver is
 * started only once. If the child crashes or hangs, its current link fails and another child continues with the next
 * link. After repeated failures, the remaining links are skipped. Links that a child cannot read are read in this
 * process. */
#include "links.h"

#include "progress.h"

#include "../common/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FAILURES_MOST = 3 };

typedef struct job {
    gpuhal_probe_machine *machine;
    uint32_t first; /* index of the first link to read */
} job;

static const gpuhal_probe_device *device_of(const gpuhal_probe_machine *machine, uint32_t place)
{
    return &machine->devices[place];
}

static bool is_in_child(const gpuhal_probe_machine *machine, const gpuhal_probe_link *link)
{
    return device_of(machine, link->from)->in_child && device_of(machine, link->to)->in_child;
}

/* Returns the first link from `place` on that is read in a child process or, without `in_child`, in this process. */
static uint32_t next_link(const gpuhal_probe_machine *machine, uint32_t place, bool in_child)
{
    while (place < machine->link_count && is_in_child(machine, &machine->links[place]) != in_child) {
        place++;
    }
    return place;
}

/* ---- reading */

static void set_failed(gpuhal_probe_link *link, gpuhal_missing reason, const char *why)
{
    for (size_t i = 0; i < PROBE_LINK_VALUES; i++) {
        link->values[i].missing = reason;
        snprintf(link->values[i].why, sizeof link->values[i].why, "%.111s", why);
    }
    link->name_missing = reason;
    snprintf(link->name, sizeof link->name, "%.111s", why);
}

static void read_value(gpuhal_device *from, gpuhal_device *to, gpuhal_value *value)
{
    const char *why = "";
    gpuhal_status status = gpuhal_link_u64(from, to, value->key, &value->u64);
    value->missing = status ? gpuhal_link_missing(from, to, value->key, &why) : 0;
    snprintf(value->why, sizeof value->why, "%s", status ? why : "");
}

static void read_name(gpuhal_device *from, gpuhal_device *to, gpuhal_probe_link *link)
{
    const char *text = "";
    link->name_missing = gpuhal_link_text(from, to, GPUHAL_LINK_NAME, &text)
                             ? gpuhal_link_missing(from, to, GPUHAL_LINK_NAME, &text)
                             : 0;
    snprintf(link->name, sizeof link->name, "%s", text ? text : "");
}

/* Reads the values. `untried` means that --verify will try the link later, so cached results are not used. */
static void read_values(const gpuhal_probe_machine *machine, gpuhal_probe_link *link, bool untried)
{
    for (size_t i = 0; i < PROBE_LINK_VALUES; i++) {
        gpuhal_value *value = &link->values[i];
        if (untried && i >= PROBE_LINK_PATH) {
            value->missing = GPUHAL_MISSING_NOT_READ;
            snprintf(value->why, sizeof value->why, "the link was not verified");
        } else {
            read_value(device_of(machine, link->from)->device, device_of(machine, link->to)->device, value);
        }
    }
    read_name(device_of(machine, link->from)->device, device_of(machine, link->to)->device, link);
    link->cached = !link->tried && !link->values[PROBE_LINK_VERIFIED].missing;
}

static void try_link(const gpuhal_probe_machine *machine, gpuhal_probe_link *link)
{
    gpuhal_device *from = device_of(machine, link->from)->device, *to = device_of(machine, link->to)->device;
    char subject[128];
    gpuhal_status status = gpuhal_link_verify(from, to);
    snprintf(subject, sizeof subject, "%s to %s", gpuhal_device_id(from), gpuhal_device_id(to));
    gpuhal_probe_judge(status, subject, &link->result);
    read_values(machine, link, false);
}

/* In the child's copy of the machine, replaces the parent's devices with the child's devices. */
static gpuhal_status open_devices(gpuhal_probe_machine *machine)
{
    char backends[512] = "";
    const char *last = "";
    gpuhal *gpu = NULL;
    for (uint32_t i = 0; i < machine->count; i++) { /* devices of a backend are adjacent */
        const char *backend = gpuhal_device_backend(machine->devices[i].device);
        if (strcmp(backend, last) != 0) {
            gpuhal_tool_append(backends, sizeof backends, ",", "%s", backend);
        }
        last = backend;
    }
    gpuhal_status status = gpuhal_probe_open_in_child(backends, &gpu);
    for (uint32_t i = 0; i < machine->count && !status; i++) {
        gpuhal_probe_device *entry = &machine->devices[i];
        const char *id = gpuhal_device_id(entry->device);
        status = entry->in_child ? gpuhal_select(gpu, id, 0, &entry->device, NULL) : GPUHAL_OK;
    }
    return status;
}

/* Sends the facts of a link before trying it, so that they are not lost if the driver crashes. */
static void work(void *user, int to)
{
    const job *own = user;
    gpuhal_probe_result opened;
    gpuhal_probe_judge(open_devices(own->machine), "", &opened);
    for (uint32_t i = next_link(own->machine, own->first, true); i < own->machine->link_count;
         i = next_link(own->machine, i + 1, true)) {
        gpuhal_probe_link link = own->machine->links[i];
        link.result = opened;
        if (opened.status) {
            set_failed(&link, GPUHAL_MISSING_FAILED, opened.sentence);
        } else {
            read_values(own->machine, &link, link.tried);
        }
        gpuhal_tool_send(to, &link, sizeof link);
        if (link.tried && !opened.status) {
            try_link(own->machine, &link);
        }
        if (link.tried) {
            gpuhal_tool_send(to, &link, sizeof link);
        }
    }
}

/* ---- children */

static void begin_progress(const gpuhal_probe_machine *machine, uint32_t place, uint64_t limit_ns)
{
    const gpuhal_probe_link *link = &machine->links[place];
    char text[128];
    snprintf(text, sizeof text, "the link from %.30s to %.30s (%u of %u)",
             gpuhal_device_id(device_of(machine, link->from)->device),
             gpuhal_device_id(device_of(machine, link->to)->device), place + 1, machine->link_count);
    gpuhal_probe_wait_begin(text, limit_ns);
}

/* Receives all records about one link. Sets *out_known if a record has arrived. */
static gpuhal_tool_heard receive_one(const gpuhal_tool_child *child, gpuhal_probe_link *link, uint64_t timeout_ns,
                                     bool *out_known)
{
    gpuhal_probe_link known = *link;
    const uint64_t until_ns = gpuhal_tool_now_ns() + timeout_ns;
    gpuhal_tool_heard answer = gpuhal_tool_hear(child, until_ns, &known, sizeof known);
    *out_known = answer == GPUHAL_TOOL_HEARD;
    *link = *out_known ? known : *link;
    if (*out_known && link->tried) {
        answer = gpuhal_tool_hear(child, until_ns, &known, sizeof known);
        *link = answer == GPUHAL_TOOL_HEARD ? known : *link;
    }
    return answer;
}

/* Receives links from index `place` on until all links have arrived, or until the child fails at a link. Returns the
 * index of the next link to receive. `each` is the time limit for a link without --timeout. */
static uint32_t receive(gpuhal_probe_machine *machine, gpuhal_tool_child *child, uint32_t place, uint64_t each,
                        uint32_t *failures)
{
    uint64_t limit_ns = each;
    gpuhal_tool_heard answer = GPUHAL_TOOL_HEARD;
    gpuhal_probe_result result = {0};
    bool known = false;
    while (place < machine->link_count) {
        limit_ns = gpuhal_probe_time_left(machine, each, machine->link_count - place);
        begin_progress(machine, place, limit_ns);
        answer = receive_one(child, &machine->links[place], limit_ns, &known);
        gpuhal_probe_wait_end();
        if (answer != GPUHAL_TOOL_HEARD) {
            break;
        }
        place = next_link(machine, place + 1, true);
    }
    gpuhal_probe_end(child, answer, limit_ns, &result);
    if (answer != GPUHAL_TOOL_HEARD) {
        gpuhal_probe_link *link = &machine->links[place];
        link->result = result;
        if (!known) {
            set_failed(link, answer == GPUHAL_TOOL_TIMED_OUT ? GPUHAL_MISSING_TIMED_OUT : GPUHAL_MISSING_FAILED,
                       result.sentence);
        }
        ++*failures;
        place = next_link(machine, place + 1, true);
    }
    return place;
}

static void leave_out(gpuhal_probe_link *link, uint32_t failures)
{
    char *sentence = link->result.sentence;
    link->result = (gpuhal_probe_result){.status = GPUHAL_ERROR_CANCELLED};
    snprintf(sentence, sizeof link->result.sentence, "not tried: " GPUHAL_PROBE_TIME_IS_OVER);
    if (failures >= FAILURES_MOST) {
        snprintf(sentence, sizeof link->result.sentence, "left out after drivers had failed %u times", failures);
    }
    set_failed(link, GPUHAL_MISSING_NOT_READ, sentence);
}

/* Returns the first link that could not be read because no child could be started. */
static uint32_t look_in_children(gpuhal_probe_machine *machine, uint64_t timeout_ns)
{
    uint32_t place = next_link(machine, 0, true), failures = 0;
    while (place < machine->link_count && failures < FAILURES_MOST && gpuhal_probe_time_left(machine, 1, 1)) {
        job own = {.machine = machine, .first = place};
        gpuhal_tool_child child;
        if (!gpuhal_probe_wait_fork(work, &own, &child)) {
            return place;
        }
        place = receive(machine, &child, place, timeout_ns, &failures);
    }
    for (; place < machine->link_count; place = next_link(machine, place + 1, true)) {
        gpuhal_probe_link *link = &machine->links[place];
        leave_out(link, failures);
    }
    return place;
}

/* ---- all */

static bool is_software(const gpuhal_device *device)
{
    uint64_t software = 0;
    return gpuhal_device_u64(device, GPUHAL_FACT_SOFTWARE, &software) == GPUHAL_OK && software != 0;
}

static bool list_links(const gpuhal_probe_options *options, gpuhal_probe_machine *machine)
{
    static const gpuhal_key keys[PROBE_LINK_VALUES] = {
        GPUHAL_LINK_KIND,
        GPUHAL_LINK_BANDWIDTH_BYTES_PER_SECOND,
        GPUHAL_LINK_GENERATION,
        GPUHAL_LINK_COUNT,
        GPUHAL_LINK_PEER_ADVERTISED,
        GPUHAL_LINK_PATH,
        GPUHAL_LINK_MEASURED_BYTES_PER_SECOND,
        GPUHAL_LINK_MEASURED_LATENCY_NS,
        GPUHAL_LINK_TRIED_SECONDS,
        GPUHAL_LINK_VERIFIED,
    };
    machine->links = calloc((size_t)machine->count * machine->count + 1, sizeof *machine->links);
    if (!machine->links) {
        return false;
    }
    for (uint32_t i = 0; i < machine->count * machine->count; i++) {
        uint32_t from = i / machine->count, to = i % machine->count;
        if (from != to) {
            gpuhal_probe_link *link = &machine->links[machine->link_count++];
            link->from = from;
            link->to = to;
            link->software = is_software(machine->devices[from].device) || is_software(machine->devices[to].device);
            link->tried = options->verify && machine->devices[from].shown && machine->devices[to].shown;
            for (size_t k = 0; k < PROBE_LINK_VALUES; k++) {
                link->values[k].key = keys[k];
            }
        }
    }
    return true;
}

static void read_here(gpuhal_probe_machine *machine, uint32_t place, uint64_t each)
{
    gpuhal_probe_link *link = &machine->links[place];
    const uint64_t limit_ns = gpuhal_probe_time_left(machine, each, machine->link_count - place);
    if (limit_ns == 0) {
        leave_out(link, 0);
        return;
    }
    begin_progress(machine, place, limit_ns);
    read_values(machine, link, link->tried);
    if (link->tried) {
        try_link(machine, link);
    }
    gpuhal_probe_wait_end();
}

bool gpuhal_probe_links_find(const gpuhal_probe_options *options, gpuhal_probe_machine *machine)
{
    if (!list_links(options, machine)) {
        return false;
    }
    /* Reads the links of this process last, because doing so starts drivers in this process, and no child could start
     * these drivers afterwards. */
    uint32_t left = look_in_children(machine, GPUHAL_PROBE_VERIFY_NS);
    for (uint32_t i = 0; i < machine->link_count; i++) {
        if (i >= left || !is_in_child(machine, &machine->links[i])) {
            read_here(machine, i, GPUHAL_PROBE_VERIFY_NS);
        }
    }
    return true;
}
