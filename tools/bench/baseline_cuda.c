/* baseline_cuda.c: the CUDA driver's functions, in the shape of baseline_stream.h. */
#include "../../plugins/cuda/cuda_api.h"
#include "baseline_stream.h"

#define MEMBER(name, arguments)  CUresult(*name) arguments;
#define SYMBOL(name, arguments)  {#name, &cuda.name},
#define NOTHING(name, arguments) /* What only some drivers have is not called here. */

static struct {
    GPUHAL_CUDA_FUNCTIONS(MEMBER, NOTHING)
} cuda;

static const gpuhal_bench_symbol symbols[] = {GPUHAL_CUDA_FUNCTIONS(SYMBOL, NOTHING)};

static unsigned cuda_enter(const gpuhal_native *device, int *out_before)
{
    *out_before = 0; /* CUDA keeps a stack of what was current. */
    return cuda.cuCtxPushCurrent_v2((CUcontext)(uintptr_t)device->values[0]);
}

static void cuda_leave(int before)
{
    (void)before;
    CUcontext context;
    cuda.cuCtxPopCurrent_v2(&context);
}

static unsigned cuda_create(void **out_stream, void **out_event)
{
    CUstream stream;
    CUevent event;
    CUresult code = cuda.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0);
    if (code != CUDA_SUCCESS) {
        return code;
    }
    code = cuda.cuEventCreate(&event, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING);
    if (code != CUDA_SUCCESS) {
        cuda.cuStreamDestroy_v2(stream);
        return code;
    }
    *out_stream = stream;
    *out_event = event;
    return CUDA_SUCCESS;
}

static void cuda_destroy(void *stream, void *event)
{
    cuda.cuEventDestroy_v2(event);
    cuda.cuStreamDestroy_v2(stream);
}

static unsigned cuda_move(gpuhal_bench_direction direction, uint64_t to, uint64_t from, uint64_t bytes, void *stream)
{
    switch (direction) {
    case GPUHAL_BENCH_TO_DEVICE:
        return cuda.cuMemcpyHtoDAsync_v2(to, (const void *)(uintptr_t)from, bytes, stream);
    case GPUHAL_BENCH_TO_HOST:
        return cuda.cuMemcpyDtoHAsync_v2((void *)(uintptr_t)to, from, bytes, stream);
    default:
        return cuda.cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
    }
}

static unsigned cuda_move_peer(const gpuhal_native *to_device, uint64_t to, const gpuhal_native *from_device, uint64_t from,
                               uint64_t bytes, void *stream)
{
    return cuda.cuMemcpyPeerAsync(to, (CUcontext)(uintptr_t)to_device->values[0], from,
                                  (CUcontext)(uintptr_t)from_device->values[0], bytes, stream);
}

static unsigned cuda_wait(void *stream)
{
    return cuda.cuStreamSynchronize(stream);
}

static unsigned cuda_record(void *event, void *stream)
{
    return cuda.cuEventRecord(event, stream);
}

static unsigned cuda_wait_asleep(void *event)
{
    return cuda.cuEventSynchronize(event);
}

static unsigned cuda_allocate_and_free(uint64_t bytes)
{
    CUdeviceptr address;
    const CUresult code = cuda.cuMemAlloc_v2(&address, bytes);
    return code != CUDA_SUCCESS ? code : cuda.cuMemFree_v2(address);
}

static unsigned cuda_lock_and_unlock(void *memory, uint64_t bytes)
{
    const CUresult code = cuda.cuMemHostRegister_v2(memory, bytes, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    return code != CUDA_SUCCESS ? code : cuda.cuMemHostUnregister(memory);
}

static CUresult describe(int ordinal)
{
    CUdevice device;
    char text[256];
    size_t total;
    CUuuid uuid;
    CUresult code = cuda.cuDeviceGet(&device, ordinal);
    code = code != CUDA_SUCCESS ? code : cuda.cuDeviceGetName(text, sizeof text, device);
    code = code != CUDA_SUCCESS ? code : cuda.cuDeviceTotalMem_v2(&total, device);
    code = code != CUDA_SUCCESS ? code : cuda.cuDeviceGetUuid(&uuid, device);
    return code != CUDA_SUCCESS ? code : cuda.cuDeviceGetPCIBusId(text, sizeof text, device);
}

static unsigned cuda_list(int *out_count)
{
    int version;
    CUresult code = cuda.cuInit(0);
    code = code != CUDA_SUCCESS ? code : cuda.cuDriverGetVersion(&version);
    code = code != CUDA_SUCCESS ? code : cuda.cuDeviceGetCount(out_count);
    for (int i = 0; code == CUDA_SUCCESS && i < *out_count; i++) {
        code = describe(i);
    }
    return code;
}

const gpuhal_bench_stream_driver gpuhal_bench_cuda_driver = {
    .name = "CUDA",
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof *symbols,
    .enter = cuda_enter,
    .leave = cuda_leave,
    .create = cuda_create,
    .destroy = cuda_destroy,
    .move = cuda_move,
    .move_peer = cuda_move_peer,
    .wait = cuda_wait,
    .record = cuda_record,
    .wait_asleep = cuda_wait_asleep,
    .allocate_and_free = cuda_allocate_and_free,
    .lock_and_unlock = cuda_lock_and_unlock,
    .list = cuda_list,
    .no_device = CUDA_ERROR_NO_DEVICE,
};
