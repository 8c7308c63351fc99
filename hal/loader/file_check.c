/* loader/file_check.c: see file_check.h. Reads the ELF header and the program headers with checked arithmetic; every number in
 * them is somebody else's. */
#include "loader/file_check.h"

#include "core/text.h"
#include "os/os.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENTS_MAX 1024u
#define NAMED_MAX    256u /* bytes of a path that are named */
#define STEPS_MAX    1024u /* parts of a path, and of the links on it */

/* "Does not exist" is the one everybody meets: a sentence of its own. */
static bool refuse_unreadable(gpuhal_load_context *load, const char *path, int error)
{
    if (error == ENOENT) {
        return gpuhal_load_fail(load, GPUHAL_PLUGIN_REJECTED, GPUHAL_ERROR_NOT_FOUND, "%s does not exist", path);
    }
    if (error == ELOOP) {
        return gpuhal_load_fail(load, GPUHAL_PLUGIN_REJECTED, GPUHAL_ERROR_NOT_FOUND,
                                   "%s: the symbolic links run in a circle", path);
    }
    gpuhal_status status = error == EACCES || error == EPERM ? GPUHAL_ERROR_NO_PERMISSION : GPUHAL_ERROR_NOT_FOUND;
    /* The longest names must not push the reason out of the sentence. */
    bool cut = strlen(path) > NAMED_MAX;
    return gpuhal_load_fail(load, GPUHAL_PLUGIN_REJECTED, status, "%.*s%s cannot be read: %s", (int)NAMED_MAX, path,
                               cut ? "..." : "", strerror(error));
}

static bool refuse_permissions(gpuhal_load_context *load, const char *path, const char *why)
{
    return gpuhal_load_fail(load, GPUHAL_PLUGIN_REJECTED, GPUHAL_ERROR_NO_PERMISSION, "%s %s", path, why);
}

/* Root can do everything anyway, and so can the user with what is the user's. */
static bool is_trusted_owner(uint32_t owner)
{
    return owner == 0 || (owner == gpuhal_os_user() && !gpuhal_os_privileged());
}

/* Nobody else may put another file in its place. In a sticky directory, such as /tmp, only owners can rename or remove. */
static bool check_parents(gpuhal_load_context *load, const char *path, uint32_t owner)
{
    char *directory = gpuhal_text_copy(path);
    if (!directory) {
        return gpuhal_load_no_memory(load);
    }
    bool good = true;
    for (char *slash = strrchr(directory, '/'); good && slash; slash = strrchr(directory, '/')) {
        bool top = slash == directory;
        slash[top] = 0;
        gpuhal_file_info info;
        int error = gpuhal_os_file_info(directory, &info);
        if (error) {
            good = refuse_unreadable(load, directory, error);
        } else if (info.world_writable && !(info.sticky && is_trusted_owner(owner))) {
            good = gpuhal_load_fail(load, GPUHAL_PLUGIN_REJECTED, GPUHAL_ERROR_NO_PERMISSION,
                                       "%s lies below %s, which everybody may write to", path, directory);
        }
        owner = info.owner;
        if (top) {
            break;
        }
    }
    free(directory);
    return good;
}

/* Files of a third user are common on shared machines and in user namespaces: too strict would be a mistake as well. */
static bool check_permissions(gpuhal_load_context *load, const char *path, const gpuhal_file_info *info)
{
    if (!info->regular) {
        return gpuhal_load_fail(load, GPUHAL_PLUGIN_REJECTED, GPUHAL_ERROR_DRIVER, "%s is %s", path,
                                   info->directory ? "a directory" : "no regular file");
    }
    if (info->world_writable) {
        return refuse_permissions(load, path, "may be written to by everybody");
    }
    if (gpuhal_os_privileged() && (info->owner != 0 || info->group_writable)) {
        return refuse_permissions(load, path, "is not root's alone, which a process with more rights than its user demands");
    }
    if (!is_trusted_owner(info->owner)) {
        gpuhal_log_line(load->log, GPUHAL_LEVEL_WARNING, "%s belongs to user %" PRIu32 ", neither root nor this user", path,
                        info->owner);
    }
    return check_parents(load, path, info->owner);
}

/* A way along a path, through the links on it. */
typedef struct walk {
    gpuhal_load_context *load;
    const char *path; /* the whole, for sentences */
    uint32_t steps;   /* parts looked at so far: links that lead to links would multiply without a limit */
} walk;

static bool check_way(walk *at, const char *path);

/* The link at the end of `part`, whose own name begins at `name`. */
static bool check_target(walk *at, const char *part, size_t name, const char *target)
{
    char *path = target[0] == '/' ? gpuhal_text_copy(target) : gpuhal_text_format("%.*s%s", (int)name, part, target);
    bool good = path ? check_way(at, path) : gpuhal_load_no_memory(at->load);
    free(path);
    return good;
}

/* Whoever may put something there decides where the path leads: where everybody may write, only what belongs to a trusted user
 * counts, and only where others cannot rename it. */
static bool check_part(walk *at, char *part, size_t name)
{
    if (strcmp(part + name, ".") == 0 || strcmp(part + name, "..") == 0) {
        return true;
    }
    if (++at->steps > STEPS_MAX) {
        return refuse_unreadable(at->load, at->path, ELOOP);
    }
    uint32_t owner = 0;
    char *target = NULL;
    gpuhal_file_info directory;
    char first = part[name];
    part[name] = 0;
    int error = gpuhal_os_file_info(part, &directory);
    bool open = !error && directory.world_writable;
    part[name] = first;
    error = error ? error : gpuhal_os_link_info(part, &owner, &target);
    bool good = true;
    if (error) {
        good = error == ENOMEM ? gpuhal_load_no_memory(at->load) : refuse_unreadable(at->load, at->path, error);
    } else if (open && !(directory.sticky && is_trusted_owner(owner))) {
        good = gpuhal_load_fail(at->load, GPUHAL_PLUGIN_REJECTED, GPUHAL_ERROR_NO_PERMISSION,
                                   "%s leads through %.*s, which everybody may write to", at->path,
                                   (int)(name > 1 ? name - 1 : 1), part);
    } else if (target) {
        good = check_target(at, part, name, target);
    }
    free(target);
    return good;
}

/* Part by part, as the kernel goes. */
static bool check_way(walk *at, const char *path)
{
    char *part = gpuhal_text_copy(path);
    if (!part) {
        return gpuhal_load_no_memory(at->load);
    }
    bool good = true;
    for (size_t begin = 1; good && part[begin - 1]; begin++) {
        size_t end = begin + strcspn(part + begin, "/");
        char next = part[end];
        part[end] = 0;
        good = end == begin || check_part(at, part, begin);
        part[end] = next;
        begin = end;
    }
    free(part);
    return good;
}

/* The path is resolved and the rules are applied to what it leads to, and to the way there: symbolic links are allowed. */
bool gpuhal_file_check_trust(gpuhal_load_context *load, const char *path, gpuhal_checked_file *out_file)
{
    *out_file = (gpuhal_checked_file){0};
    int error = 0;
    char *real = gpuhal_os_real_path(path, &error);
    if (!real) {
        return refuse_unreadable(load, path, error);
    }
    walk at = {.load = load, .path = path};
    if (!check_way(&at, path)) {
        free(real);
        return false;
    }
    gpuhal_file_info info;
    error = gpuhal_os_file_info(real, &info);
    bool good = error ? refuse_unreadable(load, real, error) : check_permissions(load, real, &info);
    if (!good) {
        free(real);
        return false;
    }
    *out_file = (gpuhal_checked_file){.path = real, .device = info.device, .inode = info.inode, .bytes = info.bytes};
    return true;
}

static bool refuse_elf(gpuhal_load_context *load, const char *path, const char *why)
{
    return gpuhal_load_fail(load, GPUHAL_PLUGIN_REJECTED, GPUHAL_ERROR_DRIVER, "%s %s", path, why);
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

/* The first bytes: for another machine the dynamic loader would only say that the file does not exist. */
static bool check_header(gpuhal_load_context *load, const char *path, const ElfW(Ehdr) * header, bool program)
{
    const gpuhal_machine machine = gpuhal_os_machine();
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
        return refuse_elf(load, path, program ? "is no program" : "is no shared library");
    }
    if (header->e_ident[EI_CLASS] != machine.elf_class || header->e_ident[EI_DATA] != machine.elf_data ||
        header->e_machine != machine.elf_machine) {
        const char *bits = header->e_ident[EI_CLASS] == ELFCLASS32 ? "32-bit" : "64-bit";
        bool same_order = header->e_ident[EI_DATA] == machine.elf_data;
        return gpuhal_load_fail(load, GPUHAL_PLUGIN_INCOMPATIBLE, GPUHAL_ERROR_INCOMPATIBLE,
                                   "%s is built for %s, %s; this is %s, %zu-bit", path,
                                   same_order ? machine_name(header->e_machine) : "a machine of the other byte order", bits,
                                   machine.name, 8 * sizeof(void *));
    }
    if (header->e_type != ET_DYN && !(program && header->e_type == ET_EXEC)) {
        return refuse_elf(load, path, program ? "is no program" : "is an ELF file, but no shared library");
    }
    if (header->e_phentsize != sizeof(ElfW(Phdr)) || header->e_phnum == 0 || header->e_phnum > SEGMENTS_MAX) {
        return refuse_elf(load, path, "is damaged: its program headers make no sense");
    }
    return true;
}

/* Without overflow, whatever the two numbers are. */
static bool lies_within(uint64_t offset, uint64_t size, uint64_t bytes)
{
    return offset <= bytes && size <= bytes - offset;
}

static bool refuse_cut_off(gpuhal_load_context *load, const gpuhal_checked_file *file)
{
    return gpuhal_load_fail(load, GPUHAL_PLUGIN_REJECTED, GPUHAL_ERROR_DRIVER,
                               "%s is cut off: its headers speak of more than its %" PRIu64 " bytes", file->path, file->bytes);
}

/* A mapping that reaches behind the end of the file kills whoever touches it (SIGBUS), long after dlopen has succeeded. */
static bool check_segments(gpuhal_load_context *load, const gpuhal_checked_file *file, const ElfW(Phdr) * segments, size_t count,
                           bool program)
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
        if (!lies_within(segment->p_offset, segment->p_filesz, file->bytes)) {
            return refuse_cut_off(load, file);
        }
        if (segment->p_type == PT_DYNAMIC) {
            continue;
        }
        /* The order and the alignment are what the kernel and the dynamic loader rely on without looking. */
        bool aligned = segment->p_align <= 1 || (segment->p_vaddr - segment->p_offset) % segment->p_align == 0;
        if (segment->p_filesz > segment->p_memsz || segment->p_vaddr + segment->p_memsz < segment->p_vaddr || !aligned ||
            (loads > 0 && segment->p_vaddr < last_end)) {
            return refuse_elf(load, file->path, "is damaged: its segments make no sense");
        }
        last_end = segment->p_vaddr + segment->p_memsz;
        loads++;
    }
    if (loads == 0 || (!dynamic && !program)) {
        return refuse_elf(load, file->path, "is damaged: it has nothing to load");
    }
    return true;
}

bool gpuhal_file_check_elf(gpuhal_load_context *load, const gpuhal_checked_file *file, bool program)
{
    ElfW(Ehdr) header;
    size_t got = 0;
    int error = gpuhal_os_file_read_at(file->path, 0, &header, sizeof header, &got);
    if (error) {
        return refuse_unreadable(load, file->path, error);
    }
    if (got == 0) {
        return refuse_elf(load, file->path, "is empty");
    }
    if (got < sizeof header) {
        return got < SELFMAG || memcmp(&header, ELFMAG, SELFMAG) != 0
                   ? refuse_elf(load, file->path, program ? "is no program" : "is no shared library")
                   : refuse_cut_off(load, file);
    }
    if (!check_header(load, file->path, &header, program)) {
        return false;
    }
    /* Sections are not needed to run, but stand at the end: where they are missing, the copying has stopped half-way. */
    uint64_t sections = (uint64_t)header.e_shnum * header.e_shentsize;
    size_t bytes = (size_t)header.e_phnum * sizeof(ElfW(Phdr));
    if (!lies_within(header.e_phoff, bytes, file->bytes) ||
        (header.e_shoff && !lies_within(header.e_shoff, sections, file->bytes))) {
        return refuse_cut_off(load, file);
    }
    ElfW(Phdr) *segments = malloc(bytes);
    if (!segments) {
        return gpuhal_load_no_memory(load);
    }
    error = gpuhal_os_file_read_at(file->path, header.e_phoff, segments, bytes, &got);
    bool good = error          ? refuse_unreadable(load, file->path, error)
                : got != bytes ? refuse_cut_off(load, file)
                               : check_segments(load, file, segments, header.e_phnum, program);
    free(segments);
    return good;
}

bool gpuhal_file_check(gpuhal_load_context *load, const char *path, bool program, gpuhal_checked_file *out_file)
{
    if (!gpuhal_file_check_trust(load, path, out_file)) {
        return false;
    }
    if (!gpuhal_file_check_elf(load, out_file, program)) {
        gpuhal_checked_file_finish(out_file);
        return false;
    }
    return true;
}

void gpuhal_checked_file_finish(gpuhal_checked_file *file)
{
    free(file->path);
    *file = (gpuhal_checked_file){0};
}
