#!/usr/bin/env python3
"""Validates the OpenAPI document that a daemon serves, and has schemathesis make requests of it: no
answer may be the daemon's mistake, or other than the document says. Called by script/openapi.

The daemon has an array of each kind, accounts, a session and a certificate, and asks for a plan's
token before it destroys data: what the requests are about stays there. The requests come over HTTPS,
with the token of a session of an account that they are not about.
"""

import json
import os
import pathlib
import re
import secrets
import subprocess
import sys
import tempfile

import openapi_spec_validator
import requests

import login
import network
from daemon import LIMIT, Daemon, Drives, Place, arrays, free_port
from report import Failure, Report

SEED = 27
# Requests that are made up for each operation, besides those at the edges of its schemas.
EXAMPLES = 3
# Methods that a resource does not know are tried by one: roles, routes and methods have a test.
UNKNOWN = ("PUT",)
# Runs beside each other: reads, and what is none.
PARTS = {"reads": ("--include-method", "GET"), "changes": ("--exclude-method", "GET")}
# Checks that are off, and why.
OFF = {
    "positive_data_acceptance": "a body that is right may name what is not there, or can't be done",
    "missing_required_header": "no header is required",
    "ignored_auth": "an address with many wrong logins has to wait, whoever it then asks for",
    "object_level_authorization": "there is one caller, who may do everything",
    "use_after_free": "requests are not made one after the other",
    "ensure_resource_availability": "requests are not made one after the other",
}


def identifiers(address):
    """What stands in URIs: something that is there, of each kind."""
    storage = "/redfish/v1/Systems/local/Storage/palisade"
    collections = {
        "StoragePool": f"{storage}/StoragePools",
        "Volume": f"{storage}/Volumes",
        "Drive": "/redfish/v1/Chassis/local/Drives",
        "Connection": "/redfish/v1/Fabrics/nvme/Connections",
        "Endpoint": "/redfish/v1/Fabrics/nvme/Endpoints",
        "Job": "/redfish/v1/JobService/Jobs",
        "MetricDefinition": "/redfish/v1/TelemetryService/MetricDefinitions",
        "MetricReportDefinition": "/redfish/v1/TelemetryService/MetricReportDefinitions",
        "MetricReport": "/redfish/v1/TelemetryService/MetricReports",
        "Role": "/redfish/v1/AccountService/Roles",
        "Certificate": "/redfish/v1/Managers/palisade/NetworkProtocol/HTTPS/Certificates",
        "LogEntry": "/redfish/v1/Managers/palisade/LogServices/Audit/Entries",
    }
    found = {"Fabric": "nvme", "Action": "Scrub", "Chassis": "local"}
    # The machine that this runs on need not have any.
    found |= dict.fromkeys(("Sensor", "Fan", "PowerSupply", "EthernetInterface"), "none")
    for name, uri in collections.items():
        members = json.loads(network.fetch(address, uri))["Members"]
        if not members:
            raise Failure(f"{uri} is empty")
        found[name] = members[0]["@odata.id"].rsplit("/", 1)[1]
    return found


def log_in(place):
    """Makes accounts. The token of one that no request is about; and which account and session of
    another requests are about."""
    report = Report()
    login.check(place, report)
    if not report.well():
        raise Failure("\n".join(report.lines()))
    other = {"UserName": "subject", "Password": secrets.token_urlsafe(18), "RoleId": "Operator"}
    post(f"{place.local}{login.ROOT}/AccountService/Accounts", other)
    sessions = f"{place.local}{login.ROOT}/SessionService/Sessions"
    session = post(sessions, {name: other[name] for name in ("UserName", "Password")})
    nobody = {"Protocol": "Redfish", "Destination": "http://127.0.0.1:9/"}
    subscription = post(f"{place.local}{login.ROOT}/EventService/Subscriptions", nobody)
    own = post(sessions, {"UserName": place.user, "Password": place.password})
    subject = {"ManagerAccount": other["UserName"], "Session": session.json()["Id"]}
    subject["EventDestination"] = subscription.json()["Id"]
    return own.headers["X-Auth-Token"], subject


def post(uri, body):
    """What a POST that makes something answers."""
    answer = requests.post(uri, json=body, timeout=LIMIT)
    if answer.status_code != 201:
        raise Failure(f"POST {uri}: {answer.status_code} {answer.text}")
    return answer


def configure(path, place):
    """Writes what schemathesis is to do."""
    token, subject = log_in(place)
    found = identifiers(place.local) | subject
    lines = [
        f"seed = {SEED}",
        "workers = 1",
        "continue-on-failure = true",
        "request-timeout = 30",
        f"tls-verify = {json.dumps(str(place.certificate))}",
        "color = false",
        'warnings = false',
        "[generation]",
        f"max-examples = {EXAMPLES}",
        "no-shrink = true",
        'database = "none"',
        "[phases.coverage]",
        f"unexpected-methods = {json.dumps(UNKNOWN)}",
        "[phases.stateful]",
        "enabled = false",
        "[headers]",
        f"X-Auth-Token = {json.dumps(token)}",
        "[parameters]",
    ]
    lines += [f'"path.{name}" = {json.dumps(value)}' for name, value in found.items()]
    # DSP0266 has 501 for unknown methods and queries; it may be what a wrong body meets first, too.
    lines += ["[checks.not_a_server_error]", 'expected-statuses = ["2xx", "3xx", "4xx", "501"]']
    wrong = '["400", "403", "404", "405", "409", "412", "413", "414", "415", "431", "501"]'
    for check in OFF:
        lines += [f"[checks.{check}]", "enabled = false"]
    # A query without a dollar is ignored, as DSP0266 wants it: only bodies have nothing unknown.
    lines += ["[checks.negative_data_rejection]", "enabled = false"]
    # HEAD is GET without a body.
    lines += ["[[operations]]", 'include-method = "HEAD"', "enabled = false"]
    # A stream does not end. A receiver that is made up would be called.
    for name in ("GET /redfish/v1/EventService/SSE", "POST /redfish/v1/EventService/Subscriptions"):
        lines += ["[[operations]]", f"include-name = {json.dumps(name)}", "enabled = false"]
    lines += ["[[operations]]", 'include-method = ["POST", "PATCH"]']
    lines += ["[operations.checks.negative_data_rejection]", "enabled = true"]
    lines += [f"expected-statuses = {wrong}"]
    path.write_text("\n".join(lines) + "\n")


def begin(place, config, name):
    """Begins to make the requests of a part."""
    tool = pathlib.Path(sys.executable).with_name("schemathesis")
    command = [tool, "--config-file", config, "run", f"{place.https}{login.ROOT}/openapi.json"]
    with open(place.target / f"schemathesis-{name}.log", "w") as log:
        return subprocess.Popen(
            [*command, *PARTS[name]], stdout=log, stderr=log, cwd=place.folder,
            env={**os.environ, "COLUMNS": "120"},
        )


def tried(place):
    """Makes the requests; how many there were, and whether all is well."""
    config = place.folder / "schemathesis.toml"
    configure(config, place)
    begun = {name: begin(place, config, name) for name in PARTS}
    try:
        return looked_at(place, begun)
    except subprocess.TimeoutExpired as late:
        raise Failure(f"schemathesis takes longer than {LIMIT} s") from late
    finally:
        # One that failed leaves the other without a daemon.
        for process in begun.values():
            process.kill()
            process.wait()


def looked_at(place, begun):
    """Waits for these parts; how many requests there were, and whether all is well."""
    count, well = 0, True
    for name, process in begun.items():
        status = process.wait(LIMIT)
        said = (place.target / f"schemathesis-{name}.log").read_text()
        cases = re.search(r"(\d[\d,]*) generated", said)
        if status not in (0, 1) or cases is None:
            raise Failure(f"schemathesis ended with {status}: {said}")
        if status == 1:
            print(said)
        count, well = count + int(cases[1].replace(",", "")), well and status == 0
    return count, well


def main():
    network.unled()
    program, target = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="palisade-", dir=memory) as folder:
        folder = pathlib.Path(folder)
        drives = Drives(folder)
        state = f"state = {json.dumps(str(folder / 'state'))}"
        port = free_port()
        daemon = Daemon(program, folder, state, f'https = ["127.0.0.1:{port}"]')
        try:
            arrays(daemon, drives, folder)
            local = f"http://127.0.0.1:{network.relay(daemon.socket)}"
            place = Place(daemon, drives, folder, target, local, port, is_alone=False)
            document = json.loads(network.fetch(local, f"{login.ROOT}/openapi.json"))
            openapi_spec_validator.validate(document)
            count, well = tried(place)
            status = daemon.stop()
            if status != 0:
                raise Failure(f"the daemon ended with status {status}")
        except Failure as failure:
            print((folder / "daemon.log").read_text())
            print(failure)
            return 1
        finally:
            daemon.kill()
    for check, why in OFF.items():
        print(f"{check} is off: {why}")
    operations = sum(len(path) - ("parameters" in path) for path in document["paths"].values())
    print(f"openapi: {operations} operations, {count} requests, {'all' if well else 'not all'} as told")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
