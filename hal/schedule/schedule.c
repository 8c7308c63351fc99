/* schedule/schedule.c: attaches leases and strategies to a gpuhal object. */
#include "schedule/leases.h"
#include "schedule/strategy.h"

#include <stdlib.h>

static void destroy(void *state)
{
    gpuhal_schedule *own = state;
    if (own) {
        gpuhal_leases_destroy(own->leases);
        gpuhal_strategies_destroy(own->strategies);
        free(own);
    }
}

static void *create(void)
{
    gpuhal_schedule *own = calloc(1, sizeof *own);
    if (own) {
        own->leases = gpuhal_leases_create();
        own->strategies = gpuhal_strategies_create();
        if (!own->leases || !own->strategies) {
            destroy(own);
            return NULL;
        }
    }
    return own;
}

const gpuhal_attachment gpuhal_schedule_attachment = {
    .create = create, .opened = gpuhal_leases_adopt, .end = gpuhal_leases_end, .destroy = destroy};
