/* tests/unit/lease_grant_test.c: the order of grants, tested on ledger tables with invented times: devices, priorities,
 * aging, and the number of times that a request may be overtaken. */
#include "schedule/ledger.h"

#include "test.h"

enum { SLOTS = 4 };

static gpuhal_ledger_state *state;
static bool dead[GPUHAL_LEDGER_RECORDS + 1]; /* indexed by ticket */

static bool lives(void *user, const gpuhal_ledger_record *record)
{
    (void)user;
    return !dead[record->ticket];
}

static void begin(uint32_t devices)
{
    free(state);
    state = calloc(1, sizeof *state);
    assert_non_null(state);
    memset(dead, 0, sizeof dead);
    state->next_ticket = 1;
    for (uint32_t d = 0; d < devices; d++) {
        const gpuhal_ledger_device device = {.key = {(char)('a' + (int)d)}, .bytes = 1000, .slots = SLOTS};
        assert_int_equal(gpuhal_ledger_device_index(state, &device, 0), d);
    }
}

static uint64_t all_devices(void)
{
    return (UINT64_C(1) << state->device_count) - 1;
}

/* Requests any `count` devices. */
static uint64_t ask(uint32_t count, uint32_t slots, uint64_t bytes, int32_t priority, uint64_t now_ns)
{
    const gpuhal_ledger_record record = {.ticket = state->next_ticket++,
                                         .candidates = all_devices(),
                                         .bytes = bytes,
                                         .asked_ns = now_ns,
                                         .place = (uint32_t)(state->next_ticket % GPUHAL_LEDGER_RECORDS),
                                         .state = GPUHAL_RECORD_WAITS,
                                         .count = count,
                                         .slots = slots,
                                         .priority = priority};
    state->records[state->record_count++] = record;
    return record.ticket;
}

static uint32_t settle(uint64_t now_ns)
{
    static uint32_t places[GPUHAL_LEDGER_RECORDS];
    bool changed = false;
    const uint32_t granted = gpuhal_grant_settle(state, now_ns, lives, NULL, places, &changed);
    assert_true(gpuhal_ledger_is_sound(state));
    assert_true(changed || granted == 0);
    return granted;
}

static bool held(uint64_t ticket)
{
    return gpuhal_ledger_is_held(state, ticket);
}

TEST(the_device_with_most_free_slots_is_chosen_then_the_one_with_most_memory)
{
    begin(3);
    const uint64_t first = ask(1, 2, 0, 0, 0), second = ask(1, 1, 100, 0, 0), third = ask(1, 1, 0, 0, 0);
    assert_int_equal(settle(0), 3);
    const uint64_t tickets[] = {first, second, third};
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(state->items[i].ticket, tickets[i]);
        assert_int_equal(state->items[i].device, i);
    }
    const uint64_t fourth = ask(1, 1, 0, 0, 0);
    settle(0);
    assert_true(held(fourth) && state->items[3].device == 2);
}

/* In the requester's order the first two devices are equal, and the third is of a lower class. */
TEST(the_classes_of_the_requester_come_before_use_and_its_order_breaks_ties)
{
    begin(3);
    const uint64_t first = ask(1, 1, 0, 0, 0);
    gpuhal_ledger_record *record = gpuhal_ledger_find(state, first);
    record->places[0] = 2, record->places[1] = 1, record->places[2] = 0;
    record->lesser = 4; /* bit 2, the place of device a */
    state->devices[1].foreign_bytes = state->devices[2].foreign_bytes = 900;
    settle(0);
    assert_int_equal(state->items[0].device, 2);
    gpuhal_ledger_remove(state, first);
    const uint64_t second = ask(1, 1, 0, 0, 0);
    record = gpuhal_ledger_find(state, second);
    record->places[0] = 2, record->places[1] = 1, record->places[2] = 0;
    record->lesser = 4;
    state->devices[2].busy_permille = 500;
    settle(0);
    assert_int_equal(state->items[0].device, 1);
}

TEST(of_equal_devices_one_that_ails_is_granted_last)
{
    begin(2);
    const uint64_t first = ask(1, GPUHAL_LEDGER_ALL_SLOTS, 0, 0, 0), second = ask(1, GPUHAL_LEDGER_ALL_SLOTS, 0, 0, 0);
    gpuhal_ledger_find(state, first)->ailing = 1;
    state->devices[1].busy_permille = 1000;
    settle(0);
    assert_true(held(first) && held(second));
    assert_true(state->items[0].ticket == first && state->items[0].device == 1);
}

TEST(places_beyond_the_last_device_do_no_harm)
{
    begin(2);
    const uint64_t first = ask(1, 1, 0, 0, 0);
    memset(gpuhal_ledger_find(state, first)->places, 0xff, GPUHAL_LEDGER_DEVICES);
    gpuhal_ledger_find(state, first)->lesser = UINT64_MAX;
    assert_int_equal(settle(0), 1);
}

TEST(requests_are_granted_in_order_and_never_beyond_the_capacity)
{
    begin(2);
    uint64_t tickets[12];
    for (int i = 0; i < 12; i++) {
        tickets[i] = ask(1, 1, 0, 0, 0);
    }
    assert_int_equal(settle(0), 2 * SLOTS);
    for (int i = 0; i < 12; i++) {
        assert_int_equal(held(tickets[i]), i < 2 * SLOTS);
    }
    gpuhal_ledger_remove(state, tickets[0]);
    assert_int_equal(settle(0), 1);
    assert_true(held(tickets[8]));
}

TEST(a_large_request_is_overtaken_eight_times_and_then_its_devices_are_kept)
{
    begin(1);
    const uint64_t holder = ask(1, 1, 0, 0, 0);
    settle(0);
    const uint64_t large = ask(1, GPUHAL_LEDGER_ALL_SLOTS, 0, 0, 0);
    unsigned overtaken = 0;
    for (int i = 0; i < 100; i++) {
        const uint64_t small = ask(1, 1, 0, 0, 0);
        settle(0);
        overtaken += held(small);
        if (held(small)) {
            gpuhal_ledger_remove(state, small);
        }
    }
    assert_int_equal(overtaken, GPUHAL_LEDGER_OVERTAKEN_MAX);
    assert_int_equal(gpuhal_ledger_find(state, large)->overtaken, GPUHAL_LEDGER_OVERTAKEN_MAX);
    gpuhal_ledger_remove(state, holder);
    settle(0);
    assert_true(held(large));
}

TEST(devices_are_kept_only_for_a_request_that_lives)
{
    begin(1);
    const uint64_t holder = ask(1, 1, 0, 0, 0);
    settle(0);
    const uint64_t large = ask(1, GPUHAL_LEDGER_ALL_SLOTS, 0, 0, 0);
    for (int i = 0; i < 20; i++) {
        const uint64_t small = ask(1, 1, 0, 0, 0);
        settle(0);
        gpuhal_ledger_remove(state, small);
    }
    dead[large] = true;
    const uint64_t last = ask(1, 1, 0, 0, 0);
    settle(0);
    assert_true(held(last) && held(holder));
    assert_null(gpuhal_ledger_find(state, large));
}

TEST(sizes_on_a_device_of_unknown_memory_may_add_up_to_anything)
{
    gpuhal_ledger_use use;
    begin(1);
    state->devices[0].bytes = 0;
    for (int i = 0; i < SLOTS; i++) {
        ask(1, 1, UINT64_MAX / 2, 0, 0);
        assert_int_equal(settle(0), 1);
    }
    gpuhal_ledger_granted(state, &use);
    assert_true(use.bytes[0] == UINT64_MAX && use.slots[0] == SLOTS);
}

TEST(a_duration_beyond_the_end_of_the_clock_never_expires)
{
    begin(1);
    const uint64_t longest = ask(1, 1, 0, 0, 0), second = ask(1, 1, 0, 0, 0);
    gpuhal_ledger_find(state, longest)->expires_ns = UINT64_MAX;
    gpuhal_ledger_find(state, second)->expires_ns = 7;
    assert_int_equal(settle(5), 2);
    assert_int_equal(gpuhal_ledger_find(state, longest)->expires_ns, 0);
    assert_int_equal(gpuhal_ledger_find(state, second)->expires_ns, 12);
}

TEST(a_full_table_forgets_a_device_that_nothing_names)
{
    gpuhal_ledger_device device = {.bytes = 1000, .slots = SLOTS};
    begin(2);
    const uint64_t holder = ask(1, 1, 0, 0, 0);
    gpuhal_ledger_find(state, holder)->candidates = 2;
    settle(0);
    for (unsigned i = 2; i < 3 * GPUHAL_LEDGER_DEVICES; i++) {
        snprintf(device.key, sizeof device.key, "made anew %u", i);
        const uint32_t index = gpuhal_ledger_device_index(state, &device, 4);
        assert_int_equal(index, i < GPUHAL_LEDGER_DEVICES ? i : 0);
        assert_string_equal(state->devices[index].key, device.key);
        assert_true(gpuhal_ledger_is_sound(state));
    }
    assert_string_equal(state->devices[1].key, "b");
    assert_string_equal(state->devices[2].key, "made anew 2");
    snprintf(device.key, sizeof device.key, "one more");
    assert_int_equal(gpuhal_ledger_device_index(state, &device, ~UINT64_C(2)), GPUHAL_LEDGER_DEVICES);
}

TEST(one_that_wants_other_devices_overtakes_nothing)
{
    begin(2);
    const uint64_t first = ask(2, GPUHAL_LEDGER_ALL_SLOTS, 0, 0, 0);
    settle(0);
    assert_true(held(first));
    /* Waits for device a only. */
    const uint64_t waiting = ask(1, 1, 0, 0, 0);
    gpuhal_ledger_find(state, waiting)->candidates = 1;
    for (uint32_t i = 0; i < state->item_count; i++) {
        state->items[i].slots = state->items[i].device == 1 ? SLOTS - 1 : SLOTS;
    }
    for (int i = 0; i < 20; i++) {
        const uint64_t other = ask(1, 1, 0, 0, 0);
        settle(0);
        assert_true(held(other));
        gpuhal_ledger_remove(state, other);
    }
    assert_int_equal(gpuhal_ledger_find(state, waiting)->overtaken, 0);
}

/* A process without a lease uses device a exclusively. The caller therefore removes a from the candidates. */
TEST(nothing_is_kept_for_a_request_that_waits_for_a_device_that_a_stranger_has_alone)
{
    for (uint32_t parts = 0; parts < 2; parts++) {
        begin(2);
        const uint64_t waiting = ask(parts ? 0 : 2, 1, 0, 0, 0);
        gpuhal_ledger_find(state, waiting)->candidates = 2;
        for (uint32_t d = 0; d < 2 && parts; d++) {
            assert_true(gpuhal_ledger_add_item(state, &(gpuhal_ledger_item){waiting, 0, d, 1}));
        }
        for (int i = 0; i < 20; i++) {
            const uint64_t other = ask(1, 1, 0, 0, 0);
            gpuhal_ledger_find(state, other)->candidates = 2;
            settle(0);
            assert_true(held(other) && !held(waiting));
            gpuhal_ledger_remove(state, other);
        }
        assert_int_equal(gpuhal_ledger_find(state, waiting)->overtaken, 0);
        gpuhal_ledger_find(state, waiting)->candidates = 3; /* that process has ended */
        settle(0);
        assert_true(held(waiting));
    }
}

TEST(priority_decides_and_waiting_raises_it)
{
    begin(1);
    const uint64_t holder = ask(1, GPUHAL_LEDGER_ALL_SLOTS, 0, 0, 0);
    settle(0);
    const uint64_t low = ask(1, GPUHAL_LEDGER_ALL_SLOTS, 0, -3, 0);
    const uint64_t now = 7 * GPUHAL_LEDGER_AGING_NS;
    const uint64_t high = ask(1, GPUHAL_LEDGER_ALL_SLOTS, 0, 3, now),
                   other = ask(1, GPUHAL_LEDGER_ALL_SLOTS, 0, 2, now);
    assert_int_equal(gpuhal_grant_priority(-3, 0, now), 4);
    const uint64_t order[] = {low, high, other};
    gpuhal_ledger_remove(state, holder);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(settle(now), 1);
        assert_true(held(order[i]));
        gpuhal_ledger_remove(state, order[i]);
    }
    /* A clock that is set back must not make a request older. */
    assert_int_equal(gpuhal_grant_priority(1, now, 0), 1);
}

/* A random history of requests that exclude each other, with all priorities. The requests are granted one after the
 * other. */
TEST(no_request_is_passed_by_one_that_comes_three_seconds_after_it)
{
    const uint64_t bound = 3 * UINT64_C(1000000000);
    unsigned random = 11, passed = 0;
    uint64_t now = 0, held_ticket = 0;
    begin(1);
    for (unsigned step = 0; step < 30000; step++) {
        random = random * 1103515245u + 12345u;
        const unsigned dice = random >> 16;
        now += dice % 100 * UINT64_C(1000000);
        if (state->next_ticket > GPUHAL_LEDGER_RECORDS) {
            begin(1);
            held_ticket = 0;
        }
        if (dice % 2 == 0 || state->record_count == 0) {
            ask(1, GPUHAL_LEDGER_ALL_SLOTS, 0, (int32_t)(dice / 2 % 7) - 3, now);
        } else if (held_ticket) {
            gpuhal_ledger_remove(state, held_ticket);
            held_ticket = 0;
        }
        settle(now);
        for (uint32_t i = 0; i < state->record_count; i++) {
            const gpuhal_ledger_record *one = &state->records[i];
            held_ticket = one->state == GPUHAL_RECORD_HELD ? one->ticket : held_ticket;
        }
        const gpuhal_ledger_record *granted = held_ticket ? gpuhal_ledger_find(state, held_ticket) : NULL;
        for (uint32_t i = 0; granted && granted->since_ns == now && i < state->record_count; i++) {
            const gpuhal_ledger_record *one = &state->records[i];
            assert_true(one->state == GPUHAL_RECORD_HELD || granted->asked_ns <= one->asked_ns + bound);
            passed += one->state == GPUHAL_RECORD_WAITS && one->ticket < granted->ticket;
        }
    }
    assert_true(passed > 100); /* priority had an effect */
}

/* A random history. The state must be consistent after each step. No request may be overtaken too often by requests of
 * equal priority. */
TEST(no_random_history_overtakes_a_request_more_than_eight_times)
{
    unsigned random = 7;
    begin(3);
    for (unsigned step = 0; step < 20000; step++) {
        random = random * 1103515245u + 12345u;
        const unsigned dice = random >> 16;
        if (dice % 3 != 0 && state->record_count < 60) {
            ask(1 + dice / 3 % 3, dice % 7 == 0 ? GPUHAL_LEDGER_ALL_SLOTS : 1 + dice / 9 % SLOTS, dice / 27 % 900, 0,
                0);
            dead[state->next_ticket - 1 < GPUHAL_LEDGER_RECORDS ? state->next_ticket - 1 : 0] = false;
        } else if (state->record_count > 0) {
            gpuhal_ledger_remove(state, state->records[dice / 3 % state->record_count].ticket);
        }
        if (state->next_ticket > GPUHAL_LEDGER_RECORDS) {
            begin(3);
        }
        settle(0);
        for (uint32_t i = 0; i < state->record_count; i++) {
            assert_true(state->records[i].overtaken <= GPUHAL_LEDGER_OVERTAKEN_MAX);
        }
    }
}

TEST(leases_never_exceed_the_slots_and_memory_of_a_device)
{
    begin(2);
    for (int i = 0; i < 50; i++) {
        ask(1 + (uint32_t)i % 2, 1, 300, 0, 0);
    }
    settle(0);
    gpuhal_ledger_use use;
    gpuhal_ledger_granted(state, &use);
    for (uint32_t d = 0; d < 2; d++) {
        assert_true(use.slots[d] <= SLOTS && use.bytes[d] <= 1000);
    }
    /* Memory used by processes without a lease is not granted. */
    begin(1);
    state->devices[0].foreign_bytes = 800;
    const uint64_t large = ask(1, 1, 300, 0, 0), small = ask(1, 1, 200, 0, 0);
    settle(0);
    assert_true(!held(large) && held(small));
    assert_true(gpuhal_grant_is_possible(state, gpuhal_ledger_find(state, large)));
}

TEST(an_address_and_a_uuid_name_one_device)
{
    begin(0);
    const gpuhal_ledger_device by_address = {.key = "0000:01:00.0", .address = "0000:01:00.0", .slots = 1};
    const gpuhal_ledger_device by_uuid = {.key = "1234-56", .address = "0000:01:00.0", .slots = 1};
    const gpuhal_ledger_device other = {.key = "1234-57", .address = "0000:01:00.0", .slots = 1};
    const gpuhal_ledger_device elsewhere = {.key = "1234-58", .address = "0000:02:00.0", .slots = 1};
    const gpuhal_ledger_device partition = {.key = "1234-59", .slots = 1};
    assert_int_equal(gpuhal_ledger_device_index(state, &by_address, 0), 0);
    assert_int_equal(gpuhal_ledger_device_index(state, &by_uuid, 0), 0);
    assert_string_equal(state->devices[0].key, "1234-56");
    assert_int_equal(gpuhal_ledger_device_index(state, &by_address, 0), 0);
    /* Another driver reports another UUID for the device. The old entry must stay while a lease refers to it. */
    ask(1, 1, 0, 0, 0);
    settle(0);
    assert_int_equal(gpuhal_ledger_device_index(state, &other, 0), 0);
    assert_string_equal(state->devices[0].key, "1234-56");
    gpuhal_ledger_remove(state, state->records[0].ticket);
    assert_int_equal(gpuhal_ledger_device_index(state, &other, 0), 0);
    assert_string_equal(state->devices[0].key, "1234-57");
    assert_int_equal(gpuhal_ledger_device_index(state, &elsewhere, 0), 1);
    assert_int_equal(gpuhal_ledger_device_index(state, &partition, 0), 2);
}

#include "test_main.h"
