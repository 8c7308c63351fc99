/* tests/fakes/common/script.h: the machine that a vendor's fakes simulate, and the faults that they execute.
 *
 * The text comes from the vendor's environment variable; the vendor's README.md has the grammar. Each library reads
 * it once per process. Afterwards only the fault counters change. Invalid text ends the process with an error
 * message, because a test with a wrong machine must not pass. */
#ifndef FAKE_SCRIPT_H
#define FAKE_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FAKE_DEVICES = 32, FAKE_MIGS = 7, FAKE_ATTRIBUTES = 16, FAKE_VALUES = 32, FAKE_FAULTS = 16,
       FAKE_PROCESSES = 32 };

/* The differences between the vendors. Each vendor.c defines this table. */
typedef struct fake_vendor_facts {
    const char *name;            /* name in messages: "CUDA" */
    const char *variable;        /* variable with the machine: "FAKE_CUDA" */
    const char *report_variable; /* variable with the report's path */
    const char *device_name;
    const char *driver_text;
    int driver_version;
    unsigned uuid_bytes; /* size of a UUID; 8 if the vendor uses a chip serial number instead */
    size_t alignment;    /* exact alignment of new device memory */
} fake_vendor_facts;

extern const fake_vendor_facts fake_vendor;

typedef struct fake_uuid {
    unsigned char bytes[16];
} fake_uuid;

typedef struct fake_mig {
    unsigned gpu_instance, compute_instance;
    uint64_t memory;
    fake_uuid uuid;
    char profile[16]; /* "1g.10gb" */
} fake_mig;

typedef struct fake_plan {
    char name[64];
    fake_uuid uuid;
    bool no_uuid; /* the chip has no UUID */
    unsigned pci_domain, pci_bus, pci_device;
    uint64_t memory, used; /* in bytes; other processes have `used` bytes of the memory */
    bool mig_mode;         /* MIG mode is stated as on; MIG devices imply it, too */
    int compute_mode;      /* same numbers for both vendors: 0 default, 2 prohibited, 3 exclusive */
    bool taken;            /* another process uses the device; relevant only in exclusive mode */
    struct {
        int number, value;
    } attributes[FAKE_ATTRIBUTES];
    unsigned attribute_count;
    struct {
        char name[32];
        uint64_t value;
    } values[FAKE_VALUES]; /* results of the telemetry libraries, in their units */
    unsigned value_count;
    struct {
        unsigned pid;
        uint64_t bytes; /* UINT64_MAX: unknown */
        bool draws;     /* graphics; otherwise compute */
    } processes[FAKE_PROCESSES];
    unsigned process_count;
    fake_mig migs[FAKE_MIGS];
    unsigned mig_count;
    unsigned partitions; /* number of visible partitions; 0 if not partitioned */
} fake_plan;

typedef enum fake_link_kind { FAKE_LINK_PCIE, FAKE_LINK_NVLINK, FAKE_LINK_XGMI, FAKE_LINK_SYSTEM } fake_link_kind;

typedef struct fake_link {
    fake_link_kind kind;
    unsigned generation, lanes; /* NVLink: version and number of links; XGMI: `lanes` is the number of hops */
    bool silent;                /* access can be enabled, but copies between the devices then move no bytes */
} fake_link;

typedef enum fake_fault_kind { FAKE_FAIL, FAKE_LOSE, FAKE_HANG, FAKE_CRASH } fake_fault_kind;

typedef struct fake_fault {
    fake_fault_kind kind;
    char function[48]; /* "nvml*" matches every name that begins with nvml */
    uint64_t nth;      /* counted from 1 */
    bool onwards;      /* also every later call */
    int code;
    unsigned device; /* LOSE: the device */
    uint64_t seen;   /* protected by the library's lock */
} fake_fault;

typedef struct fake_script {
    unsigned device_count;
    unsigned listed_count; /* CUDA or HIP lists this many devices, from the first on; a management library lists all */
    fake_plan devices[FAKE_DEVICES];
    fake_link links[FAKE_DEVICES][FAKE_DEVICES];
    fake_link nvswitch;        /* if lanes is not 0, all NVLinks of every device end at switches */
    int init_code;             /* result of the initialization */
    int driver_version;        /* 13000 */
    char driver_text[32];      /* "580.65.06" */
    uint64_t slow_ns;          /* minimum duration of each copy, fill and kernel that runs */
    uint64_t bytes_per_second; /* maximum speed of copies, fills and kernels; 0 for no limit */
    uint64_t host_offset;      /* offset of page-locked memory in its page */
    bool strict;               /* a violation ends the process */
    uint64_t sleep_ns;         /* minimum duration of each telemetry call */
    fake_fault faults[FAKE_FAULTS];
    unsigned fault_count;
} fake_script;

/* Returns the machine; the first call reads it. May be called on any thread. */
fake_script *fake_script_get(void);

/* Sorts the devices' physical numbers by PCI address, as NVML does. */
void fake_script_pci_order(const fake_script *script, unsigned out_order[FAKE_DEVICES]);

/* Returns the device's value in the machine's text, or @p otherwise if the text has no such value. */
uint64_t fake_script_value(const fake_plan *plan, const char *name, uint64_t otherwise);

bool fake_script_peer(const fake_script *script, unsigned from, unsigned to);

/* Counts the call and returns the fault that applies to it, or NULL. Crashes if the fault is a crash. Requires the
 * library's lock. */
const fake_fault *fake_script_fault(fake_script *script, const char *function);

/* Writes "8-4-4-4-12" in lower case, 37 bytes. */
void fake_uuid_text(const fake_uuid *uuid, char out_text[37]);

#endif
