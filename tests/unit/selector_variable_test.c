/* Vendors' variables as selectors (`env=NAME`), by the vendors' rules: malformed lists, the remaining devices, and the
 * notes about ignored parts. */
#include "device/variable.h"
#include "identity_support.h"

#define FIRST  "11111111-2222-3333-4444-555555555555"
#define SECOND "11112222-2222-3333-4444-555555555555"
#define THIRD  "99999999-2222-3333-4444-555555555555"
#define PART   "77777777-2222-3333-4444-555555555555"

/* Three GPUs and a partition of the last GPU, as a variable counts them. AMD's GPUs have unique ids. */
static const gpuhal_counted nvidia[] = {{0, 0, FIRST, false}, {1, 1, SECOND, false}, {2, 2, THIRD, false},
                                        {3, -1, PART, true}};
static const gpuhal_counted amd[] = {
    {0, 0, "a1b2c3d4e5f60718", false}, {1, 1, "a1b2ffffe5f60718", false}, {2, 2, "b1b2c3d4e5f60718", false}};

static void read_picks(const char *name, const char *value, const gpuhal_counted *devices, uint32_t count,
                       const char *expected, const char *said)
{
    gpuhal_picks picks;
    char left[64] = "";
    assert_int_equal(gpuhal_variable_read(gpuhal_variable_find(name), value, devices, count, &picks), GPUHAL_OK);
    for (uint32_t i = 0; i < picks.count; i++) {
        snprintf(left + strlen(left), sizeof left - strlen(left), "%s%u", i ? "," : "", picks.entries[i]);
    }
    if (strcmp(left, expected) != 0 || (said ? !strstr(picks.note, said) : *picks.note != 0)) {
        fail_msg("%s=\"%s\" leaves %s: %s", name, value, left, picks.note);
    }
}

/* value, remaining devices in their order, and note (NULL if none) */
typedef struct reading {
    const char *value, *left, *said;
} reading;

TEST(cuda_visible_devices_ends_at_the_first_element_that_names_no_device)
{
    static const reading cases[] = {
        {"0", "0", NULL},
        {"2,0", "2,0", NULL}, /* the list's order is kept */
        {"0,2,-1,1", "0,2", "CUDA ends the list at \"-1\": it is negative, and \"1\" is ignored"},
        {"-1", "", "it is negative"},
        {"", "", "is empty"},
        {"NoDevFiles", "", "it is neither an index nor a UUID"},
        {"none", "", "it is neither an index nor a UUID"},
        {"0,7,1", "0", "ends the list at \"7\": no device has it, and \"1\" is ignored"},
        {"0,,1", "0", "ends the list at \"\": it is empty"},
        {",0", "", "it is empty"},
        {"0,", "0", NULL},
        {" 0 , 1 ", "0,1", NULL},
        {"+1", "1", NULL},
        {"01", "1", NULL},
        {"1gpu,0x2", "1,0", "\"gpu\" behind the index in \"1gpu\" is ignored"}, /* like strtoul() */
        {"0;1", "0", "\";1\" behind the index"},
        {"0 1", "0", NULL},
        {"0,0", "", "names a device for the second time"},
        {"0,1,0,2", "", "names a device for the second time"},
        {"99999999999999999999", "", "it is no index of a device"},
        {"GPU-" FIRST, "0", NULL},
        {"GPU-9", "2", NULL},
        {"GPU-9,GPU-11111", "2,0", NULL},
        {"GPU-1111", "", "ends the list at \"GPU-1111\": several devices have it"},
        {"GPU-9,GPU-1,GPU-11111", "2", "several devices have it"},
        {"GPU-9,GPU-abc,GPU-11111", "2", "no device has it"},
        {"GPU-", "", "no UUID follows"},
        {"GPU-9,GPU-99", "", "names a device for the second time"},
        {"gpu-9", "", "it is neither an index nor a UUID"},
        {"9999", "", "no device has it"},
        {"GPU-9,0", "2", "an index does not follow a UUID"},
        {"0,GPU-9", "0", "a UUID does not follow an index"},
        {"MIG-" PART, "3", NULL},
        {"MIG-7", "3", NULL},
        {"MIG-9", "", "no device has it"}, /* the UUID of a whole GPU */
        {"GPU-7", "", "no device has it"},
        {"MIG-GPU-" THIRD "/1/0", "", "no device has it"}, /* the format of drivers before 470 */
        {"0,1,2,3", "0,1,2", "ends the list at \"3\""},
        {"all", "", "it is neither"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const reading *one = &cases[i];
        const bool beyond = strstr(one->value, "7,1") || strstr(one->value, "2,3") || strcmp(one->value, "9999") == 0;
        read_picks("CUDA_VISIBLE_DEVICES", one->value, nvidia, beyond ? 3 : 4, one->left, one->said);
    }
}

TEST(hip_and_the_opencl_of_amd_end_at_a_malformed_index_and_ignore_repeats)
{
    static const reading cases[] = {
        {"1,0", "1,0", NULL},
        {"0,0,1", "0,1", NULL},
        {"0,-1,1", "0", "ends the list at \"-1\": it is not an index alone, and \"1\" is ignored"},
        {"0, 1", "0", "ends the list at \" 1\": it is not an index alone"},
        {"00", "", "it begins with a 0"},
        {"0x1", "", "it is not an index alone"},
        {"1gpu", "", "it is not an index alone"},
        {"3", "", "no device has it"},
        {"0,,1", "0", "it is empty"},
        {"GPU-b1b2c3d4e5f60718", "2", NULL},
        {"GPU-a1b2", "", "several devices have it"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        read_picks("HIP_VISIBLE_DEVICES", cases[i].value, amd, 3, cases[i].left, cases[i].said);
        read_picks("GPU_DEVICE_ORDINAL", cases[i].value, amd, 3, cases[i].left, cases[i].said);
    }
}

TEST(rocr_visible_devices_takes_indices_and_uuids_mixed_and_ends_at_a_repeat)
{
    static const reading cases[] = {
        {"0,GPU-b1b2c3d4e5f60718", "0,2", NULL},
        {" 2 ,0", "2,0", NULL},
        {"gpu-B1B2", "2", NULL},
        {"0x1", "1", NULL},
        {"010", "", "no device has it"}, /* octal 8 */
        {"0,1,0,2", "0,1", "names a device for the second time, and \"2\" is ignored"},
        {"1,GPU-a1b2ff,2", "1", "names a device for the second time"},
        {"0,-1,1", "0", "it is negative"},
        {"0,1x,2", "0", "it is neither an index nor a UUID"},
        {"GPU-a1b2", "", "several devices have it"},
        {"GPU-", "", "it is not a UUID"},
        {"GPU-b1b2c3d4e5f607180", "", "it is not a UUID"}, /* one digit too many */
        {"G", "", "it is not a UUID"},
        {"0,,1", "0", "it is empty"},
        {"", "", "is empty"},
        {"3", "", "no device has it"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        read_picks("ROCR_VISIBLE_DEVICES", cases[i].value, amd, 3, cases[i].left, cases[i].said);
    }
}

TEST(ggml_vk_visible_devices_ends_at_a_malformed_number_and_refuses_a_large_one)
{
    static const reading cases[] = {
        {"0", "0", NULL},         {"2 0", "2,0", NULL},           {"2,0", "2,0", NULL},
        {" 1,, 2 ", "1,2", NULL}, {"0,x,1", "0", "not a number"}, {"1,1", "1", NULL},
        {"", "", "is empty"},     {"GPU-1", "", "not a number"},
    };
    static const char *const refused[] = {"3", "0,9", "-1", "99999999999999999999"};
    gpuhal_picks picks;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        read_picks("GGML_VK_VISIBLE_DEVICES", cases[i].value, amd, 3, cases[i].left, cases[i].said);
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_int_equal(
            gpuhal_variable_read(gpuhal_variable_find("GGML_VK_VISIBLE_DEVICES"), refused[i], amd, 3, &picks),
            GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(gpuhal_last_error()->sentence, "there is no Vulkan device"));
    }
}

TEST(an_index_or_a_uuid_that_only_the_vendor_knows_is_an_error_and_no_guess)
{
    static const gpuhal_counted unknown[] = {{0, -1, FIRST, false}, {1, -1, NULL, false}};
    gpuhal_picks picks;
    const gpuhal_variable *cuda = gpuhal_variable_find("CUDA_VISIBLE_DEVICES");
    assert_int_equal(gpuhal_variable_read(cuda, "0", unknown, 2, &picks), GPUHAL_ERROR_NOT_FOUND);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "CUDA_DEVICE_ORDER=PCI_BUS_ID"));
    assert_int_equal(gpuhal_variable_read(cuda, "GPU-9", unknown, 2, &picks), GPUHAL_ERROR_NOT_FOUND);
    read_picks("CUDA_VISIBLE_DEVICES", "2", unknown, 2, "", "no device has it"); /* there are only two devices */
    read_picks("CUDA_VISIBLE_DEVICES", "GPU-1", unknown, 2, "0", NULL);
}

/* ---- the devices of a machine */

static recorded_device *add_gpu(const char *backend, const char *pci, const char *vendor, const char *uuid)
{
    recorded_device *device = add_device(backend, "GPU");
    keep_fact(device, "pci_address", pci);
    keep_fact(device, "vendor_id", vendor);
    if (uuid) {
        keep_fact(device, "uuid", uuid);
    }
    return device;
}

static void expect(const char *devices, const char *expected)
{
    char ids[256] = "";
    gpuhal_config config = {.size = sizeof config,
                            .ignore_environment = 1,
                            .registry = "none",
                            .isolation = GPUHAL_ISOLATION_NEVER,
                            .builtins = replayed,
                            .devices = devices};
    gpuhal *gpu = NULL;
    if (gpuhal_open(&config, &gpu)) {
        if (!strstr(gpuhal_last_error()->sentence, expected)) {
            fail_msg("%s: %s", devices, gpuhal_last_error()->sentence);
        }
        return;
    }
    for (uint32_t i = 0; i < gpuhal_device_count(gpu); i++) {
        snprintf(ids + strlen(ids), sizeof ids - strlen(ids), "%s%s", i ? " " : "",
                 gpuhal_device_id(gpuhal_device_at(gpu, i)));
    }
    if (strcmp(ids, expected) != 0) {
        fail_msg("%s leaves %s", devices, ids);
    }
    gpuhal_close(gpu);
}

static bool is_noted(const char *devices, const char *words)
{
    gpuhal *gpu = open_machine(devices);
    bool is = false;
    gpuhal_note_info note = {.size = sizeof note};
    for (uint32_t i = 0; record_now(gpu, GPUHAL_RECORD_NOTE, i, &note) == GPUHAL_OK; i++) {
        is = is || strstr(note.text, words);
    }
    gpuhal_close(gpu);
    return is;
}

/* CUDA was started with the variable, and lists only the third of Vulkan's three GPUs. */
TEST(the_variable_of_cuda_leaves_cudas_list_in_every_interface_if_cuda_runs)
{
    add_gpu("cuda", "0000:c1:00.0", "0x10de", THIRD);
    add_gpu("vulkan", "0000:41:00.0", "0x10de", FIRST);
    add_gpu("vulkan", "0000:81:00.0", "0x10de", SECOND);
    add_gpu("vulkan", "0000:c1:00.0", "0x10de", THIRD);
    add_gpu("vulkan", "0000:00:02.0", "0x8086", NULL);
    setenv("CUDA_VISIBLE_DEVICES", "2,9,0", 1);
    expect("env=CUDA_VISIBLE_DEVICES", "cuda:0 vulkan:2");
    expect("vulkan,!env=CUDA_VISIBLE_DEVICES", "vulkan:0 vulkan:1 vulkan:3");
    expect("env=CUDA_VISIBLE_DEVICES,!cuda", "vulkan:2");
    assert_true(is_noted("env=CUDA_VISIBLE_DEVICES", "CUDA lists 1 of the 3 devices that CUDA_VISIBLE_DEVICES names"));
    setenv("CUDA_VISIBLE_DEVICES", "2,-1,0", 1);
    assert_true(is_noted("env=CUDA_VISIBLE_DEVICES", "ends the list at \"-1\""));
    setenv("CUDA_VISIBLE_DEVICES", "2,2", 1); /* CUDA's own list counts, not the variable's text */
    expect("env=CUDA_VISIBLE_DEVICES", "cuda:0 vulkan:2");
    assert_false(is_noted("env=CUDA_VISIBLE_DEVICES", "second time"));
    setenv("CUDA_VISIBLE_DEVICES", "2,-1,0", 1);
    gpuhal *gpu = open_machine(NULL);
    gpuhal_device *device = NULL;
    const char *reason = NULL;
    assert_int_equal(gpuhal_select(gpu, "env=CUDA_VISIBLE_DEVICES", 0, &device, &reason), GPUHAL_OK);
    assert_string_equal(gpuhal_device_id(device), "cuda:0");
    assert_non_null(strstr(reason, "\"0\" is ignored"));
    gpuhal_close(gpu);
    unsetenv("CUDA_VISIBLE_DEVICES");
    assert_false(is_noted("env=CUDA_VISIBLE_DEVICES", "ends the list"));
}

TEST(without_cuda_uuids_count_and_indices_follow_the_order_of_addresses)
{
    refuse("cuda", GPUHAL_ERROR_NO_DRIVER, "no driver");
    add_gpu("vulkan", "0000:c1:00.0", "0x10de", THIRD);
    add_gpu("vulkan", "0000:41:00.0", "0x10de", FIRST);
    add_gpu("vulkan", "0000:00:02.0", "0x8086", NULL);
    add_gpu("opencl", "0000:41:00.0", "0x10de", FIRST);
    setenv("CUDA_VISIBLE_DEVICES", "GPU-9", 1);
    expect("env=CUDA_VISIBLE_DEVICES", "vulkan:0");
    setenv("CUDA_VISIBLE_DEVICES", "0", 1);
    unsetenv("CUDA_DEVICE_ORDER");
    expect("env=CUDA_VISIBLE_DEVICES", "device \"0\" is known to CUDA alone");
    setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
    expect("env=CUDA_VISIBLE_DEVICES", "vulkan:1 opencl:0");
    setenv("CUDA_VISIBLE_DEVICES", "1,-1,0", 1);
    expect("env=CUDA_VISIBLE_DEVICES", "vulkan:0");
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    expect("env=CUDA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES is empty, so CUDA lists no device");
    unsetenv("CUDA_VISIBLE_DEVICES");
    expect("env=CUDA_VISIBLE_DEVICES", "vulkan:0 vulkan:1 opencl:0");
    assert_true(is_noted("env=CUDA_VISIBLE_DEVICES", "is not set, so it leaves every device"));
}

TEST(hip_reads_the_variable_of_cuda_if_there_is_no_gpu_of_nvidia)
{
    add_gpu("rocm", "0000:0c:00.0", "0x1002", "61316232-6333-6434-6535-663630373138");
    add_gpu("vulkan", "0000:0c:00.0", "0x1002", NULL);
    add_gpu("vulkan", "0000:22:00.0", "0x1002", NULL);
    setenv("CUDA_VISIBLE_DEVICES", "0,x", 1);
    expect("env=CUDA_VISIBLE_DEVICES", "rocm:0 vulkan:0");
    assert_true(is_noted("env=CUDA_VISIBLE_DEVICES", "HIP ends the list at \"x\""));
    setenv("ROCR_VISIBLE_DEVICES", "GPU-a1b2c3d4e5f60718", 1);
    expect("env=ROCR_VISIBLE_DEVICES", "rocm:0 vulkan:0");
    assert_true(is_noted("env=ROCR_VISIBLE_DEVICES", "another variable is set, too"));
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("ROCR_VISIBLE_DEVICES");
}

TEST(llama_cpp_counts_the_devices_of_vulkan)
{
    add_gpu("cuda", "0000:41:00.0", "0x10de", FIRST);
    add_gpu("vulkan", "0000:00:02.0", "0x8086", NULL);
    add_gpu("vulkan", "0000:41:00.0", "0x10de", FIRST);
    setenv("GGML_VK_VISIBLE_DEVICES", "1", 1);
    expect("env=GGML_VK_VISIBLE_DEVICES", "cuda:0 vulkan:1");
    setenv("GGML_VK_VISIBLE_DEVICES", "0 1", 1);
    expect("env=GGML_VK_VISIBLE_DEVICES", "cuda:0 vulkan:0 vulkan:1");
    setenv("GGML_VK_VISIBLE_DEVICES", "2", 1);
    expect("env=GGML_VK_VISIBLE_DEVICES", "there is no Vulkan device \"2\"");
    unsetenv("GGML_VK_VISIBLE_DEVICES");
}

TEST(the_terms_of_sycl_name_devices_by_backend_and_type_and_take_them_away)
{
    static const char *const cases[][2] = {
        {"cuda:*", "cuda:0 cuda:1 opencl:0"},
        {"cuda:1", "cuda:1"},
        {"CUDA:GPU", "cuda:0 cuda:1 opencl:0"},
        {"level_zero:gpu", "vulkan:0 opencl:1"},
        {"level_zero:0", "vulkan:0 opencl:1"}, /* exists, so the term selects it */
        {"level_zero:1", "\"level_zero:1\" names no device"},
        {"opencl:cpu", "opencl:2 cpu:0"}, /* the driver uses the CPU, so cpu:0 matches as well */
        {"opencl:*;!opencl:gpu", "opencl:2 cpu:0"},
        {"cuda:0;level_zero:gpu", "cuda:0 vulkan:0 opencl:0 opencl:1"},
        {"!cuda:gpu;!opencl:cpu;!native_cpu:*;!opencl:gpu", "vulkan:0 opencl:1"},
        {"hip:*", "no device matches"},
        {"cuda:9", "no device matches"},
        {"cuda:0,1;", "cuda:0 cuda:1 opencl:0"},
        {"cuda:1.0", "cuda:1"},
        {"", "cuda:0 cuda:1 vulkan:0 opencl:0 opencl:1 opencl:2 cpu:0"},
        {"opencl:0", "only SYCL knows which of 3 devices \"opencl:0\" is"},
        {"level_zero:gpu:0", "too many colons"},
        {"level_zero", "there is no \":\""},
        {"opencl:", "nothing stands before or behind the \":\""},
        {":gpu", "nothing stands before or behind the \":\""},
        {"macaroni:*", "it begins with no backend"},
        {"!opencl:gpu;cuda:*", "terms with \"!\" come last"},
        {"cuda:tpu", "neither a type of device nor an index"},
        {"cuda:gpu.0", "a type of device has no sub-devices"},
        {"cuda:0.", "a part between dots is empty"},
    };
    add_gpu("cuda", "0000:41:00.0", "0x10de", FIRST);
    add_gpu("cuda", "0000:c1:00.0", "0x10de", THIRD);
    keep_fact(&now.devices[0], "native_index", "0");
    keep_fact(&now.devices[1], "native_index", "1");
    add_gpu("vulkan", "0000:00:02.0", "0x8086", NULL);
    add_gpu("opencl", "0000:41:00.0", "0x10de", FIRST);
    add_gpu("opencl", "0000:00:02.0", "0x8086", NULL);
    recorded_device *pocl = add_device("opencl", "Program");
    keep_fact(pocl, "software", "1");
    keep_fact(pocl, "type", "cpu");
    add_device("cpu", "Processor");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("ONEAPI_DEVICE_SELECTOR", cases[i][0], 1);
        expect("env=ONEAPI_DEVICE_SELECTOR", cases[i][1]);
    }
    unsetenv("ONEAPI_DEVICE_SELECTOR");
}

TEST(the_mask_of_level_zero_counts_devices_or_sub_devices_by_its_hierarchy)
{
    /* ZE_FLAT_DEVICE_HIERARCHY, ZE_AFFINITY_MASK, and the remaining devices or the error */
    static const char *const cases[][3] = {
        {"COMPOSITE", "0", "vulkan:0 opencl:0"},
        {"COMPOSITE", " 0 , 0.1,0.0", "vulkan:0 opencl:0"},
        {"COMPOSITE", "1,0.0,9.1", "vulkan:0 opencl:0"}, /* numbers without a device are skipped */
        {"COMPOSITE", "1", "no device matches"},
        {"FLAT", "0", "vulkan:0 opencl:0"},
        {"FLAT", "0.1,0", "vulkan:0 opencl:0"},
        {"COMBINED", "0.1", "no device matches"},
        {"FLAT", "1", "device \"1\" is known to Level Zero alone"}, /* 1 may be a sub-device of the first device */
        {"", "0", "vulkan:0 opencl:0"},
        {"", "0.1", "device \"0.1\" is known to Level Zero alone"},
        {"", "", "vulkan:0 opencl:0"},
        {"", "0,", "\"\" is neither a number nor two with a dot between them"},
        {"", "0.", "\"0.\" is neither a number"},
        {"", "-1", "\"-1\" is neither a number"},
        {"", "0x1", "\"0x1\" is neither a number"},
        {"", "4294967296", "is neither a number"},
    };
    add_gpu("cuda", "0000:41:00.0", "0x10de", FIRST);
    add_gpu("vulkan", "0000:00:02.0", "0x8086", NULL);
    add_gpu("opencl", "0000:00:02.0", "0x8086", NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        setenv("ZE_FLAT_DEVICE_HIERARCHY", cases[i][0], 1);
        setenv("ZE_AFFINITY_MASK", cases[i][1], 1);
        expect("env=ZE_AFFINITY_MASK", cases[i][2]);
    }
    unsetenv("ZE_AFFINITY_MASK");
    unsetenv("ZE_FLAT_DEVICE_HIERARCHY");
    expect("env=ZE_AFFINITY_MASK", "vulkan:0 opencl:0");
}

TEST(the_mask_of_level_zero_is_no_guess_if_there_are_several_gpus_of_intel)
{
    add_gpu("vulkan", "0000:00:02.0", "0x8086", NULL);
    add_gpu("vulkan", "0000:03:00.0", "0x8086", NULL);
    setenv("ZE_AFFINITY_MASK", "0", 1);
    expect("env=ZE_AFFINITY_MASK", "device \"0\" is known to Level Zero alone");
    setenv("ZE_FLAT_DEVICE_HIERARCHY", "COMPOSITE", 1);
    expect("env=ZE_AFFINITY_MASK", "device \"0\" is known to Level Zero alone");
    setenv("ZE_AFFINITY_MASK", "", 1);
    expect("env=ZE_AFFINITY_MASK", "vulkan:0 vulkan:1");
}

TEST(a_variable_whose_rules_are_not_known_is_a_malformed_selector)
{
    add_device("cpu", "Processor");
    expect("env=SYCL_DEVICE_FILTER", "of the variable \"SYCL_DEVICE_FILTER\" are not known, only those of CUDA_");
    expect("env=", "nothing follows \"env=\"");
    expect("env", "no \"=\" follows \"env\"");
    expect("env=cuda_visible_devices", "are not known");
}

#include "test_main.h"
