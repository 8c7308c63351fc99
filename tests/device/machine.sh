#!/bin/sh
# tests/device/machine.sh: prints facts about a machine that may explain a failure or a low speed, so that a second
# visit is not necessary. It requires only a shell, skips missing files and programs, and changes nothing.
# tests/device/run.sh writes this output to log.txt.
set -u

part() { printf '\n-- %s\n' "$*"; }

# show COMMAND…: prints at most 300 lines of the command's output; stops it after ten seconds.
show() {
    command -v "$1" >/dev/null 2>&1 || return 0
    part "$*"
    timeout -k 1 10 "$@" 2>&1 </dev/null | head -n 300
}

# first_line FILE…: prints the name and the first line of each readable file.
first_line() {
    for file; do
        line=$(sed -n 1p "$file" 2>/dev/null) && [ -n "$line" ] || continue
        printf '%s: %s\n' "$file" "$line"
    done
}

part system
uname -a
cat /etc/os-release 2>/dev/null | head -n 4
first_line /proc/version /proc/uptime /proc/loadavg /sys/hypervisor/type /sys/class/dmi/id/sys_vendor \
    /sys/class/dmi/id/product_name /sys/devices/system/clocksource/clocksource0/current_clocksource

part processor
sed '/^$/q' /proc/cpuinfo 2>/dev/null
printf 'processors: %s\n' "$(nproc 2>/dev/null)"
first_line /sys/devices/system/node/online /sys/devices/system/node/node*/cpulist /sys/devices/system/cpu/smt/active \
    /sys/devices/system/cpu/cpu0/cpufreq/scaling_governor /sys/kernel/mm/transparent_hugepage/enabled
show numactl --hardware

part memory and limits
head -n 8 /proc/meminfo 2>/dev/null
grep -i huge /proc/meminfo 2>/dev/null
cat /proc/self/limits 2>/dev/null || ulimit -a
first_line /sys/fs/cgroup/memory.max /sys/fs/cgroup/cpu.max /sys/fs/cgroup/memory/memory.limit_in_bytes /proc/sys/vm/overcommit_memory \
    /proc/sys/vm/max_map_count /proc/sys/kernel/yama/ptrace_scope
grep -E '^(Cap|Seccomp|NoNewPrivs)' /proc/self/status 2>/dev/null
show df -k / /tmp /dev/shm "${TMPDIR:-/tmp}"

part device files
ls -ld /dev/nvidia* /dev/nvidia-caps/* /dev/dri/* /dev/kfd /dev/shm /dev/udmabuf 2>/dev/null

part 'display and 3D controllers on the PCI bus'
for device in /sys/bus/pci/devices/*; do
    class=''
    { read -r class <"$device/class"; } 2>/dev/null || continue
    case $class in
    0x03* | 0x12*)
        first_line "$device/vendor" "$device/device" "$device/class" "$device/numa_node" "$device/local_cpulist" "$device/current_link_speed" \
            "$device/current_link_width" "$device/max_link_speed" "$device/max_link_width" "$device/power/runtime_status"
        printf '%s/driver: %s\n' "$device" "$(readlink "$device/driver" 2>/dev/null)"
        ;;
    esac
done

part "NVIDIA's kernel module"
cat /proc/driver/nvidia/version /proc/driver/nvidia/params 2>/dev/null
for file in /proc/driver/nvidia/gpus/*/information; do
    cat "$file" 2>/dev/null
done
first_line /sys/module/amdgpu/version

part libraries
PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep -E '^[[:space:]]*lib(cuda|nvidia|vulkan|OpenCL|amdhip|EGL|GLX|X11)[-_.a-z]*\.so'
ls -l /usr/local/nvidia /usr/local/nvidia/lib64 /usr/local/nvidia/lib 2>/dev/null
for file in /etc/ld.so.conf.d/* /usr/local/nvidia/share/vulkan/icd.d/* /etc/vulkan/icd.d/* /usr/share/vulkan/icd.d/* /etc/OpenCL/vendors/*; do
    [ ! -f "$file" ] || printf '%s: %s\n' "$file" "$(tr '\n' ' ' <"$file")"
done
grep nvidia /proc/mounts 2>/dev/null

part environment
env | grep -E '^(PATH|LD_|CUDA|NVIDIA|HIP_|HSA_|ROCR|VK_|OCL_|POCL|GPUHAL|TMPDIR|HOME|XDG_|CC|CFLAGS|LDFLAGS|CMAKE|LC_|LANG)[A-Za-z0-9_]*=' | sort

part tools
for tool in "${CC:-cc}" ld cmake ninja make git nvcc python3; do
    if command -v "$tool" >/dev/null 2>&1; then
        printf '%s: %s\n' "$(command -v "$tool")" "$(timeout -k 1 10 "$tool" --version 2>&1 </dev/null | grep -m 1 '[0-9]\.[0-9]')"
    else
        printf '%s: none\n' "$tool"
    fi
done

show nvidia-smi
show nvidia-smi topo -m
show nvidia-smi -q
exit 0
