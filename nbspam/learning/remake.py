"""Models made of other models: merged, pruned, or imported from another program's counts.

Merged ones are as if one had been trained on all their messages.  Counts, messages and ledgers add
up to exactly those of such a training.  Calibrations do not, since the messages are gone; they are
combined (`pooled` in bayes/calibration.py).
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from operator import add, itemgetter
from pathlib import Path
from typing import BinaryIO, NamedTuple

from nbspam.bayes.calibration import Calibrations, pooled_pair, untrained_calibrations
from nbspam.bayes.event_model import Row
from nbspam.errors import ModelError, Remedy, counted
from nbspam.learning.settings import TrainingSettings, class_names, counted_metadata, empty_metadata
from nbspam.names import real_name
from nbspam.reading.source import Skips
from nbspam.scoring.rules import rule_of
from nbspam.store.lookup import Lookup, Model, read_model
from nbspam.store.metadata import (
    DEFAULT,
    MERGING,
    MESSAGES_LIMIT,
    Metadata,
    ModelSettings,
    with_columns,
    with_counts,
)
from nbspam.store.model_file import replacing, write_lines
from nbspam.store.word_lists import parse_counts
from nbspam.store.writing import write_atomically
from nbspam.tokens.kinds import is_host


class Merged(NamedTuple):
    """A merged model, and which messages may count twice in it."""

    model: Model
    shared: int  # messages in the ledgers of two or more models, which now count twice
    unremembered: tuple[Path, ...]  # models with messages that are not in their ledgers


def merge_files(
    paths: Sequence[Path], output: Path, replace_old: bool = False, overlap: bool = False
) -> Merged:
    """Merge model files into a new one, which may be one of them if it may be replaced.

    overlap: whether messages that two models share may count twice.
    Raises ModelError: a model is damaged, unlike the others or named twice, they share messages, or
    the output exists or cannot be written.
    """
    places = Counter(map(real_name, paths))
    twice = next((path for path in paths if places[real_name(path)] > 1), None)
    if twice is not None and not overlap:
        raise ModelError(
            f"{twice}: is named twice, and its messages would count twice", Remedy.NAME_EACH_ONCE
        )
    for path in paths:
        Lookup(path).close()  # without the models there is nothing to lock
    with replacing(output, replace_old, Remedy.REPLACE_OUTPUT) as place:
        merged = merge([(path, read_model(path)) for path in paths], overlap)
        write_atomically(place, partial(write_lines, model=merged.model))
    return merged


def merge(models: Sequence[tuple[Path, Model]], overlap: bool = False) -> Merged:
    """Return the model of all the models' messages; raises ModelError.

    The order of the models changes only the order of the classes and the last digits of the
    calibration.
    The cut-offs are the highest of theirs, so it blocks no more ham than any of them allows.
    """
    first_path, first = models[0]
    for path, model in models[1:]:
        _check_alike(first_path, first.metadata.settings, path, model.metadata.settings)
    classes = first.metadata.settings.classes
    counts: dict[str, Row] = {}
    learned: dict[str, Row] = {}
    messages: Counter[str] = Counter()
    shared: set[str] = set()
    for _, model in models:
        settings, own = model.metadata
        messages.update(model.metadata.by_class(own.messages))
        shared.update(learned.keys() & model.learned.keys())
        in_order = itemgetter(*map(settings.classes.index, classes))
        for total, rows in ((counts, model.counts), (learned, model.learned)):
            for name, row in rows.items():
                before = total.get(name)
                ordered = in_order(row)
                total[name] = ordered if before is None else tuple(map(add, before, ordered))
    if shared and not overlap:
        raise ModelError(
            f"{', '.join(str(path) for path, _ in models)}: share"
            f" {counted(len(shared), 'message')}, which would count twice",
            Remedy.ALLOW_OVERLAP,
        )
    metadata = _metadata([model.metadata for _, model in models], messages)
    merged = Model(with_counts(metadata, counts), counts, dict(sorted(learned.items())))
    unremembered = tuple(
        path
        for path, model in models
        if sum(map(sum, model.learned.values())) < sum(model.metadata.learned.messages)
    )
    return Merged(merged, len(shared), unremembered)


def _metadata(parts: Sequence[Metadata], messages: Counter[str]) -> Metadata:
    """Return the metadata of the merged model, but for what follows from its tokens."""
    traits = [(settings.classes, learned.trait_histograms) for settings, learned in parts]
    settings, learned = counted_metadata(parts[0], messages, (), traits)
    calibrations = tuple(_calibrations(parts, settings.classes[k]) for k in settings.scored_classes)
    is_untrained = set(calibrations) == {untrained_calibrations(settings.has_traits)}
    merged = Metadata(
        settings._replace(
            spam_cutoff=max(part.settings.spam_cutoff for part in parts),
            ham_cutoff=max(part.settings.ham_cutoff for part in parts),
        ),
        learned._replace(
            calibrations=calibrations,
            calibrated_by=DEFAULT if is_untrained else MERGING,
            recent=(),  # a mean of calibrations has learned only in part from each message
            before=(),
            doubted={d: both for _, its in parts for d, both in its.doubted.items()},
        ),
    )
    return with_columns(merged, (pair for part in parts for pair in part.learned.columns))


def _check_alike(path: Path, own: ModelSettings, other_path: Path, other: ModelSettings) -> None:
    """Raise ModelError, which names both values, if two models differ in a setting."""
    mine, others = (
        {
            "classes": ", ".join(sorted(some.classes)),
            "positive class": some.positive,
            "tokenizer rules": some.rules,
            "event model": some.event_model,
            "scoring": some.scoring,
            "alpha": some.alpha,
            "prior": some.prior or "as learned",
            "traits": some.traits,
            "variance smoothing": some.variances.smoothing,
            "variance prior": some.variances.prior,
            "shared variance": some.variances.shared,
        }
        for some in (own, other)
    )
    for name, value in mine.items():
        if value != others[name]:
            raise ModelError(
                f"{other_path}: has the {name} {others[name]} and {path} has {value}; only models"
                " trained with the same options can be merged, so train one of the two again"
            )


def _calibrations(parts: Sequence[Metadata], name: str) -> Calibrations:
    """Return a class's calibrations, combined from those of the models that have learned one."""
    learned = []
    first = parts[0].settings
    untrained = untrained_calibrations(first.has_traits)
    for settings, state in parts:
        own = settings.classes.index(name)
        both = state.calibrations[settings.scored_classes.index(own)]
        if both != untrained:
            learned.append((both, state.fewest(own)))
    return pooled_pair(first.scales, learned) if learned else untrained


# Fewer of the tokens than this share change verdicts.  Half of P1's and of P2's training messages
# learned, the other half judged; verdicts that change, and errors at 0.5 in place of 5 and of 9:
#   1 in 10   1.0 % (7 errors)    0.9 % (11)        1 in 100   15 % (107)   5.7 % (75)
#   1 in 20   1.7 % (13)          1.4 % (14)        1 in 500   53 % (128)    25 % (305)
#   1 in 50   4.9 % (17)          2.3 % (23)        1 token    unsure of nearly everything
LITTLE = 0.05


class Pruned(NamedTuple):
    """The size of a model before and after."""

    tokens_before: int
    tokens: int
    bytes_before: int
    bytes: int

    @property
    def is_little(self) -> bool:
        """Whether so few tokens are left that verdicts change."""
        return self.tokens < LITTLE * self.tokens_before


def prune_file(
    path: Path,
    output: Path | None = None,
    min_count: int = 1,
    max_tokens: int | None = None,
    replace_old: bool = False,
) -> Pruned:
    """Prune a model file, in place or into another one.

    Raises ModelError: it is not a model or is damaged, or the output exists or cannot be written.
    """
    Lookup(path).close()  # without a model there is nothing to lock
    old_may_go = replace_old or output is None
    with replacing(output or path, old_may_go, Remedy.REPLACE_OUTPUT) as place:
        before = read_model(path)
        size = path.stat().st_size
        after = prune(before, min_count, max_tokens)
        write_atomically(place, partial(write_lines, model=after))
        return Pruned(len(before.counts), len(after.counts), size, place.stat().st_size)


def prune(model: Model, min_count: int = 1, max_tokens: int | None = None) -> Model:
    """Return a model without the tokens that fewer than `min_count` messages have.

    max_tokens: how many tokens are kept at most: those that most messages have; of equally frequent
    ones the strongest, by weight; of equally strong ones the first by name.
    Messages, calibration and ledger stay as they are; the bias follows from the tokens.  The hosts
    that took mails in stay besides: how far headers are trusted must not depend on what was pruned.
    """
    counts = {
        token: row for token, row in model.counts.items() if sum(row) >= min_count or is_host(token)
    }
    if max_tokens is not None and len(counts) > max_tokens:
        rule = rule_of(model.metadata)
        rank = {
            row: (-sum(row), -max(map(abs, rule.contrasts(row)))) for row in set(counts.values())
        }
        words = [token for token in counts if not is_host(token)]
        words.sort(key=lambda token: (rank[counts[token]], token))
        kept = set(words[:max_tokens])
        counts = {token: row for token, row in counts.items() if token in kept or is_host(token)}
    return model._replace(metadata=with_counts(model.metadata, counts), counts=counts)


class Imported(NamedTuple):
    """A model made from another program's counts."""

    model: Model
    capped: int  # tokens that were counted in more messages than there are
    words: int  # of bogofilter's list; 0 for a table
    foreign: int  # of those, the words that have no token


def read_counts(name: str, stream: BinaryIO, skips: Skips, settings: TrainingSettings) -> Imported:
    """Return the model in a file of another program's counts (`parse_counts`).

    It has the default calibration and no ledger; its traits, if it has any, know no message yet.
    Raises SourceError when it has no counts, and TrainingError when its classes make no model.
    """
    found = parse_counts(name, stream, skips)
    classes, positive = class_names(found.classes, settings.positive)
    order = [found.classes.index(name) for name in classes]
    messages = tuple(found.messages[k] for k in order)
    empty = empty_metadata(classes, positive, settings)
    # A message may have a token any number of times, if they are counted.
    repeats = empty.settings.counts.repeats
    limits = tuple(n and MESSAGES_LIMIT for n in messages) if repeats else messages
    capped = 0
    rows: dict[str, Row] = {}
    for token, row in found.counts.items():
        own = tuple(row[k] for k in order)
        least = tuple(map(min, own, limits))
        capped += own != least
        if any(least):
            rows[token] = least
    metadata = empty._replace(learned=empty.learned._replace(messages=messages))
    model = Model(with_counts(metadata, rows), rows, {})
    return Imported(model, capped, found.words, found.foreign)
