# tests/device/report.sh: writes report.json and report.md from the files that tests/device/run.sh has written to $work;
# run.sh sources this file.
#
# These files in $work have one entry per line, with fields separated by tabs: steps (written by record()) and survey
# (the output of survey.c). These files have lines of text: left_out, notes and cards. These files have lines of JSON:
# copy-matrix.out and cuda. The file bench contains the names of the steps that ran gpuhal-bench. run.sh may call the
# functions below before all of the files exist.

# ---- conversions

# Quotes a string. Keeps only printable ASCII characters, so that the result is valid JSON for every driver name. Most
# strings are converted without starting a program.
json_text() {
    case $1 in
    *[!\ -~]* | *[\\\"]*) printf '"%s"' "$(printf '%s' "$1" | tr '\n\t' '  ' | tr -cd '\040-\176' | sed 's/\\/\\\\/g; s/"/\\"/g')" ;;
    *) printf '"%s"' "$1" ;;
    esac
}

# Prints the lines of a file as an array of strings.
json_texts() {
    comma=''
    printf '['
    while IFS= read -r line; do
        printf '%s' "$comma"
        json_text "$line"
        comma=', '
    done <"$1"
    printf ']'
}

# Extracts the JSON from a program's output: one object per line, or a document with one member per line. The output may
# also contain messages of drivers, and an incomplete line if the program was killed.
json_of() {
    text='"([^"\\]|\\.)*"'
    tr -cd '\012\040-\176' <"$1" | grep -E "^\{\"[a-z_]+\":.*\}\$|^ *[]}],?\$|^ *($text: )?($text|-?[0-9][-+.0-9eE]*|true|false|null|\[\]?|\{\}?),?\$"
}

# Prints the lines that are objects as an array.
json_lines() {
    printf '['
    if [ -f "$1" ]; then
        json_of "$1" | grep '^{.*}$' | sed '$!s/$/,/'
    fi
    printf ']'
}

# Prints a program's document, or null if the program was stopped before the end.
json_document() {
    if [ -f "$1" ] && json_of "$1" >"$work/document" && [ "$(head -c 1 "$work/document")" = '{' ] && [ "$(tail -n 1 "$work/document")" = '}' ]; then
        cat "$work/document"
    else
        printf 'null'
    fi
}

# An awk program that stores the members of each row of gpuhal-bench in row[] and skips all other lines.
rows='!/^\{"device":/ { next }
    { split("", row); rest = $0
      while (match(rest, /"[a-z_0-9]+":("([^"\\]|\\.)*"|[-+.a-z0-9]+)/)) {
          member = substr(rest, RSTART, RLENGTH); rest = substr(rest, RSTART + RLENGTH)
          key = value = member; sub(/":.*/, "", key); sub(/^"[a-z_0-9]+":/, "", value)
          gsub(/^"|"$/, "", value); gsub(/\\"/, "\047", value); row[substr(key, 2)] = value } }
'

# Lists the rows that missed a budget or could not be measured.
missed_rows() {
    awk "$rows"'
        row["ok"] == "false" { printf "%s%s %s%s%s", many++ ? "; " : "", row["device"], row["test"], row["bytes"] + 0 ? " " row["bytes"] : "", row["error"] != "null" ? ": " row["error"] : "" }' "$1"
}

# gpuhal-bench prints its status last, so the status shows that the output is complete.
bench_is_whole() { grep -q '^{"status":' "$work/$1.out" && echo true || echo false; }

markdown_text() { printf '%s' "$1" | sed 's/|/\\|/g'; }

# ---- speed

# Prints the promises for CUDA and HIP, with the worst result for each. Fields, separated by tabs: device, what, least
# or most, unit, budget, number of results, worst, low, high, bytes, true or false or null. "-" means no value. If a
# bench was stopped or could not measure a row, its results can show that a promise is broken, but not that it is kept.
speed() {
    set --
    while read -r name; do
        case $name in
        bench-cuda-* | bench-rocm-*)
            whole=$(bench_is_whole "$name")
            ! grep -q '"error":"' "$work/$name.out" || whole=false
            set -- "$@" "whole=$whole" "$work/$name.out"
            ;;
        esac
    done <"$work/bench"
    [ $# -eq 0 ] || awk "$rows"'
        BEGIN {
            MiB = 1048576
            add("page-locked memory to the device, from 1 MiB", "least", "ratio", 0.98)
            add("page-locked memory from the device, from 1 MiB", "least", "ratio", 0.98)
            add("ordinary memory to the device, from 1 MiB to below 64 MiB", "least", "ratio", 1)
            add("ordinary memory from the device, from 1 MiB to below 64 MiB", "least", "ratio", 1)
            add("ordinary memory to the device, from 64 MiB", "least", "ratio", 1.3)
            add("ordinary memory from the device, from 64 MiB", "least", "ratio", 1.3)
            add("inside the device, from 1 MiB", "least", "ratio", 0.98)
            add("a copy of 4 bytes with its wait beside the direct call", "least", "ratio", 1 / 1.25)
            add("a small copy by the processor beside the plugin itself", "least", "ratio", 1 / 6)
            add("memory of the device that opening and listing take", "most", "KiB", 0)
            add("opening one backend beside loading its library and listing", "least", "ratio", 1 / 1.2)
            add("opening one backend, more than loading its library and listing", "most", "ns", 15e6)
        }
        function add(what, kind, unit, budget) { count++; whats[count] = what; kinds[count] = kind; units[count] = unit; budgets[count] = budget }
        function place() {
            test = row["test"]; bytes = row["bytes"] + 0
            if (row["peer"] != "null") return 0
            if (test == "awaited_copy") return 8
            if (test == "call_overhead") return 9
            if (test == "device_memory") return 10
            if (test == "open_backend") return 11
            if (test == "helper_start") return 12
            if (bytes < MiB) return 0
            if (test == "upload") return 1
            if (test == "readback") return 2
            if (test == "write") return bytes < 64 * MiB ? 3 : 5
            if (test == "read") return bytes < 64 * MiB ? 4 : 6
            return test == "copy" ? 7 : 0
        }
        function take(at) {
            if (!at || row["error"] != "null") return
            device = row["device"]
            if (!(device in seen)) { seen[device] = 1; devices[++many] = device }
            ratio = units[at] == "ratio"
            value = ratio ? row["ratio"] : row["value"]
            if (value == "null") return
            number[device, at]++
            if (row["ok"] == "false") held[device, at] = "false"
            else if (row["ok"] == "true" && held[device, at] == "" && whole == "true") held[device, at] = "true"
            if (number[device, at] > 1 && (ratio ? value + 0 >= worst[device, at] + 0 : value + 0 <= worst[device, at] + 0)) return
            worst[device, at] = value
            low[device, at] = ratio ? row["ratio_low"] : row["value_low"]
            high[device, at] = ratio ? row["ratio_high"] : row["value_high"]
            size[device, at] = row["bytes"] == "null" ? "-" : row["bytes"]
        }
        { take(place()) }
        END {
            for (d = 1; d <= many; d++) for (i = 1; i <= count; i++) {
                device = devices[d]
                printf "%s\t%s\t%s\t%s\t%.4g\t%d", device, whats[i], kinds[i], units[i], budgets[i], number[device, i]
                if (number[device, i]) printf "\t%s\t%s\t%s\t%s\t%s\n", worst[device, i], low[device, i], high[device, i], size[device, i], held[device, i] == "" ? "null" : held[device, i]
                else printf "\t-\t-\t-\t-\tnull\n"
            }
        }' "$@"
    # These are results of the same NVML query, repeated throughout the measurement.
    grep '"before":' "$work/cuda" | grep 'takes no' | awk -F '"' '{
        before = after = $0; sub(/.*"before":/, "", before); sub(/.*"peak":/, "", after)
        printf "%s\t%s\tmost\tKiB\t0\t1\t%.0f\t%.0f\t%.0f\t-\t%s\n", $10, $4, (after - before) / 1024, (after - before) / 1024, (after - before) / 1024, /"ok":true/ ? "true" : "false" }'
}

# ---- the reports

is_gpu='$1 == "device" && ($4 == "gpu" || $4 == "integrated_gpu") && $5 == "hardware"'

sentence_about_gpus() {
    gpus=$(awk -F "$tab" "$is_gpu"' { printf "%s%s (%s)", many++ ? ", " : "", $8, $2 }' "$work/survey")
    if [ -n "$gpus" ]; then
        printf 'found: %s' "$gpus"
        return
    fi
    printf 'no GPU was found: %s' "$(awk -F "$tab" '$1 == "plugin" && $2 != "cpu" {
        reason = $6 == "-" ? "it lists devices that are programs on the processor" : index($6, $2 ": ") == 1 ? substr($6, length($2) + 3) : $6
        printf "%s%s: %s", many++ ? "; " : "", $2, reason }' "$work/survey")"
    [ -s "$work/survey" ] || printf 'nothing could look for one; the steps say why'
}

write_json() {
    printf '{\n"schema": "gpuhal.device-report/2",\n"started": '
    json_text "$(date -u -d "@$began" +%Y-%m-%dT%H:%M:%SZ 2>/dev/null || date -u +%Y-%m-%dT%H:%M:%SZ)"
    printf ',\n"seconds": %s,\n"quick": %s,\n"result": "%s",\n' "$(($(date +%s) - began))" "$([ -n "$quick" ] && echo true || echo false)" "$result"
    printf '"gpu_found": %s,\n"gpu": ' "$gpu_found"
    json_text "$gpu"
    printf ',\n"machine": {"system": '
    json_text "$system"
    printf ', "kernel": '
    json_text "$(uname -sr)"
    printf ', "machine": '
    json_text "$(uname -m)"
    printf ', "processor": '
    json_text "$processor"
    printf ', "processors": %s, "memory_bytes": %s, "compiler": ' "$processors" "$((${memory:-0} * 1024))"
    json_text "$compiler"
    printf ', "source": '
    json_text "$revision"
    printf ', "nvidia_driver": '
    json_text "$nvidia"
    printf ', "amd_driver": '
    json_text "$amd"
    printf ', "nvidia_smi": '
    json_texts "$work/cards"
    printf '},\n"left_out": '
    json_texts "$work/left_out"
    printf ',\n"notes": '
    json_texts "$work/notes"
    printf ',\n"plugins": ['
    comma=''
    while IFS=$tab read -r word name state devices file reason; do
        [ "$word" = plugin ] || continue
        printf '%s\n{"name": ' "$comma"
        json_text "$name"
        printf ', "state": '
        json_text "$state"
        printf ', "devices": %s, "reason": ' "$devices"
        json_text "${reason#-}"
        printf '}'
        comma=,
    done <"$work/survey"
    printf '],\n"devices": ['
    comma=''
    while IFS=$tab read -r word id backend type kind memory_bytes driver name; do
        [ "$word" = device ] || continue
        printf '%s\n{"id": ' "$comma"
        json_text "$id"
        printf ', "backend": '
        json_text "$backend"
        printf ', "type": '
        json_text "$type"
        printf ', "software": %s, "memory_bytes": %s, "driver": ' "$([ "$kind" = software ] && echo true || echo false)" \
            "$([ "$memory_bytes" = - ] && echo null || echo "$memory_bytes")"
        json_text "${driver#-}"
        printf ', "name": '
        json_text "$name"
        printf '}'
        comma=,
    done <"$work/survey"
    printf '],\n"steps": ['
    comma=''
    while IFS=$tab read -r name outcome time most exit_code reason; do
        printf '%s\n{"name": "%s", "result": "%s", "seconds": %s, "limit_seconds": %s, "exit_code": %s, "reason": ' "$comma" "$name" "$outcome" \
            "$time" "$most" "$([ "$exit_code" = - ] && echo null || echo "$exit_code")"
        json_text "${reason#-}"
        printf '}'
        comma=,
    done <"$work/steps"
    printf '],\n"speed": ['
    speed | awk -F "$tab" 'function number(value) { return value == "-" ? "null" : value }
        { printf "%s\n{\"device\": \"%s\", \"what\": \"%s\", \"limit\": \"%s\", \"unit\": \"%s\", \"budget\": %s, \"results\": %s, \"worst\": %s, \"low\": %s, \"high\": %s, \"bytes\": %s, \"held\": %s}",
            (NR > 1 ? "," : ""), $1, $2, $3, $4, $5, $6, number($7), number($8), number($9), number($10), $11 }'
    printf '],\n"copy_matrix": '
    json_lines "$work/copy-matrix.out"
    printf ',\n"cuda": '
    json_lines "$work/cuda"
    printf ',\n"probe": '
    json_document "$work/probe.out"
    printf ',\n"bench": ['
    comma=''
    while read -r name; do
        grep '^gpuhal-bench: ' "$work/$name.err" | sed 's/^gpuhal-bench: //' >"$work/bench_notes"
        printf '%s\n{"step": "%s", "whole": %s, "notes": ' "$comma" "$name" "$(bench_is_whole "$name")"
        json_texts "$work/bench_notes"
        printf ', "lines": '
        json_lines "$work/$name.out"
        printf '}'
        comma=,
    done <"$work/bench"
    printf ']\n}\n'
}

# Prints a table of gpuhal-bench's measurements.
bench_table() {
    awk "$rows"'
         function scaled(value, unit) {
             if (value == "null" || value == "") return ""
             value += 0
             if (unit == "KiB") return value >= 1048576 || value <= -1048576 ? sprintf("%.2f GiB", value / 1048576) : value >= 1024 || value <= -1024 ? sprintf("%.1f MiB", value / 1024) : value " KiB"
             if (value >= 1e9 || value <= -1e9) return sprintf("%.2f s", value / 1e9)
             if (value >= 1e6 || value <= -1e6) return sprintf("%.2f ms", value / 1e6)
             if (value >= 1e3 || value <= -1e3) return sprintf("%.2f us", value / 1e3)
             return sprintf("%.1f ns", value) }
         function size(bytes) {
             if (bytes == "null") return ""
             return bytes % 1048576 == 0 ? bytes / 1048576 " MiB" : bytes % 1024 == 0 ? bytes / 1024 " KiB" : bytes " B" }
         function rate(value) { return value == "null" ? "" : sprintf("%.2f GiB/s", value) }
         {
             unit = row["unit"]
             ratio = row["ratio"] != "null" ? row["ratio"] : row["ratio_of_slower_side"]
             gpuhal = row["gib_per_s"] != "null" ? rate(row["gib_per_s"]) : scaled(row["gpuhal"], unit)
             base = row["baseline_gib_per_s"] != "null" ? rate(row["baseline_gib_per_s"]) : scaled(row["baseline"], unit)
             if (ratio != "null" && ratio != "") {
                 result = sprintf("%.3f", ratio); spread = sprintf("%.3f to %.3f", row["ratio_low"], row["ratio_high"]); budget = row["budget"] == "null" ? "" : "least " row["budget"]
             } else {
                 result = scaled(row["value"], unit); spread = scaled(row["value_low"], unit) " to " scaled(row["value_high"], unit); budget = row["budget"] == "null" ? "" : "most " scaled(row["budget"], unit)
             }
             if (row["error"] != "null") { result = row["error"]; gsub(/\|/, "\\|", result); spread = "" }
             printf "| %s%s | %s | %s | %s | %s | %s | %s | %s | %s |\n", row["device"], row["peer"] == "null" ? "" : " to " row["peer"], row["test"] (row["path"] == "null" ? "" : ", " row["path"]), size(row["bytes"]), gpuhal, base, result, spread, budget, row["ok"] == "true" ? "held" : row["ok"] == "false" ? "**missed**" : "" }' "$1"
}

write_speed() {
    awk -F "$tab" '$1 == "device" && ($3 == "cuda" || $3 == "rocm") { found = 1 } END { exit !found }' "$work/survey" || return 0
    speed >"$work/speed"
    printf '\n## Speed of CUDA and HIP beside their own calls\n\n'
    if [ ! -s "$work/speed" ]; then
        printf 'Nothing of it was measured; the steps below say why.\n'
        return
    fi
    printf 'Of each promise the worst result; it is missed when a whole interval lies on the wrong side.\n\n'
    printf '| device | promise | budget | results | worst | 95 %% interval | at | |\n|---|---|---|---|---|---|---|---|\n'
    awk -F "$tab" '
        function shown(value, unit) { return value == "-" ? "" : unit == "ratio" ? sprintf("%.3f", value) : unit == "KiB" ? value + 0 " KiB" : value < 1e6 && value > -1e6 ? sprintf("%.0f ns", value) : sprintf("%.2f ms", value / 1e6) }
        { printf "| %s | %s | at %s %s | %s | %s | %s | %s | %s |\n", $1, $2, $3, shown($5, $4), $6, shown($7, $4), $7 == "-" ? "" : shown($8, $4) " to " shown($9, $4),
            $10 == "-" ? "" : $10 / 1048576 " MiB", $6 == 0 ? "not measured" : $11 == "true" ? "held" : $11 == "false" ? "**missed**" : "no limit" }' "$work/speed"
}

write_markdown() {
    printf '# Device report of %s\n\n' "$(date -u -d "@$began" +%Y-%m-%d 2>/dev/null || date -u +%Y-%m-%d)"
    [ "$gpu_found" = true ] && headline=$gpu || headline='no GPU was found; the plugins below say why'
    printf '**%s**; %s.\n\n' "$result" "$headline"
    printf '| machine | |\n|---|---|\n| system | %s, %s, %s |\n' "$(markdown_text "$system")" "$(uname -sr)" "$(uname -m)"
    printf '| processor | %s, %s of them, %s GiB of memory |\n' "$(markdown_text "$processor")" "$processors" "$((${memory:-0} / 1048576))"
    printf '| compiler | %s |\n| source | %s |\n' "$(markdown_text "$compiler")" "${revision:-not known}"
    [ -z "$nvidia" ] || printf '| NVIDIA driver | %s |\n' "$(markdown_text "$nvidia")"
    [ -z "$amd" ] || printf '| amdgpu | %s |\n' "$amd"
    [ ! -s "$work/cards" ] || printf '\n```\n%s\n```\n' "$(cat "$work/cards")"
    if [ -s "$work/left_out" ] || [ -s "$work/notes" ]; then
        printf '\n'
        sed 's/^/* /' "$work/left_out" "$work/notes"
    fi
    printf '\n## Devices\n\n| id | name | what it is | memory | driver |\n|---|---|---|---|---|\n'
    awk -F "$tab" '$1 == "device" { gsub(/\|/, "\\|", $8); printf "| %s | %s | %s, %s | %s | %s |\n", $2, $8, $4, $5, $6 == "-" ? "" : sprintf("%.1f GiB", $6 / 1073741824), $7 == "-" ? "" : $7 }' "$work/survey"
    printf '\n| plugin | state | reason |\n|---|---|---|\n'
    awk -F "$tab" '$1 == "plugin" { gsub(/\|/, "\\|", $6); printf "| %s | %s, devices: %s | %s |\n", $2, $3, $4, $6 == "-" ? "" : $6 }' "$work/survey"
    write_speed
    printf '\n## Steps\n\n| step | result | seconds | why |\n|---|---|---|---|\n'
    awk -F "$tab" '{ gsub(/\|/, "\\|", $6); printf "| %s | %s | %s | %s |\n", $1, $2 == "failed" ? "**failed**" : $2, $3, $6 == "-" ? "" : $6 }' "$work/steps"
    if grep -q '^{' "$work/copy-matrix.out" 2>/dev/null; then
        printf '\n## Copies between every two devices, from the row to the column\n\nWay and GiB/s of the best of three; every byte was compared.\n\n'
        grep '^{.*}$' "$work/copy-matrix.out" | awk -F '"' '
            { from = $4; to = $8; path = $12; rate = $0; sub(/.*"gib_per_s":/, "", rate); sub(/,.*/, "", rate)
              if (!(from in seen)) { order[++rows] = from; seen[from] = 1 }
              if (!(to in column)) { columns[++wide] = to; column[to] = 1 }
              cell[from, to] = /"ok":true/ ? path " " sprintf("%.2f", rate) : /"ok":null/ ? "not tried" : "**failed**" }
            END { printf "| |"; for (c = 1; c <= wide; c++) printf " %s |", columns[c]; printf "\n|---|"; for (c = 1; c <= wide; c++) printf "---|"; printf "\n"
                  for (r = 1; r <= rows; r++) { printf "| %s |", order[r]; for (c = 1; c <= wide; c++) printf " %s |", cell[order[r], columns[c]]; printf "\n" } }'
        grep '"ok":false' "$work/copy-matrix.out" | sed -n 's/.*"from":"\([^"]*\)","to":"\([^"]*\)".*"error":"\(.*\)"}$/* \1 to \2: \3/p' >"$work/failed-pairs"
        [ ! -s "$work/failed-pairs" ] || { echo && cat "$work/failed-pairs"; }
    fi
    if [ -s "$work/cuda" ]; then
        printf '\n## CUDA and HIP\n\n'
        sed -n 's/^{"check":"\([^"]*\)","ok":\([a-z]*\),\(.*\)}$/* \2: \1 (`\3`)/p' "$work/cuda" | sed 's/^\* true/* holds/; s/^\* false/* **does not hold**/; s/^\* null/* not tried/'
    fi
    if [ -s "$work/bench" ]; then
        printf '\n## gpuhal-bench\n\nA ratio is the time of the direct calls over that of gpuhal; docs/measurements/README.md says what each row measures.\n'
        while read -r name; do
            printf '\n### %s\n\n| device | row | size | gpuhal | direct | result | 95 %% interval | budget | |\n|---|---|---|---|---|---|---|---|---|\n' "${name#bench-}"
            bench_table "$work/$name.out"
            [ "$(bench_is_whole "$name")" = true ] || printf '\nIt was stopped before its end; there would have been more.\n'
            ! grep -q '^gpuhal-bench: ' "$work/$name.err" || { echo && sed -n 's/^gpuhal-bench: /* /p' "$work/$name.err"; }
        done <"$work/bench"
    fi
}
