/* tests/system/rocm_tree.h: a machine's /sys and /dev as the ROCm plugin sees them, written file by file below a directory that
 * goes with the test. */
#ifndef GPUHAL_TEST_ROCM_TREE_H
#define GPUHAL_TEST_ROCM_TREE_H

#include "rocm_fake.h"

#include <ftw.h>
#include <sys/stat.h>

static char tree_root[64];

/* Parents are made as they are needed. */
static inline void put_bytes(const char *path, const void *bytes, size_t size)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s/%s", tree_root, path);
    for (char *at = strchr(whole + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)mkdir(whole, 0755);
        *at = '/';
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static inline void put(const char *path, const char *text)
{
    put_bytes(path, text, strlen(text));
}

/* A file of the device that the fake lists first. */
static inline void put_of_device(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "sys/bus/pci/devices/0000:11:00.0/%s", name);
    put(path, text);
}

static inline int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void)status;
    (void)kind;
    (void)place;
    return remove(path);
}

static inline void remove_tree(void)
{
    (void)nftw(tree_root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A directory of it. */
static inline void remove_part(const char *path)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s/%s", tree_root, path);
    assert_int_equal(nftw(whole, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* After use_machine(): an empty machine, with what the libraries for telemetry look for. */
static inline void make_tree(void)
{
    snprintf(tree_root, sizeof tree_root, "/tmp/gpuhal-machine-XXXXXX");
    assert_non_null(mkdtemp(tree_root));
    set_system_root("rocm", tree_root);
    put("sys/class/drm/version", "drm 1.1.0 20060810\n");
    put("sys/class/kfd/kfd/topology/nodes/0/gpu_id", "0\n"); /* the processor */
    put("sys/class/net/lo/ifindex", "1\n");
    put("sys/class/scsi_host/host0/state", "running\n");
}

/* As many GPUs of the kernel's compute driver, whatever HIP lists. */
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
