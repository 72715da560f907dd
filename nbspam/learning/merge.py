"""Several models made one: as if one had been trained on all their messages.

Counts, messages and ledger add up, to exactly those of such a training.  The calibration cannot be
had so, since the messages are gone; it is put together from the models' own (`pooled` in
bayes/calibration.py).
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from operator import add
from pathlib import Path
from typing import NamedTuple

from nbspam.bayes.calibration import Calibration, pooled, untrained
from nbspam.errors import ModelError
from nbspam.store.atomic_write import locked, replace
from nbspam.store.check import with_rows
from nbspam.store.metadata import DEFAULT, MERGING, Metadata
from nbspam.store.model_file import Model, Row, already_there, read_model


class Merged(NamedTuple):
    """What a merge has made, and what it could not know."""

    model: Model
    shared: int  # messages in the ledgers of two models or more, which now count twice
    unremembered: tuple[Path, ...]  # models with messages that are not in their ledgers


def merge_files(
    paths: Sequence[Path], output: Path, replace_old: bool = False, overlap: bool = False
) -> Merged:
    """Merge model files into a new one, which may be one of them if it may be replaced.

    overlap: messages that two models share may count twice.
    Raises ModelError: a model is damaged, unlike the others or given twice, they share messages, or
    the output is there already or cannot be written.
    """
    places = Counter(map(os.path.realpath, paths))
    twice = next((path for path in paths if places[os.path.realpath(path)] > 1), None)
    if twice is not None and not overlap:
        raise ModelError(
            f"{twice}: is given twice, and its messages would count twice; name each model once, or"
            " add --allow-overlap"
        )
    with locked(output) as place:
        if place.exists() and not replace_old:
            raise already_there(output, "--replace to overwrite it, or name another")
        merged = merge([(path, read_model(path)) for path in paths], overlap)
        replace(place, merged.model.write)
    return merged


def merge(models: Sequence[tuple[Path, Model]], overlap: bool = False) -> Merged:
    """Return the model of all the models' messages; raises ModelError.

    The order of the models matters for nothing but the last digits of the calibration.
    The spam cut-off is the highest of theirs: it blocks no more ham than any of them was to block.
    """
    first_path, first = models[0]
    for path, model in models[1:]:
        _check_alike(first_path, first.head, path, model.head)
    counts: dict[str, Row] = {}
    learned: dict[str, Row] = {}
    messages: dict[str, Row] = {}
    shared: set[str] = set()
    for _, model in models:
        order = [model.head.classes.index(name) for name in first.head.classes]
        shared.update(learned.keys() & model.learned.keys())
        _add(counts, model.counts, order)
        _add(learned, model.learned, order)
        _add(messages, {"": model.head.messages}, order)
    if shared and not overlap:
        raise ModelError(
            f"{', '.join(str(path) for path, _ in models)}: share {len(shared)} messages, which"
            " would count twice; merge models of different messages, or add --allow-overlap"
        )
    heads = [model.head for _, model in models]
    blends = tuple(
        _blend(heads, first.head.classes[k], messages[""], k) for k in first.head.scored_classes
    )
    head = first.head._replace(
        messages=messages[""],
        calibrations=blends,
        calibrated_by=DEFAULT if set(blends) == {untrained()} else MERGING,
        spam_cutoff=max(head.spam_cutoff for head in heads),
    )
    unremembered = tuple(
        path
        for path, model in models
        if sum(map(sum, model.learned.values())) < sum(model.head.messages)
    )
    merged = Model(with_rows(head, counts.values()), counts, dict(sorted(learned.items())))
    return Merged(merged, len(shared), unremembered)


def _check_alike(path: Path, head: Metadata, other_path: Path, other: Metadata) -> None:
    """Raise ModelError, naming both values, if two models are not of one kind."""
    for name, own, others in (
        ("the classes", ", ".join(sorted(head.classes)), ", ".join(sorted(other.classes))),
        ("the positive class", head.positive, other.positive),
        ("the scoring", head.scoring, other.scoring),
        ("the alpha", head.alpha, other.alpha),
        ("the prior", head.prior or "as learned", other.prior or "as learned"),
    ):
        if own != others:
            raise ModelError(
                f"{other_path}: has {name} {others} and {path} has {own}; models can be merged that"
                " were trained with the same options, so train one of the two anew"
            )


def _add(total: dict[str, Row], rows: Mapping[str, Row], order: Sequence[int]) -> None:
    """Add rows of counts to those of a total, whose classes stand in another order."""
    same = list(order) == sorted(order)
    for name, row in rows.items():
        own = row if same else tuple(row[k] for k in order)
        before = total.get(name)
        total[name] = own if before is None else tuple(map(add, before, own))


def _blend(heads: Sequence[Metadata], name: str, messages: Row, k: int) -> Calibration:
    """Return a class's blend, put together from those of the models that have learned one."""
    parts = []
    for head in heads:
        own = head.classes.index(name)
        blend = head.calibrations[head.scored_classes.index(own)]
        if blend != untrained():
            parts.append((blend, _fewest(head.messages, own)))
    return pooled(parts, _fewest(messages, k)) if parts else untrained()


def _fewest(messages: Row, k: int) -> int:
    """Return the number of messages in class k, or in the others together if those are fewer."""
    return min(messages[k], sum(messages) - messages[k])
