"""Tables in tests/golden: a case a line, with `=>` between what is given and what is expected.

A line that begins with `# ` says what the cases below it show, `## name` begins a section;
`\\n`, `\\x1b` and `\\u200b` are the characters that Python takes them for.
"""

import re
from pathlib import Path

GOLDEN = Path(__file__).parent.parent / "golden"
ESCAPE = re.compile(r"\\(?:n|t|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")


def golden_table(name, cells, section=""):
    """Return the rows of a table's section, with so many cells each: those left out are empty."""
    inside, found = "", 0
    for line in (GOLDEN / name).read_text("utf-8").split("\n"):
        if line.startswith("## "):
            inside = line.removeprefix("## ")
        elif line and not line.startswith("# ") and inside == section:
            found += 1
            row = [cell.strip(" ") for cell in f" {line} ".split(" => ")]
            assert len(row) <= cells, line
            row += [""] * (cells - len(row))
            row = [ESCAPE.sub(lambda m: eval(f'"{m[0]}"'), cell) for cell in row]
            yield tuple(row) if cells > 1 else row[0]
    assert found, f"{name} has no section {section}"
