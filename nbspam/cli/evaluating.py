"""What `nbspam eval` evaluates: models trained on some of the messages, or a saved one."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nbspam.cli.learning_options import Learning, Sources
from nbspam.cli.notes import note_older, note_skips
from nbspam.cli.options import Cutting, ham_limit, opened_base
from nbspam.cli.output_files import OutputFiles
from nbspam.cli.progress import WorkPlace, progress, shown_passes, work, work_place
from nbspam.cli.protocol_options import Protocol
from nbspam.evaluation import protocols
from nbspam.evaluation.outcome import Evaluation
from nbspam.filter import Filter, open_filter
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.training import TrainingRun
from nbspam.reading.piece import SourcePiece
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skipped, Skips
from nbspam.reading.sources import ReadingOptions
from nbspam.scoring.verdict import CutOffs
from nbspam.tokens.tokenized import TokenizedMessage, Wanted
from nbspam.workers import PIECE, in_batches, tokenized


class Reader(NamedTuple):
    """Reads the messages, shows how far it is, and notes what it skipped.

    files: that will be written, so must not be read.
    at: the scheduler's address if there is one, and the number of processes.
    """

    sources: Sources
    files: OutputFiles
    options: ReadingOptions
    skips: Skips
    quiet: bool
    at: tuple[str | None, int]

    def messages(self, wanted: Wanted) -> Iterator[TokenizedMessage]:
        """Yield them; wanted: the numbers beside their tokens."""
        names = self.sources.names()
        with work_place(*self.at, quiet=self.quiet) as place, progress(self.quiet, names) as shown:
            raws = self._raws(place)
            yield from shown(
                tokenized(raws, self.skips, place.where, True, wanted, skips_empty=True)
            )
        note_skips(self.skips)

    def corpus(self, wanted: Wanted) -> protocols.LabelledCorpus:
        """Return them as a corpus."""
        names = self.sources.names()
        with (
            work_place(*self.at, quiet=self.quiet) as place,
            shown_passes(self.quiet, names) as passes,
            TrainingRun(place.where, TrainingSettings(), passes) as run,
        ):
            run.read(in_batches(self._raws(place), *PIECE), self.skips, wanted)
            read = protocols.LabelledCorpus.of_pieces(run, wanted)
        note_skips(self.skips)
        return read

    def _raws(self, place: WorkPlace) -> Iterator[RawMessage | Skipped | SourcePiece]:
        cutter = place.cutter(self.options, self.sources.names())
        return self.files.guarded(self.sources.pieces(cutter))


def evaluated(
    reader: Reader,
    model: Path,
    base: str | None,
    protocol: Protocol,
    learning: Learning,
    cutting: Cutting,
    excerpt: int,
    quiet: bool,
) -> tuple[Evaluation, CutOffs]:
    """Return the outcomes of what is evaluated, with the base beneath it, and the cut-offs.

    excerpt: characters of each message to keep.
    """
    if protocol.trains and not protocol.online:
        base = None  # of the environment or a config file
    if protocol.trains:
        with opened_base(base) as beneath:
            settings = learning.settings()._replace(base=beneath)
            limit = ham_limit(protocol.max_ham_blocked)
            found, cut_offs = _trained(reader, protocol, settings, cutting, limit, excerpt, quiet)
    else:
        opened = open_filter(model, cutting.of, base=base)
        if not quiet:
            note_older(model, opened.metadata, opened.classifier.base)
        label, even_learned = learning.spam_label, protocol.including_learned
        found, cut_offs = _saved(reader, opened, excerpt, even_learned, label)
    if base is not None:
        found = found._replace(protocol=f"{found.protocol}, with the base {base}")
    return found, cut_offs


def _trained(
    reader: Reader,
    protocol: Protocol,
    settings: TrainingSettings,
    cutting: Cutting,
    limit: float | None,
    excerpt: int,
    quiet: bool,
) -> tuple[Evaluation, CutOffs]:
    """Return the outcomes of models trained on some of the messages, and the cut-offs."""
    cut_offs = cutting.of_new()
    every = reader.corpus(settings.wanted._replace(excerpt=excerpt))
    read, mislabelled = every.without_mislabelled(settings.positive)
    cutting.check_classes(sorted(set(read.corpus.labels)))
    with work(quiet) as at_work:
        at_work.stage("training and testing")
        found = protocol.run(read, settings, cut_offs, limit, at_work=at_work)
    return found._replace(mislabelled=mislabelled), found.cut_offs or cut_offs


def _saved(
    reader: Reader,
    opened: Filter,
    excerpt: int,
    including_learned: bool,
    spam_label: str | None,
) -> tuple[Evaluation, CutOffs]:
    """Return the outcomes of the saved model, and its cut-offs."""
    with opened as spam_filter:
        wanted = spam_filter.wanted._replace(excerpt=excerpt)
        found = protocols.saved_model(
            spam_filter, reader.messages(wanted), including_learned, spam_label
        )
        return found, spam_filter.cut_offs
