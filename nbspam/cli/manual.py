"""What is made from the commands and their declarations: manual pages, reference, lists of names.

    python -m nbspam.cli.manual nbspam-train | man -l -
    python -m nbspam.cli.manual        # writes docs/commands.md and the lists

The lists stand where a message cannot wait for all commands to be loaded, or for click.  A test
holds the files to what this writes.
"""

import re
import sys
import textwrap
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import click

from nbspam import __version__
from nbspam.cli.classify import command as classify
from nbspam.cli.configured import Command, sections, whole_text
from nbspam.cli.program import LazyGroup, each_command, nbspam
from nbspam.cli.settings import command_contexts, options_of

# What a command reads of its environment, beside what its options say; a test compares the names
# with the program's.
ENVIRONMENT = {
    "NBSPAM_MODEL": "The model file, if the command line names none.",
    "NBSPAM_BASE": "The base that the model is read through, if the command line names none.",
    "XDG_DATA_HOME": "Where the default model is: in the folder nbspam below it, in place of"
    " ~/.local/share.  Not on macOS.",
    "NBSPAM_CONFIG": "The config file, in place of the user's; if empty, none.",
    "XDG_CONFIG_HOME": "Where the user's config file is: in the folder nbspam below it, in place of"
    " ~/.config.",
    "XDG_STATE_HOME": "Where nbspam imap remembers what it has done: in the folder nbspam/imap"
    " below it, in place of ~/.local/state.  Not on macOS.",
    "NBSPAM_DEBUG": "If set, a traceback is printed with an error.",
    "NO_COLOR": "If set, nothing is coloured.",
    "COLUMNS": "The width of the terminal, in place of what it says.",
    "LOGNAME": "The user whom --log names.  Without it USER, and without that the number.",
    "USER": "See LOGNAME.",
}
_OF_SERVE = {
    "LISTEN_FDS": "With LISTEN_PID: the sockets that systemd passes (sd_listen_fds(3)).",
    "LISTEN_PID": "The process that these sockets are for.",
    "NOTIFY_SOCKET": "Where systemd is told that the server is ready (sd_notify(3)).",
}
FILES = {
    "~/.config/nbspam/config.toml": "Defaults of options; nbspam config prints what holds.",
    "~/.local/share/nbspam/model.json": "The model, if neither the command line nor the environment"
    " names one.  On macOS ~/Library/Application Support/nbspam/model.json.",
    "~/.local/state/nbspam/imap": "What nbspam imap has done with each account: numbers and digests"
    " of messages.  On macOS ~/Library/Application Support/nbspam/imap.",
}
_STATUS = (
    "0 on success, 1 on an error, 2 when the command line is wrong, 75 when another program holds"
    " the model's lock for too long."
)
# Pages of other programs, by the command that works with them.
_OTHERS = {
    "nbspam": ("bogofilter(1)", "procmailrc(5)", "spamc(1)"),
    "nbspam classify": ("bogofilter(1)", "maildropfilter(7)", "procmailrc(5)"),
    "nbspam serve": ("spamc(1)", "systemd.socket(5)"),
    "nbspam model export": ("bogoutil(1)",),
    "nbspam model import": ("bogoutil(1)",),
}
_COLUMNS = 78
_INTRODUCTION = """\
# Commands

Written by `python -m nbspam.cli.manual`; a test holds it to the program.  Every command also
prints its part with `--help`.
"""
_WIDTH = 100
_ROOT = Path(__file__).parents[2]


def manual_pages(date: str) -> dict[str, str]:
    """Return the pages by their file names: roff of the man(7) macros, in ASCII.

    date: of the pages, such as 2026-11-22.
    """
    commands = dict(each_command(nbspam, ("nbspam",)))
    return {
        f"{'-'.join(path)}.1": "".join(f"{line}\n" for line in _page(path, commands, date))
        for path in commands
    }


def _page(
    path: tuple[str, ...], commands: Mapping[tuple[str, ...], click.Command], date: str
) -> Iterator[str]:
    name, command = " ".join(path), commands[path]
    context = click.Context(command, info_name=name, help_option_names=["-h", "--help"])
    description, examples, status = _parts(command)
    title = "-".join(path)
    yield f'.TH "{title.upper()}" 1 "{date}" "nbspam {__version__}"'
    yield from (".nh", ".ad l")  # names of commands and options are neither broken nor spaced out
    yield from _section("NAME", _filled(f"{_literal(title)} \\- {_prose(_name(path, commands))}"))
    usage = [f"\\fI{_literal(piece)}\\fR" for piece in command.collect_usage_pieces(context)]
    yield from _section("SYNOPSIS", [" ".join((f"\\fB{_literal(name)}\\fR", *usage))])
    yield from _section("DESCRIPTION", _paragraphs(description))
    if isinstance(command, LazyGroup):
        pages = [(f"{title}-{name}(1)", f"{text}.") for name, text in command.summaries().items()]
        yield from _section("COMMANDS", _terms(pages))
    found = sections(command, context)
    options: list[str] = []
    for heading, records in found.items():
        options += [f".SS {heading}"] * (len(found) > 1) + list(_terms(records))
    yield from _section("OPTIONS", options)
    yield from _section("EXAMPLES", _verbatim(examples) if examples else [])
    yield from _section("EXIT STATUS", _filled(_prose(status)))
    variables = ENVIRONMENT | (_OF_SERVE if path[-1] == "serve" else {})
    yield from _section("ENVIRONMENT", _terms(variables.items()))
    yield from _section("FILES", _terms(FILES.items()))
    yield from _section("SEE ALSO", _filled(", ".join(_see_also(path, commands))))


def _name(path: tuple[str, ...], commands: Mapping[tuple[str, ...], click.Command]) -> str:
    """Return what a command does, as `whatis` lists it."""
    above = commands.get(path[:-1])
    if isinstance(above, LazyGroup):
        text = above.summaries()[path[-1]]
    else:
        text = (commands[path].help or "").partition(":")[0]
    return text[:1].lower() + text[1:]


def _parts(command: click.Command) -> tuple[list[str], list[str], str]:
    """Return a help text's paragraphs, the lines of its examples, and its exit status."""
    description: list[str] = []
    examples: list[str] = []
    status = _STATUS
    for paragraph in re.split(r"\n{2,}", whole_text(command)):
        lines = paragraph.removeprefix("\b\n").splitlines()
        if re.match(r"Examples?:", lines[0]):
            examples = lines[1:]
        elif lines[0].startswith("Exit status: "):
            status = " ".join(paragraph.split()).removeprefix("Exit status: ")
        else:
            description.append(paragraph)
    return description, examples, status


def _see_also(path: tuple[str, ...], pages: Iterable[tuple[str, ...]]) -> list[str]:
    """Return the pages of the commands above, below and beside one, and those of others."""
    near = [
        f"{'-'.join(each)}(1)"
        for each in pages
        if each != path and (each == path[: len(each)] or each[:-1] in (path, path[:-1]))
    ]
    return [_term(page) for page in (*near, *_OTHERS.get(" ".join(path), ()))]


def _section(heading: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield a section; nothing if it has no lines."""
    content = list(lines)
    if content:
        yield f".SH {heading}"
        yield from content


def _paragraphs(paragraphs: Sequence[str]) -> Iterator[str]:
    """Yield paragraphs of a help text; click's \\b begins one whose lines stay."""
    for i, paragraph in enumerate(paragraphs):
        if i:
            yield ".PP"
        if paragraph.startswith("\b\n"):
            yield from _verbatim(paragraph.removeprefix("\b\n").splitlines())
        else:
            yield from _filled(_prose(" ".join(paragraph.split())))


def _terms(records: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield terms, such as options, each with its text."""
    for term, text in records:
        yield ".TP"
        yield _term(term)
        yield from _filled(_prose(" ".join(text.split())))


def _term(term: str) -> str:
    """Return an option, a file or a page with its name in bold and its value in italics."""
    if not term.startswith("-"):
        name, bracket, section = term.partition("(")
        return f"\\fB{_literal(name)}\\fR{bracket}{section}"
    pieces = re.split(r"(?<![\w-])(--?\w[\w-]*)", term)
    return "".join(
        f"\\fB{_literal(piece)}\\fR" if i % 2 else re.sub("[^ ,/].*", _italic, piece)
        for i, piece in enumerate(pieces)
    )


def _italic(value: re.Match[str]) -> str:
    text = value[0].rstrip(" ,/")
    return f"\\fI{_literal(text)}\\fR{value[0][len(text) :]}"


def _verbatim(lines: Sequence[str]) -> Iterator[str]:
    """Yield lines that are shown as they are."""
    yield ".nf"
    yield ".RS 2"
    for line in textwrap.dedent("\n".join(lines)).splitlines():
        yield _beginning(_literal(line)) or ".sp"
    yield ".RE"
    yield ".fi"


def _filled(text: str) -> list[str]:
    """Return roff text in lines, none of which is taken for a request."""
    lines = textwrap.wrap(text, _COLUMNS, break_long_words=False, break_on_hyphens=False)
    return [_beginning(line) for line in lines]


def _beginning(line: str) -> str:
    return f"\\&{line}" if line.startswith((".", "'")) else line


# What begins with a dash, or stands in backquotes, is typed as it stands: a literal.
_TYPED = re.compile(r"`([^`]+)`|(?<![\w-])(--?[a-zA-Z][\w-]*)")
_ESCAPES = {"\\": "\\e", "~": "\\(ti", "^": "\\(ha", "`": "\\(ga"}
_LITERAL = _ESCAPES | {"-": "\\-", "'": "\\(aq", '"': "\\(dq"}


def _prose(text: str) -> str:
    """Return running text in roff, with what is typed in bold."""
    pieces = _TYPED.split(text)  # prose, in backquotes, with a dash, prose …
    return "".join(
        (_escaped(piece, _ESCAPES) if i % 3 == 0 else f"\\fB{_literal(piece)}\\fR")
        for i, piece in enumerate(pieces)
        if piece
    )


def _literal(text: str) -> str:
    """Return in roff what is typed, or shown, exactly so: `-` is no hyphen, `'` no apostrophe."""
    return _escaped(text, _LITERAL)


def _escaped(text: str, escapes: Mapping[str, str]) -> str:
    return "".join(escapes.get(c, c) if c.isascii() else f"\\[u{ord(c):04X}]" for c in text)


# The reference, and the lists


def page() -> str:
    """Return the reference as Markdown."""
    parts = [_INTRODUCTION]
    for path, command in each_command(nbspam, ("nbspam",)):
        context = click.Context(
            command,
            info_name=" ".join(path),
            terminal_width=_WIDTH,
            max_content_width=_WIDTH,
            help_option_names=nbspam.context_settings["help_option_names"],
        )
        shown = (
            command.whole_help(context)
            if isinstance(command, Command)
            else command.get_help(context)
        )
        text = "\n".join(line.rstrip() for line in shown.splitlines())
        parts.append(f"## {' '.join(path)}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def files(root: Path = _ROOT) -> dict[Path, str]:
    """Return the files that are made from the declarations, in whole or in part.

    root: of the project, which has more than is installed.
    """
    main, settings = (root / name for name in ("nbspam_main.py", "nbspam/cli/settings.py"))
    valued = [name for each in classify.options() if not each.is_flag for name in each.opts]
    keys = Counter(
        key
        for context in command_contexts()
        for key, option in options_of(context).items()
        if not option.declared.typed
    )
    shared = sorted(key for key, n in keys.items() if n > 1)
    return {
        root / "docs/commands.md": page(),
        main: _with_list(main.read_text("utf-8"), "VALUED", valued),
        settings: _with_list(settings.read_text("utf-8"), "SHARED", shared),
    }


def _with_list(source: str, name: str, words: Iterable[str]) -> str:
    """Return a module with other words in its set of this name."""
    lines = textwrap.wrap(" ".join(words), 84, break_on_hyphens=False)
    block = "\n".join(f'    "{" " if i else ""}{line}"' for i, line in enumerate(lines))
    return re.sub(
        rf"^{name} = frozenset\(.*?\.split\(\)\n?\)$",
        lambda _: f"{name} = frozenset(\n{block}.split()\n)",
        source,
        count=1,
        flags=re.MULTILINE | re.DOTALL,
    )


if __name__ == "__main__":
    if page_name := "".join(sys.argv[1:]):
        sys.stdout.write(manual_pages(time.strftime("%Y-%m-%d"))[f"{page_name}.1"])
    else:
        for path, text in files().items():
            path.write_text(text, "utf-8")
