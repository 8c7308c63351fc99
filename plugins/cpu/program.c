/* cpu/program.c: code for the CPU: a table of the caller's functions, or a shared library.
 *
 * The dynamic loader does not check whether a file is complete, and accessing the missing part of a truncated file
 * kills the process. So headers and segments are first checked against the file size. Code that is passed as bytes is
 * written to a sealed anonymous file that no process can change.
 *
 * The dynamic loader identifies a loaded library by the name that it was opened with. Some libraries are never
 * unloaded, because they have thread-local destructors or request it. Since descriptors are reused, each anonymous file
 * gets a unique name.
 */
#include "device.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL /* since Linux 6.3, which may require it; prevents the file from being executed */
#define MFD_NOEXEC_SEAL 8u
#endif
#define SEALS        (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)
#define SEGMENTS_MAX 1024u
#define NAME_BYTES   256u
#define FILE_NAMES   "/proc/self/fd/"

static gpuhal_status refuse(const gpuhal_host *host, gpuhal_status status, const char *text)
{
    return host->report(host, status, NULL, 0, text);
}

/* The name in messages for a library that was passed as bytes. The checks name other libraries by their paths; the
 * loader's own messages contain the path. */
#define BYTES "the library of the program"

static gpuhal_status failed(const gpuhal_host *host, gpuhal_status status, const char *call, int error,
                            const char *library)
{
    char text[512];
    snprintf(text, sizeof text, "%.300s cannot be read: %s", library, strerror(error));
    return host->report(host, status, call, error, text);
}

static gpuhal_status refuse_library(const gpuhal_host *host, const char *library, const char *what)
{
    char text[512];
    snprintf(text, sizeof text, "%.300s %s", library, what);
    return refuse(host, GPUHAL_ERROR_INVALID_ARGUMENT, text);
}

/* ---- checks of the file, before it is loaded */

static bool read_at(int file, uint64_t offset, void *to, size_t bytes)
{
    size_t used = 0;
    while (used < bytes) {
        const ssize_t got = pread(file, (char *)to + used, bytes - used, (off_t)(offset + used));
        if (got <= 0) {
            return false;
        }
        used += (size_t)got;
    }
    return true;
}

/* Cannot overflow for any arguments. */
static bool lies_within(uint64_t offset, uint64_t size, uint64_t bytes)
{
    return offset <= bytes && size <= bytes - offset;
}

/* Compares the library's machine type with this plugin's, because all libraries of a process have the same type. */
static gpuhal_status check_machine(const gpuhal_host *host, const char *library, const ElfW(Ehdr) * header)
{
    static const uint8_t own_class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    static const uint8_t own_order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
    static const int anchor;
    Dl_info info;
    const ElfW(Ehdr) *own = dladdr(&anchor, &info) != 0 ? info.dli_fbase : NULL;
    const bool known = own != NULL && memcmp(own->e_ident, ELFMAG, SELFMAG) == 0;
    if (header->e_ident[EI_CLASS] != own_class || header->e_ident[EI_DATA] != own_order ||
        (known && header->e_machine != own->e_machine)) {
        char text[512];
        snprintf(text, sizeof text,
                 "%.300s is built for another machine: ELF machine %u of class %u; this process has %u of class %u",
                 library, header->e_machine, header->e_ident[EI_CLASS], known ? own->e_machine : 0u, own_class);
        return refuse(host, GPUHAL_ERROR_INCOMPATIBLE, text);
    }
    return GPUHAL_OK;
}

static gpuhal_status check_segments(const gpuhal_host *host, const char *library, const ElfW(Phdr) * segments,
                                    size_t count, uint64_t bytes)
{
    uint64_t last_end = 0;
    size_t loads = 0;
    bool dynamic = false;
    for (size_t i = 0; i < count; i++) {
        const ElfW(Phdr) *segment = &segments[i];
        if (segment->p_type != PT_LOAD && segment->p_type != PT_DYNAMIC) {
            continue;
        }
        if (!lies_within(segment->p_offset, segment->p_filesz, bytes)) {
            return refuse_library(host, library, "is cut off");
        }
        dynamic = dynamic || segment->p_type == PT_DYNAMIC;
        if (segment->p_type == PT_DYNAMIC) {
            continue;
        }
        /* The kernel and the dynamic loader rely on order and alignment without checking them. */
        const bool aligned = segment->p_align <= 1 || (segment->p_vaddr - segment->p_offset) % segment->p_align == 0;
        if (segment->p_filesz > segment->p_memsz || segment->p_vaddr + segment->p_memsz < segment->p_vaddr ||
            !aligned || (loads > 0 && segment->p_vaddr < last_end)) {
            return refuse_library(host, library, "is damaged: its segments are invalid");
        }
        last_end = segment->p_vaddr + segment->p_memsz;
        loads++;
    }
    return loads > 0 && dynamic ? GPUHAL_OK : refuse_library(host, library, "is damaged: it has no segment to load");
}

static gpuhal_status check_file(const gpuhal_host *host, const char *library, int file, uint64_t bytes)
{
    ElfW(Ehdr) header;
    if (bytes < SELFMAG || !read_at(file, 0, &header, SELFMAG) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
        return refuse_library(host, library,
                              strcmp(library, BYTES) == 0
                                  ? "is not an ELF file, as shared libraries are; if code is a path, bytes must be 0"
                                  : "is not an ELF file, as shared libraries are");
    }
    if (!read_at(file, 0, &header, sizeof header)) {
        return refuse_library(host, library, "is cut off");
    }
    gpuhal_status status = check_machine(host, library, &header);
    if (status != GPUHAL_OK) {
        return status;
    }
    if (header.e_type != ET_DYN) {
        return refuse_library(host, library, "is an ELF file, but not a shared library (link it with -shared)");
    }
    if (header.e_phentsize != sizeof(ElfW(Phdr)) || header.e_phnum == 0 || header.e_phnum > SEGMENTS_MAX) {
        return refuse_library(host, library, "is damaged: its program headers are invalid");
    }
    /* Sections are not needed at run time, but they are at the end of the file. If they are missing, the file was
     * copied incompletely. */
    const size_t table = (size_t)header.e_phnum * sizeof(ElfW(Phdr));
    if (!lies_within(header.e_phoff, table, bytes) ||
        (header.e_shoff != 0 && !lies_within(header.e_shoff, (uint64_t)header.e_shnum * header.e_shentsize, bytes))) {
        return refuse_library(host, library, "is cut off");
    }
    ElfW(Phdr) *segments = malloc(table);
    if (!segments) {
        return host->report(host, GPUHAL_ERROR_HOST_MEMORY, "malloc", 0, NULL);
    }
    status = read_at(file, header.e_phoff, segments, table)
                 ? check_segments(host, library, segments, header.e_phnum, bytes)
                 : refuse_library(host, library, "cannot be read");
    free(segments);
    return status;
}

/* ---- loading */

static gpuhal_status make_file(const gpuhal_host *host, const void *code, uint64_t bytes, int *out_file)
{
    struct rlimit limit; /* file size limit: a process that writes beyond the limit is killed (SIGXFSZ) */
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur) {
        return failed(host, GPUHAL_ERROR_HOST_MEMORY, "memfd_create", EFBIG, BYTES);
    }
    int file = memfd_create("gpuhal-program", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
    if (file < 0 && errno == EINVAL) {
        file = memfd_create("gpuhal-program", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    }
    if (file < 0) {
        return failed(host, GPUHAL_ERROR_HOST_MEMORY, "memfd_create", errno, BYTES);
    }
    for (uint64_t used = 0; used < bytes;) {
        const ssize_t put = pwrite(file, (const char *)code + used, (size_t)(bytes - used), (off_t)used);
        if (put <= 0) {
            const int error = put < 0 ? errno : ENOSPC;
            close(file);
            return failed(host, GPUHAL_ERROR_HOST_MEMORY, "pwrite", error, BYTES);
        }
        used += (uint64_t)put;
    }
    if (fcntl(file, F_ADD_SEALS, SEALS) != 0) {
        const int error = errno;
        close(file);
        return failed(host, GPUHAL_ERROR_HOST_MEMORY, "fcntl", error, BYTES);
    }
    *out_file = file;
    return GPUHAL_OK;
}

/* Encodes a unique number in the name: each bit is a slash with or without a dot before it. Another copy of this plugin
 * starts at a different number. */
static void name_file(int file, char name[NAME_BYTES])
{
    static _Atomic uint64_t loads;
    size_t used = (size_t)snprintf(name, NAME_BYTES, FILE_NAMES);
    for (uint64_t left = (uintptr_t)&loads + atomic_fetch_add(&loads, 1); left > 0; left >>= 1) {
        used += (size_t)snprintf(name + used, NAME_BYTES - used, "%s", (left & 1) != 0 ? "./" : "/");
    }
    snprintf(name + used, NAME_BYTES - used, "%d", file);
}

static gpuhal_status open_library(const gpuhal_host *host, const char *name, gpuhal_plugin_build *build,
                                  void **out_library)
{
    *out_library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (*out_library) {
        return GPUHAL_OK;
    }
    const char *why = dlerror();
    why = why != NULL ? why : "the dynamic loader gives no reason";
    if (build != NULL && build->log != NULL) {
        build->log(build->user, why);
    }
    /* The loader's messages begin with the name, which is meaningless for an anonymous file. */
    const size_t length = strlen(name);
    const bool is_bytes = strncmp(name, FILE_NAMES, sizeof FILE_NAMES - 1) == 0;
    why += is_bytes && strncmp(why, name, length) == 0 && strncmp(why + length, ": ", 2) == 0 ? length + 2 : 0;
    char text[512];
    snprintf(text, sizeof text, "%s does not load: %s", BYTES, why);
    return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, "dlopen", 0, text);
}

static gpuhal_status load_bytes(const gpuhal_host *host, const gpuhal_code *code, gpuhal_plugin_build *build,
                                void **out_library)
{
    char name[NAME_BYTES];
    int file = -1;
    gpuhal_status status = make_file(host, code->code, code->bytes, &file);
    if (status != GPUHAL_OK) {
        return status;
    }
    status = check_file(host, BYTES, file, code->bytes);
    if (status == GPUHAL_OK) {
        name_file(file, name);
        status = open_library(host, name, build, out_library);
    }
    close(file);
    return status;
}

/* A name without a slash is a file in the current directory; the dynamic loader's search path is not used. */
static gpuhal_status load_path(const gpuhal_host *host, const char *path, gpuhal_plugin_build *build,
                               void **out_library)
{
    struct stat about;
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0 || fstat(file, &about) != 0) {
        const int error = errno;
        if (file >= 0) {
            close(file);
        }
        return failed(host, GPUHAL_ERROR_INVALID_ARGUMENT, file < 0 ? "open" : "fstat", error, path);
    }
    gpuhal_status status = S_ISREG(about.st_mode) ? check_file(host, path, file, (uint64_t)about.st_size)
                                                  : refuse_library(host, path, "is not a regular file");
    close(file);
    if (status != GPUHAL_OK || strchr(path, '/') != NULL) {
        return status != GPUHAL_OK ? status : open_library(host, path, build, out_library);
    }
    const size_t bytes = strlen(path) + sizeof "./";
    char *here = malloc(bytes);
    if (!here) {
        return host->report(host, GPUHAL_ERROR_HOST_MEMORY, "malloc", 0, NULL);
    }
    snprintf(here, bytes, "./%s", path);
    status = open_library(host, here, build, out_library);
    free(here);
    return status;
}

/* If the code has a size, the NULL name must lie within it. */
static gpuhal_status check_functions(const gpuhal_host *host, const gpuhal_code *code)
{
    const gpuhal_host_function *functions = code->code;
    const uint64_t count = code->bytes > 0 ? code->bytes / sizeof *functions : UINT64_MAX;
    for (uint64_t i = 0; i < count; i++) {
        if (!functions[i].name) {
            return GPUHAL_OK;
        }
        if (!functions[i].run) {
            char text[256];
            snprintf(text, sizeof text, "the program's function %.100s is NULL", functions[i].name);
            return refuse(host, GPUHAL_ERROR_INVALID_ARGUMENT, text);
        }
    }
    return refuse(host, GPUHAL_ERROR_INVALID_ARGUMENT,
                  "the program's array of functions does not end with a NULL name within its bytes");
}

static gpuhal_status check_target(const gpuhal_host *host, const gpuhal_code *code)
{
    struct utsname machine;
    if (code->target == NULL || uname(&machine) != 0 || strcmp(code->target, machine.machine) == 0) {
        return GPUHAL_OK;
    }
    char text[256];
    snprintf(text, sizeof text, "the code is for %.64s, and the device is %.64s", code->target, machine.machine);
    return refuse(host, GPUHAL_ERROR_INCOMPATIBLE, text);
}

gpuhal_status gpuhal_cpu_program_load(gpuhal_plugin_device *device, const gpuhal_code *code, gpuhal_plugin_build *build,
                                      gpuhal_plugin_program **out_program)
{
    const gpuhal_host *host = device->host;
    const bool is_table = strcmp(code->format, "host-function") == 0;
    if (!is_table && strcmp(code->format, "host-library") != 0) {
        return refuse(host, GPUHAL_ERROR_NOT_SUPPORTED, "a processor takes the formats " GPUHAL_CPU_FORMATS " only");
    }
    if (!code->code) {
        return refuse(host, GPUHAL_ERROR_INVALID_ARGUMENT, "code is NULL");
    }
    gpuhal_status status = check_target(host, code);
    status = status == GPUHAL_OK && is_table ? check_functions(host, code) : status;
    if (status != GPUHAL_OK) {
        return status;
    }
    gpuhal_plugin_program *program = malloc(sizeof *program);
    if (!program) {
        return host->report(host, GPUHAL_ERROR_HOST_MEMORY, "malloc", 0, NULL);
    }
    *program = (gpuhal_plugin_program){.device = device, .functions = is_table ? code->code : NULL};
    if (!is_table) {
        status = code->bytes > 0 ? load_bytes(host, code, build, &program->library)
                                 : load_path(host, code->code, build, &program->library);
    }
    if (status != GPUHAL_OK) {
        free(program);
        return status;
    }
    *out_program = program;
    return GPUHAL_OK;
}

void gpuhal_cpu_program_unload(gpuhal_plugin_program *program)
{
    if (program->library) {
        dlclose(program->library);
    }
    free(program);
}

/* ---- functions */

/* An address, and the library whose code should contain it. */
typedef struct place {
    uintptr_t address;
    ElfW(Addr) base;
} place;

static int is_code_of(struct dl_phdr_info *info, size_t size, void *user)
{
    const place *own = user;
    (void)size;
    for (size_t i = 0; info->dlpi_addr == own->base && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0 &&
            own->address - own->base - segment->p_vaddr < segment->p_memsz) {
            return 1;
        }
    }
    return 0;
}

/* Excludes data, and symbols of the library's dependencies, which dlsym() also finds. */
static gpuhal_host_kernel_fn *find_in_library(void *library, const char *name)
{
    const struct link_map *map = NULL;
    gpuhal_host_kernel_fn *run = NULL;
    void *found = dlsym(library, name);
    if (found == NULL || dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) {
        return NULL;
    }
    place own = {.address = (uintptr_t)found, .base = map->l_addr};
    if (dl_iterate_phdr(is_code_of, &own) != 0) {
        memcpy(&run, &found, sizeof run);
    }
    return run;
}

gpuhal_host_kernel_fn *gpuhal_cpu_find_function(const gpuhal_plugin_program *program, const char *name)
{
    if (program->library) {
        return find_in_library(program->library, name);
    }
    for (const gpuhal_host_function *at = program->functions; at->name != NULL; at++) {
        if (strcmp(at->name, name) == 0) {
            return at->run;
        }
    }
    return NULL;
}
