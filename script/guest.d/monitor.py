"""Starts an emulated machine, and does for its guest what only its emulator can do.

    monitor.py COMMAND…

COMMAND starts qemu, which gets further arguments: a monitor that speaks QMP. The guest's output and
our input are passed on as they are, but for this line of the guest's, at the start of a line:

    @ qmp JSON      sends this command; the guest gets the line `go RESULT`, or `no WHY`

For each port that qemu's user network forwards to the guest comes a line first:

    forward ADDRESS:PORT GUEST-PORT

Ends with the status of COMMAND.
"""

import json
import os
import re
import selectors
import signal
import socket
import subprocess
import sys

EVENT = b"@ qmp "
# A forwarded port in the words of `info usernet`: where it listens, and where it leads.
FORWARD = re.compile(r"TCP\[HOST_FORWARD\]\s+\d+\s+(\S+)\s+(\d+)\s+\S+\s+(\d+)")
USERNET = {"execute": "human-monitor-command", "arguments": {"command-line": "info usernet"}}


def write(fd, text):
    """All of it."""
    while text:
        text = text[os.write(fd, text) :]


class Events:
    """Takes the events out of what the guest prints."""

    def __init__(self):
        self.held = b""
        self.in_plain_line = False

    def take(self, text):
        """What is to be passed on, and the events, without their first words.

        What may still become an event is held back.
        """
        passed, events = b"", []
        for part in text.splitlines(keepends=True):
            if self.in_plain_line:
                passed += part
                self.in_plain_line = not part.endswith(b"\n")
                continue
            self.held += part
            if self.held.startswith(EVENT):
                if self.held.endswith(b"\n"):
                    events.append(self.held[len(EVENT) :].strip())
                    self.held = b""
            elif not EVENT.startswith(self.held):
                passed += self.held
                self.in_plain_line = not self.held.endswith(b"\n")
                self.held = b""
        return passed, events


class Monitor:
    """The emulator's monitor: one command after the other, each with what is to be done with its
    answer."""

    def __init__(self, ours):
        self.socket = ours
        self.held = b""
        self.waiting = []

    def begin(self, done):
        """Ends the negotiation, and asks for the ports that are forwarded."""
        self.send({"execute": "qmp_capabilities"}, lambda result, why: None)
        self.send(USERNET, lambda result, why: done(FORWARD.findall(result or "")))

    def send(self, command, done):
        """Sends a command; done(result, why) is called with one of the two."""
        self.waiting.append(done)
        try:
            self.socket.sendall(json.dumps(command).encode() + b"\n")
        except OSError:
            # The machine is gone, as will be told.
            pass

    def read(self):
        """Reads what came; false where nothing will come again."""
        try:
            text = self.socket.recv(65536)
        except OSError:
            text = b""
        *lines, self.held = (self.held + text).split(b"\n")
        for line in lines:
            answer = json.loads(line)
            if "return" in answer:
                self.waiting.pop(0)(answer["return"], None)
            elif "error" in answer:
                self.waiting.pop(0)(None, answer["error"].get("desc", "no reason given"))
        return bool(text)


class Machine:
    """The running machine and all that goes between it and us."""

    def __init__(self, command):
        ours, theirs = socket.socketpair()
        channel = ["-chardev", f"socket,id=monitor,fd={theirs.fileno()}"]
        channel += ["-mon", "monitor,mode=control"]
        self.process = subprocess.Popen(
            command + channel,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self.events = Events()
        self.monitor = Monitor(ours)
        self.sources = selectors.SelectSelector()
        self.sources.register(self.process.stdout, selectors.EVENT_READ, self.output)
        self.sources.register(0, selectors.EVENT_READ, self.input)
        self.sources.register(ours, selectors.EVENT_READ, self.answers)
        self.monitor.begin(self.forwarded)

    def forwarded(self, ports):
        """Tells which ports are forwarded."""
        for address, port, guest in ports:
            write(1, f"forward {address}:{port} {guest}\n".encode())

    def tell(self, text):
        """A line for the guest; it may be gone."""
        try:
            write(self.process.stdin.fileno(), text)
        except BrokenPipeError:
            pass

    def output(self, source):
        """Takes what the guest prints."""
        text = os.read(source.fileno(), 65536)
        if not text:
            write(1, self.events.held)
            self.sources.unregister(source)
            return False
        passed, events = self.events.take(text)
        write(1, passed)
        for event in events:
            self.ask(event)
        return True

    def ask(self, event):
        """Carries an event out."""
        try:
            command = json.loads(event)
        except ValueError as error:
            self.tell(f"no JSON: {error}\n".encode())
            return
        self.monitor.send(command, self.answered)

    def answered(self, result, why):
        """Tells the guest what came of it."""
        line = f"go {json.dumps(result)}" if why is None else "no " + " ".join(why.split())
        self.tell(line.encode() + b"\n")

    def input(self, source):
        """Passes our input on."""
        text = os.read(source, 65536)
        if not text:
            self.sources.unregister(source)
        self.tell(text)
        return True

    def answers(self, source):
        """Takes what the monitor says."""
        if not self.monitor.read():
            self.sources.unregister(source)
        return True

    def run(self):
        """Until the machine prints nothing more; its status."""
        goes_on = True
        while goes_on:
            for key, _ in self.sources.select():
                goes_on = key.data(key.fileobj) and goes_on
        status = self.process.wait()
        return status if status >= 0 else 128 - status


def main():
    """Runs the machine, and ends it where we are told to end."""
    machine = Machine(sys.argv[1:])

    def end(*_):
        machine.process.terminate()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    try:
        return machine.run()
    except BrokenPipeError:
        end()
        return 1


if __name__ == "__main__":
    sys.exit(main())
