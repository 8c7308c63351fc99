/* run.h: checks in child processes. The parent never loads the plugin: vendors' drivers cannot be used after a fork
 * once they were started, so every child starts them again. One child runs several checks, one after another, until one
 * fails. */
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

/* Returns whether lines about this job are about one device, whose index they carry (checks.c). */
bool gpuhal_job_has_device(const gpuhal_job *job);
/* Returns why "copy" or "copy@1" names no check; NULL: it does. */
const char *gpuhal_job_name_problem(const char *name);
/* Returns whether such a name, which has no problem, means this job. */
bool gpuhal_job_is(const gpuhal_job *job, const char *name);

typedef enum gpuhal_check_status { CHECK_PASSED, CHECK_FAILED, CHECK_SKIPPED } gpuhal_check_status;

typedef struct gpuhal_result {
    gpuhal_check_status status;
    uint64_t time_ns;    /* the time of the check, the preparation of the child included */
    unsigned rule;       /* the rule that a failure breaks; 0: not one of the guide */
    char hint[256];      /* the remedy of a failure; "": the hint of the rule */
    char sentence[1024]; /* the fault, or the reason for skipping */
    char notes[2048];    /* one a line */
    char printed[512];   /* the output of the plugin on both streams, as far as it fits */
    bool not_run;        /* skipped, since too many checks before it did not return in time */
} gpuhal_result;

/* A message of the child to the parent. Smaller than PIPE_BUF, so that each arrives whole. */
typedef struct gpuhal_record {
    enum { RECORD_BEGIN, RECORD_NOTE, RECORD_PLUGIN, RECORD_DEVICE, RECORD_RESULT } kind;
    gpuhal_check_status status;
    uint32_t index;
    unsigned rule;
    char hint[256];
    char text[1024];
} gpuhal_record;

#define DEVICES_MAX 256

/* The plugin's description of itself; "" and 0 if it could not be loaded. */
typedef struct gpuhal_self {
    char name[64], version[64];
    uint32_t abi;
} gpuhal_self;

typedef struct gpuhal_runner {
    const gpuhal_check_options *options;
    int output;                    /* file that stands for standard output and error of the children */
    off_t output_seen;             /* how much of it belongs to settled checks */
    _Atomic(const char *) *step;   /* shared with the child: the plugin's current step */
    unsigned hangs;                /* checks that ran past the deadline */
    char printed[512];             /* the first output in a check that passed, */
    const char *printed_in;        /* and that check; NULL: there was none */
    gpuhal_self self;              /* the report of the first check, and */
    uint32_t devices[DEVICES_MAX]; /* its list of devices */
    unsigned device_count;
} gpuhal_runner;

bool gpuhal_runner_init(gpuhal_runner *runner, const gpuhal_check_options *options);
/* Runs at least the first of @p jobs, and as many after it as one child can; passes each result to @p settled in turn.
 * @return how many are settled; 0 if no child could be made, or a signal ended the first of them */
unsigned gpuhal_runner_run(gpuhal_runner *runner, const gpuhal_job *jobs, unsigned count,
                           void (*settled)(void *user, const gpuhal_job *job, const gpuhal_result *result), void *user);

/* The work of one child. */
typedef struct gpuhal_batch {
    const gpuhal_runner *runner;
    const gpuhal_job *jobs;
    unsigned count;
} gpuhal_batch;

/* The child's side (child.c): runs the jobs of the batch @p user and reports through @p pipe. Never returns. */
_Noreturn void gpuhal_child_main(void *user, int pipe);

/* result.c, for child.c: sets the pipe for results and the shared step; begins a check; ends it after it has
 * returned. */
void gpuhal_result_open(int pipe, _Atomic(const char *) *step);
void gpuhal_result_begin(const gpuhal_check *check);
void gpuhal_result_end(void);
/* Both report to the parent; for the first check. */
void gpuhal_child_self(const gpuhal_plugin *plugin);
void gpuhal_child_device(uint32_t index);

#endif
