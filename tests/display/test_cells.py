from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from rich.cells import cell_len

from nbspam.display.lines import beginning, cell_width, padded, shortened


@each(
    "text, cells",
    [
        ("free", 4), ("免費", 4), ("🚀", 2), ("cafe\u0301", 4), ("naïve", 5), ("हिन्दी", 5),
        ("한국", 4), ("ﾊﾝｶｸ", 4),
    ],
)  # fmt: skip
def test_the_cells_of_a_text(text, cells):
    assert cell_width(text) == cells


@each("text", ["free", "免費送", "naïve é", "привет", "한국어", "مرحبا", "£5 – ok"])
def test_they_are_as_many_as_rich_counts(text):
    assert cell_width(text) == cell_len(text)


@given(st.text(max_size=30), st.integers(1, 20))
def test_a_shortened_text_fits(text, width):
    found = shortened(text, width)
    assert cell_width(found) <= width
    assert found == text or found.endswith("…")
    assert cell_width(padded(found, width)) == width
    assert text.startswith(beginning(text, width))
