/* base/error.h: sets the per-thread error detail of gpuhal/error.h.
 *
 * Each thread has one static block without a destructor; strings are truncated to fit. A failing function calls one of
 * these functions and returns its result. A function that propagates a failure must not change the detail.
 */
#ifndef GPUHAL_BASE_ERROR_H
#define GPUHAL_BASE_ERROR_H

#include <gpuhal/error.h>

#include <stdbool.h>

/* Sets a new detail with this message and returns `status`. */
gpuhal_status gpuhal_error_set(gpuhal_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Reports that malloc failed; returns HOST_MEMORY. */
gpuhal_status gpuhal_error_host_memory(void);
/* Reports that an object belongs to the parent process of a fork. */
gpuhal_status gpuhal_error_forked(void);
/* Reports that gpuhal_thread_start() returned `error`; returns HOST_MEMORY. */
gpuhal_status gpuhal_error_no_thread(int error);

/* Stores a plugin's report (gpuhal_host.report()) until gpuhal_error_from_plugin uses it. */
gpuhal_status gpuhal_error_report(gpuhal_status status, const char *vendor_call, int64_t vendor_code, const char *text);
void gpuhal_error_extend_report(const char *text);
/* Discards the report of an earlier plugin call. Must precede a call that may fail without a report. */
void gpuhal_error_forget_report(void);
/* Resets the thread's detail to "no error" and discards a stored report. */
void gpuhal_error_clear(void);
/* Returns whether application work may fail with this status; false for non-errors and for statuses with a
 * special meaning for waits. */
bool gpuhal_error_is_cause(gpuhal_status status);
/* Converts a status returned by a plugin to a detail with the message "<device or backend>: <what>: <status>: <vendor
 * text> (<vendor call and code>)". `what` describes the action ("allocating 4096 bytes"); device may be NULL. An
 * invalid status becomes GPUHAL_ERROR_DRIVER. Returns the status. */
gpuhal_status gpuhal_error_from_plugin(gpuhal_status status, const char *backend, const char *device, const char *what);
void gpuhal_error_add_device(const char *backend, const char *device);
void gpuhal_error_add_call(const char *call, int64_t code, const char *text);
void gpuhal_error_add_bytes(uint64_t asked, uint64_t free_bytes, uint64_t total);
/* Adds to an out-of-memory error the number of bytes that are freed when queued work completes. */
void gpuhal_error_add_pending(uint64_t bytes);

/* Formats a vendor's error code, such as "zeInit returned 2013265921, 0x78000001". Writes "code 719" if `call` is "",
 * and only the call if the code is 0. */
void gpuhal_error_code_words(const char *call, int64_t code, char *out_words, size_t size);
/* Adds the free bytes that the driver reports, for a memory report that may follow. */
void gpuhal_error_add_driver_free(uint64_t bytes);
/* Adds the report on a failed allocation. Appends to the message the report's figures about stores and callbacks, and
 * why stores cannot spill some bytes. Sets the report's size and fragmentation. */
void gpuhal_error_add_report(const gpuhal_memory_report *report, const char *why_unspillable);
/* The sum saturates at UINT64_MAX, because callbacks may report any number. */
static inline void gpuhal_report_add(gpuhal_memory_report *report, gpuhal_rung rung, uint64_t bytes)
{
    uint64_t *sum = &report->rungs[rung].bytes;
    *sum = bytes < UINT64_MAX - *sum ? *sum + bytes : UINT64_MAX;
}
static inline void gpuhal_report_count(gpuhal_memory_report *report, gpuhal_rung rung, uint64_t bytes)
{
    report->rungs[rung].tries++;
    gpuhal_report_add(report, rung, bytes);
}

/* A detail with its strings, and the stored plugin report. Copies keep an error across calls, or pass it from a
 * worker thread to the requesting thread. */
typedef struct gpuhal_error_detail {
    gpuhal_error error;
    char sentence[768], backend[32], device[48], vendor_call[64], vendor_text[512];
    gpuhal_status report_status; /* GPUHAL_OK if there is no report */
    int64_t report_code;
    char report_call[64], report_text[512];
    gpuhal_memory_report memory; /* `size` is 0 if there is no report; driver_free_bytes may be set even then */
} gpuhal_error_detail;
void gpuhal_error_save(gpuhal_error_detail *out_detail);
/* Makes the copy this thread's last detail and returns its status. */
gpuhal_status gpuhal_error_restore(const gpuhal_error_detail *detail);

#endif
