/* main.c: gpuhal-lease: runs a command under a lease, waits until one could be had, or prints the ledger.
 *
 * Read in this order: options.c, this file, visible.c (which variables the command gets), run.c, status.c. The lease is
 * inherited: where this program is killed, the command goes on to hold it. */
#include "../common/command_line.h"
#include "options.h"
#include "run.h"
#include "status.h"
#include "visible.h"

#include <gpuhal/gpuhal.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 64 };

static int failed(gpuhal *gpu, const gpuhal_lease_options *options, gpuhal_status status)
{
    const bool refused = status == GPUHAL_ERROR_BUSY || status == GPUHAL_ERROR_TIMEOUT;
    fprintf(stderr, "gpuhal-lease: %s\n", gpuhal_last_error()->sentence);
    if (refused && options->json) {
        (void)gpuhal_lease_print_status(gpu, true);
    }
    return status == GPUHAL_ERROR_BUSY ? LEASE_EXIT_BUSY : refused ? LEASE_EXIT_TIMEOUT : LEASE_EXIT_FAILED;
}

/* The preferred interfaces of what the selector left visible. */
static uint32_t list_parts(gpuhal *gpu, const gpuhal_lease_options *options, gpuhal_lease_part parts[DEVICES_MAX])
{
    uint32_t count = 0;
    for (uint32_t d = 0; d < gpuhal_device_count(gpu) && count < DEVICES_MAX; d++) {
        uint32_t number = 0, preferred = 0;
        gpuhal_device *device = gpuhal_device_at(gpu, d);
        if (gpuhal_device_physical(device, &number, &preferred) == GPUHAL_OK && preferred) {
            parts[count++] = (gpuhal_lease_part){.device = device, .bytes = options->bytes, .slots = options->slots};
        }
    }
    return count;
}

static gpuhal_status lease_devices(gpuhal *gpu, const gpuhal_lease_options *options, gpuhal_lease **out_lease)
{
    gpuhal_lease_part parts[DEVICES_MAX];
    gpuhal_lease_desc desc = GPUHAL_INIT(gpuhal_lease_desc);
    const char *name = options->command ? strrchr(options->command[0], '/') : NULL;
    const char *command = name ? name + 1 : options->command ? options->command[0] : "gpuhal-lease wait";
    desc.flags = options->action == LEASE_RUN ? GPUHAL_LEASE_INHERIT : 0;
    desc.count = options->count;
    desc.slots = options->slots;
    desc.bytes = options->bytes;
    desc.priority = options->priority;
    desc.duration_ns = options->duration_ns;
    desc.label = options->label ? options->label : command;
    if (options->selector) {
        desc.part_count = list_parts(gpu, options, parts);
        desc.parts = parts;
    }
    return gpuhal_lease_acquire(gpu, &desc, options->timeout_ns, out_lease);
}

static int act(gpuhal *gpu, const gpuhal_lease_options *options)
{
    gpuhal_lease *lease = NULL;
    int code = LEASE_EXIT_DONE;
    if (options->action == LEASE_STATUS) {
        return gpuhal_lease_print_status(gpu, options->json) ? LEASE_EXIT_DONE : LEASE_EXIT_FAILED;
    }
    const gpuhal_status status = lease_devices(gpu, options, &lease);
    if (status) {
        return failed(gpu, options, status);
    }
    if (options->action == LEASE_RUN) {
        if (gpuhal_lease_set_visible(gpu, lease)) {
            code = gpuhal_lease_run_command(options->command);
        } else {
            fprintf(stderr, "gpuhal-lease: out of memory\n");
            code = LEASE_EXIT_FAILED;
        }
    }
    gpuhal_lease_release(lease);
    return code;
}

int main(int argc, char **argv)
{
    gpuhal_lease_options options;
    gpuhal *gpu = NULL;
    int code = gpuhal_lease_options_read(argc, argv, &options);
    if (code != GPUHAL_TOOL_GO_ON) {
        return code;
    }
    const gpuhal_config config = {.size = sizeof config, .devices = options.selector};
    if (gpuhal_open(&config, &gpu)) {
        fprintf(stderr, "gpuhal-lease: %s\n", gpuhal_last_error()->sentence);
        return LEASE_EXIT_FAILED;
    }
    code = act(gpu, &options);
    gpuhal_close(gpu);
    return code;
}
