"""The first account: with it HTTPS opens, and tools log in. The library, `sushy`, the protocol
validator and schemathesis trust the daemon's certificate, as the daemon's socket shows it, and no
other; DMTF's other tools can't be told to, and trust any."""

import json
import secrets
import socket

from daemon import LIMIT, run, until
from network import fetch

ROOT = "/redfish/v1"


def is_open(port):
    """Whether something listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), LIMIT).close()
    except ConnectionRefusedError:
        return False
    return True


def certificates(address):
    """Links to the certificate of HTTPS, as the socket shows it."""
    there = json.loads(fetch(address, f"{ROOT}/Managers/palisade/NetworkProtocol"))
    return json.loads(fetch(address, there["HTTPS"]["Certificates"]["@odata.id"]))["Members"]


def certificate(place):
    """The certificate of HTTPS, which comes with the first account."""
    [link] = until("certificate", lambda: certificates(place.local))
    return json.loads(fetch(place.local, link["@odata.id"]))["CertificateString"]


def reasons(place):
    """Why HTTPS is not served, as the socket tells it."""
    there = json.loads(fetch(place.local, f"{ROOT}/Managers/palisade/NetworkProtocol"))
    return [each["MessageId"] for each in there["Status"].get("Conditions", ())]


def check(place, report):
    """Makes an account."""
    told = until("reason why HTTPS is off", lambda: reasons(place))
    report.claim(told == ["Palisade.1.0.HttpsOff"], f"HTTPS is off, got {told}")
    report.claim(not is_open(place.port), "nothing listens while there is no account")
    place.user, place.password = "admin", secrets.token_urlsafe(18)
    command = [place.daemon.program, "account", "create", place.user, "--role", "Administrator"]
    command += ["--password-stdin", "--socket", place.daemon.socket]
    run(command, input=f"{place.password}\n")
    until(f"listener on port {place.port}", lambda: is_open(place.port))
    place.certificate.write_text(certificate(place))
    report.claim("admin" in str(place.daemon.ask("account", "list")), "the account is listed")
