/* Buffers: memory, limits, lifetime, mapping, and lookup by address. */
#include "support/mock.h"
#include "test.h"

#include <pthread.h>

static gpuhal_status create(gpuhal_device *device, uint64_t bytes, gpuhal_buffer **out_buffer)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = bytes};
    return gpuhal_buffer_create(device, &desc, out_buffer);
}

TEST(out_of_memory_reports_requested_free_and_total_and_a_smaller_allocation_works)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.hidden = 1, .total_bytes = 10000}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_buffer *first = gpuhal_mock_buffer(gpu, 0, 6000), *second = first;
    assert_int_equal(create(gpuhal_device_at(gpu, 0), 5000, &second), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_null(second);
    const gpuhal_error *error = gpuhal_last_error();
    assert_int_equal(error->bytes_asked, 5000);
    assert_int_equal(error->bytes_free, 4000);
    assert_int_equal(error->bytes_total, 10000);
    assert_string_equal(error->device, "mock:0");
    assert_string_equal(error->vendor_call, "mockAllocate");
    assert_int_equal(error->vendor_code, 2);
    assert_int_equal(create(gpuhal_device_at(gpu, 0), 4000, &second), GPUHAL_OK);
    gpuhal_buffer_release(first);
    gpuhal_buffer_release(second);
    gpuhal_close(gpu);
}

TEST(the_memory_limit_of_a_device_holds_and_is_given_back_on_release)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2};
    gpuhal *gpu = gpuhal_mock_open(&(gpuhal_config){.memory_limit_bytes = 1000}, 0);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 700), *other = NULL;
    assert_int_equal(create(device, 301, &other), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(gpuhal_last_error()->bytes_asked, 301);
    assert_int_equal(gpuhal_last_error()->bytes_free, 300);
    assert_int_equal(gpuhal_last_error()->bytes_total, 1000);
    assert_int_equal(create(device, 300, &other), GPUHAL_OK);
    gpuhal_buffer_release(other);
    gpuhal_buffer_release(buffer);
    assert_int_equal(create(device, 1000, &buffer), GPUHAL_OK);
    gpuhal_buffer_release(buffer);
    assert_int_equal(gpuhal_device_limit_memory(gpuhal_device_at(gpu, 1), 0), GPUHAL_OK);
    assert_int_equal(create(gpuhal_device_at(gpu, 1), 100000, &buffer), GPUHAL_OK);
    gpuhal_buffer_release(buffer);
    assert_int_equal(create(device, UINT64_MAX, &buffer), GPUHAL_ERROR_OUT_OF_MEMORY);
    gpuhal_close(gpu);
}

TEST(above_the_largest_allocation_the_answer_is_too_large)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.allocation_max = 4096, .copy_alignment = 4}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_buffer *buffer = NULL;
    assert_int_equal(create(gpuhal_device_at(gpu, 0), 4097, &buffer), GPUHAL_ERROR_TOO_LARGE);
    assert_int_equal(gpuhal_last_error()->bytes_asked, 4097);
    assert_int_equal(gpuhal_last_error()->bytes_total, 4096);
    assert_int_equal(create(gpuhal_device_at(gpu, 0), UINT64_MAX, &buffer), GPUHAL_ERROR_TOO_LARGE);
    assert_int_equal(create(gpuhal_device_at(gpu, 0), 4095, &buffer), GPUHAL_OK);
    assert_int_equal(gpuhal_buffer_bytes(buffer), 4095);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

/* The mock returns addresses that are 64 bytes after a multiple of the requested alignment. */
TEST(memory_that_a_plugin_did_not_align_as_asked_for_is_given_back_and_refused)
{
    for (uint32_t staging = 0; staging < 2; staging++) {
        gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.ignores_alignment = 1}}};
        gpuhal *gpu = gpuhal_mock_open(NULL, 0);
        gpuhal_buffer *buffer = NULL;
        gpuhal_buffer_desc desc = {.size = sizeof desc,
                                   .bytes = 64,
                                   .alignment = 4096,
                                   .kind = staging ? GPUHAL_MEMORY_UPLOAD : GPUHAL_MEMORY_DEVICE};
        assert_int_equal(gpuhal_buffer_create(gpuhal_device_at(gpu, 0), &desc, &buffer), GPUHAL_ERROR_DRIVER);
        assert_null(buffer);
        assert_int_equal(gpuhal_mock.devices[0].allocations, 0);
        desc.alignment = 64;
        assert_int_equal(gpuhal_buffer_create(gpuhal_device_at(gpu, 0), &desc, &buffer), GPUHAL_OK);
        gpuhal_buffer_release(buffer);
        gpuhal_close(gpu);
    }
}

TEST(bad_descriptions_are_invalid_and_missing_kinds_not_supported)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.no_staging_kinds = 1}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    gpuhal_buffer *buffer = NULL;
    const gpuhal_buffer_desc good = {.size = sizeof good, .bytes = 8}, no_size = {.bytes = 8},
                             empty = {.size = sizeof empty}, odd = {.size = sizeof odd, .bytes = 8, .alignment = 3},
                             kind = {.size = sizeof kind, .kind = 9, .bytes = 8},
                             upload = {.size = sizeof upload, .kind = GPUHAL_MEMORY_UPLOAD, .bytes = 8};
    assert_int_equal(gpuhal_buffer_create(NULL, &good, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_create(device, NULL, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_create(device, &good, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_create(device, &no_size, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_create(device, &empty, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_create(device, &odd, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_create(device, &kind, &buffer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_create(device, &upload, &buffer), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_null(buffer);
    gpuhal_buffer_release(NULL);
    assert_null(gpuhal_buffer_retain(NULL));
    assert_int_equal(gpuhal_buffer_bytes(NULL), 0);
    assert_null(gpuhal_buffer_host(NULL));
    assert_null(gpuhal_buffer_device(NULL));
    gpuhal_close(gpu);
}

TEST(a_structure_of_an_older_program_is_read_as_far_as_it_goes)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_buffer_desc desc = {.size = offsetof(gpuhal_buffer_desc, alignment), .bytes = 8, .alignment = 3};
    gpuhal_buffer *buffer = NULL;
    assert_int_equal(gpuhal_buffer_create(gpuhal_device_at(gpu, 0), &desc, &buffer), GPUHAL_OK);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

TEST(a_buffer_outlives_the_close_of_its_gpuhal_object)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.hidden = 1}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 16);
    unsigned char got = 0;
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_mock.devices[0].openings, 1);
    assert_int_equal(gpuhal_write(NULL, buffer, 3, "x", 1), GPUHAL_OK);
    assert_int_equal(gpuhal_read(NULL, &got, buffer, 3, 1), GPUHAL_OK);
    assert_int_equal(got, 'x');
    gpuhal_buffer_release(buffer);
    assert_int_equal(gpuhal_mock.devices[0].openings, 0);
    assert_int_equal(gpuhal_mock.devices[0].allocations, 0);
}

/* Steps of 77 visit all 200 buffers in mixed order. */
TEST(every_buffer_that_is_left_is_found_while_others_come_and_go)
{
    enum { COUNT = 200 };
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_buffer *buffers[COUNT] = {NULL}, *found = NULL;
    uint64_t offset = 9;
    for (int step = 0; step < 3 * COUNT; step++) {
        const int at = step * 77 % COUNT, probed = step * 31 % COUNT;
        if (buffers[at]) {
            const uint64_t gone = gpuhal_buffer_address(buffers[at]);
            gpuhal_buffer_release(buffers[at]);
            buffers[at] = NULL;
            assert_int_equal(gpuhal_buffer_find(gpu, gone, &found, &offset), GPUHAL_ERROR_NOT_FOUND);
        } else {
            buffers[at] = gpuhal_mock_buffer(gpu, 0, 1 + (uint64_t)step * 7 % 5000);
        }
        if (buffers[probed]) {
            assert_int_equal(gpuhal_buffer_find(gpu, gpuhal_buffer_address(buffers[probed]), &found, &offset),
                             GPUHAL_OK);
            assert_ptr_equal(found, buffers[probed]);
            gpuhal_buffer_release(found);
        }
    }
    for (int i = 0; i < COUNT; i++) {
        gpuhal_buffer_release(buffers[i]);
    }
    gpuhal_close(gpu);
}

TEST(an_address_inside_a_buffer_finds_it_and_one_outside_finds_nothing)
{
    enum { COUNT = 200 };
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_buffer *buffers[COUNT], *found = NULL;
    uint64_t offset = 9;
    for (int i = 0; i < COUNT; i++) {
        buffers[i] = gpuhal_mock_buffer(gpu, 0, 1 + (uint64_t)i * 7 % 5000);
    }
    for (int i = 0; i < COUNT; i++) {
        uint64_t begin = gpuhal_buffer_address(buffers[i]), last = gpuhal_buffer_bytes(buffers[i]) - 1;
        assert_int_equal(gpuhal_buffer_find(gpu, begin + last, &found, &offset), GPUHAL_OK);
        assert_ptr_equal(found, buffers[i]);
        assert_int_equal(offset, last);
        gpuhal_buffer_release(found);
        assert_int_equal(gpuhal_buffer_find(gpu, begin, &found, &offset), GPUHAL_OK);
        assert_ptr_equal(found, buffers[i]);
        assert_int_equal(offset, 0);
        gpuhal_buffer_release(found);
    }
    uint64_t gone = gpuhal_buffer_address(buffers[0]);
    for (int i = 0; i < COUNT; i++) {
        gpuhal_buffer_release(buffers[i]);
    }
    assert_int_equal(gpuhal_buffer_find(gpu, gone, &found, &offset), GPUHAL_ERROR_NOT_FOUND);
    assert_null(found);
    assert_int_equal(gpuhal_buffer_find(NULL, gone, &found, &offset), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_close(gpu);
}

/* Checks one device. A device with map slots and a device with host addresses must behave alike. */
static void check_mapping(uint32_t index)
{
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, index, 100), *other = gpuhal_mock_buffer(gpu, index, 100);
    void *pointer = NULL, *second = NULL;
    unsigned char got[4] = {0};
    assert_int_equal(gpuhal_write(NULL, buffer, 0, "abcdefgh", 8), GPUHAL_OK);
    assert_int_equal(gpuhal_buffer_map(buffer, 2, 4, GPUHAL_ACCESS_READ | GPUHAL_ACCESS_WRITE, &pointer), GPUHAL_OK);
    assert_memory_equal(pointer, "cdef", 4);
    assert_int_equal(gpuhal_buffer_map(buffer, 0, 1, GPUHAL_ACCESS_READ, &second), GPUHAL_ERROR_BUSY);
    assert_null(second);
    assert_int_equal(gpuhal_write(NULL, buffer, 0, "x", 1), GPUHAL_ERROR_BUSY);
    assert_int_equal(gpuhal_copy(NULL, other, 0, buffer, 0, 1), GPUHAL_ERROR_BUSY);
    assert_int_equal(gpuhal_copy(NULL, buffer, 0, other, 0, 1), GPUHAL_ERROR_BUSY);
    assert_int_equal(gpuhal_fill(NULL, buffer, 0, 1, 0, 1), GPUHAL_ERROR_BUSY);
    memcpy(pointer, "WXYZ", 4);
    assert_int_equal(gpuhal_buffer_unmap(buffer, (char *)pointer + 1), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_unmap(buffer, pointer), GPUHAL_OK);
    assert_int_equal(gpuhal_buffer_unmap(buffer, pointer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_read(NULL, got, buffer, 2, 4), GPUHAL_OK);
    assert_memory_equal(got, "WXYZ", 4);
    assert_int_equal(gpuhal_copy(NULL, other, 0, buffer, 0, 100), GPUHAL_OK);
    assert_int_equal(gpuhal_buffer_map(buffer, 97, 4, GPUHAL_ACCESS_READ, &pointer), GPUHAL_ERROR_OUT_OF_RANGE);
    assert_int_equal(gpuhal_buffer_map(buffer, UINT64_MAX, 4, GPUHAL_ACCESS_READ, &pointer), GPUHAL_ERROR_OUT_OF_RANGE);
    assert_int_equal(gpuhal_buffer_map(buffer, 0, 0, GPUHAL_ACCESS_READ, &pointer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_map(buffer, 0, 4, 0, &pointer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_map(buffer, 0, 4, 64, &pointer), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_buffer_map(NULL, 0, 4, GPUHAL_ACCESS_READ, &pointer), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_buffer_release(buffer);
    gpuhal_buffer_release(other);
    gpuhal_close(gpu);
}

TEST(mapping_shows_the_bytes_and_refuses_transfers_meanwhile)
{
    gpuhal_mock = (gpuhal_mock_state){
        .count = 3, .devices = {{.name = "plain"}, {.hidden = 1, .mappable = 1}, {.not_coherent = 1}}};
    check_mapping(0);
    check_mapping(1);
    check_mapping(2);
    assert_int_equal(gpuhal_mock.devices[1].maps, 0);
}

/* Applications that compute in host-addressable memory need this fact to know whether they must map buffers. */
TEST(a_buffer_is_coherent_if_its_memory_is_and_has_a_host_address)
{
    gpuhal_mock = (gpuhal_mock_state){
        .count = 3, .devices = {{.name = "plain"}, {.hidden = 1, .mappable = 1}, {.not_coherent = 1}}};
    static const struct {
        uint32_t device;
        gpuhal_memory_kind kind;
        int32_t coherent;
    } wanted[] = {
        {0, GPUHAL_MEMORY_DEVICE, 1}, {0, GPUHAL_MEMORY_UPLOAD, 1},   {1, GPUHAL_MEMORY_DEVICE, 0},
        {1, GPUHAL_MEMORY_UPLOAD, 1}, {2, GPUHAL_MEMORY_READBACK, 0}, {2, GPUHAL_MEMORY_DEVICE, 0},
    };
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        gpuhal_device *device = gpuhal_device_at(gpu, wanted[i].device);
        const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 64, .kind = wanted[i].kind};
        gpuhal_buffer *buffer = NULL;
        assert_int_equal(gpuhal_buffer_create(device, &desc, &buffer), GPUHAL_OK);
        assert_int_equal(gpuhal_buffer_is_coherent(buffer), wanted[i].coherent);
        assert_true(!wanted[i].coherent || gpuhal_buffer_host(buffer));
        gpuhal_buffer_release(buffer);
    }
    assert_int_equal(gpuhal_buffer_is_coherent(NULL), 0);
    gpuhal_close(gpu);
}

static gpuhal_status create_kind(gpuhal *gpu, uint32_t device, uint32_t export_kinds, gpuhal_buffer **out_buffer)
{
    const gpuhal_buffer_desc desc = {
        .size = sizeof desc, .bytes = 1 << 20, .kind = GPUHAL_MEMORY_MIGRATING, .export_kinds = export_kinds};
    return gpuhal_buffer_create(gpuhal_device_at(gpu, device), &desc, out_buffer);
}

TEST(migrating_memory_has_one_coherent_address_and_no_other_driver_imports_it)
{
    const uint32_t pointer = 1u << GPUHAL_HANDLE_HOST_POINTER;
    gpuhal_mock = (gpuhal_mock_state){.count = 5,
                                      .devices = {{.migrating = 1, .export_kinds = pointer},
                                                  {.hidden = 1, .no_read_write = 1, .import_kinds = pointer},
                                                  {.migrating = 1, .own_addresses = 1},
                                                  {.migrating = 1, .not_coherent = 1},
                                                  {.name = "without"}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_device *importer = gpuhal_device_at(gpu, 1);
    gpuhal_buffer *buffer = NULL, *shared = NULL;
    gpuhal_handle handle = {.size = sizeof handle};
    gpuhal_handle_kind kind = 0;
    const char *why = "";
    assert_ok(create_kind(gpu, 0, 0, &buffer));
    assert_int_equal(gpuhal_buffer_address(buffer), (uintptr_t)gpuhal_buffer_host(buffer));
    assert_int_equal(gpuhal_buffer_is_coherent(buffer), 1);
    assert_int_equal(gpuhal_share_query(gpuhal_device_at(gpu, 0), GPUHAL_MEMORY_MIGRATING, importer, &kind, &why),
                     GPUHAL_ERROR_NOT_SUPPORTED);
    assert_non_null(strstr(why, "the pages of memory of kind migrating of mock:0 may move"));
    assert_int_equal(gpuhal_buffer_share(buffer, importer, &shared), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(gpuhal_buffer_export(buffer, GPUHAL_HANDLE_HOST_POINTER, &handle), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(create_kind(gpu, 0, pointer, &shared), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "cannot be shared as host_pointer: its pages may move"));
    gpuhal_buffer *far = gpuhal_mock_buffer(gpu, 1, 1 << 20);
    assert_ok(gpuhal_copy(NULL, far, 0, buffer, 0, 1 << 20));
    assert_ok(gpuhal_copy(NULL, buffer, 0, far, 0, 1 << 20));
    assert_int_equal(gpuhal_mock.devices[1].imports, 0);
    gpuhal_buffer_release(far);
    gpuhal_buffer_release(buffer);
    assert_int_equal(create_kind(gpu, 2, 0, &buffer), GPUHAL_ERROR_DRIVER);
    assert_int_equal(create_kind(gpu, 3, 0, &buffer), GPUHAL_ERROR_DRIVER);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "migrating memory that is not coherent"));
    assert_int_equal(create_kind(gpu, 4, 0, &buffer), GPUHAL_ERROR_NOT_SUPPORTED);
    const gpuhal_pool_desc desc = {.size = sizeof desc, .kind = GPUHAL_MEMORY_MIGRATING};
    gpuhal_pool *pool = NULL;
    assert_ok(gpuhal_pool_create(gpuhal_device_at(gpu, 0), &desc, &pool));
    assert_ok(gpuhal_pool_allocate(pool, NULL, 1000, 0, 0, &buffer));
    assert_int_equal(gpuhal_buffer_address(buffer), (uintptr_t)gpuhal_buffer_host(buffer));
    gpuhal_buffer_release(buffer);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
}

static void *unmap(void *user)
{
    gpuhal_buffer *buffer = ((gpuhal_buffer **)user)[0];
    return (void *)(intptr_t)(gpuhal_buffer_unmap(buffer, ((void **)user)[1]) == GPUHAL_OK);
}

TEST(of_two_threads_that_unmap_at_once_one_does)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.hidden = 1, .mappable = 1}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 64);
    for (int round = 0; round < 200; round++) {
        void *pair[2] = {buffer, NULL}, *first = NULL, *second = NULL;
        pthread_t threads[2];
        assert_int_equal(gpuhal_buffer_map(buffer, 0, 64, GPUHAL_ACCESS_WRITE, &pair[1]), GPUHAL_OK);
        assert_int_equal(pthread_create(&threads[0], NULL, unmap, pair), 0);
        assert_int_equal(pthread_create(&threads[1], NULL, unmap, pair), 0);
        pthread_join(threads[0], &first);
        pthread_join(threads[1], &second);
        assert_int_equal((intptr_t)first + (intptr_t)second, 1);
    }
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

TEST(a_device_without_any_way_to_map_says_so)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.hidden = 1}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 100);
    void *pointer = buffer;
    assert_int_equal(gpuhal_buffer_map(buffer, 0, 1, GPUHAL_ACCESS_READ, &pointer), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_null(pointer);
    gpuhal_native native = {.size = sizeof native};
    assert_int_equal(gpuhal_buffer_native(buffer, &native), GPUHAL_ERROR_NOT_SUPPORTED);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

typedef struct race {
    gpuhal *gpu;
    _Atomic uint64_t address;
    _Atomic int stop;
} race;

static void *find_again_and_again(void *user)
{
    race *r = user;
    while (!r->stop) {
        gpuhal_buffer *found = NULL;
        uint64_t offset = 0;
        if (gpuhal_buffer_find(r->gpu, r->address, &found, &offset) == GPUHAL_OK) {
            assert_true(gpuhal_buffer_bytes(found) == 64);
            gpuhal_buffer_release(found);
        }
    }
    return NULL;
}

TEST(finding_races_with_releasing_and_never_sees_a_freed_buffer)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    race r = {.gpu = gpuhal_mock_open(NULL, 0)};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, find_again_and_again, &r), 0);
    for (int i = 0; i < 3000; i++) {
        gpuhal_buffer *buffer = gpuhal_mock_buffer(r.gpu, 0, 64);
        r.address = gpuhal_buffer_address(buffer) + 5;
        gpuhal_buffer_release(buffer);
    }
    r.stop = 1;
    pthread_join(thread, NULL);
    gpuhal_close(r.gpu);
    assert_int_equal(gpuhal_mock.devices[0].allocations, 0);
}

enum { THREADS = 4, HELD = 32, ROUNDS = 4000 };

static void *come_and_go(void *user)
{
    gpuhal *gpu = user;
    gpuhal_buffer *held[HELD] = {NULL};
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 64};
    intptr_t wrong = 0;
    for (unsigned i = 0; i < ROUNDS + HELD; i++) {
        gpuhal_buffer **place = &held[i % HELD], *found = NULL;
        uint64_t offset = 0;
        if (*place) {
            wrong += gpuhal_buffer_find(gpu, gpuhal_buffer_address(*place) + 9, &found, &offset) != GPUHAL_OK ||
                     found != *place || offset != 9;
            gpuhal_buffer_release(found);
            gpuhal_buffer_release(*place);
            *place = NULL;
        }
        wrong += i < ROUNDS && gpuhal_buffer_create(gpuhal_device_at(gpu, 0), &desc, place) != GPUHAL_OK;
    }
    return (void *)wrong;
}

TEST(buffers_that_come_and_go_in_several_threads_are_each_found)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, come_and_go, gpu), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_ptr_equal(wrong, NULL);
    }
    gpuhal_close(gpu);
    assert_int_equal(gpuhal_mock.devices[0].allocations, 0);
}

/* On a GPU with a separate address space, page-locked memory has a different address than on the host. */
TEST(a_buffer_is_found_by_its_host_address_too_if_the_device_has_another)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.own_addresses = 1}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, 1000), *found = NULL;
    uint64_t offset = 0;
    assert_true(gpuhal_buffer_address(buffer) != (uintptr_t)gpuhal_buffer_host(buffer));
    assert_int_equal(gpuhal_buffer_find(gpu, gpuhal_buffer_address(buffer) + 999, &found, &offset), GPUHAL_OK);
    assert_ptr_equal(found, buffer);
    assert_int_equal(offset, 999);
    gpuhal_buffer_release(found);
    assert_int_equal(gpuhal_buffer_find(gpu, (uintptr_t)gpuhal_buffer_host(buffer) + 7, &found, &offset), GPUHAL_OK);
    assert_ptr_equal(found, buffer);
    assert_int_equal(offset, 7);
    gpuhal_buffer_release(found);
    const uint64_t gone[] = {gpuhal_buffer_address(buffer), (uintptr_t)gpuhal_buffer_host(buffer)};
    gpuhal_buffer_release(buffer);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gpuhal_buffer_find(gpu, gone[i], &found, &offset), GPUHAL_ERROR_NOT_FOUND);
    }
    gpuhal_close(gpu);
}

TEST(a_host_address_that_is_not_a_multiple_of_64_is_refused_as_a_broken_promise)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.skewed = 1}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 1000};
    gpuhal_buffer *buffer = NULL;
    assert_int_equal(gpuhal_buffer_create(gpuhal_device_at(gpu, 0), &desc, &buffer), GPUHAL_ERROR_DRIVER);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "64"));
    assert_int_equal(gpuhal_mock.devices[0].allocations, 0);
    gpuhal_close(gpu);
}

#include "test_main.h"
