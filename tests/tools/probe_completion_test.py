#!/usr/bin/env python3
"""Tests the completion in each shell. In a real terminal, checks the line after the tab key was pressed."""

import os
import re
import shutil
import sys

from probe_support import fake_cuda, main
from terminal import Terminal

FOLDER = os.path.abspath(os.path.join(os.path.dirname(__file__), "../../tools/completion"))
BASH_COMPLETION = "/usr/share/bash-completion/bash_completion"


def expect_completed(probe, shell, begin):
    if not shutil.which(shell) or (shell == "bash" and not os.path.exists(BASH_COMPLETION)):
        print(f"skipped: {shell} or its completion is not installed")
        sys.exit(77)
    settings = fake_cuda("devices 2") | {"GPUHAL_BACKENDS": "cuda", "PATH": f"{os.path.dirname(probe.program)}:{os.environ['PATH']}"}
    command = {"bash": "bash --norc --noprofile", "zsh": "zsh -f", "fish": "fish --no-config -C 'function fish_prompt; echo -n $PS1; end'"}[shell]
    with Terminal(probe, 100, 24, shell=f"env PS1='$ ' {command}", prompt=r"^\$", **settings) as terminal:
        terminal.run(begin)
        for typed, completed in (("gpuhal-probe --devi", "gpuhal-probe --device"), ("gpuhal-probe --device=cu", "--device=cuda:"),
                                 ("gpuhal-probe --backends=cu", "--backends=cuda"),
                                 ("gpuhal-probe --format=openm", "--format=openmetrics"), ("gpuhal-check --dead", "gpuhal-check --deadline")):
            terminal.type("C-u", "C-l")
            terminal.tmux("send-keys", "-l", typed)
            terminal.type("Tab", "Tab")
            terminal.wait(re.escape(completed) + r"(?![a-z])")


def bash_completes_options_devices_and_backends(probe):
    expect_completed(probe, "bash", f". {BASH_COMPLETION}; . {FOLDER}/gpuhal.bash")


def zsh_completes_options_devices_and_backends(probe):
    expect_completed(probe, "zsh", f"fpath=({FOLDER} $fpath); autoload -U compinit; compinit -u -D")


def fish_completes_options_devices_and_backends(probe):
    expect_completed(probe, "fish", f". {FOLDER}/gpuhal.fish")


if __name__ == "__main__":
    main(globals())
