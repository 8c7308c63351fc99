/* program/program.c: loads a program. Chooses the first alternative that the device accepts, and reports the reason for
 * each refusal. */
#include "program/program.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct attempt {
    gpuhal_device *device;
    const gpuhal_program_desc *desc;
    gpuhal_program *program;
    gpuhal_text log;
    gpuhal_text printed;         /* compiler output for the current alternative */
    gpuhal_text reasons;         /* for the error message */
    gpuhal_text foreign;         /* for the end of the message: alternatives in formats that the device does not
                                  * accept */
    gpuhal_error_detail failure; /* error of the failed alternative that came closest to loading */
    gpuhal_status status;        /* GPUHAL_OK if no alternative was tried yet */
} attempt;

const char *gpuhal_device_formats(const gpuhal_device *device)
{
    const char *formats = NULL;
    if (device) {
        formats = gpuhal_facts_text(&gpuhal_device_current(device)->facts, GPUHAL_FACT_PROGRAM_FORMATS);
    }
    return formats ? formats : "";
}

gpuhal_status gpuhal_program_failed(gpuhal_device *device, gpuhal_status status, const char *what)
{
    return gpuhal_device_failed(device, status, "%s", what);
}

/* ---- the caller's input */

static __attribute__((format(printf, 1, 2))) gpuhal_status bad_desc(const char *format, ...)
{
    char what[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_program_create: %s", what);
}

static gpuhal_code code_at(const gpuhal_program_desc *desc, uint32_t index)
{
    gpuhal_code code = {0};
    const uint32_t size = desc->codes->size;
    memcpy(&code, (const char *)desc->codes + (size_t)index * size, size < sizeof code ? size : sizeof code);
    return code;
}

static gpuhal_status check_code(const gpuhal_program_desc *desc, uint32_t i)
{
    const gpuhal_code code = code_at(desc, i);
    if (code.size != desc->codes->size) {
        return bad_desc("alternative %u: size is %u, and that of alternative 0 is %u", i, code.size, desc->codes->size);
    }
    if (code.flags != 0) {
        return bad_desc("alternative %u: flags is %#x, and must be 0", i, code.flags);
    }
    if (!code.format || !code.code) {
        return bad_desc("alternative %u: %s is NULL", i, code.format ? "code" : "format");
    }
    return code.bytes > 0 || strcmp(code.format, "host-library") == 0
               ? GPUHAL_OK
               : bad_desc("alternative %u (%s): bytes is 0, which is for the path of a host-library", i, code.format);
}

static gpuhal_status take_desc(const gpuhal_program_desc *given, gpuhal_program_desc *out)
{
    *out = (gpuhal_program_desc){0};
    if (given->size < offsetof(gpuhal_program_desc, reserved)) {
        return bad_desc("size is %u, and must be sizeof(gpuhal_program_desc), %zu", given->size, sizeof *given);
    }
    memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
    if (out->flags & ~(uint32_t)GPUHAL_PROGRAM_NO_CACHE) {
        return bad_desc("flags is %#x; the flag that there is: GPUHAL_PROGRAM_NO_CACHE, %#x", out->flags,
                        (unsigned)GPUHAL_PROGRAM_NO_CACHE);
    }
    if (out->reserved || !out->codes || out->code_count == 0) {
        return out->reserved ? bad_desc("reserved is %u, and must be 0", out->reserved)
                             : bad_desc("%s", out->codes ? "code_count is 0" : "codes is NULL");
    }
    if (out->codes->size < offsetof(gpuhal_code, options)) {
        return bad_desc("alternative 0: size is %u, and must be sizeof(gpuhal_code), %zu", out->codes->size,
                        sizeof *out->codes);
    }
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; i < out->code_count && !status; i++) {
        status = check_code(out, i);
    }
    return status;
}

/* ---- one alternative */

static void take_log(void *user, const char *text)
{
    attempt *own = user;
    if (own->desc->log && text && *text) {
        gpuhal_text_printf(&own->printed, "%s%s", text, text[strlen(text) - 1] == '\n' ? "" : "\n");
    }
}

/* Returns whether another alternative may load after this error. Returns false if, for example, memory is short or the
 * device is lost. */
static bool is_passed_over(gpuhal_status status)
{
    return status == GPUHAL_ERROR_NOT_SUPPORTED || status == GPUHAL_ERROR_INCOMPATIBLE ||
           status == GPUHAL_ERROR_INVALID_ARGUMENT || status == GPUHAL_ERROR_DRIVER || status == GPUHAL_ERROR_TOO_LARGE;
}

/* Returns how close an alternative came to loading. An error for code that targets this device is more informative than
 * an error for other code. */
static int nearness(gpuhal_status status)
{
    return status == GPUHAL_OK                    ? -1
           : status == GPUHAL_ERROR_NOT_SUPPORTED ? 0
           : status == GPUHAL_ERROR_INCOMPATIBLE  ? 1
                                                  : 2;
}

/* Logs the outcome of an alternative in one line, followed by the compiler's output and an empty line. */
static void log_outcome(attempt *own, uint32_t index, const char *format, const char *outcome, const char *why)
{
    gpuhal_text_printf(&own->log, "alternative %u (%s) %s%s\n", index, format, outcome, why);
    if (own->printed.length > 0) {
        gpuhal_text_printf(&own->log, "%s\n", gpuhal_text_get(&own->printed));
    }
    gpuhal_text_finish(&own->printed);
}

/* Returns the error message without the device and the action at its beginning. */
static const char *reason(void)
{
    const char *why = gpuhal_last_error()->sentence, *behind = strstr(why, "loading a program: ");
    return behind ? behind + sizeof "loading a program: " - 1 : why;
}

/* Returns whether the error message repeats the compiler's output, which follows directly in the log. */
static bool is_printed(const attempt *own)
{
    const char *printed = gpuhal_text_get(&own->printed);
    const size_t line = strcspn(printed, "\r\n\t");
    return line > 0 && strncmp(gpuhal_last_error()->vendor_text, printed, line < 64 ? line : 64) == 0;
}

/* Skips an alternative, and records this thread's last error as the reason. */
static void pass_over(attempt *own, uint32_t index, const char *format, gpuhal_status status)
{
    const char *why = reason();
    if (nearness(status) > nearness(own->status)) {
        own->status = status;
        gpuhal_error_save(&own->failure);
    }
    gpuhal_text_printf(&own->reasons, "%salternative %u (%s): %s", own->reasons.length ? "; " : "", index, format, why);
    log_outcome(own, index, format, "is skipped: ", is_printed(own) ? gpuhal_status_name(status) : why);
}

static gpuhal_status load(attempt *own, const gpuhal_code *code)
{
    gpuhal_device *device = own->device;
    gpuhal_program *program = own->program;
    gpuhal_plugin_build build = {.size = sizeof build, .user = own, .log = take_log};
    void *compiled = NULL;
    if (device->programs.program_compiled && !(own->desc->flags & GPUHAL_PROGRAM_NO_CACHE)) {
        gpuhal_program_key_make(device, code, &program->key);
        compiled = gpuhal_program_cache_get(device, &program->key, &build.compiled_bytes);
        build.compiled = compiled;
    }
    const gpuhal_call call = gpuhal_device_begin_compiling(device);
    gpuhal_status status = gpuhal_device_end_compiling(
        device, call, device->programs.program_load(device->handle, code, &build, &program->handle));
    program->cached = !status && compiled && build.used_compiled;
    program->kept_bytes = program->cached ? build.compiled_bytes : 0;
    free(compiled);
    if (status) {
        gpuhal_program_key_finish(&program->key);
        return gpuhal_program_failed(device, status, "loading a program");
    }
    return GPUHAL_OK;
}

/* Tries all alternatives in one format. Returns NOT_FOUND if the device accepts none of them. */
static gpuhal_status try_format(attempt *own, const char *format, size_t length)
{
    for (uint32_t i = 0; i < own->desc->code_count; i++) {
        const gpuhal_code code = code_at(own->desc, i);
        if (strncmp(code.format, format, length) != 0 || code.format[length]) {
            continue;
        }
        const gpuhal_status status = load(own, &code);
        if (status && is_passed_over(status)) {
            pass_over(own, i, code.format, status);
            continue;
        }
        if (!status) {
            own->program->choice = i;
            snprintf(own->program->format, sizeof own->program->format, "%s", code.format);
        }
        log_outcome(own, i, code.format, status ? "fails: " : "is taken",
                    status                 ? reason()
                    : own->program->cached ? ", as compiled in an earlier run"
                                           : "");
        return status;
    }
    return GPUHAL_ERROR_NOT_FOUND;
}

static bool has_format(const char *formats, const char *format)
{
    const size_t length = strlen(format);
    for (const char *at = formats; *at;) {
        const size_t word = strcspn(at, " ");
        if (word == length && memcmp(at, format, length) == 0) {
            return true;
        }
        at += word + strspn(at + word, " ");
    }
    return false;
}

static void name_unknown_formats(attempt *own, const char *formats)
{
    for (uint32_t i = 0; i < own->desc->code_count; i++) {
        const gpuhal_code code = code_at(own->desc, i);
        if (!has_format(formats, code.format)) {
            gpuhal_error_set(GPUHAL_ERROR_NOT_SUPPORTED, "%s takes %s", own->device->id, *formats ? formats : "none");
            own->status = GPUHAL_ERROR_NOT_SUPPORTED;
            gpuhal_error_save(&own->failure);
            log_outcome(own, i, code.format, "is skipped: ", gpuhal_last_error()->sentence);
            gpuhal_text_printf(&own->foreign, "%salternative %u (%s)", own->foreign.length ? ", " : "", i, code.format);
        }
    }
}

static gpuhal_status none_taken(attempt *own)
{
    const char *id = own->device->id;
    gpuhal_error_restore(&own->failure);
    gpuhal_error_detail detail;
    gpuhal_error_save(&detail);
    if (own->foreign.length > 0) {
        const char *formats = gpuhal_device_formats(own->device);
        gpuhal_text_printf(&own->reasons, "%sthe device takes %s, not %s", own->reasons.length ? "; " : "",
                           *formats ? formats : "none", gpuhal_text_get(&own->foreign));
    }
    gpuhal_error_set(own->status, "%s: loading a program: %s", id, gpuhal_text_get(&own->reasons));
    if (*detail.vendor_call || detail.error.vendor_code != 0) {
        gpuhal_error_add_call(detail.vendor_call, detail.error.vendor_code, detail.vendor_text);
    }
    gpuhal_error_add_device(own->device->candidate->name, id);
    return own->status;
}

/* Tries the formats in the device's order of preference, and the alternatives of each format in the caller's order. */
static gpuhal_status choose(attempt *own)
{
    const char *formats = gpuhal_device_formats(own->device);
    gpuhal_status status = GPUHAL_ERROR_NOT_FOUND;
    name_unknown_formats(own, formats);
    for (const char *at = formats; *at && status == GPUHAL_ERROR_NOT_FOUND;) {
        const size_t word = strcspn(at, " ");
        status = try_format(own, at, word);
        at += word + strspn(at + word, " ");
    }
    return status == GPUHAL_ERROR_NOT_FOUND ? none_taken(own) : status;
}

static gpuhal_status create(gpuhal_device *device, const gpuhal_program_desc *desc, gpuhal_program **out_program)
{
    attempt own = {.device = device, .desc = desc, .program = calloc(1, sizeof *own.program)};
    if (!own.program) {
        return gpuhal_error_host_memory();
    }
    own.program->device = device;
    atomic_init(&own.program->references, 1);
    gpuhal_mutex_init(&own.program->mutex);
    gpuhal_status status = choose(&own);
    if (!status) {
        atomic_fetch_add(&device->gpu->references, 1);
        status = gpuhal_program_cache_put(own.program);
        *out_program = status ? NULL : own.program;
        gpuhal_program_release(status ? own.program : NULL);
    } else {
        gpuhal_mutex_finish(&own.program->mutex);
        free(own.program);
    }
    if (desc->log) {
        gpuhal_error_detail detail;
        gpuhal_error_save(&detail);
        desc->log(desc->user, gpuhal_text_get(&own.log));
        gpuhal_error_restore(&detail);
    }
    gpuhal_text_finish(&own.log);
    gpuhal_text_finish(&own.reasons);
    gpuhal_text_finish(&own.foreign);
    return status;
}

gpuhal_status gpuhal_program_create(gpuhal_device *device, const gpuhal_program_desc *given,
                                    gpuhal_program **out_program)
{
    if (out_program) {
        *out_program = NULL;
    }
    if (!device || !given || !out_program) {
        return bad_desc("%s is NULL", !device ? "device" : !given ? "desc" : "out_program");
    }
    gpuhal_program_desc desc;
    gpuhal_status status = take_desc(given, &desc);
    status = status ? status : gpuhal_device_open(device);
    if (!status && !device->programs.program_load) {
        status = gpuhal_device_lacks(device, "programs");
    }
    return status ? status : create(device, &desc, out_program);
}

/* ---- references */

/* Relaxed, because the caller has a reference. */
gpuhal_program *gpuhal_program_retain(gpuhal_program *program)
{
    if (program) {
        atomic_fetch_add_explicit(&program->references, 1, memory_order_relaxed);
    }
    return program;
}

void gpuhal_program_release(gpuhal_program *program)
{
    if (!program || gpuhal_is_inherited(program->device->gpu) ||
        atomic_fetch_sub_explicit(&program->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    gpuhal_device *device = program->device;
    if (gpuhal_device_is_reachable(device)) {
        const gpuhal_call call = gpuhal_call_blocking(device, 0);
        device->programs.program_unload(program->handle);
        gpuhal_call_end(call);
    }
    gpuhal_program_key_finish(&program->key);
    gpuhal_mutex_finish(&program->mutex);
    free(program);
    gpuhal_unreference(device->gpu);
}

uint32_t gpuhal_program_choice(const gpuhal_program *program)
{
    return program ? program->choice : UINT32_MAX;
}

int32_t gpuhal_program_is_cached(const gpuhal_program *program)
{
    return program && atomic_load(&program->cached);
}
