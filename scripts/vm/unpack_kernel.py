#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""unpack_kernel.py BZIMAGE VMLINUX: cuts the ELF image out of a bzImage.

The setup header says where the compressed kernel is (payload_offset and payload_length at 0x248,
Linux boot protocol 2.08 and later).
"""
import struct
import subprocess
import sys

MAGICS = (
    (b"\xfd7zXZ\0", ["xz", "-dc"]),
    (b"\x28\xb5\x2f\xfd", ["zstd", "-dc"]),
    (b"\x1f\x8b", ["gzip", "-dc"]),
)


def main():
    with open(sys.argv[1], "rb") as image:
        data = image.read()
    setup_sectors = data[0x1F1] or 4
    offset, length = struct.unpack_from("<II", data, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    payload = data[start:start + length]
    command = next((tool for magic, tool in MAGICS if payload.startswith(magic)), None)
    if command is None:
        sys.exit("unknown compression of the kernel")
    # The kernel's size follows the payload: the tools complain about the trailer, so their status
    # says nothing; the ELF magic does.
    kernel = subprocess.run(command, input=payload, stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, check=False).stdout
    if not kernel.startswith(b"\x7fELF"):
        sys.exit("no ELF image inside")
    with open(sys.argv[2], "wb") as out:
        out.write(kernel)


if __name__ == "__main__":
    main()
