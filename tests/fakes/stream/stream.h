/* tests/fakes/stream/stream.h: the calls that CUDA and HIP share, on top of the engine (../common/engine.h). They
 * are built for each vendor with its vendor_names.h. The vendor's folder implements the functions that this header
 * requires of it, and the calls that differ. An exported function has the form: code = fake_enter(__func__); if
 * (code) return code; …; return fake_end(code); */
#ifndef FAKE_STREAM_STREAM_H
#define FAKE_STREAM_STREAM_H

#include "engine.h"

/* Only exported functions are visible. */
#define FAKE_FUNCTION(type, name, parameters) __attribute__((visibility("default"))) type name parameters;
FAKE_FUNCTIONS
#undef FAKE_FUNCTION

/* Handles of the streams of every context or thread. Here they mean the NULL stream, for vendors that have them. */
#define FAKE_LEGACY_STREAM     ((vendor_stream)1)
#define FAKE_PER_THREAD_STREAM ((vendor_stream)2)

/* ---- implemented by the vendor. Begins a call: counts it and executes its fault. If it returns 0, the lock is
 * held. */
fake_code fake_enter(const char *function);
/* The same for a call that uses the current context (CUDA), or the current device, whose context it creates (HIP). */
fake_code fake_enter_context(const char *function, fake_context **out_context);
/* The same for a call that requires a current context with CUDA, and no context with HIP. */
fake_code fake_enter_current(const char *function);
/* The same for a call with a stream, which may be the NULL stream. */
fake_code fake_enter_stream(const char *function, vendor_stream stream, fake_stream **out_stream);
fake_code fake_end(fake_code code);

/* Returns the context to which the call's objects must belong, or NULL for any, as with HIP. Requires the lock, like
 * all functions below. */
fake_context *fake_current(void);
/* Creates the devices that are visible according to the environment variables. */
void fake_devices_find(void);
/* Returns an attribute that the machine does not state, or false if the device does not have it. */
bool fake_attribute(const fake_plan *plan, unsigned number, int *out_value);

/* Returns the stream of a call; NULL means the context's NULL stream. With @p own, HIP too requires that the stream
 * belongs to the context. Returns NULL if it is not a stream. */
fake_stream *fake_stream_of(const char *function, fake_context *context, vendor_stream stream, bool own);
/* The same for a call that only queries the stream. Returns 0 or the code for an invalid stream. */
fake_code fake_stream_check(const char *function, vendor_stream stream);
fake_code fake_stream_refused(const char *function, vendor_stream stream);

/* Finds the event like fake_event_find() and waits until it may be used. */
fake_event *fake_event_take(const char *function, const fake_context *context, vendor_event event);
/* Records that a call queries the event's state. */
void fake_event_asked(const char *function, const fake_event *event);
fake_code fake_event_await(fake_event *event);

/* Returns whether a call may depend on the work of all streams, and whether the call is forbidden in every thread
 * mode. */
bool fake_is_unsafe(const char *function, bool *out_for_all);
/* Whether the program's code contains a kernel, the shared memory that a launch may request by default, and the
 * maximum threads per group. */
bool fake_code_has(const char *code, const char *kernel);
unsigned fake_code_shared_bytes(const char *code);
unsigned fake_code_threads(const char *code);
/* Returns whether one call may fill this many bytes at this address. */
bool fake_fill_fits(uintptr_t address, size_t bytes);
fake_code fake_enter_virtual(const char *function);

/* ---- device.c */

/* Returns a device attribute; the machine's statement takes precedence. Returns false if the device does not have
 * it. */
bool fake_attribute_of(const fake_plan *plan, unsigned number, int *out_value);
fake_code fake_enter_device(const char *function, int ordinal, fake_device **out_device);

/* ---- capture.c: whether this thread may make the call during a capture; a refused call invalidates the capture. */
fake_code fake_capture_check(const char *function);
/* Returns whether the stream is being captured. Since this fake has no graphs, that is a violation. */
bool fake_capture_has(const char *function, const fake_stream *stream);

/* ---- module.c */

typedef struct fake_function {
    struct fake_function *next;
    struct fake_module *module;
    char name[64];
    unsigned shared_bytes; /* that a launch may request */
} fake_function;

typedef struct fake_module {
    struct fake_module *next;
    fake_context *context;
    char *code;
    fake_function *functions;
} fake_module;

/* Creates a program with a copy of the code's text. */
fake_code fake_module_new(fake_context *context, const char *code, vendor_module *out_module);
/* Returns the function, or NULL if it is not a function, or if its module is unloaded, which is a violation. */
fake_function *fake_function_find(const fake_function *function);

/* ---- virtual.c */

/* Grants devices access, as a single call does. */
fake_code fake_grant(const char *function, uintptr_t address, size_t bytes, const vendor_access *access, size_t count);

#endif
