"""What every fuzz target holds an input to besides being right: little time and little memory.

Not part of the test suite: it needs atheris (`pip install atheris`) beside nbspam.  A target is
run from the root of the repository for as many seconds as one likes:

    PYTHONPATH=. python benchmarks/fuzz/mail.py CORPUS -max_total_time=600

CORPUS is a folder that the run fills with inputs that reach new code, and begins with the next
time.  An input that fails is written to crash-…, and `python benchmarks/fuzz/mail.py crash-…` runs
it again.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import atheris

SECONDS = 1  # of CPU for one input, under instrumentation; most take a few thousandths
BYTES = 1 << 16
MEBIBYTES = 1024  # of the whole process; above this libFuzzer ends it
HUNG = 30  # seconds after which libFuzzer ends a process that does not come back


def fuzz(target: Callable[[bytes], None], seeds: Iterable[bytes]) -> None:
    """Run `target` on one input after another until it raises, is slow, or the time is up."""

    def timed(data: bytes) -> None:
        start = time.process_time()
        target(data)
        spent = time.process_time() - start
        if spent > SECONDS:
            raise AssertionError(f"{len(data)} bytes took {spent:.1f} s")

    options = [argument for argument in sys.argv[1:] if argument.startswith("-")]
    given = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    if given and not Path(given[0]).is_file():
        Path(given[0]).mkdir(exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix="nbspam-seeds-"))
        for number, seed in enumerate(seeds):
            (folder / str(number)).write_bytes(seed)
        given.append(str(folder))
    bounds = [f"-max_len={BYTES}", f"-rss_limit_mb={MEBIBYTES}", f"-timeout={HUNG}"]
    atheris.Setup([sys.argv[0], *given, *bounds, *options], timed)  # the last of two options holds
    atheris.Fuzz()
