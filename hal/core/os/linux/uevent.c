/* os/linux/uevent.c: the kernel's device events (uevents), from a netlink socket that needs no privileges.
 *
 * Messages are not trusted. Parsing stays within their bytes, and malformed messages are ignored. Only the kernel sends
 * with port id 0; messages of other senders are dropped.
 */
#include "os/os.h"

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define KERNEL_GROUP  1u   /* multicast group of kernel messages; udev uses another group */
#define MESSAGE_BYTES 8192 /* kernel messages have at most 2 KiB plus a short header */
#define MESSAGES_AT_ONCE 64

int gpuhal_os_hotplug_open(intptr_t *out_source)
{
    int source = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
    if (source < 0) {
        return errno;
    }
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP};
    if (bind(source, (const struct sockaddr *)&address, sizeof address)) {
        int error = errno;
        close(source);
        return error;
    }
    *out_source = source;
    return 0;
}

static const char *value_of(const char *message, size_t bytes, const char *key)
{
    size_t length = strlen(key);
    for (size_t at = 0; at < bytes;) {
        const char *end = memchr(message + at, 0, bytes - at);
        if (!end) {
            return NULL;
        }
        if (strncmp(message + at, key, length) == 0 && message[at + length] == '=') {
            return message + at + length + 1;
        }
        at = (size_t)(end - message) + 1;
    }
    return NULL;
}

static bool is_one_of(const char *word, const char *const *words)
{
    for (; word && *words; words++) {
        if (strcmp(word, *words) == 0) {
            return true;
        }
    }
    return false;
}

/* Accepts a display controller (3) or a processing accelerator (0x12); the class is written in hexadecimal without
 * leading zeros. */
static bool is_our_pci_class(const char *class)
{
    return class && ((strlen(class) == 5 && class[0] == '3') || (strlen(class) == 6 && strncmp(class, "12", 2) == 0));
}

bool gpuhal_os_hotplug_concerns(const char *message, size_t bytes)
{
    static const char *const actions[] = {"add", "remove", "bind", "unbind", NULL};
    static const char *const subsystems[] = {"drm", "accel", "kfd", "nvidia", "nvidia-uvm", NULL};
    static const char *const modules[] = {"/module/nvidia", "/module/nvidia_uvm", "/module/amdgpu",
                                          "/module/i915",   "/module/xe",         NULL};
    const char *subsystem = value_of(message, bytes, "SUBSYSTEM"), *type = value_of(message, bytes, "DEVTYPE");
    if (!subsystem || !is_one_of(value_of(message, bytes, "ACTION"), actions)) {
        return false;
    }
    if (strcmp(subsystem, "pci") == 0) {
        return is_our_pci_class(value_of(message, bytes, "PCI_CLASS"));
    }
    if (strcmp(subsystem, "module") == 0) {
        return is_one_of(value_of(message, bytes, "DEVPATH"), modules);
    }
    /* Events about plugging in a monitor are ignored. */
    return is_one_of(subsystem, subsystems) && !(type && strcmp(type, "drm_connector") == 0);
}

/* Reads at most MESSAGES_AT_ONCE pending messages. They count as one notification, because one device change causes
 * several messages, and the devices are listed once for all. */
static unsigned take_messages(int source)
{
    unsigned found = GPUHAL_HOTPLUG_QUIET;
    for (int i = 0; i < MESSAGES_AT_ONCE; i++) {
        char message[MESSAGE_BYTES];
        struct sockaddr_nl sender = {0};
        socklen_t sender_bytes = sizeof sender;
        ssize_t bytes =
            recvfrom(source, message, sizeof message, MSG_DONTWAIT, (struct sockaddr *)&sender, &sender_bytes);
        if (bytes < 0 && errno == EINTR) {
            continue;
        }
        if (bytes < 0 && errno == ENOBUFS) {
            found |= GPUHAL_HOTPLUG_NEWS; /* messages were lost, and some may have been relevant */
            continue;
        }
        if (bytes < 0) {
            return errno == EAGAIN || errno == EWOULDBLOCK ? found : found | GPUHAL_HOTPLUG_GONE;
        }
        if (bytes == 0 && sender_bytes == 0) {
            return found | GPUHAL_HOTPLUG_GONE; /* the peer has closed the socket */
        }
        bool foreign = sender_bytes > 0 && sender.nl_family == AF_NETLINK && sender.nl_pid != 0;
        if (!foreign && gpuhal_os_hotplug_concerns(message, (size_t)bytes)) {
            found |= GPUHAL_HOTPLUG_NEWS;
        }
    }
    return found;
}

unsigned gpuhal_os_hotplug_take(const gpuhal_hotplug_sources *sources)
{
    unsigned found = sources->kernel >= 0 ? take_messages((int)sources->kernel) : GPUHAL_HOTPLUG_QUIET;
    if (sources->announced >= 0 && gpuhal_os_notifier_clear(sources->announced)) {
        found |= GPUHAL_HOTPLUG_NEWS;
    }
    if (sources->files && gpuhal_os_file_watch_take(sources->files)) {
        found |= GPUHAL_HOTPLUG_NEWS;
    }
    return found;
}
