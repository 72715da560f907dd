"""The learner: a model, in memory or in a file, that learns and scores message by message.

The learner reads only the lines of the model file that its messages need, and copies all other
lines unread when it writes the file.  Standard library only.
"""

from collections import Counter, deque
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from nbspam.bayes.calibration import Calibrations, replay_lesson
from nbspam.bayes.event_model import Row
from nbspam.errors import ModelError
from nbspam.learning.corpus import Corpus
from nbspam.scoring.classifier import Classifier, Counts
from nbspam.scoring.rules import EvidenceRule, scoring_rule
from nbspam.store import model_file
from nbspam.store.lookup import Lookup, Model
from nbspam.store.metadata import Metadata, with_columns
from nbspam.store.model_file import UnsavedModel
from nbspam.tokens.kinds import is_domain, is_host
from nbspam.tokens.tokenized import NO_EXTRAS, TokenExtras, TokenizedMessage

if TYPE_CHECKING:
    from nbspam.scoring.base import Base

Place = Path | UnsavedModel
Step = tuple[int | None, int | None]  # the classes that a message leaves and joins, if any
# The number of messages whose effect on the calibration can be undone.  Each takes 150 bytes of
# metadata, which every classification reads.  Mistakes are noticed within days, and a folder
# learned by mistake refines the calibration only about 20 times (`calibration.MAX_RUN`).
RECENT = 50


class Learner:
    """Counts that grow message by message, and the calibration that each message refines.

    The counts do not depend on the order of learning; the calibration does.  Each message refines
    the calibration by its score as if it had not been learned.  The messages of a batch are counted
    first, and then each is left out and scored, because the refined calibration will be used with
    all counts.  With two batches of SpamAssassin's corpus, 622 spam and then 2,080 ham, this made
    33 errors on the other half of the corpus.  Scored before the later messages were counted, the
    batches led to 443 errors: a filter that has learned little ham calls all ham spam, and the
    calibration would keep that.
    """

    def __init__(
        self,
        metadata: Metadata,
        counts: dict[str, Row] | None = None,
        base: "Base | None" = None,
        lookup: Lookup | None = None,
        remember: bool = True,
    ) -> None:
        """metadata: the model's, before learning.

        counts: the rows of the messages' tokens; changed in place.
        base: the model whose counts are added; the base stays unchanged.
        lookup: the model's open file, from which `read` gets the lines of some messages.
        remember: record learned messages in the ledger.
        """
        self._counts = {} if counts is None else counts  # counts without _pending_counts
        self._lookup, self.remember = lookup, remember
        self.ledger: dict[str, Row] = {}
        self._in_file: tuple[dict[str, Row], dict[str, Row]] = ({}, {})  # counts and ledger
        self.base = base
        self._classifier_with = Classifier if base is None else base.classifier
        self._settings, learned = (
            metadata if base is None else base.with_base_calibrations(metadata)
        )
        self._replay = partial(
            replay_lesson, self._settings.calibration_specs, self._settings.scored_classes
        )
        # Token -> its new messages since its row was updated, per class.  1,400 mails have 720,000
        # tokens, of which 180,000 are different, so updating the row of each token of each mail
        # took six times as long.
        self._pending_counts: list[Counter[str]] = [Counter() for _ in self._settings.classes]
        self._learned = learned  # the learned state, without the values of the following attributes
        self._messages = list(learned.messages)
        self._histograms = [Counter(row) for row in learned.count_histograms]
        self._host_rows = Counter(learned.host_rows)
        self._domain_rows = Counter(learned.domain_rows)
        self._event_model = self._settings.counts
        self._is_calibrated = scoring_rule(metadata).is_calibrated
        self._trait_histograms = [list(map(Counter, row)) for row in learned.trait_histograms]
        # The calibrations before each of the last lessons that were learned here.
        self._before: deque[tuple[Calibrations, ...]] = deque(maxlen=RECENT)
        self._is_stale = False  # a lesson was removed
        self._left_out: dict[int, Classifier] = {}  # class -> classifier without one message of it

    @property
    def counts(self) -> dict[str, Row]:
        """The current counts per class of each token."""
        self._flush()
        return self._counts

    def _flush(self) -> None:
        """Apply the pending counts; replay the lessons if one was removed."""
        if self._is_stale:
            self._is_stale = False
            learned, calibrations = self._learned, self._learned.before
            for lesson in learned.recent:
                calibrations = self._replay(calibrations, lesson)
            before = learned.before if learned.recent else ()
            self._learned = learned._replace(calibrations=calibrations, before=before)
        for k, added in enumerate(self._pending_counts):
            if added:
                self._pending_counts[k] = Counter()
                self._add(k, added)

    def _add(self, k: int, added: Counter[str]) -> None:
        """Add to the tokens' counts in class k; a row that many tokens share is computed once."""
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
            if is_host(token) or is_domain(token):
                rows = self._host_rows if is_host(token) else self._domain_rows
                rows[row] -= any(row)
                rows[after[row, n]] += any(after[row, n])

    @property
    def metadata(self) -> Metadata:
        """The current metadata, which later messages do not change."""
        self._flush()
        traits = tuple(tuple(map(Counter, of_trait)) for of_trait in self._trait_histograms)
        learned = self._learned._replace(
            messages=tuple(self._messages),
            count_histograms=tuple(+histogram for histogram in self._histograms),
            host_rows=+self._host_rows,
            domain_rows=+self._domain_rows,
            trait_histograms=traits,
        )
        return Metadata(self._settings, learned)

    def classifier(self) -> Classifier:
        """Return a classifier of the current model, valid until more is learned."""
        return self._classifier_with(self.metadata, self._known)

    def _known(self, tokens: Iterable[str]) -> Counts:
        counts = self.counts
        return {token: counts[token] for token in tokens if token in counts}

    def learn(self, label: str, tokens: Iterable[str], extras: TokenExtras = NO_EXTRAS) -> None:
        """Count a message's tokens and traits; `refine` adapts the calibration to the message."""
        k = self._settings.classes.index(label)
        self._messages[k] += 1
        self._left_out.clear()
        added = self._pending_counts[k]
        if self._event_model.has_tokens and self._event_model.counts_repeats and extras.times:
            for token in tokens:
                added[token] += extras.times.get(token, 1)
        elif self._event_model.has_tokens:
            added.update(tokens)
        self._count_traits(k, extras, 1)

    def refine(
        self, label: str, tokens: Iterable[str], extras: TokenExtras = NO_EXTRAS, digest: str = ""
    ) -> None:
        """Refine the calibration by a learned message, scored with itself left out.

        A model of one class has no calibration to refine.  digest: lets `unlearn` undo this.
        """
        k = self._settings.classes.index(label)
        if not self._is_calibrated or (
            self.base is None and sum(map(bool, self._messages_without(k))) < 2
        ):
            return
        self._flush()
        if not self._event_model.counts_repeats:
            classifier = self._without_one(k)
            known = classifier.known_words(tokens, extras, left_out=k)
        else:  # counts without the message are different for each message
            tokens = list(tokens)
            self._subtract(k, tokens, extras)
            classifier = self.classifier()
            known = classifier.known_words(tokens, extras)
            self.learn(label, tokens, extras)
        assert isinstance(classifier.rule, EvidenceRule)
        learned, now = self._learned, self._learned.calibrations
        lesson = classifier.rule.calibration_lesson(now, known, k, digest)
        if not any(x for inputs in lesson.inputs for x in inputs):
            return
        before, recent = learned.before or now, (*learned.recent, lesson)
        self._before.append(now)
        if len(recent) > RECENT:
            is_known = len(self._before) == RECENT
            before = self._before[0] if is_known else self._replay(before, recent[0])
        self._learned = learned._replace(
            calibrations=self._replay(now, lesson), recent=recent[-RECENT:], before=before
        )

    def _messages_without(self, k: int) -> list[int]:
        """Return the numbers of messages per class, without one message of class k."""
        return [n - (i == k) for i, n in enumerate(self._messages)]

    def _without_one(self, k: int) -> Classifier:
        """Return a classifier without one message of class k in its counts, but with its traits.

        The classifier is the same for all messages of class k.
        """
        if k in self._left_out:
            return self._left_out[k]
        # Features do not depend on the count histograms, so the histograms stay unchanged.
        learned = self.metadata.learned._replace(messages=tuple(self._messages_without(k)))
        left_out_rows: dict[Row, Row] = {}
        counts = self.counts  # not self, which would be a reference cycle with the classifier

        def counts_of(tokens: Iterable[str]) -> Counts:
            rows = {token: counts[token] for token in tokens if token in counts}
            for row in set(rows.values()) - left_out_rows.keys():
                left_out_rows[row] = (*row[:k], row[k] - 1, *row[k + 1 :])
            return {
                token: left_out_rows[row] for token, row in rows.items() if any(left_out_rows[row])
            }

        self._left_out[k] = self._classifier_with(Metadata(self._settings, learned), counts_of)
        return self._left_out[k]

    def unlearn(
        self, label: str, tokens: Iterable[str], extras: TokenExtras = NO_EXTRAS, digest: str = ""
    ) -> None:
        """Remove a message from the counts, and its recent effect from the calibration.

        Skips a token that was pruned since, or that no message of the class has.
        digest: the one given to `refine`.  Later lessons are replayed, so messages can be removed
        in any order.  Lessons older than RECENT, and the fit, stay in the calibration.
        """
        k = self._settings.classes.index(label)
        self._subtract(k, tokens, extras)
        recent = self._learned.recent
        places = [i for i, old in enumerate(recent) if (old.digest, old.label) == (digest, k)]
        if digest and places:
            lessons = recent[: places[-1]] + recent[places[-1] + 1 :]
            self._learned = self._learned._replace(recent=lessons)
            self._before.clear()
            self._is_stale = True

    def _subtract(self, k: int, tokens: Iterable[str], extras: TokenExtras) -> None:
        self._messages[k] -= 1
        self._left_out.clear()
        times = extras.times if self._event_model.counts_repeats else NO_EXTRAS.times
        if self._event_model.has_tokens:
            known = self._known(tokens)
            changes = {token: -min(row[k], times.get(token, 1)) for token, row in known.items()}
            self._add(k, Counter({token: n for token, n in changes.items() if n}))
            for token in changes:
                if not any(self._counts[token]):
                    del self._counts[token]
        self._count_traits(k, extras, -1)

    def _count_traits(self, k: int, extras: TokenExtras, by: int) -> None:
        """Add a message of class k to the trait histograms (by 1), or remove it (by -1)."""
        for of_trait, value in zip(self._trait_histograms, extras.traits, strict=False):
            histogram = of_trait[k]
            histogram[value] += by
            if histogram[value] <= 0:
                del histogram[value]

    def may_have_learned(
        self,
        label: str,
        tokens: Iterable[str],
        extras: TokenExtras = NO_EXTRAS,
        pruned: bool = False,
    ) -> bool:
        """Return whether a class may have learned a message with these tokens.

        A class has not learned the message if the class has no message, lacks one of the tokens, or
        has in all of its messages a token that this message lacks.
        pruned: tokens may be missing from the counts.
        """
        k = self._settings.classes.index(label)
        n = self._messages[k]
        of_traits = zip(self._trait_histograms, extras.traits, strict=False)
        if not n or not all(of_trait[k][value] for of_trait, value in of_traits):
            return False
        if not self._event_model.has_tokens:
            return True
        tokens, repeats, rows = list(tokens), self._event_model.counts_repeats, self.counts
        times = extras.times if repeats else NO_EXTRAS.times
        counts = [row[k] if row else 0 for row in map(rows.get, tokens)]
        pairs = zip(tokens, counts, strict=True)
        may_be = pruned or all(count >= times.get(token, 1) for token, count in pairs)
        return may_be and (repeats or counts.count(n) == self._histograms[k][n])

    # The model's file and its ledger

    def read(self, corpus: Corpus, digests: Iterable[str]) -> None:
        """Read the counts of a corpus's tokens, and the ledger's rows for these digests."""
        if self._lookup is not None:
            self._counts |= self._lookup.counts(corpus.vocabulary)
            self.ledger |= self._lookup.ledger_rows(digests)
            self._in_file = self._counts.copy(), self.ledger.copy()

    def model(self) -> Model:
        """Return the model, with the lines that were read."""
        ledger = {digest: row for digest, row in self.ledger.items() if any(row)}
        return Model(self.metadata, self.counts, ledger)

    def write(self, file: IO[bytes]) -> None:
        """Write the model's file with the changed lines; without a file, write all lines."""
        if self._lookup is None:
            model_file.write_lines(file, self.model())
            return
        none = (0,) * len(self._messages)
        changed = []
        for before, after in zip(self._in_file, (self.counts, self.ledger), strict=True):
            gone = dict.fromkeys(before.keys() - after.keys(), none)
            new = {name: row for name, row in after.items() if before.get(name, none) != row}
            changed.append(gone | new)
        model_file.splice(file, self._lookup, self.metadata, *changed)

    def add_columns(self, columns: list[tuple[str, str]]) -> None:
        """Record the table columns from which messages were learned."""
        self._learned = with_columns(self.metadata, columns).learned

    def row(self, digest: str) -> list[int]:
        """Return the number of times that each class has learned a message, from the ledger."""
        return list(self.ledger.get(digest) or (0,) * len(self._messages))

    def move(self, place: Place, message: TokenizedMessage, step: Step) -> Step:
        """Move a message from one class, to another, or both; return the step that was made.

        A copy of a mail from another program may lack a token that all messages of its class have.
        Such a copy cannot be subtracted from the counts, so the old lesson stays.
        place: names the model in errors.  Raises ModelError if the class cannot have learned the
        message.
        """
        classes, row = self._settings.classes, self.row(message.digest)
        content, (source, target) = (message.tokens, message.extras), step
        if source is not None and not self.may_have_learned(classes[source], *content, pruned=True):
            if not message.is_mail:
                raise ModelError(
                    f"{place}: the model is damaged: a message of its ledger is not in its counts;"
                    " restore it from a copy or train again"
                )
            source = None
        if source is not None:
            row[source] -= 1
            self.unlearn(classes[source], *content, message.digest)
        if target is not None:
            row[target] += 1
            self.learn(classes[target], *content)
        if self.remember:
            self.ledger[message.digest] = tuple(row)
        return source, target
