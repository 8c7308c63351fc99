/* loader/load.c: see load.h. From dlopen on, the plugin's code runs in this process. A member of its structures may be
 * read only if `size` covers it. */
#include "loader/load.h"

#include "base/error.h"
#include "base/records.h"
#include "base/text.h"
#include "loader/abi.h"
#include "loader/host.h"
#include "loader/loader.h"
#include "os/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LENGTH    31
#define VERSION_MAX_LENGTH 63

/* The name becomes part of device ids, settings and file names. Its length is limited before it is read, because the
 * terminator may be missing. */
bool gpuhal_plugin_name_is_valid(const char *name)
{
    size_t length = strnlen(name, NAME_MAX_LENGTH + 1);
    if (length == 0 || length > NAME_MAX_LENGTH || name[0] < 'a' || name[0] > 'z') {
        return false;
    }
    for (size_t i = 1; i < length; i++) {
        bool letter = name[i] >= 'a' && name[i] <= 'z', digit = name[i] >= '0' && name[i] <= '9';
        if (!letter && !digit && name[i] != '_') {
            return false;
        }
    }
    return true;
}

static bool broken(gpuhal_load_context *load, const char *why)
{
    return gpuhal_load_fail(load, GPUHAL_PLUGIN_FAILED, GPUHAL_ERROR_DRIVER, "%s", why);
}

static bool check_names(gpuhal_load_context *load, const gpuhal_plugin *plugin)
{
    if (!plugin->name || !gpuhal_plugin_name_is_valid(plugin->name)) {
        return broken(load, "the plugin's name is not a lower-case letter followed by up to 30 of a-z, 0-9 and _");
    }
    if (load->name && strcmp(plugin->name, load->name) != 0) {
        return gpuhal_load_fail(load, GPUHAL_PLUGIN_FAILED, GPUHAL_ERROR_DRIVER,
                                   "the plugin's name is \"%s\", its manifest has \"%s\"", plugin->name, load->name);
    }
    size_t length = plugin->version ? strnlen(plugin->version, VERSION_MAX_LENGTH + 1) : 0;
    if (length == 0 || length > VERSION_MAX_LENGTH) {
        return broken(load, "the plugin's version is not a text of 1 to 63 bytes");
    }
    if (!gpuhal_records_is_clean(plugin->version, length)) {
        return broken(load, "the plugin's version is not UTF-8, or has a control character");
    }
    return true;
}

/* Checks the ABI version first. If the core does not take it, size and members have a different meaning, and the user
 * needs both version numbers. */
static bool check_answer(gpuhal_load_context *load, const gpuhal_plugin *plugin)
{
    bool has_abi = plugin->size >= offsetof(gpuhal_plugin, abi) + sizeof plugin->abi;
    if (has_abi && !gpuhal_abi_taken(&gpuhal_abi_own, plugin->abi)) {
        return gpuhal_load_fail(load, GPUHAL_PLUGIN_INCOMPATIBLE, GPUHAL_ERROR_INCOMPATIBLE,
                                   "the plugin speaks plugin ABI %" PRIu32 ".%" PRIu32 ", this library speaks %" PRIu32
                                   ".%" PRIu32 ": install a plugin that was built for this version",
                                   plugin->abi >> 16, plugin->abi & 0xffff, gpuhal_abi_own.major,
                                   gpuhal_abi_own.minor);
    }
    if (plugin->size < GPUHAL_PLUGIN_MINIMUM) {
        return gpuhal_load_fail(load, GPUHAL_PLUGIN_FAILED, GPUHAL_ERROR_DRIVER,
                                   "the plugin's structure has %" PRIu32 " bytes; at least %" PRIu32 " are mandatory",
                                   plugin->size, GPUHAL_PLUGIN_MINIMUM);
    }
    const char *absent = !plugin->start       ? "start"
                         : !plugin->enumerate ? "enumerate"
                         : !plugin->describe  ? "describe"
                         : !plugin->open      ? "open"
                         : !plugin->close     ? "close"
                                              : NULL;
    if (absent) {
        return gpuhal_load_fail(load, GPUHAL_PLUGIN_FAILED, GPUHAL_ERROR_DRIVER,
                                   "the plugin lacks the mandatory function %s", absent);
    }
    return check_names(load, plugin);
}

/* If the query returns NULL with a report, the plugin refuses to load for the reported reason. NULL without a report is
 * a bug in the plugin. */
bool gpuhal_plugin_negotiate(gpuhal_load_context *load, gpuhal_plugin_query_fn *query, const gpuhal_plugin **out_plugin)
{
    gpuhal_load_enter(load, GPUHAL_STAGE_HANDSHAKE);
    gpuhal_load_call_begin(load);
    const gpuhal_plugin *plugin = query(GPUHAL_CORE_ABI, gpuhal_host_table());
    gpuhal_load_call_end(load);
    if (!plugin) {
        gpuhal_status reported = gpuhal_load_reported();
        if (reported == GPUHAL_ERROR_INCOMPATIBLE) { /* the plugin's message contains only its own version */
            char words[64];
            snprintf(words, sizeof words, "this library speaks plugin ABI %" PRIu32 ".%" PRIu32, gpuhal_abi_own.major,
                     gpuhal_abi_own.minor);
            gpuhal_error_extend_report(words);
        }
        return reported < 0 ? gpuhal_load_fail_call(load, reported, "negotiating the ABI")
                            : broken(load, "gpuhal_plugin_query returned NULL and gave no reason");
    }
    if (!check_answer(load, plugin)) {
        return false;
    }
    free(load->version);
    load->version = gpuhal_text_copy(plugin->version);
    *out_plugin = plugin;
    return true;
}

/* The function must be in the checked file, not in a dependency or in a file that replaced the plugin after the
 * checks. */
static bool check_origin(gpuhal_load_context *load, const char *path, const void *query, uint64_t device,
                         uint64_t inode)
{
    char *origin = gpuhal_os_library_path(query);
    gpuhal_file_info info = {0};
    bool known = origin && gpuhal_os_file_info(origin, &info) == 0;
    bool good = known && info.device == device && info.inode == inode;
    if (!good) {
        gpuhal_load_fail(load, GPUHAL_PLUGIN_FAILED, GPUHAL_ERROR_DRIVER,
                            "gpuhal_plugin_query is in %s, not in the file %s that was checked",
                            origin ? origin : "no known file", path);
    }
    free(origin);
    return good;
}

/* Only constructors may run before the checks that the symbol exists, is a function and is in the checked file. A
 * refused library stays loaded, because its threads may be running. */
bool gpuhal_plugin_load(gpuhal_load_context *load, const char *path, uint64_t device, uint64_t inode,
                        const gpuhal_plugin **out_plugin)
{
    gpuhal_load_enter(load, GPUHAL_STAGE_LOAD);
    char reason[768];
    void *library = gpuhal_plugin_dlopen(path, reason, sizeof reason);
    if (!library) {
        return gpuhal_load_fail(load, GPUHAL_PLUGIN_FAILED, GPUHAL_ERROR_DRIVER, "it cannot be loaded: %s", reason);
    }
    gpuhal_load_enter(load, GPUHAL_STAGE_HANDSHAKE);
    void *address = gpuhal_os_library_symbol(library, "gpuhal_plugin_query");
    if (!address) {
        return gpuhal_load_fail(load, GPUHAL_PLUGIN_FAILED, GPUHAL_ERROR_DRIVER,
                                   "%s exports no gpuhal_plugin_query: it is not a plugin", path);
    }
    if (gpuhal_os_library_is_data(address)) {
        return gpuhal_load_fail(load, GPUHAL_PLUGIN_FAILED, GPUHAL_ERROR_DRIVER,
                                   "gpuhal_plugin_query in %s is data, not a function", path);
    }
    if ((device || inode) && !check_origin(load, path, address, device, inode)) {
        return false;
    }
    /* ISO C cannot cast an object pointer to a function pointer. */
    gpuhal_plugin_query_fn *query;
    memcpy(&query, &address, sizeof query);
    return gpuhal_plugin_negotiate(load, query, out_plugin);
}
