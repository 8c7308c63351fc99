#!/bin/sh
# exports_test.sh NM NAMES_PROGRAM WHICH LIBRARY [REAL_LIBRARY]: checks that the fake exports exactly the names that
# NAMES_PROGRAM prints for WHICH. The plugin and the tests use these names. If the real library or its stub is
# installed, checks that it exports these names too.
set -eu
nm=$1 names=$2 which=$3 library=$4 real=${5:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

exported() { "$nm" -D --defined-only "$1" | awk '$2 ~ /[A-Za-z]/ {print $3}' | sed 's/@.*//' | sort -u; }

"$names" "$which" | sort -u >"$work/wanted"
exported "$library" >"$work/exported"
[ -s "$work/wanted" ] || { echo 'the list of names is empty'; exit 1; }
diff -u "$work/wanted" "$work/exported" || { echo "names that differ: - used, + exported by $library"; exit 1; }
echo "$(wc -l <"$work/exported") names, all of them used"
if [ -z "$real" ]; then
    echo "the real $which library or its stub is not installed: names not compared with it"
    exit 0
fi
exported "$real" >"$work/real"
missing=$(comm -23 "$work/exported" "$work/real")
[ -z "$missing" ] || { echo "$real has no:" $missing; exit 1; }
echo "all of them are names of $real"
