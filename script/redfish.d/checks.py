#!/usr/bin/env python3
"""Tries the management interface by other people's tools. Called by script/redfish.

A daemon serves arrays of every level and state on drives that are files. Each check is a module
with a function `check(place, report)`, which reports what is right, wrong, a warning or not tested.
A warning and what is not tested have their reasons in the module, else the check fails.

All of it has a network of its own with nothing but the loopback, where the machine allows it: one
tool sends multicasts.
"""

import collections
import json
import os
import pathlib
import sys
import tempfile
import time
import traceback

import hardware
import library
import login
import network
import openstack
import protocol
import service
import use_cases
import utilities
from daemon import Daemon, Drives, Place, arrays, free_port
from report import FAIL, PASS, Failure, Report, summed


def set_up(place, report):
    """Makes the arrays that the later checks look at."""
    arrays(place.daemon, place.drives, place.folder)
    report.add(PASS)


# In their order: name, what is done, and which warnings are meant, always or by chance.
STEPS = (
    ("first account", login.check),
    ("service, no array", service.check),
    ("arrays", set_up),
    ("service", service.check),
    ("hardware", hardware.check, hardware.MEANT),
    ("library", library.check),
    ("utilities", utilities.check),
    ("openstack", openstack.check),
    ("use cases", use_cases.check, use_cases.MEANT),
    ("protocol", protocol.check, protocol.MEANT, protocol.CHANCE),
)


def attempt(place, name, step, *meant):
    """Makes a check; its report."""
    begun = time.monotonic()
    report = Report(*meant)
    try:
        step(place, report)
    except Exception:  # pylint: disable=broad-except
        # A tool that stumbles is a finding, and the other tools are tried all the same.
        report.add(FAIL, name, traceback.format_exc())
    spent = time.monotonic() - begun
    print(f"{report.word():7} {name:18} {spent:5.1f} s  {summed(report.counts)}", flush=True)
    for line in report.lines():
        print(line)
    return report


def all_of(place):
    """Makes every check; whether all is well."""
    begun = time.monotonic()
    reports = [attempt(place, *step) for step in STEPS]
    status = place.daemon.stop()
    if status != 0:
        raise Failure(f"the daemon ended with status {status}")
    total = sum((report.counts for report in reports), start=collections.Counter())
    spent = time.monotonic() - begun
    print(f"{len(STEPS)} checks by others' tools: {summed(total)}; {spent:.0f} s")
    return all(report.well() for report in reports)


def main():
    network.unled()
    program, target = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    is_alone = network.has_only_loopback()
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="palisade-", dir=memory) as folder:
        folder = pathlib.Path(folder)
        drives = Drives(folder)
        port = free_port()
        # Not every tool can send a plan's token.
        lines = ('confirm = "off"', f"state = {json.dumps(str(folder / 'state'))}")
        daemon = Daemon(program, folder, *lines, f'https = ["127.0.0.1:{port}"]')
        try:
            local = f"http://127.0.0.1:{network.relay(daemon.socket)}"
            place = Place(daemon, drives, folder, target, local, port, is_alone)
            well = all_of(place)
        except Failure as failure:
            print(failure)
            well = False
        finally:
            daemon.kill()
        if not well:
            print((folder / "daemon.log").read_text())
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
