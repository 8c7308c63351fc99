/* checks_share.c: memory and handles that are also used outside the plugin: native objects, adopted and wrapped
 * objects, imported host memory, exported memory. */
#include "resources.h"
#include "work.h"

#include <gpuhal/native.h>

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The type shows an application which API a handle belongs to; native.h assigns number ranges to the backends. */
static void expect_type(const char *backend, uint32_t type, const char *slot)
{
    static const struct {
        const char *backend;
        uint32_t first, last, other;
    } own[] = {
        {"opencl", GPUHAL_NATIVE_OPENCL_DEVICE, GPUHAL_NATIVE_OPENCL_QUEUE, GPUHAL_NATIVE_OPENCL_EVENT},
        {"vulkan", GPUHAL_NATIVE_VULKAN_DEVICE, GPUHAL_NATIVE_VULKAN_SEMAPHORE, GPUHAL_NATIVE_VULKAN_SEMAPHORE},
        {"cuda", GPUHAL_NATIVE_CUDA_DEVICE, GPUHAL_NATIVE_CUDA_EVENT, GPUHAL_NATIVE_CUDA_EVENT},
        {"rocm", GPUHAL_NATIVE_HIP_DEVICE, GPUHAL_NATIVE_HIP_EVENT, GPUHAL_NATIVE_HIP_EVENT},
    };
    bool fits = type >= GPUHAL_VENDOR_NATIVE_FIRST && type < 64;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        if (strcmp(backend, own[i].backend) == 0) {
            fits = (type >= own[i].first && type <= own[i].last) || type == own[i].other;
        }
    }
    if (!fits) {
        gpuhal_fail("%s gave type %u, which is of another backend; types of a vendor's own are %u to 63", slot, type,
                    GPUHAL_VENDOR_NATIVE_FIRST);
    }
}

/* The caller passes the handle directly to the vendor's API, and 0 is never a valid handle of this API. HIP devices are
 * an exception, because they are numbers. */
static void expect_native(gpuhal_status status, const gpuhal_native *native, const char *slot)
{
    if (status != GPUHAL_OK) {
        gpuhal_fail("the slot %s is there, and returned %s", slot, gpuhal_status_text(status));
    }
    if (native->size != sizeof *native) {
        gpuhal_fail("%s changed the size member of gpuhal_native to %u", slot, native->size);
    }
    if (native->type == 0) {
        gpuhal_fail("%s gave no type", slot);
    }
    expect_type(gpuhal_child_loaded()->name, native->type, slot);
    if (native->values[0] == 0 && native->typed == NULL && native->type != GPUHAL_NATIVE_HIP_DEVICE) {
        gpuhal_fail("%s gave no value", slot);
    }
}

static void check_native_queue(const gpuhal_context *context)
{
    const gpuhal_slots *slots = &context->opened.slots;
    const gpuhal_work work = {.opened = &context->opened, .slots = slots};
    gpuhal_plugin_queue *queue = gpuhal_work_queue(work.opened, 0);
    gpuhal_plugin_event *event = gpuhal_work_event(work.opened, 0);
    gpuhal_native native = {.size = sizeof native};
    gpuhal_work_record(&work, queue, event);
    if (slots->native.native_queue != NULL) {
        gpuhal_step("the slot native_queue");
        expect_native(slots->native.native_queue(queue, &native), &native, "native_queue");
    }
    if (slots->native.native_event != NULL) {
        native = (gpuhal_native){.size = sizeof native};
        gpuhal_step("the slot native_event");
        expect_native(slots->native.native_event(event, &native), &native, "native_event");
    }
    gpuhal_work_await(&work, event);
    slots->queues.event_destroy(event);
    slots->queues.queue_destroy(queue);
}

/* native.h defines each type's meaning. This check requires an unchanged size, a type of this backend, and a value (not
 * for a HIP device). It does not use the handle. */
void gpuhal_check_native(gpuhal_context *context)
{
    const gpuhal_opened *opened = &context->opened;
    const gpuhal_slots *slots = &opened->slots;
    gpuhal_native native = {.size = sizeof native};
    if (slots->native.native_device == NULL && slots->native.native_memory == NULL &&
        slots->native.native_queue == NULL && slots->native.native_event == NULL) {
        gpuhal_skip("no native handles are offered");
        return;
    }
    if (slots->native.native_device != NULL) {
        gpuhal_step("the slot native_device");
        expect_native(slots->native.native_device(opened->device, &native), &native, "native_device");
    }
    if (slots->native.native_memory != NULL) {
        gpuhal_memory memory;
        gpuhal_expect_ok(gpuhal_plain_allocate(opened, GPUHAL_MEMORY_DEVICE, gpuhal_area_usual(context), 0, &memory),
                         "allocate");
        native = (gpuhal_native){.size = sizeof native};
        gpuhal_step("the slot native_memory");
        expect_native(slots->native.native_memory(opened->device, &memory, &native), &native, "native_memory");
        gpuhal_plain_release(opened, &memory);
    }
    if (slots->queues.queue_create != NULL &&
        (slots->native.native_queue != NULL || slots->native.native_event != NULL)) {
        check_native_queue(context);
    }
}

static void *unlock(void *user)
{
    const gpuhal_work *work = user;
    work->slots->native.native_unlock(work->queue);
    return NULL;
}

/* A native access may end on a different thread than the thread that began it. There are never two accesses at the same
 * time. */
static void lock_and_unlock(gpuhal_work *work)
{
    pthread_t thread;
    const uint64_t second_ns = UINT64_C(1000000000);
    gpuhal_step("the slot native_lock");
    gpuhal_expect_ok(work->slots->native.native_lock(work->queue, second_ns), "native_lock");
    if (pthread_create(&thread, NULL, unlock, work) != 0) {
        gpuhal_fail("gpuhal-check cannot make a thread");
    }
    pthread_join(thread, NULL);
    gpuhal_step("the slot native_lock");
    gpuhal_status status = work->slots->native.native_lock(work->queue, second_ns);
    if (status != GPUHAL_OK) {
        gpuhal_fail("native_lock after native_unlock from another thread returned %s", gpuhal_status_text(status));
    }
    unlock(work);
}

/* During a native access, the caller submits to the vendor's queue, so earlier work must already be submitted. */
void gpuhal_check_native_lock(gpuhal_context *context)
{
    if (!gpuhal_work_offered(context, context->opened.slots.native.native_lock != NULL, "native_lock")) {
        return;
    }
    enum { TRIES = 1000 };
    gpuhal_work work;
    gpuhal_work_init(&work, context, 0);
    const uint64_t bytes = work.to.bytes;
    gpuhal_work_copy(&work, work.queue, &work.to, 0, &work.from, 0, bytes);
    lock_and_unlock(&work);
    bool arrived = gpuhal_is_sanitized(); /* polling would be a data race, and an event would submit the copy */
    for (unsigned t = 0; t < TRIES && !arrived; t++) {
        gpuhal_plain_get(&context->opened, &work.to.memory, 0, work.to.actual, bytes, ROUTE_ANY);
        arrived = memcmp(work.to.actual, work.from.expected, (size_t)bytes) == 0;
        usleep(arrived ? 0 : 1000);
    }
    if (!arrived) {
        gpuhal_fail("a copy that was enqueued before native_lock has not been submitted by it: the bytes did not "
                    "arrive in %d ms",
                    TRIES);
    }
    gpuhal_work_record(&work, work.queue, work.event);
    gpuhal_work_await(&work, work.event);
    gpuhal_area_reset(&work.from, 9, ROUTE_ANY);
    gpuhal_work_copy(&work, work.queue, &work.to, 0, &work.from, 0, bytes);
    gpuhal_work_record(&work, work.queue, work.event);
    gpuhal_work_await(&work, work.event);
    memcpy(work.to.expected, work.from.expected, (size_t)bytes);
    gpuhal_area_verify(&work.to, (gpuhal_claim){.bytes = bytes}, ROUTE_ANY,
                       "a copy in a queue that was locked and unlocked before");
    gpuhal_work_finish(&work);
}

/* If the import succeeds, the plugin owns the descriptor. */
static gpuhal_memory import(const gpuhal_opened *opened, const gpuhal_alloc *alloc)
{
    gpuhal_memory memory = {.size = sizeof memory};
    gpuhal_step("the slot allocate with an import");
    gpuhal_expect_ok(opened->slots.ops.allocate(opened->device, alloc, &memory), "allocate with an import");
    if (memory.bytes < alloc->bytes) {
        gpuhal_fail("an import of %" PRIu64 " bytes gave %" PRIu64, alloc->bytes, memory.bytes);
    }
    return memory;
}

static bool in_kinds(const gpuhal_context *context, gpuhal_key fact, gpuhal_handle_kind kind)
{
    return gpuhal_device_fact(context, fact, 0) >> kind & 1;
}

/* A second opened device adopts the native objects of the first opened device, like an application's objects. */
void gpuhal_check_adopt_own(gpuhal_context *context)
{
    const gpuhal_opened *opened = &context->opened;
    gpuhal_native native = {.size = sizeof native};
    if (opened->slots.native.native_device == NULL) {
        gpuhal_skip("the slot native_device is not offered");
        return;
    }
    gpuhal_step("the slot native_device");
    expect_native(opened->slots.native.native_device(opened->device, &native), &native, "native_device");
    if (native.type >= 64 || !in_kinds(context, GPUHAL_FACT_ADOPT_KINDS, native.type)) {
        gpuhal_skip("adopt_kinds does not state the type %u that native_device gives", native.type);
        return;
    }
    gpuhal_opened second;
    gpuhal_expect_ok(gpuhal_session_describe(context, context->index, &second.slots), "describe");
    gpuhal_step("open over an opened device");
    gpuhal_expect_ok(context->plugin->open(context->host, context->instance, context->index, &native, &second.device,
                                           &second.slots.ops),
                     "open over a native device");
    gpuhal_session_read(&second.slots, "open over a native device");
    gpuhal_area first_area, second_area;
    const uint64_t bytes = gpuhal_area_usual(context);
    gpuhal_area_init(&first_area, context, opened, GPUHAL_MEMORY_DEVICE, bytes);
    gpuhal_area_init(&second_area, context, &second, GPUHAL_MEMORY_DEVICE, bytes);
    gpuhal_area_reset(&first_area, 1, ROUTE_ANY);
    gpuhal_area_reset(&second_area, 2, ROUTE_ANY);
    gpuhal_area_verify(&second_area, (gpuhal_claim){.bytes = bytes}, ROUTE_ANY,
                       "memory of an opened device that took over another");
    gpuhal_area_finish(&second_area);
    gpuhal_session_close(context, &second);
    gpuhal_area_verify(&first_area, (gpuhal_claim){.bytes = bytes}, ROUTE_ANY,
                       "memory of a device after the device that took it over");
    gpuhal_area_reset(&first_area, 3, ROUTE_ANY);
    gpuhal_area_verify(&first_area, (gpuhal_claim){.bytes = bytes}, ROUTE_ANY,
                       "a device after the one that took it over was closed");
    gpuhal_area_finish(&first_area);
}

static void expect_not_wrapped(const gpuhal_opened *opened, gpuhal_native native, uint64_t bytes, const char *what)
{
    gpuhal_memory memory = {.size = sizeof memory};
    gpuhal_step("the slot wrap_memory");
    gpuhal_status status = opened->slots.native.wrap_memory(opened->device, &native, bytes, &memory);
    if (status != GPUHAL_ERROR_INVALID_ARGUMENT) {
        gpuhal_fail("wrap_memory returned %s for %s, instead of invalid argument", gpuhal_status_text(status), what);
    }
}

/* Wraps the result of native_memory on the same opened device. If wrapping needs more information (Vulkan needs the
 * usage), only refusals can be checked. */
void gpuhal_check_wrap_memory(gpuhal_context *context)
{
    const gpuhal_opened *opened = &context->opened;
    const gpuhal_slots *slots = &opened->slots;
    if (slots->native.wrap_memory == NULL || slots->native.native_memory == NULL) {
        gpuhal_skip("the slots wrap_memory and native_memory are not both offered");
        return;
    }
    gpuhal_area area;
    gpuhal_native native = {.size = sizeof native};
    gpuhal_memory wrapped = {.size = sizeof wrapped};
    gpuhal_area_init(&area, context, opened, GPUHAL_MEMORY_DEVICE, gpuhal_area_usual(context));
    gpuhal_step("the slot native_memory");
    expect_native(slots->native.native_memory(opened->device, &area.memory, &native), &native, "native_memory");
    gpuhal_native other = native;
    other.type = 0xdeadbeef;
    expect_not_wrapped(opened, other, area.bytes, "an object of a type that does not exist");
    gpuhal_step("the slot wrap_memory");
    gpuhal_status status = slots->native.wrap_memory(opened->device, &native, area.bytes, &wrapped);
    if (status == GPUHAL_ERROR_INVALID_ARGUMENT) {
        gpuhal_note("wrap_memory needs more than native_memory gives");
    } else {
        gpuhal_expect_ok(status, "wrap_memory");
        expect_not_wrapped(opened, native, UINT64_C(1) << 60, "a size that the object cannot hold");
        gpuhal_area_reset(&area, 1, ROUTE_ANY);
        gpuhal_pattern(area.expected, area.bytes, 2);
        gpuhal_plain_put(opened, &wrapped, 0, area.expected, area.bytes, ROUTE_ANY);
        gpuhal_plain_release(opened, &wrapped);
        gpuhal_area_verify(&area, (gpuhal_claim){.bytes = area.bytes}, ROUTE_ANY,
                           "bytes written through a wrapped buffer that was released");
    }
    gpuhal_area_finish(&area);
}

/* Device and host each write to one half of the memory and make it visible. Both halves must be intact afterwards: a
 * memory_invalidate() that transfers more than its range overwrites new bytes in one half with old ones. */
static void expect_narrow_invalidate(const gpuhal_opened *opened, const gpuhal_memory *memory, gpuhal_area *other,
                                unsigned char *host)
{
    const uint64_t half = gpuhal_round_up(other->bytes / 2, gpuhal_copy_unit(other->context));
    gpuhal_area_reset(other, 4, ROUTE_ANY);
    gpuhal_pattern(other->expected + half, other->bytes - half, 5);
    memcpy(host + half, other->expected + half, (size_t)(other->bytes - half));
    gpuhal_plain_copy(opened, memory, 0, &other->memory, 0, half);
    gpuhal_host_reads(opened, memory, 0, half);
    gpuhal_host_wrote(opened, memory, half, other->bytes - half);
    if (memcmp(host, other->expected, (size_t)other->bytes) != 0) {
        gpuhal_fail(
            "imported host memory, half written by the device and half by the host: the host does not see both halves");
    }
    gpuhal_plain_copy(opened, &other->memory, 0, memory, 0, other->bytes);
    gpuhal_area_verify(other, (gpuhal_claim){.bytes = other->bytes}, ROUTE_ANY,
                       "imported host memory, half written by the device and half by the host, as the device sees it");
}

/* An import that only copies the memory also returns the right bytes once. Only transfers in both directions show that
 * both sides use the same memory. */
void gpuhal_check_import_host(gpuhal_context *context)
{
    if (!in_kinds(context, GPUHAL_FACT_IMPORT_KINDS, GPUHAL_HANDLE_HOST_POINTER)) {
        gpuhal_skip("import_kinds does not state host memory");
        return;
    }
    const gpuhal_opened *opened = &context->opened;
    const uint64_t unit = gpuhal_device_fact(context, GPUHAL_FACT_IMPORT_ALIGNMENT_BYTES, 4096);
    gpuhal_area other;
    gpuhal_area_init(&other, context, opened, GPUHAL_MEMORY_DEVICE, gpuhal_round_up(gpuhal_area_usual(context), unit));
    unsigned char *host =
        gpuhal_own(aligned_alloc((size_t)(unit < sizeof(void *) ? sizeof(void *) : unit), (size_t)other.bytes));
    gpuhal_pattern(host, other.bytes, 1);
    const gpuhal_alloc alloc = {
        .size = sizeof alloc,
        .bytes = other.bytes,
        .handle = {.size = sizeof alloc.handle, .kind = GPUHAL_HANDLE_HOST_POINTER, .as.pointer = host},
    };
    gpuhal_memory memory = import(opened, &alloc);
    if (memory.host != host) {
        gpuhal_fail("imported host memory has another host address than the one that was passed");
    }
    gpuhal_area_reset(&other, 2, ROUTE_ANY);
    gpuhal_host_wrote(opened, &memory, 0, other.bytes);
    gpuhal_plain_copy(opened, &other.memory, 0, &memory, 0, other.bytes);
    gpuhal_area_changed(&other, 0, host, other.bytes);
    gpuhal_area_verify(&other, (gpuhal_claim){.bytes = other.bytes}, ROUTE_ANY, "copy from imported host memory");
    gpuhal_area_reset(&other, 3, ROUTE_ANY);
    gpuhal_plain_copy(opened, &memory, 0, &other.memory, 0, other.bytes);
    gpuhal_host_reads(opened, &memory, 0, other.bytes);
    if (memcmp(host, other.expected, (size_t)other.bytes) != 0) {
        gpuhal_fail("copy to imported host memory: the host does not see the bytes at its own address");
    }
    expect_narrow_invalidate(opened, &memory, &other, host);
    gpuhal_plain_release(opened, &memory);
    if (memcmp(host, other.expected, (size_t)other.bytes) != 0) {
        gpuhal_fail("releasing imported host memory changed its bytes");
    }
    gpuhal_area_finish(&other);
    free(host);
}

/* A plugin must refuse a descriptor of another object, and the caller keeps the descriptor. */
static void expect_refused_descriptor(const gpuhal_opened *opened, const gpuhal_alloc *exported,
                                      gpuhal_handle_kind kind)
{
    gpuhal_alloc alloc = *exported;
    gpuhal_memory memory = {.size = sizeof memory};
    int ends[2];
    if (pipe(ends) != 0) {
        gpuhal_fail("gpuhal-check cannot make a pipe");
    }
    alloc.handle = (gpuhal_handle){.size = sizeof alloc.handle, .kind = kind, .as.os = ends[0]};
    gpuhal_step("the slot allocate with a pipe as import");
    gpuhal_status status = opened->slots.ops.allocate(opened->device, &alloc, &memory);
    if (status >= 0) {
        gpuhal_fail("allocate returned %s for an import of a pipe as kind %u", gpuhal_status_text(status), kind);
    }
    if (fcntl(ends[0], F_GETFD) < 0) {
        gpuhal_fail("allocate refused an import of kind %u, and closed the descriptor", kind);
    }
    close(ends[0]);
    close(ends[1]);
}

/* Imports on a second opened device, because another process would receive the same handle. */
static void import_again(const gpuhal_context *context, gpuhal_area *area, const gpuhal_alloc *exported,
                         const gpuhal_handle *handle, uint64_t offset)
{
    gpuhal_opened second;
    gpuhal_session_open(context, &second);
    expect_refused_descriptor(&second, exported, handle->kind);
    gpuhal_alloc alloc = *exported;
    alloc.handle = *handle;
    alloc.import_offset = offset;
    gpuhal_memory same = import(&second, &alloc);
    gpuhal_pattern(area->expected, area->bytes, handle->kind);
    gpuhal_plain_put(&second, &same, 0, area->expected, area->bytes, ROUTE_ANY);
    gpuhal_area_verify(area, (gpuhal_claim){.bytes = area->bytes}, ROUTE_ANY,
                       "bytes written through an import of kind %u", handle->kind);
    gpuhal_plain_release(&second, &same);
    gpuhal_session_close(context, &second);
    if (fcntl((int)handle->as.os, F_GETFD) >= 0) {
        gpuhal_fail_by(34, "the descriptor that an import of kind %u took is still open after its release",
                       handle->kind);
    }
}

static gpuhal_handle export_once(const gpuhal_opened *opened, const gpuhal_memory *memory, gpuhal_handle_kind kind,
                                 uint64_t *out_offset)
{
    gpuhal_handle handle = {.size = sizeof handle};
    gpuhal_step("the slot export_memory");
    gpuhal_expect_ok(opened->slots.ops.export_memory(opened->device, memory, kind, &handle, out_offset),
                     "export_memory");
    if (handle.kind != kind) {
        gpuhal_fail("export_memory gave a handle of kind %u instead of %u", handle.kind, kind);
    }
    return handle;
}

static void export_and_import(const gpuhal_context *context, gpuhal_memory_kind memory, gpuhal_handle_kind kind)
{
    const gpuhal_opened *opened = &context->opened;
    const uint64_t bytes = gpuhal_area_usual(context);
    gpuhal_alloc alloc;
    gpuhal_area area = {.context = context, .opened = opened, .bytes = bytes};
    area.memory.size = sizeof area.memory;
    area.expected = gpuhal_own(calloc(3, (size_t)bytes));
    area.before = area.expected + bytes;
    area.actual = area.before + bytes;
    gpuhal_plain_allocate_exported(context, memory, kind, bytes, &alloc, &area.memory);
    uint64_t offset = 0;
    gpuhal_handle handle = export_once(opened, &area.memory, kind, &offset);
    const bool is_fd = kind == GPUHAL_HANDLE_OPAQUE_FD || kind == GPUHAL_HANDLE_DMABUF_FD;
    if (is_fd) { /* closes the first descriptor immediately, because the second descriptor must work without it */
        const gpuhal_handle first = handle;
        handle = export_once(opened, &area.memory, kind, &offset);
        if (handle.as.os == first.as.os && first.as.os >= 0) {
            gpuhal_fail("export_memory gave descriptor %" PRIdPTR " twice: each one is the caller's to close",
                        first.as.os);
        }
        close((int)first.as.os);
    }
    const int flags = is_fd ? fcntl((int)handle.as.os, F_GETFD) : FD_CLOEXEC;
    if (flags < 0) {
        gpuhal_fail("export_memory gave %" PRIdPTR " which is not a descriptor", handle.as.os);
    }
    if (!(flags & FD_CLOEXEC)) {
        gpuhal_fail("export_memory gave a descriptor that programs started by this one would inherit");
    }
    if (is_fd && in_kinds(context, GPUHAL_FACT_IMPORT_KINDS, kind)) {
        import_again(context, &area, &alloc, &handle, offset);
    } else if (is_fd) {
        close((int)handle.as.os);
    }
    gpuhal_plain_release(opened, &area.memory);
    free(area.expected);
}

/* A host pointer needs no slot; allocate_kinds checks host pointers. */
void gpuhal_check_export_import(gpuhal_context *context)
{
    if (!gpuhal_offered(context->opened.slots.ops.export_memory != NULL, "export_memory")) {
        return;
    }
    for (gpuhal_handle_kind kind = GPUHAL_HANDLE_OPAQUE_FD; kind <= GPUHAL_HANDLE_IPC; kind++) {
        for (uint32_t kinds = gpuhal_exportable(context);
             kinds != 0 && in_kinds(context, GPUHAL_FACT_EXPORT_KINDS, kind); kinds &= kinds - 1) {
            export_and_import(context, (gpuhal_memory_kind)__builtin_ctz(kinds), kind);
        }
    }
}
