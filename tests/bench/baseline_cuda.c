/* baseline_cuda.c: the CUDA driver's functions with the interface of baseline_stream.h. */
#include "../../plugins/cuda/cuda_api.h"
#include "baseline_stream.h"
#include "members.h"

#define MEMBER(name, arguments)  CUresult(*name) arguments;
#define SYMBOL(name, arguments)  {#name, &cuda.name},
#define NOTHING(name, arguments) /* Optional functions are not called here. */

static struct {
    GPUHAL_CUDA_FUNCTIONS(MEMBER, NOTHING)
} cuda;

static const gpuhal_bench_symbol symbols[] = {GPUHAL_CUDA_FUNCTIONS(SYMBOL, NOTHING)};

static unsigned enter(const gpuhal_native *device, int *out_before)
{
    *out_before = 0; /* CUDA keeps a stack of current contexts. */
    return cuda.cuCtxPushCurrent_v2((CUcontext)(uintptr_t)device->values[0]);
}

static void leave(int before)
{
    (void)before;
    CUcontext context;
    cuda.cuCtxPopCurrent_v2(&context);
}

static unsigned move(gpuhal_bench_direction direction, uint64_t to, uint64_t from, uint64_t bytes, void *stream)
{
    switch (direction) {
    case GPUHAL_BENCH_TO_DEVICE:
        return cuda.cuMemcpyHtoDAsync_v2(to, (const void *)(uintptr_t)from, (size_t)bytes, stream);
    case GPUHAL_BENCH_TO_HOST:
        return cuda.cuMemcpyDtoHAsync_v2((void *)(uintptr_t)to, from, (size_t)bytes, stream);
    default:
        return cuda.cuMemcpyDtoDAsync_v2(to, from, (size_t)bytes, stream);
    }
}

static unsigned move_peer(const gpuhal_native *to_device, uint64_t to, const gpuhal_native *from_device, uint64_t from,
                          uint64_t bytes, void *stream)
{
    return cuda.cuMemcpyPeerAsync(to, (CUcontext)(uintptr_t)to_device->values[0], from,
                                  (CUcontext)(uintptr_t)from_device->values[0], (size_t)bytes, stream);
}

static unsigned describe_uuid(int device)
{
    CUuuid uuid;
    return cuda.cuDeviceGetUuid(&uuid, device);
}

static unsigned initialize(void)
{
    return cuda.cuInit(0);
}

typedef CUstream vendor_stream;
typedef CUevent vendor_event;
typedef CUdeviceptr vendor_pointer;

#define VENDOR(name)               cuda.cu##name
#define VENDOR_NON_BLOCKING        CU_STREAM_NON_BLOCKING
#define VENDOR_SLEEPS              (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING)

/* CUDA's symbol or name, if it differs from HIP's. */
#define cuDeviceTotalMem cuDeviceTotalMem_v2
#define cuEventDestroy   cuEventDestroy_v2
#define cuGetDeviceCount cuDeviceGetCount
#define cuGetVersion     cuDriverGetVersion
#define cuMemAlloc       cuMemAlloc_v2
#define cuMemFree        cuMemFree_v2
#define cuStreamDestroy  cuStreamDestroy_v2

#include "baseline_calls.inc"

static const gpuhal_bench_stream_driver driver = STREAM_DRIVER("CUDA", CUDA_ERROR_NO_DEVICE);

gpuhal_bench_baseline *gpuhal_bench_cuda_create(void *library, const gpuhal_native *device)
{
    return gpuhal_bench_stream_create(&driver, library, device);
}

bool gpuhal_bench_cuda_list(void *library, uint32_t *out_count)
{
    return gpuhal_bench_stream_list(&driver, library, out_count);
}
