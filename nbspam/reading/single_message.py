"""A file that is one message: what no other kind recognises."""

from collections.abc import Iterator

from nbspam.reading.message import is_mail
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.source_kind import Labels, ReadingOptions, ReadingRequest, Source, SourceKind
from nbspam.reading.stream import tell_empty


def _read_file(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    yield RawMessage(str(source.path), request.label, source.path)


def _is_empty(source: Source, _: ReadingOptions) -> bool:
    return not source.sample.strip()


def _is_named_mail(source: Source, _: ReadingOptions) -> bool:
    return source.suffix == ".eml"


def _is_mail(source: Source, _: ReadingOptions) -> bool:
    return is_mail(source.sample)


def _is_any_file(source: Source, _: ReadingOptions) -> bool:
    return source.is_file


def _read_empty(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    if request.options.needs_content:
        tell_empty(source, request)
    else:
        yield from _read_file(source, request)


EMPTY_FILE = SourceKind(Labels.NEVER, _is_empty, _read_empty, "an empty file has no labels")
NAMED_MAIL = SourceKind(Labels.NEVER, _is_named_mail, _read_file, "one mail has no labels")
MAIL = SourceKind(Labels.NEVER, _is_mail, _read_file, "one mail has no labels")
TEXT = SourceKind(Labels.NEVER, _is_any_file, _read_file, "the file has no labels")
