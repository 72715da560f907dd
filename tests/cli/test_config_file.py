"""The config file: what it may say, what holds, and that it never harms a command or a mail."""

import json
import os
import re
import tomllib
from pathlib import Path

import click
import pytest
from golden_rows import golden_rows
from one_case import each

from nbspam.cli.configured import Command, ways
from nbspam.cli.declared import command_words, config_place, holds, table_of
from nbspam.cli.settings import SHARED, command_contexts, options_of

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


@each("text, parts", golden_rows("config_mistakes.txt"))
def test_a_mistake_is_one_sentence_with_the_remedy_wherever_it_is_found(
    nbspam, config, model, monkeypatch, assert_sentence, text, parts
):
    *parts, last = parts
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


def test_a_mistake_in_a_table_stops_only_its_command(nbspam, config, model):
    config("[serve]\ntimeout = 0\n")
    assert nbspam("classify", "-m", model, stdin=MAIL).code == 0
    assert nbspam("serve").code == 2


def test_a_file_that_is_no_utf_8_is_refused(nbspam, config, assert_sentence):
    path = config("")
    path.write_bytes(b"[classify]\n# \xc3\xa9\nheader = '\xff'\n# \xfe\n")
    assert_sentence(nbspam("classify"), f"{path}:3: byte 0xff is not UTF-8", "save", code=2)


def test_an_error_of_the_command_line_names_no_file(nbspam, config, model):
    config("strict = true\nspam-cutoff = 0.99\n")
    found = nbspam("classify", "-m", model, "--ham-cutoff", "3", stdin=MAIL)
    assert found.err.startswith("nbspam: the ham cut-off must be")


# Precedence


def test_the_command_line_the_environment_the_table_the_top_the_default(
    nbspam, config, monkeypatch, own_home
):
    def model_named():
        return (
            nbspam("classify", stdin=MAIL)
            .err.removeprefix("nbspam: ")
            .partition(": model not found")[0]
        )

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
    path = config("model = '~/a.json'\n[classify]\nmodel = 'b.json'\n")
    assert f"{own_home}/a.json" in nbspam("explain").err
    assert f"{path.parent}/b.json" in nbspam("classify").err
    monkeypatch.setenv("NBSPAM_CONFIG", "")
    assert model_named() == default


def test_an_option_goes_before_a_setting_and_turns_a_flag_off(nbspam, config, tmp_path, model):
    config("format = 'json'\n")
    assert nbspam("classify", "-m", model, stdin=MAIL).out.startswith("{")
    assert not nbspam("classify", "-m", model, "--format", "text", stdin=MAIL).out.startswith("{")
    config("lines = true\n")
    lines = tmp_path / "lines.txt"
    lines.write_text("win a prize\nlunch at noon\n")
    for typed, n in (((), 2), (("--no-lines",), 1), (("--no-lines", "--lines"), 2)):
        assert nbspam("classify", "-m", model, lines, *typed).out.count("\n") == n
    for flag in ("--no-passthrough", "--no-exit-code"):  # what must be typed has no opposite
        assert "no such option" in nbspam("classify", flag).err
    config("broken")  # which no help needs
    found = nbspam("classify", "--help")
    assert (found.code, found.err, "--no-lines" in found.out) == (0, "", False)
    assert "--outside" in nbspam("classify", "--help-all").out


def test_a_source_of_its_own_takes_no_lines_of_a_file(nbspam, config, table, model, tmp_path):
    config("lines = true\n")
    lines = tmp_path / "lines.txt"
    lines.write_text("win a prize\nwin a prize today\n")
    assert nbspam("eval", "-m", model, table, "--including-learned").code == 0
    found = nbspam("eval", "-m", model, "--spam", lines, "--format", "json")
    assert json.loads(found.out)["messages"] == 2


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
    "model-export": "-m MODEL",
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


def test_a_limit_that_is_typed_puts_the_base_of_a_file_out_of_force(nbspam, config, table, model):
    config(f"base = {toml(str(model))}\n")
    new = model.with_name("new.json")
    found = nbspam("train", "-q", table, "-m", new, "--max-ham-blocked", "1%")
    assert (found.code, found.err) == (0, "")
    assert b'"calibrated_by": "training"' in new.read_bytes()


def test_cut_offs_of_a_file_go_together_and_are_of_two_classes(
    nbspam, config, model, three_classes, make_model
):
    three = make_model(three_classes, name="three.json")
    before = nbspam("classify", "-m", three, stdin=MAIL)
    config("spam-cutoff = 0.99\nham-cutoff = 0.98\n[explain]\nham-cost = 9\n")
    assert nbspam("classify", "-m", three, stdin=MAIL) == before
    assert nbspam("classify", "-m", three, "--spam-cutoff", "0.9", stdin=MAIL).code == 2
    assert nbspam("classify", "-m", model, "--spam-cutoff", "0.3", stdin=MAIL).code == 0
    assert nbspam("explain", "-m", model, stdin=MAIL).code == 0


# A mail passes unchanged whatever the file is


BROKEN = [
    *(b"model = ", b"\xff\xfe", b"modell = 'a'", b"[clasify]\n", b"jobs = 'two'"),
    *(b"[classify]\npassthrough = true", b"[classify]\non-error = 'deliver'"),
    b"x = " + b"[" * 100_000,
]


@each("text", BROKEN)
def test_a_mail_passes_unchanged_beside_a_broken_file(nbspam, config, model, text):
    config("").write_bytes(text)
    found = nbspam("classify", "-p", "-m", model, stdin=MAIL)
    assert (found.code, found.out.encode()) == (75, MAIL)
    assert found.err.startswith("nbspam: ")
    assert found.err.count("\n") == 1
    found = nbspam("classify", "-p", "--on-error", "deliver", "-m", model, stdin=MAIL)
    assert (found.code, found.out.encode()) == (0, MAIL)
    assert nbspam("classify", "--exit-code", "-m", model, stdin=MAIL).code == 3


@each("path", ["/nonexistent/config.toml", "/"])
def test_a_mail_passes_unchanged_if_the_named_file_is_missing(nbspam, model, monkeypatch, path):
    monkeypatch.setenv("NBSPAM_CONFIG", path)
    found = nbspam("classify", "-p", "-m", model, stdin=MAIL)
    assert (found.code, found.out.encode(), path in found.err) == (75, MAIL, True)


def test_the_marks_of_a_file_are_written(nbspam, config, model):
    config(f"model = '{model}'\n[classify]\nheader = 'X-Spam-Verdict'\nsubject-tag = '[S]'\n")
    out = nbspam("classify", "-p", stdin=MAIL).out
    assert "\nX-Spam-Verdict: spam, " in out
    assert "\nSubject: [S] prize\n" in out


# Where it is, and whose


@each(
    "environment, place",
    [
        ({}, "/home/me/.config/nbspam/config.toml"),
        ({"XDG_CONFIG_HOME": "/etc/me"}, "/etc/me/nbspam/config.toml"),
        ({"XDG_CONFIG_HOME": "relative"}, "/home/me/.config/nbspam/config.toml"),
        ({"NBSPAM_CONFIG": "own.toml"}, "own.toml"),
        ({"NBSPAM_CONFIG": ""}, None),
        ({"HOME": "~"}, None),
    ],
)
def test_where_it_is(environment, place):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ({"HOME": "/home/me"} | environment).items():
            patch.setenv(name, value)
        assert config_place() == place


def test_a_file_that_others_can_write_is_refused(nbspam, config, monkeypatch, assert_sentence):
    path = config("strict = true\n")
    path.chmod(0o664)
    assert nbspam("config").code == 0
    path.chmod(0o666)
    assert_sentence(nbspam("config"), path, "chmod o-w", code=2)
    path.chmod(0o600)
    owner = path.stat().st_uid
    if owner == 0:  # whose files anybody may use
        os.chown(path, 12345, -1)
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    assert_sentence(nbspam("config"), path, "belongs to another user", code=2)
    monkeypatch.setenv("NBSPAM_CONFIG", str(path))  # it is named
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


@each(
    "text",
    [
        "[serve]\nlisten = '0.0.0.0:783'\nallow-any-address = true",
        "[serve]\nlisten = 'mail.example.org:783'\nmetrics = '/run/a.sock'",
        "spam-cutoff = 0.99\nham-cutoff = 0.1\njobs = 2\nlog = 'syslog'\nformat = 'json'",
        "[train]\nmax-ham-blocked = '0.1%'\nseen = true",
        "[eval]\nmax-ham-blocked = '0.1%'\nbatch = 100\nerrors = 10\nevent-model = 'multinomial'",
        "[classify]\nheader = 'X-Spam'\nevidence = 3\nlog = 'stderr'",
        "[model-prune]\nmin-count = 2",
        "[mail-filter]\nunsure-keyword = 'Unsure'\ntrust-after = '7d'",
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


def test_config_prints_what_is_set_and_where(nbspam, config, own_home, monkeypatch):
    assert nbspam("config").out == (
        f"config file: none ({own_home}/.config/nbspam/config.toml does not exist)\n"
        "no option is set; every option has its built-in default\n"
    )
    path = config('jobs = 2\n\n["classify"]\nheader = "X-Spam"\n')
    monkeypatch.setenv("NBSPAM_MODEL", "m.json")
    assert nbspam("config").out.splitlines() == [
        f"config file: {path}",
        "option             value     from",
        'model              "m.json"  $NBSPAM_MODEL',
        "jobs               2         line 1",
        '[classify] header  "X-Spam"  line 4',
    ]
    rows = json.loads(nbspam("config", "--format", "json").out)
    assert rows["file"] == str(path)
    header = {"option": "[classify] header", "name": "[classify] header", "value": "X-Spam"}
    assert rows["settings"][2] == header | {"from": "file", "line": 4}
    monkeypatch.delenv("NBSPAM_MODEL")
    config('[mail.home]\nhost = "m.example.org"\nuser = "hal"\n')
    assert nbspam("config").out.splitlines()[2:] == ["[mail.home]  hal@m.example.org  line 1"]
    config("broken")
    assert nbspam("config", "--path").out == f"{path}\n"


@each("table", CONTEXTS)
def test_config_prints_every_option_of_a_command(nbspam, table):
    found = nbspam("config", *command_of(table))
    assert found.code == 0
    for key in KEYS[table]:
        assert re.search(rf"^{key}\s", found.out, re.MULTILINE), key


def test_the_documented_example_holds(nbspam, config):
    page = (Path(__file__).parents[2] / "docs" / "config.md").read_text("utf-8")
    example = page.partition("```toml\n")[2].partition("```")[0]
    assert len(tomllib.loads(example)) > 3
    config(example)
    assert nbspam("config").err == ""
