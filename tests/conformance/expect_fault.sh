#!/bin/sh
# expect_fault.sh TOOL PLUGIN STATUS CHECK SENTENCE [OPTION...]: gpuhal-check has to leave with the status, and to fail the
# check with a message that holds the sentence. Whatever the fault, the report has to be whole: as many lines as the plan says.
tool=$1 plugin=$2 status=$3 check=$4 sentence=$5
shift 5
output=$("$tool" "$@" "$plugin" 2>&1)
got=$?

fail() {
    printf '%s\n%s\n' "$output" "$1"
    exit 1
}

[ "$got" = "$status" ] || fail "exit status $got instead of $status"
planned=$(printf '%s\n' "$output" | sed -n 's/^1\.\.\([0-9]*\)$/\1/p')
lines=$(printf '%s\n' "$output" | grep -c '^\(not \)\{0,1\}ok [0-9]')
[ "$planned" = "$lines" ] || fail "$lines results instead of $planned"
message=$(printf '%s\n' "$output" | sed -n "/^not ok [0-9]* - $check[@:]/,/^  \.\.\.$/s/^  message: //p" | head -n 1)
case $message in
*"$sentence"*) exit 0 ;;
'') fail "the check $check did not fail" ;;
*) fail "the message of $check does not hold: $sentence" ;;
esac
