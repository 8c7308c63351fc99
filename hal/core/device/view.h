/* device/view.h: the sources that a view of gpuhal/view.h is made of. Each source has records of some kinds. The source
 * of this layer is a device snapshot; the part node adds others. A view only points to data that never changes, so
 * reading it needs no lock. */
#ifndef GPUHAL_DEVICE_VIEW_H
#define GPUHAL_DEVICE_VIEW_H

#include <gpuhal/view.h>

#define GPUHAL_NO_KIND UINT32_MAX

typedef struct gpuhal_view_source {
    void *state; /* NULL: no source */
    /* Counts the records of a kind; GPUHAL_NO_KIND: the source does not have it. */
    uint32_t (*count)(const void *state, gpuhal_record_kind kind);
    /* Gives the caller record `index`, which exists, by gpuhal_record_give(). */
    void (*give)(const void *state, gpuhal_record_kind kind, uint32_t index, void *out_record);
    void (*end)(void *state); /* the view is released; NULL: the state lives longer than views */
} gpuhal_view_source;

typedef enum { GPUHAL_SOURCE_DEVICES, GPUHAL_SOURCE_RECORD, GPUHAL_SOURCE_HARDWARE, GPUHAL_SOURCES } gpuhal_view_part;

struct gpuhal_view {
    uint32_t generation; /* fork generation of its creation */
    gpuhal_view_source sources[GPUHAL_SOURCES];
};

/* Makes a view without sources. NULL without memory. */
gpuhal_view *gpuhal_view_create(void);
/* Returns OK, or FORKED by the rule for forks, as gpuhal_check() does. */
gpuhal_status gpuhal_view_check(const gpuhal_view *view);
/* Copies as much of a structure as the caller's version has, and keeps the caller's size. */
void gpuhal_record_give(void *out_record, const void *record, uint32_t bytes);

/* Texts for callers are never NULL. */
static inline const char *gpuhal_text_or_empty(const char *text)
{
    return text ? text : "";
}

#endif
