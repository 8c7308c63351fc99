/* Control group limits on device memory, with invented control groups. Pools must respect the limits. */
#include "pool_support.h"
#include "registry/limit.h"
#include "registry_support.h"

#include <sys/stat.h>

static const char *root;

static void put(const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    put_contents(path, text, strlen(text));
}

static uint64_t group_left = UINT64_MAX; /* bytes that the group leaves to pools */

uint64_t __real_gpuhal_limit_device_memory(const char *folder, const char *pci, uint64_t *out_limit);
uint64_t __wrap_gpuhal_limit_device_memory(const char *folder, const char *pci, uint64_t *out_limit);
uint64_t __wrap_gpuhal_limit_device_memory(const char *folder, const char *pci, uint64_t *out_limit)
{
    assert_string_equal(folder, "");
    assert_string_equal(pci, "0000:03:00.0");
    *out_limit = 77 * SEGMENT;
    return group_left;
}

bool __real_gpuhal_limit_counts_devices(const char *folder);
bool __wrap_gpuhal_limit_counts_devices(const char *folder);
bool __wrap_gpuhal_limit_counts_devices(const char *folder)
{
    assert_string_equal(folder, "");
    return true;
}

static uint64_t left_of(const char *pci, uint64_t *limit)
{
    return __real_gpuhal_limit_device_memory(root, pci, limit);
}

TEST(the_group_that_leaves_least_counts_and_only_for_the_device_and_its_own_memory)
{
    uint64_t limit = 0;
    root = fresh_directory();
    put("/proc/self/cgroup", "1:name=systemd:/x\n0::/one/two\n");
    assert_true(left_of("0000:03:00.0", &limit) == UINT64_MAX && limit == UINT64_MAX);
    put("/sys/fs/cgroup/dmem.capacity", "drm/0000:03:00.0/vram0 2000\n");
    assert_false(__real_gpuhal_limit_counts_devices(root));
    put("/sys/fs/cgroup/one/two/dmem.max",
        "drm/0000:03:00.0/vram0 1000\ndrm/0000:03:00.0/stolen 5\ndrm/0000:04:00.0/vram max\n");
    put("/sys/fs/cgroup/one/two/dmem.current",
        "drm/0000:03:00.0/stolen 5\ndrm/0000:03:00.0/vram0 300\ndrm/0000:04:00.0/vram 9\n");
    assert_true(__real_gpuhal_limit_counts_devices(root));
    assert_int_equal(left_of("0000:03:00.0", &limit), 700);
    assert_int_equal(limit, 1000);
    assert_true(left_of("0000:04:00.0", &limit) == UINT64_MAX);
    assert_true(left_of("0000:05:00.0", &limit) == UINT64_MAX);
    put("/sys/fs/cgroup/one/dmem.max", "drm/0000:03:00.0/vram0 800\n");
    put("/sys/fs/cgroup/one/dmem.current", "drm/0000:03:00.0/vram0 900\n");
    assert_int_equal(left_of("0000:03:00.0", &limit), 0);
    assert_int_equal(limit, 800);
}

TEST(regions_of_one_device_are_added_and_one_without_a_limit_is_enough)
{
    uint64_t limit = 0;
    root = fresh_directory();
    put("/proc/self/cgroup", "0::/a\n");
    put("/sys/fs/cgroup/a/dmem.max", "drm/0000:03:00.0/vram0 1000\ndrm/0000:03:00.0/vram1 500\n");
    assert_int_equal(left_of("0000:03:00.0", &limit), 1500);
    put("/sys/fs/cgroup/a/dmem.max", "drm/0000:03:00.0/vram0 1000\ndrm/0000:03:00.0/vram1 max\n");
    assert_true(left_of("0000:03:00.0", &limit) == UINT64_MAX);
}

TEST(nvidias_driver_has_a_region_of_its_own_name)
{
    uint64_t limit = 0;
    root = fresh_directory();
    put("/proc/self/cgroup", "0::/a\n");
    put("/sys/fs/cgroup/a/dmem.max", "nvidia/0000:03:00.0/vidmem 1000\nnvidia/0000:04:00.0/vidmem max\n");
    put("/sys/fs/cgroup/a/dmem.current", "nvidia/0000:03:00.0/vidmem 400\n");
    assert_int_equal(left_of("0000:03:00.0", &limit), 600);
    assert_int_equal(limit, 1000);
    assert_true(left_of("0000:04:00.0", &limit) == UINT64_MAX);
    put("/sys/fs/cgroup/a/dmem.max", "nvidia/0000:03:00.0/other 1000\n");
    assert_true(left_of("0000:03:00.0", &limit) == UINT64_MAX);
}

TEST(files_that_say_something_else_limit_nothing)
{
    static const char *const texts[] = {"",
                                        "\n",
                                        "drm/0000:03:00.0/vram0",
                                        "drm/0000:03:00.0/vram0 \n",
                                        "drm/0000:03:00.0/vram0 -1\n",
                                        "drm/0000:03:00.0/vram0 99999999999999999999\n"};
    uint64_t limit = 0;
    root = fresh_directory();
    put("/proc/self/cgroup", "0::/../above\n");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        put("/sys/fs/cgroup/dmem.max", texts[i]);
        assert_true(left_of("0000:03:00.0", &limit) == UINT64_MAX);
    }
    put("/sys/fs/cgroup/dmem.max", "drm/0000:03:00.0/vram0 10\n");
    assert_int_equal(left_of("0000:03:00.0", &limit), 10);
}

TEST(a_pool_takes_no_more_than_the_groups_leave)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.pci = "0000:03:00.0"}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_pool *pool = pool_or_fail(gpu, (gpuhal_pool_desc){.limit_bytes = 9 * SEGMENT});
    group_left = 3 * UNIT;
    assert_int_equal(attempt(pool, NULL, 4 * UNIT, 0, 0), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "control group"));
    gpuhal_buffer *buffer = take(pool, NULL, 2 * UNIT);
    assert_int_equal(state_of(pool).reserved.current, 3 * UNIT);
    group_left = UINT64_MAX;
    assert_int_equal(attempt(pool, NULL, 8 * SEGMENT, 0, 0), GPUHAL_OK);
    gpuhal_buffer_release(buffer);
    gpuhal_pool_destroy(pool);
    gpuhal_close(gpu);
    expect_nothing_left();
}

#include "test_main.h"
