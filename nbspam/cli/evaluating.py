"""The work of `nbspam eval`: tests of new models, of a saved model, or of several kinds."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

from nbspam.bayes.trait_model import GAUSSIAN, Variances
from nbspam.cli.learning_options import Protocol, Sources, TrainingOptions
from nbspam.cli.notes import note, note_copies, note_older, note_skips
from nbspam.cli.options import CutOffOptions, open_base_model
from nbspam.cli.progress import open_executor, progress, progress_parts, progress_passes, size_of
from nbspam.cli.terminal import echo_sentence
from nbspam.display.tables import open_output
from nbspam.errors import SourceError, format_count, one_line
from nbspam.evaluation import comparison, protocols, report, results
from nbspam.evaluation.comparison import ALL_NUMBERS, Combination
from nbspam.evaluation.curves import draw_comparison
from nbspam.evaluation.messages import Mislabelled, for_model, without_mislabelled
from nbspam.filter import open_filter
from nbspam.learning.corpus import Corpus
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.training import TrainingRun
from nbspam.reading.message import RawMessage
from nbspam.reading.source import ReadingOptions, Skips
from nbspam.store.lookup import Model
from nbspam.tokens.tokenized import TokenizedMessage, TokenizerOutputs
from nbspam.workers import PIECE_LIMITS, Executor, batch_messages, tokenize_messages

_NO_MESSAGE = "there is no message to test on; name a source that has some"
_LABELS_SHOWN = 5
_SOURCES_SHOWN = 5


class Reader(NamedTuple):
    """Reads the messages, shows the progress, and prints notes on skipped messages.

    executor_args: the scheduler's address if there is one, and the number of processes.
    """

    sources: Sources
    options: ReadingOptions
    skips: Skips
    quiet: bool
    executor_args: tuple[str | None, int]

    def messages(self, outputs: TokenizerOutputs) -> Iterator[TokenizedMessage]:
        """Yield the messages; outputs: computed for each message in addition to its tokens."""
        names = self.sources.names()
        with (
            open_executor(*self.executor_args, quiet=self.quiet) as executor,
            progress(self.quiet, names) as with_progress,
        ):
            raws = self._raws(executor, names)
            yield from with_progress(
                tokenize_messages(raws, self.skips, executor, True, outputs, skip_empty=True)
            )
        note_skips(self.skips)

    def corpus(
        self, outputs: TokenizerOutputs, positive: str | None, keep_copies: bool
    ) -> tuple[Corpus, Mislabelled]:
        """Return the messages as a corpus, and the mislabelled messages, which are left out.

        keep_copies: keep copies of mails, for a test in the order of arrival, which classifies
        every message.
        """
        names = self.sources.names()
        with (
            open_executor(*self.executor_args, quiet=self.quiet) as executor,
            progress_passes(self.quiet, names) as passes,
        ):
            run = TrainingRun(executor, TrainingSettings(), passes)
            batches = batch_messages(self._raws(executor, names), *PIECE_LIMITS)
            run.read(batches, self.skips, outputs, keep_copies)
        note_copies(self.skips, self.quiet)
        note_skips(self.skips)
        return without_mislabelled(run.corpus, positive)

    def _raws(self, executor: Executor, names: list[str]) -> Iterator[RawMessage]:
        executor.announce_size(size_of(names) or 0)
        return self.sources.messages(self.options, self.skips)

    def note_mislabelled(self, left_out: Mislabelled) -> None:
        """Print a note on mislabelled messages, unless quiet; raises SourceError if strict."""
        if self.skips.strict:
            left_out.check()
        if self.quiet or not left_out.messages:
            return
        examples = ", ".join(
            f"{label!r} ({', '.join(map(one_line, sources))})"
            for label, sources in list(left_out.sources.items())[:_LABELS_SHOWN]
        )
        if (more := len(left_out.sources) - _LABELS_SHOWN) > 0:
            examples += f" and {format_count(more, 'other label')}"
        header = "; add --header-row yes if that row names the columns"
        note(
            f"{format_count(left_out.messages, 'message')} left out, probably mislabelled:"
            f" {examples}; correct the label{header if left_out.is_first_row else ''}"
        )


# One model


def evaluate_model(
    reader: Reader,
    model: Path,
    base: str | None,
    protocol: Protocol,
    training_options: TrainingOptions,
    cut_off_options: CutOffOptions,
    excerpt: int,
    has_page: bool,
) -> tuple[results.Results, Model | None]:
    """Test a saved model, or models trained on some of the messages; return the results.

    For a page, also returns a model that counts words: the saved model, or a model of all messages.
    excerpt: characters of each message to keep.
    """
    whole: Model | None = None
    if protocol.trains:
        # Without --online, a base comes from the environment or a config file, and is not used.
        base = base if protocol.online else None
        with open_base_model(base) as base_model:
            settings = training_options.settings()._replace(base=base_model)
            cut_offs = cut_off_options.for_new_model()
            outputs = settings.outputs._replace(excerpt=excerpt)
            read, mislabelled = reader.corpus(outputs, settings.positive, protocol.is_stream)
            cut_off_options.check_classes(sorted(set(read.labels)))
            with progress_passes(reader.quiet) as passes:
                passes.start("training and testing", 0)
                evaluation = protocol.run(read, settings, cut_offs, passes=passes)
            if has_page:
                trial = protocols.Trial(for_model(read, settings), settings, cut_offs)
                whole = trial.whole_model()
        evaluation = evaluation._replace(mislabelled=mislabelled)
    else:
        with open_filter(model, cut_off_options.for_model, base=base) as spam_filter:
            version = spam_filter.version
            if not reader.quiet:
                note_older(model, version.metadata, version.classifier.base)
            options = reader.options.with_learned_columns(version.metadata.learned.columns)
            reader = reader._replace(options=options)
            messages = reader.messages(version.outputs._replace(excerpt=excerpt))
            evaluation = protocols.saved_model(
                version, messages, protocol.including_learned, training_options.spam_label
            )
            if has_page and version.lookup:  # None if there is only the base
                whole = version.lookup.model()
    evaluation = evaluation._replace(skipped=reader.skips.count)
    if base is not None:
        evaluation = evaluation._replace(protocol=f"{evaluation.protocol}, with the base {base}")
    reader.note_mislabelled(evaluation.mislabelled)
    if not evaluation.outcomes:
        before = evaluation.learned_before
        if before is None or not before.left_out:
            raise SourceError(_NO_MESSAGE)
        raise SourceError(
            f"{model}: has learned {format_count(before.left_out, 'message')}, all there are;"
            " testing on them tells you nothing about new mail; test on others, test with"
            " --leave-one-out and no --model, or add --including-learned"
        )
    with progress_passes(reader.quiet) as passes:
        passes.start("computing the figures", 0)
        has_words = whole is not None and whole.metadata.settings.counts.has_tokens
        return results.compute(evaluation), whole if has_words else None


def write_page(text: str, path: Path) -> None:
    """Write a page to a file."""
    with open_output(path) as file:
        file.write(text.encode("ascii"))


def page_terms(sources: Sources) -> list[tuple[str, str]]:
    """Return the tested sources and the command as terms of a page."""
    names = sources.names()
    if more := names[_SOURCES_SHOWN:]:
        names[_SOURCES_SHOWN:] = [f"and {len(more):,} more"]
    command = shlex.join(["nbspam", *sys.argv[1:]])
    return [("messages", ", ".join(map(one_line, names))), ("command", command)]


def report_notes(computed: results.Results, model: Path) -> list[str]:
    """Return notes to print before the figures."""
    evaluation, notes = computed.evaluation, []
    before = evaluation.learned_before
    if before is not None:
        unknown = (
            format_count(before.not_in_ledger, "message")
            if before.learned is not None
            else "messages"
        )
        if before.learned:
            share = f"{before.learned:,} of {format_count(before.read, 'message')}"
            notes.append(
                f"the model has learned {share}, left out here; --including-learned tests on all"
                if before.left_out
                else f"the model has learned {share}, so the figures are too good; leave out"
                " --including-learned to test on the others"
            )
        if before.learned is None or before.not_in_ledger:
            notes.append(
                f"{model} does not know which {unknown} it has learned, possibly some of these"
            )
    notes += _duplicate_notes(evaluation)
    if wrong := computed.suspect_labels.sentence(computed.suspect_sources):
        notes.append(f"{wrong}; --errors N shows them")
    return notes


def _duplicate_notes(evaluation: results.Evaluation) -> list[str]:
    n_messages = format_count(len(evaluation.outcomes), "message")
    if evaluation.n_texts is not None and evaluation.n_texts < len(evaluation.outcomes):
        return [
            f"the {n_messages} are {evaluation.n_texts:,} different texts; the copies of a message"
            " are left out with it"
        ]
    if not evaluation.duplicates:
        return []
    share = f"{evaluation.duplicates:,} of {n_messages} tested"
    return [f"{share} also occurred in training, so the figures are too good"]


# Several kinds


def compare_models(
    reader: Reader,
    protocol: Protocol,
    training_options: TrainingOptions,
    cut_off_options: CutOffOptions,
    files: tuple[Path | None, Path | None],
    form: str,
) -> None:
    """Compare kinds of naive Bayes on labelled messages, and print the comparison.

    files: paths of the plot and of the page.  form: text or json.
    """
    given, cut_offs = training_options.unchecked(), cut_off_options.for_new_model()
    kinds = comparison.parse_combinations(protocol.compare or "", given)
    if given.variances != Variances() and not any(kind.traits == GAUSSIAN for kind in kinds):
        given.check()  # raises if variances are given without Gaussian traits
    for kind in kinds:
        kind.settings(given).check()
    read, mislabelled = reader.corpus(ALL_NUMBERS, given.positive, protocol.is_stream)
    reader.note_mislabelled(mislabelled)
    if not len(read):
        raise SourceError(_NO_MESSAGE)

    def evaluate_kind(settings: TrainingSettings) -> results.Evaluation:
        evaluation = protocol.run(read, settings, cut_offs, explain_mistakes=False)
        return evaluation._replace(mislabelled=mislabelled, skipped=reader.skips.count)

    with progress_passes(reader.quiet) as passes:
        title = f"model {{}} of {len(kinds)}: {{}}"
        shown_kinds = progress_parts(
            passes, lambda i, model: title.format(i + 1, model.name), kinds
        )
        models = comparison.compare(shown_kinds, given, evaluate_kind)
    advice = comparison.advice(models, lambda kind: _how_to_train(kind, training_options))
    if form == "json":
        click.echo(comparison.as_json(models, advice))
    else:
        report.print_comparison(models, advice)
        for same in _duplicate_notes(models[0].results.evaluation):
            click.echo()
            echo_sentence(same)
    plot, page = files
    if plot is not None:
        draw_comparison(models, plot)
    if page is not None:
        write_page(report.comparison_page(models, advice, page_terms(reader.sources)), page)


def _how_to_train(kind: Combination, training_options: TrainingOptions) -> str:
    """Return the command that trains a model of this kind, with the other given options."""
    options = kind._asdict() | {
        name: getattr(training_options, name) for name in training_options.given()
    }
    if kind.traits != GAUSSIAN:
        options = {name: v for name, v in options.items() if "variance" not in name}
    parts = (
        training_options.option(name) + ("" if v is True else f" {v}")
        for name, v in options.items()
    )
    return " ".join(["nbspam train", *parts])
