/* tests/plugins/two_abis.c: a plugin for two versions of the ABI, which plugin-abi.md describes: examples/vendor-plugin
 * compiled for the version of plugin.h and for the next. */
#include <gpuhal/plugin.h>

gpuhal_plugin_query_fn gpuhal_test_example_query_0, gpuhal_test_example_query_1;

const gpuhal_plugin *gpuhal_plugin_query(uint32_t host_abi, const gpuhal_host *host)
{
    return (host_abi == GPUHAL_ABI ? gpuhal_test_example_query_0 : gpuhal_test_example_query_1)(host_abi, host);
}
