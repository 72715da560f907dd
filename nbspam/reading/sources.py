"""Sources of messages: from the name that the user gives to the messages.

`_kind_of` recognises the kind of a source; the kinds are in `mail.py` and `tables.py`.

Standard input is one message, because its sender must not choose how it is read.  A note warns if
it looks like many messages.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from nbspam.errors import Remedy, SourceError
from nbspam.names import is_url
from nbspam.reading.compression import TABLE_SUFFIXES, foreign_format
from nbspam.reading.message import (
    BYTES_LIMIT,
    RawMessage,
    extract_attached,
    is_mail,
    open_message,
    problem_of,
)
from nbspam.reading.source import (
    LINES,
    MBOX_FORMAT,
    MESSAGE,
    PARQUET,
    SAMPLE_BYTES,
    STDIN,
    ReadingOptions,
    ReadingRequest,
    Skips,
    Source,
    SourceKind,
    read_one,
)


def read_labelled(source: str, options: ReadingOptions, skips: Skips) -> Iterator[RawMessage]:
    """Yield the messages of a source with labels.

    Raises SourceError when it cannot be read, or has no labels.
    """
    return _messages(source, ReadingRequest(options, skips, require_labels=True))


def read_unlabelled(
    source: str, label: str, options: ReadingOptions, skips: Skips
) -> Iterator[RawMessage]:
    """Yield the messages of a source, each as one of class `label`.

    Raises SourceError when it cannot be read, or has labels of its own.
    """
    return _messages(source, ReadingRequest(options, skips, label))


def read_messages(source: str, options: ReadingOptions, skips: Skips) -> Iterator[RawMessage]:
    """Yield the messages of any source, with a label where it gives one.

    Raises SourceError when it cannot be read.
    """
    return _messages(source, ReadingRequest(options, skips))


def read_api_input(
    source: Any,
    unlabelled_sources: Iterable[tuple[str, Any]],
    options: ReadingOptions,
    skips: Skips,
) -> Iterator[RawMessage]:
    """Yield the labelled messages that a program passes to `nbspam.train`.

    source: a name, a list of names, pairs, a data frame, or None.
    unlabelled_sources: labels, and a name or names for each.
    Raises SourceError and TableError.
    """
    from nbspam.reading.program import (
        are_names,
        frame_messages,
        is_data_frame,
        labelled_messages,
    )

    if is_data_frame(source):
        yield from frame_messages(source, options, skips, require_labels=True)
    elif isinstance(source, str | os.PathLike):
        yield from read_labelled(os.fspath(source), options, skips)
    elif isinstance(source, list) and source and are_names(source):
        for name in source:
            yield from read_labelled(os.fspath(name), options, skips)
    elif source is not None:
        yield from labelled_messages(source, options, skips)
    for label, names in unlabelled_sources:
        for name in [names] if isinstance(names, str | os.PathLike) else names:
            yield from read_unlabelled(os.fspath(name), label, options, skips)


def _messages(name: str, request: ReadingRequest) -> Iterator[RawMessage]:
    source = find_source(name)
    with source_errors(source):
        raws = detect_kind(source, request).read(source, request)
        yield from attached_messages(raws, request) if request.options.attached else raws


def attached_messages(raws: Iterator[RawMessage], request: ReadingRequest) -> Iterator[RawMessage]:
    """Yield the messages that are attached to messages; raises SourceError for standard input."""
    for raw in raws:
        content = raw.content
        if not isinstance(content, bytes | str):
            with open_message(content) as stream:
                content = stream.read(BYTES_LIMIT)
        messages = extract_attached(content) if isinstance(content, bytes) else []
        problem = "no message is attached; forward it as an attachment"
        if not messages and raw.source == STDIN:  # a mail program tells the user who forwarded it
            raise SourceError(f"{STDIN}: {problem}")
        if not messages:
            request.skips(raw.source, problem)
        for number, message in enumerate(messages, 1):
            yield RawMessage(f"{raw.source}:{number}", raw.label, message)


@contextmanager
def source_errors(source: Source) -> Iterator[None]:
    """Turn errors while a source is read into a SourceError that names the source."""
    try:
        yield
    except OSError as error:
        problem, remedy = "cannot be read", "check its permissions and content"
        name = error.filename or source.title
        if name == STDIN:
            problem, remedy = "standard input cannot be read", "pipe a message in"
        if error.errno == 0:  # a damaged archive
            remedy = "get a whole copy of it, or unpack it first"
        raise SourceError(f"{name}: {problem} ({error.strerror}); {remedy}") from error
    except UnicodeError as error:
        problem = f"{source.title}: is not in that encoding ({error})"
        raise SourceError(problem, Remedy.NAME_ENCODING) from error
    except LookupError as error:
        if "encoding" not in str(error):
            raise
        raise SourceError(f"{source.title}: {error}", Remedy.NAME_ENCODING) from error


def find_source(name: str) -> Source:
    """Find the source with this name; raises SourceError when there is no such file."""
    source = Source(name)
    if name == STDIN or source.is_imap_folder:
        return source
    if is_url(name):
        raise SourceError(
            f"{name}: is a URL, and sources are files; download it, or pipe it to standard input"
        )
    try:
        source.mode  # noqa: B018 (looks the file up)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        problem = f"cannot be read ({reason}); check its permissions"
        if isinstance(error, FileNotFoundError):
            problem = "no such file or folder; check the name"
            file, _, number = name.rpartition(":")
            if number.isdecimal() and Source(file).path.exists():
                problem = "names one message, which only nbspam explain takes; pass it on a pipe"
        raise SourceError(f"{source.path}: {problem}") from error
    return source


def detect_kind(source: Source, request: ReadingRequest) -> SourceKind:
    """Return the format that the user names, else the first kind that recognises the source.

    Raises SourceError for a source that is certainly not a mail, text or table, and for a source
    without the required labels.
    """
    is_any_file = not source.is_imap_folder and source.is_file
    if is_any_file and request.options.input_format != MESSAGE:
        problem = foreign_format(source.sample, source.suffix)
        if problem:
            raise SourceError(f"{source.path}: {problem}")
    kind = _kind_of(source, request)
    if kind.refusal and request.require_labels:
        raise SourceError(f"{source.name}: {kind.refusal}", Remedy.GIVE_LABEL)
    return kind


def _kind_of(source: Source, request: ReadingRequest) -> SourceKind:
    options, input_format = request.options, request.options.input_format
    if source.name == STDIN and input_format is None and not request.require_labels:
        return STREAM
    # Imported late: a mail filter reads standard input, once per message, and needs neither module;
    # a message that is learned needs no tables.
    from nbspam.reading import mail

    if source.is_imap_folder:
        return mail.IMAP_FOLDER
    if source.name != STDIN and source.is_folder:
        if input_format not in (None, MESSAGE):
            problem = f"so each of its files is read as one message, not as {input_format}"
            options.on_note(SourceError(f"{source.path}: is a folder, {problem}"))
        if not request.require_labels:
            return mail.FOLDER
        from nbspam.reading import tables

        if tables.tables_in_folder(source.path):
            return tables.TABLE_FOLDER
        return mail.CLASS_FOLDERS if mail.has_classes(source.path) else mail.FOLDER
    if input_format is None and source.is_file:
        return _kind_of_file(source, request)
    from nbspam.reading import looks, tables

    if input_format is None:
        return looks.LABELLED_STREAM if request.require_labels else STREAM
    kinds = {MESSAGE: mail.ONE_MESSAGE, MBOX_FORMAT: mail.MBOX, LINES: tables.EACH_LINE}
    return kinds.get(input_format) or tables.FORMS[input_format]


def _kind_of_file(source: Source, request: ReadingRequest) -> SourceKind:
    """Recognise the kind of a file by its name and its first bytes.

    If labels are required, a file may be Parquet or an index by its content; otherwise it is a
    message.  If the user gives a label, only its suffix makes a file a table.
    """
    from nbspam.reading import mail

    sample = source.sample
    if source.suffix in TABLE_SUFFIXES or (request.require_labels and sample.startswith(PARQUET)):
        from nbspam.reading import tables

        return tables.TABLE
    if not sample.strip():
        return mail.EMPTY_FILE
    if source.suffix != ".eml" and (problem := mail.problem_of_box(sample)):
        raise SourceError(f"{source.path}: {problem}")
    if source.suffix != ".eml" and mail.is_mbox(sample):
        return mail.MBOX
    if source.suffix == ".eml" or is_mail(sample):
        return mail.MAIL
    from nbspam.reading import exports

    if kind := exports.export_kind(source):
        return kind
    if request.label is None and mail.is_index(source, request.require_labels):
        return mail.INDEX
    if request.label is None:
        from nbspam.reading import tables

        if tables.are_labelled_lines(source.lines):
            return tables.TSV
        if not request.require_labels and (problem := problem_of(sample, str(source.path))):
            request.options.on_note(SourceError(f"{source.path}: {problem}"))
            return mail.ONE_MESSAGE  # the verdict is unsure; in a folder the file would be skipped
    return mail.TEXT


def _read_stream(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    """Yield the one message of standard input or a pipe; note if it looks like many messages."""
    for raw in read_one(source, request):
        if raw.content == b"" and source.name == STDIN and sys.stdin.buffer.isatty():
            raise SourceError("no message was typed; type one, or give a file or a pipe")
        first = raw.content[:SAMPLE_BYTES] if isinstance(raw.content, bytes) else b""
        if first.startswith(b"From "):
            may_be_many = b"\nFrom " in first
        else:  # several lines that are not a mail
            is_json = first.startswith((b"[", b"{"))
            may_be_table = is_json or b"\n" in first.strip() or b"\0" in first
            may_be_many = may_be_table and not is_mail(first)
        if may_be_many:
            from nbspam.reading import looks  # not loaded for a mail

            if look := looks.looks_like(first):
                name = "standard input" if raw.source == STDIN else raw.source
                problem = f"{name} looks like {look[0]}; it was read as one message"
                request.options.on_note(SourceError(problem, Remedy.SAY_FORMAT, format=look[1]))
        yield raw


STREAM = SourceKind(_read_stream)  # standard input, or a pipe such as <(command)
