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
