"""Sources of messages: what the user names, and the messages in it.

`_kind_of` recognises the kind of a source; the kinds are in `mail.py` and `tables.py`.

Standard input is one message whatever it looks like: its sender must not choose how it is read.  A
note says so if it looks like many messages.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from nbspam.errors import Remedy, SourceError
from nbspam.names import is_url
from nbspam.reading.compression import foreign_format
from nbspam.reading.message import (
    BYTES_LIMIT,
    RawMessage,
    attached,
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


def labelled(source: str, options: ReadingOptions, skips: Skips) -> Iterator[RawMessage]:
    """Yield the messages of a source with labels.

    Raises SourceError when it cannot be read, or has no labels.
    """
    return _messages(source, ReadingRequest(options, skips, needs_labels=True))


def unlabelled(
    source: str, label: str, options: ReadingOptions, skips: Skips
) -> Iterator[RawMessage]:
    """Yield the messages of a source, each as one of class `label`.

    Raises SourceError when it cannot be read, or has labels of its own.
    """
    return _messages(source, ReadingRequest(options, skips, label))


def any_kind(source: str, options: ReadingOptions, skips: Skips) -> Iterator[RawMessage]:
    """Yield the messages of any source, with a label where it gives one.

    Raises SourceError when it cannot be read.
    """
    return _messages(source, ReadingRequest(options, skips))


def from_program(
    source: Any,
    unlabelled_sources: Iterable[tuple[str, Any]],
    options: ReadingOptions,
    skips: Skips,
) -> Iterator[RawMessage]:
    """Yield the labelled messages that a program passes to `nbspam.train`.

    source: a name, pairs, a data frame, or None.
    unlabelled_sources: labels, and a name or names for each.
    Raises SourceError and TableError.
    """
    from nbspam.reading.tables import frame_messages, is_data_frame, pair_messages

    if is_data_frame(source):
        yield from frame_messages(source, options, skips, needs_labels=True)
    elif isinstance(source, str | os.PathLike):
        yield from labelled(os.fspath(source), options, skips)
    elif source is not None:
        yield from pair_messages(source, skips)
    for label, names in unlabelled_sources:
        for name in [names] if isinstance(names, str | os.PathLike) else names:
            yield from unlabelled(os.fspath(name), label, options, skips)


def _messages(name: str, request: ReadingRequest) -> Iterator[RawMessage]:
    source = existing(name)
    with failing_as(source):
        raws = recognised(source, request).read(source, request)
        yield from attached_messages(raws, request) if request.options.attached else raws


def attached_messages(raws: Iterator[RawMessage], request: ReadingRequest) -> Iterator[RawMessage]:
    """Yield the messages that are attached to messages."""
    for raw in raws:
        content = raw.content
        if not isinstance(content, bytes | str):
            with open_message(content) as stream:
                content = stream.read(BYTES_LIMIT)
        messages = attached(content) if isinstance(content, bytes) else []
        problem = "no message is attached; forward it as an attachment"
        if not messages and raw.source == STDIN:  # a mail program tells the user who forwarded it
            raise SourceError(f"{STDIN}: {problem}")
        if not messages:
            request.skips(raw.source, problem)
        for number, message in enumerate(messages, 1):
            yield RawMessage(f"{raw.source}:{number}", raw.label, message)


@contextmanager
def failing_as(source: Source) -> Iterator[None]:
    """Turn what fails while a source is read into a SourceError that names it."""
    try:
        yield
    except OSError as error:
        problem, remedy = "cannot be read", "check its permissions and content"
        name = error.filename or source.title
        if name == STDIN:
            problem, remedy = "standard input cannot be read", "pipe a message in"
        raise SourceError(f"{name}: {problem} ({error.strerror}); {remedy}") from error
    except UnicodeError as error:
        problem = f"{source.title}: is not in that encoding ({error})"
        raise SourceError(problem, Remedy.NAME_ENCODING) from error
    except LookupError as error:
        if "encoding" not in str(error):
            raise
        raise SourceError(f"{source.title}: {error}", Remedy.NAME_ENCODING) from error


def existing(name: str) -> Source:
    """Return the source of that name; raises SourceError when there is no such file."""
    source = Source(name)
    if name == STDIN or source.is_imap_folder:
        return source
    try:
        source.mode  # noqa: B018 (looks the file up)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        checked = "the address and the network" if is_url(name) else "its permissions"
        problem = f"cannot be read ({reason}); check {checked}"
        if isinstance(error, FileNotFoundError):
            problem = "no such file or folder; check the name"
            file, _, number = name.rpartition(":")
            if number.isdecimal() and Source(file).path.exists():
                problem = "names one message, which only nbspam explain takes; pass it on a pipe"
        raise SourceError(f"{source.path}: {problem}") from error
    return source


def recognised(source: Source, request: ReadingRequest) -> SourceKind:
    """Return the kind that the user names, else the first that recognises the source.

    Raises SourceError for a source that is certainly no mail, text or table, for one without labels
    where they are needed, and for one with labels where the user gives one.
    """
    is_any_file = not source.is_imap_folder and source.is_file
    if is_any_file and request.options.input_format != MESSAGE:
        problem = foreign_format(source.sample, source.suffix)
        if problem:
            raise SourceError(f"{source.path}: {problem}")
    kind = _kind_of(source, request)
    if kind.refusal and (request.label is not None if kind.has_labels else request.needs_labels):
        remedy = Remedy.LEAVE_OUT_LABEL if kind.has_labels else Remedy.GIVE_LABEL
        raise SourceError(f"{source.name}: {kind.refusal}", remedy)
    return kind


def _kind_of(source: Source, request: ReadingRequest) -> SourceKind:
    options, input_format = request.options, request.options.input_format
    if source.name == STDIN and input_format is None and not request.needs_labels:
        return STREAM
    # Deferred: a mail filter reads standard input, once per message, and needs neither; a message
    # that is learned needs no tables.
    from nbspam.reading import mail

    if source.is_imap_folder:
        return mail.IMAP_FOLDER
    if source.name != STDIN and source.is_folder:
        if input_format not in (None, MESSAGE):
            problem = f"so each of its files is read as one message, not as {input_format}"
            options.tell(SourceError(f"{source.path}: is a folder, {problem}"))
        by_class = request.needs_labels and mail.has_classes(source.path)
        return mail.CLASS_FOLDERS if by_class else mail.FOLDER
    if input_format is None and source.is_file:
        return _kind_of_file(source, request)
    from nbspam.reading import tables

    if input_format is None:
        return tables.LABELLED_STREAM if request.needs_labels else STREAM
    kinds = {MESSAGE: mail.ONE_MESSAGE, MBOX_FORMAT: mail.MBOX, LINES: tables.EACH_LINE}
    return kinds.get(input_format) or tables.FORMS[input_format]


_TABLE_SUFFIXES = frozenset(
    {".tsv", ".tab", ".csv", ".json", ".jsonl", ".ndjson", ".parquet", ".xlsx", ".xlsm"}
)


def _kind_of_file(source: Source, request: ReadingRequest) -> SourceKind:
    """Return the kind of a file by its name and its beginning.

    Where labels are needed, a file may be Parquet or an index by its content; else it is a message.
    Where the user gives a label, it is a table by its suffix only.
    """
    from nbspam.reading import mail

    sample = source.sample
    if source.suffix in _TABLE_SUFFIXES or (request.needs_labels and sample.startswith(PARQUET)):
        from nbspam.reading import tables

        return tables.TABLE
    if not sample.strip():
        return mail.EMPTY_FILE
    if source.suffix != ".eml" and mail.is_mbox(sample):
        return mail.MBOX
    if source.suffix == ".eml" or is_mail(sample):
        return mail.MAIL
    if kind := mail.export_kind(source):
        return kind
    if request.label is None and mail.is_index(source, request.needs_labels):
        return mail.INDEX
    if request.label is None:
        from nbspam.reading import tables

        if tables.are_labelled_lines(source.lines):
            return tables.TSV
        if not request.needs_labels and (problem := problem_of(sample, str(source.path))):
            request.options.tell(SourceError(f"{source.path}: {problem}"))
            return mail.ONE_MESSAGE  # the verdict is unsure; a file of a folder would be skipped
    return mail.TEXT


def _read_stream(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    """Yield the one message of standard input or a pipe; tells the user if it looks like many."""
    for raw in read_one(source, request):
        if raw.content == b"" and source.name == STDIN and sys.stdin.buffer.isatty():
            raise SourceError("no message was typed; type one, or give a file or a pipe")
        first = raw.content[:SAMPLE_BYTES] if isinstance(raw.content, bytes) else b""
        if first.startswith(b"From "):
            may_be_many = b"\nFrom " in first
        else:  # several lines, and no mail
            is_json = first.startswith((b"[", b"{"))
            may_be_table = is_json or b"\n" in first.strip() or b"\0" in first
            may_be_many = may_be_table and not is_mail(first)
        if may_be_many:
            from nbspam.reading import tables  # not loaded for a mail

            if look := tables.looks_like(first):
                name = "standard input" if raw.source == STDIN else raw.source
                problem = f"{name} looks like {look[0]}; it was read as one message"
                request.options.tell(SourceError(problem, Remedy.SAY_FORMAT, format=look[1]))
        yield raw


STREAM = SourceKind(_read_stream)  # standard input, or a pipe such as <(command)
