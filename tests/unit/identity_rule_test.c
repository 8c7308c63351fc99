/* The rule that decides which devices are interfaces of one physical device. The tests use all recorded machines. The
 * tests run the whole library, and the rule alone with the devices in many orders. The formats of the identifying
 * values are tested too. */
#include "device/identity.h"
#include "identity_support.h"

#include <dirent.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHUFFLES = 24 };

static int is_record(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".records") == 0;
}

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

static void append(char *to, size_t bytes, const char *word)
{
    size_t used = strlen(to);
    snprintf(to + used, bytes - used, "%s%s", used ? " " : "", word);
}

static void expect(const char *what, const char *actual, const char *expected)
{
    if (strcmp(actual, expected) != 0) {
        fail_msg("%s: %s: the library says \"%s\", expected is \"%s\"", now.name, what, actual, expected);
    }
}

static void check_evidence(const gpuhal *gpu, const gpuhal_physical_info *physical, const recorded_physical *expected)
{
    gpuhal_evidence evidence = {.size = sizeof evidence};
    for (uint32_t i = 0; i < physical->evidence_count; i++) {
        assert_int_equal(record_now(gpu, GPUHAL_RECORD_EVIDENCE, physical->first_evidence + i, &evidence), GPUHAL_OK);
        assert_int_equal(evidence.physical, physical->number);
        char text[96];
        snprintf(text, sizeof text, "%s %s %s %s", evidence.same ? "same" : "apart", evidence.device, evidence.other,
                 evidence.matched_by);
        expect("evidence", text, i < expected->evidence_count ? expected->evidence[i] : "none");
        assert_non_null(strstr(evidence.sentence, evidence.device));
        assert_non_null(strstr(evidence.sentence, evidence.other));
        assert_true(*evidence.value || strcmp(evidence.matched_by, "host_processor") == 0);
    }
}

static void check_physical(const gpuhal *gpu, uint32_t index, const recorded_physical *expected)
{
    gpuhal_physical_info physical = {.size = sizeof physical};
    assert_int_equal(record_now(gpu, GPUHAL_RECORD_PHYSICAL, index, &physical), GPUHAL_OK);
    char interfaces[256] = "", preferred_ids[256] = "";
    for (uint32_t i = 0; i < physical.device_count; i++) {
        gpuhal_interface_info iface = {.size = sizeof iface};
        uint32_t number = 99, preferred = 9;
        assert_int_equal(record_now(gpu, GPUHAL_RECORD_INTERFACE, physical.first_interface + i, &iface), GPUHAL_OK);
        assert_int_equal(gpuhal_device_physical(iface.device, &number, &preferred), GPUHAL_OK);
        assert_int_equal(number, physical.number);
        assert_int_equal(iface.physical, physical.number);
        append(interfaces, sizeof interfaces, gpuhal_device_id(iface.device));
        if (preferred) {
            append(preferred_ids, sizeof preferred_ids, gpuhal_device_id(iface.device));
        }
    }
    expect("interfaces", interfaces, expected->interfaces);
    expect("preferred", preferred_ids, expected->preferred);
    expect("PCI address", physical.pci_address, expected->pci_address);
    expect("UUID", physical.uuid, expected->uuid);
    check_evidence(gpu, &physical, expected);
    if (physical.evidence_count != expected->evidence_count) {
        fail_msg("%s: %s: %u items of evidence, expected are %u", now.name, interfaces, physical.evidence_count,
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
    assert_int_equal(records_now(gpu, GPUHAL_RECORD_PHYSICAL), now.physical_count);
    for (uint32_t i = 0; i < now.physical_count; i++) {
        check_physical(gpu, i, &now.physicals[i]);
    }
    for (uint32_t i = 0; i < now.choice_count; i++) {
        check_choice(gpu, &now.choices[i]);
    }
    gpuhal_close(gpu);
}

/* A backend lists its devices once per process, so each machine needs a separate process. */
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

TEST(recorded_machines_have_the_expected_devices_evidence_and_choices)
{
    for_each_machine(check_library_in_a_child);
}

/* Shuffles the machine's devices with the seed. Seed 0 keeps their order. */
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

/* Writes a character for each pair of devices in the file: '.' for different physical devices, 'p' for two partitions
 * of one physical device, '=' for two interfaces of one device. */
static void find_relations(uint32_t seed, char relations[DEVICES * DEVICES + 1])
{
    uint32_t order[DEVICES], place[DEVICES];
    gpuhal_identity identity = {.interfaces = calloc(DEVICES, sizeof *identity.interfaces), .count = now.device_count};
    assert_non_null(identity.interfaces);
    shuffle(seed, order);
    for (uint32_t i = 0; i < now.device_count; i++) {
        const recorded_device *device = &now.devices[order[i]];
        identity.interfaces[i].backend = device->backend;
        identity.interfaces[i].index = device->index;
        identity.interfaces[i].facts = &device->facts;
        place[order[i]] = i;
    }
    assert_int_equal(gpuhal_identity_find(&identity), GPUHAL_OK);
    char *to = relations;
    for (uint32_t i = 0; i < now.device_count; i++) {
        for (uint32_t k = 0; k < now.device_count; k++) {
            const gpuhal_interface *a = &identity.interfaces[place[i]], *b = &identity.interfaces[place[k]];
            *to++ = a->physical != b->physical ? '.' : a->partition == b->partition ? '=' : 'p';
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

TEST(the_order_of_devices_does_not_change_their_identity)
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
        {"0000:00:00.0", "0000:00:00.0"},
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

#include "test_main.h"
