"""The header of a message as bytes: where it ends, and the marks that nbspam writes into it.

nbspam marks a message that it passes on: with a header for the verdict, and optionally with
`NAME-Evidence` and `NAME-Tag`; the latter names the tag that was put before the Subject.  A marked
message is the same message, so its marks are removed before anything else reads it.

Lines end with LF; a CR before it belongs to the line end and any other CR is an ordinary byte,
except in a message that has no LF at all.  The header ends at the first empty line.
"""

import re

MARK = "X-Nbspam"  # unless the user names another
EVIDENCE, TAG = "-Evidence", "-Tag"
NAME_LIMIT = 60  # characters; a line has room for `NAME-Evidence:`
# A sender can forge marks, and the text that a tag names is hidden from the tokenizer.
TAG_LIMIT = 30
_NAMES_LIMIT = 10  # of verdicts in one message

# A block is a mail's header only if it has one of these (or an X- header): an SMS may begin with
# "Reminder: call me".
_KNOWN = frozenset(
    "from to subject date cc bcc sender reply-to message-id received return-path mime-version "
    "content-type content-transfer-encoding content-disposition delivered-to envelope-to "
    "in-reply-to references resent-from resent-to list-id list-unsubscribe precedence "
    "newsgroups path status user-agent dkim-signature authentication-results".split()
)
_NOT_OURS = ("content-", "resent-", "list-", "mime-", "arc-")
_NAME = r"[!-9;-~]+"
_PLAIN = r"[!-~](?:[ -~]*[!-~])?"
# Patterns are compiled when a message is marked; to classify one, none is needed.
# Possessive: a million fields must not leave a million places to backtrack to.
_BOM = b"\xef\xbb\xbf"
_START = rb"(?:^|(?<=\A\xef\xbb\xbf))"
_VALUE = rb"[^\n]*+(?:\n[ \t][^\n]*+)*(?:\n|\Z)"
_EMPTY = _START + rb"(?:\r*\n|\r+\Z)"
_BLOCK = rb"(?:[!-9;-~]++[ \t]*+:" + _VALUE + rb")+"
_FIELD = rb"(?:^|(?<=\r)|(?<=\A\xef\xbb\xbf))([!-9;-~]+)[ \t]*:"  # many read a CR as a line end
_SUBJECT = _START + rb"subject[ \t]*:[ \t]*"
_SIGN = b", probability="  # in every verdict of nbspam, and seldom elsewhere
_VERDICT = (
    _START
    + rb"([!-9;-~]{1,%d}):[ \t][^\n,]{1,999}, probability=[01]\.\d{6}, version=[^\s,]{1,40}\r*$"
    % NAME_LIMIT
)


def _pattern(text: bytes) -> re.Pattern[bytes]:
    return re.compile(text, re.MULTILINE | re.IGNORECASE)  # re caches it


def is_known(name: str) -> bool:
    """Return whether a header of this name, in lower case, shows that a text is a mail."""
    return name in _KNOWN or name.startswith("x-")


def may_be_mark(name: str) -> bool:
    """Return whether a verdict may be written under this name: no standard header has it."""
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
    """Return `raw` as lines that end with LF; every byte keeps its place."""
    return raw if b"\n" in raw or b"\r" not in raw else raw.replace(b"\r", b"\n")


def header_end(lines: bytes) -> int:
    """Return where the first empty line begins, or the end."""
    found = _pattern(_EMPTY).search(lines)
    return found.start() if found else len(lines)


def is_empty_line(lines: bytes, at: int) -> bool:
    """Return whether the line that begins at `at` is empty."""
    return _pattern(_EMPTY).match(lines, at) is not None


def has_header(lines: bytes, end: int) -> bool:
    """Return whether one of the lines up to `end` is a known header of a mail."""
    if lines.startswith((b"\xff\xfe", b"\xfe\xff")):  # UTF-16, whose line ends are two bytes
        return False
    return any(
        is_known(m[1].decode("ascii").lower()) for m in _pattern(_FIELD).finditer(lines, 0, end)
    )


def block_start(lines: bytes, end: int) -> int:
    """Return where the header lines begin: after a byte order mark and a first `From ` line."""
    start = len(_BOM) if lines.startswith(_BOM) else 0
    if lines.startswith((b"From ", b">From "), start):
        start = lines.find(b"\n", start, end) + 1 or end
    return start


def block_end(lines: bytes, end: int) -> int:
    """Return where the well-formed header lines end, after a first mbox `From ` line.

    If there are none, because the first line is junk, that is `end`: programs for which the header
    ends at the empty line (procmail, bogofilter) find there what is written before it.
    """
    start = block_start(lines, end)
    found = _pattern(_BLOCK).match(lines, start, end)
    return found.end() if found else end


def subject_start(lines: bytes, end: int) -> int | None:
    """Return where the text of the first Subject begins, or None."""
    found = _pattern(_SUBJECT).search(lines, 0, end)
    return found.end() if found else None


def unmarked(raw: bytes, names: tuple[str, ...] = ()) -> bytes:
    """Return the message without the marks that nbspam, or whoever forged them, wrote into it.

    names: headers to remove with what belongs to them, whatever their value; in addition to those
    whose value is recognised as a verdict.
    The tag before the Subject is removed with the header that names it; a Subject that is only the
    tag is removed whole.  The empty line stays that was added to a text without a header.
    """
    if not names and _SIGN not in raw:
        return raw
    lines = lines_of(raw)
    end = header_end(lines)
    marks = _verdict_names(lines, end, {name.lower().encode() for name in names})
    header, n_marks, tag = _without_marks(lines[:end], marks)
    if not n_marks:
        return raw
    if may_be_tag(tag.decode("latin-1")):
        header = _without_tag(header, tag)
    rest = header + lines[end:]
    if lines is not raw:
        return rest.replace(b"\n", b"\r")
    # Without the only LF, CRs end the lines; and a byte order mark that is first now is not part of
    # the first line.  Either may uncover more marks.
    is_new = b"\n" not in rest or (rest.startswith(_BOM) and not raw.startswith(_BOM))
    return unmarked(rest, names) if is_new else rest


def _verdict_names(lines: bytes, end: int, known: set[bytes]) -> set[bytes]:
    """Return `known`, and the names in lower case of headers whose value is a verdict of nbspam."""
    names = set(known)
    for verdict in _pattern(_VERDICT).finditer(lines, 0, end):
        if may_be_mark(verdict[1].decode("ascii")):
            names.add(verdict[1].lower())
            if len(names) == _NAMES_LIMIT:
                break
    return names


def _without_marks(header: bytes, names: set[bytes]) -> tuple[bytes, int, bytes]:
    """Return the header without the marks of these names, how many they were, and the tag."""
    if not names:
        return header, 0, b""
    mark = _pattern(
        _START
        + rb"(?:%s)(-evidence|-tag)?[ \t]*:(%s)"
        % (b"|".join(map(re.escape, sorted(names))), _VALUE)
    )
    tags = (m[2].strip() for m in mark.finditer(header) if (m[1] or b"").lower() == b"-tag")
    return *mark.subn(b"", header), next(tags, b"")


def _without_tag(header: bytes, tag: bytes) -> bytes:
    """Return the header without the tag before the Subject, if it is there."""
    subject = _pattern(_SUBJECT).search(header)
    if not subject:
        return header
    start = subject.end()
    line, _, after = header[start:].partition(b"\n")
    if line.startswith(tag + b" "):
        return header[:start] + header[start + len(tag) + 1 :]
    if line.rstrip(b"\r") == tag and not after.startswith((b" ", b"\t")):
        return header[: subject.start()] + after
    return header
