/* checks_indirect.c: launches that read their numbers of groups from memory. */
#include "kernel.h"
#include "load.h"

#include <stdlib.h>
#include <string.h>

enum { TRIPLE = 12 };

/* Fills the area with ones, except three numbers of groups at the offset, or only with ones if @p groups is NULL. */
static void put_numbers(gpuhal_area *area, uint64_t offset, const uint32_t *groups)
{
    const uint32_t one = 1;
    for (uint64_t i = 0; i + sizeof one <= area->bytes; i += sizeof one) {
        memcpy(area->expected + i, &one, sizeof one);
    }
    if (groups != NULL) {
        memcpy(area->expected + offset, groups, TRIPLE);
    }
    gpuhal_plain_put(area->opened, &area->memory, 0, area->expected, area->bytes, ROUTE_ANY);
}

/* Finds a kind of memory from which launches can read their groups. Returns false if there is none. */
static bool init_numbers(gpuhal_area *area, const gpuhal_context *context)
{
    const uint64_t kinds = gpuhal_device_fact(context, GPUHAL_FACT_KERNEL_KINDS, 0);
    for (gpuhal_memory_kind kind = GPUHAL_MEMORY_DEVICE; kind <= GPUHAL_MEMORY_DEVICE_MAPPED; kind++) {
        if (kinds >> kind & 1) {
            gpuhal_area_init(area, context, &context->opened, kind, gpuhal_round_up(256, gpuhal_copy_unit(context)));
            if ((area->memory.flags & GPUHAL_MEMORY_NO_INDIRECT) == 0) {
                return true;
            }
            gpuhal_area_finish(area);
        }
    }
    gpuhal_skip("no kind of memory can have a launch's groups (GPUHAL_MEMORY_NO_INDIRECT)");
    return false;
}

typedef struct indirect {
    gpuhal_given_kernel own;
    gpuhal_area numbers; /* the launches read their groups there */
    gpuhal_launch_form form;
    unsigned char *result;
} indirect;

/* Launches without groups, which must change nothing. */
static void expect_nothing(const indirect *self)
{
    gpuhal_area area;
    gpuhal_plugin_argument arguments[GIVEN_MAX];
    gpuhal_given_area(&self->own, &area, 1);
    gpuhal_given_arguments(&self->own, &area.memory, arguments);
    gpuhal_expect_ok(gpuhal_given_launch_as(&self->own, NULL, arguments, &self->form), "launch of no groups");
    gpuhal_area_verify(&area, (gpuhal_claim){.bytes = area.bytes}, ROUTE_ANY, "a launch whose memory says 0 groups");
    gpuhal_area_finish(&area);
}

static void expect_indirect_now(indirect *self)
{
    static const uint32_t none[3] = {0, 1, 1};
    const uint64_t offsets[] = {0, 20, self->numbers.bytes - TRIPLE};
    for (unsigned i = 0; i < 3; i++) {
        self->form.indirect_offset = offsets[i];
        put_numbers(&self->numbers, offsets[i], self->own.context->options->given.groups);
        gpuhal_given_expect_form(&self->own, &self->form, self->result, "a launch with its groups in memory");
    }
    put_numbers(&self->numbers, self->form.indirect_offset, none);
    expect_nothing(self);
    put_numbers(&self->numbers, self->form.indirect_offset, self->own.context->options->given.groups);
    gpuhal_launch_form other = self->form;
    if (gpuhal_given_has(&self->own, GPUHAL_KERNEL_GROUP_SIZE) && gpuhal_given_smaller(&self->own, other.group_size)) {
        gpuhal_launch_form plain = {.groups = {0}};
        memcpy(plain.group_size, other.group_size, sizeof plain.group_size);
        gpuhal_given_prepare(&self->own, plain.group_size);
        unsigned char *result = gpuhal_given_result_as(&self->own, 1, &plain);
        gpuhal_given_expect_form(&self->own, &other, result,
                                 "a launch with another group size and its groups in memory");
        free(result);
    }
}

/* The result of a try: the launch was refused; it returned before the work before it had ended, or afterwards; or that
 * work ended too early to show it. */
typedef enum outcome { REFUSED, PROMPT, LATE, UNKNOWN } outcome;

/* Slow work is followed by a copy of the numbers, the launch, and a copy that overwrites the numbers. */
static outcome enqueue_indirect(indirect *self, const gpuhal_load *slow, const gpuhal_area *source,
                                const gpuhal_area *ones, const gpuhal_memory *memory)
{
    gpuhal_status status;
    const gpuhal_work *work = &slow->work;
    gpuhal_plugin_argument arguments[GIVEN_MAX];
    gpuhal_plugin_event *before = gpuhal_work_event(work->opened, 0);
    gpuhal_given_arguments(&self->own, memory, arguments);
    gpuhal_load_enqueue(slow, work->queue);
    gpuhal_work_copy(work, work->queue, &self->numbers, 0, source, 0, source->bytes);
    gpuhal_work_record(work, work->queue, before);
    const unsigned full = gpuhal_work_times_full();
    const bool lasts = work->slots->queues.event_query(before) != GPUHAL_OK;
    while (gpuhal_work_full(work, work->queue,
                            status = gpuhal_given_launch_as(&self->own, work->queue, arguments, &self->form))) {
    }
    const bool is_busy = work->slots->queues.event_query(before) != GPUHAL_OK;
    const bool waited = full != gpuhal_work_times_full(); /* because the queue was full */
    gpuhal_work_copy(work, work->queue, &self->numbers, 0, ones, 0, ones->bytes);
    gpuhal_work_record(work, work->queue, work->event);
    gpuhal_work_await(work, work->event);
    work->slots->queues.event_destroy(before);
    gpuhal_expect_ok(status == GPUHAL_ERROR_NOT_SUPPORTED ? GPUHAL_OK : status, "launch with its groups in memory");
    return status != GPUHAL_OK ? REFUSED : is_busy ? PROMPT : lasts && !waited ? LATE : UNKNOWN;
}

static void expect_indirect_in_order(indirect *self)
{
    enum { TRIES = 5, LATE_MIN = 3 };
    gpuhal_load slow;
    gpuhal_area source, ones, area;
    unsigned late = 0;
    const gpuhal_context *context = self->own.context;
    const uint32_t *groups = self->own.context->options->given.groups;
    const uint64_t short_ns = 40000000;
    gpuhal_load_init(&slow, context, 0, short_ns);
    gpuhal_area_init(&source, context, &context->opened, GPUHAL_MEMORY_DEVICE, self->numbers.bytes);
    gpuhal_area_init(&ones, context, &context->opened, GPUHAL_MEMORY_DEVICE, self->numbers.bytes);
    gpuhal_given_area(&self->own, &area, 1);
    self->form.indirect_offset = 20;
    put_numbers(&source, self->form.indirect_offset, groups);
    put_numbers(&ones, 0, NULL);
    outcome got = UNKNOWN;
    for (unsigned t = 0; t < TRIES && (got == LATE || got == UNKNOWN); t++) {
        put_numbers(&self->numbers, 0, NULL);
        gpuhal_area_reset(&area, 1, ROUTE_ANY);
        got = enqueue_indirect(self, &slow, &source, &ones, &area.memory);
        late += got == LATE;
        if (got != REFUSED) {
            gpuhal_given_expect(&area, self->result,
                                "a launch whose groups a copy wrote before it, and another copy overwrote behind it");
        }
        got = slow.lasts || got == REFUSED ? got : PROMPT; /* one try suffices */
    }
    if (got == REFUSED) {
        gpuhal_note("the device launches with groups in memory without a queue only");
    }
    if (got != PROMPT && late >= LATE_MIN) {
        gpuhal_fail_late(37,
                         "launch with its groups in memory returned when the work before it had ended, in %u of %d "
                         "tries: it waits for the device",
                         late, TRIES);
    }
    gpuhal_area_finish(&area);
    gpuhal_area_finish(&ones);
    gpuhal_area_finish(&source);
    gpuhal_load_finish(&slow);
}

void gpuhal_check_launch_indirect(gpuhal_context *context)
{
    indirect self;
    if (!gpuhal_given_offered(context)) {
        return;
    }
    gpuhal_given_init(&self.own, context);
    if (!gpuhal_given_has(&self.own, GPUHAL_KERNEL_INDIRECT)) {
        gpuhal_skip("the kernel has no groups in memory (flags of gpuhal_kernel_info)");
    } else if (init_numbers(&self.numbers, context)) {
        const uint32_t *groups = context->options->given.groups;
        if (groups[0] == 1 && groups[1] == 1 && groups[2] == 1) {
            gpuhal_note("the kernel was given with one group, so other numbers in memory were not tested (--groups)");
        }
        self.form = (gpuhal_launch_form){.indirect = &self.numbers.memory};
        self.result = gpuhal_given_result(&self.own, 1);
        expect_indirect_now(&self);
        if (context->opened.slots.queues.queue_create != NULL) {
            expect_indirect_in_order(&self);
        }
        free(self.result);
        gpuhal_area_finish(&self.numbers);
    }
    gpuhal_given_finish(&self.own);
}
