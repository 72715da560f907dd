"""The header of a message as bytes: its end, and the marks that nbspam writes into it.

When nbspam passes a message on, it adds a header for the verdict and optionally two more:
`NAME-Evidence`, and `NAME-Tag`, which names the tag before the Subject.  A marked message counts as
the same message, so its marks are removed before it is read.

Lines end with LF; a CR before it belongs to the line end and any other CR is an ordinary byte,
except in a message that has no LF at all.  The header ends at the first empty line.
"""

import re

MARK = "X-Nbspam"  # unless the user names another header
EVIDENCE, TAG = "-Evidence", "-Tag"
NAME_LIMIT = 60  # characters; a line has room for `NAME-Evidence:`
# A tag must be short, because a sender can forge marks, and the tokenizer does not see the text
# that a tag names.
TAG_LIMIT = 30
_NAMES_LIMIT = 10  # names of verdict headers in a message
# Bytes searched for the place of new marks; in a longer header new marks come first.  The reader
# uses 256 KiB of a header.  With CR CR LF line ends, such a header may take 768 KiB.  Mail servers
# refuse larger headers (Postfix 100 KB a field, Exim 1 MiB in all).
PLACE_LIMIT = 1 << 20

# A block is a mail's header only if it has one of these fields (or an X- field), because an SMS may
# start with "Reminder: call me".
_KNOWN = frozenset(
    "from to subject date cc bcc sender reply-to message-id received return-path mime-version "
    "content-type content-transfer-encoding content-disposition delivered-to envelope-to "
    "in-reply-to references resent-from resent-to list-id list-unsubscribe precedence "
    "newsgroups path status user-agent dkim-signature authentication-results".split()
)
_NOT_OURS = ("content-", "resent-", "list-", "mime-", "arc-")
_NAME = r"[!-9;-~]+"
_PLAIN = r"[!-~](?:[ -~]*[!-~])?"
# Patterns are compiled when a message is marked, because classifying does not need them.
# Quantifiers are possessive, so that a million fields do not leave a million places to backtrack
# to.  Patterns for a whole header start with a line end, because `re` finds a line end ten times as
# fast as the position after it.
BOM = b"\xef\xbb\xbf"
_START = rb"(?:^|(?<=\A\xef\xbb\xbf))"
_VALUE = rb"[^\n]*+(?:\n[ \t][^\n]*+)*"
_EMPTY = _START + rb"(?:\r*\n|\r+\Z)"
_EMPTY_CR = rb"\n\r++(?:\n|\Z)"
_BLOCK = rb"(?:[!-9;-~]++[ \t]*+:" + _VALUE + rb"(?:\n|\Z))+"
# many programs read a CR as a line end
_FIELD = rb"(?:^|(?<=\r)|(?<=\A\xef\xbb\xbf))([!-9;-~]+)[ \t]*:"
_SUBJECT = rb"subject[ \t]*:[ \t]*"
_SIGN = b", probability="  # in every verdict of nbspam, and seldom elsewhere
_VERDICT = (
    rb"\n([!-9;-~]{1,%d}):[ \t][^\n,]{1,999}, probability=[01]\.\d{6}(?:, reason=[a-z-]{1,40})?"
    rb", version=[^\s,]{1,40}\r*$" % NAME_LIMIT
)


def _pattern(text: bytes) -> re.Pattern[bytes]:
    return re.compile(text, re.MULTILINE | re.IGNORECASE)  # re caches it


def is_known_field(name: str) -> bool:
    """Return whether a header of this name (in lower case) shows that a text is a mail."""
    return name in _KNOWN or name.startswith("x-")


def may_be_mark(name: str) -> bool:
    """Return whether a verdict may have this name, which must not be a standard header's."""
    lower = name.lower()
    return (
        len(name) <= NAME_LIMIT
        and re.fullmatch(_NAME, name) is not None
        and lower not in _KNOWN
        and not lower.startswith(_NOT_OURS)
    )


def may_be_tag(text: str) -> bool:
    """Return whether a text may be put before the Subject: short, ASCII, no blanks around it."""
    return len(text) <= TAG_LIMIT and re.fullmatch(_PLAIN, text) is not None


def lines_of(raw: bytes) -> bytes:
    """Replace the CRs of a message without LF by LF; every byte keeps its place."""
    return raw if b"\n" in raw or b"\r" not in raw else raw.replace(b"\r", b"\n")


def header_end(lines: bytes) -> int:
    """Return the position of the first empty line, or the end."""
    start = len(BOM) if lines.startswith(BOM) else 0
    if is_empty_line(lines, start):
        return start
    end = lines.find(b"\n\n") + 1 or len(lines)
    with_cr = _pattern(_EMPTY_CR).search(lines, 0, end)
    return with_cr.start() + 1 if with_cr else end


def is_empty_line(lines: bytes, at: int) -> bool:
    """Return whether the line that starts at `at` is empty."""
    return _pattern(_EMPTY).match(lines, at) is not None


def has_header(lines: bytes, end: int) -> bool:
    """Return whether a known mail header is before `end`, within PLACE_LIMIT bytes."""
    # UTF-16 has line ends of two bytes, so no header is found
    if lines.startswith((b"\xff\xfe", b"\xfe\xff")):
        return False
    return any(
        is_known_field(m[1].decode("ascii").lower())
        for m in _pattern(_FIELD).finditer(lines, 0, min(end, PLACE_LIMIT))
    )


def block_end(lines: bytes, end: int) -> int:
    """Return the end of the well-formed header lines; an mbox's `From ` line may precede them.

    Returns `end` if the first line is junk: programs whose header ends at the empty line (procmail,
    bogofilter) find marks that are written before it.
    Returns the start of the lines if they do not end within PLACE_LIMIT bytes.
    """
    start = len(BOM) if lines.startswith(BOM) else 0
    limit = min(end, PLACE_LIMIT)
    if lines.startswith((b"From ", b">From "), start):
        start = lines.find(b"\n", start, limit) + 1 or (end if limit == end else start)
    block = _pattern(_BLOCK).match(lines, start, limit)
    at = block.end() if block else end
    # The last line before the limit may continue after it.
    return at if limit == end or lines.find(b"\n", at, limit) >= 0 else start


def subject_start(lines: bytes, end: int) -> int | None:
    """Return the position of the first Subject's text within PLACE_LIMIT bytes, or None."""
    subject = _pattern(_START + _SUBJECT).search(lines, 0, min(end, PLACE_LIMIT))
    return subject.end() if subject else None


def remove_marks(raw: bytes, names: tuple[str, ...] = ()) -> bytes:
    """Remove nbspam's marks, genuine or forged.

    names: headers to remove with their evidence and tag, whatever their value; other headers are
    removed if their value is a verdict.  The tag before the Subject is removed with the header that
    names it; a Subject that is only the tag is removed whole.  The empty line that was added to a
    text without a header stays.
    """
    if not names and _SIGN not in raw:
        return raw
    lines = lines_of(raw)
    end = header_end(lines)
    bom = BOM if lines.startswith(BOM) else b""
    header = b"\n" + lines[len(bom) : end]  # each of its lines follows a line end
    header, has_marks, tag = _remove_marks(header, _mark_names(header, names))
    if not has_marks:
        return raw
    if may_be_tag(tag.decode("latin-1")):
        header = _remove_tag(header, tag)
    rest = b"".join([bom, memoryview(header)[1:], memoryview(lines)[end:]])
    if lines is not raw:
        return rest.replace(b"\n", b"\r")
    # If the removed marks had the only LF, CRs are now the line ends, and a byte order mark may now
    # be first.  Both may uncover more marks.
    is_new = b"\n" not in rest or (rest.startswith(BOM) and not bom)
    return remove_marks(rest, names) if is_new else rest


def _mark_names(header: bytes, known: tuple[str, ...]) -> set[bytes]:
    """Return, in lower case, `known` and the names of headers with a verdict as value."""
    names = {name.lower().encode() for name in known}
    if _SIGN not in header:
        return names
    for verdict in _pattern(_VERDICT).finditer(header):
        name = verdict[1].lower()
        if name not in names and may_be_mark(name.decode("ascii")):
            names.add(name)
            if len(names) == _NAMES_LIMIT:
                break
    return names


def _remove_marks(header: bytes, names: set[bytes]) -> tuple[bytes, bool, bytes]:
    """Remove the marks with these names; return the header, whether it had marks, and the tag."""
    if not names:
        return header, False, b""
    any_name = rb"\n(?:%s)" % b"|".join(map(re.escape, sorted(names)))
    tag = _pattern(any_name + rb"-tag[ \t]*:(" + _VALUE + rb")").search(header)
    mark = any_name + rb"(?:-evidence|-tag)?[ \t]*:" + _VALUE
    rest = _pattern(mark + rb"(?=\n(?![ \t]))").sub(b"", header)
    rest = _pattern(mark + rb"\Z").sub(b"\n", rest)  # the line before the mark keeps its line end
    return rest, rest != header, tag[1].strip() if tag else b""


def _remove_tag(header: bytes, tag: bytes) -> bytes:
    subject = _pattern(rb"\n" + _SUBJECT).search(header)
    if not subject:
        return header
    start = subject.end()
    line, _, after = header[start:].partition(b"\n")
    if line.startswith(tag + b" "):
        return header[:start] + header[start + len(tag) + 1 :]
    if line.rstrip(b"\r") == tag and not after.startswith((b" ", b"\t")):
        return header[: subject.start() + 1] + after
    return header
