/* program.c: see program.h. */
#include "program.h"

#include <gpuhal/error.h>

#include <stdlib.h>
#include <string.h>

#define OPENCL_C "opencl-c"
#define PTX      "ptx"

void gpuhal_formats_visit(const gpuhal_context *context, void (*visit)(void *user, const char *format), void *user)
{
    const gpuhal_listed_fact *fact = gpuhal_listed_find(context->listed, GPUHAL_FACT_PROGRAM_FORMATS);
    const char *text = fact != NULL && fact->kind == LISTED_TEXT && fact->text != NULL ? fact->text : "";
    for (text += strspn(text, " "); *text != '\0'; text += strspn(text, " ")) {
        char format[FORMAT_BYTES];
        const size_t length = strcspn(text, " ");
        if (length < sizeof format) {
            memcpy(format, text, length);
            format[length] = '\0';
            visit(user, format);
        }
        text += length;
    }
}

bool gpuhal_format_is_text(const char *format)
{
    return strcmp(format, OPENCL_C) == 0 || strcmp(format, PTX) == 0;
}

static void ignore_log(void *user, const char *text)
{
    (void)user, (void)text;
}

/* A plugin that reads behind the end is found by a sanitizer, and often by the rubbish there. */
gpuhal_status gpuhal_program_try(const gpuhal_opened *opened, const gpuhal_code *code, gpuhal_plugin_build *build,
                                 gpuhal_plugin_program **out_program)
{
    gpuhal_plugin_build plain = {.size = sizeof plain, .log = ignore_log};
    gpuhal_code exact = *code;
    void *copy = gpuhal_own(malloc(code->bytes > 0 ? (size_t)code->bytes : 1));
    memcpy(copy, code->code, (size_t)code->bytes);
    exact.code = copy;
    *out_program = NULL;
    gpuhal_step("the slot program_load");
    const gpuhal_status status =
        opened->slots.ops.program_load(opened->device, &exact, build != NULL ? build : &plain, out_program);
    free(copy);
    if (status == GPUHAL_OK && *out_program == NULL) {
        gpuhal_fail("program_load returned OK and no program");
    }
    return status;
}

static void expect_refused(const gpuhal_context *context, const char *format, const void *code, uint64_t bytes,
                           const char *what)
{
    const gpuhal_code rubbish = {.size = sizeof rubbish, .format = format, .code = code, .bytes = bytes};
    gpuhal_plugin_program *program = NULL;
    const gpuhal_status status = gpuhal_program_try(&context->opened, &rubbish, NULL, &program);
    if (status != GPUHAL_ERROR_INVALID_ARGUMENT && status != GPUHAL_ERROR_INCOMPATIBLE &&
        status != GPUHAL_ERROR_NOT_SUPPORTED) {
        gpuhal_fail_status(status,
                           "program_load returned %s for %s in the format %s; it has to be invalid argument, "
                           "incompatible, or not supported",
                           gpuhal_status_text(status), what, format);
    }
    if (program != NULL) {
        gpuhal_fail("program_load refused %s in the format %s, and gave a program", what, format);
    }
    gpuhal_direct_failed(context->plugin, status, "program_load");
    const gpuhal_error *error = gpuhal_last_error();
    if ((error->vendor_call == NULL || error->vendor_call[0] == '\0') &&
        (error->vendor_text == NULL || error->vendor_text[0] == '\0')) {
        gpuhal_fail("program_load refused %s in the format %s without host->report(): a user learns no reason", what,
                    format);
    }
}

/* How programs of a format begin; of others there is rubbish alone. */
static const char *beginning(const char *format)
{
    static const struct {
        const char *format, *text;
    } known[] = {{OPENCL_C, "__kernel void cut(__global int *to) { to[get_global_id(0)] ="},
                 {PTX, ".version 7.0\n.target sm_52\n.address_size 64\n.visible .entry cut("},
                 {"spirv", "\x03\x02\x23\x07"},
                 {"fatbin", "\x50\xed\x55\xba"},
                 {"hip-fatbin", "__CLANG_OFFLOAD_BUNDLE__"},
                 {"cubin", "\x7f"
                           "ELF\x02\x01\x01"},
                 {"hsaco", "\x7f"
                           "ELF\x02\x01\x01"},
                 {"host-library", "\x7f"
                                  "ELF\x02\x01\x01"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].format, format) == 0) {
            return known[i].text;
        }
    }
    return NULL;
}

void gpuhal_program_refused(const gpuhal_context *context, const char *format)
{
    unsigned char rubbish[4096];
    const char *begin = beginning(format);
    const off_t printed = gpuhal_printed();
    if (strcmp(format, "host-function") == 0) {
        return; /* addresses in this process: which of them are wrong does not show */
    }
    for (size_t i = 0; i < sizeof rubbish; i++) {
        rubbish[i] = (unsigned char)(0x80 | (i * 37 + i / 7));
    }
    expect_refused(context, format, rubbish, sizeof rubbish, "rubbish");
    expect_refused(context, format, rubbish, 1, "one byte");
    if (begin != NULL) {
        expect_refused(context, format, begin, strlen(begin), "the beginning of a program");
    }
    if (gpuhal_format_is_text(format)) {
        gpuhal_forget_printed(printed); /* PoCL: clang counts its errors on standard error, beside the log */
    }
}
