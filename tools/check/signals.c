/* signals.c: see signals.h. */
#include "signals.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>

static const struct {
    int number;
    const char *name;
} ending[] = {{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}};
enum { ENDING = sizeof ending / sizeof *ending };

static volatile sig_atomic_t caught, group;

static void take(int number)
{
    const int reason = errno;
    caught = number;
    if (group > 0) {
        kill(-group, SIGKILL);
    }
    errno = reason;
}

void gpuhal_signals_catch(void)
{
    struct sigaction before;
    for (size_t s = 0; s < ENDING; s++) {
        if (sigaction(ending[s].number, NULL, &before) == 0 && before.sa_handler == SIG_DFL) {
            sigaction(ending[s].number,
                      &(struct sigaction){.sa_handler = take, .sa_flags = (int)(SA_RESTART | SA_RESETHAND)},
                      NULL);
        }
    }
}

void gpuhal_signals_release(void)
{
    struct sigaction now;
    for (size_t s = 0; s < ENDING; s++) {
        if (sigaction(ending[s].number, NULL, &now) == 0 && now.sa_handler == take) {
            signal(ending[s].number, SIG_DFL);
        }
    }
}

void gpuhal_signals_set_child(pid_t child)
{
    group = child;
    if (child > 0 && caught != 0) { /* the signal arrived before there was a child to kill */
        kill(-child, SIGKILL);
    }
}

int gpuhal_signals_caught(void)
{
    return caught;
}

const char *gpuhal_signals_name(void)
{
    for (size_t s = 0; s < ENDING; s++) {
        if (ending[s].number == caught) {
            return ending[s].name;
        }
    }
    return NULL;
}
