"""Training from pieces scores each message left out as training on one matrix does."""

from pathlib import Path

import pytest
from closeness import assert_scores_agree
from cluster_training import ROWS

from nbspam.learning.batch import cut_offs_within, fit, ham_odds
from nbspam.learning.corpus import Corpus
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.training import TrainingRun
from nbspam.reading.message import RawMessage
from nbspam.reading.source import Skips
from nbspam.scoring.verdict import CutOffs
from nbspam.store.model_file import UnsavedModel
from nbspam.workers import Executor, Processes, in_batches, tokenized

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


@pytest.mark.few(3)
@pytest.mark.parametrize("name", SETTINGS)
def test_left_out_scores_are_those_of_one_matrix(name):
    settings = SETTINGS[name]
    corpus = Corpus(settings.wanted)
    for message in tokenized(RAWS, Skips(), Executor(), True, settings.wanted):
        corpus.add(message)
    fitted = fit(corpus, corpus.labels, settings, corpus.channels(), corpus.traits())
    expected = list(fitted.left_out_scores(corpus))
    with TrainingRun(Processes(2, alone=0.0), settings) as run:
        run.read(in_batches(iter(RAWS), 150), Skips())
        run.count()
        run.fit()
        found = [score for some in run.each("scoring", scores_of) for score in some]
        assert_scores_agree(expected, found)
        run.choose_cut_offs(0.05)
        unsaved = UnsavedModel(run.write)
    model = unsaved.lookup.model()
    ham = ham_odds(fitted.metadata, corpus.labels, expected)
    chosen = cut_offs_within(0.05, fitted.metadata, ham)
    assert CutOffs.of_model(run.metadata).spam == pytest.approx(chosen.spam, abs=1e-12)
    assert model.metadata.learned == fitted.metadata.learned
    assert sum(map(sum, model.learned.values())) == len(RAWS)


def test_messages_and_their_names_come_back_in_their_order():
    with TrainingRun(Executor(), TrainingSettings()) as run:
        run.read(in_batches(iter(RAWS), 150), Skips())
        assert [m.source for m in run.messages()] == [raw.source for raw in RAWS]
        places = [799, 0, 150, 149, 151]
        assert run.named(places) == [(RAWS[i].source, RAWS[i].label) for i in places]
        assert run.named([]) == []


def test_no_folder_names_what_a_run_has_read(tmp_path, monkeypatch):
    """So a run that is killed leaves nothing either; without /proc it has a name until the end."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for left, is_there in enumerate((Path.exists, lambda _: False)):
        monkeypatch.setattr("nbspam.learning.pieces.Path.exists", is_there)
        with TrainingRun(Executor(), TrainingSettings()) as run:
            run.read(in_batches(iter(RAWS), 150), Skips())
            assert [path.stat().st_mode & 0o77 for path in tmp_path.rglob("*")] == left * [0]
            assert [m.source for m in run.messages()] == [raw.source for raw in RAWS]
        assert list(tmp_path.iterdir()) == []
