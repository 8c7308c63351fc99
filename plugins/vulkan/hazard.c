/* vulkan/hazard.c: see hazard.h. This code must be fast, because copies may be small. Adjacent spans are merged, and
 * the bounds of a list usually suffice, since bytes that are accessed together tend to be close together.
 */
#include "hazard.h"

/* Compares half-open ranges. Comparing buffer handles is enough, since each buffer has its own memory (device.h). */
static bool overlap(const gpuhal_vulkan_span *a, const gpuhal_vulkan_span *b)
{
    return a->buffer == b->buffer && a->begin < b->end && b->begin < a->end;
}

/* First compares the span with the list's bounds. If the list has several buffers, there are no bounds (their buffer is
 * NULL), so every span is compared. */
static bool touches(const gpuhal_vulkan_spans *list, const gpuhal_vulkan_span *span)
{
    if (list->bounds.buffer && !overlap(&list->bounds, span)) {
        return false;
    }
    for (uint32_t i = 0; i < list->count; i++) {
        if (overlap(&list->spans[i], span)) {
            return true;
        }
    }
    return false;
}

static void grow(gpuhal_vulkan_span *span, const gpuhal_vulkan_span *by)
{
    span->begin = by->begin < span->begin ? by->begin : span->begin;
    span->end = by->end > span->end ? by->end : span->end;
}

/* Returns false if the list is full. Only the newest span is extended, because adjacent pieces usually follow each
 * other. Spans with a gap between them stay separate, so that the list never covers bytes that no command accesses. */
static bool append(gpuhal_vulkan_spans *list, const gpuhal_vulkan_span *span)
{
    if (!span->buffer) {
        return true;
    }
    gpuhal_vulkan_span *newest = list->count > 0 ? &list->spans[list->count - 1] : NULL;
    if (newest && newest->buffer == span->buffer && newest->begin <= span->end && span->begin <= newest->end) {
        grow(newest, span);
        grow(&list->bounds, span);
        return true;
    }
    if (list->count == GPUHAL_VULKAN_HAZARDS) {
        return false;
    }
    if (list->count == 0) {
        list->bounds = *span;
    } else if (list->bounds.buffer != span->buffer) {
        list->bounds.buffer = VK_NULL_HANDLE;
    } else {
        grow(&list->bounds, span);
    }
    list->spans[list->count++] = *span;
    return true;
}

void gpuhal_vulkan_hazards_clear(gpuhal_vulkan_hazards *hazards)
{
    hazards->written.count = 0;
    hazards->read.count = 0;
    hazards->all = false;
}

/* A write conflicts with every earlier access to its bytes, a read only with earlier writes. */
static bool conflicts(const gpuhal_vulkan_hazards *hazards, const gpuhal_vulkan_touch *touch)
{
    return touch->span.buffer &&
           (touches(&hazards->written, &touch->span) || (touch->writes && touches(&hazards->read, &touch->span)));
}

static bool append_all(gpuhal_vulkan_hazards *hazards, const gpuhal_vulkan_touch *all, uint32_t count)
{
    bool room = true;
    for (uint32_t i = 0; i < count && room; i++) {
        room = append(all[i].writes ? &hazards->written : &hazards->read, &all[i].span);
    }
    return room;
}

/* The caller's next barrier orders all earlier commands, so both lists restart with this command. A full list requires
 * a barrier as well, and its spans are also cleared. A command that does not fit into empty lists conflicts with the
 * next command, whatever bytes it accesses. */
bool gpuhal_vulkan_hazards_add(gpuhal_vulkan_hazards *hazards, const gpuhal_vulkan_touch *all, uint32_t count)
{
    const bool fits = count <= GPUHAL_VULKAN_HAZARDS;
    bool conflict = hazards->all || !fits;
    for (uint32_t i = 0; i < count && !conflict; i++) {
        conflict = conflicts(hazards, &all[i]);
    }
    if (!conflict && append_all(hazards, all, count)) {
        return false;
    }
    gpuhal_vulkan_hazards_clear(hazards);
    hazards->all = !fits || !append_all(hazards, all, count);
    return true;
}
