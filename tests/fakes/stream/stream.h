/* tests/fakes/stream/stream.h: the calls that CUDA and HIP have in common, over the engine (../common/engine.h). They
 * are built for each vendor, with its vendor_names.h. The folder of the vendor has the functions that this header
 * demands of it, and the calls that differ. An exported function is code = fake_enter(__func__); if (code) return code;
 * …; return fake_end(code);
 */
#ifndef FAKE_STREAM_STREAM_H
#define FAKE_STREAM_STREAM_H

#include "engine.h"

/* Only these are visible. */
#define FAKE_FUNCTION(type, name, parameters) __attribute__((visibility("default"))) type name parameters;
FAKE_FUNCTIONS
#undef FAKE_FUNCTION

/* The streams of every context or thread. Here they mean the NULL stream, for vendors that have them. */
#define FAKE_LEGACY_STREAM     ((vendor_stream)1)
#define FAKE_PER_THREAD_STREAM ((vendor_stream)2)

/* ---- supplied by the vendor. Begins a call: counts it, and plays its fault. With 0 the lock is held. */
fake_code fake_enter(const char *function);
/* The same for a call that works in the current context (CUDA), or on the current device, whose context it creates
 * (HIP). */
fake_code fake_enter_context(const char *function, fake_context **out_context);
/* The same for a call that needs a current context with CUDA, and with HIP no context. */
fake_code fake_enter_current(const char *function);
/* The same for a call about a stream that may be the NULL stream. */
fake_code fake_enter_stream(const char *function, vendor_stream stream, fake_stream **out_stream);
/* Ends the call: releases the lock. */
fake_code fake_end(fake_code code);

/* The context that an object of the call must belong to; NULL: any, as with HIP. Under the lock, like all functions
 * below. */
fake_context *fake_current(void);
/* Makes the devices that the variables for visible devices leave visible. */
void fake_devices_find(void);
/* The value of an attribute that the machine does not state; false: the device has none. */
bool fake_attribute(const fake_plan *plan, unsigned number, int *out_value);

/* The stream that a call means; NULL means that of the context. With @p own, HIP too demands that it belongs there.
 * NULL if it is not a stream. */
fake_stream *fake_stream_of(const char *function, fake_context *context, vendor_stream stream, bool own);
/* The same for a call that only queries the stream: 0, or the code for an invalid stream. */
fake_code fake_stream_check(const char *function, vendor_stream stream);
/* The code for a stream that fake_stream_of() does not find. */
fake_code fake_stream_refused(const char *function, vendor_stream stream);

/* The event, as fake_event_find() finds it, once it may be used. */
fake_event *fake_event_take(const char *function, const fake_context *context, vendor_event event);
/* Notes that a call queries the state of the event. */
void fake_event_asked(const char *function, const fake_event *event);
fake_code fake_event_await(fake_event *event);

/* Whether a call may depend on the work of all streams, and whether no mode of a thread allows it. */
bool fake_is_unsafe(const char *function, bool *out_for_all);
/* Whether code of a program has a kernel, the shared memory that a launch may ask for at first, and the most threads of
 * a group. */
bool fake_code_has(const char *code, const char *kernel);
unsigned fake_code_shared_bytes(const char *code);
unsigned fake_code_threads(const char *code);
/* Whether one call may fill this many bytes from there. */
bool fake_fill_fits(uintptr_t address, size_t bytes);
/* Begins a call of the functions for virtual memory. */
fake_code fake_enter_virtual(const char *function);

/* ---- device.c */

/* The value of an attribute of a device; a value that the machine states comes first. False: it has none. */
bool fake_attribute_of(const fake_plan *plan, unsigned number, int *out_value);
/* Begins a call about one device. */
fake_code fake_enter_device(const char *function, int ordinal, fake_device **out_device);

/* ---- capture.c: whether this thread may make the call while a graph is captured; a refused call spoils the
 * capture. */
fake_code fake_capture_check(const char *function);
/* Whether the stream is being captured. That is a violation, since there are no graphs here. */
bool fake_capture_has(const char *function, const fake_stream *stream);

/* ---- module.c */

typedef struct fake_function {
    struct fake_function *next;
    struct fake_module *module;
    char name[64];
    unsigned shared_bytes; /* that a launch may ask for */
} fake_function;

typedef struct fake_module {
    struct fake_module *next;
    fake_context *context;
    char *code;
    fake_function *functions;
} fake_module;

/* A program with a copy of the code's text. */
fake_code fake_module_new(fake_context *context, const char *code, vendor_module *out_module);
/* The function; NULL if it is not a function, or if its module is unloaded, which is a violation. */
fake_function *fake_function_find(const fake_function *function);

/* ---- virtual.c */

/* Gives devices access, as one call does. */
fake_code fake_grant(const char *function, uintptr_t address, size_t bytes, const vendor_access *access, size_t count);

#endif
