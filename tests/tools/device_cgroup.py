"""A real device cgroup that denies access to device nodes. In version 1 the rules are in files. In version 2 a BPF
program decides (BPF_PROG_TYPE_CGROUP_DEVICE in linux/bpf.h); ordinary processes cannot read this program. Denied calls
fail with EPERM in both versions. Requires root."""

import ctypes
import os
import struct
from pathlib import Path

FIRST, UNIFIED = Path("/sys/fs/cgroup/devices"), (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
# first the number of the system call bpf() on x86-64, then constants of linux/bpf.h
BPF, PROG_LOAD, PROG_ATTACH, CGROUP_DEVICE, ATTACH_TO_DEVICES = 321, 5, 8, 15, 6
# BPF instructions: load a word, load a constant, two jumps, exit
LOAD, MOVE, IS, IS_NOT, END = 0x61, 0xB7, 0x15, 0x55, 0x95


class Group:
    """A cgroup below `parent`. A child process enters it before exec."""

    def __init__(self, parent):
        self.path = parent / f"gpuhal-test-{os.getpid()}"
        self.path.mkdir()

    def enter(self):
        (self.path / "cgroup.procs").write_text(str(os.getpid()))

    def close(self):
        self.path.rmdir()


class First(Group):
    @staticmethod
    def parent():
        return FIRST if (FIRST / "cgroup.procs").exists() and os.access(FIRST, os.W_OK) else None

    def deny(self, major, minors):
        for minor in minors:
            (self.path / "devices.deny").write_text(f"c {major}:{minor} rw")


class Second(Group):
    @staticmethod
    def parent():
        found = [path for path in UNIFIED if (path / "cgroup.controllers").exists() and os.access(path, os.W_OK)]
        return found[0] if found and os.uname().machine == "x86_64" else None

    def deny(self, major, minors):
        """In the program's argument the second word is the major number, and the third word is the minor number. The
        program returns 0 to deny access."""
        minors = list(minors)
        code = [(LOAD, 2, 1, 4, 0), (LOAD, 3, 1, 8, 0), (MOVE, 0, 0, 0, 1), (IS_NOT, 2, 0, len(minors), major)]
        code += [(IS, 3, 0, len(minors) - at, minor) for at, minor in enumerate(minors)]
        code += [(END, 0, 0, 0, 0), (MOVE, 0, 0, 0, 0), (END, 0, 0, 0, 0)]
        text = b"".join(struct.pack("<BBhi", what, source << 4 | target, offset, number) for what, target, source, offset, number in code)
        program, licence = ctypes.create_string_buffer(text, len(text)), ctypes.create_string_buffer(b"GPL")
        loaded = call(PROG_LOAD, struct.pack("<IIQQ", CGROUP_DEVICE, len(code), ctypes.addressof(program), ctypes.addressof(licence)))
        folder = os.open(self.path, os.O_RDONLY)
        call(PROG_ATTACH, struct.pack("<IIII", folder, loaded, ATTACH_TO_DEVICES, 0))
        os.close(folder)
        os.close(loaded)


def call(command, attributes):
    libc, space = ctypes.CDLL(None, use_errno=True), ctypes.create_string_buffer(attributes, 128)
    result = libc.syscall(BPF, command, space, len(space))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result
