/* tests/fakes/common/stream.c: streams, the points in them, and the order between the legacy stream and the other
 * streams. Each stream has its own thread.
 *
 * Work starts as soon as it has been submitted and its predecessors are done. The machine's statements slow_us and rate
 * make the work slower, so that tests detect programs that do not wait. */
#include "engine.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t fake_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void fake_point_release(fake_point *point)
{
    if (point && --point->references == 0) {
        free(point);
    }
}

static fake_point *point_retain(fake_point *point)
{
    if (point) {
        point->references++;
    }
    return point;
}

static void rest(const fake_work *work)
{
    const fake_script *script = fake_script_get();
    uint64_t ns = script->slow_ns;
    if (script->bytes_per_second) {
        ns += (uint64_t)((double)(work->bytes * work->rows) / (double)script->bytes_per_second * 1e9);
    }
    struct timespec left = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (ns && nanosleep(&left, &left) && errno == EINTR) {
    }
}

static void finish_work(fake_stream *stream, fake_work *work)
{
    if (work->failure) {
        fake_context_fail(stream->context, work->failure);
    }
    if (work->point) {
        work->point->done = true;
        work->point->time_ns = fake_now_ns();
    }
    fake_point_release(work->after);
    fake_point_release(work->point);
    free(work->owned);
    free(work);
    pthread_cond_broadcast(&fake.finished);
}

static void *work_on(void *user)
{
    fake_stream *stream = user;
    pthread_mutex_lock(&fake.lock);
    for (;;) {
        while (!stream->head && !stream->closing) {
            pthread_cond_wait(&stream->wake, &fake.lock);
        }
        fake_work *work = stream->head;
        if (!work) {
            break;
        }
        stream->head = work->next;
        stream->tail = work->next ? stream->tail : NULL;
        while (work->after && !work->after->done) {
            pthread_cond_wait(&fake.finished, &fake.lock);
        }
        bool run = work->run && !stream->context->error && !work->failure;
        pthread_mutex_unlock(&fake.lock);
        if (work->run) {
            rest(work);
        }
        if (run) {
            work->run(work);
        }
        pthread_mutex_lock(&fake.lock);
        finish_work(stream, work);
    }
    pthread_mutex_unlock(&fake.lock);
    return NULL;
}

/* The new thread blocks all signals, so that only the program's own threads handle them. */
static bool start_thread(fake_stream *stream)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    stream->started = pthread_create(&stream->thread, NULL, work_on, stream) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return stream->started;
}

static bool append(fake_stream *stream, const fake_work *work, fake_point *after, fake_point *point)
{
    if (!stream->started && !start_thread(stream)) {
        return false;
    }
    fake_work *copy = malloc(sizeof *copy);
    if (!copy) {
        return false;
    }
    *copy = *work;
    copy->next = NULL;
    copy->after = point_retain(after);
    copy->point = point_retain(point);
    *(stream->head ? &stream->tail->next : &stream->head) = copy;
    stream->tail = copy;
    pthread_cond_signal(&stream->wake);
    return true;
}

static bool append_wait(fake_stream *stream, fake_point *after)
{
    static const fake_work nothing;
    return !after || after->done || append(stream, &nothing, after, NULL);
}

/* Work in the legacy stream waits for all blocking streams of its context, and work in a blocking stream waits for the
 * legacy stream. Non-blocking streams are independent of the legacy stream. */
static bool append_legacy_waits(fake_stream *stream)
{
    fake_context *context = stream->context;
    if (stream != &context->legacy) {
        return (stream->flags & FAKE_NON_BLOCKING) || append_wait(stream, context->legacy.last);
    }
    bool ok = true;
    for (fake_stream *other = fake.streams; other; other = other->next) {
        if (other->context == context && !(other->flags & FAKE_NON_BLOCKING)) {
            ok = append_wait(stream, other->last) && ok;
        }
    }
    return ok;
}

fake_code fake_submit(fake_stream *stream, const fake_work *work)
{
    fake_work poisoned = *work;
    fake_code poison = fake_take_poison();
    poisoned.failure = poison ? poison : work->failure;
    fake_point *point = calloc(1, sizeof *point);
    if (!point) {
        return FAKE_ERROR_OUT_OF_MEMORY;
    }
    point->references = 1;
    if (!append_legacy_waits(stream) || !append(stream, &poisoned, work->after, point)) {
        free(point);
        return FAKE_ERROR_OUT_OF_MEMORY;
    }
    fake_point_release(stream->last);
    stream->last = point;
    return FAKE_OK;
}

void fake_point_wait(fake_point *point)
{
    point_retain(point);
    while (point && !point->done) {
        pthread_cond_wait(&fake.finished, &fake.lock);
    }
    fake_point_release(point);
}

void fake_stream_drain(fake_stream *stream)
{
    fake_point_wait(stream->last);
}

void fake_context_drain(fake_context *context)
{
    bool again = true;
    while (again) {
        again = false;
        for (fake_stream *stream = fake.streams; stream && !again; stream = stream->next) {
            again = (!context || stream->context == context) && stream->last && !stream->last->done;
            if (again) {
                fake_stream_drain(stream);
            }
        }
        for (fake_context *one = fake.contexts; one && !again; one = one->next) {
            again = (!context || one == context) && one->legacy.last && !one->legacy.last->done;
            if (again) {
                fake_stream_drain(&one->legacy);
            }
        }
    }
}

void fake_stream_finish(fake_stream *stream)
{
    fake_stream_drain(stream);
    if (stream->started) {
        stream->closing = true;
        pthread_cond_signal(&stream->wake);
        pthread_mutex_unlock(&fake.lock);
        pthread_join(stream->thread, NULL);
        pthread_mutex_lock(&fake.lock);
        stream->started = stream->closing = false;
    }
    fake_point_release(stream->last);
    stream->last = NULL;
}

static fake_stream *freed; /* reused in LIFO order, as in real drivers; requires the lock */

/* The stream stays in the list until its thread has ended, because joining the thread releases the lock. */
void fake_stream_free(fake_stream *stream)
{
    fake_stream_finish(stream);
    fake_stream **at = &fake.streams;
    while (*at != stream) {
        at = &(*at)->next;
    }
    *at = stream->next;
    pthread_cond_destroy(&stream->wake);
    stream->next = freed;
    freed = stream;
    fake_report_get()->streams--;
}

fake_stream *fake_stream_new(fake_context *context, unsigned flags, int priority)
{
    fake_stream *stream = freed ? freed : calloc(1, sizeof *stream);
    if (stream) {
        freed = freed ? freed->next : NULL;
        *stream = (fake_stream){.next = fake.streams, .context = context, .flags = flags, .priority = priority};
        pthread_cond_init(&stream->wake, NULL);
        fake.streams = stream;
        fake_report_get()->streams++;
    }
    return stream;
}

fake_stream *fake_stream_known(const char *function, const fake_stream *stream)
{
    fake_stream *known = fake.streams;
    while (known && known != stream) {
        known = known->next;
    }
    if (!known) {
        fake_report_violation("%s: no stream, or a destroyed one", function);
    }
    return known;
}

bool fake_stream_is_idle(const fake_stream *stream)
{
    return !stream->last || stream->last->done;
}
