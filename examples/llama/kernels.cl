/* kernels.cl: the kernels in OpenCL C; kernels.cu compiles the same file for CUDA and HIP. The kernels add in the order
 * that kernels.c describes, and read bytes through 32-bit words. The library does not cache code with a word for reading
 * other files, even in a comment. */
#ifndef KERNEL
#pragma OPENCL FP_CONTRACT OFF
#define KERNEL(size)         __kernel __attribute__((reqd_work_group_size(size, 1, 1))) void
#define GLOBAL               __global
#define SHARED               __local
#define SHARED_POINTER       __local float *
#define SYNCHRONIZE()        barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define THREAD()             ((uint)get_local_id(0))
#define GROUP(dimension)     ((uint)get_group_id(dimension))
#define FUNCTION

float half_float(uint bits)
{
    const ushort number = (ushort)bits;
    return vload_half(0, (__private const half *)&number);
}
#endif

enum { TYPE_F32 = 0, TYPE_F16 = 1, TYPE_Q4_0 = 2, TYPE_Q8_0 = 8, LANES = 32, GROUP_ROWS = 4, TILE = 4 };

/* ---- bytes */

FUNCTION float half_at(GLOBAL const uint *from, uint byte)
{
    return half_float(from[byte / 4] >> (byte & 2) * 8 & 0xffff);
}

/* Returns four bytes at an even offset. */
FUNCTION uint word_at(GLOBAL const uint *from, uint byte)
{
    const uint word = from[byte / 4];
    return (byte & 2) == 0 ? word : word >> 16 | from[byte / 4 + 1] << 16;
}

FUNCTION int signed_byte(uint word, uint index)
{
    return (int)(word << (24 - 8 * index)) >> 24;
}

/* Returns element `lane` * 4 + `i` of a Q4_0 block. `word` contains the elements of all lanes that have the same number
 * modulo 4. */
FUNCTION int nibble(uint word, uint lane, uint i)
{
    return (int)(word >> (8 * i + (lane < 4 ? 0 : 4)) & 15) - 8;
}

FUNCTION float exponential(float x)
{
    x = x >= -87.0f ? x : -87.0f;
    x = x <= 88.0f ? x : 88.0f;
    const float n = floor(x * 1.44269504f + 0.5f), r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    return ((p * r) * r + r + 1.0f) * as_float(((int)n + 127) << 23);
}

/* Returns the sum of 32 elements of `part`, starting at the first lane of the thread's row. Every thread of the group
 * must call this function. */
FUNCTION float sum_lanes(SHARED_POINTER part, uint thread)
{
    for (uint width = LANES / 2; width > 0; width /= 2) {
        SYNCHRONIZE();
        if (thread % LANES < width) {
            part[thread] += part[thread + width];
        }
    }
    SYNCHRONIZE();
    return part[thread / LANES * LANES];
}

/* ---- matrices. A group computes four rows and up to four tokens. 32 threads share a row. */

FUNCTION float dot_f32(GLOBAL const float *w, GLOBAL const float *x, uint row, uint token, uint columns, uint lane)
{
    float sum = 0.0f;
    for (uint i = lane; i < columns; i += LANES) {
        sum += w[(size_t)row * columns + i] * x[(size_t)token * columns + i];
    }
    return sum;
}

FUNCTION float dot_f16(GLOBAL const uint *w, GLOBAL const float *x, uint row, uint token, uint columns, uint lane)
{
    float sum = 0.0f;
    for (uint i = lane; i < columns; i += LANES) {
        sum += half_at(w, (row * columns + i) * 2) * x[(size_t)token * columns + i];
    }
    return sum;
}

FUNCTION float dot_q8_0(GLOBAL const uint *w, GLOBAL const uint *x, uint row, uint token, uint columns, uint lane)
{
    const uint blocks = columns / 32, own = token * (columns / 4 + blocks);
    float sum = 0.0f;
    for (uint b = lane / 8; b < blocks; b += 4) {
        const uint at = (row * blocks + b) * 34;
        const uint a = word_at(w, at + 2 + lane % 8 * 4), q = x[own + b * 8 + lane % 8];
        int products = 0;
        for (uint i = 0; i < 4; i++) {
            products += signed_byte(a, i) * signed_byte(q, i);
        }
        sum += (float)products * (half_at(w, at) * as_float(x[own + columns / 4 + b]));
    }
    return sum;
}

FUNCTION float dot_q4_0(GLOBAL const uint *w, GLOBAL const uint *x, uint row, uint token, uint columns, uint lane)
{
    const uint blocks = columns / 32, own = token * (columns / 4 + blocks);
    float sum = 0.0f;
    for (uint b = lane / 8; b < blocks; b += 4) {
        const uint at = (row * blocks + b) * 18;
        const uint a = word_at(w, at + 2 + lane % 4 * 4), q = x[own + b * 8 + lane % 8];
        int products = 0;
        for (uint i = 0; i < 4; i++) {
            products += nibble(a, lane % 8, i) * signed_byte(q, i);
        }
        sum += (float)products * (half_at(w, at) * as_float(x[own + columns / 4 + b]));
    }
    return sum;
}

/* Computes `tile` tokens. If fewer tokens are left, the last token is computed again instead, but the result is not
 * written. */
#define MATRIX(name, dot, weight, input, tile)                                                                         \
    KERNEL(128) name(GLOBAL float *y, GLOBAL const weight *w, GLOBAL const input *x, uint columns, uint rows,          \
                     uint tokens, GLOBAL const uint *first, uint adds)                                                 \
    {                                                                                                                  \
        SHARED float part[128];                                                                                        \
        const uint thread = THREAD(), row = GROUP(1) * GROUP_ROWS + thread / LANES, own = min(row, rows - 1);          \
        float sums[tile];                                                                                              \
        for (uint t = 0; t < tile; t++) {                                                                              \
            sums[t] = dot(w, x, own, min(GROUP(0) * tile + t, tokens - 1), columns, thread % LANES);                   \
        }                                                                                                              \
        for (uint t = 0; t < tile; t++) {                                                                              \
            const uint token = GROUP(0) * tile + t;                                                                    \
            part[thread] = sums[t];                                                                                    \
            const float sum = sum_lanes(part, thread);                                                                 \
            if (thread % LANES == 0 && row < rows && token < tokens) {                                                 \
                const size_t at = (size_t)(*first + token) * rows + row;                                               \
                y[at] = adds != 0 ? y[at] + sum : sum;                                                                 \
            }                                                                                                          \
            SYNCHRONIZE();                                                                                             \
        }                                                                                                              \
    }
MATRIX(matvec_f32, dot_f32, float, float, 1)
MATRIX(matvec_f16, dot_f16, uint, float, 1)
MATRIX(matvec_q8_0, dot_q8_0, uint, uint, 1)
MATRIX(matvec_q4_0, dot_q4_0, uint, uint, 1)
MATRIX(matmul_f32, dot_f32, float, float, TILE)
MATRIX(matmul_f16, dot_f16, uint, float, TILE)
MATRIX(matmul_q8_0, dot_q8_0, uint, uint, TILE)
MATRIX(matmul_q4_0, dot_q4_0, uint, uint, TILE)

/* ---- work on each token */

KERNEL(128) get_rows(GLOBAL float *out, GLOBAL const uint *table, GLOBAL const uint *tokens, uint columns, uint type,
                  GLOBAL const uint *first)
{
    const uint row = tokens[*first + GROUP(0)];
    for (uint i = THREAD(); i < columns; i += 128) {
        const uint element = row * columns + i, block = (row * (columns / 32) + i / 32) * (type == TYPE_Q8_0 ? 34 : 18);
        float value;
        if (type == TYPE_F32) {
            value = as_float(table[element]);
        } else if (type == TYPE_F16) {
            value = half_at(table, element * 2);
        } else if (type == TYPE_Q8_0) {
            value = half_at(table, block) * (float)signed_byte(word_at(table, block + 2 + i % 32 / 4 * 4), i % 4);
        } else {
            value = half_at(table, block) *
                    (float)nibble(word_at(table, block + 2 + i % 16 / 4 * 4), i % 32 / 4, i % 4);
        }
        out[(size_t)GROUP(0) * columns + i] = value;
    }
}

KERNEL(32) rms_norm(GLOBAL float *y, GLOBAL const float *x, GLOBAL const float *weight, uint columns, float epsilon,
                    uint first)
{
    SHARED float part[LANES];
    const uint thread = THREAD();
    const size_t to = (size_t)GROUP(0) * columns, from = (size_t)(first + GROUP(0)) * columns;
    float sum = 0.0f;
    for (uint i = thread; i < columns; i += LANES) {
        sum += x[from + i] * x[from + i];
    }
    part[thread] = sum;
    const float scale = 1.0f / sqrt(sum_lanes(part, thread) / (float)columns + epsilon);
    for (uint i = thread; i < columns; i += LANES) {
        y[to + i] = (x[from + i] * scale) * weight[i];
    }
}

/* Each thread quantizes a block. */
KERNEL(32) quantize(GLOBAL uint *q, GLOBAL const float *x, uint columns)
{
    const uint blocks = columns / 32, block = GROUP(0) * 32 + THREAD(), row = GROUP(1) * (columns / 4 + blocks);
    const size_t from = (size_t)GROUP(1) * columns + block * 32;
    if (block >= blocks) {
        return;
    }
    float most = 0.0f;
    for (uint i = 0; i < 32; i++) {
        const float size = fabs(x[from + i]);
        most = size > most ? size : most;
    }
    const float inverse = most > 0.0f ? 127.0f / most : 0.0f;
    for (uint i = 0; i < 8; i++) {
        uint word = 0;
        for (uint j = 0; j < 4; j++) {
            float value = floor(x[from + i * 4 + j] * inverse + 0.5f);
            value = value >= -127.0f ? value : -127.0f;
            value = value <= 127.0f ? value : 127.0f;
            word |= ((uint)(int)value & 255) << 8 * j;
        }
        q[row + block * 8 + i] = word;
    }
    q[row + columns / 4 + block] = as_uint(most / 127.0f);
}

KERNEL(128) rope(GLOBAL float *x, GLOBAL const float *angles, uint heads, uint size, GLOBAL const uint *position,
              GLOBAL const uint *first)
{
    const size_t row = (size_t)(*first + GROUP(0)) * heads * size, angle = (size_t)(*position + GROUP(0)) * size;
    for (uint i = THREAD() * 2; i < heads * size; i += 256) {
        const float a = x[row + i], b = x[row + i + 1], c = angles[angle + i % size], s = angles[angle + i % size + 1];
        x[row + i] = a * c - b * s;
        x[row + i + 1] = a * s + b * c;
    }
}

/* Each group computes one head of one token. */
KERNEL(128) attention(GLOBAL float *out, GLOBAL const float *q, GLOBAL const float *keys, GLOBAL const float *values,
                      GLOBAL float *scores, uint heads, uint kv_heads, uint size, GLOBAL const uint *position,
                      uint stride, float scale)
{
    SHARED float part[128];
    const uint thread = THREAD(), head = GROUP(0), token = GROUP(1), count = *position + token + 1;
    const uint width = kv_heads * size, shared = head / (heads / kv_heads) * size;
    const size_t row = (size_t)token * heads + head, own = row * stride;
    float most = -INFINITY;
    for (uint p = thread; p < count; p += 128) {
        const size_t key = (size_t)p * width + shared;
        float lane[8] = {0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f, 0.0f};
        for (uint i = 0; i < size; i += 8) {
            for (uint j = 0; j < 8; j++) {
                lane[j] += q[row * size + i + j] * keys[key + i + j];
            }
        }
        const float sum = ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
        scores[own + p] = sum * scale;
        most = sum * scale > most ? sum * scale : most;
    }
    part[thread] = most;
    for (uint step = 64; step > 0; step /= 2) {
        SYNCHRONIZE();
        if (thread < step) {
            part[thread] = part[thread + step] > part[thread] ? part[thread + step] : part[thread];
        }
    }
    SYNCHRONIZE();
    most = part[0];
    SYNCHRONIZE();
    float sum = 0.0f;
    for (uint p = thread; p < count; p += 128) {
        scores[own + p] = exponential(scores[own + p] - most);
    }
    SYNCHRONIZE();
    for (uint p = thread; p < count && thread < LANES; p += LANES) {
        sum += scores[own + p];
    }
    part[thread] = sum;
    sum_lanes(part, thread);
    const float share = 1.0f / part[0];
    for (uint i = thread; i < size; i += 128) {
        float mixed = 0.0f;
        for (uint p = 0; p < count; p++) {
            mixed += scores[own + p] * values[(size_t)p * width + shared + i];
        }
        out[row * size + i] = mixed * share;
    }
}

KERNEL(128) swiglu(GLOBAL float *gate, GLOBAL const float *up, uint columns)
{
    const uint column = GROUP(0) * 128 + THREAD();
    const size_t i = (size_t)GROUP(1) * columns + column;
    if (column < columns) {
        gate[i] = gate[i] / (1.0f + exponential(-gate[i])) * up[i];
    }
}
