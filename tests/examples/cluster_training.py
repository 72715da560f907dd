"""Models trained from pieces, wherever that is done, and as one matrix, to compare."""

from whole_models import ledger_of

from nbspam.cli.train import leave_one_out_rates
from nbspam.learning.batch import fit, token_counts
from nbspam.learning.corpus import Corpus
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.training import TrainingRun
from nbspam.reading.cutting import Cutter
from nbspam.reading.source import ReadingOptions, Skips
from nbspam.reading.sources import any_kind, labelled, unlabelled
from nbspam.store.lookup import Model
from nbspam.store.model_file import put_model, write_model
from nbspam.workers import PIECE, Executor, in_batches, tokenized

ROWS = "".join(
    f"{'spam' if i % 3 == 0 else 'ham'}\t{'win a prize' if i % 3 == 0 else 'see you at'}"
    f" {i % 17} {'now' * (i % 5)} call {i % 101}\n"
    for i in range(400)
)


def messages(name, label, needs_labels, options, skips):
    """Return the messages of a source, which `Cutter.pieces` cuts."""
    if needs_labels:
        return labelled(name, options, skips)
    return unlabelled(name, label, options, skips) if label else any_kind(name, options, skips)


def trained_alone(asked, path, settings=None, options=None, ledger=True):
    """Train on one matrix, write the model, and return what was skipped."""
    settings, options, skips = settings or TrainingSettings(), options or ReadingOptions(), Skips()
    corpus = Corpus(settings.wanted)
    for each in asked:
        raws = messages(*each, options, skips)
        how = Executor(), True, settings.wanted
        for message in tokenized(raws, skips, *how, skips_empty=True):
            corpus.add(message)
    fitted = fit(corpus, corpus.labels, settings, corpus.channels(), corpus.traits())
    learned = ledger_of(corpus, fitted.metadata.settings.classes) if ledger else ()
    counts = token_counts(corpus.vocabulary, fitted.counts)
    write_model(path, Model(fitted.metadata, dict(counts), dict(learned)))
    return skips.count, skips.named


def trained_on(
    where, asked, path, settings=None, options=None, size=4_000, passes=None, ledger=True
):
    """Train from pieces, write the model, and return what was skipped."""
    settings, skips = settings or TrainingSettings(), Skips()
    cutter = Cutter(options or ReadingOptions(), size)
    with TrainingRun(where, settings, passes) as run:
        pieces = (piece for each in asked for piece in cutter.pieces(*each))
        run.read(in_batches(pieces, PIECE[0], size), skips)
        run.count()
        run.fit()
        put_model(path, lambda file: run.write(file, ledger))
        leave_one_out_rates(run)
    return skips.count, skips.named
