"""A class of one or a few messages beside large ones is told, with the place of its messages."""

import pytest

from nbspam.cli.class_sizes import ClassSizes
from nbspam.tokens.tokenized import TokenizedMessage

HMA = [*[("ham", "see you at noon")] * 40, *[("spam", "win a free prize")] * 30, ("hma", "bye")]


@pytest.fixture
def mistaken(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("".join(f"{label}\t{text} {i}\n" for i, (label, text) in enumerate(HMA)))
    return path


@pytest.mark.parametrize(
    "command",
    [("train", "-m", "m.json"), ("train", "-m", "m.json", "--update")],
)
def test_it_is_named_with_its_row(nbspam, mistaken, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = nbspam(*command, mistaken)
    assert found.code == 0
    (line,) = found.err.splitlines()
    assert line == (
        f"nbspam: the class 'hma' has only 1 message of 71 ({mistaken}:71); if that label is a"
        " mistake, correct it there: as it is there are 3 classes, and cut-offs are for two"
    )
    assert nbspam(*command, "-q", mistaken).err.count("hma") == 0


def test_of_a_first_row_it_says_how_to_read_it_as_a_header(nbspam, tmp_path):
    path = tmp_path / "a.tsv"
    rows = [("kind", "the text of it"), *HMA[:-1]]
    path.write_text("".join(f"{label}\t{text} {i}\n" for i, (label, text) in enumerate(rows)))
    found = nbspam("train", "-m", tmp_path / "m.json", path)
    assert f"({path}:1); if that row names the columns, add --header-row yes; if that" in found.err
    found = nbspam("train", "-m", tmp_path / "n.json", "--header-row", "yes", path)
    assert (found.code, found.err) == (0, "")
    box = tmp_path / "promo.mbox"
    box.write_text("From a@b Mon Jan  5 10:00:00 2026\nSubject: sale\n\nshoes\n")
    more = ("--header-row", "yes", "--label", f"promo={box}", path)
    found = nbspam("train", "-m", tmp_path / "o.json", *more)
    assert f"1 message of 71 ({box}:1); if that label is a mistake" in found.err


def test_in_folders_too(nbspam, tmp_path):
    for label, text in HMA:
        folder = tmp_path / "mail" / label
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(len(list(folder.iterdir())))).write_text(text)
    found = nbspam("train", tmp_path / "mail", "-m", tmp_path / "m.json")
    assert f"the class 'hma' has only 1 message of 71 ({tmp_path}/mail/hma/0)" in found.err


def test_refused_cut_offs_name_the_classes(nbspam, mistaken, tmp_path):
    found = nbspam("train", mistaken, "--ham-cost", "9", "-m", tmp_path / "m.json")
    assert found.code == 2
    assert f"({mistaken}:71)" in found.err
    assert "3 classes ('ham', 'hma', 'spam')" in found.err
    assert "correct the labels if one of them is a mistake" in found.err
    found = nbspam("train", mistaken, "--max-ham-blocked", "1%", "-m", tmp_path / "m.json")
    assert f"({mistaken}:71)" in found.err


@pytest.mark.parametrize(
    ("sizes", "small"),
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
    counted = ClassSizes()
    messages = [
        TokenizedMessage(f"t:{i}", label, []) for label, n in sizes.items() for i in range(n)
    ]
    assert list(counted(messages)) == messages
    assert counted.small() == small
