/* store/index.c: a hash table of entries by key. */
#include "store/store.h"

#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROWS = 64 };

bool gpuhal_index_init(gpuhal_store *store)
{
    store->rows = calloc(FIRST_ROWS, sizeof *store->rows);
    store->row_mask = FIRST_ROWS - 1;
    return store->rows != NULL;
}

void gpuhal_index_finish(gpuhal_store *store)
{
    free(store->rows);
}

/* Hashes eight bytes at a time. Each step mixes the upper half into the lower half, which selects the row. */
uint64_t gpuhal_key_hash(const void *key, uint64_t bytes)
{
    const unsigned char *at = key;
    uint64_t hash = bytes, word = 0;
    for (; bytes > 0; bytes -= bytes < sizeof word ? bytes : sizeof word, at += sizeof word) {
        word = 0;
        memcpy(&word, at, bytes < sizeof word ? (size_t)bytes : sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return hash;
}

gpuhal_entry *gpuhal_index_find(const gpuhal_store *store, const void *key, uint64_t bytes, uint64_t hash)
{
    gpuhal_entry *entry = store->rows[hash & store->row_mask];
    while (entry && (entry->hash != hash || entry->key_bytes != bytes || memcmp(entry->key, key, (size_t)bytes) != 0)) {
        entry = entry->next;
    }
    return entry;
}

static void insert(gpuhal_store *store, gpuhal_entry *entry)
{
    gpuhal_entry **row = &store->rows[entry->hash & store->row_mask];
    entry->next = *row;
    *row = entry;
}

/* If host memory is short, keeps the table, so its rows become longer. */
static void grow(gpuhal_store *store)
{
    gpuhal_entry **old = store->rows;
    const uint64_t count = store->row_mask + 1;
    gpuhal_entry **rows = calloc(2 * (size_t)count, sizeof *rows);
    if (!rows) {
        return;
    }
    store->rows = rows;
    store->row_mask = 2 * count - 1;
    for (uint64_t row = 0; row < count; row++) {
        for (gpuhal_entry *entry = old[row], *next; entry; entry = next) {
            next = entry->next;
            insert(store, entry);
        }
    }
    free(old);
}

void gpuhal_index_add(gpuhal_store *store, gpuhal_entry *entry)
{
    if (store->entry_count > store->row_mask) {
        grow(store);
    }
    insert(store, entry);
    entry->listed = true;
    store->entry_count++;
}

void gpuhal_index_remove(gpuhal_store *store, gpuhal_entry *entry)
{
    gpuhal_entry **link = &store->rows[entry->hash & store->row_mask];
    while (*link != entry) {
        link = &(*link)->next;
    }
    *link = entry->next;
    entry->listed = false;
    store->entry_count--;
}

bool gpuhal_key_begins(const gpuhal_entry *entry, const void *prefix, uint64_t bytes)
{
    return entry->key_bytes >= bytes && (bytes == 0 || memcmp(entry->key, prefix, (size_t)bytes) == 0);
}

const char *gpuhal_key_text(const void *key, uint64_t bytes, char text[GPUHAL_KEY_TEXT])
{
    const unsigned char *at = key;
    size_t length = 0;
    uint64_t i = 0;
    for (; i < bytes && length + sizeof "\\xNN..." <= GPUHAL_KEY_TEXT; i++) {
        bool plain = at[i] >= ' ' && at[i] <= '~' && at[i] != '\\' && at[i] != '"';
        length += (size_t)snprintf(text + length, GPUHAL_KEY_TEXT - length, plain ? "%c" : "\\x%02x", at[i]);
    }
    snprintf(text + length, GPUHAL_KEY_TEXT - length, "%s", i < bytes ? "..." : "");
    return text;
}

gpuhal_status gpuhal_store_check(const char *call, const gpuhal_store *store, const void *key, uint64_t key_bytes)
{
    if (!store || !key || key_bytes == 0 || key_bytes > GPUHAL_KEY_BYTES_MAX) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "%s: store or key is NULL, or the key has %" PRIu64 " bytes, not from 1 to %d", call,
                                key_bytes, GPUHAL_KEY_BYTES_MAX);
    }
    return gpuhal_check(store->device->gpu);
}

gpuhal_status gpuhal_store_not_found(const char *call, const void *key, uint64_t key_bytes)
{
    char text[GPUHAL_KEY_TEXT];
    return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "%s: there is no entry \"%s\"", call,
                            gpuhal_key_text(key, key_bytes, text));
}
