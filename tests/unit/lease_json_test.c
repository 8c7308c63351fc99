/* tests/unit/lease_json_test.c: the ledger as JSON, its labels, and leases that are revoked or handed down. */
#include "lease_support.h"

static void expect_label(gpuhal *gpu, const char *label, const char *expected)
{
    gpuhal_lease_desc desc = GPUHAL_INIT(gpuhal_lease_desc);
    gpuhal_lease *lease = NULL;
    char whole[128];
    desc.label = label;
    assert_ok(gpuhal_lease_acquire(gpu, &desc, 0, &lease));
    snprintf(whole, sizeof whole, "\"label\": \"%s\"", expected);
    assert_non_null(strstr(ledger_json(gpu), whole));
    gpuhal_lease_release(lease);
}

/* Expects that the brackets outside of strings match. Quotes inside strings are escaped. */
static void expect_balanced(const char *json)
{
    char open[16];
    size_t depth = 0;
    bool inside = false;
    for (const char *at = json; *at; at++) {
        if (*at == '"' && (at == json || at[-1] != '\\')) {
            inside = !inside;
        } else if (!inside && (*at == '[' || *at == '{')) {
            assert_true(depth < sizeof open);
            open[depth++] = *at == '[' ? ']' : '}';
        } else if (!inside && (*at == ']' || *at == '}')) {
            assert_true(depth > 0 && open[--depth] == *at);
        }
    }
    assert_true(depth == 0 && !inside);
}

TEST(a_label_is_kept_as_it_is_and_one_that_is_too_long_is_refused)
{
    gpuhal *gpu = open_gpus(1);
    gpuhal_lease_desc desc = GPUHAL_INIT(gpuhal_lease_desc);
    gpuhal_lease *lease = NULL;
    const char *longest = "nächtlicher Lauf, 訓練, run 7, 😀 12345678";
    assert_int_equal(strlen(longest), GPUHAL_LEASE_LABEL_MAX);
    expect_label(gpu, longest, longest);
    expect_label(gpu, "\xc3 is cut, \x1b[0m, \xe2\x80\xae", "? is cut, ?[0m, ???");
    desc.label = "123456789012345678901234567890123456789012345678";
    assert_int_equal(gpuhal_lease_acquire(gpu, &desc, 0, &lease), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_non_null(strstr(gpuhal_last_error()->sentence, "desc.label"));
    gpuhal_close(gpu);
}

TEST(the_ledger_is_described_as_json)
{
    gpuhal *gpu = open_gpus(1);
    gpuhal_lease_desc desc = bytes_of(MOST);
    gpuhal_lease *lease = NULL;
    char small[16];
    uint64_t needed = 0;
    desc.label = "a \"label\" with\nlines";
    assert_ok(gpuhal_lease_acquire(gpu, &desc, 0, &lease));
    const char *text = ledger_json(gpu);
    expect_balanced(text);
    assert_non_null(strstr(text, "\"schema\": \"gpuhal.lease/1\""));
    assert_non_null(strstr(text, "a \\\"label\\\" with lines"));
    assert_non_null(strstr(text, "\"bytes_leased\": 629145600"));
    assert_non_null(strstr(text, "\"id\": \"mock:0\", \"name\": \"mock\""));
    assert_int_equal(gpuhal_lease_json(gpu, small, sizeof small, &needed), GPUHAL_ERROR_OUT_OF_RANGE);
    assert_true(needed > sizeof small && small[sizeof small - 1] == 0);
    gpuhal_lease_release(lease);
    gpuhal_close(gpu);
}

/* Duplicates the descriptor of each opened `liveness` file. The kernel lists the file's locks under both
 * descriptors. */
static void double_descriptors(void)
{
    char path[64], target[512];
    for (int i = 0; i < 256; i++) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", i);
        const ssize_t length = readlink(path, target, sizeof target - 1);
        target[length > 0 ? length : 0] = 0;
        if (strcmp(target, ledger_file("liveness")) == 0) {
            assert_true(fcntl(i, F_DUPFD_CLOEXEC, 256) >= 256);
        }
    }
}

TEST(a_process_with_two_descriptors_of_a_lease_is_listed_once)
{
    gpuhal *gpu = open_gpus(1);
    gpuhal_lease *lease = lease_bytes(gpu, MOST);
    char process[64];
    snprintf(process, sizeof process, "{\"pid\": %d", (int)getpid());
    assert_int_equal(count_of(ledger_json(gpu), process), 1);
    double_descriptors();
    assert_int_equal(count_of(ledger_json(gpu), process), 1);
    gpuhal_lease_release(lease);
    gpuhal_close(gpu);
}

TEST(a_lease_is_revoked_by_its_number_and_one_that_lives_only_by_force)
{
    gpuhal *gpu = open_gpus(1);
    const char *folder = NULL;
    uint32_t shared = 0;
    gpuhal_lease *lease = lease_bytes(gpu, MOST);
    const uint64_t number = gpuhal_lease_number(lease);
    assert_int_equal(gpuhal_lease_revoke(gpu, number, 0), GPUHAL_ERROR_BUSY);
    assert_int_equal(gpuhal_lease_revoke(gpu, number, 2), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_lease_revoke(NULL, number, 1), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_lease_revoke(gpu, number + 1, 1), GPUHAL_ERROR_NOT_FOUND);
    assert_int_equal(try_bytes(gpu, MOST), GPUHAL_ERROR_BUSY);
    assert_ok(gpuhal_lease_revoke(gpu, number, 1));
    assert_ok(try_bytes(gpu, MOST));
    assert_int_equal(gpuhal_lease_renew(lease, SECOND), GPUHAL_ERROR_TIMEOUT);
    gpuhal_lease_release(lease);
    assert_ok(gpuhal_lease_ledger(gpu, &folder, &shared));
    assert_string_equal(folder, ledger_folder);
    assert_int_equal(shared, 1);
    assert_int_equal(gpuhal_lease_ledger(gpu, NULL, &shared), GPUHAL_ERROR_INVALID_ARGUMENT);
    gpuhal_close(gpu);
}

/* A lease without GPUHAL_LEASE_INHERIT does not pass to another process, even if that process inherited the
 * descriptors. */
TEST(handing_down_a_lease_releases_it_if_no_program_has_it)
{
    gpuhal *gpu = open_gpus(1);
    gpuhal_lease_desc desc = bytes_of(MOST);
    for (uint32_t flags = 0; flags <= GPUHAL_LEASE_INHERIT; flags++) {
        gpuhal_lease *lease = NULL;
        desc.flags = flags;
        assert_ok(gpuhal_lease_acquire(gpu, &desc, 0, &lease));
        gpuhal_lease_hand_down(lease);
        assert_ok(try_bytes(gpu, MOST));
    }
    gpuhal_lease_hand_down(NULL);
    gpuhal_close(gpu);
}

#include "test_main.h"
