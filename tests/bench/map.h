/* map.h: a hash table of the C++ library (baselines.h). Without a compiler for C++ there is none, and GPUHAL_BENCH_MAP
 * is 0. */
#ifndef GPUHAL_BENCH_MAP_H
#define GPUHAL_BENCH_MAP_H

#include "baselines.h"

#ifdef __cplusplus
extern "C" {
#endif

gpuhal_bench_map *gpuhal_bench_map_create(const gpuhal_bench_key *keys, size_t count);
void gpuhal_bench_map_destroy(gpuhal_bench_map *map);
bool gpuhal_bench_map_has(const gpuhal_bench_map *map, const gpuhal_bench_key *key);

#ifdef __cplusplus
}
#endif

#endif
