/* tests/unit/fork_support.h: objects of each kind, and checks that run in a forked child. A call with an object of the
 * parent must be refused. A release of such an object must not call a driver. New objects must work. */
#ifndef GPUHAL_TEST_FORK_SUPPORT_H
#define GPUHAL_TEST_FORK_SUPPORT_H

#include "support/child.h"
#include "support/mock.h"
#include "support/record.h"
#include "test.h"

#include <gpuhal/file.h>
#include <gpuhal/link.h>
#include <gpuhal/view.h>
#include <gpuhal/queue.h>
#include <gpuhal/node/registry.h>
#include <gpuhal/report.h>
#include <gpuhal/rescan.h>
#include <gpuhal/share.h>
#include <gpuhal/transfer.h>
#include <gpuhal/usage.h>

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 4096, SECOND_MS = 1000 };

/* The parent's objects, at least one of each kind. */
typedef struct objects {
    gpuhal *gpu;
    gpuhal_device *mock, *other, *cpu;
    gpuhal_buffer *buffer, *on_cpu;
    gpuhal_queue *queue, *queue_on_cpu;
    gpuhal_event *event, *host_event;
    gpuhal_view *view;
    void *mapped;
} objects;

static inline void make_objects(objects *out)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2, .devices = {{.export_kinds = 1u << GPUHAL_HANDLE_HOST_POINTER}}};
    *out = (objects){.gpu = gpuhal_mock_open(NULL, 1)};
    out->mock = gpuhal_device_at(out->gpu, 0);
    out->other = gpuhal_device_at(out->gpu, 1);
    out->cpu = gpuhal_device_at(out->gpu, 2);
    out->buffer = gpuhal_mock_buffer(out->gpu, 0, BYTES);
    out->on_cpu = gpuhal_mock_buffer(out->gpu, 2, BYTES);
    assert_int_equal(gpuhal_queue_create(out->mock, NULL, &out->queue), GPUHAL_OK);
    assert_int_equal(gpuhal_queue_create(out->cpu, NULL, &out->queue_on_cpu), GPUHAL_OK);
    assert_int_equal(gpuhal_event_create(out->gpu, 0, &out->event), GPUHAL_OK);
    assert_int_equal(gpuhal_event_create(out->gpu, GPUHAL_EVENT_HOST, &out->host_event), GPUHAL_OK);
    assert_int_equal(gpuhal_view_of(out->gpu, 0, &out->view), GPUHAL_OK);
    assert_int_equal(gpuhal_buffer_map(out->on_cpu, 0, BYTES, GPUHAL_ACCESS_WRITE, &out->mapped), GPUHAL_OK);
}

static inline void release_objects(objects *own)
{
    gpuhal_view_release(own->view);
    gpuhal_event_destroy(own->host_event);
    gpuhal_event_destroy(own->event);
    gpuhal_queue_destroy(own->queue_on_cpu);
    gpuhal_queue_destroy(own->queue);
    gpuhal_buffer_release(own->on_cpu);
    gpuhal_buffer_release(own->buffer);
    gpuhal_close(own->gpu);
}

/* Only the parent calls this function; a child must not unmap. */
static inline void unmap_and_release_objects(objects *own)
{
    assert_int_equal(gpuhal_buffer_unmap(own->on_cpu, own->mapped), GPUHAL_OK);
    release_objects(own);
}

/* Counts the lines of a log. `user` is an _Atomic uint64_t. */
static inline void count_line(void *user, int32_t level, const char *line)
{
    (void)level, (void)line;
    atomic_fetch_add((_Atomic uint64_t *)user, 1);
}

/* ---- the child */

static inline void expect_ended_well(pid_t child)
{
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Forks, and waits until run(own) has returned in the child. */
static inline void run_in_child(void (*run)(objects *own), objects *own)
{
    const pid_t child = begin_child();
    if (child == 0) {
        run(own);
        _exit(0);
    }
    expect_ended_well(child);
}

/* ---- checks in the child */

static inline void never(void *user, gpuhal_status status)
{
    (void)user, (void)status;
    abort();
}

static inline void never_changed(void *user, const gpuhal_change *change)
{
    (void)user, (void)change;
    abort();
}

static inline gpuhal_status never_called(void *user)
{
    (void)user;
    abort();
}

static inline gpuhal_status never_native(void *user, const gpuhal_native *native)
{
    (void)user, (void)native;
    abort();
}

/* Fails with the call's text if the call was not refused with the expected message. */
#define REFUSED(call) expect_refusal(call, #call)
static inline void expect_refusal(gpuhal_status status, const char *call)
{
    const char *sentence = gpuhal_last_error()->sentence;
    if (status != GPUHAL_ERROR_FORKED || !strstr(sentence, "was forked: open a gpuhal object in this process")) {
        fprintf(stderr, "%s: %s: %s\n", call, gpuhal_status_name(status), sentence);
        _exit(1);
    }
}

static inline void expect_object_refused(gpuhal *gpu, gpuhal_view *of_parent)
{
    gpuhal_device *device = NULL;
    gpuhal_event *event = NULL;
    gpuhal_buffer *buffer = NULL;
    gpuhal_view *view = NULL;
    gpuhal_os_handle descriptor = -1;
    gpuhal_plugin_report report = {.size = sizeof report};
    gpuhal_environment_entry entry = {.size = sizeof entry};
    gpuhal_change change = {.size = sizeof change};
    gpuhal_plugin_record plugin = {.size = sizeof plugin};
    gpuhal_status ended = GPUHAL_OK;
    void *user = NULL;
    uint64_t number = 0;
    char why[64];
    REFUSED(gpuhal_select(gpu, "cpu", 0, &device, NULL));
    REFUSED(gpuhal_device_by_native(gpu, "mock", 0, &device));
    REFUSED(gpuhal_environment_at(gpu, 0, &entry));
    REFUSED(gpuhal_event_create(gpu, 0, &event));
    REFUSED(gpuhal_completion_descriptor(gpu, &descriptor));
    REFUSED(gpuhal_next_completion(gpu, &user, &ended));
    REFUSED(gpuhal_buffer_find(gpu, 1, &buffer, &number));
    REFUSED(gpuhal_rescan(gpu, NULL));
    REFUSED(gpuhal_on_change(gpu, never_changed, NULL));
    REFUSED(gpuhal_change_descriptor(gpu, &descriptor));
    REFUSED(gpuhal_next_change(gpu, &change));
    REFUSED(gpuhal_view_of(gpu, 0, &view));
    REFUSED(gpuhal_view_get(of_parent, GPUHAL_RECORD_PLUGIN, 0, &report));
    REFUSED(gpuhal_view_get(of_parent, GPUHAL_RECORD_REGISTRY_PLUGIN, 0, &plugin));
    REFUSED(gpuhal_registry_plugin_stale(of_parent, 0, why, sizeof why));
    REFUSED(gpuhal_view_write(of_parent, "/nowhere/x"));
}

static inline void expect_device_refused(gpuhal_device *device, gpuhal_device *other, gpuhal_buffer *buffer)
{
    gpuhal_value value = {.key = GPUHAL_VALUE_MEMORY_HELD_BYTES};
    gpuhal_native native = {.size = sizeof native, .type = GPUHAL_NATIVE_OPENCL_DEVICE};
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 16, .export_kinds = 1u << GPUHAL_HANDLE_OPAQUE_FD};
    const gpuhal_handle handle = {.size = sizeof handle, .kind = GPUHAL_HANDLE_OPAQUE_FD, .as.os = 0};
    const gpuhal_host_import import = {.size = sizeof import, .memory = &value, .bytes = sizeof value};
    gpuhal_usage usage = {.size = sizeof usage};
    gpuhal_pair_traffic traffic = {.size = sizeof traffic};
    gpuhal_vendor_fn *function = NULL;
    gpuhal_buffer *made = NULL;
    gpuhal_queue *queue = NULL;
    gpuhal_handle_kind kind = 0;
    gpuhal_key key = 0;
    const void *extension = NULL;
    const char *text = NULL;
    uint64_t number = 0;
    uint32_t one = 0, two = 0;
    REFUSED(gpuhal_device_u64(device, GPUHAL_FACT_MEMORY_TOTAL_BYTES, &number));
    REFUSED(gpuhal_device_text(device, GPUHAL_FACT_NAME, &text));
    REFUSED(gpuhal_device_key_at(device, 0, &key));
    REFUSED(gpuhal_device_physical(device, &one, &two));
    REFUSED(gpuhal_device_open(device));
    REFUSED(gpuhal_device_adopt(device, &native));
    REFUSED(gpuhal_device_limit_memory(device, 1));
    REFUSED(gpuhal_device_sample(device, 0, &value, 1, NULL));
    REFUSED(gpuhal_device_native(device, &native));
    REFUSED(gpuhal_device_symbol(device, "x", &function));
    REFUSED(gpuhal_device_extension(device, "x", &extension));
    REFUSED(gpuhal_device_status(device));
    REFUSED(gpuhal_device_verify(device));
    REFUSED(gpuhal_device_usage(device, &usage));
    REFUSED(gpuhal_device_synchronize(device, 0));
    REFUSED(gpuhal_pair_usage(device, other, &traffic));
    REFUSED(gpuhal_link_u64(device, other, GPUHAL_LINK_KIND, &number));
    REFUSED(gpuhal_link_text(device, other, GPUHAL_LINK_NAME, &text));
    REFUSED(gpuhal_link_verify(device, other));
    REFUSED(gpuhal_share_query(device, GPUHAL_MEMORY_DEVICE, other, &kind, NULL));
    REFUSED(gpuhal_buffer_share(buffer, other, &made));
    REFUSED(gpuhal_buffer_create(device, &desc, &made));
    REFUSED(gpuhal_buffer_import(device, &desc, &handle, &made));
    REFUSED(gpuhal_buffer_import_host(device, &import, &made, &number));
    REFUSED(gpuhal_buffer_wrap(device, &native, 16, NULL, NULL, &made));
    REFUSED(gpuhal_queue_create(device, NULL, &queue));
}

static inline void expect_buffer_refused(gpuhal_buffer *buffer, void *mapped)
{
    const gpuhal_file file = {.size = sizeof file, .path = "/dev/null"};
    const gpuhal_rect rect = {.buffer = buffer}, to = {.buffer = buffer, .offset = BYTES / 2};
    gpuhal_handle handle = {.size = sizeof handle};
    gpuhal_native native = {.size = sizeof native};
    gpuhal_path path = 0;
    char byte = 0;
    void *pointer = NULL;
    REFUSED(gpuhal_buffer_map(buffer, 0, 1, GPUHAL_ACCESS_READ, &pointer));
    REFUSED(gpuhal_buffer_unmap(buffer, mapped));
    REFUSED(gpuhal_buffer_native(buffer, &native));
    REFUSED(gpuhal_buffer_export(buffer, GPUHAL_HANDLE_HOST_POINTER, &handle));
    REFUSED(gpuhal_buffer_synchronize(buffer));
    REFUSED(gpuhal_write(NULL, buffer, 0, &byte, 1));
    REFUSED(gpuhal_read(NULL, &byte, buffer, 0, 1));
    REFUSED(gpuhal_copy(NULL, buffer, 0, buffer, 1, 1));
    REFUSED(gpuhal_fill(NULL, buffer, 0, 1, 0, 1));
    REFUSED(gpuhal_copy_rect(NULL, &to, &rect, (const uint64_t[]){1, 1, 1}));
    REFUSED(gpuhal_read_file(NULL, buffer, 0, &file, 1));
    REFUSED(gpuhal_write_file(NULL, &file, buffer, 0, 1));
    REFUSED(gpuhal_copy_path(buffer, buffer, &path));
}

static inline void expect_queue_refused(gpuhal_queue *queue, gpuhal_event *event, gpuhal_event *host_event,
                                        gpuhal_buffer *buffer)
{
    gpuhal_native native = {.size = sizeof native};
    gpuhal_os_handle descriptor = -1;
    uint64_t number = 0;
    REFUSED(gpuhal_fill(queue, buffer, 0, 1, 0, 1));
    REFUSED(gpuhal_queue_flush(queue));
    REFUSED(gpuhal_queue_wait(queue, event));
    REFUSED(gpuhal_queue_synchronize(queue, UINT64_MAX));
    REFUSED(gpuhal_queue_reset(queue, UINT64_MAX));
    REFUSED(gpuhal_queue_native_begin(queue, UINT64_MAX, &native));
    REFUSED(gpuhal_queue_native_end(queue));
    REFUSED(gpuhal_queue_keep(queue, &buffer, 1));
    REFUSED(gpuhal_queue_call(queue, never_called, NULL));
    REFUSED(gpuhal_queue_native_call(queue, never_native, NULL));
    REFUSED(gpuhal_event_record(event, queue));
    REFUSED(gpuhal_event_poll(event));
    REFUSED(gpuhal_event_wait(event, UINT64_MAX));
    REFUSED(gpuhal_event_descriptor(event, &descriptor));
    REFUSED(gpuhal_event_on_completion(event, never, NULL));
    REFUSED(gpuhal_event_watch(event, NULL));
    REFUSED(gpuhal_event_elapsed(event, event, &number));
    REFUSED(gpuhal_event_signal(host_event, GPUHAL_OK));
}

static inline uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

static inline int64_t calls_of_mock(void)
{
    int64_t calls = gpuhal_mock.enumerations;
    for (int i = 0; i < GPUHAL_MOCK_DEVICES; i++) {
        const gpuhal_mock_device *d = &gpuhal_mock.devices[i];
        calls += d->openings + d->allocations + d->copies + d->reads + d->writes + d->fills;
        calls += d->rects + d->maps + d->imports + d->cleans;
        calls -= d->allocated_bytes; /* not a call count, but changes if a buffer is released */
    }
    return calls;
}

/* Expects that every call with the objects is refused, and that their release returns immediately without a plugin
 * call. */
static inline void expect_all_refused(objects *own)
{
    const int64_t calls = calls_of_mock();
    expect_object_refused(own->gpu, own->view);
    expect_device_refused(own->mock, own->other, own->buffer);
    expect_device_refused(own->cpu, own->mock, own->on_cpu);
    expect_buffer_refused(own->buffer, NULL);
    expect_buffer_refused(own->on_cpu, own->mapped);
    expect_queue_refused(own->queue, own->event, own->host_event, own->buffer);
    expect_queue_refused(own->queue_on_cpu, own->event, own->host_event, own->on_cpu);
    const uint64_t begun = now_ms();
    release_objects(own);
    if (now_ms() - begun > SECOND_MS || calls_of_mock() != calls) {
        fprintf(stderr, "giving back took %llu ms, or called the plugin\n", (unsigned long long)(now_ms() - begun));
        _exit(2);
    }
}

static inline void expect_own_object_works(void)
{
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    gpuhal_plugin_report report = {.size = sizeof report};
    gpuhal_device *device = NULL;
    const char *why = NULL;
    bool good = gpuhal_device_count(gpu) == 1 && record_now(gpu, GPUHAL_RECORD_PLUGIN, 0, &report) == GPUHAL_OK &&
                report.state == GPUHAL_PLUGIN_FORKED && strstr(report.reason, "fork before opening, or exec");
    good = good && gpuhal_select(gpu, "mock:0", 0, &device, NULL) == GPUHAL_ERROR_NOT_FOUND &&
           strstr(gpuhal_last_error()->sentence, "before this process was forked");
    const char *const general[] = {"gpu", "name=mock*", "pci=0000:01:00.0"};
    for (size_t i = 0; i < sizeof general / sizeof *general; i++) {
        good = good && gpuhal_select(gpu, general[i], 0, &device, &why) == GPUHAL_ERROR_NOT_FOUND &&
               strstr(gpuhal_last_error()->sentence, "; mock: started before this process was forked");
    }
    for (uint32_t flags = 0; flags <= GPUHAL_SELECT_ALLOW_CPU; flags++) {
        good = good && gpuhal_select(gpu, flags ? "gpu" : "auto", flags, &device, &why) == GPUHAL_OK &&
               strstr(why, "using the CPU") && strstr(why, "; mock: started before this process was forked");
    }
    good = good && gpuhal_select(gpu, "cpu:0", 0, &device, NULL) == GPUHAL_OK &&
           gpuhal_device_verify(device) == GPUHAL_OK;
    good = good && gpuhal_rescan(gpu, NULL) == GPUHAL_OK && gpuhal_device_count(gpu) == 1;
    if (!good) {
        fprintf(stderr, "%u devices, mock: %s: %s; %s\n", gpuhal_device_count(gpu),
                gpuhal_plugin_state_name(report.state), report.reason, gpuhal_last_error()->sentence);
        _exit(3);
    }
    gpuhal_close(gpu);
}

static inline void expect_refused_and_own_object_works(objects *own)
{
    expect_all_refused(own);
    expect_own_object_works();
}

#endif
