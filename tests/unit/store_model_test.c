/* Stores with all tiers, compared with a model that knows the contents of every entry. The work is random, from a seed.
 * A second test uses eight threads. GPUHAL_TEST_STORE_STEPS sets the number of steps of each test. */
#include "store_support.h"

#include <pthread.h>
#include <unistd.h>

enum { KEYS = 24, STEPS = 4000, MOST_BYTES = 40000, QUEUES = 2, THREADS = 8 };

static uint64_t steps_wanted(void)
{
    const char *text = getenv("GPUHAL_TEST_STORE_STEPS");
    return text ? strtoull(text, NULL, 10) : STEPS;
}

typedef struct known {
    bool exists, reloadable;
    uint32_t bytes, pattern;
} known;

typedef struct model {
    store_fixture f;
    gpuhal_queue *queues[QUEUES];
    known entries[KEYS];
    uint64_t random;
    uint32_t patterns;
} model;

static uint32_t below(uint64_t *random, uint32_t end)
{
    *random ^= *random << 13, *random ^= *random >> 7, *random ^= *random << 17;
    return (uint32_t)((*random * UINT64_C(0x2545f4914f6cdd1d)) >> 33) % end;
}

static gpuhal_queue *any_queue(model *m)
{
    const uint32_t choice = below(&m->random, QUEUES + 1);
    return choice < QUEUES ? m->queues[choice] : NULL;
}

static void expect_pattern(const unsigned char *got, uint32_t bytes, uint32_t pattern)
{
    for (uint32_t i = 0; i < bytes; i++) {
        assert_int_equal(got[i], pattern & 0xff);
    }
}

static gpuhal_status load_pattern(void *user, gpuhal_queue *queue, gpuhal_item *item)
{
    const known *entry = user;
    gpuhal_buffer *buffer = gpuhal_item_buffer(item, NULL);
    return gpuhal_fill(queue, buffer, 0, gpuhal_buffer_bytes(buffer), entry->pattern, 1);
}

static void put_entry(model *m, uint32_t key)
{
    known *entry = &m->entries[key];
    gpuhal_queue *queue = any_queue(m);
    const known fresh = {.exists = true, .bytes = 1 + below(&m->random, MOST_BYTES), .pattern = ++m->patterns};
    const gpuhal_item_desc desc = {
        .size = sizeof desc, .bytes = fresh.bytes, .priority = (int32_t)below(&m->random, 3) - 1};
    gpuhal_item *item = NULL;
    gpuhal_status status = gpuhal_store_put(m->f.store, queue, &key, sizeof key, &desc, PATIENCE_NS, &item);
    if (entry->exists && !entry->reloadable) {
        assert_int_equal(status, GPUHAL_ERROR_BUSY);
        return;
    }
    if (entry->exists && status == GPUHAL_ERROR_BUSY) { /* the store still has the entry */
        return;
    }
    assert_ok(status);
    assert_ok(gpuhal_fill(queue, gpuhal_item_buffer(item, NULL), 0, fresh.bytes, fresh.pattern, 1));
    gpuhal_item_release(item, queue);
    *entry = fresh;
}

static void read_item(gpuhal_queue *queue, gpuhal_item *item, const known *entry)
{
    static unsigned char got[MOST_BYTES];
    gpuhal_buffer *buffer = gpuhal_item_buffer(item, NULL);
    assert_int_equal(gpuhal_buffer_bytes(buffer), entry->bytes);
    assert_ok(gpuhal_read(queue, got, buffer, 0, entry->bytes));
    if (queue) {
        assert_ok(gpuhal_queue_synchronize(queue, PATIENCE_NS));
    }
    expect_pattern(got, entry->bytes, entry->pattern);
}

static void acquire_entry(model *m, uint32_t key)
{
    known *entry = &m->entries[key];
    gpuhal_queue *queue = any_queue(m);
    gpuhal_item *item = NULL;
    const bool loads = below(&m->random, 3) == 0, modifies = below(&m->random, 4) == 0;
    known fresh = {.exists = true, .reloadable = true, .bytes = 1 + below(&m->random, MOST_BYTES),
                   .pattern = ++m->patterns};
    const known *from = entry->exists ? entry : &fresh; /* a loader always produces the same bytes */
    const gpuhal_item_desc desc = {.size = sizeof desc,
                                   .bytes = from->bytes,
                                   .flags = below(&m->random, 2) ? GPUHAL_ITEM_KEEP_COPY : 0,
                                   .load = load_pattern,
                                   .user = (void *)from};
    gpuhal_status status = gpuhal_store_acquire(m->f.store, queue, &key, sizeof key, loads ? &desc : NULL,
                                                modifies ? GPUHAL_ACQUIRE_MODIFY : 0, PATIENCE_NS, &item);
    if (!loads && (!entry->exists || entry->reloadable) && status == GPUHAL_ERROR_NOT_FOUND) {
        entry->exists = false;
        return;
    }
    assert_ok(status);
    *entry = *from;
    read_item(queue, item, entry);
    if (modifies) {
        entry->pattern = ++m->patterns;
        entry->reloadable = false;
        assert_ok(gpuhal_fill(queue, gpuhal_item_buffer(item, NULL), 0, entry->bytes, entry->pattern, 1));
    }
    gpuhal_item_release(item, queue);
}

static void look_entry(model *m, uint32_t key)
{
    known *entry = &m->entries[key];
    unsigned char got[64];
    const uint32_t bytes = entry->bytes < sizeof got ? entry->bytes : (uint32_t)sizeof got;
    gpuhal_status status = below(&m->random, 2)
                               ? gpuhal_store_prefetch(m->f.store, any_queue(m), &key, sizeof key, PATIENCE_NS)
                               : GPUHAL_NOT_READY;
    if (status == GPUHAL_NOT_READY) {
        const uint64_t offset = entry->exists ? below(&m->random, entry->bytes - bytes + 1) : 0;
        status = gpuhal_store_read(m->f.store, &key, sizeof key, NULL, offset, got, bytes, PATIENCE_NS);
        if (!status && entry->exists) {
            expect_pattern(got, bytes, entry->pattern);
        }
    }
    if (status == GPUHAL_ERROR_NOT_FOUND) {
        assert_true(!entry->exists || entry->reloadable);
        entry->exists = false;
    } else {
        assert_ok(status);
    }
}

static void drop_entry(model *m, uint32_t key)
{
    gpuhal_status status = gpuhal_store_drop(m->f.store, &key, sizeof key);
    assert_true(status == GPUHAL_OK || !m->entries[key].exists || m->entries[key].reloadable);
    m->entries[key].exists = false;
}

static void check_counts(const model *m)
{
    const gpuhal_store_statistics counts = counts_of(m->f.store);
    uint64_t least = 0;
    for (uint32_t key = 0; key < KEYS; key++) {
        least += m->entries[key].exists && !m->entries[key].reloadable;
    }
    assert_true(counts.entries >= least && counts.entries <= KEYS);
    assert_int_equal(counts.pinned, 0);
    assert_true(counts.device.bytes <= 3 * MOST_BYTES && counts.host.bytes <= 3 * MOST_BYTES);
    assert_true(counts.device.entries + counts.host.entries + counts.file.entries >= counts.entries);
}

TEST(random_work_finds_every_byte_as_the_model_has_it)
{
    char folder[] = "/tmp/gpuhal-store-XXXXXX";
    assert_non_null(mkdtemp(folder));
    model m = {.f = store_or_fail((gpuhal_store_desc){.device_bytes = 3 * MOST_BYTES,
                                                      .host_bytes = 3 * MOST_BYTES,
                                                      .folder = folder},
                                  0),
               .random = 1};
    for (uint32_t i = 0; i < QUEUES; i++) {
        m.queues[i] = queue_or_fail(m.f.gpu);
    }
    const uint64_t steps = steps_wanted();
    for (uint64_t step = 0; step < steps; step++) {
        const uint32_t key = below(&m.random, KEYS), choice = below(&m.random, 20);
        if (choice < 5) {
            put_entry(&m, key);
        } else if (choice < 14) {
            acquire_entry(&m, key);
        } else if (choice < 18) {
            look_entry(&m, key);
        } else {
            drop_entry(&m, key);
        }
        if (step % 64 == 0) {
            assert_ok(gpuhal_store_compact(m.f.store, PATIENCE_NS, NULL));
            check_counts(&m);
        }
    }
    const gpuhal_store_statistics counts = counts_of(m.f.store);
    assert_true(counts.spills > 0 && counts.restores > 0 && counts.loads > 0 && counts.file.entries > 0);
    for (uint32_t i = 0; i < QUEUES; i++) {
        gpuhal_queue_destroy(m.queues[i]);
    }
    close_store(&m.f);
    assert_int_equal(rmdir(folder), 0);
}

/* ---- threads */

/* Every word of an entry contains the number of the entry's key and a version. The thread that writes the words holds
 * the key's lock. */
typedef struct shared {
    store_fixture f;
    pthread_rwlock_t locks[KEYS];
    uint64_t steps;
    _Atomic uint32_t versions;
} shared;

typedef struct worker {
    shared *all;
    gpuhal_queue *queue;
    uint64_t random;
} worker;

enum { WORDS = 2000 };

/* Can be called on any thread. A failed cmocka assertion calls longjmp(), which is only allowed on the test's
 * thread. */
static void must(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "%s: %s\n", what, gpuhal_last_error()->sentence);
        abort();
    }
}

static gpuhal_status load_key(void *user, gpuhal_queue *queue, gpuhal_item *item)
{
    return gpuhal_fill(queue, gpuhal_item_buffer(item, NULL), 0, WORDS * 4, *(const uint32_t *)user << 24, 4);
}

static void use_key(worker *w, uint32_t key, bool modifies)
{
    shared *all = w->all;
    uint32_t got[WORDS];
    gpuhal_queue *queue = below(&w->random, 2) ? w->queue : NULL;
    const gpuhal_item_desc desc = {
        .size = sizeof desc, .bytes = sizeof got, .load = load_key, .user = &key, .flags = key % 2};
    gpuhal_item *item = NULL;
    const gpuhal_status status =
        gpuhal_store_acquire(all->f.store, queue, &key, sizeof key, &desc, modifies ? GPUHAL_ACQUIRE_MODIFY : 0,
                             PATIENCE_NS, &item);
    must(status == GPUHAL_OK, "acquiring");
    must(gpuhal_read(queue, got, gpuhal_item_buffer(item, NULL), 0, sizeof got) == GPUHAL_OK, "reading");
    if (modifies) {
        const uint32_t word = key << 24 | (atomic_fetch_add(&all->versions, 1) & 0xffffff);
        must(gpuhal_fill(queue, gpuhal_item_buffer(item, NULL), 0, sizeof got, word, 4) == GPUHAL_OK, "filling");
    }
    gpuhal_item_release(item, queue);
    must(!queue || gpuhal_queue_synchronize(queue, PATIENCE_NS) == GPUHAL_OK, "synchronizing");
    for (uint32_t i = 0; i < WORDS; i++) {
        must(got[i] == got[0] && got[i] >> 24 == key, "a wrong word");
    }
}

static void *work(void *user)
{
    worker *w = user;
    shared *all = w->all;
    for (uint64_t step = 0; step < all->steps; step++) {
        uint32_t key = below(&w->random, KEYS);
        const uint32_t choice = below(&w->random, 17);
        uint32_t word = 0;
        if (choice < 10) {
            pthread_rwlock_rdlock(&all->locks[key]);
            use_key(w, key, false);
            pthread_rwlock_unlock(&all->locks[key]);
        } else if (choice < 14) {
            pthread_rwlock_wrlock(&all->locks[key]);
            use_key(w, key, true);
            pthread_rwlock_unlock(&all->locks[key]);
        } else if (choice == 14) {
            pthread_rwlock_rdlock(&all->locks[key]);
            const gpuhal_status status =
                gpuhal_store_read(all->f.store, &key, sizeof key, NULL, 4, &word, 4, PATIENCE_NS);
            must(status ? status == GPUHAL_ERROR_NOT_FOUND : word >> 24 == key, "looking");
            pthread_rwlock_unlock(&all->locks[key]);
        } else if (choice == 15 && step % 8 == 0) {
            must(gpuhal_store_compact(all->f.store, below(&w->random, 2) * PATIENCE_NS, NULL) == GPUHAL_OK, "moving");
        } else {
            pthread_rwlock_wrlock(&all->locks[key]);
            const gpuhal_status status = gpuhal_store_drop(all->f.store, &key, sizeof key);
            must(status == GPUHAL_OK || status == GPUHAL_ERROR_NOT_FOUND, "dropping");
            pthread_rwlock_unlock(&all->locks[key]);
        }
    }
    return NULL;
}

TEST(eight_threads_find_no_wrong_word)
{
    char folder[] = "/tmp/gpuhal-store-XXXXXX";
    assert_non_null(mkdtemp(folder));
    static shared all;
    worker workers[THREADS];
    pthread_t threads[THREADS];
    all.f = store_or_fail((gpuhal_store_desc){.device_bytes = (THREADS + 3) * WORDS * 4,
                                              .host_bytes = 5 * WORDS * 4,
                                              .folder = folder},
                          0);
    all.steps = steps_wanted() / 8;
    for (uint32_t i = 0; i < KEYS; i++) {
        pthread_rwlock_init(&all.locks[i], NULL);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (worker){.all = &all, .queue = queue_or_fail(all.f.gpu), .random = 77 + i};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        gpuhal_queue_destroy(workers[i].queue);
    }
    const gpuhal_store_statistics counts = counts_of(all.f.store);
    assert_int_equal(counts.pinned, 0);
    assert_true(counts.spills > 0 && counts.restores > 0);
    for (uint32_t i = 0; i < KEYS; i++) {
        pthread_rwlock_destroy(&all.locks[i]);
    }
    close_store(&all.f);
    assert_int_equal(rmdir(folder), 0);
}

#include "test_main.h"
