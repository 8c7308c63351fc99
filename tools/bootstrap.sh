#!/bin/sh
# Installs dependencies on a fresh Debian or Ubuntu, and builds and runs gpuhal with one command. The script can be run
# again at any time: it installs only missing packages, and rebuilds only after changes.
#
# This is POSIX sh, because a minimal system has no other shell. `probe` and `build` never install a driver, so
# gpuhal-probe shows only the machine's own devices. `test` installs software drivers for the tests.
set -eu

usage() {
    cat <<'TEXT'
usage: sh tools/bootstrap.sh probe | test | build

  probe   install what building needs, build, and show each physical device by its preferred backend, with bytes moved
  test    install what building and the tests need, build, and run all tests
  build   install what building needs, and build (CMake preset "default")
TEXT
}

# The presets use ninja-build; opencl-c-headers and libvulkan-dev are for the OpenCL and Vulkan plugins, libjansson-dev is for the
# tools, libncurses-dev for gpuhal-probe's live view, help2man for the manual pages.
build_packages='gcc libc6-dev cmake ninja-build opencl-c-headers libvulkan-dev libjansson-dev libncurses-dev help2man'

# pocl-opencl-icd and mesa-vulkan-drivers are OpenCL and Vulkan drivers for the CPU. glslang-tools compiles a test's shader.
# libffmpeg-nvenc-dev, libamdhip64-dev and librocm-smi-dev contain vendors' declarations, which the tests compare with this
# project's declarations. libamdhip64-5 is a HIP runtime that finds no device. libuv1-dev is for an example. clang and g++ also
# compile the headers, and g++ compiles a C++17 program. python3-cffi reads gpuhal.cdef; python3-prometheus-client reads the
# metrics. tmux provides a terminal for the tests of shell completion. doxygen renders the headers' comments. dpkg-dev and file
# create packages. munge, slurmctld, slurmd and slurm-client are a one-node Slurm (without a configuration, Slurm starts no
# service; munge starts one if systemd is running). lld links the tests' programs in half of the time. clang-tidy,
# clang's sanitizers (libclang-rt-dev) and a symbolizer for their reports (llvm) are for .ci/run.
test_packages='libcmocka-dev libuv1-dev pocl-opencl-icd mesa-vulkan-drivers vulkan-validationlayers glslang-tools libffmpeg-nvenc-dev libamdhip64-dev
librocm-smi-dev libamdhip64-5 python3 python3-jsonschema python3-prometheus-client python3-cffi pkg-config binutils tmux
bash-completion zsh fish clang g++ doxygen dpkg-dev file munge slurmctld slurmd slurm-client clang-tidy libclang-rt-dev llvm lld'

say() { printf 'bootstrap: %s\n' "$*" >&2; }
die() {
    say "$*"
    exit 1
}

on_debian_or_ubuntu() {
    [ -r /etc/os-release ] || return 1
    case " $(. /etc/os-release && printf '%s %s' "${ID:-}" "${ID_LIKE:-}") " in
    *' debian '* | *' ubuntu '*) command -v apt-get >/dev/null && command -v dpkg-query >/dev/null ;;
    *) return 1 ;;
    esac
}

is_installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

missing_of() {
    for package; do
        is_installed "$package" || printf '%s ' "$package"
    done
}

# Programs use OpenCL drivers through libOpenCL.so.1 and Vulkan drivers through libvulkan.so.1. If a vendor's driver has installed
# its own copy of such a library, the copy must stay.
missing_loaders() {
    has_library libOpenCL.so.1 || printf 'ocl-icd-libopencl1 '
    has_library libvulkan.so.1 || printf 'libvulkan1 '
}

has_library() { PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep -qF "$1"; }

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

install_packages() {
    [ $# -gt 0 ] || return 0
    say "installing: $*"
    if [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; then
        die "neither root nor sudo is available; run as root: apt-get install --no-install-recommends $*"
    fi
    # A broken third-party package source must not stop this script. If a required source fails, the installation fails.
    as_root apt-get -q update </dev/null || say 'apt-get update had errors; going on'
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "$@" </dev/null ||
        die "apt-get could not install: $* (on Ubuntu some are in the component \"universe\")"
}

# CMake older than 3.21 cannot read the version of CMakePresets.json.
check_cmake() {
    version=$(cmake --version | sed -n 's/^cmake version \([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
    [ -n "$version" ] || die 'cmake --version states no version'
    if [ "${version% *}" -lt 3 ] || { [ "${version% *}" -eq 3 ] && [ "${version#* }" -lt 21 ]; }; then
        die "CMake 3.21 or later is needed, this is $(echo "$version" | tr ' ' .)"
    fi
}

# A newer compiler may report more warnings. Warnings are errors only in CI, which sets the variable CI. Without cmocka, the tests are
# not built. The system's Python is used, because the modules were installed for it.
configure_and_build() {
    set -- -DGPUHAL_TESTS=OFF
    if is_installed libcmocka-dev; then
        set -- -DGPUHAL_TESTS=ON -DPython3_EXECUTABLE=/usr/bin/python3
    fi
    if [ -n "${CI:-}" ]; then
        set -- "$@" -DGPUHAL_WERROR=ON
    else
        set -- "$@" -DGPUHAL_WERROR=OFF
    fi
    cmake --preset default "$@"
    if [ "$word" = probe ]; then # only the required targets
        cmake --build --preset default --target hal/all plugins/all tools/probe/all
    else
        cmake --build --preset default
    fi
}

probe() {
    status=0
    build/default/bin/gpuhal-probe --verify || status=$?
    case $status in
    0) ;;
    3) say 'no device was found; build/default/bin/gpuhal-probe --explain says why' ;;
    4) say 'some of the devices or plugins failed; build/default/bin/gpuhal-probe --explain says why' ;;
    *) say "gpuhal-probe ended with exit code $status" ;;
    esac
    return $status
}

case "${1:-}" in
probe | test | build) [ $# -eq 1 ] || { usage >&2; exit 2; } ;;
-h | --help) usage; exit 0 ;;
*) usage >&2; exit 2 ;;
esac
word=$1

CDPATH='' cd -- "$(dirname -- "$0")/.."

if ! on_debian_or_ubuntu; then
    say 'this script installs packages on Debian and Ubuntu only. Elsewhere, install the equivalents of'
    say "  to build: $build_packages"
    say '  to use OpenCL devices: libOpenCL.so.1; Vulkan devices: libvulkan.so.1'
    say "  to test:  $(echo $test_packages)"
    die 'and run: cmake --preset default && cmake --build --preset default && ctest --preset default'
fi

# Unquoted on purpose: word splitting turns the strings into lists.
missing=$(missing_of $build_packages)
[ "$word" = build ] || missing="$missing$(missing_loaders)"
[ "$word" != test ] || missing="$missing$(missing_of $test_packages)"
install_packages $missing
check_cmake
configure_and_build

case $word in
build) say 'built; the programs are in build/default/bin' ;;
probe) probe ;;
test) exec ctest --preset default -j "${CTEST_PARALLEL_LEVEL:-$(($(nproc) * 5))}" ;; # most tests spend their time waiting
esac
