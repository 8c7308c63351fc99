/* make_model.c: writes a GGUF file of the Llama architecture with seeded weights, for tests and measurements:
 *
 *     make_model tiny.gguf --type q8_0 --layers 2 --embedding 64 --heads 4 --kv-heads 2 --feed-forward 128
 *
 * Equal options produce equal bytes on every machine with IEEE arithmetic. */
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 32, FIRST_WORD = 3 + 256, LETTERS = 27, VOCABULARY_MIN = FIRST_WORD + LETTERS };

typedef struct options {
    uint64_t layers, embedding, heads, kv_heads, feed_forward, vocabulary, context, seed, version, has_vocabulary,
        has_output;
    const char *type, *path;
} options;

typedef struct writer {
    FILE *file;
    uint64_t at, state; /* bytes written; state of the random numbers */
    uint32_t type;
    const options *own;
    float *row;
    unsigned char *packed;
} writer;

/* ---- numbers */

/* SplitMix64. */
static uint64_t next_random(writer *out)
{
    uint64_t z = out->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Returns a random number in [-1, 1). */
static float next_float(writer *out)
{
    return (float)(int32_t)(next_random(out) >> 40) * 0x1p-23f - 1.0f;
}

/* Rounds to the nearest half-precision number, ties to even. Requires a finite number below 65504. */
static uint16_t half_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude < 0x38800000) { /* subnormal: a multiple of 2^-24 */
        return (uint16_t)(sign | (uint32_t)lrintf(fabsf(value) * 0x1p24f));
    }
    return (uint16_t)(sign | (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13);
}

/* ---- bytes, little-endian */

static void put(writer *out, const void *bytes, uint64_t count)
{
    fwrite(bytes, 1, (size_t)count, out->file); /* main() checks ferror() */
    out->at += count;
}

static void put_number(writer *out, uint64_t value, unsigned bytes)
{
    unsigned char raw[8];
    for (unsigned i = 0; i < bytes; i++) {
        raw[i] = (unsigned char)(value >> 8 * i);
    }
    put(out, raw, bytes);
}

static void put_float(writer *out, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_number(out, bits, 4);
}

static void put_text(writer *out, const char *text)
{
    put_number(out, strlen(text), 8);
    put(out, text, strlen(text));
}

static void put_key_text(writer *out, const char *key, const char *value)
{
    put_text(out, key);
    put_number(out, 8, 4);
    put_text(out, value);
}

static void put_key_number(writer *out, const char *key, uint64_t value)
{
    put_text(out, key);
    put_number(out, 4, 4);
    put_number(out, value, 4);
}

static void put_key_float(writer *out, const char *key, float value)
{
    put_text(out, key);
    put_number(out, 6, 4);
    put_float(out, value);
}

static void put_array(writer *out, const char *key, uint64_t type, uint64_t count)
{
    put_text(out, key);
    put_number(out, 9, 4);
    put_number(out, type, 4);
    put_number(out, count, 8);
}

/* ---- the vocabulary in SentencePiece's format. Its words have one or more letters, and are ordered by length. */

static void word_of(uint64_t index, char text[64])
{
    char letters[16];
    int length = 0;
    for (uint64_t rest = index + 1; rest > 0; rest = (rest - 1) / LETTERS) {
        letters[length++] = (char)('`' + (rest - 1) % LETTERS); /* ` stands for the blank's mark */
    }
    text[0] = '\0';
    while (length-- > 0) {
        const char one[2] = {letters[length], '\0'};
        strcat(text, one[0] == '`' ? "\xe2\x96\x81" : one);
    }
}

static void put_vocabulary(writer *out)
{
    static const char *const special[] = {"<unk>", "<s>", "</s>"};
    const uint64_t count = out->own->vocabulary;
    put_key_text(out, "tokenizer.ggml.model", "llama");
    put_array(out, "tokenizer.ggml.tokens", 8, count);
    for (uint64_t i = 0; i < count; i++) {
        char text[64];
        if (i < 3) {
            snprintf(text, sizeof text, "%s", special[i]);
        } else if (i < FIRST_WORD) {
            snprintf(text, sizeof text, "<0x%02X>", (unsigned)(i - 3));
        } else {
            word_of(i - FIRST_WORD, text);
        }
        put_text(out, text);
    }
    put_array(out, "tokenizer.ggml.scores", 6, count);
    for (uint64_t i = 0; i < count; i++) {
        put_float(out, i < FIRST_WORD ? 0.0f : -(float)(i - FIRST_WORD));
    }
    put_array(out, "tokenizer.ggml.token_type", 5, count);
    for (uint64_t i = 0; i < count; i++) {
        put_number(out, i == 0 ? 2 : i < 3 ? 3 : i < FIRST_WORD ? 6 : 1, 4);
    }
    put_key_number(out, "tokenizer.ggml.unknown_token_id", 0);
    put_key_number(out, "tokenizer.ggml.bos_token_id", 1);
    put_key_number(out, "tokenizer.ggml.eos_token_id", 2);
}

/* ---- tensors */

typedef struct shape {
    const char *name;
    uint64_t columns, rows; /* one row: a vector of type F32 */
} shape;

static uint64_t row_bytes(uint32_t type, uint64_t columns)
{
    return type == 0 ? columns * 4 : type == 1 ? columns * 2 : columns / 32 * (type == 8 ? 34 : 18);
}

static uint64_t tensor_bytes(const writer *out, const shape *own)
{
    const uint64_t bytes = row_bytes(own->rows == 1 ? 0 : out->type, own->columns) * own->rows;
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void pack_q8_0(const float *from, unsigned char *to)
{
    float most = 0.0f;
    for (int i = 0; i < 32; i++) {
        most = fmaxf(most, fabsf(from[i]));
    }
    const uint16_t scale = half_of(most / 127.0f);
    to[0] = (unsigned char)scale;
    to[1] = (unsigned char)(scale >> 8);
    for (int i = 0; i < 32; i++) {
        to[2 + i] = (unsigned char)(signed char)lrintf(most > 0.0f ? from[i] * (127.0f / most) : 0.0f);
    }
}

static void pack_q4_0(const float *from, unsigned char *to)
{
    float most = 0.0f;
    for (int i = 0; i < 32; i++) {
        most = fabsf(from[i]) > fabsf(most) ? from[i] : most;
    }
    const uint16_t scale = half_of(most / -8.0f);
    to[0] = (unsigned char)scale;
    to[1] = (unsigned char)(scale >> 8);
    for (int i = 0; i < 16; i++) {
        const float factor = most != 0.0f ? -8.0f / most : 0.0f;
        const int low = (int)(from[i] * factor + 8.5f), high = (int)(from[i + 16] * factor + 8.5f);
        to[2 + i] = (unsigned char)((low < 15 ? low : 15) | (high < 15 ? high : 15) << 4);
    }
}

static void put_row(writer *out, uint32_t type, uint64_t columns)
{
    for (uint64_t i = 0; i < columns && type != 0; i += type == 1 ? 1 : 32) {
        const uint16_t half = half_of(out->row[i]);
        unsigned char *to = out->packed + row_bytes(type, i);
        if (type == 8) {
            pack_q8_0(out->row + i, to);
        } else if (type == 2) {
            pack_q4_0(out->row + i, to);
        } else {
            to[0] = (unsigned char)half;
            to[1] = (unsigned char)(half >> 8);
        }
    }
    for (uint64_t i = 0; i < columns && type == 0; i++) {
        uint32_t bits;
        memcpy(&bits, &out->row[i], sizeof bits);
        for (unsigned byte = 0; byte < 4; byte++) {
            out->packed[i * 4 + byte] = (unsigned char)(bits >> 8 * byte);
        }
    }
    put(out, out->packed, row_bytes(type, columns));
}

/* The elements of vectors are near 1. Matrices preserve the magnitude of their input. The embedding's elements are
 * large, so that tokens differ. */
static void put_tensor(writer *out, const shape *own)
{
    const bool is_vector = own->rows == 1, is_embedding = strcmp(own->name, "token_embd") == 0;
    const float size = is_embedding ? 1.0f : 1.75f / sqrtf((float)own->columns);
    const uint64_t end = out->at + tensor_bytes(out, own);
    for (uint64_t row = 0; row < own->rows; row++) {
        for (uint64_t i = 0; i < own->columns; i++) {
            out->row[i] = is_vector ? 1.0f + 0.25f * next_float(out) : size * next_float(out);
        }
        put_row(out, is_vector ? 0 : out->type, own->columns);
    }
    while (out->at < end) {
        put_number(out, 0, 1);
    }
}

enum { PARTS = 9 };

static void put_file(writer *out)
{
    const options *own = out->own;
    const uint64_t d = own->embedding, f = own->feed_forward, kv = d / own->heads * own->kv_heads;
    const shape whole[] = {{"token_embd", d, own->vocabulary}, {"output_norm", d, 1}, {"output", d, own->vocabulary}};
    const shape parts[PARTS] = {{"attn_norm", d, 1}, {"attn_q", d, d},      {"attn_k", d, kv},
                                {"attn_v", d, kv},   {"attn_output", d, d}, {"ffn_norm", d, 1},
                                {"ffn_gate", d, f},  {"ffn_up", d, f},      {"ffn_down", f, d}};
    const uint64_t count = own->has_output ? 3 : 2; /* without output.weight the output uses the embedding's weights */
    const uint64_t tensors = count + own->layers * PARTS;
    put(out, "GGUF", 4);
    put_number(out, own->version, 4);
    put_number(out, tensors, 8);
    put_number(out, own->has_vocabulary ? 18 : 11, 8);
    put_key_text(out, "general.architecture", "llama");
    put_key_text(out, "general.name", "seeded");
    put_key_number(out, "llama.block_count", own->layers);
    put_key_number(out, "llama.context_length", own->context);
    put_key_number(out, "llama.embedding_length", d);
    put_key_number(out, "llama.feed_forward_length", f);
    put_key_number(out, "llama.attention.head_count", own->heads);
    put_key_number(out, "llama.attention.head_count_kv", own->kv_heads);
    put_key_number(out, "llama.rope.dimension_count", d / own->heads);
    put_key_float(out, "llama.attention.layer_norm_rms_epsilon", 1e-5f);
    put_key_float(out, "llama.rope.freq_base", 10000.0f);
    if (own->has_vocabulary) {
        put_vocabulary(out);
    }
    uint64_t offset = 0;
    for (uint64_t i = 0; i < tensors; i++) {
        const shape *one = i < count ? &whole[i] : &parts[(i - count) % PARTS];
        char name[64];
        snprintf(name, sizeof name, i < count ? "%s.weight" : "blk.%2$" PRIu64 ".%1$s.weight", one->name,
                 (i - count) / PARTS);
        put_text(out, name);
        put_number(out, one->rows == 1 ? 1 : 2, 4);
        put_number(out, one->columns, 8);
        if (one->rows != 1) {
            put_number(out, one->rows, 8);
        }
        put_number(out, one->rows == 1 ? 0 : out->type, 4);
        put_number(out, offset, 8);
        offset += tensor_bytes(out, one);
    }
    while (out->at % ALIGNMENT != 0) {
        put_number(out, 0, 1);
    }
    for (uint64_t i = 0; i < tensors; i++) {
        put_tensor(out, i < count ? &whole[i] : &parts[(i - count) % PARTS]);
    }
}

/* ---- options */

static bool read_options(int count, char **words, options *out)
{
    const struct {
        const char *name;
        uint64_t *value;
    } numbers[] = {{"--layers", &out->layers},
                   {"--embedding", &out->embedding},
                   {"--heads", &out->heads},
                   {"--kv-heads", &out->kv_heads},
                   {"--feed-forward", &out->feed_forward},
                   {"--vocabulary", &out->vocabulary},
                   {"--context", &out->context},
                   {"--seed", &out->seed},
                   {"--version", &out->version},
                   {"--has-vocabulary", &out->has_vocabulary},
                   {"--has-output", &out->has_output}};
    for (int i = 1; i < count; i++) {
        size_t at = 0;
        if (words[i][0] != '-') {
            out->path = words[i];
            continue;
        }
        const char *value = i + 1 < count ? words[i + 1] : "";
        while (at < sizeof numbers / sizeof *numbers && strcmp(words[i], numbers[at].name) != 0) {
            at++;
        }
        if (strcmp(words[i], "--type") == 0) {
            out->type = value;
        } else if (at == sizeof numbers / sizeof *numbers || *value == '\0') {
            fprintf(stderr, "make_model: %s is not an option with a value\n", words[i]);
            return false;
        } else {
            *numbers[at].value = strtoull(value, NULL, 10);
        }
        i++;
    }
    return true;
}

static bool check_options(const options *own, uint32_t *out_type)
{
    static const struct {
        const char *name;
        uint32_t number;
    } types[] = {{"f32", 0}, {"f16", 1}, {"q4_0", 2}, {"q8_0", 8}};
    *out_type = UINT32_MAX;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        *out_type = strcmp(own->type, types[i].name) == 0 ? types[i].number : *out_type;
    }
    const uint64_t sides[] = {own->embedding, own->feed_forward, own->vocabulary,
                              own->heads,     own->kv_heads,     own->layers};
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
        if (sides[i] < 1 || sides[i] > 1000000) {
            fprintf(stderr, "make_model: a size of %" PRIu64 " is not between 1 and 1000000\n", sides[i]);
            return false;
        }
    }
    if (!own->path || *out_type == UINT32_MAX || own->embedding % 32 != 0 || own->feed_forward % 32 != 0 ||
        own->embedding % own->heads != 0 || own->heads % own->kv_heads != 0 || own->vocabulary < VOCABULARY_MIN) {
        fprintf(
            stderr,
            "make_model: it takes a file, a --type of f32, f16, q8_0 and q4_0, multiples of 32 for --embedding and\n"
            "--feed-forward, of --heads for --embedding, of --kv-heads for --heads, and a --vocabulary of %d or more\n",
            VOCABULARY_MIN);
        return false;
    }
    return true;
}

int main(int count, char **words)
{
    options own = {.layers = 2,
                   .embedding = 64,
                   .heads = 4,
                   .kv_heads = 2,
                   .feed_forward = 128,
                   .vocabulary = 320,
                   .context = 256,
                   .seed = 1,
                   .version = 3,
                   .has_vocabulary = 1,
                   .has_output = 1,
                   .type = "f32"};
    uint32_t type;
    if (!read_options(count, words, &own) || !check_options(&own, &type)) {
        return 2;
    }
    const uint64_t widest = own.embedding > own.feed_forward ? own.embedding : own.feed_forward;
    writer out = {.file = fopen(own.path, "wb"),
                  .state = own.seed,
                  .type = type,
                  .own = &own,
                  .row = malloc((size_t)widest * sizeof(float)),
                  .packed = malloc((size_t)widest * sizeof(float))};
    bool is_written = out.file != NULL && out.row != NULL && out.packed != NULL;
    if (is_written) {
        put_file(&out);
        is_written = ferror(out.file) == 0;
    }
    is_written = out.file != NULL && fclose(out.file) == 0 && is_written;
    free(out.row);
    free(out.packed);
    if (!is_written) {
        fprintf(stderr, "make_model: %s cannot be written\n", own.path);
    }
    return is_written ? 0 : 1;
}
