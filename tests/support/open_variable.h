/* tests/support/open_variable.h: opens a gpuhal object while an environment variable is set. */
#ifndef GPUHAL_TEST_OPEN_VARIABLE_H
#define GPUHAL_TEST_OPEN_VARIABLE_H

#include "support/mock.h"

#include <gpuhal/gpuhal.h>

#include <stdlib.h>

static inline gpuhal_status open_with_variable(const char *variable, const char *value, gpuhal_log_fn *log, void *user,
                                               gpuhal **out_gpu)
{
    static gpuhal_builtin_fn *const builtins[] = {gpuhal_mock_query, NULL};
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .registry = "none",
                                  .backends = "mock",
                                  .builtins = builtins,
                                  .log = log,
                                  .log_user = user};
    setenv(variable, value, 1);
    gpuhal_mock = (gpuhal_mock_state){.count = 2};
    gpuhal_status status = gpuhal_open(&config, out_gpu);
    unsetenv(variable);
    return status;
}

#endif
