/* faulty_plugin.c: handshake, facts, slots and device opening of the misbehaving plugin. */
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
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static atomic_uint openings;
static atomic_uint enumerations;
static atomic_uint starts;

static _Atomic(const gpuhal_host *) kept; /* the host of the last start */
static _Atomic(const gpuhal_host *) first_opener;

const gpuhal_host *gpuhal_faulty_host(const gpuhal_host *of_opening)
{
    return is(host_of_first_opening) ? first_opener : of_opening;
}

void gpuhal_faulty_lose_descriptor(void)
{
    if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0) {
        abort();
    }
}

void gpuhal_faulty_lose_memory(unsigned bytes)
{
    char *lost = malloc(bytes);
    memset(lost, 1, bytes);
    __asm__ volatile("" : : "r"(lost) : "memory");
}

void gpuhal_faulty_write_behind(void *structure, unsigned bytes)
{
    memset((char *)structure + bytes, 0, 8);
}

void gpuhal_faulty_read_behind(const void *structure, unsigned bytes)
{
    uint64_t number;
    memcpy(&number, (const char *)structure + bytes, sizeof number);
    __asm__ volatile("" : : "r"(number));
}

static pid_t starter;

bool gpuhal_faulty_is_forked(void)
{
    return starter != 0 && starter != getpid();
}

static gpuhal_status refuse_child(const gpuhal_host *host)
{
    return host->report(host, GPUHAL_ERROR_DEVICE_LOST, NULL, 0, "of another process");
}

static void *idle(void *unused)
{
    (void)unused;
    for (;;) {
        pause();
    }
    return NULL;
}

/* Writes a result with an invalid status to all pipes, like a plugin that writes to a descriptor that it has already
 * closed. */
static void write_to_pipes(void)
{
    enum { RESULT = 4, NO_STATUS = 99 };
    const uint32_t record[(4 * sizeof(uint32_t) + 256 + 1024) / sizeof(uint32_t)] = {RESULT, NO_STATUS};
    struct stat state;
    for (int descriptor = STDERR_FILENO + 1; descriptor < 64; descriptor++) {
        if (fstat(descriptor, &state) == 0 && S_ISFIFO(state.st_mode)) {
            ssize_t written = write(descriptor, record, sizeof record);
            (void)written;
        }
    }
}

static void lose_thread(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, idle, NULL);
    pthread_detach(thread);
}

static void take_signal(int number)
{
    (void)number;
}

/* A plugin without state per host does not need an instance. Only the fault instance_shared returns one. */
struct gpuhal_plugin_instance {
    uint32_t unused;
};

static bool one_device; /* option_global */

static void read_options(const gpuhal_host *host)
{
    char value[16];
    const bool set = host->option(host, is(option_of_another) ? "cpu.simulator" : "faulty.devices", value,
                                  sizeof value) == GPUHAL_OK;
    one_device = is(option_global) && set && strcmp(value, "1") == 0;
}

static gpuhal_status faulty_start(const gpuhal_host *host, gpuhal_plugin_instance **out_instance)
{
    static gpuhal_plugin_instance shared;
    *out_instance = is(instance_shared) ? &shared : NULL;
    kept = host;
    if (!is(option_late) && !is(option_in_slot)) {
        read_options(host);
    }
    const char *removed = getenv("FAULTY_REMOVES"); /* the plugin deletes this file, as a concurrent build could */
    if (removed) {
        unlink(removed);
    }
    if (is(start_crashes)) {
        raise(SIGSEGV);
    }
    if (is(fork_started) && gpuhal_faulty_is_forked()) {
        return refuse_child(host);
    }
    starter = starter ? starter : getpid();
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
    if (is(start_kills_its_group)) {
        kill(0, SIGKILL);
    }
    if (is(start_writes_result)) {
        write_to_pipes();
    }
    if (is(start_thread)) {
        lose_thread();
    }
    return GPUHAL_OK;
}

static void report_numbers(const gpuhal_host *host, gpuhal_sink *sink, uint32_t index)
{
    const bool large = is(offset_32) || is(size_32);
    uint64_t stated = 0;
    for (gpuhal_memory_kind kind = GPUHAL_MEMORY_DEVICE; kind <= GPUHAL_MEMORY_MIGRATING; kind++) {
        stated |= gpuhal_faulty_states(kind) ? 1u << kind : 0;
    }
    host->u64(host, sink, GPUHAL_FACT_TYPE, large ? GPUHAL_DEVICE_GPU : GPUHAL_DEVICE_ACCELERATOR);
    if (!is(fact_mandatory)) {
        host->u64(host, sink, GPUHAL_FACT_SOFTWARE,
                  is(identity_missing) || is(identity_twice) || is(sample_first_device) ? 0 : 1);
    }
    host->u64(host, sink, GPUHAL_FACT_MEMORY_KINDS, stated);
    if (!is(good_minimal) && !is(exportable_silent)) {
        host->u64(host, sink, GPUHAL_FACT_EXPORTABLE_KINDS,
                  is(good_exports_host)      ? 1u << GPUHAL_MEMORY_UPLOAD
                  : is(exportable_beyond)    ? stated << 1
                  : is(exportable_migrating) ? stated
                                             : stated & ~(1u << GPUHAL_MEMORY_MIGRATING));
    }
    host->u64(host, sink, GPUHAL_FACT_MEMORY_TOTAL_BYTES, is(fact_zero_total) ? 0 : TOTAL_BYTES);
    host->u64(host, sink, GPUHAL_FACT_ALLOCATION_MAX_BYTES, TOTAL_BYTES / 2);
    host->u64(host, sink, GPUHAL_FACT_BINDING_ALIGNMENT_BYTES, 64);
    host->u64(host, sink, GPUHAL_FACT_COPY_ALIGNMENT_BYTES, is(good_minimal) ? 4 : 1);
    host->u64(host, sink, GPUHAL_FACT_FILL_ALIGNMENT_BYTES, is(fact_alignment) ? 12 : 1);
    host->u64(host, sink, GPUHAL_FACT_IMPORT_ALIGNMENT_BYTES, 4096);
    host->u64(host, sink, GPUHAL_FACT_COMPUTE_UNITS, is(fact_opening) && openings > 0 ? 5 : 4);
    host->u64(host, sink, GPUHAL_FACT_NATIVE_INDEX, is(fact_wanders) ? atomic_fetch_add(&enumerations, 1) : index);
    if (is(fact_zero_bandwidth)) {
        host->u64(host, sink, GPUHAL_FACT_MEMORY_BANDWIDTH_BYTES_PER_SECOND, 0);
    }
    if (!is(good_minimal)) {
        host->u64(host, sink, GPUHAL_FACT_ADOPT_KINDS, UINT64_C(1) << FAULTY_BUFFER | UINT64_C(1) << FAULTY_DEVICE);
        host->u64(host, sink, GPUHAL_FACT_IMPORT_KINDS,
                  1u << GPUHAL_HANDLE_OPAQUE_FD | 1u << GPUHAL_HANDLE_HOST_POINTER);
        host->u64(host, sink, GPUHAL_FACT_EXPORT_KINDS, is(slot_without_fact) ? 0 : 1u << GPUHAL_HANDLE_OPAQUE_FD);
    }
}

/* The two identities differ in the last digit. */
static void report_identity(const gpuhal_host *host, gpuhal_sink *sink, uint32_t index)
{
    char uuid[64], address[32];
    const unsigned digit = is(identity_twice) ? 0 : index;
    snprintf(uuid, sizeof uuid,
             is(fact_uuid) ? "01234567-89AB-CDEF-0123-456789ABCDE%u" : "01234567-89ab-cdef-0123-456789abcde%u", digit);
    if (is(fact_of_process)) {
        snprintf(uuid, sizeof uuid, "01234567-89ab-cdef-0123-%011x%u", (unsigned)getpid(), digit);
    }
    snprintf(address, sizeof address, is(fact_pci) ? "c%u:00.0" : "0000:c%u:00.0", 1 + digit);
    if (!is(identity_missing)) {
        host->text(host, sink, GPUHAL_FACT_UUID, uuid);
        host->text(host, sink, GPUHAL_FACT_PCI_ADDRESS, address);
    }
}

static void report_texts(const gpuhal_host *host, gpuhal_sink *sink)
{
    host->text(host, sink, GPUHAL_FACT_NAME, is(fact_control) ? "Test\tDevice" : "Test Device");
    host->text(host, sink, GPUHAL_FACT_VENDOR, "Test");
    if (!is(good_minimal) && !is(formats_missing)) {
        host->text(host, sink, GPUHAL_FACT_PROGRAM_FORMATS, is(formats_comma) ? "test-code,other" : "test-code");
        if (!is(kernel_kinds_missing)) {
            host->u64(host, sink, GPUHAL_FACT_KERNEL_KINDS,
                      is(kernel_kinds_few) ? 1u << GPUHAL_MEMORY_DEVICE : (2u << GPUHAL_MEMORY_MIGRATING) - 1);
        }
        if (!is(good_formless)) {
            host->u64(host, sink, GPUHAL_FACT_LAUNCH_FORMS,
                      gpuhal_faulty_launch_forms() & ~(is(forms_missing) ? GPUHAL_KERNEL_INDIRECT : 0u));
        }
    }
    if (is(good_vendor)) {
        host->u64(host, sink, GPUHAL_VENDOR_FIRST + 1, 42);
    }
    host->missing(host, sink, GPUHAL_FACT_LUID, is(fact_no_reason) ? 0 : GPUHAL_MISSING_NOT_SUPPORTED,
                  "a test has none");
    if (is(fact_wrong_form)) {
        host->text(host, sink, GPUHAL_FACT_VENDOR_ID, "0x10de");
    }
}

static gpuhal_status enumerate_here(const gpuhal_host *host, gpuhal_sink *sink)
{
    while (is(enumerate_hangs)) {
        pause();
    }
    if (is(enumerate_nothing) || (is(fork_empty) && gpuhal_faulty_is_forked())) {
        return GPUHAL_OK;
    }
    if (is(enumerate_takes)) {
        gpuhal_faulty_take(UINT64_C(96) << 10);
    }
    if (is(leak_enumerate)) {
        gpuhal_faulty_lose_descriptor();
    }
    host = is(host_kept) ? kept : host;
    if (is(changed_in_enumerate)) {
        host->changed(host);
    }
    for (uint32_t index = 0; index < (one_device ? 1 : DEVICES); index++) {
        host->device(host, sink, is(device_twice) ? 0 : index);
        report_identity(host, sink, index);
        report_texts(host, sink);
        report_numbers(host, sink, index);
    }
    return GPUHAL_OK;
}

typedef struct enumeration {
    const gpuhal_host *host;
    gpuhal_sink *sink;
    gpuhal_status status;
} enumeration;

static void *enumerate_there(void *user)
{
    enumeration *one = user;
    one->status = enumerate_here(one->host, one->sink);
    return NULL;
}

static gpuhal_status faulty_enumerate(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink)
{
    (void)instance;
    if (!is(good_threads)) {
        return enumerate_here(host, sink);
    }
    pthread_t thread;
    enumeration one = {host, sink, GPUHAL_OK};
    if (pthread_create(&thread, NULL, enumerate_there, &one) != 0) {
        return host->report(host, GPUHAL_ERROR_DRIVER, "pthread_create", 0, "no thread");
    }
    pthread_join(thread, NULL);
    return one.status;
}

static gpuhal_status faulty_health(gpuhal_plugin_device *device)
{
    (void)device;
    return is(health_lost) ? GPUHAL_ERROR_DEVICE_LOST : GPUHAL_OK;
}

static gpuhal_status faulty_native_device(gpuhal_plugin_device *device, gpuhal_native *out_native)
{
    out_native->type = FAULTY_DEVICE;
    out_native->values[0] = (uintptr_t)device;
    out_native->size = is(native_own_size) ? sizeof *out_native : out_native->size;
    if (is(native_long)) {
        gpuhal_faulty_write_behind(out_native, sizeof *out_native);
    }
    return GPUHAL_OK;
}

static const gpuhal_native_ops native = {
    .size = sizeof native,
    .version = GPUHAL_NATIVE_VERSION,
    .native_device = faulty_native_device,
    .native_memory = gpuhal_faulty_native_memory,
    .native_queue = gpuhal_faulty_native_queue,
    .native_event = gpuhal_faulty_native_event,
    .wrap_memory = gpuhal_faulty_wrap,
    .native_lock = gpuhal_faulty_native_lock,
    .native_unlock = gpuhal_faulty_native_unlock,
};

static void spoil_tables(gpuhal_ops *ops)
{
    static gpuhal_queue_ops queues;
    static gpuhal_native_ops spoilt_native;
    static gpuhal_program_ops programs;
    queues = *ops->queues;
    spoilt_native = native;
    programs = *ops->programs;
    if (is(describe_half_group)) {
        queues.event_query = NULL;
    }
    if (is(describe_short_table)) {
        queues.size = GPUHAL_QUEUE_OPS_MINIMUM - 1;
    }
    if (is(describe_half_pair)) {
        spoilt_native.native_unlock = NULL;
    }
    if (is(describe_other_version)) {
        programs.version = GPUHAL_PROGRAMS_VERSION + 1;
    }
    ops->queues = &queues;
    ops->native = &spoilt_native;
    ops->programs = &programs;
}

static gpuhal_status faulty_describe(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                     gpuhal_ops *out_ops)
{
    (void)instance;
    if (index >= DEVICES && !is(describe_any_index)) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    if (is(option_late)) {
        read_options(host);
    }
    if (is(describe_sizes)) {
        out_ops->size = sizeof *out_ops + 8;
    }
    gpuhal_faulty_describe_memory(out_ops);
    gpuhal_faulty_describe_transfer(out_ops);
    if (is(good_minimal)) {
        return GPUHAL_OK;
    }
    gpuhal_faulty_describe_queue(out_ops);
    gpuhal_faulty_describe_ranges(out_ops);
    gpuhal_faulty_describe_program(out_ops);
    gpuhal_faulty_describe_recordings(out_ops);
    if (!is(open_adds_slot)) {
        out_ops->query_health = faulty_health;
    }
    out_ops->native = &native;
    spoil_tables(out_ops);
    if (is(recordings_without_queues)) {
        out_ops->queues = NULL;
    }
    if (is(recordings_without_programs)) {
        out_ops->programs = NULL;
    }
    if (is(describe_no_copy)) {
        out_ops->copy = NULL;
    }
    if (is(describe_no_function)) {
        const uintptr_t rubbish = 0x1234;
        memcpy(&out_ops->write, &rubbish, sizeof rubbish);
    }
    if (is(describe_past_end)) {
        memset(out_ops + 1, 0, 16);
    }
    return GPUHAL_OK;
}

/* Has side effects on the process, although opening a device must not have any. */
static void misbehave_once(void)
{
    static _Atomic unsigned settling;
    if (is(good_settles) && atomic_fetch_add(&settling, 1) < 300) {
        char *arena = malloc(8192);
        memset(arena, 1, 8192);
        __asm__ volatile("" : : "r"(arena) : "memory");
    }
    if (is(leak_memory)) { /* allocated from the system, not through the allocator */
        void *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(pages, 1, 8192);
    }
    if (is(leak_thread)) {
        lose_thread();
    }
    if (is(leak_descriptor)) {
        gpuhal_faulty_lose_descriptor();
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

static gpuhal_status faulty_open(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                 const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops)
{
    (void)instance;
    if (index >= DEVICES && !is(open_any_index)) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    if (is(fork_closed) && gpuhal_faulty_is_forked()) {
        return refuse_child(host);
    }
    if (is(leak_open_refused) && adopt != NULL) {
        gpuhal_faulty_lose_descriptor();
    }
    const bool known = adopt != NULL && adopt->type == FAULTY_DEVICE && adopt->values[0] != 0;
    if (adopt != NULL && !known && !is(open_adopts)) {
        return host->report(host, GPUHAL_ERROR_NOT_SUPPORTED, NULL, 0, "there is nothing to take over");
    }
    misbehave_once();
    gpuhal_plugin_device *device = calloc(1, sizeof *device);
    if (device == NULL) {
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    device->host = host;
    device->adopted = known;
    pthread_mutex_init(&device->scratch, NULL);
    device->index = is(open_first_device) ? 0 : index % DEVICES;
    if (first_opener == NULL) {
        first_opener = host;
    }
    if (is(open_adds_slot)) {
        ops->query_health = faulty_health;
    }
    atomic_fetch_add(&openings, 1);
    *out_device = device;
    return GPUHAL_OK;
}

static void faulty_close(gpuhal_plugin_device *device)
{
    if (is(open_shared) || (is(adopt_closes) && device->adopted)) {
        gpuhal_faulty_forget(device);
    }
    if (is(recordings_closed)) {
        gpuhal_faulty_forget_recordings();
    }
    atomic_fetch_sub(&openings, 1);
    free(device);
}

static const void *faulty_query_extension(const gpuhal_host *host, gpuhal_plugin_instance *instance, const char *name)
{
    static const struct {
        uint32_t size;
    } table = {.size = sizeof table};
    static atomic_uint calls;
    (void)instance;
    if (is(extension_reports) && strcmp(name, "faulty.own") != 0) {
        (void)host->report(host, GPUHAL_ERROR_NOT_FOUND, NULL, 0, "no such extension");
    }
    const bool second = atomic_fetch_add(&calls, 1) % 2 == 1;
    return strcmp(name, "faulty.own") == 0 || is(extension_any) || (is(extension_wanders) && second) ? &table : NULL;
}

static gpuhal_plugin plugins[2];

static bool promises_time(void)
{
    return is(block_overruns) || is(query_waits) || is(block_finishes) || is(query_finishes);
}

static bool promises_fork(void)
{
    return is(fork_fails) || is(fork_crashes) || is(fork_closed) || is(fork_silent) || is(fork_no_processes) ||
           is(fork_no_queue) || is(fork_started) || is(fork_empty);
}

GPUHAL_API const gpuhal_plugin *gpuhal_plugin_query(uint32_t host_abi, const gpuhal_host *host)
{
    static unsigned queries;
    if (is(query_null)) {
        return NULL;
    }
    if (host_abi != GPUHAL_ABI && !is(query_any_abi)) {
        if (!is(query_no_report)) {
            (void)host->report(host, GPUHAL_ERROR_INCOMPATIBLE, NULL, (int64_t)host_abi,
                               "the test plugin speaks the ABI that it was built with");
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
            .flags = is(flags_unknown) ? 0x80
                     : promises_fork() ? GPUHAL_PLUGIN_FORK_SAFE
                     : promises_time() ? GPUHAL_PLUGIN_HONORS_TIMEOUTS
                                       : 0,
            .name = is(name_upper_case) ? "Faulty" : "faulty",
            .version = is(version_none)    ? NULL
                       : is(version_bytes) ? "1.0 \xff"
                                           : "1.0",
            .start = faulty_start,
            .enumerate = faulty_enumerate,
            .describe = faulty_describe,
            .open = is(member_missing) ? NULL : faulty_open,
            .close = faulty_close,
            .sample = gpuhal_faulty_sample,
            .link = is(good_minimal) ? NULL : gpuhal_faulty_link,
            .processes = is(good_minimal) ? NULL : gpuhal_faulty_processes,
            .query_extension = is(good_minimal) ? NULL : faulty_query_extension,
        };
    }
    return is(query_copies) ? &plugins[queries++ % 2] : &plugins[0];
}
