"""A model in memory that scores and learns in turn, with the standard library alone."""

from collections import Counter, deque
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from nbspam.bayes.calibration import Calibrations, relearned
from nbspam.bayes.event_model import Row
from nbspam.scoring.classifier import Classifier, Counts
from nbspam.scoring.rules import EvidenceRule, rule_of
from nbspam.store.metadata import Metadata
from nbspam.tokens.kinds import is_host
from nbspam.tokens.tokenized import NO_NUMBERS, Numbers

if TYPE_CHECKING:
    from nbspam.scoring.base import Base

# Messages whose effect on the calibration can be undone: 150 bytes of metadata each, which every
# classified message reads.  A mistake is noticed within days; a folder learned by mistake refines
# the calibration some 20 times (`calibration.RUN`).
RECENT = 50


class OnlineLearner:
    """Counts that grow message by message, and the calibration that each message refines.

    The counts do not depend on the order of learning; the calibration does.  Each message refines
    it by the score that it would have if it had not been learned.  The messages of a batch are
    scored after all were learned, each left out, so by the filter that will be used.  Learning 622
    spam and then 2,080 ham, two batches of SpamAssassin's, made 33 errors on the other half of the
    corpus this way, and 443 with each message scored by those before it: a filter that has learned
    little ham calls all ham spam, and that stays in the calibration.
    """

    def __init__(
        self, metadata: Metadata, counts: dict[str, Row], base: "Base | None" = None
    ) -> None:
        """Start from a model.

        counts: of all tokens of the model that the messages will have; changed in place.
        base: the model that this one is read through; its counts stay unchanged.
        """
        self._counts = counts  # without what is in _added
        self._base = base
        self._classifier_with = Classifier if base is None else base.classifier
        self._settings, learned = metadata if base is None else base.begun(metadata)
        self._relearned = partial(relearned, self._settings.scales, self._settings.scored_classes)
        # Token -> what was learned of it since its row was written, per class: of 1,400 mails'
        # 720,000 tokens 180,000 differ, and counting them one by one took six times as long.
        self._added: list[Counter[str]] = [Counter() for _ in self._settings.classes]
        self._learned = learned  # but for what follows it here
        self._messages = list(learned.messages)
        self._histograms = [Counter(row) for row in learned.count_histograms]
        self._host_rows = Counter(learned.host_rows)
        self._event_model = self._settings.counts
        self._is_calibrated = rule_of(metadata).is_calibrated
        self._trait_histograms = [list(map(Counter, row)) for row in learned.trait_histograms]
        # The calibrations before each of the last lessons, as far as those were learned here.
        self._before: deque[tuple[Calibrations, ...]] = deque(maxlen=RECENT)
        self._is_stale = False  # whether a lesson went since it was learned
        self._left_out: dict[int, Classifier] = {}  # per class, of which a message is left out

    @property
    def counts(self) -> dict[str, Row]:
        """The current counts per class of each token."""
        self._settle()
        return self._counts

    def _settle(self) -> None:
        """Update rows and histograms by what was added; replay the lessons if one was removed."""
        if self._is_stale:
            self._is_stale = False
            learned, calibrations = self._learned, self._learned.before
            for lesson in learned.recent:
                calibrations = self._relearned(calibrations, lesson)
            before = learned.before if learned.recent else ()
            self._learned = learned._replace(calibrations=calibrations, before=before)
        for k, added in enumerate(self._added):
            if added:
                self._added[k] = Counter()
                self._add(k, added)

    def _add(self, k: int, added: Counter[str]) -> None:
        """Change the tokens' counts in class k; few rows differ, and each is computed once."""
        counts, none = self._counts, (0,) * len(self._messages)
        before = [counts.get(token, none) for token in added]
        pairs = list(zip(before, added.values(), strict=True))
        steps = Counter(pairs)
        after = {(row, n): (*row[:k], row[k] + n, *row[k + 1 :]) for row, n in steps}
        counts.update(zip(added, map(after.__getitem__, pairs), strict=True))
        for (row, n), tokens in steps.items():
            for counts_in_row, by in ((row, -tokens), (after[row, n], tokens)):
                pairs_of_row = zip(self._histograms, counts_in_row, strict=True)
                for histogram, count in pairs_of_row if any(counts_in_row) else ():
                    histogram[count] += by
        for (token, n), row in zip(added.items(), before, strict=True):
            if is_host(token):
                self._host_rows[row] -= any(row)
                self._host_rows[after[row, n]] += any(after[row, n])

    @property
    def metadata(self) -> Metadata:
        """The model's current metadata; a later message does not change it."""
        self._settle()
        traits = tuple(tuple(map(Counter, of_trait)) for of_trait in self._trait_histograms)
        learned = self._learned._replace(
            messages=tuple(self._messages),
            count_histograms=tuple(+histogram for histogram in self._histograms),
            host_rows=+self._host_rows,
            trait_histograms=traits,
        )
        return Metadata(self._settings, learned)

    def classifier(self) -> Classifier:
        """Return a classifier of the current model, valid until more is learned."""
        return self._classifier_with(self.metadata, self._known)

    def _known(self, tokens: Iterable[str]) -> Counts:
        counts = self.counts
        return {token: counts[token] for token in tokens if token in counts}

    def learn(self, label: str, tokens: Iterable[str], numbers: Numbers = NO_NUMBERS) -> None:
        """Count a message's tokens and traits; `refine` also adapts the calibration to it."""
        k = self._settings.classes.index(label)
        self._messages[k] += 1
        self._left_out.clear()
        added = self._added[k]
        if self._event_model.has_tokens and self._event_model.repeats and numbers.times:
            for token in tokens:
                added[token] += numbers.times.get(token, 1)
        elif self._event_model.has_tokens:
            added.update(tokens)
        self._count_traits(k, numbers, 1)

    def refine(
        self, label: str, tokens: Iterable[str], numbers: Numbers = NO_NUMBERS, digest: str = ""
    ) -> None:
        """Refine the calibration by a message that was learned, scored with itself left out.

        A model of one class has no calibration to refine.  digest: for `unlearn` to undo this.
        """
        k = self._settings.classes.index(label)
        if not self._is_calibrated or (self._base is None and sum(map(bool, self._without(k))) < 2):
            return
        self._settle()
        if not self._event_model.repeats:
            classifier = self._without_one(k)
            known = classifier.known_words(tokens, numbers, left_out=k)
        else:  # what is left without the message depends on the message
            tokens = list(tokens)
            self._take_out(k, tokens, numbers)
            classifier = self.classifier()
            known = classifier.known_words(tokens, numbers)
            self.learn(label, tokens, numbers)
        assert isinstance(classifier.rule, EvidenceRule)
        learned, now = self._learned, self._learned.calibrations
        lesson = classifier.rule.lesson(now, known, k, digest)
        if not any(x for inputs in lesson.inputs for x in inputs):
            return
        before, recent = learned.before or now, (*learned.recent, lesson)
        self._before.append(now)
        if len(recent) > RECENT:
            is_known = len(self._before) == RECENT
            before = self._before[0] if is_known else self._relearned(before, recent[0])
        self._learned = learned._replace(
            calibrations=self._relearned(now, lesson), recent=recent[-RECENT:], before=before
        )

    def _without(self, k: int) -> list[int]:
        """Return the messages per class without one of class k."""
        return [n - (i == k) for i, n in enumerate(self._messages)]

    def _without_one(self, k: int) -> Classifier:
        """Return a classifier without one message of class k in its counts; its traits have it.

        It is the same for all messages of class k.
        """
        if k in self._left_out:
            return self._left_out[k]
        # The count histograms stay as they were: the features do not depend on them.
        learned = self.metadata.learned._replace(messages=tuple(self._without(k)))
        less: dict[Row, Row] = {}
        counts = self.counts  # and not the learner, which keeps the classifier: no cycle

        def counts_of(tokens: Iterable[str]) -> Counts:
            rows = {token: counts[token] for token in tokens if token in counts}
            for row in set(rows.values()) - less.keys():
                less[row] = (*row[:k], row[k] - 1, *row[k + 1 :])
            return {token: less[row] for token, row in rows.items() if any(less[row])}

        self._left_out[k] = self._classifier_with(Metadata(self._settings, learned), counts_of)
        return self._left_out[k]

    def unlearn(
        self, label: str, tokens: Iterable[str], numbers: Numbers = NO_NUMBERS, digest: str = ""
    ) -> None:
        """Take a message out of the counts, and its recent effect out of the calibration.

        A token that was pruned since, or that no message of the class has, is skipped.
        digest: that of `refine`.  Later lessons are replayed, so the order in which messages are
        taken out does not matter.  Older lessons, and the fit, stay in the calibration.
        """
        k = self._settings.classes.index(label)
        self._take_out(k, tokens, numbers)
        recent = self._learned.recent
        places = [i for i, old in enumerate(recent) if (old.digest, old.label) == (digest, k)]
        if digest and places:
            lessons = recent[: places[-1]] + recent[places[-1] + 1 :]
            self._learned = self._learned._replace(recent=lessons)
            self._before.clear()
            self._is_stale = True

    def _take_out(self, k: int, tokens: Iterable[str], numbers: Numbers) -> None:
        self._messages[k] -= 1
        self._left_out.clear()
        times = numbers.times if self._event_model.repeats else NO_NUMBERS.times
        if self._event_model.has_tokens:
            known = self._known(tokens)
            changes = {token: -min(row[k], times.get(token, 1)) for token, row in known.items()}
            self._add(k, Counter({token: n for token, n in changes.items() if n}))
            for token in changes:
                if not any(self._counts[token]):  # no message has it
                    del self._counts[token]
        self._count_traits(k, numbers, -1)

    def _count_traits(self, k: int, numbers: Numbers, by: int) -> None:
        """Add a message of class k to the histograms of the traits, or take it away."""
        for of_trait, value in zip(self._trait_histograms, numbers.traits, strict=False):
            histogram = of_trait[k]
            histogram[value] += by
            if histogram[value] <= 0:
                del histogram[value]

    def has(
        self, label: str, tokens: Iterable[str], numbers: Numbers = NO_NUMBERS, pruned: bool = False
    ) -> bool:
        """Return whether a class may have learned a message with these tokens.

        It has not if it has no message, or lacks one of the tokens, or has another token in all its
        messages, of which this would be one.
        pruned: whether tokens may be missing.
        """
        k = self._settings.classes.index(label)
        n = self._messages[k]
        of_traits = zip(self._trait_histograms, numbers.traits, strict=False)
        if not n or not all(of_trait[k][value] for of_trait, value in of_traits):
            return False
        if not self._event_model.has_tokens:
            return True
        tokens, repeats, rows = list(tokens), self._event_model.repeats, self.counts
        times = numbers.times if repeats else NO_NUMBERS.times
        counts = [row[k] if row else 0 for row in map(rows.get, tokens)]
        pairs = zip(tokens, counts, strict=True)
        may_be = pruned or all(count >= times.get(token, 1) for token, count in pairs)
        return may_be and (repeats or counts.count(n) == self._histograms[k][n])
