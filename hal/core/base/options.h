/* base/options.h: plugin options from the application and the operator: "example.memory_mib=64;cpu.devices=5G,6G".
 *
 * Entries are separated by `;`, which a value cannot contain; empty entries are skipped. If a key occurs several times,
 * the last one counts.
 */
#ifndef GPUHAL_BASE_OPTIONS_H
#define GPUHAL_BASE_OPTIONS_H

#include <gpuhal/types.h>

#include <stdbool.h>
#include <stddef.h>

typedef struct gpuhal_option {
    const char *key, *value; /* not null-terminated */
    size_t plugin_length;    /* part of the key before the dot */
    size_t key_length, value_length;
} gpuhal_option;

/* Reads the entry at *at and advances *at to the entry's end. Returns false at the end of the string. *at may be NULL.
 * The string must have passed gpuhal_options_check(). */
bool gpuhal_options_next(const char **at, gpuhal_option *out_option);
/* The core uses the reserved option "<plugin>.system_root" to pass GPUHAL_SYSTEM_ROOT to every plugin. */
#define GPUHAL_OPTION_SYSTEM_ROOT ".system_root"
bool gpuhal_option_is_system_root(const char *key, size_t length);
/* Returns INVALID_ARGUMENT, naming `source`, if `text` is not a list of options or contains an option reserved for the
 * core. NULL is an empty list. */
gpuhal_status gpuhal_options_check(const char *source, const char *text);
/* Returns the entries for one plugin in *out_options, malloc'ed; NULL if there are none. Returns false if out of
 * memory. */
bool gpuhal_options_of(const char *text, const char *plugin, char **out_options);

#endif
