/* tests/fakes/stream/stream.h: the calls that CUDA and HIP have in common, over the engine (../common/engine.h). They
 * are built for each vendor, with its vendor_names.h; what this header asks of the vendor is in its own folder, like
 * the calls that differ. An exported function is code = fake_enter(__func__); if (code) return code; …; return
 * fake_end(code);
 */
#ifndef FAKE_STREAM_STREAM_H
#define FAKE_STREAM_STREAM_H

#include "engine.h"

/* Everything is hidden but these. */
#define FAKE_FUNCTION(type, name, parameters) __attribute__((visibility("default"))) type name parameters;
FAKE_FUNCTIONS
#undef FAKE_FUNCTION

/* Streams of every context or thread; here they mean the NULL stream, where the vendor has them. */
#define FAKE_LEGACY_STREAM     ((vendor_stream)1)
#define FAKE_PER_THREAD_STREAM ((vendor_stream)2)

/* ---- asked of the vendor. Begins a call: counts it, and plays its fault. With 0 the lock is held. */
fake_code fake_enter(const char *function);
/* The same for a call that works in the current context, or on the current device, whose context it brings to life. */
fake_code fake_enter_context(const char *function, fake_context **out_context);
/* The same for a call for which CUDA wants a context to be current, and HIP no device to have one. */
fake_code fake_enter_current(const char *function);
/* The same for a call about a stream that may be the NULL stream. */
fake_code fake_enter_stream(const char *function, vendor_stream stream, fake_stream **out_stream);
/* Ends it: gives the lock back. */
fake_code fake_end(fake_code code);

/* The context to which a thing has to belong that a call names; NULL: any, as with HIP. Under the lock, like all
 * below. */
fake_context *fake_current(void);
/* Makes the devices that the variables with visible devices leave visible. */
void fake_devices_find(void);
/* What the vendor's device answers for an attribute that the machine says nothing of; false: it has none. */
bool fake_attribute(const fake_plan *plan, unsigned number, int *out_value);

/* The stream that a call means, NULL being that of the context. With @p own HIP too wants it to belong there. NULL
 * when it is none. */
fake_stream *fake_stream_of(const char *function, fake_context *context, vendor_stream stream, bool own);
/* The same for a call that only asks for it: 0, or the code for a stream that is none. */
fake_code fake_stream_check(const char *function, vendor_stream stream);
/* What a call answers for a stream that fake_stream_of() does not find. */
fake_code fake_stream_refused(const char *function, vendor_stream stream);

/* The event, as fake_event_find() finds it, once it may be used. */
fake_event *fake_event_take(const char *function, const fake_context *context, vendor_event event);
/* A call asks for its state. */
void fake_event_asked(const char *function, const fake_event *event);
fake_code fake_event_await(fake_event *event);

/* Whether a call may depend on what all streams do, and whether so much that no mode of a thread allows it. */
bool fake_is_unsafe(const char *function, bool *out_for_all);
/* Whether code of a program has a kernel, how much shared memory a launch of it may ask for at first, and how many
 * threads a group may have. */
bool fake_code_has(const char *code, const char *kernel);
unsigned fake_code_shared_bytes(const char *code);
unsigned fake_code_threads(const char *code);
/* Whether one call may fill so many bytes from there. */
bool fake_fill_fits(uintptr_t address, size_t bytes);
/* Begins a call of the functions for virtual memory. */
fake_code fake_enter_virtual(const char *function);

/* ---- device.c */

/* What a device answers for an attribute: what the machine says comes first. False: it has none. */
bool fake_attribute_of(const fake_plan *plan, unsigned number, int *out_value);
/* Begins a call about one device. */
fake_code fake_enter_device(const char *function, int ordinal, fake_device **out_device);

/* ---- capture.c: whether this thread may make the call while a graph is captured; refusing it spoils the capture. */
fake_code fake_capture_check(const char *function);
/* Whether the stream is being captured: a violation, since there are no graphs here. */
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
/* The function; NULL for none, or one of an unloaded module, which is a violation. */
fake_function *fake_function_find(const fake_function *function);

/* ---- virtual.c */

/* Gives devices access, as one call does it. */
fake_code fake_grant(const char *function, uintptr_t address, size_t bytes, const vendor_access *access, size_t count);

#endif
