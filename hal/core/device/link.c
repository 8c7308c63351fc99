/* device/link.c: facts about links. They are reported by the plugin of both devices, or concluded from the devices'
 * locations.
 */
#include "device/link.h"

#include "base/error.h"
#include "device/fault_log.h"
#include "device/identity.h"
#include "loader/query.h"

#include <gpuhal/link.h>

#include <stdlib.h>
#include <string.h>

/* Facts that a plugin may report, besides its vendor's own facts. The library measures all others. */
static const gpuhal_key reported_keys[] = {GPUHAL_LINK_KIND,
                                           GPUHAL_LINK_BANDWIDTH_BYTES_PER_SECOND,
                                           GPUHAL_LINK_PEER_ADVERTISED,
                                           GPUHAL_LINK_GENERATION,
                                           GPUHAL_LINK_COUNT,
                                           GPUHAL_LINK_NAME};
enum { REPORTED_KEYS = sizeof reported_keys / sizeof *reported_keys };

/* ---- locations of devices */

static bool works_in_host_memory(const gpuhal_device *device)
{
    const gpuhal_facts *facts = &device->listed->facts;
    uint64_t type = gpuhal_facts_u64(facts, GPUHAL_FACT_TYPE, GPUHAL_DEVICE_GPU);
    return type == GPUHAL_DEVICE_CPU || type == GPUHAL_DEVICE_INTEGRATED_GPU ||
           gpuhal_facts_u64(facts, GPUHAL_FACT_SOFTWARE, 0) || gpuhal_facts_u64(facts, GPUHAL_FACT_UNIFIED_MEMORY, 0);
}

/* The device's own fact takes precedence, because a partition's location may differ from its board's location. */
static const char *address_of(const gpuhal_device *device)
{
    const char *own = gpuhal_facts_text(&device->listed->facts, GPUHAL_FACT_PCI_ADDRESS);
    return own ? own : gpuhal_device_hardware_address(device);
}

bool gpuhal_device_node(const gpuhal_device *device, uint32_t *out_node)
{
    uint64_t node = gpuhal_facts_u64(&device->listed->facts, GPUHAL_FACT_NUMA_NODE, UINT64_MAX);
    const char *address = node == UINT64_MAX ? address_of(device) : NULL;
    *out_node = (uint32_t)node;
    return address ? gpuhal_pci_node(device->gpu->settings.system_root, address, out_node) : node <= INT32_MAX;
}

/* Interfaces of one partition always share memory. So do two devices in host memory. For all other devices, the
 * plugin's kind takes precedence. */
static gpuhal_link_kind kind_between(const gpuhal_device *from, const gpuhal_device *to, gpuhal_link_kind reported)
{
    bool from_host = works_in_host_memory(from), to_host = works_in_host_memory(to);
    if (gpuhal_devices_same_part(from, to) || (from_host && to_host)) {
        return GPUHAL_LINK_SAME_MEMORY;
    }
    if (reported) {
        return reported;
    }
    if (gpuhal_devices_same_piece(from, to)) {
        return GPUHAL_LINK_SAME_BOARD;
    }
    const char *one = from_host || to_host ? NULL : address_of(from), *other = one ? address_of(to) : NULL;
    gpuhal_link_kind found = other ? gpuhal_pci_link_kind(from->gpu->settings.system_root, one, other) : 0;
    return found ? found : GPUHAL_LINK_HOST;
}

/* ---- queries */

static void set_missing(gpuhal_facts *facts, gpuhal_missing reason, const char *why)
{
    for (size_t i = 0; i < REPORTED_KEYS; i++) {
        if (!gpuhal_facts_find(facts, reported_keys[i])) {
            gpuhal_facts_set_missing(facts, reported_keys[i], reason, why);
        }
    }
}

/* If the plugin fails or breaks a rule, its facts are discarded and marked missing for this reason. */
static gpuhal_status ask_plugin(gpuhal_device *from, gpuhal_device *to, gpuhal_facts *facts)
{
    gpuhal_backend *backend = NULL, *other = NULL;
    const gpuhal_listed_device *source = NULL, *target = NULL;
    gpuhal_status status = gpuhal_device_start_backend(from, &backend, &source);
    status = status ? status : gpuhal_device_start_backend(to, &other, &target);
    if (status) {
        return status;
    }
    const gpuhal_plugin *plugin = gpuhal_backend_plugin(backend);
    if (!plugin->link || backend != other) {
        set_missing(facts, GPUHAL_MISSING_NOT_SUPPORTED, "the backend reports no links");
        return GPUHAL_OK;
    }
    char problem[GPUHAL_QUERY_PROBLEM_BYTES];
    status = gpuhal_query_link(plugin, gpuhal_backend_instance(backend), source->index, target->index,
                               gpuhal_device_query_ns(from), facts, problem);
    if (facts->failed) {
        return gpuhal_error_host_memory();
    }
    if (status == GPUHAL_ERROR_TIMEOUT) {
        set_missing(facts, GPUHAL_MISSING_TIMED_OUT, "the driver's call timed out");
    } else if (status || problem[0]) {
        gpuhal_facts_finish(facts);
        const char *why = problem;
        if (status) {
            gpuhal_error_from_plugin(status, from->candidate->name, from->id, "reading facts of a link");
            why = gpuhal_last_error()->sentence;
        }
        set_missing(facts, GPUHAL_MISSING_FAILED, why);
    }
    set_missing(facts, GPUHAL_MISSING_NOT_SUPPORTED, "the backend does not report it");
    return GPUHAL_OK;
}

static gpuhal_status ask(gpuhal_device *from, gpuhal_device *to, gpuhal_facts *facts)
{
    gpuhal_status status = GPUHAL_OK;
    if (strcmp(from->candidate->name, to->candidate->name) == 0) {
        status = ask_plugin(from, to, facts);
    } else {
        set_missing(facts, GPUHAL_MISSING_NOT_SUPPORTED, "the two are devices of two backends");
    }
    if (!status) {
        gpuhal_link_kind reported = (gpuhal_link_kind)gpuhal_facts_u64(facts, GPUHAL_LINK_KIND, 0);
        gpuhal_facts_set_u64(facts, GPUHAL_LINK_KIND, kind_between(from, to, reported));
        status = facts->failed ? gpuhal_error_host_memory() : GPUHAL_OK;
    }
    return status;
}

/* No lock is held during the plugin's call, so two threads may query at once. The first result is kept. Published facts
 * are complete, never change, and exist as long as the device, so callers may keep pointers to their strings without a
 * reference. */
static gpuhal_status facts_of(gpuhal_device *from, gpuhal_device *to, const gpuhal_facts **out_facts)
{
    gpuhal_link *link = gpuhal_link_between(from, to);
    gpuhal_facts *known = atomic_load_explicit(&link->facts, memory_order_acquire);
    if (known) {
        *out_facts = known;
        return GPUHAL_OK;
    }
    gpuhal_facts *mine = calloc(1, sizeof *mine);
    gpuhal_status status = mine ? ask(from, to, mine) : gpuhal_error_host_memory();
    if (status) {
        gpuhal_facts_free(mine);
        return status;
    }
    if (!atomic_compare_exchange_strong_explicit(&link->facts, &known, mine, memory_order_acq_rel,
                                                 memory_order_acquire)) {
        /* Another thread was faster, and a caller may already have its result. All callers must see the same facts. */
        gpuhal_facts_free(mine);
        mine = known;
    }
    *out_facts = mine;
    return GPUHAL_OK;
}

/* ---- results */

gpuhal_status gpuhal_link_check(const char *call, const gpuhal_device *from, const gpuhal_device *to)
{
    if (!from || !to) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: a device is NULL", call);
    }
    if (from == to) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s: a device has no link to itself", call);
    }
    if (from->gpu != to->gpu) {
        return gpuhal_two_objects(call, "the devices", from->gpu, to->gpu);
    }
    return gpuhal_check(from->gpu);
}

/* Returns results of gpuhal_link_verify() in this gpuhal object, otherwise cached results; false if there are none. */
static bool found_out(const gpuhal_device *from, const gpuhal_device *to, gpuhal_key key, uint64_t *out_value)
{
    const gpuhal_link *link = gpuhal_link_between(from, to);
    /* gpuhal_link_verify() sets `tried` after the path and its measurements. If `tried` were read after them, it could
     * be set although they were read too early. */
    const bool tried = atomic_load(&link->tried);
    gpuhal_recalled_link known = {
        .verified = atomic_load(&link->verified),
        .path = atomic_load(&link->path),
        .bytes_per_second = atomic_load(&link->bytes_per_second),
        .latency_ns = atomic_load(&link->latency_ns),
        .tried_seconds = atomic_load(&link->tried_seconds),
    };
    if (!tried && !gpuhal_fault_log_recall(from, to, &known)) {
        return false;
    }
    const struct {
        gpuhal_key key;
        uint64_t value;
    } values[] = {
        {GPUHAL_LINK_PATH, known.path},
        {GPUHAL_LINK_MEASURED_BYTES_PER_SECOND, known.bytes_per_second},
        {GPUHAL_LINK_MEASURED_LATENCY_NS, known.latency_ns},
        {GPUHAL_LINK_TRIED_SECONDS, known.tried_seconds},
    };
    *out_value = known.verified;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (values[i].key == key) {
            *out_value = values[i].value;
            return values[i].value != 0;
        }
    }
    return true;
}

/* If the fact has a value, sets *out_value or *out_text, and the reason is 0. Otherwise sets the reason and
 * *out_why. */
static gpuhal_status look_up(gpuhal_device *from, gpuhal_device *to, gpuhal_key key, uint64_t *out_value,
                             const char **out_text, gpuhal_missing *out_missing, const char **out_why)
{
    const gpuhal_facts *facts = NULL;
    *out_text = NULL;
    if (key >= GPUHAL_LINK_VERIFIED && key <= GPUHAL_LINK_TRIED_SECONDS) {
        bool known = found_out(from, to, key, out_value);
        *out_missing = known ? 0 : GPUHAL_MISSING_NOT_READ;
        *out_why = known ? "" : "gpuhal_link_verify() measures it";
        return GPUHAL_OK;
    }
    gpuhal_status status = facts_of(from, to, &facts);
    const gpuhal_fact *fact = status ? NULL : gpuhal_facts_find(facts, key);
    *out_value = fact && !fact->missing ? fact->u64 : 0;
    *out_text = fact && !fact->missing ? fact->text : NULL;
    *out_missing = fact ? fact->missing : GPUHAL_MISSING_NOT_SUPPORTED;
    *out_why = fact && fact->missing && fact->text ? fact->text : "";
    return status;
}

/* Links have their own range of keys. Also accepts vendors' keys. */
static bool is_link_key(gpuhal_key key)
{
    return (key >= GPUHAL_LINK_KIND && key < GPUHAL_LINK_KIND + 0x1000) || key >= GPUHAL_VENDOR_FIRST;
}

static gpuhal_status missing_fact(const gpuhal_device *from, const gpuhal_device *to, gpuhal_key key,
                                  gpuhal_missing missing, const char *why)
{
    char name[GPUHAL_KEY_WORD_BYTES];
    gpuhal_key_word(key, name);
    return gpuhal_error_set(GPUHAL_ERROR_NOT_SUPPORTED, "%s to %s: %s is missing: %s%s%s", from->id, to->id, name,
                            gpuhal_missing_name(missing), *why ? ": " : "", why);
}

static gpuhal_status wrong_key(gpuhal_key key, const char *what)
{
    char name[GPUHAL_KEY_WORD_BYTES];
    gpuhal_key_word(key, name);
    return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "%s is %s", name, what);
}

gpuhal_status gpuhal_link_u64(gpuhal_device *from, gpuhal_device *to, gpuhal_key key, uint64_t *out_value)
{
    if (!out_value) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_link_u64: out_value is NULL");
    }
    *out_value = 0;
    if (!is_link_key(key)) {
        return wrong_key(key, "not a fact of a link");
    }
    gpuhal_missing missing = 0;
    const char *why = "", *text = NULL;
    gpuhal_status status = gpuhal_link_check("gpuhal_link_u64", from, to);
    status = status ? status : look_up(from, to, key, out_value, &text, &missing, &why);
    if (!status && (text || gpuhal_key_is_text(key))) {
        return wrong_key(key, "a text: use gpuhal_link_text()");
    }
    return !status && missing ? missing_fact(from, to, key, missing, why) : status;
}

gpuhal_status gpuhal_link_text(gpuhal_device *from, gpuhal_device *to, gpuhal_key key, const char **out_text)
{
    if (!out_text) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT, "gpuhal_link_text: out_text is NULL");
    }
    *out_text = NULL;
    if (!is_link_key(key)) {
        return wrong_key(key, "not a fact of a link");
    }
    gpuhal_missing missing = 0;
    const char *why = "";
    uint64_t number = 0;
    gpuhal_status status = gpuhal_link_check("gpuhal_link_text", from, to);
    status = status ? status : look_up(from, to, key, &number, out_text, &missing, &why);
    bool is_number = !missing && !*out_text;
    if (!status && (is_number || (gpuhal_key_name(key) && !gpuhal_key_is_text(key)))) {
        return wrong_key(key, "a number: use gpuhal_link_u64()");
    }
    return !status && missing ? missing_fact(from, to, key, missing, why) : status;
}

gpuhal_missing gpuhal_link_missing(gpuhal_device *from, gpuhal_device *to, gpuhal_key key, const char **out_why)
{
    uint64_t ignored = 0;
    gpuhal_missing missing = 0;
    const char *why = "", *text = NULL;
    if (!is_link_key(key) || gpuhal_link_check("gpuhal_link_missing", from, to)) {
        missing = GPUHAL_MISSING_NOT_SUPPORTED;
    } else if (look_up(from, to, key, &ignored, &text, &missing, &why)) {
        missing = GPUHAL_MISSING_FAILED;
        why = "the backend could not be started";
    }
    if (out_why) {
        *out_why = why;
    }
    return missing;
}

const char *gpuhal_link_kind_name(gpuhal_link_kind kind)
{
    static const char names[][17] = {"unknown",     "nvlink",           "nvlink_switch", "xgmi",   "same_board",
                                     "pcie_switch", "pcie_host_bridge", "numa_node",     "system", "same_memory",
                                     "host"};
    return kind >= GPUHAL_VENDOR_FIRST ? "vendor" : names[kind < sizeof names / sizeof *names ? kind : 0];
}

gpuhal_status gpuhal_link_between_addresses(gpuhal *gpu, const char *one, const char *other,
                                            gpuhal_link_kind *out_kind)
{
    char from[24], to[24];
    if (!gpu || !one || !other || !out_kind || !gpuhal_identity_pci(one, from) || !gpuhal_identity_pci(other, to)) {
        return gpuhal_error_set(GPUHAL_ERROR_INVALID_ARGUMENT,
                                "gpuhal_link_between_addresses: an argument is NULL, or not a PCI address");
    }
    gpuhal_status status = gpuhal_check(gpu);
    if (status) {
        return status;
    }
    *out_kind = gpuhal_pci_link_kind(gpu->settings.system_root, from, to);
    return *out_kind ? GPUHAL_OK
                     : gpuhal_error_set(GPUHAL_ERROR_NOT_SUPPORTED,
                                        "the system's tree of devices has no path from %s to %s", from, to);
}
