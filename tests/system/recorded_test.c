/* Tests records of links and of failing devices, and their effect on the next program, with a vendor's fake. Each
 * gpuhal object stands for a separate program, because two gpuhal objects share only the registry on the disk. */
#include "own_registry.h"
#include "support/random.h"
#include "warnings.h"

#include <sys/wait.h>

#define PEER_COPY CALLED(MemcpyPeerAsync)
#define LOSES     CALLED(MemsetD8Async) " 1 719"

enum { BYTES = 100001 };

static uint64_t link_number(gpuhal_device *from, gpuhal_device *to, gpuhal_key key)
{
    uint64_t value = 0;
    if (gpuhal_link_u64(from, to, key, &value)) {
        fail_msg("%s", gpuhal_last_error()->sentence);
    }
    return value;
}

static gpuhal_path copy_exactly(gpuhal_device *from_device, gpuhal_device *to_device)
{
    unsigned char *sent = bytes_of_seed(7, BYTES), *got = bytes_of_seed(8, BYTES);
    gpuhal_buffer *from = buffer_or_fail(from_device, GPUHAL_MEMORY_DEVICE, BYTES);
    gpuhal_buffer *to = buffer_or_fail(to_device, GPUHAL_MEMORY_DEVICE, BYTES);
    gpuhal_path path = 0;
    assert_ok(gpuhal_write(NULL, from, 0, sent, BYTES));
    assert_ok(gpuhal_copy(NULL, to, 0, from, 0, BYTES));
    assert_ok(gpuhal_copy_path(to, from, &path));
    assert_ok(gpuhal_read(NULL, got, to, 0, BYTES));
    assert_memory_equal(got, sent, BYTES);
    gpuhal_buffer_release(from);
    gpuhal_buffer_release(to);
    free(sent);
    free(got);
    return path;
}

/* ---- links */

TEST(a_link_that_was_found_broken_is_not_tried_by_the_next_program_until_verified)
{
    use_machine("devices 2; link 0 1 " OWN_LINK "; silent 0 1");
    use_registry();
    warnings said = {0}, later = {0};
    gpuhal *gpu = open_listening(BACKEND, &said);
    assert_int_equal(copy_exactly(select_or_fail(gpu, BACKEND ":0"), select_or_fail(gpu, BACKEND ":1")),
                     GPUHAL_PATH_STAGED);
    gpuhal_close(gpu);
    gpuhal_view *view = view_or_fail();
    gpuhal_link_record link = {.size = sizeof link};
    assert_ok(gpuhal_view_get(view, GPUHAL_RECORD_REGISTRY_LINK, 0, &link));
    assert_int_equal(link.verified, 0);
    assert_true(link.tried > 0);
    expect_word(link.reason, "bytes are wrong");
    assert_true(*link.from_driver != 0);
    gpuhal_view_release(view);

    gpu = open_listening(BACKEND, &later);
    gpuhal_device *one = select_or_fail(gpu, BACKEND ":0"), *other = select_or_fail(gpu, BACKEND ":1");
    const uint64_t before = calls_of(PEER_COPY);
    assert_int_equal(link_number(one, other, GPUHAL_LINK_VERIFIED), 0);
    assert_int_equal(copy_exactly(one, other), GPUHAL_PATH_STAGED);
    assert_int_equal(copy_exactly(one, other), GPUHAL_PATH_STAGED);
    assert_int_equal(calls_of(PEER_COPY), before);
    assert_int_equal(later.count, 1);
    expect_word(later.last, "the link failed before, with the same drivers");
    expect_word(later.last, "from " BACKEND ":0 to " BACKEND ":1 take another path");
    assert_int_equal(gpuhal_link_verify(one, other), GPUHAL_ERROR_DRIVER);
    assert_true(calls_of(PEER_COPY) > before);
    expect_word(gpuhal_last_error()->sentence, BACKEND ":1 can access memory of " BACKEND ":0");
    close_clean(gpu);
}

/* Runs in another process, because a fake reads its machine once per process. */
static void in_another_program(const char *machine, void (*act)(gpuhal_device *one, gpuhal_device *other))
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        warnings said = {0};
        use_machine(machine);
        gpuhal *gpu = open_listening(BACKEND, &said);
        act(select_or_fail(gpu, BACKEND ":0"), select_or_fail(gpu, BACKEND ":1"));
        gpuhal_close(gpu);
        expect_clean();
        _exit(0);
    }
    int state = 0;
    assert_int_equal(waitpid(child, &state, 0), child);
    assert_true(WIFEXITED(state));
    assert_int_equal(WEXITSTATUS(state), 0);
}

static void find_broken(gpuhal_device *one, gpuhal_device *other)
{
    assert_int_equal(copy_exactly(one, other), GPUHAL_PATH_STAGED);
}

static void verify_well(gpuhal_device *one, gpuhal_device *other)
{
    assert_int_equal(link_number(one, other, GPUHAL_LINK_VERIFIED), 0);
    assert_ok(gpuhal_link_verify(one, other));
    assert_int_equal(link_number(one, other, GPUHAL_LINK_PATH), GPUHAL_PATH_PEER);
}

static void expect_peer(gpuhal_device *one, gpuhal_device *other)
{
    assert_int_equal(link_number(one, other, GPUHAL_LINK_VERIFIED), 1);
    assert_int_equal(copy_exactly(one, other), GPUHAL_PATH_PEER);
}

TEST(a_link_that_was_mended_is_used_again_once_it_was_verified)
{
    use_registry();
    in_another_program("devices 2; link 0 1 " OWN_LINK "; silent 0 1", find_broken);
    in_another_program("devices 2; link 0 1 " OWN_LINK, find_broken);
    in_another_program("devices 2; link 0 1 " OWN_LINK, verify_well);
    in_another_program("devices 2; link 0 1 " OWN_LINK, expect_peer);
}

TEST(figures_of_a_link_are_reported_by_the_next_program_without_opening_a_device)
{
    static const gpuhal_key keys[] = {GPUHAL_LINK_VERIFIED, GPUHAL_LINK_PATH, GPUHAL_LINK_MEASURED_BYTES_PER_SECOND,
                                      GPUHAL_LINK_MEASURED_LATENCY_NS, GPUHAL_LINK_TRIED_SECONDS};
    uint64_t measured[5];
    use_machine("devices 2; link 0 1 " OWN_LINK);
    use_registry();
    warnings said = {0};
    gpuhal *gpu = open_listening(BACKEND, &said);
    gpuhal_device *one = select_or_fail(gpu, BACKEND ":0"), *other = select_or_fail(gpu, BACKEND ":1");
    assert_ok(gpuhal_link_verify(one, other));
    for (size_t i = 0; i < 5; i++) {
        measured[i] = link_number(one, other, keys[i]);
        assert_true(measured[i] > 0);
    }
    gpuhal_close(gpu);
    const uint64_t opened = fake_report_get()->contexts_created;

    gpu = open_listening(BACKEND, &said);
    one = select_or_fail(gpu, BACKEND ":0");
    other = select_or_fail(gpu, BACKEND ":1");
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(link_number(one, other, keys[i]), measured[i]);
        assert_int_equal(gpuhal_link_missing(other, one, keys[i], NULL), GPUHAL_MISSING_NOT_READ);
    }
    assert_int_equal(fake_report_get()->contexts_created, opened);
    assert_int_equal(said.count, 0);
    close_clean(gpu);
}

/* ---- faults */

/* Allocates until the device has no memory left. Then makes `more` further attempts, which must fail. */
static void fill_up(gpuhal_device *device, gpuhal_buffer *hogs[64], unsigned more)
{
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 1u << 20};
    size_t count = 0;
    while (count < 63 && gpuhal_buffer_create(device, &desc, &hogs[count]) == GPUHAL_OK) {
        count++;
    }
    assert_true(count > 0 && count < 63);
    for (unsigned i = 0; i < more; i++) {
        gpuhal_buffer *none = NULL;
        assert_int_equal(gpuhal_buffer_create(device, &desc, &none), GPUHAL_ERROR_OUT_OF_MEMORY);
    }
}

TEST(a_device_that_runs_out_of_memory_is_recorded_with_a_count)
{
    use_machine("devices 1; memory * 8M");
    use_registry();
    for (unsigned program = 0; program < 2; program++) {
        warnings said = {0};
        gpuhal *gpu = open_listening(BACKEND, &said);
        gpuhal_device *device = select_or_fail(gpu, BACKEND ":0");
        gpuhal_buffer *hogs[64] = {NULL};
        fill_up(device, hogs, 4);
        const uint32_t iface = interface_of(device).number;
        assert_true(iface > 0);
        for (size_t i = 0; i < 64; i++) {
            gpuhal_buffer_release(hogs[i]);
        }
        gpuhal_close(gpu);
        gpuhal_view *view = view_or_fail();
        const gpuhal_fault_record fault = find_fault(view, "out_of_memory");
        assert_int_equal(fault.count, 5 * (program + 1));
        assert_int_equal(fault.interface_number, iface);
        expect_word(fault.detail, "allocating 1048576 bytes");
        assert_true(*fault.driver_version != 0 && fault.first > 0 && fault.last >= fault.first);
        gpuhal_view_release(view);
    }
    expect_clean();
}

TEST(a_limit_that_the_program_set_is_no_fault_of_the_device)
{
    use_machine("devices 1");
    use_registry();
    warnings said = {0};
    gpuhal *gpu = open_listening(BACKEND, &said);
    gpuhal_device *device = select_or_fail(gpu, BACKEND ":0");
    const gpuhal_buffer_desc desc = {.size = sizeof desc, .bytes = 1u << 20};
    gpuhal_buffer *none = NULL;
    assert_ok(gpuhal_device_limit_memory(device, 4096));
    assert_int_equal(gpuhal_buffer_create(device, &desc, &none), GPUHAL_ERROR_OUT_OF_MEMORY);
    gpuhal_close(gpu);
    gpuhal_view *view = view_or_fail();
    assert_int_equal(find_fault(view, "out_of_memory").count, 0);
    gpuhal_view_release(view);
    expect_clean();
}

/* Fills a buffer, and the driver reports that the device is lost. Returns the open gpuhal object. */
static gpuhal *lose_device(warnings *said)
{
    gpuhal *gpu = open_listening(BACKEND, said);
    gpuhal_device *device = select_or_fail(gpu, BACKEND ":0");
    gpuhal_buffer *buffer = buffer_or_fail(device, GPUHAL_MEMORY_DEVICE, 4096);
    assert_int_equal(gpuhal_fill(NULL, buffer, 0, 4096, 1, 1), GPUHAL_ERROR_DEVICE_LOST);
    assert_int_equal(gpuhal_fill(NULL, buffer, 0, 4096, 1, 1), GPUHAL_ERROR_DEVICE_LOST);
    gpuhal_buffer_release(buffer);
    return gpu;
}

TEST(a_lost_device_is_on_the_disk_while_the_program_goes_on)
{
    use_machine("devices 1; lose 0 " LOSES);
    use_registry();
    warnings said = {0};
    gpuhal *gpu = lose_device(&said);
    expect_fault_on_disk("lost", 1);
    gpuhal_close(gpu);
    gpuhal_view *view = view_or_fail();
    assert_int_equal(find_fault(view, "lost").count, 1);
    expect_word(find_fault(view, "lost").detail, BACKEND ":0");
    gpuhal_view_release(view);
    remove_reports();
}

TEST(without_a_record_faults_and_links_are_as_they_were)
{
    use_machine("devices 2; link 0 1 " OWN_LINK "; silent 0 1");
    setenv("GPUHAL_REGISTRY", "none", 1);
    for (unsigned program = 0; program < 2; program++) {
        warnings said = {0};
        gpuhal *gpu = open_listening(BACKEND, &said);
        assert_int_equal(copy_exactly(select_or_fail(gpu, BACKEND ":0"), select_or_fail(gpu, BACKEND ":1")),
                         GPUHAL_PATH_STAGED);
        assert_int_equal(said.count, 1);
        expect_word(said.last, "bytes are wrong");
        gpuhal_close(gpu);
    }
    expect_clean();
}

#include "test_main.h"
