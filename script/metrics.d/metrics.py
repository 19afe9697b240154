#!/usr/bin/env python3
"""Has Prometheus scrape a daemon with arrays of every state, hosts and I/O, and looks at what it has
got. Called by script/metrics.

Prometheus comes by HTTPS, with an account's name and password, and trusts the daemon's certificate
only. Each check raises Failure with what is wrong.
"""

import contextlib
import datetime
import http.client
import json
import math
import os
import pathlib
import re
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "redfish.d"))

from daemon import LIMIT, Daemon, Drives, arrays, free_port, run, until  # noqa: E402
from report import Failure, claim  # noqa: E402
from host import Host  # noqa: E402

CONTRIB = pathlib.Path(__file__).resolve().parents[2] / "contrib"
ALERTS = CONTRIB / "prometheus" / "alerts.yml"
TESTS = CONTRIB / "prometheus" / "alerts_test.yml"
DASHBOARD = CONTRIB / "grafana" / "palisade.json"
TYPE = "text/plain; version=0.0.4; charset=utf-8"
NQN = "nqn.2014-08.org.nvmexpress:uuid:99999999-2222-3333-4444-555555555555"
STREAM = "/redfish/v1/EventService/SSE?$filter=" + urllib.parse.quote(
    "EventFormatType eq 'MetricReport'"
)


class OnSocket(http.client.HTTPConnection):
    """HTTP on a Unix socket."""

    def __init__(self, path):
        super().__init__("palisade", timeout=LIMIT)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(LIMIT)
        self.sock.connect(self.path)


def ask(connection, method, path, **more):
    """Status, headers and text of an answer."""
    with contextlib.closing(connection):
        connection.request(method, path, **more)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()


class Place:
    """A daemon with its accounts, and what clients of its HTTPS need."""

    def __init__(self, program, folder):
        self.folder, self.port = folder, free_port()
        self.password = secrets.token_urlsafe(18)
        self.lines = (
            f"state = {json.dumps(str(folder / 'state'))}",
            f'https = ["127.0.0.1:{self.port}"]',
        )
        self.drives = Drives(folder)
        self.daemon = Daemon(program, folder, *self.lines)
        self.certificate = folder / "palisade.pem"

    def on_socket(self, method="GET", path="/metrics"):
        """Asks the socket."""
        return ask(OnSocket(self.daemon.socket), method, path)

    def by_https(self, method="GET", path="/metrics"):
        """Asks by HTTPS, as nobody."""
        context = ssl.create_default_context(cafile=str(self.certificate))
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=context)
        return ask(connection, method, path)

    def resource(self, path):
        """A resource, as the socket shows it."""
        status, _, text = self.on_socket(path=path)
        claim(status == 200, f"GET {path}: {status} {text}")
        return json.loads(text)

    def accounts(self):
        """An Administrator, and an account that reads; with the first one HTTPS opens."""
        for name, role in (("admin", "Administrator"), ("prometheus", "ReadOnly")):
            command = [self.daemon.program, "account", "create", name, "--role", role]
            command += ["--password-stdin", "--socket", self.daemon.socket]
            run(command, input=f"{self.password}\n")
        certificates = "/redfish/v1/Managers/palisade/NetworkProtocol/HTTPS/Certificates"
        members = until("a certificate", lambda: self.resource(certificates)["Members"])
        text = self.resource(members[0]["@odata.id"])["CertificateString"]
        self.certificate.write_text(text)

        def is_open():
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), LIMIT).close()
                return True
            return False

        until("HTTPS", is_open)


class Work(threading.Thread):
    """A host of NVMe and a client of NBD that go on until they are told to stop."""

    def __init__(self, place):
        super().__init__(daemon=True)
        self.place, self.ended, self.problem = place, threading.Event(), None
        exports = place.daemon.ask("export", "list")["exports"]
        [nvme] = [each for each in exports if each["volume"] == "logs"]
        self.nsid = nvme["nsid"]
        self.listener = nvme["listeners"][0]
        self.host = Host(self.listener, nvme["subsystem"], NQN)
        self.uri = next(each["uri"] for each in exports if each["volume"] == "db" and "nbd" in each)
        self.content = place.folder / "work"
        self.content.write_bytes(os.urandom(4 << 20))

    def run(self):
        try:
            while not self.ended.is_set():
                self.host.work(self.nsid, 64)
                run(["nbdcopy", "--flush", self.content, self.uri])
                run(["nbdcopy", self.uri, "null:"])
        except Exception as problem:  # pylint: disable=broad-except
            self.problem = problem

    def stop(self):
        """Ends it; it must have gone well."""
        self.ended.set()
        self.join(LIMIT)
        claim(not self.is_alive(), "I/O hangs")
        claim(self.problem is None, f"I/O failed: {self.problem}")


def answers(place):
    """What the daemon says of its metrics, and to whom; the text."""
    status, headers, text = place.on_socket()
    claim((status, headers["Content-Type"]) == (200, TYPE), f"{status} {headers}")
    status, headers, body = place.on_socket("HEAD")
    claim((status, headers["Content-Type"], body) == (200, TYPE, ""), f"HEAD: {status} {headers}")
    status, headers, _ = place.on_socket("POST")
    claim((status, headers["Allow"]) == (405, "GET, HEAD"), f"POST: {status} {headers}")
    status, headers, _ = place.by_https()
    claim(status == 401 and "Basic" in headers["WWW-Authenticate"], f"nobody: {status}")
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, timeout=LIMIT
    )
    said = checked.stdout + checked.stderr
    claim(checked.returncode == 0 and not said.strip(), f"promtool check metrics: {said}")
    return text


def opened(place):
    """Everybody may read them once the configuration says so."""
    config = place.folder / "palisade.toml"
    config.write_text(config.read_text() + 'metrics = "open"\n')
    place.daemon.process.send_signal(signal.SIGHUP)
    until("metrics that everybody may read", lambda: place.by_https()[0] == 200)
    claim(place.by_https(path="/redfish/v1/Systems")[0] == 401, "the rest is not open")


def rules():
    """The alerts can be read, and each has tests in which it fires and does not; how many."""
    run(["promtool", "check", "rules", ALERTS])
    run(["promtool", "test", "rules", TESTS])
    names = re.findall(r"^ +- alert: (\w+)$", ALERTS.read_text(), re.M)
    cases = re.split(r"^  - name: ", TESTS.read_text(), flags=re.M)
    for name in names:
        own = [case for case in cases if f"alertname: {name}\n" in case or f"alertname: {name}," in case]
        fires = [case for case in own if "exp_labels" in case]
        claim(fires and len(own) > len(fires), f"{name} has no test in which it fires, and not")
    return len(names)


def queries():
    """The dashboard's queries, by panel, with values for its variables."""
    values = {"$__rate_interval": "10s", "$instance": ".*", "$array": ".*"}
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", ()):
            query = target["expr"]
            for name, value in values.items():
                query = query.replace(name, value)
            claim("$" not in query, f"{panel['title']}: {query}")
            yield panel["title"], query


def known(text):
    """What alerts and dashboard ask for is what the daemon tells."""
    families = set(re.findall(r"^# TYPE (\w+) ", text, re.M))
    asked = ALERTS.read_text() + "\n".join(query for _, query in queries())
    for name in sorted(set(re.findall(r"\b(?:palisade|process)_\w+", asked))):
        family = re.sub("_(bucket|sum|count)$", "", name)
        claim({name, family} & families, f"the daemon tells no {name}")
    return len(families)


def configure(place):
    """Prometheus' configuration: that of contrib/, for this daemon."""
    text = (CONTRIB / "prometheus" / "prometheus.yml").read_text()
    password = place.folder / "password"
    password.write_text(place.password)
    for old, new in (
        ("scrape_interval: 15s", "scrape_interval: 1s\n  evaluation_interval: 1s"),
        ("/etc/prometheus/palisade-password", str(password)),
        ("/etc/prometheus/palisade.pem", str(place.certificate)),
        ("storage.example:8443", f"127.0.0.1:{place.port}"),
        ("- alerts.yml", f"- {ALERTS}"),
    ):
        claim(text.count(old) == 1, f"prometheus.yml has no {old}")
        text = text.replace(old, new)
    config = place.folder / "prometheus.yml"
    config.write_text(text)
    run(["promtool", "check", "config", config])
    return config


class Prometheus:
    """A Prometheus that scrapes the daemon."""

    def __init__(self, place, log):
        self.port = free_port()
        command = ["prometheus", f"--config.file={configure(place)}"]
        command += [f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"]
        command += [f"--storage.tsdb.path={place.folder / 'prometheus'}"]
        with open(log, "wb") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=output)

    def query(self, query):
        """What a query is answered: labels and value of each series."""
        path = "/api/v1/query?" + urllib.parse.urlencode({"query": query})
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
            _, _, text = ask(connection, "GET", path)
        except ConnectionRefusedError:
            claim(self.process.poll() is None, "Prometheus has ended")
            return []
        answer = json.loads(text)
        if answer["status"] != "success":
            # It is not ready yet, or the query is none.
            claim(answer["errorType"] == "unavailable", f"{query}: {text}")
            return []
        return [(each["metric"], float(each["value"][1])) for each in answer["data"]["result"]]

    def stop(self):
        """Ends it."""
        self.process.kill()
        self.process.wait()


def scraped(prometheus, work):
    """Prometheus has the daemon's metrics, and each query of the dashboard is answered; how many."""
    until("scrapes", lambda: prometheus.query("sum_over_time(up[1m]) >= 4"))

    def told(query):
        return [value for _, value in prometheus.query(query) if not math.isnan(value)]

    count = 0
    for title, query in queries():
        until(f"an answer: {title}: {query}", lambda query=query: told(query))
        count += 1
    for name in ("read", "write"):
        rate = f'sum(rate(palisade_volume_bytes_total{{op="{name}"}}[10s]))'
        until(f"{name}s", lambda rate=rate: [value for value in told(rate) if value > 0])
        rate = f'sum(rate(palisade_host_bytes_total{{op="{name}"}}[10s]))'
        until(f"a host's {name}s", lambda rate=rate: [value for value in told(rate) if value > 0])
    for selector in sorted(set(re.findall(r"\bpalisade_\w+(?:\{[^}]*\})?", expressions()))):
        until(f"series of {selector}", lambda selector=selector: prometheus.query(selector))
    alerts(prometheus, work)
    return count


def expressions():
    """What the alerts ask."""
    return "\n".join(re.findall(r"^ +expr: (.+(?:\n {10,}.+)*)$", ALERTS.read_text(), re.M))


def alerts(prometheus, work):
    """A host that asks for what is not there has an alert fire, and no other does; whatever waits
    does so for what is wrong."""
    expected = {"PalisadeTurnedAway"}
    with contextlib.suppress(ConnectionError):
        Host(work.listener, f"{NQN}:none", NQN)
        raise Failure("a subsystem is there that nobody made")

    def states():
        return {
            state: {labels["alertname"] for labels, _ in prometheus.query(f'ALERTS{{alertstate="{state}"}}')}
            for state in ("firing", "pending")
        }

    until(f"that {expected} fire", lambda: expected <= states()["firing"])
    told = states()
    claim(told["firing"] == expected, f"fire: {told}")
    for name in ("PalisadeArrayDegraded", "PalisadeDriveFailed"):
        claim(name in told["pending"], f"{name} does not wait: {told}")
    for name in ("PalisadeDown", "PalisadeStateProblem", "PalisadeHttpsProblem"):
        claim(name not in told["pending"], f"{name} waits: {told}")


def moment(text):
    """The moment of a time of Redfish."""
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def streamed(place):
    """Reports of metrics come by a stream, once a second."""
    connection = OnSocket(place.daemon.socket)
    with contextlib.closing(connection):
        connection.request("GET", STREAM)
        answer = connection.getresponse()
        claim(answer.status == 200, f"GET {STREAM}: {answer.status}")
        seen, volumes = set(), []
        end = time.monotonic() + LIMIT
        while len(volumes) < 3 or not {"Cores", "Drives", "Exports", "Hosts", "Jobs"} <= seen:
            claim(time.monotonic() < end, f"reports that came: {seen}")
            line = answer.readline().decode()
            if line.startswith("data: "):
                report = json.loads(line[6:])
                claim(report["MetricValues"], f"nothing is in {report}")
                seen.add(report["Id"])
                if report["Id"] == "Volumes":
                    volumes.append(report)
    times = [moment(report["Timestamp"]) for report in volumes]
    # Each is of another second; nothing was left out.
    apart = [(after - before).total_seconds() for before, after in zip(times, times[1:])]
    claim(all(0 < seconds < 2 for seconds in apart), f"reports are {apart} s apart")
    whole = place.resource("/redfish/v1/TelemetryService/MetricReports/Volumes")["MetricValues"]
    # One a minute has all.
    least = min(len(report["MetricValues"]) for report in volumes[1:])
    claim(0 < least < len(whole), "later reports have what changed")


def all_of(place, target):
    """Makes every check; a line that sums up."""
    arrays(place.daemon, place.drives, place.folder)
    place.accounts()
    work = Work(place)
    work.start()
    prometheus = Prometheus(place, target / "prometheus.log")
    try:
        # Prometheus scrapes meanwhile.
        alerts = rules()
        # Samples of counters are a second apart.
        until("counters of I/O", lambda: "palisade_volume_latency_seconds_count" in place.on_socket()[2])
        text = answers(place)
        families = known(text)
        streamed(place)
        count = scraped(prometheus, work)
    finally:
        prometheus.stop()
    opened(place)
    work.stop()
    status = place.daemon.stop()
    claim(status == 0, f"the daemon ended with status {status}")
    lines = len(text.splitlines())
    return f"{families} families in {lines} lines, {alerts} alerts, {count} queries answered"


def main():
    for name in [name for name in os.environ if name.upper().endswith("_PROXY")]:
        del os.environ[name]
    program, target = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    begun = time.monotonic()
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="palisade-", dir=memory) as folder:
        place = Place(program, pathlib.Path(folder))
        try:
            told = all_of(place, target)
        except (Failure, OSError, subprocess.SubprocessError) as problem:
            print((place.folder / "daemon.log").read_text())
            log = target / "prometheus.log"
            print(log.read_text() if log.exists() else "")
            print(problem)
            return 1
        finally:
            place.daemon.kill()
            shutil.rmtree(place.folder / "prometheus", ignore_errors=True)
    print(f"metrics: {told} by Prometheus {sys.argv[3]}; {time.monotonic() - begun:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
