/* telemetry/fdinfo.h: the reports of the kernel's graphics drivers on one client, a process that has a device open, in
 * /proc/PID/fdinfo/FD (the kernel's drm-usage-stats.rst). */
#ifndef GPUHAL_TELEMETRY_FDINFO_H
#define GPUHAL_TELEMETRY_FDINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GPUHAL_CLIENT_ENGINES = 10, GPUHAL_ENGINE_BYTES = 16, GPUHAL_CLIENT_PLACE_BYTES = 24 };

/* How long an engine worked for the client: in nanoseconds, or (xe) in cycles, of `passed` ones. */
typedef struct gpuhal_engine {
    char name[GPUHAL_ENGINE_BYTES];
    uint64_t busy, passed; /* passed: 0 if busy is in nanoseconds */
    uint32_t capacity;     /* engines of this name */
} gpuhal_engine;

typedef struct gpuhal_client {
    char place[GPUHAL_CLIENT_PLACE_BYTES]; /* PCI address; without one, the node's name: "renderD128" */
    uint64_t id;
    uint32_t pid; /* of the first process seen with it */
    uint32_t engine_count;
    gpuhal_engine engines[GPUHAL_CLIENT_ENGINES];
    uint64_t memory, device_memory; /* resident: in all, and in the device's own memory */
    bool has_memory;
} gpuhal_client;

/* Reads the text of a file; `node` is the path that the descriptor is open on. Returns false if it is no client's. */
bool gpuhal_fdinfo_read(const char *text, const char *node, gpuhal_client *out_client);

#endif
