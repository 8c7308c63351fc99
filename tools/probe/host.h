/* host.h: the machine that the program runs on. */
#ifndef PROBE_HOST_H
#define PROBE_HOST_H

/* Texts are "" where they are not known. */
typedef struct gpuhal_probe_host {
    char name[256];
    char os[256];     /* "Debian GNU/Linux 12 (bookworm)" */
    char kernel[256]; /* "Linux 6.1.0-18-amd64" */
} gpuhal_probe_host;

void gpuhal_probe_host_read(gpuhal_probe_host *out_host);

#endif
