/* The system files that the CPU plugin reads, in trees that replace `/`. */
#include <sys/sysinfo.h>

#include "registry_support.h"

/* The kernel's result changes from call to call. This function's result is constant. */
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

TEST(memory_comes_from_meminfo_if_it_can_be_read)
{
    gpuhal_cpu_memory memory = {0};
    const char *root = fresh_directory();
    put_meminfo(root, "MemTotal:        2048 kB\nMemFree:          100 kB\nMemAvailable:    1024 kB\n");
    assert_true(gpuhal_cpu_system_memory(root, &memory));
    assert_int_equal(memory.total, 2048 << 10);
    assert_int_equal(memory.free, 1024 << 10);
}

/* meminfo is missing in a chroot without /proc and under systemd's ProcSubset=pid. */
TEST(memory_comes_from_sysinfo_if_meminfo_is_missing_or_invalid)
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

static void put_number(const char *root, const char *folder, const char *file, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "mkdir -p %s/%s", root, folder);
    assert_int_equal(system(path), 0);
    snprintf(path, sizeof path, "%s/%s/%s", root, folder, file);
    put_contents(path, text, strlen(text));
}

/* Makes a machine with 64 MiB, half of it free. */
static const char *machine_or_fail(const char *groups)
{
    const char *root = fresh_directory();
    put_meminfo(root, "MemTotal: 65536 kB\nMemAvailable: 32768 kB\n");
    put_number(root, "proc/self", "cgroup", groups);
    return root;
}

static void expect_system_memory(const char *root, uint64_t total_kib, uint64_t free_kib)
{
    gpuhal_cpu_memory memory = {0};
    assert_true(gpuhal_cpu_system_memory(root, &memory));
    assert_int_equal(memory.total, total_kib << 10);
    assert_int_equal(memory.free, free_kib << 10);
}

TEST(of_the_limits_of_a_group_and_those_above_it_the_lowest_counts)
{
    const char *root = machine_or_fail("0::/outer/inner\n");
    put_number(root, "sys/fs/cgroup/outer", "memory.max", "16777216\n");
    put_number(root, "sys/fs/cgroup/outer", "memory.current", "4194304\n");
    put_number(root, "sys/fs/cgroup/outer/inner", "memory.max", "max\n");
    put_number(root, "sys/fs/cgroup/outer/inner", "memory.current", "4194304\n");
    expect_system_memory(root, 16384, 12288);
    put_number(root, "sys/fs/cgroup/outer/inner", "memory.max", "8388608\n");
    expect_system_memory(root, 8192, 4096);
    /* Cached file contents count as free. A group over its limit has no free memory. */
    put_number(root, "sys/fs/cgroup/outer/inner", "memory.stat", "anon 7\ninactive_file 1048576\nactive_file 1024\n");
    expect_system_memory(root, 8192, 4096 + 1024 + 1);
    put_number(root, "sys/fs/cgroup/outer", "memory.current", "99999999\n");
    expect_system_memory(root, 8192, 0);
}

TEST(limits_of_the_first_version_of_control_groups_count)
{
    const char *root = machine_or_fail("12:cpu:/\n4:pids,memory:/job\n");
    put_number(root, "sys/fs/cgroup/memory/job", "memory.limit_in_bytes", "8388608\n");
    put_number(root, "sys/fs/cgroup/memory/job", "memory.usage_in_bytes", "2097152\n");
    put_number(root, "sys/fs/cgroup/memory/job", "memory.stat", "total_inactive_file 4096\ntotal_active_file 0\n");
    expect_system_memory(root, 8192, 6144 + 4);
}

TEST(a_limit_above_the_machines_memory_changes_nothing)
{
    const char *root = machine_or_fail("0::/\n");
    put_number(root, "sys/fs/cgroup", "memory.max", "99999999999\n");
    put_number(root, "sys/fs/cgroup", "memory.current", "1\n");
    expect_system_memory(root, 65536, 32768);
}

static const char *processors_or_fail(const char *groups)
{
    const char *root = machine_or_fail(groups);
    put_number(root, "sys/devices/system/cpu", "online", "0-7\n");
    return root;
}

TEST(processors_are_as_many_as_the_time_that_the_groups_give)
{
    const char *root = processors_or_fail("0::/outer/inner\n");
    assert_int_equal(gpuhal_cpu_system_processors(root), 8);
    put_number(root, "sys/fs/cgroup/outer/inner", "cpu.max", "max 100000\n");
    assert_int_equal(gpuhal_cpu_system_processors(root), 8);
    put_number(root, "sys/fs/cgroup/outer", "cpu.max", "350000 100000\n");
    assert_int_equal(gpuhal_cpu_system_processors(root), 4);
    put_number(root, "sys/fs/cgroup/outer/inner", "cpu.max", "200000 100000\n");
    assert_int_equal(gpuhal_cpu_system_processors(root), 2);
    put_number(root, "sys/fs/cgroup/outer/inner", "cpu.max", "1000 100000\n");
    assert_int_equal(gpuhal_cpu_system_processors(root), 1);
    put_number(root, "sys/fs/cgroup/outer/inner", "cpu.max", "18446744073709551615 1\n");
    assert_int_equal(gpuhal_cpu_system_processors(root), 4);
    put_number(root, "sys/fs/cgroup/outer", "cpu.max", "350000 0\n");
    assert_int_equal(gpuhal_cpu_system_processors(root), 8);
    put_number(root, "sys/fs/cgroup/outer", "cpu.max", "350000\n");
    assert_int_equal(gpuhal_cpu_system_processors(root), 8);
}

TEST(the_first_version_of_control_groups_has_quota_and_period_in_files_of_their_own)
{
    const char *root = processors_or_fail("4:cpu,cpuacct:/job\n");
    put_number(root, "sys/fs/cgroup/cpu/job", "cpu.cfs_period_us", "100000\n");
    put_number(root, "sys/fs/cgroup/cpu/job", "cpu.cfs_quota_us", "-1\n");
    assert_int_equal(gpuhal_cpu_system_processors(root), 8);
    put_number(root, "sys/fs/cgroup/cpu/job", "cpu.cfs_quota_us", "250000\n");
    assert_int_equal(gpuhal_cpu_system_processors(root), 3);
}

#include "test_main.h"
