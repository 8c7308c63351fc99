/* The tables of a device's slots: which tables the core accepts, what it copies, and what open() may change. */
#include "loader/slot_tables.h"
#include "support/mock.h"
#include "test.h"

#include <gpuhal/native.h>

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* The functions are never called, but a slot must not be NULL. */
static void function(void)
{
}

/* Fills the table with slots. The sizes of all tables are multiples of the size of a pointer. */
static void fill(void *table, uint32_t size, uint32_t version)
{
    void (*const slot)(void) = function;
    const uint32_t header[2] = {size, version};
    memcpy(table, header, sizeof header);
    for (size_t at = sizeof header; at + sizeof slot <= size; at += sizeof slot) {
        memcpy((char *)table + at, &slot, sizeof slot);
    }
}

typedef struct tables {
    gpuhal_ops ops;
    gpuhal_queue_ops queues;
    gpuhal_peer_ops peers;
    gpuhal_range_ops ranges;
    gpuhal_program_ops programs;
    gpuhal_native_ops native;
    gpuhal_recording_ops recordings;
} tables;

static void make(tables *out)
{
    memset(out, 0, sizeof *out);
    fill(&out->ops, offsetof(gpuhal_ops, queues), 0);
    out->ops.size = sizeof out->ops;
    fill(&out->queues, sizeof out->queues, GPUHAL_QUEUES_VERSION);
    fill(&out->peers, sizeof out->peers, GPUHAL_PEERS_VERSION);
    fill(&out->ranges, sizeof out->ranges, GPUHAL_RANGES_VERSION);
    fill(&out->programs, sizeof out->programs, GPUHAL_PROGRAMS_VERSION);
    fill(&out->native, sizeof out->native, GPUHAL_NATIVE_VERSION);
    fill(&out->recordings, sizeof out->recordings, GPUHAL_RECORDINGS_VERSION);
    out->ops.queues = &out->queues;
    out->ops.peers = &out->peers;
    out->ops.ranges = &out->ranges;
    out->ops.programs = &out->programs;
    out->ops.native = &out->native;
    out->ops.recordings = &out->recordings;
}

static void expect_refused(const tables *made, const char *sentence)
{
    gpuhal_slots slots;
    gpuhal_slots_text text;
    assert_false(gpuhal_slots_read(&made->ops, &slots, &text));
    assert_string_equal(text.problem, sentence);
    assert_int_equal(gpuhal_direct_slots(&made->ops, &slots), GPUHAL_ERROR_DRIVER);
    assert_string_equal(gpuhal_last_error()->sentence, sentence);
}

TEST(whole_tables_are_copied_and_a_group_without_a_table_is_zero)
{
    static const gpuhal_queue_ops none = {0};
    gpuhal_slots slots;
    gpuhal_slots_text text;
    tables made;
    make(&made);
    assert_true(gpuhal_slots_read(&made.ops, &slots, &text));
    assert_string_equal(text.unknown, "");
    assert_memory_equal(&slots.queues, &made.queues, sizeof made.queues);
    assert_memory_equal(&slots.peers, &made.peers, sizeof made.peers);
    assert_memory_equal(&slots.ranges, &made.ranges, sizeof made.ranges);
    assert_memory_equal(&slots.programs, &made.programs, sizeof made.programs);
    assert_memory_equal(&slots.native, &made.native, sizeof made.native);
    assert_memory_equal(&slots.recordings, &made.recordings, sizeof made.recordings);
    made.ops.queues = NULL;
    assert_int_equal(gpuhal_direct_slots(&made.ops, &slots), GPUHAL_OK);
    assert_memory_equal(&slots.queues, &none, sizeof none);
    assert_non_null(slots.peers.peer_copy);
    assert_int_equal(gpuhal_direct_slots(NULL, &slots), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(gpuhal_direct_slots(&made.ops, NULL), GPUHAL_ERROR_INVALID_ARGUMENT);
}

TEST(a_group_of_an_unknown_version_is_not_offered_and_is_named)
{
    gpuhal_slots slots;
    gpuhal_slots_text text;
    tables made;
    make(&made);
    made.queues.version = 7;
    made.queues.size = 8; /* the size of a version that the core does not know */
    made.native.version = 0;
    assert_true(gpuhal_slots_read(&made.ops, &slots, &text));
    assert_string_equal(text.unknown,
                        "the group queues is not offered: its table has version 7, this library supports version 1; "
                        "the group native is not offered: its table has version 0, this library supports version 1");
    assert_int_equal(slots.queues.size, 0);
    assert_null(slots.queues.queue_create);
    assert_null(slots.native.native_device);
    assert_non_null(slots.programs.launch);
}

TEST(a_table_below_the_minimum_of_its_group_is_refused)
{
    tables made;
    make(&made);
    made.queues.size = GPUHAL_QUEUE_OPS_MINIMUM - 1;
    expect_refused(&made, "the table of the group queues has 63 bytes; at least 64 are needed");
    make(&made);
    made.peers.size = GPUHAL_PEER_OPS_MINIMUM - 1;
    expect_refused(&made, "the table of the group peers has 31 bytes; at least 32 are needed");
    make(&made);
    made.ranges.size = GPUHAL_RANGE_OPS_MINIMUM - 1;
    expect_refused(&made, "the table of the group ranges has 47 bytes; at least 48 are needed");
    make(&made);
    made.programs.size = GPUHAL_PROGRAM_OPS_MINIMUM - 1;
    expect_refused(&made, "the table of the group programs has 47 bytes; at least 48 are needed");
    make(&made);
    made.native.size = GPUHAL_NATIVE_OPS_MINIMUM - 1;
    expect_refused(&made, "the table of the group native has 7 bytes; at least 8 are needed");
    make(&made);
    made.recordings.size = GPUHAL_RECORDING_OPS_MINIMUM - 1;
    expect_refused(&made, "the table of the group recordings has 39 bytes; at least 40 are needed");
}

TEST(a_group_without_a_mandatory_slot_is_refused_by_the_name_of_the_slot)
{
    tables made;
#define WITHOUT(table, slot, words)                                                                                    \
    make(&made);                                                                                                       \
    made.table.slot = NULL;                                                                                            \
    expect_refused(&made, words #slot)
    WITHOUT(ops, allocate, "it lacks the mandatory slot ");
    WITHOUT(ops, release, "it lacks the mandatory slot ");
    WITHOUT(ops, copy, "it lacks the mandatory slot ");
    WITHOUT(queues, queue_create, "the group queues lacks the mandatory slot ");
    WITHOUT(queues, queue_destroy, "the group queues lacks the mandatory slot ");
    WITHOUT(queues, queue_flush, "the group queues lacks the mandatory slot ");
    WITHOUT(queues, event_create, "the group queues lacks the mandatory slot ");
    WITHOUT(queues, event_destroy, "the group queues lacks the mandatory slot ");
    WITHOUT(queues, event_record, "the group queues lacks the mandatory slot ");
    WITHOUT(queues, event_query, "the group queues lacks the mandatory slot ");
    WITHOUT(peers, peer_enable, "the group peers lacks the mandatory slot ");
    WITHOUT(peers, peer_disable, "the group peers lacks the mandatory slot ");
    WITHOUT(peers, peer_copy, "the group peers lacks the mandatory slot ");
    WITHOUT(ranges, range_granularity, "the group ranges lacks the mandatory slot ");
    WITHOUT(ranges, range_reserve, "the group ranges lacks the mandatory slot ");
    WITHOUT(ranges, range_commit, "the group ranges lacks the mandatory slot ");
    WITHOUT(ranges, range_decommit, "the group ranges lacks the mandatory slot ");
    WITHOUT(ranges, range_release, "the group ranges lacks the mandatory slot ");
    WITHOUT(programs, program_load, "the group programs lacks the mandatory slot ");
    WITHOUT(programs, program_unload, "the group programs lacks the mandatory slot ");
    WITHOUT(programs, kernel_create, "the group programs lacks the mandatory slot ");
    WITHOUT(programs, kernel_destroy, "the group programs lacks the mandatory slot ");
    WITHOUT(programs, launch, "the group programs lacks the mandatory slot ");
    WITHOUT(recordings, recording_create, "the group recordings lacks the mandatory slot ");
    WITHOUT(recordings, recording_set, "the group recordings lacks the mandatory slot ");
    WITHOUT(recordings, recording_run, "the group recordings lacks the mandatory slot ");
    WITHOUT(recordings, recording_destroy, "the group recordings lacks the mandatory slot ");
    WITHOUT(ops, memory_flush, "it offers memory_invalidate without ");
    WITHOUT(ops, register_host, "it offers unregister_host without ");
    WITHOUT(ops, unmap, "it offers map without ");
    WITHOUT(native, native_unlock, "it offers native_lock without ");
    WITHOUT(native, native_lock, "it offers native_unlock without ");
#undef WITHOUT
}

/* The table ends at a page that cannot be read, and its own page cannot be written. */
TEST(a_plugin_that_changes_the_size_of_the_slots_must_offer_the_mandatory_ones_all_the_same)
{
    tables made;
    make(&made);
    made.ops.size = 0;
    made.ops.copy = NULL;
    expect_refused(&made, "it lacks the mandatory slot copy");
}

TEST(the_core_reads_no_byte_beyond_the_size_of_a_table_and_writes_none)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uint32_t sizes[] = {GPUHAL_QUEUE_OPS_MINIMUM, GPUHAL_QUEUE_OPS_MINIMUM + sizeof(void *),
                              GPUHAL_QUEUE_OPS_MINIMUM + sizeof(void *) / 2};
    gpuhal_slots slots;
    gpuhal_slots_text text;
    tables made;
    make(&made);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(pages, MAP_FAILED);
        char *table = pages + page - sizes[i];
        fill(table, sizes[i], GPUHAL_QUEUES_VERSION);
        assert_int_equal(mprotect(pages, page, PROT_READ), 0);
        assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
        made.ops.queues = (const gpuhal_queue_ops *)(const void *)table;
        assert_true(gpuhal_slots_read(&made.ops, &slots, &text));
        assert_non_null(slots.queues.event_query);
        assert_int_equal(slots.queues.event_block != NULL, i == 1);
        assert_null(slots.queues.event_notify);
        assert_null(slots.queues.elapsed);
        munmap(pages, 2 * page);
    }
}

/* The slots of a later version of the group. */
TEST(a_table_that_is_longer_than_the_core_knows_is_read_as_far_as_the_core_knows)
{
    struct {
        gpuhal_queue_ops queues;
        void (*later[8])(void);
    } longer;
    gpuhal_slots slots;
    gpuhal_slots_text text;
    tables made;
    make(&made);
    fill(&longer, sizeof longer, GPUHAL_QUEUES_VERSION);
    made.ops.queues = &longer.queues;
    made.ops.peers = NULL; /* follows the queues in gpuhal_slots */
    assert_true(gpuhal_slots_read(&made.ops, &slots, &text));
    assert_memory_equal(&slots.queues, &longer.queues, sizeof longer.queues);
    assert_int_equal(slots.peers.size, 0);
    assert_null(slots.peers.peer_enable);
}

TEST(a_structure_has_a_member_only_if_its_size_includes_the_whole_member)
{
    gpuhal_host host = {.size = sizeof host};
    assert_true(GPUHAL_HAS(&host, process));
    host.size = offsetof(gpuhal_host, process) + sizeof host.process - 1;
    assert_false(GPUHAL_HAS(&host, process));
    assert_true(GPUHAL_HAS(&host, source));
}

/* ---- tables that open() changes */

static struct {
    const gpuhal_plugin *mock;
    tables described;
    void (*change)(gpuhal_ops *ops); /* called by open() */
    int closed;
    char warning[256];
} plugin;

static gpuhal_status describe(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                              gpuhal_ops *out_ops)
{
    const gpuhal_status status = plugin.mock->describe(host, instance, index, out_ops);
    out_ops->queues = &plugin.described.queues;
    out_ops->native = &plugin.described.native;
    return status;
}

static gpuhal_status open_changed(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t index,
                                  const gpuhal_native *adopt, gpuhal_plugin_device **out_device, gpuhal_ops *ops)
{
    plugin.change(ops);
    return plugin.mock->open(host, instance, index, adopt, out_device, ops);
}

static void close_counted(gpuhal_plugin_device *device)
{
    plugin.closed++;
    plugin.mock->close(device);
}

static const gpuhal_plugin *query(uint32_t host_abi, const gpuhal_host *host)
{
    static gpuhal_plugin own;
    plugin.mock = gpuhal_mock_query(host_abi, host);
    own = *plugin.mock;
    own.describe = describe;
    own.open = open_changed;
    own.close = close_counted;
    return &own;
}

static void keep_warning(void *user, int32_t level, const char *text)
{
    (void)user;
    if (level == GPUHAL_LOG_WARNING) {
        snprintf(plugin.warning, sizeof plugin.warning, "%s", text);
    }
}

/* Returns a listed device whose queues and native handles were described. */
static gpuhal_device *list_device(void (*change)(gpuhal_ops *ops), gpuhal **out_gpu)
{
    static gpuhal_builtin_fn *const builtins[] = {query, NULL};
    const gpuhal_config config = {.size = sizeof config,
                                  .isolation = GPUHAL_ISOLATION_NEVER,
                                  .ignore_environment = 1,
                                  .registry = "none",
                                  .builtins = builtins,
                                  .log = keep_warning,
                                  .log_level = GPUHAL_LOG_WARNING};
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    make(&plugin.described);
    plugin.change = change;
    plugin.closed = 0;
    assert_ok(gpuhal_open(&config, out_gpu));
    gpuhal_device *device = gpuhal_device_at(*out_gpu, 0);
    assert_true(gpuhal_device_capabilities(device) & GPUHAL_CAPABILITY_QUEUES);
    assert_true(gpuhal_device_capabilities(device) & GPUHAL_CAPABILITY_NATIVE);
    return device;
}

static void drop_queues(gpuhal_ops *ops)
{
    static gpuhal_native_ops without_queues;
    without_queues = plugin.described.native;
    without_queues.native_queue = NULL;
    ops->queues = NULL;
    ops->native = &without_queues;
}

TEST(open_may_drop_a_group_or_point_to_another_table)
{
    gpuhal *gpu = NULL;
    gpuhal_device *device = list_device(drop_queues, &gpu);
    assert_ok(gpuhal_device_open(device));
    assert_false(gpuhal_device_capabilities(device) & GPUHAL_CAPABILITY_QUEUES);
    assert_true(gpuhal_device_capabilities(device) & GPUHAL_CAPABILITY_NATIVE);
    gpuhal_close(gpu);
}

static void spoil_queues(gpuhal_ops *ops)
{
    static gpuhal_queue_ops spoilt;
    spoilt = plugin.described.queues;
    spoilt.event_query = NULL;
    ops->queues = &spoilt;
}

TEST(a_device_that_is_opened_with_an_incomplete_group_is_refused_and_closed)
{
    gpuhal *gpu = NULL;
    gpuhal_device *device = list_device(spoil_queues, &gpu);
    assert_int_equal(gpuhal_device_open(device), GPUHAL_ERROR_DRIVER);
    assert_non_null(strstr(gpuhal_last_error()->sentence,
                           "the opened device: the group queues lacks the mandatory slot event_query"));
    assert_int_equal(plugin.closed, 1);
    gpuhal_close(gpu);
    assert_int_equal(plugin.closed, 1);
}

static void renew_queues(gpuhal_ops *ops)
{
    static gpuhal_queue_ops renewed;
    renewed = plugin.described.queues;
    renewed.version = 2;
    ops->queues = &renewed;
}

TEST(a_device_that_is_opened_with_a_group_of_an_unknown_version_is_used_without_it_and_logged)
{
    gpuhal *gpu = NULL;
    gpuhal_device *device = list_device(renew_queues, &gpu);
    assert_ok(gpuhal_device_open(device));
    assert_false(gpuhal_device_capabilities(device) & GPUHAL_CAPABILITY_QUEUES);
    assert_non_null(strstr(plugin.warning, "the group queues is not offered: its table has version 2, this library "
                                           "supports version 1"));
    gpuhal_close(gpu);
}

#include "test_main.h"
