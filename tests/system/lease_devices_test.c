/* Tests leases on devices of real drivers. Two programs fill the same devices. Each program leases more than half of a
 * device, so the programs take turns, and both finish with correct bytes. PoCL has 1 GiB here (POCL_MEMORY_LIMIT), so
 * two leases do not fit into its memory. On a device with more memory each lease takes all slots instead. */
#include "queues.h"

#include <gpuhal/schedule/lease.h>

#include <sys/mman.h>
#include <sys/wait.h>

/* Buffers of CHUNK bytes use up a lease. Only the first USED bytes of each buffer are written and compared. Checking
 * all bytes would take seconds and find no other errors. */
enum { PROGRAMS = 2, DEVICES = 3, ROUNDS = 2, CHUNK = 32 << 20, USED = 2 << 20, CHUNKS_MAX = 32 };
#define LARGE (UINT64_C(640) << 20)
#define SMALL (UINT64_C(96) << 20)
/* Enough time for all turns, even on a busy machine. */
#define DEADLINE_NS (5 * PATIENCE_NS)

/* The leases that all programs hold at present. The programs update this in shared memory. */
typedef struct shared {
    _Atomic uint32_t started;
    _Atomic uint64_t bytes[DEVICES];
    _Atomic uint32_t holders[DEVICES];
    _Atomic uint32_t turns[PROGRAMS], violations;
} shared;

typedef struct part {
    gpuhal *gpu;
    gpuhal_device *device;
    uint64_t total, bytes;
    uint32_t slots, number; /* number: index into the arrays in shared memory */
} part;

/* Opens each device in its own gpuhal object. In one object the devices would be interfaces of the same CPU, which is
 * leased as one device. */
static uint32_t open_devices(part parts[DEVICES])
{
    static const char *const selectors[DEVICES] = {"opencl:0", "opencl:1", "cpu:0"};
    uint32_t count = 0;
    for (uint32_t i = 0; i < DEVICES; i++) {
        const gpuhal_config config = {.size = sizeof config, .devices = selectors[i]};
        part *one = &parts[count];
        *one = (part){.number = i};
        if (gpuhal_open(&config, &one->gpu) != GPUHAL_OK) {
            continue;
        }
        one->device = gpuhal_device_at(one->gpu, 0);
        assert_ok(gpuhal_device_u64(one->device, GPUHAL_FACT_MEMORY_TOTAL_BYTES, &one->total));
        const bool by_bytes = one->total < 2 * LARGE;
        one->bytes = by_bytes ? LARGE : SMALL;
        one->slots = by_bytes ? 1 : GPUHAL_LEASE_ALL_SLOTS;
        count++;
    }
    return count;
}

static void count_in(shared *all, const part *one)
{
    const uint64_t bytes = atomic_fetch_add(&all->bytes[one->number], one->bytes) + one->bytes;
    const uint32_t before = atomic_fetch_add(&all->holders[one->number], 1);
    atomic_fetch_add(&all->violations, bytes > one->total || before > 0);
}

static void count_out(shared *all, const part *one)
{
    atomic_fetch_sub(&all->holders[one->number], 1);
    atomic_fetch_sub(&all->bytes[one->number], one->bytes);
}

static uint32_t allocate_all(const part *one, gpuhal_buffer *buffers[CHUNKS_MAX])
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = CHUNK};
    uint32_t count = 0;
    while (count < CHUNKS_MAX && gpuhal_buffer_create(one->device, &desc, &buffers[count]) == GPUHAL_OK) {
        count++;
    }
    assert_int_equal(count, one->bytes / CHUNK);
    assert_int_equal(gpuhal_last_error()->status, GPUHAL_ERROR_OUT_OF_MEMORY);
    return count;
}

static void expect_bytes(gpuhal_buffer *buffer, uint32_t pattern)
{
    static uint32_t back[USED / sizeof(uint32_t)];
    memset(back, 0, sizeof back);
    assert_ok(gpuhal_read(NULL, back, buffer, 0, USED));
    for (size_t i = 0; i < USED / sizeof *back; i++) {
        if (back[i] != pattern) {
            fail_msg("word %zu is %08x, not %08x", i, back[i], pattern);
        }
    }
}

static void fill_and_compare(const part *one, uint32_t program, uint32_t round)
{
    gpuhal_buffer *buffers[CHUNKS_MAX];
    const uint32_t count = allocate_all(one, buffers), half = (count + 1) / 2;
    const uint32_t pattern = (program + 1) << 24 | round << 16 | one->number << 8;
    for (uint32_t i = 0; i < half; i++) {
        assert_ok(gpuhal_fill(NULL, buffers[i], 0, USED, pattern | i, 4));
    }
    for (uint32_t i = half; i < count; i++) {
        assert_ok(gpuhal_copy(NULL, buffers[i], 0, buffers[i - half], 0, USED));
    }
    for (uint32_t i = 0; i < count; i++) {
        expect_bytes(buffers[i], pattern | i % half);
        gpuhal_buffer_release(buffers[i]);
    }
}

static void take_turn(shared *all, const part *one, uint32_t program, uint32_t round)
{
    const gpuhal_lease_part wanted = {.device = one->device, .bytes = one->bytes, .slots = one->slots};
    gpuhal_lease_desc desc = GPUHAL_INIT(gpuhal_lease_desc);
    gpuhal_lease *lease = NULL;
    desc.parts = &wanted;
    desc.part_count = 1;
    assert_ok(gpuhal_lease_acquire(one->gpu, &desc, DEADLINE_NS, &lease));
    count_in(all, one);
    fill_and_compare(one, program, round);
    count_out(all, one);
    gpuhal_lease_release(lease);
    atomic_fetch_add(&all->turns[program], 1);
}

static void shuffle(part parts[DEVICES], uint32_t count, unsigned *random)
{
    for (uint32_t i = count; i > 1; i--) {
        *random = *random * 1103515245u + 12345u;
        const uint32_t other = *random / 65536 % i;
        const part kept = parts[other];
        parts[other] = parts[i - 1];
        parts[i - 1] = kept;
    }
}

static void run_program(shared *all, uint32_t program)
{
    part parts[DEVICES];
    unsigned random = program * 7919u + 1;
    alarm(DEADLINE_NS / SECOND_NS);
    const uint32_t count = open_devices(parts);
    assert_true(count > 0);
    atomic_fetch_add(&all->started, 1);
    while (atomic_load(&all->started) < PROGRAMS) {
        pause_ms(1);
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        shuffle(parts, count, &random);
        for (uint32_t i = 0; i < count; i++) {
            take_turn(all, &parts[i], program, round);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        gpuhal_close(parts[i].gpu);
    }
    exit(0);
}

TEST(two_programs_that_fill_the_same_devices_under_leases_both_finish_with_their_bytes)
{
    char folder[512];
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/gpuhal-lease-XXXXXX", base && *base ? base : "/tmp");
    assert_non_null(mkdtemp(folder));
    assert_int_equal(setenv("GPUHAL_LEDGER", folder, 1), 0);
    shared *all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(all != MAP_FAILED);
    pid_t programs[PROGRAMS];
    bool good = true;
    fflush(NULL);
    for (uint32_t i = 0; i < PROGRAMS; i++) {
        programs[i] = fork();
        assert_true(programs[i] >= 0);
        if (programs[i] == 0) {
            run_program(all, i);
        }
    }
    for (uint32_t i = 0; i < PROGRAMS; i++) {
        int status = -1;
        assert_int_equal(waitpid(programs[i], &status, 0), programs[i]);
        good = good && status == 0;
    }
    char path[600];
    static const char *const files[] = {"ledger", "liveness", "."};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        (void)(i < 2 ? unlink(path) : rmdir(folder));
    }
    print_message("turns: %u and %u, with more held than there is: %u\n", all->turns[0], all->turns[1],
                  all->violations);
    assert_true(good);
    assert_true(all->turns[0] >= ROUNDS && all->turns[0] == all->turns[1]);
    assert_int_equal(all->violations, 0);
}

#include "test_main.h"
