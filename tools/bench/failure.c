/* failure.c: see failure.h. */
#include "failure.h"

#include <gpuhal/gpuhal.h>

#include <stdarg.h>
#include <stdio.h>

static char failure[512] = "nothing failed";

bool gpuhal_bench_failed(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(failure, sizeof failure, format, arguments);
    va_end(arguments);
    return false;
}

bool gpuhal_bench_failed_call(const char *call)
{
    const gpuhal_error *error = gpuhal_last_error();
    return gpuhal_bench_failed("%s: %s: %s", call, gpuhal_status_name(error->status), error->sentence);
}

const char *gpuhal_bench_failure(void)
{
    return failure;
}
