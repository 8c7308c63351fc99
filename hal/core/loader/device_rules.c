/* loader/device_rules.c: see device_rules.h. Patterns describe the form of text facts: `x` matches a lower-case
 * hexadecimal digit, `d` a decimal number without leading zeros, and other characters match themselves. */
#include "loader/device_rules.h"

#include "base/records.h"

#include <gpuhal/device.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Staging chunks have room for a few blocks of this size, no matter how low the limit on staging is. */
#define SPLIT_ALIGNMENT_MAX 4096u

/* Facts that identify devices. Each value must have exactly one spelling, because two spellings of one address would
 * become two devices. */
static const struct {
    gpuhal_key key;
    const char *pattern, *form;
} forms[] = {
    {GPUHAL_FACT_PCI_ADDRESS, "xxxx:xx:xx.x", "0000:c1:00.0 in lower case"},
    {GPUHAL_FACT_UUID, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "8-4-4-4-12 lower-case hexadecimal digits"},
    {GPUHAL_FACT_DRIVER_UUID, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "8-4-4-4-12 lower-case hexadecimal digits"},
    {GPUHAL_FACT_LUID, "xxxxxxxxxxxxxxxx", "16 lower-case hexadecimal digits"},
    {GPUHAL_FACT_DRM_RENDER_NODE, "d:d", "226:128, its major and minor number"},
};

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
}

static size_t match_one(const char *text, char pattern)
{
    if (pattern == 'd') {
        size_t digits = strspn(text, "0123456789");
        return digits <= 10 && (digits == 1 || *text != '0') ? digits : 0;
    }
    return pattern == 'x' ? is_hex(*text) : *text == pattern;
}

static bool matches(const char *text, const char *pattern)
{
    for (size_t bytes = 1; *pattern && bytes; pattern += bytes != 0) {
        bytes = match_one(text, *pattern);
        text += bytes;
    }
    return !*text && !*pattern;
}

/* Under a hypervisor, a PCI domain may have more than four digits. */
static bool is_form(gpuhal_key key, const char *text, const char *pattern)
{
    while (key == GPUHAL_FACT_PCI_ADDRESS && strlen(text) > strlen(pattern) && is_hex(*text) && strlen(text) <= 16) {
        text++;
    }
    return matches(text, pattern);
}

static bool is_power_of_two(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

/* An unknown key may come from a later plugin of the same ABI. Such a key is kept and displayed as a number. */
static void write_name(gpuhal_key key, char *out, size_t bytes)
{
    const char *name = gpuhal_key_name(key);
    if (name) {
        snprintf(out, bytes, "%s", name);
    } else {
        snprintf(out, bytes, "key 0x%" PRIx32, key);
    }
}

/* Returns what is wrong with a number, or NULL. Checks only properties that the core relies on. For example, a wrong
 * alignment would lead to a wrong address, and a wrong type to a wrong choice of device. The vendor is responsible for
 * plausible values. */
static const char *number_fault(gpuhal_key key, uint64_t value)
{
    switch (key) {
    case GPUHAL_FACT_TYPE:
        return value < GPUHAL_DEVICE_GPU || value > GPUHAL_DEVICE_ACCELERATOR ? "which is not a device type" : NULL;
    case GPUHAL_FACT_SOFTWARE:
    case GPUHAL_FACT_UNIFIED_MEMORY:
        return value > 1 ? "which is neither 0 nor 1" : NULL;
    case GPUHAL_FACT_PAGEABLE_ACCESS:
        return value > 2 ? "which is not 0, 1 or 2" : NULL;
    case GPUHAL_FACT_MEMORY_KINDS:
        return !(value & 1u << GPUHAL_MEMORY_DEVICE) ? "which lacks the bit of device memory" : NULL;
    case GPUHAL_FACT_COPY_ALIGNMENT_BYTES:
    case GPUHAL_FACT_FILL_ALIGNMENT_BYTES:
        return !is_power_of_two(value)       ? "which is not a power of two"
               : value > SPLIT_ALIGNMENT_MAX ? "which is more than the library can split"
                                             : NULL;
    case GPUHAL_FACT_BINDING_ALIGNMENT_BYTES:
    case GPUHAL_FACT_IMPORT_ALIGNMENT_BYTES:
        return !is_power_of_two(value) ? "which is not a power of two" : NULL;
    default:
        return NULL;
    }
}

bool gpuhal_rules_number(gpuhal_key key, uint64_t value, char *problem, size_t bytes)
{
    char name[48];
    write_name(key, name, sizeof name);
    if (gpuhal_key_is_text(key)) {
        snprintf(problem, bytes, "it gives %s as a number; the fact is a text", name);
        return false;
    }
    const char *fault = number_fault(key, value);
    if (fault) {
        snprintf(problem, bytes, "it gives %s as %" PRIu64 ", %s", name, value, fault);
    }
    return !fault;
}

/* Terminals interpret U+0080 to U+009F as control codes. */
static bool has_high_control(const char *text)
{
    for (const char *at = strchr(text, '\xc2'); at; at = strchr(at + 1, '\xc2')) {
        if ((unsigned char)at[1] >= 0x80 && (unsigned char)at[1] < 0xa0) {
            return true;
        }
    }
    return false;
}

/* Text appears in logs, on terminals and in JSON, so it must be UTF-8 without control characters. The length is limited
 * before the text is read, because the null terminator may be missing. */
static bool check_clean(const char *name, const char *value, char *problem, size_t bytes)
{
    size_t length = strnlen(value, GPUHAL_FACT_TEXT_MAX + 1);
    if (length > GPUHAL_FACT_TEXT_MAX) {
        snprintf(problem, bytes, "the text of %s has more than %u bytes", name, GPUHAL_FACT_TEXT_MAX);
        return false;
    }
    if (!gpuhal_records_is_clean(value, length) || has_high_control(value)) {
        snprintf(problem, bytes, "the text of %s is not UTF-8, or has control characters", name);
        return false;
    }
    return true;
}

bool gpuhal_rules_text(gpuhal_key key, const char *value, char *problem, size_t bytes)
{
    char name[48];
    write_name(key, name, sizeof name);
    if (gpuhal_key_name(key) && !gpuhal_key_is_text(key)) {
        snprintf(problem, bytes, "it gives %s as a text; the fact is a number", name);
        return false;
    }
    if (!value) {
        snprintf(problem, bytes, "it gives NULL as the text of %s", name);
        return false;
    }
    if (!check_clean(name, value, problem, bytes)) {
        return false;
    }
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (forms[i].key == key && !is_form(key, value, forms[i].pattern)) {
            snprintf(problem, bytes, "it gives %s as \"%.40s\"; the form is %s", name, value, forms[i].form);
            return false;
        }
    }
    if (key == GPUHAL_FACT_NAME && !value[strspn(value, " ")]) {
        snprintf(problem, bytes, "the name of a device is empty");
        return false;
    }
    return true;
}

bool gpuhal_rules_missing(gpuhal_key key, gpuhal_missing reason, const char *why, char *problem, size_t bytes)
{
    char name[48];
    write_name(key, name, sizeof name);
    if (reason < GPUHAL_MISSING_NOT_SUPPORTED || reason > GPUHAL_MISSING_LOST) {
        snprintf(problem, bytes, "it gives %" PRIu32 " as the reason why %s is missing, which is not a reason", reason,
                 name);
        return false;
    }
    return !why || check_clean(name, why, problem, bytes);
}

/* Checks like the sink, for facts from a helper's stream. */
static bool check_fact(const gpuhal_fact *fact, char *problem, size_t bytes)
{
    if (fact->missing) {
        return gpuhal_rules_missing(fact->key, fact->missing, fact->text, problem, bytes);
    }
    return fact->text ? gpuhal_rules_text(fact->key, fact->text, problem, bytes)
                      : gpuhal_rules_number(fact->key, fact->u64, problem, bytes);
}

bool gpuhal_rules_device(const gpuhal_listed_device *device, char *problem, size_t bytes)
{
    static const gpuhal_key mandatory[] = {GPUHAL_FACT_NAME, GPUHAL_FACT_TYPE, GPUHAL_FACT_SOFTWARE,
                                           GPUHAL_FACT_MEMORY_KINDS};
    static const gpuhal_key of_hardware[] = {GPUHAL_FACT_PCI_ADDRESS};
    const bool is_device = gpuhal_listed_is_device(device);
    const size_t count = is_device ? sizeof mandatory / sizeof *mandatory : sizeof of_hardware / sizeof *of_hardware;
    for (size_t i = 0; i < count; i++) {
        const gpuhal_key key = is_device ? mandatory[i] : of_hardware[i];
        const gpuhal_fact *fact = gpuhal_facts_find(&device->facts, key);
        if (!fact || fact->missing) {
            snprintf(problem, bytes, "device %" PRIu32 " lacks the mandatory fact %s", device->index,
                     gpuhal_key_name(key));
            return false;
        }
    }
    for (size_t i = 0; i < device->facts.count; i++) {
        if (!check_fact(&device->facts.list[i], problem, bytes)) {
            return false;
        }
    }
    return true;
}
