"""What every fuzz target holds an input to besides being right: little time and little memory.

Not part of the test suite: needs `pip install atheris` beside nbspam.  A target is run with

    PYTHONPATH=. python fuzz/mail.py CORPUS [SEEDS]... [-max_total_time=600]

from the root of the repository.  CORPUS is an empty folder, which the run fills with inputs that
reach new code; each target's docstring names good SEEDS.  An input that fails is written to
crash-…, and run again with `python fuzz/mail.py crash-…`.
"""

import sys
import time
from collections.abc import Callable

import atheris

SECONDS = 1  # of CPU for one input, under instrumentation; a plain one of this size takes 0.02
BYTES = 1 << 16
MEBIBYTES = 1024  # of the whole process; above this libFuzzer ends it
HUNG = 30  # seconds after which libFuzzer ends a process that does not come back


def fuzz(target: Callable[[bytes], None]) -> None:
    """Run `target` on one input after another until it raises, is slow, or the time is up."""

    def timed(data: bytes) -> None:
        start = time.process_time()
        target(data)
        spent = time.process_time() - start
        if spent > SECONDS:
            raise AssertionError(f"{len(data)} bytes took {spent:.1f} s")

    given = {argument.partition("=")[0] for argument in sys.argv}
    bounds = {"-max_len": BYTES, "-rss_limit_mb": MEBIBYTES, "-timeout": HUNG}
    more = [f"{option}={value}" for option, value in bounds.items() if option not in given]
    atheris.Setup([*sys.argv, *more], timed)
    atheris.Fuzz()
