/* check.h: the context of a check, and how a check reports its result.
 *
 * A check is one function and one line in checks.inc. It runs in a child process that has loaded, started or opened as
 * much of the plugin as the line requires. A check that returns has passed, unless it called gpuhal_skip() before.
 * gpuhal_fail() never returns: it sends the message to the parent and exits the child. Checks therefore need no
 * clean-up after a failure, and the next check has no remains of a faulty plugin.
 */
#ifndef GPUHAL_CHECK_H
#define GPUHAL_CHECK_H

#include "given.h"
#include "listing.h"

#include <gpuhal/direct.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* The child's steps with the plugin before the check runs. */
typedef enum gpuhal_needs {
    NEEDS_NOTHING, /* nothing is loaded, in a new child process */
    NEEDS_PLUGIN,  /* loaded, started, devices listed; runs once per plugin */
    NEEDS_LISTED,  /* like NEEDS_PLUGIN, but once per device */
    NEEDS_DEVICE,  /* the device is opened before the check and closed after it */
    NEEDS_FRESH    /* once per device, with nothing loaded, in a new child process */
} gpuhal_needs;

typedef struct gpuhal_context gpuhal_context;

typedef struct gpuhal_check {
    const char *name;
    gpuhal_needs needs;
    unsigned rule;        /* the rule in docs/vendor-guide.md that a failure breaks, unless the failure names another
                           * rule */
    const char *sentence; /* the statement that a passed check confirms */
    void (*run)(gpuhal_context *context);
} gpuhal_check;

/* checks.c */
extern const gpuhal_check gpuhal_checks[];
extern const unsigned gpuhal_check_count;

#define CHECK(name, needs, rule, sentence) void gpuhal_check_##name(gpuhal_context *context);
#include "checks.inc"
#undef CHECK

enum { CHECKS_NAMED_MAX = 32 };

typedef struct gpuhal_check_options {
    FILE *out;            /* receives the report */
    const char *file;     /* the plugin's absolute path */
    const char *manifest; /* the manifest's absolute path; NULL if the command line names the plugin itself */
    const char *folder;   /* the tool's own temporary folder for a manifest; removed at the end */
    const char *expect;   /* file of expected failures; NULL for the file beside the plugin, if it exists */
    const char *only[CHECKS_NAMED_MAX], *except[CHECKS_NAMED_MAX];
    unsigned only_count, except_count;
    bool one_device;
    uint32_t device; /* with one_device, the index of the device to check */
    uint32_t deadline_s;
    gpuhal_given given; /* the kernel given by the vendor */
    bool large; /* allocations above 4 GiB are allowed */
    bool list;  /* print the checks and exit */
    const struct gpuhal_form *form; /* the report's format (report.h) */
} gpuhal_check_options;

typedef struct gpuhal_opened {
    gpuhal_plugin_device *device;
    gpuhal_slots slots;
} gpuhal_opened;

struct gpuhal_context {
    const gpuhal_check_options *options;
    const char *printed_in; /* the first check with output from the plugin, or NULL */
    uint32_t index;         /* the device; unused for NEEDS_NOTHING and NEEDS_PLUGIN */

    const gpuhal_plugin *plugin; /* set except for NEEDS_NOTHING and NEEDS_FRESH */
    const gpuhal_host *host;
    gpuhal_plugin_instance *instance; /* returned by start() */
    gpuhal_device_snapshot listing;
    const gpuhal_listed *listed; /* the device's facts, for checks that run once per device */

    gpuhal_opened opened; /* NEEDS_DEVICE */
};

/* Returns a device fact as a number, or `otherwise` if the fact is missing. */
uint64_t gpuhal_device_fact(const gpuhal_context *context, gpuhal_key key, uint64_t otherwise);

/* Reads a device's free memory with sample(), which also works if the device is not open. Returns false if it is
 * unknown. */
bool gpuhal_free_memory(const gpuhal_context *context, uint32_t index, uint64_t *out_bytes);
/* True if the plugin has this optional member; an older plugin may not have it. */
#define PLUGIN_HAS(plugin, member)                                                                                     \
    (GPUHAL_HAS(plugin, member) && (plugin)->member != NULL)

/* ---- results (result.c) */

/* May be called from any thread. */
_Noreturn void gpuhal_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Sets the rule that later gpuhal_fail() calls in this check report as broken; 0 for no rule. */
void gpuhal_rule(unsigned rule);
/* Like gpuhal_fail(), for a fault that breaks a rule other than the check's. */
_Noreturn void gpuhal_fail_by(unsigned rule, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Like gpuhal_fail_by(), for a failure that depends on time. If the machine is busy, the hint says so. */
_Noreturn void gpuhal_fail_late(unsigned rule, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes the remedy and returns true if the machine is overloaded; otherwise returns false. */
bool gpuhal_busy_hint(char *out_hint, size_t size);
/* Fails for a reason that the guide's rules do not cover. @p hint is the remedy. */
_Noreturn void gpuhal_fail_with(const char *hint, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Fails because a basic step returned @p status. If the cause may be outside the plugin, the hint says so. */
_Noreturn void gpuhal_fail_status(gpuhal_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Skips the check and states the reason. The check must return right after this call. */
void gpuhal_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns whether the device has the slot; otherwise skips the check. */
bool gpuhal_offered(bool slot, const char *name);
/* Adds a note, which does not change the result. */
void gpuhal_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* gpuhal_printed() returns the size of the file that receives the output of all children. gpuhal_forget_printed()
 * discards output printed after @p from, because a driver's compiler also prints its log. */
off_t gpuhal_printed(void);
void gpuhal_forget_printed(off_t from);
/* Sets the plugin whose name appears in failure messages. */
void gpuhal_child_plugin(const gpuhal_plugin *plugin);
/* Returns the loaded plugin, or NULL. */
const gpuhal_plugin *gpuhal_child_loaded(void);
/* Names the plugin's current step, for the message about a crash or a hang. @p what is a string constant. */
void gpuhal_step(const char *what);
/* Returns @p pointer. If @p pointer is NULL, fails with a message about the tool itself. */
void *gpuhal_own(void *pointer);
/* Discards the plugin's report of an earlier call on this thread. */
void gpuhal_forget_report(void);
/* Returns whether the plugin has reported this status since then, and discards the report. */
bool gpuhal_has_reported(gpuhal_status status);
/* Fails with the plugin's report unless @p status is OK: "<plugin>: <what>: out of memory: <report>". */
void gpuhal_expect_ok(gpuhal_status status, const char *what);
/* Like gpuhal_expect_ok(), for enumerate and sample. The library has already described their failures. */
void gpuhal_expect_reported(gpuhal_status status, const char *what);
/* Returns for example "invalid argument (-1)", in a buffer of the calling thread that is valid until its next call. */
const char *gpuhal_status_text(gpuhal_status status);

/* ---- loading and opening the plugin (session.c) */

#define GPUHAL_HINT_FILE "Give the path of a plugin's library, NAME.so, or of its manifest, NAME.gpuhal."
/* Fails the check because the file is missing or is not a plugin for this machine. @p sentence is the library's
 * message. */
_Noreturn void gpuhal_fail_file(const gpuhal_context *context, gpuhal_status status, const char *sentence);
void gpuhal_session_load(gpuhal_context *context); /* dlopen and handshake */
void gpuhal_session_start(gpuhal_context *context);
void gpuhal_session_enumerate(
    gpuhal_context *context); /* lists the devices into context->listing; sets context->listed for context->index */
/* Loads and starts the plugin, and lists its devices. */
void gpuhal_session_list(gpuhal_context *context);
/* Describes and opens the device; fails unless both are OK. */
void gpuhal_session_open(const gpuhal_context *context, gpuhal_opened *out_opened);
void gpuhal_session_close(const gpuhal_context *context, gpuhal_opened *opened);
/* Calls describe() with zeroed slots, as the core does; fails the check if describe() wrote beyond the slots. */
gpuhal_status gpuhal_session_describe(const gpuhal_context *context, uint32_t index, gpuhal_slots *out_slots);
/* Reads the tables of the groups again, after open() may have changed the pointers in `ops`. Fails the check if a table
 * breaks a rule. */
void gpuhal_session_read(gpuhal_slots *slots, const char *call);

#endif
