/* times.c: see times.h. */
#include "times.h"

#include <stdio.h>
#include <time.h>

#define LAST_SECOND UINT64_C(253402300799) /* the end of the year 9999 */

static void write_time(uint64_t seconds, const char *format, char out_text[GPUHAL_PROBE_TIME_BYTES])
{
    struct tm parts;
    const time_t moment = (time_t)seconds;
    if (seconds != 0 && seconds <= LAST_SECOND && localtime_r(&moment, &parts)) {
        strftime(out_text, GPUHAL_PROBE_TIME_BYTES, format, &parts);
    } else {
        snprintf(out_text, GPUHAL_PROBE_TIME_BYTES, "an unknown time");
    }
}

void gpuhal_probe_format_day(uint64_t seconds, char out_text[GPUHAL_PROBE_TIME_BYTES])
{
    write_time(seconds, "%Y-%m-%d", out_text);
}

void gpuhal_probe_format_time(uint64_t seconds, char out_text[GPUHAL_PROBE_TIME_BYTES])
{
    write_time(seconds, "%Y-%m-%d %H:%M", out_text);
}
