/* callgrind.h: the loop whose instructions are counted. */
#ifndef GPUHAL_BENCH_CALLGRIND_H
#define GPUHAL_BENCH_CALLGRIND_H

#include <stdbool.h>
#include <stdint.h>

/* Makes @count blocking copies of 64 bytes on the device of the selector, which names the backend first ("cuda:0"), by the
 * library ("ours") or by the plugin's own function ("direct"). Prints nothing. False with gpuhal_bench_failure(). */
bool gpuhal_bench_callgrind_loop(const char *selector, uint64_t count, const char *kind);

#endif
