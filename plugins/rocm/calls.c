/* rocm/calls.c: functions for plugins/stream whose HIP calls differ from CUDA's.
 *
 * The plugin passes the direction of a copy, so that HIP need not look up the addresses. HIP 6.1 rejects a copy that is
 * longer than the piece of physical memory at its start, even if more memory is mapped after this piece. HIP 6.2 does
 * the same for fills (hip_memory.cpp, ihipMemcpy_validate and ihipMemset_validate). Such copies and fills are repeated
 * piece by piece.
 */
#include "device.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Uses the default priority 0. HIP 7 sleeps for an event only if hipEventBlockingSync is its only flag; if
 * hipEventDisableTiming is also set, HIP spins. */
hipError_t gpuhal_rocm_create_stream(hipStream_t *out_stream, hipEvent_t *out_event, const char **out_call)
{
    *out_call = "hipStreamCreateWithPriority";
    hipError_t code = gpuhal_rocm_api.hipStreamCreateWithPriority(out_stream, hipStreamNonBlocking, 0);
    if (code != hipSuccess) {
        return code;
    }
    *out_call = "hipEventCreateWithFlags";
    code = gpuhal_rocm_api.hipEventCreateWithFlags(out_event, hipEventBlockingSync);
    if (code != hipSuccess) {
        gpuhal_rocm_ignore(gpuhal_rocm_api.hipStreamDestroy(*out_stream));
    }
    return code;
}

void gpuhal_rocm_destroy_stream(hipStream_t stream, hipEvent_t event)
{
    gpuhal_rocm_ignore(gpuhal_rocm_api.hipEventDestroy(event));
    gpuhal_rocm_ignore(gpuhal_rocm_api.hipStreamDestroy(stream));
}

/* ---- copies and fills piece by piece */

/* Returns how many of the bytes HIP accepts in one call at the address. Never returns 0, so that loops over pieces end.
 * If HIP does not know the address, returns all bytes, so that HIP's own error is reported. */
static uint64_t piece_of(uint64_t address, uint64_t bytes)
{
    uint64_t piece = 0;
    return gpuhal_rocm_is_known(address, &piece) && piece > 0 && piece < bytes ? piece : bytes;
}

static bool ended_with_a_piece(hipError_t code)
{
    const bool ended = code == hipErrorInvalidValue && gpuhal_rocm_runtime.ends_with_pieces;
    if (ended) {
        gpuhal_rocm_ignore(code);
    }
    return ended;
}

/* ---- copies */

/* A copy between two devices, or within one device in the direction `kind`. */
typedef struct move {
    void *to;
    const void *from;
    hipMemcpyKind kind;
    bool between;
    int to_device, from_device; /* device ordinals, valid if `between` is true */
} move;

static hipError_t copy_part(hipStream_t stream, const move *what, uint64_t offset, uint64_t bytes)
{
    char *to = (char *)what->to + offset;
    const char *from = (const char *)what->from + offset;
    const int to_device = what->to_device, from_device = what->from_device;
    return what->between ? gpuhal_rocm_api.hipMemcpyPeerAsync(to, to_device, from, from_device, (size_t)bytes, stream)
                         : gpuhal_rocm_api.hipMemcpyAsync(to, from, (size_t)bytes, what->kind, stream);
}

/* First tries one copy for all bytes. HIP before 6.2 may reject this copy before any effect, so the partial copies
 * start at offset 0. Each partial copy ends where a piece of either side ends. If a partial copy fails, the earlier
 * ones stay enqueued, and end() waits for them. */
static hipError_t copy_whole(hipStream_t stream, const move *what, uint64_t bytes)
{
    hipError_t code = copy_part(stream, what, 0, bytes);
    if (!ended_with_a_piece(code)) {
        return code;
    }
    code = hipSuccess;
    for (uint64_t done = 0; done < bytes && code == hipSuccess;) {
        const uint64_t there = piece_of((uintptr_t)what->to + done, bytes - done);
        const uint64_t piece = piece_of((uintptr_t)what->from + done, there);
        code = copy_part(stream, what, done, piece);
        done += piece;
    }
    return code;
}

static hipMemcpyKind direction(const gpuhal_stream_place *to, const gpuhal_stream_place *from)
{
    if (to->host) {
        return from->host ? hipMemcpyHostToHost : hipMemcpyDeviceToHost;
    }
    return from->host ? hipMemcpyHostToDevice : hipMemcpyDeviceToDevice;
}

static void *address_of(const gpuhal_stream_place *place)
{
    return place->host ? place->host : gpuhal_rocm_at(place->device);
}

const char *gpuhal_rocm_copy_call(const gpuhal_stream_place *to, const gpuhal_stream_place *from)
{
    (void)to, (void)from;
    return "hipMemcpyAsync";
}

hipError_t gpuhal_rocm_copy_anywhere(hipStream_t stream, uint64_t to, uint64_t from, uint64_t bytes)
{
    const move what = {.to = gpuhal_rocm_at(to), .from = gpuhal_rocm_at(from), .kind = hipMemcpyDefault};
    return copy_whole(stream, &what, bytes);
}

hipError_t gpuhal_rocm_copy_bytes(hipStream_t stream, const gpuhal_stream_place *to, const gpuhal_stream_place *from,
                                  uint64_t bytes)
{
    const move what = {.to = address_of(to), .from = address_of(from), .kind = direction(to, from)};
    return copy_whole(stream, &what, bytes);
}

hipError_t gpuhal_rocm_copy_between(hipStream_t stream, uint64_t to, int to_device, uint64_t from, int from_device,
                                    uint64_t bytes)
{
    const move what = {.to = gpuhal_rocm_at(to),
                       .from = gpuhal_rocm_at(from),
                       .between = true,
                       .to_device = to_device,
                       .from_device = from_device};
    return copy_whole(stream, &what, bytes);
}

hipError_t gpuhal_rocm_copy_rows(hipStream_t stream, const gpuhal_stream_place *to, uint64_t to_pitch,
                                 const gpuhal_stream_place *from, uint64_t from_pitch, uint64_t bytes, uint64_t rows)
{
    return gpuhal_rocm_api.hipMemcpy2DAsync(address_of(to), (size_t)to_pitch, address_of(from), (size_t)from_pitch,
                                            (size_t)bytes, (size_t)rows, direction(to, from), stream);
}

/* ---- fill */

static hipError_t fill_piece(hipStream_t stream, uint64_t at, const unsigned char *pattern, uint32_t pattern_bytes,
                             uint64_t bytes)
{
    uint32_t word;
    uint16_t half;
    switch (pattern_bytes) {
    case 4:
        memcpy(&word, pattern, sizeof word);
        return gpuhal_rocm_api.hipMemsetD32Async(gpuhal_rocm_at(at), (int)word, (size_t)(bytes / 4), stream);
    case 2:
        memcpy(&half, pattern, sizeof half);
        return gpuhal_rocm_api.hipMemsetD16Async(gpuhal_rocm_at(at), half, (size_t)(bytes / 2), stream);
    default:
        return gpuhal_rocm_api.hipMemsetD8Async(gpuhal_rocm_at(at), pattern[0], (size_t)bytes, stream);
    }
}

/* Pieces of physical memory end at page boundaries, and therefore at multiples of the pattern size. */
hipError_t gpuhal_rocm_fill_whole(hipStream_t stream, uint64_t at, const unsigned char *pattern,
                                  uint32_t pattern_bytes, uint64_t bytes)
{
    hipError_t code = fill_piece(stream, at, pattern, pattern_bytes, bytes);
    if (!ended_with_a_piece(code)) {
        return code;
    }
    code = hipSuccess;
    for (uint64_t done = 0; done < bytes && code == hipSuccess;) {
        const uint64_t piece = piece_of(at + done, bytes - done);
        code = fill_piece(stream, at + done, pattern, pattern_bytes, piece);
        done += piece;
    }
    return code;
}

/* ---- queries about memory and the version */

bool gpuhal_rocm_is_pageable(const void *host, uint64_t bytes)
{
    uint64_t known = 0;
    return !gpuhal_rocm_is_known((uintptr_t)host, &known) || known < bytes;
}

bool gpuhal_rocm_api_version(char *out_text, size_t size)
{
    const gpuhal_rocm_version *runtime = &gpuhal_rocm_runtime;
    snprintf(out_text, size, "%d.%d.%d", runtime->major, runtime->minor, runtime->patch);
    return runtime->whole != 0;
}

/* ---- addresses and handles */

/* HIP validates the alignment but does not apply it (in hip_vm.cpp, Device::virtualAlloc ignores it), so an aligned
 * range is taken from a larger reservation. */
hipError_t gpuhal_rocm_reserve(uint64_t bytes, uint64_t alignment, gpuhal_stream_reservation *out_reserved)
{
    const uint64_t whole = bytes + alignment;
    void *start = NULL;
    const hipError_t code = gpuhal_rocm_api.hipMemAddressReserve(&start, (size_t)whole, 0, NULL, 0);
    *out_reserved = (gpuhal_stream_reservation){.start = (uintptr_t)start,
                                                .whole_bytes = whole,
                                                .address = gpuhal_rocm_align_up((uintptr_t)start, alignment),
                                                .bytes = bytes};
    return code;
}

/* The range may be unmapped, because before HIP 7 hipMemMap always returns success, and its failure shows in
 * hipMemSetAccess. In HIP 6.1 to 6.3 hipMemUnmap of an unmapped range reads a null pointer (hip_vm.cpp), so first check
 * whether HIP knows a mapping. */
void gpuhal_rocm_unmap(uint64_t address, uint64_t bytes)
{
    uint64_t mapped;
    if (gpuhal_rocm_is_known(address, &mapped)) {
        gpuhal_rocm_ignore(gpuhal_rocm_api.hipMemUnmap(gpuhal_rocm_at(address), (size_t)bytes));
    }
}

/* If HIP accepts descriptors in place of pointers, it treats descriptor 0 as missing. HIP does not close
 * descriptors. */
hipError_t gpuhal_rocm_import_handle(int descriptor, hipMemGenericAllocationHandle_t *out_handle)
{
    const int duplicate = descriptor == 0 ? fcntl(descriptor, F_DUPFD_CLOEXEC, 3) : -1;
    int used = duplicate >= 0 ? duplicate : descriptor;
    void *handle = gpuhal_rocm_runtime.takes_descriptors ? gpuhal_rocm_at((uint64_t)used) : &used;
    const hipError_t code =
        gpuhal_rocm_api.hipMemImportFromShareableHandle(out_handle, handle, hipMemHandleTypePosixFileDescriptor);
    if (duplicate >= 0) {
        close(duplicate);
    }
    return code;
}
