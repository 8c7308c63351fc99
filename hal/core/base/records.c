/* base/records.c: see records.h. The reader never reads beyond `end`, copies its results, and stops at the first
 * error. */
#include "base/records.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the length of the well-formed UTF-8 character at `at`; 0 if there is none. RFC 3629 allows only the shortest
 * form, and no surrogates. */
static size_t character_length(const unsigned char *at, size_t left)
{
    static const struct {
        unsigned char mask, lead;
        size_t length;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 1, 0}, {0xe0, 0xc0, 2, 0x80}, {0xf0, 0xe0, 3, 0x800}, {0xf8, 0xf0, 4, 0x10000}};
    for (size_t f = 0; f < 4; f++) {
        if ((at[0] & forms[f].mask) != forms[f].lead) {
            continue;
        }
        uint32_t point = at[0] & (unsigned char)~forms[f].mask;
        if (forms[f].length > left) {
            return 0;
        }
        for (size_t i = 1; i < forms[f].length; i++) {
            if ((at[i] & 0xc0) != 0x80) {
                return 0;
            }
            point = point << 6 | (at[i] & 0x3f);
        }
        bool good = point >= forms[f].least && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
        return good ? forms[f].length : 0;
    }
    return 0;
}

static bool is_control(unsigned char c)
{
    return c < 0x20 || c == 0x7f;
}

/* Returns whether all eight bytes are from 0x20 to 0x7e. Tests the top bits of the bytes themselves, of the bytes plus
 * 0x60 (set from 0x20 on), and of the bytes plus 1 (set from 0x7f on). */
static bool are_plain(const unsigned char at[8])
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return ((word | ~(word + 0x60 * ones) | (word + ones)) & 0x80 * ones) == 0;
}

bool gpuhal_records_is_clean(const char *text, size_t bytes)
{
    const unsigned char *at = (const unsigned char *)text;
    while (bytes > 0) {
        if (bytes >= 8 && are_plain(at)) {
            at += 8;
            bytes -= 8;
            continue;
        }
        size_t length = *at < 0x80 ? 1 : character_length(at, bytes);
        if (length == 0 || is_control(*at)) {
            return false;
        }
        at += length;
        bytes -= length;
    }
    return true;
}

/* U+0080 to U+009F are control characters. U+2028 and U+2029 end lines. U+061C, U+200E, U+200F, U+202A to U+202E, and
 * U+2066 to U+2069 change the direction (UAX #9). */
static bool is_deceptive(const unsigned char *at, size_t length)
{
    if (length == 2) {
        return (at[0] == 0xc2 && at[1] < 0xa0) || (at[0] == 0xd8 && at[1] == 0x9c);
    }
    if (length != 3 || at[0] != 0xe2) {
        return false;
    }
    return (at[1] == 0x80 && (at[2] == 0x8e || at[2] == 0x8f || (at[2] >= 0xa8 && at[2] <= 0xae))) ||
           (at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9);
}

void gpuhal_records_clean(char *text)
{
    size_t left = strlen(text);
    for (char *at = text; left > 0;) {
        size_t length = character_length((const unsigned char *)at, left), step = length ? length : 1;
        bool deceptive = is_deceptive((const unsigned char *)at, length);
        if (length == 0 || deceptive || is_control((unsigned char)*at)) {
            memset(at, *at == '\n' || *at == '\r' || *at == '\t' ? ' ' : '?', step);
        }
        at += step;
        left -= step;
    }
}

static bool is_name_character(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

void gpuhal_records_begin(gpuhal_records_reader *reader, const char *text, size_t bytes)
{
    *reader = (gpuhal_records_reader){.next = text, .end = text + bytes};
}

void gpuhal_records_finish(gpuhal_records_reader *reader)
{
    gpuhal_text_finish(&reader->value);
    reader->next = reader->end;
}

static gpuhal_records_item fail(gpuhal_records_reader *reader, const char *what)
{
    snprintf(reader->error, sizeof reader->error, "%s", what);
    reader->next = reader->end;
    return GPUHAL_RECORDS_ERROR;
}

/* Names have a fixed limit, so that hostile names cause no allocations. */
static bool take_name(gpuhal_records_reader *reader, const char *begin, const char *end)
{
    size_t length = (size_t)(end - begin);
    if (length == 0 || length >= sizeof reader->name) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (!is_name_character(begin[i])) {
            return false;
        }
    }
    memcpy(reader->name, begin, length);
    reader->name[length] = 0;
    return true;
}

static unsigned hexadecimal(char c)
{
    return c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

/* Parses the escape after a `\`. Returns its length; 0 if it is invalid. An escaped zero byte is invalid, since it
 * would terminate the string. */
static size_t unescape(const char *at, const char *end, char *out)
{
    static const char letters[] = "nrts\\", meanings[] = "\n\r\t \\";
    const char *known = at < end ? memchr(letters, *at, sizeof letters - 1) : NULL;
    if (known) {
        *out = meanings[known - letters];
        return 1;
    }
    if (end - at < 3 || *at != 'x' || hexadecimal(at[1]) > 15 || hexadecimal(at[2]) > 15) {
        return 0;
    }
    *out = (char)(hexadecimal(at[1]) << 4 | hexadecimal(at[2]));
    return *out ? 3 : 0;
}

static gpuhal_records_item read_value(gpuhal_records_reader *reader, const char *begin, const char *end)
{
    if (!gpuhal_records_is_clean(begin, (size_t)(end - begin))) {
        return fail(reader, "the value is not UTF-8, or has a control character");
    }
    gpuhal_text_append(&reader->value, "", 0);
    for (const char *p = begin; p < end;) {
        const char *escape = memchr(p, '\\', (size_t)(end - p));
        gpuhal_text_append(&reader->value, p, (size_t)((escape ? escape : end) - p));
        p = end;
        if (escape) {
            char c;
            size_t bytes = unescape(escape + 1, end, &c);
            if (bytes == 0) {
                return fail(reader, "`\\` must be followed by one of n r t s \\ xHH");
            }
            gpuhal_text_append(&reader->value, &c, 1);
            p = escape + 1 + bytes;
        }
    }
    return reader->value.failed ? fail(reader, "out of memory for the value") : GPUHAL_RECORDS_PAIR;
}

/* If an editor on another system has added an invisible character, returns a message that names the character. */
static const char *invisible_fault(const gpuhal_records_reader *reader, const char *begin, const char *end)
{
    if (reader->line == 1 && end - begin >= 3 && memcmp(begin, "\xef\xbb\xbf", 3) == 0) {
        return "it begins with a byte order mark, which is not allowed";
    }
    return end[-1] == '\r' ? "it ends in a carriage return; lines must end in a line feed only" : NULL;
}

static gpuhal_records_item read_line(gpuhal_records_reader *reader, const char *begin, const char *end)
{
    const char *fault = invisible_fault(reader, begin, end);
    if (fault) {
        return fail(reader, fault);
    }
    if (*begin == '[') {
        if (end[-1] != ']' || end - begin < 2 || !take_name(reader, begin + 1, end - 1)) {
            return fail(reader, "a record opens with `[kind]`, 1 to 63 characters of a-z 0-9 _ . -");
        }
        return GPUHAL_RECORDS_KIND;
    }
    const char *equals = memchr(begin, '=', (size_t)(end - begin));
    if (!equals) {
        return fail(reader, "neither `[kind]` nor `key = value`");
    }
    const char *key_end = equals;
    while (key_end > begin && is_blank(key_end[-1])) {
        key_end--;
    }
    if (!take_name(reader, begin, key_end)) {
        return fail(reader, "a key has 1 to 63 characters of a-z 0-9 _ . -");
    }
    const char *value = equals + 1;
    while (value < end && is_blank(*value)) {
        value++;
    }
    return read_value(reader, value, end);
}

gpuhal_records_item gpuhal_records_next(gpuhal_records_reader *reader)
{
    while (reader->next < reader->end) {
        const char *begin = reader->next;
        const char *end = memchr(begin, '\n', (size_t)(reader->end - begin));
        reader->next = end ? end + 1 : reader->end;
        end = end ? end : reader->end;
        reader->line++;
        while (begin < end && is_blank(*begin)) {
            begin++;
        }
        while (end > begin && is_blank(end[-1])) {
            end--;
        }
        if (begin == end || *begin == '#') {
            continue;
        }
        reader->value.length = 0; /* reuse the value's memory */
        return read_line(reader, begin, end);
    }
    return GPUHAL_RECORDS_END;
}

void gpuhal_records_write_kind(gpuhal_text *to, const char *kind)
{
    gpuhal_text_printf(to, "%s[%s]\n", to->length > 0 ? "\n" : "", kind);
}

static size_t plain_length(const char *bytes, size_t count)
{
    size_t length = 0;
    while (length < count && bytes[length] > ' ' && bytes[length] < 0x7f && bytes[length] != '\\') {
        length++;
    }
    return length;
}

/* Escapes the bytes that the reader would change or reject: blanks at either end, `\`, control characters, and bytes
 * that are not UTF-8. */
void gpuhal_records_write(gpuhal_text *to, const char *key, const char *value)
{
    gpuhal_text_append(to, key, strlen(key));
    gpuhal_text_append(to, " = ", 3);
    size_t length = strlen(value);
    for (size_t i = 0; i < length;) {
        const size_t plain = plain_length(value + i, length - i);
        if (plain > 0) {
            gpuhal_text_append(to, value + i, plain);
            i += plain;
            continue;
        }
        const char c = value[i];
        size_t step = character_length((const unsigned char *)value + i, length - i);
        bool at_end = i == 0 || i + 1 == length;
        if (c == '\n' || c == '\r' || c == '\t' || c == '\\') {
            gpuhal_text_printf(to, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : '\\');
        } else if (c == ' ' && at_end) {
            gpuhal_text_append(to, "\\s", 2);
        } else if (step == 0 || is_control((unsigned char)c)) {
            gpuhal_text_printf(to, "\\x%02x", (unsigned)(unsigned char)c);
        } else {
            gpuhal_text_append(to, value + i, step);
        }
        i += step ? step : 1;
    }
    gpuhal_text_append(to, "\n", 1);
}

void gpuhal_records_write_u64(gpuhal_text *to, const char *key, uint64_t value)
{
    gpuhal_text_printf(to, "%s = %" PRIu64 "\n", key, value);
}

bool gpuhal_records_u64(const char *text, uint64_t *out_value)
{
    uint64_t value = 0;
    if (!*text) {
        return false;
    }
    for (const char *p = text; *p; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (*p < '0' || *p > '9' || value > (UINT64_MAX - digit) / 10) {
            return false;
        }
        value = value * 10 + digit;
    }
    *out_value = value;
    return true;
}

bool gpuhal_records_i32(const char *text, int32_t *out_value)
{
    bool negative = *text == '-';
    uint64_t size = 0;
    if (!gpuhal_records_u64(text + negative, &size) || size > (uint64_t)INT32_MAX) {
        return false;
    }
    *out_value = negative ? -(int32_t)size : (int32_t)size;
    return true;
}
