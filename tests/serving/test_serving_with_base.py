"""A served model with a base beneath it."""

from contextlib import suppress

import pytest
from servers import HAM, SPAM

from nbspam.errors import ModelError
from nbspam.filter import open_filter
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.update import PendingMessages, learn
from nbspam.reading.message import parse
from nbspam.scoring.open_base import OpenBase
from nbspam.scoring.verdict import CutOffs
from nbspam.serving.current import CurrentModel
from nbspam.serving.tell import LearnRequest, apply_requests
from nbspam.store.lock import DEFAULT_WAIT
from nbspam.store.lookup import Lookup
from nbspam.tokens.tokenized import tokenize


def cut_offs(metadata):
    return CutOffs.of_model(metadata)


def tell(path, base, message, is_spam):
    return apply_requests(path, [LearnRequest(message, is_spam)], DEFAULT_WAIT, base)


def log_odds(current, message):
    with current.use() as model:
        return model.filter.classify(message).log_odds


@pytest.fixture
def me(tmp_path):
    return tmp_path / "me.json"


@pytest.fixture
def current(me, model):
    """Return a user's model, which does not exist yet, on the base `model`."""
    found = CurrentModel(me, cut_offs, print, model)
    yield found
    found.close()


def test_without_a_model_the_base_answers_and_then_both(me, model, current):
    with open_filter(model) as base:
        of_base = base.classify(SPAM).log_odds
    assert log_odds(current, SPAM) == of_base
    assert tell(me, model, SPAM, True) == ["learned"]
    of_both = log_odds(current, SPAM)
    assert of_both != of_base
    with OpenBase(model) as base, open_filter(me, base=base) as both:
        assert both.classify(SPAM).log_odds == of_both


def test_a_model_that_vanishes_leaves_the_base(me, model, current):
    before = log_odds(current, HAM)
    tell(me, model, HAM, False)
    assert log_odds(current, HAM) != before
    me.unlink()
    assert log_odds(current, HAM) == before


def test_a_base_that_is_replaced_is_opened_again(me, model, current):
    tell(me, model, HAM, False)
    before = log_odds(current, SPAM)
    beside = model.with_name("beside")
    beside.write_bytes(model.read_bytes())
    message = tokenize(
        parse(SPAM + b"quite another"), label="spam", digest=True, wanted=_wanted(model)
    )
    pending = PendingMessages(_wanted(model))
    pending.add([message])
    learn(beside, pending, TrainingSettings())
    beside.replace(model)
    assert log_odds(current, SPAM) != before


def _wanted(path):
    with Lookup(path) as lookup:
        return lookup.metadata.settings.wanted


def test_a_base_that_breaks_leaves_the_last_one(me, model, current):
    before = log_odds(current, SPAM)
    beside = model.with_name("beside")
    beside.write_bytes(b"no model")
    beside.replace(model)
    assert log_odds(current, SPAM) == before


def test_learn_move_and_forget(me, model):
    assert tell(me, model, SPAM, None) == ["unchanged"]
    assert not me.exists()
    steps = [tell(me, model, SPAM, is_spam)[0] for is_spam in (True, True, False, None)]
    assert steps == ["learned", "unchanged", "moved", "forgotten"]
    with Lookup(me) as lookup:
        assert lookup.metadata.learned.messages == (0, 0)


def test_a_base_stays_open_until_the_last_user_has_closed_it(model):
    base = OpenBase(model)
    shared = base.share()
    base.close()
    assert shared.base.counts(["no such token"]) == {}
    shared.close()
    with suppress(OSError, ModelError):
        shared.base.counts(["no such token"])


def test_an_unlike_model_is_refused_and_nothing_stays_open(me, model):
    me.write_bytes(model.read_bytes().replace(b'"scoring": "evidence"', b'"scoring": "sum"', 1))
    with pytest.raises(ModelError, match="has the scoring sum, and its base"):
        CurrentModel(me, cut_offs, print, model)
