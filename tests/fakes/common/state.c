/* tests/fakes/common/state.c: the beginning and end of every call, devices, and contexts.
 *
 * If a context has a sticky error, every call in the context returns it. If the code of a `lose` statement affects the
 * whole device, the device also refuses new contexts. */
#include "engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CONTEXT_BYTES = 2 << 20 };

fake_state fake = {.lock = PTHREAD_MUTEX_INITIALIZER, .finished = PTHREAD_COND_INITIALIZER};

static _Thread_local fake_code poison;

/* Returns whether the error affects only one context; all other errors affect the whole device. */
static bool is_of_context(fake_code code)
{
    return code >= FAKE_ERROR_ILLEGAL_ADDRESS && code <= FAKE_ERROR_LAUNCH_FAILED;
}

void fake_context_fail(fake_context *context, fake_code code)
{
    context->error = context->error ? context->error : code;
    if (!is_of_context(code)) {
        fake.devices[context->device].lost = code;
        for (fake_context *other = fake.contexts; other; other = other->next) {
            other->error = other->device == context->device && !other->error ? code : other->error;
        }
    }
}

fake_code fake_take_poison(void)
{
    fake_code code = poison;
    poison = FAKE_OK;
    return code;
}

/* Calls that enqueue work succeed, and their work reports the failure. All other calls fail immediately. */
static void lose(const fake_fault *fault, const char *function)
{
    fake_code code = (fake_code)fault->code;
    if (fake_is_asynchronous(function)) {
        poison = code;
        return;
    }
    for (fake_context *context = fake.contexts; context; context = context->next) {
        if (fake.devices[context->device].physical == fault->device) {
            fake_context_fail(context, code);
        }
    }
    for (unsigned i = 0; i < fake.device_count; i++) {
        if (fake.devices[i].physical == fault->device && !is_of_context(code)) {
            fake.devices[i].lost = code;
        }
    }
}

void fake_begin(const char *function, fake_code *out_fault)
{
    fake_report_stop(function);
    pthread_mutex_lock(&fake.lock);
    fake_report_call(function);
    const fake_fault *fault = fake_script_fault(fake_script_get(), function);
    *out_fault = fault && fault->kind == FAKE_FAIL ? (fake_code)fault->code : FAKE_OK;
    if (!fault) {
        return;
    }
    snprintf(fake_report_get()->fault, sizeof fake_report_get()->fault, "%s", function);
    while (fault->kind == FAKE_HANG) {
        pthread_mutex_unlock(&fake.lock);
        pause();
        pthread_mutex_lock(&fake.lock);
    }
    if (fault->kind == FAKE_LOSE) {
        lose(fault, function);
    }
}

fake_code fake_leave(fake_code code)
{
    pthread_mutex_unlock(&fake.lock);
    return code;
}

fake_device *fake_device_at(int ordinal, fake_code *out_code)
{
    if (ordinal < 0 || (unsigned)ordinal >= fake.device_count) {
        fake_report_violation("there is no device %d", ordinal);
        *out_code = FAKE_ERROR_INVALID_DEVICE;
        return NULL;
    }
    fake_device *device = &fake.devices[ordinal];
    *out_code = device->lost;
    return device->lost ? NULL : device;
}

void fake_device_see(unsigned physical, const fake_mig *mig, unsigned partition)
{
    const fake_plan *plan = &fake_script_get()->devices[physical];
    const unsigned parts = plan->partitions ? plan->partitions : 1;
    if (fake.device_count == FAKE_DEVICES) {
        return;
    }
    fake.devices[fake.device_count++] = (fake_device){.plan = plan,
                                                      .mig = mig,
                                                      .physical = physical,
                                                      .partition = partition,
                                                      .memory = mig ? mig->memory : plan->memory / parts};
}

bool fake_context_alive(const fake_context *context)
{
    const fake_context *known = fake.contexts;
    while (known && known != context) {
        known = known->next;
    }
    return known != NULL;
}

fake_context *fake_context_new(unsigned ordinal, unsigned flags, bool primary)
{
    fake_context *context = fake_take(ordinal, CONTEXT_BYTES) ? calloc(1, sizeof *context) : NULL;
    if (!context) {
        return NULL;
    }
    context->next = fake.contexts;
    context->device = ordinal;
    context->flags = flags;
    context->primary = primary;
    context->legacy.context = context;
    pthread_cond_init(&context->legacy.wake, NULL);
    fake.contexts = context;
    fake_report_get()->contexts_created++;
    fake_report_get()->contexts_alive++;
    return context;
}

/* Destroys the remaining objects of the context. A correct program leaves none, unless the context has failed, because
 * CUDA does not release objects of a failed context. */
static void free_left(fake_context *context)
{
    unsigned left = 0;
    for (fake_stream *stream = fake.streams; stream;) {
        const bool ours = stream->context == context;
        if (ours) {
            fake_stream_free(stream);
            left++;
        }
        /* restart, because freeing a stream releases the lock and the list may have changed */
        stream = ours ? fake.streams : stream->next;
    }
    for (fake_region *region = fake.regions, *next; region; region = next) {
        next = region->next;
        if (region->context == context) {
            fake_region_free(region);
            left++;
        }
    }
    for (fake_event *event = fake.events, *next; event; event = next) {
        next = event->next;
        if (event->context == context) {
            fake_event_free(event);
            left++;
        }
    }
    fake_modules_free(context);
    fake_report_get()->left_behind += context->error ? 0 : left;
}

void fake_context_free(fake_context *context)
{
    free_left(context);
    fake_stream_finish(&context->legacy);
    pthread_cond_destroy(&context->legacy.wake);
    fake_context **at = &fake.contexts;
    while (*at != context) {
        at = &(*at)->next;
    }
    *at = context->next;
    fake_give(context->device, CONTEXT_BYTES);
    free(context);
    fake_report_get()->contexts_alive--;
}

/* Enables access in one direction: from the context to the other device's memory. */
fake_code fake_peer_enable(fake_context *context, unsigned peer)
{
    const unsigned bit = 1u << peer;
    if (!fake_script_peer(fake_script_get(), fake.devices[context->device].physical, fake.devices[peer].physical)) {
        return FAKE_ERROR_PEER_ACCESS_UNSUPPORTED;
    }
    const bool already = context->peers & bit;
    context->peers |= bit;
    return already ? FAKE_ERROR_PEER_ACCESS_ALREADY_ENABLED : FAKE_OK;
}

fake_code fake_peer_disable(fake_context *context, unsigned peer)
{
    const unsigned bit = 1u << peer;
    const bool enabled = context->peers & bit;
    context->peers &= ~bit;
    return enabled ? FAKE_OK : FAKE_ERROR_PEER_ACCESS_NOT_ENABLED;
}
