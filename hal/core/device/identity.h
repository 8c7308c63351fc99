/* device/identity.h: finds which listed devices are interfaces of one physical device. The rule uses only facts.
 * Nothing here may open or query a device.
 *
 * docs/identity.md explains the rule and its reasons. The rule guarantees that the relation is transitive, and that the
 * result does not depend on the order of the interfaces, except for numbers and the choice of the first name.
 */
#ifndef GPUHAL_DEVICE_IDENTITY_H
#define GPUHAL_DEVICE_IDENTITY_H

#include "base/facts.h"

#include <gpuhal/view.h>

/* The values that interfaces are matched by, strongest first. */
typedef enum gpuhal_identity_level {
    GPUHAL_IDENTITY_PCI,
    GPUHAL_IDENTITY_DRM,
    GPUHAL_IDENTITY_UUID,
    GPUHAL_IDENTITY_LUID,
    GPUHAL_IDENTITY_HOST, /* the host's CPU, which has no value; no other level applies to its interfaces */
    GPUHAL_IDENTITY_LEVELS
} gpuhal_identity_level;

typedef struct gpuhal_interface {
    /* Input. */
    const char *backend;
    uint32_t index;
    const gpuhal_facts *facts;
    /* Output. */
    char id[48];
    char pci[24];                               /* canonical, without partition bits; "" if none is valid */
    const char *values[GPUHAL_IDENTITY_LEVELS]; /* NULL if no identifying value is stated; the value for PCI points to
                                                 * `pci` */
    uint64_t maker;                             /* vendor among whose devices the UUID is unique; 0 if none */
    /* Bit 1 << level is set if several devices state the level's value, which therefore identifies none of them. */
    uint32_t doubted;
    bool host;                                  /* a software device, or the CPU itself */
    const char *partition_name;                      /* "" for the whole device */
    char partition_space[24];                        /* buffer for the name if no fact contains it */
    /* The same number for all interfaces of one physical device, counted from 0. */
    uint32_t physical;
    /* Index of the first interface of the same partition. */
    uint32_t partition;
} gpuhal_interface;

/* The reason why equal values do not join interfaces. */
typedef enum gpuhal_doubt {
    GPUHAL_DOUBT_PCI,        /* their PCI addresses differ */
    GPUHAL_DOUBT_DRM,        /* their render nodes differ */
    GPUHAL_DOUBT_ONE_DRIVER, /* one driver lists both */
} gpuhal_doubt;

/* A value, for a UUID within one maker, that does not join interfaces. */
typedef struct gpuhal_refusal {
    uint32_t iface; /* one interface that states the value */
    gpuhal_identity_level level;
    gpuhal_doubt doubt;
    uint32_t witness[2]; /* the two interfaces that contradict each other */
} gpuhal_refusal;

/* Must be zero-initialised, with `interfaces` and `count` set, before gpuhal_identity_find(). */
typedef struct gpuhal_identity {
    gpuhal_interface *interfaces; /* malloc'ed */
    uint32_t count;
    gpuhal_refusal *refusals;
    uint32_t refusal_count, refusal_capacity;
} gpuhal_identity;

/* Returns HOST_MEMORY or OK. */
gpuhal_status gpuhal_identity_find(gpuhal_identity *identity);
void gpuhal_identity_finish(gpuhal_identity *identity);

/* Decodes an AMD UUID. Its bytes are the characters of the 16-digit hexadecimal number that AMD's tools print. Returns
 * false for other UUIDs. */
bool gpuhal_interface_unique_id(const char *uuid, char out[17]);
/* Sets the results that follow from an interface's own facts, and from its siblings in the same driver
 * (interface.c). */
void gpuhal_interfaces_read(gpuhal_identity *identity);
/* Returns whether the same driver lists both interfaces. A driver lists each device once, but two drivers or two builds
 * of a driver in the same backend may list the same device. */
bool gpuhal_interface_same_driver(const gpuhal_interface *a, const gpuhal_interface *b);
/* Writes a PCI address in canonical form. Returns false if `text` is not a PCI address. */
bool gpuhal_identity_pci(const char *text, char out[24]);

/* The sentence is malloc'ed. */
typedef struct gpuhal_identity_evidence {
    uint32_t physical;
    gpuhal_evidence evidence;
    char *sentence;
} gpuhal_identity_evidence;

typedef struct gpuhal_identity_evidence_list {
    gpuhal_identity_evidence *list;
    uint32_t count, capacity;
} gpuhal_identity_evidence_list;

/* Explains why visible interfaces belong together or not. For each interface, except the first of its physical device,
 * the evidence names the interface that it was matched with. A hidden interface appears only as a bridge to visible
 * interfaces. The evidence also explains why visible interfaces with the same value are different devices.
 * evidence.c. */
gpuhal_status gpuhal_identity_explain(const gpuhal_identity *identity, const bool *visible,
                                      gpuhal_identity_evidence_list *out_list);
void gpuhal_identity_evidence_finish(gpuhal_identity_evidence_list *list);

#endif
