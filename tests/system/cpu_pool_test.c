/* Tests the threads that run the groups of a launch on the CPU. To check that several threads run at the same time, a
 * group waits for other groups that only another thread can run. */
#include "support/cpu_kernels.h"

#include "support/process.h"

#include <signal.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PATIENCE_MS 20000

static bool comes_to(_Atomic uint32_t *number, uint32_t least)
{
    for (int i = 0; i < PATIENCE_MS && *number < least; i++) {
        usleep(1000);
    }
    return *number >= least;
}

/* ---- kernels. Their only argument is the address of the shared state. */

typedef struct shared {
    _Atomic uint32_t here, passed; /* groups that have begun; groups that saw the expected number */
    uint32_t wanted;
    _Atomic bool goes_on;           /* ends kernels that otherwise run long or forever */
    _Atomic uint32_t inside, pairs; /* groups that run now; groups that ran at the same time as another group */
    _Atomic uint32_t done;
} shared;

static void gather(void *const *arguments, const gpuhal_host_group *group)
{
    shared *all = *(shared *const *)arguments[0];
    (void)group;
    all->here++;
    all->passed += comes_to(&all->here, all->wanted);
}

static void stay(void *const *arguments, const gpuhal_host_group *group)
{
    shared *all = *(shared *const *)arguments[0];
    (void)group;
    all->here++;
    while (!all->goes_on) {
        usleep(1000);
    }
}

static void do_little(void *const *arguments, const gpuhal_host_group *group)
{
    shared *all = *(shared *const *)arguments[0];
    (void)group;
    if (!all->goes_on) {
        all->here++;
        all->pairs += ++all->inside > 1;
        usleep(500);
        all->inside--;
    }
}

/* The first group runs as long as all other groups together. */
static void take_turns(void *const *arguments, const gpuhal_host_group *group)
{
    shared *all = *(shared *const *)arguments[0];
    if (group->group[0] == 0) {
        all->passed += comes_to(&all->done, all->wanted);
    }
    all->done++;
}

/* Each group runs on a separate thread, and the pool's threads finish late. */
static void end_late(void *const *arguments, const gpuhal_host_group *group)
{
    shared *all = *(shared *const *)arguments[0];
    char name[16] = "";
    (void)group;
    all->here++;
    all->passed += comes_to(&all->here, all->wanted);
    pthread_getname_np(pthread_self(), name, sizeof name);
    if (strcmp(name, "gpuhal-cpu") == 0) {
        usleep(50000);
    }
    all->done++;
}

static void look_at_thread(void *const *arguments, const gpuhal_host_group *group)
{
    shared *all = *(shared *const *)arguments[0];
    sigset_t blocked;
    cpu_set_t mask;
    char name[16] = "";
    (void)group;
    all->here++;
    assert_true(comes_to(&all->here, all->wanted));
    pthread_getname_np(pthread_self(), name, sizeof name);
    if (strcmp(name, "gpuhal-cpu") == 0) {
        pthread_sigmask(SIG_BLOCK, NULL, &blocked);
        assert_true(sigismember(&blocked, SIGTERM) && sigismember(&blocked, SIGUSR1) &&
                    !sigismember(&blocked, SIGSEGV));
        assert_int_equal(sched_getaffinity(0, sizeof mask, &mask), 0);
        all->passed += (uint32_t)CPU_COUNT(&mask);
        all->done++;
    }
}

static void count_in_place(void *const *arguments, const gpuhal_host_group *group)
{
    _Atomic uint32_t *counts = arguments[0];
    const uint32_t *at = group->group, *all = group->groups;
    assert_true(at[0] < all[0] && at[1] < all[1] && at[2] < all[2] && group->size == sizeof *group);
    counts[(at[2] * all[1] + at[1]) * all[0] + at[0]]++;
}

static void use_local(void *const *arguments, const gpuhal_host_group *group)
{
    shared *all = *(shared *const *)arguments[0];
    const uint32_t bytes = *(const uint32_t *)arguments[2];
    unsigned char *const parts[] = {arguments[1], arguments[3], group->local};
    for (int i = 0; i < 3; i++) {
        assert_int_equal((uintptr_t)parts[i] % 64, 0);
        memset(parts[i], (int)(3 * group->group[0] + (uint32_t)i) & 0xff, bytes);
    }
    sched_yield();
    for (int i = 0; i < 3; i++) {
        for (uint32_t k = 0; k < bytes; k++) {
            assert_int_equal(parts[i][k], (3 * group->group[0] + (uint32_t)i) & 0xff);
        }
    }
    all->done++;
}

static const gpuhal_host_function functions[] = {
    {"gather", gather},         {"stay", stay},           {"do_little", do_little},
    {"take_turns", take_turns}, {"look", look_at_thread}, {"count", count_in_place},
    {"use_local", use_local},   {"end_late", end_late},   {NULL, NULL},
};
static const gpuhal_parameter pointer_only = {.kind = GPUHAL_PARAMETER_VALUE, .bytes = sizeof(void *)};

static gpuhal_plugin_program *functions_on(const cpu *with)
{
    return program_or_fail(with,
                           (gpuhal_code){.format = "host-function", .code = functions, .bytes = sizeof functions});
}

typedef struct task {
    const cpu *with;
    gpuhal_plugin_program *program;
    const char *kernel;
    uint32_t groups;
    shared *all;
} task;

static void *run_task(void *user)
{
    const task *own = user;
    gpuhal_plugin_kernel *kernel = kernel_or_fail(own->with, own->program, own->kernel, &pointer_only, 1);
    const gpuhal_plugin_argument argument = {
        .kind = GPUHAL_PARAMETER_VALUE, .value = &own->all, .bytes = sizeof own->all};
    expect_fine(own->with, launch(own->with, kernel, &argument, 1, own->groups), own->kernel);
    own->with->ops.programs->kernel_destroy(kernel);
    return NULL;
}

static void run(const cpu *with, gpuhal_plugin_program *program, const char *kernel, uint32_t groups, shared *all)
{
    (void)run_task(&(task){with, program, kernel, groups, all});
}

static void end(const cpu *with, gpuhal_plugin_program *program)
{
    with->ops.programs->program_unload(program);
    close_cpu(with);
}

/* ---- guarantees of a launch */

TEST(every_group_runs_once_and_is_given_its_numbers)
{
    static const uint32_t shapes[][3] = {{1, 1, 1}, {5, 7, 11}, {1, 1, 1000}, {1, 333, 2}, {100000, 1, 1}, {2, 1, 1}};
    cpu with = open_cpu("cpu.threads=4");
    gpuhal_plugin_program *program = functions_on(&with);
    gpuhal_plugin_kernel *kernel = kernel_or_fail(&with, program, "count", &buffer_only, 1);
    gpuhal_memory memory = memory_or_fail(&with, 400000);
    const gpuhal_plugin_argument argument = {.kind = GPUHAL_PARAMETER_BUFFER, .memory = &memory, .bytes = 400000};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const uint32_t total = shapes[i][0] * shapes[i][1] * shapes[i][2], *counts = memory.host;
        const gpuhal_plugin_launch what = {.size = sizeof what,
                                           .arguments = &argument,
                                           .argument_count = 1,
                                           .groups = {shapes[i][0], shapes[i][1], shapes[i][2]},
                                           .group_size = {4, 1, 1},
                                           .threads = {4 * shapes[i][0], shapes[i][1], shapes[i][2]}};
        memset(memory.host, 0, 400000);
        expect_fine(&with, with.ops.programs->launch(NULL, kernel, &what), "launch");
        for (uint32_t k = 0; k < 100000; k++) {
            assert_int_equal(counts[k], k < total);
        }
    }
    with.ops.release(with.device, &memory);
    with.ops.programs->kernel_destroy(kernel);
    end(&with, program);
}

TEST(local_memory_is_of_one_group_at_a_time)
{
    static const gpuhal_parameter parameters[] = {{.kind = GPUHAL_PARAMETER_VALUE, .bytes = sizeof(void *)},
                                                  {.kind = GPUHAL_PARAMETER_LOCAL},
                                                  {.kind = GPUHAL_PARAMETER_VALUE, .bytes = 4},
                                                  {.kind = GPUHAL_PARAMETER_LOCAL}};
    static const uint32_t sizes[] = {1, 100, 4096, 300000}, groups[] = {1, 3, 64};
    cpu with = open_cpu("cpu.threads=4");
    gpuhal_plugin_program *program = functions_on(&with);
    gpuhal_plugin_kernel *kernel = kernel_or_fail(&with, program, "use_local", parameters, 4);
    for (int i = 0; i < 12; i++) {
        shared all = {0};
        const shared *address = &all;
        const uint32_t bytes = sizes[i / 3];
        const gpuhal_plugin_argument arguments[] = {
            {.kind = GPUHAL_PARAMETER_VALUE, .value = &address, .bytes = sizeof address},
            {.kind = GPUHAL_PARAMETER_LOCAL, .bytes = bytes},
            {.kind = GPUHAL_PARAMETER_VALUE, .value = &bytes, .bytes = 4},
            {.kind = GPUHAL_PARAMETER_LOCAL, .bytes = bytes}};
        const gpuhal_plugin_launch what = {.size = sizeof what,
                                           .arguments = arguments,
                                           .argument_count = 4,
                                           .groups = {groups[i % 3], 1, 1},
                                           .group_size = {4, 1, 1},
                                           .threads = {4 * groups[i % 3], 1, 1},
                                           .local_bytes = bytes};
        expect_fine(&with, with.ops.programs->launch(NULL, kernel, &what), "launch");
        assert_int_equal(all.done, groups[i % 3]);
    }
    with.ops.programs->kernel_destroy(kernel);
    end(&with, program);
}

/* ---- threads */

TEST(threads_begin_with_several_groups_and_end_with_the_last_device)
{
    const int before = count_threads_first();
    cpu with = open_cpu("cpu.threads=4");
    gpuhal_plugin_device *other = NULL;
    gpuhal_ops ops = with.ops;
    expect_fine(&with, with.plugin->open(gpuhal_direct_host(), with.instance, 0, NULL, &other, &ops), "open");
    gpuhal_plugin_program *program = functions_on(&with);
    for (int i = 0; i < 3; i++) {
        shared all = {.wanted = 1};
        run(&with, program, "gather", 1, &all);
        assert_int_equal(all.passed, 1);
        assert_int_equal(count_threads(), before + (i > 0 ? 3 : 0));
        all = (shared){.wanted = 4};
        run(&with, program, "gather", 4, &all);
        assert_int_equal(all.passed, 4);
        assert_int_equal(count_threads(), before + 3);
    }
    with.plugin->close(other);
    assert_int_equal(count_threads(), before + 3);
    with.ops.programs->program_unload(program);
    with.plugin->close(with.device);
    assert_true(threads_come_down_to(before));
    expect_fine(&with, with.plugin->open(gpuhal_direct_host(), with.instance, 0, NULL, &with.device, &ops), "open");
    program = functions_on(&with);
    shared all = {.wanted = 4};
    run(&with, program, "gather", 4, &all);
    assert_int_equal(all.passed, 4);
    end(&with, program);
    assert_true(threads_come_down_to(before));
}

TEST(threads_take_no_signals_and_run_on_all_processors_of_the_process)
{
    cpu_set_t all_processors, one;
    CPU_ZERO(&one);
    assert_int_equal(sched_getaffinity(0, sizeof all_processors, &all_processors), 0);
    for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &all_processors)) {
            CPU_SET(i, &one);
        }
    }
    cpu with = open_cpu("cpu.threads=3");
    gpuhal_plugin_program *program = functions_on(&with);
    shared all = {.wanted = 3};
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    run(&with, program, "look", 3, &all);
    assert_int_equal(all.done, 2);
    assert_int_equal(all.passed, 2 * CPU_COUNT(&all_processors));
    end(&with, program);
}

TEST(the_option_limits_the_threads_and_refuses_values_outside_1_to_1024)
{
    static const char *const wrong[] = {"0", "1025", "two", "", "-1", "4x"};
    const int before = count_threads_first();
    cpu with = open_cpu("cpu.threads=1");
    gpuhal_plugin_program *program = functions_on(&with);
    shared all = {.wanted = 1};
    run(&with, program, "gather", 100, &all);
    assert_int_equal(all.passed, 100);
    assert_int_equal(count_threads(), before);
    end(&with, program);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char option[64];
        snprintf(option, sizeof option, "cpu.threads=%s", wrong[i]);
        setenv("GPUHAL_OPTIONS", option, 1);
        expect_refused(&with, with.plugin->start(gpuhal_direct_host(), &with.instance), GPUHAL_ERROR_INVALID_ARGUMENT,
                       "it takes a number from 1 to 1024");
    }
}

/* ---- several launches share the threads */

TEST(a_group_that_takes_long_holds_up_no_other_one)
{
    cpu with = open_cpu("cpu.threads=2");
    gpuhal_plugin_program *program = functions_on(&with);
    shared all = {.wanted = 9999};
    run(&with, program, "take_turns", 10000, &all);
    assert_int_equal(all.passed, 1);
    assert_int_equal(all.done, 10000);
    end(&with, program);
}

TEST(a_launch_returns_when_its_last_group_has_ended)
{
    cpu with = open_cpu("cpu.threads=4");
    gpuhal_plugin_program *program = functions_on(&with);
    shared all = {.wanted = 4};
    run(&with, program, "end_late", 4, &all);
    assert_int_equal(all.passed, 4);
    assert_int_equal(all.done, 4);
    end(&with, program);
}

static pthread_t start(task *own)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run_task, own), 0);
    return thread;
}

/* At first the endless launch occupies all four threads, later only two. */
TEST(a_launch_that_does_not_end_takes_only_its_threads)
{
    cpu with = open_cpu("cpu.threads=4");
    gpuhal_plugin_program *program = functions_on(&with);
    for (uint32_t taken = 4; taken >= 2; taken -= 2) {
        shared endless = {.goes_on = false}, all = {.wanted = taken == 4 ? 1 : 3};
        task own = {&with, program, "stay", taken, &endless};
        pthread_t thread = start(&own);
        assert_true(comes_to(&endless.here, taken));
        run(&with, program, "gather", 3, &all);
        assert_int_equal(all.passed, 3);
        endless.goes_on = true;
        pthread_join(thread, NULL);
    }
    end(&with, program);
}

/* The two groups of the second launch wait for each other. The caller runs one of them; the other one can only begin
 * after a thread has left the first launch. */
TEST(threads_go_over_to_a_launch_that_begins_later)
{
    cpu with = open_cpu("cpu.threads=4");
    gpuhal_plugin_program *program = functions_on(&with);
    shared many = {0}, all = {.wanted = 2};
    task own = {&with, program, "do_little", 200000, &many};
    pthread_t thread = start(&own);
    assert_true(comes_to(&many.here, 100));
    run(&with, program, "gather", 2, &all);
    assert_int_equal(all.passed, 2);
    many.goes_on = true;
    pthread_join(thread, NULL);
    end(&with, program);
}

TEST(two_launches_share_the_threads)
{
    cpu with = open_cpu("cpu.threads=4");
    gpuhal_plugin_program *program = functions_on(&with);
    shared all[2] = {{0}, {0}};
    task tasks[2];
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        tasks[i] = (task){&with, program, "do_little", 200000, &all[i]};
        threads[i] = start(&tasks[i]);
        assert_true(comes_to(&all[i].here, 100));
    }
    for (int i = 0; i < 2; i++) {
        assert_true(comes_to(&all[i].pairs, all[i].pairs + 50));
    }
    for (int i = 0; i < 2; i++) {
        all[i].goes_on = true;
        pthread_join(threads[i], NULL);
    }
    end(&with, program);
}

static void *launch_often(void *user)
{
    const task *own = user;
    gpuhal_plugin_kernel *kernel = kernel_or_fail(own->with, own->program, "count", &buffer_only, 1);
    gpuhal_memory memory = memory_or_fail(own->with, 4000);
    const gpuhal_plugin_argument argument = {.kind = GPUHAL_PARAMETER_BUFFER, .memory = &memory, .bytes = 4000};
    const uint32_t *counts = memory.host;
    uint32_t expected[1000] = {0};
    for (uint32_t i = 0; i < 500; i++) {
        const uint32_t groups = i % 7 == 0 ? 1000 : i % 5 + 1;
        expect_fine(own->with, launch(own->with, kernel, &argument, 1, groups), "launch");
        for (uint32_t k = 0; k < groups; k++) {
            assert_int_equal(counts[k], ++expected[k]);
        }
    }
    own->with->ops.release(own->with->device, &memory);
    own->with->ops.programs->kernel_destroy(kernel);
    return NULL;
}

TEST(launches_of_eight_threads_at_once_do_all_of_their_groups)
{
    enum { THREADS = 8 };
    cpu with = open_cpu("cpu.threads=4");
    task own = {.with = &with, .program = functions_on(&with)};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, launch_often, &own), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    end(&with, own.program);
}

/* Launches continue while other threads open and close the same device. The pool's threads are started by a launch, and
 * end when no thread has the device open. */
static void *open_and_close(void *user)
{
    const cpu *with = user;
    for (int i = 0; i < 50; i++) {
        cpu own = *with;
        expect_fine(&own, own.plugin->open(gpuhal_direct_host(), own.instance, 0, NULL, &own.device, &own.ops), "open");
        gpuhal_plugin_program *program = functions_on(&own);
        shared all = {.wanted = 1};
        run(&own, program, "gather", 10, &all);
        assert_int_equal(all.passed, 10);
        own.ops.programs->program_unload(program);
        own.plugin->close(own.device);
    }
    return NULL;
}

TEST(the_device_is_opened_and_closed_by_several_threads)
{
    enum { THREADS = 4 };
    cpu with = open_cpu("cpu.threads=4");
    pthread_t threads[THREADS];
    with.plugin->close(with.device);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, &with), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    with.plugin->stop(gpuhal_direct_host(), with.instance);
}

/* The parent forks in the middle of a launch. */
TEST(a_child_of_a_fork_has_threads_of_its_own)
{
#if defined(__SANITIZE_THREAD__)
    SKIP_TEST("ThreadSanitizer takes threads of the child for those of the parent");
#endif
    cpu with = open_cpu("cpu.threads=4");
    gpuhal_plugin_program *program = functions_on(&with);
    shared endless = {.goes_on = false};
    task own = {&with, program, "stay", 4, &endless};
    pthread_t thread = start(&own);
    assert_true(comes_to(&endless.here, 4));
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60);
        for (int i = 0; i < 2; i++) {
            shared all = {.wanted = 4};
            run(&with, program, "gather", 4, &all);
            assert_int_equal(all.passed, 4);
        }
        end(&with, program);
        _exit(0);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    endless.goes_on = true;
    pthread_join(thread, NULL);
    shared all = {.wanted = 4};
    run(&with, program, "gather", 4, &all);
    assert_int_equal(all.passed, 4);
    end(&with, program);
}

/* The child is the first process of a new PID namespace, so its PID is 1, as in a container. */
static pid_t fork_as_first(void)
{
    const pid_t child = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, 0);
    return child >= 0 || unshare(CLONE_NEWUSER) != 0
               ? child
               : (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, 0);
}

static int await_child(pid_t child)
{
    int status = -1;
    return waitpid(child, &status, 0) == child ? status : -1;
}

TEST(a_child_with_the_number_of_its_parent_has_threads_of_its_own)
{
    enum { NO_NAMESPACES = 77 };
#if defined(__SANITIZE_THREAD__)
    SKIP_TEST("ThreadSanitizer takes threads of the child for those of the parent");
#endif
    cpu with = open_cpu("cpu.threads=4");
    gpuhal_plugin_program *program = functions_on(&with);
    const pid_t outer = fork();
    assert_true(outer >= 0);
    if (outer == 0) {
        alarm(60);
        pid_t child = fork_as_first();
        for (int level = 0; level < 2 && child == 0; level++) {
            shared all = {.wanted = 4};
            run(&with, program, "gather", 4, &all);
            assert_int_equal(all.passed, 4);
            child = level == 0 ? fork_as_first() : child;
        }
        if (child == 0) {
            end(&with, program);
        }
        const int status = child > 0 ? await_child(child) : child;
        _exit(status < 0 ? NO_NAMESPACES : WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
    const int status = await_child(outer);
    end(&with, program);
    if (WIFEXITED(status) && WEXITSTATUS(status) == NO_NAMESPACES) {
        SKIP_TEST("no right to make namespaces of processes");
    }
    assert_int_equal(status, 0);
}

#include "test_main.h"
