"""The errors nbspam raises, and the exit codes it answers with.  Imports nothing of ours.

NbspamError                 exit 1: one sentence, ending with the remedy
├── SourceError             a source of messages cannot be read
│   └── TableError          the label or text column of a table cannot be identified
├── TrainingError           the messages read cannot be learned from
├── ModelError              a model file is missing, damaged, newer, or not a model
│   └── LockedError         exit 75: another program holds the model's lock for too long
├── ServingError            a server cannot listen on the given address
├── AccountError            an IMAP account cannot be used
│   └── UnavailableError    exit 75: its server does not answer: try again later
└── OptionError             exit 2: an option's value is invalid

Every sentence names the file, says what is wrong with it and how to fix it.  What fixes it may be
an option of the command line or an argument of the library: such a remedy is named by a `Remedy`,
whose text holds for the library; the command line has its own text for each (`cli/notes.py`).
"""

import re
import sys
from collections.abc import Mapping
from enum import Enum, IntEnum


class ExitCode(IntEnum):
    """The exit status of every command; `VerdictCode` replaces 0 to 3 where it is asked for."""

    DONE = 0
    ERROR = 1
    USAGE = 2
    TEMPFAIL = 75  # of a passthrough and of a lock, as sysexits.h has it: try again later


class VerdictCode(IntEnum):
    """The verdict as an exit status: bogofilter's codes, so that its recipes carry over."""

    SPAM = 0
    HAM = 1
    UNSURE = 2
    ERROR = 3


class Remedy(Enum):
    """What fixes an error, where that is a setting; the text is for users of the library.

    `{name}` stands for a value given where the error is raised.
    """

    NAME_LABEL_COLUMN = "name the label column"
    NAME_ANOTHER_LABEL = "name another column as the label"
    NAME_ONE_OF_COLUMNS = "name one of {columns}"
    OTHER_LABEL_COLUMN = "label_column names another"
    NAME_TEXT_COLUMN = "text_column names another"
    SAVE_SHEET = "save another sheet as CSV to read it"
    NAME_THE_TEXT = "name the text column"
    NAME_ENCODING = "name another encoding"
    GIVE_LABEL = "give its messages with a label, or give a source with labels"
    GIVE_LABEL_OR_FORMAT = "give its messages with a label, or save it to a file"
    SAY_FORMAT = "save it to a file to have it read as {format}"
    HEADER_IS_MESSAGE = "give it without its first row if that is not so"
    LEAVE_OUT_LABEL = "give it without a label"
    GIVE_OUTSIDE_LABEL = "give it with a label of its own"
    LEAVE_OUT_STRICT = "fix it, or read without strict to skip it"
    LEAVE_OUT_SEEN = "leave seen out to read all of it"
    NAME_SPAM_LABEL = "say which class is spam"
    NAME_ONE_AS_SPAM = "say which class is spam, {first} or {second}"
    NAME_SPAM_OR_COLUMN = "say which label is spam, or name the label column"
    NAME_CLASS = "learn it under the name of its class"
    LABEL_AS = "label such messages {name}, or train a new model"
    TRAIN_ANEW = "correct the label, or train a new model"
    TRAIN_AGAIN = "train it again from its messages"
    UPDATE_OR_REPLACE = "update it or replace it"
    UPDATE_IT = "update it"
    GIVE_TWO_CLASSES = "give messages of two classes"
    TWO_CLASSES_OR_UPDATE = "give messages of two classes, or update a model"
    REPLACE_OUTPUT = "replace it, or name another file"
    NAME_MODEL = "name the model file"
    CREATE_MODEL = "train a model and save it to {path}, or use another"
    LEAVE_OUT_LIMIT = "leave the limit out"
    ONE_PROCESS = "run it again with one process"
    ALLOW_OUTSIDE = "copy the file there, or give it as a source of its own"
    ANY_ADDRESS = "use 127.0.0.1, or allow any address"
    NAME_JUNK = "name the folder for spam"
    NAME_AUTH_HOST = "name your mail server with auth_host, or set trust_from to believe From"
    LEAVE_OUT_KEYWORDS = "leave the keywords out"


# Compiled where it is needed (`re` keeps it): nearly every line is printable as it is.
_UNPRINTABLE = "[\x00-\x1f\x7f-\x9f\u2028\u2029]"
_BIDIRECTIONAL = "[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"


def one_line(text: str) -> str:
    """Return a text without the characters that would break its line or command a terminal.

    A mark that turns the direction, so that `gpj.exe` may look like `exe.jpg`, becomes an escape.
    """
    if text.isprintable():
        return text
    text = re.sub(_UNPRINTABLE, "\ufffd", text)
    return re.sub(_BIDIRECTIONAL, lambda mark: f"\\u{ord(mark[0]):04x}", text)


def without_passwords(text: str) -> str:
    """Return a sentence without the passwords of the URLs in it."""
    for rest in text.split("://")[1:]:
        # The last @ before the path ends the password.
        user = re.split(r"[/\s]", rest, maxsplit=1)[0].rpartition("@")[0]
        if password := user.partition(":")[2]:
            text = text.replace(f":{password}@", ":…@")
    return text


def counted(n: int, noun: str) -> str:
    """Return a number of things, as sentences have it: `1 message`, `2,000 messages`."""
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
        """Say what is wrong.

        problem: a whole sentence; without its remedy where that is a `Remedy`.
        values: what stands in the remedy's braces.
        """
        self.problem, self.remedy, self.values = problem, remedy, values
        super().__init__(self.sentence({}))

    def sentence(self, remedies: Mapping[Remedy, str]) -> str:
        """Return the sentence, with the remedy in the reporting interface's words."""
        sentence = self.problem
        if self.remedy is not None:
            remedy = remedies.get(self.remedy, self.remedy.value)
            sentence = f"{sentence}; {remedy.format(**self.values)}"
        return one_line(without_passwords(sentence))


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
    words.csv: there is no column 'class'; name one of 'label', 'text'
    """


class TrainingError(NbspamError):
    """The messages read do not make a model.

    >>> try:
    ...     nbspam.train(pairs[:1])
    ... except nbspam.TrainingError as error:
    ...     print(error)
    there is only the class 'spam' to learn from; give messages of two classes
    """


class ModelError(NbspamError):
    """A model file is missing, damaged, newer than this program, or not a model.

    >>> try:
    ...     nbspam.open("none.json")
    ... except nbspam.ModelError as error:
    ...     print(error)
    none.json: model not found; train a model and save it to none.json, or use another
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
    """An option's value is invalid, alone or beside another's.

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
