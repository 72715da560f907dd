"""Sources of a format that the user names, whatever theirs: files, pipes and standard input."""

import io
from collections.abc import Callable, Iterator
from functools import partial

from nbspam.errors import Remedy, SourceError
from nbspam.reading.content import PATIENCE, Content, file_content, stream_content
from nbspam.reading.lines import read_lines
from nbspam.reading.looks import looks_like
from nbspam.reading.mbox import mbox_messages
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.source_kind import (
    LINES,
    MBOX_FORMAT,
    MESSAGE,
    SAMPLE_BYTES,
    STDIN,
    TABLE_FORMATS,
    Labels,
    ReadingOptions,
    ReadingRequest,
    Source,
    SourceKind,
)
from nbspam.reading.stream import opened_stream, read_one
from nbspam.reading.tables import NAMED_TABLE, read_table

_Read = Callable[[Source, ReadingRequest], Iterator[RawMessage]]


def format_kind(input_format: str) -> SourceKind:
    """Return the kind of source that a format is, but for lists of files; it recognises nothing."""
    return _KINDS[input_format]


def _content(source: Source, request: ReadingRequest, form: str) -> Content:
    if source.name != STDIN and source.is_file:
        return file_content(source.path, form)
    stream = opened_stream(source)
    flow = request.options.flow
    if flow is None:
        return stream_content(source.name, stream, form)
    flow.follow(stream)
    return stream_content(source.name, stream, form, PATIENCE)


def _read_table_of(form: str, source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    yield from read_table(_content(source, request, form), request)


def _read_each_line(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    def opened() -> io.BufferedReader:
        stream = opened_stream(source)
        if request.options.flow is not None:
            request.options.flow.follow(stream)
        return stream

    encoding = request.options.table.encoding
    for number, line in read_lines(source.name, opened, encoding, request.skips):
        yield RawMessage(f"{source.name}:{number}", request.label, line)


def _read_mbox_in(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    return mbox_messages(source.name, partial(opened_stream, source), request)


def _read_labelled(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    """Yield the rows of the table in a stream that must have labels, so cannot be a message."""
    content = stream_content(source.name, opened_stream(source))
    with content.beginning() as beginning:
        look = looks_like(beginning.read(SAMPLE_BYTES))
    if look is None or look.form not in TABLE_FORMATS:
        content.whole().close()
        where = "standard input" if source.name == STDIN else "the pipe"
        raise SourceError(
            f"{source.name}: {where} has no labels that can be recognised",
            Remedy.GIVE_LABEL_OR_FORMAT,
        )
    yield from read_table(content._replace(form=look.form), request)


def _never(_: Source, __: ReadingOptions) -> bool:
    return False


def _kind(read: _Read, refusal: str) -> SourceKind:
    return SourceKind(Labels.NEVER, _never, read, refusal)


# Standard input or a pipe where labels are needed and no format is given.
LABELLED_STREAM = SourceKind(Labels.ON_REQUEST, _never, _read_labelled)
_KINDS = {
    MESSAGE: _kind(read_one, "one message has no labels"),
    LINES: _kind(_read_each_line, "lines of text have no labels"),
    MBOX_FORMAT: _kind(_read_mbox_in, "an mbox has no labels"),
    **{
        form: NAMED_TABLE._replace(is_recognised=_never, read=partial(_read_table_of, form))
        for form in TABLE_FORMATS
    },
}
