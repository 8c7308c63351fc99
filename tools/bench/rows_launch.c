/* rows_launch.c: kernel launches: the cost of a call on the CPU, the start time of its threads, their bandwidth and
 * computing speed, and the time that the program cache saves. tests/bench has the rows that compare with launches
 * through a vendor's own calls. */
#include "child.h"
#include "direct.h"
#include "launcher.h"

#include <linux/futex.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { THREADS_MAX = 256, DIRECT_BYTES = 64 };

static const double one_group_budget = 1 / 20.0;
static const double wake_budget = 1 / 2.0;
static const double all_threads_budget = 0.9;
static const double warm_budget = 5;
static const uint64_t triad_bytes = UINT64_C(48) << 20; /* total size of both arrays and the result */
enum { COMPUTE_PARTS = 64, COMPUTE_STEPS = 20000 };     /* number of parts for each thread */

/* ---- one group, and one group for each thread */

static void empty(void *const *arguments, const gpuhal_host_group *group)
{
    (void)arguments, (void)group;
}

/* Each step depends on the previous step, so that the core is busy and memory is not. */
static __attribute__((noinline)) void compute_part(void)
{
    volatile float kept = 1;
    float x = kept;
    for (int i = 0; i < COMPUTE_STEPS; i++) {
        x = x * 0.75f + 0.5f;
    }
    kept = x;
}

static void compute(void *const *arguments, const gpuhal_host_group *group)
{
    (void)arguments, (void)group;
    compute_part();
}

typedef struct plain_launch {
    gpuhal_program *program;
    gpuhal_kernel *kernel;
    uint32_t groups;
} plain_launch;

static bool open_plain(gpuhal_device *device, const char *name, uint32_t groups, plain_launch *out)
{
    static const gpuhal_host_function functions[] = {{"empty", empty}, {"compute", compute}, {NULL, NULL}};
    static const gpuhal_parameter none[1] = {{0}};
    const gpuhal_code code = {
        .size = sizeof code, .format = "host-function", .code = functions, .bytes = sizeof functions};
    const gpuhal_program_desc program = {.size = sizeof program, .codes = &code, .code_count = 1};
    const gpuhal_kernel_desc kernel = {.size = sizeof kernel, .name = name, .parameters = none, .group_size = {1}};
    *out = (plain_launch){.groups = groups};
    if (gpuhal_program_create(device, &program, &out->program) != GPUHAL_OK) {
        return gpuhal_bench_failed_call("gpuhal_program_create");
    }
    return gpuhal_kernel_create(out->program, &kernel, &out->kernel) == GPUHAL_OK ||
           gpuhal_bench_failed_call("gpuhal_kernel_create");
}

static void close_plain(plain_launch *plain)
{
    gpuhal_kernel_release(plain->kernel);
    gpuhal_program_release(plain->program);
}

static bool launch_plain(void *user, uint64_t count)
{
    const plain_launch *plain = user;
    const gpuhal_launch launch = {.size = sizeof launch, .groups = {plain->groups, 1, 1}};
    for (uint64_t i = 0; i < count; i++) {
        if (gpuhal_kernel_launch(NULL, plain->kernel, &launch) != GPUHAL_OK) {
            return gpuhal_bench_failed_call("gpuhal_kernel_launch");
        }
    }
    return true;
}

/* ---- waking a thread and being woken by it, as fast as the system allows */

typedef struct ping_pong {
    atomic_uint turn; /* odd in the other thread's turn; UINT32_MAX to end the thread */
    pthread_t thread;
} ping_pong;

static void sleep_while(atomic_uint *turn, unsigned is)
{
    while (atomic_load(turn) == is) {
        syscall(SYS_futex, turn, FUTEX_WAIT_PRIVATE, is, NULL, NULL, 0);
    }
}

static void wake(atomic_uint *turn, unsigned value)
{
    atomic_store(turn, value);
    syscall(SYS_futex, turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *answer(void *user)
{
    ping_pong *own = user;
    for (unsigned turn = 0;; turn += 2) {
        sleep_while(&own->turn, turn);
        if (atomic_load(&own->turn) == UINT32_MAX) {
            return NULL;
        }
        wake(&own->turn, turn + 2);
    }
}

static bool wake_and_be_woken(void *user, uint64_t count)
{
    ping_pong *own = user;
    for (uint64_t i = 0; i < count; i++) {
        const unsigned turn = atomic_load(&own->turn) + 1;
        wake(&own->turn, turn);
        sleep_while(&own->turn, turn);
    }
    return true;
}

/* `call_overhead` has the same baseline. */
static bool copy_directly(void *user, uint64_t count)
{
    return gpuhal_bench_direct_copy(user, DIRECT_BYTES, count);
}

static bool one_group(gpuhal_bench *bench, gpuhal_device *device)
{
    plain_launch plain;
    gpuhal_bench_direct direct;
    gpuhal_bench_row row = gpuhal_bench_row_of(device, "launch_one_group", GPUHAL_BENCH_TIMES);
    const gpuhal_bench_side sides[] = {{launch_plain, &plain, NULL}, {copy_directly, &direct, NULL}};
    const gpuhal_bench_plan plan = gpuhal_bench_plan_calls(bench);
    row.budget = one_group_budget;
    gpuhal_bench_begin(bench->output, &row);
    if (!gpuhal_bench_direct_open(bench->gpu, device, GPUHAL_MEMORY_DEVICE, DIRECT_BYTES, &direct)) {
        return false;
    }
    const bool good = open_plain(device, "empty", 1, &plain) &&
                      gpuhal_bench_measure_row(bench, row, sides, bench->options->baseline ? 2 : 1, &plan);
    close_plain(&plain);
    gpuhal_bench_direct_close(&direct);
    return good;
}

static uint32_t cores_of(const gpuhal_device *device)
{
    uint64_t cores = 0;
    return gpuhal_device_u64(device, GPUHAL_FACT_COMPUTE_UNITS, &cores) != GPUHAL_OK || cores == 0 ? 1
           : cores > THREADS_MAX                                                                   ? THREADS_MAX
                                                                                                   : (uint32_t)cores;
}

static bool all_cores(gpuhal_bench *bench, gpuhal_device *device)
{
    plain_launch plain;
    ping_pong other = {.turn = 0};
    gpuhal_bench_row row = gpuhal_bench_row_of(device, "launch_all_cores", GPUHAL_BENCH_TIMES);
    const gpuhal_bench_side sides[] = {{launch_plain, &plain, NULL}, {wake_and_be_woken, &other, NULL}};
    const gpuhal_bench_plan plan = gpuhal_bench_plan_calls(bench);
    const bool compares = bench->options->baseline;
    row.budget = wake_budget;
    gpuhal_bench_begin(bench->output, &row);
    if (compares && pthread_create(&other.thread, NULL, answer, &other) != 0) {
        return gpuhal_bench_failed("no thread can be made");
    }
    const bool good = open_plain(device, "empty", cores_of(device), &plain) &&
                      gpuhal_bench_measure_row(bench, row, sides, compares ? 2 : 1, &plan);
    close_plain(&plain);
    if (compares) {
        wake(&other.turn, UINT32_MAX);
        pthread_join(other.thread, NULL);
    }
    return good;
}

/* ---- the work of all threads */

typedef struct worker {
    pthread_t thread;
    sem_t begin, end;
    void (*act)(const struct worker *own);
    char *to, *from;
    size_t bytes;
    bool ends;
} worker;

typedef struct workers {
    worker all[THREADS_MAX]; /* the first worker is the measuring thread, as in a launch */
    uint32_t made;
    char *memory;
} workers;

static void copy_part(const worker *own)
{
    gpuhal_bench_memcpys(own->to, own->from, own->bytes, 1);
}

static void compute_parts(__attribute__((unused)) const worker *own)
{
    for (int i = 0; i < COMPUTE_PARTS; i++) {
        compute_part();
    }
}

static void *work(void *user)
{
    worker *own = user;
    while (sem_wait(&own->begin) == 0 && !own->ends) {
        own->act(own);
        sem_post(&own->end);
    }
    return NULL;
}

static bool work_in_all(void *user, uint64_t count)
{
    workers *own = user;
    for (uint64_t i = 0; i < count; i++) {
        for (uint32_t t = 1; t < own->made; t++) {
            sem_post(&own->all[t].begin);
        }
        own->all[0].act(&own->all[0]);
        for (uint32_t t = 1; t < own->made; t++) {
            while (sem_wait(&own->all[t].end) != 0) {
            }
        }
    }
    return true;
}

/* Starts the workers. They read and write @all_bytes of memory in total, like the kernel, or no memory if @all_bytes is
 * 0. Returns false and sets gpuhal_bench_failure() on failure. */
static bool start_workers(uint32_t threads, void (*act)(const worker *own), uint64_t all_bytes, workers *own)
{
    const size_t bytes = (size_t)(all_bytes / 2 / threads / 4096 * 4096);
    own->memory = bytes > 0 ? gpuhal_bench_host_memory(2 * bytes * threads) : NULL;
    if (bytes > 0 && own->memory == NULL) {
        return false;
    }
    while (own->made < threads) {
        worker *one = &own->all[own->made];
        one->act = act;
        one->to = bytes > 0 ? own->memory + 2 * bytes * own->made : NULL;
        one->from = bytes > 0 ? one->to + bytes : NULL;
        one->bytes = bytes;
        sem_init(&one->begin, 0, 0);
        sem_init(&one->end, 0, 0);
        if (own->made > 0 && pthread_create(&one->thread, NULL, work, one) != 0) {
            return gpuhal_bench_failed("no thread can be made");
        }
        own->made++;
    }
    return true;
}

static void stop_workers(workers *own)
{
    for (uint32_t t = 1; t < own->made; t++) {
        own->all[t].ends = true;
        sem_post(&own->all[t].begin);
        pthread_join(own->all[t].thread, NULL);
    }
    free(own->memory);
}

static bool launch_triad(void *user, uint64_t count)
{
    const gpuhal_bench_launcher *launcher = user;
    for (uint64_t i = 0; i < count; i++) {
        if (!gpuhal_bench_launcher_enqueue(launcher, NULL)) {
            return false;
        }
    }
    return true;
}

static bool triad(gpuhal_bench *bench, gpuhal_device *device)
{
    static workers others;
    gpuhal_bench_launcher launcher = {0};
    gpuhal_bench_row row = gpuhal_bench_row_of(device, "launch_triad", GPUHAL_BENCH_RATIO);
    const gpuhal_bench_side sides[] = {{launch_triad, &launcher, NULL}, {work_in_all, &others, NULL}};
    const gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench, true);
    const bool compares = bench->options->baseline;
    row.bytes = triad_bytes;
    row.budget = all_threads_budget;
    others = (workers){.made = 0};
    gpuhal_bench_begin(bench->output, &row);
    const bool good = gpuhal_bench_launcher_open(device, (uint32_t)(triad_bytes / 3 / sizeof(float)), 0, &launcher) &&
                      launch_triad(&launcher, 3) && gpuhal_bench_launcher_prove(&launcher, 3) &&
                      (!compares || start_workers(cores_of(device), copy_part, triad_bytes, &others)) &&
                      gpuhal_bench_measure_row(bench, row, sides, compares ? 2 : 1, &plan);
    stop_workers(&others);
    gpuhal_bench_launcher_close(&launcher);
    return good;
}

static bool compute_bound(gpuhal_bench *bench, gpuhal_device *device)
{
    static workers others;
    plain_launch plain;
    gpuhal_bench_row row = gpuhal_bench_row_of(device, "launch_compute", GPUHAL_BENCH_TIMES);
    const gpuhal_bench_side sides[] = {{launch_plain, &plain, NULL}, {work_in_all, &others, NULL}};
    const gpuhal_bench_plan plan = gpuhal_bench_plan_copies(bench, true);
    const bool compares = bench->options->baseline;
    row.budget = all_threads_budget;
    others = (workers){.made = 0};
    gpuhal_bench_begin(bench->output, &row);
    const bool good = open_plain(device, "compute", COMPUTE_PARTS * cores_of(device), &plain) &&
                      (!compares || start_workers(cores_of(device), compute_parts, 0, &others)) &&
                      gpuhal_bench_measure_row(bench, row, sides, compares ? 2 : 1, &plan);
    stop_workers(&others);
    close_plain(&plain);
    return good;
}

/* ---- the cache */

/* PoCL also caches its compiled programs. Each process uses a new folder for PoCL's cache. */
bool gpuhal_bench_child_program(const char *const *words, double *out_ns)
{
    char backend[64], pocl[] = "/tmp/gpuhal-bench-pocl-XXXXXX";
    gpuhal *gpu = NULL;
    gpuhal_device *device = NULL;
    gpuhal_program *program = NULL;
    gpuhal_kernel *kernel = NULL;
    snprintf(backend, sizeof backend, "%.*s", (int)strcspn(words[0], ":"), words[0]);
    if (mkdtemp(pocl) == NULL || setenv("POCL_CACHE_DIR", pocl, 1) != 0 ||
        setenv("GPUHAL_PROGRAM_CACHE", words[1], 1) != 0) {
        return gpuhal_bench_failed("no folder can be made in /tmp");
    }
    bool good =
        gpuhal_bench_open_alone(backend, GPUHAL_ISOLATION_NEVER, &gpu) &&
        ((gpuhal_select(gpu, words[0], 0, &device, NULL) == GPUHAL_OK && gpuhal_device_open(device) == GPUHAL_OK) ||
         gpuhal_bench_failed_call("opening the device"));
    const uint64_t start = gpuhal_bench_now_ns();
    good = good && gpuhal_bench_launcher_make(device, &program, &kernel);
    *out_ns = (double)(gpuhal_bench_now_ns() - start);
    gpuhal_kernel_release(kernel);
    gpuhal_program_release(program);
    gpuhal_close(gpu);
    gpuhal_bench_remove_folder(pocl);
    return good;
}

/* The first process fills the cache. */
static bool warm_program(gpuhal_bench *bench, gpuhal_device *device)
{
    char folder[] = "/tmp/gpuhal-bench-programs-XXXXXX";
    double first_ns;
    gpuhal_bench_row row = gpuhal_bench_row_of(device, "warm_program", GPUHAL_BENCH_TIMES);
    const char *const warm[] = {"program", gpuhal_device_id(device), folder, NULL};
    const char *const cold[] = {"program", gpuhal_device_id(device), "none", NULL};
    row.budget = gpuhal_bench_is_inline(device) || gpuhal_bench_is_threaded(device) ? warm_budget : NAN;
    gpuhal_bench_begin(bench->output, &row);
    if (mkdtemp(folder) == NULL) {
        return gpuhal_bench_failed("no folder can be made in /tmp");
    }
    const bool good = gpuhal_bench_child_run(warm, &first_ns);
    if (good) {
        gpuhal_bench_children_row(bench, row, warm, bench->options->baseline ? cold : NULL);
    }
    gpuhal_bench_remove_folder(folder);
    return good;
}

void gpuhal_bench_rows_launch(gpuhal_bench *bench, gpuhal_device *device)
{
    static bool (*const on_cpu[])(gpuhal_bench * bench, gpuhal_device * device) = {
        one_group, all_cores, triad, compute_bound};
    const char *backend = gpuhal_device_backend(device);
    if (*gpuhal_device_formats(device) == '\0') {
        return;
    }
    for (size_t i = 0; gpuhal_bench_is_cpu(device) && i < sizeof on_cpu / sizeof *on_cpu; i++) {
        if (!on_cpu[i](bench, device)) {
            gpuhal_bench_not_measured(bench);
        }
    }
    const gpuhal_bench_vendor *vendor = gpuhal_bench_vendor_of(backend);
    if (vendor != NULL && vendor->rows_launch != NULL) {
        vendor->rows_launch(bench, device);
    }
    if ((strcmp(backend, "opencl") == 0 || strcmp(backend, "vulkan") == 0) && !warm_program(bench, device)) {
        gpuhal_bench_not_measured(bench);
    }
}
