/* tests/fakes/common/script.h: the machine that the fakes of a vendor pretend to be, and the faults that they play.
 *
 * The text comes from the vendor's environment variable; README.md of the vendor has the grammar. It is read once per
 * library and process and constant afterwards, except the counters of the faults. A text that breaks the grammar ends
 * the process with a sentence: a test with a wrong machine must not pass.
 */
#ifndef FAKE_SCRIPT_H
#define FAKE_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAKE_DEVICES = 32, FAKE_MIGS = 7, FAKE_ATTRIBUTES = 16, FAKE_VALUES = 32, FAKE_FAULTS = 16,
       FAKE_PROCESSES = 32 };

/* The differences between the vendors. Each has its own, in vendor.c. */
typedef struct fake_vendor_facts {
    const char *name;            /* in sentences: "CUDA" */
    const char *variable;        /* of the machine: "FAKE_CUDA" */
    const char *report_variable; /* of the report's path */
    const char *device_name;
    const char *driver_text;
    int driver_version;
    unsigned uuid_bytes; /* 16, or 8 if the chip has a number instead */
    size_t alignment;    /* of new device memory: exactly the promised one */
} fake_vendor_facts;

extern const fake_vendor_facts fake_vendor;

typedef struct fake_uuid {
    unsigned char bytes[16];
} fake_uuid;

/* One MIG device of a divided GPU. */
typedef struct fake_mig {
    unsigned gpu_instance, compute_instance;
    uint64_t memory;
    fake_uuid uuid;
    char profile[16]; /* "1g.10gb" */
} fake_mig;

typedef struct fake_plan {
    char name[64];
    fake_uuid uuid;
    bool no_uuid; /* the chip has none */
    unsigned pci_domain, pci_bus, pci_device;
    uint64_t memory, used; /* bytes; used: by other processes */
    bool mig_mode; /* divided, or to be divided, into MIG devices */
    int compute_mode;      /* as both vendors number it: 0 default, 2 prohibited, 3 exclusive */
    bool taken;            /* another process holds it, which matters in exclusive mode */
    struct {
        int number, value;
    } attributes[FAKE_ATTRIBUTES];
    unsigned attribute_count;
    struct {
        char name[32];
        uint64_t value;
    } values[FAKE_VALUES]; /* results of the libraries for telemetry, in their units */
    unsigned value_count;
    struct {
        unsigned pid;
        uint64_t bytes; /* all ones: not known */
        bool draws;     /* else it computes */
    } processes[FAKE_PROCESSES];
    unsigned process_count;
    fake_mig migs[FAKE_MIGS];
    unsigned mig_count;
    unsigned partitions; /* number of devices that the program sees for it; 0: it is whole */
} fake_plan;

typedef enum fake_link_kind { FAKE_LINK_PCIE, FAKE_LINK_NVLINK, FAKE_LINK_XGMI, FAKE_LINK_SYSTEM } fake_link_kind;

typedef struct fake_link {
    fake_link_kind kind;
    unsigned generation, lanes; /* NVLink: version and number of links; XGMI: lanes is the number of hops */
    bool silent;                /* access is granted, and bytes written through it are lost */
} fake_link;

typedef enum fake_fault_kind { FAKE_FAIL, FAKE_LOSE, FAKE_HANG, FAKE_CRASH } fake_fault_kind;

typedef struct fake_fault {
    fake_fault_kind kind;
    char function[48]; /* "nvml*": any that begins with nvml */
    uint64_t nth;      /* counted from 1 */
    bool onwards;      /* and every later call */
    int code;
    unsigned device; /* LOSE: which one */
    uint64_t seen;   /* protected by the lock of the library */
} fake_fault;

typedef struct fake_script {
    unsigned device_count;
    unsigned listed_count; /* CUDA or HIP lists only the first ones; a management library lists all */
    fake_plan devices[FAKE_DEVICES];
    fake_link links[FAKE_DEVICES][FAKE_DEVICES];
    fake_link nvswitch; /* lanes 0: there is none; else all NVLinks of every device end at switches */
    int init_code;             /* result of initialisation */
    int driver_version;        /* 13000 */
    char driver_text[32];      /* "580.65.06" */
    uint64_t slow_ns;          /* every piece of work of a stream takes at least this long */
    uint64_t bytes_per_second; /* copies take at least this long; 0: no limit */
    uint64_t host_offset;      /* distance of page-locked memory from the beginning of its page */
    bool strict;               /* a violation ends the process */
    uint64_t sleep_ns;         /* every call about telemetry takes at least this long */
    fake_fault faults[FAKE_FAULTS];
    unsigned fault_count;
} fake_script;

/* The machine; the first call reads it. From any thread. */
fake_script *fake_script_get(void);

/* Physical numbers of the devices in PCI order, as NVML counts them. */
void fake_script_pci_order(const fake_script *script, unsigned out_order[FAKE_DEVICES]);

/* A value of a device that the machine states, or @p otherwise. */
uint64_t fake_script_value(const fake_plan *plan, const char *name, uint64_t otherwise);

/* Whether one device reaches the other's memory. */
bool fake_script_peer(const fake_script *script, unsigned from, unsigned to);

/* The fault that applies to this call of @p function, or NULL; counts the call. A crash happens in this function. Under
 * the lock of the library. */
const fake_fault *fake_script_fault(fake_script *script, const char *function);

/* Writes "8-4-4-4-12" in lower case into 37 bytes. */
void fake_uuid_text(const fake_uuid *uuid, char out_text[37]);

#endif
