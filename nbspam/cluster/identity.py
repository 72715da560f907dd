"""What must be the same on every machine, so that each makes the same tokens of a message."""

import sys
from typing import NamedTuple

from nbspam import __version__
from nbspam.errors import NbspamError
from nbspam.tokens.tokenizer import RULES


class ProgramVersion(NamedTuple):
    """A program, as far as tokens depend on it."""

    nbspam: str
    rules: int  # of the tokenizer
    python: str  # whose tables of Unicode say what a letter is

    def __str__(self) -> str:
        return f"nbspam {self.nbspam} (rules {self.rules}) on Python {self.python}"


def program_version() -> ProgramVersion:
    """Return this program's."""
    return ProgramVersion(__version__, RULES, "{}.{}".format(*sys.version_info))


class OtherVersionError(NbspamError):
    """A worker has another version of the program."""


def check_identity(expected: ProgramVersion) -> None:
    """Raise OtherVersionError unless this program is the expected one."""
    if (here := program_version()) != expected:
        raise OtherVersionError(f"has {here}, and this machine has {expected}")
