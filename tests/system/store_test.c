/* Tests stores on every device of this machine. Each store contains three times as many bytes as it may keep in device
 * memory. Every byte must be unchanged after it was evicted to host memory and to the file. */
#include "queues.h"

#include <gpuhal/store.h>

enum { ENTRIES = 24, ROUNDS = 4, WORDS = 20000, BYTES = 4 * WORDS, LIMIT = 8 * BYTES };
static const char *const selectors[] = {"cpu:0", "opencl:0", "opencl:1", "vulkan:0"};

static uint32_t word_of(uint32_t key, uint32_t version, uint32_t i)
{
    return (key * 7919 + version * 104729 + i) * UINT32_C(2654435761);
}

static void use(gpuhal_store *store, gpuhal_queue *queue, uint32_t key, uint32_t *version)
{
    static uint32_t words[WORDS];
    gpuhal_item *item = NULL;
    const bool modifies = (key + *version) % 2;
    assert_ok(gpuhal_store_acquire(store, queue, &key, sizeof key, NULL, modifies ? GPUHAL_ACQUIRE_MODIFY : 0,
                                   PATIENCE_NS, &item));
    gpuhal_buffer *buffer = gpuhal_item_buffer(item, NULL);
    assert_ok(gpuhal_read(queue, words, buffer, 0, BYTES));
    if (queue) {
        assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    }
    for (uint32_t i = 0; i < WORDS; i++) {
        assert_int_equal(words[i], word_of(key, *version, i));
    }
    *version += modifies;
    for (uint32_t i = 0; i < WORDS && modifies; i++) {
        words[i] = word_of(key, *version, i);
    }
    assert_ok(modifies ? gpuhal_write(queue, buffer, 0, words, BYTES) : GPUHAL_OK);
    gpuhal_item_release(item, queue);
    if (queue) {
        assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS)); /* `words` is reused */
    }
}

static void run_on(gpuhal_device *device, const char *folder)
{
    const gpuhal_pool_desc pool_desc = {.size = sizeof pool_desc, .limit_bytes = 3 * LIMIT, .segment_bytes = LIMIT};
    const gpuhal_store_desc desc = {
        .size = sizeof desc, .device_bytes = LIMIT, .host_bytes = LIMIT, .folder = folder};
    const gpuhal_item_desc item_desc = {.size = sizeof item_desc, .bytes = BYTES};
    gpuhal_pool *pool = NULL;
    gpuhal_store *store = NULL;
    gpuhal_queue *queues[] = {queue_or_fail(device, 0), queue_or_fail(device, 0), NULL};
    static uint32_t words[WORDS];
    uint32_t versions[ENTRIES] = {0};
    assert_ok(gpuhal_pool_create(device, &pool_desc, &pool));
    assert_ok(gpuhal_store_create(pool, &desc, &store));
    for (uint32_t key = 0; key < ENTRIES; key++) {
        gpuhal_item *item = NULL;
        assert_ok(gpuhal_store_put(store, NULL, &key, sizeof key, &item_desc, PATIENCE_NS, &item));
        for (uint32_t i = 0; i < WORDS; i++) {
            words[i] = word_of(key, 0, i);
        }
        assert_ok(gpuhal_write(NULL, gpuhal_item_buffer(item, NULL), 0, words, BYTES));
        gpuhal_item_release(item, NULL);
    }
    for (uint32_t step = 0; step < ROUNDS * ENTRIES; step++) {
        const uint32_t key = step * 5 % ENTRIES;
        use(store, queues[step % 3], key, &versions[key]);
    }
    gpuhal_store_statistics counts = {.size = sizeof counts};
    assert_ok(gpuhal_store_get_statistics(store, &counts));
    assert_int_equal(counts.entries, ENTRIES);
    assert_true(counts.device.bytes <= LIMIT && counts.host.bytes <= LIMIT);
    assert_true(counts.file.entries >= ENTRIES / 3);
    printf("%s: %llu spills, %llu restores\n", gpuhal_device_id(device), (unsigned long long)counts.spills,
           (unsigned long long)counts.restores);
    gpuhal_store_destroy(store);
    gpuhal_queue_destroy(queues[0]);
    gpuhal_queue_destroy(queues[1]);
    gpuhal_pool_destroy(pool);
}

TEST(three_times_the_limit_of_device_memory_keeps_every_byte)
{
    char folder[] = "/tmp/gpuhal-store-XXXXXX";
    gpuhal *gpu = open_or_fail(NULL);
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof selectors / sizeof *selectors; i++) {
        gpuhal_device *device = find(gpu, selectors[i]);
        if (device) {
            run_on(device, folder);
        }
    }
    gpuhal_close(gpu);
    assert_int_equal(rmdir(folder), 0);
}

/* ---- fragmented memory */

enum { SMALL = 128 << 10, LARGE = 160 * SMALL, SMALLS = 65 };

static void fill_small(gpuhal_store *store, gpuhal_queue *queue, uint32_t key)
{
    const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = SMALL};
    gpuhal_item *item = NULL;
    assert_ok(gpuhal_store_put(store, queue, &key, sizeof key, &desc, PATIENCE_NS, &item));
    assert_ok(gpuhal_fill(queue, gpuhal_item_buffer(item, NULL), 0, SMALL, word_of(key, 0, 0), 4));
    gpuhal_item_release(item, queue);
}

static void expect_small(gpuhal_store *store, uint32_t key)
{
    static uint32_t words[SMALL / 4];
    gpuhal_store_entry entry = {.size = sizeof entry};
    gpuhal_item *item = NULL;
    assert_ok(gpuhal_store_describe(store, &key, sizeof key, &entry));
    assert_int_equal(entry.tiers, GPUHAL_TIER_DEVICE);
    assert_ok(gpuhal_store_acquire(store, NULL, &key, sizeof key, NULL, 0, PATIENCE_NS, &item));
    assert_ok(gpuhal_read(NULL, words, gpuhal_item_buffer(item, NULL), 0, SMALL));
    for (uint32_t i = 0; i < SMALL / 4; i++) {
        assert_int_equal(words[i], word_of(key, 0, 0));
    }
    gpuhal_item_release(item, NULL);
}

/* Simulates pytorch#35901 at an eighth of its size. A large buffer is released, small buffers take its place, and
 * another large buffer is requested. Enough memory is free, but it is not contiguous. The large request is first a
 * buffer, then an entry of a store. */
static void compact_on(gpuhal_device *device, gpuhal_queue *queue, bool as_entry)
{
    const gpuhal_pool_desc pool_desc = {
        .size = sizeof pool_desc, .limit_bytes = 256 * (uint64_t)SMALL, .segment_bytes = 64 * (uint64_t)SMALL};
    const gpuhal_store_desc desc = {.size = sizeof desc, .host_bytes = UINT64_MAX};
    const gpuhal_item_desc item_desc = {.size = sizeof item_desc, .bytes = LARGE};
    gpuhal_store_statistics counts = {.size = sizeof counts};
    gpuhal_pool *pool = NULL;
    gpuhal_store *store = NULL;
    gpuhal_buffer *large = NULL;
    gpuhal_item *item = NULL;
    assert_ok(gpuhal_pool_create(device, &pool_desc, &pool));
    assert_ok(gpuhal_store_create(pool, &desc, &store));
    assert_ok(gpuhal_pool_allocate(pool, queue, LARGE, 0, 0, &large));
    gpuhal_buffer_release(large);
    large = NULL;
    for (uint32_t key = 0; key < SMALLS; key++) {
        fill_small(store, queue, key);
    }
    if (as_entry) {
        assert_ok(gpuhal_store_put(store, queue, "large", 5, &item_desc, PATIENCE_NS, &item));
    } else {
        assert_ok(gpuhal_pool_allocate(pool, queue, LARGE, 0, PATIENCE_NS, &large));
    }
    for (uint32_t key = 0; key < SMALLS; key++) {
        expect_small(store, key);
    }
    assert_ok(gpuhal_store_get_statistics(store, &counts));
    assert_int_equal(counts.evictions, 0);
    assert_int_equal(counts.spills, 0);
    assert_true(counts.moves > 0);
    gpuhal_item_release(item, queue);
    gpuhal_buffer_release(large);
    gpuhal_store_destroy(store);
    gpuhal_pool_destroy(pool);
}

TEST(a_large_buffer_finds_room_between_entries_that_stay_in_device_memory)
{
    gpuhal *gpu = open_or_fail(NULL);
    for (size_t i = 0; i < sizeof selectors / sizeof *selectors; i++) {
        gpuhal_device *device = find(gpu, selectors[i]);
        for (int round = 0; round < 4 && device; round++) {
            gpuhal_queue *queue = round % 2 ? queue_or_fail(device, 0) : NULL;
            compact_on(device, queue, round / 2);
            gpuhal_queue_destroy(queue);
        }
    }
    gpuhal_close(gpu);
}

#include "test_main.h"
