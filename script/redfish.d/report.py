"""What a check has found: how much is right, and what is wrong, a warning or not tested."""

import collections
import re

PASS, FAIL, WARN, UNTESTED = "PASS", "FAIL", "WARN", "NOT TESTED"
WORDS = {PASS: "right", FAIL: "wrong", WARN: "warnings", UNTESTED: "not tested"}


class Failure(Exception):
    """Why a check could not be made."""


def claim(holds, what):
    """Something that must hold."""
    if not holds:
        raise Failure(what)


class Report:
    """The findings of one check.

    A warning and a thing that was not tested need a reason: `meant` maps the word and a pattern of
    what is said to it, and each of these has to be there; `chance` those that may be. A failure has
    no reason.
    """

    def __init__(self, meant=None, chance=None):
        self.meant, self.chance = meant or {}, chance or {}
        self.counts = collections.Counter()
        self.reasons = collections.Counter()
        # Each finding that is wrong, or has no reason.
        self.bad = []
        # Why nothing was tried.
        self.skipped = None

    def add(self, word, where="", said=""):
        """Counts a finding."""
        self.counts[word] += 1
        if word == PASS:
            return
        text = f"{where}: {said}"
        all_of_them = (self.meant | self.chance).items()
        reasons = (why for (own, what), why in all_of_them if own == word and re.search(what, text))
        why = next(reasons, None)
        if why is None:
            self.bad.append(f"{word} {text}")
        else:
            self.reasons[word, why] += 1

    def claim(self, holds, what):
        """Counts whether something holds."""
        self.add(PASS if holds else FAIL, "expected", what)

    def skip(self, why):
        """Nothing is tried."""
        self.skipped = why

    def unused(self):
        """Reasons of what was not there."""
        if self.skipped is not None:
            return []
        return [why for (word, _), why in self.meant.items() if not self.reasons[word, why]]

    def well(self):
        """Whether all is right, or has its reason; something must be, unless nothing is tried."""
        is_tried = self.counts[PASS] > 0 or self.skipped is not None
        return not self.bad and not self.unused() and is_tried

    def word(self):
        """How it went, in a word."""
        if not self.well():
            return "FAILED"
        return "ok" if self.skipped is None else "skipped"

    def lines(self):
        """What to say of it: what is bad, and the reasons."""
        yield from self.bad
        yield from (f"not there, though it is meant: {why}" for why in self.unused())
        if self.skipped is not None:
            yield f"  nothing was tried: {self.skipped}"
        for (word, why), count in self.reasons.items():
            yield f"  {count} {WORDS[word]}, as is meant: {why}"


def summed(counts):
    """Counts in words."""
    return ", ".join(f"{counts[word]} {text}" for word, text in WORDS.items())
