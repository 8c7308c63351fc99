/* tests/support/fake_vulkan.h: controls the fake Vulkan driver in a test and reads its reports
 * (fakes/vulkan/control.h).
 *
 * The driver reads its script once per process, so every test with a script must run in a separate process, as under
 * CTest. */
#ifndef GPUHAL_TEST_FAKE_VULKAN_H
#define GPUHAL_TEST_FAKE_VULKAN_H

#include "fakes/vulkan/control.h"
#include "test.h"

#include <dlfcn.h>

typedef struct fake_vulkan {
    __typeof__(&gpuhal_fake_vulkan_violations) violations;
    __typeof__(&gpuhal_fake_vulkan_violation) violation;
    __typeof__(&gpuhal_fake_vulkan_alive) alive;
    __typeof__(&gpuhal_fake_vulkan_recorded) recorded;
    __typeof__(&gpuhal_fake_vulkan_calls) calls;
    __typeof__(&gpuhal_fake_vulkan_submitted) submitted;
    __typeof__(&gpuhal_fake_vulkan_fail) fail_call;
    __typeof__(&gpuhal_fake_vulkan_lose) lose;
    __typeof__(&gpuhal_fake_vulkan_hang) hang;
    __typeof__(&gpuhal_fake_vulkan_go_on) go_on;
} fake_vulkan;

static inline void *fake_vulkan_symbol(void *library, const char *name)
{
    void *symbol = dlsym(library, name);
    assert_non_null(symbol);
    return symbol;
}

/* Must be called first in a test. */
static inline fake_vulkan fake_vulkan_script(const char *script)
{
    static bool used;
    const char *path = getenv("GPUHAL_FAKE_VULKAN_LIBRARY");
    fake_vulkan fake;
    if (used) {
        fail_msg("run this test alone, by its name: the driver reads its script once");
    }
    used = true;
    assert_non_null(path);
    setenv("GPUHAL_FAKE_VULKAN", script, 1);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fail_msg("%s", dlerror());
    }
    *(void **)&fake.violations = fake_vulkan_symbol(library, "gpuhal_fake_vulkan_violations");
    *(void **)&fake.violation = fake_vulkan_symbol(library, "gpuhal_fake_vulkan_violation");
    *(void **)&fake.alive = fake_vulkan_symbol(library, "gpuhal_fake_vulkan_alive");
    *(void **)&fake.recorded = fake_vulkan_symbol(library, "gpuhal_fake_vulkan_recorded");
    *(void **)&fake.calls = fake_vulkan_symbol(library, "gpuhal_fake_vulkan_calls");
    *(void **)&fake.submitted = fake_vulkan_symbol(library, "gpuhal_fake_vulkan_submitted");
    *(void **)&fake.fail_call = fake_vulkan_symbol(library, "gpuhal_fake_vulkan_fail");
    *(void **)&fake.lose = fake_vulkan_symbol(library, "gpuhal_fake_vulkan_lose");
    *(void **)&fake.hang = fake_vulkan_symbol(library, "gpuhal_fake_vulkan_hang");
    *(void **)&fake.go_on = fake_vulkan_symbol(library, "gpuhal_fake_vulkan_go_on");
    return fake;
}

/* Must be called at the end of a test. Expects that no rule was broken and nothing was leaked. */
static inline void fake_vulkan_expect_clean(const fake_vulkan *fake)
{
    for (unsigned v = 0; v < fake->violations() && *fake->violation(v); v++) {
        print_message("violation: %s\n", fake->violation(v));
    }
    assert_int_equal(fake->violations(), 0);
    assert_int_equal(fake->alive(), 0);
}

#endif
