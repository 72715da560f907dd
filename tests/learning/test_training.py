"""A run of batches, here or kept by workers, scores each message left out as one matrix does."""

from io import BytesIO

import pytest
from closeness import assert_scores_agree
from cluster_training import ROWS

from nbspam.cluster.training import ClusterRun
from nbspam.learning.batch import cut_offs_within, fit, ham_odds
from nbspam.learning.corpus import Corpus
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.training import TrainingRun
from nbspam.reading.message import RawMessage
from nbspam.reading.source import Skips
from nbspam.scoring.verdict import CutOffs
from nbspam.store.model_file import UnsavedModel
from nbspam.workers import Executor, Processes, batch_messages, tokenize_messages

RAWS = [
    RawMessage(f"rows:{i}", *row.split("\t"))
    for i, row in enumerate((ROWS + ROWS.replace("call", "visit")).splitlines(), 1)
]
SETTINGS = {
    "evidence": TrainingSettings(),
    "sum": TrainingSettings(scoring="sum"),
    "multinomial sum": TrainingSettings(scoring="sum", event_model="multinomial"),
    "traits alone": TrainingSettings(scoring="sum", event_model="none", traits="kernel"),
    "evidence of traits": TrainingSettings(event_model="none"),
}


def scores_of(_metadata, _labels, scores):
    return list(scores)


@pytest.mark.few(2)
@pytest.mark.parametrize("run_of", [TrainingRun, ClusterRun])
@pytest.mark.parametrize("name", SETTINGS)
def test_left_out_scores_are_those_of_one_matrix(name, run_of):
    settings = SETTINGS[name]
    corpus = Corpus(settings.outputs)
    for message in tokenize_messages(RAWS, Skips(), Executor(), True, settings.outputs):
        corpus.add(message)
    features = corpus.channels(), corpus.traits(), corpus.keys()
    fitted = fit(corpus, corpus.labels, settings, *features)
    expected = list(fitted.left_out_scores())
    run = run_of(Processes(2, serial_seconds=0.0), settings)
    run.read(batch_messages(iter(RAWS), 50), Skips())
    run.count()
    run.fit()
    found = [score for some in run.map_blocks("scoring", scores_of) for score in some]
    assert_scores_agree(expected, found)
    run.choose_cut_offs(0.05)
    unsaved = UnsavedModel(run.write)
    model = unsaved.lookup.model()
    ham = ham_odds(fitted.metadata, corpus.labels, expected)
    chosen = cut_offs_within(0.05, fitted.metadata, ham)
    assert CutOffs.from_model(run.metadata).spam == pytest.approx(chosen.spam, abs=1e-12)
    assert model.metadata.learned == fitted.metadata.learned
    assert sum(map(sum, model.learned.values())) == len(RAWS)


@pytest.mark.parametrize("run_of", [TrainingRun, ClusterRun])
def test_messages_and_their_names_come_back_in_their_order(run_of):
    run = run_of(Executor(), TrainingSettings())
    run.read(batch_messages(iter(RAWS), 150), Skips())
    assert [m.source for m in run.messages()] == [raw.source for raw in RAWS]
    places = [799, 0, 150, 149, 151]
    assert run.sources_at(places) == [(RAWS[i].source, RAWS[i].label) for i in places]
    assert run.sources_at([]) == []


def test_messages_in_two_classes_are_counted_and_the_first_are_named():
    raws = [raw._replace(label=label) for raw in RAWS[:5] for label in ("ham", "spam", "ham")]
    run = TrainingRun(Executor(), TrainingSettings())
    run.read(batch_messages(iter([*RAWS[5:], *raws]), 150), Skips())
    run.count()
    n, sources = run.messages_in_two_classes()
    assert (n, len(sources)) == (5, 3)
    assert sources[0] == {"ham": RAWS[0].source, "spam": RAWS[0].source}


def mail(number, text):
    header = f"Received: by mx.example.org\nMessage-ID: <{number}@example.net>\nSubject: hello\n"
    return f"{header}From: ann@example.net\n\n{text}\n".encode()


def trained(run_of, executor, raws):
    run, skips = run_of(executor, TrainingSettings()), Skips()
    run.read(batch_messages(iter(raws), 20), skips)
    run.count()
    run.fit()
    file = BytesIO()
    run.write(file)
    return run, skips, file.getvalue()


@pytest.mark.few(2)
@pytest.mark.parametrize("run_of", [TrainingRun, ClusterRun])
@pytest.mark.parametrize("executor", [Executor(), Processes(2, serial_seconds=0.0)])
def test_a_mail_is_one_lesson_however_many_sources_have_it(run_of, executor):
    """Equal rows of tables all count, and so does a mail in each of two classes."""
    mails = [
        RawMessage(f"{label}:{i}", label, mail(f"{label}{i}", f"{text} number{i}"))
        for label, text in (("ham", "see you at lunch"), ("spam", "win a free prize"))
        for i in range(30)
    ]
    both = RawMessage("spam:both", "spam", mails[0].content)
    copies = [RawMessage(f"copy:{m.source}", m.label, m.content) for m in mails[20:45]]
    altered = RawMessage("copy", "spam", mails[40].content + b"a footer\n")
    once = [*mails, both, *RAWS, *RAWS]
    run, skips, written = trained(run_of, executor, [*mails, both, *copies, altered, *RAWS, *RAWS])
    assert skips.copies == 26
    assert len(run.corpus) == len(once) == sum(run.labels.values())
    assert written == trained(TrainingRun, Executor(), once)[2]
