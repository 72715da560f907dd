"""Options and the config file: what it sets, what is wrong with it, and what --help shows."""

import json
import os
import re
import socket
import tomllib
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from one_case import each
from running import ROOT, commands

from nbspam.cli.notes import default_model
from nbspam.cli.options import FileName
from nbspam.cli.settings import KEYS

MAIL = b"From: a@example.org\nSubject: prize\n\nwin a free prize now\n"
OPTIONS = {name: command.options() for name, command in commands()}
SERVE = {option.flag[2:]: option for option in OPTIONS["serve"]}


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
    texts = {"socket-mode": "0640", **dict.fromkeys(("listen", "metrics"), "127.0.0.1:783")}
    text = texts.get(option.flag[2:], "@example.org")
    return [text] if option.multiple else text


# What it sets


def test_the_keys_are_options_of_several_commands():
    configurable = [
        option.flag[2:] for options in OPTIONS.values() for option in options if option.configurable
    ]
    assert set(configurable) == set(KEYS)
    assert all(configurable.count(key) > 2 for key in KEYS)


@each("typed", [(), ("--listen", "127.0.0.1:0")])
def test_a_typed_place_takes_the_place_of_the_files(nbspam, config, model, monkeypatch, typed):
    families = []

    def serve(_, __, listeners, *___):
        families.extend(one.family for one in listeners)
        return SimpleNamespace(run=lambda _: None)

    monkeypatch.setattr("nbspam.cli.serve.Server", serve)
    config('[serve]\nsocket = "s"\nworkers = 1\n')
    assert nbspam("serve", "-q", "-m", model, *typed).code == 0
    assert families == [socket.AF_INET if typed else socket.AF_UNIX]


@each("key", [*KEYS, *(f"[serve] {key}" for key in SERVE if key not in KEYS)])
def test_every_setting_is_taken_and_printed(nbspam, config, key):
    table, _, name = key.rpartition(" ")
    options = OPTIONS["serve"] if table else OPTIONS["classify"]
    option = next(option for option in options if option.flag == f"--{name}")
    value = right(option)
    proof = "trust-from = true\n" if name == "allow" else ""
    path = config(f"{proof}{table}\n{name} = {json.dumps(value)}\n")
    found = nbspam("config", "--format", "json")
    assert found.err == ""
    (row,) = [row for row in json.loads(found.out)["settings"] if row["option"] == key]
    if isinstance(option.type, click.Path):
        value = str(path.parent / value)
    assert row == {
        "option": key,
        "value": value,
        "from": "file",
    }


def test_a_key_of_the_server_stands_beside_the_common_one(nbspam, config):
    config('model = "/a.json"\n[serve]\nmodel = "/b.json"\n')
    assert nbspam("config").out.splitlines()[1:] == [
        'model = "/a.json" (file)',
        '[serve] model = "/b.json" (file)',
    ]
    assert "/b.json: model not found" in nbspam("serve", "--socket", "s").err


def test_the_command_line_goes_before_the_environment_and_that_before_the_file(
    nbspam, config, monkeypatch
):
    config('model = "~/file.json"\n')
    assert "file.json: model not found" in nbspam("classify", stdin=MAIL).err
    monkeypatch.setenv("NBSPAM_MODEL", "/environment.json")
    assert "/environment.json: model not found" in nbspam("classify", stdin=MAIL).err
    assert "/typed.json: model not found" in nbspam("classify", "-m", "/typed.json", stdin=MAIL).err


def test_a_base_of_the_file_is_named_as_such_where_an_option_excludes_it(
    nbspam, config, table, assert_sentence
):
    config('base = "base.json"\n')
    found = nbspam("train", "-m", "new.json", table, "--max-ham-blocked", "1%")
    assert_sentence(found, "--max-ham-blocked and --base of the config file cannot", code=2)


def test_the_documented_example_holds(nbspam, config):
    page = (ROOT / "docs" / "config.md").read_text("utf-8")
    example = page.partition("```toml\n")[2].partition("```")[0]
    assert len(tomllib.loads(example)) > 3
    config(example)
    assert nbspam("config").err == ""


# What is wrong with it

WRONG = [
    (
        "seen = true",
        "seen: cannot be set here; its keys are allow, auth-host",
    ),
    ("socket = 's'", "socket: cannot be set here; its keys are", "[serve], for any option of"),
    ("modle = 'a'", "modle: cannot be set here; did you mean model?"),
    ("auth_host = 'a'", "auth_host: cannot be set here; did you mean auth-host?"),
    ("[Server]\nsocket = 's'", "Server: cannot be set here; did you mean serve?"),
    ("[[serve]]\nsocket = 's'", "serve: is a table; write [serve] above its keys"),
    ("model = {a = 1}", "model: must be text in quotes"),
    ("[classify]\nstrict = true", "classify: cannot be set"),
    ("mail = 1", "mail: is a table; write [mail.NAME] above its keys"),
    ("jobs = 0", "jobs: 0 is not in the range x>=1; correct it"),
    ("jobs = true", "jobs: must be a whole number"),
    ("jobs = 1.5", "jobs: must be a whole number"),
    ("model = 5", "model: must be text in quotes"),
    ('model = "a\\u0000"', "model: contains a NUL character"),
    ("model = ['a']", "model: must be text"),
    ("model = 's3://a/b'", "model: s3://a/b is a URL, and a file is needed; download it"),
    ("jobs = 1\njobs = 2", "invalid TOML"),
    ("jobs 1", "invalid TOML", "line 1"),
    ("x = " + "[" * 5_000, "invalid TOML"),
    ("jobs = 1 # \udcff", "is not UTF-8 ('utf-8' codec", "; save it as UTF-8"),
]
WRONG_FOR_THE_SERVER = [
    ("[serve]\nseen = true", "config.toml: [serve] seen: unknown option; see nbspam serve --help"),
    ("[serve]\nmax_size = 1", "[serve] max_size: unknown option; did you mean max-size?"),
    ("[serve]\ntimeout = nan", "config.toml: [serve] timeout must be a number of seconds, such"),
    ("[serve]\ntell = 'yes'", "[serve] tell: must be true or false"),
    ("[serve]\nsocket-mode = 0o660", "[serve] socket-mode: must be text in quotes"),
    ("[serve]\nsocket = ''", "[serve] socket: must be text in quotes, and not empty"),
    ("[serve]\nmax-size = 1.5", "max-size: must be a whole number"),
    ("[serve]\ntimeout = '9'", "timeout: must be a number"),
    ("[serve]\nspam-cutoff = 2.0", "config.toml: [serve] spam-cutoff: the spam cut-off must be"),
    ("[serve]\nspam-cutoff = 0.9\nham-cutoff = 7.0", "[serve] ham-cutoff: the ham cut-off must be"),
    ("[serve]\nspam-cutoff = 0.3\nham-cutoff = 0.6", "[serve] ham-cutoff: the ham cut-off, 0.6"),
    ("[serve]\nham-cost = -1.0", "config.toml: [serve] ham-cost: the ham cost must be above 0"),
    ("[serve]\nlisten = '0.0.0.0:783'", "config.toml: [serve] listen 0.0.0.0:783 can be reached"),
    ("[serve]\nham-cost = 9\nspam-cutoff = 0.9", "cost"),
    ("[serve]\nworkers = 1000", "workers: 1000 is not in the range"),
    ("[serve]\nsocket-mode = '9'", "config.toml: [serve] socket-mode '9' is not a file mode"),
    ("[serve]\nmetrics = 'x'", "config.toml: [serve] metrics 'x' is not HOST:PORT"),
]


WRONG_SENDERS = [
    ("block = ['@a.org', 5]", "config.toml: block: must be text"),
    ("block = 'a.org'", "config.toml: block: 'a.org' is not a sender; write"),
    ("block = ['file:none']", "config.toml: block: /", "/nbspam/none cannot be read (No such file"),
    ("allow = ['@a.org']", "config.toml: allow: allowed senders need a proof", "auth-host in the"),
    ("block = ['file:/']", "config.toml: block: / cannot be read (Is a directory); correct it"),
    ("block = ['file:config.toml']", "/nbspam/config.toml:1: ", "is not a sender; write"),
    ("trust-from = 'yes'", "config.toml: trust-from: must be true or false"),
]


@each("wrong", WRONG_SENDERS)
def test_a_mistake_in_the_lists_stops_what_has_them(nbspam, config, assert_sentence, model, wrong):
    text, *parts = wrong
    config(text)
    for command in ("config", "classify", "explain", "mail filter /", "serve --socket s"):
        assert_sentence(nbspam(*command.split(), stdin=MAIL), *parts, code=2)
    passed = nbspam("classify", "-p", "-m", model, stdin=MAIL)
    assert (passed.code, passed.out.encode()) == (75, MAIL)


def test_a_mistake_in_a_list_names_the_option_or_the_table(nbspam, config, assert_sentence):
    config("[serve]\nblock = 'a.org'\n")
    assert_sentence(nbspam("serve", "--socket", "s"), "toml: [serve] block: 'a.org' is not", code=2)
    assert_sentence(nbspam("config"), "toml: [serve] block: 'a.org' is not", code=2)
    assert_sentence(nbspam("classify", "--block", "b.org", stdin=MAIL), "--block: 'b.org'", code=2)


def test_the_host_of_a_place_is_enough_for_its_lists_alone(nbspam, config, assert_sentence):
    lists, host = 'allow = "@a.org"\n', 'auth-host = "mx.example.net"\n'
    place = f'[mail.home]\nmaildir = "/m"\n{host}'
    config(lists + place)
    checked = nbspam("config")
    assert (checked.code, checked.err.count("\n")) == (0, 1)
    assert "only nbspam mail can use it" in checked.err
    assert "need a proof" in nbspam("classify", stdin=MAIL).err
    for wrong in (f'{place}[mail.work]\nmaildir = "/m"\n', f"[serve]\nworkers = 2\n{place}"):
        config(lists + wrong)
        assert_sentence(nbspam("config"), "allowed senders need a proof", code=2)
    config(lists + host + place)
    assert nbspam("config").err == ""


@each("wrong", WRONG)
def test_a_mistake_stops_every_command_but_passes_the_message(
    nbspam, config, assert_sentence, wrong
):
    text, *parts = wrong
    path = config("")
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    for command in ("config", "train -q", "classify"):
        assert_sentence(nbspam(*command.split(), stdin=MAIL), path, *parts, code=2)
    passed = nbspam("classify", "-p", stdin=MAIL)
    assert (passed.code, passed.out.encode()) == (75, MAIL)
    assert nbspam("classify", "--help").err == nbspam("config", "--path").err == ""


@each("wrong", WRONG_FOR_THE_SERVER)
def test_a_mistake_of_the_server_stops_no_mail(nbspam, config, model, assert_sentence, wrong):
    text, *parts = wrong
    config(text)
    for command in ("config", "serve"):
        assert_sentence(nbspam(command), *parts, code=2)
    assert nbspam("classify", "-p", "-m", model, stdin=MAIL).code == 0


@each("text", ["", "\n# nothing\n", "\ufeffjobs = 2\n", "jobs = 2\r\n"])
def test_an_empty_file_and_one_of_another_system_are_right(nbspam, config, text):
    config("").write_bytes(text.encode())
    found = nbspam("config")
    assert (found.code, found.err) == (0, "")
    assert ("jobs = 2 (file)" in found.out) == ("jobs" in text)


def test_a_file_that_others_may_have_written_is_refused(
    nbspam, config, monkeypatch, tmp_path, assert_sentence
):
    path = config("jobs = 2\n")
    path.chmod(0o666)
    assert_sentence(nbspam("config"), path, "run chmod o-w on it", code=2)
    path.chmod(0o660)
    owner = path.stat().st_uid
    if owner == 0:  # whose files anybody may use
        os.chown(path, 12345, -1)
    monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    assert_sentence(nbspam("config"), path, "belongs to another user", code=2)
    monkeypatch.setenv("NBSPAM_CONFIG", str(path))
    assert nbspam("config").code == 0
    os.mkfifo(tmp_path / "pipe")
    for name, said in (("", "regular file"), ("none", "cannot read"), ("pipe", "regular file")):
        other = tmp_path / name
        monkeypatch.setenv("NBSPAM_CONFIG", str(other))
        assert_sentence(nbspam("config"), other, said, "NBSPAM_CONFIG", code=2)


# Options


@given(st.text(alphabet="/.a~ ", max_size=8))
@example("")
def test_a_file_s_name_is_written_as_pathlib_writes_it(name):
    assert FileName().coerce_path_result(name) == str(Path(name))


@each("command", ["classify -p -m", "train -m", "serve -m", "classify --base", "model info"])
def test_a_url_is_no_file(nbspam, assert_sentence, command):
    found = nbspam(*command.split(), "http://u:secret@x.example//m.json", stdin=MAIL)
    what = "http://u:…@x.example//m.json is a URL, and a file is needed; download it, and name the"
    if "-p" in command:
        assert (found.code, found.out.encode(), what in found.err) == (75, MAIL, True)
    else:
        assert_sentence(found, what, code=2)


@each("home", ["/home/me", "/", "/home/me/"])
@each("data", ["", "/data", "/"])
def test_the_default_model_is_in_the_folder_of_data(monkeypatch, home, data):
    monkeypatch.setattr("sys.platform", "linux")
    for name, value in (("HOME", home), ("XDG_DATA_HOME", data), ("NBSPAM_MODEL", "")):
        monkeypatch.setenv(name, value)
    folder = Path(data) if data else Path(home, ".local", "share")
    assert default_model() == os.fspath(folder / "nbspam" / "model.json")


def test_every_option_that_is_named_beside_another_is_an_option_of_some_command():
    flags = {option.flag for options in OPTIONS.values() for option in options}
    for option in (option for options in OPTIONS.values() for option in options):
        assert {*option.requires.split(), *option.conflicts_with.split()} <= flags


USELESS = {
    "serve --socket s": [
        ("--max-users 9", "--user-models"),
        ("--allow-any-address", "--listen or --metrics"),
        ("--auth-host mx --block a@b.org", "--allow or --user-models"),
    ],
    "serve --listen :783": [("--socket-mode 0660", "--socket or --metrics")],
    "mail filter /": [("--trust-after 7d", "--learn"), ("--trust-from", "--allow")],
    "mail watch /": [("--trust-after 7d", "--learn"), ("--auth-host mx", "--allow")],
    "classify": [("--trust-from", "--allow"), ("--header X", "--passthrough")],
    "explain": [("--auth-host mx", "--allow")],
    "eval a": [("--batch 2", "--online"), ("--max-ham-blocked 1% --online", "--train-first")],
}


@each("command, options, needed", [(c, *row) for c, rows in USELESS.items() for row in rows])
def test_an_option_that_does_nothing_without_another_is_refused(
    nbspam, assert_sentence, config, command, options, needed
):
    flag = options.split()[0]
    found = nbspam(*command.split(), *options.split(), stdin=MAIL)
    assert_sentence(found, f"{flag} needs {needed}; add that, or leave out {flag}", code=2)


def test_what_the_file_sets_may_await_another_option(nbspam, config, model):
    """Those of one run are typed, and `nbspam mail` has an auth-host for lists of its own."""
    config('auth-host = "mx"\n[serve]\nmax-users = 9\nsocket-mode = "0660"\n')
    assert nbspam("config").err == nbspam("classify", "-m", model, stdin=MAIL).err == ""


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
    known = "Sources: Mail: Sockets: Serving: Test: Model: Cut-offs: Senders: Output: More:".split()
    assert [known.index(heading) for heading in headings] == sorted(map(known.index, headings))
    assert [line for line in short.splitlines() if line in headings] == headings
