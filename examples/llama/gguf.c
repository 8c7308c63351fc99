/* gguf.c: reads the header of a GGUF file, versions 2 and 3 (ggml's docs/gguf.md), but not the bytes of its tensors.
 *
 * The header is not trusted: every tensor must have the shape that the dimensions require, be inside the file, and
 * not overlap any other tensor. */
#include "gguf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS_MAX = 1024, TENSORS_MAX = 1 << 16, KEYS_MAX = 1 << 16 };
#define TENSOR_BYTES_MAX ((UINT64_C(1) << 32) - 4) /* kernels use 32-bit byte offsets */

bool llama_fail(llama_error *error, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error->text, sizeof error->text, format, list);
    va_end(list);
    return false;
}

uint64_t llama_row_bytes(uint32_t type, uint64_t columns)
{
    return type == TYPE_F32   ? columns * 4
           : type == TYPE_F16 ? columns * 2
                              : columns / 32 * (type == TYPE_Q8_0 ? 34 : 18);
}

const char *llama_type_name(uint32_t type)
{
    return type == TYPE_F32 ? "F32" : type == TYPE_F16 ? "F16" : type == TYPE_Q8_0 ? "Q8_0" : "Q4_0";
}

/* ---- tensors */

static bool read_entry(llama_reader *in, llama_entry *out)
{
    uint64_t dimensions, sizes[4] = {1, 1, 1, 1}, type;
    const char *path = in->model->path;
    if (!llama_read_name(in, out->name, sizeof out->name, false) || !llama_read_integer(in, 4, &dimensions)) {
        return false;
    }
    if (dimensions < 1 || dimensions > 4) {
        return llama_fail(in->error, "%s: tensor %s has %" PRIu64 " dimensions", path, out->name, dimensions);
    }
    for (uint64_t i = 0; i < dimensions; i++) {
        if (!llama_read_integer(in, 8, &sizes[i])) {
            return false;
        }
        if (sizes[i] < 1 || sizes[i] > SIDE_MAX || (i > 1 && sizes[i] != 1)) {
            return llama_fail(in->error, "%s: dimension %" PRIu64 " of tensor %s is %" PRIu64, path, i, out->name,
                              sizes[i]);
        }
    }
    if (!llama_read_integer(in, 4, &type) || !llama_read_integer(in, 8, &out->offset)) {
        return false;
    }
    if (type != TYPE_F32 && type != TYPE_F16 && type != TYPE_Q8_0 && type != TYPE_Q4_0) {
        return llama_fail(in->error, "%s: tensor %s has type %" PRIu64 "; this program reads F32, F16, Q8_0 and Q4_0",
                          path, out->name, type);
    }
    if (type != TYPE_F32 && type != TYPE_F16 && sizes[0] % 32 != 0) {
        return llama_fail(in->error, "%s: the rows of tensor %s have %" PRIu64 " elements, no multiple of 32", path,
                          out->name, sizes[0]);
    }
    out->tensor = (llama_tensor){.bytes = llama_row_bytes((uint32_t)type, sizes[0]) * sizes[1],
                                 .type = (uint32_t)type,
                                 .columns = (uint32_t)sizes[0],
                                 .rows = (uint32_t)sizes[1]};
    return out->tensor.bytes <= TENSOR_BYTES_MAX ||
           llama_fail(in->error, "%s: tensor %s has %" PRIu64 " bytes; this program takes 4 GiB", path, out->name,
                      out->tensor.bytes);
}

static int by_offset(const void *a, const void *b)
{
    const uint64_t left = ((const llama_entry *)a)->offset, right = ((const llama_entry *)b)->offset;
    return left < right ? -1 : left > right;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const llama_entry *)a)->name, ((const llama_entry *)b)->name);
}

/* Computes the positions of the tensors. Checks that the tensors are aligned, inside the file, and not overlapping. */
static bool place_entries(llama_reader *in)
{
    const char *path = in->model->path;
    if (in->alignment < 8 || in->alignment > (1 << 20) || (in->alignment & (in->alignment - 1)) != 0) {
        return llama_fail(in->error, "%s: general.alignment is %" PRIu64, path, in->alignment);
    }
    const uint64_t data = (in->at + in->alignment - 1) & ~(in->alignment - 1);
    qsort(in->entries, in->entry_count, sizeof *in->entries, by_offset);
    for (uint32_t i = 0; i < in->entry_count; i++) {
        llama_entry *own = &in->entries[i], *last = i > 0 ? own - 1 : NULL;
        if (own->offset % in->alignment != 0) {
            return llama_fail(in->error, "%s: tensor %s is at offset %" PRIu64 ", no multiple of %" PRIu64, path,
                              own->name, own->offset, in->alignment);
        }
        if (data > in->bytes || own->offset > in->bytes - data || own->tensor.bytes > in->bytes - data - own->offset) {
            return llama_fail(in->error, "%s is cut off: tensor %s should have %" PRIu64 " bytes at offset %" PRIu64,
                              path, own->name, own->tensor.bytes, own->offset);
        }
        if (last != NULL && own->offset - last->offset < last->tensor.bytes) {
            return llama_fail(in->error, "%s: tensors %s and %s overlap", path, last->name, own->name);
        }
        own->tensor.offset = data + own->offset;
        in->model->weight_bytes += own->tensor.bytes;
    }
    qsort(in->entries, in->entry_count, sizeof *in->entries, by_name);
    for (uint32_t i = 1; i < in->entry_count; i++) {
        if (by_name(&in->entries[i - 1], &in->entries[i]) == 0) {
            return llama_fail(in->error, "%s: tensor %s is there twice", path, in->entries[i].name);
        }
    }
    return true;
}

/* Finds a tensor of this shape. A vector has one row and type F32. */
static bool find(llama_reader *in, const char *name, uint32_t columns, uint32_t rows, bool must, llama_tensor *out)
{
    llama_entry wanted;
    snprintf(wanted.name, sizeof wanted.name, "%s", name);
    const llama_entry *found = bsearch(&wanted, in->entries, in->entry_count, sizeof wanted, by_name);
    if (!found) {
        return !must || llama_fail(in->error, "%s has no tensor %s", in->model->path, name);
    }
    if (found->tensor.columns != columns || found->tensor.rows != rows) {
        return llama_fail(in->error, "%s: tensor %s has %u x %u elements, and should have %u x %u", in->model->path,
                          name, found->tensor.columns, found->tensor.rows, columns, rows);
    }
    if (rows == 1 && found->tensor.type != TYPE_F32) {
        return llama_fail(in->error, "%s: tensor %s has type %s, and should have F32", in->model->path, name,
                          llama_type_name(found->tensor.type));
    }
    *out = found->tensor;
    return true;
}

static bool find_all(llama_reader *in)
{
    llama_model *model = in->model;
    const uint32_t d = model->embedding, q = model->heads * model->head_size, kv = model->kv_heads * model->head_size;
    const uint32_t f = model->feed_forward;
    const struct {
        const char *name;
        uint32_t columns, rows;
    } parts[LAYER_TENSORS] = {
        [ATTN_NORM] = {"attn_norm", d, 1}, [ATTN_Q] = {"attn_q", d, q},           [ATTN_K] = {"attn_k", d, kv},
        [ATTN_V] = {"attn_v", d, kv},      [ATTN_OUTPUT] = {"attn_output", q, d}, [FFN_NORM] = {"ffn_norm", d, 1},
        [FFN_GATE] = {"ffn_gate", d, f},   [FFN_UP] = {"ffn_up", d, f},           [FFN_DOWN] = {"ffn_down", f, d}};
    llama_tensor *whole = model->tensors;
    if (!find(in, "token_embd.weight", d, model->vocabulary, true, &whole[TOKEN_EMBD]) ||
        !find(in, "output_norm.weight", d, 1, true, &whole[OUTPUT_NORM]) ||
        !find(in, "output.weight", d, model->vocabulary, false, &whole[OUTPUT]) ||
        !find(in, "rope_freqs.weight", model->head_size / 2, 1, false, &whole[ROPE_FREQS])) {
        return false;
    }
    if (whole[OUTPUT].bytes == 0) { /* shared with the embedding */
        whole[OUTPUT] = whole[TOKEN_EMBD];
    }
    model->layers = calloc(model->layer_count, sizeof *model->layers);
    if (!model->layers) {
        return llama_fail(in->error, "there is no memory for the layers of %s", model->path);
    }
    for (uint32_t i = 0; i < model->layer_count; i++) {
        for (uint32_t part = 0; part < LAYER_TENSORS; part++) {
            char name[NAME_BYTES];
            snprintf(name, sizeof name, "blk.%u.%s.weight", i, parts[part].name);
            if (!find(in, name, parts[part].columns, parts[part].rows, true, &model->layers[i][part])) {
                return false;
            }
        }
    }
    return true;
}

/* ---- the whole file */

static bool check_range(llama_reader *in, const char *what, uint64_t value, uint64_t least, uint64_t most,
                        uint64_t multiple)
{
    return (value >= least && value <= most && value % multiple == 0) ||
           llama_fail(in->error,
                      "%s: %s is %" PRIu64 "; this program takes multiples of %" PRIu64 " from %" PRIu64 " to %" PRIu64,
                      in->model->path, what, value, multiple, least, most);
}

static bool check_dimensions(llama_reader *in)
{
    llama_model *model = in->model;
    if (strcmp(in->architecture, "llama") != 0) {
        return llama_fail(in->error, "%s is a model of architecture \"%s\"; this program runs \"llama\"", model->path,
                          in->architecture);
    }
    if (!check_range(in, "llama.block_count", model->layer_count, 1, LAYERS_MAX, 1) ||
        !check_range(in, "llama.embedding_length", model->embedding, 32, SIDE_MAX, 32) ||
        !check_range(in, "llama.feed_forward_length", model->feed_forward, 32, SIDE_MAX, 32) ||
        !check_range(in, "llama.context_length", model->context, 1, 1 << 24, 1) ||
        !check_range(in, "llama.attention.head_count", model->heads, 1, 1024, 1)) {
        return false;
    }
    in->kv_heads = in->kv_heads > 0 ? in->kv_heads : model->heads;
    const uint64_t size = in->key_length > 0 ? in->key_length : model->embedding / model->heads;
    if (!check_range(in, "the size of a head", size, 8, 256, 8) ||
        !check_range(in, "llama.attention.head_count_kv", in->kv_heads, 1, model->heads, 1) ||
        !check_range(in, "the width of all heads", size * model->heads, 32, SIDE_MAX, 32) ||
        !check_range(in, "the vocabulary", model->vocabulary, 1, SIDE_MAX, 1)) {
        return false;
    }
    if (model->heads % in->kv_heads != 0) {
        return llama_fail(in->error, "%s: %u heads cannot share %" PRIu64 " heads of keys and values", model->path,
                          model->heads, in->kv_heads);
    }
    if ((in->value_length > 0 && in->value_length != size) ||
        (in->rope_dimensions > 0 && in->rope_dimensions != size)) {
        return llama_fail(in->error, "%s: keys, values and rotated parts of a head have other sizes than %" PRIu64,
                          model->path, size);
    }
    if (!(model->epsilon >= 0 && model->epsilon < 1) || !(model->rope_base >= 1 && model->rope_base < 1e12f)) {
        return llama_fail(in->error, "%s: its epsilon is %g, and the base of its angles %g", model->path,
                          (double)model->epsilon, (double)model->rope_base);
    }
    model->kv_heads = (uint32_t)in->kv_heads;
    model->head_size = (uint32_t)size;
    return true;
}

/* Discards the vocabulary if it lacks scores or token kinds, or if tokenizer.c does not support its kind. Also discards
 * a special token that is not in the vocabulary. */
static void check_vocabulary(llama_reader *in)
{
    llama_model *model = in->model;
    if (strcmp(in->vocabulary_kind, "llama") != 0 || !model->texts || in->score_count != model->vocabulary ||
        in->kind_count != model->vocabulary) {
        free(model->pieces);
        model->pieces = NULL;
    }
    model->bos = model->bos < model->vocabulary ? model->bos : UINT32_MAX;
    model->eos = model->eos < model->vocabulary ? model->eos : UINT32_MAX;
}

static bool read_header(llama_reader *in)
{
    llama_model *model = in->model;
    uint64_t magic, version, tensors, keys;
    if (!llama_read_integer(in, 4, &magic) || magic != 0x46554747) {
        return llama_fail(in->error, "%s is not a GGUF file", model->path);
    }
    if (!llama_read_integer(in, 4, &version) || (version != 2 && version != 3)) {
        return llama_fail(in->error, "%s has version %" PRIu64 " of GGUF; this program reads 2 and 3", model->path,
                          version);
    }
    if (!llama_read_integer(in, 8, &tensors) || !llama_read_integer(in, 8, &keys)) {
        return false;
    }
    if (tensors > TENSORS_MAX || keys > KEYS_MAX) {
        return llama_fail(in->error, "%s says that it has %" PRIu64 " tensors and %" PRIu64 " keys", model->path,
                          tensors, keys);
    }
    model->version = (uint32_t)version;
    for (uint64_t i = 0; i < keys; i++) {
        if (!llama_read_key(in)) {
            return false;
        }
    }
    in->entries = calloc((size_t)tensors + 1, sizeof *in->entries);
    if (!in->entries) {
        return llama_fail(in->error, "there is no memory for the %" PRIu64 " tensors of %s", tensors, model->path);
    }
    for (; in->entry_count < tensors; in->entry_count++) {
        if (!read_entry(in, &in->entries[in->entry_count])) {
            return false;
        }
    }
    if (!place_entries(in)) {
        return false;
    }
    for (uint32_t i = 0; i < in->entry_count && !model->texts;
         i++) { /* without a vocabulary, the embedding's rows determine the number of tokens */
        model->vocabulary =
            strcmp(in->entries[i].name, "token_embd.weight") == 0 ? in->entries[i].tensor.rows : model->vocabulary;
    }
    if (!check_dimensions(in) || !find_all(in)) {
        return false;
    }
    check_vocabulary(in);
    return true;
}

bool llama_model_read(const char *path, llama_model *out, llama_error *error)
{
    *out = (llama_model){.path = path,
                         .bos = UINT32_MAX,
                         .eos = UINT32_MAX,
                         .adds_bos = true,
                         .adds_space = true,
                         .epsilon = 1e-5f,
                         .rope_base = 10000.0f,
                         .context = 4096};
    llama_reader in = {.model = out, .error = error, .alignment = 32, .file = fopen(path, "rb")};
    if (!in.file) {
        return llama_fail(error, "%s cannot be opened: %s", path, strerror(errno));
    }
    if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__) {
        fclose(in.file);
        return llama_fail(error, "%s has weights for machines that are little-endian", path);
    }
    const bool has_size = fseeko(in.file, 0, SEEK_END) == 0;
    const off_t end = has_size ? ftello(in.file) : -1;
    in.bytes = end > 0 ? (uint64_t)end : 0;
    const bool is_read = (end >= 0 && fseeko(in.file, 0, SEEK_SET) == 0) ? read_header(&in)
                                                                         : llama_fail(error, "%s is not a file", path);
    fclose(in.file);
    free(in.entries);
    if (!is_read) {
        llama_model_free(out);
    }
    return is_read;
}

void llama_model_free(llama_model *model)
{
    free(model->pieces);
    free(model->texts);
    free(model->layers);
    model->pieces = NULL;
    model->texts = NULL;
    model->layers = NULL;
}
