/* session.c: uses a plugin like the core does: load, start, enumerate, describe, open. If the plugin fails a step, the
 * running check fails with a message. */
#include "check.h"

#include <gpuhal/error.h>

#include <string.h>
#include <unistd.h>

#define GUARD 0xc5

_Noreturn void gpuhal_fail_file(const gpuhal_context *context, gpuhal_status status, const char *sentence)
{
    const char *hint = GPUHAL_HINT_FILE;
    if (status == GPUHAL_ERROR_INCOMPATIBLE) {
        hint = "Build the plugin for the machine that gpuhal-check runs on.";
    } else if (status == GPUHAL_ERROR_NO_PERMISSION) {
        hint = "Run gpuhal-check as a user who may read the file.";
    } else if (context->options->manifest != NULL) {
        hint = "Build the library, or correct the line 'library' of the manifest.";
    }
    gpuhal_fail_with(hint, "%s", sentence);
}

void gpuhal_session_load(gpuhal_context *context)
{
    gpuhal_plugin_stage stage = GPUHAL_STAGE_FILE;
    gpuhal_step("loading the file");
    gpuhal_status status = gpuhal_direct_load(context->options->file, &context->plugin, &stage);
    const bool readable = access(context->options->file, R_OK) == 0;
    if (status != GPUHAL_OK && stage == GPUHAL_STAGE_FILE && (status != GPUHAL_ERROR_NO_PERMISSION || !readable)) {
        gpuhal_fail_file(context, status, gpuhal_last_error()->sentence);
    }
    if (status != GPUHAL_OK) {
        const unsigned rule = stage == GPUHAL_STAGE_HANDSHAKE ? 6 : stage == GPUHAL_STAGE_FILE ? 4 : 2;
        gpuhal_fail_by(rule, "refused at stage %s: %s", gpuhal_plugin_stage_name(stage), gpuhal_last_error()->sentence);
    }
    context->host = gpuhal_direct_host();
    gpuhal_child_plugin(context->plugin);
}

/* M-11 requires these statuses if the machine lacks a prerequisite, so the plugin breaks no rule. */
static gpuhal_status excused(gpuhal_status status)
{
    if (status == GPUHAL_ERROR_NO_DRIVER || status == GPUHAL_ERROR_NO_DEVICE || status == GPUHAL_ERROR_NO_PERMISSION) {
        gpuhal_rule(0);
    }
    return status;
}

void gpuhal_session_start(gpuhal_context *context)
{
    gpuhal_step("start");
    gpuhal_expect_ok(excused(context->plugin->start(context->host, &context->instance)), "start");
}

void gpuhal_session_enumerate(gpuhal_context *context)
{
    gpuhal_expect_reported(
        excused(gpuhal_device_snapshot_enumerate(context->plugin, context->instance, &context->listing)), "enumerate");
    context->listed = gpuhal_device_snapshot_find(&context->listing, context->index);
}

void gpuhal_session_list(gpuhal_context *context)
{
    gpuhal_session_load(context);
    gpuhal_session_start(context);
    gpuhal_session_enumerate(context);
}

/* Guards follow the struct, so a plugin that writes too far damages only the guards. */
typedef struct guarded_ops {
    gpuhal_ops ops;
    unsigned char guard[1024];
} guarded_ops;

static void expect_guard(const guarded_ops *filled, const char *call)
{
    if (filled->ops.size != sizeof filled->ops) {
        gpuhal_fail_by(17, "%s changed the size of the table from %zu to %u: it is the core's", call,
                       sizeof filled->ops, filled->ops.size);
    }
    size_t written = sizeof filled->guard;
    while (written > 0 && filled->guard[written - 1] == GUARD) {
        written--;
    }
    if (written > 0) {
        gpuhal_fail_by(17, "%s wrote %zu bytes behind the %zu bytes of gpuhal_ops", call, written, sizeof filled->ops);
    }
}

void gpuhal_session_read(gpuhal_slots *slots, const char *call)
{
    const gpuhal_ops ops = slots->ops;
    if (gpuhal_direct_slots(&ops, slots) != GPUHAL_OK) {
        gpuhal_fail_by(17, "%s: %s", call, gpuhal_last_error()->sentence);
    }
}

static gpuhal_status describe(const gpuhal_context *context, uint32_t index, guarded_ops *out_filled)
{
    memset(out_filled, 0, sizeof *out_filled);
    memset(out_filled->guard, GUARD, sizeof out_filled->guard);
    out_filled->ops.size = sizeof out_filled->ops;
    gpuhal_step("describe");
    gpuhal_status status = context->plugin->describe(context->host, context->instance, index, &out_filled->ops);
    expect_guard(out_filled, "describe");
    return status;
}

gpuhal_status gpuhal_session_describe(const gpuhal_context *context, uint32_t index, gpuhal_slots *out_slots)
{
    guarded_ops filled;
    const gpuhal_status status = describe(context, index, &filled);
    out_slots->ops = filled.ops;
    if (status == GPUHAL_OK) {
        gpuhal_session_read(out_slots, "describe");
    }
    return status;
}

/* Calls describe() again before each open(), because open() may clear some slots. */
void gpuhal_session_open(const gpuhal_context *context, gpuhal_opened *out_opened)
{
    guarded_ops filled;
    gpuhal_expect_ok(describe(context, context->index, &filled), "describe");
    gpuhal_step("open");
    out_opened->device = NULL;
    gpuhal_expect_ok(context->plugin->open(context->host, context->instance, context->index, NULL, &out_opened->device,
                                           &filled.ops),
                     "open");
    expect_guard(&filled, "open");
    if (out_opened->device == NULL) {
        gpuhal_fail("open returned OK and no device");
    }
    out_opened->slots.ops = filled.ops;
    gpuhal_session_read(&out_opened->slots, "open");
}

void gpuhal_session_close(const gpuhal_context *context, gpuhal_opened *opened)
{
    gpuhal_step("close");
    context->plugin->close(opened->device);
    opened->device = NULL;
}
