/* Stable ids of hardware, tested with the whole library. A machine with eight GPUs is started repeatedly, each time in
 * another process, with another order of cards, and with one card replaced. */
#include "identity_support.h"
#include "registry_support.h"

#include <sys/wait.h>

/* The results of one process. Element i is the number of the card whose UUID ends with i, or 0 if the card is
 * absent. */
typedef struct seen {
    uint32_t numbers[DEVICES], interfaces, physicals;
} seen;

static void add_card(const char *backend, uint32_t index, unsigned card, const char *driver)
{
    recorded_device *device = &now.devices[now.device_count++];
    char uuid[64], address[32];
    snprintf(device->backend, sizeof device->backend, "%s", backend);
    device->index = index;
    snprintf(uuid, sizeof uuid, "754d9ae2-8df5-f8e3-3502-1824340000%02u", card);
    snprintf(address, sizeof address, "0000:%02u:00.0", card + 1);
    gpuhal_facts_set_text(&device->facts, GPUHAL_FACT_NAME, "Card");
    gpuhal_facts_set_text(&device->facts, GPUHAL_FACT_UUID, uuid);
    gpuhal_facts_set_text(&device->facts, GPUHAL_FACT_PCI_ADDRESS, address);
    gpuhal_facts_set_text(&device->facts, GPUHAL_FACT_DRIVER_VERSION, driver);
    gpuhal_facts_set_u64(&device->facts, GPUHAL_FACT_VENDOR_ID, 0x10de);
    gpuhal_facts_set_u64(&device->facts, GPUHAL_FACT_TYPE, GPUHAL_DEVICE_GPU);
}

/* Makes a machine. `cards` lists the cards in CUDA's order, for example "01234567". Vulkan lists them in reverse
 * order, or none of them if there are more than DEVICES / 2. */
static void set_machine(const char *cards, const char *driver)
{
    size_t count = strlen(cards);
    forget_machine();
    snprintf(now.name, sizeof now.name, "%s", cards);
    for (size_t i = 0; i < count; i++) {
        add_card("cuda", (uint32_t)i, (unsigned)(cards[i] - '0'), driver);
    }
    for (size_t i = 0; i < count && 2 * count <= DEVICES; i++) {
        add_card("vulkan", (uint32_t)i, (unsigned)(cards[count - 1 - i] - '0'), driver);
    }
    complete_devices();
}

static seen look(const char *directory)
{
    static gpuhal_builtin_fn *const both[] = {cuda_query, vulkan_query, NULL};
    gpuhal_config config = {.size = sizeof config,
                            .isolation = GPUHAL_ISOLATION_NEVER,
                            .ignore_environment = 1,
                            .builtins = both,
                            .registry = directory,
                            .backends = "cuda,vulkan"};
    gpuhal *gpu = NULL;
    seen result = {.interfaces = 0};
    assert_int_equal(gpuhal_open(&config, &gpu), GPUHAL_OK);
    result.physicals = records_now(gpu, GPUHAL_RECORD_PHYSICAL);
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        const gpuhal_device *device = gpuhal_device_at(gpu, d);
        const char *uuid = NULL;
        uint32_t number = 0, preferred = 0;
        if (strcmp(gpuhal_device_backend(device), "cpu") == 0) {
            continue;
        }
        assert_int_equal(gpuhal_device_text(device, GPUHAL_FACT_UUID, &uuid), GPUHAL_OK);
        assert_int_equal(gpuhal_device_physical(device, &number, &preferred), GPUHAL_OK);
        uint32_t *kept = &result.numbers[atoi(uuid + strlen(uuid) - 2)];
        assert_true(*kept == 0 || *kept == number);
        *kept = number;
        result.interfaces++;
    }
    gpuhal_close(gpu);
    return result;
}

/* Lists the machine in another process, since backends start once per process. */
static seen start_machine(const char *directory, const char *cards, const char *driver)
{
    seen result;
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        set_machine(cards, driver);
        result = look(directory);
        _exit(write(ends[1], &result, sizeof result) == sizeof result ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(read(ends[0], &result, sizeof result), sizeof result);
    close(ends[0]);
    close(ends[1]);
    return result;
}

TEST(eight_gpus_keep_their_numbers_in_any_order_with_one_missing_and_one_new)
{
    const char *directory = fresh_directory();
    seen first = start_machine(directory, "01234567", "535.1");
    assert_int_equal(first.interfaces, 16);
    for (uint32_t card = 0; card < 8; card++) {
        assert_int_equal(first.numbers[card], card + 1);
    }
    seen turned = start_machine(directory, "76543210", "535.1");
    assert_memory_equal(turned.numbers, first.numbers, sizeof first.numbers);
    seen changed = start_machine(directory, "4561208", "550.2");
    for (uint32_t card = 0; card < 7; card++) {
        assert_int_equal(changed.numbers[card], card == 3 ? 0 : first.numbers[card]);
    }
    assert_int_equal(changed.numbers[8], 9);
    seen again = start_machine(directory, "37", "550.2");
    assert_int_equal(again.numbers[3], first.numbers[3]);
    assert_int_equal(again.numbers[7], first.numbers[7]);
}

TEST(hiding_devices_changes_no_number)
{
    const char *directory = fresh_directory();
    set_machine("012", "535.1");
    static gpuhal_builtin_fn *const both[] = {cuda_query, vulkan_query, NULL};
    gpuhal_config config = {.size = sizeof config,
                            .isolation = GPUHAL_ISOLATION_NEVER,
                            .ignore_environment = 1,
                            .builtins = both,
                            .registry = directory,
                            .backends = "cuda,vulkan",
                            .devices = "cuda:2"};
    gpuhal *gpu = NULL;
    gpuhal_physical_info physical = {.size = sizeof physical};
    assert_int_equal(gpuhal_open(&config, &gpu), GPUHAL_OK);
    assert_int_equal(record_now(gpu, GPUHAL_RECORD_PHYSICAL, 0, &physical), GPUHAL_OK);
    assert_int_equal(physical.number, 3);
    gpuhal_close(gpu);
}

TEST(without_a_registry_numbers_are_given_in_the_order_of_the_list)
{
    seen result = start_machine("none", "31", "535.1");
    assert_int_equal(result.numbers[3], 1);
    assert_int_equal(result.numbers[1], 2);
    assert_int_equal(result.physicals, 2);
}

TEST(a_start_on_a_machine_that_did_not_change_writes_nothing)
{
    struct stat before, after;
    const char *directory = fresh_directory();
    start_machine(directory, "01234567", "535.1");
    assert_int_equal(stat(below(directory, "registry"), &before), 0);
    start_machine(directory, "01234567", "535.1");
    start_machine(directory, "70123456", "535.1");
    assert_int_equal(stat(below(directory, "registry"), &after), 0);
    assert_int_equal(after.st_ino, before.st_ino);
    start_machine(directory, "01234567", "550.2");
    assert_int_equal(stat(below(directory, "registry"), &after), 0);
    assert_int_not_equal(after.st_ino, before.st_ino);
}

static const gpuhal_database_interface *interface_with(const gpuhal_database *database, const char *backend,
                                                       const char *uuid_end)
{
    size_t count;
    const gpuhal_database_interface *interfaces = gpuhal_database_interfaces(database, &count);
    for (size_t i = 0; i < count; i++) {
        const char *uuid = interfaces[i].uuid;
        if (strcmp(interfaces[i].backend, backend) == 0 && uuid && strcmp(uuid + strlen(uuid) - 2, uuid_end) == 0) {
            return &interfaces[i];
        }
    }
    return NULL;
}

TEST(a_card_that_was_taken_out_is_no_longer_there_and_driver_versions_are_kept)
{
    const char *directory = fresh_directory();
    start_machine(directory, "0123", "535.1");
    start_machine(directory, "012", "550.2");
    gpuhal_registry *registry = open_registry(directory);
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    const gpuhal_database_interface *kept = interface_with(&snapshot->database, "cuda", "02"),
                                    *gone = interface_with(&snapshot->database, "vulkan", "03");
    assert_true(kept && gone);
    assert_int_equal(kept->present, 1);
    assert_int_equal(gone->present, 0);
    assert_int_equal(kept->drivers.count, 2);
    assert_string_equal(kept->drivers.list[1].version, "550.2");
    gpuhal_snapshot_release(snapshot);
    gpuhal_registry_destroy(registry);
}

TEST(a_backend_that_was_not_asked_does_not_make_its_devices_vanish)
{
    const char *directory = fresh_directory();
    start_machine(directory, "012345678", "535.1"); /* nine cards; only CUDA lists them */
    start_machine(directory, "01", "535.1");
    set_machine("01", "535.1");
    static gpuhal_builtin_fn *const both[] = {cuda_query, vulkan_query, NULL};
    gpuhal_config config = {.size = sizeof config,
                            .isolation = GPUHAL_ISOLATION_NEVER,
                            .ignore_environment = 1,
                            .builtins = both,
                            .registry = directory,
                            .backends = "-vulkan"};
    gpuhal *gpu = NULL;
    assert_int_equal(gpuhal_open(&config, &gpu), GPUHAL_OK);
    gpuhal_close(gpu);
    gpuhal_registry *registry = open_registry(directory);
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    assert_int_equal(interface_with(&snapshot->database, "vulkan", "01")->present, 1);
    assert_int_equal(interface_with(&snapshot->database, "cuda", "08")->present, 0);
    gpuhal_snapshot_release(snapshot);
    gpuhal_registry_destroy(registry);
}

TEST(a_registry_that_cannot_be_written_affects_no_device)
{
    const char *directory = fresh_directory();
    assert_int_equal(chmod(directory, 0500), 0);
    seen result = start_machine(directory, "01", "535.1");
    assert_int_equal(result.interfaces, 4);
    assert_int_equal(result.numbers[0], 1);
}

#include "test_main.h"
