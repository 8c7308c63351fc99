/* Tests the Vulkan plugin with the fake driver (tests/fakes/vulkan), through the public API: hardware with properties
 * that differ from the test machine's. At the end every test checks the fake for broken Vulkan rules and leaked
 * objects. */
#include "exercise.h"
#include "support/random.h"
#include "fake.h"

enum { BYTES = 70001, STEPS = 60 };

/* ---- devices */

TEST(every_memory_kind_is_byte_exact_on_one_memory_for_all)
{
    session s = begin_session("integrated;reorder");
    exercise_kinds(s.device, BYTES, STEPS, 1);
    end_session(&s);
}

TEST(every_memory_kind_is_byte_exact_if_the_host_cannot_see_device_memory)
{
    session s = begin_session("discrete;reorder");
    gpuhal_buffer *hidden = buffer_or_fail(s.device, GPUHAL_MEMORY_DEVICE, BYTES);
    assert_null(gpuhal_buffer_host(hidden));
    gpuhal_buffer_release(hidden);
    exercise_kinds(s.device, BYTES, STEPS, 2);
    end_session(&s);
}

TEST(sizes_above_the_staging_limit_go_through_in_pieces)
{
    enum { LARGE = 5 * 1024 * 1024 + 3 };
    fake_vulkan fake = fake_vulkan_script("discrete");
    gpuhal *gpu = open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config),
                                                .isolation = GPUHAL_ISOLATION_NEVER,
                                                .backends = "vulkan",
                                                .staging_limit_bytes = 256 * 1024});
    gpuhal_buffer *buffer = buffer_or_fail(select_or_fail(gpu, "vulkan:0"), GPUHAL_MEMORY_DEVICE, LARGE);
    unsigned char *sent = malloc(LARGE), *got = malloc(LARGE);
    assert_true(sent && got);
    fill_randomly(sent, LARGE, 3);
    assert_ok(gpuhal_write(NULL, buffer, 0, sent, LARGE));
    assert_ok(gpuhal_read(NULL, got, buffer, 0, LARGE));
    assert_memory_equal(got, sent, LARGE);
    free(sent);
    free(got);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    fake_vulkan_expect_clean(&fake);
}

TEST(host_memory_that_is_not_coherent_is_byte_exact)
{
    session s = begin_session("discrete;types=d@0,vc@1,vh@1,dv@0;reorder");
    exercise_kinds(s.device, BYTES, STEPS, 4);
    end_session(&s);
}

TEST(device_memory_that_is_not_coherent_is_byte_exact)
{
    session s = begin_session("types=dvh@0,vc@0;atom=256;reorder");
    exercise_kinds(s.device, BYTES, STEPS, 5);
    end_session(&s);
}

TEST(buffers_that_want_memory_of_their_own_get_it)
{
    session s = begin_session("discrete;dedicated");
    exercise_kinds(s.device, BYTES, STEPS / 2, 6);
    end_session(&s);
}

TEST(copies_take_the_family_that_does_nothing_else)
{
    session s = begin_session("discrete;families=gct1,c1,t1/0");
    gpuhal_buffer *one = buffer_or_fail(s.device, GPUHAL_MEMORY_DEVICE, BYTES),
                  *two = buffer_or_fail(s.device, GPUHAL_MEMORY_DEVICE, BYTES);
    exercise_pair(one, two, STEPS, 7);
    assert_true(s.fake.submitted(2) > 0);
    assert_int_equal(s.fake.submitted(0), 0);
    assert_int_equal(s.fake.submitted(1), 0);
    gpuhal_buffer_release(one);
    gpuhal_buffer_release(two);
    end_session(&s);
}

TEST(copies_never_wait_for_a_whole_queue_or_device)
{
    session s = begin_session("discrete");
    exercise_kinds(s.device, BYTES, STEPS / 4, 8);
    assert_int_equal(s.fake.calls("vkQueueWaitIdle"), 0);
    assert_int_equal(s.fake.calls("vkDeviceWaitIdle"), 0);
    end_session(&s);
}

TEST(vulkan_1_1_with_the_extension_works_as_1_2_does)
{
    session s = begin_session("api=1.1;discrete");
    assert_true(gpuhal_device_capabilities(s.device) & GPUHAL_CAPABILITY_QUEUES);
    exercise_kinds(s.device, BYTES, STEPS / 4, 9);
    end_session(&s);
}

TEST(without_any_extension_that_can_be_missed_memory_and_copies_work)
{
    session s = begin_session(
        "discrete;api=1.1;without=VK_KHR_external_memory_fd;without=VK_EXT_external_memory_dma_buf;"
        "without=VK_EXT_external_memory_host;without=VK_EXT_memory_budget;without=VK_EXT_pci_bus_info;"
        "without=VK_EXT_physical_device_drm;without=VK_EXT_host_query_reset;without=VK_KHR_buffer_device_address;"
        "without=VK_KHR_driver_properties");
    const char *why = NULL;
    assert_int_equal(gpuhal_device_missing(s.device, GPUHAL_FACT_PCI_ADDRESS, &why), GPUHAL_MISSING_NOT_SUPPORTED);
    assert_false(gpuhal_device_capabilities(s.device) & (GPUHAL_CAPABILITY_IMPORT | GPUHAL_CAPABILITY_EXPORT));
    exercise_kinds(s.device, BYTES, STEPS / 4, 12);
    end_session(&s);
}

TEST(a_device_without_a_thread_of_its_own_is_byte_exact)
{
    session s = begin_session("discrete;inline;reorder");
    exercise_kinds(s.device, BYTES, STEPS / 4, 13);
    end_session(&s);
}

TEST(a_driver_without_a_loader_gets_no_call_that_only_loaders_serve)
{
    setenv("GPUHAL_VULKAN_LIBRARY", getenv("GPUHAL_FAKE_VULKAN_LIBRARY"), 1);
    session s = begin_session("discrete");
    assert_int_equal(s.fake.calls("vkCreateInstance"), 1);
    exercise_kinds(s.device, BYTES, STEPS / 4, 14);
    end_session(&s);
}

/* ---- facts */

TEST(facts_come_from_the_driver)
{
    session s = begin_session("discrete;vendor=0x10de;name=Test Card");
    const char *text = "";
    uint64_t value = 0;
    assert_ok(gpuhal_device_text(s.device, GPUHAL_FACT_NAME, &text));
    assert_string_equal(text, "Test Card");
    assert_ok(gpuhal_device_text(s.device, GPUHAL_FACT_PCI_ADDRESS, &text));
    assert_string_equal(text, "fa4e:01:00.0");
    assert_ok(gpuhal_device_text(s.device, GPUHAL_FACT_UUID, &text));
    assert_string_equal(text, "66616b65-2064-6576-6963-652075756900");
    assert_ok(gpuhal_device_text(s.device, GPUHAL_FACT_DRM_RENDER_NODE, &text));
    assert_string_equal(text, "226:240");
    assert_ok(gpuhal_device_u64(s.device, GPUHAL_FACT_VENDOR_ID, &value));
    assert_int_equal(value, 0x10de);
    assert_ok(gpuhal_device_u64(s.device, GPUHAL_FACT_TYPE, &value));
    assert_int_equal(value, GPUHAL_DEVICE_GPU);
    assert_ok(gpuhal_device_u64(s.device, GPUHAL_FACT_SOFTWARE, &value));
    assert_int_equal(value, 0);
    assert_ok(gpuhal_device_u64(s.device, GPUHAL_FACT_MEMORY_TOTAL_BYTES, &value));
    assert_int_equal(value, 256 << 20);
    assert_ok(gpuhal_device_u64(s.device, GPUHAL_FACT_ALLOCATION_MAX_COUNT, &value));
    assert_int_equal(value, 4096);
    assert_ok(gpuhal_device_u64(s.device, GPUHAL_FACT_IMPORT_ALIGNMENT_BYTES, &value));
    assert_int_equal(value, 4096);
    end_session(&s);
}

static uint64_t free_bytes(gpuhal_device *device, gpuhal_missing *out_missing)
{
    gpuhal_value value = {.key = GPUHAL_VALUE_MEMORY_FREE_BYTES};
    assert_ok(gpuhal_device_sample(device, 0, &value, 1, NULL));
    *out_missing = value.missing;
    if (value.missing) {
        assert_non_null(strstr(value.why, "VK_EXT_memory_budget"));
    }
    return value.u64;
}

TEST(free_memory_goes_down_with_an_allocation_and_up_again)
{
    session s = begin_session("discrete");
    gpuhal_missing missing = 0;
    const uint64_t before = free_bytes(s.device, &missing);
    assert_int_equal(missing, 0);
    gpuhal_buffer *buffer = buffer_or_fail(s.device, GPUHAL_MEMORY_DEVICE, 64 << 20);
    assert_int_equal(free_bytes(s.device, &missing), before - (64 << 20));
    gpuhal_buffer_release(buffer);
    assert_int_equal(free_bytes(s.device, &missing), before);
    end_session(&s);
}

TEST(free_memory_is_missing_with_the_name_of_the_extension)
{
    session s = begin_session("discrete;without=VK_EXT_memory_budget");
    gpuhal_missing missing = 0;
    (void)free_bytes(s.device, &missing);
    assert_int_equal(missing, GPUHAL_MISSING_NOT_SUPPORTED);
    end_session(&s);
}

TEST(two_devices_with_one_uuid_are_two_devices)
{
    fake_vulkan fake = fake_vulkan_script("discrete;devices=2;same_uuid");
    gpuhal *gpu = open_fake();
    gpuhal_device *devices[2] = {select_or_fail(gpu, "vulkan:0"), select_or_fail(gpu, "vulkan:1")};
    uint32_t numbers[2] = {0};
    for (int d = 0; d < 2; d++) {
        uint32_t preferred = 0;
        assert_ok(gpuhal_device_physical(devices[d], &numbers[d], &preferred));
        assert_int_equal(preferred, 1);
    }
    assert_int_not_equal(numbers[0], numbers[1]);
    gpuhal_buffer *one = buffer_or_fail(devices[0], GPUHAL_MEMORY_DEVICE, BYTES),
                  *two = buffer_or_fail(devices[1], GPUHAL_MEMORY_DEVICE, BYTES);
    exercise_pair(one, two, STEPS, 14);
    gpuhal_buffer_release(one);
    gpuhal_buffer_release(two);
    gpuhal_close(gpu);
    fake_vulkan_expect_clean(&fake);
}

#include "test_main.h"
