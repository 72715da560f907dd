"""The MIME tree, and what is read of long texts."""

import base64
import binascii

from golden_tables import golden_table
from one_case import each

from nbspam.reading.message import parse
from nbspam.reading.mime import PARTS_LIMIT, TEXT_LIMIT, is_html

PAGE = b"<html><body>a page to read</body></html>"
CODED = b"Content-Type: text/html\nContent-Transfer-Encoding: base64\n\n" + base64.encodebytes(PAGE)


def mixed(*parts):
    inside = b"".join(b"--b\n" + part + b"\n" for part in parts)
    return b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n" + inside + b"--b--\n"


def texts(raw):
    return [part.text for part in parse(raw).parts if part.text.strip()]


@each("raw", golden_table("reading/pages.table", 1, "whatever the header claims"))
def test_a_page_is_read_whatever_the_header_claims(raw):
    assert texts(raw.encode().replace(b"<CODED>", CODED)) == [PAGE.decode()]


def test_a_part_with_two_transfer_encodings_is_decoded_by_each():
    encodings = b"quoted-printable\nContent-Transfer-Encoding: base64"
    raw = b"Subject: x\nContent-Type: text/plain; charset=utf-16le\nContent-Transfer-Encoding: "
    [text] = texts(raw + encodings + b"\n\n" + base64.b64encode("cheap pills".encode("utf-16le")))
    assert text.endswith("\ncheap pills")


@each("depth", [25, 200, 900])
def test_a_page_is_read_at_any_depth(depth):
    raw = CODED
    for i in range(depth):
        raw = b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n%b" % (i, i, raw)
    assert texts(b"Subject: x\n" + raw) == [PAGE.decode()]
    assert not parse(b"Subject: x\n" + raw).limits


def test_a_page_too_deep_is_read_without_its_tree_and_messages_too_deep_are_text():
    raw = CODED
    for i in range(1_500):
        raw = b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n%b" % (i, i, raw)
    message = parse(b"Subject: x\n" + raw)
    assert [part.text for part in message.parts] == [PAGE.decode()]
    assert message.limits == {"depth"}
    raw = b"Subject: in\nContent-Type: message/rfc822\n\n" * 1_500 + b"at the bottom\n"
    message = parse(raw)
    assert "at the bottom" in message.parts[-1].text
    assert message.limits == {"depth"}


def test_of_too_many_parts_the_first_and_the_last_are_read_and_the_others_as_one_text():
    message = parse(mixed(*[b"\npart %d\n" % i for i in range(2_000)]))
    assert len(message.parts) == PARTS_LIMIT - 1  # the last delimiter is one, too
    assert message.limits == {"parts"}
    for i in (0, PARTS_LIMIT // 2 - 3, 2_002 - PARTS_LIMIT // 2, 1_999):
        assert f"part {i}\n" in [part.text for part in message.parts]
    assert [part for part in message.parts if "part 1000\n" in part.text]


GIF, OCTETS = b"Content-Type: image/gif\n", b"Content-Type: application/octet-stream"
NAMED = b"Content-Disposition: attachment; filename=a.xhtml\n"
READ = [OCTETS + b"\n", OCTETS + b"; name=a.html\n", GIF + NAMED]
READ += [b"Content-Type: application/x-any; name=a.HTM\n"]


@each("fields", [*READ, GIF, b"Content-Type: application/pdf; name=a.pdf\n"])
def test_pages_in_attachments_are_read(fields):
    raw = mixed(fields + b"Content-Transfer-Encoding: base64\n\n" + base64.encodebytes(PAGE))
    assert texts(raw) == ([PAGE.decode()] if fields in READ else [])
    assert texts(mixed(OCTETS + b"\n\nbytes of any kind\n")) == []


def doubts(*inside, kind=b"mixed"):
    """Return of each part of a multipart whether programs may not show it, or on demand only."""
    parts = parse(mixed(*inside).replace(b"mixed", kind)).parts
    return [part.is_possibly_hidden or part.is_attached for part in parts]


PLAIN = b"\nplain"
ROOT = b"Content-ID: <r>\nContent-Type: text/html\n\nroot"
ATTACHED = [
    b"Content-Type: application/xml\n\nx",
    b"Content-Type: message/delivery-status\n\nx",
    b"Content-Type: text/csv\n\nx",
    b"Content-Type: text/calendar\n\nx",
    b"Content-Disposition: ATTACHMENT; filename=a\n\nx",
    b"Content-Disposition: later\n\nx",
    b"Content-Type: application/ms-tnef\n\nsome words",
]


@each(
    "inside, kind, expected",
    [
        ((PLAIN, CODED), b"mixed", [False, False]),
        ((CODED, PLAIN), b"related", [False, True]),
        ((CODED, ROOT), b'related; start="<r>"', [True, True]),
        ((ROOT, CODED), b'related; start="<r>"', [False, True]),
        ((ROOT, CODED), b'related; start="<unknown>"', [False, True]),
        ((PLAIN, CODED), b"related", [True, True]),
        ((CODED + b"Content-Disposition: inline\n\n", PLAIN), b"mixed", [False, False]),
    ],
)
def test_related_parts_are_in_doubt_but_the_one_that_all_programs_show(inside, kind, expected):
    assert doubts(*inside, kind=kind) == expected


@each("attached", ATTACHED)
def test_what_is_shown_on_demand_only_is_attached_unless_it_is_the_whole_mail(attached):
    found = doubts(PLAIN, attached)
    assert not found[0]
    assert all(found[1:])
    assert not parse(b"Subject: x\n" + attached).parts[0].is_attached


def inner(multipart, sign=b"c"):
    """Return a multipart as a part of another one."""
    part = multipart.partition(b"\n")[2]
    return part.replace(b"=b", b"=" + sign).replace(b"--b", b"--" + sign)


def test_what_is_in_a_doubtful_part_is_doubtful():
    message = b"Content-Type: message/rfc822\n\nSubject: in\n" + inner(mixed(PLAIN, CODED))
    assert doubts(PLAIN, message) == [False, True, True, True]
    message = b"Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n"
    message += base64.encodebytes(b"Subject: in\n\nwords\n")
    assert texts(mixed(message)) == ["in", "words\n"]
    attached = b"Content-Disposition: attachment\n" + inner(mixed(PLAIN, CODED))
    assert doubts(PLAIN, attached) == [False, True, True]
    assert doubts(CODED, inner(mixed(PLAIN, CODED)), kind=b"related") == [False, True, True]
    wrong = inner(mixed(PLAIN, CODED)).replace(b"boundary=c", b"boundary=unused")
    assert doubts(PLAIN, wrong) == [False, True]


def test_the_versions_of_an_alternative_are_numbered_also_what_is_in_them():
    def versions(raw):
        return [part.version for part in parse(raw).parts]

    alternative = mixed(PLAIN, CODED).replace(b"mixed", b"alternative")
    assert versions(alternative) == [(0, 0), (0, 1)]
    assert versions(mixed(PLAIN, inner(alternative), PLAIN)) == [None, (1, 0), (1, 1), None]
    two = mixed(inner(alternative), inner(alternative, b"d"))
    assert versions(two) == [(0, 0), (0, 1), (2, 0), (2, 1)]
    related = mixed(CODED, PLAIN).replace(b"mixed", b"related")
    raw = mixed(PLAIN, inner(related)).replace(b"mixed", b"alternative")
    assert versions(raw) == [(0, 0), (0, 1), (0, 1)]
    raw = mixed(PLAIN, inner(alternative)).replace(b"mixed", b"alternative")
    assert versions(raw) == [(0, 0), (0, 1), (0, 1)]
    assert [part.is_possibly_hidden for part in parse(raw).parts] == [False, True, True]


SIGNED = (
    b"\x30\x82\x04\x00\x06\t*\x86\x24\x82Content-Type: text/plain\r\n\r\nsigned words\r\n\x00\x30"
)
TNEF = b"\x78\x9f\x3e\x22\x01\x00\x01\x00body of Outlook\x00\x02"
UU = b"a text\nbegin 644 a.txt\n" + binascii.b2a_uu(b"uuencoded words") + b"`\nend\n"


@each(
    "kind, data, words",
    [
        (b"application/pkcs7-mime; smime-type=signed-data", SIGNED, "signed words"),
        (b"application/octet-stream; name=WINMAIL.DAT", b"AAAA", ""),
        (b"application/x-pkcs7-mime", SIGNED, "signed words"),
        (b"application/ms-tnef", TNEF, "body of Outlook"),
        (b"text/plain", UU, "uuencoded words"),
    ],
)
def test_the_text_in_a_container_is_read(kind, data, words):
    part = b"Content-Type: " + kind + b"\nContent-Transfer-Encoding: base64\n\n"
    for coded in (part + base64.encodebytes(data), part.replace(b"base64", b"8bit") + data):
        if kind == b"text/plain" and b"base64" in coded:
            continue
        found = parse(b"Subject: x\n" + coded).parts
        assert words in found[-1].text
        assert found[-1].is_attached == (kind == b"text/plain")
        assert doubts(PLAIN, coded)[-1]
        limits = {"container"} if kind != b"text/plain" else set()
        assert parse(b"Subject: x\n" + coded).limits == limits  # it may be read in part only
        assert parse(b"Subject: x\n" + mixed(PLAIN, coded)).limits == frozenset()


def test_a_line_may_be_no_field():
    assert texts(mixed(b"no field here\n" + CODED)) == [PAGE.decode()]
    text = b"\na text, then\nContent-Type: text/html\n\nmore"
    assert texts(mixed(text)) == [text.removeprefix(b"\n").decode()]


@each("text, is_page", golden_table("reading/pages.table", 2, "beginnings"))
def test_html_is_known_by_its_beginning_its_type_or_its_name(text, is_page):
    assert is_html("text/plain", "a.txt", text) == (is_page == "True")
    assert is_html("text/html", "", text)
    assert is_html("application/xhtml+xml", "", text)
    assert is_html("application/octet-stream", "page.HTM", text)


def many_parts(before, after):
    empty = b"Content-Type: text/plain\n\n"
    return mixed(*[empty] * before, CODED, *[empty] * after)


@each("before, after", [(11_000, 0), (0, 11_000), (400, 4_000)])
def test_a_page_is_read_beyond_many_empty_parts(before, after):
    assert PAGE.decode() in texts(many_parts(before, after))


def test_a_limit_of_parts_is_told():
    assert "parts" in parse(many_parts(PARTS_LIMIT, 0)).limits
    assert not parse(many_parts(PARTS_LIMIT - 2, 0)).limits


@each("before", [0, 1, 498, 499, 500, 501, 996, 997])
def test_the_parts_are_the_same_whichever_way_they_are_looked_for(before):
    body = b"--b\nx\n" * before + b"--bc\n--b\n\nthe last\n--b--\nand after\n-- \n----\n"
    raw = b"Subject: x\nContent-Type: multipart/mixed; boundary=b\n\n" + body
    message = parse(raw)
    assert message.parts[-1].text == "the last"
    assert len(message.parts) == before + 1
    assert message.limits == set()
    other = parse(raw + b"--other\n\nfrom elsewhere\n").parts[-1]
    assert "from elsewhere" in other.text
    assert other.is_possibly_hidden


def text_part(n_words, attached=False, page=False):
    """Return a part of so many words of 8 letters."""
    fields = b"Content-Type: text/html\n" if page else b""
    fields += b"Content-Disposition: attachment\n" if attached else b""
    return fields + b"\n" + b" ".join(b"%07d" % i for i in range(n_words))


@each("page", [False, True])
def test_of_a_long_text_the_beginning_and_the_end_are_read(page):
    n = TEXT_LIMIT // 8
    assert not parse(mixed(text_part(n - 10, page=page))).limits
    message = parse(mixed(text_part(2 * n, page=page)))
    assert message.limits == {"text"}
    words = message.parts[0].text.split()
    assert (words[0], words[-1]) == ("0000000", f"{2 * n - 1:07}")
    assert len(message.parts[0].text) == TEXT_LIMIT
    assert len(words) > n - 10


def test_short_texts_stay_whole_beside_long_ones():
    message = parse(mixed(PLAIN, text_part(TEXT_LIMIT // 8), text_part(TEXT_LIMIT // 8)))
    assert message.limits == {"text"}
    assert message.parts[0].text == "plain"
    sizes = [len(part.text) for part in message.parts]
    assert sum(sizes) <= TEXT_LIMIT
    assert sizes[1] == sizes[2]


def test_a_long_attachment_takes_no_room_from_the_text_and_exceeds_no_limit():
    """As a PDF, which is not read at all: its words would not count for ham."""
    n = TEXT_LIMIT // 8 - 1_000
    message = parse(mixed(text_part(n), text_part(3 * n, attached=True)))
    assert message.limits == set()
    assert len(message.parts[0].text.split()) == n
    attached = message.parts[1].text.split()
    assert (attached[0], attached[-1]) == ("0000000", f"{3 * n - 1:07}")
