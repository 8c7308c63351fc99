/* A core that speaks the next minor version, and takes the version of plugin.h and every later one, as a core of
 * version 1.0 will. CMakeLists.txt links this core into this program and into its helper. */
#include "abi_support.h"

TEST(this_core_and_its_helper_speak_the_next_minor_version)
{
    assert_int_equal(gpuhal_abi_version(), GPUHAL_ABI + 1);
    assert_int_equal(gpuhal_direct_host()->abi, GPUHAL_ABI + 1);
}

TEST(a_plugin_of_an_earlier_version_copies_bytes)
{
#ifdef GPUHAL_EXAMPLE
    copies_bytes(GPUHAL_EXAMPLE, GPUHAL_LATER_HELPER, "example:0");
#endif
    assert_int_equal(version_of("good"), GPUHAL_ABI);
    copies_bytes(GPUHAL_TEST_PLUGINS "/good", GPUHAL_LATER_HELPER, "good:0");
}

/* tests/rules/kept_plugins.py makes the binaries. */
TEST(plugins_that_were_built_with_the_headers_of_an_earlier_version_copy_bytes_and_launch)
{
#ifdef GPUHAL_KEPT
    copies_bytes(GPUHAL_KEPT "/0.4/example", GPUHAL_LATER_HELPER, "example:0");
    copies_bytes(GPUHAL_KEPT "/0.4/cpu", GPUHAL_LATER_HELPER, "cpu:0");
    launches(GPUHAL_KEPT "/0.4/cpu", GPUHAL_LATER_HELPER, "cpu:0");
#else
    skip();
#endif
}

/* Of the plugins in this tree, the one for Vulkan has most groups of functions. */
TEST(a_plugin_with_queues_and_recordings_of_an_earlier_version_runs_them)
{
#ifdef GPUHAL_KEPT
    if (!runs_recordings(GPUHAL_KEPT "/0.4/vulkan", GPUHAL_LATER_HELPER, "vulkan:0")) {
        skip(); /* no device of Vulkan here */
    }
#else
    skip();
#endif
}

TEST(a_plugin_of_a_later_version_copies_bytes)
{
    assert_int_equal(version_of("later_2"), GPUHAL_ABI + 2);
    copies_bytes(GPUHAL_TEST_PLUGINS "/later_2", GPUHAL_LATER_HELPER, "example:0");
}

TEST(a_plugin_for_this_version_and_the_previous_returns_the_table_of_this_version)
{
    assert_int_equal(version_of("two_abis"), GPUHAL_ABI + 1);
    copies_bytes(GPUHAL_TEST_PLUGINS "/two_abis", GPUHAL_LATER_HELPER, "example:0");
}

#include "test_main.h"
