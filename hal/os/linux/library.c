/* os/linux/library.c: shared libraries. Nothing is ever closed: drivers leave threads, thread-local destructors and exit handlers
 * behind that would run in unmapped memory. */
#include "os/os.h"

#include <dlfcn.h>
#include <elf.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* NOW: a missing symbol shows here and not in the middle of a copy. LOCAL: two vendors' copies of one library do not mix.
 * NODELETE: see above. No DEEPBIND: it breaks allocators and sanitizers that the host brings along. */
void *gpuhal_os_library_open(const char *name, char *reason, size_t reason_bytes)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        const char *text = dlerror();
        snprintf(reason, reason_bytes, "%s", text ? text : "the dynamic loader gave no reason");
    }
    return library;
}

void *gpuhal_os_library_symbol(void *library, const char *name)
{
    return dlsym(library, name);
}

bool gpuhal_os_library_is_data(const void *address)
{
    Dl_info info;
    const ElfW(Sym) *symbol = NULL;
    if (!dladdr1(address, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol) {
        return false;
    }
    /* ELF64_ST_TYPE and ELF32_ST_TYPE are the same. */
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    return info.dli_saddr == address && type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE;
}

/* The file that the kernel mapped at `address`: the way out where the dynamic loader only knows a relative name. */
static char *mapped_path(const void *address)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[PATH_MAX + 128];
    char *path = NULL;
    while (maps && !path && fgets(line, sizeof line, maps)) {
        unsigned long begin = 0, end = 0;
        const char *name = strchr(line, '/');
        if (name && sscanf(line, "%lx-%lx", &begin, &end) == 2 && (uintptr_t)address >= begin && (uintptr_t)address < end) {
            line[strcspn(line, "\n")] = 0;
            path = strdup(name);
        }
    }
    if (maps) {
        fclose(maps);
    }
    return path;
}

static char *path_of(const struct link_map *map, const void *inside)
{
    if (!map->l_name || !map->l_name[0]) {
        return realpath("/proc/self/exe", NULL);
    }
    /* A relative name was relative to the directory of that moment, which may not be today's. */
    return map->l_name[0] == '/' ? realpath(map->l_name, NULL) : mapped_path(inside);
}

char *gpuhal_os_library_file(void *library)
{
    struct link_map *map = NULL;
    return dlinfo(library, RTLD_DI_LINKMAP, &map) || !map ? NULL : path_of(map, map->l_ld);
}

char *gpuhal_os_library_path(const void *address)
{
    Dl_info info;
    struct link_map *map = NULL;
    return !dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) || !map ? NULL : path_of(map, address);
}

/* Any address of this code will do: it lies in the library, or in the program that links it statically. */
char *gpuhal_os_own_directory(void)
{
    static const char here = 0;
    char *path = gpuhal_os_library_path(&here);
    char *slash = path ? strrchr(path, '/') : NULL;
    if (!slash) {
        free(path);
        return NULL;
    }
    slash[slash == path] = 0;
    return path;
}
