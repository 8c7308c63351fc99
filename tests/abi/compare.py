#!/usr/bin/env python3
"""compare.py CC OUR_HEADER VENDOR_HEADER RESULT [--break size|offset|value|function]

Compares our declarations of a vendor's library with the vendor's own header: sizes of types, offsets and sizes of fields,
values of enumerators, types of functions. Our header is a set of lists (see its first comment). A copy of it, in which every
name of the vendor's style has "ours_" before it, is compiled beside the vendor's header, with one static assertion for each
thing of the lists. RESULT is the type that every function returns (CUresult), or `-` if the lists state it for each.

A vendor's headers name each other from the folder above their own (hip/linker_types.h), which is searched first: several versions
may be installed. A name that the vendor's header does not declare cannot be compared, and is reported; so are members that lie elsewhere
in earlier headers.
--break spoils our copy first: then it is a success to find that difference, so that a comparison that finds nothing is noticed.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

NAME = re.compile(r"\b(CU[a-zA-Z_]\w*|cu[A-Z]\w*|nvml[A-Z]\w*|NVML_\w+|"
                  r"i?hip[A-Z]\w*|HIP_\w+|(?:rsmi|RSMI|amdsmi|AMDSMI)_\w+)\b")
# Old names of functions stay declared in cuda.h only with the first; without, macros turn them into new ones. HIP's header wants to
# know which compiler it serves.
PROLOGUE = ("#define __CUDA_API_VERSION_INTERNAL\n#define __HIP_PLATFORM_AMD__\n"
            "#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n")
# Declarations that a vendor's header needs from another package, and that are the same elsewhere. Used if that package is not
# installed: rocm_smi/kfd_ioctl.h needs the kernel's names of integers from libdrm's header.
STAND_INS = {"libdrm/drm.h": "#include <linux/types.h>\n"}


# How a difference of each kind begins.
WORDS = {"size": "size of", "offset": "offset or size of", "value": "value", "function": "function"}


def entries(text, word):
    """The arguments of every WORD(…) in the lists, as text."""
    found = []
    for match in re.finditer(rf"^ +{word}\(", text, re.M):
        depth, at = 1, match.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[at], 0)
            at += 1
        found.append(re.sub(r"\s*\\\n\s*", " ", text[match.end():at - 1]))
    return found


def lists(text, result):
    """Functions as type, name and parameters; values; types; fields as type, member, and for later ones a macro of their header."""
    functions = [tuple(part.strip() for part in (entry if result == "-" else f"{result}, {entry}").split(",", 2))
                 for entry in entries(text, "REQUIRED") + entries(text, "OPTIONAL")]
    values = [entry.split(",")[0].strip() for entry in entries(text, "VALUE") + entries(text, "VERSION")]
    fields = [tuple(part.strip() for part in entry.split(",")) for entry in entries(text, "FIELD") + entries(text, "LATER")]
    return functions, values, entries(text, "TYPE"), fields


def spoil(text, what):
    """Our header with one mistake."""
    if what == "value":
        spoiled = re.sub(r"(ERROR_NOT_READY|NOT_SUPPORTED|hipErrorNotReady), \d+\)", r"\1, 4711)", text, count=1)
    elif what == "size":
        spoiled = re.sub(r"typedef struct (CUuuid|nvmlUtilization_t|hipUUID) \{", r"typedef struct \1 {\n    char more;", text,
                         count=1)
        spoiled = re.sub(r"typedef unsigned int (\w+smi_memory_type_t);", r"typedef unsigned long long \1;", spoiled, count=1)
    elif what == "offset":
        spoiled = text.replace("size_t srcXInBytes, srcY;", "size_t srcY, srcXInBytes;", 1)
        spoiled = spoiled.replace("unsigned long long total, free, used;", "unsigned long long free, total, used;", 1)
        spoiled = spoiled.replace("hipMemLocationType type;\n    int id;", "int id;\n    hipMemLocationType type;", 1)
    else:
        some = "cuMemAlloc_v2|nvmlDeviceGetCount_v2|hipError_t, hipMalloc|rsmi_init|amdsmi_init"
        spoiled = re.sub(rf"(REQUIRED\((?:{some}), \()", r"\1int more, ", text, count=1)
    if spoiled == text:
        sys.exit(f"there is nothing to break for {what}: the header has changed, and this script has to")
    return spoiled


def run(command, source):
    return subprocess.run(command, input=source, capture_output=True, text=True, check=False)


class Vendor:
    """The declarations of the vendor's header, after its macros."""

    def __init__(self, compiler, header, stand_ins):
        self.include = f'{PROLOGUE}#include "{header}"\n'
        self.compiler = [compiler, "-isystem", str(Path(header).resolve().parent.parent), "-idirafter", str(stand_ins), "-x", "c"]
        plain = run([*self.compiler, "-E", "-P", "-"], self.include)
        macros = run([*self.compiler, "-E", "-dM", "-"], self.include)
        if plain.returncode or macros.returncode:
            sys.exit(plain.stderr + macros.stderr)
        self.words = set(re.findall(r"\w+", plain.stdout))
        self.macros = set(re.findall(r"#define (\w+)", macros.stdout))
        self.functions = set(re.findall(r"\b(\w+)\s*\(", plain.stdout))

    def function(self, name):
        """How the type of a function is written: declared, or as a type of that name with a t before it (ffnvcodec)."""
        if "t" + name in self.words:
            return "t" + name
        return f"__typeof__({name})" if name in self.functions and name not in self.macros else None


def assertions(vendor, text, result):
    """Pairs of a C declaration, or None if the vendor has none, and its subject."""
    functions, values, types, fields = lists(text, result)
    for returned, name, parameters in functions:
        kind = vendor.function(name)
        known = kind and all(word in vendor.words for word in NAME.findall(parameters))
        yield known and f"__builtin_types_compatible_p({kind}, {returned} {parameters})", f"function {name}"
    for name in values:
        known = name in vendor.words or name in vendor.macros
        yield known and f"(long long)({name}) == (long long)(ours_{name})", f"value {name}"
    for name in types:
        yield name in vendor.words and f"sizeof({name}) == sizeof(ours_{name})", f"size of {name}"
    for kind, member, *later in fields:
        known = all(word in vendor.words for word in (kind, *later, *member.split(".")))
        ours = NAME.sub(r"ours_\1", member)
        yield (known and f"__builtin_offsetof({kind}, {member}) == __builtin_offsetof(ours_{kind}, {ours}) && "
               f"sizeof((({kind} *)0)->{member}) == sizeof(((ours_{kind} *)0)->{ours})"), f"offset or size of {kind}.{member}"


def main(arguments):
    compiler, ours, header, result = arguments[:4]
    text = Path(ours).read_text(encoding="utf-8")
    broken = arguments[5] if len(arguments) > 5 and arguments[4] == "--break" else None
    if broken:
        text = spoil(text, broken)
    with tempfile.TemporaryDirectory() as directory:
        for name, content in STAND_INS.items():
            (Path(directory) / name).parent.mkdir()
            (Path(directory) / name).write_text(content, encoding="utf-8")
        vendor = Vendor(compiler, header, directory)
        claims = list(assertions(vendor, text, result))
        kept = [(claim, about) for claim, about in claims if claim]
        silent = [about for claim, about in claims if not claim]
        copy = Path(directory) / "ours.h"
        copy.write_text(NAME.sub(r"ours_\1", text), encoding="utf-8")
        lines = [vendor.include, f'#include "{copy}"\n']
        lines += [f'_Static_assert({claim}, "{about}");\n' for claim, about in kept]
        outcome = run([*vendor.compiler, "-std=c17", "-w", "-fsyntax-only", "-"], "".join(lines))
    if silent:
        print(f"{header} does not declare: {', '.join(silent)}")
    print(f"{len(kept)} of {len(claims)} things compared with {header}")
    found = sorted(set(re.findall(r"static.assert\w* failed.*?\"([^\"]*)\"", outcome.stderr)))
    if outcome.returncode:
        print("they differ in: " + "; ".join(found) if found else outcome.stderr[:2000])
    if broken:
        return 0 if any(about.startswith(WORDS[broken]) for about in found) else 1
    return 1 if outcome.returncode or len(kept) < 20 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
