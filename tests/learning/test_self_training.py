"""What of the judged messages is learned."""

import shutil
from types import SimpleNamespace

import pytest
from whole_models import message, pending

from nbspam.learning.self_training import FEWEST, SURE, SelfTraining, too_few
from nbspam.learning.settings import TrainingSettings, empty_metadata
from nbspam.learning.update import forget, learn
from nbspam.store.model_file import read_model


def judged(verdict, probability):
    return SimpleNamespace(
        verdict=verdict, probabilities={"ham": 1 - probability, "spam": probability}
    )


def mail(number, label=None, *tokens):
    return message(label, *(tokens or ("prize", "win")), number=number, traits_of=number % 3)


def learned(path, *messages):
    return learn(path, pending(messages), TrainingSettings())


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("trained") / "model.json"
    spam = [mail(n, "spam") for n in range(FEWEST)]
    learned(path, *spam, *(mail(n + FEWEST, "ham", "lunch", "noon") for n in range(FEWEST)))
    return path


@pytest.fixture
def path(trained, tmp_path):
    return shutil.copy(trained, tmp_path / "model.json")


def training(path, sure=SURE):
    return SelfTraining(read_model(path).metadata, sure)


def test_only_what_is_sure_is_learned_and_once(path):
    for changed in (2, 0):
        self_training = training(path)
        for number, verdict, probability in (
            (1001, "spam", 0.99),
            (1001, "spam", 0.99),
            (1002, "ham", 0.005),
            (1003, "spam", 0.98),
            (1004, "ham", 0.2),
            (1005, "unsure", 0.999),
            (1006, "unsure", 0.001),
        ):
            self_training.add(mail(number), judged(verdict, probability))
        assert self_training.learn(path).learned == changed
        model = read_model(path)
        assert model.metadata.learned.messages == (FEWEST + 1, FEWEST + 1)
        assert model.learned[mail(1001).digest] == (0, 1)
        assert model.learned[mail(1002).digest] == (1, 0)


@pytest.mark.parametrize("taught_as", ["ham", "spam"])
def test_what_is_taught_between_the_verdict_and_the_lock_stays(path, taught_as):
    self_training = training(path)
    self_training.add(mail(1001), judged("spam", 1.0))
    learned(path, mail(1001, taught_as))
    before = path.read_bytes()
    change = self_training.learn(path)
    assert (change.learned, change.moved, change.unchanged) == (0, 0, 1)
    assert path.read_bytes() == before


def test_what_is_learned_can_be_corrected_and_forgotten(path):
    before = read_model(path)
    self_training = training(path)
    self_training.add(mail(1001), judged("spam", 1.0))
    self_training.learn(path)
    assert learned(path, mail(1001, "ham")).moved == 1
    forget(path, [mail(1001)])
    after = read_model(path)
    assert (after.counts, after.learned) == (before.counts, before.learned)


def test_a_small_model_learns_nothing_and_nothing_sure_opens_nothing(tmp_path, path):
    metadata = empty_metadata(("ham", "spam"), "spam", TrainingSettings())
    metadata = metadata._replace(learned=metadata.learned._replace(messages=(FEWEST - 1, 5_000)))
    assert too_few(metadata) == {"ham": FEWEST - 1}
    self_training = SelfTraining(metadata)
    self_training.add(mail(1), judged("spam", 1.0))
    # Nothing is opened, or it would be missed.
    assert self_training.learn(tmp_path / "none.json").learned == 0
    self_training = training(path)
    assert self_training.learn(tmp_path / "none.json").learned == 0
    self_training.add(mail(1001)._replace(tokens=[]), judged("ham", 1.0))
    assert self_training.learn(path).learned == 0
