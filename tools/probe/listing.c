/* listing.c: see listing.h. */
#include "listing.h"

#include "processes.h"
#include "progress.h"
#include "rows.h"
#include "screen.h"

#include <ctype.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

void gpuhal_probe_complain(const char *sentence)
{
    char words[GPUHAL_PROBE_TEXT_BYTES];
    gpuhal_probe_say("%s", gpuhal_probe_in_options(sentence, words));
}

/* @p deadline_ns is the plugins' deadline; 0 for the library's default. */
gpuhal_status gpuhal_probe_open_gpu(const gpuhal_probe_options *options, const char *devices, uint64_t deadline_ns,
                                    gpuhal **out_gpu)
{
    gpuhal_config config = {
        .size = sizeof config,
        .backends = options->backends,
        .devices = devices,
        .helper_deadline_ns = deadline_ns,
        .retry = options->run_again ? options->run_again : options->retry,
    };
    if (isatty(STDERR_FILENO) && !getenv("GPUHAL_LOG")) { /* the progress line names the current step */
        config.log = gpuhal_probe_wait_listen;
        config.log_level = GPUHAL_PROBE_WAIT_LEVEL;
    }
    return gpuhal_open(&config, out_gpu);
}

/* Returns whether a comma-separated list of selectors names interfaces, by backend, id or name. Addresses, UUIDs and
 * numbers name physical devices. A plain number after an id belongs to the id's backend. It needs no check, because the
 * id already names an interface. */
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

/* Returns whether the device may have a row: by default only the preferred interface of each physical device, or of
 * each partition. gpuhal_probe_choose_rows() may still omit the processor from the table. */
static bool is_shown(const gpuhal_probe_options *options, const gpuhal_probe_device *entry)
{
    return options->all || entry->preferred || names_interfaces(options->device);
}

bool gpuhal_probe_is_processor(const gpuhal_device *device)
{
    uint64_t software = 0, type = 0;
    gpuhal_device_u64(device, GPUHAL_FACT_SOFTWARE, &software);
    gpuhal_device_u64(device, GPUHAL_FACT_TYPE, &type);
    return software || type == GPUHAL_DEVICE_CPU;
}

void gpuhal_probe_choose_rows(const gpuhal_probe_options *options, gpuhal_probe_machine *machine)
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

static void drop_view(gpuhal_probe_machine *machine)
{
    gpuhal_view_release(machine->view);
    free(machine->hardware);
    machine->view = NULL;
    machine->hardware = NULL;
    machine->hardware_count = 0;
}

gpuhal_probe_exit gpuhal_probe_look(gpuhal_probe_machine *machine)
{
    drop_view(machine);
    machine->view_ns = gpuhal_tool_now_ns();
    gpuhal_status status = gpuhal_view_of(machine->gpu, GPUHAL_VIEW_HARDWARE, &machine->view);
    if (status) { /* the devices are listed even without the hardware */
        gpuhal_probe_complain(gpuhal_last_error()->sentence);
        status = gpuhal_view_of(machine->gpu, 0, &machine->view);
    }
    const uint32_t count = gpuhal_view_count(machine->view, GPUHAL_RECORD_HARDWARE);
    machine->hardware = calloc((size_t)count + 1, sizeof *machine->hardware);
    if (status || !machine->hardware) {
        gpuhal_probe_complain("out of memory");
        return PROBE_INTERNAL;
    }
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_hardware_info *info = &machine->hardware[machine->hardware_count];
        info->size = sizeof *info;
        machine->hardware_count += gpuhal_view_get(machine->view, GPUHAL_RECORD_HARDWARE, i, info) == GPUHAL_OK;
    }
    return PROBE_GO_ON;
}

/* A plugin that was probed in this process has already started in it, so a forked child cannot use the plugin. */
static bool was_probed_here(const gpuhal_view *view, const char *backend)
{
    gpuhal_plugin_report report = {.size = sizeof report};
    for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK; i++) {
        if (report.state == GPUHAL_PLUGIN_OK && strcmp(report.name, backend) == 0) {
            return !report.isolated;
        }
    }
    return true;
}

gpuhal_probe_exit gpuhal_probe_list_devices(const gpuhal_probe_options *options, gpuhal_probe_machine *machine)
{
    const gpuhal_probe_exit code = gpuhal_probe_look(machine);
    if (code != PROBE_GO_ON) {
        return code;
    }
    machine->count = gpuhal_device_count(machine->gpu);
    machine->devices = calloc(machine->count + 1, sizeof *machine->devices);
    if (!machine->devices) {
        machine->count = 0;
        gpuhal_probe_complain("out of memory");
        return PROBE_INTERNAL;
    }
    for (uint32_t i = 0; i < machine->count; i++) {
        gpuhal_probe_device *entry = &machine->devices[i];
        entry->device = gpuhal_device_at(machine->gpu, i);
        gpuhal_device_physical(entry->device, &entry->physical, &entry->preferred);
        entry->processor = gpuhal_probe_is_processor(entry->device);
        entry->shown = is_shown(options, entry);
        entry->in_child = !was_probed_here(machine->view, gpuhal_device_backend(entry->device));
    }
    gpuhal_probe_choose_rows(options, machine);
    return PROBE_GO_ON;
}

bool gpuhal_probe_has_number(const char *selectors)
{
    bool found = false;
    for (const char *item = selectors; !found && *item; item += strspn(item, GPUHAL_PROBE_SEPARATORS)) {
        item += *item == '!';
        const size_t length = strcspn(item, GPUHAL_PROBE_SEPARATORS "@");
        found = length > 0 && strspn(item, "0123456789-") == length;
        item += strcspn(item, GPUHAL_PROBE_SEPARATORS);
    }
    return found;
}

uint64_t gpuhal_probe_time_left(const gpuhal_probe_machine *machine, uint64_t each, uint32_t things)
{
    const uint64_t now = gpuhal_tool_now_ns();
    const uint64_t left = machine->until_ns > now ? machine->until_ns - now : 0;
    return !machine->until_ns ? each : things > 1 ? left / 2 : left;
}

void gpuhal_probe_machine_finish(gpuhal_probe_machine *machine)
{
    drop_view(machine);
    gpuhal_probe_processes_finish(machine);
    gpuhal_probe_users_finish(machine);
    gpuhal_probe_kernel_log_finish(machine);
    gpuhal_close(machine->gpu);
    free(machine->devices);
    gpuhal_probe_values_finish(machine);
    free(machine->links);
    free(machine->chosen_reason);
    *machine = (gpuhal_probe_machine){0};
}
