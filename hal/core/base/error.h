/* base/error.h: makes the per-thread error detail of gpuhal/error.h.
 *
 * One static block per thread without a destructor holds the texts, cut to fit. A function that fails calls one of
 * these and returns its result; a function that passes a failure on must not change the detail.
 */
#ifndef GPUHAL_BASE_ERROR_H
#define GPUHAL_BASE_ERROR_H

#include <gpuhal/error.h>

#include <stdbool.h>

/* Sets a new detail with this sentence and returns `status`. */
gpuhal_status gpuhal_error_set(gpuhal_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Reports that malloc failed. */
gpuhal_status gpuhal_error_host_memory(void);
/* Reports that an object belongs to the parent of this process. */
gpuhal_status gpuhal_error_forked(void);
/* Returns HOST_MEMORY after gpuhal_thread_start() returned `error`. */
gpuhal_status gpuhal_error_no_thread(int error);

/* Keeps a plugin's report from gpuhal_host.report() until gpuhal_error_from_plugin uses it. */
gpuhal_status gpuhal_error_report(gpuhal_status status, const char *vendor_call, int64_t vendor_code, const char *text);
/* Appends to the text of that report. */
void gpuhal_error_extend_report(const char *text);
/* Drops the report of an earlier call of a plugin; must precede a call that may fail without a report. */
void gpuhal_error_forget_report(void);
/* Resets the thread's detail to that of a thread without errors, and drops a kept report. */
void gpuhal_error_clear(void);
/* Returns whether the application's own work may fail with this status: not if the status has another meaning for
 * waits, or is not an error. */
bool gpuhal_error_is_cause(gpuhal_status status);
/* Turns the status that a plugin returned into a detail. The sentence is "<device or backend>: <what>: <status>:
 * <vendor text> (<vendor call and code>)". `what` is the action in words ("allocating 4096 bytes"); device may be NULL.
 * An invalid status becomes GPUHAL_ERROR_DRIVER. Returns the status. */
gpuhal_status gpuhal_error_from_plugin(gpuhal_status status, const char *backend, const char *device, const char *what);
/* Adds to the detail just set. */
void gpuhal_error_add_device(const char *backend, const char *device);
/* Adds a call of the system, or of another library, that returned `code`. */
void gpuhal_error_add_call(const char *call, int64_t code, const char *text);
void gpuhal_error_add_bytes(uint64_t asked, uint64_t free_bytes, uint64_t total);
/* Adds to an out-of-memory detail the number of bytes that are freed when queued work ends. */
void gpuhal_error_add_pending(uint64_t bytes);

/* Puts a vendor's code into words: "zeInit returned 2013265921, 0x78000001"; "code 719" if `call` is "", the call alone
 * if the code is 0. */
void gpuhal_error_code_words(const char *call, int64_t code, char *out_words, size_t size);
/* Adds the free bytes that the driver states, for the report that may follow. */
void gpuhal_error_add_driver_free(uint64_t bytes);
/* Adds the report on a failed allocation. Adds to the sentence the report's figures about stores and callbacks, and why
 * stores cannot spill some bytes. Sets the report's size and fragmentation. */
void gpuhal_error_add_report(const gpuhal_memory_report *report, const char *why_unspillable);
/* Adds to the bytes that a rung gave. Callbacks may state any number: the sum ends at UINT64_MAX. */
static inline void gpuhal_report_add(gpuhal_memory_report *report, gpuhal_rung rung, uint64_t bytes)
{
    uint64_t *sum = &report->rungs[rung].bytes;
    *sum = bytes < UINT64_MAX - *sum ? *sum + bytes : UINT64_MAX;
}
/* Counts a try in a report, and the bytes that the try gave. */
static inline void gpuhal_report_count(gpuhal_memory_report *report, gpuhal_rung rung, uint64_t bytes)
{
    report->rungs[rung].tries++;
    gpuhal_report_add(report, rung, bytes);
}

/* A detail with its texts, and the kept report of a plugin. It serves to copy errors of a thread that works for another
 * thread to that thread. */
typedef struct gpuhal_error_detail {
    gpuhal_error error;
    char sentence[768], backend[32], device[48], vendor_call[64], vendor_text[512];
    gpuhal_status report_status; /* GPUHAL_OK: none */
    int64_t report_code;
    char report_call[64], report_text[512];
    gpuhal_memory_report memory; /* size 0: no report, but it may have the driver's figure */
} gpuhal_error_detail;
/* Copies this thread's last detail. */
void gpuhal_error_save(gpuhal_error_detail *out_detail);
/* Makes the copy this thread's last detail, and returns its status. */
gpuhal_status gpuhal_error_restore(const gpuhal_error_detail *detail);

#endif
