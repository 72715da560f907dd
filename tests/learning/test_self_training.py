"""What of the judged messages is learned."""

from types import SimpleNamespace

import pytest
from whole_models import numbers_of

from nbspam.learning.self_training import FEWEST, SURE, SelfTraining, too_few
from nbspam.learning.settings import TrainingSettings, empty_metadata
from nbspam.learning.update import PendingMessages, forget, learn
from nbspam.store.model_file import read_model
from nbspam.tokens.digest import digest_of
from nbspam.tokens.tokenized import TokenizedMessage, Wanted


def message(number, label=None, *tokens):
    tokens = sorted(tokens or ("prize", "win"))
    numbers = numbers_of(number % 3)
    digest = digest_of(tokens, [("message-id", f"<{number}>")], *numbers)
    return TokenizedMessage("-", label, tokens, digest, numbers=numbers)


def judged(verdict, probability):
    return SimpleNamespace(
        verdict=verdict, probabilities={"ham": 1 - probability, "spam": probability}
    )


def learned(path, *messages):
    pending = PendingMessages(Wanted(traits=True))
    pending.add(messages)
    return learn(path, pending, TrainingSettings())


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "model.json"
    learned(
        path,
        *(message(n, "spam") for n in range(FEWEST)),
        *(message(n, "ham", "lunch", "noon") for n in range(FEWEST, 2 * FEWEST)),
    )
    return path


def training(path, sure=SURE):
    return SelfTraining(read_model(path).metadata, sure)


def test_only_what_is_sure(path):
    self_training = training(path)
    for number, verdict, probability in (
        (1001, "spam", 0.99),
        (1002, "ham", 0.005),
        (1003, "spam", 0.98),
        (1004, "ham", 0.2),
        (1005, "unsure", 0.999),
        (1006, "unsure", 0.001),
    ):
        self_training.add(message(number), judged(verdict, probability))
    assert self_training.learn(path).learned == 2
    model = read_model(path)
    assert model.metadata.learned.messages == (FEWEST + 1, FEWEST + 1)
    assert model.learned[message(1001).digest] == (0, 1)
    assert model.learned[message(1002).digest] == (1, 0)


def test_the_same_message_once(path):
    for _ in range(2):
        self_training = training(path)
        for _ in range(3):
            self_training.add(message(1001), judged("spam", 1.0))
        self_training.learn(path)
    assert read_model(path).metadata.learned.messages == (FEWEST, FEWEST + 1)


@pytest.mark.parametrize("taught_as", ["ham", "spam"])
def test_what_is_taught_between_the_verdict_and_the_lock_stays(path, taught_as):
    self_training = training(path)
    self_training.add(message(1001), judged("spam", 1.0))
    learned(path, message(1001, taught_as))
    before = path.read_bytes()
    change = self_training.learn(path)
    assert (change.learned, change.moved, change.unchanged) == (0, 0, 1)
    assert path.read_bytes() == before


def test_what_is_learned_can_be_corrected_and_forgotten(path):
    before = read_model(path)
    self_training = training(path)
    self_training.add(message(1001), judged("spam", 1.0))
    self_training.learn(path)
    assert learned(path, message(1001, "ham")).moved == 1
    forget(path, [message(1001)])
    after = read_model(path)
    assert (after.counts, after.learned) == (before.counts, before.learned)


def test_a_small_model_learns_nothing(tmp_path):
    metadata = empty_metadata(("ham", "spam"), "spam", TrainingSettings())
    metadata = metadata._replace(learned=metadata.learned._replace(messages=(FEWEST - 1, 5_000)))
    assert too_few(metadata) == {"ham": FEWEST - 1}
    self_training = SelfTraining(metadata)
    self_training.add(message(1), judged("spam", 1.0))
    # Nothing is opened, or it would be missed.
    assert self_training.learn(tmp_path / "none.json").learned == 0


def test_nothing_sure_opens_nothing(tmp_path, path):
    assert training(path).learn(tmp_path / "none.json").learned == 0


def test_a_message_of_no_token_is_not_learned(path):
    self_training = training(path)
    self_training.add(message(1001)._replace(tokens=[]), judged("ham", 1.0))
    assert self_training.learn(path).learned == 0
