"""The `nbspam` command; each sub-command has its own file, loaded when it is called."""

import io
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from nbspam import __version__
from nbspam.cli.groups import CommandFile, LazyGroup
from nbspam.errors import ExitCode

if TYPE_CHECKING:
    from nbspam_main import Passage

_FILES = {
    "train": CommandFile("train", "Train a model on labelled messages"),
    "classify": CommandFile("classify", "Classify messages as spam or ham"),
    "eval": CommandFile("evaluate", "Evaluate the filter on labelled messages"),
    "explain": CommandFile("explain", "Show how much each word of a message contributed"),
    "forget": CommandFile("forget", "Unlearn messages"),
    "serve": CommandFile("serve", "Serve SpamAssassin's spamc and other spamd clients"),
    "imap": CommandFile("imap", "Filter the mail of IMAP accounts, and learn from it"),
    "model": CommandFile("model", "Inspect, check, change, merge, prune, export or import a model"),
    "config": CommandFile("config", "Print the settings of the config file and their origin"),
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

    The model file is the one given with -m/--model, else $NBSPAM_MODEL, else that of the config
    file, else a file in your data folder.  `nbspam config` prints the settings of the config file,
    ~/.config/nbspam/config.toml or $NBSPAM_CONFIG.  `nbspam COMMAND --help` describes a command and
    its options.

    Exit status: 0 on success, 1 on an error, 2 when the command line is wrong, 75 when another
    program holds the model's lock for too long; classify has more.
    Set NBSPAM_DEBUG=1 to print a traceback with an error.
    """


def run_program(arguments: list[str], passage: "Passage") -> tuple[int, str | None]:
    """Run the program; return its exit code, and the sentence on what went wrong, None if nothing.

    passage: of the message, if `classify` is to pass one through.
    The sentence is empty where silence is wanted, and click's three lines on wrong usage.
    """
    if os.environ.get("NO_COLOR"):
        # rich obeys it by itself; click needs to be told.
        nbspam.context_settings["color"] = False
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            stream = _whole(stream)
            stream.reconfigure(errors="backslashreplace")  # file names may contain any byte
            setattr(sys, name, stream)
    if sys.stdout is None:
        return (
            ExitCode.ERROR,
            "standard output is closed; open it, or redirect it to /dev/null",
        )
    try:
        returned: Any = nbspam.main(
            arguments, prog_name="nbspam", standalone_mode=False, obj=passage
        )
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 (the message must pass)
        if os.environ.get("NBSPAM_DEBUG"):
            import traceback

            traceback.print_exc()
        from nbspam.cli.failure import outcome

        return outcome(error)
    return returned if isinstance(returned, int) else ExitCode.DONE, None


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
