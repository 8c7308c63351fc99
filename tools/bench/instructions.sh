#!/bin/sh
# Counts the instructions that a 64-byte blocking copy costs over the plugin's own function, with valgrind's callgrind.
# Usage: instructions.sh [path of gpuhal-bench [device]], cpu:0 without a device. Prints the number; exit code 1 when it
# is above the budget of 150, 2 if it could not count. The count does not depend on time, so a loaded machine gives the
# same number as an idle one.
set -eu

bench=${1:-gpuhal-bench}
device=${2:-cpu:0}
budget=150
few=1000
many=11000

command -v valgrind >/dev/null || { echo "instructions.sh: valgrind is not installed" >&2; exit 2; }
command -v "$bench" >/dev/null || { echo "instructions.sh: there is no program $bench" >&2; exit 2; }

# Instructions of a whole run of the loop.
total() {
    messages=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench" --child calls "$2" "$device" "$1" 2>&1) || {
        echo "$messages" >&2
        exit 2
    }
    count=$(printf '%s\n' "$messages" | sed -n 's/.*Collected : *\([0-9][0-9]*\).*/\1/p')
    [ -n "$count" ] || { echo "instructions.sh: callgrind printed no count" >&2; exit 2; }
    echo "$count"
}

# Instructions of one call: the common part of two runs, mainly opening, cancels in the difference. A call runs the same
# instructions each time, so the remainder of the division is noise of the opening.
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
