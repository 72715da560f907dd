"""Every kind of damage that a derived number or the layout shows, and no more."""

import json
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from small_models import ALPHAS, PRIORS, SCORINGS, big, labelled_tokens, learn
from whole_models import THREE, TWO, numbered, taught

from nbspam.bayes.calibration import calibration_specs
from nbspam.errors import ModelError
from nbspam.learning.pruning import set_cut_offs
from nbspam.scoring.verdict import CutOffs
from nbspam.store.lookup import TOKENS_LINE, Model, find_inconsistencies
from nbspam.store.metadata import histograms_of, with_counts
from nbspam.store.model_file import write_lines

MESSAGES = [
    (("ham", "spam")[i % 2], {f"w{i % 5}", f'"{i}"', "both", "é", f"by:mx{i % 3 // 2}"}, i)
    for i in range(1, 11)
]
HOSTS = ("by:-", "by:mx.example", "by:10.0.0.1")


@pytest.fixture
def path(tmp_path):
    return save(tmp_path / "model.json", taught(MESSAGES))


def save(path, model: Model):
    with path.open("wb") as file:
        write_lines(file, model)
    return path


def change(path, *pairs):
    raw = path.read_bytes()
    for old, new in pairs:
        assert raw.count(old) == 1, old
        raw = raw.replace(old, new)
    path.write_bytes(raw)
    return path


def wrong_with(path):
    return "; ".join(find_inconsistencies(path)[1])


@given(
    labelled_tokens(tokens=st.sampled_from([*"abcdef", *HOSTS])),
    ALPHAS,
    PRIORS,
    st.sampled_from(SCORINGS),
)
def test_what_training_derives_is_derived_from_the_counts(messages, alpha, prior, scoring):
    learned = learn(messages, alpha=alpha, prior=prior, scoring=scoring)
    metadata = learned.fit.metadata
    found = with_counts(metadata, learned.counts)
    assert metadata == found
    assert pytest.approx(metadata.bias, rel=1e-9, abs=1e-9) == found.bias


@given(st.lists(st.tuples(st.sampled_from(TWO), st.sampled_from(HOSTS)), max_size=20))
def test_the_counts_of_hosts_are_those_of_the_tokens_that_name_one(mails):
    model = taught([(label, {"a", host}, i) for i, (label, host) in enumerate(mails)])
    expected = Counter(
        tuple(sum(mail == (name, host) for mail in mails) for name in TWO)
        for host in {host for _, host in mails}
    )
    assert model.metadata.learned.host_rows == expected
    assert with_counts(model.metadata, model.counts).learned.host_rows == expected


def test_no_tokens_have_no_counts():
    assert histograms_of([], 3) == ({}, {}, {})


@given(st.sampled_from([TWO, THREE]).flatmap(lambda c: st.tuples(st.just(c), numbered(c))))
def test_a_whole_model_has_nothing_wrong(tmp_path_factory, drawn):
    classes, messages = drawn
    messages = [(label, {*tokens, HOSTS[n % 3]}, n) for label, tokens, n in messages]
    model = taught(messages, classes)
    found, wrong = find_inconsistencies(save(tmp_path_factory.getbasetemp() / "whole.json", model))
    assert (found, wrong) == (model, [])


def test_a_large_model_has_nothing_wrong(tmp_path):
    assert wrong_with(big(3000).save(tmp_path / "big.json")) == ""


def derived(path):
    return json.loads(path.read_bytes())["derived"]


DIGEST = f"{1:032x}".encode()
HISTOGRAMS, HOST_ROWS = b'[{"0": 5, "1": 10, ', b"[[2, 1, 1], [3, 4, 1]]"
WRONG_HOSTS = "its counts of hosts are not those of its tokens"
# (what is changed, into what, what is said, what is not said)
DAMAGES = [
    (HISTOGRAMS, b'[{"0": 6, "1": 9, ', "count histograms", "bias"),
    *(
        (HOST_ROWS, rows, WRONG_HOSTS, "; ")
        for rows in (
            *(b"[]", b"[[2, 1, 1], [3, 4, 2]]", b"[[2, 1, 1], [3, 3, 1]]"),
            *(b"[[1, 2, 1], [4, 3, 1]]", b"[[5, 5, 1]]"),
        )
    ),
    (b'"by:mx1": [', b'"by;mx1": [', "counts of hosts", "count histograms"),  # no more a host
    (b'"w2": [1, 1]', b'"w2": [1, 2]', "count histograms", "\n"),
    (b'"w2": [1, 1]', b'"w2": [1, 2]', "bias", "\n"),
    (b'"w2": [1, 1],\n', b"", "tokens and has", "\n"),
    (
        *(b'"%s": [0, 1]' % DIGEST, b'"%s": [0, 2]' % DIGEST),
        *("its ledger has 6 messages of spam and it learned 5", "; "),
    ),
]


@each("old, new, said, not_said", DAMAGES)
def test_what_disagrees_is_named(path, old, new, said, not_said):
    whole = path.read_bytes()
    found = wrong_with(change(path, (old, new)))
    with pytest.raises(ModelError, match=re.escape(f"{path}: {found}; restore it")):
        set_cut_offs(path, CutOffs.from_model)
    path.write_bytes(whole)
    assert said in found
    assert not_said not in found


def test_a_model_is_checked_before_it_changes_unless_nobody_else_has_changed_it(path, monkeypatch):
    checked = []
    monkeypatch.setattr("nbspam.store.lookup.checked_model", checked.append)
    for others, times in (
        (lambda: None, 1),  # that it was written here is not known
        (lambda: None, 0),
        (lambda: path.write_bytes(path.read_bytes()), 1),
        (lambda: path.with_name("copy").write_bytes(path.read_bytes()), 0),
        (lambda: path.with_name("copy").rename(path), 1),
        (lambda: path.with_name(f".{path.name}.lock").unlink(), 1),
    ):
        others()
        checked.clear()
        for _ in range(2):
            set_cut_offs(path, CutOffs.from_model)
        assert checked == times * [path]


def test_the_number_of_tokens(path):
    n = len(json.loads(path.read_bytes())["tokens"])
    change(path, (b'"tokens": %d,' % n, b'"tokens": %d,' % (n + 1)))
    assert f"states {n + 1} tokens and has {n}" in wrong_with(path)


def test_the_bias_and_that_its_last_digit_is_no_damage(path):
    bias = derived(path)["bias"]
    near, other = [b + 1e-6 for b in bias], [bias[0], bias[1] + 3e-6]
    change(path, (json.dumps(bias).encode(), json.dumps(near).encode()))
    assert wrong_with(path) == ""
    change(path, (json.dumps(near).encode(), json.dumps(other).encode()))
    assert wrong_with(path) == "its bias does not follow from its counts"


def test_less_in_the_ledger_than_was_learned_is_no_damage(path):
    assert wrong_with(change(path, (b' "%s": [0, 1],\n' % DIGEST, b""))) == ""


W2, LEARNED = b'"w2": [1, 1]', b'},"learned": {\n'


@each(
    "old, new",
    [
        *((W2, new) for new in (b'"w2":[1, 1]', b'"w2": [1,1]', b'"\\u0077\\u0032": [1, 1]')),
        *((W2 + b",\n", W2 + end) for end in (b", ", b",\n\n", b",\r\n", b" ,\n", b", \n")),
        ('"é"'.encode(), b'"\\u00e9"'),
        (W2, b"\t" + W2),
        *((LEARNED, new) for new in (b'}, "learned": {\n', b'},\n"learned": {\n')),
        *((b' "%s": ' % DIGEST, new % DIGEST) for new in (b'"%s": ', b'  "%s": ')),
        *((b"]\n}}\n", new) for new in (b"]}}\n", b"]\n\n}}\n")),
    ],
)
def test_lines_that_are_json_and_yet_not_as_they_must_be(path, old, new):
    whole = path.read_bytes()
    json.loads(change(path, (old, new)).read_bytes())
    try:
        found = wrong_with(path)
    except ModelError as error:
        found = str(error)
    path.write_bytes(whole)
    assert found


def test_a_key_that_stands_twice(path):
    raw = path.read_bytes()
    for extra in (b'"tokens": {},\n', b'"tokens": {"a": [1, 1]},\n', b'"messages": [5, 5],\n'):
        path.write_bytes(raw.replace(TOKENS_LINE, extra + TOKENS_LINE, 1))
        with pytest.raises(ModelError, match="not as nbspam writes it"):
            find_inconsistencies(path)


def test_metadata_that_goes_on_after_the_tokens(path):
    """JSON does not care where a key stands; the one-message path would not see it."""
    raw = path.read_bytes()
    line = next(li for li in raw.splitlines(keepends=True) if li.startswith(b'"spam_cutoff"'))
    moved = raw.replace(line, b"", 1).replace(b"}}\n", b"},%s}\n" % line.strip(b",\n"))
    path.write_bytes(moved)
    json.loads(moved)
    with pytest.raises(ModelError):
        find_inconsistencies(path)


@pytest.mark.parametrize("scale", calibration_specs(with_traits=True), ids=lambda scale: scale.name)
def test_a_precision_that_no_calibration_can_have(path, scale):
    fields = json.loads(path.read_bytes())
    precision = fields["calibration"]["spam"][scale.name]["precision"]
    n = scale.size
    assert len(precision) == n
    rows = [
        [1.0 if i == j else 0.9 * (-1) ** (i + j + (i * j) % 2) for j in range(n)] for i in range(n)
    ]
    rows = [[(rows[i][j] + rows[j][i]) / 2 for j in range(n)] for i in range(n)]
    change(path, (json.dumps(precision).encode(), json.dumps(rows).encode()))
    with pytest.raises(ModelError, match="not positive definite"):
        find_inconsistencies(path)
