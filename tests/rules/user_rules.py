#!/usr/bin/env python3
"""Every public function has a user: user_rules.py SOURCE_DIRECTORY.

Each function of the public headers is called by a tool, an example, an adapter or the Python package; tests do not count. without_user.txt lists the
exceptions, each with its reason; an exception must be a public function without a caller. Before the rule reads the tree, it is tried on
small trees.
"""

import io
import re
import sys
import tempfile
import tokenize
from pathlib import Path

import c_text

HEADERS = "hal/include/gpuhal"
EXCEPTIONS = "tests/rules/without_user.txt"
USERS = ("tools", "examples", "adapters", "python")
C_FILES = {".c", ".h", ".cpp", ".hpp"}
NAME = re.compile(r"\bgpuhal_\w+")
PUBLIC = re.compile(r"\bGPUHAL_API\b[^;(]*?\b(gpuhal_\w+)\s*\(")
EXCEPTION = re.compile(r"(gpuhal_\w+): \S.*")


def public_functions(root):
    """Returns each public function with its header."""
    return {name: header.name for header in sorted((root / HEADERS).rglob("*.h")) for name in PUBLIC.findall(c_text.code_only(c_text.read(header)))}


def python_code(text):
    return " ".join(token.string for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type in (tokenize.NAME, tokenize.OP))


def used_names(root):
    names = set()
    for folder in USERS:
        for path in (root / folder).rglob("*"):
            if path.suffix in C_FILES:
                names.update(NAME.findall(c_text.code_only(c_text.read(path))))
            elif path.suffix == ".py":
                names.update(NAME.findall(python_code(c_text.read(path))))
    return names


def broken(root):
    public, used, excepted = public_functions(root), used_names(root), set()
    for number, line in enumerate(c_text.read(root / EXCEPTIONS).splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        place, match = f"{EXCEPTIONS}:{number}", EXCEPTION.fullmatch(line)
        if not match:
            yield f"{place}: is not of the form NAME: REASON"
            continue
        name = match.group(1)
        if name in excepted:
            yield f"{place}: {name} stands there twice"
        elif name not in public:
            yield f"{place}: {name} is not a public function"
        elif name in used:
            yield f"{place}: {name} has a caller: remove the line"
        excepted.add(name)
    for name, header in public.items():
        if name not in used and name not in excepted:
            yield f"{header}: {name} has no caller in {', '.join(USERS)}: give it a user, remove it, or state in {EXCEPTIONS} why it stays"


# ---- trying the rule

HEADER = {f"{HEADERS}/a.h": "/** A. */\nGPUHAL_API int gpuhal_a(void);\nGPUHAL_API void\ngpuhal_b(void (*fn)(void), int x);\n"}
GOOD = ({"tools/x.c": "int main(void) { return gpuhal_a(); }", EXCEPTIONS: "# why\n\ngpuhal_b: the next adapter calls it\n"},
        {"examples/y/y.c": "void *all[] = {gpuhal_a, gpuhal_b};", EXCEPTIONS: ""},
        {"python/z.py": "lib.gpuhal_a()\nlib.gpuhal_b(f, 1)\n", EXCEPTIONS: ""},
        {"adapters/z.cpp": "static auto x = gpuhal_a();", EXCEPTIONS: "gpuhal_b: as above\n"})
BAD = ({"tools/x.c": "int main(void) { return gpuhal_a(); }", EXCEPTIONS: ""},
       {"tools/x.c": "/* gpuhal_a() gpuhal_b() */ const char *x = \"gpuhal_a()\";", EXCEPTIONS: "gpuhal_b: why\n"},
       {"tests/x.c": "int main(void) { return gpuhal_a(); }", EXCEPTIONS: "gpuhal_b: why\n"},
       {"python/z.py": "'''gpuhal_a()'''\n# gpuhal_a()\n", EXCEPTIONS: "gpuhal_b: why\n"},
       {"tools/x.c": "int x = gpuhal_a();", EXCEPTIONS: "gpuhal_b:\n"},
       {"tools/x.c": "int x = gpuhal_a();", EXCEPTIONS: "gpuhal_a: called\ngpuhal_b: why\n"},
       {"tools/x.c": "int x = gpuhal_a();", EXCEPTIONS: "gpuhal_b: why\ngpuhal_b: again\n"},
       {"tools/x.c": "int x = gpuhal_a();", EXCEPTIONS: "gpuhal_b: why\ngpuhal_c: there is none\n"})


def tried():
    """Yields a sentence for each small tree with a wrong result."""
    for is_bad, trees in ((True, BAD), (False, GOOD)):
        for tree in trees:
            with tempfile.TemporaryDirectory() as directory:
                for name, text in {**HEADER, **tree}.items():
                    path = Path(directory) / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text, encoding="utf-8")
                complaints = list(broken(Path(directory)))
            if bool(complaints) != is_bad:
                yield f"the rule itself is broken: {'silent about' if is_bad else 'complains about'} {tree}: {complaints}"


def main():
    complaints = list(tried()) + list(broken(Path(sys.argv[1])))
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
