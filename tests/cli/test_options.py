"""What the shared options make of their values, and what click is given for them."""

import os
import re
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st
from one_case import each

from nbspam.cli.options import FileName, default_model


@given(st.text(alphabet="/.a~ ", max_size=8))
@example("")
def test_a_file_s_name_is_written_as_pathlib_writes_it(name):
    assert FileName().coerce_path_result(name) == str(Path(name))


@each("home", ["/home/me", "/", "/home/me/"])
@each("data", ["", "/data", "/"])
def test_the_default_model_is_in_the_folder_of_data(monkeypatch, home, data):
    monkeypatch.setattr("sys.platform", "linux")
    for name, value in (("HOME", home), ("XDG_DATA_HOME", data), ("NBSPAM_MODEL", "")):
        monkeypatch.setenv(name, value)
    folder = Path(data) if data else Path(home, ".local", "share")
    assert default_model() == os.fspath(folder / "nbspam" / "model.json")


def test_the_environment_names_another_and_must_where_there_is_no_home(nbspam, monkeypatch):
    monkeypatch.setenv("HOME", "~")
    found = nbspam("model", "info")
    assert found.code == 2
    assert found.err == "nbspam: no home folder for the model; name the model with --model\n"
    monkeypatch.setenv("NBSPAM_MODEL", "own.json")
    assert default_model() == "own.json"


@each("given_as", ["-m {}", "-m{}", "--model {}", "--model={}", "-j 1 -m {}"])
def test_a_model_is_named_in_any_way(nbspam, tmp_path, given_as):
    found = nbspam("classify", *given_as.format(tmp_path / "none.json").split())
    assert found.err.startswith(f"nbspam: {tmp_path / 'none.json'}: model not found")
    found = nbspam("classify", "-m", "-j", "-p")  # a value that looks like an option is a value
    assert "-j: model not found" in found.err


@each("arguments", [["-m"], ["-j", "1", "-m"]])
def test_a_short_option_without_its_value_is_named_as_it_was_given(nbspam, arguments):
    found = nbspam("classify", *arguments)
    assert found.code == 2
    said = "nbspam: option '-m' requires an argument; see nbspam classify --help\n"
    assert found.err == said
    found = nbspam("classify", "-p", *arguments, stdin=b"hello\n")
    assert (found.code, found.out) == (75, "hello\n")
    assert found.err == said


@each("command", [("train", "--spam"), ("model", "words", "-m"), ("serve", "-m")])
def test_a_value_that_is_missing_is_told_with_the_usage(nbspam, command):
    found = nbspam(*command)
    assert (found.code, found.out) == (2, "")
    words = " ".join(command[:-1])
    said = f"option '{command[-1]}' requires an argument; see nbspam {words} --help"
    assert found.err == f"nbspam: {said}\n"


@each(
    "option",
    [
        *("classify --spam-cutoff", "explain --ham-cutoff"),
        "train --prior",
    ],
)
def test_a_percentage_is_told_as_a_probability(nbspam, option):
    for percentage, share in (("99%", "0.99"), ("99.5 %", "0.995")):
        found = nbspam(*option.split(), percentage)
        assert found.code == 2
        name = option.split()[1]
        said = f"'{name}': '{percentage}' is a percentage; write it as {share}; see nbspam "
        assert said in found.err
    assert "is not a valid float" in nbspam(*option.split(), "most%").err


@each("typed", ["lern", "model inffo", "classify --strikt", "--model x classify"])
def test_a_word_that_means_nothing_is_named_with_the_usage(nbspam, typed):
    found = nbspam(*typed.split())
    assert (found.code, found.out) == (2, "")
    said = (
        r"nbspam: no such (command|option) '(lern|inffo|--strikt|--model)'.*; see nbspam.* --help\n"
    )
    assert re.fullmatch(said, found.err)


def test_shells_complete_commands_options_and_values(program, monkeypatch):
    monkeypatch.setenv("_NBSPAM_COMPLETE", "bash_complete")
    for typed, offered in (
        ("nbspam tr", {"train"}),
        ("nbspam model p", {"prune"}),
        ("nbspam train --event", {"--event-model"}),
        ("nbspam train --scoring ", {"evidence", "sum"}),
    ):
        monkeypatch.setenv("COMP_WORDS", typed)
        monkeypatch.setenv("COMP_CWORD", str(typed.count(" ")))
        lines = program().out.splitlines()
        assert {line.partition(",")[2] for line in lines} == offered


# Help in two sizes


@each("command, most", [("train", 60), ("classify", 60), ("explain", 60), ("eval", 75)])
def test_help_has_what_is_used_often_and_help_all_the_rest(nbspam, command, most):
    short, whole = (nbspam(command, flag).out for flag in ("--help", "--help-all"))
    assert len(short.splitlines()) <= most
    for flag in ("--base", "--header-row", "--encoding"):
        assert (flag in short, flag in whole) == (False, True)
    headings = [line for line in whole.splitlines() if re.fullmatch(r"[A-Z][\w-]+:", line)]
    known = "Sources: Test: Model: Cut-offs: Tables: Output: More:".split()
    assert [known.index(heading) for heading in headings] == sorted(map(known.index, headings))
    assert [line for line in short.splitlines() if line in headings] == headings


@each("command", ["serve", "mail filter", "mail learn", "mail watch"])
def test_the_help_of_the_server_and_of_mail_is_short_too(nbspam, command):
    short, whole = (nbspam(*command.split(), flag).out for flag in ("--help", "--help-all"))
    assert len(short.splitlines()) <= 60
    rest = "--max-size" if command == "serve" else "--jobs"
    assert (rest in short, rest in whole) == (False, True)
