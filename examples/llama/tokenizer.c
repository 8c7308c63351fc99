/* tokenizer.c: converts text to tokens as SentencePiece does, and tokens to text. The text is split into characters,
 * which are the first symbols. Two neighbours whose concatenation is in the vocabulary can be joined. The pair with the
 * best score is joined (the first such pair if several are equal), until no pair can be joined. A symbol that is not in
 * the vocabulary becomes the tokens of its bytes. */
#include "llama.h"

#include <stdlib.h>
#include <string.h>

enum { KIND_NORMAL = 1, KIND_UNKNOWN = 2, KIND_CONTROL = 3, KIND_USER = 4, KIND_BYTE = 6, NONE = -1 };
static const char blank[] = "\xe2\x96\x81"; /* stands for ' ' */

/* A symbol, which is a range of the text. `joined` is the piece that the symbol and its next neighbour form, if the
 * vocabulary contains it. */
typedef struct symbol {
    const char *text;
    uint32_t bytes;
    int32_t next, joined;
} symbol;

typedef struct lexicon {
    const llama_model *model;
    uint32_t *sorted, count; /* text pieces, sorted by their bytes */
    int32_t byte_tokens[256];
} lexicon;

static const llama_model *sorted_model; /* qsort() passes no context; there is only one sort, in one thread */

static int compare_texts(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    const int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);
    return order != 0 ? order : a_bytes < b_bytes ? -1 : a_bytes > b_bytes;
}

static int by_text(const void *a, const void *b)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    const llama_piece *one = &sorted_model->pieces[left], *other = &sorted_model->pieces[right];
    const int order = compare_texts(one->text, one->bytes, other->text, other->bytes);
    return order != 0 ? order : left < right ? -1 : 1;
}

static unsigned byte_of(const llama_piece *piece)
{
    return (unsigned)strtoul(piece->bytes == 6 ? piece->text + 3 : "0", NULL, 16) & 255; /* "<0x0A>" */
}

static bool make_lexicon(const llama_model *model, lexicon *out)
{
    *out = (lexicon){.model = model, .sorted = malloc((model->vocabulary + (size_t)1) * sizeof *out->sorted)};
    for (int i = 0; i < 256; i++) {
        out->byte_tokens[i] = NONE;
    }
    for (uint32_t i = 0; i < model->vocabulary && out->sorted != NULL; i++) {
        const llama_piece *piece = &model->pieces[i];
        if (piece->kind == KIND_BYTE) {
            out->byte_tokens[byte_of(piece)] = (int32_t)i;
        } else if ((piece->kind == KIND_NORMAL || piece->kind == KIND_USER) && piece->bytes > 0) {
            out->sorted[out->count++] = i;
        }
    }
    if (out->sorted != NULL) {
        sorted_model = model;
        qsort(out->sorted, out->count, sizeof *out->sorted, by_text);
    }
    return out->sorted != NULL;
}

static int32_t find_piece(const lexicon *own, const char *text, uint32_t bytes)
{
    for (uint32_t low = 0, high = own->count; low < high;) {
        const uint32_t middle = low + (high - low) / 2;
        const llama_piece *piece = &own->model->pieces[own->sorted[middle]];
        const int order = compare_texts(text, bytes, piece->text, piece->bytes);
        if (order == 0) {
            return (int32_t)own->sorted[middle];
        }
        low = order > 0 ? middle + 1 : low;
        high = order < 0 ? middle : high;
    }
    return NONE;
}

/* Finds the piece that a symbol and its next neighbour form. The bytes of the two symbols are adjacent. */
static void find_joined(const lexicon *own, symbol *symbols, int32_t at)
{
    const int32_t next = symbols[at].next;
    symbols[at].joined =
        next == NONE ? NONE : find_piece(own, symbols[at].text, symbols[at].bytes + symbols[next].bytes);
}

static void join_all(const lexicon *own, symbol *symbols)
{
    for (;;) {
        int32_t best = NONE, before = NONE, last = NONE;
        for (int32_t at = 0; at != NONE; last = at, at = symbols[at].next) {
            const int32_t joined = symbols[at].joined;
            if (joined != NONE &&
                (best == NONE || own->model->pieces[joined].score > own->model->pieces[symbols[best].joined].score)) {
                best = at;
                before = last;
            }
        }
        if (best == NONE) {
            return;
        }
        const int32_t next = symbols[best].next;
        symbols[best].bytes += symbols[next].bytes;
        symbols[best].next = symbols[next].next;
        find_joined(own, symbols, best);
        if (before != NONE) {
            find_joined(own, symbols, before);
        }
    }
}

/* Returns the text with a mark for each blank, or NULL if out of memory. The caller frees it. */
static char *mark_blanks(const llama_model *model, const char *text)
{
    char *marked = malloc(3 * strlen(text) + 4), *to = marked;
    if (!marked) {
        return NULL;
    }
    if (model->adds_space && *text != '\0') {
        to = stpcpy(to, blank);
    }
    for (; *text != '\0'; text++) {
        if (*text == ' ') {
            to = stpcpy(to, blank);
        } else {
            *to++ = *text;
        }
    }
    *to = '\0';
    return marked;
}

/* Splits the text into UTF-8 characters. The first symbol exists even for an empty text. */
static void split(const char *text, symbol *symbols)
{
    int32_t count = 0;
    for (; *text != '\0'; count++) {
        uint32_t bytes = 1;
        while (((unsigned char)text[bytes] & 0xc0) == 0x80) {
            bytes++;
        }
        symbols[count] = (symbol){.text = text, .bytes = bytes, .next = count + 1, .joined = NONE};
        text += bytes;
    }
    symbols[count > 0 ? count - 1 : 0].next = NONE;
}

static bool emit(const lexicon *own, const symbol *from, uint32_t *tokens, uint32_t room, uint32_t *count,
                 llama_error *error)
{
    const int32_t whole = find_piece(own, from->text, from->bytes);
    for (uint32_t i = 0; i < (whole != NONE ? 1 : from->bytes); i++) {
        const int32_t token = whole != NONE ? whole : own->byte_tokens[(unsigned char)from->text[i]];
        if (token == NONE) {
            return llama_fail(error, "the vocabulary of %s has no token for byte 0x%02x of the prompt",
                              own->model->path, (unsigned char)from->text[i]);
        }
        if (*count == room) {
            return llama_fail(error, "the prompt has more than %u tokens", room);
        }
        tokens[(*count)++] = (uint32_t)token;
    }
    return true;
}

bool llama_tokenize(const llama_model *model, const char *text, uint32_t *tokens, uint32_t room, uint32_t *count,
                    llama_error *error)
{
    if (!model->pieces) {
        return llama_fail(error, "%s has no vocabulary of SentencePiece: give the prompt as --tokens", model->path);
    }
    lexicon own;
    char *marked = mark_blanks(model, text);
    symbol *symbols = marked != NULL ? calloc(strlen(marked) + 1, sizeof *symbols) : NULL;
    bool is_done = make_lexicon(model, &own) && symbols != NULL;
    if (!is_done) {
        llama_fail(error, "there is no memory for a prompt of %zu bytes", strlen(text));
    } else if (model->adds_bos && model->bos != UINT32_MAX && *count < room) {
        tokens[(*count)++] = model->bos;
    }
    if (is_done && *marked != '\0') {
        split(marked, symbols);
        for (int32_t at = 0; at != NONE; at = symbols[at].next) {
            find_joined(&own, symbols, at);
        }
        join_all(&own, symbols);
        for (int32_t at = 0; at != NONE && is_done; at = symbols[at].next) {
            is_done = emit(&own, &symbols[at], tokens, room, count, error);
        }
    }
    free(symbols);
    free(marked);
    free(own.sorted);
    return is_done;
}

void llama_print_token(const llama_model *model, uint32_t token, FILE *to)
{
    if (!model->pieces) {
        fprintf(to, "%u ", token);
        return;
    }
    const llama_piece *piece = &model->pieces[token];
    if (piece->kind == KIND_BYTE) {
        putc((int)byte_of(piece), to);
        return;
    }
    for (const char *text = piece->kind == KIND_CONTROL || piece->kind == KIND_UNKNOWN ? "" : piece->text;
         *text != '\0';) {
        const bool is_blank = strncmp(text, blank, sizeof blank - 1) == 0;
        putc(is_blank ? ' ' : *text, to);
        text += is_blank ? sizeof blank - 1 : 1;
    }
}
