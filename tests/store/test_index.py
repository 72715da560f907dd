import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_models import assert_one_sentence, big, learn

from nbspam.errors import ModelError
from nbspam.store import index as index_module
from nbspam.store.index import Index
from nbspam.store.lookup import LINE_LIMIT, Lookup
from nbspam.store.model_file import token_key


@pytest.fixture(scope="module")
def large():
    return big(5_000)


@pytest.fixture(scope="module")
def large_file(large, tmp_path_factory):
    return large.save(tmp_path_factory.mktemp("large") / "model.json")


@pytest.fixture(params=[64, 1 << 10, 1 << 24], ids=["fine", "as it is", "one entry"])
def stride(request, monkeypatch):
    monkeypatch.setattr(index_module, "_STRIDE", request.param)
    monkeypatch.setattr(index_module, "_ENTRIES", 1 << 20)


@pytest.fixture(params=[0, 1 << 26], ids=["in the file", "in memory"])
def place(request, monkeypatch):
    monkeypatch.setattr(index_module, "_IN_MEMORY", request.param)


UNKNOWN = ["", " ", "\0", "zzzzzzzzzz", "~", "\U0010ffff", '"', "\\", "nothing", "x" * 5_000]


def test_it_finds_every_token_and_no_other(large, large_file, stride, place):
    with Index(large_file) as index:
        assert index.counts(large.counts) == large.counts
        unknown = [token for token in UNKNOWN if token not in large.counts]
        assert index.counts(unknown) == {}
        assert index.counts([]) == {}


@pytest.mark.parametrize("chunk", [2 * LINE_LIMIT + 100, 1 << 20])
def test_how_the_file_is_read_makes_no_difference(large, large_file, place, monkeypatch, chunk):
    monkeypatch.setattr(index_module, "_CHUNK", chunk)
    with Index(large_file) as index:
        assert index.counts(large.counts) == large.counts


def test_a_model_of_any_size_has_a_bounded_index(large, large_file, monkeypatch):
    monkeypatch.setattr(index_module, "_ENTRIES", 10)
    with Index(large_file) as index:
        assert 5 <= len(index._keys) <= 10
        assert index.counts(large.counts) == large.counts


@given(st.lists(st.text(max_size=12), max_size=30))
@settings(max_examples=100)
def test_it_is_the_same_as_the_search_in_place(large_file, tokens):
    with Index(large_file) as index, Lookup(large_file) as lookup:
        assert index.head == lookup.head
        assert index.counts(tokens) == lookup.counts(tokens)


@given(tokens=st.sets(st.text(max_size=8), max_size=12), probe=st.lists(st.text(max_size=8)))
@settings(max_examples=60)
def test_small_models_too(tmp_path_factory, tokens, probe):
    learned = learn([("ham", tokens), ("spam", {"free"})])
    path = learned.save(tmp_path_factory.mktemp("small") / "model.json")
    with Index(path) as index:
        assert index.counts([*tokens, *probe, "free"]) == {
            token: row
            for token, row in learned.counts.items()
            if token in {*tokens, *probe, "free"}
        }


def test_two_lines_exchanged(large_file, tmp_path, monkeypatch, place):
    monkeypatch.setattr(index_module, "_STRIDE", 1)
    raw = large_file.read_bytes()
    start = raw.index(b'"tokens": {\n') + len(b'"tokens": {\n')
    lines = raw[start:].split(b"\n")
    lines[100], lines[200] = lines[200], lines[100]
    path = tmp_path / "model.json"
    path.write_bytes(raw[:start] + b"\n".join(lines))
    with pytest.raises(ModelError) as error:
        Index(path)
    assert_one_sentence(error, path, "not in order")


@pytest.mark.parametrize("length", [LINE_LIMIT * 3, 1 << 21])
def test_a_line_that_is_too_long(large_file, tmp_path, place, length):
    raw = large_file.read_bytes()
    start = raw.index(b'"tokens": {\n') + len(b'"tokens": {\n')
    path = tmp_path / "model.json"
    path.write_bytes(raw[:start] + b'"' + b"\x01" * length + b'": [1, 1],\n' + raw[start:])
    with pytest.raises(ModelError) as error:
        Index(path)
    assert_one_sentence(error, path)


def test_a_line_that_is_no_token(large, large_file, tmp_path, place):
    token = sorted(large.counts)[1234]
    raw = large_file.read_bytes()
    line = raw.index(b"\n" + token_key(token).encode() + b": [") + 1
    at = raw.index(b": [", line)
    path = tmp_path / "model.json"
    path.write_bytes(raw[:at] + b": [-1" + raw[at + 3 :])
    with Index(path) as index, pytest.raises(ModelError) as error:
        index.counts([token])
    assert_one_sentence(error, path, "is not a token and its counts")
