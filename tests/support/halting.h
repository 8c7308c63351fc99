/* tests/support/halting.h: a plugin over host memory with every slot that the core calls. A test can make the driver
 * stop in a slot.
 *
 * Two devices, halting:0 and halting:1, can access each other's memory. Work completes when it is enqueued. Events
 * complete when they are recorded, unless the test delays them. */
#ifndef GPUHAL_TEST_HALTING_H
#define GPUHAL_TEST_HALTING_H

#include <gpuhal/gpuhal.h>
#include <gpuhal/plugin.h>

#include <stdatomic.h>

typedef struct gpuhal_halting_state {
    _Atomic(const char *)
        slot; /* the slot that stops the driver, or NULL; "queued_…" is copy, write or launch with a queue,
               * "program_compiled_bytes" is program_compiled without a buffer */
    _Atomic(const char *) also; /* a second slot that stops the driver */
    _Atomic uint32_t stopped;   /* calls that are stopped now */
    _Atomic uint32_t openings;  /* devices that are open */
    _Atomic uint32_t events;    /* events that were created and not yet destroyed */
    _Atomic uint32_t answered;  /* number of event queries and waits */
    _Atomic uint32_t unrecorded, unrecorded_most; /* queued launches since an event was recorded; the maximum */
    uint32_t hidden;            /* device memory has no host address and must be mapped */
    uint32_t not_coherent;      /* host addresses need memory_flush() and memory_invalidate() */
    uint32_t honors_timeouts, no_native_lock, no_write, no_peers, fork_safe;
    _Atomic uint32_t samples;   /* samples taken */
    _Atomic uint32_t work_goes_on; /* events do not complete */
    _Atomic gpuhal_status record_says; /* result of event_record */
    _Atomic gpuhal_status query_says;  /* result of event_query for completed work */
    _Atomic gpuhal_status elapsed_says; /* result of elapsed */
    _Atomic int32_t native_locks;      /* number of locks that are held */
    _Atomic uint32_t queue_flags;      /* flags of the last queue that was created */
    _Atomic uint32_t fail_peer_copy; /* if not 0, peer_copy fails with DEVICE_LOST */
    uint32_t no_queued_launch;       /* launches with a queue are not supported, so the queue's worker makes them */
    _Atomic gpuhal_status launch_says; /* result of launches with a queue after `launch_room` more of them; OK for ever
                                        * if GPUHAL_OK */
    _Atomic uint32_t launch_room;
    _Atomic uint32_t launches;       /* launches that had an effect */
    gpuhal_status compiled_says;     /* result of program_compiled */
    uint32_t prepares;               /* the group of recordings is offered */
    _Atomic gpuhal_status prepare_says, run_says; /* results of recording_create and recording_run after `…_room` more
                                                   * of them; OK for ever if GPUHAL_OK */
    _Atomic uint32_t prepare_room, run_room;
    _Atomic gpuhal_status set_says;  /* result of recording_set, which then changes half of the steps */
    _Atomic uint32_t recordings;     /* recordings that were created and not yet destroyed */
    _Atomic uint32_t recording_runs, steps_set; /* runs that had an effect; steps that recording_set changed */
} gpuhal_halting_state;

extern gpuhal_halting_state gpuhal_halting;

const gpuhal_plugin *gpuhal_halting_query(uint32_t host_abi, const gpuhal_host *host);

/* If the test has stopped this slot, blocks until the test releases it. */
void gpuhal_halting_pass(const char *slot);
/* halting_range.c: the slots of virtual memory. */
void gpuhal_halting_describe_ranges(gpuhal_ops *ops);
/* halting_program.c: the slots of programs. */
void gpuhal_halting_describe_programs(gpuhal_ops *ops);
/* halting_recording.c: the slots of recordings. The other slots must be described. */
void gpuhal_halting_describe_recordings(gpuhal_ops *ops);

#endif
