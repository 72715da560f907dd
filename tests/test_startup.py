"""A mail filter runs once a message: what one message needs must not load what many need."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest
from one_case import one_by_default

SAMPLE = Path(__file__).parents[1] / "sample_data"
HEAVY = {"numpy", "scipy", "pandas", "rich", "sklearn", "pyarrow", "dask", "distributed", "fsspec"}


def run(*arguments, flags=(), message=b"win a free prize", config=""):
    done = subprocess.run(
        [sys.executable, *flags, "-m", "nbspam", *map(str, arguments)],
        input=message,
        capture_output=True,
        timeout=60,
        check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPROFILEIMPORTTIME"}
        | {"NBSPAM_CONFIG": str(config)},
    )
    assert done.returncode == 0, done.stderr.decode()
    return done


def modules_in(stderr):
    """Return the modules that `-X importtime` lists."""
    lines = stderr.decode().splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


def imported(*arguments, **options):
    """Return the top-level names of the modules that a run of nbspam loads."""
    names = modules_in(run(*arguments, flags=("-X", "importtime"), **options).stderr)
    return {name.split(".")[0] for name in names}


def ours_loaded(*arguments):
    """Return the modules of ours that are loaded when a run of nbspam ends.

    `-X importtime` does not list what `importlib.import_module` is asked for, such as a command.
    """
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: print('loaded', *sys.modules, file=sys.stderr))\n"
        "from nbspam_main import main\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        input=b"win a free prize",
        capture_output=True,
        timeout=60,
        check=True,
        env={**os.environ, "NBSPAM_DEBUG": "1"},  # which ends the process as usual
    )
    (line,) = [each for each in done.stderr.decode().splitlines() if each.startswith("loaded ")]
    return {name for name in line.split() if name.startswith("nbspam.")}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return a model, and which packages its training loaded."""
    path = tmp_path_factory.mktemp("startup") / "model.json"
    return path, imported("train", SAMPLE / "sms.tsv", "-m", path)


@pytest.fixture(scope="module")
def model(trained):
    return trained[0]


@functools.cache
def loaded_by(*arguments):
    """Return the modules that a run loads, the first one of the kind."""
    return modules_in(run(*arguments, flags=("-X", "importtime")).stderr)


def test_the_measure_sees_what_training_loads(trained):
    assert {"nbspam", "click", "numpy", "scipy"} <= trained[1]


@one_by_default(
    "arguments",
    [
        *("--help", "--version", "classify --help", "explain --help", "train --help"),
        *("eval --help", "model --help", "model set --help", "serve --help"),
    ],
)
def test_help_loads_nothing_heavy(arguments):
    names = imported(*arguments.split())
    assert "click" in names
    assert names & HEAVY == set()


@one_by_default(
    "command",
    [
        "model check",
        "model info",
        "model words free",
        "model set --ham-cost 9",
        "model set --spam-cutoff 0.9 --ham-cutoff 0.5",
        "model prune --min-count 1",
        "model export",
        "classify --ham-cost 9",
        "classify --passthrough --subject-tag [SPAM]",
        "classify -p --evidence 9",
        "train --update --spam -",
        "train --update --spam -",  # which it knows by now
        "train --update --ham -",  # moved
        "train --update --no-ledger --ham -",
        "train --update --on-error --spam -",
        "forget --no-ledger --ham -",
    ],
)
def test_one_message_loads_nothing_heavy(model, command):
    """What is not among those whose packages are listed, below."""
    assert imported(*command.split(), "-m", model) & HEAVY == set()


@one_by_default("label", ["spam", "ham"])
def test_the_first_message_of_a_model_loads_nothing_heavy(tmp_path, label):
    names = imported("train", "--update", f"--{label}", "-", "-m", tmp_path / "model.json")
    assert names & HEAVY == set()


@one_by_default("name", ["base64-broken", "multipart-nested-6-deep", "utf16-body"])
def test_one_odd_mail_loads_nothing_heavy(model, name):
    message = (SAMPLE / "odd" / f"{name}.eml").read_bytes()
    assert imported("classify", "-m", model, message=message) & HEAVY == set()


def test_a_plain_table_loads_nothing_heavy(model):
    assert imported("classify", SAMPLE / "sms.tsv", "-m", model) & HEAVY == set()


def test_the_group_loads_no_command():
    ours = {name for name in ours_loaded("--help") if name.startswith("nbspam.cli.")}
    assert ours == {"nbspam.cli.program", "nbspam.cli.groups"}


COMMANDS = {f"nbspam.cli.{name}" for name in "train classify evaluate explain model serve".split()}


def test_classify_loads_no_other_command(model):
    loaded = ours_loaded("classify", "-m", model)
    assert loaded & COMMANDS == {"nbspam.cli.classify"}
    assert not [
        name for name in loaded if name.startswith(("nbspam.evaluation", "nbspam.learning.batch"))
    ]


@one_by_default("name", ["info", "check"])
def test_a_command_of_a_model_loads_no_other(model, name):
    loaded = ours_loaded("model", name, "-m", model)
    assert loaded & COMMANDS == {"nbspam.cli.model"}
    of_model = {each for each in loaded if each.startswith("nbspam.cli.model.")}
    assert of_model == {f"nbspam.cli.model.{name}"}


def test_the_group_of_models_loads_no_command():
    loaded = ours_loaded("model", "--help")
    assert not [each for each in loaded if each.startswith("nbspam.cli.model.")]


SERVING = "nbspam.serving."


def test_classify_loads_no_serving_unless_a_message_is_to_pass(model):
    def serving(*more):
        return {n for n in loaded_by("classify", *more, "-m", model) if n.startswith(SERVING)}

    assert serving() == set()
    assert serving("-p") == {"nbspam.serving.passthrough"}


# All that one message needs of other packages and the standard library; what is added costs every
# message of every user.  Learning needs some more.
ONE_MESSAGE = ("binascii bisect click encodings.cp1252 gc json json.decoder locale runpy").split()
EXPLAINING = [*ONE_MESSAGE, "pathlib"]
LEARNING = [*EXPLAINING, "array", "fcntl", "hashlib"]
SERVER = {"asyncio", "ssl", "concurrent", "socket"}
TOML = {"tomllib", "tomllib._parser", "tomllib._re", "tomllib._types", "string", "_string"}


def foreign(names):
    return {name for name in names if name.split(".")[0] not in ("nbspam", "nbspam_main")}


@functools.cache
def loaded_with(line):
    command = [sys.executable, "-X", "importtime", "-c", line]
    return modules_in(subprocess.run(command, capture_output=True, check=True).stderr)


def allowed(needed):
    return loaded_with(f"import {', '.join(needed)}")


def test_importing_the_package_loads_nothing():
    """Not `typing` either: it would be loaded before the program makes the collector rarer."""
    assert loaded_with("import nbspam") - loaded_with("pass") == {"nbspam"}


def test_what_one_message_needs_is_neither_heavy_nor_a_server():
    names = {name.split(".")[0] for name in allowed([*LEARNING, "base64"])}
    assert names & (HEAVY | SERVER) == set()


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("classify", ONE_MESSAGE),
        ("classify -p", ONE_MESSAGE),
        ("explain --format html", [*EXPLAINING, "base64", "hashlib"]),
        ("train --update --spam -", LEARNING),
        pytest.param("classify --format json", ONE_MESSAGE, marks=pytest.mark.long),
        pytest.param("classify --terse", ONE_MESSAGE, marks=pytest.mark.long),
        pytest.param("explain", EXPLAINING, marks=pytest.mark.long),
        pytest.param("explain --format json", EXPLAINING, marks=pytest.mark.long),
        pytest.param("forget", LEARNING, marks=pytest.mark.long),
        pytest.param("model set --ham-cutoff 0.5", LEARNING, marks=pytest.mark.long),
    ],
)
def test_one_message_loads_of_other_packages_what_it_needs(model, command, needed):
    assert foreign(loaded_by(*command.split(), "-m", model)) - allowed(needed) == set()


@one_by_default("options", ["-p", "", "--exit-code"])
def test_learning_a_verdict_loads_what_learning_one_message_needs(tmp_path, options):
    table, model = tmp_path / "six.tsv", tmp_path / "model.json"
    table.write_text((SAMPLE / "sms.tsv").read_text() * 6)  # enough to learn by itself
    run("train", "-q", table, "-m", model)
    before = model.read_bytes()
    sure = "--learn-from 0.5 --spam-cutoff 0 --ham-cutoff 0".split()
    found = loaded_by("classify", "--learn", *sure, *options.split(), "-m", model)
    assert model.read_bytes() != before
    assert foreign(found) - allowed(LEARNING) == set()


@one_by_default("command", ["classify -p", "classify"])
def test_a_config_file_loads_of_other_packages_no_more(model, tmp_path, command):
    config = tmp_path / "config.toml"
    config.write_text('spam-cutoff = 0.95\n[classify]\nheader = "X-Spam"\n[serve]\ntell = true\n')

    def names(config):
        found = run(*command.split(), "-m", model, flags=("-X", "importtime"), config=config)
        return modules_in(found.stderr)

    without, beside = names(""), names(config)
    assert beside - without == {"nbspam.cli.settings", "nbspam.cli.plain_toml"}
    assert "tomllib" not in beside
    config.write_text("jobs = 1 # a file that is not so plain")
    assert foreign(names(config)) - foreign(without) <= TOML


def test_one_message_loads_no_options_of_learning(model):
    """Records of options take time to make: 0.15 ms each."""
    names = loaded_by("classify", "-m", model)
    assert "nbspam.cli.options" in names
    assert {name for name in names if name.startswith("nbspam.learning")} == set()
    assert names & {"nbspam.cli.sources_options", "nbspam.cli.learning_options"} == set()
    assert names & {"nbspam.scoring.explanation", "nbspam.scoring.terms"} == set()


def test_only_explain_loads_what_is_shown_of_a_message_and_only_a_page_what_makes_one(model):
    shown = {f"nbspam.{name}" for name in ("tokens.excerpt", "tokens.places", "scoring.highlights")}
    page = {"nbspam.display.page", "nbspam.display.explanation_page"}
    assert ours_loaded("classify", "-m", model) & (shown | page) == set()
    assert ours_loaded("explain", "-m", model) & (shown | page) == shown
    assert ours_loaded("explain", "--format", "html", "-m", model) & (shown | page) == shown | page


SLOW = {"email", "argparse", "asyncio", "hashlib", "subprocess", "tempfile", "logging", "traceback"}


def test_a_passage_loads_no_slow_module_of_the_standard_library(model):
    passage, without = (loaded_by("classify", *more, "-m", model) for more in (["-p"], []))
    assert passage & SLOW == without & SLOW


def test_by_default_one_message_loads_its_own_event_model_and_traits_only(model):
    names = {name.removeprefix("nbspam.bayes.") for name in loaded_by("classify", "-m", model)}
    assert {"bernoulli", "kernel"} <= names
    others = {"multinomial", "complement", "no_tokens", "gaussian"}
    assert names & {*others, "bernoulli_arrays", "multinomial_arrays"} == set()
