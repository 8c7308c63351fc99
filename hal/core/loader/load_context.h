/* loader/load_context.h: the state of loading one plugin: its stage, and where and why it failed.
 *
 * Every step of the loader takes the load context and enters its stage. On failure the step sets state, status and
 * reason and returns false. Only gpuhal_load_fail_call also sets the thread's last error, with the vendor's code.
 */
#ifndef GPUHAL_LOADER_LOAD_CONTEXT_H
#define GPUHAL_LOADER_LOAD_CONTEXT_H

#include "base/listed.h"
#include "base/log.h"

#include <gpuhal/report.h>

#include <stdbool.h>

typedef struct gpuhal_known_folder gpuhal_known_folder; /* file_check.h */

typedef struct gpuhal_load_context {
    const char *name; /* of the backend, for log lines; may be NULL */
    gpuhal_log *log;  /* may be NULL */
    gpuhal_known_folder *folder; /* of the last file that was checked; may be NULL */
    bool ignore_environment;
    const char *options;    /* for the plugin; NULL: none */
    uint64_t options_asked; /* bit for each of the first 64 options that the plugin asked for */
    /* of the plugin's start in this process; 0: it runs on the caller's thread, however long it takes */
    uint64_t deadline_ns;
    uint64_t sample_ns;   /* for each value that is read while listing; 0: GPUHAL_QUERY_NS */
    bool hangs;           /* a value of an earlier device timed out: no further value is read while listing */
    gpuhal_plugin_state state;
    gpuhal_plugin_stage stage;
    gpuhal_status status; /* for callers that named this plugin */
    int64_t code;         /* the vendor's, of the call that failed; 0: none */
    char *reason;         /* malloc'ed, NULL while nothing failed */
    char *driver;         /* malloc'ed path of the vendor library that was opened first */
    char *version;        /* malloc'ed, of the plugin */
    gpuhal_listed_devices unlisted; /* with NO_DEVICE: devices of the driver that its API does not list */
    /* Called before the step, so that the stage is known even if the step never returns. May be NULL. */
    void (*on_stage)(void *user, gpuhal_plugin_stage stage);
    void (*on_driver)(void *user, const char *path);
    void (*on_device)(void *user, const gpuhal_listed_device *device); /* complete and checked */
    void *user;
    struct gpuhal_load_context *outer; /* of gpuhal_load_call_begin */
} gpuhal_load_context;

void gpuhal_load_enter(gpuhal_load_context *load, gpuhal_plugin_stage stage);
/* Returns false. */
bool gpuhal_load_fail(gpuhal_load_context *load, gpuhal_plugin_state state, gpuhal_status status, const char *format,
                      ...) __attribute__((format(printf, 4, 5)));
/* Fails with the plugin's `status` and its report in the sentence. gpuhal_error_from_plugin describes `what`. Returns
 * false. */
bool gpuhal_load_fail_call(gpuhal_load_context *load, gpuhal_status status, const char *what);
bool gpuhal_load_no_memory(gpuhal_load_context *load);
/* Copies an option for the plugin to `out_value`, as gpuhal_host.option() does. `options` and `asked` are as in a load
 * context. */
gpuhal_status gpuhal_load_option(const char *options, uint64_t *asked, const char *key, char *out_value,
                                    uint32_t bytes);
/* Warns of options that the plugin did not ask for while it started. */
void gpuhal_load_name_unknown_options(const gpuhal_load_context *load, const char *plugin);
void gpuhal_load_set_driver(gpuhal_load_context *load, const char *path);
/* Sets the failure as this thread's last error, and returns its status. */
gpuhal_status gpuhal_load_set_error(const gpuhal_load_context *load);
void gpuhal_load_finish(gpuhal_load_context *load);

/* Must surround calls into the plugin: host functions on this thread use this load context. */
void gpuhal_load_call_begin(gpuhal_load_context *load);
void gpuhal_load_call_end(gpuhal_load_context *load);
gpuhal_load_context *gpuhal_load_current(void);
/* Returns the status that a plugin reported last on this thread, or GPUHAL_OK if there was none. It is the only way to
 * learn why a query returned NULL. The report is cleared before a call that may fail without one. */
void gpuhal_load_forget_report(void);
void gpuhal_load_note_report(gpuhal_status status);
gpuhal_status gpuhal_load_reported(void);
/* Returns the value of GPUHAL_<name><suffix>, if the current load may read the environment. */
const char *gpuhal_load_variable(const char *name, const char *suffix);

/* Returns the stage as the end of a sentence, such as "while loading". */
const char *gpuhal_load_while(gpuhal_plugin_stage stage);

#endif
