"""DMTF's service validator: each resource is what its schema says.

The standard schemas are in a folder; those of our own come from the daemon.
"""

import pathlib
import re
import shutil
import subprocess
import sys

from daemon import LIMIT
from network import fetch
from report import FAIL, PASS, WARN, Failure, claim

TOOL = pathlib.Path(__file__).with_name("validator.py")
# The validator's words; what it skips are properties that need not be there.
WORDS = {"PASS": PASS, "WARN": WARN, "FAIL": FAIL}


# Swordfish has file systems below the storage of a system, as has the schema of a share (FileShare,
# 1.3.0): the lists of URIs of what is above a share lack that place.
BELOW_SYSTEMS = {
    "FileSystemCollection": "",
    "FileSystem": "/{FileSystemId}",
    "FileShareCollection": "/{FileSystemId}/ExportedFileShares",
}


def complete(schemas):
    """Adds the places of file systems below systems to the schemas of a folder."""
    for name, rest in BELOW_SYSTEMS.items():
        path = schemas / f"{name}_v1.xml"
        text = path.read_text()
        known = "<String>/redfish/v1/Storage/{StorageId}/FileSystems"
        claim(known in text and "/v1/Systems/" not in text, f"{path.name} has other URIs")
        below = f"<String>/redfish/v1/Systems/{{SystemId}}/Storage/{{StorageId}}/FileSystems{rest}"
        path.write_text(text.replace(known, f"{below}</String>{known}", 1))


def collect(place):
    """A folder with the standard schemas, and those that the daemon serves itself."""
    schemas = place.folder / "schemas"
    shutil.rmtree(schemas, ignore_errors=True)
    shutil.copytree(place.target / "schemas", schemas, ignore=shutil.ignore_patterns("stamp"))
    complete(schemas)
    for path in re.findall(r'Uri="(/[^"]+)"', fetch(place.local, "/redfish/v1/$metadata")):
        name = path.rstrip("/").rsplit("/", 1)[-1]
        name = name if name.endswith(".xml") else f"{name}_v1.xml"
        (schemas / name).write_text(fetch(place.local, path))
    return schemas


def read(logs, report):
    """Takes over the validator's findings."""
    resource = "?"
    for path in logs.glob("*/*.log"):
        for line in path.read_text().splitlines():
            said = line.split(" - ", 3)[-1]
            if match := re.match(r"Validating (\S+)\.\.\.$", said):
                resource = match[1]
            elif (match := re.match(r"(\w+) - (.*)", said)) and match[1] in WORDS:
                report.add(WORDS[match[1]], resource, match[2])


def validate(place, report, name, *more):
    """Runs the validator with more options; its logs are called so."""
    logs = place.logs(name)
    command = [sys.executable, "-B", TOOL, "--rhost", place.https, "--authtype", "Session"]
    command += ["--user", place.user, "--password", place.password, "--logdir", logs]
    command += ["--schema_directory", collect(place), "--skipschema", *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, cwd=logs)
    read(logs, report)
    if done.returncode != (1 if report.counts[FAIL] else 0):
        raise Failure(f"{TOOL.name} ended with {done.returncode}: {done.stdout}{done.stderr}")


def check(place, report):
    """Runs the validator on all resources."""
    validate(place, report, "service")
