"""Notes on standard error, sentences that several commands print, and the messages of failures."""

import contextlib
import os
import re
import sys
from collections import Counter
from typing import TYPE_CHECKING

import click

from nbspam import UNIX_ONLY, errors
from nbspam.errors import ExitCode, NbspamError, OptionError, Remedy, format_count, one_line
from nbspam.names import SPAM, user_folder
from nbspam.reading.source import Skips
from nbspam.store.metadata import YOUNG_BELOW, Metadata
from nbspam.tokens.tokenized import TOKENIZER_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from nbspam.learning.update import Change
    from nbspam.store.writing import LockWait


_MAX_CLASSES_NAMED = 3  # in the note on classes with too few messages


def note(sentence: str) -> None:
    """Print a sentence in one line on standard error."""
    click.echo(f"nbspam: {one_line(sentence)}", err=True)


def note_binary(spam_label: str | None, classes: "Iterable[str]", positive: str | None) -> None:
    """Print a note if the spam class was guessed, such as 1 among the labels 0 and 1."""
    if spam_label is None and positive not in (None, SPAM):
        other = next(name for name in classes if name != positive)
        note(f"{positive} means spam, {other} ham; if it is the other way: --spam-label {other}")


def lock_wait(quiet: bool) -> "LockWait":
    """Return the settings for waiting on a model's lock.

    Unless quiet, a wait prints a note after a second.
    """
    from nbspam.store.writing import DEFAULT_WAIT, QUIET_WAIT  # classifying needs no lock

    return QUIET_WAIT if quiet else DEFAULT_WAIT._replace(on_note=note)


def note_one_class(model: "str | Path", metadata: Metadata) -> None:
    """Print a note on a model with only one class; on a terminal also on a young model."""
    if metadata.lacks_two_classes:
        seen = [name for name, n in metadata.by_class(metadata.learned.messages).items() if n]
        what = f"only {seen[0]}" if seen else "nothing"
        note(
            f"{model}: has learned {what} so far, so every verdict is unsure; train it with nbspam"
            " train --update"
        )
    elif has_reader() and metadata.messages_needed:
        note(f"{model}: {young_sentence(metadata)}")


def counts_words(metadata: Metadata) -> str:
    """Format the numbers of messages and tokens of a model as text."""
    sizes = metadata.by_class(metadata.learned.messages)
    by_class = ", ".join(f"{name}: {n:,}" for name, n in sizes.items())
    messages = format_count(sum(sizes.values()), "message")
    return f"{messages} ({by_class}), {format_count(metadata.n_tokens, 'token')}"


def counts_json(metadata: Metadata) -> dict[str, object]:
    """Return the numbers of messages and tokens of a model as JSON fields."""
    messages = metadata.by_class(metadata.learned.messages)
    return {"messages": messages, "tokens": metadata.n_tokens}


def change_words(change: "Change") -> str:
    """Format the numbers of a change as text."""
    return (
        f"learned {format_count(change.learned, 'new message')}, moved {change.moved:,} to another"
        f" class, {change.unchanged:,} already known"
    )


def change_json(change: "Change") -> dict[str, object]:
    """Return a change as JSON fields."""
    keys = "source", "label", "looks_like", "probability", "learned"
    surprising = [{key: getattr(lesson, key) for key in keys} for lesson in change.surprising]
    fields = change._asdict() | {"surprising": surprising}
    del fields["forgotten"]
    return fields


_MAX_SOURCES_NAMED = 3  # for each kind of surprise


def note_surprising(
    change: "Change", quiet: bool, remedy: "Callable[[list[str], bool], str]", is_dry_run: bool
) -> None:
    """Print notes on new messages that look like another class, learned or not.

    quiet: print no sources, and nothing about messages that were not learned.

    remedy: called with the sources, and whether they were learned; returns the advice to print
        for wrong labels.
    """
    lessons = change.surprising
    kinds = Counter((lesson.label, lesson.looks_like, lesson.learned) for lesson in lessons)
    for kind, n in kinds.items():
        label, looks_like, learned = kind
        if quiet and not learned:  # the model is unchanged, so every run would repeat the note
            continue
        was = "would be" if is_dry_run else "was" if n == 1 else "were"
        look = "looks" if n == 1 else "look"
        sentence = (
            f"{n:,} of {format_count(change.learned, 'new message')} {look} like {looks_like} and"
        )
        if not learned:
            sentence = f"{format_count(n, 'message')} that you have read may be {looks_like} and"
            was = "would not be" if is_dry_run else f"{was} not"
        sentence += f" {was} learned as {label}"
        if not quiet:
            sources = [lesson.source for lesson in lessons if lesson[1:3] + lesson[4:5] == kind]
            more = [f"and {n - _MAX_SOURCES_NAMED:,} more"] if n > _MAX_SOURCES_NAMED else []
            sentence += f": {', '.join(sources[:_MAX_SOURCES_NAMED] + more)}"
            if not (learned and is_dry_run):
                sentence += f"; if that is a mistake: {remedy(sources, learned)}"
        note(sentence)


def arrival_words(metadata: Metadata) -> str:
    """Explain how far a calibrated model trusts headers."""
    rho, messages = metadata.host_trust
    if not messages:
        return "no ham and spam with the name of a receiving server were learned"
    which = "the same server" if rho > 0.9 else "different servers"
    return f"ham and spam arrive via {'partly ' if 0.1 < rho <= 0.9 else ''}{which}"


def one_domain_sentence(metadata: Metadata) -> str:
    """Explain how mail from other servers is classified if one server received all learned mail.

    Empty if several servers received mail, if few mails were learned, or if the model treats all
    servers alike.
    """
    from nbspam.scoring.rules import scoring_rule  # here, because few commands need the rule

    settings, learned = metadata
    can_doubt = (
        scoring_rule(metadata).is_calibrated and settings.elsewhere and len(settings.classes) == 2
    )
    if (
        not can_doubt
        or sum(learned.domain_rows.values()) != 1
        or metadata.domains.mails < YOUNG_BELOW
    ):
        return ""
    return (
        "one server received all this mail; mail that other servers received is called spam only if"
        " the model is surer (nbspam model set --trust-elsewhere ends that)"
    )


def young_sentence(metadata: Metadata) -> str:
    """Format how many more messages a young model needs; empty if it has enough."""
    missing = metadata.messages_needed
    if not missing:
        return ""
    missing_words = [f"{n:,} more {name}" for name, n in missing.items()]
    more = " and ".join(missing_words)
    if len(missing_words) > _MAX_CLASSES_NAMED + 1:
        more = ", ".join(missing_words[:_MAX_CLASSES_NAMED])
        more += f" and more of {len(missing_words) - _MAX_CLASSES_NAMED} other classes"
    return f"needs {more}; until then it will often answer 'unsure'"


def note_older(
    model: "str | Path",
    metadata: Metadata,
    base: "tuple[str | Path, Metadata] | None" = None,
    say: "Callable[[str], object]" = note,
) -> None:
    """Print a note if a model or its base was made with older tokenizer rules."""
    for name, (settings, _) in [(model, metadata), *([base] if base else [])]:
        if settings.rules < TOKENIZER_VERSION:
            say(
                f"{name}: was made with tokenizer rules {settings.rules}, and this program has"
                f" {TOKENIZER_VERSION}: words that are now read differently are not recognised, and"
                " the model learns nothing more; train again with nbspam train --replace"
            )


def has_reader() -> bool:
    """Return whether standard error is a terminal, and not the log of a mail program."""
    return bool(sys.stderr) and sys.stderr.isatty()


def note_reading(error: errors.SourceError) -> None:
    """Print a note on how a source was read."""
    note(str(error))


def note_copies(skips: Skips, quiet: bool) -> None:
    """Print a note on copies of mails that were left out, unless quiet."""
    if skips.copies and not quiet:
        are_copies = "copies of mails that were read before are"
        is_copy = "copy of a mail that was read before is"
        note(f"{skips.copies:,} {are_copies if skips.copies > 1 else is_copy} left out")


def note_skips(skips: Skips, quiet: bool = True) -> None:
    """Print the skipped rows and files, and unless quiet the labels that were merged."""
    note_copies(skips, quiet)
    for sentence in [] if quiet else skips.merged_label_notes:
        note(sentence)
    if not skips.count:
        return
    for line in skips.report():
        click.echo(f"nbspam: {line}" if not line.startswith(" ") else line, err=True)


def default_model(is_needed: bool = True) -> str | None:
    """Return $NBSPAM_MODEL, else the model's place in the user's data folder.

    Returns None for a user without a home folder, or raises OptionError if the model is needed.
    """
    if path := os.environ.get("NBSPAM_MODEL"):
        return path
    folder = user_folder("XDG_DATA_HOME", ".local/share")
    if folder is None and not is_needed:
        return None
    if folder is None:  # the user of a mail server may have no home
        raise OptionError(
            "no home folder for the model; set NBSPAM_MODEL, or name the model with --model"
        )
    return f"{folder}/nbspam/model.json"


_CREATE_DEFAULT = (
    "train one first: nbspam train messages.csv, or nbspam train --ham ~/Maildir --spam"
    " ~/Maildir/.Junk"
)


def is_default_model(path: object) -> bool:
    """Return whether a model is the default model, which a user without a home does not have."""
    with contextlib.suppress(NbspamError):
        return str(path) == default_model()
    return False


# The error for a missing command, in click since 8.2; older versions print the help.
_NO_COMMAND = getattr(click.exceptions, "NoArgsIsHelpError", ())


def describe_failure(
    error: BaseException, describe: "Callable[[BaseException], tuple[int, str]]"
) -> tuple[int, str]:
    """Return the exit code of a failure and the error message; an empty message prints nothing.

    For a group without a command, the message is its help.
    describe: returns exit code and message for errors of other libraries.
    """
    match error:
        case NbspamError(remedy=Remedy.CREATE_MODEL) if is_default_model(error.values["path"]):
            return error.exit_code, f"{error.problem}; {_CREATE_DEFAULT}"
        case NbspamError():
            return error.exit_code, str(error)
        case click.UsageError() if not isinstance(error, _NO_COMMAND):
            if isinstance(error, click.NoSuchOption) and error.possibilities:
                # keep only the most similar option, because click sorts several by name
                near = error.possibilities[:1]
                error = click.NoSuchOption(error.option_name, None, near, error.ctx)
            message = re.sub(
                r"\.? \(?Did you", "; did you", errors.without_passwords(error.format_message())
            )
            message = message.removesuffix("?)").rstrip(".?")
            path = error.ctx.command_path if error.ctx else "nbspam"
            message = re.sub(r"a valid integer( range)?", "a whole number", message)
            message = re.sub(r"a valid float( range)?", "a number", message)
            return error.exit_code, f"{message[:1].lower()}{message[1:]}; see {path} --help"
        case click.ClickException():
            return error.exit_code, error.format_message()
        case SystemExit(code=int(code)):  # from shell completion
            return code, ""
        case BrokenPipeError() | SystemExit():  # click turns BrokenPipeError into SystemExit
            return ExitCode.ERROR, ""  # the reader of the output has exited, like `head`
        case click.Abort():  # after an interrupt
            return describe(KeyboardInterrupt())
        case errors.UnexpectedEndError():
            return describe(error.end)
        case ModuleNotFoundError(name="fcntl" | "pwd" | "resource"):
            return ExitCode.ERROR, UNIX_ONLY
        case ModuleNotFoundError(name="numpy" | "scipy" | "rich" as name):
            return ExitCode.ERROR, (
                f"{name} is not installed; eval needs it, and so does train without --update;"
                f" install it with: {errors.install_command('numpy', 'scipy', 'rich')}"
            )
        case _:
            code, sentence = describe(error)
            return code, errors.without_passwords(sentence)
