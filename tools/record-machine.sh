#!/bin/sh
# Records a machine for the tests: the files in /sys, /proc, /dev and /etc that gpuhal reads, as one text file.
#
#     sh tools/record-machine.sh FOLDER [ROOT]      writes FOLDER/tree, and FOLDER/machine to be completed
#
# ROOT replaces `/`. The script calls no driver, opens no device, and reads no file that would wake a sleeping GPU. The
# host name, serial numbers, network addresses and users are omitted or replaced. UUIDs and unique chip numbers are
# replaced consistently. tests/recorded/README.md documents the format and the next steps.
set -u
LC_ALL=C
export LC_ALL
root=${2:-}
root=${root%/}

if [ $# -lt 1 ] || [ $# -gt 2 ] || [ -e "$1/tree" ] || { [ -n "${2:-}" ] && [ ! -d "$2/sys" ]; }; then
    echo "Usage: sh record-machine.sh FOLDER [ROOT]     FOLDER/tree must not be there yet, ROOT/sys must" >&2
    exit 2
fi

# ---- entries

# Prints the path of a directory on the machine, with all links resolved.
place_of() { (cd -P "$root$1" 2>/dev/null && pwd -P) | sed "s|^$real_root||"; }

# Begins the entries of a directory.
at() { printf 'at %s\n' "$1"; where=$1; }

# Prints a single line as an entry, and several lines as a block.
entry() { # NAME CONTENTS
    case $2 in
    '') printf ' %s =\n' "$1" ;;
    *'
'*) printf ' %s:\n' "$1"; printf '%s\n' "$2" | sed 's/^/ | /; s/ | $/ |/' ;;
    *) printf ' %s = %s\n' "$1" "$2" ;;
    esac
}

text() { # NAME..., below the directory
    for name; do
        if [ -f "$root$where/$name" ] && contents=$(tr -d '\000-\010\013-\037\177' < "$root$where/$name" 2>/dev/null); then
            entry "$name" "$contents"
        fi
    done
}

bytes() { # NAME COUNT
    if [ -r "$root$where/$1" ]; then
        hex=$(dd if="$root$where/$1" bs="$2" count=1 2>/dev/null | od -An -v -tx1 | tr -d ' \n')
        [ -z "$hex" ] || printf ' %s hex %s\n' "$1" "$hex"
    fi
}

link() { # NAME..., to directories
    for name; do
        [ ! -d "$root$where/$name" ] || printf ' %s -> %s\n' "$name" "$(place_of "$where/$name")"
    done
}

# Prints the names in the directory that match a pattern; prints nothing for a pattern without a match.
names() { (cd "$root$where" 2>/dev/null && for one in $1; do [ ! -e "$one" ] || echo "$one"; done); }

# ---- the host

record_host() {
    at /etc
    entry os-release "$(grep '^PRETTY_NAME=' "$root/etc/os-release" 2>/dev/null)"
    at /proc
    entry sys/kernel/hostname recorded
    entry sys/kernel/random/boot_id 00000000-0000-4000-8000-000000000000
    text sys/kernel/osrelease
    entry cpuinfo "$(sed -n '/^$/q; /^[Ss]erial/d; p' "$root/proc/cpuinfo" 2>/dev/null)"
    entry meminfo "$(grep -E '^Mem(Total|Free|Available):' "$root/proc/meminfo" 2>/dev/null)"
    [ ! -r "$root/proc/stat" ] || entry stat "$(grep '^cpu ' "$root/proc/stat")"
    # Records only the parts of the control group and the mounts that distinguish a container or pod from a host.
    entry self/cgroup "0::/$(grep -oE 'user\.slice|kubepods|docker|libpod|containerd|lxc|crio' "$root/proc/self/cgroup" 2>/dev/null | head -n 1)"
    entry self/mountinfo "$(awk '$5 ~ /^\/(etc\/(hosts|hostname|resolv.conf)|dev\/termination-log)$/ {
        if (match($4, /kubelet\/pods|docker|containers\/storage|overlay-containers|containerd|enroot/))
            print "1 1 0:1 /" substr($4, RSTART, RLENGTH) "/ " $5 " rw - ext4 /dev/disk rw" }' "$root/proc/self/mountinfo" 2>/dev/null)"
    at /
    for sign in .dockerenv run/.containerenv run/systemd/container; do
        [ ! -e "$root/$sign" ] || printf ' %s =\n' "$sign"
    done
    at /sys/devices/system
    text cpu/online cpu/possible node/has_memory
    text $(names 'node/node*/cpulist') $(names 'cpu/cpu*/cpufreq/cpuinfo_max_freq') $(names 'cpu/cpu*/cpufreq/scaling_cur_freq')
    where=/sys/devices/system/node
    [ ! -r "$root$where/online" ] || printf 'online %s\n' "$(cat "$root$where/online")"
    at /sys/class/thermal
    for zone in $(names 'thermal_zone*'); do text "$zone/type" "$zone/temp"; done
    at /sys/class/powercap
    for zone in $(names '*-rapl:*'); do text "$zone/name" "$zone/energy_uj" "$zone/max_energy_range_uj"; done
    at /sys/class/hwmon
    for sensor in $(names 'hwmon*'); do
        case $(cat "$root$where/$sensor/name" 2>/dev/null) in
        coretemp | k10temp | zenpower) text "$sensor/name" $(names "$sensor/temp*") ;;
        esac
    done
}

# Records the files of the kernel drivers, the existing device nodes, and the nodes (except nvidia-caps) that this user
# may not open.
record_drivers() {
    at /sys/module
    for module in nvidia nvidia_uvm nvgpu amdgpu i915 xe nouveau; do text "$module/version" "$module/initstate"; done
    at /proc/driver
    text nvidia/version nvidia-caps/mig-minors
    for file in $(names 'nvidia/gpus/*/information') $(cd "$root$where" 2>/dev/null && find nvidia/capabilities -type f 2>/dev/null); do
        text "$file"
    done
    at /dev
    for node in $(names 'nvidia*') $(names 'nvidia-caps/*') $(names 'dri/card*') $(names 'dri/renderD*') $(names kfd) $(names dxg); do
        [ -d "$root$where/$node" ] || entry "$node" ''
    done
    for node in $(names 'nvidia*') $(names 'dri/card*') $(names 'dri/renderD*') $(names kfd) $(names dxg); do
        [ -d "$root$where/$node" ] || { [ -r "$root$where/$node" ] && [ -w "$root$where/$node" ]; } || printf 'mode 0000 /dev/%s\n' "$node"
    done
}

# ---- devices

# Records files that the kernel provides without accessing the device.
record_static() {
    text class vendor device subsystem_vendor subsystem_device revision local_cpulist power/runtime_status
    link driver physfn
    for node in $(names 'drm/card[0-9]*') $(names 'drm/renderD*'); do
        case $node in *-*) continue ;; esac
        text "$node/dev"
        link "$node/device"
        printf ' /sys/class/drm/%s -> %s/%s\n' "${node#drm/}" "$where" "$node"
    done
    for sensor in $(names 'hwmon/hwmon*'); do
        text "$sensor/name"
        printf ' /sys/class/hwmon/%s -> %s/%s\n' "${sensor#hwmon/}" "$where" "$sensor"
    done
}

# Records files that access the device when they are read; only for devices that are awake.
record_values() {
    text current_link_speed current_link_width max_link_speed max_link_width pcie_replay_count gpu_stats
    text $(names 'mem_info_*') $(names '*busy_percent') $(names '*_compute_partition') $(names '*_memory_partition') ras/umc_err_count
    bytes config 4
    bytes gpu_metrics 4096
    for sensor in $(names 'hwmon/hwmon*'); do
        for value in temp power fan pwm freq energy in; do text $(names "$sensor/$value[0-9]*"); done
    done
    text $(names 'drm/card*/gt_*_freq_mhz') $(names 'tile*/gt*/freq0/*_freq')
}

# Replaces a chip's unique number with its address.
record_unique() { # ADDRESS
    [ ! -r "$root$where/unique_id" ] || printf ' unique_id = 00000000%s\n' "$(printf '%s' "${1%.*}" | tr -d ':')00"
}

record_pci() {
    for device in "$root"/sys/bus/pci/devices/*; do
        case $(cat "$device/class" 2>/dev/null) in
        0x03* | 0x12*) ;;
        *) continue ;;
        esac
        address=${device##*/}
        where=$(place_of "/sys/bus/pci/devices/$address")
        printf 'device %s %s\n' "${where#/sys}" "$(cat "$device/numa_node" 2>/dev/null || echo -1)"
        record_static
        case $(cat "$device/power/runtime_status" 2>/dev/null) in suspend*) continue ;; esac
        record_values
        record_unique "$address"
    done
}

# Records GPUs that are part of a system on a chip, and their partitions.
record_platform() {
    for node in "$root"/sys/class/drm/renderD*; do
        [ -d "$node/device" ] && [ "$(basename "$(place_of "/sys/class/drm/${node##*/}/device/subsystem")")" = platform ] || continue
        at "$(place_of "/sys/class/drm/${node##*/}/device")"
        link subsystem
        record_static
        text of_node/compatible
        case $(cat "$root$where/power/runtime_status" 2>/dev/null) in suspend*) continue ;; esac
        record_values
    done
}

# Records Tegra GPUs, which have no render node.
record_tegra() {
    for node in "$root"/sys/bus/platform/drivers/gk20a/*; do
        [ -d "$node/power" ] || continue
        at "$(place_of "/sys/bus/platform/drivers/gk20a/${node##*/}")"
        record_static
        text of_node/compatible
        printf ' /sys/bus/platform/drivers/gk20a/%s -> %s\n' "${node##*/}" "$where"
        case $(cat "$root$where/power/runtime_status" 2>/dev/null) in suspend*) continue ;; esac
        text load $(names 'devfreq/*/cur_freq') $(names 'devfreq/*/max_freq')
    done
}

record_kfd() {
    for node in "$root"/sys/class/kfd/kfd/topology/nodes/*; do
        [ -r "$node/properties" ] || continue
        at "/sys/class/kfd/kfd/topology/nodes/${node##*/}"
        text gpu_id
        entry properties "$(awk '
            $1 == "location_id" { place = $2 - $2 % 8 }
            $1 == "domain" { domain = $2 }
            $1 == "unique_id" && $2 != 0 { hidden = 1; next }
            $1 != "unique_id" || $2 == 0
            END { if (hidden) printf "unique_id %.0f\n", domain * 65536 + place }' "$node/properties")"
    done
}

# Records the names of these devices if a list of PCI ids is installed.
record_names() {
    for list in /usr/share/misc/pci.ids /usr/share/hwdata/pci.ids; do
        [ -r "$root$list" ] || continue
        at "${list%/*}"
        entry pci.ids "$(for device in "$root"/sys/bus/pci/devices/*; do
            case $(cat "$device/class") in
            0x03* | 0x12*) printf '%s %s\n' "$(cat "$device/vendor")" "$(cat "$device/device")" ;;
            esac
        done | sed 's/0x//g' | awk -v list="$root$list" '
            { vendor[$1] = 1; wanted[$1 " " $2] = 1 }
            END { while ((getline line < list) > 0)
                      if (line ~ /^[0-9a-f]/) { now = substr(line, 1, 4); if (now in vendor) print line }
                      else if (line ~ /^\t[0-9a-f]/ && ((now " " substr(line, 2, 4)) in wanted)) print line }')"
        return
    done
}

# ---- removing the machine's identity

hide() {
    awk '
        function number(uuid) { if (!(uuid in known)) known[uuid] = sprintf("00000000-0000-4000-8000-%012d", ++count); return known[uuid] }
        { rest = $0; line = ""
          while (match(rest, /[0-9a-fA-F]+-[0-9a-fA-F]+-[0-9a-fA-F]+-[0-9a-fA-F]+-[0-9a-fA-F]+/)) {
              found = substr(rest, RSTART, RLENGTH)
              split(found, part, "-")
              is_uuid = length(found) == 36 && length(part[1]) == 8 && length(part[2]) == 4
              line = line substr(rest, 1, RSTART - 1) (is_uuid && found !~ /^0+-0+-4000/ ? number(tolower(found)) : found)
              rest = substr(rest, RSTART + RLENGTH)
          }
          line = line rest
          print line }'
}

real_root=
[ -z "$root" ] || real_root=$(cd -P "$root" && pwd -P)
mkdir -p "$1" || exit 1
{
    printf '# Recorded by tools/record-machine.sh.\n'
    record_host
    record_names
    record_drivers
    record_pci
    record_platform
    record_tegra
    record_kfd
} | hide > "$1/tree" || exit 1
[ -e "$1/machine" ] || cat > "$1/machine" <<'EOF'
# What this machine is, in a sentence.
[source]
Recorded by tools/record-machine.sh.

[libraries]
EOF
echo "recorded: $1/tree; complete $1/machine, and read both before you pass them on" >&2
