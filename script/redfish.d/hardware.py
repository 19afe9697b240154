"""DMTF's service validator on resources of a machine that has drives, enclosures, sensors and ports:
more than a machine that runs this has.

The resources are those of a view made by hand; a test of the crate that makes resources writes them
(the crate's `round_trip_tests`). They take the place of the daemon's own.
"""

import os
import shutil

import service
from daemon import run
from report import WARN

# Warnings that are meant, and why.
MEANT = {(WARN, "Mockup Used Warning"): "the resources are those of a view made by hand"}
# Of many that are alike.
MOST = ("--collectionlimit", "Drive", "6", "Sensor", "8", "LogEntry", "2")

TEST = "round_trip_tests::a_machine_with_a_shelf_is_told"


def mockup(place):
    """A folder with the resources, which outlives the check."""
    folder = place.target / "mockup"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    command = ["cargo", "test", "--quiet", "--locked", "-p", "palisade-redfish", "--lib", "--"]
    run([*command, "--exact", TEST], env=os.environ | {"PALISADE_MOCKUP": str(folder)}, limit=600)
    return folder


def check(place, report):
    """Runs the validator on all resources."""
    service.validate(place, report, "hardware", "--mockup", mockup(place), *MOST)
