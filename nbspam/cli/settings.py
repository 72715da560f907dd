"""What a config file sets: TOML, and checked as strictly as the command line.

    model = "~/mail.json"      # for every command that has the option
    [classify]                 # for one command; it goes first
    spam-cutoff = 0.99

Keys are the long names of options.  Paths may begin with ~; others are relative to the file.  A
command checks the names of all tables, the keys outside tables, and what it takes; the rest is
checked by the command that takes it, or by `nbspam config`: a wrong line for the server stops no
mail filter.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import click
from click.core import ParameterSource

from nbspam.cli.declared import Option, command_words, config_file, holds, table_of
from nbspam.cli.program import each_context, nbspam
from nbspam.errors import OptionError

# The keys outside tables: of options that several commands have.  A test holds them to the
# declarations: gathering them would load all commands for one message.
SHARED = frozenset(
    "alpha base encoding event-model format ham-cost ham-cutoff jobs junk label-column"
    " lines log max-ham-blocked model move-taught outside prior quiet scoring"
    " shared-variance spam-cutoff spam-label strict text-column traits trust-after"
    " unsure-keyword variance-prior variance-smoothing".split()
)

_LARGEST = 1 << 20  # bytes of a config file
_ITSELF = "config"  # the command that prints a file takes nothing of it


class Settings(NamedTuple):
    """A config file, parsed."""

    path: str
    text: str
    document: dict[str, Any]

    def where(self, table: str, key: str) -> str:
        """Return the file and, if it can be told, the line of a key: `config.toml:3`.

        table: "" outside tables.  key: "" for the head of the table.
        """
        current, lines = "", []
        for number, line in enumerate(self.text.splitlines(), 1):
            if head := re.match(r"\s*\[+\s*[\"']?([^\"'\]]*?)[\"']?\s*\]", line):
                current = head[1]
                lines += [number] if not key and current == table else []
            elif key and current == table:
                found = re.match(r"\s*[\"']?([\w-]+)[\"']?\s*[=.]", line)
                lines += [number] if found and found[1] == key else []
        return f"{self.path}:{lines[0]}" if len(lines) == 1 else self.path


class Setting(NamedTuple):
    """What a file sets for a command."""

    table: str  # "" outside tables
    key: str
    value: Any  # as the option takes it from the command line

    @property
    def name(self) -> str:
        """How the documentation writes it: `jobs`, `[classify] jobs`."""
        return f"[{self.table}] {self.key}" if self.table else self.key


def read_settings(path: str) -> Settings:
    """Read a config file; raises OptionError."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # not to wait at a named pipe
        try:
            _check_file(path, os.fstat(handle))
            content = os.read(handle, _LARGEST)
        finally:
            os.close(handle)
    except OSError as error:
        raise OptionError(
            f"{path}: cannot read the config file ({error.strerror}); fix it, name another with"
            " NBSPAM_CONFIG, or set NBSPAM_CONFIG to an empty string for none"
        ) from error
    try:
        text = content.decode()
        document = plain_document(text)
        if document is None:
            import tomllib  # which most files do without

            document = tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise OptionError(
            f"{path}:{line}: byte {content[error.start]:#04x} is not UTF-8, which TOML must be;"
            " save the file as UTF-8"
        ) from error
    except (ValueError, RecursionError) as error:
        hint = ""
        if re.search(rb"^\s*\[\s*model\s*\.", content, re.MULTILINE):
            hint = "; the table of nbspam model prune is [model-prune]"
        what = "that line" if "line" in str(error) else "it"
        raise OptionError(f"{path}: invalid TOML ({error}){hint}; correct {what}") from error
    return Settings(path, text, document)


def _check_file(path: str, status: os.stat_result) -> None:
    """Raise OptionError for what is no file of settings, or what somebody else may have written.

    Group-writable is usual where each user has a group.  NBSPAM_CONFIG names any owner's.
    """
    if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
        raise OptionError(
            f"{path}: a config file is a regular file of at most 1 MiB; name such a file with"
            " NBSPAM_CONFIG, or set NBSPAM_CONFIG to an empty string for none"
        )
    if status.st_mode & stat.S_IWOTH:
        raise OptionError(f"{path}: everybody can write to this config file; run chmod o-w on it")
    if "NBSPAM_CONFIG" not in os.environ and status.st_uid not in (0, os.geteuid()):
        raise OptionError(
            f"{path}: this config file belongs to another user; name it with NBSPAM_CONFIG to use"
            " it, or set NBSPAM_CONFIG to an empty string for none"
        )


def defaults(path: str, context: click.Context, typed: set[str]) -> dict[str, Any]:
    """Return the default of each parameter that a file sets for the context's command.

    typed: the parameters on the command line.  Raises OptionError.
    """
    settings = read_settings(path)
    check_names(settings)
    found = settings_of(settings, context)
    options = options_of(context)
    return {
        name: setting.value
        for name, setting in found.items()
        if holds(options[setting.key], context.command, typed)
    }


def options_of(context: click.Context) -> dict[str, Option]:
    """Return the options of a command by their keys."""
    return {each.key: each for each in context.command.params if isinstance(each, Option)}


def settings_of(settings: Settings, context: click.Context) -> dict[str, Setting]:
    """Return what a file sets for the context's command, parameter -> setting.

    Raises OptionError for a wrong key or value; `check_names` is not repeated.
    """
    table, options = table_of(context), options_of(context)
    own = settings.document.get(table)
    found: dict[str, Setting] = {}
    for place, values in (("", settings.document), (table, own if isinstance(own, dict) else {})):
        for key, value in values.items():
            if not place and (isinstance(value, dict) or key not in options):
                continue  # a table, or an option of other commands
            reason = options[key].declared.typed if key in options else ""
            if reason and not place:
                continue
            if key not in options or reason:
                raise _wrong_key(settings, table, key, options)
            option = options[key]
            value = _checked(settings, place, option, value, context)
            found[option.name or key] = Setting(place, key, value)
    chosen = {
        options[setting.key].declared.choice for setting in found.values() if setting.table
    } - {""}
    return {
        name: setting
        for name, setting in found.items()
        if setting.table or options[setting.key].declared.choice not in chosen
    }


def check_names(settings: Settings) -> None:
    """Raise OptionError for a table of no command, or a key outside tables that none shares."""
    tables = set()
    for key, value in settings.document.items():
        if not isinstance(value, dict) or key == "model":
            if key not in SHARED or isinstance(value, dict):
                raise _wrong_top(settings, key, value)
            continue
        tables.add(key)
    for table in sorted(tables):
        if not _is_of_command(table):
            known = [table_of(context) for context in command_contexts()]
            raise OptionError(
                f"{settings.where(table, '')}: [{table}]: unknown command;"
                f" {_suggestion(table, known)}"
            )


def _is_of_command(table: str) -> bool:
    """Return whether a table is of a command; loads at most a group of commands."""
    context = click.Context(nbspam)
    if table in nbspam.list_commands(context):
        return table != _ITSELF
    first, _, rest = table.partition("-")
    group = nbspam.get_command(context, first)
    return isinstance(group, click.Group) and rest in group.list_commands(context)


def command_contexts() -> Iterator[click.Context]:
    """Yield a context for each command that a file sets options of; loads all commands."""
    for context in each_context():
        if not isinstance(context.command, click.Group) and context.info_name != _ITSELF:
            yield context


def _wrong_top(settings: Settings, key: str, value: object) -> OptionError:
    """Return the error of a key outside tables."""
    if isinstance(value, dict):
        heads = [f"model.{name}" for name in value]
        places = [settings.where(head, "") for head in [*heads, "model"]]
        where = next((place for place in places if place != settings.path), settings.path)
        return OptionError(
            f"{where}: model is the model file; write [model-prune] for the table of nbspam model"
            " prune"
        )
    where = settings.where("", key)
    options = (options_of(context).get(key) for context in command_contexts())
    if reason := next((o.declared.typed for o in options if o and o.declared.typed), ""):
        return _must_be_typed(where, key, reason)
    return OptionError(
        f"{where}: {key}: unknown option ({_suggestion(key, SHARED)}); correct it, or put it in the"
        " table of its command"
    )


def _wrong_key(settings: Settings, table: str, key: str, options: dict[str, Option]) -> OptionError:
    """Return the error of a key in the table of a command."""
    where = settings.where(table, key)
    if key in options:
        return _must_be_typed(where, f"[{table}] {key}", options[key].declared.typed)
    known = [name for name, option in options.items() if not option.declared.typed]
    command = command_words(table)
    return OptionError(
        f"{where}: unknown option --{key} of nbspam {command}; {_suggestion(key, known)}"
    )


def _must_be_typed(where: str, name: str, reason: str) -> OptionError:
    return OptionError(
        f"{where}: {name} cannot be set in a file, because {reason}; use it on the command line"
    )


def _suggestion(name: str, known: Iterable[str]) -> str:
    """Return the remedy of an unknown name."""
    import difflib

    names = sorted(known)
    close = difflib.get_close_matches(name.replace("_", "-"), names, 1)
    return f"did you mean {close[0]}?" if close else f"choose one of {', '.join(names)}"


def _checked(
    settings: Settings, place: str, option: Option, value: Any, context: click.Context
) -> Any:
    """Return a value as the option takes it; raises OptionError for one that it refuses."""
    key, (kinds, kind, example) = option.key, _kind(option)
    values = value if option.multiple and isinstance(value, list) else [value]
    if option.multiple and not isinstance(value, list):
        wrong = f"must be an array; write {key} = [{example}]"
    elif not all(type(each) in kinds for each in values):
        wrong = f"must be {kind}; write it as in {key} = {example}"
    elif any(isinstance(each, str) and "\0" in each for each in values):
        wrong = "contains a NUL character; leave it out"
    else:
        if isinstance(option.type, click.Path):
            values = [absolute_path(each, settings.path) for each in values]
        try:
            taken = values if option.multiple else values[0]
            option.process_value(context, taken)
            return taken
        except click.UsageError as error:
            wrong = f"{error.message.rstrip('.')}; correct it, or leave it out for the default"
        except OptionError as error:
            wrong = error.problem
    raise OptionError(f"{settings.where(place, key)}: {key}: {wrong}")


def _kind(option: click.Option) -> tuple[tuple[type, ...], str, str]:
    """Return the types of an option's values in TOML, what they are called, and an example."""
    if option.is_flag:
        return (bool,), "true or false", "true"
    if isinstance(option.type, click.types.IntParamType):
        return (int,), "an integer", "2"
    if isinstance(option.type, click.types.FloatParamType):
        return (int, float), "a number", "0.5"
    first = next(iter(option.type.choices)) if isinstance(option.type, click.Choice) else "…"
    return (str,), "a string in quotes", f'"{first}"'


def absolute_path(path: str, file: str) -> str:
    """Return a path with ~ expanded; a relative one is in the folder of the config file."""
    if path.startswith("~"):
        path = os.path.expanduser(path)  # noqa: PTH111
    return os.path.join(os.path.dirname(os.path.abspath(file)), path)  # noqa: PTH100, PTH118, PTH120


def with_origin(error: OptionError, context: click.Context) -> OptionError:
    """Return an error of a command with the lines of the config file that it is of, if any."""
    path = config_file()
    if path is None:
        return error
    settings, sentence = read_settings(path), _letters(error.problem)
    places = [
        f"{settings.where(setting.table, setting.key)}: {setting.key}"
        for name, setting in settings_of(settings, context).items()
        if context.get_parameter_source(name) is ParameterSource.DEFAULT_MAP
        and _letters(setting.key) in sentence
    ]
    if not places:
        return error
    return OptionError(f"{', '.join(places)}: {error.problem}", error.remedy, **error.values)


def _letters(text: str) -> str:
    """Return a text's letters: `spam cut-off` and `--spam-cutoff` are one."""
    return re.sub("[^a-z]", "", text.lower())


# Plain TOML, read without `tomllib`: `[table]`, and `key = value` of the simplest kinds.  What is
# anything else is left to `tomllib`, so both give the same; a test holds them together.  It stays
# because `tomllib` costs a mail 5.5 ms, and this 0.05; one pattern for a line would cost 0.6.


def plain_document(text: str) -> dict[str, Any] | None:
    """Return a document as `tomllib` does; None if it is not so plain."""
    document: dict[str, Any] = {}
    values = document
    for line in text.split("\n"):
        line = line.strip(" \t")
        if not line.isprintable():
            return None
        if not line or line[0] == "#":
            continue
        key, equals, written = line.partition("=")
        key, value, into = key.rstrip(" \t"), _plain_value(written.lstrip(" \t")), values
        if line[0] == "[" and line[-1] == "]" and not equals:
            key, value, into = line[1:-1], {}, document
            values = value
        is_bare = key.isascii() and key.replace("-", "").replace("_", "").isalnum()
        if value is None or not is_bare or key in into:
            return None
        into[key] = value
    return document


def _plain_value(written: str) -> Any:
    """Return a value; None if it is not plain."""
    if written[:1] == '"':
        text = written[1:-1]
        is_plain = len(written) > 1 and written[-1] == '"' and not {'"', "\\"} & set(text)
        return text if is_plain else None
    if written in ("true", "false"):
        return written == "true"
    whole, dot, part = written.partition(".")
    digits = [whole, part] if dot else [whole]
    if not all(each.isascii() and each.isdigit() and len(each) < 16 for each in digits):
        return None
    if whole[0] == "0" and whole != "0":
        return None
    return float(written) if dot else int(whole)
