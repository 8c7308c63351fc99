/* cpu/device.h: declarations that the files of this plugin share.
 *
 * The machine's processors and memory are one device, `cpu:0`. For tests, the option cpu.devices splits it into several
 * devices with their own limits. Each start() creates a device table, which never changes afterwards, except for its
 * counters and the thread pool. The plugin also works in a forked child. Memory calls use no locks, because a fork
 * could leave a lock locked. The child creates a new thread pool.
 */
#ifndef GPUHAL_CPU_DEVICE_H
#define GPUHAL_CPU_DEVICE_H

#include <gpuhal/plugin.h>

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define GPUHAL_CPU_DEVICES_MAX       16u
#define GPUHAL_CPU_BINDING_ALIGNMENT 64u
#define GPUHAL_CPU_THREADS_MAX       1024u
/* Local memory of a group: about the size of a core's L2 cache. Each CPU thread of a launch has its own. */
#define GPUHAL_CPU_GROUP_MEMORY (UINT64_C(1) << 20)
#define GPUHAL_CPU_FORMATS      "host-library host-function"
/* The flags of every kernel. */
#define GPUHAL_CPU_LAUNCH_FORMS                                                                                        \
    (GPUHAL_KERNEL_ADDS_LOCAL | GPUHAL_KERNEL_GROUP_SIZE | GPUHAL_KERNEL_THREADS | GPUHAL_KERNEL_OFFSET |              \
     GPUHAL_KERNEL_INDIRECT | GPUHAL_KERNEL_NULL_BUFFERS)

/* A device. All opened devices with the same index share it. */
typedef struct gpuhal_cpu_entry {
    uint64_t total;             /* maximum size of one allocation, and of all allocations together */
    bool limited;               /* `total` is the limit from the option rather than the machine's memory */
    _Atomic uint64_t allocated; /* bytes that are allocated by all opened devices */
} gpuhal_cpu_entry;

#define GPUHAL_CPU_PACKAGES_MAX 8u

/* Previous counter readings. Reported values are differences from these. Accessed without a lock, because a fork could
 * leave it locked. */
typedef struct gpuhal_cpu_counters {
    _Atomic uint64_t ticks;    /* previous ticks: busy in the upper half, total in the lower half; 0 if none */
    _Atomic uint32_t permille; /* utilization from the last two readings, plus 1; 0 if none yet */
    _Atomic uint64_t energy_last[GPUHAL_CPU_PACKAGES_MAX]; /* previous counters, plus 1; 0 if none yet */
    _Atomic uint64_t energy;   /* microjoules of all packages; does not wrap */
} gpuhal_cpu_counters;

typedef struct gpuhal_cpu_pool gpuhal_cpu_pool;

/* The state of one start. */
struct gpuhal_plugin_instance {
    gpuhal_cpu_counters counters;
    _Atomic(gpuhal_cpu_pool *) pool; /* shared by all devices; NULL until a launch has several groups */
    _Atomic uint32_t opened;
    uint32_t threads; /* number of threads that run one launch, including the caller's */
    bool has_mask;
    cpu_set_t mask; /* the pool's threads run on these processors, whichever thread starts them */
    uint32_t count;
    char root[256]; /* replaces `/` in the paths of system.c: the option cpu.system_root, set by the core */
    gpuhal_cpu_entry entries[GPUHAL_CPU_DEVICES_MAX];
};

struct gpuhal_plugin_device {
    const gpuhal_host *host;
    gpuhal_plugin_instance *instance;
    gpuhal_cpu_entry *entry;
};

struct gpuhal_plugin_program {
    gpuhal_plugin_device *device;
    void *library;                         /* from dlopen(); NULL for a table */
    const gpuhal_host_function *functions; /* the caller's; NULL for a library */
};

/* discovery.c */
gpuhal_status gpuhal_cpu_start(const gpuhal_host *host, gpuhal_plugin_instance **out_instance);
gpuhal_status gpuhal_cpu_enumerate(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink);
/* telemetry.c */
gpuhal_status gpuhal_cpu_sample(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink);
/* discovery.c: returns the device with this index, or NULL. */
gpuhal_cpu_entry *gpuhal_cpu_find(gpuhal_plugin_instance *instance, uint32_t index);

/* pages.c. Sums of sizes and alignments cannot overflow, because sizes are at most the entry's total and alignments at
 * most 2^63. */
uint64_t gpuhal_cpu_page_bytes(void);
static inline uint64_t gpuhal_cpu_round_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}
/* Writes to each page of memory that no caller uses yet. The contents are undefined. */
void gpuhal_cpu_touch(volatile char *start, uint64_t bytes, uint64_t page);
/* Commits the pages of a mapping. Returns 0 or an errno. */
int gpuhal_cpu_commit(void *start, uint64_t length);
/* Maps private memory and commits its pages. Returns 0 or an errno. */
int gpuhal_cpu_map_committed(uint64_t bytes, uint64_t alignment, void **out_start);

/* share.c: shared memory. The object of shared memory is a record rather than an address. */
static inline bool gpuhal_cpu_is_shared(const gpuhal_memory *memory)
{
    return memory->object != memory->host;
}
/* Allocates memory that can be exported as a descriptor. The caller counts it against the entry. Returns 0 or an
 * errno. */
int gpuhal_cpu_allocate_shareable(const gpuhal_alloc *alloc, gpuhal_memory *out_memory);
gpuhal_status gpuhal_cpu_import(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory);
gpuhal_status gpuhal_cpu_export(gpuhal_plugin_device *device, const gpuhal_memory *memory, gpuhal_handle_kind kind,
                                gpuhal_handle *out_handle, uint64_t *out_offset);
/* Returns the number of bytes that were counted against the entry. */
uint64_t gpuhal_cpu_release_shared(gpuhal_memory *memory);

/* All kinds of memory have the same properties in this plugin. */
static inline void gpuhal_cpu_show(void *object, void *start, uint64_t bytes, gpuhal_memory *out_memory)
{
    out_memory->flags = GPUHAL_MEMORY_HOST_COHERENT | GPUHAL_MEMORY_HOST_CACHED | GPUHAL_MEMORY_DEVICE_LOCAL;
    out_memory->object = object;
    out_memory->bytes = bytes;
    out_memory->address = (uintptr_t)start;
    out_memory->host = start;
}

/* program.c: returns the function with this name, or NULL. */
gpuhal_host_kernel_fn *gpuhal_cpu_find_function(const gpuhal_plugin_program *program, const char *name);

/* pool.c. Processes the items from @p first to @p end, exclusive. Concurrent calls have different slots. */
typedef void gpuhal_cpu_work_fn(void *user, uint32_t slot, uint64_t first, uint64_t end);
/* Processes all @p total items on this thread and up to @p slots - 1 pool threads. Returns when all items are done. */
void gpuhal_cpu_pool_run(gpuhal_plugin_instance *instance, uint32_t slots, uint64_t total, gpuhal_cpu_work_fn *work,
                         void *user);
/* Ends the threads of the pool. The next launch starts new ones. */
void gpuhal_cpu_pool_rest(gpuhal_plugin_instance *instance);
void gpuhal_cpu_pool_free(gpuhal_plugin_instance *instance);

/* program.c: slots for the table of kernel.c. */
gpuhal_status gpuhal_cpu_program_load(gpuhal_plugin_device *device, const gpuhal_code *code,
                                      gpuhal_plugin_build *build, gpuhal_plugin_program **out_program);
void gpuhal_cpu_program_unload(gpuhal_plugin_program *program);

/* memory.c, transfer.c and kernel.c: fill in their slots. */
void gpuhal_cpu_describe_memory(gpuhal_ops *ops);
void gpuhal_cpu_describe_transfer(gpuhal_ops *ops);
void gpuhal_cpu_describe_programs(gpuhal_ops *ops);

#endif
