"""The program `nbspam`: it runs the commands, and passes the message on when they fail.

What `nbspam classify -p` reads must come out again, whatever of nbspam is damaged or missing and
however little memory there is.  So the pipe of a message and what the command line promises in case
of failure stand here.  This module needs nothing but what Python has loaded to start, and
`nbspam/__init__.py`; all else is imported under its `try`.  What it cannot catch is in
docs/when-things-go-wrong.md.
"""

import _signal  # type: ignore[import-not-found]  # `signal` without what it loads
import gc
import os
import sys
from _frozen_importlib_external import SourceFileLoader

# Ctrl-C before anything was read ends the program in silence, and not with a traceback.
_is_silent = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
if _is_silent:
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

TYPE_CHECKING = False  # as type checkers know it; importing `typing` takes 9 ms, and memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TextIO

# Objects allocated before the garbage collector runs: one message makes 30,000 and hardly a cycle,
# a server makes more over time.  With `_exit` below, this saves half of the time that a message
# takes beyond its imports: 74 ms in all, 70 with this, 67 with `_exit`, 63 with both;
# `import click, email.parser, json, mmap` takes 56.
_GC_THRESHOLD = 100_000

_CHUNK = 64 << 10  # bytes read at once; a pipe holds no more
_LEAST_CHUNK = 64  # of the smallest, Python has some free as soon as it runs
_RESERVE = 256 << 10  # bytes kept free for passing the message on, when there is no other memory
# Bytes that must be free before anything is loaded; a small message takes 7.5 MB.  Python 3.11 may
# loop for ever over an exception for which the last 32 bytes are missing: it is not tried so far.
_LEAST = 8 << 20

# As errors.py has them.
_ERROR, _USAGE, _TEMPFAIL, _VERDICT_ERROR, _INTERRUPTED = 1, 2, 75, 3, 130
# Help on standard output, with exit code 0, would be delivered as the mail.
_NO_HELP = "{0} prints nothing where a message passes through; leave out {0}, or -p"
_ENOMEM = 12  # of errno.h

# The options of classify that take a value: the argument after one is not an option.
VALUED = frozenset(
    "-m --model --base --spam-cutoff --ham-cutoff --ham-cost --input-format --text-column"
    " --label-column --header-row --encoding --format --header --subject-tag --evidence"
    " --on-error -o --output -j --jobs --dask --log --allow --block --auth-host".split()
)


def main() -> None:
    """Run the program with the arguments of the command line, and exit."""
    gc.set_threshold(_GC_THRESHOLD, 50, 50)
    _exit(run())


def run() -> int:
    """Run the program with the arguments of the command line; return its exit code.

    If it fails, the message is written unchanged if one is to pass, and what went wrong is said.
    """
    pipe = MessagePipe(sys.stdin, sys.stdout)
    policy = FailurePolicy(sys.argv[1:])
    if policy.passthrough and policy.help and not pipe.is_typed:
        return fail(policy, pipe, _USAGE, _NO_HELP.format(policy.help))
    code: int
    sentence: str | None
    try:
        bytes(_LEAST)
        SourceFileLoader.set_data = _set_whole_data  # type: ignore[method-assign, assignment]
        from nbspam.cli.program import run_program

        _heed_interrupts()
        code, sentence = run_program(sys.argv[1:], pipe, described)
    except BaseException as error:  # noqa: BLE001 (whatever a damaged file raises)
        code, sentence = described(error)
        if os.environ.get("NBSPAM_DEBUG"):
            sys.excepthook(type(error), error, error.__traceback__)
    if sentence is None and policy.passthrough and not (policy.help or pipe.is_over):
        code, sentence = _ERROR, "a file of nbspam is damaged: no verdict; reinstall nbspam"
    return code if sentence is None else fail(policy, pipe, code, sentence)


def _heed_interrupts() -> None:
    """Have Ctrl-C raise KeyboardInterrupt from now on, as Python has it."""
    global _is_silent
    if _is_silent:
        _is_silent = False
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)


def fail(policy: "FailurePolicy", pipe: "MessagePipe", code: int, sentence: str) -> int:
    """Write the message unchanged if one is to pass, say what went wrong, return the exit code.

    sentence: what is wrong and the remedy; empty for silence.
    The message is written first: whoever reads standard error may be slow.
    """
    policy.passthrough = policy.passthrough or pipe.has_begun
    delivered, hindrance = False, ""
    if policy.passthrough:
        try:
            delivered = pipe.rescue()
        except (OSError, KeyboardInterrupt, MemoryError) as error:
            reason = getattr(error, "strerror", None) or error
            hindrance = f"; the message could not be passed on either ({reason})"
        sentence = sentence or "broken pipe on standard output; run it again"
    print_error(sentence + hindrance)
    for stream in (sys.stdout, sys.stderr):
        _flush_or_discard(stream)
    return policy.failure(code, delivered)


def _exit(code: int) -> None:
    """End the process at once: freeing a million tokens takes time, and all output is written."""
    if os.environ.get("NBSPAM_DEBUG"):  # a profiler writes its result at a normal exit
        sys.exit(code)
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            try:
                stream.flush()
            except (OSError, ValueError):
                code = code or _ERROR
    os._exit(code)


class MessagePipe:
    """A message on its way from standard input to standard output: written once, or not at all.

    It reads and writes the files themselves, so nothing else may read standard input before it.
    """

    __slots__ = (
        "_at_end", "_has_written", "_latest", "_sink", "_source",
        "has_begun", "is_over", "is_typed", "pending", "reserve",
    )  # fmt: skip

    def __init__(self, source: "TextIO | None", sink: "TextIO | None") -> None:
        """Pass from `source` to `sink`; None stands for a closed stream."""
        self._source, self._sink = _blocking(source), _blocking(sink)
        self.is_typed = source is not None and self._source is not None and source.isatty()
        self.pending: list[bytes] = []  # read and not yet written
        self._latest = b""  # what was read last: not yet pending, if memory ended just then
        self._has_written = self._at_end = False
        self.has_begun = False  # to read the message
        self.is_over = False  # the whole message is written
        self.reserve = b""
        try:
            self.reserve = bytes(_RESERVE)
        except MemoryError:
            return  # there is none to keep

    def take(self, limit: int) -> bytes:
        """Read the first `limit` bytes of the message; if that fails, what was read is kept."""
        from functools import partial

        self.has_begun = True
        if self._source is None:
            raise OSError(0, "standard input is closed")
        left = limit
        # An interrupt comes between two instructions: `for` reads and keeps in one, without a call
        # that returns.  A call's result is lost if the interrupt comes before it has a name.
        chunks = iter(partial(os.read, self._source, _CHUNK), b"")
        for self._latest in chunks:
            self.pending.append(self._latest)
            left -= len(self._latest)
            if left <= 0:
                break
        else:
            self._at_end = True  # a terminal would wait for another Ctrl-D
        whole = b"".join(self.pending)
        self._latest = b""
        self.pending = [whole]
        if left < 0:
            self.pending = [whole[:limit], whole[limit:]]
        return self.pending[0]

    def give(self, first: bytes) -> None:
        """Write `first` in place of what was taken, then copy the rest of the message."""
        self._write([memoryview(first), *self.pending[1:]])

    def rescue(self) -> bool:
        """Write the message unchanged, unless some was written already; return whether all is out.

        It does not wait for a terminal.  Raises OSError.
        """
        pieces = list(self.pending)
        if self._latest and not (pieces and pieces[-1] is self._latest):
            pieces.append(self._latest)
        if self._has_written or self._source is None or self._sink is None:
            return self.is_over
        if self.is_typed and not pieces:
            return False
        self._write(pieces)
        return True

    def _write(self, pieces: "Sequence[bytes | memoryview]") -> None:
        if self._source is None or self._sink is None:
            raise OSError(0, "standard output is closed")
        self.reserve = b""
        self._has_written = True
        for piece in pieces:
            _write_all(self._sink, piece)
        while not self._at_end and (chunk := _read(self._source)):
            _write_all(self._sink, chunk)
        self.is_over = True


def _read(source: int) -> bytes:
    """Read up to a chunk, with however little memory there is for it; raises OSError."""
    size = _CHUNK
    while True:
        try:
            return os.read(source, size)
        except MemoryError:
            if size <= _LEAST_CHUNK:
                raise
            size //= 4


def _write_all(sink: int, piece: "bytes | memoryview") -> None:
    """Write a piece whole, though a write may be short; raises OSError."""
    left = memoryview(piece)
    while left:
        left = left[os.write(sink, left) :]


def _blocking(stream: "TextIO | None") -> int | None:
    """Return the stream's file, made blocking: no data yet must not look like the end."""
    file = None
    try:
        if stream is not None:
            file = stream.fileno()
            os.set_blocking(file, True)
    except (AttributeError, OSError, ValueError):
        return file  # it is closed, or no file, or it stays as it is; Windows had no set_blocking
    return file


class FailurePolicy:
    """What the command line promises in case of failure, as far as it can be read."""

    __slots__ = ("deliver", "exit_code", "help", "passthrough")

    def __init__(self, arguments: list[str]) -> None:
        """Read the arguments after `nbspam`; unlike click, accept invalid ones."""
        self.passthrough = self.exit_code = self.deliver = False
        self.help = ""  # the option that asks for help, or for the version
        first = arguments[:1]
        if first == ["classify"] or (first and first[0][:1] == "-" and "classify" in arguments):
            command = arguments.index("classify")
            for argument in arguments[:command]:
                if argument in ("-h", "--help", "-V", "--version"):
                    self.help = argument
            for name, value in _options(arguments[command + 1 :]):
                # Several options may be in quotes, by mistake.
                if name == "-p" or name.partition(" ")[0] == "--passthrough":
                    self.passthrough = True
                elif name in ("-h", "--help", "--help-all"):
                    self.help = name
                elif name == "--exit-code":
                    self.exit_code = True
                elif name == "--on-error":
                    self.deliver = value == "deliver"

    def failure(self, code: int, delivered: bool) -> int:
        """Return the exit code of a failed command, which would be `code` without any promise.

        delivered: whether the whole message was written all the same.
        """
        if self.passthrough:
            return 0 if delivered and self.deliver else _TEMPFAIL
        return _VERDICT_ERROR if self.exit_code else code


def _options(arguments: list[str]) -> "Iterator[tuple[str, str]]":
    """Yield the options with their values, as far as these matter here."""
    rest = iter(arguments)
    for argument in rest:
        if argument == "--":
            return
        if argument.startswith("--"):
            name, equals, value = argument.partition("=")
            if name in VALUED and not equals:
                value = next(rest, "")
            yield name, value
        elif argument.startswith("-"):
            for i, letter in enumerate(argument[1:], 2):
                if f"-{letter}" in VALUED:  # the rest is its value, or the next argument
                    if i == len(argument):
                        next(rest, None)
                    break
                yield f"-{letter}", ""


def described(error: BaseException) -> tuple[int, str]:
    """Return the exit code of a failure that is no error of ours, and the sentence for the user."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == _ENOMEM:
        return _ERROR, "not enough memory; free some, or give it a smaller input"
    if isinstance(error, KeyboardInterrupt):
        return _INTERRUPTED, "interrupted"
    text = " ".join(str(error).split())[:200]
    if file := _damaged_file(error):
        remedy = "delete it" if file.endswith(".pyc") else "reinstall nbspam"
        return _ERROR, f"{file}: Python cannot load this file ({text}); {remedy}"
    if isinstance(error, ImportError | SyntaxError) or "null bytes" in text:  # of a source
        return _ERROR, f"a package it needs is missing or damaged ({text}); reinstall nbspam"
    if isinstance(error, OSError):
        name = f"{error.filename}: ".replace("\n", "\ufffd") if error.filename else ""
        remedy = "fix that and run the command again"
        if name and isinstance(error, PermissionError):
            remedy = "check its permissions and those of the folders above it"
        return _ERROR, f"{name}{error.strerror or text}; {remedy}"
    return _ERROR, (
        f"internal error ({type(error).__name__}: {text}); please report it, with the output of"
        " NBSPAM_DEBUG=1"
    )


def _damaged_file(error: BaseException) -> str:
    """Return the source or the bytecode that Python failed to load; "" if that is not the error."""
    if isinstance(error, SyntaxError):
        return error.filename or ""
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    if not trace or trace.tb_frame.f_code.co_name != "_compile_bytecode":
        return ""
    return str(trace.tb_frame.f_locals.get("bytecode_path", ""))


def print_error(sentence: str) -> None:
    """Print a sentence on standard error, without control characters."""
    if sys.stderr is None or not sentence:
        return
    # A file's name may hold what would command a terminal.
    sentence = "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in sentence)
    if "\n" not in sentence:
        sentence = f"nbspam: {sentence}"
    try:
        sys.stderr.write(f"{sentence}\n")
    except (OSError, ValueError, MemoryError):
        return  # nobody hears it


def _flush_or_discard(stream: "TextIO | None") -> None:
    """Flush a stream; discard what it does not accept, so that exiting does not try again."""
    if stream is None:
        return
    try:
        stream.flush()
    except (OSError, ValueError):
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        except (OSError, ValueError):
            return


_set_data = SourceFileLoader.set_data


def _set_whole_data(self: SourceFileLoader, path: str, data: bytes, **options: int) -> None:
    """Write bytecode whole or not at all.

    In Python 3.11 a write cut short by a full disk or `ulimit -f` leaves a file that fails every
    later start (gh-126606, mended later).  What was written of ours before this ran goes, too.
    """
    _set_data(self, path, data, **options)
    try:
        if os.stat(path).st_size == len(data):
            return
    except OSError:
        return  # it was not written
    loaded_before = (sys.modules.get(name) for name in (__name__, "nbspam"))
    for file in (path, *(getattr(module, "__cached__", None) for module in loaded_before)):
        try:
            os.unlink(file or "")
        except OSError:
            continue


if __name__ == "__main__":
    main()
