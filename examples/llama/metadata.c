/* metadata.c: reads the keys of a GGUF file and keeps the model's dimensions and its vocabulary. Before it allocates
 * memory for a number of elements, it checks that the rest of the file can contain that many. */
#include "gguf.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ARRAYS_MAX = 4 /* nesting depth */ };

/* Value types, with GGUF's numbers. */
enum { VALUE_INT32 = 5, VALUE_FLOAT32 = 6, VALUE_STRING = 8, VALUE_ARRAY = 9, VALUE_FLOAT64 = 12, VALUES = 13 };
static const unsigned char value_bytes[VALUES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/* ---- bytes */

bool llama_read_bytes(llama_reader *in, void *to, uint64_t bytes)
{
    if (bytes > in->bytes - in->at || fread(to, 1, (size_t)bytes, in->file) != bytes) {
        return llama_fail(in->error, "%s is cut off: it ends at byte %" PRIu64 " of its header", in->model->path,
                          in->at);
    }
    in->at += bytes;
    return true;
}

bool llama_skip_bytes(llama_reader *in, uint64_t count, uint64_t each)
{
    if (count > (in->bytes - in->at) / each) {
        return llama_fail(in->error,
                          "%s is cut off: it should have %" PRIu64 " values of %" PRIu64 " bytes at byte %" PRIu64,
                          in->model->path, count, each, in->at);
    }
    in->at += count * each;
    return fseeko(in->file, (off_t)in->at, SEEK_SET) == 0 ||
           llama_fail(in->error, "%s cannot be read", in->model->path);
}

bool llama_read_integer(llama_reader *in, unsigned bytes, uint64_t *out)
{
    unsigned char raw[8] = {0};
    *out = 0;
    if (!llama_read_bytes(in, raw, bytes)) {
        return false;
    }
    for (unsigned i = 0; i < bytes; i++) {
        *out |= (uint64_t)raw[i] << 8 * i;
    }
    return true;
}

/* Reads a string. If the string does not fit, truncates it if `cuts`, otherwise fails. */
bool llama_read_name(llama_reader *in, char *to, size_t size, bool cuts)
{
    uint64_t length;
    if (!llama_read_integer(in, 8, &length)) {
        return false;
    }
    if (length >= size && !cuts) {
        return llama_fail(in->error, "%s: a name at byte %" PRIu64 " has %" PRIu64 " bytes", in->model->path,
                          in->at - 8, length);
    }
    const uint64_t kept = length < size ? length : size - 1;
    to[kept] = '\0';
    return llama_read_bytes(in, to, kept) && llama_skip_bytes(in, length - kept, 1);
}

/* ---- metadata */

static bool skip_value(llama_reader *in, uint64_t type, unsigned depth)
{
    uint64_t inner, count;
    if (type == VALUE_STRING) {
        return llama_read_integer(in, 8, &count) && llama_skip_bytes(in, count, 1);
    }
    if (type != VALUE_ARRAY) {
        return type < VALUES ? llama_skip_bytes(in, 1, value_bytes[type])
                             : llama_fail(in->error, "%s: a value at byte %" PRIu64 " has type %" PRIu64,
                                          in->model->path, in->at, type);
    }
    if (!llama_read_integer(in, 4, &inner) || !llama_read_integer(in, 8, &count)) {
        return false;
    }
    if (inner < VALUES && value_bytes[inner] > 0) {
        return llama_skip_bytes(in, count, value_bytes[inner]);
    }
    if (depth == ARRAYS_MAX) {
        return llama_fail(in->error, "%s: arrays at byte %" PRIu64 " lie in each other too deeply", in->model->path,
                          in->at);
    }
    /* each element consumes bytes, so the loop ends at the end of the file at the latest */
    for (uint64_t i = 0; i < count; i++) {
        if (!skip_value(in, inner, depth + 1)) {
            return false;
        }
    }
    return true;
}

static bool read_u64(llama_reader *in, const char *key, uint64_t type, uint64_t *out)
{
    if (type >= VALUES || value_bytes[type] == 0 || type == VALUE_FLOAT32 || type == VALUE_FLOAT64) {
        return llama_fail(in->error, "%s: %s is not a whole number", in->model->path, key);
    }
    return llama_read_integer(in, value_bytes[type], out);
}

static bool read_u32(llama_reader *in, const char *key, uint64_t type, uint32_t *out)
{
    uint64_t number;
    if (!read_u64(in, key, type, &number)) {
        return false;
    }
    *out = (uint32_t)number;
    return number <= UINT32_MAX || llama_fail(in->error, "%s: %s is %" PRIu64, in->model->path, key, number);
}

static float float_of(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float value;
    memcpy(&value, &low, sizeof value);
    return value;
}

static bool read_float(llama_reader *in, const char *key, uint64_t type, float *out)
{
    uint64_t bits = 0;
    if (type != VALUE_FLOAT32) {
        return llama_fail(in->error, "%s: %s is not a number of 32 bits", in->model->path, key);
    }
    const bool is_read = llama_read_integer(in, 4, &bits);
    *out = float_of(bits);
    return is_read;
}

static bool read_flag(llama_reader *in, const char *key, uint64_t type, bool *out)
{
    uint64_t value = 0;
    const bool is_read = read_u64(in, key, type, &value);
    *out = value != 0;
    return is_read;
}

/* ---- the vocabulary: three arrays in any order */

static bool begin_array(llama_reader *in, const char *key, uint64_t type, uint64_t wanted, uint64_t least_bytes,
                        uint64_t *out_count)
{
    uint64_t inner;
    if (type != VALUE_ARRAY || !llama_read_integer(in, 4, &inner) || inner != wanted ||
        !llama_read_integer(in, 8, out_count)) {
        return llama_fail(in->error, "%s: %s is not an array of the right type", in->model->path, key);
    }
    if (*out_count > SIDE_MAX || *out_count > (in->bytes - in->at) / least_bytes) {
        return llama_fail(in->error, "%s: %s has %" PRIu64 " elements", in->model->path, key, *out_count);
    }
    llama_model *model = in->model;
    if (!model->pieces) {
        model->pieces = calloc(SIDE_MAX + 1, sizeof *model->pieces);
    }
    return model->pieces != NULL || llama_fail(in->error, "there is no memory for the vocabulary of %s", model->path);
}

static bool read_pieces(llama_reader *in, const char *key, uint64_t type)
{
    llama_model *model = in->model;
    uint64_t count, length;
    if (model->texts != NULL) {
        return llama_fail(in->error, "%s: %s is there twice", model->path, key);
    }
    if (!begin_array(in, key, type, VALUE_STRING, 8, &count)) {
        return false;
    }
    const uint64_t begin = in->at;
    for (uint64_t i = 0; i < count; i++) {
        if (!llama_read_integer(in, 8, &length) || !llama_skip_bytes(in, length, 1)) {
            return false;
        }
    }
    /* large enough for a terminator after each text, because each length takes 8 bytes */
    const uint64_t bytes = in->at - begin;
    model->texts = malloc((size_t)bytes + 1);
    if (!model->texts) {
        return llama_fail(in->error, "there is no memory for the vocabulary of %s", model->path);
    }
    in->at = begin;
    char *to = model->texts;
    if (fseeko(in->file, (off_t)begin, SEEK_SET) != 0) {
        return llama_fail(in->error, "%s cannot be read", model->path);
    }
    for (uint64_t i = 0; i < count; i++) {
        if (!llama_read_integer(in, 8, &length) || length >= bytes - (uint64_t)(to - model->texts) ||
            !llama_read_bytes(in, to, length)) {
            return llama_fail(in->error, "%s changed while it was read", model->path);
        }
        to[length] = '\0';
        model->pieces[i].text = to;
        model->pieces[i].bytes = (uint32_t)length;
        to += length + 1;
    }
    model->vocabulary = (uint32_t)count;
    return true;
}

static bool read_scores(llama_reader *in, const char *key, uint64_t type)
{
    uint64_t bits;
    if (!begin_array(in, key, type, VALUE_FLOAT32, 4, &in->score_count)) {
        return false;
    }
    for (uint64_t i = 0; i < in->score_count; i++) {
        if (!llama_read_integer(in, 4, &bits)) {
            return false;
        }
        in->model->pieces[i].score = float_of(bits);
    }
    return true;
}

static bool read_kinds(llama_reader *in, const char *key, uint64_t type)
{
    uint64_t kind;
    if (!begin_array(in, key, type, VALUE_INT32, 4, &in->kind_count)) {
        return false;
    }
    for (uint64_t i = 0; i < in->kind_count; i++) {
        if (!llama_read_integer(in, 4, &kind)) {
            return false;
        }
        in->model->pieces[i].kind = (uint32_t)kind;
    }
    return true;
}

bool llama_read_key(llama_reader *in)
{
    llama_model *model = in->model;
    char key[NAME_BYTES];
    uint64_t type;
    if (!llama_read_name(in, key, sizeof key, true) || !llama_read_integer(in, 4, &type)) {
        return false;
    }
    const struct {
        const char *key;
        uint32_t *number;
    } numbers[] = {{"llama.block_count", &model->layer_count},    {"llama.context_length", &model->context},
                   {"llama.embedding_length", &model->embedding}, {"llama.feed_forward_length", &model->feed_forward},
                   {"llama.attention.head_count", &model->heads}, {"tokenizer.ggml.bos_token_id", &model->bos},
                   {"tokenizer.ggml.eos_token_id", &model->eos}};
    const struct {
        const char *key;
        uint64_t *number;
    } others[] = {{"general.alignment", &in->alignment},
                  {"llama.attention.head_count_kv", &in->kv_heads},
                  {"llama.attention.key_length", &in->key_length},
                  {"llama.attention.value_length", &in->value_length},
                  {"llama.rope.dimension_count", &in->rope_dimensions}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(key, numbers[i].key) == 0) {
            return read_u32(in, key, type, numbers[i].number);
        }
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strcmp(key, others[i].key) == 0) {
            return read_u64(in, key, type, others[i].number);
        }
    }
    const bool is_text = type == VALUE_STRING;
    return strcmp(key, "general.architecture") == 0 && is_text
               ? llama_read_name(in, in->architecture, sizeof in->architecture, true)
           : strcmp(key, "tokenizer.ggml.model") == 0 && is_text
               ? llama_read_name(in, in->vocabulary_kind, sizeof in->vocabulary_kind, true)
           : strcmp(key, "llama.attention.layer_norm_rms_epsilon") == 0 ? read_float(in, key, type, &model->epsilon)
           : strcmp(key, "llama.rope.freq_base") == 0                   ? read_float(in, key, type, &model->rope_base)
           : strcmp(key, "tokenizer.ggml.add_bos_token") == 0           ? read_flag(in, key, type, &model->adds_bos)
           : strcmp(key, "tokenizer.ggml.add_space_prefix") == 0        ? read_flag(in, key, type, &model->adds_space)
           : strcmp(key, "tokenizer.ggml.tokens") == 0                  ? read_pieces(in, key, type)
           : strcmp(key, "tokenizer.ggml.scores") == 0                  ? read_scores(in, key, type)
           : strcmp(key, "tokenizer.ggml.token_type") == 0              ? read_kinds(in, key, type)
                                                                        : skip_value(in, type, 0);
}
