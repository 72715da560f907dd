"""Odd files, odd names and little memory: each test fails without the protection."""

import csv
import io
import os
import re

import pytest

import nbspam_main
from nbspam.cli.notes import note
from nbspam.errors import ModelError, Remedy, one_line
from nbspam.evaluation.results import write_predictions, write_table
from nbspam.serving.spamd import RefusedError

CONTROLS = "".join(map(chr, [*range(32), *range(127, 160), 0x2028, 0x2029]))
MARKS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


# A message passes though there is hardly any memory


@pytest.mark.parametrize("most", [64, 5_000])
def test_a_message_passes_in_small_pieces(tmp_path, monkeypatch, most):
    mail = b"Subject: prize\n\nwin a free prize\n" * 500
    source, sink = tmp_path / "in", tmp_path / "out"
    source.write_bytes(mail)
    read = os.read

    def hungry(handle, n):
        if n > most:
            raise MemoryError
        return read(handle, n)

    with source.open() as read_from, sink.open("w") as written_to:
        passage = nbspam_main.Passage(read_from, written_to)
        monkeypatch.setattr(os, "read", hungry)
        assert passage.rescue()
    assert sink.read_bytes() == mail


def test_without_any_memory_it_is_to_be_tried_again(tmp_path, monkeypatch, capsys):
    (tmp_path / "in").write_bytes(b"Subject: x\n\n")

    def hungry(*_):
        raise MemoryError

    with (tmp_path / "in").open() as source, (tmp_path / "out").open("w") as sink:
        passage = nbspam_main.Passage(source, sink)
        monkeypatch.setattr(os, "read", hungry)
        policy = nbspam_main.FailurePolicy(["classify", "-p"])
        assert nbspam_main._fail(policy, passage, 1, "not enough memory") == 75
    assert "could not be passed on either" in capsys.readouterr().err


# Tables for spreadsheets


@pytest.mark.parametrize("delimiter", [",", "\t"])
def test_no_cell_of_a_table_is_a_formula(delimiter):
    formulas = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "\t=1", "\r=1", "-", "=-1"]
    kept = ["", "a=b", "ham", "'", "-1", "+1.5e3", "-inf", -1, -0.5, 7, None, True]
    file = io.StringIO()
    write_table([{"a": value, "b": "="} for value in formulas + kept], file, delimiter)
    rows = list(csv.reader(io.StringIO(file.getvalue(), newline=""), delimiter=delimiter))[1:]
    assert [row[0] for row in rows[: len(formulas)]] == [f"'{value}" for value in formulas]
    assert [row[0] for row in rows[len(formulas) :]] == ["" if v is None else str(v) for v in kept]
    assert {row[1] for row in rows} == {"'="}


def test_predictions_are_such_a_table(tmp_path, monkeypatch):
    row = {
        "source": "=cmd.eml",
        "label": "ham",
        "message": {"subject": "=1", "from": "@a", "text": ""},
    }
    monkeypatch.setattr("nbspam.evaluation.results.prediction", lambda _: row)
    for suffix in (".csv", ".tsv"):
        path = tmp_path / f"predictions{suffix}"
        write_predictions([None], path)
        assert {"'=cmd.eml", "'=1", "'@a"} < set(re.split("[,\t\n]", path.read_text()))


# Names


def test_errors_have_no_control_characters_and_no_hidden_turns(capfd):
    name = f"a{CONTROLS}b{MARKS}c"
    for said in (
        str(ModelError(f"{name}: is no model; name another")),
        ModelError("x: is no model", Remedy.CREATE_MODEL, path=name).sentence({}),
        RefusedError(76, name).line.decode().removesuffix("\r\n"),
        one_line(name),
    ):
        assert said.isprintable()
        assert "a" in said
    note(name)
    nbspam_main._print_error(nbspam_main.described(OSError(2, "not there", name))[1])
    nbspam_main._print_error("Error: no such option\n" + name.replace("\n", ""))
    said = capfd.readouterr().err
    assert said.count("\n") == 4
    assert said.replace("\n", "").isprintable()
    assert said.count("nbspam: a") == 2


def test_a_mark_that_turns_the_direction_is_an_escape():
    assert one_line("invoice\u202efdp.exe") == r"invoice\u202efdp.exe"
    assert len(set(map(one_line, MARKS))) == len(MARKS)
    assert one_line("שלום ünï 漢字") == "שלום ünï 漢字"


def test_no_command_shows_such_a_name_as_it_is(nbspam, model, tmp_path):
    mail = tmp_path / "a\u202elme\x1b[2J.eml"
    mail.write_bytes(b"Subject: prize\n\nwin a free prize\n")
    for command in (("classify",), ("explain",)):
        found = nbspam(*command, "-m", model, mail)
        assert found.code == 0
        assert r"a\u202elme" in found.out
        assert not re.search("[\x1b\u202e]", found.out + found.err)
    found = nbspam("classify", "-m", mail, mail)
    assert found.code == 1
    assert not re.search("[\x1b\u202e]", found.err)


# Config files


@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "large"])
def test_a_config_file_is_a_small_regular_file(
    nbspam, tmp_path, monkeypatch, assert_sentence, kind
):
    path = tmp_path / "config.toml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"#\n" * (600 << 10))
    monkeypatch.setenv("NBSPAM_CONFIG", str(path))
    assert_sentence(nbspam("classify", stdin=b"x"), path, "config file", code=2)


def test_a_config_file_of_a_mebibyte_is_read(nbspam, tmp_path, monkeypatch):
    path = tmp_path / "config.toml"
    path.write_bytes(b"#\n" * (512 << 10))
    monkeypatch.setenv("NBSPAM_CONFIG", str(path))
    assert nbspam("config").code == 0


# The number of users


def test_the_number_of_users_models_is_an_option(nbspam, model, tmp_path, monkeypatch):
    taken = []
    monkeypatch.setattr(
        "nbspam.cli.serve.serve", lambda server, *_: taken.append(server._teacher._limits.max_users)
    )
    (tmp_path / "users").mkdir(mode=0o700)
    options = "serve -q --tell --workers 1 -m".split()
    listening = "--socket", tmp_path / "socket", "--user-models", tmp_path / "users"
    for more in ((), ("--max-users", 7)):
        assert nbspam(*options, model, *listening, *more).code == 0
    assert taken == [1000, 7]
