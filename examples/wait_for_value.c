/* wait_for_value.c SELECTOR VALUE above|below LIMIT [SECONDS]: waits until a value of a device passes a limit. For
 * scripts, as in "wait_for_value cuda:0 memory_free_bytes above 20000000000 600 && ./train". VALUE is a name from
 * gpuhal-probe --json. The exit status is 0 if the value has passed the limit, 2 for wrong arguments, 3 after the
 * timeout, 4 if the device is lost, and 1 for any other failure. A sampler reads the values. The program sleeps until
 * the sampler reports an event, but at most for one period at a time. */
#include <gpuhal/node.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PASSED = 0, FAILED = 1, USAGE = 2, TOO_LATE = 3, LOST = 4, PERIOD_MS = 200 };

typedef struct watch {
    gpuhal *gpu;
    gpuhal_device *device;
    gpuhal_sampler *sampler;
    gpuhal_key key;
    gpuhal_os_handle events;
} watch;

/* Returns 0 for an unknown name. */
static gpuhal_key find_key(const char *name)
{
    for (gpuhal_key key = GPUHAL_VALUE_MEMORY_FREE_BYTES; gpuhal_key_name(key); key++) {
        if (strcmp(gpuhal_key_name(key), name) == 0) {
            return key;
        }
    }
    return 0;
}

static gpuhal_status start(watch *own, const char *selector, uint64_t limit, uint32_t is_below)
{
    const gpuhal_threshold threshold = {
        .size = sizeof threshold, .key = own->key, .limit = limit, .is_below = is_below};
    gpuhal_status status = gpuhal_open(NULL, &own->gpu);
    status = status ? status : gpuhal_select(own->gpu, selector, 0, &own->device, NULL);
    if (status) {
        return status;
    }
    const gpuhal_sampler_desc desc = {.size = sizeof desc,
                                      .devices = &own->device,
                                      .device_count = 1,
                                      .keys = &own->key,
                                      .key_count = 1,
                                      .period_ns = UINT64_C(1000000) * PERIOD_MS};
    status = gpuhal_sampler_create(own->gpu, &desc, &own->sampler);
    status = status ? status : gpuhal_sampler_descriptor(own->sampler, &own->events);
    return status ? status : gpuhal_sampler_add_threshold(own->sampler, &threshold, NULL);
}

/* Reads the pending events until one of them ends the wait. Returns whether there was such an event. */
static int take_events(const watch *own, int *out_result)
{
    gpuhal_sampler_event event = {.size = sizeof event};
    while (gpuhal_sampler_next_event(own->sampler, &event) == GPUHAL_OK) {
        const int lost = event.kind == GPUHAL_SAMPLER_HEALTH && event.value == GPUHAL_HEALTH_LOST;
        if (lost || event.kind == GPUHAL_SAMPLER_RAISED) {
            *out_result = lost ? LOST : PASSED;
            printf("%s\n", event.sentence);
            return 1;
        }
    }
    return 0;
}

/* Returns whether the device does not report the value at all. Such a value never passes a limit. */
static int is_missing_for_good(const watch *own)
{
    gpuhal_value value = {.key = own->key};
    if (gpuhal_sampler_latest(own->sampler, own->device, &value, 1, NULL) ||
        value.missing != GPUHAL_MISSING_NOT_SUPPORTED) {
        return 0;
    }
    fprintf(stderr, "wait_for_value: %s has no %s\n", gpuhal_device_id(own->device), gpuhal_key_name(own->key));
    return 1;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int wait_for(const watch *own, double seconds)
{
    const double least = 2e-3 * PERIOD_MS; /* long enough for the first samples */
    const double end = now() + (seconds > least ? seconds : least);
    struct pollfd descriptor = {.fd = (int)own->events, .events = POLLIN};
    int result = TOO_LATE;
    while (!take_events(own, &result)) {
        if (is_missing_for_good(own)) {
            return FAILED;
        }
        if (now() >= end) {
            break;
        }
        (void)poll(&descriptor, 1, PERIOD_MS); /* take_events() reads the event */
    }
    return result;
}

static void report(const watch *own)
{
    gpuhal_window window = {.size = sizeof window};
    gpuhal_health health = {.size = sizeof health};
    if (gpuhal_sampler_window(own->sampler, own->device, own->key, 0, &window) == GPUHAL_OK && window.count > 0) {
        printf("%s of %s: %llu to %llu, %llu on average of %u samples\n", gpuhal_key_name(own->key),
               gpuhal_device_id(own->device), (unsigned long long)window.min, (unsigned long long)window.max,
               (unsigned long long)window.mean, window.count);
    }
    if (gpuhal_sampler_health(own->sampler, own->device, &health) == GPUHAL_OK) {
        printf("health: %s%s%s\n", gpuhal_health_name(health.state), *health.sentence ? ", " : "", health.sentence);
    }
}

/* Accepts only digits. strtoull() would also accept a sign, and would convert an overflow to the largest number. */
static int read_limit(const char *text, uint64_t *out_limit)
{
    char *rest = NULL;
    errno = 0;
    *out_limit = strtoull(text, &rest, 10);
    return *text && strspn(text, "0123456789") == strlen(text) && errno == 0;
}

static int read_arguments(int count, char **arguments, watch *own, uint64_t *out_limit, double *out_seconds)
{
    char *rest = NULL;
    const char *wrong = NULL;
    if (count < 5 || count > 6) {
        fprintf(stderr, "usage: wait_for_value SELECTOR VALUE above|below LIMIT [SECONDS]\n");
        return 0;
    }
    own->key = find_key(arguments[2]);
    *out_seconds = count > 5 ? strtod(arguments[5], &rest) : 3600;
    if (own->key == 0) {
        wrong = "a value that changes, such as memory_free_bytes (gpuhal-probe --json has their names)";
    } else if (strcmp(arguments[3], "above") != 0 && strcmp(arguments[3], "below") != 0) {
        wrong = "above or below, in the third place";
    } else if (!read_limit(arguments[4], out_limit)) {
        wrong = "a whole number as the limit";
    } else if (count > 5 && (rest == arguments[5] || *rest || !(*out_seconds >= 0))) {
        wrong = "a number of seconds in the last place";
    }
    if (wrong) {
        fprintf(stderr, "wait_for_value: expected %s\n", wrong);
    }
    return !wrong;
}

int main(int count, char **arguments)
{
    uint64_t limit = 0;
    double seconds = 0;
    watch own = {.events = -1};
    if (!read_arguments(count, arguments, &own, &limit, &seconds)) {
        return USAGE;
    }
    int result = FAILED;
    if (start(&own, arguments[1], limit, strcmp(arguments[3], "below") == 0) != GPUHAL_OK) {
        fprintf(stderr, "wait_for_value: %s\n", gpuhal_last_error()->sentence);
    } else {
        result = wait_for(&own, seconds);
        report(&own);
    }
    gpuhal_os_handle_close(own.events);
    gpuhal_sampler_destroy(own.sampler);
    gpuhal_close(own.gpu);
    return result;
}
