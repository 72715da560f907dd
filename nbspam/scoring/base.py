"""A shared base model whose counts are added to a personal model's counts.

If a personal model has N messages of a class, c of them with a token, and the base has M, C of them
with the token, the combined model has

    N + r M messages, c + r C of them with the token
    r = min(1, STRENGTH / messages of the base's smaller class)

and the base's hosts and trait histograms are added in the same way.  The base counts as at most
STRENGTH messages of its smaller class, however many it has learned, so that a user's lessons have
an effect; only a user who has taught nothing gets the whole base.  Calibrations start as the
base's, and each learned message refines them.  Everything else works as without a base: leaving a
message out, trust, doubt and explanations follow from the counts.

Classifying imports this module only with a base.  Standard library only.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from typing import TypeVar, cast

from nbspam.bayes.calibration import Calibrations, prior_calibrations
from nbspam.bayes.event_model import BERNOULLI, Row
from nbspam.errors import ModelError
from nbspam.names import real_name
from nbspam.scoring.classifier import CACHED_TOKENS, Classifier, CountLookup
from nbspam.store.lookup import Lookup
from nbspam.store.metadata import BASE, EVIDENCE, Metadata, ModelSettings, empty_state
from nbspam.tokens.tokenized import TOKENIZER_VERSION

# In messages; chosen by the errors in a user's first 1,000 messages:
#
#     STRENGTH                              100    300    1,000    whole base
#     Enron 2, user 1                        27     28       28            30
#     Enron 2, user 3                        10     11       14            13
#     Enron 1, user 3 (3,001st message on)   32     21       18            19
STRENGTH = 1000
K = TypeVar("K")


class Base:
    """A shared model whose counts are added to personal models; many filters may share it."""

    def __init__(
        self,
        path: str | PathLike[str],
        metadata: Metadata,
        look_up_counts: CountLookup,
        lookup: Lookup | None = None,
    ) -> None:
        """Check the model; raises ModelError if it cannot be a base.

        path: its name in errors.  look_up_counts: returns the counts of the known tokens.
        lookup: its open file, if it has a file; the caller closes it.
        """
        self.path, self.metadata, self._counts, self.lookup = path, metadata, look_up_counts, lookup
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
        """Raise ModelError if a personal model does not fit to this base; path: its name."""
        if real_name(path) == real_name(self.path):
            raise ModelError(
                f"{path}: is both the model and its base, so its messages would count twice; name"
                " another base, or leave it out"
            )
        for name in ("classes", "positive", "event_model", "scoring", "traits"):
            personal_value, base_value = (
                getattr(settings, name) for settings in (personal, self.metadata.settings)
            )
            if personal_value != base_value:
                what = "spam class" if name == "positive" else name.replace("_", " ")
                has = [
                    ", ".join(v) if isinstance(v, tuple) else v
                    for v in (personal_value, base_value)
                ]
                raise ModelError(
                    f"{path}: has the {what} {has[0]}, and its base {self.path} has {has[1]}; train"
                    " the one again with the options of the other, or leave the base out"
                )

    def empty_personal_model(self) -> Metadata:
        """Return the metadata of a personal model before its first lesson."""
        settings, learned = self.metadata
        empty = empty_state(settings, learned.calibrations)
        return self.with_base_calibrations(
            Metadata(settings._replace(rules=TOKENIZER_VERSION), empty)
        )

    def with_base_calibrations(self, personal: Metadata) -> Metadata:
        """Return a personal model's metadata with calibrations that continue the base's.

        A model that learned without a base before keeps its own calibrations if it has learned more
        messages than the base counts as.  Models of the first 50 to 2,000 messages, the next 1,000
        tested (Enron, bases 1 and 2, users 2 and 3; 12,000 messages in all):

            calibrations             errors    log-loss
            as here                  223       0.0530
            their weighted mean      224       0.0534
            always the model's own   268       0.0733
        """
        settings, learned = personal
        if learned.calibrated_by == BASE:
            return personal
        base, prior_calibration = self.metadata.learned, prior_calibrations(settings.has_traits)
        calibrations = []
        by_class = settings.scored_classes, base.calibrations, learned.calibrations
        for k, base_value, personal_value in zip(*by_class, strict=True):
            has_more = base_value == prior_calibration or learned.n_smaller_class(
                k
            ) > self._r * base.n_smaller_class(k)
            start = (
                personal_value if has_more and personal_value != prior_calibration else base_value
            )
            # The base's last run of one class does not continue in the personal model.
            calibrations.append(Calibrations(*(c._replace(run=0) for c in start)))
        started = learned._replace(calibrations=tuple(calibrations), calibrated_by=BASE)
        return personal._replace(learned=started._replace(recent=(), before=()))

    def combine(self, personal: Metadata) -> Metadata:
        """Add up the metadata of both models; counts may become fractions.

        The histograms of token counts remain the personal model's.
        """
        settings, learned = self.with_base_calibrations(personal)
        base, r = self.metadata.learned, self._base_weight(personal)
        pairs = zip(learned.trait_histograms, base.trait_histograms, strict=True)
        traits = [
            tuple(_add_counts(*both, r) for both in zip(*rows, strict=True)) for rows in pairs
        ]
        together = learned._replace(
            messages=_add_rows(learned.messages, base.messages, r),
            # The base's hosts differ from the user's, and each counts as r hosts.
            host_rows=_add_counts(learned.host_rows, base.host_rows, r),
            domain_rows=_add_counts(learned.domain_rows, base.domain_rows, r),
            trait_histograms=tuple(traits),
        )
        return Metadata(settings, together)

    def classifier(
        self, personal: Metadata, look_up_counts: CountLookup, max_cached: int = CACHED_TOKENS
    ) -> Classifier:
        """Make a classifier of both models together; the parameters are as in `Classifier`."""
        r, zeros = self._base_weight(personal), (0,) * len(personal.settings.classes)

        def counts(tokens: Iterable[str]) -> dict[str, Row]:
            tokens = list(tokens)
            personal_value, base_value = look_up_counts(tokens), self._counts(tokens)
            sums = {
                token: _add_rows(personal_value.get(token, zeros), row, r)
                for token, row in base_value.items()
            }
            return {**personal_value, **sums}

        return Classifier(
            self.combine(personal), counts, max_cached, (str(self.path), self.metadata)
        )

    def _base_weight(self, personal: Metadata) -> float:
        """Return r; 1 for a model without messages, whose scores are exactly the base's."""
        return self._r if any(personal.learned.messages) else 1


@contextlib.contextmanager
def open_base(path: str | PathLike[str] | None) -> Iterator[Base | None]:
    """Open a model file as a base; gives None without a path.  Raises ModelError."""
    if path is None:
        yield None
        return
    with Lookup(path) as lookup:
        yield Base(path, lookup.metadata, lookup.counts, lookup)


def _add_rows(personal: Row, base: Row, r: float) -> Row:
    """Return personal + r base, with fractions unless r is 1."""
    return cast(Row, tuple(n + r * m for n, m in zip(personal, base, strict=True)))


def _add_counts(personal: Mapping[K, int], base: Mapping[K, int], r: float) -> Mapping[K, int]:
    return {**personal, **{key: cast(int, personal.get(key, 0) + r * n) for key, n in base.items()}}
