"""A word that is no command, or no option, is answered with what was meant."""

import shlex

import click
from one_case import each

from nbspam.cli.groups import each_command
from nbspam.cli.program import nbspam as group
from nbspam.cli.suggestions import OF_MODEL, OF_OPTIONS, OF_PROGRAM

COMMANDS = {" ".join(path): command for path, command in each_command(group, ("nbspam",))}


def options_of(command: click.Command) -> set[str]:
    own = {opt for param in command.params for opt in (*param.opts, *param.secondary_opts)}
    return own | {"--help"}


@each(
    "typed, meant",
    [
        ("learn", "'nbspam train'?"),
        ("LEARN", "'nbspam train'?"),
        ("spam", "'nbspam classify' or 'nbspam train --spam'?"),
        ("check", "'nbspam classify' or 'nbspam model check'?"),
        ("score", "'nbspam classify'?"),
        ("test", "'nbspam classify' or 'nbspam eval'?"),
        ("unlearn", "'nbspam forget'?"),
        ("info", "'nbspam model info'?"),
        ("evalute", "'nbspam evaluate'?"),
        ("clasify", "'nbspam classify'?"),
        ("model stats", "'nbspam model info'?"),
        ("model impotr", "'nbspam model import'?"),
    ],
)
def test_a_command_that_does_not_exist(nbspam, typed, meant):
    done = nbspam(*typed.split())
    word = typed.split()[-1]
    assert done.err.endswith(f"\nError: No such command '{word}'; did you mean {meant}\n")
    assert (done.code, done.out) == (2, "")


def test_a_file_in_place_of_a_command_and_a_word_like_no_other(nbspam, tmp_path):
    (tmp_path / "one.eml").write_text("hello")
    path = str(tmp_path / "one.eml")
    assert f"did you mean 'nbspam classify {path}'?" in nbspam(path).err
    assert nbspam("zzz").err.endswith("\nError: No such command 'zzz'.\n")


@each(
    "typed, said",
    [
        ("classify --threshold 0.3", "No such option '--threshold'; did you mean '--spam-cutoff'?"),
        ("classify --json", "No such option '--json'; did you mean '--format json'?"),
        ("eval --cv 10", "No such option '--cv'; did you mean '--folds'?"),
        ("train --updat", "No such option '--updat'; did you mean '--update'?"),
        ("model check --threshold 1", "No such option '--threshold'."),
        ("--hepl", "No such option '--hepl'; did you mean '--help'?"),
        (
            "--model x classify",
            "No such option '--model' before the command; options follow it: nbspam COMMAND"
            " --model",
        ),
    ],
)
def test_an_option_that_does_not_exist(nbspam, typed, said):
    done = nbspam(*typed.split())
    assert done.err.endswith(f"\nError: {said}\n")
    assert (done.code, done.out) == (2, "")


def test_words_in_quotes_are_told(nbspam):
    for word in ("-p -m model.json", "--passthrough -m model.json", "-p --exit-code"):
        done = nbspam("classify", word, stdin=b"hello\n")
        assert (done.code, done.out) == (75, "hello\n")
        assert done.err.startswith("nbspam: No such option '-")
        said = "; what is in quotes is one word: leave out the quotes around several; see "
        assert said in done.err
    done = nbspam("classify -p -m model.json")
    assert (done.code, done.out) == (2, "")
    assert done.err.endswith(
        "Error: No such command 'classify -p -m model.json'; what is in quotes is one word: leave"
        " out the quotes around several\n"
    )


def test_the_message_passes_beside_a_suggestion(nbspam):
    done = nbspam("classify", "-p", "--threshold", "0.3", stdin=b"hello\n")
    assert (done.code, done.out) == (75, "hello\n")
    said = "nbspam: No such option '--threshold'; did you mean '--spam-cutoff'; see nbspam classify"
    assert done.err == f"{said} --help\n"


@each("before, table", [("", OF_PROGRAM), ("model ", OF_MODEL)])
def test_every_suggestion_can_be_run(before, table):
    for word, suggested in table.items():
        assert f"nbspam {before}{word}" not in COMMANDS, f"{word} is a command now: remove it"
        for one in suggested:
            line = shlex.split(f"nbspam {before}{one}")
            words = [w for w in line if not w.startswith("-") and not w.isdigit() and w != "all"]
            command = COMMANDS[" ".join(words)]
            assert {w for w in line if w.startswith("-")} <= options_of(command), one


def test_every_suggested_option_exists():
    everything = set().union(*map(options_of, COMMANDS.values()))
    for suggested in OF_OPTIONS.values():
        assert {one.split()[0] for one in suggested} <= everything
    assert not set(OF_OPTIONS) & everything
