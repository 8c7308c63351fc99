/* cores.c: see cores.h. */
#include "cores.h"

#include "../common/host.h"
#include "../common/text.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CPU_FOLDER "/sys/devices/system/cpu/"
#define CPUS_MOST  65536u

typedef struct core {
    uint32_t first_cpu;        /* the core's first hardware thread */
    uint32_t package;          /* the kernel's package number */
    uint32_t first_in_package; /* first CPU of the package; determines the order of packages */
} core;

/* Reads the first line of a sysfs file; returns false if the file cannot be read. */
static bool read_line(const char *name, char *line, size_t bytes)
{
    char path[PATH_MAX];
    const char *root = getenv("GPUHAL_SYSTEM_ROOT");
    snprintf(path, sizeof path, "%s" CPU_FOLDER "%s", root ? root : "", name);
    FILE *file = gpuhal_tool_open_plain(path);
    const bool read = file && fgets(line, (int)bytes, file);
    if (file) {
        fclose(file);
    }
    line[read ? strcspn(line, "\n") : 0] = 0;
    return read;
}

/* Parses the next range of a CPU list and advances *list. Returns false at the end, and for an invalid list. */
static bool next_range(const char **list, uint32_t *out_first, uint32_t *out_last)
{
    uint64_t first, last;
    const char *rest;
    if (!gpuhal_tool_read_number(*list, 0, CPUS_MOST - 1, &first, &rest)) {
        return false;
    }
    last = first;
    if (*rest == '-' && !gpuhal_tool_read_number(rest + 1, first, CPUS_MOST - 1, &last, &rest)) {
        return false;
    }
    *out_first = (uint32_t)first;
    *out_last = (uint32_t)last;
    *list = rest + (*rest == ',');
    return true;
}

/* Reads the core of a CPU. Returns false if the kernel does not report the core. */
static bool read_core(uint32_t cpu, core *out_core)
{
    char name[64], line[PROBE_CORE_TEXT_BYTES];
    const char *list = line;
    uint64_t package;
    uint32_t last;
    snprintf(name, sizeof name, "cpu%" PRIu32 "/topology/physical_package_id", cpu);
    if (!read_line(name, line, sizeof line) || !gpuhal_tool_read_number(line, 0, UINT32_MAX, &package, NULL)) {
        return false;
    }
    snprintf(name, sizeof name, "cpu%" PRIu32 "/topology/thread_siblings_list", cpu);
    *out_core = (core){.package = (uint32_t)package};
    return read_line(name, line, sizeof line) && next_range(&list, &out_core->first_cpu, &last);
}

static int compare(const void *left, const void *right)
{
    const core *a = left, *b = right;
    if (a->first_in_package != b->first_in_package) {
        return a->first_in_package < b->first_in_package ? -1 : 1;
    }
    return a->first_cpu < b->first_cpu ? -1 : a->first_cpu > b->first_cpu;
}

/* Sorts the cores and assigns each CPU its core number. `of_cpu` contains the first thread of each CPU's core. */
static void number_cores(core *list, const uint32_t *of_cpu, gpuhal_probe_cores *cores)
{
    for (uint32_t i = 0; i < cores->count; i++) {
        list[i].first_in_package = list[i].first_cpu;
        for (uint32_t k = 0; k < cores->count; k++) {
            const bool earlier = list[k].package == list[i].package && list[k].first_cpu < list[i].first_in_package;
            list[i].first_in_package = earlier ? list[k].first_cpu : list[i].first_in_package;
        }
    }
    qsort(list, cores->count, sizeof *list, compare);
    for (uint32_t cpu = 0; cpu < cores->cpus; cpu++) {
        for (uint32_t i = 0; of_cpu[cpu] != UINT32_MAX && i < cores->count; i++) {
            cores->numbers[cpu] = list[i].first_cpu == of_cpu[cpu] ? i : cores->numbers[cpu];
        }
    }
}

bool gpuhal_probe_cores_read(gpuhal_probe_cores *out_cores)
{
    char line[PROBE_CORE_TEXT_BYTES];
    const char *list = line;
    uint32_t first, last, cpus = 0;
    *out_cores = (gpuhal_probe_cores){0};
    read_line("present", line, sizeof line);
    while (next_range(&list, &first, &last)) {
        cpus = last + 1 > cpus ? last + 1 : cpus;
    }
    core *found = calloc(cpus + 1, sizeof *found);
    uint32_t *of_cpu = malloc((cpus + 1) * sizeof *of_cpu);
    out_cores->numbers = malloc((cpus + 1) * sizeof *out_cores->numbers);
    const bool made = found && of_cpu && out_cores->numbers;
    for (uint32_t cpu = 0; made && cpu < cpus; cpu++) {
        core *one = &found[out_cores->count];
        const bool known = read_core(cpu, one);
        of_cpu[cpu] = known ? one->first_cpu : UINT32_MAX;
        out_cores->numbers[cpu] = UINT32_MAX;
        out_cores->count += known && one->first_cpu == cpu;
    }
    if (made) {
        out_cores->cpus = cpus;
        number_cores(found, of_cpu, out_cores);
    }
    free(found);
    free(of_cpu);
    return made;
}

void gpuhal_probe_cores_finish(gpuhal_probe_cores *cores)
{
    free(cores->numbers);
    *cores = (gpuhal_probe_cores){0};
}

static void print_ranges(const bool *is_in, uint32_t count, char space[PROBE_CORE_TEXT_BYTES])
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t last = i;
        while (is_in[i] && last + 1 < count && is_in[last + 1]) {
            last++;
        }
        if (is_in[i] && last > i) {
            gpuhal_tool_append(space, PROBE_CORE_TEXT_BYTES, ",", "%" PRIu32 "-%" PRIu32, i, last);
        } else if (is_in[i]) {
            gpuhal_tool_append(space, PROBE_CORE_TEXT_BYTES, ",", "%" PRIu32, i);
        }
        i = last;
    }
}

bool gpuhal_probe_cores_of(const gpuhal_probe_cores *cores, const char *cpus, char space[PROBE_CORE_TEXT_BYTES])
{
    uint32_t first, last, inside = 0;
    *space = 0;
    bool *is_in = calloc(cores->count + 1, sizeof *is_in);
    if (!is_in) {
        return false;
    }
    bool known = *cpus != 0;
    while (next_range(&cpus, &first, &last)) {
        for (uint32_t cpu = first; cpu <= last; cpu++) {
            const uint32_t number = cpu < cores->cpus ? cores->numbers[cpu] : UINT32_MAX;
            known = known && number != UINT32_MAX;
            if (number != UINT32_MAX) {
                inside += !is_in[number];
                is_in[number] = true;
            }
        }
    }
    if (known && !*cpus && inside < cores->count) {
        print_ranges(is_in, cores->count, space);
    }
    free(is_in);
    return true;
}
