/* Random calls on a pool of a few equal blocks, compared with a model that knows the queues whose work each block waits
 * for. A block must not be allocated while a buffer uses it. A block must also not be allocated to a queue that is not
 * ordered after the work of all other queues on the block. A request must not be refused while a block is available for
 * it. */
#include "pool_support.h"
#include "support/trace_file.h"

enum { BLOCKS = 12, QUEUES = 5, STEPS = 6000, NO_QUEUE = QUEUES, GONE_QUEUE };

typedef struct block {
    uint64_t address; /* 0 if the block was not allocated yet */
    gpuhal_buffer *buffer;
    uint64_t bytes;
    int home;              /* the queue of the block's release, or of its allocation */
    uint32_t uses, behind; /* one bit per queue: used the block; had unfinished work on it at its release */
} block;

typedef struct model {
    gpuhal *gpu;
    gpuhal_pool *pool;
    gpuhal_queue *queues[QUEUES + 1];
    gpuhal_event *gates[QUEUES]; /* NULL if the queue is idle */
    block blocks[BLOCKS];
    uint64_t in[3], out[3], peak[3]; /* bytes used, bytes requested, buffers */
    uint32_t random;
    bool traced;
} model;

static uint32_t pick(model *m, uint32_t below)
{
    m->random = m->random * 1103515245u + 12345u;
    return (m->random >> 8) % below;
}

static uint32_t busy(const model *m)
{
    uint32_t bits = 0;
    for (int i = 0; i < QUEUES; i++) {
        bits |= m->gates[i] ? 1u << i : 0;
    }
    return bits;
}

static void count(model *m, const block *at, bool takes)
{
    const uint64_t each[3] = {UNIT, at->bytes, 1};
    for (int i = 0; i < 3; i++) {
        *(takes ? &m->in[i] : &m->out[i]) += each[i];
        m->peak[i] = m->in[i] - m->out[i] > m->peak[i] ? m->in[i] - m->out[i] : m->peak[i];
    }
}

/* Counts the free blocks that the queue can certainly use. */
static int sure_count(const model *m, int queue)
{
    int free = BLOCKS;
    for (const block *at = m->blocks; at < m->blocks + BLOCKS; at++) {
        const uint32_t others = at->behind & ~(at->home == queue ? 1u << queue : 0);
        const bool behind_home = at->home < QUEUES && at->home != queue && m->gates[at->home];
        free -= at->buffer || (at->address && (others || behind_home));
    }
    return free;
}

static block *block_at(model *m, uint64_t address)
{
    for (block *at = m->blocks; at < m->blocks + BLOCKS; at++) {
        if (at->address == address || at->address == 0) {
            at->address = address;
            return at;
        }
    }
    fail_msg("more blocks than the limit has");
    return NULL;
}

static void allocate(model *m)
{
    const int queue = (int)pick(m, QUEUES + 1);
    const uint64_t bytes = 1 + 100 * (uint64_t)pick(m, 3);
    const bool sure = sure_count(m, queue) > 0;
    gpuhal_buffer *buffer = NULL;
    /* The worker of a destroyed queue may not have ended yet. */
    const gpuhal_status status =
        gpuhal_pool_allocate(m->pool, m->queues[queue], bytes, 0, sure ? PATIENCE_NS : 0, &buffer);
    if (status) {
        assert_int_equal(status, GPUHAL_ERROR_OUT_OF_MEMORY);
        assert_false(sure);
        return;
    }
    block *at = block_at(m, gpuhal_buffer_address(buffer));
    assert_null(at->buffer);
    assert_int_equal(at->behind & ~(queue < QUEUES ? 1u << queue : 0), 0);
    *at = (block){.address = at->address, .buffer = buffer, .bytes = bytes, .home = queue};
    count(m, at, true);
}

static void release(model *m, block *at)
{
    if (at->buffer) {
        at->behind = (at->uses | (at->home < QUEUES ? 1u << at->home : 0)) & busy(m);
        gpuhal_buffer_release(at->buffer);
        at->buffer = NULL;
        count(m, at, false);
    }
}

static void use(model *m, block *at)
{
    const int queue = (int)pick(m, QUEUES);
    if (at->buffer) {
        const bool alone = at->home == queue && !(at->uses & ~(1u << queue)); /* only one queue may write at a time */
        assert_ok(alone ? gpuhal_fill(m->queues[queue], at->buffer, 0, at->bytes, 1, 1)
                        : gpuhal_buffer_use(at->buffer, m->queues[queue]));
        at->uses |= 1u << queue;
        at->home = at->home == NO_QUEUE ? queue : at->home; /* the first queue that used the block */
    }
}

static void turn_gate(model *m, int queue)
{
    if (!m->gates[queue]) {
        m->gates[queue] = close_gate(m->gpu, m->queues[queue]);
        return;
    }
    open_gate(m->gates[queue]);
    m->gates[queue] = NULL;
    assert_ok(gpuhal_queue_synchronize(m->queues[queue], PATIENCE_NS));
    for (block *at = m->blocks; at < m->blocks + BLOCKS; at++) {
        at->behind &= ~(1u << queue);
    }
}

static void renew_queue(model *m, int queue)
{
    if (m->gates[queue]) {
        turn_gate(m, queue);
    }
    gpuhal_queue_destroy(m->queues[queue]);
    m->queues[queue] = queue_or_fail(m->gpu);
    for (block *at = m->blocks; at < m->blocks + BLOCKS; at++) { /* the queue's work no longer keeps any block */
        at->uses &= ~(1u << queue);
        at->home = at->home == queue ? GONE_QUEUE : at->home;
    }
}

static void expect_figures(model *m)
{
    const gpuhal_pool_statistics state = state_of(m->pool);
    const gpuhal_pool_amount *const amounts[3] = {&state.used, &state.requested, &state.buffers};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(amounts[i]->current, m->in[i] - m->out[i]);
        assert_int_equal(amounts[i]->total_in, m->in[i]);
        assert_int_equal(amounts[i]->total_out, m->out[i]);
        assert_int_equal(amounts[i]->peak, m->peak[i]);
    }
    assert_true(state.reserved.current == 0 || state.reserved.current == BLOCKS * UNIT);
}

static void trim(model *m)
{
    uint64_t freed = 0;
    assert_ok(gpuhal_pool_trim(m->pool, 0, &freed));
    if (freed > 0) { /* all blocks are in one segment */
        assert_int_equal(m->in[2], m->out[2]);
        memset(m->blocks, 0, sizeof m->blocks);
    }
}

static void step(model *m)
{
    block *at = &m->blocks[pick(m, BLOCKS)];
    const uint32_t what = pick(m, 100);
    if (what < 45) {
        allocate(m);
    } else if (what < 80) {
        release(m, at);
    } else if (what < 88) {
        use(m, at);
    } else if (what < 95) {
        turn_gate(m, (int)pick(m, QUEUES));
    } else if (what < 96) {
        renew_queue(m, (int)pick(m, QUEUES));
    } else if (what < 97) {
        trim(m);
    } else if (what < 98) {
        assert_ok(gpuhal_maintain(m->gpu, 1));
    } else if (what < 99) {
        for (at = m->blocks; at < m->blocks + BLOCKS; at++) {
            release(m, at);
        }
    } else {
        assert_ok(m->traced ? gpuhal_trace_stop(m->gpu, GPUHAL_TRACE_POOLS) : start_pool_trace(m->gpu));
        m->traced = !m->traced;
    }
    expect_figures(m);
}

TEST(random_calls_never_give_a_block_twice_or_early_nor_refuse_a_free_one)
{
    for (uint32_t seed = 1; seed <= 8; seed++) {
        model m = {.gpu = open_one(), .random = seed * 2654435761u};
        m.pool = pool_or_fail(m.gpu, (gpuhal_pool_desc){.limit_bytes = BLOCKS * UNIT,
                                                        .flags = GPUHAL_POOL_NO_REUSE_INTERNAL_DEPENDENCIES});
        for (int i = 0; i < QUEUES; i++) {
            m.queues[i] = queue_or_fail(m.gpu);
        }
        for (int i = 0; i < STEPS; i++) {
            step(&m);
        }
        gpuhal_pool_destroy(m.pool); /* the pool is destroyed before the last buffers */
        for (int i = 0; i < BLOCKS; i++) {
            gpuhal_buffer_release(m.blocks[i].buffer);
        }
        for (int i = 0; i < QUEUES; i++) {
            if (m.gates[i]) {
                turn_gate(&m, i);
            }
            gpuhal_queue_destroy(m.queues[i]);
        }
        gpuhal_close(m.gpu);
        expect_nothing_left_soon();
    }
}

#include "test_main.h"
