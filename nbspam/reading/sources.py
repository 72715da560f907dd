"""Sources of messages: what the user names, and the messages in it.

Each kind of source has a file of its own; `_kinds` is the registry.
"""

from collections.abc import Iterator
from functools import cache

from nbspam.errors import AccountError, Remedy, SourceError
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skips
from nbspam.reading.source_kind import (
    FILE_LISTS,
    MESSAGE,
    STDIN,
    Labels,
    ReadingOptions,
    ReadingRequest,
    Source,
    SourceKind,
    TableOptions,
)
from nbspam.reading.stream import PIPE, STANDARD_INPUT

__all__ = ["STDIN", "ReadingOptions", "TableOptions", "any_kind", "labelled", "unlabelled"]

# Where formats that are not read show themselves (`foreign.py`): in their first bytes, which have a
# NUL or are not ASCII, or are one of these; a tar archive shows itself in its first block.
_MAGIC, _BLOCK = 16, 512  # bytes
_PRINTABLE = (b"!BDN", b"%PDF-", b"GIF8", b"PK", b"Rar!", b"FEA1")


@cache
def _kinds() -> tuple[SourceKind, ...]:
    """Return the kinds of files and folders, in the order in which they are recognised."""
    # Deferred: a mail filter reads standard input, once per message, and needs none of these.
    from nbspam.reading.class_folders import CLASS_FOLDERS
    from nbspam.reading.folder import FOLDER
    from nbspam.reading.index import NAMED_INDEX, NAMELESS_INDEX
    from nbspam.reading.mbox import MBOX
    from nbspam.reading.single_message import EMPTY_FILE, MAIL, NAMED_MAIL, TEXT
    from nbspam.reading.tables import NAMED_TABLE, NAMELESS_PARQUET, NAMELESS_TSV

    return (
        CLASS_FOLDERS,
        FOLDER,
        PIPE,
        NAMED_TABLE,
        EMPTY_FILE,
        NAMELESS_PARQUET,
        NAMED_MAIL,
        MBOX,
        MAIL,
        NAMED_INDEX,
        NAMELESS_INDEX,
        NAMELESS_TSV,
        TEXT,
    )


def labelled(source: str, options: ReadingOptions, skips: Skips) -> Iterator[RawMessage]:
    """Yield the messages of a source that says itself which class each message is in.

    Raises SourceError when it cannot be read, or has no labels.
    """
    request = ReadingRequest(options, skips, needs_labels=True)
    return _messages(source, request, refused=Labels.NEVER)


def unlabelled(
    source: str, label: str | None, options: ReadingOptions, skips: Skips
) -> Iterator[RawMessage]:
    """Yield the messages of a source, each as one of class `label`.

    Raises SourceError when it cannot be read, or has labels of its own.
    """
    return _messages(source, ReadingRequest(options, skips, label), NOT_ASKED_FOR, Labels.ALWAYS)


def any_kind(source: str, options: ReadingOptions, skips: Skips) -> Iterator[RawMessage]:
    """Yield the messages of any source, with a label where it gives one.

    Raises SourceError when it cannot be read.
    """
    request = ReadingRequest(options, skips)
    return _messages(source, request, ignored=frozenset({Labels.ON_REQUEST}))


# Kinds that are not recognised in a source whose label the user gives.
NOT_ASKED_FOR = frozenset({Labels.ALLOWED, Labels.ON_REQUEST})


def _messages(
    name: str,
    request: ReadingRequest,
    ignored: frozenset[Labels] = frozenset(),
    refused: Labels | None = None,
) -> Iterator[RawMessage]:
    """Yield the messages of a source, read as the first kind that recognises it.

    ignored, refused: as `recognised` takes them.
    """
    source = existing(name)
    try:
        yield from recognised(source, request, ignored, refused).read(source, request)
    except (OSError, UnicodeError, LookupError) as error:
        if (known := source_error(source, error)) is None:
            raise
        raise known from error


def recognised(
    source: Source,
    request: ReadingRequest,
    ignored: frozenset[Labels] = frozenset(),
    refused: Labels | None = None,
) -> SourceKind:
    """Return the first kind that recognises a source; raises SourceError.

    ignored: kinds with such labels are not asked.  refused: kinds with such labels are an error.
    """
    _check_format(source, request.options)
    kind = _kind_of(source, request, ignored)
    if kind.labels is refused:
        raise SourceError(f"{source.name}: {kind.refusal}", kind.remedy)
    return kind


def source_error(source: Source, error: Exception) -> SourceError | None:
    """Return what a failure to read a source is to the user; None if it is not the source's."""
    if isinstance(error, OSError):
        return _unreadable(source, error)
    if isinstance(error, UnicodeError):
        return SourceError(
            f"{source.path}: is not in that encoding ({error})", Remedy.NAME_ENCODING
        )
    if "encoding" in str(error):
        return SourceError(f"{source.path}: {error}", Remedy.NAME_ENCODING)
    return None


def _check_format(source: Source, options: ReadingOptions) -> None:
    """Raise SourceError for a file that is certainly no mail, text or table."""
    if source.name == STDIN or source.is_at_server or not source.is_file:
        return
    if options.input_format == MESSAGE:
        return
    if _is_binary(source.sample):  # a mail does without what follows
        from nbspam.reading.foreign import refusal

        if error := refusal(source):
            raise error


def _is_binary(sample: bytes) -> bool:
    """Return whether there may be a format in a file that is not read."""
    first = sample[:_MAGIC]
    return not first.isascii() or b"\0" in sample[:_BLOCK] or first.startswith(_PRINTABLE)


def _kind_of(source: Source, request: ReadingRequest, ignored: frozenset[Labels]) -> SourceKind:
    """Return the kind that the user names, else the first that recognises the source."""
    if source.is_at_server:
        return _AT_SERVER
    input_format = request.options.input_format
    is_stdin = source.name == STDIN
    is_stream = is_stdin or PIPE.is_recognised(source, request.options)
    if input_format is not None and not is_stdin and source.is_folder:
        _tell_of_folder(source, request.options)
    elif input_format is not None:
        if input_format in FILE_LISTS:
            return _FILE_LIST
        from nbspam.reading.formats import format_kind

        return format_kind(input_format)
    if is_stream and request.needs_labels:
        from nbspam.reading.formats import LABELLED_STREAM

        return LABELLED_STREAM
    kinds = (STANDARD_INPUT,) if is_stdin else _kinds()
    return next(
        kind
        for kind in kinds
        if kind.labels not in ignored and kind.is_recognised(source, request.options)
    )


def _read_at_server(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    """Yield the messages of a folder at a mail server; raises AccountError."""
    options = request.options
    if options.at_server is None:
        raise AccountError(
            f"{source.name}: the library does not know the password; read it with the command line"
        )
    for name, content in options.at_server(source.name, options.seen):
        yield RawMessage(name, request.label, content)


_AT_SERVER = SourceKind(
    Labels.NEVER,
    lambda source, _: source.is_at_server,
    _read_at_server,
    "a folder at a server has no labels",
)


def _tell_of_folder(source: Source, options: ReadingOptions) -> None:
    """Tell the user that the format given is not that of a folder's files."""
    if not options.is_format_default and options.input_format != MESSAGE:
        options.tell(
            SourceError(
                f"{source.path}: is a folder, so each of its files is read as one message, not as"
                f" {options.input_format}"
            )
        )


def _read_listed(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    """Yield the messages of the files that a list names, each as if it were named itself."""
    from nbspam.reading.file_list import listed_files

    options, skips, label, _ = request
    separator = FILE_LISTS[options.input_format or ""]
    options = options._replace(input_format=None)
    for name in listed_files(source, separator, skips):
        try:
            if label is None:
                yield from any_kind(name, options, skips)
            else:
                yield from unlabelled(name, label, options, skips)
        except SourceError as error:
            if skips.strict:
                raise
            skips(name, str(error).removeprefix(f"{name}: "))


_FILE_LIST = SourceKind(
    Labels.NEVER, PIPE.is_recognised, _read_listed, "the files of a list have no labels"
)


def _unreadable(source: Source, error: OSError) -> SourceError:
    if source.name == STDIN and error.filename is None:
        return SourceError(
            f"-: standard input cannot be read ({error.strerror}); pipe a message in"
        )
    return SourceError(
        f"{error.filename or source.path}: cannot be read ({error.strerror});"
        " check its permissions and content"
    )


def existing(name: str) -> Source:
    """Return the source of that name; raises SourceError when there is no such file."""
    source = Source(name)
    if name == STDIN or source.is_at_server:
        return source
    try:
        source.mode  # noqa: B018 (looks the file up)
    except FileNotFoundError as error:
        raise SourceError(f"{source.path}: no such file or folder; check the name") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceError(
            f"{source.path}: cannot be read ({reason}); check its permissions"
        ) from error
    return source
