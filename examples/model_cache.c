/* model_cache.c: serves three models with device memory for only one. A store loads a model for the first request to
 * it, and copies it to host memory when another model requires the space. For the model's next request, or earlier if
 * the program prefetches, the store copies the model back. The blocks of a conversation's history are also entries of a
 * store. One call acquires many blocks, and one call drops them. */
#include <gpuhal/gpuhal.h>
#include <gpuhal/store.h>

#include <stdio.h>
#include <string.h>

enum { MODELS = 3, REQUESTS = 12, LAYER_BYTES = 1 << 20, BLOCKS = 8, BLOCK_BYTES = 4096 };

/* Stands in for a model's file: weights and a bias. */
static const gpuhal_item_part parts[] = {{.name = "weights", .bytes = LAYER_BYTES}, {.name = "bias", .bytes = 4096}};

/* Called once for each model, on the thread of the first request. A real program calls gpuhal_read_file() with the
 * queue. */
static gpuhal_status load_model(void *user, gpuhal_queue *queue, gpuhal_item *item)
{
    const uint32_t number = *(const uint32_t *)user;
    printf("  loading model %u\n", number);
    gpuhal_status status = gpuhal_fill(queue, gpuhal_item_buffer(item, "weights"), 0, LAYER_BYTES, 16 + number, 4);
    return status ? status : gpuhal_fill(queue, gpuhal_item_buffer(item, "bias"), 0, 4096, 32 + number, 4);
}

static gpuhal_status load_block(void *user, gpuhal_queue *queue, gpuhal_item *item)
{
    return gpuhal_fill(queue, gpuhal_item_buffer(item, NULL), 0, BLOCK_BYTES, *(const uint32_t *)user, 4);
}

static const char history[] = "block ";

/* Acquires all blocks or none. The blocks have a higher priority than models, because every request needs them, so
 * models are evicted first. */
static gpuhal_status look_back(gpuhal_store *store, gpuhal_queue *queue)
{
    static uint32_t numbers[BLOCKS];
    static char names[BLOCKS][16];
    gpuhal_item_desc descs[BLOCKS];
    gpuhal_store_key keys[BLOCKS];
    gpuhal_item *items[BLOCKS];
    uint32_t words[BLOCKS], wrong = 0;
    for (uint32_t i = 0; i < BLOCKS; i++) {
        numbers[i] = i;
        descs[i] = (gpuhal_item_desc){
            .size = sizeof descs[i], .bytes = BLOCK_BYTES, .priority = 1, .load = load_block, .user = &numbers[i]};
        snprintf(names[i], sizeof names[i], "%s%u", history, i);
        keys[i] = (gpuhal_store_key){.key = names[i], .key_bytes = strlen(names[i]), .desc = &descs[i]};
    }
    gpuhal_status status = gpuhal_store_acquire_many(store, queue, keys, BLOCKS, 0, UINT64_MAX, items);
    for (uint32_t i = 0; i < BLOCKS && !status; i++) {
        status = gpuhal_read(queue, &words[i], gpuhal_item_buffer(items[i], NULL), 0, 4);
    }
    gpuhal_item_release_many(items, BLOCKS, queue);
    status = status ? status : gpuhal_queue_synchronize(queue, UINT64_MAX);
    for (uint32_t i = 0; i < BLOCKS && !status; i++) {
        wrong += words[i] != i;
    }
    printf("  %d blocks of the history%s\n", BLOCKS, wrong ? ", some of them WRONG" : "");
    return status ? status : wrong ? GPUHAL_ERROR_DRIVER : GPUHAL_OK;
}

/* Serves a request by reading from the model. Another model can use the memory only after the item is released. */
static gpuhal_status serve(gpuhal_store *store, gpuhal_queue *queue, uint32_t number)
{
    char key[32];
    uint32_t word = 0;
    gpuhal_item *item = NULL;
    const gpuhal_item_desc desc = {.size = sizeof desc,
                                   /* faster to restore from host memory than from the file */
                                   .flags = GPUHAL_ITEM_KEEP_COPY,
                                   .parts = parts,
                                   .part_count = 2,
                                   .load = load_model,
                                   .user = &number};
    snprintf(key, sizeof key, "model %u", number);
    gpuhal_status status = gpuhal_store_acquire(store, queue, key, strlen(key), &desc, 0, UINT64_MAX, &item);
    if (status) {
        return status;
    }
    status = gpuhal_read(queue, &word, gpuhal_item_buffer(item, "weights"), LAYER_BYTES - 4, 4);
    gpuhal_item_release(item, queue);
    status = status ? status : gpuhal_queue_synchronize(queue, UINT64_MAX);
    printf("  model %u served%s\n", number, status || word == 16 + number ? "" : ", with WRONG weights");
    return status ? status : word == 16 + number ? GPUHAL_OK : GPUHAL_ERROR_DRIVER;
}

/* Prefetches the model of the next request. If the model was loaded before, it is restored now instead of at its
 * request. */
static gpuhal_status look_ahead(gpuhal_store *store, gpuhal_queue *queue, uint32_t number)
{
    char key[32];
    gpuhal_store_entry entry = {.size = sizeof entry};
    snprintf(key, sizeof key, "model %u", number);
    const gpuhal_status status = gpuhal_store_describe(store, key, strlen(key), &entry);
    if (status || (entry.tiers & GPUHAL_TIER_DEVICE)) {
        return status == GPUHAL_ERROR_NOT_FOUND ? GPUHAL_OK : status; /* never loaded: the request loads it */
    }
    printf("  model %u comes back\n", number);
    return gpuhal_store_prefetch(store, queue, key, strlen(key), UINT64_MAX);
}

static int32_t print_entry(void *user, const void *key, uint64_t key_bytes, const gpuhal_store_entry *entry)
{
    uint32_t word = 0;
    const gpuhal_status status =
        gpuhal_store_read(user, key, key_bytes, "weights", 0, &word, sizeof word, UINT64_MAX); /* reads from any tier */
    printf("%.*s: %llu bytes%s%s; its weights begin with %u\n", (int)key_bytes, (const char *)key,
           (unsigned long long)entry->bytes, entry->tiers & GPUHAL_TIER_DEVICE ? ", on the device" : "",
           entry->tiers & GPUHAL_TIER_HOST ? ", in host memory" : "", word);
    return status;
}

int main(void)
{
    static const uint32_t requests[REQUESTS] = {0, 1, 2, 0, 0, 1, 2, 2, 1, 0, 1, 2};
    const gpuhal_store_desc desc = {.size = sizeof desc,
                                    .device_bytes = LAYER_BYTES + 4096 + BLOCKS * BLOCK_BYTES,
                                    .host_bytes = MODELS * (LAYER_BYTES + 8192)};
    gpuhal *gpu = NULL;
    gpuhal_device *device = NULL;
    gpuhal_queue *queue = NULL;
    gpuhal_pool *pool = NULL;
    gpuhal_store *store = NULL;
    uint64_t freed = 0, trimmed = 0, dropped = 0;
    gpuhal_store_statistics counts = {.size = sizeof counts};

    int failed = gpuhal_open(NULL, &gpu) || gpuhal_select(gpu, "auto", 0, &device, NULL) ||
                 gpuhal_queue_create(device, NULL, &queue) || gpuhal_pool_create(device, NULL, &pool) ||
                 gpuhal_store_create(pool, &desc, &store);
    for (int i = 0; i < REQUESTS && !failed; i++) {
        failed = look_back(store, queue) || serve(store, queue, requests[i]) ||
                 (i + 1 < REQUESTS && look_ahead(store, queue, requests[i + 1])) ||
                 gpuhal_maintain(gpu, 4); /* every fourth request; releases memory that other programs lack */
    }
    /* The conversation has ended. Uses the pause to compact the remaining memory and to release segments for other
     * programs. */
    failed = failed || gpuhal_store_clear(store, history, strlen(history), &dropped) ||
             gpuhal_store_list(store, NULL, 0, print_entry, store) || gpuhal_store_compact(store, UINT64_MAX, &freed) ||
             gpuhal_trim(gpu, 0, &trimmed);
    if (failed || gpuhal_store_get_statistics(store, &counts)) {
        fprintf(stderr, "model_cache: %s\n", gpuhal_last_error()->sentence);
    } else {
        printf(
            "%s: %d requests, %llu loads, %llu from host memory, %llu at once; %llu blocks dropped; %llu bytes given "
            "back in a pause\n",
            gpuhal_device_id(device), REQUESTS, (unsigned long long)counts.loads, (unsigned long long)counts.restores,
            (unsigned long long)counts.hits, (unsigned long long)dropped, (unsigned long long)(freed + trimmed));
    }

    gpuhal_store_destroy(store);
    gpuhal_pool_destroy(pool);
    gpuhal_queue_destroy(queue);
    gpuhal_close(gpu);
    return failed ? 1 : 0;
}
