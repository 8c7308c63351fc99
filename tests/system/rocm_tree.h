/* tests/system/rocm_tree.h: the files of a tree (tree.h) that the ROCm plugin and the telemetry libraries read. */
#ifndef GPUHAL_TEST_ROCM_TREE_H
#define GPUHAL_TEST_ROCM_TREE_H

#include "vendor.h"

#include "support/tree.h"

/* Puts a file of the device that the fake lists first. */
static inline void put_of_device(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "sys/bus/pci/devices/0000:11:00.0/%s", name);
    put(path, text);
}

/* Makes a machine that has only the files that the telemetry libraries require. Must be called after use_machine(). */
static inline void make_tree(void)
{
    begin_tree();
    put("sys/class/drm/version", "drm 1.1.0 20060810\n");
    put("sys/class/kfd/kfd/topology/nodes/0/gpu_id", "0\n"); /* the CPU's node */
    put("sys/class/net/lo/ifindex", "1\n");
    put("sys/class/scsi_host/host0/state", "running\n");
}

/* Puts the files of `count` GPUs of the amdkfd driver. HIP's list does not have to agree with them. */
static inline void put_gpus(unsigned count)
{
    for (unsigned i = 1; i <= count; i++) {
        char path[96], id[16];
        snprintf(path, sizeof path, "sys/class/kfd/kfd/topology/nodes/%u/gpu_id", i);
        snprintf(id, sizeof id, "%u\n", 4000 + i);
        put(path, id);
    }
    put("dev/kfd", "");
}

#endif
