/* os/linux/notifier.c: a descriptor for poll(): an eventfd. */
#include "os/os.h"

#include <errno.h>
#include <sys/eventfd.h>

int gpuhal_os_notifier_create(intptr_t *out_notifier)
{
    int notifier = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int error = notifier < 0 ? errno : 0;
    if (!error) {
        *out_notifier = notifier;
    }
    return error;
}

/* Both fail only when the counter is full or empty, and then it has the wanted state already. */
void gpuhal_os_notifier_set(intptr_t notifier)
{
    (void)!eventfd_write((int)notifier, 1);
}

void gpuhal_os_notifier_clear(intptr_t notifier)
{
    eventfd_t count;
    (void)!eventfd_read((int)notifier, &count);
}
