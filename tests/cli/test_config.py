"""Options and the config file: every option in it, what holds, and shells that complete."""

import json
import os
import re
import tomllib
from pathlib import Path

import click
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from one_case import each
from running import ROOT

from nbspam.cli.configured import Command, ways
from nbspam.cli.declared import command_words, holds, table_of
from nbspam.cli.options import FileName, default_model
from nbspam.cli.settings import SHARED, command_contexts, options_of, plain_document

MAIL = b"From: a@example.org\nSubject: prize\n\nwin a free prize now\n"
CONTEXTS = {table_of(context): context for context in command_contexts()}

OPTIONS = {
    (table, key): option
    for table, context in CONTEXTS.items()
    for key, option in options_of(context).items()
}

SETTABLE = {pair: o for pair, o in OPTIONS.items() if not o.declared.typed}

KEYS = {table: [key for own, key in SETTABLE if own == table] for table in CONTEXTS}


@pytest.fixture
def config(own_home):
    """Return a function that writes the user's config file."""
    path = own_home / ".config" / "nbspam" / "config.toml"
    path.parent.mkdir(parents=True)

    def write(text):
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
        return path

    return write


def right(option):
    """Return a value that the option takes."""
    if option.is_flag:
        return True
    if isinstance(option.type, click.Choice):
        return list(option.type.choices)[-1]
    if isinstance(option.type, click.types.IntParamType):
        return 7
    if isinstance(option.type, click.types.FloatParamType):
        return 0.75
    values = {"trust-after": "7d", "socket-mode": "0640", "encoding": "utf-16"}
    values |= {"max-ham-blocked": "1%", "listen": "127.0.0.1:783", "metrics": "[::1]:783"}
    value = values.get(option.key, "some")
    return [value] if option.multiple else value


def wrong(option):
    """Return values that the option refuses."""
    values = ["some", 1] if option.is_flag else [True, {"a": 1}]
    if isinstance(option.type, click.Choice):
        values += ["none-of-these", 3]
    elif isinstance(option.type, click.types.IntParamType | click.types.FloatParamType):
        values += ["7", [7]]
        low = getattr(option.type, "min", None)
        values += [] if low is None else [low - 1]
        values += [] if isinstance(option.type, click.types.FloatParamType) else [7.5]
    elif not option.is_flag:
        values += [7, "a\0b"]
    return values + ([] if option.multiple else [["some"]])


def toml(value):
    return "{ a = 1 }" if isinstance(value, dict) else json.dumps(value)


def command_of(table):
    return command_words(table).split()


def kind(option):
    """Return what decides which values an option takes: those of a kind are read alike."""
    return option.type.__class__, option.is_flag, option.multiple, hasattr(option.type, "min")


ONE_OF_EACH_KIND = {kind(option): (pair, option) for pair, option in SETTABLE.items()}.values()

SOME_OR_ALL = [ONE_OF_EACH_KIND, SETTABLE.items()]


# The format


def test_which_options_are_settings():
    assert {c.command.__class__ for c in CONTEXTS.values()} == {Command}
    assert {"classify", "model-prune", "serve"} <= CONTEXTS.keys()
    assert len(SETTABLE) > 80
    keys = [key for _, key in SETTABLE]
    assert {key for key in keys if keys.count(key) > 1} == SHARED  # may stand outside tables


@pytest.mark.few(1)
@pytest.mark.parametrize("options", SOME_OR_ALL, ids=["some", "all"])
def test_every_option_is_taken_from_a_file(nbspam, config, options):
    for (table, key), option in options:
        value = right(option)
        needed = 'traits = "gaussian"\n' if "variance" in key else ""
        path = config(f"[{table}]\n{key} = {toml(value)}\n{needed}")
        found = nbspam("config", *command_of(table), "--format", "json")
        assert found.err == "", (table, key)
        rows = {row["option"]: row for row in json.loads(found.out)["settings"]}
        assert rows.keys() == set(KEYS[table])
        assert (rows[key]["from"], rows[key]["line"]) == ("file", 2)
        is_path = isinstance(option.type, click.Path)
        assert rows[key]["value"] == (str(path.parent / value) if is_path else value)


@pytest.mark.few(1)
@pytest.mark.parametrize("options", SOME_OR_ALL, ids=["some", "all"])
def test_a_wrong_value_is_refused_by_file_line_and_key(nbspam, config, assert_sentence, options):
    for (table, key), option in options:
        for value in wrong(option):
            path = config(f"# settings\n[{table}]\n{key} = {toml(value)}\n")
            assert_sentence(nbspam("config"), f"{path}:3: {key}: ", code=2)
            assert nbspam(*command_of(table)).code == 2, (table, key, value)
            if key in SHARED:
                config(f"{key} = {toml(value)}\n")
                assert_sentence(nbspam("config"), f"{path}", key, code=2)


@each("table, key", sorted(OPTIONS.keys() - SETTABLE.keys()))
def test_what_one_run_does_is_not_set_in_a_file(nbspam, config, assert_sentence, table, key):
    path = config(f"[{table}]\n{key} = true\n")
    found = nbspam("config")
    assert_sentence(found, f"{path}:2: [{table}] {key} cannot be set in a file", code=2)
    assert found.err.endswith("; use it on the command line\n")


MISTAKES = (ROOT / "tests" / "golden" / "cli" / "config_mistakes.txt").read_text("utf-8")


@each("row", [row for row in MISTAKES.splitlines() if row[0] != "#"])
def test_a_mistake_is_one_sentence_with_the_remedy_wherever_it_is_found(
    nbspam, config, model, monkeypatch, assert_sentence, row
):
    text, *parts, last = (cell.strip() for cell in row.split(" | "))
    command = last.removeprefix("> ").split() if last[0] == ">" else []
    path = config(text.replace("¶", "\n").replace("[…", "[" * 5_000))
    if command:
        monkeypatch.setenv("NBSPAM_MODEL", str(model))
    found = nbspam("config")
    assert_sentence(found, path, *parts, *([] if command else [last]), code=2)
    if command:
        assert nbspam("config", command[0]).err == found.err
        stopped = nbspam(*command, stdin=MAIL)
        assert (stopped.code, stopped.err) == (75 if "-p" in command else 2, found.err)


# A default makes no command fail that is right without it

# The ways that commands are used.
IN_USE = {
    "classify": "-m MODEL|-p -m MODEL|-m MODEL TABLE --ham-cost 9|-m MODEL --spam-cutoff 0.3"
    "|-m MODEL --format json",
    "explain": "-m MODEL|-m MODEL --words",
    "train": "-m NEW TABLE --replace|-m MODEL --update --spam -|-m MODEL --update TABLE"
    "|-m NEW TABLE --replace --max-ham-blocked 10%|-m NEW TABLE --replace --scoring sum"
    "|-m NEW TABLE --replace --ham-cost 9",
    "eval": "-m MODEL TABLE --including-learned|--folds 3 TABLE|--online TABLE"
    "|--train-first 50% --max-ham-blocked 10% TABLE|--compare bernoulli,multinomial TABLE"
    "|--leave-one-out --traits none TABLE",
    "forget": "-m MODEL|-m MODEL --spam -",
    "model-set": "-m MODEL --ham-cost 9",
    "model-info": "-m MODEL",
    "model-check": "-m MODEL",
    "model-prune": "-m MODEL --max-tokens 40",
}
# Values of options, where not any will do.
SENSIBLE = {
    "spam-cutoff": 0.95, "ham-cutoff": 0.9, "ham-cost": 9.0, "max-ham-blocked": "5%",
    "alpha": 0.2, "prior": 0.4, "traits": "gaussian", "scoring": "evidence", "header": "X-Spam",
    "event-model": "multinomial", "encoding": "utf-8", "text-column": "text",
    "label-column": "label", "subject-tag": "[SPAM]", "variance-smoothing": 1e-8,
    "variance-prior": 2.0, "spam-label": "spam", "model": "unused.json",
}  # fmt: skip
# Options that are for some sources or models only, wherever they are given.
APART = {"text-column", "label-column", "variance-smoothing", "variance-prior", "shared-variance"}


@pytest.mark.parametrize("table", IN_USE)
@pytest.mark.few(1)
@pytest.mark.parametrize("every", [False, True])
def test_no_default_makes_a_right_command_fail(nbspam, config, tmp_path, table, make_model, every):
    """Each option beside one of the command lines, or beside each."""
    texts = ("spam", "win a free prize now"), ("ham", "see you at the meeting")
    rows = "".join(f"{label}\t{text} {i}\n" for i in range(9) for label, text in texts)
    messages = tmp_path / "messages.tsv"
    messages.write_text(f"label\ttext\n{rows}")
    base = tmp_path / "base.json"
    model = make_model(messages, "--replace")
    learned = model.read_bytes()
    base.write_bytes(learned)
    sensible = SENSIBLE | {"base": str(base)}
    named = {"MODEL": model, "TABLE": messages, "NEW": tmp_path / "new.json"}
    lines = IN_USE[table].split("|")
    for number, key in enumerate(KEYS[table]):
        if key in APART or (key == "format" and table == "eval"):
            continue
        for line in lines if every else [lines[number % len(lines)]]:
            model.write_bytes(learned)
            value = sensible.get(key, right(SETTABLE[table, key]))
            path = config(f"[{table}]\n{key} = {toml(value)}\n")
            words = (named.get(word, word) for word in line.split())
            found = nbspam(*command_of(table), *words, stdin=MAIL)
            path.unlink()
            assert found.code == 0, (key, line, found.err)


# Where it is, and whose


def test_a_file_of_another_user_is_refused_unless_it_is_named(
    nbspam, config, monkeypatch, assert_sentence
):
    path = config("strict = true\n")
    owner = path.stat().st_uid
    if owner == 0:  # whose files anybody may use
        os.chown(path, 12345, -1)
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    assert_sentence(nbspam("config"), path, "belongs to another user", code=2)
    monkeypatch.setenv("NBSPAM_CONFIG", str(path))
    assert nbspam("config").code == 0


# nbspam config


@each("table, key", SETTABLE)
def test_every_value_holds_in_a_way_that_is_checked(table, key):
    command = CONTEXTS[table].command
    parser = command.make_parser(CONTEXTS[table])
    parsed = [parser.parse_args(args=list(way))[0] for way in ways(command)]
    typed = [set(values) - {"sources", "source"} for values in parsed]
    assert any(holds(OPTIONS[table, key], command, names) for names in typed)


def test_every_option_that_is_named_beside_another_is_an_option_of_some_command():
    flags = {option.flag for option in OPTIONS.values()}
    for option in OPTIONS.values():
        rules = option.declared
        named = {*rules.needs.split(), *rules.enables.split(), *rules.overrules.split()}
        assert named | set(rules.excludes.split()) <= flags


@each("table", CONTEXTS)
def test_config_prints_every_option_of_a_command(nbspam, table):
    found = nbspam("config", *command_of(table))
    assert found.code == 0
    for key in KEYS[table]:
        assert re.search(rf"^{key}\s", found.out, re.MULTILINE), key


def test_the_documented_example_holds(nbspam, config):
    page = (ROOT / "docs" / "config.md").read_text("utf-8")
    example = page.partition("```toml\n")[2].partition("```")[0]
    assert len(tomllib.loads(example)) > 3
    config(example)
    assert nbspam("config").err == ""


# Plain TOML is what `tomllib` reads, or is left to it

NAMES = st.sampled_from(
    ["a", "spam-cutoff", "b_1", "0", "-", "_", "é", "a.b", '"a"', "", "a b", "²"]
)

VALUES = st.one_of(
    st.sampled_from(
        "true false True 1 0 00 01 -1 +1 1_0 1.5 1. .5 0.5 00.5 1e5 inf nan 0x1 ² ١ 1979-05-27 [1]"
        ' "" "x" """ "a\\"b" "é" \'x\' "a#b" 1#c true=1 "x"1 9999999999999999999'.split()
    ),
    st.text(max_size=6),
    st.text(max_size=6).map(lambda text: f'"{text}"'),
)

BLANK = st.sampled_from(["", " ", "\t", "\u00a0"])

LINES = st.one_of(
    st.tuples(BLANK, NAMES, BLANK, st.just("="), BLANK, VALUES, BLANK).map("".join),
    st.tuples(BLANK, st.just("["), NAMES, st.just("]"), BLANK).map("".join),
    st.text(max_size=8),
    st.text(max_size=5).map(lambda text: f"# {text}"),
)


@given(st.lists(LINES, max_size=6), st.sampled_from(["\n", "\r\n", "\r"]))
@example(["[a]", "b = 1", "[c]", "b = 2"], "\n")
@example(["a = 1", "[a]"], "\n")
@example(["a=1", "a=1"], "\n")
@example(["[a]", "[a]"], "\n")
def test_it_is_what_tomllib_reads(lines, end):
    text = end.join(lines)
    found = plain_document(text)
    if found is not None:
        expected = tomllib.loads(text)
        assert found == expected
        assert repr(found) == repr(expected)  # 1 is no True and no 1.0


USUAL = [
    *("", "# a comment\n\n[classify]\n", 'model = "~/é.json"\nspam-cutoff = 0.99\n\njobs = 10'),
    "[model-prune]\n  min-count=2\n[eval]\nstrict = true",
]


@each("text", [*USUAL, "a = 'b'", "a = 1 # c", "a.b = 1", "a = [1]", "[[a]]", "a = -1"])
def test_usual_files_are_plain_and_others_are_left_to_tomllib(text):
    assert plain_document(text) == (tomllib.loads(text) if text in USUAL else None)


# Options


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


SELDOM = {
    **dict.fromkeys(("train", "classify", "explain", "eval"), "--base --header-row --encoding"),
    **dict.fromkeys(("mail filter", "mail learn", "mail watch"), "--jobs"),
    "serve": "--max-size",
}


@each("command", SELDOM)
def test_help_has_what_is_used_often_and_help_all_the_rest(nbspam, command):
    short, whole = (nbspam(*command.split(), flag).out for flag in ("--help", "--help-all"))
    for flag in SELDOM[command].split():
        assert (flag in short, flag in whole) == (False, True)
    headings = [line for line in whole.splitlines() if re.fullmatch(r"[A-Z][\w-]+:", line)]
    known = "Sources: Mail: Sockets: Serving: Test: Model: Cut-offs: Output: More:".split()
    assert [known.index(heading) for heading in headings] == sorted(map(known.index, headings))
    assert [line for line in short.splitlines() if line in headings] == headings
