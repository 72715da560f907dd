from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.tokens.styles import alpha, are_alike, colour


@each(
    "text, expected",
    [
        ("white", (255, 255, 255)), (" ivory ", (255, 255, 240)), ("#fff", (255, 255, 255)),
        ("#12f8", (17, 34, 255)), ("#123456", (18, 52, 86)), ("123456", (18, 52, 86)),
        ("#12345678", (18, 52, 86)), ("rgb(1, 2, 300)", (1, 2, 255)),
        ("rgb(100%,0%,50%)", (255, 0, 127)), ("rgba(1 2 3 / 0.5)", (1, 2, 3)),
        ("hsl(0, 100%, 50%)", (255, 0, 0)), ("hsl(120,0%,100%)", (255, 255, 255)),
        ("nobody", None), ("#12", None), ("rgb(1,2)", None), ("", None),
    ],
)  # fmt: skip
def test_colours_by_all_their_names(text, expected):
    assert colour(text) == expected


@each(
    "text, expected",
    [
        ("transparent", True), ("rgba(0,0,0,0)", True), ("rgba(0 0 0 / 5%)", True),
        ("hsla(0,0%,0%,.05)", True), ("#0000", True), ("#00000010", True), ("#000f", False),
        ("#00000080", False), ("rgba(0,0,0,1)", False), ("rgb(0,0,0)", False), ("black", False),
        ("#zzzz", False), ("", False),
    ],
)  # fmt: skip
def test_colours_that_let_all_through(text, expected):
    assert is_clear(text) == expected


@given(st.text(alphabet="#0123456789abcdefghlrs(),.%- "))
def test_any_text_is_a_colour_or_none(text):
    found = colour(text)
    is_clear(text)
    assert found is None or all(0 <= part <= 255 for part in found)


def test_what_an_eye_takes_for_one():
    assert are_alike((255, 255, 255), (255, 255, 240))
    assert not are_alike((255, 255, 255), (200, 200, 200))
