/* machine.c: see machine.h. Options win over the environment: a variable that an option replaces is taken out of the
 * environment before the library reads it. */
#include "machine.h"

#include "../common/text.h"

#include "hardware_record.h"
#include "links.h"
#include "problems.h"
#include "progress.h"
#include "rows.h"
#include "screen.h"

#include <ctype.h>
#include <gpuhal/rescan.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define OPEN_NS    15000000000u /* for a plugin, as the library has it */
#define VERIFY_NS  60000000000u /* for a device, and for a link, without --timeout */
#define RESCAN_NS  5000000000u  /* the buses are looked at again after so long; it costs more than reading values */
#define SEPARATORS ", \t"       /* between names for --retry, and selectors, as the library has them */

static void complain(const char *sentence)
{
    char words[GPUHAL_PROBE_TEXT_BYTES];
    gpuhal_probe_say("%s", gpuhal_probe_in_options(sentence, words));
}

static gpuhal_status open_gpu(const gpuhal_probe_options *options, const char *devices, gpuhal **out_gpu)
{
    gpuhal_config config = {
        .size = sizeof config,
        .backends = options->backends,
        .devices = devices,
        .helper_deadline_ns = options->timeout_ns,
        .retry = options->run_again ? options->run_again : options->retry,
    };
    if (isatty(STDERR_FILENO) && !getenv("GPUHAL_LOG")) { /* the line there names what is waited for */
        config.log = gpuhal_probe_wait_listen;
        config.log_level = GPUHAL_PROBE_WAIT_LEVEL;
    }
    return gpuhal_open(&config, out_gpu);
}

/* Whether a comma list of selectors names interfaces: by backend, id or name. Addresses, UUIDs and numbers name
 * physical devices; a number behind an id is of its backend, and that names interfaces already. */
static bool names_interfaces(const char *selectors)
{
    static const char *const hardware[] = {"auto", "gpu", "most_free", "least_loaded", "each", "pci", "uuid", "env"};
    for (const char *item = selectors; item && *item; item += strcspn(item, ","), item += *item == ',') {
        item += strspn(item, " \t");
        size_t word = strcspn(item, ":=@, "), whole = strcspn(item, "@,");
        const char *dot = memchr(item, '.', whole);
        const bool uuid = (whole == 16 || whole == 36) && strspn(item, "0123456789abcdefABCDEF-") >= whole;
        bool named = *item != '!' && !(isdigit((unsigned char)*item) || uuid || (item[word] == ':' && dot)) &&
                     strncasecmp(item, "GPU-", 4) != 0 && strncasecmp(item, "MIG-", 4) != 0;
        for (size_t i = 0; i < sizeof hardware / sizeof *hardware; i++) {
            named = named && !(strlen(hardware[i]) == word && strncmp(item, hardware[i], word) == 0);
        }
        if (named) {
            return true;
        }
    }
    return false;
}

/* Whether the listing for people has the device: the preferred interface of each physical device, unless more is asked
 * for. */
static bool is_shown(const gpuhal_probe_options *options, const gpuhal_probe_device *entry)
{
    return options->all || entry->preferred || names_interfaces(options->device);
}

static bool is_processor(const gpuhal_device *device)
{
    uint64_t software = 0, type = 0;
    gpuhal_device_u64(device, GPUHAL_FACT_SOFTWARE, &software);
    gpuhal_device_u64(device, GPUHAL_FACT_TYPE, &type);
    return software || type == GPUHAL_DEVICE_CPU;
}

static void choose_rows(const gpuhal_probe_options *options, gpuhal_probe_machine *machine)
{
    bool has_gpu = false;
    for (uint32_t i = 0; i < machine->count; i++) {
        const gpuhal_probe_device *entry = &machine->devices[i];
        has_gpu = has_gpu || (entry->shown && !entry->processor && gpuhal_probe_is_usable(machine, entry));
    }
    const bool every = options->all || !has_gpu || names_interfaces(options->device);
    for (uint32_t i = 0; i < machine->count; i++) {
        gpuhal_probe_device *entry = &machine->devices[i];
        entry->row = entry->shown && (every || !entry->processor);
    }
}

/* A plugin that was probed in this process has been started here, so that a forked child could not use it. */
static bool was_probed_here(const gpuhal *gpu, const char *backend)
{
    gpuhal_plugin_report report;
    for (uint32_t i = 0; gpuhal_probe_report(gpu, i, &report); i++) {
        if (report.state == GPUHAL_PLUGIN_OK && strcmp(report.name, backend) == 0) {
            return !report.isolated;
        }
    }
    return true;
}

static bool is_plugin(const gpuhal *gpu, const char *name, size_t length)
{
    gpuhal_plugin_report report;
    bool found = length == 3 && strncmp(name, "all", 3) == 0;
    for (uint32_t i = 0; !found && gpuhal_probe_report(gpu, i, &report); i++) {
        found = strlen(report.name) == length && strncmp(report.name, name, length) == 0;
    }
    return found;
}

/* A mistyped name would silently do nothing. The option's value begins with a name. */
static gpuhal_probe_exit check_retry(const gpuhal_probe_options *options, const gpuhal *gpu)
{
    for (const char *item = options->retry; item && *item; item += strspn(item, SEPARATORS)) {
        size_t length = strcspn(item, SEPARATORS);
        if (!is_plugin(gpu, item, length)) {
            gpuhal_probe_say("--retry: there is no plugin \"%.*s\"; gpuhal-probe --explain lists them", (int)length,
                             item);
            return PROBE_NOT_FOUND;
        }
        item += length;
    }
    return PROBE_GO_ON;
}

static gpuhal_probe_exit list_devices(const gpuhal_probe_options *options, gpuhal_probe_machine *machine)
{
    machine->count = gpuhal_device_count(machine->gpu);
    machine->devices = calloc(machine->count + 1, sizeof *machine->devices);
    if (!machine->devices) {
        machine->count = 0;
        complain("out of memory");
        return PROBE_INTERNAL;
    }
    for (uint32_t i = 0; i < machine->count; i++) {
        gpuhal_probe_device *entry = &machine->devices[i];
        entry->device = gpuhal_device_at(machine->gpu, i);
        gpuhal_device_physical(entry->device, &entry->physical, &entry->preferred);
        entry->processor = is_processor(entry->device);
        entry->shown = is_shown(options, entry);
        entry->in_child = !was_probed_here(machine->gpu, gpuhal_device_backend(entry->device));
    }
    choose_rows(options, machine);
    return PROBE_GO_ON;
}

/* Keeps a copy of the reason for the choice. */
static gpuhal_probe_exit set_reason(gpuhal_probe_machine *machine, const char *reason)
{
    free(machine->chosen_reason);
    machine->chosen_reason = strdup(reason);
    if (!machine->chosen_reason) {
        complain("out of memory");
        return PROBE_INTERNAL;
    }
    return PROBE_GO_ON;
}

static bool is_preferred(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry)
{
    (void)machine;
    return entry->preferred;
}

/* With --verify those alone that passed. */
static bool is_usable(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry)
{
    return (machine->verifying ? entry->verified : entry->shown) && gpuhal_probe_is_usable(machine, entry);
}

/* "cuda:0,cuda:3"; NULL without memory. */
static char *list_ids(const gpuhal_probe_machine *machine,
                      bool (*is_listed)(const gpuhal_probe_machine *machine, const gpuhal_probe_device *entry))
{
    char *list = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&list, &bytes);
    for (uint32_t i = 0; to && i < machine->count; i++) {
        if (is_listed(machine, &machine->devices[i])) {
            fprintf(to, "%s%s", ftell(to) > 0 ? "," : "", gpuhal_device_id(machine->devices[i].device));
        }
    }
    if (!to || fclose(to)) {
        free(list);
        complain("out of memory");
        return NULL;
    }
    return list;
}

static bool has_number(const char *selectors)
{
    bool found = false;
    for (const char *item = selectors; !found && *item; item += strspn(item, SEPARATORS)) {
        item += *item == '!';
        const size_t length = strcspn(item, SEPARATORS "@");
        found = length > 0 && strspn(item, "0123456789-") == length;
        item += strcspn(item, SEPARATORS);
    }
    return found;
}

/* Whether the list means the same only for the library when it opens: numbers count with nothing hidden, what `!` takes
 * away is hidden by now, and a limit and values count there alone. */
static bool is_for_opening(const char *selectors)
{
    return has_number(selectors) || strpbrk(selectors, "!@") || strstr(selectors, "most_free") ||
           strstr(selectors, "least_loaded");
}

/* The filter has hidden what the list does not name. */
static gpuhal_probe_exit choose(const gpuhal_probe_options *options, gpuhal_probe_machine *machine)
{
    const char *reason = NULL;
    char words[GPUHAL_PROBE_TEXT_BYTES];
    const bool counted = options->device && is_for_opening(options->device);
    char *ids = counted ? list_ids(machine, is_preferred) : NULL;
    if (counted && !ids) {
        return PROBE_INTERNAL;
    }
    if (gpuhal_select(machine->gpu, counted ? ids : options->device, 0, &machine->chosen, &reason) != GPUHAL_OK) {
        machine->chosen = NULL;
        reason = gpuhal_probe_in_options(gpuhal_last_error()->sentence, words);
    }
    free(ids);
    return set_reason(machine, reason ? reason : "");
}

/* A device that was just found at fault is not the one to use: the best of the others is chosen by the library's rule.
 */
static gpuhal_probe_exit choose_again(gpuhal_probe_machine *machine)
{
    char reason[512];
    const gpuhal_probe_device *failed = NULL;
    for (uint32_t i = 0; i < machine->count; i++) {
        const gpuhal_probe_device *entry = &machine->devices[i];
        if (entry->device == machine->chosen && !gpuhal_probe_is_usable(machine, entry)) {
            failed = entry;
        }
    }
    if (!failed) {
        return PROBE_GO_ON;
    }
    char *list = list_ids(machine, is_usable);
    if (!list) {
        return PROBE_INTERNAL;
    }
    const bool found = *list && gpuhal_select(machine->gpu, list, 0, &machine->chosen, NULL) == GPUHAL_OK;
    machine->chosen = found ? machine->chosen : NULL;
    free(list);
    const bool at_work = failed->verified && failed->result.status;
    snprintf(reason, sizeof reason,
             at_work && found ? "the best of those that passed --verify, which %.128s %s"
             : at_work        ? "%.128s %s --verify"
             : found          ? "the best of the others: %.128s is lost"
                              : "%.128s is lost",
             gpuhal_device_id(failed->device), failed->result.not_tried ? "did not come to" : "failed");
    return set_reason(machine, reason);
}

uint64_t gpuhal_probe_time_left(const gpuhal_probe_machine *machine, uint64_t each, uint32_t things)
{
    const uint64_t now = gpuhal_tool_now_ns();
    const uint64_t left = machine->until_ns > now ? machine->until_ns - now : 0;
    return !machine->until_ns ? each : things > 1 ? left / 2 : left;
}

/* What the listing for people shows: the other interfaces would use the same physical device once more. */
static void verify_devices(gpuhal_probe_machine *machine)
{
    uint32_t shown = 0, done = 0;
    for (uint32_t i = 0; i < machine->count; i++) {
        shown += machine->devices[i].shown;
    }
    machine->verifying = true;
    for (uint32_t i = 0; i < machine->count; i++) {
        gpuhal_probe_device *entry = &machine->devices[i];
        if (!entry->shown) {
            continue;
        }
        char text[96];
        const uint64_t limit_ns = gpuhal_probe_time_left(machine, VERIFY_NS, shown - done);
        snprintf(text, sizeof text, "%.40s (%u of %u)", gpuhal_device_id(entry->device), ++done, shown);
        entry->verified = true;
        if (limit_ns == 0) {
            entry->result = (gpuhal_probe_result){.status = GPUHAL_ERROR_TIMEOUT, .not_tried = true};
            snprintf(entry->result.sentence, sizeof entry->result.sentence, GPUHAL_PROBE_TIME_IS_OVER);
            continue;
        }
        gpuhal_probe_wait_begin(text, limit_ns);
        gpuhal_probe_verify(entry->device, entry->in_child, limit_ns, &entry->result);
        gpuhal_probe_wait_end();
    }
}

/* Without the list of the hardware the devices are listed nevertheless. */
static gpuhal_probe_exit find_hardware(gpuhal_probe_machine *machine)
{
    machine->hardware_ns = gpuhal_tool_now_ns();
    if (gpuhal_hardware_view_create(machine->gpu, &machine->hardware_view)) {
        machine->hardware_view = NULL;
        complain(gpuhal_last_error()->sentence);
        return PROBE_GO_ON;
    }
    if (gpuhal_registry_view_of(machine->gpu, &machine->record)) {
        machine->record = NULL;
    }
    const uint32_t count = gpuhal_hardware_count(machine->hardware_view);
    machine->hardware = calloc((size_t)count + 1, sizeof *machine->hardware);
    if (!machine->hardware) {
        complain("out of memory");
        return PROBE_INTERNAL;
    }
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_hardware_info *info = &machine->hardware[machine->hardware_count];
        *info = (gpuhal_hardware_info){.size = sizeof *info};
        machine->hardware_count += gpuhal_hardware_at(machine->hardware_view, i, info) == GPUHAL_OK;
    }
    return PROBE_GO_ON;
}

/* ---- where a selector matches nothing */

/* Says why hardware cannot be used that one of the selectors means, and what to do. NOT_FOUND where none means any. */
static gpuhal_probe_exit say_unusable(const gpuhal_probe_machine *machine, const char *source, const char *selectors)
{
    gpuhal_probe_exit code = PROBE_NOT_FOUND;
    for (const char *item = selectors; *item; item += strspn(item, SEPARATORS)) {
        const size_t length = strcspn(item, SEPARATORS);
        char selector[256] = "", text[GPUHAL_PROBE_JOINED_BYTES];
        gpuhal_device *device = NULL;
        gpuhal_probe_problems problems = {0};
        if (*item != '!') {
            snprintf(selector, sizeof selector, "%.*s", (int)strcspn(item, SEPARATORS "@"), item);
        }
        const bool missing = *selector && (gpuhal_select(machine->gpu, selector, 0, &device, NULL) != GPUHAL_OK ||
                                           gpuhal_probe_rows_are_missing(machine, selector));
        if (missing && !gpuhal_probe_problems_of(machine, selector, &problems)) {
            complain("out of memory");
            code = PROBE_INTERNAL;
        }
        for (uint32_t i = 0; code != PROBE_INTERNAL && i < problems.count; i++) {
            const bool refused =
                strcmp(problems.list[i].code, gpuhal_hardware_state_name(GPUHAL_HARDWARE_NO_PERMISSION)) == 0;
            code = !refused ? PROBE_PARTIAL : code == PROBE_NOT_FOUND ? PROBE_NO_PERMISSION : code;
            if (gpuhal_probe_problem_joined(&problems, i, text)) {
                gpuhal_probe_say("%s: %s; next: %s", source, text, problems.list[i].fix);
            }
        }
        gpuhal_probe_problems_finish(&problems);
        item += length;
    }
    return code;
}

/* Says the same with all devices, whatever is selected, which stay in *out_all. */
static gpuhal_probe_exit say_unusable_of_all(const gpuhal_probe_options *options, gpuhal_probe_machine *out_all)
{
    const char *variable = getenv("GPUHAL_DEVICES");
    char *selectors = strdup(options->device ? options->device : variable ? variable : "");
    gpuhal_probe_exit code = PROBE_NOT_FOUND;
    *out_all = (gpuhal_probe_machine){0};
    unsetenv("GPUHAL_DEVICES");
    /* Where it does not open a backend's name is unknown, not the selector. */
    const bool open = selectors && open_gpu(options, NULL, &out_all->gpu) == GPUHAL_OK;
    if (open && list_devices(options, out_all) == PROBE_GO_ON && find_hardware(out_all) == PROBE_GO_ON) {
        code = say_unusable(out_all, options->device ? "--device" : "GPUHAL_DEVICES", selectors);
    }
    if (variable && selectors && !options->device) {
        setenv("GPUHAL_DEVICES", selectors, 1);
    }
    free(selectors);
    return code;
}

/* A number that has come to the processor may be that of a GPU that is gone. */
static gpuhal_probe_exit judge_numbers(const gpuhal_probe_options *options, const gpuhal_probe_machine *machine)
{
    const char *variable = getenv("GPUHAL_DEVICES"), *selectors = options->device ? options->device : variable;
    bool has_processor = false;
    for (uint32_t i = 0; i < machine->count; i++) {
        has_processor = has_processor || machine->devices[i].processor;
    }
    if (!selectors || !has_number(selectors) || !has_processor) {
        return PROBE_GO_ON;
    }
    gpuhal_probe_machine all;
    const gpuhal_probe_exit code = say_unusable_of_all(options, &all);
    gpuhal_probe_machine_finish(&all);
    return code == PROBE_NOT_FOUND ? PROBE_GO_ON : code;
}

/* A selector matched nothing. Hardware that cannot be used has its own reason; else the library's sentence, `said`, has
 * that of a plugin which lacks permission. */
static gpuhal_probe_exit judge_absence(const gpuhal_probe_options *options, const char *said)
{
    gpuhal_probe_machine all;
    gpuhal_probe_exit code = say_unusable_of_all(options, &all);
    if (code == PROBE_NOT_FOUND) {
        complain(said);
    }
    gpuhal_plugin_report report;
    for (uint32_t i = 0; code == PROBE_NOT_FOUND && all.gpu && gpuhal_probe_report(all.gpu, i, &report); i++) {
        const bool refused = report.state == GPUHAL_PLUGIN_NO_PERMISSION;
        code = refused && strstr(said, report.reason) ? PROBE_NO_PERMISSION : code;
    }
    gpuhal_probe_machine_finish(&all);
    return code;
}

static gpuhal_probe_exit fail_open(const gpuhal_probe_options *options, gpuhal_status status)
{
    char said[1024];
    snprintf(said, sizeof said, "%s", gpuhal_last_error()->sentence);
    if (status == GPUHAL_ERROR_NOT_FOUND && (options->device || getenv("GPUHAL_DEVICES"))) {
        return judge_absence(options, said);
    }
    complain(said);
    return status == GPUHAL_ERROR_INVALID_ARGUMENT ? PROBE_USAGE
           : status == GPUHAL_ERROR_NOT_FOUND      ? PROBE_NOT_FOUND
                                                   : PROBE_INTERNAL;
}

/* A single scrape does not wait; what repeats has the time. */
static gpuhal_probe_extent extent_of(const gpuhal_probe_options *options)
{
    switch (options->format) {
    case PROBE_FORMAT_TABLE:
    case PROBE_FORMAT_WIDE:
        return PROBE_READ_TABLE;
    case PROBE_FORMAT_OPENMETRICS:
    case PROBE_FORMAT_GRES:
        return options->every_ns ? PROBE_READ_ALL : PROBE_READ_AT_ONCE;
    default:
        return PROBE_READ_ALL;
    }
}

/* The drivers report now which devices are lost; what takes their place is in the table, too. */
static gpuhal_probe_exit read_values(const gpuhal_probe_options *options, gpuhal_probe_extent extent,
                                     gpuhal_probe_machine *machine)
{
    bool read = gpuhal_probe_values_read(machine, extent);
    if (read) {
        choose_rows(options, machine);
        read = gpuhal_probe_values_read(machine, extent);
    }
    if (!read) {
        complain("out of memory");
        return PROBE_INTERNAL;
    }
    return choose_again(machine);
}

gpuhal_probe_exit gpuhal_probe_machine_open(const gpuhal_probe_options *options, gpuhal_probe_machine *out_machine)
{
    *out_machine = (gpuhal_probe_machine){0};
    if (options->backends) {
        unsetenv("GPUHAL_BACKENDS");
    }
    if (options->device) {
        unsetenv("GPUHAL_DEVICES");
    }
    uint64_t begin = gpuhal_tool_now_ns();
    out_machine->until_ns = options->timeout_ns ? begin + options->timeout_ns : 0;
    gpuhal_probe_wait_begin("the plugins", options->timeout_ns ? options->timeout_ns : OPEN_NS);
    gpuhal_status status = open_gpu(options, options->device, &out_machine->gpu);
    out_machine->open_ns = gpuhal_tool_now_ns() - begin;
    gpuhal_probe_wait_end();
    if (status) {
        return fail_open(options, status);
    }
    out_machine->generation = gpuhal_generation(out_machine->gpu);
    gpuhal_probe_exit code = check_retry(options, out_machine->gpu);
    if (code == PROBE_GO_ON) {
        code = list_devices(options, out_machine);
    }
    if (code == PROBE_GO_ON) {
        code = judge_numbers(options, out_machine);
    }
    if (code == PROBE_GO_ON) {
        code = choose(options, out_machine);
    }
    if (code == PROBE_GO_ON) {
        code = find_hardware(out_machine);
    }
    if (code == PROBE_GO_ON && options->verify) {
        verify_devices(out_machine);
    }
    if (code == PROBE_GO_ON) {
        choose_rows(options, out_machine);
        code = choose_again(out_machine);
    }
    if (code == PROBE_GO_ON && options->links && !gpuhal_probe_links_find(options, VERIFY_NS, out_machine)) {
        complain("out of memory");
        code = PROBE_INTERNAL;
    }
    const bool wants_values = !options->cached && !options->target; /* which reads those of its device alone */
    return code == PROBE_GO_ON && wants_values ? read_values(options, extent_of(options), out_machine) : code;
}

static void forget_hardware(gpuhal_probe_machine *machine)
{
    gpuhal_hardware_view_release(machine->hardware_view);
    gpuhal_registry_view_release(machine->record);
    free(machine->hardware);
    machine->record = NULL;
    machine->hardware_view = NULL;
    machine->hardware = NULL;
    machine->hardware_count = 0;
}

/* The list of devices has changed; what was found out about single ones is not valid any more. */
static gpuhal_probe_exit list_again(const gpuhal_probe_options *options, gpuhal_probe_machine *machine)
{
    free(machine->devices);
    free(machine->chosen_reason);
    machine->devices = NULL;
    machine->chosen_reason = NULL;
    machine->generation = gpuhal_generation(machine->gpu);
    const gpuhal_probe_exit code = list_devices(options, machine);
    return code == PROBE_GO_ON ? choose(options, machine) : code;
}

bool gpuhal_probe_machine_refresh(const gpuhal_probe_options *options, gpuhal_probe_extent extent,
                                  gpuhal_probe_machine *machine)
{
    gpuhal_probe_exit code = PROBE_GO_ON;
    const uint64_t now_ns = gpuhal_tool_now_ns();
    const bool changed = gpuhal_generation(machine->gpu) != machine->generation;
    gpuhal_probe_values_finish(machine);
    if (changed) {
        code = list_again(options, machine);
    }
    for (uint32_t i = 0; i < machine->count; i++) {
        machine->devices[i].values = NULL;
    }
    if (code == PROBE_GO_ON && (changed || now_ns - machine->hardware_ns >= RESCAN_NS)) {
        forget_hardware(machine);
        code = find_hardware(machine);
    }
    if (code == PROBE_GO_ON && !options->cached) {
        code = read_values(options, extent, machine);
    }
    return code == PROBE_GO_ON;
}

void gpuhal_probe_machine_finish(gpuhal_probe_machine *machine)
{
    forget_hardware(machine);
    gpuhal_close(machine->gpu);
    free(machine->devices);
    gpuhal_probe_values_finish(machine);
    free(machine->links);
    free(machine->chosen_reason);
    *machine = (gpuhal_probe_machine){0};
}
