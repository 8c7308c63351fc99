/* json.c: see json.h. */
#include "json.h"

#include "host.h"
#include "utf8.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LAST_SECOND UINT64_C(253402300799) /* the end of the year 9999 */

json_t *gpuhal_json_any_text(const char *text)
{
    char *clean = malloc(strlen(text) * 3 + 1);
    if (!clean) {
        return NULL;
    }
    size_t used = 0;
    while (*text) {
        uint32_t character;
        size_t length = gpuhal_tool_utf8_next(text, &character);
        memcpy(clean + used, length ? text : "\xef\xbf\xbd", length ? length : 3);
        used += length ? length : 3;
        text += length ? length : 1;
    }
    json_t *value = json_stringn(clean, used);
    free(clean);
    return value;
}

json_t *gpuhal_json_text(const char *text)
{
    return text && *text ? gpuhal_json_any_text(text) : json_null();
}

json_t *gpuhal_json_time(uint64_t seconds)
{
    char stamp[40];
    struct tm parts;
    const time_t moment = (time_t)seconds;
    if (seconds == 0 || seconds > LAST_SECOND || !gmtime_r(&moment, &parts)) {
        return json_null();
    }
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return json_string(stamp);
}

json_t *gpuhal_json_abi(uint32_t version)
{
    return json_sprintf("%u.%u", version >> 16, version & 0xffffu);
}

json_t *gpuhal_json_host(const char *cpu)
{
    gpuhal_tool_host host;
    gpuhal_tool_host_read(&host);
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I}", "name", gpuhal_json_text(host.name), "os",
                     gpuhal_json_text(host.os), "kernel", gpuhal_json_text(host.kernel), "architecture",
                     gpuhal_json_text(host.architecture), "cpu", gpuhal_json_text(cpu), "processors",
                     (json_int_t)host.processors);
}

json_t *gpuhal_json_error(const char *schema, const char *program, const char *code, const char *message)
{
    const size_t length = strlen(program);
    const bool named = strncmp(message, program, length) == 0 && strncmp(message + length, ": ", 2) == 0;
    return json_pack("{s:s, s:{s:s, s:o}}", "schema", schema, "error", "code", code, "message",
                     gpuhal_json_any_text(named ? message + length + 2 : message));
}
