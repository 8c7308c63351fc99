/* map.cpp: std::unordered_map with std::string keys. Each lookup constructs a string from the caller's characters,
 * as a program with C keys does. */
#include "members.h"

#include <new>
#include <string>
#include <unordered_map>

struct gpuhal_bench_map {
    std::unordered_map<std::string, size_t> numbers;
};

gpuhal_bench_map *gpuhal_bench_map_create(const gpuhal_bench_key *keys, size_t count)
{
    try {
        gpuhal_bench_map *map = new gpuhal_bench_map;
        for (size_t i = 0; i < count; i++) {
            map->numbers.emplace(std::string(keys[i].text, keys[i].length), i);
        }
        return map;
    } catch (const std::bad_alloc &) {
        return nullptr;
    }
}

void gpuhal_bench_map_destroy(gpuhal_bench_map *map)
{
    delete map;
}

bool gpuhal_bench_map_has(const gpuhal_bench_map *map, const gpuhal_bench_key *key)
{
    return map->numbers.find(std::string(key->text, key->length)) != map->numbers.end();
}
