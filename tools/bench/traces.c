/* traces.c: simulates the programs that traces.h describes, without allocating their memory. Each request becomes a
 * step. A program runs until its trace is full. Functions that add steps therefore do nothing if the trace is full. */
#include "traces.h"
#include "failure.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t kib = 1024, mib = 1024 * 1024;

typedef struct maker {
    gpuhal_bench_trace *trace;
    uint64_t room; /* steps */
    uint64_t random;
    uint64_t live_bytes;
    uint32_t *units;  /* size of each slot's memory; 0 if the slot has no memory */
    uint32_t *unused; /* slots without memory, below trace->slots */
    uint32_t unused_count;
} maker;

static bool is_full(const maker *m)
{
    return m->trace->count == m->room;
}

/* xorshift64*, which produces the same numbers on every machine. */
static uint64_t pick(maker *m, uint64_t below)
{
    m->random ^= m->random >> 12;
    m->random ^= m->random << 25;
    m->random ^= m->random >> 27;
    return (m->random * UINT64_C(0x2545f4914f6cdd1d) >> 16) % below;
}

/* Adds a step that allocates memory and returns its slot. If the trace is full, adds no step and returns any slot. */
static uint32_t get(maker *m, uint64_t bytes)
{
    gpuhal_bench_trace *trace = m->trace;
    if (is_full(m)) {
        return 0;
    }
    const uint32_t slot = m->unused_count > 0 ? m->unused[--m->unused_count] : trace->slots++;
    m->units[slot] = (uint32_t)((bytes + GPUHAL_BENCH_TRACE_UNIT - 1) / GPUHAL_BENCH_TRACE_UNIT);
    m->live_bytes += (uint64_t)m->units[slot] * GPUHAL_BENCH_TRACE_UNIT;
    trace->peak_bytes = m->live_bytes > trace->peak_bytes ? m->live_bytes : trace->peak_bytes;
    trace->steps[trace->count++] = (gpuhal_bench_step){slot, m->units[slot]};
    return slot;
}

static void release(maker *m, uint32_t slot)
{
    if (is_full(m)) {
        return;
    }
    m->live_bytes -= (uint64_t)m->units[slot] * GPUHAL_BENCH_TRACE_UNIT;
    m->units[slot] = 0;
    m->unused[m->unused_count++] = slot;
    m->trace->steps[m->trace->count++] = (gpuhal_bench_step){slot, 0};
}

static void release_all(maker *m, const uint32_t *slots, uint32_t count)
{
    for (uint32_t i = count; i > 0; i--) {
        release(m, slots[i - 1]);
    }
}

/* The slots in use are the slots below trace->slots that have units. Once the arena is full, nearly all slots below
 * trace->slots are in use. */
static void make_full(maker *m)
{
    const uint64_t most = UINT64_C(2048) * mib;
    while (!is_full(m)) {
        const uint64_t power = UINT64_C(512) << pick(m, 15), bytes = power + pick(m, power);
        while (m->live_bytes + bytes > most && !is_full(m)) {
            uint32_t slot = (uint32_t)pick(m, m->trace->slots);
            while (m->units[slot] == 0) {
                slot = (uint32_t)pick(m, m->trace->slots);
            }
            release(m, slot);
        }
        (void)get(m, bytes);
    }
}

/* The sizes of one layer's matrices in a model with 8e9 parameters of 16 bits in 32 layers. */
enum {
    LAYERS = 32,
    HIDDEN = 4096,
    PARALLEL = 48,
    CHUNK_TOKENS = 64,
    PIECES_MAX = 128 * 2 * LAYERS,
    ADAPTERS = 8,
    ADAPTED = 4
};
static const uint64_t matrices[] = {32, 8, 8, 32, 112, 112, 112};
static const uint64_t bytes_of_a_token = 2048; /* for the keys or the values of one layer */
static const uint64_t vocabulary = 128256;

typedef struct request {
    uint32_t tokens, end;
    uint32_t room; /* tokens that have memory */
    uint32_t pieces;
    uint32_t slots[PIECES_MAX];
} request;

typedef struct adapter {
    uint32_t slots[LAYERS * ADAPTED];
    uint32_t count;
} adapter;

static void load_weights(maker *m)
{
    (void)get(m, vocabulary * HIDDEN * 2);
    for (int layer = 0; layer < LAYERS; layer++) {
        for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
            (void)get(m, matrices[i] * mib);
        }
        (void)get(m, HIDDEN * 2);
        (void)get(m, HIDDEN * 2);
    }
    (void)get(m, vocabulary * HIDDEN * 2);
}

/* Adds the memory requests of one step's computation on @tokens tokens. @last of these tokens each produce an output
 * token. Each layer's results are released before the next layer's results are allocated. */
static void compute(maker *m, uint64_t tokens, uint64_t last)
{
    const uint32_t stream = get(m, tokens * HIDDEN * 2);
    for (int layer = 0; layer < 4; layer++) {
        const uint32_t attention[] = {get(m, tokens * HIDDEN * 2), get(m, tokens * HIDDEN * 3)};
        const uint32_t scores = get(m, tokens * 32 * 256);
        release_all(m, attention, 2);
        const uint32_t wide[] = {get(m, tokens * 14336 * 2), get(m, tokens * 14336 * 2)};
        release(m, scores);
        release_all(m, wide, 2);
    }
    const uint32_t logits = get(m, last * vocabulary * 4);
    release(m, stream);
    release(m, logits);
}

static void swap_adapter(maker *m, adapter *a)
{
    const uint64_t rank = UINT64_C(8) << pick(m, 4);
    release_all(m, a->slots, a->count);
    for (a->count = 0; a->count < LAYERS * ADAPTED; a->count++) {
        a->slots[a->count] = get(m, rank * (a->count % ADAPTED == 3 ? 14336 + HIDDEN : 2 * HIDDEN) * 2);
    }
}

/* Starts or continues one request. Returns the number of its tokens in this step. */
static uint64_t advance(maker *m, request *r)
{
    uint64_t tokens = 1;
    if (r->tokens == r->end) {
        release_all(m, r->slots, r->pieces);
        r->pieces = r->room = 0;
        r->tokens = 16 + (uint32_t)pick(m, 1 << (5 + pick(m, 8)));
        r->end = r->tokens + 16 + (uint32_t)pick(m, 1 << (5 + pick(m, 6)));
        tokens = r->tokens;
    } else {
        r->tokens++;
    }
    for (; r->room < r->tokens; r->room += CHUNK_TOKENS) {
        for (int piece = 0; piece < 2 * LAYERS; piece++) {
            r->slots[r->pieces++] = get(m, CHUNK_TOKENS * bytes_of_a_token);
        }
    }
    return tokens;
}

static bool make_serving(maker *m)
{
    request *requests = calloc(PARALLEL, sizeof *requests);
    adapter *adapters = calloc(ADAPTERS, sizeof *adapters);
    const bool good = requests != NULL && adapters != NULL;
    if (good) {
        load_weights(m);
    }
    while (good && !is_full(m)) {
        uint64_t tokens = 0;
        for (int i = 0; i < PARALLEL; i++) {
            tokens += advance(m, &requests[i]);
        }
        if (pick(m, 20) == 0) {
            swap_adapter(m, &adapters[pick(m, ADAPTERS)]);
        }
        compute(m, tokens < 2048 ? tokens : 2048, PARALLEL);
    }
    free(requests);
    free(adapters);
    return good;
}

/* A model with 1.3e9 parameters: 24 layers, a batch of 8 texts. */
enum { TRAINED_LAYERS = 24, TRAINED_HIDDEN = 2048, BATCH = 8, KEPT = 8 };

/* Weights and gradients in 16 bits; two moments and a copy of the weights in 32 bits. */
static void load_trained(maker *m)
{
    static const uint64_t parts[] = {2, 2, 4, 4, 4}, shapes[] = {3, 1, 4, 4};
    const uint64_t square = (uint64_t)TRAINED_HIDDEN * TRAINED_HIDDEN;
    for (size_t part = 0; part < sizeof parts / sizeof *parts; part++) {
        (void)get(m, 50304 * (uint64_t)TRAINED_HIDDEN * parts[part]);
        for (int layer = 0; layer < TRAINED_LAYERS; layer++) {
            for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
                (void)get(m, shapes[i] * square * parts[part]);
                (void)get(m, TRAINED_HIDDEN * parts[part]);
            }
        }
    }
}

/* Adds the requests of one batch: the memory that each layer keeps, and its temporary memory. */
static void train(maker *m, uint64_t length)
{
    const uint64_t row = BATCH * length * TRAINED_HIDDEN * 2, scores = BATCH * 16 * length * length * 2;
    const uint64_t kept[KEPT] = {row, row * 3, scores, row, row, row * 4, row * 4, BATCH * length * 8};
    uint32_t slots[TRAINED_LAYERS][KEPT];
    for (int layer = 0; layer < TRAINED_LAYERS; layer++) {
        const uint32_t normal = get(m, row);
        for (int i = 0; i < KEPT; i++) {
            slots[layer][i] = get(m, kept[i]);
            release(m, get(m, i % 2 ? row : 2 * row));
        }
        release(m, normal);
    }
    const uint32_t logits = get(m, BATCH * length * 50304 * 2), loss = get(m, BATCH * length * 50304 * 4);
    release(m, logits);
    release(m, loss);
    uint32_t gradient = get(m, row);
    for (int layer = TRAINED_LAYERS - 1; layer >= 0; layer--) {
        for (int i = KEPT - 1; i >= 0; i--) {
            const uint32_t next = get(m, kept[i]), sums = get(m, i % 2 ? row : 64 * kib);
            release(m, gradient);
            release(m, slots[layer][i]);
            release(m, sums);
            gradient = next;
        }
    }
    release(m, gradient);
}

static void make_training(maker *m)
{
    load_trained(m);
    while (!is_full(m)) {
        train(m, 256 + 64 * pick(m, 13));
    }
}

void gpuhal_bench_trace_free(gpuhal_bench_trace *trace)
{
    free(trace->steps);
    *trace = (gpuhal_bench_trace){0};
}

bool gpuhal_bench_trace_make(gpuhal_bench_trace_kind kind, uint64_t count, gpuhal_bench_trace *out_trace)
{
    *out_trace = (gpuhal_bench_trace){.steps = calloc(count, sizeof *out_trace->steps)};
    maker m = {.trace = out_trace,
               .room = count,
               .random = UINT64_C(88172645463325252),
               .units = calloc(count, sizeof *m.units),
               .unused = calloc(count, sizeof *m.unused)};
    bool good = out_trace->steps != NULL && m.units != NULL && m.unused != NULL;
    if (good && kind == GPUHAL_BENCH_TRACE_FULL) {
        make_full(&m);
    } else if (good && kind == GPUHAL_BENCH_TRACE_SERVING) {
        good = make_serving(&m);
    } else if (good) {
        make_training(&m);
    }
    free(m.units);
    free(m.unused);
    if (!good) {
        gpuhal_bench_trace_free(out_trace);
        gpuhal_bench_failed("no memory for a trace");
    }
    return good;
}
