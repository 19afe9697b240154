#!/usr/bin/env python3
"""Checks the Debian package: what is in it, by Debian's tools, and a life of one in a Debian of its
own: installed, run as its unit says, upgraded, removed, purged. Called by script/package.

usage: check.py PACKAGE FOLDER

FOLDER keeps what the next run needs not make again, and what was found. Each check raises Failure
with what is wrong.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "redfish.d")]

from life import Life  # noqa: E402
from programs import run  # noqa: E402
from report import Failure, claim  # noqa: E402
from unit import Unit  # noqa: E402

# What each unit may be exposed to, in tenths. One that mounts for all programs hides nothing from
# its process.
DAEMON, SERVICES = "palisade.service", "palisade-services.service"
EXPOSURE = {DAEMON: "20", SERVICES: "55"}
# How settings begin that give a service mounts of its own (systemd.exec(5)).
OWN_MOUNTS = re.compile(
    r"(Private|Protect|Read(Only|Write)Paths|Inaccessible|(No)?ExecPaths|Bind|TemporaryFile|Mount|"
    r"Root|ProcSubset|DynamicUser|Extension)"
)
# What is in the package beside pages and documents.
FILES = (
    "./usr/bin/palisade",
    "./etc/palisade/palisade.toml",
    f"./lib/systemd/system/{DAEMON}",
    f"./lib/systemd/system/{SERVICES}",
    "./usr/lib/sysusers.d/palisade.conf",
    "./lib/udev/rules.d/60-palisade.rules",
    "./usr/share/bash-completion/completions/palisade",
    "./usr/share/zsh/vendor-completions/_palisade",
    "./usr/share/fish/vendor_completions.d/palisade.fish",
    "./usr/share/man/man1/palisade.1.gz",
    "./usr/share/man/man1/palisade-array-create.1.gz",
    "./usr/share/man/man1/palisade-services.1.gz",
    "./usr/share/doc/palisade/copyright",
    "./usr/share/doc/palisade/changelog.gz",
    "./usr/share/doc/palisade/README.Debian",
    "./usr/share/doc/palisade/NOTICES.gz",
    "./usr/share/doc/palisade/operating.md",
    "./usr/share/doc/palisade/services.md",
)


# Where the daemon names the files that it keeps.
STATE = pathlib.Path(__file__).resolve().parents[2] / "crates/control/src/state.rs"


class Package:
    """A package, and its files."""

    def __init__(self, path, folder):
        self.path = path
        self.files = folder / "files"
        run("dpkg-deb", "--raw-extract", path, self.files)
        folder = self.files / "lib/systemd/system"
        self.units = {name: Unit(folder / name) for name in EXPOSURE}

    def next(self, folder):
        """A package of the next version, whose configuration has another line."""
        files = folder / "next"
        run("cp", "-a", self.files, files)
        control = files / "DEBIAN/control"
        control.write_text(re.sub(r"(?m)^(Version: .*)$", r"\1+1", control.read_text()))
        with (files / "etc/palisade/palisade.toml").open("a") as file:
            file.write("# Of the next version.\n")
        options = ("-Zgzip", "-z1", "--root-owner-group")
        run("dpkg-deb", *options, "--build", files, folder / "next.deb")
        return folder / "next.deb"


def contents(package):
    """everything is there, root's, and the configuration a conffile"""
    listed = run("dpkg-deb", "--contents", package.path).splitlines()
    names = {line.split()[5] for line in listed}
    missing = [name for name in FILES if name not in names]
    claim(not missing, f"not in the package: {missing}")
    foreign = [line for line in listed if line.split()[1] != "root/root"]
    claim(not foreign, f"not root's: {foreign}")
    conffiles = (package.files / "DEBIAN/conffiles").read_text().split()
    claim(conffiles == ["/etc/palisade/palisade.toml"], f"conffiles: {conffiles}")
    size = (package.files / "usr/bin/palisade").stat().st_size
    claim(size < 64 << 20, f"the program has {size} bytes: it was not stripped")


def lintian(package):
    """lintian finds no error"""
    found = run("lintian", "--allow-root", "--fail-on", "error", package.path, may=(0, 2))
    errors = [line for line in found.splitlines() if line.startswith("E:")]
    print("".join(f"  {line}\n" for line in found.splitlines()), end="")
    claim(not errors, f"{errors}")


def pages(package):
    """every manual page is one in which mandoc warns of nothing"""
    folder = package.files / "usr/share/man/man1"
    all_of_them = sorted(folder.iterdir())
    # One at a time: of several, mandoc takes only the first for compressed.
    for page in all_of_them:
        found = run("mandoc", "-Tlint", "-Wwarning", page, may=range(8))
        claim(not found, found[:2000])
    print(f"  {len(all_of_them)} pages")


def verify(package):
    """systemd takes the units as they are, and starts them again however often they failed"""
    for name, unit in package.units.items():
        limit = unit.words("StartLimitIntervalSec")
        claim(limit == ["0"], f"{name} is given up after some starts in {limit} s")
    with tempfile.TemporaryDirectory() as place:
        program = package.files / "usr/bin/palisade"
        # Each finds the other beside it.
        own = [pathlib.Path(place) / name for name in package.units]
        for path, unit in zip(own, package.units.values(), strict=True):
            path.write_text(unit.text.replace("/usr/bin/palisade", str(program)))
        found = run("systemd-analyze", "verify", "--man=no", *own)
        claim(not found, found)


def security(package):
    """the daemon's exposure is 2.0 at most, and that of who mounts, and runs servers, 5.5"""
    for name, exposure in EXPOSURE.items():
        found = run(
            "systemd-analyze",
            "security",
            "--offline=true",
            f"--threshold={exposure}",
            "--no-pager",
            package.files / "lib/systemd/system" / name,
            may=(0, 1),
            status=True,
        )
        level = re.search(r"exposure level .*: ([\d.]+)", found[1])
        print(f"  exposure level of {name} {level and level[1]}")
        claim(found[0] == 0, found[1][-2000:])


def mounts(package):
    """what volumes are mounted over is seen by all programs, and stays when who mounted it stops"""
    unit = package.units[SERVICES]
    own = [name for name in unit.settings if OWN_MOUNTS.match(name)]
    claim(not own, f"settings that give it mounts of its own: {own}")
    claim(unit.one("RuntimeDirectoryPreserve") == "yes", "its directory goes with it")
    claim(unit.one("RuntimeDirectoryMode") == "0700", "others get at what is below devices")
    claim("User" not in unit.settings, "it is not root")
    bound = {"Requires", "Requisite", "BindsTo", "PartOf"} & set(unit.settings)
    claim(not bound, f"it does not go on when the daemon stops: {bound}")


def scripts(package):
    """what runs at installation is plain shell, and a purge knows every file of the daemon"""
    for name in ("preinst", "postinst", "prerm", "postrm"):
        run("sh", "-n", package.files / "DEBIAN" / name)
    run("bash", "-n", package.files / "usr/share/bash-completion/completions/palisade")
    # Who makes devices is started by what the daemon's unit wants, and ends after it.
    for name, wanted in (
        ("postinst", [("start", DAEMON)]),
        ("prerm", [("stop", DAEMON), ("stop", SERVICES)]),
    ):
        text = (package.files / "DEBIAN" / name).read_text()
        invoked = re.findall(r"deb-systemd-invoke (\S+) (\S+)", text)
        # Not also by debhelper, which would start it at each upgrade.
        claim(invoked == wanted, f"{name} invokes {invoked}")
    own = re.search(r"const FILES: .*?\];", STATE.read_text(), re.DOTALL)[0]
    names = re.findall(r"^    ([A-Z_]+),$", own, re.MULTILINE)
    files = [re.search(rf'const {name}: &str = "(.*)"', STATE.read_text())[1] for name in names]
    purge = (package.files / "DEBIAN/postrm").read_text()
    unknown = [name for name in files if not re.search(rf"\s{re.escape(name)}[\s;]", purge)]
    claim(len(files) > 10 and not unknown, f"a purge leaves {unknown} of {files}")


STILL = (contents, lintian, pages, verify, security, mounts, scripts)


def checked(name, check):
    """Makes a check; whether all is well."""
    begun = time.monotonic()
    try:
        check()
    except (Failure, OSError, subprocess.SubprocessError) as wrong:
        print(f"FAILED {name}: {wrong}")
        return False
    print(f"ok {name} ({time.monotonic() - begun:.1f} s)", flush=True)
    return True


def main():
    """Checks; the status."""
    path, folder = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    place = pathlib.Path(tempfile.mkdtemp(prefix="palisade-package-"))
    passed = failed = 0
    try:
        package = Package(path, place)
        for check in STILL:
            well = checked(check.__doc__, lambda check=check: check(package))
            passed, failed = passed + well, failed + (not well)
        units = (package.units[DAEMON], package.units[SERVICES])
        life = Life(units, (path, package.next(place)), place, folder)
        for step in life.steps():
            well = checked(step.__doc__, step)
            passed, failed = passed + well, failed + (not well)
            if not well:
                break
    finally:
        shutil.rmtree(place, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    if os.geteuid() != 0:
        print("a Debian of its own takes root")
        sys.exit(77)
    sys.exit(main())
