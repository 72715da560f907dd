"""A folder at an IMAP server, as a source: `imaps://USER@HOST/FOLDER`.

It is opened with EXAMINE and read with PEEK, so that nothing changes in it.
"""

from collections.abc import Iterator

from nbspam.errors import AccountError
from nbspam.imap.address import FolderAddress, parse_address
from nbspam.imap.connection import Connection, SelectedFolder
from nbspam.reading.message import BYTES_LIMIT
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.source_kind import Labels, ReadingOptions, ReadingRequest, Source, SourceKind

READ = ("SEEN", "UNDELETED")  # what a search asks for


def _is_imap_folder(source: Source, _: ReadingOptions) -> bool:
    return source.is_at_server


def _read_imap_folder(source: Source, request: ReadingRequest) -> Iterator[RawMessage]:
    """Yield the messages of a folder, or the one that the address names; raises AccountError."""
    address = parse_address(source.name)
    if not address.folder:
        raise AccountError(
            f"{source.name}: names no folder; add one, such as {source.name.rstrip('/')}/INBOX"
        )
    if request.options.account is None:
        raise AccountError(
            f"{source.name}: the library does not know the password; read it with the command line"
        )
    with Connection(request.options.account(address)) as connection:
        folder = connection.select(address.folder, readonly=True)
        address = address._replace(folder=folder.name)
        for message in connection.messages(
            _wanted(connection, folder, address, request.options.seen), BYTES_LIMIT
        ):
            yield RawMessage(address.message(message.uid), request.label, message.content)


def _wanted(
    connection: Connection, folder: SelectedFolder, address: FolderAddress, only_read: bool
) -> list[int]:
    criteria = READ if only_read else ("ALL",)
    if address.uid is None:
        return connection.search(folder, criteria)
    found = connection.existing([address.uid], *criteria)
    if not found:
        raise AccountError(
            f"{address.message(address.uid)}: there is no such message; take a name that nbspam"
            " classify prints"
        )
    return found


IMAP_FOLDER = SourceKind(
    Labels.NEVER, _is_imap_folder, _read_imap_folder, "a folder at a server has no labels"
)
