"""Tests of script/guest without a machine: wrong use, and script/guest.d/monitor.py."""

import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
GUEST = os.path.join(HERE, "guest")
MONITOR = os.path.join(HERE, "guest.d", "monitor.py")
# No folder with compiled files beside what goes into the guest.
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(MONITOR))
import monitor  # noqa: E402 # beside this

# A machine that has only a monitor: it says what it was sent, and answers by the tables. Its guest
# says what SAID has, and then what it was told, until it was told as often as TOLD says.
MACHINE = r"""
import json, socket, sys
fd = int(sys.argv[sys.argv.index("-chardev") + 1].split("fd=")[1])
assert sys.argv[sys.argv.index("-mon") + 1] == "monitor,mode=control"
monitor = socket.socket(fileno=fd)
lines = monitor.makefile("r")
say = lambda value: monitor.sendall(json.dumps(value).encode() + b"\n")
say({"QMP": {"version": {}}})
assert json.loads(lines.readline()) == {"execute": "qmp_capabilities"}
say({"return": {}})
assert json.loads(lines.readline())["execute"] == "human-monitor-command"
say({"timestamp": {}, "event": "RESUME"})
say({"return": "  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\r\n"
     "  TCP[HOST_FORWARD]  14       127.0.0.1 43001       10.0.2.15  8443     0     0\r\n"
     "  TCP[ESTABLISHED]   15       127.0.0.1 43001       10.0.2.15  9999     0     0\r\n"})
for part in SAID:
    sys.stdout.write(part)
    sys.stdout.flush()
for _ in range(ASKED):
    asked = json.loads(lines.readline())
    say({"timestamp": {}, "event": "DEVICE_DELETED", "data": {"device": "nvme-1"}})
    if asked["execute"] == "device_del":
        say({"return": {}})
    else:
        say({"error": {"class": "CommandNotFound", "desc": "no such\ncommand"}})
for _ in range(TOLD):
    sys.stdout.write("told " + sys.stdin.readline())
sys.exit(STATUS)
"""


def machine(said, asked=0, told=0, status=0, typed=b""):
    """What comes out of such a machine, and its status."""
    before = f"SAID, ASKED, TOLD, STATUS = {said!r}, {asked}, {told}, {status}\n"
    command = [sys.executable, MONITOR, sys.executable, "-c", before + MACHINE]
    done = subprocess.run(command, input=typed, stdout=subprocess.PIPE, timeout=60, check=False)
    return done.stdout.decode(), done.returncode


class Monitor(unittest.TestCase):
    """The guest's events, and what it prints besides."""

    FORWARD = "forward 127.0.0.1:43001 8443\n"

    def test_ports_are_told_and_the_status_is_the_machines(self):
        self.assertEqual(machine([], status=3), (self.FORWARD, 3))

    def same(self, said, out, **more):
        text, status = machine(said, **more)
        self.assertEqual(status, 0)
        self.assertEqual(text.replace(self.FORWARD, "", 1), out)

    def test_other_lines_pass_in_whatever_parts_they_come(self):
        event = "@ restart nqn\n"
        for said in (["a\nb"], ["@", " ", "qm", "x\n"], ["x@ qmp {}\n"], [event], ["@ qmp"]):
            self.same(said, "".join(said))

    def test_an_event_is_one_from_the_start_of_its_line_on(self):
        for parts, passed, events in (
            (["x", "@ qmp 1\n"], "x@ qmp 1\n", []),
            (["x\n", "@ q", "mp 1", "\n@ qmp 2\ny"], "x\ny", ["1", "2"]),
            (["@", " go\n@ qmp 1\n"], "@ go\n", ["1"]),
            (["@ qmp 1\n", "@ qmp"], "", ["1"]),
        ):
            taken = monitor.Events()
            answers = [taken.take(part.encode()) for part in parts]
            self.assertEqual(b"".join(text for text, _ in answers).decode(), passed, parts)
            self.assertEqual([e.decode() for _, found in answers for e in found], events, parts)

    def test_commands_are_carried_out_and_answered(self):
        remove = '@ qmp {"execute": "device_del", "arguments": {"id": "nvme-1"}}\n'
        self.same([remove], "told go {}\n", asked=1, told=1)
        self.same(["a\n" + remove[:9], remove[9:] + "b\n"], "a\nb\ntold go {}\n", asked=1, told=1)
        self.same(['@ qmp {"execute": "dance"}\n'], "told no no such command\n", asked=1, told=1)
        text, _ = machine(["@ qmp dance\n"], told=1)
        self.assertIn("told no JSON: ", text)

    def test_who_reads_outside_may_answer_too(self):
        self.same(["@ restart nqn\n"], "@ restart nqn\ntold go\n", told=1, typed=b"go\n")

    def test_a_machine_that_ends_at_once_ends_it(self):
        command = [sys.executable, MONITOR, "false"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)


class WrongUse(unittest.TestCase):
    """Status 2, and what is wrong."""

    def said(self, words):
        command = [GUEST, "run", "6.12", *words, "--", __file__]
        done = subprocess.run(command, stderr=subprocess.PIPE, timeout=60, check=False)
        self.assertEqual(done.returncode, 2, f"{words}: {done.stderr}")
        return done.stderr.decode()

    def test_values_out_of_range_are_told_with_the_range(self):
        for words, told in (
            (["--nvme", "25"], "--nvme is a number from 0 to 24, not `25`"),
            (["--nvme", "four"], "--nvme is a number from 0 to 24, not `four`"),
            (["--nvme", "-1"], "--nvme is a number"),
            (["--nvme", "010"], "--nvme is a number"),
            (["--nvme", ""], "not ``"),
            (["--nvme", "99999999999999999999"], "--nvme is a number"),
            (["--nvme-size", "0"], "--nvme-size is a number from 1"),
            (["--memory", "1G"], "--memory is a number from 64"),
            (["--cpus", "0"], "--cpus is a number from 1"),
            (["--time-limit", "soon"], "--time-limit is a number"),
            (["--forward", "8443"], "--forward is HOST:GUEST, two ports, not `8443`"),
            (["--forward", "0:0"], "--forward's GUEST is a number from 1 to 65535, not `0`"),
            (["--forward", "65536:1"], "--forward's HOST is a number from 0 to 65535"),
            (["--forward", "1:2:3"], "--forward's GUEST is a number"),
            (["--palisade", "/none"], "--palisade: /none is no program for x86-64"),
            (["--program", "/none"], "--program: /none is no program for x86-64"),
            (["--palisade", GUEST], "is no program for x86-64"),
        ):
            self.assertIn(told, self.said(words), words)

    def test_what_is_missing_or_not_known_is_answered_with_the_usage(self):
        for words in (["--drives", "4"], ["--events", "4"]):
            said = self.said(words)
            for option in ("--nvme N", "--nvme-size MIB", "--palisade FILE", "--program FILE", "--forward HOST:GUEST"):
                self.assertIn(option, said, words)

    def test_a_kernel_that_is_not_known_is_answered_with_those_that_are(self):
        for words in (["image", "6.1-ufs"], ["run", "zfs", "--", __file__], ["selftest", "-zfs"]):
            command = [GUEST, *words]
            done = subprocess.run(command, stderr=subprocess.PIPE, timeout=60, check=False)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(b"KERNEL is one of: 6.1 6.1-zfs 6.12 6.12-generic\n", done.stderr, words)


if __name__ == "__main__":
    unittest.main()
