/* device/selector.h: selectors, the strings that name devices. selector.c and selector_limit.c parse selectors,
 * selector_match.c matches them, and selector_check.c checks them. selector_error.c makes the error message if nothing
 * matches. naming.c finds the devices that a list names. filter.c finds the devices that remain visible. select.c
 * selects one of several devices with choice.h.
 *
 * A list is evaluated from left to right. Each element adds the devices that it matches. With `!` it removes them from
 * the devices named so far, or from all visible devices if it is the first element.
 */
#ifndef GPUHAL_DEVICE_SELECTOR_H
#define GPUHAL_DEVICE_SELECTOR_H

#include "device/snapshot.h"

enum { GPUHAL_SELECTOR_BYTES = 128 };

typedef enum gpuhal_selector_form {
    GPUHAL_SELECT_AUTO,
    GPUHAL_SELECT_GPU,
    GPUHAL_SELECT_MOST_FREE, /* like GPU, but newly read values decide */
    GPUHAL_SELECT_LEAST_LOADED,
    GPUHAL_SELECT_EACH, /* the preferred interface of each physical device, or of each of its partitions */
    GPUHAL_SELECT_BACKEND,
    GPUHAL_SELECT_ID,   /* one or several devices of a backend */
    GPUHAL_SELECT_GLOB, /* a glob pattern for ids */
    GPUHAL_SELECT_ROW,  /* one or several entries of the list of preferred interfaces */
    GPUHAL_SELECT_PCI,
    GPUHAL_SELECT_UUID,
    GPUHAL_SELECT_NAME,
    GPUHAL_SELECT_VARIABLE /* the devices that a vendor's variable allows; `text` is the variable's name (variable.h) */
} gpuhal_selector_form;
typedef struct gpuhal_selector {
    gpuhal_selector_form form;
    uint32_t first, last; /* for ID and ROW */
    bool partition;       /* for UUID, matches only partitions */
    bool excludes;        /* `!`: removes the matching devices */
    /* The limit after `@` on the memory that may be allocated; both 0 if none. */
    uint64_t limit_bytes;
    uint32_t limit_percent; /* of the device's memory */
    /* In lower case: backend, glob, address (canonical, or without its domain), or the hexadecimal digits of a UUID. */
    char text[GPUHAL_SELECTOR_BYTES];
    char word[2 * GPUHAL_SELECTOR_BYTES]; /* as written, but with the backend if it is in an earlier element */
} gpuhal_selector;

/* Parses the first element of the comma-separated *list. Advances *list past this element, or sets *list to NULL after
 * the last element. On entry *selector is the previous element, or zero-initialised for the first element, because a
 * plain number continues BACKEND:INDEX. `source` names the origin in messages. Returns INVALID_ARGUMENT for a malformed
 * element. */
gpuhal_status gpuhal_selector_next(const char **list, const char *source, gpuhal_selector *selector);
/* Reads "8GiB" or "25%" into the selector's limit. Returns false for any other string, for 0, and for more than 100 %.
 * A number without a unit is refused, because it is unlikely to mean bytes. */
bool gpuhal_selector_read_limit(const char *text, gpuhal_selector *selector);
/* Returns the limit in bytes for the device, at most the size of its memory; 0 if there is no limit, or if it is a
 * share of an unknown size. */
uint64_t gpuhal_selector_limit(const gpuhal_selector *selector, const gpuhal_device *device);
static inline bool gpuhal_selector_has_limit(const gpuhal_selector *selector)
{
    return selector->limit_bytes > 0 || selector->limit_percent > 0;
}
/* Parses the whole list, so that a malformed element is refused before any element is matched. A list with both
 * most_free and least_loaded is also refused. */
gpuhal_status gpuhal_selectors_check(const char *list, const char *source);
/* Returns MOST_FREE or LEAST_LOADED if an element has this form, otherwise AUTO. `list` may be NULL. */
gpuhal_selector_form gpuhal_selectors_sampled_form(const char *list);

/* Returns whether newly read values decide which device is selected. */
static inline bool gpuhal_selector_is_sampled(const gpuhal_selector *selector)
{
    return selector->form == GPUHAL_SELECT_MOST_FREE || selector->form == GPUHAL_SELECT_LEAST_LOADED;
}
/* A general selector does not name a device. */
static inline bool gpuhal_selector_is_general(const gpuhal_selector *selector)
{
    return selector->form == GPUHAL_SELECT_AUTO || selector->form == GPUHAL_SELECT_GPU ||
           gpuhal_selector_is_sampled(selector);
}
/* If a selector names a physical device or a partition, any of its interfaces is acceptable. */
static inline bool gpuhal_selector_names_hardware(const gpuhal_selector *selector)
{
    return selector->form == GPUHAL_SELECT_PCI || selector->form == GPUHAL_SELECT_UUID ||
           selector->form == GPUHAL_SELECT_ROW || selector->form == GPUHAL_SELECT_VARIABLE;
}

/* Returns whether the selector names the physical device of the matching device `match`. A UUID or variable that
 * matches a software device names only that device. naming.c. */
bool gpuhal_selector_names_device_of(const gpuhal_selector *selector, const gpuhal_device *match);

/* Returns whether the selector `gpu` matches the device. Software devices do not count as GPUs. */
bool gpuhal_device_is_gpu(const gpuhal_device *device);
/* Returns whether the device is a software device, which runs on the CPU but belongs to a backend other than `cpu`. The
 * `cpu` backend is faster and preferred. */
bool gpuhal_device_is_ignored(const gpuhal_device *device);
/* Returns whether the device's last self-test (gpuhal_device_verify()) with this driver failed. offer.c. */
bool gpuhal_device_failed_self_test(const gpuhal_device *device);
/* Returns whether the device's compute mode prohibits all programs. General selectors ignore such a device. */
bool gpuhal_device_is_prohibited(const gpuhal_device *device);
/* Returns 3 for a GPU, 2 for an integrated GPU, 1 for an accelerator, else 0. offer.c. */
int gpuhal_device_type_rank(const gpuhal_device *device);
/* Returns the device of an entry if the device is visible and usable, otherwise NULL. */
gpuhal_device *gpuhal_entry_usable(const gpuhal_device_snapshot *snapshot, uint32_t entry);

/* Returns whether the selector matches the device as listed in the snapshot; false if it is no longer listed. For rows
 * and for `each`, gpuhal_device_snapshot_mark_preferred() must have been called. */
bool gpuhal_selector_matches(const gpuhal_selector *selector, const gpuhal_device_snapshot *snapshot,
                             const gpuhal_device *device);
/* If the selector names a variable, appends the note of gpuhal_variable_devices(). */
void gpuhal_selector_explain(const gpuhal_selector *selector, const gpuhal_device_snapshot *snapshot, gpuhal_text *to);

/* Marks the devices that GPUHAL_DEVICES and gpuhal_config.devices leave visible, by position, and reads their limits.
 * Rows and `each` refer to the preferred interfaces of all devices, including hidden ones. On the first call, each
 * selector must match a device. */
typedef struct gpuhal_visibility {
    bool allowed, narrowed; /* allowed by gpuhal_config.devices, and by the variable */
    uint64_t limits[2];     /* from gpuhal_config.devices, and from the variable; 0 if none */
} gpuhal_visibility;
static inline bool gpuhal_is_visible(const gpuhal_visibility *visibility)
{
    return visibility->allowed && visibility->narrowed;
}
gpuhal_status gpuhal_devices_filter(const gpuhal *gpu, gpuhal_device_snapshot *snapshot,
                                    gpuhal_visibility *out_visibilities);

/* Returns INVALID_ARGUMENT if the beginning of a UUID, or an address without its domain, matches several devices, or if
 * a variable's reader would refuse it. Returns NOT_FOUND if nothing matches, if a number of a range has no device, or
 * if it is unknown which devices a variable names. */
gpuhal_status gpuhal_selector_check(const gpuhal_selector *selector, const gpuhal_device_snapshot *snapshot,
                                    const char *source);

/* Returns NOT_FOUND with a message that begins with `source`, unless `source` is "". The message names the device that
 * the caller may have expected, and the available devices. `word` is the string that was not found. */
gpuhal_status gpuhal_selector_unmatched(const gpuhal_device_snapshot *snapshot, const gpuhal_selector *selector,
                                        const char *word, const char *source);
/* Appends the names of backends that are unusable because this process was forked. The caller may have expected their
 * devices. */
void gpuhal_selector_add_forked(const gpuhal_device_snapshot *snapshot, gpuhal_text *to);

#endif
