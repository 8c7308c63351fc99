/* base/error.c: see error.h. A plugin's report is used at most once, and only for its own status, so that an old report
 * cannot be attached to a new error. */
#include "base/error.h"

#include "base/call.h"
#include "base/records.h"
#include "os/os.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

_Thread_local gpuhal_thread_own gpuhal_own;
#define last gpuhal_own.error

/* Removes a truncated UTF-8 character at the end. */
static void drop_cut_character(char *text)
{
    size_t length = strlen(text), lead = length;
    while (lead > 0 && ((unsigned char)text[lead - 1] & 0xc0) == 0x80) {
        lead--;
    }
    if (lead == 0) {
        return;
    }
    unsigned char first = (unsigned char)text[lead - 1];
    size_t wanted = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
    if (length - (lead - 1) < wanted) {
        text[lead - 1] = 0;
    }
}

/* Copies a string, truncated at a character boundary. Replaces unsafe characters, because vendor messages and file
 * names may contain any bytes, and are shown on terminals, in logs and in JSON. */
static void put(char *to, size_t capacity, const char *from)
{
    size_t length = from ? strlen(from) : 0;
    bool cut = length >= capacity;
    length = cut ? capacity - 1 : length;
    if (length > 0) {
        memmove(to, from, length);
    }
    to[length] = 0;
    if (cut) {
        drop_cut_character(to);
    }
    gpuhal_records_clean(to);
}

static void point_inside(gpuhal_error_detail *detail)
{
    detail->error.sentence = detail->sentence;
    detail->error.backend = detail->backend;
    detail->error.device = detail->device;
    detail->error.vendor_call = detail->vendor_call;
    detail->error.vendor_text = detail->vendor_text;
}

/* Keeps the stored report, since the new detail may be made from it. */
static void begin(gpuhal_status status)
{
    last.error = (gpuhal_error){.size = sizeof last.error, .status = status};
    point_inside(&last);
    last.memory.size = 0;
    last.memory.driver_free_bytes = UINT64_MAX;
    last.sentence[0] = last.backend[0] = last.device[0] = last.vendor_call[0] = last.vendor_text[0] = 0;
}

gpuhal_status gpuhal_error_set(gpuhal_status status, const char *format, ...)
{
    /* Format into a separate buffer first, because an argument may be a string of the detail that is overwritten. */
    char sentence[sizeof last.sentence];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    drop_cut_character(sentence);
    begin(status);
    put(last.sentence, sizeof last.sentence, sentence);
    return status;
}

gpuhal_status gpuhal_error_host_memory(void)
{
    return gpuhal_error_set(GPUHAL_ERROR_HOST_MEMORY, "out of host memory for the library's own records");
}

gpuhal_status gpuhal_error_forked(void)
{
    return gpuhal_error_set(GPUHAL_ERROR_FORKED, "the object was made before this process was forked: open a gpuhal "
                                                 "object in this process, or fork before opening, or exec");
}

/* pthread_create() returns EAGAIN for each of its limits and for a stack that does not fit into the address space. */
gpuhal_status gpuhal_error_no_thread(int error)
{
    char limit[32] = "unlimited";
    const uint64_t most = gpuhal_os_thread_limit();
    if (most != UINT64_MAX) {
        snprintf(limit, sizeof limit, "%" PRIu64, most);
    }
    return gpuhal_error_set(
        GPUHAL_ERROR_HOST_MEMORY,
        "a thread could not be started: %s (threads of this user: %s by RLIMIT_NPROC; the control group's "
        "pids.max and the address space limit them too)",
        strerror(error), limit);
}

gpuhal_status gpuhal_error_report(gpuhal_status status, const char *vendor_call, int64_t vendor_code, const char *text)
{
    last.report_status = status;
    last.report_code = vendor_code;
    put(last.report_call, sizeof last.report_call, vendor_call);
    put(last.report_text, sizeof last.report_text, text);
    return status;
}

void gpuhal_error_extend_report(const char *text)
{
    const size_t used = strlen(last.report_text);
    snprintf(last.report_text + used, sizeof last.report_text - used, "%s%s", used > 0 ? "; " : "", text);
    drop_cut_character(last.report_text);
}

void gpuhal_error_forget_report(void)
{
    last.report_status = GPUHAL_OK;
}

bool gpuhal_error_is_cause(gpuhal_status status)
{
    return status < 0 && status >= GPUHAL_ERROR_INFEASIBLE && status != GPUHAL_ERROR_NOT_SUPPORTED &&
           status != GPUHAL_ERROR_TIMEOUT && status != GPUHAL_ERROR_BUSY;
}

void gpuhal_error_clear(void)
{
    gpuhal_error_forget_report();
    begin(GPUHAL_OK);
}

/* Vendor headers (Level Zero, HRESULT) define large and negative codes as hexadecimal numbers, so people search for the
 * codes in this form. */
void gpuhal_error_code_words(const char *call, int64_t code, char *out_words, size_t size)
{
    char number[48] = "";
    if (code < INT32_MIN || code > UINT32_MAX) {
        snprintf(number, sizeof number, "%" PRId64 ", 0x%" PRIx64, code, (uint64_t)code);
    } else if (code < 0 || code > 0xffff) {
        snprintf(number, sizeof number, "%" PRId64 ", 0x%" PRIx32, code, (uint32_t)code);
    } else if (code > 0) {
        snprintf(number, sizeof number, "%" PRId64, code);
    }
    if (*call && *number) {
        snprintf(out_words, size, "%s returned %s", call, number);
    } else {
        snprintf(out_words, size, "%s%s", *number ? "code " : call, number);
    }
}

/* Writes "opencl:1: allocating 64 bytes: out of memory: CL_OUT_OF_RESOURCES (clCreateBuffer returned -5,
 * 0xfffffffb)". */
static void describe_sentence(gpuhal_status status, const char *where, const char *what, int64_t code)
{
    char words[128];
    int used = snprintf(last.sentence, sizeof last.sentence, "%s: %s: %s", where, what, gpuhal_status_name(status));
    size_t at = used < 0 ? 0 : (size_t)used;
    if (at < sizeof last.sentence && last.vendor_text[0]) {
        used = snprintf(last.sentence + at, sizeof last.sentence - at, ": %s", last.vendor_text);
        at += used < 0 ? 0 : (size_t)used;
    }
    gpuhal_error_code_words(last.vendor_call, code, words, sizeof words);
    if (at < sizeof last.sentence && *words) {
        snprintf(last.sentence + at, sizeof last.sentence - at, " (%s)", words);
    }
    drop_cut_character(last.sentence);
}

gpuhal_status gpuhal_error_from_plugin(gpuhal_status status, const char *backend, const char *device, const char *what)
{
    gpuhal_status answer = status;
    int64_t code = 0; /* appended to the message */
    bool known = status < 0 && status >= GPUHAL_ERROR_DRIVER;
    if (!known) {
        answer = GPUHAL_ERROR_DRIVER;
    }
    begin(answer);
    put(last.backend, sizeof last.backend, backend);
    put(last.device, sizeof last.device, device);
    if (last.report_status == status && status != GPUHAL_OK) {
        last.error.vendor_code = code = last.report_code;
        put(last.vendor_call, sizeof last.vendor_call, last.report_call);
        put(last.vendor_text, sizeof last.vendor_text, last.report_text);
    } else if (!known) {
        last.error.vendor_code = status;
        snprintf(last.vendor_text, sizeof last.vendor_text, "the plugin returned %d, which is not a status",
                 (int)status);
    }
    last.report_status = GPUHAL_OK;
    describe_sentence(answer, device && *device ? device : backend ? backend : "plugin", what, code);
    return answer;
}

void gpuhal_error_add_device(const char *backend, const char *device)
{
    put(last.backend, sizeof last.backend, backend);
    put(last.device, sizeof last.device, device);
}

void gpuhal_error_add_call(const char *call, int64_t code, const char *text)
{
    last.error.vendor_code = code;
    put(last.vendor_call, sizeof last.vendor_call, call);
    put(last.vendor_text, sizeof last.vendor_text, text);
}

void gpuhal_error_add_bytes(uint64_t asked, uint64_t free_bytes, uint64_t total)
{
    last.error.bytes_asked = asked;
    last.error.bytes_free = free_bytes;
    last.error.bytes_total = total;
}

static void append_number(uint64_t number, const char *text)
{
    const size_t used = strlen(last.sentence);
    if (number > 0) {
        snprintf(last.sentence + used, sizeof last.sentence - used, "; %" PRIu64 " bytes %s", number, text);
        drop_cut_character(last.sentence);
    }
}

void gpuhal_error_add_pending(uint64_t bytes)
{
    last.error.bytes_pending = bytes;
    append_number(bytes, "are freed when queued work ends");
}

void gpuhal_error_add_driver_free(uint64_t bytes)
{
    last.memory.driver_free_bytes = bytes;
}

void gpuhal_error_add_report(const gpuhal_memory_report *report, const char *why_unspillable)
{
    char unspillable[256];
    gpuhal_memory_report *own = &last.memory;
    *own = *report;
    own->size = sizeof *own;
    /* Multiplying a large number by 1000 would overflow, so large numbers are scaled down. Their last digits do not
     * matter. */
    const uint64_t scale = own->free_bytes > UINT64_MAX / 1000 ? 1000 : 1, all = own->free_bytes / scale;
    own->fragmentation_permille = all ? (uint32_t)(1000 - own->largest_free_bytes / scale * 1000 / all) : 0;
    append_number(own->evictable_bytes, "of stores could be evicted");
    append_number(own->spillable_bytes, "of stores could be spilled");
    snprintf(unspillable, sizeof unspillable, "of stores cannot be spilled: %s", why_unspillable);
    append_number(own->unspillable_bytes, unspillable);
    append_number(own->pinned_bytes, "of stores are pinned");
    append_number(own->rungs[GPUHAL_RUNG_EVICT].bytes, "were evicted");
    append_number(own->rungs[GPUHAL_RUNG_SPILL].bytes, "were spilled");
    append_number(own->rungs[GPUHAL_RUNG_CALL].bytes, "were given by callbacks");
}

/* The pointers of a thread's detail are not set before its first use; gpuhal_last_error() sets them. The copy's
 * pointers must point into the copy. */
void gpuhal_error_save(gpuhal_error_detail *out_detail)
{
    (void)gpuhal_last_error();
    *out_detail = last;
    point_inside(out_detail);
}

gpuhal_status gpuhal_error_restore(const gpuhal_error_detail *detail)
{
    last = *detail;
    point_inside(&last);
    return last.error.status;
}

const gpuhal_error *gpuhal_last_error(void)
{
    if (!last.error.sentence) {
        begin(GPUHAL_OK);
    }
    return &last.error;
}

const gpuhal_memory_report *gpuhal_last_memory_report(void)
{
    return last.memory.size > 0 ? &last.memory : NULL;
}

const char *gpuhal_status_name(gpuhal_status status)
{
    switch (status) {
    case GPUHAL_OK:
        return "ok";
    case GPUHAL_NOT_READY:
        return "not ready";
    case GPUHAL_ERROR_INVALID_ARGUMENT:
        return "invalid argument";
    case GPUHAL_ERROR_OUT_OF_RANGE:
        return "out of range";
    case GPUHAL_ERROR_NOT_SUPPORTED:
        return "not supported";
    case GPUHAL_ERROR_OUT_OF_MEMORY:
        return "out of memory";
    case GPUHAL_ERROR_TOO_LARGE:
        return "too large";
    case GPUHAL_ERROR_TIMEOUT:
        return "timed out";
    case GPUHAL_ERROR_BUSY:
        return "busy";
    case GPUHAL_ERROR_DEVICE_LOST:
        return "device lost";
    case GPUHAL_ERROR_NO_DRIVER:
        return "no driver";
    case GPUHAL_ERROR_NO_DEVICE:
        return "no device";
    case GPUHAL_ERROR_NO_PERMISSION:
        return "no permission";
    case GPUHAL_ERROR_INCOMPATIBLE:
        return "incompatible";
    case GPUHAL_ERROR_FORKED:
        return "used after a fork";
    case GPUHAL_ERROR_NOT_FOUND:
        return "not found";
    case GPUHAL_ERROR_CANCELLED:
        return "cancelled";
    case GPUHAL_ERROR_HOST_MEMORY:
        return "out of host memory";
    case GPUHAL_ERROR_FILE:
        return "file error";
    case GPUHAL_ERROR_INFEASIBLE:
        return "infeasible";
    case GPUHAL_ERROR_DRIVER:
        return "driver error";
    default:
        return "unknown status";
    }
}
