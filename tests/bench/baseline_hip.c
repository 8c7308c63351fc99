/* baseline_hip.c: HIP's functions with the interface of baseline_stream.h. */
#include "../../plugins/rocm/hip_api.h"
#include "baseline_stream.h"
#include "members.h"

#define MEMBER(type, name, arguments)  type(*name) arguments;
#define SYMBOL(type, name, arguments)  {#name, &hip.name},
#define NOTHING(type, name, arguments) /* Optional functions are not called here. */

static struct {
    GPUHAL_HIP_FUNCTIONS(MEMBER, NOTHING)
} hip;

static const gpuhal_bench_symbol symbols[] = {GPUHAL_HIP_FUNCTIONS(SYMBOL, NOTHING)};

static unsigned enter(const gpuhal_native *device, int *out_before)
{
    const hipError_t code = hip.hipGetDevice(out_before);
    return code != hipSuccess ? code : hip.hipSetDevice((int)device->values[0]);
}

static void leave(int before)
{
    hip.hipSetDevice(before);
}

static unsigned move(gpuhal_bench_direction direction, uint64_t to, uint64_t from, uint64_t bytes, void *stream)
{
    static const hipMemcpyKind kinds[] = {
        [GPUHAL_BENCH_TO_DEVICE] = hipMemcpyHostToDevice,
        [GPUHAL_BENCH_TO_HOST] = hipMemcpyDeviceToHost,
        [GPUHAL_BENCH_ON_DEVICE] = hipMemcpyDeviceToDevice,
    };
    return hip.hipMemcpyAsync((void *)(uintptr_t)to, (const void *)(uintptr_t)from, (size_t)bytes, kinds[direction],
                              stream);
}

static unsigned move_peer(const gpuhal_native *to_device, uint64_t to, const gpuhal_native *from_device, uint64_t from,
                          uint64_t bytes, void *stream)
{
    return hip.hipMemcpyPeerAsync((void *)(uintptr_t)to, (int)to_device->values[0], (const void *)(uintptr_t)from,
                                  (int)from_device->values[0], (size_t)bytes, stream);
}

/* UUIDs are not available in every version of HIP. */
static unsigned describe_uuid(int device)
{
    (void)device;
    return hipSuccess;
}

/* HIP 5 returns another code for "no device". */
static unsigned initialize(void)
{
    const hipError_t code = hip.hipInit(0);
    return code == hipErrorInvalidDevice ? hipErrorNoDevice : code;
}

typedef hipStream_t vendor_stream;
typedef hipEvent_t vendor_event;
typedef void *vendor_pointer;

#define VENDOR(name)               hip.hip##name
#define VENDOR_NON_BLOCKING        hipStreamNonBlocking
#define VENDOR_SLEEPS              (hipEventBlockingSync | hipEventDisableTiming)

/* HIP's name if it differs from CUDA's. */
#define hipEventCreate hipEventCreateWithFlags
#define hipGetVersion  hipRuntimeGetVersion
#define hipMemAlloc    hipMalloc
#define hipMemFree     hipFree

#include "baseline_calls.inc"

static const gpuhal_bench_stream_driver driver = STREAM_DRIVER("HIP", hipErrorNoDevice);

gpuhal_bench_baseline *gpuhal_bench_hip_create(void *library, const gpuhal_native *device)
{
    return gpuhal_bench_stream_create(&driver, library, device);
}

bool gpuhal_bench_hip_list(void *library, uint32_t *out_count)
{
    return gpuhal_bench_stream_list(&driver, library, out_count);
}
