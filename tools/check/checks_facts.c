/* checks_facts.c: the facts that the plugin reports about its devices, and whether they stay the same. */
#include "../common/utf8.h"
#include "program.h"

#include <gpuhal/device.h>

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

static void expect_same_fact(const gpuhal_listed *one, const gpuhal_listed *other, gpuhal_key key, const char *when)
{
    const gpuhal_listed_fact *a = gpuhal_listed_find(one, key);
    const gpuhal_listed_fact *b = gpuhal_listed_find(other, key);
    char was[128], is[128];
    gpuhal_listed_format(a, was, sizeof was);
    gpuhal_listed_format(b, is, sizeof is);
    if (strcmp(was, is) != 0) {
        gpuhal_fail_by(15, "device %u: %s was %s, and is %s %s", one->index, gpuhal_listed_key(key), was, is, when);
    }
}

/* Compares only facts: values such as free memory may change. */
static void expect_same_facts(const gpuhal_listed *one, const gpuhal_listed *other, const char *when)
{
    for (gpuhal_key key = GPUHAL_FACT_NAME; gpuhal_key_name(key); key++) {
        expect_same_fact(one, other, key, when);
    }
}

/* The core lists devices in one process, opens them in another, and matches them by their facts. */
void gpuhal_check_enumerate_again(gpuhal_context *context)
{
    const gpuhal_device_snapshot *first = &context->listing;
    if (first->stray) {
        gpuhal_fail("a fact was reported before any device was named");
    }
    for (size_t d = 0; d < first->count; d++) {
        if (gpuhal_device_snapshot_find(first, first->devices[d].index) != &first->devices[d]) {
            gpuhal_fail("device %u is named twice in one listing", first->devices[d].index);
        }
    }
    gpuhal_device_snapshot second = {0};
    gpuhal_expect_reported(gpuhal_device_snapshot_enumerate(context->plugin, context->instance, &second),
                           "the second enumerate");
    for (size_t d = 0; d < first->count; d++) {
        const gpuhal_listed *again = gpuhal_device_snapshot_find(&second, first->devices[d].index);
        if (again == NULL) {
            gpuhal_fail("the second enumerate leaves out device %u", first->devices[d].index);
        }
        expect_same_facts(&first->devices[d], again, "when the devices are named again");
    }
    if (second.count != first->count) {
        gpuhal_fail("the second enumerate names %zu devices instead of %zu", second.count, first->count);
    }
    gpuhal_device_snapshot_finish(&second);
}

/* A driver often knows more once a device is open. The facts must be the same as before, or missing both times. */
void gpuhal_check_facts_open(gpuhal_context *context)
{
    gpuhal_device_snapshot while_open = {0};
    gpuhal_expect_reported(gpuhal_device_snapshot_enumerate(context->plugin, context->instance, &while_open),
                       "enumerate, while a device is open");
    const gpuhal_listed *again = gpuhal_device_snapshot_find(&while_open, context->index);
    if (again == NULL) {
        gpuhal_fail("device %u is not listed any more while it is open", context->index);
    }
    expect_same_facts(context->listed, again, "while the device is open");
    gpuhal_device_snapshot_finish(&while_open);
}

/* A fact that is not reported counts as missing. The facts checked here must not be missing, because no device can be
 * chosen without them. */
void gpuhal_check_facts_complete(gpuhal_context *context)
{
    static const gpuhal_key mandatory[] = {GPUHAL_FACT_NAME, GPUHAL_FACT_TYPE, GPUHAL_FACT_SOFTWARE,
                                           GPUHAL_FACT_MEMORY_KINDS};
    for (size_t i = 0; i < sizeof mandatory / sizeof *mandatory; i++) {
        const gpuhal_listed_fact *fact = gpuhal_listed_find(context->listed, mandatory[i]);
        if (fact == NULL || fact->kind == LISTED_MISSING) {
            gpuhal_fail_by(12, "the mandatory fact %s has no value", gpuhal_listed_key(mandatory[i]));
        }
    }
    for (size_t i = 0; i < context->listed->count; i++) {
        const gpuhal_listed_fact *fact = &context->listed->facts[i];
        const char *key = gpuhal_listed_key(fact->key);
        const bool is_vendors = fact->key >= GPUHAL_VENDOR_FIRST;
        if (gpuhal_key_name(fact->key) == NULL && !is_vendors) {
            gpuhal_fail("there is no fact with %s; keys of your own begin with GPUHAL_VENDOR_FIRST", key);
        }
        if (fact->kind == LISTED_MISSING &&
            (fact->reason < GPUHAL_MISSING_NOT_SUPPORTED || fact->reason > GPUHAL_MISSING_LOST)) {
            gpuhal_fail("%s is missing with %u, which is not a reason", key, fact->reason);
        }
        if (!is_vendors && fact->kind != LISTED_MISSING &&
            (fact->kind == LISTED_TEXT) != (gpuhal_key_is_text(fact->key) != 0)) {
            gpuhal_fail("%s is given as a %s", key,
                        fact->kind == LISTED_TEXT ? "text, and is a number" : "number, and is a text");
        }
        if (fact->kind == LISTED_TEXT && fact->text == NULL) {
            gpuhal_fail("%s is a NULL text", key);
        }
    }
}

/* x matches a lower-case hexadecimal digit, d one or more digits, and every other character itself. */
static bool has_form(const char *text, const char *form)
{
    for (; *form != '\0'; form++) {
        if (*form == 'd') {
            size_t digits = strspn(text, "0123456789");
            if (digits == 0) {
                return false;
            }
            text += digits;
        } else if (*form == 'x' ? *text == '\0' || strchr("0123456789abcdef", *text) == NULL : *text != *form) {
            return false;
        } else {
            text++;
        }
    }
    return *text == '\0';
}

/* Names are written to JSON, terminals and files. */
static void expect_text(const char *key, const char *text)
{
    if (text[0] == '\0') {
        gpuhal_fail("%s is an empty text; report an unknown fact as missing, with a reason", key);
    }
    if (isspace((unsigned char)text[0]) || isspace((unsigned char)text[strlen(text) - 1])) {
        gpuhal_fail("%s begins or ends with white space: '%s'", key, text);
    }
    for (const char *at = text; *at != '\0';) {
        uint32_t character;
        const size_t length = gpuhal_tool_utf8_next(at, &character);
        if (length == 0 || character < 0x20 || character == 0x7f) {
            gpuhal_fail("%s %s at byte %td", key, length == 0 ? "is not UTF-8" : "has a control character", at - text);
        }
        at += length;
    }
}

/* Applications search this fact for format names and use the first name that they know. */
static void expect_formats(const char *text)
{
    for (const char *word = text;; word += strcspn(word, " ") + 1) {
        const size_t length = strcspn(word, " ");
        const bool is_name = strspn(word, "abcdefghijklmnopqrstuvwxyz0123456789-._") == length;
        if (length == 0 || length >= FORMAT_BYTES || !is_name) {
            gpuhal_fail("program_formats is '%s'; the form is names of lower-case letters, digits, -, . and _, up to "
                        "%d characters each, with one blank between them",
                        text, FORMAT_BYTES - 1);
        }
        for (const char *other = text; other < word; other += strcspn(other, " ") + 1) {
            if (strcspn(other, " ") == length && strncmp(other, word, length) == 0) {
                gpuhal_fail("program_formats is '%s'; it names %.*s twice", text, (int)length, word);
            }
        }
        if (word[length] == '\0') {
            return;
        }
    }
}

/* The core compares these strings byte by byte to find interfaces of one physical device in different vendors'
 * plugins. */
void gpuhal_check_facts_canonical(gpuhal_context *context)
{
    static const struct {
        gpuhal_key key;
        const char *form;
        const char *like;
    } forms[] = {
        {GPUHAL_FACT_UUID, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "8-4-4-4-12 lower-case hexadecimal digits"},
        {GPUHAL_FACT_LUID, "xxxxxxxxxxxxxxxx", "16 lower-case hexadecimal digits"},
        {GPUHAL_FACT_DRM_RENDER_NODE, "d:d", "226:128"},
    };
    for (size_t i = 0; i < context->listed->count; i++) {
        const gpuhal_listed_fact *fact = &context->listed->facts[i];
        const char *key = gpuhal_listed_key(fact->key);
        if (fact->kind != LISTED_TEXT || fact->text == NULL) {
            continue;
        }
        expect_text(key, fact->text);
        for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
            if (forms[f].key == fact->key && !has_form(fact->text, forms[f].form)) {
                gpuhal_fail("%s is '%s'; the form is %s", key, fact->text, forms[f].like);
            }
        }
        if (fact->key == GPUHAL_FACT_PROGRAM_FORMATS) {
            expect_formats(fact->text);
        }
        /* Hypervisors create domains with more than four digits. */
        const char *pci = fact->text;
        while (strlen(pci) > 12 && strlen(fact->text) <= 16 && strchr("0123456789abcdef", *pci) != NULL) {
            pci++;
        }
        if (fact->key == GPUHAL_FACT_PCI_ADDRESS && !has_form(pci, "xxxx:xx:xx.x")) {
            gpuhal_fail("%s is '%s'; the form is 0000:c1:00.0 in lower case", key, fact->text);
        }
    }
}

/* The bits of `of_vendors` are vendor-defined. */
static void expect_most(const gpuhal_context *context, gpuhal_key key, uint64_t most, uint64_t of_vendors)
{
    const uint64_t value = gpuhal_device_fact(context, key, 0) & ~of_vendors;
    if (value > most) {
        gpuhal_fail("%s is %" PRIu64 "; the largest that has a meaning is %" PRIu64, gpuhal_listed_key(key), value,
                    most);
    }
}

/* A program that adds values would interpret a 0 that means "unknown" as "no memory". */
void gpuhal_check_facts_known(gpuhal_context *context)
{
    static const gpuhal_key never_zero[] = {GPUHAL_FACT_VENDOR_ID,
                                            GPUHAL_FACT_TYPE,
                                            GPUHAL_FACT_MEMORY_TOTAL_BYTES,
                                            GPUHAL_FACT_ALLOCATION_MAX_BYTES,
                                            GPUHAL_FACT_ALLOCATION_MAX_COUNT,
                                            GPUHAL_FACT_BINDING_MAX_BYTES,
                                            GPUHAL_FACT_COMPUTE_UNITS,
                                            GPUHAL_FACT_CLOCK_CORE_MAX_HERTZ,
                                            GPUHAL_FACT_PHYSICAL_QUEUES,
                                            GPUHAL_FACT_SUBGROUP_SIZE_MIN,
                                            GPUHAL_FACT_SUBGROUP_SIZE_MAX,
                                            GPUHAL_FACT_GROUP_SIZE_MAX,
                                            GPUHAL_FACT_GROUP_SIZE_MAX_X,
                                            GPUHAL_FACT_GROUP_SIZE_MAX_Y,
                                            GPUHAL_FACT_GROUP_SIZE_MAX_Z,
                                            GPUHAL_FACT_GROUP_MEMORY_BYTES,
                                            GPUHAL_FACT_MEMORY_BANDWIDTH_BYTES_PER_SECOND,
                                            GPUHAL_FACT_MEMORY_KINDS};
    static const gpuhal_key alignments[] = {GPUHAL_FACT_BINDING_ALIGNMENT_BYTES, GPUHAL_FACT_COPY_ALIGNMENT_BYTES,
                                            GPUHAL_FACT_FILL_ALIGNMENT_BYTES, GPUHAL_FACT_IMPORT_ALIGNMENT_BYTES};
    const uint64_t kinds_of_vendors = UINT64_MAX << GPUHAL_VENDOR_KIND_FIRST & UINT32_MAX;
    for (size_t i = 0; i < sizeof never_zero / sizeof *never_zero; i++) {
        if (gpuhal_device_fact(context, never_zero[i], 1) == 0) {
            gpuhal_fail("%s is 0; report an unknown fact as missing, with a reason", gpuhal_listed_key(never_zero[i]));
        }
    }
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++) {
        const uint64_t value = gpuhal_device_fact(context, alignments[i], 1);
        if (value == 0 || (value & (value - 1)) != 0) {
            gpuhal_fail("%s is %" PRIu64 ", which is not a power of two", gpuhal_listed_key(alignments[i]), value);
        }
    }
    expect_most(context, GPUHAL_FACT_TYPE, GPUHAL_DEVICE_ACCELERATOR, 0);
    expect_most(context, GPUHAL_FACT_SOFTWARE, 1, 0);
    expect_most(context, GPUHAL_FACT_UNIFIED_MEMORY, 1, 0);
    expect_most(context, GPUHAL_FACT_PAGEABLE_ACCESS, 2, 0);
    expect_most(context, GPUHAL_FACT_MEMORY_KINDS, (2u << GPUHAL_MEMORY_MIGRATING) - 1, kinds_of_vendors);
    expect_most(context, GPUHAL_FACT_EXPORT_KINDS, (2u << GPUHAL_HANDLE_IPC) - 1, kinds_of_vendors);
    expect_most(context, GPUHAL_FACT_IMPORT_KINDS, (2u << GPUHAL_HANDLE_IPC) - 1, kinds_of_vendors);
    const uint64_t exportable = gpuhal_device_fact(context, GPUHAL_FACT_EXPORTABLE_KINDS, 0);
    if (exportable & ~gpuhal_device_fact(context, GPUHAL_FACT_MEMORY_KINDS, exportable)) {
        gpuhal_fail_by(16, "exportable_kinds is %#" PRIx64 ", and has kinds that memory_kinds lacks", exportable);
    }
    if (exportable >> GPUHAL_MEMORY_MIGRATING & 1) {
        gpuhal_fail_by(16, "exportable_kinds has memory of kind migrating, which the core never exports");
    }
    if ((gpuhal_device_fact(context, GPUHAL_FACT_MEMORY_KINDS, 1) & 1u << GPUHAL_MEMORY_DEVICE) == 0) {
        gpuhal_fail("memory_kinds lacks device memory, which every device has");
    }
}
