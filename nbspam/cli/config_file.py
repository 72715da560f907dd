"""Where the user's config file is, and what it may set; `settings.py` reads it.

A file holds how commands work, not what one run does: what must be typed is in `TYPED`.
"""

import os

import click

_READS = "it says what a run reads"
_WRITES = "it names a file that a run writes"
_OVERWRITES = "it lets a run overwrite or count twice"
_DECIDES = "it decides what a run does"
_PROMISES = "it promises what happens if anything fails, a config file too"

# Options that no file sets, by their keys, or `TABLE.KEY` of one command -> why.
TYPED = {
    "spam": _READS,
    "ham": _READS,
    "label": _READS,
    "output": _WRITES,
    "predictions": _WRITES,
    "plot": _WRITES,
    "report": _WRITES,
    "input-format": _READS,
    "header-row": _READS,
    "replace": _OVERWRITES,
    "allow-overlap": _OVERWRITES,
    "update": _DECIDES,
    "learn": _DECIDES,
    "train.on-error": _DECIDES,
    "including-learned": _DECIDES,
    "words": _DECIDES,
    "dry-run": _DECIDES,
    "mark": _DECIDES,
    "all": _DECIDES,
    "leave-one-out": _DECIDES,
    "folds": _DECIDES,
    "train-first": _DECIDES,
    "online": _DECIDES,
    "compare": _DECIDES,
    "dask": _DECIDES,
    "no-ledger": _DECIDES,
    "model-set.spam-cutoff": _DECIDES,
    "model-set.ham-cutoff": _DECIDES,
    "model-set.ham-cost": _DECIDES,
    # nbspam_main.py reads these from the arguments, before anything can fail.
    "passthrough": _PROMISES,
    "exit-code": _PROMISES,
    "classify.on-error": _PROMISES,
}

_GROUPS = ("imap", "model")  # commands that consist of others


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


def key_of(option: click.Parameter) -> str:
    """Return an option's key in a file: its long name, without the hyphens before it."""
    return max(option.opts, key=len).lstrip("-")


def table_of(context: click.Context) -> str:
    """Return the table of a command: `classify`, `model-prune`."""
    return context.command_path.removeprefix("nbspam ").replace(" ", "-")


def command_words(table: str) -> str:
    """Return a command as it is typed, by its table: `classify`, `model prune`."""
    first, hyphen, rest = table.partition("-")
    return f"{first} {rest}" if hyphen and first in _GROUPS else table


def reason_to_type(table: str, key: str) -> str | None:
    """Return why an option of a command must be typed; None if a file may set it."""
    return TYPED.get(key) or TYPED.get(f"{table}.{key}")
