"""The command line: each command in a file of its own, loaded when it is called."""

import importlib
import io
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from nbspam import __version__
from nbspam.errors import ExitCode, NbspamError, one_line

if TYPE_CHECKING:  # its import costs every message time, and only a failure needs it
    from nbspam.serving.passage import Passage

# name -> (module, what `nbspam --help` says of it); the group's help must import no command.
_COMMANDS = {
    "train": ("train", "Learn from labelled messages and write a model"),
    "classify": ("classify", "Say of each message whether it is spam"),
    "eval": ("evaluate", "Measure how good the filter is"),
    "explain": ("explain", "Show what each word of a message brought"),
    "forget": ("forget", "Take learned messages out of a model again"),
    "serve": ("serve", "Answer SpamAssassin's spamc"),
    "model": ("model", "Look at a model, check it, merge, prune, export and import it"),
}
_ALIASES = {"evaluate": "eval"}


class Commands(click.Group):
    """A group that imports a command only to run it or to show its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = _ALIASES.get(cmd_name, cmd_name)
        if name not in _COMMANDS:
            return None
        module = importlib.import_module(f"nbspam.cli.{_COMMANDS[name][0]}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        _, command, rest = super().resolve_command(ctx, args)
        return command.name if command else None, command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, "-V", "--version", message="nbspam %(version)s")
def nbspam() -> None:
    """A spam filter for the shell: it learns from your messages, decides, and says why.

    \b
    Examples:
      nbspam train --ham ~/Maildir --spam ~/Maildir/.Junk
      nbspam classify < message.eml
      nbspam explain message.eml
      nbspam eval --folds 10 messages.tsv

    The model is the file of -m/--model, else of $NBSPAM_MODEL, else a file in the user's data
    folder.  `nbspam COMMAND --help` tells each command's options.

    It exits with 0 when it did its job, 1 on an error, 2 when the command line is wrong; classify
    has more codes.  $NBSPAM_DEBUG=1 shows where in the program an error came up.
    """


def main() -> None:
    """Run the program and exit; every failure is one sentence on standard error."""
    if os.environ.get("NO_COLOR"):
        # rich heeds it by itself; click asks its context.
        nbspam.context_settings["color"] = False
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names of files may hold any byte
            stream.reconfigure(errors="backslashreplace")
    sys.exit(_run(sys.argv[1:]))


def _run(arguments: list[str]) -> int:
    passages: list[Passage] = []  # classify notes here that a message is on its way
    try:
        if sys.stdout is None:
            raise OutputClosedError
        returned: Any = nbspam.main(
            arguments, prog_name="nbspam", standalone_mode=False, obj=passages
        )
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 (the message must pass)
        from nbspam.serving.passage import fail

        if os.environ.get("NBSPAM_DEBUG"):
            import traceback

            traceback.print_exc()
        return fail(arguments, passages, *_told(error))
    return returned if isinstance(returned, int) else ExitCode.DONE


class OutputClosedError(Exception):
    """Standard output is closed."""


def _told(error: BaseException) -> tuple[int, str]:
    """Return the exit code of a failure, and the sentence for the user."""
    match error:
        case NbspamError():
            return error.exit_code, str(error)
        case OutputClosedError():
            return ExitCode.ERROR, "standard output is closed; open it, or send it to /dev/null"
        case click.ClickException():
            return error.exit_code, _usage(error)
        case SystemExit(code=int(code)):  # of shell completion
            return code, ""
        case BrokenPipeError() | SystemExit():  # which click makes of it
            return ExitCode.ERROR, ""  # whoever read our output has gone; nobody is left to be told
        case OSError():
            name = f"{error.filename}: " if error.filename else ""
            sentence = f"{name}{error.strerror or error}; see to it and run it again"
            return ExitCode.ERROR, one_line(sentence)
        case MemoryError():
            return ExitCode.ERROR, "there is not enough memory; give it more, or a smaller input"
        case KeyboardInterrupt() | click.Abort():
            return 130, "interrupted; run it again"
        case _:
            from nbspam.serving.passage import bug_or_missing

            return ExitCode.ERROR, bug_or_missing(error)


def _usage(error: click.ClickException) -> str:
    """Return what click says of a wrong command line, in its three lines."""
    shown = io.StringIO()
    error.show(shown)
    return shown.getvalue().rstrip("\n")
