"""docs/json.md describes the keys that the program prints."""

import json
import re
from pathlib import Path

import pytest
from one_case import each

PAGE = Path(__file__).parents[2] / "docs" / "json.md"
SECTIONS = dict(re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.M | re.S))
SOMETIMES = {"probabilities", "of", "against", "errors", "base", "reason"}


def documented(section):
    rows = re.findall(r"^\| (`.*?) \|", SECTIONS[section], re.M)
    return {key for row in rows for key in re.findall(r"`(\w+)`", row)}


def printed(found):
    assert found.code == 0, found.err
    first = json.loads(found.out.splitlines()[0] if found.out[1] != "\n" else found.out)
    return {key for key in first if not key.endswith("_ci")}


# What prints each section; those with a server are in tests/cli/mail/test_imap_page.py.
COMMANDS = {
    "classify": "classify mail.eml",
    "explain": "explain mail.eml",
    "train": "train -m new.json messages.tsv",
    "train --update": "train --update --spam mail.eml",
    "forget": "forget mail.eml",
    "eval": "eval --including-learned messages.tsv --errors 1",
    "eval --compare": "eval --compare bernoulli messages.tsv",
    "model info": "model info",
    "model words": "model words prize",
    "model set": "model set --spam-cutoff 0.99",
    "model merge": "model merge model.json copy.json --allow-overlap -o new.json",
    "model prune": "model prune --min-count 2",
    "model import": "model import counts.csv -m new.json",
    "config": "config classify",
}


@pytest.fixture
def folder(nbspam, model, monkeypatch, few_resamples):
    folder = model.parent
    monkeypatch.chdir(folder)
    monkeypatch.setenv("NBSPAM_MODEL", "model.json")
    (folder / "mail.eml").write_text("Subject: free prize\n\nclaim the free prize\n")
    (folder / "copy.json").write_bytes(model.read_bytes())
    assert nbspam("model", "export", "--form", "csv", "-o", "counts.csv").code == 0
    return folder


def test_every_section_is_tried():
    assert SECTIONS.keys() == COMMANDS.keys() | {"mail filter", "mail learn"}


@each("section", COMMANDS)
def test_the_keys_are_those_documented(nbspam, folder, section):
    (folder / "model.json").write_bytes((folder / "copy.json").read_bytes())
    (folder / "new.json").unlink(missing_ok=True)
    keys = printed(nbspam(*COMMANDS[section].split(), "--format", "json"))
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
