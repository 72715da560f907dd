"""Header words that alone tell the classes apart are named by `train` and no evidence."""

import random

import pytest
from one_case import each

import nbspam
from nbspam.bayes.evidence import separates_classes

N = 60
MARKS = {"ham": b"Errors-To: inbox\n", "spam": b"Errors-To: junk\n"}
NO_MARKS = dict.fromkeys(MARKS, b"Errors-To: -\n")


def pairs_of(marks, n=N):
    """Return labelled mails whose words differ by class as words do, each with its class's mark."""
    chance, pairs = random.Random(7), []
    for number in range(n):
        for label, words in (("ham", "lunch notes team hello"), ("spam", "prize click win hello")):
            some = chance.sample((words + " today now we you").split(), 4)
            head = f"Received: from a by mx.example.org\nMessage-ID: <{number}@{label}>\n"
            body = " ".join(some)
            pairs.append((label, head.encode() + marks[label] + f"\n{body}\n".encode()))
    return pairs


NEW = [mail for marks in (NO_MARKS, MARKS) for _, mail in pairs_of(marks, 3)]
OTHER = [mail.replace(b"inbox", b"junk") for mail in NEW]


@pytest.fixture(scope="module")
def filters():
    return [nbspam.train(pairs_of(marks)) for marks in (MARKS, NO_MARKS)]


def scores(spam_filter, messages):
    return [verdict.log_odds for verdict in spam_filter.classify_many(messages)]


def test_every_score_is_as_if_the_marks_were_not_there(filters, tmp_path):
    marked, plain = filters
    messages = NEW + OTHER
    right = pytest.approx([plain.classify(mail).log_odds for mail in messages], abs=1e-9)
    assert [marked.classify(mail).log_odds for mail in messages] == right
    marked.save(tmp_path / "model.json")
    with nbspam.open(tmp_path / "model.json") as from_file:
        from_file.version.prepare(10**9)  # a table, as for many messages
        assert scores(from_file, messages) == right
    explained = marked.explain(NEW[6])
    shares = {word.token: word.share for word in explained.words}
    assert not shares.get("header:inbox")
    assert sum(filter(None, shares.values()))


def test_with_too_few_messages_they_are_heard():
    few = [nbspam.train(pairs_of(marks, 40)) for marks in (MARKS, NO_MARKS)]
    assert scores(few[0], NEW[6:7]) != pytest.approx(scores(few[1], NEW[6:7]), abs=1e-3)


@each(
    "row, messages, expected",
    [
        ((0, 50), (50, 50), True),
        ((0, 49), (50, 49), False),  # too few messages
        ((0, 45), (50, 50), True),
        ((0, 44), (50, 50), False),
        ((50, 0), (50, 5_000), True),
        ((50, 50), (50, 5_000), True),  # one per cent of the others
        ((50, 51), (50, 5_000), False),
        ((0, 0), (50, 50), False),
        ((99, 1, 0), (100, 100, 100), True),
        ((99, 2, 1), (100, 100, 100), False),
        ((100, 100, 0), (100, 100, 100), False),
    ],
)
def test_when_a_word_tells_the_classes_alone(row, messages, expected):
    assert separates_classes(row, messages) is expected
