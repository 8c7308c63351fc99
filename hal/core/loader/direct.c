/* loader/direct.c: implements gpuhal/direct.h, for programs that call a plugin directly. */
#include "base/call.h"
#include "base/error.h"
#include "loader/load_context.h"
#include "loader/file_check.h"
#include "loader/load.h"
#include "loader/loader.h"
#include "loader/slot_tables.h"
#include "os/os.h"

#include <gpuhal/direct.h>

/* Loads like gpuhal_backend_start(), but does not start or register a backend. */
static bool open_file(gpuhal_load_context *load, const char *file, const gpuhal_plugin **out_plugin)
{
    gpuhal_checked_file checked;
    gpuhal_load_enter(load, GPUHAL_STAGE_FILE);
    if (!gpuhal_file_check(load, file, false, &checked)) {
        return false;
    }
    bool good = gpuhal_plugin_load(load, checked.path, checked.device, checked.inode, out_plugin);
    gpuhal_checked_file_finish(&checked);
    return good;
}

gpuhal_status gpuhal_direct_load(const char *file, const gpuhal_plugin **out_plugin, gpuhal_plugin_stage *out_stage)
{
    if (out_plugin) {
        *out_plugin = NULL;
    }
    if (out_stage) {
        *out_stage = GPUHAL_STAGE_SEARCH;
    }
    if (!file || !out_plugin) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_direct_load: %s is NULL",
                                file ? "out_plugin" : "file");
    }
    if (!gpuhal_os_path_is_absolute(file)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_direct_load: \"%s\" is not an absolute path",
                                file);
    }
    if (gpuhal_os_privileged()) {
        return gpuhal_error_set(
            GPUHAL_ERROR_NO_PERMISSION,
            "gpuhal_direct_load: this process has more rights than its user, and loads no plugin directly");
    }
    gpuhal_load_context load = {0};
    gpuhal_status status = open_file(&load, file, out_plugin) ? GPUHAL_OK : gpuhal_load_set_error(&load);
    if (out_stage) {
        *out_stage = status ? load.stage : GPUHAL_STAGE_DONE;
    }
    gpuhal_load_finish(&load);
    return status;
}

const gpuhal_host *gpuhal_direct_host(void)
{
    return gpuhal_host_table();
}

gpuhal_status gpuhal_direct_failed(const gpuhal_plugin *plugin, gpuhal_status status, const char *what)
{
    return gpuhal_error_from_plugin(status, plugin ? plugin->name : NULL, NULL, what ? what : "a call");
}

gpuhal_status gpuhal_direct_slots(const gpuhal_ops *ops, gpuhal_slots *out_slots)
{
    gpuhal_slots_text text;
    if (!ops || !out_slots) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_direct_slots: %s is NULL",
                                ops ? "out_slots" : "ops");
    }
    return gpuhal_slots_read(ops, out_slots, &text) ? GPUHAL_OK
                                                    : gpuhal_error_set(GPUHAL_ERROR_DRIVER, "%s", text.problem);
}

/* Returns the plugin's status unchanged, even if it is invalid, because plugin checkers need it. */
gpuhal_status gpuhal_direct_enumerate(const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance,
                                      const gpuhal_direct_listener *listener)
{
    if (!plugin || !listener) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_direct_enumerate: %s is NULL",
                                plugin ? "listener" : "plugin");
    }
    gpuhal_sink sink = {.listener = listener};
    gpuhal_load_forget_report();
    const gpuhal_call call = gpuhal_call_blocking(plugin, 0);
    gpuhal_status status = plugin->enumerate(gpuhal_host_table(), instance, &sink);
    gpuhal_call_end(call);
    if (status < 0) {
        (void)gpuhal_error_from_plugin(status, plugin->name, NULL, "listing its devices");
    }
    return status;
}

gpuhal_status gpuhal_direct_sample(const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance, uint32_t index,
                                   const gpuhal_key *keys, uint32_t count, uint32_t flags,
                                   const gpuhal_direct_listener *listener)
{
    if (!plugin || !listener || (count && !keys)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_direct_sample: %s is NULL",
                                !plugin     ? "plugin"
                                : !listener ? "listener"
                                            : "keys");
    }
    if (plugin->size < offsetof(gpuhal_plugin, sample) + sizeof plugin->sample || !plugin->sample) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_SUPPORTED, "%s: the plugin has no sample()", plugin->name);
    }
    gpuhal_sink sink = {.listener = listener};
    gpuhal_load_forget_report();
    const gpuhal_call call = gpuhal_call_blocking(plugin, 0);
    gpuhal_status status = plugin->sample(gpuhal_host_table(), instance, index, keys, count, flags, &sink);
    gpuhal_call_end(call);
    if (status < 0) {
        (void)gpuhal_error_from_plugin(status, plugin->name, NULL, "reading values");
    }
    return status;
}

gpuhal_status gpuhal_direct_processes(const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance, uint32_t index,
                                      uint32_t flags, const gpuhal_direct_listener *listener)
{
    if (!plugin || !listener) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_direct_processes: %s is NULL",
                                plugin ? "listener" : "plugin");
    }
    if (plugin->size < offsetof(gpuhal_plugin, processes) + sizeof plugin->processes || !plugin->processes) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_SUPPORTED, "%s: the plugin has no processes()", plugin->name);
    }
    gpuhal_sink sink = {.listener = listener};
    gpuhal_load_forget_report();
    const gpuhal_call call = gpuhal_call_blocking(plugin, 0);
    gpuhal_status status = plugin->processes(gpuhal_host_table(), instance, index, flags, &sink);
    gpuhal_call_end(call);
    if (status < 0) {
        (void)gpuhal_error_from_plugin(status, plugin->name, NULL, "listing processes");
    }
    return status;
}

gpuhal_status gpuhal_direct_link(const gpuhal_plugin *plugin, gpuhal_plugin_instance *instance, uint32_t from,
                                 uint32_t to, const gpuhal_direct_listener *listener)
{
    if (!plugin || !listener) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_direct_link: %s is NULL",
                                plugin ? "listener" : "plugin");
    }
    if (plugin->size < offsetof(gpuhal_plugin, link) + sizeof plugin->link || !plugin->link) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_SUPPORTED, "%s: the plugin has no link()", plugin->name);
    }
    gpuhal_sink sink = {.listener = listener};
    gpuhal_load_forget_report();
    const gpuhal_call call = gpuhal_call_blocking(plugin, 0);
    gpuhal_status status = plugin->link(gpuhal_host_table(), instance, from, to, &sink);
    gpuhal_call_end(call);
    if (status < 0) {
        (void)gpuhal_error_from_plugin(status, plugin->name, NULL, "reading facts about a link");
    }
    return status;
}
