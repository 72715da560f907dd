"""A served model that is read through a base."""

import pytest
from served_programs import HAM, SPAM

from nbspam.errors import ModelError
from nbspam.filter import open_filter
from nbspam.serving.models import Opening, Setup
from nbspam.serving.teaching import LearnRequest, apply_requests
from nbspam.store.lookup import Lookup
from nbspam.store.writing import DEFAULT_WAIT

OK = b"SPAMD/1.1 0 EX_OK\r\n"


def tell(path, base, message, is_spam):
    return apply_requests(path, [LearnRequest(message, is_spam)], DEFAULT_WAIT, base=base)


def log_odds(models, message):
    return models.use().filter.classify(message).log_odds


def opened(me, model, said):
    models = Setup(me, base=model)
    return models.common(Opening(models.cut_offs_of, said.append))


@pytest.fixture
def me(tmp_path):
    return tmp_path / "me.json"


@pytest.fixture
def said():
    return []


@pytest.fixture
def current(me, model, said):
    return opened(me, model, said)


def replace(path, content):
    beside = path.with_name("beside")
    beside.write_bytes(content)
    beside.replace(path)


def test_without_a_model_the_base_answers_and_then_both(me, model, current):
    with open_filter(model) as base:
        of_base = base.classify(SPAM).log_odds
    assert log_odds(current, SPAM) == of_base
    assert tell(me, model, SPAM, True) == ["learned"]
    of_both = log_odds(current, SPAM)
    assert of_both != of_base
    with open_filter(me, base=model) as both:
        assert both.classify(SPAM).log_odds == of_both
    me.unlink()
    assert log_odds(current, SPAM) == of_base


@pytest.mark.few(1)
@pytest.mark.parametrize("has_own", [True, False])
def test_files_that_break_leave_the_last_ones(me, model, current, said, has_own):
    if has_own:
        tell(me, model, HAM, False)
    before, whole = log_odds(current, SPAM), model.read_bytes()
    no_base = whole.replace(b'"scoring": "evidence"', b'"scoring": "sum"', 1)
    for n, broken in enumerate((b"no model", no_base), 1):
        replace(model, broken)
        assert log_odds(current, SPAM) == before
        assert (current.n_unusable, len(said)) == (1, n)
    assert "has the scoring sum, and a base must have evidence" in said[-1]
    replace(model, whole)
    assert log_odds(current, SPAM) == before
    assert (current.n_unusable, len(said)) == (0, 3)
    own = me.read_bytes() if has_own else whole
    replace(me, own.replace(b'"scoring": "evidence"', b'"scoring": "sum"', 1))
    assert log_odds(current, SPAM) == before
    assert (current.n_unusable, len(said)) == (1, 4)
    assert "has the scoring sum, and its base" in said[-1]
    me.unlink()
    assert current.n_unusable in (0, 1)
    log_odds(current, SPAM)
    assert current.n_unusable == 0


def test_a_large_message_is_judged_by_both(serving, me, model):
    """In a process of its own, which is handed the two open files."""
    tell(me, model, b"Subject: xyzzy\n\nxyzzy plugh\n" * 9, True)
    message = b"Subject: xyzzy\n\n" + b"xyzzy plugh\n" * 20_000
    with open_filter(me, base=model) as both:
        expected = f"probability {both.classify(message).probability:.4f}".encode()
    for own in (me, me.with_name("none.json")):
        with serving(own, base=model) as served:
            asked = b"REPORT SPAMC/1.5\r\nContent-length: %d\r\n\r\n" % len(message)
            reply = served.ask(asked + message)
            assert reply.startswith(OK)
            assert (expected in reply) == (own == me)
        assert served.said == []


def test_learn_move_and_forget(me, model):
    whole = model.read_bytes()
    assert tell(me, model, SPAM, None) == ["unchanged"]
    assert not me.exists()
    steps = [tell(me, model, SPAM, is_spam)[0] for is_spam in (True, True, False, None)]
    assert steps == ["learned", "unchanged", "moved", "forgotten"]
    with Lookup(me) as lookup:
        assert lookup.metadata.learned.messages == (0, 0)
        assert lookup.metadata.learned.recent == ()
    assert model.read_bytes() == whole


def test_an_unlike_model_is_refused(me, model):
    me.write_bytes(model.read_bytes().replace(b'"scoring": "evidence"', b'"scoring": "sum"', 1))
    with pytest.raises(ModelError, match="has the scoring sum, and its base"):
        opened(me, model, [])


def test_the_index_of_a_base_is_made_once_for_each_base(me, model, current, said):
    tell(me, model, SPAM, True)
    first = current.use().base
    tell(me, model, HAM, False)
    before = log_odds(current, SPAM)
    assert current.use().base is first
    tell(model, None, SPAM + b"quite another", True)
    assert log_odds(current, SPAM) != before
    assert current.use().base is not first
    assert said == []
