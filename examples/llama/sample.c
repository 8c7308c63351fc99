/* sample.c: selects the next token. With temperature 0 it selects the token with the greatest logit, otherwise a random
 * token among those with the `top_k` greatest logits. Equal seeds select equal tokens. NaN counts as the smallest
 * logit. */
#include "llama.h"

#include <math.h>
#include <stdlib.h>

typedef struct candidate {
    float logit;
    uint32_t token;
} candidate;

static float logit_at(const float *logits, uint32_t token)
{
    return isnan(logits[token]) ? -INFINITY : logits[token];
}

static int by_logit(const void *a, const void *b)
{
    const candidate *left = a, *right = b;
    return left->logit != right->logit ? (left->logit > right->logit ? -1 : 1) : left->token < right->token ? -1 : 1;
}

/* Returns a random number in [0, 1), generated with SplitMix64. */
static double next_random(llama_sampler *sampler)
{
    uint64_t z = sampler->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static uint32_t greatest(const float *logits, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++) {
        best = logit_at(logits, i) > logit_at(logits, best) ? i : best;
    }
    return best;
}

bool llama_sample(llama_sampler *sampler, const float *logits, uint32_t count, uint32_t *out_token, llama_error *error)
{
    if (!(sampler->temperature > 0.0f)) {
        *out_token = greatest(logits, count);
        return true;
    }
    candidate *all = malloc(count * sizeof *all);
    if (!all) {
        return llama_fail(error, "there is no memory for %u candidates", count);
    }
    for (uint32_t i = 0; i < count; i++) {
        all[i] = (candidate){.logit = logit_at(logits, i), .token = i};
    }
    qsort(all, count, sizeof *all, by_logit);
    const uint32_t kept = sampler->top_k > 0 && sampler->top_k < count ? sampler->top_k : count;
    double sum = 0.0, at = 0.0;
    for (uint32_t i = 0; i < kept; i++) {
        sum += exp((double)(all[i].logit - all[0].logit) / (double)sampler->temperature);
    }
    const double wanted = next_random(sampler) * sum;
    uint32_t chosen = 0;
    for (uint32_t i = 0; i < kept && at <= wanted; i++) {
        at += exp((double)(all[i].logit - all[0].logit) / (double)sampler->temperature);
        chosen = i;
    }
    *out_token = all[chosen].token;
    free(all);
    return true;
}
