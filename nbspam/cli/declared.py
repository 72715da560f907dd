"""One option, one declaration: a default of a command's function, or of a field of its records.

    @section("Cut-offs")
    class Cutting(NamedTuple):
        spam_cutoff: float | None = option("Classify as spam when …", takes=PROBABILITY, …)

    @configured("classify", check=_check)
    def command(*, cutting: Cutting, quiet: bool = QUIET) -> int: …

A command has the options of the records that its parameters are annotated with, and of its own;
their defaults come from the user's config file.  All else follows from the declarations: click's
options, the sections of --help and of the manual, what --help leaves to --help-all, the checks
between options, what a config file may set and when its values hold.
"""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import click
from click.core import ParameterSource

# Why an option must be typed: a config file holds how commands work, not what one run does.
READS = "it says what a run reads"
WRITES = "it names a file that a run writes"
OVERWRITES = "it lets a run overwrite or count twice"
DECIDES = "it decides what a run does"
PROMISES = "it promises what happens if anything fails, a config file too"

MORE = "More"
# The sections of --help, in their order.
SECTIONS = (
    *("Sources", "Mail", "Sockets", "Serving", "Test"),
    *("Model", "Cut-offs", "Output", MORE),
)
_GROUPS = ("mail", "model")  # commands that consist of others

RecordType = TypeVar("RecordType", bound=type)
Options = TypeVar("Options", bound=Any)  # a NamedTuple of options


class Declaration(NamedTuple):
    """What `option` or `argument` says, whose parameters these are."""

    names: tuple[str, ...]  # none of an argument
    of_click: Mapping[str, Any]
    under: str = ""
    seldom: bool = False
    needs: str = ""
    enables: str = ""
    excludes: str = ""
    overrules: str = ""
    choice: str = ""
    formats: Collection[str] | None = None
    typed: str = ""
    example: str = ""

    def parameter(self, field: str, kind: object, section: str) -> click.Parameter:
        """Return what click takes; kind: the annotation; section: of the record."""
        if not self.names:
            argument = Argument([field], **self.of_click)
            argument.declared = self
            return argument
        words, kinds = dict(self.of_click), getattr(kind, "__args__", (kind,))  # `X | None`
        if words["type"] is None:
            words["type"] = next((each for each in kinds if each in (int, float)), None)
            words["multiple"] = ... in kinds
            if bool in kinds:  # False, given outright, would make the value optional
                words["is_flag"] = True
        long = () if self.names[-1][:2] == "--" else (f"--{field.replace('_', '-')}",)
        option = Option([field, *filter(None, self.names), *long], **words)
        option.declared, option.section = self, self.under or section
        return option


class Argument(click.Argument):
    """What a command is given without the name of an option."""

    declared: Declaration


class Option(click.Option):
    """An option that was declared."""

    declared: Declaration
    section: str

    @property
    def flag(self) -> str:
        """The long name, `--spam-cutoff`; without the hyphens it is the key in a config file."""
        return max(self.opts, key=len)

    @property
    def key(self) -> str:
        """The key in a config file."""
        return self.flag[2:]


def option(
    text: str, typed_as: str = "", *, takes: "click.ParamType[Any] | None" = None, **beside: Any
) -> Any:
    """Declare an option; the annotation says if it is a flag, a number, or repeatable.

    text: its help.  takes: what its values are, if no bool, int, float or str.
    typed_as: `P`, what its value is called; before that other names than the parameter's, or beside
    it: `-m FILE`, `--format`.
    Beside these, what click takes, and:
    under: its section in --help, if not that of its record.
    seldom: whether only --help-all shows it.
    needs: the option without which it is refused, and its value in a config file does not hold.
    enables: options whose values in a config file hold only where one is typed that enables them.
    excludes: options (several in one string) that it cannot be used with.
    overrules: options whose value in a config file does not hold where this one is typed.
    choice: the name of what it decides; one that is typed, or in the command's own table, puts the
    others of the same choice in a file out of force.
    formats: those that it is of, if it has no use with others.
    typed: why it must be typed, if no config file may set it.
    example: a value to try, where others need this option and it takes one.
    """
    words = typed_as.split()
    own = {name: beside.pop(name) for name in Declaration._fields if name in beside}
    default = beside.get("default")
    of_click = {
        "help": text,
        "type": takes,
        "metavar": next((word for word in words if word[0] != "-"), None),
        "show_default": bool(default) and default is not True,
        **beside,
    }
    return Declaration(tuple(word for word in words if word[0] == "-") or ("",), of_click, **own)


def argument(metavar: str, overrules: str = "", **of_click: Any) -> Any:
    """Declare what is given without the name of an option; overrules: as of `option`."""
    return Declaration((), {"metavar": metavar, **of_click}, overrules=overrules)


def section(heading: str) -> Callable[[RecordType], RecordType]:
    """Return a decorator that puts the options of a record under a heading of --help."""

    def decorate(record: RecordType) -> RecordType:
        record.section = heading  # type: ignore[attr-defined]
        return record

    return decorate


def set_by_file(names: Iterable[str]) -> frozenset[str]:
    """Return those of the running command's parameters that a config file set."""
    context, file = click.get_current_context(), ParameterSource.DEFAULT_MAP
    return frozenset(name for name in names if context.get_parameter_source(name) is file)


def without_settings(record: Options) -> Options:
    """Return a record of options with None for those that a config file set."""
    unset: dict[str, Any] = dict.fromkeys(set_by_file(record._fields))
    replaced: Options = record._replace(**unset)
    return replaced


def is_typed(parameter: str) -> bool:
    """Return whether an option of the running command was given on the command line."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source is ParameterSource.COMMANDLINE


def typed_without_use(form: str | None) -> Iterator[str]:
    """Yield the options that were typed, and are of other formats of the sources than this.

    What a config file sets is a default, for sources of any format, and is never refused.
    """
    context = click.get_current_context()
    for each in context.command.params:
        if not isinstance(each, Option) or each.declared.formats is None:
            continue
        name = each.name or ""
        if form not in each.declared.formats and is_typed(name) and context.params[name]:
            yield each.flag


# The config file, as far as one message needs it: where it is, and when its values hold


def config_file() -> str | None:
    """Return the config file to read: $NBSPAM_CONFIG, else the user's if there is one.

    An empty $NBSPAM_CONFIG is for none.  A folder that cannot be searched has none: a daemon may
    have been started with the HOME of root.
    """
    path = config_place()
    if path is None or "NBSPAM_CONFIG" in os.environ:
        return path
    try:
        os.stat(path)  # noqa: PTH116 (no pathlib for one message)
    except OSError:
        return None
    return path


def config_place() -> str | None:
    """Return where the config file is, or would be; None for none.

    On macOS, too, it is in ~/.config, where users of git, uv or ruff look for what they edit.
    """
    named = os.environ.get("NBSPAM_CONFIG")
    if named is not None:
        return named or None
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    if not folder.startswith("/"):  # a relative one is to be ignored, says its specification
        home = os.path.expanduser("~").rstrip("/")  # noqa: PTH111
        if home.startswith("~"):  # there is none
            return None
        folder = f"{home}/.config"
    return f"{folder.rstrip('/')}/nbspam/config.toml"


def table_of(context: click.Context) -> str:
    """Return the table of a command: `classify`, `model-prune`."""
    return context.command_path.removeprefix("nbspam ").replace(" ", "-")


def command_words(table: str) -> str:
    """Return a command as it is typed, by its table: `classify`, `model prune`."""
    first, hyphen, rest = table.partition("-")
    return f"{first} {rest}" if hyphen and first in _GROUPS else table


def holds(each: Option, of: click.Command, typed: Iterable[str]) -> bool:
    """Return whether a config file's value holds for an option of a command.

    typed: the parameters that are typed.  A default must not make a command fail that is right
    without it.
    """
    names, flag, rules = set(typed), each.flag, each.declared
    others = [p for p in of.params if isinstance(p, Option | Argument) and p.name in names]
    flags = {other.flag for other in others if isinstance(other, Option)}
    ways = {
        p.flag for p in of.params if isinstance(p, Option) and flag in p.declared.enables.split()
    }
    ways |= set(filter(None, [rules.needs]))
    if (ways and not ways & flags) or flags & set(rules.excludes.split()):
        return False
    return not any(
        flag in f"{other.declared.excludes} {other.declared.overrules}".split()
        or (rules.choice and rules.choice == other.declared.choice)
        for other in others
    )
