"""The first account: with it HTTPS opens, and tools log in. They trust the daemon's certificate, as
the daemon's socket shows it, and no other."""

import json
import secrets
import socket
import time

from daemon import LIMIT, run
from network import fetch
from report import Failure

ROOT = "/redfish/v1"


def is_open(port):
    """Whether something listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), LIMIT).close()
    except ConnectionRefusedError:
        return False
    return True


def opened(port):
    """Waits until something listens."""
    end = time.monotonic() + LIMIT
    while not is_open(port):
        if time.monotonic() > end:
            raise Failure(f"nothing listens on port {port}")
        time.sleep(0.05)


def certificate(place):
    """The certificate of HTTPS, as the socket shows it."""
    there = json.loads(fetch(place.local, f"{ROOT}/Managers/palisade/NetworkProtocol"))
    there = json.loads(fetch(place.local, there["HTTPS"]["Certificates"]["@odata.id"]))
    [link] = there["Members"]
    return json.loads(fetch(place.local, link["@odata.id"]))["CertificateString"]


def check(place, report):
    """Makes an account."""
    report.claim(not is_open(place.port), "nothing listens while there is no account")
    place.user, place.password = "admin", secrets.token_urlsafe(18)
    command = [place.daemon.program, "account", "create", place.user, "--role", "Administrator"]
    command += ["--password-stdin", "--socket", place.daemon.socket]
    run(command, input=f"{place.password}\n")
    opened(place.port)
    place.certificate.write_text(certificate(place))
    report.claim("admin" in str(place.daemon.ask("account", "list")), "the account is listed")
