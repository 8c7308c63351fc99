/* Which versions of the plugin ABI a core takes. loader_later_abi_test.c has a core of the next minor version. */
#include "abi_support.h"

static uint32_t version(uint32_t major, uint32_t minor)
{
    return major << 16 | minor;
}

TEST(a_rule_takes_the_minor_versions_of_its_major_version_that_are_in_its_window)
{
    const gpuhal_abi_rule one = {.major = 0, .minor = 4, .oldest_minor = 4, .newest_minor = 4};
    const gpuhal_abi_rule window = {.major = 0, .minor = 5, .oldest_minor = 4, .newest_minor = 6};
    const gpuhal_abi_rule stable = {.major = 1, .minor = 2, .oldest_minor = 0, .newest_minor = UINT32_MAX};
    const struct {
        const gpuhal_abi_rule *rule;
        uint32_t plugin;
        bool taken;
    } rows[] = {
        {&one, version(0, 4), true},     {&one, version(0, 3), false},    {&one, version(0, 5), false},
        {&one, version(1, 4), false},    {&window, version(0, 3), false}, {&window, version(0, 4), true},
        {&window, version(0, 6), true},  {&window, version(0, 7), false}, {&window, version(1, 5), false},
        {&stable, version(1, 0), true},  {&stable, version(1, 2), true},  {&stable, version(1, 0xffff), true},
        {&stable, version(0, 2), false}, {&stable, version(2, 0), false}, {&stable, 0, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (gpuhal_abi_taken(rows[i].rule, rows[i].plugin) != rows[i].taken) {
            fail_msg("row %zu", i);
        }
    }
}

TEST(this_core_takes_only_its_own_version)
{
    assert_int_equal(gpuhal_abi_version(), GPUHAL_ABI);
    assert_true(gpuhal_abi_taken(&gpuhal_abi_own, GPUHAL_ABI));
    assert_false(gpuhal_abi_taken(&gpuhal_abi_own, GPUHAL_ABI + 1));
    assert_false(gpuhal_abi_taken(&gpuhal_abi_own, GPUHAL_ABI - 1));
}

/* The manifest states the version, and the file alone has only the version in its table. */
TEST(plugins_of_later_versions_are_refused_with_both_versions_and_what_to_do)
{
    for (uint32_t later = 1; later <= 2; later++) {
        char name[16], words[160];
        const gpuhal_plugin *plugin = NULL;
        snprintf(name, sizeof name, "later_%u", later);
        snprintf(words, sizeof words,
                 "speaks plugin ABI %u.%u, this library speaks %u.%u: install a plugin that was built for this version",
                 GPUHAL_ABI_MAJOR, GPUHAL_ABI_MINOR + later, GPUHAL_ABI_MAJOR, GPUHAL_ABI_MINOR);
        assert_int_equal(gpuhal_direct_load(test_plugin(name), &plugin, NULL), GPUHAL_ERROR_INCOMPATIBLE);
        assert_non_null(strstr(gpuhal_last_error()->sentence, words));
        gpuhal_settings settings = own_settings();
        settings.plugin_path = gpuhal_text_format("%s/%s", GPUHAL_TEST_PLUGINS, name);
        gpuhal_candidates candidates = run_loader(&settings);
        const gpuhal_candidate *candidate = find_candidate(&candidates, "example");
        assert_int_equal(candidate->state, GPUHAL_PLUGIN_INCOMPATIBLE);
        words[strcspn(words, ",")] = ';';
        assert_non_null(strstr(candidate->reason, words));
        gpuhal_candidates_finish(&candidates);
        free(settings.plugin_path);
    }
}

TEST(a_plugin_for_this_version_and_the_next_returns_the_table_of_this_version)
{
    assert_int_equal(version_of("two_abis"), GPUHAL_ABI);
    copies_bytes(GPUHAL_TEST_PLUGINS "/two_abis", GPUHAL_HELPER, "example:0");
}

#include "test_main.h"
