"""What README and docs/json.md print of README's first steps is what they print.

NBSPAM_GOLDEN=new writes it again.
"""

import json
import os
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README, PAGE = ROOT / "README.md", ROOT / "docs" / "json.md"
STEPS = re.search(r"^```sh\n(.*?)^```$", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)[1]
WINNER = re.search(r'^echo "(.*)" > ', STEPS, re.MULTILINE)[1]


def shown(path, pattern, text):
    """Return what a page has in a pattern's group; if asked to, put this text there first."""
    page = path.read_text("utf-8")
    found = re.search(pattern, page, re.MULTILINE | re.DOTALL)
    if os.environ.get("NBSPAM_GOLDEN") == "new":
        path.write_text(page[: found.start(1)] + text + page[found.end(1) :], "utf-8")
        return text
    return found[1]


def block(name, text):
    """Return the block of README that follows the comment with this name."""
    return shown(README, rf"<!-- output: {name} -->\n```text\n(.*?)```\n", text)


@pytest.fixture
def first_steps(nbspam, tmp_path, monkeypatch):
    """Run the `nbspam` commands of README's first block, in order; return what each printed."""
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
    return printed


def test_the_first_steps_print_what_readme_shows(nbspam, first_steps):
    both = first_steps["train"] + first_steps["classify"]
    assert block("train, classify", both) == both
    beginning = re.match(r"(.*\n)+?(?=\d+ more words)", first_steps["explain"])[0]
    assert block("explain", beginning) == beginning
    verdict, probability, _ = first_steps["classify"].split("\t")
    printed = nbspam("classify", "-m", "demo.json", stdin=f"{WINNER}\n".encode()).out
    assert printed == f"{verdict}\t{probability}\t-\n"


@pytest.mark.usefixtures("first_steps")
def test_the_example_of_json_is_that_of_the_same_message(nbspam):
    command = "classify", "-m", "demo.json", "--format", "json"
    printed = nbspam(*command, stdin=f"{WINNER}\n".encode()).out.rstrip()
    example = json.loads(shown(PAGE, r'^    (\{"source": "-".*?\})$', printed))
    found = json.loads(printed)
    assert list(found) == list(example)
    for key in ("probability", "log_odds"):  # sums of numpy may differ in the last digit
        assert found.pop(key) == pytest.approx(example.pop(key), rel=1e-9)
    assert found == example
