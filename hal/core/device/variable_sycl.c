/* device/variable_sycl.c: reads ONEAPI_DEVICE_SELECTOR, for example "level_zero:gpu;opencl:0,1;!opencl:cpu". Terms that
 * name devices come first. Terms with `!` follow and remove devices from these, or from all devices if there is no
 * other term. The errors follow SYCL's parser (device_filter.cpp of intel/llvm). */
#include "device/variable.h"

#include "base/error.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TERM_BYTES = 128, INTEL = 0x8086 };

/* Names all devices of a backend, all devices of one type, or one device by index. */
typedef struct target {
    const char *backend;
    gpuhal_device_type type; /* 0 means any */
    long number;             /* -1 means any */
} target;

static gpuhal_status refuse(const gpuhal_variable *variable, const char *value, const char *term, const char *why)
{
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s is \"%.200s\": SYCL refuses \"%s\": %s", variable->name,
                            value, term, why);
}

static bool is_gpu(gpuhal_device_type type)
{
    return type == GPUHAL_DEVICE_GPU || type == GPUHAL_DEVICE_INTEGRATED_GPU;
}

static gpuhal_device_type type_of(const gpuhal_entry *entry)
{
    return (gpuhal_device_type)gpuhal_facts_u64(&entry->listed->facts, GPUHAL_FACT_TYPE, 0);
}

/* Level Zero is not a backend of this library, so level_zero means the GPUs of Intel, with any interface. */
static bool is_of_backend(const char *backend, const gpuhal_entry *entry)
{
    const gpuhal_facts *facts = &entry->listed->facts;
    if (strcmp(backend, "level_zero") == 0) {
        return gpuhal_facts_u64(facts, GPUHAL_FACT_VENDOR_ID, 0) == INTEL && is_gpu(type_of(entry)) &&
               gpuhal_facts_u64(facts, GPUHAL_FACT_SOFTWARE, 0) == 0;
    }
    const char *name = strcmp(backend, "hip") == 0          ? "rocm"
                       : strcmp(backend, "native_cpu") == 0 ? "cpu"
                                                            : backend;
    return strcmp(backend, "*") == 0 || strcmp(entry->candidate->name, name) == 0;
}

/* Returns whether SYCL uses the backend's own numbers, as it does for CUDA and HIP. */
static bool has_own_numbers(const char *backend)
{
    return strcmp(backend, "cuda") == 0 || strcmp(backend, "hip") == 0;
}

static bool fits(const target *wanted, const gpuhal_entry *entry)
{
    const gpuhal_device_type type = type_of(entry);
    return is_of_backend(wanted->backend, entry) &&
           (wanted->type == 0 || wanted->type == type || (is_gpu(wanted->type) && is_gpu(type))) &&
           (wanted->number < 0 || !has_own_numbers(wanted->backend) ||
            gpuhal_facts_u64(&entry->listed->facts, GPUHAL_FACT_NATIVE_INDEX, UINT64_MAX) == (uint64_t)wanted->number);
}

/* Interfaces of one partition count once. */
static uint32_t count_fitting(const target *wanted, const gpuhal_device_snapshot *snapshot)
{
    const gpuhal_interface *interfaces = snapshot->identity.interfaces;
    uint32_t count = 0;
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        bool is_new = fits(wanted, &snapshot->entries[i]);
        for (uint32_t e = 0; e < i && is_new; e++) {
            is_new = !(fits(wanted, &snapshot->entries[e]) && interfaces[e].partition == interfaces[i].partition);
        }
        count += is_new;
    }
    return count;
}

static void pick(const target *wanted, const gpuhal_device_snapshot *snapshot, bool take_away, gpuhal_picks *picks)
{
    for (uint32_t i = 0; i < snapshot->identity.count; i++) {
        uint32_t at = 0;
        if (!fits(wanted, &snapshot->entries[i])) {
            continue;
        }
        while (at < picks->count && picks->entries[at] != i) {
            at++;
        }
        if (take_away && at < picks->count) {
            picks->entries[at] = picks->entries[--picks->count];
        } else if (!take_away && at == picks->count && at < GPUHAL_VARIABLE_PICKS) {
            picks->entries[picks->count++] = i;
        }
    }
}

/* Reads a device such as "gpu", "*", "0" or "0.1". SYCL ignores characters after the digits of a number. */
static gpuhal_status read_device(const gpuhal_variable *variable, const char *value, char *text, target *out,
                                 gpuhal_picks *picks)
{
    static const struct {
        const char *name;
        gpuhal_device_type type;
    } types[] = {{"*", 0},
                 {"cpu", GPUHAL_DEVICE_CPU},
                 {"gpu", GPUHAL_DEVICE_GPU},
                 {"acc", GPUHAL_DEVICE_ACCELERATOR},
                 {"fpga", GPUHAL_DEVICE_ACCELERATOR}};
    char *dot = strchr(text, '.');
    if (dot) {
        if (dot == text || !dot[1] || dot[1] == '.') {
            return refuse(variable, value, text, "a part between dots is empty");
        }
        *dot = 0;
    }
    out->type = 0;
    out->number = -1;
    bool known = false;
    for (size_t i = 0; i < sizeof types / sizeof *types && !known; i++) {
        known = strcmp(text, types[i].name) == 0;
        out->type = known ? types[i].type : 0;
    }
    if (dot && out->type != 0) {
        return refuse(variable, value, text, "a type of device has no sub-devices");
    }
    if (dot) {
        gpuhal_variable_say(picks, "the whole device stands for its sub-devices in \"%s.%s\"", text, dot + 1);
    }
    char *end = text;
    const long number = known ? -1 : strtol(text, &end, 10);
    if (!known && (end == text || number > INT32_MAX)) {
        return refuse(variable, value, text, "it is neither a type of device nor an index");
    }
    out->number = !known && number < 0 ? INT32_MAX : number; /* in SYCL no device has a negative number */
    return GPUHAL_OK;
}

/* A number can be used only if SYCL's order is known, as for CUDA and HIP devices, or if there is only one device. */
static gpuhal_status check_number(const gpuhal_variable *variable, const gpuhal_device_snapshot *snapshot,
                                  const target *wanted, const char *text, bool *out_is_beyond)
{
    const target any = {wanted->backend, 0, -1};
    const uint32_t count = count_fitting(&any, snapshot);
    *out_is_beyond = wanted->number >= 0 && (unsigned long)wanted->number >= count;
    if (wanted->number < 0 || has_own_numbers(wanted->backend) || count <= 1 || *out_is_beyond) {
        return GPUHAL_OK;
    }
    return gpuhal_error_set(GPUHAL_ERROR_NOT_FOUND, "%s: only SYCL knows which of %u devices \"%s:%s\" is",
                            variable->name, count, wanted->backend, text);
}

static gpuhal_status read_devices(const gpuhal_variable *variable, const char *value, const char *backend,
                                  char *devices, bool take_away, const gpuhal_device_snapshot *snapshot,
                                  gpuhal_picks *picks)
{
    gpuhal_status status = GPUHAL_OK;
    for (char *at = devices + strspn(devices, ","); *at && !status; at += strspn(at, ",")) {
        const size_t length = strcspn(at, ",");
        char text[TERM_BYTES];
        bool is_beyond = false;
        target wanted = {.backend = backend};
        snprintf(text, sizeof text, "%.*s", (int)length, at);
        status = read_device(variable, value, text, &wanted, picks);
        status = status ? status : check_number(variable, snapshot, &wanted, text, &is_beyond);
        if (!status && is_beyond && !has_own_numbers(backend)) {
            gpuhal_variable_say(picks, "\"%s:%s\" names no device", backend, text);
        } else if (!status) {
            pick(&wanted, snapshot, take_away, picks);
        }
        at += length;
    }
    return status;
}

static const char *known_backend(const char *name)
{
    static const char names[][11] = {"*", "opencl", "level_zero", "cuda", "hip", "native_cpu"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) {
            return names[i];
        }
    }
    return NULL;
}

typedef struct terms {
    bool positive, negative;
} terms;

static gpuhal_status read_term(const gpuhal_variable *variable, const char *value, char *term, terms *earlier,
                               const gpuhal_device_snapshot *snapshot, gpuhal_picks *picks)
{
    const bool take_away = *term == '!';
    char *colon = strchr(term, ':');
    if (!colon) {
        return refuse(variable, value, term, "there is no \":\"; a backend and its devices are needed");
    }
    if (colon == term || !colon[1]) {
        return refuse(variable, value, term, "nothing stands before or behind the \":\"");
    }
    if (strchr(colon + 1, ':')) {
        return refuse(variable, value, term, "too many colons");
    }
    if (earlier->negative && !take_away) {
        return refuse(variable, value, term, "terms with \"!\" come last");
    }
    *colon = 0;
    const char *backend = known_backend(term + take_away);
    if (!backend) {
        return refuse(variable, value, term,
                      "it begins with no backend (opencl, level_zero, cuda, hip, native_cpu, *)");
    }
    if (take_away && !earlier->negative && !earlier->positive) {
        const target all = {"*", 0, -1};
        pick(&all, snapshot, false, picks);
    }
    earlier->negative = take_away;
    earlier->positive = earlier->positive || !take_away;
    return read_devices(variable, value, backend, colon + 1, take_away, snapshot, picks);
}

gpuhal_status gpuhal_variable_read_sycl(const gpuhal_variable *variable, const char *value,
                                        const gpuhal_device_snapshot *snapshot, gpuhal_picks *out_picks)
{
    gpuhal_status status = GPUHAL_OK;
    terms earlier = {0};
    out_picks->count = 0;
    *out_picks->note = 0;
    for (const char *at = value + strspn(value, ";"); *at && !status; at += strspn(at, ";")) {
        const size_t length = strcspn(at, ";");
        char term[TERM_BYTES];
        if (length >= sizeof term) {
            return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: a term has more than %d bytes", variable->name,
                                    TERM_BYTES - 1);
        }
        for (size_t i = 0; i < length; i++) {
            term[i] = (char)tolower((unsigned char)at[i]);
        }
        term[length] = 0;
        status = read_term(variable, value, term, &earlier, snapshot, out_picks);
        at += length;
    }
    return status;
}
