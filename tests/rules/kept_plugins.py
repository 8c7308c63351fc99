#!/usr/bin/env python3
"""Plugins of released versions, as binaries: kept_plugins.py SOURCE_DIRECTORY [BUILD_DIRECTORY].

tests/kept/VERSION has plugins for x86-64 that were built with the headers of this version of the plugin ABI, and the hash of these headers
without their comments. As long as the headers have this version, the hash must be theirs. With a build directory, makes the folder of the
current version again: the layout has changed, and no release has it yet.
"""

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import c_text

HEADERS = ("types.h", "code.h", "native.h", "plugin.h")
PLUGINS = {
    "example": ("examples/vendor-plugin", "gpuhal-example.so", "example.gpuhal"),
    "cpu": ("lib/gpuhal", "gpuhal-cpu.so", "cpu.gpuhal"),
    "vulkan": ("lib/gpuhal", "gpuhal-vulkan.so", "vulkan.gpuhal"),
}


def texts(root):
    for name in HEADERS:
        text = c_text.without_comments((root / "hal/include/gpuhal" / name).read_text())
        yield re.sub(r"\s+", " ", text)


def version_of(root):
    text = (root / "hal/include/gpuhal/plugin.h").read_text()
    return ".".join(re.search(rf"#define GPUHAL_ABI_{part} (\d+)u", text).group(1) for part in ("MAJOR", "MINOR"))


def make(folder, build):
    for name, (place, library, manifest) in PLUGINS.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        subprocess.run(["strip", "-o", folder / name / library, build / place / library], check=True)
        shutil.copyfile(build / place / manifest, folder / name / manifest)


def main():
    root = Path(sys.argv[1])
    folder = root / "tests/kept" / version_of(root)
    value = hashlib.sha256("\n".join(texts(root)).encode()).hexdigest()
    if len(sys.argv) > 2:
        make(folder, Path(sys.argv[2]))
        (folder / "headers.sha256").write_text(value + "\n")
    elif not folder.is_dir() or (folder / "headers.sha256").read_text().strip() != value:
        sys.exit(f"the headers of plugins are no longer those of the plugins in {folder.relative_to(root)}: if no release has this version, "
                 f"make them again ({Path(__file__).name} . BUILD_DIRECTORY); otherwise raise GPUHAL_ABI_MINOR")


main()
