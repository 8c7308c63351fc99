/* loader/host.c: the table of functions for plugins. The table is constant; the state of a call is found through the
 * calling thread. */
#include "loader/host.h"

#include "base/error.h"
#include "base/log.h"
#include "base/options.h"
#include "loader/abi.h"
#include "loader/load_context.h"
#include "loader/loader.h"
#include "os/os.h"

#include <stdio.h>
#include <string.h>

/* All listeners receive the line, because gpuhal objects share backends. A level out of range is clamped, so that the
 * line is not lost. */
static void host_log(__attribute__((unused)) const gpuhal_host *host, int32_t level, const char *text)
{
    if (text) {
        gpuhal_log_to_all(level < GPUHAL_LOG_ERROR   ? GPUHAL_LOG_ERROR
                          : level > GPUHAL_LOG_DEBUG ? GPUHAL_LOG_DEBUG
                                                     : level,
                          text);
    }
}

static gpuhal_status host_report(__attribute__((unused)) const gpuhal_host *host, gpuhal_status status,
                                 const char *vendor_call, int64_t vendor_code, const char *text)
{
    gpuhal_load_note_report(status);
    return gpuhal_error_report(status, vendor_call, vendor_code, text);
}

/* For a plugin that a program calls directly (gpuhal/direct.h). */
static gpuhal_status root_of_environment(char *out_value, uint32_t bytes)
{
    const char *root = gpuhal_os_environment("GPUHAL_SYSTEM_ROOT");
    const bool is_set = root && *root;
    const int length = snprintf(out_value, bytes, "%s", is_set ? root : "");
    return !is_set ? GPUHAL_ERROR_NOT_FOUND : (uint32_t)length < bytes ? GPUHAL_OK : GPUHAL_ERROR_OUT_OF_RANGE;
}

/* If there is no load context, a program calls the plugin directly (gpuhal/direct.h), and the options come from the
 * environment. */
static gpuhal_status host_option(__attribute__((unused)) const gpuhal_host *host, const char *key, char *out_value,
                                 uint32_t bytes)
{
    uint64_t nowhere = 0;
    gpuhal_load_context *load = gpuhal_load_current();
    if (!key || !out_value || bytes == 0) {
        return GPUHAL_ERROR_INVALID_ARGUMENT;
    }
    if (!load && gpuhal_option_is_system_root(key, strlen(key))) {
        return root_of_environment(out_value, bytes);
    }
    return load ? gpuhal_load_option(load->options, &load->options_asked, key, out_value, bytes)
                : gpuhal_load_option(gpuhal_os_environment("GPUHAL_OPTIONS"), &nowhere, key, out_value, bytes);
}

/* No extensions exist yet. A plugin must work without an extension that it queries. */
static const void *host_query_extension(__attribute__((unused)) const gpuhal_host *host,
                                        __attribute__((unused)) const char *name)
{
    return NULL;
}

/* ---- announcements */

static gpuhal_mutex watchers_mutex = GPUHAL_MUTEX_INITIALIZER; /* protects the list */
static gpuhal_host_watcher *watchers;

void gpuhal_host_watch(gpuhal_host_watcher *watcher, intptr_t notifier)
{
    gpuhal_mutex_lock(&watchers_mutex);
    *watcher = (gpuhal_host_watcher){.next = watchers, .notifier = notifier, .generation = gpuhal_os_fork_generation()};
    watchers = watcher;
    gpuhal_mutex_unlock(&watchers_mutex);
}

void gpuhal_host_unwatch(gpuhal_host_watcher *watcher)
{
    gpuhal_mutex_lock(&watchers_mutex);
    gpuhal_host_watcher **at = &watchers;
    while (*at && *at != watcher) {
        at = &(*at)->next;
    }
    if (*at) {
        *at = watcher->next;
    }
    gpuhal_mutex_unlock(&watchers_mutex);
}

/* A child process ignores the parent's watchers, because their descriptors may refer to other files. It is unknown
 * which gpuhal objects use the plugin, so every watching object enumerates again. Any thread may call this function,
 * even a thread of the driver, so the lock is held only while the notifiers are set. The lock also keeps a watcher and
 * its descriptor valid until the watcher is removed from the list. */
static void host_changed(__attribute__((unused)) const gpuhal_host *host)
{
    gpuhal_mutex_lock(&watchers_mutex);
    for (const gpuhal_host_watcher *one = watchers; one; one = one->next) {
        if (one->generation == gpuhal_os_fork_generation()) {
            gpuhal_os_notifier_set(one->notifier);
        }
    }
    gpuhal_mutex_unlock(&watchers_mutex);
}

static const gpuhal_host table = {
    .size = sizeof(gpuhal_host),
    .abi = GPUHAL_CORE_ABI,
    .log = host_log,
    .report = host_report,
    .device = gpuhal_sink_device,
    .u64 = gpuhal_sink_u64,
    .text = gpuhal_sink_text,
    .missing = gpuhal_sink_missing,
    .option = host_option,
    .library = gpuhal_vendor_library,
    .changed = host_changed,
    .query_extension = host_query_extension,
    .source = gpuhal_sink_source,
    .process = gpuhal_sink_process,
};

const gpuhal_host *gpuhal_host_table(void)
{
    return &table;
}
