/* What the CPU plugin reads of the system, over trees that stand for `/`. */
#include <sys/sysinfo.h>

#include "registry_support.h"

/* The kernel's answer changes from call to call: this one does not. */
static int known_sysinfo(struct sysinfo *out_info)
{
    *out_info = (struct sysinfo){.totalram = 1000, .freeram = 300, .bufferram = 20, .mem_unit = 4096};
    return 0;
}

#define sysinfo(info) known_sysinfo(info)
#include "../../plugins/cpu/system.c"

static void put_meminfo(const char *root, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/proc", root);
    assert_true(mkdir(path, 0755) == 0 || access(path, F_OK) == 0);
    snprintf(path, sizeof path, "%s/proc/meminfo", root);
    put_contents(path, text, strlen(text));
}

TEST(memory_comes_from_meminfo_where_that_can_be_read)
{
    gpuhal_cpu_memory memory = {0};
    const char *root = fresh_directory();
    put_meminfo(root, "MemTotal:        2048 kB\nMemFree:          100 kB\nMemAvailable:    1024 kB\n");
    assert_true(gpuhal_cpu_system_memory(root, &memory));
    assert_int_equal(memory.total, 2048 << 10);
    assert_int_equal(memory.free, 1024 << 10);
}

/* As in a chroot, with ProcSubset=pid of systemd, and with a file that says something else. */
TEST(memory_comes_from_sysinfo_where_there_is_no_proc_or_no_meminfo_in_it)
{
    for (int i = 0; i < 3; i++) {
        gpuhal_cpu_memory memory = {0};
        const char *root = fresh_directory();
        if (i > 0) {
            put_meminfo(root, i == 1 ? "" : "MemTotal: none\n");
        }
        assert_true(gpuhal_cpu_system_memory(root, &memory));
        assert_int_equal(memory.total, 1000 * 4096);
        assert_int_equal(memory.free, 320 * 4096);
    }
}

#include "test_main.h"
