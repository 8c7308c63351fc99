#!/bin/sh
# Runs gpuhal-check on the Vulkan plugin with the fake driver: vulkan_fake_check.sh GPUHAL_CHECK PLUGIN SCRIPT
# [OPTION...]. Fails if a check fails, or if the driver detected a violation of a Vulkan rule in any of the processes.
set -u
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
check=$1 plugin=$2 script=$3
shift 3
GPUHAL_FAKE_VULKAN=$script GPUHAL_FAKE_VULKAN_LOG=$log "$check" "$@" "$plugin"
status=$?
if [ -s "$log" ]; then
    echo "broken rules of Vulkan:"
    sort "$log" | uniq -c
    exit 1
fi
exit "$status"
