/* Hardware that is unusable on invented machines: its state, its grade, the reported cause, and the advised command. */
#include "hardware_support.h"

#define GPU "0000:01:00.0"

static void expect(const char *address, gpuhal_hardware_state state, gpuhal_hardware_grade grade, const char *why,
                   const char *fix)
{
    gpuhal *gpu = open_listed(NULL);
    assert_int_equal(gpuhal_rescan(gpu, NULL), GPUHAL_OK); /* the plugin lists its devices again */
    gpuhal_view *view = view_or_fail(gpu);
    const gpuhal_hardware_info info = info_at(view, address);
    expect_state(&info, state, grade);
    if (!strstr(info.why, why) || !strstr(info.fix, fix) || (*info.why && !*why)) {
        fail_msg("\"%s\" and \"%s\" have nothing of \"%s\" and \"%s\"", info.why, info.fix, why, fix);
    }
    gpuhal_view_release(view);
    gpuhal_close(gpu);
}

static void refuse_all(void)
{
    static const char *const names[] = {"cuda", "rocm", "vulkan", "opencl"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        refuse(names[i], GPUHAL_ERROR_NO_DRIVER, "tried library.so: not found");
    }
}

static void put_nvidia(const char *address, unsigned minor)
{
    char text[96], path[96];
    put_pci(address, "030200", "10de:2330", "nvidia");
    snprintf(path, sizeof path, "proc/driver/nvidia/gpus/%s/information", address);
    snprintf(text, sizeof text, "Model: \t\t NVIDIA H100\nDevice Minor: \t %u\n", minor);
    put(path, text);
    snprintf(path, sizeof path, "dev/nvidia%u", minor);
    put(path, "");
    put("dev/nvidiactl", "");
    put("sys/module/nvidia/version", "580.65.06\n");
}

static void put_amd(const char *address, unsigned minor)
{
    char path[96];
    put_pci(address, "030000", "1002:744c", "amdgpu");
    put_drm(address, minor, minor + 128);
    snprintf(path, sizeof path, "dev/dri/renderD%u", minor + 128);
    put(path, "");
}

static void put_linux(const char *release)
{
    char text[64];
    snprintf(text, sizeof text, "%s\n", release);
    put("proc/sys/kernel/osrelease", text);
    put("etc/os-release", "PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n");
}

/* ---- no kernel driver */

TEST(without_any_driver_the_module_that_is_missing_and_its_package_are_named)
{
    begin_machine();
    refuse_all();
    put_linux("6.12.9-amd64");
    put("lib/modules/6.12.9-amd64/modules.dep", "kernel/drivers/gpu/drm/nouveau/nouveau.ko.xz:\n");
    put_pci(GPU, "030000", "10de:25a2", NULL);
    put_pci("0000:02:00.0", "030000", "1ed5:0106", NULL);
    expect("0000:02:00.0", GPUHAL_HARDWARE_NO_KERNEL_DRIVER, GPUHAL_HARDWARE_WARNING, "no kernel driver is bound to it",
           "lspci -nnk -s 0000:02:00.0");
    expect(GPU, GPUHAL_HARDWARE_NO_KERNEL_DRIVER, GPUHAL_HARDWARE_WARNING,
           "the module nvidia is not installed for Linux 6.12.9-amd64", "sudo apt install nvidia-driver");
    put("var/lib/dkms/nvidia/source", "");
    expect(GPU, GPUHAL_HARDWARE_NO_KERNEL_DRIVER, GPUHAL_HARDWARE_WARNING, "not installed for Linux",
           "sudo dkms autoinstall -k 6.12.9-amd64 && sudo modprobe nvidia");
    remove_part("lib");
    remove_part("var");
    expect(GPU, GPUHAL_HARDWARE_NO_KERNEL_DRIVER, GPUHAL_HARDWARE_WARNING, "the module nvidia is not loaded",
           "sudo apt install nvidia-driver");
    end_machine();
}

TEST(a_module_that_is_installed_and_not_loaded_is_a_problem_unless_a_setting_keeps_it_out)
{
    begin_machine();
    refuse_all();
    put_linux("6.1.0");
    put("lib/modules/6.1.0/modules.dep", "kernel/a.ko:\nupdates/dkms/nvidia-current.ko: kernel/a.ko\n");
    put_pci(GPU, "030000", "10de:25a2", NULL);
    expect(GPU, GPUHAL_HARDWARE_NO_KERNEL_DRIVER, GPUHAL_HARDWARE_PROBLEM, "nvidia is installed, but not loaded",
           "sudo modprobe nvidia");
    put("etc/modprobe.d/no-gpu.conf", "# off\n  blacklist   nvidia\n");
    expect(GPU, GPUHAL_HARDWARE_NO_KERNEL_DRIVER, GPUHAL_HARDWARE_NOTE, "/etc/modprobe.d/no-gpu.conf keeps the module",
           "sudo modprobe nvidia");
    put("etc/modprobe.d/no-gpu.conf", "blacklist nvidiafb\nblacklist nouveau\n");
    put("proc/cmdline", "quiet modprobe.blacklist=nouveau,nvidia ro\n");
    expect(GPU, GPUHAL_HARDWARE_NO_KERNEL_DRIVER, GPUHAL_HARDWARE_NOTE, "the kernel's command line", "");
    put("proc/cmdline", "quiet modprobe.blacklist=nvidiafb\n");
    put("sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", "\6");
    put_bytes("sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", "\6\0\0\0\1", 5);
    expect(GPU, GPUHAL_HARDWARE_NO_KERNEL_DRIVER, GPUHAL_HARDWARE_PROBLEM, "Secure Boot",
           "sudo mokutil --import /var/lib/dkms/mok.pub");
    put("etc/modprobe.d/no-gpu.conf", "blacklist nvidia\ninstall nvidia /bin/false\n");
    expect(GPU, GPUHAL_HARDWARE_NO_KERNEL_DRIVER, GPUHAL_HARDWARE_NOTE, "/etc/modprobe.d/no-gpu.conf keeps the module",
           "sudo sed -i '/^\\s*install\\s\\+nvidia\\s/d' /etc/modprobe.d/no-gpu.conf\nsudo modprobe nvidia");
    put("etc/modprobe.d/no-gpu.conf", "install \\\n  nvidia \\\n  /bin/false\n");
    expect(GPU, GPUHAL_HARDWARE_NO_KERNEL_DRIVER, GPUHAL_HARDWARE_NOTE, "keeps the module", "sudo sed -i");
    put("etc/modprobe.d/no-gpu.conf", "");
    put("etc/modprobe.d/a'; rm -rf ~;'.conf", "install nvidia /bin/false\n");
    expect(GPU, GPUHAL_HARDWARE_NO_KERNEL_DRIVER, GPUHAL_HARDWARE_NOTE, "keeps the module",
           "grep -r 'install *nvidia' /etc/modprobe.d");
    remove_part("etc/modprobe.d");
    put("etc/os-release", "ID=ubuntu\n");
    put("etc/modprobe.d/no-gpu.conf", "alias nvidia off\nalias nvidia-drm off\n");
    expect(GPU, GPUHAL_HARDWARE_NO_KERNEL_DRIVER, GPUHAL_HARDWARE_NOTE, "keeps the module", "sudo prime-select nvidia");
    end_machine();
}

TEST(a_module_that_is_built_in_or_loaded_and_did_not_take_the_device_is_a_problem)
{
    begin_machine();
    refuse_all();
    put_linux("6.1.0");
    put("lib/modules/6.1.0/modules.dep", "");
    put("lib/modules/6.1.0/modules.builtin", "kernel/drivers/gpu/drm/amd/amdgpu/amdgpu.ko\n");
    put_pci(GPU, "030000", "1002:744c", NULL);
    expect(GPU, GPUHAL_HARDWARE_NO_KERNEL_DRIVER, GPUHAL_HARDWARE_PROBLEM, "amdgpu is installed, but not loaded", "");
    put("sys/module/amdgpu/initstate", "live\n");
    expect(GPU, GPUHAL_HARDWARE_NO_KERNEL_DRIVER, GPUHAL_HARDWARE_PROBLEM,
           "amdgpu is loaded, but did not accept the device", "sudo dmesg | grep -iE '0000:01:00.0|amdgpu'");
    end_machine();
}

TEST(a_device_for_virtual_machines_is_no_problem_and_an_idle_virtual_function_is_left_out)
{
    begin_machine();
    refuse_all();
    put_pci(GPU, "030000", "10de:25a2", "vfio-pci");
    put_pci("0000:02:00.1", "038000", "8086:56c0", NULL);
    put_link("sys/bus/pci/devices/0000:02:00.1/physfn", "../0000:02:00.0");
    expect(GPU, GPUHAL_HARDWARE_PASSED_THROUGH, GPUHAL_HARDWARE_NOTE, "vfio-pci, for virtual machines", "fuser");
    gpuhal *gpu = open_listed(NULL);
    gpuhal_view *view = view_or_fail(gpu);
    assert_int_equal(gpuhal_view_count(view, GPUHAL_RECORD_HARDWARE), 1);
    gpuhal_view_release(view);
    gpuhal_close(gpu);
    end_machine();
}

TEST(displays_that_no_api_drives_are_fine)
{
    static const char *const ids[] = {"1a03:2000", "102b:0538", "1b36:0100", "1234:1111", "1013:00b8",
                                      "15ad:0405", "1414:5353", "1af4:1050", "1d0f:1111"};
    begin_machine();
    refuse_all();
    for (unsigned i = 0; i < sizeof ids / sizeof *ids; i++) {
        char address[16];
        snprintf(address, sizeof address, "0000:01:%02x.0", i);
        put_pci(address, "030000", ids[i], i % 2 ? "some" : NULL);
        expect(address, GPUHAL_HARDWARE_DISPLAY_ONLY, GPUHAL_HARDWARE_FINE, "which no API drives", "");
    }
    end_machine();
}

/* ---- nodes */

TEST(a_missing_node_is_a_problem_and_made_by_its_own_number)
{
    begin_machine();
    refuse_all();
    put_nvidia(GPU, 0);
    put_nvidia("0000:02:00.0", 3);
    remove_part("dev");
    expect(GPU, GPUHAL_HARDWARE_NODE_MISSING, GPUHAL_HARDWARE_PROBLEM, "but /dev/nvidia0 is missing",
           "sudo nvidia-modprobe -c 0");
    expect("0000:02:00.0", GPUHAL_HARDWARE_NODE_MISSING, GPUHAL_HARDWARE_PROBLEM, "but /dev/nvidia3 is missing",
           "sudo nvidia-modprobe -c 3");
    put("dev/nvidia0", "");
    expect(GPU, GPUHAL_HARDWARE_NODE_MISSING, GPUHAL_HARDWARE_PROBLEM, "but /dev/nvidiactl is missing",
           "sudo nvidia-modprobe -c 255");
    end_machine();
}

TEST(a_node_that_may_not_be_opened_is_named_with_its_group)
{
    if (geteuid() != 0) {
        SKIP_TEST("files of another user need root");
    }
    begin_machine();
    refuse_all();
    put_amd(GPU, 0);
    put("etc/group", "root:x:0:\nvideo:x:44:\nrender:x:992:\nrendered:x:1992:\n");
    char node[128];
    snprintf(node, sizeof node, "%s/dev/dri/renderD128", tree_root);
    assert_int_equal(chmod(tree_root, 0755), 0);
    assert_int_equal(chown(node, 0, 992), 0);
    assert_int_equal(chmod(node, 0660), 0);
    assert_int_equal(seteuid(12345), 0);
    expect(GPU, GPUHAL_HARDWARE_NO_PERMISSION, GPUHAL_HARDWARE_PROBLEM,
           "may not open /dev/dri/renderD128, which is for the group render", "sudo usermod -aG render $USER");
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(node, 0600), 0);
    assert_int_equal(seteuid(12345), 0);
    expect(GPU, GPUHAL_HARDWARE_NO_PERMISSION, GPUHAL_HARDWARE_PROBLEM, "and neither may its group render",
           "sudo chgrp render /dev/dri/renderD128");
    assert_int_equal(seteuid(0), 0);
    put(".dockerenv", "");
    assert_int_equal(chmod(node, 0660), 0);
    assert_int_equal(seteuid(12345), 0);
    expect(GPU, GPUHAL_HARDWARE_NO_PERMISSION, GPUHAL_HARDWARE_PROBLEM, "render", "docker run --group-add 992 …");
    assert_int_equal(seteuid(0), 0);
    put("run/.containerenv", "");
    assert_int_equal(seteuid(12345), 0);
    expect(GPU, GPUHAL_HARDWARE_NO_PERMISSION, GPUHAL_HARDWARE_PROBLEM, "render",
           "podman run --group-add keep-groups …");
    assert_int_equal(seteuid(0), 0);
    end_machine();
}

TEST(a_gpu_that_the_drivers_settings_leave_out_is_hidden)
{
    begin_machine();
    put_nvidia(GPU, 0);
    put("proc/driver/nvidia/gpus/" GPU "/information", "Model: \t NVIDIA H100\nGPU Excluded:\t Yes\n");
    expect(GPU, GPUHAL_HARDWARE_HIDDEN, GPUHAL_HARDWARE_NOTE, "NVreg_ExcludedGpus", "grep -r NVreg_ExcludedGpus");
    end_machine();
}

/* ---- libraries and drivers */

TEST(a_missing_user_library_names_its_package_and_is_a_problem_if_no_gpu_works)
{
    begin_machine();
    refuse_all();
    put("etc/os-release", "ID=ubuntu\nID_LIKE=debian\n");
    put_nvidia(GPU, 0);
    put_amd("0000:03:00.0", 0);
    expect(GPU, GPUHAL_HARDWARE_NO_LIBRARY, GPUHAL_HARDWARE_PROBLEM,
           "CUDA is not installed; its kernel driver, nvidia, is loaded", "sudo apt install libnvidia-compute-580");
    expect("0000:03:00.0", GPUHAL_HARDWARE_NO_LIBRARY, GPUHAL_HARDWARE_WARNING, "no driver of Vulkan or OpenCL",
           "sudo apt install mesa-vulkan-drivers");
    now.refusal_count = 2; /* Vulkan is installed now */
    keep_fact(add_device("vulkan", "AMD Radeon"), "pci_address", "0000:03:00.0");
    expect(GPU, GPUHAL_HARDWARE_NO_LIBRARY, GPUHAL_HARDWARE_WARNING, "CUDA is not installed", "libnvidia-compute-580");
    expect("0000:03:00.0", GPUHAL_HARDWARE_READY, GPUHAL_HARDWARE_FINE, "", "");
    end_machine();
}

TEST(a_library_of_another_version_than_the_kernel_module_is_named)
{
    begin_machine();
    refuse("cuda", GPUHAL_ERROR_INCOMPATIBLE, "libcuda supports CUDA 13.0, and the kernel's driver is 535.54.03");
    now.refusals[0].code = 803;
    put_nvidia(GPU, 0);
    expect(GPU, GPUHAL_HARDWARE_VERSION_MISMATCH, GPUHAL_HARDWARE_PROBLEM, "libcuda supports CUDA 13.0",
           "# ends all programs on this machine:\nsudo reboot");
    put(".dockerenv", "");
    expect(GPU, GPUHAL_HARDWARE_VERSION_MISMATCH, GPUHAL_HARDWARE_PROBLEM, "CUDA: ", "on the host");
    end_machine();
}

TEST(an_error_of_the_vendors_driver_is_quoted_with_a_command_to_mend_it)
{
    begin_machine();
    put_nvidia(GPU, 0);
    refuse("cuda", GPUHAL_ERROR_BUSY, "the machine's GPUs are not set up yet");
    now.refusals[0].code = 802;
    expect(GPU, GPUHAL_HARDWARE_DRIVER_ERROR, GPUHAL_HARDWARE_PROBLEM, "CUDA: the machine's GPUs are not set up yet",
           "sudo systemctl restart nvidia-fabricmanager");
    now.refusals[0].reason = "CUDA_ERROR_UNKNOWN: is the fabric manager running?"; /* the wording has no effect */
    now.refusals[0].code = 999;
    put("dev/nvidia-uvm", "");
    expect(GPU, GPUHAL_HARDWARE_DRIVER_ERROR, GPUHAL_HARDWARE_PROBLEM, "CUDA: CUDA_ERROR_UNKNOWN: is the fabric",
           "sudo dmesg | grep -E 'NVRM|Xid'");
    now.refusals[0].status = GPUHAL_ERROR_NO_PERMISSION;
    now.refusals[0].reason = "the system refused the driver";
    expect(GPU, GPUHAL_HARDWARE_NO_PERMISSION, GPUHAL_HARDWARE_PROBLEM, "CUDA: the system refused the driver",
           "ls -l /dev/nvidia0");
    end_machine();
}

TEST(a_missing_node_of_cudas_memory_is_a_missing_node_of_the_host_or_of_this_container)
{
    begin_machine();
    put_nvidia(GPU, 0);
    refuse("cuda", GPUHAL_ERROR_DRIVER, "CUDA_ERROR_UNKNOWN: unknown error");
    now.refusals[0].code = 999;
    expect(GPU, GPUHAL_HARDWARE_NODE_MISSING, GPUHAL_HARDWARE_PROBLEM, "/dev/nvidia-uvm, which CUDA needs, is missing",
           "sudo modprobe nvidia_uvm && sudo nvidia-modprobe -u");
    put(".dockerenv", "");
    expect(GPU, GPUHAL_HARDWARE_NODE_MISSING, GPUHAL_HARDWARE_PROBLEM,
           "this container has the other nodes of the GPU, but not /dev/nvidia-uvm", "docker run --gpus all …");
    end_machine();
}

TEST(a_gpu_that_another_api_can_use_while_its_vendors_cannot_is_ready_and_still_a_problem)
{
    begin_machine();
    put_nvidia(GPU, 0);
    put_amd("0000:03:00.0", 0);
    put("sys/class/kfd/kfd/topology/nodes/1/properties", "location_id 768\ndomain 0\n");
    put("dev/kfd", "");
    refuse("cuda", GPUHAL_ERROR_DRIVER, "CUDA_ERROR_UNKNOWN: unknown error");
    refuse("rocm", GPUHAL_ERROR_NO_DRIVER, "tried libamdhip64.so.7: not found");
    keep_fact(add_device("vulkan", "NVIDIA H100"), "pci_address", GPU);
    keep_fact(add_device("vulkan", "AMD Radeon"), "pci_address", "0000:03:00.0");
    expect(GPU, GPUHAL_HARDWARE_READY, GPUHAL_HARDWARE_PROBLEM,
           "other APIs can use it, but CUDA cannot: CUDA: CUDA_ERROR_UNKNOWN", "dmesg");
    expect("0000:03:00.0", GPUHAL_HARDWARE_READY, GPUHAL_HARDWARE_FINE, "", "");
    now.refusals[1].status = GPUHAL_ERROR_NO_DEVICE;
    expect("0000:03:00.0", GPUHAL_HARDWARE_READY, GPUHAL_HARDWARE_WARNING, "but ROCm cannot", "");
    now.refusals[1].status = GPUHAL_ERROR_NO_PERMISSION;
    expect("0000:03:00.0", GPUHAL_HARDWARE_READY, GPUHAL_HARDWARE_PROBLEM, "but ROCm cannot", "ls -l /dev/kfd");
    end_machine();
}

TEST(of_a_gpu_with_mig_and_no_instance_and_a_broken_one_each_has_its_own_cause)
{
    begin_machine();
    put_nvidia(GPU, 0);
    put_nvidia("0000:02:00.0", 1);
    refuse("cuda", GPUHAL_ERROR_NO_DEVICE, "missing access to device nodes hides the other");
    now.refusals[0].starts = true;
    recorded_device *empty = add_device("cuda", "NVIDIA H100");
    keep_fact(empty, "pci_address", GPU);
    keep_fact(empty, "unlisted", "MIG is on, and it has no instance: no program can use it");
    expect(GPU, GPUHAL_HARDWARE_NO_INSTANCE, GPUHAL_HARDWARE_NOTE, "MIG is on, and it has no instance",
           "sudo nvidia-smi mig -i " GPU " -lgip\n# then, with an ID of that list:\nsudo nvidia-smi mig -i " GPU
           " -cgi ID -C\n# or, to use the whole GPU:\nsudo nvidia-smi -i " GPU " -mig 0");
    expect("0000:02:00.0", GPUHAL_HARDWARE_DRIVER_ERROR, GPUHAL_HARDWARE_PROBLEM,
           "CUDA lists no device, although this process may open the nodes of this GPU",
           "sudo dmesg | grep -E 'NVRM|Xid'\n# \"RmInitAdapter failed\", ");
    end_machine();
}

/* If other GPUs work, the plugin reports a missing MIG instance for the GPU that lacks it. */
TEST(beside_a_gpu_that_is_listed_one_with_mig_and_no_instance_and_a_broken_one_have_their_own_causes)
{
    begin_machine();
    put_nvidia(GPU, 0);
    put_nvidia("0000:02:00.0", 1);
    put_nvidia("0000:03:00.0", 2);
    keep_fact(add_device("cuda", "NVIDIA H100"), "pci_address", "0000:03:00.0");
    recorded_device *empty = add_device("cuda", "NVIDIA H100");
    keep_fact(empty, "pci_address", GPU);
    keep_fact(empty, "unlisted", "MIG is on, and it has no instance: no program can use it");
    expect(GPU, GPUHAL_HARDWARE_NO_INSTANCE, GPUHAL_HARDWARE_NOTE, "MIG is on, and it has no instance", "-lgip");
    expect("0000:02:00.0", GPUHAL_HARDWARE_DRIVER_ERROR, GPUHAL_HARDWARE_PROBLEM,
           "CUDA lists other GPUs, but not this one", "dmesg");
    expect("0000:03:00.0", GPUHAL_HARDWARE_READY, GPUHAL_HARDWARE_FINE, "", "");
    end_machine();
}

/* ---- hidden */

TEST(a_variable_that_names_other_devices_hides_this_one)
{
    static const char *const values[] = {"1", "-1", "", "GPU-0123456789", "NoDevFiles"};
    begin_machine();
    put_nvidia(GPU, 0);
    put_nvidia("0000:02:00.0", 1);
    keep_fact(add_device("cuda", "NVIDIA H100"), "pci_address", "0000:02:00.0");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        char why[64];
        setenv("CUDA_VISIBLE_DEVICES", values[i], 1);
        snprintf(why, sizeof why, "CUDA_VISIBLE_DEVICES=%s hides it from CUDA", *values[i] ? values[i] : "\"\"");
        expect(GPU, GPUHAL_HARDWARE_HIDDEN, GPUHAL_HARDWARE_NOTE, why, "unset CUDA_VISIBLE_DEVICES");
    }
    setenv("CUDA_VISIBLE_DEVICES", "0,1", 1);
    expect(GPU, GPUHAL_HARDWARE_DRIVER_ERROR, GPUHAL_HARDWARE_PROBLEM, "names more devices than CUDA lists",
           "unset CUDA_VISIBLE_DEVICES");
    unsetenv("CUDA_VISIBLE_DEVICES");
    expect(GPU, GPUHAL_HARDWARE_DRIVER_ERROR, GPUHAL_HARDWARE_PROBLEM, "CUDA lists other GPUs, but not this one",
           "dmesg");
    end_machine();
}

TEST(a_value_of_a_variable_is_shortened_and_has_no_control_character)
{
    char value[200];
    begin_machine();
    put_nvidia(GPU, 0);
    memset(value, '\033', sizeof value);
    value[sizeof value - 1] = 0;
    setenv("CUDA_VISIBLE_DEVICES", value, 1);
    refuse("cuda", GPUHAL_ERROR_NO_DEVICE, "none");
    gpuhal *gpu = open_listed(NULL);
    gpuhal_view *view = view_or_fail(gpu);
    const gpuhal_hardware_info info = info_at(view, GPU);
    assert_null(strchr(info.why, '\033'));
    assert_non_null(strstr(info.why, "…"));
    assert_true(strlen(info.why) < 160);
    gpuhal_view_release(view);
    gpuhal_close(gpu);
    unsetenv("CUDA_VISIBLE_DEVICES");
    end_machine();
}

TEST(settings_of_this_library_hide_devices_and_their_hardware_is_not_broken)
{
    begin_machine();
    put_nvidia(GPU, 0);
    put_nvidia("0000:02:00.0", 1);
    keep_fact(add_device("cuda", "NVIDIA H100"), "pci_address", GPU);
    keep_fact(add_device("cuda", "NVIDIA H100"), "pci_address", "0000:02:00.0");
    setenv("GPUHAL_DEVICES", "cuda:1", 1);
    expect(GPU, GPUHAL_HARDWARE_HIDDEN, GPUHAL_HARDWARE_NOTE, "GPUHAL_DEVICES=cuda:1 leaves it out",
           "unset GPUHAL_DEVICES");
    expect("0000:02:00.0", GPUHAL_HARDWARE_READY, GPUHAL_HARDWARE_FINE, "", "");
    unsetenv("GPUHAL_DEVICES");
    setenv("GPUHAL_BACKENDS", "-cuda", 1);
    expect(GPU, GPUHAL_HARDWARE_HIDDEN, GPUHAL_HARDWARE_NOTE, "GPUHAL_BACKENDS=-cuda leaves CUDA out",
           "unset GPUHAL_BACKENDS");
    unsetenv("GPUHAL_BACKENDS");
    end_machine();
}

/* ---- lost */

TEST(a_device_whose_configuration_space_reads_as_ones_is_off_the_bus_and_one_that_sleeps_is_not_asked)
{
    begin_machine();
    put_nvidia(GPU, 0);
    keep_fact(add_device("cuda", "NVIDIA H100"), "pci_address", GPU);
    put_at(GPU, "config", "\xff\xff\xff\xff");
    expect(GPU, GPUHAL_HARDWARE_OFF_BUS, GPUHAL_HARDWARE_PROBLEM, "has fallen off the bus", "NVRM|Xid");
    put_at(GPU, "power/runtime_status", "suspended\n");
    expect(GPU, GPUHAL_HARDWARE_READY, GPUHAL_HARDWARE_FINE, "", "");
    put_at(GPU, "power/runtime_status", "active\n");
    put_at(GPU, "config", "\xde\x10\x30\x23");
    expect(GPU, GPUHAL_HARDWARE_READY, GPUHAL_HARDWARE_FINE, "", "");
    end_machine();
}

TEST(a_recorded_gpu_without_a_listing_is_missing_from_the_bus_or_the_driver)
{
    begin_machine();
    char registry[128];
    snprintf(registry, sizeof registry, "%s/registry", tree_root);
    setenv("GPUHAL_REGISTRY", registry, 1);
    put_nvidia(GPU, 0);
    put_nvidia("0000:02:00.0", 1);
    keep_fact(add_device("cuda", "NVIDIA H100"), "vendor_id", "0x10de");
    keep_fact(&now.devices[1], "pci_address", GPU);
    keep_fact(add_device("cuda", "NVIDIA H100 80GB"), "vendor_id", "0x10de");
    keep_fact(&now.devices[2], "pci_address", "0000:02:00.0");
    expect("0000:02:00.0", GPUHAL_HARDWARE_READY, GPUHAL_HARDWARE_FINE, "", "");
    gpuhal *earlier = open_listed(NULL);
    gpuhal_view *before = view_or_fail(earlier);
    const uint32_t number = info_at(before, "0000:02:00.0").physical;
    assert_true(number > 0);
    gpuhal_view_release(before);
    gpuhal_close(earlier);
    gpuhal_facts_finish(&now.devices[2].facts);
    now.device_count = 2;
    expect("0000:02:00.0", GPUHAL_HARDWARE_DRIVER_ERROR, GPUHAL_HARDWARE_PROBLEM, "CUDA does not list it any more",
           "sudo dmesg | grep -E 'NVRM|Xid'");
    remove_part("sys/bus/pci/devices/0000:02:00.0");
    remove_part("proc/driver/nvidia/gpus/0000:02:00.0");
    gpuhal *gpu = open_listed(NULL);
    gpuhal_view *view = view_or_fail(gpu);
    const gpuhal_hardware_info info = info_at(view, "0000:02:00.0");
    expect_state(&info, GPUHAL_HARDWARE_GONE, GPUHAL_HARDWARE_PROBLEM);
    assert_string_equal(info.vendor, "NVIDIA");
    assert_string_equal(info.name, "NVIDIA H100 80GB");
    assert_true(info.last_seen > 0);
    assert_int_equal(info.physical, number);
    assert_non_null(strstr(info.why, "but is not there any more"));
    gpuhal_view_release(view);
    gpuhal_close(gpu);
    end_machine();
}

/* ---- hardware that is not on PCI */

TEST(a_gpu_on_a_chip_is_listed_by_its_render_node_and_a_device_without_an_address_stands_for_it)
{
    begin_machine();
    put_link("sys/class/drm/renderD128", "../../devices/platform/soc/fde60000.gpu/drm/renderD128");
    put_link("sys/class/drm/card0", "../../devices/platform/soc/display/drm/card0");
    put_link("sys/class/drm/renderD130", "../../devices/platform/amdgpu_xcp.1/drm/renderD130");
    put_link("sys/devices/platform/amdgpu_xcp.1/drm/renderD130/device", "../..");
    put_link("sys/devices/platform/amdgpu_xcp.1/subsystem", "../../../bus/platform");
    put("sys/devices/platform/soc/fde60000.gpu/drm/renderD128/dev", "226:128\n");
    put_link("sys/devices/platform/soc/fde60000.gpu/drm/renderD128/device", "../..");
    put_link("sys/devices/platform/soc/fde60000.gpu/subsystem", "../../../../bus/platform");
    put_link("sys/devices/platform/soc/fde60000.gpu/driver", "../../../../bus/platform/drivers/panfrost");
    put("dev/dri/renderD128", "");
    refuse_all();
    expect("", GPUHAL_HARDWARE_NO_LIBRARY, GPUHAL_HARDWARE_WARNING, "panfrost, is loaded", "vulkan");
    now.refusal_count = 0;
    (void)add_device("opencl", "Mali-G52");
    gpuhal *gpu = open_listed(NULL);
    gpuhal_view *view = view_or_fail(gpu);
    const gpuhal_hardware_info info = info_at(view, "");
    assert_int_equal(gpuhal_view_count(view, GPUHAL_RECORD_HARDWARE), 1);
    expect_state(&info, GPUHAL_HARDWARE_READY, GPUHAL_HARDWARE_FINE);
    assert_string_equal(info.place, "platform/soc/fde60000.gpu");
    assert_string_equal(info.name, "Arm Mali");
    assert_string_equal(info.drm_render_node, "/dev/dri/renderD128");
    gpuhal_view_release(view);
    gpuhal_close(gpu);
    end_machine();
}

TEST(a_gpu_of_windows_is_ready_under_wsl_with_any_address)
{
    begin_machine();
    put("dev/dxg", "");
    keep_fact(add_device("cuda", "NVIDIA GeForce RTX 4090"), "pci_address", "0000:01:00.0");
    gpuhal *gpu = open_listed(NULL);
    gpuhal_view *view = view_or_fail(gpu);
    assert_int_equal(gpuhal_view_count(view, GPUHAL_RECORD_HARDWARE), 1);
    const gpuhal_hardware_info info = info_of(view, 0);
    expect_state(&info, GPUHAL_HARDWARE_READY, GPUHAL_HARDWARE_FINE);
    assert_string_equal(info.vendor_node, "/dev/dxg");
    gpuhal_view_release(view);
    gpuhal_close(gpu);
    end_machine();
}

#include "test_main.h"
