"""Decides what became of blocks that a whole parity group was writing at a crash, for
script/read-array: after docs/format.md, section "Writes in flight". Nothing is written: what is
lost joins the list of lost ranges.
"""

import struct
import uuid

from arithmetic import crc32c
from journal import ALIGN, journal_areas
from places import MIB, groups_of, place_strips, stripes_of

HEAD = struct.Struct("<8s16sHHIQQQQI56sI")
ENTRY = struct.Struct("<QII")
BYTES_MOST = 65536


def page_at(area, at, array, key):
    """The page that begins here: (lane, sequence, group, [(stripe, first byte, byte behind the
    last)]); None if none does that is right."""
    if area[at:at + 8] != b"PALIFLGT":
        return None
    (_, own, group, lane, count, sequence, named, _, place, size, rest,
     crc) = HEAD.unpack_from(area, at)
    fits = size == -(-(HEAD.size + count * ENTRY.size) // ALIGN) * ALIGN <= BYTES_MOST
    if own != array or named != key or place != at or not fits or at + size > len(area):
        return None
    page = area[at:at + size]
    used = HEAD.size + count * ENTRY.size
    if any(rest) or any(page[used:]) or not sequence:
        return None
    if crc != crc32c(page[:124] + bytes(4) + page[128:]):
        return None
    entries = list(ENTRY.iter_unpack(page[HEAD.size:used]))
    right = all(first < end for _, first, end in entries)
    return (lane, sequence, group, entries) if right else None


def is_blind(area, holes, at):
    """Whether a page may begin here that can't be read."""
    size = int.from_bytes(area[at + 64:at + 68], "little")
    sized = area[at:at + 8] == b"PALIFLGT" and size % ALIGN == 0 and 0 < size <= BYTES_MOST
    return any(at + more in holes for more in range(0, size if sized else ALIGN, ALIGN))


def newest_pages(array, areas, unreadable):
    """Of every lane the page that counts; and the most drives that are blind at a place where none
    of these begins."""
    own, found, blind = uuid.UUID(array.record["array_uuid"]).bytes, {}, {}
    for area, holes in journal_areas(array, areas, unreadable):
        for at in range(0, len(area), ALIGN):
            if holes and is_blind(area, holes, at):
                blind[at] = blind.get(at, 0) + 1
            page = page_at(area, at, own, areas["journal_key"])
            if page and page[1] > found.get(page[0], (0, 0))[1]:
                found[page[0]] = (*page, at)
    stand = {page[4] for page in found.values()}
    return list(found.values()), max((n for at, n in blind.items() if at not in stand), default=0)


def blocks_of(array, rg, group, pages):
    """The stripe and first byte of every block of the columns that mean something."""
    block, found = array.record["block_bytes"], set()
    for _, _, own, entries, _ in pages:
        for stripe, first, end in entries:
            whole = first % block == 0 and end % block == 0 and end <= rg["strip_bytes"]
            if own != group or stripe >= stripes_of(rg) or not whole:
                continue
            if not array.in_place(group, stripe * rg["strip_bytes"] // MIB):
                found |= {(stripe, at) for at in range(first, end, block)}
    return sorted(found)


def carry_out(array, unreadable, recover):
    """Finds what is lost: how many bytes that are. The array's `in_flight` are then the stripes
    whose redundancy a start would make anew, by group, `hidden` the groups of which nobody knows
    them all."""
    record = array.record
    array.in_flight, array.hidden = set(), set()
    areas, block, lost = record["areas"], record["block_bytes"], []
    if not areas["journal_key"]:
        return 0
    for rg in record["ranges"]:
        for position, (group, slots) in enumerate(groups_of(rg)):
            entry = record["groups"][group]
            there = [slot for slot in slots if array.counts(slot)]
            if not (entry["guarded"] and entry["unclean"] and rg["kind"] == "parity"):
                continue
            pages, blind = newest_pages(array, areas, unreadable)
            if len(there) == len(slots) and blind > rg["m"]:
                array.hidden.add(group)
                continue
            for stripe, at in blocks_of(array, rg, group, pages):
                array.in_flight.add((group, stripe))
                row = rg["array_start"] + (stripe * rg["groups"] + position) * (
                    rg["k"] * rg["strip_bytes"]) + at
                strips = []
                for slot in place_strips(rg, slots, stripe):
                    place = record["data_offset"] + rg["drive_start"] + stripe * (
                        rg["strip_bytes"]) + at
                    try:
                        strips.append(array.drives[slot].read(place, block)
                                      if slot in there else None)
                    except unreadable:
                        strips.append(None)
                lost += [row + strip * rg["strip_bytes"]
                         for strip in unknown(strips, rg, recover, lambda strip: listed(
                             record, row + strip * rg["strip_bytes"], block))]
    record["lost"] += [{"start": start, "bytes": block, "reason": "crash"} for start in lost]
    return len(lost) * block


def listed(record, start, block):
    return any(lost["start"] < start + block and start < lost["start"] + lost["bytes"]
               for lost in record["lost"])


def unknown(strips, rg, recover, is_listed):
    """The data strips of a block that nobody gives for certain."""
    k = rg["k"]
    gone = [i for i in range(k) if strips[i] is None]
    if len(gone) == 1 and len(strips) == k + 2 and not is_listed(gone[0]):
        if strips[k] is not None and strips[k + 1] is not None:
            by_p, by_q = strips[:k + 1] + [None], strips[:k] + [None, strips[k + 1]]
            for strips_there in (by_p, by_q):
                recover(strips_there, k, rg["kind"])
            if by_p[gone[0]] == by_q[gone[0]]:
                return []
    return [strip for strip in gone if not is_listed(strip)]
