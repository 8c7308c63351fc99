/* checks_share.c: memory and handles that others use too: native objects, imported host memory, exported memory. */
#include "area.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whoever asked for a handle will call the vendor's API with it at once: 0 is never a handle. */
static void expect_native(gpuhal_status status, const gpuhal_native *native, const char *slot)
{
    if (status != GPUHAL_OK) {
        gpuhal_fail("the slot %s is there, and answered %s", slot, gpuhal_status_text(status));
    }
    if (native->size != sizeof *native) {
        gpuhal_fail("%s changed the size member of gpuhal_native to %u", slot, native->size);
    }
    if (native->type == 0) {
        gpuhal_fail("%s gave no type", slot);
    }
    if (native->values[0] == 0 && native->typed == NULL) {
        gpuhal_fail("%s gave no value", slot);
    }
}

static void check_native_queue(const gpuhal_trial *trial)
{
    const gpuhal_ops *ops = &trial->opening.slots.ops;
    gpuhal_plugin_queue *queue = NULL;
    gpuhal_plugin_event *event = NULL;
    gpuhal_native native = {.size = sizeof native};
    gpuhal_step("the slot queue_create");
    gpuhal_expect_ok(ops->queue_create(trial->opening.device, 0, 0, NULL, &queue), "queue_create");
    gpuhal_expect_ok(ops->event_create(trial->opening.device, 0, &event), "event_create");
    gpuhal_expect_ok(ops->event_record(queue, event), "event_record");
    if (ops->native_queue != NULL) {
        gpuhal_step("the slot native_queue");
        expect_native(ops->native_queue(queue, &native), &native, "native_queue");
    }
    if (ops->native_event != NULL) {
        native = (gpuhal_native){.size = sizeof native};
        gpuhal_step("the slot native_event");
        expect_native(ops->native_event(event, &native), &native, "native_event");
    }
    while (ops->event_query(event) == GPUHAL_NOT_READY) {
        usleep(100);
    }
    ops->event_destroy(event);
    ops->queue_destroy(queue);
}

/* Which type stands for what is in native.h; here it is enough that there is one, and a value. */
void gpuhal_check_native(gpuhal_trial *trial)
{
    const gpuhal_opening *opening = &trial->opening;
    const gpuhal_ops *ops = &opening->slots.ops;
    gpuhal_native native = {.size = sizeof native};
    if (ops->native_device == NULL && ops->native_memory == NULL && ops->native_queue == NULL && ops->native_event == NULL) {
        gpuhal_skip("no native handles are offered");
        return;
    }
    if (ops->native_device != NULL) {
        gpuhal_step("the slot native_device");
        expect_native(ops->native_device(opening->device, &native), &native, "native_device");
    }
    if (ops->native_memory != NULL) {
        gpuhal_memory memory;
        gpuhal_expect_ok(gpuhal_plain_allocate(opening, GPUHAL_MEMORY_DEVICE, gpuhal_area_usual(trial), 0, &memory), "allocate");
        native = (gpuhal_native){.size = sizeof native};
        gpuhal_step("the slot native_memory");
        expect_native(ops->native_memory(opening->device, &memory, &native), &native, "native_memory");
        gpuhal_plain_release(opening, &memory);
    }
    if (ops->queue_create != NULL && (ops->native_queue != NULL || ops->native_event != NULL)) {
        check_native_queue(trial);
    }
}

/* Ownership of a descriptor goes to the plugin when this succeeds. */
static gpuhal_memory import(const gpuhal_opening *opening, const gpuhal_handle *handle, uint64_t offset, uint64_t bytes)
{
    const gpuhal_alloc alloc = {.size = sizeof alloc, .bytes = bytes, .import = *handle, .import_offset = offset};
    gpuhal_memory memory = {.size = sizeof memory};
    gpuhal_step("the slot allocate with an import");
    gpuhal_expect_ok(opening->slots.ops.allocate(opening->device, &alloc, &memory), "allocate with an import");
    return memory;
}

static bool in_kinds(const gpuhal_trial *trial, gpuhal_key fact, gpuhal_handle_kind kind)
{
    return gpuhal_trial_fact(trial, fact, 0) >> kind & 1;
}

/* An import that copies gives the right bytes once; that it is the same memory shows only in both directions. */
void gpuhal_check_import_host(gpuhal_trial *trial)
{
    if (!in_kinds(trial, GPUHAL_FACT_IMPORT_KINDS, GPUHAL_HANDLE_HOST_POINTER)) {
        gpuhal_skip("import_kinds does not state host memory");
        return;
    }
    const gpuhal_opening *opening = &trial->opening;
    const uint64_t unit = gpuhal_trial_fact(trial, GPUHAL_FACT_IMPORT_ALIGNMENT_BYTES, 4096);
    gpuhal_area other;
    gpuhal_area_init(&other, trial, opening, GPUHAL_MEMORY_DEVICE, gpuhal_round_up(gpuhal_area_usual(trial), unit));
    unsigned char *host = gpuhal_own(aligned_alloc((size_t)(unit < sizeof(void *) ? sizeof(void *) : unit), (size_t)other.bytes));
    gpuhal_pattern(host, other.bytes, 1);
    const gpuhal_handle handle = {.size = sizeof handle, .kind = GPUHAL_HANDLE_HOST_POINTER, .as.pointer = host};
    gpuhal_memory memory = import(opening, &handle, 0, other.bytes);
    gpuhal_area_reset(&other, 2, ROUTE_ANY);
    gpuhal_host_wrote(opening, &memory, 0, other.bytes);
    gpuhal_plain_copy(opening, &other.memory, 0, &memory, 0, other.bytes);
    gpuhal_area_changed(&other, 0, host, other.bytes);
    gpuhal_area_verify(&other, (gpuhal_claim){.bytes = other.bytes}, ROUTE_ANY, "copy from imported host memory");
    gpuhal_area_reset(&other, 3, ROUTE_ANY);
    gpuhal_plain_copy(opening, &memory, 0, &other.memory, 0, other.bytes);
    gpuhal_host_reads(opening, &memory, 0, other.bytes);
    if (memcmp(host, other.expected, (size_t)other.bytes) != 0) {
        gpuhal_fail("copy to imported host memory: the host does not see the bytes at its own address");
    }
    gpuhal_plain_release(opening, &memory);
    gpuhal_area_finish(&other);
    free(host);
}

/* Within one process, through a second opening: what another process would see is the same handle. */
static void export_and_import(const gpuhal_trial *trial, gpuhal_handle_kind kind)
{
    const gpuhal_opening *opening = &trial->opening;
    const uint64_t bytes = gpuhal_area_usual(trial);
    const gpuhal_alloc alloc = {.size = sizeof alloc, .bytes = bytes, .export_kinds = 1u << kind};
    gpuhal_area area = {.trial = trial, .opening = opening, .bytes = bytes};
    area.memory.size = sizeof area.memory;
    area.expected = gpuhal_own(calloc(3, (size_t)bytes));
    area.before = area.expected + bytes;
    area.actual = area.before + bytes;
    gpuhal_step("the slot allocate for export");
    gpuhal_expect_ok(opening->slots.ops.allocate(opening->device, &alloc, &area.memory), "allocate for export");
    gpuhal_handle handle = {.size = sizeof handle};
    uint64_t offset = 0;
    gpuhal_step("the slot export_memory");
    gpuhal_expect_ok(opening->slots.ops.export_memory(opening->device, &area.memory, kind, &handle, &offset), "export_memory");
    if (handle.kind != kind) {
        gpuhal_fail("export_memory gave a handle of kind %u instead of %u", handle.kind, kind);
    }
    const bool is_fd = kind == GPUHAL_HANDLE_OPAQUE_FD || kind == GPUHAL_HANDLE_DMABUF_FD;
    if (is_fd && fcntl((int)handle.as.os, F_GETFD) < 0) {
        gpuhal_fail("export_memory gave %" PRIdPTR " as a descriptor, which is none", handle.as.os);
    }
    if (in_kinds(trial, GPUHAL_FACT_IMPORT_KINDS, kind)) {
        gpuhal_opening second;
        gpuhal_session_open(trial, &second);
        gpuhal_memory same = import(&second, &handle, offset, bytes);
        gpuhal_pattern(area.expected, bytes, kind);
        gpuhal_plain_put(&second, &same, 0, area.expected, bytes, ROUTE_ANY);
        gpuhal_area_verify(&area, (gpuhal_claim){.bytes = bytes}, ROUTE_ANY, "bytes written through an import of kind %u", kind);
        gpuhal_plain_release(&second, &same);
        gpuhal_session_close(trial, &second);
    } else if (is_fd) {
        close((int)handle.as.os);
    }
    gpuhal_plain_release(opening, &area.memory);
    free(area.expected);
}

void gpuhal_check_export_import(gpuhal_trial *trial)
{
    if (trial->opening.slots.ops.export_memory == NULL) {
        gpuhal_skip("the slot export_memory is not offered");
        return;
    }
    for (gpuhal_handle_kind kind = GPUHAL_HANDLE_HOST_POINTER; kind <= GPUHAL_HANDLE_IPC; kind++) {
        if (in_kinds(trial, GPUHAL_FACT_EXPORT_KINDS, kind)) {
            export_and_import(trial, kind);
        }
    }
}
