/* elf.c: see elf.h. Everything is found through the program headers and the dynamic section, as the loader does; section headers
 * may have been stripped. No offset of the file is trusted. */
#include "elf.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct image {
    const unsigned char *bytes;
    uint64_t size;
} image;

/* The only way to bytes of the file: everything that lies outside is NULL. */
static const void *part(const image *file, uint64_t offset, uint64_t bytes)
{
    return offset <= file->size && bytes <= file->size - offset ? file->bytes + offset : NULL;
}

static const ElfW(Phdr) * segment(const image *file, unsigned number)
{
    const ElfW(Ehdr) *header = part(file, 0, sizeof *header);
    return number < header->e_phnum ? part(file, header->e_phoff + number * sizeof(ElfW(Phdr)), sizeof(ElfW(Phdr))) : NULL;
}

/* What lies at this address once loaded. */
static const void *at_address(const image *file, uint64_t address, uint64_t bytes)
{
    const ElfW(Phdr) * load;
    for (unsigned i = 0; (load = segment(file, i)) != NULL; i++) {
        if (load->p_type == PT_LOAD && address >= load->p_vaddr && address - load->p_vaddr < load->p_filesz) {
            return part(file, load->p_offset + (address - load->p_vaddr), bytes);
        }
    }
    return NULL;
}

static const char *text_at(const image *file, uint64_t address)
{
    const char *text = at_address(file, address, 1);
    const char *end = (const char *)file->bytes + file->size;
    return text != NULL && memchr(text, '\0', (size_t)(end - text)) != NULL ? text : "";
}

/* The last entry of the dynamic section with this tag, or 0. */
static uint64_t dynamic_value(const ElfW(Dyn) * dynamic, uint64_t count, int64_t tag)
{
    uint64_t value = 0;
    for (uint64_t i = 0; i < count && dynamic[i].d_tag != DT_NULL; i++) {
        value = dynamic[i].d_tag == tag ? dynamic[i].d_un.d_val : value;
    }
    return value;
}

/* The GNU hash table ends with the last symbol of its last chain. */
static uint64_t count_gnu_symbols(const image *file, uint64_t address)
{
    const uint32_t *header = at_address(file, address, 16);
    if (header == NULL) {
        return 0;
    }
    const uint32_t bucket_count = header[0], first = header[1], bloom = header[2];
    const uint64_t buckets_at = address + 16 + (uint64_t)bloom * sizeof(ElfW(Addr));
    const uint32_t *buckets = at_address(file, buckets_at, (uint64_t)bucket_count * 4);
    uint32_t last = 0;
    for (uint32_t b = 0; buckets != NULL && b < bucket_count; b++) {
        last = buckets[b] > last ? buckets[b] : last;
    }
    if (last < first) {
        return first;
    }
    const uint64_t chains_at = buckets_at + (uint64_t)bucket_count * 4;
    for (;; last++) {
        const uint32_t *chain = at_address(file, chains_at + (uint64_t)(last - first) * 4, 4);
        if (chain == NULL || (*chain & 1) != 0) {
            return (uint64_t)last + 1;
        }
    }
}

static void tell(void (*function)(void *user, const char *name), void *user, const char *name)
{
    if (function != NULL) {
        function(user, name);
    }
}

/* Symbols without a section are imports; absolute ones are names of versions. */
static void visit_symbols(const image *file, const ElfW(Dyn) * dynamic, uint64_t count, const gpuhal_elf_visitor *visitor)
{
    const uint64_t strings = dynamic_value(dynamic, count, DT_STRTAB);
    const uint64_t symbols = dynamic_value(dynamic, count, DT_SYMTAB);
    const uint64_t gnu = dynamic_value(dynamic, count, DT_GNU_HASH);
    const uint64_t old = dynamic_value(dynamic, count, DT_HASH);
    const uint32_t *old_header = old != 0 ? at_address(file, old, 8) : NULL;
    const uint64_t total = gnu != 0 ? count_gnu_symbols(file, gnu) : old_header != NULL ? old_header[1] : 0;
    for (uint64_t s = 1; s < total; s++) {
        const ElfW(Sym) *symbol = at_address(file, symbols + s * sizeof *symbol, sizeof *symbol);
        if (symbol == NULL || ELF64_ST_BIND(symbol->st_info) == STB_LOCAL || symbol->st_shndx == SHN_ABS) {
            continue;
        }
        const unsigned visibility = ELF64_ST_VISIBILITY(symbol->st_other);
        const char *name = text_at(file, strings + symbol->st_name);
        if (symbol->st_shndx == SHN_UNDEF) {
            tell(visitor->imported, visitor->user, name);
        } else if (visibility != STV_HIDDEN && visibility != STV_INTERNAL) {
            tell(visitor->exported, visitor->user, name);
        }
    }
}

static bool visit(const image *file, const gpuhal_elf_visitor *visitor)
{
    const ElfW(Ehdr) *header = part(file, 0, sizeof *header);
    const int own_class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    if (header == NULL || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != own_class ||
        header->e_phentsize != sizeof(ElfW(Phdr))) {
        return false;
    }
    const ElfW(Phdr) * dynamic_segment;
    unsigned number = 0;
    while ((dynamic_segment = segment(file, number)) != NULL && dynamic_segment->p_type != PT_DYNAMIC) {
        number++;
    }
    const ElfW(Dyn) *dynamic = dynamic_segment != NULL ? part(file, dynamic_segment->p_offset, dynamic_segment->p_filesz) : NULL;
    if (dynamic == NULL) {
        return false;
    }
    const uint64_t count = dynamic_segment->p_filesz / sizeof *dynamic;
    const uint64_t strings = dynamic_value(dynamic, count, DT_STRTAB);
    for (uint64_t i = 0; i < count && dynamic[i].d_tag != DT_NULL; i++) {
        if (dynamic[i].d_tag == DT_NEEDED) {
            tell(visitor->needed, visitor->user, text_at(file, strings + dynamic[i].d_un.d_val));
        }
    }
    visit_symbols(file, dynamic, count, visitor);
    if (visitor->constructors != NULL) {
        visitor->constructors(visitor->user, (unsigned)(dynamic_value(dynamic, count, DT_INIT_ARRAYSZ) / sizeof(void *)),
                              (unsigned)(dynamic_value(dynamic, count, DT_FINI_ARRAYSZ) / sizeof(void *)));
    }
    return true;
}

bool gpuhal_elf_visit(const char *file, const gpuhal_elf_visitor *visitor)
{
    struct stat status;
    int descriptor = open(file, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0 || fstat(descriptor, &status) != 0 || status.st_size <= 0) {
        if (descriptor >= 0) {
            close(descriptor);
        }
        return false;
    }
    void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    close(descriptor);
    if (bytes == MAP_FAILED) {
        return false;
    }
    const image whole = {bytes, (uint64_t)status.st_size};
    bool visited = visit(&whole, visitor);
    munmap(bytes, (size_t)status.st_size);
    return visited;
}
