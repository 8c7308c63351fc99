/* tests/fakes/common/report.h: the fakes' counters, which tests read during and after the process.
 *
 * With FAKE_CUDA_REPORT=/path (or FAKE_HIP_REPORT) each process maps its counters from the file /path.<pid>, so the
 * file is always up to date. Without the variable the counters end with the process. All fakes of a vendor use the
 * same file, from which the telemetry fakes read how much device memory the process uses. */
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

/* A launch as the driver received it. The fake records no arguments for kernels that it does not know. */
typedef struct fake_launch {
    char name[32];
    uint32_t groups[3], group_size[3], shared_bytes;
    uint32_t argument_count;
    uint64_t arguments[FAKE_REPORT_ARGUMENTS]; /* addresses, or the bytes of a value */
} fake_launch;

typedef struct fake_report {
    uint32_t magic;
    uint32_t contexts_created; /* primary contexts that were created, and contexts of the program */
    uint32_t contexts_alive;
    uint32_t primary_retains; /* not yet released */
    uint32_t streams, events, modules;
    uint32_t allocations, host_allocations, registrations; /* currently existing, like all counters here */
    uint32_t physical, reservations, mappings, imports;    /* virtual memory, external memory */
    /* objects that a destroyed context still had; failed contexts, which release nothing, do not count */
    uint32_t left_behind;
    uint32_t smi_references; /* of all telemetry libraries */
    uint32_t violations;     /* broken rules: misuse that a correct program never commits */
    char fault[48];          /* function with the last executed fault */
    /* Set by a test in this process: calls of this function do not return until the test sets another name or NULL. */
    _Atomic(const char *) stop;
    _Atomic uint32_t stopped; /* calls that are stopped now */
    uint64_t device_bytes[FAKE_REPORT_DEVICES];
    uint32_t launches; /* total number */
    /* the most recent ones; number n, from 0, is at n % FAKE_REPORT_LAUNCHES */
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
/* Does not return if the test has stopped this function. Must be called without the lock. */
void fake_report_stop(const char *function);

/* Records a broken rule; with `strict` in the script it ends the process. */
void fake_report_violation(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
