"""The errors of nbspam, and its exit codes.  This module imports no other module of nbspam.

NbspamError                 exit 1: one sentence, ending with the remedy
├── SourceError             a source of messages cannot be read
│   └── TableError          the label or text column of a table cannot be identified
├── TrainingError           the messages read cannot be learned from
├── ModelError              a model file is missing, damaged, newer, or not a model
│   └── LockedError         exit 75: another program holds the model's lock for too long
├── ServingError            a server cannot listen on the given address
├── AccountError            an IMAP account cannot be used
│   └── UnavailableError    exit 75: a mail server does not answer; try again later
└── OptionError             exit 2: an option's value is invalid

Every sentence names the file, the problem and the remedy.  A sentence has the same words in a shell
and in Python.
"""

import re
import sys
from enum import Enum, IntEnum


class ExitCode(IntEnum):
    """The exit status of every command; `VerdictCode` replaces 0 to 3 where it is asked for."""

    DONE = 0
    ERROR = 1
    USAGE = 2
    TEMPFAIL = 75  # for a passthrough and a lock; in sysexits.h: try again later


class VerdictCode(IntEnum):
    """The verdict as an exit status: bogofilter's codes, so that its recipes carry over."""

    SPAM = 0
    HAM = 1
    UNSURE = 2
    ERROR = 3


class Remedy(Enum):
    """The fix of an error, where several errors share it or a caller asks for it.

    An option in parentheses is an argument of the same name in Python: label_column for
    --label-column.  `{name}` is replaced by a value given where the error is raised.
    """

    NAME_LABEL_COLUMN = "name the label column (--label-column)"
    GIVE_ITS_LABEL = "give it with its label (--{label} {path})"
    NAME_ANOTHER_LABEL = "name another label column (--label-column)"
    NAME_ONE_OF_COLUMNS = "name one of {columns} (--label-column, --text-column)"
    OTHER_LABEL_COLUMN = "name another if it is wrong (--label-column)"
    NAME_TEXT_COLUMN = "name another if it is wrong (--text-column)"
    SAVE_SHEET = "save another sheet as CSV to read it"
    NAME_THE_TEXT = "name the text column (--text-column)"
    NAME_ENCODING = "name another encoding (--encoding)"
    GIVE_LABEL = (
        "give it with a label (--spam, --ham), or give a table, an index, or a folder with a"
        " sub-folder for each class"
    )
    GIVE_LABEL_OR_FORMAT = (
        "give it with a label (--spam, --ham), name its format (--input-format), or save it to a"
        " file"
    )
    SAY_FORMAT = "name its format to read each of them (--input-format {format})"
    HEADER_IS_NAMES = "if that row names the columns, say so (--header-row yes)"
    HEADER_IS_MESSAGE = "if that is a message, say so (--header-row no)"
    LEAVE_OUT_LABEL = (
        "give it without a label (before --spam and --ham), or as one message per line (--lines)"
    )
    GIVE_OUTSIDE_LABEL = "give it with a label of its own (--spam, --ham)"
    LEAVE_OUT_STRICT = "fix it, or leave out --strict to skip it"
    READ_EACH_LINE = "if each is a message, name the file as a source (--input-format lines)"
    LEAVE_OUT_LINES = "leave out --lines to read each message"
    LEAVE_OUT_SEEN = "leave out --seen to read all of it"
    NAME_SPAM_LABEL = "name the spam class when training (--spam-label)"
    NAME_ONE_AS_SPAM = "name the spam class (--spam-label {first} or --spam-label {second})"
    NAME_SPAM_OR_COLUMN = (
        "name the label of spam (--spam-label), or another label column (--label-column)"
    )
    NAME_CLASS = "learn it under the name of its class (--label NAME=SOURCE)"
    LABEL_AS = "give such messages the label {name} (--label {name}=SOURCE)"
    TRAIN_ANEW = "correct the label, or train a new model (--replace)"
    TRAIN_AGAIN = "train it again from its messages (nbspam train --replace)"
    UPDATE_OR_REPLACE = "add to it (--update), or overwrite it (--replace)"
    UPDATE_IT = "add to it (--update, which takes one class)"
    GIVE_TWO_CLASSES = "give messages of two classes (train --update takes one)"
    REPLACE_OUTPUT = "overwrite it (--replace), or name another file"
    NAME_MODEL = "name another file (--model or --output)"
    CREATE_MODEL = "train it (nbspam train -m {path}), or name another model"
    LEAVE_OUT_LIMIT = "leave out the limit (--max-ham-blocked)"
    ONE_PROCESS = "run it again with one process (--jobs 1)"
    ALLOW_OUTSIDE = "allow it (--outside), or give it as a source of its own"
    ANY_ADDRESS = "use 127.0.0.1, or allow any address (--allow-any-address)"
    NAME_JUNK = "name the folder for spam (--junk, or junk in the config file)"
    NAME_AUTH_HOST = (
        "name your mail server (--auth-host, or auth-host in the config file), or believe From"
        " (--trust-from)"
    )
    LEAVE_OUT_KEYWORDS = "leave out --mark and --unsure-keyword"


# Compiled where it is needed (`re` keeps it): nearly every line is printable as it is.
_UNPRINTABLE = "[\x00-\x1f\x7f-\x9f\u2028\u2029]"
_BIDIRECTIONAL = "[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"


def one_line(text: str) -> str:
    """Remove the characters of a text that would break its line or control a terminal.

    A mark that turns the direction, so that `gpj.exe` may look like `exe.jpg`, becomes an escape.
    """
    if text.isprintable():
        return text
    text = re.sub(_UNPRINTABLE, "\ufffd", text)
    return re.sub(_BIDIRECTIONAL, lambda mark: f"\\u{ord(mark[0]):04x}", text)


def without_passwords(text: str) -> str:
    """Remove the passwords of URLs in a sentence."""
    for rest in text.split("://")[1:]:
        # The last @ before the path ends the password.
        user = re.split(r"[/\s]", rest, maxsplit=1)[0].rpartition("@")[0]
        if password := user.partition(":")[2]:
            text = text.replace(f":{password}@", ":…@")
    return text


def format_count(n: int, noun: str) -> str:
    """Format a number of things for a sentence: `1 message`, `2,000 messages`."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def install_command(*packages: str) -> str:
    """Return the command that installs packages for the interpreter that runs this."""
    from shlex import join  # for errors only

    return join([sys.executable or "python3", "-m", "pip", "install", *packages])


def needs_extra(what: str, packages: str, extra: str) -> str:
    """Return the sentence for packages that are not installed, of an optional extra of nbspam.

    what: needs them, such as `drawing curves`.
    """
    them = "them" if " and " in packages else "it"
    command = install_command(f"nbspam[{extra}]")
    return f"{what} needs {packages}; install {them} with: {command}"


class NbspamError(Exception):
    """Something the user can fix; its text is one sentence with the remedy.

    >>> try:
    ...     nbspam.train(pairs, alpha=0)
    ... except nbspam.NbspamError as error:
    ...     print(error)
    alpha must be above 0 and at most 1e+06, not 0: without smoothing ...
    """

    exit_code = ExitCode.ERROR

    def __init__(self, problem: str, remedy: Remedy | None = None, **values: object) -> None:
        """problem: a whole sentence, or the part before the remedy.

        values: replace names in braces.
        """
        self.problem, self.remedy, self.values = problem, remedy, values
        fix = "" if remedy is None else f"; {remedy.value.format(**values)}"
        super().__init__(one_line(without_passwords(problem + fix)))


class SourceError(NbspamError):
    """A source of messages cannot be read.

    >>> try:
    ...     spam_filter.classify(5)
    ... except nbspam.SourceError as error:
    ...     print(error)
    the message is of the type int; give it as text or bytes
    """


class TableError(SourceError):
    """The label or text column of a table cannot be identified.

    >>> try:
    ...     nbspam.train("words.csv", label_column="class")
    ... except nbspam.TableError as error:
    ...     print(error)
    words.csv: there is no column 'class'; name one of 'label', 'text' ...
    """


class TrainingError(NbspamError):
    """The messages read do not make a model.

    >>> try:
    ...     nbspam.train(pairs[:1])
    ... except nbspam.TrainingError as error:
    ...     print(error)
    there is only the class 'spam' to learn from; give messages of two classes ...
    """


class ModelError(NbspamError):
    """A model file is missing, damaged, newer than this program, or not a model.

    >>> try:
    ...     nbspam.open("none.json")
    ... except nbspam.ModelError as error:
    ...     print(error)
    none.json: model not found; train it (nbspam train -m none.json), or name another model
    """


class LockedError(ModelError):
    """Another program holds a model's lock for too long; nothing was changed."""

    exit_code = ExitCode.TEMPFAIL


class ServingError(NbspamError):
    """A server cannot listen on the given address."""


class AccountError(NbspamError):
    """An IMAP account, or a folder of it, cannot be used."""


class UnavailableError(AccountError):
    """An IMAP server cannot be reached, or the connection to it was lost."""

    exit_code = ExitCode.TEMPFAIL


class OptionError(NbspamError):
    """An option's value is invalid, or conflicts with another value.

    >>> try:
    ...     nbspam.open("model.json", spam_cutoff=2)
    ... except nbspam.OptionError as error:
    ...     print(error)
    the spam cut-off must be between 0 and 1, not 2; 0.9 is the default
    """

    exit_code = ExitCode.USAGE


class UnexpectedEndError(Exception):
    """A file ended too early, such as the bytecode of a module."""

    def __init__(self, end: EOFError) -> None:
        self.end = end
