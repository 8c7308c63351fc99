/* tests/unit/lease_json_test.c: the ledger as JSON, and the labels in it. */
#include "lease_support.h"

/* The lease's label as the JSON has it. */
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
    assert_non_null(strstr(text, "\"schema\": \"gpuhal.lease/1\""));
    assert_non_null(strstr(text, "a \\\"label\\\" with lines"));
    assert_non_null(strstr(text, "\"bytes_leased\": 629145600"));
    assert_int_equal(gpuhal_lease_json(gpu, small, sizeof small, &needed), GPUHAL_ERROR_OUT_OF_RANGE);
    assert_true(needed > sizeof small && small[sizeof small - 1] == 0);
    gpuhal_lease_release(lease);
    gpuhal_close(gpu);
}

#include "test_main.h"
