/* options.h: the command line of gpuhal-lease. */
#ifndef GPUHAL_LEASE_OPTIONS_H
#define GPUHAL_LEASE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* Exit codes of gpuhal-lease itself. If the command ran, gpuhal-lease returns the command's exit code. */
enum {
    LEASE_EXIT_DONE = 0,
    LEASE_EXIT_USAGE = 2,
    LEASE_EXIT_BUSY = 75, /* EX_TEMPFAIL of sysexits.h */
    LEASE_EXIT_TIMEOUT = 124,
    LEASE_EXIT_FAILED = 125,
    LEASE_EXIT_NOT_EXECUTABLE = 126,
    LEASE_EXIT_NOT_FOUND = 127,
    LEASE_EXIT_SIGNAL = 128 /* plus the signal's number */
};

typedef enum { LEASE_RUN = 1, LEASE_WAIT, LEASE_STATUS, LEASE_RELEASE } gpuhal_lease_action;

typedef struct gpuhal_lease_options {
    gpuhal_lease_action action; /* 0 if not given */
    const char *selector;       /* NULL for `count` of all GPUs */
    uint32_t count;
    uint32_t slots; /* GPUHAL_LEASE_ALL_SLOTS if other leases must not share the devices */
    bool share;
    uint64_t bytes;
    int32_t priority;
    uint64_t timeout_ns;  /* UINT64_MAX if none */
    uint64_t duration_ns; /* 0 if the lease does not expire */
    const char *label;    /* NULL for the command's name */
    bool json;
    uint64_t number; /* the lease to release; 0 if not given */
    bool force;
    char **command; /* ends with NULL; NULL if there is none */
} gpuhal_lease_options;

/* Returns GPUHAL_TOOL_GO_ON or the exit code. */
int gpuhal_lease_options_read(int argc, char **argv, gpuhal_lease_options *out_options);

#endif
