/* result.c: the child's reports to its parent: results, notes, and the plugin's description of itself.
 *
 * The state in this file is global because any thread may report a result at any call depth. Each child initialises the
 * state before its first check runs.
 */
#include "run.h"

#include "../common/host.h"

#include <gpuhal/error.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    int pipe;
    _Atomic(const char *) *step;
    const gpuhal_plugin *plugin; /* set once the plugin is loaded */
    atomic_flag failing;         /* only the first failure is reported; other threads of the child wait for the exit */
    unsigned rule;               /* the rule of the running check */
    bool skipped;
    char reason[1024];
} child = {.failing = ATOMIC_FLAG_INIT};

/* Sends each record with a single write(), so that a crash in another thread cannot leave half a record in the pipe. */
static void send(const gpuhal_record *record)
{
    gpuhal_tool_send(child.pipe, record, sizeof *record);
}

void gpuhal_result_open(int pipe, _Atomic(const char *) *step)
{
    child.pipe = pipe;
    child.step = step;
}

void gpuhal_result_begin(const gpuhal_check *check)
{
    const gpuhal_record begin = {.kind = RECORD_BEGIN};
    send(&begin);
    child.skipped = false;
    child.rule = check->rule;
}

void gpuhal_result_end(void)
{
    gpuhal_record record = {.kind = RECORD_RESULT, .status = child.skipped ? CHECK_SKIPPED : CHECK_PASSED};
    if (child.skipped) {
        memcpy(record.text, child.reason, sizeof record.text);
    }
    send(&record);
}

static _Noreturn void fail(unsigned rule, const char *hint, const char *format, va_list arguments)
{
    if (atomic_flag_test_and_set(&child.failing)) {
        for (;;) {
            pause();
        }
    }
    gpuhal_record record = {.kind = RECORD_RESULT, .status = CHECK_FAILED, .rule = rule};
    snprintf(record.hint, sizeof record.hint, "%s", hint);
    vsnprintf(record.text, sizeof record.text, format, arguments);
    send(&record);
    _exit(0);
}

void gpuhal_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(child.rule, "", format, arguments);
}

void gpuhal_rule(unsigned rule)
{
    child.rule = rule;
}

void gpuhal_fail_by(unsigned rule, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(rule, "", format, arguments);
}

bool gpuhal_busy_hint(char *out_hint, size_t size)
{
    double load = 0;
    char path[512];
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const char *root = getenv("GPUHAL_SYSTEM_ROOT");
    snprintf(path, sizeof path, "%.480s/proc/loadavg", root != NULL ? root : "");
    FILE *file = gpuhal_tool_open_plain(path);
    const bool known = file != NULL && fscanf(file, "%lf", &load) == 1;
    if (file != NULL) {
        fclose(file);
    }
    if (!known || processors < 1 || load < 2.0 * (double)processors) {
        return false;
    }
    snprintf(out_hint, size,
             "The machine is busy (load %.0f on %ld processors), which can cause this: run the check again when it is "
             "idle, or with a longer --deadline.",
             load, processors);
    return true;
}

void gpuhal_fail_late(unsigned rule, const char *format, ...)
{
    va_list arguments;
    char hint[256] = "";
    va_start(arguments, format);
    (void)gpuhal_busy_hint(hint, sizeof hint);
    fail(rule, hint, format, arguments);
}

void gpuhal_fail_with(const char *hint, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(0, hint, format, arguments);
}

/* Returns a hint if the status reports a condition outside the plugin. */
static const char *outside(gpuhal_status status)
{
    switch (status) {
    case GPUHAL_ERROR_OUT_OF_MEMORY:
        return "Another program may hold the device's memory: end it, and run the check again.";
    case GPUHAL_ERROR_HOST_MEMORY:
        return "The host is short of memory: end other programs, and run the check again.";
    case GPUHAL_ERROR_BUSY:
        return "Another program may use the device exclusively: end it, and run the check again.";
    case GPUHAL_ERROR_NO_DRIVER:
    case GPUHAL_ERROR_NO_DEVICE:
    case GPUHAL_ERROR_DEVICE_LOST:
        return "See that the vendor's driver is installed and the device there, and run the check again.";
    case GPUHAL_ERROR_NO_PERMISSION:
        return "Run the check as a user who may use the device.";
    default:
        return "";
    }
}

void gpuhal_fail_status(gpuhal_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail(child.rule, outside(status), format, arguments);
}

void gpuhal_skip(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(child.reason, sizeof child.reason, format, arguments);
    va_end(arguments);
    child.skipped = true;
}

bool gpuhal_offered(bool slot, const char *name)
{
    if (!slot) {
        gpuhal_skip("the slot %s is not offered", name);
    }
    return slot;
}

void gpuhal_note(const char *format, ...)
{
    gpuhal_record record = {.kind = RECORD_NOTE};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(record.text, sizeof record.text, format, arguments);
    va_end(arguments);
    send(&record);
}

/* Both strings may be invalid. A later check reports invalid strings. */
void gpuhal_child_self(const gpuhal_plugin *plugin)
{
    gpuhal_record record = {.kind = RECORD_PLUGIN, .index = plugin->abi};
    snprintf(record.text, sizeof record.text, "%.63s", plugin->name != NULL ? plugin->name : "");
    snprintf(record.hint, sizeof record.hint, "%.63s", plugin->version != NULL ? plugin->version : "");
    send(&record);
}

void gpuhal_child_device(uint32_t index)
{
    const gpuhal_record record = {.kind = RECORD_DEVICE, .index = index};
    send(&record);
}

void gpuhal_child_plugin(const gpuhal_plugin *plugin)
{
    child.plugin = plugin;
}

const gpuhal_plugin *gpuhal_child_loaded(void)
{
    return child.plugin;
}

void gpuhal_step(const char *what)
{
    atomic_store_explicit(child.step, what, memory_order_relaxed);
}

const char *gpuhal_status_text(gpuhal_status status)
{
    static _Thread_local char text[64];
    snprintf(text, sizeof text, "%s (%d)", gpuhal_status_name(status), (int)status);
    return text;
}

void *gpuhal_own(void *pointer)
{
    if (pointer == NULL) {
        gpuhal_fail("gpuhal-check itself ran out of memory");
    }
    return pointer;
}

void gpuhal_forget_report(void)
{
    gpuhal_direct_failed(child.plugin, GPUHAL_ERROR_NOT_SUPPORTED, "a call");
}

bool gpuhal_has_reported(gpuhal_status status)
{
    gpuhal_direct_failed(child.plugin, status, "a call");
    const gpuhal_error *error = gpuhal_last_error();
    return (error->vendor_call != NULL && error->vendor_call[0] != '\0') ||
           (error->vendor_text != NULL && error->vendor_text[0] != '\0');
}

void gpuhal_expect_ok(gpuhal_status status, const char *what)
{
    if (status != GPUHAL_OK) {
        gpuhal_direct_failed(child.plugin, status, what);
        gpuhal_fail_status(status, "%s", gpuhal_last_error()->sentence);
    }
}

void gpuhal_expect_reported(gpuhal_status status, const char *what)
{
    if (status < 0) {
        gpuhal_fail_status(status, "%s failed: %s", what, gpuhal_last_error()->sentence);
    } else if (status > 0) {
        gpuhal_fail("%s returned %s", what, gpuhal_status_text(status));
    }
}

/* Standard output and standard error share one file and one file offset. */
off_t gpuhal_printed(void)
{
    return lseek(1, 0, SEEK_END);
}

void gpuhal_forget_printed(off_t from)
{
    if (from < 0 || ftruncate(1, from) != 0 || lseek(1, from, SEEK_SET) != from) {
        gpuhal_fail_with("", "gpuhal-check cannot shorten the file of its standard streams");
    }
}
