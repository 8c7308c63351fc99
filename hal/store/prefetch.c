/* store/prefetch.c: restores an entry before it is used. */
#include "store/store.h"

gpuhal_status gpuhal_store_prefetch(gpuhal_store *store, gpuhal_queue *queue, const void *key, uint64_t key_bytes,
                                    uint64_t timeout_ns)
{
    gpuhal_item *item = NULL;
    gpuhal_status status = gpuhal_store_acquire(store, queue, key, key_bytes, NULL, 0, timeout_ns, &item);
    gpuhal_item_release(item, queue);
    return status;
}
