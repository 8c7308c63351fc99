#!/usr/bin/env python3
"""The index of files: file_index.py SOURCE_DIRECTORY [--write].

Makes docs/files.md from the first sentence of each file's first comment, or reports differences from the page. A file whose comment is only
"see OTHER" shares the other file's row.
"""

import os
import re
import sys
from pathlib import Path

FOLDERS = ("hal", "plugins", "tools", "examples", "cmake", "tests/support", "tests/fakes", "tests/bench", "tests/device", "tests/mutation", "tests/rules")
SUFFIXES = (".c", ".h", ".hpp", ".inc", ".cl", ".cu", ".comp", ".cjs", ".py", ".sh", ".bash", ".fish", ".cmake")
HEAD = """# The files

This page is made from the first comment of each file (`python3 tests/rules/file_index.py . --write`), and a test compares them.
[Architecture](architecture.md) leads through the files in the order in which one would read them.
"""
# A first comment is a C comment, "//" lines, a docstring, or "#" lines.
COMMENTS = (r"/\*+(.*?)\*/", r"((?://[^\n]*\n)+)", r'"""(.*?)"""', r"((?:#[^\n]*\n)+)")


def first_comment(text):
    """Returns the first comment's text, with empty lines between paragraphs, or "" if the file does not begin with a comment."""
    text = re.sub(r"\A#(?:!|version|compdef)[^\n]*\n", "", text)
    for form in COMMENTS:
        match = re.match(form, text, re.S)
        if match:
            return "\n".join(re.sub(r"^\s*(?:\*|//|#)*\s?", "", line).rstrip() for line in match.group(1).split("\n")).strip()
    return ""


def subject(name, comment):
    """Returns the first sentence, without the file name before it."""
    paragraph = " ".join(comment.split("\n\n")[0].split())
    before, colon, after = paragraph.partition(": ")
    if colon and re.search(r"(?<![\w-])" + re.escape(name) + r"(?![\w-])", before):
        paragraph = after
    sentence = re.split(r"\.(?= |$)", paragraph, maxsplit=1)[0].rstrip(":.")
    return re.sub(r"; see [\w./-]+$", "", sentence)


def rows(files):
    """Returns (names, subject) of each row, for the files of one folder: {name: text}."""
    subjects = {name: subject(name, first_comment(text)) for name, text in files.items()}
    other = {name: match.group(1) for name, text in subjects.items() if (match := re.match(r"see ([\w./-]+\w)", text)) and match.group(1) in files}
    for name in sorted(set(files) - set(other)):
        yield [name] + sorted(file for file in other if other[file] == name), subjects[name]


def tree(root):
    """Returns {folder: {name: text}} of the files that the page lists."""
    found = {}
    for top in FOLDERS:
        for directory, folders, names in os.walk(root / top):
            folders[:] = sorted(folder for folder in folders if folder != "__pycache__")
            for name in sorted(names):
                path = Path(directory, name)
                if path.suffix in SUFFIXES or not path.suffix and path.read_bytes().startswith((b"#!", b"#compdef")):
                    found.setdefault(Path(directory).relative_to(root).as_posix(), {})[name] = path.read_text(encoding="utf-8")
    return found


def page(found):
    lines = [HEAD.rstrip("\n")]
    for folder, files in found.items():
        lines += [f"\n## {folder}\n", "| file | subject |", "|---|---|"]
        for names, text in rows(files):
            text = text.replace("|", "\\|").replace("<", "&lt;")
            lines.append(f"| {', '.join(f'`{name}`' for name in names)} | {text} |")
    return "\n".join(lines) + "\n"


def complaints(found):
    for folder, files in found.items():
        for names, text in rows(files):
            if not text:
                yield f"{folder}/{names[0]}: does not begin with a comment that says what it is about"


def is_broken():
    files = {"a.c": "/* a.c: see a.h. Twice. */\n", "a.h": "/* x/a.h: one <b|c>. More.\n */\n", "b.py": '#!/x\n"""Does it.\n\nMore."""\n',
             "c.sh": "#!/bin/sh\n# c.sh FOLDER: runs\n# c:d.\n\necho\n"}
    expected = ["| `a.h`, `a.c` | one &lt;b\\|c> |", "| `b.py` | Does it |", "| `c.sh` | runs c:d |"]
    return page({"x": files}).splitlines()[-3:] != expected or list(complaints({"x": files})) or not list(complaints({"x": {"a.c": "int a;\n"}}))


def main():
    root = Path(sys.argv[1])
    found = tree(root)
    problems = list(complaints(found))
    made, path = page(found), root / "docs/files.md"
    if "--write" in sys.argv:
        path.write_text(made, encoding="utf-8")
    elif not path.is_file() or path.read_text(encoding="utf-8") != made:
        problems.append("docs/files.md is not what the files' first comments say: python3 tests/rules/file_index.py . --write")
    if is_broken():
        problems.append("the rule itself is broken")
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
