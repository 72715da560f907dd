"""A shared model that personal ones are read through: the counts of both, added up.

A personal model of N messages of a class, c of them with a token, on a base of M with C, is read as

    N + r M messages, c + r C of them with the token,   r = min(1, STRENGTH / the base's fewest)

and so its hosts and the histograms of its traits.  The base counts as at most STRENGTH messages of
its smaller class, however many it has learned, so that what a user teaches is heard; only a user
who has taught nothing has the whole of it.  Calibrations begin as the base's, and each message that
is learned refines them.  All else is as without a base: leaving a message out, trust, doubt and
explanations follow from the counts.

Classifying imports nothing of this unless a base is given.  Standard library only.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from typing import TypeVar, cast

from nbspam.bayes.calibration import Calibrations, untrained_calibrations
from nbspam.bayes.event_model import BERNOULLI, Row
from nbspam.errors import ModelError
from nbspam.names import real_name
from nbspam.scoring.classifier import CACHED_TOKENS, Classifier, CountsOf
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import BASE, EVIDENCE, Metadata, ModelSettings, empty_state
from nbspam.tokens.tokenized import RULES

# Messages.  Errors in a user's first 1,000 with 100, 300, 1,000 and all of the base, chosen on
# these: Enron 2 -> 1 27 28 28 30, 2 -> 3 10 11 14 13, 1 -> 3 from its 3,001st on 32 21 18 19.
STRENGTH = 1000
K = TypeVar("K")


class Base:
    """A shared model, as far as personal ones are read through it; many filters may share one."""

    def __init__(
        self,
        path: str | PathLike[str],
        metadata: Metadata,
        counts_of: CountsOf,
        lookup: Lookup | None = None,
    ) -> None:
        """Take a model; raises ModelError if it cannot be a base.

        path: its name in errors.  counts_of: the counts of those tokens that it knows.
        lookup: its open file, if it is in one; who opened it closes it.
        """
        self.path, self.metadata, self._counts, self.lookup = path, metadata, counts_of, lookup
        settings, learned = metadata
        for name, value, needed in (
            ("event model", settings.event_model, BERNOULLI),
            ("scoring", settings.scoring, EVIDENCE),
        ):
            if value != needed:
                raise ModelError(
                    f"{path}: has the {name} {value}, and a base must have {needed}; train it"
                    " again with the defaults, or leave the base out"
                )
        fewest = min(learned.messages)
        if not fewest:
            lacking = settings.classes[learned.messages.index(0)]
            raise ModelError(
                f"{path}: has learned no message of the class {lacking!r}, so it cannot be a base;"
                " train it with messages of each class"
            )
        self._r = min(1, STRENGTH / fewest)

    def check(self, path: str | PathLike[str], personal: ModelSettings) -> None:
        """Raise ModelError if a personal model cannot be read through this one; path: its name."""
        if real_name(path) == real_name(self.path):
            raise ModelError(
                f"{path}: is both the model and its base, so its messages would count twice; name"
                " another base, or leave it out"
            )
        for name in ("classes", "positive", "event_model", "scoring", "traits"):
            mine, its = (getattr(settings, name) for settings in (personal, self.metadata.settings))
            if mine != its:
                what = "spam class" if name == "positive" else name.replace("_", " ")
                has = [", ".join(v) if isinstance(v, tuple) else v for v in (mine, its)]
                raise ModelError(
                    f"{path}: has the {what} {has[0]}, and its base {self.path} has {has[1]}; train"
                    " the one again with the options of the other, or leave the base out"
                )

    def first(self) -> Metadata:
        """Return the metadata of a personal model that has learned nothing yet."""
        settings, learned = self.metadata
        empty = empty_state(settings, learned.calibrations)
        return self.begun(Metadata(settings._replace(rules=RULES), empty))

    def begun(self, personal: Metadata) -> Metadata:
        """Return a personal model's metadata with calibrations that go on from the base's.

        One that learned without a base before keeps its own if it has learned more messages than
        the base counts as.  Enron 1 -> 2 and 2 -> 3, models of the first 50 to 2,000 messages, the
        next 1,000 tested: 223 errors of 12,000, log-loss .0530; with their weighted mean 224 and
        .0534, with the model's own 268 and .0733.
        """
        settings, learned = personal
        if learned.calibrated_by == BASE:
            return personal
        base, untrained = self.metadata.learned, untrained_calibrations(settings.has_traits)
        calibrations = []
        by_class = settings.scored_classes, base.calibrations, learned.calibrations
        for k, its, mine in zip(*by_class, strict=True):
            has_more = its == untrained or learned.fewest(k) > self._r * base.fewest(k)
            going_on = mine if has_more and mine != untrained else its
            # The run is of messages that the other has not learned.
            calibrations.append(Calibrations(*(c._replace(run=0) for c in going_on)))
        begun = learned._replace(calibrations=tuple(calibrations), calibrated_by=BASE)
        return personal._replace(learned=begun._replace(recent=(), before=()))

    def through(self, personal: Metadata) -> Metadata:
        """Return the metadata of both models together, whose counts may be fractions.

        The histograms of the tokens' counts stay those of the personal model.
        """
        settings, learned = self.begun(personal)
        base, r = self.metadata.learned, self._share(personal)
        pairs = zip(learned.trait_histograms, base.trait_histograms, strict=True)
        traits = [tuple(_added(*both, r) for both in zip(*rows, strict=True)) for rows in pairs]
        together = learned._replace(
            messages=_sum(learned.messages, base.messages, r),
            # The base's hosts are others than the own, and each stands for r of one.
            host_rows=_added(learned.host_rows, base.host_rows, r),
            trait_histograms=tuple(traits),
        )
        return Metadata(settings, together)

    def classifier(
        self, personal: Metadata, counts_of: CountsOf, cached: int = CACHED_TOKENS
    ) -> Classifier:
        """Return a classifier of a personal model, read through the base; all as `Classifier`."""
        r, none = self._share(personal), (0,) * len(personal.settings.classes)

        def counts(tokens: Iterable[str]) -> dict[str, Row]:
            tokens = list(tokens)
            mine, its = counts_of(tokens), self._counts(tokens)
            sums = {token: _sum(mine.get(token, none), row, r) for token, row in its.items()}
            return {**mine, **sums}

        return Classifier(self.through(personal), counts, cached, (str(self.path), self.metadata))

    def _share(self, personal: Metadata) -> float:
        """Return r; 1 for a model without messages, which has the base's very scores."""
        return self._r if any(personal.learned.messages) else 1


@contextlib.contextmanager
def open_base(path: str | PathLike[str] | None) -> Iterator[Base | None]:
    """Give a model file as a base, open; None without one.  Raises ModelError."""
    if path is None:
        yield None
        return
    with Lookup(path) as lookup:
        yield Base(path, lookup.metadata, lookup.counts, lookup)


def _sum(personal: Row, base: Row, r: float) -> Row:
    """Return personal + r base; of fractions unless r is 1."""
    return cast(Row, tuple(n + r * m for n, m in zip(personal, base, strict=True)))


def _added(personal: Mapping[K, int], base: Mapping[K, int], r: float) -> Mapping[K, int]:
    return {**personal, **{key: cast(int, personal.get(key, 0) + r * n) for key, n in base.items()}}
