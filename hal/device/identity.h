/* device/identity.h: which listed devices are one piece of hardware. The rule, over facts alone: nothing here opens or asks
 * anything.
 *
 * docs/identity.md tells the rule in words, with the reasons. Two promises: being one is transitive, and the answer does not
 * depend on the order of the faces; only numbers and the choice of what is named first do.
 */
#ifndef GPUHAL_DEVICE_IDENTITY_H
#define GPUHAL_DEVICE_IDENTITY_H

#include "core/facts.h"

#include <gpuhal/physical.h>

/* What faces are matched by, the strongest first. */
typedef enum gpuhal_identity_level {
    GPUHAL_IDENTITY_PCI,
    GPUHAL_IDENTITY_DRM,
    GPUHAL_IDENTITY_UUID,
    GPUHAL_IDENTITY_LUID,
    GPUHAL_IDENTITY_HOST, /* the host's processor: no value, and nothing else counts for such faces */
    GPUHAL_IDENTITY_LEVELS
} gpuhal_identity_level;

/* One device as one backend lists it. */
typedef struct gpuhal_interface {
    /* Given. */
    const char *backend;
    uint32_t index;
    const gpuhal_facts *facts;
    /* Found. */
    char id[48];
    char pci[24];                               /* canonical, without partition bits; "" when it states no possible one */
    const char *values[GPUHAL_IDENTITY_LEVELS]; /* NULL: states none that identifies; PCI points to `pci` */
    uint64_t maker;                             /* vendor within which the UUID counts; 0: none */
    uint32_t doubted;                           /* bits 1 << level: several devices state this value, so it tells nothing */
    bool host;                                  /* a program on the host's processor, or the processor itself */
    const char *partition_name;                      /* which part of divided hardware, "" for the whole */
    char partition_space[24];                        /* of the name, where no fact has it */
    uint32_t physical;                          /* faces of one piece of hardware have one number, counted from 0 */
    uint32_t partition;                              /* the first face of the same part of the same hardware */
} gpuhal_interface;

/* Why a value joins nothing. */
typedef enum gpuhal_doubt {
    GPUHAL_DOUBT_PCI,        /* PCI addresses differ */
    GPUHAL_DOUBT_DRM,        /* render nodes differ */
    GPUHAL_DOUBT_ONE_DRIVER, /* one driver lists both */
} gpuhal_doubt;

/* A value that is doubted: among those that state it, UUIDs within one maker. */
typedef struct gpuhal_refusal {
    uint32_t iface; /* one that states it */
    gpuhal_identity_level level;
    gpuhal_doubt doubt;
    uint32_t witness[2]; /* the two faces that contradict each other */
} gpuhal_refusal;

/* Zero-initialised, then `faces` and `count` set, is ready for gpuhal_identity_find(). */
typedef struct gpuhal_identity {
    gpuhal_interface *interfaces; /* malloc'ed */
    uint32_t count;
    gpuhal_refusal *refusals;
    uint32_t refusal_count, refusal_capacity;
} gpuhal_identity;

/* Finds what is one; HOST_MEMORY or OK. */
gpuhal_status gpuhal_identity_find(gpuhal_identity *identity);
void gpuhal_identity_finish(gpuhal_identity *identity);

/* face.c: fills in what follows from a device's own facts, and from its siblings in the same driver. */
void gpuhal_interfaces_read(gpuhal_identity *identity);
/* Whether one driver lists both. Two builds of one driver, or two drivers, may list the same hardware in one backend; one driver
 * lists it once. */
bool gpuhal_interface_same_driver(const gpuhal_interface *a, const gpuhal_interface *b);
/* Writes the canonical form of a PCI address; false for a text that is not one. */
bool gpuhal_identity_pci(const char *text, char out[24]);
/* Whether both state the same value; UUIDs count within one maker. */
bool gpuhal_interface_same_value(const gpuhal_interface *a, const gpuhal_interface *b, gpuhal_identity_level level);
/* The level at which two faces match directly; LEVELS when they do not. */
gpuhal_identity_level gpuhal_identity_direct(const gpuhal_interface *a, const gpuhal_interface *b);

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

/* Why the visible faces are one or stay apart: for each visible face but the first of its hardware, the face that it was matched
 * with, also a hidden one where there is no other way; then why visible ones that state the same are not one. evidence.c. */
gpuhal_status gpuhal_identity_tell(const gpuhal_identity *identity, const bool *visible, gpuhal_identity_evidence_list *out_list);
void gpuhal_identity_evidence_finish(gpuhal_identity_evidence_list *list);

#endif
