/* memory/loan.c: see loan.h. The list of a buffer only grows while the buffer lives, and its entries never change: no lock. Two
 * threads that ask at once may both import; the second one in gives its import back. */
#include "memory/loan.h"

#include "core/error.h"

#include <stdlib.h>

/* Smaller buffers are copied through staging sooner than imported. */
#define LEAST_BYTES (1u << 20)

/* What drivers of all systems lock memory by. Host memory is rounded outwards to whole pages, never further: a page of which the
 * buffer has a byte is mapped, the next one may not be. */
#define PAGE_BYTES 4096u

typedef struct gpuhal_loan {
    struct gpuhal_loan *next;
    gpuhal_device *device;
    gpuhal_memory memory;
    uint64_t begin;
    bool refused;
} gpuhal_loan;

static const gpuhal_loan *find(const gpuhal_buffer *buffer, const gpuhal_device *device)
{
    const gpuhal_loan *loan = atomic_load_explicit(&buffer->loans, memory_order_acquire);
    while (loan && loan->device != device) {
        loan = loan->next;
    }
    return loan;
}

bool gpuhal_loan_possible(const gpuhal_buffer *buffer, const gpuhal_device *device)
{
    uint64_t kinds = gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_IMPORT_KINDS, 0);
    if (buffer->bytes < LEAST_BYTES || !buffer->memory.host || !(kinds >> GPUHAL_HANDLE_HOST_POINTER & 1) ||
        gpuhal_import_unit(device) > PAGE_BYTES) {
        return false;
    }
    const gpuhal_loan *loan = find(buffer, device);
    return !loan || !loan->refused;
}

/* An entry in any case, or NULL without memory. */
static gpuhal_loan *ask(const gpuhal_buffer *buffer, gpuhal_device *device)
{
    gpuhal_loan *loan = calloc(1, sizeof *loan);
    if (!loan) {
        return NULL;
    }
    uintptr_t first = (uintptr_t)buffer->memory.host & ~(uintptr_t)(PAGE_BYTES - 1);
    loan->begin = (uintptr_t)buffer->memory.host - first;
    uint64_t bytes = (loan->begin + buffer->bytes + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
    const gpuhal_alloc alloc = {
        .size = sizeof alloc,
        .bytes = bytes,
        .import = {.size = sizeof alloc.import,
                   .kind = GPUHAL_HANDLE_HOST_POINTER,
                   .as.pointer = (char *)buffer->memory.host - loan->begin},
        .flags = gpuhal_buffer_import_flags(buffer),
    };
    loan->device = device;
    loan->memory.size = sizeof loan->memory;
    const gpuhal_call call = gpuhal_call_blocking(device, bytes);
    gpuhal_status status = gpuhal_device_result(device, call, device->ops.allocate(device->handle, &alloc, &loan->memory));
    if (!status && loan->memory.bytes < bytes) {
        gpuhal_memory_release(device, &loan->memory);
        status = GPUHAL_ERROR_DRIVER;
    }
    loan->refused = status != GPUHAL_OK;
    gpuhal_error_forget_report();
    return loan;
}

static void loan_destroy(gpuhal_loan *loan)
{
    if (!loan->refused) {
        gpuhal_memory_release(loan->device, &loan->memory);
    }
    free(loan);
}

const gpuhal_memory *gpuhal_loan_take(gpuhal_buffer *buffer, gpuhal_device *device, uint64_t *out_begin)
{
    /* Read before the list is searched: what another thread adds since then makes the exchange below fail. */
    gpuhal_loan *head = atomic_load_explicit(&buffer->loans, memory_order_acquire);
    const gpuhal_loan *found = find(buffer, device);
    gpuhal_loan *made = found ? NULL : ask(buffer, device);
    while (made && !found) {
        made->next = head;
        if (atomic_compare_exchange_weak_explicit(&buffer->loans, &head, made, memory_order_release, memory_order_acquire)) {
            found = made;
        } else if ((found = find(buffer, device))) {
            loan_destroy(made);
        }
    }
    if (!found || found->refused) {
        return NULL;
    }
    *out_begin = found->begin;
    return &found->memory;
}

void gpuhal_loans_return(gpuhal_buffer *buffer)
{
    gpuhal_loan *loan = atomic_load_explicit(&buffer->loans, memory_order_relaxed);
    while (loan) {
        gpuhal_loan *next = loan->next;
        loan_destroy(loan);
        loan = next;
    }
}
