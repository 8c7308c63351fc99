/* os/linux/library.c: shared libraries. Nothing is ever closed: drivers leave threads, thread-local destructors and
 * exit handlers behind that would run in unmapped memory. */
#include "os/os.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NOW: a missing symbol must fail here and not in the middle of a copy. LOCAL: two vendors' copies of one library must
 * not mix. NODELETE: see above. No DEEPBIND: it breaks allocators and sanitizers of the host. */
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

/* The object that contains an address. */
typedef struct place {
    uintptr_t address;
    size_t objects; /* examined so far */
    bool is_program, is_code;
    char *name; /* the dynamic loader's name of the file, malloc'ed; NULL: none */
} place;

static int look_into(struct dl_phdr_info *object, size_t size, void *user)
{
    (void)size;
    place *at = user;
    for (size_t i = 0; i < object->dlpi_phnum && !at->name; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && at->address - (object->dlpi_addr + segment->p_vaddr) < segment->p_memsz) {
            at->is_program = at->objects == 0; /* the program comes first */
            at->is_code = segment->p_flags & PF_X;
            at->name = strdup(object->dlpi_name);
        }
    }
    at->objects++;
    return at->name != NULL;
}

/* dladdr() names the program differently in each C library, and says nothing of segments. X */
static place place_of(const void *address)
{
    place at = {.address = (uintptr_t)address};
    dl_iterate_phdr(look_into, &at);
    return at;
}

bool gpuhal_os_library_is_data(const void *address)
{
    const place at = place_of(address);
    bool is_data = at.name && !at.is_code;
    free(at.name);
    return is_data;
}

/* Returns the file mapped at `address`, for libraries of which the dynamic loader only has a relative name. */
static char *mapped_path(const void *address)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[PATH_MAX + 128];
    char *path = NULL;
    while (maps && !path && fgets(line, sizeof line, maps)) {
        unsigned long begin = 0, end = 0;
        const char *name = strchr(line, '/');
        if (name && sscanf(line, "%lx-%lx", &begin, &end) == 2 && (uintptr_t)address >= begin &&
            (uintptr_t)address < end) {
            line[strcspn(line, "\n")] = 0;
            path = strdup(name);
        }
    }
    if (maps) {
        fclose(maps);
    }
    return path;
}

char *gpuhal_os_library_path(const void *address)
{
    const place at = place_of(address);
    /* A relative name was relative to an earlier current directory, which may have changed. */
    char *path = !at.name            ? NULL
                 : at.is_program     ? realpath("/proc/self/exe", NULL)
                 : at.name[0] == '/' ? realpath(at.name, NULL)
                                     : mapped_path(address);
    free(at.name);
    return path;
}

char *gpuhal_os_library_file(void *library)
{
    struct link_map *map = NULL;
    return dlinfo(library, RTLD_DI_LINKMAP, &map) || !map ? NULL : gpuhal_os_library_path(map->l_ld);
}

/* Any address of this code is in the library, or in the program that links it statically. */
static char *find_own_directory(void)
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

/* Found once: in the child of a fork a thread of the parent may hold the dynamic loader's lock for ever. */
char *gpuhal_os_own_directory(void)
{
    static _Atomic(char *) found;
    char *own = atomic_load(&found), *other = NULL;
    if (!own) {
        own = find_own_directory();
        if (own && !atomic_compare_exchange_strong(&found, &other, own)) {
            free(own);
            own = other;
        }
    }
    return own ? strdup(own) : NULL;
}
