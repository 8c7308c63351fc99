/* resources.c: see resources.h. Reads /proc/self, because getrusage() does not provide these values. */
#include "resources.h"

#include "../common/text.h"
#include "check.h"
#include "heap.h"
#include "image.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fenv.h>
#include <inttypes.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SIGNALS    65
#define LEAK_BYTES (UINT64_C(64) << 10)
/* The allocator rounds sizes up to a multiple of this number, so a smaller growth per call is not a leak. */
#define HEAP_BYTES 16u
/* Drivers' arenas grow more and more slowly: lavapipe 25 stops growing after its device has been opened 480 times. */
#define LEAK_ROUNDS 8

bool gpuhal_is_sanitized(void)
{
    return GPUHAL_CHECK_SANITIZED;
}

/* ---- resources */

static unsigned count_entries(const char *path)
{
    unsigned count = 0;
    DIR *directory = opendir(path);
    if (directory == NULL) {
        gpuhal_fail("gpuhal-check cannot read %s", path);
    }
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    closedir(directory);
    return count;
}

/* Reads smaps_rollup, which counts pages. The counters in statm are cached per thread and may be wrong by megabytes on
 * large machines. */
static uint64_t resident_bytes(void)
{
    char line[128];
    uint64_t kib = 0;
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL && sscanf(line, "Rss: %" SCNu64, &kib) != 1) {
    }
    if (file == NULL || kib == 0) {
        gpuhal_fail("gpuhal-check cannot read /proc/self/smaps_rollup");
    }
    fclose(file);
    return kib << 10;
}

gpuhal_resources gpuhal_resources_now(void)
{
    return (gpuhal_resources){.resident_bytes = resident_bytes(),
                             .heap_bytes = gpuhal_heap_bytes(),
                             .threads = count_entries("/proc/self/task"),
                             .descriptors = count_entries("/proc/self/fd")};
}

gpuhal_resources gpuhal_resources_settled(const gpuhal_resources *limit)
{
    gpuhal_resources now = gpuhal_resources_now();
    for (int tries = 0; tries < 100 && (now.threads > limit->threads || now.descriptors > limit->descriptors);
         tries++) {
        nanosleep(&(const struct timespec){.tv_nsec = 10000000}, NULL);
        now = gpuhal_resources_now();
    }
    return now;
}

static uint64_t grown(const gpuhal_resources *before, const gpuhal_resources *now)
{
    const bool grew = !GPUHAL_CHECK_SANITIZED && now->resident_bytes > before->resident_bytes;
    return grew ? now->resident_bytes - before->resident_bytes : 0;
}

static uint64_t heap_grown(const gpuhal_resources *before, const gpuhal_resources *now)
{
    return !GPUHAL_CHECK_SANITIZED && now->heap_bytes > before->heap_bytes ? now->heap_bytes - before->heap_bytes : 0;
}

static gpuhal_resources repeat(const gpuhal_resources *before, const char *what, unsigned times,
                               void (*once)(void *user), void *user)
{
    for (unsigned i = 0; i < times; i++) {
        once(user);
    }
    const gpuhal_resources now = gpuhal_resources_settled(before);
    if (now.threads > before->threads) {
        gpuhal_fail("%s %u times left %u more threads", what, times, now.threads - before->threads);
    }
    if (now.descriptors > before->descriptors) {
        gpuhal_fail("%s %u times left %u more descriptors open", what, times, now.descriptors - before->descriptors);
    }
    return now;
}

/* Determines whose code has allocated the additional heap memory. The plugin cannot prevent leaks in a vendor's
 * library. If the plugin's own memory does not stop growing after some rounds, the plugin leaks. */
static void expect_own_heap(const gpuhal_resources *before, const char *what, unsigned times,
                            void (*once)(void *user), void *user)
{
    const gpuhal_plugin *plugin = gpuhal_child_loaded();
    gpuhal_heap_count left = {.blocks = times};
    gpuhal_resources after = *before;
    unsigned round = 0;
    for (; round < LEAK_ROUNDS && left.blocks >= times / 2 && plugin != NULL && gpuhal_heap_watch(plugin); round++) {
        const gpuhal_resources now = after;
        after = repeat(&now, what, times, once, user);
        left = gpuhal_heap_left();
        if (left.blocks < times / 2 && heap_grown(&now, &after) >= HEAP_BYTES * times) {
            gpuhal_note("%s: a library that the plugin uses keeps %" PRIu64 " bytes each time", what,
                        heap_grown(&now, &after) / times);
        }
    }
    if (round == LEAK_ROUNDS && left.blocks >= times / 2) {
        gpuhal_fail("%s %u times left %u blocks of the allocator, %" PRIu64 " bytes, which code of the plugin took",
                    what, times, left.blocks, left.bytes);
    }
}

void gpuhal_expect_no_leak(const char *what, unsigned warm_up, unsigned times, void (*once)(void *user), void *user)
{
    for (unsigned i = 0; i < warm_up; i++) {
        once(user);
    }
    const gpuhal_resources first = gpuhal_resources_now();
    gpuhal_resources before = first, after = repeat(&before, what, times, once, user);
    if (heap_grown(&before, &after) >= HEAP_BYTES * times) {
        expect_own_heap(&after, what, times, once, user);
    }
    for (unsigned round = 1; grown(&before, &after) > LEAK_BYTES; round++) {
        if (round == LEAK_ROUNDS) {
            gpuhal_fail("%s %u times left %" PRIu64 " KiB more resident memory, the last %u times %" PRIu64 " KiB",
                        what, LEAK_ROUNDS * times, grown(&first, &after) >> 10, times, grown(&before, &after) >> 10);
        }
        before = gpuhal_resources_now();
        after = repeat(&before, what, times, once, user);
    }
}

/* ---- state */

struct gpuhal_process_state {
    char directory[PATH_MAX];
    char locale[256];
    mode_t mask;
    sigset_t blocked;
    struct sigaction actions[SIGNALS];
    int rounding;
    int traps;
    char *environment; /* all "name=value" strings, each NUL-terminated, followed by an empty string */
};

static mode_t file_mask(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return mask;
}

/* Copies all strings, since setenv() may change them in place. */
static void take_environment(gpuhal_process_state *state)
{
    size_t bytes = 0;
    for (char **entry = environ; *entry != NULL; entry++) {
        bytes += strlen(*entry) + 1;
    }
    char *to = state->environment = gpuhal_own(calloc(1, bytes + 1));
    for (char **entry = environ; *entry != NULL; entry++) {
        to = stpcpy(to, *entry) + 1;
    }
}

gpuhal_process_state *gpuhal_process_state_now(void)
{
    gpuhal_process_state *state = gpuhal_own(calloc(1, sizeof *state));
    if (getcwd(state->directory, sizeof state->directory) == NULL) {
        state->directory[0] = '\0';
    }
    const char *locale = setlocale(LC_ALL, NULL);
    snprintf(state->locale, sizeof state->locale, "%s", locale != NULL ? locale : "");
    state->mask = file_mask();
    pthread_sigmask(SIG_SETMASK, NULL, &state->blocked);
    for (int number = 1; number < SIGNALS; number++) {
        sigaction(number, NULL, &state->actions[number]);
    }
    state->rounding = fegetround();
    state->traps = fegetexcept();
    take_environment(state);
    return state;
}

static bool of_plugin(const struct sigaction *action, const char *file, const char **out_object)
{
    Dl_info info;
    struct stat object, plugin;
    void *code = NULL;
    memcpy(&code, &action->sa_handler, sizeof code);
    *out_object = "unknown code";
    if (code == NULL || dladdr(code, &info) == 0) {
        return true;
    }
    *out_object = info.dli_fname;
    return stat(info.dli_fname, &object) == 0 && stat(file, &plugin) == 0 && object.st_ino == plugin.st_ino &&
           object.st_dev == plugin.st_dev;
}

static void expect_signals(const gpuhal_process_state *before, const gpuhal_process_state *now, const char *step,
                           const char *file)
{
    char of_vendor[512] = "";
    for (int number = 1; number < SIGNALS; number++) {
        const char *object = "";
        if (sigismember(&before->blocked, number) != sigismember(&now->blocked, number)) {
            gpuhal_fail("%s changed the signal mask: signal %d (%s)", step, number, strsignal(number));
        }
        if (before->actions[number].sa_handler == now->actions[number].sa_handler) {
            continue;
        }
        if (now->actions[number].sa_handler == SIG_IGN || of_plugin(&now->actions[number], file, &object)) {
            gpuhal_fail("%s installed a signal handler for signal %d (%s)", step, number, strsignal(number));
        }
        const char *slash = strrchr(object, '/'), *name = slash != NULL ? slash + 1 : object;
        if (strstr(of_vendor, name) == NULL) {
            gpuhal_tool_append(of_vendor, sizeof of_vendor, ", ", "%s", name);
        }
    }
    if (of_vendor[0] != '\0') {
        gpuhal_note("%s: signal handlers were installed by libraries that the plugin uses: %s", step, of_vendor);
    }
}

static const char *first_without(const char *all, const char *others)
{
    for (const char *entry = all; *entry != '\0'; entry += strlen(entry) + 1) {
        const char *other = others;
        while (*other != '\0' && strcmp(entry, other) != 0) {
            other += strlen(other) + 1;
        }
        if (*other == '\0') {
            return entry;
        }
    }
    return NULL;
}

static void note_environment_import(void *user, const char *name)
{
    static const char *const names[] = {"setenv", "putenv", "unsetenv", "clearenv", "environ", "__environ"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        *(bool *)user |= strcmp(name, names[i]) == 0;
    }
}

/* Drivers also change the environment (PoCL sets HWLOC_PLUGINS_PATH). A plugin that does not import setenv() or a
 * similar function is not at fault. */
static void expect_environment(const gpuhal_process_state *before, const gpuhal_process_state *now, const char *step,
                               const char *file)
{
    const char *added = first_without(now->environment, before->environment);
    const char *lost = first_without(before->environment, now->environment);
    bool to_blame = false;
    if (added == NULL && lost == NULL) {
        return;
    }
    const gpuhal_image_visitor visitor = {.user = &to_blame, .imported = note_environment_import};
    gpuhal_image_visit(file, &visitor);
    if (to_blame) {
        gpuhal_fail("%s changed the environment: %s%s", step, added != NULL ? added : lost,
                    added != NULL ? "" : " is gone");
    }
    gpuhal_note("%s: a library that the plugin uses changed the environment: %s%s", step, added != NULL ? added : lost,
                added != NULL ? "" : " is gone");
}

void gpuhal_process_state_expect(gpuhal_process_state *before, const char *step, const char *file)
{
    gpuhal_process_state *now = gpuhal_process_state_now();
    if (strcmp(before->directory, now->directory) != 0) {
        gpuhal_fail("%s changed the working directory to %s", step, now->directory);
    }
    if (strcmp(before->locale, now->locale) != 0) {
        gpuhal_fail("%s changed the locale to %s", step, now->locale);
    }
    if (before->mask != now->mask) {
        gpuhal_fail("%s changed the umask to %03o", step, (unsigned)now->mask);
    }
    if (before->rounding != now->rounding || before->traps != now->traps) {
        gpuhal_fail("%s changed the floating-point environment", step);
    }
    expect_environment(before, now, step, file);
    expect_signals(before, now, step, file);
    free(before->environment);
    *before = *now;
    free(now);
}
