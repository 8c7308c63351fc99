/* heap.c: see heap.h. The functions in this file replace the C library's allocation functions and call them, so all
 * allocations of all libraries in the process pass through this file. A block is attributed to the object whose code
 * called. If the caller is the C or C++ library, the block is attributed to the first caller outside these libraries.
 * Blocks from strdup() and new therefore count for the plugin that uses them. */
#include "heap.h"

#include "image.h"
#include "resources.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 33)
uint64_t gpuhal_heap_bytes(void)
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}
#else
uint64_t gpuhal_heap_bytes(void)
{
    return 0;
}
#endif

#if defined(__GLIBC__) && !GPUHAL_CHECK_SANITIZED
/* The C library's functions under their internal names, and the functions that replace them. */
extern void *gpuhal_libc_malloc(size_t bytes) __asm__("__libc_malloc");
extern void *gpuhal_libc_calloc(size_t count, size_t bytes) __asm__("__libc_calloc");
extern void *gpuhal_libc_realloc(void *block, size_t bytes) __asm__("__libc_realloc");
extern void *gpuhal_libc_memalign(size_t alignment, size_t bytes) __asm__("__libc_memalign");
extern void gpuhal_libc_free(void *block) __asm__("__libc_free");

/* The program is built with hidden symbols, but libraries must find these functions. */
#define SHOWN __attribute__((visibility("default")))

SHOWN void *gpuhal_heap_malloc(size_t bytes) __asm__("malloc");
SHOWN void *gpuhal_heap_calloc(size_t count, size_t bytes) __asm__("calloc");
SHOWN void *gpuhal_heap_realloc(void *block, size_t bytes) __asm__("realloc");
SHOWN void *gpuhal_heap_memalign(size_t alignment, size_t bytes) __asm__("memalign");
SHOWN void *gpuhal_heap_aligned_alloc(size_t alignment, size_t bytes) __asm__("aligned_alloc");
SHOWN int gpuhal_heap_posix_memalign(void **out_block, size_t alignment, size_t bytes) __asm__("posix_memalign");
SHOWN void gpuhal_heap_free(void *block) __asm__("free");

enum { PLACES = 1 << 16, RANGES = 16, FRAMES = 8 };

typedef struct range {
    uintptr_t begin, end;
    bool plugin; /* false for a C or C++ library, whose callers count instead */
} range;

static atomic_bool watching;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects the table */
static struct {
    void *block; /* NULL if the entry was never used; the table's own address if the entry was used and is free again */
    uint64_t bytes;
} table[PLACES];
static range ranges[RANGES];
static unsigned range_count;
static const void *watched;
static bool uses_new;             /* the watched object was compiled from C++ */
static _Thread_local bool inside; /* stack unwinding also allocates */

static size_t place_of(const void *block)
{
    return (size_t)(((uintptr_t)block >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 48) % PLACES;
}

static const range *range_of(uintptr_t address)
{
    for (unsigned r = 0; r < range_count; r++) {
        if (address >= ranges[r].begin && address < ranges[r].end) {
            return &ranges[r];
        }
    }
    return NULL;
}

typedef struct walk {
    unsigned frames;
    bool plugin;
} walk;

static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *frame, void *user)
{
    walk *own = user;
    const uintptr_t address = _Unwind_GetIP(frame);
    const range *of = range_of(address);
    const bool is_own = address >= (uintptr_t)look_at_frame - 65536 && address < (uintptr_t)look_at_frame + 65536;
    own->plugin = of != NULL && of->plugin;
    own->frames++;
    return (of == NULL && !is_own) || own->plugin || own->frames > FRAMES ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static bool is_of_plugin(const void *caller)
{
    walk own = {0};
    const range *of = range_of((uintptr_t)caller);
    if (of == NULL || of->plugin) {
        return of != NULL;
    }
    inside = true;
    _Unwind_Backtrace(look_at_frame, &own);
    inside = false;
    return own.plugin;
}

static void *taken(void *block, size_t bytes, const void *caller)
{
    if (block == NULL || !atomic_load_explicit(&watching, memory_order_relaxed) || inside || !is_of_plugin(caller)) {
        return block;
    }
    pthread_mutex_lock(&lock);
    size_t place = place_of(block);
    for (unsigned tries = 0; tries < PLACES && table[place].block != NULL && table[place].block != (void *)table;
         tries++) {
        place = (place + 1) % PLACES;
    }
    table[place].block = block;
    table[place].bytes = bytes;
    pthread_mutex_unlock(&lock);
    return block;
}

static void given_back(const void *block)
{
    if (block == NULL || !atomic_load_explicit(&watching, memory_order_relaxed)) {
        return;
    }
    pthread_mutex_lock(&lock);
    size_t place = place_of(block);
    for (unsigned tries = 0; tries < PLACES && table[place].block != NULL; tries++) {
        if (table[place].block == block) {
            table[place].block = table;
            break;
        }
        place = (place + 1) % PLACES;
    }
    pthread_mutex_unlock(&lock);
}

void *gpuhal_heap_malloc(size_t bytes)
{
    return taken(gpuhal_libc_malloc(bytes), bytes, __builtin_return_address(0));
}

void *gpuhal_heap_calloc(size_t count, size_t bytes)
{
    return taken(gpuhal_libc_calloc(count, bytes), count * bytes, __builtin_return_address(0));
}

void *gpuhal_heap_realloc(void *block, size_t bytes)
{
    given_back(block);
    return taken(gpuhal_libc_realloc(block, bytes), bytes, __builtin_return_address(0));
}

void *gpuhal_heap_memalign(size_t alignment, size_t bytes)
{
    return taken(gpuhal_libc_memalign(alignment, bytes), bytes, __builtin_return_address(0));
}

void *gpuhal_heap_aligned_alloc(size_t alignment, size_t bytes)
{
    return taken(gpuhal_libc_memalign(alignment, bytes), bytes, __builtin_return_address(0));
}

int gpuhal_heap_posix_memalign(void **out_block, size_t alignment, size_t bytes)
{
    void *block = taken(gpuhal_libc_memalign(alignment, bytes), bytes, __builtin_return_address(0));
    if (block != NULL) {
        *out_block = block;
    }
    return block != NULL ? 0 : ENOMEM;
}

void gpuhal_heap_free(void *block)
{
    given_back(block);
    gpuhal_libc_free(block);
}

static int add_object(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size, (void)user;
    const char *slash = strrchr(info->dlpi_name, '/'), *name = slash != NULL ? slash + 1 : info->dlpi_name;
    const bool is_cpp = strncmp(name, "libstdc++", 9) == 0 || strncmp(name, "libc++", 6) == 0;
    const bool serves = strncmp(name, "libc.so", 7) == 0 || (is_cpp && uses_new);
    range whole = {UINTPTR_MAX, 0, false};
    for (unsigned h = 0; h < info->dlpi_phnum; h++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[h];
        const uintptr_t begin = info->dlpi_addr + header->p_vaddr, end = begin + header->p_memsz;
        if (header->p_type == PT_LOAD) {
            whole.begin = begin < whole.begin ? begin : whole.begin;
            whole.end = end > whole.end ? end : whole.end;
        }
    }
    whole.plugin = (uintptr_t)watched >= whole.begin && (uintptr_t)watched < whole.end;
    if ((whole.plugin || serves) && range_count < RANGES) {
        ranges[range_count++] = whole;
    }
    return 0;
}

static void note_new(void *user, const char *name)
{
    *(bool *)user |= strncmp(name, "_Zn", 3) == 0;
}

bool gpuhal_heap_watch(const void *of_object)
{
    Dl_info info;
    const gpuhal_image_visitor visitor = {.user = &uses_new, .imported = note_new};
    watched = of_object;
    range_count = 0;
    uses_new = false;
    if (dladdr(of_object, &info) != 0) {
        gpuhal_image_visit(info.dli_fname, &visitor);
    }
    dl_iterate_phdr(add_object, NULL);
    memset(table, 0, sizeof table);
    atomic_store(&watching, true);
    return true;
}

gpuhal_heap_count gpuhal_heap_left(void)
{
    gpuhal_heap_count left = {0};
    atomic_store(&watching, false);
    pthread_mutex_lock(&lock);
    for (size_t p = 0; p < PLACES; p++) {
        if (table[p].block != NULL && table[p].block != (void *)table) {
            left.blocks++;
            left.bytes += table[p].bytes;
        }
    }
    pthread_mutex_unlock(&lock);
    return left;
}
#else
bool gpuhal_heap_watch(const void *of_object)
{
    (void)of_object;
    return false;
}

gpuhal_heap_count gpuhal_heap_left(void)
{
    return (gpuhal_heap_count){0};
}
#endif
