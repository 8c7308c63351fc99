/* Each allocation and each system call from the load of a program to the end of its launch fails once. Also tests kills
 * during a write of the cache, and forks. */
#include "program_support.h"
#include "support/child.h"
#include "support/torture.h"
#include "support/torture_mock.h"
#include "support/tree.h"

#include <gpuhal/recording.h>

static char cache[128], cache_folder[160];
static const gpuhal_code other_code = {
    .size = sizeof other_code, .format = "mock", .code = "program sum\n", .bytes = sizeof "program sum\n" - 1};

static gpuhal_status open_with_cache(gpuhal **out_gpu)
{
    static gpuhal_builtin_fn *const builtins[] = {gpuhal_mock_query, NULL};
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .registry = "none",
                                  .backends = "mock",
                                  .builtins = builtins};
    gpuhal_mock.count = 1;
    gpuhal_mock.fork_safe = 1; /* rounds are forked children, and this process may have used the mock */
    gpuhal_mock.devices[0].formats = "mock";
    gpuhal_mock.devices[0].keeps_compiled = 1;
    return gpuhal_open(&config, out_gpu);
}

typedef struct objects {
    gpuhal *gpu;
    gpuhal_device *device;
    gpuhal_program *program;
    gpuhal_kernel *kernel;
    gpuhal_buffer *buffer;
    gpuhal_queue *queue;
} objects;

static gpuhal_status make(objects *o)
{
    const gpuhal_kernel_desc kernel_desc = {.size = sizeof kernel_desc, .name = "add"};
    const gpuhal_buffer_desc buffer_desc = {.size = sizeof buffer_desc, .bytes = 64};
    const gpuhal_program_desc desc = {.size = sizeof desc, .codes = &plain_code, .code_count = 1};
    gpuhal_status status = open_with_cache(&o->gpu);
    status = status ? status : gpuhal_select(o->gpu, "mock:0", 0, &o->device, NULL);
    status = status ? status : gpuhal_program_create(o->device, &desc, &o->program);
    status = status ? status : gpuhal_kernel_create(o->program, &kernel_desc, &o->kernel);
    status = status ? status : gpuhal_buffer_create(o->device, &buffer_desc, &o->buffer);
    return status ? status : gpuhal_queue_create(o->device, NULL, &o->queue);
}

static void give_back(const objects *o)
{
    gpuhal_queue_destroy(o->queue);
    gpuhal_buffer_release(o->buffer);
    gpuhal_kernel_release(o->kernel);
    gpuhal_program_release(o->program);
    gpuhal_close(o->gpu);
}

enum { MANY = 20 };

/* Launches with more used buffers than fit into a launch without an allocation. */
static gpuhal_status launch_with_many(const objects *o)
{
    const uint32_t value = 1;
    const gpuhal_argument arguments[] = {{.buffer = o->buffer}, {.value = &value, .bytes = sizeof value}};
    gpuhal_buffer *uses[MANY];
    for (int i = 0; i < MANY; i++) {
        uses[i] = o->buffer;
    }
    return gpuhal_kernel_launch(o->queue, o->kernel,
                                &(gpuhal_launch){.size = sizeof(gpuhal_launch),
                                                 .argument_count = 2,
                                                 .arguments = arguments,
                                                 .groups = {2, 1, 1},
                                                 .uses = uses,
                                                 .uses_count = MANY});
}

/* The second run finds the first one waiting for its turn, so it copies the list of steps. The first run adds 1, and
 * the second run adds 3. */
static gpuhal_status run_recording(const objects *o)
{
    gpuhal_recording *recording = NULL;
    uint32_t value = 1, step = 0;
    const gpuhal_argument arguments[] = {{.buffer = o->buffer}, {.value = &value, .bytes = sizeof value}};
    const gpuhal_launch launch = {
        .size = sizeof launch, .argument_count = 2, .arguments = arguments, .groups = {2, 1, 1}};
    const gpuhal_slot_value three = {.argument = {.value = &(uint32_t){3}, .bytes = 4}};
    const gpuhal_recording_desc desc = {.size = sizeof desc, .slot_count = 1};
    gpuhal_status status = gpuhal_recording_create(o->device, &desc, &recording);
    status = status ? status : gpuhal_recording_copy(recording, o->buffer, 0, o->buffer, 32, 32);
    status = status ? status : gpuhal_recording_launch(recording, o->kernel, &launch, &step);
    status = status ? status : gpuhal_recording_slot(recording, 0, step, 1);
    status = status ? status : gpuhal_recording_finish(recording);
    status = status ? status : gpuhal_recording_run(o->queue, recording, NULL, 0);
    status = status ? status : gpuhal_recording_run(o->queue, recording, &three, 1);
    gpuhal_recording_release(recording);
    return status;
}

static gpuhal_status use_programs(void)
{
    objects o = {.gpu = NULL};
    gpuhal_status status = make(&o);
    status = status ? status : gpuhal_fill(NULL, o.buffer, 0, 64, 1, 4);
    status = status ? status : add_to(NULL, o.kernel, o.buffer, 1);
    status = status ? status : add_to(o.queue, o.kernel, o.buffer, 1);
    status = status ? status : launch_with_many(&o);
    status = status ? status : run_recording(&o);
    status = status ? status : gpuhal_queue_synchronize(o.queue, UINT64_C(20000000000));
    if (!status) {
        expect_numbers(o.buffer, 8);
    }
    give_back(&o);
    expect_mock_closed();
    assert_int_equal(gpuhal_mock.devices[0].programs, 0);
    assert_int_equal(gpuhal_mock.devices[0].kernels, 0);
    return status;
}

static void begin_cache(void)
{
    begin_tree();
    unsetenv("GPUHAL_SYSTEM_ROOT");
    snprintf(cache, sizeof cache, "%s/programs", tree_root);
    snprintf(cache_folder, sizeof cache_folder, "%s/gpuhal-programs", cache);
    setenv("GPUHAL_PROGRAM_CACHE", cache, 1);
}

static void empty_cache(void)
{
    (void)nftw(cache, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

TEST(every_allocation_of_a_program_may_fail_once)
{
    begin_cache();
    torture(use_programs, GPUHAL_FAULT_ALLOCATION, empty_cache);
    remove_tree();
}

/* A key without the variable would equal the key of a program that was cached when the variable was not set. */
TEST(while_memory_is_short_no_program_is_used_that_was_compiled_with_other_variables)
{
    objects o = {.gpu = NULL};
    begin_cache();
    assert_ok(make(&o));
    unsigned calls = 1;
    for (unsigned at = 0; at <= calls; at++) { /* in the first round nothing fails */
        const gpuhal_program_desc desc = {.size = sizeof desc, .codes = &plain_code, .code_count = 1};
        gpuhal_program *program = NULL;
        char value[16];
        snprintf(value, sizeof value, "%u", at);
        setenv("POCL_TEST_VARIABLE", value, 1);
        gpuhal_fault_begin(GPUHAL_FAULT_ALLOCATION, at, 0);
        (void)gpuhal_program_create(o.device, &desc, &program);
        gpuhal_fault_end();
        calls = at == 0 ? gpuhal_fault_calls() : calls;
        assert_false(gpuhal_program_is_cached(program));
        gpuhal_program_release(program);
    }
    unsetenv("POCL_TEST_VARIABLE");
    gpuhal_program *again = NULL;
    assert_ok(load_codes(o.gpu, &plain_code, 1, &again));
    assert_true(gpuhal_program_is_cached(again));
    gpuhal_program_release(again);
    give_back(&o);
    remove_tree();
}

static gpuhal_status use_and_expect_no_unfinished_file(void)
{
    const gpuhal_status status = use_programs();
    char **names = NULL;
    size_t count = 0;
    if (gpuhal_os_directory_names(cache_folder, &names, &count) == 0) {
        for (size_t i = 0; i < count; i++) {
            assert_int_not_equal(strncmp(names[i], "new-", 4), 0);
        }
        gpuhal_os_names_free(names, count);
    }
    return status;
}

TEST(every_system_call_of_a_program_may_fail_once_and_no_unfinished_file_is_left)
{
    begin_cache();
    torture(use_and_expect_no_unfinished_file, GPUHAL_FAULT_FAIL, empty_cache);
    remove_tree();
}

TEST(compiled_code_that_a_plugin_does_not_give_costs_no_memory)
{
    objects o = {.gpu = NULL};
    begin_cache();
    assert_ok(make(&o));
    int64_t held = 0;
    gpuhal_mock.devices[0].fail_compiled = GPUHAL_ERROR_DRIVER;
    for (int i = 0; i < 3; i++) {
        const gpuhal_program_desc desc = {.size = sizeof desc, .codes = &other_code, .code_count = 1};
        gpuhal_program *program = NULL;
        assert_ok(gpuhal_program_create(o.device, &desc, &program));
        assert_false(gpuhal_program_is_cached(program));
        gpuhal_program_release(program);
        held = i == 0 ? gpuhal_fault_held() : held;
        assert_int_equal(gpuhal_fault_held(), held);
    }
    give_back(&o);
    remove_tree();
}

/* Uses programs in a separate process, since a process that has had threads does not fork. Returns whether the separate
 * process was killed at call number `call` of the given kind. If `cached`, nothing may be compiled. */
static bool is_killed_at(gpuhal_fault kind, unsigned call, bool cached)
{
    const pid_t child = begin_child();
    if (child == 0) {
        gpuhal_fault_begin(kind, call, 0);
        const gpuhal_status status = use_programs();
        _exit(status ? 2 : cached && gpuhal_mock.devices[0].compilations ? 3 : 0);
    }
    int state = -1;
    assert_int_equal(waitpid(child, &state, 0), child);
    assert_true(WIFSIGNALED(state) ? WTERMSIG(state) == SIGKILL : state == 0);
    return WIFSIGNALED(state);
}

static void expect_works(bool cached)
{
    assert_false(is_killed_at(GPUHAL_FAULT_NOTHING, 0, cached));
}

/* The cache already contains the program. */
TEST(every_call_that_reads_kept_code_may_fail_once)
{
    begin_cache();
    expect_works(false);
    torture(use_programs, GPUHAL_FAULT_FAIL, NULL);
    remove_tree();
}

/* A leftover file must be either valid or unused. The next process must have a working program and cache it. */
TEST(killed_at_any_call_the_cache_serves_the_next_process)
{
    begin_cache();
    bool killed = true;
    for (unsigned call = 1; killed; call++) {
        killed = is_killed_at(GPUHAL_FAULT_KILL_BEFORE, call, false);
        expect_works(false);
        empty_cache();
        (void)is_killed_at(GPUHAL_FAULT_KILL_AFTER, call, false);
        expect_works(false);
        expect_works(true);
        empty_cache();
    }
    remove_tree();
}

static int refuse_in_child(const objects *o)
{
    const gpuhal_kernel_desc kernel_desc = {.size = sizeof kernel_desc, .name = "add"};
    const gpuhal_program_desc desc = {.size = sizeof desc, .codes = &plain_code, .code_count = 1};
    gpuhal_program *program = NULL;
    gpuhal_kernel *kernel = NULL;
    const bool refused = gpuhal_program_create(o->device, &desc, &program) == GPUHAL_ERROR_FORKED &&
                         gpuhal_kernel_create(o->program, &kernel_desc, &kernel) == GPUHAL_ERROR_FORKED &&
                         add_to(NULL, o->kernel, o->buffer, 1) == GPUHAL_ERROR_FORKED &&
                         add_to(o->queue, o->kernel, o->buffer, 1) == GPUHAL_ERROR_FORKED;
    gpuhal_kernel_release(o->kernel);
    gpuhal_program_release(o->program);
    return refused ? 0 : 1;
}

TEST(a_child_of_a_fork_is_refused_and_its_parent_goes_on)
{
    objects o = {.gpu = NULL};
    begin_cache();
    assert_ok(make(&o));
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(refuse_in_child(&o));
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_ok(gpuhal_fill(NULL, o.buffer, 0, 64, 1, 4));
    assert_ok(add_to(o.queue, o.kernel, o.buffer, 1));
    assert_ok(gpuhal_queue_synchronize(o.queue, UINT64_MAX));
    expect_numbers(o.buffer, 2);
    give_back(&o);
    expect_mock_has_no_programs();
    remove_tree();
}

#include "test_main.h"
