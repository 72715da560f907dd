"""`python -m nbspam`, and the script of that name."""

import gc
import os
import sys

# Objects allocated before the garbage collector runs: one message makes 30,000 and hardly a cycle,
# a server makes more over time.  With `_exit` below, this saves half of the time that a message
# takes beyond its imports: 74 ms in all, 70 with this, 67 with `_exit`, 63 with both;
# `import click, email.parser, json, mmap` takes 56.
_GC_THRESHOLD = 100_000


def main() -> None:
    """Run the program; one sentence says why, if it cannot even be loaded."""
    gc.set_threshold(_GC_THRESHOLD, 50, 50)
    try:
        from nbspam.cli.program import run_program
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (click missing, a file damaged)
        from nbspam.cli.failure import fail, unexpected

        if isinstance(error, KeyboardInterrupt):
            sys.exit(fail(sys.argv[1:], [], 130, "interrupted; run the command again"))
        sys.exit(fail(sys.argv[1:], [], 1, unexpected(error)))
    try:
        run_program()
    except SystemExit as end:
        _exit(end.code if isinstance(end.code, int) else 0)


def _exit(code: int) -> None:
    """End the process at once: freeing a million tokens takes time, and all output is written."""
    if os.environ.get("NBSPAM_DEBUG"):  # a profiler writes its result at a normal exit
        sys.exit(code)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            try:
                stream.flush()
            except (OSError, ValueError):
                code = code or 1
    os._exit(code)


if __name__ == "__main__":
    main()
