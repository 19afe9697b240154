"""CRC-32C, GF(2^8) and xor of whole strips, for script/read-array: after docs/format.md."""

import functools


def crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


CRC_TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def gf_times(a, b):
    """a * b in GF(2^8) with 0x11d."""
    product = 0
    while b:
        if b & 1:
            product ^= a
        a = (a << 1) ^ (0x11D if a & 0x80 else 0)
        b >>= 1
    return product


POWERS = [1]  # of the generator 2
while len(POWERS) < 64:
    POWERS.append(gf_times(POWERS[-1], 2))


@functools.cache
def gf_inverse(a):
    """a^254, as a^255 = 1."""
    value = 1
    for _ in range(254):
        value = gf_times(value, a)
    return value


TIMES = {}  # factor -> table for bytes.translate


def times(factor, data):
    """Each byte of `data` multiplied by `factor`. (translate is Python's fastest way to do it)."""
    if factor == 1:
        return data
    if factor not in TIMES:
        TIMES[factor] = bytes(gf_times(factor, value) for value in range(256))
    return data.translate(TIMES[factor])


def number(data):
    return int.from_bytes(data, "little")


def p_of(data_strips):
    """P of the strips that are not None, as a number."""
    total = 0
    for strip in data_strips:
        if strip is not None:
            total ^= number(strip)
    return total


def q_of(data_strips):
    """Q of the strips that are not None, as a number."""
    total = 0
    for i, strip in enumerate(data_strips):
        if strip is not None:
            total ^= number(times(POWERS[i], strip))
    return total


def recover_data(strips, k):
    """Puts one or two lost data strips, None, back in place; behind the data are P and Q."""
    lost = [i for i in range(k) if strips[i] is None]
    size = len(next(strip for strip in strips if strip is not None))
    data, parity = strips[:k], strips[k:]
    x = lost[0]
    if len(lost) == 1 and parity[0] is not None:
        strips[x] = (number(parity[0]) ^ p_of(data)).to_bytes(size, "little")
    elif len(lost) == 1:
        b = (number(parity[1]) ^ q_of(data)).to_bytes(size, "little")
        strips[x] = times(gf_inverse(POWERS[x]), b)
    else:
        y = lost[1]
        a = number(parity[0]) ^ p_of(data)
        b = number(parity[1]) ^ q_of(data)
        a_bytes = a.to_bytes(size, "little")
        top = (number(times(POWERS[y], a_bytes)) ^ b).to_bytes(size, "little")
        strips[x] = times(gf_inverse(POWERS[x] ^ POWERS[y]), top)
        strips[y] = (a ^ number(strips[x])).to_bytes(size, "little")
