/* Stores: copies in the file, unusable folders, full disks and damaged bytes. */
#include "store_support.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* A private folder, which must be empty at the end of the test. */
static char folder[64];

static const char *make_folder(void)
{
    snprintf(folder, sizeof folder, "/tmp/gpuhal-store-XXXXXX");
    assert_non_null(mkdtemp(folder));
    return folder;
}

static store_fixture open_file_store(uint64_t host_entries, uint64_t file_bytes)
{
    return store_or_fail((gpuhal_store_desc){.device_bytes = SEGMENT,
                                             .host_bytes = host_entries * SEGMENT,
                                             .folder = make_folder(),
                                             .file_bytes = file_bytes},
                         0);
}

static void close_file_store(store_fixture *f)
{
    close_store(f);
    assert_int_equal(rmdir(folder), 0);
}

static void expect(store_fixture *f, const char *key, unsigned char byte)
{
    gpuhal_item *item = NULL;
    assert_ok(acquire_now(f, key, 0, &item));
    expect_bytes(item, NULL, byte);
    gpuhal_item_release(item, NULL);
}

/* Returns the descriptor of the unnamed file in the folder, or -1 if there is none. */
static int own_file(void)
{
    char path[64], target[256], real[256];
    assert_non_null(realpath(folder, real));
    for (int file = 0; file < 200; file++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", file);
        const ssize_t length = readlink(path, target, sizeof target - 1);
        if (length > 0 && strncmp(target, real, strlen(real)) == 0 && (fcntl(file, F_GETFL) & O_ACCMODE) == O_RDWR) {
            return file;
        }
    }
    return -1;
}

TEST(entries_go_from_device_memory_to_the_file_without_host_memory)
{
    store_fixture f = open_file_store(0, 0);
    unsigned char got[10];
    for (int i = 0; i < 5; i++) {
        const char key[2] = {(char)('a' + i), 0};
        assert_ok(put_now(&f, key, SEGMENT, (unsigned char)(i + 1)));
    }
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_FILE);
    assert_int_equal(counts_of(f.store).file.entries, 4);
    assert_int_equal(counts_of(f.store).file.bytes, 4 * SEGMENT);
    assert_ok(gpuhal_store_read(f.store, "b", 1, NULL, SEGMENT - 10, got, 10, 0));
    assert_int_equal(got[0], 2);
    assert_int_equal(got[9], 2);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 5; i++) {
            const char key[2] = {(char)('a' + i), 0};
            expect(&f, key, (unsigned char)(i + 1));
        }
    }
    assert_int_equal(counts_of(f.store).spills, 5);
    for (int i = 0; i < 5; i++) {
        const char key[2] = {(char)('a' + i), 0};
        assert_ok(gpuhal_store_drop(f.store, key, 1));
    }
    assert_int_equal(counts_of(f.store).file.entries, 0);
    assert_int_equal(counts_of(f.store).file.bytes, 0);
    close_file_store(&f);
}

TEST(host_memory_makes_room_by_the_file_and_the_oldest_goes_first)
{
    store_fixture f = open_file_store(1, 0);
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    assert_ok(put_now(&f, "c", SEGMENT, 3));
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_FILE);
    assert_int_equal(entry_of(f.store, "b").tiers, GPUHAL_TIER_HOST);
    assert_int_equal(entry_of(f.store, "c").tiers, GPUHAL_TIER_DEVICE);
    expect(&f, "a", 1);
    assert_int_equal(entry_of(f.store, "b").tiers, GPUHAL_TIER_FILE);
    assert_int_equal(entry_of(f.store, "c").tiers, GPUHAL_TIER_HOST);
    expect(&f, "b", 2);
    expect(&f, "c", 3);
    expect(&f, "a", 1);
    assert_int_equal(counts_of(f.store).host.bytes, SEGMENT);
    close_file_store(&f);
}

/* Bytes are read from the file directly into the memory of the first device. For the second and the third device, they
 * pass through chunks; the third does not accept an unaligned rest. For the fourth, they pass through the write
 * slot. */
static const gpuhal_mock_device shapes[] = {
    {0}, {.hidden = 1}, {.hidden = 1, .copy_alignment = 64}, {.hidden = 1, .no_staging_kinds = 1}};

enum { SHAPES = sizeof shapes / sizeof *shapes };

/* Opens a store that may use `device_bytes` of device memory, enough for one entry. */
static store_fixture open_shaped_store(uint32_t shape, uint64_t device_bytes)
{
    gpuhal_mock = (gpuhal_mock_state){.count = SHAPES};
    memcpy(gpuhal_mock.devices, shapes, sizeof shapes);
    store_fixture f = {.gpu = gpuhal_mock_open(NULL, 0)};
    const gpuhal_pool_desc pool_desc = {.size = sizeof pool_desc, .segment_bytes = SEGMENT};
    const gpuhal_store_desc desc = {.size = sizeof desc, .device_bytes = device_bytes, .folder = make_folder()};
    assert_ok(gpuhal_pool_create(gpuhal_device_at(f.gpu, shape), &pool_desc, &f.pool));
    assert_ok(gpuhal_store_create(f.pool, &desc, &f.store));
    return f;
}

static unsigned char *pattern_of(uint32_t count)
{
    unsigned char *bytes = malloc(count);
    for (uint32_t i = 0; i < count; i++) {
        bytes[i] = (unsigned char)(i * 2654435761u >> 24);
    }
    return bytes;
}

static const uint64_t sizes[] = {1, 4095, 4097, (1 << 20) - 1, 1 << 20, (3 << 20) + 7};

static void put_two_parts(store_fixture *f, uint32_t i, const unsigned char *bytes)
{
    const gpuhal_item_part parts[] = {{.name = "a", .bytes = sizes[i]}, {.name = "b", .bytes = sizes[5 - i] / 2 + 1}};
    const gpuhal_item_desc desc = {.size = sizeof desc, .parts = parts, .part_count = 2};
    gpuhal_item *item = NULL;
    assert_ok(gpuhal_store_put(f->store, NULL, &i, sizeof i, &desc, 0, &item));
    assert_ok(gpuhal_write(NULL, gpuhal_item_buffer(item, "a"), 0, bytes + i, parts[0].bytes));
    assert_ok(gpuhal_write(NULL, gpuhal_item_buffer(item, "b"), 0, bytes + 7 * i, parts[1].bytes));
    gpuhal_item_release(item, NULL);
}

TEST(large_and_odd_sizes_keep_every_byte)
{
    unsigned char *bytes = pattern_of(4 << 20), *got = malloc(4 << 20);
    for (uint32_t shape = 0; shape < SHAPES; shape++) {
        store_fixture f = open_shaped_store(shape, 4 << 20);
        for (uint32_t i = 0; i < 6; i++) {
            put_two_parts(&f, i, bytes);
        }
        for (uint32_t i = 0; i < 6; i++) {
            const uint64_t second = sizes[5 - i] / 2 + 1;
            assert_ok(gpuhal_store_read(f.store, &i, sizeof i, "a", 0, got, sizes[i], 0));
            assert_memory_equal(got, bytes + i, sizes[i]);
            assert_ok(gpuhal_store_read(f.store, &i, sizeof i, "b", second / 3, got, second - second / 3, 0));
            assert_memory_equal(got, bytes + 7 * i + second / 3, second - second / 3);
            gpuhal_item *item = NULL;
            assert_ok(gpuhal_store_acquire(f.store, NULL, &i, sizeof i, NULL, 0, 0, &item));
            assert_ok(gpuhal_read(NULL, got, gpuhal_item_buffer(item, "a"), 0, sizes[i]));
            assert_memory_equal(got, bytes + i, sizes[i]);
            assert_ok(gpuhal_read(NULL, got, gpuhal_item_buffer(item, "b"), 0, second));
            assert_memory_equal(got, bytes + 7 * i, second);
            gpuhal_item_release(item, NULL);
        }
        assert_true(counts_of(f.store).spills > 0);
        assert_true(counts_of(f.store).restores > 0);
        close_file_store(&f);
    }
    free(bytes);
    free(got);
}

TEST(a_copy_of_several_pieces_goes_from_host_memory_to_the_file_whole)
{
    enum { LARGE = 1 << 20 };
    store_fixture f =
        store_or_fail((gpuhal_store_desc){.device_bytes = LARGE, .host_bytes = LARGE, .folder = make_folder()}, 0);
    static const char *const keys[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++) {
        assert_ok(put_now(&f, keys[i], LARGE, (unsigned char)(i + 1)));
    }
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_FILE);
    for (int i = 0; i < 3; i++) {
        expect(&f, keys[i], (unsigned char)(i + 1));
    }
    close_file_store(&f);
}

TEST(copies_in_memory_that_is_not_coherent_are_read_and_go_on_to_the_file)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices[0].not_coherent = 1};
    store_fixture f = {.gpu = gpuhal_mock_open(NULL, 0)};
    const gpuhal_store_desc desc = {
        .size = sizeof desc, .device_bytes = SEGMENT, .host_bytes = SEGMENT, .folder = make_folder()};
    unsigned char got[100];
    f.pool = pool_or_fail(f.gpu, (gpuhal_pool_desc){0});
    f.queue = queue_or_fail(f.gpu);
    assert_ok(gpuhal_store_create(f.pool, &desc, &f.store));
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_HOST);
    assert_ok(gpuhal_store_read(f.store, "a", 1, NULL, 7, got, 100, 0));
    assert_int_equal(got[99], 1);
    assert_ok(put_now(&f, "c", SEGMENT, 3));
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_FILE);
    expect(&f, "a", 1);
    expect(&f, "b", 2);
    expect(&f, "c", 3);
    close_file_store(&f);
}

/* Flips one bit of the first copy in the file. A second call restores the bit. */
static void damage_at(off_t offset)
{
    char path[64];
    unsigned char byte = 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", own_file());
    const int file = open(path, O_RDWR);
    assert_true(file >= 0);
    assert_int_equal(pread(file, &byte, 1, offset), 1);
    byte ^= 4;
    assert_int_equal(pwrite(file, &byte, 1, offset), 1);
    close(file);
}

static void damage(void)
{
    damage_at(5000);
}

TEST(a_damaged_copy_fails_each_time_and_gives_no_wrong_bytes)
{
    store_fixture f = open_file_store(0, 0);
    gpuhal_item *item = NULL;
    unsigned char got[SEGMENT];
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    damage();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(acquire_now(&f, "a", 0, &item), GPUHAL_ERROR_FILE);
        assert_null(item);
        assert_non_null(strstr(gpuhal_last_error()->sentence, "\"a\""));
        assert_non_null(strstr(gpuhal_last_error()->sentence, "offset 0"));
        assert_int_equal(gpuhal_store_read(f.store, "a", 1, NULL, 0, got, SEGMENT, 0), GPUHAL_ERROR_FILE);
        assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_FILE);
    }
    expect(&f, "b", 2);
    assert_ok(gpuhal_store_drop(f.store, "a", 1));
    assert_ok(put_now(&f, "a", SEGMENT, 3));
    expect(&f, "a", 3);
    close_file_store(&f);
}

TEST(one_wrong_bit_is_found_in_every_piece_that_threads_bring_at_once)
{
    const uint64_t bytes = sizes[5];
    const off_t places[] = {0, 262143, 262144, 1500000, (off_t)bytes - 8, (off_t)bytes - 1};
    unsigned char *pattern = pattern_of(4 << 20), *got = malloc(bytes);
    for (uint32_t shape = 0; shape < SHAPES; shape++) {
        store_fixture f = open_shaped_store(shape, bytes);
        gpuhal_item *item = NULL;
        const gpuhal_item_desc desc = {.size = sizeof desc, .bytes = bytes};
        assert_ok(gpuhal_store_put(f.store, NULL, "a", 1, &desc, 0, &item));
        assert_ok(gpuhal_write(NULL, gpuhal_item_buffer(item, NULL), 0, pattern, bytes));
        gpuhal_item_release(item, NULL);
        assert_ok(put_now(&f, "b", bytes, 2));
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            char offset[40];
            snprintf(offset, sizeof offset, "offset %lld", (long long)(places[i] / 262144 * 262144));
            damage_at(places[i]);
            assert_int_equal(acquire_now(&f, "a", 0, &item), GPUHAL_ERROR_FILE);
            assert_non_null(strstr(gpuhal_last_error()->sentence, "\"a\""));
            assert_non_null(strstr(gpuhal_last_error()->sentence, offset));
            assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_FILE);
            assert_int_equal(gpuhal_store_read(f.store, "a", 1, NULL, (uint64_t)places[i], got, 1, 0),
                             GPUHAL_ERROR_FILE);
            damage_at(places[i]);
        }
        assert_ok(acquire_now(&f, "a", 0, &item));
        assert_ok(gpuhal_read(NULL, got, gpuhal_item_buffer(item, NULL), 0, bytes));
        assert_memory_equal(got, pattern, bytes);
        gpuhal_item_release(item, NULL);
        close_file_store(&f);
    }
    free(pattern);
    free(got);
}

TEST(an_entry_with_a_damaged_copy_is_loaded_by_the_next_acquire)
{
    store_fixture f = open_file_store(0, 0);
    filler how = {.byte = 5};
    const gpuhal_item_desc desc = {
        .size = sizeof desc, .bytes = SEGMENT, .load = fill_item, .user = &how, .flags = GPUHAL_ITEM_KEEP_COPY};
    gpuhal_item *item = NULL;
    assert_ok(gpuhal_store_acquire(f.store, NULL, "a", 1, &desc, 0, 0, &item));
    gpuhal_item_release(item, NULL);
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_FILE);
    damage();
    assert_int_equal(gpuhal_store_acquire(f.store, NULL, "a", 1, &desc, 0, 0, &item), GPUHAL_ERROR_FILE);
    assert_false(has(f.store, "a"));
    assert_ok(gpuhal_store_acquire(f.store, NULL, "a", 1, &desc, 0, 0, &item));
    expect_bytes(item, NULL, 5);
    gpuhal_item_release(item, NULL);
    assert_int_equal(how.calls, 2);
    close_file_store(&f);
}

TEST(a_file_that_was_cut_is_damaged)
{
    store_fixture f = open_file_store(0, 0);
    gpuhal_item *item = NULL;
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    assert_int_equal(ftruncate(own_file(), 100), 0);
    assert_int_equal(acquire_now(&f, "a", 0, &item), GPUHAL_ERROR_FILE);
    close_file_store(&f);
}

TEST(entries_stay_in_place_above_the_limit_of_the_file)
{
    store_fixture f = open_file_store(1, 2 * SEGMENT + 4095);
    gpuhal_item *item = NULL;
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    assert_ok(put_now(&f, "c", SEGMENT, 3));
    assert_ok(put_now(&f, "d", SEGMENT, 4));
    assert_int_equal(put_now(&f, "e", SEGMENT, 5), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(entry_of(f.store, "d").tiers, GPUHAL_TIER_DEVICE);
    assert_int_equal(entry_of(f.store, "c").tiers, GPUHAL_TIER_HOST);
    assert_ok(acquire_now(&f, "a", 0, &item)); /* exchanged with "d" */
    assert_int_equal(entry_of(f.store, "d").tiers, GPUHAL_TIER_HOST);
    assert_int_equal(entry_of(f.store, "c").tiers, GPUHAL_TIER_FILE);
    gpuhal_item_release(item, NULL);
    expect(&f, "b", 2);
    expect(&f, "c", 3);
    expect(&f, "d", 4);
    struct stat state;
    assert_int_equal(fstat(own_file(), &state), 0);
    assert_true(state.st_size <= 2 * SEGMENT);
    close_file_store(&f);
}

static store_fixture open_file_store_of_pool(uint64_t file_bytes)
{
    return store_or_fail((gpuhal_store_desc){.folder = make_folder(), .file_bytes = file_bytes}, 2 * SEGMENT);
}

TEST(an_entry_beyond_the_limit_of_the_file_cannot_be_spilled)
{
    store_fixture f = open_file_store_of_pool(SEGMENT);
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    assert_int_equal(attempt(f.pool, NULL, SEGMENT, GPUHAL_ALLOCATE_NO_EVICT, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    expect_spillable(SEGMENT, SEGMENT, " cannot be spilled: host_bytes is 0, file_bytes leaves no room");
    assert_ok(put_now(&f, "c", SEGMENT, 3));
    assert_int_equal(put_now(&f, "d", SEGMENT, 4), GPUHAL_ERROR_OUT_OF_MEMORY);
    expect_spillable(0, 2 * SEGMENT, " cannot be spilled: host_bytes is 0, file_bytes leaves no room");
    close_file_store(&f);
}

/* Pins random entries, up to `most` at the same time. Returns the number of failed acquires. */
static int fail_at_random(store_fixture *f, uint32_t entries, uint32_t most)
{
    gpuhal_item *items[8] = {0};
    uint32_t random = 1, next = 0;
    int failed = 0;
    for (int round = 0; round < 600; round++, next = (next + 1) % most) {
        random = random * 1664525 + 1013904223;
        const char key[2] = {(char)('a' + (random >> 16) % entries), 0};
        gpuhal_item_release(items[next], NULL);
        items[next] = NULL;
        const gpuhal_status status = acquire_now(f, key, 0, &items[next]);
        assert_true(status == GPUHAL_OK || status == GPUHAL_ERROR_OUT_OF_MEMORY);
        failed += status != GPUHAL_OK;
    }
    for (uint32_t i = 0; i < most; i++) {
        gpuhal_item_release(items[i], NULL);
    }
    return failed;
}

/* Four of twelve entries fit into device memory. The other tiers have exactly enough room for the rest, so entries are
 * exchanged in pairs. */
static void expect_exchanges(uint32_t host_entries, uint32_t file_entries, uint32_t pins)
{
    enum { ENTRIES = 12, FIT = 4 };
    store_fixture f = store_or_fail((gpuhal_store_desc){.host_bytes = host_entries * (uint64_t)SEGMENT,
                                                        .folder = file_entries ? make_folder() : NULL,
                                                        .file_bytes = file_entries * (uint64_t)SEGMENT},
                                    (uint64_t)FIT * SEGMENT);
    for (uint32_t i = 0; i < ENTRIES; i++) {
        const char key[2] = {(char)('a' + i), 0};
        assert_ok(put_now(&f, key, SEGMENT, (unsigned char)i));
    }
    assert_int_equal(put_now(&f, "more", SEGMENT, 1), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(fail_at_random(&f, ENTRIES, pins), 0);
    assert_true(counts_of(f.store).host.bytes <= host_entries * (uint64_t)SEGMENT);
    for (uint32_t i = 0; i < ENTRIES; i++) { /* no entry is lost */
        const char key[2] = {(char)('a' + i), 0};
        expect(&f, key, (unsigned char)i);
    }
    close_store(&f);
    assert_int_equal(file_entries ? rmdir(folder) : 0, 0);
}

TEST(in_a_full_file_entries_change_places)
{
    for (uint32_t pins = 1; pins <= 4; pins++) {
        expect_exchanges(0, 8, pins);
    }
}

TEST(in_full_host_memory_entries_change_places)
{
    for (uint32_t pins = 1; pins <= 4; pins++) {
        expect_exchanges(8, 0, pins);
    }
}

TEST(entries_change_places_if_host_memory_and_the_file_are_full)
{
    for (uint32_t pins = 1; pins <= 4; pins += 3) {
        for (uint32_t host = 1; host <= 7; host += 3) {
            expect_exchanges(host, 8 - host, pins);
        }
    }
}

TEST(an_entry_takes_the_place_of_one_whose_copy_in_the_full_file_is_beside_that_of_a_loaded_one)
{
    store_fixture f = open_file_store(0, 2 * SEGMENT);
    filler how = {.byte = 5};
    const gpuhal_item_desc desc = {
        .size = sizeof desc, .bytes = SEGMENT, .load = fill_item, .user = &how, .flags = GPUHAL_ITEM_KEEP_COPY};
    gpuhal_item *item = NULL;
    assert_ok(gpuhal_store_acquire(f.store, NULL, "loaded", 6, &desc, 0, 0, &item));
    gpuhal_item_release(item, NULL);
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    expect(&f, "a", 1);
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_DEVICE);
    assert_int_equal(entry_of(f.store, "b").tiers, GPUHAL_TIER_FILE);
    expect(&f, "loaded", 5);
    assert_int_equal(how.calls, 1);
    close_file_store(&f);
}

TEST(a_small_entry_does_not_change_places_with_a_large_one_and_stays_whole)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){.device_bytes = SEGMENT,
                                                        .folder = make_folder(),
                                                        .file_bytes = SEGMENT / 2},
                                    0);
    gpuhal_item *item = NULL;
    assert_ok(put_now(&f, "a", SEGMENT / 2, 1));
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(acquire_now(&f, "a", 0, &item), GPUHAL_ERROR_OUT_OF_MEMORY);
        assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_FILE);
        assert_int_equal(counts_of(f.store).host.bytes, 0);
    }
    expect(&f, "b", 2);
    assert_ok(gpuhal_store_drop(f.store, "b", 1));
    expect(&f, "a", 1);
    close_file_store(&f);
}

/* The smaller entry's bytes have no other place, so they stay in host memory, above its limit. */
TEST(an_entry_that_lost_its_place_and_did_not_come_back_is_kept)
{
    store_fixture f = store_or_fail((gpuhal_store_desc){.device_bytes = 2 * SEGMENT, .host_bytes = SEGMENT}, 0);
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_ok(put_now(&f, "b", SEGMENT / 2, 2));
    assert_ok(put_now(&f, "c", SEGMENT + SEGMENT / 2, 3)); /* "a" is evicted */
    assert_int_equal(acquire_now(&f, "a", 0, &(gpuhal_item *){NULL}), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_HOST);
    assert_int_equal(entry_of(f.store, "b").tiers, GPUHAL_TIER_HOST);
    assert_int_equal(counts_of(f.store).host.bytes, SEGMENT + SEGMENT / 2);
    assert_int_equal(attempt(f.pool, NULL, SEGMENT, GPUHAL_ALLOCATE_NO_EVICT, 0), GPUHAL_OK);
    assert_ok(gpuhal_store_drop(f.store, "c", 1));
    expect(&f, "a", 1);
    expect(&f, "b", 2);
    close_store(&f);
}

TEST(an_entry_without_room_on_a_full_disk_cannot_be_spilled)
{
    store_fixture f = open_file_store_of_pool(0);
    const int own = own_file(), kept = dup(own), full = open("/dev/full", O_RDWR);
    assert_true(kept >= 0 && full >= 0);
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    assert_int_equal(dup2(full, own), own);
    assert_int_equal(put_now(&f, "c", SEGMENT, 3), GPUHAL_ERROR_OUT_OF_MEMORY);
    expect_spillable(0, 2 * SEGMENT, " cannot be spilled: host_bytes is 0, the disk of the folder is full");
    assert_int_equal(dup2(kept, own), own);
    assert_ok(put_now(&f, "c", SEGMENT, 3));
    assert_int_equal(attempt(f.pool, NULL, SEGMENT, GPUHAL_ALLOCATE_NO_EVICT, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    expect_spillable(2 * SEGMENT, 0, "");
    close(kept);
    close(full);
    close_file_store(&f);
}

TEST(a_store_whose_share_is_full_names_the_full_disk)
{
    store_fixture f = open_file_store(0, 0);
    const int own = own_file(), full = open("/dev/full", O_RDWR);
    assert_true(full >= 0);
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_int_equal(dup2(full, own), own);
    assert_int_equal(put_now(&f, "b", SEGMENT, 2), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_non_null(strstr(gpuhal_last_error()->sentence,
                           "; 0 bytes are pinned; 65536 cannot be spilled: host_bytes is 0, the disk of "
                           "the folder is full"));
    expect(&f, "a", 1);
    close(full);
    close_file_store(&f);
}

/* A file size limit makes the disk appear full to this process. */
TEST(a_full_disk_leaves_entries_in_device_memory)
{
    store_fixture f = open_file_store(0, 0);
    struct rlimit limit;
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    signal(SIGXFSZ, SIG_DFL); /* restores the default action, which kills the process */
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = SEGMENT / 2;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(put_now(&f, "b", SEGMENT, 2), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_DEVICE);
    assert_int_equal(counts_of(f.store).file.bytes, 0);
    expect(&f, "a", 1);
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    assert_int_equal(entry_of(f.store, "a").tiers, GPUHAL_TIER_FILE);
    expect(&f, "a", 1);
    close_file_store(&f);
}

TEST(on_a_full_disk_entries_change_places)
{
    store_fixture f = open_file_store(0, 0);
    struct rlimit limit;
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = SEGMENT;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    for (int round = 0; round < 3; round++) {
        expect(&f, "a", 1);
        expect(&f, "b", 2);
    }
    assert_int_equal(put_now(&f, "c", SEGMENT, 3), GPUHAL_ERROR_OUT_OF_MEMORY);
    close_file_store(&f);
}

static gpuhal_status create_in(store_fixture *f, const char *where)
{
    const gpuhal_store_desc desc = {.size = sizeof desc, .folder = where};
    gpuhal_store *store = NULL;
    gpuhal_status status = gpuhal_store_create(f->pool, &desc, &store);
    assert_int_equal(status == GPUHAL_OK, store != NULL);
    if (status) {
        assert_non_null(strstr(gpuhal_last_error()->sentence, where));
    }
    gpuhal_store_destroy(store);
    return status;
}

TEST(a_folder_that_cannot_have_the_file_is_refused_when_the_store_is_created)
{
    store_fixture f = open_file_store(0, 0);
    char path[128];
    snprintf(path, sizeof path, "%s/gone", folder);
    assert_int_equal(create_in(&f, path), GPUHAL_ERROR_NOT_FOUND);
    assert_int_equal(symlink("nowhere", path), 0);
    assert_int_equal(create_in(&f, path), GPUHAL_ERROR_NOT_FOUND);
    assert_int_equal(unlink(path), 0);
    const int file = open(path, O_CREAT | O_WRONLY, 0600);
    close(file);
    assert_int_equal(create_in(&f, path), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "Not a directory"));
    assert_int_equal(unlink(path), 0);
    assert_int_not_equal(create_in(&f, "/proc"), GPUHAL_OK);
    close_file_store(&f);
}

/* Root can write anywhere, so the process temporarily becomes another user. */
TEST(a_folder_of_another_user_is_taken_if_it_may_be_written_to)
{
    store_fixture f = open_file_store(0, 0);
    char path[128];
    const uid_t user = geteuid();
    snprintf(path, sizeof path, "%s/other", folder);
    assert_int_equal(chmod(folder, 0711), 0);
    assert_int_equal(mkdir(path, 0500), 0);
    assert_int_equal(user == 0 ? seteuid(65534) : 0, 0);
    assert_int_equal(create_in(&f, path), GPUHAL_ERROR_NO_PERMISSION);
    assert_int_equal(seteuid(user), 0);
    assert_int_equal(chmod(path, 0777), 0);
    assert_int_equal(user == 0 ? seteuid(65534) : 0, 0);
    assert_int_equal(create_in(&f, path), GPUHAL_OK);
    assert_int_equal(seteuid(user), 0);
    assert_int_equal(rmdir(path), 0);
    close_file_store(&f);
}

TEST(the_file_is_for_its_user_alone_in_any_folder)
{
    store_fixture f = open_file_store(0, 0);
    struct stat state;
    char link[128];
    assert_int_equal(fstat(own_file(), &state), 0);
    assert_int_equal(state.st_mode & 0777, 0600);
    assert_int_equal(state.st_nlink, 0);
    assert_true(fcntl(own_file(), F_GETFD) & FD_CLOEXEC);
    snprintf(link, sizeof link, "%s.link", folder);
    assert_int_equal(symlink(folder, link), 0);
    assert_int_equal(create_in(&f, link), GPUHAL_OK);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(chmod(folder, 0777), 0);
    assert_int_equal(create_in(&f, folder), GPUHAL_OK);
    close_file_store(&f);
}

TEST(the_folder_may_go_while_the_store_is_used)
{
    store_fixture f = open_file_store(0, 0);
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_int_equal(rmdir(folder), 0);
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    expect(&f, "a", 1);
    close_store(&f);
}

TEST(copies_in_the_file_are_read_when_the_device_is_lost)
{
    store_fixture f = open_file_store(0, 0);
    unsigned char byte = 0;
    gpuhal_buffer *mine = gpuhal_mock_buffer(f.gpu, 0, 1000);
    assert_ok(put_now(&f, "a", SEGMENT, 1));
    assert_ok(put_now(&f, "b", SEGMENT, 2));
    expect(&f, "a", 1);
    gpuhal_mock.devices[0].fail_copy = GPUHAL_ERROR_DEVICE_LOST;
    assert_int_equal(gpuhal_copy(NULL, mine, 0, mine, 500, 100), GPUHAL_ERROR_DEVICE_LOST);
    assert_ok(gpuhal_store_read(f.store, "a", 1, NULL, 9, &byte, 1, 0));
    assert_int_equal(byte, 1);
    assert_ok(gpuhal_store_read(f.store, "b", 1, NULL, 9, &byte, 1, 0));
    assert_int_equal(byte, 2);
    gpuhal_buffer_release(mine);
    close_file_store(&f);
}

#include "test_main.h"
