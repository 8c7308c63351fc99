#!/usr/bin/env python3
"""Another project's Python program: consumer.py CDEF LIBRARY copies bytes to every device and back with cffi."""

import sys

import cffi


def main():
    ffi = cffi.FFI()
    with open(sys.argv[1], encoding="utf-8") as declarations:
        ffi.cdef(declarations.read())
    lib = ffi.dlopen(sys.argv[2])
    opened = ffi.new("gpuhal **")
    assert lib.gpuhal_open(ffi.NULL, opened) == lib.GPUHAL_OK, ffi.string(lib.gpuhal_last_error().sentence)
    gpu, sent, wrong = opened[0], b"there and back", 0
    assert lib.GPUHAL_CAPABILITY_COUNT > 0 and lib.gpuhal_capability_name(lib.GPUHAL_CAPABILITY_COUNT) == ffi.NULL
    for i in range(lib.gpuhal_device_count(gpu)):
        device = lib.gpuhal_device_at(gpu, i)
        desc = ffi.new("gpuhal_buffer_desc *", {"size": ffi.sizeof("gpuhal_buffer_desc"), "bytes": len(sent)})
        buffer, received = ffi.new("gpuhal_buffer **"), ffi.new("char[]", len(sent))
        right = (lib.gpuhal_buffer_create(device, desc, buffer) == lib.GPUHAL_OK
                 and lib.gpuhal_write(ffi.NULL, buffer[0], 0, sent, len(sent)) == lib.GPUHAL_OK
                 and lib.gpuhal_read(ffi.NULL, received, buffer[0], 0, len(sent)) == lib.GPUHAL_OK
                 and bytes(ffi.buffer(received)) == sent)
        print(f"device {ffi.string(lib.gpuhal_device_id(device)).decode()} {'right' if right else 'wrong'}")
        wrong += not right
        lib.gpuhal_buffer_release(buffer[0])
    assert lib.gpuhal_device_count(gpu) > 0
    lib.gpuhal_close(gpu)
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
