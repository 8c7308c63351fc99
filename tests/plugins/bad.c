/* tests/plugins/bad.c: one plugin over host memory, compiled many times with one fault each. CMakeLists.txt defines
 * VARIANT_<name> and NAME. Each fault is an #ifdef at the place of a careless vendor's mistake. The variants `good` and
 * `good_fork_safe` have no fault.
 *
 * To add a variant, add a line to corpus.inc and an #ifdef here. Faults that need more than one line are in mischief.h.
 */
#include "loading.h"
#include "mischief.h"

#include <gpuhal/plugin.h>

#include <errno.h>

#ifdef VARIANT_undefined_symbol
void gpuhal_test_undefined(void);
#endif
#ifdef VARIANT_missing_library
int gpuhal_test_absent(void);
#endif

/* ---- memory and transfer: plain malloc and memcpy */

static gpuhal_status bad_allocate(__attribute__((unused)) gpuhal_plugin_device *device, const gpuhal_alloc *alloc,
                                  gpuhal_memory *out_memory)
{
    out_memory->object = aligned_alloc(64, (alloc->bytes + 63) & ~UINT64_C(63));
    out_memory->host = out_memory->object;
    out_memory->bytes = alloc->bytes;
    out_memory->flags = GPUHAL_MEMORY_HOST_COHERENT;
    return out_memory->object ? GPUHAL_OK : GPUHAL_ERROR_OUT_OF_MEMORY;
}

static void bad_release(__attribute__((unused)) gpuhal_plugin_device *device, gpuhal_memory *memory)
{
    free(memory->object);
}

static gpuhal_status bad_copy(__attribute__((unused)) gpuhal_plugin_device *device,
                              __attribute__((unused)) gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                              uint64_t to_offset, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    memcpy((char *)to->object + to_offset, (const char *)from->object + from_offset, bytes);
    return GPUHAL_OK;
}

#if defined VARIANT_half_a_group
static gpuhal_status bad_map(__attribute__((unused)) gpuhal_plugin_device *device, const gpuhal_memory *memory,
                             uint64_t offset, __attribute__((unused)) uint64_t bytes,
                             __attribute__((unused)) uint32_t access, void **out_pointer)
{
    *out_pointer = (char *)memory->object + offset;
    return GPUHAL_OK;
}
#endif

/* ---- start */

static __attribute__((unused)) gpuhal_status bad_start(__attribute__((unused)) const gpuhal_host *host,
                                                         __attribute__((unused)) gpuhal_plugin_instance **out_instance)
{
#if defined VARIANT_start_fails
    return host->report(host, GPUHAL_ERROR_DRIVER, "vendorInit", 42, "the vendor is on holiday");
#elif defined VARIANT_start_without_driver
    static const char *const sonames[] = {"libgpuhal-test-vendor.so.1", "libgpuhal-test-vendor.so", NULL};
    void (*function)(void) = NULL;
    const gpuhal_symbol symbols[] = {{"vendorInit", &function, 1, 0}};
    return host->library(host, "TESTVENDOR", sonames, symbols, 1);
#elif defined VARIANT_start_with_stub_driver
    static const char *const sonames[] = {"libc.so.6", NULL};
    void (*wanted)(void) = NULL, (*optional)(void) = NULL;
    const gpuhal_symbol symbols[] = {{"gpuhal_test_optional", &optional, 0, 0},
                                     {"gpuhal_test_required", &wanted, 1, 0}};
    return host->library(host, "TESTVENDOR", sonames, symbols, 2);
#elif defined VARIANT_good_with_driver
    static const char *const sonames[] = {"libgpuhal-test-vendor.so.1", "libc.so.6", NULL};
    void (*wanted)(void) = NULL, (*optional)(void) = (void (*)(void))bad_start;
    const gpuhal_symbol symbols[] = {{"gpuhal_test_optional", &optional, 0, 0}, {"malloc", &wanted, 1, 0}};
    gpuhal_status status = host->library(host, "TESTVENDOR", sonames, symbols, 2);
    char word[64];
    host->log(host, GPUHAL_LOG_INFO,
              host->option(host, "good_with_driver.word", word, sizeof word) == GPUHAL_OK ? word : "no word");
    return status || !wanted || optional ? host->report(host, GPUHAL_ERROR_DRIVER, "library", status, "slots are wrong")
                                         : GPUHAL_OK;
#elif defined VARIANT_start_without_permission
    return host->report(host, GPUHAL_ERROR_NO_PERMISSION, "open", EACCES, "/dev/vendor0: join group render");
#elif defined VARIANT_start_unknown_status
    return -4711;
#elif defined VARIANT_start_fails_with_escapes
    return host->report(host, GPUHAL_ERROR_DRIVER, "vendor\033[2JInit", 42, "\033]0;owned\a gone\n\x9b" "31m caf\xe9");
#elif defined VARIANT_start_fails_at_length
    static char text[1 << 20];
    memset(text, 'x', sizeof text - 1);
    return host->report(host, GPUHAL_ERROR_DRIVER, text, 42, text);
#elif defined VARIANT_good_opens_the_library
    open_the_library(LIBRARY);
#elif defined VARIANT_good_logs_much
    for (int i = 0; i < 200000; i++) {
        host->log(host, GPUHAL_LOG_ERROR, "the vendor \033[31mis talkative\n");
    }
#elif defined VARIANT_good_makes_code
    map_made_code();
#elif defined VARIANT_killed_on_request
    if (getenv("GPUHAL_TEST_SIGNAL")) {
        raise(atoi(getenv("GPUHAL_TEST_SIGNAL")));
    }
#elif defined VARIANT_start_crashes
    crash();
#elif defined VARIANT_start_hangs
    hang();
#elif defined VARIANT_start_hangs_while
    hang_while_there(getenv("GPUHAL_START_HANGS_WHILE_SWITCH"));
#elif defined VARIANT_start_prints_without_end
    print_without_end();
#elif defined VARIANT_good_slow_start
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
#elif defined VARIANT_start_fails_once
    static int calls;
    if (calls++ == 0) {
        return host->report(host, GPUHAL_ERROR_BUSY, "vendorInit", 7, "try again");
    }
#elif defined VARIANT_enumerate_fails_once
    static int starts;
    if (starts++ > 0) {
        return host->report(host, GPUHAL_ERROR_DRIVER, "vendorInit", 8, "started twice");
    }
#endif
    return GPUHAL_OK;
}

/* ---- enumerate */

static void report_device(const gpuhal_host *host, gpuhal_sink *sink, uint32_t index)
{
    host->device(host, sink, index);
#ifndef VARIANT_name_missing
    host->text(host, sink, GPUHAL_FACT_NAME, "Test Device");
#endif
    host->u64(host, sink, GPUHAL_FACT_TYPE, GPUHAL_DEVICE_GPU);
    host->u64(host, sink, GPUHAL_FACT_SOFTWARE, 0);
    host->u64(host, sink, GPUHAL_FACT_MEMORY_KINDS, 1u << GPUHAL_MEMORY_DEVICE);
    host->missing(host, sink, GPUHAL_FACT_UUID, GPUHAL_MISSING_NOT_SUPPORTED, "it is a test");
}

#if defined VARIANT_good_comes_and_goes || defined VARIANT_good_without_identity || defined VARIANT_good_other_identity
/* If GPUHAL_TEST_READ names a file, creates the file and then delays the return. */
static void take_long(void)
{
    const char *path = getenv("GPUHAL_TEST_READ");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) {
        fclose(file);
        usleep(300000);
    }
}

/* Reports a device for each letter in the file that GPUHAL_TEST_SLOTS names. A letter keeps its index until the process
 * exits; a new process counts from 0. In good_without_identity nothing distinguishes two of the devices.
 * good_other_identity derives the identity from the process. */
static gpuhal_status report_slots(const gpuhal_host *host, gpuhal_sink *sink)
{
    static char owners[16];
    char slots[16] = "", uuid[40];
    const char *path = getenv("GPUHAL_TEST_SLOTS");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file || !fgets(slots, sizeof slots, file)) {
        slots[0] = 0;
    }
    if (file) {
        fclose(file);
    }
    take_long();
    for (const char *slot = slots; *slot >= 'A' && *slot <= 'Z'; slot++) {
        if (!strchr(owners, *slot)) {
            owners[strlen(owners)] = *slot;
        }
    }
    for (uint32_t i = 0; owners[i]; i++) {
        if (!strchr(slots, owners[i])) {
            continue;
        }
        report_device(host, sink, i);
        unsigned number = (unsigned char)owners[i];
#if defined VARIANT_good_other_identity
        number = (unsigned)getpid();
#endif
#if !defined VARIANT_good_without_identity
        snprintf(uuid, sizeof uuid, "00000000-0000-0000-0000-0000%08x", number);
        host->text(host, sink, GPUHAL_FACT_UUID, uuid);
#else
        (void)uuid;
        (void)number;
#endif
    }
    return GPUHAL_OK;
}
#endif

/* Two plugins export this name with different definitions. */
#if defined VARIANT_good_twin_a || defined VARIANT_good_twin_b
GPUHAL_API const char *gpuhal_test_shared_name(void);
const char *gpuhal_test_shared_name(void)
{
    return NAME;
}
#endif

static __attribute__((unused)) void report_bad_fact(const gpuhal_host *host, gpuhal_sink *sink)
{
    (void)host;
    (void)sink;
#if defined VARIANT_uuid_in_capitals
    host->text(host, sink, GPUHAL_FACT_UUID, "00112233-4455-6677-8899-AABBCCDDEEFF");
#elif defined VARIANT_pci_without_domain
    host->text(host, sink, GPUHAL_FACT_PCI_ADDRESS, "c1:00.0");
#elif defined VARIANT_luid_too_short
    host->text(host, sink, GPUHAL_FACT_LUID, "123");
#elif defined VARIANT_number_as_text
    host->text(host, sink, GPUHAL_FACT_MEMORY_TOTAL_BYTES, "8 GB");
#elif defined VARIANT_text_as_number
    host->u64(host, sink, GPUHAL_FACT_VENDOR, 4318);
#elif defined VARIANT_type_unknown
    host->u64(host, sink, GPUHAL_FACT_TYPE, 99);
#elif defined VARIANT_alignment_of_three
    host->u64(host, sink, GPUHAL_FACT_COPY_ALIGNMENT_BYTES, 3);
#elif defined VARIANT_alignment_of_8192
    host->u64(host, sink, GPUHAL_FACT_FILL_ALIGNMENT_BYTES, 8192);
#elif defined VARIANT_too_many_facts
    for (gpuhal_key key = 0; key < 300; key++) {
        host->missing(host, sink, 0x7f000000 + key, GPUHAL_MISSING_NOT_SUPPORTED, NULL);
    }
#elif defined VARIANT_no_device_memory
    host->u64(host, sink, GPUHAL_FACT_MEMORY_KINDS, 1u << GPUHAL_MEMORY_UPLOAD);
#elif defined VARIANT_text_null
    host->text(host, sink, GPUHAL_FACT_VENDOR, NULL);
#elif defined VARIANT_text_huge
    static char text[1 << 20];
    memset(text, 'x', sizeof text - 1);
    host->text(host, sink, GPUHAL_FACT_VENDOR, text);
#elif defined VARIANT_why_huge
    static char text[1 << 20];
    memset(text, 'x', sizeof text - 1);
    host->missing(host, sink, GPUHAL_FACT_VENDOR, GPUHAL_MISSING_FAILED, text);
#elif defined VARIANT_text_with_escapes
    host->text(host, sink, GPUHAL_FACT_VENDOR, "\033[31mred\033[2J");
#elif defined VARIANT_text_with_high_escape
    host->text(host, sink, GPUHAL_FACT_VENDOR, "\xc2\x9b" "31mred");
#elif defined VARIANT_text_with_nul_form
    host->text(host, sink, GPUHAL_FACT_VENDOR, "\xc0\x80");
#elif defined VARIANT_name_blank
    host->text(host, sink, GPUHAL_FACT_NAME, "   ");
#elif defined VARIANT_software_of_two
    host->u64(host, sink, GPUHAL_FACT_SOFTWARE, 2);
#elif defined VARIANT_good_numbers_out_of_reason
    /* Implausible values must do no harm, for example a NaN, or more bytes than the address space has. */
    host->u64(host, sink, GPUHAL_FACT_MEMORY_TOTAL_BYTES, UINT64_MAX);
    host->u64(host, sink, GPUHAL_FACT_ALLOCATION_MAX_BYTES, 0x7ff8000000000000u);
    host->u64(host, sink, GPUHAL_FACT_NATIVE_INDEX, UINT64_MAX);
    host->u64(host, sink, 0x7fffffff, 0xfff8000000000000u);
#elif defined VARIANT_text_not_utf8
    host->text(host, sink, GPUHAL_FACT_VENDOR, "caf\xe9");
#elif defined VARIANT_good_twin_a || defined VARIANT_good_twin_b
    host->text(host, sink, GPUHAL_FACT_VENDOR, gpuhal_test_shared_name());
#elif defined VARIANT_reason_unknown
    host->missing(host, sink, GPUHAL_FACT_VENDOR, 0, "no reason");
#endif
}

#ifdef VARIANT_good_looks_around
static int is_first_without_memory(void)
{
    char text[16] = "";
    FILE *file = fopen("/proc/self/oom_score_adj", "r");
    int good = file && fgets(text, sizeof text, file) && strcmp(text, "1000\n") == 0;
    if (file) {
        fclose(file);
    }
    return good;
}

/* Reports the plugin's environment, for example its descriptors, its blocked and ignored signals, and the core dump
 * size limit. */
static void report_surroundings(const gpuhal_host *host, gpuhal_sink *sink)
{
    int more = 0, null = 0, blocked = 0, ignored = 0;
    char target[128];
    sigset_t mask;
    struct sigaction action;
    struct rlimit core;
    for (int file = 0; file < 1024; file++) {
        char link[32];
        snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        ssize_t length = readlink(link, target, sizeof target - 1);
        more += length > 0 && file > 3;
        null += length == 9 && file < 3 && memcmp(target, "/dev/null", 9) == 0;
    }
    sigprocmask(SIG_SETMASK, NULL, &mask);
    for (int number = 1; number < 32; number++) {
        blocked += sigismember(&mask, number);
        ignored += sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
    }
    getrlimit(RLIMIT_CORE, &core);
    snprintf(target, sizeof target, "more %d null %d blocked %d ignored %d core %d leader %d first %d", more, null,
             blocked, ignored, core.rlim_cur > 1, getpgrp() == getpid(), is_first_without_memory());
    host->text(host, sink, GPUHAL_FACT_VENDOR, target);
}
#endif

static gpuhal_status bad_enumerate(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink)
{
    (void)instance;
#if defined VARIANT_fact_before_device
    host->u64(host, sink, GPUHAL_FACT_TYPE, GPUHAL_DEVICE_GPU);
#elif defined VARIANT_no_device
    return GPUHAL_OK;
#elif defined VARIANT_no_device_with_reason
    return host->report(host, GPUHAL_ERROR_NO_DEVICE, NULL, 0, "the bus is empty");
#elif defined VARIANT_enumerate_fails
    report_device(host, sink, 0);
    return host->report(host, GPUHAL_ERROR_DRIVER, "vendorGetDevices", 999, NULL);
#elif defined VARIANT_enumerate_fails_once
    static int calls;
    if (calls++ == 0) {
        return host->report(host, GPUHAL_ERROR_BUSY, "vendorGetDevices", 9, "try again");
    }
#elif defined VARIANT_good_child_crashes
    pid_t child = fork();
    if (child == 0) {
        crash();
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV) {
        return GPUHAL_ERROR_DRIVER;
    }
#elif defined VARIANT_good_child_speaks
    if (system("(echo; echo rubbish) >&3") < 0) {
        return GPUHAL_ERROR_DRIVER;
    }
#elif defined VARIANT_enumerate_hangs
    report_device(host, sink, 0);
    hang();
#elif defined VARIANT_count_lies
    for (uint32_t i = 0; i < 1000000; i++) {
        report_device(host, sink, i);
    }
#elif defined VARIANT_index_twice
    report_device(host, sink, 1);
    report_device(host, sink, 1);
#elif defined VARIANT_rubbish_on_stream
    put("\nhello, is this a log?\n");
#elif defined VARIANT_lies_on_stream
    put("\n[end]\nstate = 0\nstatus = 0\ndevices = 3\ncomplete = 1\n");
#elif defined VARIANT_half_an_end
    put("\n[end]\nstate = 0\nreason = all is well\n");
    _exit(5);
#elif defined VARIANT_endless_line_on_stream
    for (int i = 0; i < 20000; i++) {
        put("0123456789");
    }
#elif defined VARIANT_floods_stream
    for (int i = 0; i < 120000; i++) {
        put("# fifty bytes of comment without any purpose.......\n");
    }
#elif defined VARIANT_good_but_prints
    printf("a plugin that prints\n");
    fprintf(stderr, "and complains\n");
    fflush(stdout);
#elif defined VARIANT_good_prints_much
    print_much();
#elif defined VARIANT_good_forges_listing
    forge_listing();
#elif defined VARIANT_good_leaves_handlers
    leave_handlers();
#elif defined VARIANT_good_leaves_daemon
    leave_daemon(0);
#elif defined VARIANT_good_index_huge
    report_device(host, sink, UINT32_MAX);
#elif defined VARIANT_dies_and_leaves_daemon
    leave_daemon(0);
    raise(SIGKILL);
#elif defined VARIANT_dies_and_daemon_floods
    leave_daemon(1);
    raise(SIGKILL);
#elif defined VARIANT_ends_its_thread
    pthread_exit(NULL);
#elif defined VARIANT_ends_its_first_thread
    start_thread(hang_in_thread);
    pthread_exit(NULL);
#elif defined VARIANT_closes_everything
    close_everything();
#elif defined VARIANT_good_leaves_child
    pid_t child = fork();
    if (child == 0) {
        hang();
    }
    report_device(host, sink, 0);
    host->u64(host, sink, GPUHAL_FACT_NATIVE_INDEX, (uint64_t)child);
    return GPUHAL_OK;
#elif defined VARIANT_dies_and_leaves_child
    if (fork() == 0) {
        hang();
    }
    raise(SIGKILL);
#elif defined VARIANT_good_many_devices
    for (uint32_t i = 2; i < 20; i += 2) {
        report_device(host, sink, i);
    }
    return GPUHAL_OK;
#endif
#if defined VARIANT_good_comes_and_goes || defined VARIANT_good_without_identity || defined VARIANT_good_other_identity
    return report_slots(host, sink);
#endif
    report_device(host, sink, 0);
#if defined VARIANT_sample_hangs_at_second
    report_device(host, sink, 1);
#endif
    report_bad_fact(host, sink);
#if defined VARIANT_good_looks_around
    report_surroundings(host, sink);
#endif
#if defined VARIANT_enumerate_crashes
    crash();
#endif
    return GPUHAL_OK;
}

static gpuhal_status bad_describe(__attribute__((unused)) const gpuhal_host *host,
                                  __attribute__((unused)) gpuhal_plugin_instance *instance,
                                  __attribute__((unused)) uint32_t index, gpuhal_ops *out_ops)
{
    out_ops->allocate = bad_allocate;
    out_ops->release = bad_release;
    out_ops->copy = bad_copy;
#if defined VARIANT_describe_fails
    return GPUHAL_ERROR_NOT_FOUND;
#elif defined VARIANT_no_allocate
    out_ops->allocate = NULL;
#elif defined VARIANT_half_a_group
    out_ops->map = bad_map;
#elif defined VARIANT_group_too_short
    static const gpuhal_queue_ops queues = {.size = GPUHAL_QUEUE_OPS_MINIMUM - 1, .version = GPUHAL_QUEUES_VERSION};
    out_ops->queues = &queues;
#elif defined VARIANT_group_lacks_a_slot
    static const gpuhal_queue_ops queues = {.size = sizeof queues, .version = GPUHAL_QUEUES_VERSION};
    out_ops->queues = &queues;
#elif defined VARIANT_good_group_of_another_version
    static const gpuhal_queue_ops queues = {.size = sizeof queues, .version = GPUHAL_QUEUES_VERSION + 1};
    out_ops->queues = &queues;
#endif
    return GPUHAL_OK;
}

static gpuhal_status bad_open(__attribute__((unused)) const gpuhal_host *host,
                              __attribute__((unused)) gpuhal_plugin_instance *instance,
                              __attribute__((unused)) uint32_t index,
                              __attribute__((unused)) const gpuhal_native *adopt, gpuhal_plugin_device **out_device,
                              __attribute__((unused)) gpuhal_ops *ops)
{
    *out_device = malloc(1);
    return *out_device ? GPUHAL_OK : GPUHAL_ERROR_HOST_MEMORY;
}

static void bad_close(gpuhal_plugin_device *device)
{
    free(device);
}

static gpuhal_status bad_sample(const gpuhal_host *host, gpuhal_plugin_instance *instance,
                                __attribute__((unused)) uint32_t index, __attribute__((unused)) const gpuhal_key *keys,
                                __attribute__((unused)) uint32_t count, __attribute__((unused)) uint32_t flags,
                                gpuhal_sink *sink)
{
    (void)instance;
#if defined VARIANT_sample_names_device
    host->device(host, sink, 7);
#elif defined VARIANT_good_sample_fails
    return GPUHAL_ERROR_DRIVER;
#elif defined VARIANT_sample_crashes
    crash();
#elif defined VARIANT_sample_hangs_at_second
    if (index == 1) {
        hang();
    }
#endif
    host->u64(host, sink, GPUHAL_VALUE_MEMORY_FREE_BYTES, 12345678);
    return GPUHAL_OK;
}

/* ---- the result of the query */

#if defined VARIANT_name_without_end
/* 64 KiB of the first letter. */
static const char endless[65536] = {[0 ... 65534] = 'n'};
#endif

static const gpuhal_plugin plugin = {
#if defined VARIANT_size_zero
    .size = 0,
#elif defined VARIANT_size_short
    .size = GPUHAL_PLUGIN_MINIMUM - 1,
#elif defined VARIANT_good_without_optional
    .size = GPUHAL_PLUGIN_MINIMUM,
#elif defined VARIANT_good_of_tomorrow
    .size = sizeof(gpuhal_plugin) + 64,
#elif defined VARIANT_good_size_huge
    .size = UINT32_MAX,
#else
    .size = sizeof(gpuhal_plugin),
#endif
#if defined VARIANT_other_abi
    .abi = GPUHAL_ABI + 1,
#elif defined VARIANT_older_abi
    .abi = GPUHAL_ABI - 1,
#else
    .abi = GPUHAL_ABI,
#endif
#if defined VARIANT_good_fork_safe
    .flags = GPUHAL_PLUGIN_FORK_SAFE,
#endif
#if defined VARIANT_name_null
    .name = NULL,
#elif defined VARIANT_name_bad
    .name = "Name Bad",
#elif defined VARIANT_name_empty
    .name = "",
#elif defined VARIANT_name_not_utf8
    .name = "caf\xe9",
#elif defined VARIANT_name_with_slash
    .name = "../name_with_slash",
#elif defined VARIANT_name_without_end
    .name = endless,
#elif defined VARIANT_name_other
    .name = "another",
#else
    .name = NAME,
#endif
#if defined VARIANT_version_with_escapes
    .version = "1.2\033[2J",
#elif !defined VARIANT_version_null
    .version = "1.2.3",
#endif
#ifndef VARIANT_no_start
    .start = bad_start,
#endif
    .enumerate = bad_enumerate,
    .describe = bad_describe,
    .open = bad_open,
    .close = bad_close,
    .sample = bad_sample,
};

#if defined VARIANT_symbol_is_data
GPUHAL_API extern const gpuhal_plugin *const gpuhal_plugin_query_data __asm__("gpuhal_plugin_query");
const gpuhal_plugin *const gpuhal_plugin_query_data = &plugin;
#else
#if defined VARIANT_no_symbol || defined VARIANT_query_elsewhere
GPUHAL_API const gpuhal_plugin *gpuhal_test_other_query(uint32_t host_abi, const gpuhal_host *host);
#define QUERY gpuhal_test_other_query
#else
#define QUERY gpuhal_plugin_query
#endif
const gpuhal_plugin *QUERY(__attribute__((unused)) uint32_t host_abi, __attribute__((unused)) const gpuhal_host *host)
{
#if defined VARIANT_query_null
    return NULL;
#elif defined VARIANT_query_refuses
    (void)host->report(host, GPUHAL_ERROR_INCOMPATIBLE, "vendorInit", 42, "it wants plugin ABI 7.3");
    return NULL;
#elif defined VARIANT_query_rubbish
    return (const gpuhal_plugin *)(uintptr_t)64;
#elif defined VARIANT_query_crashes
    crash();
#elif defined VARIANT_resolver_crashes
    gpuhal_test_resolved();
#elif defined VARIANT_thread_storage_too_large
    storage[host_abi] = 1;
#elif defined VARIANT_undefined_symbol
    gpuhal_test_undefined();
#elif defined VARIANT_missing_library
    (void)gpuhal_test_absent();
#endif
    return &plugin;
}
#endif
