/* loader/load_context.c: see load_context.h. */
#include "loader/load_context.h"

#include "base/error.h"
#include "base/options.h"
#include "base/records.h"
#include "base/text.h"
#include "os/os.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A plugin's callbacks do not get the load context as an argument, but they run on the thread that called the
 * plugin. */
static _Thread_local gpuhal_load_context *current;
static _Thread_local gpuhal_status reported;

void gpuhal_load_enter(gpuhal_load_context *load, gpuhal_plugin_stage stage)
{
    load->stage = stage;
    if (load->on_stage) {
        load->on_stage(load->user, stage);
    }
}

/* Keeps the first reason, because later failures follow from it. Always takes ownership of `reason`. */
static bool end(gpuhal_load_context *load, gpuhal_plugin_state state, gpuhal_status status, int64_t code, char *reason)
{
    if (load->reason) {
        free(reason);
        return false;
    }
    load->state = state;
    load->status = status;
    load->code = code;
    load->reason = reason;
    return false;
}

bool gpuhal_load_fail(gpuhal_load_context *load, gpuhal_plugin_state state, gpuhal_status status, const char *format,
                      ...)
{
    char sentence[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    /* Names of files and dependencies may contain any bytes. */
    gpuhal_records_clean(sentence);
    return end(load, state, status, 0, gpuhal_text_copy(sentence));
}

/* A plugin that reports why it cannot be used has not failed. */
static gpuhal_plugin_state state_of(gpuhal_status status)
{
    switch (status) {
    case GPUHAL_ERROR_NO_DRIVER:
        return GPUHAL_PLUGIN_NO_DRIVER;
    case GPUHAL_ERROR_NO_DEVICE:
        return GPUHAL_PLUGIN_NO_DEVICE;
    case GPUHAL_ERROR_NO_PERMISSION:
        return GPUHAL_PLUGIN_NO_PERMISSION;
    case GPUHAL_ERROR_INCOMPATIBLE:
        return GPUHAL_PLUGIN_INCOMPATIBLE;
    case GPUHAL_ERROR_FORKED: /* see gpuhal_vendor_library() */
        return GPUHAL_PLUGIN_NOT_PROBED;
    default:
        return GPUHAL_PLUGIN_FAILED;
    }
}

bool gpuhal_load_fail_call(gpuhal_load_context *load, gpuhal_status status, const char *what)
{
    gpuhal_status answer = gpuhal_error_from_plugin(status, load->name, NULL, what);
    const size_t named = strlen(load->name ? load->name : "plugin") + strlen(": ");
    const gpuhal_error *why = gpuhal_last_error();
    return end(load, state_of(answer), answer, why->vendor_code, gpuhal_text_copy(why->sentence + named));
}

bool gpuhal_load_no_memory(gpuhal_load_context *load)
{
    return gpuhal_load_fail(load, GPUHAL_PLUGIN_NOT_PROBED, GPUHAL_ERROR_HOST_MEMORY,
                            "out of host memory for the library's own records");
}

void gpuhal_load_set_driver(gpuhal_load_context *load, const char *path)
{
    if (load->driver || !path) {
        return;
    }
    load->driver = gpuhal_text_copy(path);
    if (load->on_driver) {
        load->on_driver(load->user, path);
    }
}

gpuhal_status gpuhal_load_set_error(const gpuhal_load_context *load)
{
    if (!load->reason) {
        return gpuhal_error_host_memory();
    }
    /* Keep the last error if it describes this failure, because it also contains the vendor's code. */
    const char *last = gpuhal_last_error()->sentence;
    const size_t all = strlen(last), length = strlen(load->reason);
    if (all >= length && strcmp(last + all - length, load->reason) == 0) {
        return load->status;
    }
    const char *name = load->name ? load->name : "";
    return gpuhal_error_set(load->status, "%s%s%s", name, *name ? ": " : "", load->reason);
}

void gpuhal_load_finish(gpuhal_load_context *load)
{
    free(load->reason);
    free(load->note);
    free(load->driver);
    free(load->version);
    gpuhal_listed_devices_finish(&load->unlisted);
    *load = (gpuhal_load_context){0};
}

/* Calls nest if a plugin, while it starts, makes the core probe another plugin. The report of an earlier call must not
 * be attributed to the new call. */
void gpuhal_load_call_begin(gpuhal_load_context *load)
{
    load->outer = current;
    current = load;
    gpuhal_load_forget_report();
}

void gpuhal_load_call_end(gpuhal_load_context *load)
{
    current = load->outer;
    load->outer = NULL;
}

gpuhal_load_context *gpuhal_load_current(void)
{
    return current;
}

const char *gpuhal_load_while(gpuhal_plugin_stage stage)
{
    switch (stage) {
    case GPUHAL_STAGE_LOAD:
        return "while loading";
    case GPUHAL_STAGE_HANDSHAKE:
        return "while negotiating the ABI";
    case GPUHAL_STAGE_START:
        return "while starting";
    case GPUHAL_STAGE_ENUMERATE:
        return "while listing devices";
    default:
        return "before it was loaded";
    }
}

gpuhal_status gpuhal_load_option(const char *options, uint64_t *asked, const char *key, char *out_value, uint32_t bytes)
{
    gpuhal_option option, found = {0};
    for (uint32_t i = 0; gpuhal_options_next(&options, &option); i++) {
        if (strlen(key) == option.key_length && memcmp(key, option.key, option.key_length) == 0) {
            *asked |= i < 64 ? UINT64_C(1) << i : 0;
            found = option;
        }
    }
    out_value[0] = 0;
    if (!found.key) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    if (found.value_length >= bytes) {
        return GPUHAL_ERROR_OUT_OF_RANGE;
    }
    memcpy(out_value, found.value, found.value_length);
    out_value[found.value_length] = 0;
    return GPUHAL_OK;
}

/* All listeners receive the warning, because all gpuhal objects with these options share one start. */
void gpuhal_load_name_unknown_options(const gpuhal_load_context *load, const char *plugin)
{
    char line[256];
    gpuhal_option option;
    const char *at = load->options;
    for (uint32_t i = 0; i < 64 && gpuhal_options_next(&at, &option); i++) {
        if (!(load->options_asked >> i & 1) && !gpuhal_option_is_system_root(option.key, option.key_length)) {
            snprintf(line, sizeof line, "%s: there is no option %.*s", plugin,
                     (int)(option.key_length < 100 ? option.key_length : 100), option.key);
            gpuhal_log_to_all(GPUHAL_LEVEL_WARNING, line);
        }
    }
}

const char *gpuhal_plugin_state_name(gpuhal_plugin_state state)
{
    static const char names[][14] = {"ok",         "no_driver",    "no_device", "no_permission", "failed",
                                     "timed_out",  "incompatible", "rejected",  "duplicate",     "excluded",
                                     "not_probed", "quarantined",  "forked"};
    return state < sizeof names / sizeof *names ? names[state] : "unknown";
}

const char *gpuhal_plugin_stage_name(gpuhal_plugin_stage stage)
{
    static const char names[][10] = {"search", "manifest",  "select", "file",      "spawn",
                                     "load",   "handshake", "start",  "enumerate", "done"};
    return stage < sizeof names / sizeof *names ? names[stage] : "unknown";
}

void gpuhal_load_forget_report(void)
{
    reported = GPUHAL_OK;
    gpuhal_error_forget_report();
}

void gpuhal_load_note_report(gpuhal_status status)
{
    reported = status;
}

gpuhal_status gpuhal_load_reported(void)
{
    return reported;
}

/* A name that is too long is not the name of a setting. An empty variable counts as unset, as in base/config.c. During
 * a load on this thread, the load's configuration applies. Outside of a load, it is unknown which configuration
 * applies. */
const char *gpuhal_load_variable(const char *name, const char *suffix)
{
    const gpuhal_load_context *load = gpuhal_load_current();
    char variable[96];
    int length = snprintf(variable, sizeof variable, "GPUHAL_%s%s", name, suffix);
    if (length < 0 || (size_t)length >= sizeof variable || (load && load->ignore_environment)) {
        return NULL;
    }
    const char *value = gpuhal_os_environment(variable);
    return value && *value ? value : NULL;
}
