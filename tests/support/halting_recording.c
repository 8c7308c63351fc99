/* tests/support/halting_recording.c: recordings of the plugin in halting.h. A recording has copies of its steps, and a
 * run executes them. */
#include "support/halting.h"

#include <stdlib.h>
#include <string.h>

typedef struct step {
    gpuhal_plugin_step given;
    gpuhal_plugin_launch launch;
    gpuhal_plugin_argument arguments[2];
    uint32_t value;
} step;

struct gpuhal_plugin_recording {
    gpuhal_plugin_device *device;
    uint32_t count;
    step steps[GPUHAL_PLUGIN_STEPS_MAX];
};

static gpuhal_ops slots; /* for executing the steps */

static void keep(step *own, const gpuhal_plugin_step *given)
{
    own->given = *given;
    if (given->kind != GPUHAL_STEP_LAUNCH) {
        return;
    }
    own->launch = *given->launch;
    own->launch.arguments = own->arguments;
    own->given.launch = &own->launch;
    memcpy(own->arguments, given->launch->arguments, given->launch->argument_count * sizeof *own->arguments);
    if (own->launch.argument_count > 1) {
        memcpy(&own->value, own->arguments[1].value, sizeof own->value);
        own->arguments[1].value = &own->value;
    }
}

static gpuhal_status create(gpuhal_plugin_device *device, const gpuhal_plugin_step *steps, uint32_t count,
                            gpuhal_plugin_recording **out_recording)
{
    gpuhal_halting_pass("recording_create");
    const gpuhal_status says = gpuhal_halting.prepare_says;
    if (says && gpuhal_halting.prepare_room-- == 0) {
        gpuhal_halting.prepare_room = 0;
        return says;
    }
    gpuhal_plugin_recording *recording = calloc(1, sizeof *recording);
    if (!recording) {
        return GPUHAL_ERROR_HOST_MEMORY;
    }
    recording->device = device;
    recording->count = count;
    for (uint32_t i = 0; i < count; i++) {
        keep(&recording->steps[i], &steps[i]);
    }
    gpuhal_halting.recordings++;
    *out_recording = recording;
    return GPUHAL_OK;
}

static gpuhal_status set(gpuhal_plugin_recording *recording, const gpuhal_plugin_step *steps, uint32_t count)
{
    gpuhal_halting_pass("recording_set");
    for (uint32_t i = 0; i < count; i++) {
        if (gpuhal_halting.set_says && i == count / 2) { /* some steps have changed */
            return gpuhal_halting.set_says;
        }
        keep(&recording->steps[steps[i].index], &steps[i]);
        gpuhal_halting.steps_set++;
    }
    return GPUHAL_OK;
}

static gpuhal_status run_step(gpuhal_plugin_queue *queue, const gpuhal_plugin_recording *recording,
                              const gpuhal_plugin_step *given)
{
    return given->kind == GPUHAL_STEP_LAUNCH ? slots.programs->launch(queue, given->kernel, given->launch)
           : given->kind == GPUHAL_STEP_COPY
               ? slots.copy(recording->device, queue, given->to, given->to_offset, given->from, given->from_offset,
                            given->bytes)
               : slots.fill(recording->device, queue, given->to, given->to_offset, given->bytes, given->pattern,
                            given->pattern_bytes);
}

static gpuhal_status run(gpuhal_plugin_queue *queue, gpuhal_plugin_recording *recording)
{
    gpuhal_halting_pass("recording_run");
    const gpuhal_status says = gpuhal_halting.run_says;
    if (says && gpuhal_halting.run_room-- == 0) {
        gpuhal_halting.run_room = 0;
        return says;
    }
    gpuhal_status status = GPUHAL_OK;
    for (uint32_t i = 0; i < recording->count && !status; i++) {
        status = run_step(queue, recording, &recording->steps[i].given);
    }
    gpuhal_halting.recording_runs++;
    return status;
}

static void destroy(gpuhal_plugin_recording *recording)
{
    gpuhal_halting_pass("recording_destroy");
    gpuhal_halting.recordings--;
    free(recording);
}

void gpuhal_halting_describe_recordings(gpuhal_ops *ops)
{
    static const gpuhal_recording_ops recordings = {.size = sizeof recordings,
                                                    .version = GPUHAL_RECORDINGS_VERSION,
                                                    .recording_create = create,
                                                    .recording_set = set,
                                                    .recording_run = run,
                                                    .recording_destroy = destroy};
    slots = *ops;
    ops->recordings = gpuhal_halting.prepares ? &recordings : NULL;
}
