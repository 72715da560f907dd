from pathlib import Path

from nbspam.cli.reference import page

PAGE = Path(__file__).parents[2] / "docs" / "commands.md"


def test_the_page_is_what_the_program_prints():
    # Other versions of click break lines elsewhere.
    expected = page().split()
    assert expected == PAGE.read_text(encoding="utf-8").split(), (
        "print it again: python -m nbspam.cli.reference > docs/commands.md"
    )


def test_every_command_is_in_it():
    headings = [line for line in page().splitlines() if line.startswith("## ")]
    for name in ("train", "classify", "eval", "explain", "forget", "serve", "model merge"):
        assert f"## nbspam {name}" in headings
