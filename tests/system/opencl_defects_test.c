/* Tests the workarounds for the driver defects in plugins/opencl/defects.c. Either the installed driver has the defect,
 * or the fake library reports the name of a driver that has it. The plugin must use the workarounds only for drivers
 * with defects. */
#include "opencl_programs.h"

#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

/* Writes that the launch has begun. One thread of the launch then waits until the test allows it to end. */
static const char *const waiting = "__kernel void hold(__global volatile uint *x, uint at) {\n"
                                   "  if (get_global_id(0) == 0) { x[at] = 1; while (x[at + 1] == 0) { } } }\n";

/* Two queues and one kernel, with memory that both host and device access. */
typedef struct machine {
    fixture d;
    gpuhal_plugin_queue *other;
    gpuhal_plugin_program *program;
    gpuhal_plugin_kernel *kernel;
    volatile uint32_t *words;
} machine;

static void open_machine(machine *m, uint32_t index)
{
    static const gpuhal_parameter parameters[] = {{.kind = GPUHAL_PARAMETER_BUFFER},
                                                  {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4}};
    const gpuhal_kernel_desc desc = described("hold", parameters, 2);
    open_fixture(&m->d, index, 0);
    m->other = queue_or_fail(&m->d, 0);
    expect_fine(&m->d, load_text(&m->d, waiting, NULL, &m->program), "program_load");
    m->kernel = kernel_or_fail(&m->d, m->program, &desc, NULL);
    m->words = m->d.far.host;
    assert_non_null(m->words);
    memset(m->d.far.host, 0, BYTES);
}

static void close_machine(machine *m)
{
    m->d.ops->programs->kernel_destroy(m->kernel);
    m->d.ops->programs->program_unload(m->program);
    m->d.ops->queues->queue_destroy(m->other);
    close_fixture(&m->d);
}

/* The kernel uses the two 32-bit words at `at`. */
static gpuhal_status launch_hold(machine *m, gpuhal_plugin_queue *queue, uint32_t at, uint32_t groups)
{
    const gpuhal_plugin_argument arguments[] = {{.kind = GPUHAL_PARAMETER_BUFFER, .memory = &m->d.far, .bytes = BYTES},
                                                value_of(&at, sizeof at)};
    const gpuhal_plugin_launch launch = {.size = sizeof launch,
                                         .argument_count = 2,
                                         .arguments = arguments,
                                         .groups = {groups, 1, 1},
                                         .group_size = {FEW, 1, 1},
                                         .threads = {groups * FEW, 1, 1}};
    return m->d.ops->programs->launch(queue, m->kernel, &launch);
}

/* A launch on a separate thread, because `basic` runs the kernel inside the call. */
typedef struct launcher {
    machine *m;
    gpuhal_plugin_queue *queue;
    uint32_t at, groups;
    pthread_t thread;
    gpuhal_status status;
    _Atomic bool returned;
} launcher;

static void *launch(void *user)
{
    launcher *own = user;
    own->status = launch_hold(own->m, own->queue, own->at, own->groups);
    own->returned = true;
    return NULL;
}

static void begin_launch(launcher *own)
{
    assert_int_equal(pthread_create(&own->thread, NULL, launch, own), 0);
}

static void wait_for_launch(const launcher *own)
{
    while (!own->m->words[own->at] && !(own->returned && own->status)) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static void end_launch(launcher *own)
{
    own->m->words[own->at + 1] = 1;
    assert_int_equal(pthread_join(own->thread, NULL), 0);
}

/* Launches the kernel in another queue while a smaller launch of the same kernel runs. Returns the status of the larger
 * launch. */
static gpuhal_status launch_beside(machine *m)
{
    launcher narrow = {.m = m, .queue = m->d.queue, .at = 0, .groups = 1};
    launcher wide = {.m = m, .queue = m->other, .at = 16, .groups = 3};
    begin_launch(&narrow);
    wait_for_launch(&narrow);
    begin_launch(&wide);
    wait_for_launch(&wide);
    end_launch(&narrow);
    synchronize(&m->d, m->d.queue);
    end_launch(&wide);
    synchronize(&m->d, m->other);
    return wide.status;
}

/* Reports another version and device name, because some installed drivers do not have the defect: PoCL 6, and the
 * pthread device of PoCL 3.1. */
static void state(const char *version, const char *name)
{
    char answers[256];
    snprintf(answers, sizeof answers, "platform=%s;name=%s", version, name);
    use_answers(answers);
}

/* Without the workaround, a driver with the defect aborts the process when the second launch ends. */
TEST(launches_of_two_queues_do_not_overlap_on_basic)
{
    machine m;
    state("OpenCL 3.0 PoCL 3.1  Linux, Release", "basic-x");
    open_machine(&m, BASIC);
    assert_int_equal(launch_beside(&m), GPUHAL_NOT_READY);
    m.words[33] = 1;
    expect_fine(&m.d, launch_hold(&m, m.other, 32, 3), "launch"); /* the launch is now accepted */
    synchronize(&m.d, m.other);
    assert_int_equal(m.words[32], 1);
    m.words[65] = 1;
    expect_fine(&m.d, launch_hold(&m, NULL, 64, 5), "launch");
    close_machine(&m);
}

TEST(launches_of_two_queues_do_not_overlap_on_drivers_that_forbid_it)
{
    machine m;
    state("OpenCL 3.0 PoCL 5.0  Linux, Release", "cpu-haswell-x");
    open_machine(&m, PTHREAD);
    assert_int_equal(launch_beside(&m), GPUHAL_NOT_READY);
    m.words[33] = m.words[65] = 1;
    expect_fine(&m.d, launch_hold(&m, m.other, 32, 3), "launch");
    expect_fine(&m.d, launch_hold(&m, NULL, 64, 5), "launch"); /* waits for the previous launch */
    assert_int_equal(m.words[32], 1);
    synchronize(&m.d, m.other);
    close_machine(&m);
}

TEST(launches_of_one_queue_may_be_enqueued_on_drivers_that_forbid_overlap)
{
    machine m;
    state("OpenCL 2.0 pocl 1.8  Linux", "pthread-haswell-x");
    open_machine(&m, PTHREAD);
    expect_fine(&m.d, launch_hold(&m, m.d.queue, 0, 1), "launch");
    expect_fine(&m.d, launch_hold(&m, m.d.queue, 16, 3), "launch");
    assert_int_equal(launch_hold(&m, m.other, 32, 1), GPUHAL_NOT_READY);
    m.words[1] = m.words[17] = 1;
    synchronize(&m.d, m.d.queue);
    close_machine(&m);
}

TEST(a_launch_that_the_driver_refuses_leaves_the_turn_with_the_one_that_runs)
{
    const gpuhal_plugin_launch nothing = {
        .size = sizeof nothing, .groups = {1, 1, 1}, .group_size = {FEW, 1, 1}, .threads = {FEW, 1, 1}};
    const gpuhal_kernel_desc desc = described("hold", NULL, 0);
    gpuhal_plugin_program *program = NULL;
    machine m;
    state("OpenCL 2.0 pocl 1.8  Linux", "pthread-haswell-x");
    open_machine(&m, PTHREAD);
    expect_fine(&m.d, load_text(&m.d, waiting, "-cl-kernel-arg-info", &program), "program_load");
    gpuhal_plugin_kernel *unset = kernel_or_fail(&m.d, program, &desc, NULL);
    expect_fine(&m.d, launch_hold(&m, m.d.queue, 0, 1), "launch");
    assert_true(m.d.ops->programs->launch(m.d.queue, unset, &nothing) < 0); /* the kernel's arguments were never set */
    m.words[33] = 1;
    assert_int_equal(launch_hold(&m, m.other, 32, 1), GPUHAL_NOT_READY);
    m.words[1] = 1;
    synchronize(&m.d, m.d.queue);
    m.d.ops->programs->kernel_destroy(unset);
    m.d.ops->programs->program_unload(program);
    close_machine(&m);
}

/* Another opened device, which a separate thread closes. */
typedef struct closer {
    fixture d;
    pthread_t thread;
    _Atomic bool closed;
} closer;

static void *close_it(void *user)
{
    closer *own = user;
    close_fixture(&own->d);
    own->closed = true;
    return NULL;
}

static bool closes(closer *c)
{
    assert_int_equal(pthread_create(&c->thread, NULL, close_it, c), 0);
    for (int i = 0; i < 10000 && !c->closed; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return c->closed;
}

TEST(a_device_is_closed_while_basic_runs_a_kernel_of_another_inside_its_enqueue)
{
    machine m;
    closer c = {.closed = false};
    open_machine(&m, BASIC);
    open_fixture(&c.d, BASIC, 0);
    launcher runs = {.m = &m, .queue = m.other, .at = 0, .groups = 1};
    begin_launch(&runs);
    wait_for_launch(&runs);
    const bool closed = closes(&c);
    end_launch(&runs);
    assert_int_equal(pthread_join(c.thread, NULL), 0);
    assert_true(closed);
    assert_int_equal(runs.status, GPUHAL_OK);
    close_machine(&m);
}

TEST(a_device_is_closed_while_a_launch_of_another_waits_for_its_turn)
{
    machine m;
    closer c = {.closed = false};
    state("OpenCL 3.0 PoCL 5.0  Linux, Release", "cpu-haswell-x");
    open_machine(&m, PTHREAD);
    open_fixture(&c.d, PTHREAD, 0);
    launcher waits = {.m = &m, .queue = NULL, .at = 16, .groups = 3};
    expect_fine(&m.d, launch_hold(&m, m.other, 0, 1), "launch");
    begin_launch(&waits);
    /* the launch should be waiting now; otherwise the test has no effect */
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
    const bool closed = closes(&c);
    m.words[1] = 1;
    end_launch(&waits);
    assert_int_equal(pthread_join(c.thread, NULL), 0);
    assert_true(closed);
    assert_int_equal(waits.status, GPUHAL_OK);
    assert_int_equal(m.words[16], 1);
    close_machine(&m);
}

TEST(launches_of_two_queues_overlap_on_drivers_without_the_defect)
{
    static const char *const others[][2] = {
        {"OpenCL 3.0 PoCL 3.1+debian  Linux", "pthread-haswell-x"},
        {"OpenCL 3.0 PoCL 6.0  Linux", "cpu-haswell-x"},
        {"OpenCL 3.0 PoCL 5.0  Linux", "NVIDIA A100"},
        {"OpenCL 3.0 Another 5.0", "cpu-haswell-x"},
        {"OpenCL 3.0", "pthread-haswell-x"},
    };
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const pid_t child = fork(); /* a process queries a device's name only once */
        if (child == 0) {
            machine m;
            state(others[i][0], others[i][1]);
            open_machine(&m, PTHREAD);
            expect_fine(&m.d, launch_hold(&m, m.d.queue, 0, 1), "launch");
            expect_fine(&m.d, launch_hold(&m, m.other, 16, 3), "launch");
            m.words[1] = m.words[17] = 1;
            synchronize(&m.d, m.d.queue);
            synchronize(&m.d, m.other);
            close_machine(&m);
            _exit(0);
        }
        int state = 0;
        assert_int_equal(waitpid(child, &state, 0), child);
        assert_int_equal(state, 0);
    }
}

TEST(a_build_that_fails_without_a_word_about_the_code_is_tried_twice)
{
    fixture d;
    gpuhal_plugin_program *program = NULL;
    use_answers("build=1;platform=OpenCL 3.0 PoCL 3.1");
    open_fixture(&d, BASIC, 0);
    program = program_or_fail(&d, NULL);
    assert_string_equal(build_log, "");
    d.ops->programs->program_unload(program);
    use_answers("build=3;platform=OpenCL 3.0 PoCL 3.1"); /* one build has failed; two more fail */
    const gpuhal_status status = load_text(&d, source, NULL, &program);
    assert_int_equal(status, GPUHAL_ERROR_DRIVER);
    (void)gpuhal_direct_failed(d.plugin, status, "loading");
    assert_non_null(strstr(gpuhal_last_error()->sentence, "POCL_CACHE_DIR"));
    assert_null(program);
    close_fixture(&d);
}

TEST(a_build_that_fails_so_on_another_driver_is_not_tried_again)
{
    fixture d;
    gpuhal_plugin_program *program = NULL;
    use_answers("build=1;platform=OpenCL 3.0 PoCL 6.0");
    open_fixture(&d, BASIC, 0);
    assert_int_equal(load_text(&d, source, NULL, &program), GPUHAL_ERROR_INVALID_ARGUMENT);
    close_fixture(&d);
}

#include "test_main.h"
