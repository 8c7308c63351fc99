/* host.h: the machine that the program runs on, or the recorded machine in GPUHAL_SYSTEM_ROOT. */
#ifndef GPUHAL_TOOL_HOST_H
#define GPUHAL_TOOL_HOST_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Unknown strings are "". */
typedef struct gpuhal_tool_host {
    char name[256];
    char os[256];           /* "Debian GNU/Linux 12 (bookworm)" */
    char kernel[256];       /* "Linux 6.1.0-18-amd64" */
    char architecture[256]; /* "x86_64" */
    uint32_t processors;    /* online processors; 0 if unknown */
} gpuhal_tool_host;

/* Opens a regular file of the kernel or the system for reading. Returns NULL for any other file, because reading a pipe
 * or a device might block forever. */
FILE *gpuhal_tool_open_plain(const char *path);
void gpuhal_tool_host_read(gpuhal_tool_host *out_host);
/* Copies the user's name, or the number if the name is unknown. */
void gpuhal_tool_user_name(uint32_t number, char *out_name, size_t bytes);

#endif
