"""The `nbspam` command; the file of a subcommand is loaded only when it is called."""

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
    arguments: list[str], passage: object, describe: Callable[[BaseException], tuple[int, str]]
) -> tuple[int, str | None]:
    """Run the program; return its exit code and the error message, None without an error.

    passage: the `Passage` of the message that `classify` passes through, or None.
    describe: returns exit code and message for errors of other libraries.
    An empty message prints nothing.  If a command is missing, the message is the help.
    """
    # nbspam starts its own processes.  If BLAS started threads as well, a fit of 4 s would take 11
    # s of CPU time.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if os.environ.get("NO_COLOR"):
        # rich reads NO_COLOR itself; click does not.
        nbspam.context_settings["color"] = False
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper):
            raw: object = stream.buffer
            if isinstance(raw, io.RawIOBase):
                # Buffered, because with PYTHONUNBUFFERED Python would not complete a short write.
                encoding = stream.encoding
                stream.detach()
                buffer = io.BufferedWriter(raw)
                stream = io.TextIOWrapper(buffer, encoding=encoding, line_buffering=True)
            stream.reconfigure(errors="backslashreplace")  # file names may contain any byte
            setattr(sys, name, stream)
    if sys.stdout is None:
        return (ExitCode.ERROR, "standard output is closed; open it, or redirect it to /dev/null")
    try:
        program = Program(passage, describe)
        returned: Any = nbspam.main(arguments, "nbspam", standalone_mode=False, obj=program)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 (the message must pass)
        if os.environ.get("NBSPAM_DEBUG"):
            import traceback

            traceback.print_exc()
        from nbspam.cli.notes import describe_failure

        return describe_failure(error, describe)
    return returned if isinstance(returned, int) else ExitCode.DONE, None


# `nbspam` is defined last: if this file is truncated, the import fails, and mail passes unchanged.
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

    The model file is the one given with -m/--model, else $NBSPAM_MODEL, else `model` of the config
    file, else a file in your data folder.  `nbspam config` prints the settings of the config file,
    ~/.config/nbspam/config.toml or $NBSPAM_CONFIG.  `nbspam COMMAND --help` describes a command and
    its options.

    Exit status: 0 on success, 1 on an error, 2 when the command line is wrong, 75 when another
    program holds the model's lock for too long; classify has more.
    Set NBSPAM_DEBUG=1 to print a traceback with an error.
    """
