"""The errors nbspam raises, and the exit codes it answers with.  Imports nothing of ours.

NbspamError                 exit 1: one sentence, ending with the remedy
├── SourceError             a source of messages cannot be read
│   └── TableError          a table whose columns cannot be made out
├── TrainingError           what was read cannot be learned from
├── ModelError              a model file is missing, damaged, newer, or not a model
├── ServingError            a server cannot listen where it was told to
└── OptionError             exit 2: an option's value makes no sense

Every sentence names the file, says what is wrong with it and what to do about it.
"""

import re
from enum import IntEnum


class ExitCode(IntEnum):
    """What the process answers with; `--exit-code` changes the meaning of 0 to 3."""

    DONE = 0
    ERROR = 1
    USAGE = 2
    TEMPFAIL = 75  # of a passthrough, as sysexits.h has it: try again later


class VerdictCode(IntEnum):
    """The answers of `classify --exit-code`: bogofilter's, so that its recipes carry over."""

    SPAM = 0
    HAM = 1
    UNSURE = 2
    ERROR = 3


_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def one_line(text: str) -> str:
    """Return a text without what would break its line, or command a terminal: names may hold it."""
    return _UNSEEN.sub("\ufffd", text)


class NbspamError(Exception):
    """Something the user can mend; its text is one sentence with the remedy."""

    exit_code = ExitCode.ERROR

    def __init__(self, sentence: str) -> None:
        super().__init__(one_line(sentence))


class SourceError(NbspamError):
    """A source of messages cannot be read."""


class TableError(SourceError):
    """A table's label or text column cannot be made out."""


class TrainingError(NbspamError):
    """The messages read do not make a model."""


class ModelError(NbspamError):
    """A model file is missing, damaged, newer than this program, or no model at all."""


class ServingError(NbspamError):
    """A server cannot listen where it was told to."""


class OptionError(NbspamError):
    """An option's value makes no sense, alone or beside another's."""

    exit_code = ExitCode.USAGE
