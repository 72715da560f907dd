"""The command line: each command in a file of its own, loaded when it is called."""

import importlib
import io
import os
import sys
from typing import Any

import click

from nbspam import __version__
from nbspam.errors import ExitCode, NbspamError

# name -> (module, what `nbspam --help` says of it); the group's help must import no command.
_COMMANDS = {
    "train": ("train", "Learn from labelled messages and write a model"),
    "classify": ("classify", "Say of each message whether it is spam"),
    "eval": ("evaluate", "Measure how good the filter is"),
    "explain": ("explain", "Show what each word of a message brought"),
    "forget": ("forget", "Take learned messages out of a model again"),
    "model": ("model", "Look at a model and check it"),
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
    try:
        if sys.stdout is None:
            _complain("standard output is closed; open it, or send it to /dev/null")
            return ExitCode.ERROR
        returned: Any = nbspam.main(arguments, prog_name="nbspam", standalone_mode=False)
        sys.stdout.flush()
    except NbspamError as error:
        _complain(str(error))
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except BrokenPipeError:
        # Whoever read our output has gone; nobody is left to be told.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.ERROR
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        _complain(f"{name}{error.strerror or error}; see to it and run it again")
        return ExitCode.ERROR
    except ImportError as error:
        _complain(f"a package it needs is missing ({error}); install nbspam anew")
        return ExitCode.ERROR
    except (KeyboardInterrupt, click.Abort):
        _complain("interrupted; nothing was written")
        return 130
    return returned if isinstance(returned, int) else ExitCode.DONE


def _complain(sentence: str) -> None:
    click.echo(f"nbspam: {sentence}", err=True)
