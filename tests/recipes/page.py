"""docs/mail-recipes.md and docs/switching.md: their recipes and the table of commands."""

import re
from pathlib import Path

_DOCS = Path(__file__).parents[2] / "docs"
_SWITCHING = (_DOCS / "switching.md").read_text(encoding="utf-8")


def recipes():
    """Return the recipes by name: the fenced blocks with a name after their kind."""
    text = (_DOCS / "mail-recipes.md").read_text(encoding="utf-8") + _SWITCHING
    found = re.findall(r"^```\S+ (\S+)\n(.*?)^```$", text, re.M | re.S)
    assert text.count("\n```") == 2 * len(found), "a block without a name"
    assert len(dict(found)) == len(found), "two blocks of one name"
    return dict(found)


def changes():
    """Return what stands for what, by the table's first column; bogofilter's wording first."""
    rows = re.findall(r"^\| ([^|]+) \| `([^`]+)` \| `([^`]+)` \|$", _SWITCHING, re.M)
    return {what: (old, new) for what, old, new in rows}
