/* Lists of selectors: exclusions with `!`, one interface per physical device, and memory limits. */
#include "device/device.h"
#include "identity_support.h"

#define GIB(count) ((uint64_t)(count) << 30)

/* Makes a machine with the CPU, two GPUs that CUDA and Vulkan list, and one GPU that only Vulkan lists. */
static void make_machine(void)
{
    static const char *const pci[] = {"0000:41:00.0", "0000:c1:00.0", "0000:00:02.0"};
    static const char *const uuids[] = {"11111111-2222-3333-4444-555555555555", "99999999-2222-3333-4444-555555555555"};
    for (uint32_t i = 0; i < 5; i++) {
        const uint32_t card = i < 2 ? i : i - 2;
        recorded_device *device = add_device(i < 2 ? "cuda" : "vulkan", card == 2 ? "Small Graphics" : "Big GPU");
        keep_fact(device, "pci_address", pci[card]);
        keep_fact(device, "vendor_id", card == 2 ? "0x8086" : "0x10de");
        keep_fact(device, "memory_total_bytes", card == 2 ? "4294967296" : card == 1 ? "85899345920" : "25769803776");
        if (card < 2) {
            keep_fact(device, "uuid", uuids[card]);
        }
    }
    keep_fact(add_device("cpu", "Processor"), "memory_total_bytes", "34359738368");
}

static void read_ids(gpuhal *gpu, char ids[256])
{
    *ids = 0;
    for (uint32_t i = 0; i < gpuhal_device_count(gpu); i++) {
        snprintf(ids + strlen(ids), 256 - strlen(ids), "%s ", gpuhal_device_id(gpuhal_device_at(gpu, i)));
    }
}

TEST(an_exclusion_removes_its_matches_from_the_elements_before_it)
{
    static const char *const cases[][2] = {
        {"cuda:*,!cuda:1", "cuda:0 "},
        {"cuda,!1", "cuda:0 "}, /* a number selects a physical device */
        {"cuda:0-1,!0", "cuda:1 "}, /* except after an id, which the number continues */
        {"!cuda", "vulkan:0 vulkan:1 vulkan:2 cpu:0 "},
        {"!cuda:1", "cuda:0 vulkan:0 vulkan:1 vulkan:2 cpu:0 "},
        {"!GPU-99999999", "cuda:0 vulkan:0 vulkan:2 cpu:0 "},
        {"!41:00.0,!cpu", "cuda:1 vulkan:1 vulkan:2 "},
        {"!vulkan,vulkan:2", "cuda:0 cuda:1 vulkan:2 cpu:0 "}, /* later elements may add devices again */
        {"gpu,!name=small*", "cuda:0 cuda:1 vulkan:0 vulkan:1 "},
        {"gpu,!vulkan", "cuda:0 cuda:1 "},
        {"auto,!gpu", "cpu:0 "},
        {"cuda:0,!cuda:1", "cuda:0 "}, /* excludes a device that was not selected */
        {"each", "cuda:0 cuda:1 vulkan:2 cpu:0 "},
        {"each,!cpu", "cuda:0 cuda:1 vulkan:2 "},
        {"each,!cuda", "vulkan:2 cpu:0 "},
        {"vulkan,!each", "vulkan:0 vulkan:1 "},
    };
    make_machine();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char ids[256];
        gpuhal *gpu = open_machine(cases[i][0]);
        read_ids(gpu, ids);
        if (strcmp(ids, cases[i][1]) != 0) {
            fail_msg("\"%s\" leaves %s", cases[i][0], ids);
        }
        gpuhal_close(gpu);
    }
}

TEST(an_exclusion_alone_leaves_software_devices_for_select_as_for_a_filter)
{
    static const char *const cases[][3] = {
        {"!cpu", "vulkan:0 opencl:0 ", "vulkan:0"},
        {"!cpu,!vulkan", "opencl:0 ", "opencl:0"},
        {"!vulkan", "opencl:0 cpu:0 ", "cpu:0"},   /* a software device comes last */
        {"auto,!cpu", "vulkan:0 opencl:0 ", NULL}, /* `auto` selects no software device */
    };
    keep_fact(add_device("vulkan", "llvmpipe"), "software", "1");
    keep_fact(add_device("opencl", "pthread"), "software", "1");
    keep_fact(add_device("cpu", "Processor"), "memory_total_bytes", "34359738368");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char ids[256];
        gpuhal_device *device = NULL;
        gpuhal *filtered = open_machine(cases[i][0]), *gpu = open_machine(NULL);
        read_ids(filtered, ids);
        const gpuhal_status status = gpuhal_select(gpu, cases[i][0], 0, &device, NULL);
        const char *id = status ? NULL : gpuhal_device_id(device);
        if (strcmp(ids, cases[i][1]) != 0 || !id != !cases[i][2] || (id && strcmp(id, cases[i][2]) != 0)) {
            fail_msg("\"%s\" leaves %s and selects %s", cases[i][0], ids, id ? id : gpuhal_last_error()->sentence);
        }
        gpuhal_close(filtered);
        gpuhal_close(gpu);
    }
}

TEST(a_selected_device_is_one_that_the_exclusions_leave)
{
    static const char *const cases[][2] = {
        {"auto,!1", "cuda:0"},
        {"!cuda", "vulkan:1"}, /* the preferred interface is excluded, so the next one is selected */
        {"!cuda:1", "cuda:0"},
        {"!1", "cuda:0"},
        {"gpu,!cuda,!c1:00.0", "vulkan:0"},
        {"0-1,!cuda", "vulkan:1"},
        {"GPU-1,!cuda", "vulkan:0"},
        {"!gpu", "cpu:0"},
        {"vulkan,!vulkan:1", "vulkan:0"},
        {"each,!cuda", "vulkan:2"},
        {"!cpu", "cuda:1"},
        {"!cuda,cuda:0", "cuda:0"},
    };
    make_machine();
    gpuhal *gpu = open_machine(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gpuhal_device *device = NULL;
        const char *reason = NULL;
        if (gpuhal_select(gpu, cases[i][0], 0, &device, &reason)) {
            fail_msg("\"%s\": %s", cases[i][0], gpuhal_last_error()->sentence);
        }
        if (strcmp(gpuhal_device_id(device), cases[i][1]) != 0) {
            fail_msg("\"%s\" selects %s: %s", cases[i][0], gpuhal_device_id(device), reason);
        }
    }
    gpuhal_close(gpu);
}

static gpuhal_status try_open(const char *devices)
{
    gpuhal_config config = {.size = sizeof config,
                            .ignore_environment = 1,
                            .registry = "none",
                            .isolation = GPUHAL_ISOLATION_NEVER,
                            .builtins = replayed,
                            .devices = devices};
    gpuhal *gpu = NULL;
    const gpuhal_status status = gpuhal_open(&config, &gpu);
    gpuhal_close(gpu);
    return status;
}

TEST(an_exclusion_that_matches_nothing_and_a_list_that_leaves_nothing_are_not_found)
{
    static const struct {
        const char *list, *said;
    } cases[] = {
        {"cuda,!cuda:7", "no device matches \"!cuda:7\""},
        {"!rocm", "no device matches \"!rocm\""},
        {"cuda,!rocm:0-1", "no device matches \"!rocm:0\""},
        {"cuda,!cuda", "\"cuda,!cuda\" leaves no device"},
        {"!*", "\"!*\" leaves no device"},
    };
    make_machine();
    gpuhal *gpu = open_machine(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gpuhal_device *device = NULL;
        assert_int_equal(gpuhal_select(gpu, cases[i].list, 0, &device, NULL), GPUHAL_ERROR_NOT_FOUND);
        assert_non_null(strstr(gpuhal_last_error()->sentence, cases[i].said));
        assert_int_equal(try_open(cases[i].list), GPUHAL_ERROR_NOT_FOUND);
        assert_non_null(strstr(gpuhal_last_error()->sentence, cases[i].said));
    }
    gpuhal_close(gpu);
}

TEST(a_malformed_exclusion_or_limit_is_named_with_its_mistake)
{
    static const struct {
        const char *list, *said;
    } cases[] = {
        {"!", "nothing follows \"!\""},
        {"cuda,!", "nothing follows \"!\""},
        {"!!cuda", "\"!cuda\" is not the name of a backend"},
        {"! cuda", "\" cuda\" is not the name of a backend"},
        {"cuda!", "\"cuda!\" is not the name of a backend"},
        {"!cuda:0,1", "behind \"!cuda:0\" a number is ambiguous: write \"!cuda:1\""},
        {"each:0", "\"each\" takes no index"},
        {"0-1,!0,1", "behind \"!0\" a number is ambiguous: write \"!1\""},
        {"!cuda:0@8GiB", "an excluded device cannot have a limit"},
        {"@8GiB", "nothing stands before \"@\""},
        {"cuda:0@", "\"\" is not a limit of memory"},
        {"cuda:0@2", "\"2\" is not a limit of memory"}, /* ambiguous: 2 bytes, or half of the memory */
        {"cuda:0@8 GiB", "\"8 GiB\" is not a limit"},
        {"cuda:0@8gib", "\"8gib\" is not a limit"},
        {"cuda:0@-8GiB", "\"-8GiB\" is not a limit"},
        {"cuda:0@1.5GiB", "\"1.5GiB\" is not a limit"},
        {"cuda:0@0GiB", "\"0GiB\" is not a limit"},
        {"cuda:0@0%", "\"0%\" is not a limit"},
        {"cuda:0@101%", "\"101%\" is not a limit"},
        {"cuda:0@%", "\"%\" is not a limit"},
        {"cuda:0@99999999999999999999B", "is not a limit"},
        {"cuda:0@17179869184GiB", "is not a limit"}, /* 2^64 bytes */
        {"cuda:0@8GiB@4GiB", "\"0@8GiB\" is not an index"},
    };
    make_machine();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (try_open(cases[i].list) != GPUHAL_ERROR_INVALID_ARGUMENT ||
            !strstr(gpuhal_last_error()->sentence, cases[i].said)) {
            fail_msg("\"%s\": %s", cases[i].list, gpuhal_last_error()->sentence);
        }
    }
}

static uint64_t limit_of(gpuhal *gpu, const char *id)
{
    gpuhal_device *device = NULL;
    assert_int_equal(gpuhal_select(gpu, id, 0, &device, NULL), GPUHAL_OK);
    return atomic_load(&device->limit_bytes);
}

TEST(a_limit_behind_a_selector_is_that_of_each_device_that_it_names)
{
    static const struct {
        const char *list, *id;
        uint64_t bytes;
    } cases[] = {
        {"cuda:0@8GiB", "cuda:0", GIB(8)},
        {"cuda:0@8G,cuda:1", "cuda:0", GIB(8)},
        {"cuda:0@8G,1", "cuda:1", 0}, /* each element has a separate limit */
        {"cuda:*@512M", "cuda:1", GIB(1) / 2},
        {"gpu@8GB", "vulkan:1", 8000000000},
        {"cuda:1@25%", "cuda:1", GIB(20)},
        {"gpu@50%", "cuda:0", GIB(12)},
        {"gpu@50%", "vulkan:2", GIB(2)},
        {"gpu@8GiB", "vulkan:2", GIB(4)}, /* all of the device's memory */
        {"GPU-9@1GiB", "vulkan:1", GIB(1)},
        {"1@1GiB,cpu", "cuda:1", GIB(1)},
        {"gpu@8GiB,cuda:0@4GiB", "cuda:0", GIB(4)}, /* the last element that selects the device counts */
        {"gpu@8GiB,cuda:0", "cuda:0", GIB(8)},
        {"name=big*@1TiB", "cuda:1", GIB(80)},
        {"cuda:0@1B", "cuda:0", 1},
        {"each@1kB,!cpu", "cuda:0", 1000},
    };
    make_machine();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gpuhal *gpu = open_machine(cases[i].list);
        const uint64_t limit = limit_of(gpu, cases[i].id);
        if (limit != cases[i].bytes) {
            fail_msg("\"%s\" limits %s to %llu", cases[i].list, cases[i].id, (unsigned long long)limit);
        }
        gpuhal_close(gpu);
    }
}

TEST(the_lowest_of_the_limits_of_the_program_and_of_the_environment_counts)
{
    static const struct {
        const char *allowed, *environment;
        uint64_t all, limit;
    } cases[] = {
        {"cuda@8GiB", "cuda:0@4GiB", 0, GIB(4)}, {"cuda@4GiB", "cuda:0@8GiB", 0, GIB(4)},
        {NULL, "gpu@8GiB", GIB(2), GIB(2)},      {NULL, "gpu@8GiB", GIB(16), GIB(8)},
        {"cuda:0@8GiB", "cuda:0", 0, GIB(8)},
    };
    make_machine();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gpuhal_config config = {.size = sizeof config,
                                .registry = "none",
                                .isolation = GPUHAL_ISOLATION_NEVER,
                                .builtins = replayed,
                                .devices = cases[i].allowed,
                                .memory_limit_bytes = cases[i].all};
        gpuhal *gpu = NULL;
        assert_int_equal(setenv("GPUHAL_DEVICES", cases[i].environment, 1), 0);
        assert_int_equal(gpuhal_open(&config, &gpu), GPUHAL_OK);
        assert_int_equal(limit_of(gpu, "cuda:0"), cases[i].limit);
        /* A rescan does not undo limits that the program set later. */
        gpuhal_device *device = NULL;
        assert_int_equal(gpuhal_select(gpu, "cuda:0", 0, &device, NULL), GPUHAL_OK);
        assert_int_equal(gpuhal_device_limit_memory(device, GIB(1)), GPUHAL_OK);
        assert_int_equal(gpuhal_rescan(gpu, NULL), GPUHAL_OK);
        assert_int_equal(limit_of(gpu, "cuda:0"), GIB(1));
        gpuhal_close(gpu);
    }
    unsetenv("GPUHAL_DEVICES");
}

TEST(of_equal_devices_the_first_is_selected_whether_another_api_is_preferred_for_it_or_not)
{
    for (uint32_t i = 0; i < 3; i++) { /* the list of two cards with CUDA_VISIBLE_DEVICES=0 */
        recorded_device *device = add_device(i == 0 ? "cuda" : "vulkan", "Big GPU");
        keep_fact(device, "pci_address", i < 2 ? "0000:41:00.0" : "0000:c1:00.0");
        keep_fact(device, "memory_total_bytes", "25769803776");
    }
    gpuhal *gpu = open_machine(NULL);
    gpuhal_device *device = NULL;
    const char *reason = NULL;
    assert_int_equal(gpuhal_select(gpu, "vulkan", 0, &device, &reason), GPUHAL_OK);
    assert_string_equal(gpuhal_device_id(device), "vulkan:0");
    assert_string_equal(reason, "\"vulkan\" names 2; first backend (vulkan), first of 2 equal GPUs");
    gpuhal_close(gpu);
}

TEST(a_machine_without_devices_is_no_fault_of_the_list_that_is_not_set)
{
    static gpuhal_builtin_fn *const none[] = {NULL};
    const gpuhal_config config = {.size = sizeof config,
                                  .registry = "none",
                                  .backends = "cpu",
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .plugin_path = "/nonexistent",
                                  .builtins = none};
    gpuhal *gpu = NULL;
    assert_int_equal(setenv("GPUHAL_DEVICES", "gpu", 1), 0);
    const gpuhal_status status = gpuhal_open(&config, &gpu);
    unsetenv("GPUHAL_DEVICES");
    gpuhal_close(gpu);
    assert_int_equal(status, GPUHAL_ERROR_NOT_FOUND);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "GPUHAL_DEVICES: no device matches \"gpu\""));
}

TEST(gpuhal_select_takes_no_limit_and_a_share_needs_a_known_size)
{
    make_machine();
    (void)add_device("opencl", "Unknown size");
    gpuhal *gpu = open_machine(NULL);
    gpuhal_device *device = NULL;
    assert_int_equal(gpuhal_select(gpu, "cuda:0@8GiB", GPUHAL_SELECT_ALLOW_CPU, &device, NULL),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "call gpuhal_device_limit_memory() instead"));
    gpuhal_close(gpu);
    assert_int_equal(try_open("opencl:0@25%"), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "the memory of opencl:0 is not known"));
    assert_int_equal(try_open("opencl:0@1GiB"), GPUHAL_OK);
}

/* Names may contain an @: "Intel(R) Xeon(R) CPU E5 @ 2.10GHz". */
TEST(an_at_sign_in_a_name_is_no_limit_unless_a_limit_follows)
{
    make_machine();
    (void)add_device("opencl", "Xeon(R) CPU @ 2.10GHz");
    gpuhal *gpu = open_machine("name=*cpu @ 2.10ghz");
    assert_int_equal(limit_of(gpu, "opencl:0"), 0);
    gpuhal_close(gpu);
    gpu = open_machine("name=*cpu @ 2*@1GiB");
    assert_int_equal(limit_of(gpu, "opencl:0"), GIB(1));
    gpuhal_close(gpu);
}

#include "test_main.h"
