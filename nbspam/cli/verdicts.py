"""What becomes of a verdict: an exit code, a mark in the message, a message learned."""

from typing import TYPE_CHECKING, NamedTuple

from nbspam.cli.notes import NoTrace
from nbspam.errors import OptionError, VerdictCode
from nbspam.filter import Filter
from nbspam.reading.marks import MARK, NAME_LIMIT, TAG_LIMIT, may_be_mark, may_be_tag
from nbspam.scoring.verdict import Verdict
from nbspam.store.metadata import Metadata

if TYPE_CHECKING:
    from nbspam.learning.self_training import SelfTraining


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


class SelfLearning(NamedTuple):
    """Whether to learn the verdicts, and from which probability on; None is the default."""

    learn: bool
    learn_from: float | None

    def check(self) -> None:
        """Raise OptionError for a senseless bound, and for one without --learn."""
        if self.learn_from is not None and not 0.5 <= self.learn_from <= 1:
            raise OptionError(f"--learn-from {self.learn_from} must be in [0.5, 1]; try 0.99")
        if self.learn_from is not None and not self.learn:
            raise OptionError("--learn-from goes with --learn alone; add that or leave it out")

    def training(self, model: str, metadata: Metadata) -> "SelfTraining | None":
        """Return what collects the sure verdicts, None without --learn."""
        if not self.learn:
            return None
        from nbspam.cli.self_training import self_training  # to classify needs no learning

        return self_training(model, metadata, self.learn_from)


def learn_collected(
    training: "SelfTraining | None",
    model: str,
    base: str | None,
    is_only_noted: bool,
    trace: NoTrace,
) -> None:
    """Learn what was collected, and log it; raises ModelError.

    is_only_noted: whether a failure is only noted, since the verdict is the outcome.
    """
    if training is not None:
        from nbspam.cli.self_training import learn_sure

        learn_sure(training, model, base, is_only_noted, trace)


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
