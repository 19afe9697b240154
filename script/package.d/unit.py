"""A unit of systemd, as far as one has to know it to run its service without systemd."""

import re
import subprocess

# Where the kernel says what this process may hand on.
STATUS = "/proc/self/status"
# Capabilities by their numbers (linux/capability.h), of those that units here name.
NUMBERS = {
    "CAP_CHOWN": 0,
    "CAP_DAC_OVERRIDE": 1,
    "CAP_DAC_READ_SEARCH": 2,
    "CAP_FOWNER": 3,
    "CAP_FSETID": 4,
    "CAP_KILL": 5,
    "CAP_SETGID": 6,
    "CAP_SETUID": 7,
    "CAP_NET_BIND_SERVICE": 10,
    "CAP_IPC_LOCK": 14,
    "CAP_SYS_PTRACE": 19,
    "CAP_SYS_ADMIN": 21,
    "CAP_SYS_RESOURCE": 24,
    "CAP_LEASE": 28,
}


class Unit:
    """A unit's settings."""

    def __init__(self, path):
        self.text = path.read_text()
        self.settings = {}
        for line in self.text.splitlines():
            name, is_set, value = line.partition("=")
            if is_set and not name.startswith("#"):
                self.settings.setdefault(name, []).append(value)

    def one(self, name):
        """A setting's last value."""
        return self.settings[name][-1]

    def words(self, name):
        """All words of a setting."""
        return " ".join(self.settings.get(name, [])).split()

    def seconds(self, name):
        """A span of time, said in seconds."""
        return int(self.one(name).removesuffix("s"))

    def capabilities(self, name):
        """The capabilities of a setting that this process may hand on, and others."""
        with open(STATUS, encoding="ascii") as file:
            bounding = int(re.search(r"CapBnd:\s*(\w+)", file.read())[1], 16)
        named = self.words(name)
        has = [own for own in named if bounding >> NUMBERS[own] & 1]
        return has, [own for own in named if own not in has]

    def setpriv(self):
        """The words that run a program as the unit's user, else as root, with its rights and no
        others.
        """

        def listed(name):
            return "-all" + "".join(
                f",+{own.removeprefix('CAP_').lower()}" for own in self.capabilities(name)[0]
            )

        user = []
        if "User" in self.settings:
            groups = [self.one("Group"), *self.words("SupplementaryGroups")]
            user = [
                f"--reuid={self.one('User')}",
                f"--regid={self.one('Group')}",
                f"--groups={','.join(groups)}",
            ]
        ambient = listed("AmbientCapabilities")
        return [
            "setpriv",
            *user,
            f"--inh-caps={ambient}",
            f"--ambient-caps={ambient}",
            f"--bounding-set={listed('CapabilityBoundingSet')}",
            "--no-new-privs",
        ]

    def allowed(self):
        """The system calls that its filter allows."""
        listed = subprocess.run(
            ["systemd-analyze", "syscall-filter"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            check=True,
        )
        groups, current = {}, None
        for line in listed.stdout.splitlines():
            word = line.split("#")[0].strip()
            if line.startswith("@"):
                current = groups.setdefault(word, [])
            elif word and current is not None:
                current.append(word)

        def members(word):
            if not word.startswith("@"):
                return {word}
            return set().union(*(members(own) for own in groups[word]))

        # The manager itself allows these, whatever the filter says.
        allowed = members("@default")
        for value in self.settings["SystemCallFilter"]:
            named = set().union(*(members(word) for word in value.removeprefix("~").split()))
            allowed = allowed - named if value.startswith("~") else allowed | named
        return allowed
