"""How a command fails: what it promised, the remedy by its option, and the message that must pass.

Imports no click and needs no valid option: a message passes even when the command line is wrong or
a package is missing.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TextIO

from nbspam.errors import ExitCode, Remedy, VerdictCode
from nbspam.serving.passage import Passage

# The options of classify that take a value: the argument after one is not an option.
VALUED = frozenset(
    "-m --model -j --jobs --spam-cutoff --ham-cutoff --ham-cost --text-column --label-column"
    " --encoding --format --header --subject-tag --evidence --on-error".split()
)

# What fixes an error, for whoever types the command; `errors.py` has the library's words.
REMEDIES = {
    Remedy.NAME_LABEL_COLUMN: "name the label column with --label-column",
    Remedy.NAME_ONE_OF_COLUMNS: ("name one of {columns} with --label-column or --text-column"),
    Remedy.NAME_UTF_16: "add --encoding utf-16",
    Remedy.NAME_ENCODING: "name another encoding with --encoding",
    Remedy.GIVE_LABEL: (
        "give it with --spam or --ham, or give a table, an index, or a folder with a sub-folder"
        " for each class"
    ),
    Remedy.LEAVE_OUT_LABEL: (
        "give it without --spam or --ham, or add --lines if it has one message per line"
    ),
    Remedy.GIVE_OUTSIDE_LABEL: "give it with --spam or --ham",
    Remedy.LEAVE_OUT_STRICT: "fix it, or leave out --strict to skip it",
    Remedy.NAME_SPAM_LABEL: "name the spam class with --spam-label when training",
    Remedy.NAME_CLASS: "learn it with nbspam train --update --label NAME=SOURCE",
    Remedy.TRAIN_ANEW: "correct the label, or train a new model with --replace",
    Remedy.UPDATE_OR_REPLACE: "add --update to add to it, or --replace to overwrite it",
    Remedy.REPLACE_OUTPUT: "add --replace to overwrite it, or name another file",
    Remedy.ALLOW_OVERLAP: "merge models of different messages, or add --allow-overlap",
    Remedy.NAME_EACH_ONCE: "name each model once, or add --allow-overlap",
    Remedy.NAME_MODEL: "name another file with --model or --output",
    Remedy.CREATE_MODEL: "create it with nbspam train -m {path}, or name another",
    Remedy.USE_CSV: "export it with --form csv",
    Remedy.SEE_CSV: "see what nbspam model export --form csv writes",
    Remedy.LEAVE_OUT_LIMIT: "leave out --max-ham-blocked",
    Remedy.ONE_PROCESS: "run it again with --jobs 1",
    Remedy.ANY_ADDRESS: "use 127.0.0.1, or add --allow-any-address",
}


class FailurePolicy:
    """What the command line promises in case of failure, as far as it can be read."""

    __slots__ = ("deliver", "exit_code", "passthrough")

    def __init__(self, arguments: list[str]) -> None:
        """Read the arguments after `nbspam`; unlike click, accept invalid ones."""
        self.passthrough = self.exit_code = self.deliver = False
        first = arguments[:1]
        if first == ["classify"] or (first and first[0][:1] == "-" and "classify" in arguments):
            self._read(arguments[arguments.index("classify") + 1 :])

    def _read(self, arguments: list[str]) -> None:
        rest = iter(arguments)
        for argument in rest:
            if argument == "--":
                return
            if argument.startswith("--"):
                self._read_long(argument, rest)
            elif argument.startswith("-"):
                self._read_short(argument, rest)

    def _read_long(self, argument: str, rest: Iterator[str]) -> None:
        """Read `--option` or `--option=value`; its value may be the next argument."""
        name, equals, value = argument.partition("=")
        if name in VALUED and not equals:
            value = next(rest, "")
        if name == "--passthrough":
            self.passthrough = True
        elif name == "--exit-code":
            self.exit_code = True
        elif name == "--on-error":
            self.deliver = value == "deliver"

    def _read_short(self, argument: str, rest: Iterator[str]) -> None:
        """Read options of one letter each, the last perhaps with its value; it may be the next."""
        for i, letter in enumerate(argument[1:], 2):
            if letter == "p":
                self.passthrough = True
            if f"-{letter}" in VALUED:
                if i == len(argument):
                    next(rest, None)
                return

    def failure(self, code: int, delivered: bool) -> int:
        """Return the exit code of a failed command, which would be `code` without any promise.

        delivered: whether the whole message was written all the same.
        """
        if self.passthrough:
            return ExitCode.DONE if delivered and self.deliver else ExitCode.TEMPFAIL
        return VerdictCode.ERROR if self.exit_code else code


def unexpected(error: BaseException) -> str:
    """Return the sentence for a missing package, or for a bug."""
    if isinstance(error, ImportError):
        return f"a package it needs is missing ({error}); reinstall nbspam"
    text = " ".join(str(error).split())[:200]
    return (
        f"internal error ({type(error).__name__}: {text}); please report it, with the output of"
        " NBSPAM_DEBUG=1"
    )


def fail(arguments: list[str], passages: list[Passage], code: int, sentence: str) -> int:
    """Write the message unchanged if one is to pass, print what went wrong, return the exit code.

    passages: the message's, if reading it had begun; otherwise the arguments decide whether a
    message is to pass at all.
    sentence: what is wrong and the remedy, or click's three lines on usage; empty for silence.
    The message is written first: whoever reads standard error may be slow.
    """
    policy = FailurePolicy(arguments)
    policy.passthrough = policy.passthrough or bool(passages)
    delivered = False
    if policy.passthrough:
        passage = passages[0] if passages else Passage(sys.stdin, sys.stdout)
        sentence = _in_one_line(sentence) or "broken pipe on standard output; run it again"
        try:
            delivered = passage.rescue()
        except (OSError, KeyboardInterrupt, MemoryError) as error:
            reason = getattr(error, "strerror", None) or error
            sentence += f"; the message could not be passed on either ({reason})"
    if sentence:
        _print_error(sentence)
    flush_or_discard(sys.stdout, sys.stderr)
    return policy.failure(code, delivered)


def _in_one_line(sentence: str) -> str:
    """Return what click says on usage in one line, which is enough beside a message."""
    if "\n" not in sentence:
        return sentence
    problem = sentence.rpartition("\n")[2].removeprefix("Error: ").rstrip(".")
    return f"{problem}; see nbspam classify --help"


def _print_error(sentence: str) -> None:
    if sys.stderr is None:
        return
    if "\n" not in sentence:
        sentence = f"nbspam: {sentence}"
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{sentence}\n")


def flush_or_discard(*streams: TextIO | None) -> None:
    """Flush streams; discard what one does not accept, so that exiting does not try again."""
    for stream in filter(None, streams):
        try:
            stream.flush()
        except (OSError, ValueError):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
