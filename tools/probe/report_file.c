/* report_file.c: see report_file.h. All sections are first printed to memory in the format of the corresponding
 * options. Then the words that identify the machine are replaced. */
#include "report_file.h"

#include "print.h"
#include "processes.h"
#include "registry.h"
#include "scrub.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { KERNEL_LOG_READ_ALL = 3, KERNEL_LOG_SIZE = 10, LOG_LINES_MOST = 200, PATH_BYTES = 4096 };

static void title(FILE *to, const char *what, const char *how)
{
    fprintf(to, "\n==== %s (%s)\n\n", what, how);
}

static void write_versions(FILE *to)
{
    struct utsname system;
    const uint32_t abi = gpuhal_abi_version();
    title(to, "versions", "gpuhal-probe --version");
    fprintf(to, "gpuhal-probe %s, library %s, plugin ABI %u.%u\n", GPUHAL_VERSION, gpuhal_version(), abi >> 16,
            abi & 0xffff);
    if (uname(&system) == 0) {
        fprintf(to, "%s %s, %s\n", system.sysname, system.release, system.machine);
    }
}

static bool is_listed(const gpuhal_probe_environment *environment, const char *variable, size_t length)
{
    bool found = false;
    for (uint32_t i = 0; i < environment->count && !found; i++) {
        const char *name = environment->list[i].name;
        found = strlen(name) == length && memcmp(name, variable, length) == 0;
    }
    return found;
}

/* Omits the value of a misspelled library variable, because the correct variable may be one whose value a report omits
 * (environment.h). */
static void write_environment(const gpuhal_probe_environment *environment, FILE *to)
{
    title(to, "environment", "variables that are set");
    for (uint32_t i = 0; i < environment->count; i++) {
        if (environment->list[i].value) {
            fprintf(to, "%s=%s\n", environment->list[i].name, environment->list[i].value);
        }
    }
    for (char **variable = environ; *variable; variable++) {
        const size_t length = strcspn(*variable, "=");
        if (strncmp(*variable, "GPUHAL_", strlen("GPUHAL_")) == 0 && !is_listed(environment, *variable, length)) {
            fprintf(to, "%.*s is not a variable of the library\n", (int)length, *variable);
        }
    }
}

static void write_hardware(const gpuhal_probe_machine *machine, FILE *to)
{
    title(to, "hardware", "as the kernel lists it");
    for (uint32_t i = 0; i < machine->hardware_count; i++) {
        const gpuhal_hardware_info *one = &machine->hardware[i];
        fprintf(to, "%s [%04x:%04x] class %06x, %s: %s; kernel driver %s %s; nodes %s %s %s\n",
                *one->address ? one->address : one->place, one->vendor_id, one->device_id, one->pci_class, one->name,
                gpuhal_hardware_state_name(one->state), *one->kernel_driver ? one->kernel_driver : "none",
                one->kernel_driver_version, one->drm_card, one->drm_render_node, one->vendor_node);
        fprintf(to, "%s%s%s", *one->why ? "    " : "", one->why, *one->why ? "\n" : "");
    }
}

static void write_registry(const gpuhal_probe_screen *screen)
{
    gpuhal_view *view = NULL;
    title(screen->out, "registry", "gpuhal-probe --registry");
    if (gpuhal_view_read(NULL, &view)) {
        fprintf(screen->out, "%s\n", gpuhal_last_error()->sentence);
    } else {
        gpuhal_probe_registry_print(view, false, screen);
    }
    gpuhal_view_release(view);
}

/* ---- the kernel's log */

static bool is_about_gpus(const char *line)
{
    static const char *const words[] = {"NVRM",  "Xid",  "nvidia", "nouveau", "amdgpu", "kfd",     "[drm",
                                        "i915 ", "xe 0", "vfio",   "radeon",  "AER",    "msm_dpu", "panfrost"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strstr(line, words[i])) {
            return true;
        }
    }
    return false;
}

/* Writes the lines about GPUs without the first `skip` lines. Writes nothing if `to` is NULL. Returns the number of
 * lines about GPUs. */
static uint32_t walk_lines(char *log, uint32_t skip, FILE *to)
{
    uint32_t about = 0;
    for (char *line = log; *line;) {
        const size_t length = strcspn(line, "\n");
        const char end = line[length];
        line[length] = 0;
        const bool counts = is_about_gpus(line);
        about += counts;
        if (to && counts && about > skip) {
            fprintf(to, "%s\n", line);
        }
        line[length] = end;
        line += length + (end != 0);
    }
    return about;
}

static void write_lines(char *log, FILE *to)
{
    const uint32_t about = walk_lines(log, 0, NULL);
    if (about == 0) {
        fputs("no line is about a GPU\n", to);
    }
    (void)walk_lines(log, about > LOG_LINES_MOST ? about - LOG_LINES_MOST : 0, to);
}

static void write_kernel_log(FILE *to)
{
    title(to, "kernel log", "its newest lines about GPUs");
    const int size = klogctl(KERNEL_LOG_SIZE, NULL, 0);
    char *log = size > 0 ? calloc(1, (size_t)size + 1) : NULL;
    const int length = log ? klogctl(KERNEL_LOG_READ_ALL, log, size) : -1;
    if (length < 0) {
        fprintf(to, "it cannot be read: %s\n", strerror(errno));
    } else {
        log[length] = 0;
        write_lines(log, to);
    }
    free(log);
}

/* ---- the whole */

static bool write_parts(const gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                        const gpuhal_probe_problems *problems, const gpuhal_probe_environment *environment, FILE *to)
{
    gpuhal_probe_options document = *options;
    document.format = PROBE_FORMAT_JSON;
    gpuhal_probe_screen screen = {.out = to, .width = 120, .utf8 = true};
    fputs("A report of gpuhal-probe: versions, environment, devices, why plugins are used or not, hardware, registry, "
          "kernel log,\nand everything as JSON. Host, user, network addresses and values of options are replaced, "
          "UUIDs are checksums;\nprocesses stand without users, commands and containers.\n",
          to);
    write_versions(to);
    write_environment(environment, to);
    title(to, "devices", "gpuhal-probe --all --explain");
    gpuhal_probe_print_head(machine, options, &screen);
    gpuhal_probe_marks marks = {0};
    if (!gpuhal_probe_print_table(machine, options, &screen, &marks)) {
        return false;
    }
    gpuhal_probe_print_problems(problems, &screen, &marks);
    gpuhal_probe_print_not_given(machine, options, &screen);
    gpuhal_probe_print_explanation(machine, options, &screen);
    write_hardware(machine, to);
    write_registry(&screen);
    write_kernel_log(to);
    title(to, "everything", "gpuhal-probe --json");
    return gpuhal_probe_print_json(machine, problems, &document, environment, to);
}

/* Writes a temporary file and links it to the path when the contents are complete. An existing file is not replaced. */
static gpuhal_probe_exit write_file(const char *path, const char *text)
{
    char fresh[PATH_BYTES];
    if (snprintf(fresh, sizeof fresh, "%s.XXXXXX", path) >= (int)sizeof fresh) {
        errno = ENAMETOOLONG;
    }
    const int descriptor = mkstemp(fresh);
    FILE *to = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    bool good = to != NULL;
    if (good) {
        gpuhal_probe_scrub(text, to);
        good = fflush(to) == 0 && fsync(descriptor) == 0;
        good = fclose(to) == 0 && good && link(fresh, path) == 0;
    }
    const int error = errno;
    if (descriptor >= 0) {
        unlink(fresh);
    }
    if (!good) {
        gpuhal_probe_say("the report cannot be written to %s: %s", path, strerror(error));
        return PROBE_INTERNAL;
    }
    return PROBE_COMPLETE;
}

gpuhal_probe_exit gpuhal_probe_write_report(gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                            const gpuhal_probe_environment *environment, FILE *out)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&text, &bytes);
    gpuhal_probe_problems problems = {0};
    bool good = to && gpuhal_probe_processes_read(options, machine) &&
                gpuhal_probe_problems_find(machine, options, &problems) &&
                write_parts(machine, options, &problems, environment, to);
    good = to && fclose(to) == 0 && good;
    gpuhal_probe_exit code = PROBE_COMPLETE;
    if (!good) {
        gpuhal_probe_say("out of memory");
        code = PROBE_INTERNAL;
    } else if (strcmp(options->report, "-") == 0) {
        gpuhal_probe_scrub(text, out);
    } else {
        code = write_file(options->report, text);
        if (code == PROBE_COMPLETE) {
            fprintf(out, "written to %s; read it before you pass it on\n", options->report);
        }
    }
    gpuhal_probe_problems_finish(&problems);
    free(text);
    return code;
}
