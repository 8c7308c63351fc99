/* tests/fakes/cuda/copy.c: copies. Every copy is enqueued; common/copy.c describes the rules. */
#include "fake.h"

static CUresult copy(const char *function, CUstream stream, const fake_move *what)
{
    CUcontext context;
    CUresult code = fake_enter_context(function, &context);
    if (code) {
        return code;
    }
    CUstream known = fake_stream_of(function, context, stream, true);
    return fake_end(known ? fake_submit_move(function, context, known, what) : CUDA_ERROR_INVALID_HANDLE);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
    return copy(__func__, stream,
                &(fake_move){.to = to, .from = (uintptr_t)from, .bytes = bytes, .rows = 1, .from_host = true});
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy(__func__, stream,
                &(fake_move){.to = (uintptr_t)to, .from = from, .bytes = bytes, .rows = 1, .to_host = true});
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy(__func__, stream, &(fake_move){.to = to, .from = from, .bytes = bytes, .rows = 1});
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
    return copy(__func__, stream,
                &(fake_move){.to = to, .from = from, .bytes = bytes, .rows = 1, .to_host = true, .from_host = true});
}

/* Resolves one side of a 2D copy. Returns false for memory types that the fake does not support. */
static bool side(CUmemorytype type, const void *host, CUdeviceptr device, size_t x, size_t y, size_t pitch,
                 uintptr_t *out_address, bool *out_host)
{
    *out_host = type == CU_MEMORYTYPE_HOST;
    *out_address = (*out_host ? (uintptr_t)host : (uintptr_t)device) + y * pitch + x;
    return type == CU_MEMORYTYPE_HOST || type == CU_MEMORYTYPE_DEVICE;
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *c, CUstream stream)
{
    CUcontext context;
    CUresult code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    const size_t most = FAKE_LONGEST_PITCH;
    fake_move what = {.to_pitch = c->dstPitch ? c->dstPitch : c->WidthInBytes,
                      .from_pitch = c->srcPitch ? c->srcPitch : c->WidthInBytes,
                      .bytes = c->WidthInBytes,
                      .rows = c->Height};
    bool good = side(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY, what.to_pitch, &what.to,
                     &what.to_host) &&
                side(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY, what.from_pitch, &what.from,
                     &what.from_host);
    if (!good || what.to_pitch > most || what.from_pitch > most || what.to_pitch < what.bytes ||
        what.from_pitch < what.bytes) {
        fake_report_violation("%s: a pitch below the width or above the largest, or arrays", __func__);
        return fake_end(CUDA_ERROR_INVALID_VALUE);
    }
    CUstream known = fake_stream_of(__func__, context, stream, true);
    return fake_end(known ? fake_submit_move(__func__, context, known, &what) : CUDA_ERROR_INVALID_HANDLE);
}

/* The addresses must belong to the devices of their contexts. */
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                           size_t bytes, CUstream stream)
{
    CUcontext context;
    CUresult code = fake_enter_context(__func__, &context);
    if (code) {
        return code;
    }
    if (!fake_context_alive(to_context) || !fake_context_alive(from_context)) {
        fake_report_violation("%s: no context", __func__);
        return fake_end(CUDA_ERROR_INVALID_CONTEXT);
    }
    const fake_region *to_region = fake_region_find(to, bytes), *from_region = fake_region_find(from, bytes);
    if (!to_region || !from_region || fake_region_device(to_region, to) != to_context->device ||
        fake_region_device(from_region, from) != from_context->device) {
        fake_report_violation("%s: memory of another device than the context's", __func__);
        return fake_end(CUDA_ERROR_INVALID_VALUE);
    }
    CUstream known = fake_stream_of(__func__, context, stream, true);
    code = to_context->error ? to_context->error : from_context->error;
    code = code ? code : known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    const fake_move what = {.to = to, .from = from, .bytes = bytes, .rows = 1};
    return fake_end(code ? code : fake_submit_move(__func__, context, known, &what));
}
