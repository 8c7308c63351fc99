/* fakes/vulkan/report.c: violations, call counts and injected failures, and the functions of control.h. If
 * GPUHAL_FAKE_VULKAN_LOG names a file, each violation is also appended to it as a line, for processes that a test
 * cannot query. */
#include "fake.h"

#include "control.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
enum { SENTENCES = 32 };

pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t fake_changed;

/* The counters have a separate lock, because violations are reported with and without fake_lock. It may be acquired
 * while fake_lock is held. */
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static unsigned violations, calls[FUNCTION_COUNT], submissions;
static char sentences[SENTENCES][200];
static unsigned submitted[FAKE_FAMILIES];
static bool ready, going_on;
static fake_fail fails[FAKE_FAILS];
static unsigned fail_count, lose, hang;

static const char *const names[FUNCTION_COUNT] = {
#define FUNCTION(name, level, version, extension) #name,
#define ALIAS(name, target, extension)
#include "functions.inc"
#undef FUNCTION
#undef ALIAS
};

static void prepare(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&fake_changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* The script sets the initial state. The functions of control.h change it. */
static void prepare_locked(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, prepare);
    if (ready) {
        return;
    }
    const fake_script *script = fake_get_script();
    ready = true;
    fail_count = script->fail_count;
    memcpy(fails, script->fails, sizeof fails);
    lose = script->lose;
    hang = script->hang;
}

void fake_violation(const char *format, ...)
{
    char line[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line - 1, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&counting);
    if (violations < SENTENCES) {
        memcpy(sentences[violations], line, sizeof line);
    }
    violations++;
    pthread_mutex_unlock(&counting);
    const char *log = getenv("GPUHAL_FAKE_VULKAN_LOG");
    int fd = log ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    if (fd >= 0) {
        dprintf(fd, "%s\n", line); /* a single write, because several processes may write */
        close(fd);
    }
}

VkResult fake_enter(fake_function function)
{
    VkResult code = VK_SUCCESS;
    pthread_mutex_lock(&counting);
    prepare_locked();
    calls[function]++;
    for (unsigned f = 0; f < fail_count; f++) {
        if (strcmp(fails[f].function, names[function]) == 0 &&
            (fails[f].nth == UINT_MAX || fails[f].nth == calls[function])) {
            code = fails[f].code;
        }
    }
    pthread_mutex_unlock(&counting);
    /* An injected DEVICE_LOST loses every device, for all later calls too. */
    if (code == VK_ERROR_DEVICE_LOST && function != FN_vkCreateDevice) {
        fake_lose_all();
    }
    return code;
}

void fake_count(fake_function function)
{
    pthread_mutex_lock(&counting);
    prepare_locked();
    calls[function]++;
    pthread_mutex_unlock(&counting);
}

bool fake_submission_hangs(uint32_t family, bool *out_loses)
{
    pthread_mutex_lock(&counting);
    submissions++;
    submitted[family]++;
    *out_loses = submissions == lose;
    bool hangs = submissions == hang;
    pthread_mutex_unlock(&counting);
    return hangs;
}

bool fake_hangs(void)
{
    pthread_mutex_lock(&counting);
    bool hangs = !going_on;
    pthread_mutex_unlock(&counting);
    return hangs;
}

/* ---- the functions of control.h */

EXPORT unsigned gpuhal_fake_vulkan_violations(void)
{
    pthread_mutex_lock(&counting);
    unsigned count = violations;
    pthread_mutex_unlock(&counting);
    return count;
}

EXPORT const char *gpuhal_fake_vulkan_violation(unsigned index)
{
    return index < SENTENCES && index < gpuhal_fake_vulkan_violations() ? sentences[index] : "";
}

EXPORT unsigned gpuhal_fake_vulkan_alive(void)
{
    return fake_alive();
}

EXPORT unsigned gpuhal_fake_vulkan_recorded(void)
{
    return fake_recorded();
}

EXPORT unsigned gpuhal_fake_vulkan_calls(const char *function)
{
    unsigned count = 0;
    pthread_mutex_lock(&counting);
    for (unsigned f = 0; f < FUNCTION_COUNT; f++) {
        count += strcmp(names[f], function) == 0 ? calls[f] : 0;
    }
    pthread_mutex_unlock(&counting);
    return count;
}

EXPORT unsigned gpuhal_fake_vulkan_submitted(unsigned family)
{
    pthread_mutex_lock(&counting);
    unsigned count = family < FAKE_FAMILIES ? submitted[family] : 0;
    pthread_mutex_unlock(&counting);
    return count;
}

EXPORT void gpuhal_fake_vulkan_fail(const char *function, unsigned nth, int code)
{
    pthread_mutex_lock(&counting);
    prepare_locked();
    memset(calls, 0, sizeof calls);
    fail_count = nth > 0;
    snprintf(fails[0].function, sizeof fails[0].function, "%s", function);
    fails[0].nth = nth;
    fails[0].code = (VkResult)code;
    pthread_mutex_unlock(&counting);
}

EXPORT void gpuhal_fake_vulkan_lose(unsigned nth)
{
    pthread_mutex_lock(&counting);
    prepare_locked();
    submissions = 0;
    lose = nth;
    pthread_mutex_unlock(&counting);
}

EXPORT void gpuhal_fake_vulkan_hang(unsigned nth)
{
    pthread_mutex_lock(&counting);
    prepare_locked();
    submissions = 0;
    hang = nth;
    going_on = false;
    pthread_mutex_unlock(&counting);
}

EXPORT void gpuhal_fake_vulkan_go_on(void)
{
    pthread_mutex_lock(&counting);
    prepare_locked();
    going_on = true;
    pthread_mutex_unlock(&counting);
    pthread_mutex_lock(&fake_lock);
    pthread_cond_broadcast(&fake_changed);
    pthread_mutex_unlock(&fake_lock);
}
