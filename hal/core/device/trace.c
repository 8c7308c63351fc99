/* device/trace.c: see trace.h.
 *
 * Queues and events are the plugin's own objects and do not contain their device. The device is found through the
 * calling thread's slot (base/call.h), because every call is begun for a device. The line is logged inside the plugin
 * call, but logging must not count as the driver's time, so the thread's slot is cleared first. The end of the call
 * restores it anyway.
 *
 * slots.inc lists every slot with its parameters and log format. A missing line does not compile.
 */
#include "device/trace.h"

#include "base/call.h"
#include "loader/slot_tables.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* A number for every slot. A slot with two lines does not compile. */
enum {
#define STATUS(table, name, parameters, arguments, ...) NUMBER_##name,
#define NOTHING STATUS
#include "device/slots.inc"
#undef STATUS
#undef NOTHING
    SLOTS
};
_Static_assert(sizeof(gpuhal_slots) == GPUHAL_SLOTS_HEADER_BYTES + sizeof(void (*)(void)) * SLOTS,
               "a slot is missing in slots.inc, or is no longer in plugin.h");

/* The driver's time ends before the line is formatted. */
typedef struct traced_call {
    gpuhal_call_slot *thread;
    const gpuhal_device *device;
    uint64_t begun_ns, ns;
} traced_call;

static traced_call begin(void)
{
    gpuhal_call_slot *thread = gpuhal_call_slot_own();
    uintptr_t call = atomic_load_explicit(&thread->call, memory_order_relaxed);
    return (traced_call){.thread = thread,
                         .device = (const gpuhal_device *)(call & ~(uintptr_t)GPUHAL_CALL_BITS),
                         .begun_ns = gpuhal_os_monotonic_ns()};
}

/* Logs "trace opencl:0 copy(no queue, to memory 0x…, …): ok, 1234 ns"; `answer` is "" if the slot returns nothing. */
static __attribute__((format(printf, 4, 5))) void end(traced_call call, const char *slot, const char *answer,
                                                      const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    atomic_store_explicit(&call.thread->call, 0, memory_order_relaxed);
    gpuhal_log_line(call.device->gpu->log, GPUHAL_LEVEL_TRACE, "%s %s(%s): %s%s%" PRIu64 " ns", call.device->id, slot,
                    text, answer, answer[0] ? ", " : "", call.ns);
}

enum { OBJECT_BYTES = 40 };

/* Writes "queue 0x7f12…", or "no queue" for NULL, because the output of "%p" depends on the C library. */
static const char *name_object(const char *kind, const void *object, char text[OBJECT_BYTES])
{
    if (object) {
        snprintf(text, OBJECT_BYTES, "%s 0x%" PRIxPTR, kind, (uintptr_t)object);
    } else {
        snprintf(text, OBJECT_BYTES, "no %s", kind);
    }
    return text;
}
#define OBJECT(kind, object) name_object(kind, object, (char[OBJECT_BYTES]){0})
#define RECT_PLACE(rect)                                                                                               \
    OBJECT((rect)->memory ? "memory" : "host memory", (rect)->memory ? (rect)->memory->object : (rect)->host)

#define STATUS(table, name, parameters, arguments, ...)                                                                \
    static gpuhal_status trace_##name parameters                                                                       \
    {                                                                                                                  \
        traced_call call = begin();                                                                                    \
        const gpuhal_status status = call.device->traced->table.name arguments;                                        \
        call.ns = gpuhal_os_monotonic_ns() - call.begun_ns;                                                            \
        end(call, #name, gpuhal_status_name(status), __VA_ARGS__);                                                     \
        return status;                                                                                                 \
    }
#define NOTHING(table, name, parameters, arguments, ...)                                                               \
    static void trace_##name parameters                                                                                \
    {                                                                                                                  \
        traced_call call = begin();                                                                                    \
        call.device->traced->table.name arguments;                                                                     \
        call.ns = gpuhal_os_monotonic_ns() - call.begun_ns;                                                            \
        end(call, #name, "", __VA_ARGS__);                                                                             \
    }
#include "device/slots.inc"
#undef STATUS
#undef NOTHING

void gpuhal_trace_slots(gpuhal_device *device)
{
    if (!gpuhal_log_wants(device->gpu->log, GPUHAL_LEVEL_TRACE)) {
        return;
    }
    device->traced = device->traced ? device->traced : malloc(sizeof *device->traced);
    if (!device->traced) {
        gpuhal_log_line(device->gpu->log, GPUHAL_LEVEL_WARNING, "%s is not traced: the host has no memory left",
                        device->id);
        return;
    }
    *device->traced = device->slots;
#define STATUS(table, name, parameters, arguments, ...)                                                                \
    device->table.name = device->table.name ? trace_##name : NULL;
#define NOTHING STATUS
#include "device/slots.inc"
#undef STATUS
#undef NOTHING
}
