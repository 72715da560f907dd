"""docs/json.md describes the keys that the program prints."""

import json
import re
from pathlib import Path

import pytest
from many_cases import in_turn

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


COMMANDS = {
    "classify": ("classify", "-m", "{model}", "{mail}"),
    "explain": ("explain", "-m", "{model}", "{mail}"),
    "train": ("train", "-m", "{new}", "{table}"),
    "train --update": ("train", "--update", "-m", "{model}", "--spam", "{mail}"),
    "train --on-error": ("train", "--on-error", "-m", "{new}", "{table}"),
    "forget": ("forget", "-m", "{model}", "{mail}"),
    "eval": ("eval", "--including-learned", "-m", "{model}", "{table}", "--errors", "1"),
    "eval --compare": ("eval", "--compare", "bernoulli", "{table}"),
    "model info": ("model", "info", "-m", "{model}"),
    "model words": ("model", "words", "-m", "{model}", "prize"),
    "model set": ("model", "set", "-m", "{model}", "--spam-cutoff", "0.99"),
    "model merge": ("model", "merge", "{model}", "{copy}", "--allow-overlap", "-o", "{new}"),
    "model prune": ("model", "prune", "-m", "{model}", "--min-count", "2"),
    "model import": ("model", "import", "{counts}", "-m", "{new}"),
    "config": ("config", "classify"),
}


@pytest.fixture
def places(nbspam, model, table, tmp_path):
    mail = tmp_path / "mail.eml"
    mail.write_text("Subject: free prize\n\nclaim the free prize\n")
    copy = tmp_path / "copy.json"
    copy.write_bytes(model.read_bytes())
    counts = tmp_path / "counts.csv"
    assert nbspam("model", "export", "-m", model, "--form", "csv", "-o", counts).code == 0
    new = tmp_path / "new.json"
    return {
        "model": model, "table": table, "mail": mail, "copy": copy, "counts": counts, "new": new,
    }  # fmt: skip


def test_every_section_is_tried():
    with_a_server = {"imap filter", "imap learn"}  # tests/mailbox/test_imap_page.py
    assert set(COMMANDS) | with_a_server == set(SECTIONS)


@in_turn("section", COMMANDS)
def test_the_keys_are_those_documented(nbspam, places, section):
    places["model"].write_bytes(places["copy"].read_bytes())
    places["new"].unlink(missing_ok=True)
    arguments = [argument.format(**places) for argument in COMMANDS[section]]
    keys = printed(nbspam(*arguments, "--format", "json"))
    assert documented(section) - SOMETIMES == keys - SOMETIMES
    assert keys <= documented(section)


def test_the_keys_of_three_classes(nbspam, make_model, three_classes, places):
    model = make_model(three_classes, name="three.json")
    for section in ("classify", "explain"):
        keys = printed(nbspam(section, "-m", model, "--format", "json", places["mail"]))
        assert keys == documented(section) - {"base", "reason"}
    found = nbspam("explain", "-m", model, "--format", "json", places["mail"])
    for key in json.loads(found.out)["constants"]:
        assert f"`{key}`" in SECTIONS["explain"]
