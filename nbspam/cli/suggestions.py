"""What somebody meant who typed a command or an option that does not exist; loaded only then.

Other filters, and habit, have other words for the same thing.  Where no such word is known, the
nearest names are suggested.
"""

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence

import click

# Word of others -> commands of ours, after the group's own name.  A command that exists is never
# looked up here.
OF_PROGRAM: Mapping[str, Sequence[str]] = {
    "add": ("train",),
    "backup": ("model export",),
    "benchmark": ("eval",),
    "bogofilter": ("classify",),
    "check": ("classify", "model check"),
    "compact": ("model prune",),
    "compare": ("eval --compare all",),
    "crossval": ("eval --folds 10",),
    "daemon": ("serve",),
    "delete": ("forget",),
    "detect": ("classify",),
    "dump": ("model export",),
    "export": ("model export",),
    "filter": ("classify -p",),
    "fit": ("train",),
    "ham": ("classify", "train --ham"),
    "import": ("model import",),
    "info": ("model info",),
    "inspect": ("model info",),
    "judge": ("classify",),
    "learn": ("train",),
    "listen": ("serve",),
    "load": ("model import",),
    "measure": ("eval",),
    "merge": ("model merge",),
    "predict": ("classify",),
    "prune": ("model prune",),
    "register": ("train",),
    "relearn": ("train --update",),
    "remove": ("forget",),
    "report": ("eval",),
    "restore": ("model import",),
    "run": ("classify",),
    "scan": ("classify",),
    "score": ("classify",),
    "server": ("serve",),
    "set": ("model set",),
    "show": ("explain", "model info"),
    "spam": ("classify", "train --spam"),
    "spamd": ("serve",),
    "start": ("serve",),
    "stats": ("model info",),
    "status": ("model info",),
    "teach": ("train",),
    "test": ("classify", "eval"),
    "tokens": ("explain --words",),
    "unlearn": ("forget",),
    "untrain": ("forget",),
    "update": ("train --update",),
    "validate": ("eval",),
    "verify": ("model check",),
    "version": ("--version",),
    "why": ("explain",),
    "words": ("explain --words",),
}
OF_MODEL: Mapping[str, Sequence[str]] = {
    "add": ("merge",),
    "combine": ("merge",),
    "compact": ("prune",),
    "cutoffs": ("set",),
    "dump": ("export",),
    "inspect": ("info",),
    "join": ("merge",),
    "load": ("import",),
    "print": ("info",),
    "save": ("export",),
    "show": ("info",),
    "shrink": ("prune",),
    "stats": ("info",),
    "status": ("info",),
    "summary": ("info",),
    "validate": ("check",),
    "verify": ("check",),
}
OF_IMAP: Mapping[str, Sequence[str]] = {
    "daemon": ("watch",),
    "idle": ("watch",),
    "run": ("filter",),
    "scan": ("filter",),
    "sort": ("filter",),
    "teach": ("learn",),
    "train": ("learn",),
}
# Option of others -> options of ours; suggested where the command has the first word of one.
OF_OPTIONS: Mapping[str, Sequence[str]] = {
    "--cost": ("--ham-cost",),
    "--cross-validate": ("--folds",),
    "--csv": ("--format csv",),
    "--cv": ("--folds",),
    "--database": ("--model",),
    "--db": ("--model",),
    "--force": ("--replace",),
    "--jsonl": ("--format json",),
    "--json": ("--format json",),
    "--k-fold": ("--folds",),
    "--label-col": ("--label-column",),
    "--loo": ("--leave-one-out",),
    "--out": ("--output",),
    "--overwrite": ("--replace",),
    "--processes": ("--jobs",),
    "--silent": ("--quiet",),
    "--smoothing": ("--alpha",),
    "--split": ("--train-first",),
    "--test-size": ("--train-first",),
    "--text-col": ("--text-column",),
    "--threads": ("--jobs",),
    "--threshold": ("--spam-cutoff",),
    "--train-size": ("--train-first",),
}


_ONE_WORD = "what is in quotes is one word: leave out the quotes around several"


def no_such_command(
    context: click.Context, word: str, names: Iterable[str], known: Mapping[str, Sequence[str]]
) -> click.UsageError:
    """Return the error for a word that is no command of a group.

    names: of the group's commands.  known: words of others, and the commands they mean.
    """
    small = word.lower()
    if len(word.split()) > 1 and word.split()[0] in names:
        return click.UsageError(f"No such command {word!r}; {_ONE_WORD}", context)
    meant = known.get(small) or difflib.get_close_matches(small, [*names, *known], 1, 0.65)
    meant = [name for each in meant for name in known.get(each, (each,))]
    if not meant and os.path.exists(word):  # noqa: PTH110 (no pathlib for this alone)
        return _error(context, "command", word, [f"classify {word}"])
    return _error(context, "command", word, meant)


def no_such_option(error: click.NoSuchOption) -> click.UsageError:
    """Return the error for an option that does not exist, with what may have been meant."""
    context, name = error.ctx, error.option_name
    if context is None:
        return error
    if any(map(str.isspace, name)):
        return click.UsageError(f"No such option {name!r}; {_ONE_WORD}", context)
    own = [opt for param in context.command.params for opt in (*param.opts, *param.secondary_opts)]
    long = ["--help", *(opt for opt in own if opt[:2] == "--")]
    near = difflib.get_close_matches(name, long, cutoff=0.75)  # at 0.6 --model is like --help
    if isinstance(context.command, click.Group) and not near:
        return click.UsageError(
            f"No such option {name!r} before the command; options follow it:"
            f" {context.command_path} COMMAND {name}",
            context,
        )
    meant = [each for each in OF_OPTIONS.get(name, ()) if each.split()[0] in own]
    return _error(context, "option", name, meant or near)


def _error(context: click.Context, kind: str, word: str, meant: Sequence[str]) -> click.UsageError:
    if not meant:
        return click.UsageError(f"No such {kind} {word!r}.", context)
    before = f"{context.command_path} " if kind == "command" else ""
    named = " or ".join(f"'{before}{each}'" for each in meant)
    return click.UsageError(f"No such {kind} {word!r}; did you mean {named}?", context)
