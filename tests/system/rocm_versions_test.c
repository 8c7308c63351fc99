/* Tests the slots of the ROCm plugin with fake runtimes older than version 7: results and behaviour that differ from
 * version 7, according to the source (ROCm/clr, tags rocm-6.1 to 6.3). */
#include "bench.h"
#include "support/random.h"

enum { HIP_6_1 = 60140093, HIP_6_2 = 60241134 };

static void begin_devices(bench *with, int version, const char *machine, unsigned count)
{
    char text[200];
    snprintf(text, sizeof text, "%s; driver %d", machine, version);
    use_machine(text);
    use_runtime("", version / 10000000);
    begin(with, count);
}

static void begin_version(bench *with, int version, const char *machine)
{
    begin_devices(with, version, machine, 1);
}

/* ---- mappings */

static void expect_no_import_of_more(int version)
{
    bench with;
    begin_version(&with, version, "devices 1");
    gpuhal_memory from =
        allocate(&with, 0, (gpuhal_alloc){.bytes = 2 * MIB, .export_kinds = 1u << GPUHAL_HANDLE_OPAQUE_FD});
    gpuhal_alloc more = {.size = sizeof more, .bytes = 64 * MIB, .handle = {.size = sizeof more.handle}};
    gpuhal_memory memory = {.size = sizeof memory};
    uint64_t offset = 0;
    expect_fine(with.ops.export_memory(with.devices[0], &from, GPUHAL_HANDLE_OPAQUE_FD, &more.handle, &offset), &with,
                "export");
    assert_int_equal(with.ops.allocate(with.devices[0], &more, &memory), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(close((int)more.handle.as.os), 0); /* the caller still owns the descriptor */
    with.ops.release(with.devices[0], &from);
    end_clean(&with);
}

TEST(an_import_of_more_bytes_than_were_exported_is_refused_by_hip_6_1)
{
    expect_no_import_of_more(HIP_6_1);
}

TEST(an_import_of_more_bytes_than_were_exported_is_refused_by_hip_6_2)
{
    expect_no_import_of_more(HIP_6_2);
}

TEST(memory_that_hip_6_cannot_map_is_given_back_without_unmapping_it)
{
    bench with;
    begin_version(&with, HIP_6_2, "devices 1; fail hipMemMap 1 2; fail hipMemMap 2 2");
    gpuhal_memory memory = {.size = sizeof memory};
    const gpuhal_alloc alloc = {.size = sizeof alloc, .bytes = 2 * MIB, .export_kinds = 1u << GPUHAL_HANDLE_OPAQUE_FD};
    assert_true(with.ops.allocate(with.devices[0], &alloc, &memory) < 0);
    uint64_t piece = 0;
    gpuhal_plugin_range *range = NULL;
    expect_fine(with.ops.ranges->range_granularity(with.devices[0], 1 << 20, &piece), &with, "range_granularity");
    expect_fine(with.ops.ranges->range_reserve(with.devices[0], 4 * piece, &memory, &range), &with, "range_reserve");
    assert_true(with.ops.ranges->range_commit(range, 0, piece, NULL, 0) < 0);
    assert_int_equal(calls_of("hipMemUnmap"), 0);
    expect_fine(with.ops.ranges->range_commit(range, 0, piece, NULL, 0), &with, "range_commit");
    with.ops.ranges->range_release(range);
    assert_int_equal(calls_of("hipMemUnmap"), 1);
    end_clean(&with);
}

static void expect_alignment(int version)
{
    bench with;
    begin_version(&with, version, "devices 1");
    for (uint64_t alignment = 4096; alignment <= 256 * MIB; alignment *= 4) {
        gpuhal_memory memory = allocate(
            &with, 0,
            (gpuhal_alloc){.bytes = 4096, .alignment = alignment, .export_kinds = 1u << GPUHAL_HANDLE_OPAQUE_FD});
        char byte = 3, got = 0;
        assert_int_equal(memory.address % alignment, 0);
        expect_fine(with.ops.write(with.devices[0], NULL, &memory, 4095, &byte, 1), &with, "write");
        expect_fine(with.ops.read(with.devices[0], NULL, &got, &memory, 4095, 1), &with, "read");
        assert_int_equal(got, 3);
        with.ops.release(with.devices[0], &memory);
    }
    end_clean(&with);
}

TEST(exportable_memory_is_aligned_although_hip_6_does_not_align_it)
{
    expect_alignment(HIP_6_2);
}

TEST(exportable_memory_is_aligned_although_hip_7_does_not_align_it)
{
    expect_alignment(70051831);
}

/* ---- memory of several allocations, and managed memory */

/* Maps two allocations of 2 MiB consecutively, as allocators that grow in place do. */
static void expect_copies_across_chunks(int version)
{
    enum { BYTES = 1000 };
    bench with;
    begin_version(&with, version, "devices 1");
    gpuhal_memory area = {.size = sizeof area}, other = allocate(&with, 0, (gpuhal_alloc){.bytes = BYTES});
    uint64_t piece = 0;
    gpuhal_plugin_range *range = NULL;
    expect_fine(with.ops.ranges->range_granularity(with.devices[0], 1 << 20, &piece), &with, "range_granularity");
    expect_fine(with.ops.ranges->range_reserve(with.devices[0], 4 * piece, &area, &range), &with, "range_reserve");
    expect_fine(with.ops.ranges->range_commit(range, 0, piece, NULL, 0), &with, "range_commit");
    expect_fine(with.ops.ranges->range_commit(range, piece, piece, NULL, 0), &with, "range_commit");
    unsigned char *sent = bytes_of_seed(9, BYTES), got[BYTES] = {0};
    const uint64_t at = piece - BYTES / 2;
    expect_fine(with.ops.write(with.devices[0], NULL, &area, at, sent, BYTES), &with, "write");
    expect_fine(with.ops.copy(with.devices[0], NULL, &other, 0, &area, at, BYTES), &with, "copy");
    expect_fine(with.ops.read(with.devices[0], NULL, got, &other, 0, BYTES), &with, "read");
    assert_memory_equal(got, sent, BYTES);
    expect_fine(with.ops.fill(with.devices[0], NULL, &area, at + 2, BYTES - 4, 0x12345678, 4), &with, "fill");
    expect_fine(with.ops.read(with.devices[0], NULL, got, &area, at, BYTES), &with, "read");
    assert_memory_equal(got, sent, 2);
    assert_memory_equal(got + BYTES - 2, sent + BYTES - 2, 2);
    for (int i = 2; i < BYTES - 2; i += 4) {
        assert_memory_equal(got + i, "\x78\x56\x34\x12", 4);
    }
    gpuhal_plugin_rect to = {.host = got, .row_pitch = 100, .slice_pitch = BYTES},
                       from = {.memory = &area, .offset = at, .row_pitch = 100, .slice_pitch = BYTES};
    memset(got, 0, BYTES);
    expect_fine(with.ops.copy_rect(with.devices[0], NULL, &to, &from, (uint64_t[3]){90, 10, 1}), &with, "copy_rect");
    assert_memory_equal(got, sent, 2);
    assert_memory_equal(got + 902, "\x78\x56\x34\x12", 4);
    with.ops.release(with.devices[0], &other);
    with.ops.ranges->range_release(range);
    free(sent);
    end_clean(&with);
}

TEST(copies_and_fills_cross_the_pieces_of_a_range_in_hip_6_1)
{
    expect_copies_across_chunks(HIP_6_1);
}

TEST(copies_and_fills_cross_the_pieces_of_a_range_in_hip_6_2)
{
    expect_copies_across_chunks(HIP_6_2);
}

static void expect_copies_across_chunks_between_devices(int version)
{
    enum { BYTES = 1000 };
    bench with;
    begin_devices(&with, version, "devices 2; link 0 1 " OWN_LINK, 2);
    gpuhal_memory area = {.size = sizeof area}, other = allocate(&with, 1, (gpuhal_alloc){.bytes = BYTES});
    gpuhal_memory back = allocate(&with, 1, (gpuhal_alloc){.bytes = BYTES});
    uint64_t piece = 0;
    gpuhal_plugin_range *range = NULL;
    expect_fine(with.ops.ranges->range_granularity(with.devices[0], 1 << 20, &piece), &with, "range_granularity");
    expect_fine(with.ops.ranges->range_reserve(with.devices[0], 2 * piece, &area, &range), &with, "range_reserve");
    expect_fine(with.ops.ranges->range_commit(range, 0, piece, &with.devices[1], 1), &with, "range_commit");
    expect_fine(with.ops.ranges->range_commit(range, piece, piece, &with.devices[1], 1), &with, "range_commit");
    unsigned char *sent = bytes_of_seed(9, BYTES), got[BYTES] = {0};
    const uint64_t at = piece - BYTES / 2;
    expect_fine(with.ops.write(with.devices[1], NULL, &other, 0, sent, BYTES), &with, "write");
    gpuhal_plugin_device *here = with.devices[0], *there = with.devices[1];
    expect_fine(with.ops.peers->peer_copy(NULL, here, &area, at, there, &other, 0, BYTES), &with, "peer_copy");
    expect_fine(with.ops.peers->peer_copy(NULL, there, &back, 0, here, &area, at, BYTES), &with, "peer_copy");
    expect_fine(with.ops.read(with.devices[1], NULL, got, &back, 0, BYTES), &with, "read");
    assert_memory_equal(got, sent, BYTES);
    gpuhal_memory page_locked = allocate(&with, 1, (gpuhal_alloc){.bytes = BYTES, .kind = GPUHAL_MEMORY_UPLOAD});
    memset(page_locked.host, 0x37, BYTES);
    expect_fine(with.ops.peers->peer_copy(NULL, here, &area, at, there, &page_locked, 0, BYTES), &with,
                "peer_copy from the host");
    expect_fine(with.ops.read(with.devices[0], NULL, got, &area, at, BYTES), &with, "read");
    assert_int_equal(got[0] + got[BYTES - 1], 2 * 0x37);
    with.ops.release(with.devices[1], &other);
    with.ops.release(with.devices[1], &back);
    with.ops.release(with.devices[1], &page_locked);
    with.ops.ranges->range_release(range);
    free(sent);
    end_clean(&with);
}

TEST(copies_between_devices_cross_the_pieces_of_a_range_in_hip_6_1)
{
    expect_copies_across_chunks_between_devices(HIP_6_1);
}

TEST(copies_between_devices_cross_the_pieces_of_a_range_in_hip_6_2)
{
    expect_copies_across_chunks_between_devices(HIP_6_2);
}

static void expect_managed(int version)
{
    bench with;
    begin_version(&with, version, "devices 2");
    const vendor_api api = load_api();
    void *memory = NULL, *page_locked = NULL, *ordinary = aligned_alloc(4096, 4096);
    memset(ordinary, 0x55, 4096); /* a runtime before 6.2 would dereference this value */
    assert_int_equal(api.hipMallocManaged(&memory, 4096, 1), hipSuccess);
    assert_int_equal(api.hipHostMalloc(&page_locked, 4096, 0), hipSuccess);
    gpuhal_native native = {.size = sizeof native, .type = GPUHAL_NATIVE_HIP_MEMORY, .values = {(uintptr_t)memory}};
    gpuhal_memory wrapped = {.size = sizeof wrapped};
    expect_fine(with.ops.native->wrap_memory(with.devices[0], &native, 4096, &wrapped), &with, "wrap_memory");
    expect_fine(with.ops.fill(with.devices[0], NULL, &wrapped, 0, 4096, 0x21, 1), &with, "fill");
    assert_int_equal(((char *)memory)[4095], 0x21);
    with.ops.release(with.devices[0], &wrapped);
    assert_int_equal(with.ops.native->wrap_memory(with.devices[0], &native, 4097, &wrapped),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    native.values[0] = (uintptr_t)page_locked;
    assert_int_equal(with.ops.native->wrap_memory(with.devices[0], &native, 4096, &wrapped),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    native.values[0] = (uintptr_t)ordinary;
    assert_int_equal(with.ops.native->wrap_memory(with.devices[0], &native, 4096, &wrapped),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_int_equal(api.hipFree(memory), hipSuccess);
    assert_int_equal(api.hipHostFree(page_locked), hipSuccess);
    free(ordinary);
    end_clean(&with);
}

TEST(managed_memory_is_wrapped_and_memory_of_the_host_is_not_in_hip_5)
{
    expect_managed(50221153);
}

TEST(managed_memory_is_wrapped_and_memory_of_the_host_is_not_in_hip_6)
{
    expect_managed(HIP_6_1);
}

TEST(managed_memory_is_wrapped_and_memory_of_the_host_is_not_in_hip_7)
{
    expect_managed(70051831);
}

/* ---- graphs */

static void expect_graphs(int version, bool used)
{
    bench with;
    begin_version(&with, version, "devices 1");
    assert_int_equal(with.ops.recordings != NULL, used);
    end_clean(&with);
}

TEST(graphs_of_hip_6_3_are_not_used)
{
    expect_graphs(60342131, false);
}

TEST(graphs_of_hip_6_4_are_used)
{
    expect_graphs(60443482, true);
}

#include "test_main.h"
