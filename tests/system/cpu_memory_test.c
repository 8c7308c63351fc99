/* Tests the CPU plugin's allocator on a system with fragmented memory, which the test simulates with its own madvise()
 * and clock. Also tests the mappings that the plugin makes for shared memory. */
#include "test.h"

#include "../../plugins/cpu/device.h"

#include <gpuhal/plugin.h>

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
enum { HUGE_PAGE = 2 << 20, BYTES = 64 << 20, PAGES = BYTES / HUGE_PAGE };

/* The effect of madvise() calls on each huge page of the test's only mapping. */
static struct {
    uint64_t now_ns, slow_ns; /* slow_ns is the time to find a huge page */
    uintptr_t start;
    bool wished[2 * PAGES], found[2 * PAGES]; /* requested with MADV_HUGEPAGE; populated after this request */
    unsigned populated, sought;
    bool refused;
} machine;

/* Must be visible, because the linker also redirects the calls in the sanitizers' libraries to these functions. */
int __real_madvise(void *start, size_t bytes, int advice);
__attribute__((visibility("default"))) int __wrap_madvise(void *start, size_t bytes, int advice);
__attribute__((visibility("default"))) int __wrap_clock_gettime(clockid_t clock, struct timespec *out_now);

int __wrap_madvise(void *start, size_t bytes, int advice)
{
    machine.start = machine.start ? machine.start : (uintptr_t)start;
    const size_t first = ((uintptr_t)start - machine.start) / HUGE_PAGE, end = first + bytes / HUGE_PAGE;
    for (size_t page = first; page < end && page < 2 * PAGES; page++) {
        machine.wished[page] = machine.wished[page] || advice == MADV_HUGEPAGE;
        if (advice == MADV_POPULATE_WRITE) {
            machine.populated++;
            machine.found[page] = machine.wished[page];
            machine.sought += machine.wished[page];
            machine.now_ns += machine.wished[page] ? machine.slow_ns : 0;
        }
    }
    const int result = __real_madvise(start, bytes, advice);
    machine.refused = machine.refused || (result != 0 && advice == MADV_HUGEPAGE);
    return result;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *out_now)
{
    (void)clock;
    *out_now = (struct timespec){.tv_sec = (time_t)(machine.now_ns / 1000000000u),
                                 .tv_nsec = (long)(machine.now_ns % 1000000000u)};
    return 0;
}

static void allocate(uint64_t slow_ns)
{
    gpuhal_cpu_entry entry = {.total = UINT64_C(1) << 40};
    gpuhal_plugin_device device = {.entry = &entry};
    gpuhal_ops ops = {.size = sizeof ops};
    const gpuhal_alloc alloc = {.size = sizeof alloc, .bytes = BYTES};
    gpuhal_memory memory = {.size = sizeof memory};
    memset(&machine, 0, sizeof machine);
    machine.slow_ns = slow_ns;
    gpuhal_cpu_describe_memory(&ops);
    assert_int_equal(ops.allocate(&device, &alloc, &memory), GPUHAL_OK);
    unsigned char resident[BYTES / 4096];
    const size_t pages = BYTES / (size_t)sysconf(_SC_PAGESIZE);
    assert_int_equal(mincore(memory.host, BYTES, resident), 0);
    for (size_t page = 0; page < pages; page++) {
        assert_true(resident[page] & 1);
    }
    assert_int_equal(machine.populated, PAGES);
    ops.release(&device, &memory);
    if (machine.refused) {
        SKIP_TEST("this kernel has no huge pages to ask for");
    }
}

TEST(memory_gets_huge_pages_if_the_system_has_them_ready)
{
    allocate(500000);
    assert_int_equal(machine.sought, PAGES);
}

/* 35 ms per huge page was measured on a machine where an allocation of 214 MiB took 3.8 s. */
TEST(slow_huge_pages_do_not_delay_an_allocation_and_may_come_later)
{
    allocate(35000000);
    assert_true(machine.now_ns <= 100000000);
    assert_true(machine.sought > 0);
    for (unsigned page = 0; page < PAGES; page++) {
        assert_true(machine.wished[page]);
    }
}

TEST(huge_pages_are_asked_for_until_one_is_slow)
{
    allocate(20000000); /* a chunk of two pages takes less than the limit of 50 ms */
    assert_int_equal(machine.sought, PAGES);
}

/* ---- shared memory */

/* Returns the number of pages that this process has mapped. Avoids stdio, whose buffer would be counted too. */
static uint64_t pages_mapped(void)
{
    char text[128] = "";
    int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    assert_true(file >= 0 && read(file, text, sizeof text - 1) > 0);
    assert_int_equal(close(file), 0);
    return strtoull(text, NULL, 10);
}

/* Stores the number of additional mapped pages while memory of this alignment exists, and after its release. */
static void share_aligned(uint64_t pages, uint64_t alignment, uint64_t *out_taken, uint64_t *out_left)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), before = pages_mapped();
    gpuhal_cpu_entry entry = {.total = UINT64_C(1) << 40};
    gpuhal_plugin_device device = {.entry = &entry};
    gpuhal_ops ops = {.size = sizeof ops};
    const gpuhal_alloc alloc = {.size = sizeof alloc,
                                .bytes = pages * page,
                                .alignment = alignment,
                                .export_kinds = 1u << GPUHAL_HANDLE_OPAQUE_FD};
    gpuhal_memory memory = {.size = sizeof memory};
    gpuhal_cpu_describe_memory(&ops);
    assert_int_equal(ops.allocate(&device, &alloc, &memory), GPUHAL_OK);
    *out_taken = pages_mapped() - before;
    assert_int_equal((uintptr_t)memory.host % alignment, 0);
    memset(memory.host, 1, alloc.bytes);
    ops.release(&device, &memory);
    *out_left = pages_mapped() - before;
}

/* The allocator must unmap the address space that it reserved only for the alignment, and nothing else. */
TEST(shared_memory_of_any_alignment_takes_the_address_space_of_its_bytes_alone)
{
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t taken = 0, left = 0;
    share_aligned(3, 64 * page, &taken, &left); /* in the first call the C library makes mappings too */
    for (uint64_t alignment = 2 * page; alignment <= 1024 * page; alignment *= 2) {
        for (uint64_t pages = 1; pages <= 3; pages++) {
            share_aligned(pages, alignment, &taken, &left);
            assert_int_equal(taken, pages);
            assert_int_equal(left, 0);
        }
    }
}

#include "test_main.h"
