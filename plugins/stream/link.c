/* stream/link.c: lists the facts about the path from one device to another.
 *
 * The driver reports whether one device can access the other's memory. The core trusts this report only after a test
 * copy has succeeded. Each plugin's link.c determines how the two devices are connected.
 */
#include "device.h"

gpuhal_status GPUHAL_OWN(link)(const gpuhal_host *host, gpuhal_plugin_instance *instance, uint32_t from, uint32_t to,
                               gpuhal_sink *sink)
{
    (void)instance;
    const gpuhal_stream_entry *one = GPUHAL_OWN(find)(from), *other = GPUHAL_OWN(find)(to);
    if (!one || !other) {
        return GPUHAL_ERROR_NOT_FOUND;
    }
    if (from == to) {
        return host->report(host, GPUHAL_ERROR_INVALID_ARGUMENT, NULL, 0, "a device has no link to itself");
    }
    int can = 0;
    const vendor_code code = GPUHAL_VENDOR(DeviceCanAccessPeer)(&can, one->device, other->device);
    if (code == GPUHAL_VENDOR_OK) {
        host->u64(host, sink, GPUHAL_LINK_PEER_ADVERTISED, can ? 1 : 0);
    } else {
        GPUHAL_OWN(ignore)(code);
        host->missing(host, sink, GPUHAL_LINK_PEER_ADVERTISED, GPUHAL_MISSING_FAILED, GPUHAL_OWN(result_name)(code));
    }
    GPUHAL_OWN(list_connection)(host, sink, one, other);
    return GPUHAL_OK;
}
