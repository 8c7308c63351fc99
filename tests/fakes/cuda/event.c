/* tests/fakes/cuda/event.c: events of the driver API. */
#include "fake.h"

CUresult cuEventCreate(CUevent *out_event, unsigned int flags)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    *out_event = flags < 8 ? fake_event_new(context, flags) : NULL;
    return fake_leave(*out_event ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuEventDestroy_v2(CUevent event)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    if (!fake_event_find(__func__, NULL, event)) {
        return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    }
    fake_event_free(event);
    return fake_leave(CUDA_SUCCESS);
}

/* Event and stream have to be of one context. */
CUresult cuEventRecord(CUevent event, CUstream stream)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    CUstream known = fake_stream_find(__func__, context, stream);
    if (!known || !fake_event_find(__func__, context, event)) {
        return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    }
    return fake_leave(fake_event_record(event, known));
}

CUresult cuEventQuery(CUevent event)
{
    CUresult code = fake_enter(__func__, NULL);
    if (code) {
        return code;
    }
    if (!fake_event_find(__func__, NULL, event)) {
        return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    }
    return fake_leave(fake_event_query(event));
}

CUresult cuEventSynchronize(CUevent event)
{
    CUcontext current;
    CUresult code = fake_enter(__func__, &current);
    if (code) {
        return code;
    }
    if (!fake_event_find(__func__, NULL, event)) {
        return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    }
    return fake_leave(fake_event_wait(event));
}

/* A stream may wait for an event of any context. One that was never recorded is done. */
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    CUstream known = fake_stream_find(__func__, context, stream);
    if (!known || !fake_event_find(__func__, NULL, event) || flags) {
        return fake_leave(flags ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE);
    }
    return fake_leave(fake_submit(known, &(fake_work){.after = event->point}));
}

CUresult cuEventElapsedTime(float *out_milliseconds, CUevent from, CUevent to)
{
    CUcontext context;
    CUresult code = fake_enter(__func__, &context);
    if (code) {
        return code;
    }
    if (!fake_event_find(__func__, NULL, from) || !fake_event_find(__func__, NULL, to)) {
        return fake_leave(CUDA_ERROR_INVALID_HANDLE);
    }
    return fake_leave(fake_event_elapsed(from, to, out_milliseconds));
}
