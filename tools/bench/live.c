/* live.c: a hash table of names. Removing an entry leaves no tombstone, because the following entries move up. */
#include "live.h"

#include <stdlib.h>

static size_t home_of(const gpuhal_bench_live *live, gpuhal_bench_name name)
{
    uint64_t mixed = (name.number ^ name.space << 48) * UINT64_C(0x9e3779b97f4a7c15);
    mixed ^= mixed >> 32;
    return (size_t)mixed & (live->space - 1);
}

/* Returns the index of the name's entry or, if there is none, of the free entry for the name. */
static size_t place_of(const gpuhal_bench_live *live, gpuhal_bench_name name)
{
    size_t at = home_of(live, name);
    while (live->entries[at].slot != 0 &&
           (live->entries[at].name.space != name.space || live->entries[at].name.number != name.number)) {
        at = (at + 1) & (live->space - 1);
    }
    return at;
}

static bool grow(gpuhal_bench_live *live)
{
    gpuhal_bench_live grown = *live;
    grown.space = live->space > 0 ? 2 * live->space : 1024;
    grown.entries = calloc(grown.space, sizeof *grown.entries);
    if (grown.entries == NULL) {
        return false;
    }
    for (size_t i = 0; i < live->space; i++) {
        if (live->entries[i].slot != 0) {
            grown.entries[place_of(&grown, live->entries[i].name)] = live->entries[i];
        }
    }
    free(live->entries);
    *live = grown;
    return true;
}

/* Makes room for all existing slots, so that releasing a slot cannot fail. */
static bool grow_unused(gpuhal_bench_live *live)
{
    const uint32_t space = live->unused_space > 0 ? 2 * live->unused_space : 1024;
    uint32_t *grown = realloc(live->unused, space * sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    live->unused = grown;
    live->unused_space = space;
    return true;
}

uint32_t gpuhal_bench_live_add(gpuhal_bench_live *live, gpuhal_bench_name name)
{
    if (2 * live->count >= live->space && !grow(live)) {
        return UINT32_MAX;
    }
    if (live->slots == live->unused_space && !grow_unused(live)) {
        return UINT32_MAX;
    }
    const uint32_t slot = live->unused_count > 0 ? live->unused[--live->unused_count] : live->slots++;
    live->entries[place_of(live, name)] = (gpuhal_bench_live_entry){name, slot + 1};
    live->count++;
    return slot;
}

bool gpuhal_bench_live_find(const gpuhal_bench_live *live, gpuhal_bench_name name, uint32_t *out_slot)
{
    const uint32_t slot = live->space > 0 ? live->entries[place_of(live, name)].slot : 0;
    *out_slot = slot - 1;
    return slot != 0;
}

void gpuhal_bench_live_remove(gpuhal_bench_live *live, gpuhal_bench_name name)
{
    const size_t mask = live->space - 1;
    size_t hole = place_of(live, name);
    live->unused[live->unused_count++] = live->entries[hole].slot - 1;
    live->count--;
    for (size_t at = (hole + 1) & mask; live->entries[at].slot != 0; at = (at + 1) & mask) {
        /* The entry may move into the hole unless its home index is between the hole (exclusive) and its current index
         * (inclusive). */
        if (((at - home_of(live, live->entries[at].name)) & mask) >= ((at - hole) & mask)) {
            live->entries[hole] = live->entries[at];
            hole = at;
        }
    }
    live->entries[hole].slot = 0;
}

void gpuhal_bench_live_free(gpuhal_bench_live *live)
{
    free(live->entries);
    free(live->unused);
    *live = (gpuhal_bench_live){0};
}
