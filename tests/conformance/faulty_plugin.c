/* faulty_plugin.c: handshake, facts, slots and openings of the misbehaving plugin. */
#include "faulty.h"

#include <gpuhal/native.h>

#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_uint openings;
static atomic_uint enumerations;
static atomic_uint starts;

static _Atomic(const gpuhal_host *) kept; /* of the last start */

static void take_signal(int number)
{
    (void)number;
}

static gpuhal_status faulty_start(const gpuhal_host *host)
{
    kept = host;
    if (is(start_crashes)) {
        raise(SIGSEGV);
    }
    if (is(start_no_driver)) {
        return host->report(host, GPUHAL_ERROR_NO_DRIVER, "dlopen", 0, "tried libfaulty.so.1: no such file");
    }
    if (is(start_once) && atomic_fetch_add(&starts, 1) > 0) {
        return host->report(host, GPUHAL_ERROR_BUSY, NULL, 0, "started already");
    }
    if (is(changes_locale)) {
        setlocale(LC_ALL, "C");
    }
    if (is(changes_environment)) {
        setenv("GPUHAL_FAULTY", "1", 1);
    }
    if (is(installs_handler)) {
        signal(SIGSEGV, take_signal);
    }
    return GPUHAL_OK;
}

static void tell_numbers(const gpuhal_host *host, gpuhal_sink *sink)
{
    const bool large = is(offset_32) || is(size_32);
    uint64_t stated = 0;
    for (gpuhal_memory_kind kind = GPUHAL_MEMORY_DEVICE; kind <= GPUHAL_MEMORY_DEVICE_MAPPED; kind++) {
        stated |= gpuhal_faulty_states(kind) ? 1u << kind : 0;
    }
    host->u64(host, sink, GPUHAL_FACT_TYPE, large ? GPUHAL_DEVICE_GPU : GPUHAL_DEVICE_ACCELERATOR);
    if (!is(fact_mandatory)) {
        host->u64(host, sink, GPUHAL_FACT_SOFTWARE, 1);
    }
    host->u64(host, sink, GPUHAL_FACT_MEMORY_KINDS, stated);
    host->u64(host, sink, GPUHAL_FACT_MEMORY_TOTAL_BYTES, is(fact_zero_total) ? 0 : TOTAL_BYTES);
    host->u64(host, sink, GPUHAL_FACT_ALLOCATION_MAX_BYTES, TOTAL_BYTES / 2);
    host->u64(host, sink, GPUHAL_FACT_BINDING_ALIGNMENT_BYTES, 64);
    host->u64(host, sink, GPUHAL_FACT_COPY_ALIGNMENT_BYTES, is(good_minimal) ? 4 : 1);
    host->u64(host, sink, GPUHAL_FACT_FILL_ALIGNMENT_BYTES, is(fact_alignment) ? 12 : 1);
    host->u64(host, sink, GPUHAL_FACT_IMPORT_ALIGNMENT_BYTES, 4096);
    host->u64(host, sink, GPUHAL_FACT_COMPUTE_UNITS, is(fact_opening) && openings > 0 ? 5 : 4);
    host->u64(host, sink, GPUHAL_FACT_NATIVE_INDEX, is(fact_wanders) ? atomic_fetch_add(&enumerations, 1) : 0);
    if (!is(good_minimal)) {
        host->u64(host, sink, GPUHAL_FACT_ADOPT_KINDS, 1u << GPUHAL_NATIVE_OPENCL_BUFFER);
        host->u64(host, sink, GPUHAL_FACT_IMPORT_KINDS, 1u << GPUHAL_HANDLE_OPAQUE_FD | 1u << GPUHAL_HANDLE_HOST_POINTER);
        host->u64(host, sink, GPUHAL_FACT_EXPORT_KINDS, is(slot_without_fact) ? 0 : 1u << GPUHAL_HANDLE_OPAQUE_FD);
    }
}

static void tell_texts(const gpuhal_host *host, gpuhal_sink *sink)
{
    host->text(host, sink, GPUHAL_FACT_NAME, is(fact_control) ? "Test\tDevice" : "Test Device");
    host->text(host, sink, GPUHAL_FACT_VENDOR, "Test");
    host->text(host, sink, GPUHAL_FACT_UUID,
               is(fact_uuid) ? "01234567-89AB-CDEF-0123-456789ABCDEF" : "01234567-89ab-cdef-0123-456789abcdef");
    host->text(host, sink, GPUHAL_FACT_PCI_ADDRESS, is(fact_pci) ? "c1:00.0" : "0000:c1:00.0");
    host->missing(host, sink, GPUHAL_FACT_LUID, is(fact_no_reason) ? 0 : GPUHAL_MISSING_NOT_SUPPORTED, "a test has none");
    if (is(fact_wrong_form)) {
        host->text(host, sink, GPUHAL_FACT_VENDOR_ID, "0x10de");
    }
}

static gpuhal_status faulty_enumerate(const gpuhal_host *host, gpuhal_sink *sink)
{
    while (is(enumerate_hangs)) {
        pause();
    }
    if (is(enumerate_nothing)) {
        return GPUHAL_OK;
    }
    if (is(enumerate_takes)) {
        gpuhal_faulty_take(UINT64_C(96) << 10);
    }
    host = is(host_kept) ? kept : host;
    for (int i = 0; i < (is(device_twice) ? 2 : 1); i++) {
        host->device(host, sink, 0);
        tell_texts(host, sink);
        tell_numbers(host, sink);
    }
    return GPUHAL_OK;
}

static gpuhal_status faulty_health(gpuhal_plugin_device *device)
{
    (void)device;
    return is(health_lost) ? GPUHAL_ERROR_DEVICE_LOST : GPUHAL_OK;
}

static gpuhal_status faulty_native_device(gpuhal_plugin_device *device, gpuhal_native *out_native)
{
    out_native->type = GPUHAL_NATIVE_OPENCL_DEVICE;
    out_native->values[0] = (uintptr_t)device;
    return GPUHAL_OK;
}

static gpuhal_status faulty_describe(uint32_t index, gpuhal_ops *out_ops)
{
    if (index != 0 && !is(describe_any_index)) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    gpuhal_faulty_describe_memory(out_ops);
    gpuhal_faulty_describe_transfer(out_ops);
    if (is(good_minimal)) {
        return GPUHAL_OK;
    }
    gpuhal_faulty_describe_queue(out_ops);
    if (!is(open_adds_slot)) {
        out_ops->query_health = faulty_health;
    }
    out_ops->native_device = faulty_native_device;
    if (is(describe_half_group)) {
        out_ops->event_query = NULL;
    }
    if (is(describe_no_copy)) {
        out_ops->copy = NULL;
    }
    if (is(describe_no_function)) {
        const uintptr_t rubbish = 0x1234;
        memcpy(&out_ops->write, &rubbish, sizeof rubbish);
    }
    if (is(describe_past_end)) {
        memset((char *)out_ops + GPUHAL_OPS_SPACE, 0, 16);
    }
    return GPUHAL_OK;
}

static void *idle(void *unused)
{
    (void)unused;
    for (;;) {
        pause();
    }
    return NULL;
}

/* What openings do to the process that they should not. */
static void misbehave_once(void)
{
    static _Atomic unsigned settling;
    if (is(good_settles) && atomic_fetch_add(&settling, 1) < 300) {
        char *arena = malloc(8192);
        memset(arena, 1, 8192);
        __asm__ volatile("" : : "r"(arena) : "memory");
    }
    if (is(leak_memory)) {
        char *lost = malloc(8192);
        memset(lost, 1, 8192);
        __asm__ volatile("" : : "r"(lost) : "memory");
    }
    if (is(leak_thread)) {
        pthread_t thread;
        pthread_create(&thread, NULL, idle, NULL);
        pthread_detach(thread);
    }
    if (is(leak_descriptor) && open("/dev/null", O_RDONLY) < 0) {
        return;
    }
    if (is(changes_directory) && chdir("/") != 0) {
        return;
    }
    if (is(changes_mask)) {
        umask(077);
    }
    if (is(blocks_signal)) {
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &set, NULL);
    }
    if (is(prints_output)) {
        printf("a word on standard output\n");
    }
    if (is(prints_error)) {
        fprintf(stderr, "a word on standard error\n");
    }
}

static gpuhal_status faulty_open(const gpuhal_host *host, uint32_t index, const gpuhal_native *adopt,
                                 gpuhal_plugin_device **out_device, gpuhal_ops *ops)
{
    if (index != 0 && !is(open_any_index)) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    if (adopt != NULL && !is(open_adopts)) {
        return host->report(host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0, "there is nothing to take over");
    }
    misbehave_once();
    gpuhal_plugin_device *device = calloc(1, sizeof *device);
    if (device == NULL) {
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    device->host = host;
    if (is(open_adds_slot)) {
        ops->query_health = faulty_health;
    }
    atomic_fetch_add(&openings, 1);
    *out_device = device;
    return GPUHAL_OK;
}

static void faulty_close(gpuhal_plugin_device *device)
{
    if (is(open_shared)) {
        gpuhal_faulty_forget(device);
    }
    atomic_fetch_sub(&openings, 1);
    free(device);
}

static void tell_value(const gpuhal_host *host, gpuhal_sink *sink, const gpuhal_key *keys, uint32_t count, gpuhal_key key,
                       uint64_t value)
{
    bool wanted = count == 0;
    for (uint32_t k = 0; k < count; k++) {
        wanted = wanted || keys[k] == key;
    }
    if (wanted) {
        host->u64(host, sink, key, value);
    }
}

static gpuhal_status faulty_sample(const gpuhal_host *host, uint32_t index, const gpuhal_key *keys, uint32_t count,
                                   uint32_t flags, gpuhal_sink *sink)
{
    (void)flags;
    const uint64_t used = gpuhal_faulty_used();
    if (index != 0 && !is(sample_any_index)) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    for (uint32_t k = 0; is(sample_key_error) && k < count; k++) {
        if (keys[k] > GPUHAL_VALUE_MEMORY_USED_BYTES) {
            return GPUHAL_ERROR_INVALID_ARGUMENT;
        }
    }
    tell_value(host, sink, keys, count, GPUHAL_VALUE_MEMORY_FREE_BYTES,
               is(sample_more_than_all) ? TOTAL_BYTES + 1
               : used < TOTAL_BYTES     ? TOTAL_BYTES - used
                                        : 0);
    tell_value(host, sink, keys, count, GPUHAL_VALUE_MEMORY_USED_BYTES, used < TOTAL_BYTES ? used : TOTAL_BYTES);
    return GPUHAL_OK;
}

static gpuhal_plugin plugins[2];

GPUHAL_API const gpuhal_plugin *gpuhal_plugin_query(uint32_t host_abi, const gpuhal_host *host)
{
    static unsigned queries;
    if (is(query_null)) {
        return NULL;
    }
    if (host_abi != GPUHAL_ABI && !is(query_any_abi)) {
        if (!is(query_no_report)) {
            (void)host->report(host, GPUHAL_ERROR_INCOMPATIBLE, NULL, (int64_t)host_abi, "the test plugin speaks ABI 0.1");
        }
        return NULL;
    }
    if (is(query_opens) && open("/dev/null", O_RDONLY) < 0) {
        return NULL;
    }
    for (int i = 0; i < 2; i++) {
        plugins[i] = (gpuhal_plugin){
            .size = sizeof(gpuhal_plugin),
            .abi = is(abi_other) ? GPUHAL_ABI + 1 : GPUHAL_ABI,
            .flags = is(flags_unknown) ? 0x80 : is(fork_fails) || is(fork_crashes) ? GPUHAL_PLUGIN_FORK_SAFE : 0,
            .name = is(name_upper_case) ? "Faulty" : "faulty",
            .version = is(version_none) ? NULL : "1.0",
            .start = faulty_start,
            .enumerate = faulty_enumerate,
            .describe = faulty_describe,
            .open = is(member_missing) ? NULL : faulty_open,
            .close = faulty_close,
            .sample = faulty_sample,
        };
    }
    return is(query_copies) ? &plugins[queries++ % 2] : &plugins[0];
}
