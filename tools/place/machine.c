/* machine.c: see machine.h. */
#include "machine.h"

#include "../common/command_line.h"
#include "../common/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { EXIT_ERROR = 1, EXIT_NO_DEVICE = 3 };

static uint64_t number_of(const gpuhal_device *device, gpuhal_key key)
{
    uint64_t value = 0;
    return gpuhal_device_u64(device, key, &value) == GPUHAL_OK ? value : 0;
}

static bool is_gpu(const gpuhal_device *device)
{
    const uint64_t type = number_of(device, GPUHAL_FACT_TYPE);
    return (type == GPUHAL_DEVICE_GPU || type == GPUHAL_DEVICE_INTEGRATED_GPU) &&
           number_of(device, GPUHAL_FACT_SOFTWARE) == 0;
}

/* Selects one interface of each physical device, in the order of the library's list. */
static uint32_t choose(gpuhal *gpu, bool gpus_only, gpuhal_device **out_devices)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < gpuhal_device_count(gpu) && count < GPUHAL_PLACEMENT_DEVICES_MAX; i++) {
        gpuhal_device *device = gpuhal_device_at(gpu, i);
        uint32_t physical = 0, preferred = 0;
        if (gpuhal_device_physical(device, &physical, &preferred) == GPUHAL_OK && preferred &&
            (!gpus_only || is_gpu(device))) {
            out_devices[count++] = device;
        }
    }
    return count;
}

static void add_device(gpuhal_place_machine *machine, const gpuhal_placement_device *device, uint64_t margin_bytes)
{
    machine->devices[machine->count] = *device;
    machine->devices[machine->count++].margin_bytes = margin_bytes;
}

/* Reads the links between this machine's devices. Links to hypothetical devices remain unknown. */
static void read_links(gpuhal_place_machine *machine, gpuhal_device *const *devices, uint32_t count)
{
    for (uint32_t from = 0; from < count; from++) {
        for (uint32_t to = 0; to < count; to++) {
            gpuhal_placement_link *link = &machine->links[from * machine->count + to];
            if (from != to && gpuhal_placement_describe_link(devices[from], devices[to], link) != GPUHAL_OK) {
                *link = (gpuhal_placement_link){0};
            }
        }
    }
}

static int read_here(const gpuhal_place_options *options, gpuhal_place_machine *machine)
{
    const gpuhal_config config = {.size = sizeof config, .devices = options->devices};
    gpuhal_device *devices[GPUHAL_PLACEMENT_DEVICES_MAX];
    if (gpuhal_open(&config, &machine->gpu) != GPUHAL_OK) {
        char words[1024];
        fprintf(stderr, "gpuhal-place: %s\n",
                gpuhal_tool_in_options(gpuhal_last_error()->sentence, "--device", words, sizeof words));
        return options->devices != NULL && gpuhal_last_error()->status == GPUHAL_ERROR_NOT_FOUND ? EXIT_NO_DEVICE
                                                                                                 : EXIT_ERROR;
    }
    uint32_t count = choose(machine->gpu, options->devices == NULL, devices);
    count = count > 0 ? count : choose(machine->gpu, false, devices);
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_placement_device device;
        if (gpuhal_placement_describe(devices[i], &device) != GPUHAL_OK) {
            fprintf(stderr, "gpuhal-place: %s: %s\n", gpuhal_device_id(devices[i]), gpuhal_last_error()->sentence);
            return EXIT_ERROR;
        }
        add_device(machine, &device, options->margin_bytes);
    }
    read_links(machine, devices, count);
    if (count == 0) {
        fputs("gpuhal-place: there is no device; --given NAME=BYTES describes one\n", stderr);
        return EXIT_NO_DEVICE;
    }
    return GPUHAL_TOOL_GO_ON;
}

int gpuhal_place_machine_read(const gpuhal_place_options *options, gpuhal_place_machine *out_machine)
{
    *out_machine = (gpuhal_place_machine){0};
    if (options->devices != NULL && options->given_count > 0) {
        fputs("gpuhal-place: --device goes without --given\n", stderr);
        return GPUHAL_TOOL_USAGE;
    }
    if (options->given_count == 0) {
        return read_here(options, out_machine);
    }
    for (uint32_t i = 0; i < options->given_count; i++) {
        const gpuhal_place_given *given = &options->given[i];
        const gpuhal_placement_device device = {
            .name = given->name, .capacity_bytes = given->bytes, .bytes_per_second = (double)given->bytes_per_second};
        add_device(out_machine, &device, options->margin_bytes);
    }
    return GPUHAL_TOOL_GO_ON;
}

void gpuhal_place_machine_finish(gpuhal_place_machine *machine)
{
    gpuhal_close(machine->gpu);
    machine->gpu = NULL;
}
