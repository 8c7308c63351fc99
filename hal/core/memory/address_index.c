/* memory/address_index.c: a tree of non-overlapping ranges, ordered by address.
 *
 * The ranges are the nodes, so nothing is allocated and adding cannot fail. The tree is a treap: no node has a higher
 * rank than its parent. Ranks are practically random, so the tree is about as flat as a balanced tree. */
#include "memory/address_index.h"

#include "memory/buffer.h"
#include "os/os.h"

#include <stdlib.h>

struct gpuhal_address_index {
    gpuhal_mutex mutex; /* protects `roots` and all ranges below them */
    gpuhal_address_range *roots[GPUHAL_ADDRESS_KINDS];
};

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

/* Returns the rank, a hash of the address. Addresses are multiples of large powers of two, and often ascending; the
 * product's upper bits have neither pattern. */
static uint64_t rank_of(const gpuhal_address_range *range)
{
    return range->begin * UINT64_C(0x9e3779b97f4a7c15);
}

/* Returns the link to a range that contains one of these bytes, or the link for inserting a new range. Compares
 * addresses of last bytes rather than ends, because the end of a range at the end of the address space would be 0. */
static gpuhal_address_range **place_of(gpuhal_address_range **root, uint64_t begin, uint64_t bytes)
{
    gpuhal_address_range **at = root;
    while (*at) {
        if (begin + (bytes - 1) < (*at)->begin) {
            at = &(*at)->left;
        } else if (begin > (*at)->begin + ((*at)->bytes - 1)) {
            at = &(*at)->right;
        } else {
            break;
        }
    }
    return at;
}

/* Inserts the range above all nodes with a lower rank, and splits the old subtree into the range's left and right
 * subtrees. `left` and `right` are the links for the next smaller and the next larger part. Each step moves one node to
 * its side together with the node's outer subtree. */
static void insert(gpuhal_address_range **root, gpuhal_address_range *range)
{
    const uint64_t rank = rank_of(range);
    gpuhal_address_range **at = root, **left = &range->left, **right = &range->right;
    while (*at && rank_of(*at) > rank) {
        at = range->begin < (*at)->begin ? &(*at)->left : &(*at)->right;
    }
    gpuhal_address_range *rest = *at;
    *at = range;
    while (rest) {
        if (rest->begin < range->begin) {
            *left = rest;
            left = &rest->right;
            rest = *left;
        } else {
            *right = rest;
            right = &rest->left;
            rest = *right;
        }
    }
    *left = *right = NULL;
}

/* Joins the two subtrees in place of the range. The node with the higher rank becomes the parent, so that ranks stay
 * ordered. */
static void take_out(gpuhal_address_range **root, const gpuhal_address_range *range)
{
    gpuhal_address_range **at = place_of(root, range->begin, range->bytes);
    gpuhal_address_range *left = range->left, *right = range->right;
    while (left && right) {
        if (rank_of(left) > rank_of(right)) {
            *at = left;
            at = &left->right;
            left = *at;
        } else {
            *at = right;
            at = &right->left;
            right = *at;
        }
    }
    *at = left ? left : right;
}

void gpuhal_address_index_add(gpuhal_address_index *index, gpuhal_address_range ranges[GPUHAL_ADDRESS_KINDS])
{
    gpuhal_mutex_lock(&index->mutex);
    for (int kind = 0; kind < GPUHAL_ADDRESS_KINDS; kind++) {
        gpuhal_address_range *range = &ranges[kind];
        /* Imports may overlap memory of another buffer; the buffer that was added first keeps the addresses. */
        if (range->bytes && *place_of(&index->roots[kind], range->begin, range->bytes)) {
            range->bytes = 0;
        } else if (range->bytes) {
            insert(&index->roots[kind], range);
        }
    }
    gpuhal_mutex_unlock(&index->mutex);
}

void gpuhal_address_index_remove(gpuhal_address_index *index, gpuhal_address_range ranges[GPUHAL_ADDRESS_KINDS])
{
    gpuhal_mutex_lock(&index->mutex);
    for (int kind = 0; kind < GPUHAL_ADDRESS_KINDS; kind++) {
        if (ranges[kind].bytes) {
            take_out(&index->roots[kind], &ranges[kind]);
        }
    }
    gpuhal_mutex_unlock(&index->mutex);
}

gpuhal_buffer *gpuhal_address_index_find(gpuhal_address_index *index, gpuhal_address_kind kind, uint64_t address,
                                         uint64_t *out_offset)
{
    gpuhal_mutex_lock(&index->mutex);
    gpuhal_address_range *range = *place_of(&index->roots[kind], address, 1);
    gpuhal_buffer *buffer = range && gpuhal_buffer_try_retain(range->buffer) ? range->buffer : NULL;
    *out_offset = buffer ? address - range->begin : 0;
    gpuhal_mutex_unlock(&index->mutex);
    return buffer;
}
