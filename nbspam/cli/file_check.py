"""What a config file sets and a command would refuse, found by running the checks of all commands.

Each command is called as on a command line that lets the file's values hold, up to the end of its
own checks (`checked` in `configured.py`): nothing is read or written but the head of the model.
"""

import click

from nbspam.cli.config_file import table_of
from nbspam.cli.configured import CHECKED, ONLY_CHECKED
from nbspam.cli.cut_off_options import Cutting
from nbspam.cli.options import (
    default_model,
)
from nbspam.cli.setting_origin import with_origin
from nbspam.cli.settings import Settings, command_contexts, settings_of
from nbspam.errors import ModelError, OptionError
from nbspam.store.lookup import Lookup

# Table -> what may be typed beside the file, so that each of its values holds in some way; a test
# holds it to `settings.py`.
WAYS: dict[str, tuple[tuple[str, ...], ...]] = {
    "classify": ((), ("--passthrough",)),
    "train": ((), ("--on-error",)),
    "eval": (
        (),
        ("--leave-one-out",),
        ("--folds", "2"),
        ("--train-first", "1"),
        ("--online",),
        ("--compare", "all"),
    ),
    "imap-filter": ((), ("--learn",)),
    "imap-watch": ((), ("--learn",)),
    "model-import": (("-",),),  # the name of its FILE
}
# Tables of commands that judge with the saved model, if nothing is typed.
_JUDGING = ("classify", "explain", "eval", "serve", "imap-filter", "imap-watch")


def check_values(settings: Settings) -> None:
    """Raise OptionError for values that a command would refuse, together or with its model."""
    for context in command_contexts():
        found = settings_of(settings, context)
        if hasattr(context.command.callback, CHECKED) and found:
            _check_command(settings, context, "model" in found or _has_default_model())


def _check_command(settings: Settings, command: click.Context, has_model: bool) -> None:
    """Raise OptionError for values that one command would refuse.

    has_model: whether a model is named; without one and without a home folder nothing is checked,
    for the command would ask for a model first.
    """
    table = table_of(command)
    for typed in WAYS.get(table, ((),)) if has_model else ():
        context = command.command.make_context(
            command.info_name, list(typed), parent=command.parent
        )
        context.meta[ONLY_CHECKED] = True
        try:
            with context:
                context.command.invoke(context)
                if table in _JUDGING and not typed:
                    _check_with_model(context)
        except OptionError as error:
            if error.problem.startswith(settings.path):
                raise
            words = " ".join(("nbspam", *table.split("-", 1), *typed))
            raise OptionError(
                f"{settings.path}: {words}: {error.problem}", error.remedy, **error.values
            ) from error


def _check_with_model(context: click.Context) -> None:
    """Raise OptionError for cut-offs that are wrong with the command's model, if there is one."""
    model = context.params["model"]
    names = ("spam_cutoff", "ham_cutoff", "ham_cost")
    spam, ham, cost = (context.params[name] for name in names)
    cutting = Cutting(spam, ham, cost, frozenset(names))
    try:
        with Lookup(model) as lookup:
            cutting.of(lookup.metadata)
    except OptionError as error:
        raise with_origin(error, context) from error
    except (ModelError, OSError):
        return  # there is none, or the command says what is wrong with it


def _has_default_model() -> bool:
    try:
        return bool(default_model())
    except OptionError:
        return False
