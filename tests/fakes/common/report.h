/* tests/fakes/common/report.h: the fakes' counters, which tests read during and after the process.
 *
 * With FAKE_CUDA_REPORT=/path (or FAKE_HIP_REPORT) each process maps its counters from the file /path.<pid>, so the
 * file is always up to date. Without the variable the counters are lost when the process exits. All fakes of a vendor
 * use the same file. The telemetry fakes read the process's device memory use from it. */
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

/* A launch as the driver received it. Arguments are recorded only for kernels that the fake knows. */
typedef struct fake_launch {
    char name[32];
    uint32_t groups[3], group_size[3], shared_bytes;
    uint32_t argument_count;
    uint64_t arguments[FAKE_REPORT_ARGUMENTS]; /* addresses, or the bytes of a value */
} fake_launch;

typedef struct fake_report {
    uint32_t magic;
    uint32_t contexts_created; /* number of created primary contexts, and of contexts that the program created */
    uint32_t contexts_alive;
    uint32_t primary_retains; /* retains without a release */
    uint32_t streams, events, modules;
    uint32_t graphs;                                       /* and executable graphs */
    uint32_t allocations, host_allocations, registrations; /* existing now, as all from `streams` to `imports` */
    uint32_t physical, reservations, mappings, imports;    /* virtual memory, external memory */
    /* streams, events and memory that still existed when their context was destroyed; not counted for failed contexts,
     * whose objects CUDA does not release */
    uint32_t left_behind;
    uint32_t smi_references; /* NVML: current references; AMD: initializations of both libraries */
    uint32_t violations;     /* broken rules: calls that a correct program never makes */
    char fault[48];          /* CUDA or HIP function with the last executed fault, except crashes */
    /* Set by a test in this process. Calls of the named function do not return until the test sets another name or
     * NULL. */
    _Atomic(const char *) stop;
    _Atomic uint32_t stopped; /* number of calls that are stopped now */
    uint64_t device_bytes[FAKE_REPORT_DEVICES];
    uint32_t launches; /* total number */
    /* the most recent launches; launch n, counted from 0, is at n % FAKE_REPORT_LAUNCHES */
    fake_launch launched[FAKE_REPORT_LAUNCHES];
    char sentences[FAKE_REPORT_SENTENCES][160]; /* the most recent violations */
    struct {
        char name[48];
        uint64_t calls;
    } functions[FAKE_REPORT_FUNCTIONS];
} fake_report;

/* Returns this process's report. May be called on any thread; writers need the library's lock. */
fake_report *fake_report_get(void);

void fake_report_call(const char *function);
/* Waits while the test has stopped this function. Must be called without the lock. */
void fake_report_stop(const char *function);

/* Records a broken rule. If the script contains `strict 1`, ends the process. */
void fake_report_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
