#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""wire_count_test.py: does wire_count.py count right, and say so when a capture has not everything?

Makes a capture of a connection, then the same with packets missing, twice and in another order. Needs tshark.
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

WIRE_COUNT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "wire_count.py")
CLIENT, SERVER = 40001, 20001
ACK, PUSH, SYN, FIN = 16, 8, 2, 1
SEGMENT = 1003  # the streams are cut anywhere
PIECE = 4000
PIECES = 300


def block(kind, body):
    body += bytes(-len(body) % 4)
    size = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + size + body + size


def fpdu(opcode, data, stag=7):
    ulpdu = struct.pack(">BBIQ", 0xC1, 0x40 | opcode, stag, 0) + data
    return struct.pack(">H", len(ulpdu)) + ulpdu + bytes(-(len(ulpdu) + 2) % 4 + 4)


class Capture:
    """Its packets, which stand behind two blocks that describe the capture."""

    def __init__(self):
        self.packets = []
        # 2**32 comes soon.
        self.next = {CLIENT: 2**32 - 5000, SERVER: 2**32 - 70000}

    def packet(self, source, flags, data=b""):
        target = CLIENT + SERVER - source
        tcp = struct.pack(">HHIIBBHHH", source, target, self.next[source], self.next[target], 0x50, flags, 999, 0, 0) + data
        ip = struct.pack(">BBHHHBBHII", 0x45, 0, 20 + len(tcp), 0, 0x4000, 64, 6, 0, 0x7F000001, 0x7F000001) + tcp
        frame = bytes(12) + b"\x08\x00" + ip
        self.next[source] = (self.next[source] + len(data) + (flags & (SYN | FIN) != 0)) % 2**32
        self.packets.append(block(6, struct.pack("<IIIII", 0, 0, len(self.packets), len(frame), len(frame)) + frame))

    def stream(self, source, data):
        for at in range(0, len(data), SEGMENT):
            self.packet(source, ACK | PUSH, data[at:at + SEGMENT])


def whole_capture():
    c = Capture()
    c.packet(CLIENT, SYN)
    c.packet(SERVER, SYN | ACK)
    c.packet(CLIENT, ACK)
    c.packet(CLIENT, ACK | PUSH, b"MPA ID Req Frame" + struct.pack(">BBH", 0x40, 1, 0))
    c.packet(SERVER, ACK | PUSH, b"MPA ID Rep Frame" + struct.pack(">BBH", 0x40, 1, 0))
    c.stream(SERVER, b"".join(fpdu(0, os.urandom(PIECE + i)) for i in range(PIECES)))
    c.stream(CLIENT, b"".join(fpdu(2, os.urandom(PIECE)) for i in range(PIECES)))
    # The longest that there is does not fit into an IP packet.
    c.stream(SERVER, fpdu(0, os.urandom(65535 - 14)))
    c.packet(CLIENT, ACK | FIN)
    c.packet(SERVER, ACK | FIN)
    return c.packets


def count(packets):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "lo.pcap")
        with open(path, "wb") as out:
            out.write(block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)))
            out.write(block(1, struct.pack("<HHI", 1, 0, 262144)) + b"".join(packets))
        run = subprocess.run([WIRE_COUNT, path, str(SERVER)], capture_output=True, text=True)
        return run.returncode, json.loads(run.stdout) if run.stdout else {}, run.stderr.strip()


def expect_count(what, packets, resent):
    status, sums, said = count(packets)
    wanted = {"rdma_write": PIECES * PIECE + PIECES * (PIECES - 1) // 2 + 65535 - 14, "rdma_read": PIECES * PIECE,
              "connections": 1, "fpdus": 2 * PIECES + 1, "resent": resent, "malformed": 0}
    got = {key: sums.get(key) for key in wanted}
    if status != 0 or got != wanted:
        sys.exit(f"FAILED: {what}: status {status}, {got} instead of {wanted}; {said}")
    print(f"   {what}: counted")


def expect_refusal(what, packets):
    status, _, said = count(packets)
    if status != 3 or not said:
        sys.exit(f"FAILED: {what}: status {status} instead of 3; {said}")
    print(f"   {what}: {said}")


def main():
    packets = whole_capture()
    middle = len(packets) // 3
    expect_count("a whole capture", packets, 0)
    expect_count("a segment twice", packets[:middle] + packets[middle - 1:], 1)
    expect_count("two in the other order",
                 packets[:middle] + packets[middle:middle + 2][::-1] + packets[middle + 2:], 0)
    for what, gone in (("no SYN", 0), ("no SYN of the server", 1), ("no request of MPA", 3), ("no reply of MPA", 4),
                       ("a segment missing", middle), ("the last data missing", len(packets) - 3),
                       ("a FIN missing", len(packets) - 1)):
        expect_refusal(what, packets[:gone] + packets[gone + 1:])
    expect_refusal("the first half", packets[:middle])


main()
