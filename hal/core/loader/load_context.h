/* loader/load_context.h: the state of one attempt to load a plugin, including its stage and the reason for a failure.
 *
 * Every step of the loader gets the load context and sets its stage. On failure the step sets state, status and reason,
 * and returns false. Only gpuhal_load_fail_call also sets the thread's last error, with the vendor's code.
 */
#ifndef GPUHAL_LOADER_LOAD_CONTEXT_H
#define GPUHAL_LOADER_LOAD_CONTEXT_H

#include "base/listed.h"
#include "base/log.h"

#include <gpuhal/report.h>

#include <stdbool.h>

typedef struct gpuhal_known_folder gpuhal_known_folder; /* file_check.h */

typedef struct gpuhal_load_context {
    const char *name; /* name of the backend, for log lines; may be NULL */
    gpuhal_log *log;  /* may be NULL */
    gpuhal_known_folder *folder; /* folder of the last checked file; may be NULL */
    bool ignore_environment;
    const char *options;    /* for the plugin; NULL if none */
    uint64_t options_asked; /* bit i is set if the plugin queried option i; only for the first 64 options */
    /* deadline for starting the plugin in this process, or for listing its devices again; 0 means that the plugin is
     * started on the caller's thread, without a deadline */
    uint64_t deadline_ns;
    uint64_t sample_ns;   /* deadline for each value read while listing; 0 means GPUHAL_QUERY_NS */
    bool hangs;           /* a value of an earlier device timed out, so no more values are read while listing */
    gpuhal_plugin_state state;
    gpuhal_plugin_stage stage;
    gpuhal_status status; /* for callers that requested this plugin by name */
    int64_t code;         /* the vendor's code of the failed call; 0 if none */
    char *reason;         /* malloc'ed; NULL if nothing has failed */
    char *note;           /* malloc'ed; the reason in the report of a plugin that lists devices; NULL if none */
    char *driver;         /* malloc'ed path of the first vendor library opened */
    char *version;        /* malloc'ed version of the plugin */
    gpuhal_listed_devices unlisted; /* with NO_DEVICE: devices that the driver has but its API does not list */
    /* called before each stage, so that the stage is known even if it never ends; may be NULL */
    void (*on_stage)(void *user, gpuhal_plugin_stage stage);
    void (*on_driver)(void *user, const char *path);
    void (*on_device)(void *user, const gpuhal_listed_device *device); /* the device is complete and checked */
    void *user;
    struct gpuhal_load_context *outer; /* set by gpuhal_load_call_begin */
} gpuhal_load_context;

void gpuhal_load_enter(gpuhal_load_context *load, gpuhal_plugin_stage stage);
/* Always returns false. */
bool gpuhal_load_fail(gpuhal_load_context *load, gpuhal_plugin_state state, gpuhal_status status, const char *format,
                      ...) __attribute__((format(printf, 4, 5)));
/* Fails with the plugin's `status` and report. Passes `what` to gpuhal_error_from_plugin(). Always returns false. */
bool gpuhal_load_fail_call(gpuhal_load_context *load, gpuhal_status status, const char *what);
bool gpuhal_load_no_memory(gpuhal_load_context *load);
/* Copies an option for the plugin to `out_value`, like gpuhal_host.option(). `options` and `asked` are as in a load
 * context. */
gpuhal_status gpuhal_load_option(const char *options, uint64_t *asked, const char *key, char *out_value,
                                    uint32_t bytes);
/* Warns about options that the plugin did not query while it started. */
void gpuhal_load_name_unknown_options(const gpuhal_load_context *load, const char *plugin);
void gpuhal_load_set_driver(gpuhal_load_context *load, const char *path);
gpuhal_status gpuhal_load_set_error(const gpuhal_load_context *load);
void gpuhal_load_finish(gpuhal_load_context *load);

/* Must surround calls into the plugin, so that host functions on this thread use this load context. */
void gpuhal_load_call_begin(gpuhal_load_context *load);
void gpuhal_load_call_end(gpuhal_load_context *load);
gpuhal_load_context *gpuhal_load_current(void);
/* Returns the last status that a plugin reported on this thread, or GPUHAL_OK if there was none. If a query returned
 * NULL, only the report contains the reason. The report must be cleared before a call that may fail without a
 * report. */
void gpuhal_load_forget_report(void);
void gpuhal_load_note_report(gpuhal_status status);
gpuhal_status gpuhal_load_reported(void);
/* Returns the value of GPUHAL_<name><suffix>; NULL if the current load must not read the environment. */
const char *gpuhal_load_variable(const char *name, const char *suffix);

/* Returns the stage as a phrase that ends a sentence, such as "while loading". */
const char *gpuhal_load_while(gpuhal_plugin_stage stage);

#endif
