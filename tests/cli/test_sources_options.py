"""Sources inside one another: each message is read once, as the source that is nearest to it."""

import json
import os

import pytest

from nbspam.cli.learning_options import Sources
from nbspam.reading.cutting import Cutter
from nbspam.reading.source import ReadingOptions, Skips


@pytest.fixture
def mail(tmp_path, monkeypatch):
    """Return a folder of mails with two folders in it, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "Junk/c", "Junk/old/d", "Work/e"):
        path = tmp_path / "Mail" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"Subject: {name}\n\ntext of {name}\n")
    return tmp_path / "Mail"


def read(*plain, spam=(), ham=()):
    """Return the label of each message by its file, which is read once, and what was said."""
    said, skips = [], Skips()
    options = ReadingOptions(tell=lambda what: said.append(str(what)))
    sources = Sources(plain, tuple(map(str, spam)), tuple(map(str, ham)), ())
    raws = list(sources.messages(options, skips))
    assert not skips.count, skips.named
    pieces = sources.pieces(Cutter(options, 100))
    assert [raw for piece in pieces for raw in piece.read()] == raws
    if not plain:
        assert list(sources.messages_of_any_kind(options, skips)) == raws
    assert len(raws) == len({os.path.realpath(raw.source) for raw in raws})
    return {raw.source: raw.label for raw in raws}, sorted(set(said))


IN_MAIL = {"Mail/a": "ham", "Mail/b": "ham", "Mail/Work/e": "ham"}
IN_JUNK = {"Mail/Junk/c": "spam", "Mail/Junk/old/d": "spam"}


ONLY = "{}: is given as a source of its own and is read only as {}".format


def test_each_belongs_to_the_innermost_source(mail):
    found, said = read(ham=["Mail"], spam=["Mail/Junk"])
    assert (found, said) == (IN_MAIL | IN_JUNK, [ONLY("Mail/Junk", "spam")])
    found, said = read(ham=["Mail", "Mail/Junk"])
    both = IN_MAIL | dict.fromkeys(IN_JUNK, "ham")
    assert (found, said) == (both, [ONLY("Mail/Junk", "ham")])
    found, said = read(ham=["Mail", "Mail/Junk/old"], spam=["Mail/Junk"])
    assert found == IN_MAIL | IN_JUNK | {"Mail/Junk/old/d": "ham"}
    assert len(said) == 2
    found, said = read(ham=["Mail/Work"], spam=["Mail/Junk"])  # beside one another
    assert (found, said) == ({"Mail/Work/e": "ham"} | IN_JUNK, [])


def test_a_file_in_a_folder_is_read_as_its_own_class(mail):
    found, said = read(ham=["Mail"], spam=["Mail/b", "Mail/Junk"])
    assert found == IN_MAIL | IN_JUNK | {"Mail/b": "spam"}
    assert said[1] == "Mail/b: is given as a source of its own and is read only as spam"


def test_folders_are_compared_by_where_links_lead(mail, tmp_path):
    (tmp_path / "trash").symlink_to("Mail/Junk")
    found, said = read(ham=[mail], spam=["trash"])
    assert [label for name, label in found.items() if name.startswith("trash")] == ["spam"] * 2
    assert said == [f"{mail}/Junk: is given as a source of its own and is read only as spam"]
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x").write_text("Subject: x\n\nx\n")
    (mail / "Work" / "link").symlink_to("../../elsewhere")
    found, said = read(ham=["Mail"], spam=["elsewhere"])
    assert found == IN_MAIL | dict.fromkeys(IN_JUNK, "ham") | {"elsewhere/x": "spam"}
    assert said == ["Mail/Work/link: is given as a source of its own and is read only as spam"]


def test_sub_folders_of_a_maildir_are_no_part_of_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("M/cur/1", "M/new/2", "M/.Junk/cur/3", "M/.Junk/new/4"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(f"Subject: {name}\n\ntext\n")
    found, said = read(ham=["M"], spam=["M/.Junk"])
    assert list(found.values()) == ["spam", "spam", "ham", "ham"]
    assert said == []
    found, said = read(ham=["M"], spam=["M/new/2"])
    assert found == {"M/cur/1": "ham", "M/new/2": "spam"}
    assert len(said) == 1


def test_a_folder_of_classes_has_not_what_is_given_with_a_label(mail):
    found, said = read("Mail", ham=["Mail/a", "Mail/b"], spam=["Mail/Junk"])
    assert found == {"Mail/a": "ham", "Mail/b": "ham", "Mail/Work/e": "Work"} | IN_JUNK
    assert len(said) == 3


def test_the_command_learns_each_message_once(nbspam, mail, tmp_path):
    command = "train", "--ham", "Mail", "--spam", "Mail/Junk", "-m", tmp_path / "m.json"
    found = nbspam(*command, "--format", "json")
    assert json.loads(found.out)["messages"] == {"ham": 3, "spam": 2}
    assert found.err == (
        "nbspam: Mail/Junk: is given as a source of its own and is read only as spam\n"
    )
    assert nbspam(*command, "--update", "-q").err == ""
