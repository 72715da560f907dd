"""Models trained from pieces, wherever that is done, and as one matrix, to compare."""

from whole_models import ledger_of

from nbspam.cli.progress import training_run
from nbspam.evaluation.estimate import leave_one_out_rates
from nbspam.learning.batch import fit, token_counts
from nbspam.learning.corpus import Corpus
from nbspam.learning.settings import TrainingSettings
from nbspam.reading.source import ReadingOptions, Skips
from nbspam.reading.sources import read_labelled, read_messages, read_unlabelled
from nbspam.store.lookup import Model
from nbspam.store.model_file import replace_model, write_model
from nbspam.workers import PIECE_LIMITS, Executor, ProgressPasses, batch_messages, tokenize_messages

ROWS = "".join(
    f"{'spam' if i % 3 == 0 else 'ham'}\t{'win a prize' if i % 3 == 0 else 'see you at'}"
    f" {i % 17} {'now' * (i % 5)} call {i % 101}\n"
    for i in range(400)
)


def messages(name, label, require_labels, options, skips):
    """Return the messages of a source."""
    if require_labels:
        return read_labelled(name, options, skips)
    return (
        read_unlabelled(name, label, options, skips)
        if label
        else read_messages(name, options, skips)
    )


def trained_alone(asked, path, settings=None, options=None, ledger=True):
    """Train on one matrix, write the model, and return what was skipped."""
    settings, options, skips = settings or TrainingSettings(), options or ReadingOptions(), Skips()
    corpus = Corpus(settings.outputs)
    for each in asked:
        raws = messages(*each, options, skips)
        how = Executor(), True, settings.outputs
        for message in tokenize_messages(raws, skips, *how, skip_empty=True):
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
    options = (options or ReadingOptions())._replace(by_range=not where.is_local)
    run = training_run(where, settings, passes or ProgressPasses())
    raws = (raw for each in asked for raw in messages(*each, options, skips))
    run.read(batch_messages(raws, PIECE_LIMITS[0], size), skips)
    run.count()
    run.fit()
    replace_model(path, lambda file: run.write(file, ledger))
    leave_one_out_rates(run)
    return skips.count, skips.named
