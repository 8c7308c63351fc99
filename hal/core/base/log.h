/* base/log.h: the application's log.
 *
 * Every open gpuhal object registers one listener. A line from the core is passed to the listener of its gpuhal object.
 * A line from a plugin is passed to all listeners, because gpuhal objects share backends. No lock is held while a
 * listener runs; destroying a log waits until its listener has returned.
 */
#ifndef GPUHAL_BASE_LOG_H
#define GPUHAL_BASE_LOG_H

#include <gpuhal/instance.h>

#include <stdbool.h>

typedef struct gpuhal_log gpuhal_log;

enum {
    GPUHAL_LEVEL_ERROR = 1,
    GPUHAL_LEVEL_WARNING = 2,
    GPUHAL_LEVEL_INFO = 3,
    GPUHAL_LEVEL_DEBUG = 4,
    GPUHAL_LEVEL_TRACE = 5
};

/* Creates a log. If `listener` is NULL and `to_stderr` is false, lines are dropped. Returns NULL if out of memory. */
gpuhal_log *gpuhal_log_create(gpuhal_log_fn *listener, void *user, uint32_t level, bool to_stderr);
void gpuhal_log_destroy(gpuhal_log *log);
bool gpuhal_log_wants(const gpuhal_log *log, int32_t level);
void gpuhal_log_line(gpuhal_log *log, int32_t level, const char *format, ...) __attribute__((format(printf, 3, 4)));
void gpuhal_log_to_all(int32_t level, const char *text);

#endif
