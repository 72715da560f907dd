"""What README prints of its own first steps is what they print."""

import json
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
WINNER = re.search(r'^\$ echo "(.*)" \| nbspam classify$', README, re.MULTILINE)[1]


@pytest.fixture
def first_steps(nbspam, tmp_path, monkeypatch):
    """Run the `nbspam` commands of README's first block, in order; return what each printed."""
    block = re.search(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)[1]
    (tmp_path / "sample_data").symlink_to(ROOT / "sample_data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NBSPAM_MODEL", "demo.json")
    printed = {}
    for line in block.splitlines():
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


def test_the_first_verdict_is_the_one_that_readme_shows(nbspam, first_steps):
    shown = re.search(r"\| nbspam classify\n(.*\t.*)\n```", README)[1]
    verdict, probability, _ = shown.split("\t")
    assert nbspam("classify", stdin=f"{WINNER}\n".encode()).out == shown + "\n"
    assert first_steps["classify"] == f"{verdict}\t{probability}\tmessage.txt\n"
    assert f"message.txt: {verdict}, probability {probability}\n" in first_steps["explain"]


@pytest.mark.usefixtures("first_steps")
def test_the_json_of_readme_is_that_of_the_same_message(nbspam):
    shown = json.loads(re.search(r'^    (\{"source": "-".*\})$', README, re.MULTILINE)[1])
    found = json.loads(nbspam("classify", "--format", "json", stdin=f"{WINNER}\n".encode()).out)
    assert list(found) == list(shown)
    for key in ("probability", "log_odds"):  # sums of numpy may differ in the last digit
        assert found.pop(key) == pytest.approx(shown.pop(key), rel=1e-9)
    assert found == shown
