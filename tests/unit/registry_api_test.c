/* gpuhal/node/registry.h as an application uses it: views that do not change, records of every kind, and the calls that
 * forget, export and import records. */
#include "registry/checksum.h"
#include "registry/key.h"
#include "registry_support.h"
#include "support/record.h"

#include <gpuhal/gpuhal.h>
#include <gpuhal/node.h>

static gpuhal_config config_of(const char *directory)
{
    return (gpuhal_config){.size = sizeof(gpuhal_config), .ignore_environment = 1, .registry = directory};
}

static gpuhal_view *read_view(const char *directory)
{
    const gpuhal_config config = config_of(directory);
    gpuhal_view *view = NULL;
    if (gpuhal_view_read(&config, &view)) {
        fail_msg("%s", gpuhal_last_error()->sentence);
    }
    return view;
}

static const char *with_all_kinds(void)
{
    const char *directory = missing_directory("state");
    gpuhal_registry *registry = open_registry(directory);
    assert_int_equal(record_all_kinds(registry), GPUHAL_OK);
    gpuhal_registry_destroy(registry);
    return directory;
}

/* Compares the number of records of each kind: plugins, physical devices, interfaces, links, faults. */
static void expect_counts(const gpuhal_view *view, const uint32_t counts[5])
{
    static const gpuhal_record_kind kinds[] = {GPUHAL_RECORD_REGISTRY_PLUGIN, GPUHAL_RECORD_REGISTRY_PHYSICAL,
                                               GPUHAL_RECORD_REGISTRY_INTERFACE, GPUHAL_RECORD_REGISTRY_LINK,
                                               GPUHAL_RECORD_REGISTRY_FAULT};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(gpuhal_view_count(view, kinds[i]), counts[i]);
    }
}

static gpuhal_registry_info info_of(const gpuhal_view *view)
{
    gpuhal_registry_info info = {.size = sizeof info};
    assert_int_equal(gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY, 0, &info), GPUHAL_OK);
    return info;
}

/* ---- reading */

TEST(a_view_returns_every_record_as_it_was_recorded)
{
    const char *directory = with_all_kinds();
    gpuhal_view *view = read_view(directory);
    gpuhal_plugin_record plugin = {.size = sizeof plugin};
    gpuhal_physical_record physical = {.size = sizeof physical};
    gpuhal_interface_record iface = {.size = sizeof iface};
    gpuhal_link_record link = {.size = sizeof link};
    gpuhal_fault_record fault = {.size = sizeof fault};
    gpuhal_driver_record driver = {.size = sizeof driver};
    assert_string_equal(info_of(view).place, directory);
    assert_string_equal(info_of(view).damage, "");
    assert_true(info_of(view).generation >= 2);
    expect_counts(view, (uint32_t[5]){1, 2, 3, 1, 1});

    assert_int_equal(gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_PLUGIN, 0, &plugin), GPUHAL_OK);
    assert_string_equal(plugin.name, "vendor7");
    assert_string_equal(plugin.file, "/lib/a \\ b.so");
    assert_string_equal(plugin.version, "1.2");
    assert_string_equal(plugin.output, "the last line\twith a tab");
    assert_string_equal(plugin.driver, "");
    assert_int_equal(plugin.state, GPUHAL_PLUGIN_OK);
    assert_int_equal(plugin.stage, GPUHAL_STAGE_DONE);
    assert_int_equal(plugin.device_count, 1);
    assert_int_equal(plugin.probed_at, 1700000007);

    assert_int_equal(gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_PHYSICAL, 1, &physical), GPUHAL_OK);
    assert_string_equal(physical.pci_address, "0000:02:00.0");
    assert_string_equal(physical.name, "Two");
    assert_int_equal(physical.vendor_id, 0x10de);
    assert_int_equal(physical.is_present, 1);
    assert_int_equal(physical.is_host, 0);
    assert_int_equal(physical.first_seen, 1700000000);

    assert_int_equal(gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_INTERFACE, 2, &iface), GPUHAL_OK);
    assert_string_equal(iface.backend, "vulkan");
    assert_string_equal(iface.uuid, "");
    assert_int_equal(iface.physical, 1);
    assert_int_equal(iface.driver_count, 1);
    assert_int_equal(gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_DRIVER, iface.first_driver, &driver), GPUHAL_OK);
    assert_string_equal(driver.version, "535.1");
    assert_int_equal(driver.since, 1700000000);
    assert_int_equal(driver.interface_number, iface.number);

    assert_int_equal(gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_LINK, 0, &link), GPUHAL_OK);
    assert_int_equal(link.from, 1);
    assert_int_equal(link.to, 2);
    assert_int_equal(link.verified, 1);
    assert_int_equal(link.bytes_per_second, 25000000000);
    assert_string_equal(link.from_driver, "535.1");
    assert_string_equal(link.to_driver, "");

    assert_int_equal(gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_FAULT, 0, &fault), GPUHAL_OK);
    assert_string_equal(fault.kind, "hang");
    assert_string_equal(fault.detail, "no answer");
    assert_string_equal(fault.plugin, "");
    assert_int_equal(fault.count, 2);
    assert_int_equal(fault.interface_number, 2);
    gpuhal_view_release(view);
}

TEST(a_view_stays_as_it_is_while_the_record_changes)
{
    const char *directory = with_all_kinds();
    const gpuhal_config config = config_of(directory);
    gpuhal_view *view = read_view(directory);
    const uint64_t generation = info_of(view).generation;
    assert_int_equal(gpuhal_registry_forget(&config, NULL), GPUHAL_OK);
    expect_counts(view, (uint32_t[5]){1, 2, 3, 1, 1});
    assert_int_equal(info_of(view).generation, generation);
    gpuhal_view *later = read_view(directory);
    expect_counts(later, (uint32_t[5]){0});
    assert_true(info_of(later).generation > generation);
    gpuhal_view_release(view);
    gpuhal_view_release(later);
}

TEST(a_view_of_an_open_object_has_the_numbers_of_its_devices)
{
    const char *directory = missing_directory("state");
    gpuhal_config config = config_of(directory);
    gpuhal *gpu = NULL;
    gpuhal_view *view = NULL;
    gpuhal_interface_record iface = {.size = sizeof iface};
    config.backends = "cpu";
    config.plugin_path = GPUHAL_BUILD_PLUGINS;
    config.helper_path = GPUHAL_HELPER;
    assert_int_equal(gpuhal_open(&config, &gpu), GPUHAL_OK);
    assert_true(gpuhal_device_count(gpu) > 0);
    assert_int_equal(gpuhal_view_of(gpu, 0, &view), GPUHAL_OK);
    const gpuhal_interface_info listed = interface_of(gpuhal_device_at(gpu, 0));
    assert_string_equal(info_of(view).place, directory);
    assert_int_equal(gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_INTERFACE, 0, &iface), GPUHAL_OK);
    assert_string_equal(iface.backend, "cpu");
    assert_int_equal(iface.number, listed.number);
    assert_int_equal(iface.physical, listed.physical);
    assert_int_equal(iface.is_present, 1);
    gpuhal_view_release(view);
    gpuhal_close(gpu);
}

TEST(a_view_is_empty_if_no_record_exists_or_none_is_kept)
{
    const char *directory = missing_directory("state");
    gpuhal_view *view = read_view(directory);
    assert_string_equal(info_of(view).place, directory);
    assert_int_equal(info_of(view).generation, 0);
    expect_counts(view, (uint32_t[5]){0});
    gpuhal_view_release(view);
    assert_int_equal(access(directory, F_OK), -1);
    view = read_view("none");
    assert_string_equal(info_of(view).place, "");
    expect_counts(view, (uint32_t[5]){0});
    gpuhal_view_release(view);
}

TEST(a_damaged_record_is_reported_and_the_whole_ones_are_returned)
{
    const char *directory = with_all_kinds();
    size_t bytes = 0;
    char *text = contents_of(below(directory, "registry"), &bytes);
    char *name = strstr(text, "name = Two");
    assert_non_null(name);
    name[7] = 't';
    put_contents(below(directory, "registry"), text, bytes);
    gpuhal_view *view = read_view(directory);
    assert_non_null(strstr(info_of(view).damage, "its undamaged records are used"));
    /* The damaged physical device's record is lost, with its interface's record, link and fault. */
    expect_counts(view, (uint32_t[5]){1, 1, 2, 0, 0});
    gpuhal_view_release(view);
    free(text);
    put_contents(below(directory, "registry"), "x\n", 2);
    view = read_view(directory);
    assert_non_null(strstr(info_of(view).damage, "nothing of it can be used"));
    gpuhal_view_release(view);
}

static void make_newer(const char *directory)
{
    static const char body[] = "[registry]\nversion = 2\n";
    char text[128];
    snprintf(text, sizeof text, "%scrc = %08x\n", body, (unsigned)gpuhal_checksum(0, body, sizeof body - 1));
    put_contents(below(directory, "registry"), text, strlen(text));
}

TEST(a_record_of_a_later_version_is_neither_read_nor_touched)
{
    const char *directory = with_all_kinds();
    const gpuhal_config config = config_of(directory);
    gpuhal_view *view = (gpuhal_view *)1;
    size_t bytes = 0;
    make_newer(directory);
    assert_int_equal(gpuhal_view_read(&config, &view), GPUHAL_ERROR_FILE);
    assert_null(view);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "newer version"));
    assert_int_equal(gpuhal_registry_forget(&config, NULL), GPUHAL_ERROR_FILE);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "newer version"));
    char *text = contents_of(below(directory, "registry"), &bytes);
    assert_non_null(strstr(text, "version = 2"));
    free(text);
}

TEST(a_result_is_stale_once_a_part_of_its_cache_key_changed)
{
    const char *directory = missing_directory("state");
    gpuhal_registry *registry = open_registry(directory);
    char own[600], why[200];
    snprintf(own, sizeof own, "%s/driver.so", registry_root);
    put_contents(own, "one", 3);
    gpuhal_texts machine, files = {0}, variables = {0};
    gpuhal_texts_add(&files, own);
    gpuhal_texts_add(&variables, "GPUHAL_TEST_SETTING");
    const gpuhal_key_request request = {.files = &files, .variables = &variables};
    gpuhal_database_plugin plugin = {.identity = own, .name = own, .state = GPUHAL_PLUGIN_OK};
    gpuhal_changes changes = {.plugins = &plugin, .plugin_count = 1};
    gpuhal_key_machine("", &machine);
    gpuhal_key_make("", &request, &machine, &plugin.key);
    assert_int_equal(gpuhal_registry_update(registry, &changes), GPUHAL_OK);
    gpuhal_registry_destroy(registry);
    gpuhal_texts_finish(&plugin.key);
    gpuhal_texts_finish(&machine);
    gpuhal_texts_finish(&files);
    gpuhal_texts_finish(&variables);

    gpuhal_view *view = read_view(directory);
    assert_int_equal(gpuhal_registry_plugin_stale(view, 0, why, sizeof why), GPUHAL_OK);
    assert_string_equal(why, "");
    setenv("GPUHAL_TEST_SETTING", "1", 1);
    assert_int_equal(gpuhal_registry_plugin_stale(view, 0, why, sizeof why), GPUHAL_OK);
    assert_string_equal(why, "GPUHAL_TEST_SETTING is set now");
    unsetenv("GPUHAL_TEST_SETTING");
    put_contents(own, "another", 7);
    assert_int_equal(gpuhal_registry_plugin_stale(view, 0, why, sizeof why), GPUHAL_OK);
    assert_non_null(strstr(why, "/driver.so has changed"));
    unlink(own);
    assert_int_equal(gpuhal_registry_plugin_stale(view, 0, why, 12), GPUHAL_OK);
    assert_int_equal(strlen(why), 11);
    assert_int_equal(gpuhal_registry_plugin_stale(view, 1, why, sizeof why), GPUHAL_ERROR_NOT_FOUND);
    gpuhal_view_release(view);
}

/* ---- changing */

TEST(a_plugin_is_forgotten_with_its_faults_and_all_else_stays)
{
    const char *directory = with_all_kinds();
    const gpuhal_config config = config_of(directory);
    gpuhal_registry *registry = open_registry(directory);
    gpuhal_database_fault fault = {.kind = GPUHAL_FAULT_CRASH, .plugin = (char[]){"vendor7"}, .count = 1};
    gpuhal_changes changes = {.faults = &fault, .fault_count = 1};
    assert_int_equal(gpuhal_registry_update(registry, &changes), GPUHAL_OK);
    gpuhal_registry_destroy(registry);
    assert_int_equal(gpuhal_registry_forget(&config, "vendor8"), GPUHAL_ERROR_NOT_FOUND);
    gpuhal_view *view = read_view(directory);
    expect_counts(view, (uint32_t[5]){1, 2, 3, 1, 2});
    gpuhal_view_release(view);
    assert_int_equal(gpuhal_registry_forget(&config, "vendor7"), GPUHAL_OK);
    view = read_view(directory);
    expect_counts(view, (uint32_t[5]){0, 2, 3, 1, 1});
    gpuhal_view_release(view);
}

TEST(a_physical_device_is_forgotten_with_its_interfaces_and_all_else_stays)
{
    const char *directory = with_all_kinds();
    const gpuhal_config config = config_of(directory);
    assert_int_equal(gpuhal_registry_forget_physical(&config, 7), GPUHAL_ERROR_NOT_FOUND);
    assert_int_equal(gpuhal_registry_forget_physical(&config, 0), GPUHAL_ERROR_NOT_FOUND);
    gpuhal_view *view = read_view(directory);
    expect_counts(view, (uint32_t[5]){1, 2, 3, 1, 1});
    gpuhal_view_release(view);
    assert_int_equal(gpuhal_registry_forget_physical(&config, 2), GPUHAL_OK);
    view = read_view(directory);
    expect_counts(view, (uint32_t[5]){1, 1, 2, 0, 0});
    gpuhal_physical_record left = {.size = sizeof left};
    assert_int_equal(gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_PHYSICAL, 0, &left), GPUHAL_OK);
    assert_int_equal(left.number, 1);
    gpuhal_view_release(view);
}

TEST(numbers_that_were_forgotten_are_not_given_again)
{
    const char *directory = with_all_kinds();
    const gpuhal_config config = config_of(directory);
    assert_int_equal(gpuhal_registry_forget(&config, NULL), GPUHAL_OK);
    gpuhal_registry *registry = open_registry(directory);
    assert_int_equal(record_all_kinds(registry), GPUHAL_OK);
    gpuhal_registry_destroy(registry);
    gpuhal_view *view = read_view(directory);
    gpuhal_physical_record physical = {.size = sizeof physical};
    gpuhal_interface_record iface = {.size = sizeof iface};
    assert_int_equal(gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_PHYSICAL, 0, &physical), GPUHAL_OK);
    assert_int_equal(gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_INTERFACE, 0, &iface), GPUHAL_OK);
    assert_int_equal(physical.number, 3);
    assert_int_equal(iface.number, 4);
    gpuhal_view_release(view);
}

TEST(an_export_that_is_imported_elsewhere_is_the_same_record)
{
    const char *directory = with_all_kinds();
    char file[600], other[600];
    snprintf(file, sizeof file, "%s/export", registry_root);
    snprintf(other, sizeof other, "%s/other", registry_root);
    const gpuhal_config config = config_of(other);
    gpuhal_registry *registry = open_registry(other);
    assert_int_equal(record_plugin(registry, 1), GPUHAL_OK);
    gpuhal_registry_destroy(registry);
    gpuhal_view *view = read_view(directory);
    struct stat state;
    assert_int_equal(gpuhal_view_write(view, file), GPUHAL_OK);
    assert_int_equal(stat(file, &state), 0);
    assert_int_equal(state.st_mode & 0777, 0600);
    assert_int_equal(gpuhal_view_write(view, file), GPUHAL_ERROR_FILE);
    assert_int_equal(gpuhal_registry_import(&config, file), GPUHAL_OK);
    gpuhal_view *imported = read_view(other);
    gpuhal_plugin_record plugin = {.size = sizeof plugin};
    expect_counts(imported, (uint32_t[5]){1, 2, 3, 1, 1});
    assert_int_equal(gpuhal_view_get(imported, GPUHAL_RECORD_REGISTRY_PLUGIN, 0, &plugin), GPUHAL_OK);
    assert_string_equal(plugin.name, "vendor7");
    assert_true(info_of(imported).generation > info_of(view).generation);
    gpuhal_view_release(view);
    gpuhal_view_release(imported);
}

TEST(an_export_with_any_byte_missing_or_changed_is_refused_as_a_whole)
{
    const char *directory = with_all_kinds();
    const gpuhal_config config = config_of(directory);
    char file[600];
    size_t bytes = 0, refused = 0;
    snprintf(file, sizeof file, "%s/export", registry_root);
    char *text = contents_of(below(directory, "registry"), &bytes);
    gpuhal_view *view = read_view(directory);
    const uint64_t generation = info_of(view).generation;
    gpuhal_view_release(view);
    for (size_t at = 0; at < bytes - 1; at += 61) {
        put_contents(file, text, at);
        assert_int_equal(gpuhal_registry_import(&config, file), GPUHAL_ERROR_FILE);
        assert_non_null(strstr(gpuhal_last_error()->sentence, "cannot be imported"));
    }
    for (size_t at = 0; at < bytes; at += 61) {
        text[at] ^= 1;
        put_contents(file, text, bytes);
        gpuhal_status status = gpuhal_registry_import(&config, file);
        text[at] ^= 1;
        /* A changed byte in the comment is harmless. */
        assert_true(status == GPUHAL_ERROR_FILE ||
                    (status == GPUHAL_OK && text[at] != '[' && at < strcspn(text, "\n")));
        refused += status != GPUHAL_OK;
    }
    assert_true(refused > 10);
    put_contents(file, text, 0);
    assert_int_equal(gpuhal_registry_import(&config, file), GPUHAL_ERROR_FILE);
    free(text);
    view = read_view(directory);
    expect_counts(view, (uint32_t[5]){1, 2, 3, 1, 1});
    assert_true(info_of(view).generation <= generation + 2);
    gpuhal_view_release(view);
}

TEST(questions_and_changes_that_make_no_sense_are_refused)
{
    const char *directory = with_all_kinds();
    const gpuhal_config config = config_of(directory), none = config_of("none"), relative = config_of("state");
    gpuhal_view *view = read_view(directory), *other = NULL;
    char why[8];
    assert_int_equal(gpuhal_registry_plugin_stale(view, 0, why, 0), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_plugin_report report = {.size = sizeof report};
    assert_int_equal(gpuhal_view_get(view, GPUHAL_RECORD_PLUGIN, 0, &report), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "the registry alone"));
    assert_int_equal(gpuhal_view_read(&config, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_view_read(&relative, &other), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_view_write(view, ""), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_view_write(NULL, "/x"), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_registry_import(&config, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_registry_import(&config, "/nowhere/at/all"), GPUHAL_ERROR_FILE);
    assert_int_equal(gpuhal_registry_forget(&none, NULL), GPUHAL_ERROR_FILE);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "no registry is kept"));
    gpuhal_view_release(view);
}

#include "test_main.h"
