/* faulty.h: declarations that the files of the misbehaving plugin share.
 *
 * It is a whole plugin over host memory: two devices whose memory the host cannot see, with every group of slots that
 * gpuhal-check knows. The variable FAULTY names its one fault. The code tests `is(copy_short)` at the place of the
 * correct behaviour.
 */
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
/* Read from the environment at the first call; FAULT_NONE if the variable names no fault. */
enum gpuhal_faulty_name gpuhal_faulty(void);
#define is(name) (gpuhal_faulty() == FAULT_##name)

#define DEVICES     2u
#define TOTAL_BYTES (is(offset_32) || is(size_32) ? UINT64_C(64) << 30 : UINT64_C(16) << 20)

/* Types of native objects. */
enum { FAULTY_DEVICE = GPUHAL_VENDOR_NATIVE_FIRST, FAULTY_BUFFER, FAULTY_QUEUE, FAULTY_EVENT };

/* Offsets and sizes of a range are multiples of this. */
#define GRANULE UINT64_C(65536)

/* Waits until the queue is empty. */
void gpuhal_faulty_drain(gpuhal_plugin_queue *queue);
/* Leaks a descriptor. */
void gpuhal_faulty_lose_descriptor(void);
void gpuhal_faulty_lose_memory(unsigned bytes);
/* Accesses one number after the end of a structure, as a plugin for a longer structure does. */
void gpuhal_faulty_write_behind(void *structure, unsigned bytes);
void gpuhal_faulty_read_behind(const void *structure, unsigned bytes);
/* Whether this is the child of the process that has started the plugin. */
bool gpuhal_faulty_is_forked(void);

/* One opened device. */
struct gpuhal_plugin_device {
    const gpuhal_host *host;
    uint32_t index;
    unsigned registered;
    bool adopted; /* over another opening */
    bool lost;    /* rubbish_spoils */
    pthread_mutex_t scratch;
};

/* The target of gpuhal_memory.object. The host's view is the same bytes, other bytes (not coherent), or none. */
typedef struct gpuhal_faulty_memory {
    unsigned char *bytes;
    unsigned char *host;
    uint64_t size;
    void *to_free;
    int descriptor; /* -1: no shared memory */
    bool mapped;    /* bytes are a mapping */
    uint32_t index; /* of the device */
    gpuhal_memory_kind kind;
    bool counted; /* against TOTAL_BYTES */
    bool lent;    /* the host's view, or the whole object, belongs to another object */
    const gpuhal_plugin_device *owner;
    void *open_map; /* a bounce buffer handed out by map */
    uint64_t map_offset, map_bytes;
    bool map_writes;
} gpuhal_faulty_memory;

static inline gpuhal_faulty_memory *gpuhal_faulty_of(const gpuhal_memory *memory)
{
    return memory->object;
}

/* faulty_plugin.c: the host for reports: that of the opened device, or the one in a global if the fault keeps it
 * there. */
const gpuhal_host *gpuhal_faulty_host(const gpuhal_host *of_opening);

/* faulty_memory.c */
void gpuhal_faulty_describe_memory(gpuhal_ops *ops);
uint64_t gpuhal_faulty_used(uint32_t index);
void gpuhal_faulty_take(uint64_t bytes); /* counts as used on device 0 for ever */
/* Counts as used until it is released; false: the device has less. */
bool gpuhal_faulty_use(uint32_t index, uint64_t bytes);
void gpuhal_faulty_give_back(uint32_t index, uint64_t bytes);
void gpuhal_faulty_forget(const gpuhal_plugin_device *device); /* clears all memory of other openings */
bool gpuhal_faulty_states(gpuhal_memory_kind kind);

/* faulty_range.c */
void gpuhal_faulty_describe_ranges(gpuhal_ops *ops);

/* faulty_transfer.c: with a NULL queue at once, otherwise through faulty_queue.c */
void gpuhal_faulty_describe_transfer(gpuhal_ops *ops);
void gpuhal_faulty_drop_stale(const void *object);

/* faulty_program.c */
void gpuhal_faulty_describe_program(gpuhal_ops *ops);
bool gpuhal_faulty_launched(void);

/* faulty_values.c */
gpuhal_status gpuhal_faulty_sample(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                   const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink);
gpuhal_status gpuhal_faulty_processes(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                      uint32_t flags, gpuhal_sink *sink);
gpuhal_status gpuhal_faulty_link(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t from, uint32_t to,
                                 gpuhal_sink *sink);

/* faulty_queue.c */
void gpuhal_faulty_describe_queue(gpuhal_ops *ops);
/* Runs @p work later, in order, with a copy of @p bytes bytes of @p arguments. */
gpuhal_status gpuhal_faulty_enqueue(gpuhal_plugin_queue *queue, void (*work)(const void *arguments),
                                    const void *arguments, uint64_t bytes);

#endif
