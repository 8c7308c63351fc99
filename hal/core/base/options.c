/* base/options.c: see options.h. */
#include "base/options.h"

#include "base/error.h"
#include "base/text.h"

#include <string.h>

static bool read_entry(const char *entry, size_t length, gpuhal_option *out_option)
{
    const char *equals = memchr(entry, '=', length);
    const char *dot = equals ? memchr(entry, '.', (size_t)(equals - entry)) : NULL;
    if (!dot || dot == entry || dot + 1 == equals) {
        return false;
    }
    *out_option = (gpuhal_option){.key = entry,
                                  .value = equals + 1,
                                  .plugin_length = (size_t)(dot - entry),
                                  .key_length = (size_t)(equals - entry),
                                  .value_length = length - (size_t)(equals + 1 - entry)};
    return true;
}

/* Returns the length of the next non-empty entry; 0 at the end. */
static size_t next_entry(const char **at)
{
    *at += *at ? strspn(*at, ";") : 0;
    return *at ? strcspn(*at, ";") : 0;
}

bool gpuhal_options_next(const char **at, gpuhal_option *out_option)
{
    size_t length = next_entry(at);
    bool good = length > 0 && read_entry(*at, length, out_option);
    *at += length;
    return good;
}

bool gpuhal_option_is_system_root(const char *key, size_t length)
{
    const size_t own = sizeof GPUHAL_OPTION_SYSTEM_ROOT - 1;
    return length > own && memcmp(key + length - own, GPUHAL_OPTION_SYSTEM_ROOT, own) == 0;
}

gpuhal_status gpuhal_options_check(const char *source, const char *text)
{
    gpuhal_option option;
    for (size_t length; (length = next_entry(&text)) > 0; text += length) {
        if (!read_entry(text, length, &option)) {
            return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: \"%.*s\" is not <plugin>.<option>=<value>",
                                    source, (int)(length < 100 ? length : 100), text);
        }
        if (gpuhal_option_is_system_root(option.key, option.key_length)) {
            return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                    "%s: %.*s: set the variable GPUHAL_SYSTEM_ROOT instead", source,
                                    (int)(option.key_length < 100 ? option.key_length : 100), option.key);
        }
    }
    return GPUHAL_OK;
}

bool gpuhal_options_of(const char *text, const char *plugin, char **out_options)
{
    gpuhal_option option;
    gpuhal_text own = {0};
    const size_t length = strlen(plugin);
    while (gpuhal_options_next(&text, &option)) {
        if (option.plugin_length == length && memcmp(option.key, plugin, length) == 0) {
            gpuhal_text_append(&own, option.key, option.key_length + 1 + option.value_length);
            gpuhal_text_append(&own, ";", 1);
        }
    }
    bool good = !own.failed;
    *out_options = good && own.length > 0 ? gpuhal_text_take(&own) : NULL;
    gpuhal_text_finish(&own);
    return good;
}
