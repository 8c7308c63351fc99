#version 450
// kernels.comp: the kernels of kernels.cl as shaders. The macro KERNEL_name selects the kernel of a shader. For the
// matrix kernels the macro is KERNEL_matrix; TYPE is the type of the weights, and TILE the number of tokens per group.
// The kernels add in the order that kernels.c describes. Values that must not be fused are `precise`.

const uint TYPE_F32 = 0, TYPE_F16 = 1, TYPE_Q4_0 = 2, TYPE_Q8_0 = 8, LANES = 32, GROUP_ROWS = 4;

#if defined(KERNEL_rms_norm) || defined(KERNEL_quantize)
layout(local_size_x = 32) in;
#else
layout(local_size_x = 128) in;
#endif
#define BUFFER(number, name, type) layout(std430, set = 0, binding = number) buffer Buffer##number { type name[]; }
#define THREAD                     gl_LocalInvocationID.x
#define GROUP                      gl_WorkGroupID

shared float part[128];

// Returns the sum of 32 lanes, starting at the first lane of the thread's row. Every thread of the group must call this
// function.
float sum_lanes(float own)
{
    part[THREAD] = own;
    for (uint width = LANES / 2; width > 0; width /= 2) {
        barrier();
        if (THREAD % LANES < width) {
            part[THREAD] += part[THREAD + width];
        }
    }
    barrier();
    const float sum = part[THREAD / LANES * LANES];
    barrier();
    return sum;
}

float half_of(uint word, uint byte)
{
    return unpackHalf2x16(word >> (byte & 2) * 8 & 0xffff).x;
}

int signed_byte(uint word, uint index)
{
    return bitfieldExtract(int(word), int(index * 8), 8);
}

// Returns element `lane` * 4 + `i` of a Q4_0 block. `word` contains the elements of all lanes that have the same number
// modulo 4.
int nibble(uint word, uint lane, uint i)
{
    return int(word >> (8 * i + (lane < 4 ? 0 : 4)) & 15) - 8;
}

float exponential(float x)
{
    x = x >= -87.0 ? x : -87.0;
    x = x <= 88.0 ? x : 88.0;
    precise float n = floor(x * 1.44269504 + 0.5);
    precise float r = (x - n * 0.693359375) - n * -2.12194440e-4;
    precise float p = 1.9875691500e-4;
    p = p * r + 1.3981999507e-3;
    p = p * r + 8.3334519073e-3;
    p = p * r + 4.1665795894e-2;
    p = p * r + 1.6666665459e-1;
    p = p * r + 5.0000001201e-1;
    p = (p * r) * r + r + 1.0;
    p = p * intBitsToFloat((int(n) + 127) << 23);
    return p;
}

#ifdef KERNEL_matrix
// A group computes four rows and up to TILE tokens. 32 threads share a row. If fewer tokens are left, the last token is
// computed again instead, but the result is not written.
BUFFER(0, y, float);
BUFFER(1, w, uint);
BUFFER(2, x, uint);
BUFFER(3, first, uint);
layout(push_constant) uniform Values { uint columns, rows, tokens, adds; };

uint word_at(uint byte)
{
    const uint word = w[byte / 4];
    return (byte & 2) == 0 ? word : word >> 16 | w[byte / 4 + 1] << 16;
}

void main()
{
    const uint row = GROUP.y * GROUP_ROWS + THREAD / LANES, own = min(row, rows - 1), lane = THREAD % LANES;
    precise float sums[TILE];
    for (uint t = 0; t < TILE; t++) {
        sums[t] = 0.0;
    }
#if TYPE == 0 || TYPE == 1
    for (uint i = lane; i < columns; i += LANES) {
        const uint at = own * columns + i;
        const float weight = TYPE == 0 ? uintBitsToFloat(w[at]) : half_of(w[at / 2], at * 2);
        for (uint t = 0; t < TILE; t++) {
            sums[t] += weight * uintBitsToFloat(x[min(GROUP.x * TILE + t, tokens - 1) * columns + i]);
        }
    }
#else
    const uint blocks = columns / 32, bytes = TYPE == 8 ? 34 : 18;
    for (uint b = lane / 8; b < blocks; b += 4) {
        const uint at = (own * blocks + b) * bytes, word = word_at(at + 2 + (TYPE == 8 ? lane % 8 : lane % 4) * 4);
        const float scale = half_of(w[at / 4], at);
        for (uint t = 0; t < TILE; t++) {
            const uint from = min(GROUP.x * TILE + t, tokens - 1) * (columns / 4 + blocks);
            int products = 0;
            for (uint i = 0; i < 4; i++) {
                const int weight = TYPE == 8 ? signed_byte(word, i) : nibble(word, lane % 8, i);
                products += weight * signed_byte(x[from + b * 8 + lane % 8], i);
            }
            precise float both = scale * uintBitsToFloat(x[from + columns / 4 + b]);
            sums[t] += float(products) * both;
        }
    }
#endif
    for (uint t = 0; t < TILE; t++) {
        const uint token = GROUP.x * TILE + t, at = (first[0] + token) * rows + row;
        const float sum = sum_lanes(sums[t]);
        if (lane == 0 && row < rows && token < tokens) {
            y[at] = adds != 0 ? y[at] + sum : sum;
        }
    }
}
#endif

#ifdef KERNEL_get_rows
BUFFER(0, result, float);
BUFFER(1, table, uint);
BUFFER(2, numbers, uint);
BUFFER(3, first, uint);
layout(push_constant) uniform Values { uint columns, type; };

uint word_at(uint byte)
{
    const uint word = table[byte / 4];
    return (byte & 2) == 0 ? word : word >> 16 | table[byte / 4 + 1] << 16;
}

void main()
{
    const uint row = numbers[first[0] + GROUP.x];
    for (uint i = THREAD; i < columns; i += 128) {
        const uint element = row * columns + i, block = (row * (columns / 32) + i / 32) * (type == TYPE_Q8_0 ? 34 : 18);
        float value;
        if (type == TYPE_F32) {
            value = uintBitsToFloat(table[element]);
        } else if (type == TYPE_F16) {
            value = half_of(table[element / 2], element * 2);
        } else if (type == TYPE_Q8_0) {
            value = half_of(table[block / 4], block) * float(signed_byte(word_at(block + 2 + i % 32 / 4 * 4), i % 4));
        } else {
            value = half_of(table[block / 4], block) *
                    float(nibble(word_at(block + 2 + i % 16 / 4 * 4), i % 32 / 4, i % 4));
        }
        result[GROUP.x * columns + i] = value;
    }
}
#endif

#ifdef KERNEL_rms_norm
BUFFER(0, y, float);
BUFFER(1, x, float);
BUFFER(2, weight, float);
layout(push_constant) uniform Values { uint columns; float epsilon; uint first; };

void main()
{
    const uint to = GROUP.x * columns, from = (first + GROUP.x) * columns;
    precise float sum = 0.0;
    for (uint i = THREAD; i < columns; i += LANES) {
        sum += x[from + i] * x[from + i];
    }
    precise float scale = 1.0 / sqrt(sum_lanes(sum) / float(columns) + epsilon);
    for (uint i = THREAD; i < columns; i += LANES) {
        precise float scaled = x[from + i] * scale;
        y[to + i] = scaled * weight[i];
    }
}
#endif

#ifdef KERNEL_quantize
// Each thread quantizes a block.
BUFFER(0, q, uint);
BUFFER(1, x, float);
layout(push_constant) uniform Values { uint columns; };

void main()
{
    const uint blocks = columns / 32, block = GROUP.x * 32 + THREAD, row = GROUP.y * (columns / 4 + blocks);
    const uint from = GROUP.y * columns + block * 32;
    if (block >= blocks) {
        return;
    }
    float most = 0.0;
    for (uint i = 0; i < 32; i++) {
        const float size = abs(x[from + i]);
        most = size > most ? size : most;
    }
    const float inverse = most > 0.0 ? 127.0 / most : 0.0;
    for (uint i = 0; i < 8; i++) {
        uint word = 0;
        for (uint j = 0; j < 4; j++) {
            precise float scaled = x[from + i * 4 + j] * inverse + 0.5;
            float value = floor(scaled);
            value = value >= -127.0 ? value : -127.0;
            value = value <= 127.0 ? value : 127.0;
            word |= (uint(int(value)) & 255) << 8 * j;
        }
        q[row + block * 8 + i] = word;
    }
    q[row + columns / 4 + block] = floatBitsToUint(most / 127.0);
}
#endif

#ifdef KERNEL_rope
BUFFER(0, x, float);
BUFFER(1, angles, float);
BUFFER(2, position, uint);
BUFFER(3, first, uint);
layout(push_constant) uniform Values { uint heads, size; };

void main()
{
    const uint row = (first[0] + GROUP.x) * heads * size, angle = (position[0] + GROUP.x) * size;
    for (uint i = THREAD * 2; i < heads * size; i += 256) {
        const float a = x[row + i], b = x[row + i + 1], c = angles[angle + i % size], s = angles[angle + i % size + 1];
        precise float left = a * c - b * s;
        precise float right = a * s + b * c;
        x[row + i] = left;
        x[row + i + 1] = right;
    }
}
#endif

#ifdef KERNEL_attention
// Each group computes one head of one token.
BUFFER(0, result, float);
BUFFER(1, q, float);
BUFFER(2, keys, float);
BUFFER(3, values, float);
layout(std430, set = 0, binding = 4) coherent buffer Scores { float scores[]; };
BUFFER(5, position, uint);
layout(push_constant) uniform Values { uint heads, kv_heads, size, stride; float scale; };

void main()
{
    const uint head = GROUP.x, token = GROUP.y, count = position[0] + token + 1;
    const uint width = kv_heads * size, shift = head / (heads / kv_heads) * size;
    const uint row = token * heads + head, own = row * stride;
    float most = -3.0e38;
    for (uint p = THREAD; p < count; p += 128) {
        const uint key = p * width + shift;
        precise float lane[8] = float[](0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
        for (uint i = 0; i < size; i += 8) {
            for (uint j = 0; j < 8; j++) {
                lane[j] += q[row * size + i + j] * keys[key + i + j];
            }
        }
        precise float sum = ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
        precise float score = sum * scale;
        scores[own + p] = score;
        most = score > most ? score : most;
    }
    part[THREAD] = most;
    for (uint step = 64; step > 0; step /= 2) {
        barrier();
        if (THREAD < step) {
            part[THREAD] = part[THREAD + step] > part[THREAD] ? part[THREAD + step] : part[THREAD];
        }
    }
    barrier();
    most = part[0];
    barrier();
    for (uint p = THREAD; p < count; p += 128) {
        scores[own + p] = exponential(scores[own + p] - most);
    }
    memoryBarrierBuffer();
    barrier();
    precise float sum = 0.0;
    for (uint p = THREAD; p < count && THREAD < LANES; p += LANES) {
        sum += scores[own + p];
    }
    sum_lanes(sum);
    const float share = 1.0 / part[0];
    for (uint i = THREAD; i < size; i += 128) {
        precise float mixed = 0.0;
        for (uint p = 0; p < count; p++) {
            mixed += scores[own + p] * values[p * width + shift + i];
        }
        result[row * size + i] = mixed * share;
    }
}
#endif

#ifdef KERNEL_swiglu
BUFFER(0, gate, float);
BUFFER(1, up, float);
layout(push_constant) uniform Values { uint columns; };

void main()
{
    const uint column = GROUP.x * 128 + THREAD, i = GROUP.y * columns + column;
    if (column < columns) {
        precise float divisor = 1.0 + exponential(-gate[i]);
        precise float silu = gate[i] / divisor;
        gate[i] = silu * up[i];
    }
}
#endif
