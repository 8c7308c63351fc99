"""C sources split into code, comments and strings, for the rules, which do not need a real parser."""

import re
from pathlib import Path

TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*)
      | (?P<string>"(?:\\.|[^"\\\n])*")
      | (?P<char>'(?:\\.|[^'\\\n])*')""",
    re.S | re.X,
)


def _blank(text):
    """Replaces everything except newlines by spaces, so that line numbers stay correct."""
    return "\n".join(" " * len(line) for line in text.split("\n"))


def without_comments(text):
    return TOKEN.sub(lambda m: _blank(m.group()) if m.lastgroup == "comment" else m.group(), text)


def without_strings(text):
    return TOKEN.sub(lambda m: '""' if m.lastgroup == "string" else m.group(), text)


def code_only(text):
    """Blanks comments and the contents of strings."""
    return TOKEN.sub(lambda m: _blank(m.group()) if m.lastgroup == "comment" else '""' if m.lastgroup == "string" else "' '", text)


def strings(text):
    """Each string literal outside of comments, with its line."""
    for match in TOKEN.finditer(text):
        if match.lastgroup == "string":
            yield line_of(text, match.start()), match.group()[1:-1]


def includes(text):
    """Each #include with its line: (line, '<' or '"', path)."""
    for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', without_comments(text), re.M):
        yield line_of(text, match.start()), match.group(1), match.group(2)


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def sources(root, *folders):
    """All .c and .h files below the folders, sorted."""
    found = []
    for folder in folders:
        found += [path for path in (Path(root) / folder).rglob("*") if path.suffix in (".c", ".h") and path.is_file()]
    return sorted(found)


def read(path):
    return Path(path).read_text(encoding="utf-8")


API = re.compile(r"^GPUHAL_(?:PLUGIN_)?API\s+(?P<type>[\w\s\*]*?)(?P<name>\w+)\s*\(", re.M)


def public_functions(header_text):
    """Each function marked GPUHAL_API or GPUHAL_PLUGIN_API: (line, return type, name, the comment directly before it or '')."""
    code = without_comments(header_text)
    for match in API.finditer(code):
        before = header_text[: match.start()].rstrip()
        comment = before[before.rfind("/**"):] if before.endswith("*/") else ""
        yield line_of(header_text, match.start()), match.group("type").strip(), match.group("name"), comment
