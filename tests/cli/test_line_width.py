"""What nbspam prints for people fits 80 columns in a pipe, but for names of files and tables.

Notes and errors are a sentence in a line each, on standard error: logs are read by the line.
"""

import re

import pytest
from one_case import each

from nbspam.cli.settings import command_contexts

COLUMNS = 80
COMMANDS = {context.command_path.removeprefix("nbspam "): context for context in command_contexts()}


@pytest.fixture(params=[40, pytest.param(None, marks=pytest.mark.long)], ids=["some", "all"])
def folder(request, tmp_path, monkeypatch, sample, few_resamples):
    """Return a folder with short names: the sample data, and models of it."""
    (tmp_path / "sample_data").symlink_to(sample)
    rows = (sample / "sms.tsv").read_text().splitlines(keepends=True)
    (tmp_path / "sms.tsv").write_text("".join(rows[: request.param]))
    (tmp_path / "mail.txt").write_text("WINNER! Claim your FREE prize: http://prize.example/win\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NBSPAM_MODEL", "model.json")
    (tmp_path / "config.toml").write_text("jobs = 1\n[classify]\nsubject-tag = '[SPAM]'\n")
    monkeypatch.setenv("NBSPAM_CONFIG", "config.toml")
    return tmp_path


def too_wide(text):
    """Return the lines that are wider; blanks at the end of a line are not seen.

    In a pipe a table of words has each word whole, so its rows, which end with bars, may be wider.
    """
    lines = [line.rstrip() for line in text.splitlines()]
    return [line for line in lines if len(line) > COLUMNS and not re.search(r"  [+-]+$", line)]


# In order: each finds what those before it have left.
STEPS = """
train sms.tsv
train --replace --max-ham-blocked 1% sms.tsv
train --update --ham sample_data/mail/ham.mbox --spam sample_data/mail/spam.mbox
train -m one.json --spam mail.txt --update
train -m three.json --ham sms.tsv --spam mail.txt --label promo=mail.txt --lines
classify mail.txt
explain mail.txt
explain --fragments --top 100 mail.txt
explain -m one.json mail.txt
explain --words
eval --folds 3 --errors 20 sms.tsv
eval --including-learned sms.tsv
eval --online --batch 20 sms.tsv
model info
model info -m one.json
model check
model words free prize subject:free
model set --spam-cutoff 0.99
model export -o words.txt
model import words.txt -m imported.json
model merge model.json one.json -o merged.json --allow-overlap
model prune --min-count 2
forget --spam mail.txt
config
""".strip().splitlines()


@pytest.mark.usefixtures("folder")
def test_every_command_fits(nbspam):
    printed = set()
    for step in STEPS:
        found = nbspam(*step.split())
        assert found.code == 0, f"{step}: {found.err}"
        assert too_wide(found.out) == [], step
        printed.add(next((name for name in COMMANDS if step.startswith(name)), step))
    served = {"serve", "mail filter", "mail learn", "mail watch"}  # they need a server
    assert printed == COMMANDS.keys() - served | {"config"}


@pytest.mark.usefixtures("folder")
def test_the_words_about_a_comparison_fit(nbspam):
    found = nbspam("eval", "--compare", "bernoulli,multinomial", "--folds", "2", "sms.tsv")
    tables = ("1-ROCA%", ":evidence ", ":sum ")
    wide = [line for line in too_wide(found.out) if not any(part in line for part in tables)]
    assert (found.code, wide) == (0, [])


@pytest.mark.usefixtures("folder")
def test_a_long_path_stays_whole(nbspam, folder):
    path = folder / f"{'long ' * 20}name.json"
    for command in (("train", "sms.tsv"), ("model", "info"), ("model", "check")):
        assert str(path) in nbspam(*command, "-m", path).out


@each("name", ["", *COMMANDS, "model"])
def test_every_help_fits(nbspam, name):
    found = nbspam(*name.split(), "--help")
    assert found.code == 0
    assert too_wide(found.out) == []
