"""Files at URLs (`s3://`, `gs://`, `hdfs://`, `https://`), as far as sources are read from them.

fsspec opens them.  It knows more: URLs within URLs, files of this machine, memory; these are
refused, since a URL may come from somebody else.  A `RemotePath` behaves as `pathlib.Path` does, so
that every kind of source can be at a URL; what fails is an OSError, as with files.
"""

import errno
import io
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePosixPath
from tempfile import NamedTemporaryFile
from typing import IO, Any, NamedTuple, cast

from nbspam.errors import SourceError, install_command
from nbspam.reading.compression import Taken

_CHUNK = 1 << 20


def remote_path(url: str) -> Path:
    """Return what behaves like the path of a URL; raises SourceError without what opens it."""
    return cast("Path", RemotePath(url))


def put_file(url: str, write: Callable[[IO[bytes]], None]) -> None:
    """Put what `write` writes at a URL, in one step; raises OSError, what is there then stays."""
    with NamedTemporaryFile(prefix="nbspam-") as file:
        write(file)
        file.flush()
        with _failures(url):
            system = _system(url)
            folder, _, name = url.rpartition("/")
            new = f"{folder}/.{name}.new" if url.startswith("hdfs://") else url
            system.put_file(file.name, new)
            if new != url:
                system.mv(new, url)


class _Status(NamedTuple):
    st_mode: int
    st_size: int


_FOLDER = _Status(stat.S_IFDIR | 0o555, 0)


class RemotePath:
    """A file or folder at a URL."""

    def __init__(self, url: str, found: dict[str, Any] | None = None) -> None:
        """Name it; found: what a listing says of it."""
        self._url, self._found = url, found
        path = PurePosixPath(url.partition("://")[2])
        self.name, self.suffixes = path.name, path.suffixes

    def __str__(self) -> str:
        return self._url

    def __fspath__(self) -> str:
        return self._url

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and other._url == self._url

    def __hash__(self) -> int:
        return hash(self._url)

    def __reduce__(self) -> tuple[object, ...]:
        return RemotePath, (self._url,)

    def __truediv__(self, name: str) -> "RemotePath":
        return RemotePath(f"{self._url.rstrip('/')}/{name}")

    @property
    def parent(self) -> "RemotePath":
        """The folder that it is in."""
        scheme, _, path = self._url.partition("://")
        return RemotePath(f"{scheme}://{PurePosixPath(path).parent}")

    def resolve(self) -> "RemotePath":
        """Return it as it is: there are no links."""
        return self

    def is_symlink(self) -> bool:
        """Return False: there are no links."""
        return False

    def stat(self) -> _Status:
        """Return its type and size; raises OSError."""
        if self._found is None:
            with _failures(self._url):
                self._found = _system(self._url).info(self._url)
        if self._found["type"] == "directory":
            return _FOLDER
        return _Status(stat.S_IFREG | 0o444, int(self._found.get("size") or 0))

    def exists(self) -> bool:
        """Return whether there is such a file or folder."""
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    def is_dir(self) -> bool:
        """Return whether it is a folder."""
        return self.exists() and self.stat() == _FOLDER

    def is_file(self) -> bool:
        """Return whether it is a file."""
        return self.exists() and self.stat() != _FOLDER

    def iterdir(self) -> Iterator["RemotePath"]:
        """Yield what is in a folder; raises OSError."""
        with _failures(self._url):
            entries = _system(self._url).ls(self._url, detail=True)
        own = self._url.partition("://")[2].strip("/")
        for found in entries:
            name = str(found["name"]).rpartition("://")[2].strip("/")
            if name != own:  # whatever a server lists, it is beneath
                yield RemotePath(str(self / name.rpartition("/")[2]), found)

    def open(self, mode: str = "rb") -> io.BufferedReader:
        """Open its bytes for reading; raises OSError, as reading does."""
        with _failures(self._url):
            file = _system(self._url).open(self._url, mode, block_size=_CHUNK)
        return io.BufferedReader(_Remote(self._url, file), 1 << 16)


class _Remote(Taken):
    """An open file at a URL whose failures are all OSErrors."""

    def __init__(self, url: str, file: Any) -> None:
        def take(n: int) -> bytes:
            with _failures(url):
                return cast("bytes", file.read(n))

        super().__init__(take, file)
        self._url, self._file = url, file

    def seekable(self) -> bool:
        return bool(self._file.seekable())

    def seek(self, place: int, whence: int = 0) -> int:
        with _failures(self._url):
            return int(self._file.seek(place, whence))

    def tell(self) -> int:
        return int(self._file.tell())


@contextmanager
def _failures(url: str) -> Iterator[None]:
    """Raise what goes wrong at a URL as an OSError that names it."""
    try:
        yield
    except OSError as error:
        if isinstance(error, FileNotFoundError) and (reason := _unreached(error.__cause__)):
            raise ConnectionError(errno.EHOSTUNREACH, reason, url) from error
        reason = error.strerror or " ".join(str(error).split()) or type(error).__name__
        raise type(error)(error.errno or 5, reason, url) from error
    except (ValueError, SourceError):
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise OSError(5, reason, url) from error


def _unreached(cause: BaseException | None) -> str:
    """Return why a web server was not asked at all, or not to the end; "" if it was.

    To fsspec a file is not there, too, when its server is not.
    """
    if isinstance(cause, _RedirectError):
        return str(cause)
    if not type(cause).__module__.startswith("aiohttp") or hasattr(cause, "status"):
        return ""
    return " ".join(str(cause).split())


class _RedirectError(OSError):
    """A web server names another one in its place."""


@cache
def _options(scheme: str) -> dict[str, Any]:
    """Return what fsspec is to do: of a web server, to go to no other."""
    if not scheme.startswith("http"):
        return {}
    from aiohttp import TraceConfig

    async def check(_: Any, __: Any, redirect: Any) -> None:
        start = redirect.url
        target = start.join(type(start)(redirect.response.headers.get("Location", "")))
        is_safer = start.scheme == "http" and target.scheme == "https" and target.port == 443
        if target.host != start.host or not (target.origin() == start.origin() or is_safer):
            raise _RedirectError(5, f"the server redirects to another, {target.origin()}")

    trace = TraceConfig()
    trace.on_request_redirect.append(check)
    return {"client_kwargs": {"trace_configs": [trace]}}


# Of each scheme that may be read, what opens it.
_PACKAGES = {
    **dict.fromkeys(("https", "http"), "aiohttp"),
    **dict.fromkeys(("s3", "s3a"), "s3fs"),
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    "hdfs": "pyarrow",
}


def _system(url: str) -> Any:
    """Return fsspec's file system of a URL; raises SourceError if it may not or cannot be read."""
    scheme, _, rest = url.partition("://")
    if scheme not in _PACKAGES or "::" in rest:
        raise SourceError(
            f"{url}: URLs of this kind cannot be read; use s3://, gs://, hdfs:// or https://,"
            " without a second URL in it, or copy it to a file"
        )
    try:
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]

        return url_to_fs(url, **_options(scheme))[0]
    except ImportError as error:
        package = _PACKAGES[scheme]
        raise SourceError(
            f"{url}: reading it needs fsspec and {package}; install them with:"
            f" {install_command(f'fsspec {package}')}"
        ) from error
    except ValueError as error:
        raise SourceError(f"{url}: is not the URL of a file ({error}); correct it") from error
