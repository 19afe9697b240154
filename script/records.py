"""The record slots of a drive, for script/read-array: after docs/format.md, sections "A drive" and
"A record slot".

A record is a pair: the fields of its slot's header, and its bytes.
"""

import struct

from arithmetic import crc32c
from places import MIB

MAGIC = b"PALISADE"
VERSION = 3
SLOT_BYTES = 262144
HEADER = struct.Struct("<8sIIIIIIQI80sI")


class Unreadable(Exception):
    """A drive cannot be read."""


def tail_of(drive):
    return drive.size // MIB * MIB - MIB


def read_slot(drive, offset):
    """The intact record of a record slot as (header, record bytes), or None if there is none."""
    head = drive.read(offset, HEADER.size)
    header = HEADER.unpack(head)
    if header[0] != MAGIC or header[10] != crc32c(head[:124]):
        return None
    if header[1] != VERSION:
        return header, b""  # of an unknown version the header alone is looked at
    if header[6] > SLOT_BYTES - HEADER.size:
        return None
    body = drive.read(offset + HEADER.size, header[6])
    return (header, body) if header[8] == crc32c(body) else None


def nothing_at(drive, tail):
    """Whether both slots of a tail area can be read, and neither begins with the magic."""
    try:
        return all(drive.read(at, 4096)[:8] != MAGIC for at in (tail, tail + SLOT_BYTES))
    except Unreadable:
        return False


def former_tail(drive, tail, first, second):
    """The two tail slots of a drive that has grown, by what its head slots hold, and whether the
    one between these is missing: the drive is doubtful."""
    owner = first[1][16:32]
    if len(first[1]) < 56 or owner != second[1][16:32]:
        return [None, None], False
    start = sum(struct.unpack_from("<QQ", first[1], 40))  # data_offset and data_bytes
    best = [None, None]
    for place in range(start, min(start + 1024 * MIB, tail), MIB):
        for slot, at in enumerate((place, place + SLOT_BYTES)):
            try:
                found = read_slot(drive, at)
            except Unreadable:
                continue
            if found and found[1][16:32] == owner:
                best[slot] = max(filter(None, (best[slot], found)), key=lambda f: f[0][7])
    one, two = first[0][7], second[0][7]
    between = best[0 if one < two else 1]
    return best, not between or between[0][7] <= min(one, two)


def record_slots(drive, tail):
    """The intact records of a drive, by their slots; the tail's from where it is, or was. With
    whether the drive is doubtful."""
    slots, unreadable, doubtful = [], [], False
    for offset in (0, SLOT_BYTES, tail, tail + SLOT_BYTES):
        try:
            slots.append(read_slot(drive, offset))
        except Unreadable as problem:
            unreadable.append(problem)
            slots.append(None)
    if len(unreadable) == 4:
        raise unreadable[0]
    if slots[0] and slots[1] and nothing_at(drive, tail):
        slots[2:], doubtful = former_tail(drive, tail, *slots[:2])
    return [found for found in slots if found], doubtful
