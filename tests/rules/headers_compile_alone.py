#!/usr/bin/env python3
"""Every public header compiles alone, twice in one file, without a warning: headers_compile_alone.py STANDARD INCLUDE_DIRECTORY COMPILER…

STANDARD is c11, c++17 and so on. The first compiler compiles each header alone. That run finds missing declarations. The
other compilers compile all headers in one file, only for their warnings. Compilers that are not installed are skipped with a message; if none is
installed, the test is skipped.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
WARNINGS = ["-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
# The test fails if the compiler accepts one of these files.
BAD_HEADERS = {
    "conversion.h": "static inline int narrow(long value) { return value; }\n",
    "incomplete.h": "uint32_t gpuhal_unknown_type(void);\n",
    "unguarded.h": "struct gpuhal_twice { int member; };\n",
}


def complaint_of(compiler, standard, directory, *headers):
    """Returns the compiler's messages about a file that includes only the headers, each twice; None if there are none."""
    language = "c++" if "++" in standard else "c"
    command = [compiler, "-x", language, f"-std={standard}", *WARNINGS, "-fsyntax-only", "-I", str(directory), "-"]
    include = "".join(f"#include <{header}>\n" for header in headers)
    result = subprocess.run(command, input=include + include, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return None if result.returncode == 0 else result.stdout


def main():
    standard, directory, compilers = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    found = [compiler for compiler in compilers if shutil.which(compiler)]
    for compiler in sorted(set(compilers) - set(found)):
        print(f"no {compiler} here")
    if not found:
        print(f"skipped: no compiler for {standard}")
        return SKIPPED
    failed = False
    with tempfile.TemporaryDirectory() as bad:
        for name, text in BAD_HEADERS.items():
            (Path(bad) / name).write_text(text, encoding="utf-8")
        for compiler in found:
            for name in BAD_HEADERS:
                if complaint_of(compiler, standard, bad, name) is None:
                    print(f"the test itself is broken: {compiler} takes {name}: {BAD_HEADERS[name]}")
                    failed = True
    endings = ("*.h", "*.hpp") if "++" in standard else ("*.h",)
    headers = sorted(path.relative_to(directory).as_posix() for ending in endings for path in directory.glob(f"gpuhal/**/{ending}"))
    for compiler, seen in [(found[0], [header]) for header in headers] + [(compiler, headers) for compiler in found[1:]]:
        complaint = complaint_of(compiler, standard, directory, *seen)
        if complaint is not None:
            print(f"{compiler} -std={standard} {' '.join(seen)}:\n{complaint}")
            failed = True
    print(f"{len(headers)} headers with {', '.join(found)}")
    return 1 if failed or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
