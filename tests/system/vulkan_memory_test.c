/* Tests which memory the Vulkan plugin chooses for each kind. The fake driver (tests/fakes/vulkan) has the memory types
 * and heaps of real devices, from the reports on vulkan.gpuinfo.org, with rounded sizes. */
#include "direct_vulkan.h"
#include "fake.h"
#include "support/process.h"

enum { BYTES = 4096 };

/* `wanted` is a subset of "dvch": device local, host visible, coherent, cached. "-" means that the kind is not
 * available. */
static void expect_kind(const opening *o, gpuhal_memory_kind kind, const char *wanted)
{
    gpuhal_memory memory;
    char got[8] = "-";
    gpuhal_status status = allocate_direct(o, kind, BYTES, &memory);
    if (status == GPUHAL_OK) {
        snprintf(got, sizeof got, "%s%s%s%s", memory.flags & GPUHAL_MEMORY_DEVICE_LOCAL ? "d" : "",
                 memory.host ? "v" : "", memory.flags & GPUHAL_MEMORY_HOST_COHERENT ? "c" : "",
                 memory.flags & GPUHAL_MEMORY_HOST_CACHED ? "h" : "");
    } else {
        assert_int_equal(status, GPUHAL_ERROR_NOT_SUPPORTED);
    }
    release_direct(o, &memory);
    if (strcmp(got, wanted) != 0) {
        fail_msg("kind %u is \"%s\"; wanted \"%s\"", kind, got, wanted);
    }
}

/* A device from the reports, and the memory type for each kind: device, upload, readback, mapped. */
typedef struct machine {
    const char *name, *script, *kinds[4];
} machine;

static void expect_kinds(const void *what)
{
    static const gpuhal_memory_kind kinds[] = {GPUHAL_MEMORY_DEVICE, GPUHAL_MEMORY_UPLOAD, GPUHAL_MEMORY_READBACK,
                                               GPUHAL_MEMORY_DEVICE_MAPPED};
    const machine *one = what;
    const fake_vulkan fake = fake_vulkan_script(one->script);
    opening o;
    assert_ok(open_direct(&o));
    for (size_t k = 0; k < 4; k++) {
        expect_kind(&o, kinds[k], one->kinds[k]);
    }
    o.plugin->close(o.device);
    fake_vulkan_expect_clean(&fake);
}

TEST(each_kind_of_memory_gets_the_best_type_of_known_devices)
{
    static const machine machines[] = {
        {"nvidia with a small window for the host",
         "discrete;vendor=0x10de;heaps=d8G,24G,d246M;types=@1,d@0,vc@1,vch@1,dvc@2",
         {"d", "vc", "vch", "dvc"}},
        {"nvidia with drivers that list every use of memory",
         "discrete;vendor=0x10de;heaps=d8G,24G,d246M;types=@1,@1,@1,@1,@1,@1,@1,d@0,d@0,vc@1,vch@1,dvc@2",
         {"d", "vc", "vch", "dvc"}},
        {"nvidia whose whole memory the host sees",
         "discrete;vendor=0x10de;heaps=d10G,24G;types=@1,d@0,vc@1,vch@1,dvc@0",
         {"d", "vc", "vch", "dvc"}},
        {"amd with a small window for the host",
         "discrete;vendor=0x1002;heaps=d7936M,16G,d256M;types=d@0,vc@1,dvc@2,vch@1,dau@0,vcau@1,dvcau@2,vchau@1",
         {"d", "vc", "vch", "dvc"}},
        {"amd whose whole memory the host sees",
         "discrete;vendor=0x1002;heaps=16G,d8G;types=d@1,vc@0,dvc@1,vch@0,dau@1,vcau@0,dvcau@1,vchau@0",
         {"d", "vc", "vch", "dvc"}},
        {"amd processor that calls a little memory its own",
         "integrated;vendor=0x1002;heaps=d512M,15G;types=d@0,vc@1,dvc@0,vch@1",
         {"dvc", "vc", "vch", "dvc"}},
        {"intel processor with a shared cache",
         "integrated;vendor=0x8086;heaps=d15G;types=dvch@0",
         {"dvch", "dvch", "dvch", "dvch"}},
        {"intel processor without a shared cache",
         "integrated;vendor=0x8086;heaps=d6G;types=dvc@0,dvh@0",
         {"dvc", "dvc", "dvh", "dvc"}},
        {"intel card whose whole memory the host sees",
         "discrete;vendor=0x8086;heaps=d16G,16G;types=d@0,vch@1,dvc@0",
         {"d", "vch", "vch", "dvc"}},
        {"arm mali with coherent caches",
         "integrated;vendor=0x13b5;heaps=d7G;types=dvc@0,dvch@0,dl@0",
         {"dvch", "dvc", "dvch", "dvch"}},
        {"arm mali without coherent caches",
         "integrated;vendor=0x13b5;heaps=d3G;types=dvc@0,dvh@0,dl@0",
         {"dvc", "dvc", "dvh", "dvc"}},
        {"qualcomm adreno",
         "integrated;vendor=0x5143;heaps=d5G;types=d@0,dvc@0,dvh@0,dvch@0,dp@0,dl@0",
         {"dvch", "dvc", "dvch", "dvch"}},
        {"apple processor under moltenvk",
         "integrated;vendor=0x106b;heaps=d10G;types=d@0,dvch@0,dl@0",
         {"dvch", "dvch", "dvch", "dvch"}},
        {"amd card under moltenvk whose managed memory is not coherent",
         "discrete;vendor=0x1002;heaps=d4G,32G;types=d@0,vch@1,dvh@0",
         {"d", "vch", "vch", "-"}},
        {"lavapipe", "cpu;vendor=0x10005;heaps=d8G;types=dvch@0", {"dvch", "dvch", "dvch", "dvch"}},
    };
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        if (!passes_in_child(expect_kinds, &machines[i])) {
            fail_msg("%s", machines[i].name);
        }
    }
}

/* ---- heaps */

static void expect_total(const char *script, uint64_t wanted)
{
    session s = begin_session(script);
    uint64_t total = 0;
    assert_ok(gpuhal_device_u64(s.device, GPUHAL_FACT_MEMORY_TOTAL_BYTES, &total));
    assert_int_equal(total, wanted);
    end_session(&s);
}

TEST(a_window_onto_memory_is_not_counted_again)
{
    expect_total("discrete;vendor=0x10de;heaps=d8G,24G,d246M;types=@1,d@0,vc@1,vch@1,dvc@2", UINT64_C(8) << 30);
}

TEST(the_two_parts_of_a_cards_memory_are_added)
{
    expect_total("discrete;vendor=0x1002;heaps=d7936M,16G,d256M;types=d@0,vc@1,dvc@2,vch@1", UINT64_C(8) << 30);
}

TEST(an_integrated_gpu_counts_and_uses_both_heaps_of_its_one_memory)
{
    session s = begin_session("integrated;heaps=d16M,512M;types=d@0,vc@1,dvc@0,vch@1");
    gpuhal_buffer *first = buffer_or_fail(s.device, GPUHAL_MEMORY_DEVICE, 15 << 20), *second = NULL, *large = NULL;
    uint64_t total = 0;
    assert_ok(gpuhal_device_u64(s.device, GPUHAL_FACT_MEMORY_TOTAL_BYTES, &total));
    assert_int_equal(total, 512 << 20);
    assert_ok(try_buffer(s.device, GPUHAL_MEMORY_DEVICE_MAPPED, 8 << 20, &second));
    assert_ok(try_buffer(s.device, GPUHAL_MEMORY_DEVICE, 64 << 20, &large));
    assert_ok(gpuhal_fill(NULL, large, 1, 3, 7, 1));
    gpuhal_buffer_release(first);
    gpuhal_buffer_release(second);
    gpuhal_buffer_release(large);
    end_session(&s);
}

TEST(more_than_the_heap_of_a_kind_is_too_large_and_the_driver_is_not_asked)
{
    session s = begin_session("discrete;heaps=d4M,64M;types=d@0,vc@1,vch@1");
    gpuhal_buffer *buffer = NULL;
    expect_error(try_buffer(s.device, GPUHAL_MEMORY_DEVICE, 5 << 20, &buffer), GPUHAL_ERROR_TOO_LARGE, "4194304");
    assert_int_equal(s.fake.calls("vkAllocateMemory"), 0);
    assert_ok(try_buffer(s.device, GPUHAL_MEMORY_UPLOAD, 5 << 20, &buffer));
    gpuhal_buffer_release(buffer);
    end_session(&s);
}

/* The first heap is full at present, and the second one is too small for the request. Memory may become free later, so
 * the status must not be TOO_LARGE. */
TEST(a_full_heap_is_out_of_memory_though_another_one_is_smaller)
{
    session s = begin_session("discrete;heaps=d4M,8M;types=d@0,vc@1,vch@1,dvc@0");
    gpuhal_buffer *first = buffer_or_fail(s.device, GPUHAL_MEMORY_UPLOAD, 6 << 20), *second = NULL;
    expect_error(try_buffer(s.device, GPUHAL_MEMORY_UPLOAD, 5 << 20, &second), GPUHAL_ERROR_OUT_OF_MEMORY,
                 "vkAllocateMemory");
    assert_ok(try_buffer(s.device, GPUHAL_MEMORY_UPLOAD, 3 << 20, &second));
    gpuhal_buffer_release(first);
    gpuhal_buffer_release(second);
    end_session(&s);
}

/* Allocates exactly all bytes of a 4 MiB heap, also with an alignment larger than Vulkan's, which takes additional
 * bytes. A request that is larger by one unit must fail without a call to the driver. */
TEST(a_heap_is_given_out_to_its_last_byte_and_no_further)
{
    enum { HEAP = 4 << 20, ALIGNMENT = 64 << 10, UNIT = 4096 };
    static const struct {
        uint64_t bytes, alignment;
        gpuhal_status status;
    } cases[] = {{HEAP, 0, GPUHAL_OK},
                 {HEAP + UNIT, 0, GPUHAL_ERROR_TOO_LARGE},
                 {HEAP - ALIGNMENT, ALIGNMENT, GPUHAL_OK},
                 {HEAP - ALIGNMENT + UNIT, ALIGNMENT, GPUHAL_ERROR_TOO_LARGE}};
    const fake_vulkan fake = fake_vulkan_script("discrete;heaps=d64M,4M;types=d@0,vch@1");
    opening o;
    assert_ok(open_direct(&o));
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const gpuhal_alloc alloc = {.size = sizeof alloc,
                                    .kind = GPUHAL_MEMORY_UPLOAD,
                                    .bytes = cases[c].bytes,
                                    .alignment = cases[c].alignment};
        gpuhal_memory memory = {.size = sizeof memory};
        const unsigned asked = fake.calls("vkAllocateMemory");
        assert_int_equal(o.ops.allocate(o.device, &alloc, &memory), cases[c].status);
        assert_int_equal(fake.calls("vkAllocateMemory") - asked, cases[c].status == GPUHAL_OK);
        if (cases[c].status == GPUHAL_OK) {
            memset(memory.host, 1, cases[c].bytes);
            o.ops.release(o.device, &memory);
        }
    }
    o.plugin->close(o.device);
    fake_vulkan_expect_clean(&fake);
}

/* The driver refuses the memory once. The call must fail, the caller must still own an imported object, and the next
 * attempt must succeed. */
static void expect_refusal_then_success(const opening *o, const fake_vulkan *fake, const gpuhal_alloc *alloc)
{
    gpuhal_memory memory = {.size = sizeof memory};
    fake->fail_call("vkAllocateMemory", 1, -2);
    assert_int_equal(o->ops.allocate(o->device, alloc, &memory), GPUHAL_ERROR_OUT_OF_MEMORY);
    assert_null(memory.object);
    assert_null(memory.host);
    assert_int_equal(o->ops.allocate(o->device, alloc, &memory), GPUHAL_OK);
    assert_non_null(memory.object);
    o->ops.release(o->device, &memory);
}

TEST(an_import_that_the_driver_has_no_memory_for_hands_out_nothing_and_works_later)
{
    const fake_vulkan fake = fake_vulkan_script("discrete");
    char *host = aligned_alloc(4096, BYTES);
    opening o;
    assert_non_null(host);
    assert_ok(open_direct(&o));
    expect_refusal_then_success(&o, &fake, &(gpuhal_alloc){
        .size = sizeof(gpuhal_alloc), .bytes = BYTES,
        .handle = {.size = sizeof(gpuhal_handle), .kind = GPUHAL_HANDLE_HOST_POINTER, .as.pointer = host}});
    gpuhal_alloc shared = {.size = sizeof shared, .bytes = BYTES, .export_kinds = 1u << GPUHAL_HANDLE_OPAQUE_FD};
    gpuhal_memory memory = {.size = sizeof memory};
    uint64_t offset = 0;
    shared.handle = (gpuhal_handle){.size = sizeof shared.handle};
    assert_int_equal(o.ops.allocate(o.device, &shared, &memory), GPUHAL_OK);
    assert_int_equal(o.ops.export_memory(o.device, &memory, GPUHAL_HANDLE_OPAQUE_FD, &shared.handle, &offset),
                     GPUHAL_OK);
    expect_refusal_then_success(&o, &fake, &shared);
    o.ops.release(o.device, &memory);
    o.plugin->close(o.device);
    fake_vulkan_expect_clean(&fake);
    free(host);
}

/* ---- atoms of non-coherent memory */

/* The device writes all bytes, and the host writes a range, which in most cases does not cover whole atoms. The other
 * bytes must keep the device's values. The test calls the slots, because the public API synchronizes after each
 * write. */
TEST(host_writes_within_an_atom_leave_the_bytes_beside_them)
{
    enum { SIZE = 256 };
    static const struct {
        uint64_t offset, bytes;
    } parts[] = {{10, 10}, {60, 8}, {64, 64}, {50, 100}, {128, 70}, {255, 1}, {0, SIZE}};
    const fake_vulkan fake = fake_vulkan_script("discrete;types=d@0,vc@1,vh@1");
    opening o;
    assert_ok(open_direct(&o));
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        gpuhal_memory memory;
        unsigned char wanted[SIZE];
        memset(wanted, 0x11, SIZE);
        memset(wanted + parts[p].offset, 0x22, parts[p].bytes);
        assert_int_equal(allocate_direct(&o, GPUHAL_MEMORY_READBACK, SIZE, &memory), GPUHAL_OK);
        assert_int_equal(o.ops.fill(o.device, NULL, &memory, 0, SIZE, 0x11, 1), GPUHAL_OK);
        memset((char *)memory.host + parts[p].offset, 0x22, parts[p].bytes);
        assert_int_equal(o.ops.memory_flush(o.device, &memory, parts[p].offset, parts[p].bytes), GPUHAL_OK);
        assert_int_equal(o.ops.memory_invalidate(o.device, &memory, 0, SIZE), GPUHAL_OK);
        assert_memory_equal(memory.host, wanted, SIZE);
        release_direct(&o, &memory);
    }
    o.plugin->close(o.device);
    fake_vulkan_expect_clean(&fake);
}

#include "test_main.h"
