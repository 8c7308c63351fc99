#!/usr/bin/env python3
"""The language of this tree is plain: prose_rules.py SOURCE_DIRECTORY GROUP [FILE…].

Counts three phrases that make readers stumble, per 10,000 words of a group: "what" without a noun, "where" in place of "if",
and a preposition before "which". The group is "comments" (comments and pages), "strings" (string literals of three words or more) or
"names" (names of tests, their underscores read as spaces). The script fails if a rate is above its limit. If files are given, it only prints
each such phrase in them.
"""

import re
import sys
from pathlib import Path

from c_text import TOKEN, line_of, read

TURNS = {
    'headless "what"': (8, r"what|whatever|that which|those (?:that|which|who)|(?:any|every|no|some)thing that|all that"),
    '"where"': (10, r"where"),
    'preposition + "which"': (4, r"(?:of|by|with|in|into|for|from|behind|to|at|on|under|over|through|before|after) which"),
}
FOLDERS = ("hal", "plugins", "tools", "tests", "examples", "docs", "cmake")
# Not read: dated reports, and the page that repeats first comments.
LEFT_OUT = ("docs/measurements/", "docs/files.md", "tests/recorded/")
C, SCRIPTS = (".c", ".h", ".inc", ".cpp", ".hpp", ".cl", ".cu", ".comp"), (".py", ".sh", ".cmake", "CMakeLists.txt")
HASH_COMMENT = re.compile(r'^[ \t]*""".*?"""|(?:(?<=\s)|^)#[^\n]*', re.S | re.M)
ADJACENT = re.compile(r'"(?:\s*(?:PRI\w+\s*)?")')


def matching(tokens, kind):
    return [(match.start(), match.group()) for match in tokens if match.lastgroup == kind]


def comments(path, text):
    """Yields (position, text) of each."""
    if path.suffix == ".md":
        return [(0, text)]
    if path.name.endswith(SCRIPTS):
        return [(match.start(), match.group()) for match in HASH_COMMENT.finditer(text)]
    return matching(TOKEN.finditer(text), "comment") if path.suffix in C else []


def strings(path, text):
    if path.suffix not in C or path.parts[0] == "tests":
        return []
    # Joins adjacent literals without a change of lines and positions.
    joined = ADJACENT.sub(lambda match: " " * len(match.group()) if "PRI" not in match.group() else "0" * len(match.group()), text)
    return [(at, found) for at, found in matching(TOKEN.finditer(joined), "string") if len(found.split()) >= 3]


def names(path, text):
    found = re.finditer(r"^TEST\((\w+)\)", text, re.M) if path.parts[0] == "tests" and path.suffix in (".c", ".cpp") else ()
    return [(match.start(), match.group(1).replace("_", " ")) for match in found]


GROUPS = {"comments": comments, "strings": strings, "names": names}


def files(root):
    pages = [path for path in root.glob("*") if path.suffix == ".md" or path.name == "CMakeLists.txt"]
    below = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*")) if path.is_file()]
    for path in sorted(pages) + below:
        name = path.relative_to(root)
        if (name.suffix in C + (".md",) or name.name.endswith(SCRIPTS)) and not str(name).startswith(LEFT_OUT):
            yield name


def places(text, pieces, turn):
    """Yields the line of each phrase, and the words around it."""
    for at, piece in pieces:
        for match in re.finditer(rf"\b(?:{TURNS[turn][1]})\b", piece, re.I):
            around = piece[max(match.start() - 60, 0):match.end() + 60]
            yield line_of(text, at + match.start()), " ".join(around.split())


def rates(texts, group):
    """Returns (number of words, {phrase: number}) of {path: text}."""
    words, counts = 0, dict.fromkeys(TURNS, 0)
    for path, text in texts.items():
        pieces = GROUPS[group](path, text)
        words += sum(len(piece.split()) for _, piece in pieces)
        for turn in TURNS:
            counts[turn] += len(list(places(text, pieces, turn)))
    return words, counts


def try_on_examples():
    """Yields a sentence for each example with a wrong count."""
    text = ('/* What is kept, where\nit is. */ int a; // of which one\nTEST(what_waits_is_done) {\n'
            ' f("What " "is kept"); g("where"); h("in %" PRIu64 " of which"); }\n')
    script = '"""What is kept."""\n# where it is\nx = 1  # of which\ny = "# not a comment"\n'
    wanted = (("comments", "hal/a.c", text, [1, 1, 1]), ("strings", "hal/a.c", text, [1, 0, 1]), ("names", "tests/a.c", text, [1, 0, 0]),
              ("strings", "tests/a.c", text, [0, 0, 0]), ("names", "hal/a.c", text, [0, 0, 0]), ("comments", "a.py", script, [1, 1, 1]),
              ("comments", "docs/a.md", "What\n\nwhere", [1, 1, 0]))
    for group, path, example, counts in wanted:
        if list(rates({Path(path): example}, group)[1].values()) != counts:
            yield f"example {path}: the {group} are counted as {rates({Path(path): example}, group)[1]}"
    lines = [line for line, _ in places(text, comments(Path("a.c"), text), '"where"')]
    if lines != [1]:
        yield f'"where" stands in lines {lines} of the example'


def main(root, group, *chosen):
    mistakes = list(try_on_examples())
    if mistakes:
        sys.exit("\n".join(mistakes))
    root = Path(root)
    texts = {path: read(root / path) for path in files(root)}
    if chosen:
        for path in (path for path in texts if str(path).startswith(chosen)):
            for turn in TURNS:
                for line, around in places(texts[path], GROUPS[group](path, texts[path]), turn):
                    print(f"{path}:{line}: {turn}: {around}")
        return
    words, counts = rates(texts, group)
    above = False
    for turn, (limit, _) in TURNS.items():
        rate = 1e4 * counts[turn] / words
        above = above or rate > limit
        print(f"{group}: {turn}: {counts[turn]} in {words} words, {rate:.1f} for each 10,000, at most {limit}")
    if above:
        sys.exit(f"Write a noun for each \"what\", and \"if\" for \"where\". The places: {sys.argv[0]} {root} {group} FILE…")


if __name__ == "__main__":
    main(*sys.argv[1:])
