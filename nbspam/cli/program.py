"""The `nbspam` command; each sub-command has its own file, loaded when it is called."""

import importlib
import io
import os
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from nbspam import __version__
from nbspam.errors import ExitCode, UnexpectedEndError

if TYPE_CHECKING:
    from nbspam_main import Passage


class CommandFile(NamedTuple):
    """Where a command is, and its line in the group's help."""

    module: str  # in nbspam.cli
    help: str
    name: str = "command"  # in the module


_ALIASES = {"evaluate": "eval"}


class LazyGroup(click.Group):
    """Commands in files of their own."""

    def __init__(self, *args: Any, files: Mapping[str, CommandFile], **kwargs: Any) -> None:
        """files: name -> file, in the order of the help."""
        super().__init__(*args, **kwargs)
        # For what click suggests in place of a wrong word.
        self.commands.update(dict.fromkeys(files))  # type: ignore[arg-type]
        self._files = files

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._files)

    def summaries(self) -> dict[str, str]:
        """Return what each command does, in the order of the help, as the help lists it."""
        return {name: file.help for name, file in self._files.items()}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        file = self._files.get(cmd_name)
        if file is None:
            return None
        module = importlib.import_module(f"nbspam.cli.{file.module}")
        command: click.Command = getattr(module, file.name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except EOFError as end:  # which click takes for an interrupt
            raise UnexpectedEndError(end) from end

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        return super().resolve_command(ctx, [_ALIASES.get(args[0], args[0]), *args[1:]])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self.summaries().items()))


def each_context(context: click.Context | None = None) -> Iterator[click.Context]:
    """Yield a context for a command and for those below it, in their order; loads them all.

    context: the command's own; by default that of the whole program.
    """
    context = context or nbspam.make_context("nbspam", [], resilient_parsing=True)
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None
            yield from each_context(click.Context(command, context, name))


def run_program(arguments: list[str], passage: "Passage") -> tuple[int, str | None]:
    """Run the program; return its exit code, and the sentence on what went wrong, None if nothing.

    passage: of the message, if `classify` is to pass one through.
    The sentence is empty where silence is wanted, and the help if a command is missing.
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
        return (ExitCode.ERROR, "standard output is closed; open it, or redirect it to /dev/null")
    try:
        returned: Any = nbspam.main(
            arguments, prog_name="nbspam", standalone_mode=False, obj=passage
        )
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 (the message must pass)
        if os.environ.get("NBSPAM_DEBUG"):
            import traceback

            traceback.print_exc()
        from nbspam.cli.notes import outcome

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


# The program comes last: where this file is cut off, there is none, and a message passes unchanged.
_FILES = {
    "train": CommandFile("train", "Train a model on labelled messages"),
    "classify": CommandFile("classify", "Classify messages as spam or ham"),
    "eval": CommandFile("evaluate", "Evaluate the filter on labelled messages"),
    "explain": CommandFile("explain", "Show how much each word of a message contributed"),
    "forget": CommandFile("train", "Unlearn messages", "forget_command"),
    "serve": CommandFile("serve", "Serve SpamAssassin's spamc and other spamd clients"),
    "mail": CommandFile("mail", "Filter the mail of IMAP accounts and Maildirs, and learn from it"),
    "model": CommandFile("model", "Inspect, check, change or prune a model"),
    "config": CommandFile("config", "Print the settings of the config file and their origin"),
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
