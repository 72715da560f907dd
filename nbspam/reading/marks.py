"""The header of a message in its bytes: where it ends, and what nbspam itself has written there.

nbspam marks a message that it passes on: a header with the verdict, beside it `NAME-Evidence` and
`NAME-Tag`, the last of which says what was put before the Subject.  A marked message is the same
message, so its marks are taken out before anything else looks at it.

Lines end with LF; a CR before it belongs to the line end and any other CR is an ordinary byte,
except in a message that has no LF at all.  The header ends at the first empty line.
"""

import re

MARK = "X-Nbspam"  # unless the user names another
EVIDENCE, TAG = "-Evidence", "-Tag"
NAME_LIMIT = 60  # characters; a line has room for `NAME-Evidence:`
# Whoever writes a mail can forge marks, and what a tag names is hidden from the tokenizer.
TAG_LIMIT = 30
_NAMES_LIMIT = 10  # of verdicts in one message

# A block is taken for a mail's header only if it has one of these (or an X- header): an SMS may
# well begin with "Reminder: call me".
_KNOWN = frozenset(
    "from to subject date cc bcc sender reply-to message-id received return-path mime-version "
    "content-type content-transfer-encoding content-disposition delivered-to envelope-to "
    "in-reply-to references resent-from resent-to list-id list-unsubscribe precedence "
    "newsgroups path status user-agent dkim-signature authentication-results".split()
)
_NOT_OURS = ("content-", "resent-", "list-", "mime-", "arc-")
_NAME = r"[!-9;-~]+"
_PLAIN = r"[!-~](?:[ -~]*[!-~])?"
# Patterns are compiled when a message is marked; those that are only classified need none.
# Possessive: a million fields must not leave a million places to come back to.
_BOM = b"\xef\xbb\xbf"
_START = rb"(?:^|(?<=\A\xef\xbb\xbf))"
_VALUE = rb"[^\n]*+(?:\n[ \t][^\n]*+)*+(?:\n|\Z)"
_EMPTY = _START + rb"(?:\r*\n|\r+\Z)"
_BLOCK = rb"(?:[!-9;-~]++[ \t]*+:" + _VALUE + rb")++"
_FIELD = rb"(?:^|(?<=\r)|(?<=\A\xef\xbb\xbf))([!-9;-~]+)[ \t]*:"  # many read a CR as a line end
_SUBJECT = _START + rb"subject[ \t]*:[ \t]*"
_SIGN = b", probability="  # in every verdict of ours, and seldom elsewhere
_VERDICT = (
    _START
    + rb"([!-9;-~]{1,%d}):[ \t][^\n,]{1,999}, probability=[01]\.\d{6}, version=[^\s,]{1,40}\r*$"
    % NAME_LIMIT
)


def _pattern(text: bytes) -> re.Pattern[bytes]:
    return re.compile(text, re.MULTILINE | re.IGNORECASE)  # which caches


def is_known(name: str) -> bool:
    """Return whether a header's name, in lower case, is one that shows a mail."""
    return name in _KNOWN or name.startswith("x-")


def may_be_mark(name: str) -> bool:
    """Return whether a verdict may be written under this name: no header with a meaning has it."""
    lower = name.lower()
    return (
        len(name) <= NAME_LIMIT
        and re.fullmatch(_NAME, name) is not None
        and lower not in _KNOWN
        and not lower.startswith(_NOT_OURS)
    )


def may_be_tag(text: str) -> bool:
    """Return whether a text may be put before the Subject: short and plain, no blank around it."""
    return len(text) <= TAG_LIMIT and re.fullmatch(_PLAIN, text) is not None


def lines_of(raw: bytes) -> bytes:
    """Return `raw` as lines that end with LF, byte for byte at the same place."""
    return raw if b"\n" in raw or b"\r" not in raw else raw.replace(b"\r", b"\n")


def header_end(lines: bytes) -> int:
    """Return where the first empty line begins, or the end."""
    found = _pattern(_EMPTY).search(lines)
    return found.start() if found else len(lines)


def is_empty_line(lines: bytes, at: int) -> bool:
    """Return whether an empty line begins at `at`, which a line begins at."""
    return _pattern(_EMPTY).match(lines, at) is not None


def has_header(lines: bytes, end: int) -> bool:
    """Return whether one of the lines up to `end` is a known header of a mail."""
    if lines.startswith((b"\xff\xfe", b"\xfe\xff")):  # UTF-16, whose lines are others
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

    Where there are none, because the first line is junk, that is `end`: programs that take a
    header as far as the empty line (procmail, bogofilter) find there what stands before it.
    """
    start = block_start(lines, end)
    found = _pattern(_BLOCK).match(lines, start, end)
    return found.end() if found else end


def subject_start(lines: bytes, end: int) -> int | None:
    """Return where the text of the first Subject begins, or None."""
    found = _pattern(_SUBJECT).search(lines, 0, end)
    return found.end() if found else None


def unmarked(raw: bytes, names: tuple[str, ...] = ()) -> bytes:
    """Return the message without the marks that nbspam, or who forged them, wrote into it.

    names: remove what is named so, whatever it says, and what belongs to it; besides, whatever is
    recognised as a verdict by its value.
    The tag before the Subject goes with the header that names it; a Subject that is nothing but
    the tag goes whole.  The empty line stays that was added to a text without a header.
    """
    known = {name.lower().encode() for name in names}
    if not known and _SIGN not in raw:
        return raw
    lines = lines_of(raw)
    end = header_end(lines)
    for found in _pattern(_VERDICT).finditer(lines, 0, end):
        if may_be_mark(found[1].decode("ascii")):
            known.add(found[1].lower())
            if len(known) == _NAMES_LIMIT:
                break
    if not known:
        return raw
    mark = _pattern(
        _START
        + rb"(?:%s)(-evidence|-tag)?[ \t]*:(%s)"
        % (b"|".join(map(re.escape, sorted(known))), _VALUE)
    )
    head = lines[:end]
    tag = next((m[2].strip() for m in mark.finditer(head) if (m[1] or b"").lower() == b"-tag"), b"")
    head, n_marks = mark.subn(b"", head)
    if not n_marks:
        return raw
    if may_be_tag(tag.decode("latin-1")) and (subject := _pattern(_SUBJECT).search(head)):
        at = subject.end()
        line, _, after = head[at:].partition(b"\n")
        if line.startswith(tag + b" "):
            head = head[:at] + head[at + len(tag) + 1 :]
        elif line.rstrip(b"\r") == tag and not after.startswith((b" ", b"\t")):
            head = head[: subject.start()] + after
    rest = head + lines[end:]
    if lines is not raw:
        return rest.replace(b"\n", b"\r")
    # Without the only LF, CRs end the lines; and a byte order mark that now stands first is none of
    # the first line's.  Either may bring marks to light.
    is_new = b"\n" not in rest or (rest.startswith(_BOM) and not raw.startswith(_BOM))
    return unmarked(rest, names) if is_new else rest
