/* Machines whose kernel lists impossible things. The view must be created in time, without an error, a wrong number or
 * a control character, and without the opening of a device. */
#include "hardware_support.h"

#include "os/os.h"

#include <fcntl.h>
#include <sys/inotify.h>

#define GPU "0000:01:00.0"

static gpuhal_view *look(gpuhal **out_gpu)
{
    alarm(30);
    *out_gpu = open_listed(NULL);
    gpuhal_view *view = view_or_fail(*out_gpu);
    alarm(0);
    return view;
}

static void end_look(gpuhal *gpu, gpuhal_view *view)
{
    gpuhal_view_release(view);
    gpuhal_close(gpu);
    end_machine();
}

/* @p line_end is the line separator if several lines are allowed, otherwise 0. */
static void expect_clean_but(const char *text, char line_end)
{
    for (const char *at = text; *at; at++) {
        if (((unsigned char)*at < 0x20 && *at != line_end) || *at == 0x7f) {
            fail_msg("\"%s\" has the byte %#x", text, (unsigned)*at);
        }
    }
}

static void expect_clean(const char *text)
{
    expect_clean_but(text, 0);
}

static void put_fifo(const char *path)
{
    char whole[512];
    place_in_tree(path, whole);
    assert_int_equal(mkfifo(whole, 0666), 0);
}

TEST(numbers_that_cannot_be_are_unknown)
{
    begin_machine();
    static const char *const files[][2] = {{"vendor", "0x123456789abcdef01234\n"}, {"device", "-1\n"},
                                           {"subsystem_vendor", "10de rubbish\n"}, {"subsystem_device", "\n"},
                                           {"numa_node", "99999999999\n"},         {"local_cpulist", "0-3;rm -rf\n"}};
    put_at(GPU, "class", "0x030000\n");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        put_at(GPU, files[i][0], files[i][1]);
    }
    put_at("0000:02:00.0", "class", "0xffffffffffffffffff\n");
    put_at("0000:03:00.0", "class", "");
    put_at("0000:04:00.0", "device", "0x1234\n");
    put_at("0000:05:00.8", "class", "0x030000\n");
    put_at("0000:6:0.0", "class", "0x030000\n");
    put_at("no address", "class", "0x030000\n");
    gpuhal *gpu;
    gpuhal_view *view = look(&gpu);
    assert_int_equal(gpuhal_view_count(view, GPUHAL_RECORD_HARDWARE), 1);
    const gpuhal_hardware_info info = info_at(view, GPU);
    assert_int_equal(info.vendor_id, 0);
    assert_int_equal(info.device_id, 0);
    assert_int_equal(info.subsystem_vendor_id, 0);
    assert_int_equal(info.subsystem_id, 0);
    assert_int_equal(info.numa_node, UINT32_MAX);
    assert_string_equal(info.local_cpus, "");
    end_look(gpu, view);
}

TEST(names_with_escape_sequences_are_cleaned)
{
    begin_machine();
    put_pci(GPU, "030000", "10de:2684", "nvidia");
    put("proc/driver/nvidia/gpus/" GPU "/information",
        "Model: \t\033[2J\033]0;owned\007NVIDIA\xff\r\nDevice Minor: 0;reboot\n");
    put_pci("0000:02:00.0", "030000", "10de:2685", NULL);
    put("usr/share/hwdata/pci.ids", "10de  NVIDIA\n\t2685  AD102 [\033[31mGeForce\xe2\x80\xae]\n");
    put("sys/module/nvidia/version", "\033[1m580\n");
    gpuhal *gpu;
    gpuhal_view *view = look(&gpu);
    for (uint32_t i = 0; i < gpuhal_view_count(view, GPUHAL_RECORD_HARDWARE); i++) {
        const gpuhal_hardware_info info = info_of(view, i);
        expect_clean(info.name);
        expect_clean(info.vendor);
        expect_clean(info.kernel_driver);
        expect_clean(info.kernel_driver_version);
        expect_clean(info.why);
        expect_clean_but(info.fix, '\n');
        assert_null(strstr(info.name, "\xe2\x80\xae"));
    }
    assert_string_equal(info_at(view, GPU).vendor_node, "");
    end_look(gpu, view);
}

TEST(fifos_folders_and_circles_in_the_place_of_files_do_not_stop_it)
{
    static const char *const files[] = {"vendor", "device", "numa_node", "local_cpulist", "power/runtime_status",
                                        "config"};
    begin_machine();
    put_at(GPU, "class", "0x030000\n");
    put_at("0000:02:00.0", "class", "0x030000\n");
    put_at("0000:03:00.0", "class", "0x030000\n");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[256];
        snprintf(path, sizeof path, "sys/bus/pci/devices/" GPU "/%s", files[i]);
        put_fifo(path);
        snprintf(path, sizeof path, "sys/bus/pci/devices/0000:02:00.0/%s", files[i]);
        put_link(path, "./circle");
        snprintf(path, sizeof path, "sys/bus/pci/devices/0000:03:00.0/%s/inner", files[i]);
        put(path, "");
    }
    put_link("sys/bus/pci/devices/0000:02:00.0/circle", "circle");
    put_link("sys/bus/pci/devices/0000:02:00.0/driver", "driver");
    put_link("sys/bus/pci/devices/0000:04:00.0", "0000:04:00.0");
    put_link("sys/class/drm/renderD128", "renderD128");
    put_link("sys/class/drm/renderD129", "../../devices/nowhere/drm/renderD129");
    put_fifo("usr/share/misc/pci.ids");
    put_fifo("proc/sys/kernel/osrelease");
    put_fifo("etc/os-release");
    put_fifo("sys/class/kfd/kfd/topology/nodes/1/properties");
    gpuhal *gpu;
    gpuhal_view *view = look(&gpu);
    assert_int_equal(gpuhal_view_count(view, GPUHAL_RECORD_HARDWARE), 3);
    end_look(gpu, view);
}

TEST(thousands_of_entries_are_looked_through_and_a_bounded_number_is_listed)
{
    begin_machine();
    for (unsigned i = 0; i < 3000; i++) {
        char path[128];
        snprintf(path, sizeof path, "sys/bus/pci/devices/%04x:%02x:00.0/class", i >> 8, i & 0xff);
        put(path, i % 10 ? "0x020000\n" : "0x030000\n");
    }
    gpuhal *gpu;
    gpuhal_view *view = look(&gpu);
    assert_int_equal(gpuhal_view_count(view, GPUHAL_RECORD_HARDWARE), 256);
    assert_string_equal(info_of(view, 255).address, "0009:f6:00.0");
    end_look(gpu, view);
}

/* Invalid entries of a truncated, a huge and a binary list must not be used. Later valid entries must be found. */
TEST(rubbish_in_the_list_of_pci_ids_names_nothing)
{
    begin_machine();
    put_pci(GPU, "030000", "10de:2684", NULL);
    put_pci("0000:02:00.0", "030000", "abcd:0001", NULL);
    static const char early[] = "\n\t2684  No vendor yet\n\t\n\n\0\n10d\n10de\n10de \n10DE  Capitals\n";
    static const char middle[] = "\nzzzz  Nothing\n\t2684  Not of NVIDIA\n10de  NVIDIA Corporation\n\t2684AD102\n";
    static const char late[] =
        "\n10de  NVIDIA Corporation\n\t2684  AD102 [GeForce RTX 4090]\nabcd  Some Vendor\n\t0001";
    enum { BYTES = 399000 + sizeof late - 1 };
    char *text = malloc(BYTES);
    assert_non_null(text);
    memset(text, 'x', BYTES);
    memcpy(text + 1000, early, sizeof early - 1);
    memcpy(text + 200000, middle, sizeof middle - 1);
    memcpy(text + 399000, late, sizeof late - 1);
    put_bytes("usr/share/misc/pci.ids", text, BYTES);
    gpuhal *gpu;
    gpuhal_view *view = look(&gpu);
    assert_string_equal(info_at(view, GPU).name, "NVIDIA GeForce RTX 4090");
    assert_string_equal(info_at(view, "0000:02:00.0").name, "Some Vendor device 0001");
    free(text);
    end_look(gpu, view);
}

/* The nodes are FIFOs, which would stop a process that opens them. The test watches for openings with inotify. */
TEST(no_device_node_is_opened)
{
    begin_machine();
    put_pci(GPU, "030200", "10de:2330", "nvidia");
    put_pci("0000:02:00.0", "030000", "1002:744c", "amdgpu");
    put_drm("0000:02:00.0", 0, 128);
    put("sys/class/kfd/kfd/topology/nodes/1/properties", "location_id 512\ndomain 0\n");
    put("proc/driver/nvidia/gpus/" GPU "/information", "Device Minor: \t 0\n");
    static const char *const nodes[] = {"dev/nvidia0", "dev/nvidiactl", "dev/kfd", "dev/dri/renderD128",
                                        "dev/dri/card0"};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        put_fifo(nodes[i]);
    }
    gpuhal *gpu = open_listed(NULL);
    char path[256], events[4096];
    const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    snprintf(path, sizeof path, "%s/dev", tree_root);
    assert_true(watch >= 0 && inotify_add_watch(watch, path, IN_OPEN) >= 0);
    snprintf(path, sizeof path, "%s/dev/dri", tree_root);
    assert_true(inotify_add_watch(watch, path, IN_OPEN) >= 0);
    alarm(30);
    gpuhal_view *view = view_or_fail(gpu);
    alarm(0);
    assert_int_equal(gpuhal_view_count(view, GPUHAL_RECORD_HARDWARE), 2);
    assert_int_equal(read(watch, events, sizeof events), -1);
    assert_int_equal(errno, EAGAIN);
    close(watch);
    end_look(gpu, view);
}

#include "test_main.h"
