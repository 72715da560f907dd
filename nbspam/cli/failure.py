"""How a failed command ends: its exit code, and the sentence with the remedy by its option."""

import io

import click

from nbspam.cli.groups import UnexpectedEndError
from nbspam.errors import ExitCode, NbspamError, Remedy
from nbspam_main import described

# What fixes an error, for whoever types the command; `errors.py` has the library's words.
REMEDIES = {
    Remedy.NAME_LABEL_COLUMN: "name the label column with --label-column",
    Remedy.NAME_ONE_OF_COLUMNS: ("name one of {columns} with --label-column or --text-column"),
    Remedy.NAME_TEXT_COLUMN: "name another column with --text-column",
    Remedy.NAME_UTF: "add --encoding {encoding}",
    Remedy.NAME_ENCODING: "name another encoding with --encoding",
    Remedy.GIVE_LABEL: (
        "give it with --spam or --ham, or give a table, an index, or a folder with a sub-folder"
        " for each class"
    ),
    Remedy.GIVE_LABEL_OR_FORMAT: (
        "give it with --spam or --ham, or name the table's format with --input-format"
    ),
    Remedy.SAY_FORMAT: "add --input-format {format} to read each of them",
    Remedy.READ_AS: "read it with --input-format {format}",
    Remedy.HEADER_IS_MESSAGE: "add --header-row no if that is a message",
    Remedy.LEAVE_OUT_LABEL: (
        "give it without --spam or --ham, or add --lines if it has one message per line"
    ),
    Remedy.GIVE_OUTSIDE_LABEL: "give it with --spam or --ham",
    Remedy.LEAVE_OUT_STRICT: "fix it, or leave out --strict to skip it",
    Remedy.NAME_SPAM_LABEL: "name the spam class with --spam-label when training",
    Remedy.NAME_SPAM_OR_COLUMN: (
        "say which label is spam with --spam-label, or name the label column with --label-column"
    ),
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
    Remedy.ALLOW_OUTSIDE: "add --outside to read it",
    Remedy.NAME_JUNK: "name the folder for spam with --junk, or with junk in the config file",
    Remedy.LEAVE_OUT_KEYWORDS: "leave out --mark and --unsure-keyword",
    Remedy.ANY_ADDRESS: "use 127.0.0.1, or add --allow-any-address",
}


def outcome(error: BaseException) -> tuple[int, str]:
    """Return the exit code of a failure, and the sentence for the user; empty for silence.

    Of wrong usage it is click's three lines.
    """
    match error:
        case NbspamError():
            return error.exit_code, error.sentence(REMEDIES)
        case click.ClickException():
            if isinstance(error, click.NoSuchOption):
                from nbspam.cli.suggestions import no_such_option

                error = no_such_option(error)
            shown = io.StringIO()
            error.show(shown)
            # Without the usage before it, it is a sentence as others are.
            return error.exit_code, shown.getvalue().rstrip("\n").removeprefix("Error: ")
        case SystemExit(code=int(code)):  # from shell completion
            return code, ""
        case BrokenPipeError() | SystemExit():  # click turns the first into the second
            return ExitCode.ERROR, ""  # the reader has gone, as `head` does: no news
        case click.Abort():
            return described(KeyboardInterrupt())
        case UnexpectedEndError():
            return described(error.end)
        case ModuleNotFoundError(name="numpy" | "scipy" | "rich" as name):
            return ExitCode.ERROR, (
                f"{name} is not installed, which eval needs, and train unless it has --update;"
                " install it beside nbspam with: pip install numpy scipy rich"
            )
        case _:
            return described(error)
