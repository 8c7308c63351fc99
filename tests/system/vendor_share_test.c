/* Tests a vendor's plugin with its fake: ranges that are mapped chunk by chunk, exported and imported memory, and
 * memory that a peer or another interface also accesses. */
#include "bench.h"
#include "support/random.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- ranges */

typedef struct reserved {
    gpuhal_memory memory;
    gpuhal_plugin_range *range;
    uint64_t piece; /* the granularity */
} reserved;

static reserved reserve(const bench *with, uint64_t pieces)
{
    reserved out = {.memory = {.size = sizeof out.memory}};
    expect_fine(with->ops.ranges->range_granularity(with->devices[0], 1 << 20, &out.piece), with, "range_granularity");
    expect_fine(with->ops.ranges->range_reserve(with->devices[0], pieces * out.piece, &out.memory, &out.range), with,
                "range_reserve");
    return out;
}

TEST(a_range_takes_memory_only_for_committed_pieces_and_copies_cross_them)
{
    bench with = begin_on("devices 1; memory 0 64M; slow_us 50", 1);
    reserved area = reserve(&with, 100); /* exceeds the device's memory */
    const uint64_t piece = area.piece, before = fake_report_get()->device_bytes[0];
    expect_fine(with.ops.ranges->range_commit(area.range, 3 * piece, piece, NULL, 0), &with, "range_commit");
    expect_fine(with.ops.ranges->range_commit(area.range, 4 * piece, 2 * piece, NULL, 0), &with, "range_commit");
    assert_int_equal(fake_report_get()->device_bytes[0] - before, 3 * piece);
    unsigned char *sent = bytes_of_seed(9, 1000), got[1000] = {0};
    expect_fine(with.ops.write(with.devices[0], NULL, &area.memory, 4 * piece - 500, sent, 1000), &with, "write");
    expect_fine(with.ops.copy(with.devices[0], NULL, &area.memory, 5 * piece, &area.memory, 4 * piece - 500, 1000),
                &with, "copy");
    expect_fine(with.ops.read(with.devices[0], NULL, got, &area.memory, 5 * piece, 1000), &with, "read");
    assert_memory_equal(got, sent, 1000);
    assert_int_equal(with.ops.ranges->range_commit(area.range, 4 * piece, piece, NULL, 0),
                     GPUHAL_ERROR_INVALID_ARGUMENT);
    expect_fine(with.ops.ranges->range_decommit(area.range, 3 * piece, piece), &with, "range_decommit");
    assert_int_equal(fake_report_get()->device_bytes[0] - before, 2 * piece);
    expect_fine(with.ops.read(with.devices[0], NULL, got, &area.memory, 5 * piece, 1000), &with, "read");
    assert_memory_equal(got, sent, 1000);
    expect_fine(with.ops.ranges->range_commit(area.range, 0, piece, NULL, 0), &with, "range_commit");
    with.ops.ranges->range_release(area.range);
    assert_int_equal(fake_report_get()->device_bytes[0], before);
    free(sent);
    end_clean(&with);
}

TEST(a_commit_that_the_device_has_no_memory_for_leaves_the_range_as_it_was)
{
    bench with = begin_on("devices 1; memory 0 32M", 1);
    reserved area = reserve(&with, 100);
    unsigned char byte = 7, got = 0;
    expect_fine(with.ops.ranges->range_commit(area.range, 0, area.piece, NULL, 0), &with, "range_commit");
    expect_fine(with.ops.write(with.devices[0], NULL, &area.memory, 5, &byte, 1), &with, "write");
    assert_int_equal(with.ops.ranges->range_commit(area.range, area.piece, 50 * area.piece, NULL, 0),
                     GPUHAL_ERROR_OUT_OF_MEMORY);
    expect_fine(with.ops.read(with.devices[0], NULL, &got, &area.memory, 5, 1), &with, "read");
    assert_int_equal(got, 7);
    expect_fine(with.ops.ranges->range_commit(area.range, area.piece, 2 * area.piece, NULL, 0), &with, "range_commit");
    with.ops.ranges->range_release(area.range);
    end_clean(&with);
}

TEST(a_peer_reads_a_range_that_was_committed_for_it)
{
    bench with = begin_on("devices 2", 2);
    reserved area = reserve(&with, 1);
    gpuhal_memory there = allocate(&with, 1, (gpuhal_alloc){.bytes = 64});
    unsigned char got[64] = {0};
    expect_fine(with.ops.ranges->range_commit(area.range, 0, area.piece, &with.devices[1], 1), &with, "range_commit");
    expect_fine(with.ops.fill(with.devices[0], NULL, &area.memory, 0, 64, 0x31, 1), &with, "fill");
    expect_fine(with.ops.copy(with.devices[1], NULL, &there, 0, &area.memory, 0, 64), &with, "copy on the peer");
    expect_fine(with.ops.read(with.devices[1], NULL, got, &there, 0, 64), &with, "read");
    assert_int_equal(got[0] + got[63], 2 * 0x31);
    with.ops.release(with.devices[1], &there);
    with.ops.ranges->range_release(area.range);
    end_clean(&with);
}

/* ---- managed memory */

static void expect_refused(const bench *with, gpuhal_alloc alloc)
{
    gpuhal_memory memory = {.size = sizeof memory};
    alloc.size = sizeof alloc;
    assert_int_equal(with->ops.allocate(with->devices[0], &alloc, &memory), GPUHAL_ERROR_NOT_SUPPORTED);
}

/* A queue would refuse copies between host memories. */
TEST(managed_memory_has_the_same_address_on_the_host_and_the_device_copies_it)
{
    enum { BYTES = 100000 };
    bench with = begin_on("devices 2; slow_us 50", 2);
    gpuhal_plugin_queue *queue = queue_on(&with, 0);
    gpuhal_memory managed = allocate(&with, 0, (gpuhal_alloc){.kind = GPUHAL_MEMORY_MIGRATING, .bytes = BYTES}),
                  host = allocate(&with, 0, (gpuhal_alloc){.kind = GPUHAL_MEMORY_UPLOAD, .bytes = BYTES}),
                  there = allocate(&with, 1, (gpuhal_alloc){.bytes = BYTES});
    unsigned char *sent = bytes_of_seed(6, BYTES), *got = bytes_of_seed(7, BYTES);
    assert_int_equal(managed.address, (uintptr_t)managed.host);
    assert_int_equal(managed.flags, GPUHAL_MEMORY_HOST_COHERENT | GPUHAL_MEMORY_DEVICE_LOCAL);
    memcpy(managed.host, sent, BYTES);
    expect_fine(with.ops.copy(with.devices[0], queue, &host, 0, &managed, 0, BYTES), &with, "copy to host memory");
    expect_fine(with.ops.fill(with.devices[0], queue, &managed, 100, BYTES - 100, 0x44, 1), &with, "fill");
    expect_fine(with.ops.copy(with.devices[0], queue, &managed, 0, &host, 50, 50), &with, "copy from host memory");
    finish(&with, queue);
    assert_memory_equal(host.host, sent, BYTES);
    memcpy(got, sent + 50, 50);
    memcpy(got + 50, sent + 50, 50);
    memset(got + 100, 0x44, BYTES - 100);
    assert_memory_equal(managed.host, got, BYTES);
    expect_fine(with.ops.peers->peer_copy(NULL, with.devices[1], &there, 0, with.devices[0], &managed, 0, BYTES),
                &with, "peer_copy");
    expect_fine(with.ops.read(with.devices[1], NULL, sent, &there, 0, BYTES), &with, "read");
    assert_memory_equal(sent, got, BYTES);
    const gpuhal_plugin_rect to = {.memory = &host, .row_pitch = 10, .slice_pitch = 100},
                             from = {.memory = &managed, .row_pitch = 20, .slice_pitch = 200};
    const uint64_t extent[3] = {10, 10, 1};
    expect_fine(with.ops.copy_rect(with.devices[0], queue, &to, &from, extent), &with, "copy_rect");
    finish(&with, queue);
    assert_memory_equal((char *)host.host + 10, got + 20, 10);
    expect_refused(&with, (gpuhal_alloc){
        .kind = GPUHAL_MEMORY_MIGRATING, .bytes = BYTES, .export_kinds = 1u << GPUHAL_HANDLE_OPAQUE_FD});
    with.ops.queues->queue_destroy(queue);
    with.ops.release(with.devices[1], &there);
    with.ops.release(with.devices[0], &host);
    with.ops.release(with.devices[0], &managed);
    free(sent);
    free(got);
    end_clean(&with);
}

/* Without concurrent access a thread of the host that touches managed memory while a kernel runs would crash. */
TEST(managed_memory_is_offered_only_if_the_host_may_use_it_while_the_device_works)
{
    static const char *const machines[] = {OF("devices 1; attribute 0 89 0", "devices 1; attribute 0 9 0"),
                                           OF("devices 1; attribute 0 83 0", "devices 1; attribute 0 24 0")};
    for (size_t i = 0; i < 2; i++) {
        bench with = begin_on(machines[i], 1);
        expect_refused(&with, (gpuhal_alloc){.kind = GPUHAL_MEMORY_MIGRATING, .bytes = 4096});
        end_clean(&with);
    }
}

/* ---- exporting and importing */

static gpuhal_handle export_fd(const bench *with, const gpuhal_memory *memory)
{
    gpuhal_handle handle = {.size = sizeof handle};
    uint64_t offset = 1;
    expect_fine(with->ops.export_memory(with->devices[0], memory, GPUHAL_HANDLE_OPAQUE_FD, &handle, &offset), with,
                "export_memory");
    assert_int_equal(offset, 0);
    assert_int_equal(handle.kind, GPUHAL_HANDLE_OPAQUE_FD);
    assert_int_equal(fcntl((int)handle.as.os, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    return handle;
}

TEST(exported_memory_is_the_same_memory_on_another_device_and_lives_until_both_let_go)
{
    enum { BYTES = 100000 };
    bench with = begin_on("devices 2", 2);
    gpuhal_memory memory =
        allocate(&with, 0, (gpuhal_alloc){.bytes = BYTES, .export_kinds = 1u << GPUHAL_HANDLE_OPAQUE_FD});
    const gpuhal_handle handle = export_fd(&with, &memory);
    gpuhal_memory other = allocate(&with, 1, (gpuhal_alloc){.bytes = BYTES, .handle = handle});
    unsigned char *sent = bytes_of_seed(4, BYTES), *got = bytes_of_seed(5, BYTES);
    expect_fine(with.ops.write(with.devices[0], NULL, &memory, 0, sent, BYTES), &with, "write");
    with.ops.release(with.devices[0], &memory);
    expect_fine(with.ops.read(with.devices[1], NULL, got, &other, 0, BYTES), &with, "read");
    assert_memory_equal(got, sent, BYTES);
    assert_int_equal(fcntl((int)handle.as.os, F_GETFD), -1); /* the plugin took ownership of the descriptor */
    with.ops.release(with.devices[1], &other);
    free(sent);
    free(got);
    end_clean(&with);
}

TEST(memory_of_another_interface_comes_in_with_an_offset)
{
    bench with = begin_on("devices 1", 1);
    const int fd = memfd_create("other", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, 20480), 0);
    unsigned char *bytes = mmap(NULL, 20480, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), got[100] = {0};
    assert_ptr_not_equal(bytes, MAP_FAILED);
    memset(bytes, 0x11, 20480);
    memset(bytes + 4096, 0x22, 100);
    const gpuhal_handle handle = {.size = sizeof handle, .kind = GPUHAL_HANDLE_OPAQUE_FD, .as.os = fd};
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 12288, .handle = handle, .import_offset = 4096});
    expect_fine(with.ops.read(with.devices[0], NULL, got, &memory, 0, 100), &with, "read");
    assert_int_equal(got[0] + got[99], 2 * 0x22);
    expect_fine(with.ops.fill(with.devices[0], NULL, &memory, 100, 100, 0x33, 1), &with, "fill");
    assert_int_equal(bytes[4096 + 100] + bytes[4096 + 199], 2 * 0x33);
    assert_int_equal(bytes[4096 + 200], 0x11);
    with.ops.release(with.devices[0], &memory);
    munmap(bytes, 20480);
    end_clean(&with);
}

TEST(descriptors_that_are_no_memory_are_refused_and_stay_the_callers)
{
    bench with = begin_on("devices 1", 1);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    gpuhal_memory memory = {.size = sizeof memory};
    gpuhal_alloc alloc = {.size = sizeof alloc,
                          .bytes = 4096,
                          .handle = {.size = sizeof alloc.handle, .kind = GPUHAL_HANDLE_OPAQUE_FD, .as.os = ends[0]}};
    assert_int_equal(with.ops.allocate(with.devices[0], &alloc, &memory), GPUHAL_ERROR_INVALID_ARGUMENT);
    assert_true(fcntl(ends[0], F_GETFD) >= 0);
    alloc.handle.as.os = 4711;
    assert_int_equal(with.ops.allocate(with.devices[0], &alloc, &memory), GPUHAL_ERROR_INVALID_ARGUMENT);
    close(ends[0]);
    close(ends[1]);
    end_clean(&with);
}

TEST(registered_memory_is_page_locked_until_it_is_given_back)
{
#ifdef __SANITIZE_THREAD__
    SKIP_TEST("it writes on purpose to what the driver's thread is about to read");
#endif
    bench with = begin_on("devices 1; slow_us 200000", 1);
    unsigned char *own = aligned_alloc(4096, 8192), got[100] = {0};
    gpuhal_memory memory = allocate(&with, 0, (gpuhal_alloc){.bytes = 8192});
    gpuhal_plugin_queue *queue = queue_on(&with, 0);
    memset(own, 1, 8192);
    expect_fine(with.ops.register_host(with.devices[0], own, 8192), &with, "register_host");
    assert_int_equal(fake_report_get()->registrations, 1);
    expect_fine(with.ops.write(with.devices[0], queue, &memory, 0, own, 8192), &with, "write");
    memset(own, 2, 8192); /* page-locked, so the copy reads the bytes when it runs */
    finish(&with, queue);
    expect_fine(with.ops.read(with.devices[0], NULL, got, &memory, 0, 100), &with, "read");
    assert_int_equal(got[99], 2);
    expect_fine(with.ops.unregister_host(with.devices[0], own), &with, "unregister_host");
    expect_fine(with.ops.write(with.devices[0], queue, &memory, 0, own, 8192), &with, "write");
    memset(own, 3, 8192); /* staged, so the copy uses the bytes as they were at the call */
    finish(&with, queue);
    expect_fine(with.ops.read(with.devices[0], NULL, got, &memory, 0, 100), &with, "read");
    assert_int_equal(got[99], 2);
    with.ops.queues->queue_destroy(queue);
    with.ops.release(with.devices[0], &memory);
    free(own);
    end_clean(&with);
}

TEST(read_only_memory_is_imported_only_with_the_flag)
{
    /* the device has CUDA's flag for read-only memory */
    bench with = begin_on("devices 1" OF("; attribute 0 113 1", ""), 1);
    int file = memfd_create("weights", MFD_CLOEXEC);
    assert_int_equal(ftruncate(file, 65536), 0);
    assert_int_equal(pwrite(file, "weights", 8, 4096), 8);
    unsigned char *view = mmap(NULL, 65536, PROT_READ, MAP_SHARED, file, 0), got[8] = {0};
    gpuhal_alloc alloc = {
        .size = sizeof alloc,
        .bytes = 65536,
        .handle = {.size = sizeof alloc.handle, .kind = GPUHAL_HANDLE_HOST_POINTER, .as.pointer = view}};
    gpuhal_memory memory = {.size = sizeof memory};
    if (madvise(view, 4096, 22 /* MADV_POPULATE_READ */) == 0) {
        assert_true(with.ops.allocate(with.devices[0], &alloc, &memory) < 0);
    }
    alloc.flags = 1u << 31;
    assert_int_equal(with.ops.allocate(with.devices[0], &alloc, &memory), GPUHAL_ERROR_NOT_SUPPORTED);
    alloc.flags = GPUHAL_IMPORT_READ_ONLY;
    memory = allocate(&with, 0, alloc);
    gpuhal_memory copied = allocate(&with, 0, (gpuhal_alloc){.bytes = 8});
    expect_fine(with.ops.copy(with.devices[0], NULL, &copied, 0, &memory, 4096, 8), &with, "copy");
    expect_fine(with.ops.read(with.devices[0], NULL, got, &copied, 0, 8), &with, "read");
    assert_memory_equal(got, "weights", 8);
    with.ops.release(with.devices[0], &copied);
    with.ops.release(with.devices[0], &memory);
    munmap(view, 65536);
    close(file);
    end_clean(&with);
}

#include "test_main.h"
