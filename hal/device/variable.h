/* device/variable.h: vendors' variables that choose devices (CUDA_VISIBLE_DEVICES and its like), by their own rules,
 * for the selector `env=NAME`: variable_text.c reads the lists, variable_sycl.c reads SYCL's terms, variable.c finds
 * the devices.
 *
 * A library that runs in this process or in a helper has applied its own variable: what its backend lists is what the
 * variable leaves, and the text only explains that. Elsewhere the text decides; where it does not say enough, as with
 * an index while CUDA counts by speed, there is an error and no guess. */
#ifndef GPUHAL_DEVICE_VARIABLE_H
#define GPUHAL_DEVICE_VARIABLE_H

#include "device/snapshot.h"

enum { GPUHAL_VARIABLE_PICKS = 256, GPUHAL_VARIABLE_NOTE_BYTES = 256 };

typedef enum gpuhal_variable_rule {
    /* A list that ends at the first element that names no device. Indices as strtoul() reads them, or UUIDs or their
     * beginnings, not both; a device that is named twice leaves none; empty: none. */
    GPUHAL_RULE_CUDA,
    /* ROCclr, of HIP and AMD's OpenCL: ends likewise. Plain decimal indices, in newer versions also UUIDs; repeats do
     * not count; empty: not set. */
    GPUHAL_RULE_CLR,
    /* ROCR: ends likewise, also at a repeat. Indices as strtol() reads them with base 0, UUIDs or their beginnings, in
     * any case, with blanks around; not more elements than GPUs; empty: none. */
    GPUHAL_RULE_ROCR,
    /* llama.cpp: numbers, separated by commas or blanks; ends at what is not a number; one that is too large is an
     * error; empty: none. */
    GPUHAL_RULE_GGML,
    GPUHAL_RULE_SYCL, /* variable_sycl.c */
    /* Level Zero: N or N.M, separated by commas; what there is not is skipped; empty: not set. N counts devices, but
     * where the hierarchy is flat (ZE_FLAT_DEVICE_HIERARCHY; of some GPUs by default) their sub-devices, and then N.M
     * is skipped. */
    GPUHAL_RULE_LEVEL_ZERO
} gpuhal_variable_rule;

typedef struct gpuhal_variable {
    const char *name, *reader; /* and who reads it */
    gpuhal_variable_rule rule;
    const char *backend; /* that lists what is left; NULL: none does */
    uint32_t vendor;     /* of the GPUs that it chooses from; 0: all */
} gpuhal_variable;

/* Returns the variable of that name; NULL for one whose rules are not known here. */
const gpuhal_variable *gpuhal_variable_find(const char *name);
/* Returns the names of all, "CUDA_VISIBLE_DEVICES, …". */
const char *gpuhal_variable_names(void);

/* A device as the variable counts it. */
typedef struct gpuhal_counted {
    uint32_t entry;  /* of the snapshot */
    int64_t number;  /* its index; -1: not known */
    const char *uuid; /* without GPU- or MIG-; NULL: not known */
    bool partition;
} gpuhal_counted;

typedef struct gpuhal_picks {
    uint32_t count;
    uint32_t entries[GPUHAL_VARIABLE_PICKS];
    char note[GPUHAL_VARIABLE_NOTE_BYTES]; /* what was ignored, and why; "": nothing */
} gpuhal_picks;

/* Reads a list by its rule: which of the devices it names. With `devices` NULL every element that is well formed counts
 * as one device, and the entries are the places of the elements. Returns OK; INVALID_ARGUMENT where the reader of the
 * variable refuses the text; NOT_FOUND where it is not known which device an element names. */
gpuhal_status gpuhal_variable_read(const gpuhal_variable *variable, const char *value, const gpuhal_counted *devices,
                                   uint32_t count, gpuhal_picks *out_picks);
/* The same for SYCL's terms. */
gpuhal_status gpuhal_variable_read_sycl(const gpuhal_variable *variable, const char *value,
                                        const gpuhal_device_snapshot *snapshot, gpuhal_picks *out_picks);
/* Adds a sentence to the note; longer text is cut. */
void gpuhal_variable_say(gpuhal_picks *picks, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Finds the entries that the variable, as it is now, leaves of those of the snapshot. Fails as above. */
gpuhal_status gpuhal_variable_devices(const gpuhal_variable *variable, const gpuhal_device_snapshot *snapshot,
                                      gpuhal_picks *out_picks);

#endif
