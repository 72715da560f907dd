"""The program `nbspam`: it runs the commands, and passes the message on when they fail.

`nbspam classify -p` writes the message that it reads, even if a module of nbspam is damaged or
missing, so all other modules are imported under the `try` of `run`.  If the message cannot be
written, or Python does not start, only the calling program can keep the message, as in the recipes
of docs/mail-recipes.md.
"""

import gc
import os
import sys

# Objects allocated before the garbage collector runs: one message makes 30,000 and hardly a cycle,
# a server makes more over time.  One message takes 74 ms in all, 70 with this setting, 67 with
# `_exit` below, and 63 with both, of which `import click, email.parser, json, mmap` takes 56 ms.
_GC_THRESHOLD = 100_000

# The exit codes of `errors.py`, which may be damaged.
_ERROR, _TEMPFAIL, _VERDICT_ERROR, _INTERRUPTED = 1, 75, 3, 130


def main() -> None:
    """Run the program with the arguments of the command line, and exit."""
    gc.set_threshold(_GC_THRESHOLD, 50, 50)
    _exit(run())


class Passage:
    """A message from standard input to standard output: written once, or not at all."""

    def __init__(self) -> None:
        self.message = b""
        self.is_written = False

    def write(self, message: bytes) -> None:
        """Write the message: unchanged, or with its header."""
        self.is_written = True
        sys.stdout.buffer.write(message)
        sys.stdout.flush()


def run() -> int:
    """Run the program with the arguments of the command line; return its exit code.

    If the command fails, the message of `classify -p` is written unchanged, and the failure is
    reported.
    """
    arguments = sys.argv[1:]
    is_passing = "classify" in arguments[:2] and {"-p", "--passthrough"} & {*arguments}
    wants_help = bool({"-h", "--help", "--help-all"} & {*arguments})
    passage = Passage() if is_passing and not wants_help else None
    code: int
    sentence: str | None
    try:
        if passage:
            if sys.stdin is None:
                raise OSError(0, "standard input is closed")
            # otherwise a pipe without data yet would look like the end
            os.set_blocking(sys.stdin.fileno(), True)
            passage.message = sys.stdin.buffer.read()
        from nbspam.cli.click_stubs import import_click

        import_click()
        from nbspam.cli.program import run_program

        code, sentence = run_program(arguments, passage, describe)
    except BaseException as error:  # noqa: BLE001 (a damaged file may raise any error)
        code, sentence = describe(error)
        if os.environ.get("NBSPAM_DEBUG"):
            sys.excepthook(type(error), error, error.__traceback__)
    if passage and (sentence is not None or not passage.is_written):
        broken_pipe = "broken pipe on standard output; run it again"
        no_verdict = "no verdict; run it again, or reinstall nbspam"
        code = _TEMPFAIL
        sentence = sentence or (broken_pipe if passage.is_written else no_verdict)
        try:
            if not passage.is_written:
                passage.write(passage.message)
                if "--on-error=deliver" in arguments or "deliver" in arguments:
                    code = 0
        except (OSError, AttributeError) as error:
            reason = getattr(error, "strerror", None) or "standard output is closed"
            sentence += f"; the message could not be passed on either ({reason})"
    elif sentence is not None and "--exit-code" in arguments:
        code = _VERDICT_ERROR
    print_error(sentence or "")
    return code


def _exit(code: int) -> None:
    """End the process at once: freeing a million tokens takes time, and all output is written."""
    if os.environ.get("NBSPAM_DEBUG"):  # a profiler writes its result at a normal exit
        sys.exit(code)
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            code = code or _ERROR
    os._exit(code)


def describe(error: BaseException) -> tuple[int, str]:
    """Return the exit code and the sentence for a failure that is not an NbspamError."""
    if isinstance(error, MemoryError):
        return _ERROR, "not enough memory; free some, or give it a smaller input"
    if isinstance(error, KeyboardInterrupt):
        return _INTERRUPTED, "interrupted"
    text = " ".join(str(error).split())[:200]
    # EOFError: bytecode that was cut off
    if isinstance(error, ImportError | SyntaxError | EOFError):
        return _ERROR, f"a package it needs is missing or damaged ({text}); reinstall nbspam"
    if isinstance(error, OSError):
        name = f"{' '.join(str(error.filename).split())}: " if error.filename else ""
        remedy = "fix that and run the command again"
        if name and isinstance(error, PermissionError):
            remedy = "check its permissions and those of the folders above it"
        return _ERROR, f"{name}{error.strerror or text}; {remedy}"
    return _ERROR, (
        f"internal error ({type(error).__name__}: {text}); please report it, with the output of"
        " NBSPAM_DEBUG=1"
    )


def print_error(sentence: str) -> None:
    """Print a sentence on standard error, without control characters."""
    # The name of a file may contain control characters for the terminal.
    sentence = "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in sentence)
    try:
        if sentence and sys.stderr is not None:
            sys.stderr.write(f"{sentence}\n" if "\n" in sentence else f"nbspam: {sentence}\n")
    except (OSError, ValueError):
        return  # standard error is closed


if __name__ == "__main__":
    main()
