/* memory/address_index.c: a balanced tree (tsearch of libc) of ranges that do not overlap. Two ranges compare equal when they
 * overlap, so an address is looked up as a range of one byte. */
#include "memory/address_index.h"

#include "memory/buffer.h"
#include "os/os.h"

#include <search.h>
#include <stdlib.h>

struct gpuhal_address_index {
    gpuhal_mutex mutex; /* protects `root` and all ranges in it */
    void *root;
};

static int compare(const void *a, const void *b)
{
    const gpuhal_address_range *one = a, *other = b;
    if (one->begin + (one->bytes - 1) < other->begin) {
        return -1;
    }
    return one->begin > other->begin + (other->bytes - 1);
}

gpuhal_address_index *gpuhal_address_index_create(void)
{
    gpuhal_address_index *index = calloc(1, sizeof *index);
    if (index) {
        gpuhal_mutex_init(&index->mutex);
    }
    return index;
}

void gpuhal_address_index_destroy(gpuhal_address_index *index)
{
    if (index) {
        gpuhal_mutex_finish(&index->mutex);
        free(index);
    }
}

bool gpuhal_address_index_add(gpuhal_address_index *index, gpuhal_address_range *range)
{
    gpuhal_mutex_lock(&index->mutex);
    gpuhal_address_range **node = tsearch(range, &index->root, compare);
    bool left_out = node && *node != range;
    gpuhal_mutex_unlock(&index->mutex);
    if (left_out) {
        range->bytes = 0;
    }
    return node != NULL;
}

void gpuhal_address_index_remove(gpuhal_address_index *index, gpuhal_address_range *range)
{
    if (range->bytes == 0) {
        return;
    }
    gpuhal_mutex_lock(&index->mutex);
    tdelete(range, &index->root, compare);
    gpuhal_mutex_unlock(&index->mutex);
}

gpuhal_buffer *gpuhal_address_index_find(gpuhal_address_index *index, uint64_t address)
{
    const gpuhal_address_range wanted = {.begin = address, .bytes = 1};
    gpuhal_mutex_lock(&index->mutex);
    gpuhal_address_range **node = tfind(&wanted, &index->root, compare);
    gpuhal_buffer *buffer = node && gpuhal_buffer_try_retain((*node)->buffer) ? (*node)->buffer : NULL;
    gpuhal_mutex_unlock(&index->mutex);
    return buffer;
}
