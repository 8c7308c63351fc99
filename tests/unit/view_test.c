/* Views: record kinds and their order, structure sizes, invalid calls, and the lifetime of a view. fork_support.h tests
 * views in a forked child. The tests of the registry and of hardware test the record kinds of node/. */
#include "identity_support.h"

enum { OF_HARDWARE = 16, OF_REGISTRY = 17 }; /* record kinds of components that this build may lack */

static gpuhal *gpu;

/* Makes a view of the named machine, or of the open machine in its current state. */
static gpuhal_view *view_of(const char *name)
{
    gpuhal_view *view = NULL;
    if (name) {
        read_machine(name);
        gpu = open_machine(NULL);
    }
    assert_int_equal(gpuhal_view_of(gpu, 0, &view), GPUHAL_OK);
    return view;
}

static void end(gpuhal_view *view)
{
    gpuhal_close(gpu);
    gpuhal_view_release(view); /* the view may be released after the object */
}

TEST(a_record_has_as_much_as_the_structure_of_its_caller)
{
    gpuhal_view *view = view_of("nvidia-three-apis.records");
    struct {
        gpuhal_physical_info physical;
        unsigned char behind[8];
    } own;
    memset(&own, 0x55, sizeof own);
    own.physical.size = offsetof(gpuhal_physical_info, evidence_count);
    assert_int_equal(gpuhal_view_get(view, GPUHAL_RECORD_PHYSICAL, 0, &own.physical), GPUHAL_OK);
    assert_int_equal(own.physical.size, offsetof(gpuhal_physical_info, evidence_count));
    assert_int_equal(own.physical.device_count, 3);
    assert_int_equal(own.physical.evidence_count, 0x55555555);
    own.physical.size = sizeof own;
    assert_int_equal(gpuhal_view_get(view, GPUHAL_RECORD_PHYSICAL, 0, &own.physical), GPUHAL_OK);
    assert_int_equal(own.physical.size, sizeof own);
    assert_int_equal(own.physical.evidence_count, 2);
    assert_int_equal(own.behind[0], 0x55);
    end(view);
}

TEST(an_absent_record_is_counted_as_0_and_its_status_says_why)
{
    gpuhal_view *view = view_of("software-only.records"), *other = view;
    gpuhal_plugin_report report = {.size = 0};
    assert_int_equal(gpuhal_view_get(view, GPUHAL_RECORD_PLUGIN, 0, &report), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_view_get(view, GPUHAL_RECORD_PLUGIN, 0, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    report.size = sizeof report.size;
    assert_int_equal(gpuhal_view_get(NULL, GPUHAL_RECORD_PLUGIN, 0, &report), GPUHAL_ERROR_INVALID_ARGUMENT);
    const uint32_t plugins = gpuhal_view_count(view, GPUHAL_RECORD_PLUGIN);
    assert_int_equal(gpuhal_view_get(view, GPUHAL_RECORD_PLUGIN, plugins - 1, &report), GPUHAL_OK);
    assert_int_equal(gpuhal_view_get(view, GPUHAL_RECORD_PLUGIN, plugins, &report), GPUHAL_ERROR_NOT_FOUND);
    assert_int_equal(gpuhal_view_get(view, GPUHAL_RECORD_NOTE, 0, &report), GPUHAL_ERROR_NOT_FOUND);
    const gpuhal_record_kind absent[] = {0, GPUHAL_RECORD_EVIDENCE + 1, OF_HARDWARE, 99};
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        assert_int_equal(gpuhal_view_get(view, absent[i], 0, &report), GPUHAL_ERROR_NOT_SUPPORTED);
        const char *why = absent[i] == OF_HARDWARE ? "without GPUHAL_VIEW_HARDWARE" : "does not know the kind";
        assert_non_null(strstr(gpuhal_last_error()->sentence, why));
        assert_int_equal(gpuhal_view_count(view, absent[i]), 0);
    }
    assert_int_equal(gpuhal_view_count(NULL, GPUHAL_RECORD_PLUGIN), 0);
    assert_int_equal(gpuhal_view_of(NULL, 0, &other), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_null(other);
    assert_int_equal(gpuhal_view_of(gpu, 0, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_view_of(gpu, 2, &other), GPUHAL_ERROR_INVALID_ARGUMENT);
    const gpuhal_status built = gpuhal_view_count(view, OF_REGISTRY) ? GPUHAL_OK : GPUHAL_ERROR_NOT_SUPPORTED;
    assert_int_equal(gpuhal_view_get(view, OF_REGISTRY, 0, &report), built);
    assert_int_equal(gpuhal_view_of(gpu, GPUHAL_VIEW_HARDWARE, &other), built);
    assert_int_equal(other == NULL, built != GPUHAL_OK);
    gpuhal_view_release(other);
    end(view);
}

TEST(a_view_stays_the_same_after_a_rescan)
{
    gpuhal_view *before = view_of("nvidia-three-apis.records");
    gpuhal_interface_info iface = {.size = sizeof iface};
    add_device("fifth", "Another GPU");
    assert_int_equal(gpuhal_rescan(gpu, NULL), GPUHAL_OK);
    gpuhal_view *after = view_of(NULL);
    assert_int_equal(gpuhal_view_count(before, GPUHAL_RECORD_PHYSICAL), 2);
    assert_int_equal(gpuhal_view_count(before, GPUHAL_RECORD_INTERFACE), 4);
    assert_int_equal(gpuhal_view_count(after, GPUHAL_RECORD_PHYSICAL), 3);
    assert_int_equal(gpuhal_view_count(after, GPUHAL_RECORD_INTERFACE), 5);
    assert_int_equal(gpuhal_view_get(before, GPUHAL_RECORD_INTERFACE, 0, &iface), GPUHAL_OK);
    gpuhal_view_release(before);
    assert_string_equal(gpuhal_device_id(iface.device), "cuda:0");
    end(after);
}

#include "test_main.h"
