"""From a score to a verdict: the cut-offs, and the rules that overrule the number."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from nbspam.bayes.calibration import DECIMALS
from nbspam.bayes.event_model import logit
from nbspam.errors import OptionError, one_line
from nbspam.names import BLOCKED_SENDER, HAM, UNSURE
from nbspam.scoring.rules import Score
from nbspam.store.metadata import HAM_CUTOFF, SPAM_CUTOFF, Metadata

if TYPE_CHECKING:
    from nbspam.reading.senders import ListedSender

# Of the tokens of a text so many must be known for a verdict of ham, and one for a verdict of spam:
# what the model cannot read it must not pass as ham.  Of 101,000 messages in P1 to P6 that makes 7
# unsure that were ham before, 6 of them spam.  Spam needs one known token: with 1 in 10, 35 spams
# would pass for one ham of 44 that are blocked (33,094 verdicts of spam in training messages), and
# 1,000 random words below a spam would make every second one unsure: docs/research/ideas-tried.md.
KNOWN_SHARE = 0.1
# Why a message is unsure whose probability is beyond a cut-off, as every output says it.
TOO_FEW_WORDS = "too few known words"
TOO_FEW_CLASSES = "too few learned classes"
# Of a number in JSON output, at most: the same on every processor, and as fine as the log-loss is
# (`LOG_LOSS_FLOOR`).  Log-odds, weights and shares have DECIMALS.
JSON_DECIMALS = 12


class CutOffs(NamedTuple):
    """Where spam begins and ham ends, as probabilities of the positive class."""

    spam: float = SPAM_CUTOFF
    ham: float = HAM_CUTOFF

    @classmethod
    def of_model(cls, metadata: Metadata) -> "CutOffs":
        """Return the cut-offs that a model has of its own."""
        return cls(metadata.settings.spam_cutoff, metadata.settings.ham_cutoff)

    def stored_in(self, metadata: Metadata) -> Metadata:
        """Return the metadata of a model that has these cut-offs of its own."""
        settings = metadata.settings._replace(spam_cutoff=self.spam, ham_cutoff=self.ham)
        return metadata._replace(settings=settings)

    def changed(
        self, spam: float | None = None, ham: float | None = None, ham_cost: float | None = None
    ) -> "CutOffs":
        """Return the cut-offs with those replaced that are given; raises OptionError.

        ham_cost: how many times worse a false positive is than a false negative; the expected cost
        is least with both cut-offs at cost / (1 + cost).
        A ham cut-off that is not given is never above a spam cut-off that is.
        """
        if ham_cost is not None:
            if spam is not None or ham is not None:
                raise OptionError(
                    "the ham cost sets both cut-offs; leave out the spam and the ham cut-off"
                )
            if not 0 < ham_cost < math.inf:
                raise OptionError(
                    f"the ham cost must be above 0, not {ham_cost}; 9 is a careful choice"
                )
            spam = ham = ham_cost / (1 + ham_cost)
        for name, value, usual in (("spam", spam, SPAM_CUTOFF), ("ham", ham, HAM_CUTOFF)):
            if value is not None and not 0 <= value <= 1:
                raise OptionError(
                    f"the {name} cut-off must be between 0 and 1, not {value}; {usual} is the"
                    " default"
                )
        spam = self.spam if spam is None else spam
        ham = min(self.ham, spam) if ham is None else ham
        if ham > spam:
            raise OptionError(
                f"the ham cut-off, {ham:g}, is above the spam cut-off, {spam:g}; lower the one or"
                " raise the other"
            )
        return CutOffs(spam, ham)


def verdict_of(metadata: Metadata, score: Score, cut_offs: CutOffs) -> str:
    """Return the class of a message with this score, or `unsure`.

    Two classes: positive above the spam cut-off, negative up to the ham cut-off, else unsure; and
    unsure whatever the score if the model does not know the words.  More: the most probable class.
    Unsure while fewer than two classes have been seen.
    """
    if metadata.is_one_sided:
        return UNSURE
    settings = metadata.settings
    if len(settings.classes) > 2:
        best = max(range(len(settings.classes)), key=score.probabilities.__getitem__)
        return settings.classes[best]
    positive, has_tokens = settings.positive_index or 0, settings.counts.has_tokens
    if score.log_odds > logit(cut_offs.spam) and (score.known or not has_tokens):
        return settings.classes[positive]
    knows_enough = score.known and score.known / max(1, score.text) >= KNOWN_SHARE
    if score.log_odds <= logit(cut_offs.ham) and (knows_enough or not has_tokens):
        return settings.classes[1 - positive]
    return UNSURE


class Verdict(NamedTuple):
    """A classified message.

    >>> verdict = spam_filter.classify("win a prize")
    >>> verdict.verdict, verdict.probability > 0.9, verdict.log_odds > 2
    ('spam', True, True)
    """

    verdict: str  # the name of a class, or "unsure"
    probability: float  # of the positive class
    log_odds: float  # of the positive class, in nats
    probabilities: Mapping[str, float]  # of each class
    source: str  # "-", a path, `path:line`
    label: str | None  # the class that its source gives, if any
    score: Score
    reason: str | None = None  # what decided, where not the probability did

    def __repr__(self) -> str:
        return f"<Verdict {self.verdict}{self.remark}, probability {self.own_probability:.4f}>"

    @property
    def own_probability(self) -> float:
        """The probability that people are shown: with three or more classes that of the verdict."""
        own = self.probabilities.get(self.verdict) if len(self.probabilities) > 2 else None
        return self.probability if own is None else own

    @property
    def remark(self) -> str:
        """The reason as it stands after the verdict in a sentence; empty where there is none."""
        return f" ({self.reason})" if self.reason else ""

    def as_line(self) -> str:
        """Return the line that commands print of the message, its fields separated by tabs."""
        fields = [self.verdict, f"{self.own_probability:.4f}", one_line(self.source)]
        return "\t".join([*fields, self.reason] if self.reason else fields)

    def as_json(self) -> dict[str, Any]:
        """Return what every JSON output says of the message."""
        fields: dict[str, Any] = {
            "source": self.source,
            "verdict": self.verdict,
            "probability": self.probability,
            "log_odds": self.log_odds,
        }
        if self.reason:
            fields["reason"] = self.reason
        if len(self.probabilities) > 2:
            fields["probabilities"] = self.probabilities
        return cast(dict[str, Any], rounded(fields))


def rounded(value: Any, decimals: int = JSON_DECIMALS) -> Any:
    """Return what JSON output has of a value: its numbers, however deep, have so many decimals."""
    if isinstance(value, float):
        return round(value, decimals)
    if isinstance(value, Mapping):
        return {key: rounded(inner, decimals) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner, decimals) for inner in value]
    return value


def verdict_on(
    metadata: Metadata,
    score: Score,
    cut_offs: CutOffs,
    source: str = "-",
    label: str | None = None,
    sender: "ListedSender | None" = None,
) -> Verdict:
    """Return the verdict on a scored message; a list of senders that names its own overrules it."""
    probabilities = dict(zip(metadata.settings.classes, score.probabilities, strict=True))
    verdict, reason = verdict_of(metadata, score, cut_offs), None
    if metadata.is_one_sided:
        reason = TOO_FEW_CLASSES
    elif verdict == UNSURE and not logit(cut_offs.ham) < score.log_odds <= logit(cut_offs.spam):
        reason = TOO_FEW_WORDS
    positive, listed = metadata.settings.positive, sender.reason if sender else None
    if listed and positive is not None:
        reason = listed
        if listed == BLOCKED_SENDER:
            verdict = positive
        elif verdict in (positive, UNSURE):
            others = {name: p for name, p in probabilities.items() if name != positive}
            verdict = HAM if HAM in others else max(others, key=others.__getitem__, default=UNSURE)
    numbers = score.probability, round(score.log_odds, DECIMALS), probabilities
    return Verdict(verdict, *numbers, source, label, score, reason)
