/* device/selector.c: parses selectors and lists of selectors. An error names the malformed part and the whole grammar.
 */
#include "device/selector.h"

#include "base/error.h"
#include "base/records.h"
#include "device/variable.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void lower(char *text)
{
    for (; *text; text++) {
        *text = (char)tolower((unsigned char)*text);
    }
}

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
                            "%s: invalid selector \"%.*s%s\": %s; expected auto, gpu, each, most_free, least_loaded, "
                            "cpu, cuda, cuda:0, cuda:0-3, cuda:*, 0 (the first of the list), GPU-... or MIG-... (a "
                            "UUID, or its beginning), c1:00.0 (a PCI address), name=*A100* or "
                            "env=CUDA_VISIBLE_DEVICES; ! before it excludes its devices; in GPUHAL_DEVICES, @8GiB or "
                            "@25%% after it limits their memory",
                            source, QUOTED_MAX, text, strlen(text) > QUOTED_MAX ? "..." : "", problem);
}

/* Checks the grammar of gpuhal_plugin.name. */
static bool is_backend_name(const char *text, size_t length)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    return length > 0 && length < 32 && text[0] >= 'a' && text[0] <= 'z' && strspn(text, letters) >= length;
}

static gpuhal_status parse_numbers(const char *word, const char *text, const char *source, gpuhal_selector *selector)
{
    char begin[16];
    size_t length = strcspn(text, "-");
    const char *end = text[length] ? text + length + 1 : begin;
    uint64_t first = 0, last = 0;
    snprintf(begin, sizeof begin, "%.*s", (int)length, text);
    if (length >= sizeof begin || !gpuhal_records_u64(begin, &first) || !gpuhal_records_u64(end, &last) ||
        first > UINT32_MAX || last > UINT32_MAX) {
        return refuse(word, source, "\"%s\" is not an index (a number from 0 to %u, or two with - between them)", text,
                      UINT32_MAX);
    }
    if (first > last) {
        return refuse(word, source, "the range \"%s\" ends before it begins", text);
    }
    selector->first = (uint32_t)first;
    selector->last = (uint32_t)last;
    return GPUHAL_OK;
}

static gpuhal_status parse_pci(const char *word, const char *text, const char *source, gpuhal_selector *selector)
{
    char with_domain[GPUHAL_SELECTOR_BYTES + 8], canonical[24];
    const char *colon = strchr(text, ':');
    bool has_domain = colon && strchr(colon + 1, ':');
    snprintf(with_domain, sizeof with_domain, "%s%s", has_domain ? "" : "0:", text);
    if (!gpuhal_identity_pci(with_domain, canonical)) {
        return refuse(word, source,
                      "\"%s\" is not a PCI address (domain:bus:device.function; the domain may be missing, devices go "
                      "to 1f and functions to 7)",
                      text);
    }
    selector->form = GPUHAL_SELECT_PCI;
    snprintf(selector->text, sizeof selector->text, "%s", has_domain ? canonical : canonical + strlen("0000:"));
    return GPUHAL_OK;
}

static bool begins_with(const char *text, const char *upper)
{
    while (*upper && toupper((unsigned char)*text) == *upper) {
        text++;
        upper++;
    }
    return *upper == 0;
}

static bool has_vendor_form(const char *text)
{
    return begins_with(text, "GPU-") || begins_with(text, "MIG-");
}

/* Returns whether the text is a complete UUID without a prefix, in this library's form or the kernel's form of AMD's
 * unique id. An abbreviated UUID could be a number or a name. */
static bool has_plain_form(const char *text)
{
    const size_t length = strlen(text);
    return length == 36 ? text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-'
                        : length == 16 && strspn(text, "0123456789abcdefABCDEF") == 16;
}

/* Parses a UUID or its beginning in the form printed by vendors' tools, and keeps its hexadecimal digits. */
static gpuhal_status parse_uuid(const char *word, const char *text, const char *source, gpuhal_selector *selector)
{
    const char *at = text + (has_vendor_form(text) ? strlen("GPU-") : 0);
    size_t digits = 0;
    bool good = true, dash = true;
    for (; *at && good; at++) {
        if (*at == '-') {
            good = !dash && (digits == 8 || digits == 12 || digits == 16 || digits == 20);
            dash = true;
        } else {
            good = isxdigit((unsigned char)*at) && digits < 32;
            selector->text[digits++] = (char)tolower((unsigned char)*at);
            dash = false;
        }
    }
    if (!good || digits == 0) {
        return refuse(word, source, "\"%s\" is not a UUID, nor the beginning of one", text);
    }
    selector->text[digits] = 0;
    selector->form = GPUHAL_SELECT_UUID;
    selector->partition = begins_with(text, "MIG-");
    return GPUHAL_OK;
}

/* The variable's value is read when devices are matched. */
static gpuhal_status parse_variable(const char *word, const char *text, const char *source, gpuhal_selector *selector)
{
    if (!gpuhal_variable_find(text)) {
        return refuse(word, source, "the rules of the variable \"%s\" are not known, only those of %s", text,
                      gpuhal_variable_names());
    }
    selector->form = GPUHAL_SELECT_VARIABLE;
    snprintf(selector->text, sizeof selector->text, "%s", text);
    return GPUHAL_OK;
}

/* Parses a string such as "pci=0000:c1:00.0". */
static gpuhal_status parse_key(const char *word, const char *source, const char *equals, gpuhal_selector *selector)
{
    const int length = (int)(equals - word);
    const char *value = equals + 1;
    bool pci = length == 3 && strncmp(word, "pci", 3) == 0, uuid = length == 4 && strncmp(word, "uuid", 4) == 0,
         name = length == 4 && strncmp(word, "name", 4) == 0, variable = length == 3 && strncmp(word, "env", 3) == 0;
    if (!pci && !uuid && !name && !variable) {
        return refuse(word, source, "\"%.*s\" before \"=\" is not pci, uuid, name or env", length, word);
    }
    if (!*value) {
        return refuse(word, source, "nothing follows \"%s\"", word);
    }
    if (variable) {
        return parse_variable(word, value, source, selector);
    }
    if (!name) {
        return pci ? parse_pci(word, value, source, selector) : parse_uuid(word, value, source, selector);
    }
    selector->form = GPUHAL_SELECT_NAME;
    snprintf(selector->text, sizeof selector->text, "%s", value);
    lower(selector->text);
    return GPUHAL_OK;
}

static gpuhal_status parse_glob(const char *word, const char *source, gpuhal_selector *selector)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_:*?";
    if (word[strspn(word, letters)]) {
        return refuse(word, source, "a glob of ids has lower-case letters, digits, _, :, * and ? alone");
    }
    selector->form = GPUHAL_SELECT_GLOB;
    snprintf(selector->text, sizeof selector->text, "%s", word);
    return GPUHAL_OK;
}

static bool is_word(const char *text, size_t length, const char *const words[])
{
    while (*words && (strlen(*words) != length || strncmp(*words, text, length) != 0)) {
        words++;
    }
    return *words != NULL;
}

/* Parses strings such as "cuda", "cuda:0" and "cuda:0-3". `name` is the length of the backend's name. */
static gpuhal_status parse_backend(const char *word, const char *source, size_t name, gpuhal_selector *selector)
{
    static const char *const general[] = {"auto", "gpu", "each", "most_free", "least_loaded", NULL};
    static const char *const keys[] = {"pci", "uuid", "name", "env", NULL};
    const char *index_text = word[name] ? word + name + 1 : NULL;
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
    selector->form = index_text ? GPUHAL_SELECT_ID : GPUHAL_SELECT_BACKEND;
    memcpy(selector->text, word, name);
    return index_text ? parse_numbers(word, index_text, source, selector) : GPUHAL_OK;
}

/* A plain number is a row of the list or, after an element such as "cuda:0", another device of the same backend. After
 * "!cuda:0" or "!0" a number without `!` is refused as ambiguous. `whole` is the element with its `!` and limit. */
static gpuhal_status parse_row(const char *word, const char *whole, const char *source, const gpuhal_selector *before,
                               gpuhal_selector *selector)
{
    const bool continues = before->form == GPUHAL_SELECT_ID;
    const char *backend = continues ? before->text : "", *colon = continues ? ":" : "";
    if (before->excludes && !selector->excludes && (continues || before->form == GPUHAL_SELECT_ROW)) {
        return refuse(word, source,
                      "behind \"%s\" a number is ambiguous: write \"!%s%s%s\" to exclude that device, too, or put the "
                      "number first",
                      before->word, backend, colon, word);
    }
    selector->form = continues ? GPUHAL_SELECT_ID : GPUHAL_SELECT_ROW;
    if (continues) {
        memcpy(selector->text, before->text, sizeof selector->text);
        snprintf(selector->word, sizeof selector->word, "%s%s:%s", selector->excludes ? "!" : "", before->text,
                 whole + selector->excludes);
    }
    return parse_numbers(word, word, source, selector);
}

static gpuhal_status parse_pattern(const char *word, const char *whole, const char *source,
                                   const gpuhal_selector *before, gpuhal_selector *selector)
{
    static const char words[][13] = {"auto", "gpu", "each", "most_free", "least_loaded"};
    static const gpuhal_selector_form forms[] = {GPUHAL_SELECT_AUTO, GPUHAL_SELECT_GPU, GPUHAL_SELECT_EACH,
                                                 GPUHAL_SELECT_MOST_FREE, GPUHAL_SELECT_LEAST_LOADED};
    size_t name = strcspn(word, ":=");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp(word, words[i]) == 0) {
            selector->form = forms[i];
            return selector->excludes && gpuhal_selector_is_sampled(selector)
                       ? refuse(whole, source, "\"%s\" selects devices, and cannot exclude any", word)
                       : GPUHAL_OK;
        }
    }
    if (word[name] == '=') {
        return parse_key(word, source, word + name, selector);
    }
    if (strpbrk(word, "*?")) {
        return parse_glob(word, source, selector);
    }
    if (has_vendor_form(word) || has_plain_form(word)) {
        return parse_uuid(word, word, source, selector);
    }
    if (strchr(word, '.') && strchr(word, ':')) {
        return parse_pci(word, word, source, selector);
    }
    return isdigit((unsigned char)*word) ? parse_row(word, whole, source, before, selector)
                                         : parse_backend(word, source, name, selector);
}

/* Parses one element: `!`, the pattern, `@` and a limit. Device names may contain an `@`. */
static gpuhal_status parse(const char *word, const char *source, const gpuhal_selector *before,
                           gpuhal_selector *selector)
{
    char pattern[GPUHAL_SELECTOR_BYTES];
    selector->excludes = *word == '!';
    snprintf(selector->word, sizeof selector->word, "%s", word);
    snprintf(pattern, sizeof pattern, "%s", word + selector->excludes);
    char *at = strrchr(pattern, '@');
    const bool has_limit = at && gpuhal_selector_read_limit(at + 1, selector);
    if (has_limit && selector->excludes) {
        return refuse(word, source, "an excluded device cannot have a limit of memory");
    }
    if (at && !has_limit && strncmp(pattern, "name=", 5) != 0) {
        return refuse(word, source,
                      "\"%s\" is not a limit of memory (a size with its unit, as 8GiB, 512M or 8GB, or a share of the "
                      "device's memory, as 25%%)",
                      at + 1);
    }
    if (has_limit) {
        *at = 0;
    }
    if (!*pattern) {
        return refuse(word, source, selector->excludes ? "nothing follows \"!\"" : "nothing stands before \"@\"");
    }
    return parse_pattern(pattern, word, source, before, selector);
}

/* Ignores blanks around an element. */
gpuhal_status gpuhal_selector_next(const char **list, const char *source, gpuhal_selector *selector)
{
    char word[GPUHAL_SELECTOR_BYTES];
    const gpuhal_selector before = *selector;
    const char *text = *list, *comma = strchr(text, ','), *begin = text + strspn(text, " \t");
    const char *end = comma ? comma : text + strlen(text);
    *list = comma ? comma + 1 : NULL;
    *selector = (gpuhal_selector){.form = GPUHAL_SELECT_AUTO};
    while (end > begin && (end[-1] == ' ' || end[-1] == '\t')) {
        end--;
    }
    if (end <= begin) {
        return refuse(text, source, "it is blank, and selectors are separated by one comma each");
    }
    if ((size_t)(end - begin) >= sizeof word) {
        return refuse(text, source, "it has more than %zu bytes", sizeof word - 1);
    }
    memcpy(word, begin, (size_t)(end - begin));
    word[end - begin] = 0;
    return parse(word, source, &before, selector);
}

gpuhal_status gpuhal_selectors_check(const char *list, const char *source)
{
    const gpuhal_selector_form decides = gpuhal_selectors_sampled_form(list);
    gpuhal_selector selector = {0};
    gpuhal_status status = GPUHAL_OK;
    for (const char *rest = list; rest && !status;) {
        status = gpuhal_selector_next(&rest, source, &selector);
        if (!status && gpuhal_selector_is_sampled(&selector) && selector.form != decides) {
            status = gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                      "%s: \"%s\": one of most_free and least_loaded decides, not both", source, list);
        }
    }
    return status;
}

gpuhal_selector_form gpuhal_selectors_sampled_form(const char *list)
{
    gpuhal_selector selector = {0};
    for (const char *rest = list; rest && gpuhal_selector_next(&rest, "", &selector) == GPUHAL_OK;) {
        if (gpuhal_selector_is_sampled(&selector)) {
            return selector.form;
        }
    }
    return GPUHAL_SELECT_AUTO;
}
