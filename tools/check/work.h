/* work.h: steps for checks of queues and of work in queues. Each step fails the check if the plugin refuses it. */
#ifndef GPUHAL_CHECK_WORK_H
#define GPUHAL_CHECK_WORK_H

#include "../common/subprocess.h"
#include "area.h"

typedef struct gpuhal_work {
    const gpuhal_opened *opened;
    const gpuhal_slots *slots;
    gpuhal_plugin_queue *queue;
    gpuhal_plugin_event *event;
    gpuhal_area from, to;
} gpuhal_work;

/* Returns whether the device has queues and this queue slot; otherwise skips the check. */
bool gpuhal_work_offered(const gpuhal_context *context, bool slot, const char *name);
gpuhal_plugin_queue *gpuhal_work_queue(const gpuhal_opened *opened, uint32_t flags);
gpuhal_plugin_event *gpuhal_work_event(const gpuhal_opened *opened, uint32_t flags);
void gpuhal_work_init(gpuhal_work *work, const gpuhal_context *context, uint32_t flags);
void gpuhal_work_finish(gpuhal_work *work);

/* Enqueues a copy; tries again while the queue is full. */
void gpuhal_work_copy(const gpuhal_work *work, gpuhal_plugin_queue *queue, const gpuhal_area *to, uint64_t to_offset,
                      const gpuhal_area *from, uint64_t from_offset, uint64_t bytes);
void gpuhal_work_record(const gpuhal_work *work, gpuhal_plugin_queue *queue, gpuhal_plugin_event *event);
/* Polls until the event is done. The check's deadline limits the wait. */
void gpuhal_work_await(const gpuhal_work *work, gpuhal_plugin_event *event);
/* Moves one piece through the memory `to`. Each step copies from the previous step's target. If the steps run out of
 * order, wrong bytes arrive. */
void gpuhal_work_walk(gpuhal_work *work, unsigned steps, uint64_t piece);

void gpuhal_work_flush(const gpuhal_work *work, gpuhal_plugin_queue *queue);
/* Returns whether the queue was full. If it was full, this function has flushed the queue and waited a little, and the
 * caller must repeat the call. */
bool gpuhal_work_full(const gpuhal_work *work, gpuhal_plugin_queue *queue, gpuhal_status status);
unsigned gpuhal_work_times_full(void);

#endif
