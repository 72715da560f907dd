"""Bytes to text: charsets and transfer encodings."""

import base64
import binascii
import codecs

from golden_tables import golden_table
from hypothesis import given
from hypothesis import strategies as st
from one_case import each

from nbspam.reading.charsets import (
    codec_of,
    decode,
    decode_base64,
    decode_transfer,
    decode_uu,
    is_identity,
)

CHARSETS = st.one_of(
    st.sampled_from(
        "utf-8 utf-7 utf-16 utf-32 us-ascii latin-1 gb2312 big5 hz iso-2022-jp iso-2022-kr idna "
        "punycode unicode_escape raw-unicode-escape unicode.escape hex rot13 zlib undefined mbcs "
        "charmap utf_8_sig shift_jis koi8-r cp437 unicode x\x00y é".split(" ")
    ),
    st.text(max_size=12),
)


@each(
    "name",
    "UTF8 latin1 ISO_8859-15 l9 cp1251 windows_1251 koi8-u mac-romanian cp737 iso8859-1".split(),
)
def test_charsets_by_any_name_that_python_knows(name):
    data = "é" if codecs.lookup(name).name in ("utf-8", "iso8859-1", "iso8859-15") else "я"
    data = "ă" if "mac" in name else "Ω" if name == "cp737" else data
    assert decode(data.encode(name), name) == data


@each("labels, codec", golden_table("reading/charsets.table", 2))
def test_charsets_by_the_labels_of_the_encoding_standard(labels, codec):
    for label in labels.split():
        for name in (label, label.upper(), f" {label} ", f"'{label}'"):
            assert codec_of(name) in (codec, *(["utf_16_le"] if codec == "utf_16" else []))


@each(
    "name, codec, word",
    [
        ("iso-8859-8-i", "iso8859-8", "פרס"),
        ("iso-8859-1", "cp1252", "“now”"),
        ("iso-8859-9", "cp1254", "“şimdi”"),
        ("windows-874", "cp874", "รางวัล"),
        ("gb2312", "gb18030", "免费㐀"),
        ("big5", "big5hkscs", "免費嘅"),
        ("euc-kr", "cp949", "경품똠"),
        ("x-sjis", "cp932", "無料①"),
        ("utf-16", "utf-16-le", "приз и приз"),
        ("unicodefffe", "utf-16-be", "приз и приз"),
    ],
)
def test_a_name_stands_for_the_largest_charset_that_software_uses_it_for(name, codec, word):
    assert decode(word.encode(codec), name) == word


def test_a_broken_character_leaves_the_others_in_the_claimed_charset():
    assert decode("δώρο ".encode("cp1253") + b"\xff", "windows-1253") == "δώρο \ufffd"


@each("charset", ["", "unknown-8bit", "x-user-defined"])
@each(
    "meta",
    [
        "<meta charset=koi8-r>",
        "<META CharSet = 'KOI8-R' />",
        '<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">',
    ],
)
def test_a_page_names_its_charset_if_its_part_does_not(meta, charset):
    page = f"<html><head>{meta}</head><p>приз"
    assert decode(page.encode("koi8-r"), charset) == page
    assert decode(page.encode("koi8-r"), "windows-1251") == page.replace("приз", "РТЙЪ")
    assert decode(page.encode(), charset) == page  # UTF-8 is UTF-8
    late = "<p>" + 1024 * " " + page
    assert decode(late.encode("koi8-r"), charset) == late.replace("приз", "ÐÒÉÚ")


def test_a_page_cannot_name_a_charset_in_which_its_meta_could_not_be_read():
    page = "<meta charset=utf-16><p>über"
    assert decode(page.encode("cp1252"), "") == page
    japanese = "<meta charset=iso-2022-jp><p>無料"
    assert decode(japanese.encode("iso-2022-jp"), "") == japanese


@given(st.binary(max_size=80), CHARSETS)
def test_decode_never_raises_and_never_grows(data, charset):
    text = decode(data, charset)
    assert len(text) <= len(data)
    text.encode("utf-8")


TEXT = b"Claim your prize now: it waits for you, and for you alone.\n" * 3


@each("size", [55, 56, 57, 1, 2])
def test_base64_goes_on_after_padding(size):
    pieces = [TEXT[i : i + size] for i in range(0, len(TEXT), size)]
    assert decode_base64(b"".join(base64.b64encode(p) + b"\n" for p in pieces), set()) == TEXT


@each("footer", [b"_____\nlist footer\n", b"-- \nbye", b"!!\nQUJD\n", b"= =\n"])
def test_what_follows_base64_or_stands_within_it_and_is_none_is_left_out(footer):
    assert decode_base64(base64.encodebytes(TEXT + b"x") + footer, set()) == TEXT + b"x"
    encoded = base64.b64encode(TEXT)
    junk = b"!*\n".join(encoded[i : i + 9] for i in range(0, len(encoded), 9))
    assert decode_base64(junk, set()) == TEXT


def test_base64_with_too_many_paddings_is_said_not_to_be_decoded():
    limits = set()
    decode_base64(b"QUI=" * 50_001 + b"YnV5IHY= aWFncmE=", limits)
    assert limits == {"encoding"}


def test_a_body_that_may_be_text_or_base64_is_read_both_ways():
    encoded = base64.b64encode(TEXT)
    spaced = b" ".join(encoded[i : i + 8] for i in range(0, len(encoded), 8))
    assert decode_base64(spaced, set()) == spaced + b"\n" + TEXT
    assert decode_base64(b"YWI=\n" + spaced, set()) == b"ab" + TEXT
    words = b"".join(base64.b64encode(word + b" ") for word in TEXT.split())
    assert decode_base64(words, set()).split() == TEXT.split()


@each("text", [TEXT, "免费的钱, free money for you".encode(), b"one two", b""])
def test_a_text_that_claims_to_be_base64_is_left_as_it_is(text):
    assert decode_base64(text, set()) == text


def uu(data):
    lines = (binascii.b2a_uu(data[i : i + 45]) for i in range(0, len(data), 45))
    return b"begin 644 a.txt\n" + b"".join(lines) + b"`\nend\n"


@given(st.binary(max_size=300))
def test_uuencode_is_undone_and_crooked_one_never_raises(data):
    assert decode_uu(b"some words before\n" + uu(data) + b"and after\n", set()) == data
    decode_uu(b"begin 644 a\n" + data, set())  # a crooked one does not raise
    assert decode_uu(TEXT, set()) == TEXT  # without a begin line there is nothing to undo


def test_what_is_not_decoded_is_told():
    limits: set[str] = set()
    decode_base64(b"YQ==\n" * 50_000, limits)
    decode_uu(b"begin 644 a\n" + b"!80``\n" * 99_000, limits)
    assert not limits
    decode_base64(b"YQ==\n" * 50_001, limits)
    assert limits == {"encoding"}
    limits.clear()
    decode_uu(b"begin 644 a\n" + b"!80``\n" * 100_001, limits)
    assert limits == {"encoding"}


@each("encoding, identity", golden_table("reading/headers.table", 2, "encodings"))
def test_encodings_by_name(encoding, identity):
    assert is_identity(encoding) == (identity == "True")
    if identity == "True":
        assert decode_transfer(uu(b"a=20b"), encoding, set()) == uu(b"a=20b")
    if "uue" in encoding:
        assert decode_transfer(uu(b"a=20b"), encoding, set()) == b"a=20b"
