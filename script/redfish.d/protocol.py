"""DMTF's protocol validator: requests, answers, ETags and logins are as DSP0266 has them.

It sends multicasts to find services. So it is run only where nothing can leave the machine.
"""

import csv
import os
import pathlib
import subprocess
import sys

from daemon import LIMIT
from report import FAIL, PASS, UNTESTED, WARN, Failure

TOOL = "rf_protocol_validator"
WORDS = {"PASS": PASS, "FAIL": FAIL, "WARN": WARN, "NOT_TESTED": UNTESTED}
# Warnings and what is not tested: what the validator says, and why it is so.
MEANT = {
    (UNTESTED, r"^SERV_SSDP_"): "a daemon is found by its address, not by SSDP",
    (UNTESTED, r"^(SERV_SSE_|SEC_SESSION_TERMINATION_SIDE_EFFECTS)"): (
        "the tool does not open streams"
    ),
    (UNTESTED, r"^PROTO_REDIRECT_ENFORCES_TARGET_PRIVS"): (
        "nothing redirects, as no port speaks HTTP in clear"
    ),
    (UNTESTED, r"^REQ_DATA_MOD_ERRORS"): "no POST of the validator fails that it counts",
    (UNTESTED, r"^RESP_STATUS_INTERNAL_SERVER_ERROR"): "no request led to an internal error",
}
# What is not there each time.
CHANCE = {
    (WARN, r"^RESP_HEADERS_X_AUTH_TOKEN.*sufficiently random"): (
        "the test is one that two of a hundred random tokens fail"
    ),
}


def check(place, report):
    """Runs the validator."""
    if not place.is_alone:
        why = "unshare gives no network of its own here, and the tool sends multicasts"
        if os.environ.get("PALISADE_REQUIRE_TOOLS") or os.environ.get("CI") == "true":
            raise Failure(why)
        report.skip(why)
        return
    logs = place.logs("protocol")
    tool = pathlib.Path(sys.executable).with_name(TOOL)
    command = [tool, "--rhost", place.https, "--user", place.user, "--password", place.password]
    command += ["--ca-bundle", place.certificate, "--avoid-http-redirect"]
    command += ["--report-dir", logs, "--report-type", "tsv"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, cwd=logs)
    (logs / "output").write_text(done.stdout + done.stderr)
    for path in logs.glob("*.tsv"):
        with open(path, newline="") as file:
            for row in csv.DictReader(file, dialect="excel-tab", quoting=csv.QUOTE_NONE):
                where = " ".join((row["Assertion"], row["Method"], row["URI"]))
                report.add(WORDS[row["Result"]], where, row["Message"])
    if done.returncode != (1 if report.counts[FAIL] else 0):
        raise Failure(f"{TOOL} ended with {done.returncode}: {done.stdout}{done.stderr}")
