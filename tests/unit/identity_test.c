/* The rule by which devices are faces of one piece of hardware, on the identities of real machines: tests/recorded/identity, one
 * file each; docs/identity.md tells how to add one. Plugins named like the real ones list what a file says, so that the whole
 * library decides; the rule alone sees the devices in many orders besides. */
#include "core/records.h"
#include "device/identity.h"
#include "loader/device_rules.h"
#include "test.h"

#include <gpuhal/gpuhal.h>
#include <gpuhal/plugin.h>

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEVICES = 16, ITEMS = 16, SHUFFLES = 24 };

typedef struct recorded_device {
    char backend[32];
    uint32_t index;
    gpuhal_facts facts;
} recorded_device;

typedef struct recorded_physical {
    char faces[256], preferred[256], pci_address[32], uuid[64];
    char evidence[ITEMS][96]; /* "same vulkan:0 cuda:0 uuid", in the order told */
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
    uint32_t device_count, physical_count, choice_count;
} machine;

static machine now; /* what the plugins list */

/* ------------------------------------------------------------------------------------------------ reading */

static void keep(char *to, size_t bytes, const char *value)
{
    assert_in_range(snprintf(to, bytes, "%s", value), 1, bytes - 1);
}

static uint64_t number_of(gpuhal_key key, const char *value)
{
    for (gpuhal_device_type type = GPUHAL_DEVICE_GPU; key == GPUHAL_FACT_TYPE && type <= GPUHAL_DEVICE_ACCELERATOR; type++) {
        if (strcmp(value, gpuhal_device_type_name(type)) == 0) {
            return type;
        }
    }
    char *end = NULL;
    uint64_t number = strtoull(value, &end, 0);
    assert_true(*value && !*end);
    return number;
}

static void keep_fact(recorded_device *device, const char *name, const char *value)
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

static void keep_of_device(recorded_device *device, const char *name, const char *value)
{
    if (strcmp(name, "backend") == 0) {
        keep(device->backend, sizeof device->backend, value);
    } else if (strcmp(name, "index") == 0) {
        device->index = (uint32_t)number_of(0, value);
    } else {
        keep_fact(device, name, value);
    }
}

static void keep_of_physical(recorded_physical *physical, const char *name, const char *value)
{
    if (strcmp(name, "same") == 0 || strcmp(name, "apart") == 0) {
        assert_in_range(physical->evidence_count, 0, ITEMS - 1);
        snprintf(physical->evidence[physical->evidence_count++], sizeof physical->evidence[0], "%s %s", name, value);
    } else if (strcmp(name, "faces") == 0) {
        keep(physical->faces, sizeof physical->faces, value);
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

static void keep_of_choice(recorded_choice *choice, const char *name, const char *value)
{
    bool selector = strcmp(name, "selector") == 0;
    assert_true(selector || strcmp(name, "device") == 0);
    keep(selector ? choice->selector : choice->device, selector ? sizeof choice->selector : sizeof choice->device, value);
}

static void keep_pair(const char *kind, const char *name, const char *value)
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

static void forget_machine(void)
{
    for (uint32_t i = 0; i < now.device_count; i++) {
        gpuhal_facts_finish(&now.devices[i].facts);
    }
    now = (machine){0};
}

static void read_records(const char *text, size_t bytes)
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

/* Facts that the library wants and that no identity depends on. */
static void complete_devices(void)
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

static void read_machine(const char *name)
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
        fail_msg("%s has no device, or does not tell what is expected", name);
    }
}

static int is_record(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".records") == 0;
}

/* Calls `check` with each machine loaded. */
static void for_each_machine(void (*check)(void))
{
    struct dirent **entries = NULL;
    int count = scandir(GPUHAL_RECORDED_IDENTITIES, &entries, is_record, alphasort);
    assert_in_range(count, 15, 10000);
    for (int i = 0; i < count; i++) {
        read_machine(entries[i]->d_name);
        check();
        free(entries[i]);
    }
    free(entries);
    forget_machine();
}

/* ------------------------------------------------------------------------------------------------ plugins that list it */

static gpuhal_status start(const gpuhal_host *host)
{
    (void)host;
    return GPUHAL_OK;
}

static gpuhal_status list_devices(const char *backend, const gpuhal_host *host, gpuhal_sink *sink)
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
    return GPUHAL_OK;
}

static gpuhal_status allocate(gpuhal_plugin_device *device, const gpuhal_alloc *alloc, gpuhal_memory *out_memory)
{
    (void)device;
    (void)alloc;
    (void)out_memory;
    return GPUHAL_ERROR_NOT_SUPPORTED;
}

static void release(gpuhal_plugin_device *device, gpuhal_memory *memory)
{
    (void)device;
    (void)memory;
}

static gpuhal_status copy(gpuhal_plugin_device *device, gpuhal_plugin_queue *queue, const gpuhal_memory *to, uint64_t to_offset,
                          const gpuhal_memory *from, uint64_t from_offset, uint64_t bytes)
{
    (void)device, (void)queue, (void)to, (void)to_offset, (void)from, (void)from_offset, (void)bytes;
    return GPUHAL_ERROR_NOT_SUPPORTED;
}

static gpuhal_status describe(uint32_t index, gpuhal_ops *out_ops)
{
    (void)index;
    out_ops->allocate = allocate;
    out_ops->release = release;
    out_ops->copy = copy;
    return GPUHAL_OK;
}

static gpuhal_status open_none(const gpuhal_host *host, uint32_t index, const gpuhal_native *adopt,
                               gpuhal_plugin_device **out_device, gpuhal_ops *ops)
{
    (void)host, (void)index, (void)adopt, (void)ops;
    *out_device = NULL;
    return GPUHAL_ERROR_NO_DEVICE;
}

static void close_none(gpuhal_plugin_device *device)
{
    (void)device;
}

#define REPLAY(backend)                                                                                                          \
    static gpuhal_status backend##_enumerate(const gpuhal_host *host, gpuhal_sink *sink)                                         \
    {                                                                                                                            \
        return list_devices(#backend, host, sink);                                                                               \
    }                                                                                                                            \
    static const gpuhal_plugin *backend##_query(uint32_t host_abi, const gpuhal_host *host)                                      \
    {                                                                                                                            \
        static const gpuhal_plugin plugin = {.size = sizeof plugin,                                                              \
                                             .abi = GPUHAL_ABI,                                                                  \
                                             .name = #backend,                                                                   \
                                             .version = "1",                                                                     \
                                             .start = start,                                                                     \
                                             .enumerate = backend##_enumerate,                                                   \
                                             .describe = describe,                                                               \
                                             .open = open_none,                                                                  \
                                             .close = close_none};                                                               \
        (void)host_abi, (void)host;                                                                                              \
        return &plugin;                                                                                                          \
    }
REPLAY(cuda)
REPLAY(rocm)
REPLAY(vulkan)
REPLAY(opencl)
REPLAY(third)
REPLAY(fourth)
REPLAY(fifth)
REPLAY(cpu)

static gpuhal *open_machine(const char *devices)
{
    static gpuhal_builtin_fn *const all[] = {cuda_query,   rocm_query,  vulkan_query, opencl_query, third_query,
                                             fourth_query, fifth_query, cpu_query,    NULL};
    gpuhal_config config = {
        .size = sizeof config, .isolation = GPUHAL_ISOLATION_NEVER, .ignore_environment = 1, .builtins = all, .devices = devices};
    gpuhal *gpu = NULL;
    if (gpuhal_open(&config, &gpu)) {
        fail_msg("%s: %s", now.name, gpuhal_last_error()->sentence);
    }
    return gpu;
}

/* ------------------------------------------------------------------------------------------------ the library's answers */

static void append(char *to, size_t bytes, const char *word)
{
    size_t used = strlen(to);
    snprintf(to + used, bytes - used, "%s%s", used ? " " : "", word);
}

static void expect(const char *what, const char *told, const char *expected)
{
    if (strcmp(told, expected) != 0) {
        fail_msg("%s: %s: the library says \"%s\", expected is \"%s\"", now.name, what, told, expected);
    }
}

static void check_evidence(const gpuhal *gpu, uint32_t index, const recorded_physical *expected)
{
    gpuhal_evidence evidence = {.size = sizeof evidence};
    for (uint32_t i = 0; gpuhal_physical_evidence(gpu, index, i, &evidence) == GPUHAL_OK; i++) {
        char told[96];
        snprintf(told, sizeof told, "%s %s %s %s", evidence.same ? "same" : "apart", evidence.device, evidence.other,
                 evidence.matched_by);
        expect("evidence", told, i < expected->evidence_count ? expected->evidence[i] : "none");
        assert_non_null(strstr(evidence.sentence, evidence.device));
        assert_non_null(strstr(evidence.sentence, evidence.other));
        assert_true(*evidence.value || strcmp(evidence.matched_by, "host_processor") == 0);
    }
}

static void check_physical(const gpuhal *gpu, uint32_t index, const recorded_physical *expected)
{
    gpuhal_physical_device physical = {.size = sizeof physical};
    assert_int_equal(gpuhal_physical_get(gpu, index, &physical), GPUHAL_OK);
    char faces[256] = "", preferred_faces[256] = "";
    for (uint32_t i = 0; i < physical.face_count; i++) {
        gpuhal_device *face = gpuhal_physical_face(gpu, index, i);
        uint32_t number = 99, preferred = 9;
        assert_int_equal(gpuhal_device_physical(face, &number, &preferred), GPUHAL_OK);
        assert_int_equal(number, physical.number);
        append(faces, sizeof faces, gpuhal_device_id(face));
        if (preferred) {
            append(preferred_faces, sizeof preferred_faces, gpuhal_device_id(face));
        }
    }
    expect("faces", faces, expected->faces);
    expect("preferred", preferred_faces, expected->preferred);
    expect("PCI address", physical.pci_address, expected->pci_address);
    expect("UUID", physical.uuid, expected->uuid);
    check_evidence(gpu, index, expected);
    if (physical.evidence_count != expected->evidence_count) {
        fail_msg("%s: %s: %u items of evidence, expected are %u", now.name, faces, physical.evidence_count,
                 expected->evidence_count);
    }
}

static void check_choice(gpuhal *gpu, const recorded_choice *choice)
{
    gpuhal_device *device = NULL;
    const char *reason = NULL;
    if (gpuhal_select(gpu, choice->selector, 0, &device, &reason)) {
        fail_msg("%s: %s: %s", now.name, choice->selector, gpuhal_last_error()->sentence);
    }
    expect(choice->selector, gpuhal_device_id(device), choice->device);
    assert_true(*reason);
}

static void check_library(void)
{
    gpuhal *gpu = open_machine(NULL);
    assert_int_equal(gpuhal_device_count(gpu), now.device_count);
    assert_int_equal(gpuhal_physical_count(gpu), now.physical_count);
    for (uint32_t i = 0; i < now.physical_count; i++) {
        check_physical(gpu, i, &now.physicals[i]);
    }
    for (uint32_t i = 0; i < now.choice_count; i++) {
        check_choice(gpu, &now.choices[i]);
    }
    gpuhal_close(gpu);
}

/* A backend lists its devices once in a process, so each machine has one of its own. */
static void check_library_in_a_child(void)
{
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        check_library();
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status) {
        fail_msg("%s is not as expected", now.name);
    }
}

TEST(recorded_machines_have_the_physical_devices_faces_evidence_and_choices_that_are_expected)
{
    for_each_machine(check_library_in_a_child);
}

/* ------------------------------------------------------------------------------------------------ the rule alone */

/* The devices of the machine in another order for each seed; 0 leaves them. */
static void shuffle(uint32_t seed, uint32_t order[DEVICES])
{
    for (uint32_t i = 0; i < now.device_count; i++) {
        order[i] = i;
    }
    for (uint32_t i = now.device_count; seed && i > 1; i--) {
        seed = seed * 1664525u + 1013904223u;
        uint32_t other = (seed >> 8) % i, kept = order[i - 1];
        order[i - 1] = order[other];
        order[other] = kept;
    }
}

/* For each two devices of the file: '.' for two pieces of hardware, 'p' for two parts of one, '=' for two faces of the same. */
static void find_relations(uint32_t seed, char relations[DEVICES * DEVICES + 1])
{
    uint32_t order[DEVICES], place[DEVICES];
    gpuhal_identity identity = {.faces = calloc(DEVICES, sizeof *identity.faces), .count = now.device_count};
    assert_non_null(identity.faces);
    shuffle(seed, order);
    for (uint32_t i = 0; i < now.device_count; i++) {
        const recorded_device *device = &now.devices[order[i]];
        identity.faces[i].backend = device->backend;
        identity.faces[i].index = device->index;
        identity.faces[i].facts = &device->facts;
        place[order[i]] = i;
    }
    assert_int_equal(gpuhal_identity_find(&identity), GPUHAL_OK);
    char *to = relations;
    for (uint32_t i = 0; i < now.device_count; i++) {
        for (uint32_t k = 0; k < now.device_count; k++) {
            const gpuhal_face *a = &identity.faces[place[i]], *b = &identity.faces[place[k]];
            *to++ = a->physical != b->physical ? '.' : a->part == b->part ? '=' : 'p';
        }
    }
    *to = 0;
    gpuhal_identity_finish(&identity);
}

static void check_orders(void)
{
    char first[DEVICES * DEVICES + 1], other[DEVICES * DEVICES + 1];
    find_relations(0, first);
    for (uint32_t seed = 1; seed <= SHUFFLES; seed++) {
        find_relations(seed, other);
        expect("the relations in another order", other, first);
    }
}

TEST(the_order_of_devices_changes_nothing_about_what_is_one)
{
    for_each_machine(check_orders);
}

TEST(addresses_have_one_form_and_impossible_ones_are_none)
{
    static const struct {
        const char *text, *form;
    } all[] = {
        {"0000:c1:00.0", "0000:c1:00.0"},
        {"00000000:C1:00.0", "0000:c1:00.0"},
        {"00010000:00:1f.7", "10000:00:1f.7"},
        {"0000:00:00.0", NULL},
        {"0000:01:20.0", NULL},
        {"0000:01:00.8", NULL},
        {"0000:100:00.0", NULL},
        {"0000:01:00", NULL},
        {"", NULL},
        {"0000:01:00.0 ", NULL},
        {"000000000:01:00.0", NULL},
        {"zz00:01:00.0", NULL},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char form[24] = "";
        assert_int_equal(gpuhal_identity_pci(all[i].text, form), all[i].form != NULL);
        assert_string_equal(form, all[i].form ? all[i].form : "");
    }
}

TEST(texts_that_identify_have_one_spelling_and_no_text_has_control_characters)
{
    static const struct {
        gpuhal_key key;
        const char *text;
        bool good;
    } all[] = {
        {GPUHAL_FACT_DRM_RENDER_NODE, "226:128", true},
        {GPUHAL_FACT_DRM_RENDER_NODE, "0:0", true},
        {GPUHAL_FACT_DRM_RENDER_NODE, "226:0128", false},
        {GPUHAL_FACT_DRM_RENDER_NODE, "/dev/dri/renderD128", false},
        {GPUHAL_FACT_DRM_RENDER_NODE, "226:-1", false},
        {GPUHAL_FACT_DRM_RENDER_NODE, "226:", false},
        {GPUHAL_FACT_DRM_RENDER_NODE, "226:128 ", false},
        {GPUHAL_FACT_DRM_RENDER_NODE, "", false},
        {GPUHAL_FACT_LUID, "00000000000000a1", true},
        {GPUHAL_FACT_LUID, "00000000000000a", false},
        {GPUHAL_FACT_LUID, "00000000000000a11", false},
        {GPUHAL_FACT_UUID, "01234567-89ab-cdef-0123-456789abcdef", true},
        {GPUHAL_FACT_UUID, "GPU-01234567-89ab-cdef-0123-456789abcdef", false},
        {GPUHAL_FACT_PCI_ADDRESS, "0000:c1:00.0", true},
        {GPUHAL_FACT_PCI_ADDRESS, "0000:c1:00.", false},
        {GPUHAL_FACT_PCI_ADDRESS, "0000:C1:00.0", false},
        {GPUHAL_FACT_NAME, "50 \xc2\xb5m \xc3\x9b", true},
        {GPUHAL_FACT_NAME,
         "red \xc2\x9b"
         "31m",
         false}, /* the one-character form of ESC [ */
        {GPUHAL_FACT_NAME, "red \033[31m", false},
        {GPUHAL_FACT_NAME, "  ", false},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char problem[160] = "";
        if (gpuhal_rules_text(all[i].key, all[i].text, problem, sizeof problem) != all[i].good) {
            fail_msg("\"%s\" is %s: %s", all[i].text, all[i].good ? "refused" : "taken", problem);
        }
        assert_true(all[i].good || strstr(problem, gpuhal_key_name(all[i].key)));
    }
}

/* ------------------------------------------------------------------------------------------------ hiding, and misuse */

TEST(hiding_the_face_that_joins_two_others_leaves_them_one_and_the_evidence_names_it)
{
    read_machine("transitive.records");
    gpuhal *gpu = open_machine("cuda,opencl,cpu");
    gpuhal_physical_device physical = {.size = sizeof physical};
    assert_int_equal(gpuhal_physical_count(gpu), 2);
    assert_int_equal(gpuhal_physical_get(gpu, 0, &physical), GPUHAL_OK);
    assert_int_equal(physical.face_count, 2);
    assert_string_equal(physical.uuid, "754d9ae2-8df5-f8e3-3502-182434000000");
    gpuhal_evidence evidence = {.size = sizeof evidence};
    assert_int_equal(physical.evidence_count, 2);
    assert_int_equal(gpuhal_physical_evidence(gpu, 0, 0, &evidence), GPUHAL_OK);
    assert_string_equal(evidence.device, "vulkan:0");
    assert_string_equal(evidence.other, "cuda:0");
    assert_int_equal(gpuhal_physical_evidence(gpu, 0, 1, &evidence), GPUHAL_OK);
    assert_string_equal(evidence.device, "opencl:0");
    assert_string_equal(evidence.other, "vulkan:0");
    gpuhal_close(gpu);
}

TEST(a_hidden_face_that_joins_nothing_is_not_told_of)
{
    read_machine("nvidia-three-apis.records");
    gpuhal *gpu = open_machine("vulkan,opencl");
    gpuhal_physical_device physical = {.size = sizeof physical};
    assert_int_equal(gpuhal_physical_count(gpu), 1);
    assert_int_equal(gpuhal_physical_get(gpu, 0, &physical), GPUHAL_OK);
    assert_int_equal(physical.evidence_count, 1);
    gpuhal_evidence evidence = {.size = sizeof evidence};
    assert_int_equal(gpuhal_physical_evidence(gpu, 0, 0, &evidence), GPUHAL_OK);
    assert_string_equal(evidence.device, "opencl:0");
    assert_string_equal(evidence.other, "vulkan:0");
    assert_string_equal(evidence.value, "0000:01:00.0");
    gpuhal_close(gpu);
}

TEST(an_address_hides_all_but_the_faces_of_that_hardware)
{
    read_machine("nvidia-mig.records");
    gpuhal *gpu = open_machine("pci=0000:61:00.0");
    assert_int_equal(gpuhal_device_count(gpu), 4); /* also the one that states no address itself */
    assert_int_equal(gpuhal_physical_count(gpu), 1);
    gpuhal_close(gpu);
}

TEST(the_reason_tells_which_faces_were_passed_over)
{
    read_machine("hybrid-laptop.records");
    gpuhal *gpu = open_machine(NULL);
    gpuhal_device *device = NULL;
    const char *reason = NULL;
    assert_int_equal(gpuhal_select(gpu, "auto", 0, &device, &reason), GPUHAL_OK);
    assert_string_equal(reason,
                        "the best device of cuda, the first backend in order that offers one; passed over vulkan:1: another face "
                        "of the same device, later in that order; passed over vulkan:2: a software device on the processor, only "
                        "used when named");
    assert_int_equal(gpuhal_select(gpu, "pci=0000:00:02.0", 0, &device, &reason), GPUHAL_OK);
    assert_string_equal(
        reason, "the selector \"pci=0000:00:02.0\" names its hardware, and vulkan is the first backend in order that offers "
                "it; passed over opencl:0: another face of the same device, later in that order");
    assert_int_equal(gpuhal_select(gpu, "vulkan:2", 0, &device, &reason), GPUHAL_OK);
    assert_string_equal(reason, "the selector \"vulkan:2\" names it");
    gpuhal_close(gpu);
}

TEST(a_driver_that_gives_all_its_devices_one_uuid_is_told_of_in_words_about_the_two_in_question)
{
    read_machine("moltenvk-equal-uuids.records");
    gpuhal *gpu = open_machine(NULL);
    gpuhal_evidence evidence = {.size = sizeof evidence};
    assert_int_equal(gpuhal_physical_evidence(gpu, 1, 0, &evidence), GPUHAL_OK);
    assert_string_equal(evidence.sentence,
                        "vulkan:1 and vulkan:0 state the same UUID, but that tells nothing: one driver lists both "
                        "as devices of their own");
    gpuhal_close(gpu);
}

TEST(hiding_the_first_of_those_that_stay_apart_leaves_the_others_told_apart)
{
    read_machine("intel-uuid-of-the-model.records");
    gpuhal *gpu = open_machine("opencl:1,third,cpu");
    gpuhal_evidence evidence = {.size = sizeof evidence};
    assert_int_equal(gpuhal_physical_evidence(gpu, 1, 0, &evidence), GPUHAL_OK);
    assert_int_equal(evidence.same, 0);
    assert_string_equal(evidence.sentence,
                        "third:0 and opencl:1 state the same UUID, but that tells nothing: opencl:0 is at PCI address "
                        "0000:03:00.0 and opencl:1 at 0000:04:00.0");
    gpuhal_close(gpu);
}

TEST(the_address_that_a_software_device_draws_for_and_its_uuid_never_name_the_processor)
{
    read_machine("software-that-states-an-address.records");
    gpuhal *gpu = open_machine(NULL);
    gpuhal_device *device = NULL;
    const char *reason = NULL;
    assert_int_equal(gpuhal_select(gpu, "pci=0000:03:00.0", 0, &device, &reason), GPUHAL_OK);
    assert_string_equal(gpuhal_device_id(device), "opencl:0");
    assert_int_equal(gpuhal_select(gpu, "uuid=6d657361-3232-2e33-2e36-000000000000", 0, &device, &reason), GPUHAL_OK);
    assert_string_equal(gpuhal_device_id(device), "vulkan:0");
    assert_string_equal(reason, "the selector \"uuid=6d657361-3232-2e33-2e36-000000000000\" names it");
    gpuhal_close(gpu);
}

TEST(a_doubted_match_tells_in_words_what_speaks_against_it)
{
    read_machine("intel-uuid-of-the-model.records");
    gpuhal *gpu = open_machine(NULL);
    gpuhal_evidence evidence = {.size = sizeof evidence};
    assert_int_equal(gpuhal_physical_evidence(gpu, 1, 0, &evidence), GPUHAL_OK);
    assert_int_equal(evidence.same, 0);
    assert_string_equal(evidence.sentence,
                        "opencl:1 and opencl:0 state the same UUID, but that tells nothing: opencl:0 is at PCI address "
                        "0000:03:00.0 and opencl:1 at 0000:04:00.0");
    gpuhal_close(gpu);
}

TEST(questions_about_physical_devices_that_make_no_sense_are_answered)
{
    read_machine("software-only.records");
    gpuhal *gpu = open_machine(NULL);
    gpuhal_physical_device physical = {0};
    gpuhal_evidence evidence = {0};
    assert_int_equal(gpuhal_physical_count(NULL), 0);
    assert_int_equal(gpuhal_physical_get(gpu, 0, &physical), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_physical_evidence(gpu, 0, 0, &evidence), GPUHAL_ERROR_INVALID_ARGUMENT);
    physical.size = sizeof physical;
    evidence.size = sizeof evidence;
    assert_int_equal(gpuhal_physical_get(NULL, 0, &physical), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_physical_get(gpu, 0, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_physical_get(gpu, 1, &physical), GPUHAL_ERROR_NOT_FOUND);
    assert_int_equal(gpuhal_physical_evidence(gpu, 1, 0, &evidence), GPUHAL_ERROR_NOT_FOUND);
    assert_int_equal(gpuhal_physical_evidence(gpu, 0, 3, &evidence), GPUHAL_ERROR_NOT_FOUND);
    assert_null(gpuhal_physical_face(gpu, 0, 4));
    assert_null(gpuhal_physical_face(gpu, 1, 0));
    assert_null(gpuhal_physical_face(NULL, 0, 0));
    /* A caller of an earlier version knows the first members only. */
    memset(&physical, 0x55, sizeof physical);
    physical.size = 12;
    assert_int_equal(gpuhal_physical_get(gpu, 0, &physical), GPUHAL_OK);
    assert_int_equal(physical.face_count, 4);
    assert_int_equal(physical.evidence_count, 0x55555555);
    gpuhal_close(gpu);
}

#include "test_main.h"
