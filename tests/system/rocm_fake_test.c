/* Tests the ROCm plugin with the fake runtime, through the public API: device facts and HIP versions. Tests that also
 * apply to CUDA are in vendor_use_test.c. */
#include "exercise.h"
#include "rocm_fake.h"
#include "rocm_tree.h"

TEST(devices_are_listed_with_their_identity_and_no_context_is_made)
{
    use_machine("devices 2; memory 1 512M; name 1 Fake MI210; pci 0 0000:c1:00.0; uuid 0 0123456789abcdef");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *one = select_or_fail(gpu, "rocm:0"), *two = select_or_fail(gpu, "rocm:1");
    expect_text(one, GPUHAL_FACT_NAME, "Fake MI300X");
    expect_text(two, GPUHAL_FACT_NAME, "Fake MI210");
    expect_text(one, GPUHAL_FACT_PCI_ADDRESS, "0000:c1:00.0");
    expect_text(two, GPUHAL_FACT_PCI_ADDRESS, "0000:21:00.0");
    /* the sixteen characters of HIP's UUID */
    expect_text(one, GPUHAL_FACT_UUID, "30313233-3435-3637-3839-616263646566");
    assert_int_equal(number_of(two, GPUHAL_FACT_NATIVE_INDEX), 1);
    assert_int_equal(number_of(two, GPUHAL_FACT_MEMORY_TOTAL_BYTES), 512 * MIB);
    assert_int_equal(number_of(one, GPUHAL_FACT_COMPUTE_UNITS), 304);
    assert_int_equal(number_of(one, GPUHAL_FACT_CLOCK_CORE_MAX_HERTZ), 2100000000);
    assert_int_equal(number_of(one, GPUHAL_FACT_VENDOR_ID), 0x1002);
    assert_int_equal(number_of(one, GPUHAL_FACT_TYPE), GPUHAL_DEVICE_GPU);
    assert_int_equal(number_of(one, GPUHAL_FACT_SOFTWARE), 0);
    assert_string_equal(gpuhal_device_id(select_or_fail(gpu, "auto")), "rocm:1"); /* the device with the most memory */
    assert_int_equal(contexts_ever(), 0);
    gpuhal_close(gpu);
    remove_reports();
}

TEST(chips_without_a_unique_id_have_no_uuid_and_stay_two_devices)
{
    use_machine("devices 2; uuid * none");
    gpuhal *gpu = open_backend(0);
    const char *text = NULL;
    assert_int_not_equal(gpuhal_device_text(select_or_fail(gpu, "rocm:0"), GPUHAL_FACT_UUID, &text), GPUHAL_OK);
    assert_int_not_equal(gpuhal_device_text(select_or_fail(gpu, "rocm:1"), GPUHAL_FACT_UUID, &text), GPUHAL_OK);
    assert_int_equal(report_of_backend(gpu).device_count, 2);
    gpuhal_close(gpu);
    remove_reports();
}

TEST(the_parts_of_a_divided_gpu_have_one_address_and_numbers_and_work)
{
    use_machine("devices 2; partitions 0 3; memory 0 384M");
    gpuhal *gpu = open_backend(0);
    static const char *const ids[] = {"rocm:0", "rocm:1", "rocm:2"}, *const parts[] = {"0", "1", "2"};
    char name[64];
    for (int i = 0; i < 3; i++) {
        gpuhal_device *part = select_or_fail(gpu, ids[i]);
        expect_text(part, GPUHAL_FACT_PCI_ADDRESS, "0000:11:00.0");
        expect_text(part, GPUHAL_FACT_PARTITION, parts[i]);
        snprintf(name, sizeof name, "Fake MI300X partition %d", i); /* no kernel file describes the partitions */
        expect_text(part, GPUHAL_FACT_NAME, name);
        assert_int_equal(number_of(part, GPUHAL_FACT_MEMORY_TOTAL_BYTES), 128 * MIB);
        assert_ok(gpuhal_device_verify(part));
    }
    const char *text = NULL;
    assert_int_not_equal(gpuhal_device_text(select_or_fail(gpu, "rocm:3"), GPUHAL_FACT_PARTITION, &text), GPUHAL_OK);
    close_clean(gpu);
}

/* Puts a partition's topology node of the amdkfd driver. */
static void put_part(unsigned node, unsigned long location, unsigned minor)
{
    char path[96], text[128];
    snprintf(path, sizeof path, "sys/class/kfd/kfd/topology/nodes/%u/properties", node);
    snprintf(text, sizeof text,
             "simd_count 38\ngfx_target_version 90402\nlocation_id %lu\ndomain 0\ndrm_render_minor %u\n", location,
             minor);
    put(path, text);
    snprintf(path, sizeof path, "sys/class/drm/renderD%u/dev", minor);
    snprintf(text, sizeof text, "226:%u\n", minor);
    put(path, text);
}

/* A location contains the partition number either in its lowest bits or in its highest bits. */
TEST(each_part_of_a_divided_gpu_has_the_render_node_of_the_kernel_and_a_name)
{
    use_machine("devices 1; partitions 0 3; memory 0 384M");
    make_tree();
    put_of_device("drm/renderD128/dev", "226:128\n");
    put_part(1, 0x1100, 128);
    put_part(2, 0x1101, 140);
    put_part(3, 2ul << 28 | 0x1100, 139);
    put_of_device("current_compute_partition", "CPX\n");
    put_of_device("current_memory_partition", "NPS1\n");
    gpuhal *gpu = open_backend(0);
    expect_text(select_or_fail(gpu, "rocm:2"), GPUHAL_FACT_NAME, "Fake MI300X CPX/NPS1 partition 2 of 3");
    expect_text(select_or_fail(gpu, "rocm:0"), GPUHAL_FACT_DRM_RENDER_NODE, "226:128");
    expect_text(select_or_fail(gpu, "rocm:1"), GPUHAL_FACT_DRM_RENDER_NODE, "226:140");
    expect_text(select_or_fail(gpu, "rocm:2"), GPUHAL_FACT_DRM_RENDER_NODE, "226:139");
    close_clean(gpu);
    remove_tree();
}

/* Simulates kernels that report the partition number outside the PCI address. HIP reports only the address. */
TEST(devices_that_share_an_address_are_parts_and_keep_apart)
{
    use_machine("devices 3; pci 0 0000:c1:00.0; pci 1 0000:31:00.0; pci 2 0000:c1:00.0");
    gpuhal *gpu = open_backend(0);
    gpuhal_device *one = select_or_fail(gpu, "rocm:0"), *other = select_or_fail(gpu, "rocm:2");
    const char *text = NULL;
    expect_text(one, GPUHAL_FACT_PARTITION, "0");
    expect_text(other, GPUHAL_FACT_PARTITION, "1");
    expect_text(other, GPUHAL_FACT_PCI_ADDRESS, "0000:c1:00.0");
    assert_int_not_equal(gpuhal_device_text(select_or_fail(gpu, "rocm:1"), GPUHAL_FACT_PARTITION, &text), GPUHAL_OK);
    assert_ok(gpuhal_device_verify(one));
    assert_ok(gpuhal_device_verify(other));
    close_clean(gpu);
}

/* ---- versions */

typedef struct runtime_version {
    const char *folder;
    int major;
} runtime_version;

static void expect_version_works(const void *what)
{
    const runtime_version *version = what;
    char number[16];
    use_machine("devices 2; slow_us 20");
    use_runtime(version->folder, version->major);
    gpuhal *gpu = open_backend(0);
    gpuhal_device *device = select_or_fail(gpu, "rocm:1");
    const char *text = NULL;
    snprintf(number, sizeof number, "%d.", version->major);
    assert_ok(gpuhal_device_text(device, GPUHAL_FACT_API_VERSION, &text));
    expect_word(text, number);
    exercise_kinds(device, 100003, 20, 2);
    const bool has_virtual_memory = gpuhal_device_capabilities(device) & GPUHAL_CAPABILITY_VIRTUAL_MEMORY;
    assert_int_equal(has_virtual_memory, version->major > 5);
    assert_int_equal(number_of(device, GPUHAL_FACT_COMPUTE_UNITS), 304);
    close_clean(gpu);
}

TEST(every_major_version_works_with_its_own_numbers_and_one_without_optional_functions_too)
{
    static const runtime_version versions[] = {{"", 5}, {"", 6}, {"", 7}, {"old/", 5}};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        if (!passes_in_child(expect_version_works, &versions[i])) {
            fail_msg("%slibamdhip64.so.%d", versions[i].folder, versions[i].major);
        }
    }
}

#include "test_main.h"
