/* Which path large writes take: the plugin's own write, or staging memory. The slower of the two sleeps for so
 * long that no scheduler makes it the faster one. */
#include "registry_support.h"
#include "transfer_support.h"

enum { LIMIT = 1 << 20, LARGE = 8 * LIMIT, SLOW_US = 300000 };

#define UUID "754d9ae2-8df5-f8e3-3502-182434000001"
static const gpuhal_mock_device slow_write = {.hidden = 1, .uuid = UUID, .slow_write_us = SLOW_US};
static const gpuhal_mock_device slow_copy = {.hidden = 1, .uuid = UUID, .slow_copy_us = SLOW_US / 3};

/* How often each path was taken for these bytes by a program that does nothing else, and sees that they arrive. */
typedef struct paths {
    int64_t writes, copies;
} paths;

static paths write_with(const char *registry, gpuhal_mock_device device, uint64_t bytes)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    gpuhal_mock.devices[0] = device;
    gpuhal *gpu = gpuhal_mock_open(&(gpuhal_config){.registry = registry, .staging_limit_bytes = LIMIT}, 0);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, bytes);
    unsigned char *source = random_bytes(bytes);
    gpuhal_mock.devices[0].writes = gpuhal_mock.devices[0].copies = 0;
    assert_int_equal(gpuhal_write(NULL, buffer, 0, source, bytes), GPUHAL_OK);
    const paths taken = {gpuhal_mock.devices[0].writes, gpuhal_mock.devices[0].copies};
    gpuhal_mock.devices[0].slow_write_us = gpuhal_mock.devices[0].slow_copy_us = 0;
    expect_contents(buffer, source, bytes);
    free(source);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    return taken;
}

static void expect_measured(paths taken)
{
    assert_true(taken.writes >= 3 && taken.copies >= 3);
}

static void expect_staged(paths taken)
{
    assert_int_equal(taken.writes, 0);
    assert_true(taken.copies > 0);
}

static void expect_by_plugin(paths taken)
{
    assert_int_equal(taken.writes, 1);
    assert_int_equal(taken.copies, 0);
}

TEST(a_plugin_whose_write_is_slower_than_staging_is_measured_once_and_recorded)
{
    const char *registry = fresh_directory();
    const paths first = write_with(registry, slow_write, LARGE);
    expect_measured(first);
    assert_int_equal(first.writes, 3); /* what was left behind the comparison took the faster path */
    expect_staged(write_with(registry, slow_write, LARGE));
    expect_staged(write_with(registry, slow_write, 2 * LIMIT)); /* too few bytes to compare, not to choose */
}

TEST(a_plugin_whose_write_is_faster_than_staging_is_compared_once_and_keeps_it)
{
    const char *registry = fresh_directory();
    expect_measured(write_with(registry, slow_copy, LARGE));
    expect_by_plugin(write_with(registry, slow_copy, LARGE));
}

TEST(paths_are_not_compared_without_a_registry_nor_with_few_bytes)
{
    expect_by_plugin(write_with("none", slow_write, LARGE));
    expect_by_plugin(write_with(fresh_directory(), slow_write, 2 * LIMIT));
}

/* As another version of the driver, or another file of the plugin, has left it. */
static void record_staged(const char *directory, const char *driver, const char *plugin)
{
    gpuhal_registry *registry = open_registry(directory);
    const gpuhal_database_write write = {.iface = 1, .driver = (char *)driver, .plugin = (char *)plugin, .staged = 1};
    gpuhal_changes changes = {.now = 1700000000, .writes = &write, .write_count = 1};
    assert_int_equal(gpuhal_registry_update(registry, &changes), GPUHAL_OK);
    gpuhal_registry_destroy(registry);
}

TEST(paths_are_compared_anew_when_the_driver_or_the_plugin_is_another)
{
    const char *registry = fresh_directory();
    expect_measured(write_with(registry, slow_copy, LARGE));
    record_staged(registry, "550.2", NULL);
    expect_measured(write_with(registry, slow_copy, LARGE));
    record_staged(registry, NULL, "another file");
    expect_measured(write_with(registry, slow_copy, LARGE));
    record_staged(registry, NULL, NULL); /* this one is theirs */
    expect_staged(write_with(registry, slow_copy, 2 * LIMIT));
}

/* The one record is damaged, or says what no library writes: others stay, and the paths are compared anew. */
TEST(a_damaged_record_of_the_path_is_ignored_and_replaced)
{
    const char *registry = fresh_directory();
    expect_measured(write_with(registry, slow_write, LARGE));
    size_t bytes = 0;
    char *text = contents_of(below(registry, "registry"), &bytes);
    char *staged = strstr(text, "staged = 1");
    assert_non_null(staged);
    staged[strlen("staged = ")] = '0';
    put_contents(below(registry, "registry"), text, bytes);
    free(text);
    expect_measured(write_with(registry, slow_write, LARGE));
    expect_staged(write_with(registry, slow_write, LARGE));
    assert_int_equal(files_that_begin_with(registry, "registry.damaged"), 1);
}

/* A write that fails while paths are compared fails for the caller, and the next one compares again. */
TEST(a_failure_while_paths_are_compared_is_the_callers_and_nothing_is_recorded)
{
    gpuhal_mock_device broken = slow_copy;
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    gpuhal_mock.devices[0] = broken;
    gpuhal *gpu = gpuhal_mock_open(&(gpuhal_config){.registry = fresh_directory(), .staging_limit_bytes = LIMIT}, 0);
    gpuhal_buffer *buffer = gpuhal_mock_buffer(gpu, 0, LARGE);
    unsigned char *source = random_bytes(LARGE);
    gpuhal_mock.devices[0].fail_write = GPUHAL_ERROR_DRIVER;
    assert_int_equal(gpuhal_write(NULL, buffer, 0, source, LARGE), GPUHAL_ERROR_DRIVER);
    gpuhal_mock.devices[0].fail_write = GPUHAL_OK;
    assert_int_equal(gpuhal_write(NULL, buffer, 0, source, LARGE), GPUHAL_OK);
    assert_true(gpuhal_mock.devices[0].copies >= 3);
    gpuhal_mock.devices[0].slow_copy_us = 0;
    expect_contents(buffer, source, LARGE);
    free(source);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
}

#include "test_main.h"
