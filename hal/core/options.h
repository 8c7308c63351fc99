/* core/options.h: what the application and the operator give to plugins: "example.memory_mib=64;cpu.devices=5G,6G".
 *
 * Entries are separated by `;`, which no value can hold; empty ones are skipped. Of two for one key the later one
 * counts. */
#ifndef GPUHAL_CORE_OPTIONS_H
#define GPUHAL_CORE_OPTIONS_H

#include <gpuhal/types.h>

#include <stdbool.h>
#include <stddef.h>

typedef struct gpuhal_option {
    const char *key, *value; /* ended by their lengths */
    size_t plugin_length;    /* of the key, up to its dot */
    size_t key_length, value_length;
} gpuhal_option;

/* The entry that *at points to, and moves *at behind it; false at the end. `at` may point to NULL. Of a text that
 * passed gpuhal_options_check(). */
bool gpuhal_options_next(const char **at, gpuhal_option *out_option);
/* INVALID_ARGUMENT, naming `source`, for a text that is no list of options. NULL is an empty one. */
gpuhal_status gpuhal_options_check(const char *source, const char *text);
/* The entries for one plugin in *out_options, malloc'ed; NULL: there are none. False without memory. */
bool gpuhal_options_of(const char *text, const char *plugin, char **out_options);

#endif
