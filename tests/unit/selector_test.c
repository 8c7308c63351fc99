/* The choice of devices: selectors, hidden devices, and the errors if no device matches. */
#include "support/mock.h"
#include "support/record.h"
#include "test.h"

#include <unistd.h>

static const char *chosen(gpuhal *gpu, const char *selector, uint32_t flags)
{
    gpuhal_device *device = NULL;
    const char *reason = NULL;
    if (gpuhal_select(gpu, selector, flags, &device, &reason)) {
        assert_null(device);
        return "none";
    }
    assert_non_null(reason);
    assert_true(strlen(reason) > 0);
    return gpuhal_device_id(device);
}

TEST(selectors_choose_the_device_that_they_name)
{
    gpuhal_mock_five_kinds();
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    assert_string_equal(chosen(gpu, NULL, 0), "mock:2");
    assert_string_equal(chosen(gpu, "auto", 0), "mock:2");
    assert_string_equal(chosen(gpu, "gpu", 0), "mock:2");
    assert_string_equal(chosen(gpu, "cpu", 0), "cpu:0");
    assert_string_equal(chosen(gpu, "mock", 0), "mock:2");
    assert_string_equal(chosen(gpu, "mock:0", 0), "mock:0");
    assert_string_equal(chosen(gpu, "mock:4", 0), "mock:4");
    assert_string_equal(chosen(gpu, "pci=0000:C2:00.0", 0), "mock:3");
    assert_string_equal(chosen(gpu, "uuid=01234567-89AB-cdef-0123-456789abcdef", 0), "mock:2");
    assert_string_equal(chosen(gpu, "name=*gpu 900?", 0), "mock:2");
    assert_string_equal(chosen(gpu, "name=*9001", 0), "mock:3");
    assert_string_equal(chosen(gpu, "name=*0*01*", 0), "mock:3"); /* the first 0 is followed by another digit */
    assert_string_equal(chosen(gpu, "name=*9001?", 0), "none");
    gpuhal_close(gpu);
}

/* The GPU's compute mode does not allow programs. A program that selects the GPU by name cannot open it. */
TEST(a_prohibited_gpu_is_selected_by_its_name_alone)
{
    gpuhal_mock_five_kinds();
    gpuhal_mock.devices[2].compute_mode = GPUHAL_COMPUTE_PROHIBITED;
    gpuhal_mock.devices[3].compute_mode = GPUHAL_COMPUTE_EXCLUSIVE;
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    gpuhal_device *device = NULL;
    const char *reason = NULL;
    assert_int_equal(gpuhal_select(gpu, "auto", 0, &device, &reason), GPUHAL_OK);
    assert_string_equal(gpuhal_device_id(device), "mock:3");
    assert_non_null(strstr(reason, "(the compute mode of mock:2 is prohibited)"));
    assert_string_equal(chosen(gpu, "gpu", 0), "mock:3");
    assert_string_equal(chosen(gpu, "mock:2", 0), "mock:2");
    gpuhal_close(gpu);
}

/* The table has the formats of nvidia-smi, lspci and other tools, and sets in shell syntax. The list of preferred
 * interfaces is mock:1 to mock:4, then cpu:0; mock:0 is a software device. */
TEST(selectors_are_accepted_as_vendors_print_them_and_people_write_them)
{
    static const struct {
        const char *selector, *id;
    } cases[] = {
        {"pci=c2:00.0", "mock:3"},
        {"c2:00.0", "mock:3"},
        {"0000:c2:00.0", "mock:3"},
        {"00000000:C2:00.0", "mock:3"},
        {"GPU-01234567-89ab-cdef-0123-456789abcdef", "mock:2"},
        {"uuid=GPU-01234567-89ab-cdef-0123-456789abcdef", "mock:2"},
        {"01234567-89ab-cdef-0123-456789abcdef", "mock:2"},
        {"gpu-01234567", "mock:2"},
        {"GPU-0", "mock:2"},
        {"GPU-0123456789abcdef", "mock:2"},
        {"uuid=01234567-89", "mock:2"},
        {"0", "mock:1"},
        {"1", "mock:2"},
        {"3", "mock:4"},
        {"4", "cpu:0"},
        {"0-4", "mock:2"},
        {"mock:3-4", "mock:3"},
        {"mock:3,4", "mock:3"},
        {"mock:4,1-2", "mock:2"},
        {"mock:*", "mock:2"},
        {"*", "mock:2"},
        {"*:0", "cpu:0"}, /* mock:0 is a software device */
        {"m?ck:4", "mock:4"},
        {"cpu:0,mock:1", "mock:1"},
        {" mock:1 , mock:3\t", "mock:3"},
        {"name=*9001,mock:4", "mock:3"},
    };
    gpuhal_mock_five_kinds();
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(chosen(gpu, cases[i].selector, 0), cases[i].id) != 0) {
            fail_msg("\"%s\" selects %s and not %s", cases[i].selector, chosen(gpu, cases[i].selector, 0), cases[i].id);
        }
    }
    gpuhal_close(gpu);
}

/* Writes the ids that `selectors` leaves visible, like "mock:0 mock:2 ". */
static void visible(const char *selectors, char ids[256])
{
    gpuhal *gpu = gpuhal_mock_open(&(gpuhal_config){.devices = selectors}, 1);
    *ids = 0;
    for (uint32_t i = 0; i < gpuhal_device_count(gpu); i++) {
        snprintf(ids + strlen(ids), 256 - strlen(ids), "%s ", gpuhal_device_id(gpuhal_device_at(gpu, i)));
    }
    gpuhal_close(gpu);
}

TEST(a_list_leaves_the_devices_of_its_ranges_globs_numbers_and_uuids_visible)
{
    static const char *const cases[][2] = {
        {"mock:1-3", "mock:1 mock:2 mock:3 "},
        {"mock:1,2", "mock:1 mock:2 "},
        {"mock:0,2-3,cpu", "mock:0 mock:2 mock:3 cpu:0 "},
        {"mock:*", "mock:0 mock:1 mock:2 mock:3 mock:4 "},
        {"0,1", "mock:1 mock:2 "}, /* mock:0 is an interface of the CPU */
        {"0-1", "mock:1 mock:2 "},
        {"4", "mock:0 cpu:0 "},
        {"GPU-01234567,mock:4", "mock:2 mock:4 "},
        {"c2:00.0", "mock:3 "},
        {"cpu,0", "mock:1 cpu:0 "}, /* a number continues an id, not a backend */
    };
    gpuhal_mock_five_kinds();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char ids[256];
        visible(cases[i][0], ids);
        if (strcmp(ids, cases[i][1]) != 0) {
            fail_msg("\"%s\" leaves %s", cases[i][0], ids);
        }
    }
}

TEST(a_range_leaves_the_devices_of_its_numbers_and_needs_each_of_them)
{
    gpuhal_mock = (gpuhal_mock_state){.count = GPUHAL_MOCK_DEVICES};
    for (uint32_t first = 0; first < GPUHAL_MOCK_DEVICES; first += 3) {
        for (uint32_t last = first; last < GPUHAL_MOCK_DEVICES; last += 2) {
            char range[32], list[128], ids[256], other[256];
            snprintf(range, sizeof range, "mock:%u-%u", first, last);
            snprintf(list, sizeof list, "mock:%u", last);
            for (uint32_t number = first; number < last; number++) {
                snprintf(list + strlen(list), sizeof list - strlen(list), ",%u", number);
            }
            visible(range, ids);
            visible(list, other);
            assert_string_equal(ids, other);
            visible(range + strlen("mock:"), other); /* the whole list has no other device before them */
            assert_string_equal(ids, other);
        }
    }
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    gpuhal_device *device = NULL;
    assert_int_equal(gpuhal_select(gpu, "mock:8-4294967295", 0, &device, NULL), GPUHAL_ERROR_NOT_FOUND);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "no device matches \"mock:10\""));
    assert_int_equal(gpuhal_select(gpu, "0-11", 0, &device, NULL), GPUHAL_ERROR_NOT_FOUND);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "no device matches \"11\""));
    gpuhal_close(gpu);
}

static void expect_ambiguous(gpuhal *gpu, const char *selector, const char *one, const char *other)
{
    gpuhal_device *device = NULL;
    assert_int_equal(gpuhal_select(gpu, selector, GPUHAL_SELECT_ALLOW_CPU, &device, NULL),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    const char *sentence = gpuhal_last_error()->sentence;
    if (!strstr(sentence, "is ambiguous") || !strstr(sentence, one) || !strstr(sentence, other)) {
        fail_msg("%s", sentence);
    }
}

TEST(the_beginning_of_a_uuid_selects_its_device_or_names_the_candidates)
{
    static const char *const uuids[] = {"6a1b2c3d-0011-4455-6677-8899aabbccdd", "6a1b2c3d-0011-4455-6677-8899aabbccde",
                                        "6a1b9999-0000-0000-0000-000000000001"};
    gpuhal_mock = (gpuhal_mock_state){.count = 3};
    for (size_t i = 0; i < 3; i++) {
        gpuhal_mock.devices[i].uuid = uuids[i];
    }
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    for (size_t i = 0; i < 3; i++) {
        for (size_t length = 1; length <= strlen(uuids[i]); length++) {
            char selector[64], id[16];
            size_t others = 0, other = 0;
            for (size_t k = 0; k < 3; k++) {
                others += k != i && strncmp(uuids[k], uuids[i], length) == 0;
                other = k != i && strncmp(uuids[k], uuids[i], length) == 0 ? k : other;
            }
            snprintf(selector, sizeof selector, "GPU-%.*s", (int)length, uuids[i]);
            snprintf(id, sizeof id, "mock:%zu", i);
            if (others) {
                expect_ambiguous(gpu, selector, uuids[i], uuids[other]);
            } else {
                assert_string_equal(chosen(gpu, selector, 0), id);
            }
        }
    }
    gpuhal_close(gpu);
    gpuhal_builtin_fn *const builtins[] = {gpuhal_mock_query, NULL};
    const gpuhal_config config = {.size = sizeof config,
                                  .ignore_environment = 1,
                                  .registry = "none",
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .builtins = builtins,
                                  .devices = "GPU-6a1b2c"};
    assert_int_equal(gpuhal_open(&config, &gpu), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "config.devices: \"GPU-6a1b2c\" is ambiguous"));
}

TEST(an_address_without_its_domain_that_two_domains_have_names_the_candidates)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 2, .devices = {{.pci = "0001:00:00.0"}, {.pci = "0002:00:00.0"}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    expect_ambiguous(gpu, "00:00.0", "mock:0 (0001:00:00.0)", "mock:1 (0002:00:00.0)");
    assert_string_equal(chosen(gpu, "2:00:00.0", 0), "mock:1");
    gpuhal_close(gpu);
}

/* HIP's UUID has 16 characters, which rocminfo prints after GPU-. A partition of a GPU in MIG mode has its own UUID. */
TEST(uuids_of_amd_and_of_partitions_are_selected_as_their_tools_print_them)
{
    static const char part[] = "33333333-4444-5555-6666-777777777777";
    static const char shared[] = "62316232-6333-6434-6535-663630373138"; /* AMD's partitions share this UUID */
    gpuhal_mock = (gpuhal_mock_state){.count = 5,
                                      .devices = {{.uuid = "61316232-6333-6434-6535-663630373138"},
                                                  {.uuid = part, .partition = part, .pci = "0000:61:00.0"},
                                                  {.uuid = "33333333-0000-5555-6666-777777777777"},
                                                  {.uuid = shared, .partition = "0", .pci = "0000:62:00.0"},
                                                  {.uuid = shared, .partition = "1", .pci = "0000:62:00.0"}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    assert_string_equal(chosen(gpu, "GPU-a1b2c3d4e5f60718", 0), "mock:0");
    assert_string_equal(chosen(gpu, "A1b2c3d4e5f60718", 0), "mock:0");
    assert_string_equal(chosen(gpu, "uuid=a1b2", 0), "mock:0");
    assert_string_equal(chosen(gpu, "GPU-a1b2", 0), "mock:0");
    assert_string_equal(chosen(gpu, "GPU-61316232-6333-6434-6535-663630373138", 0), "mock:0");
    assert_string_equal(chosen(gpu, "GPU-a1b2c3d4e5f607189", 0), "none");
    assert_string_equal(chosen(gpu, "MIG-33333333-4444-5555-6666-777777777777", 0), "mock:1");
    assert_string_equal(chosen(gpu, "MIG-3", 0), "mock:1");
    assert_string_equal(chosen(gpu, "GPU-b1b2c3d4e5f60718", 0), "mock:3");
    expect_ambiguous(gpu, "GPU-33333333", "mock:1", "mock:2");
    expect_ambiguous(gpu, "uuid=6", "mock:0 (GPU-a1b2c3d4e5f60718)", "mock:3 (GPU-b1b2c3d4e5f60718)");
    assert_string_equal(chosen(gpu, "MIG-9", 0), "none");
    gpuhal_close(gpu);
}

TEST(a_selector_that_matches_nothing_is_an_error_that_names_it_unless_the_cpu_is_allowed)
{
    gpuhal_mock_five_kinds();
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    gpuhal_device *device = NULL;
    const char *const nothing[] = {"mock:9",           "cuda",         "cuda:0",
                                   "pci=0000:ff:00.0", "name=nothing", "uuid=00000000-0000-0000-0000-00000000ffff",
                                   "pci=0000:00:00.0"};
    for (size_t i = 0; i < sizeof nothing / sizeof *nothing; i++) {
        assert_int_equal(gpuhal_select(gpu, nothing[i], 0, &device, NULL), GPUHAL_ERROR_NOT_FOUND);
        assert_non_null(strstr(gpuhal_last_error()->sentence, nothing[i]));
        assert_string_equal(chosen(gpu, nothing[i], GPUHAL_SELECT_ALLOW_CPU), "cpu:0");
    }
    assert_int_equal(gpuhal_select(NULL, "auto", 0, &device, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_select(gpu, "auto", 8, &device, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_select(gpu, "auto", 0, NULL, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_close(gpu);
}

/* Malformed selectors, each with the words in which the message must name the wrong part. */
static const struct {
    const char *selector, *problem;
} malformed[] = {
    {"mock:", "no index follows \"mock:\""},
    {"mock:x", "\"x\" is not an index"},
    {"mock:-1", "\"-1\" is not an index"},
    {"mock:1:2", "\"1:2\" is not an index"},
    {"mock:99999999999", "\"99999999999\" is not an index"},
    {"mock:1-", "\"1-\" is not an index"},
    {"mock:3-1", "the range \"3-1\" ends before it begins"},
    {"0x", "\"0x\" is not an index"},
    {"1-2-3", "\"1-2-3\" is not an index"},
    {"01234567890123456789", "is not an index"},
    {"MOCK:*", "a glob of ids has lower-case letters"},
    {"GPU-", "\"GPU-\" is not a UUID"},
    {"GPU-012-34", "\"GPU-012-34\" is not a UUID"},
    {"MIG-zz", "\"MIG-zz\" is not a UUID"},
    {"GPU-01234567-89ab-cdef-0123-456789abcdef0", "is not a UUID"},
    {"c1:20.0", "\"c1:20.0\" is not a PCI address"},
    {"pci=1:2:3:0.0", "\"1:2:3:0.0\" is not a PCI address"},
    {":1", "no backend stands before \":\""},
    {"MOCK", "\"MOCK\" is not the name of a backend"},
    {"a b", "\"a b\" is not the name of a backend"},
    {"uuid:zz", "no \"=\" follows \"uuid\""},
    {"pci", "no \"=\" follows \"pci\""},
    {"gpu:0", "\"gpu\" takes no index"},
    {"auto:0", "\"auto\" takes no index"},
    {"speed=9", "\"speed\" before \"=\" is not pci, uuid, name or env"},
    {"=", "\"\" before \"=\" is not pci"},
    {"pci=", "nothing follows \"pci=\""},
    {"pci=c1.00.0", "\"c1.00.0\" is not a PCI address"},
    {"pci=0000:01:20.0", "\"0000:01:20.0\" is not a PCI address"},
    {"uuid=zz", "\"zz\" is not a UUID"},
};
enum { MALFORMED = sizeof malformed / sizeof *malformed };

static void expect_named(const char *selector, const char *problem)
{
    const char *sentence = gpuhal_last_error()->sentence;
    if (!strstr(sentence, selector) || !strstr(sentence, problem) || !strstr(sentence, "expected auto, gpu, ")) {
        fail_msg("\"%s\" does not say of %s: %s", sentence, selector, problem);
    }
}

TEST(a_malformed_selector_is_an_invalid_argument_that_names_the_part_and_the_grammar)
{
    gpuhal_mock_five_kinds();
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    gpuhal_device *device = NULL;
    char long_name[400] = "name=";
    memset(long_name + 5, 'x', sizeof long_name - 6);
    for (size_t i = 0; i < MALFORMED; i++) {
        assert_int_equal(gpuhal_select(gpu, malformed[i].selector, GPUHAL_SELECT_ALLOW_CPU, &device, NULL),
                         GPUHAL_ERROR_INVALID_ARGUMENT);
        expect_named(malformed[i].selector, malformed[i].problem);
    }
    assert_int_equal(gpuhal_select(gpu, long_name, 0, &device, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    expect_named("name=xxx", "it has more than 127 bytes");
    assert_int_equal(gpuhal_select(gpu, " ", 0, &device, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    expect_named("\" \"", "it is blank");
    assert_string_equal(chosen(gpu, " mock:0\t", 0), "mock:0");
    gpuhal_close(gpu);
}

TEST(a_malformed_selector_in_a_list_is_named_before_one_that_matches_nothing)
{
    gpuhal_mock_five_kinds();
    gpuhal_builtin_fn *const builtins[] = {gpuhal_mock_query, gpuhal_mock_cpu_query, NULL};
    gpuhal_config config = {
        .size = sizeof config, .registry = "none", .isolation = GPUHAL_ISOLATION_NEVER, .builtins = builtins};
    gpuhal *gpu = NULL;
    for (size_t i = 0; i < MALFORMED; i++) {
        char list[128];
        snprintf(list, sizeof list, "nosuch:9,%s", malformed[i].selector);
        setenv("GPUHAL_DEVICES", list, 1);
        assert_int_equal(gpuhal_open(&config, &gpu), GPUHAL_ERROR_INVALID_ARGUMENT);
        expect_named(malformed[i].selector, malformed[i].problem);
        assert_non_null(strstr(gpuhal_last_error()->sentence, "GPUHAL_DEVICES: "));
        unsetenv("GPUHAL_DEVICES");
    }
    config.devices = ",";
    assert_int_equal(gpuhal_open(&config, &gpu), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "config.devices: invalid selector \",\": it is blank, and "));
    config.devices = "nosuch:9";
    assert_int_equal(gpuhal_open(&config, &gpu), GPUHAL_ERROR_NOT_FOUND);
}

static const gpuhal_plugin *no_driver(uint32_t host_abi, const gpuhal_host *host)
{
    (void)host_abi;
    (void)host->report(host, GPUHAL_ERROR_INCOMPATIBLE, NULL, 0, "the moon is in the wrong phase");
    return NULL;
}

TEST(a_selector_without_a_match_says_why_and_names_the_available_devices)
{
    gpuhal_mock_five_kinds();
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    gpuhal_device *device = NULL;
    assert_int_equal(gpuhal_select(gpu, "mockk", 0, &device, NULL), GPUHAL_ERROR_NOT_FOUND);
    assert_non_null(strstr(gpuhal_last_error()->sentence,
                           "there is no plugin \"mockk\"; available: mock:0, mock:1, mock:2, mock:3, mock:4, cpu:0"));
    assert_int_equal(gpuhal_select(gpu, "mock:9", 0, &device, NULL), GPUHAL_ERROR_NOT_FOUND);
    assert_null(strstr(gpuhal_last_error()->sentence, "plugin"));
    assert_non_null(strstr(gpuhal_last_error()->sentence, "available: mock:0"));
    gpuhal_close(gpu);
    gpuhal_builtin_fn *const builtins[] = {no_driver, gpuhal_mock_cpu_query, NULL};
    const gpuhal_config config = {.size = sizeof config,
                                  .ignore_environment = 1,
                                  .registry = "none",
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .builtins = builtins};
    assert_int_equal(gpuhal_open(&config, &gpu), GPUHAL_OK);
    gpuhal_plugin_report report = {.size = sizeof report};
    for (uint32_t i = 0; record_now(gpu, GPUHAL_RECORD_PLUGIN, i, &report) == GPUHAL_OK; i++) {
        if (report.state != GPUHAL_PLUGIN_OK && *report.name) {
            assert_int_equal(gpuhal_select(gpu, report.name, 0, &device, NULL), GPUHAL_ERROR_NOT_FOUND);
            assert_non_null(strstr(gpuhal_last_error()->sentence, report.reason));
            assert_non_null(strstr(gpuhal_last_error()->sentence, "available: cpu:0"));
        }
    }
    gpuhal_close(gpu);
}

static void keep_warnings(void *user, int32_t level, const char *line)
{
    char *kept = user;
    if (level == 2 && strstr(line, "no plugin was found")) {
        snprintf(kept, 512, "%s", line);
    }
}

TEST(without_any_plugin_a_warning_and_every_selector_name_the_searched_folders)
{
    char warning[512] = "", folder[] = "/tmp/gpuhal-empty-XXXXXX";
    assert_non_null(mkdtemp(folder));
    const gpuhal_config config = {.size = sizeof config,
                                  .ignore_environment = 1,
                                  .registry = "none",
                                  .plugin_path = folder,
                                  .log = keep_warnings,
                                  .log_user = warning};
    gpuhal *gpu = NULL;
    gpuhal_device *device = NULL;
    assert_int_equal(gpuhal_open(&config, &gpu), GPUHAL_OK);
    if (records_now(gpu, GPUHAL_RECORD_PLUGIN) > 0) {
        SKIP_TEST("plugins are installed on this machine");
    }
    assert_non_null(strstr(warning, folder));
    assert_non_null(strstr(warning, "/etc/gpuhal/plugins.d"));
    assert_int_equal(gpuhal_select(gpu, "auto", 0, &device, NULL), GPUHAL_ERROR_NOT_FOUND);
    assert_non_null(strstr(gpuhal_last_error()->sentence, folder));
    gpuhal_close(gpu);
    rmdir(folder);
}

TEST(software_devices_never_outrank_the_cpu_and_the_reason_says_so)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.name = "soft", .software = 1}}};
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    gpuhal_device *device = NULL;
    const char *reason = NULL;
    assert_int_equal(gpuhal_select(gpu, "auto", 0, &device, &reason), GPUHAL_OK);
    assert_string_equal(gpuhal_device_id(device), "cpu:0");
    assert_non_null(strstr(reason, "mock:0"));
    assert_string_equal(chosen(gpu, "gpu", 0), "none");
    assert_string_equal(chosen(gpu, "mock", 0), "mock:0");
    uint32_t physical = 9, preferred = 9, cpu_physical = 9, cpu_preferred = 9;
    assert_int_equal(gpuhal_device_physical(gpuhal_device_at(gpu, 0), &physical, &preferred), GPUHAL_OK);
    assert_int_equal(gpuhal_device_physical(gpuhal_device_at(gpu, 1), &cpu_physical, &cpu_preferred), GPUHAL_OK);
    assert_int_equal(physical, cpu_physical);
    assert_int_equal(preferred, 0);
    assert_int_equal(cpu_preferred, 1);
    gpuhal_close(gpu);
}

TEST(hidden_devices_are_gone_and_the_others_keep_their_ids)
{
    gpuhal_mock_five_kinds();
    gpuhal *gpu = gpuhal_mock_open(&(gpuhal_config){.devices = "mock:3, cpu"}, 1);
    assert_int_equal(gpuhal_device_count(gpu), 2);
    assert_string_equal(gpuhal_device_id(gpuhal_device_at(gpu, 0)), "mock:3");
    assert_string_equal(gpuhal_device_id(gpuhal_device_at(gpu, 1)), "cpu:0");
    assert_string_equal(chosen(gpu, "auto", 0), "mock:3");
    assert_string_equal(chosen(gpu, "mock:2", 0), "none");
    gpuhal_close(gpu);
    gpuhal_config config = {.size = sizeof config,
                            .ignore_environment = 1,
                            .registry = "none",
                            .isolation = GPUHAL_ISOLATION_NEVER,
                            .devices = "mock:77"};
    gpuhal_builtin_fn *const builtins[] = {gpuhal_mock_query, NULL};
    config.builtins = builtins;
    gpu = (gpuhal *)&config;
    assert_int_equal(gpuhal_open(&config, &gpu), GPUHAL_ERROR_NOT_FOUND);
    assert_null(gpu);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "mock:77"));
}

/* Devices that the program does not allow stay hidden even if the environment names them. */
TEST(the_environment_narrows_the_devices_that_the_program_allows)
{
    static gpuhal_builtin_fn *const builtins[] = {gpuhal_mock_query, gpuhal_mock_cpu_query, NULL};
    static const struct {
        const char *allowed, *environment, *left; /* `left` is NULL if no device remains, which is an error */
        uint32_t notes;
    } cases[] = {
        {"mock:0,mock:1", "mock:1,mock:2", "mock:1", 0},
        {NULL, "mock:2", "mock:2", 0},
        {"mock", "mock:0", "mock:0", 0},
        {"mock:0,cpu", "mock:2", "cpu:0", 1},
        {"mock:0", "mock:2", NULL, 0},
        {"mock:0", NULL, "mock:0", 0},
    };
    gpuhal_mock = (gpuhal_mock_state){.count = 3};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gpuhal *gpu = NULL;
        const gpuhal_config config = {.size = sizeof config,
                                      .registry = "none",
                                      .isolation = GPUHAL_ISOLATION_NEVER,
                                      .builtins = builtins,
                                      .devices = cases[i].allowed,
                                      .backends = "mock"};
        assert_int_equal(
            cases[i].environment ? setenv("GPUHAL_DEVICES", cases[i].environment, 1) : unsetenv("GPUHAL_DEVICES"), 0);
        assert_int_equal(gpuhal_open(&config, &gpu), cases[i].left ? GPUHAL_OK : GPUHAL_ERROR_NOT_FOUND);
        if (!cases[i].left) {
            assert_non_null(strstr(gpuhal_last_error()->sentence, cases[i].allowed));
            assert_non_null(strstr(gpuhal_last_error()->sentence, cases[i].environment));
            continue;
        }
        assert_int_equal(gpuhal_device_count(gpu), 1);
        assert_string_equal(gpuhal_device_id(gpuhal_device_at(gpu, 0)), cases[i].left);
        gpuhal_note_info note = {.size = sizeof note};
        uint32_t notes = 0;
        for (uint32_t r = 0; record_now(gpu, GPUHAL_RECORD_NOTE, r, &note) == GPUHAL_OK; r++) {
            notes += strstr(note.text, "no device is in both") != NULL;
        }
        assert_int_equal(notes, cases[i].notes);
        assert_int_equal(gpuhal_rescan(gpu, NULL), GPUHAL_OK);
        assert_int_equal(gpuhal_device_count(gpu), 1);
        gpuhal_close(gpu);
    }
    unsetenv("GPUHAL_DEVICES");
}

TEST(when_the_preferred_interface_is_hidden_another_is_preferred)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1, .devices = {{.name = "[soft]", .software = 1}}};
    gpuhal *gpu = gpuhal_mock_open(&(gpuhal_config){.devices = "mock"}, 1);
    uint32_t physical = 9, preferred = 0;
    assert_int_equal(gpuhal_device_count(gpu), 1);
    assert_int_equal(gpuhal_device_physical(gpuhal_device_at(gpu, 0), &physical, &preferred), GPUHAL_OK);
    assert_int_equal(preferred, 1);
    assert_string_equal(chosen(gpu, "name=[soft]", 0), "mock:0");
    assert_string_equal(chosen(gpu, "name=*[a-z]*", 0), "none");
    gpuhal_device *device = NULL;
    assert_int_equal(gpuhal_select(gpu, "cpu", 0, &device, NULL), GPUHAL_ERROR_NOT_FOUND);
    assert_non_null(
        strstr(gpuhal_last_error()->sentence, "; available: mock:0; 1 is hidden by GPUHAL_DEVICES or config.devices"));
    assert_int_equal(gpuhal_select(gpu, "auto", 0, &device, NULL), GPUHAL_ERROR_NOT_FOUND);
    assert_non_null(strstr(gpuhal_last_error()->sentence,
                           "; ignored: mock:0 (software driver on the CPU; select it by name); 1 is hidden"));
    gpuhal_close(gpu);
    gpuhal_builtin_fn *const builtins[] = {gpuhal_mock_query, NULL};
    gpuhal_config config = {.size = sizeof config,
                            .ignore_environment = 1,
                            .registry = "none",
                            .isolation = GPUHAL_ISOLATION_NEVER,
                            .builtins = builtins,
                            .devices = "mock,"};
    assert_int_equal(gpuhal_open(&config, &gpu), GPUHAL_ERROR_INVALID_ARGUMENT);
}

#include "test_main.h"
