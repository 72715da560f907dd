"""Files at `https://` and `s3://` URLs, opened by fsspec.

fsspec opens more: URLs within URLs, files of this machine, memory.  These are refused, since the
author of a URL may be a stranger.  A `RemoteFile` has what readers use of `pathlib.Path`, and fails
with an OSError, as files do.
"""

import errno
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any, cast

from nbspam.errors import SourceError, needs_extra
from nbspam.reading.compression import DerivedStream

_PACKAGES = {"https": "aiohttp", "http": "aiohttp", "s3": "s3fs"}  # of each scheme
_BLOCK = 1 << 20  # bytes of one request


class RemoteFile:
    """A file at a URL; raises SourceError for a URL that may not be read."""

    def __init__(self, url: str) -> None:
        scheme, _, rest = url.partition("://")
        if scheme not in _PACKAGES or "::" in rest:
            raise SourceError(
                f"{url}: URLs of this kind cannot be read; use s3:// or https://, without a second"
                " URL in it, or copy it to a file"
            )
        self._url = url
        path = PurePosixPath(rest)
        self.name, self.suffixes = path.name, path.suffixes

    def __str__(self) -> str:
        return self._url

    def stat(self) -> os.stat_result:
        """Return its mode and size; raises OSError."""
        with _as_os_errors(self._url):
            system, path = _located(self._url)
            info = system.info(path)
        if info["type"] != "file":
            raise SourceError(f"{self._url}: is a folder; name the files in it, or copy it")
        return os.stat_result((stat.S_IFREG, 0, 0, 1, 0, 0, info.get("size") or 0, 0, 0, 0))

    def open(self, mode: str = "rb") -> io.BufferedReader:
        """Open it for reading; raises OSError, as reading does."""
        with _as_os_errors(self._url):
            system, path = _located(self._url)
            stream = system.open(path, mode, block_size=_BLOCK)
        return io.BufferedReader(_RemoteStream(self._url, stream), 1 << 16)


class _RemoteStream(DerivedStream):
    """The bytes of a file at a URL; every failure is an OSError."""

    def __init__(self, url: str, stream: Any) -> None:
        def take(n: int) -> bytes:
            with _as_os_errors(url):
                return cast("bytes", stream.read(n))

        super().__init__(take, stream)
        self._stream = stream

    def seekable(self) -> bool:
        return bool(self._stream.seekable())

    def seek(self, place: int, whence: int = 0) -> int:
        return int(self._stream.seek(place, whence))

    def tell(self) -> int:
        return int(self._stream.tell())


def _located(url: str) -> tuple[Any, str]:
    """Return fsspec's file system of a URL, and the path there; raises SourceError."""
    package = _PACKAGES[url.partition("://")[0]]
    try:
        import fsspec  # type: ignore[import-untyped]

        file = fsspec.open(url, **({} if package == "s3fs" else _same_host_only()))
    except ImportError as error:
        what = needs_extra(f"{url}: reading it", f"fsspec and {package}", "url")
        raise SourceError(what) from error
    except ValueError as error:
        raise SourceError(f"{url}: is not the URL of a file ({error}); correct it") from error
    return file.fs, file.path


class _RedirectError(OSError):
    """A web server redirects to another host."""


async def _check_redirect(_session: Any, _context: Any, redirect: Any) -> None:
    start = redirect.url
    target = start.join(type(start)(redirect.response.headers.get("Location", "")))
    is_safer = start.scheme == "http" and target.scheme == "https" and target.port == 443
    if target.host != start.host or not (target.origin() == start.origin() or is_safer):
        raise _RedirectError(errno.EIO, f"the server redirects to another, {target.origin()}")


def _same_host_only() -> dict[str, Any]:
    """Return the options with which fsspec follows no redirect to another host."""
    from aiohttp import TraceConfig

    trace = TraceConfig()
    trace.on_request_redirect.append(_check_redirect)
    return {"client_kwargs": {"trace_configs": [trace]}}


@contextmanager
def _as_os_errors(url: str) -> Iterator[None]:
    """Raise what fails at a URL as an OSError that names it."""
    try:
        yield
    except (ValueError, SourceError):
        raise
    except Exception as error:
        cause = error.__cause__
        # fsspec reports a server that does not answer as a file that does not exist.
        is_lost = type(cause).__module__.startswith("aiohttp") and not hasattr(cause, "status")
        if isinstance(cause, _RedirectError) or is_lost:
            error = cast("Exception", cause)
        elif isinstance(error, FileNotFoundError):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), url) from error
        reason = "" if is_lost else getattr(error, "strerror", None)
        reason = reason or " ".join(str(error).split())[:200] or type(error).__name__
        raise OSError(errno.EIO, reason, url) from error
