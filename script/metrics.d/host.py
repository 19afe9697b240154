"""A small NVMe/TCP host: the admin queue and one for I/O, one command at a time.

The layouts are those of NVM Express over TCP (transport specification, section 3) and of NVMe over
Fabrics (base specification 2.0, section 3.3).
"""

import socket
import struct

LIMIT = 30
INITIALIZE, COMMAND, RESPONSE, HOST_DATA, CONTROLLER_DATA, READY = 0, 4, 5, 6, 7, 9
HEADER = struct.Struct("<BBBBI")
WRITE, READ, FABRICS = 1, 2, 0x7F
SET_PROPERTY, CONNECT = 0, 1
# A transport's own data block: in the capsule, or sent apart.
IN_CAPSULE, APART = 0x01, 0x5A
LAST = 4


def sgl(kind, length):
    """Where data is."""
    return struct.pack("<QIBBBB", 0, length, 0, 0, 0, kind)


class Queue:
    """A queue: one connection of TCP."""

    def __init__(self, address, number, controller, subsystem, host):
        self.stream = socket.create_connection(address, LIMIT)
        # Version 0, no digests, data aligned as it comes.
        self.stream.sendall(HEADER.pack(INITIALIZE, 0, 128, 0, 128) + bytes(120))
        self.take(128)
        data = bytes([7] * 16) + struct.pack("<H", controller) + bytes(238)
        data += subsystem.encode().ljust(256, b"\0") + host.encode().ljust(256, b"\0")
        data += bytes(256)
        head = struct.pack("<BBHB19x", FABRICS, 0x40, 1, CONNECT) + sgl(IN_CAPSULE, len(data))
        head += struct.pack("<HHHBBI12x", 0, number, 31, 4, 0, 0)
        self.controller, _ = self.call(head, data, inside=True)

    def take(self, count):
        """So many bytes."""
        got = b""
        while len(got) < count:
            part = self.stream.recv(count - len(got))
            if not part:
                raise ConnectionError("the controller has gone")
            got += part
        return got

    def call(self, command, data=b"", inside=False):
        """What a command comes to: its result and its data."""
        own = data if inside else b""
        offset = 72 if own else 0
        self.stream.sendall(HEADER.pack(COMMAND, 0, 72, offset, 72 + len(own)) + command + own)
        got = b""
        while True:
            kind, flags, _, _, whole = HEADER.unpack(self.take(8))
            rest = self.take(whole - 8)
            if kind == RESPONSE:
                result, status = struct.unpack("<I10xH", rest[:16])
                if status >> 1:
                    raise ConnectionError(f"status {status >> 1:#x}")
                return result & 0xFFFF, got
            if kind == CONTROLLER_DATA:
                got += rest[16:]
                if flags & 8:
                    return 0, got
            elif kind == READY:
                name, tag, at, length = struct.unpack("<HHII", rest[:12])
                head = HEADER.pack(HOST_DATA, LAST, 24, 24, 24 + length)
                head += struct.pack("<HHII4x", name, tag, at, length)
                self.stream.sendall(head + data[at : at + length])
            else:
                raise ConnectionError(f"a PDU of kind {kind}")

    def blocks(self, opcode, nsid, first, count, data=b""):
        """Reads or writes blocks of 512 bytes."""
        head = struct.pack("<BBHI16x", opcode, 0x40, 7, nsid) + sgl(APART, count * 512)
        return self.call(head + struct.pack("<QH14x", first, count - 1), data)[1]


class Host:
    """A host that is connected to a subsystem."""

    def __init__(self, listener, subsystem, name):
        address, port = listener.rsplit(":", 1)
        place = (address, int(port))
        self.admin = Queue(place, 0, 0xFFFF, subsystem, name)
        controller = self.admin.controller
        enable = struct.pack("<BBHB35xB3xIQ8x", FABRICS, 0x40, 1, SET_PROPERTY, 0, 0x14, 0x460001)
        self.admin.call(enable)
        self.queue = Queue(place, 1, controller, subsystem, name)

    def work(self, nsid, count):
        """Writes and reads some blocks."""
        data = bytes(range(256)) * 16
        for number in range(count):
            self.queue.blocks(WRITE, nsid, number * 8, 8, data)
            if self.queue.blocks(READ, nsid, number * 8, 8) != data:
                raise ConnectionError("other data came back")
