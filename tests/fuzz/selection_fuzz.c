/* tests/fuzz/selection_fuzz.c: arbitrary strings as settings. The input has seven lines: backends, devices, a selector,
 * a staging memory size, a registry directory, plugin directories, and a value. The value is parsed as each of the
 * vendors' variables.
 *
 * The library is opened with the first two lines as if they came from the environment, with the value in
 * ONEAPI_DEVICE_SELECTOR, and with three devices of built-in plugins. Then the selector selects a device. The other
 * lines are only parsed. The files that they name must not be accessed. */
#include "base/config.h"
#include "base/text.h"
#include "device/selector.h"
#include "device/variable.h"
#include "fuzz.h"
#include "support/mock.h"

#include <string.h>

enum { BACKENDS, DEVICES, SELECTOR, STAGING, REGISTRY, PLUGIN_PATH, VARIABLE, LINES };

static const char *const names[LINES] = {
    "GPUHAL_BACKENDS", "GPUHAL_DEVICES", NULL, "GPUHAL_STAGING_TOTAL", "GPUHAL_REGISTRY", "GPUHAL_PLUGIN_PATH", NULL,
};

static void check_error(gpuhal_status status, const char *word)
{
    CHECK(status == GPUHAL_ERROR_INVALID_ARGUMENT || status == GPUHAL_ERROR_NOT_FOUND);
    CHECK(gpuhal_last_error()->status == status && *gpuhal_last_error()->sentence);
    CHECK(!word || strstr(gpuhal_last_error()->sentence, word));
}

static void read_settings(void)
{
    gpuhal_settings settings;
    gpuhal_status status = gpuhal_settings_make(NULL, &settings);
    if (status) {
        check_error(status, "GPUHAL_");
        return;
    }
    CHECK(!settings.registry || settings.registry[0] == '/');
    CHECK(settings.staging_total_bytes >= 64u << 10);
    gpuhal_settings_finish(&settings);
}

/* An accepted list must be within the limits, and each element must have the same meaning when it is parsed alone. */
static void parse_list(const char *list)
{
    gpuhal_selector selector = {0};
    for (const char *rest = list; rest && gpuhal_selector_next(&rest, "fuzz", &selector) == GPUHAL_OK;) {
        gpuhal_selector again = {0};
        const char *word = selector.word;
        CHECK(rest == NULL || (rest > list && rest <= list + strlen(list)));
        CHECK(selector.first <= selector.last && memchr(selector.text, 0, sizeof selector.text));
        CHECK(*word && gpuhal_selector_next(&word, "fuzz", &again) == GPUHAL_OK && !word);
        CHECK(again.form == selector.form && again.first == selector.first && again.last == selector.last &&
              again.partition == selector.partition && again.excludes == selector.excludes &&
              again.limit_bytes == selector.limit_bytes && again.limit_percent == selector.limit_percent &&
              strcmp(again.text, selector.text) == 0);
    }
}

/* A value must select only existing devices, each at most once. SYCL's terms cannot be evaluated before the library is
 * open. */
static void read_variables(const char *value)
{
    static const char *const lists[] = {"CUDA_VISIBLE_DEVICES", "GGML_VK_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
                                        "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",    "ZE_AFFINITY_MASK"};
    static const gpuhal_counted devices[] = {{0, 0, "00112233-4455-6677-8899-aabbccddeeff", false},
                                             {1, 1, "a1b2c3d4e5f60718", false},
                                             {2, -1, NULL, true}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (uint32_t count = 0; count <= 3; count++) {
            gpuhal_picks picks;
            /* with NULL, every well-formed entry is valid */
            const bool all = count == 0 && strcmp(lists[i], "GGML_VK_VISIBLE_DEVICES") != 0;
            gpuhal_status status =
                gpuhal_variable_read(gpuhal_variable_find(lists[i]), value, all ? NULL : devices, count, &picks);
            if (status) {
                check_error(status, lists[i]);
                continue;
            }
            CHECK(picks.count <= (all ? (uint32_t)GPUHAL_VARIABLE_PICKS : count));
            CHECK(memchr(picks.note, 0, sizeof picks.note));
            for (uint32_t a = 0; a < picks.count; a++) {
                for (uint32_t b = 0; b < a; b++) {
                    CHECK(picks.entries[a] != picks.entries[b]);
                }
            }
        }
    }
}

static void select_device(gpuhal *gpu, const char *selector)
{
    for (uint32_t flags = 0; flags <= GPUHAL_SELECT_ALLOW_CPU; flags++) {
        gpuhal_device *device = NULL;
        const char *reason = NULL;
        gpuhal_status status = gpuhal_select(gpu, selector, flags, &device, &reason);
        if (status) {
            CHECK(!device && !reason);
            check_error(status, NULL);
        } else {
            CHECK(device && *reason);
        }
    }
}

static void open_with(const char *selector)
{
    static gpuhal_builtin_fn *const builtins[] = {gpuhal_mock_query, gpuhal_mock_cpu_query, NULL};
    const gpuhal_config config = {
        .size = sizeof config, .isolation = GPUHAL_ISOLATION_NEVER, .builtins = builtins, .registry = "none"};
    gpuhal *gpu = NULL;
    gpuhal_status status = gpuhal_open(&config, &gpu);
    if (status) {
        CHECK(!gpu);
        check_error(status, "GPUHAL_");
        return;
    }
    CHECK(gpuhal_device_count(gpu) > 0 || getenv(names[BACKENDS]) || getenv(names[DEVICES]));
    select_device(gpu, selector);
    gpuhal_close(gpu);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    char *text = gpuhal_text_copy_range((const char *)bytes, count), *lines[LINES], *at = text;
    for (size_t i = 0; i < LINES; i++) {
        lines[i] = at;
        at += strcspn(at, "\n");
        at += *at ? (*at = 0, 1) : 0;
    }
    for (size_t i = 0; i < LINES; i++) {
        if (names[i]) {
            setenv(names[i], lines[i], 1);
        }
    }
    read_settings();
    parse_list(lines[SELECTOR]);
    parse_list(lines[DEVICES]);
    read_variables(lines[VARIABLE]);
    for (size_t i = STAGING; i < VARIABLE; i++) {
        unsetenv(names[i]);
    }
    setenv("ONEAPI_DEVICE_SELECTOR", lines[VARIABLE], 1);
    gpuhal_mock = (gpuhal_mock_state){.count = 2,
                                    .devices = {{.name = "Brand X[1] \\ 2", .pci = "0000:c1:00.0",
                                                 .uuid = "00112233-4455-6677-8899-aabbccddeeff"},
                                                {.name = "brand y", .software = 1}}};
    open_with(lines[SELECTOR]);
    free(text);
    return 0;
}
