"""Carries out the journal of an array in memory, for script/read-array: after docs/format.md,
section "The journal". Nothing is written: a drive's reads give what carrying it out would leave.
"""

import struct
import uuid

from arithmetic import crc32c
from fields import need
from places import MIB, groups_of, place_strips, stripes_of

HEAD = struct.Struct("<8s16sHHIQQQQQIII40sI")
ENTRY = struct.Struct("<B3sIQ")
RANGE = struct.Struct("<HHIIIQ")
ALIGN = 4096
REDO = 1


class Patched:
    """A drive some of whose bytes read as the journal has them."""

    def __init__(self, drive):
        self.drive, self.path, self.size, self.patches = drive, drive.path, drive.size, []

    def read(self, offset, length):
        data = bytearray(self.drive.read(offset, length))
        for at, new in self.patches:
            first, last = max(at, offset), min(at + len(new), offset + length)
            if first < last:
                data[first - offset:last - offset] = new[first - at:last - at]
        return bytes(data)


def up(length):
    return -(-length // ALIGN) * ALIGN


def batch_at(area, at, array, key):
    """The batch that begins here: (lane, sequence, tail, group, epoch, [(stripe, strip, first byte,
    drive, bytes)]); None if none does that is whole and of this array and key."""
    if area[at:at + 8] != b"PALIJRNL":
        return None
    (_, own, group, lane, count, sequence, tail, named, epoch, place, head_bytes, payload_bytes, crc,
     rest, head_crc) = HEAD.unpack_from(area, at)
    whole = at + head_bytes + payload_bytes <= len(area) and head_bytes >= HEAD.size
    if own != array or named != key or place != at or not whole or any(rest):
        return None
    head, payload = area[at:at + head_bytes], area[at + head_bytes:][:payload_bytes]
    if head_crc != crc32c(head[:124] + bytes(4) + head[128:]) or crc != crc32c(payload):
        return None
    try:
        found, cursor, used = ranges_of(head, count, payload)
    except (struct.error, ValueError):
        return None  # It says more than it has, or what is not known.
    right = up(cursor) == head_bytes and up(used) == payload_bytes and 0 < tail <= sequence
    return (lane, sequence, tail, group, epoch, found) if right and not any(head[cursor:]) else None


def ranges_of(head, count, payload):
    """The ranges of a head's entries, where they end, and the bytes of payload they stand for."""
    cursor, used, found = HEAD.size, 0, []
    for _ in range(count):
        kind, rest, ranges, stripe = ENTRY.unpack_from(head, cursor)
        cursor += ENTRY.size
        if kind != REDO or any(rest):
            raise ValueError
        for _ in range(ranges):
            strip, zero, first, length, zeros, drive = RANGE.unpack_from(head, cursor)
            cursor += RANGE.size
            if zero or zeros:
                raise ValueError
            found.append((stripe, strip, first, drive, payload[used:used + length]))
            used += length
    return found, cursor, used


def journal_areas(array, areas, unreadable):
    """The journal areas of the drives in sync, with zeros for what can't be read: a batch or page
    with a hole has no right CRC. With each where its holes begin."""
    for slot, drive in enumerate(array.drives):
        if not array.counts(slot):
            continue
        area, holes = bytearray(areas["journal_bytes"]), set()
        for at in range(0, len(area), ALIGN):
            try:
                area[at:at + ALIGN] = drive.read(areas["journal_start"] + at, ALIGN)
            except unreadable:
                holes.add(at)
        yield bytes(area), holes


def batches(array, areas, guarded, unreadable):
    """The batches that count, by lane and sequence number."""
    own, found = uuid.UUID(array.record["array_uuid"]).bytes, {}
    for area, _ in journal_areas(array, areas, unreadable):
        for at in range(0, len(area), ALIGN):
            batch = batch_at(area, at, own, areas["journal_key"])
            # A number is used again, in a later epoch, where a drive did not take its batch.
            if batch and batch[3] in guarded and batch[4] >= found.get(batch[:2], batch)[4]:
                found[batch[:2]] = batch
    tails = {}
    for lane, _, tail, *_ in found.values():
        tails[lane] = max(tail, tails.get(lane, 0))
    counting = [found[key] for key in sorted(found) if key[1] >= tails[key[0]]]
    for lane, tail in tails.items():
        numbers = [batch[1] for batch in counting if batch[0] == lane]
        need(numbers == list(range(tail, tail + len(numbers))),
             f"lane {lane} of the journal lacks a batch that was durable")
    return counting


def carry_out(array, unreadable):
    """Does what the journal stands for. How many batches there were."""
    record = array.record
    areas, entries = record["areas"], record["groups"]
    guarded = {g for g, entry in enumerate(entries) if entry["guarded"] and entry["unclean"]}
    if not areas["journal_key"] or not guarded:
        return 0
    places = {group: (rg, slots) for rg in record["ranges"] for group, slots in groups_of(rg)}
    counting = batches(array, areas, guarded, unreadable)
    for *_, group, _, ranges in counting:
        rg, slots = places[group]
        for stripe, strip, first, drive, data in ranges:
            size = rg["strip_bytes"]
            inside = stripe < stripes_of(rg) and strip < rg["width"] and first + len(data) <= size
            if not inside or array.in_place(group, stripe * size // MIB):
                continue
            slot = place_strips(rg, slots, stripe)[strip]
            named = uuid.UUID(record["slots"][slot]["drive_uuid"]).bytes[:8]
            if array.drives[slot] is None or int.from_bytes(named, "little") != drive:
                continue
            if not isinstance(array.drives[slot], Patched):
                array.drives[slot] = Patched(array.drives[slot])
            at = record["data_offset"] + rg["drive_start"] + stripe * size + first
            array.drives[slot].patches.append((at, data))
    return len(counting)
