/** gpuhal/gpuhal.h: the API for engines: devices, memory, transfers, queues, programs and pools. It does not include
 *  gpuhal/store.h (more tensors than fit on a device), gpuhal/schedule.h (placement of work) or gpuhal/node.h (data for
 *  operators). These parts are optional: a library that was built without a part does not install its headers. The
 *  conventions below apply to those headers as well.
 *
 *  Conventions, true for every function unless its comment says otherwise
 *  - Every call that can fail returns a gpuhal_status; out-parameters come last and are NULL or 0 on failure, except
 *    that the contents of structures are undefined. gpuhal_last_error() has the details. The library never aborts,
 *    exits or prints, and installs no signal handler; drivers may print.
 *  - A call returns INVALID_ARGUMENT if a required object is NULL. Destroying, releasing or closing NULL does nothing.
 *  - Sizes and offsets are bytes in uint64_t; any other unit is part of the name (`timeout_ns`).
 *  - Configuration structures start with their size, and every other member has a sensible meaning when zero:
 *    `gpuhal_config config = { .size = sizeof config };`
 *  - The library reads and writes at most `size` bytes of a structure that has a size. If an older program passes a
 *    smaller size, the missing members count as 0 and are not written. If a newer program passes a larger size, the
 *    library leaves the bytes beyond its own structure untouched. A size that ends within a member is not detected. A
 *    call returns INVALID_ARGUMENT if the size is 0 or does not include the members that the call requires.
 *  - Strings are byte strings. Paths have the system's encoding; on Windows they are UTF-8.
 *  - Objects belong to the process that created them. In a forked child, a call with one of the parent's objects and
 *    valid arguments returns GPUHAL_ERROR_FORKED if it returns a status, and does nothing if it destroys, releases or
 *    closes. In both cases it returns immediately and calls no driver. Getters without a status keep working. The child
 *    must open its own gpuhal object. The child's object has the cpu backend, every backend that the parent had not
 *    started, and the backends whose plugin is GPUHAL_PLUGIN_FORK_SAFE; all other plugins are GPUHAL_PLUGIN_FORKED. Do
 *    not fork while another thread opens a gpuhal object, or opens or first uses a device. If such a thread was loading
 *    a library during the fork, gpuhal loads no library in the child (GPUHAL_ERROR_FORKED), and even cpu works in the
 *    child only if the parent had loaded cpu or it is linked in.
 *  - POSIX: cancelling a thread that waits in the library (pthread_cancel()) takes effect after the call has returned.
 *    Inside a driver's own calls, however, a cancellation may take effect immediately: do not cancel a thread that
 *    transfers, allocates or opens, unless the thread has disabled cancellation around such calls.
 *  - Comments end with three parts of a contract: Owner (which side must keep or free an object), Threads (from which
 *    threads the function may be called, and during which other calls), Blocks (whether it may wait for a device, a
 *    driver or a process).
 */
#ifndef GPUHAL_GPUHAL_H
#define GPUHAL_GPUHAL_H

#include <gpuhal/buffer.h>
#include <gpuhal/code.h>
#include <gpuhal/device.h>
#include <gpuhal/error.h>
#include <gpuhal/file.h>
#include <gpuhal/instance.h>
#include <gpuhal/link.h>
#include <gpuhal/native.h>
#include <gpuhal/pool.h>
#include <gpuhal/program.h>
#include <gpuhal/queue.h>
#include <gpuhal/recording.h>
#include <gpuhal/report.h>
#include <gpuhal/rescan.h>
#include <gpuhal/share.h>
#include <gpuhal/telemetry.h>
#include <gpuhal/trace.h>
#include <gpuhal/transfer.h>
#include <gpuhal/types.h>
#include <gpuhal/usage.h>
#include <gpuhal/view.h>

/* First calls, by task. The headers are below gpuhal/. schedule.h and node.h include the headers in the folders of the
 * same names.
 *
 *  task                                      header                  first call
 *  open the library                          instance.h              gpuhal_open()
 *  choose a device                           device.h                gpuhal_select()
 *  allocate memory on a device               buffer.h                gpuhal_buffer_create()
 *  allocate and free often                   pool.h                  gpuhal_pool_create()
 *  move bytes                                transfer.h              gpuhal_write()
 *  move bytes between a file and a device    file.h                  gpuhal_read_file()
 *  work asynchronously, and wait             queue.h                 gpuhal_queue_create()
 *  launch kernels                            program.h               gpuhal_program_create()
 *  run the same work many times              recording.h             gpuhal_recording_create()
 *  use the vendor's API on the same device   device.h, native.h      gpuhal_device_native()
 *  share memory without copying              share.h                 gpuhal_buffer_share()
 *  know the reason for a failure             error.h                 gpuhal_last_error()
 *  know why a plugin is not used             view.h, report.h        gpuhal_view_of()
 *  know how two devices are connected        link.h                  gpuhal_link_u64()
 *  follow added and removed devices          rescan.h                gpuhal_on_change()
 *  read memory in use, load, temperature     telemetry.h             gpuhal_device_sample()
 *  count transfers                           usage.h                 gpuhal_device_usage()
 *  record the work of queues and pools       trace.h                 gpuhal_trace_start()
 *  keep more than fits on a device           store.h                 gpuhal_store_create()
 *  rank the devices for a need               schedule/rank.h         gpuhal_rank()
 *  give each step a device                   schedule/assign.h       gpuhal_assign()
 *  give each worker a device                 schedule/strategy.h     gpuhal_strategy_create()
 *  give each layer of a model a device       schedule/placement.h    gpuhal_place()
 *  plan the memory of activations            schedule/memory_plan.h  gpuhal_memory_plan()
 *  lease devices among processes             schedule/lease.h        gpuhal_lease_acquire()
 *  list all GPUs, usable or not              view.h, node/hardware.h gpuhal_view_get()
 *  read the record of the machine            node/registry.h         gpuhal_view_read()
 *  read values over time                     node/sampler.h          gpuhal_sampler_create()
 *  write a plugin                            plugin.h                GPUHAL_PLUGIN_QUERY()
 *  call a plugin without the core            direct.h                gpuhal_direct_load()
 */

#endif
