"""Converts a machine's files below /sys, /proc, /dev and /etc into one text, and the text back into files below a
directory. tests/recorded/README.md has the grammar. tools/record-machine.sh writes such texts."""

import os
import shutil
from fnmatch import fnmatch
from pathlib import Path


class Tree:
    """Maps absolute paths to contents: a file's bytes, a symbolic link ("->", TARGET), or None for an empty directory."""

    def __init__(self, folder):
        self.folder, self.things, self.modes = Path(folder), {}, {}

    def read(self, name):
        path = self.folder / name / "tree"
        at, block = "", None
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                if block and line.lstrip().startswith("| "):
                    self.things[block] += (line.lstrip()[2:] + "\n").encode()
                elif block and line.strip() == "|":
                    self.things[block] += b"\n"
                elif line.startswith(" "):
                    block = self.entry(at, line.strip())
                elif line and not line.startswith("#"):
                    at, block = self.statement(*line.split(" ", 1)), None
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path}:{number}: {line}: {error}") from None
        return self

    def statement(self, word, rest):
        """Returns the directory to which the following entries belong."""
        if word == "at":
            self.things.setdefault(rest, None)
            return rest
        if word == "device":
            return self.device(rest.split(" "))
        if word == "online":
            self.things["/sys/devices/system/node/online"] = f"{rest}\n".encode()
        elif word == "like":
            self.read(rest)
        elif word == "without":
            gone = [path for path in self.things if any(fnmatch(part, rest) for part in (path, *map(str, Path(path).parents)))]
            if not gone:
                raise ValueError("nothing has this name")
            for path in gone:
                del self.things[path]
        elif word == "mode":
            mode, path = rest.split(" ")
            self.modes[path] = int(mode, 8)
        else:
            raise ValueError("no such word")
        return ""

    def device(self, words):
        """Parses `PLACE NODE [as ADDRESS]`, a PCI device. With `as` the device has the files of another device, unless
        the text lists other contents for them."""
        place, address = "/sys" + words[0], words[0].rsplit("/", 1)[1]
        if words[2:3] == ["as"]:
            other = self.things[f"/sys/bus/pci/devices/{words[3]}"][1]
            self.things |= {place + path[len(other):]: what for path, what in self.things.items() if path.rpartition("/")[0] == other}
        self.things[f"{place}/numa_node"] = f"{words[1]}\n".encode()
        self.things[f"/sys/bus/pci/devices/{address}"] = ("->", place)
        self.things[f"{place}/subsystem"] = ("->", "/sys/bus/pci")
        return place

    def entry(self, at, line):
        """Returns the path of a file whose lines follow."""
        if not at:
            raise ValueError("an entry of no directory")
        name, *rest = line.split(" ", 2)
        path = name if name.startswith("/") else f"{at}/{name}"
        if name.endswith(":") and not rest:
            self.things[path[:-1]] = b""
            return path[:-1]
        if name.endswith("/") and not rest:
            self.things[path[:-1]] = None
        elif rest[0] == "=":
            self.things[path] = f"{rest[1]}\n".encode() if len(rest) > 1 else b""
        elif rest[0] == "->":
            self.things[path] = ("->", rest[1])
        elif rest[0] == "hex":
            self.things[path] = b"".join(bytes.fromhex(part.split("*")[0]) * int(part.split("*")[1] if "*" in part else 1)
                                         for part in rest[1].split(" "))
        else:
            raise ValueError("expected NAME = TEXT, NAME -> PATH, NAME hex BYTES, NAME: or NAME/")
        return None

    def write(self, root):
        """Replaces the directory's contents. Links are relative, so that they stay below the directory."""
        shutil.rmtree(root, ignore_errors=True)
        os.makedirs(root)
        for path in sorted(self.things):
            what, real = self.things[path], root + path
            os.makedirs(real if what is None else os.path.dirname(real), exist_ok=True)
            if isinstance(what, tuple) and not what[1].startswith("/"):
                os.symlink(what[1], real)
            elif isinstance(what, tuple):
                os.makedirs(root + what[1], exist_ok=True) if what[1] not in self.things else None
                os.symlink(os.path.relpath(root + what[1], os.path.dirname(real)), real)
            elif what is not None:
                Path(real).write_bytes(what)
        for path, mode in self.modes.items():
            os.chmod(root + path, mode)
