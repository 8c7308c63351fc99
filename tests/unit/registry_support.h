/* tests/unit/registry_support.h: a temporary directory for a registry, records to write, and log lines. */
#ifndef GPUHAL_TEST_REGISTRY_SUPPORT_H
#define GPUHAL_TEST_REGISTRY_SUPPORT_H

#include "registry/serial.h"
#include "registry/registry.h"
#include "registry/store.h"

#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define QUICKLY UINT64_C(30000000)

static char registry_root[256];

static char logged[4096];

static inline void remove_registry_root(void)
{
    char command[2 * sizeof registry_root + 64];
    snprintf(command, sizeof command, "chmod -R u+rwx '%s' 2>/dev/null; rm -rf '%s'", registry_root, registry_root);
    if (system(command) != 0) {
        printf("%s is left behind\n", registry_root);
    }
}

/* Makes a new directory, which is removed when the next directory is made or when the program ends. */
static inline const char *fresh_directory(void)
{
    const char *base = getenv("TMPDIR");
    if (registry_root[0]) {
        remove_registry_root();
    } else {
        atexit(remove_registry_root);
    }
    logged[0] = 0;
    snprintf(registry_root, sizeof registry_root, "%s/gpuhal-registry-XXXXXX", base && *base ? base : "/tmp");
    assert_non_null(mkdtemp(registry_root));
    return registry_root;
}

/* Returns a path that is valid until the next call. */
static inline const char *below(const char *directory, const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

/* Returns a path in a new directory. Nothing exists at the path. */
static inline const char *missing_directory(const char *name)
{
    static char path[512];
    snprintf(path, sizeof path, "%s/%s", fresh_directory(), name);
    return path;
}

static inline size_t files_that_begin_with(const char *directory, const char *prefix)
{
    size_t count = 0;
    DIR *list = opendir(directory);
    for (struct dirent *entry = list ? readdir(list) : NULL; entry; entry = readdir(list)) {
        count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    }
    if (list) {
        closedir(list);
    }
    return count;
}

static inline char *contents_of(const char *path, size_t *out_bytes)
{
    FILE *file = fopen(path, "rb");
    struct stat about;
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &about), 0);
    char *text = calloc(1, (size_t)about.st_size + 1);
    *out_bytes = fread(text, 1, (size_t)about.st_size, file);
    fclose(file);
    return text;
}

static inline void put_contents(const char *path, const char *text, size_t bytes)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static inline gpuhal_registry *open_registry(const char *directory)
{
    gpuhal_registry *registry = gpuhal_registry_create(directory, GPUHAL_REGISTRY_LOCK_NS, NULL);
    assert_non_null(registry);
    return registry;
}

/* Makes the record of a plugin with one device. `number` identifies both. Free it with gpuhal_record_finish. */
static inline gpuhal_database_plugin plugin_number(unsigned number)
{
    char name[32];
    snprintf(name, sizeof name, "vendor%u", number);
    gpuhal_database_plugin plugin = {.state = GPUHAL_PLUGIN_OK,
                                     .stage = GPUHAL_STAGE_DONE,
                                     .probed_at = 1700000000 + number,
                                     .version = strdup("1.2"),
                                     .identity = strdup(name),
                                     .name = strdup(name),
                                     .file = strdup("/lib/a \\ b.so"),
                                     .reason = strdup("")};
    gpuhal_texts_add(&plugin.key, "boot 1");
    gpuhal_texts_add(&plugin.key, "variable A= two words ");
    gpuhal_texts_add(&plugin.output, "the last line\twith a tab");
    gpuhal_listed_devices_add(&plugin.devices, 3);
    plugin.devices.list[0].capabilities = number;
    gpuhal_facts_set_u64(&plugin.devices.list[0].facts, GPUHAL_FACT_MEMORY_TOTAL_BYTES, UINT64_MAX - number);
    gpuhal_facts_set_text(&plugin.devices.list[0].facts, GPUHAL_FACT_NAME, "G\xc3\xb6\xc3\x9f");
    gpuhal_facts_set_missing(&plugin.devices.list[0].facts, GPUHAL_FACT_UUID, GPUHAL_MISSING_FAILED, "why not");
    return plugin;
}

static inline gpuhal_status record_plugin(gpuhal_registry *registry, unsigned number)
{
    gpuhal_database_plugin plugin = plugin_number(number);
    gpuhal_changes changes = {.now = 1700000000, .plugins = &plugin, .plugin_count = 1};
    gpuhal_status status = gpuhal_registry_update(registry, &changes);
    gpuhal_record_finish(GPUHAL_DATABASE_PLUGIN, &plugin);
    return status;
}

static inline gpuhal_status record_all_kinds(gpuhal_registry *registry)
{
    gpuhal_sighting seen[] = {
        {.group = 0,
         .vendor_id = 0x10de,
         .pci = "0000:01:00.0",
         .uuid = "u-1",
         .backend = "cuda",
         .name = "One",
         .driver_version = "535.1"},
        {.group = 1,
         .vendor_id = 0x10de,
         .pci = "0000:02:00.0",
         .uuid = "u-2",
         .backend = "cuda",
         .name = "Two",
         .driver_version = "535.1"},
        {.group = 0,
         .vendor_id = 0x10de,
         .pci = "0000:01:00.0",
         .backend = "vulkan",
         .name = "One",
         .driver_version = "535.1"},
    };
    gpuhal_database_plugin plugin = plugin_number(7);
    gpuhal_changes changes = {
        .now = 1700000000, .plugins = &plugin, .plugin_count = 1, .sightings = seen, .sighting_count = 3};
    gpuhal_status status = gpuhal_registry_update(registry, &changes);
    gpuhal_record_finish(GPUHAL_DATABASE_PLUGIN, &plugin);
    gpuhal_database_link link = {.from = seen[0].iface,
                                 .to = seen[1].iface,
                                 .verified = 1,
                                 .bytes_per_second = 25000000000,
                                 .from_driver = (char[]){"535.1"}};
    gpuhal_database_fault fault = {
        .kind = GPUHAL_FAULT_HANG, .iface = seen[1].iface, .count = 2, .detail = (char[]){"no answer"}};
    gpuhal_changes more = {.now = 1700000001, .links = &link, .link_count = 1, .faults = &fault, .fault_count = 1};
    gpuhal_status second = gpuhal_registry_update(registry, &more);
    return status ? status : second;
}

static inline bool knows_plugin(const gpuhal_database *database, unsigned number)
{
    char name[32];
    size_t count;
    const gpuhal_database_plugin *plugins = gpuhal_database_plugins(database, &count);
    snprintf(name, sizeof name, "vendor%u", number);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(plugins[i].name, name) == 0) {
            return plugins[i].devices.count == 1 && plugins[i].devices.list[0].capabilities == number;
        }
    }
    return false;
}

static inline void keep_line(__attribute__((unused)) void *user, __attribute__((unused)) int32_t level,
                             const char *line)
{
    snprintf(logged + strlen(logged), sizeof logged - strlen(logged), "%s\n", line);
}

static inline size_t lines_logged(void)
{
    size_t count = 0;
    for (const char *c = logged; *c; c++) {
        count += *c == '\n';
    }
    return count;
}

#endif
