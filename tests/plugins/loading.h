/* tests/plugins/loading.h: the faults of bad.c that appear during loading: constructors, a resolver, thread-local
 * storage. */
#ifndef LOADING_H
#define LOADING_H

#include "mischief.h"

__attribute__((constructor)) static void construct(void)
{
#if defined VARIANT_constructor_segfault
    write_to_nowhere();
#elif defined VARIANT_constructor_abort
    abort();
#elif defined VARIANT_constructor_exit_3
    exit(3);
#elif defined VARIANT_constructor_exit_0
    _exit(0);
#elif defined VARIANT_constructor_exit_hangs
    atexit(hang);
    exit(0);
#elif defined VARIANT_constructor_spins
    spin();
#elif defined VARIANT_constructor_sleeps
    hang();
#elif defined VARIANT_constructor_stack_overflow
    if (overflow(1) == 0) {
        _exit(1);
    }
#elif defined VARIANT_constructor_overflows_all
    overflow_all_stacks();
#elif defined VARIANT_constructor_killed
    raise(SIGKILL);
#elif defined VARIANT_constructor_kills_its_group
    kill(0, SIGKILL);
#elif defined VARIANT_constructor_alarm
    setitimer(ITIMER_REAL, &(struct itimerval){.it_value = {.tv_usec = 1000}}, NULL);
    hang();
#elif defined VARIANT_constructor_stops
    raise(SIGSTOP);
#elif defined VARIANT_constructor_ignores_end
    signal(SIGTERM, SIG_IGN);
    hang();
#elif defined VARIANT_constructor_leaves_its_group
    leave_group();
    hang();
#elif defined VARIANT_constructor_falls_silent
    close(STREAM);
    hang();
#elif defined VARIANT_constructor_silent_crash
    close_everything();
    write_to_nowhere();
#elif defined VARIANT_constructor_takes_handlers
    signal(SIGSEGV, SIG_DFL);
    write_to_nowhere();
#elif defined VARIANT_constructor_swallows_crashes
    swallow_crashes();
#elif defined VARIANT_constructor_thread_crashes
    start_thread(crash_in_thread);
    hang();
#elif defined VARIANT_constructor_thread_exits
    start_thread(exit_in_thread);
    hang();
#elif defined VARIANT_constructor_executes
    execute("/bin/true");
#elif defined VARIANT_constructor_becomes_yes
    execute("/usr/bin/yes");
#elif defined VARIANT_constructor_becomes_daemon
    become_daemon();
#elif defined VARIANT_constructor_eats_memory
    eat_memory();
#elif defined VARIANT_replaces_itself
    replace_itself();
#elif defined VARIANT_deletes_itself
    delete_itself();
#elif defined VARIANT_good_changes_everything
    change_everything();
#endif
}

#if defined VARIANT_good_leaves_handlers
/* Must never run, since plugins are never unloaded and their process exits without running exit handlers. */
__attribute__((destructor)) static void destruct(void)
{
    crash();
}
#endif

#if defined VARIANT_resolver_crashes
/* The dynamic loader calls this resolver to choose a function while it binds symbols, before any constructor runs. */
__attribute__((used)) static void (*resolve(void))(void)
{
    write_to_nowhere();
    return NULL;
}
void gpuhal_test_resolved(void) __attribute__((ifunc("resolve")));
#endif

#if defined VARIANT_thread_storage_too_large
/* The initial-exec model needs space that is reserved when the process starts; 8 MiB do not fit. */
static _Thread_local volatile char storage[8 << 20] __attribute__((tls_model("initial-exec")));
#endif

#endif
