/* device/view.h: the sources of a view (gpuhal/view.h). Each source provides some kinds of records. The source of this
 * layer is a device snapshot; the part node adds more sources. A view only points to data that never changes, so
 * readers need no lock. */
#ifndef GPUHAL_DEVICE_VIEW_H
#define GPUHAL_DEVICE_VIEW_H

#include <gpuhal/view.h>

#define GPUHAL_NO_KIND UINT32_MAX
#define GPUHAL_KIND_OF_HARDWARE 16u /* GPUHAL_RECORD_HARDWARE, which the part node provides */

typedef struct gpuhal_view_source {
    void *state; /* NULL if there is no source */
    /* Returns the number of records of a kind; GPUHAL_NO_KIND if the source does not provide this kind. */
    uint32_t (*count)(const void *state, gpuhal_record_kind kind);
    /* Copies record `index` to the caller with gpuhal_record_give(). The record must exist. */
    void (*give)(const void *state, gpuhal_record_kind kind, uint32_t index, void *out_record);
    void (*end)(void *state); /* called when the view is released; NULL if the state outlives all views */
} gpuhal_view_source;

typedef enum { GPUHAL_SOURCE_DEVICES, GPUHAL_SOURCE_RECORD, GPUHAL_SOURCE_HARDWARE, GPUHAL_SOURCES } gpuhal_view_part;

struct gpuhal_view {
    uint32_t generation; /* fork generation of the view's creation */
    gpuhal_view_source sources[GPUHAL_SOURCES];
};

/* Creates a view without sources. Returns NULL if out of memory. */
gpuhal_view *gpuhal_view_create(void);
/* Returns OK, or FORKED in a child process, like gpuhal_check(). */
gpuhal_status gpuhal_view_check(const gpuhal_view *view);
/* Copies the part of a structure that the caller's version has. Preserves the size in the caller's structure. */
void gpuhal_record_give(void *out_record, const void *record, uint32_t bytes);

/* Strings passed to callers are never NULL. */
static inline const char *gpuhal_text_or_empty(const char *text)
{
    return text ? text : "";
}

#endif
