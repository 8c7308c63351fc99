/* stream/stream.h: what the sources in this folder and those of a plugin have of each other.
 *
 * CUDA and HIP are alike in most: a device, streams on which commands follow each other, events, addresses that host
 * and devices share. What both do in the same way is written here once, and built into the cuda and into the rocm
 * plugin, each time with the vendor's names from the plugin's stream_names.h. Contexts, queues, memory, discovery, the
 * driver and telemetry are where the vendors differ: each plugin has its own. Its device.h, which all files of the
 * plugin and all here include, ends with this one.
 *
 * "Inside the context" also stands for HIP's current device of the thread.
 */
#ifndef GPUHAL_STREAM_H
#define GPUHAL_STREAM_H

#define GPUHAL_HOST_PAGE 4096u /* page-locked memory begins at one */

/* One side of a copy: memory of the host, or an address of the device. */
typedef struct gpuhal_place {
    char *host; /* NULL: the address counts */
    uint64_t device;
} gpuhal_place;

static inline gpuhal_place gpuhal_place_in(const gpuhal_memory *memory, uint64_t offset)
{
    return memory->host ? (gpuhal_place){.host = (char *)memory->host + offset}
                        : (gpuhal_place){.device = memory->address + offset};
}

/* ---- of the plugin: calls.c. Inside the context; nothing is reported. */

/* Enqueues a copy. */
vendor_code GPUHAL_OWN(copy_bytes)(vendor_stream stream, const gpuhal_place *to, const gpuhal_place *from,
                                   uint64_t bytes);
/* The same where a side may be host memory, known by the address that the device has for it. */
vendor_code GPUHAL_OWN(copy_anywhere)(vendor_stream stream, uint64_t to, uint64_t from, uint64_t bytes);
/* The same between two devices. */
vendor_code GPUHAL_OWN(copy_between)(vendor_stream stream, uint64_t to, vendor_peer to_device, uint64_t from,
                                     vendor_peer from_device, uint64_t bytes);
/* Enqueues a copy of rows that lie evenly. */
vendor_code GPUHAL_OWN(copy_rows)(vendor_stream stream, const gpuhal_place *to, uint64_t to_pitch,
                                  const gpuhal_place *from, uint64_t from_pitch, uint64_t bytes, uint64_t rows);
/* Enqueues a fill; @p at and @p bytes are multiples of the pattern's size, which is 1, 2 or 4. */
vendor_code GPUHAL_OWN(fill_whole)(vendor_stream stream, uint64_t at, const unsigned char *pattern,
                                   uint32_t pattern_bytes, uint64_t bytes);
/* Whether any of these bytes are not page-locked, as far as the driver knows. */
bool GPUHAL_OWN(is_pageable)(const void *host, uint64_t bytes);
/* The version of CUDA or HIP; false when it is not known. */
bool GPUHAL_OWN(api_version)(char *out_text, size_t size);

/* ---- of the folder */

/* facts.c: a value of 0 is missing: the driver does not know it. */
void GPUHAL_OWN(tell_number)(const gpuhal_host *host, gpuhal_sink *sink, gpuhal_key key, uint64_t value);
void GPUHAL_OWN(tell_facts)(const gpuhal_host *host, gpuhal_sink *sink, const GPUHAL_OWN(entry) * entry);
/* transfer.c: whether the driver would wait for the work of a stream before it comes back from a copy in it. A side
 * that is host memory is its address, one that is the device's is NULL. */
bool GPUHAL_OWN(waits)(gpuhal_plugin_device *device, const void *to, const void *from, uint64_t bytes);
/* Fill their slots. */
void GPUHAL_OWN(describe_transfer)(gpuhal_ops *ops);
void GPUHAL_OWN(describe_rect)(gpuhal_ops *ops);
void GPUHAL_OWN(describe_peer)(gpuhal_ops *ops);

#endif
