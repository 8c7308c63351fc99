/* tests/system/machine.h: shared by the tests of plugins with a vendor's fakes: the machine, and the fakes' report. The
 * including file defines BACKEND as the backend's name and includes its fake's vendor_names.h.
 *
 * The fakes read their machine once per process. So CTest runs every test in a separate process, and each test
 * selects its machine first. */
#ifndef GPUHAL_TEST_MACHINE_H
#define GPUHAL_TEST_MACHINE_H

#include "system.h"

#include "support/process.h"
#include "support/record.h"

#include "../fakes/common/codes.h"
#include "../fakes/common/report.h"
#include "../fakes/common/script.h"

#include <dlfcn.h>
#include <glob.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static inline void remove_reports(void)
{
    glob_t found;
    char pattern[512];
    snprintf(pattern, sizeof pattern, "%s.*", getenv(fake_vendor.report_variable));
    if (glob(pattern, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            unlink(found.gl_pathv[i]);
        }
        globfree(&found);
    }
}

static inline uint64_t calls_of(const char *function)
{
    const fake_report *report = fake_report_get();
    for (unsigned i = 0; i < FAKE_REPORT_FUNCTIONS; i++) {
        if (strcmp(report->functions[i].name, function) == 0) {
            return report->functions[i].calls;
        }
    }
    return 0;
}

static inline void expect_no_violation(void)
{
    const fake_report *report = fake_report_get();
    for (unsigned i = 0; i < report->violations && i < FAKE_REPORT_SENTENCES; i++) {
        print_message("violation: %s\n", report->sentences[i]);
    }
    assert_int_equal(report->violations, 0);
}

/* Returns the number of existing objects except contexts. */
static inline unsigned alive(void)
{
    const fake_report *r = fake_report_get();
    return r->streams + r->events + r->modules + r->graphs + r->allocations + r->host_allocations + r->registrations +
           r->physical + r->reservations + r->mappings + r->imports;
}

static inline unsigned contexts_ever(void)
{
    glob_t found;
    char pattern[512];
    unsigned sum = 0;
    snprintf(pattern, sizeof pattern, "%s.*", getenv(fake_vendor.report_variable));
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        fake_report report = {0};
        FILE *file = fopen(found.gl_pathv[i], "r");
        assert_non_null(file);
        assert_int_equal(fread(&report, sizeof report, 1, file), 1);
        assert_int_equal(report.magic, FAKE_REPORT_MAGIC);
        sum += report.contexts_created;
        fclose(file);
    }
    globfree(&found);
    return sum;
}

/* Sets the machine for this process and its helper processes. The fakes write their reports to @p directory. */
static inline void set_machine(const char *directory, const char *script)
{
    char prefix[512];
    snprintf(prefix, sizeof prefix, "%s/report-%ld", directory, (long)getpid());
    setenv(fake_vendor.variable, script, 1);
    setenv(fake_vendor.report_variable, prefix, 1);
    remove_reports();
}

static inline double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static inline void expect_word(const char *text, const char *word)
{
    if (!strstr(text, word)) {
        fail_msg("\"%s\" says nothing of \"%s\"", text, word);
    }
}

/* Opens the backend and the CPU. Every plugin is probed in a helper process, unless `isolation` has another value. */
static inline gpuhal *open_backend(uint32_t isolation)
{
    return open_or_fail(&(gpuhal_config){.size = sizeof(gpuhal_config), .backends = BACKEND, .isolation = isolation});
}

static inline gpuhal_plugin_report report_of_backend(const gpuhal *gpu)
{
    return report_of(gpu, BACKEND);
}

/* Expects that the plugin is in this state, that its message contains these words, and that the CPU is listed. */
static inline void expect_state(gpuhal_plugin_state state, const char *words)
{
    gpuhal *gpu = open_backend(0);
    const gpuhal_plugin_report report = report_of_backend(gpu);
    if (report.state != state) {
        fail_msg("state %s: %s", gpuhal_plugin_state_name(report.state), report.reason);
    }
    expect_word(report.reason, words);
    assert_int_equal(gpuhal_device_count(gpu), 1);
    assert_ok(gpuhal_device_verify(select_or_fail(gpu, "cpu:0")));
    gpuhal_close(gpu);
    remove_reports();
}

static inline gpuhal_status open_refused(gpuhal *gpu, const char *id)
{
    const gpuhal_status status = gpuhal_device_open(select_or_fail(gpu, id));
    assert_true(status < 0);
    assert_string_equal(gpuhal_last_error()->device, id);
    assert_true(gpuhal_last_error()->sentence[0] != '\0');
    return status;
}

static inline void expect_text(const gpuhal_device *device, gpuhal_key key, const char *wanted)
{
    const char *text = NULL;
    assert_ok(gpuhal_device_text(device, key, &text));
    assert_string_equal(text, wanted);
}

static inline uint64_t number_of(const gpuhal_device *device, gpuhal_key key)
{
    uint64_t value = 0;
    assert_ok(gpuhal_device_u64(device, key, &value));
    return value;
}

static inline gpuhal_value sample_one(gpuhal_device *device, gpuhal_key key)
{
    gpuhal_value value = {.key = key};
    assert_ok(gpuhal_device_sample(device, 0, &value, 1, NULL));
    return value;
}

static inline void load_function(void *library, const char *name, void *out_function)
{
    void *found = dlsym(library, name);
    assert_non_null(found);
    memcpy(out_function, &found, sizeof found);
}

/* Loads the vendor's library for calls by the program itself. The environment variable contains the library's path. */
typedef struct vendor_api {
#define FAKE_FUNCTION(type, name, parameters) type(*name) parameters;
    FAKE_FUNCTIONS
#undef FAKE_FUNCTION
} vendor_api;

static inline vendor_api load_functions(const char *variable)
{
    vendor_api api;
    void *library = dlopen(getenv(variable), RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
#define FAKE_FUNCTION(type, name, parameters) load_function(library, #name, &api.name);
    FAKE_FUNCTIONS
#undef FAKE_FUNCTION
    return api;
}

#endif
