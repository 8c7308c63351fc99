/* os/linux/library.c: shared libraries. Libraries are never closed, because drivers leave threads, thread-local
 * destructors and exit handlers behind, whose code would be unmapped. */
#include "os/os.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* With RTLD_NOW, a missing symbol fails here, not in the middle of a copy. With RTLD_LOCAL, two vendors' copies of one
 * library do not share symbols. RTLD_DEEPBIND is not used, because it breaks the host's allocators and sanitizers. */
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

typedef struct place {
    uintptr_t address;
    size_t objects; /* objects examined so far */
    bool is_found, is_program, is_code;
    char *name; /* buffer of PATH_MAX bytes for the dynamic loader's file name, truncated; may be NULL */
} place;

static int look_into(struct dl_phdr_info *object, size_t size, void *user)
{
    (void)size;
    place *at = user;
    for (size_t i = 0; i < object->dlpi_phnum && !at->is_found; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && at->address - (object->dlpi_addr + segment->p_vaddr) < segment->p_memsz) {
            at->is_program = at->objects == 0; /* the program comes first */
            at->is_code = segment->p_flags & PF_X;
            at->is_found = true;
            if (at->name) {
                snprintf(at->name, PATH_MAX, "%s", object->dlpi_name);
            }
        }
    }
    at->objects++;
    return at->is_found;
}

/* dladdr() is not used, because its name for the program depends on the C library, and it does not report segments. */
static place place_of(const void *address, char *name)
{
    place at = {.address = (uintptr_t)address, .name = name};
    dl_iterate_phdr(look_into, &at);
    return at;
}

bool gpuhal_os_library_is_data(const void *address)
{
    const place at = place_of(address, NULL);
    return at.is_found && !at.is_code;
}

/* ---- mappings */

/* Parses "7f0…-7f0… r-xp 00000000 fe:00 131 /usr/lib/libc.so.6". Returns the path; NULL for a mapping without a file.
 * The path of a file that was removed or replaced ends with " (deleted)". */
static const char *parse_mapping(char *line, uintptr_t *out_begin, uintptr_t *out_end)
{
    unsigned long begin = 0, end = 0;
    const char *path = strchr(line, '/');
    if (!path || sscanf(line, "%lx-%lx", &begin, &end) != 2) {
        return NULL;
    }
    line[strcspn(line, "\n")] = 0;
    *out_begin = begin;
    *out_end = end;
    return path;
}

void gpuhal_os_libraries_find_mapped(gpuhal_loaded_library *libraries, size_t count)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[PATH_MAX + 128];
    while (maps && fgets(line, sizeof line, maps)) {
        uintptr_t begin = 0, end = 0;
        const char *path = parse_mapping(line, &begin, &end);
        for (size_t i = 0; path && i < count; i++) {
            const uintptr_t address = (uintptr_t)libraries[i].section;
            if (address >= begin && address < end && !libraries[i].mapped) {
                libraries[i].mapped = strdup(path);
            }
        }
    }
    if (maps) {
        fclose(maps);
    }
}

char *gpuhal_os_library_path(const void *address)
{
    char *name = malloc(PATH_MAX);
    if (!name) {
        return NULL;
    }
    const place at = place_of(address, name);
    /* A relative name is relative to an earlier current directory. */
    gpuhal_loaded_library own = {.section = address};
    if (at.is_found && !at.is_program && name[0] != '/') {
        gpuhal_os_libraries_find_mapped(&own, 1);
    }
    char *path = !at.is_found    ? NULL
                 : at.is_program ? realpath("/proc/self/exe", NULL)
                 : *name == '/'  ? realpath(name, NULL)
                                 : own.mapped;
    free(name);
    return path;
}

char *gpuhal_os_library_file(void *library)
{
    struct link_map *map = NULL;
    return dlinfo(library, RTLD_DI_LINKMAP, &map) || !map ? NULL : gpuhal_os_library_path(map->l_ld);
}


/* If the C library does not relocate the section in memory, the section contains offsets, which are lower than any
 * address. */
static const char *strings_of(const ElfW(Dyn) *entry, uintptr_t base)
{
    for (; entry && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB) {
            const uintptr_t at = entry->d_un.d_ptr;
            return (const char *)(at < base ? base + at : at);
        }
    }
    return NULL;
}

typedef struct copy {
    gpuhal_loaded_library *libraries;
    char *texts;
    size_t places, room; /* available entries, and bytes of texts */
    size_t count, bytes; /* required entries, and bytes of texts */
} copy;

static const char *copy_text(copy *own, const char *text)
{
    const size_t bytes = strlen(text) + 1, at = own->bytes;
    own->bytes += bytes;
    return own->bytes <= own->room ? memcpy(own->texts + at, text, bytes) : NULL;
}

/* Called with the dynamic loader's lock held. An allocator or a profiler may wait for it while holding a lock of its
 * own, so this function must not allocate memory or open files. Kernel mappings, and with glibc the program, have no
 * path. */
static int copy_library(struct dl_phdr_info *object, size_t size, void *user)
{
    (void)size;
    copy *own = user;
    if (!strchr(object->dlpi_name, '/')) {
        return 0;
    }
    const ElfW(Dyn) *section = NULL;
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC) {
            section = (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
        }
    }
    const char *strings = strings_of(section, object->dlpi_addr);
    gpuhal_loaded_library library = {.section = section, .path = copy_text(own, object->dlpi_name)};
    for (const ElfW(Dyn) *entry = section; strings && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SONAME) {
            library.name = copy_text(own, strings + entry->d_un.d_val);
        }
    }
    const size_t needs = own->bytes;
    for (const ElfW(Dyn) *entry = section; strings && entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_NEEDED) {
            (void)copy_text(own, strings + entry->d_un.d_val);
        }
    }
    (void)copy_text(own, "");
    if (own->count++ < own->places && own->bytes <= own->room) {
        library.needs = own->texts + needs;
        own->libraries[own->count - 1] = library;
    }
    return 0;
}

int gpuhal_os_libraries_list(gpuhal_loaded_library **out_libraries, size_t *out_count)
{
    copy own = {0};
    for (;;) {
        own.count = own.bytes = 0;
        dl_iterate_phdr(copy_library, &own);
        if (own.libraries && own.count <= own.places && own.bytes <= own.room) {
            *out_libraries = own.libraries;
            *out_count = own.count;
            return 0;
        }
        free(own.libraries);
        own.places = own.count + 1;
        own.room = own.bytes + 1;
        own.libraries = malloc(own.places * sizeof *own.libraries + own.room);
        if (!own.libraries) {
            return ENOMEM;
        }
        own.texts = (char *)(own.libraries + own.places);
    }
}

void gpuhal_os_libraries_free(gpuhal_loaded_library *libraries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(libraries[i].mapped);
    }
    free(libraries);
}

static int take_loads(struct dl_phdr_info *object, size_t size, void *user)
{
    (void)size;
    *(uint64_t *)user = object->dlpi_adds;
    return 1;
}

uint64_t gpuhal_os_libraries_loads(void)
{
    uint64_t loads = 0;
    dl_iterate_phdr(take_loads, &loads);
    return loads;
}

/* ---- this library's own */

/* Any address of this code lies in the library, or in the program if linked statically. */
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

/* The first result is kept, because in the child of a fork the dynamic loader's lock may be held forever by a thread
 * that exists only in the parent. */
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
