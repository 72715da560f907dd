"""`nbspam model words`."""

import json

import pytest
from one_case import each

from nbspam.front_door import train


@pytest.fixture
def mail_model(tmp_path):
    """Return a model of mails with a Subject."""
    mail = "Subject: {1}\nFrom: a@{0}.example.org\n\nhello there, {2} {0} words"
    kinds = {"spam": "free prize", "ham": "team lunch"}
    pairs = [(k, mail.format(k, kinds[k], n).encode()) for k in kinds for n in range(5)]
    train(pairs).save(tmp_path / "mail.json")
    return tmp_path / "mail.json"


def words(nbspam, model, *typed, stdin=b""):
    found = nbspam("model", "words", "-m", model, "--format", "json", *typed, stdin=stdin)
    assert (found.code, found.err) == (0, "")
    return [json.loads(line) for line in found.out.splitlines()]


def test_the_counts_are_those_of_the_file(nbspam, model):
    tokens = json.loads(model.read_bytes())["tokens"]
    found = words(nbspam, model, *tokens)
    assert {word["token"]: list(word["counts"].values()) for word in found} == tokens
    assert all(word["known"] and not word["other_kinds"] for word in found)
    assert found[0]["messages"] == {"ham": 18, "spam": 12}


def test_the_weights_are_those_of_explain(nbspam, model, three_classes, make_model):
    explained = json.loads(nbspam("explain", "--words", "--format", "json", "-m", model).out)
    strongest = explained["spam"][0]
    (found,) = words(nbspam, model, strongest["token"])
    assert found["weights"]["spam"] == strongest["weight"]
    assert found["weights"]["ham"] == -strongest["weight"]
    assert found["counts"] == strongest["counts"]
    model = make_model(three_classes, "--replace")
    (found,) = words(nbspam, model, "shoes")
    assert set(found["weights"]) == {"ham", "promo", "spam"}
    text = nbspam("model", "words", "shoes", "-m", model).out
    assert text.splitlines()[-1].endswith(f"{found['weights']['promo']:+.3f} for promo")


@each(
    "typed, token",
    [
        ("PRIZE", "prize"),
        ("pr\u0456ze", "prize"),  # a Cyrillic i
        ("pr1ze", "prize"),
        ("p.r.i.z.e", "prize"),
        ("Free Prize", "free prize"),
        ("7", "0"),
    ],
)
def test_words_are_looked_up_as_the_tokenizer_writes_them(nbspam, model, typed, token):
    (found,) = words(nbspam, model, typed)
    assert (found["word"], found["token"]) == (typed, token)


def test_what_is_absent_is_said_with_the_kind_that_has_it(nbspam, mail_model):
    free, subject, other, absent = words(
        nbspam, mail_model, "free", "Subject:FREE", "from:hello", "xyzzy"
    )
    assert (free["known"], free["other_kinds"], free["weights"]) == (False, ["subject:free"], None)
    assert free["counts"] == {"ham": 0, "spam": 0}
    assert (subject["token"], subject["counts"]) == ("subject:free", {"ham": 0, "spam": 5})
    assert other["other_kinds"] == ["hello"]
    assert (absent["known"], absent["other_kinds"]) == (False, [])


def test_in_text(nbspam, mail_model):
    found = nbspam("model", "words", "-m", mail_model, "hello", "free", "xyzzy", "subject:free")
    assert (found.code, found.err) == (0, "")
    head, empty, *rows = found.out.splitlines()
    assert head == f"{mail_model}: learned 10 messages (ham: 5, spam: 5)"
    assert empty == ""
    assert rows == [
        "word           in ham  in spam    weight",
        "hello               5        5    +0.000",
        "free          not in the model, but subject:free",
        "xyzzy         not in the model",
        "subject:free        0        5    +4.615",
    ]


def test_from_standard_input_and_of_several_words_their_bigrams(nbspam, model):
    found = words(nbspam, model, "win", "-", "noon", stdin=b"prize\n\n  free prize \nxyz\xff\n")
    assert [word["token"] for word in found][:4] == ["win", "prize", "free prize", "xyz"]
    assert found[-1]["token"] == "noon"
    found = words(nbspam, model, "win a free prize")
    assert [word["token"] for word in found] == ["win a", "a free", "free prize"]
    assert all(word["known"] for word in found)
    found = nbspam("model", "words", "-m", model, "from:\x1b[31m")
    assert "\x1b" not in found.out  # it would command a terminal


def test_what_fails(nbspam, model, table, make_model, tmp_path, assert_sentence):
    assert nbspam("model", "words", "-m", model).code == 2
    assert_sentence(nbspam("model", "words", "-m", model, "-", "-"), "once", code=2)
    assert_sentence(nbspam("model", "words", "-m", tmp_path / "none.json", "a"), "none.json")
    bare = make_model(table, "--event-model", "none", name="bare.json")
    assert_sentence(nbspam("model", "words", "-m", bare, "a"), "counts no words", code=2)
