/* Hardware that the kernel lists: the listed devices, their known facts, and the plugins' devices that belong to
 * them. */
#include "hardware_support.h"

TEST(graphics_cards_and_accelerators_are_listed_in_the_order_of_addresses_and_nothing_else)
{
    begin_machine();
    put_pci("10000:01:00.0", "030000", "8086:56a0", NULL);
    put_pci("0000:c1:00.0", "120000", "1002:74a1", "amdgpu");
    put_pci("0000:01:00.0", "030200", "10de:2330", "nvidia");
    put_pci("0000:01:00.1", "040300", "10de:22ba", "snd_hda_intel");
    put_pci("0000:00:1f.6", "020000", "8086:15fb", "e1000e");
    gpuhal *gpu = open_listed(NULL);
    gpuhal_view *view = view_or_fail(gpu);
    assert_int_equal(gpuhal_view_count(view, GPUHAL_RECORD_HARDWARE), 3);
    assert_string_equal(info_of(view, 0).address, "0000:01:00.0");
    assert_int_equal(info_of(view, 0).pci_class, 0x030200);
    assert_int_equal(info_of(view, 0).vendor_id, 0x10de);
    assert_int_equal(info_of(view, 0).device_id, 0x2330);
    assert_string_equal(info_of(view, 1).address, "0000:c1:00.0");
    assert_string_equal(info_of(view, 2).address, "10000:01:00.0");
    gpuhal_view_release(view);
    gpuhal_close(gpu);
    end_machine();
}

TEST(the_view_has_the_kernels_values_of_a_device)
{
    begin_machine();
    put_link("sys/bus/pci/devices/0000:03:00.0", "../../../devices/pci0000:00/0000:00:01.1/0000:03:00.0");
    const char *const files[][2] = {{"class", "0x030000\n"},
                                    {"vendor", "0x1002\n"},
                                    {"device", "0x744c\n"},
                                    {"subsystem_vendor", "0x1da2\n"},
                                    {"subsystem_device", "0x471e\n"},
                                    {"numa_node", "1\n"},
                                    {"local_cpulist", "16-31,48-63\n"},
                                    {"power/runtime_status", "suspended\n"},
                                    {"drm/card1/dev", "226:1\n"},
                                    {"drm/card1-DP-1/status", "connected\n"},
                                    {"drm/renderD129/dev", "226:129\n"}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[256];
        snprintf(path, sizeof path, "sys/devices/pci0000:00/0000:00:01.1/0000:03:00.0/%s", files[i][0]);
        put(path, files[i][1]);
    }
    put_link("sys/devices/pci0000:00/0000:00:01.1/0000:03:00.0/driver", "../../../../bus/pci/drivers/amdgpu");
    put("sys/module/amdgpu/version", "6.8.5\n");
    put("sys/class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 16\nlocation_id 0\ndomain 0\n");
    put("sys/class/kfd/kfd/topology/nodes/1/properties", "simd_count 192\nlocation_id 768\ndomain 0\n");
    gpuhal *gpu = open_listed(NULL);
    gpuhal_view *view = view_or_fail(gpu);
    const gpuhal_hardware_info info = info_at(view, "0000:03:00.0");
    assert_int_equal(info.subsystem_vendor_id, 0x1da2);
    assert_int_equal(info.subsystem_id, 0x471e);
    assert_int_equal(info.numa_node, 1);
    assert_int_equal(info.is_asleep, 1);
    assert_int_equal(info.physical, 0);
    assert_string_equal(info.place, "pci0000:00/0000:00:01.1/0000:03:00.0");
    assert_string_equal(info.vendor, "AMD");
    assert_string_equal(info.name, "AMD device 744c");
    assert_string_equal(info.kernel_driver, "amdgpu");
    assert_string_equal(info.kernel_driver_version, "6.8.5");
    assert_string_equal(info.drm_card, "/dev/dri/card1");
    assert_string_equal(info.drm_render_node, "/dev/dri/renderD129");
    assert_string_equal(info.vendor_node, "/dev/kfd");
    assert_string_equal(info.local_cpus, "16-31,48-63");
    gpuhal_view_release(view);
    gpuhal_close(gpu);
    end_machine();
}

TEST(names_are_the_drivers_else_those_of_the_list_of_pci_ids)
{
    begin_machine();
    put_pci("0000:01:00.0", "030200", "10de:2330", "nvidia");
    put_pci("0000:02:00.0", "030000", "10de:2684", "nvidia");
    put_pci("0000:03:00.0", "030000", "1002:744c", "amdgpu");
    put_pci("0000:04:00.0", "030000", "1e3e:0001", NULL);
    put_pci("0000:05:00.0", "030000", "10de:ffff", NULL);
    put("proc/driver/nvidia/gpus/0000:01:00.0/information",
        "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 90\nDevice Minor: \t 3\nGPU Excluded:\t No\n");
    put("usr/share/misc/pci.ids",
        "# a list\n1002  Advanced Micro Devices, Inc. [AMD/ATI]\n"
        "\t744c  Navi 31 [Radeon RX 7900 XT/7900 XTX]\n\t\t1da2 471e  Some board\n"
        "10de  NVIDIA Corporation\n\t2330  GH100 [H100 SXM5 80GB]\n\t2684  AD102 [GeForce RTX 4090]\n"
        "1e3e  Iluvatar CoreX\n\t0001  BI-V100\nC 03  Display controller\n\t0001  not a device\n");
    gpuhal *gpu = open_listed(NULL);
    gpuhal_view *view = view_or_fail(gpu);
    assert_string_equal(info_at(view, "0000:01:00.0").name, "NVIDIA H100 80GB HBM3");
    assert_string_equal(info_at(view, "0000:01:00.0").vendor_node, "/dev/nvidia3");
    assert_string_equal(info_at(view, "0000:02:00.0").name, "NVIDIA GeForce RTX 4090");
    assert_string_equal(info_at(view, "0000:03:00.0").name, "AMD Radeon RX 7900 XT/7900 XTX");
    assert_string_equal(info_at(view, "0000:04:00.0").vendor, "Iluvatar CoreX");
    assert_string_equal(info_at(view, "0000:04:00.0").name, "Iluvatar CoreX BI-V100");
    assert_string_equal(info_at(view, "0000:05:00.0").name, "NVIDIA device ffff");
    gpuhal_view_release(view);
    gpuhal_close(gpu);
    end_machine();
}

/* Makes a list of 1 MB, the size of the real list. The list has 1000 vendors. Every hundredth vendor has 1000 devices
 * with one board each. */
static char *long_list(void)
{
    enum { BYTES = 2 << 20 };
    char *text = malloc(BYTES), *at = text;
    assert_non_null(text);
    at += sprintf(at, "# a list\n\n");
    for (unsigned vendor = 0; vendor < 1000; vendor++) {
        at += sprintf(at, "%04x  Company %u\n# a comment\n", 0x1100 + 3 * vendor, vendor);
        for (unsigned device = 0; device < (vendor % 100 == 50 ? 1000 : vendor % 4); device++) {
            at += sprintf(at, "\t%04x  Chip %u, number %u [GPU %u.%u]\n", 2 * device, vendor, device, vendor, device);
            at += sprintf(at, "\t\t1100 0001  A board by another company\n");
        }
    }
    sprintf(at, "C 03  Display controller\n\t00  VGA\nC 12  Accelerator");
    return text;
}

TEST(each_vendor_and_device_of_a_long_list_of_pci_ids_is_found)
{
    begin_machine();
    for (unsigned i = 0; i < 250; i++) {
        char address[16], ids[16];
        const unsigned vendor = i < 200 ? i * 5 % 1000 + i % 2 : 50 + i % 10 * 100;
        snprintf(address, sizeof address, "%04x:01:00.0", i);
        snprintf(ids, sizeof ids, "%04x:%04x", 0x1100 + 3 * vendor, i < 200 ? 2 : 1998 - 4 * i);
        put_pci(address, "030000", ids, NULL);
    }
    put_pci("0100:01:00.0", "030000", "1101:0002", NULL); /* ids between two vendors, and after the last */
    put_pci("0101:01:00.0", "030000", "fffe:0002", NULL);
    char *list = long_list();
    put("usr/share/misc/pci.ids", list);
    gpuhal *gpu = open_listed(NULL);
    gpuhal_view *view = view_or_fail(gpu);
    for (unsigned i = 0; i < 250; i++) {
        char address[16], name[64];
        const unsigned vendor = i < 200 ? i * 5 % 1000 + i % 2 : 50 + i % 10 * 100;
        const unsigned devices = vendor % 100 == 50 ? 1000 : vendor % 4, device = i < 200 ? 1 : 999 - 2 * i;
        snprintf(address, sizeof address, "%04x:01:00.0", i);
        snprintf(name, sizeof name, devices > device ? "Company %u GPU %u.%u" : "Company %u device %04x", vendor,
                 devices > device ? vendor : 2 * device, device);
        assert_string_equal(info_at(view, address).name, name);
    }
    assert_string_equal(info_at(view, "0100:01:00.0").name, "vendor 1101 device 0002");
    assert_string_equal(info_at(view, "0101:01:00.0").name, "vendor fffe device 0002");
    free(list);
    gpuhal_view_release(view);
    gpuhal_close(gpu);
    end_machine();
}

TEST(a_device_stands_for_the_hardware_at_its_address_or_behind_its_render_node)
{
    begin_machine();
    put_pci("0000:01:00.0", "030200", "10de:2330", "nvidia");
    put_pci("0000:02:00.0", "030000", "8086:56a0", "xe");
    put_pci("0000:03:00.0", "030000", "1002:744c", "amdgpu");
    put_drm("0000:02:00.0", 0, 128);
    put_drm("0000:03:00.0", 1, 129);
    recorded_device *cuda = add_device("cuda", "NVIDIA H100");
    keep_fact(cuda, "pci_address", "0000:01:00.0");
    recorded_device *vulkan = add_device("vulkan", "NVIDIA H100");
    keep_fact(vulkan, "pci_address", "0000:01:00.0");
    recorded_device *intel = add_device("vulkan", "Intel Arc");
    keep_fact(intel, "drm_render_node", "226:128");
    gpuhal *gpu = open_listed(NULL);
    gpuhal_view *view = view_or_fail(gpu);
    const gpuhal_hardware_info first = info_at(view, "0000:01:00.0"), second = info_at(view, "0000:02:00.0"),
                               third = info_at(view, "0000:03:00.0");
    assert_int_equal(gpuhal_view_count(view, GPUHAL_RECORD_HARDWARE), 3);
    expect_state(&first, GPUHAL_HARDWARE_READY, GPUHAL_HARDWARE_FINE);
    assert_int_equal(first.device_count, 2);
    assert_int_equal(second.state, GPUHAL_HARDWARE_READY);
    assert_int_equal(second.device_count, 1);
    assert_true(third.state != GPUHAL_HARDWARE_READY);
    gpuhal_view_release(view);
    gpuhal_close(gpu);
    end_machine();
}

TEST(a_device_whose_hardware_the_kernel_does_not_list_stands_in_the_view_as_it_states_itself)
{
    begin_machine();
    keep_fact(add_device("cuda", "NVIDIA H100"), "pci_address", "0000:07:00.0");
    recorded_device *software = add_device("vulkan", "llvmpipe");
    keep_fact(software, "software", "1");
    gpuhal *gpu = open_listed(NULL);
    gpuhal_view *view = view_or_fail(gpu);
    assert_int_equal(gpuhal_view_count(view, GPUHAL_RECORD_HARDWARE), 1);
    const gpuhal_hardware_info info = info_at(view, "0000:07:00.0");
    expect_state(&info, GPUHAL_HARDWARE_READY, GPUHAL_HARDWARE_FINE);
    assert_string_equal(info.name, "NVIDIA H100");
    gpuhal_view_release(view);
    gpuhal_close(gpu);
    end_machine();
}

TEST(states_of_hardware_have_names)
{
    assert_string_equal(gpuhal_hardware_state_name(GPUHAL_HARDWARE_NO_KERNEL_DRIVER), "no_kernel_driver");
    assert_string_equal(gpuhal_hardware_state_name(GPUHAL_HARDWARE_DISPLAY_ONLY), "display_only");
    assert_string_equal(gpuhal_hardware_state_name(99), "unknown");
}

#include "test_main.h"
