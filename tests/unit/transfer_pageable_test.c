/* Copies between a device and pageable host memory. The device's facts determine whether a copy is staged, by the same
 * rule for both directions (docs/transfers.md). */
#include "engine_support.h"
#include "registry_support.h"

enum { LIMIT = 1 << 20, LARGE = 8 * LIMIT };

typedef struct expectation {
    bool is_staged;
    const char *why;
    gpuhal_mock_device device;
} expectation;

#define DISCRETE .hidden = 1, .pageable_access = 1
static const expectation expectations[] = {
    {true, "a GPU whose driver stages with a thread of its own", {DISCRETE}},
    {true, "one in steps of a page", {DISCRETE, .copy_alignment = 4096}},
    {false, "one that reads pageable memory itself", {.hidden = 1, .pageable_access = 2}},
    {false, "one that cannot reach pageable memory", {.hidden = 1}},
    {false, "one in the memory of the host", {DISCRETE, .unified = 1}},
    {false, "a program on the processor", {DISCRETE, .software = 1}},
    {false, "an accelerator", {DISCRETE, .type = GPUHAL_DEVICE_ACCELERATOR}},
    {false, "memory with an address for the host", {.pageable_access = 1}},
    {false, "no memory for staging", {DISCRETE, .no_staging_kinds = 1}},
};
enum { EXPECTATIONS = sizeof expectations / sizeof *expectations };

static gpuhal *open_with(const char *registry, gpuhal_builtin_fn *plugin)
{
    gpuhal *gpu = NULL;
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .ignore_environment = 1,
                                  .registry = registry,
                                  .builtins = (gpuhal_builtin_fn *const[]){plugin, NULL},
                                  .staging_limit_bytes = LIMIT};
    assert_int_equal(gpuhal_open(&config, &gpu), GPUHAL_OK);
    return gpu;
}

static gpuhal *open_all(const char *registry)
{
    gpuhal_mock = (gpuhal_mock_state){.count = EXPECTATIONS};
    for (uint32_t i = 0; i < EXPECTATIONS; i++) {
        gpuhal_mock.devices[i] = expectations[i].device;
    }
    return open_with(registry, query);
}

/* Opens a device whose facts allow staging. */
static gpuhal *open_discrete(gpuhal_builtin_fn *plugin)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{DISCRETE}}};
    return open_with("none", plugin);
}

static void expect_path(const char *what, bool staged, int64_t slots, int64_t copies, uint64_t bytes)
{
    if (staged ? slots != 0 || copies < 2 : slots != 1 || copies != 0) {
        fail_msg("%s, %llu bytes: %lld calls of the slot, %lld copies", what, (unsigned long long)bytes,
                 (long long)slots, (long long)copies);
    }
}

static void expect_paths(gpuhal *gpu, uint32_t device, const char *what, bool staged, uint64_t bytes)
{
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, device, bytes);
    gpuhal_mock_device *counts = &gpuhal_mock.devices[device];
    unsigned char *model = random_bytes(bytes);
    counts->writes = counts->reads = counts->copies = 0;
    assert_int_equal(gpuhal_write(NULL, buffer, 0, model, bytes), GPUHAL_OK);
    expect_path(what, staged, counts->writes, counts->copies, bytes);
    counts->copies = 0;
    expect_contents(buffer, model, bytes);
    expect_path(what, staged, counts->reads, counts->copies, bytes);
    free(model);
    gpuhal_buffer_release(buffer);
}

/* Each device is tested twice with a registry, and twice without a registry. */
TEST(facts_decide_which_large_writes_and_reads_are_staged)
{
    const char *const registries[] = {fresh_directory(), "none"};
    for (int i = 0; i < 4; i++) {
        gpuhal *gpu = open_all(registries[i / 2]);
        for (uint32_t d = 0; d < EXPECTATIONS; d++) {
            expect_paths(gpu, d, expectations[d].why, expectations[d].is_staged, LARGE);
        }
        gpuhal_close(gpu);
    }
}

TEST(writes_and_reads_up_to_the_staging_limit_are_left_to_the_driver)
{
    gpuhal *gpu = open_all("none");
    for (uint32_t d = 0; d < EXPECTATIONS; d++) {
        expect_paths(gpu, d, expectations[d].why, false, LIMIT);
        expect_paths(gpu, d, expectations[d].why, expectations[d].is_staged, LIMIT + 4096);
    }
    gpuhal_close(gpu);
}

TEST(a_device_that_does_not_copy_by_itself_is_left_to_its_driver)
{
    gpuhal *gpu = open_discrete(gpuhal_mock_query);
    expect_paths(gpu, 0, "without queues", false, LARGE);
    gpuhal_close(gpu);
}

TEST(the_driver_moves_large_copies_itself_if_no_staging_memory_can_be_made)
{
    gpuhal *gpu = open_discrete(query);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, LARGE);
    unsigned char *model = random_bytes(LARGE);
    gpuhal_mock.devices[0].fail_allocate = GPUHAL_ERROR_OUT_OF_MEMORY;
    assert_int_equal(gpuhal_write(NULL, buffer, 0, model, LARGE), GPUHAL_OK);
    expect_contents(buffer, model, LARGE);
    assert_int_equal(gpuhal_mock.devices[0].writes, 1);
    assert_int_equal(gpuhal_mock.devices[0].reads, 1);
    gpuhal_mock.devices[0].fail_allocate = GPUHAL_OK;
    assert_int_equal(gpuhal_write(NULL, buffer, 0, model, LARGE), GPUHAL_OK);
    assert_int_equal(gpuhal_mock.devices[0].writes, 1); /* staged again */
    free(model);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

TEST(a_staged_write_that_fails_is_the_callers_and_is_not_tried_again_by_the_driver)
{
    gpuhal *gpu = open_discrete(query);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, LARGE);
    unsigned char *model = random_bytes(LARGE);
    engine.failure = GPUHAL_ERROR_DRIVER;
    engine.fail_at[COPY] = engine.calls[COPY] + 3;
    assert_int_equal(gpuhal_write(NULL, buffer, 0, model, LARGE), GPUHAL_ERROR_DRIVER);
    assert_int_equal(gpuhal_mock.devices[0].writes, 0);
    assert_int_equal(gpuhal_write(NULL, buffer, 0, model, LARGE), GPUHAL_OK);
    expect_contents(buffer, model, LARGE);
    free(model);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

#include "test_main.h"
