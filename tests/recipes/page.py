"""docs/mail-recipes.md: its recipes and its table for those who come from bogofilter."""

import re
from pathlib import Path

_PAGE = Path(__file__).parents[2] / "docs" / "mail-recipes.md"


def recipes():
    """Return the recipes by name: the fenced blocks with a name after their kind."""
    text = _PAGE.read_text(encoding="utf-8")
    found = re.findall(r"^```\S+ (\S+)\n(.*?)^```$", text, re.M | re.S)
    assert text.count("\n```") == 2 * len(found), "a block without a name"
    assert len(dict(found)) == len(found), "two blocks of one name"
    return dict(found)


def changes():
    """Return what stands for what, by the table's first column; bogofilter's wording first."""
    text = _PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| `([^`]+)` \| `([^`]+)` \|$", text, re.M)
    return {what: (old, new) for what, old, new in rows}
