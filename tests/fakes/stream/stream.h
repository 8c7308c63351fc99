/* tests/fakes/stream/stream.h: the calls that CUDA and HIP share, on top of the engine (../common/engine.h). The
 * sources are built once for each vendor, with the vendor's vendor_names.h. The vendor's folder implements the calls
 * that differ, and the functions below that are marked as the vendor's. An exported function has the form: code =
 * fake_enter(__func__); if (code) return code; …; return fake_end(code); */
#ifndef FAKE_STREAM_STREAM_H
#define FAKE_STREAM_STREAM_H

#include "engine.h"

/* Only exported functions are visible. */
#define FAKE_FUNCTION(type, name, parameters) __attribute__((visibility("default"))) type name parameters;
FAKE_FUNCTIONS
#undef FAKE_FUNCTION

/* Special handles of the legacy and per-thread streams. The CUDA fake treats both as the NULL stream. The HIP fake does
 * this only with the per-thread stream, and only in fake_stream_of(). */
#define FAKE_LEGACY_STREAM     ((vendor_stream)1)
#define FAKE_PER_THREAD_STREAM ((vendor_stream)2)

/* ---- implemented by the vendor. Begins a call. Counts the call and executes its fault. If the function returns 0, the
 * lock is held. */
fake_code fake_enter(const char *function);
/* Begins a call that uses CUDA's current context, or HIP's current device. For HIP, creates the device's context if it
 * does not exist. */
fake_code fake_enter_context(const char *function, fake_context **out_context);
/* Begins a call that requires a current context in CUDA, but not in HIP. */
fake_code fake_enter_current(const char *function);
/* Begins a call with a stream, which may be the NULL stream. */
fake_code fake_enter_stream(const char *function, vendor_stream stream, fake_stream **out_stream);
fake_code fake_end(fake_code code);

/* Returns the context that must own the call's objects. HIP returns NULL, because any context is allowed. Requires the
 * lock, like all functions below that do not begin a call. */
fake_context *fake_current(void);
/* Creates the devices that are visible according to the environment variables. */
void fake_devices_find(void);
/* Returns a device attribute that the machine's text does not set by its number. Returns false if the device does not
 * have the attribute. */
bool fake_attribute(const fake_plan *plan, unsigned number, int *out_value);

/* Returns the stream of a call, or NULL if the handle is not a stream. The handle NULL means the context's NULL stream.
 * CUDA requires that the stream belongs to the context. HIP requires this only with @p own. */
fake_stream *fake_stream_of(const char *function, fake_context *context, vendor_stream stream, bool own);
/* Checks the stream of a call that needs only its handle. Returns 0 or the code for an invalid stream. */
fake_code fake_stream_check(const char *function, vendor_stream stream);
/* Returns the code of a call for a stream that fake_stream_of() does not find. */
fake_code fake_stream_refused(const char *function, vendor_stream stream);

/* Finds the event like fake_event_find() and waits until it may be used. */
fake_event *fake_event_take(const char *function, const fake_context *context, vendor_event event);
/* Called for each query of the event and each wait for it. HIP's version reports violations, CUDA's does nothing. */
void fake_event_asked(const char *function, const fake_event *event);
fake_code fake_event_await(fake_event *event);

/* Returns whether a call may depend on the work of all streams, and whether the call is forbidden in every thread
 * mode. */
bool fake_is_unsafe(const char *function, bool *out_for_all);
/* Three facts about a program: whether its code contains a kernel, the shared memory that a launch may request by
 * default, and the maximum number of threads per group. */
bool fake_code_has(const char *code, const char *kernel);
unsigned fake_code_shared_bytes(const char *code);
unsigned fake_code_threads(const char *code);
/* Returns whether one call may fill this many bytes at this address. */
bool fake_fill_fits(uintptr_t address, size_t bytes);
/* Begins a call of the virtual memory functions. */
fake_code fake_enter_virtual(const char *function);

/* ---- device.c */

/* Returns a device attribute. A value in the machine's text takes precedence. Returns false if the device does not have
 * the attribute. */
bool fake_attribute_of(const fake_plan *plan, unsigned number, int *out_value);
fake_code fake_enter_device(const char *function, int ordinal, fake_device **out_device);

/* ---- capture.c. Returns 0 if this thread may make the call during a capture, otherwise the code. A refused call
 * invalidates the capture. */
fake_code fake_capture_check(const char *function);
/* Returns whether the stream is being captured. If so, records a violation, because a capture makes no
 * graph here. */
bool fake_capture_has(const char *function, const fake_stream *stream);

/* ---- module.c */

typedef struct fake_function {
    struct fake_function *next;
    struct fake_module *module;
    char name[64];
    unsigned shared_bytes; /* maximum shared memory of a launch */
} fake_function;

typedef struct fake_module {
    struct fake_module *next;
    fake_context *context;
    char *code;
    fake_function *functions;
} fake_module;

/* Creates a program with a copy of the code's text. */
fake_code fake_module_new(fake_context *context, const char *code, vendor_module *out_module);
/* Returns the function, or NULL if the handle is not a function or its module has been unloaded, which is a
 * violation. */
fake_function *fake_function_find(const fake_function *function);

/* Returns 0 if the function can be launched like this, otherwise the driver's code. */
fake_code fake_launch_check(const fake_function *function, const fake_launch *as, void **parameters, void **extra);

/* ---- graph.c */

typedef struct fake_node fake_node;
typedef struct fake_graph fake_graph;
typedef struct fake_executable fake_executable;

/* What a node does. */
typedef struct fake_node_work {
    enum { FAKE_KERNEL_NODE, FAKE_COPY_NODE, FAKE_FILL_NODE } kind;
    fake_function *function;
    fake_launch launch;
    fake_move move; /* of a fill, only `to` */
    unsigned value, value_bytes;
    size_t count;
} fake_node_work;

/* Destroys the graphs of a failed context. */
void fake_graphs_free(const fake_context *context);
/* Adds a node that runs after others of the same graph. */
fake_code fake_node_add(const char *function, fake_context *context, fake_graph *graph, const vendor_node *after,
                        size_t count, const fake_node_work *work, vendor_node *out_node);
fake_code fake_fill_node_add(const char *function, fake_context *context, fake_graph *graph, const vendor_node *after,
                             size_t count, uintptr_t to, unsigned value, unsigned value_bytes, size_t elements,
                             vendor_node *out_node);
/* Implemented by the vendor: reads the members of a kernel node's parameters. */
void fake_kernel_node(const vendor_kernel_node *from, vendor_function *out_function, fake_launch *out_launch,
                      void ***out_parameters, void ***out_extra);

/* ---- virtual.c */

/* Grants or revokes the access of several devices, as one call of the vendor's function does. */
fake_code fake_grant(const char *function, uintptr_t address, size_t bytes, const vendor_access *access, size_t count);

#endif
