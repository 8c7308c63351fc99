/* Tests links between devices of one vendor, with the vendor's fake: link reports, copies over verified links, and
 * links that fail, or report success but do not copy. */
#include "warnings.h"
#include "support/random.h"

#include <pthread.h>

#define PEER_COPY   CALLED(MemcpyPeerAsync)
#define PEER_ENABLE OF("cuCtxEnablePeerAccess", "hipDeviceEnablePeerAccess")
#define OWN_KIND    OF(GPUHAL_LINK_NVLINK, GPUHAL_LINK_XGMI)
#define MACHINE     GPUHAL_SOURCE_DIRECTORY "/tests/fakes/" BACKEND "/eight_devices.machine"

enum { BYTES = 300001 };

static gpuhal_device *device_number(gpuhal *gpu, unsigned number)
{
    char id[32];
    snprintf(id, sizeof id, BACKEND ":%u", number);
    return select_or_fail(gpu, id);
}

static uint64_t link_number(gpuhal_device *from, gpuhal_device *to, gpuhal_key key)
{
    uint64_t value = 0;
    if (gpuhal_link_u64(from, to, key, &value)) {
        fail_msg("%s", gpuhal_last_error()->sentence);
    }
    return value;
}

/* Copies between new buffers at odd offsets. Checks the copied bytes and the bytes beside them. Returns the path that
 * later copies use. */
static gpuhal_path copy_exactly(gpuhal_device *from_device, gpuhal_device *to_device, uint32_t seed)
{
    unsigned char *sent = bytes_of_seed(seed, BYTES), *got = bytes_of_seed(seed + 1, BYTES);
    gpuhal_buffer *from = buffer_or_fail(from_device, GPUHAL_MEMORY_DEVICE, BYTES);
    gpuhal_buffer *to = buffer_or_fail(to_device, GPUHAL_MEMORY_DEVICE, BYTES);
    gpuhal_path path = 0;
    assert_ok(gpuhal_write(NULL, from, 0, sent, BYTES));
    assert_ok(gpuhal_fill(NULL, to, 0, BYTES, 0x77, 1));
    assert_ok(gpuhal_copy(NULL, to, 7, from, 3, BYTES - 11));
    assert_ok(gpuhal_copy_path(to, from, &path));
    assert_ok(gpuhal_read(NULL, got, to, 0, BYTES));
    assert_memory_equal(got, "wwwwwww", 7);
    assert_memory_equal(got + 7, sent + 3, BYTES - 11);
    assert_memory_equal(got + BYTES - 4, "wwww", 4);
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    free(sent);
    free(got);
    return path;
}

/* ---- working links */

TEST(copies_between_two_devices_go_over_their_link_once_it_was_proven)
{
    use_machine("devices 2; link 0 1 " OWN_LINK);
    warnings said = {0};
    gpuhal *gpu = open_listening(BACKEND, &said);
    gpuhal_device *one = device_number(gpu, 0), *other = device_number(gpu, 1);
    gpuhal_buffer *from = buffer_or_fail(one, GPUHAL_MEMORY_DEVICE, 64),
                  *to = buffer_or_fail(other, GPUHAL_MEMORY_DEVICE, 64);
    gpuhal_path path = 0;
    assert_ok(gpuhal_copy_path(to, from, &path));
    assert_int_equal(path, GPUHAL_PATH_STAGED);
    assert_int_equal(copy_exactly(one, other, 1), GPUHAL_PATH_PEER);
    assert_ok(gpuhal_copy_path(to, from, &path));
    assert_int_equal(path, GPUHAL_PATH_PEER);
    const uint64_t before = calls_of(PEER_COPY);
    assert_int_equal(copy_exactly(one, other, 2), GPUHAL_PATH_PEER);
    assert_int_equal(calls_of(PEER_COPY), before + 1);
    assert_int_equal(copy_exactly(other, one, 3), GPUHAL_PATH_PEER);
    assert_int_equal(said.count, 0);
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    close_clean(gpu);
}

TEST(a_link_is_reported_before_and_measured_after_it_was_verified)
{
    use_machine("devices 2; link 0 1 " OWN_LINK "; slow_us 50");
    warnings said = {0};
    gpuhal *gpu = open_listening(BACKEND, &said);
    gpuhal_device *one = device_number(gpu, 0), *other = device_number(gpu, 1);
    static const gpuhal_key later[] = {GPUHAL_LINK_VERIFIED, GPUHAL_LINK_PATH, GPUHAL_LINK_MEASURED_BYTES_PER_SECOND,
                                       GPUHAL_LINK_MEASURED_LATENCY_NS};
    const char *why = NULL;
    uint64_t value = 1;
    assert_int_equal(link_number(one, other, GPUHAL_LINK_KIND), OWN_KIND);
    assert_int_equal(link_number(one, other, GPUHAL_LINK_PEER_ADVERTISED), 1);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(gpuhal_link_u64(one, other, later[i], &value), GPUHAL_ERROR_NOT_SUPPORTED);
        assert_int_equal(gpuhal_link_missing(one, other, later[i], &why), GPUHAL_MISSING_NOT_READ);
        expect_word(why, "gpuhal_link_verify");
    }
    assert_int_equal(fake_report_get()->contexts_created, 0);
    assert_ok(gpuhal_link_verify(one, other));
    assert_int_equal(link_number(one, other, GPUHAL_LINK_VERIFIED), 1);
    assert_int_equal(link_number(one, other, GPUHAL_LINK_PATH), GPUHAL_PATH_PEER);
    assert_true(link_number(one, other, GPUHAL_LINK_MEASURED_BYTES_PER_SECOND) > 0);
    assert_true(link_number(one, other, GPUHAL_LINK_MEASURED_LATENCY_NS) >= 50000);
    assert_int_equal(gpuhal_link_missing(other, one, GPUHAL_LINK_VERIFIED, NULL), GPUHAL_MISSING_NOT_READ);
    close_clean(gpu);
}

TEST(devices_that_do_not_reach_each_other_are_staged_without_a_warning)
{
    use_machine("devices 2; link 0 1 system");
    warnings said = {0};
    gpuhal *gpu = open_listening(BACKEND, &said);
    gpuhal_device *one = device_number(gpu, 0), *other = device_number(gpu, 1);
    assert_int_equal(copy_exactly(one, other, 1), GPUHAL_PATH_STAGED);
    assert_int_equal(link_number(one, other, GPUHAL_LINK_PEER_ADVERTISED), 0);
    assert_ok(gpuhal_link_verify(one, other));
    assert_int_equal(link_number(one, other, GPUHAL_LINK_VERIFIED), 1);
    assert_int_equal(link_number(one, other, GPUHAL_LINK_PATH), GPUHAL_PATH_STAGED);
    assert_int_equal(calls_of(PEER_COPY) + said.count, 0);
    close_clean(gpu);
}

TEST(a_device_and_the_cpu_exchange_data_in_host_memory)
{
    use_machine("devices 1");
    warnings said = {0};
    gpuhal *gpu = open_listening(BACKEND, &said);
    gpuhal_device *one = device_number(gpu, 0), *processor = select_or_fail(gpu, "cpu:0");
    const char *why = NULL;
    assert_int_equal(link_number(one, processor, GPUHAL_LINK_KIND), GPUHAL_LINK_HOST);
    assert_int_equal(gpuhal_link_missing(one, processor, GPUHAL_LINK_PEER_ADVERTISED, &why),
                     GPUHAL_MISSING_NOT_SUPPORTED);
    expect_word(why, "two backends");
    assert_ok(gpuhal_link_verify(one, processor));
    assert_ok(gpuhal_link_verify(processor, one));
    assert_int_equal(link_number(processor, one, GPUHAL_LINK_PATH), GPUHAL_PATH_SHARED);
    close_clean(gpu);
}

TEST(every_pair_of_eight_devices_with_links_of_several_kinds_copies_byte_exactly)
{
    use_machine(MACHINE);
    warnings said = {0};
    gpuhal *gpu = open_listening(BACKEND, &said);
    const uint32_t count = gpuhal_device_count(gpu);
    unsigned of_kind[16] = {0}, of_path[8] = {0};
    assert_true(count >= 9);
    for (uint32_t i = 0; i < count * count; i++) {
        gpuhal_device *from = gpuhal_device_at(gpu, i / count), *to = gpuhal_device_at(gpu, i % count);
        if (from != to) {
            uint64_t kind = link_number(from, to, GPUHAL_LINK_KIND), advertised = 0;
            gpuhal_path path = copy_exactly(from, to, i);
            gpuhal_link_u64(from, to, GPUHAL_LINK_PEER_ADVERTISED, &advertised);
            assert_int_equal(path == GPUHAL_PATH_PEER, advertised);
            assert_true(kind < 16);
            of_kind[kind]++;
            of_path[path]++;
        }
    }
    assert_int_equal(of_kind[OWN_KIND], 12);
    assert_int_equal(of_kind[GPUHAL_LINK_HOST] >= 2 * (count - 1), 1);
    assert_true(of_path[GPUHAL_PATH_PEER] > 12 && of_path[GPUHAL_PATH_STAGED] > 0);
    assert_int_equal(said.count, 0);
    close_clean(gpu);
}

typedef struct copier {
    gpuhal_device *from, *to;
    uint32_t seed;
} copier;

static void *cross_often(void *user)
{
    const copier *own = user;
    for (uint32_t i = 0; i < 5; i++) {
        copy_exactly(own->from, own->to, own->seed + i);
    }
    return NULL;
}

TEST(threads_that_find_out_at_once_switch_access_on_once_for_each_direction)
{
    enum { THREADS = 8 };
    use_machine("devices 2; slow_us 200");
    warnings said = {0};
    gpuhal *gpu = open_listening(BACKEND, &said);
    gpuhal_device *one = device_number(gpu, 0), *other = device_number(gpu, 1);
    pthread_t threads[THREADS];
    copier own[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        own[i] = (copier){i % 2 ? one : other, i % 2 ? other : one, 100 * i};
        assert_int_equal(pthread_create(&threads[i], NULL, cross_often, &own[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(copy_exactly(one, other, 1), GPUHAL_PATH_PEER);
    assert_int_equal(copy_exactly(other, one, 1), GPUHAL_PATH_PEER);
    assert_int_equal(calls_of(PEER_ENABLE), 4);
    assert_int_equal(said.count, 0);
    close_clean(gpu);
}

TEST(a_gpuhal_object_that_is_closed_leaves_the_links_of_others_alone)
{
    use_machine("devices 2");
    warnings said = {0};
    gpuhal *gpu = open_listening(BACKEND, &said), *second = open_listening(BACKEND, &said);
    assert_int_equal(copy_exactly(device_number(gpu, 0), device_number(gpu, 1), 1), GPUHAL_PATH_PEER);
    assert_int_equal(copy_exactly(device_number(second, 0), device_number(second, 1), 2), GPUHAL_PATH_PEER);
    gpuhal_close(gpu);
    assert_int_equal(copy_exactly(device_number(second, 0), device_number(second, 1), 3), GPUHAL_PATH_PEER);
    gpuhal_close(second);
    expect_clean();
}

TEST(a_link_that_could_not_be_tried_for_lack_of_memory_is_tried_again)
{
    use_machine("devices 2; memory * 8M");
    warnings said = {0};
    gpuhal *gpu = open_listening(BACKEND, &said);
    gpuhal_device *one = device_number(gpu, 0), *other = device_number(gpu, 1);
    gpuhal_buffer *from = buffer_or_fail(one, GPUHAL_MEMORY_DEVICE, 64),
                  *to = buffer_or_fail(other, GPUHAL_MEMORY_DEVICE, 64);
    gpuhal_buffer *hogs[64] = {NULL};
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 256u << 10};
    char got[8] = "";
    gpuhal_path path = 0;
    for (size_t i = 0; i < 64 && gpuhal_buffer_create(other, &desc, &hogs[i]) == GPUHAL_OK; i++) {
    }
    assert_ok(gpuhal_write(NULL, from, 1, "seven..", 8));
    assert_ok(gpuhal_copy(NULL, to, 3, from, 1, 8));
    assert_ok(gpuhal_read(NULL, got, to, 3, 8));
    assert_string_equal(got, "seven..");
    assert_ok(gpuhal_copy_path(to, from, &path));
    assert_int_equal(path, GPUHAL_PATH_STAGED);
    for (size_t i = 0; i < 64; i++) {
        gpuhal_buffer_release(hogs[i]);
    }
    assert_ok(gpuhal_copy(NULL, to, 3, from, 1, 8));
    assert_ok(gpuhal_copy_path(to, from, &path));
    assert_int_equal(path, GPUHAL_PATH_PEER);
    assert_int_equal(said.count, 0);
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    close_clean(gpu);
}

/* ---- faulty links */

TEST(a_link_that_lies_is_warned_of_once_and_copies_stay_right)
{
    use_machine("devices 2; link 0 1 " OWN_LINK "; silent 0 1");
    warnings said = {0};
    gpuhal *gpu = open_listening(BACKEND, &said);
    gpuhal_device *one = device_number(gpu, 0), *other = device_number(gpu, 1);
    assert_int_equal(link_number(one, other, GPUHAL_LINK_PEER_ADVERTISED), 1);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(copy_exactly(one, other, i), GPUHAL_PATH_STAGED);
    }
    assert_int_equal(said.count, 1);
    expect_word(said.last, "from " BACKEND ":0 to " BACKEND ":1 take another path");
    assert_int_equal(copy_exactly(other, one, 9), GPUHAL_PATH_STAGED);
    assert_int_equal(said.count, 2);
    assert_int_equal(gpuhal_link_verify(one, other), GPUHAL_ERROR_DRIVER);
    expect_word(gpuhal_last_error()->sentence, BACKEND ":1 can access memory of " BACKEND ":0");
    assert_int_equal(link_number(one, other, GPUHAL_LINK_VERIFIED), 0);
    assert_int_equal(link_number(one, other, GPUHAL_LINK_PATH), GPUHAL_PATH_STAGED);
    assert_int_equal(said.count, 2);
    close_clean(gpu);
}

TEST(a_link_with_failing_copies_is_broken_and_quotes_the_driver)
{
    use_machine("devices 2; fail " PEER_COPY " 1+ 1");
    warnings said = {0};
    gpuhal *gpu = open_listening(BACKEND, &said);
    gpuhal_device *one = device_number(gpu, 0), *other = device_number(gpu, 1);
    assert_int_equal(copy_exactly(one, other, 1), GPUHAL_PATH_STAGED);
    assert_int_equal(said.count, 1);
    expect_word(said.last, PEER_COPY);
    assert_int_equal(gpuhal_link_verify(one, other), GPUHAL_ERROR_DRIVER);
    expect_word(gpuhal_last_error()->sentence, PEER_COPY);
    close_clean(gpu);
}

TEST(a_driver_that_refuses_access_which_it_advertised_is_not_used_for_it)
{
    use_machine("devices 2; fail " PEER_ENABLE " 1+ 1");
    warnings said = {0};
    gpuhal *gpu = open_listening(BACKEND, &said);
    assert_int_equal(copy_exactly(device_number(gpu, 0), device_number(gpu, 1), 1), GPUHAL_PATH_STAGED);
    assert_int_equal(said.count, 1);
    expect_word(said.last, PEER_ENABLE);
    close_clean(gpu);
}

TEST(questions_that_make_no_sense_are_refused)
{
    use_machine("devices 2");
    warnings said = {0};
    gpuhal *gpu = open_listening(BACKEND, &said), *second = open_listening(BACKEND, &said);
    gpuhal_device *one = device_number(gpu, 0), *other = device_number(gpu, 1), *stranger = device_number(second, 1);
    uint64_t value = 5;
    assert_int_equal(gpuhal_link_u64(one, one, GPUHAL_LINK_KIND, &value), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(value, 0);
    assert_int_equal(gpuhal_link_u64(one, stranger, GPUHAL_LINK_KIND, &value), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_link_u64(NULL, other, GPUHAL_LINK_KIND, &value), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_link_u64(one, other, GPUHAL_LINK_KIND, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_link_u64(one, other, GPUHAL_FACT_MEMORY_TOTAL_BYTES, &value),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_link_verify(one, one), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_link_verify(one, stranger), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_link_verify(one, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_close(gpu);
    gpuhal_close(second);
    expect_clean();
}

#include "test_main.h"
