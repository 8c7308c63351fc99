/* tests/unit/options_test.c: options for plugins, the instance that a plugin creates from its options at the start, and
 * a plugin's own interfaces, which applications get from the library. */
#include "support/mock.h"
#include "support/record.h"
#include "test.h"

#include <inttypes.h>
#include <stdio.h>

/* The mock's instance. Each start creates an instance, and every later call must pass the instance back. */
struct gpuhal_plugin_instance {
    char size[16]; /* the option "mock.size"; "" if not set */
    char root[64]; /* the option "mock.system_root" */
    int enumerations, descriptions, openings, samples;
};

static gpuhal_plugin_instance instances[4];
static uint32_t instance_count;
static gpuhal_plugin mock;
static char logged[4096];

static gpuhal_status start(const gpuhal_host *host, gpuhal_plugin_instance **out_instance)
{
    gpuhal_plugin_instance *instance = &instances[instance_count];
    assert_null(*out_instance);
    assert_true(instance_count++ < sizeof instances / sizeof *instances);
    gpuhal_status status = host->option(host, "mock.system_root", instance->root, sizeof instance->root);
    assert_true(status == GPUHAL_OK || status == GPUHAL_ERROR_NOT_FOUND);
    status = host->option(host, "mock.size", instance->size, sizeof instance->size);
    *out_instance = instance;
    return status == GPUHAL_ERROR_OUT_OF_RANGE
               ? host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, "mock.size is too long")
               : GPUHAL_OK;
}

static gpuhal_status enumerate(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink)
{
    instance->enumerations++;
    return mock.enumerate(host, NULL, sink);
}

static gpuhal_status describe(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                              gpuhal_ops *out_ops)
{
    instance->descriptions++;
    return mock.describe(host, NULL, index, out_ops);
}

static gpuhal_status open_device(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                 const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops)
{
    instance->openings++;
    return mock.open(host, NULL, index, adopt, out_device, ops);
}

static gpuhal_status sample(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                            const gpuhal_key *keys, uint32_t count, uint32_t flags, gpuhal_sink *sink)
{
    instance->samples++;
    return mock.sample(host, NULL, index, keys, count, flags, sink);
}

static const void *query_extension(const gpuhal_host *host, gpuhal_plugin_instance *instance, const char *name)
{
    assert_null(host->query_extension(host, "gpuhal.unheard_of"));
    return strcmp(name, "mock.size") == 0 ? instance->size : NULL;
}

static const gpuhal_plugin *query(uint32_t host_abi, const gpuhal_host *host)
{
    static gpuhal_plugin own;
    mock = *gpuhal_mock_query(host_abi, host);
    own = mock;
    own.start = start;
    own.enumerate = enumerate;
    own.describe = describe;
    own.open = open_device;
    own.sample = sample;
    own.query_extension = query_extension;
    return &own;
}

static void keep_line(void *user, int32_t level, const char *line)
{
    (void)user;
    size_t length = strlen(logged);
    snprintf(logged + length, sizeof logged - length, "%" PRId32 " %s\n", level, line);
}

static gpuhal_status open_with(const char *options, uint32_t ignore_environment, gpuhal **out_gpu)
{
    static gpuhal_builtin_fn *const builtins[] = {query, NULL};
    gpuhal_mock.count = 1;
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .ignore_environment = ignore_environment,
                                  .registry = "none",
                                  .plugin_path = "/nowhere",
                                  .builtins = builtins,
                                  .log = keep_line,
                                  .options = options};
    return gpuhal_open(&config, out_gpu);
}

static gpuhal *open_good(const char *options)
{
    gpuhal *gpu = NULL;
    if (open_with(options, 1, &gpu)) {
        fail_msg("%s", gpuhal_last_error()->sentence);
    }
    return gpu;
}

static gpuhal_device *mock_of(gpuhal *gpu)
{
    gpuhal_device *device = NULL;
    assert_int_equal(gpuhal_select(gpu, "mock:0", 0, &device, NULL), GPUHAL_OK);
    return device;
}

static const char *size_of(gpuhal *gpu)
{
    const void *size = NULL;
    assert_int_equal(gpuhal_device_extension(mock_of(gpu), "mock.size", &size), GPUHAL_OK);
    return size;
}

TEST(objects_with_other_options_have_another_instance_and_those_with_equal_ones_share_it)
{
    gpuhal *small = open_good("mock.size=small"), *large = open_good("mock.size=large"),
           *again = open_good(";mock.size=small;");
    assert_string_equal(size_of(small), "small");
    assert_string_equal(size_of(large), "large");
    assert_ptr_equal(size_of(again), size_of(small));
    assert_int_equal(instance_count, 2);
    gpuhal_close(small);
    gpuhal_close(large);
    gpuhal_close(again);
}

TEST(each_call_of_the_plugin_gets_the_instance_that_its_start_made)
{
    gpuhal *first = open_good("mock.size=1"), *second = open_good("mock.size=2");
    const gpuhal_plugin_instance before = instances[0];
    gpuhal_value value = {.key = GPUHAL_VALUE_MEMORY_FREE_BYTES};
    gpuhal_buffer_release(gpuhal_mock_buffer(second, gpuhal_device_index(mock_of(second)), 64));
    assert_int_equal(gpuhal_device_sample(mock_of(second), 0, &value, 1, NULL), GPUHAL_OK);
    assert_int_equal(gpuhal_rescan(second, NULL), GPUHAL_OK);
    assert_memory_equal(&instances[0], &before, sizeof before);
    assert_int_equal(instances[0].openings, 0);
    assert_int_equal(instances[1].openings, 1);
    assert_true(instances[1].enumerations > 1 && instances[1].descriptions > 1 && instances[1].samples > 0);
    gpuhal_close(first);
    gpuhal_close(second);
}

TEST(the_operators_options_count_before_the_applications_and_the_later_of_two)
{
    gpuhal *gpu = NULL;
    setenv("GPUHAL_OPTIONS", "mock.size=operator", 1);
    assert_int_equal(open_with("mock.size=application", 0, &gpu), GPUHAL_OK);
    assert_string_equal(size_of(gpu), "operator");
    gpuhal_close(gpu);
    assert_int_equal(open_with("mock.size=a;mock.size=b", 1, &gpu), GPUHAL_OK);
    assert_string_equal(size_of(gpu), "b");
    gpuhal_close(gpu);
    assert_int_equal(open_with(NULL, 1, &gpu), GPUHAL_OK);
    assert_string_equal(size_of(gpu), "");
    gpuhal_close(gpu);
    unsetenv("GPUHAL_OPTIONS");
}

/* The options are consecutive parts of a single string, without terminators. */
TEST(the_value_of_an_option_ends_at_the_beginning_of_the_next)
{
    gpuhal *gpu = open_good("mock.size=first;mock.other=;unheard_of.size=last");
    assert_string_equal(size_of(gpu), "first");
    gpuhal_close(gpu);
    gpu = open_good("mock.size=;mock.other=1");
    assert_string_equal(size_of(gpu), "");
    gpuhal_close(gpu);
}

TEST(an_option_that_no_plugin_reads_causes_a_warning)
{
    gpuhal *gpu = open_good("mock.size=1;mock.szie=2;unheard_of.size=3");
    assert_non_null(strstr(logged, "2 mock: there is no option mock.szie\n"));
    assert_non_null(strstr(logged, "2 the option unheard_of.size is for a plugin that was not found\n"));
    assert_null(strstr(logged, "no option mock.size"));
    gpuhal_close(gpu);
}

TEST(a_text_that_is_no_list_of_options_is_refused_by_its_name)
{
    static const char *const bad[] = {"mock", "mock.size", "size=1", ".size=1", "mock.=1", "mock.size=1;;x", "="};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        gpuhal *gpu = NULL;
        assert_int_equal(open_with(bad[i], 1, &gpu), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(gpuhal_last_error()->sentence, "config.options"));
        setenv("GPUHAL_OPTIONS", bad[i], 1);
        assert_int_equal(open_with(NULL, 0, &gpu), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(gpuhal_last_error()->sentence, "GPUHAL_OPTIONS"));
        assert_null(gpu);
    }
    unsetenv("GPUHAL_OPTIONS");
}

TEST(every_plugin_gets_the_system_root_as_an_option_that_only_the_variable_sets)
{
    static const char *const bad[] = {"mock.system_root=/elsewhere", "mock.size=1;other.system_root="};
    gpuhal *gpu = NULL;
    setenv("GPUHAL_SYSTEM_ROOT", "/recorded/machine//", 1);
    assert_int_equal(open_with("mock.size=1", 0, &gpu), GPUHAL_OK);
    assert_string_equal(instances[0].root, "/recorded/machine");
    assert_null(strstr(logged, "system_root"));
    gpuhal_close(gpu);
    unsetenv("GPUHAL_SYSTEM_ROOT");
    gpu = open_good("mock.size=1");
    assert_int_equal(instance_count, 2);
    assert_string_equal(instances[1].root, "");
    gpuhal_close(gpu);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(open_with(bad[i], 1, &gpu), GPUHAL_ERROR_INVALID_ARGUMENT);
        assert_non_null(strstr(gpuhal_last_error()->sentence, "GPUHAL_SYSTEM_ROOT"));
    }
}

TEST(a_value_that_the_plugin_has_no_room_for_is_its_to_refuse)
{
    gpuhal *gpu = open_good("mock.size=0123456789abcdef");
    gpuhal_plugin_report report = {.size = sizeof report};
    assert_int_equal(record_now(gpu, GPUHAL_RECORD_PLUGIN, 0, &report), GPUHAL_OK);
    assert_true(report.state != GPUHAL_PLUGIN_OK);
    assert_non_null(strstr(report.reason, "mock.size is too long"));
    gpuhal_close(gpu);
    gpu = open_good("mock.size=0123456789abcde");
    assert_string_equal(size_of(gpu), "0123456789abcde");
    gpuhal_close(gpu);
}

TEST(an_extension_is_the_same_at_each_call_and_an_unknown_one_not_supported)
{
    gpuhal *gpu = open_good(NULL);
    gpuhal_device *device = mock_of(gpu);
    const void *extension = "?";
    assert_ptr_equal(size_of(gpu), size_of(gpu));
    assert_int_equal(gpuhal_device_extension(device, "mock.unheard_of", &extension), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_null(extension);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "mock.unheard_of"));
    assert_int_equal(gpuhal_device_extension(device, NULL, &extension), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_device_extension(NULL, "mock.size", &extension), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_device_extension(device, "mock.size", NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(instances[0].openings, 0);
    gpuhal_close(gpu);
    gpu = gpuhal_mock_open(NULL, 0);
    assert_int_equal(gpuhal_device_extension(gpuhal_device_at(gpu, 0), "mock.size", &extension),
                     GPUHAL_ERROR_NOT_SUPPORTED);
    gpuhal_close(gpu);
}

#include "test_main.h"
