/* versions.c: one binary that supports several ABI versions. plugin.c is compiled with the headers of each version and
 * with a different entry point. The only exported function returns the table for the version of the calling core. The
 * manifest lists all versions, for example abi = 0.4 0.5.
 *
 *     flags="-fPIC -fvisibility=hidden -DGPUHAL_PLUGIN_API="
 *     cc -c $flags -Iheaders-0.4 -DGPUHAL_PLUGIN_QUERY=example_query_0_4 plugin.c -o plugin-0.4.o
 *     cc -c $flags -Iheaders-0.5 -DGPUHAL_PLUGIN_QUERY=example_query_0_5 plugin.c -o plugin-0.5.o
 *     cc -shared -fPIC -fvisibility=hidden -Iheaders-0.5 versions.c plugin-0.4.o plugin-0.5.o -o gpuhal-example.so
 *
 * The two objects share no state and need none, because a process uses only one of them. */
#include <gpuhal/plugin.h>

gpuhal_plugin_query_fn example_query_0_4, example_query_0_5;

const gpuhal_plugin *gpuhal_plugin_query(uint32_t host_abi, const gpuhal_host *host)
{
    /* If neither version matches, the core decides about the table of the newest version. */
    return (host_abi == 0x00000004 ? example_query_0_4 : example_query_0_5)(host_abi, host);
}
