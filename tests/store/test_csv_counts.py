import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from whole_models import THREE, TWO, taught

from nbspam.errors import SourceError
from nbspam.reading.source import Skips
from nbspam.store.csv_counts import dump_counts_table, read_counts_table

TABLE = "token,ham,spam\n(messages),40,30\nfree,2,20\nclaim now,0,7\n"


def read(text, strict=False):
    skips = Skips(strict)
    return read_counts_table("counts.csv", text.splitlines(keepends=True), skips), skips


TOKENS = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from(',"\n\r\t \x00'), max_size=8
)


@given(
    st.sampled_from([TWO, THREE]).flatmap(
        lambda classes: st.tuples(
            st.just(classes),
            st.lists(st.tuples(st.sampled_from(classes), st.sets(TOKENS, max_size=4)), max_size=6),
        )
    )
)
def test_what_is_written_is_read_again(drawn):
    classes, messages = drawn
    model = taught([(*message, i) for i, message in enumerate(messages)], classes)
    text, left_out = dump_counts_table(model)
    # lines as a file gives them: ended by a line feed alone
    lines = [f"{line}\n" for line in text.removesuffix("\n").split("\n")]
    found = read_counts_table("counts.csv", lines, Skips(strict=True))
    assert left_out == 0
    assert found == (classes, model.metadata.learned.messages, model.counts)


def test_the_form():
    model = taught([("ham", {'say "hi"', "a,b"}, 1), ("spam", {"free", "claim now"}, 2)])
    assert dump_counts_table(model)[0].splitlines() == [
        "token,ham,spam",
        "(messages),1,1",
        '"a,b",1,0',
        "claim now,0,1",
        "free,0,1",
        '"say ""hi""",1,0',
    ]


def test_other_line_ends_and_empty_lines():
    assert read(TABLE.replace("\n", "\r\n"))[0] == read(TABLE + "\n\n")[0]


BAD_ROWS = [
    *("x,1", "x,1,2,3", "x,one,2", "x,-1,2", "x,1.5,2", "x,1_0,2", "x,٣,2", "x,,2"),
    *("x,99999999999999999,2", "free,1,1", '"x"y,1,1', f"{'x' * 1001},1,1"),
]


@each("line", BAD_ROWS)
def test_a_bad_row_is_skipped_and_named(line):
    found, skips = read(f"{TABLE}{line}\nlast,1,1\n")
    assert found.counts == {"free": (2, 20), "claim now": (0, 7), "last": (1, 1)}
    assert skips.count == 1
    assert skips.named[0].startswith("counts.csv:5: ")
    with pytest.raises(SourceError, match=r"counts\.csv:5: .*without strict"):
        read(f"{TABLE}{line}\n", strict=True)


def test_a_quote_that_never_closes_takes_the_rest():
    found, skips = read(f'{TABLE}"x,1,1\nlast,1,1\n')
    assert set(found.counts) == {"free", "claim now"}
    assert skips.count == 1


@each(
    "text, line",
    [
        *[(text, 1) for text in ("", "token\n", "token,spam\n(messages),1\n")],
        *[(f"{first}\n(messages),1,2\n", 1) for first in ("token,spam,spam", "token,spam,")],
        ("word,ham,spam\n(messages),1,2\n", 1),
        *[
            (f"token,ham,spam\n{second}", 2)
            for second in ("", "free,1,2\n", "(messages),1\n", "(messages),1,many\n")
        ],
    ],
)
def test_a_table_without_its_first_lines_is_none(text, line):
    with pytest.raises(SourceError) as error:
        read(text)
    assert str(error.value).startswith(f"counts.csv:{line}: ")
    assert "\n" not in str(error.value)
