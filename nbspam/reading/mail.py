"""Sources of mail: mboxes, folders, Maildirs, files, index files, IMAP folders, exports.

Links that lead out of a folder are not followed by default, and an index file names only files near
it: a stranger may have written either to learn what is in another file.
"""

import os
import re
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO

from nbspam.errors import AccountError, NbspamError, Remedy, SourceError, one_line
from nbspam.names import is_url, maildir_flags, normal_label, real_name
from nbspam.patterns import lazy_pattern
from nbspam.reading.compression import is_of_store
from nbspam.reading.lines import Decoding, Opener, decoded_lines, decoding_of, filled
from nbspam.reading.message import BYTES_LIMIT, RawMessage
from nbspam.reading.source import (
    ReadingRequest,
    Skips,
    Source,
    SourceKind,
    note_empty,
    read_one,
)

# Mboxes
#
# A message begins at a `From ` line (a "From_ line") that is first in the file or follows a blank
# line, has a date in the format of asctime, and is followed by a header line.  All three are
# required, since only some writers quote body lines that begin with `From `: with a `>` (mboxrd:
# lines that begin with `>From ` too), which is removed.
#
# If a message has a Content-Length (mboxcl2), and the next one begins there or the file ends, From_
# lines before that belong to its body.
#
# Source: RFC 4155, and the mboxo/mboxrd/mboxcl family as qmail's mbox(5) describes it.

_CHUNK = 1 << 20
_BORDER = 2_000  # longer than any separator with the first byte of the header after it
_DATE = rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +(?:[A-Z][a-z][a-z] +\d?\d|\d?\d +[A-Z][a-z][a-z])\b"
_FROM_LINE = rb"From [^\n]{0,500}?" + _DATE + rb"[^\n]{0,500}\n(?=[!-9;-~]+[ \t]*:|>?From )"
_FIRST = lazy_pattern(rb"(?:\xef\xbb\xbf)?\s*" + _FROM_LINE)
_SEPARATOR = lazy_pattern(rb"\n(?=\r?\n" + _FROM_LINE + rb")")
_STATUS = lazy_pattern(rb"^(X-|)Status:[ \t]*([A-Za-z]*)", re.MULTILINE)
_ENDS = 4  # bytes of line ends at the end of a message, which some writers count
_HEADER_LIMIT = 1 << 17  # bytes in which a Status line is searched
# Thunderbird's flags precede the received header, so no sender can write them.
_MOZILLA = lazy_pattern(
    rb"(?:X-(?:Account-Key|UIDL|Mozilla-\w+)[ \t]*:[^\n]*\n)*?X-Mozilla-Status:[ \t]*([\da-f]{4})",
    re.IGNORECASE,
)
_MOZILLA_READ, _MOZILLA_EXPUNGED = 0x0001, 0x0008
_LENGTH = lazy_pattern(rb"^Content-Length:[ \t]*(\d{1,9})[ \t]*$", re.MULTILINE | re.IGNORECASE)
_QUOTED = lazy_pattern(rb"^>(>*From )", re.MULTILINE)


def is_mbox(sample: bytes) -> bool:
    """Return whether a file that begins with `sample` is an mbox."""
    return _FIRST.match(sample) is not None


def count_separators(sample: bytes) -> int:
    """Return how many messages begin in `sample` after the first."""
    return len(_SEPARATOR.findall(sample))


def message_starts(stream: IO[bytes], at: int) -> Iterator[int]:
    """Yield the places from `at` > 0 on where messages begin: the blank lines before From_ lines.

    The line end before it belongs to neither message.
    """
    stream.seek(at - 1)
    place, buffer = at - 1, b""  # of the buffer, and bytes not searched to their end
    while chunk := stream.read(_CHUNK):
        buffer += chunk
        searched = 0
        for separator in _SEPARATOR.finditer(buffer):
            yield place + separator.end()
            searched = separator.end()
        # A separator across two chunks is found once it is whole.
        searched = max(searched, len(buffer) - _BORDER)
        place, buffer = place + searched, buffer[searched:]


def is_read(message: bytes) -> bool | None:
    """Return whether its owner has read and not deleted a message; None if it has no flags.

    Source: mail readers since Berkeley's write R for read, and D in X-Status for deleted;
    Thunderbird's flags are nsMsgMessageFlags.
    """
    if mozilla := _MOZILLA.match(message):
        return int(mozilla[1], 16) & (_MOZILLA_READ | _MOZILLA_EXPUNGED) == _MOZILLA_READ
    header = message[:_HEADER_LIMIT].replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    flags = dict(_STATUS.findall(header))
    return (b"R" in flags.get(b"", b"") and b"D" not in flags.get(b"X-", b"")) if flags else None


def _is_expunged(message: bytes) -> bool:
    """Return whether Thunderbird has deleted a message, and will remove it from the mbox."""
    mozilla = _MOZILLA.match(message)
    return mozilla is not None and bool(int(mozilla[1], 16) & _MOZILLA_EXPUNGED)


def body_end(piece: bytes) -> int:
    """Return where a message with its From_ line ends by its Content-Length; 0 without one."""
    header, blank, _ = piece[:_HEADER_LIMIT].replace(b"\r\n", b"\n").partition(b"\n\n")
    length = _LENGTH.search(header) if blank else None
    if not length:
        return 0
    crs = piece.count(b"\r\n", 0, len(header) + 2) if b"\r" in piece[:2_000] else 0
    return len(header) + len(blank) + crs + int(length[1])


def messages(stream: IO[bytes], limit: int) -> Iterator[bytes]:
    """Yield each message without its From_ line, its quoted `From ` lines restored.

    limit: bytes kept of a message; the rest of a larger one is read and dropped.
    Memory is bounded by the limit, not by the size of the mailbox.
    """
    pieces = _pieces(stream, limit)
    waiting: deque[bytes] = deque()
    while waiting or (waiting := deque(islice(pieces, 1))):
        piece = waiting.popleft()
        end, n, size = body_end(piece), 0, len(piece)
        while size < end - _ENDS and end < limit:
            if n == len(waiting):
                waiting.extend(islice(pieces, 1))
            if n == len(waiting):
                break
            size += 1 + len(waiting[n])
            n += 1
        if n and abs(size - end) <= _ENDS:
            piece = b"\n".join([piece, *(waiting.popleft() for _ in range(n))])
        yield _unquoted(piece, limit)


def _pieces(stream: IO[bytes], limit: int) -> Iterator[bytes]:
    """Yield the messages with their From_ lines; the rest of a large one is left out."""
    start, tail = b"", b""  # of a message; the tail may be the start of a separator
    while chunk := stream.read(_CHUNK):
        *whole, last = _SEPARATOR.split(tail + chunk)
        for piece in whole:
            yield start + piece
            start = b""
        # A separator across two chunks is found once it is whole: From_ lines are short.
        border = max(0, len(last) - _BORDER)
        if len(start) < limit + _BORDER:
            start = (start + last[:border])[: limit + _BORDER]
        tail = last[border:]
    if (start + tail).strip():
        yield start + tail


def _unquoted(piece: bytes, limit: int) -> bytes:
    message = piece.lstrip(b"\r\n").partition(b"\n")[2][:limit]
    return _QUOTED.sub(rb"\1", message) if b">From " in message else message


def mbox_messages(
    label: str | None, seen: bool, name: str, open_box: Opener, _: Skips, first: int = 1
) -> Iterator[RawMessage]:
    """Yield the messages of the mbox called `name`.

    seen: leave out messages that their owner has not read.
    open_box: opens its bytes.  first: the number of the first message, in a part of an mbox.
    """
    with open_box() as stream:
        for number, raw in enumerate(messages(stream, BYTES_LIMIT), first):
            if is_read(raw) if seen else not _is_expunged(raw):
                yield RawMessage(f"{name}:{number}", label, raw)


def note_unflagged(source: Source, request: ReadingRequest) -> None:
    """Note that an mbox without flags is left out, if only read mail is wanted."""
    if request.options.seen and source.is_file:
        with source.opened() as stream:
            flags = map(is_read, messages(stream, _HEADER_LIMIT))
            if all(flag is None for flag in flags):
                reason = "no message has a Status line, so which were read is unknown"
                request.skips.note(source.title, reason, Remedy.LEAVE_OUT_SEEN)


def _read_mbox(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    note_unflagged(source, request)
    seen = request.options.seen
    return mbox_messages(request.label, seen, source.title, source.opened, request.skips)


MBOX = SourceKind(_read_mbox, "an mbox has no labels")


# Files of one message: those that no other kind recognises


def _read_file(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    if request.options.needs_content and not source.sample.strip():
        note_empty(source, request)
    else:
        yield RawMessage(str(source.path), request.label, source.path)


EMPTY_FILE = SourceKind(_read_file, "an empty file has no labels")
MAIL = SourceKind(_read_file, "one mail has no labels")
TEXT = SourceKind(_read_file, "the file has no labels")
ONE_MESSAGE = SourceKind(read_one, "one message has no labels")


# Folders: one message per file

_DEPTH_LIMIT = 100  # folders inside one another
_MH_LIMIT = 10_000_000  # the highest number of a message


def is_within(path: object, folder: str) -> bool:
    """Return whether a path, its links followed, is in a folder, or the folder itself.

    folder: a real path.
    """
    try:
        real = os.path.realpath(str(path))
    except ValueError:  # it has a NUL, so there is no such file
        return True
    return os.path.join(real, "").startswith(os.path.join(folder, ""))  # noqa: PTH118


def _is_left_out(entry: Path, root: str, request: ReadingRequest) -> bool:
    """Return whether an entry of a folder is a link that is not followed; notes it then.

    root: the real path of the source.
    """
    if not entry.is_symlink():
        return False
    if not entry.exists():
        request.skips(str(entry), "the link leads nowhere")
    elif is_within(root, os.path.realpath(entry)):
        request.skips(str(entry), "the link leads to a folder that contains it")
    elif not (request.options.outside or is_within(entry, root)):
        request.skips(str(entry), f"the link leads out of {root}", Remedy.ALLOW_OUTSIDE)
    else:
        return False
    return True


def _is_other_source(path: Path, request: ReadingRequest) -> bool:
    """Return whether an entry of a folder is another source; tells the user its other label."""
    if (label := request.options.source_labels.get(real_name(path))) is None:
        return False
    if label != request.label:
        problem = f"{path}: is given as a source of its own and is read only as {label or 'that'}"
        request.options.tell(SourceError(problem))
    return True


def _entries(folder: Path) -> list[Path]:
    """Return the entries of a folder, sorted by name, without dot files."""
    return [path for path in sorted(folder.iterdir(), key=str) if not path.name.startswith(".")]


def _maildir_parts(path: Path) -> list[Path]:
    """Return the folders of a Maildir that hold mail; none for another folder.

    Thunderbird's has no `new`.  `tmp` holds mail that is still being written.
    """
    new = path / "new"
    if not (path / "cur").is_dir() or not (new.is_dir() or (path / "tmp").is_dir()):
        return []
    return [path / "cur", new] if new.is_dir() else [path / "cur"]


def _read_in_maildir(parts: list[Path], request: ReadingRequest) -> list[Path]:
    """Return the messages of a Maildir; on request only those read and not deleted."""
    if not request.options.seen:
        return [entry for part in parts for entry in _entries(part)]
    if not parts[0].with_name("new").is_dir():
        raise _not_recorded(parts[0].parent)
    read_parts = (part for part in parts if part.name == "cur")
    entries = (entry for part in read_parts for entry in _entries(part))
    flagged = [(entry, maildir_flags(entry.name)) for entry in entries]
    return [entry for entry, flags in flagged if flags and "S" in flags[1] and "T" not in flags[1]]


_UNSEEN = lazy_pattern(r"^unseen:(.*)$", re.MULTILINE)


def _in_folder(path: Path, request: ReadingRequest) -> tuple[list[Path], bool]:
    """Return the entries of a folder other than a Maildir, and whether it records what was read.

    MH does, in a file: unseen messages are left out on request, and deleted ones always.
    """
    entries = _entries(path)
    try:
        sequences = (path / ".mh_sequences").read_text("utf-8", "replace")
    except OSError:
        return entries, False
    unseen: set[str] = set()
    if request.options.seen and (line := _UNSEEN.search(sequences)):
        for first, _, last in (part.partition("-") for part in line[1].split()):
            if first.isdecimal() and (last or first).isdecimal():
                unseen.update(map(str, range(int(first), min(int(last or first), _MH_LIMIT) + 1)))
    return [e for e in entries if e.name[0] not in ",#" and e.name not in unseen], True


def _not_recorded(path: Path) -> SourceError:
    return SourceError(f"{path}: does not record which messages were read", Remedy.LEAVE_OUT_SEEN)


def _is_box(entry: Path, names: set[str]) -> bool:
    """Return whether a file in a folder is an mbox by its name and its beginning.

    Thunderbird keeps folders so (each with an .msf file), and Apple Mail and Google export so.
    names: of all files in the folder.
    """
    may_be = entry.suffix.lower() == ".mbox" or entry.name == "mbox" or f"{entry.name}.msf" in names
    return may_be and is_mbox(Source(str(entry)).sample)


def _tells_of_box(entry: Path, request: ReadingRequest) -> bool:
    """Tell the user of a file in a folder that is read as one message, and looks like an mbox."""
    try:
        sample = Source(str(entry)).sample
    except (OSError, EOFError, NbspamError):  # its reader will say so
        return False
    if is_box := is_mbox(sample) and count_separators(sample) > 0:
        problem = f"{entry}: looks like an mbox, and in a folder is read as one message"
        request.options.tell(SourceError(f"{problem}; name such a file as a source of its own"))
    return is_box


def _files(
    path: Path, request: ReadingRequest, root: str, visited: set[Path], depth: int = 0
) -> Iterator[RawMessage]:
    """Yield the files of a folder and its sub-folders, sorted by name, without dot files.

    root: the real path of the source.
    visited: the folders read so far, with links resolved: a link may lead back to one of them.
    """
    real = path.resolve()
    if real in visited:
        request.skips(str(path), "the link leads to a folder that was read already")
        return
    if depth > _DEPTH_LIMIT:
        request.skips(str(path), f"the folder is more than {_DEPTH_LIMIT} folders deep")
        return
    visited.add(real)
    if parts := _maildir_parts(path):
        parts = [part for part in parts if not _is_left_out(part, root, request)]
        entries, records = _read_in_maildir(parts, request) if parts else [], True
    else:
        entries, records = _in_folder(path, request)
    inside, tells = {entry.name for entry in entries}, not records
    # Resolving the path of each file would take as long as listing them.
    others = {path.rpartition(os.sep)[2] for path in request.options.source_labels}
    for entry in entries:
        is_folder = entry.is_dir()
        if (entry.name in others or (is_folder and others)) and _is_other_source(entry, request):
            continue
        if _is_left_out(entry, root, request):
            continue
        if is_folder and entry.name == "Attachments" and "Messages" in inside:
            continue  # Apple Mail keeps them beside the messages
        if is_folder:
            try:
                yield from _files(entry, request, root, visited, depth + 1)
            except PermissionError as error:
                request.skips(str(entry), f"the folder cannot be read ({error.strerror})")
        elif entry.is_file():
            if not parts and _is_box(entry, inside):
                yield from _read_mbox(Source(str(entry)), request)
                continue
            if request.options.seen and not records and not is_of_store(entry.name):
                raise _not_recorded(path)
            if tells:  # of one in each folder
                tells = not _tells_of_box(entry, request)
            yield RawMessage(str(entry), request.label, entry)


def _class_folders(path: Path) -> list[Path]:
    return [entry for entry in _entries(path) if entry.is_dir()]


def _read_class_folders(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    """Yield the files of each sub-folder with its name as their class."""
    for entry in _entries(source.path):
        if entry.is_file() and not _is_other_source(entry, request):
            request.skips.note(
                str(entry), "the file is not in the folder of a class", Remedy.GIVE_OUTSIDE_LABEL
            )
    root = real_name(source.path)
    for folder in _class_folders(source.path):
        if _is_other_source(folder, request) or _is_left_out(folder, root, request):
            continue
        if label := normal_label(folder.name):
            request.skips.spelled(label, folder.name)
            yield from _files(folder, request._replace(label=label), root, visited=set())
        else:
            request.skips(str(folder), "the folder's name has no printable character")


def has_classes(path: Path) -> bool:
    """Return whether a folder may have one sub-folder for each class."""
    return bool(_class_folders(path)) and not _maildir_parts(path)


CLASS_FOLDERS = SourceKind(_read_class_folders)
FOLDER = SourceKind(
    lambda source, request: _files(source.path, request, real_name(source.path), set()),
    "the folder has no sub-folder for each class",
)


# Index files, as in the TREC spam corpora: each line is a label and a file's path
#
# TREC's index is in a folder beside the folder of mails (`spam ../data/inmail.1`).  So an index may
# name any file in the folder above its own, at any depth.

_PATHS_TRIED = 20  # paths of which one must be a file
_INDEX_LINE = lazy_pattern(r"(\S+)\s+(\S.*)")


def is_index(source: Source, needs_labels: bool) -> bool:
    """Return whether a file is an index.

    A file named so is one if a line is a label and a path.
    needs_labels: a file of any name is one, too, if each line is a label and a path, and one of the
    first paths is a file.  Elsewhere it is a message, which must not name files to be read.
    """
    lines = [_INDEX_LINE.fullmatch(line.strip()) for line in source.lines]
    if is_url(source.name):
        return False
    if "index" in (source.path.name, source.suffix[1:]) and any(lines):
        return True
    if not (needs_labels and all(lines)):
        return False
    names = [line[2] for line in lines[:_PATHS_TRIED] if line]
    try:
        return any((source.path.parent / name).is_file() for name in names)
    except (OSError, ValueError):
        return False


def _read_index(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    skips, folder = request.skips, source.path.parent
    allowed = real_name(folder.resolve().parent)
    lines = decoded_lines(source.title, source.opened, Decoding(), skips)
    for number, text in filled(lines):
        place = f"{source.path}:{number}"
        line = _INDEX_LINE.fullmatch(text.strip())
        if not line:
            skips(place, "the line is not a label and a path")
            continue
        label = normal_label(line[1])
        if not label:
            skips(place, "the label has no printable character")
            continue
        path, name = folder / line[2], one_line(line[2])[:200]
        if not (request.options.outside or is_within(path, allowed)):
            problem = f"{place}: {name} is outside {allowed}, the folder above the index's own"
            raise SourceError(problem, Remedy.ALLOW_OUTSIDE)
        if os.path.isfile(path):  # noqa: PTH113 (a name too long for a file raises in pathlib)
            yield RawMessage(str(path), label, path)
        else:
            skips(place, f"there is no file {str(path)[:200]}")


INDEX = SourceKind(_read_index)


def _read_imap(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    """Yield the messages of a folder at a mail server; raises AccountError."""
    options = request.options
    if options.read_imap_folder is None:
        raise AccountError(
            f"{source.name}: the library does not know the password; read it with the command line"
        )
    for name, content in options.read_imap_folder(source.name, options.seen):
        yield RawMessage(name, request.label, content)


IMAP_FOLDER = SourceKind(_read_imap, "an IMAP folder has no labels")


# Exports of programs for short messages: many messages in one text
#
# SMS Backup & Restore writes XML, with an element for each SMS, and one for each part of an MMS.
# WhatsApp writes a text, in which each message begins with its time and the name of its author.

_SMS = lazy_pattern(
    r"<(?:sms\s[^>]*?\bbody|part\s[^>]*?\bct=[\"']text/plain[\"'][^>]*?\btext)=(\"[^\"]*\"|'[^']*')"
)
_SURROGATE = lazy_pattern(r"&#(5[5-7]\d{3});")  # it writes an emoji as two of them
_TIME = r"\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?:[\s\u202f][AaPp]\.?[\s\u202f]?[Mm]\.?)?"
_CHAT_LINE = lazy_pattern(
    rf"[\ufeff\u200e]*\[?\d{{1,4}}[./-]\d{{1,2}}[./-]\d{{1,4}},? {_TIME}(?:\]| -)"
    r" (?:([^:]{1,100}): )?"
)
_CHAT_LINES = 2  # of the first lines show a chat


def export_kind(source: Source) -> SourceKind | None:
    """Return the kind of an exported file; None for any other file."""
    if source.sample.lstrip().startswith(b"<?xml") and b"<smses" in source.sample:
        return _SMS_BACKUP
    if source.lines and _CHAT_LINE.match(source.lines[0]):
        lines = sum(_CHAT_LINE.match(line) is not None for line in source.lines)
        return _CHAT if lines >= _CHAT_LINES else None
    return None


def _sms(lines: Iterator[str]) -> Iterator[str]:
    from html import unescape  # for this alone

    for line in lines:
        for match in _SMS.finditer(line):
            body = _SURROGATE.sub(lambda number: chr(int(number[1])), match[1][1:-1])
            yield unescape(body).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _chat(lines: Iterator[str]) -> Iterator[str]:
    """Yield the messages of a chat; WhatsApp's own lines have no author."""
    message: list[str] = []
    for line in lines:
        if start := _CHAT_LINE.match(line):
            yield "".join(message)
            message = [line[start.end() :]] if start[1] else []
        elif message:
            message.append(line)
    yield "".join(message)


def _kind(name: str, texts: Callable[[Iterator[str]], Iterator[str]]) -> SourceKind:
    """Return a kind of exports; texts: yields the messages in the lines of a file."""

    def read(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
        options = request.options
        options.tell(SourceError(f"{source.path}: is {name}; each of its messages is read as one"))
        decoding = decoding_of(source.title, source.opened, options)
        lines = decoded_lines(source.title, source.opened, decoding, request.skips)
        stripped = (text.strip() for text in texts(text for _, text in lines))
        for number, text in enumerate(filter(None, stripped), 1):
            yield RawMessage(f"{source.title}:{number}", request.label, text)

    return SourceKind(read, f"{name} has no labels")


_SMS_BACKUP = _kind("an SMS backup", _sms)
_CHAT = _kind("a WhatsApp chat", _chat)
