import gc
import io
import json
import os
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from one_case import each
from small_models import assert_one_sentence, big, labelled_tokens, learn, refused

from nbspam.errors import ModelError
from nbspam.learning.settings import TrainingSettings, empty_metadata
from nbspam.store import lookup as lookup_module
from nbspam.store.lookup import LINE_LIMIT, Lookup, Model, read_model
from nbspam.store.model_file import splice, write_lines, write_model


@pytest.fixture(scope="module")
def large():
    return big(15_000)


@pytest.fixture(scope="module")
def large_file(large, tmp_path_factory):
    return large.save(tmp_path_factory.mktemp("large") / "model.json")


@pytest.fixture
def model(tmp_path):
    return learn().save(tmp_path / "model.json")


def looked_up(path, tokens):
    with Lookup(path) as lookup:
        return lookup.counts(tokens)


UNKNOWN = ["", " ", "\0", "zzzzzzzzzz", "~", "\U0010ffff", '"', "\\", "nothing", "x" * 5_000]


# What it finds


def test_finds_every_token_and_no_other(tmp_path):
    for n_tokens in (0, 1, 2, 3, 10, 300, 301, 1_000):
        learned = big(n_tokens) if n_tokens else learn([("ham", set()), ("spam", set())])
        path = learned.save(tmp_path / f"{n_tokens}.json")
        unknown = [token for token in UNKNOWN if token not in learned.counts]
        assert learned.counts == looked_up(path, [*learned.counts, *unknown])
        assert looked_up(path, unknown) == {}
        assert looked_up(path, []) == {}


def test_finds_tokens_of_a_large_model_together_and_one_by_one_and_no_others(large, large_file):
    assert large.counts == looked_up(large_file, large.counts)
    tokens, chance = sorted(large.counts), random.Random(5)
    some = [*tokens[:20], *tokens[-20:], *chance.sample(tokens, 300)]
    near = [token + "!" for token in some] + [token[:-1] + "\x7f" for token in some]
    unknown = [token for token in [*near, *UNKNOWN] if token not in large.counts]
    wanted = chance.sample([*some, *unknown], len(some) + len(unknown))
    with Lookup(large_file) as lookup:
        assert {token: large.counts[token] for token in some} == lookup.counts(wanted)
        for token in some:
            assert {token: large.counts[token]} == lookup.counts([token])


@given(
    labelled_tokens(tokens=st.text(min_size=1, max_size=20)),
    st.lists(st.text(max_size=5)),
    st.sampled_from([8, 20, 64, 8192]),
)
def test_finds_tokens_of_any_characters(tmp_path_factory, messages, more, block):
    learned = learn(messages)
    path = learned.save(tmp_path_factory.getbasetemp() / "any.json")
    unknown = set(more) - learned.counts.keys()
    # A small block makes a small model as much work as a large one.
    with blocks_of(block):
        assert learned.counts == looked_up(path, [*learned.counts, *unknown])
        for token in learned.counts:
            assert {token: learned.counts[token]} == looked_up(path, [token])


def test_finds_tokens_that_json_writes_otherwise(tmp_path):
    odd = ['"', "\\", '\\"', "\n", "\r\n", "\t", "\0", "\x1f", "\x7f", "\u2028", '": [1, 1]']
    for token in [*odd, *"é한😀"]:
        learned = learn([("ham", {token}), ("spam", {token, token * 2, "a"})])
        path = learned.save(tmp_path / "model.json")
        expected = {token: (1, 1), token * 2: (0, 1), "a": (0, 1)}
        assert expected == looked_up(path, [token, token * 2, "a"])


def test_finds_long_tokens_among_short_ones(tmp_path):
    for seed in range(6):
        chance = random.Random(seed)
        lengths = chance.choices([1, 2, 5, 500, 2_000, 4_000], k=60)
        tokens = {"a", *("".join(chance.choices("abc", k=length)) for length in lengths)}
        learned = learn([("ham", tokens), ("spam", {"a"})])
        path = learned.save(tmp_path / "model.json")
        assert learned.counts == looked_up(path, tokens), seed
        for token in tokens:
            assert {token: learned.counts[token]} == looked_up(path, [token, token + "b" * 300])


def counts_or_refused(path, learned, tokens):
    """Look tokens up one by one: each is found, unless the file is refused in one sentence."""
    for token in tokens:
        try:
            found = looked_up(path, [token])
        except ModelError as error:
            assert_one_sentence(error, path)
        else:
            yield token, found, {token: learned.counts[token]} if token in learned.counts else {}


def test_tokens_beyond_the_limit_never_give_a_wrong_count(tmp_path):
    for length in (8_100, 8_192, 9_000, 50_000):
        long = {letter * length for letter in "bdfh"}
        learned = learn([("ham", long | {*"acegi", *map(str, range(3_000))}), ("spam", {"a"})])
        path = learned.save(tmp_path / "model.json")
        for token, found, expected in counts_or_refused(path, learned, [*"abcdefghi", *long]):
            assert found == expected, token


# Of many messages


@given(
    st.lists(st.lists(st.text(max_size=12), max_size=30), max_size=6), st.sampled_from([0, 1 << 26])
)
def test_what_was_looked_up_before_makes_no_difference(large, large_file, asked, in_memory):
    known = sorted(large.counts)
    with Lookup(large_file) as lookup, Lookup(large_file) as prepared:
        prepared.prepare(in_memory)
        for i, tokens in enumerate(asked):
            tokens = [*tokens, *known[i :: 1 + 500 * (i + 1)]]
            expected = {token: large.counts[token] for token in tokens if token in large.counts}
            assert lookup.counts(tokens) == prepared.counts(tokens) == expected


def test_the_next_message_takes_fewer_reads_and_the_places_remembered_are_bounded(
    large, large_file, monkeypatch
):
    tokens = random.Random(1).sample(sorted(large.counts), 100)
    reads = Reads(monkeypatch)
    with Lookup(large_file) as lookup:
        taken = []
        for _ in range(9):
            reads.calls = 0
            assert len(lookup.counts(tokens)) == 100
            taken.append(reads.calls)
        assert taken[-1] <= 100 < 150 < taken[0]
    monkeypatch.setattr(lookup_module, "MAX_ANCHORS", 100)
    with Lookup(large_file) as lookup:
        for _ in range(3):
            assert lookup.counts(large.counts) == large.counts
        reads.bytes = 0
        assert len(lookup.counts(tokens[:1])) == 1
        assert reads.bytes >= large_file.stat().st_size // 200  # no finer places are cached


def test_threads_share_what_is_known_of_a_file(large, large_file):
    known = sorted(large.counts)
    parts = [known[i::50] for i in range(50)]
    with Lookup(large_file) as lookup, ThreadPoolExecutor(4) as threads:
        for part, found in zip(parts, threads.map(lookup.counts, parts), strict=True):
            assert found == {token: large.counts[token] for token in part}


def test_a_file_in_memory_may_be_overwritten_where_it_is(tmp_path):
    learned = learn()
    path = learned.save(tmp_path / "model.json")
    with Lookup(path) as lookup:
        lookup.prepare(path.stat().st_size)
        path.write_bytes(b"none")
        assert lookup.counts(learned.counts) == learned.counts


@each("in_memory", [0, 1 << 26])
def test_two_lines_exchanged_and_a_line_that_is_too_long(large_file, tmp_path, in_memory):
    start, lines, end = lines_of(large_file)
    half = len(lines) // 2  # which is looked at
    for part, said in (
        (lines[::-1], "not in order"),
        *(([b'"' + b"\1" * n + b'": [1, 1]', *lines], "") for n in (LINE_LIMIT * 3, 1 << 21)),
        ([*lines[:half], b'"' + b"\1" * LINE_LIMIT * 9 + b'": [1, 1]', *lines[half:]], "too long"),
    ):
        path = tmp_path / "model.json"
        path.write_bytes(start + b",\n".join(part) + end)
        with Lookup(path) as lookup, refused(path, said):
            lookup.prepare(in_memory)


# How much it reads


class Reads:
    def __init__(self, monkeypatch):
        self.calls = self.bytes = 0
        real = os.pread

        def counted(handle, length, position):
            found = real(handle, length, position)
            self.calls += 1
            self.bytes += len(found)
            return found

        monkeypatch.setattr(os, "pread", counted)


def test_few_reads_find_the_tokens_of_a_large_model(large, large_file, monkeypatch):
    size = large_file.stat().st_size
    assert size > 300_000
    token = sorted(large.counts)[9_999]
    tokens = random.Random(1).sample(sorted(large.counts), 100)
    reads = Reads(monkeypatch)
    with Lookup(large_file) as lookup:
        assert reads.calls <= 4  # the metadata alone
        assert reads.bytes <= 1 << 17
        reads.calls = reads.bytes = 0
        assert {token: large.counts[token]} == lookup.counts([token])
        assert reads.calls <= 20
        assert reads.bytes <= 20_000
        reads.calls = reads.bytes = 0
        assert len(lookup.counts(tokens)) == 100  # those of a mail share their reads
        assert reads.calls <= 100 * 4
        assert reads.bytes <= size


# Files that change, and files that are no model


def test_a_large_model_cut_short_is_refused(large_file, tmp_path):
    whole = large_file.read_bytes()
    path = tmp_path / "model.json"
    for length in random.Random(2).sample(range(len(whole)), 30):
        path.write_bytes(whole[:length])
        with refused(path):
            Lookup(path)


def test_a_model_replaced_while_open_is_read_to_its_end(large, large_file, tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(large_file.read_bytes())
    tokens = random.Random(3).sample(sorted(large.counts), 50)
    with Lookup(path) as lookup:
        learn().save(path)
        assert {token: large.counts[token] for token in tokens} == lookup.counts(tokens)
    assert looked_up(path, ["free"]) == {"free": (1, 1)}


def test_a_model_truncated_while_open_is_an_error(large, large_file, tmp_path):
    path = tmp_path / "model.json"
    for part in (0, 0.1, 0.5, 0.9):
        path.write_bytes(large_file.read_bytes())
        with Lookup(path) as lookup:
            os.truncate(path, int(path.stat().st_size * part))
            with pytest.raises(ModelError) as error:
                lookup.counts(large.counts)
        assert_one_sentence(error, path, "shrank")


def lines_of(path):
    """Return a model file's beginning, the lines of its tokens without commas, and its end."""
    start, mark, rest = path.read_bytes().partition(b'"tokens": {\n')
    tokens, end_mark, end = rest.rpartition(b'\n},"learned"')
    return start + mark, tokens.split(b",\n"), end_mark + end


def test_tokens_in_the_wrong_order_are_refused_or_give_no_wrong_count(tmp_path):
    learned = big(2_000, seed=9)
    path = learned.save(tmp_path / "model.json")
    start, lines, end = lines_of(path)
    path.write_bytes(start + b",\n".join(lines[::-1]) + end)
    with refused(path, "order"):
        looked_up(path, random.Random(4).sample(sorted(learned.counts), 200))
    random.Random(9).shuffle(lines)
    path.write_bytes(start + b",\n".join(lines) + end)
    for token, found, right in counts_or_refused(path, learned, sorted(learned.counts)[::40]):
        assert found in ({}, right), token


BAD_LINES = [
    *("[9, 1]", "[-1, 1]", "[1.0, 1]", "[NaN, 1]", "[1]", "[1, 1, 1]", "[]", '["1", 1]'),
    *("[" + "9" * 5_000 + ", 1]", "[1, 1", "[1,1]", "[1, 1] 7", "[0, 0]", "[00, 1]", "[1, 01]"),
]


def test_a_damaged_line_that_is_read_is_refused(model):
    whole = model.read_text()
    for counts in BAD_LINES:
        model.write_text(whole.replace('"free": [1, 1]', f'"free": {counts}'))
        for read in (lambda path: looked_up(path, ["free"]), read_model):
            with refused(model, "damaged"):
                read(model)


def test_the_tokens_of_a_kind_are_found_and_a_key_that_is_none_is_refused(tmp_path):
    learned = learn([("ham", {"by:a", "by:b", 'by:"', "a"}), ("spam", {"by:a", "z", "by", "by;"})])
    path = learned.save(tmp_path / "model.json")
    with Lookup(path) as lookup:
        found = list(lookup.iter_prefix("by:"))
        assert found == [('by:"', (1, 0)), ("by:a", (1, 1)), ("by:b", (1, 0))]
        assert list(lookup.iter_prefix("no:")) == []
    path.write_text(path.read_text().replace('"by:b"', r'"by:\x"'))
    with Lookup(path) as lookup, refused(path, "is not as nbspam writes it"):
        list(lookup.iter_prefix("by:"))


def test_a_model_laid_out_by_another_program_is_refused(model):
    whole = json.loads(model.read_text())
    packed = {"separators": (",", ":")}
    for options in ({}, {"indent": 2}, {"indent": "\t"}, packed, {"sort_keys": True}):
        model.write_text(json.dumps(whole, **options))
        with refused(model):
            looked_up(model, ["free"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_model_without_permission_names_its_mode(model):
    model.chmod(0)
    with refused(model, "has mode 0000"):
        Lookup(model)


def test_a_disk_that_fails_is_an_error(model, monkeypatch):
    def fail(*_):
        raise OSError(5, "Input/output error")

    with Lookup(model) as lookup:
        monkeypatch.setattr(os, "pread", fail)
        with pytest.raises(ModelError) as error:
            lookup.counts(["free"])
    assert_one_sentence(error, model, "Input/output error")


def open_files():
    gc.collect()  # closes what earlier tests left to the collector
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="Linux alone lists open files")
def test_closing_gives_the_file_back(model):
    before = open_files()
    for _ in range(5):
        looked_up(model, ["free"])
    model.write_bytes(b"not a model")
    for _ in range(5):
        with pytest.raises(ModelError):
            Lookup(model)
    assert before == open_files()


# The ledger


def with_ledger(path, n, tokens=3):
    """Return the ledger of a model of so many messages and tokens, which is written."""
    chance = random.Random(n)
    learned = {f"{chance.getrandbits(128):032x}": (i % 3, 1 + i % 2) for i in range(n)}
    counts = {f"token{i}": (1, 2) for i in range(tokens)}
    metadata = empty_metadata(("ham", "spam"), "spam", TrainingSettings())
    histograms = ({1: tokens}, {2: tokens})
    state = metadata.learned._replace(messages=(2 * n, 2 * n), count_histograms=histograms)
    metadata = metadata._replace(learned=state)
    write_model(path, Model(metadata, counts, learned))
    return learned


def test_finds_every_message_of_the_ledger_and_no_other(tmp_path):
    path = tmp_path / "model.json"
    pairs = [*product([1, 2, 3, 10], [0, 1, 3]), (1, 2_000), (2_000, 0), (2_000, 2_000)]
    for n, tokens in pairs:
        learned = with_ledger(path, n, tokens)
        unknown = ["0" * 32, "f" * 32, "", "token1", '"', *(digest[:-1] for digest in learned)]
        with Lookup(path) as lookup:
            assert learned == lookup.ledger_rows([*learned, *unknown]), (n, tokens)
            raw = path.read_bytes()
            parts = [raw[start:end].splitlines() for start, end in lookup.sections]
            assert [[line[:1] for line in part] for part in parts] == [[b'"'] * tokens, [b" "] * n]
            for digest in sorted(learned)[:20]:
                assert {digest: learned[digest]} == lookup.ledger_rows([digest])
            assert lookup.ledger_rows(unknown) == {}
            assert lookup.ledger_rows([]) == {}
            assert lookup.counts([*learned, '"', " "]) == {}


def test_one_message_of_a_large_ledger_takes_few_reads(tmp_path, monkeypatch):
    path = tmp_path / "model.json"
    learned = with_ledger(path, 20_000, tokens=20_000)
    with Lookup(path) as lookup:
        reads = Reads(monkeypatch)
        some = sorted(learned)[7_000]
        assert lookup.ledger_rows([some]) == {some: learned[some]}
    assert reads.calls <= 20
    assert reads.bytes <= 20_000


def test_a_damaged_line_of_the_ledger_that_is_read_is_refused(tmp_path):
    path = tmp_path / "model.json"
    ((digest, counts),) = with_ledger(path, 1).items()
    text, whole = path.read_text(), f' "{digest}": {json.dumps(counts)}'
    for row in ("x", "[1]", "[9, 1]", "[1, 2, 3]", "[-1, 1]", "[1.0, 1]"):
        path.write_text(text.replace(whole, f' "{digest}": {row}'))
        with Lookup(path) as lookup:
            with refused(path, "damaged"):
                splice(io.BytesIO(), lookup, lookup.metadata, {}, {digest: (1, 0)})
            if row.startswith("["):
                with refused(path, "damaged"):
                    lookup.ledger_rows([digest])
            else:  # no line of this digest; nor is it taken for another
                assert lookup.ledger_rows([digest]) == {}


# splice


MOST = 99
EMPTY = empty_metadata(("ham", "spam"), "spam", TrainingSettings())
METADATA = EMPTY._replace(learned=EMPTY.learned._replace(messages=(MOST, MOST)))
# Few and close together, so that a change often meets a line that is there; some of the keys stand
# at the very ends, or are written with escapes.
TOKENS = st.sampled_from(
    ["", " ", "!", '"', "\\", "\n", "\x7f", "a", "a!", 'a"', "é", "\U0010ffff"]
)
ROWS = st.tuples(st.integers(0, MOST), st.integers(0, MOST))
TRUE_ROWS = ROWS.filter(any)
DIGESTS = st.sampled_from(["0" * 32, "f" * 32, "8" * 32]) | st.integers(0, 2**128 - 1).map(
    "{:032x}".format
)
COUNTS = st.dictionaries(TOKENS | st.text(max_size=4), TRUE_ROWS, max_size=30)
LEDGERS = st.dictionaries(DIGESTS, TRUE_ROWS, max_size=30)


def whole(counts, learned, metadata=METADATA) -> bytes:
    file = io.BytesIO()
    rows = ({name: row for name, row in some.items() if any(row)} for some in (counts, learned))
    write_lines(file, Model(metadata, *rows))
    return file.getvalue()


def spliced(path, counts, learned, metadata=METADATA) -> bytes:
    file = io.BytesIO()
    with Lookup(path) as old:
        splice(file, old, metadata, counts, learned)
    return file.getvalue()


@contextmanager
def blocks_of(size):
    """Make a small model as much work as a large one."""
    with mock.patch.multiple(
        lookup_module,
        BLOCK=size,
        MIN_BLOCK=size,
        PROBE=max(4, size // 4),
        COPY_CHUNK=max(64, size // 3),
    ):
        yield


@st.composite
def changes(draw, rows, keys):
    """Draw rows and what is to become of them: some are removed, some changed, some new."""
    old = draw(rows)
    known = st.sampled_from(sorted(old)) if old else keys
    new = draw(st.dictionaries(keys | known, ROWS, max_size=30))
    return old, new


@given(
    changes(COUNTS, TOKENS | st.text(max_size=4)),
    changes(LEDGERS, DIGESTS),
    st.sampled_from([8, 20, 64, 8192]),
)
@example(({}, {}), ({}, {}), 8)
@example(({"a": (1, 0)}, {"a": (0, 0)}), ({"0" * 32: (1, 0)}, {"0" * 32: (0, 0)}), 8)
def test_a_spliced_file_is_the_one_written_anew(tmp_path_factory, tokens, digests, block):
    (counts, new_counts), (learned, new_learned) = tokens, digests
    path = tmp_path_factory.getbasetemp() / "old.json"
    path.write_bytes(whole(counts, learned))
    with blocks_of(block):
        found = spliced(path, new_counts, new_learned)
    assert whole(counts | new_counts, learned | new_learned) == found


FEW = {"b": (1, 0), "d": (0, 2), "f": (3, 3)}
MARKED = {"2" * 32: (1, 0), "4" * 32: (0, 1), "6" * 32: (2, 0)}


GONE = dict.fromkeys("bdf", (0, 0))
CHANGES = [
    *({}, {"a": (1, 1)}, {"g": (1, 1)}, {"c": (1, 1)}, {"b": (0, 0)}, {"f": (0, 0)}),
    *({"d": (0, 0)}, {"b": (9, 9), "f": (9, 9)}, GONE, GONE | {"e": (1, 0)}),
    *({"f": (0, 0), "g": (1, 0)}, {"a": (1, 0), "b": (0, 0)}, {"z": (0, 0)}),
]
DIGEST_CHANGES = [{}, {"1" * 32: (1, 0), "9" * 32: (1, 0)}, dict.fromkeys(MARKED, (0, 0))]


@each(
    "counts, change, learned, digests, block",
    product([{}, FEW], CHANGES, [{}, MARKED], DIGEST_CHANGES, [8, 8192]),
)
def test_lines_at_the_ends_come_and_go(tmp_path, counts, change, learned, digests, block):
    path = tmp_path / "model.json"
    path.write_bytes(whole(counts, learned))
    with blocks_of(block):
        found = spliced(path, change, digests)
    assert whole(counts | change, learned | digests) == found


def test_the_metadata_is_the_new_one(tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(whole(FEW, MARKED))
    metadata = METADATA._replace(
        settings=METADATA.settings._replace(spam_cutoff=0.75),
        learned=METADATA.learned._replace(messages=(MOST + 1, MOST + 123456789)),
    )
    found = spliced(path, {}, {}, metadata)
    assert whole(FEW, MARKED, metadata) == found
    path.write_bytes(found)
    assert read_model(path).metadata.learned.messages == (MOST + 1, MOST + 123456789)


def test_what_does_not_change_is_not_read_line_by_line(tmp_path, monkeypatch):
    counts = {f"token{i:06}": (1, 2) for i in range(20_000)}
    path = tmp_path / "model.json"
    path.write_bytes(whole(counts, {}))
    looked_at = []
    row = Lookup.row
    monkeypatch.setattr(Lookup, "row", lambda self, line: looked_at.append(line) or row(self, line))
    change = {"token010000": (3, 4), "token010000!": (1, 0)}
    assert whole(counts | change, {}) == spliced(path, change, {})
    assert len(looked_at) < 100


@each(
    "damage, token",
    product(
        [b": [x, 2]", b": [1]", b": [1, 200]", b"", b": [1, 2]]"],
        ["token000499", "token000500", "token000501"],
    ),
)
def test_a_damaged_line_beside_a_changed_one_is_refused(tmp_path, damage, token):
    counts = {f"token{i:06}": (1, 2) for i in range(1_000)}
    path = tmp_path / "model.json"
    line = f'"{token}": [1, 2]'.encode()
    path.write_bytes(whole(counts, {}).replace(line, f'"{token}"'.encode() + damage))
    with pytest.raises(ModelError, match="damaged"):
        spliced(path, {"token000500": (3, 4), "token000500!": (1, 0)}, {})


def test_a_token_in_the_wrong_place_is_not_written_a_second_time(tmp_path):
    path = tmp_path / "model.json"
    lines = whole({f"token{i}": (1, 2) for i in range(8)}, {}).splitlines(keepends=True)
    first = next(i for i, line in enumerate(lines) if line.startswith(b'"token0"'))
    lines[first], lines[first + 4] = lines[first + 4], lines[first]
    path.write_bytes(b"".join(lines))
    with pytest.raises(ModelError, match="not in order"):
        spliced(path, {"token0": (3, 4)}, {})


def test_a_border_that_is_none_is_refused(tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(whole(FEW, MARKED).replace(b'},"learned": {\n', b'}, "learned": {\n'))
    with pytest.raises(ModelError, match="ledger"):
        spliced(path, {"a": (1, 0)}, {})


def test_a_model_that_shrinks_while_it_is_copied_is_refused(tmp_path):
    path = tmp_path / "model.json"
    path.write_bytes(whole({f"token{i:06}": (1, 2) for i in range(5_000)}, {}))
    with Lookup(path) as old:
        os.truncate(path, path.stat().st_size // 2)
        with pytest.raises(ModelError, match="shrank"):
            splice(io.BytesIO(), old, METADATA, {"a": (1, 0)}, {})
