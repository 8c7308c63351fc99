/* tests/unit/registry_numbers_test.c: stable ids of hardware, which must not change when the order, the drivers or the
 * slots change. */
#include "registry_support.h"

enum { CARDS = 8 };

/* Adds card number `card` of a machine with eight identical cards, which two backends list. `group` is the card's index
 * in the listing. */
static void see(gpuhal_sighting *to, uint32_t card, uint32_t group, const char *driver)
{
    static char pci[2 * CARDS][16], uuid[2 * CARDS][16];
    snprintf(pci[card], sizeof pci[card], "0000:%02x:00.0", card + 1);
    snprintf(uuid[card], sizeof uuid[card], "uuid-%u", card);
    to[0] = (gpuhal_sighting){.group = group,
                              .vendor_id = 0x10de,
                              .pci = pci[card],
                              .uuid = uuid[card],
                              .backend = "cuda",
                              .name = "H100",
                              .driver_version = driver};
    to[1] = (gpuhal_sighting){.group = group,
                              .vendor_id = 0x10de,
                              .pci = pci[card],
                              .backend = "vulkan",
                              .name = "NVIDIA H100",
                              .driver_version = driver};
}

static void look(gpuhal_registry *registry, gpuhal_sighting *seen, size_t count)
{
    static const char *const all[] = {"cuda", "vulkan", "opencl", "cpu", NULL};
    gpuhal_changes changes = {.now = 1700000000, .sightings = seen, .sighting_count = count, .listed = all};
    gpuhal_registry_update(registry, &changes);
    for (size_t i = 0; i < count; i++) {
        assert_int_not_equal(seen[i].physical, 0);
        assert_int_not_equal(seen[i].iface, 0);
    }
}

static uint32_t look_at_one(gpuhal_registry *registry, gpuhal_sighting one)
{
    look(registry, &one, 1);
    return one.physical;
}

static const gpuhal_database_interface *interface_of(const gpuhal_database *database, uint32_t number)
{
    size_t count;
    const gpuhal_database_interface *interfaces = gpuhal_database_interfaces(database, &count);
    for (size_t i = 0; i < count; i++) {
        if (interfaces[i].number == number) {
            return &interfaces[i];
        }
    }
    return NULL;
}

TEST(eight_cards_in_another_order_with_one_missing_and_one_new_keep_their_numbers)
{
    static const uint32_t order[CARDS] = {5, 2, 8, 7, 0, 3, 1, 6};
    const char *directory = fresh_directory();
    gpuhal_sighting first[2 * CARDS], second[2 * CARDS];
    gpuhal_registry *registry = open_registry(directory);
    for (uint32_t card = 0; card < CARDS; card++) {
        see(&first[2 * card], card, card, "535.1");
    }
    look(registry, first, 2 * CARDS);
    gpuhal_registry_destroy(registry);
    registry = open_registry(directory);
    for (uint32_t place = 0; place < CARDS; place++) {
        see(&second[2 * place], order[place], place, "550.9");
    }
    look(registry, second, 2 * CARDS);
    for (uint32_t place = 0; place < CARDS; place++) {
        for (uint32_t iface = 0; iface < 2 && order[place] < CARDS; iface++) {
            assert_int_equal(second[2 * place + iface].physical, first[2 * order[place] + iface].physical);
            assert_int_equal(second[2 * place + iface].iface, first[2 * order[place] + iface].iface);
        }
    }
    assert_int_equal(second[4].physical, CARDS + 1);
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    const gpuhal_database_interface *gone = interface_of(&snapshot->database, first[8].iface),
                                    *there = interface_of(&snapshot->database, first[0].iface);
    assert_int_equal(gone->present, 0);
    assert_int_equal(there->present, 1);
    assert_int_equal(there->drivers.count, 2);
    assert_string_equal(there->drivers.list[0].version, "535.1");
    assert_string_equal(there->drivers.list[1].version, "550.9");
    gpuhal_snapshot_release(snapshot);
    gpuhal_registry_destroy(registry);
}

TEST(a_card_that_moved_to_another_slot_keeps_its_number)
{
    gpuhal_registry *registry = gpuhal_registry_create(NULL, 0, NULL);
    uint32_t one = look_at_one(
        registry, (gpuhal_sighting){.pci = "0000:01:00.0", .uuid = "a", .backend = "cuda", .driver_version = "1"});
    assert_int_equal(
        look_at_one(registry,
                    (gpuhal_sighting){.pci = "0000:09:00.0", .uuid = "a", .backend = "cuda", .driver_version = "1"}),
        one);
    gpuhal_registry_destroy(registry);
}

TEST(two_cards_that_changed_slots_change_numbers_with_them)
{
    gpuhal_registry *registry = gpuhal_registry_create(NULL, 0, NULL);
    gpuhal_sighting seen[2] = {
        {.group = 0, .pci = "0000:01:00.0", .uuid = "a", .backend = "cuda", .driver_version = "1"},
        {.group = 1, .pci = "0000:02:00.0", .uuid = "b", .backend = "cuda", .driver_version = "1"}};
    look(registry, seen, 2);
    uint32_t a = seen[0].physical, b = seen[1].physical;
    seen[0].uuid = "b";
    seen[1].uuid = "a";
    look(registry, seen, 2);
    assert_int_equal(seen[0].physical, b);
    assert_int_equal(seen[1].physical, a);
    gpuhal_registry_destroy(registry);
}

TEST(another_card_in_the_same_slot_is_another_one)
{
    gpuhal_registry *registry = gpuhal_registry_create(NULL, 0, NULL);
    const gpuhal_sighting old = {
        .vendor_id = 0x10de, .pci = "0000:01:00.0", .uuid = "a", .backend = "cuda", .driver_version = "1"};
    gpuhal_sighting other = old, driver = old, vendor = old;
    other.uuid = "b";
    driver.uuid = "c";
    driver.driver_version = "2";
    vendor.vendor_id = 0x1002;
    vendor.uuid = NULL;
    uint32_t number = look_at_one(registry, old);
    assert_int_not_equal(look_at_one(registry, other), number);
    assert_int_not_equal(look_at_one(registry, vendor), number);
    assert_int_equal(look_at_one(registry, old), number);
    gpuhal_registry_destroy(registry);
    /* The next version of a driver that invents UUIDs invents different UUIDs. */
    registry = gpuhal_registry_create(NULL, 0, NULL);
    number = look_at_one(registry, old);
    assert_int_equal(look_at_one(registry, driver), number);
    gpuhal_registry_destroy(registry);
}

TEST(a_device_without_address_and_uuid_is_known_by_name_and_place)
{
    gpuhal_registry *registry = gpuhal_registry_create(NULL, 0, NULL);
    gpuhal_sighting seen[3] = {{.group = 0, .backend = "opencl", .name = "Mali"},
                               {.group = 1, .backend = "opencl", .name = "Mali"},
                               {.group = 2, .host = 1, .backend = "cpu", .name = "the processor"}};
    look(registry, seen, 3);
    uint32_t numbers[3] = {seen[0].physical, seen[1].physical, seen[2].physical};
    assert_int_not_equal(numbers[0], numbers[1]);
    seen[2].name = "the processor, renamed";
    look(registry, seen, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(seen[i].physical, numbers[i]);
    }
    gpuhal_registry_destroy(registry);
}

TEST(a_backend_that_was_not_listed_loses_no_interface)
{
    static const char *const cuda[] = {"cuda", NULL};
    gpuhal_registry *registry = gpuhal_registry_create(NULL, 0, NULL);
    gpuhal_sighting seen[2];
    see(seen, 0, 0, "1");
    look(registry, seen, 2);
    gpuhal_changes none = {.now = 1, .listed = cuda};
    gpuhal_registry_update(registry, &none);
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    assert_int_equal(interface_of(&snapshot->database, seen[0].iface)->present, 0);
    assert_int_equal(interface_of(&snapshot->database, seen[1].iface)->present, 1);
    gpuhal_snapshot_release(snapshot);
    gpuhal_registry_destroy(registry);
}

TEST(partitions_of_one_card_are_interfaces_of_their_own)
{
    gpuhal_registry *registry = gpuhal_registry_create(NULL, 0, NULL);
    gpuhal_sighting seen[2] = {
        {.pci = "0000:01:00.0", .uuid = "a", .partition = "mig-0", .backend = "cuda", .name = "H100"},
        {.pci = "0000:01:00.0", .uuid = "b", .partition = "mig-1", .backend = "cuda", .name = "H100"}};
    look(registry, seen, 2);
    uint32_t first = seen[0].iface, second = seen[1].iface;
    assert_int_equal(seen[0].physical, seen[1].physical);
    assert_int_not_equal(first, second);
    const gpuhal_sighting kept = seen[0];
    seen[0] = seen[1];
    seen[1] = kept;
    look(registry, seen, 2);
    assert_int_equal(seen[0].iface, second);
    assert_int_equal(seen[1].iface, first);
    gpuhal_registry_destroy(registry);
}

TEST(an_interface_is_found_in_a_record_that_has_other_numbers)
{
    gpuhal_registry *registry = open_registry(fresh_directory());
    gpuhal_sighting seen[6];
    see(seen, 3, 0, "580");
    see(seen + 2, 5, 1, "580");
    seen[4] = (gpuhal_sighting){.group = 2, .backend = "opencl", .name = "pocl"};
    seen[5] = (gpuhal_sighting){.group = 3, .backend = "opencl", .name = "pocl"};
    look(registry, seen, 6);
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    const gpuhal_database *database = &snapshot->database;
    for (size_t i = 0; i < 4; i++) {
        gpuhal_sighting other = seen[i];
        other.known = seen[3 - i].iface; /* the previous number belongs to another interface now */
        assert_int_equal(gpuhal_database_find(database, &other), seen[i].iface);
    }
    gpuhal_sighting absent[2];
    see(absent, 7, 0, "580");
    for (size_t i = 0; i < 2; i++) {
        absent[i].known = seen[i].iface;
        assert_int_equal(gpuhal_database_find(database, &absent[i]), 0);
    }
    /* If two interfaces have the same name, the number decides. */
    gpuhal_sighting alike = seen[4];
    alike.known = seen[5].iface;
    assert_int_equal(gpuhal_database_find(database, &alike), seen[5].iface);
    alike.known = 99;
    assert_int_equal(gpuhal_database_find(database, &alike), 0);
    /* After a driver update the UUID or the name may differ. */
    gpuhal_sighting updated = seen[0];
    updated.known = seen[0].iface;
    updated.uuid = "GPU-after-the-update";
    assert_int_equal(gpuhal_database_find(database, &updated), seen[0].iface);
    updated.known = 0;
    assert_int_equal(gpuhal_database_find(database, &updated), 0);
    updated = seen[0];
    updated.known = seen[0].iface;
    updated.name = "another name";
    assert_int_equal(gpuhal_database_find(database, &updated), seen[0].iface);
    gpuhal_snapshot_release(snapshot);
    gpuhal_registry_destroy(registry);
}

TEST(a_device_whose_uuid_is_doubted_is_found_by_its_address_and_drivers_of_one_card_by_name)
{
    gpuhal_registry *registry = open_registry(fresh_directory());
    gpuhal_sighting first = {.group = 0, .pci = "0000:01:00.0", .uuid = "shared", .backend = "vulkan", .name = "GPU"};
    look(registry, &first, 1);
    gpuhal_sighting seen[] = {
        {.group = 0, .pci = "0000:01:00.0", .backend = "vulkan", .name = "GPU"},
        {.group = 1, .pci = "0000:02:00.0", .backend = "vulkan", .name = "GPU"},
        {.group = 2, .pci = "0000:03:00.0", .uuid = "arc", .backend = "opencl", .name = "Arc [A]"},
        {.group = 2, .pci = "0000:03:00.0", .uuid = "arc", .backend = "opencl", .name = "Arc [B]"},
    };
    enum { COUNT = sizeof seen / sizeof *seen };
    look(registry, seen, COUNT);
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    for (size_t i = 0; i < COUNT; i++) {
        for (uint32_t known = 0; known <= COUNT; known++) {
            gpuhal_sighting other = seen[i];
            other.known = known;
            assert_int_equal(gpuhal_database_find(&snapshot->database, &other), seen[i].iface);
        }
    }
    gpuhal_snapshot_release(snapshot);
    gpuhal_registry_destroy(registry);
}

TEST(the_hosts_processor_has_its_own_name_and_not_that_of_a_program_on_it)
{
    gpuhal_registry *registry = open_registry(fresh_directory());
    gpuhal_sighting seen[] = {
        {.group = 0, .host = 1, .backend = "vulkan", .name = "llvmpipe"},
        {.group = 0, .host = 1, .backend = "opencl", .name = "pthread-zen"},
        {.group = 0, .host = 1, .backend = "cpu", .name = "EPYC"},
    };
    for (size_t count = 3; count > 1; count--) { /* the record stays if a later program does not list the device */
        size_t records;
        look(registry, seen, count);
        gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
        const gpuhal_database_physical *physicals = gpuhal_database_physicals(&snapshot->database, &records);
        assert_int_equal(records, 1);
        assert_string_equal(physicals[0].name, "EPYC");
        gpuhal_snapshot_release(snapshot);
    }
    gpuhal_registry_destroy(registry);
}

TEST(a_number_is_not_given_again)
{
    const char *directory = fresh_directory();
    gpuhal_registry *registry = open_registry(directory);
    uint32_t last = 0;
    for (unsigned i = 0; i < 80; i++) {
        char uuid[16];
        snprintf(uuid, sizeof uuid, "u-%u", i);
        uint32_t number = look_at_one(registry, (gpuhal_sighting){.uuid = uuid, .backend = "cuda", .name = uuid});
        assert_true(number > last);
        last = number;
    }
    gpuhal_changes all = {.replace = &GPUHAL_DATABASE_EMPTY};
    gpuhal_registry_update(registry, &all);
    assert_true(look_at_one(registry, (gpuhal_sighting){.uuid = "v", .backend = "cuda"}) > last);
    gpuhal_registry_destroy(registry);
}

TEST(a_link_belongs_to_its_ends_and_their_drivers)
{
    gpuhal_registry *registry = gpuhal_registry_create(NULL, 0, NULL);
    record_all_kinds(registry);
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    size_t count;
    gpuhal_database_link again = gpuhal_database_links(&snapshot->database, &count)[0], newer = again;
    assert_int_equal(count, 1);
    again.verified = 0;
    newer.from_driver = (char[]){"550"};
    gpuhal_database_link both[] = {again, newer};
    gpuhal_changes changes = {.links = both, .link_count = 2};
    gpuhal_registry_update(registry, &changes);
    gpuhal_snapshot_release(snapshot);
    snapshot = gpuhal_registry_snapshot(registry);
    const gpuhal_database_link *links = gpuhal_database_links(&snapshot->database, &count);
    assert_int_equal(count, 2);
    assert_int_equal(links[0].verified, 0);
    assert_int_equal(links[1].verified, 1);
    gpuhal_snapshot_release(snapshot);
    gpuhal_registry_destroy(registry);
}

/* SR-IOV creates hundreds of functions. Known hardware must keep its number. Functions beyond the limit get no
 * number. */
TEST(a_plugin_with_a_hundred_devices_takes_no_number_from_hardware_that_is_there)
{
    enum { MANY = 100 };
    static char pci[MANY][16];
    static gpuhal_sighting seen[MANY + 3];
    static const char *const all[] = {"cuda", "vulkan", "many", NULL};
    uint32_t numbers[3];
    gpuhal_registry *registry = open_registry(fresh_directory());
    see(&seen[MANY], 0, 0, "1");
    seen[MANY + 2] = (gpuhal_sighting){.group = 1, .host = 1, .backend = "cpu", .name = "Processor"};
    look(registry, &seen[MANY], 3);
    for (int i = 0; i < 3; i++) {
        numbers[i] = seen[MANY + i].iface;
    }
    for (uint32_t i = 0; i < MANY; i++) {
        snprintf(pci[i], sizeof pci[i], "0001:%02x:00.0", i);
        seen[i] =
            (gpuhal_sighting){.group = 2 + i, .vendor_id = 0x1234, .pci = pci[i], .backend = "many", .name = "Many"};
    }
    gpuhal_changes changes = {.now = 1700000000, .sightings = seen, .sighting_count = MANY + 3, .listed = all};
    uint64_t generation = 0;
    for (int round = 0; round < 3; round++) {
        assert_int_equal(gpuhal_registry_update(registry, &changes), GPUHAL_OK);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(seen[MANY + i].iface, numbers[i]);
            assert_int_not_equal(seen[MANY + i].physical, 0);
        }
        size_t numbered = 0;
        for (uint32_t i = 0; i < MANY; i++) {
            numbered += seen[i].physical != 0;
        }
        assert_int_equal(numbered, gpuhal_database_limit(GPUHAL_DATABASE_PHYSICAL) - 2);
        /* If nothing is new, nothing is written and no numbers are assigned. */
        gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
        assert_true(generation == 0 || generation == snapshot->database.generation);
        generation = snapshot->database.generation;
        gpuhal_snapshot_release(snapshot);
    }
    gpuhal_registry_destroy(registry);
}

/* One backend has 256 devices on the CPU, and links between them; a card's two interfaces have older links. */
TEST(a_plugin_with_256_devices_takes_no_interface_and_no_link_from_others)
{
    enum { MANY = 256, LINKS = 600 };
    static gpuhal_sighting seen[MANY + 2];
    static gpuhal_database_link links[LINKS];
    static const char *const all[] = {"cuda", "vulkan", "many", NULL};
    gpuhal_registry *registry = open_registry(fresh_directory());
    see(seen, 0, 0, "1");
    look(registry, seen, 2);
    gpuhal_database_link own[2] = {{.from = seen[0].iface, .to = seen[1].iface, .verified = 1},
                                   {.from = seen[1].iface, .to = seen[0].iface, .verified = 1}};
    gpuhal_changes changes = {.now = 1700000000, .links = own, .link_count = 2};
    assert_int_equal(gpuhal_registry_update(registry, &changes), GPUHAL_OK);
    for (uint32_t i = 0; i < MANY; i++) {
        seen[2 + i] = (gpuhal_sighting){.group = 1, .host = 1, .backend = "many", .name = "Many"};
    }
    changes = (gpuhal_changes){.now = 1700000001, .sightings = seen, .sighting_count = MANY + 2, .listed = all};
    assert_int_equal(gpuhal_registry_update(registry, &changes), GPUHAL_OK);
    for (uint32_t i = 0; i < LINKS; i++) {
        links[i] = (gpuhal_database_link){
            .from = seen[2 + i % 200].iface, .to = seen[2 + (i % 200 + 1 + i / 200) % 200].iface, .verified = 1};
    }
    changes = (gpuhal_changes){.now = 1700000002, .links = links, .link_count = LINKS};
    assert_int_equal(gpuhal_registry_update(registry, &changes), GPUHAL_OK);
    gpuhal_snapshot *snapshot = gpuhal_registry_snapshot(registry);
    assert_non_null(interface_of(&snapshot->database, seen[0].iface));
    assert_non_null(interface_of(&snapshot->database, seen[1].iface));
    size_t count, kept = 0;
    const gpuhal_database_link *recorded = gpuhal_database_links(&snapshot->database, &count);
    for (size_t i = 0; i < count; i++) {
        kept += recorded[i].from == seen[0].iface || recorded[i].from == seen[1].iface;
    }
    assert_int_equal(kept, 2);
    assert_true(count <= gpuhal_database_limit(GPUHAL_DATABASE_LINK) && count > 400);
    gpuhal_snapshot_release(snapshot);
    gpuhal_registry_destroy(registry);
}

#include "test_main.h"
