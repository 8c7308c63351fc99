/** gpuhal/device.h: devices, their facts, and the selection of a device.
 *
 *  A device is one processor as one backend exposes it. Its id is `backend:index` (`opencl:1`) and does not depend on
 *  which other devices are hidden. Device pointers are valid as long as their gpuhal object exists. A device is opened
 *  when its first buffer is created, or by gpuhal_device_open().
 *
 *      gpuhal_device *device = NULL;
 *      const char *name = "", *reason = "";
 *      if (gpuhal_select(gpu, "auto", 0, &device, &reason) == GPUHAL_OK &&
 *          gpuhal_device_text(device, GPUHAL_FACT_NAME, &name) == GPUHAL_OK)
 *          printf("%s: %s, %s\n", gpuhal_device_id(device), name, reason);
 */
#ifndef GPUHAL_DEVICE_H
#define GPUHAL_DEVICE_H

#include <gpuhal/instance.h>
#include <gpuhal/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One device of a gpuhal object. */
typedef struct gpuhal_device gpuhal_device;

/** Bits for a device's capabilities beyond allocating and copying. */
enum {
    /** The device's transfers access pageable host memory without staging by the library. */
    GPUHAL_CAPABILITY_HOST_COPY = 1u << 0,
    GPUHAL_CAPABILITY_FILL = 1u << 1,
    GPUHAL_CAPABILITY_COPY_RECT = 1u << 2,
    GPUHAL_CAPABILITY_REGISTER = 1u << 3,
    GPUHAL_CAPABILITY_MAP = 1u << 4,
    GPUHAL_CAPABILITY_QUEUES = 1u << 5,
    GPUHAL_CAPABILITY_PEER = 1u << 6,
    GPUHAL_CAPABILITY_EXPORT = 1u << 7,
    GPUHAL_CAPABILITY_IMPORT = 1u << 8,
    GPUHAL_CAPABILITY_VIRTUAL_MEMORY = 1u << 9,
    GPUHAL_CAPABILITY_PROGRAMS = 1u << 10,
    GPUHAL_CAPABILITY_NATIVE = 1u << 11,
    GPUHAL_CAPABILITY_ADOPT = 1u << 12
};
#define GPUHAL_CAPABILITY_COUNT 13u

/** Counts the visible devices.
 *  @return the count; 0 for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint32_t gpuhal_device_count(const gpuhal *gpu);

/** Returns the device at position @p index, counted from 0. Devices are ordered by the priority of their backends.
 *  @return the device; NULL past the last
 *  Owner: @p gpu. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_device *gpuhal_device_at(const gpuhal *gpu, uint32_t index);

/** Flags of gpuhal_select(). */
enum { GPUHAL_SELECT_ALLOW_CPU = 1u /**< When nothing matches, use the CPU instead of failing. */ };

/** Selects one device. @p selector is one selector, or several separated by commas; NULL or "" means `auto`.
 *  - `auto`: the best device; `gpu`: the best GPU (see below)
 *  - `most_free`, `least_loaded`: the GPU that currently has the most free memory or the lowest load (see
 *    GPUHAL_RANK_LEAST_LOADED)
 *  - `each`: one interface of each physical device
 *  - a backend: `cuda`, `cpu`
 *  - ids: `cuda:1`, `cuda:0-3`, `cuda:*`
 *  - numbers from 0: `0`, `0-3`: positions among the preferred interfaces, in the order of gpuhal_device_at(); these
 *    are the rows of gpuhal-probe
 *  - a UUID as the vendor's tools print it (`GPU-…`, `MIG-…`, `uuid=…`), or a UUID prefix that no other device shares
 *  - a PCI address, with or without its domain: `0000:c1:00.0`, `c1:00.0`, `pci=…`
 *  - `name=glob`: devices whose name matches the glob pattern with `*` and `?`; case-insensitive
 *  - `env=CUDA_VISIBLE_DEVICES`: the devices that a vendor's variable leaves visible, by the vendor's rules for this
 *    variable (docs/identity.md)
 *  In a list, a number continues the preceding backend (`cuda:0,1`), and a `?` stands for a comma in a name. `!` before
 *  a selector removes the selector's devices from the devices of the preceding selectors, or from all devices if it
 *  comes first: `cuda,!cuda:1`, `!opencl`. Another interface of the same hardware may then be selected. Each selector
 *  has at most 127 bytes; surrounding blanks are ignored. Only gpuhal_config.devices and GPUHAL_DEVICES may contain a
 *  memory limit (`cuda:0@8GiB`).
 *
 *  If the selector matches several devices, the library selects the best one from the listed facts alone, so that
 *  identical machines select identically and no driver is loaded. In this order, it prefers a device that did not fail
 *  gpuhal_device_verify() with this driver and is not GPUHAL_COMPUTE_PROHIBITED; a device that is not a software
 *  device; the first backend; a GPU, then an integrated GPU, then an accelerator; the most total memory; the most
 *  compute units; the first device. `auto` and `gpu` match no software device, and no device that failed
 *  gpuhal_device_verify() or is prohibited. If nothing matches, `auto` falls back to the CPU and `gpu` fails. A list
 *  that begins with `!` matches software devices, but no device that failed gpuhal_device_verify() or is prohibited. @p
 *  out_reason, which may be NULL, states the deciding rule. A device with an exclusive compute mode may be selected
 *  while another process uses it, since only the driver detects such use; opening the device returns BUSY in this case.
 *  If the list contains `most_free` or `least_loaded`, the library loads the plugins of the matching devices and reads
 *  the current values. The values decide after the first two rules and before the other rules; a device without the
 *  value comes last. If such a keyword in GPUHAL_DEVICES or gpuhal_config.devices has left a single device, the reason
 *  contains the values that were read at that time.
 *  @return GPUHAL_OK; FORKED; HOST_MEMORY; INVALID_ARGUMENT for a malformed selector, a selector with a limit, a
 *  vendor's variable whose value would be rejected by the library that reads it, and a UUID prefix or an address
 *  without a domain that matches several devices, which the detail names; NOT_FOUND if one of the selectors matches
 *  nothing, if only the library that reads a variable knows which device the value names, or if no usable device is
 *  left
 *  Owner: the device belongs to @p gpu; the reason is valid until this thread's next gpuhal_select(). Threads: any.
 *  Blocks: like gpuhal_sample_all() with `most_free` and `least_loaded`, otherwise no. */
GPUHAL_API gpuhal_status gpuhal_select(gpuhal *gpu, const char *selector, uint32_t flags, gpuhal_device **out_device,
                                       const char **out_reason);

/** Finds the device that has number @p native_index in the vendor's API (CUDA ordinal, DLPack device_id).
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, NOT_FOUND
 *  Owner: the device belongs to @p gpu. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_device_by_native(gpuhal *gpu, const char *backend, uint64_t native_index,
                                                 gpuhal_device **out_device);

/** Returns the id, such as "opencl:1".
 *  @return never NULL; "" for NULL
 *  Owner: device. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_device_id(const gpuhal_device *device);

/** Returns the name of the backend, such as "opencl".
 *  @return never NULL; "" for NULL
 *  Owner: device. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_device_backend(const gpuhal_device *device);

/** Returns the device's number within the backend, such as 1 for "opencl:1".
 *  @return the index; 0 for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint32_t gpuhal_device_index(const gpuhal_device *device);

/** Returns the gpuhal object of the device.
 *  @return the object; NULL for NULL
 *  Owner: the caller of gpuhal_open(). Threads: any. Blocks: no. */
GPUHAL_API gpuhal *gpuhal_device_owner(const gpuhal_device *device);

/** Returns a numeric fact.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT (also if the fact is a string, or for a key that neither the library nor
 *  the device knows), NOT_SUPPORTED when the value is missing
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_device_u64(const gpuhal_device *device, gpuhal_key key, uint64_t *out_value);

/** Returns a string fact.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT (also if the fact is a number, or for a key that neither the library nor
 *  the device knows), NOT_SUPPORTED when the value is missing
 *  Owner: device. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_device_text(const gpuhal_device *device, gpuhal_key key, const char **out_text);

/** Returns why a fact has no value. @p out_why, a sentence or "", may be NULL.
 *  @return the reason; 0 when there is a value
 *  Owner: device. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_missing gpuhal_device_missing(const gpuhal_device *device, gpuhal_key key, const char **out_why);

/** Returns key number @p index of the facts that the device's backend reported, in ascending order of keys. This
 *  includes facts that have a reason in place of a value. Keys from GPUHAL_VENDOR_FIRST up are vendor-specific. The
 *  sampled values of gpuhal_device_sample() are not included.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT, NOT_FOUND past the last
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_device_key_at(const gpuhal_device *device, uint32_t index, gpuhal_key *out_key);

/** Returns the capabilities of the device: bits GPUHAL_CAPABILITY_….
 *  @return the bits; 0 for NULL
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint32_t gpuhal_device_capabilities(const gpuhal_device *device);

/** Returns the number of the physical device, and whether this device is its preferred interface. Numbers start at 1
 *  and stay the same while the registry is kept (docs/registry.md), regardless of the order of enumeration. The number
 *  is 0 if the registry has no free number.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_device_physical(const gpuhal_device *device, uint32_t *out_number,
                                                uint32_t *out_preferred);

/** Opens the device in advance of its first buffer, and loads the plugin into this process.
 *  @return GPUHAL_OK, also if the device is already open; otherwise the backend's error: NO_DRIVER, NO_DEVICE,
 *  NO_PERMISSION, BUSY, DEVICE_LOST, INCOMPATIBLE, FORKED, OUT_OF_MEMORY, DRIVER; TIMEOUT when starting the plugin
 *  takes longer than gpuhal_config.helper_deadline_ns, DEVICE_LOST (hung) when opening takes longer than
 *  gpuhal_config.hang_ns
 *  Owner: the device stays open until gpuhal_close(). Threads: any; a second caller waits for the first. A thread of
 *  the library calls the driver. Blocks: yes, but no longer than these times. */
GPUHAL_API gpuhal_status gpuhal_device_open(gpuhal_device *device);

/** Opens the device on top of the caller's own vendor device. The library then allocates from that device and submits
 *  to it (native.h: GPUHAL_NATIVE_VULKAN_DEVICE, GPUHAL_NATIVE_OPENCL_DEVICE). Features that the caller's device was
 *  created without are not offered; gpuhal_device_capabilities() returns the remaining ones.
 *  @return GPUHAL_OK; INVALID_ARGUMENT for another type or other hardware; NOT_SUPPORTED when the backend cannot adopt
 *  or the device lacks a feature that copies require; BUSY when the device is already open; otherwise the errors of
 *  gpuhal_device_open()
 *  Owner: caller must keep the vendor's objects until gpuhal_close() and the last release. Threads: any. Blocks:
 *  yes. */
GPUHAL_API gpuhal_status gpuhal_device_adopt(gpuhal_device *device, const gpuhal_native *native);

/** Limits the bytes that this gpuhal object may have allocated on the device at any time; 0 removes the limit. Existing
 *  buffers are not freed.
 *  @return GPUHAL_OK, FORKED, INVALID_ARGUMENT
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API gpuhal_status gpuhal_device_limit_memory(gpuhal_device *device, uint64_t bytes);

/** Returns the vendor's objects of an open device; see native.h.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, NOT_SUPPORTED, and the errors of gpuhal_device_open()
 *  Owner: the library keeps the objects. Threads: any. Blocks: yes when the device is not open yet. */
GPUHAL_API gpuhal_status gpuhal_device_native(gpuhal_device *device, gpuhal_native *out_native);

/** A function of a vendor's library; the caller casts it to its real type. */
typedef void gpuhal_vendor_fn(void);

/** Finds a function in the copy of the vendor's library (libOpenCL, libvulkan, libcuda, libamdhip64) that the device's
 *  plugin uses in this process. Other copies may be installed. Opens the device if needed.
 *  @return GPUHAL_OK, INVALID_ARGUMENT, NOT_FOUND when the library has no such function, NOT_SUPPORTED when the plugin
 *  opened no library (cpu), and the errors of gpuhal_device_open()
 *  Owner: the library, which is never unloaded. Threads: any. Blocks: yes when the device is not open yet. */
GPUHAL_API gpuhal_status gpuhal_device_symbol(gpuhal_device *device, const char *name, gpuhal_vendor_fn **out_function);

/** Returns the plugin's extension "<vendor>.<name>": a table of functions that the vendor's own header declares. These
 *  functions identify devices by gpuhal_device_index(), or by the vendor's objects (gpuhal_device_native()). The device
 *  need not be open. The call does not open the device, but loads its plugin if needed. The functions follow the
 *  vendor's rules for errors, threads and time limits, not this library's.
 *  @return GPUHAL_OK; NOT_SUPPORTED for a name that the plugin does not know; INVALID_ARGUMENT, DEVICE_LOST, FORKED,
 *  HOST_MEMORY, or why the backend could not be started
 *  Owner: the plugin; valid until the process exits. Threads: any. Blocks: yes when the plugin is not loaded yet. */
GPUHAL_API gpuhal_status gpuhal_device_extension(gpuhal_device *device, const char *name, const void **out_extension);

/** Returns the name of a native object type (native.h), such as "opencl_buffer", or "vendor" for a vendor's own type.
 *  @return never NULL; "unknown" for an invalid number
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_native_type_name(uint32_t type);

/** Returns the name of a key, such as "memory_total_bytes".
 *  @return the name; NULL for a key that the library does not know
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_key_name(gpuhal_key key);

/** Returns whether the value of a key is a string.
 *  @return 1 for a string, 0 for a number or an unknown key
 *  Owner: nothing. Threads: any. Blocks: no. */
GPUHAL_API uint32_t gpuhal_key_is_text(gpuhal_key key);

/** Returns the JSON name of capability bit number @p bit (0 to GPUHAL_CAPABILITY_COUNT - 1), such as "copy_rect".
 *  @return the name; NULL past the last
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_capability_name(uint32_t bit);

/** Returns the name of bit number @p bit of GPUHAL_FACT_DATA_TYPES (0 to GPUHAL_DATA_COUNT - 1), such as "fp16".
 *  @return the name; NULL past the last
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_data_type_name(uint32_t bit);

/** Returns the JSON name of a device type, such as "integrated_gpu".
 *  @return never NULL; "unknown" for an invalid number
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_device_type_name(gpuhal_device_type type);

/** Returns the JSON name of a reason, such as "no permission".
 *  @return never NULL; "unknown" for an invalid number
 *  Owner: static. Threads: any. Blocks: no. */
GPUHAL_API const char *gpuhal_missing_name(gpuhal_missing reason);

#ifdef __cplusplus
}
#endif
#endif
