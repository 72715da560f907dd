"""The `nbspam` command; each sub-command has its own file, loaded when it is called."""

import io
import os
import sys
from collections.abc import Callable
from typing import Any

import click

from nbspam import __version__
from nbspam.cli.command import LazyGroup, Program
from nbspam.errors import ExitCode


def run_program(
    arguments: list[str], pipe: object, describe: Callable[[BaseException], tuple[int, str]]
) -> tuple[int, str | None]:
    """Run the program; return its exit code, and the sentence on what went wrong, None if nothing.

    pipe: of the message that `classify` passes through, if it does.
    describe: returns the code and the sentence of an error that is not of the command line.
    The sentence is empty where silence is wanted, and the help if a command is missing.
    """
    # The processes are ours: threads of BLAS took 11 s of CPU for a fit that takes 4.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if os.environ.get("NO_COLOR"):
        # rich obeys it by itself; click needs to be told.
        nbspam.context_settings["color"] = False
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            raw: object = stream.buffer
            if isinstance(raw, io.RawIOBase):
                # With PYTHONUNBUFFERED a short write would be taken for a whole one.
                encoding = stream.encoding
                stream.detach()
                buffer = io.BufferedWriter(raw)
                stream = io.TextIOWrapper(buffer, encoding=encoding, line_buffering=True)
            stream.reconfigure(errors="backslashreplace")  # file names may contain any byte
            setattr(sys, name, stream)
    if sys.stdout is None:
        return (ExitCode.ERROR, "standard output is closed; open it, or redirect it to /dev/null")
    try:
        program = Program(pipe, describe)
        returned: Any = nbspam.main(arguments, "nbspam", standalone_mode=False, obj=program)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 (the message must pass)
        if os.environ.get("NBSPAM_DEBUG"):
            import traceback

            traceback.print_exc()
        from nbspam.cli.notes import outcome

        return outcome(error, describe)
    return returned if isinstance(returned, int) else ExitCode.DONE, None


# The program comes last: where this file is cut off, there is none, and a message passes unchanged.
_FILES = {
    "train": ("train:train", "Train a model on labelled messages"),
    "classify": ("classify:classify", "Classify messages as spam or ham"),
    "eval": ("evaluate:evaluate", "Evaluate the filter on labelled messages"),
    "explain": ("explain:explain", "Show how much each word of a message contributed"),
    "forget": ("forget:forget", "Unlearn messages"),
    "serve": ("serve:serve", "Serve SpamAssassin's spamc and other spamd clients"),
    "mail": ("mail:mail", "Filter the mail of IMAP accounts and Maildirs, and learn from it"),
    "model": ("model:model", "Inspect, check, change or prune a model"),
    "config": ("config:config", "Print the settings of the config file and check them"),
}


@click.group(
    cls=LazyGroup,
    files=_FILES,
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
