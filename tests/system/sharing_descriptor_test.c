/* Tests buffers that are passed to another process as descriptors, on every device that can export them. */
#include "system.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 3 * 1024 * 1024 + 77, OPAQUE = 1u << GPUHAL_HANDLE_OPAQUE_FD };

static unsigned char *make_pattern(void)
{
    unsigned char *bytes = malloc(BYTES);
    assert_non_null(bytes);
    for (size_t i = 0; i < BYTES; i++) {
        bytes[i] = (unsigned char)(i * 7 + i / 251);
    }
    return bytes;
}

/* Sends a byte, and a descriptor unless it is -1. */
static void send_descriptor(int socket, int descriptor)
{
    char byte = 'd';
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (descriptor >= 0) {
        memcpy(CMSG_DATA(&control.header), &descriptor, sizeof descriptor);
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
    }
    if (sendmsg(socket, &message, MSG_NOSIGNAL) != 1) {
        _exit(9);
    }
}

static int receive_descriptor(int socket)
{
    char byte = 0;
    int descriptor = -1;
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1) {
        return -1;
    }
    if (message.msg_controllen >= sizeof control.header && control.header.cmsg_type == SCM_RIGHTS) {
        memcpy(&descriptor, CMSG_DATA(&control.header), sizeof descriptor);
    }
    return descriptor;
}

static const gpuhal_buffer_desc exported = {.size = sizeof exported, .bytes = BYTES, .export_kinds = OPAQUE};

/* Returns the nth device that can export and import descriptors. The order is the same in both processes. */
static gpuhal_device *exporter(gpuhal *gpu, int number)
{
    for (uint32_t d = 0; d < gpuhal_device_count(gpu); d++) {
        uint64_t exports = 0, imports = 0;
        gpuhal_device *device = gpuhal_device_at(gpu, d);
        bool does = !gpuhal_device_u64(device, GPUHAL_FACT_EXPORT_KINDS, &exports) && (exports & OPAQUE) &&
                    !gpuhal_device_u64(device, GPUHAL_FACT_IMPORT_KINDS, &imports) && (imports & OPAQUE);
        if (does && number-- == 0) {
            return device;
        }
    }
    return NULL;
}

/* Runs in the child: exports a buffer, waits for the parent's write, and checks it. Returns the exit code. */
static int export_and_look(int socket, int number, const unsigned char *pattern)
{
    gpuhal *gpu = open_or_fail(NULL);
    gpuhal_device *device = exporter(gpu, number);
    gpuhal_buffer *buffer = NULL;
    gpuhal_handle handle;
    unsigned char got[5] = {0};
    if (!device) {
        send_descriptor(socket, -1);
        return 0;
    }
    if (gpuhal_buffer_create(device, &exported, &buffer) || gpuhal_write(NULL, buffer, 0, pattern, BYTES) ||
        gpuhal_buffer_export(buffer, GPUHAL_HANDLE_OPAQUE_FD, &handle)) {
        printf("%s\n", gpuhal_last_error()->sentence);
        return 2;
    }
    send_descriptor(socket, (int)handle.as.os);
    close((int)handle.as.os);
    receive_descriptor(socket);
    int result = gpuhal_read(NULL, got, buffer, 777, 5) == GPUHAL_OK && memcmp(got, "reply", 5) == 0 ? 0 : 3;
    gpuhal_buffer_release(buffer);
    gpuhal_close(gpu);
    return result;
}

TEST(a_buffer_of_another_process_is_imported_by_its_descriptor_and_shows_the_same_bytes)
{
    unsigned char *pattern = make_pattern(), *got = calloc(1, BYTES);
    int imported = 0;
    for (int number = 0; number < 8; number++) {
        int ends[2], status = 1;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        /* A child must not inherit a started driver. So this process never opens a driver, and forks a child for each
         * device. */
        pid_t child = fork();
        if (child == 0) {
            close(ends[0]);
            alarm(30);
            _exit(export_and_look(ends[1], number, pattern));
        }
        close(ends[1]);
        int descriptor = receive_descriptor(ends[0]);
        pid_t importer = descriptor >= 0 ? fork() : -1;
        if (importer == 0) {
            gpuhal *gpu = open_or_fail(NULL);
            const gpuhal_handle handle = {.size = sizeof handle, .kind = GPUHAL_HANDLE_OPAQUE_FD, .as.os = descriptor};
            gpuhal_buffer *buffer = NULL;
            alarm(30);
            assert_ok(gpuhal_buffer_import(exporter(gpu, number), &exported, &handle, &buffer));
            assert_ok(gpuhal_read(NULL, got, buffer, 0, BYTES));
            assert_memory_equal(got, pattern, BYTES);
            assert_ok(gpuhal_write(NULL, buffer, 777, "reply", 5));
            gpuhal_buffer_release(buffer);
            gpuhal_close(gpu);
            _exit(0);
        }
        if (importer > 0) {
            assert_int_equal(waitpid(importer, &status, 0), importer);
            assert_int_equal(status, 0);
            imported++;
            close(descriptor);
            send_descriptor(ends[0], -1);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        close(ends[0]);
        if (importer < 0) {
            break;
        }
    }
    assert_true(imported >= 1);
    free(pattern);
    free(got);
}

TEST(a_descriptor_of_another_kind_is_refused_by_every_device_and_stays_open)
{
    gpuhal *gpu = open_or_fail(NULL);
    int ends[2], file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    assert_int_equal(pipe(ends), 0);
    for (int number = 0; exporter(gpu, number); number++) {
        const int wrong[] = {ends[0], file};
        for (int w = 0; w < 2; w++) {
            const gpuhal_handle handle = {.size = sizeof handle, .kind = GPUHAL_HANDLE_OPAQUE_FD, .as.os = wrong[w]};
            gpuhal_buffer *buffer = NULL;
            gpuhal_status status = gpuhal_buffer_import(exporter(gpu, number), &exported, &handle, &buffer);
            assert_true(status < 0);
            assert_null(buffer);
            assert_true(fcntl(wrong[w], F_GETFD) >= 0);
            printf("# %s\n", gpuhal_last_error()->sentence);
        }
    }
    close(ends[0]);
    close(ends[1]);
    close(file);
    gpuhal_close(gpu);
}

#include "test_main.h"
