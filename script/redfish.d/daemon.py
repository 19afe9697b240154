"""A daemon on drives that are files, arrays of every level and state, and where tools find them."""

import dataclasses
import json
import os
import pathlib
import shutil
import socket
import subprocess
import time
import urllib.parse

from report import Failure

MIB = 1 << 20
DRIVE_BYTES = 128 * MIB
DRIVES = 28
# How long anything may take.
LIMIT = 120


def run(command, limit=LIMIT, **more):
    """What a command prints; it must succeed within so many seconds."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit, **more)
    if done.returncode != 0:
        raise Failure(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}")
    return done.stdout


def until(what, ask, seconds=LIMIT):
    """Waits for what is asked for; it."""
    end = time.monotonic() + seconds
    while True:
        found = ask()
        if found:
            return found
        if time.monotonic() > end:
            raise Failure(f"not within {seconds} s: {what}")
        time.sleep(0.1)


def free_port():
    """A port of the loopback that nobody has."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


class Daemon:
    """A daemon on drives that are files of a folder, with more lines of configuration."""

    def __init__(self, program, folder, *lines):
        self.program, self.folder = program, folder
        self.socket = folder / "socket"
        config = folder / "palisade.toml"
        own = (
            f"socket = {json.dumps(str(self.socket))}",
            "cores = 1",
            f"drives = [{json.dumps(str(folder / 'drive-*.img'))}]",
        )
        config.write_text("\n".join((*own, *lines)) + "\n")
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


@dataclasses.dataclass
class Place:
    """What a check is given."""

    daemon: Daemon
    drives: Drives
    # For what a check keeps while it runs, and for logs that outlive it.
    folder: pathlib.Path
    target: pathlib.Path
    # The daemon's socket by TCP, and the port of its HTTPS.
    local: str
    port: int
    # Whether nothing that a tool sends can leave this machine.
    is_alone: bool
    # An Administrator, once there is one.
    user: str = ""
    password: str = ""

    @property
    def unix(self):
        """The daemon's socket, as those write it who speak HTTP on it."""
        return "http+unix://" + urllib.parse.quote(str(self.daemon.socket), safe="")

    @property
    def https(self):
        """The daemon on the network."""
        return f"https://127.0.0.1:{self.port}"

    @property
    def certificate(self):
        """The file with the certificate that HTTPS shows."""
        return self.folder / "https.pem"

    def logs(self, name):
        """An empty folder for a check's logs."""
        folder = self.target / f"logs-{name}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder
