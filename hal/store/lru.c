/* store/lru.c: entries by use: one list for each priority, with links in the entries, so that using one costs the same
 * however many there are. */
#include "store/store.h"

static uint32_t class_of(const gpuhal_entry *entry)
{
    return (uint32_t)(entry->priority + GPUHAL_ITEM_PRIORITY_MAX);
}

void gpuhal_entry_append(gpuhal_store *store, gpuhal_entry *entry)
{
    gpuhal_entry_lists *lists = &store->unpinned;
    const uint32_t class = class_of(entry);
    entry->older = lists->newest[class];
    entry->newer = NULL;
    *(entry->older ? &entry->older->newer : &lists->oldest[class]) = entry;
    lists->newest[class] = entry;
    entry->in_list = true;
}

void gpuhal_entry_unlink(gpuhal_store *store, gpuhal_entry *entry)
{
    gpuhal_entry_lists *lists = &store->unpinned;
    const uint32_t class = class_of(entry);
    if (!entry->in_list) {
        return;
    }
    *(entry->older ? &entry->older->newer : &lists->oldest[class]) = entry->newer;
    *(entry->newer ? &entry->newer->older : &lists->newest[class]) = entry->older;
    entry->in_list = false;
}

gpuhal_entry *gpuhal_entry_oldest(const gpuhal_store *store, uint64_t attempt)
{
    gpuhal_entry *entry = NULL;
    for (uint32_t class = 0; class < GPUHAL_STORE_CLASSES && !entry; class++) {
        entry = store->unpinned.oldest[class];
        while (entry && entry->attempt == attempt) {
            entry = entry->newer;
        }
    }
    return entry;
}
