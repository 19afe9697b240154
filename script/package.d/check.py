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

# What the unit may be exposed to, in tenths.
EXPOSURE = "20"
# What is in the package beside pages and documents.
FILES = (
    "./usr/bin/palisade",
    "./etc/palisade/palisade.toml",
    "./lib/systemd/system/palisade.service",
    "./usr/lib/sysusers.d/palisade.conf",
    "./lib/udev/rules.d/60-palisade.rules",
    "./usr/share/bash-completion/completions/palisade",
    "./usr/share/zsh/vendor-completions/_palisade",
    "./usr/share/fish/vendor_completions.d/palisade.fish",
    "./usr/share/man/man1/palisade.1.gz",
    "./usr/share/man/man1/palisade-array-create.1.gz",
    "./usr/share/doc/palisade/copyright",
    "./usr/share/doc/palisade/changelog.gz",
    "./usr/share/doc/palisade/README.Debian",
    "./usr/share/doc/palisade/NOTICES.gz",
    "./usr/share/doc/palisade/operating.md",
)


# Where the daemon names the files that it keeps.
STATE = pathlib.Path(__file__).resolve().parents[2] / "crates/control/src/state.rs"


class Package:
    """A package, and its files."""

    def __init__(self, path, folder):
        self.path = path
        self.files = folder / "files"
        run("dpkg-deb", "--raw-extract", path, self.files)
        self.unit = Unit(self.files / "lib/systemd/system/palisade.service")

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
    """systemd takes the unit as it is, and starts it again however often it failed"""
    limit = package.unit.words("StartLimitIntervalSec")
    claim(limit == ["0"], f"given up after some starts in {limit} s")
    with tempfile.TemporaryDirectory() as place:
        own = pathlib.Path(place) / "palisade.service"
        program = package.files / "usr/bin/palisade"
        text = package.unit.text.replace("/usr/bin/palisade", str(program))
        own.write_text(text)
        found = run("systemd-analyze", "verify", "--man=no", own)
        claim(not found, found)


def security(package):
    """the unit's exposure is 2.0 at most"""
    found = run(
        "systemd-analyze",
        "security",
        "--offline=true",
        f"--threshold={EXPOSURE}",
        "--no-pager",
        package.files / "lib/systemd/system/palisade.service",
        may=(0, 1),
        status=True,
    )
    level = re.search(r"exposure level .*: ([\d.]+)", found[1])
    print(f"  exposure level {level and level[1]}")
    claim(found[0] == 0, found[1][-2000:])


def scripts(package):
    """what runs at installation is plain shell, and a purge knows every file of the daemon"""
    for name in ("preinst", "postinst", "prerm", "postrm"):
        run("sh", "-n", package.files / "DEBIAN" / name)
    run("bash", "-n", package.files / "usr/share/bash-completion/completions/palisade")
    for name, action in (("postinst", "start"), ("prerm", "stop")):
        text = (package.files / "DEBIAN" / name).read_text()
        invoked = re.findall(r"deb-systemd-invoke (\S+) (\S+)", text)
        # Not also by debhelper, which would start it at each upgrade.
        claim(invoked == [(action, "palisade.service")], f"{name} invokes {invoked}")
    own = re.search(r"const FILES: .*?\];", STATE.read_text(), re.DOTALL)[0]
    names = re.findall(r"^    ([A-Z_]+),$", own, re.MULTILINE)
    files = [re.search(rf'const {name}: &str = "(.*)"', STATE.read_text())[1] for name in names]
    purge = (package.files / "DEBIAN/postrm").read_text()
    unknown = [name for name in files if not re.search(rf"\s{re.escape(name)}[\s;]", purge)]
    claim(len(files) > 10 and not unknown, f"a purge leaves {unknown} of {files}")


STILL = (contents, lintian, pages, verify, security, scripts)


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
        life = Life(package.unit, path, package.next(place), place, folder)
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
