"""A shared model that personal ones are read through: the counts of both, added up.

A personal model of N messages of a class, c of them with a token, on a base of M with C, is read as

    N + r M messages, c + r C of them with the token,   r = min(1, STRENGTH / the base's fewest)

and so its hosts and the histograms of its traits.  The base counts as at most STRENGTH messages of
its smaller class, however many it has learned, so that what a user teaches is heard.  Calibrations
begin as the base's, and each message that is learned refines them.  All else is as without a base:
leaving a message out, trust, doubt and explanations follow from the counts.

Nothing of this is imported unless a base is given.  Standard library only.
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, TypeVar, cast

from nbspam.bayes.calibration import Calibrations, pooled, untrained_calibrations
from nbspam.bayes.event_model import BERNOULLI
from nbspam.bayes.token_weight import Row
from nbspam.errors import ModelError
from nbspam.scoring.classifier import CACHED_TOKENS, Classifier, CountsOf
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import BASE, EVIDENCE, LearnedState, Metadata, ModelSettings
from nbspam.store.trait_histograms import no_histograms

if TYPE_CHECKING:
    from pathlib import Path

    from nbspam.store.index import IndexLayout

# Messages.  Errors in a user's first 1,000 with 100, 300, 1,000 and all of the base, chosen on
# these: Enron 2 -> 1 27 28 28 30, 2 -> 3 10 11 14 13, 1 -> 3 from its 3,001st on 32 21 18 19.
STRENGTH = 1000.0
K = TypeVar("K")


class Base:
    """A shared model; many filters may share it.

    One that was opened from a file is closed after them, or used as a context manager.  Who gets it
    by `share` closes it, too.
    """

    def __init__(
        self,
        path: "str | Path",
        metadata: Metadata,
        counts_of: CountsOf,
        lookup: Lookup | None = None,
    ) -> None:
        """Take a model; raises ModelError if it cannot be a base.

        path: its name in errors.  counts_of: the counts of those tokens that it knows.
        lookup: its open file, which `close` closes.
        """
        self.path, self.metadata, self.counts, self._lookup = path, metadata, counts_of, lookup
        self._users = 1
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
        self.share_of = min(1.0, STRENGTH / fewest)  # r

    @classmethod
    def open(
        cls,
        path: "str | Path",
        indexed: bool = True,
        handle: int | None = None,
        layout: "IndexLayout | None" = None,
    ) -> "Base":
        """Open a model file; raises ModelError if it cannot be opened, or cannot be a base.

        indexed: make an index of the tokens, which pays from the second message on.  layout: of it.
        handle: a descriptor of the file if it is open already, which `close` will close.
        """
        lookup = Lookup(path, handle)
        try:
            return cls(path, lookup.metadata, counts_in(lookup, indexed, layout), lookup)
        except BaseException:
            lookup.close()
            raise

    def __enter__(self) -> "Base":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def share(self) -> "Base":
        """Return it for one more user: the file stays open until each has closed it."""
        self._users += 1
        return self

    def close(self) -> None:
        """Close the file, if this was the last user."""
        self._users -= 1
        if self._lookup and not self._users:
            self._lookup.close()

    @property
    def file(self) -> Lookup:
        """Its open file; it has one unless it was made in memory."""
        assert self._lookup is not None
        return self._lookup

    def check(self, path: "str | Path", own: ModelSettings | None = None) -> None:
        """Raise ModelError if a personal model of these settings cannot be read through this one.

        path: the personal model's name.  own: None if there is no such model yet.
        """
        if os.path.realpath(path) == os.path.realpath(self.path):
            raise ModelError(
                f"{path}: is both the model and its base, so its messages would count twice; name"
                " another base, or leave it out"
            )
        base = self.metadata.settings
        for name, value, others in (
            ("the classes", ", ".join(base.classes), own and ", ".join(own.classes)),
            ("the spam class", base.positive, own and own.positive),
            ("the event model", base.event_model, own and own.event_model),
            ("the scoring", base.scoring, own and own.scoring),
            ("the traits", base.traits, own and own.traits),
        ):
            if own and value != others:
                raise ModelError(
                    f"{path}: has {name} {others}, and its base {self.path} has {value}; train the"
                    " one again with the options of the other, or leave the base out"
                )

    def first(self) -> Metadata:
        """Return the metadata of a personal model that has learned nothing yet."""
        settings, learned = self.metadata
        n = len(settings.classes)
        traits = no_histograms(n) if settings.has_traits else ()
        empty = LearnedState((0,) * n, ({},) * n, learned.calibrations, trait_histograms=traits)
        return Metadata(settings, empty._replace(calibrations=self._calibrations(empty)))

    def _calibrations(self, own: LearnedState) -> tuple[Calibrations, ...]:
        """Return the calibrations of a personal model, which go on from the base's.

        One that learned without a base before has its own pooled with the base's.
        """
        if own.calibrated_by == BASE:
            return own.calibrations
        settings, learned = self.metadata
        untrained = untrained_calibrations(settings.has_traits)
        found = []
        for k, of_base, of_own in zip(
            settings.scored_classes, learned.calibrations, own.calibrations, strict=True
        ):
            parts: list[tuple[Calibrations, float]] = [
                (of_base, self.share_of * _fewest(learned.messages, k))
            ]
            if of_own != untrained and any(own.messages):
                parts.append((of_own, _fewest(own.messages, k)))
            found.append(
                Calibrations(
                    *(
                        pooled(scale, [(both[i], few) for both, few in parts])
                        for i, scale in enumerate(settings.scales)
                    )
                )
            )
        return tuple(found)

    def begun(self, own: Metadata) -> Metadata:
        """Return a personal model's metadata, ready to learn with this base."""
        calibrations = self._calibrations(own.learned)
        return own._replace(
            learned=own.learned._replace(calibrations=calibrations, calibrated_by=BASE)
        )

    def through(self, own: Metadata) -> Metadata:
        """Return the metadata of both models together; counts in it are no whole numbers.

        The histograms of the tokens' counts stay those of the personal model.
        """
        base, learned, r = self.metadata.learned, own.learned, self.share_of
        traits = zip(learned.trait_histograms, base.trait_histograms, strict=True)
        return own._replace(
            learned=learned._replace(
                messages=_sum(learned.messages, base.messages, r),
                # The base's hosts are others than the own, and each stands for r of one.
                host_rows=_added(learned.host_rows, base.host_rows, r),
                trait_histograms=tuple(
                    tuple(_added(mine, theirs, r) for mine, theirs in zip(*rows, strict=True))
                    for rows in traits
                ),
                calibrations=self._calibrations(learned),
            )
        )

    def counts_through(self, own: CountsOf) -> CountsOf:
        """Return what gives the counts of the tokens that either model knows, of both together."""
        r, none = self.share_of, (0,) * len(self.metadata.settings.classes)

        def counts(tokens: Iterable[str]) -> dict[str, Row]:
            tokens = list(tokens)
            mine, theirs = own(tokens), self.counts(tokens)
            both = {token: _sum(mine.get(token, none), row, r) for token, row in theirs.items()}
            return {**mine, **both}

        return counts

    def classifier(
        self, own: Metadata | None, counts_of: CountsOf | None, cached: int = CACHED_TOKENS
    ) -> Classifier:
        """Return a classifier of a personal model on this base; of the base if there is none yet.

        own, counts_of: None without one.  cached: as of `Classifier`.
        """
        if own is None or counts_of is None:
            return Classifier(self.metadata, self.counts, cached)
        counts = self.counts_through(counts_of)
        return Classifier(self.through(own), counts, cached, base=self.path)


def counts_in(lookup: Lookup, indexed: bool, layout: "IndexLayout | None" = None) -> CountsOf:
    """Return what gives the counts of an open model's tokens; indexed, layout: as of `open`."""
    if not indexed:
        return lookup.counts
    from nbspam.store.index import IndexLayout, TokenIndex

    return TokenIndex(lookup, layout or IndexLayout()).counts


def _fewest(messages: Row, k: int) -> int:
    return min(messages[k], sum(messages) - messages[k])


def _sum(own: Row, base: Row, r: float) -> Row:
    """Return own + r base; a Row, but of fractions."""
    return cast(Row, tuple(n + r * m for n, m in zip(own, base, strict=True)))


def _added(own: Mapping[K, int], base: Mapping[K, int], r: float) -> Mapping[K, int]:
    total = Counter[K](own)
    for key, n in base.items():
        total[key] += cast(int, r * n)
    return total
