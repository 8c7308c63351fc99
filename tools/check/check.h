/* check.h: the context of a check, and how it reports its result.
 *
 * A check is one function and one line in checks.inc. It runs in a child process that has loaded, started or opened as
 * much of the plugin as the line asks for. A check that returns has passed, unless it called gpuhal_skip() before.
 * gpuhal_fail() never returns: it sends the sentence to the parent and ends the child. So checks need no clean-up on
 * the way out of a failure, and the remains of a faulty plugin are gone for the next check.
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
    NEEDS_NOTHING, /* nothing is loaded, and the child is a new one */
    NEEDS_PLUGIN,  /* loaded, started, devices listed; once for the plugin */
    NEEDS_LISTED,  /* as NEEDS_PLUGIN, once for each device */
    NEEDS_DEVICE,  /* the device is opened for the check, and closed after it */
    NEEDS_FRESH    /* once for each device, with nothing loaded, in a new child */
} gpuhal_needs;

typedef struct gpuhal_context gpuhal_context;

typedef struct gpuhal_check {
    const char *name;
    gpuhal_needs needs;
    unsigned rule;        /* of docs/vendor-guide.md; a failure breaks it unless it names another */
    const char *sentence; /* the statement that a pass confirms */
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
    FILE *out;            /* the report goes there */
    const char *file;     /* the plugin, absolute */
    const char *manifest; /* of the plugin, absolute; NULL: the command line names the plugin itself */
    const char *folder;   /* the tool's own, for a manifest; removed at the end */
    const char *expect;   /* file of expected failures; NULL: beside the plugin, if there is one */
    const char *only[CHECKS_NAMED_MAX], *except[CHECKS_NAMED_MAX];
    unsigned only_count, except_count;
    bool one_device;
    uint32_t device; /* with one_device: the index of the device to check */
    uint32_t deadline_s;
    gpuhal_given given; /* the vendor's kernel */
    bool large; /* allocations above 4 GiB are allowed */
    bool list;  /* print the checks and leave */
    const struct gpuhal_form *form; /* of the report (report.h) */
} gpuhal_check_options;

/* The slots of a device in the space that the ABI promises to plugins, followed by guards. */
typedef struct gpuhal_slots {
    union {
        gpuhal_ops ops;
        unsigned char space[GPUHAL_OPS_SPACE];
    };
    unsigned char guard[1024];
} gpuhal_slots;

/* A device that was opened once. */
typedef struct gpuhal_opened {
    gpuhal_plugin_device *device;
    gpuhal_slots slots;
} gpuhal_opened;

struct gpuhal_context {
    const gpuhal_check_options *options;
    const char *printed_in; /* the first passed check in which the plugin printed; NULL: none */
    uint32_t index;         /* the device, for all needs except NOTHING and PLUGIN */

    const gpuhal_plugin *plugin; /* from NEEDS_PLUGIN on */
    const gpuhal_host *host;
    gpuhal_plugin_instance *instance; /* the result of start() */
    gpuhal_device_snapshot listing;
    const gpuhal_listed *listed; /* the device's facts, if the check is about one */

    gpuhal_opened opened; /* NEEDS_DEVICE */
};

/* Returns the number of a fact of the device, or `otherwise` if it is missing. */
uint64_t gpuhal_device_fact(const gpuhal_context *context, gpuhal_key key, uint64_t otherwise);

/* Reads the free memory of a device with sample(), which works on a device that is not open. False: it is not known. */
bool gpuhal_free_memory(const gpuhal_context *context, uint32_t index, uint64_t *out_bytes);
/* Whether the plugin has this optional member. An older plugin may lack it. */
#define PLUGIN_HAS(plugin, member)                                                                                     \
    ((plugin)->size >= offsetof(gpuhal_plugin, member) + sizeof(plugin)->member && (plugin)->member != NULL)

/* ---- results (result.c) */

/* Ends the check and its child with a sentence that names the fault. From any thread. */
_Noreturn void gpuhal_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* From now on, failures of gpuhal_fail() in this check break this rule; 0: none. */
void gpuhal_rule(unsigned rule);
/* Does the same for a fault that breaks another rule than that of the check. */
_Noreturn void gpuhal_fail_by(unsigned rule, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Does the same if time decides: a busy machine may be to blame, and then the hint says so. */
_Noreturn void gpuhal_fail_late(unsigned rule, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes the remedy if the machine has more to run than it has processors for; returns false if it has not. */
bool gpuhal_busy_hint(char *out_hint, size_t size);
/* Fails for a reason outside the rules of the guide: @p hint names the remedy. */
_Noreturn void gpuhal_fail_with(const char *hint, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Fails because of @p status, which a plain step returned. If it may come from outside the plugin, the hint says so. */
_Noreturn void gpuhal_fail_status(gpuhal_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Skips the check, which must return right after this: it cannot judge anything here, for this reason. */
void gpuhal_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns whether the device offers the slot; otherwise skips the check. */
bool gpuhal_offered(bool slot, const char *name);
/* Adds a note, which does not change the result. */
void gpuhal_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns how much was printed in this child; forgets later output: a driver's compiler prints its log, too. */
off_t gpuhal_printed(void);
void gpuhal_forget_printed(off_t from);
/* Sets the plugin that failures are about. */
void gpuhal_child_plugin(const gpuhal_plugin *plugin);
/* NULL: none is loaded. */
const gpuhal_plugin *gpuhal_child_loaded(void);
/* Names the current step of the plugin, for the sentence about a crash or a hang. @p what is a string constant. */
void gpuhal_step(const char *what);
/* Fails with a plain sentence about the tool itself if @p pointer is NULL; otherwise returns it. */
void *gpuhal_own(void *pointer);
/* Fails with the plugin's report unless @p status is OK: "<plugin>: <what>: out of memory: <report>". */
void gpuhal_expect_ok(gpuhal_status status, const char *what);
/* Does the same for enumerate and sample. The library has described their failure already. */
void gpuhal_expect_reported(gpuhal_status status, const char *what);
/* "invalid argument (-1)". In a buffer of the calling thread, valid until its next call. */
const char *gpuhal_status_text(gpuhal_status status);

/* ---- loading and opening the plugin (session.c) */

#define GPUHAL_HINT_FILE "Give the path of a plugin's library, NAME.so, or of its manifest, NAME.gpuhal."
/* Fails because the file is not there, or is not a plugin for this machine: @p sentence is the library's. */
_Noreturn void gpuhal_fail_file(const gpuhal_context *context, gpuhal_status status, const char *sentence);
void gpuhal_session_load(gpuhal_context *context);  /* dlopen and handshake */
void gpuhal_session_start(gpuhal_context *context); /* start */
void gpuhal_session_enumerate(
    gpuhal_context *context); /* lists the devices into context->listing; sets context->listed for context->index */
/* Does all three steps: loads and starts the plugin, and lists its devices. */
void gpuhal_session_list(gpuhal_context *context);
/* Describes and opens the device; fails unless both are OK. */
void gpuhal_session_open(const gpuhal_context *context, gpuhal_opened *out_opened);
void gpuhal_session_close(const gpuhal_context *context, gpuhal_opened *opened);
/* Calls describe() with zeroed slots, as the core does; fails if it wrote beyond them. */
gpuhal_status gpuhal_session_describe(const gpuhal_context *context, uint32_t index, gpuhal_slots *out_slots);

#endif
