/* Leases that another thread releases at the same time, and ledgers that are locked or cannot be written. */
#include "lease_support.h"

#include "schedule/leases.h"

#include <errno.h>
#include <pthread.h>

static gpuhal_lease *_Atomic to_release; /* another thread releases this lease while the first thread leaves it */
static _Atomic bool leaves, freed_while_left;
static _Atomic bool files_fail, is_busy;
static _Atomic uint64_t slept_beyond; /* by how much a pause ended after the deadline at most */
static _Atomic unsigned pauses;
static uint64_t pause_deadline_ns;
static _Atomic unsigned unlocked_closed; /* unlocks of bytes of a closed file */

static void *release(void *lease)
{
    gpuhal_lease_release(lease);
    return NULL;
}

gpuhal_status __real_gpuhal_lease_leave(gpuhal_lease *lease, bool unless_held, bool *out_held);
gpuhal_status __wrap_gpuhal_lease_leave(gpuhal_lease *lease, bool unless_held, bool *out_held);
gpuhal_status __wrap_gpuhal_lease_leave(gpuhal_lease *lease, bool unless_held, bool *out_held)
{
    gpuhal_lease *other = atomic_exchange(&to_release, NULL);
    if (other == lease) {
        pthread_t thread;
        leaves = true;
        assert_int_equal(pthread_create(&thread, NULL, release, lease), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        leaves = false;
        if (freed_while_left) {
            return GPUHAL_OK;
        }
    }
    return __real_gpuhal_lease_leave(lease, unless_held, out_held);
}

void __real_gpuhal_lease_unreference(gpuhal_lease *lease);
void __wrap_gpuhal_lease_unreference(gpuhal_lease *lease);
void __wrap_gpuhal_lease_unreference(gpuhal_lease *lease)
{
    freed_while_left = freed_while_left || (leaves && atomic_load(&lease->references) == 1);
    __real_gpuhal_lease_unreference(lease);
}

gpuhal_status __real_gpuhal_lease_look(gpuhal_lease *lease, bool *out_held, uint32_t *out_before, uint32_t *out_word);
gpuhal_status __wrap_gpuhal_lease_look(gpuhal_lease *lease, bool *out_held, uint32_t *out_before, uint32_t *out_word);
gpuhal_status __wrap_gpuhal_lease_look(gpuhal_lease *lease, bool *out_held, uint32_t *out_before, uint32_t *out_word)
{
    *out_held = false;
    return is_busy ? GPUHAL_ERROR_BUSY : __real_gpuhal_lease_look(lease, out_held, out_before, out_word);
}

void __real_gpuhal_os_sleep(uint64_t ns);
void __wrap_gpuhal_os_sleep(uint64_t ns);
void __wrap_gpuhal_os_sleep(uint64_t ns)
{
    const uint64_t end = gpuhal_os_monotonic_ns() + ns, deadline = pause_deadline_ns;
    pauses += is_busy;
    if (is_busy && end > deadline && end - deadline > slept_beyond) {
        slept_beyond = end - deadline;
    }
    __real_gpuhal_os_sleep(ns);
}

gpuhal_status __real_gpuhal_ledger_files_store(gpuhal_ledger_files *files, gpuhal_ledger_state *state);
gpuhal_status __wrap_gpuhal_ledger_files_store(gpuhal_ledger_files *files, gpuhal_ledger_state *state);
gpuhal_status __wrap_gpuhal_ledger_files_store(gpuhal_ledger_files *files, gpuhal_ledger_state *state)
{
    return files_fail ? gpuhal_ledger_files_failed("the ledger", "written", ENOSPC)
                      : __real_gpuhal_ledger_files_store(files, state);
}

int __real_gpuhal_os_byte_unlock(intptr_t file, uint64_t offset);
int __wrap_gpuhal_os_byte_unlock(intptr_t file, uint64_t offset);
int __wrap_gpuhal_os_byte_unlock(intptr_t file, uint64_t offset)
{
    unlocked_closed += fcntl((int)file, F_GETFD) < 0;
    return __real_gpuhal_os_byte_unlock(file, offset);
}

/* A callback may release its lease while another thread closes the object. */
TEST(a_lease_that_is_released_while_its_object_closes_stays_until_the_close_has_left_it)
{
    gpuhal *gpu = open_gpus(1);
    to_release = lease_bytes(gpu, MIB);
    gpuhal_close(gpu);
    assert_null(to_release);
    assert_false(freed_while_left);
}

TEST(a_refused_request_whose_ledger_cannot_be_written_unlocks_nothing_in_a_closed_file)
{
    gpuhal *gpu = open_gpus(1);
    gpuhal_lease *lease = lease_bytes(gpu, MOST), *refused = NULL;
    gpuhal_lease_desc desc = bytes_of(MOST);
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY); /* the library keeps the file of one request open */
    desc.flags = GPUHAL_LEASE_INHERIT;
    files_fail = true;
    assert_int_equal(gpuhal_lease_acquire(gpu, &desc, 0, &refused), GPUHAL_ERROR_BUSY);
    files_fail = false;
    assert_int_equal(unlocked_closed, 0);
    gpuhal_lease_release(lease);
    gpuhal_close(gpu);
}

/* A pause without a limit would end 15 ms after the deadline or later. */
TEST(a_request_pauses_no_longer_than_its_deadline_while_the_ledger_is_locked)
{
    gpuhal *gpu = open_gpus(1);
    gpuhal_lease *lease = lease_bytes(gpu, MOST), *second = NULL;
    const gpuhal_lease_desc desc = bytes_of(MOST);
    is_busy = true;
    while (pauses == 0) { /* on a busy machine the time may be over before the first pause */
        pause_deadline_ns = gpuhal_os_monotonic_ns() + 25 * MS;
        assert_int_equal(gpuhal_lease_acquire(gpu, &desc, 25 * MS, &second), GPUHAL_ERROR_TIMEOUT);
    }
    is_busy = false;
    assert_true(slept_beyond < 10 * MS);
    gpuhal_lease_release(lease);
    gpuhal_close(gpu);
}

#include "test_main.h"
