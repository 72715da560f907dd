"""The model in use: another as soon as the file is another, and never a worse one."""

import contextlib
import os
from pathlib import Path

import pytest
from served_programs import HAM, SPAM
from servers import put, told

import nbspam
from nbspam.errors import ModelError
from nbspam.reading.message import parse
from nbspam.serving.models import Models, ServerConfig
from nbspam.tokens.tokenized import tokenize

FDS = Path("/proc/self/fd")
linux = pytest.mark.skipif(not FDS.is_dir(), reason="needs /proc")
EVIDENCE, SUM = b'"scoring": "evidence"', b'"scoring": "sum"'


def opened(path, base=None):
    return Models(ServerConfig(path, base=base))


@pytest.fixture
def current(model):
    return opened(model)


def changed(raw, cut_off=b"0.75"):
    return raw.replace(b'"spam_cutoff": 0.9', b'"spam_cutoff": ' + cut_off)


def cut_off_of(current):
    return current.common.version.cut_offs.spam


def open_files(path):
    links = []
    for number in FDS.iterdir():
        with contextlib.suppress(OSError):
            links.append(str(number.readlink()))
    return sum(link.startswith(str(path.parent)) and "json" in link for link in links)


def test_a_replaced_file_is_used_at_once_and_opened_once(current, model, said, monkeypatch):
    assert cut_off_of(current) == 0.9
    put(model, changed(model.read_bytes()))
    assert cut_off_of(current) == 0.75
    monkeypatch.setattr("nbspam.scoring.version.Lookup", lambda *_: pytest.fail("opened"))
    assert [cut_off_of(current) for _ in range(3)] == [0.75] * 3
    assert said == []


@linux
def test_an_old_version_stays_open_as_long_as_it_is_used(current, model):
    old = current.common.version
    put(model, changed(model.read_bytes()))
    assert (old.cut_offs.spam, cut_off_of(current)) == (0.9, 0.75)
    assert open_files(model) == 2
    assert old.classifier.score({"claim", "free"}).log_odds > 0
    del old
    assert open_files(model) == 1
    cut_off_of(current)
    assert open_files(model) == 1


def bad_files(good):
    start, end = good.index(b'"tokens": {\n') + len(b'"tokens": {\n'), good.index(b'\n},"learned"')
    lines = good[start:end].split(b",\n")
    yield from (None, b"", b"{}", b"no model", good[: len(good) // 2])
    yield good.replace(b'"version": 1', b'"version": 99')
    yield good[:start] + b",\n".join(reversed(lines)) + good[end:]


def test_a_bad_file_changes_nothing_and_is_told_once(current, model, said):
    good = model.read_bytes()
    for bad in bad_files(good):
        put(model, bad)
        assert [cut_off_of(current) for _ in range(3)] == [0.9] * 3
        (line,) = said
        assert line.startswith(f"{model}: ")
        assert line.endswith("; the model that was open is still used")
        assert bad is not None or "model not found" in line
        assert current.n_unusable == 1
        put(model, changed(good))
        assert cut_off_of(current) == 0.75
        assert current.n_unusable == 0
        put(model, good)
        assert cut_off_of(current) == 0.9
        assert len(said) == 1
        said.clear()


def test_a_link_is_followed_to_another_file(model, tmp_path, said):
    other, link = tmp_path / "other.json", tmp_path / "link.json"
    other.write_bytes(changed(model.read_bytes()))
    link.symlink_to(model)
    found = opened(link)
    assert cut_off_of(found) == 0.9
    link.unlink()
    link.symlink_to(other)
    assert cut_off_of(found) == 0.75


@linux
def test_no_model_at_the_start_is_an_error(model, tmp_path, said):
    before = open_files(model)
    with pytest.raises(ModelError, match="model not found"):
        opened(tmp_path / "none.json")
    put(model, model.read_bytes().replace(b'"positive": "spam"', b'"positive": null'))
    with pytest.raises(ModelError):
        opened(model)
    assert open_files(model) == before
    nbspam.train([(c, f"{c} word {i}") for i in range(5) for c in "abc"]).save(model)
    with pytest.raises(ModelError, match=r"has no spam class, .*; name the spam class"):
        opened(model)


# Read through a base


def tell(path, base, message, is_spam):
    return told(path, (message, is_spam), base=base)


def log_odds(models, message):
    version = models.version_for("")
    return version.classify(tokenize(parse(message), outputs=version.outputs)).log_odds


@pytest.fixture
def me(tmp_path):
    return tmp_path / "me.json"


@pytest.fixture
def both(me, model):
    return opened(me, model)


def test_without_a_model_the_base_answers_and_then_both(me, model, both):
    with nbspam.open(model) as base:
        of_base = base.classify(SPAM).log_odds
    assert log_odds(both, SPAM) == of_base
    assert tell(me, model, SPAM, True) == ["learned"]
    of_both = log_odds(both, SPAM)
    assert of_both != of_base
    with nbspam.open(me, base=model) as read_through:
        assert read_through.classify(SPAM).log_odds == of_both
    me.unlink()
    assert log_odds(both, SPAM) == of_base


@pytest.mark.few(1)
@pytest.mark.parametrize("has_own", [True, False])
def test_files_that_break_leave_the_last_ones(me, model, both, said, has_own):
    if has_own:
        tell(me, model, HAM, False)
    before, whole = log_odds(both, SPAM), model.read_bytes()
    for n, broken in enumerate((b"no model", whole.replace(EVIDENCE, SUM, 1)), 1):
        put(model, broken)
        assert log_odds(both, SPAM) == before
        assert (both.n_unusable, len(said)) == (1, n)
    assert "has the scoring sum, and a base must have evidence" in said[-1]
    put(model, whole)
    assert log_odds(both, SPAM) == before
    assert (both.n_unusable, len(said)) == (0, 2)
    put(me, (me.read_bytes() if has_own else whole).replace(EVIDENCE, SUM, 1))
    assert log_odds(both, SPAM) == before
    assert (both.n_unusable, len(said)) == (1, 3)
    assert "has the scoring sum, and its base" in said[-1]
    me.unlink()
    assert both.n_unusable in (0, 1)
    log_odds(both, SPAM)
    assert both.n_unusable == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_whose_mode_is_mended_is_used(current, model):
    put(model, changed(model.read_bytes()))
    model.chmod(0)
    assert (cut_off_of(current), current.n_unusable) == (0.9, 1)
    model.chmod(0o600)
    assert (cut_off_of(current), current.n_unusable) == (0.75, 0)
