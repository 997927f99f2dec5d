#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""wire_count.py CAPTURE PORT: what tshark counts in the iWARP connections of that TCP port, as JSON.

  rdma_write, rdma_read   payload bytes of RDMA Writes and of RDMA Read Responses
  connections, fpdus      how many of each
  resent                  TCP segments that the capture has twice
  malformed               frames that tshark calls so
  tshark_mib              the most memory that tshark took
  layers                  which of them tshark dissects

tshark 4.0 loses for good where FPDUs begin when a TCP segment that finishes one ends with less than eight bytes of
the next, which a capture of some hundred MiB is bound to have. It also keeps all that it puts together: segments
to FPDUs, and the data of chunks to messages. So it is given the same streams of bytes in other segments, one for
each FPDU, and has to find an FPDU in each; of a large capture it dissects iWARP alone. Exit status 3: the capture
has not all that went over the wire, so nothing can be said.
"""
import json
import os
import resource
import struct
import subprocess
import sys
import threading

WRITE, READ_RESPONSE = 0, 2
TAGGED_HEADER = 14  # DDP, RFC 5041 section 4.3
INTERFACE_BLOCK, PACKET_BLOCK = 1, 6  # of pcapng
PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
ETHERNET = 14  # loopback pretends to be one
FIN, SYN, RST = 1, 2, 4
LARGE = 256 << 20  # bytes of a capture
HELD = "does another mount namespace still have the mount?"
MOST_PAYLOAD = 65535 - 20 - 20  # of an IP packet, without options
# Heuristics first: the ports are ephemeral, and some belong to other protocols. The NFS dissector gives up
# on a READ reply whose data is in a chunk.
TSHARK = ["tshark", "--disable-protocol", "nfs", "-o", "tcp.try_heuristic_first:TRUE", "-r", "-", "-T", "fields",
          "-Y", "iwarp_mpa || _ws.malformed", "-e", "iwarp_rdma.opcode", "-e", "iwarp_mpa.ulpdulength",
          "-e", "_ws.malformed"]


class Unusable(Exception):
    pass


class Direction:
    """What one end of a connection sends, from its SYN on."""

    def __init__(self, sequence):
        self.sequence = sequence  # of the byte that is expected next
        self.sent = sequence  # the same in what tshark gets
        self.early = {}
        self.rest = bytearray()
        self.started = False  # behind MPA's request or reply
        self.end = None  # after the FIN: the sequence number behind the last byte
        self.cut = False  # by an RST
        self.resent = 0

    def take(self, sequence, data):
        """Gives the whole units of MPA that are complete with this segment. dumpcap writes a packet when a
        core hands it over: two may stand in the other order."""
        self.early[sequence] = max(data, self.early.get(sequence, b""), key=len)
        for at in sorted(self.early, key=lambda at: (at - self.sequence + 2**31) % 2**32):
            known = (self.sequence - at) % 2**32
            if known >= 2**31:
                break
            segment = self.early.pop(at)
            self.resent += known > 0
            self.rest += segment[known:]
            self.sequence = (self.sequence + max(len(segment) - known, 0)) % 2**32
        at, units = 0, []
        while size := self.unit_size(at):
            units.append(bytes(self.rest[at:at + size]))
            at += size
        del self.rest[:at]
        return units

    def unit_size(self, at):
        """Of the unit that begins there; 0: it is not all there."""
        have = len(self.rest) - at
        if self.started:
            if have < 2:
                return 0
            size = (2 + struct.unpack_from(">H", self.rest, at)[0] + 3) // 4 * 4 + 4
        else:
            if have < 20:
                return 0
            if self.rest[at:at + 8] != b"MPA ID R":
                raise Unusable("a connection does not begin with MPA")
            if self.rest[at + 16] & 0x80:
                raise Unusable("a connection has MPA markers")
            size = 20 + struct.unpack_from(">H", self.rest, at + 18)[0]
        if have < size:
            return 0
        self.started = True
        return size


def packets(capture):
    """Time stamp and Ethernet frame of each."""
    ticks = 1000000
    with open(capture, "rb") as blocks:
        while start := blocks.read(8):
            kind, length = struct.unpack("<II", start)
            block = start + blocks.read(length - 8)
            if len(block) != length:
                raise Unusable("the capture's last packet is cut off")
            if kind == INTERFACE_BLOCK:
                at = 16
                while at < length - 4:
                    option, size = struct.unpack_from("<HH", block, at)
                    if option == 9:  # if_tsresol
                        ticks = 10 ** block[at + 4]
                    at += 4 + (size + 3) // 4 * 4
            elif kind == PACKET_BLOCK:
                high, low, kept, original = struct.unpack_from("<IIII", block, 12)
                if kept != original:
                    raise Unusable("a packet was cut")
                yield (high << 32 | low) * 1000000 // ticks, block[28:28 + kept]


class Cutter:
    """Writes the streams of the capture with one FPDU in a segment."""

    def __init__(self, out, port):
        self.out, self.port = out, port
        self.directions = {}
        self.all_directions = []
        self.connections = self.fpdus = 0
        self.trouble = None

    def run(self, capture):
        try:
            self.out.write(PCAP_HEADER)
            for time, frame in packets(capture):
                self.take(time, frame)
            for direction in self.all_directions:
                if direction.early or direction.end not in (None, direction.sequence):
                    raise Unusable("the capture lacks segments")
                if direction.rest or (direction.end is None and not direction.cut):
                    raise Unusable(f"the capture ends before a connection does ({HELD})")
        except (Unusable, BrokenPipeError) as trouble:
            self.trouble = str(trouble)
        try:
            self.out.close()
        except BrokenPipeError:
            pass  # tshark says why it ended

    def take(self, time, frame):
        tcp = ETHERNET + (frame[ETHERNET] & 15) * 4
        key = struct.unpack_from(">HH", frame, tcp)
        if self.port not in key:
            return
        sequence, flags = struct.unpack_from(">I", frame, tcp + 4)[0], frame[tcp + 13]
        length = struct.unpack_from(">H", frame, ETHERNET + 2)[0] or len(frame) - ETHERNET
        data = frame[tcp + (frame[tcp + 12] >> 4) * 4:ETHERNET + length]
        if flags & SYN:
            known = self.directions.get(key)
            if known is None or known.sequence != (sequence + 1) % 2**32:
                self.directions[key] = Direction((sequence + 1) % 2**32)
                self.all_directions.append(self.directions[key])
                self.connections += key[1] == self.port
                self.write(time, frame)
            return
        direction, reverse = self.directions.get(key), self.directions.get(key[::-1])
        if direction is None or reverse is None:
            if flags & RST:
                return  # nobody listened
            raise Unusable(f"a connection is older than the capture ({HELD})")
        if flags & FIN:
            direction.end = (sequence + len(data)) % 2**32
        if flags & RST:
            direction.cut = reverse.cut = True
        for unit in direction.take(sequence, data) if data else ():
            self.fpdus += unit[:8] != b"MPA ID R"
            half = len(unit) if len(unit) <= MOST_PAYLOAD else len(unit) // 2
            for part in (unit[:half], unit[half:]):
                if part:
                    self.write_segment(time, frame[:tcp + 20], tcp, direction, reverse, part)

    def write_segment(self, time, head, tcp, direction, reverse, part):
        head = bytearray(head)
        struct.pack_into(">H", head, ETHERNET + 2, tcp - ETHERNET + 20 + len(part))
        struct.pack_into(">I", head, tcp + 4, direction.sent)
        struct.pack_into(">I", head, tcp + 8, reverse.sent)
        head[tcp + 12] = 5 << 4
        head[tcp + 13] &= ~(FIN | RST)
        direction.sent = (direction.sent + len(part)) % 2**32
        self.write(time, head + part)

    def write(self, time, frame):
        self.out.write(struct.pack("<IIII", time // 1000000, time % 1000000, len(frame), len(frame)))
        self.out.write(frame)


def main():
    capture, port = sys.argv[1], int(sys.argv[2])
    large = os.path.getsize(capture) > LARGE
    command = TSHARK + (["--disable-protocol", "rpcordma"] if large else [])
    with open(f"{capture}.log", "w+") as log:
        tshark = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log)
        cutter = Cutter(tshark.stdin, port)
        thread = threading.Thread(target=cutter.run, args=(capture,))
        thread.start()
        sums = {"rdma_write": 0, "rdma_read": 0, "malformed": 0}
        fpdus, lost = 0, None
        for line in tshark.stdout:
            opcodes, lengths, malformed = line.decode().rstrip("\n").split("\t")
            sums["malformed"] += malformed != ""
            if not opcodes:
                continue  # MPA's start-up
            fpdus += 1
            if "," in opcodes + lengths:
                lost = lost or line
                continue
            if int(opcodes, 0) == WRITE:
                sums["rdma_write"] += int(lengths, 0) - TAGGED_HEADER
            elif int(opcodes, 0) == READ_RESPONSE:
                sums["rdma_read"] += int(lengths, 0) - TAGGED_HEADER
        thread.join()
        if tshark.wait() != 0:
            log.seek(0)
            sys.exit(f"tshark fails: {log.read()}")
    sums |= {"connections": cutter.connections, "fpdus": fpdus,
             "resent": sum(direction.resent for direction in cutter.all_directions),
             "layers": "iWARP" if large else "iWARP and RPC-over-RDMA",
             "tshark_mib": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10}
    print(json.dumps(sums))
    trouble = cutter.trouble
    if not trouble and (lost or fpdus != cutter.fpdus):
        trouble = f"tshark finds {fpdus} FPDUs instead of {cutter.fpdus}" + (f", several at {lost}" if lost else "")
    if trouble:
        print(f"wire_count.py: {trouble}", file=sys.stderr)
        sys.exit(3)


if __name__ == "__main__":
    main()
