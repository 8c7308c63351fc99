/* Tests devices that are added and removed while the program runs, with the fake CUDA driver: the state of handles, and
 * the notifications of listeners. */
#include "cuda_fake.h"
#include "queues.h"

#include "cards.h"

#include <pthread.h>

static gpuhal *open_cards(const char *cards, const char *devices)
{
    use_machine(make_cards(cards));
    return open_or_fail(&(gpuhal_config){
        .size = sizeof(gpuhal_config), .backends = "cuda", .isolation = GPUHAL_ISOLATION_ALWAYS, .devices = devices});
}

static void close_cards(gpuhal *gpu)
{
    gpuhal_close(gpu);
    remove_cards();
    expect_clean();
}

static uint64_t change_cards(gpuhal *gpu, const char *cards)
{
    uint64_t before = gpuhal_generation(gpu), after = 0;
    put_cards(cards, "");
    assert_ok(gpuhal_rescan(gpu, &after));
    assert_int_equal(after, gpuhal_generation(gpu));
    return after - before;
}

static void use_device(gpuhal_device *device)
{
    unsigned char bytes[64] = {1, 2, 3}, back[64] = {0};
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, sizeof bytes);
    assert_ok(gpuhal_write(NULL, buffer, 0, bytes, sizeof bytes));
    assert_ok(gpuhal_read(NULL, back, buffer, 0, sizeof back));
    assert_memory_equal(bytes, back, sizeof back);
    gpuhal_buffer_release(buffer);
}

static void expect_gone(gpuhal_status status, const gpuhal_device *device)
{
    char words[96];
    snprintf(words, sizeof words, "%s is not listed any more since ", gpuhal_device_id(device));
    assert_int_equal(status, GPUHAL_ERROR_DEVICE_LOST);
    expect_word(gpuhal_last_error()->sentence, words);
}

/* ---- devices */

TEST(a_device_that_is_plugged_in_appears_at_the_end_of_the_list)
{
    gpuhal *gpu = open_cards("A", NULL);
    uint32_t count = gpuhal_device_count(gpu);
    gpuhal_device *first = gpuhal_device_at(gpu, 0), *last = gpuhal_device_at(gpu, count - 1);
    assert_int_equal(gpuhal_generation(gpu), 1);
    assert_int_equal(change_cards(gpu, "AB"), 1);
    assert_int_equal(gpuhal_device_count(gpu), count + 1);
    assert_ptr_equal(gpuhal_device_at(gpu, 0), first);
    assert_ptr_equal(gpuhal_device_at(gpu, count - 1), last);
    assert_ptr_equal(gpuhal_device_at(gpu, count), find_card(gpu, 'B'));
    assert_string_equal(gpuhal_device_id(gpuhal_device_at(gpu, count)), "cuda:1");
    use_device(select_or_fail(gpu, "cuda:1"));
    close_cards(gpu);
}

TEST(a_rescan_lists_the_physical_devices_that_are_present)
{
    gpuhal *gpu = open_cards("AB", NULL);
    uint32_t before = records_now(gpu, GPUHAL_RECORD_PHYSICAL), number = 0, preferred = 0;
    gpuhal_device *b = find_card(gpu, 'B');
    assert_int_equal(change_cards(gpu, "A"), 1);
    assert_int_equal(records_now(gpu, GPUHAL_RECORD_PHYSICAL), before - 1);
    assert_ok(gpuhal_device_physical(b, &number, &preferred));
    assert_int_equal(preferred, 0);
    assert_int_equal(change_cards(gpu, "AC"), 1);
    assert_int_equal(records_now(gpu, GPUHAL_RECORD_PHYSICAL), before);
    gpuhal_physical_info physical = {.size = sizeof physical};
    for (uint32_t i = 0; i < before; i++) {
        assert_ok(record_now(gpu, GPUHAL_RECORD_PHYSICAL, i, &physical));
        assert_int_not_equal(physical.number, number);
        assert_int_equal(physical.device_count, 1);
    }
    close_cards(gpu);
}

TEST(a_look_that_finds_nothing_new_changes_nothing)
{
    gpuhal *gpu = open_cards("AB", NULL);
    gpuhal_plugin_report before = report_of_backend(gpu);
    assert_int_equal(change_cards(gpu, "AB"), 0);
    assert_ptr_equal(report_of_backend(gpu).file, before.file);
    close_cards(gpu);
}

TEST(reports_are_those_of_the_newest_rescan_and_earlier_texts_stay)
{
    gpuhal *gpu = open_cards("A", NULL);
    gpuhal_plugin_report before = report_of_backend(gpu);
    assert_int_equal(change_cards(gpu, "AB"), 1);
    assert_int_equal(before.device_count, 1);
    assert_int_equal(report_of_backend(gpu).device_count, 2);
    assert_string_equal(before.file, report_of_backend(gpu).file);
    close_cards(gpu);
}

TEST(every_call_on_a_device_that_is_gone_answers_device_lost)
{
    gpuhal *gpu = open_cards("AB", NULL);
    gpuhal_device *b = find_card(gpu, 'B'), *a = find_card(gpu, 'A');
    unsigned char bytes[4096] = {0};
    gpuhal_buffer *buffer = buffer_or_fail(b, GPUHAL_MEMORY_DEVICE, sizeof bytes), *other = NULL;
    gpuhal_queue *queue = queue_or_fail(b, 0);
    gpuhal_value value = {.key = GPUHAL_VALUE_MEMORY_FREE_BYTES};
    use_device(b);
    assert_int_equal(change_cards(gpu, "A"), 1);
    expect_gone(gpuhal_device_status(b), b);
    expect_gone(gpuhal_device_open(b), b);
    expect_gone(gpuhal_write(NULL, buffer, 0, bytes, sizeof bytes), b);
    expect_gone(gpuhal_read(NULL, bytes, buffer, 0, sizeof bytes), b);
    expect_gone(gpuhal_device_sample(b, 0, &value, 1, NULL), b);
    expect_gone(gpuhal_buffer_create(b, &(gpuhal_buffer_desc){.size = sizeof(gpuhal_buffer_desc), .bytes = 64}, &other),
                b);
    assert_int_equal(gpuhal_write(queue, buffer, 0, bytes, sizeof bytes), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_queue_synchronize(queue, PATIENCE_NS), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_device_status(a), GPUHAL_OK);
    use_device(a);
    gpuhal_queue_destroy(queue);
    gpuhal_buffer_release(buffer);
    close_cards(gpu);
}

TEST(work_of_a_queue_fails_when_its_device_goes)
{
    gpuhal *gpu = open_cards("AB", NULL);
    gpuhal_device *a = find_card(gpu, 'A'), *b = find_card(gpu, 'B');
    gpuhal_queue *queue = queue_or_fail(b, 0), *holder = queue_or_fail(a, 0);
    gpuhal_buffer *buffer = buffer_or_fail(b, GPUHAL_MEMORY_DEVICE, 4096),
                  *held = buffer_or_fail(a, GPUHAL_MEMORY_DEVICE, 4096);
    gpuhal_event *before = event_or_fail(gpu, 0), *after = event_or_fail(gpu, 0);
    gate shut;
    enqueue_gate(&shut, holder, held);
    assert_ok(gpuhal_event_record(before, holder));
    assert_ok(gpuhal_queue_wait(queue, before));
    assert_ok(gpuhal_fill(queue, buffer, 0, 4096, 7, 4));
    assert_ok(gpuhal_event_record(after, queue));
    assert_int_equal(gpuhal_event_poll(after), GPUHAL_NOT_READY);
    assert_int_equal(change_cards(gpu, "A"), 1);
    assert_int_equal(gpuhal_event_wait(after, PATIENCE_NS), GPUHAL_ERROR_DEVICE_LOST);
    atomic_store(&shut.open, true);
    assert_int_equal(gpuhal_queue_synchronize(queue, PATIENCE_NS), GPUHAL_ERROR_DEVICE_LOST);
    assert_ok(gpuhal_queue_synchronize(holder, PATIENCE_NS));
    gpuhal_event_destroy(before);
    gpuhal_event_destroy(after);
    gpuhal_queue_destroy(queue);
    gpuhal_queue_destroy(holder);
    gpuhal_buffer_release(buffer);
    gpuhal_buffer_release(held);
    close_cards(gpu);
}

TEST(a_device_that_was_never_opened_and_is_gone_cannot_be_opened)
{
    gpuhal *gpu = open_cards("AB", NULL);
    gpuhal_device *b = find_card(gpu, 'B');
    assert_int_equal(change_cards(gpu, "A"), 1);
    expect_gone(gpuhal_device_open(b), b);
    expect_gone(gpuhal_device_open(b), b);
    close_cards(gpu);
}

TEST(selectors_pass_over_gone_devices_and_say_so)
{
    gpuhal *gpu = open_cards("AB", NULL);
    gpuhal_device *found = NULL;
    assert_ptr_equal(select_or_fail(gpu, "auto"), find_card(gpu, 'A'));
    assert_int_equal(change_cards(gpu, "B"), 1);
    assert_ptr_equal(select_or_fail(gpu, "auto"), find_card(gpu, 'B'));
    assert_ptr_equal(select_or_fail(gpu, "cuda"), find_card(gpu, 'B'));
    assert_int_equal(gpuhal_select(gpu, "cuda:0", 0, &found, NULL), GPUHAL_ERROR_NOT_FOUND);
    expect_word(gpuhal_last_error()->sentence, "cuda:0 is not listed any more");
    assert_int_equal(gpuhal_select(gpu, "name=Card A", 0, &found, NULL), GPUHAL_ERROR_NOT_FOUND);
    close_cards(gpu);
}

TEST(a_device_that_comes_back_is_a_new_device_and_the_old_handle_stays_lost)
{
    gpuhal *gpu = open_cards("AB", NULL);
    gpuhal_device *b = find_card(gpu, 'B');
    uint32_t count = gpuhal_device_count(gpu), number = 0, again = 0, preferred = 0;
    use_device(b);
    assert_ok(gpuhal_device_physical(b, &number, &preferred));
    assert_int_equal(change_cards(gpu, "A"), 1);
    assert_int_equal(change_cards(gpu, "AB"), 1);
    assert_int_equal(gpuhal_device_count(gpu), count + 1);
    gpuhal_device *back = select_or_fail(gpu, "cuda:1");
    assert_ptr_equal(back, gpuhal_device_at(gpu, count));
    assert_ok(gpuhal_device_physical(back, &again, &preferred));
    assert_int_equal(again, number);
    assert_int_equal(preferred, 1);
    use_device(back);
    expect_gone(gpuhal_device_status(b), b);
    close_cards(gpu);
}

TEST(a_handle_stays_with_its_hardware_when_the_driver_counts_anew)
{
    gpuhal *gpu = open_cards("AB", NULL);
    gpuhal_device *a = find_card(gpu, 'A'), *b = find_card(gpu, 'B');
    assert_int_equal(change_cards(gpu, "BA"), 0);
    assert_ptr_equal(select_or_fail(gpu, "cuda:0"), a);
    /* The driver starts in this process only now, and lists B first. Only A has enough memory for this buffer. */
    gpuhal_buffer *large = buffer_or_fail(a, GPUHAL_MEMORY_DEVICE, 128 * MIB), *other = NULL;
    assert_int_equal(
        gpuhal_buffer_create(b, &(gpuhal_buffer_desc){.size = sizeof(gpuhal_buffer_desc), .bytes = 128 * MIB}, &other),
        GPUHAL_ERROR_TOO_LARGE);
    gpuhal_buffer_release(large);
    close_cards(gpu);
}

TEST(a_new_device_takes_no_name_that_another_one_bears)
{
    gpuhal *gpu = open_cards("AB", NULL);
    gpuhal_device *b = find_card(gpu, 'B');
    assert_int_equal(change_cards(gpu, "BC"), 2);
    assert_string_equal(gpuhal_device_id(b), "cuda:1");
    assert_string_equal(gpuhal_device_id(find_card(gpu, 'C')), "cuda:2");
    assert_ptr_equal(select_or_fail(gpu, "cuda:1"), b);
    close_cards(gpu);
}

TEST(a_device_that_the_started_driver_does_not_know_asks_for_a_restart)
{
    gpuhal *gpu = open_cards("A", NULL);
    use_device(find_card(gpu, 'A'));
    assert_int_equal(change_cards(gpu, "AB"), 1);
    assert_int_equal(gpuhal_device_open(find_card(gpu, 'B')), GPUHAL_ERROR_NO_DEVICE);
    expect_word(gpuhal_last_error()->sentence, "restart the program");
    use_device(find_card(gpu, 'A'));
    close_cards(gpu);
}

TEST(a_driver_that_hangs_or_fails_at_the_next_look_takes_no_device_away)
{
    use_machine(make_cards("AB"));
    gpuhal *gpu = open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config),
                                                .backends = "cuda",
                                                .isolation = GPUHAL_ISOLATION_ALWAYS,
                                                .helper_deadline_ns = 2000 * MILLISECOND_NS});
    uint32_t count = gpuhal_device_count(gpu);
    put_cards("A", "hang cuInit 1");
    assert_ok(gpuhal_rescan(gpu, NULL));
    assert_int_equal(report_of_backend(gpu).state, GPUHAL_PLUGIN_TIMED_OUT);
    put_cards("A", "init 999");
    assert_ok(gpuhal_rescan(gpu, NULL));
    assert_int_not_equal(report_of_backend(gpu).state, GPUHAL_PLUGIN_OK);
    assert_int_equal(gpuhal_generation(gpu), 1);
    assert_int_equal(gpuhal_device_count(gpu), count);
    assert_ptr_equal(select_or_fail(gpu, "cuda:1"), find_card(gpu, 'B'));
    put_cards("AB", "");
    use_device(find_card(gpu, 'B'));
    assert_int_equal(change_cards(gpu, "AB"), 0);
    close_cards(gpu);
}

TEST(a_new_device_is_seen_only_if_the_configuration_names_it)
{
    gpuhal *gpu = open_cards("AC", "cuda:0,name=Card C");
    assert_int_equal(gpuhal_device_count(gpu), 2);
    assert_int_equal(change_cards(gpu, "ACB"), 0);
    assert_int_equal(gpuhal_device_count(gpu), 2);
    assert_int_equal(change_cards(gpu, "AB"), 1);
    assert_int_equal(change_cards(gpu, "ABC"), 1);
    assert_int_equal(gpuhal_device_count(gpu), 3);
    assert_non_null(find_card(gpu, 'C'));
    assert_null(find_card(gpu, 'B'));
    close_cards(gpu);
}

/* ---- listeners */

typedef struct heard {
    gpuhal *gpu;
    pthread_mutex_t mutex;
    pthread_cond_t condition;
    gpuhal_change list[32];
    int count;
    bool uses, ends;
    gpuhal_status status;
} heard;

static void listen(void *user, const gpuhal_change *change)
{
    heard *all = user;
    gpuhal_status status = GPUHAL_OK;
    if (all->uses) {
        gpuhal_buffer *buffer = NULL;
        gpuhal_device *found = NULL;
        status = gpuhal_select(all->gpu, gpuhal_device_id(change->device), 0, &found, NULL);
        status = status ? status
                        : gpuhal_buffer_create(
                              found, &(gpuhal_buffer_desc){.size = sizeof(gpuhal_buffer_desc), .bytes = 64}, &buffer);
        gpuhal_buffer_release(buffer);
        status = status ? status : gpuhal_rescan(all->gpu, NULL);
    }
    if (all->ends) {
        status = status ? status : gpuhal_on_change(all->gpu, NULL, NULL);
    }
    pthread_mutex_lock(&all->mutex);
    all->status = status;
    all->list[all->count++ % 32] = *change;
    pthread_cond_broadcast(&all->condition);
    pthread_mutex_unlock(&all->mutex);
}

static void await(heard *all, int count)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    pthread_mutex_lock(&all->mutex);
    while (all->count < count && pthread_cond_timedwait(&all->condition, &all->mutex, &until) == 0) {
    }
    assert_int_equal(all->count, count);
    pthread_mutex_unlock(&all->mutex);
}

#define HEARD(of)                                                                                                      \
    {                                                                                                                  \
        .gpu = of, .mutex = PTHREAD_MUTEX_INITIALIZER, .condition = PTHREAD_COND_INITIALIZER                           \
    }

TEST(a_listener_is_notified_of_each_change_in_order_with_rising_generations)
{
    gpuhal *gpu = open_cards("A", NULL);
    heard all = HEARD(gpu);
    gpuhal_device *a = find_card(gpu, 'A');
    assert_int_equal(change_cards(gpu, "AB"), 1);
    assert_ok(gpuhal_on_change(gpu, listen, &all));
    assert_int_equal(change_cards(gpu, "BC"), 2);
    await(&all, 2);
    assert_int_equal(all.list[0].kind, GPUHAL_CHANGE_VANISHED);
    assert_ptr_equal(all.list[0].device, a);
    assert_string_equal(all.list[0].sentence, "cuda:0 is not listed any more");
    assert_int_equal(all.list[0].generation, 3);
    assert_int_equal(all.list[1].kind, GPUHAL_CHANGE_APPEARED);
    assert_ptr_equal(all.list[1].device, find_card(gpu, 'C'));
    expect_word(all.list[1].sentence, "appeared: Card C");
    assert_int_equal(all.list[1].generation, 4);
    assert_ok(gpuhal_on_change(gpu, NULL, NULL));
    assert_int_equal(change_cards(gpu, "B"), 1);
    assert_int_equal(all.count, 2);
    close_cards(gpu);
}

TEST(a_listener_may_use_the_library_and_end_itself)
{
    gpuhal *gpu = open_cards("A", NULL);
    heard all = HEARD(gpu);
    all.uses = all.ends = true;
    assert_ok(gpuhal_on_change(gpu, listen, &all));
    assert_int_equal(change_cards(gpu, "AB"), 1);
    await(&all, 1);
    assert_int_equal(all.status, GPUHAL_OK);
    assert_int_equal(change_cards(gpu, "A"), 1);
    assert_int_equal(all.count, 1);
    close_cards(gpu);
}

TEST(no_listener_is_called_once_the_object_is_closed)
{
    gpuhal *gpu = open_cards("A", NULL);
    heard all = HEARD(gpu);
    assert_ok(gpuhal_on_change(gpu, listen, &all));
    assert_int_equal(change_cards(gpu, "ABCDEF"), 5);
    close_cards(gpu);
    int count = all.count;
    pause_ms(50);
    assert_int_equal(all.count, count);
}

TEST(a_driver_that_changed_its_version_is_reported_once)
{
    gpuhal *gpu = open_cards("A", NULL);
    heard all = HEARD(gpu);
    assert_ok(gpuhal_on_change(gpu, listen, &all));
    put_cards("A", "driver 13010\ndriver_text 590.1.2");
    assert_ok(gpuhal_rescan(gpu, NULL));
    assert_ok(gpuhal_rescan(gpu, NULL));
    await(&all, 1);
    assert_int_equal(all.list[0].kind, GPUHAL_CHANGE_CHANGED);
    expect_word(all.list[0].sentence, "590.1.2");
    assert_int_equal(gpuhal_generation(gpu), 2);
    close_cards(gpu);
}

TEST(a_device_that_its_driver_loses_is_reported)
{
    use_machine(make_cards("A"));
    put_cards("A", "lose 0 cuMemsetD8Async 1 719\nstrict 0");
    gpuhal *gpu = open_or_fail(
        &(gpuhal_config){.size = sizeof(gpuhal_config), .backends = "cuda", .isolation = GPUHAL_ISOLATION_ALWAYS});
    gpuhal_os_handle descriptor = -1;
    gpuhal_change change = {.size = sizeof change};
    assert_ok(gpuhal_change_descriptor(gpu, &descriptor));
    gpuhal_device *a = find_card(gpu, 'A'), *found = NULL;
    gpuhal_buffer *buffer = buffer_or_fail(a, GPUHAL_MEMORY_DEVICE, 4096);
    assert_int_equal(gpuhal_fill(NULL, buffer, 0, 4096, 1, 1), GPUHAL_ERROR_DEVICE_LOST);
    assert_true(is_readable(descriptor, 0));
    assert_ok(gpuhal_next_change(gpu, &change));
    assert_int_equal(change.kind, GPUHAL_CHANGE_LOST);
    assert_ptr_equal(change.device, a);
    expect_word(change.sentence, "cuda:0");
    assert_int_equal(change.generation, 2);
    assert_int_equal(gpuhal_next_change(gpu, &change), GPUHAL_NOT_READY);
    assert_int_equal(gpuhal_device_status(a), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_select(gpu, "cuda:0", 0, &found, NULL), GPUHAL_ERROR_NOT_FOUND);
    expect_word(gpuhal_last_error()->sentence, "cuda:0 was lost");
    close((int)descriptor);
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    remove_cards();
    remove_reports();
}

TEST(the_descriptor_is_readable_exactly_while_there_is_something_to_take)
{
    gpuhal *gpu = open_cards("A", NULL);
    gpuhal_os_handle descriptor = -1, second = -1;
    gpuhal_change change = {.size = sizeof change};
    assert_int_equal(change_cards(gpu, "AB"), 1);
    assert_int_equal(gpuhal_next_change(gpu, &change), GPUHAL_NOT_READY);
    assert_ok(gpuhal_change_descriptor(gpu, &descriptor));
    assert_false(is_readable(descriptor, 0));
    assert_int_equal(change_cards(gpu, "AC"), 2);
    assert_true(is_readable(descriptor, 0));
    assert_ok(gpuhal_next_change(gpu, &change));
    assert_int_equal(change.generation, 3);
    assert_true(is_readable(descriptor, 0));
    assert_ok(gpuhal_change_descriptor(gpu, &second));
    assert_true(is_readable(second, 0));
    close((int)second);
    assert_ok(gpuhal_next_change(gpu, &change));
    assert_int_equal(change.generation, 4);
    assert_false(is_readable(descriptor, 0));
    assert_int_equal(gpuhal_next_change(gpu, &change), GPUHAL_NOT_READY);
    close((int)descriptor);
    close_cards(gpu);
}

TEST(the_newest_256_changes_are_kept)
{
    gpuhal *gpu = open_cards("A", NULL);
    gpuhal_os_handle descriptor = -1;
    gpuhal_change change = {.size = sizeof change};
    assert_ok(gpuhal_change_descriptor(gpu, &descriptor));
    for (int i = 0; i < 10; i++) {
        assert_int_equal(change_cards(gpu, "ABCDEFGHIJKLMNOP"), 15);
        assert_int_equal(change_cards(gpu, "A"), 15);
    }
    for (uint64_t i = 0; i < 256; i++) {
        assert_ok(gpuhal_next_change(gpu, &change));
        assert_int_equal(change.generation, 301 - 255 + i);
    }
    assert_int_equal(gpuhal_next_change(gpu, &change), GPUHAL_NOT_READY);
    close((int)descriptor);
    close_cards(gpu);
}

TEST(wrong_arguments_are_refused)
{
    gpuhal *gpu = open_cards("A", NULL);
    gpuhal_change change = {0};
    gpuhal_os_handle descriptor = 0;
    assert_int_equal(gpuhal_generation(NULL), 0);
    assert_int_equal(gpuhal_rescan(NULL, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_device_status(NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_on_change(NULL, listen, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_change_descriptor(NULL, &descriptor), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_change_descriptor(gpu, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_next_change(gpu, &change), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_next_change(gpu, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    close_cards(gpu);
}

/* ---- many threads */

enum { LOOKERS = 2, LOOKS = 6 };

typedef struct crowd {
    gpuhal *gpu;
    _Atomic bool over;
    _Atomic int wrong;
    _Atomic uint64_t walks;
} crowd;

static void *look_often(void *user)
{
    crowd *all = user;
    uint64_t last = 0, now = 0;
    for (int i = 0; i < LOOKS; i++) {
        put_cards(i % 2 ? "ABC" : "AC", "");
        if (gpuhal_rescan(all->gpu, &now) || now < last) {
            atomic_fetch_add(&all->wrong, 1);
        }
        last = now;
    }
    return NULL;
}

static void walk_once(crowd *all)
{
    gpuhal_device *found = NULL;
    const char *reason = NULL;
    gpuhal_physical_info physical = {.size = sizeof physical};
    uint32_t count = gpuhal_device_count(all->gpu);
    uint64_t kind = 0;
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_device *device = gpuhal_device_at(all->gpu, i), *other = gpuhal_device_at(all->gpu, count - 1 - i);
        bool listed = device && other && gpuhal_device_index(device) < 16;
        gpuhal_status untried = device == other ? GPUHAL_ERROR_INVALID_ARGUMENT : GPUHAL_ERROR_NOT_SUPPORTED;
        if (!listed || gpuhal_link_u64(device, other, GPUHAL_LINK_VERIFIED, &kind) != untried) {
            atomic_fetch_add(&all->wrong, 1);
        }
        (void)gpuhal_device_status(device);
    }
    if (gpuhal_select(all->gpu, "auto", 0, &found, &reason) ||
        gpuhal_select(all->gpu, "pci=0000:41:00.0", 0, &found, NULL)) {
        atomic_fetch_add(&all->wrong, 1);
    }
    gpuhal_view *view = NULL;
    gpuhal_interface_info iface = {.size = sizeof iface};
    atomic_fetch_add(&all->wrong, gpuhal_view_of(all->gpu, 0, &view) != GPUHAL_OK);
    for (uint32_t i = 0; gpuhal_view_get(view, GPUHAL_RECORD_PHYSICAL, i, &physical) == GPUHAL_OK; i++) {
        const bool got = gpuhal_view_get(view, GPUHAL_RECORD_INTERFACE, physical.first_interface, &iface) == GPUHAL_OK;
        atomic_fetch_add(&all->wrong, !got || iface.physical != physical.number);
    }
    gpuhal_view_release(view);
    atomic_fetch_add(&all->walks, 1);
}

static void *walk(void *user)
{
    crowd *all = user;
    while (!atomic_load(&all->over)) {
        walk_once(all);
    }
    return NULL;
}

static void *copy_often(void *user)
{
    crowd *all = user;
    gpuhal_device *a = find_card(all->gpu, 'A');
    while (!atomic_load(&all->over)) {
        use_device(a);
    }
    return NULL;
}

TEST(threads_list_select_and_copy_while_others_look_again)
{
    crowd all = {.gpu = open_cards("ABC", NULL)};
    pthread_t lookers[LOOKERS], others[2];
    use_device(find_card(all.gpu, 'A'));
    assert_int_equal(pthread_create(&others[0], NULL, walk, &all), 0);
    assert_int_equal(pthread_create(&others[1], NULL, copy_often, &all), 0);
    for (int i = 0; i < LOOKERS; i++) {
        assert_int_equal(pthread_create(&lookers[i], NULL, look_often, &all), 0);
    }
    for (int i = 0; i < LOOKERS; i++) {
        pthread_join(lookers[i], NULL);
    }
    atomic_store(&all.over, true);
    pthread_join(others[0], NULL);
    pthread_join(others[1], NULL);
    assert_int_equal(all.wrong, 0);
    assert_true(atomic_load(&all.walks) > 0);
    assert_ok(gpuhal_rescan(all.gpu, NULL));
    assert_non_null(find_card(all.gpu, 'B'));
    close_cards(all.gpu);
}

#include "test_main.h"
