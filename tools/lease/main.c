/* main.c: gpuhal-lease, which runs a command under a lease, waits until a lease is available, or prints the ledger.
 *
 * Read in this order: options.c, this file, visible.c (the command's environment variables), run.c, status.c, json.c.
 * The command inherits the lease, which lasts until the command and all programs started by it have exited, even if
 * gpuhal-lease is killed. */
#include "../common/command_line.h"
#include "../common/errors.h"
#include "../common/text.h"
#include "../common/utf8.h"
#include "json.h"
#include "options.h"
#include "run.h"
#include "status.h"
#include "visible.h"

#include <gpuhal/gpuhal.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { DEVICES_MAX = 64 };

/* Prints the error; with --json, also as a document. For BUSY and TIMEOUT the document includes the ledger. */
static int fail(gpuhal *gpu, bool json, int code, gpuhal_status status, const char *sentence)
{
    fprintf(stderr, "gpuhal-lease: %s\n", sentence);
    if (json && !gpuhal_lease_print_error(code == LEASE_EXIT_BUSY || code == LEASE_EXIT_TIMEOUT ? gpu : NULL, code,
                                          status, sentence)) {
        fprintf(stderr, "gpuhal-lease: the document cannot be written\n");
    }
    return code;
}

static int fail_by_library(gpuhal *gpu, bool json, gpuhal_status status)
{
    char words[1024];
    const char *said = status == GPUHAL_ERROR_HOST_MEMORY ? "out of memory" : gpuhal_last_error()->sentence;
    const char *sentence = gpuhal_tool_in_options(said, "--devices", words, sizeof words);
    const int code = status == GPUHAL_ERROR_BUSY      ? LEASE_EXIT_BUSY
                     : status == GPUHAL_ERROR_TIMEOUT ? LEASE_EXIT_TIMEOUT
                                                      : LEASE_EXIT_FAILED;
    return fail(gpu, json, code, status, sentence);
}

/* Lists the preferred interfaces of the devices that the selector leaves visible. */
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

/* Copies the command's name. If the name is too long for a label, cuts it between two characters. */
static void label_by_command(char *const *command, char out_label[GPUHAL_LEASE_LABEL_MAX + 1])
{
    const char *slash = command ? strrchr(command[0], '/') : NULL;
    const char *name = slash ? slash + 1 : command ? command[0] : "gpuhal-lease wait";
    size_t used = 0, next = 0;
    uint32_t character;
    while (name[next] && next <= GPUHAL_LEASE_LABEL_MAX) {
        used = next;
        const size_t length = gpuhal_tool_utf8_next(name + next, &character);
        next += length ? length : 1;
    }
    used = next <= GPUHAL_LEASE_LABEL_MAX ? next : used;
    snprintf(out_label, GPUHAL_LEASE_LABEL_MAX + 1, "%.*s", (int)used, name);
}

static gpuhal_status lease_devices(gpuhal *gpu, const gpuhal_lease_options *options, gpuhal_lease **out_lease)
{
    gpuhal_lease_part parts[DEVICES_MAX];
    gpuhal_lease_desc desc = GPUHAL_INIT(gpuhal_lease_desc);
    char command[GPUHAL_LEASE_LABEL_MAX + 1];
    label_by_command(options->command, command);
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
    const gpuhal_status status = gpuhal_lease_acquire(gpu, &desc, 0, out_lease);
    if (status != GPUHAL_ERROR_BUSY || options->timeout_ns == 0) {
        return status;
    }
    const char *sentence = gpuhal_last_error()->sentence, topic[] = "leases: ";
    fprintf(stderr, "gpuhal-lease: waiting: %s\n",
            sentence + (strncmp(sentence, topic, strlen(topic)) == 0 ? strlen(topic) : 0));
    return gpuhal_lease_acquire(gpu, &desc, options->timeout_ns, out_lease);
}

static int run(gpuhal *gpu, const gpuhal_lease_options *options, const gpuhal_lease *lease)
{
    char sentence[1024];
    int error = 0;
    if (!gpuhal_lease_set_visible(gpu, lease, options->bytes)) {
        return fail_by_library(gpu, options->json, GPUHAL_ERROR_HOST_MEMORY);
    }
    const int code = gpuhal_lease_run_command(options->command, &error);
    if (error) {
        snprintf(sentence, sizeof sentence, "%s: %s", options->command[0], strerror(error));
        return fail(gpu, options->json, code, GPUHAL_OK, sentence);
    }
    return code;
}

/* Warns if only this user's leases are visible. This function ignores errors, because the next call reports them. */
static void warn_unless_shared(gpuhal *gpu)
{
    const char *folder = NULL;
    uint32_t shared = 0;
    if (gpuhal_lease_ledger(gpu, &folder, &shared) == GPUHAL_OK && !shared) {
        fprintf(stderr,
                "gpuhal-lease: warning: leases are of this user alone (in %s): there is no /run/gpuhal that this user "
                "may write to, and GPUHAL_LEDGER names no other folder\n",
                folder);
    }
}

static int release(gpuhal *gpu, const gpuhal_lease_options *options)
{
    char sentence[1024];
    const gpuhal_status status = gpuhal_lease_revoke(gpu, options->number, options->force);
    if (status != GPUHAL_ERROR_BUSY || options->force) {
        return status ? fail_by_library(gpu, options->json, status) : LEASE_EXIT_DONE;
    }
    snprintf(sentence, sizeof sentence, "%s; --force releases it, and leaves them without it",
             gpuhal_last_error()->sentence);
    return fail(gpu, options->json, LEASE_EXIT_BUSY, status, sentence);
}

static int act(gpuhal *gpu, const gpuhal_lease_options *options)
{
    gpuhal_lease *lease = NULL;
    warn_unless_shared(gpu);
    if (options->action == LEASE_RELEASE) {
        return release(gpu, options);
    }
    const gpuhal_status status = options->action == LEASE_STATUS ? gpuhal_lease_print_status(gpu, options->json)
                                                                 : lease_devices(gpu, options, &lease);
    if (status) {
        return fail_by_library(gpu, options->json, status);
    }
    const int code = options->action == LEASE_RUN ? run(gpu, options, lease) : LEASE_EXIT_DONE;
    gpuhal_lease_hand_down(lease); /* the lease continues while programs that the command started are running */
    if (fflush(stdout) != 0) {
        fprintf(stderr, "gpuhal-lease: standard output cannot be written: %s\n", strerror(errno));
        return LEASE_EXIT_FAILED;
    }
    return code;
}

int main(int argc, char **argv)
{
    gpuhal_lease_options options;
    gpuhal *gpu = NULL;
    char mistake[1024];
    const bool json = gpuhal_tool_wants_json(argc, argv);
    const int caught = json ? gpuhal_tool_errors_catch() : -1;
    int code = gpuhal_lease_options_read(argc, argv, &options);
    gpuhal_tool_errors_release(caught, mistake, sizeof mistake);
    if (code != GPUHAL_TOOL_GO_ON) {
        if (json && code == LEASE_EXIT_USAGE) {
            (void)gpuhal_lease_print_error(NULL, code, GPUHAL_OK, mistake);
        }
        return code;
    }
    const gpuhal_config config = {.size = sizeof config, .devices = options.selector};
    const gpuhal_status status = gpuhal_open(&config, &gpu);
    if (status) {
        return fail_by_library(NULL, options.json, status);
    }
    code = act(gpu, &options);
    gpuhal_close(gpu);
    return code;
}
