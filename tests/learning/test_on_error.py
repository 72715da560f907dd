"""Train on error: what is judged, in which order, and what is learned of it."""

from pathlib import Path
from types import SimpleNamespace

from one_case import each
from whole_models import message, pending, save

from nbspam.learning import on_error
from nbspam.learning.on_error import SURE, TrainOnError
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.update import LearningRun, learn_in_memory
from nbspam.scoring.verdict import CutOffs
from nbspam.store.check import disagreements

NAME = Path("the model")


def stream(n):
    for i in range(n):
        label, words = (("ham", "lunch noon"), ("spam", "prize win"))[i % 2]
        yield message(label, *words.split(), f"rare{i}", number=i, traits_of=i % 3)


def taught(messages, sure=SURE, model=None, remember=True):
    teach = TrainOnError(CutOffs.of_model, sure)
    chosen = TrainingSettings()
    return learn_in_memory(NAME, model, pending(messages), chosen, remember, teach)


def test_each_is_judged_by_what_was_learned_before_it():
    change, model = taught(stream(200))
    assert change.learned + change.judged_right == 200
    assert 2 <= change.learned < 100
    assert sum(model.metadata.learned.messages) == change.learned
    # The first are all learned, since nothing is sure of them; the last are not.
    assert {"rare0", "rare1"} <= model.counts.keys()
    assert not {"rare198", "rare199"} & model.counts.keys()
    # A right verdict changes nothing; a wrong one is learned however sure it is.
    right, wrong = (message(label, "prize", "win", number=999) for label in ("spam", "ham"))
    change, after = taught([right], 0, model)
    assert (change.learned, change.judged_right, after) == (0, 1, model)
    change, after = taught([wrong], 0, model)
    assert (change.learned, change.judged_right) == (1, 0)
    assert after.metadata.learned.messages[0] == model.metadata.learned.messages[0] + 1


def test_a_higher_bound_learns_more():
    learned = [taught(stream(100), sure)[0].learned for sure in (0, 0.9, 0.99, 1)]
    assert learned == sorted(learned)
    assert learned[0] < learned[2] < learned[3] == 100


@each("remember", [True, False])
def test_what_is_learned_so_can_be_taken_back(remember):
    _, before = taught(stream(40))
    slip = message("ham", "prize", "win", number=999)
    _, model = taught([slip], model=before, remember=remember)
    recent = before.metadata.learned.recent
    assert {*recent} <= before.learned.keys()
    assert 2 <= len(recent) == len(before.learned) - 2  # the first two had nothing to be scored by
    assert model.metadata.learned.recent == ((*recent, slip.digest) if remember else recent)


def test_the_classes_come_in_turns_each_in_its_order():
    spam = [message("spam", "a", number=n) for n in range(3)]
    ham = [message("ham", "b", number=n) for n in range(10, 16)]
    learner = SimpleNamespace(metadata=taught(stream(4))[1].metadata)
    run = LearningRun(NAME, learner, pending([*spam, *ham]), {}, remember=True)
    turns = list(on_error._in_turns(run))
    assert [each.label for each in turns] == ["ham", "spam", "ham"] * 3
    digests = [each.digest for each in turns]
    for of_class in (spam, ham):
        places = [digests.index(each.digest) for each in of_class]
        assert places == sorted(places)


@each("sure", [0, SURE])
def test_a_model_learned_so_is_whole(sure, tmp_path):
    _, model = taught(stream(100), sure)
    assert disagreements(save(tmp_path / "model.json", model))[1] == []
