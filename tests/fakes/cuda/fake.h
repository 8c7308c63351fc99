/* tests/fakes/cuda/fake.h: the driver API of CUDA over the engine of the fakes (common/engine.h). An exported function is
 *     code = fake_enter(__func__, &context); if (code) return code; …; return fake_leave(code);
 */
#ifndef FAKE_CUDA_FAKE_H
#define FAKE_CUDA_FAKE_H

#include "engine.h"

/* The engine's structures are what the driver's handles point to. */
#define CUctx_st       fake_context
#define CUstream_st    fake_stream
#define CUevent_st     fake_event
#define CUextMemory_st fake_import
#include "cuda_api.h"

typedef struct CUgraph_st *CUgraph;

/* What tests call themselves, beside what the plugin calls. */
#define FAKE_CUDA_TEST_FUNCTIONS(FUNCTION)                                                                                       \
    FUNCTION(cuCtxCreate_v2, (CUcontext * context, unsigned int flags, CUdevice device))                                         \
    FUNCTION(cuCtxDestroy_v2, (CUcontext context))                                                                               \
    FUNCTION(cuCtxSetCurrent, (CUcontext context))                                                                               \
    FUNCTION(cuCtxSynchronize, (void))                                                                                           \
    FUNCTION(cuStreamCreate, (CUstream * stream, unsigned int flags))                                                            \
    FUNCTION(cuDevicePrimaryCtxReset_v2, (CUdevice device))                                                                      \
    FUNCTION(cuStreamQuery, (CUstream stream))                                                                                   \
    FUNCTION(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode mode))                                               \
    FUNCTION(cuStreamEndCapture, (CUstream stream, CUgraph * graph))

/* Everything is hidden but these. */
#define FAKE_PROTOTYPE(name, parameters) __attribute__((visibility("default"))) CUresult name parameters;
GPUHAL_CUDA_FUNCTIONS(FAKE_PROTOTYPE, FAKE_PROTOTYPE)
FAKE_CUDA_TEST_FUNCTIONS(FAKE_PROTOTYPE)
#undef FAKE_PROTOTYPE

/* Two names for streams of every context; here both mean the NULL stream. */
#define FAKE_LEGACY_STREAM     ((CUstream)1)
#define FAKE_PER_THREAD_STREAM ((CUstream)2)

/* state.c: begins a call: counts it, plays its fault, and with @p out_context finds the context of the thread. With 0 the lock is
 * held. */
CUresult fake_enter(const char *function, CUcontext *out_context);

/* device.c: makes the devices that CUDA_VISIBLE_DEVICES leaves visible. Under the lock. */
void fake_devices_find(void);

/* stream.c: the stream that a call means: NULL is the legacy stream of the context. NULL when it is none of the context. Under
 * the lock. */
CUstream fake_stream_find(const char *function, CUcontext context, CUstream stream);

/* capture.c: whether this thread may make the call while a graph is captured; refusing it spoils the capture. Under the lock. */
CUresult fake_capture_check(const char *function);
bool fake_capture_has(const fake_stream *stream);

#endif
