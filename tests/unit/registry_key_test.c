/* tests/unit/registry_key_test.c: the cache key, which decides whether a result is valid. The library must detect a
 * change in any part of the key. */
#include "registry/key.h"
#include "registry_support.h"

#include "base/text.h"

#include <gpuhal/instance.h>

#include <dlfcn.h>

static const char *root;

static void make_parents(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
}

static void put(const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s%s", root, name);
    make_parents(path);
    put_contents(path, text, strlen(text));
}

static void make_machine(void)
{
    root = fresh_directory();
    put("/proc/sys/kernel/random/boot_id", "11111111-2222\n");
    put("/proc/sys/kernel/osrelease", "6.1.0\n");
    put("/proc/driver/nvidia/version", "NVRM version: 535.54.03\nGCC\n");
    put("/proc/self/ns/x", "");
    assert_int_equal(symlink("mnt:[1]", below(root, "proc/self/ns/mnt")), 0);
    put("/sys/bus/pci/drivers/amdgpu/0000:03:00.0", "");
    put("/sys/bus/pci/drivers/amdgpu/bind", "");
    put("/sys/module/amdgpu/srcversion", "AB12\n");
    put("/proc/self/cgroup", "4:cpu,memory:/job\n0::/one/two\n");
    put("/dev/nvidia0", "");
    put("/sys/class/drm/renderD128", "");
    put("/sys/class/drm/version", "drm 1.1.0 20060810");
    put("/dev/dri/renderD128", "");
    put("/dev/null", "");
    put("/etc/ld.so.cache", "cache");
    put("/lib/plugin.so", "plugin");
    put("/lib/libvendor.so", "vendor");
    put("/icd/one.icd", "libone.so");
}

static gpuhal_texts key_now(void)
{
    static const char *const names[] = {"lib/plugin.so", "lib/libvendor.so", "icd", "lib/not-there"};
    gpuhal_texts files = {0}, variables = {0}, machine, lines;
    for (int i = 0; i < 4; i++) {
        gpuhal_texts_add(&files, below(root, names[i]));
    }
    gpuhal_texts_add(&variables, "GPUHAL_TEST_WATCHED");
    gpuhal_key_request request = {.files = &files, .variables = &variables};
    gpuhal_key_machine(root, &machine);
    gpuhal_key_make(root, &request, &machine, &lines);
    assert_false(lines.failed);
    gpuhal_texts_finish(&machine);
    gpuhal_texts_finish(&files);
    gpuhal_texts_finish(&variables);
    return lines;
}

/* Returns whether the key is valid. If the key is not valid, the text of the changed part must begin with `words`. */
static bool holds(const gpuhal_texts *lines, const char *words)
{
    gpuhal_texts machine;
    char *why = NULL;
    gpuhal_key_machine(root, &machine);
    bool current = gpuhal_key_is_current(lines, &machine, &why);
    assert_int_equal(current, why == NULL);
    if (why && words && strncmp(why, words, strlen(words)) != 0) {
        fail_msg("\"%s\" is said to have changed, not %s", why, words);
    }
    free(why);
    gpuhal_texts_finish(&machine);
    return current;
}

TEST(while_nothing_changes_the_key_holds)
{
    make_machine();
    gpuhal_texts key = key_now();
    assert_true(holds(&key, NULL));
    put("/dev/null", "what has nothing to do with GPUs");
    put("/etc/passwd", "nor this");
    assert_true(holds(&key, NULL));
    gpuhal_texts_finish(&key);
}

TEST(each_thing_that_changes_is_noticed_and_named)
{
    static const struct {
        const char *name, *text, *words;
    } changes[] = {
        {"/lib/plugin.so", "other", "file "},
        {"/lib/libvendor.so", "another version", "file "},
        {"/lib/not-there", "now it is", "file absent "},
        {"/icd/two.icd", "libtwo.so", "folder "},
        {"/icd/one.icd", "other.so", "folder "},
        {"/etc/ld.so.cache", "other cache", "file "},
        {"/proc/sys/kernel/random/boot_id", "33333333-4444\n", "boot "},
        {"/proc/sys/kernel/osrelease", "6.2.0\n", "kernel "},
        {"/proc/driver/nvidia/version", "NVRM version: 550.1\n", "nvidia "},
        {"/sys/module/amdgpu/srcversion", "CD34\n", "driver amdgpu"},
        {"/sys/bus/pci/drivers/amdgpu/0000:04:00.0", "", "driver amdgpu"},
        {"/sys/bus/pci/drivers/nouveau/0000:05:00.0", "", NULL},
        {"/dev/nvidia1", "", NULL},
        {"/dev/kfd", "", NULL},
        {"/sys/class/drm/renderD192", "", NULL},
        {"/dev/dri/renderD192", "", "node absent "},
        {"/dev/nvidia-caps/nvidia-cap11", "", NULL},
        {"/proc/driver/nvidia/capabilities/gpu0/mig/gi1/access", "DeviceFileMinor: 12\nDeviceFileMode: 256\n", NULL},
        {"/dev/nvidia-caps/nvidia-cap12", "", "node absent "},
        {"/proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci0/access", "DeviceFileMinor: 13\n", ""},
        {"/dev/nvidia-caps/nvidia-cap13", "", "node absent "},
        {"/proc/driver/nvidia/capabilities/gpu0/mig/gi1/ci1/access", "", "instances "},
        {"/proc/driver/nvidia/capabilities/mig/monitor", "DeviceFileMinor: 2\n", NULL},
        {"/dev/nvidia-caps/nvidia-cap2", "", NULL},
        {"/sys/fs/cgroup/one/memory.max", "8589934592\n", "memory unlimited"},
        {"/sys/fs/cgroup/one/two/memory.max", "4294967296\n", "memory 8589934592"},
        {"/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1073741824\n", "memory 4294967296"},
        {"/sys/fs/cgroup/memory.max", "1073741823\n", "memory 1073741824"},
    };
    make_machine();
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        gpuhal_texts key = key_now();
        assert_true(holds(&key, NULL));
        put(changes[i].name, changes[i].text);
        if (holds(&key, changes[i].words)) {
            fail_msg("the change of %s was not noticed", changes[i].name);
        }
        gpuhal_texts_finish(&key);
    }
}

TEST(nodes_that_go_and_rights_that_change_are_noticed)
{
    make_machine();
    gpuhal_texts key = key_now();
    assert_int_equal(chmod(below(root, "dev/dri/renderD128"), 0400), 0);
    assert_false(holds(&key, "node "));
    gpuhal_texts_finish(&key);
    put("/proc/driver/nvidia/capabilities/gpu0/mig/gi1/access", "DeviceFileMinor: 12\n");
    put("/dev/nvidia-caps/nvidia-cap12", "");
    key = key_now();
    assert_int_equal(chmod(below(root, "dev/nvidia-caps/nvidia-cap12"), 0400), 0);
    assert_false(holds(&key, "node "));
    gpuhal_texts_finish(&key);
    key = key_now();
    assert_int_equal(chmod(below(root, "proc/driver/nvidia/capabilities/gpu0/mig/gi1/access"), 0400), 0);
    assert_false(holds(&key, "node "));
    gpuhal_texts_finish(&key);
    key = key_now();
    assert_int_equal(unlink(below(root, "dev/nvidia0")), 0);
    assert_false(holds(&key, "node "));
    gpuhal_texts_finish(&key);
    key = key_now();
    assert_int_equal(unlink(below(root, "dev/dri/renderD128")), 0);
    assert_false(holds(&key, "node "));
    gpuhal_texts_finish(&key);
    key = key_now();
    assert_int_equal(unlink(below(root, "proc/self/ns/mnt")), 0);
    assert_int_equal(symlink("mnt:[2]", below(root, "proc/self/ns/mnt")), 0);
    assert_false(holds(&key, "mounts "));
    gpuhal_texts_finish(&key);
}

/* Each session and each job has a different group. Only a group's limits may be in the key. */
TEST(groups_with_the_same_limit_have_the_same_cache_key)
{
    make_machine();
    put("/proc/self/cgroup", "0::/one/two\n");
    put("/sys/fs/cgroup/one/two/memory.max", "max\n");
    put("/sys/fs/cgroup/one/memory.max", "8589934592\n");
    put("/sys/fs/cgroup/other/memory.max", "8589934592\n");
    gpuhal_texts key = key_now();
    put("/proc/self/cgroup", "1:name=systemd:/x\n0::/other\n");
    assert_true(holds(&key, NULL));
    put("/proc/self/cgroup", "0::/\n");
    assert_false(holds(&key, "memory 8589934592"));
    gpuhal_texts_finish(&key);
}

TEST(another_version_of_the_library_judges_for_itself)
{
    make_machine();
    gpuhal_texts key = key_now();
    size_t at = 0;
    while (at < key.count && strncmp(key.list[at], "library ", 8) != 0) {
        at++;
    }
    assert_true(at < key.count);
    assert_string_equal(key.list[at] + 8, gpuhal_version());
    key.list[at][strlen(key.list[at]) - 1]++;
    assert_false(holds(&key, "library "));
    gpuhal_texts_finish(&key);
}

TEST(variables_are_compared_by_value)
{
    make_machine();
    unsetenv("GPUHAL_TEST_WATCHED");
    gpuhal_texts unset = key_now();
    setenv("GPUHAL_TEST_WATCHED", "", 1);
    assert_false(holds(&unset, "variable "));
    gpuhal_texts_finish(&unset);
    setenv("GPUHAL_TEST_WATCHED", "pthread basic", 1);
    gpuhal_texts set = key_now();
    assert_true(holds(&set, NULL));
    setenv("GPUHAL_TEST_WATCHED", "basic", 1);
    assert_false(holds(&set, "variable GPUHAL_TEST_WATCHED=pthread basic"));
    gpuhal_texts_finish(&set);
}

TEST(the_search_path_of_libraries_counts)
{
    make_machine();
    setenv("LD_LIBRARY_PATH", "/a", 1);
    gpuhal_texts lines = key_now();
    setenv("LD_LIBRARY_PATH", "/b", 1);
    assert_false(holds(&lines, "variable LD_LIBRARY_PATH"));
    setenv("LD_LIBRARY_PATH", "/a", 1);
    assert_true(holds(&lines, NULL));
    put("/etc/ld.so.cache", "another one");
    assert_false(holds(&lines, "file "));
    unsetenv("LD_LIBRARY_PATH");
    gpuhal_texts_finish(&lines);
}

TEST(a_result_is_found_by_file_and_cache_key_through_the_registrys_file)
{
    make_machine();
    gpuhal_registry *registry = open_registry(below(root, "state"));
    gpuhal_texts machine;
    char *identity = gpuhal_key_identity(below(root, "lib/plugin.so"));
    for (unsigned i = 1; i <= 2; i++) {
        setenv("GPUHAL_TEST_WATCHED", i == 1 ? "one \\ # \n" : " two ", 1);
        gpuhal_database_plugin plugin = plugin_number(i);
        free(plugin.identity);
        plugin.identity = strdup(identity);
        free(plugin.file);
        plugin.file = strdup(below(root, "lib/plugin.so"));
        gpuhal_texts_finish(&plugin.key);
        plugin.key = key_now();
        gpuhal_changes changes = {.plugins = &plugin, .plugin_count = 1};
        assert_int_equal(gpuhal_registry_update(registry, &changes), GPUHAL_OK);
        gpuhal_record_finish(GPUHAL_DATABASE_PLUGIN, &plugin);
    }
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    gpuhal_key_machine(root, &machine);
    assert_string_equal(gpuhal_key_find(&snapshot->database, "vendor2", identity, &machine, NULL)->name, "vendor2");
    setenv("GPUHAL_TEST_WATCHED", "one \\ # \n", 1);
    assert_string_equal(gpuhal_key_find(&snapshot->database, "vendor1", identity, &machine, NULL)->name, "vendor1");
    setenv("GPUHAL_TEST_WATCHED", "three", 1);
    assert_null(gpuhal_key_find(&snapshot->database, "vendor1", identity, &machine, NULL));
    setenv("GPUHAL_TEST_WATCHED", " two ", 1);
    assert_null(gpuhal_key_find(&snapshot->database, "vendor2", "another file", &machine, NULL));
    assert_null(gpuhal_key_find(&snapshot->database, "vendor1", identity, &machine, NULL));
    gpuhal_texts_finish(&machine);
    gpuhal_snapshot_release(snapshot);
    gpuhal_registry_destroy(registry);
    free(identity);
}

TEST(a_file_that_two_plugins_depend_on_is_looked_at_once_in_a_listing)
{
    make_machine();
    gpuhal_registry *registry = open_registry(below(root, "state"));
    gpuhal_texts machine;
    static const char *const names[] = {"vendor1", "vendor2"}, *const files[] = {"lib/plugin.so", "lib/libvendor.so"};
    char *identities[] = {gpuhal_key_identity(below(root, files[0])), gpuhal_key_identity(below(root, files[1]))};
    for (unsigned i = 1; i <= 2; i++) {
        gpuhal_database_plugin plugin = plugin_number(i);
        free(plugin.identity);
        plugin.identity = strdup(identities[i - 1]);
        free(plugin.file);
        plugin.file = strdup(below(root, files[i - 1]));
        gpuhal_texts_finish(&plugin.key);
        plugin.key = key_now();
        gpuhal_changes changes = {.plugins = &plugin, .plugin_count = 1};
        assert_int_equal(gpuhal_registry_update(registry, &changes), GPUHAL_OK);
        gpuhal_record_finish(GPUHAL_DATABASE_PLUGIN, &plugin);
    }
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    const gpuhal_database *database = &snapshot->database;
    gpuhal_key_seen seen = {0};
    gpuhal_key_machine(root, &machine);
    assert_non_null(gpuhal_key_find(database, names[0], identities[0], &machine, &seen));
    put("/etc/ld.so.cache", "another one");
    assert_non_null(gpuhal_key_find(database, names[1], identities[1], &machine, &seen));
    assert_null(gpuhal_key_find(database, names[1], identities[1], &machine, NULL));
    seen = (gpuhal_key_seen){0};
    assert_null(gpuhal_key_find(database, names[0], identities[0], &machine, &seen));
    assert_null(gpuhal_key_find(database, names[1], identities[1], &machine, &seen));
    gpuhal_texts_finish(&machine);
    gpuhal_snapshot_release(snapshot);
    gpuhal_registry_destroy(registry);
    free(identities[0]);
    free(identities[1]);
}

/* Returns the driver in the valid record for the identity, or "" if the plugin must be probed. */
static const char *driver_found(gpuhal_registry *registry, const char *identity)
{
    static char driver[64];
    gpuhal_texts machine;
    gpuhal_registry_refresh(registry);
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    gpuhal_key_machine(root, &machine);
    const gpuhal_database_plugin *plugin = gpuhal_key_find(&snapshot->database, "vendor1", identity, &machine, NULL);
    snprintf(driver, sizeof driver, "%s", plugin ? plugin->driver : "");
    gpuhal_texts_finish(&machine);
    gpuhal_snapshot_release(snapshot);
    return driver;
}

static void record_driver(gpuhal_registry *registry, const char *identity, const char *driver)
{
    gpuhal_database_plugin plugin = plugin_number(1);
    free(plugin.identity);
    plugin.identity = strdup(identity);
    plugin.driver = strdup(driver);
    gpuhal_texts_finish(&plugin.key);
    plugin.key = key_now();
    gpuhal_changes changes = {.plugins = &plugin, .plugin_count = 1};
    assert_int_equal(gpuhal_registry_update(registry, &changes), GPUHAL_OK);
    gpuhal_record_finish(GPUHAL_DATABASE_PLUGIN, &plugin);
}

static void set_namespace(const char *name)
{
    unlink(below(root, "proc/self/ns/mnt"));
    assert_int_equal(symlink(name, below(root, "proc/self/ns/mnt")), 0);
}

TEST(a_home_shared_by_a_host_and_containers_has_a_result_for_each)
{
    make_machine();
    gpuhal_registry *registry = open_registry(below(root, "state"));
    char *identity = gpuhal_key_identity(below(root, "lib/plugin.so"));
    record_driver(registry, identity, "host");
    assert_string_equal(driver_found(registry, identity), "host");
    set_namespace("mnt:[2]");
    assert_string_equal(driver_found(registry, identity), "");
    record_driver(registry, identity, "container");
    set_namespace("mnt:[3]");
    assert_string_equal(driver_found(registry, identity), "");
    set_namespace("mnt:[1]");
    assert_string_equal(driver_found(registry, identity), "host");
    set_namespace("mnt:[2]");
    assert_string_equal(driver_found(registry, identity), "container");
    assert_int_equal(unlink(below(root, "dev/nvidia0")), 0); /* a container without the GPU */
    assert_string_equal(driver_found(registry, identity), "");
    gpuhal_registry_destroy(registry);
    free(identity);
}

TEST(a_boot_and_another_driver_make_a_result_stale)
{
    make_machine();
    gpuhal_registry *registry = open_registry(below(root, "state"));
    char *identity = gpuhal_key_identity(below(root, "lib/plugin.so"));
    record_driver(registry, identity, "first");
    put("/proc/sys/kernel/random/boot_id", "33333333-4444\n");
    assert_string_equal(driver_found(registry, identity), "");
    record_driver(registry, identity, "second");
    assert_string_equal(driver_found(registry, identity), "second");
    put("/proc/driver/nvidia/version", "NVRM version: 550.54.14\nGCC\n");
    assert_string_equal(driver_found(registry, identity), "");
    put("/proc/driver/nvidia/version", "NVRM version: 535.54.03\nGCC\n");
    assert_string_equal(driver_found(registry, identity), "second");
    gpuhal_registry_destroy(registry);
    free(identity);
}

TEST(of_two_valid_results_the_later_one_counts)
{
    make_machine();
    gpuhal_registry *registry = open_registry(below(root, "state"));
    char *identity = gpuhal_key_identity(below(root, "lib/plugin.so"));
    record_driver(registry, identity, "earlier");
    gpuhal_texts machine;
    gpuhal_database_plugin crash = plugin_number(1); /* fewer of the plugin's files are known */
    free(crash.identity);
    crash.identity = strdup(identity);
    crash.driver = strdup("later");
    gpuhal_texts_finish(&crash.key);
    gpuhal_key_machine(root, &machine);
    gpuhal_key_make(root, &(gpuhal_key_request){0}, &machine, &crash.key);
    gpuhal_changes changes = {.plugins = &crash, .plugin_count = 1};
    assert_int_equal(gpuhal_registry_update(registry, &changes), GPUHAL_OK);
    assert_string_equal(driver_found(registry, identity), "later");
    record_driver(registry, identity, "latest");
    assert_string_equal(driver_found(registry, identity), "latest");
    gpuhal_record_finish(GPUHAL_DATABASE_PLUGIN, &crash);
    gpuhal_texts_finish(&machine);
    gpuhal_registry_destroy(registry);
    free(identity);
}

TEST(a_watched_device_is_identified_by_number_and_rights_not_by_time)
{
    root = fresh_directory();
    gpuhal_texts files = {0}, machine = {0}, lines;
    gpuhal_texts_add(&files, "/dev/null");
    gpuhal_texts_add(&files, "/proc/self");
    gpuhal_key_make("", &(gpuhal_key_request){.files = &files}, &machine, &lines);
    FILE *null = fopen("/dev/null", "w");
    assert_non_null(null);
    fputs("it may get new times", null);
    fclose(null);
    assert_non_null(strstr(lines.list[0], "-rw /dev/null"));
    assert_string_equal(lines.list[1], "file there /proc/self");
    assert_true(gpuhal_key_is_current(&lines, &machine, NULL));
    gpuhal_texts_finish(&lines);
    gpuhal_texts_finish(&files);
}

TEST(the_files_with_code_in_this_process_are_found)
{
    gpuhal_texts files;
    Dl_info info;
    bool found = false;
    gpuhal_key_mapped_files(&files);
    assert_int_not_equal(dladdr((void *)strlen, &info), 0);
    char *libc = realpath(info.dli_fname, NULL);
    for (size_t i = 0; i < files.count; i++) {
        found = found || strcmp(files.list[i], libc) == 0;
        assert_int_equal(files.list[i][0], '/');
    }
    assert_true(found);
    free(libc);
    gpuhal_texts_finish(&files);
}

#include "test_main.h"
