/* Files that must not be loaded: refused before a byte of them runs, in words, and the good plugin beside them is listed. */
#include "loader_support.h"

#include "loader/attempt.h"
#include "loader/file_check.h"

#include <elf.h>
#include <link.h>

static void add_good(void)
{
    write_manifest("good.gpuhal", "good", test_plugin("good"), "");
}

/* Runs the loader over the own folder and returns the verdict on `name` beside the good plugin. */
static void expect(const char *name, gpuhal_plugin_state state, const char *words)
{
    add_good();
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates = run_loader(&settings);
    assert_verdict(&candidates, find_candidate(&candidates, name), state, GPUHAL_STAGE_FILE, words);
    assert_listed(&candidates, "good");
    gpuhal_candidates_finish(&candidates);
}

TEST(a_plugin_cut_off_at_any_length_is_refused_before_it_is_loaded)
{
    new_folder();
    size_t bytes;
    char *text = read_file(test_plugin("good"), &bytes);
    const size_t lengths[] = {0, 1, 3, 4, 17, 63, 64, 100, 1000, 4096, bytes / 2, bytes - 64, bytes - 1};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char name[32], file[64];
        snprintf(name, sizeof name, "cut%zu", i);
        snprintf(file, sizeof file, "%s.gpuhal", name);
        write_file(in_folder(name), text, lengths[i]);
        write_manifest(file, name, name, "");
    }
    add_good();
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates = run_loader(&settings);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        char name[32];
        snprintf(name, sizeof name, "cut%zu", i);
        const char *words = lengths[i] == 0 ? "is empty" : lengths[i] < 4 ? "is no shared library" : "is cut off";
        assert_verdict(&candidates, find_candidate(&candidates, name), GPUHAL_PLUGIN_REJECTED, GPUHAL_STAGE_FILE, words);
        assert_false(find_candidate(&candidates, name)->isolated);
    }
    assert_listed(&candidates, "good");
    gpuhal_candidates_finish(&candidates);
    free(text);
}

TEST(a_directory_a_fifo_and_a_device_are_refused_without_waiting)
{
    new_folder();
    assert_int_equal(mkdir(in_folder("folder.so"), 0755), 0);
    assert_int_equal(mkfifo(in_folder("fifo.so"), 0644), 0);
    write_manifest("folder.gpuhal", "folder", "folder.so", "");
    write_manifest("fifo.gpuhal", "fifo", "fifo.so", "");
    write_manifest("device.gpuhal", "device", "/dev/null", "");
    expect("folder", GPUHAL_PLUGIN_REJECTED, "is a directory");
    expect("fifo", GPUHAL_PLUGIN_REJECTED, "is no regular file");
    expect("device", GPUHAL_PLUGIN_REJECTED, "is no regular file");
}

TEST(text_and_a_program_are_no_plugins)
{
    new_folder();
    write_file(in_folder("text.so"), "just a text, long enough to hold a header of any kind of file there is\n", 71);
    write_manifest("text.gpuhal", "text", "text.so", "");
    expect("text", GPUHAL_PLUGIN_REJECTED, "is no shared library");
}

TEST(links_in_a_circle_and_links_to_nothing_are_refused)
{
    new_folder();
    assert_int_equal(symlink("b.so", in_folder("a.so")), 0);
    assert_int_equal(symlink("a.so", in_folder("b.so")), 0);
    assert_int_equal(symlink("nowhere.so", in_folder("dangling.so")), 0);
    write_manifest("circle.gpuhal", "circle", "a.so", "");
    write_manifest("dangling.gpuhal", "dangling", "dangling.so", "");
    write_manifest("absent.gpuhal", "absent", "absent.so", "");
    expect("circle", GPUHAL_PLUGIN_REJECTED, "run in a circle");
    expect("dangling", GPUHAL_PLUGIN_REJECTED, "does not exist");
    expect("absent", GPUHAL_PLUGIN_REJECTED, "absent.so does not exist");
}

TEST(a_file_or_a_folder_that_everybody_may_write_to_is_refused)
{
    new_folder();
    copy_file(test_plugin("good"), in_folder("open.so"));
    assert_int_equal(chmod(in_folder("open.so"), 0666), 0);
    write_manifest("open_file.gpuhal", "open_file", "open.so", "");
    assert_int_equal(mkdir(in_folder("open"), 0755), 0);
    copy_file(test_plugin("good"), in_folder("open/below.so"));
    assert_int_equal(chmod(in_folder("open"), 0777), 0);
    write_manifest("open_folder.gpuhal", "open_folder", "open/below.so", "");
    expect("open_file", GPUHAL_PLUGIN_REJECTED, "may be written to by everybody");
    expect("open_folder", GPUHAL_PLUGIN_REJECTED, "which everybody may write to");
}

TEST(a_sticky_folder_like_tmp_is_no_danger_to_our_own_files)
{
    new_folder();
    assert_int_equal(mkdir(in_folder("sticky"), 0755), 0);
    copy_file(test_plugin("good_fork_safe"), in_folder("sticky/plugin.so"));
    assert_int_equal(chmod(in_folder("sticky"), 01777), 0);
    write_manifest("fine.gpuhal", "good_fork_safe", "sticky/plugin.so", "");
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates = run_loader(&settings);
    assert_listed(&candidates, "good_fork_safe");
    gpuhal_candidates_finish(&candidates);
}

TEST(a_sticky_folder_is_a_danger_where_the_file_is_somebody_elses)
{
    if (geteuid() != 0) {
        SKIP_TEST("giving a file away needs root");
    }
    new_folder();
    assert_int_equal(mkdir(in_folder("sticky"), 0755), 0);
    copy_file(test_plugin("good"), in_folder("sticky/plugin.so"));
    assert_int_equal(chown(in_folder("sticky/plugin.so"), 12345, 12345), 0);
    assert_int_equal(chmod(in_folder("sticky"), 01777), 0);
    write_manifest("foreign.gpuhal", "foreign", "sticky/plugin.so", "");
    expect("foreign", GPUHAL_PLUGIN_REJECTED, "which everybody may write to");
}

TEST(in_a_folder_that_everybody_may_write_to_only_our_own_links_count)
{
    if (geteuid() != 0) {
        SKIP_TEST("giving a link away needs root");
    }
    new_folder();
    assert_int_equal(mkdir(in_folder("sticky"), 0755), 0);
    assert_int_equal(symlink(test_plugin("good"), in_folder("sticky/foreign.so")), 0);
    assert_int_equal(symlink(test_plugin("good_fork_safe"), in_folder("sticky/own.so")), 0);
    assert_int_equal(lchown(in_folder("sticky/foreign.so"), 12345, 12345), 0);
    assert_int_equal(chmod(in_folder("sticky"), 01777), 0);
    write_manifest("foreign.gpuhal", "foreign", "sticky/foreign.so", "");
    write_manifest("own.gpuhal", "good_fork_safe", "sticky/own.so", "");
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates = run_loader(&settings);
    assert_listed(&candidates, "good_fork_safe");
    assert_verdict(&candidates, find_candidate(&candidates, "foreign"), GPUHAL_PLUGIN_REJECTED, GPUHAL_STAGE_FILE,
                   "which everybody may write to");
    gpuhal_candidates_finish(&candidates);
}

TEST(a_strangers_link_anywhere_on_the_way_is_refused)
{
    if (geteuid() != 0) {
        SKIP_TEST("giving a link away needs root");
    }
    new_folder();
    assert_int_equal(mkdir(in_folder("sticky"), 0755), 0);
    assert_int_equal(mkdir(in_folder("plugins"), 0755), 0);
    copy_file(test_plugin("good_fork_safe"), in_folder("plugins/plugin.so"));
    assert_int_equal(symlink("../plugins", in_folder("sticky/foreign")), 0);
    assert_int_equal(lchown(in_folder("sticky/foreign"), 12345, 12345), 0);
    assert_int_equal(chmod(in_folder("sticky"), 01777), 0);
    assert_int_equal(symlink("sticky/foreign/plugin.so", in_folder("link.so")), 0);
    write_manifest("direct.gpuhal", "direct", "sticky/foreign/plugin.so", "");
    write_manifest("hidden.gpuhal", "hidden", "link.so", "");
    expect("direct", GPUHAL_PLUGIN_REJECTED, "which everybody may write to");
    expect("hidden", GPUHAL_PLUGIN_REJECTED, "which everybody may write to");
    write_manifest("plugins/inside.gpuhal", "inside", "plugin.so", "");
    gpuhal_settings settings = own_settings();
    settings.plugin_path = (char *)in_folder("sticky/foreign");
    gpuhal_candidates candidates = run_loader(&settings);
    assert_verdict(&candidates, find_candidate(&candidates, "inside"), GPUHAL_PLUGIN_REJECTED, GPUHAL_STAGE_MANIFEST,
                   "which everybody may write to");
    gpuhal_candidates_finish(&candidates);
}

TEST(an_empty_element_of_a_search_path_is_named_as_such)
{
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates;
    settings.environment_plugin_path = (char *)"/nowhere::/tmp";
    assert_int_equal(gpuhal_loader_run(&settings, NULL, &candidates), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_string_equal(gpuhal_last_error()->sentence, "GPUHAL_PLUGIN_PATH is \"/nowhere::/tmp\": an element is empty");
}

/* Changes bytes of the ELF header of a copy of the good plugin. */
static void write_changed(const char *name, size_t offset, const void *change, size_t count)
{
    size_t bytes;
    char file[64];
    char *text = read_file(test_plugin("good"), &bytes);
    memcpy(text + offset, change, count);
    snprintf(file, sizeof file, "%s.gpuhal", name);
    write_file(in_folder(name), text, bytes);
    write_manifest(file, name, name, "");
    free(text);
}

TEST(a_plugin_for_another_machine_is_named_as_such)
{
    new_folder();
    const uint16_t machine = EM_ALPHA, type = ET_EXEC;
    const uint8_t narrow = sizeof(void *) == 8 ? ELFCLASS32 : ELFCLASS64;
    const uint8_t order = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2MSB : ELFDATA2LSB;
    write_changed("alpha", offsetof(ElfW(Ehdr), e_machine), &machine, sizeof machine);
    write_changed("narrow", EI_CLASS, &narrow, 1);
    write_changed("order", EI_DATA, &order, 1);
    write_changed("program", offsetof(ElfW(Ehdr), e_type), &type, sizeof type);
    expect("alpha", GPUHAL_PLUGIN_INCOMPATIBLE, "is built for an unknown machine, 64-bit; this is ");
    expect("narrow", GPUHAL_PLUGIN_INCOMPATIBLE, sizeof(void *) == 8 ? "32-bit; this is" : "64-bit; this is");
    expect("order", GPUHAL_PLUGIN_INCOMPATIBLE, "a machine of the other byte order");
    expect("program", GPUHAL_PLUGIN_REJECTED, "is an ELF file, but no shared library");
}

TEST(headers_that_point_outside_the_file_are_refused)
{
    new_folder();
    const uint64_t far = UINT64_MAX - 7;
    const uint16_t none = 0, odd = 7;
    write_changed("far_segments", offsetof(ElfW(Ehdr), e_phoff), &far, sizeof(ElfW(Off)));
    write_changed("far_sections", offsetof(ElfW(Ehdr), e_shoff), &far, sizeof(ElfW(Off)));
    write_changed("no_segments", offsetof(ElfW(Ehdr), e_phnum), &none, sizeof none);
    write_changed("odd_segments", offsetof(ElfW(Ehdr), e_phentsize), &odd, sizeof odd);
    expect("far_segments", GPUHAL_PLUGIN_REJECTED, "is cut off");
    expect("far_sections", GPUHAL_PLUGIN_REJECTED, "is cut off");
    expect("no_segments", GPUHAL_PLUGIN_REJECTED, "program headers make no sense");
    expect("odd_segments", GPUHAL_PLUGIN_REJECTED, "program headers make no sense");
}

TEST(a_segment_that_makes_no_sense_is_refused)
{
    new_folder();
    size_t bytes;
    char *text = read_file(test_plugin("good"), &bytes);
    ElfW(Ehdr) header;
    memcpy(&header, text, sizeof header);
    ElfW(Phdr) first;
    size_t at = header.e_phoff;
    do {
        memcpy(&first, text + at, sizeof first);
        at += sizeof first;
    } while (first.p_type != PT_LOAD);
    free(text);
    at -= sizeof first;
    const uint64_t huge = UINT64_MAX, none = 0;
    write_changed("huge_file", at + offsetof(ElfW(Phdr), p_filesz), &huge, sizeof first.p_filesz);
    write_changed("overlaps", at + offsetof(ElfW(Phdr), p_memsz), &huge, sizeof first.p_filesz);
    write_changed("shrinks", at + offsetof(ElfW(Phdr), p_memsz), &none, sizeof first.p_memsz);
    expect("huge_file", GPUHAL_PLUGIN_REJECTED, "is cut off");
    expect("overlaps", GPUHAL_PLUGIN_REJECTED, "its segments make no sense");
    expect("shrinks", GPUHAL_PLUGIN_REJECTED, "its segments make no sense");
}

TEST(random_damage_never_harms_this_process)
{
    new_folder();
    size_t bytes;
    char *text = read_file(test_plugin("good"), &bytes);
    char *copy = malloc(bytes);
    assert_non_null(copy);
    unsigned seed = 20240917;
    for (int i = 0; i < 24; i++) {
        char name[16], file[32];
        memcpy(copy, text, bytes);
        for (int change = 0; change < 4; change++) {
            seed = seed * 1103515245u + 12345u;
            copy[(seed >> 8) % 1024] = (char)(seed >> 24);
        }
        snprintf(name, sizeof name, "damaged%d", i);
        snprintf(file, sizeof file, "%s.gpuhal", name);
        write_file(in_folder(name), copy, bytes);
        write_manifest(file, name, name, "");
    }
    add_good();
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates = run_loader(&settings);
    assert_listed(&candidates, "good");
    for (int i = 0; i < 24; i++) {
        char name[16];
        snprintf(name, sizeof name, "damaged%d", i);
        const gpuhal_candidate *candidate = find_candidate(&candidates, name);
        assert_non_null(candidate);
        /* None of them calls itself so: whatever loads is broken all the same. */
        assert_int_not_equal(candidate->state, GPUHAL_PLUGIN_OK);
        assert_non_null(candidate->reason);
    }
    gpuhal_candidates_finish(&candidates);
    free(copy);
    free(text);
}

TEST(the_helper_program_passes_as_a_program_and_not_as_a_plugin)
{
    new_folder();
    gpuhal_attempt attempt = {0};
    gpuhal_checked_file file;
    assert_true(gpuhal_file_check(&attempt, GPUHAL_HELPER, true, &file));
    gpuhal_checked_file_finish(&file);
    assert_true(gpuhal_file_check(&attempt, test_plugin("good"), false, &file));
    assert_string_equal(file.path, test_plugin("good"));
    gpuhal_checked_file_finish(&file);
    gpuhal_attempt_finish(&attempt);
}

TEST(a_file_of_another_user_is_taken_with_a_warning)
{
    if (geteuid() != 0) {
        SKIP_TEST("giving a file away needs root");
    }
    new_folder();
    copy_file(test_plugin("good_fork_safe"), in_folder("foreign.so"));
    assert_int_equal(chown(in_folder("foreign.so"), 12345, 12345), 0);
    write_manifest("foreign.gpuhal", "good_fork_safe", "foreign.so", "");
    gpuhal_settings settings = own_settings();
    gpuhal_candidates candidates = run_loader(&settings);
    assert_listed(&candidates, "good_fork_safe");
    gpuhal_candidates_finish(&candidates);
}

#include "test_main.h"
