/* tests/unit/call_slots_test.c: the slots with each thread's current call into a plugin, which the watchdog reads. */
#include "base/call.h"
#include "test.h"

#include <pthread.h>

static size_t count_slots(void)
{
    size_t count = 0;
    for (const gpuhal_call_slot *slot = gpuhal_call_slots(); slot; slot = slot->next) {
        count++;
    }
    return count;
}

static void *call_once(void *user)
{
    const gpuhal_call call = gpuhal_call_prompt(user);
    gpuhal_call_end(call);
    return NULL;
}

TEST(the_slot_of_a_thread_that_has_ended_is_used_again)
{
    static _Alignas(16) char subject;
    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, call_once, &subject), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    assert_in_range(count_slots(), 1, 8);
}

TEST(calls_nest_and_the_end_of_the_inner_one_restores_the_outer)
{
    static _Alignas(16) char devices[3][16];
    const gpuhal_call outer = gpuhal_call_blocking(devices[0], 1000);
    gpuhal_call_slot *slot = outer.slot;
    uintptr_t what = slot->call;
    assert_int_equal(slot->extra_ns, 20000);
    const gpuhal_call middle = gpuhal_call_small(devices[1]);
    assert_int_equal(slot->call, (uintptr_t)devices[1] | GPUHAL_CALL_BLOCKS);
    const gpuhal_call inner = gpuhal_call_timed(devices[2], UINT64_MAX);
    assert_int_equal(slot->call, (uintptr_t)devices[2] | GPUHAL_CALL_BLOCKS | GPUHAL_CALL_EXTRA);
    gpuhal_call_end(inner);
    gpuhal_call_end(middle);
    assert_int_equal(slot->call, what);
    assert_int_equal(slot->extra_ns, 20000);
    gpuhal_call_end(outer);
    assert_int_equal(slot->call, 0);
}

#include "test_main.h"
