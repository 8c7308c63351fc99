/* program/self_contained.c: determines whether the code is the compiler's only input. No driver lists the files that
 * its compiler has read, so code that may read a file is compiled in each run. The rule is deliberately coarse: it does
 * not parse any language, and in doubt the code is compiled.
 *
 * The search for a word ignores all characters of the text but letters, digits and underscores. It therefore finds
 * words that are divided by continued lines, trigraphs or the ## of macros, words after each spelling of #, and words
 * in comments or inside longer words.
 */
#include "program/program.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Formats whose code refers to no other file and does not depend on the date. Any other format may be text for a
 * preprocessor. */
static const char *const closed_formats[] = {"cubin", "fatbin", "ptx", "hsaco", "spirv", "hip-fatbin", "host-function"};

/* Words that make a compiler read a file or the clock: preprocessor and assembler directives, and options with the same
 * effect. */
static const char *const open_words[] = {"include", "import",   "embed",    "incbin",
                                         "imacros", "__DATE__", "__TIME__", "__TIMESTAMP__"};

/* Beginnings of options that read no file. A value is in the same word, except for the options in the next list. `-I`
 * by itself reads no file. */
static const char *const closed_options[] = {"-D", "-U", "-I",         "-cl-",    "-w",     "-W",
                                             "-O", "-g", "-spir-std=", "-march=", "-mcpu=", "-mtune="};
/* Options that may have their value in the next word. */
static const char *const options_with_value[] = {"-D", "-U", "-I", "-x"};

/* Returns the first word of the list that occurs in the text, or NULL. *out_failed is true if host memory is short. */
static const char *find_word(const char *text, size_t bytes, bool *out_failed)
{
    char *squeezed = malloc(bytes + 1);
    size_t length = 0;
    *out_failed = !squeezed;
    for (size_t i = 0; squeezed && i < bytes; i++) {
        if (isalnum((unsigned char)text[i]) || text[i] == '_') {
            squeezed[length++] = text[i];
        }
    }
    const char *found = NULL;
    if (squeezed) {
        squeezed[length] = 0;
        for (size_t i = 0; i < sizeof open_words / sizeof *open_words && !found; i++) {
            found = strstr(squeezed, open_words[i]) ? open_words[i] : NULL;
        }
    }
    free(squeezed);
    return found;
}

static bool begins_with_one(const char *const *list, size_t count, const char *word, size_t length)
{
    bool begins = false;
    for (size_t i = 0; i < count && !begins; i++) {
        const size_t least = strlen(list[i]);
        begins = length >= least && memcmp(word, list[i], least) == 0;
    }
    return begins;
}

static bool is_one(const char *const *list, size_t count, const char *word, size_t length)
{
    bool is = false;
    for (size_t i = 0; i < count && !is; i++) {
        is = strlen(list[i]) == length && memcmp(word, list[i], length) == 0;
    }
    return is;
}

/* A word that is not an option may be a file name, or the value of an unknown option. */
static bool options_read_files(const char *options)
{
    bool has_value = false, open = false;
    for (const char *at = options + strspn(options, " \t\r\n"); *at && !open; at += strspn(at, " \t\r\n")) {
        const size_t length = strcspn(at, " \t\r\n");
        if (has_value) {
            open = *at == '-' || *at == '@';
            has_value = false;
        } else {
            has_value = is_one(options_with_value, sizeof options_with_value / sizeof *options_with_value, at, length);
            open = !has_value &&
                   (!begins_with_one(closed_options, sizeof closed_options / sizeof *closed_options, at, length) ||
                    (at[1] == 'W' && memchr(at, ',', length))); /* -Wp,…: passed to another program */
        }
        at += length;
    }
    return open;
}

bool gpuhal_code_is_self_contained(const gpuhal_code *code, char out_why[GPUHAL_WHY_OPEN_BYTES])
{
    const char *options = code->options ? code->options : "", *in = "options", *word = NULL;
    bool failed = false;
    word = find_word(options, strlen(options), &failed);
    const bool closed =
        is_one(closed_formats, sizeof closed_formats / sizeof *closed_formats, code->format, strlen(code->format));
    if (!word && !failed && !closed) {
        in = "code";
        word = find_word(code->code, (size_t)code->bytes, &failed);
    }
    *out_why = 0;
    if (word) {
        snprintf(out_why, GPUHAL_WHY_OPEN_BYTES, "the %s may read other files: \"%s\"", in, word);
    } else if (options_read_files(options)) {
        snprintf(out_why, GPUHAL_WHY_OPEN_BYTES, "an option may read other files: %.60s", options);
    } else if (code->bytes == 0) {
        snprintf(out_why, GPUHAL_WHY_OPEN_BYTES, "the code is another file");
    }
    return !failed && !*out_why;
}
