/* tests/unit/lease_damage_test.c: ledgers and folders that are truncated, changed, from another version, or owned by
 * another user. The library must never crash, hang, or grant resources of another lease. */
#include "lease_support.h"

#include "device/device.h"
#include "schedule/ledger.h"

#include <errno.h>
#include <stdatomic.h>

/* File system type in this test; the linker redirects the two calls below. */
static const char *network;
static int lock_error;

const char *__wrap_gpuhal_os_network_file_system(intptr_t file);
const char *__wrap_gpuhal_os_network_file_system(intptr_t file)
{
    (void)file;
    return network;
}

int __real_gpuhal_os_byte_lock(intptr_t file, uint64_t offset);
int __wrap_gpuhal_os_byte_lock(intptr_t file, uint64_t offset);
int __wrap_gpuhal_os_byte_lock(intptr_t file, uint64_t offset)
{
    return lock_error ? lock_error : __real_gpuhal_os_byte_lock(file, offset);
}

/* On a full disk, writes of more than 64 bytes fail. */
static _Atomic bool disk_is_full;

int __real_gpuhal_os_shared_write(intptr_t file, uint64_t offset, const void *bytes, uint64_t count);
int __wrap_gpuhal_os_shared_write(intptr_t file, uint64_t offset, const void *bytes, uint64_t count);
int __wrap_gpuhal_os_shared_write(intptr_t file, uint64_t offset, const void *bytes, uint64_t count)
{
    const bool fails = count > 64 && disk_is_full;
    const int error = __real_gpuhal_os_shared_write(file, offset, bytes, fails ? count / 2 : count);
    return fails ? ENOSPC : error;
}

static uint64_t size_of(const char *path)
{
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    return (uint64_t)about.st_size;
}

/* Makes a used ledger. Both copies exist, and no lease is held. */
static void make_ledger(void)
{
    gpuhal *gpu = open_gpus(1);
    gpuhal_lease_release(lease_bytes(gpu, MOST));
    gpuhal_close(gpu);
}

static void expect_usable(void)
{
    gpuhal *gpu = open_leasing();
    gpuhal_lease *lease = lease_bytes(gpu, MOST);
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY);
    gpuhal_lease_release(lease);
    gpuhal_close(gpu);
}

static void expect_refused_by_name(const char *name)
{
    gpuhal *gpu = open_leasing();
    const uint64_t begin = now_ns();
    assert_int_equal(try_bytes(gpu, 1), GPUHAL_ERROR_FILE);
    assert_true(now_ns() - begin < 20 * SECOND);
    assert_non_null(strstr(gpuhal_last_error()->sentence, name));
    assert_int_equal(gpuhal_lease_json(gpu, NULL, 0, NULL), GPUHAL_ERROR_FILE);
    gpuhal_close(gpu);
}

static void overwrite(const char *path, uint64_t offset, const void *bytes, size_t count)
{
    const int file = open(path, O_WRONLY);
    assert_true(file >= 0);
    assert_int_equal(pwrite(file, bytes, count, (off_t)offset), (ssize_t)count);
    close(file);
}

TEST(a_ledger_that_was_cut_off_is_begun_anew)
{
    make_ledger();
    const uint64_t sizes[] = {0, 1, 15, 20, 64, 4096, 4100, 4200, 5000, size_of(ledger_file("ledger")) / 2 + 100};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        assert_int_equal(truncate(ledger_file("ledger"), (off_t)sizes[i]), 0);
        expect_usable();
        assert_int_equal(truncate(ledger_file("liveness"), (off_t)(sizes[i] < 8192 ? sizes[i] : 0)), 0);
        expect_usable();
    }
}

TEST(a_ledger_with_any_changed_byte_is_refused_or_repaired)
{
    make_ledger();
    for (uint64_t offset = 0; offset < 4096 + 700; offset += offset < 64 || offset > 4090 ? 3 : 4096 - offset) {
        unsigned char byte = 0;
        const int file = open(ledger_file("ledger"), O_RDONLY);
        assert_int_equal(pread(file, &byte, 1, (off_t)offset), 1);
        close(file);
        byte = (unsigned char)(byte ^ 0x55);
        if (offset < 16) {
            overwrite(ledger_file("ledger"), offset, &byte, 1);
            expect_refused_by_name(ledger_file("ledger"));
            byte = (unsigned char)(byte ^ 0x55);
            overwrite(ledger_file("ledger"), offset, &byte, 1);
        } else if (offset >= 20) { /* bytes 16 to 19 are the version */
            overwrite(ledger_file("ledger"), offset, &byte, 1);
            expect_usable();
        }
    }
}

TEST(random_bytes_in_the_place_of_a_head_are_refused_and_elsewhere_begun_anew)
{
    unsigned char noise[8192];
    unsigned state = 1;
    for (int round = 0; round < 20; round++) {
        make_ledger();
        for (size_t i = 0; i < sizeof noise; i++) {
            state = state * 1103515245u + 12345u;
            noise[i] = (unsigned char)(state >> 16);
        }
        overwrite(ledger_file("ledger"), round % 2 ? 4096 : 0, noise, sizeof noise);
        overwrite(ledger_file("liveness"), 0, noise, sizeof noise);
        if (round % 2 == 0) {
            expect_refused_by_name(ledger_file("ledger"));
            assert_int_equal(truncate(ledger_file("ledger"), 0), 0);
        }
        expect_usable();
    }
}

static void expect_untouched(const char *path, const char *text)
{
    char found[64] = "";
    const int file = open(path, O_RDONLY);
    assert_int_equal(read(file, found, sizeof found - 1), (ssize_t)strlen(text));
    assert_string_equal(found, text);
    close(file);
}

TEST(a_file_of_another_program_is_refused_and_left_as_it_is)
{
    static const char *const names[] = {"ledger", "liveness"};
    static const char notes[] = "what someone else wrote\n";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        fresh_ledger();
        mock_gpus(1);
        const int file = open(ledger_file(names[i]), O_CREAT | O_WRONLY, 0600);
        assert_int_equal(write(file, notes, strlen(notes)), (ssize_t)strlen(notes));
        close(file);
        expect_refused_by_name(ledger_file(names[i]));
        expect_refused_by_name("remove it");
        expect_untouched(ledger_file(names[i]), notes);
        assert_int_equal(unlink(ledger_file(names[i])), 0);
        expect_usable();
    }
}

TEST(a_ledger_that_is_damaged_while_a_lease_is_held_is_refused_until_that_has_ended)
{
    gpuhal *gpu = open_gpus(1);
    gpuhal_lease *lease = lease_bytes(gpu, MOST);
    assert_int_equal(truncate(ledger_file("ledger"), 100), 0);
    expect_refused_by_name(ledger_file("ledger"));
    expect_refused_by_name("fuser");
    gpuhal_lease_release(lease);
    gpuhal_close(gpu);
    expect_usable();
}

/* The older copy does not contain the lease. */
TEST(a_damaged_newest_copy_does_not_give_held_leases_away)
{
    gpuhal *gpu = open_gpus(1);
    gpuhal_lease *lease = lease_bytes(gpu, MOST);
    const uint64_t half = (size_of(ledger_file("ledger")) - 4096) / 2;
    uint64_t generations[2];
    const int file = open(ledger_file("ledger"), O_RDONLY);
    for (uint64_t copy = 0; copy < 2; copy++) {
        assert_int_equal(pread(file, &generations[copy], 8, (off_t)(4096 + copy * half + 8)), 8);
    }
    close(file);
    overwrite(ledger_file("ledger"), 4096 + (generations[1] > generations[0] ? half : 0) + 60, "x", 1);
    gpuhal *other = open_leasing();
    const gpuhal_status status = try_bytes(other, MOST);
    assert_true(status == GPUHAL_ERROR_FILE || status == GPUHAL_ERROR_BUSY);
    gpuhal_close(other);
    gpuhal_lease_release(lease);
    gpuhal_close(gpu);
    expect_usable();
}

TEST(a_ledger_of_another_version_is_refused_by_name)
{
    const uint32_t version = 7;
    make_ledger();
    overwrite(ledger_file("ledger"), 16, &version, sizeof version);
    /* A newly opened object reads the file, as after a restart. */
    expect_refused_by_name("version 7");
    expect_refused_by_name(ledger_file("ledger"));
}

TEST(a_folder_that_others_may_write_to_is_refused)
{
    make_ledger();
    assert_int_equal(chmod(ledger_folder, 0777), 0);
    expect_refused_by_name(ledger_folder);
    assert_int_equal(chmod(ledger_folder, 0700), 0);
    expect_usable();
    assert_int_equal(chmod(ledger_file("ledger"), 0666), 0);
    expect_refused_by_name(ledger_file("ledger"));
}

TEST(a_folder_or_file_of_another_user_is_refused)
{
    if (geteuid() != 0) {
        SKIP_TEST("only root makes files of other users");
    }
    make_ledger();
    assert_int_equal(chown(ledger_file("liveness"), 65534, 65534), 0);
    expect_refused_by_name(ledger_file("liveness"));
    assert_int_equal(chown(ledger_file("liveness"), 0, 0), 0);
    assert_int_equal(chown(ledger_folder, 65534, 65534), 0);
    expect_refused_by_name(ledger_folder);
    assert_int_equal(chown(ledger_folder, 0, 0), 0);
}

TEST(links_fifos_and_directories_are_refused)
{
    fresh_ledger();
    mock_gpus(1);
    assert_int_equal(symlink("/tmp/gpuhal-elsewhere", ledger_file("ledger")), 0);
    expect_refused_by_name(ledger_file("ledger"));
    assert_int_equal(unlink(ledger_file("ledger")), 0);
    assert_int_equal(mkfifo(ledger_file("ledger"), 0600), 0);
    expect_refused_by_name(ledger_file("ledger"));
    assert_int_equal(unlink(ledger_file("ledger")), 0);
    assert_int_equal(mkdir(ledger_file("ledger"), 0700), 0);
    expect_refused_by_name(ledger_file("ledger"));
}

TEST(a_folder_that_cannot_be_made_or_written_is_refused)
{
    fresh_ledger();
    mock_gpus(1);
    const int file = open(ledger_file("file"), O_CREAT | O_WRONLY, 0600);
    close(file);
    snprintf(ledger_folder + strlen(ledger_folder), 16, "/file/below");
    expect_refused_by_name(ledger_folder);
    *strrchr(ledger_folder, '/') = 0;
    expect_refused_by_name(ledger_folder);
    *strrchr(ledger_folder, '/') = 0;
}

TEST(a_ledger_that_is_removed_is_made_anew_and_the_holder_of_the_old_one_gives_back_in_peace)
{
    gpuhal *gpu = open_gpus(1);
    gpuhal_lease *lease = lease_bytes(gpu, MOST);
    assert_int_equal(unlink(ledger_file("ledger")), 0);
    assert_int_equal(unlink(ledger_file("liveness")), 0);
    gpuhal_lease *second = lease_bytes(gpu, MOST);
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY);
    gpuhal_lease_release(lease);
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY);
    gpuhal_lease_release(second);
    assert_ok(try_bytes(gpu, MOST));
    gpuhal_close(gpu);
}

TEST(when_liveness_alone_is_removed_nothing_is_granted_until_its_holders_have_ended)
{
    fresh_ledger();
    mock_gpus(1);
    const pid_t holder = start_process(hold, NULL);
    gpuhal *gpu = open_leasing();
    gpuhal_lease *lease = lease_bytes(gpu, MIB);
    assert_int_equal(unlink(ledger_file("liveness")), 0);
    expect_refused_by_name(ledger_file("liveness"));
    assert_int_equal(try_bytes(gpu, MIB), GPUHAL_ERROR_FILE);
    kill_process(holder);
    expect_refused_by_name(ledger_file("liveness")); /* this process still has a lease */
    gpuhal_lease_release(lease);
    assert_ok(try_bytes(gpu, MOST));
    gpuhal_close(gpu);
    expect_usable();
}

TEST(when_liveness_was_replaced_the_one_who_has_the_old_file_open_follows)
{
    gpuhal *gpu = open_gpus(1);
    char kept[512];
    assert_ok(try_bytes(gpu, MOST));
    snprintf(kept, sizeof kept, "%s", ledger_file("kept"));
    assert_int_equal(rename(ledger_file("liveness"), kept), 0);
    gpuhal *other = open_leasing();
    gpuhal_lease *lease = lease_bytes(other, MOST);
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY);
    gpuhal_lease_release(lease);
    assert_ok(try_bytes(gpu, MOST));
    gpuhal_close(other);
    gpuhal_close(gpu);
}

TEST(a_full_disk_fails_one_request_and_the_waits_of_others_go_on)
{
    gpuhal *gpu = open_gpus(1), *other = open_leasing(), *third = open_leasing();
    const gpuhal_lease_desc desc = bytes_of(MOST);
    gpuhal_lease *held = lease_bytes(gpu, MOST), *waits = NULL;
    assert_ok(gpuhal_lease_request(other, &desc, FOREVER, NULL, NULL, &waits));
    WAIT_FOR(count_of(ledger_json(gpu), "\"waiting\"") == 1);
    disk_is_full = true;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(try_bytes(third, MIB), GPUHAL_ERROR_FILE);
        usleep(20000);
    }
    assert_int_equal(gpuhal_lease_state(waits), GPUHAL_NOT_READY);
    disk_is_full = false;
    gpuhal_lease_release(held);
    WAIT_FOR(gpuhal_lease_state(waits) != GPUHAL_NOT_READY);
    assert_ok(gpuhal_lease_state(waits));
    gpuhal_close(third);
    gpuhal_close(other);
    gpuhal_close(gpu);
}

TEST(a_network_file_system_and_one_without_locks_are_refused_by_name)
{
    static const int errors[] = {ENOLCK, EOPNOTSUPP, EINVAL, ENOSYS};
    make_ledger();
    network = "NFS";
    expect_refused_by_name("network file system (NFS)");
    expect_refused_by_name(ledger_file("ledger"));
    network = NULL;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        lock_error = errors[i];
        expect_refused_by_name("has no locks");
    }
    lock_error = 0;
    expect_usable();
}

TEST(a_group_shares_a_folder_of_root_and_no_other_one)
{
    struct stat about;
    fresh_ledger();
    mock_gpus(1);
    assert_int_equal(chmod(ledger_folder, 0770), 0);
    if (geteuid() != 0) {
        expect_refused_by_name(ledger_folder);
        return;
    }
    expect_usable();
    assert_int_equal(stat(ledger_file("ledger"), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0660);
    assert_int_equal(chown(ledger_file("ledger"), 65534, 65534), 0); /* created by another member of the group */
    expect_usable();
}

TEST(without_a_name_the_ledger_is_in_the_users_runtime_folder)
{
    struct stat about;
    fresh_ledger();
    mock_gpus(1);
    assert_int_equal(setenv("XDG_RUNTIME_DIR", ledger_folder, 1), 0);
    gpuhal *gpu = gpuhal_mock_open(NULL, 0);
    /* Hides a system-wide ledger of the real machine. */
    snprintf(gpu->settings.system_root, sizeof gpu->settings.system_root, "%s", ledger_file("root"));
    assert_ok(try_bytes(gpu, MOST));
    assert_int_equal(stat(ledger_file("gpuhal"), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0700);
    assert_int_equal(stat(ledger_file("gpuhal/ledger"), &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    gpuhal_close(gpu);
}

/* A table with a correct checksum may still be inconsistent. */
static void spoil(gpuhal_ledger_state *state, unsigned how)
{
    gpuhal_ledger_record *record = &state->records[0];
    switch (how) {
    case 0:
        record->place = GPUHAL_LEDGER_RECORDS;
        break;
    case 1:
        record->ticket = state->next_ticket;
        break;
    case 2:
        record->state = 3;
        break;
    case 3:
        record->candidates = UINT64_MAX;
        break;
    case 4:
        memset(record->label, 'x', sizeof record->label);
        break;
    case 5:
        state->items[0].device = 7;
        break;
    case 6:
        state->items[0].slots = 5;
        break;
    case 7:
        state->items[0].bytes = 2 * MIB;
        break;
    case 8:
        state->items[0].ticket = 77;
        break;
    case 9:
        state->devices[0].key[0] = 0;
        break;
    case 10:
        state->devices[0].slots = 0;
        break;
    case 11:
        record->priority = 99;
        break;
    case 12:
        record->count = 65;
        break;
    case 13:
        state->record_count = 2;
        state->records[1] = *record;
        break;
    case 14:
        state->next_ticket = UINT64_MAX;
        break;
    case 15:
        state->generation = UINT64_MAX;
        break;
    default:
        break;
    }
}

TEST(a_table_with_impossible_numbers_is_not_used)
{
    gpuhal_ledger_state *state = calloc(1, sizeof *state);
    for (unsigned how = 0; how <= 16; how++) {
        *state = (gpuhal_ledger_state){.next_ticket = 10, .device_count = 1, .record_count = 1, .item_count = 1};
        state->devices[0] = (gpuhal_ledger_device){.key = "a", .bytes = MIB, .slots = 4};
        state->records[0] =
            (gpuhal_ledger_record){.ticket = 5, .state = GPUHAL_RECORD_HELD, .count = 1, .candidates = 1};
        state->items[0] = (gpuhal_ledger_item){.ticket = 5, .bytes = MIB, .slots = 1};
        spoil(state, how);
        assert_int_equal(gpuhal_ledger_is_sound(state), how == 16);
    }
    free(state);
}

/* Writes a table without leases into both copies; only its numbers may be invalid. */
static void write_table(uint64_t generation, uint64_t next_ticket)
{
    uint64_t head[7] = {0, generation, next_ticket};
    const uint64_t half = (size_of(ledger_file("ledger")) - 4096) / 2;
    uint64_t sum = (sizeof head - 8) * UINT64_C(0x9e3779b97f4a7c15);
    for (size_t i = 1; i < sizeof head / 8; i++) {
        sum = (sum ^ head[i]) * UINT64_C(0xff51afd7ed558ccd);
        sum ^= sum >> 32;
    }
    head[0] = sum;
    overwrite(ledger_file("ledger"), 4096, head, sizeof head);
    overwrite(ledger_file("ledger"), 4096 + half, head, sizeof head);
}

TEST(counters_that_would_wrap_are_not_taken_over)
{
    static const uint64_t numbers[][2] = {{UINT64_MAX, 5}, {5, UINT64_MAX}, {UINT64_MAX - 1, UINT64_MAX - 1}, {7, 77}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        make_ledger();
        write_table(numbers[i][0], numbers[i][1]);
        gpuhal *gpu = open_leasing();
        for (unsigned tries = 0; tries < 3; tries++) {
            gpuhal_lease *lease = lease_bytes(gpu, MOST);
            assert_true(gpuhal_lease_number(lease) == (i == 3 ? 77 : 1) + tries);
            gpuhal_lease_release(lease);
        }
        gpuhal_close(gpu);
        expect_usable();
    }
}

TEST(a_program_whose_files_may_not_grow_gets_a_sentence_and_no_signal)
{
    fresh_ledger();
    mock_gpus(1);
    gpuhal *gpu = open_leasing();
    char command[64];
    snprintf(command, sizeof command, "prlimit --fsize=1000:1000 --pid %d 2>/dev/null", (int)getpid());
    if (system(command) != 0) {
        SKIP_TEST("prlimit is missing");
    }
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_FILE);
    gpuhal_close(gpu);
}

#include "test_main.h"
