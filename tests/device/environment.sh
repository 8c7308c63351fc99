# tests/device/environment.sh: sets the environment of the steps of run.sh, which sources this file. Adds the libraries
# and drivers that the loaders do not find by themselves, and removes all GPUHAL_* settings except those given with
# --set.

# Returns whether the system's loader finds a library by name.
has_library() {
    for folder in $(printf '%s' "${LD_LIBRARY_PATH:-}" | tr ':' ' '); do
        [ ! -e "$folder/$1" ] || return 0
    done
    PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep -qF "$tab$1 "
}

look_also_in() { export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$1"; }

# Adds the kit's libraries that the machine lacks. Also adds the driver's libraries if the loader does not search their
# folder.
use_libraries() {
    if ! has_library libcuda.so.1; then
        for folder in /usr/local/nvidia/lib64 /usr/local/nvidia/lib; do
            if [ -e "$folder/libcuda.so.1" ]; then
                look_also_in "$folder"
                note "libraries are looked for in $folder too"
                break
            fi
        done
    fi
    mkdir "$work/libraries"
    taken=''
    for library in "$kit"/lib/*.so.*; do
        name=${library##*/}
        if [ -e "$library" ] && ! has_library "$name"; then
            ln -s "$library" "$work/libraries/$name"
            taken="$taken $name"
        fi
    done
    if [ -n "$taken" ]; then
        look_also_in "$work/libraries"
        note "the machine lacks these, and the kit's are used:$taken"
    fi
}

# Of the GPUHAL_* settings only those given with --set apply. No files remain for later runs, and no step depends on an
# earlier step. For example, if a plugin was stopped in one step, the next step probes it again.
leave_home() {
    mkdir "$work/home"
    settings=$(env | sed -n 's/^\(GPUHAL_[A-Za-z0-9_]*\)=.*/\1/p' | sort -u)
    for name in $settings; do
        unset "$name"
    done
    [ -z "$settings" ] || note "left out, although set:$(printf ' %s' $settings)"
    export HOME="$work/home" GPUHAL_REGISTRY=none
    unset XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME CUDA_CACHE_PATH
    for name in $given; do
        eval "export $name=\"\$given_$name\""
    done
}

# Container images have NVIDIA's driver in a separate folder, which the loaders of Vulkan and OpenCL do not search.
use_drivers_elsewhere() {
    elsewhere=$(ls /usr/local/nvidia/share/vulkan/icd.d/*.json 2>/dev/null | tr '\n' ':')
    if [ -n "$elsewhere" ] && [ -z "${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-}${VK_ADD_DRIVER_FILES:-}" ]; then
        if ls /etc/vulkan/icd.d/*.json /usr/share/vulkan/icd.d/*.json >/dev/null 2>&1; then
            export VK_ADD_DRIVER_FILES="${elsewhere%:}"
        else
            export VK_DRIVER_FILES="${elsewhere%:}" VK_ICD_FILENAMES="${elsewhere%:}"
        fi
        note "Vulkan looks in ${elsewhere%:}"
    fi
    if [ -z "${OCL_ICD_VENDORS:-}" ] && ! ls /etc/OpenCL/vendors/*.icd >/dev/null 2>&1; then
        library=$(ls /usr/local/nvidia/lib64/libnvidia-opencl.so.1 /usr/lib/*/libnvidia-opencl.so.1 /usr/lib64/libnvidia-opencl.so.1 2>/dev/null |
            head -n 1)
        if [ -n "$library" ]; then
            mkdir -p "$work/opencl"
            printf '%s\n' "$library" >"$work/opencl/nvidia.icd"
            export OCL_ICD_VENDORS="$work/opencl"
            note "OpenCL is given $library"
        fi
    fi
}
