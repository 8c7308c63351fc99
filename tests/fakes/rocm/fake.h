/* tests/fakes/rocm/fake.h: HIP over the engine of the fakes (common/engine.h). An exported function is
 *     code = fake_enter(__func__); if (code) return code; …; return fake_end(code);
 */
#ifndef FAKE_ROCM_FAKE_H
#define FAKE_ROCM_FAKE_H

#include "engine.h"

/* The engine's structures are what the runtime's handles point to. */
#define ihipStream_t                   fake_stream
#define ihipEvent_t                    fake_event
#define ihipMemGenericAllocationHandle fake_physical
#include "hip_api.h"

typedef struct ihipGraph *hipGraph_t;

/* What tests call themselves, beside what the plugin calls. */
#define FAKE_HIP_TEST_FUNCTIONS(FUNCTION)                                                                                        \
    FUNCTION(hipError_t, hipMallocManaged, (void **memory, size_t bytes, unsigned int flags))                                     \
    FUNCTION(hipError_t, hipPeekAtLastError, (void))                                                                             \
    FUNCTION(hipError_t, hipDeviceSynchronize, (void))                                                                           \
    FUNCTION(hipError_t, hipDeviceReset, (void))                                                                                 \
    FUNCTION(hipError_t, hipStreamBeginCapture, (hipStream_t stream, hipStreamCaptureMode mode))                                 \
    FUNCTION(hipError_t, hipStreamEndCapture, (hipStream_t stream, hipGraph_t * graph))                                          \
    FUNCTION(hipError_t, hipStreamCreateWithFlags, (hipStream_t * stream, unsigned int flags))                                   \
    FUNCTION(hipError_t, hipStreamQuery, (hipStream_t stream))

/* Everything is hidden but these. */
#define FAKE_PROTOTYPE(type, name, parameters) __attribute__((visibility("default"))) type name parameters;
GPUHAL_HIP_FUNCTIONS(FAKE_PROTOTYPE, FAKE_PROTOTYPE)
FAKE_HIP_TEST_FUNCTIONS(FAKE_PROTOTYPE)
#undef FAKE_PROTOTYPE

/* A stream of every thread; here it means the NULL stream. */
#define FAKE_PER_THREAD_STREAM ((hipStream_t)2)

/* state.c */

/* Begins a call: counts it, plays its fault, and initialises the runtime where nothing did. With 0 the lock is held. */
hipError_t fake_enter(const char *function);
/* The same for a call about one device. */
hipError_t fake_enter_device(const char *function, int ordinal, fake_device **out_device);
/* The same for a call that works on the current device, whose context it brings to life. */
hipError_t fake_enter_context(const char *function, fake_context **out_context);
/* Ends it: gives the lock back, and keeps an error for hipGetLastError. */
hipError_t fake_end(hipError_t code);
/* Major version: what differs between them goes by the version that the machine says. */
unsigned fake_hip_major(void);

/* capture.c: whether this thread may make the call while a graph is captured; refusing it spoils the capture. Under the lock. */
hipError_t fake_capture_check(const char *function);
bool fake_capture_has(const fake_stream *stream);

/* device.c: makes the devices that the variables with visible devices leave visible. Under the lock. */
void fake_devices_find(void);

/* stream.c: the stream that a call means: NULL is that of the current device. With @p own it has to be of that device. NULL when
 * it is none. Under the lock. */
fake_stream *fake_stream_of(const char *function, fake_context *context, hipStream_t stream, bool own);
/* The same without a rule for the device: a stream that a reset took is none, and no mistake of the program. */
fake_stream *fake_stream_living(const char *function, hipStream_t stream);
/* Notes what a reset is about to take. */
void fake_streams_lost(const fake_context *context);

#endif
