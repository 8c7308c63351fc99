/* Tests sharing with real drivers, on every device of this machine: the CPU, PoCL's two devices, and the devices of all
 * other plugins that were built. */
#include "system.h"
#include "support/import_host.h"
#include "support/random.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 3 * 1024 * 1024 + 77, POINTER = 1u << GPUHAL_HANDLE_HOST_POINTER };

static uint32_t seed = 99;
static uint32_t next_random(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

static unsigned char *random_bytes(size_t count)
{
    return bytes_of_seed(next_random(), count);
}

static void pick_range(uint64_t *offset, uint64_t *count)
{
    *offset = next_random() % BYTES;
    *count = 1 + next_random() % (next_random() % 2 ? 100 : BYTES - *offset);
    *count = *count < BYTES - *offset ? *count : BYTES - *offset;
}

static void expect_contents(gpuhal_buffer *buffer, const unsigned char *expected, const char *what)
{
    unsigned char *got = malloc(BYTES);
    assert_non_null(got);
    memset(got, 0xee, BYTES);
    assert_ok(gpuhal_read(NULL, got, buffer, 0, BYTES));
    if (memcmp(got, expected, BYTES) != 0) {
        fail_msg("%s: other bytes on %s", what, gpuhal_device_id(gpuhal_buffer_device(buffer)));
    }
    free(got);
}

/* Writes through one buffer, synchronizes, and compares through the other buffer. Then does the same in the other
 * direction. Each round writes only some ranges, so a synchronization that moves more than the written bytes would
 * undo a write. */
static void exchange(gpuhal_buffer *one, gpuhal_buffer *other, const char *what)
{
    unsigned char *model = random_bytes(BYTES), *fresh = random_bytes(BYTES);
    assert_ok(gpuhal_write(NULL, one, 0, model, BYTES));
    for (int round = 0; round < 8; round++) {
        gpuhal_buffer *writer = round % 2 ? other : one, *reader = round % 2 ? one : other;
        for (int piece = 0; piece < 3; piece++) {
            uint64_t offset, count;
            pick_range(&offset, &count);
            if (piece == 1) {
                assert_ok(gpuhal_fill(NULL, writer, offset, count, (uint32_t)round, 1));
                memset(model + offset, round, count);
            } else {
                assert_ok(gpuhal_write(NULL, writer, offset, fresh + offset, count));
                memcpy(model + offset, fresh + offset, count);
            }
        }
        assert_ok(gpuhal_buffer_synchronize(reader));
        expect_contents(reader, model, what);
    }
    assert_ok(gpuhal_buffer_synchronize(one));
    assert_ok(gpuhal_buffer_synchronize(other));
    expect_contents(one, model, what);
    expect_contents(other, model, what);
    free(model);
    free(fresh);
}

static bool share_pair(gpuhal_device *owner, gpuhal_memory_kind kind, gpuhal_device *user, bool original_first)
{
    gpuhal_handle_kind handle = 0;
    const char *why = NULL;
    char what[96];
    snprintf(what, sizeof what, "memory of kind %u of %s shared with %s", kind, gpuhal_device_id(owner),
             gpuhal_device_id(user));
    if (gpuhal_share_query(owner, kind, user, &handle, &why) != GPUHAL_OK) {
        assert_true(*why != '\0');
        printf("# %s: not possible: %s\n", what, why);
        return false;
    }
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .kind = kind, .bytes = BYTES, .export_kinds = 1u << handle};
    gpuhal_buffer *original = NULL, *shared = NULL;
    assert_ok(gpuhal_buffer_create(owner, &desc, &original));
    assert_ok(gpuhal_buffer_share(original, user, &shared));
    printf("# %s: %s\n", what, gpuhal_handle_kind_name(handle));
    exchange(original, shared, what);
    gpuhal_buffer *last = original_first ? shared : original;
    gpuhal_buffer_release(original_first ? original : shared);
    unsigned char *model = random_bytes(BYTES);
    assert_ok(gpuhal_write(NULL, last, 0, model, BYTES));
    expect_contents(last, model, what);
    free(model);
    gpuhal_buffer_release(last);
    return true;
}

TEST(every_pair_that_says_it_can_share_shows_each_others_bytes_exactly)
{
    gpuhal *gpu = open_or_fail(NULL);
    int shared = 0;
    for (uint32_t o = 0; o < gpuhal_device_count(gpu); o++) {
        for (uint32_t u = 0; u < gpuhal_device_count(gpu); u++) {
            for (gpuhal_memory_kind kind = GPUHAL_MEMORY_DEVICE; kind <= GPUHAL_MEMORY_MIGRATING && o != u;
                 kind++) {
                shared += share_pair(gpuhal_device_at(gpu, o), kind, gpuhal_device_at(gpu, u), (o + u + kind) % 2);
            }
        }
    }
    /* cpu:0 shares memory of four kinds with each of the two OpenCL devices. Each OpenCL device shares two kinds of
     * host memory with cpu:0 and with the other OpenCL device. */
    assert_true(shared >= 8 + 4 + 4);
    gpuhal_close(gpu);
}

TEST(every_ordered_pair_copies_byte_exact_and_reports_its_path)
{
    gpuhal *gpu = open_or_fail(NULL);
    uint32_t count = gpuhal_device_count(gpu);
    for (uint32_t pair = 0; pair < count * count; pair++) {
        gpuhal_buffer *from = buffer_or_fail(gpuhal_device_at(gpu, pair / count), GPUHAL_MEMORY_DEVICE, BYTES);
        gpuhal_buffer *to = buffer_or_fail(gpuhal_device_at(gpu, pair % count), GPUHAL_MEMORY_DEVICE, BYTES);
        unsigned char *to_model = random_bytes(BYTES), *from_model = random_bytes(BYTES);
        gpuhal_path path = 0;
        assert_ok(gpuhal_write(NULL, from, 0, from_model, BYTES));
        assert_ok(gpuhal_write(NULL, to, 0, to_model, BYTES));
        for (int round = 0; round < 10; round++) {
            uint64_t from_offset, bytes;
            pick_range(&from_offset, &bytes);
            uint64_t to_offset = next_random() % (BYTES - bytes + 1);
            assert_ok(gpuhal_copy(NULL, to, to_offset, from, from_offset, bytes));
            memcpy(to_model + to_offset, from_model + from_offset, bytes);
        }
        expect_contents(to, to_model, "copy");
        expect_contents(from, from_model, "copy");
        assert_ok(gpuhal_copy_path(to, from, &path));
        assert_true(pair / count == pair % count ? path == GPUHAL_PATH_NATIVE
                                                 : path == GPUHAL_PATH_SHARED || path == GPUHAL_PATH_STAGED);
        gpuhal_buffer_release(from);
        gpuhal_buffer_release(to);
        free(to_model);
        free(from_model);
    }
    gpuhal_close(gpu);
}

static void count_call(void *user, void *memory)
{
    assert_non_null(memory);
    ++*(int *)user;
}

TEST(the_callers_memory_is_seen_by_every_device_that_imports_it)
{
    gpuhal *gpu = open_or_fail(NULL);
    int importers = 0;
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        gpuhal_device *device = gpuhal_device_at(gpu, d);
        uint64_t kinds = 0, unit = 1;
        if (gpuhal_device_u64(device, GPUHAL_FACT_IMPORT_KINDS, &kinds) || !(kinds & POINTER)) {
            continue;
        }
        assert_ok(gpuhal_device_u64(device, GPUHAL_FACT_IMPORT_ALIGNMENT_BYTES, &unit));
        enum { PAGES = 16 * 4096 };
        unsigned char *memory = aligned_alloc(65536, PAGES), got[PAGES];
        int calls = 0;
        gpuhal_buffer *buffer = NULL;
        for (int i = 0; i < PAGES; i++) {
            memory[i] = (unsigned char)next_random();
        }
        assert_ok(import_host(device, memory, PAGES, count_call, &calls, &buffer));
        assert_ok(gpuhal_read(NULL, got, buffer, 0, PAGES));
        assert_memory_equal(got, memory, PAGES);
        assert_ok(gpuhal_write(NULL, buffer, 1234, "through the device", 18));
        assert_memory_equal(memory + 1234, "through the device", 18);
        memcpy(memory + 5000, "through the host", 16);
        assert_ok(gpuhal_buffer_synchronize(buffer));
        assert_ok(gpuhal_read(NULL, got, buffer, 5000, 16));
        assert_memory_equal(got, "through the host", 16);
        assert_int_equal(calls, 0);
        gpuhal_buffer_release(buffer);
        assert_int_equal(calls, 1);
        const gpuhal_host_import inner = {.size = sizeof inner, .memory = memory + 4097, .bytes = 1000};
        uint64_t offset = 0;
        assert_ok(gpuhal_buffer_import_host(device, &inner, &buffer, &offset));
        assert_int_equal(offset, 4097 % unit);
        assert_ok(gpuhal_read(NULL, got, buffer, offset, 1000));
        assert_memory_equal(got, memory + 4097, 1000);
        gpuhal_buffer_release(buffer);
        assert_int_equal(import_host(device, (void *)(uintptr_t)65536, PAGES, count_call, &calls, &buffer),
                         GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_int_equal(calls, 1);
        free(memory);
        importers++;
    }
    assert_true(importers >= 3);
    gpuhal_close(gpu);
}

static uint64_t number_or_0(const gpuhal_device *device, gpuhal_key key)
{
    uint64_t value = 0;
    return gpuhal_device_u64(device, key, &value) ? 0 : value;
}

TEST(facts_to_choose_by_are_there_or_say_why_not_and_agree_with_the_memory)
{
    gpuhal *gpu = open_or_fail(NULL);
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        gpuhal_device *device = gpuhal_device_at(gpu, d);
        for (gpuhal_key key = GPUHAL_FACT_TARGET_ARCHITECTURE; key <= GPUHAL_FACT_HOST_COHERENT_KINDS; key++) {
            const char *why = NULL;
            const gpuhal_missing missing = gpuhal_device_missing(device, key, &why);
            if (missing && !*why) {
                fail_msg("%s: %s is missing without a reason", gpuhal_device_id(device), gpuhal_key_name(key));
            }
            /* A device may support only the data types that all devices have. */
            assert_true(missing || gpuhal_key_is_text(key) || key == GPUHAL_FACT_DATA_TYPES ||
                        number_or_0(device, key) > 0);
        }
        assert_true(number_or_0(device, GPUHAL_FACT_SUBGROUP_SIZE_MIN) <=
                    number_or_0(device, GPUHAL_FACT_SUBGROUP_SIZE_MAX));
        assert_true(number_or_0(device, GPUHAL_FACT_GROUP_SIZE_MAX_X) <=
                        number_or_0(device, GPUHAL_FACT_GROUP_SIZE_MAX) ||
                    strcmp(gpuhal_device_backend(device), "opencl") == 0);
        const uint64_t kinds = number_or_0(device, GPUHAL_FACT_MEMORY_KINDS),
                       visible = number_or_0(device, GPUHAL_FACT_HOST_VISIBLE_KINDS);
        assert_int_equal(visible & ~kinds, 0);
        assert_int_equal(number_or_0(device, GPUHAL_FACT_HOST_COHERENT_KINDS) & ~visible, 0);
        for (gpuhal_memory_kind kind = GPUHAL_MEMORY_DEVICE; kind <= GPUHAL_MEMORY_MIGRATING; kind++) {
            if (!(kinds >> kind & 1)) {
                continue;
            }
            gpuhal_buffer *buffer = buffer_or_fail(device, kind, 5000);
            const uintptr_t host = (uintptr_t)gpuhal_buffer_host(buffer);
            assert_int_equal(host != 0, visible >> kind & 1);
            assert_int_equal(host % 64, 0);
            gpuhal_value held = {.key = GPUHAL_VALUE_MEMORY_HELD_BYTES};
            assert_ok(gpuhal_device_sample(device, 0, &held, 1, NULL));
            assert_true(!held.missing && held.u64 >= 5000);
            gpuhal_buffer_release(buffer);
        }
    }
    gpuhal_close(gpu);
}

/* Engines map weight files read-only. This file is sparse: all bytes are zero except the mark in the middle. */
TEST(a_mapped_read_only_file_of_a_gib_is_imported_at_once_and_takes_no_memory)
{
    const uint64_t bytes = UINT64_C(1) << 30, middle = (bytes / 2) + 12345;
    int file = memfd_create("weights", MFD_CLOEXEC), importers = 0;
    assert_int_equal(ftruncate(file, (off_t)bytes), 0);
    assert_int_equal(pwrite(file, "weights", 8, (off_t)middle), 8);
    char *view = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
    assert_ptr_not_equal(view, MAP_FAILED);
    gpuhal *gpu = open_or_fail(NULL);
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        gpuhal_device *device = gpuhal_device_at(gpu, d);
        uint64_t kinds = 0, offset = 1;
        gpuhal_buffer *buffer = NULL;
        char got[8] = "";
        if (gpuhal_device_u64(device, GPUHAL_FACT_IMPORT_KINDS, &kinds) || !(kinds & POINTER)) {
            continue;
        }
        assert_ok(gpuhal_device_open(device));
        const gpuhal_host_import import = {
            .size = sizeof import, .flags = GPUHAL_IMPORT_READ_ONLY, .memory = view, .bytes = bytes};
        const gpuhal_host_import first = {
            .size = sizeof first, .flags = GPUHAL_IMPORT_READ_ONLY, .memory = view, .bytes = 4096};
        assert_ok(
            gpuhal_buffer_import_host(device, &first, &buffer, &offset)); /* excludes one-time work of the driver */
        gpuhal_buffer_release(buffer);
        const long before_kib = memory_status_kib("VmRSS:");
        struct timespec begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        assert_ok(gpuhal_buffer_import_host(device, &import, &buffer, &offset));
        clock_gettime(CLOCK_MONOTONIC, &end);
        const long more_kib = memory_status_kib("VmRSS:") - before_kib;
        printf("%s: %.3f ms, %ld KiB\n", gpuhal_device_id(device),
               (double)(end.tv_sec - begin.tv_sec) * 1e3 + (double)(end.tv_nsec - begin.tv_nsec) / 1e6, more_kib);
        assert_true(more_kib < 1024);
        assert_true(end.tv_sec - begin.tv_sec < 2); /* on a loaded machine, copying a GiB takes longer than this */
        assert_int_equal(offset, 0);
        assert_ok(gpuhal_read(NULL, got, buffer, middle, 8));
        assert_string_equal(got, "weights");
        gpuhal_buffer *copied = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 8);
        assert_ok(gpuhal_copy(NULL, copied, 0, buffer, middle, 8));
        assert_ok(gpuhal_buffer_synchronize(buffer));
        assert_ok(gpuhal_read(NULL, got, copied, 0, 8));
        assert_string_equal(got, "weights");
        assert_int_equal(gpuhal_write(NULL, buffer, 0, "no", 2), GPUHAL_ERROR_INVALID_ARGUMENT);
        gpuhal_buffer_release(copied);
        gpuhal_buffer_release(buffer);
        importers++;
    }
    assert_true(importers >= 3);
    gpuhal_close(gpu);
    munmap(view, bytes);
    close(file);
}

TEST(sharing_a_large_buffer_takes_no_memory)
{
    gpuhal *gpu = open_or_fail(NULL);
    gpuhal_device *owner = select_or_fail(gpu, "cpu:0");
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 256u << 20, .export_kinds = POINTER};
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        gpuhal_handle_kind kind = 0;
        gpuhal_device *user = gpuhal_device_at(gpu, d);
        gpuhal_buffer *original = NULL, *shared = NULL;
        uint64_t most = UINT64_MAX;
        (void)gpuhal_device_u64(user, GPUHAL_FACT_ALLOCATION_MAX_BYTES, &most);
        if (user == owner || most < desc.bytes || gpuhal_share_query(owner, GPUHAL_MEMORY_DEVICE, user, &kind, NULL)) {
            continue;
        }
        assert_ok(gpuhal_device_open(user));
        assert_ok(gpuhal_buffer_create(owner, &desc, &original));
        long before = memory_status_kib("VmRSS:");
        assert_ok(gpuhal_buffer_share(original, user, &shared));
        assert_ok(gpuhal_buffer_synchronize(original));
        long grown = memory_status_kib("VmRSS:") - before;
        if (grown >= 1024) {
            fail_msg("%s: sharing 256 MiB took %ld KiB", gpuhal_device_id(user), grown);
        }
        gpuhal_buffer_release(shared);
        gpuhal_buffer_release(original);
    }
    gpuhal_close(gpu);
}

#include "test_main.h"
