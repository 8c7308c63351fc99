#!/bin/sh
# Runs gpuhal-check on the Vulkan plugin over the fake driver: vulkan_fake_check.sh GPUHAL_CHECK PLUGIN SCRIPT. Fails when a check fails or the
# driver noticed a broken rule of Vulkan in any of the processes.
set -u
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
GPUHAL_FAKE_VULKAN=$3 GPUHAL_FAKE_VULKAN_LOG=$log "$1" "$2"
status=$?
if [ -s "$log" ]; then
    echo "broken rules of Vulkan:"
    sort "$log" | uniq -c
    exit 1
fi
exit "$status"
