/* Tests how the CUDA plugin page-locks the caller's memory, with the fake driver, in cases that exist only in CUDA. */
#include "bench.h"
#include "support/random.h"

#include <fcntl.h>
#include <sys/mman.h>

enum { FILE_BYTES = 65536 };

static void expect_registered(const void *machine)
{
    unsigned char *page = aligned_alloc(4096, 4096);
    bench with = begin_on(machine, 1);
    expect_fine(with.ops.register_host(with.devices[0], page, 4096), &with, "register_host");
    expect_fine(with.ops.unregister_host(with.devices[0], page), &with, "unregister_host");
    free(page);
    end_clean(&with);
}

/* Weight files are mapped read-only. The driver has a flag for such memory, but does not document which error code
 * means that the flag is required. */
TEST(read_only_memory_is_registered_even_if_the_drivers_first_call_fails)
{
    assert_true(passes_in_child(expect_registered, "devices 1; attribute 0 113 1; fail cuMemHostRegister_v2 1 1"));
    assert_true(passes_in_child(expect_registered, "devices 1; attribute 0 113 1; fail cuMemHostRegister_v2 1 304"));
    assert_true(passes_in_child(expect_registered, "devices 1; attribute 0 113 1; fail cuMemHostRegister_v2 1 800"));
    assert_true(passes_in_child(expect_registered, "devices 1; attribute 0 113 1; fail cuMemHostRegister_v2 1 801"));
}

typedef struct weights {
    int file;
    unsigned char *view;
} weights;

static weights map_weights(int rights)
{
    weights out = {.file = memfd_create("weights", MFD_CLOEXEC)};
    assert_int_equal(ftruncate(out.file, FILE_BYTES), 0);
    out.view = mmap(NULL, FILE_BYTES, rights, MAP_PRIVATE, out.file, 0);
    assert_true(out.view != MAP_FAILED);
    return out;
}

static void unmap_weights(const weights *own)
{
    munmap(own->view, FILE_BYTES);
    close(own->file);
}

static gpuhal_alloc import_of(void *memory, uint64_t bytes, uint32_t flags)
{
    return (gpuhal_alloc){.size = sizeof(gpuhal_alloc),
                          .bytes = bytes,
                          .handle = {.size = sizeof(gpuhal_handle),
                                     .kind = GPUHAL_HANDLE_HOST_POINTER,
                                     .as.pointer = memory},
                          .flags = flags};
}

TEST(a_device_without_the_flag_reads_private_memory_in_place_and_names_the_cure_for_other)
{
    bench with = begin_on("devices 1", 1);
    weights strict = map_weights(PROT_READ), writable = map_weights(PROT_READ | PROT_WRITE);
    gpuhal_memory memory = allocate(&with, 0, import_of(writable.view, FILE_BYTES, GPUHAL_IMPORT_READ_ONLY));
    with.ops.release(with.devices[0], &memory);
    if (madvise(strict.view, 4096, 22 /* MADV_POPULATE_READ: the fake needs it to see read-only pages */) == 0) {
        const gpuhal_alloc alloc = import_of(strict.view, FILE_BYTES, GPUHAL_IMPORT_READ_ONLY);
        memory = (gpuhal_memory){.size = sizeof memory};
        assert_int_equal(with.ops.allocate(with.devices[0], &alloc, &memory), GPUHAL_ERROR_NOT_SUPPORTED);
        (void)gpuhal_direct_failed(with.plugin, GPUHAL_ERROR_NOT_SUPPORTED, "import");
        expect_word(gpuhal_last_error()->sentence, "map it MAP_PRIVATE with PROT_WRITE");
    }
    unmap_weights(&strict);
    unmap_weights(&writable);
    end_clean(&with);
}

/* If a page of a private mapping is pinned for writing, it becomes a copy of the file's page. */
TEST(a_device_with_the_flag_makes_no_copy_of_a_private_mapping)
{
    bench with = begin_on("devices 1; attribute 0 113 1", 1);
    weights own = map_weights(PROT_READ | PROT_WRITE);
    gpuhal_memory memory = allocate(&with, 0, import_of(own.view, FILE_BYTES, GPUHAL_IMPORT_READ_ONLY));
    assert_int_equal(pwrite(own.file, "later", 6, 0), 6);
    assert_string_equal((char *)own.view, "later");
    with.ops.release(with.devices[0], &memory);
    unmap_weights(&own);
    end_clean(&with);
}

static void expect_bytes_across(const bench *with, const gpuhal_memory *large, uint64_t at)
{
    enum { HALF = 4096, BYTES = 2 * HALF };
    unsigned char *sent = bytes_of_seed(3, BYTES), *got = bytes_of_seed(4, BYTES);
    gpuhal_memory device = allocate(with, 0, (gpuhal_alloc){.bytes = BYTES});
    gpuhal_memory peer = allocate(with, 1, (gpuhal_alloc){.bytes = BYTES});
    gpuhal_plugin_queue *queue = queue_on(with, 0);
    unsigned char *host = (unsigned char *)large->host + at - HALF;
    memcpy(host, sent, BYTES);
    expect_fine(with->ops.copy(with->devices[0], NULL, &device, 0, large, at - HALF, BYTES), with, "copy");
    memset(host, 0, BYTES);
    expect_fine(with->ops.copy(with->devices[0], queue, large, at - HALF, &device, 0, BYTES), with, "copy back");
    finish(with, queue);
    assert_memory_equal(host, sent, BYTES);
    expect_fine(with->ops.peers->peer_copy(NULL, with->devices[1], &peer, 0, with->devices[0], large, at - HALF, BYTES),
                with, "peer_copy");
    expect_fine(with->ops.read(with->devices[1], NULL, got, &peer, 0, BYTES), with, "read");
    assert_memory_equal(got, sent, BYTES);
    const gpuhal_plugin_rect to = {.memory = &device, .row_pitch = 1000, .slice_pitch = BYTES},
                             from = {.memory = large, .offset = at - HALF, .row_pitch = 1000, .slice_pitch = BYTES};
    expect_fine(with->ops.fill(with->devices[0], NULL, &device, 0, BYTES, 0, 1), with, "fill");
    expect_fine(with->ops.copy_rect(with->devices[0], NULL, &to, &from, (const uint64_t[]){500, 8, 1}), with, "rect");
    expect_fine(with->ops.read(with->devices[0], NULL, got, &device, 0, BYTES), with, "read");
    for (unsigned row = 0; row < 8; row++) {
        assert_memory_equal(got + (size_t)1000 * row, sent + (size_t)1000 * row, 500);
    }
    expect_fine(with->ops.fill(with->devices[0], queue, large, at - 5, 12, 0x04030201, 4), with, "fill");
    finish(with, queue);
    assert_memory_equal(host + HALF - 5, "\1\2\3\4\1\2\3\4\1\2\3\4", 12);
    with->ops.queues->queue_destroy(queue);
    with->ops.release(with->devices[0], &device);
    with->ops.release(with->devices[1], &peer);
    free(sent);
    free(got);
}

TEST(more_than_the_driver_locks_at_once_is_locked_in_pieces_and_copies_cross_them)
{
#ifdef __SANITIZE_THREAD__
    SKIP_TEST("it keeps a record of every page");
#endif
    const uint64_t bytes = UINT64_C(513) << 30, piece = UINT64_C(256) << 30;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        SKIP_TEST("no 513 GiB of addresses");
    }
    bench with = begin_on("devices 2", 2);
    gpuhal_memory large = allocate(&with, 0, import_of(memory, bytes, 0));
    assert_true(fake_report_get()->registrations >= 3);
    expect_bytes_across(&with, &large, piece - (uintptr_t)memory % piece);
    with.ops.release(with.devices[0], &large);
    assert_int_equal(fake_report_get()->registrations, 0);
    munmap(memory, bytes);
    end_clean(&with);
}

/* The driver refuses the second chunk. */
TEST(a_piece_that_is_refused_leaves_none_of_the_others_locked)
{
#ifdef __SANITIZE_THREAD__
    SKIP_TEST("it keeps a record of every page");
#endif
    const uint64_t bytes = UINT64_C(513) << 30;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        SKIP_TEST("no 513 GiB of addresses");
    }
    bench with = begin_on("devices 1; fail cuMemHostRegister_v2 3 2", 1);
    const gpuhal_alloc alloc = import_of(memory, bytes, 0);
    gpuhal_memory large = {.size = sizeof large};
    assert_int_equal(with.ops.allocate(with.devices[0], &alloc, &large), GPUHAL_ERROR_HOST_MEMORY);
    assert_int_equal(calls_of("cuMemHostRegister_v2"), 3);
    assert_int_equal(fake_report_get()->registrations, 0);
    munmap(memory, bytes);
    end_clean(&with);
}

#include "test_main.h"
