/* versions.c: one binary that serves several versions of the ABI. plugin.c is compiled once with the headers of each
 * version, under a name of its own; the one exported function hands out the table that the asking core can read. The
 * manifest lists them all: abi = 0.3 0.4.
 *
 *     cc -c -fPIC -fvisibility=hidden -Iheaders-0.3 -DGPUHAL_PLUGIN_API= -DGPUHAL_PLUGIN_QUERY=example_query_0_3
 * plugin.c -o plugin-0.3.o cc -c -fPIC -fvisibility=hidden -Iheaders-0.4 -DGPUHAL_PLUGIN_API=
 * -DGPUHAL_PLUGIN_QUERY=example_query_0_4 plugin.c -o plugin-0.4.o cc -shared -fPIC -fvisibility=hidden -Iheaders-0.4
 * versions.c plugin-0.3.o plugin-0.4.o -o gpuhal-example.so
 *
 * The two objects share nothing: in one process only one of them is ever used. */
#include <gpuhal/plugin.h>

gpuhal_plugin_query_fn example_query_0_3, example_query_0_4;

const gpuhal_plugin *gpuhal_plugin_query(uint32_t host_abi, const gpuhal_host *host)
{
    /* The newest plugin words the refusal of a version that neither serves. */
    return (host_abi == 0x00000003 ? example_query_0_3 : example_query_0_4)(host_abi, host);
}
