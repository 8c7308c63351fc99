/* base/log.c: see log.h. list_mutex protects the list of logs. Listeners run with no lock held; `running` counts
 * running listeners, so that destroy can wait for them. A listener that destroys its own log would wait for itself. The
 * documentation forbids this, and the thread-local `depth` makes destroy return instead of hanging. */
#include "base/log.h"

#include "base/error.h"
#include "base/records.h"
#include "os/os.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct gpuhal_log {
    gpuhal_log *next;
    uint64_t number; /* increases with each log */
    gpuhal_log_fn *listener;
    void *user;
    uint32_t level;
    uint32_t running; /* calls of the listener in progress */
};

static gpuhal_mutex list_mutex = GPUHAL_MUTEX_INITIALIZER; /* protects the list, the variables below, and `running` */
static gpuhal_condition list_condition = GPUHAL_CONDITION_INITIALIZER;
static gpuhal_log *first; /* newest first, so numbers decrease along the list */
static uint64_t last_number;
static uint32_t list_generation; /* fork generation of the list */
static _Thread_local int depth; /* listeners running on this thread */

static void write_to_stderr(__attribute__((unused)) void *user, int32_t level, const char *line)
{
    static const char words[][8] = {"", "error", "warning", "info", "debug", "trace"};
    fprintf(stderr, "gpuhal: %s: %s\n", words[level > 0 && level < 6 ? level : 0], line);
}

/* In the child of a fork, removes the parent's logs from the list, because their listeners may wait for the parent's
 * threads. */
static void lock_list(void)
{
    gpuhal_mutex_lock(&list_mutex);
    if (list_generation != gpuhal_os_fork_generation()) {
        list_generation = gpuhal_os_fork_generation();
        first = NULL;
    }
}

gpuhal_log *gpuhal_log_create(gpuhal_log_fn *listener, void *user, uint32_t level, bool to_stderr)
{
    gpuhal_log *log = calloc(1, sizeof *log);
    if (!log) {
        return NULL;
    }
    log->listener = listener ? listener : to_stderr ? write_to_stderr : NULL;
    log->user = user;
    log->level = level;
    lock_list();
    log->number = ++last_number;
    log->next = first;
    first = log;
    gpuhal_mutex_unlock(&list_mutex);
    return log;
}

void gpuhal_log_destroy(gpuhal_log *log)
{
    if (!log) {
        return;
    }
    lock_list();
    gpuhal_log **link = &first;
    while (*link && *link != log) {
        link = &(*link)->next;
    }
    if (*link) {
        *link = log->next;
    }
    while (log->running > 0 && depth == 0) {
        gpuhal_condition_wait(&list_condition, &list_mutex);
    }
    gpuhal_mutex_unlock(&list_mutex);
    free(log);
}

bool gpuhal_log_wants(const gpuhal_log *log, int32_t level)
{
    return log && log->listener && level > 0 && (uint32_t)level <= log->level;
}

/* Called with list_mutex locked; unlocks it while the listener runs. */
static void pass_on(gpuhal_log *log, int32_t level, const char *line)
{
    log->running++;
    gpuhal_mutex_unlock(&list_mutex);
    /* Library calls in the listener must not replace the error detail that is being logged. */
    gpuhal_error_detail detail;
    gpuhal_error_save(&detail);
    /* If the thread were cancelled in the listener, `running` would never be decremented. */
    int cancel = gpuhal_os_cancel_defer();
    depth++;
    log->listener(log->user, level, line);
    depth--;
    gpuhal_os_cancel_restore(cancel);
    gpuhal_error_restore(&detail);
    lock_list();
    log->running--;
    gpuhal_condition_signal_all(&list_condition);
}

void gpuhal_log_line(gpuhal_log *log, int32_t level, const char *format, ...)
{
    if (!gpuhal_log_wants(log, level)) {
        return;
    }
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    /* File names and vendor messages may contain any bytes. They must not break a log line or send control sequences to
     * a terminal. */
    gpuhal_records_clean(line);
    lock_list();
    pass_on(log, level, line);
    gpuhal_mutex_unlock(&list_mutex);
}

/* Called with list_mutex locked. */
static gpuhal_log *next_below(uint64_t number)
{
    gpuhal_log *log = first;
    while (log && log->number >= number) {
        log = log->next;
    }
    return log;
}

void gpuhal_log_to_all(int32_t level, const char *text)
{
    char line[1024];
    snprintf(line, sizeof line, "%s", text);
    gpuhal_records_clean(line);
    /* The list may change while a listener runs, so the walk continues by number, never by a stored pointer. */
    lock_list();
    gpuhal_log *log = next_below(UINT64_MAX);
    while (log) {
        uint64_t number = log->number;
        if (gpuhal_log_wants(log, level)) {
            pass_on(log, level, line);
        }
        log = next_below(number);
    }
    gpuhal_mutex_unlock(&list_mutex);
}
