/* llama.h: a small inference engine for GGUF files of the Llama architecture that uses only libgpuhal.
 *
 *     gguf.c       reads and checks the file's header: dimensions and the position of each tensor
 *     metadata.c   reads the header's metadata: the dimensions and the vocabulary
 *     tokenizer.c  converts text to tokens and back
 *     programs.c   the kernels in each compiled format
 *     engine.c     opens the library, selects devices, splits the layers
 *     stage.c      one device: its kernels, its layers' weights from the disk, its memory
 *     forward.c    launches the layers and passes activations from device to device
 *     sample.c     selects the next token from the logits
 *     main.c       options and output
 *
 * The sizes in a file are checked when the file is read, so the products of sizes below cannot overflow. */
#ifndef LLAMA_H
#define LLAMA_H

#include <gpuhal/gpuhal.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct llama_error {
    char text[1024];
} llama_error;

/* Writes the message. Returns false, so that callers can write `return llama_fail(…)`. */
__attribute__((format(printf, 2, 3))) bool llama_fail(llama_error *error, const char *format, ...);

/* Types of weights, with ggml's numbers. A quantized block of 32 elements consists of a scale (F16) and 16 or 32
 * bytes. */
enum { TYPE_F32 = 0, TYPE_F16 = 1, TYPE_Q4_0 = 2, TYPE_Q8_0 = 8 };

/* A matrix in the file: `rows` rows of `columns` elements. */
typedef struct llama_tensor {
    uint64_t offset, bytes; /* position in the file; 0 bytes if the model does not have this matrix */
    uint32_t type, columns, rows;
} llama_tensor;

enum { ATTN_NORM, ATTN_Q, ATTN_K, ATTN_V, ATTN_OUTPUT, FFN_NORM, FFN_GATE, FFN_UP, FFN_DOWN, LAYER_TENSORS };
enum { TOKEN_EMBD, OUTPUT_NORM, OUTPUT, ROPE_FREQS, MODEL_TENSORS };

typedef struct llama_piece {
    const char *text; /* zero-terminated */
    uint32_t bytes;
    float score;
    uint32_t kind; /* GGUF's number: 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte */
} llama_piece;

typedef struct llama_model {
    const char *path;
    uint32_t version, layer_count, embedding, heads, kv_heads, head_size, feed_forward, vocabulary, context;
    float epsilon, rope_base;
    llama_tensor tensors[MODEL_TENSORS];
    llama_tensor (*layers)[LAYER_TENSORS];
    /* Exists only for a SentencePiece vocabulary. Otherwise NULL, and prompts consist of token numbers. */
    llama_piece *pieces;
    char *texts;       /* of the pieces */
    uint32_t bos, eos; /* UINT32_MAX: none */
    bool adds_bos, adds_space;
    uint64_t weight_bytes;
} llama_model;

bool llama_model_read(const char *path, llama_model *out, llama_error *error);
void llama_model_free(llama_model *model);
uint64_t llama_row_bytes(uint32_t type, uint64_t columns);
const char *llama_type_name(uint32_t type);

/* Appends the tokens of a text, after the BOS token if the model adds it. Each token of the text stands for at least
 * one byte, or for the blank that the model adds. Fails if there are more than `room` tokens. */
bool llama_tokenize(const llama_model *model, const char *text, uint32_t *tokens, uint32_t room, uint32_t *count,
                    llama_error *error);
void llama_print_token(const llama_model *model, uint32_t token, FILE *to);

/* ---- devices */

/* Rows of a matrix per group, and tokens that share a pass over the matrix's weights. The kernels define the same
 * constants. */
enum { GROUP_ROWS = 4, TILE_TOKENS = 4 };

typedef enum llama_kernel {
    KERNEL_GET_ROWS,
    KERNEL_NORM,
    KERNEL_QUANTIZE,
    KERNEL_ROPE,
    KERNEL_ATTENTION,
    KERNEL_SWIGLU,
    KERNEL_MATVEC_F32, /* one per type, in the order of type_index() */
    KERNEL_MATVEC_F16,
    KERNEL_MATVEC_Q8_0,
    KERNEL_MATVEC_Q4_0,
    KERNEL_MATMUL_F32,
    KERNEL_MATMUL_F16,
    KERNEL_MATMUL_Q8_0,
    KERNEL_MATMUL_Q4_0,
    KERNELS
} llama_kernel;

/* Name, parameters and group size of each kernel, the same in every format. */
extern const gpuhal_kernel_desc llama_kernels[KERNELS];

enum { CODES_MAX = 8 };

/* The formats of a kernel. Formats with all kernels in one program come last. */
typedef struct llama_codes {
    gpuhal_code codes[CODES_MAX];
    uint32_t count, separate; /* number of formats, and of formats with only this kernel */
} llama_codes;
void llama_codes_of(llama_kernel kernel, llama_codes *out);

/* Selects the CPU instruction set: `avx512`, `avx2` or `plain`. NULL selects the best one. Must be called before the
 * kernels are used. */
bool llama_choose_instructions(const char *name, llama_error *error);
const char *llama_instructions(void);

/* Regions of the activation buffer. */
enum {
    ACT_X,
    ACT_NORMED,
    ACT_Q,
    ACT_SCORES,
    ACT_ATTENDED,
    ACT_FFN_NORMED,
    ACT_GATE,
    ACT_UP,
    ACT_LOGITS,
    ACT_INT8_NORMED, /* quantized copy, for quantized matrices */
    ACT_INT8_ATTENDED,
    ACT_INT8_FFN,
    ACT_INT8_GATE,
    ACTS
};

/* The state of a tensor that is being loaded. */
typedef struct llama_read {
    struct llama_engine *engine;
    uint64_t done;
} llama_read;

typedef struct llama_stage {
    gpuhal_device *device;
    const char *format; /* format of the kernels */
    char why[160];
    gpuhal_queue *queue;
    gpuhal_event *done, *taken;        /* done: the layers computed x; taken: the next stage copied x */
    gpuhal_program *programs[KERNELS]; /* may contain the same program several times */
    gpuhal_kernel *kernels[KERNELS];
    gpuhal_recording *token; /* the launches for one token; made when the first single token is processed */
    uint32_t first_layer, end_layer;
    gpuhal_buffer *model, **layers, **caches; /* weights; each layer's keys, then its values */
    uint64_t (*offsets)[LAYER_TENSORS];       /* in the layer's buffer */
    uint64_t model_offsets[MODEL_TENSORS], value_offset;
    gpuhal_buffer *activations, *tokens, *angles;
    gpuhal_buffer *places; /* the position of the first token of a batch, and 0, each at its own aligned offset */
    uint64_t act_offsets[ACTS], act_bytes[ACTS];
    llama_read *reads;
    uint32_t read_count;
} llama_stage;

enum { STAGES_MAX = 16 };

typedef struct llama_engine {
    const llama_model *model;
    gpuhal *gpu;
    llama_stage stages[STAGES_MAX];
    uint32_t stage_count, context, batch;
    uint32_t *tokens; /* room for the whole context, because queues read it */
    float *angles, *logits;
    uint32_t used; /* tokens in the caches */
    float attention_scale;
    uint64_t to_load;
    _Atomic uint64_t loaded;
    _Atomic uint32_t shown_tenths;
    FILE *report; /* for the choices and the progress; NULL for no report */
} llama_engine;

/* Each device's share of the layers. If all are 0, the shares are proportional to the memory. */
typedef struct llama_split {
    const char *devices; /* selectors, separated by commas */
    double shares[STAGES_MAX];
} llama_split;

bool llama_engine_open(llama_engine *engine, const llama_split *split, llama_error *error);
void llama_engine_close(llama_engine *engine);
bool llama_stage_open(llama_engine *engine, llama_stage *stage, llama_error *error);
bool llama_stage_load(llama_engine *engine, llama_stage *stage, llama_error *error);
void llama_stage_close(llama_stage *stage);

/* Computes tokens [used, used + count) of engine->tokens, and the logits for the last of them. */
bool llama_forward(llama_engine *engine, uint32_t count, llama_error *error);
bool llama_fail_call(llama_error *error, const char *what);

/* ---- sampling */

typedef struct llama_sampler {
    float temperature; /* 0 always selects the greatest logit */
    uint32_t top_k;    /* 0 for all */
    uint64_t state;
} llama_sampler;

/* If several logits are equal, selects the token with the lowest number. */
bool llama_sample(llama_sampler *sampler, const float *logits, uint32_t count, uint32_t *out_token, llama_error *error);

#endif
