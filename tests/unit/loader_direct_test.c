/* gpuhal/direct.h: using a plugin without the core. */
#include "loader_support.h"

#include <gpuhal/direct.h>

TEST(a_good_file_is_loaded_and_says_its_name)
{
    const gpuhal_plugin *plugin = NULL;
    gpuhal_plugin_stage stage = GPUHAL_STAGE_SEARCH;
    assert_int_equal(gpuhal_direct_load(test_plugin("good"), &plugin, &stage), GPUHAL_OK);
    assert_int_equal(stage, GPUHAL_STAGE_DONE);
    assert_string_equal(plugin->name, "good");
    assert_int_equal(gpuhal_direct_load(test_plugin("good"), &plugin, NULL), GPUHAL_OK);
}

static void assert_load_refused(const char *file, gpuhal_status status, gpuhal_plugin_stage stage, const char *words)
{
    const gpuhal_plugin *plugin = (const gpuhal_plugin *)&plugin;
    gpuhal_plugin_stage reached = GPUHAL_STAGE_DONE;
    assert_int_equal(gpuhal_direct_load(file, &plugin, &reached), status);
    assert_null(plugin);
    assert_int_equal(reached, stage);
    assert_int_equal(gpuhal_last_error()->status, status);
    if (!strstr(gpuhal_last_error()->sentence, words)) {
        fail_msg("\"%s\" is no \"%s\"", gpuhal_last_error()->sentence, words);
    }
}

TEST(a_bad_file_is_refused_with_stage_status_and_sentence)
{
    const gpuhal_plugin *plugin;
    assert_load_refused("plugin.so", GPUHAL_ERROR_INVALID_ARGUMENT, GPUHAL_STAGE_SEARCH, "is not an absolute path");
    assert_load_refused("/nowhere.so", GPUHAL_ERROR_NOT_FOUND, GPUHAL_STAGE_FILE, "/nowhere.so does not exist");
    assert_load_refused("/dev/null", GPUHAL_ERROR_DRIVER, GPUHAL_STAGE_FILE, "is no regular file");
    assert_load_refused("/etc/passwd", GPUHAL_ERROR_DRIVER, GPUHAL_STAGE_FILE, "is not a shared library");
    assert_load_refused(test_plugin("undefined_symbol"), GPUHAL_ERROR_DRIVER, GPUHAL_STAGE_LOAD,
                        "gpuhal_test_undefined");
    assert_load_refused(test_plugin("no_symbol"), GPUHAL_ERROR_DRIVER, GPUHAL_STAGE_HANDSHAKE,
                        "exports no gpuhal_plugin_query");
    assert_load_refused(test_plugin("other_abi"), GPUHAL_ERROR_INCOMPATIBLE, GPUHAL_STAGE_HANDSHAKE, "0.4");
    assert_load_refused(test_plugin("query_refuses"), GPUHAL_ERROR_INCOMPATIBLE, GPUHAL_STAGE_HANDSHAKE,
                        "it wants plugin ABI 7.3; this library speaks plugin ABI 0.4");
    assert_string_equal(gpuhal_last_error()->vendor_call, "vendorInit");
    assert_int_equal(gpuhal_last_error()->vendor_code, 42);
    assert_int_equal(gpuhal_direct_load(NULL, &plugin, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_direct_load(test_plugin("good"), NULL, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
}

static char reported[1024];

static void hear_device(__attribute__((unused)) void *user, uint32_t index)
{
    snprintf(reported + strlen(reported), sizeof reported - strlen(reported), "[%u]", index);
}

static void hear_u64(__attribute__((unused)) void *user, gpuhal_key key, uint64_t value)
{
    snprintf(reported + strlen(reported), sizeof reported - strlen(reported), " %u=%llu", key,
             (unsigned long long)value);
}

static void hear_text(__attribute__((unused)) void *user, gpuhal_key key, const char *value)
{
    snprintf(reported + strlen(reported), sizeof reported - strlen(reported), " %u=%s", key, value);
}

static void hear_missing(__attribute__((unused)) void *user, gpuhal_key key, gpuhal_missing reason,
                         __attribute__((unused)) const char *why)
{
    snprintf(reported + strlen(reported), sizeof reported - strlen(reported), " %u!%u", key, reason);
}

static const gpuhal_direct_listener listener = {
    .device = hear_device, .u64 = hear_u64, .text = hear_text, .missing = hear_missing};

TEST(everything_a_plugin_says_reaches_the_listener_unchecked)
{
    const gpuhal_plugin *plugin;
    assert_int_equal(gpuhal_direct_load(test_plugin("index_twice"), &plugin, NULL), GPUHAL_OK);
    assert_int_equal(gpuhal_direct_enumerate(plugin, NULL, &listener), GPUHAL_OK);
    assert_string_equal(
        reported,
        "[1] 1=Test Device 4=1 26=0 28=1 8!1[1] 1=Test Device 4=1 26=0 28=1 8!1[0] 1=Test Device 4=1 26=0 28=1 8!1");
    reported[0] = 0;
    const gpuhal_key key = GPUHAL_VALUE_MEMORY_FREE_BYTES;
    assert_int_equal(gpuhal_direct_sample(plugin, NULL, 0, &key, 1, 0, &listener), GPUHAL_OK);
    assert_string_equal(reported, " 4096=12345678");
    const gpuhal_direct_listener deaf = {.user = NULL};
    assert_int_equal(gpuhal_direct_enumerate(plugin, NULL, &deaf), GPUHAL_OK);
    assert_int_equal(gpuhal_direct_enumerate(NULL, NULL, &listener), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_direct_enumerate(plugin, NULL, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
}

TEST(a_failure_of_enumerate_is_returned_with_its_detail)
{
    const gpuhal_plugin *plugin;
    assert_int_equal(gpuhal_direct_load(test_plugin("enumerate_fails"), &plugin, NULL), GPUHAL_OK);
    assert_int_equal(gpuhal_direct_enumerate(plugin, NULL, &listener), GPUHAL_ERROR_DRIVER);
    assert_string_equal(gpuhal_last_error()->vendor_call, "vendorGetDevices");
    assert_int_equal(gpuhal_last_error()->vendor_code, 999);
    assert_int_equal(gpuhal_direct_load(test_plugin("good_without_optional"), &plugin, NULL), GPUHAL_OK);
    assert_int_equal(gpuhal_direct_sample(plugin, NULL, 0, NULL, 0, 0, &listener), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(gpuhal_direct_link(plugin, NULL, 0, 1, &listener), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(gpuhal_direct_link(NULL, NULL, 0, 1, &listener), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_direct_link(plugin, NULL, 0, 1, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
}

#include "test_main.h"
