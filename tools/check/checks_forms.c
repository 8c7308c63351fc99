/* checks_forms.c: launches of other forms than the given one: other group sizes, numbers of threads, offsets, and no
 * buffer. Each form is tested if the kernel has the flag for it.
 *
 * The expected bytes come from plain launches. If plain launches do not show the result of a form, because the kernel's
 * result depends on its groups, a note says so. */
#include "kernel.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const gpuhal_given *given_of(const gpuhal_given_kernel *own)
{
    return &own->context->options->given;
}

static bool is_equal(const gpuhal_given_kernel *own, const unsigned char *one, const unsigned char *other)
{
    return memcmp(one, other, (size_t)own->bytes) == 0;
}

/* ---- other group sizes */

enum { SIZES_MAX = 2, THREADS = 4, THREAD_ROUNDS = 3 };

/* A group size, and the result of a kernel that was created with it. */
typedef struct other_size {
    gpuhal_launch_form form;
    unsigned char *result;
} other_size;

typedef struct other_sizes {
    other_size list[SIZES_MAX];
    unsigned count;
} other_sizes;

static bool fits(const gpuhal_given_kernel *own, const uint32_t size[3])
{
    const uint64_t all = (uint64_t)size[0] * size[1] * size[2];
    bool good = (own->info.group_size_max == 0 || all <= own->info.group_size_max) &&
                all <= gpuhal_device_fact(own->context, GPUHAL_FACT_GROUP_SIZE_MAX, UINT32_MAX);
    for (unsigned d = 0; d < 3; d++) {
        good = good && size[d] <= gpuhal_device_fact(own->context, GPUHAL_FACT_GROUP_SIZE_MAX_X + d, UINT32_MAX);
    }
    return good;
}

static void add_size(const gpuhal_given_kernel *own, const gpuhal_launch_form *form, other_sizes *sizes)
{
    gpuhal_given_kernel other;
    const gpuhal_status status = gpuhal_given_resize(own, form->group_size, &other);
    if (status == GPUHAL_ERROR_TOO_LARGE) {
        return;
    }
    if (status != GPUHAL_OK) {
        gpuhal_fail_by(46,
                       "the kernel has the flag GPUHAL_KERNEL_GROUP_SIZE, and kernel_create returned %s for a group of "
                       "%" PRIu32 " x %" PRIu32 " x %" PRIu32 " threads",
                       gpuhal_status_text(status), form->group_size[0], form->group_size[1], form->group_size[2]);
    }
    other_size *added = &sizes->list[sizes->count];
    const gpuhal_launch_form plain = {.groups = {form->groups[0], form->groups[1], form->groups[2]}};
    added->form = *form;
    added->result = gpuhal_given_result_as(&other, 1, &plain);
    unsigned char *again = gpuhal_given_result_as(&other, 1, &plain);
    if (is_equal(own, added->result, again)) {
        sizes->count++;
    } else {
        gpuhal_note("groups of %" PRIu32 " x %" PRIu32 " x %" PRIu32 " threads were not compared: the results of a "
                    "kernel with this size differ",
                    form->group_size[0], form->group_size[1], form->group_size[2]);
        free(added->result);
    }
    free(again);
    gpuhal_given_destroy(&other);
}

/* Finds a smaller size, and a larger one with fewer groups, so that the launches use no more of the buffers. */
static other_sizes find_sizes(const gpuhal_given_kernel *own)
{
    other_sizes sizes = {.count = 0};
    gpuhal_launch_form form = {.group_size = {0}};
    memcpy(form.groups, given_of(own)->groups, sizeof form.groups);
    if (gpuhal_given_smaller(own, form.group_size)) {
        add_size(own, &form, &sizes);
    }
    memcpy(form.group_size, own->info.group_size, sizeof form.group_size);
    form.group_size[0] *= 2;
    form.groups[0] /= 2;
    if (form.groups[0] > 0 && fits(own, form.group_size)) {
        add_size(own, &form, &sizes);
    }
    return sizes;
}

static void free_sizes(other_sizes *sizes)
{
    for (unsigned s = 0; s < sizes->count; s++) {
        free(sizes->list[s].result);
    }
}

static void expect_sizes(const gpuhal_given_kernel *own, const other_sizes *sizes)
{
    unsigned char *plain = gpuhal_given_result(own, 1);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned s = 0; s < sizes->count; s++) {
            gpuhal_given_prepare(own, sizes->list[s].form.group_size);
        }
    }
    for (unsigned s = 0; s < sizes->count; s++) {
        gpuhal_launch_form own_size = {.groups = {0}};
        memcpy(own_size.groups, sizes->list[s].form.groups, sizeof own_size.groups);
        unsigned char *as_own = gpuhal_given_result_as(own, 1, &own_size);
        if (is_equal(own, as_own, sizes->list[s].result)) {
            gpuhal_note("the kernel gives the same bytes with groups of %" PRIu32 " x %" PRIu32 " x %" PRIu32
                        " threads as with its own: wrong sizes cannot be judged",
                        sizes->list[s].form.group_size[0], sizes->list[s].form.group_size[1],
                        sizes->list[s].form.group_size[2]);
        }
        free(as_own);
        gpuhal_given_expect_form(own, &sizes->list[s].form, sizes->list[s].result, "a launch with another group size");
    }
    gpuhal_given_expect_form(own, NULL, plain, "a launch with the kernel's own group size, after other sizes");
    free(plain);
}

typedef struct worker {
    const gpuhal_given_kernel *own;
    const other_size *size;
    pthread_barrier_t *together;
    pthread_t thread;
} worker;

static void *prepare_at_once(void *user)
{
    const worker *self = user;
    pthread_barrier_wait(self->together);
    gpuhal_given_prepare(self->own, self->size->form.group_size);
    gpuhal_given_expect_form(self->own, &self->size->form, self->size->result,
                             "one of 4 threads launching with other group sizes at once");
    return NULL;
}

/* Two threads have one size, and two the other one. Each round has a new kernel, of which no size is prepared. */
static void expect_sizes_at_once(const gpuhal_given_kernel *own, const other_sizes *sizes)
{
    pthread_barrier_t together;
    worker workers[THREADS];
    pthread_barrier_init(&together, NULL, THREADS);
    for (unsigned round = 0; round < THREAD_ROUNDS; round++) {
        gpuhal_given_kernel fresh;
        gpuhal_expect_ok(gpuhal_given_resize(own, own->info.group_size, &fresh), "kernel_create");
        for (unsigned t = 0; t < THREADS; t++) {
            workers[t] = (worker){.own = &fresh, .size = &sizes->list[t % sizes->count], .together = &together};
            if (pthread_create(&workers[t].thread, NULL, prepare_at_once, &workers[t]) != 0) {
                gpuhal_fail_with("Allow more threads.", "gpuhal-check cannot make a thread");
            }
        }
        for (unsigned t = 0; t < THREADS; t++) {
            pthread_join(workers[t].thread, NULL);
        }
        gpuhal_given_destroy(&fresh);
    }
    pthread_barrier_destroy(&together);
}

void gpuhal_check_launch_sizes(gpuhal_context *context)
{
    gpuhal_given_kernel own;
    if (!gpuhal_given_offered(context)) {
        return;
    }
    gpuhal_given_init(&own, context);
    if (gpuhal_given_has(&own, GPUHAL_KERNEL_GROUP_SIZE)) {
        other_sizes sizes = find_sizes(&own);
        expect_sizes(&own, &sizes);
        gpuhal_rule(24);
        if (sizes.count > 0) {
            expect_sizes_at_once(&own, &sizes);
        } else {
            gpuhal_skip("no other group size of the kernel can be compared");
        }
        free_sizes(&sizes);
    } else {
        gpuhal_skip("the kernel has one group size (flags of gpuhal_kernel_info)");
    }
    gpuhal_given_finish(&own);
}

/* ---- threads and offsets */

/* A kernel whose plain launches show the result of each range of its groups in one dimension. */
typedef struct ruler {
    const gpuhal_given_kernel *own;
    unsigned dimension;
    unsigned char *before, *all; /* the bytes before and after a launch of all groups */
} ruler;

static unsigned char *first_groups(const ruler *by, uint32_t count)
{
    gpuhal_launch_form form = {.groups = {0}};
    memcpy(form.groups, given_of(by->own)->groups, sizeof form.groups);
    form.groups[by->dimension] = count;
    return count > 0 ? gpuhal_given_result_as(by->own, 1, &form) : NULL;
}

static void ruler_init(ruler *by, const gpuhal_given_kernel *own, unsigned dimension, uint32_t groups)
{
    gpuhal_area area;
    *by = (ruler){.own = own, .dimension = dimension};
    gpuhal_given_area(own, &area, 1);
    by->before = gpuhal_own(malloc((size_t)own->bytes));
    memcpy(by->before, area.expected, (size_t)own->bytes);
    by->all = first_groups(by, groups);
    gpuhal_area_finish(&area);
}

static void ruler_finish(ruler *by)
{
    free(by->all);
    free(by->before);
}

/* Returns the bytes after a launch of the groups from @p begin to @p end - 1 alone: those that the first @p end groups
 * change and the first @p begin groups do not. Returns NULL if this cannot be seen, because a group changes bytes that
 * other groups have changed, or because fewer groups change the same bytes. */
static unsigned char *between(const ruler *by, uint32_t begin, uint32_t end)
{
    unsigned char *less = first_groups(by, begin), *more = first_groups(by, end);
    bool apart = less == NULL || !is_equal(by->own, less, more);
    for (uint64_t i = 0; i < by->own->bytes && less != NULL; i++) {
        apart = apart && (less[i] == by->before[i] || less[i] == more[i]);
        more[i] = less[i] == more[i] ? by->before[i] : more[i];
    }
    free(less);
    if (!apart) {
        free(more);
    }
    return apart ? more : NULL;
}

/* Launches a form that has the result of these groups of the ruler. */
static void expect_between(const gpuhal_given_kernel *own, const ruler *by, uint32_t begin, uint32_t end,
                           const gpuhal_launch_form *form, const char *what)
{
    unsigned char *result = between(by, begin, end);
    if (result == NULL) {
        gpuhal_note("not compared, because plain launches do not show which bytes each group changes: %s", what);
        return;
    }
    gpuhal_given_expect_form(own, form, result, what);
    free(result);
}

static void expect_offsets(const gpuhal_given_kernel *own, unsigned d)
{
    ruler by;
    const uint32_t *groups = given_of(own)->groups;
    gpuhal_launch_form form = {.groups = {groups[0], groups[1], groups[2]}};
    if (groups[d] < 2) {
        return;
    }
    ruler_init(&by, own, d, groups[d]);
    form.offset[d] = 1;
    form.groups[d] = groups[d] - 1;
    expect_between(own, &by, 1, groups[d], &form, "a launch of all groups but the first");
    if (groups[d] > 2) {
        form.offset[d] = groups[d] - 2;
        form.groups[d] = 1;
        expect_between(own, &by, groups[d] - 2, groups[d] - 1, &form, "a launch of the last group but one");
    }
    ruler_finish(&by);
}

/* The ruler has groups of one thread. It serves if the kernel has the same result for all sizes of its groups. */
static void expect_threads(const gpuhal_given_kernel *own, unsigned d)
{
    ruler by;
    gpuhal_given_kernel single;
    const uint32_t *groups = given_of(own)->groups, size = own->info.group_size[d];
    gpuhal_launch_form form = {.groups = {groups[0], groups[1], groups[2]}};
    uint32_t one[3] = {own->info.group_size[0], own->info.group_size[1], own->info.group_size[2]};
    one[d] = 1;
    if (size == 1) {
        return;
    }
    if (gpuhal_given_resize(own, one, &single) != GPUHAL_OK) {
        gpuhal_note("numbers of threads were not compared: kernel_create refuses groups of one thread");
        return;
    }
    ruler_init(&by, &single, d, groups[d] * size);
    unsigned char *plain = gpuhal_given_result(own, 1);
    if (is_equal(own, plain, by.all)) {
        form.fewer[d] = 1;
        expect_between(own, &by, 0, groups[d] * size - 1, &form, "a launch whose last group lacks one thread");
        form.fewer[d] = size - 1;
        expect_between(own, &by, 0, (groups[d] - 1) * size + 1, &form, "a launch whose last group has one thread");
        form.groups[d] = 1;
        expect_between(own, &by, 0, 1, &form, "a launch of one thread");
    } else {
        gpuhal_note("numbers of threads were not compared: the kernel's result depends on the size of its groups");
    }
    if (is_equal(own, plain, by.all) && groups[d] > 1 && gpuhal_given_has(own, GPUHAL_KERNEL_OFFSET)) {
        form.groups[d] = groups[d] - 1;
        form.offset[d] = 1;
        expect_between(own, &by, size, (groups[d] - 1) * size + 1, &form,
                       "a launch of all groups but the first, whose last group has one thread");
    }
    free(plain);
    ruler_finish(&by);
    gpuhal_given_destroy(&single);
}

/* ---- no buffer */

/* Launches with all buffers, and then without the optional ones. In round 0 these have zeros, in each later round other
 * bytes. Returns the bytes of the other buffers after the launch without them. */
static unsigned char *launch_without(const gpuhal_given_kernel *own, gpuhal_area *area, unsigned round, bool *out_same)
{
    unsigned char *with = gpuhal_own(malloc((size_t)own->bytes)), *without = gpuhal_own(malloc((size_t)own->bytes));
    const gpuhal_launch_form forms[] = {{.without_optional = false}, {.without_optional = true}};
    gpuhal_plugin_argument arguments[GIVEN_MAX];
    gpuhal_given_arguments(own, &area->memory, arguments);
    for (unsigned f = 0; f < 2; f++) {
        gpuhal_area_reset(area, 1, ROUTE_ANY);
        for (uint32_t p = 0; p < own->parameter_count; p++) {
            if ((own->parameters[p].parameter.flags & GPUHAL_PARAMETER_OPTIONAL) != 0) {
                memset(area->expected + own->offsets[p], (int)round * 0x35, (size_t)own->parameters[p].bytes);
            }
        }
        gpuhal_plain_put(area->opened, &area->memory, 0, area->expected, area->bytes, ROUTE_ANY);
        gpuhal_expect_ok(gpuhal_given_launch_as(own, NULL, arguments, &forms[f]),
                         f == 0 ? "launch" : "launch without an optional buffer");
        gpuhal_plain_get(area->opened, &area->memory, 0, f == 0 ? with : without, area->bytes, ROUTE_ANY);
    }
    *out_same = true;
    for (uint32_t p = 0; p < own->parameter_count; p++) {
        const bool is_optional = (own->parameters[p].parameter.flags & GPUHAL_PARAMETER_OPTIONAL) != 0;
        unsigned char *bytes = without + own->offsets[p];
        if (own->parameters[p].parameter.kind == GPUHAL_PARAMETER_BUFFER && !is_optional) {
            *out_same = *out_same && memcmp(with + own->offsets[p], bytes, (size_t)own->parameters[p].bytes) == 0;
        } else if (is_optional &&
                   memcmp(area->expected + own->offsets[p], bytes, (size_t)own->parameters[p].bytes) != 0) {
            gpuhal_fail("a launch without an optional buffer changed the buffer of the launch before");
        } else if (is_optional) {
            memset(bytes, 0, (size_t)own->parameters[p].bytes);
        }
    }
    free(with);
    return without;
}

static void expect_no_buffer(const gpuhal_given_kernel *own)
{
    enum { ROUNDS = 3 };
    gpuhal_area area;
    unsigned char *results[ROUNDS];
    bool same[ROUNDS];
    gpuhal_given_area(own, &area, 1);
    for (unsigned round = 0; round < ROUNDS; round++) {
        results[round] = launch_without(own, &area, round, &same[round]);
        if (!is_equal(own, results[0], results[round])) {
            gpuhal_fail("launches without an optional buffer gave other bytes after launches with other buffers");
        }
    }
    if (same[0]) {
        gpuhal_note("the kernel gives the same bytes without an optional buffer and with zeros in it");
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        free(results[round]);
    }
    gpuhal_area_finish(&area);
}

void gpuhal_check_launch_forms(gpuhal_context *context)
{
    gpuhal_given_kernel own;
    const uint32_t forms = GPUHAL_KERNEL_THREADS | GPUHAL_KERNEL_OFFSET | GPUHAL_KERNEL_NULL_BUFFERS;
    if (!gpuhal_given_offered(context)) {
        return;
    }
    gpuhal_given_init(&own, context);
    for (unsigned d = 0; d < 3; d++) {
        if (gpuhal_given_has(&own, GPUHAL_KERNEL_OFFSET)) {
            expect_offsets(&own, d);
        }
        if (gpuhal_given_has(&own, GPUHAL_KERNEL_THREADS)) {
            expect_threads(&own, d);
        }
    }
    if (gpuhal_given_has(&own, GPUHAL_KERNEL_NULL_BUFFERS) && gpuhal_given_has_optional(&own)) {
        expect_no_buffer(&own);
    } else if (gpuhal_given_has(&own, GPUHAL_KERNEL_NULL_BUFFERS)) {
        gpuhal_note("launches without a buffer were not tested: no parameter is optional (r? in --parameters)");
    }
    if (!gpuhal_given_has(&own, forms)) {
        gpuhal_skip("the kernel has no numbers of threads, offsets and missing buffers (flags of gpuhal_kernel_info)");
    }
    gpuhal_given_finish(&own);
}
