"""The region map of an array, for script/read-array: after docs/format.md, section "The region
map". A region is (written bits, missed, dirty); the map of a group is the list of its regions.
"""

import struct
import uuid

from arithmetic import crc32c
from places import MIB, drive_bytes, groups_of

HEAD = struct.Struct("<8s16sHHIQ20sI")
REGION = struct.Struct("<QQB15s")
BYTES, ENTRIES, BITS = 4096, 126, 64
MAX = 2**64 - 1


def forgotten(region):
    return region[2] and region[1] == MAX


def masks_of(rg, shift):
    """The written bits that each region of a group has."""
    bits = -(-drive_bytes(rg) // MIB >> shift)
    return [min(1 << min(bits - at, BITS), 1 << BITS) - 1 for at in range(0, bits, BITS)]


def pages_of(rg, shift):
    return -(-len(masks_of(rg, shift)) // ENTRIES)


def used_bytes(ranges, slot, shift):
    """The bytes of the map area that a slot's pages take."""
    return sum(pages_of(rg, shift) * 2 * BYTES
               for rg in ranges for _, slots in groups_of(rg) if slot in slots)


def page_at(array, slot, offset, group, number, masks, unreadable):
    """The sequence number and the regions of the page that a place holds; None if it holds none."""
    try:
        data = array.drives[slot].read(offset, BYTES)
    except unreadable:
        return None
    magic, own, *said, sequence, rest, crc = HEAD.unpack_from(data)
    mine = magic == b"PALIREGN" and own == uuid.UUID(array.record["array_uuid"]).bytes
    if not mine or said != [group, len(masks), number] or crc != crc32c(
            data[:60] + bytes(4) + data[64:]):
        return None
    end = HEAD.size + len(masks) * REGION.size
    entries = list(REGION.iter_unpack(data[HEAD.size:end]))
    right = all(not written & ~mask and dirty < 2 and not any(zeros)
                for (written, _, dirty, zeros), mask in zip(entries, masks))
    if any(rest) or any(data[end:]) or sequence >= 1 << 59 or not right:
        return None
    return sequence, [(written, missed, bool(dirty)) for written, missed, dirty, _ in entries]


def places_of(array, unreadable):
    """For each page of the map: its range, group, the masks of its regions, and what both places
    hold, by the slots that take part."""
    areas, before = array.record["areas"], [0] * len(array.drives)
    for rg in array.record["ranges"]:
        masks, shift = masks_of(rg, areas["shift"]), areas["shift"]
        for group, slots in groups_of(rg):
            for number in range(pages_of(rg, shift)):
                own = masks[number * ENTRIES:(number + 1) * ENTRIES]
                places = {}
                for slot in (slot for slot in slots if array.drives[slot]):
                    at = areas["map_start"] + (before[slot] + number) * 2 * BYTES
                    places[slot] = [page_at(array, slot, at + place, group, number, own, unreadable)
                                    for place in (0, BYTES)]
                yield rg, group, own, places
            for slot in slots:
                before[slot] += pages_of(rg, shift)


def counting_page(record, rg, group, masks, found):
    """The regions of a page, by what both places hold on each drive that is there; None: lost."""
    newest = max((page for both in found for page in both if page), default=None,
                 key=lambda page: page[0])
    if newest is None:
        return None
    sequence, regions = newest
    entry = record["groups"][group]
    if not any(both[(sequence + 1) % 2] for both in found):
        if entry["unclean"] or entry["loss_accepted"]:
            regions = [(bits, missed, dirty or bits != 0) for bits, missed, dirty in regions]
        else:
            regions = [region if forgotten(region) or not region[2] else
                       (region[0], max(region[1], record["epoch"]), False) for region in regions]
    return [(bits, missed, dirty and rg["m"] > 0) for bits, missed, dirty in regions]


def owes(page, sequence):
    """Whether a page has this number and says that somebody has something to make right."""
    if page is None or page[0] != sequence:
        return False
    return any(region[2] and not forgotten(region) for region in page[1])


def set_back(array, unreadable):
    """The slots whose drives hold older pages than a crash can leave."""
    record, slots = array.record, set()
    for _, group, _, places in places_of(array, unreadable):
        entry = record["groups"][group]
        clean = not entry["unclean"] and not entry["loss_accepted"]
        counting = [both for slot, both in places.items() if array.counts(slot)]
        newest = max((page for both in counting for page in both if page), default=None,
                     key=lambda page: page[0])
        if newest is None:
            continue
        sequence, place = newest[0], newest[0] % 2
        for slot, both in places.items():
            own = max((page[0] for page in both if page), default=sequence)
            if both[place] is None or own >= sequence:
                continue
            before = [both[1 - place]] + [b[1 - place] for b in counting if b[place] == newest]
            ended = clean and any(owes(page, sequence - 1) for page in before)
            if both[1 - place] is not None and own + 2 <= sequence or ended:
                slots.add(slot)
    return slots


def read(array, unreadable):
    """The map of each group, and the groups that have lost a page."""
    maps, lost = [[] for _ in array.record["groups"]], set()
    for rg, group, masks, places in places_of(array, unreadable):
        found = [both for slot, both in places.items() if array.counts(slot)]
        regions = counting_page(array.record, rg, group, masks, found)
        if regions is None:
            lost.add(group)
            regions = [(mask, MAX, rg["m"] > 0) for mask in masks]
        maps[group] += regions
    return maps, lost
