# Completion of gpuhal-probe, gpuhal-check, gpuhal-bench, gpuhal-lease and gpuhal-place for fish: options from --help, and
# devices of this machine from the cache.

function __gpuhal_column
    gpuhal-probe --cached --all --format csv --columns $argv[1] 2>/dev/null | tail -n +2 | tr -d '\r' | sort -u
end

# Prints each option with the first line of its description.
function __gpuhal_options
    set -l words (commandline -opc)
    $words[1] --help 2>/dev/null | string replace -rf '^ .*?(--[a-z-]+)\S* {2,}(.*)$' '$1\t$2'
end

for program in gpuhal-probe gpuhal-check gpuhal-bench gpuhal-lease gpuhal-place
    complete -c $program -n 'string match -q -- "-*" (commandline -ct)' -a '(__gpuhal_options)'
    complete -c $program -l device -x -a 'auto gpu each most_free least_loaded (__gpuhal_column id)'
end
complete -c gpuhal-lease -n '__fish_use_subcommand' -x -a 'run wait status release'
complete -c gpuhal-lease -l devices -x -a '(__gpuhal_column id)'
complete -c gpuhal-probe -l explain -a '(__gpuhal_column id)'
complete -c gpuhal-probe -l backends -x -a '(__gpuhal_column backend)'
complete -c gpuhal-probe -l retry -x -a 'all (__gpuhal_column backend)'
complete -c gpuhal-probe -l format -x -a 'table wide json jsonl csv openmetrics prometheus gres cdi'
complete -c gpuhal-probe -l color -x -a 'auto always never'
