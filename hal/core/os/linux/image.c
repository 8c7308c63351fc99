/* os/linux/image.c: checks that a file is a complete ELF library or program for this machine. Reads the ELF header and
 * the program headers with checked arithmetic, because their values cannot be trusted. */
#include "os/os.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef EM_LOONGARCH /* since glibc 2.36; missing in musl 1.2.3 */
#define EM_LOONGARCH 258
#endif
#if defined(__x86_64__)
#define MACHINE      EM_X86_64
#define MACHINE_NAME "x86-64"
#elif defined(__aarch64__)
#define MACHINE      EM_AARCH64
#define MACHINE_NAME "aarch64"
#elif defined(__i386__)
#define MACHINE      EM_386
#define MACHINE_NAME "x86"
#elif defined(__arm__)
#define MACHINE      EM_ARM
#define MACHINE_NAME "arm"
#elif defined(__riscv)
#define MACHINE      EM_RISCV
#define MACHINE_NAME "riscv"
#elif defined(__powerpc64__)
#define MACHINE      EM_PPC64
#define MACHINE_NAME "ppc64"
#elif defined(__s390x__)
#define MACHINE      EM_S390
#define MACHINE_NAME "s390x"
#elif defined(__loongarch__)
#define MACHINE      EM_LOONGARCH
#define MACHINE_NAME "loongarch"
#else
#error "name the ELF machine of this processor here"
#endif

#define OWN_CLASS    (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)
#define OWN_ORDER    (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB)
#define SEGMENTS_MAX 1024u
#define BEGIN_BYTES  1024u /* usually includes the program headers */

typedef struct judged {
    const char *path;
    uint64_t bytes; /* file size */
    bool program;
    char *why;
    size_t why_bytes;
} judged;

static gpuhal_image bad(const judged *at, const char *why)
{
    snprintf(at->why, at->why_bytes, "%s", why);
    return GPUHAL_IMAGE_BAD;
}

static gpuhal_image cut_off(const judged *at)
{
    snprintf(at->why, at->why_bytes, "is cut off: its headers describe more than its %" PRIu64 " bytes", at->bytes);
    return GPUHAL_IMAGE_BAD;
}

static const char *not_at_all(const judged *at)
{
    return at->program ? "is not a program" : "is not a shared library";
}

static const char *machine_name(unsigned machine)
{
    static const struct {
        unsigned machine;
        const char *name;
    } names[] = {
        {EM_X86_64, "x86-64"}, {EM_AARCH64, "aarch64"}, {EM_386, "x86"},    {EM_ARM, "arm"},
        {EM_RISCV, "riscv"},   {EM_PPC64, "ppc64"},     {EM_S390, "s390x"}, {EM_LOONGARCH, "loongarch"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].machine == machine) {
            return names[i].name;
        }
    }
    return "an unknown machine";
}

static gpuhal_image foreign(const judged *at, const ElfW(Ehdr) * header)
{
    const char *bits = header->e_ident[EI_CLASS] == ELFCLASS32 ? "32-bit" : "64-bit";
    bool same_order = header->e_ident[EI_DATA] == OWN_ORDER;
    snprintf(at->why, at->why_bytes, "is built for %s, %s; this is %s, %zu-bit",
             same_order ? machine_name(header->e_machine) : "a machine of the other byte order", bits, MACHINE_NAME,
             8 * sizeof(void *));
    return GPUHAL_IMAGE_FOREIGN;
}

/* For another machine's file, the dynamic loader would only report that it does not exist. */
static gpuhal_image check_header(const judged *at, const ElfW(Ehdr) * header)
{
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
        return bad(at, not_at_all(at));
    }
    if (header->e_ident[EI_CLASS] != OWN_CLASS || header->e_ident[EI_DATA] != OWN_ORDER ||
        header->e_machine != MACHINE) {
        return foreign(at, header);
    }
    if (header->e_type != ET_DYN && !(at->program && header->e_type == ET_EXEC)) {
        return bad(at, at->program ? "is not a program" : "is an ELF file, but not a shared library");
    }
    if (header->e_phentsize != sizeof(ElfW(Phdr)) || header->e_phnum == 0 || header->e_phnum > SEGMENTS_MAX) {
        return bad(at, "is damaged: its program headers are invalid");
    }
    return GPUHAL_IMAGE_GOOD;
}

/* Cannot overflow. */
static bool lies_within(uint64_t offset, uint64_t size, uint64_t bytes)
{
    return offset <= bytes && size <= bytes - offset;
}

/* A segment that extends beyond the end of the file would raise SIGBUS on access, long after dlopen has succeeded. */
static gpuhal_image check_segments(const judged *at, const ElfW(Phdr) * segments, size_t count)
{
    uint64_t last_end = 0;
    size_t loads = 0;
    bool dynamic = false;
    for (size_t i = 0; i < count; i++) {
        const ElfW(Phdr) *segment = &segments[i];
        if (segment->p_type != PT_LOAD && segment->p_type != PT_DYNAMIC) {
            continue;
        }
        dynamic = dynamic || segment->p_type == PT_DYNAMIC;
        if (!lies_within(segment->p_offset, segment->p_filesz, at->bytes)) {
            return cut_off(at);
        }
        if (segment->p_type == PT_DYNAMIC) {
            continue;
        }
        /* The kernel and dynamic loaders rely on the order and the alignment of segments; not all check them. */
        bool aligned = segment->p_align <= 1 || (segment->p_vaddr - segment->p_offset) % segment->p_align == 0;
        if (segment->p_filesz > segment->p_memsz || segment->p_vaddr + segment->p_memsz < segment->p_vaddr ||
            !aligned || (loads > 0 && segment->p_vaddr < last_end)) {
            return bad(at, "is damaged: its segments are invalid");
        }
        last_end = segment->p_vaddr + segment->p_memsz;
        loads++;
    }
    if (loads == 0 || (!dynamic && !at->program)) {
        return bad(at, "is damaged: it has no segment to load");
    }
    return GPUHAL_IMAGE_GOOD;
}

gpuhal_image gpuhal_os_image_check(const char *path, uint64_t bytes, bool program, char *why, size_t why_bytes,
                                   int *out_error)
{
    const judged at = {.path = path, .bytes = bytes, .program = program, .why = why, .why_bytes = why_bytes};
    ElfW(Ehdr) header = {0};
    char begin[BEGIN_BYTES];
    size_t got = 0;
    *out_error = gpuhal_os_file_read_at(path, 0, begin, sizeof begin, &got);
    if (*out_error) {
        return GPUHAL_IMAGE_UNREADABLE;
    }
    memcpy(&header, begin, got < sizeof header ? got : sizeof header);
    if (got == 0) {
        return bad(&at, "is empty");
    }
    if (got < sizeof header) {
        return got < SELFMAG || memcmp(&header, ELFMAG, SELFMAG) != 0 ? bad(&at, not_at_all(&at)) : cut_off(&at);
    }
    gpuhal_image image = check_header(&at, &header);
    if (image) {
        return image;
    }
    /* Sections are not needed at run time, but are at the end of the file. If they are missing, the file was not copied
     * completely. */
    uint64_t sections = (uint64_t)header.e_shnum * header.e_shentsize;
    size_t table = (size_t)header.e_phnum * sizeof(ElfW(Phdr));
    if (!lies_within(header.e_phoff, table, bytes) ||
        (header.e_shoff && !lies_within(header.e_shoff, sections, bytes))) {
        return cut_off(&at);
    }
    ElfW(Phdr) *segments = malloc(table);
    *out_error = segments ? 0 : ENOMEM;
    if (segments && lies_within(header.e_phoff, table, got)) {
        memcpy(segments, begin + header.e_phoff, table);
        got = table;
    } else if (segments) {
        *out_error = gpuhal_os_file_read_at(path, header.e_phoff, segments, table, &got);
    }
    image = *out_error     ? GPUHAL_IMAGE_UNREADABLE
            : got != table ? cut_off(&at)
                           : check_segments(&at, segments, header.e_phnum);
    free(segments);
    return image;
}
