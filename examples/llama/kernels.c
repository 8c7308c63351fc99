/* kernels.c: the kernels as CPU functions. Each call does the work of one group. This file is compiled once for each
 * instruction set that the compiler supports (CMakeLists.txt). At run time programs.c selects the best instruction set.
 *
 * All formats of the kernels add in the same order, so that devices with the same rounding agree to the last bit. 32
 * lanes sum a row of a matrix. Lane i adds the elements i, i + 32, … In quantized blocks a lane adds four neighbours at
 * a time, and their products are summed as integers. Five halvings reduce the lanes to one sum. No product is fused
 * with a sum, except by nvcc. The exponential function is implemented below. */
#include "kernels.h"

#include <math.h>
#include <string.h>
#ifdef __SSE2__
#include <immintrin.h>
#endif

#ifdef __AVX512F__
enum { WIDTH = 16 };
#else
enum { WIDTH = 8 };
#endif
enum { LANES = 32, VECTORS = LANES / WIDTH, EIGHTS = LANES / 8, BLOCK = 32 };

typedef float vector __attribute__((vector_size(WIDTH * 4)));
typedef float eight __attribute__((vector_size(32)));
typedef struct eights {
    eight at[EIGHTS];
} eights;

static inline uint32_t number(const void *argument)
{
    uint32_t value;
    memcpy(&value, argument, sizeof value);
    return value;
}

static inline float real(const void *argument)
{
    float value;
    memcpy(&value, argument, sizeof value);
    return value;
}

static inline uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static inline float half_at(const void *from)
{
    uint16_t half;
    memcpy(&half, from, sizeof half);
#ifdef __F16C__
    return _cvtsh_ss(half);
#else
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = (uint32_t)(half & 0x7fff) << 13;
    const uint32_t bits = rest >= 0x0f800000 ? rest + 0x70000000 : rest + 0x38000000; /* infinite or NaN; else finite */
    float value;
    memcpy(&value, &bits, sizeof value);
    value = rest < 0x00800000 ? (float)(rest >> 13) * 0x1p-24f : value;
    return sign != 0 ? -value : value;
#endif
}

static inline eight load_eight(const float *from)
{
    eight value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline float sum_eight(const eight *from)
{
    float lane[8];
    memcpy(lane, from, sizeof lane);
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

static inline float sum_lanes(const eights *from)
{
    const eight sum = (from->at[0] + from->at[2]) + (from->at[1] + from->at[3]);
    return sum_eight(&sum);
}

/* Computes e^x with the algorithm of Cephes' expf. NaN counts as the smallest value. */
static inline float exponential(float x)
{
    x = x >= -87.0f ? x : -87.0f;
    x = x <= 88.0f ? x : 88.0f;
    const float n = floorf(x * 1.44269504f + 0.5f), r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    const int32_t bits = ((int32_t)n + 127) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return ((p * r) * r + r + 1.0f) * power;
}

/* ---- products of a row of weights with `tokens` rows of input. `tokens` is a constant from 1 to 4. */

#define INLINE static inline __attribute__((always_inline))

INLINE void finish(const vector sums[][VECTORS], uint32_t tokens, float *out)
{
    for (uint32_t t = 0; t < tokens; t++) {
        eights all;
        memcpy(&all, sums[t], sizeof all);
        out[t] = sum_lanes(&all);
    }
}

INLINE vector load_floats(const char *from)
{
    vector value;
    memcpy(&value, from, sizeof value);
    return value;
}

INLINE vector load_halves(const char *from)
{
#if defined(__AVX512F__)
    return (vector)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)from));
#elif defined(__F16C__)
    return (vector)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)from));
#else
    vector value;
    for (int i = 0; i < WIDTH; i++) {
        value[i] = half_at(from + 2 * i);
    }
    return value;
#endif
}

INLINE void dot_reals(const char *row, uint32_t bytes, const float *x, uint32_t columns, uint32_t tokens, float *out)
{
    vector sums[TILE_TOKENS][VECTORS];
    memset(sums, 0, sizeof sums);
    for (uint32_t i = 0; i < columns; i += LANES) {
        for (uint32_t v = 0; v < VECTORS; v++) {
            const char *from = row + (size_t)(i + v * WIDTH) * bytes;
            const vector w = bytes == 4 ? load_floats(from) : load_halves(from);
            for (uint32_t t = 0; t < tokens; t++) {
                sums[t][v] += w * load_floats((const char *)(x + (size_t)t * columns + i + v * WIDTH));
            }
        }
    }
    finish((const vector(*)[VECTORS])sums, tokens, out);
}

/* 32 signed bytes, and the products with 32 other bytes, summed in groups of four. */
#ifdef __AVX2__
typedef __m256i bytes32;

INLINE bytes32 load_bytes(const char *from)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)from);
}

INLINE bytes32 load_nibbles(const char *from)
{
    const __m128i both = _mm_loadu_si128((const __m128i *)(const void *)from);
    const __m256i all = _mm256_inserti128_si256(_mm256_castsi128_si256(both), _mm_srli_epi16(both, 4), 1);
    return _mm256_sub_epi8(_mm256_and_si256(all, _mm256_set1_epi8(15)), _mm256_set1_epi8(8));
}

INLINE eight products(bytes32 w, bytes32 x)
{
    const __m256i size = _mm256_sign_epi8(w, w), signs = _mm256_sign_epi8(x, w); /* one operand must be unsigned */
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
    const __m256i sums = _mm256_dpbusd_epi32(_mm256_setzero_si256(), size, signs);
#else
    const __m256i sums = _mm256_madd_epi16(_mm256_maddubs_epi16(size, signs), _mm256_set1_epi16(1));
#endif
    return (eight)_mm256_cvtepi32_ps(sums);
}
#else
typedef struct bytes32 {
    signed char at[BLOCK];
} bytes32;

INLINE bytes32 load_bytes(const char *from)
{
    bytes32 value;
    memcpy(&value, from, sizeof value);
    return value;
}

INLINE bytes32 load_nibbles(const char *from)
{
    bytes32 value;
    for (int i = 0; i < BLOCK / 2; i++) {
        value.at[i] = (signed char)((from[i] & 15) - 8);
        value.at[i + BLOCK / 2] = (signed char)((from[i] >> 4 & 15) - 8);
    }
    return value;
}

INLINE eight products(bytes32 w, bytes32 x)
{
    eight sums;
    for (int i = 0; i < 8; i++) {
        int32_t sum = 0;
        for (int j = 4 * i; j < 4 * i + 4; j++) {
            sum += w.at[j] * x.at[j];
        }
        sums[i] = (float)sum;
    }
    return sums;
}
#endif

/* A row of `x` consists of one byte per column, followed by the scale of each block. */
INLINE void dot_blocks(const char *row, bool is_q8, const char *x, uint32_t columns, uint32_t tokens, float *out)
{
    const uint32_t blocks = columns / BLOCK, bytes = is_q8 ? 34 : 18;
    const size_t x_bytes = columns + (size_t)blocks * 4;
    eights sums[TILE_TOKENS];
    memset(sums, 0, sizeof sums);
    for (uint32_t begin = 0; begin < blocks; begin += EIGHTS) {
        for (uint32_t v = 0; v < EIGHTS && begin + v < blocks; v++) {
            const uint32_t block = begin + v;
            const char *from = row + (size_t)block * bytes;
            const float scale = half_at(from);
            const bytes32 w = is_q8 ? load_bytes(from + 2) : load_nibbles(from + 2);
            for (uint32_t t = 0; t < tokens; t++) {
                const char *own = x + t * x_bytes;
                const float both = scale * real(own + columns + (size_t)block * 4);
                sums[t].at[v] += products(w, load_bytes(own + (size_t)block * BLOCK)) * both;
            }
        }
    }
    for (uint32_t t = 0; t < tokens; t++) {
        out[t] = sum_lanes(&sums[t]);
    }
}

INLINE void dot(uint32_t type, const char *row, const char *x, uint32_t columns, uint32_t tokens, float *out)
{
    if (type == TYPE_F32 || type == TYPE_F16) {
        dot_reals(row, type == TYPE_F32 ? 4 : 2, (const float *)(const void *)x, columns, tokens, out);
    } else {
        dot_blocks(row, type == TYPE_Q8_0, x, columns, tokens, out);
    }
}

/* Multiplies four rows of the matrix by up to four tokens. */
INLINE void multiply(uint32_t type, void *const *arguments, const gpuhal_host_group *group)
{
    float *y = arguments[0];
    const uint32_t columns = number(arguments[3]), rows = number(arguments[4]), count = number(arguments[5]);
    const uint32_t first = number(arguments[6]), adds = number(arguments[7]);
    const uint32_t token = group->group[0] * TILE_TOKENS, begin = group->group[1] * GROUP_ROWS;
    const uint32_t tokens = smaller(TILE_TOKENS, count - token);
    const bool is_real = type == TYPE_F32 || type == TYPE_F16;
    const size_t row_bytes = is_real ? (size_t)columns * (type == TYPE_F32 ? 4 : 2)
                                     : (size_t)columns / BLOCK * (type == TYPE_Q8_0 ? 34 : 18);
    const char *x =
        (const char *)arguments[2] + token * (is_real ? (size_t)columns * 4 : columns + (size_t)columns / BLOCK * 4);
    for (uint32_t row = begin; row < smaller(begin + GROUP_ROWS, rows); row++) {
        const char *weights = (const char *)arguments[1] + row * row_bytes;
        float sums[TILE_TOKENS];
        switch (tokens) {
        case 1:
            dot(type, weights, x, columns, 1, sums);
            break;
        case 2:
            dot(type, weights, x, columns, 2, sums);
            break;
        case 3:
            dot(type, weights, x, columns, 3, sums);
            break;
        default:
            dot(type, weights, x, columns, 4, sums);
        }
        for (uint32_t t = 0; t < tokens; t++) {
            float *to = &y[(size_t)(first + token + t) * rows + row];
            *to = adds != 0 ? *to + sums[t] : sums[t];
        }
    }
}

static void multiply_f32(void *const *arguments, const gpuhal_host_group *group)
{
    multiply(TYPE_F32, arguments, group);
}

static void multiply_f16(void *const *arguments, const gpuhal_host_group *group)
{
    multiply(TYPE_F16, arguments, group);
}

static void multiply_q8_0(void *const *arguments, const gpuhal_host_group *group)
{
    multiply(TYPE_Q8_0, arguments, group);
}

static void multiply_q4_0(void *const *arguments, const gpuhal_host_group *group)
{
    multiply(TYPE_Q4_0, arguments, group);
}

/* ---- work on each token */

static void get_rows(void *const *arguments, const gpuhal_host_group *group)
{
    const uint32_t columns = number(arguments[3]), type = number(arguments[4]), first = number(arguments[5]);
    const uint32_t token = ((const uint32_t *)arguments[2])[first + group->group[0]];
    float *out = (float *)arguments[0] + (size_t)group->group[0] * columns;
    const size_t row = (size_t)token * columns;
    const char *table = arguments[1];
    for (uint32_t i = 0; i < columns; i++) {
        const char *block = table + (row + i) / BLOCK * (type == TYPE_Q8_0 ? 34 : 18);
        const uint32_t at = i % BLOCK;
        out[i] = type == TYPE_F32    ? real(table + (row + i) * 4)
                 : type == TYPE_F16  ? half_at(table + (row + i) * 2)
                 : type == TYPE_Q8_0 ? half_at(block) * (float)(signed char)block[2 + at]
                                     : half_at(block) * (float)((block[2 + at % 16] >> (at < 16 ? 0 : 4) & 15) - 8);
    }
}

static void rms_norm(void *const *arguments, const gpuhal_host_group *group)
{
    const uint32_t columns = number(arguments[3]);
    const float epsilon = real(arguments[4]), *weight = arguments[2];
    const float *x = (const float *)arguments[1] + (size_t)(number(arguments[5]) + group->group[0]) * columns;
    float *y = (float *)arguments[0] + (size_t)group->group[0] * columns;
    eights sums;
    memset(&sums, 0, sizeof sums);
    for (uint32_t i = 0; i < columns; i += LANES) {
        for (uint32_t v = 0; v < EIGHTS; v++) {
            const eight own = load_eight(x + i + v * 8);
            sums.at[v] += own * own;
        }
    }
    const float scale = 1.0f / sqrtf(sum_lanes(&sums) / (float)columns + epsilon);
    for (uint32_t i = 0; i < columns; i++) {
        y[i] = (x[i] * scale) * weight[i];
    }
}

/* Quantizes 32 blocks of a token. */
static void quantize(void *const *arguments, const gpuhal_host_group *group)
{
    const uint32_t columns = number(arguments[2]), blocks = columns / BLOCK, begin = group->group[0] * 32;
    const float *x = (const float *)arguments[1] + (size_t)group->group[1] * columns;
    char *row = (char *)arguments[0] + group->group[1] * (columns + (size_t)blocks * 4);
    for (uint32_t block = begin; block < smaller(begin + 32, blocks); block++) {
        float most = 0.0f;
        for (uint32_t i = 0; i < BLOCK; i++) {
            const float size = fabsf(x[block * BLOCK + i]);
            most = size > most ? size : most;
        }
        const float scale = most / 127.0f, inverse = most > 0.0f ? 127.0f / most : 0.0f;
        for (uint32_t i = 0; i < BLOCK; i++) {
            float value = floorf(x[block * BLOCK + i] * inverse + 0.5f);
            value = value >= -127.0f ? value : -127.0f; /* NaN becomes -127 */
            value = value <= 127.0f ? value : 127.0f;
            row[block * BLOCK + i] = (char)(int32_t)value;
        }
        memcpy(row + columns + (size_t)block * 4, &scale, sizeof scale);
    }
}

/* Rotates each pair of neighbours by its angle, given as the cosine and the sine. */
static void rope(void *const *arguments, const gpuhal_host_group *group)
{
    const uint32_t heads = number(arguments[2]), size = number(arguments[3]);
    const float *angles = (const float *)arguments[1] + (size_t)(number(arguments[4]) + group->group[0]) * size;
    float *x = (float *)arguments[0] + (size_t)(number(arguments[5]) + group->group[0]) * heads * size;
    for (uint32_t i = 0; i < heads * size; i += 2) {
        const float a = x[i], b = x[i + 1], c = angles[i % size], s = angles[i % size + 1];
        x[i] = a * c - b * s;
        x[i + 1] = a * s + b * c;
    }
}

/* Computes one head of one token over the positions up to the token's own. */
static void attention(void *const *arguments, const gpuhal_host_group *group)
{
    const uint32_t heads = number(arguments[5]), kv_heads = number(arguments[6]), size = number(arguments[7]);
    const uint32_t head = group->group[0], token = group->group[1], count = number(arguments[8]) + token + 1;
    const uint32_t width = kv_heads * size, shared = head / (heads / kv_heads) * size;
    const size_t row = (size_t)token * heads + head;
    const float scale = real(arguments[10]), *q = (const float *)arguments[1] + row * size;
    const float *keys = (const float *)arguments[2] + shared, *values = (const float *)arguments[3] + shared;
    float *out = (float *)arguments[0] + row * size, *scores = (float *)arguments[4] + row * number(arguments[9]);
    float most = -INFINITY, lanes[LANES] = {0};
    for (uint32_t p = 0; p < count; p++) {
        eight sum = {0};
        for (uint32_t i = 0; i < size; i += 8) {
            sum += load_eight(q + i) * load_eight(keys + (size_t)p * width + i);
        }
        scores[p] = sum_eight(&sum) * scale;
        most = scores[p] > most ? scores[p] : most;
    }
    for (uint32_t p = 0; p < count; p++) {
        scores[p] = exponential(scores[p] - most);
    }
    for (uint32_t p = 0; p < count; p++) {
        lanes[p % LANES] += scores[p];
    }
    eights sums;
    memcpy(&sums, lanes, sizeof sums);
    const float share = 1.0f / sum_lanes(&sums);
    for (uint32_t i = 0; i < size; i += 8) {
        eight sum = {0};
        for (uint32_t p = 0; p < count; p++) {
            sum += scores[p] * load_eight(values + (size_t)p * width + i);
        }
        sum *= share;
        memcpy(out + i, &sum, sizeof sum);
    }
}

static void swiglu(void *const *arguments, const gpuhal_host_group *group)
{
    const uint32_t columns = number(arguments[2]), begin = group->group[0] * 128, end = smaller(begin + 128, columns);
    float *gate = (float *)arguments[0] + (size_t)group->group[1] * columns;
    const float *up = (const float *)arguments[1] + (size_t)group->group[1] * columns;
    for (uint32_t i = begin; i < end; i++) {
        gate[i] = gate[i] / (1.0f + exponential(-gate[i])) * up[i];
    }
}

const gpuhal_host_function LLAMA_TABLE[] = {{"get_rows", get_rows},
                                            {"rms_norm", rms_norm},
                                            {"quantize", quantize},
                                            {"rope", rope},
                                            {"attention", attention},
                                            {"swiglu", swiglu},
                                            {"matvec_f32", multiply_f32},
                                            {"matvec_f16", multiply_f16},
                                            {"matvec_q8_0", multiply_q8_0},
                                            {"matvec_q4_0", multiply_q4_0},
                                            {"matmul_f32", multiply_f32},
                                            {"matmul_f16", multiply_f16},
                                            {"matmul_q8_0", multiply_q8_0},
                                            {"matmul_q4_0", multiply_q4_0},
                                            {0}};
