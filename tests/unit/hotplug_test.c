/* The kernel's hardware events: the messages that count, a single rescan for many events, and the removal of a
 * listener. */
#include "device/device.h"
#include "os/os.h"
#include "support/mock.h"
#include "test.h"
#include "hotplug/change.h"

#include <gpuhal/gpuhal.h>

#include "../system/cards.h"

#include <linux/netlink.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <fcntl.h>
#include <unistd.h>

#define MESSAGE(text) text, sizeof(text)

/* Recorded with `udevadm monitor --kernel --property`. */
#define DRM_ADD                                                                                                        \
    "add@/devices/pci0000:00/0000:00:01.0/0000:01:00.0/drm/card1\0ACTION=add\0"                                        \
    "DEVPATH=/devices/pci0000:00/0000:00:01.0/0000:01:00.0/drm/card1\0SUBSYSTEM=drm\0MAJOR=226\0MINOR=1\0DEVNAME=dri/" \
    "card1\0"                                                                                                          \
    "DEVTYPE=drm_minor\0SEQNUM=4711"
#define USB_ADD                                                                                                        \
    "add@/devices/pci0000:00/0000:00:14.0/usb1/1-2\0ACTION=add\0DEVPATH=/devices/usb1/1-2\0SUBSYSTEM=usb\0SEQNUM=4712"

TEST(cards_that_come_and_go_count)
{
    assert_true(gpuhal_os_hotplug_concerns(MESSAGE(DRM_ADD)));
    assert_true(gpuhal_os_hotplug_concerns(MESSAGE("remove@/x\0ACTION=remove\0SUBSYSTEM=drm\0DEVTYPE=drm_minor")));
    assert_true(gpuhal_os_hotplug_concerns(MESSAGE("add@/x\0ACTION=add\0SUBSYSTEM=accel")));
    assert_true(gpuhal_os_hotplug_concerns(MESSAGE("add@/devices/virtual/kfd/kfd\0ACTION=add\0SUBSYSTEM=kfd")));
    assert_true(gpuhal_os_hotplug_concerns(MESSAGE("unbind@/x\0ACTION=unbind\0SUBSYSTEM=pci\0PCI_CLASS=30200")));
    assert_true(gpuhal_os_hotplug_concerns(MESSAGE("bind@/x\0ACTION=bind\0SUBSYSTEM=pci\0PCI_CLASS=120000")));
    assert_true(gpuhal_os_hotplug_concerns(
        MESSAGE("add@/module/nvidia\0ACTION=add\0DEVPATH=/module/nvidia\0SUBSYSTEM=module")));
}

TEST(other_hardware_and_monitors_do_not_count)
{
    assert_false(gpuhal_os_hotplug_concerns(MESSAGE(USB_ADD)));
    assert_false(gpuhal_os_hotplug_concerns(MESSAGE("change@/x\0ACTION=change\0SUBSYSTEM=drm\0HOTPLUG=1")));
    assert_false(gpuhal_os_hotplug_concerns(MESSAGE("add@/x\0ACTION=add\0SUBSYSTEM=drm\0DEVTYPE=drm_connector")));
    assert_false(gpuhal_os_hotplug_concerns(MESSAGE("bind@/x\0ACTION=bind\0SUBSYSTEM=pci\0PCI_CLASS=20000")));
    assert_false(gpuhal_os_hotplug_concerns(MESSAGE("bind@/x\0ACTION=bind\0SUBSYSTEM=pci\0PCI_CLASS=3")));
    assert_false(gpuhal_os_hotplug_concerns(MESSAGE("bind@/x\0ACTION=bind\0SUBSYSTEM=pci")));
    assert_false(
        gpuhal_os_hotplug_concerns(MESSAGE("add@/module/fuse\0ACTION=add\0DEVPATH=/module/fuse\0SUBSYSTEM=module")));
}

TEST(malformed_messages_do_not_count)
{
    static const char unended[] = {'A', 'C', 'T', 'I', 'O', 'N', '=', 'a', 'd', 'd', 0,   'S',
                                   'U', 'B', 'S', 'Y', 'S', 'T', 'E', 'M', '=', 'd', 'r', 'm'};
    assert_false(gpuhal_os_hotplug_concerns("", 0));
    assert_false(gpuhal_os_hotplug_concerns(MESSAGE("")));
    assert_false(gpuhal_os_hotplug_concerns(MESSAGE("libudev\0\xfe\xed\xca\xfe")));
    assert_false(gpuhal_os_hotplug_concerns(MESSAGE("SUBSYSTEM=drm")));
    assert_false(gpuhal_os_hotplug_concerns(MESSAGE("ACTION=add\0SUBSYSTEMS=drm")));
    assert_false(gpuhal_os_hotplug_concerns(unended, sizeof unended));
}

/* Each buffer has exactly the message's size, so that a sanitizer detects reads past the end. */
TEST(damaged_messages_are_read_within_their_bytes)
{
    static const char whole[] = DRM_ADD;
    uint32_t seed = 1;
    for (size_t bytes = 0; bytes < sizeof whole; bytes++) {
        char *cut = malloc(bytes + !bytes);
        assert_non_null(cut);
        memcpy(cut, whole, bytes);
        (void)gpuhal_os_hotplug_concerns(cut, bytes);
        for (int i = 0; i < 32 && bytes > 0; i++) {
            seed = seed * 1664525u + 1013904223u;
            cut[(seed >> 8) % bytes] = (char)(seed >> 24);
            (void)gpuhal_os_hotplug_concerns(cut, bytes);
        }
        free(cut);
    }
}

/* ---- from the message to the list of devices */

static _Atomic int lines;

static void count_line(void *user, int32_t level, const char *line)
{
    (void)level;
    atomic_fetch_add(&lines, strstr(line, user) && !strstr(line, " ended")); /* each process logs a start and an end */
}

static gpuhal *open_watching(int out_ends[2], const char *word)
{
    setenv("FAKE_CUDA", make_cards("A"), 1);
    setenv("GPUHAL_CUDA_LIBRARY", GPUHAL_BUILD_DIRECTORY "/tests/fakes/cuda/libcuda.so.1", 1);
    setenv("GPUHAL_NVML_LIBRARY", GPUHAL_BUILD_DIRECTORY "/tests/fakes/cuda/libnvidia-ml.so.1", 1);
    gpuhal *gpu = NULL;
    assert_int_equal(gpuhal_open(&(gpuhal_config){.size = sizeof(gpuhal_config),
                                                  .backends = "cuda",
                                                  .plugin_path = GPUHAL_BUILD_PLUGINS,
                                                  .helper_path = GPUHAL_HELPER,
                                                  .isolation = GPUHAL_ISOLATION_ALWAYS,
                                                  .log_level = GPUHAL_LEVEL_DEBUG,
                                                  .log = count_line,
                                                  .log_user = (void *)(uintptr_t)word},
                                 &gpu),
                     GPUHAL_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, out_ends), 0);
    assert_int_equal(gpuhal_watch_source(gpu, out_ends[0]), GPUHAL_OK);
    return gpu;
}

static void await_generation(const gpuhal *gpu, uint64_t generation)
{
    for (int i = 0; i < 6000 && gpuhal_generation(gpu) < generation; i++) {
        gpuhal_os_sleep(10000000);
    }
    assert_int_equal(gpuhal_generation(gpu), generation);
}

TEST(news_of_the_kernel_makes_the_library_look_again_once_for_many_messages)
{
    int ends[2];
    gpuhal *gpu = open_watching(ends, "cuda: process");
    gpuhal_os_handle descriptor = -1;
    assert_int_equal(gpuhal_change_descriptor(gpu, &descriptor), GPUHAL_OK);
    int before = atomic_load(&lines);
    put_cards("AB", "");
    for (int i = 0; i < 20; i++) {
        assert_int_equal(write(ends[1], DRM_ADD, sizeof DRM_ADD), sizeof DRM_ADD);
        assert_int_equal(write(ends[1], USB_ADD, sizeof USB_ADD), sizeof USB_ADD);
    }
    struct pollfd asked = {.fd = (int)descriptor, .events = POLLIN};
    assert_int_equal(poll(&asked, 1, 60000), 1);
    await_generation(gpu, 2);
    assert_int_equal(atomic_load(&lines) - before, 1);
    put_cards("A", "");
    assert_int_equal(write(ends[1], DRM_ADD, sizeof DRM_ADD), sizeof DRM_ADD);
    await_generation(gpu, 3);
    gpuhal_os_handle_close(descriptor);
    assert_int_equal(fcntl((int)descriptor, F_GETFD), -1);
    gpuhal_os_handle_close(-1);
    gpuhal_close(gpu);
    close(ends[1]);
    remove_cards();
}

/* Sends messages at intervals shorter than the quiet period. Returns false if an interval was 100 ms or longer, which
 * is a third of the quiet period. */
static bool send_storm(int end)
{
    uint64_t last = gpuhal_os_monotonic_ns(), longest = 0;
    for (int i = 0; i < 200; i++) {
        assert_int_equal(write(end, DRM_ADD, sizeof DRM_ADD), sizeof DRM_ADD);
        gpuhal_os_sleep(2000000);
        uint64_t now = gpuhal_os_monotonic_ns();
        longest = now - last > longest ? now - last : longest;
        last = now;
    }
    return longest < 100000000;
}

TEST(a_storm_of_messages_one_after_the_other_makes_one_look)
{
    int ends[2];
    gpuhal *gpu = open_watching(ends, "cuda: process");
    for (int i = 0; i < 20; i++) {
        int before = atomic_load(&lines);
        bool even = send_storm(ends[1]);
        for (int k = 0; k < 6000 && atomic_load(&lines) == before; k++) {
            gpuhal_os_sleep(10000000);
        }
        gpuhal_os_sleep(1000000000);
        if (even) {
            assert_int_equal(atomic_load(&lines) - before, 1);
            break;
        }
    }
    gpuhal_close(gpu);
    close(ends[1]);
    remove_cards();
}

/* ---- senders */

static int bound_socket(struct sockaddr_un *out_address, socklen_t *out_bytes)
{
    int end = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    *out_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    *out_bytes = sizeof *out_address;
    assert_true(end >= 0);
    assert_int_equal(bind(end, (struct sockaddr *)out_address, sizeof out_address->sun_family), 0);
    assert_int_equal(getsockname(end, (struct sockaddr *)out_address, out_bytes), 0);
    return end;
}

TEST(an_empty_message_from_another_sender_does_not_end_the_device_events)
{
    struct sockaddr_un address, ignored;
    socklen_t bytes, ignored_bytes;
    int source = bound_socket(&address, &bytes), sender = bound_socket(&ignored, &ignored_bytes);
    const gpuhal_hotplug_sources sources = {.kernel = source, .announced = -1};
    assert_int_equal(sendto(sender, "", 0, 0, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(gpuhal_os_hotplug_take(&sources), GPUHAL_HOTPLUG_QUIET);
    assert_int_equal(sendto(sender, DRM_ADD, sizeof DRM_ADD, 0, (struct sockaddr *)&address, bytes), sizeof DRM_ADD);
    assert_int_equal(gpuhal_os_hotplug_take(&sources), GPUHAL_HOTPLUG_NEWS);
    close(source);
    close(sender);
}

/* Some processes are allowed to send messages, which must be ignored. Real events may arrive during the test, so the
 * test makes several attempts. */
TEST(messages_of_other_processes_do_not_count_as_those_of_the_kernel)
{
    intptr_t source = -1;
    struct sockaddr_nl address = {0};
    socklen_t bytes = sizeof address;
    if (gpuhal_os_hotplug_open(&source)) {
        skip();
    }
    int sender = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
    unsigned heard = GPUHAL_HOTPLUG_NEWS;
    assert_true(sender >= 0);
    assert_int_equal(getsockname((int)source, (struct sockaddr *)&address, &bytes), 0);
    address.nl_groups = 0;
    for (int i = 0; i < 5 && heard == GPUHAL_HOTPLUG_NEWS; i++) {
        (void)!sendto(sender, DRM_ADD, sizeof DRM_ADD, 0, (struct sockaddr *)&address, sizeof address);
        gpuhal_os_sleep(100000000);
        heard = gpuhal_os_hotplug_take(&(gpuhal_hotplug_sources){.kernel = source, .announced = -1});
    }
    assert_int_equal(heard, GPUHAL_HOTPLUG_QUIET);
    gpuhal_os_descriptor_close(source);
    close(sender);
}

TEST(facts_that_differ_from_the_cached_ones_are_reported)
{
    int ends[2];
    gpuhal *gpu = open_watching(ends, "");
    gpuhal_os_handle descriptor = -1;
    gpuhal_change change = {.size = sizeof change};
    assert_int_equal(gpuhal_change_descriptor(gpu, &descriptor), GPUHAL_OK);
    gpu->layers.on_changed(gpuhal_device_at(gpu, 0), "cuda:0 has another driver");
    assert_int_equal(gpuhal_next_change(gpu, &change), GPUHAL_OK);
    assert_int_equal(change.kind, GPUHAL_CHANGE_CHANGED);
    assert_ptr_equal(change.device, gpuhal_device_at(gpu, 0));
    assert_string_equal(change.sentence, "cuda:0 has another driver");
    assert_int_equal(change.generation, gpuhal_generation(gpu));
    close((int)descriptor);
    gpuhal_close(gpu);
    close(ends[1]);
    remove_cards();
}

/* ---- listeners that are removed */

typedef struct listening {
    gpuhal *gpu;
    _Atomic bool called, goes_back, removed;
    gpuhal_status status;
} listening;

static void await_true(const _Atomic bool *that)
{
    for (int i = 0; i < 1000 && !atomic_load(that); i++) {
        gpuhal_os_sleep(10000000);
    }
    assert_true(atomic_load(that));
}

static void *remove_listener(void *user)
{
    listening *own = user;
    own->status = gpuhal_on_change(own->gpu, NULL, NULL);
    atomic_store(&own->removed, true);
    return NULL;
}

static void stay_in_listener(void *user, __attribute__((unused)) const gpuhal_change *change)
{
    listening *own = user;
    atomic_store(&own->called, true);
    while (!atomic_load(&own->goes_back)) {
        gpuhal_os_sleep(1000000);
    }
}

static void remove_from_inside(void *user, __attribute__((unused)) const gpuhal_change *change)
{
    atomic_store(&((listening *)user)->called, true);
    remove_listener(user);
}

/* Adds a listener, and changes the only device, so that the listener is called once. */
static void begin_listening(listening *own, gpuhal_change_fn *listener)
{
    gpuhal_mock = (gpuhal_mock_state){.count = 1};
    *own = (listening){.gpu = gpuhal_mock_open(NULL, 0)};
    assert_int_equal(gpuhal_on_change(own->gpu, listener, own), GPUHAL_OK);
    own->gpu->layers.on_changed(gpuhal_device_at(own->gpu, 0), "mock:0 has another driver");
    await_true(&own->called);
}

/* The application may free the listener's data after the removal. */
TEST(removing_a_listener_waits_while_another_thread_calls_it)
{
    static listening own;
    pthread_t thread;
    begin_listening(&own, stay_in_listener);
    assert_int_equal(pthread_create(&thread, NULL, remove_listener, &own), 0);
    gpuhal_os_sleep(300000000);
    assert_false(atomic_load(&own.removed));
    atomic_store(&own.goes_back, true);
    await_true(&own.removed);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(own.status, GPUHAL_OK);
    gpuhal_close(own.gpu);
}

TEST(a_listener_that_removes_itself_does_not_wait_for_its_own_end)
{
    static listening own;
    begin_listening(&own, remove_from_inside);
    await_true(&own.removed);
    assert_int_equal(own.status, GPUHAL_OK);
    gpuhal_close(own.gpu);
}

/* ---- the end of the events */

TEST(closing_waits_for_a_look_that_the_kernel_caused)
{
    for (int i = 0; i < 4; i++) {
        int ends[2];
        gpuhal *gpu = open_watching(ends, "cuda: process");
        put_cards("AB", "");
        assert_int_equal(write(ends[1], DRM_ADD, sizeof DRM_ADD), sizeof DRM_ADD);
        gpuhal_os_sleep((uint64_t)i * 110000000u);
        gpuhal_close(gpu);
        close(ends[1]);
        remove_cards();
    }
}

TEST(a_source_that_ends_is_logged_once_and_explicit_rescans_still_work)
{
    int ends[2];
    gpuhal *gpu = open_watching(ends, "no more events");
    close(ends[1]);
    for (int i = 0; i < 6000 && !atomic_load(&lines); i++) {
        gpuhal_os_sleep(10000000);
    }
    assert_int_equal(atomic_load(&lines), 1);
    put_cards("AB", "");
    assert_int_equal(gpuhal_rescan(gpu, NULL), GPUHAL_OK);
    assert_int_equal(gpuhal_generation(gpu), 2);
    gpuhal_close(gpu);
    assert_int_equal(atomic_load(&lines), 1);
    remove_cards();
}

#include "test_main.h"
