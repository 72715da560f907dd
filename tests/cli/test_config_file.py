"""The config file: what it may say, what holds, and that it never harms a command or a mail."""

import json
import os
import re
import tomllib
from collections import Counter
from pathlib import Path

import click
import pytest
from many_cases import in_turn

from nbspam.cli.config_file import (
    TYPED,
    command_words,
    config_place,
    key_of,
    reason_to_type,
    table_of,
)
from nbspam.cli.configured import ConfiguredCommand
from nbspam.cli.file_check import WAYS
from nbspam.cli.settings import SHARED, _holds, command_contexts

MAIL = b"From: a@example.org\nSubject: prize\n\nwin a free prize now\n"
CONTEXTS = {table_of(context): context for context in command_contexts()}
OPTIONS = {
    (table, key_of(option)): option
    for table, context in CONTEXTS.items()
    for option in context.command.params
    if isinstance(option, click.Option)
}
SETTABLE = {pair: o for pair, o in OPTIONS.items() if reason_to_type(*pair) is None}
KEYS = {table: [key for own, key in SETTABLE if own == table] for table in CONTEXTS}


@pytest.fixture
def config(own_home, monkeypatch):
    """Return a function that writes the user's config file."""
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("NBSPAM_CONFIG", raising=False)
    path = own_home / ".config" / "nbspam" / "config.toml"
    path.parent.mkdir(parents=True)

    def write(text):
        path.write_text(text, encoding="utf-8")
        path.chmod(0o600)
        return path

    return write


VALUES = {
    "trust-after": "7d",
    "socket-mode": "0640",
    "encoding": "utf-16",
    "max-ham-blocked": "1%",
    "listen": "127.0.0.1:783",
    "metrics": "[::1]:783",
}


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
    value = VALUES.get(key_of(option), "some")
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
    if isinstance(value, dict):
        return "{ a = 1 }"
    return json.dumps(value)


def command_of(table):
    return command_words(table).split()


# The format


def test_every_command_takes_settings():
    assert {c.command.__class__ for c in CONTEXTS.values()} == {ConfiguredCommand}
    assert {"classify", "model-prune", "serve"} <= CONTEXTS.keys()
    assert len(SETTABLE) > 80


def test_the_keys_outside_tables_are_the_options_that_commands_share():
    keys = [key for _, key in SETTABLE]
    assert {key for key in keys if keys.count(key) > 1} == SHARED


def test_what_must_be_typed_is_an_option():
    names = {key for _, key in OPTIONS} | {f"{table}.{key}" for table, key in OPTIONS}
    assert TYPED.keys() - names == set()


@in_turn("table, key", SETTABLE)
def test_every_option_is_taken_from_a_file(nbspam, config, table, key):
    value = right(SETTABLE[table, key])
    needed = 'traits = "gaussian"\n' if "variance" in key else ""
    config(f"[{table}]\n{key} = {toml(value)}\n{needed}")
    found = nbspam("config", *command_of(table), "--format", "json")
    assert found.err == ""
    rows = {row["option"]: row for row in json.loads(found.out)["settings"]}
    assert rows.keys() == set(KEYS[table])
    assert (rows[key]["from"], rows[key]["line"]) == ("file", 2)
    path = isinstance(SETTABLE[table, key].type, click.Path)
    assert rows[key]["value"] == (value if not path else str(config_file_folder() / value))


def config_file_folder():
    return Path(config_place()).parent


def kind(option):
    """Return what decides which values an option refuses: those of a kind are read alike."""
    return option.type.__class__, option.is_flag, option.multiple, hasattr(option.type, "min")


@pytest.mark.few(1)
@pytest.mark.parametrize("every", [False, True])
def test_a_wrong_value_is_refused_by_file_line_and_key(nbspam, config, assert_sentence, every):
    """Each option with one value, and each kind of options with all; or each with all."""
    seen = Counter(kind(option) for option in SETTABLE.values() if every)
    for (table, key), option in SETTABLE.items():
        values = wrong(option)
        tried = values if every else [values[seen[kind(option)] % len(values)]]
        if not every and seen[kind(option)] == 0:
            tried = values
        seen[kind(option)] += 1
        for value in tried:
            path = config(f"# settings\n[{table}]\n{key} = {toml(value)}\n")
            found = nbspam("config")
            assert_sentence(found, f"{path}:3: {key}: ", code=2)
            assert nbspam(*command_of(table)).code == 2, (table, key, value)
            if key in SHARED:
                config(f"{key} = {toml(value)}\n")
                assert_sentence(nbspam("config"), f"{path}", key, code=2)


@in_turn("table, key", sorted(OPTIONS.keys() - SETTABLE.keys()))
def test_what_one_run_does_is_not_set_in_a_file(nbspam, config, assert_sentence, table, key):
    path = config(f"[{table}]\n{key} = true\n")
    found = nbspam("config")
    assert_sentence(found, f"{path}:2: [{table}] {key} cannot be set in a file", code=2)
    assert found.err.endswith("; give it on the command line\n")


@in_turn(
    "text, parts",
    [
        ("spam_cutoff = 0.9", [":1: ", "share (did you mean spam-cutoff?); put it in the table"]),
        ("jobz = 2", [":1: ", "did you mean jobs?"]),
        ("max-size = 5", [":1: ", "max-size", "put it in the table of its command"]),
        ("replace = true", [":1: ", "replace cannot be set in a file"]),
        ("[clasify]\nstrict = true", [":1: ", "did you mean classify?"]),
        ("[evaluate]\nerrors = 1", [":1: ", "did you mean eval?"]),
        ("[config]\nformat = 'json'", [":1: ", "[config]"]),
        ("[model.prune]\nmin-count = 2", [":1: ", "[model-prune]"]),
        ("jobs = 2\n[model]\nmin-count = 2", [":2: ", "[model-prune]"]),
        ("jobs = 2\n\n[model.prune]\nmin-count = 2", [":3: ", "[model-prune]"]),
        ("model = {a = 1}", ["[model-prune]"]),
        ("model = 'a'\n[model.prune]\nmin-count = 2", ["invalid TOML", "[model-prune]"]),
        ("[model-prun]\nmin-count = 2", ["did you mean model-prune?"]),
        ("[classify]\nstrikt = true", [":2: ", "no option --strikt", "did you mean strict?"]),
        ("[classify]\nzzzzz = true", [":2: ", "known are "]),
        ("[[classify]]\nstrict = true", ["classify"]),
        ("strict true", ["invalid TOML", "line 1", "that line"]),
        ("strict = true\nstrict = true", ["invalid TOML", "overwrite"]),
        ("jobs = 0", [":1: jobs: ", "x>=1"]),
        ("jobs = '2'", [":1: jobs: must be an integer; write it as in jobs = 2"]),
        ("strict = 'yes'", [":1: strict: must be true or false"]),
        ("format = 'xml'", [":1: format: 'xml' is not one of 'text', 'json'"]),
        ("x = " + "[" * 5000, ["invalid TOML", "; correct it"]),
    ],
)
def test_a_mistake_is_one_sentence_with_the_remedy(nbspam, config, assert_sentence, text, parts):
    path = config(text)
    assert_sentence(nbspam("config"), path, *parts, code=2)


def test_a_mistake_in_a_table_stops_only_its_command(nbspam, config, model):
    config("[serve]\ntimeout = 0\n")
    assert nbspam("classify", "-m", model, stdin=MAIL).code == 0
    assert nbspam("serve").code == 2


def test_a_file_that_is_no_utf_8_is_refused(nbspam, config, assert_sentence):
    path = config("")
    path.write_bytes(b"[classify]\n# \xc3\xa9\nheader = '\xff'\n# \xfe\n")
    assert_sentence(nbspam("classify"), f"{path}:3: byte 0xff is not UTF-8", "save", code=2)


# What a command says of its values


@in_turn(
    "line, arguments",
    [
        ("spam-cutoff = 1.5", ["classify"]),
        ("ham-cost = -1", ["classify"]),
        ("ham-cutoff = 0.95", ["classify", "-p"]),
        ("encoding = 'klingon'", ["classify"]),
        ("[classify]\nheader = 'Subject'", ["classify", "-p"]),
        ("[classify]\nsubject-tag = ' '", ["classify", "-p"]),
        ("[serve]\nsocket-mode = '9'", ["serve"]),
    ],
)
def test_a_value_that_the_command_refuses_is_named_by_its_line(
    nbspam, config, model, line, arguments
):
    path = config(line)
    number = line.count("\n") + 1
    key = line.rpartition("\n")[2].partition(" ")[0]
    found = nbspam(*arguments, "-m", model, stdin=MAIL)
    assert found.code == (75 if "-p" in arguments else 2)
    assert found.err.startswith(f"nbspam: {path}:{number}: {key}: ")
    assert found.err.count("\n") == 1


def test_an_error_of_the_command_line_names_no_file(nbspam, config, model, assert_sentence):
    config("strict = true\nspam-cutoff = 0.99\n")
    found = nbspam("classify", "-m", model, "--ham-cutoff", "3", stdin=MAIL)
    assert found.err.startswith("nbspam: the ham cut-off must be")


# Precedence


def test_the_command_line_the_environment_the_table_the_top_the_default(
    nbspam, config, monkeypatch, tmp_path
):
    def model_named():
        return nbspam("classify", stdin=MAIL).err.removeprefix("nbspam: ").partition(": there")[0]

    default = model_named()
    assert default.endswith("nbspam/model.json")
    config("model = '/top.json'\n")
    assert model_named() == "/top.json"
    config("model = '/top.json'\n[classify]\nmodel = '/table.json'\n")
    assert model_named() == "/table.json"
    assert "/top.json" in nbspam("explain", stdin=MAIL).err
    monkeypatch.setenv("NBSPAM_MODEL", "/environment.json")
    assert model_named() == "/environment.json"
    assert "/typed.json" in nbspam("classify", "-m", "/typed.json", stdin=MAIL).err
    monkeypatch.setenv("NBSPAM_MODEL", "")
    assert model_named() == "/table.json"
    monkeypatch.setenv("NBSPAM_CONFIG", "")
    assert model_named() == default


def test_a_path_is_of_the_user_s_home_or_beside_the_file(nbspam, config, own_home):
    path = config("model = '~/a.json'\n[classify]\nmodel = 'b.json'\n")
    assert f"{own_home}/a.json" in nbspam("explain").err
    assert f"{path.parent}/b.json" in nbspam("classify").err


@in_turn("typed, form", [((), "json"), (("--format", "text"), "text")])
def test_an_option_goes_before_a_setting(nbspam, config, model, typed, form):
    config("format = 'json'\n")
    found = nbspam("classify", "-m", model, *typed, stdin=MAIL)
    assert found.out.startswith("{") == (form == "json")


def test_a_flag_is_turned_off(nbspam, config, tmp_path, model):
    config("lines = true\n")
    lines = tmp_path / "lines.txt"
    lines.write_text("win a prize\nlunch at noon\n")
    assert nbspam("classify", "-m", model, lines).out.count("\n") == 2
    assert nbspam("classify", "-m", model, lines, "--no-lines").out.count("\n") == 1
    assert nbspam("classify", "-m", model, lines, "--no-lines", "--lines").out.count("\n") == 2


def test_a_source_of_its_own_takes_no_lines_of_a_file(nbspam, config, table, model, tmp_path):
    config("lines = true\n")
    lines = tmp_path / "lines.txt"
    lines.write_text("win a prize\nwin a prize today\n")
    assert nbspam("eval", "-m", model, table, "--including-learned").code == 0
    found = nbspam("eval", "-m", model, "--spam", lines, "--format", "json")
    assert json.loads(found.out)["messages"] == 2


@in_turn("flag", ["--no-passthrough", "--no-exit-code"])
def test_what_must_be_typed_has_no_opposite(nbspam, flag):
    assert "No such option" in nbspam("classify", flag).err


def test_help_hides_the_opposites_and_needs_no_file(nbspam, config):
    config("broken")
    found = nbspam("classify", "--help")
    assert (found.code, found.err) == (0, "")
    assert "--no-lines" not in found.out


# A default makes no command fail that is right without it


def assert_same(found, code=0):
    assert found.err == ""
    assert found.code == code


def commands(table, model, mbox):
    """Return right command lines, by command: the ways that they are used."""
    trained = [str(mbox.parent / "new.json")]
    return {
        "classify": [
            ["classify", "-m", model],
            ["classify", "-p", "-m", model],
            ["classify", "-m", model, table, "--ham-cost", "9"],
            ["classify", "-m", model, "--spam-cutoff", "0.3"],
            ["classify", "-m", model, "--terse"],
            ["classify", "-m", model, "--format", "json"],
        ],
        "explain": [["explain", "-m", model], ["explain", "-m", model, "--words"]],
        "train": [
            ["train", "-m", *trained, table, "--replace"],
            ["train", "-m", model, "--update", "--spam", "-"],
            ["train", "-m", model, "--update", table],
            ["train", "-m", *trained, table, "--replace", "--max-ham-blocked", "10%"],
            ["train", "-m", *trained, table, "--replace", "--scoring", "sum"],
            ["train", "-m", *trained, table, "--replace", "--ham-cost", "9"],
        ],
        "eval": [
            ["eval", "-m", model, table, "--including-learned"],
            ["eval", "--folds", "3", table],
            ["eval", "--online", table],
            ["eval", "--train-first", "50%", "--max-ham-blocked", "10%", table],
            ["eval", "--compare", "bernoulli,multinomial", table],
            ["eval", "--leave-one-out", "--traits", "none", table],
        ],
        "forget": [["forget", "-m", model], ["forget", "-m", model, "--spam", "-"]],
        "model-set": [["model", "set", "-m", model, "--ham-cost", "9"]],
        "model-info": [["model", "info", "-m", model]],
        "model-check": [["model", "check", "-m", model]],
        "model-prune": [["model", "prune", "-m", model, "--max-tokens", "40"]],
        "model-export": [["model", "export", "-m", model]],
    }


# Their values, where not any will do.
SENSIBLE = {
    "spam-cutoff": 0.95, "ham-cutoff": 0.9, "ham-cost": 9.0, "max-ham-blocked": "5%",
    "alpha": 0.2, "prior": 0.4, "traits": "gaussian", "scoring": "evidence", "header": "X-Spam",
    "event-model": "multinomial", "encoding": "utf-8", "text-column": "text",
    "label-column": "label", "subject-tag": "[SPAM]", "variance-smoothing": 1e-8,
    "variance-prior": 2.0, "spam-label": "spam", "model": "unused.json",
}  # fmt: skip
# Options that are for some sources or models only, wherever they are given.
APART = {"text-column", "label-column", "variance-smoothing", "variance-prior", "shared-variance"}


def test_a_limit_that_is_typed_puts_the_base_of_a_file_out_of_force(
    nbspam, config, sample, tmp_path
):
    base, model = tmp_path / "base.json", tmp_path / "model.json"
    assert nbspam("train", "-q", sample / "sms.tsv", "-m", base).code == 0
    config(f"base = {toml(str(base))}\n")
    limit = "--max-ham-blocked", "1%"
    found = nbspam("train", "-q", sample / "sms.tsv", "-m", model, *limit)
    assert (found.code, found.err) == (0, "")
    assert b'"calibrated_by": "training"' in model.read_bytes()


@pytest.mark.parametrize("table", list(commands("t", "m", Path("x"))))
@pytest.mark.few(1)
@pytest.mark.parametrize("every", [False, True])
def test_no_default_makes_a_right_command_fail(nbspam, config, tmp_path, table, make_model, every):
    """Each option beside each command line; of `eval`, which takes its time, beside one of them."""
    texts = ("spam", "win a free prize now"), ("ham", "see you at the meeting")
    rows = "".join(f"{label}\t{text} {i}\n" for i in range(9) for label, text in texts)
    messages = tmp_path / "messages.tsv"
    messages.write_text(f"label\ttext\n{rows}")
    base = tmp_path / "base.json"
    model = make_model(messages, "--replace")
    learned = model.read_bytes()
    base.write_bytes(learned)
    sensible = SENSIBLE | {"base": str(base)}
    lines = commands(messages, "MODEL", tmp_path / "x")[table]
    for number, key in enumerate(KEYS[table]):
        if key in APART or (key == "format" and table == "eval"):
            continue
        beside = lines if every or table != "eval" else [lines[number % len(lines)]]
        for line in beside:
            model.write_bytes(learned)
            value = sensible.get(key, right(SETTABLE[table, key]))
            path = config(f"[{table}]\n{key} = {toml(value)}\n")
            arguments = [model if each == "MODEL" else each for each in line]
            found = nbspam(*arguments, stdin=MAIL)
            path.unlink()
            assert found.code == 0, (key, arguments, found.err)


def test_cut_offs_of_a_file_are_ignored_with_three_classes(
    nbspam, config, three_classes, make_model
):
    model = make_model(three_classes)
    before = nbspam("classify", "-m", model, stdin=MAIL)
    config("spam-cutoff = 0.99\n")
    assert nbspam("classify", "-m", model, stdin=MAIL) == before
    assert nbspam("classify", "-m", model, "--spam-cutoff", "0.9", stdin=MAIL).code == 2


def test_cut_offs_go_together(nbspam, config, model):
    config("spam-cutoff = 0.99\nham-cutoff = 0.98\n[explain]\nham-cost = 9\n")
    assert nbspam("classify", "-m", model, "--spam-cutoff", "0.3", stdin=MAIL).code == 0
    assert nbspam("explain", "-m", model, stdin=MAIL).code == 0


# A mail passes unchanged whatever the file is


BROKEN = {
    "syntax": b"model = ",
    "no UTF-8": b"\xff\xfe",
    "key": b"modell = 'a'",
    "table": b"[clasify]\n",
    "value": b"jobs = 'two'",
    "passthrough": b"[classify]\npassthrough = true",
    "on-error": b"[classify]\non-error = 'deliver'",
    "nested": b"x = " + b"[" * 100_000,
}


@in_turn("what", BROKEN)
def test_a_mail_passes_unchanged_beside_a_broken_file(nbspam, config, model, what):
    config("").write_bytes(BROKEN[what])
    found = nbspam("classify", "-p", "-m", model, stdin=MAIL)
    assert (found.code, found.out.encode()) == (75, MAIL)
    assert found.err.startswith("nbspam: ")
    assert found.err.count("\n") == 1
    found = nbspam("classify", "-p", "--on-error", "deliver", "-m", model, stdin=MAIL)
    assert (found.code, found.out.encode()) == (0, MAIL)
    assert nbspam("classify", "--exit-code", "-m", model, stdin=MAIL).code == 3


@in_turn("path", ["/nonexistent/config.toml", "/"])
def test_a_mail_passes_unchanged_if_the_named_file_is_missing(nbspam, model, monkeypatch, path):
    monkeypatch.setenv("NBSPAM_CONFIG", path)
    found = nbspam("classify", "-p", "-m", model, stdin=MAIL)
    assert (found.code, found.out.encode()) == (75, MAIL)
    assert path in found.err


def test_the_marks_of_a_file_are_written(nbspam, config, model):
    config(f"model = '{model}'\n[classify]\nheader = 'X-Spam-Verdict'\nsubject-tag = '[S]'\n")
    out = nbspam("classify", "-p", stdin=MAIL).out
    assert "\nX-Spam-Verdict: spam, " in out
    assert "\nSubject: [S] prize\n" in out


# Where it is, and whose


def test_where_it_is(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    for name in ("NBSPAM_CONFIG", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert config_place() == "/home/me/.config/nbspam/config.toml"
    for folder, place in (
        ("/etc/me", "/etc/me/nbspam/config.toml"),
        ("relative", "/home/me/.config/nbspam/config.toml"),
    ):
        monkeypatch.setenv("XDG_CONFIG_HOME", folder)
        assert config_place() == place
    monkeypatch.setenv("NBSPAM_CONFIG", "own.toml")
    assert config_place() == "own.toml"
    monkeypatch.setenv("NBSPAM_CONFIG", "")
    assert config_place() is None


def test_a_user_without_a_home_has_none(monkeypatch):
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("NBSPAM_CONFIG", raising=False)
    monkeypatch.setenv("HOME", "~")
    assert config_place() is None


def test_a_file_that_everybody_can_write_to_is_refused(nbspam, config, assert_sentence):
    path = config("strict = true\n")
    path.chmod(0o664)
    assert nbspam("config").code == 0
    path.chmod(0o666)
    assert_sentence(nbspam("config"), path, "chmod o-w", code=2)


def test_a_file_of_another_user_must_be_named(nbspam, config, monkeypatch, assert_sentence):
    path = config("strict = true\n")
    owner = path.stat().st_uid
    if owner == 0:  # whose files anybody may use
        os.chown(path, 12345, -1)
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    assert_sentence(nbspam("config"), path, "belongs to another user", code=2)
    monkeypatch.setenv("NBSPAM_CONFIG", str(path))
    assert nbspam("config").code == 0


# nbspam config


@in_turn("table, key", SETTABLE)
def test_every_value_holds_in_a_way_that_is_checked(table, key):
    parser = CONTEXTS[table].command.make_parser(CONTEXTS[table])
    parsed = [parser.parse_args(args=list(way))[0] for way in WAYS.get(table, ((),))]
    typed = [set(values) - {"sources", "source"} for values in parsed]
    assert any(_holds(key, table, names) for names in typed)


REFUSED = {
    "cut-offs": ("[classify]\nham-cutoff = 0.9\nspam-cutoff = 0.5", [":2: ", ":3: "], ()),
    "cut-offs of all": ("ham-cost = 9\nspam-cutoff = 0.5", [":1: ham-cost: "], ()),
    "header": ("[classify]\nheader = 'Subject'", [":2: header: "], ("-p",)),
    "tag": ("[classify]\nsubject-tag = ' '", [":2: subject-tag: "], ("-p",)),
    "terse": ("[classify]\nformat = 'json'\nterse = true", [":2: format", ":3: terse"], ()),
    "terse of all": ("format = 'json'\n[classify]\nterse = true", [":1: ", ":3: "], ()),
    "learn-from": ("[classify]\nlearn-from = 0.1", [":2: learn-from: "], ("--learn",)),
    "encoding": ("encoding = 'klingon'", [":1: encoding: "], ()),
    "with the model": ("ham-cutoff = 0.95", [":1: ham-cutoff: "], ()),
}


@in_turn("case", REFUSED)
def test_what_stops_classify_is_found_by_config(
    nbspam, config, model, monkeypatch, assert_sentence, case
):
    text, parts, options = REFUSED[case]
    path = config(text)
    monkeypatch.setenv("NBSPAM_MODEL", str(model))
    found = nbspam("config")
    assert_sentence(found, path, *parts, code=2)
    assert nbspam("config", "classify").err == found.err
    stopped = nbspam("classify", *options, stdin=MAIL)
    assert stopped.code == (75 if "-p" in options else 2)
    assert stopped.err == found.err


@in_turn(
    "text, part",
    [
        ("[train]\nalpha = -1", ":2: alpha: "),
        ("[train]\nprior = 1.5", ":2: prior: "),
        ("[train]\nvariance-prior = 2", ":2: variance-prior: "),
        ("[train]\nspam-cutoff = 1.5", ":2: spam-cutoff: "),
        ("[train]\nsure-from = 7", ":2: sure-from: "),
        ("[train]\nmax-ham-blocked = '7'", ":2: max-ham-blocked: "),
        ("[train]\nmax-ham-blocked = '1%'\nham-cost = 9", ":2: max-ham-blocked"),
        ("[train]\nevent-model = 'none'\ntraits = 'none'", "event-model"),
        ("[train]\nencoding = 'klingon'", ":2: encoding: "),
        ("[forget]\nencoding = 'klingon'", ":2: encoding: "),
        ("[eval]\nbatch = 0", ":2: batch: "),
        ("[eval]\nalpha = 0", ":2: alpha: "),
        ("[eval]\nmax-ham-blocked = 'some'", ":2: max-ham-blocked: "),
        ("[eval]\nham-cost = -1", ":2: ham-cost: "),
        ("[explain]\nspam-cutoff = -1", ":2: spam-cutoff: "),
        ("[model-import]\nalpha = 0", ":2: alpha: "),
        ("[serve]\nlisten = 'here'", ":2: listen: "),
        ("[serve]\nlisten = '0.0.0.0:783'", ":2: listen: "),
        ("[serve]\nmetrics = '[::]:783'", ":2: metrics: "),
        ("[serve]\nham-cost = 0", ":2: ham-cost: "),
        ("[imap-filter]\nham-cost = 0", ":2: ham-cost: "),
        ("[imap-filter]\nunsure-keyword = 'two words'", ":2: unsure-keyword: "),
        ("[imap-filter]\ntrust-after = 'soon'", ":2: trust-after: "),
        ("[imap-learn]\ntrust-after = 'soon'", ":2: trust-after: "),
        ("[imap-watch]\nunsure-keyword = 'two words'", ":2: unsure-keyword: "),
    ],
)
def test_config_finds_what_other_commands_refuse(nbspam, config, assert_sentence, text, part):
    path = config(text)
    assert_sentence(nbspam("config"), path, part, code=2)


@in_turn(
    "text",
    [
        "[serve]\nlisten = '0.0.0.0:783'\nallow-any-address = true",
        "[serve]\nlisten = 'mail.example.org:783'\nmetrics = '/run/a.sock'",
        "spam-cutoff = 0.99\nham-cutoff = 0.1\njobs = 2\nlog = 'syslog'\nformat = 'json'",
        "[train]\nmax-ham-blocked = '0.1%'\nsure-from = 0.9\nseen = true",
        "[eval]\nmax-ham-blocked = '0.1%'\nbatch = 100\nerrors = 10\nevent-model = 'multinomial'",
        "[classify]\nheader = 'X-Spam'\nevidence = 3\nlearn-from = 0.9\nlog = 'stderr'",
        "[model-prune]\nmin-count = 2",
        "[imap-filter]\nunsure-keyword = 'Unsure'\ntrust-after = '7d'",
    ],
)
def test_what_commands_take_is_right(nbspam, config, model, text):
    path = config(text + "\n")
    before = model.read_bytes()
    assert nbspam("config").err == ""
    assert (sorted(path.parent.iterdir()), model.read_bytes()) == ([path], before)


def test_values_are_checked_without_a_model_and_without_a_home(
    nbspam, config, own_home, monkeypatch, assert_sentence
):
    path = config("[classify]\nham-cutoff = 0.95\n")
    assert nbspam("config").err == ""  # only a model would say that it is wrong
    (own_home / "broken.json").write_text("{")
    monkeypatch.setenv("NBSPAM_MODEL", str(own_home / "broken.json"))
    assert nbspam("config").err == ""
    monkeypatch.delenv("NBSPAM_MODEL")
    monkeypatch.setenv("NBSPAM_CONFIG", str(path))
    monkeypatch.setenv("HOME", "~")
    assert nbspam("config").err == ""
    config("model = '/none.json'\nspam-cutoff = 7\n")
    assert_sentence(nbspam("config"), path, ":2: spam-cutoff", code=2)


def test_a_limit_of_a_file_does_not_stop_training_on_errors(nbspam, config, table, tmp_path):
    config("[train]\nmax-ham-blocked = '1%'\n")
    found = nbspam("train", "--on-error", table, "-m", tmp_path / "new.json")
    assert (found.code, found.err) == (0, "")


def test_config_prints_what_is_set_and_where(nbspam, config, monkeypatch):
    path = config('jobs = 2\n\n["classify"]\nheader = "X-Spam"\n')
    monkeypatch.setenv("NBSPAM_MODEL", "m.json")
    found = nbspam("config")
    assert found.out.splitlines() == [
        f"config file: {path}",
        "option             value     from",
        'model              "m.json"  $NBSPAM_MODEL',
        "jobs               2         line 1",
        '[classify] header  "X-Spam"  line 4',
    ]
    rows = json.loads(nbspam("config", "--format", "json").out)
    assert rows["file"] == str(path)
    assert rows["settings"][2] == {
        "option": "[classify] header", "value": "X-Spam", "from": "file",
        "name": "[classify] header", "line": 4,
    }  # fmt: skip


def test_config_without_a_file(nbspam, own_home):
    found = nbspam("config")
    assert found.out == (
        f"config file: none ({own_home}/.config/nbspam/config.toml does not exist)\n"
        "nothing is set; every option has its built-in default\n"
    )


@in_turn("table", CONTEXTS)
def test_config_prints_every_option_of_a_command(nbspam, table):
    found = nbspam("config", *command_of(table))
    assert found.code == 0
    for key in KEYS[table]:
        assert re.search(rf"^{key}\s", found.out, re.MULTILINE), key


def test_config_prints_the_name_even_of_a_broken_file(nbspam, config):
    path = config("broken")
    assert nbspam("config", "--path").out == f"{path}\n"


def test_config_of_no_command_is_refused(nbspam, assert_sentence):
    assert_sentence(nbspam("config", "clasify"), "clasify", "classify", code=2)


def test_the_documented_example_holds(nbspam, config):
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    example = readme.partition("```toml\n")[2].partition("```")[0]
    assert len(tomllib.loads(example)) > 3
    config(example)
    assert nbspam("config").err == ""
