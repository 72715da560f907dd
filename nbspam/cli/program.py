"""The `nbspam` command; each sub-command has its own file, loaded when it is called."""

import io
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from nbspam import __version__
from nbspam.cli.groups import CommandFile, LazyGroup
from nbspam.errors import ExitCode, NbspamError, one_line

if TYPE_CHECKING:  # importing it costs time, and only a passthrough needs it
    from nbspam.serving.passage import Passage

_FILES = {
    "train": CommandFile("train", "Train a model on labelled messages"),
    "classify": CommandFile("classify", "Classify messages as spam or ham"),
    "eval": CommandFile("evaluate", "Evaluate the filter on labelled messages"),
    "explain": CommandFile("explain", "Show how much each word of a message contributed"),
    "forget": CommandFile("forget", "Unlearn messages"),
    "serve": CommandFile("serve", "Serve SpamAssassin's spamc and other spamd clients"),
    "model": CommandFile("model", "Inspect, check, change, merge, prune, export or import a model"),
}


@click.group(
    cls=LazyGroup,
    files=_FILES,
    aliases={"evaluate": "eval"},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", message="nbspam %(version)s")
def nbspam() -> None:
    """A spam filter for the shell: it learns from your messages, and explains each verdict.

    \b
    Examples:
      nbspam train --ham ~/Maildir --spam ~/Maildir/.Junk
      nbspam classify < message.eml
      nbspam explain message.eml
      nbspam eval --folds 10 messages.tsv

    The model file is the one given with -m/--model, else $NBSPAM_MODEL, else a file in your data
    folder.  `nbspam COMMAND --help` describes a command and its options.

    Exit status: 0 on success, 1 on an error, 2 when the command line is wrong; classify has more.
    Set NBSPAM_DEBUG=1 to print a traceback with an error.
    """


def run_program() -> None:
    """Run the program and exit; every failure prints one sentence on standard error."""
    if os.environ.get("NO_COLOR"):
        # rich obeys it by itself; click needs to be told.
        nbspam.context_settings["color"] = False
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream = _whole(stream)
            stream.reconfigure(errors="backslashreplace")  # file names may contain any byte
            setattr(sys, name, stream)
    sys.exit(_run(sys.argv[1:]))


def _whole(stream: io.TextIOWrapper) -> io.TextIOWrapper:
    """Return a stream whose writes are whole.

    With PYTHONUNBUFFERED a text stream stands on a raw one and takes a short write for a whole one.
    """
    raw: object = stream.buffer
    if not isinstance(raw, io.RawIOBase):
        return stream
    encoding = stream.encoding
    stream.detach()
    return io.TextIOWrapper(io.BufferedWriter(raw), encoding=encoding, line_buffering=True)


def _run(arguments: list[str]) -> int:
    passages: list[Passage] = []  # classify adds its own once it reads a message
    try:
        if sys.stdout is None:
            raise OutputClosedError
        returned: Any = nbspam.main(
            arguments, prog_name="nbspam", standalone_mode=False, obj=passages
        )
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 (the message must pass)
        from nbspam.cli.failure import fail

        if os.environ.get("NBSPAM_DEBUG"):
            import traceback

            traceback.print_exc()
        return fail(arguments, passages, *_describe(error))
    return returned if isinstance(returned, int) else ExitCode.DONE


class OutputClosedError(Exception):
    """Standard output is closed."""


def _describe(error: BaseException) -> tuple[int, str]:
    """Return the exit code of a failure, and the sentence for the user; empty for silence."""
    match error:
        case NbspamError():
            from nbspam.cli.failure import REMEDIES

            return error.exit_code, error.sentence(REMEDIES)
        case OutputClosedError():
            return ExitCode.ERROR, "standard output is closed; open it, or redirect it to /dev/null"
        case click.ClickException():
            return error.exit_code, _usage(error)
        case SystemExit(code=int(code)):  # from shell completion
            return code, ""
        case BrokenPipeError() | SystemExit():  # click turns the first into the second
            return (
                ExitCode.ERROR,
                "",
            )  # the reader has gone, as `head` does: no news
        case OSError():
            name = f"{error.filename}: " if error.filename else ""
            sentence = f"{name}{error.strerror or error}; fix that and run the command again"
            return ExitCode.ERROR, one_line(sentence)
        case MemoryError():
            return ExitCode.ERROR, "not enough memory; free some, or give it a smaller input"
        case KeyboardInterrupt() | click.Abort():
            return 130, "interrupted; run the command again"
        case _:
            from nbspam.cli.failure import unexpected

            return ExitCode.ERROR, unexpected(error)


def _usage(error: click.ClickException) -> str:
    """Return click's three lines on a wrong command line."""
    shown = io.StringIO()
    error.show(shown)
    return shown.getvalue().rstrip("\n")
