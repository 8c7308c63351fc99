/* tests/system/warnings.h: a program that uses one vendor's fake and keeps the library's warnings. */
#ifndef WARNINGS_H
#define WARNINGS_H

#include "bench.h"

#include <stdatomic.h>
#include <stdio.h>

typedef struct warnings {
    _Atomic unsigned count;
    char last[1024];
} warnings;

static void keep_warning(void *user, int32_t level, const char *line)
{
    warnings *own = user;
    if (level <= 2) {
        own->count++;
        snprintf(own->last, sizeof own->last, "%s", line);
    }
}

static gpuhal *open_listening(const char *backend, warnings *own)
{
    return open_or_fail(
        &(gpuhal_config){.size = sizeof(gpuhal_config), .backends = backend, .log = keep_warning, .log_user = own});
}

#endif
