/* device/selector.c: parses selectors: `auto`, `gpu`, a backend, an id, `pci=`, `uuid=`, `name=`. An error names the
 * malformed part and the whole grammar. select.c matches. */
#include "core/error.h"
#include "core/records.h"
#include "device/device.h"
#include "device/identity.h"
#include "loader/device_rules.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void gpuhal_selector_lower(char *text)
{
    for (; *text; text++) {
        *text = (char)tolower((unsigned char)*text);
    }
}

/* Names the malformed part, and the grammar. */
static __attribute__((format(printf, 3, 4))) gpuhal_status refuse(const char *text, const char *source,
                                                                  const char *format, ...)
{
    enum { QUOTED_MAX = 200 };
    char problem[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(problem, sizeof problem, format, arguments);
    va_end(arguments);
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                            "%s: invalid selector \"%.*s%s\": %s; a selector is auto, gpu, BACKEND (cpu), "
                            "BACKEND:INDEX (cuda:0), pci=ADDRESS (pci=0000:c1:00.0), uuid=UUID (8-4-4-4-12 hexadecimal "
                            "digits) or name=GLOB (name=*A100*)",
                            source, QUOTED_MAX, text, strlen(text) > QUOTED_MAX ? "..." : "", problem);
}

/* The grammar of gpuhal_plugin.name. */
static bool is_backend_name(const char *text, size_t length)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    return length > 0 && length < 32 && text[0] >= 'a' && text[0] <= 'z' && strspn(text, letters) >= length;
}

/* Parses "pci=0000:c1:00.0", whose key ends before the `=` at `equals`. */
static gpuhal_status parse_key(const char *word, const char *source, const char *equals, gpuhal_selector *selector)
{
    static const struct {
        const char *key;
        gpuhal_selector_form form;
    } keys[] = {{"pci", GPUHAL_SELECT_PCI}, {"uuid", GPUHAL_SELECT_UUID}, {"name", GPUHAL_SELECT_NAME}};
    const int length = (int)(equals - word);
    const char *value = equals + 1;
    selector->form = GPUHAL_SELECT_AUTO;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strlen(keys[i].key) == (size_t)length && strncmp(word, keys[i].key, (size_t)length) == 0) {
            selector->form = keys[i].form;
        }
    }
    if (selector->form == GPUHAL_SELECT_AUTO) {
        return refuse(word, source, "\"%.*s\" before \"=\" is none of pci, uuid and name", length, word);
    }
    if (!*value) {
        return refuse(word, source, "nothing follows \"%s\"", word);
    }
    snprintf(selector->text, sizeof selector->text, "%s", value);
    gpuhal_selector_lower(selector->text);
    char unused[24], problem[160];
    if (selector->form == GPUHAL_SELECT_PCI && !gpuhal_identity_pci(selector->text, unused)) {
        return refuse(word, source,
                      "\"%s\" is not a PCI address (domain:bus:device.function, with devices to 1f and functions to 7)",
                      value);
    }
    if (selector->form == GPUHAL_SELECT_UUID &&
        !gpuhal_rules_text(GPUHAL_FACT_UUID, selector->text, problem, sizeof problem)) {
        return refuse(word, source, "\"%s\" is not a UUID", value);
    }
    return GPUHAL_OK;
}

/* Whether the first bytes are one of the words. */
static bool is_word(const char *text, size_t length, const char *const words[])
{
    while (*words && (strlen(*words) != length || strncmp(*words, text, length) != 0)) {
        words++;
    }
    return *words != NULL;
}

/* Parses "cuda" or "cuda:0"; `name` is the length of the backend's name. */
static gpuhal_status parse_backend(const char *word, const char *source, size_t name, gpuhal_selector *selector)
{
    static const char *const general[] = {"auto", "gpu", NULL}, *const keys[] = {"pci", "uuid", "name", NULL};
    const char *index_text = word[name] ? word + name + 1 : NULL;
    uint64_t index = 0;
    if (name == 0) {
        return refuse(word, source, "no backend stands before \":\"");
    }
    if (is_word(word, name, general)) {
        return refuse(word, source, "\"%.*s\" takes no index", (int)name, word);
    }
    if (is_word(word, name, keys)) {
        return refuse(word, source, "no \"=\" follows \"%.*s\"", (int)name, word);
    }
    if (!is_backend_name(word, name)) {
        return refuse(word, source, "\"%.*s\" is not the name of a backend (up to 31 lower-case letters, digits and _)",
                      (int)name, word);
    }
    if (index_text && !*index_text) {
        return refuse(word, source, "no index follows \"%s\"", word);
    }
    if (index_text && (!gpuhal_records_u64(index_text, &index) || index > UINT32_MAX)) {
        return refuse(word, source, "\"%s\" is not an index (a number from 0 to %u)", index_text, UINT32_MAX);
    }
    selector->form = index_text ? GPUHAL_SELECT_ID : GPUHAL_SELECT_BACKEND;
    selector->index = (uint32_t)index;
    memcpy(selector->text, word, name);
    return GPUHAL_OK;
}

/* Blanks around it are ignored, as in a list. */
gpuhal_status gpuhal_selector_parse(const char *text, const char *source, gpuhal_selector *out_selector)
{
    char word[sizeof out_selector->text / 2]; /* each byte of a glob may take two there */
    *out_selector = (gpuhal_selector){.form = GPUHAL_SELECT_AUTO};
    if (!text || !*text) {
        return GPUHAL_OK;
    }
    const char *begin = text + strspn(text, " \t");
    size_t length = strlen(begin);
    while (length > 0 && (begin[length - 1] == ' ' || begin[length - 1] == '\t')) {
        length--;
    }
    if (length == 0 || length >= sizeof word) {
        return length ? refuse(text, source, "it has more than %zu bytes", sizeof word - 1)
                      : refuse(text, source, "it is blank");
    }
    memcpy(word, begin, length);
    word[length] = 0;
    if (strcmp(word, "auto") == 0 || strcmp(word, "gpu") == 0) {
        out_selector->form = *word == 'a' ? GPUHAL_SELECT_AUTO : GPUHAL_SELECT_GPU;
        return GPUHAL_OK;
    }
    size_t name = strcspn(word, ":=");
    return word[name] == '=' ? parse_key(word, source, word + name, out_selector)
                             : parse_backend(word, source, name, out_selector);
}
