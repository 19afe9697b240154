#!/usr/bin/env python3
"""Has a daemon mail alerts to a mail server that behaves in every way, and looks at what arrives.
Called by script/mail.

A certificate authority of this run signs the server's certificate; SSL_CERT_FILE makes the daemon
trust it. Each check raises Failure with what is wrong.
"""

import asyncio
import contextlib
import email
import email.policy
import json
import logging
import os
import pathlib
import queue
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "redfish.d"))

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword  # noqa: E402
from daemon import LIMIT, Daemon, Drives, create, free_port, run, until  # noqa: E402
from report import Failure, claim  # noqa: E402

# What a message in a mail begins with.
HEAD = re.compile(r"(STILL )?(WARNING|CRITICAL|CLEARED): ")
USER, PASSWORD = "palisade", "correct horse battery"
FROM, ANA, BOB = "palisade@mail.example", "ana@mail.example", "bob@mail.example"


def certificates(folder):
    """A certificate authority, and a server's certificate that it signed: contexts by name."""

    def openssl(*words):
        run(["openssl", *words], cwd=folder)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    for name in ("ca", "other"):
        openssl(
            "req", "-x509", *key, "-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "2",
            "-subj", f"/CN={name}", "-addext", "keyUsage=critical,keyCertSign",
        )  # fmt: skip
    (folder / "san").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    contexts = {}
    for name in ("ca", "other"):
        openssl("req", *key, "-keyout", f"{name}-s.key", "-out", "s.csr", "-subj", "/CN=mail")
        openssl(
            "x509", "-req", "-in", "s.csr", "-CA", f"{name}.pem", "-CAkey", f"{name}.key",
            "-CAcreateserial", "-days", "2", "-extfile", "san", "-out", f"{name}-s.pem",
        )  # fmt: skip
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / f"{name}-s.pem", folder / f"{name}-s.key")
        contexts[name] = context
    return contexts


class Handler:
    """What becomes of mail."""

    def __init__(self, server):
        self.server = server

    async def handle_RCPT(self, _server, _session, envelope, address, _options):
        if self.server.refuses and address.startswith("bob"):
            return "550 nobody of that name"
        envelope.rcpt_tos.append(address)
        return "250 fine"

    async def handle_DATA(self, server, session, envelope):
        if self.server.breaks:
            server.transport.abort()
            return "451 too late"
        if self.server.pause:
            await asyncio.sleep(self.server.pause)
        text = email.message_from_bytes(envelope.content, policy=email.policy.default)
        # Where TLS is spoken from the beginning the session does not say so.
        is_tls = session.ssl is not None or self.server.context is not None
        self.server.taken.put((text, is_tls, bool(session.authenticated)))
        return "250 taken"


class MailServer:
    """A mail server on a thread of its own, until it is left."""

    def __init__(self, port, context=None, starts_tls=None, login=False):
        self.port, self.context, self.starts_tls, self.login = port, context, starts_tls, login
        self.taken = queue.Queue()
        self.refuses = self.breaks = False
        self.pause = 0
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def protocol(self):
        def check(_server, _session, _envelope, _mechanism, given):
            right = LoginPassword(USER.encode(), PASSWORD.encode())
            return AuthResult(success=given == right)

        more = {}
        if self.login:
            more = {"authenticator": check, "auth_required": True, "auth_require_tls": False}
        starts = self.starts_tls
        return SMTP(
            Handler(self), hostname="mail.example", tls_context=starts,
            require_starttls=starts is not None, loop=self.loop, **more,
        )  # fmt: skip

    def __enter__(self):
        self.thread.start()
        made = self.loop.create_server(self.protocol, "127.0.0.1", self.port, ssl=self.context)
        self.server = asyncio.run_coroutine_threadsafe(made, self.loop).result(LIMIT)
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.server.close)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(LIMIT)

    def next(self, seconds=LIMIT):
        """The next mail, whether it came by TLS, and whether its sender had logged in."""
        try:
            return self.taken.get(timeout=seconds)
        except queue.Empty:
            raise Failure("no mail comes") from None

    def told(self, count):
        """So many messages, of as many mails as they come in: more than ten a minute are one."""
        found = []
        while len(found) < count:
            mail = self.next()[0]
            if "] TEST: " in mail["Subject"]:
                found.append("TEST")
            own = [" ".join(line.split()) for line in mail.get_content().splitlines()]
            found += [line for line in own if HEAD.match(line)]
        claim(len(found) == count, f"more than {count}: {found}")
        return found


class Place:
    """A daemon that trusts the authority, with one array and recipients."""

    def __init__(self, program, folder):
        self.folder, self.port = folder, free_port()
        os.environ["SSL_CERT_FILE"] = str(folder / "ca.pem")
        self.drives = Drives(folder)
        self.daemon = Daemon(program, folder, f"state = {json.dumps(str(folder / 'state'))}")
        # What comes and goes too often is told late: one array for the first checks, then another.
        self.array = "tank"
        for name in ("tank", "other"):
            create(self.daemon, name, "1", self.drives.take(2))

    def command(self, *words, text=None):
        """A command of the command line: its status, its output and what it said."""
        command = [self.daemon.program, *words, "--socket", self.daemon.socket]
        done = subprocess.run(command, capture_output=True, text=True, input=text, timeout=LIMIT)
        return done.returncode, done.stdout, done.stderr

    def api(self, *words):
        """A request of Redfish; its answer."""
        status, told, said = self.command("api", *words)
        claim(status == 0, f"api {' '.join(words)}: {said}")
        return json.loads(told)

    def mail(self, *words, text=None):
        """Changes how mail is sent."""
        status, _, said = self.command("alert", "mail", *words, text=text)
        claim(status == 0, f"alert mail {' '.join(words)}: {said}")

    def test(self):
        """What came of a test: by destination, why it was not delivered."""
        _, told, said = self.command("alert", "test", "--json")
        claim(told, f"alert test: {said}")
        return {own["destination"]: own["problem"] for own in json.loads(told)["recipients"]}

    def alerts(self):
        return {own["message"]: own for own in self.daemon.ask("alert", "list")["alerts"]}

    def fail(self):
        """Takes the array's first drive out: two alerts."""
        self.daemon.ask("array", "fail", self.array, "--drive", "slot:0")

    def mend(self):
        """Puts another drive in its place: the alerts are over."""
        (drive,) = self.drives.take(1)
        self.daemon.ask("array", "replace", self.array, "--slot", "0", "--with", drive)
        self.daemon.ask("array", "wait", self.array, "--timeout", str(LIMIT))


def tls(place, contexts):
    """By TLS from the beginning, with a password, alerts arrive once raised and once over."""
    with MailServer(place.port, context=contexts["ca"], login=True) as server:
        words = ("--server", f"127.0.0.1:{place.port}", "--from", FROM, "--tls", "tls")
        more = ("--user", USER, "--to", ANA, "--to", f"{BOB}:critical")
        place.mail(*words, *more, text=PASSWORD + "\n")
        kept = place.folder / "state" / "mail.json"
        claim(kept.stat().st_mode & 0o777 == 0o600, "others may read the password")
        shown = place.api("GET", "/EventService")
        claim(PASSWORD not in json.dumps(shown), "the password is shown")
        claim(shown["SMTP"]["PasswordSet"] is True, f"{shown['SMTP']}")
        claim(set(place.test().values()) == {None}, f"{place.test()}")
        for _ in range(4):
            mail, is_tls, has_logged_in = server.next()
            claim(is_tls and has_logged_in, f"{mail}")
            claim("TEST" in mail["Subject"], f"{mail}")
        place.fail()
        found = server.told(3)
        claim(sum("array tank is degraded" in own for own in found) == 1, f"{found}")
        claim(sum(own.startswith("CRITICAL: drive") for own in found) == 2, f"{found}")
        place.mend()
        over = server.told(3)
        claim(all(own.startswith("CLEARED: ") for own in over), f"{over}")
        time.sleep(1)
        claim(server.taken.empty(), "more mails came than alerts")


def starttls(place, contexts):
    """By TLS that begins with a command; without TLS nothing is sent."""
    with MailServer(place.port, starts_tls=contexts["ca"]) as server:
        place.mail("--server", f"127.0.0.1:{place.port}", "--tls", "starttls")
        # This server knows no passwords.
        body = json.dumps({"SMTP": {"Authentication": "None", "Password": ""}})
        place.api("PATCH", "/EventService", body)
        claim(set(place.test().values()) == {None}, f"{place.test()}")
        for _ in range(2):
            claim(server.next()[1], "a mail came without TLS")
    with MailServer(place.port) as server:
        found = place.test()
        claim(all(found.values()), f"sent without TLS: {found}")
        claim(server.taken.empty(), "a mail came without TLS")


def strangers(place, contexts):
    """A certificate of another authority is not taken, and that is an alert."""
    with MailServer(place.port, context=contexts["other"]) as server:
        place.mail("--tls", "tls")
        found = place.test()
        claim(all(why and "ertificate" in why for why in found.values()), f"{found}")
        place.fail()
        until("an alert about mail", lambda: place.alerts().get("MailNotSent"))
        claim(server.taken.empty(), "a mail came")


def gone(place, contexts):
    """A server that is gone, then comes back, gets what waited; the alert is over."""
    claim(all(place.test().values()), "nobody is there")
    began = time.monotonic()
    place.mend()
    claim(time.monotonic() - began < 60, "mail delays arrays")
    said = place.alerts().get("MailNotSent")
    claim(said, "there is no alert about mail")
    with MailServer(place.port, context=contexts["ca"]) as server:
        # It is tried again by itself; the test makes it sooner.
        place.test()
        found = [own for own in server.told(8) if "TEST" not in own]
        claim(sum("CLEARED" in own for own in found) == 3, f"{found}")
        claim(not any("mail can't" in own for own in found), f"{found}")
        until("mail is well", lambda: "MailNotSent" not in place.alerts())


def refused(place, contexts):
    """A recipient that is refused is an alert of its own; the other gets the mail."""
    with MailServer(place.port, context=contexts["ca"]) as server:
        server.refuses = True
        place.fail()
        found = server.told(2)
        claim(any("degraded" in own for own in found), f"{found}")
        own = until("an alert", lambda: place.alerts().get("MailRefused"))
        claim(BOB in own["what"] and "nobody of that name" in own["what"], f"{own}")
        server.refuses = False
        claim(set(place.test().values()) == {None}, "it is not refused any more")
        until("the alert is over", lambda: "MailRefused" not in place.alerts())
        server.told(3)


def slow(place, contexts):
    """A server that is slow, or breaks off, delays nothing; what it broke off is sent again."""
    with MailServer(place.port, context=contexts["ca"]) as server:
        server.pause = 5
        began = time.monotonic()
        place.mend()
        place.daemon.ask("status")
        claim(place.daemon.ask("alert", "list")["schema"] == 1, "no alerts")
        claim(time.monotonic() - began < 60, "mail delays arrays")
        server.told(3)
        server.pause, server.breaks, place.array = 0, True, "other"
        place.fail()
        until("an alert", lambda: place.alerts().get("MailNotSent"))
        server.breaks = False
        place.test()
        found = [own for own in server.told(5) if "TEST" not in own]
        claim(len(found) == 3, f"{found}")
        until("mail is well", lambda: "MailNotSent" not in place.alerts())


def restart(place, contexts):
    """After a restart nothing is mailed again, and what waited is."""
    place.mend()
    until("an alert", lambda: place.alerts().get("MailNotSent"))
    claim(place.daemon.stop() == 0, "the daemon did not end well")
    more = f"state = {json.dumps(str(place.folder / 'state'))}"
    with MailServer(place.port, context=contexts["ca"]) as server:
        place.daemon = Daemon(place.daemon.program, place.folder, more)
        found = server.told(3)
        claim(all("CLEARED" in own for own in found), f"{found}")
        time.sleep(1)
        claim(server.taken.empty(), "a mail came twice")


# What aiosmtpd warns of, a server that takes passwords by its own, is meant.
warnings.filterwarnings("ignore", module="aiosmtpd")
logging.getLogger("mail.log").setLevel(logging.ERROR)

CHECKS = (tls, starttls, strangers, gone, refused, slow, restart)


def main():
    program, keep = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    folder = pathlib.Path(tempfile.mkdtemp(prefix="palisade-mail-"))
    place, failed = None, 0
    try:
        contexts = certificates(folder)
        place = Place(program, folder)
        for check in CHECKS:
            try:
                check(place, contexts)
                print(f"ok {check.__name__}: {check.__doc__}")
            except (Failure, OSError, subprocess.SubprocessError) as wrong:
                failed += 1
                print(f"FAILED {check.__name__}: {wrong}")
                break
    finally:
        with contextlib.suppress(OSError):
            shutil.copy(folder / "daemon.log", keep / "daemon.log")
        if place:
            place.daemon.kill()
        shutil.rmtree(folder, ignore_errors=True)
    log = (keep / "daemon.log").read_text()
    if PASSWORD in log or "panicked" in log:
        failed += 1
        print("FAILED: the daemon's log has the password, or a panic")
    passed = len(CHECKS) if not failed else "some"
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
