/* area.h: device memory together with its expected contents.
 *
 * An area stores the expected value of each byte. A check changes some bytes through a slot of the plugin, records the
 * change with gpuhal_area_changed(), and compares all bytes with gpuhal_area_verify(). Bytes outside the requested
 * range serve as guards. An area is used by one thread at a time.
 */
#ifndef GPUHAL_CHECK_AREA_H
#define GPUHAL_CHECK_AREA_H

#include "check.h"
#include "pattern.h"

/* How bytes are written to memory and read back. The slots under test must not check themselves. */
typedef enum gpuhal_route {
    ROUTE_ANY,
    /* For memory without a host address: through staging memory and the slot copy, unless only write or read is
     * possible. */
    ROUTE_NO_WRITE_READ,
} gpuhal_route;

typedef struct gpuhal_area {
    const gpuhal_context *context;
    const gpuhal_opened *opened;
    gpuhal_memory memory;
    uint64_t bytes;          /* number of bytes in use; a multiple of the copy alignment, at most memory.bytes */
    unsigned char *expected; /* the expected current contents */
    unsigned char *before;   /* the expected contents before the last change */
    unsigned char *actual;   /* buffer for the actual contents */
    bool lent;               /* the area must not release the memory */
} gpuhal_area;

/* The size of the areas that most checks use; all offsets and sizes in the checks' tables fit. */
uint64_t gpuhal_area_usual(const gpuhal_context *context);

/* Allocates memory, or fails the check. */
void gpuhal_area_init(gpuhal_area *area, const gpuhal_context *context, const gpuhal_opened *opened,
                      gpuhal_memory_kind kind, uint64_t bytes);
/* Makes an area of existing memory, which must outlive the area. */
void gpuhal_area_lend(gpuhal_area *area, const gpuhal_context *context, const gpuhal_opened *opened,
                      const gpuhal_memory *memory, uint64_t bytes);
/* Fills the whole area with the pattern of @p seed. */
void gpuhal_area_reset(gpuhal_area *area, uint64_t seed, gpuhal_route route);
void gpuhal_area_finish(gpuhal_area *area);

/* Records that the area should contain these bytes at the offset from now on. */
void gpuhal_area_changed(gpuhal_area *area, uint64_t offset, const unsigned char *bytes, uint64_t count);
/* Compares all bytes. If some bytes are wrong, fails with "<what>: <fault>". @p claim provides the range and the
 * source; this function fills in the other members. */
void gpuhal_area_verify(gpuhal_area *area, gpuhal_claim claim, gpuhal_route route, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- basic steps; a step that returns no result fails the check if the plugin refuses it */

gpuhal_status gpuhal_plain_allocate(const gpuhal_opened *opened, gpuhal_memory_kind kind, uint64_t bytes,
                                    uint64_t alignment, gpuhal_memory *out_memory);
void gpuhal_plain_release(const gpuhal_opened *opened, gpuhal_memory *memory);
/* Return the kinds of memory that the device can export, as bits, and the first of them. */
uint32_t gpuhal_exportable(const gpuhal_context *context);
gpuhal_memory_kind gpuhal_exportable_first(const gpuhal_context *context);
/* Allocates memory that the device can export with such a handle. */
void gpuhal_plain_allocate_exported(const gpuhal_context *context, gpuhal_memory_kind memory, gpuhal_handle_kind handle,
                                    uint64_t bytes, gpuhal_alloc *out_alloc, gpuhal_memory *out_memory);
/* Like the core, moves host bytes to memory and back by any means that the device supports. Offsets and counts are
 * aligned. */
void gpuhal_plain_put(const gpuhal_opened *opened, const gpuhal_memory *memory, uint64_t offset,
                      const unsigned char *from, uint64_t bytes, gpuhal_route route);
void gpuhal_plain_get(const gpuhal_opened *opened, const gpuhal_memory *memory, uint64_t offset, unsigned char *to,
                      uint64_t bytes, gpuhal_route route);
/* Call only the slots; return false if they are missing or return NOT_SUPPORTED for this memory. Any other error fails
 * the check. */
bool gpuhal_plain_write(const gpuhal_opened *opened, const gpuhal_memory *memory, uint64_t offset,
                        const unsigned char *from, uint64_t bytes);
bool gpuhal_plain_read(const gpuhal_opened *opened, const gpuhal_memory *memory, uint64_t offset, unsigned char *to,
                       uint64_t bytes);
void gpuhal_plain_copy(const gpuhal_opened *opened, const gpuhal_memory *to, uint64_t to_offset,
                       const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes);
/* Call memory_flush and memory_invalidate, if the memory needs them. */
void gpuhal_host_wrote(const gpuhal_opened *opened, const gpuhal_memory *memory, uint64_t offset, uint64_t bytes);
void gpuhal_host_reads(const gpuhal_opened *opened, const gpuhal_memory *memory, uint64_t offset, uint64_t bytes);

/* Returns the required multiple of offsets and sizes. */
uint64_t gpuhal_copy_unit(const gpuhal_context *context);
uint64_t gpuhal_round_up(uint64_t value, uint64_t unit);
bool gpuhal_states_kind(const gpuhal_context *context, gpuhal_memory_kind kind);
const char *gpuhal_kind_name(gpuhal_memory_kind kind);

#endif
