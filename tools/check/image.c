/* image.c: see image.h. All tables are found through the dynamic section, as in the dynamic loader. The loader has
 * already used the same values. */
#include "image.h"

#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the value of the last entry of the dynamic section with this tag, or 0. */
static uintptr_t dynamic_value(const struct link_map *map, int64_t tag)
{
    uintptr_t value = 0;
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        value = entry->d_tag == tag ? entry->d_un.d_val : value;
    }
    return value;
}

/* Returns the address of the table with this tag, or 0. glibc has relocated most of these addresses in place, but not
 * all. */
static uintptr_t table_at(const struct link_map *map, int64_t tag)
{
    const uintptr_t value = dynamic_value(map, tag);
    return value != 0 && value < map->l_addr ? map->l_addr + value : value;
}

/* The GNU hash table ends with the last symbol of its last chain. */
static uint32_t count_gnu_symbols(const uint32_t *header)
{
    const uint32_t bucket_count = header[0], first = header[1], bloom = header[2];
    const uint32_t *buckets = header + 4 + bloom * (sizeof(ElfW(Addr)) / sizeof *header);
    const uint32_t *chains = buckets + bucket_count;
    uint32_t last = 0;
    for (uint32_t b = 0; b < bucket_count; b++) {
        last = buckets[b] > last ? buckets[b] : last;
    }
    if (last < first) {
        return first;
    }
    while ((chains[last - first] & 1) == 0) {
        last++;
    }
    return last + 1;
}

static uint32_t count_symbols(const struct link_map *map)
{
    const uintptr_t gnu = table_at(map, DT_GNU_HASH), old = table_at(map, DT_HASH);
    return gnu != 0 ? count_gnu_symbols((const uint32_t *)gnu) : old != 0 ? ((const uint32_t *)old)[1] : 0;
}

static void call(void (*function)(void *user, const char *name), void *user, const char *name)
{
    if (function != NULL) {
        function(user, name);
    }
}

/* Undefined symbols are imports; absolute symbols are version names. */
static void visit_symbols(const struct link_map *map, const char *strings, const gpuhal_image_visitor *visitor)
{
    const ElfW(Sym) *symbols = (const ElfW(Sym) *)table_at(map, DT_SYMTAB);
    const uint32_t count = count_symbols(map);
    for (uint32_t s = 1; s < count; s++) {
        const unsigned visibility = ELF64_ST_VISIBILITY(symbols[s].st_other);
        if (ELF64_ST_BIND(symbols[s].st_info) == STB_LOCAL || symbols[s].st_shndx == SHN_ABS) {
            continue;
        }
        if (symbols[s].st_shndx == SHN_UNDEF) {
            call(visitor->imported, visitor->user, strings + symbols[s].st_name);
        } else if (visibility != STV_HIDDEN && visibility != STV_INTERNAL) {
            call(visitor->exported, visitor->user, strings + symbols[s].st_name);
        }
    }
}

bool gpuhal_image_visit(const char *file, const gpuhal_image_visitor *visitor)
{
    struct link_map *map = NULL;
    void *handle = dlopen(file, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    if (handle == NULL || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) {
        return false;
    }
    const char *strings = (const char *)table_at(map, DT_STRTAB);
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_NEEDED) {
            call(visitor->needed, visitor->user, strings + entry->d_un.d_val);
        }
    }
    visit_symbols(map, strings, visitor);
    if (visitor->constructors != NULL) {
        visitor->constructors(visitor->user, (unsigned)(dynamic_value(map, DT_INIT_ARRAYSZ) / sizeof(void *)),
                              (unsigned)(dynamic_value(map, DT_FINI_ARRAYSZ) / sizeof(void *)));
    }
    return true;
}
