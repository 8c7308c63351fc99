/* loader/vendor_library.c: implements gpuhal_host.library(), which opens a vendor's runtime library for a plugin.
 *
 * Bare sonames are allowed only here, because the system's dynamic loader knows the drivers' locations. The path of the
 * opened library is recorded in the load context for the report. If no library opens, the error message lists the names
 * that were tried.
 */
#include "base/error.h"
#include "base/job.h"
#include "base/text.h"
#include "loader/load_context.h"
#include "loader/host.h"
#include "os/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* lower half: number of threads in dlopen; upper half: fork generation when the first of these threads entered
 * dlopen */
static _Atomic uint64_t loading;

bool gpuhal_dlopen_is_forked(void)
{
    const uint64_t now = atomic_load(&loading);
    return (uint32_t)now != 0 && now >> 32 != gpuhal_os_fork_generation();
}

/* In a forked child, the count of the parent's other threads remains, because only the forking thread exists there. */
static bool enter_dlopen(void)
{
    const uint64_t generation = (uint64_t)gpuhal_os_fork_generation() << 32;
    uint64_t now = atomic_load(&loading);
    do {
        if (gpuhal_dlopen_is_forked()) {
            return false;
        }
    } while (!atomic_compare_exchange_weak(&loading, &now, generation | ((uint32_t)now + 1)));
    return true;
}

void *gpuhal_plugin_dlopen(const char *name, char *reason, size_t reason_bytes)
{
    gpuhal_job *job = gpuhal_job_current();
    if (!enter_dlopen()) {
        snprintf(reason, reason_bytes, "%s", GPUHAL_DLOPEN_IS_FORKED);
        return NULL;
    }
    if (job) {
        atomic_store(&job->in_dynamic_loader, true);
    }
    void *library = gpuhal_os_library_open(name, reason, reason_bytes);
    atomic_fetch_sub(&loading, 1);
    if (job) {
        atomic_store(&job->in_dynamic_loader, false);
    }
    return library;
}

/* Frees the malloc'ed line. */
static void log_debug(char *line)
{
    if (line) {
        gpuhal_log_to_all(GPUHAL_LEVEL_DEBUG, line);
    }
    free(line);
}

/* Frees the malloc'ed sentence. */
static gpuhal_status no_driver(char *sentence)
{
    gpuhal_error_report(GPUHAL_ERROR_NO_DRIVER, NULL, 0, sentence);
    log_debug(sentence);
    return GPUHAL_ERROR_NO_DRIVER;
}

static void *try_name(const char *name, gpuhal_text *tried)
{
    char reason[512];
    void *library = gpuhal_plugin_dlopen(name, reason, sizeof reason);
    if (!library) {
        const size_t length = strlen(name);
        const bool named =
            strncmp(reason, name, length) == 0 && strncmp(reason + length, ": ", 2) == 0; /* dlerror() begins with the
                                                                                           * name */
        gpuhal_text_printf(tried, "%s%s: %s", tried->length ? "; " : "tried ", name,
                           named ? reason + length + 2 : reason);
    }
    return library;
}

static void *open_first(const char *setting, const char *const *sonames, gpuhal_text *tried)
{
    const char *override = setting ? gpuhal_load_variable(setting, "_LIBRARY") : NULL;
    if (override && !gpuhal_os_path_is_absolute(override)) {
        gpuhal_text_printf(tried, "GPUHAL_%s_LIBRARY is \"%s\", which is not an absolute path", setting, override);
        return NULL;
    }
    if (override) {
        return try_name(override, tried);
    }
    for (const char *const *name = sonames; name && *name; name++) {
        void *library = **name ? try_name(*name, tried) : NULL;
        if (library) {
            return library;
        }
    }
    if (!tried->length) {
        gpuhal_text_printf(tried, "the plugin names no library to open");
    }
    return NULL;
}

/* Copies the pointer as bytes, because the slot's type is unknown here. */
static void set_slot(const gpuhal_symbol *symbol, const void *address)
{
    memcpy(symbol->slot, &address, sizeof address);
}

static void clear_slots(const gpuhal_symbol *symbols, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        set_slot(&symbols[i], NULL);
    }
}

/* Returns the first missing required symbol; NULL if none. Sets all slots even if a symbol is missing; the caller
 * clears them after a failure. */
static const char *fill_slots(void *library, const char *path, const gpuhal_symbol *symbols, uint32_t count)
{
    const char *missing = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const void *address = gpuhal_os_library_symbol(library, symbols[i].name);
        set_slot(&symbols[i], address);
        if (!address && symbols[i].required) {
            missing = missing ? missing : symbols[i].name;
        } else if (!address) {
            log_debug(gpuhal_text_format("%s has no %s, which is optional", path, symbols[i].name));
        }
    }
    return missing;
}

gpuhal_status gpuhal_vendor_library(__attribute__((unused)) const gpuhal_host *host, const char *setting,
                                    const char *const *sonames, const gpuhal_symbol *symbols, uint32_t count)
{
    clear_slots(symbols, count);
    if (gpuhal_dlopen_is_forked()) {
        gpuhal_error_report(GPUHAL_ERROR_FORKED, NULL, 0, GPUHAL_DLOPEN_IS_FORKED);
        return GPUHAL_ERROR_FORKED;
    }
    gpuhal_text tried = {0};
    void *library = open_first(setting, sonames, &tried);
    if (!library) {
        return no_driver(gpuhal_text_take(&tried));
    }
    gpuhal_text_finish(&tried);
    char *path = gpuhal_os_library_file(library);
    const char *name = path ? path : "the vendor's library";
    log_debug(gpuhal_text_format("opened %s", name));
    if (gpuhal_load_current()) {
        gpuhal_load_set_driver(gpuhal_load_current(), path);
    }
    const char *missing = fill_slots(library, name, symbols, count);
    gpuhal_status status = GPUHAL_OK;
    if (missing) {
        clear_slots(symbols, count);
        status = no_driver(gpuhal_text_format("%s has no function %s: it is too old, or a stub", name, missing));
    }
    free(path);
    return status;
}
