/* tests/rules/abi_layout_test.c: sizes and offsets in all structures of the plugin interface, for ABI 0.3 on LP64
 * systems.
 *
 * The numbers are part of the contract, since a plugin built for another layout reads garbage. While the ABI is 0.x, a
 * change here needs a new minor number and a line in the change log of docs/plugin-abi.md. From ABI 1.0 on, lines may
 * only be added. If this file fails to compile, the layout has changed. */
#include <gpuhal/plugin.h>

#include <stdio.h>

#if UINTPTR_MAX == UINT64_MAX

_Static_assert(GPUHAL_ABI == 0x00000003, "these are the layouts of ABI 0.3");

#define AT(type, member, offset) _Static_assert(offsetof(type, member) == (offset), #type "." #member " has moved")
#define SIZE(type, bytes)        _Static_assert(sizeof(type) == (bytes), "the size of " #type " has changed")

AT(gpuhal_handle, size, 0);
AT(gpuhal_handle, kind, 4);
AT(gpuhal_handle, as, 8);
SIZE(gpuhal_handle, 72);

AT(gpuhal_native, size, 0);
AT(gpuhal_native, type, 4);
AT(gpuhal_native, typed, 8);
AT(gpuhal_native, values, 16);
SIZE(gpuhal_native, 48);

AT(gpuhal_symbol, name, 0);
AT(gpuhal_symbol, slot, 8);
AT(gpuhal_symbol, required, 16);
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
AT(gpuhal_memory, object, 8);
AT(gpuhal_memory, bytes, 16);
AT(gpuhal_memory, address, 24);
AT(gpuhal_memory, host, 32);
SIZE(gpuhal_memory, 40);

AT(gpuhal_alloc, size, 0);
AT(gpuhal_alloc, kind, 4);
AT(gpuhal_alloc, bytes, 8);
AT(gpuhal_alloc, alignment, 16);
AT(gpuhal_alloc, export_kinds, 24);
AT(gpuhal_alloc, peer_count, 28);
AT(gpuhal_alloc, peers, 32);
AT(gpuhal_alloc, import, 40);
AT(gpuhal_alloc, import_offset, 112);
AT(gpuhal_alloc, flags, 120);
AT(gpuhal_alloc, reserved, 124);
SIZE(gpuhal_alloc, 128);

AT(gpuhal_plugin_rect, memory, 0);
AT(gpuhal_plugin_rect, host, 8);
AT(gpuhal_plugin_rect, offset, 16);
AT(gpuhal_plugin_rect, row_pitch, 24);
AT(gpuhal_plugin_rect, slice_pitch, 32);
SIZE(gpuhal_plugin_rect, 40);

AT(gpuhal_code, size, 0);
AT(gpuhal_code, flags, 4);
AT(gpuhal_code, format, 8);
AT(gpuhal_code, target, 16);
AT(gpuhal_code, code, 24);
AT(gpuhal_code, bytes, 32);
AT(gpuhal_code, options, 40);
SIZE(gpuhal_code, 48);

AT(gpuhal_host_group, size, 0);
AT(gpuhal_host_group, group, 4);
AT(gpuhal_host_group, groups, 16);
AT(gpuhal_host_group, group_size, 28);
AT(gpuhal_host_group, local, 40);
SIZE(gpuhal_host_group, 48);

AT(gpuhal_host_function, name, 0);
AT(gpuhal_host_function, run, 8);
SIZE(gpuhal_host_function, 16);

AT(gpuhal_parameter, kind, 0);
AT(gpuhal_parameter, bytes, 4);
AT(gpuhal_parameter, access, 8);
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
AT(gpuhal_kernel_desc, constants, 48);
SIZE(gpuhal_kernel_desc, 56);

AT(gpuhal_kernel_info, size, 0);
AT(gpuhal_kernel_info, parameter_count, 4);
AT(gpuhal_kernel_info, parameters, 8);
AT(gpuhal_kernel_info, group_size, 16);
AT(gpuhal_kernel_info, group_size_max, 28);
AT(gpuhal_kernel_info, group_multiple, 32);
AT(gpuhal_kernel_info, subgroup_size, 36);
AT(gpuhal_kernel_info, groups_max, 40);
AT(gpuhal_kernel_info, registers, 52);
AT(gpuhal_kernel_info, local_bytes, 56);
AT(gpuhal_kernel_info, local_max_bytes, 64);
AT(gpuhal_kernel_info, private_bytes, 72);
AT(gpuhal_kernel_info, flags, 80);
AT(gpuhal_kernel_info, reserved, 84);
SIZE(gpuhal_kernel_info, 88);

AT(gpuhal_plugin_argument, kind, 0);
AT(gpuhal_plugin_argument, access, 4);
AT(gpuhal_plugin_argument, memory, 8);
AT(gpuhal_plugin_argument, offset, 16);
AT(gpuhal_plugin_argument, bytes, 24);
AT(gpuhal_plugin_argument, value, 32);
SIZE(gpuhal_plugin_argument, 40);

AT(gpuhal_plugin_launch, size, 0);
AT(gpuhal_plugin_launch, argument_count, 4);
AT(gpuhal_plugin_launch, arguments, 8);
AT(gpuhal_plugin_launch, groups, 16);
AT(gpuhal_plugin_launch, local_bytes, 28);
AT(gpuhal_plugin_launch, uses, 32);
AT(gpuhal_plugin_launch, uses_count, 40);
SIZE(gpuhal_plugin_launch, 48);

AT(gpuhal_plugin_build, size, 0);
AT(gpuhal_plugin_build, compiled, 8);
AT(gpuhal_plugin_build, compiled_bytes, 16);
AT(gpuhal_plugin_build, used_compiled, 24);
AT(gpuhal_plugin_build, user, 32);
AT(gpuhal_plugin_build, log, 40);
SIZE(gpuhal_plugin_build, 48);

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
AT(gpuhal_ops, queue_create, 128);
AT(gpuhal_ops, queue_destroy, 136);
AT(gpuhal_ops, queue_flush, 144);
AT(gpuhal_ops, event_create, 152);
AT(gpuhal_ops, event_destroy, 160);
AT(gpuhal_ops, event_record, 168);
AT(gpuhal_ops, event_query, 176);
AT(gpuhal_ops, event_block, 184);
AT(gpuhal_ops, event_notify, 192);
AT(gpuhal_ops, queue_wait, 200);
AT(gpuhal_ops, elapsed, 208);
AT(gpuhal_ops, peer_enable, 216);
AT(gpuhal_ops, peer_disable, 224);
AT(gpuhal_ops, peer_copy, 232);
AT(gpuhal_ops, range_granularity, 240);
AT(gpuhal_ops, range_reserve, 248);
AT(gpuhal_ops, range_commit, 256);
AT(gpuhal_ops, range_decommit, 264);
AT(gpuhal_ops, range_release, 272);
AT(gpuhal_ops, program_load, 280);
AT(gpuhal_ops, program_unload, 288);
AT(gpuhal_ops, kernel_create, 296);
AT(gpuhal_ops, kernel_destroy, 304);
AT(gpuhal_ops, launch, 312);
AT(gpuhal_ops, program_compiled, 320);
AT(gpuhal_ops, native_device, 328);
AT(gpuhal_ops, native_memory, 336);
AT(gpuhal_ops, native_queue, 344);
AT(gpuhal_ops, native_event, 352);
AT(gpuhal_ops, wrap_memory, 360);
AT(gpuhal_ops, native_lock, 368);
AT(gpuhal_ops, native_unlock, 376);
SIZE(gpuhal_ops, 384);

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

/* The structures of a plugin may be shorter than gpuhal_plugin and gpuhal_ops, but must have at least these sizes. */
_Static_assert(GPUHAL_PLUGIN_MINIMUM == 72, "the mandatory part of gpuhal_plugin has changed");
_Static_assert(GPUHAL_OPS_MINIMUM == 32, "the mandatory part of gpuhal_ops has changed");
_Static_assert(sizeof(gpuhal_ops) <= GPUHAL_OPS_SPACE,
               "gpuhal_ops has outgrown the area that describe() and open() are given");
_Static_assert(GPUHAL_OPS_SPACE == 1024, "plugins rely on this much room");

#endif

int main(void)
{
#if UINTPTR_MAX == UINT64_MAX
    puts("the layouts are those of ABI 0.3");
    return 0;
#else
    puts("skipped: the layouts are pinned for LP64 systems only");
    return 77;
#endif
}
