"""Counts of other programs: bogofilter's words (and bogofilter, where it is installed), and CSV."""

import io
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from one_case import each
from whole_models import THREE, TWO, numbered, taught

from nbspam.errors import OptionError, SourceError
from nbspam.reading import mail as mbox
from nbspam.reading.message import parse, parse_text
from nbspam.reading.source import Skips
from nbspam.store.word_lists import (
    dump_counts_table,
    dump_word_list,
    parse_counts,
    tokens_of,
    word_of,
)
from nbspam.tokens.tokenized import message_tokens

SAMPLE = Path(__file__).parents[2] / "sample_data"
LIST = b"""\
.ENCODING 2 0 20260105
.MSG_COUNT 30 40 20260105
.WORDLIST_VERSION 20040500 0 20260105
.ROBX 415000 0 20260105
FREE 12 0 20260105
Free 9 1 20260105
free 20 2 20260105
meeting*Tomorrow 0 17 20260103
subj:Cheap 7 1
"""


def rows_of(name):
    text = (Path(__file__).parents[1] / "golden" / "store" / name).read_text("utf-8")
    return [line.split("\t") for line in text.splitlines()]


def read(raw, strict=False):
    skips = Skips(strict)
    return parse_counts("words.txt", io.BytesIO(raw), skips), skips


# Words to tokens


@each("word, tokens", [*rows_of("bogofilter-words.tsv"), ("fr\u200bee", "free"), ("x" * 31, "")])
def test_words_become_the_tokens_of_the_same_message(word, tokens):
    assert set(filter(None, tokens.split("|"))) == tokens_of(word)


def test_words_of_a_mail_are_its_tokens():
    """What a word stands for is what the tokenizer makes of a mail that holds it."""
    mail = parse(
        b"From: Alice <alice@mail.example.org>\nTo: bob@example.com\nSubject: Cheap claim_now\n"
        b"Return-Path: <bounce-x@example.net>\nErrors-To: 1\n"
        b"Received: from x ([192.0.2.7]) by mx2.example.com\nContent-Type: text/plain\n\n"
        b"Hello WORLD don't v1agra http://www.shop.example.com/x"
    )
    tokens = message_tokens(mail)
    for word in (
        "from:Alice from:mail.example.org to:bob to:example.com subj:Cheap subj:claim_now"
        " rtrn:bounce-x head:Errors-To rcvd:mx2.example.com rcvd:192.0.2.7"
        " Hello WORLD Hello*WORLD don't v1agra"
    ).split():
        assert tokens_of(word) <= tokens, word
        assert tokens_of(word), word
    assert "host:www.shop.example.com" in tokens_of("www.shop.example.com") & tokens


# Tokens to words, and back


def sample_tokens():
    messages = [parse(path.read_bytes()) for path in sorted((SAMPLE / "odd").glob("*.eml"))]
    for path in sorted((SAMPLE / "mail").glob("*.mbox")):
        with path.open("rb") as stream:
            messages += map(parse, mbox.messages(stream, 1 << 20))
    for path in sorted(SAMPLE.glob("*.tsv")):
        rows = path.read_text("utf-8").splitlines()
        messages += [parse_text(row.partition("\t")[2]) for row in rows]
    return set().union(*map(message_tokens, messages))


def test_the_sample_datas_tokens_come_back():
    tokens = sample_tokens()
    assert len(tokens) > 3000
    words = {token: word_of(token) for token in tokens}
    lost = [token for token, word in words.items() if word is None]
    assert len(lost) <= len(tokens) // 1000
    assert len(set(words.values())) == len(words) - max(0, len(lost) - 1)
    for token, word in words.items():
        if word is not None:
            assert tokens_of(word) == {token}
            assert not word.startswith(".")


@each("token, word", rows_of("bogofilter-tokens.tsv"))
def test_the_words_that_stand_for_tokens(token, word):
    assert word == word_of(token)
    assert tokens_of(word) == {token}


def test_tokens_that_no_word_can_stand_for():
    lost = ["", "a b c", "a\tb", "x:y", "WINNER", "case:a b", ".MSG_COUNT", "mime:odd", "a\nb"]
    assert list(map(word_of, lost)) == [None] * len(lost)


@given(st.text(max_size=12) | st.from_regex(r"(subj|from|head|host|tri|rcvd):.{0,6}"))
def test_any_word_gives_tokens_and_any_token_a_word_or_none(text):
    assert all(isinstance(token, str) for token in tokens_of(text))
    word = word_of(text)
    assert word is None or (tokens_of(word) == {text} and not set(word) & set(" \n\t\r"))


# Lists


def test_a_list_is_read():
    found, skips = read(LIST)
    assert skips.count == 0
    assert found.messages == (40, 30)
    assert found.counts == {
        "free": (2, 20),  # the most frequent of its forms, class by class
        "meeting tomorrow": (17, 0),
        "subject:cheap": (1, 7),
    }
    assert (found.words, found.foreign) == (5, 0)
    found, _ = read(LIST + b"head:multipart 1 1\nmime:base64 1 1\n")  # words without a token
    assert (found.words, found.foreign) == (7, 2)
    found, _ = read(LIST + LIST)  # they add up
    assert (found.messages, found.counts["free"]) == ((80, 60), (4, 40))


BAD_LINES = [
    *(b"free 1", b"free", b"free 1 2 20260101 5", b"free one 2", b"free -1 2", b"free 1.5 2"),
    *(b"free 99999999999999999 1", b"free 9999999999999999 1", b"free \xd9\xa1 2"),
    *(b"fr ee 1 2 20260101", b" free 1 2", b"free\t1\t2", b"x" * 1001 + b" 1 2"),
]


@each("line", BAD_LINES)
def test_a_bad_line_is_skipped_and_named(line):
    found, skips = read(LIST + line + b"\nlast 3 4\n")
    assert found.counts["last"] == (4, 3)
    assert found.counts["free"] == (2, 20)
    assert skips.count == 1
    assert skips.named[0].startswith("words.txt:10: ")
    with pytest.raises(SourceError, match=r"words\.txt:10: .*without strict"):
        read(LIST + line + b"\n", strict=True)


@each("raw", [b"", b"\n", b"free 1 2\n", b".MSG_COUNT 0 0\nfree 1 2\n"])
def test_a_list_without_messages_is_none(raw):
    with pytest.raises(SourceError, match="MSG_COUNT") as error:
        read(raw)
    assert "\n" not in str(error.value)


def test_other_character_sets_and_blanks_within_words():
    found, skips = read(b".MSG_COUNT 2 2\ncaf\xe9 1 0\nna\xc3\xafve 1 0\na\xc2\xa0b 1 0\n")
    assert skips.count == 0
    assert {"café", "naïve", "a b"} <= found.counts.keys()


@given(numbered())
def test_a_models_list_brings_its_counts_back(messages):
    header = {"received:192.0.2", "return-path:a", "header:errors-to:", "sender:b", "by:mx.example"}
    model = taught([*messages, ("spam", {"subject:a b", "tri:x*y", *header}, 99)])
    text, left_out = dump_word_list(model)
    found, skips = read(text.encode(), strict=True)
    assert (left_out, skips.count, found.foreign) == (0, 0, 0)
    assert model.metadata.learned.messages == found.messages
    assert model.counts == found.counts


def test_what_a_list_cannot_hold_is_left_out_or_refused():
    text, left_out = dump_word_list(taught([("spam", {"good", "a b c", "BAD"}, 1)]))
    assert (text, left_out) == (".MSG_COUNT 1 0\ngood 1 0\n", 2)
    with pytest.raises(OptionError, match="export it as CSV"):
        dump_word_list(taught([], THREE))


def test_the_positive_class_is_spam_whatever_it_is_called():
    model = taught([("ham", {"a"}, 1), ("spam", {"b"}, 2), ("spam", {"b"}, 3)])
    chosen = model.metadata.settings._replace(classes=("good", "junk"), positive="junk")
    model = model._replace(metadata=model.metadata._replace(settings=chosen))
    assert dump_word_list(model)[0].splitlines() == [".MSG_COUNT 2 1", "a 0 1", "b 2 0"]


# The real one


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")


def run(*command, stdin=b""):
    done = subprocess.run(
        list(map(str, command)), input=stdin, capture_output=True, check=False, timeout=60
    )
    assert done.returncode in (0, 1, 2), done.stderr
    return done


def test_bogoutil_loads_our_list_and_dumps_it_unchanged(tmp_path):
    need("bogoutil")
    spam = "free", "claim now", "subject:free prize", "punct:!!!", "£00", "免费"
    ham = ["grüße", "received:smtp", "received:192.0.2", "by:mx.example.org", "host:example.org"]
    model = taught([("spam", set(spam), 1), ("ham", {*ham, "tri:a*b"}, 2)])
    text, left_out = dump_word_list(model)
    assert left_out == 0
    run("bogoutil", "-l", tmp_path / "wordlist.db", stdin=text.encode())
    found, skips = read(run("bogoutil", "-d", tmp_path / "wordlist.db").stdout, strict=True)
    assert skips.count == 0
    assert model.counts == found.counts
    assert model.metadata.learned.messages == found.messages


def test_what_bogofilter_learned_is_what_we_would_have_counted(tmp_path):
    need("bogofilter", "bogoutil")
    mails = [
        ("-s", b"From: eve@spam.example\nSubject: free PRIZE\n\nClaim the Free prize money\n"),
        ("-s", b"From: eve@spam.example\nSubject: hello\n\nprize winner notice\n"),
        ("-n", b"From: alice@example.org\nSubject: lunch\n\nThe meeting is at noon\n"),
    ]
    for flag, mail in mails:
        run("bogofilter", "-d", tmp_path, flag, stdin=mail)
    found, _ = read(run("bogoutil", "-d", tmp_path / "wordlist.db").stdout, strict=True)
    assert found.messages == (1, 2)
    expected = {}
    for flag, mail in mails:
        for token in message_tokens(parse(mail)):
            ham, spam = expected.get(token, (0, 0))
            expected[token] = (ham + (flag == "-n"), spam + (flag == "-s"))
    for token in (
        "prize free claim winner meeting noon subject:free subject:prize subject:lunch from:eve"
        " from:@spam.example from:@example.org from:alice"
    ).split():
        assert expected[token] == found.counts[token], token


def test_bogofilter_decides_with_our_list(tmp_path):
    need("bogofilter", "bogoutil")
    spam = [("spam", {"prize", "winner", "claim", "subject:prize"}, i) for i in range(30)]
    ham = [("ham", {"meeting", "lunch", "notes", "subject:lunch"}, 100 + i) for i in range(30)]
    words = dump_word_list(taught(spam + ham))[0]
    run("bogoutil", "-l", tmp_path / "wordlist.db", stdin=words.encode())
    for mail, code in (
        (b"Subject: prize\n\nclaim prize winner\n", 0),
        (b"Subject: lunch\n\nmeeting notes lunch\n", 1),
    ):
        assert run("bogofilter", "-d", tmp_path, stdin=mail).returncode == code


# Tables

TABLE = "token,ham,spam\n(messages),40,30\nfree,2,20\nclaim now,0,7\n"


def read_table(text, strict=False):
    skips = Skips(strict)
    return parse_counts("counts.csv", io.BytesIO(text.encode()), skips), skips


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
def test_a_table_that_is_written_is_read_again(drawn):
    classes, messages = drawn
    model = taught([(*message, i) for i, message in enumerate(messages)], classes)
    text, left_out = dump_counts_table(model)
    found, _ = read_table(text, strict=True)
    assert left_out == 0
    assert found == (classes, model.metadata.learned.messages, model.counts, 0, 0)


def test_the_form_of_a_table():
    model = taught([("ham", {'say "hi"', "a,b"}, 1), ("spam", {"free", "claim now"}, 2)])
    assert dump_counts_table(model)[0].splitlines() == [
        "token,ham,spam",
        "(messages),1,1",
        '"a,b",1,0',
        "claim now,0,1",
        "free,0,1",
        '"say ""hi""",1,0',
    ]


def test_a_table_may_have_other_line_ends_and_empty_lines():
    assert read_table(TABLE.replace("\n", "\r\n"))[0] == read_table(TABLE + "\n\n")[0]


BAD_ROWS = [
    *("x,1", "x,1,2,3", "x,one,2", "x,-1,2", "x,1.5,2", "x,1_0,2", "x,٣,2", "x,,2"),
    *("x,99999999999999999,2", "free,1,1", '"x"y,1,1', f"{'x' * 1001},1,1"),
]


@each("line", BAD_ROWS)
def test_a_bad_row_is_skipped_and_named(line):
    found, skips = read_table(f"{TABLE}{line}\nlast,1,1\n")
    assert found.counts == {"free": (2, 20), "claim now": (0, 7), "last": (1, 1)}
    assert skips.count == 1
    assert skips.named[0].startswith("counts.csv:5: ")
    with pytest.raises(SourceError, match=r"counts\.csv:5: .*without strict"):
        read_table(f"{TABLE}{line}\n", strict=True)


def test_a_quote_that_never_closes_takes_the_rest():
    found, skips = read_table(f'{TABLE}"x,1,1\nlast,1,1\n')
    assert set(found.counts) == {"free", "claim now"}
    assert skips.count == 1


@each(
    "text, line",
    [
        ("token,spam\n(messages),1\n", 1),
        *[(f"{first}\n(messages),1,2\n", 1) for first in ("token,spam,spam", "token,spam,")],
        *[
            (f"token,ham,spam\n{second}", 2)
            for second in ("", "free,1,2\n", "(messages),1\n", "(messages),1,many\n")
        ],
    ],
)
def test_a_table_without_its_first_lines_is_none(text, line):
    with pytest.raises(SourceError) as error:
        read_table(text)
    assert str(error.value).startswith(f"counts.csv:{line}: ")
    assert "\n" not in str(error.value)
