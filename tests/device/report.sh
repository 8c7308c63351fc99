# tests/device/report.sh: report.json and report.md of what tests/device/run.sh has left in $work; run.sh reads this file with a dot.
#
# In $work lie, one line for each thing and fields between tabs: steps (record() writes them), survey (what survey.c prints); lines of text:
# left_out, notes, cards; lines of JSON: copy-matrix.out, cuda; and the names of the steps whose output is a document of gpuhal-bench: bench.

# ---- pieces

# Quotes a text; all but printable ASCII is dropped, so that it is JSON whatever a driver calls itself.
json_text() {
    printf '"%s"' "$(printf '%s' "$1" | tr '\n\t' '  ' | tr -cd '\040-\176' | sed 's/\\/\\\\/g; s/"/\\"/g')"
}

# The lines of a file as an array of texts.
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

# Lines that are objects as an array. A line that was cut off is none.
json_lines() {
    printf '['
    if [ -f "$1" ]; then
        grep '^{.*}$' "$1" | sed '$!s/$/,/'
    fi
    printf ']'
}

# A whole document, or null where the program was stopped before its end.
json_document() {
    if [ -f "$1" ] && [ "$(head -c 1 "$1")" = '{' ] && [ "$(tail -n 1 "$1")" = '}' ]; then
        cat "$1"
    else
        printf 'null'
    fi
}

markdown_text() { printf '%s' "$1" | sed 's/|/\\|/g'; }

# ---- the whole

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
    [ -s "$work/survey" ] || printf 'nothing could be built to look for one'
}

write_json() {
    printf '{\n"schema": "gpuhal.device-report/1",\n"started": '
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
    while IFS=$tab read -r name verdict time most exit_code reason; do
        printf '%s\n{"name": "%s", "result": "%s", "seconds": %s, "limit_seconds": %s, "exit_code": %s, "reason": ' "$comma" "$name" "$verdict" \
            "$time" "$most" "$([ "$exit_code" = - ] && echo null || echo "$exit_code")"
        json_text "${reason#-}"
        printf '}'
        comma=,
    done <"$work/steps"
    printf '],\n"copy_matrix": '
    json_lines "$work/copy-matrix.out"
    printf ',\n"cuda": '
    json_lines "$work/cuda"
    printf ',\n"probe": '
    json_document "$work/probe.out"
    printf ',\n"bench": ['
    comma=''
    while read -r name; do
        printf '%s\n{"step": "%s", "document": ' "$comma" "$name"
        json_document "$work/$name.out"
        printf '}'
        comma=,
    done <"$work/bench"
    printf ']\n}\n'
}

# A table of a bench document: jansson writes one member a line.
bench_table() {
    awk 'function scaled(value, unit) {
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
         /^      "[a-z_0-9]*": / { key = $1; gsub(/[":]/, "", key); value = $0; sub(/^[^:]*: /, "", value); sub(/,$/, "", value); gsub(/^"|"$/, "", value); row[key] = value }
         /^    }/ {
             unit = row["unit"]
             ratio = row["ratio"] != "null" ? row["ratio"] : row["ratio_of_slower_half"]
             ours = row["gib_per_s"] != "null" ? rate(row["gib_per_s"]) : scaled(row["ours"], unit)
             base = row["baseline_gib_per_s"] != "null" ? rate(row["baseline_gib_per_s"]) : scaled(row["baseline"], unit)
             if (ratio != "null" && ratio != "") {
                 result = sprintf("%.3f", ratio); spread = sprintf("%.3f to %.3f", row["ratio_low"], row["ratio_high"]); budget = row["budget"] == "null" ? "" : "least " row["budget"]
             } else {
                 result = scaled(row["value"], unit); spread = scaled(row["value_low"], unit) " to " scaled(row["value_high"], unit); budget = row["budget"] == "null" ? "" : "most " scaled(row["budget"], unit)
             }
             if (row["error"] != "null") { result = row["error"]; spread = "" }
             printf "| %s%s | %s | %s | %s | %s | %s | %s | %s | %s |\n", row["device"], row["peer"] == "null" ? "" : " to " row["peer"], row["test"] (row["path"] == "null" ? "" : ", " row["path"]), size(row["bytes"]), ours, base, result, spread, budget, row["ok"] == "true" ? "held" : row["ok"] == "false" ? "**missed**" : ""
             split("", row) }' "$1"
}

write_markdown() {
    printf '# Device report of %s\n\n' "$(date -u -d "@$began" +%Y-%m-%d 2>/dev/null || date -u +%Y-%m-%d)"
    printf '**%s**; %s.\n\n' "$result" "$gpu"
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
    awk -F "$tab" '$1 == "device" { printf "| %s | %s | %s, %s | %s | %s |\n", $2, $8, $4, $5, $6 == "-" ? "" : sprintf("%.1f GiB", $6 / 1073741824), $7 }' "$work/survey"
    printf '\n| plugin | state | reason |\n|---|---|---|\n'
    awk -F "$tab" '$1 == "plugin" { printf "| %s | %s, devices: %s | %s |\n", $2, $3, $4, $6 == "-" ? "" : $6 }' "$work/survey"
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
    fi
    if [ -s "$work/cuda" ]; then
        printf '\n## CUDA\n\n'
        sed -n 's/^{"check":"\([^"]*\)","ok":\([a-z]*\),\(.*\)}$/* \2: \1 (`\3`)/p' "$work/cuda" | sed 's/^\* true/* holds/; s/^\* false/* **does not hold**/; s/^\* null/* not tried/'
    fi
    if [ -s "$work/bench" ]; then
        printf '\n## gpuhal-bench\n\nA ratio is the time of the direct calls over ours; docs/measurements/README.md tells what each row measures.\n'
        while read -r name; do
            printf '\n### %s\n\n| device | row | size | ours | direct | result | 95 %% interval | budget | |\n|---|---|---|---|---|---|---|---|---|\n' "${name#bench-}"
            bench_table "$work/$name.out"
        done <"$work/bench"
    fi
}
