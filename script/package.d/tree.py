"""A Debian in a folder, made by debootstrap from where this machine's own packages come from."""

import contextlib
import os
import pathlib
import shlex
import subprocess

from programs import run
from report import Failure, claim

# What the package depends on beside what is always there: without systemd, users are made by this.
INCLUDED = "systemd-standalone-sysusers"
# Enters the folder named first in a mount namespace of its own, which takes the mounts with it.
ENTER = """
mount -t proc proc "$0/proc" && mount --rbind /sys "$0/sys" && mount --rbind /dev "$0/dev" &&
exec "$@"
"""


def release():
    """This machine's release, by /etc/os-release."""
    lines = pathlib.Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    values = dict(line.partition("=")[::2] for line in lines)
    return shlex.split(values.get("VERSION_CODENAME", ""))[0]


def mirror(codename):
    """Where this machine gets the release's packages from."""
    form = "$(CODENAME) $(COMPONENT) $(REPO_URI)"
    listed = run("apt-get", "indextargets", "--format", form, "Created-By: Packages")
    for line in listed.splitlines():
        own, component, uri = line.split()
        if (own, component) == (codename, "main"):
            return uri
    raise Failure(f"apt has no source of {codename} main")


def base(folder):
    """The folder of a Debian that is copied for each run; made where it is not there."""
    codename = release()
    arch = run("dpkg", "--print-architecture").strip()
    own = folder / f"base-{codename}-{arch}"
    if not own.exists():
        new = own.with_suffix(".new")
        run("rm", "-rf", new)
        words = ("--variant=minbase", f"--include={INCLUDED}", codename, new, mirror(codename))
        run("debootstrap", *words)
        # Lists and packages are not needed again.
        run("find", new / "var/cache/apt", new / "var/lib/apt/lists", "-type", "f", "-delete")
        new.rename(own)
    return own


class Tree:
    """The Debian of this run."""

    def __init__(self, place, folder):
        self.path = place / "debian"
        run("cp", "-a", "--reflink=auto", base(folder), self.path)

    def names(self):
        """Everything that is in it."""
        return {
            str(pathlib.Path(folder, name).relative_to(self.path))
            for folder, folders, files in os.walk(self.path)
            for name in folders + files
        }

    def words(self, words):
        """What runs a program in it."""
        inside = ["chroot", str(self.path), *(str(word) for word in words)]
        return ["unshare", "--mount", "sh", "-c", ENTER, str(self.path), *inside]

    def run(self, *words, **more):
        """Runs a program in it, which must succeed."""
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"}
        return run(*self.words(words), env=environment, **more)

    def start(self, before, words, environment, log, umask):
        """Starts a program in it, by another outside."""
        with log.open("ab") as out:
            return subprocess.Popen(
                [*(str(word) for word in before), *self.words(words)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=environment,
                umask=umask,
                cwd="/",
            )

    def install(self, package):
        """Installs a package as people do who are not asked: a changed configuration stays."""
        inside = self.path / "tmp" / package.name
        run("cp", package, inside)
        options = ("--force-confdef", "--force-confold", "--install")
        said = self.run("dpkg", *options, f"/tmp/{package.name}")
        with contextlib.suppress(FileNotFoundError):
            inside.unlink()
        claim("warning" not in said.lower(), said)

    def number(self, database, name):
        """The number of a user or a group."""
        return int(self.run("getent", database, name).split(":")[2])
