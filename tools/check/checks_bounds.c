/* checks_bounds.c: the bounds of a plugin's reads and writes. Every object is at the end of its memory (fence.h). */
#include "fence.h"
#include "kernel.h"
#include "program.h"
#include "work.h"

#include <gpuhal/native.h>

#include <string.h>
#include <unistd.h>

/* A structure that the plugin fills in. The core decides its size. The checks run with the size of this version, and
 * with the size of a later version, which has more members at the end. */
static size_t later_bytes;
#define FILL(type) (type *)fill(sizeof(type))
#define FILLED(object, call) filled(object, sizeof *(object), call, object_name(object))
#define object_name(object)                                                                                            \
    _Generic((object),                                                                                                 \
        gpuhal_memory *: "gpuhal_memory",                                                                              \
        gpuhal_native *: "gpuhal_native",                                                                              \
        gpuhal_handle *: "gpuhal_handle",                                                                              \
        gpuhal_kernel_info *: "gpuhal_kernel_info",                                                                    \
        gpuhal_plugin_build *: "gpuhal_plugin_build")

static void *fill(size_t bytes)
{
    const uint32_t size = (uint32_t)(bytes + later_bytes);
    void *room = gpuhal_guard_make(size);
    memcpy(room, &size, sizeof size); /* each structure begins with its size */
    return room;
}

static void filled(void *object, size_t bytes, const char *call, const char *what)
{
    uint32_t size = 0;
    memcpy(&size, object, sizeof size);
    if (size != bytes + later_bytes) {
        gpuhal_fail_by(50, "%s changed the size of %s from %zu to %u: it is the core's", call, what,
                       bytes + later_bytes, size);
    }
    for (size_t i = bytes; i < size; i++) {
        if (((const unsigned char *)object)[i] != 0) {
            gpuhal_fail_by(50, "%s wrote behind the %zu bytes of %s, at byte %zu", call, bytes, what, i);
        }
    }
    gpuhal_guard_end(object, size, call, what);
}

static void *copy_of(const void *from, size_t bytes)
{
    return gpuhal_fence_copy(from, bytes);
}

static gpuhal_memory allocate(const gpuhal_opened *opened, const gpuhal_alloc *model, const char *what)
{
    gpuhal_alloc *alloc = copy_of(model, sizeof *model);
    gpuhal_memory *memory = FILL(gpuhal_memory);
    gpuhal_step("the slot allocate");
    gpuhal_expect_ok(opened->slots.ops.allocate(opened->device, alloc, memory), what);
    const gpuhal_memory made = *memory;
    FILLED(memory, "allocate");
    gpuhal_fence_free(alloc, sizeof *alloc);
    return made;
}

/* ---- memory and transfers */

static void check_kinds(const gpuhal_context *context, uint64_t bytes)
{
    for (gpuhal_memory_kind kind = GPUHAL_MEMORY_DEVICE; kind <= GPUHAL_MEMORY_MIGRATING; kind++) {
        if (gpuhal_states_kind(context, kind)) {
            gpuhal_memory memory = allocate(
                &context->opened, &(gpuhal_alloc){.size = sizeof(gpuhal_alloc), .kind = kind, .bytes = bytes},
                "allocate");
            gpuhal_plain_release(&context->opened, &memory);
        }
    }
}

static void check_rect(const gpuhal_context *context, const gpuhal_memory *memory, const gpuhal_memory *other,
                       uint64_t bytes)
{
    const gpuhal_slots *slots = &context->opened.slots;
    const gpuhal_plugin_rect sides[] = {{.memory = memory, .row_pitch = bytes, .slice_pitch = bytes},
                                        {.memory = other, .row_pitch = bytes, .slice_pitch = bytes}};
    const uint64_t whole[3] = {bytes, 1, 1};
    gpuhal_plugin_rect *to = copy_of(&sides[0], sizeof sides[0]), *from = copy_of(&sides[1], sizeof sides[1]);
    uint64_t *extent = copy_of(whole, sizeof whole);
    gpuhal_step("the slot copy_rect");
    const gpuhal_status status = slots->ops.copy_rect(context->opened.device, NULL, to, from, extent);
    gpuhal_expect_ok(status == GPUHAL_ERROR_NOT_SUPPORTED ? GPUHAL_OK : status, "copy_rect");
    gpuhal_fence_free(to, sizeof *to);
    gpuhal_fence_free(from, sizeof *from);
    gpuhal_fence_free(extent, sizeof whole);
}

/* The host memory ends at the end of a page. Tests each size up to eight units, and then every 64th size. */
static void check_host_bytes(const gpuhal_context *context, const gpuhal_memory *memory, uint64_t bytes)
{
    const uint64_t unit = gpuhal_copy_unit(context);
    static const unsigned char zeros[8192];
    const uint64_t most = bytes < sizeof zeros ? bytes : sizeof zeros;
    for (uint64_t some = unit; some <= most; some += some < 8 * unit ? unit : 64 * unit) {
        unsigned char *from = copy_of(zeros, (size_t)some), *to = gpuhal_guard_make(some);
        (void)gpuhal_plain_write(&context->opened, memory, 0, from, some);
        (void)gpuhal_plain_read(&context->opened, memory, 0, to, some);
        gpuhal_guard_end(to, some, "read", "the host memory that it is to fill");
        gpuhal_fence_free(from, some);
    }
}

/* ---- native objects and handles */

static void check_native(const gpuhal_context *context, const gpuhal_memory *memory)
{
    const gpuhal_slots *slots = &context->opened.slots;
    gpuhal_plugin_device *device = context->opened.device;
    gpuhal_native *native = FILL(gpuhal_native);
    gpuhal_step("the slot native_device");
    if (slots->native.native_device != NULL) {
        (void)slots->native.native_device(device, native);
    }
    FILLED(native, "native_device");
    native = FILL(gpuhal_native);
    gpuhal_step("the slot native_memory");
    const bool known =
        slots->native.native_memory != NULL && slots->native.native_memory(device, memory, native) == GPUHAL_OK;
    const gpuhal_native object = *native;
    FILLED(native, "native_memory");
    if (known && slots->native.wrap_memory != NULL) {
        gpuhal_native *given = copy_of(&object, sizeof object);
        gpuhal_memory *wrapped = FILL(gpuhal_memory);
        gpuhal_step("the slot wrap_memory");
        if (slots->native.wrap_memory(device, given, memory->bytes, wrapped) == GPUHAL_OK) {
            gpuhal_memory made = *wrapped;
            gpuhal_plain_release(&context->opened, &made);
        }
        FILLED(wrapped, "wrap_memory");
        gpuhal_fence_free(given, sizeof *given);
    }
    gpuhal_native *unknown = copy_of(&(gpuhal_native){.size = sizeof *unknown, .type = 0xdeadbeef}, sizeof *unknown);
    gpuhal_plugin_device *opened = NULL;
    gpuhal_slots described;
    gpuhal_expect_ok(gpuhal_session_describe(context, context->index, &described), "describe");
    gpuhal_step("open with an unknown object to take over");
    if (context->plugin->open(context->host, context->instance, context->index, unknown, &opened, &described.ops) ==
        GPUHAL_OK) {
        context->plugin->close(opened);
    }
    gpuhal_fence_free(unknown, sizeof *unknown);
}

static void check_export(const gpuhal_context *context, uint64_t bytes)
{
    const gpuhal_slots *slots = &context->opened.slots;
    const gpuhal_alloc alloc = {.size = sizeof alloc,
                                .kind = gpuhal_exportable_first(context),
                                .bytes = bytes,
                                .export_kinds = 1u << GPUHAL_HANDLE_OPAQUE_FD};
    gpuhal_memory probe = {.size = sizeof probe};
    gpuhal_step("the slot allocate for export");
    if (!(gpuhal_device_fact(context, GPUHAL_FACT_EXPORT_KINDS, 0) >> GPUHAL_HANDLE_OPAQUE_FD & 1) ||
        slots->ops.export_memory == NULL || slots->ops.allocate(context->opened.device, &alloc, &probe) != GPUHAL_OK) {
        return; /* the check export_import covers this case */
    }
    gpuhal_handle *handle = FILL(gpuhal_handle);
    uint64_t *offset = gpuhal_guard_make(sizeof *offset);
    gpuhal_step("the slot export_memory");
    if (slots->ops.export_memory(context->opened.device, &probe, GPUHAL_HANDLE_OPAQUE_FD, handle, offset) ==
        GPUHAL_OK) {
        close((int)handle->as.os);
    }
    FILLED(handle, "export_memory");
    gpuhal_guard_end(offset, sizeof *offset, "export_memory", "its offset");
    gpuhal_plain_release(&context->opened, &probe);
}

/* ---- queues, ranges, values */

static void check_queue(gpuhal_context *context)
{
    gpuhal_work work;
    const gpuhal_slots *slots = &context->opened.slots;
    if (slots->queues.queue_create == NULL) {
        return;
    }
    const uint32_t flags = slots->queues.elapsed != NULL ? GPUHAL_TIMED : 0;
    gpuhal_work_init(&work, context, flags);
    gpuhal_native *native = FILL(gpuhal_native);
    if (slots->native.native_queue != NULL) {
        gpuhal_step("the slot native_queue");
        (void)slots->native.native_queue(work.queue, native);
    }
    FILLED(native, "native_queue");
    gpuhal_work_record(&work, work.queue, work.event);
    native = FILL(gpuhal_native);
    if (slots->native.native_event != NULL) {
        gpuhal_step("the slot native_event");
        (void)slots->native.native_event(work.event, native);
    }
    FILLED(native, "native_event");
    gpuhal_work_await(&work, work.event);
    if (slots->queues.elapsed != NULL) {
        uint64_t *ns = gpuhal_guard_make(sizeof *ns);
        gpuhal_step("the slot elapsed");
        (void)slots->queues.elapsed(work.event, work.event, ns);
        gpuhal_guard_end(ns, sizeof *ns, "elapsed", "its result");
    }
    gpuhal_work_finish(&work);
}

static void check_range(const gpuhal_context *context)
{
    const gpuhal_slots *slots = &context->opened.slots;
    if (slots->ranges.range_reserve == NULL) {
        return;
    }
    uint64_t *granularity = gpuhal_guard_make(sizeof *granularity);
    gpuhal_step("the slot range_granularity");
    const bool known = slots->ranges.range_granularity(context->opened.device, 1, granularity) == GPUHAL_OK;
    const uint64_t bytes = *granularity;
    gpuhal_guard_end(granularity, sizeof *granularity, "range_granularity", "its result");
    gpuhal_memory *memory = FILL(gpuhal_memory);
    gpuhal_plugin_range *range = NULL;
    gpuhal_step("the slot range_reserve");
    if (known && slots->ranges.range_reserve(context->opened.device, bytes, memory, &range) == GPUHAL_OK) {
        slots->ranges.range_release(range);
    }
    FILLED(memory, "range_reserve");
}

static void check_values(const gpuhal_context *context)
{
    static const gpuhal_key wanted[] = {GPUHAL_VALUE_MEMORY_FREE_BYTES};
    static const char unknown[] = "gpuhal-check.none";
    gpuhal_key *keys = copy_of(wanted, sizeof wanted);
    char *name = copy_of(unknown, sizeof unknown);
    gpuhal_device_snapshot values = {0};
    if (PLUGIN_HAS(context->plugin, sample)) {
        gpuhal_step("sample of one key");
        (void)gpuhal_device_snapshot_sample(context->plugin, context->instance, context->index, keys, 1, &values);
        gpuhal_device_snapshot_finish(&values);
    }
    if (PLUGIN_HAS(context->plugin, query_extension)) {
        gpuhal_step("query_extension with an unknown name");
        (void)context->plugin->query_extension(context->host, context->instance, name);
    }
    gpuhal_fence_free(keys, sizeof wanted);
    gpuhal_fence_free(name, sizeof unknown);
}

/* ---- programs */

static void ignore_log(void *user, const char *text)
{
    (void)user, (void)text;
}

static gpuhal_plugin_build *make_build(void)
{
    gpuhal_plugin_build *build = FILL(gpuhal_plugin_build);
    build->log = ignore_log;
    return build;
}

static void check_rubbish(void *user, const char *format)
{
    const gpuhal_context *context = user;
    static const char rubbish[] = "no program";
    gpuhal_plugin_program *program = NULL;
    if (gpuhal_format_is_text(format) || strcmp(format, "host-function") == 0) {
        return;
    }
    gpuhal_plugin_build *build = make_build();
    const gpuhal_code code = {.size = sizeof code, .format = format, .code = rubbish, .bytes = sizeof rubbish};
    if (gpuhal_program_try(&context->opened, &code, build, &program) == GPUHAL_OK) {
        context->opened.slots.programs.program_unload(program);
    }
    FILLED(build, "program_load");
}

static void check_compiled(const gpuhal_given_kernel *own)
{
    uint64_t *bytes = gpuhal_guard_make(sizeof *bytes);
    if (own->slots->programs.program_compiled == NULL) {
        return;
    }
    gpuhal_step("the slot program_compiled");
    const bool known = own->slots->programs.program_compiled(own->program, NULL, bytes) == GPUHAL_OK && *bytes > 0;
    const uint64_t size = *bytes;
    if (known) {
        void *to = gpuhal_guard_make(size);
        (void)own->slots->programs.program_compiled(own->program, to, bytes);
        gpuhal_guard_end(to, size, "program_compiled", "room");
    }
    gpuhal_guard_end(bytes, sizeof *bytes, "program_compiled", "its size");
}

static void check_launch(const gpuhal_given_kernel *own)
{
    gpuhal_area area;
    gpuhal_plugin_argument list[GIVEN_MAX];
    gpuhal_given_area(own, &area, 1);
    gpuhal_given_arguments(own, &area.memory, list);
    for (uint32_t p = 0; p < own->parameter_count; p++) {
        if (list[p].kind == GPUHAL_PARAMETER_VALUE) {
            list[p].value = copy_of(own->parameters[p].value, (size_t)list[p].bytes);
        }
    }
    const size_t list_bytes = own->parameter_count * sizeof *list;
    gpuhal_packed_launch packed;
    gpuhal_given_pack(own, list, &packed);
    gpuhal_plugin_launch plain = packed.launch;
    plain.arguments = copy_of(list, list_bytes);
    gpuhal_plugin_launch *launch = copy_of(&plain, sizeof plain);
    gpuhal_step("the slot launch");
    gpuhal_expect_ok(own->slots->programs.launch(NULL, own->kernel, launch), "launch");
    gpuhal_fence_free(launch, sizeof *launch);
    gpuhal_fence_free(plain.arguments, list_bytes);
    for (uint32_t p = 0; p < own->parameter_count; p++) {
        if (list[p].kind == GPUHAL_PARAMETER_VALUE) {
            gpuhal_fence_free(list[p].value, list[p].bytes);
        }
    }
    gpuhal_area_finish(&area);
}

static void check_prepare(const gpuhal_given_kernel *own)
{
    uint32_t size[3];
    if ((own->info.flags & GPUHAL_KERNEL_PREPARED_SIZES) == 0 || !gpuhal_given_smaller(own, size)) {
        return;
    }
    uint32_t *fenced = copy_of(size, sizeof size);
    gpuhal_given_prepare(own, fenced);
    gpuhal_fence_free(fenced, sizeof size);
}

/* Creates and changes a recording of one launch, whose structures end at the end of their pages. */
static void check_recording(const gpuhal_given_kernel *own)
{
    gpuhal_area area;
    gpuhal_packed_launch plain;
    gpuhal_plugin_argument list[GIVEN_MAX];
    const gpuhal_recording_ops *slots = &own->slots->recordings;
    gpuhal_plugin_recording *recording = NULL;
    gpuhal_given_area(own, &area, 1);
    gpuhal_given_arguments(own, &area.memory, list);
    gpuhal_given_pack(own, list, &plain);
    const size_t list_bytes = own->parameter_count * sizeof *list;
    plain.launch.arguments = copy_of(plain.arguments, list_bytes);
    gpuhal_plugin_launch *launch = copy_of(&plain.launch, sizeof plain.launch);
    const gpuhal_plugin_step model = {
        .kind = GPUHAL_STEP_LAUNCH, .flags = GPUHAL_STEP_CHANGES, .kernel = own->kernel, .launch = launch};
    gpuhal_plugin_step *step = copy_of(&model, sizeof model);
    gpuhal_step("the slot recording_create");
    const gpuhal_status status = slots->recording_create(own->device, step, 1, &recording);
    gpuhal_expect_ok(status == GPUHAL_ERROR_NOT_SUPPORTED ? GPUHAL_OK : status, "recording_create");
    if (status == GPUHAL_OK) {
        gpuhal_step("the slot recording_set");
        const gpuhal_status set = slots->recording_set(recording, step, 1);
        gpuhal_expect_ok(set == GPUHAL_ERROR_NOT_SUPPORTED ? GPUHAL_OK : set, "recording_set");
        gpuhal_step("the slot recording_destroy");
        slots->recording_destroy(recording);
    }
    gpuhal_fence_free(step, sizeof model);
    gpuhal_fence_free(launch, sizeof plain.launch);
    gpuhal_fence_free(plain.launch.arguments, list_bytes);
    gpuhal_area_finish(&area);
}

static void check_kernel(const gpuhal_context *context)
{
    gpuhal_given_kernel own;
    gpuhal_parameter room[GIVEN_MAX];
    gpuhal_given_init(&own, context);
    gpuhal_kernel_desc plain = gpuhal_given_desc(context, room);
    const size_t name_bytes = strlen(plain.name) + 1;
    const size_t parameter_bytes = plain.parameters != NULL ? plain.parameter_count * sizeof *plain.parameters : 0;
    plain.name = copy_of(plain.name, name_bytes);
    plain.parameters = plain.parameters != NULL ? copy_of(plain.parameters, parameter_bytes) : NULL;
    gpuhal_kernel_desc *desc = copy_of(&plain, sizeof plain);
    gpuhal_kernel_info *info = FILL(gpuhal_kernel_info);
    gpuhal_plugin_kernel *kernel = NULL;
    gpuhal_step("the slot kernel_create");
    gpuhal_expect_ok(own.slots->programs.kernel_create(own.program, desc, info, &kernel), "kernel_create");
    FILLED(info, "kernel_create");
    gpuhal_step("the slot kernel_destroy");
    own.slots->programs.kernel_destroy(kernel);
    gpuhal_fence_free(desc, sizeof *desc);
    gpuhal_fence_free(plain.name, name_bytes);
    if (plain.parameters != NULL) {
        gpuhal_fence_free(plain.parameters, parameter_bytes);
    }
    check_compiled(&own);
    check_launch(&own);
    check_prepare(&own);
    if (own.slots->recordings.recording_create != NULL) {
        check_recording(&own);
    }
    gpuhal_given_finish(&own);
}

static void check_all(gpuhal_context *context)
{
    const uint64_t bytes = gpuhal_area_usual(context);
    const gpuhal_slots *slots = &context->opened.slots;
    check_kinds(context, bytes);
    const gpuhal_alloc alloc = {.size = sizeof alloc, .bytes = bytes};
    gpuhal_memory memory = allocate(&context->opened, &alloc, "allocate"),
                  other = allocate(&context->opened, &alloc, "allocate");
    check_host_bytes(context, &memory, bytes);
    if (slots->ops.copy_rect != NULL) {
        check_rect(context, &memory, &other, gpuhal_copy_unit(context) * 16);
    }
    check_native(context, &memory);
    gpuhal_plain_release(&context->opened, &other);
    gpuhal_plain_release(&context->opened, &memory);
    check_export(context, bytes);
    check_queue(context);
    check_range(context);
    check_values(context);
    if (slots->programs.program_load != NULL) {
        gpuhal_formats_visit(context, check_rubbish, context);
    }
    if (gpuhal_given_fits(context)) {
        check_kernel(context);
    }
}

/* A later core defines more members of a structure and an earlier core fewer. Bytes after these members do not belong
 * to the plugin. */
void gpuhal_check_bounds(gpuhal_context *context)
{
    check_all(context);
    later_bytes = 16;
    check_all(context);
    later_bytes = 0;
}
