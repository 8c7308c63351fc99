/* The limit of the kernel's control groups on device memory (dmem.max). Buffers, values, ranking and leases must
 * respect the limit and name the kernel as the reason. The test replaces the kernel's number. */
#include "lease_support.h"
#include "registry/limit.h"

#include <gpuhal/schedule/rank.h>
#include <gpuhal/telemetry.h>

static uint64_t left = UINT64_MAX, limit = UINT64_MAX;
static int looks;

bool __wrap_gpuhal_limit_counts_devices(const char *root);
bool __wrap_gpuhal_limit_counts_devices(const char *root)
{
    assert_string_equal(root, "");
    return limit != UINT64_MAX;
}

uint64_t __wrap_gpuhal_limit_device_memory(const char *root, const char *pci, uint64_t *out_limit);
uint64_t __wrap_gpuhal_limit_device_memory(const char *root, const char *pci, uint64_t *out_limit)
{
    assert_string_equal(root, "");
    const bool is_first = strcmp(pci, "0000:03:00.0") == 0;
    looks++;
    *out_limit = is_first ? limit : UINT64_MAX;
    return is_first ? left : UINT64_MAX;
}

static gpuhal *open_two(void)
{
    fresh_ledger();
    mock_gpus(2);
    for (uint32_t i = 0; i < 2; i++) {
        gpuhal_mock.devices[i].pci = i == 0 ? "0000:03:00.0" : "0000:04:00.0";
        gpuhal_mock.devices[i].total_bytes = 1024 * MIB;
        gpuhal_mock.devices[i].values[0] =
            (gpuhal_mock_value){.key = GPUHAL_VALUE_MEMORY_FREE_BYTES, .u64 = 1024 * MIB};
    }
    return open_leasing();
}

static gpuhal_status create(gpuhal *gpu, uint32_t index, gpuhal_memory_kind kind, uint64_t bytes)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = bytes, .kind = kind};
    gpuhal_buffer *buffer = NULL;
    const gpuhal_status status = gpuhal_buffer_create(gpuhal_device_at(gpu, index), &desc, &buffer);
    gpuhal_buffer_release(buffer);
    return status;
}

TEST(a_buffer_of_more_than_the_groups_leave_is_refused_and_the_limit_named)
{
    left = 3 * MIB;
    limit = 8 * MIB;
    gpuhal *gpu = open_two();
    assert_int_equal(create(gpu, 0, GPUHAL_MEMORY_DEVICE, 4 * MIB), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "4194304 bytes requested, 3145728 left of the limit of this "
                                                          "process's control group (dmem.max), 8388608 bytes"));
    assert_ok(create(gpu, 0, GPUHAL_MEMORY_DEVICE, 3 * MIB));
    assert_ok(create(gpu, 0, GPUHAL_MEMORY_UPLOAD, 4 * MIB));
    assert_ok(create(gpu, 1, GPUHAL_MEMORY_DEVICE, 4 * MIB));
    left = 5 * MIB; /* other processes of the group have released memory */
    assert_ok(create(gpu, 0, GPUHAL_MEMORY_DEVICE, 4 * MIB));
    gpuhal_close(gpu);
}

TEST(available_memory_is_bounded_by_the_groups_and_its_source_says_so)
{
    left = 3 * MIB;
    limit = 8 * MIB;
    gpuhal *gpu = open_two();
    for (uint32_t i = 0; i < 2; i++) {
        gpuhal_value value = {.key = GPUHAL_VALUE_MEMORY_AVAILABLE_BYTES};
        assert_ok(gpuhal_device_sample(gpuhal_device_at(gpu, i), 0, &value, 1, NULL));
        assert_int_equal(value.u64, i == 0 ? 3 * MIB : 1024 * MIB);
        assert_int_equal(strcmp(value.source, "cgroup") == 0, i == 0);
    }
    gpuhal_close(gpu);
}

TEST(the_limit_is_a_value_of_its_own_that_says_who_has_it)
{
    left = 3 * MIB;
    limit = 8 * MIB;
    gpuhal *gpu = open_two();
    gpuhal_mock.devices[1].values[1] = (gpuhal_mock_value){.key = GPUHAL_VALUE_MEMORY_LIMIT_BYTES, .u64 = 7 * MIB};
    for (uint32_t i = 0; i < 2; i++) {
        gpuhal_value value = {.key = GPUHAL_VALUE_MEMORY_LIMIT_BYTES};
        assert_ok(gpuhal_device_sample(gpuhal_device_at(gpu, i), 0, &value, 1, NULL));
        assert_int_equal(value.u64, (i == 0 ? 8 : 7) * MIB);
        assert_string_equal(value.source, i == 0 ? "cgroup" : "mock");
    }
    gpuhal_close(gpu);
}

TEST(a_lease_of_more_than_a_driver_allows_is_refused_in_its_name)
{
    left = 3 * MIB;
    limit = 8 * MIB;
    gpuhal *gpu = open_two();
    gpuhal_mock.devices[1].values[1] = (gpuhal_mock_value){.key = GPUHAL_VALUE_MEMORY_LIMIT_BYTES, .u64 = 9 * MIB};
    gpuhal_lease *lease = lease_bytes(gpu, 9 * MIB), *none = NULL;
    assert_ptr_equal(gpuhal_lease_device_at(lease, 0), gpuhal_device_at(gpu, 1));
    const gpuhal_lease_desc desc = bytes_of(10 * MIB);
    assert_int_equal(gpuhal_lease_acquire(gpu, &desc, 0, &none), GPUHAL_ERROR_INFEASIBLE);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "(mock) is less than the 10485760 bytes requested"));
    gpuhal_lease_release(lease);
    gpuhal_close(gpu);
}

TEST(a_device_with_too_little_memory_left_by_the_groups_does_not_fit)
{
    left = 3 * MIB;
    limit = 8 * MIB;
    gpuhal *gpu = open_two();
    gpuhal_ranked list[2] = {{.size = sizeof *list}};
    uint32_t count = 0;
    const gpuhal_need need = {.size = sizeof need, .bytes = 4 * MIB};
    const gpuhal_rank_desc desc = {.size = sizeof desc, .need = &need};
    assert_ok(gpuhal_rank(gpu, &desc, list, 2, &count));
    assert_int_equal(count, 2);
    assert_string_equal(gpuhal_device_id(list[0].device), "mock:1");
    assert_int_equal(list[1].fits, 0);
    assert_int_equal(list[1].free_bytes, 3 * MIB);
    gpuhal_close(gpu);
}

TEST(a_lease_of_more_than_the_groups_allow_is_of_another_device_or_refused)
{
    left = 3 * MIB;
    limit = 8 * MIB;
    gpuhal *gpu = open_two();
    gpuhal_lease *small = lease_bytes(gpu, 8 * MIB), *large = lease_bytes(gpu, 9 * MIB);
    assert_ptr_equal(gpuhal_lease_device_at(large, 0), gpuhal_device_at(gpu, 1));
    gpuhal_device *const first[] = {gpuhal_device_at(gpu, 0)};
    gpuhal_lease_desc desc = bytes_of(9 * MIB);
    desc.device_count = 1;
    desc.devices = first;
    gpuhal_lease *none = NULL;
    assert_int_equal(gpuhal_lease_acquire(gpu, &desc, 0, &none), GPUHAL_ERROR_INFEASIBLE);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "(dmem.max) is less than the 9437184 bytes requested"));
    const gpuhal_lease_part part = {.device = first[0], .bytes = 9 * MIB};
    desc = (gpuhal_lease_desc){.size = sizeof desc, .part_count = 1, .parts = &part};
    assert_int_equal(gpuhal_lease_acquire(gpu, &desc, 0, &none), GPUHAL_ERROR_INFEASIBLE);
    desc = bytes_of(9 * MIB);
    desc.count = 2;
    assert_int_equal(gpuhal_lease_acquire(gpu, &desc, 0, &none), GPUHAL_ERROR_INFEASIBLE);
    gpuhal_lease_release(large);
    gpuhal_lease_release(small);
    gpuhal_close(gpu);
}

TEST(no_file_is_read_for_memory_that_the_kernel_does_not_count)
{
    left = 0; /* would be used if the library read the kernel's number */
    gpuhal *gpu = open_two();
    assert_ok(create(gpu, 0, GPUHAL_MEMORY_DEVICE, 4 * MIB));
    assert_int_equal(looks, 0);
    gpuhal_close(gpu);
}

#include "test_main.h"
