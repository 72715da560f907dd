"""Plain TOML is what `tomllib` reads, or is left to it."""

import tomllib

from hypothesis import example, given
from hypothesis import strategies as st
from one_case import each

from nbspam.cli.settings import plain_document

KEYS = st.sampled_from(
    ["a", "spam-cutoff", "b_1", "0", "-", "_", "é", "a.b", '"a"', "", "a b", "²"]
)
VALUES = st.one_of(
    st.sampled_from(
        "true false True 1 0 00 01 -1 +1 1_0 1.5 1. .5 0.5 00.5 1e5 inf nan 0x1 ² ١ 1979-05-27 [1]"
        ' "" "x" """ "a\\"b" "é" \'x\' "a#b" 1#c true=1 "x"1 9999999999999999999'.split()
    ),
    st.text(max_size=6),
    st.text(max_size=6).map(lambda text: f'"{text}"'),
)
BLANK = st.sampled_from(["", " ", "\t", "\u00a0"])
LINES = st.one_of(
    st.tuples(BLANK, KEYS, BLANK, st.just("="), BLANK, VALUES, BLANK).map("".join),
    st.tuples(BLANK, st.just("["), KEYS, st.just("]"), BLANK).map("".join),
    st.text(max_size=8),
    st.text(max_size=5).map(lambda text: f"# {text}"),
)


@given(st.lists(LINES, max_size=6), st.sampled_from(["\n", "\r\n", "\r"]))
@example(["[a]", "b = 1", "[c]", "b = 2"], "\n")
@example(["a = 1", "[a]"], "\n")
@example(["a=1", "a=1"], "\n")
@example(["[a]", "[a]"], "\n")
def test_it_is_what_tomllib_reads(lines, end):
    text = end.join(lines)
    found = plain_document(text)
    if found is not None:
        expected = tomllib.loads(text)
        assert found == expected
        assert repr(found) == repr(expected)  # 1 is no True and no 1.0


@each(
    "text",
    ["", "# a comment\n\n[classify]\n", 'model = "~/é.json"\nspam-cutoff = 0.99\n\njobs = 10',
     "[model-prune]\n  min-count=2\n[eval]\nstrict = true"],
)  # fmt: skip
def test_usual_files_are_plain(text):
    assert plain_document(text) == tomllib.loads(text)


@each("text", ["a = 'b'", "a = 1 # c", "a.b = 1", "a = [1]", "[[a]]", "a = -1"])
def test_other_files_are_left_to_tomllib(text):
    assert plain_document(text) is None
    assert tomllib.loads(text)
