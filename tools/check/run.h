/* run.h: runs checks in child processes. The parent never loads the plugin: after a fork, vendors' drivers that were
 * started before the fork do not work, so every child starts them again. One child runs several checks, one after
 * another, until a check fails. */
#ifndef GPUHAL_CHECK_RUN_H
#define GPUHAL_CHECK_RUN_H

#include "../common/subprocess.h"
#include "check.h"

#include <stdatomic.h>
#include <sys/types.h>

/* One check on one device. */
typedef struct gpuhal_job {
    const gpuhal_check *check;
    uint32_t index;
} gpuhal_job;

/* Returns whether output lines about this job carry a device index (checks.c). */
bool gpuhal_job_has_device(const gpuhal_job *job);
/* Returns why a name such as "copy" or "copy@1" is not the name of a check; NULL if it is valid. */
const char *gpuhal_job_name_problem(const char *name);
/* Returns whether a valid name refers to this job. */
bool gpuhal_job_is(const gpuhal_job *job, const char *name);

typedef enum gpuhal_check_status { CHECK_PASSED, CHECK_FAILED, CHECK_SKIPPED } gpuhal_check_status;

typedef struct gpuhal_result {
    gpuhal_check_status status;
    uint64_t time_ns;    /* the check's duration, including the child's preparation */
    unsigned rule;       /* the broken rule of the guide, or 0 */
    char hint[256];      /* the remedy; "" to use the rule's hint */
    char sentence[1024]; /* the fault, or the reason for skipping */
    char notes[2048];    /* one per line */
    char printed[512];   /* the plugin's output on both streams, as much as fits */
    bool not_run;        /* skipped because too many earlier checks had timed out */
} gpuhal_result;

/* A message from the child to the parent. Smaller than PIPE_BUF, so writes are atomic. */
typedef struct gpuhal_record {
    enum { RECORD_BEGIN, RECORD_NOTE, RECORD_PLUGIN, RECORD_DEVICE, RECORD_RESULT } kind;
    gpuhal_check_status status;
    uint32_t index;
    unsigned rule;
    char hint[256];
    char text[1024];
} gpuhal_record;

#define DEVICES_MAX 256

/* The plugin's description of itself; "" and 0 if the plugin could not be loaded. */
typedef struct gpuhal_self {
    char name[64], version[64];
    uint32_t abi;
} gpuhal_self;

typedef struct gpuhal_runner {
    const gpuhal_check_options *options;
    int output;                    /* file that receives the children's standard output and error */
    off_t output_seen;             /* how many bytes of the file belong to completed checks */
    _Atomic(const char *) *step;   /* shared with the child: the plugin's current step */
    unsigned hangs;                /* checks that timed out */
    char printed[512];             /* the first output in a check that reported a result */
    const char *printed_in;        /* the name of that check, or NULL */
    gpuhal_self self;              /* from the first check's report */
    uint32_t devices[DEVICES_MAX]; /* from the first check's device list */
    unsigned device_count;
} gpuhal_runner;

bool gpuhal_runner_init(gpuhal_runner *runner, const gpuhal_check_options *options);
/* Runs the first of @p jobs, and as many of the following jobs as one child can run. Passes each result to @p settled
 * in turn. Returns the number of results; 0 if no child could be created, or if a signal ended the first job. */
unsigned gpuhal_runner_run(gpuhal_runner *runner, const gpuhal_job *jobs, unsigned count,
                           void (*settled)(void *user, const gpuhal_job *job, const gpuhal_result *result), void *user);

typedef struct gpuhal_batch {
    const gpuhal_runner *runner;
    const gpuhal_job *jobs;
    unsigned count;
} gpuhal_batch;

/* The child process (child.c): runs the jobs of the batch @p user and reports through @p pipe. Never returns. */
_Noreturn void gpuhal_child_main(void *user, int pipe);

/* Functions of result.c for child.c. They set the pipe for results and the shared step, begin a check, and end a check
 * that has returned. */
void gpuhal_result_open(int pipe, _Atomic(const char *) *step);
void gpuhal_result_begin(const gpuhal_check *check);
void gpuhal_result_end(void);
/* These functions report to the parent, for the first check. */
void gpuhal_child_self(const gpuhal_plugin *plugin);
void gpuhal_child_device(uint32_t index);

#endif
