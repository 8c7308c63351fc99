/* tests/support/mock.h: a plugin over host memory, linked into tests as a built-in. Its devices can have any properties
 * and any fault.
 *
 * Set gpuhal_mock before gpuhal_open(); read the counters afterwards. The slots are as strict as the strictest driver:
 * if the core passes an unaligned range, a range outside the memory or an overlap, the call fails with
 * GPUHAL_ERROR_DRIVER. */
#ifndef GPUHAL_TEST_MOCK_H
#define GPUHAL_TEST_MOCK_H

#include <gpuhal/gpuhal.h>
#include <gpuhal/plugin.h>

#include <pthread.h>
#include <stdatomic.h>

enum { GPUHAL_MOCK_DEVICES = 10 };

/* Slots that a device may refuse. Read and write are refused only for memory without a host address. */
enum { GPUHAL_MOCK_READ_WRITE = 1, GPUHAL_MOCK_RECT = 2 };
/* Calls that block in the mock until the test clears their bit in gpuhal_mock.stops. */
enum {
    GPUHAL_MOCK_START = 1,
    GPUHAL_MOCK_ENUMERATE = 2,
    GPUHAL_MOCK_OPEN = 4,
    GPUHAL_MOCK_CLOSE = 8,
    GPUHAL_MOCK_SAMPLE = 16,
    GPUHAL_MOCK_LINK = 32
};
/* The mock adopts a GPUHAL_NATIVE_OPENCL_DEVICE only with this number in values[0]. The adopted device does not offer
 * fill. The mock wraps a GPUHAL_NATIVE_OPENCL_BUFFER that has its address in values[0] and its size in values[1]. */
#define GPUHAL_MOCK_NATIVE UINT64_C(0x1ab)

/* The mock's own kind of handle, which is valid in the same process. It contains the mock's name, and a descriptor in
 * the last bytes. */
#define GPUHAL_MOCK_HANDLE (GPUHAL_VENDOR_KIND_FIRST + 2)

/* A value that sample() returns. A test may set the value at any time, but must set the number before the key. */
typedef struct gpuhal_mock_value {
    _Atomic gpuhal_key key; /* 0 if unused */
    _Atomic gpuhal_missing missing;
    _Atomic uint64_t u64;
} gpuhal_mock_value;

typedef struct gpuhal_mock_device {
    const char *name, *uuid, *pci; /* NULL means "mock" for the name, otherwise a missing fact */
    gpuhal_device_type type;       /* 0 means gpu */
    uint32_t software, unified, pageable_access; /* facts; the last two facts are missing if they are 0 */
    uint32_t hidden;               /* device memory has no host address */
    uint32_t own_addresses;        /* the address on the device differs from the host address */
    uint32_t skewed;               /* host addresses are 8 bytes after a multiple of the alignment */
    uint32_t not_coherent;         /* host addresses need memory_flush() and memory_invalidate() */
    uint32_t no_read_write, no_fill, no_rect;
    uint32_t mappable;             /* offers map and unmap */
    uint32_t no_staging_kinds;     /* no memory of kinds UPLOAD and READBACK */
    uint32_t migrating;            /* also memory of kind MIGRATING */
    uint32_t quiet_failures;       /* opens and copies that fail do not report an error detail */
    uint32_t spurious_report;               /* writes report an error detail even if they succeed */
    uint32_t refuses;              /* slots that exist and return NOT_SUPPORTED: GPUHAL_MOCK_… bits */
    uint32_t import_kinds, export_kinds, adopt_kinds; /* facts, missing if 0; OPAQUE_FD uses a memfd */
    uint32_t exportable_kinds;     /* missing if 0; the mock itself exports memory of every kind */
    uint64_t import_alignment;     /* missing if 0 */
    const char *driver_uuid;       /* missing if NULL */
    uint32_t slow_write_us;        /* delay of write and fill after the bytes are moved */
    uint32_t slow_copy_us;         /* delay of copy after the bytes are moved */
    uint32_t short_imports;        /* an import is one byte shorter than requested */
    uint32_t ignores_alignment;    /* addresses are 64 bytes after a multiple of the alignment */
    uint32_t caches_imports;       /* works on a copy of imported host memory, as OpenCL drivers for discrete GPUs do */
    uint64_t copy_alignment, fill_alignment;
    uint64_t total_bytes;          /* 0 for 1 GiB; allocations beyond it fail with OUT_OF_MEMORY */
    uint64_t compute_units;        /* missing if 0 */
    const char *partition;         /* missing if NULL */
    const char *unlisted;          /* the reason why the mock's device is not listed as a device, or NULL */
    gpuhal_compute_mode compute_mode; /* missing if 0 */
    uint64_t allocation_max;       /* not reported if 0 */
    uint64_t page_bytes;           /* granularity of virtual memory, a multiple of the page size; 0 if not offered */
    uint64_t large_range_bytes;    /* ranges above this size have four times the granularity; 0 for none */
    uint32_t slow_range_us;        /* duration of a commit or a decommit */
    const char *formats; /* program formats, see mock_program.c; NULL for no programs */
    uint32_t keeps_compiled; /* offers program_compiled */
    uint32_t compiles_kernels; /* each kernel is compiled separately, and cached in its program */
    uint32_t launch_forms; /* flags of the kernels' info; with GPUHAL_KERNEL_PREPARED_SIZES offers kernel_prepare */
    uint32_t no_prepare_slot; /* does not offer it even so */
    const char *compiler; /* library that the first compilation loads, or NULL */
    uint32_t compiler_is_late; /* loads `compiler` only when the program's binary is requested */
    uint32_t range_host, range_skewed; /* reserved ranges have a host address; begin 64 bytes into a page */
    /* Faults; may be set at any time. */
    gpuhal_mock_value values[4];
    _Atomic gpuhal_status fail_load, fail_kernel, fail_prepare, fail_launch;
    _Atomic gpuhal_status fail_compiled; /* result of the core's request for the binary */
    _Atomic int64_t compiled_more; /* growth of the binary after its size was requested; < 0 if it becomes empty */
    _Atomic uint32_t no_group_size; /* kernels are created without a group size */
    _Atomic uint32_t hold_launches; /* launches wait while this is not 0 */
    _Atomic gpuhal_status fail_reserve, fail_commit, fail_decommit, fail_sample;
    _Atomic gpuhal_status fail_open, fail_allocate, fail_import, fail_copy, fail_read, fail_write;
    /* Counters. */
    _Atomic int64_t openings, allocations, allocated_bytes, copies, reads, writes, fills, rects, maps, imports, cleans;
    _Atomic int64_t programs, kernels; /* number of existing objects */
    _Atomic int64_t loads, compilations, launches, launches_held; /* number of calls; number of waiting calls */
    gpuhal_plugin_launch last_launch; /* its lists are gone; groups are those that ran */
    _Atomic int64_t ranges, commits, decommits; /* number of existing ranges; numbers of successful calls */
    _Atomic int64_t staging_bytes, staging_bytes_most; /* memory of kinds UPLOAD and READBACK */
} gpuhal_mock_device;

typedef struct gpuhal_mock_state {
    uint32_t count;
    uint32_t slow_open_ms;
    uint32_t fork_safe;
    uint32_t chatty_open; /* logs a line when opened */
    uint32_t links;       /* offers link() */
    _Atomic uint32_t unplugged; /* one bit for each device that is no longer listed */
    _Atomic uint32_t enumerations;
    const gpuhal_host *host; /* the host that start() received */
    const char *library, *driver; /* the vendor's library, and the driver that the library loads; each may be NULL */
    gpuhal_key stop_key;  /* limits GPUHAL_MOCK_SAMPLE to this value; 0 means all */
    uint32_t stop_device; /* limits GPUHAL_MOCK_SAMPLE to this device, numbered from 1; 0 means all */
    _Atomic uint32_t stops;   /* GPUHAL_MOCK_START … */
    _Atomic uint32_t stopped; /* calls that are stopped now */
    _Atomic pthread_t stopped_thread; /* thread of the last stopped call */
    _Atomic long sample_thread;       /* gettid() in the last call of sample() */
    gpuhal_mock_device devices[GPUHAL_MOCK_DEVICES];
} gpuhal_mock_state;

extern gpuhal_mock_state gpuhal_mock;

/* The query functions of "mock" and of "cpu" (one plain device of type cpu). Of gpuhal_mock, "cpu" uses only
 * slow_open_ms and chatty_open. */
const gpuhal_plugin *gpuhal_mock_query(uint32_t host_abi, const gpuhal_host *host);
const gpuhal_plugin *gpuhal_mock_cpu_query(uint32_t host_abi, const gpuhal_host *host);

/* Makes the mock plugin list five devices: software, an integrated GPU, a GPU with a UUID, another GPU, an
 * accelerator. */
void gpuhal_mock_five_kinds(void);
/* Opens a gpuhal object that uses only the mock plugin, and the mock's "cpu" if `with_cpu`, in this process. Ignores
 * the environment. `config` may be NULL; its plugin members are replaced. Fails the test if the object cannot be
 * opened. */
gpuhal *gpuhal_mock_open(const gpuhal_config *config, int with_cpu);
/* Creates a buffer of `bytes` on device number `index`, or fails the test. */
gpuhal_buffer *gpuhal_mock_buffer(gpuhal *gpu, uint32_t index, uint64_t bytes);

#endif
