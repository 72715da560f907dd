"""The manual pages, made from the commands and their declarations.

python -m nbspam.cli.manual nbspam-train | man -l -
"""

import re
import sys
import textwrap
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

import click

from nbspam import __version__
from nbspam.cli.configured import sections, whole_text
from nbspam.cli.program import LazyGroup, each_context

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
    "XDG_STATE_HOME": "Where nbspam mail remembers what it has done: in the folder nbspam/mail"
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
    "~/.local/state/nbspam/mail": "What nbspam mail has done with each account: numbers and digests"
    " of messages.  On macOS ~/Library/Application Support/nbspam/mail.",
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
}
_COLUMNS = 78
_Path = tuple[str, ...]  # the words of a command


def manual_pages(date: str) -> dict[str, str]:
    """Return the pages by their file names: roff of the man(7) macros, in ASCII.

    date: of the pages, such as 2026-11-22.
    """
    contexts = list(each_context())
    paths = [tuple(context.command_path.split()) for context in contexts]
    return {
        f"{'-'.join(path)}.1": _page(path, context, paths, date)
        for path, context in zip(paths, contexts, strict=True)
    }


def _page(path: _Path, context: click.Context, paths: Sequence[_Path], date: str) -> str:
    """Return the page of a command; paths: of all commands."""
    name, title, command = " ".join(path), "-".join(path), context.command
    brief = (command.help or "").partition(":")[0]
    if context.parent and isinstance(context.parent.command, LazyGroup):
        brief = context.parent.command.summaries()[path[-1]]
    usage = [f"\\fI{_literal(piece)}\\fR" for piece in command.collect_usage_pieces(context)]
    near = [
        f"{'-'.join(each)}(1)"
        for each in paths
        if each != path and (each == path[: len(each)] or each[:-1] in (path, path[:-1]))
    ]
    variables = ENVIRONMENT | (_OF_SERVE if path[-1] == "serve" else {})
    content: dict[str, list[str]] = {
        "NAME": _filled(f"{_literal(title)} \\- {_prose(brief[:1].lower() + brief[1:])}"),
        "SYNOPSIS": [" ".join((f"\\fB{_literal(name)}\\fR", *usage))],
        "DESCRIPTION": [],
        "COMMANDS": [],
        "OPTIONS": [],
        "EXAMPLES": [],
        "EXIT STATUS": _filled(_STATUS),
        "ENVIRONMENT": list(_terms(variables.items())),
        "FILES": list(_terms(FILES.items())),
        "SEE ALSO": _filled(", ".join(map(_term, [*near, *_OTHERS.get(name, ())]))),
    }
    for paragraph in re.split(r"\n{2,}", whole_text(command)):
        lines = paragraph.removeprefix("\b\n").splitlines()
        if re.match(r"(More e|E)xamples?:", lines[0]):
            content["EXAMPLES"] += _verbatim(lines[1:])
        elif lines[0].startswith("Exit status: "):
            content["EXIT STATUS"] = _filled(_prose(paragraph.removeprefix("Exit status: ")))
        else:
            content["DESCRIPTION"] += [".PP"] * bool(content["DESCRIPTION"])
            flowing = not paragraph.startswith("\b\n")
            content["DESCRIPTION"] += _filled(_prose(paragraph)) if flowing else _verbatim(lines)
    if isinstance(command, LazyGroup):
        pages = [(f"{title}-{below}(1)", f"{text}.") for below, text in command.summaries().items()]
        content["COMMANDS"] += _terms(pages)
    for heading, records in sections(command, context).items():
        content["OPTIONS"] += [f".SS {heading}", *_terms(records)]
    head = f'.TH "{title.upper()}" 1 "{date}" "nbspam {__version__}"'
    # Names of commands and options are neither broken nor spaced out.
    page = [head, ".nh", ".ad l"]
    for heading, lines in content.items():
        page += [f".SH {heading}", *lines] if lines else []
    return "".join(f"{line}\n" for line in page)


def _terms(records: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield terms, such as options, each with its text."""
    for term, text in records:
        yield from (".TP", _term(term), *_filled(_prose(text)))


def _term(term: str) -> str:
    """Return an option, a file or a page with its name in bold."""
    if term.startswith("-"):
        return _prose(term)
    name, bracket, section = term.partition("(")
    return f"\\fB{_literal(name)}\\fR{bracket}{section}"


def _verbatim(lines: Sequence[str]) -> list[str]:
    """Return lines that are shown as they are."""
    shown = textwrap.dedent("\n".join(lines)).splitlines()
    return [".nf", ".RS 2", *(_beginning(_literal(line)) or ".sp" for line in shown), ".RE", ".fi"]


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
    pieces = _TYPED.split(" ".join(text.split()))  # prose, in backquotes, with a dash, prose …
    return "".join(
        (_literal(piece, _ESCAPES) if i % 3 == 0 else f"\\fB{_literal(piece)}\\fR")
        for i, piece in enumerate(pieces)
        if piece
    )


def _literal(text: str, escapes: Mapping[str, str] = _LITERAL) -> str:
    """Return in roff what is typed, or shown, exactly so: `-` is no hyphen, `'` no apostrophe."""
    return "".join(escapes.get(c, c) if c.isascii() else f"\\[u{ord(c):04X}]" for c in text)


if __name__ == "__main__":
    sys.stdout.write(manual_pages(time.strftime("%Y-%m-%d"))[f"{sys.argv[1]}.1"])
