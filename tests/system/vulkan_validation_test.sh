#!/bin/sh
# Runs a command with the Khronos validation layer and synchronization validation, and fails if the layer reports an
# error or a warning: vulkan_validation_test.sh WRONG_CALL COMMAND…. The program WRONG_CALL breaks rules on purpose, and
# the layer must report it first, because an inactive layer reports nothing. Skipped (77) if the layer or the driver is
# not installed.
set -u
wrong=$1
shift
directory=$(mktemp -d) || exit 1
trap 'rm -rf "$directory"' EXIT

# Every process would truncate the log file when it opens it, so the file is a pipe with one reader.
cat > "$directory/vk_layer_settings.txt" <<SETTINGS
khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG
khronos_validation.report_flags = error,warn
khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
khronos_validation.log_filename = $directory/pipe
SETTINGS
mkfifo "$directory/pipe"

# run LOG COMMAND…: writes the layer's messages to LOG and returns the command's exit status.
run() {
    log=$1
    shift
    cat "$directory/pipe" > "$log" &
    reader=$!
    exec 9> "$directory/pipe"
    VK_LAYER_SETTINGS_PATH=$directory VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation "$@"
    status=$?
    exec 9>&-
    wait "$reader"
    return "$status"
}

run "$directory/wrong" "$wrong"
status=$?
[ "$status" -eq 77 ] && exit 77
if ! grep -q "VUID-vkCmdFillBuffer" "$directory/wrong" || ! grep -q "SYNC-HAZARD" "$directory/wrong"; then
    echo "the layer did not report the wrong calls (exit status $status):"
    cat "$directory/wrong"
    exit 1
fi

run "$directory/log" "$@"
status=$?
if [ -s "$directory/log" ]; then
    echo "messages of the validation layer:"
    cat "$directory/log"
    exit 1
fi
exit "$status"
