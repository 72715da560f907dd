"""Models at URLs: read as a whole copy, and put in one step.

An object store replaces an object when all of the new one has come, so that who reads meanwhile
has the old one or the new one; HDFS renames.  There is no lock: the last to write wins.
"""

import os
from collections.abc import Callable
from tempfile import TemporaryFile
from typing import IO

from nbspam.errors import ModelError, NbspamError, Remedy
from nbspam.reading.remote import put_file, remote_path

_CHUNK = 1 << 20
_WRITTEN = ("s3", "s3a", "gs", "gcs", "hdfs")  # schemes of which each replaces a file in one step


def fetched(url: str) -> int:
    """Return a descriptor of a copy of a model; raises ModelError."""
    try:
        with TemporaryFile() as copy, remote_path(url).open("rb") as model:
            while piece := model.read(_CHUNK):
                copy.write(piece)
            copy.seek(0)
            return os.dup(copy.fileno())
    except FileNotFoundError:
        raise ModelError(f"{url}: there is no such model", Remedy.CREATE_MODEL, path=url) from None
    except OSError as error:
        raise ModelError(
            f"{url}: the model cannot be read ({error.strerror}); check its name and permissions"
        ) from error
    except NbspamError as error:
        raise ModelError(error.problem, error.remedy, **error.values) from None


def put_remote(url: str, write: Callable[[IO[bytes]], None]) -> None:
    """Put what `write` writes at a URL, in one step; raises ModelError.

    Whatever happens on the way, what was there stays whole.
    """
    scheme = url.partition("://")[0]
    if scheme not in _WRITTEN:
        raise ModelError(
            f"{url}: a model cannot be written to {scheme}://; write it to s3://, gs:// or hdfs://,"
            " or to a file"
        )
    try:
        put_file(url, write)
    except OSError as error:
        raise ModelError(
            f"{url}: cannot be written ({error.strerror}); the model that was there is unchanged;"
            " check its permissions and run it again"
        ) from error
