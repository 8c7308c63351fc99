/* stream/discovery.c: creates the device list, which stays the same until the process exits. The APIs fix their lists
 * when they are initialised, so a device's index is the vendor's ordinal. Each plugin's discovery.c fills the list.
 */
#include "device.h"

#define ENTRIES_MAX 128u

static gpuhal_stream_entry entries[ENTRIES_MAX];
static _Atomic uint32_t entry_count; /* set after the entries are filled in, so find() returns only complete entries */

gpuhal_stream_entry *GPUHAL_OWN(find)(uint32_t index)
{
    return index < atomic_load(&entry_count) ? &entries[index] : NULL;
}

gpuhal_status GPUHAL_OWN(enumerate)(const gpuhal_host *host, gpuhal_plugin_instance *instance, gpuhal_sink *sink)
{
    (void)instance;
    /* Two copies of the core must not list devices or unlisted devices at the same time. */
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    gpuhal_status status = GPUHAL_OK;
    pthread_mutex_lock(&lock);
    if (atomic_load(&entry_count) == 0) {
        uint32_t listed = 0;
        status = GPUHAL_OWN(make_list)(host, entries, ENTRIES_MAX, &listed);
        /* Must be last: from here on find() returns entries without the lock. After a failure the count stays 0, and
         * the next call tries again. */
        atomic_store(&entry_count, listed);
    }
    const uint32_t count = atomic_load(&entry_count);
    for (uint32_t i = 0; status == GPUHAL_OK && i < count; i++) {
        host->device(host, sink, i);
        GPUHAL_OWN(list_facts)(host, sink, &entries[i]);
    }
    if (status == GPUHAL_OK || status == GPUHAL_ERROR_NO_DEVICE) {
        GPUHAL_OWN(list_unlisted)(host, sink, count);
    }
    pthread_mutex_unlock(&lock);
    return status;
}
