/* faulty.h: declarations that the misbehaving plugin's files share.
 *
 * The plugin is complete, and its two devices use host memory, which the plugin hides from the host. It has every group
 * of slots that gpuhal-check knows. The environment variable FAULTY selects one fault; the code tests for it with, for
 * example, `is(copy_short)`. */
#ifndef GPUHAL_TEST_FAULTY_H
#define GPUHAL_TEST_FAULTY_H

#include <gpuhal/plugin.h>

#include <pthread.h>
#include <stdbool.h>

enum gpuhal_faulty_name {
#define GROUP(name)
#define FAULT(name, status, options, check, rule, sentence) FAULT_##name,
#define FAULT_FILE(name, file, status, options, check, rule, sentence)
#define MISSED(name, why)   FAULT_##name,
#define GOOD(name, options) FAULT_##name,
#include "faults.inc"
#undef GROUP
#undef FAULT
#undef FAULT_FILE
#undef MISSED
#undef GOOD
    FAULT_NONE
};
/* Reads the variable FAULTY once. Returns FAULT_NONE if its value does not name a fault. */
enum gpuhal_faulty_name gpuhal_faulty(void);
#define is(name) (gpuhal_faulty() == FAULT_##name)

#define DEVICES     2u
#define TOTAL_BYTES (is(offset_32) || is(size_32) ? UINT64_C(64) << 30 : UINT64_C(16) << 20)

enum { FAULTY_DEVICE = GPUHAL_VENDOR_NATIVE_FIRST, FAULTY_BUFFER, FAULTY_QUEUE, FAULTY_EVENT };

/* Offsets and sizes in a range must be multiples of GRANULE. */
#define GRANULE UINT64_C(65536)

/* Flushes the queue and waits until the queue is empty. */
void gpuhal_faulty_drain(gpuhal_plugin_queue *queue);
void gpuhal_faulty_lose_descriptor(void);
void gpuhal_faulty_lose_memory(unsigned bytes);
/* Writes a number past the end of a structure, like a plugin built for a longer version of the structure. */
void gpuhal_faulty_write_behind(void *structure, unsigned bytes);
void gpuhal_faulty_read_behind(const void *structure, unsigned bytes);
/* Returns true in a forked child of the process that started the plugin. */
bool gpuhal_faulty_is_forked(void);

struct gpuhal_plugin_device {
    const gpuhal_host *host;
    uint32_t index;
    unsigned registered;
    bool adopted; /* opened on the device object of another opening */
    bool lost;    /* the device is lost (only with rubbish_spoils) */
    pthread_mutex_t scratch;
};

/* gpuhal_memory.object points to this structure. The host's view is the same bytes, a second copy (not coherent), or
 * NULL. */
typedef struct gpuhal_faulty_memory {
    unsigned char *bytes;
    unsigned char *host;
    uint64_t size;
    void *to_free;
    int descriptor; /* of the shared memory, or -1 */
    bool mapped;    /* `bytes` is a mapping */
    uint32_t index; /* index of the device */
    gpuhal_memory_kind kind;
    bool counted; /* included in the device's used bytes */
    bool lent;    /* the host's view, or `bytes`, belongs to another object */
    const gpuhal_plugin_device *owner;
    void *open_map; /* a bounce buffer handed out by map */
    uint64_t map_offset, map_bytes;
    bool map_writes;
} gpuhal_faulty_memory;

static inline gpuhal_faulty_memory *gpuhal_faulty_of(const gpuhal_memory *memory)
{
    return memory->object;
}

/* faulty_plugin.c: returns the host that receives reports: the opened device's host, or the host that a fault keeps in
 * a global variable. */
const gpuhal_host *gpuhal_faulty_host(const gpuhal_host *of_opening);

/* Slots for the table of native handles, in faulty_memory.c and faulty_queue.c. */
gpuhal_status gpuhal_faulty_native_memory(gpuhal_plugin_device *device, const gpuhal_memory *memory,
                                          gpuhal_native *out_native);
gpuhal_status gpuhal_faulty_wrap(gpuhal_plugin_device *device, const gpuhal_native *native, uint64_t bytes,
                                 gpuhal_memory *out_memory);
gpuhal_status gpuhal_faulty_native_queue(gpuhal_plugin_queue *queue, gpuhal_native *out_native);
gpuhal_status gpuhal_faulty_native_event(gpuhal_plugin_event *event, gpuhal_native *out_native);
gpuhal_status gpuhal_faulty_native_lock(gpuhal_plugin_queue *queue, uint64_t timeout_ns);
void gpuhal_faulty_native_unlock(gpuhal_plugin_queue *queue);

/* faulty_memory.c */
void gpuhal_faulty_describe_memory(gpuhal_ops *ops);
uint64_t gpuhal_faulty_used(uint32_t index);
void gpuhal_faulty_take(uint64_t bytes); /* counts the bytes as used on device 0 permanently */
/* The bytes count as used until gpuhal_faulty_give_back(). Returns false if the device has fewer free bytes. */
bool gpuhal_faulty_use(uint32_t index, uint64_t bytes);
void gpuhal_faulty_give_back(uint32_t index, uint64_t bytes);
void gpuhal_faulty_forget(const gpuhal_plugin_device *device); /* zeroes the memory of the other openings */
bool gpuhal_faulty_states(gpuhal_memory_kind kind);

/* faulty_range.c */
void gpuhal_faulty_describe_ranges(gpuhal_ops *ops);

/* faulty_transfer.c: transfers run immediately if the queue is NULL, otherwise through faulty_queue.c */
void gpuhal_faulty_describe_transfer(gpuhal_ops *ops);
void gpuhal_faulty_drop_stale(const void *object);

/* faulty_program.c */
void gpuhal_faulty_describe_program(gpuhal_ops *ops);
bool gpuhal_faulty_launched(void);
uint32_t gpuhal_faulty_launch_forms(void); /* GPUHAL_KERNEL_ bits */

/* faulty_recording.c */
void gpuhal_faulty_describe_recordings(gpuhal_ops *ops);
void gpuhal_faulty_forget_recordings(void); /* makes later runs of existing recordings do nothing */

/* faulty_values.c */
gpuhal_status gpuhal_faulty_sample(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                   const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink);
gpuhal_status gpuhal_faulty_processes(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                      uint32_t flags, gpuhal_sink *sink);
gpuhal_status gpuhal_faulty_link(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t from, uint32_t to,
                                 gpuhal_sink *sink);

/* faulty_queue.c */
void gpuhal_faulty_describe_queue(gpuhal_ops *ops);
/* Runs @p work later, in order, with a copy of @p arguments (@p bytes long). */
gpuhal_status gpuhal_faulty_enqueue(gpuhal_plugin_queue *queue, void (*work)(const void *arguments),
                                    const void *arguments, uint64_t bytes);

/* Enqueues work that the next work overtakes. */
void gpuhal_faulty_enqueue_late(gpuhal_plugin_queue *queue, void (*work)(const void *arguments), const void *arguments,
                                uint64_t bytes);

#endif
