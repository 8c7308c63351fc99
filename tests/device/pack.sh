#!/bin/sh
# Collects files that a bare machine with a GPU may lack: the headers of OpenCL and Vulkan, jansson, the loaders of both
# APIs, kernels for AMD GPUs, the X11 libraries that NVIDIA's Vulkan driver requires, and the revision of the tree, which
# cannot be determined from a tree without its history.
#
#     sh tests/device/pack.sh [FOLDER]      (build/device-kit/<machine> in this tree, a few MiB)
#
# Run the script on a machine with all of these files, and copy the folder together with the tree. tests/device/run.sh
# finds the folder in the tree. The folder contains neither gpuhal's headers nor parts of a vendor's driver. Its
# libraries work on machines of the same architecture with the same or a newer libc.
set -u

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
kit=${1:-$root/build/device-kit/$(uname -m)}
cc=${CC:-cc}
mkdir -p "$kit/include" "$kit/lib" || exit 1

say() { printf 'pack: %s\n' "$*"; }

# Prints the folder in which the compiler finds a header, or nothing if there is none.
folder_of() {
    printf '#include <%s>\n' "$1" | $cc -M -x c - 2>/dev/null | tr ' ' '\n' | sed -n "s|/$1\$||p" | head -n 1
}

# pack_headers FOLDER HEADER…: copies FOLDER from the directory of its first header, or single files for ".".
pack_headers() {
    below=$1
    shift
    from=$(folder_of "$1")
    if [ -z "$from" ]; then
        say "left behind: $1 was not found"
        return
    fi
    if [ "$below" = . ]; then
        for header; do
            cp "$from/$header" "$kit/include/"
        done
    else
        mkdir -p "$kit/include/$below"
        cp "$from/$below"/*.h "$kit/include/$below/"
    fi
}

pack_library() {
    file=$($cc -print-file-name="$1")
    if [ "$file" = "$1" ]; then
        say "left behind: $1 was not found"
    else
        cp -L "$file" "$kit/lib/$1"
    fi
}

pack_headers CL CL/cl.h
pack_headers vulkan vulkan/vulkan_core.h
pack_headers vk_video vk_video/vulkan_video_codec_h264std.h
pack_headers . jansson.h jansson_config.h
pack_library libjansson.a
pack_library libvulkan.so.1
pack_library libOpenCL.so.1
hipcc=$(command -v hipcc || ls /opt/rocm*/bin/hipcc 2>/dev/null | head -n 1)
if [ -n "$hipcc" ]; then
    "$hipcc" --genco --offload-arch=gfx90a --offload-arch=gfx942 --offload-arch=gfx1030 --offload-arch=gfx1100 -O3 -x hip \
        -o "$kit/kernels.hipfb" "$root/tests/device/kernels.hip" || say "left behind: hipcc does not compile tests/device/kernels.hip"
else
    say "left behind: hipcc was not found, so there are no kernels for AMD's GPUs"
fi
for library in libX11.so.6 libXext.so.6 libxcb.so.1 libXau.so.6 libXdmcp.so.6 libbsd.so.0 libmd.so.0; do
    pack_library $library
done
git -C "$root" describe --always --dirty >"$kit/revision" 2>/dev/null || rm -f "$kit/revision"
say "$kit ($(du -sk "$kit" | cut -f 1) KiB)"
