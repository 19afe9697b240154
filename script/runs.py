"""Long runs: reads docs/runs.json and adds to it; script/long-run calls this.

    runs.py add KEY=VALUE…     adds a run; prints it
    runs.py next WHAT          the first seed behind all runs of this kind
    runs.py sum WHAT SCOPE     what their counts come to
    runs.py totals             what all runs of each kind come to

docs/runs.json is a list with a run a line:

    date    day of its end, UTC
    what    sim, histories, mutants, exhaustive, kill, takeover, services, shares, ublk, machine,
            iscsi, zfs or fuzz
    from    first seed, and `to`, the one behind the last; or else
    scope   what was run, in words: a fuzz target, a level and a number of operations
    count   how many of `unit`
    unit    what is counted
    found   what was found, in a line; null for nothing
    hours   how long it took
    commit  of the tree

and, where it says more: `refused` starts, `of` so many mutants, `combinations` and how many of them
`differ`. Seeds between two runs that do not join were run by hand, while something was being
mended, or not at all.
"""

import json
import pathlib
import sys

FILE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "runs.json"
NUMBERS = ("from", "to", "count", "hours", "refused", "of", "combinations", "differ")


def read(file=FILE):
    """All runs, oldest first."""
    return json.loads(file.read_text())


def write(runs, file=FILE):
    """Replaces the file at one stroke, a run a line."""
    lines = ",\n".join(json.dumps(run, ensure_ascii=False) for run in runs)
    new = file.with_suffix(".new")
    new.write_text(f"[\n{lines}\n]\n")
    new.replace(file)


def parsed(words):
    """A run from KEY=VALUE words."""
    run = {}
    for word in words:
        key, value = word.split("=", 1)
        if key in NUMBERS:
            run[key] = float(value) if key == "hours" else int(value)
        else:
            run[key] = value
    run["found"] = run.get("found") or None
    return run


def next_seed(runs, what):
    """The first seed that no run of this kind had, nor any before it."""
    return max((run["to"] for run in runs if run["what"] == what and "to" in run), default=0)


def counted(runs, what, scope):
    """How many of the unit the runs of this kind and scope had."""
    return sum(run["count"] for run in runs if (run["what"], run.get("scope")) == (what, scope))


def totals(runs):
    """A line for each kind whose counts can be added up."""
    kinds = {}
    for run in runs:
        if run["what"] in ("mutants", "exhaustive"):
            continue
        name = f"fuzz {run['scope']}" if run["what"] == "fuzz" else run["what"]
        count, hours, _ = kinds.get(name, (0, 0, ""))
        kinds[name] = (count + run["count"], hours + run["hours"], run["unit"])
    return [f"{name} {c} {unit} in {h:.2f} h" for name, (c, h, unit) in kinds.items()]


def main(words):
    """Does what the words say."""
    match words:
        case ["add", *pairs]:
            run = parsed(pairs)
            write([*read(), run])
            print(json.dumps(run, ensure_ascii=False))
        case ["next", what]:
            print(next_seed(read(), what))
        case ["sum", what, scope]:
            print(counted(read(), what, scope))
        case ["totals"]:
            print("\n".join(totals(read())))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
