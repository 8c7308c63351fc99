# Completion of gpuhal-probe, gpuhal-check, gpuhal-bench, gpuhal-lease and gpuhal-place for bash-completion: options from
# --help, and devices of this machine from the cache.

# Prints a column of the listing.
_gpuhal_column() {
    gpuhal-probe --cached --all --format csv --columns "$1" 2>/dev/null | tail -n +2 | tr -d '\r' | sort -u
}

_gpuhal() {
    local cur prev words cword split=false
    _init_completion -s -n : || return
    if [[ ${words[0]##*/} == gpuhal-lease && $cword -eq 1 && $cur != -* ]]; then
        COMPREPLY=($(compgen -W 'run wait status release' -- "$cur"))
        return
    fi
    case $prev in
    --device | --devices | --explain)
        COMPREPLY=($(compgen -W "auto gpu each most_free least_loaded $(_gpuhal_column id)" -- "$cur"))
        __ltrim_colon_completions "$cur"
        return
        ;;
    --backends | --retry | --forget) COMPREPLY=($(compgen -W "$(_gpuhal_column backend)" -- "$cur")) && return ;;
    --format) COMPREPLY=($(compgen -W 'table wide json jsonl csv openmetrics prometheus gres cdi' -- "$cur")) && return ;;
    --color) COMPREPLY=($(compgen -W 'auto always never' -- "$cur")) && return ;;
    esac
    if ! $split && [[ $cur == -* ]]; then
        COMPREPLY=($(compgen -W "$(_parse_help "$1")" -- "$cur"))
        [[ ${COMPREPLY-} == *= ]] && compopt -o nospace
    else
        _filedir
    fi
}
complete -F _gpuhal gpuhal-probe gpuhal-check gpuhal-bench gpuhal-lease gpuhal-place
