"""Tables of inputs and of what is said of them, in tests/golden/cli."""

from pathlib import Path

FOLDER = Path(__file__).parents[1] / "golden" / "cli"


def golden_rows(name):
    """Return the rows of a table: the first column, and the others, between bars."""
    lines = (FOLDER / name).read_text("utf-8").splitlines()
    rows = [[cell.strip() for cell in line.split(" | ")] for line in lines if line[:1] != "#"]
    return [(first, others) for first, *others in rows]
