/* tests/rules/abi_layout_test.c: sizes and offsets in all structures of the plugin interface, for ABI 0.4 on LP64
 * systems, and of 64-bit members on all systems.
 *
 * The numbers are part of the contract, since a plugin built for another layout reads garbage. While the ABI is 0.x, a
 * change here needs a new minor number and a line in the change log of docs/plugin-abi.md. From ABI 1.0 on, lines may
 * only be added. If this file fails to compile, the layout has changed. */
#include <gpuhal/plugin.h>

#include <stdio.h>

#define AT(type, member, offset) _Static_assert(offsetof(type, member) == (offset), #type "." #member " has moved")
#define SIZE(type, bytes)        _Static_assert(sizeof(type) == (bytes), "the size of " #type " has changed")

/* 64-bit members come before pointers, so these offsets are the same with pointers of 32 bits. They are multiples of 8,
 * so they do not depend on the alignment that a system gives to 64-bit integers. */
AT(gpuhal_native, values, 8);
AT(gpuhal_plugin_process, memory_bytes, 16);
AT(gpuhal_memory, bytes, 8);
AT(gpuhal_memory, address, 16);
AT(gpuhal_alloc, bytes, 8);
AT(gpuhal_alloc, alignment, 16);
AT(gpuhal_alloc, import_offset, 24);
AT(gpuhal_alloc, reserved, 32);
AT(gpuhal_plugin_rect, offset, 0);
AT(gpuhal_plugin_rect, row_pitch, 8);
AT(gpuhal_plugin_rect, slice_pitch, 16);
AT(gpuhal_plugin_rect, reserved, 24);
AT(gpuhal_code, bytes, 8);
AT(gpuhal_constant, value, 8);
AT(gpuhal_kernel_info, local_bytes, 8);
AT(gpuhal_kernel_info, local_max_bytes, 16);
AT(gpuhal_kernel_info, private_bytes, 24);
AT(gpuhal_plugin_argument, offset, 8);
AT(gpuhal_plugin_argument, bytes, 16);
AT(gpuhal_plugin_argument, reserved, 24);
AT(gpuhal_plugin_step, to_offset, 24);
AT(gpuhal_plugin_step, from_offset, 32);
AT(gpuhal_plugin_step, bytes, 40);
AT(gpuhal_plugin_step, reserved2, 48);
AT(gpuhal_plugin_build, compiled_bytes, 8);

#if UINTPTR_MAX == UINT64_MAX

_Static_assert(GPUHAL_ABI == 0x00000004, "these are the layouts of ABI 0.4");

AT(gpuhal_handle, size, 0);
AT(gpuhal_handle, kind, 4);
AT(gpuhal_handle, as, 8);
SIZE(gpuhal_handle, 72);

AT(gpuhal_native, size, 0);
AT(gpuhal_native, type, 4);
AT(gpuhal_native, values, 8);
AT(gpuhal_native, typed, 40);
SIZE(gpuhal_native, 48);

AT(gpuhal_symbol, name, 0);
AT(gpuhal_symbol, slot, 8);
AT(gpuhal_symbol, required, 16);
AT(gpuhal_symbol, reserved, 20);
SIZE(gpuhal_symbol, 24);

AT(gpuhal_host, size, 0);
AT(gpuhal_host, abi, 4);
AT(gpuhal_host, log, 8);
AT(gpuhal_host, report, 16);
AT(gpuhal_host, device, 24);
AT(gpuhal_host, u64, 32);
AT(gpuhal_host, text, 40);
AT(gpuhal_host, missing, 48);
AT(gpuhal_host, option, 56);
AT(gpuhal_host, library, 64);
AT(gpuhal_host, changed, 72);
AT(gpuhal_host, query_extension, 80);
AT(gpuhal_host, source, 88);
AT(gpuhal_host, process, 96);
SIZE(gpuhal_host, 104);

AT(gpuhal_plugin_process, size, 0);
AT(gpuhal_plugin_process, flags, 4);
AT(gpuhal_plugin_process, pid, 8);
AT(gpuhal_plugin_process, busy_permille, 12);
AT(gpuhal_plugin_process, memory_bytes, 16);
AT(gpuhal_plugin_process, name, 24);
SIZE(gpuhal_plugin_process, 32);

AT(gpuhal_memory, size, 0);
AT(gpuhal_memory, flags, 4);
AT(gpuhal_memory, bytes, 8);
AT(gpuhal_memory, address, 16);
AT(gpuhal_memory, object, 24);
AT(gpuhal_memory, host, 32);
SIZE(gpuhal_memory, 40);

AT(gpuhal_alloc, size, 0);
AT(gpuhal_alloc, kind, 4);
AT(gpuhal_alloc, bytes, 8);
AT(gpuhal_alloc, alignment, 16);
AT(gpuhal_alloc, import_offset, 24);
AT(gpuhal_alloc, reserved, 32);
AT(gpuhal_alloc, export_kinds, 48);
AT(gpuhal_alloc, flags, 52);
AT(gpuhal_alloc, peer_count, 56);
AT(gpuhal_alloc, reserved2, 60);
AT(gpuhal_alloc, peers, 64);
AT(gpuhal_alloc, handle, 72);
SIZE(gpuhal_alloc, 144);

AT(gpuhal_plugin_rect, offset, 0);
AT(gpuhal_plugin_rect, row_pitch, 8);
AT(gpuhal_plugin_rect, slice_pitch, 16);
AT(gpuhal_plugin_rect, reserved, 24);
AT(gpuhal_plugin_rect, memory, 32);
AT(gpuhal_plugin_rect, host, 40);
SIZE(gpuhal_plugin_rect, 48);

AT(gpuhal_code, size, 0);
AT(gpuhal_code, flags, 4);
AT(gpuhal_code, bytes, 8);
AT(gpuhal_code, format, 16);
AT(gpuhal_code, target, 24);
AT(gpuhal_code, code, 32);
AT(gpuhal_code, options, 40);
SIZE(gpuhal_code, 48);

AT(gpuhal_host_group, size, 0);
AT(gpuhal_host_group, group, 4);
AT(gpuhal_host_group, groups, 16);
AT(gpuhal_host_group, group_size, 28);
AT(gpuhal_host_group, local, 40);
AT(gpuhal_host_group, offset, 48);
AT(gpuhal_host_group, full_size, 60);
SIZE(gpuhal_host_group, 72);

AT(gpuhal_host_function, name, 0);
AT(gpuhal_host_function, run, 8);
SIZE(gpuhal_host_function, 16);

AT(gpuhal_parameter, kind, 0);
AT(gpuhal_parameter, bytes, 4);
AT(gpuhal_parameter, access, 8);
AT(gpuhal_parameter, flags, 12);
SIZE(gpuhal_parameter, 16);

AT(gpuhal_constant, id, 0);
AT(gpuhal_constant, bytes, 4);
AT(gpuhal_constant, value, 8);
SIZE(gpuhal_constant, 16);

AT(gpuhal_kernel_desc, size, 0);
AT(gpuhal_kernel_desc, parameter_count, 4);
AT(gpuhal_kernel_desc, name, 8);
AT(gpuhal_kernel_desc, parameters, 16);
AT(gpuhal_kernel_desc, group_size, 24);
AT(gpuhal_kernel_desc, subgroup_size, 36);
AT(gpuhal_kernel_desc, constant_count, 40);
AT(gpuhal_kernel_desc, reserved, 44);
AT(gpuhal_kernel_desc, constants, 48);
SIZE(gpuhal_kernel_desc, 56);

AT(gpuhal_kernel_info, size, 0);
AT(gpuhal_kernel_info, parameter_count, 4);
AT(gpuhal_kernel_info, local_bytes, 8);
AT(gpuhal_kernel_info, local_max_bytes, 16);
AT(gpuhal_kernel_info, private_bytes, 24);
AT(gpuhal_kernel_info, group_size, 32);
AT(gpuhal_kernel_info, group_size_max, 44);
AT(gpuhal_kernel_info, group_multiple, 48);
AT(gpuhal_kernel_info, subgroup_size, 52);
AT(gpuhal_kernel_info, groups_max, 56);
AT(gpuhal_kernel_info, registers, 68);
AT(gpuhal_kernel_info, flags, 72);
AT(gpuhal_kernel_info, reserved, 76);
AT(gpuhal_kernel_info, parameters, 80);
SIZE(gpuhal_kernel_info, 88);

AT(gpuhal_plugin_argument, kind, 0);
AT(gpuhal_plugin_argument, access, 4);
AT(gpuhal_plugin_argument, offset, 8);
AT(gpuhal_plugin_argument, bytes, 16);
AT(gpuhal_plugin_argument, reserved, 24);
AT(gpuhal_plugin_argument, memory, 40);
AT(gpuhal_plugin_argument, value, 48);
SIZE(gpuhal_plugin_argument, 56);

AT(gpuhal_plugin_launch, size, 0);
AT(gpuhal_plugin_launch, argument_count, 4);
AT(gpuhal_plugin_launch, groups, 8);
AT(gpuhal_plugin_launch, group_size, 20);
AT(gpuhal_plugin_launch, offset, 32);
AT(gpuhal_plugin_launch, local_bytes, 44);
AT(gpuhal_plugin_launch, uses_count, 48);
AT(gpuhal_plugin_launch, reserved, 52);
AT(gpuhal_plugin_launch, threads, 56);
AT(gpuhal_plugin_launch, indirect_offset, 80);
AT(gpuhal_plugin_launch, arguments, 88);
AT(gpuhal_plugin_launch, uses, 96);
AT(gpuhal_plugin_launch, indirect, 104);
SIZE(gpuhal_plugin_launch, 112);

AT(gpuhal_plugin_step, kind, 0);
AT(gpuhal_plugin_step, index, 4);
AT(gpuhal_plugin_step, flags, 8);
AT(gpuhal_plugin_step, pattern, 12);
AT(gpuhal_plugin_step, pattern_bytes, 16);
AT(gpuhal_plugin_step, reserved, 20);
AT(gpuhal_plugin_step, to_offset, 24);
AT(gpuhal_plugin_step, from_offset, 32);
AT(gpuhal_plugin_step, bytes, 40);
AT(gpuhal_plugin_step, reserved2, 48);
AT(gpuhal_plugin_step, to, 64);
AT(gpuhal_plugin_step, from, 72);
AT(gpuhal_plugin_step, kernel, 80);
AT(gpuhal_plugin_step, launch, 88);
SIZE(gpuhal_plugin_step, 96);

AT(gpuhal_plugin_build, size, 0);
AT(gpuhal_plugin_build, used_compiled, 4);
AT(gpuhal_plugin_build, compiled_bytes, 8);
AT(gpuhal_plugin_build, compiled, 16);
AT(gpuhal_plugin_build, user, 24);
AT(gpuhal_plugin_build, log, 32);
SIZE(gpuhal_plugin_build, 40);

AT(gpuhal_plugin_queue_desc, size, 0);
AT(gpuhal_plugin_queue_desc, flags, 4);
AT(gpuhal_plugin_queue_desc, priority, 8);
AT(gpuhal_plugin_queue_desc, reserved, 12);
AT(gpuhal_plugin_queue_desc, adopt, 16);
SIZE(gpuhal_plugin_queue_desc, 24);

AT(gpuhal_plugin_event_desc, size, 0);
AT(gpuhal_plugin_event_desc, flags, 4);
SIZE(gpuhal_plugin_event_desc, 8);

AT(gpuhal_ops, size, 0);
AT(gpuhal_ops, reserved, 4);
AT(gpuhal_ops, allocate, 8);
AT(gpuhal_ops, release, 16);
AT(gpuhal_ops, copy, 24);
AT(gpuhal_ops, write, 32);
AT(gpuhal_ops, read, 40);
AT(gpuhal_ops, fill, 48);
AT(gpuhal_ops, copy_rect, 56);
AT(gpuhal_ops, memory_flush, 64);
AT(gpuhal_ops, memory_invalidate, 72);
AT(gpuhal_ops, query_health, 80);
AT(gpuhal_ops, register_host, 88);
AT(gpuhal_ops, unregister_host, 96);
AT(gpuhal_ops, map, 104);
AT(gpuhal_ops, unmap, 112);
AT(gpuhal_ops, export_memory, 120);
AT(gpuhal_ops, queues, 128);
AT(gpuhal_ops, peers, 136);
AT(gpuhal_ops, ranges, 144);
AT(gpuhal_ops, programs, 152);
AT(gpuhal_ops, native, 160);
AT(gpuhal_ops, recordings, 168);
SIZE(gpuhal_ops, 176);

AT(gpuhal_queue_ops, size, 0);
AT(gpuhal_queue_ops, version, 4);
AT(gpuhal_queue_ops, queue_create, 8);
AT(gpuhal_queue_ops, queue_destroy, 16);
AT(gpuhal_queue_ops, queue_flush, 24);
AT(gpuhal_queue_ops, event_create, 32);
AT(gpuhal_queue_ops, event_destroy, 40);
AT(gpuhal_queue_ops, event_record, 48);
AT(gpuhal_queue_ops, event_query, 56);
AT(gpuhal_queue_ops, event_block, 64);
AT(gpuhal_queue_ops, event_notify, 72);
AT(gpuhal_queue_ops, queue_wait, 80);
AT(gpuhal_queue_ops, elapsed, 88);
SIZE(gpuhal_queue_ops, 96);

AT(gpuhal_peer_ops, size, 0);
AT(gpuhal_peer_ops, version, 4);
AT(gpuhal_peer_ops, peer_enable, 8);
AT(gpuhal_peer_ops, peer_disable, 16);
AT(gpuhal_peer_ops, peer_copy, 24);
SIZE(gpuhal_peer_ops, 32);

AT(gpuhal_range_ops, size, 0);
AT(gpuhal_range_ops, version, 4);
AT(gpuhal_range_ops, range_granularity, 8);
AT(gpuhal_range_ops, range_reserve, 16);
AT(gpuhal_range_ops, range_commit, 24);
AT(gpuhal_range_ops, range_decommit, 32);
AT(gpuhal_range_ops, range_release, 40);
SIZE(gpuhal_range_ops, 48);

AT(gpuhal_program_ops, size, 0);
AT(gpuhal_program_ops, version, 4);
AT(gpuhal_program_ops, program_load, 8);
AT(gpuhal_program_ops, program_unload, 16);
AT(gpuhal_program_ops, kernel_create, 24);
AT(gpuhal_program_ops, kernel_destroy, 32);
AT(gpuhal_program_ops, launch, 40);
AT(gpuhal_program_ops, program_compiled, 48);
AT(gpuhal_program_ops, kernel_prepare, 56);
SIZE(gpuhal_program_ops, 64);

AT(gpuhal_native_ops, size, 0);
AT(gpuhal_native_ops, version, 4);
AT(gpuhal_native_ops, native_device, 8);
AT(gpuhal_native_ops, native_memory, 16);
AT(gpuhal_native_ops, native_queue, 24);
AT(gpuhal_native_ops, native_event, 32);
AT(gpuhal_native_ops, wrap_memory, 40);
AT(gpuhal_native_ops, native_lock, 48);
AT(gpuhal_native_ops, native_unlock, 56);
SIZE(gpuhal_native_ops, 64);

AT(gpuhal_recording_ops, size, 0);
AT(gpuhal_recording_ops, version, 4);
AT(gpuhal_recording_ops, recording_create, 8);
AT(gpuhal_recording_ops, recording_set, 16);
AT(gpuhal_recording_ops, recording_run, 24);
AT(gpuhal_recording_ops, recording_destroy, 32);
SIZE(gpuhal_recording_ops, 40);

AT(gpuhal_plugin, size, 0);
AT(gpuhal_plugin, abi, 4);
AT(gpuhal_plugin, flags, 8);
AT(gpuhal_plugin, reserved, 12);
AT(gpuhal_plugin, name, 16);
AT(gpuhal_plugin, version, 24);
AT(gpuhal_plugin, start, 32);
AT(gpuhal_plugin, enumerate, 40);
AT(gpuhal_plugin, describe, 48);
AT(gpuhal_plugin, open, 56);
AT(gpuhal_plugin, close, 64);
AT(gpuhal_plugin, sample, 72);
AT(gpuhal_plugin, link, 80);
AT(gpuhal_plugin, query_extension, 88);
AT(gpuhal_plugin, stop, 96);
AT(gpuhal_plugin, processes, 104);
SIZE(gpuhal_plugin, 112);

/* The structures of a plugin may be shorter than those of this header, but must have at least these sizes. */
_Static_assert(GPUHAL_PLUGIN_MINIMUM == 72, "the mandatory part of gpuhal_plugin has changed");
_Static_assert(GPUHAL_OPS_MINIMUM == 32, "the mandatory part of gpuhal_ops has changed");
_Static_assert(GPUHAL_QUEUE_OPS_MINIMUM == 64, "the mandatory part of gpuhal_queue_ops has changed");
_Static_assert(GPUHAL_PEER_OPS_MINIMUM == 32, "the mandatory part of gpuhal_peer_ops has changed");
_Static_assert(GPUHAL_RANGE_OPS_MINIMUM == 48, "the mandatory part of gpuhal_range_ops has changed");
_Static_assert(GPUHAL_PROGRAM_OPS_MINIMUM == 48, "the mandatory part of gpuhal_program_ops has changed");
_Static_assert(GPUHAL_NATIVE_OPS_MINIMUM == 8, "the mandatory part of gpuhal_native_ops has changed");
_Static_assert(GPUHAL_RECORDING_OPS_MINIMUM == 40, "the mandatory part of gpuhal_recording_ops has changed");

#endif

int main(void)
{
#if UINTPTR_MAX == UINT64_MAX
    puts("the layouts are those of ABI 0.4");
    return 0;
#else
    puts("skipped: the layouts are pinned for LP64 systems only");
    return 77;
#endif
}
