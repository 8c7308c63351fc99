/* queue/states.c: see states.h. */
#include "queue/states.h"

#include <stddef.h>

static const struct {
    gpuhal_queue_state from, to;
} changes[] = {
#define STATE(region, name, meaning)
#define CHANGE(from, to, reason) {GPUHAL_QUEUE_##from, GPUHAL_QUEUE_##to},
#define PLACE(name, who, until)
#include "queue/states.inc"
};

void gpuhal_queue_check_change(gpuhal_queue_state from, gpuhal_queue_state to)
{
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        if (changes[i].from == from && changes[i].to == to) {
            return;
        }
    }
    __builtin_trap();
}
