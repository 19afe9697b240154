"""A life of the package in a Debian of its own: a folder, entered by chroot.

Steps, each of which needs those before it: installed → run as its unit says, under its user, with
a manager that stands in for systemd: it takes what the daemon says on `NOTIFY_SOCKET` → with
`palisade services` beside it, as the unit of that says → upgraded while it runs → removed →
installed again → removed → purged. Its drives are files; they are compared at the end.

Programs stand in for systemd's and udev's, which the package's scripts call: each notes how it was
called, so that it is known when the daemon would be started and stopped.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time

from programs import run
from report import Failure, claim
from tree import Tree

# Seconds that anything of the daemon may take.
PATIENCE = 60
CONFIG = "etc/palisade/palisade.toml"
DRIVES, DRIVE_BYTES = 4, 64 << 20
# What stands in for programs that are not there, and where it notes its calls.
STAND_INS = ("deb-systemd-invoke", "systemctl", "udevadm")
NOTES = "tmp/called"
STAND_IN = f"""#!/bin/sh
echo "${{0##*/}} $*" >>/{NOTES}
"""
# The first is the manager's. The second, refused, leaves the socket to the daemon's own group,
# which is the one that it is to have.
REFUSED = {"execve", "fchownat"}
# What makes block devices of files.
KERNEL = ("/dev/fuse", "/dev/loop-control")
# What stays of a package that was purged: users, and what dpkg keeps of its own.
STAYS = re.compile(
    r"^(etc/(passwd|group|shadow|gshadow|subuid|subgid)-?|etc/\.pwd\.lock|etc/ld\.so\.cache|"
    r"var/(lib/dpkg|log|cache|lib/systemd)(/.*)?|var/lib/palisade(/drive.img)?|"
    r"(srv|run|tmp)(/.*)?)$"
)


def digest(path):
    """What a file holds, in short."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


class Manager:
    """What the daemon says to a service manager."""

    def __init__(self, path):
        path.unlink(missing_ok=True)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        path.chmod(0o666)
        self.socket.settimeout(PATIENCE)
        self.said = []

    def wait(self, word):
        """Waits until it says this from now on."""
        while True:
            try:
                lines = self.socket.recv(4096).decode().splitlines()
            except TimeoutError as error:
                raise Failure(f"it did not say {word}, but {self.said}") from error
            self.said += lines
            if word in lines:
                return


def trace(calls):
    """The words that write down a program's system calls."""
    return ("strace", "-f", "-qq", "-e", "signal=none", "-o", calls)


def within(unit, calls):
    """System calls, and kinds of sockets, must be those that a unit allows."""
    text = calls.read_text(errors="replace")
    begin = text.find('execve("/usr/bin/palisade"')
    claim(begin >= 0, "it was not traced")
    made = set(re.findall(r"^\d+ +(\w+)\(", text[begin:], re.MULTILINE))
    refused = made - unit.allowed() - REFUSED
    claim(len(made) > 30 and not refused, f"{len(made)} calls; not allowed: {sorted(refused)}")
    kinds = set(re.findall(r"socket\((AF_\w+)", text[begin:]))
    foreign = kinds - set(unit.words("RestrictAddressFamilies"))
    claim(kinds and not foreign, f"sockets: {kinds}")
    both = re.findall(r"^\d+ +(?:mmap|mprotect)\(.*WRITE\|PROT_EXEC.*$", text[begin:], re.M)
    claim(not both, f"memory that is written and executed: {both[:3]}")
    print(f"  {len(made)} calls")


class Service:
    """The daemon, run as the unit says."""

    def __init__(self, unit, tree, log, before=()):
        self.unit, self.tree, self.log = unit, tree, log
        self.manager = Manager(tree.path / "run/notify")
        for name, place in (("RuntimeDirectory", "run"), ("StateDirectory", "var/lib")):
            folder = pathlib.Path("/", place, unit.one(name))
            mode = unit.one(f"{name}Mode")
            user = unit.one("User")
            tree.run("install", "-d", "-o", user, "-g", unit.one("Group"), "-m", mode, folder)
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "NOTIFY_SOCKET": "/run/notify",
            "WATCHDOG_USEC": str(unit.seconds("WatchdogSec") * 1_000_000),
            "STATE_DIRECTORY": f"/var/lib/{unit.one('StateDirectory')}",
        }
        words = [*unit.setpriv(), *unit.one("ExecStart").split()]
        self.process = tree.start([*before], words, environment, log, int(unit.one("UMask"), 8))

    def pid(self, command="serve"):
        """The daemon's process: the one that has its program and command, of those below the
        first.
        """
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):
                int(entry.name)
                words = (entry / "cmdline").read_bytes().split(b"\0")
                root = os.readlink(entry / "root")
                is_own = words[0].endswith(b"/palisade") and words[1] == command.encode()
                if is_own and pathlib.Path(root) == self.tree.path:
                    found.append(int(entry.name))
        claim(len(found) == 1, f"processes of {command}: {found}")
        return found[0]

    def reload(self):
        """Does what `systemctl reload` does."""
        for command in self.unit.settings["ExecReload"]:
            words = command.replace("$MAINPID", str(self.pid())).split()
            if words[0] == "/bin/kill":
                os.kill(self.pid(), signal.Signals[f"SIG{words[1].lstrip('-')}"])
            else:
                self.tree.run(*self.unit.setpriv(), *words)
        self.manager.wait("RELOADING=1")
        self.manager.wait("READY=1")

    def stop(self):
        """Stops it as systemd does; it must end well."""
        os.kill(self.pid(), signal.SIGTERM)
        self.manager.wait("STOPPING=1")
        status = self.process.wait(PATIENCE)
        claim(status == 0, f"it ended with {status}: {self.log.read_text()[-2000:]}")

    def kill(self):
        """Ends it, however it is."""
        if self.process.poll() is None:
            with contextlib.suppress(Failure, OSError):
                os.kill(self.pid(), signal.SIGKILL)
            self.process.kill()
            self.process.wait()


class Life:
    """The life; see above."""

    def __init__(self, units, packages, place, folder):
        self.unit, self.devices_unit = units
        self.old, self.new = packages
        self.place, self.folder = place, folder
        self.tree = None
        self.service = None
        self.before = set()

    def steps(self):
        """Each, in order."""
        try:
            yield self.made
            yield self.installed
            yield self.told
            yield self.works
            yield self.calls
            yield self.devices
            yield self.upgraded
            yield self.removed
            yield self.again
            yield self.purged
        finally:
            if self.service:
                self.service.kill()
            for log in self.place.glob("*.log"):
                shutil.copy(log, self.folder)

    def made(self):
        """a Debian is there"""
        self.tree = Tree(self.place, self.folder)
        for name in STAND_INS:
            program = self.tree.path / "usr/sbin" / name
            program.write_text(STAND_IN)
            program.chmod(0o755)
        # They are asked where the real ones would run.
        (self.tree.path / "run/systemd/system").mkdir(parents=True)
        (self.tree.path / "run/udev").mkdir()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as control:
            control.bind(str(self.tree.path / "run/udev/control"))
        self.before = self.tree.names()

    def called(self):
        """What the package's scripts called since the last time."""
        notes = self.tree.path / NOTES
        text = notes.read_text() if notes.exists() else ""
        notes.unlink(missing_ok=True)
        return text.splitlines()

    def started(self):
        """It must have been started, as systemd knows it, with its devices as udev's rules say."""
        called = self.called()
        wanted = (
            "udevadm control --reload",
            "udevadm trigger ",
            "udevadm settle",
            "systemctl --system daemon-reload",
            "deb-systemd-invoke start palisade.service",
        )
        places = [[at for at, line in enumerate(called) if line.startswith(w)] for w in wanted]
        one_each = [at for own in places for at in own]
        claim(len(one_each) == len(wanted) and one_each == sorted(one_each), f"called: {called}")

    def invoked(self):
        """What was to be started or stopped."""
        called = self.called()
        invoked = [line for line in called if line.startswith("deb-systemd-invoke ")]
        others = ("start", "stop", "restart", "try-restart", "reload-or-restart")
        asked = [line for line in called if line.startswith("systemctl ")]
        return invoked + [line for line in asked if not set(others).isdisjoint(line.split())]

    def installed(self):
        """it is installed, with its user, enabled, and started once its devices are its own"""
        self.tree.install(self.old)
        self.started()
        user = self.tree.run("getent", "passwd", self.unit.one("User")).strip().split(":")
        claim(user[5:] == ["/var/lib/palisade", "/usr/sbin/nologin"], f"{user}")
        wanted = self.tree.path / "etc/systemd/system"
        for link in (
            "multi-user.target.wants/palisade.service",
            "palisade.service.wants/palisade-services.service",
        ):
            claim((wanted / link).is_symlink(), f"not enabled: {link}")
        found = (self.tree.path / CONFIG).stat()
        claim((found.st_uid, found.st_mode & 0o777) == (0, 0o644), f"{CONFIG}: {found}")

    def told(self):
        """its configuration is well, and so is each line that a person may take the # from"""
        own = self.tree.path / CONFIG
        self.tree.run("palisade", "check-config")
        lines = [line for line in own.read_text().splitlines() if line != "drives = []"]
        every = [re.sub(r"^#(?=[a-z\[])", "", line) for line in lines]
        claim(sum(a != b for a, b in zip(lines, every, strict=True)) > 30, "few lines have a key")
        (self.tree.path / "tmp/every.toml").write_text("\n".join(every))
        self.tree.run("palisade", "check-config", "/tmp/every.toml")

    def palisade(self, *words):
        """Runs a command as root; its object."""
        return json.loads(self.tree.run("palisade", *words, "--json"))

    def image(self):
        """What the volume is to hold."""
        return self.place / "image"

    def uri(self):
        """Where clients outside of the tree find the volume."""
        return f"nbd+unix:///tank%2Fdb?socket={self.tree.path}/run/palisade/db.nbd"

    def compare(self):
        """Reads the volume as a client does; it must hold what was written."""
        read = self.place / "read"
        run("nbdcopy", self.uri(), read)
        claim(digest(read) == digest(self.image()), "it differs")

    def works(self):
        """it runs under its user, says so, takes a configuration, and serves a volume"""
        drives = self.tree.path / "srv/drives"
        drives.mkdir()
        user = self.tree.number("passwd", self.unit.one("User"))
        for number in range(DRIVES):
            path = drives / f"{number}.img"
            with path.open("wb") as file:
                file.truncate(DRIVE_BYTES)
            os.chown(path, user, -1)
        calls = trace(self.place / "calls.txt")
        self.service = Service(self.unit, self.tree, self.place / "daemon.log", calls)
        _, missing = self.unit.capabilities("AmbientCapabilities")
        if missing:
            print(f"  this machine can't hand on {' '.join(missing)}")
        for word in ("WATCHDOG=1", "READY=1"):
            self.service.manager.wait(word)
        socket_file = (self.tree.path / "run/palisade/palisade.sock").stat()
        found = (socket_file.st_uid, socket_file.st_gid, socket_file.st_mode & 0o777)
        group = self.tree.number("group", self.unit.one("Group"))
        claim(found == (user, group, 0o660), f"the socket is {found}")
        config = self.tree.path / CONFIG
        text = config.read_text().replace("drives = []", 'drives = ["/srv/drives/*.img"]', 1)
        config.write_text(text)
        self.service.reload()
        names = [f"/srv/drives/{number}.img" for number in range(DRIVES)]
        self.palisade("array", "create", "tank", "--level", "5", "--drives", *names)
        self.palisade("volume", "create", "tank/db", "--size", "16M")
        self.palisade("export", "create", "tank/db", "--nbd", "unix:/run/palisade/db.nbd")
        self.image().write_bytes(os.urandom(16 << 20))
        run("nbdcopy", "--flush", self.image(), self.uri())
        self.compare()
        audit = (self.tree.path / "var/lib/palisade").stat()
        claim((audit.st_uid, audit.st_mode & 0o777) == (user, 0o700), f"{audit}")
        self.others(user, group)
        self.service.stop()

    def others(self, user, group):
        """Members of the group may use it, others not."""
        nobody = ("setpriv", "--reuid=65534", "--clear-groups")
        self.tree.run(*nobody, f"--regid={group}", "palisade", "status")
        status, said = self.tree.run(
            *nobody, "--regid=65534", "palisade", "status", may=range(256), status=True
        )
        claim(status not in (0, 139), f"nobody may use it: {said}")

    def calls(self):
        """its system calls, and kinds of sockets, are those that the unit allows"""
        within(self.unit, self.place / "calls.txt")

    def devices(self):
        """a volume is a block device, made by what the other unit allows, and is taken away"""
        if not all(pathlib.Path(path).exists() for path in KERNEL):
            print(f"  not tried: this machine lacks one of {' '.join(KERNEL)}")
            return
        self.service = Service(self.unit, self.tree, self.place / "daemon.log")
        self.service.manager.wait("READY=1")
        unit, calls = self.devices_unit, self.place / "services-calls.txt"
        log = self.place / "services.log"
        words = [*unit.setpriv(), *unit.one("ExecStart").split()]
        path = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        made = self.tree.start(trace(calls), words, path, log, int(unit.one("UMask"), 8))
        try:
            due = time.monotonic() + PATIENCE
            while "ready" not in log.read_text():
                claim(time.monotonic() < due and made.poll() is None, log.read_text())
                time.sleep(0.1)
            self.device()
            os.kill(self.service.pid("services"), signal.SIGTERM)
            made.wait(PATIENCE)
        finally:
            if made.poll() is None:
                with contextlib.suppress(Failure, OSError):
                    os.kill(self.service.pid("services"), signal.SIGKILL)
                made.kill()
                made.wait()
        self.service.stop()
        within(unit, calls)

    def device(self):
        """What is written to a device must be read from it; it goes with its export."""
        # Links to devices are the machine's, which may have another daemon.
        volume = f"tank/{self.place.name}"
        self.palisade("volume", "create", volume, "--size", "8M")
        export = self.palisade("export", "create", volume, "--local")
        device = pathlib.Path(export["device"])
        claim(pathlib.Path(export["link"]).resolve() == device, f"{export}")
        image, read = self.place / "device-image", self.place / "device-read"
        image.write_bytes(os.urandom(8 << 20))
        options = ("bs=1M", "status=none")
        run("dd", f"if={image}", f"of={device}", "oflag=direct", "conv=fsync", *options)
        run("dd", f"if={device}", f"of={read}", "iflag=direct", *options)
        claim(digest(read) == digest(image), "the device differs")
        self.palisade("export", "delete", export["id"])
        claim(not os.path.lexists(export["link"]), "the link stays")
        self.palisade("volume", "delete", volume, "--yes")

    def upgraded(self):
        """an upgrade starts and stops nothing, and keeps the configuration"""
        self.service = Service(self.unit, self.tree, self.place / "daemon.log")
        self.service.manager.wait("READY=1")
        daemon = self.service.pid()
        config = self.tree.path / CONFIG
        text = config.read_text()
        self.called()
        self.tree.install(self.new)
        invoked = self.invoked()
        claim(not invoked, f"an upgrade started or stopped something: {invoked}")
        claim(config.read_text() == text, "the configuration was changed")
        claim(config.with_name("palisade.toml.dpkg-dist").exists(), "the new one is not there")
        claim(self.service.pid() == daemon, "the daemon was stopped")
        self.compare()
        self.service.stop()
        self.service = Service(self.unit, self.tree, self.place / "daemon.log")
        self.service.manager.wait("READY=1")
        self.compare()
        self.service.stop()

    def digests(self):
        """What the drives hold."""
        return [digest(file) for file in sorted((self.tree.path / "srv/drives").iterdir())]

    def removed(self):
        """removed, it is stopped, and leaves its configuration, its state and the drives"""
        drives = self.digests()
        self.called()
        self.tree.run("dpkg", "--remove", "palisade")
        invoked = self.invoked()
        # The daemon first: who made its devices takes them away then.
        units = ("palisade.service", "palisade-services.service")
        claim(invoked == [f"deb-systemd-invoke stop {unit}" for unit in units], f"{invoked}")
        claim(not (self.tree.path / "usr/bin/palisade").exists(), "the program is there")
        for name in (CONFIG, "var/lib/palisade"):
            claim((self.tree.path / name).exists(), f"{name} is gone")
        claim(self.digests() == drives, "drives were changed")

    def again(self):
        """installed again, it is started as the first time, and removed again"""
        self.called()
        self.tree.install(self.new)
        self.started()
        self.tree.install(self.new)
        invoked = self.invoked()
        claim(not invoked, f"the same version started or stopped something: {invoked}")
        self.tree.run("dpkg", "--remove", "palisade")

    def purged(self):
        """purged, it leaves its user, the drives and foreign files, and nothing else"""
        drives = self.digests()
        # The unit may write there: people may have put a drive there.
        strange = self.tree.path / "var/lib/palisade/drive.img"
        strange.touch()
        running = self.tree.path / "run/palisade"
        running.mkdir(exist_ok=True)
        for name in ("palisade.sock", "palisade.services", "foreign"):
            (running / name).touch()
        folder = self.tree.path / "run/palisade-services"
        folder.mkdir(exist_ok=True)
        (folder / "1.made").touch()
        self.tree.run("dpkg", "--purge", "palisade")
        claim(self.digests() == drives and len(drives) == DRIVES, "drives were changed")
        left = {name for name in self.tree.names() - self.before if not STAYS.match(name)}
        claim(not left, f"left: {sorted(left)}")
        own = [path.name for path in strange.parent.iterdir()]
        claim(own == ["drive.img"], f"in its state directory: {own}")
        left = [path.name for path in running.iterdir()]
        claim(left == ["foreign"], f"in its runtime directory: {left}")
        claim(not folder.exists(), f"{folder} stays")
        listed = subprocess.run(
            ["chroot", self.tree.path, "dpkg", "-s", "palisade"], capture_output=True, check=False
        )
        claim(listed.returncode == 1, "dpkg knows it")
