"""The score of a message, its verdict, and what decides: cut-offs, and rules that overrule them."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from nbspam.bayes import event_model
from nbspam.bayes.calibration import DECIMALS
from nbspam.bayes.event_model import logit
from nbspam.bayes.evidence import MessageEvidence
from nbspam.errors import OptionError, one_line
from nbspam.names import BLOCKED_SENDER, HAM, UNSURE
from nbspam.store.metadata import ELSEWHERE, HAM_CUTOFF, SPAM_CUTOFF, Metadata, ModelSettings
from nbspam.tokens.tokenized import CONTAINER, LIMITS

if TYPE_CHECKING:
    from nbspam.reading.senders import ListedSender

# The share of a text's tokens that must be known for a verdict of ham, because a text that the
# model cannot read must not pass as ham.  In P1 to P6, it turns 7 of 101,000 verdicts from ham into
# unsure; 6 of these messages are spam.  A verdict of spam needs only one known token.  With the
# same share for spam, 35 of 33,094 spams among the training messages would pass, and 1 of 44
# blocked hams would be saved; and 1,000 random words below a spam would make half of the spam
# unsure (docs/research/ideas-tried.md).
KNOWN_SHARE = 0.1
# Reasons, in every output, why a verdict is unsure although the probability is beyond a cut-off.
TOO_FEW_WORDS = "too few known words"
TOO_FEW_CLASSES = "too few learned classes"
FROM_ELSEWHERE = "unlike the learned mail"
TOO_LARGE = "too large to read whole"
IN_CONTAINER = "its text is in a container that may be read in part only"
# The most decimals of a number in JSON output.  With more, processors would differ; with fewer,
# probabilities near the floor of the log-loss (`LOG_LOSS_FLOOR`) would become 0.  Log-odds, weights
# and shares have DECIMALS.
JSON_DECIMALS = 12


class Score(NamedTuple):
    """The score of a message."""

    log_odds: float  # for the positive class, in nats
    probability: float  # P(positive class)
    probabilities: tuple[float, ...]  # per class, in the model's order
    evidences: tuple[MessageEvidence, ...] = ()  # per scored class; () under the sum rule
    # Log-probabilities per class, plus a constant; () for two classes under the evidence rule.
    log_scores: tuple[float, ...] = ()
    trust: float = 0.0  # in the header channel, 0 to 1
    doubt: float = 0.0  # degree to which the mail is from elsewhere, 0 to 1
    known: int = 0  # text tokens that the model knows
    text: int = 0  # all text tokens


def score_of_log_scores(settings: ModelSettings, log_scores: Sequence[float]) -> Score:
    """Convert log-scores of the classes, such as joint log-likelihoods, to a score."""
    positive = settings.positive_index
    probabilities = event_model.softmax(log_scores)
    if positive is None:  # several classes without spam: use the most probable class
        positive = max(range(len(log_scores)), key=log_scores.__getitem__)
    odds = event_model.class_log_odds(log_scores, positive)
    if len(log_scores) == 2:  # so that probabilities and odds agree to the last digit
        probabilities[positive] = event_model.sigmoid(odds)
        probabilities[1 - positive] = event_model.sigmoid(-odds)
    return Score(odds, probabilities[positive], tuple(probabilities), log_scores=tuple(log_scores))


class CutOffs(NamedTuple):
    """The bounds of spam and ham, as probabilities of the positive class."""

    spam: float = SPAM_CUTOFF
    ham: float = HAM_CUTOFF
    elsewhere: float = ELSEWHERE  # nats that spam certainly from elsewhere needs in addition

    @classmethod
    def from_model(cls, metadata: Metadata) -> "CutOffs":
        """Return a model's own cut-offs."""
        settings = metadata.settings
        return cls(settings.spam_cutoff, settings.ham_cutoff, settings.elsewhere)

    def applied_to(self, metadata: Metadata) -> Metadata:
        """Store these cut-offs in a model's metadata."""
        settings = metadata.settings._replace(
            spam_cutoff=self.spam, ham_cutoff=self.ham, elsewhere=self.elsewhere
        )
        return metadata._replace(settings=settings)

    def overridden(
        self,
        spam: float | None = None,
        ham: float | None = None,
        ham_cost: float | None = None,
        trust_elsewhere: bool | None = None,
    ) -> "CutOffs":
        """Replace the given cut-offs; raises OptionError.

        ham_cost: how many times worse a false positive is than a false negative; the expected cost
        is smallest with both cut-offs at cost / (1 + cost).
        trust_elsewhere: whether mail from elsewhere is called spam as easily as the user's own.
        If ham is not given, the ham cut-off is lowered to the given spam cut-off if necessary.
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
        elsewhere = self.elsewhere
        if trust_elsewhere is not None:
            elsewhere = 0.0 if trust_elsewhere else ELSEWHERE
        return CutOffs(spam, ham, elsewhere)


def classify_score(metadata: Metadata, score: Score, cut_offs: CutOffs) -> str:
    """Return the class of a message with this score, or `unsure`.

    With two classes: the positive class above the spam cut-off, which is higher for mail from
    elsewhere; the negative class up to the ham cut-off; otherwise unsure.  Also unsure if the model
    does not know enough words, or has learned fewer than two classes.
    With more classes: the most probable class.
    """
    if metadata.lacks_two_classes:
        return UNSURE
    settings = metadata.settings
    if len(settings.classes) > 2:
        best = max(range(len(settings.classes)), key=score.probabilities.__getitem__)
        return settings.classes[best]
    positive, has_tokens = settings.positive_index or 0, settings.counts.has_tokens
    spam_above = logit(cut_offs.spam) + cut_offs.elsewhere * score.doubt
    if score.log_odds > spam_above and (score.known or not has_tokens):
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
    probability: float  # P(positive class)
    log_odds: float  # for the positive class, in nats
    probabilities: Mapping[str, float]  # class -> probability
    source: str  # "-", a path, `path:line`
    label: str | None  # the class in its source, if any
    score: Score
    reason: str | None = None  # why the probability did not decide; None if it did

    def __repr__(self) -> str:
        return (
            f"<Verdict {self.verdict}{self.reason_suffix},"
            f" probability {self.displayed_probability:.4f}>"
        )

    @property
    def displayed_probability(self) -> float:
        """The probability to display; with three or more classes, the verdict's probability."""
        own = self.probabilities.get(self.verdict) if len(self.probabilities) > 2 else None
        return self.probability if own is None else own

    @property
    def reason_suffix(self) -> str:
        """The reason in parentheses, to follow the verdict in a sentence; "" without a reason."""
        return f" ({self.reason})" if self.reason else ""

    def as_line(self) -> str:
        """Return the line that commands print of the message, its fields separated by tabs."""
        fields = [self.verdict, f"{self.displayed_probability:.4f}", one_line(self.source)]
        return "\t".join([*fields, self.reason] if self.reason else fields)

    def as_json(self) -> dict[str, Any]:
        """Return the message's fields of every JSON output."""
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
    """Round all numbers in a JSON value, however deep, to `decimals` decimals."""
    if isinstance(value, float):
        return round(value, decimals)
    if isinstance(value, Mapping):
        return {key: rounded(inner, decimals) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(inner, decimals) for inner in value]
    return value


def make_verdict(
    metadata: Metadata,
    score: Score,
    cut_offs: CutOffs,
    source: str = "-",
    label: str | None = None,
    sender: "ListedSender | None" = None,
    tokens: Collection[str] = (),
) -> Verdict:
    """Return the verdict on a scored message; a list that names its sender overrules the score.

    tokens: the message's tokens.  A message that was not read whole is `unsure` where its score
    says ham, because the unread part may be spam.
    """
    probabilities = dict(zip(metadata.settings.classes, score.probabilities, strict=True))
    verdict, reason = classify_score(metadata, score, cut_offs), None
    positive, listed = metadata.settings.positive, sender.reason if sender else None
    if metadata.lacks_two_classes:
        reason = TOO_FEW_CLASSES
    elif verdict == UNSURE and score.known and score.log_odds > logit(cut_offs.spam):
        reason = FROM_ELSEWHERE
    elif verdict == UNSURE:
        if not logit(cut_offs.ham) < score.log_odds <= logit(cut_offs.spam):
            reason = TOO_FEW_WORDS
    elif positive not in (None, verdict) and not LIMITS.isdisjoint(tokens):
        is_container = f"limit:{CONTAINER}" in tokens
        verdict, reason = UNSURE, IN_CONTAINER if is_container else TOO_LARGE
    if listed and positive is not None:
        reason = listed
        if listed == BLOCKED_SENDER:
            verdict = positive
        elif verdict in (positive, UNSURE):
            others = {name: p for name, p in probabilities.items() if name != positive}
            verdict = HAM if HAM in others else max(others, key=others.__getitem__, default=UNSURE)
    numbers = score.probability, round(score.log_odds, DECIMALS), probabilities
    return Verdict(verdict, *numbers, source, label, score, reason)
