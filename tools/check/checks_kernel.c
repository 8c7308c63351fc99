/* checks_kernel.c: kernels of the program given on the command line: their names, their descriptions, and the compiled
 * code that a plugin caches. */
#include "kernel.h"
#include "program.h"

#include <gpuhal/error.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static void destroy(const gpuhal_given_kernel *own, gpuhal_plugin_kernel *kernel)
{
    gpuhal_step("the slot kernel_destroy");
    own->slots->programs.kernel_destroy(kernel);
}

/* ---- names */

static void expect_unknown(const gpuhal_given_kernel *own, gpuhal_kernel_desc desc, const char *name)
{
    gpuhal_kernel_info info;
    gpuhal_plugin_kernel *kernel = NULL;
    desc.name = name;
    const gpuhal_status status = gpuhal_given_create(own, &desc, &info, &kernel);
    if (status != GPUHAL_ERROR_NOT_FOUND) {
        gpuhal_fail("kernel_create returned %s for the name \"%.40s\", which the program does not have, instead of not "
                    "found",
                    gpuhal_status_text(status), name);
    }
}

/* The core creates a kernel for each caller, so several kernels may have the same name. */
void gpuhal_check_kernel_names(gpuhal_context *context)
{
    static char long_name[4096];
    gpuhal_given_kernel own;
    gpuhal_kernel_info info;
    gpuhal_plugin_kernel *second = NULL;
    gpuhal_parameter room[GIVEN_MAX];
    if (!gpuhal_given_offered(context)) {
        return;
    }
    memset(long_name, 'x', sizeof long_name - 1);
    gpuhal_given_init(&own, context);
    const gpuhal_kernel_desc desc = gpuhal_given_desc(context, room);
    expect_unknown(&own, desc, "gpuhal_check_no_such_kernel");
    expect_unknown(&own, desc, long_name);
    gpuhal_expect_ok(gpuhal_given_create(&own, &desc, &info, &second), "kernel_create, a second time for one name");
    unsigned char *result = gpuhal_given_result(&own, 1);
    destroy(&own, own.kernel);
    own.kernel = second;
    unsigned char *again = gpuhal_given_result(&own, 1);
    if (memcmp(result, again, (size_t)own.bytes) != 0) {
        gpuhal_fail("two kernels of one name come to different results from the same bytes");
    }
    free(again);
    free(result);
    gpuhal_given_finish(&own);
}

/* ---- descriptions */

static void expect_flags(const gpuhal_given_kernel *own)
{
    const uint32_t known = (GPUHAL_KERNEL_NULL_BUFFERS << 1) - 1, flags = own->info.flags;
    const uint32_t fact = (uint32_t)gpuhal_device_fact(own->context, GPUHAL_FACT_LAUNCH_FORMS, 0);
    if ((flags & ~known) != 0) {
        gpuhal_fail("kernel_create set flags that do not exist: %#" PRIx32, flags & ~known);
    }
    if ((flags & ~fact) != 0) {
        gpuhal_fail_by(16, "the kernel has the flags %#" PRIx32 ", of which the fact launch_forms lacks %#" PRIx32,
                       flags, flags & ~fact);
    }
    if (gpuhal_given_has(own, GPUHAL_KERNEL_PREPARED_SIZES) && !gpuhal_given_has(own, GPUHAL_KERNEL_GROUP_SIZE)) {
        gpuhal_fail("the kernel has the flag GPUHAL_KERNEL_PREPARED_SIZES without GPUHAL_KERNEL_GROUP_SIZE");
    }
    if (gpuhal_given_has(own, GPUHAL_KERNEL_PREPARED_SIZES) && own->slots->programs.kernel_prepare == NULL) {
        gpuhal_fail_by(16, "the kernel has the flag GPUHAL_KERNEL_PREPARED_SIZES, and the slot kernel_prepare is "
                           "missing");
    }
}

static void expect_info(const gpuhal_given_kernel *own)
{
    const gpuhal_kernel_info *info = &own->info;
    const gpuhal_given *given = &own->context->options->given;
    const uint64_t threads = (uint64_t)info->group_size[0] * info->group_size[1] * info->group_size[2];
    if (threads == 0) {
        gpuhal_fail("kernel_create stated a group of %" PRIu32 " x %" PRIu32 " x %" PRIu32 " threads",
                    info->group_size[0], info->group_size[1], info->group_size[2]);
    }
    if (info->group_size_max != 0 && threads > info->group_size_max) {
        gpuhal_fail("kernel_create made groups of %" PRIu64 " threads, and stated %" PRIu32 " as the most", threads,
                    info->group_size_max);
    }
    if (given->has_parameters && info->parameter_count != given->parameter_count) {
        gpuhal_fail("kernel_create took %" PRIu32 " parameters, and stated %" PRIu32, given->parameter_count,
                    info->parameter_count);
    }
    for (uint32_t p = 0; p < info->parameter_count; p++) {
        const gpuhal_parameter *stated = &info->parameters[p];
        if (stated->kind < GPUHAL_PARAMETER_BUFFER || stated->kind > GPUHAL_PARAMETER_LOCAL ||
            (stated->kind == GPUHAL_PARAMETER_VALUE) != (stated->bytes != 0)) {
            gpuhal_fail("kernel_create described parameter %" PRIu32 " with kind %" PRIu32 " and %" PRIu32 " bytes", p,
                        stated->kind, stated->bytes);
        }
    }
}

static void expect_refused(const gpuhal_given_kernel *own, const gpuhal_kernel_desc *desc, gpuhal_status status,
                           gpuhal_status or_status, const char *what)
{
    gpuhal_kernel_info info;
    gpuhal_plugin_kernel *kernel = NULL;
    const gpuhal_status got = gpuhal_given_create(own, desc, &info, &kernel);
    if (got != status && got != or_status) {
        gpuhal_fail("kernel_create returned %s for %s; it has to be %s", gpuhal_status_text(got), what,
                    gpuhal_status_name(status));
    }
}

/* If the plugin knows the parameters, it must refuse wrong parameters, because launch does not check them. */
static void expect_parameters_refused(const gpuhal_given_kernel *own, gpuhal_kernel_desc desc)
{
    gpuhal_parameter wrong[GIVEN_MAX + 1];
    const uint32_t count = own->info.parameter_count;
    for (uint32_t p = 0; p < count; p++) {
        wrong[p] = own->parameters[p].parameter;
    }
    wrong[count] = (gpuhal_parameter){.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4};
    desc.parameters = wrong;
    desc.parameter_count = count + 1;
    expect_refused(own, &desc, GPUHAL_ERROR_INVALID_ARGUMENT, GPUHAL_ERROR_INVALID_ARGUMENT,
                   "one parameter more than the function has");
    desc.parameter_count = count;
    if (count > 0) {
        const bool is_buffer = wrong[0].kind == GPUHAL_PARAMETER_BUFFER;
        wrong[0] = is_buffer ? wrong[count] : (gpuhal_parameter){.kind = GPUHAL_PARAMETER_BUFFER};
        expect_refused(own, &desc, GPUHAL_ERROR_INVALID_ARGUMENT, GPUHAL_ERROR_INVALID_ARGUMENT,
                       "a first parameter of another kind");
    }
}

/* Writes a marker into the parameter if its memory is writable: another kernel of the same code would write identical
 * bytes, but would overwrite the marker. The kernel of the operating system writes it, because it returns an error for
 * constants instead of crashing the process. */
static bool mark(const gpuhal_parameter *parameter, uint32_t number)
{
    const struct iovec from = {&number, sizeof number};
    const struct iovec to = {(char *)(uintptr_t)parameter + offsetof(gpuhal_parameter, flags), sizeof number};
    return process_vm_writev(getpid(), &from, 1, &to, 1, 0) == (ssize_t)sizeof number;
}

/* A kernel's description stays valid until the kernel is destroyed, even if the caller's copy and other kernels no
 * longer exist. */
static void expect_parameters_stay(const gpuhal_given_kernel *own)
{
    enum { MARK = 0x6b6c6d6e };
    gpuhal_parameter room[GIVEN_MAX], first[GIVEN_MAX];
    gpuhal_kernel_info info[2];
    gpuhal_plugin_kernel *kernels[2];
    gpuhal_kernel_desc desc = gpuhal_given_desc(own->context, room);
    gpuhal_expect_ok(gpuhal_given_create(own, &desc, &info[0], &kernels[0]), "kernel_create");
    const uint32_t count = info[0].parameter_count < GIVEN_MAX ? info[0].parameter_count : GIVEN_MAX;
    if (info[0].parameters != NULL && count > 0) {
        memcpy(first, info[0].parameters, count * sizeof *first);
        memset(room, 0xff, sizeof room);
        if (memcmp(first, info[0].parameters, count * sizeof *first) != 0) {
            gpuhal_fail("kernel_create gave the caller's own description of the parameters, which the caller may "
                        "change");
        }
        desc = gpuhal_given_desc(own->context, room);
        const uint32_t before = first[0].flags;
        const bool marked = mark(&info[0].parameters[0], MARK);
        gpuhal_expect_ok(gpuhal_given_create(own, &desc, &info[1], &kernels[1]), "kernel_create");
        if (marked && info[0].parameters[0].flags != MARK) {
            gpuhal_fail("kernel_create of another kernel wrote the parameters of the first one, which is still there");
        }
        (void)(marked && mark(&info[0].parameters[0], before));
        destroy(own, kernels[1]);
        if (memcmp(first, info[0].parameters, count * sizeof *first) != 0) {
            gpuhal_fail("kernel_destroy of another kernel changed the parameters of the first one");
        }
    }
    destroy(own, kernels[0]);
}

void gpuhal_check_kernel_description(gpuhal_context *context)
{
    gpuhal_given_kernel own;
    gpuhal_kernel_info info;
    gpuhal_plugin_kernel *reflected = NULL;
    gpuhal_parameter room[GIVEN_MAX];
    if (!gpuhal_given_offered(context)) {
        return;
    }
    gpuhal_given_init(&own, context);
    expect_info(&own);
    expect_flags(&own);
    expect_parameters_stay(&own);
    gpuhal_kernel_desc desc = gpuhal_given_desc(context, room);
    desc.subgroup_size = 3;
    expect_refused(&own, &desc, GPUHAL_ERROR_NOT_SUPPORTED, GPUHAL_ERROR_NOT_SUPPORTED, "subgroups of 3 threads");
    desc.subgroup_size = 0;
    if (own.info.group_size_max != 0 && own.info.group_size_max < UINT32_MAX) {
        memcpy(desc.group_size, (const uint32_t[]){own.info.group_size_max + 1, 1, 1}, sizeof desc.group_size);
        expect_refused(&own, &desc, GPUHAL_ERROR_TOO_LARGE, GPUHAL_ERROR_INVALID_ARGUMENT,
                       "a group of more threads than the kernel can have");
        memcpy(desc.group_size, context->options->given.group_size, sizeof desc.group_size);
    }
    gpuhal_kernel_desc without = desc;
    without.parameters = NULL;
    without.parameter_count = 0;
    if (gpuhal_given_create(&own, &without, &info, &reflected) == GPUHAL_OK) {
        destroy(&own, reflected);
        expect_parameters_refused(&own, desc);
    } else {
        gpuhal_note("the plugin does not know the parameters of the kernel: wrong ones cannot be judged");
    }
    gpuhal_given_finish(&own);
}

/* ---- compiled code */

enum { GUARD_BYTES = 64, GUARD = 0xc5, HEAD_BYTES = 32 };

static unsigned char *take_compiled(const gpuhal_given_kernel *own, uint64_t *out_bytes)
{
    gpuhal_step("the slot program_compiled");
    gpuhal_status status = own->slots->programs.program_compiled(own->program, NULL, out_bytes);
    if (status == GPUHAL_ERROR_NOT_SUPPORTED) {
        gpuhal_skip("the plugin has nothing to keep of this program");
        return NULL;
    }
    gpuhal_expect_ok(status, "program_compiled");
    if (*out_bytes == 0) {
        gpuhal_fail("program_compiled returned OK and no bytes");
    }
    const uint64_t bytes = *out_bytes;
    unsigned char *compiled = gpuhal_own(malloc((size_t)bytes + GUARD_BYTES));
    memset(compiled, GUARD, (size_t)bytes + GUARD_BYTES);
    uint64_t room = bytes / 2;
    gpuhal_expect_ok(own->slots->programs.program_compiled(own->program, compiled, &room), "program_compiled");
    for (uint64_t i = 0; i < bytes + GUARD_BYTES; i++) {
        if (compiled[i] != GUARD) {
            gpuhal_fail("program_compiled wrote into room for %" PRIu64 " bytes, and has %" PRIu64, bytes / 2, bytes);
        }
    }
    *out_bytes = bytes;
    gpuhal_expect_ok(own->slots->programs.program_compiled(own->program, compiled, out_bytes), "program_compiled");
    for (uint64_t i = bytes; i < bytes + GUARD_BYTES; i++) {
        if (compiled[i] != GUARD) {
            gpuhal_fail("program_compiled wrote behind the %" PRIu64 " bytes of room", bytes);
        }
    }
    return compiled;
}

static void ignore_log(void *user, const char *text)
{
    (void)user, (void)text;
}

/* Checks that a program made from these bytes behaves like a program that was compiled. Returns used_compiled. */
static bool load_with(gpuhal_given_kernel *own, const unsigned char *compiled, uint64_t bytes,
                      const unsigned char *result, const char *what)
{
    gpuhal_plugin_build build = {
        .size = sizeof build, .compiled = compiled, .compiled_bytes = bytes, .log = ignore_log};
    const gpuhal_code code = gpuhal_given_code(own->context);
    gpuhal_parameter room[GIVEN_MAX];
    gpuhal_kernel_desc desc = gpuhal_given_desc(own->context, room);
    gpuhal_given_kernel other = *own;
    gpuhal_expect_ok(gpuhal_program_try(&own->context->opened, &code, &build, &other.program), what);
    desc.parameters = own->info.parameters;
    desc.parameter_count = own->info.parameter_count;
    gpuhal_expect_ok(gpuhal_given_create(&other, &desc, &other.info, &other.kernel), what);
    unsigned char *got = gpuhal_given_result(&other, 1);
    if (memcmp(got, result, (size_t)own->bytes) != 0) {
        gpuhal_fail("%s made a kernel that comes to another result", what);
    }
    free(got);
    gpuhal_given_finish(&other);
    return build.used_compiled != 0;
}

/* The core verifies its cached bytes with a checksum, so a plugin receives either intact bytes or bytes from another
 * driver. */
void gpuhal_check_program_compiled(gpuhal_context *context)
{
    gpuhal_given_kernel own;
    uint64_t bytes = 0;
    if (!gpuhal_given_offered(context) ||
        !gpuhal_offered(context->opened.slots.programs.program_compiled != NULL, "program_compiled")) {
        return;
    }
    gpuhal_given_init(&own, context);
    unsigned char *compiled = take_compiled(&own, &bytes);
    if (compiled != NULL) {
        unsigned char *result = gpuhal_given_result(&own, 1);
        if (!load_with(&own, compiled, bytes, result, "program_load with compiled bytes")) {
            gpuhal_fail(
                "program_load did not use the bytes that program_compiled gave for the same code, or did not say so");
        }
        for (uint64_t i = 0; i < bytes && i < HEAD_BYTES; i++) {
            compiled[i] ^= 0x5a;
        }
        if (load_with(&own, compiled, bytes, result, "program_load with damaged compiled bytes")) {
            gpuhal_fail("program_load says that it used compiled bytes whose beginning is damaged");
        }
        (void)load_with(&own, compiled, 1, result, "program_load with one compiled byte");
        free(result);
        free(compiled);
    }
    gpuhal_given_finish(&own);
}
