/* baseline_hip.c: the functions of HIP, in the shape of baseline_stream.h. */
#include "../../plugins/rocm/hip_api.h"
#include "baseline_stream.h"

#define MEMBER(type, name, arguments)  type(*name) arguments;
#define SYMBOL(type, name, arguments)  {#name, &hip.name},
#define NOTHING(type, name, arguments) /* What only some versions have is not called here. */

static struct {
    GPUHAL_HIP_FUNCTIONS(MEMBER, NOTHING)
} hip;

static const gpuhal_bench_symbol symbols[] = {GPUHAL_HIP_FUNCTIONS(SYMBOL, NOTHING)};

static unsigned hip_enter(const gpuhal_native *device, int *out_before)
{
    const hipError_t code = hip.hipGetDevice(out_before);
    return code != hipSuccess ? code : hip.hipSetDevice((int)device->values[0]);
}

static void hip_leave(int before)
{
    hip.hipSetDevice(before);
}

static unsigned hip_create(void **out_stream, void **out_event)
{
    hipStream_t stream;
    hipEvent_t event;
    hipError_t code = hip.hipStreamCreateWithPriority(&stream, hipStreamNonBlocking, 0);
    if (code != hipSuccess) {
        return code;
    }
    code = hip.hipEventCreateWithFlags(&event, hipEventBlockingSync | hipEventDisableTiming);
    if (code != hipSuccess) {
        hip.hipStreamDestroy(stream);
        return code;
    }
    *out_stream = stream;
    *out_event = event;
    return hipSuccess;
}

static void hip_destroy(void *stream, void *event)
{
    hip.hipEventDestroy(event);
    hip.hipStreamDestroy(stream);
}

static unsigned hip_move(gpuhal_bench_direction direction, uint64_t to, uint64_t from, uint64_t bytes, void *stream)
{
    static const hipMemcpyKind kinds[] = {
        [GPUHAL_BENCH_TO_DEVICE] = hipMemcpyHostToDevice,
        [GPUHAL_BENCH_TO_HOST] = hipMemcpyDeviceToHost,
        [GPUHAL_BENCH_ON_DEVICE] = hipMemcpyDeviceToDevice,
    };
    return hip.hipMemcpyAsync((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes, kinds[direction], stream);
}

static unsigned hip_move_peer(const gpuhal_native *to_device, uint64_t to, const gpuhal_native *from_device, uint64_t from,
                              uint64_t bytes, void *stream)
{
    return hip.hipMemcpyPeerAsync((void *)(uintptr_t)to, (int)to_device->values[0], (const void *)(uintptr_t)from,
                                  (int)from_device->values[0], bytes, stream);
}

static unsigned hip_wait(void *stream)
{
    return hip.hipStreamSynchronize(stream);
}

static unsigned hip_record(void *event, void *stream)
{
    return hip.hipEventRecord(event, stream);
}

static unsigned hip_wait_asleep(void *event)
{
    return hip.hipEventSynchronize(event);
}

static unsigned hip_allocate_and_free(uint64_t bytes)
{
    void *address;
    const hipError_t code = hip.hipMalloc(&address, bytes);
    return code != hipSuccess ? code : hip.hipFree(address);
}

static unsigned hip_lock_and_unlock(void *memory, uint64_t bytes)
{
    const hipError_t code = hip.hipHostRegister(memory, bytes, hipHostRegisterPortable | hipHostRegisterMapped);
    return code != hipSuccess ? code : hip.hipHostUnregister(memory);
}

static hipError_t describe(int ordinal)
{
    hipDevice_t device;
    char text[256];
    size_t total;
    hipError_t code = hip.hipDeviceGet(&device, ordinal);
    code = code != hipSuccess ? code : hip.hipDeviceGetName(text, sizeof text, device);
    code = code != hipSuccess ? code : hip.hipDeviceTotalMem(&total, device);
    return code != hipSuccess ? code : hip.hipDeviceGetPCIBusId(text, sizeof text, device);
}

static unsigned hip_list(int *out_count)
{
    int version;
    hipError_t code = hip.hipInit(0);
    if (code == hipErrorInvalidDevice) {
        return hipErrorNoDevice; /* HIP 5 says it so. */
    }
    code = code != hipSuccess ? code : hip.hipRuntimeGetVersion(&version);
    code = code != hipSuccess ? code : hip.hipGetDeviceCount(out_count);
    for (int i = 0; code == hipSuccess && i < *out_count; i++) {
        code = describe(i);
    }
    return code;
}

const gpuhal_bench_stream_driver gpuhal_bench_hip_driver = {
    .name = "HIP",
    .symbols = symbols,
    .symbol_count = sizeof symbols / sizeof *symbols,
    .enter = hip_enter,
    .leave = hip_leave,
    .create = hip_create,
    .destroy = hip_destroy,
    .move = hip_move,
    .move_peer = hip_move_peer,
    .wait = hip_wait,
    .record = hip_record,
    .wait_asleep = hip_wait_asleep,
    .allocate_and_free = hip_allocate_and_free,
    .lock_and_unlock = hip_lock_and_unlock,
    .list = hip_list,
    .no_device = hipErrorNoDevice,
};
