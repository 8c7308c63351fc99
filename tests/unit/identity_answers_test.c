/* The library's reports about physical devices, on recorded machines: hidden interfaces, the reasons for a choice, and
 * the text of the evidence. */
#include "identity_support.h"

TEST(hiding_the_interface_that_joins_two_others_keeps_them_joined_with_evidence)
{
    read_machine("transitive.records");
    gpuhal *gpu = open_machine("cuda,opencl,cpu");
    gpuhal_physical_info physical = {.size = sizeof physical};
    assert_int_equal(records_now(gpu, GPUHAL_RECORD_PHYSICAL), 2);
    assert_int_equal(record_now(gpu, GPUHAL_RECORD_PHYSICAL, 0, &physical), GPUHAL_OK);
    assert_int_equal(physical.device_count, 2);
    assert_string_equal(physical.uuid, "754d9ae2-8df5-f8e3-3502-182434000000");
    gpuhal_evidence evidence = {.size = sizeof evidence};
    assert_int_equal(physical.evidence_count, 2);
    assert_int_equal(record_now(gpu, GPUHAL_RECORD_EVIDENCE, 0, &evidence), GPUHAL_OK);
    assert_string_equal(evidence.device, "vulkan:0");
    assert_string_equal(evidence.other, "cuda:0");
    assert_int_equal(record_now(gpu, GPUHAL_RECORD_EVIDENCE, 1, &evidence), GPUHAL_OK);
    assert_string_equal(evidence.device, "opencl:0");
    assert_string_equal(evidence.other, "vulkan:0");
    gpuhal_close(gpu);
}

TEST(a_hidden_interface_that_joins_nothing_is_not_reported)
{
    read_machine("nvidia-three-apis.records");
    gpuhal *gpu = open_machine("vulkan,opencl");
    gpuhal_physical_info physical = {.size = sizeof physical};
    assert_int_equal(records_now(gpu, GPUHAL_RECORD_PHYSICAL), 1);
    assert_int_equal(record_now(gpu, GPUHAL_RECORD_PHYSICAL, 0, &physical), GPUHAL_OK);
    assert_int_equal(physical.evidence_count, 1);
    gpuhal_evidence evidence = {.size = sizeof evidence};
    assert_int_equal(record_now(gpu, GPUHAL_RECORD_EVIDENCE, 0, &evidence), GPUHAL_OK);
    assert_string_equal(evidence.device, "opencl:0");
    assert_string_equal(evidence.other, "vulkan:0");
    assert_string_equal(evidence.value, "0000:01:00.0");
    gpuhal_close(gpu);
}

TEST(an_address_hides_all_but_the_interfaces_of_that_device)
{
    read_machine("nvidia-mig.records");
    gpuhal *gpu = open_machine("pci=0000:61:00.0");
    assert_int_equal(gpuhal_device_count(gpu), 4); /* including the device that does not report an address itself */
    assert_int_equal(records_now(gpu, GPUHAL_RECORD_PHYSICAL), 1);
    gpuhal_close(gpu);
}

TEST(the_reason_is_one_clause_and_names_the_other_interfaces_of_named_hardware)
{
    read_machine("hybrid-laptop.records");
    gpuhal *gpu = open_machine(NULL);
    gpuhal_device *device = NULL;
    const char *reason = NULL;
    assert_int_equal(gpuhal_select(gpu, "auto", 0, &device, &reason), GPUHAL_OK);
    assert_string_equal(reason, "first working backend (cuda), its only GPU");
    assert_int_equal(gpuhal_select(gpu, "pci=0000:00:02.0", 0, &device, &reason), GPUHAL_OK);
    assert_string_equal(reason, "\"pci=0000:00:02.0\" names the physical device, whose preferred API is vulkan; also "
                                "reachable through opencl:0");
    assert_int_equal(gpuhal_select(gpu, "vulkan:2", 0, &device, &reason), GPUHAL_OK);
    assert_string_equal(reason, "\"vulkan:2\" names it");
    gpuhal_close(gpu);
}

TEST(one_uuid_for_all_devices_of_a_driver_is_reported_about_the_two_in_question)
{
    read_machine("moltenvk-equal-uuids.records");
    gpuhal *gpu = open_machine(NULL);
    gpuhal_evidence evidence = {.size = sizeof evidence};
    assert_int_equal(record_now(gpu, GPUHAL_RECORD_EVIDENCE, 0, &evidence), GPUHAL_OK);
    assert_string_equal(evidence.sentence,
                        "vulkan:1 and vulkan:0 state the same UUID, but that identifies neither: one driver lists both "
                        "as separate devices");
    gpuhal_close(gpu);
}

TEST(hiding_the_first_of_distinct_devices_leaves_the_others_distinct)
{
    read_machine("intel-uuid-of-the-model.records");
    gpuhal *gpu = open_machine("opencl:1,third,cpu");
    gpuhal_evidence evidence = {.size = sizeof evidence};
    assert_int_equal(record_now(gpu, GPUHAL_RECORD_EVIDENCE, 0, &evidence), GPUHAL_OK);
    assert_int_equal(evidence.same, 0);
    assert_string_equal(
        evidence.sentence,
        "third:0 and opencl:1 state the same UUID, but that identifies neither: opencl:0 is at PCI address "
        "0000:03:00.0 and opencl:1 at 0000:04:00.0");
    gpuhal_close(gpu);
}

TEST(the_address_that_a_software_device_draws_for_and_its_uuid_never_name_the_processor)
{
    read_machine("software-that-states-an-address.records");
    gpuhal *gpu = open_machine(NULL);
    gpuhal_device *device = NULL;
    const char *reason = NULL;
    assert_int_equal(gpuhal_select(gpu, "pci=0000:03:00.0", 0, &device, &reason), GPUHAL_OK);
    assert_string_equal(gpuhal_device_id(device), "opencl:0");
    assert_int_equal(gpuhal_select(gpu, "uuid=6d657361-3232-2e33-2e36-000000000000", 0, &device, &reason), GPUHAL_OK);
    assert_string_equal(gpuhal_device_id(device), "vulkan:0");
    assert_string_equal(reason, "\"uuid=6d657361-3232-2e33-2e36-000000000000\" names it");
    gpuhal_close(gpu);
}

#include "test_main.h"
