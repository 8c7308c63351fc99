/* program.c: see program.h. */
#include "program.h"

#include "fence.h"

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

/* Makes a copy that ends at an inaccessible page, so that the child crashes if a plugin reads beyond the end. Zeros pad
 * the copy to a multiple of 16 bytes, so that its first byte is aligned like an allocation. */
static void *fence_code(const gpuhal_code *code, uint64_t *out_bytes)
{
    *out_bytes = (code->bytes + 15) / 16 * 16;
    unsigned char *aligned = gpuhal_own(calloc(1, (size_t)*out_bytes + 1));
    memcpy(aligned, code->code, (size_t)code->bytes);
    void *copy = gpuhal_fence_copy(aligned, *out_bytes);
    free(aligned);
    return copy;
}

gpuhal_status gpuhal_program_try(const gpuhal_opened *opened, const gpuhal_code *code, gpuhal_plugin_build *build,
                                 gpuhal_plugin_program **out_program)
{
    gpuhal_plugin_build plain = {.size = sizeof plain, .log = ignore_log};
    gpuhal_code exact = *code;
    uint64_t copy_bytes = 0;
    exact.code = fence_code(code, &copy_bytes);
    exact.format = gpuhal_fence_copy(code->format, strlen(code->format) + 1);
    gpuhal_code *given = gpuhal_fence_copy(&exact, sizeof exact);
    *out_program = NULL;
    gpuhal_step("the slot program_load");
    const gpuhal_status status =
        opened->slots.programs.program_load(opened->device, given, build != NULL ? build : &plain, out_program);
    gpuhal_fence_free(given, sizeof exact);
    gpuhal_fence_free(exact.format, strlen(code->format) + 1);
    gpuhal_fence_free(exact.code, copy_bytes);
    if (status == GPUHAL_OK && *out_program == NULL) {
        gpuhal_fail("program_load returned OK and no program");
    }
    return status;
}

/* `begins` is true if the code begins like a program, which may be for another target. */
static void expect_refused(const gpuhal_context *context, const char *format, const void *code, uint64_t bytes,
                           const char *what, bool begins)
{
    const gpuhal_code rubbish = {.size = sizeof rubbish, .format = format, .code = code, .bytes = bytes};
    gpuhal_plugin_program *program = NULL;
    const gpuhal_status status = gpuhal_program_try(&context->opened, &rubbish, NULL, &program);
    if (status != GPUHAL_ERROR_INVALID_ARGUMENT && !(begins && status == GPUHAL_ERROR_INCOMPATIBLE)) {
        gpuhal_fail_status(status, "program_load returned %s for %s in the format %s; it has to be invalid argument%s",
                           gpuhal_status_text(status), what, format, begins ? ", or incompatible" : "");
    }
    if (program != NULL) {
        gpuhal_fail("program_load refused %s in the format %s, and gave a program", what, format);
    }
    if (!gpuhal_has_reported(status)) {
        gpuhal_fail("program_load refused %s in the format %s without host->report(): a user learns no reason", what,
                    format);
    }
}

/* Returns the first bytes of programs in this format, or NULL if they are not known. Such formats are tried only with
 * meaningless bytes. */
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
        return; /* the code consists of addresses in this process, and a plugin cannot detect wrong addresses */
    }
    for (size_t i = 0; i < sizeof rubbish; i++) {
        rubbish[i] = (unsigned char)(0x80 | (i * 37 + i / 7));
    }
    expect_refused(context, format, rubbish, sizeof rubbish, "rubbish", false);
    expect_refused(context, format, rubbish, 1, "one byte", false);
    if (begin != NULL) {
        expect_refused(context, format, begin, strlen(begin), "the beginning of a program", true);
    }
    if (gpuhal_format_is_text(format)) {
        gpuhal_forget_printed(printed); /* with PoCL, clang also prints its error count to standard error */
    }
}
