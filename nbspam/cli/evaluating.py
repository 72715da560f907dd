"""What `nbspam eval` does: tests models of some of the messages, a saved one, or several kinds."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from nbspam.bayes.trait_model import GAUSSIAN, Variances
from nbspam.cli.learning_options import Learning, Protocol, Sources
from nbspam.cli.notes import note, note_older, note_skips
from nbspam.cli.options import Cutting, opened_base
from nbspam.cli.progress import cutter, parts_shown, progress, shown_passes, work_place
from nbspam.cli.terminal import echo_sentence
from nbspam.display.tables import OutputFiles
from nbspam.errors import SourceError, counted, one_line
from nbspam.evaluation import comparison, metrics, protocols, report, results
from nbspam.evaluation.comparison import EVERYTHING, Combination
from nbspam.evaluation.messages import LabelledCorpus, Mislabelled
from nbspam.filter import open_filter
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.training import TrainingRun
from nbspam.reading.cutting import SourcePiece
from nbspam.reading.message import RawMessage
from nbspam.reading.source import ReadingNote, ReadingOptions, Skips
from nbspam.tokens.tokenized import TokenizedMessage, Wanted
from nbspam.workers import PIECE, Executor, in_batches, tokenized

_NO_MESSAGE = "there is no message to test on; name a source that has some"
_LABELS_SHOWN = 5


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
        with work_place(*self.at, quiet=self.quiet) as where, progress(self.quiet, names) as shown:
            raws = self._raws(where)
            yield from shown(tokenized(raws, self.skips, where, True, wanted, skips_empty=True))
        note_skips(self.skips)

    def corpus(self, wanted: Wanted, positive: str | None) -> tuple[LabelledCorpus, Mislabelled]:
        """Return them as a corpus, without those that are mislabelled, and these."""
        names = self.sources.names()
        with (
            work_place(*self.at, quiet=self.quiet) as where,
            shown_passes(self.quiet, names) as passes,
            TrainingRun(where, TrainingSettings(), passes) as run,
        ):
            run.read(in_batches(self._raws(where), *PIECE), self.skips, wanted)
            read = LabelledCorpus.of_pieces(run, wanted)
        note_skips(self.skips)
        return read.without_mislabelled(positive)

    def _raws(self, where: Executor) -> Iterator[RawMessage | ReadingNote | SourcePiece]:
        cuts = cutter(where, self.options, self.sources.names())
        return self.files.guarded(self.sources.pieces(cuts))

    def note_mislabelled(self, left_out: Mislabelled) -> None:
        """Say which messages are left out, unless quiet; raises SourceError for one if strict."""
        if self.skips.strict:
            left_out.check()
        if self.quiet or not left_out.messages:
            return
        where = ", ".join(
            f"{label!r} ({', '.join(map(one_line, sources))})"
            for label, sources in list(left_out.sources.items())[:_LABELS_SHOWN]
        )
        if (more := len(left_out.sources) - _LABELS_SHOWN) > 0:
            where += f" and {counted(more, 'other label')}"
        header = "; add --header-row yes if that row names the columns"
        note(
            f"{counted(left_out.messages, 'message')} left out, probably mislabelled: {where};"
            f" correct the label{header if left_out.is_first_row else ''}"
        )


# One model


def evaluated(
    reader: Reader,
    model: Path,
    base: str | None,
    protocol: Protocol,
    learning: Learning,
    cutting: Cutting,
    excerpt: int,
) -> results.Results:
    """Test one model, saved or of some of the messages, over the base; return the results.

    excerpt: characters of each message to keep.
    """
    if protocol.trains:
        # Without --online the base is of the environment or a config file, and has no use.
        base = base if protocol.online else None
        with opened_base(base) as beneath:
            settings = learning.settings()._replace(base=beneath)
            cut_offs = cutting.of_new()
            wanted = settings.wanted._replace(excerpt=excerpt)
            read, mislabelled = reader.corpus(wanted, settings.positive)
            cutting.check_classes(sorted(set(read.corpus.labels)))
            with shown_passes(reader.quiet) as passes:
                passes.begin("training and testing", 0)
                found = protocol.run(read, settings, cut_offs, passes=passes)
        found = found._replace(mislabelled=mislabelled)
    else:
        opened = open_filter(model, cutting.of, base=base)
        if not reader.quiet:
            note_older(model, opened.metadata, opened.classifier.base)
        with opened as spam_filter:
            options = reader.options.with_learned_columns(spam_filter.metadata.learned.columns)
            reader = reader._replace(options=options)
            messages = reader.messages(spam_filter.wanted._replace(excerpt=excerpt))
            found = protocols.saved_model(
                spam_filter, messages, protocol.including_learned, learning.spam_label
            )
    found = found._replace(skipped=reader.skips.count)
    if base is not None:
        found = found._replace(protocol=f"{found.protocol}, with the base {base}")
    reader.note_mislabelled(found.mislabelled)
    if not found.outcomes:
        before = found.learned_before
        if before is None or not before.left_out:
            raise SourceError(_NO_MESSAGE)
        raise SourceError(
            f"{model}: has learned {counted(before.left_out, 'message')}, all there are; testing on"
            " them tells you nothing about new mail; test on others, test with --leave-one-out and"
            " no --model, or add --including-learned"
        )
    with shown_passes(reader.quiet) as passes:
        passes.begin("computing the figures and their intervals", 0)
        return results.compute(found, protocol.seed or metrics.SEED)


def notes_of(computed: results.Results, model: Path) -> list[str]:
    """Return sentences to read before the figures."""
    found, notes = computed.evaluation, []
    before = found.learned_before
    if before is not None:
        unknown = counted(before.unnamed, "message") if before.learned is not None else "messages"
        if before.learned:
            share = f"{before.learned:,} of {counted(before.read, 'message')}"
            notes.append(
                f"the model has learned {share}, left out here; --including-learned tests on all"
                if before.left_out
                else f"the model has learned {share}, so the figures are too good; leave out"
                " --including-learned to test on the others"
            )
        if before.learned is None or before.unnamed:
            notes.append(
                f"{model} does not know which {unknown} it has learned, perhaps some of these"
            )
    notes += _of_duplicates(found)
    if wrong := computed.doubted.sentence(computed.doubted_sources):
        notes.append(f"{wrong}; --errors N shows them")
    return notes


def _of_duplicates(found: results.Evaluation) -> list[str]:
    if not found.duplicates:
        return []
    share = f"{found.duplicates:,} of {counted(len(found.outcomes), 'message')} tested"
    return [f"{share} also occurred in training, so the figures are too good"]


# Several kinds


def compare_models(
    reader: Reader,
    protocol: Protocol,
    learning: Learning,
    cutting: Cutting,
    plot: Path | None,
    form: str,
) -> None:
    """Compare kinds of naive Bayes on labelled messages, and print the comparison.

    plot: where the ROC curves go.  form: text or json.
    """
    given, cut_offs = learning.unchecked(), cutting.of_new()
    asked = comparison.chosen(protocol.compare or "", given)
    if given.variances != Variances() and not any(kind.traits == GAUSSIAN for kind in asked):
        given.check()  # which says that variances are of Gaussian traits
    for kind in asked:
        kind.settings(given).check()
    read, mislabelled = reader.corpus(EVERYTHING, given.positive)
    reader.note_mislabelled(mislabelled)
    if not read.sources:
        raise SourceError(_NO_MESSAGE)

    def tested(settings: TrainingSettings) -> results.Evaluation:
        found = protocol.run(read, settings, cut_offs, telling=False)
        return found._replace(mislabelled=mislabelled, skipped=reader.skips.count)

    with shown_passes(reader.quiet) as passes:
        of = f"model {{}} of {len(asked)}: {{}}"
        kinds = parts_shown(passes, lambda i, model: of.format(i + 1, model.name), asked)
        found = comparison.compare(kinds, given, tested, protocol.seed or metrics.SEED)
    said = comparison.advice(found, lambda kind: _how_to_train(kind, learning))
    if form == "json":
        click.echo(comparison.as_json(found, said))
    else:
        report.print_comparison(found, said)
        for same in _of_duplicates(found[0].results.evaluation):
            click.echo()
            echo_sentence(same)
    if plot is not None:
        from nbspam.evaluation.curves import draw_comparison

        draw_comparison(found, plot)


def _how_to_train(kind: Combination, learning: Learning) -> str:
    """Return the command that trains a model of this kind, with what else was given."""
    options = kind._asdict() | {name: getattr(learning, name) for name in learning.given()}
    if kind.traits != GAUSSIAN:
        options = {name: v for name, v in options.items() if "variance" not in name}
    shown = (learning.option(name) + ("" if v is True else f" {v}") for name, v in options.items())
    return " ".join(["nbspam train", *shown])
