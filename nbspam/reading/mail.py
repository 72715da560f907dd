"""Sources of mail: mboxes, folders, Maildirs, files, index files, IMAP folders.

Links that lead out of a folder are not followed by default, and an index file may name only files
near the index, because a stranger may have written the link or the index to have another file read.
"""

import os
import re
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO

from nbspam.errors import AccountError, Remedy, SourceError, one_line
from nbspam.names import HAM, SPAM, maildir_flags, normal_label, real_name
from nbspam.patterns import lazy_pattern
from nbspam.reading.charsets import decode
from nbspam.reading.compression import TABLE_SUFFIXES, bare_suffix, is_mail_store_file
from nbspam.reading.exports import export_kind
from nbspam.reading.folder_names import use_of_name
from nbspam.reading.header_fields import decode_words
from nbspam.reading.lines import Decoding, decode_lines, nonblank_lines
from nbspam.reading.message import BYTES_LIMIT, RawMessage, is_mail
from nbspam.reading.source import Input, SourceKind, note_empty, read_one

# Mboxes
#
# A message starts at a `From ` line (a "From_ line") that is first in the file or follows a blank
# line, has a date in asctime's format, and is followed by a header line.  All three conditions are
# required, because only some writers quote a body line that starts with `From ` by a `>` in front.
# (mboxrd also quotes lines that start with `>From `.)  Reading removes this `>`.
#
# If a known header field follows, the date may be in another language or format, or missing after a
# mail address.
#
# If a message has a Content-Length (mboxcl2) that ends at the next message or the end of the file,
# From_ lines before that position belong to its body.
#
# Source: RFC 4155, and the mboxo/mboxrd/mboxcl family as qmail's mbox(5) describes it.

_CHUNK = 1 << 20
_BORDER = 2_000  # bytes; longer than any separator and the header's first byte
_DATE = rb"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? +(?:[A-Z][a-z][a-z] +\d?\d|\d?\d +[A-Z][a-z][a-z])\b"
_DATED = rb"From [^\n]{0,500}?" + _DATE + rb"[^\n]{0,500}\n"
_FIELD = (
    rb"(?=(?i:from|to|cc|subject|date|received|return-path|message-id|delivered-to|mime-version"
    rb"|reply-to|sender|status|x-[!-9;-~]{1,60}|content-[a-z-]{1,30})[ \t]*:)"
)
_OTHER_FORM = rb"From (?:\S{1,300} [^\n]{0,200}?\d:\d\d[^\n]{0,200}|[^\s@]{1,200}@\S{1,200})\s*?\n"
_FROM_LINE = rb"(?:" + _DATED + rb"(?=[!-9;-~]+[ \t]*:|>?From )|" + _OTHER_FORM + _FIELD + rb")"
_FIRST = lazy_pattern(rb"(?:\xef\xbb\xbf)?\s*" + _FROM_LINE)
_SEPARATOR = lazy_pattern(rb"\n(?=\r?\n" + _FROM_LINE + rb")")
_UNSEPARATED = lazy_pattern(rb"[^\s][ \t]*\r?\n" + _DATED + _FIELD)
_CR_BOX = lazy_pattern(rb"From [^\r\n]{0,500}\r[!-9;-~]+[ \t]*:[^\n]*\rFrom [^\n]*\Z")
_STATUS = lazy_pattern(rb"^(X-|)Status:[ \t]*([A-Za-z]*)", re.MULTILINE)
# bytes of the line ends at the end of a message, which some writers include in Content-Length
_MAX_LINE_ENDS = 4
_HEADER_LIMIT = 1 << 17  # bytes in which a Status line is searched
# Thunderbird's flags precede the received header, so no sender can write them.
_MOZILLA = lazy_pattern(
    rb"(?:X-(?:Account-Key|UIDL|Mozilla-\w+)[ \t]*:[^\n]*\n)*?X-Mozilla-Status:[ \t]*([\da-f]{4})",
    re.IGNORECASE,
)
_MOZILLA_READ, _MOZILLA_EXPUNGED = 0x0001, 0x0008
# Google Takeout's labels, at the start of the header.  Without them spam in the file would be
# learned as the class that the user gives the whole file.
_GMAIL_LABELS = lazy_pattern(
    rb"(?:X-GM-[\w-]+[ \t]*:[^\n]*\n)*X-Gmail-Labels[ \t]*:((?:[^\n]*\n[ \t])*[^\n]*)",
    re.IGNORECASE,
)
# UW-IMAP and others keep their own data in the first message of a mailbox.
_INTERNAL = lazy_pattern(rb"^Subject:.*FOLDER INTERNAL DATA[ \t]*\r?$", re.MULTILINE)
_LENGTH = lazy_pattern(rb"^Content-Length:[ \t]*(\d{1,9})[ \t]*$", re.MULTILINE | re.IGNORECASE)
_QUOTED = lazy_pattern(rb"^>(>*From )", re.MULTILINE)


def is_mbox(sample: bytes) -> bool:
    """Return whether a file is an mbox; sample: its first bytes."""
    return _FIRST.match(sample) is not None


def problem_of_box(sample: bytes) -> str:
    """Describe why an mbox would be read as one message, with the remedy; "" for other files."""
    if b"\n" not in sample and _CR_BOX.match(sample):
        return "its lines end with CR, as on old Macintoshes; convert it with tr '\\r' '\\n'"
    if is_mbox(sample) and not _SEPARATOR.search(sample) and _UNSEPARATED.search(sample):
        return "no blank line separates its messages; convert it with formail -e -s cat"
    return ""


def count_separators(sample: bytes) -> int:
    """Count the messages that start in `sample` after the first message."""
    return len(_SEPARATOR.findall(sample))


def is_read(message: bytes) -> bool | None:
    """Return whether a message was read by its owner, and not deleted; None without flags.

    Source: mail readers since Berkeley Mail write R in Status for read, and D in X-Status for
    deleted; Thunderbird's flags are nsMsgMessageFlags.
    """
    if mozilla := _MOZILLA.match(message):
        return int(mozilla[1], 16) & (_MOZILLA_READ | _MOZILLA_EXPUNGED) == _MOZILLA_READ
    if (labels := gmail_labels(message)) is not None:
        return not labels & {"unread", "trash"}
    header = message[:_HEADER_LIMIT].replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    flags = dict(_STATUS.findall(header))
    return (b"R" in flags.get(b"", b"") and b"D" not in flags.get(b"X-", b"")) if flags else None


def _is_expunged(message: bytes) -> bool:
    """Return whether Thunderbird has deleted a message, and will remove it from the mbox."""
    mozilla = _MOZILLA.match(message)
    return mozilla is not None and bool(int(mozilla[1], 16) & _MOZILLA_EXPUNGED)


def gmail_labels(message: bytes) -> set[str] | None:
    """Return the labels that Google Takeout gives a message, in lower case; None without any.

    Spam and deleted mail are "spam" and "trash" in every language.
    """
    field = _GMAIL_LABELS.match(message)
    if field is None:
        return None
    text = decode_words(decode(b" ".join(field[1].split()), "utf-8"))
    names = {name.strip().casefold() for name in text.split(",")}
    uses = {use_of_name(name).removeprefix("\\") for name in names}
    return names | {{"junk": "spam"}.get(use, use) for use in uses}


def _contradiction(label: str | None, message: bytes) -> str:
    """Describe why a message contradicts the user's label for its mbox; "" if it does not."""
    if label not in (SPAM, HAM) or (labels := gmail_labels(message)) is None:
        return ""
    if label == SPAM and "spam" not in labels:
        return "Gmail's labels do not say Spam, so it is not learned as spam"
    if label == HAM and (found := labels & {"spam", "trash"}):
        return f"Gmail's labels say {max(found)}, so it is not learned as ham"
    return ""


def body_end(piece: bytes) -> int:
    """Return the end of a message with its From_ line by its Content-Length; 0 without a length."""
    header, blank, _ = piece[:_HEADER_LIMIT].replace(b"\r\n", b"\n").partition(b"\n\n")
    length = _LENGTH.search(header) if blank else None
    if not length:
        return 0
    crs = piece.count(b"\r\n", 0, len(header) + 2) if b"\r" in piece[:2_000] else 0
    return len(header) + len(blank) + crs + int(length[1])


def split_mbox(stream: IO[bytes], limit: int) -> Iterator[bytes]:
    """Yield each message without its From_ line, its quoted `From ` lines restored.

    limit: bytes kept of a message; the rest of a larger one is read and dropped.
    Memory is bounded by the limit, not by the size of the mailbox.
    """
    pieces = _pieces(stream, limit)
    waiting: deque[bytes] = deque()
    while waiting or (waiting := deque(islice(pieces, 1))):
        piece = waiting.popleft()
        end, n, size = body_end(piece), 0, len(piece)
        while size < end - _MAX_LINE_ENDS and end < limit:
            if n == len(waiting):
                waiting.extend(islice(pieces, 1))
            if n == len(waiting):
                break
            size += 1 + len(waiting[n])
            n += 1
        if n and abs(size - end) <= _MAX_LINE_ENDS:
            piece = b"\n".join([piece, *(waiting.popleft() for _ in range(n))])
        yield _unquote(piece, limit)


def _pieces(stream: IO[bytes], limit: int) -> Iterator[bytes]:
    """Yield the messages with their From_ lines; the rest of a large message is left out."""
    start, tail = b"", b""  # a message's start; the tail may be the start of a separator
    while chunk := stream.read(_CHUNK):
        *whole, last = _SEPARATOR.split(tail + chunk)
        for piece in whole:
            yield start + piece
            start = b""
        # A separator that two chunks share is found with the second chunk, because From_ lines are
        # short.
        border = max(0, len(last) - _BORDER)
        if len(start) < limit + _BORDER:
            start = (start + last[:border])[: limit + _BORDER]
        tail = last[border:]
    if (start + tail).strip():
        yield start + tail


def _unquote(piece: bytes, limit: int) -> bytes:
    message = piece.lstrip(b"\r\n").partition(b"\n")[2][:limit]
    return _QUOTED.sub(rb"\1", message) if b">From " in message else message


def _read_mbox(source: Input) -> Iterator[RawMessage]:
    """Yield the messages of an mbox; notes those that Gmail's labels put into another class."""
    seen, label, title = source.options.seen, source.label, source.title
    if seen and source.is_file:
        with source.open() as stream:
            flags = map(is_read, split_mbox(stream, _HEADER_LIMIT))
            if all(flag is None for flag in flags):
                reason = "no message has a Status line, so which were read is unknown"
                source.skips.note(title, reason, Remedy.LEAVE_OUT_SEEN)
    with source.open() as stream:
        for number, raw in enumerate(split_mbox(stream, BYTES_LIMIT), 1):
            if number == 1 and _INTERNAL.search(raw, 0, _HEADER_LIMIT) and b"X-IMAP" in raw:
                continue
            if not (is_read(raw) if seen else not _is_expunged(raw)):
                continue
            if reason := _contradiction(label, raw):
                source.skips.note(f"{title}:{number}", reason)
            else:
                yield RawMessage(f"{title}:{number}", label, raw)


MBOX = SourceKind(_read_mbox, "an mbox has no labels")


# Files with one message: files that no other kind recognises


def _read_file(source: Input) -> Iterator[RawMessage]:
    if source.options.require_content and not source.sample.strip():
        note_empty(source)
    else:
        yield RawMessage(source.title, source.label, source.path)


EMPTY_FILE = SourceKind(_read_file, "an empty file has no labels")
MAIL = SourceKind(_read_file, "one mail has no labels")
TEXT = SourceKind(_read_file, "the file has no labels")
ONE_MESSAGE = SourceKind(read_one, "one message has no labels")


# Folders: one message per file

_MH_LIMIT = 10_000_000  # the highest number of a message


def is_within(path: object, folder: str) -> bool:
    """Return whether a path, its links followed, is in a folder, or the folder itself.

    folder: a real path.
    """
    try:
        real = os.path.realpath(str(path))
    except ValueError:  # a NUL in it: there cannot be such a file
        return True
    return os.path.join(real, "").startswith(os.path.join(folder, ""))  # noqa: PTH118


def _is_left_out(entry: Path, root: str, source: Input) -> bool:
    """Return whether an entry of a folder is a link that is not followed, and note such a link.

    root: the real path of the source.
    """
    if not entry.is_symlink():
        return False
    if not entry.exists():
        source.skips(str(entry), "the link leads nowhere")
    elif is_within(root, os.path.realpath(entry)):
        source.skips(str(entry), "the link leads to a folder that contains it")
    elif not (source.options.outside or is_within(entry, root)):
        source.skips(str(entry), f"the link leads out of {root}", Remedy.ALLOW_OUTSIDE)
    else:
        return False
    return True


def _is_other_source(path: Path, source: Input) -> bool:
    """Return whether a folder's entry is another source; note that source's different label."""
    if (label := source.options.source_labels.get(real_name(path))) is None:
        return False
    if label != source.label:
        source.note(
            f"{path}: is given as a source of its own and is read only as {label or 'that'}"
        )
    return True


# Spark and Dask write these next to Parquet files.
_IGNORED = frozenset(("_SUCCESS", "_metadata", "_common_metadata"))


def _sorted_entries(folder: Path) -> list[Path]:
    """Return the entries of a folder, sorted by name, without dot files and Spark's own files."""
    entries = sorted(folder.iterdir(), key=str)
    return [e for e in entries if e.name[0] != "." and e.name not in _IGNORED]


def _maildir_parts(path: Path) -> list[Path]:
    """Return the folders of a Maildir that contain mail; [] for another folder.

    Thunderbird's Maildirs have no `new`.  `tmp` has mail that is still being written.
    """
    new = path / "new"
    if not (path / "cur").is_dir() or not (new.is_dir() or (path / "tmp").is_dir()):
        return []
    return [path / "cur", new] if new.is_dir() else [path / "cur"]


def _maildir_entries(parts: list[Path], source: Input) -> list[Path]:
    """List the messages of a Maildir; on request only messages that are read and not deleted."""
    if not source.options.seen:
        return [entry for part in parts for entry in _sorted_entries(part)]
    if not parts[0].with_name("new").is_dir():
        raise _not_recorded_error(parts[0].parent)
    read_parts = (part for part in parts if part.name == "cur")
    entries = (entry for part in read_parts for entry in _sorted_entries(part))
    flagged = [(entry, maildir_flags(entry.name)) for entry in entries]
    return [entry for entry, flags in flagged if flags and "S" in flags[1] and "T" not in flags[1]]


_UNSEEN = lazy_pattern(r"^unseen:(.*)$", re.MULTILINE)


def _folder_entries(source: Input) -> tuple[list[Path], bool]:
    """List a folder that is not a Maildir; also return whether it records which mail was read.

    MH folders record unseen messages in a file: these are left out on request, deleted messages
    always.
    """
    entries = _sorted_entries(source.path)
    try:
        sequences = (source.path / ".mh_sequences").read_text("utf-8", "replace")
    except OSError:
        return entries, False
    unseen: set[str] = set()
    if source.options.seen and (line := _UNSEEN.search(sequences)):
        for first, _, last in (part.partition("-") for part in line[1].split()):
            if first.isdecimal() and (last or first).isdecimal():
                unseen.update(map(str, range(int(first), min(int(last or first), _MH_LIMIT) + 1)))
    return [e for e in entries if e.name[0] not in ",#" and e.name not in unseen], True


def _not_recorded_error(path: Path) -> SourceError:
    return SourceError(f"{path}: does not record which messages were read", Remedy.LEAVE_OUT_SEEN)


_MANY_LINES = 20  # a message of as many lines has blank lines between its paragraphs


def note_lines(source: Input) -> None:
    """Note a text that is read as one message if its lines may be messages."""
    sample = source.sample.strip().replace(b"\r", b"")
    if len(source.lines) >= _MANY_LINES and b"\n\n" not in sample and sample[:1] != b"<":
        problem = f"{source.path}: its lines are read as one message"
        source.note(problem, Remedy.READ_EACH_LINE)


_MAIL_ENDINGS = frozenset((".eml", ".emlx"))
_EXPORT_ENDINGS = frozenset((".txt", ".xml"))  # chats and SMS backups have these
# Suffixes of the files that exports put next to messages.
_SIDE_ENDINGS = frozenset(".json .meta .html .htm .css .js .ini".split())


def _kind_in_folder(entry: Input, names: set[str], endings: set[str]) -> SourceKind:
    """Recognise the kind of a file in a folder: by its name and content, else one message.

    Thunderbird stores folders as mboxes (each with an .msf file); Apple Mail and Google export
    them.  A suffix other than .eml, or the suffix of a file about messages, shows a file that an
    export puts next to the messages, unless the file contains a mail.  Raises OSError.
    names, endings: the names and suffixes of all files in the folder.
    """
    name, ending = entry.path.name, entry.suffix
    may_be_box = ending == ".mbox" or name == "mbox" or f"{name}.msf" in names
    if may_be_box and is_mbox(entry.sample):
        return MBOX
    is_other = bool(endings & _MAIL_ENDINGS) and ending not in _MAIL_ENDINGS
    is_about = ending in _SIDE_ENDINGS and len(endings) > 1
    may_be_side_file = is_other or is_about or entry.path.stem.casefold() == "readme"
    if is_mail(entry.sample):
        return MAIL
    if ending in _EXPORT_ENDINGS and (kind := export_kind(entry)):
        return kind
    if len(names) == 1:
        note_lines(entry)
    if not (may_be_side_file or ending in TABLE_SUFFIXES):
        return MAIL
    return _SIDE_FILE if may_be_side_file else _TABLE


def _note_side_file(entry: Input) -> Iterator[RawMessage]:
    entry.skips.note(entry.name, "is no message, but a file that an export puts next to messages")
    return iter(())


def _read_table(entry: Input) -> Iterator[RawMessage]:
    from nbspam.reading.tables import read_in_folder  # not needed for mail

    return read_in_folder(entry)


_SIDE_FILE = SourceKind(_note_side_file)
_TABLE = SourceKind(_read_table)


def _read_files(folder: Input, root: str, visited: set[Path]) -> Iterator[RawMessage]:
    """Yield the files of a folder and its sub-folders, sorted by name, without dot files.

    root: the real path of the source.
    visited: the folders read so far, with links resolved, because a link may lead back to them.
    """
    path, options, skips = folder.path, folder.options, folder.skips
    real = path.resolve()
    if real in visited:
        skips(str(path), "the link leads to a folder that was read already")
        return
    visited.add(real)
    if parts := _maildir_parts(path):
        parts = [part for part in parts if not _is_left_out(part, root, folder)]
        entries, has_read_flags = _maildir_entries(parts, folder) if parts else [], True
    else:
        entries, has_read_flags = _folder_entries(folder)
    inside, should_note = {entry.name for entry in entries}, not has_read_flags
    # Compare names first, because resolving each file's path would take as long as listing the
    # folder.
    others = {path.rpartition(os.sep)[2] for path in options.source_labels}
    folders = {entry for entry in entries if entry.is_dir()}
    # "/" is a sub-folder, because the messages may be in it.
    endings = set() if parts else {"/" if e in folders else bare_suffix(e) for e in entries}
    for path in entries:
        is_folder = path in folders
        if (path.name in others or (is_folder and others)) and _is_other_source(path, folder):
            continue
        if _is_left_out(path, root, folder):
            continue
        if is_folder and path.name == "Attachments" and "Messages" in inside:
            continue  # Apple Mail stores them next to the messages
        entry = folder.entry(path)
        if is_folder:
            try:
                yield from _read_files(entry, root, visited)
            except PermissionError as error:
                skips(entry.name, f"the folder cannot be read ({error.strerror})")
        elif path.is_file():
            try:
                kind = MAIL if parts else _kind_in_folder(entry, inside, endings)
                is_box = should_note and is_mbox(entry.sample) and count_separators(entry.sample)
            except OSError:  # the reader of the message will report it
                kind, is_box = MAIL, False
            lacks_flags = not has_read_flags and kind is not MBOX
            if options.seen and lacks_flags and not is_mail_store_file(path.name):
                raise _not_recorded_error(folder.path)
            if kind is not MAIL:
                yield from kind.read(entry)
                continue
            if is_box:
                should_note = False  # print the note once for each folder
                problem = "looks like an mbox, and in a folder is read as one message"
                entry.note(f"{path}: {problem}; name such a file as a source of its own")
            yield RawMessage(entry.name, entry.label, path)


def _class_folders(path: Path) -> list[Path]:
    return [entry for entry in _sorted_entries(path) if entry.is_dir()]


def _read_class_folders(source: Input) -> Iterator[RawMessage]:
    """Yield the files of each sub-folder; the sub-folder's name is their class."""
    for entry in _sorted_entries(source.path):
        if entry.is_file() and not _is_other_source(entry, source):
            source.skips.note(
                str(entry), "the file is not in the folder of a class", Remedy.GIVE_OUTSIDE_LABEL
            )
    root = real_name(source.path)
    for folder in _class_folders(source.path):
        if _is_other_source(folder, source) or _is_left_out(folder, root, source):
            continue
        name = folder.name.rpartition("=")[2] or folder.name  # Spark's `label=spam`
        if label := normal_label(name):
            source.skips.record_spelling(label, name)
            yield from _read_files(source.entry(folder, label), root, visited=set())
        else:
            source.skips(str(folder), "the folder's name has no printable character")


def has_classes(path: Path) -> bool:
    """Return whether a folder may have one sub-folder for each class."""
    return bool(_class_folders(path)) and not _maildir_parts(path)


CLASS_FOLDERS = SourceKind(_read_class_folders)
FOLDER = SourceKind(
    lambda source: _read_files(source, real_name(source.path), set()),
    "the folder has no sub-folder for each class",
)


# Index files, as in the TREC spam corpora: each line is a label and a file's path
#
# TREC's index is in a folder next to the folder of mails (`spam ../data/inmail.1`).  So an index
# may name any file in the folder above its own, at any depth.

_PATHS_TRIED = 20  # at least one of these paths must be a file
_INDEX_LINE = lazy_pattern(r"(\S+)\s+(\S.*)")


def is_index(source: Input) -> bool:
    """Return whether a file is an index.

    A file called index is an index if any of its lines is a label and a path.
    If labels are required, a file of any other name is an index, too, if each line is a label and a
    path, and one of the first paths is a file.  Otherwise the file is a message, and a message must
    not name files to be read.
    """
    lines = [_INDEX_LINE.fullmatch(line.strip()) for line in source.lines]
    if "index" in (source.path.name, source.suffix[1:]) and any(lines):
        return True
    if not (source.require_labels and all(lines)):
        return False
    names = [line[2] for line in lines[:_PATHS_TRIED] if line]
    try:
        return any((source.path.parent / name).is_file() for name in names)
    except (OSError, ValueError):
        return False


def _read_index(source: Input) -> Iterator[RawMessage]:
    skips, folder = source.skips, source.path.parent
    allowed = real_name(folder.resolve().parent)
    lines = decode_lines(source.title, source.open, Decoding(), skips)
    for number, text in nonblank_lines(lines):
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
        if not (source.options.outside or is_within(path, allowed)):
            problem = f"{place}: {name} is outside {allowed}, the folder above the index's own"
            raise SourceError(problem, Remedy.ALLOW_OUTSIDE)
        if os.path.isfile(path):  # noqa: PTH113 (pathlib raises for a name that is too long)
            yield RawMessage(str(path), label, path)
        else:
            skips(place, f"there is no file {str(path)[:200]}")


INDEX = SourceKind(_read_index)


def _read_imap(source: Input) -> Iterator[RawMessage]:
    """Yield the messages of a folder at a mail server; raises AccountError."""
    options = source.options
    if options.read_imap_folder is None:
        raise AccountError(
            f"{source.name}: the library does not know the password; read it with the command line"
        )
    for name, content in options.read_imap_folder(source.name, options.seen, source.skips):
        yield RawMessage(name, source.label, content)


IMAP_FOLDER = SourceKind(_read_imap, "an IMAP folder has no labels")
