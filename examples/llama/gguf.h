/* gguf.h: shared by gguf.c, which reads the tensors, and metadata.c, which reads the metadata before them. */
#ifndef LLAMA_GGUF_H
#define LLAMA_GGUF_H

#include "llama.h"

enum {
    SIDE_MAX = 262140, /* maximum number of rows or columns; kernels count groups of 4 rows with 16 bits */
    NAME_BYTES = 128
};

/* A tensor as the file describes it. */
typedef struct llama_entry {
    char name[NAME_BYTES];
    uint64_t offset; /* from the aligned end of the header */
    llama_tensor tensor;
} llama_entry;

typedef struct llama_reader {
    FILE *file;
    uint64_t at, bytes; /* of the whole file */
    llama_model *model;
    llama_error *error;
    uint64_t alignment, key_length, value_length, rope_dimensions, kv_heads, score_count, kind_count;
    char architecture[32], vocabulary_kind[32];
    llama_entry *entries;
    uint32_t entry_count;
} llama_reader;

/* These functions fail with a message if the file ends too early. Numbers are little-endian. */
bool llama_read_bytes(llama_reader *in, void *to, uint64_t bytes);
bool llama_skip_bytes(llama_reader *in, uint64_t count, uint64_t each);
bool llama_read_integer(llama_reader *in, unsigned bytes, uint64_t *out);
/* If a string does not fit, truncates it if `cuts`, otherwise fails. */
bool llama_read_name(llama_reader *in, char *to, size_t size, bool cuts);
bool llama_read_key(llama_reader *in);

#endif
