"""A real terminal emulator (tmux). A test types in it and reads its screen."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

from probe_support import check

PATIENCE = 60  # seconds for steps that take a fraction of a second on an idle machine


class Terminal:
    """A shell in a terminal, which runs a command."""

    def __init__(self, probe, columns, lines, plugins=(), shell="sh -i", prompt=r"^\$", **settings):
        if not shutil.which("tmux"):
            print("skipped: tmux is not installed")
            sys.exit(77)
        self.folder = tempfile.TemporaryDirectory()
        self.socket = os.path.join(self.folder.name, "tmux")
        environment = probe.environment(plugins, settings) | {"PS1": "$ ", "ENV": ""}
        environment.pop("TERM", None)  # tmux sets it
        exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environment.items() if re.fullmatch(r"\w+", name))
        script = os.path.join(self.folder.name, "shell")
        with open(script, "w", encoding="utf-8") as file:
            file.write(exports + f"exec {shell}\n")
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(lines), f"sh {script}")
        self.tmux("set-option", "-g", "status", "off")
        self.resize(columns, lines)
        self.wait(prompt)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True)

    def tmux(self, *words):
        done = subprocess.run(["tmux", "-S", self.socket, *words], capture_output=True, text=True, encoding="utf-8", timeout=PATIENCE,
                              env=os.environ | {"LC_ALL": "C.UTF-8", "TMUX": ""})
        check(done.returncode == 0, words, done)
        return done.stdout

    def resize(self, columns, lines):
        self.tmux("resize-window", "-x", str(columns), "-y", str(lines))

    def type(self, *keys):
        self.tmux("send-keys", *keys)

    def run(self, command):
        self.tmux("send-keys", "-l", command)
        self.type("Enter")

    def lines(self, *options):
        return self.tmux("capture-pane", "-p", *options).split("\n")[:-1]

    def wait(self, *patterns):
        """Waits until each pattern matches a line of the screen. Returns the whole screen. The screen may be read while
        it is drawn, so the test must pass a pattern for each text that it checks."""
        end = time.monotonic() + PATIENCE
        while True:
            lines = self.lines()
            missing = [pattern for pattern in patterns if not any(re.search(pattern, line) for line in lines)]
            if not missing:
                return lines
            check(time.monotonic() < end, f"this did not appear: {missing}", *lines)
            time.sleep(0.05)
