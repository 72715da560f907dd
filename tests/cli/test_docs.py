"""What is written of the program is what it does: docs/json.md, README, the wheel."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest
from one_case import each
from running import ROOT

from nbspam import __version__

# docs/json.md describes the keys that the program prints

JSON_PAGE = ROOT / "docs" / "json.md"

SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", JSON_PAGE.read_text(), re.M | re.S))

SOMETIMES = {"probabilities", "of", "against", "mistakes", "base", "reason"}


def documented(section):
    rows = re.findall(r"^\| (`.*?) \|", SECTIONS[section], re.M)
    return {key for row in rows for key in re.findall(r"`(\w+)`", row)}


def printed(found):
    assert found.code == 0, found.err
    first = json.loads(found.out.splitlines()[0] if found.out[1] != "\n" else found.out)
    return {key for key in first if not key.endswith("_ci")}


# What prints each section; those with a server are in tests/cli/mail/test_imap_page.py.
PRINTING = {
    "classify": "classify mail.eml",
    "explain": "explain mail.eml",
    "train": "train -m new.json messages.tsv",
    "train --update": "train --update --spam mail.eml",
    "forget": "forget mail.eml",
    "eval": "eval --including-learned messages.tsv --errors 1",
    "eval --compare": "eval --compare bernoulli messages.tsv",
    "model info": "model info",
    "model set": "model set --spam-cutoff 0.99",
    "model prune": "model prune --min-count 2",
    "config": "config",
}


@pytest.fixture
def folder(nbspam, model, monkeypatch):
    folder = model.parent
    monkeypatch.chdir(folder)
    monkeypatch.setenv("NBSPAM_MODEL", "model.json")
    (folder / "mail.eml").write_text("Subject: free prize\n\nclaim the free prize\n")
    (folder / "copy.json").write_bytes(model.read_bytes())
    return folder


def test_every_section_is_tried():
    assert SECTIONS.keys() == PRINTING.keys() | {"mail filter", "mail learn"}


@each("section", PRINTING)
def test_the_keys_are_those_documented(nbspam, folder, section):
    (folder / "model.json").write_bytes((folder / "copy.json").read_bytes())
    (folder / "new.json").unlink(missing_ok=True)
    keys = printed(nbspam(*PRINTING[section].split(), "--format", "json"))
    assert documented(section) - SOMETIMES == keys - SOMETIMES
    assert keys <= documented(section)


@pytest.mark.usefixtures("folder")
def test_the_keys_of_three_classes(nbspam, as_json, make_model, three_classes):
    model = make_model(three_classes, name="three.json")
    for section in ("classify", "explain"):
        keys = printed(nbspam(section, "-m", model, "--format", "json", "mail.eml"))
        assert keys == documented(section) - {"base", "reason"}
    for key in as_json("explain", "-m", model, "mail.eml")["constants"]:
        assert f"`{key}`" in SECTIONS["explain"]


# What README and docs/json.md print of README's first steps; NBSPAM_GOLDEN=new writes it again

README = ROOT / "README.md"
STEPS = re.search(r"^```sh\n(.*?)^```$", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)[1]
WINNER = re.search(r'^echo "(.*)" > ', STEPS, re.MULTILINE)[1]


def written(path, pattern, text):
    """Return what a page has in a pattern's group; if asked to, put this text there first."""
    page = path.read_text("utf-8")
    found = re.search(pattern, page, re.MULTILINE | re.DOTALL)
    if os.environ.get("NBSPAM_GOLDEN") == "new":
        path.write_text(page[: found.start(1)] + text + page[found.end(1) :], "utf-8")
        return text
    return found[1]


def block(name, text):
    """Return the block of README that follows the comment with this name."""
    return written(README, rf"<!-- output: {name} -->\n```text\n(.*?)```\n", text)


def test_the_first_steps_print_what_the_docs_show(nbspam, tmp_path, monkeypatch):
    """They are the `nbspam` commands of README's first block, in order."""
    (tmp_path / "sample_data").symlink_to(ROOT / "sample_data")
    monkeypatch.chdir(tmp_path)
    printed = {}
    for line in STEPS.splitlines():
        words = shlex.split(line.removesuffix("&&"))
        if words[0] == "echo":
            assert words[1:3] == [WINNER, ">"]
            Path(words[3]).write_text(WINNER + "\n")
        elif words[0] == "nbspam":
            result = nbspam(*words[1:])
            assert result.code == 0, result.err
            printed[words[1]] = result.out
    assert list(printed) == ["train", "classify", "explain"]
    both = printed["train"] + printed["classify"]
    assert block("train, classify", both) == both
    beginning = re.match(r"(.*\n)+?(?=\d+ more words)", printed["explain"])[0]
    assert block("explain", beginning) == beginning
    verdict, probability, _ = printed["classify"].split("\t")
    piped = nbspam("classify", "-m", "demo.json", stdin=f"{WINNER}\n".encode()).out
    assert piped == f"{verdict}\t{probability}\t-\n"

    command = "classify", "-m", "demo.json", "--format", "json"  # the example of docs/json.md
    said = nbspam(*command, stdin=f"{WINNER}\n".encode()).out.rstrip()
    example = json.loads(written(JSON_PAGE, r'^    (\{"source": "-".*?\})$', said))
    found = json.loads(said)
    assert list(found) == list(example)
    for key in ("probability", "log_odds"):  # sums of numpy may differ in the last digit
        assert found.pop(key) == pytest.approx(example.pop(key), rel=1e-9)
    assert found == example


OF_SYSTEMD = {"LISTEN_FDS", "LISTEN_PID", "NOTIFY_SOCKET"}  # sd_listen_fds(3), sd_notify(3)


def test_every_variable_that_is_read_is_described():
    read = re.compile(r"(?:environ(?:\.get\(|\[)\s*|envvar=)\"(\w+)\"")
    sources = (ROOT / "nbspam").rglob("*.py")
    names = {name for path in sources for name in read.findall(path.read_text(encoding="utf-8"))}
    pages = (ROOT / "docs" / name for name in ("config.md", "serve.md"))
    text = "".join(path.read_text("utf-8") for path in pages)
    assert {name for name in names if name not in text} <= OF_SYSTEMD


# The wheel and the sdist, built without git; the Debian package

UNITS = ("nbspam.service", "nbspam.socket")


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """Return the folder of a wheel and an sdist, built from the source beside a user's mail."""
    if not find_spec("hatchling"):
        pytest.skip("needs hatchling (pip install '.[dev]')")
    source, folder = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    names = project["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"]
    for name in (*names, "pyproject.toml"):
        path = ROOT / name
        copy = partial(shutil.copytree, ignore=shutil.ignore_patterns("__pycache__"))
        (copy if path.is_dir() else shutil.copy)(path, source / name)
    (source / "model.json").write_text("{}")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", folder],
        cwd=source,
        capture_output=True,
        check=True,
        timeout=120,
    )
    return folder


@pytest.mark.long
def test_the_wheel_has_the_package_and_what_systemd_looks_for(distributions):
    with zipfile.ZipFile(distributions / f"nbspam-{__version__}-py3-none-any.whl") as archive:
        wheel = {
            name.partition(".data/data/")[2] or name: archive.read(name)
            for name in archive.namelist()
        }
    shared = {name for name in wheel if name.startswith(("share/", "lib/"))}
    assert shared == {f"lib/systemd/system/{name}" for name in UNITS}
    assert {"nbspam/__main__.py", "nbspam/display/page.css", "nbspam/py.typed"} <= wheel.keys()
    for name in UNITS:
        assert wheel[f"lib/systemd/system/{name}"] == (ROOT / "docs" / name).read_bytes()


def test_the_sdist_has_the_tests_and_nothing_of_the_user(distributions):
    with tarfile.open(distributions / f"nbspam-{__version__}.tar.gz") as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert "model.json" not in names


def test_the_examples_have_the_version():
    pages = [README, *(ROOT / "docs").glob("*.md")]
    text = "".join(page.read_text("utf-8") for page in pages)
    assert {*re.findall(r"version=([\d.]+\d)|nbspam_([\d.]+)_", text)} == {
        (__version__, ""),
        ("", __version__),
    }
    assert f"## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text("utf-8")


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="needs dpkg-deb, of Debian")
def test_the_debian_package_has_a_program_that_runs(tmp_path):
    """It is also installed by hand, with apt in a chroot, before a release."""
    venv = ["/usr/bin/python3", "-c", "import ensurepip, venv"]
    if subprocess.run(venv, check=False, capture_output=True).returncode:
        pytest.skip("needs python3-venv, of Debian")
    env = os.environ | {"DPKG_DEB_COMPRESSOR_TYPE": "none"}
    subprocess.run([ROOT / "docs" / "build-deb", "serve"], cwd=tmp_path, env=env, check=True)
    (package,) = tmp_path.glob(f"nbspam_{__version__}_*.deb")
    subprocess.run(["dpkg-deb", "-x", package, tmp_path / "root"], check=True)
    usr = tmp_path / "root" / "usr"
    places = "bin/nbspam lib/systemd/system/nbspam.socket share/man/man1/nbspam-train.1.gz"
    assert all((usr / place).exists() for place in places.split())
    program = (usr / "bin" / "nbspam").read_text().replace("/usr/lib", f"{usr}/lib")
    (tmp_path / "nbspam").write_text(program)
    run = partial(subprocess.run, check=True, capture_output=True, text=True, cwd=tmp_path)
    run(["/usr/bin/python3", "-I", "nbspam", "train", "-m", "m.json", ROOT / "sample_data/sms.tsv"])
    done = run(["/usr/bin/python3", "-I", "nbspam", "classify", "-m", "m.json"], input=WINNER)
    assert done.stdout.startswith("spam\t")
