"""What becomes of a verdict: an exit code, a mark in the message."""

from typing import NamedTuple

from nbspam.errors import OptionError, VerdictCode
from nbspam.filter import Filter
from nbspam.reading.marks import MARK, NAME_LIMIT, TAG_LIMIT, may_be_mark, may_be_tag
from nbspam.scoring.verdict import Verdict
from nbspam.store.metadata import Metadata


class Marking(NamedTuple):
    """How -p marks the message; None is the default."""

    header: str | None
    subject_tag: str | None
    evidence: int | None
    on_error: str | None  # read from the arguments by nbspam_main.py

    def name(self) -> str:
        """Return the header's name; raises OptionError."""
        if self.header is not None and not may_be_mark(self.header):
            raise OptionError(
                f"--header {self.header!r} cannot hold the verdict; take a name of at most"
                f" {NAME_LIMIT} letters and hyphens that mail does not use itself, such as {MARK}"
            )
        return self.header or MARK

    def tag(self) -> str:
        """Return the Subject's tag, "" for none; raises OptionError."""
        if self.subject_tag is not None and not may_be_tag(self.subject_tag):
            raise OptionError(
                f"--subject-tag {self.subject_tag!r} cannot go before a Subject; take at most"
                f" {TAG_LIMIT} plain ASCII characters without blanks around them, such as [SPAM]"
            )
        return self.subject_tag or ""

    def check(self) -> None:
        """Raise OptionError for a mark that no message can have."""
        self.name()
        self.tag()

    def refuse(self) -> None:
        """Raise OptionError if an option was given that only -p has a use for."""
        for name, value in self._asdict().items():
            if value is not None:
                raise OptionError(
                    f"--{name.replace('_', '-')} goes with --passthrough alone; add that or leave"
                    " it out"
                )


def check_positive(metadata: Metadata) -> None:
    """Raise OptionError for a model without a class that counts as spam."""
    if metadata.settings.positive is None:
        raise OptionError(
            "--exit-code needs a class that counts as spam, and the model has none; name it with"
            " train --spam-label, or leave out --exit-code"
        )


def verdict_code(spam_filter: Filter, judged: Verdict) -> VerdictCode:
    """Return the exit code of a verdict."""
    if judged.verdict == spam_filter.metadata.settings.positive:
        return VerdictCode.SPAM
    return VerdictCode.HAM if judged.verdict in judged.probabilities else VerdictCode.UNSURE
