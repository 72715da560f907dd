"""`nbspam train --dask`: a whole model, trained where the messages are."""

import itertools
from collections.abc import Iterable

from nbspam.cli.cluster_progress import shown_passes
from nbspam.cli.options import make_default_folder
from nbspam.cli.progress import size_of
from nbspam.cli.sources_options import Sources
from nbspam.cli.training import Trained, Training, print_training
from nbspam.cli.work_place import WorkPlace
from nbspam.cluster.connection import Cluster
from nbspam.cluster.training import ClusterTraining
from nbspam.evaluation.metrics import left_out_rates
from nbspam.evaluation.samples import count_verdicts
from nbspam.learning.batch_rules import BATCH_RULES
from nbspam.reading.piece import SourcePiece
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skips
from nbspam.reading.source_kind import ReadingOptions
from nbspam.store.model_file import put_model

# Bytes that a worker reads, tokenizes and keeps at a time.  A worker's memory is that of a piece,
# and each piece is some work for the scheduler.
_PIECE, _SMALLEST = 2 << 20, 1 << 18
_ROUNDS = 8  # pieces for each worker, at least
_MOST = 20_000  # pieces


def trained_apart(
    place: WorkPlace, sources: Sources, options: ReadingOptions, skips: Skips, training: Training
) -> Iterable[RawMessage | SourcePiece] | None:
    """Train a model on the cluster, write it and print what to expect of it; return None then.

    If that cannot be, return what is to be gathered here: where the rule fits all messages at once,
    or only this machine can read some of them.
    """
    assert place.cluster is not None
    size = _piece_size(sources, place.cluster)
    settings = training.settings
    found = sources.pieces(place.cutter(options, skips, size))
    if settings.base is not None or not BATCH_RULES[settings.scoring].fits_apart:
        return found
    pieces: list[SourcePiece] = []
    for piece in found:
        if isinstance(piece, RawMessage):
            return itertools.chain(pieces, [piece], found)
        pieces.append(piece)
    _train(place.cluster, pieces, skips, training)
    return None


def _piece_size(sources: Sources, cluster: Cluster) -> int:
    total = size_of(sources.names())
    if total is None:  # an archive, or a URL
        return _PIECE
    per_worker = total // (len(cluster.workers) * _ROUNDS)
    return max(min(_PIECE, per_worker), _SMALLEST, total // _MOST)


def _train(cluster: Cluster, pieces: list[SourcePiece], skips: Skips, training: Training) -> None:
    settings, cutting, writing, limit, output, wait = training
    with shown_passes(output.quiet) as passes:
        run = ClusterTraining(cluster, settings, writing.ledger, passes)
        run.read(pieces, skips)
        if not output.quiet:
            for summary in run.summaries:
                output.sizes.add(summary.messages, summary.first)
            output.sizes.note_small()
        run.fit()
        output.sizes.report_shared(run.in_two_classes(), (), output.quiet, skips.strict)
        if limit is not None:
            run.choose_cut_offs(limit)
        elif cutting.is_given:
            run.store_cut_offs(cutting.of(run.metadata))
        make_default_folder(output.model)
        put_model(output.model, run.write, replace_old=writing.replace, wait=wait)
        n = sum(run.labels.values())
        output.trace.trained(output.model, n)
        if output.quiet and output.form == "text":
            return
        positive = run.metadata.settings.positive
        called, verdicts = run.verdict_counts()
        rates = left_out_rates(
            count_verdicts(called.elements(), positive),
            count_verdicts(verdicts.elements(), positive),
        )
    print_training(Trained(n, run.metadata, rates), limit, output)
