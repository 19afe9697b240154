"""Programs that must succeed."""

import subprocess

from report import claim

# Seconds that a program may take.
LIMIT = 300


def run(*words, may=(0,), status=False, **more):
    """Runs a program, whose status must be one of these; what it said, after its status if that is
    asked for.
    """
    words = [str(word) for word in words]
    done = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=LIMIT,
        check=False,
        **more,
    )
    what = f"{' '.join(words[:12])}: status {done.returncode}: {done.stdout[-3000:]}"
    claim(done.returncode in may, what)
    return (done.returncode, done.stdout) if status else done.stdout
