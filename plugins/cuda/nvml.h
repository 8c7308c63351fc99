/* cuda/nvml.h: NVML, which reports values of devices that need not be open. Everything else works without NVML.
 *
 * NVML calls have been seen to hang forever when a GPU has fallen off the bus. The core abandons a thread that hangs in
 * sample(), processes() or link(), so only these functions call NVML directly (../stream/management.c). Discovery calls
 * NVML on a separate thread that can be abandoned (nvml_patience.c).
 */
#ifndef GPUHAL_CUDA_NVML_H
#define GPUHAL_CUDA_NVML_H

#include "device.h"
#include "nvml_api.h"

#define GPUHAL_CUDA_NVML_MEMBER(name, arguments) nvmlReturn_t(*name) arguments;
typedef struct gpuhal_cuda_nvml_functions {
    GPUHAL_NVML_FUNCTIONS(GPUHAL_CUDA_NVML_MEMBER, GPUHAL_CUDA_NVML_MEMBER)
} gpuhal_cuda_nvml_functions;
#undef GPUHAL_CUDA_NVML_MEMBER

extern gpuhal_cuda_nvml_functions gpuhal_cuda_nvml;

void gpuhal_cuda_nvml_open(const gpuhal_host *host);

/* Waits for this thread's turn, initialises NVML and runs work(request). If the work reports that NVML is not
 * initialised, because the application has shut it down too often, initialises NVML and runs the work a second time. A
 * reason other than 0 means that the work did not complete. */
gpuhal_stream_why gpuhal_cuda_nvml_run(nvmlReturn_t (*work)(void *request), void *request);

/* Inside gpuhal_cuda_nvml_run(): returns a number that changes after NVML has been shut down. A shutdown invalidates
 * earlier handles. */
uint64_t gpuhal_cuda_nvml_session(void);

/* nvml_patience.c: calls gpuhal_cuda_nvml_run() on another thread with a copy of the request, and waits two seconds at
 * most. The request has @p bytes and must not own memory. If the thread ends in time, copies the request back;
 * otherwise returns false. */
bool gpuhal_cuda_nvml_ask(nvmlReturn_t (*work)(void *request), void *request, size_t bytes);

/* Inside gpuhal_cuda_nvml_run(): finds the device by its UUID, otherwise by its PCI address, never by an index. For a
 * MIG device @p out_board is the whole GPU, because only the whole GPU has a temperature. For other devices both
 * handles are the same. */
nvmlReturn_t gpuhal_cuda_nvml_find(const gpuhal_cuda_entry *entry, nvmlDevice_t *out_device, nvmlDevice_t *out_board);

/* Inside gpuhal_cuda_nvml_run(): returns whether NVML reports that this GPU, or the whole GPU of this MIG device, is
 * lost. The loss of other GPUs does not count. */
bool gpuhal_cuda_nvml_is_lost(const gpuhal_cuda_entry *entry);

/* Codes that NVML does not define. They mean, in this order, that NVML's process entries are longer than ours, that
 * NVML's pids may belong to another namespace than this process, that no error has been reported so far, and that no
 * limit is set. */
#define GPUHAL_CUDA_NVML_OTHER_LAYOUT    0xfffffff0u
#define GPUHAL_CUDA_NVML_OTHER_NAMESPACE 0xfffffff1u
#define GPUHAL_CUDA_NVML_NO_EVENT        0xfffffff2u
#define GPUHAL_CUDA_NVML_NO_LIMIT        0xfffffff3u

gpuhal_stream_why gpuhal_cuda_nvml_why(nvmlReturn_t code);

/* nvml_values.c: the values that are read from NVML. */
typedef struct gpuhal_cuda_nvml_value {
    gpuhal_key key;
    /* Reads the value in the key's unit. */
    nvmlReturn_t (*read)(nvmlDevice_t device, uint64_t *out_value);
    bool of_board;        /* MIG devices do not have this value, so it is read from the whole GPU */
    bool is_slow;         /* reading takes 20 ms or keeps resources; read only if the caller names the key */
    uint64_t least, most; /* the plausible range; NVML has been seen to return other values with success */
} gpuhal_cuda_nvml_value;
#define GPUHAL_CUDA_NVML_VALUES 36u
extern const gpuhal_cuda_nvml_value gpuhal_cuda_nvml_values[GPUHAL_CUDA_NVML_VALUES];

/* nvml_processes.c: inside gpuhal_cuda_nvml_run(). Finds the device memory that this process uses through all APIs. */
nvmlReturn_t gpuhal_cuda_nvml_own_memory(nvmlDevice_t device, uint64_t *out_value);

/* nvml_links.c: inside gpuhal_cuda_nvml_run(). */
nvmlReturn_t gpuhal_cuda_nvml_links_up(nvmlDevice_t device, uint64_t *out_value);
nvmlReturn_t gpuhal_cuda_nvml_link_errors(nvmlDevice_t device, uint64_t *out_value);
nvmlReturn_t gpuhal_cuda_nvml_fabric(nvmlDevice_t device, uint64_t *out_value);

/* nvml_events.c: inside gpuhal_cuda_nvml_run(). Return the number of GPU errors that the driver has reported since the
 * first call, and the newest error's code (NO_EVENT before the first error). Between two calls of begin_events() both
 * values are from the same reading. */
void gpuhal_cuda_nvml_begin_events(void);
nvmlReturn_t gpuhal_cuda_nvml_events(nvmlDevice_t board, uint64_t *out_value);
nvmlReturn_t gpuhal_cuda_nvml_event_code(nvmlDevice_t board, uint64_t *out_value);

#endif
