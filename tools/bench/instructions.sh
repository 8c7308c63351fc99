#!/bin/sh
# With valgrind's callgrind, counts the instructions that the library adds to the plugin's function in a blocking copy of
# 64 bytes. Usage: instructions.sh [path of gpuhal-bench [device]]; the default device is cpu:0. Prints the number. Exits
# with 1 if the number is above the budget of 150, and with 2 if counting failed. The count does not depend on time, so
# it is the same on a busy machine and on an idle machine.
set -eu

bench=${1:-gpuhal-bench}
device=${2:-cpu:0}
budget=150
few=1000
many=11000

command -v valgrind >/dev/null || { echo "instructions.sh: valgrind is not installed" >&2; exit 2; }
command -v "$bench" >/dev/null || { echo "instructions.sh: there is no program $bench" >&2; exit 2; }

# Instructions of one run with all its calls.
total() {
    messages=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench" --child calls "$2" "$device" "$1" 2>&1) || {
        echo "$messages" >&2
        exit 2
    }
    count=$(printf '%s\n' "$messages" | sed -n 's/.*Collected : *\([0-9][0-9]*\).*/\1/p')
    [ -n "$count" ] || { echo "instructions.sh: callgrind printed no count" >&2; exit 2; }
    echo "$count"
}

# Instructions of one call. The common part of two runs, mainly opening, cancels in the difference. Each call runs the
# same instructions, so the remainder of the division is noise from opening.
per_call() {
    low=$(total "$few" "$1")
    high=$(total "$many" "$1")
    echo $(((high - low + (many - few) / 2) / (many - few)))
}

gpuhal=$(per_call gpuhal)
direct=$(per_call direct)
more=$((gpuhal - direct))
echo "$device: gpuhal_copy: $gpuhal, the plugin's copy: $direct, more: $more instructions (budget $budget)"
[ "$more" -le "$budget" ]
