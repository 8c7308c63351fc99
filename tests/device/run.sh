#!/bin/sh
# Runs all tests of this tree for a machine with a GPU in less than nine minutes:
#
#     sh tests/device/run.sh [--out FOLDER] [--quick] [--seconds N] [--step-seconds N] [--build FOLDER | --use FOLDER] [--kit FOLDER]
#                            [--set NAME=VALUE]...
#
# The script builds the tree, lists the devices, measures the speed of CUDA or HIP, and checks the rules about CUDA
# contexts and memory. It launches kernels with CUDA and HIP, runs gpuhal-check on every plugin that lists a device,
# copies between all pairs of devices, and runs the remaining measurements. The most important steps run first, because
# the time may run out. The output folder (build/device-report) contains
#
#     report.json   all results, for programs; report.schema.json beside this script describes each field
#     report.md     the same results as text
#     log.txt       a description of the machine, and the output of every step
#
# The script updates the report several times, so that a report exists even if the script is stopped early.
#
#     --quick            fewer and smaller copies; speed is not judged
#     --seconds N        time for all steps together (520); steps without time left are skipped
#     --step-seconds N   upper bound for the time limit of each step
#     --build FOLDER     where to build (build/device)
#     --use FOLDER       use this build unchanged and build nothing
#     --kit FOLDER       headers and libraries to use before the machine's own, as tests/device/pack.sh collects them
#                        (build/device-kit/<machine>, if it exists)
#     --set NAME=VALUE   an environment variable for all steps, such as GPUHAL_CUDA_LIBRARY; other GPUHAL_* variables are ignored
#
# The script requires a compiler, CMake, and make or ninja. To launch kernels with HIP it also requires hipcc, or a kit
# that was packed on a machine with hipcc. The report lists skipped steps and missing dependencies. A step that fails or
# hangs does not stop the others. The script does not use the network, writes only into the two folders and the
# temporary folder, and does not change any setting of a GPU. Exit codes: 0 every step that could run passed, even
# without a GPU; 1 a step failed; 2 usage.
set -u
export LC_ALL=C

source=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
out=$source/build/device-report
build=$source/build/device
kit=$source/build/device-kit/$(uname -m)
use='' quick='' given='' seconds=520 step_seconds=520

usage() {
    sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "$0" >&2
    exit 2
}

# Shells would read 010 as octal 8.
number() {
    case $1 in
    '' | *[!0-9]* | 0?*) usage ;;
    esac
    echo "$1"
}

while [ $# -gt 0 ]; do
    case $1 in
    --quick) quick=--quick ;;
    --out | --build | --use | --kit | --seconds | --step-seconds | --set)
        [ $# -gt 1 ] || usage
        case $1 in
        --out) out=$2 ;;
        --build) build=$2 ;;
        --use) use=$2 ;;
        --kit) kit=$2 ;;
        --set)
            name=${2%%=*}
            case $name in
            "$2" | '' | [0-9]* | *[!A-Za-z0-9_]*) usage ;;
            esac
            given="$given $name"
            eval "given_$name=\${2#*=}"
            ;;
        --seconds) seconds=$(number "$2") || exit 2 ;;
        --step-seconds) step_seconds=$(number "$2") || exit 2 ;;
        esac
        shift
        ;;
    *) usage ;;
    esac
    shift
done

mkdir -p "$out" && out=$(CDPATH='' cd -- "$out" && pwd) && work=$(mktemp -d 2>/dev/null || mktemp -d -p "$out") || {
    echo "device: there is no folder to write into: name one with --out, and one for temporary files with TMPDIR" >&2
    exit 2
}
log=$out/log.txt
tab=$(printf '\t')
began=$(date +%s)
end=$((began + seconds))
child='' result=unfinished
system='' processor='' processors=1 memory='' compiler='' revision='' nvidia='' amd=''
for file in steps left_out notes survey bench cuda cards; do
    : >"$work/$file"
done
: >"$log"
trap 'rm -rf "$work"' EXIT
trap 'stop' INT TERM HUP PIPE

say() { printf 'device: %s\n' "$*"; }
have() { command -v "$1" >/dev/null 2>&1; }
note() {
    say "$*"
    printf '%s\n' "$*" >>"$work/notes"
}

. "$source/tests/device/report.sh"
. "$source/tests/device/environment.sh"

# ---- the report

# Writes each report under a temporary name and renames it, so that no reader sees an incomplete report.
write_report() {
    gpu=$(sentence_about_gpus)
    gpu_found=false
    [ "${gpu#found}" = "$gpu" ] || gpu_found=true
    write_json >"$out/.report.json" && mv "$out/.report.json" "$out/report.json"
    write_markdown >"$out/.report.md" && mv "$out/.report.md" "$out/report.md"
}

# Called if the script is stopped: records the running step as failed, and writes a report of the steps so far.
stop() {
    trap '' INT TERM HUP PIPE
    if [ -n "$child" ]; then
        kill "$child" 2>/dev/null
        took=$(($(date +%s) - started)) code=-
        record "$step" failed "the script was ended from outside while this ran"
    fi
    write_report
    say "ended from outside; what there is of the report is $out/report.md"
    exit 1
}

# ---- steps

# record NAME RESULT REASON: records the result of the last step, or of a step that did not run.
record() {
    reason=$3
    case $reason in
    *[!\ -~]*) reason=$(printf '%s' "$reason" | tr '\n\t' '  ' | tr -d '\000-\037\177') ;;
    esac
    reason=$(printf '%.2000s' "$reason")
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$took" "$limit" "$code" "${reason:--}" >>"$work/steps"
    [ "$2" = passed ] || say "$1 $2: $reason"
}

# skip NAME REASON, fail NAME REASON: record the result of a step that did not run.
skip() {
    took=0 limit=0 code=-
    record "$1" skipped "$2"
}
fail() {
    took=0 limit=0 code=-
    record "$1" failed "$2"
}

# run NAME LIMIT COMMAND…: sets $code to the exit code and writes the output to $work/NAME.out and .err. Fails if the
# command did not run.
run() {
    step=$1 limit=$2
    shift 2
    left=$((end - $(date +%s)))
    [ "$limit" -le "$step_seconds" ] || limit=$step_seconds
    curtailed=''
    [ "$limit" -le "$left" ] || limit=$left curtailed=yes
    if [ "$limit" -lt 1 ]; then
        skip "$step" "no time was left of the $seconds s for everything"
        return 1
    fi
    say "$step, at most $limit s"
    started=$(date +%s)
    code=0
    # SIGKILL does not end a process that is blocked inside a driver in the kernel. In this case the outer timeout
    # abandons the inner one.
    timeout -s KILL $((limit + 10)) timeout -k 5 "$limit" "$@" >"$work/$step.out" 2>"$work/$step.err" </dev/null &
    child=$!
    wait "$child" || code=$?
    child=''
    took=$(($(date +%s) - started))
    { printf '\n==== %s: %s\n==== exit code %s after %s s\n' "$step" "$*" "$code" "$took" && excerpt "$work/$step.out" && excerpt "$work/$step.err"; } >>"$log"
    return 0
}

# Prints a file, or the beginning and the end of a very long one.
excerpt() {
    bytes=$(wc -c <"$1")
    if [ "$bytes" -le 200000 ]; then
        cat "$1"
    else
        head -c 100000 "$1" && printf '\n==== %s bytes are left out here\n' $((bytes - 200000)) && tail -c 100000 "$1"
    fi
}

# Prints the last line of a program's error output, or its exit code.
last_words() {
    words=$(grep '[^[:space:]]' "$work/$1.err" | tail -n 1)
    printf '%s' "${words:-exit code $code; see log.txt}"
}

# settle NAME [REASON]: records the result of the program that run() ran, according to the program's exit code. REASON,
# if not empty, takes the place of the program's last line as the reason of a failure or a skip.
settle() {
    outcome=$code
    # If the program was killed before its time limit, the time limit was not the reason.
    if [ "$code" -eq 124 ] || [ "$code" -eq 137 ]; then
        [ "$took" -lt "$limit" ] || outcome=late
    fi
    case $outcome in
    0) record "$1" passed '' ;;
    77) record "$1" skipped "${2:-$(last_words "$1")}" ;;
    late)
        if [ -n "$curtailed" ]; then
            record "$1" skipped "the $seconds s for everything ran out when it had run for $limit s"
        else
            record "$1" failed "it did not end within $limit s"
        fi
        ;;
    126 | 127) record "$1" failed "it could not be started" ;;
    *)
        if [ "$code" -gt 128 ]; then
            record "$1" failed "it was ended by signal $((code - 128))"
        else
            record "$1" failed "${2:-$(last_words "$1")}"
        fi
        ;;
    esac
}

# ---- the machine

# The tree may belong to another user, or may be a copy without history inside another tree. git's own check for changes
# would write into the tree.
describe_source() {
    [ -e "$source/.git" ] && described=$(git -c safe.directory='*' -C "$source" describe --always 2>/dev/null) || return 1
    changed=$(git -c safe.directory='*' --no-optional-locks -C "$source" status --porcelain --untracked-files=no 2>/dev/null)
    printf '%s' "$described${changed:+-dirty}"
}

describe_machine() {
    system=$( (. /etc/os-release && printf '%s' "${PRETTY_NAME:-}") 2>/dev/null)
    processor=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1)
    processors=$(nproc 2>/dev/null || echo 1)
    memory=$(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo 2>/dev/null)
    compiler=$(${CC:-cc} --version 2>/dev/null | head -n 1)
    revision=$(describe_source || cat "$kit/revision" 2>/dev/null)
    nvidia=$(sed -n 's/^NVRM version: *//p' /proc/driver/nvidia/version 2>/dev/null)
    amd=$(cat /sys/module/amdgpu/version 2>/dev/null)
    if have nvidia-smi; then
        fields=index,name,driver_version,memory.total,pci.bus_id,compute_mode,persistence_mode,mig.mode.current,pcie.link.gen.max,pcie.link.width.max
        run cards 20 nvidia-smi --query-gpu=$fields --format=csv && [ "$code" -eq 0 ] && cp "$work/cards.out" "$work/cards"
    fi
    run machine 60 sh "$source/tests/device/machine.sh" && settle machine
}

# ---- the steps

build_all() {
    if [ -n "$use" ]; then
        build=$(CDPATH='' cd -- "$use" && pwd) || exit 2
        skip build "the programs of $build are used"
        return 0
    fi
    if [ -z "${CC:-}" ] && ! have cc; then
        for tool in gcc clang; do
            ! have $tool || export CC=$tool
        done
    fi
    for tool in "${CC:-cc}" cmake; do
        if ! have "$tool"; then
            fail build "$tool was not found"
            return 1
        fi
    done
    set --
    if [ -z "${CMAKE_GENERATOR:-}" ] && ! have make; then
        set -- -G Ninja
    fi
    if [ -d "$kit" ]; then
        kit=$(CDPATH='' cd -- "$kit" && pwd)
        note "headers and libraries of $kit are used"
        set -- "$@" "-DCMAKE_PREFIX_PATH=$kit"
    fi
    run configure 90 cmake -S "$source" -B "$build" "$@" -DCMAKE_BUILD_TYPE=Release -DGPUHAL_TESTS=OFF -DGPUHAL_REQUIRE_ALL=OFF || return 1
    settle configure
    sed -n 's/^-- gpuhal: //p' "$work/configure.out" >"$work/left_out"
    [ "$code" -eq 0 ] || return 1
    run build 240 cmake --build "$build" -j "$processors" || return 1
    settle build "$(cat "$work/build.out" "$work/build.err" | grep -m 1 -i error)"
    [ "$code" -eq 0 ]
}

# left_out WORD: prints the reason why a part was not built.
left_out() {
    reason=$(grep -m 1 -F "$1" "$work/left_out")
    printf '%s' "${reason:-$1 was not built}"
}

survey() {
    if run survey 60 "$build/tests/device/survey"; then
        settle survey
        cp "$work/survey.out" "$work/survey"
    fi
}

# probe NAME LIMIT ARGUMENT…
probe() {
    name=$1 limit=$2
    shift 2
    if [ ! -x "$build/bin/gpuhal-probe" ]; then
        skip "$name" "$(left_out gpuhal-probe)"
        return
    fi
    run "$name" "$limit" "$build/bin/gpuhal-probe" "$@" && settle "$name"
}

# check_plugins NAME…: runs gpuhal-check on the plugins that were found.
check_plugins() {
    if [ ! -x "$build/bin/gpuhal-check" ]; then
        skip "check-$1" "gpuhal-check was not built"
        return
    fi
    while IFS=$tab read -r word name state devices file reason; do
        case " $* " in
        *" $name "*) [ "$word" = plugin ] || continue ;;
        *) continue ;;
        esac
        case $state in
        ok)
            if run "check-$name" 90 "$build/bin/gpuhal-check" "$file"; then
                bad=$(sed -n 's/^not ok [0-9]* - \([^:]*\):.*/\1/p' "$work/check-$name.out" | tr '\n' ' ')
                settle "check-$name" "${bad:+${bad}did not pass}"
            fi
            ;;
        no_driver | no_device | no_permission | duplicate | excluded) skip "check-$name" "$reason" ;;
        *) fail "check-$name" "$reason" ;;
        esac
    done <"$work/survey"
}

copy_matrix() {
    run copy-matrix 80 "$build/tests/device/copy_matrix" $quick --seconds 60 || return
    bad=$(grep -c '"ok":false' "$work/copy-matrix.out")
    [ "$bad" -gt 0 ] || bad=''
    settle copy-matrix "${bad:+$bad pairs of devices failed}"
}

# prove NAME PROGRAM ARGUMENT…: runs a program that prints lines of JSON with the message in the member "detail".
prove() {
    name=$1 program=$2
    shift 2
    run "$name" 60 "$build/tests/device/$program" "$@" || return
    json_of "$work/$name.out" >>"$work/cuda"
    settle "$name" "$(sed -n -e 's/.*"ok":false.*"detail":"\(.*\)"}$/\1/p' -e 's/.*"ok":null.*"detail":"\(.*\)"}$/\1/p' "$work/$name.out" | head -n 1)"
}

# HIP's driver does not compile kernels, so this step requires AMD's compiler, or kernels that pack.sh compiled with it.
launch_hip() {
    if ! grep -q "^device${tab}rocm:" "$work/survey"; then
        skip rocm-launch 'no HIP device is listed'
        return
    fi
    bundle=$kit/kernels.hipfb
    hipcc=$(command -v hipcc || ls /opt/rocm*/bin/hipcc 2>/dev/null | head -n 1)
    if [ -n "$hipcc" ]; then
        bundle=$work/kernels.hipfb
        # Without a target hipcc would compile only for the GPUs that it detects.
        run rocm-targets 30 "$build/tests/device/kernel_launch" rocm || return
        settle rocm-targets
        [ "$code" -eq 0 ] || return
        targets=$(sort -u "$work/rocm-targets.out" | sed 's/^/--offload-arch=/')
        run rocm-compile 120 "$hipcc" --genco $targets -O3 -x hip -o "$bundle" "$source/tests/device/kernels.hip" || return
        settle rocm-compile
        [ "$code" -eq 0 ] || return
    fi
    if [ ! -e "$bundle" ]; then
        skip rocm-launch 'hipcc was not found, and the kit has no kernels.hipfb'
        return
    fi
    prove rocm-launch kernel_launch rocm hip-fatbin "$bundle"
}

# bench NAME LIMIT ARGUMENT…
bench() {
    name=bench-$1 limit=$2
    shift 2
    run "$name" "$limit" "$build/bin/gpuhal-bench-baseline" --baseline --json "$@" || return
    json_of "$work/$name.out" >"$work/document" && mv "$work/document" "$work/$name.out"
    printf '%s\n' "$name" >>"$work/bench"
    bad=$(missed_rows "$work/$name.out")
    settle "$name" "${bad:+missed: $bad}"
}

# bench_group GROUP LIMIT BACKENDS ARGUMENT…: measures on the first device of each backend, preferably a hardware device.
# The speed of programs on the CPU is not judged.
bench_group() {
    group=$1 most=$2 backends=$3
    shift 3
    for backend in $backends; do
        line=$(awk -F "$tab" -v backend="$backend" '$1 == "device" && $3 == backend { if (!any) any = $0; if ($5 == "hardware" && !hard) hard = $0 }
            END { print hard ? hard : any }' "$work/survey")
        [ -n "$line" ] || continue
        device=$(printf '%s' "$line" | cut -f 2)
        if [ -n "$quick" ] || [ "$(printf '%s' "$line" | cut -f 5)" = software ]; then
            bench "$backend-$group" "$most" --device "$device" "$@" --quick
        else
            bench "$backend-$group" "$most" --device "$device" "$@"
        fi
    done
}

# Measures the speed that is promised for CUDA and HIP.
bench_first() {
    if [ ! -x "$build/bin/gpuhal-bench-baseline" ]; then
        skip bench "$(left_out gpuhal-bench)"
        return
    fi
    bench_group copy 170 'cuda rocm' --only copy --sizes 64K,1M,4M,16M,64M,256M
    bench_group call 40 'cuda rocm' --only call
    bench_group open 90 'cuda rocm' --only open
}

bench_rest() {
    [ -x "$build/bin/gpuhal-bench-baseline" ] || return 0
    bench_group copy 70 'vulkan opencl' --only copy --sizes 64K,1M,16M,64M
    bench_group queue 50 'cuda rocm' --only queue,batch,allocate,file
    bench_group call 50 'vulkan opencl' --only call,queue,batch,allocate,file
    bench cpu-call 20 --device cpu:0 --only call $quick
    bench all-pairs 70 --only pairs --sizes 64M --pairs 15 $quick
    [ -n "$quick" ] || bench_group large 80 'cuda rocm' --only copy --sizes 1G --pairs 15
    bench_group share 40 'cuda rocm vulkan opencl' --only share --pairs 15
    bench all-open 120 --only open $quick
}

# ---- everything

if ! have timeout; then
    echo "device: timeout (coreutils) was not found" >&2
    exit 2
fi
describe_machine
if build_all; then
    leave_home
    use_libraries
    use_drivers_elsewhere
    survey
    probe explain 40 --all --explain
    write_report
    bench_first
    write_report
    prove cuda-context cuda_context
    prove cuda-memory cuda_memory
    prove cuda-launch kernel_launch cuda ptx "$source/tests/system/kernels/kernels.ptx"
    launch_hip
    check_plugins cuda rocm
    write_report
    copy_matrix
    probe probe 40 --json
    probe verify 60 --all --verify
    check_plugins vulkan opencl cpu
    write_report
    bench_rest
fi

result=passed
! grep -q "^[^$tab]*${tab}failed$tab" "$work/steps" || result=failed
write_report
say "$gpu"
say "$result after $(($(date +%s) - began)) s; the report is $out/report.md"
[ $result = passed ]
