/* times.c: see times.h. */
#include "times.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#define DAY_SECONDS 86400
#define LAST_SECOND UINT64_C(253402300799) /* of the year 9999 */

/* The moment in local time, or in that of Greenwich. */
static bool read_clock(uint64_t seconds, bool local, struct tm *out_time)
{
    const time_t moment = (time_t)seconds;
    return seconds != 0 && seconds <= LAST_SECOND && (local ? localtime_r(&moment, out_time) : gmtime_r(&moment, out_time));
}

static bool is_same_day(const struct tm *one, const struct tm *other)
{
    return one->tm_year == other->tm_year && one->tm_yday == other->tm_yday;
}

static bool write_day(uint64_t seconds, char out_text[GPUHAL_PROBE_TIME_BYTES], struct tm *out_time)
{
    struct tm today, yesterday;
    const uint64_t now = (uint64_t)time(NULL);
    if (!read_clock(seconds, true, out_time)) {
        snprintf(out_text, GPUHAL_PROBE_TIME_BYTES, "an unknown time");
        return false;
    }
    bool known = read_clock(now, true, &today) && read_clock(now - DAY_SECONDS, true, &yesterday);
    if (known && is_same_day(out_time, &today)) {
        snprintf(out_text, GPUHAL_PROBE_TIME_BYTES, "today");
    } else if (known && is_same_day(out_time, &yesterday)) {
        snprintf(out_text, GPUHAL_PROBE_TIME_BYTES, "yesterday");
    } else {
        strftime(out_text, GPUHAL_PROBE_TIME_BYTES, "%Y-%m-%d", out_time);
    }
    return true;
}

void gpuhal_probe_format_day(uint64_t seconds, char out_text[GPUHAL_PROBE_TIME_BYTES])
{
    struct tm moment;
    write_day(seconds, out_text, &moment);
}

void gpuhal_probe_format_time(uint64_t seconds, char out_text[GPUHAL_PROBE_TIME_BYTES])
{
    struct tm moment;
    char day[GPUHAL_PROBE_TIME_BYTES];
    if (write_day(seconds, day, &moment)) {
        snprintf(out_text, GPUHAL_PROBE_TIME_BYTES, "%.20s %02d:%02d", day, moment.tm_hour, moment.tm_min);
    } else {
        snprintf(out_text, GPUHAL_PROBE_TIME_BYTES, "%s", day);
    }
}

void gpuhal_probe_format_stamp(uint64_t seconds, char out_stamp[GPUHAL_PROBE_TIME_BYTES])
{
    struct tm moment;
    *out_stamp = 0;
    if (read_clock(seconds, false, &moment)) {
        strftime(out_stamp, GPUHAL_PROBE_TIME_BYTES, "%Y-%m-%dT%H:%M:%SZ", &moment);
    }
}
