"""Sources of messages: from the name that the user gives to the messages.

`Source.kind` recognises the kind of a source; the kinds are in `mail.py`, `exports.py`, `tables.py`
and `looks.py`.

Standard input is one message, because the sender of a mail must not choose how it is read.  A note
warns if standard input looks like many messages.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
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
    Input,
    ReadingOptions,
    Skips,
    SourceKind,
    read_one,
)


def read_labelled(source: str, options: ReadingOptions, skips: Skips) -> Iterator[RawMessage]:
    """Yield the messages of a source with labels.

    Raises SourceError when it cannot be read, or has no labels.
    """
    return Source(source, options, skips, require_labels=True).messages()


def read_unlabelled(
    source: str, label: str, options: ReadingOptions, skips: Skips
) -> Iterator[RawMessage]:
    """Yield the messages of a source, each as one of class `label`.

    Raises SourceError when it cannot be read, or has labels of its own.
    """
    return Source(source, options, skips, label).messages()


def read_messages(source: str, options: ReadingOptions, skips: Skips) -> Iterator[RawMessage]:
    """Yield the messages of any source, with their labels if the source has labels.

    Raises SourceError when it cannot be read.
    """
    return Source(source, options, skips).messages()


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


class Source(Input):
    """A source of messages, which knows its kind and yields its messages."""

    def messages(self) -> Iterator[RawMessage]:
        """Yield the messages, or the messages attached to them; raises SourceError."""
        self.check_exists()
        with self._source_errors():
            raws = self.kind.read(self)
            yield from self._attached_messages(raws) if self.options.attached else raws

    def check_exists(self) -> None:
        """Raise SourceError if there is no such file."""
        if self.name == STDIN or self.is_imap_folder:
            return
        if is_url(self.name):
            raise SourceError(
                f"{self.name}: is a URL, and sources are files; download it, or pipe it to standard"
                " input"
            )
        try:
            self.mode  # noqa: B018 (looks the file up)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            problem = f"cannot be read ({reason}); check its permissions"
            if isinstance(error, FileNotFoundError):
                problem = "no such file or folder; check the name"
                file, _, number = self.name.rpartition(":")
                if number.isdecimal() and os.path.exists(file):  # noqa: PTH110 (a part of a name)
                    problem = (
                        "names one message, which only nbspam explain takes; pass it on a pipe"
                    )
            raise SourceError(f"{self.path}: {problem}") from error

    @cached_property
    def kind(self) -> SourceKind:
        """The format that the user names, else the first kind that recognises the source.

        Raises SourceError for a source that is certainly not a mail, text or table, and for a
        source without the required labels.
        """
        is_any_file = not self.is_imap_folder and self.is_file
        if is_any_file and self.options.input_format != MESSAGE:
            problem = foreign_format(self.sample, self.suffix)
            if problem:
                raise SourceError(f"{self.path}: {problem}")
        kind = self._recognise()
        if kind.refusal and self.require_labels:
            raise SourceError(f"{self.name}: {kind.refusal}", Remedy.GIVE_LABEL)
        return kind

    def _recognise(self) -> SourceKind:
        input_format = self.options.input_format
        if self.name == STDIN and input_format is None and not self.require_labels:
            return STREAM
        # Imported late: a mail filter reads standard input, once per message, and needs neither
        # module; a message that is learned needs no tables.
        from nbspam.reading import mail

        if self.is_imap_folder:
            return mail.IMAP_FOLDER
        if self.name != STDIN and self.is_folder:
            if input_format not in (None, MESSAGE):
                problem = f"so each of its files is read as one message, not as {input_format}"
                self.note(f"{self.path}: is a folder, {problem}")
            if not self.require_labels:
                return mail.FOLDER
            from nbspam.reading import tables

            if tables.tables_in_folder(self.path):
                return tables.TABLE_FOLDER
            return mail.CLASS_FOLDERS if mail.has_classes(self.path) else mail.FOLDER
        if input_format is None and self.is_file:
            return self._recognise_file()
        from nbspam.reading import exports, looks, tables

        if input_format is None:
            return looks.LABELLED_STREAM if self.require_labels else STREAM
        if input_format == LINES and self.is_file and exports.export_kind(self):
            problem = "is an export of messages, and its lines are read, with dates and names"
            self.note(f"{self.path}: {problem}", Remedy.LEAVE_OUT_LINES)
        kinds = {MESSAGE: mail.ONE_MESSAGE, MBOX_FORMAT: mail.MBOX, LINES: tables.EACH_LINE}
        return kinds.get(input_format) or tables.FORMS[input_format]

    def _recognise_file(self) -> SourceKind:
        """Recognise the kind of a file by its name and its first bytes.

        If labels are required, a file may be Parquet or an index by its content; otherwise it is a
        message.  If the user gives a label, a file is a table only by its suffix.
        """
        from nbspam.reading import mail

        sample = self.sample
        if self.suffix in TABLE_SUFFIXES or (self.require_labels and sample.startswith(PARQUET)):
            from nbspam.reading import tables

            return tables.TABLE
        if not sample.strip():
            return mail.EMPTY_FILE
        if self.suffix != ".eml" and (problem := mail.problem_of_box(sample)):
            raise SourceError(f"{self.path}: {problem}")
        if self.suffix != ".eml" and mail.is_mbox(sample):
            return mail.MBOX
        if self.suffix == ".eml" or is_mail(sample):
            return mail.MAIL
        from nbspam.reading import exports

        if kind := exports.export_kind(self):
            return kind
        if self.label is not None:
            self._check_one_message()
        elif mail.is_index(self):
            return mail.INDEX
        else:
            from nbspam.reading import tables

            if tables.are_labelled_lines(self.lines):
                return tables.TSV
            if not self.require_labels and (problem := problem_of(sample, str(self.path))):
                self.note(f"{self.path}: {problem}")
                # the verdict on such a file is unsure; in a folder the file would be skipped
                return mail.ONE_MESSAGE
        return mail.TEXT

    def _check_one_message(self) -> None:
        """Note a text whose lines may be messages; raises SourceError for XML."""
        from nbspam.reading import mail

        if self.sample.split(maxsplit=1)[:1] == [b"<?xml"] and b"<html" not in self.sample.lower():
            problem = "is XML, but not an SMS backup as nbspam reads it; save it as a table"
            raise SourceError(f"{self.path}: {problem}")
        mail.note_lines(self)

    def _attached_messages(self, raws: Iterator[RawMessage]) -> Iterator[RawMessage]:
        """Yield the messages attached to messages; raises SourceError for standard input."""
        for raw in raws:
            content = raw.content
            if not isinstance(content, bytes | str):
                with open_message(content) as stream:
                    content = stream.read(BYTES_LIMIT)
            messages = extract_attached(content) if isinstance(content, bytes) else []
            problem = "no message is attached; forward it as an attachment"
            if not messages and raw.source == STDIN:  # a mail program tells the user who forwarded
                raise SourceError(f"{STDIN}: {problem}")
            if not messages:
                self.skips(raw.source, problem)
            for number, message in enumerate(messages, 1):
                yield RawMessage(f"{raw.source}:{number}", raw.label, message)

    @contextmanager
    def _source_errors(self) -> Iterator[None]:
        """Turn errors while the source is read into a SourceError that names it."""
        try:
            yield
        except OSError as error:
            problem, remedy = "cannot be read", "check its permissions and content"
            name = error.filename or self.title
            if name == STDIN:
                problem, remedy = "standard input cannot be read", "pipe a message in"
            if error.errno == 0:  # a damaged archive
                remedy = "get a whole copy of it, or unpack it first"
            raise SourceError(f"{name}: {problem} ({error.strerror}); {remedy}") from error
        except RecursionError as error:
            problem = "its folders are too deep inside one another; name an inner folder"
            raise SourceError(f"{self.title}: {problem}") from error
        except (LookupError, UnicodeError) as error:
            if isinstance(error, LookupError) and "encoding" not in str(error):
                raise
            raise SourceError(f"{self.title}: {error}", Remedy.NAME_ENCODING) from error


def _read_stream(source: Input) -> Iterator[RawMessage]:
    """Yield the one message of standard input or a pipe; note a stream that looks like many."""
    for raw in read_one(source):
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
                source.note(problem, Remedy.SAY_FORMAT, format=look[1])
        yield raw


STREAM = SourceKind(_read_stream)  # standard input, or a pipe such as <(command)
