/* A real plugin that is damaged at random by flipped bits or missing bytes. Only the helper may crash. This process
 * must not load the plugin. The report must describe the fault, or list the device if the damage was harmless. */
#include "loader_support.h"

#include "base/records.h"
#include "support/count.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define SEED        20240917u
#define DEADLINE_NS 4000000000u
#define THREADS     6

enum { FLIPS = 75, CUTS = 25 }; /* multiplied by test_count() */

static char *original;
static size_t original_bytes;
static atomic_uint next_number, failures, refused, broken, listed;

static size_t draw(uint64_t *state, size_t limit)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)((*state >> 33) % limit);
}

/* Flips 1 to 8 bits, in every third round only in the headers, which the dynamic loader trusts. The last rounds cut the
 * copy off instead. Returns the copy's size. */
static size_t damage(unsigned number, char *copy)
{
    uint64_t state = SEED + number;
    memcpy(copy, original, original_bytes);
    draw(&state, 2);
    if (number >= test_count(FLIPS)) {
        return draw(&state, original_bytes);
    }
    size_t range = number % 3 == 0 ? 4096 : original_bytes;
    for (size_t flips = 1 + draw(&state, 8); flips > 0; flips--) {
        size_t at = draw(&state, range < original_bytes ? range : original_bytes);
        copy[at] = (char)(copy[at] ^ (1 << draw(&state, 8)));
    }
    return original_bytes;
}

static bool is_result(const gpuhal_candidate *candidate)
{
    const char *reason = candidate->reason ? candidate->reason : "";
    bool clean = gpuhal_records_is_clean(reason, strlen(reason));
    switch (candidate->state) {
    case GPUHAL_PLUGIN_OK:
        atomic_fetch_add(&listed, 1);
        return candidate->isolated && candidate->devices.count > 0 && !*reason;
    case GPUHAL_PLUGIN_REJECTED:
    case GPUHAL_PLUGIN_INCOMPATIBLE:
        atomic_fetch_add(&refused, 1);
        return clean && *reason;
    case GPUHAL_PLUGIN_FAILED:
    case GPUHAL_PLUGIN_TIMED_OUT:
    case GPUHAL_PLUGIN_NO_DEVICE:
    case GPUHAL_PLUGIN_NO_DRIVER:
    case GPUHAL_PLUGIN_NO_PERMISSION:
        atomic_fetch_add(&broken, 1);
        return clean && *reason && candidate->isolated;
    default:
        return false;
    }
}

static bool is_survived(unsigned number, char *copy)
{
    char in[128], library[160], manifest[160];
    snprintf(in, sizeof in, "%s/%u", own_folder(), number);
    snprintf(library, sizeof library, "%s/cpu.so", in);
    snprintf(manifest, sizeof manifest, "%u/cpu.gpuhal", number);
    if (mkdir(in, 0755)) {
        return false;
    }
    write_file(library, copy, damage(number, copy));
    write_manifest(manifest, "cpu", library, "");
    gpuhal_settings settings = own_settings();
    settings.plugin_path = in;
    settings.helper_deadline_ns = DEADLINE_NS;
    gpuhal_candidates candidates;
    if (gpuhal_loader_run(&settings, NULL, NULL, false, &candidates)) {
        return false;
    }
    const gpuhal_candidate *candidate = find_candidate(&candidates, "cpu");
    /* On a busy machine a killed process may end late. A note reports this. */
    bool good = candidate && is_result(candidate) &&
                (candidates.note_count == 0 || candidate->state == GPUHAL_PLUGIN_TIMED_OUT);
    if (!good) {
        print_candidates(&candidates);
    }
    gpuhal_candidates_finish(&candidates);
    return good;
}

static void *damage_some(__attribute__((unused)) void *user)
{
    char *copy = malloc(original_bytes);
    for (unsigned number = atomic_fetch_add(&next_number, 1); copy && number < test_count(FLIPS + CUTS);
         number = atomic_fetch_add(&next_number, 1)) {
        if (!is_survived(number, copy)) {
            printf("# seed %u, number %u: no result\n", SEED, number);
            atomic_fetch_add(&failures, 1);
        }
    }
    free(copy);
    return NULL;
}

TEST(damaged_copies_of_a_real_plugin_are_refused_broken_or_work_and_this_process_lives)
{
    new_folder();
    original = read_file(GPUHAL_BUILD_PLUGINS "/gpuhal-cpu.so", &original_bytes);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, damage_some, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    free(original);
    printf("# seed %u: %u refused, %u broken, %u listed\n", SEED, atomic_load(&refused), atomic_load(&broken),
           atomic_load(&listed));
    assert_int_equal(atomic_load(&failures), 0);
    assert_int_equal(atomic_load(&refused) + atomic_load(&broken) + atomic_load(&listed), test_count(FLIPS + CUTS));
    assert_true(atomic_load(&refused) > test_count(CUTS) / 2 && atomic_load(&broken) > 0 && atomic_load(&listed) > 0);
    assert_false(is_mapped(own_folder()));
#ifdef __SANITIZE_ADDRESS__
    /* With a sanitizer, a killed process takes longer to end than the library waits. */
    while (waitpid(-1, NULL, 0) > 0) {
    }
#endif
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

#include "test_main.h"
