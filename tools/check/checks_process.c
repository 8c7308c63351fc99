/* checks_process.c: checks that the plugin's functions do not change process-wide state. */
#include "resources.h"
#include "work.h"

#include <locale.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    FORK_WORKED = 42
}; /* the forked process's exit code after success; after a failure the process sends the reason and exits with another
    * code */

/* Compares after every step, so that the message names the step that caused the change. */
static void use_device(const gpuhal_context *context, gpuhal_process_state *before)
{
    const char *file = context->options->file;
    gpuhal_opened opened;
    gpuhal_area from, to;
    const uint64_t bytes = gpuhal_area_usual(context);
    gpuhal_session_open(context, &opened);
    gpuhal_process_state_expect(before, "open", file);
    gpuhal_area_init(&from, context, &opened, GPUHAL_MEMORY_DEVICE, bytes);
    gpuhal_area_init(&to, context, &opened, GPUHAL_MEMORY_DEVICE, bytes);
    gpuhal_process_state_expect(before, "allocate", file);
    gpuhal_area_reset(&from, 1, ROUTE_ANY);
    gpuhal_process_state_expect(before, "write", file);
    gpuhal_plain_copy(&opened, &to.memory, 0, &from.memory, 0, bytes);
    gpuhal_process_state_expect(before, "copy", file);
    memcpy(to.expected, from.expected, (size_t)bytes);
    gpuhal_rule(23);
    gpuhal_area_verify(&to, (gpuhal_claim){.bytes = bytes}, ROUTE_ANY, "copy");
    gpuhal_rule(27);
    gpuhal_process_state_expect(before, "read", file);
    if (opened.slots.ops.fill != NULL) {
        gpuhal_step("the slot fill");
        gpuhal_expect_ok(opened.slots.ops.fill(opened.device, NULL, &to.memory, 0, bytes, 0, 4), "fill");
        gpuhal_process_state_expect(before, "fill", file);
    }
    gpuhal_area_finish(&from);
    gpuhal_area_finish(&to);
    gpuhal_process_state_expect(before, "release", file);
    gpuhal_session_close(context, &opened);
    gpuhal_process_state_expect(before, "close", file);
}

/* The process belongs to the engine. If a plugin changes process-wide state, code that does not use devices fails:
 * numbers have a decimal comma, files are not found, or core dumps are missing. */
void gpuhal_check_process_state(gpuhal_context *context)
{
    const char *file = context->options->file;
    setlocale(LC_ALL, "C.UTF-8"); /* differs from every process's initial locale, so that a reset is noticed */
    gpuhal_process_state *before = gpuhal_process_state_now();
    gpuhal_session_load(context);
    gpuhal_process_state_expect(before, "loading", file);
    gpuhal_session_start(context);
    gpuhal_process_state_expect(before, "start", file);
    gpuhal_session_enumerate(context);
    gpuhal_process_state_expect(before, "enumerate", file);
    gpuhal_slots slots;
    gpuhal_expect_ok(gpuhal_session_describe(context, context->index, &slots), "describe");
    gpuhal_process_state_expect(before, "describe", file);
    use_device(context, before);
    gpuhal_device_snapshot sample = {0};
    if (gpuhal_device_snapshot_sample(context->plugin, context->instance, context->index, NULL, 0, &sample) ==
        GPUHAL_OK) {
        gpuhal_process_state_expect(before, "sample", file);
    }
    gpuhal_device_snapshot_finish(&sample);
}

static void sample(const gpuhal_context *context)
{
    gpuhal_device_snapshot values = {0};
    if (PLUGIN_HAS(context->plugin, sample)) {
        gpuhal_step("sample");
        gpuhal_expect_reported(
            gpuhal_device_snapshot_sample(context->plugin, context->instance, context->index, NULL, 0, &values),
            "sample");
        gpuhal_device_snapshot_finish(&values);
    }
}

static gpuhal_status list_processes(const gpuhal_context *context)
{
    const gpuhal_direct_listener listener = {.user = NULL};
    gpuhal_step("processes");
    return PLUGIN_HAS(context->plugin, processes)
               ? gpuhal_direct_processes(context->plugin, context->instance, context->index, 0, &listener)
               : GPUHAL_ERROR_NOT_SUPPORTED;
}

static void use_queue(gpuhal_context *context)
{
    gpuhal_work work;
    if (context->opened.slots.queues.queue_create == NULL) {
        return;
    }
    gpuhal_work_init(&work, context, 0);
    gpuhal_work_copy(&work, work.queue, &work.to, 0, &work.from, 0, work.to.bytes);
    gpuhal_work_record(&work, work.queue, work.event);
    gpuhal_work_await(&work, work.event);
    gpuhal_area_changed(&work.to, 0, work.from.expected, work.to.bytes);
    gpuhal_area_verify(&work.to, (gpuhal_claim){.bytes = work.to.bytes}, ROUTE_ANY,
                       "in the child of a fork, a copy in a queue");
    gpuhal_work_finish(&work);
}

static void use_opened(gpuhal_context *context)
{
    gpuhal_area made;
    gpuhal_session_open(context, &context->opened);
    gpuhal_area_init(&made, context, &context->opened, GPUHAL_MEMORY_DEVICE, gpuhal_area_usual(context));
    gpuhal_area_reset(&made, 2, ROUTE_ANY);
    gpuhal_area_verify(&made, (gpuhal_claim){.bytes = made.bytes}, ROUTE_ANY, "in the child of a fork, its own memory");
    gpuhal_area_finish(&made);
    use_queue(context);
    gpuhal_session_close(context, &context->opened);
}

/* The forked child has only this thread, and locks keep their state. In the child, the core refuses the parent's opened
 * devices. All other calls must work, both with the parent's instance and after a start() in the child. */
static _Noreturn void use_in_forked(const gpuhal_context *context, bool can_list)
{
    gpuhal_context own = *context;
    const gpuhal_host host = *context->host;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned round = 0; round < 2; round++) {
        own.listing = (gpuhal_device_snapshot){0};
        if (round == 1) {
            own.host = &host;
            gpuhal_session_start(&own);
        }
        gpuhal_session_enumerate(&own);
        if (own.listed == NULL) {
            gpuhal_fail("in the child of a fork enumerate does not list device %u", own.index);
        }
        sample(&own);
        if (can_list) {
            gpuhal_expect_ok(list_processes(&own), "in the child of a fork, processes");
        }
        use_opened(&own);
    }
    _exit(FORK_WORKED);
}

/* If a plugin sets the flag incorrectly, the core lets the child call the plugin, and the child hangs because the owner
 * of a lock does not exist in the child. */
void gpuhal_check_fork_safe(gpuhal_context *context)
{
    gpuhal_opened opened;
    gpuhal_area area;
    gpuhal_session_load(context);
    if (!(context->plugin->flags & GPUHAL_PLUGIN_FORK_SAFE)) {
        gpuhal_skip("the plugin does not say that it works in the child of a fork");
        return;
    }
    gpuhal_session_start(context);
    gpuhal_session_enumerate(context);
    gpuhal_session_open(context, &opened);
    gpuhal_area_init(&area, context, &opened, GPUHAL_MEMORY_DEVICE, gpuhal_area_usual(context));
    gpuhal_area_reset(&area, 1, ROUTE_ANY);
    sample(context);
    const bool can_list = list_processes(context) == GPUHAL_OK; /* listing processes may require a permission */
    pid_t forked = fork();
    if (forked == 0) {
        use_in_forked(context, can_list);
    }
    int status = 0;
    if (forked < 0 || waitpid(forked, &status, 0) != forked) {
        gpuhal_fail("gpuhal-check cannot make a process");
    }
    if (WIFSIGNALED(status)) {
        gpuhal_fail("the child of a fork crashed with signal %d", WTERMSIG(status));
    }
    if (WEXITSTATUS(status) != FORK_WORKED) {
        _exit(0); /* the forked process has already sent the result */
    }
    sample(context);
    gpuhal_area_verify(&area, (gpuhal_claim){.bytes = area.bytes}, ROUTE_ANY, "after a fork, memory of the parent");
    gpuhal_area_finish(&area);
    gpuhal_session_close(context, &opened);
}

/* Programs write data to standard output. A driver's banner within the data breaks the program that reads the data. */
void gpuhal_check_quiet(gpuhal_context *context)
{
    if (context->printed_in != NULL) {
        gpuhal_fail("the plugin printed in the check %s", context->printed_in);
    }
}
