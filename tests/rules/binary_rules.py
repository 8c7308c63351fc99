#!/usr/bin/env python3
"""The project's rules for built files. Each is one CTest test: binary_rules.py RULE COMPILER ARGUMENT…

Each rule is first tried on small examples, which the script compiles. A rule that accepts the bad example, or complains
about the good one, is broken, and its test fails.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import c_text

# libpthread, libdl and librt were separate files before glibc 2.34; musl has a single file.
LIBC = re.compile(r"(libc|libpthread|libdl|librt)\.so\.\d+|ld-linux.*\.so\.\d+|libc\.musl-.*|ld-musl-.*")


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def defined_names(path, *options):
    """Names with external linkage that a file defines."""
    lines = run("nm", "--extern-only", "--defined-only", "--format=posix", *options, str(path)).splitlines()
    return [line.split()[0].split("@")[0] for line in lines if len(line.split()) > 1 and line.split()[1] != "A"]


def names_begin_with(prefixes, *files):
    """PREFIX[,PREFIX…] FILE…: every name with external linkage begins with one of the prefixes."""
    listing = run("nm", "--extern-only", "--defined-only", "--format=posix", "--print-file-name", *map(str, files))
    for line in listing.splitlines():
        path, _, symbol = line.rpartition(": ")
        name, kind = symbol.split()[:2]
        if kind != "A" and not name.startswith(tuple(prefixes.split(","))):
            yield f"{Path(path).name}: {name} does not begin with {prefixes}"


def exports_are_the_public_functions(headers, library):
    """HEADER_DIRECTORY LIBRARY: the library exports exactly the functions that the headers mark GPUHAL_API."""
    declared = {name for path in sorted(Path(headers).rglob("*.h")) if path.name != "plugin.h"
                for _, _, name, _ in c_text.public_functions(c_text.read(path))}
    exported = set(defined_names(library, "--dynamic"))
    for name in sorted(exported - declared):
        yield f"{Path(library).name} exports {name}, which no public header declares"
    for name in sorted(declared - exported):
        yield f"{Path(library).name} does not export {name}"


def plugins_export_the_query_function_only(*plugins):
    """PLUGIN…"""
    for path in plugins:
        exported = defined_names(path, "--dynamic")
        if exported != ["gpuhal_plugin_query"]:
            yield f"{Path(path).name} exports {', '.join(exported) or 'nothing'} instead of gpuhal_plugin_query alone"


def libraries_need_libc_only(*libraries):
    """LIBRARY…: libc is the only needed library, and the library has no search path."""
    for path in libraries:
        dynamic = run("readelf", "--dynamic", "--wide", path)
        for name in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
            if not LIBC.fullmatch(name):
                yield f"{Path(path).name} needs {name}"
        for tag, value in re.findall(r"\((RPATH|RUNPATH)\).*\[(.*)\]", dynamic):
            yield f"{Path(path).name} has the {tag} {value}"


def programs_search_libraries_beside_themselves_alone(*programs):
    """PROGRAM…: every entry of a search path begins with the program's own folder. An empty entry would mean the current folder."""
    for path in programs:
        for value in re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", run("readelf", "--dynamic", "--wide", path)):
            for entry in value.split(":"):
                if not entry.startswith("$ORIGIN/"):
                    yield f'{Path(path).name} searches "{entry}"'


def libraries_are_bound_at_once_and_never_unloaded(*libraries):
    """LIBRARY…: linked with -z now and -z nodelete."""
    for path in libraries:
        flags = " ".join(re.findall(r"\(FLAGS_1\)(.*)", run("readelf", "--dynamic", "--wide", path)))
        for flag in ("NOW", "NODELETE"):
            if flag not in flags.split():
                yield f"{Path(path).name} was linked without -z {flag.lower()}"


def libraries_run_no_code_when_loaded(*libraries):
    """LIBRARY…: the only constructors and destructors are those that the compiler adds to every shared object."""
    for path in libraries:
        sizes = re.findall(r"\((INIT_ARRAYSZ|FINI_ARRAYSZ)\)\s+(\d+)", run("readelf", "--dynamic", "--wide", path))
        for kind, size in sizes:
            if int(size) > 8:
                yield f"{Path(path).name} has {int(size) // 8 - 1} {'constructors' if kind[0] == 'I' else 'destructors'} of its own"


GOOD = "__attribute__((visibility(\"default\"))) int gpuhal_plugin_query(void) { return 0; }\n"
LINKED = ["-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-z,now", "-Wl,-z,nodelete"]
HEADER = "GPUHAL_API int gpuhal_plugin_query(void);\n"

# rule: (compiled with, source that breaks it, source that keeps it, arguments; {file} is the compiled file)
EXAMPLES = {
    names_begin_with: (["-c"], GOOD + "int helper(void) { return 1; }\n", GOOD + "static int helper(void) { return gpuhal_plugin_query(); }\n"
                       "int gpuhal_x(void) { return helper(); }\n", ["gpuhal_plugin_query,gpuhal_x", "{file}"]),
    exports_are_the_public_functions: (LINKED, GOOD.replace("query", "other"), GOOD, ["{headers}", "{file}"]),
    plugins_export_the_query_function_only: (LINKED, GOOD + GOOD.replace("query", "other"), GOOD, ["{file}"]),
    libraries_need_libc_only: (LINKED + ["-Wl,--no-as-needed"], ["-lm"], [], ["{file}"]),
    programs_search_libraries_beside_themselves_alone: (LINKED, ["-Wl,-rpath,$ORIGIN/../lib:"], ["-Wl,-rpath,$ORIGIN/../lib"], ["{file}"]),
    libraries_are_bound_at_once_and_never_unloaded: (LINKED, ["-Wl,-z,lazy"], [], ["{file}"]),
    libraries_run_no_code_when_loaded: (LINKED, GOOD + "__attribute__((constructor)) static void early(void) { __asm__(\"\"); }\n", GOOD, ["{file}"]),
}


def try_on_examples(rule, compiler):
    """Yields a sentence for each example with a wrong result. An example is a source, or extra options for the good source."""
    options, bad, good, arguments = EXAMPLES[rule]
    for example, expected in ((bad, True), (good, False)):
        with tempfile.TemporaryDirectory() as directory:
            source, built = Path(directory) / "a.c", Path(directory) / "a.so"
            (Path(directory) / "a.h").write_text(HEADER, encoding="utf-8")
            source.write_text(example if isinstance(example, str) else GOOD, encoding="utf-8")
            run(compiler, *options, str(source), "-o", str(built), *(example if isinstance(example, list) else []))
            complaints = list(rule(*(a.format(file=built, headers=directory) for a in arguments)))
        if bool(complaints) != expected:
            yield f"the rule itself is broken: {'silent about' if expected else 'complains about'} {example!r}: {complaints}"


def main():
    rules = {rule.__name__: rule for rule in EXAMPLES}
    if len(sys.argv) < 4 or sys.argv[1] not in rules:
        print(f"usage: binary_rules.py RULE COMPILER ARGUMENT…; rules: {', '.join(rules)}", file=sys.stderr)
        return 2
    rule = rules[sys.argv[1]]
    complaints = list(try_on_examples(rule, sys.argv[2])) + list(rule(*sys.argv[3:]))
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
