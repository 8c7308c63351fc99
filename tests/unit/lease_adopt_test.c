/* tests/unit/lease_adopt_test.c: programs under their parent's lease: their memory limits, before and after the lease
 * expires, and the environment variables that pass the lease. */
#include "lease_support.h"
#include "schedule/leases.h"

/* Sets the lease as GPUHAL_LEASE does, since objects of the mock do not read the variable. */
TEST(a_program_under_a_lease_of_its_parent_is_limited_to_it)
{
    gpuhal *parent = open_gpus(2), *gpu = open_leasing();
    gpuhal_device *device = gpuhal_device_at(gpu, 0);
    const gpuhal_lease_part part = {.device = gpuhal_device_at(parent, 0), .bytes = 8 * MIB};
    gpuhal_lease_desc desc = GPUHAL_INIT(gpuhal_lease_desc);
    gpuhal_buffer_desc large = GPUHAL_INIT(gpuhal_buffer_desc);
    gpuhal_lease *lease = NULL, *own = NULL;
    gpuhal_buffer *buffer = NULL;
    desc.part_count = 1;
    desc.parts = &part;
    large.bytes = 9 * MIB;
    assert_ok(gpuhal_lease_acquire(parent, &desc, 0, &lease));
    gpu->settings.lease = gpuhal_lease_number(lease);
    assert_ok(gpuhal_device_limit_memory(device, part.bytes)); /* as GPUHAL_DEVICES does */
    gpuhal_leases_adopt(gpu);
    assert_int_equal(gpuhal_buffer_create(device, &large, &buffer), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_ok(gpuhal_buffer_create(gpuhal_device_at(gpu, 1), &large, &buffer));
    gpuhal_buffer_release(buffer);
    /* A lease of the program's own raises the limit by its bytes until the lease is released. */
    const gpuhal_lease_part more = {.device = device, .bytes = 4 * MIB};
    desc.parts = &more;
    assert_ok(gpuhal_lease_acquire(gpu, &desc, 0, &own));
    assert_ok(gpuhal_buffer_create(device, &large, &buffer));
    gpuhal_buffer_release(buffer);
    gpuhal_lease_release(own);
    assert_int_equal(gpuhal_buffer_create(device, &large, &buffer), GPUHAL_ERROR_OUT_OF_MEMORY);
    gpuhal_lease_release(lease);
    gpuhal_close(gpu);
    gpuhal_close(parent);
}

static gpuhal_status read_setting(const char *name, const char *value, gpuhal_settings *out)
{
    assert_int_equal(setenv(name, value, 1), 0);
    const gpuhal_status status = gpuhal_settings_make(NULL, out);
    unsetenv(name);
    return status;
}

TEST(variables_with_impossible_values_are_named)
{
    static const char *const numbers[] = {"x", "-1", "1x", "99999999999999999999"};
    gpuhal_settings settings;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_int_equal(read_setting("GPUHAL_LEASE", numbers[i], &settings), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(gpuhal_last_error()->sentence, "GPUHAL_LEASE"));
    }
    assert_ok(read_setting("GPUHAL_LEASE", "17", &settings));
    assert_int_equal(settings.lease, 17);
    gpuhal_settings_finish(&settings);
    assert_int_equal(read_setting("GPUHAL_LEDGER", "relative", &settings), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "GPUHAL_LEDGER"));
    assert_ok(read_setting("GPUHAL_LEDGER", "/some/folder", &settings));
    assert_string_equal(settings.ledger, "/some/folder");
    gpuhal_settings_finish(&settings);
}

typedef struct log_lines {
    unsigned warnings;
    char last[256];
} log_lines;

static void count_warning(void *user, int32_t level, const char *line)
{
    log_lines *lines = user;
    if (level == GPUHAL_LEVEL_WARNING && strstr(line, "GPUHAL_LEASE")) {
        lines->warnings++;
        snprintf(lines->last, sizeof lines->last, "%s", line);
    }
}

static gpuhal *open_under(uint64_t number, log_lines *lines)
{
    const gpuhal_config config = {.size = sizeof config, .ledger = ledger_folder, .log = count_warning,
                                  .log_user = lines, .log_level = GPUHAL_LEVEL_WARNING};
    gpuhal *gpu = gpuhal_mock_open(&config, 0);
    gpu->settings.lease = number;
    gpuhal_leases_adopt(gpu);
    return gpu;
}

static gpuhal_status allocate_bytes(gpuhal *gpu, uint64_t bytes)
{
    gpuhal_buffer_desc desc = GPUHAL_INIT(gpuhal_buffer_desc);
    gpuhal_buffer *buffer = NULL;
    desc.bytes = bytes;
    const gpuhal_status status = gpuhal_buffer_create(gpuhal_device_at(gpu, 0), &desc, &buffer);
    gpuhal_buffer_release(buffer);
    return status;
}

TEST(after_the_expiry_only_programs_that_opened_before_it_are_limited)
{
    gpuhal *parent = open_gpus(1);
    gpuhal_lease_desc desc = bytes_of(8 * MIB);
    gpuhal_lease *lease = NULL;
    log_lines before = {0}, after = {0};
    assert_ok(gpuhal_lease_acquire(parent, &desc, 0, &lease));
    const uint64_t number = gpuhal_lease_number(lease);
    gpuhal *early = open_under(number, &before);
    assert_ok(gpuhal_lease_renew(lease, MS));
    WAIT_FOR(gpuhal_lease_state(lease) == GPUHAL_ERROR_TIMEOUT);
    gpuhal *late = open_under(number, &after);
    assert_int_equal(allocate_bytes(early, 9 * MIB), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_ok(allocate_bytes(early, 7 * MIB));
    assert_ok(allocate_bytes(late, 9 * MIB));
    assert_int_equal(before.warnings, 0);
    assert_int_equal(after.warnings, 1);
    assert_non_null(strstr(after.last, "has expired or was released"));
    gpuhal_close(late);
    gpuhal_close(early);
    gpuhal_lease_release(lease);
    gpuhal_close(parent);
}

#include "test_main.h"
