/* Links: distances between PCI devices, NUMA nodes, memory near a node, and the resulting facts for devices of any
 * backend. The trees of several machines are text files in tests/recorded/pci. To add a machine, add a file. */
#include "support/mock.h"
#include "test.h"

#include "base/text.h"
#include "device/link.h"

#include <linux/mempolicy.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- trees */

static void make_folders(const char *path)
{
    char part[1024];
    for (size_t i = 1; path[i]; i++) {
        if (path[i] == '/') {
            snprintf(part, sizeof part, "%.*s", (int)i, path);
            mkdir(part, 0700);
        }
    }
}

static void write_file(const char *path, const char *text)
{
    make_folders(path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%s\n", text);
    fclose(file);
}

/* Adds a device below the root: its path, like "/devices/pci0000:00/0000:01:00.0", and its NUMA node, like "0". */
static void add_device(const char *root, const char *place, const char *node)
{
    char path[1024], link[1024];
    snprintf(path, sizeof path, "%s/sys%s/numa_node", root, place);
    write_file(path, node);
    snprintf(path, sizeof path, "../../..%s", place);
    snprintf(link, sizeof link, "%s/sys/bus/pci/devices/%s", root, strrchr(place, '/') + 1);
    make_folders(link);
    assert_int_equal(symlink(path, link), 0);
}

static unsigned expect_link(const char *root, const char *one, const char *other, const char *wanted)
{
    const char *there = gpuhal_link_kind_name(gpuhal_pci_link_kind(root, one, other));
    const char *back = gpuhal_link_kind_name(gpuhal_pci_link_kind(root, other, one));
    if (strcmp(there, wanted) != 0 || strcmp(back, wanted) != 0) {
        fail_msg("%s to %s: %s, and back: %s; wanted %s", one, other, there, back, wanted);
    }
    return 1;
}

static unsigned expect_node(const char *root, const char *address, const char *wanted)
{
    uint32_t node = 0;
    char found[16] = "unknown";
    if (gpuhal_pci_node(root, address, &node)) {
        snprintf(found, sizeof found, "%u", node);
    }
    assert_string_equal(found, wanted);
    return 1;
}

/* Executes one line of a tree's text. Returns the number of expectations in the line. */
static unsigned obey(const char *root, char *line)
{
    char word[16] = "", first[512] = "", second[512] = "", third[64] = "", path[1024];
    int count = sscanf(line, "%15s %511s %511s %63s", word, first, second, third);
    if (count < 1 || *word == '#') {
        return 0;
    }
    if (strcmp(word, "online") == 0) {
        snprintf(path, sizeof path, "%s/sys/devices/system/node/online", root);
        write_file(path, first);
        return 0;
    }
    if (strcmp(word, "device") == 0 && count == 3) {
        add_device(root, first, second);
        return 0;
    }
    if (strcmp(word, "link") == 0 && count == 4) {
        return expect_link(root, first, second, third);
    }
    if (strcmp(word, "node") == 0 && count == 3) {
        return expect_node(root, first, second);
    }
    fail_msg("no such line: %s", line);
    return 0;
}

static unsigned play(const char *file)
{
    char root[] = "/tmp/gpuhal-pci-XXXXXX", line[1200], command[64];
    unsigned expectations = 0;
    assert_non_null(mkdtemp(root));
    FILE *tree = fopen(file, "r");
    assert_non_null(tree);
    while (fgets(line, sizeof line, tree)) {
        expectations += obey(root, line);
    }
    fclose(tree);
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
    return expectations;
}

TEST(distances_and_nodes_of_recorded_machines_match_their_expectations)
{
    char **names = NULL;
    size_t count = 0;
    unsigned expectations = 0;
    assert_int_equal(gpuhal_os_directory_names(GPUHAL_RECORDED_TREES, &names, &count), 0);
    for (size_t i = 0; i < count; i++) {
        char path[1024];
        snprintf(path, sizeof path, GPUHAL_RECORDED_TREES "/%s", names[i]);
        print_message("%s\n", names[i]);
        expectations += play(path);
    }
    gpuhal_os_names_free(names, count);
    assert_true(expectations >= 20);
}

TEST(a_system_without_a_tree_yields_no_facts)
{
    uint32_t node = 7;
    assert_int_equal(gpuhal_pci_link_kind("/nowhere", "0000:01:00.0", "0000:02:00.0"), 0);
    assert_false(gpuhal_pci_node("/nowhere", "0000:01:00.0", &node));
}

/* ---- devices */

static uint64_t kind_between(gpuhal *gpu, uint32_t from, uint32_t to)
{
    uint64_t kind = 0;
    assert_int_equal(gpuhal_link_u64(gpuhal_device_at(gpu, from), gpuhal_device_at(gpu, to), GPUHAL_LINK_KIND, &kind),
                     GPUHAL_OK);
    return kind;
}

TEST(devices_in_host_memory_share_it_and_parts_of_one_device_are_a_board)
{
    gpuhal_mock.count = 5;
    gpuhal_mock.devices[1] = (gpuhal_mock_device){.type = GPUHAL_DEVICE_INTEGRATED_GPU};
    gpuhal_mock.devices[2] = (gpuhal_mock_device){.type = GPUHAL_DEVICE_CPU, .software = 1};
    gpuhal_mock.devices[3] = (gpuhal_mock_device){.pci = "ffff:c1:00.0"};
    gpuhal_mock.devices[4] = (gpuhal_mock_device){.pci = "ffff:c1:00.0"};
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    assert_int_equal(gpuhal_device_count(gpu), 6);
    assert_int_equal(kind_between(gpu, 1, 2), GPUHAL_LINK_SAME_MEMORY);
    assert_int_equal(kind_between(gpu, 5, 1), GPUHAL_LINK_SAME_MEMORY);
    assert_int_equal(kind_between(gpu, 3, 4), GPUHAL_LINK_SAME_BOARD);
    assert_int_equal(kind_between(gpu, 0, 1), GPUHAL_LINK_HOST);
    assert_int_equal(kind_between(gpu, 0, 3), GPUHAL_LINK_HOST);
    gpuhal_close(gpu);
}

TEST(a_link_fact_without_a_source_is_missing_with_its_reason)
{
    gpuhal_mock.count = 2;
    gpuhal *gpu = gpuhal_mock_open(NULL, 1);
    gpuhal_device *one = gpuhal_device_at(gpu, 0), *other = gpuhal_device_at(gpu, 1), *cpu = gpuhal_device_at(gpu, 2);
    const char *why = NULL;
    uint64_t value = 1;
    assert_int_equal(gpuhal_link_missing(one, other, GPUHAL_LINK_PEER_ADVERTISED, &why), GPUHAL_MISSING_NOT_SUPPORTED);
    assert_string_equal(why, "the backend reports no links");
    assert_int_equal(gpuhal_link_missing(one, cpu, GPUHAL_LINK_BANDWIDTH_BYTES_PER_SECOND, &why),
                     GPUHAL_MISSING_NOT_SUPPORTED);
    assert_string_equal(why, "the two are devices of two backends");
    assert_int_equal(gpuhal_link_missing(one, other, GPUHAL_LINK_KIND, &why), 0);
    assert_string_equal(why, "");
    assert_int_equal(gpuhal_link_u64(one, cpu, GPUHAL_LINK_COUNT, &value), GPUHAL_ERROR_NOT_SUPPORTED);
    assert_int_equal(value, 0);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "mock:0 to cpu:0: link_count is missing: not supported: "));
    assert_int_equal(gpuhal_link_text(one, other, GPUHAL_LINK_KIND, &why), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_string_equal(gpuhal_last_error()->sentence, "link_kind is a number: use gpuhal_link_u64()");
    assert_int_equal(gpuhal_link_u64(one, other, GPUHAL_FACT_NAME, &value), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_string_equal(gpuhal_last_error()->sentence, "name is not a fact of a link");
    gpuhal_close(gpu);
}

TEST(devices_without_peer_access_are_verified_by_the_way_that_copies_take)
{
    gpuhal_mock.count = 3;
    gpuhal_mock.devices[0].hidden = gpuhal_mock.devices[1].hidden = 1;
    gpuhal_mock.devices[1].copy_alignment = 4;
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_device *one = gpuhal_device_at(gpu, 0), *other = gpuhal_device_at(gpu, 1),
                  *visible = gpuhal_device_at(gpu, 2);
    uint64_t value = 0;
    assert_int_equal(gpuhal_link_verify(one, other), GPUHAL_OK);
    assert_int_equal(gpuhal_link_u64(one, other, GPUHAL_LINK_PATH, &value), GPUHAL_OK);
    assert_int_equal(value, GPUHAL_PATH_STAGED);
    assert_int_equal(gpuhal_link_verify(visible, one), GPUHAL_OK);
    assert_int_equal(gpuhal_link_u64(visible, one, GPUHAL_LINK_PATH, &value), GPUHAL_OK);
    assert_int_equal(value, GPUHAL_PATH_SHARED);
    assert_int_equal(gpuhal_link_u64(visible, one, GPUHAL_LINK_VERIFIED, &value), GPUHAL_OK);
    assert_int_equal(value, 1);
    assert_int_equal(gpuhal_mock.devices[0].allocated_bytes + gpuhal_mock.devices[1].allocated_bytes, 0);
    gpuhal_close(gpu);
}

TEST(a_small_memory_limit_is_no_hindrance_and_one_that_is_too_small_is_said)
{
    gpuhal_mock.count = 2;
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    gpuhal_device *one = gpuhal_device_at(gpu, 0), *other = gpuhal_device_at(gpu, 1);
    assert_int_equal(gpuhal_device_limit_memory(other, 5u << 20), GPUHAL_OK);
    assert_int_equal(gpuhal_link_verify(one, other), GPUHAL_OK);
    assert_int_equal(gpuhal_device_limit_memory(other, 1u << 20), GPUHAL_OK);
    assert_int_equal(gpuhal_link_verify(other, one), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_int_equal(gpuhal_link_missing(other, one, GPUHAL_LINK_VERIFIED, NULL), GPUHAL_MISSING_NOT_READ);
    gpuhal_close(gpu);
}

TEST(names_of_kinds_and_paths_are_those_of_the_documents)
{
    assert_string_equal(gpuhal_link_kind_name(GPUHAL_LINK_NVLINK_SWITCH), "nvlink_switch");
    assert_string_equal(gpuhal_link_kind_name(GPUHAL_LINK_SYSTEM), "system");
    assert_string_equal(gpuhal_link_kind_name(GPUHAL_LINK_SAME_MEMORY), "same_memory");
    assert_string_equal(gpuhal_link_kind_name(GPUHAL_LINK_HOST), "host");
    assert_string_equal(gpuhal_link_kind_name(99), "unknown");
    assert_string_equal(gpuhal_path_name(GPUHAL_PATH_PEER), "peer");
    assert_string_equal(gpuhal_path_name(GPUHAL_PATH_STAGED), "staged");
    assert_string_equal(gpuhal_path_name(99), "unknown");
}

/* ---- memory near a node */

TEST(pages_near_a_node_prefer_that_node_if_the_system_allows_it)
{
    int mode = -1;
    unsigned long nodes[16] = {0};
    unsigned char *pages = gpuhal_os_pages_map_on(1u << 20, 0);
    assert_non_null(pages);
    if (syscall(SYS_get_mempolicy, &mode, nodes, 1024ul, pages, (unsigned long)MPOL_F_ADDR) == 0 &&
        mode != MPOL_DEFAULT) {
        assert_int_equal(mode, MPOL_PREFERRED);
        assert_int_equal(nodes[0], 1);
    }
    assert_int_equal(pages[0] + pages[(1u << 20) - 1], 0);
    memset(pages, 7, 1u << 20);
    gpuhal_os_pages_unmap(pages, 1u << 20);
}

TEST(pages_near_a_node_that_is_not_there_are_ordinary_pages)
{
    static const uint32_t nodes[] = {1000, 1023, 1024, UINT32_MAX};
    for (size_t i = 0; i < 4; i++) {
        unsigned char *pages = gpuhal_os_pages_map_on(8192, nodes[i]);
        assert_non_null(pages);
        memset(pages, 7, 8192);
        gpuhal_os_pages_unmap(pages, 8192);
    }
}

#include "test_main.h"
