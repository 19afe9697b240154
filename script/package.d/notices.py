"""Prints the licences of what others wrote and the program contains: crates and the web console's
libraries, each with its texts.

usage: notices.py CONSOLE_LOCK < METADATA

METADATA is what `cargo metadata` prints, CONSOLE_LOCK the lock file of the console's packages.
"""

import json
import os
import sys

# What of a crate's folder is a licence.
TEXTS = ("LICEN", "COPY", "NOTICE", "UNLICEN")
# What the console is built of; everything else of its lock file only builds or tests it.
BUNDLED = {
    "svelte": "Copyright (c) 2016-2025 Svelte Contributors",
    "uplot": "Copyright (c) 2022 Leon Sorokin",
}
# Kinds of dependencies whose code gets into the program.
LINKED = (None, "build")


def texts(folder):
    """The texts of the licences in a crate's folder."""
    found = []
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if name.upper().startswith(TEXTS) and os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                found.append(file.read().strip())
    return found


def linked(metadata, name):
    """The packages that the package of this name needs, itself included, by their ids."""
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    todo = [own for own, package in packages.items() if package["name"] == name]
    found = set()
    while todo:
        own = todo.pop()
        if own in found:
            continue
        found.add(own)
        for needed in nodes[own]["deps"]:
            if any(kind["kind"] in LINKED for kind in needed["dep_kinds"]):
                todo.append(needed["pkg"])
    return [packages[own] for own in found]


def main():
    """Prints one list of all, then each text once."""
    metadata = json.load(sys.stdin)
    crates = [own for own in linked(metadata, "palisade") if own["source"]]
    crates.sort(key=lambda own: (own["name"], own["version"]))
    users = {}
    print("Palisade contains these works of others.\n")
    for crate in crates:
        print(f"  {crate['name']} {crate['version']}: {crate['license']}")
        for text in texts(os.path.dirname(crate["manifest_path"])):
            users.setdefault(text, []).append(crate["name"])
    with open(sys.argv[1], encoding="utf-8") as file:
        packages = json.load(file)["packages"]
    for name, holder in BUNDLED.items():
        own = packages[f"node_modules/{name}"]
        print(f"  {name} {own['version']} (web console): {own['license']}. {holder}")
    for text, names in users.items():
        print(f"\n{'-' * 72}\nOf {', '.join(sorted(set(names)))}:\n\n{text}")


main()
