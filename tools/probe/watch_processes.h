/* watch_processes.h: which processes use the devices, for the live view. */
#ifndef PROBE_WATCH_PROCESSES_H
#define PROBE_WATCH_PROCESSES_H

#include "watch_frame.h"

#include <gpuhal/gpuhal.h>

enum { WATCH_USERS = 32, WATCH_USER_BYTES = 24 };

/* Names of users that were found already, since finding one may ask a server.
 * Zero-initialised is empty. */
typedef struct gpuhal_watch_users {
    struct {
        uint32_t number;
        char name[WATCH_USER_BYTES];
    } list[WATCH_USERS];
    uint32_t count;
} gpuhal_watch_users;

/* Appends the processes of one device to the frame. false without memory. */
bool gpuhal_watch_processes_add(gpuhal_watch_users *users, gpuhal_device *device, gpuhal_watch_frame *frame);

#endif
