/* tests/plugins/mischief.h: the kinds of damage that a plugin may do to its process. Each kind is a function, which
 * variants of bad.c call.
 *
 * The damage is limited to the process, its children and the copies of the plugin's file. A process that escapes from
 * the helper ends within a minute. */
#ifndef MISCHIEF_H
#define MISCHIEF_H

#include <gpuhal/gpuhal.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAYBE static __attribute__((unused))

#define STREAM         3          /* the helper's stream to its parent */
#define DAEMON_SECONDS 4          /* lifetime of a process that leaves the helper */
#define HUNGER_BYTES   (64 << 20) /* RLIMIT_DATA of eat_memory() */

/* ---- crashing and hanging */

MAYBE void crash(void)
{
    raise(SIGSEGV);
}

MAYBE void hang(void)
{
    for (;;) {
        nanosleep(&(struct timespec){.tv_sec = 3600}, NULL);
    }
}

MAYBE void spin(void)
{
    for (volatile unsigned long rounds = 0;; rounds = rounds + 1) {
    }
}

/* Imitates drivers that generate code at run time. */
MAYBE void map_made_code(void)
{
    int file = memfd_create(".code", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, 4096) ||
        mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0) == MAP_FAILED) {
        _exit(1);
    }
    close(file);
}

MAYBE void write_to_nowhere(void)
{
    volatile int *volatile nowhere = (volatile int *)8;
    *nowhere = 1;
}

static __attribute__((noinline, unused)) unsigned overflow(unsigned depth)
{
    volatile char more[4096];
    more[depth % sizeof more] = 1;
    return depth == ~0u ? 0 : overflow(depth + 1) + (unsigned)more[0];
}

/* Leaves no stack for a crash report. */
MAYBE void overflow_all_stacks(void)
{
    const stack_t none = {.ss_flags = SS_DISABLE};
    sigaltstack(&none, NULL);
    if (overflow(1) == 0) {
        _exit(1);
    }
}

MAYBE void ignore_number(__attribute__((unused)) int number) {}

MAYBE void nap(__attribute__((unused)) int number)
{
    usleep(1000);
}

/* The fault repeats when the handler returns. The handler sleeps, so that it does not use CPU time. */
MAYBE void swallow_crashes(void)
{
    signal(SIGSEGV, nap);
    write_to_nowhere();
}

MAYBE void *crash_in_thread(__attribute__((unused)) void *user)
{
    crash();
    return NULL;
}

/* exit() waits for the dynamic loader's lock, which the loading thread holds. So the process neither exits nor
 * continues. */
MAYBE void *exit_in_thread(__attribute__((unused)) void *user)
{
    exit(4);
}

MAYBE void *hang_in_thread(__attribute__((unused)) void *user)
{
    hang();
    return NULL;
}

MAYBE void start_thread(void *(*body)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, NULL)) {
        _exit(6);
    }
}

/* Allocates and touches memory until an allocation fails, then writes to an invalid address, like a driver that does
 * not check the result. */
MAYBE void eat_memory(void)
{
    struct rlimit limit = {.rlim_cur = HUNGER_BYTES, .rlim_max = HUNGER_BYTES};
    setrlimit(RLIMIT_DATA, &limit);
    for (;;) {
        char *more = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(more == MAP_FAILED ? (char *)8 : more, 1, 1 << 20);
    }
}

/* ---- descriptors and the stream */

MAYBE void put(const char *text)
{
    size_t length = strlen(text);
    if (write(STREAM, text, length) != (ssize_t)length) {
        _exit(9);
    }
}

MAYBE void close_everything(void)
{
    for (int file = 0; file < 1024; file++) {
        close(file);
    }
}

/* Writes a forged report with a device that this plugin cannot open. */
MAYBE void forge_listing(void)
{
    put("\n[device]\nindex = 4\ncapabilities = 4294967295\ntext.name = Forged\nu64.type = 1\nu64.software = 0\n"
        "u64.memory_kinds = 1\ncomplete = 1\n"
        "\n[end]\nstate = 0\nstatus = 0\ndevices = 1\ncomplete = 1\n");
}

MAYBE void print_much(void)
{
    char line[1024];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = 0;
    for (int i = 0; i < 1024; i++) {
        printf("[end]\nstate = 0\nstatus = 0\ndevices = 0\ncomplete = 1\n%s\n", line);
    }
    fflush(stdout);
}

MAYBE void print_without_end(void)
{
    for (;;) {
        printf("still looking for devices\n");
    }
}

MAYBE void hang_while_there(const char *path)
{
    if (path && access(path, F_OK) == 0) {
        hang();
    }
}

/* ---- other processes */

/* Leaves a process outside of the parent's process group and tree, with a copy of every descriptor. */
MAYBE void leave_daemon(int floods)
{
    pid_t child = fork();
    if (child == 0) {
        setsid();
        if (fork() != 0) {
            _exit(0);
        }
        alarm(DAEMON_SECONDS);
        signal(SIGPIPE, SIG_DFL);
        while (floods) {
            put("rubbish without end\n");
        }
        hang();
    }
    waitpid(child, NULL, 0);
}

/* This process exits immediately; its child inherits the stream and continues for a while. */
MAYBE void become_daemon(void)
{
    if (fork() != 0) {
        _exit(0);
    }
    alarm(15 * DAEMON_SECONDS); /* longer than any deadline that a test gives the helper */
    hang();
}

/* Joins the parent's process group. */
MAYBE void leave_group(void)
{
    if (setpgid(0, getpgid(getppid())) || getpgrp() == getpid()) {
        _exit(7);
    }
}

MAYBE void execute(const char *program)
{
    execl(program, program, (char *)NULL);
    _exit(8);
}

/* ---- state of the whole process */

MAYBE void change_everything(void)
{
    const struct rlimit none = {0};
    sigset_t all;
    int failed = chdir("/proc") || setenv("GPUHAL_BACKENDS", "-good", 1) || setenv("PATH", "/nowhere", 1) ||
                 !setlocale(LC_ALL, "C");
    umask(0777);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (int number = 1; number < 32; number++) {
        signal(number, ignore_number);
    }
    prctl(PR_SET_NAME, "\033[2Jowned");
    prctl(PR_SET_PDEATHSIG, 0);
    setrlimit(RLIMIT_FSIZE, &none);
    setrlimit(RLIMIT_NOFILE, &none);
    if (failed) {
        _exit(10);
    }
}

/* The handlers are harmless as long as the plugin stays loaded. */
MAYBE void leave_handlers(void)
{
    static pthread_key_t key;
    atexit(hang);
    if (pthread_key_create(&key, free) == 0) {
        pthread_setspecific(key, malloc(16));
    }
}

/* ---- files */

MAYBE void own_path(char *out, size_t bytes)
{
    Dl_info info;
    if (!dladdr((const void *)(uintptr_t)own_path, &info)) {
        _exit(11);
    }
    snprintf(out, bytes, "%s", info.dli_fname);
}

/* Replaces the plugin's file with another file after the check. */
MAYBE void replace_itself(void)
{
    char path[PATH_MAX], other[PATH_MAX + 8];
    own_path(path, sizeof path);
    snprintf(other, sizeof other, "%s.other", path);
    int file = open(other, O_CREAT | O_WRONLY, 0644);
    if (file < 0 || close(file) || rename(other, path)) {
        _exit(12);
    }
}

MAYBE void delete_itself(void)
{
    char path[PATH_MAX];
    own_path(path, sizeof path);
    unlink(path);
}

/* ---- the library itself */

/* Imitates a driver that uses gpuhal itself. Its search for plugins finds its own file. */
MAYBE void open_the_library(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    union {
        void *address;
        gpuhal_status (*call)(const gpuhal_config *config, gpuhal **out_gpuhal);
    } open = {.address = library ? dlsym(library, "gpuhal_open") : NULL};
    gpuhal *gpu = NULL;
    if (!open.address || open.call(NULL, &gpu)) {
        _exit(13);
    }
}

#endif
