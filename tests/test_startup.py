"""A mail filter runs once a message: what one message needs must not load what many need."""

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from counted_models import COMBINATIONS

import nbspam
from nbspam.patterns import lazy_pattern

SAMPLE = Path(__file__).parents[1] / "sample_data"
HEAVY = {"numpy", "scipy", "pandas", "rich", "sklearn", "pyarrow", "dask", "distributed"}


def run(*arguments, flags=(), message=b"win a free prize", **environment):
    done = subprocess.run(
        [sys.executable, *flags, *map(str, arguments)],
        input=message,
        capture_output=True,
        timeout=60,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPROFILEIMPORTTIME"}
        | environment,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stderr.decode().splitlines()


def loaded_in(*arguments, **options):
    """Return the modules that a run of Python loads."""
    lines = run(*arguments, flags=("-X", "importtime"), **options)
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


def loaded_by(*arguments, config="", **options):
    """Return the modules that a run of nbspam loads."""
    return loaded_in("-m", "nbspam", *arguments, NBSPAM_CONFIG=str(config), **options)


once = functools.cache(loaded_by)  # the modules of the first run of its kind


def packages(names):
    return {name.split(".")[0] for name in names}


@functools.cache
def ours_loaded(*arguments):
    """Return the modules of ours that are loaded when a run of nbspam ends.

    `-X importtime` does not list what `importlib.import_module` is asked for, such as a command.
    """
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('loaded', *sys.modules, file=sys.stderr))\n"
        "from nbspam.__main__ import main\n"
        "main()"
    )
    lines = run("-c", code, *arguments, NBSPAM_DEBUG="1")  # which ends the process as usual
    (line,) = [each for each in lines if each.startswith("loaded ")]
    return {name for name in line.split() if name.startswith("nbspam.")}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("startup") / "model.json"
    nbspam.train(SAMPLE / "fresh.tsv").save(path)
    return path


# Nothing heavy


def test_the_measure_sees_what_training_loads(tmp_path):
    rows = b"spam\twin a prize\nham\tlunch at noon\n"
    names = loaded_by("train", "-", "-m", tmp_path / "model.json", message=rows)
    assert packages(names) & (HEAVY | {"nbspam", "click"}) == {"nbspam", "click", "numpy"}


# The first four are the cases of the default run: one of each kind.
LIGHT = """--help|model check|train --update --spam - -m NEW|classify SMS
--version|classify --help|explain --help|train --help|eval --help|model --help|model set --help
serve --help|model info|model set --ham-cost 9
model set --spam-cutoff 0.9 --ham-cutoff 0.5|model prune --min-count 1
classify --ham-cost 9|classify --passthrough --subject-tag [SPAM]|classify -p --evidence 9
train --update --spam -|train --update --ham -|train --update --no-ledger --ham -
forget --no-ledger --ham -|train --update --ham - -m NEW
classify < base64-broken|classify < multipart-nested-6-deep|classify < utf16-body"""


@pytest.mark.few(4)
@pytest.mark.parametrize("command", LIGHT.replace("\n", "|").split("|"))
def test_help_one_message_and_a_plain_table_load_nothing_heavy(model, tmp_path, command):
    """What is not among those whose packages are listed, below."""
    command, _, odd = command.partition(" < ")
    given = {"NEW": tmp_path / "new.json", "SMS": SAMPLE / "fresh.tsv"}
    words = [given.get(word, word) for word in command.split()]
    options = {"message": (SAMPLE / "odd" / f"{odd}.eml").read_bytes()} if odd else {}
    names = packages(loaded_by(*words, NBSPAM_MODEL=str(model), **options))
    assert "click" in names
    assert names & HEAVY == set()
    if "--update --spam - -m" not in command and "--update" in command:
        again = packages(loaded_by(*words, NBSPAM_MODEL=str(model)))  # which it knows by now
        assert again & HEAVY == set()


# Each event model, each kind of traits and both scorings, if not with each other.
SOME = [
    ("multinomial", "gaussian", "evidence"),
    ("bernoulli", "kernel", "evidence"),
    ("multinomial", "none", "sum"),
    ("complement", "kernel", "sum"),
    ("none", "gaussian", "sum"),
]


def test_the_models_tried_have_every_part_of_the_combinations():
    assert set(SOME) <= set(COMBINATIONS)
    for some, every in zip(zip(*SOME, strict=True), zip(*COMBINATIONS, strict=True), strict=True):
        assert set(some) == set(every)


@pytest.fixture(scope="module", params=SOME, ids="-".join)
def other_model(request, tmp_path_factory):
    event_model, traits, scoring = request.param
    path = tmp_path_factory.mktemp("startup") / "model.json"
    made = nbspam.train(
        SAMPLE / "fresh.tsv", event_model=event_model, traits=traits, scoring=scoring
    )
    made.save(path)
    return path


@pytest.mark.few(1)
@pytest.mark.parametrize("command", ["classify", "explain", "train --update --spam -", "forget"])
def test_whatever_the_model_one_message_loads_nothing_heavy(other_model, command):
    assert packages(loaded_by(*command.split(), "-m", other_model)) & HEAVY == set()


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "command", ["classify", "train --update --spam -", "classify -p", "explain", "forget"]
)
def test_with_a_base_nothing_heavy_is_loaded(model, tmp_path, command):
    me = tmp_path / "me.json"
    with nbspam.open(me, base=model) as mine:
        mine.learn([("ham", b"see you at dinner")])
    names = loaded_by(*command.split(), "-m", me, "--base", model)
    assert packages(names) & HEAVY == set()


# Nothing of ours that is not needed

COMMANDS = " ".join(
    f"nbspam.cli.{name}" for name in "train classify eval explain model serve".split()
)
SHOWN = "nbspam.scoring.highlights"
PAGE = f"{SHOWN} nbspam.display.page"
MANY = "nbspam.evaluation nbspam.learning nbspam.cli.learning_options nbspam.serving"
BASE = "nbspam.scoring.base"
MESSAGE = f"{COMMANDS} {PAGE} {MANY} {BASE} nbspam.scoring.explanation"


@pytest.mark.few(7)
@pytest.mark.parametrize(
    "command, prefixes, expected",
    [
        ("--help", "nbspam.cli.", "nbspam.cli.click_stubs nbspam.cli.command nbspam.cli.program"),
        ("model --help", f"{COMMANDS} {MANY}", "nbspam.cli.model"),
        ("classify", MESSAGE, "nbspam.cli.classify"),
        ("classify -p", MESSAGE, "nbspam.cli.classify nbspam.serving nbspam.serving.passthrough"),
        ("explain", f"{PAGE} {BASE}", SHOWN),
        ("explain --format html", PAGE, PAGE),
        ("model info", COMMANDS, "nbspam.cli.model"),
        ("model check", COMMANDS, "nbspam.cli.model"),
        ("model prune --min-count 1", COMMANDS, "nbspam.cli.model"),
        ("train --update --spam -", BASE, ""),
        ("forget", BASE, ""),
    ],
)
def test_a_command_loads_of_ours_what_it_needs(model, command, prefixes, expected):
    """To load a command takes time, and so do records of options: 0.15 ms each."""
    named = () if "--help" in command else ("-m", model)
    loaded = ours_loaded(*command.split(), *named)
    assert {n for n in loaded if n.startswith(tuple(prefixes.split()))} == set(expected.split())


# All that one message needs of other packages and the standard library; what is added costs every
# message of every user.  Learning needs some more.
ONE_MESSAGE = (
    "binascii bisect click encodings.cp1252 gc json json.decoder locale math runpy".split()
)
EXPLAINING = [*ONE_MESSAGE, "pathlib"]
LEARNING = [*EXPLAINING, "array", "fcntl", "hashlib"]
SERVER = {"asyncio", "ssl", "concurrent", "socket"}
SLOW = {"email", "argparse", "asyncio", "hashlib", "subprocess", "tempfile", "logging", "traceback"}
TOML = {f"tomllib{part}" for part in ("", "._parser", "._re", "._types")}
TOML |= {"string", "_string", "__future__", "datetime", "_datetime"}


def foreign(names):
    return {name for name in names if name.split(".")[0] != "nbspam"}


@functools.cache
def loaded_with(line):
    return loaded_in("-c", line)


def allowed(needed):
    return loaded_with(f"import {', '.join(needed)}")


def test_importing_the_package_loads_nothing():
    """Not `typing` either: it would be loaded before the program makes the collector rarer."""
    assert loaded_with("import nbspam") - loaded_with("pass") == {"nbspam"}


def test_what_one_message_needs_is_neither_heavy_nor_a_server():
    assert packages(allowed([*LEARNING, "base64"])) & (HEAVY | SERVER) == set()


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("classify", ONE_MESSAGE),
        ("classify -p", ONE_MESSAGE),
        ("explain --format html", [*EXPLAINING, "base64", "hashlib"]),
        ("train --update --spam -", LEARNING),
        ("classify --format json", ONE_MESSAGE),
        ("explain", [*EXPLAINING, "unicodedata"]),  # its sentences may have “words”
        ("explain --format json", EXPLAINING),
        ("forget", LEARNING),
        ("model set --ham-cutoff 0.5", LEARNING),
    ],
)
def test_one_message_loads_of_other_packages_what_it_needs(model, command, needed):
    assert foreign(once(*command.split(), "-m", model)) - allowed(needed) == set()


@pytest.mark.few(1)
@pytest.mark.parametrize("command", ["classify -p", "classify"])
def test_a_config_file_loads_what_reads_toml(model, tmp_path, command):
    config = tmp_path / "config.toml"
    config.write_text("jobs = 1\n[serve]\ntell = true\n")
    more = loaded_by(*command.split(), "-m", model, config=config)
    assert more - once(*command.split(), "-m", model) - TOML == {"nbspam.cli.settings"}


@pytest.mark.few(1)
@pytest.mark.parametrize("command", ["classify", "classify -p"])
def test_click_loads_for_one_message_no_module_that_it_has_no_use_for(model, command):
    loaded = once(*command.split(), "-m", model)
    assert loaded & {"inspect", "uuid", "platform", "gettext", "locale", "datetime"} == set()


def test_stand_ins_are_gone_once_click_is_imported():
    code = (
        "from nbspam.cli.click_stubs import import_click\n"
        "import_click()\n"
        "import click, inspect, gettext, uuid, datetime\n"
        "assert all(m.__spec__ for m in (inspect, gettext, uuid, datetime))\n"
        "assert click.core.inspect.cleandoc('a\\n  b') == 'a\\nb'\n"
        "assert click.core.inspect.isfunction(print) is False"
    )
    run("-c", code)


def test_another_program_that_imports_the_command_line_has_click_with_its_own_types():
    code = (
        "import nbspam.cli.program, click, uuid\n"
        "assert isinstance(click.UUID.convert('0' * 32, None, None), uuid.UUID)\n"
        "click.DateTime().convert('2026-11-28', None, None)"
    )
    run("-c", code)


def test_a_passage_loads_no_slow_module_of_the_standard_library(model):
    assert once("classify", "-p", "-m", model) & SLOW == once("classify", "-m", model) & SLOW


# A lazy pattern does what the compiled one does, and is compiled once


def test_it_is_compiled_when_it_is_first_used(monkeypatch):
    compiled = []
    compile_now = re.compile
    monkeypatch.setattr(re, "compile", lambda *a: compiled.append(a) or compile_now(*a))
    pattern = lazy_pattern("A(b)", re.IGNORECASE)
    assert compiled == []
    assert pattern.findall("ab xAB") == ["b", "B"]
    assert pattern.findall("") == []
    assert compiled == [("A(b)", re.IGNORECASE)]


def test_it_has_every_method_of_a_pattern():
    pattern = lazy_pattern(rb"\s+")
    assert pattern.sub(b" ", b"a\n b") == b"a b"
    assert pattern.fullmatch(b" \t") is not None
    assert pattern.pattern == rb"\s+"
