/* tests/unit/lease_health_test.c: unhealthy devices must not be leased, neither by name, nor by number, nor to a
 * waiting request. */
#include "lease_support.h"

#include "device/device.h"

static gpuhal_status try_part(gpuhal *gpu, uint32_t device)
{
    const gpuhal_lease_part part = {.device = gpuhal_device_at(gpu, device)};
    gpuhal_lease_desc desc = GPUHAL_INIT(gpuhal_lease_desc);
    gpuhal_lease *lease = NULL;
    desc.parts = &part;
    desc.part_count = 1;
    const gpuhal_status status = gpuhal_lease_acquire(gpu, &desc, 0, &lease);
    gpuhal_lease_release(lease);
    return status;
}

TEST(a_lost_device_is_leased_neither_by_name_nor_by_number)
{
    gpuhal *gpu = open_gpus(2);
    gpuhal_lease_desc both = GPUHAL_INIT(gpuhal_lease_desc);
    gpuhal_lease *lease = NULL;
    atomic_store(&gpuhal_device_at(gpu, 0)->lost, (uint32_t)GPUHAL_LOST);
    assert_int_equal(try_part(gpu, 0), GPUHAL_ERROR_DEVICE_LOST);
    assert_non_null(strstr(gpuhal_last_error()->sentence, ":0 is lost"));
    assert_ok(try_part(gpu, 1));
    both.count = 2;
    assert_int_equal(gpuhal_lease_acquire(gpu, &both, 0, &lease), GPUHAL_ERROR_NO_DEVICE);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "2 GPUs are requested, but 1 can be leased"));
    lease = lease_bytes(gpu, MOST);
    assert_ptr_equal(gpuhal_lease_device_at(lease, 0), gpuhal_device_at(gpu, 1));
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY);
    gpuhal_lease_release(lease);
    const char *text = ledger_json(gpu);
    assert_int_equal(count_of(text, "\"left_out\": \"lost\""), 1);
    assert_int_equal(count_of(text, "\"left_out\": null"), 1);
    gpuhal_close(gpu);
}

TEST(a_request_that_waits_ends_when_too_few_devices_are_left)
{
    gpuhal *gpu = open_gpus(1);
    gpuhal_lease *held = lease_bytes(gpu, MOST), *waiting = NULL;
    const gpuhal_lease_desc desc = bytes_of(MOST);
    assert_ok(gpuhal_lease_request(gpu, &desc, FOREVER, NULL, NULL, &waiting));
    WAIT_FOR(count_of(ledger_json(gpu), "\"waiting\"") == 1);
    atomic_store(&gpuhal_mock.devices[0].fail_sample, (gpuhal_status)GPUHAL_ERROR_DEVICE_LOST);
    WAIT_FOR(gpuhal_lease_state(waiting) != GPUHAL_NOT_READY);
    assert_int_equal(gpuhal_lease_state(waiting), GPUHAL_ERROR_NO_DEVICE);
    assert_int_equal(count_of(ledger_json(gpu), "\"waiting\""), 0);
    gpuhal_lease_release(waiting);
    gpuhal_lease_release(held);
    gpuhal_close(gpu);
}

/* The request waits for one of two devices. */
TEST(a_device_that_is_lost_while_a_request_waits_is_not_granted_to_it)
{
    gpuhal *gpu = open_gpus(2);
    gpuhal_lease *held[2] = {lease_bytes(gpu, MOST), lease_bytes(gpu, MOST)}, *waiting = NULL;
    const gpuhal_lease_desc desc = bytes_of(MOST);
    assert_ok(gpuhal_lease_request(gpu, &desc, FOREVER, NULL, NULL, &waiting));
    WAIT_FOR(count_of(ledger_json(gpu), "\"waiting\"") == 1);
    gpuhal_device *lost = gpuhal_lease_device_at(held[0], 0), *left = gpuhal_lease_device_at(held[1], 0);
    atomic_store(&lost->lost, (uint32_t)GPUHAL_LOST);
    usleep(300000); /* enough for several checks by the waiting request */
    gpuhal_lease_release(held[0]);
    usleep(100000);
    assert_int_equal(gpuhal_lease_state(waiting), GPUHAL_NOT_READY);
    gpuhal_lease_release(held[1]);
    WAIT_FOR(gpuhal_lease_state(waiting) != GPUHAL_NOT_READY);
    assert_ok(gpuhal_lease_state(waiting));
    assert_ptr_equal(gpuhal_lease_device_at(waiting, 0), left);
    gpuhal_lease_release(waiting);
    gpuhal_close(gpu);
}

#include "test_main.h"
