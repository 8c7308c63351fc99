/* tests/unit/corpus_files.h: the makers of corpus.inc. Each writes the files of one bad plugin into a folder.
 *
 * make_<maker>(folder, name) writes name.gpuhal and the files that the manifest names. The maker returns false if the
 * machine does not support such files. For example, root can read every file (loader_files_test.c reads as another
 * user), and some file systems do not support sparse files. If several plugins use one maker, the name selects the
 * plugin. */
#ifndef CORPUS_FILES_H
#define CORPUS_FILES_H

#include "loader_support.h"

#include <elf.h>
#include <link.h>
#include <pthread.h>

#define TEBIBYTE ((off_t)1 << 40)

/* Returns "<folder>/<name><suffix>" in one of the thread's four rotating buffers. */
static const char *place(const char *in, const char *name, const char *suffix)
{
    static _Thread_local char paths[4][512];
    static _Thread_local unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s%s", in, name, suffix);
    return path;
}

static void write_text(const char *path, const char *text)
{
    write_file(path, text, strlen(text));
}

static void write_good_manifest(const char *in, const char *name, const char *library)
{
    char text[1024];
    snprintf(text, sizeof text, "[plugin]\nname = %s\nlibrary = %s\nabi = 0.4\n", name, library);
    write_text(place(in, name, ".gpuhal"), text);
}

/* Writes name.gpuhal for the library name.so. Returns the library's path. */
static const char *with_manifest(const char *in, const char *name)
{
    char library[64];
    snprintf(library, sizeof library, "%s.so", name);
    write_good_manifest(in, name, library);
    return place(in, name, ".so");
}

/* ---- files that are not libraries */

static bool make_nothing(const char *in, const char *name)
{
    with_manifest(in, name);
    return true;
}

static bool make_empty(const char *in, const char *name)
{
    write_text(with_manifest(in, name), "");
    return true;
}

static bool make_directory(const char *in, const char *name)
{
    return mkdir(with_manifest(in, name), 0755) == 0;
}

/* If the library opened a FIFO, it would block until another process opens the FIFO for writing. */
static bool make_fifo(const char *in, const char *name)
{
    return mkfifo(with_manifest(in, name), 0644) == 0;
}

static bool make_device_file(const char *in, const char *name)
{
    return symlink(strcmp(name, "endless_device") == 0 ? "/dev/zero" : "/dev/null", with_manifest(in, name)) == 0;
}

static bool make_dangling_link(const char *in, const char *name)
{
    return symlink("nowhere.so", with_manifest(in, name)) == 0;
}

static bool make_circle_of_links(const char *in, const char *name)
{
    char other[64], own[64];
    snprintf(own, sizeof own, "%s.so", name);
    snprintf(other, sizeof other, "%s.other", name);
    return strcmp(name, "link_to_itself") == 0
               ? symlink(own, with_manifest(in, name)) == 0
               : symlink(other, with_manifest(in, name)) == 0 && symlink(own, place(in, name, ".other")) == 0;
}

static bool make_unreadable(const char *in, const char *name)
{
    const char *path = with_manifest(in, name);
    copy_file(test_plugin("good"), path);
    return chmod(path, 0) == 0 && access(path, R_OK) != 0;
}

static bool make_open_to_all(const char *in, const char *name)
{
    const char *path = with_manifest(in, name);
    copy_file(test_plugin("good"), path);
    return chmod(path, 0666) == 0;
}

static bool make_below_open_folder(const char *in, const char *name)
{
    write_good_manifest(in, name, "open/below.so");
    if (mkdir(place(in, "open", ""), 0755)) {
        return false;
    }
    copy_file(test_plugin("good"), place(in, "open/below", ".so"));
    return chmod(place(in, "open", ""), 0777) == 0;
}

static bool make_text(const char *in, const char *name)
{
    static const struct {
        const char *name, *begin;
    } all[] = {
        {"text", "just a text"},
        {"linker_script", "/* GNU ld script */\nINPUT(-lm)\n"},
        {"windows_library", "MZ\x90"},
        {"apple_library", "\xcf\xfa\xed\xfe\x07"},
    };
    char bytes[4096];
    memset(bytes, '\n', sizeof bytes);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(all[i].name, name) == 0) {
            memcpy(bytes, all[i].begin, strlen(all[i].begin));
            write_file(with_manifest(in, name), bytes, sizeof bytes);
            return true;
        }
    }
    return false;
}

/* A read of the whole file would exceed every deadline. */
static bool make_sparse_terabyte(const char *in, const char *name)
{
    const char *path = with_manifest(in, name);
    write_text(path, "");
    return truncate(path, TEBIBYTE) == 0;
}

/* ---- damaged libraries */

/* The name cut_100 means the first 100 bytes of a plugin. */
static bool make_cut(const char *in, const char *name)
{
    size_t bytes;
    char *text = read_file(test_plugin("good"), &bytes);
    size_t length = strcmp(name, "cut_last_byte") == 0 ? bytes - 1 : strtoul(name + strlen("cut_"), NULL, 10);
    write_file(with_manifest(in, name), text, length < bytes ? length : bytes - 1);
    free(text);
    return true;
}

#define CHANGE(name, member, number) {name, offsetof(ElfW(Ehdr), member), sizeof(((ElfW(Ehdr) *)0)->member), number}

static bool make_header(const char *in, const char *name)
{
    static const struct {
        const char *name;
        size_t at, bytes;
        uint64_t number;
    } changes[] = {
        {"other_class", EI_CLASS, 1, sizeof(void *) == 8 ? ELFCLASS32 : ELFCLASS64},
        {"other_byte_order", EI_DATA, 1, __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2MSB : ELFDATA2LSB},
        CHANGE("other_machine", e_machine, EM_ALPHA),
        CHANGE("program", e_type, ET_EXEC),
        CHANGE("object_file", e_type, ET_REL),
        CHANGE("core_dump", e_type, ET_CORE),
        CHANGE("segments_far_away", e_phoff, UINT64_MAX - 7),
        CHANGE("sections_far_away", e_shoff, UINT64_MAX - 7),
        CHANGE("no_segments", e_phnum, 0),
        CHANGE("most_segments", e_phnum, PN_XNUM),
        CHANGE("odd_segments", e_phentsize, 7),
    };
    size_t bytes;
    char *text = read_file(test_plugin("good"), &bytes);
    bool known = false;
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        if (strcmp(changes[i].name, name) == 0) {
            const uint16_t half = (uint16_t)changes[i].number;
            const uint8_t byte = (uint8_t)changes[i].number;
            const ElfW(Off) whole = (ElfW(Off))changes[i].number;
            const void *number = changes[i].bytes == 1   ? (const void *)&byte
                                 : changes[i].bytes == 2 ? (const void *)&half
                                                         : &whole;
            memcpy(text + changes[i].at, number, changes[i].bytes);
            known = true;
        }
    }
    write_file(with_manifest(in, name), text, bytes);
    free(text);
    return known;
}

static bool make_segment(const char *in, const char *name)
{
    size_t bytes;
    char *text = read_file(test_plugin("good"), &bytes);
    ElfW(Ehdr) header;
    ElfW(Phdr) segment = {0};
    memcpy(&header, text, sizeof header);
    size_t at = header.e_phoff - sizeof segment;
    do {
        at += sizeof segment;
        memcpy(&segment, text + at, sizeof segment);
    } while (segment.p_type != PT_LOAD);
    if (strcmp(name, "segment_huge_in_file") == 0) {
        segment.p_filesz = (ElfW(Off))UINT64_MAX;
    } else {
        segment.p_memsz = strcmp(name, "segment_shrinks") == 0 ? 0 : (ElfW(Off))UINT64_MAX;
    }
    memcpy(text + at, &segment, sizeof segment);
    write_file(with_manifest(in, name), text, bytes);
    free(text);
    return true;
}

/* ---- libraries that are not plugins, and plugins that need files of their own */

static bool make_itself(const char *in, const char *name)
{
    copy_file("/proc/self/exe", with_manifest(in, name));
    return true;
}

static bool make_library_of_the_system(const char *in, const char *name)
{
    Dl_info info;
    char path[512];
    if (!dladdr((const void *)(uintptr_t)getpid, &info) || !realpath(info.dli_fname, path)) {
        return false;
    }
    write_good_manifest(in, name, path);
    return true;
}

/* The name of the required library contains escapes that clear a terminal which prints the reason. */
static bool make_missing_escapes(const char *in, const char *name)
{
    static const char needed[] = "libgpuhal-test-absent.so", escapes[] = "\033[2J\033]0;owned\a.so";
    size_t bytes;
    char *text = read_file(test_plugin("missing_library"), &bytes);
    char *at = memmem(text, bytes, needed, sizeof needed);
    if (at) {
        memcpy(at, escapes, sizeof escapes);
        write_file(with_manifest(in, name), text, bytes);
    }
    free(text);
    return at != NULL;
}

static bool make_copy(const char *in, const char *name)
{
    copy_file(test_plugin(name), with_manifest(in, name));
    return true;
}

/* The library is valid, since data after the last section is ignored. The loader must not read all of that data. */
static bool make_copy_with_long_tail(const char *in, const char *name)
{
    make_copy(in, name);
    return truncate(place(in, name, ".so"), TEBIBYTE) == 0;
}

/* ---- manifests */

#define BYTES(text) text, sizeof(text) - 1

static char long_path[6000] = "[plugin]\nname = manifest_long_path\nabi = 0.4\nlibrary = /", huge[10 << 20],
            long_line[60000];

static void fill_long_texts(void)
{
    memset(long_path + strlen(long_path), 'x', sizeof long_path - strlen(long_path) - 1);
    memset(huge, '#', sizeof huge);
    memset(long_line, 'x', sizeof long_line);
}

static bool make_manifest(const char *in, const char *name)
{
    static pthread_once_t filled = PTHREAD_ONCE_INIT;
    pthread_once(&filled, fill_long_texts);
    const struct {
        const char *name, *text;
        size_t bytes;
    } all[] = {
        {"manifest_empty", BYTES("")},
        {"manifest_of_10_mb", huge, sizeof huge},
        {"manifest_one_line", long_line, sizeof long_line},
        {"manifest_long_path", long_path, strlen(long_path)},
        {"manifest_with_nul", BYTES("[plugin]\nname = manifest_with_nul\0\nlibrary = a.so\nabi = 0.4\n")},
        {"manifest_of_windows", BYTES("[plugin]\r\nname = manifest_of_windows\r\nlibrary = a.so\r\nabi = 0.4\r\n")},
        {"manifest_with_mark", BYTES("\xef\xbb\xbf[plugin]\nname = manifest_with_mark\nlibrary = a.so\nabi = 0.4\n")},
        {"manifest_of_utf16", BYTES("\xff\xfe[\0p\0l\0u\0g\0i\0n\0]\0\n\0")},
        {"manifest_binary", BYTES("\x7f"
                                  "ELF\x02\x01\x01\0\0\0\0\n\xde\xad\xbe\xef\n")},
        {"manifest_half", BYTES("[plugin]\nname = manifest_half\n")},
        {"manifest_json", BYTES("{\"plugin\": {\"name\": \"manifest_json\"}}\n")},
        {"manifest_with_slash", BYTES("[plugin]\nname = ../manifest_with_slash\nlibrary = a.so\nabi = 0.4\n")},
        {"manifest_with_escapes", BYTES("[plugin]\nname = \033[2Jmanifest\nlibrary = a.so\nabi = 0.4\n")},
        {"manifest_of_other_abi", BYTES("[plugin]\nname = manifest_of_other_abi\nlibrary = a.so\nabi = 0.5\n")},
        {"manifest_for_windows",
         BYTES("[plugin]\nname = manifest_for_windows\nlibrary = a.so\nabi = 0.4\nplatforms = windows\n")},
        {"manifest_is_library",
         BYTES("[plugin]\nname = manifest_is_library\nlibrary = manifest_is_library.gpuhal\nabi = 0.4\n")},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(all[i].name, name) == 0) {
            write_file(place(in, name, ".gpuhal"), all[i].text, all[i].bytes);
            return true;
        }
    }
    return false;
}

static bool make_manifest_directory(const char *in, const char *name)
{
    return mkdir(place(in, name, ".gpuhal"), 0755) == 0;
}

static bool make_manifest_fifo(const char *in, const char *name)
{
    return mkfifo(place(in, name, ".gpuhal"), 0644) == 0;
}

static bool make_manifest_dangling(const char *in, const char *name)
{
    return symlink("nowhere", place(in, name, ".gpuhal")) == 0;
}

static bool make_manifest_circle(const char *in, const char *name)
{
    char own[64];
    snprintf(own, sizeof own, "%s.gpuhal", name);
    return symlink(own, place(in, name, ".gpuhal")) == 0;
}

static bool make_manifest_open_to_all(const char *in, const char *name)
{
    write_good_manifest(in, name, test_plugin("good"));
    return chmod(place(in, name, ".gpuhal"), 0666) == 0;
}

static bool make_no_manifest(const char *in, const char *name)
{
    char library[64];
    snprintf(library, sizeof library, "gpuhal-%s", name);
    copy_file(test_plugin("good"), place(in, library, ".so"));
    return true;
}

#endif
