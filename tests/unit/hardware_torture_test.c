/* Each allocation and each system call fails once while a view is created. The view must be either created or refused
 * with an error detail. Nothing may be leaked, and the next view must be complete. */
#include "hardware_support.h"

#include "support/torture.h"

static gpuhal *object;

/* Makes a machine that gives the library reasons to look at every kind of file. */
static void put_machine(void)
{
    begin_machine();
    put_pci("0000:01:00.0", "030200", "10de:2330", "nvidia");
    put("proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t NVIDIA H100\nDevice Minor: \t 0\n");
    put_pci("0000:02:00.0", "030000", "1002:744c", "amdgpu");
    put_drm("0000:02:00.0", 0, 128);
    put("sys/class/kfd/kfd/topology/nodes/1/properties", "location_id 512\ndomain 0\n");
    put_pci("0000:03:00.0", "030000", "10de:2684", NULL);
    put("usr/share/misc/pci.ids", "10de  NVIDIA Corporation\n\t2684  AD102 [GeForce RTX 4090]\n");
    put("proc/sys/kernel/osrelease", "6.1.0\n");
    put("lib/modules/6.1.0/modules.dep", "kernel/nvidia.ko:\n");
    put("etc/modprobe.d/some.conf", "blacklist nouveau\n");
    put("etc/group", "render:x:992:\n");
    put("dev/dri/renderD128", "");
    keep_fact(add_device("cuda", "NVIDIA H100"), "pci_address", "0000:01:00.0");
}

static void open_object(void)
{
    object = open_listed(NULL);
}

static gpuhal_status make_view(void)
{
    gpuhal_view *view = NULL;
    const gpuhal_status status = gpuhal_view_of(object, GPUHAL_VIEW_HARDWARE, &view);
    if (!status) {
        const gpuhal_hardware_info first = info_of(view, 0);
        assert_int_equal(gpuhal_view_count(view, GPUHAL_RECORD_HARDWARE), 3);
        assert_int_equal(first.state, GPUHAL_HARDWARE_READY);
    } else {
        assert_null(view);
    }
    gpuhal_view_release(view);
    return status;
}

TEST(every_allocation_of_a_view_may_fail_once)
{
    put_machine();
    torture(make_view, GPUHAL_FAULT_ALLOCATION, open_object);
    end_machine();
}

/* An unreadable file leaves a value unknown; if no descriptor is available, the view is refused. */
TEST(every_system_call_of_a_view_may_fail_once)
{
    put_machine();
    torture(make_view, GPUHAL_FAULT_FAIL, open_object);
    end_machine();
}

#include "test_main.h"
