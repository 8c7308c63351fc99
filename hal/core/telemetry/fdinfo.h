/* telemetry/fdinfo.h: per-client reports by the kernel's graphics drivers in /proc/PID/fdinfo/FD (the kernel's
 * drm-usage-stats.rst). A client is one opening of the device by a process. */
#ifndef GPUHAL_TELEMETRY_FDINFO_H
#define GPUHAL_TELEMETRY_FDINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GPUHAL_CLIENT_ENGINES = 10, GPUHAL_ENGINE_BYTES = 16, GPUHAL_CLIENT_PLACE_BYTES = 24 };

/* How long an engine worked for the client: nanoseconds or, with xe, cycles out of `passed` cycles. */
typedef struct gpuhal_engine {
    char name[GPUHAL_ENGINE_BYTES];
    uint64_t busy, passed; /* passed is 0 if busy is in nanoseconds */
    uint32_t capacity;     /* number of engines with this name */
} gpuhal_engine;

typedef struct gpuhal_client {
    char place[GPUHAL_CLIENT_PLACE_BYTES]; /* PCI address or, if there is none, the node's name, such as "renderD128" */
    uint64_t id;
    uint32_t pid; /* the lowest pid of the processes with this client */
    uint32_t engine_count;
    gpuhal_engine engines[GPUHAL_CLIENT_ENGINES];
    uint64_t memory, device_memory; /* resident bytes: total, and in the device's own memory */
    bool has_memory;
} gpuhal_client;

/* Parses a file's text. `node` is the path of the file that the descriptor refers to. Returns false if the file does
 * not describe a client. */
bool gpuhal_fdinfo_read(const char *text, const char *node, gpuhal_client *out_client);

#endif
