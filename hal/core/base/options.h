/* base/options.h: options for plugins from the application and the operator: "example.memory_mib=64;cpu.devices=5G,6G".
 *
 * Entries are separated by `;`, which a value cannot contain; empty ones are skipped. If a key has several entries, the
 * last one counts.
 */
#ifndef GPUHAL_BASE_OPTIONS_H
#define GPUHAL_BASE_OPTIONS_H

#include <gpuhal/types.h>

#include <stdbool.h>
#include <stddef.h>

typedef struct gpuhal_option {
    const char *key, *value; /* not terminated: see the lengths */
    size_t plugin_length;    /* of the key, up to its dot */
    size_t key_length, value_length;
} gpuhal_option;

/* Reads the entry at *at, and moves *at to its end; returns false at the end of the text. `at` may point to NULL. The
 * text must have passed gpuhal_options_check(). */
bool gpuhal_options_next(const char **at, gpuhal_option *out_option);
/* "<plugin>.system_root" belongs to the core, which uses it to give every plugin the value of GPUHAL_SYSTEM_ROOT. */
#define GPUHAL_OPTION_SYSTEM_ROOT ".system_root"
bool gpuhal_option_is_system_root(const char *key, size_t length);
/* Returns INVALID_ARGUMENT, naming `source`, for a text that is not a list of options, or has an option that belongs to
 * the core. NULL is an empty list. */
gpuhal_status gpuhal_options_check(const char *source, const char *text);
/* Returns the entries for one plugin in *out_options, malloc'ed; NULL: there are none. Returns false without memory. */
bool gpuhal_options_of(const char *text, const char *plugin, char **out_options);

#endif
