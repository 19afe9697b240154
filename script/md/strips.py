#!/usr/bin/env python3
"""Data for the arrays of script/md-vectors, and the files that are kept of what md made of it.

    strips.py data JOBS           the data of all arrays, one behind the other, to standard output
    strips.py keep WORK FOLDER    reads jobs, data, dump and report.text in WORK, writes FOLDER

Knows nothing of md's layout: which strips are data is found by comparing them with the data. The
files are described in crates/parity/tests/md/README.md.
"""

import os
import sys

STRIP = 4096
WORD = (1 << 64) - 1


def jobs(path):
    """Level, drives and stripes of each array."""
    with open(path) as lines:
        return [tuple(int(word) for word in line.split()) for line in lines]


def seed(level, drives):
    return 1000 * level + drives


def random_bytes(state, length):
    """SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), each word in little-endian order."""
    out = bytearray()
    while len(out) < length:
        state = (state + 0x9E3779B97F4A7C15) & WORD
        z = state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & WORD
        z = (z ^ z >> 27) * 0x94D049BB133111EB & WORD
        out += (z ^ z >> 31).to_bytes(8, "little")
    return bytes(out)


def data_strips(level, drives, stripes):
    return (drives - (level - 4)) * stripes


def digest(strip):
    """FNV-1a, 64 bits."""
    value = 0xCBF29CE484222325
    for byte in strip:
        value = (value ^ byte) * 0x100000001B3 & WORD
    return f"{value:016x}"


def strips(bytes_):
    return [bytes_[at:at + STRIP] for at in range(0, len(bytes_), STRIP)]


def parities(rows, data, level):
    """Of each stripe the strips that hold no data, in the order of the drives."""
    left = set(data)
    found = []
    for row in rows:
        parity = [strip for strip in row if strip not in left]
        if len(parity) != level - 4:
            sys.exit(f"strips.py: {len(parity)} strips of a stripe are no data: RAID {level}")
        found += parity
        left.difference_update(row)
    if left:
        sys.exit(f"strips.py: {len(left)} strips of data are on no drive: RAID {level}")
    return found


def keep(work, folder):
    def read(name, mode="rb"):
        with open(os.path.join(work, name), mode) as file:
            return file.read()

    def write(name, content):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)

    report = read("report.text", "r").splitlines()
    data, dump = read("data"), read("dump")
    arrays = jobs(os.path.join(work, "jobs"))
    manifest = ["# Written by script/md-vectors; README.md says what it means."]
    told = [line for line in report if line.startswith("array ")]
    manifest += [line for line in report if line != "done" and line not in told]
    total = 0
    for line, (level, drives, stripes) in zip(told, arrays, strict=True):
        if not line.startswith(f"array level={level} drives={drives} stripes={stripes} "):
            sys.exit(f"strips.py: md made another array than it was told to: {line}")
        manifest.append(f"{line} seed={seed(level, drives)}")
        length = data_strips(level, drives, stripes) * STRIP
        own, data = strips(data[:length]), data[length:]
        length = drives * stripes * STRIP
        found, dump = strips(dump[:length]), dump[length:]
        rows = [[found[drive * stripes + stripe] for drive in range(drives)]
                for stripe in range(stripes)]
        table = "".join(" ".join(map(digest, row)) + "\n" for row in rows)
        write(f"raid{level}-{drives}.strips", table.encode())
        write(f"raid{level}-{drives}.parity", b"".join(parities(rows, own, level)))
        total += drives * stripes
    write("manifest.txt", ("\n".join(manifest) + "\n").encode())
    print(f"{len(arrays)} arrays, {total} strips")


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "data":
        for level, drives, stripes in jobs(sys.argv[2]):
            length = data_strips(level, drives, stripes) * STRIP
            sys.stdout.buffer.write(random_bytes(seed(level, drives), length))
    elif len(sys.argv) == 4 and sys.argv[1] == "keep":
        keep(sys.argv[2], sys.argv[3])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
