/* gguf.c: reads the header of a GGUF file, version 2 or 3, with the tensor descriptions but without the tensor data.
 * ggml's docs/gguf.md documents the format. All numbers are little-endian, and counts and lengths have 64 bits.
 *
 * A model consists of an input layer (token_embd and other tensors without a block), its blocks ("blk.N."), and an
 * output layer. Without output.weight, the output shares the weights of token_embd. */
#include "input.h"
#include "model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_BYTES_MAX = 65535, /* limit of the format */
    ENTRIES_MAX = 1 << 20, /* for keys and for tensors; a larger count means a corrupt file */
    ARRAYS_MAX = 8,        /* nesting depth */
    BLOCKS_MAX = GPUHAL_PLACEMENT_LAYERS_MAX - 2,
    DIMENSIONS_MAX = 4,
    PARTS_MAX = 99999,
    CONTEXT_DEFAULT = 4096
};

/* Value types, by the format's numbers. */
enum { TYPE_BOOL = 7, TYPE_STRING = 8, TYPE_ARRAY = 9, TYPES = 13 };
static const unsigned char value_bytes[TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

/* Elements and bytes in a block, indexed by ggml's type number. Gaps are removed types. */
static const struct {
    unsigned short elements, bytes;
} tensor_types[] = {
    [0] = {1, 4},      [1] = {1, 2},      [2] = {32, 18},   [3] = {32, 20},    [6] = {32, 22},    [7] = {32, 24},
    [8] = {32, 34},    [9] = {32, 36},    [10] = {256, 84}, [11] = {256, 110}, [12] = {256, 144}, [13] = {256, 176},
    [14] = {256, 210}, [15] = {256, 292}, [16] = {256, 66}, [17] = {256, 74},  [18] = {256, 98},  [19] = {256, 50},
    [20] = {32, 18},   [21] = {256, 110}, [22] = {256, 82}, [23] = {256, 136}, [24] = {1, 1},     [25] = {1, 2},
    [26] = {1, 4},     [27] = {1, 8},     [28] = {1, 8},    [29] = {256, 56},  [30] = {1, 2},     [34] = {256, 54},
    [35] = {256, 66},  [39] = {32, 17},
};

typedef struct metadata {
    uint64_t blocks, context, embedding, heads, key_length, value_length;
    uint64_t kv_heads;     /* number of key/value heads if it is the same in all blocks */
    uint64_t *kv_heads_of; /* one number for each block if they differ */
    uint64_t kv_heads_count;
    bool has_kv_heads;
    uint64_t parts; /* number of files of the model; 0 and 1 mean a single file */
} metadata;

typedef struct tensor_sums {
    uint64_t embedding_bytes; /* token_embd.weight */
    uint64_t output_bytes;    /* output.weight; 0 if missing */
} tensor_sums;

static bool read_bytes(gpuhal_input *input, void *to, size_t bytes)
{
    return fread(to, 1, bytes, input->file) == bytes || gpuhal_input_fail(input, "the file is cut off");
}

static bool read_number(gpuhal_input *input, unsigned bytes, uint64_t *out)
{
    unsigned char raw[8] = {0};
    *out = 0;
    if (!read_bytes(input, raw, bytes)) {
        return false;
    }
    for (unsigned i = 0; i < bytes; i++) {
        *out |= (uint64_t)raw[i] << 8 * i;
    }
    return true;
}

static bool skip(gpuhal_input *input, uint64_t bytes)
{
    char buffer[4096]; /* the data is read, because seeking would not detect a truncated file */
    for (; bytes > 0; bytes -= bytes < sizeof buffer ? bytes : sizeof buffer) {
        if (!read_bytes(input, buffer, bytes < sizeof buffer ? bytes : sizeof buffer)) {
            return false;
        }
    }
    return true;
}

/* Reads a string and truncates it if it does not fit. A zero byte ends it early. */
static bool read_text(gpuhal_input *input, uint64_t most, char *to, size_t size)
{
    uint64_t length = 0;
    if (!read_number(input, 8, &length)) {
        return false;
    }
    if (length > most) {
        return gpuhal_input_fail(input, "a name has %" PRIu64 " bytes; %" PRIu64 " at most are read", length,
                                most);
    }
    const size_t kept = length < size ? (size_t)length : size - 1;
    to[kept] = '\0';
    return read_bytes(input, to, kept) && skip(input, length - kept);
}

/* ---- metadata */

static bool skip_value(gpuhal_input *input, uint64_t type, unsigned depth)
{
    uint64_t inner = 0, count = 0;
    if (type == TYPE_STRING) {
        return read_number(input, 8, &count) && skip(input, count);
    }
    if (type != TYPE_ARRAY) {
        return type < TYPES ? skip(input, value_bytes[type])
                            : gpuhal_input_fail(input, "a value has type %" PRIu64, type);
    }
    if (depth == ARRAYS_MAX) {
        return gpuhal_input_fail(input, "arrays lie in each other too deeply");
    }
    if (!read_number(input, 4, &inner) || !read_number(input, 8, &count)) {
        return false;
    }
    if (inner < TYPES && value_bytes[inner] > 0) {
        return count <= UINT64_MAX / 8 ? skip(input, count * value_bytes[inner])
                                       : gpuhal_input_fail(input, "an array has %" PRIu64 " elements", count);
    }
    for (uint64_t i = 0; i < count; i++) {
        if (!skip_value(input, inner, depth + 1)) {
            return false;
        }
    }
    return true;
}

/* Reads a whole number of any size. Skips any other value and leaves *out unchanged. */
static bool read_value(gpuhal_input *input, uint64_t type, uint64_t *out)
{
    const bool whole = type < 6 || type == TYPE_BOOL || type == 10 || type == 11;
    return whole ? read_number(input, value_bytes[type], out) : skip_value(input, type, 0);
}

/* Reads the number of key/value heads: one for the model, or one for each block. */
static bool read_heads(gpuhal_input *input, uint64_t type, metadata *meta)
{
    uint64_t inner = 0, count = 0;
    meta->has_kv_heads = true;
    if (type != TYPE_ARRAY) {
        return read_value(input, type, &meta->kv_heads);
    }
    if (!read_number(input, 4, &inner) || !read_number(input, 8, &count)) {
        return false;
    }
    if (count > BLOCKS_MAX || inner >= TYPES || value_bytes[inner] == 0) {
        return gpuhal_input_fail(input, "head_count_kv is not a list of numbers");
    }
    free(meta->kv_heads_of);
    meta->kv_heads_of = calloc(count + 1, sizeof *meta->kv_heads_of);
    meta->kv_heads_count = meta->kv_heads_of != NULL ? count : 0;
    for (uint64_t i = 0; i < count && meta->kv_heads_of != NULL; i++) {
        if (!read_value(input, inner, &meta->kv_heads_of[i])) {
            return false;
        }
    }
    return meta->kv_heads_of != NULL || gpuhal_input_fail(input, "no memory");
}

static bool read_entry(gpuhal_input *input, gpuhal_model *model, metadata *meta)
{
    char key[256];
    uint64_t type = 0;
    if (!read_text(input, KEY_BYTES_MAX, key, sizeof key) || !read_number(input, 4, &type)) {
        return false;
    }
    const struct {
        const char *name;
        uint64_t *number;
    } numbers[] = {{"block_count", &meta->blocks},
                   {"context_length", &meta->context},
                   {"embedding_length", &meta->embedding},
                   {"attention.head_count", &meta->heads},
                   {"attention.key_length", &meta->key_length},
                   {"attention.value_length", &meta->value_length}};
    if (strcmp(key, "split.count") == 0) {
        return read_value(input, type, &meta->parts);
    }
    if (type == TYPE_STRING && strcmp(key, "general.architecture") == 0) {
        return read_text(input, KEY_BYTES_MAX, model->architecture, sizeof model->architecture);
    }
    if (type == TYPE_STRING && strcmp(key, "general.name") == 0) {
        return read_text(input, UINT64_C(1) << 30, model->name, sizeof model->name);
    }
    const char *dot = strchr(key, '.');
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && dot != NULL; i++) {
        if (strcmp(dot + 1, numbers[i].name) == 0) {
            return read_value(input, type, numbers[i].number);
        }
    }
    return dot != NULL && strcmp(dot + 1, "attention.head_count_kv") == 0 ? read_heads(input, type, meta)
                                                                          : skip_value(input, type, 0);
}

/* ---- tensors */

/* Finds the layer of a tensor: "blk.7.attn_q.weight" belongs to block 7, which is layer 8. */
static bool layer_of(const char *name, uint32_t blocks, uint32_t *out_layer)
{
    char *rest;
    if (strncmp(name, "blk.", 4) == 0) {
        const unsigned long block = strtoul(name + 4, &rest, 10);
        *out_layer = (uint32_t)block + 1;
        return *rest == '.' && name[4] >= '0' && name[4] <= '9' && block < blocks;
    }
    *out_layer = strncmp(name, "output", 6) == 0 ? blocks + 1 : 0;
    return true;
}

static bool tensor_bytes(gpuhal_input *input, const char *name, uint64_t *out_bytes)
{
    uint64_t dimensions = 0, elements = 1, type = 0, offset = 0;
    if (!read_number(input, 4, &dimensions)) {
        return false;
    }
    if (dimensions > DIMENSIONS_MAX) {
        return gpuhal_input_fail(input, "%s has %" PRIu64 " dimensions", name, dimensions);
    }
    for (uint64_t i = 0; i < dimensions; i++) {
        uint64_t size = 0;
        if (!read_number(input, 8, &size)) {
            return false;
        }
        if (size == 0 || elements > (UINT64_C(1) << 56) / size) {
            return gpuhal_input_fail(input, "%s has a dimension of %" PRIu64, name, size);
        }
        elements *= size;
    }
    if (!read_number(input, 4, &type) || !read_number(input, 8, &offset)) {
        return false;
    }
    if (type >= sizeof tensor_types / sizeof *tensor_types || tensor_types[type].elements == 0) {
        return gpuhal_input_fail(input, "%s has type %" PRIu64 ", which this program does not know", name, type);
    }
    *out_bytes = (elements + tensor_types[type].elements - 1) / tensor_types[type].elements * tensor_types[type].bytes;
    return true;
}

static bool read_tensors(gpuhal_input *input, uint64_t count, gpuhal_model *model, tensor_sums *out)
{
    for (uint64_t i = 0; i < count; i++) {
        char name[256];
        uint32_t layer = 0;
        uint64_t bytes = 0;
        if (!read_text(input, KEY_BYTES_MAX, name, sizeof name) || !tensor_bytes(input, name, &bytes)) {
            return false;
        }
        if (!layer_of(name, model->block_count, &layer)) {
            return gpuhal_input_fail(input, "%s is in no block of %u", name, model->block_count);
        }
        if (model->layers[layer].weight_bytes > (UINT64_C(1) << 62) - bytes) {
            return gpuhal_input_fail(input, "layer %u has more bytes than there can be", layer);
        }
        model->layers[layer].weight_bytes += bytes;
        out->output_bytes += strcmp(name, "output.weight") == 0 ? bytes : 0;
        out->embedding_bytes += strcmp(name, "token_embd.weight") == 0 ? bytes : 0;
    }
    return true;
}

/* ---- the whole model */

static void add_states(gpuhal_model *model, const metadata *meta)
{
    const uint64_t heads = meta->heads > 0 ? meta->heads : 1;
    const uint64_t each = meta->embedding / heads;
    const uint64_t key = meta->key_length > 0 ? meta->key_length : each;
    const uint64_t value = meta->value_length > 0 ? meta->value_length : each;
    const uint64_t row = meta->embedding * 4; /* bytes passed between layers for a token, in F32 */
    for (uint32_t i = 0; i < model->layer_count; i++) {
        gpuhal_placement_layer *layer = &model->layers[i];
        const bool is_block = i > 0 && i <= model->block_count;
        const uint64_t all = meta->has_kv_heads ? meta->kv_heads : heads;
        const uint64_t own = meta->kv_heads_of == NULL            ? all
                             : i <= meta->kv_heads_count && i > 0 ? meta->kv_heads_of[i - 1]
                                                                  : 0;
        layer->state_bytes = is_block ? own * (key + value) * 2 * model->context : 0; /* in F16 */
        layer->output_bytes = row;
    }
    model->layers[0].read_bytes = row > 0 ? row : 1; /* each token reads one row of the embedding */
}

static bool make_layers(gpuhal_input *input, gpuhal_model *model, const metadata *meta, uint64_t context)
{
    if (meta->blocks == 0 || meta->blocks > BLOCKS_MAX) {
        return gpuhal_input_fail(input, "it has %" PRIu64 " blocks", meta->blocks);
    }
    const uint64_t numbers[] = {meta->embedding / 16, meta->heads, meta->key_length, meta->value_length,
                                meta->kv_heads};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i] > UINT16_MAX) { /* prevents overflow in their products */
            return gpuhal_input_fail(input, "a number of its metadata is %" PRIu64, numbers[i]);
        }
    }
    for (uint64_t i = 0; i < meta->kv_heads_count; i++) {
        if (meta->kv_heads_of[i] > UINT16_MAX) {
            return gpuhal_input_fail(input, "a block has %" PRIu64 " heads", meta->kv_heads_of[i]);
        }
    }
    const uint64_t usual = meta->context > 0 && meta->context < CONTEXT_DEFAULT ? meta->context : CONTEXT_DEFAULT;
    model->first_block = 1;
    model->block_count = (uint32_t)meta->blocks;
    model->context = context > 0 ? context : usual;
    if (!gpuhal_model_resize(model, model->block_count + 2)) {
        return gpuhal_input_fail(input, "no memory");
    }
    for (uint32_t i = 0; i < model->layer_count; i++) {
        snprintf(model->names[i], sizeof *model->names, "block %u", i - 1);
    }
    snprintf(model->names[0], sizeof *model->names, "input");
    snprintf(model->names[model->layer_count - 1], sizeof *model->names, "output");
    return true;
}

/* Without output.weight, the output layer uses the weights of the embedding. Then the embedding and the output become
 * layers that share these weights. Other tensors before and after the blocks become separate layers. */
static bool tie_output(gpuhal_input *input, gpuhal_model *model, const tensor_sums *found)
{
    if (found->output_bytes > 0 || found->embedding_bytes == 0) {
        return true;
    }
    const uint32_t last = model->layer_count; /* the tied output follows at last + 1; all other layers move up by one */
    if (!gpuhal_model_resize(model, model->layer_count + 2)) {
        return gpuhal_input_fail(input, "no memory");
    }
    for (uint32_t i = last; i > 0; i--) {
        const char *name = model->layers[i].name;
        model->layers[i] = model->layers[i - 1];
        model->layers[i].name = name;
        memcpy(model->names[i], model->names[i - 1], sizeof *model->names);
    }
    model->first_block++;
    const char *const names[] = {model->layers[0].name, model->layers[last + 1].name};
    model->layers[0] = model->layers[last + 1] =
        (gpuhal_placement_layer){.weight_bytes = found->embedding_bytes, .tie = 1};
    model->layers[0].name = names[0];
    model->layers[last + 1].name = names[1];
    model->layers[0].read_bytes = model->layers[1].read_bytes; /* one row */
    model->layers[0].output_bytes = model->layers[1].output_bytes;
    model->layers[1].read_bytes = 0;
    model->layers[1].weight_bytes -= found->embedding_bytes;
    snprintf(model->names[0], sizeof *model->names, "embedding");
    snprintf(model->names[last + 1], sizeof *model->names, "embedding again");
    return true;
}

static bool has_every_block(gpuhal_input *input, const gpuhal_model *model)
{
    for (uint32_t i = 0; i < model->block_count; i++) {
        if (model->layers[model->first_block + i].weight_bytes == 0) {
            return gpuhal_input_fail(input, "there is no tensor of block %u of %u", i, model->block_count);
        }
    }
    return true;
}

static bool read_header(gpuhal_input *input, gpuhal_model *model, metadata *meta, uint64_t *out_tensors)
{
    uint64_t version = 0, entries = 0;
    bool good = read_number(input, 4, &version);
    if (good && (version < 2 || version > 3)) {
        good = gpuhal_input_fail(input, "GGUF of version %" PRIu64 "; 2 and 3 are known", version);
    }
    good = good && read_number(input, 8, out_tensors) && read_number(input, 8, &entries);
    if (good && (*out_tensors > ENTRIES_MAX || entries > ENTRIES_MAX)) {
        good = gpuhal_input_fail(input, "it has %" PRIu64 " tensors and %" PRIu64 " keys; %d at most are read",
                                 *out_tensors, entries, ENTRIES_MAX);
    }
    for (uint64_t i = 0; good && i < entries; i++) {
        good = read_entry(input, model, meta);
    }
    return good;
}

/* Reads the tensors in another file of the model. The metadata of that file is not used. */
static bool read_part(gpuhal_input *input, const char *path, gpuhal_model *model, tensor_sums *found)
{
    char magic[4];
    metadata meta = {0};
    gpuhal_model unused = {0};
    uint64_t tensors = 0;
    gpuhal_input part = *input;
    part.file = fopen(path, "rbe");
    if (part.file == NULL) {
        return gpuhal_input_fail(input, "its part %s cannot be opened", path);
    }
    const bool good = read_bytes(&part, magic, sizeof magic) && memcmp(magic, "GGUF", 4) == 0 &&
                      read_header(&part, &unused, &meta, &tensors) && read_tensors(&part, tensors, model, found);
    free(meta.kv_heads_of);
    fclose(part.file);
    return good || gpuhal_input_fail(input, "its part %s is not a GGUF file", path);
}

/* Reads the model's other files. llama.cpp names the files NAME-00001-of-00003.gguf; the first file has the
 * metadata. */
static bool read_other_parts(gpuhal_input *input, uint64_t parts, gpuhal_model *model, tensor_sums *found)
{
    char end[64], path[4096];
    const size_t length = strlen(input->path);
    snprintf(end, sizeof end, "-00001-of-%05" PRIu64 ".gguf", parts);
    if (length < strlen(end) || strcmp(input->path + length - strlen(end), end) != 0) {
        return gpuhal_input_fail(input, "it is a part of %" PRIu64 ": give the first one, NAME%s", parts, end);
    }
    bool good = true;
    for (uint64_t i = 2; i <= parts && good; i++) {
        const int written = snprintf(path, sizeof path, "%.*s-%05" PRIu64 "-of-%05" PRIu64 ".gguf",
                                     (int)(length - strlen(end)), input->path, i, parts);
        good = written > 0 && (size_t)written < sizeof path && read_part(input, path, model, found);
    }
    return good;
}

bool gpuhal_model_read_gguf(gpuhal_input *input, uint64_t context, gpuhal_model *model)
{
    metadata meta = {0};
    tensor_sums found = {0};
    uint64_t tensors = 0;
    bool good = read_header(input, model, &meta, &tensors) && make_layers(input, model, &meta, context) &&
                read_tensors(input, tensors, model, &found);
    if (good && meta.parts > 1) {
        good = meta.parts <= PARTS_MAX ? read_other_parts(input, meta.parts, model, &found)
                                       : gpuhal_input_fail(input, "it has %" PRIu64 " parts", meta.parts);
    }
    good = good && has_every_block(input, model);
    if (good) {
        add_states(model, &meta);
        good = tie_output(input, model, &found);
    }
    free(meta.kv_heads_of);
    return good;
}
