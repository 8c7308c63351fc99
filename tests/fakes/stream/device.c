/* tests/fakes/stream/device.c: facts about the visible devices. */
#include "fake.h"

#include <stdio.h>

fake_code fake_enter_device(const char *function, int ordinal, fake_device **out_device)
{
    fake_code code = fake_enter(function);
    if (code) {
        return code;
    }
    *out_device = fake_device_at(ordinal, &code);
    return *out_device ? FAKE_OK : fake_end(code);
}

fake_code VENDOR(DeviceGet)(vendor_device *out_device, int ordinal)
{
    fake_device *device;
    fake_code code = fake_enter_device(__func__, ordinal, &device);
    if (code) {
        return code;
    }
    *out_device = ordinal;
    return fake_end(FAKE_OK);
}

fake_code VENDOR(DeviceGetName)(char *name, int length, vendor_device ordinal)
{
    fake_device *device;
    fake_code code = fake_enter_device(__func__, ordinal, &device);
    if (code) {
        return code;
    }
    const char *profile = device->mig ? device->mig->profile : "";
    snprintf(name, (size_t)length, device->mig ? "%s MIG %s" : "%s", device->plan->name, profile);
    return fake_end(FAKE_OK);
}

fake_code VENDOR(DeviceTotalMem)(size_t *out_bytes, vendor_device ordinal)
{
    fake_device *device;
    fake_code code = fake_enter_device(__func__, ordinal, &device);
    if (code) {
        return code;
    }
    *out_bytes = device->memory;
    return fake_end(FAKE_OK);
}

bool fake_attribute_of(const fake_plan *plan, unsigned number, int *out_value)
{
    for (unsigned i = 0; i < plan->attribute_count; i++) {
        if ((unsigned)plan->attributes[i].number == number) {
            *out_value = plan->attributes[i].value;
            return true;
        }
    }
    return fake_attribute(plan, number, out_value);
}

fake_code VENDOR(DeviceGetAttribute)(int *out_value, unsigned attribute, vendor_device ordinal)
{
    fake_device *device;
    fake_code code = fake_enter_device(__func__, ordinal, &device);
    if (code) {
        return code;
    }
    return fake_end(fake_attribute_of(device->plan, attribute, out_value) ? FAKE_OK : FAKE_ERROR_INVALID_VALUE);
}

/* The partitions of an AMD device can access each other's memory. A MIG device cannot access another device. */
static bool is_peer(const fake_device *from, const fake_device *to)
{
    const bool parts = from != to && from->physical == to->physical && !from->mig;
    return parts || fake_script_peer(fake_script_get(), from->physical, to->physical);
}

fake_code VENDOR(DeviceCanAccessPeer)(int *out_can, vendor_device ordinal, vendor_device peer)
{
    fake_device *from, *to;
    fake_code code = fake_enter_device(__func__, ordinal, &from);
    if (code) {
        return code;
    }
    to = fake_device_at(peer, &code);
    *out_can = to && is_peer(from, to);
    return fake_end(code);
}
