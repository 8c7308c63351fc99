/* device/identity.h: which listed devices are interfaces of one physical device. The rule uses facts alone: nothing
 * here may open or ask a device.
 *
 * docs/identity.md explains the rule and its reasons. Two promises: the relation is transitive, and the result does
 * not depend on the order of the interfaces; only numbers and the choice of the first name do.
 */
#ifndef GPUHAL_DEVICE_IDENTITY_H
#define GPUHAL_DEVICE_IDENTITY_H

#include "base/facts.h"

#include <gpuhal/view.h>

/* The values that interfaces are matched by, the strongest first. */
typedef enum gpuhal_identity_level {
    GPUHAL_IDENTITY_PCI,
    GPUHAL_IDENTITY_DRM,
    GPUHAL_IDENTITY_UUID,
    GPUHAL_IDENTITY_LUID,
    GPUHAL_IDENTITY_HOST, /* the host's processor: no value, and no other level counts for such interfaces */
    GPUHAL_IDENTITY_LEVELS
} gpuhal_identity_level;

/* One device as one backend lists it. */
typedef struct gpuhal_interface {
    /* Input. */
    const char *backend;
    uint32_t index;
    const gpuhal_facts *facts;
    /* Output. */
    char id[48];
    char pci[24];                               /* canonical, without partition bits; "" when it states no valid one */
    const char *values[GPUHAL_IDENTITY_LEVELS]; /* NULL: states none that identifies; PCI points to `pci` */
    uint64_t maker;                             /* vendor within which the UUID counts; 0: none */
    /* bits 1 << level: several devices state this value, so it identifies none */
    uint32_t doubted;
    bool host;                                  /* an emulating device, or the processor itself */
    const char *partition_name;                      /* the partition, "" for the whole device */
    char partition_space[24];                        /* storage of the name, if no fact has it */
    /* the same number for all interfaces of one physical device, counted from 0 */
    uint32_t physical;
    /* the first interface of the same partition of the same physical device */
    uint32_t partition;
} gpuhal_interface;

/* Why a value joins nothing. */
typedef enum gpuhal_doubt {
    GPUHAL_DOUBT_PCI,        /* PCI addresses differ */
    GPUHAL_DOUBT_DRM,        /* render nodes differ */
    GPUHAL_DOUBT_ONE_DRIVER, /* one driver lists both */
} gpuhal_doubt;

/* A doubted value, of the interfaces that state it; UUIDs within one maker. */
typedef struct gpuhal_refusal {
    uint32_t iface; /* one interface that states it */
    gpuhal_identity_level level;
    gpuhal_doubt doubt;
    uint32_t witness[2]; /* the two interfaces that contradict each other */
} gpuhal_refusal;

/* Zero-initialised with `interfaces` and `count` set, it is ready for gpuhal_identity_find(). */
typedef struct gpuhal_identity {
    gpuhal_interface *interfaces; /* malloc'ed */
    uint32_t count;
    gpuhal_refusal *refusals;
    uint32_t refusal_count, refusal_capacity;
} gpuhal_identity;

/* Groups the interfaces; HOST_MEMORY or OK. */
gpuhal_status gpuhal_identity_find(gpuhal_identity *identity);
void gpuhal_identity_finish(gpuhal_identity *identity);

/* Writes the number in AMD's UUID: that is the characters of a hexadecimal number of 16 digits, which its tools print.
 * False for other UUIDs. */
bool gpuhal_interface_unique_id(const char *uuid, char out[17]);
/* Fills in the results of a device's own facts, and of its siblings in the same driver (interface.c). */
void gpuhal_interfaces_read(gpuhal_identity *identity);
/* Returns whether one driver lists both. Two builds of one driver, or two drivers, may list the same device in one
 * backend; one driver lists it once. */
bool gpuhal_interface_same_driver(const gpuhal_interface *a, const gpuhal_interface *b);
/* Writes the canonical form of a PCI address; returns false for a text that is not one. */
bool gpuhal_identity_pci(const char *text, char out[24]);

/* One item of evidence. The sentence is malloc'ed. */
typedef struct gpuhal_identity_evidence {
    uint32_t physical;
    gpuhal_evidence evidence;
    char *sentence;
} gpuhal_identity_evidence;

typedef struct gpuhal_identity_evidence_list {
    gpuhal_identity_evidence *list;
    uint32_t count, capacity;
} gpuhal_identity_evidence_list;

/* Explains why the visible interfaces belong together or not: for each but the first of its physical device, the
 * interface that it was matched with, a hidden one if there is no other; then why visible ones that state the same
 * value are different devices. evidence.c. */
gpuhal_status gpuhal_identity_explain(const gpuhal_identity *identity, const bool *visible,
                                      gpuhal_identity_evidence_list *out_list);
void gpuhal_identity_evidence_finish(gpuhal_identity_evidence_list *list);

#endif
