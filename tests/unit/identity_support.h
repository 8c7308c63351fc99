/* tests/unit/identity_support.h: a recorded machine, and plugins that list the devices in the machine's file under the
 * names of the real plugins, for tests of the whole library. The machines are in tests/recorded/identity;
 * docs/identity.md describes how to add a machine. */
#ifndef GPUHAL_TEST_IDENTITY_SUPPORT_H
#define GPUHAL_TEST_IDENTITY_SUPPORT_H

#include "base/records.h"
#include "loader/device_rules.h"
#include "support/record.h"
#include "test.h"

#include <gpuhal/gpuhal.h>
#include <gpuhal/plugin.h>

enum { DEVICES = 16, ITEMS = 16 };

typedef struct recorded_device {
    char backend[32];
    uint32_t index;
    gpuhal_facts facts;
} recorded_device;

typedef struct recorded_physical {
    char interfaces[256], preferred[256], pci_address[32], uuid[64];
    char evidence[ITEMS][96]; /* "same vulkan:0 cuda:0 uuid", in the reported order */
    uint32_t evidence_count;
} recorded_physical;

typedef struct recorded_choice {
    char selector[128], device[48];
} recorded_choice;

typedef struct machine {
    char name[128];
    recorded_device devices[DEVICES];
    recorded_physical physicals[DEVICES];
    recorded_choice choices[ITEMS];
    struct {
        const char *backend, *reason;
        gpuhal_status status;
        int64_t code; /* the vendor's code */
        bool starts;  /* starts but fails to list; may report `unlisted` devices */
    } refusals[ITEMS]; /* plugins that do not start or do not list */
    uint32_t device_count, physical_count, choice_count, refusal_count;
} machine;

static machine now; /* the machine that the plugins list */

static inline void keep(char *to, size_t bytes, const char *value)
{
    assert_in_range(snprintf(to, bytes, "%s", value), 1, bytes - 1);
}

static inline uint64_t number_of(gpuhal_key key, const char *value)
{
    for (gpuhal_device_type type = GPUHAL_DEVICE_GPU; key == GPUHAL_FACT_TYPE && type <= GPUHAL_DEVICE_ACCELERATOR;
         type++) {
        if (strcmp(value, gpuhal_device_type_name(type)) == 0) {
            return type;
        }
    }
    char *end = NULL;
    uint64_t number = strtoull(value, &end, 0);
    assert_true(*value && !*end);
    return number;
}

static inline void keep_fact(recorded_device *device, const char *name, const char *value)
{
    char problem[160] = "";
    for (gpuhal_key key = 1; gpuhal_key_name(key); key++) {
        if (strcmp(gpuhal_key_name(key), name) != 0) {
            continue;
        }
        if (gpuhal_key_is_text(key)) {
            assert_true(gpuhal_rules_text(key, value, problem, sizeof problem));
            gpuhal_facts_set_text(&device->facts, key, value);
        } else {
            assert_true(gpuhal_rules_number(key, number_of(key, value), problem, sizeof problem));
            gpuhal_facts_set_u64(&device->facts, key, number_of(key, value));
        }
        return;
    }
    fail_msg("%s: \"%s\" is no key of a device", now.name, name);
}

static inline void keep_of_device(recorded_device *device, const char *name, const char *value)
{
    if (strcmp(name, "backend") == 0) {
        keep(device->backend, sizeof device->backend, value);
    } else if (strcmp(name, "index") == 0) {
        device->index = (uint32_t)number_of(0, value);
    } else {
        keep_fact(device, name, value);
    }
}

static inline void keep_of_physical(recorded_physical *physical, const char *name, const char *value)
{
    if (strcmp(name, "same") == 0 || strcmp(name, "apart") == 0) {
        assert_in_range(physical->evidence_count, 0, ITEMS - 1);
        snprintf(physical->evidence[physical->evidence_count++], sizeof physical->evidence[0], "%s %s", name, value);
    } else if (strcmp(name, "interfaces") == 0) {
        keep(physical->interfaces, sizeof physical->interfaces, value);
    } else if (strcmp(name, "preferred") == 0) {
        keep(physical->preferred, sizeof physical->preferred, value);
    } else if (strcmp(name, "pci_address") == 0) {
        keep(physical->pci_address, sizeof physical->pci_address, value);
    } else if (strcmp(name, "uuid") == 0) {
        keep(physical->uuid, sizeof physical->uuid, value);
    } else {
        fail_msg("%s: \"%s\" is no key of a physical device", now.name, name);
    }
}

static inline void keep_of_choice(recorded_choice *choice, const char *name, const char *value)
{
    bool selector = strcmp(name, "selector") == 0;
    assert_true(selector || strcmp(name, "device") == 0);
    keep(selector ? choice->selector : choice->device, selector ? sizeof choice->selector : sizeof choice->device,
         value);
}

static inline void keep_pair(const char *kind, const char *name, const char *value)
{
    if (strcmp(kind, "device") == 0) {
        keep_of_device(&now.devices[now.device_count - 1], name, value);
    } else if (strcmp(kind, "physical") == 0) {
        keep_of_physical(&now.physicals[now.physical_count - 1], name, value);
    } else if (strcmp(kind, "choice") == 0) {
        keep_of_choice(&now.choices[now.choice_count - 1], name, value);
    } else {
        fail_msg("%s: [%s] is no record of a machine", now.name, kind);
    }
}

static inline void forget_machine(void)
{
    for (uint32_t i = 0; i < now.device_count; i++) {
        gpuhal_facts_finish(&now.devices[i].facts);
    }
    now = (machine){0};
}

static inline void read_records(const char *text, size_t bytes)
{
    gpuhal_records_reader reader;
    gpuhal_records_item item;
    char kind[64] = "";
    gpuhal_records_begin(&reader, text, bytes);
    while ((item = gpuhal_records_next(&reader)) != GPUHAL_RECORDS_END) {
        if (item == GPUHAL_RECORDS_ERROR) {
            fail_msg("%s:%u: %s", now.name, reader.line, reader.error);
        }
        if (item == GPUHAL_RECORDS_KIND) {
            snprintf(kind, sizeof kind, "%s", reader.name);
            uint32_t *count = strcmp(kind, "device") == 0     ? &now.device_count
                              : strcmp(kind, "physical") == 0 ? &now.physical_count
                                                              : &now.choice_count;
            assert_in_range(++*count, 1, DEVICES);
        } else {
            keep_pair(kind, reader.name, gpuhal_text_get(&reader.value));
        }
    }
    gpuhal_records_finish(&reader);
}

/* Adds the facts that the library requires and that do not affect identity. */
static inline void complete_devices(void)
{
    for (uint32_t i = 0; i < now.device_count; i++) {
        gpuhal_facts *facts = &now.devices[i].facts;
        gpuhal_facts_set_u64(facts, GPUHAL_FACT_MEMORY_KINDS, 1u << GPUHAL_MEMORY_DEVICE);
        gpuhal_facts_set_u64(facts, GPUHAL_FACT_SOFTWARE, gpuhal_facts_u64(facts, GPUHAL_FACT_SOFTWARE, 0));
        assert_true(*now.devices[i].backend);
        assert_non_null(gpuhal_facts_text(facts, GPUHAL_FACT_NAME));
        assert_int_not_equal(gpuhal_facts_u64(facts, GPUHAL_FACT_TYPE, 0), 0);
    }
}

static inline void read_machine(const char *name)
{
    char path[512];
    static char text[65536];
    forget_machine();
    keep(now.name, sizeof now.name, name);
    snprintf(path, sizeof path, "%s/%s", GPUHAL_RECORDED_IDENTITIES, name);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    size_t bytes = fread(text, 1, sizeof text, file);
    fclose(file);
    assert_in_range(bytes, 1, sizeof text - 1);
    read_records(text, bytes);
    complete_devices();
    if (now.device_count == 0 || now.physical_count == 0) {
        fail_msg("%s has no device, or does not say what is expected", name);
    }
}

static inline recorded_device *add_device(const char *backend, const char *name)
{
    assert_in_range(++now.device_count, 1, DEVICES);
    recorded_device *device = &now.devices[now.device_count - 1];
    for (uint32_t i = 0; i + 1 < now.device_count; i++) {
        device->index += strcmp(now.devices[i].backend, backend) == 0;
    }
    keep(device->backend, sizeof device->backend, backend);
    keep_fact(device, "name", name);
    keep_fact(device, "type", strcmp(backend, "cpu") == 0 ? "cpu" : "gpu");
    complete_devices();
    return device;
}

static inline void refuse(const char *backend, gpuhal_status status, const char *reason)
{
    assert_in_range(++now.refusal_count, 1, ITEMS);
    now.refusals[now.refusal_count - 1].backend = backend;
    now.refusals[now.refusal_count - 1].status = status;
    now.refusals[now.refusal_count - 1].reason = reason;
}

static inline gpuhal_status refusal_of(const char *backend, const gpuhal_host *host, bool starts)
{
    for (uint32_t i = 0; i < now.refusal_count; i++) {
        if (strcmp(now.refusals[i].backend, backend) == 0 && now.refusals[i].starts == starts) {
            return host->report(host, now.refusals[i].status, now.refusals[i].code ? "cuInit" : NULL,
                                now.refusals[i].code, now.refusals[i].reason);
        }
    }
    return GPUHAL_OK;
}

static inline gpuhal_status start_backend(const char *backend, const gpuhal_host *host)
{
    return refusal_of(backend, host, false);
}

static inline gpuhal_status list_devices(const char *backend, const gpuhal_host *host, gpuhal_sink *sink)
{
    for (uint32_t i = 0; i < now.device_count; i++) {
        const recorded_device *device = &now.devices[i];
        if (strcmp(device->backend, backend) != 0) {
            continue;
        }
        host->device(host, sink, device->index);
        for (size_t f = 0; f < device->facts.count; f++) {
            const gpuhal_fact *fact = &device->facts.list[f];
            if (fact->text) {
                host->text(host, sink, fact->key, fact->text);
            } else {
                host->u64(host, sink, fact->key, fact->u64);
            }
        }
    }
    return refusal_of(backend, host, true);
}

static inline gpuhal_status allocate(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    (void)device;
    (void)alloc;
    (void)out_memory;
    return GPUHAL_ERROR_NOT_SUPPORTED;
}

static inline void release(gpuhal_plugin_device *device, gpuhal_memory *memory)
{
    (void)device;
    (void)memory;
}

static inline gpuhal_status copy(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to,
                                 uint64_t to_offset, const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    (void)device, (void)queue, (void)to, (void)to_offset, (void)from, (void)from_offset, (void)bytes;
    return GPUHAL_ERROR_NOT_SUPPORTED;
}

static inline gpuhal_status describe(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                     gpuhal_ops *out_ops)
{
    (void)host, (void)instance;
    (void)index;
    out_ops->allocate = allocate;
    out_ops->release = release;
    out_ops->copy = copy;
    return GPUHAL_OK;
}

static inline gpuhal_status open_none(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                      const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops)
{
    (void)host, (void)instance, (void)index, (void)adopt, (void)ops;
    *out_device = NULL;
    return GPUHAL_ERROR_NO_DEVICE;
}

static inline void close_none(gpuhal_plugin_device *device)
{
    (void)device;
}

#define REPLAY(backend)                                                                                                \
    static gpuhal_status backend##_enumerate(const gpuhal_host *host, gpuhal_plugin_instance *instance,                \
                                             gpuhal_sink *sink)                                                        \
    {                                                                                                                  \
        (void)instance;                                                                                                \
        return list_devices(#backend, host, sink);                                                                     \
    }                                                                                                                  \
    static gpuhal_status backend##_start(const gpuhal_host *host, gpuhal_plugin_instance **out_instance)               \
    {                                                                                                                  \
        (void)out_instance;                                                                                            \
        return start_backend(#backend, host);                                                                          \
    }                                                                                                                  \
    static const gpuhal_plugin *backend##_query(uint32_t host_abi, const gpuhal_host *host)                            \
    {                                                                                                                  \
        static const gpuhal_plugin plugin = {.size = sizeof plugin,                                                    \
                                             .abi = GPUHAL_ABI,                                                        \
                                             .name = #backend,                                                         \
                                             .version = "1",                                                           \
                                             .start = backend##_start,                                                 \
                                             .enumerate = backend##_enumerate,                                         \
                                             .describe = describe,                                                     \
                                             .open = open_none,                                                        \
                                             .close = close_none};                                                     \
        (void)host_abi, (void)host;                                                                                    \
        return &plugin;                                                                                                \
    }
REPLAY(cuda)
REPLAY(rocm)
REPLAY(vulkan)
REPLAY(opencl)
REPLAY(third)
REPLAY(fourth)
REPLAY(fifth)
REPLAY(cpu)

static gpuhal_builtin_fn *const replayed[] = {cuda_query,   rocm_query,  vulkan_query, opencl_query, third_query,
                                              fourth_query, fifth_query, cpu_query,    NULL};

static inline gpuhal *open_machine(const char *devices)
{
    gpuhal_config config = {.size = sizeof config,
                            .isolation = GPUHAL_ISOLATION_NEVER,
                            .ignore_environment = 1,
                            .registry = "none",
                            .builtins = replayed,
                            .devices = devices};
    gpuhal *gpu = NULL;
    if (gpuhal_open(&config, &gpu)) {
        fail_msg("%s: %s", now.name, gpuhal_last_error()->sentence);
    }
    return gpu;
}

#endif
