#!/usr/bin/env python3
"""Starts a daemon, has it serve arrays of every state, and runs DMTF's service validator on it: once
while there is no array, and once with all of them. Called by script/redfish.

The validator wants TCP: a relay on a port of the loopback leads to the daemon's socket.
"""

import asyncio
import collections
import json
import logging
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

MIB = 1 << 20
DRIVE_BYTES = 128 * MIB
DRIVES = 24
# How long anything may take.
LIMIT = 120
VALIDATOR = "redfish_service_validator"
# Warnings that are meant: what the validator says, and why it is so.
WARNINGS = {}


class Failure(Exception):
    """Why the check could not be made."""


def run(command, **more):
    """What a command prints; it must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, **more)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}")
    return done.stdout


class Daemon:
    """A daemon on drives that are files of a folder."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.socket = folder / "socket"
        config = folder / "palisade.toml"
        config.write_text(
            f"socket = {json.dumps(str(self.socket))}\ncores = 1\n"
            f"drives = [{json.dumps(str(folder / 'drive-*.img'))}]\n"
        )
        self.log = open(folder / "daemon.log", "wb")
        self.process = subprocess.Popen(
            [program, "serve", "--config", config], stdout=subprocess.PIPE, stderr=self.log
        )
        line = self.process.stdout.readline()
        if line.strip() != b"ready":
            raise Failure(f"the daemon is not ready: {(folder / 'daemon.log').read_text()}")

    def ask(self, *words):
        """A command of the command line that must succeed; its object."""
        command = [self.program, *words, "--json", "--socket", self.socket]
        return json.loads(run(command))

    def may(self, *words):
        """Whether a command succeeds."""
        command = [self.program, *words, "--json", "--socket", self.socket]
        return subprocess.run(command, capture_output=True, timeout=LIMIT).returncode == 0

    def stop(self):
        """Ends it; it must end well."""
        self.process.terminate()
        status = self.process.wait(LIMIT)
        self.log.close()
        return status

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Drives:
    """Files, each given out once."""

    def __init__(self, folder):
        self.paths = [folder / f"drive-{number:02}.img" for number in range(DRIVES)]
        self.given = 0
        for path in self.paths:
            with open(path, "wb") as file:
                file.truncate(DRIVE_BYTES)

    def take(self, count):
        taken = self.paths[self.given : self.given + count]
        self.given += count
        if len(taken) < count:
            raise Failure("more drives are needed")
        return [str(path) for path in taken]


def create(daemon, name, level, drives):
    daemon.ask("array", "create", name, "--level", level, "--drives", *drives)


def fill(daemon, folder, volume):
    """Writes a volume full, so that its tasks have work; leaves it exported over NBD."""
    daemon.ask("volume", "create", volume, "--size", "96M")
    socket = folder / f"{volume.replace('/', '-')}.nbd"
    uri = daemon.ask("export", "create", volume, "--nbd", f"unix:{socket}")["uri"]
    content = folder / "content"
    content.write_bytes(os.urandom(96 * MIB))
    run(["nbdcopy", "--flush", content, uri])
    content.unlink()


def held(daemon, task, begin, array):
    """Begins a task and has it wait; one that was over before is begun again."""
    for _ in range(50):
        begin()
        if daemon.may("task", "pause", task):
            return
        daemon.ask("array", "wait", array, "--timeout", str(LIMIT))
    raise Failure(f"{task} is always over before it can be paused")


def arrays(daemon, drives, folder):
    """Arrays of every level and state, volumes, exports and tasks."""
    create(daemon, "whole", "6", drives.take(4))
    for volume in ("whole/db", "whole/logs", "whole/bare"):
        daemon.ask("volume", "create", volume, "--size", "8M")
    daemon.ask("export", "create", "whole/db", "--nbd", "127.0.0.1:0")
    host = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555"
    daemon.ask("export", "create", "whole/db", "--nvme-tcp", "127.0.0.1:0", "--host", host)
    daemon.ask("export", "create", "whole/logs", "--nvme-tcp", "127.0.0.1:0", "--any-host")

    create(daemon, "scrubbed", "5", drives.take(3))
    fill(daemon, folder, "scrubbed/data")
    scrub = ("array", "scrub", "scrubbed", "--check")
    daemon.ask(*scrub)
    daemon.ask("array", "wait", "scrubbed", "--timeout", str(LIMIT))
    held(daemon, "scrubbed:scrub", lambda: daemon.ask(*scrub), "scrubbed")

    create(daemon, "rebuilt", "1", drives.take(2))
    fill(daemon, folder, "rebuilt/data")
    [spare] = drives.take(1)

    def rebuild():
        daemon.ask("array", "fail", "rebuilt", "--drive", "slot:1")
        daemon.ask("array", "replace", "rebuilt", "--slot", "1", "--with", spare)

    held(daemon, "rebuilt:rebuild", rebuild, "rebuilt")

    create(daemon, "degraded", "10", drives.take(4))
    daemon.ask("array", "fail", "degraded", "--drive", "slot:2")
    create(daemon, "stopped", "0", drives.take(2))
    daemon.ask("volume", "create", "stopped/data", "--size", "8M")
    daemon.ask("array", "stop", "stopped")
    create(daemon, "joined", "jbod", drives.take(2))
    # Foreign content, and a drive that is no more.
    foreign, gone = drives.take(2)
    with open(foreign, "r+b") as file:
        file.seek(1080)
        file.write(b"\x53\xef")
    os.unlink(gone)
    daemon.ask("drive", "list")


def relay(socket):
    """Leads connections to a port of the loopback to a socket; the port."""
    loop = asyncio.new_event_loop()
    # Connections that are open at the end are nothing to report.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)

    async def pump(reader, writer):
        try:
            while part := await reader.read(1 << 16):
                writer.write(part)
                await writer.drain()
            writer.write_eof()
        except OSError:
            writer.close()

    async def serve(reader, writer):
        there, back = await asyncio.open_unix_connection(socket)
        await asyncio.gather(pump(reader, back), pump(there, writer))
        for each in (writer, back):
            each.close()

    server = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0))
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return server.sockets[0].getsockname()[1]


def fetch(address, path):
    """What a GET answers."""
    import requests

    answer = requests.get(address + path, timeout=LIMIT)
    if answer.status_code != 200:
        raise Failure(f"GET {path}: {answer.status_code} {answer.text}")
    return answer.text


def collect(address, standard, schemas):
    """A folder with the standard schemas, and those that the daemon serves itself."""
    shutil.copytree(standard, schemas, ignore=shutil.ignore_patterns("stamp"))
    own = re.findall(r'Uri="(/[^"]+)"', fetch(address, "/redfish/v1/$metadata"))
    for path in own:
        name = path.rstrip("/").rsplit("/", 1)[-1]
        name = name if name.endswith(".xml") else f"{name}_v1.xml"
        (schemas / name).write_text(fetch(address, path))
    return len(own)


def validate(address, schemas, logs):
    """Runs the validator. Its verdicts: (word, resource, what it says) of each that is none of
    PASS, and how many there are of each word."""
    shutil.rmtree(logs, ignore_errors=True)
    tool = pathlib.Path(sys.executable).with_name("rf_service_validator")
    command = [tool, "--rhost", address, "--user", "nobody", "--password", "none"]
    command += ["--authtype", "Basic", "--logdir", logs]
    command += ["--schema_directory", schemas, "--skipschema"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, cwd=logs.parent)
    text = "".join(path.read_text() for path in logs.glob("*/*.log"))
    verdicts, counts, resource = [], collections.Counter(), "?"
    for line in text.splitlines():
        said = line.split(" - ", 3)[-1]
        if match := re.match(r"Validating (\S+)\.\.\.$", said):
            resource = match[1]
        elif match := re.match(r"(PASS|WARN|FAIL|SKIP) - (.*)", said):
            counts[match[1]] += 1
            if match[1] in ("WARN", "FAIL"):
                verdicts.append((match[1], resource, match[2]))
    if not counts["PASS"] or done.returncode != (1 if counts["FAIL"] else 0):
        raise Failure(f"{VALIDATOR} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return verdicts, counts


def judge(verdicts):
    """Prints what the validator found; the number of warnings without a reason."""
    unexplained, seen = 0, collections.Counter()
    for word, resource, said in verdicts:
        why = next((why for what, why in WARNINGS.items() if re.search(what, said)), None)
        if word == "WARN" and why is not None:
            seen[why] += 1
            continue
        unexplained += word == "WARN"
        print(f"{word} {resource}: {said}")
    for why, count in seen.items():
        print(f"{count} warnings are meant: {why}")
    return unexplained


def check(daemon, drives, folder, target):
    """The whole check; the sum, and whether all is well."""
    address = f"http://127.0.0.1:{relay(daemon.socket)}"
    schemas = folder / "schemas"
    own = collect(address, target / "schemas", schemas)
    total, unexplained = collections.Counter(), 0
    for state in ("empty", "full"):
        if state == "full":
            arrays(daemon, drives, folder)
        verdicts, counts = validate(address, schemas, target / f"logs-{state}")
        unexplained += judge(verdicts)
        total += counts
    text = (
        f"{VALIDATOR}: {total['PASS']} right, {total['FAIL']} wrong, {total['WARN']} warnings "
        f"({unexplained} unexplained), {own} schemas of our own"
    )
    return text, not total["FAIL"] and not unexplained


def main():
    program, target = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="palisade-", dir=memory) as folder:
        folder = pathlib.Path(folder)
        drives = Drives(folder)
        daemon = Daemon(program, folder)
        try:
            text, well = check(daemon, drives, folder, target)
            status = daemon.stop()
            if status != 0:
                raise Failure(f"the daemon ended with status {status}")
        except Failure as failure:
            print((folder / "daemon.log").read_text())
            print(failure)
            return 1
        finally:
            daemon.kill()
    print(text)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
