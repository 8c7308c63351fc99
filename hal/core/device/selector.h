/* device/selector.h: selectors, the texts that name devices: parsing (selector.c, selector_limit.c), matching
 * (selector_match.c), the message if nothing matches (selector_error.c), and checks (selector_check.c). naming.c finds
 * the devices that a list names, filter.c the devices that stay visible by it, and select.c chooses one among several
 * by choice.h.
 *
 * A list is evaluated from its beginning: each element names devices. An element with `!` takes the matching ones away
 * from those named so far, or from every visible device if it is the first. */
#ifndef GPUHAL_DEVICE_SELECTOR_H
#define GPUHAL_DEVICE_SELECTOR_H

#include "device/snapshot.h"

enum { GPUHAL_SELECTOR_BYTES = 128 };

typedef enum gpuhal_selector_form {
    GPUHAL_SELECT_AUTO,
    GPUHAL_SELECT_GPU,
    GPUHAL_SELECT_MOST_FREE, /* as GPU, but values that were just read decide */
    GPUHAL_SELECT_LEAST_LOADED,
    GPUHAL_SELECT_EACH, /* one interface of each physical device: the preferred one */
    GPUHAL_SELECT_BACKEND,
    GPUHAL_SELECT_ID,   /* one or several of a backend */
    GPUHAL_SELECT_GLOB, /* of ids */
    GPUHAL_SELECT_ROW,  /* one or several of the list of preferred interfaces */
    GPUHAL_SELECT_PCI,
    GPUHAL_SELECT_UUID,
    GPUHAL_SELECT_NAME,
    GPUHAL_SELECT_VARIABLE /* the devices that a vendor's variable leaves; `text` is its name: variable.h */
} gpuhal_selector_form;
typedef struct gpuhal_selector {
    gpuhal_selector_form form;
    uint32_t first, last; /* ID, ROW */
    bool partition;       /* UUID: of a partition only */
    bool excludes;        /* `!`: takes the matching devices away */
    /* `@`: the limit of memory that may be allocated; both 0: none */
    uint64_t limit_bytes;
    uint32_t limit_percent; /* of the device's memory */
    /* in lower case: backend, glob, address (canonical, or without its domain), hexadecimal digits of a UUID */
    char text[GPUHAL_SELECTOR_BYTES];
    char word[2 * GPUHAL_SELECTOR_BYTES]; /* as written; with the backend if that stands in an earlier element */
} gpuhal_selector;

/* Parses the first element of the comma list *list, and moves *list behind it, to NULL after the last one. *selector
 * holds the element before, zeros at the beginning: a number alone continues BACKEND:INDEX. `source` names the origin
 * in messages. Returns INVALID_ARGUMENT for a malformed element. */
gpuhal_status gpuhal_selector_next(const char **list, const char *source, gpuhal_selector *selector);
/* Reads "8GiB" or "25%" into the selector's limit; false for any other text, also for 0 and more than 100 %. A number
 * without a unit is refused: bytes are hardly meant. */
bool gpuhal_selector_read_limit(const char *text, gpuhal_selector *selector);
/* Returns the limit in bytes for the device, whose memory it never exceeds; 0: none, or a share of an unknown size. */
uint64_t gpuhal_selector_limit(const gpuhal_selector *selector, const gpuhal_device *device);
static inline bool gpuhal_selector_has_limit(const gpuhal_selector *selector)
{
    return selector->limit_bytes > 0 || selector->limit_percent > 0;
}
/* Parses the whole list: a malformed element is refused before any is matched, and so are both of most_free and
 * least_loaded in one list. */
gpuhal_status gpuhal_selectors_check(const char *list, const char *source);
/* Returns the element of the list whose values decide, MOST_FREE or LEAST_LOADED; AUTO: none. NULL: an empty list. */
gpuhal_selector_form gpuhal_selectors_sampled_form(const char *list);

/* Returns whether values decide which device is selected. */
static inline bool gpuhal_selector_is_sampled(const gpuhal_selector *selector)
{
    return selector->form == GPUHAL_SELECT_MOST_FREE || selector->form == GPUHAL_SELECT_LEAST_LOADED;
}
/* Returns whether it is `auto`, `gpu`, `most_free` or `least_loaded`, and names no device. */
static inline bool gpuhal_selector_is_general(const gpuhal_selector *selector)
{
    return selector->form == GPUHAL_SELECT_AUTO || selector->form == GPUHAL_SELECT_GPU ||
           gpuhal_selector_is_sampled(selector);
}
/* Returns whether it names a physical device or a partition, as PCI addresses, UUIDs, numbers and variables do: any
 * interface of it will do. */
static inline bool gpuhal_selector_names_hardware(const gpuhal_selector *selector)
{
    return selector->form == GPUHAL_SELECT_PCI || selector->form == GPUHAL_SELECT_UUID ||
           selector->form == GPUHAL_SELECT_ROW || selector->form == GPUHAL_SELECT_VARIABLE;
}

/* Returns whether it names the physical device of a device that it matches. The UUID of a software device names that
 * device alone. naming.c. */
bool gpuhal_selector_names_device_of(const gpuhal_selector *selector, const gpuhal_device *match);

/* Returns whether it counts for `gpu`: a software device does not. */
bool gpuhal_device_is_gpu(const gpuhal_device *device);
/* Returns whether it runs on the processor and poses as a GPU in its API: a software device. `cpu` is faster, and
 * preferred. */
bool gpuhal_device_is_ignored(const gpuhal_device *device);
/* Returns whether its last self-test (gpuhal_device_verify()) with this driver failed. offer.c. */
bool gpuhal_device_failed_self_test(const gpuhal_device *device);
/* Returns whether its compute mode keeps every program out; `auto` and `gpu` leave it out. */
bool gpuhal_device_is_prohibited(const gpuhal_device *device);
/* Returns 3 for a GPU, 2 for an integrated GPU, 1 for an accelerator, else 0. offer.c. */
int gpuhal_device_type_rank(const gpuhal_device *device);
/* Returns the visible, usable device of an entry; NULL for another. */
gpuhal_device *gpuhal_entry_usable(const gpuhal_device_snapshot *snapshot, uint32_t entry);

/* Matches the device as listed in the snapshot; false for one that is no longer listed. Rows need
 * gpuhal_device_snapshot_mark_preferred(). */
bool gpuhal_selector_matches(const gpuhal_selector *selector, const gpuhal_device_snapshot *snapshot,
                             const gpuhal_device *device);
/* Adds the parts of the selector's variable that do not count, and why; nothing for another selector. */
void gpuhal_selector_explain(const gpuhal_selector *selector, const gpuhal_device_snapshot *snapshot, gpuhal_text *to);

/* Marks the devices that GPUHAL_DEVICES and gpuhal_config.devices leave visible, by position, and reads their limits.
 * Rows, and `each`, count with nothing hidden: the snapshot's preferred interfaces are those of all devices. The first
 * time each selector must match something. */
typedef struct gpuhal_visibility {
    bool allowed, narrowed; /* by the member, by the variable */
    uint64_t limits[2];     /* by each; 0: none */
} gpuhal_visibility;
static inline bool gpuhal_is_visible(const gpuhal_visibility *visibility)
{
    return visibility->allowed && visibility->narrowed;
}
gpuhal_status gpuhal_devices_filter(const gpuhal *gpu, gpuhal_device_snapshot *snapshot,
                                    gpuhal_visibility *out_visibilities);

/* Returns OK; INVALID_ARGUMENT if the beginning of a UUID, or an address without its domain, names several devices;
 * NOT_FOUND if nothing matches, or no device has one of the numbers of a range. */
gpuhal_status gpuhal_selector_check(const gpuhal_selector *selector, const gpuhal_device_snapshot *snapshot,
                                    const char *source);

/* Returns NOT_FOUND, with a sentence that begins with `source`, "" for none. It names the device that the caller may
 * have expected, and the available ones. `word` was not found. */
gpuhal_status gpuhal_selector_unmatched(const gpuhal_device_snapshot *snapshot, const gpuhal_selector *selector,
                                        const char *word, const char *source);
/* Appends backends that are not usable because this process was forked; the caller may have expected them. */
void gpuhal_selector_add_forked(const gpuhal_device_snapshot *snapshot, gpuhal_text *to);

#endif
