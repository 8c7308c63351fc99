/* progress.c: see progress.h. A thread prints the line; `mutex` protects all members of `own`. */
#include "progress.h"

#include "screen.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { WHAT_BYTES = 160, PENDING_MOST = 16, NAME_BYTES = 32 };

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t condition; /* signalled after `counting` is set or `running` is cleared */
    pthread_t thread;
    bool running, counting;
    uint64_t begin_ns, limit_ns;
    char what[WHAT_BYTES];
    char pending[PENDING_MOST][NAME_BYTES]; /* plugins with a running helper; "" for a free entry */
} own = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Prints the line. The caller must hold the mutex if the counting thread runs. */
static void show(void)
{
    char names[WHAT_BYTES] = "", text[2 * WHAT_BYTES];
    for (size_t i = 0; i < PENDING_MOST; i++) {
        if (*own.pending[i] && strlen(names) + NAME_BYTES + 2 < sizeof names) {
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", *names ? ", " : "", own.pending[i]);
        }
    }
    const uint64_t passed = (gpuhal_tool_now_ns() - own.begin_ns) / 1000000000u;
    if (passed == 0) {
        snprintf(text, sizeof text, "checking %s ...", *names ? names : own.what);
    } else {
        snprintf(text, sizeof text, "checking %s: %u s of %.3g s", *names ? names : own.what, (unsigned)passed,
                 (double)own.limit_ns / 1e9);
    }
    gpuhal_probe_progress(text);
}

static void *count_seconds(void *unused)
{
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    pthread_mutex_lock(&own.mutex);
    own.counting = true;
    pthread_cond_signal(&own.condition);
    while (own.running) {
        show();
        next.tv_sec++;
        while (own.running && pthread_cond_timedwait(&own.condition, &own.mutex, &next) == 0) {
        }
    }
    pthread_mutex_unlock(&own.mutex);
    return unused;
}

void gpuhal_probe_wait_begin(const char *what, uint64_t limit_ns)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&own.condition, &attributes);
    pthread_condattr_destroy(&attributes);
    memset(own.pending, 0, sizeof own.pending);
    snprintf(own.what, sizeof own.what, "%s", what);
    own.begin_ns = gpuhal_tool_now_ns();
    own.limit_ns = limit_ns;
    own.counting = false;
    own.running = gpuhal_probe_shows_progress();
    if (own.running && pthread_create(&own.thread, NULL, count_seconds, NULL) != 0) {
        own.running = false;
        show();
    }
    pthread_mutex_lock(&own.mutex);
    while (own.running && !own.counting) {
        pthread_cond_wait(&own.condition, &own.mutex);
    }
    pthread_mutex_unlock(&own.mutex);
}

bool gpuhal_probe_wait_fork(void (*work)(void *user, int to), void *user, gpuhal_tool_child *out_child)
{
    pthread_mutex_lock(&own.mutex);
    const bool forked = gpuhal_tool_fork(work, user, out_child);
    pthread_mutex_unlock(&own.mutex);
    return forked;
}

void gpuhal_probe_wait_end(void)
{
    pthread_mutex_lock(&own.mutex);
    const bool running = own.running;
    own.running = false;
    pthread_cond_signal(&own.condition);
    pthread_mutex_unlock(&own.mutex);
    if (running) {
        pthread_join(own.thread, NULL);
    }
    pthread_cond_destroy(&own.condition);
    gpuhal_probe_progress(NULL);
}

/* Parses "cuda: process 123 probes FILE" and "cuda: process 123 ended". */
void gpuhal_probe_wait_listen(void *user, int32_t level, const char *line)
{
    (void)user;
    (void)level;
    const char *colon = strstr(line, ": process ");
    const bool begins = colon && strstr(colon, " probes "), ends = colon && strstr(colon, " ended");
    const size_t length = colon ? (size_t)(colon - line) : 0;
    if (!(begins || ends) || length == 0 || length >= NAME_BYTES) {
        return;
    }
    pthread_mutex_lock(&own.mutex);
    for (size_t i = 0; i < PENDING_MOST; i++) {
        char *name = own.pending[i];
        if (begins && !*name) {
            snprintf(name, NAME_BYTES, "%.*s", (int)length, line);
            break;
        }
        if (ends && strlen(name) == length && strncmp(name, line, length) == 0) {
            *name = 0;
            break;
        }
    }
    pthread_mutex_unlock(&own.mutex);
}
