"""Suspicious labels are told with the places of their messages.

A class of one or a few messages beside large ones, and a message in two classes.
"""

import json

import pytest
from one_case import each

from nbspam.cli.training import ClassSizes
from nbspam.errors import TrainingError
from nbspam.learning.update import PendingMessages
from nbspam.names import rare_classes
from nbspam.tokens.tokenized import TokenizedMessage

TEXTS = [*[("ham", "see you at noon")] * 40, *[("spam", "win a free prize")] * 30, ("hma", "bye")]
HMA = [(label, f"{text} {i}") for i, (label, text) in enumerate(TEXTS)]


@pytest.fixture
def given(tmp_path):
    """Return how to train on rows: the class and the text of each."""
    path = tmp_path / "a.tsv"

    def command(*rows):
        path.write_text("".join(f"{label}\t{text}\n" for label, text in rows))
        return ("train", path, "-m", tmp_path / "m.json")

    return command


@each("options", [("--replace",), ("--update",)])
def test_a_small_class_is_named_with_its_row(nbspam, given, options):
    command = (*given(*HMA), *options)
    found = nbspam(*command)
    assert (found.code, found.err) == (
        0,
        f"nbspam: the class 'hma' has only 1 message of 71 ({command[1]}:71); if the label is"
        " wrong, correct it: cut-offs need two classes, and there are 3\n",
    )
    assert nbspam(*command, "-q").err.count("hma") == 0


def test_of_a_first_row_it_says_how_to_read_it_as_a_header(nbspam, given, tmp_path):
    command = (*given(("kind", "the text of it"), *HMA[:-1]), "--replace")
    path = tmp_path / "a.tsv"
    found = nbspam(*command)
    said = (
        "if the label is wrong, correct it, or add --header-row yes if that row names the columns"
    )
    assert f"({path}:1); {said}: cut-offs" in found.err
    command = (*command, "--header-row", "yes")
    found = nbspam(*command)
    assert (found.code, found.err) == (0, "")
    box = tmp_path / "promo.mbox"
    box.write_text("From a@b Mon Jan  5 10:00:00 2026\nSubject: sale\n\nshoes\n")
    found = nbspam(*command, "--label", f"promo={box}")
    assert f"1 message of 71 ({box}:1); if the label is wrong, correct it: " in found.err


def test_in_folders_too(nbspam, tmp_path):
    for number, (label, text) in enumerate(HMA):
        (tmp_path / "mail" / label).mkdir(parents=True, exist_ok=True)
        (tmp_path / "mail" / label / str(number)).write_text(text)
    found = nbspam("train", tmp_path / "mail", "-m", tmp_path / "m.json")
    assert f"the class 'hma' has only 1 message of 71 ({tmp_path}/mail/hma/70)" in found.err


def test_refused_cut_offs_name_the_classes(nbspam, given, tmp_path):
    found = nbspam(*given(*HMA), "--ham-cost", "9")
    assert found.code == 2
    assert f"({tmp_path}/a.tsv:71)" in found.err
    assert "3 classes ('ham', 'hma', 'spam')" in found.err
    assert "or correct a wrong label" in found.err
    found = nbspam(*given(*HMA), "--max-ham-blocked", "1%")
    assert f"({tmp_path}/a.tsv:71)" in found.err


@each(
    "sizes, small",
    [
        ({"ham": 4_000, "spam": 700, "hma": 1}, ["hma"]),
        ({"ham": 4_000, "spam": 700, "hma": 5, "spma": 2}, ["hma", "spma"]),
        ({"ham": 4_000, "spam": 700, "hma": 6}, []),
        ({"ham": 40, "spam": 20, "promo": 3}, []),
        ({"ham": 4_000, "spam": 3}, []),
        ({"ham": 4_000, "spam": 3, "promo": 3}, []),
        ({}, []),
    ],
)
def test_which_classes_are_small(sizes, small):
    assert rare_classes(sizes) == small


# Messages in two classes

TWICE = [("ham", "see you at noon"), ("spam", "win a free prize"), ("ham", "ok")]


@pytest.mark.few(3)
@pytest.mark.parametrize("options", ["", "--update", "-j 2"])
def test_a_message_in_two_classes_is_named_with_both_sources(nbspam, given, tmp_path, options):
    found = nbspam(*given(*TWICE, ("spam", "ok"), ("spam", "ok")), *options.split())
    assert (found.code, found.err) == (
        0,
        f"nbspam: 1 message is in two or more classes ({tmp_path}/a.tsv:3 as ham and"
        f" {tmp_path}/a.tsv:4 as spam); correct the labels if that is a mistake\n",
    )


def test_the_first_three_are_named_and_all_are_counted(nbspam, given, tmp_path):
    labels = ("spam", "ham", "promo")
    mixed = [(label, f"word{letter} ok") for label in labels for letter in "xyzuv"]
    command = (*given(*mixed, *TWICE), "--format", "json")
    name = f"{tmp_path}/a.tsv"
    first = "; ".join(
        f"{name}:{i} as spam and {name}:{i + 5} as ham and {name}:{i + 10} as promo"
        for i in (1, 2, 3)
    )
    for options in ((), ("--update",)):  # which knows them all by now
        found = nbspam(*command, *options)
        assert json.loads(found.out)["in_two_classes"] == 5
        assert f"5 messages are in two or more classes ({first}; and 2 more); correct" in found.err


def test_quietly_it_is_not_said_and_json_has_the_number(nbspam, given):
    for rows, n in (([*TWICE, ("spam", "ok")], 1), (TWICE, 0)):
        found = nbspam(*given(*rows), "--replace", "-q", "--format", "json")
        assert (json.loads(found.out)["in_two_classes"], found.err) == (n, "")


@each("options", [("--replace",), ("--update",)])
def test_strict_refuses_it_and_leaves_the_model(nbspam, given, assert_sentence, options):
    command = given(*TWICE, ("ham", "ok"))  # twice in the same class
    same, model = nbspam(*command, "--replace"), command[-1]
    assert (same.code, same.err) == (0, "")
    before = model.read_bytes()
    found = nbspam(*given(*TWICE, ("spam", "ok"), ("spam", "new")), *options, "--strict", "-q")
    assert_sentence(found, "1 message is in", "labels, or leave out --strict\n")
    assert model.read_bytes() == before


def test_the_message_id_tells_messages_apart(nbspam, tmp_path):
    for label, number in (("ham", 1), ("spam", 2), ("spam", 1)):
        path = tmp_path / label / f"{number}.eml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"Message-ID: <{number}@a>\nSubject: x\n\nthe same text\n")
    folders = "--ham", tmp_path / "ham", "--spam", tmp_path / "spam"
    found = nbspam("train", *folders, "-m", tmp_path / "m.json")
    where = f"({tmp_path}/spam/1.eml as spam and {tmp_path}/ham/1.eml as ham)"
    assert f"1 message is in two or more classes {where}" in found.err


def test_sources_of_many_messages_are_kept():
    sizes, ham = ClassSizes(), 2_500
    messages = [
        TokenizedMessage(
            f"t\udcff/{i}", "ham" if i < ham else "spam", [], f"{i % ham:016x}{0:016x}"
        )
        for i in range(ham + 3)
    ]
    pending = PendingMessages()
    pending.add(sizes(messages))
    with pytest.raises(TrainingError, match=r"^3 messages are in two") as error:
        sizes.report_shared(*pending.shared(), quiet=True, strict=True)
    named = "; ".join(f"t\udcff/{i} as ham and t\udcff/{i + ham} as spam" for i in range(3))
    assert f"({named})" in str(error.value)
    assert sizes.n_shared == 3
