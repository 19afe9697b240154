"""Where strips lie, for script/read-array: after docs/format.md, section "Layout".

A range is a dictionary with the fields of an address range, as read-array parses it.
"""

MIB = 1 << 20


def drive_bytes(rg):
    """How much of each of its drives a range takes."""
    return rg["array_bytes"] // (rg["groups"] * rg["k"])


def slots_of(rg):
    return range(rg["first_slot"], rg["first_slot"] + rg["groups"] * rg["width"])


def groups_of(rg):
    """The number and the slots of each group of a range."""
    for position in range(rg["groups"]):
        base = rg["first_slot"] + position * rg["width"]
        yield rg["first_group"] + position, range(base, base + rg["width"])


def stripes_of(rg):
    return drive_bytes(rg) // rg["strip_bytes"]


def place_strips(rg, slots, stripe):
    """The slots of the stripe's strips: data, then P and Q or the copies."""
    n, m = rg["width"], rg["m"]
    if rg["kind"] != "parity":
        return list(slots)
    p = n - 1 - stripe % n
    redundant = [slots[p], slots[(p + 1) % n]][:m]
    return [slots[(p + m + i) % n] for i in range(rg["k"])] + redundant
