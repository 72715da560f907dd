"""Properties meet the same cases in every run, whatever ran before them in their process."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PROPERTY = TESTS / "tokens" / "test_tokenizer.py::test_any_text_has_good_tokens"


def cases(*before):
    """Return what hypothesis gave the property, after the tests of these files."""
    command = [sys.executable, "-m", "pytest", "-n0", "-qs", "--hypothesis-verbosity=verbose"]
    command += ["-p", "no:cacheprovider", *before, PROPERTY]
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=True)
    name = re.escape(str(PROPERTY).rpartition("::")[2])
    return re.findall(rf"\w+ \w+: {name}\(.*?^\)$", done.stdout, re.M | re.S)


@pytest.mark.long
def test_the_tests_before_a_property_do_not_change_its_cases():
    alone = cases()
    assert len(alone) >= 10
    assert cases(TESTS / "evaluation" / "test_report.py") == alone  # which imports rooms of its own
