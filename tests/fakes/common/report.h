/* tests/fakes/common/report.h: the counts of the fakes, for tests to read while the process runs and after it.
 *
 * With FAKE_CUDA_REPORT=/path (or FAKE_HIP_REPORT) each process keeps one of these in the file /path.<pid>, mapped, so
 * that it is always up to date. Without the variable the counts are lost. All fakes of a vendor write to the same file:
 * there the fakes for telemetry read how much device memory the process has taken.
 */
#ifndef FAKE_REPORT_H
#define FAKE_REPORT_H

#include <stdatomic.h>
#include <stdint.h>

enum {
    FAKE_REPORT_DEVICES = 16,
    FAKE_REPORT_SENTENCES = 32,
    FAKE_REPORT_FUNCTIONS = 256,
    FAKE_REPORT_LAUNCHES = 16,
    FAKE_REPORT_ARGUMENTS = 6,
    FAKE_REPORT_MAGIC = 0x46414b45
};

/* A launch as the driver got it. For kernels that the fake does not know the arguments are unknown too. */
typedef struct fake_launch {
    char name[32];
    uint32_t groups[3], group_size[3], shared_bytes;
    uint32_t argument_count;
    uint64_t arguments[FAKE_REPORT_ARGUMENTS]; /* addresses, or the bytes of a value */
} fake_launch;

typedef struct fake_report {
    uint32_t magic;
    uint32_t contexts_created; /* primary contexts that came to life, and contexts of the program */
    uint32_t contexts_alive;
    uint32_t primary_retains; /* not yet released */
    uint32_t streams, events, modules;
    uint32_t allocations, host_allocations, registrations; /* alive, like all counts here */
    uint32_t physical, reservations, mappings, imports;    /* virtual memory, external memory */
    uint32_t left_behind;    /* objects left in ended contexts, except failed ones, which release nothing */
    uint32_t smi_references; /* of all libraries for telemetry */
    uint32_t violations;     /* broken rules: misuse that a correct program never commits */
    char fault[48];          /* the function that played the last fault */
    /* A test sets it in the process of this report: calls of this function do not return until it names another one, or
     * is NULL. */
    _Atomic(const char *) stop;
    _Atomic uint32_t stopped; /* calls that are stopped there */
    uint64_t device_bytes[FAKE_REPORT_DEVICES];
    uint32_t launches;                          /* so far */
    fake_launch launched[FAKE_REPORT_LAUNCHES]; /* the last ones: the n-th, from 0, is at n % FAKE_REPORT_LAUNCHES */
    char sentences[FAKE_REPORT_SENTENCES][160]; /* the last violations */
    struct {
        char name[48];
        uint64_t calls;
    } functions[FAKE_REPORT_FUNCTIONS];
} fake_report;

/* The report of this process. From any thread; writers need the lock of the library. */
fake_report *fake_report_get(void);

/* Counts a call. */
void fake_report_call(const char *function);
/* Does not return from a call that the test has stopped. Without the lock. */
void fake_report_stop(const char *function);

/* Records a broken rule; with `strict` in the script the process ends there. */
void fake_report_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
