"""No file of the package gets more phrases that need a second reading (CONTRIBUTING.md, "Write").

`golden/voice.counts` has the number that each file may have.  NBSPAM_GOLDEN=new lowers the numbers
to those of today; it never raises one.
"""

import os
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
COUNTS = ROOT / "tests" / "golden" / "voice.counts"
PHRASES = re.compile(
    r'"""Return what|# of |^ *(# )?Of |\b(that|those) of\b|so many|\balone\b|\bbeside\b|perhaps'
    r"|\bis no\b|\bnone\b|^ *And |has it\b|\b(told|said|heard|stand|stands|lies|begins?|begun)\b"
)


def phrases(name: str) -> list[str]:
    """Return the lines of a file with such a phrase, each with its number."""
    lines = (ROOT / name).read_text("utf-8").splitlines()
    return [f"{name}:{i}: {line}" for i, line in enumerate(lines, 1) if PHRASES.search(line)]


def allowed() -> dict[str, int]:
    rows = map(str.split, COUNTS.read_text("utf-8").splitlines())
    return {name: int(count) for count, name in rows}


FILES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "nbspam").rglob("*.py"))


def test_no_file_has_more_phrases_than_it_had():
    """A file without a row may have none."""
    limits, found = allowed(), {name: phrases(name) for name in FILES}
    counts = {name: min(len(lines), limits.get(name, 0)) for name, lines in found.items()}
    if os.environ.get("NBSPAM_GOLDEN") == "new":
        rows = [f"{count:3} {name}\n" for name, count in counts.items() if count]
        COUNTS.write_text("".join(rows), "utf-8")
    more = [line for name, lines in found.items() if len(lines) > counts[name] for line in lines]
    assert not more, "\n".join(["reword one of these lines:", *more])
    assert limits.keys() <= set(FILES), "remove the rows of files that are gone"
