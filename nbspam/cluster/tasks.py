"""What workers do.  Each task is a function of what it is given, so that it can be done once more.

read_piece       a piece of the sources → its messages, kept
counts_of        messages → their tokens' counts        digests_of   → their ledger
merge            tables → their sum                     part_of      → a range of a table
lines_of_tokens, lines_of_ledger, histograms            a range → what the model file has of it
in_two_classes   a range of the ledger → how many messages are in two classes or more
sums_for         a table, a range → the range's counts of the table's tokens
joined           such counts of all ranges → the counts of all tokens of the table
evidence_of      messages, the counts of their tokens → features, each message left out
inputs_of        features → what calibrations are fitted to
verdict_counts, highest_ham                             features, a model → how good it is
"""

from collections import Counter
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

import numpy as np

from nbspam.bayes.evidence_matrix import EvidenceRows, inputs_of_rows
from nbspam.bayes.matrix import Floats, Integers, class_counts
from nbspam.bayes.token_weight import Histogram
from nbspam.cluster.count_table import CountTable, LoadedTables, between, loaded, merged
from nbspam.cluster.identity import ProgramVersion, check_identity
from nbspam.cluster.kept import Kept, Summary, Taken, keep
from nbspam.cluster.stored import Stored
from nbspam.learning.batch import host_rows_of, token_histograms
from nbspam.learning.batch_rules import BatchEvidence, scores_of_rows
from nbspam.learning.corpus import Corpus
from nbspam.learning.fit_sample import in_sample
from nbspam.reading.piece import SourcePiece
from nbspam.reading.skips import Skipped
from nbspam.scoring.evidence_rule import EvidenceRule
from nbspam.scoring.verdict import CutOffs, verdict_on
from nbspam.store.metadata import HostRows, Metadata
from nbspam.store.model_file import lines_of_rows
from nbspam.tokens.kinds import channel_of
from nbspam.tokens.tokenized import Wanted
from nbspam.workers import Tokenizing, tokenize_batch

_DIGEST = 16  # bytes
# One task of ours at a time in a process, whatever its threads: Python runs one at a time anyhow.
one_at_a_time = Lock()


def read_piece(expected: ProgramVersion, piece: SourcePiece, wanted: Wanted) -> Stored:
    """Return the messages of a piece, tokenized and kept; raises NbspamError."""
    with one_at_a_time:
        check_identity(expected)
        corpus, taken = Corpus(wanted), Taken()
        size = 0
        for done in tokenize_batch(piece, Tokenizing(True, wanted, skips_empty=True)):
            if isinstance(done, Skipped):
                taken.skip(done)
            else:
                corpus.add(done)
                taken.add(done.label or "", done.source)
                size += done.size
        return keep(corpus, taken, piece.size or size)


def summary_of(kept: Stored) -> Summary:
    """Return what is to be known of the messages of a piece."""
    return Kept(kept).summary


def counts_of(kept: Stored) -> Stored:
    """Return in how many messages of each label each token of a piece is, or how often."""
    messages = Kept(kept)
    labels = messages.labels
    counts = class_counts(messages, messages.codes(), len(labels))
    return CountTable(messages.keys(), labels, counts).stored()


def digests_of(kept: Stored) -> Stored:
    """Return how often each label has each digest of a piece's messages."""
    messages = Kept(kept)
    text = messages.digests().hex()
    width = 2 * _DIGEST
    each = [text[i : i + width] for i in range(0, len(text), width)]
    keys, labels = sorted(set(each)), messages.labels
    place = {key: i for i, key in enumerate(keys)}
    counts = np.zeros((len(labels), len(keys)), dtype=np.int64)
    columns = np.fromiter(map(place.__getitem__, each), np.int64, len(each))
    np.add.at(counts, (messages.codes(), columns), 1)
    return CountTable(keys, labels, counts).stored()


def merge_tables(tables: Sequence[Stored]) -> Stored:
    """Return the sum of tables."""
    return merged(LoadedTables(tables)).stored()


def part_of(table: Stored, low: str | None, high: str | None) -> Stored:
    """Return a range of a table's keys."""
    return between(table, low, high)


def lines_of_tokens(table: Stored, classes: tuple[str, ...]) -> bytes:
    """Return the lines of a range of tokens, as the model file has them."""
    whole = loaded(table)
    return lines_of_rows(whole.keys, whole.of_classes(classes).T.tolist())


def lines_of_ledger(table: Stored, classes: tuple[str, ...]) -> bytes:
    """Return the lines of a range of the ledger, as the model file has them."""
    whole = loaded(table)
    keys = [f' "{digest}"' for digest in whole.keys]
    return lines_of_rows(keys, whole.of_classes(classes).T.tolist())


def in_two_classes(table: Stored) -> int:
    """Return how many messages of a range of the ledger two or more labels have."""
    return int(((table.load("counts") > 0).sum(axis=0) > 1).sum())


def histograms(table: Stored, classes: tuple[str, ...]) -> tuple[tuple[Histogram, ...], HostRows]:
    """Return of a range how many tokens have each count per class, and the rows of its hosts."""
    whole = loaded(table)
    counts = whole.of_classes(classes)
    return token_histograms(counts), host_rows_of(counts, _channels(whole.keys))


def _channels(keys: list[str]) -> Integers:
    """Return the channel of each token; a kind's name has nothing that is escaped."""
    return np.fromiter((channel_of(key[1:-1]) for key in keys), np.int64, len(keys))


def sums_for(table: Stored, whole: Stored) -> Stored:
    """Return a table with the counts that a range has of its keys, which are all in it."""
    keys = loaded(table).keys
    root = whole.made(loaded)
    return CountTable(keys, root.labels, root.counts[:, root.places(keys)]).stored()


def joined(tables: Sequence[Stored], classes: tuple[str, ...]) -> Stored:
    """Return ranges of tokens, in order, as one table."""
    parts = [loaded(table) for table in tables]
    keys = [key for part in parts for key in part.keys]
    counts = np.concatenate([part.of_classes(classes) for part in parts], axis=1)
    return CountTable(keys, classes, counts).stored()


def evidence_of(kept: Stored, table: Stored | None, metadata: Metadata) -> Stored:
    """Return the evidence of a piece's messages, each left out of the model's counts.

    table: has all of the piece's tokens; None: the model has none.
    """
    messages, classes = Kept(kept), metadata.settings.classes
    keys = messages.keys()
    counts = np.zeros((len(classes), len(keys)), dtype=np.int64)
    if table is not None:
        whole = loaded(table)
        counts = whole.counts[:, whole.places(keys)]
    labels = messages.classes(classes)
    rule = BatchEvidence(counts, labels, _channels(keys), messages.traits())
    rows = rule.left_out_evidence(messages, metadata) if len(messages) else ()
    arrays = (
        (f"{name}{i}", array)
        for i, of_class in enumerate(rows)
        for name, array in of_class._asdict().items()
        if array is not None
    )
    return Stored(arrays, len(rows))


def _evidence(stored: Stored) -> tuple[EvidenceRows, ...]:
    names = stored.names
    assert isinstance(stored.about, int)
    return tuple(
        EvidenceRows(
            *(
                stored.load(f"{name}{i}") if f"{name}{i}" in names else None
                for name in EvidenceRows._fields
            )  # type: ignore[arg-type]
        )
        for i in range(stored.about)
    )


class FitInputs(NamedTuple):
    """What calibrations are fitted to, of some messages."""

    labels: Integers  # (n,), classes
    inputs: list[list[Floats]]  # per scored class and scale, (n, scale.size)


def inputs_of(kept: Stored, evidence: Stored, metadata: Metadata, end: int | None) -> FitInputs:
    """Return what calibrations are fitted to; end: of the sample (`fit_sample.py`)."""
    messages, settings = Kept(kept), metadata.settings
    labels = messages.classes(settings.classes)
    chosen = np.arange(len(messages))
    if end is not None:
        chosen = np.flatnonzero(in_sample(messages.digests(), end))
    return FitInputs(
        labels[chosen].astype(np.uint8),
        [
            [inputs_of_rows(scale, rows)[chosen] for scale in settings.scales]
            for rows in _evidence(evidence)
        ],
    )


CalledCounts = Counter[tuple[str, str]]  # a label, and what a message of it is called -> messages


def verdict_counts(
    kept: Stored, evidence: Stored, metadata: Metadata
) -> tuple[CalledCounts, CalledCounts]:
    """Return how often a message of each class was called what, at 0.5 and with the cut-offs."""
    from nbspam.evaluation.outcome import Outcome

    called, verdicts = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    messages, cut_offs = Kept(kept), CutOffs.of_model(metadata)
    if not len(messages):
        return called, verdicts
    labels = [messages.labels[k] for k in messages.codes().tolist()]
    scores = scores_of_rows(_evidence(evidence), EvidenceRule(metadata))
    for label, score in zip(labels, scores, strict=True):
        outcome = Outcome(verdict_on(metadata, score, cut_offs, label=label))
        called[label, outcome.called] += 1
        verdicts[label, outcome.verdict] += 1
    return called, verdicts


def highest_ham(kept: Stored, evidence: Stored, metadata: Metadata, n: int) -> list[float]:
    """Return the n highest log-odds of ham, in descending order."""
    messages, settings = Kept(kept), metadata.settings
    if not len(messages):
        return []
    scores = scores_of_rows(_evidence(evidence), EvidenceRule(metadata))
    labels = messages.classes(settings.classes).tolist()
    ham = [s.log_odds for s, k in zip(scores, labels, strict=True) if k != settings.positive_index]
    return sorted(ham, reverse=True)[:n]
