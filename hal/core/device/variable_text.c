/* device/variable_text.c: reads the lists in vendors' variables. Malformed lists have the same effect as in the
 * programs that read the variables. The sources are NVIDIA's documentation of CUDA_VISIBLE_DEVICES and PyTorch's model
 * of it (torch/cuda), ROCclr (rocdevice.cpp), ROCR (amd_filter_device.cpp), ggml-vulkan.cpp, Level Zero's specification
 * ("Affinity Mask") and Intel's compute-runtime (execution_environment.cpp). */
#include "device/variable.h"

#include "base/error.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENT_BYTES = 64, ROCR_LEAST = 5, ROCR_MOST = 20 };

typedef struct gpuhal_variable_element {
    char text[ELEMENT_BYTES]; /* as written */
    bool is_uuid, is_part;
    int64_t number;
    const char *uuid;    /* points into `text`, after GPU- or MIG- */
    const char *invalid; /* why the element is malformed; NULL if well-formed */
    const char *ignored; /* the ignored part of `text`; NULL if none */
} element;

void gpuhal_variable_say(gpuhal_picks *picks, const char *format, ...)
{
    const size_t length = strlen(picks->note);
    va_list arguments;
    va_start(arguments, format);
    snprintf(picks->note + length, sizeof picks->note - length, "%s", length > 0 ? "; " : "");
    const size_t at = strlen(picks->note);
    vsnprintf(picks->note + at, sizeof picks->note - at, format, arguments);
    va_end(arguments);
}

static void take(const char **list, const char *separators, element *out)
{
    const char *text = *list;
    const size_t length = strcspn(text, separators);
    *out = (element){.number = -1};
    snprintf(out->text, sizeof out->text, "%.*s", (int)(length < ELEMENT_BYTES ? length : ELEMENT_BYTES - 1), text);
    *list = text[length] ? text + length + 1 : NULL;
}

static bool begins(const char *text, const char *upper)
{
    while (*upper && toupper((unsigned char)*text) == *upper) {
        text++;
        upper++;
    }
    return !*upper;
}

static void read_uuid(element *one)
{
    one->is_uuid = true;
    one->is_part = begins(one->text, "MIG-");
    one->uuid = one->text + strlen("GPU-");
    one->invalid = *one->uuid ? NULL : "no UUID follows";
}

void gpuhal_variable_read_cuda(element *one)
{
    const char *text = one->text + strspn(one->text, " \t");
    if (strncmp(one->text, "GPU-", 4) == 0 || strncmp(one->text, "MIG-", 4) == 0) {
        read_uuid(one);
        return;
    }
    const char *digits = text + (*text == '+' || *text == '-');
    const size_t count = strspn(digits, "0123456789");
    one->invalid = !*text           ? "it is empty"
                   : count == 0     ? "it is neither an index nor a UUID"
                   : *text == '-'   ? "it is negative"
                   : count > 9      ? "it is no index of a device"
                                    : NULL;
    one->number = one->invalid ? -1 : strtol(digits, NULL, 10);
    one->ignored = digits[count] && digits[count] != ' ' ? digits + count : NULL;
}

void gpuhal_variable_read_clr(element *one)
{
    const size_t count = strspn(one->text, "0123456789");
    if (strncmp(one->text, "GPU-", 4) == 0) {
        read_uuid(one);
        return;
    }
    one->invalid = !*one->text                        ? "it is empty"
                   : count == 0 || one->text[count]   ? "it is not an index alone"
                   : count > 1 && one->text[0] == '0' ? "it begins with a 0"
                   : count > 9                        ? "it is no index of a device"
                                                      : NULL;
    one->number = one->invalid ? -1 : strtol(one->text, NULL, 10);
}

void gpuhal_variable_read_rocr(element *one)
{
    const char *begin = one->text + strspn(one->text, " \t");
    size_t length = strlen(begin);
    while (length > 0 && (begin[length - 1] == ' ' || begin[length - 1] == '\t')) {
        length--;
    }
    memmove(one->text, begin, length);
    one->text[length] = 0;
    if (begins(one->text, "G")) {
        read_uuid(one);
        one->invalid = !begins(one->text, "GPU-") || length < ROCR_LEAST || length > ROCR_MOST
                           ? "it is not a UUID, nor the beginning of one"
                           : NULL;
        return;
    }
    char *end = one->text;
    const long number = strtol(one->text, &end, 0);
    one->invalid = length == 0             ? "it is empty"
                   : *end                  ? "it is neither an index nor a UUID"
                   : number < 0            ? "it is negative"
                   : number > 999999999    ? "it is no index of a device"
                                           : NULL;
    one->number = one->invalid ? -1 : number;
}

/* ---- finding an element's device */

enum { NONE = -1, SEVERAL = -2, UNKNOWN = -3 };

static bool uuid_begins(const char *uuid, const char *wanted)
{
    while (*wanted && tolower((unsigned char)*wanted) == tolower((unsigned char)*uuid)) {
        wanted++;
        uuid++;
    }
    return !*wanted;
}

static int64_t find(const element *one, const gpuhal_counted *devices, uint32_t count)
{
    int64_t found = NONE;
    bool unknown = false;
    for (uint32_t i = 0; i < count; i++) {
        const gpuhal_counted *device = &devices[i];
        unknown = unknown || (one->is_uuid ? !device->uuid : device->number < 0);
        const bool fits = one->is_uuid ? device->uuid && device->partition == one->is_part &&
                                             uuid_begins(device->uuid, one->uuid)
                                       : device->number == one->number;
        found = !fits ? found : found == NONE ? (int64_t)i : SEVERAL;
    }
    /* An index beyond the last device does not name a device. */
    const bool beyond = !one->is_uuid && one->number >= (int64_t)count;
    return found == NONE && unknown && !beyond ? UNKNOWN : found;
}

/* Used if there is no list of devices. Returns the position of an earlier element with the same number or text, or
 * `count`, the position of the element itself. */
static int64_t place_of(const element *one, const element *earlier, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const bool same = one->is_uuid ? earlier[i].is_uuid && strcmp(earlier[i].text, one->text) == 0
                                       : !earlier[i].is_uuid && earlier[i].number == one->number;
        if (same) {
            return i;
        }
    }
    return count;
}

static bool is_picked(const gpuhal_picks *picks, uint32_t entry)
{
    bool is = false;
    for (uint32_t i = 0; i < picks->count; i++) {
        is = is || picks->entries[i] == entry;
    }
    return is;
}

static gpuhal_status say_unknown(const gpuhal_variable *variable, const element *one)
{
    const bool ordered = variable->flags & GPUHAL_VARIABLE_CUDA_ORDER;
    return gpuhal_error_set(
        GPUHAL_ERROR_NOT_FOUND, "%s: device \"%s\" is known to %s alone, which lists no device here%s", variable->name,
        one->text, variable->reader, !ordered || one->is_uuid ? "" : "; use a UUID, or CUDA_DEVICE_ORDER=PCI_BUS_ID");
}

static void say_end(const gpuhal_variable *variable, const element *one, const char *why, const char *rest,
                    gpuhal_picks *picks)
{
    gpuhal_variable_say(picks, "%s ends the list at \"%s\": %s%s%s%s", variable->reader, one->text, why,
                        rest ? ", and \"" : "", rest ? rest : "", rest ? "\" is ignored" : "");
}

static bool repeat(const gpuhal_variable *variable, const element *one, const char *rest, gpuhal_picks *picks)
{
    if (variable->repeat == GPUHAL_REPEAT_LEAVES_NONE) {
        picks->count = 0;
        gpuhal_variable_say(picks, "%s lists no device: \"%s\" names a device for the second time", variable->reader,
                            one->text);
    } else if (variable->repeat == GPUHAL_REPEAT_ENDS) {
        say_end(variable, one, "it names a device for the second time", rest, picks);
    }
    return variable->repeat != GPUHAL_REPEAT_IGNORED;
}

gpuhal_status gpuhal_variable_read_list(const gpuhal_variable *variable, const char *value,
                                        const gpuhal_counted *devices, uint32_t count, gpuhal_picks *picks)
{
    static const char *const reasons[] = {[1] = "no device has it", [2] = "several devices have it"};
    element seen[GPUHAL_VARIABLE_PICKS];
    bool uuids = false;
    uint32_t places = 0;
    for (const char *rest = value; rest && *rest && places < GPUHAL_VARIABLE_PICKS;) {
        element *one = &seen[places];
        take(&rest, ",", one);
        variable->read_element(one);
        if (places == 0) {
            uuids = one->is_uuid;
        } else if ((variable->flags & GPUHAL_VARIABLE_ONE_KIND) && !one->invalid && one->is_uuid != uuids) {
            one->invalid = uuids ? "an index does not follow a UUID" : "a UUID does not follow an index";
        }
        const int64_t at = one->invalid ? NONE
                           : devices    ? find(one, devices, count)
                                        : place_of(one, seen, places);
        if (at == UNKNOWN) {
            return say_unknown(variable, one);
        }
        if (at < 0) {
            say_end(variable, one, one->invalid ? one->invalid : reasons[-at], rest, picks);
            return GPUHAL_OK;
        }
        if (one->ignored) {
            gpuhal_variable_say(picks, "\"%s\" behind the index in \"%s\" is ignored", one->ignored, one->text);
        }
        const uint32_t entry = devices ? devices[at].entry : (uint32_t)at;
        const bool again = is_picked(picks, entry);
        if (again && repeat(variable, one, rest, picks)) {
            return GPUHAL_OK;
        }
        if (!again) {
            picks->entries[picks->count++] = entry;
        }
        places++;
    }
    return GPUHAL_OK;
}

/* Reads numbers like the C++ stream that llama.cpp uses, so "-1" wraps around. */
gpuhal_status gpuhal_variable_read_numbers(const gpuhal_variable *variable, const char *value,
                                           const gpuhal_counted *devices, uint32_t count, gpuhal_picks *picks)
{
    for (const char *at = value + strspn(value, ", \t"); *at; at += strspn(at, ", \t")) {
        element one = {.number = -1};
        const char *digits = at + (*at == '-' || *at == '+');
        const size_t length = strspn(digits, "0123456789");
        snprintf(one.text, sizeof one.text, "%.*s", (int)strcspn(at, ", \t"), at);
        if (length == 0) {
            say_end(variable, &one, "it is not a number", NULL, picks);
            return GPUHAL_OK;
        }
        const bool large = length > 9 || (*at == '-' && strspn(digits, "0") < length);
        one.number = large ? INT64_MAX : strtol(digits, NULL, 10);
        const int64_t found = find(&one, devices, count);
        if (found == UNKNOWN) {
            return say_unknown(variable, &one);
        }
        if (found < 0) {
            return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                    "%s is \"%.200s\": there is no Vulkan device \"%s\", and %s ends with an error",
                                    variable->name, value, one.text, variable->reader);
        }
        if (!is_picked(picks, devices[found].entry) && picks->count < GPUHAL_VARIABLE_PICKS) {
            picks->entries[picks->count++] = devices[found].entry;
        }
        at = digits + length;
    }
    return GPUHAL_OK;
}

/* Reads a number such as "0" or "0.1". An element without digits, or with other characters, is malformed. */
static bool read_ordinals(element *one, bool *out_has_part)
{
    const char *text = one->text + strspn(one->text, " ");
    const size_t digits = strspn(text, "0123456789");
    const char *end = text + digits;
    *out_has_part = *end == '.';
    const size_t part = *out_has_part ? strspn(end + 1, "0123456789") : 0;
    end += *out_has_part ? part + 1 : 0;
    one->number = strtol(text, NULL, 10);
    return digits > 0 && digits <= 9 && (part > 0 || !*out_has_part) && !end[strspn(end, " ")];
}

/* An element that names a sub-device selects the whole device. The number of sub-devices is unknown, so unless the
 * hierarchy is composite, any number above 0 may name a sub-device of the first device. */
gpuhal_status gpuhal_variable_read_mask(const gpuhal_variable *variable, const char *value,
                                        const gpuhal_counted *devices, uint32_t count, gpuhal_picks *picks)
{
    const char *set = gpuhal_os_environment("ZE_FLAT_DEVICE_HIERARCHY"), *hierarchy = set ? set : "";
    const bool composite = strcmp(hierarchy, "COMPOSITE") == 0;
    const bool flat = strcmp(hierarchy, "FLAT") == 0 || strcmp(hierarchy, "COMBINED") == 0;
    for (const char *rest = value; rest;) {
        element one;
        bool has_part = false;
        take(&rest, ",", &one);
        if (!read_ordinals(&one, &has_part)) {
            return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                    "%s is \"%.200s\": \"%s\" is neither a number nor two with a dot between them",
                                    variable->name, value, one.text);
        }
        const bool is_skipped = has_part && flat, is_open = !composite && (has_part || one.number > 0) && count > 0;
        const int64_t found = is_skipped ? NONE : is_open ? UNKNOWN : find(&one, devices, count);
        if (found == UNKNOWN) {
            return say_unknown(variable, &one);
        }
        if (found < 0) {
            gpuhal_variable_say(picks, "\"%s\" names no device", one.text);
        } else if (!is_picked(picks, devices[found].entry) && picks->count < GPUHAL_VARIABLE_PICKS) {
            picks->entries[picks->count++] = devices[found].entry;
        }
        if (found >= 0 && has_part) {
            gpuhal_variable_say(picks, "the whole device stands for its sub-devices in \"%s\"", one.text);
        }
    }
    return GPUHAL_OK;
}

gpuhal_status gpuhal_variable_read(const gpuhal_variable *variable, const char *value, const gpuhal_counted *devices,
                                   uint32_t count, gpuhal_picks *out_picks)
{
    out_picks->count = 0;
    *out_picks->note = 0;
    if (!*value) {
        gpuhal_variable_say(out_picks, "%s is empty, so %s lists no device", variable->name, variable->reader);
        return GPUHAL_OK;
    }
    return variable->read_value(variable, value, devices, count, out_picks);
}
