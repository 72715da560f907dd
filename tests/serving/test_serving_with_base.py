"""A served model with a base beneath it."""

from contextlib import suppress

import pytest
from nbspam.scoring.open_base import OpenBase
from servers import HAM, SPAM, request

from nbspam.errors import ModelError
from nbspam.filter import open_filter
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.update import PendingMessages, learn
from nbspam.reading.message import parse
from nbspam.scoring.verdict import CutOffs
from nbspam.serving.current import CurrentModel
from nbspam.serving.limits import Limits
from nbspam.serving.tell import LearnRequest, apply_requests
from nbspam.serving.worker_program import WorkerSettings
from nbspam.store.lock import DEFAULT_WAIT
from nbspam.store.lookup import Lookup
from nbspam.tokens.tokenized import tokenize


def cut_offs(metadata):
    return CutOffs.of_model(metadata)


def tell(path, base, message, is_spam):
    return apply_requests(path, [LearnRequest(message, is_spam)], DEFAULT_WAIT, base=base)


def log_odds(current, message):
    with current.use() as model:
        return model.filter.classify(message).log_odds


@pytest.fixture
def me(tmp_path):
    return tmp_path / "me.json"


@pytest.fixture
def current(me, model):
    """Return a user's model, which does not exist yet, on the base `model`."""
    found = CurrentModel(me, cut_offs, print, base=model)
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
        CurrentModel(me, cut_offs, print, base=model)


# Users' models


@pytest.fixture
def users(tmp_path):
    """Return the folder of users' models."""
    folder = tmp_path / "users"
    folder.mkdir(mode=0o700)
    return folder


def report(served, user, message):
    """Return what the server says of a message for a user."""
    return served.ask(request("REPORT", message, user=user))


def taught(served, user, message, name):
    kinds = f"Message-class: {name}", "Set: local"
    return served.ask(request("TELL", message, *kinds, user=user))


def test_a_base_lies_beneath_each_users_model(serving, me, model, users):
    with serving(me, users=users, base=model) as served:
        of_base = report(served, "hal", SPAM)
        assert b"spam" in of_base
        assert b"DidSet" in taught(served, "hal", SPAM, "ham")
        own = report(served, "hal", SPAM)
        assert own != of_base  # from the first message on
        assert b"base spam" in own
        assert report(served, "ann", SPAM) == of_base
    with OpenBase(model) as base, open_filter(users / "hal.json", base=base) as both:
        assert f"{both.classify(SPAM).probability:.4f}".encode() in own
    assert served.said == []
    assert not me.exists()


def test_a_new_base_is_beneath_the_open_models_of_users_too(serving, me, model, users):
    with serving(me, users=users, base=model) as served:
        taught(served, "hal", HAM, "ham")
        before = report(served, "hal", SPAM)
        tell(model, None, SPAM, True)
        assert report(served, "hal", SPAM) != before
    assert served.said == []


def test_a_users_model_that_is_unlike_the_base_is_his_trouble_alone(serving, me, model, users):
    whole = model.read_bytes()
    (users / "hal.json").write_bytes(whole.replace(b'"evidence"', b'"sum"', 1))
    with serving(me, users=users, base=model) as served:
        assert report(served, "hal", SPAM).startswith(b"SPAMD/1.0 74 ")
        assert b"spam" in report(served, "ann", SPAM)


def test_an_index_of_the_base_is_made_once(me, model, current):
    first = current.base
    tell(me, model, SPAM, True)
    with current.use() as opened:
        assert opened.base is current.base is first
    tell(model, None, SPAM, True)
    assert current.base is not first


def test_workers_have_the_same_base(me, model, users):
    for base in (None, model):
        settings = WorkerSettings(me, (0.9, None, None), Limits(), users=users, base=base)
        again = WorkerSettings.of_json(settings.as_json().encode())
        assert again == settings._replace(cut_offs=list(settings.cut_offs))
    models = settings.models(print)
    with models.use("hal") as opened:
        assert str(opened.base.path) == str(model)
    models.close()
