#!/usr/bin/env python3
"""The project's rules for the sources. Each is one CTest test: source_rules.py RULE SOURCE_DIRECTORY.

A rule is a generator that yields a sentence for each violation. Before a rule reads the tree, it is tried on small examples. It must
report the bad ones and accept the good ones, so that a rule that never finds anything is detected.
"""

import os
import re
import sys
import tempfile
from pathlib import Path

import c_text
from layers import LAYERS, layer_of

# Installed vendor headers; tools do not call a vendor's library.
OF_SYSTEM = re.compile(r"^(?:CL|cuda|hip|vk_mem_alloc|vulkan)\b")
# Parts of the library that do not depend on the rest. These programs compile the parts in and measure them.
MEASURED = {"tools/bench": {"hal/core/memory/blocks.h"}}
OF_VENDORS = {"gpuhal/plugin.h", "gpuhal/types.h", "gpuhal/native.h"}
BANNED = ("strcpy strcat sprintf vsprintf strtok atoi atol atoll atof gets system popen alloca abort exit _exit quick_exit assert "
          "dlclose dlopen dlsym getenv secure_getenv setenv putenv printf vprintf fprintf vfprintf dprintf puts putchar fputs fputc "
          "perror signal sigaction fork atexit").split()
# Places where a banned call is allowed, with the reason.
PERMITTED = {
    "hal/core/os/linux/environment.c": {"getenv", "secure_getenv"},           # the only reader of the environment
    "plugins/stream/environment.c": {"getenv"},                          # variables of the vendor's library, as it reads them
    "hal/core/os/linux/library.c": {"dlopen", "dlsym"},                       # the only caller of the dynamic loader
    "plugins/cpu/program.c": {"dlopen", "dlsym", "dlclose"},              # loads and unloads an application's kernels
    "hal/core/os/linux/helper_process.c": {"_exit", "sigaction", "signal", "setenv"},   # only the helper program calls it, in its own process
    "hal/core/base/log.c": {"fprintf"},                                       # GPUHAL_LOG: lines go to standard error on request
}
LINES_AT_MOST = 800
COLUMNS_AT_MOST = 120
# Assembled here, so that this file does not break its own rule.
UNFINISHED = re.compile(r"\b(?:%s)\b" % "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX")))


def place(root, path, line):
    return f"{path.relative_to(root)}:{line}"


def layers_include_only_themselves_and_lower_ones(root):
    hal = root / "hal"
    for path in c_text.sources(root, "hal"):
        layer = layer_of(path.relative_to(hal).parts)
        if layer == "include" or path == hal / "gpuhal.c":
            continue
        if layer not in LAYERS:
            yield f"{path.relative_to(root)}: lies in no layer"
            continue
        for line, kind, name in c_text.includes(c_text.read(path)):
            if kind == "<":
                if any((folder / name).is_file() for folder in (hal, hal / "core")):
                    yield f"{place(root, path, line)}: includes {name} of ours in angle brackets"
                continue
            target = next((p for p in (path.parent / name, hal / name, hal / "core" / name) if p.is_file()), None)
            if target is None:
                yield f"{place(root, path, line)}: includes {name}, which is no file of hal/"
                continue
            other = layer_of(target.resolve().relative_to(hal.resolve()).parts)
            if other not in LAYERS:
                yield f"{place(root, path, line)}: includes {name}, which lies in no layer"
            elif LAYERS.index(other) > LAYERS.index(layer):
                yield f"{place(root, path, line)}: {layer} includes {name}, but {other} is not below it"


def parts_reach_the_core_by_one_header_each(root):
    """Public headers are allowed as well. The layer's header declares functions for state in the gpuhal object, and for callbacks."""
    for part in ("node", "schedule"):
        for path in c_text.sources(root, f"hal/{part}"):
            text = c_text.read(path)
            for line, kind, name in c_text.includes(text):
                if kind == '"' and "/" in name and name.split("/")[0] != part and name != f"device/for_{part}.h":
                    yield f"{place(root, path, line)}: includes {name}, and not device/for_{part}.h"
            for line, code in enumerate(c_text.code_only(text).split("\n"), 1):
                if re.search(r"\bgpu->layers\b", code):
                    yield f"{place(root, path, line)}: reads gpuhal_layers"


def stays_at_home(root, path, home, public, vendors=True, shared=()):
    """A file may include the named public headers (None: all), files below `home` or in `shared`, the baselines of the folder, and
    vendor headers if `vendors` is true."""
    for line, kind, name in c_text.includes(c_text.read(path)):
        if kind == "<":
            if name.startswith("gpuhal/") and public is not None and name not in public:
                yield f"{place(root, path, line)}: includes <{name}>"
            elif name.startswith("gpuhal/") and not (root / "hal/include" / name).is_file():
                yield f"{place(root, path, line)}: <{name}> is no public header"
            elif (root / "hal" / name).is_file() or (root / "hal/core" / name).is_file():
                yield f"{place(root, path, line)}: includes <{name}> of the library's inside"
            elif not vendors and OF_SYSTEM.match(name):
                yield f"{place(root, path, line)}: includes <{name}> of a vendor"
            continue
        target = path.parent / name
        if not target.is_file():
            target = home / name
        named = os.path.relpath(target.resolve(), root.resolve())
        if target.is_file() and named in MEASURED.get(os.path.relpath(home, root), ()):
            continue
        if not target.is_file():
            yield f'{place(root, path, line)}: "{name}" is not in {home.relative_to(root)}'
        elif not any(folder.resolve() in target.resolve().parents for folder in (home, *shared)):
            yield f'{place(root, path, line)}: "{name}" lies outside {home.relative_to(root)}'


def plugins_see_the_vendor_headers_and_their_own_folder_only(root):
    """All may use plugins/common, which contains only headers. A plugin with a stream_names.h is built with plugins/stream, and may use
    that folder as well. The sources in plugins/stream may use the headers that all such plugins have."""
    common, shared = root / "plugins/common", root / "plugins/stream"
    streams = sorted(path.parent for path in root.glob("plugins/*/stream_names.h"))
    for path in c_text.sources(root, "plugins"):
        own = root / "plugins" / path.relative_to(root / "plugins").parts[0]
        for home in streams if own == shared else [own]:
            yield from stays_at_home(root, path, home, OF_VENDORS, shared=(common, shared) if home in streams else (common,))


def tools_and_examples_see_the_public_headers_and_their_own_folder_only(root):
    for folder in ("tools", "examples"):
        for path in c_text.sources(root, folder):
            below = path.relative_to(root / folder).parts
            home = root / folder / below[0] if len(below) > 1 else root / folder
            yield from stays_at_home(root, path, home, None, vendors=folder != "tools",
                                     shared=(root / "tools/common",) if folder == "tools" else ())


def the_library_and_the_plugins_make_no_banned_call(root):
    call = re.compile(r"(?<![\w.>])(%s)\s*\(" % "|".join(BANNED))
    for path in c_text.sources(root, "hal", "plugins"):
        where = path.relative_to(root).as_posix()
        # The helper is a program, so it may exit and install handlers.
        permitted = {"_exit", "exit", "sigaction", "signal"} if where.startswith("hal/core/loader/helper/") else PERMITTED.get(where, set())
        text = c_text.code_only(c_text.read(path))
        for match in call.finditer(text):
            if match.group(1) not in permitted:
                yield f"{place(root, path, c_text.line_of(text, match.start()))}: calls {match.group(1)}()"


def public_functions_state_owner_threads_blocks_and_errors(root):
    for path in c_text.sources(root, "hal/include"):
        if path.name == "plugin.h":
            continue  # vendors implement the slots; the file's first comment applies to all slots
        for line, kind, name, comment in c_text.public_functions(c_text.read(path)):
            wanted = ["Owner:", "Threads:", "Blocks:"] + ([] if kind == "void" else ["@return"])
            absent = [word for word in wanted if word not in comment]
            if absent:
                yield f"{place(root, path, line)}: the comment of {name} lacks {', '.join(absent)}"


def source_files_open_with_what_they_are_about(root):
    for path in c_text.sources(root, "hal", "plugins", "tools", "examples", "tests"):
        if not re.match(r"/\*\*? \w", c_text.read(path)):
            yield f"{path.relative_to(root)}: does not open with a comment"


def source_files_stay_short(root):
    for path in c_text.sources(root, "hal", "plugins", "tools", "examples", "tests"):
        count = c_text.read(path).count("\n")
        if count > LINES_AT_MOST:
            yield f"{path.relative_to(root)}: {count} lines; {LINES_AT_MOST} are the limit"


def lines_stay_short(root):
    for path in c_text.sources(root, "hal", "plugins", "tools", "examples", "tests"):
        for number, line in enumerate(c_text.read(path).split("\n"), 1):
            if path.suffix in (".c", ".h") and len(line) > COLUMNS_AT_MOST:
                yield f"{place(root, path, number)}: {len(line)} columns; {COLUMNS_AT_MOST} are the limit"


def text_files(root):
    for directory, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in ("build", ".git", "__pycache__"))
        for name in sorted(names):
            path = Path(directory) / name
            try:
                yield path, path.read_text(encoding="utf-8")
            except (UnicodeDecodeError, OSError):
                continue  # binary, or gone


def nothing_is_left_marked_as_unfinished(root):
    for path, text in text_files(root):
        if not UNFINISHED.search(text):
            continue
        # TAP has a directive with this name, which C programs print, so C strings do not count.
        for match in UNFINISHED.finditer(c_text.without_strings(text) if path.suffix in (".c", ".h") else text):
            yield f"{place(root, path, c_text.line_of(text, match.start()))}: {match.group()}"


def environment_of_sources(root):
    """Names of environment variables in the sources, with one place each."""
    found, identifiers = {}, set()
    for path in c_text.sources(root, "hal/include"):
        identifiers |= set(re.findall(r"\bGPUHAL_[A-Z0-9_]+\b", c_text.code_only(c_text.read(path))))
    for path in c_text.sources(root, "hal", "plugins", "tools", "examples"):
        text = c_text.read(path)
        if "GPUHAL_" not in text and "library(" not in text:
            continue
        where = lambda position: place(root, path, c_text.line_of(text, position))
        for line, string in c_text.strings(text):
            for name in re.findall(r"\bGPUHAL_[A-Z0-9_]*[A-Z0-9]\b", string):
                found.setdefault(name, f"{path.relative_to(root)}:{line}")
        code = c_text.without_comments(text)
        for match in re.finditer(r'\blibrary\(\s*\w+\s*,\s*"([A-Z0-9_]+)"', code):
            found.setdefault(f"GPUHAL_{match.group(1)}_LIBRARY", where(match.start()))
    return {name: at for name, at in found.items() if name not in identifiers}


def environment_variables_and_their_table_agree(root):
    table = root / "docs/environment.md"
    rows = [line.split("|")[1] for line in table.read_text(encoding="utf-8").splitlines() if line.startswith("|")] if table.is_file() else []
    documented = set(re.findall(r"`(GPUHAL_[A-Z0-9_]+)", " ".join(rows)))
    used = environment_of_sources(root)
    for path in c_text.sources(root, "plugins"):
        for option in re.findall(r'\boption\(\s*\w+\s*,\s*"([^"]+)"', c_text.without_comments(c_text.read(path))):
            if f"`{option}`" not in (table.read_text(encoding="utf-8") if table.is_file() else ""):
                yield f"{path.relative_to(root)}: the option {option} does not stand in docs/environment.md"
    for name in sorted(set(used) - documented):
        yield f"{used[name]}: {name} has no row in docs/environment.md"
    for name in sorted(documented - set(used)):
        yield f"docs/environment.md: {name} is used nowhere"


def headings(text):
    """Returns the link targets of a page's headings."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    return {re.sub(r"[^\w -]", "", line.lower()).strip().replace(" ", "-") for line in re.findall(r"^#+ (.*)$", text, re.M)}


def documents_name_only_files_that_exist(root):
    for path, text in text_files(root):
        if path.suffix != ".md":
            continue
        for match in re.finditer(r"\]\(([^)#:\s]*)(?:#([^)]*))?\)", text):
            target, heading = path.parent / match.group(1) if match.group(1) else path, match.group(2)
            if not target.exists():
                yield f"{place(root, path, c_text.line_of(text, match.start()))}: links to {match.group(1)}, which does not exist"
            elif heading and target.suffix == ".md" and heading not in headings(target.read_text(encoding="utf-8")):
                yield f"{place(root, path, c_text.line_of(text, match.start()))}: links to #{heading}, a heading that {target.name} has not"
        for match in re.finditer(r"`((?:hal|plugins|tools|tests|docs|examples)/[\w./-]+)`", text):
            if not (root / match.group(1)).exists():
                yield f"{place(root, path, c_text.line_of(text, match.start()))}: names {match.group(1)}, which does not exist"


def every_page_stands_in_the_index_of_pages(root):
    index = root / "docs/README.md"
    linked = set(re.findall(r"\]\(([^)#:\s]+)", index.read_text(encoding="utf-8"))) if index.is_file() else set()
    for page in sorted((root / "docs").glob("*.md")):
        if page != index and page.name not in linked:
            yield f"docs/README.md: does not lead to {page.name}"


def the_table_of_first_calls_has_every_header_that_declares_calls(root):
    """The table at the end of gpuhal.h: each row has a task, headers, and a call that one of them declares."""
    headers = root / "hal/include/gpuhal"
    rows = re.findall(r"^ \*  \S.*?  +([\w/]+\.h(?:, [\w/]+\.h)*) +(\w+)\(\)$", c_text.read(headers / "gpuhal.h"), re.M)
    declared = {path.relative_to(headers).as_posix(): {name for _, _, name, _ in c_text.public_functions(c_text.read(path))}
                for path in sorted(headers.rglob("*.h"))}
    named = set()
    for row, call in rows:
        named.update(row.split(", "))
        if not any(call in declared.get(header, ()) for header in row.split(", ")):
            yield f"hal/include/gpuhal/gpuhal.h: {row} does not declare {call}()"
    for header in sorted(header for header, calls in declared.items() if calls and header not in named):
        yield f"hal/include/gpuhal/gpuhal.h: no row of the table of first calls has {header}"


def unwanted_words(root):
    """Reads tests/rules/words.txt. Returns the words of each form, an expression that matches all forms, and {form: replacement}."""
    instead = {}
    for line in c_text.read(root / "tests/rules/words.txt").splitlines():
        if line and not line.startswith("#"):
            forms, instead_of_them = line.split(" = ")
            groups = forms.split(" | ")
            for form in groups if len(groups) > 1 else forms.split():
                instead[form] = instead_of_them
    # An underscore separates words, so that words inside identifiers are found.
    words = [set(form.split()) for form in instead]
    return words, re.compile(r"(?<![A-Za-z])(?:%s)(?![A-Za-z])" % "|".join(form.replace(" ", r"[\s_]+(?:\*\s+)?") for form in instead), re.I), instead


def plain_text_of(page):
    """Returns a page with its quoted code and names blanked, since they may quote old versions."""
    return re.sub(r"^```.*?^```|`[^`\n]*`", lambda m: re.sub(r"[^\n]", " ", m.group()), page, flags=re.S | re.M)


def words_of_our_own_are_not_used(root):
    forms, unwanted, instead = unwanted_words(root)
    tree = [path for folder in ("hal", "plugins", "tools", "tests", "examples") for path in sorted((root / folder).rglob("*")) if path.is_file()]
    for path in tree + sorted(root.glob("docs/*.md")) + sorted(root.glob("*.md")):
        where = path.relative_to(root).as_posix()
        # json_former.c prints the keys of a document that was released before this rule existed.
        if where in ("tests/rules/words.txt", "tools/probe/json_former.c") or not re.search(r"\.(?:c|h|hpp|inc|py|sh|md|cmake|txt|gpuhal)$", where):
            continue
        text = c_text.read(path)
        words = set(re.findall("[a-z]+", text.lower()))
        if not any(form <= words for form in forms):
            continue  # faster than the expression
        for match in unwanted.finditer(plain_text_of(text) if path.suffix == ".md" else text):
            found = re.sub(r"[\s_*]+", " ", match.group().lower())
            yield f'{where}:{c_text.line_of(text, match.start())}: "{found}"; say: {instead[found]}'


def slots_of_plugins(root):
    header = c_text.code_only(c_text.read(root / "hal/include/gpuhal/plugin.h"))
    names = []
    for structure in ("gpuhal_ops", "gpuhal_plugin", "gpuhal_queue_ops", "gpuhal_peer_ops", "gpuhal_range_ops", "gpuhal_program_ops",
                      "gpuhal_native_ops"):
        body = re.search(r"struct %s \{(.*?)\n\}" % structure, header, re.S)
        names += re.findall(r"^    (?! )[\w ]*\((?:GPUHAL_CALL )?\*(\w+)\)\(", body.group(1), re.M) if body else []
    return names


def closes_before(text, opening, position):
    """Returns whether the parenthesis at `opening` is closed before `position`."""
    depth = 0
    for character in text[opening:position]:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return True
    return False


def calls_of_plugins_are_watched(root):
    """A slot is only called between the beginning and the end of a gpuhal_call in the same function, and always by its own name."""
    slots = "|".join(slots_of_plugins(root))
    called = re.compile(r"(?:->|\.)(%s)\s*\(" % slots)
    renamed = re.compile(r"(?<![=!<>])=\s*[\w>.-]*\b(?:ops|plugin|queues|peers|ranges|programs|native)(?:->|\.)(%s)\s*[;,]|(?:->|\.)(%s)\s*\)\s*\(" % (slots, slots))
    begun = re.compile(r"\bgpuhal_(?:call_(?:prompt|aside|small|blocking|timed)|device_begin_compiling)\(")
    ended = re.compile(r"\bgpuhal_(?:call_end|device_result|device_end_compiling)(\()")
    for path in c_text.sources(root, "hal"):
        if "include" in path.relative_to(root).parts:
            continue
        text = c_text.code_only(c_text.read(path))
        for match in renamed.finditer(text):
            yield f"{place(root, path, c_text.line_of(text, match.start()))}: {match.group(1) or match.group(2)} is called by another name"
        for match in called.finditer(text):
            start = text.rfind("\n{", 0, match.start())
            end = text.find("\n}", match.start())
            beginnings = list(begun.finditer(text, max(start, 0), match.start()))
            watched = beginnings and not any(closes_before(text, e.start(1), match.start())
                                             for e in ended.finditer(text, beginnings[-1].end(), match.start()))
            if not watched or not re.search(r"\bcall\b", text[beginnings[-1].end():end]):
                yield f"{place(root, path, c_text.line_of(text, match.start()))}: the call of {match.group(1)} is not watched"


PLUGIN_HEADER = ("/** p */\ntypedef struct gpuhal_ops {\n    void (*release)(int x);\n    int (*copy)(int x);\n} gpuhal_ops;\n"
                 "typedef struct gpuhal_plugin {\n    int (*start)(int x);\n} gpuhal_plugin;\n")
WATCHED = "void f(void)\n{\n    gpuhal_call call = gpuhal_call_prompt(d);\n    d->ops.copy(1);\n    gpuhal_call_end(call);\n}\n"
PUBLIC = {"hal/include/gpuhal/plugin.h": "/** p */\n#define GPUHAL_PLUGIN_MACRO 1\n", "hal/include/gpuhal/types.h": "/** t */\n",
          "hal/include/gpuhal/buffer.h": "/** b */\n", "hal/core/base/log.h": "/* l */\n", "hal/core/loader/loader.h": "/* l */\n"}
CONTRACT = "/** Does.\n *  @return GPUHAL_OK\n *  Owner: nothing. Threads: any. Blocks: no. */\n"
DECLARATION = "GPUHAL_API gpuhal_status gpuhal_do(void);\n"
FIRST_CALLS = "/*  task        header        first call\n *  do a thing  a.h           gpuhal_do()\n */\n"
WORDS = "# forms = instead\ngadget gadgets = thing\nblue box | blue boxes = telephone\n"
# Two plugins that are built with plugins/stream; one has a header that the other lacks.
STREAMS = {"plugins/stream/s.h": "", "plugins/x/stream_names.h": '#include "../stream/s.h"\n', "plugins/y/stream_names.h": "", "plugins/y/b.h": ""}

# rule: (trees that break it, trees that obey it); all of them contain PUBLIC.
EXAMPLES = {
    layers_include_only_themselves_and_lower_ones: (
        [{"hal/core/base/a.c": '#include "loader/loader.h"\n'}, {"hal/core/base/a.c": '#include "../loader/loader.h"\n'},
         {"hal/core/transfer/a.c": '#include "queue/b.h"\n', "hal/core/queue/b.h": ""}, {"hal/utilities/a.c": ""},
         {"hal/core/os/a.c": "#include <base/log.h>\n"}, {"hal/core/base/a.c": '#include "nowhere.h"\n'}],
        [{"hal/core/loader/a.c": '#include "base/log.h"\n#include "loader.h"\n/* #include "device/d.h" */\n#include <stdio.h>\n'},
         {"hal/gpuhal.c": '#include "loader/loader.h"\n'}]),
    parts_reach_the_core_by_one_header_each: (
        [{"hal/node/a.c": '#include "base/log.h"\n'}, {"hal/schedule/a.c": '#include "device/for_node.h"\n', "hal/core/device/for_node.h": ""},
         {"hal/schedule/a.c": "void f(gpuhal *gpu)\n{\n    gpu->layers.serve(gpu);\n}\n"}],
        [{"hal/node/a.c": '#include "node/b.h"\n#include "device/for_node.h"\n#include <gpuhal/types.h>\n', "hal/node/b.h": "",
          "hal/core/device/for_node.h": ""}]),
    plugins_see_the_vendor_headers_and_their_own_folder_only: (
        [{"plugins/x/a.c": "#include <gpuhal/buffer.h>\n"}, {"plugins/x/a.c": '#include "../y/b.h"\n', "plugins/y/b.h": ""},
         {"plugins/x/a.c": '#include "base/log.h"\n'}, {"plugins/x/a.c": "#include <base/log.h>\n"},
         {"plugins/x/a.c": '#include "../stream/s.h"\n', "plugins/stream/s.h": ""},
         {**STREAMS, "plugins/x/a.c": '#include "../y/b.h"\n'}, {**STREAMS, "plugins/stream/s.c": '#include "../y/b.h"\n'},
         {**STREAMS, "plugins/stream/s.c": '#include "b.h"\n'}, {**STREAMS, "plugins/stream/s.c": "#include <gpuhal/buffer.h>\n"}],
        [{"plugins/x/a.c": '#include "b.h"\n#include <gpuhal/plugin.h>\n#include <CL/cl.h>\n', "plugins/x/b.h": ""},
         {"plugins/x/a.c": '#include "../common/c.h"\n', "plugins/common/c.h": ""},
         {**STREAMS, "plugins/stream/s.c": '#include "s.h"\n#include "stream_names.h"\n#include <gpuhal/native.h>\n',
          "hal/include/gpuhal/native.h": "/** n */\n"}]),
    tools_and_examples_see_the_public_headers_and_their_own_folder_only: (
        [{"tools/x/a.c": '#include "../../plugins/x/driver.h"\n', "plugins/x/driver.h": ""},
         {"examples/a.c": '#include "../plugins/x/x_api.h"\n', "plugins/x/x_api.h": ""},
         {"tools/x/a.c": '#include "../../plugins/x/x_y_api.h"\n', "plugins/x/x_y_api.h": ""}, {"tools/x/a.c": "#include <CL/cl.h>\n"},
         {"tools/x/a.c": '#include "base/log.h"\n'}, {"tools/x/a.c": "#include <base/log.h>\n"},
         {"examples/a.c": '#include "../hal/core/base/log.h"\n'}, {"tools/x/a.c": "#include <gpuhal/secret.h>\n"},
         {"tools/x/a.c": '#include "../../hal/core/memory/blocks.h"\n', "hal/core/memory/blocks.h": ""},
         {"tools/bench/a.c": '#include "../../hal/core/base/log.h"\n'}, {"tools/bench/a.c": '#include "memory/blocks.h"\n', "hal/core/memory/blocks.h": ""},
         {"tools/x/a.c": '#include "../y/b.h"\n', "tools/y/b.h": ""}, {"tools/common/a.c": '#include "../x/b.h"\n', "tools/x/b.h": ""},
         {"examples/a.c": '#include "../tools/common/b.h"\n', "tools/common/b.h": ""}],
        [{"tools/x/a.c": '#include "b.h"\n#include <gpuhal/buffer.h>\n', "tools/x/b.h": ""},
         {"tools/x/a.c": '#include "../common/b.h"\n', "tools/common/b.h": ""}, {"tools/common/a.c": '#include "b.h"\n', "tools/common/b.h": ""},
         {"tools/bench/a.c": '#include "../../hal/core/memory/blocks.h"\n', "hal/core/memory/blocks.h": ""},
         {"examples/a.c": "#include <stdio.h>\n#include <CL/cl.h>\n"}]),
    the_library_and_the_plugins_make_no_banned_call: (
        [{"hal/core/base/a.c": "void f(void) { abort(); }\n"}, {"plugins/x/a.c": "void f(void) { dlclose (0); }\n"},
         {"hal/core/base/a.c": "void f(void) { if (getenv(\"A\")) { } }\n"}, {"hal/core/device/a.c": "void f(void) { fprintf(stderr, 0); }\n"}],
        [{"hal/core/base/a.c": '/* abort() */ const char *s = "exit()"; void f(void) { snprintf(0, 0, 0); g.exit(1); h->abort(); my_exit(); }\n'},
         {"hal/core/os/linux/environment.c": "void f(void) { secure_getenv(0); }\n"}]),
    public_functions_state_owner_threads_blocks_and_errors: (
        [{"hal/include/gpuhal/a.h": DECLARATION}, {"hal/include/gpuhal/a.h": CONTRACT.replace("Threads: any. ", "") + DECLARATION},
         {"hal/include/gpuhal/a.h": CONTRACT.replace("@return", "") + DECLARATION},
         {"hal/include/gpuhal/a.h": CONTRACT + DECLARATION + DECLARATION}],
        [{"hal/include/gpuhal/a.h": CONTRACT + DECLARATION},
         {"hal/include/gpuhal/a.h": CONTRACT.replace("@return", "") + "GPUHAL_API void gpuhal_do(void);\n"}]),
    source_files_open_with_what_they_are_about: (
        [{"hal/core/base/a.c": "#include <stdio.h>\n"}, {"tests/unit/a.c": "/*\n*/\n"}], [{"hal/core/base/a.c": "/* core/a.c: a. */\n"}]),
    source_files_stay_short: (
        [{"hal/core/base/a.c": "/* a */\n" * (LINES_AT_MOST + 1)}], [{"hal/core/base/a.c": "/* a */\n" * LINES_AT_MOST}]),
    lines_stay_short: (
        [{"hal/core/base/a.c": "/* " + "a" * COLUMNS_AT_MOST + " */\n"}], [{"hal/core/base/a.c": "/*" + "…" * (COLUMNS_AT_MOST - 4) + "*/\n"}]),
    nothing_is_left_marked_as_unfinished: (
        [{"README.md": "TO" + "DO: write\n"}, {"hal/core/base/a.c": "/* FIX" + "ME */\n"}], [{"hal/core/base/a.c": '/* AUTODOC mastodon */ const char *s = "# TO' + 'DO";\n'}]),
    environment_variables_and_their_table_agree: (
        [{"hal/core/base/a.c": 'const char *n = "GPUHAL_NEW";\n', "docs/environment.md": "| `GPUHAL_OLD` | x |\n"},
         {"hal/core/base/a.c": "", "docs/environment.md": "| `GPUHAL_OLD` | x |\n"},
         {"plugins/x/a.c": 'void f(void) { host->option(host, "x.limit", b, 9); }\n', "docs/environment.md": ""},
         {"plugins/x/a.c": 'void f(void) { h->library(h, "OPENCL", 0); }\n', "docs/environment.md": "not a table: `GPUHAL_OPENCL_LIBRARY`\n"}],
        [{"hal/core/base/a.c": 'const char *n = "GPUHAL_OLD, GPUHAL_PLUGIN_MACRO, GPUHAL_%s_LIBRARY";\n', "docs/environment.md": "| `GPUHAL_OLD` | x |\n"},
         {"plugins/x/a.c": 'void f(void) { h->library(h, "OPENCL", 0); }\n', "docs/environment.md": "| `GPUHAL_OPENCL_LIBRARY` | x |\n"}]),
    calls_of_plugins_are_watched: (
        [{"hal/include/gpuhal/plugin.h": PLUGIN_HEADER, "hal/core/base/a.c": text} for text in (
            "void f(void)\n{\n    d->ops.release(1);\n}\n", "void f(void)\n{\n    p->start(1);\n}\n",
            WATCHED.replace("}\n", "    d->ops.release(1);\n}\n"), WATCHED + "void g(void)\n{\n    d->ops.release(1);\n}\n",
            WATCHED.replace("    gpuhal_call_end(call);\n", ""), WATCHED.replace("d->ops.copy(1)", "(a ? b : d->ops.copy)(1)"),
            WATCHED.replace("d->ops.copy(1)", "f = d->ops.copy; f(1)"))],
        [{"hal/include/gpuhal/plugin.h": PLUGIN_HEADER, "hal/core/base/a.c": text} for text in (
            WATCHED, WATCHED.replace("d->ops.copy(1);\n    gpuhal_call_end(call)", "s = gpuhal_device_result(d, call, d->ops.copy(1))"),
            "void f(void)\n{\n    if (d->ops.copy && !plugin->start) {\n    }\n}\n")]),
    words_of_our_own_are_not_used: (
        [{"tests/rules/words.txt": WORDS, **tree} for tree in (
            {"tests/unit/a.c": "/* a gadget */\n"}, {"hal/core/base/a.c": "int old_gadget_count;\n"}, {"hal/core/base/a.c": 'const char *s = "Gadgets";\n'},
            {"hal/core/base/a.c": "/* a blue\n * box */\n"}, {"docs/a.md": "Two gadgets.\n"}, {"README.md": "a blue box\n"},
            {"examples/x/CMakeLists.txt": "# a gadget\n"})],
        [{"tests/rules/words.txt": WORDS, **tree} for tree in (
            {"hal/core/base/a.c": "/* gadgetry; a blue sky; a box */\n"}, {"docs/a.md": "The old name is `gadget`.\n```\ngadget = 1\n```\n"})]),
    every_page_stands_in_the_index_of_pages: (
        [{"docs/a.md": ""}, {"docs/a.md": "", "docs/README.md": "see `a.md`"}],
        [{"docs/a.md": "", "docs/README.md": "see [a](a.md)"}]),
    the_table_of_first_calls_has_every_header_that_declares_calls: (
        [{"hal/include/gpuhal/gpuhal.h": table, "hal/include/gpuhal/a.h": DECLARATION} for table in (
            "/* g */\n", FIRST_CALLS.replace("gpuhal_do", "gpuhal_gone"), FIRST_CALLS.replace("a.h", "b.h"))],
        [{"hal/include/gpuhal/gpuhal.h": FIRST_CALLS, "hal/include/gpuhal/a.h": DECLARATION},
         {"hal/include/gpuhal/gpuhal.h": FIRST_CALLS.replace("a.h", "a.h, types.h"), "hal/include/gpuhal/a.h": DECLARATION}]),
    documents_name_only_files_that_exist: (
        [{"docs/a.md": "see [b](b.md)\n"}, {"README.md": "open `hal/core/base/gone.c`\n"}, {"docs/a.md": "# A\n[b](#b) [a](a.md#a)\n"}],
        [{"docs/a.md": "# Of A: b\n[b](#of-a-b), [log](../hal/core/base/log.h#top), [web](https://example.org), `hal/core/base/log.h`, `build/x`\n"}]),
}


def try_on_examples(rule):
    """Yields a sentence for each example with a wrong result."""
    for expected, trees in zip((True, False), EXAMPLES[rule]):
        for tree in trees:
            with tempfile.TemporaryDirectory() as directory:
                root = Path(directory)
                for name, text in {**PUBLIC, **tree}.items():
                    (root / name).parent.mkdir(parents=True, exist_ok=True)
                    (root / name).write_text(text, encoding="utf-8")
                complaints = list(rule(root))
            if bool(complaints) != expected:
                yield f"the rule itself is broken: {'silent about' if expected else 'complains about'} {tree}: {complaints}"


def main():
    rules = {rule.__name__: rule for rule in EXAMPLES}
    if len(sys.argv) != 3 or sys.argv[1] not in rules:
        print(f"usage: source_rules.py RULE SOURCE_DIRECTORY; rules: {', '.join(rules)}", file=sys.stderr)
        return 2
    rule = rules[sys.argv[1]]
    complaints = list(try_on_examples(rule)) + list(rule(Path(sys.argv[2])))
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
