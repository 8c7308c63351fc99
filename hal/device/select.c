/* device/select.c: selectors, and the choice of a device with its reason (design: `auto`, `gpu`, `cpu`, backend, id, pci=, uuid=,
 * name=). A selector names what it names and nothing else: it falls back to the CPU only for a caller who allows that. */
#include "device/device.h"

#include "core/error.h"
#include "core/records.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char reason[512]; /* of this thread's last gpuhal_select() */

static void lower(char *text)
{
    for (; *text; text++) {
        *text = (char)tolower((unsigned char)*text);
    }
}

static gpuhal_status no_selector(const char *text, const char *source)
{
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                            "%s: \"%s\" is no selector; known are auto, gpu, cpu, BACKEND, BACKEND:INDEX, pci=, uuid= and name=", source,
                            text);
}

/* The grammar of gpuhal_plugin.name. */
static bool is_backend_name(const char *text, size_t length)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    return length > 0 && length < 32 && text[0] >= 'a' && text[0] <= 'z' && strspn(text, letters) >= length;
}

/* In lower case; in a glob only `*` and `?` have a meaning, what else fnmatch would read is escaped. */
static void take_value(gpuhal_selector *selector, const char *value)
{
    size_t at = 0;
    for (; *value && at + 2 < sizeof selector->text; value++) {
        if (selector->form == GPUHAL_SELECT_NAME && (*value == '[' || *value == '\\')) {
            selector->text[at++] = '\\';
        }
        selector->text[at++] = *value;
    }
    selector->text[at] = 0;
    lower(selector->text);
}

gpuhal_status gpuhal_selector_parse(const char *text, const char *source, gpuhal_selector *out_selector)
{
    gpuhal_selector *selector = out_selector;
    *selector = (gpuhal_selector){.form = GPUHAL_SELECT_AUTO};
    const char *value = text;
    if (!text || !*text || strcmp(text, "auto") == 0) {
        return GPUHAL_OK;
    }
    if (strcmp(text, "gpu") == 0) {
        selector->form = GPUHAL_SELECT_GPU;
        return GPUHAL_OK;
    }
    size_t name = strcspn(text, ":=");
    if (text[name] == '=') {
        value = text + name + 1;
        selector->form = strncmp(text, "name", name) == 0 && name == 4 ? GPUHAL_SELECT_NAME : GPUHAL_SELECT_FACT;
        selector->key = strncmp(text, "pci", name) == 0 ? GPUHAL_FACT_PCI_ADDRESS : GPUHAL_FACT_UUID;
        bool known = selector->form == GPUHAL_SELECT_NAME || (name == 3 && strncmp(text, "pci", 3) == 0) ||
                     (name == 4 && strncmp(text, "uuid", 4) == 0);
        if (!known || !*value || strlen(value) >= sizeof selector->text / 2) {
            return no_selector(text, source);
        }
        take_value(selector, value);
        return GPUHAL_OK;
    }
    uint64_t index = 0;
    bool has_index = text[name] == ':';
    if (!is_backend_name(text, name) || (has_index && (!gpuhal_records_u64(text + name + 1, &index) || index > UINT32_MAX))) {
        return no_selector(text, source);
    }
    selector->form = has_index ? GPUHAL_SELECT_ID : GPUHAL_SELECT_BACKEND;
    selector->index = (uint32_t)index;
    memcpy(selector->text, text, name);
    return GPUHAL_OK;
}

static bool is_software(const gpuhal_device *device)
{
    return gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_SOFTWARE, 0) == 1;
}

static gpuhal_device_type type_of(const gpuhal_device *device)
{
    return (gpuhal_device_type)gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_TYPE, 0);
}

/* For the selector `gpu`: a program that plays a GPU is none. */
static bool is_gpu(const gpuhal_device *device)
{
    return !is_software(device) && (type_of(device) == GPUHAL_DEVICE_GPU || type_of(device) == GPUHAL_DEVICE_INTEGRATED_GPU);
}

bool gpuhal_selector_matches(const gpuhal_selector *selector, const gpuhal_device *device)
{
    const gpuhal_facts *facts = &device->listed->facts;
    const char *text = NULL;
    char name[512];
    switch (selector->form) {
    case GPUHAL_SELECT_AUTO:
        return true;
    case GPUHAL_SELECT_GPU:
        return is_gpu(device);
    case GPUHAL_SELECT_BACKEND:
        return strcmp(selector->text, device->candidate->name) == 0;
    case GPUHAL_SELECT_ID:
        return strcmp(selector->text, device->candidate->name) == 0 && selector->index == device->listed->index;
    case GPUHAL_SELECT_FACT:
        text = gpuhal_facts_text(facts, selector->key);
        return text && strcmp(text, selector->text) == 0;
    case GPUHAL_SELECT_NAME:
        text = gpuhal_facts_text(facts, GPUHAL_FACT_NAME);
        snprintf(name, sizeof name, "%s", text ? text : "");
        lower(name);
        return fnmatch(selector->text, name, 0) == 0;
    }
    return false;
}

/* Within one backend: a GPU before an integrated one before an accelerator before a processor. */
static int rank(const gpuhal_device *device)
{
    switch (type_of(device)) {
    case GPUHAL_DEVICE_GPU:
        return 3;
    case GPUHAL_DEVICE_INTEGRATED_GPU:
        return 2;
    case GPUHAL_DEVICE_ACCELERATOR:
        return 1;
    default:
        return 0;
    }
}

/* The best match: the first backend in order that has one, in it the highest rank, then the lowest index. */
static gpuhal_device *best_match(const gpuhal *gpu, const gpuhal_selector *selector, uint32_t *out_passed, gpuhal_device **out_first_passed)
{
    bool general = selector->form == GPUHAL_SELECT_AUTO || selector->form == GPUHAL_SELECT_GPU;
    gpuhal_device *best = NULL;
    for (uint32_t d = 0; d < gpu->device_count; d++) {
        gpuhal_device *device = gpu->devices[d];
        bool is_cpu = strcmp(device->candidate->name, "cpu") == 0;
        if (general && !is_cpu && (is_software(device) || type_of(device) == GPUHAL_DEVICE_CPU)) {
            *out_first_passed = *out_passed == 0 ? device : *out_first_passed;
            ++*out_passed;
            continue;
        }
        if (!gpuhal_selector_matches(selector, device)) {
            continue;
        }
        if (!best || (best->candidate == device->candidate && rank(device) > rank(best))) {
            best = device;
        }
    }
    return best;
}

/* Tells what decided, and what a reader may have expected instead. */
static void word_reason(const gpuhal_selector *selector, const char *text, const gpuhal_device *best, bool fell_back, uint32_t passed,
                        const gpuhal_device *first_passed)
{
    bool general = selector->form == GPUHAL_SELECT_AUTO || selector->form == GPUHAL_SELECT_GPU;
    int used = 0;
    if (fell_back) {
        used = snprintf(reason, sizeof reason, "nothing matches \"%s\", and the caller allows the CPU", text);
    } else if (!general) {
        used = snprintf(reason, sizeof reason, "the selector \"%s\" names it", text);
    } else if (strcmp(best->candidate->name, "cpu") == 0) {
        used = snprintf(reason, sizeof reason, "no GPU is usable, so the processor itself");
    } else {
        used = snprintf(reason, sizeof reason, "the best device of %s, the first backend in order that offers one", best->candidate->name);
    }
    size_t at = used < 0 ? 0 : (size_t)used;
    if (general && passed > 0 && at < sizeof reason) {
        snprintf(reason + at, sizeof reason - at, "; passed over %s%s: %s on the processor, only used when named", first_passed->id,
                 passed > 1 ? " and others" : "", passed > 1 ? "software devices" : "a software device");
    }
}

gpuhal_status gpuhal_select(gpuhal *gpu, const char *text, uint32_t flags, gpuhal_device **out_device, const char **out_reason)
{
    if (out_device) {
        *out_device = NULL;
    }
    if (out_reason) {
        *out_reason = NULL;
    }
    if (!gpu || !out_device || flags > GPUHAL_SELECT_ALLOW_CPU) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_select: gpu or out_device is NULL, or a flag is unknown");
    }
    gpuhal_selector selector;
    gpuhal_status status = gpuhal_selector_parse(text, "gpuhal_select", &selector);
    if (status) {
        return status;
    }
    text = text && *text ? text : "auto";
    uint32_t passed = 0;
    gpuhal_device *first_passed = NULL;
    gpuhal_device *best = best_match(gpu, &selector, &passed, &first_passed);
    bool fell_back = false;
    for (uint32_t d = 0; !best && (flags & GPUHAL_SELECT_ALLOW_CPU) && d < gpu->device_count; d++) {
        if (strcmp(gpu->devices[d]->candidate->name, "cpu") == 0) {
            best = gpu->devices[d];
            fell_back = true;
        }
    }
    if (!best && passed > 0) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "no device matches \"%s\"; %s is a software device, only used when named", text,
                                first_passed->id);
    }
    if (!best) {
        return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "no device matches \"%s\"", text);
    }
    word_reason(&selector, text, best, fell_back, passed, first_passed);
    *out_device = best;
    if (out_reason) {
        *out_reason = reason;
    }
    return GPUHAL_OK;
}
