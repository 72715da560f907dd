"""A message on its way from standard input to standard output, whatever happens meanwhile.

Nothing here needs click or an option that is right: the message must pass too when the command
line is wrong or a package is missing.
"""

import contextlib
import os
import sys
from typing import IO, TextIO

from nbspam.errors import ExitCode, VerdictCode

_CHUNK = 1 << 20
# Options of classify that take a value, which is no option even if it looks like one.
VALUED = frozenset(
    "-m --model -j --jobs --spam-cutoff --ham-cutoff --ham-cost --text-column --label-column"
    " --encoding --format --header --subject-tag --evidence --on-error".split()
)


class FailurePolicy:
    """What the command line promises the caller in case of failure, as far as it can be told."""

    __slots__ = ("deliver", "exit_code", "passthrough")

    def __init__(self, arguments: list[str]) -> None:
        """Read what follows `nbspam`; unlike click it does not mind what is wrong there."""
        self.passthrough = self.exit_code = self.deliver = False
        first = arguments[:1]
        if first == ["classify"] or (first and first[0][:1] == "-" and "classify" in arguments):
            self._read(arguments[arguments.index("classify") + 1 :])

    def _read(self, arguments: list[str]) -> None:
        rest = iter(arguments)
        for argument in rest:
            if argument == "--":
                return
            if argument.startswith("--"):
                name, equals, value = argument.partition("=")
                if name in VALUED and not equals:
                    value = next(rest, "")
                if name == "--passthrough":
                    self.passthrough = True
                elif name == "--exit-code":
                    self.exit_code = True
                elif name == "--on-error":
                    self.deliver = value == "deliver"
            elif argument.startswith("-"):
                for i, letter in enumerate(argument[1:], 2):
                    if letter == "p":
                        self.passthrough = True
                    if f"-{letter}" in VALUED:
                        if i == len(argument):
                            next(rest, None)
                        break

    def failure(self, code: int, delivered: bool) -> int:
        """Return what to exit with when the command failed and would by itself exit with `code`.

        delivered: whether the whole message came out all the same.
        """
        if self.passthrough:
            return ExitCode.DONE if delivered and self.deliver else ExitCode.TEMPFAIL
        return VerdictCode.ERROR if self.exit_code else code


class Passage:
    """Takes the message in, and gives it out once."""

    def __init__(self, source: TextIO | None, sink: TextIO | None) -> None:
        """Pass from `source` to `sink`; None stands for a stream that is closed."""
        self._terminal = source is not None and source.isatty()
        self._source = _blocking(source)
        self._sink = _blocking(sink)
        self._taken: list[bytes] = []
        self._begun = False

    def take(self, limit: int) -> bytes:
        """Return the first `limit` bytes of the message; it stays whole if this fails."""
        if self._source is None:
            raise OSError(0, "standard input is closed")
        left = limit
        # Piece by piece: what was read is not lost when the next read fails.
        while left and (chunk := self._source.read1(min(left, _CHUNK))):  # type: ignore[attr-defined]
            self._taken.append(chunk)
            left -= len(chunk)
        self._taken = [b"".join(self._taken)]
        return self._taken[0]

    def give(self, first: bytes) -> None:
        """Write `first` in place of what was taken, then the rest of the message as it comes."""
        self._taken = [first]
        self._give()

    def rescue(self) -> bool:
        """Give the message out unchanged unless some of it is out; return whether that was done.

        A terminal is not waited for.  Raises OSError.
        """
        if self._begun or self._source is None or self._sink is None:
            return False
        if self._terminal and not self._taken:
            return False
        self._give()
        return True

    def _give(self) -> None:
        if self._sink is None:
            raise OSError(0, "standard output is closed")
        self._begun = True
        for chunk in self._taken:
            self._sink.write(chunk)
        self._taken = []
        while chunk := self._source.read1(_CHUNK) if self._source else b"":  # type: ignore[attr-defined]
            self._sink.write(chunk)
        self._sink.flush()


def _blocking(stream: TextIO | None) -> IO[bytes] | None:
    """Return the stream's bytes; a read of nothing yet must not look like the end."""
    if stream is None or stream.closed:
        return None
    with contextlib.suppress(OSError, ValueError):  # no file behind it
        os.set_blocking(stream.fileno(), True)
    return stream.buffer


def let_go(*streams: TextIO | None) -> None:
    """Flush streams; what one cannot take is dropped, so that exiting does not try again."""
    for stream in filter(None, streams):
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def bug_or_missing(error: BaseException) -> str:
    """Return the sentence for a package that is not there, or for a mistake of our own."""
    if isinstance(error, ImportError):
        return f"a package it needs is missing ({error}); install nbspam anew"
    text = " ".join(str(error).split())[:200]
    return (
        f"internal error ({type(error).__name__}: {text}); please report it, with what"
        " NBSPAM_DEBUG=1 shows"
    )


def fail(arguments: list[str], passages: list[Passage], code: int, sentence: str) -> int:
    """Bring the message out unchanged, say what went wrong, and return the exit code.

    passages: the message's, if it was on its way already; else the arguments tell whether it is to
    pass at all.
    sentence: what is wrong and the remedy; several lines, click's on usage, are as they are, but
    for a message one of them is enough; none is said if it is empty.
    The message comes out first: whoever reads standard error may be slow.
    """
    promise = FailurePolicy(arguments)
    promise.passthrough = promise.passthrough or bool(passages)
    delivered = False
    if promise.passthrough:
        passage = passages[0] if passages else Passage(sys.stdin, sys.stdout)
        sentence = sentence or "whoever was to take the message has gone; try again"
        if "\n" in sentence:
            sentence = sentence.rpartition("\n")[2].removeprefix("Error: ").rstrip(".")
            sentence += "; nbspam classify --help tells the options"
        try:
            delivered = passage.rescue()
        except (OSError, KeyboardInterrupt, MemoryError) as error:
            reason = getattr(error, "strerror", None) or error
            sentence += f"; nor could the message be passed on ({reason})"
    if sentence and sys.stderr is not None:
        if "\n" not in sentence:
            sentence = f"nbspam: {sentence}"
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"{sentence}\n")
    let_go(sys.stdout, sys.stderr)
    return promise.failure(code, delivered)
