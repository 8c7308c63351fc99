/* Tests the effects of a rescan with the fake CUDA driver: on device numbers, facts, links, and the device list for the
 * next program. */
#include "cuda_fake.h"
#include "queues.h"
#include "own_registry.h"

#include "cards.h"

#include <sys/stat.h>

static gpuhal *open_with(uint32_t isolation)
{
    return open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config),
                                         .backends = "cuda",
                                         .isolation = isolation,
                                         .helper_deadline_ns = 2000 * MILLISECOND_NS});
}

static gpuhal *open_cards(const char *cards, uint32_t isolation)
{
    use_registry();
    use_machine(make_cards(cards));
    return open_with(isolation);
}

static uint64_t look_again(gpuhal *gpu)
{
    uint64_t before = gpuhal_generation(gpu), after = 0;
    assert_ok(gpuhal_rescan(gpu, &after));
    return after - before;
}

/* Overrides a script statement by appending another statement. The last statement in the file counts. Must be called
 * after put_cards(). */
static void say_otherwise(const char *statement)
{
    FILE *file = fopen(cards_file, "a");
    assert_non_null(file);
    fprintf(file, "%s\n", statement);
    assert_int_equal(fclose(file), 0);
}

static void close_cards(gpuhal *gpu)
{
    gpuhal_close(gpu);
    remove_cards();
    expect_clean();
}

static void use_device(gpuhal_device *device)
{
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 64);
    gpuhal_buffer_release(buffer);
}

static const char *driver_of(const gpuhal_device *device)
{
    const char *text = NULL;
    assert_ok(gpuhal_device_text(device, GPUHAL_FACT_DRIVER_VERSION, &text));
    return text;
}

/* ---- numbers */

typedef struct numbers {
    uint32_t iface, physical;
} numbers;

static numbers numbers_of(const gpuhal *gpu, char card)
{
    gpuhal_device *device = find_card(gpu, card);
    assert_non_null(device);
    const gpuhal_interface_info found = interface_of(device);
    assert_true(found.number > 0);
    return (numbers){.iface = found.number, .physical = found.physical};
}

static void expect_numbers(const gpuhal *gpu, const char *cards, const numbers *known)
{
    for (size_t i = 0; cards[i]; i++) {
        numbers now = numbers_of(gpu, cards[i]);
        assert_int_equal(now.iface, known[cards[i] - 'A'].iface);
        assert_int_equal(now.physical, known[cards[i] - 'A'].physical);
    }
}

TEST(the_fake_machine_with_8_devices_enumerated_in_another_order_with_one_missing_and_one_new_keeps_every_number)
{
    numbers known[9] = {{0}};
    gpuhal *gpu = open_cards("ABCDEFGH", GPUHAL_ISOLATION_ALWAYS);
    for (int i = 0; i < 8; i++) {
        known[i] = numbers_of(gpu, (char)('A' + i));
    }
    put_cards("HIFGADEB", ""); /* C is missing, I is new */
    gpuhal *other = open_with(GPUHAL_ISOLATION_ALWAYS);
    expect_numbers(other, "ABDEFGH", known);
    known['I' - 'A'] = numbers_of(other, 'I');
    for (int i = 0; i < 8; i++) {
        assert_int_not_equal(known[8].iface, known[i].iface);
        assert_int_not_equal(known[8].physical, known[i].physical);
    }
    assert_null(find_card(other, 'C'));
    gpuhal_close(other);
    assert_int_equal(look_again(gpu), 2);
    expect_numbers(gpu, "ABDEFGHI", known);
    put_cards("CBA", "");
    assert_int_equal(look_again(gpu), 7);
    expect_numbers(gpu, "ABC", known);
    close_cards(gpu);
}

/* ---- facts */

TEST(facts_are_those_of_the_newest_rescan_once_a_change_was_reported)
{
    gpuhal *gpu = open_cards("A", GPUHAL_ISOLATION_ALWAYS);
    gpuhal_device *a = find_card(gpu, 'A');
    const char *before = driver_of(a);
    assert_string_equal(before, "580.65.06");
    put_cards("A", "driver 13010\ndriver_text 590.1.2");
    assert_int_equal(look_again(gpu), 1);
    assert_string_equal(driver_of(a), "590.1.2");
    assert_string_equal(before, "580.65.06");
    /* The driver starts in this process now. The driver's version is the same new version, so nothing else changes. */
    use_device(a);
    assert_int_equal(gpuhal_generation(gpu), 2);
    assert_string_equal(driver_of(a), "590.1.2");
    close_cards(gpu);
}

TEST(facts_stay_those_of_the_driver_in_this_process_once_it_was_started)
{
    gpuhal *gpu = open_cards("A", GPUHAL_ISOLATION_ALWAYS);
    gpuhal_device *a = find_card(gpu, 'A');
    use_device(a);
    put_cards("A", "driver 13010\ndriver_text 590.1.2");
    assert_int_equal(look_again(gpu), 1);
    assert_string_equal(driver_of(a), "580.65.06");
    close_cards(gpu);
}

TEST(memory_that_changed_its_size_is_reported)
{
    gpuhal *gpu = open_cards("A", GPUHAL_ISOLATION_ALWAYS);
    gpuhal_os_handle descriptor = -1;
    gpuhal_change change = {.size = sizeof change};
    uint64_t bytes = 0;
    assert_ok(gpuhal_change_descriptor(gpu, &descriptor));
    put_cards("A", "");
    say_otherwise("memory 0 128M");
    assert_int_equal(look_again(gpu), 1);
    assert_ok(gpuhal_next_change(gpu, &change));
    assert_int_equal(change.kind, GPUHAL_CHANGE_CHANGED);
    expect_word(change.sentence, "memory");
    assert_ok(gpuhal_device_u64(change.device, GPUHAL_FACT_MEMORY_TOTAL_BYTES, &bytes));
    assert_int_equal(bytes, 128 * MIB);
    assert_int_equal(look_again(gpu), 0);
    close((int)descriptor);
    close_cards(gpu);
}

/* ---- links */

TEST(the_plugin_reports_links_between_earlier_and_later_devices)
{
    gpuhal *gpu = open_cards("A", GPUHAL_ISOLATION_ALWAYS);
    uint64_t kind = 0, count = 0;
    put_cards("AB", "link 0 1 nvlink 4 18");
    assert_int_equal(look_again(gpu), 1);
    gpuhal_device *a = find_card(gpu, 'A'), *b = find_card(gpu, 'B');
    assert_ok(gpuhal_link_u64(a, b, GPUHAL_LINK_KIND, &kind));
    assert_ok(gpuhal_link_u64(b, a, GPUHAL_LINK_COUNT, &count));
    assert_int_equal(kind, GPUHAL_LINK_NVLINK);
    assert_int_equal(count, 18);
    close_cards(gpu);
}

/* ---- the device list for the next program */

TEST(an_earlier_start_of_the_driver_does_not_undo_the_record_of_a_rescan)
{
    gpuhal *gpu = open_cards("A", GPUHAL_ISOLATION_ONCE);
    use_device(find_card(gpu, 'A'));
    put_cards("AB", "");
    assert_int_equal(look_again(gpu), 1);
    gpuhal_device *b = find_card(gpu, 'B');
    assert_int_equal(gpuhal_device_open(b), GPUHAL_ERROR_NO_DEVICE);
    assert_int_equal(gpuhal_generation(gpu), 2);
    gpuhal_close(gpu);
    gpu = open_with(GPUHAL_ISOLATION_ONCE);
    assert_int_equal(report_of_backend(gpu).cached, 1);
    assert_non_null(find_card(gpu, 'B'));
    close_cards(gpu);
}

TEST(the_list_of_the_driver_here_replaces_that_of_the_newest_rescan)
{
    gpuhal *gpu = open_cards("A", GPUHAL_ISOLATION_ONCE);
    put_cards("AB", "");
    assert_int_equal(look_again(gpu), 1);
    gpuhal_device *b = find_card(gpu, 'B');
    put_cards("A", "");
    assert_int_equal(gpuhal_device_open(b), GPUHAL_ERROR_NO_DEVICE);
    assert_int_equal(gpuhal_generation(gpu), 3);
    gpuhal_close(gpu);
    gpu = open_with(GPUHAL_ISOLATION_ONCE);
    assert_int_equal(report_of_backend(gpu).cached, 1);
    assert_non_null(find_card(gpu, 'A'));
    assert_null(find_card(gpu, 'B'));
    close_cards(gpu);
}

TEST(a_plugin_in_quarantine_is_not_run_by_a_rescan_until_it_is_lifted)
{
    use_registry();
    use_machine(make_cards("A"));
    put_cards("A", "hang cuInit 1");
    gpuhal *gpu = open_with(GPUHAL_ISOLATION_ONCE);
    assert_int_equal(report_of_backend(gpu).state, GPUHAL_PLUGIN_TIMED_OUT);
    put_cards("A", "");
    assert_int_equal(look_again(gpu), 0);
    assert_int_equal(report_of_backend(gpu).state, GPUHAL_PLUGIN_QUARANTINED);
    assert_ok(gpuhal_registry_forget(NULL, "cuda"));
    assert_int_equal(look_again(gpu), 1);
    assert_int_equal(report_of_backend(gpu).state, GPUHAL_PLUGIN_OK);
    assert_non_null(find_card(gpu, 'A'));
    close_cards(gpu);
}

static uint32_t count_present(void)
{
    gpuhal_view *view = view_or_fail();
    gpuhal_interface_record record = {.size = sizeof record};
    uint32_t count = 0;
    for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_INTERFACE, i, &record) == GPUHAL_OK; i++) {
        count += record.is_present != 0;
    }
    gpuhal_view_release(view);
    return count;
}

TEST(a_hang_of_the_driver_in_a_rescan_leaves_the_records_of_its_devices)
{
    gpuhal *gpu = open_cards("AB", GPUHAL_ISOLATION_ALWAYS);
    const uint32_t present = count_present();
    put_cards("A", "hang cuInit 1");
    assert_int_equal(look_again(gpu), 0);
    assert_int_equal(report_of_backend(gpu).state, GPUHAL_PLUGIN_TIMED_OUT);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(count_present(), round == 0 ? present : present - 1);
        put_cards("A", "");
        assert_int_equal(look_again(gpu), round == 0);
    }
    close_cards(gpu);
}

/* Both interfaces belong to the same card. Only the hidden interface reports the PCI address. */
TEST(a_hang_of_the_driver_in_a_rescan_leaves_evidence_of_hidden_devices)
{
    static const char one[] = "uuid 0 66616b65206465766963652075756900";
    setenv("GPUHAL_FAKE_VULKAN", "discrete;vendor=0x10de;without=VK_EXT_pci_bus_info", 1);
    use_machine(make_cards("A"));
    say_otherwise(one);
    gpuhal *gpu = open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config),
                                                .backends = "cuda,vulkan",
                                                .devices = "vulkan:0",
                                                .isolation = GPUHAL_ISOLATION_ALWAYS,
                                                .helper_deadline_ns = 2000 * MILLISECOND_NS});
    assert_int_equal(gpuhal_device_count(gpu), 1);
    assert_ptr_equal(select_or_fail(gpu, "pci=0000:41:00.0"), gpuhal_device_at(gpu, 0));
    put_cards("A", "hang cuInit 1");
    assert_int_equal(look_again(gpu), 0);
    assert_int_equal(report_of_backend(gpu).state, GPUHAL_PLUGIN_TIMED_OUT);
    assert_ptr_equal(select_or_fail(gpu, "pci=0000:41:00.0"), gpuhal_device_at(gpu, 0));
    put_cards("A", "");
    say_otherwise(one);
    assert_int_equal(look_again(gpu), 0);
    assert_int_equal(gpuhal_device_count(gpu), 1);
    close_cards(gpu);
}

/* ---- log lines */

typedef struct scribe {
    gpuhal_device *_Atomic other;
    _Atomic int written;
} scribe;

/* gpuhal_device_verify() writes its result to the disk before it returns, or logs a line if it cannot. */
static void write_at_each_line(void *user, int32_t level, const char *line)
{
    scribe *own = user;
    (void)level;
    (void)line;
    static _Thread_local bool inside;
    if (own->other && !inside) {
        inside = true;
        (void)gpuhal_device_verify(own->other);
        inside = false;
        own->written++;
    }
}

TEST(a_log_callback_may_write_to_the_disk_while_faults_are_being_written)
{
    static scribe own;
    char aside[320];
    use_registry();
    use_machine(make_cards("A"));
    put_cards("A", "lose 0 cuMemsetD8Async 1 719\nstrict 0");
    gpuhal *gpu = open_or_fail(&(gpuhal_config){
        .size = sizeof(gpuhal_config), .backends = "cuda,cpu", .log = write_at_each_line, .log_user = &own});
    gpuhal_buffer *buffer = buffer_or_fail(find_card(gpu, 'A'), GPUHAL_MEMORY_DEVICE, 4096);
    /* From here on no write to the registry succeeds, so the library logs a line. */
    snprintf(aside, sizeof aside, "%s.aside", registry_folder);
    assert_int_equal(rename(registry_folder, aside), 0);
    assert_int_equal(symlink("/proc/self/nothing", registry_folder), 0);
    own.other = select_or_fail(gpu, "cpu:0");
    assert_int_equal(gpuhal_fill(NULL, buffer, 0, 4096, 1, 1), GPUHAL_ERROR_DEVICE_LOST);
    assert_ok(gpuhal_rescan(gpu, NULL));
    assert_true(own.written > 0);
    own.other = NULL;
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    assert_int_equal(unlink(registry_folder), 0);
    assert_int_equal(rename(aside, registry_folder), 0);
    remove_cards();
    remove_reports();
}

#include "test_main.h"
