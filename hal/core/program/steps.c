/* program/steps.c: a recording's list of steps. */
#include "program/recording.h"

#include "base/error.h"
#include "memory/buffer.h"

#include <stdlib.h>
#include <string.h>

gpuhal_steps *gpuhal_steps_create(uint32_t space)
{
    gpuhal_steps *steps = calloc(1, sizeof *steps);
    if (steps) {
        atomic_init(&steps->references, 1);
        steps->ops = calloc(space ? space : 1, sizeof *steps->ops);
    }
    if (steps && !steps->ops) {
        free(steps);
        return NULL;
    }
    return steps;
}

bool gpuhal_steps_unreference(gpuhal_steps *steps)
{
    return atomic_fetch_sub_explicit(&steps->references, 1, memory_order_acq_rel) == 1;
}

void gpuhal_steps_free(gpuhal_steps *steps)
{
    for (uint32_t i = 0; i < steps->count; i++) {
        gpuhal_recorded_launch_release(gpuhal_step_launch(&steps->ops[i]));
    }
    free(steps->ops);
    free(steps->uses);
    free(steps);
}

void gpuhal_steps_release(gpuhal_steps *steps)
{
    if (steps && gpuhal_steps_unreference(steps)) {
        gpuhal_steps_free(steps);
    }
}

/* Gives the list a launch of its own. Returns false if out of memory. */
static bool own_launch(gpuhal_op *step)
{
    gpuhal_recorded_launch *shared = gpuhal_step_launch(step);
    if (atomic_load(&shared->references) == 1) {
        return true;
    }
    gpuhal_recorded_launch *own = gpuhal_recorded_launch_create(shared->record.uses.kernel, &shared->given);
    if (own) {
        step->uses = &own->record.uses;
        gpuhal_recorded_launch_release(shared);
    }
    return own != NULL;
}

static gpuhal_steps *copy_list(const gpuhal_steps *from)
{
    gpuhal_steps *steps = gpuhal_steps_create(from->count);
    if (!steps) {
        return NULL;
    }
    steps->uses = malloc((from->use_count + 1u) * sizeof *steps->uses);
    if (!steps->uses) {
        gpuhal_steps_release(steps);
        return NULL;
    }
    memcpy(steps->ops, from->ops, from->count * sizeof *from->ops);
    memcpy(steps->uses, from->uses, from->use_count * sizeof *from->uses);
    steps->count = from->count;
    steps->use_count = from->use_count;
    steps->has_parts = from->has_parts;
    atomic_init(&steps->launched, atomic_load(&from->launched));
    for (uint32_t i = 0; i < steps->count; i++) {
        gpuhal_recorded_launch *launch = gpuhal_step_launch(&steps->ops[i]);
        if (launch) {
            atomic_fetch_add_explicit(&launch->references, 1, memory_order_relaxed);
        }
    }
    return steps;
}

gpuhal_steps *gpuhal_steps_copy(const gpuhal_recording *recording, const gpuhal_slot_value *values, uint32_t count)
{
    gpuhal_steps *steps = copy_list(recording->steps);
    bool complete = steps != NULL;
    for (uint32_t i = 0; i < count && complete; i++) {
        const gpuhal_slot *slot = &recording->slots[values[i].slot];
        for (uint32_t k = 0; k < slot->place_count && complete; k++) {
            complete = own_launch(&steps->ops[slot->places[k].step]);
        }
    }
    if (steps && !complete) {
        gpuhal_steps_release(steps);
        return NULL;
    }
    return steps;
}

bool gpuhal_steps_share(const gpuhal_steps *steps, const gpuhal_slot *slot)
{
    for (uint32_t k = 0; k < slot->place_count; k++) {
        if (atomic_load(&gpuhal_step_launch(&steps->ops[slot->places[k].step])->references) > 1) {
            return true;
        }
    }
    return false;
}

void gpuhal_steps_set(gpuhal_steps *steps, const gpuhal_slot *slot, const gpuhal_argument *argument,
                      const uint32_t groups[3])
{
    for (uint32_t k = 0; k < slot->place_count; k++) {
        gpuhal_recorded_launch *launch = gpuhal_step_launch(&steps->ops[slot->places[k].step]);
        if (slot->kind == GPUHAL_SLOT_OF_GROUPS) {
            gpuhal_recorded_launch_set_groups(launch, groups);
        } else {
            gpuhal_recorded_launch_set_argument(launch, slot->places[k].argument, argument);
        }
    }
    if (slot->kind == GPUHAL_SLOT_BUFFER) {
        steps->uses[slot->use].buffer = argument->buffer->whole;
        steps->has_parts = steps->has_parts || argument->buffer->is_part;
    } else if (slot->kind == GPUHAL_SLOT_OF_GROUPS) {
        atomic_store(&steps->launched, false);
    }
}

bool gpuhal_steps_may_compile(gpuhal_steps *steps)
{
    bool may = false;
    for (uint32_t i = 0; i < steps->count && !may && !atomic_load(&steps->launched); i++) {
        const gpuhal_recorded_launch *launch = gpuhal_step_launch(&steps->ops[i]);
        may = launch && !gpuhal_step_does_nothing(&steps->ops[i]) &&
              gpuhal_launch_is_first(launch->record.uses.kernel, &launch->record.launch);
    }
    return may;
}

/* ---- the buffers */

static int by_address(const void *one, const void *other)
{
    const struct gpuhal_use *a = one, *b = other;
    return (a->buffer > b->buffer) - (a->buffer < b->buffer);
}

/* Lists the buffers that no slot changes. Returns their number, with duplicates. With a NULL list only counts. */
static size_t list_fixed(const gpuhal_steps *steps, struct gpuhal_use *out)
{
    size_t count = 0;
    for (uint32_t i = 0; i < steps->count; i++) {
        const gpuhal_op *step = &steps->ops[i];
        const gpuhal_recorded_launch *launch = gpuhal_step_launch(step);
        struct gpuhal_use found[2] = {{step->to, true}, {step->from, false}};
        for (int k = 0; k < 2; k++) {
            if (found[k].buffer) {
                out ? (void)(out[count] = found[k]) : (void)0;
                count++;
            }
        }
        for (uint32_t k = 0; launch && k < launch->given.argument_count; k++) {
            const gpuhal_buffer *buffer = launch->given_arguments[k].buffer;
            if (buffer && launch->argument_slots[k] == 0) {
                const bool writes = launch->record.uses.kernel->parameters[k].access & GPUHAL_ACCESS_WRITE;
                out ? (void)(out[count] = (struct gpuhal_use){buffer->whole, writes}) : (void)0;
                count++;
            }
        }
        for (uint32_t k = 0; launch && k < launch->given.uses_count; k++) {
            gpuhal_buffer *whole = launch->given.uses[k]->whole;
            out ? (void)(out[count] = (struct gpuhal_use){whole, !whole->read_only}) : (void)0;
            count++;
        }
        if (launch && launch->given.groups_buffer) {
            out ? (void)(out[count] = (struct gpuhal_use){launch->given.groups_buffer->whole, false}) : (void)0;
            count++;
        }
    }
    return count;
}

static uint32_t merge(struct gpuhal_use *uses, size_t count)
{
    uint32_t merged = 0;
    qsort(uses, count, sizeof *uses, by_address);
    for (size_t i = 0; i < count; i++) {
        if (merged > 0 && uses[merged - 1].buffer == uses[i].buffer) {
            uses[merged - 1].writes = uses[merged - 1].writes || uses[i].writes;
        } else {
            uses[merged++] = uses[i];
        }
    }
    return merged;
}

static bool have_parts(const gpuhal_recording *recording)
{
    bool parts = false;
    for (uint32_t i = 0; i < recording->kept_count; i++) {
        parts = parts || (recording->kept[i] && recording->kept[i]->is_part);
    }
    for (uint32_t i = 0; i < recording->steps->count; i++) {
        const gpuhal_recorded_launch *launch = gpuhal_step_launch(&recording->steps->ops[i]);
        parts = parts || (launch && launch->record.uses_parts);
    }
    return parts;
}

gpuhal_status gpuhal_steps_list_uses(gpuhal_recording *recording)
{
    gpuhal_steps *steps = recording->steps;
    const size_t fixed = list_fixed(steps, NULL);
    struct gpuhal_use *uses = malloc((fixed + recording->slot_count + 1) * sizeof *uses);
    if (!uses) {
        return gpuhal_error_host_memory();
    }
    (void)list_fixed(steps, uses);
    uint32_t count = merge(uses, fixed);
    for (uint32_t i = 0; i < recording->slot_count; i++) {
        gpuhal_slot *slot = &recording->slots[i];
        if (slot->kind == GPUHAL_SLOT_BUFFER) {
            slot->use = count;
            uses[count++] = (struct gpuhal_use){slot->argument.buffer->whole, slot->writes};
        }
    }
    struct gpuhal_use *fitting = realloc(uses, (count + 1u) * sizeof *uses);
    free(steps->uses); /* of an earlier attempt to finish */
    steps->uses = fitting ? fitting : uses;
    steps->use_count = count;
    steps->has_parts = have_parts(recording);
    return GPUHAL_OK;
}
