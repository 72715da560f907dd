"""`python -m nbspam`, and the script of that name."""

import gc
import os
import sys

# One message makes 30,000 objects and no cycles worth looking for; a server makes more in time.
# Beside the leaving below it is half of what a message takes beyond its imports: 74 ms in all,
# 70 with this, 67 with that, 63 with both; `import click, email.parser, json, mmap` is 56.
_LOOKED_AT = 100_000


def main() -> None:
    """Run the program; what it cannot even be loaded for is one sentence as well."""
    gc.set_threshold(_LOOKED_AT, 50, 50)
    try:
        from nbspam.cli.program import main as run
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (click is missing, a file damaged)
        from nbspam.serving.passage import bug_or_missing, fail

        sys.exit(fail(sys.argv[1:], [], 1, bug_or_missing(error)))
    try:
        run()
    except SystemExit as end:
        _leave(end.code if isinstance(end.code, int) else 0)


def _leave(code: int) -> None:
    """End the process at once: all is written, and to take a million tokens apart takes time."""
    if os.environ.get("NBSPAM_DEBUG"):  # a profiler may want to have the last word
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
