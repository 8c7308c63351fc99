/* watch_sampler.c: see watch_sampler.h. The thread's only ppoll() call waits for the end of the period, for requests
 * from the display, and for device changes. */
#include "watch_sampler.h"

#include "fields.h"
#include "print.h"
#include "processes.h"
#include "rows.h"
#include "screen.h"
#include "watch_processes.h"

#include "../common/subprocess.h"

#include <gpuhal/rescan.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_NS  1000000000u /* how long to wait for the thread to exit */
#define PROCESSES_NS 2000000000u /* listing processes costs more than reading values */

struct gpuhal_watch_sampler {
    gpuhal_probe_machine *machine;
    const gpuhal_probe_options *options;
    pthread_t thread;
    pthread_mutex_t mutex; /* protects the members up to the next blank line */
    uint64_t period_ns;
    bool paused, ending;
    gpuhal_watch_frame *latest;

    int wanted, ready;     /* `wanted` is readable after a request from the display, `ready` after a new frame */
    int changes;           /* descriptor for device changes; -1 if unsupported */
    uint64_t processes_ns; /* when processes were last read; used only by the thread */
};

static void ring(int descriptor)
{
    (void)!write(descriptor, &(uint64_t){1}, sizeof(uint64_t));
}

static void quiet(int descriptor)
{
    (void)!read(descriptor, &(uint64_t){0}, sizeof(uint64_t));
}

void gpuhal_watch_frame_free(gpuhal_watch_frame *frame)
{
    if (frame) {
        free(frame->rows);
        free(frame->processes);
        free(frame);
    }
}

/* ---- making a frame */

static void fill_row(const gpuhal_probe_row *row, gpuhal_watch_row *to)
{
    static const gpuhal_key keys[WATCH_NUMBERS] = {
        [WATCH_UTILIZATION] = GPUHAL_VALUE_UTILIZATION_CORE_PERMILLE,
        [WATCH_MEMORY_USED] = GPUHAL_VALUE_MEMORY_USED_BYTES,
        [WATCH_MEMORY_TOTAL] = GPUHAL_FACT_MEMORY_TOTAL_BYTES,
        [WATCH_TEMPERATURE] = GPUHAL_VALUE_TEMPERATURE_MILLICELSIUS,
        [WATCH_POWER] = GPUHAL_VALUE_POWER_MICROWATTS,
        [WATCH_POWER_LIMIT] = GPUHAL_VALUE_POWER_LIMIT_MICROWATTS,
        [WATCH_CLOCK] = GPUHAL_VALUE_CLOCK_CORE_HERTZ,
        [WATCH_FAN] = GPUHAL_VALUE_FAN_PERMILLE,
        [WATCH_ENCODER] = GPUHAL_VALUE_UTILIZATION_ENCODER_PERMILLE,
        [WATCH_DECODER] = GPUHAL_VALUE_UTILIZATION_DECODER_PERMILLE,
        [WATCH_RECEIVE] = GPUHAL_VALUE_PCIE_RECEIVE_BYTES_PER_SECOND,
        [WATCH_SEND] = GPUHAL_VALUE_PCIE_SEND_BYTES_PER_SECOND,
    };
    const char *state = gpuhal_probe_row_state(row);
    const char *why = row->hardware ? row->hardware->why : "";
    char space[PROBE_FIELD_BYTES];
    snprintf(to->id, sizeof to->id, "%s", row->entry ? gpuhal_device_id(row->entry->device) : "");
    snprintf(to->name, sizeof to->name, "%s", gpuhal_probe_field_text(gpuhal_probe_field_named("name", 4), row, space));
    snprintf(to->place, sizeof to->place, "%s",
             gpuhal_probe_field_text(gpuhal_probe_field_named("pci", 3), row, space));
    to->lost = strcmp(state, "lost") == 0;
    if (to->lost || strcmp(state, gpuhal_hardware_state_name(GPUHAL_HARDWARE_READY)) != 0) {
        snprintf(to->note, sizeof to->note, "%s", *why ? why : to->lost ? "the device is lost" : state);
    }
    for (size_t i = 0; row->entry && !to->lost && i < WATCH_NUMBERS; i++) {
        to->known[i] = keys[i] < 0x1000 ? gpuhal_device_u64(row->entry->device, keys[i], &to->numbers[i]) == GPUHAL_OK
                                        : gpuhal_probe_value(row->entry, keys[i], &to->numbers[i]);
    }
}

/* Creates a frame; returns NULL if out of memory. */
static gpuhal_watch_frame *make_frame(gpuhal_watch_sampler *sampler)
{
    gpuhal_probe_rows rows = {0};
    gpuhal_watch_frame *frame = calloc(1, sizeof *frame);
    const uint64_t now_ns = gpuhal_tool_now_ns();
    bool made = frame && gpuhal_probe_rows_make(sampler->machine, sampler->options, &rows);
    if (made) {
        frame->has_processes = !sampler->processes_ns || now_ns - sampler->processes_ns >= PROCESSES_NS;
        sampler->processes_ns = frame->has_processes ? now_ns : sampler->processes_ns;
        frame->rows = calloc(rows.count + 1, sizeof *frame->rows);
        gpuhal_probe_write_counts(sampler->machine, sampler->options, frame->counts, sizeof frame->counts);
        made = frame->rows != NULL &&
               (!frame->has_processes || gpuhal_probe_processes_read(sampler->options, sampler->machine));
    }
    for (uint32_t i = 0; made && i < rows.count; i++) {
        const gpuhal_probe_row *row = &rows.list[i];
        if (row->entry && row->entry->processor && rows.count > 1 && !sampler->options->all) {
            continue; /* without --all, the processor has a row only if there is no other row */
        }
        gpuhal_watch_row *to = &frame->rows[frame->row_count];
        fill_row(row, to);
        made = !row->entry || !frame->has_processes || gpuhal_watch_processes_add(sampler->machine, row->entry, frame);
        frame->row_count++;
    }
    gpuhal_probe_rows_finish(&rows);
    if (!made) {
        gpuhal_watch_frame_free(frame);
        return NULL;
    }
    frame->time_ns = gpuhal_tool_now_ns();
    return frame;
}

static void publish(gpuhal_watch_sampler *sampler, gpuhal_watch_frame *frame)
{
    pthread_mutex_lock(&sampler->mutex);
    gpuhal_watch_frame *former = sampler->latest;
    sampler->latest = frame;
    pthread_mutex_unlock(&sampler->mutex);
    gpuhal_watch_frame_free(former);
    ring(sampler->ready);
}

/* ---- the thread */

/* Consumes all reported changes; the device list already reflects them. */
static void read_changes(gpuhal_watch_sampler *sampler)
{
    gpuhal_change change = {.size = sizeof change};
    while (sampler->changes >= 0 && gpuhal_next_change(sampler->machine->gpu, &change) == GPUHAL_OK) {
    }
}

/* Waits until the next sample is due, or until devices change. While the sampler is paused, neither ends the wait.
 * Returns false if the sampler is ending. */
static bool wait_for_time(gpuhal_watch_sampler *sampler, uint64_t last_ns)
{
    for (;;) {
        pthread_mutex_lock(&sampler->mutex);
        const bool ending = sampler->ending, paused = sampler->paused;
        const uint64_t due_ns = last_ns + sampler->period_ns, now_ns = gpuhal_tool_now_ns();
        pthread_mutex_unlock(&sampler->mutex);
        if (ending || (!paused && now_ns >= due_ns)) {
            return !ending;
        }
        const uint64_t left_ns = due_ns - now_ns;
        const struct timespec left = {.tv_sec = (time_t)(left_ns / 1000000000u),
                                      .tv_nsec = (long)(left_ns % 1000000000u)};
        struct pollfd polled[] = {{.fd = sampler->wanted, .events = POLLIN},
                                  {.fd = paused ? -1 : sampler->changes, .events = POLLIN}};
        if (ppoll(polled, 2, paused ? NULL : &left, NULL) > 0) {
            quiet(sampler->wanted);
            if (polled[1].revents) {
                return true;
            }
        }
    }
}

static void *work(void *user)
{
    gpuhal_watch_sampler *sampler = user;
    uint64_t last_ns;
    do {
        last_ns = gpuhal_tool_now_ns();
        read_changes(sampler);
        if (gpuhal_probe_machine_refresh(sampler->options, PROBE_READ_TABLE, sampler->machine)) {
            gpuhal_watch_frame *frame = make_frame(sampler);
            if (frame) {
                publish(sampler, frame);
            }
        }
    } while (wait_for_time(sampler, last_ns));
    return NULL;
}

/* ---- for the display */

static void destroy(gpuhal_watch_sampler *sampler)
{
    for (size_t i = 0; i < 3; i++) {
        const int descriptor = (const int[]){sampler->wanted, sampler->ready, sampler->changes}[i];
        if (descriptor >= 0) {
            close(descriptor);
        }
    }
    gpuhal_watch_frame_free(sampler->latest);
    pthread_mutex_destroy(&sampler->mutex);
    free(sampler);
}

gpuhal_watch_sampler *gpuhal_watch_sampler_start(gpuhal_probe_machine *machine, const gpuhal_probe_options *options,
                                                 uint64_t period_ns)
{
    gpuhal_watch_sampler *sampler = calloc(1, sizeof *sampler);
    gpuhal_os_handle changes = -1;
    sigset_t all, before;
    if (!sampler) {
        gpuhal_probe_say("out of memory");
        return NULL;
    }
    pthread_mutex_init(&sampler->mutex, NULL);
    sampler->machine = machine;
    sampler->options = options;
    sampler->period_ns = period_ns;
    sampler->wanted = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sampler->ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    sampler->changes = gpuhal_change_descriptor(machine->gpu, &changes) == GPUHAL_OK ? (int)changes : -1;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are handled by the display's thread */
    const bool started = sampler->wanted >= 0 && sampler->ready >= 0 &&
                         (errno = pthread_create(&sampler->thread, NULL, work, sampler)) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!started) {
        gpuhal_probe_say("the live view cannot start: %s", strerror(errno));
        destroy(sampler);
        return NULL;
    }
    return sampler;
}

int gpuhal_watch_sampler_descriptor(const gpuhal_watch_sampler *sampler)
{
    return sampler->ready;
}

gpuhal_watch_frame *gpuhal_watch_sampler_take(gpuhal_watch_sampler *sampler)
{
    quiet(sampler->ready);
    pthread_mutex_lock(&sampler->mutex);
    gpuhal_watch_frame *frame = sampler->latest;
    sampler->latest = NULL;
    pthread_mutex_unlock(&sampler->mutex);
    return frame;
}

void gpuhal_watch_sampler_set(gpuhal_watch_sampler *sampler, uint64_t period_ns, bool paused)
{
    pthread_mutex_lock(&sampler->mutex);
    sampler->period_ns = period_ns;
    sampler->paused = paused;
    pthread_mutex_unlock(&sampler->mutex);
    ring(sampler->wanted);
}

bool gpuhal_watch_sampler_end(gpuhal_watch_sampler *sampler)
{
    struct timespec until;
    pthread_mutex_lock(&sampler->mutex);
    sampler->ending = true;
    pthread_mutex_unlock(&sampler->mutex);
    ring(sampler->wanted);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_NS / 1000000000u;
    if (pthread_timedjoin_np(sampler->thread, NULL, &until) != 0) {
        return false;
    }
    destroy(sampler);
    return true;
}
