"""The sample data: as many and as varied as promised, and of use for messages of a reader's own."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from click.testing import CliRunner

import nbspam
from nbspam.cli.program import nbspam as group

SAMPLE = Path(__file__).parents[1] / "sample_data"


def rows(name):
    lines = (SAMPLE / name).read_text("utf-8").splitlines()
    return [tuple(line.split("\t")) for line in lines]


def texts(name):
    return [text for _, text in rows(name)]


def shingles(text):
    """Return a text's pairs of neighbouring words; of a text of one word, that word."""
    words = re.findall(r"\w+", text.lower()) or [text]
    return frozenset(pairwise(words)) or frozenset(words)


def near_duplicates(texts):
    """Return the texts that share 60 % of the shingles, theirs and its, with an earlier one."""
    seen, near = {}, []
    for text in texts:
        own = shingles(text)
        earlier = {one for shingle in own for one in seen.get(shingle, ())}
        if any(len(own & one) >= 0.6 * len(own | one) for one in earlier):
            near.append(text)
        for shingle in own:
            seen.setdefault(shingle, []).append(own)
    return near


@pytest.fixture(scope="module")
def first_command(tmp_path_factory):
    """Run README's first command with -v; return the model's path and what was printed."""
    path = tmp_path_factory.mktemp("sample") / "demo.json"
    done = CliRunner().invoke(group, ["train", "-v", "-m", str(path), str(SAMPLE / "sms.tsv")])
    assert done.exit_code == 0, done.output
    return path, done.stdout


@pytest.fixture(scope="module")
def trained(first_command):
    with nbspam.open(first_command[0]) as opened:
        yield opened


@pytest.mark.parametrize(("name", "ham", "spam"), [("sms.tsv", 1200, 300), ("fresh.tsv", 75, 75)])
def test_there_are_enough_of_both(name, ham, spam):
    labels = [label for label, _ in rows(name)]
    assert labels.count("ham") >= ham
    assert labels.count("spam") >= spam
    assert len(labels) == labels.count("ham") + labels.count("spam")


@pytest.mark.long
def test_they_are_varied():
    assert near_duplicates(["a win to claim", "A WIN, to claim!", "a win"]) == ["A WIN, to claim!"]
    learned = texts("sms.tsv")
    near = near_duplicates(learned)
    assert len(near) <= 0.02 * len(learned), near
    assert near_duplicates([*learned, *texts("fresh.tsv")]) == near  # none of them is fresh


@pytest.mark.long
def test_the_first_command_says_how_good_it_is(first_command):
    shown = r"([\d.]+) % correct at 0\.5\s+\(([\d.]+) to"
    ((correct, lowest),) = re.findall(shown, first_command[1])
    assert float(correct) >= 97
    assert float(lowest) >= 96


def test_fresh_messages_are_judged_as_well(trained):
    judged = [(label, trained.classify(text).verdict) for label, text in rows("fresh.tsv")]
    decided = [(label, verdict) for label, verdict in judged if verdict != "unsure"]
    assert ("ham", "spam") not in judged
    assert len(decided) >= 0.95 * len(judged)
    assert sum(label == verdict for label, verdict in decided) >= 0.97 * len(decided)


@pytest.mark.parametrize(
    ("verdict", "text"),
    [
        ("spam", "Your parcel is waiting, pay the fee"),
        ("ham", "See you at 7, I'll bring the wine"),
        ("ham", "Your code is 481902. Do not share it."),
    ],
)
def test_messages_of_the_readers_world(trained, verdict, text):
    assert trained.classify(text).verdict == verdict
