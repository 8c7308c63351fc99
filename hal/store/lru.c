/* store/lru.c: least-recently-used lists of the entries that can leave a tier, one list per priority. Entries contain
 * their links, so the cost of a use does not depend on the number of entries. */
#include "store/store.h"

static uint32_t class_of(const gpuhal_entry *entry)
{
    return (uint32_t)(entry->priority + GPUHAL_ITEM_PRIORITY_MAX);
}

void gpuhal_entry_append(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_order list)
{
    gpuhal_entry_lists *lists = &store->lists[list];
    gpuhal_entry_link *link = &entry->links[list];
    const uint32_t class = class_of(entry);
    gpuhal_entry_unlink(store, entry, list);
    link->older = lists->newest[class];
    link->newer = NULL;
    *(link->older ? &link->older->links[list].newer : &lists->oldest[class]) = entry;
    lists->newest[class] = entry;
    link->in_list = true;
    link->stamp = ++store->stamps;
}

/* Searches for the position from the oldest entry on, because mostly old entries are returned. */
void gpuhal_entry_return(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_order list)
{
    gpuhal_entry_lists *lists = &store->lists[list];
    gpuhal_entry_link *link = &entry->links[list];
    const uint32_t class = class_of(entry);
    gpuhal_entry *older = NULL, *newer = lists->oldest[class];
    while (newer && newer->links[list].stamp < link->stamp) {
        older = newer;
        newer = newer->links[list].newer;
    }
    link->older = older;
    link->newer = newer;
    *(older ? &older->links[list].newer : &lists->oldest[class]) = entry;
    *(newer ? &newer->links[list].older : &lists->newest[class]) = entry;
    link->in_list = true;
}

void gpuhal_entry_unlink(gpuhal_store *store, gpuhal_entry *entry, gpuhal_entry_order list)
{
    gpuhal_entry_lists *lists = &store->lists[list];
    gpuhal_entry_link *link = &entry->links[list];
    const uint32_t class = class_of(entry);
    if (link->in_list) {
        *(link->older ? &link->older->links[list].newer : &lists->oldest[class]) = link->newer;
        *(link->newer ? &link->newer->links[list].older : &lists->newest[class]) = link->older;
        link->in_list = false;
    }
}

gpuhal_entry *gpuhal_entry_next(gpuhal_store *store, gpuhal_entry_order list, uint64_t attempt,
                                gpuhal_entry_filter *filter, const void *user)
{
    gpuhal_entry *entry = NULL;
    for (uint32_t class = 0; class < GPUHAL_STORE_CLASSES && !entry; class ++) {
        entry = store->lists[list].oldest[class];
        while (entry && (entry->links[list].attempt >= attempt || !filter(store, entry, user))) {
            entry = entry->links[list].newer;
        }
    }
    if (entry) {
        entry->links[list].attempt = attempt;
    }
    return entry;
}
