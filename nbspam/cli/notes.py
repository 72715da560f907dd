"""Notes on standard error, the sentences that several commands print, and errors with remedies."""

import contextlib
import os
import re
import sys
from collections import Counter
from typing import TYPE_CHECKING

import click

from nbspam import UNIX_ONLY, errors
from nbspam.errors import ExitCode, NbspamError, OptionError, Remedy, counted, one_line
from nbspam.names import SPAM, user_folder
from nbspam.reading.source import Skips
from nbspam.store.metadata import Metadata
from nbspam.tokens.tokenized import RULES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from nbspam.learning.update import Change
    from nbspam.reading.message import RawMessage
    from nbspam.scoring.verdict import Verdict
    from nbspam.store.writing import LockWait
    from nbspam.tokens.tokenized import TokenizedMessage


class NoTrace:
    """The log of a command without --log: nothing is written.  See `Trace`."""

    def begin(self, raw: bytes) -> None:
        """Note which message passes through; raw: its beginning."""

    def noted(self, raws: "Iterable[RawMessage]") -> "Iterable[RawMessage]":
        """Yield messages, and note their Message-IDs."""
        return raws

    def judged(self, verdict: "Verdict") -> None:
        """Log the verdict on a message."""

    def digested(self, messages: "Iterable[TokenizedMessage]") -> "Iterable[TokenizedMessage]":
        """Yield messages to learn or to forget, and note their digests for `changes`."""
        return messages

    def changes(self, model: "Path", remember: bool) -> contextlib.AbstractContextManager[None]:
        """Log the change of each message in the ledger; of a single message even if none.

        remember: False where the ledger does not say.
        """
        return contextlib.nullcontext()

    def learned(self, change: "Change") -> None:
        """Note the messages that looked like another class, for `changes`."""

    def trained(self, model: "Path", n: int) -> None:
        """Log that a whole model was trained on `n` messages, in one line."""


_CLASSES_SHOWN = 3  # named as having too few messages


def note(sentence: str) -> None:
    """Print a sentence in one line on standard error."""
    click.echo(f"nbspam: {one_line(sentence)}", err=True)


def note_binary(spam_label: str | None, classes: "Iterable[str]", positive: str | None) -> None:
    """Say that of the labels 0 and 1 the second means spam, if no label was named."""
    if spam_label is None and positive not in (None, SPAM):
        other = next(name for name in classes if name != positive)
        note(f"{positive} means spam, {other} ham; if it is the other way: --spam-label {other}")


def lock_wait(quiet: bool) -> "LockWait":
    """Return the wait for a model's lock; unless quiet it is announced after a second."""
    from nbspam.store.writing import DEFAULT_WAIT, QUIET_WAIT  # classifying needs no lock

    return QUIET_WAIT if quiet else DEFAULT_WAIT


def note_lacking(model: "str | Path", metadata: Metadata) -> None:
    """Say that the model has learned one class only; on a terminal also that it is young."""
    if metadata.is_one_sided:
        seen = [name for name, n in metadata.by_class(metadata.learned.messages).items() if n]
        what = f"only {seen[0]}" if seen else "nothing"
        note(
            f"{model}: has learned {what} so far, so every verdict is unsure; train it with nbspam"
            " train --update"
        )
    elif has_reader() and metadata.missing:
        note(f"{model}: {young_sentence(metadata)}")


def counts_words(metadata: Metadata) -> str:
    """Return the numbers of messages and tokens of a model in words."""
    sizes = metadata.by_class(metadata.learned.messages)
    by_class = ", ".join(f"{name}: {n:,}" for name, n in sizes.items())
    messages, tokens = counted(sum(sizes.values()), "message"), counted(metadata.n_tokens, "token")
    return f"{messages} ({by_class}), {tokens}"


def counts_json(metadata: Metadata) -> dict[str, object]:
    """Return the numbers of messages and tokens of a model for JSON."""
    messages = metadata.by_class(metadata.learned.messages)
    return {"messages": messages, "tokens": metadata.n_tokens}


def change_words(change: "Change") -> str:
    """Return the numbers of a change in words."""
    return (
        f"learned {counted(change.learned, 'new message')}, moved {change.moved:,} to another"
        f" class, {change.unchanged:,} already known"
    )


def change_json(change: "Change") -> dict[str, object]:
    """Return the fields of a change for JSON."""
    keys = "source", "label", "looks_like", "probability", "learned"
    surprising = [{key: getattr(lesson, key) for key in keys} for lesson in change.surprising]
    fields = change._asdict() | {"surprising": surprising}
    del fields["forgotten"]
    return fields


_SURPRISING = 3  # sources named of each kind


def note_surprising(
    change: "Change", quiet: bool, remedy: "Callable[[list[str], bool], str]", is_dry_run: bool
) -> None:
    """Say which learned messages looked like another class; quiet: only how many.

    remedy: returns the remedy for mislabelled sources, which were learned or not.
    """
    lessons = change.surprising
    kinds = Counter((lesson.label, lesson.looks_like, lesson.learned) for lesson in lessons)
    for kind, n in kinds.items():
        label, looks_like, learned = kind
        if quiet and not learned:  # nothing was done, and it would be said after every run
            continue
        was = "would be" if is_dry_run else "was" if n == 1 else "were"
        look = "looks" if n == 1 else "look"
        sentence = f"{n:,} of {counted(change.learned, 'new message')} {look} like {looks_like} and"
        if not learned:
            sentence = f"{counted(n, 'message')} that you have read may be {looks_like} and"
            was = "would not be" if is_dry_run else f"{was} not"
        sentence += f" {was} learned as {label}"
        if not quiet:
            sources = [lesson.source for lesson in lessons if lesson[1:3] + lesson[4:5] == kind]
            more = [f"and {n - _SURPRISING:,} more"] if n > _SURPRISING else []
            sentence += f": {', '.join(sources[:_SURPRISING] + more)}"
            if not (learned and is_dry_run):
                sentence += f"; if that is a mistake: {remedy(sources, learned)}"
        note(sentence)


def arrival_words(metadata: Metadata) -> str:
    """Return the reason for the trust of a calibrated model in headers."""
    rho, messages = metadata.host_trust
    if not messages:
        return "no ham and spam with the name of a receiving server were learned"
    which = "the same server" if rho > 0.9 else "different servers"
    return f"ham and spam arrive via {'partly ' if 0.1 < rho <= 0.9 else ''}{which}"


def young_sentence(metadata: Metadata) -> str:
    """Return the messages that a young model needs; empty if it has enough."""
    missing = metadata.missing
    if not missing:
        return ""
    missing_words = [f"{n:,} more {name}" for name, n in missing.items()]
    more = " and ".join(missing_words)
    if len(missing_words) > _CLASSES_SHOWN + 1:
        more = ", ".join(missing_words[:_CLASSES_SHOWN])
        more += f" and more of {len(missing_words) - _CLASSES_SHOWN} other classes"
    return f"needs {more}; until then it will often answer 'unsure'"


def note_older(
    model: "str | Path",
    metadata: Metadata,
    base: "tuple[str | Path, Metadata] | None" = None,
    say: "Callable[[str], object]" = note,
) -> None:
    """Say that a model or its base was made with older tokenizer rules, if it was."""
    for name, (settings, _) in [(model, metadata), *([base] if base else [])]:
        if settings.rules < RULES:
            say(
                f"{name}: was made with tokenizer rules {settings.rules}, and this program has"
                f" {RULES}: words that are now read differently are not recognised, and it learns"
                " nothing more; train again with nbspam train --replace"
            )


def has_reader() -> bool:
    """Return whether standard error is a terminal, not the log of a mail program."""
    return bool(sys.stderr) and sys.stderr.isatty()


def note_reading(what: errors.SourceError) -> None:
    """Print a note on how a source was read."""
    note(what.sentence(REMEDIES))


def note_skips(skips: Skips, quiet: bool = True) -> None:
    """Print the skipped rows and files, and unless `quiet` which labels are one class."""
    for sentence in [] if quiet else skips.merged:
        note(sentence)
    if not skips.count:
        return
    for line in skips.report(REMEDIES):
        click.echo(f"nbspam: {line}" if not line.startswith(" ") else line, err=True)


# The remedies in the words of the command line; `errors.py` has the library's.
REMEDIES = {
    Remedy.NAME_LABEL_COLUMN: "name the label column with --label-column",
    Remedy.NAME_ANOTHER_LABEL: "name another column with --label-column",
    Remedy.NAME_ONE_OF_COLUMNS: ("name one of {columns} with --label-column or --text-column"),
    Remedy.OTHER_LABEL_COLUMN: "--label-column names another",
    Remedy.NAME_TEXT_COLUMN: "--text-column names another",
    Remedy.SAVE_SHEET: "save another sheet as CSV to read it",
    Remedy.NAME_THE_TEXT: "name the text column with --text-column",
    Remedy.NAME_ENCODING: "name another encoding with --encoding",
    Remedy.GIVE_LABEL: (
        "give it with --spam or --ham, or give a table, an index, or a folder with a sub-folder"
        " for each class"
    ),
    Remedy.GIVE_LABEL_OR_FORMAT: (
        "give it with --spam or --ham, or name the table's format with --input-format"
    ),
    Remedy.SAY_FORMAT: "add --input-format {format} to read each of them",
    Remedy.HEADER_IS_MESSAGE: "add --header-row no if that is a message",
    Remedy.LEAVE_OUT_LABEL: (
        "give it before --spam and --ham, or add --lines if it has one message per line"
    ),
    Remedy.GIVE_OUTSIDE_LABEL: "give it with --spam or --ham",
    Remedy.LEAVE_OUT_STRICT: "fix it, or leave out --strict to skip it",
    Remedy.LEAVE_OUT_SEEN: "leave out --seen to read all of it",
    Remedy.NAME_SPAM_LABEL: "name the spam class with --spam-label when training",
    Remedy.NAME_ONE_AS_SPAM: "add --spam-label {first} or --spam-label {second}",
    Remedy.NAME_SPAM_OR_COLUMN: (
        "say which label is spam with --spam-label, or name the label column with --label-column"
    ),
    Remedy.NAME_CLASS: "learn it with nbspam train --update --label NAME=SOURCE",
    Remedy.LABEL_AS: "give such messages with --label {name}=SOURCE",
    Remedy.TRAIN_ANEW: "correct the label, or train a new model with --replace",
    Remedy.TRAIN_AGAIN: "train it again with nbspam train --replace",
    Remedy.UPDATE_OR_REPLACE: "add --update to add to it, or --replace to overwrite it",
    Remedy.UPDATE_IT: "add --update, which takes one class, to add to it",
    Remedy.GIVE_TWO_CLASSES: "give messages of two classes",
    Remedy.TWO_CLASSES_OR_UPDATE: "give messages of two classes, or --update, which takes one",
    Remedy.REPLACE_OUTPUT: "add --replace to overwrite it, or name another file",
    Remedy.NAME_MODEL: "name another file with --model or --output",
    Remedy.CREATE_MODEL: "run nbspam train -m {path}, or name another model with -m",
    Remedy.LEAVE_OUT_LIMIT: "leave out --max-ham-blocked",
    Remedy.ONE_PROCESS: "run it again with --jobs 1",
    Remedy.ALLOW_OUTSIDE: "add --outside to read it",
    Remedy.NAME_JUNK: "name the folder for spam with --junk, or with junk in the config file",
    Remedy.NAME_AUTH_HOST: (
        "name your mail server with --auth-host (auth-host in the config file), or believe From"
        " with --trust-from"
    ),
    Remedy.LEAVE_OUT_KEYWORDS: "leave out --mark and --unsure-keyword",
    Remedy.ANY_ADDRESS: "use 127.0.0.1, or add --allow-any-address",
}


def default_model() -> str:
    """Return $NBSPAM_MODEL, else the model's place in the user's data folder."""
    if path := os.environ.get("NBSPAM_MODEL"):
        return path
    folder = user_folder("XDG_DATA_HOME", ".local/share")
    if folder is None:  # the user of a mail server may have none
        raise OptionError("no home folder for the model; name the model with --model")
    return f"{folder}/nbspam/model.json"


_CREATE_DEFAULT = (
    "train one first: nbspam train messages.csv, or nbspam train --ham ~/Maildir --spam"
    " ~/Maildir/.Junk"
)


def _is_default(path: object) -> bool:
    with contextlib.suppress(NbspamError):  # a user without a home has none
        return str(path) == default_model()
    return False


# Since click 8.2; older versions print the help.
_NO_COMMAND = getattr(click.exceptions, "NoArgsIsHelpError", ())


def outcome(
    error: BaseException, describe: "Callable[[BaseException], tuple[int, str]]"
) -> tuple[int, str]:
    """Return the exit code of a failure, and the sentence for the user; empty for silence.

    A group without a command gives its help.  describe: returns code and sentence of other errors.
    """
    match error:
        case NbspamError(remedy=Remedy.CREATE_MODEL) if _is_default(error.values["path"]):
            return error.exit_code, error.sentence({Remedy.CREATE_MODEL: _CREATE_DEFAULT})
        case NbspamError():
            return error.exit_code, error.sentence(REMEDIES)
        case click.UsageError() if not isinstance(error, _NO_COMMAND):
            if isinstance(error, click.NoSuchOption) and error.possibilities:
                near = error.possibilities[:1]  # the nearest; click would sort them
                error = click.NoSuchOption(error.option_name, None, near, error.ctx)
            said = re.sub(
                r"\.? \(?Did you", "; did you", errors.without_passwords(error.format_message())
            )
            said = said.removesuffix("?)").rstrip(".?")
            path = error.ctx.command_path if error.ctx else "nbspam"
            said = re.sub(r"a valid integer( range)?", "a whole number", said)
            said = re.sub(r"a valid float( range)?", "a number", said)
            return error.exit_code, f"{said[:1].lower()}{said[1:]}; see {path} --help"
        case click.ClickException():
            return error.exit_code, error.format_message()
        case SystemExit(code=int(code)):  # from shell completion
            return code, ""
        case BrokenPipeError() | SystemExit():  # click turns BrokenPipeError into SystemExit
            return ExitCode.ERROR, ""  # the reader has exited, as `head` does
        case click.Abort():
            return describe(KeyboardInterrupt())
        case errors.UnexpectedEndError():
            return describe(error.end)
        case ModuleNotFoundError(name="fcntl" | "pwd" | "resource"):
            return ExitCode.ERROR, UNIX_ONLY
        case ModuleNotFoundError(name="numpy" | "scipy" | "rich" as name):
            return ExitCode.ERROR, (
                f"{name} is not installed; eval needs it, and train without --update; install it"
                f" with: {errors.install_command('numpy', 'scipy', 'rich')}"
            )
        case _:
            code, sentence = describe(error)
            return code, errors.without_passwords(sentence)
