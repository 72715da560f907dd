"""The files that commands write beside what they print: none that they read, and no model."""

import contextlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from nbspam.cli.command import is_typed
from nbspam.cli.notes import note
from nbspam.display.tables import FORMS, TableWriter, VerdictTable, form_of, opened
from nbspam.errors import OptionError, SourceError
from nbspam.reading.cutting import SourcePiece
from nbspam.reading.message import RawMessage
from nbspam.reading.source import STDIN, LiveInput, Skipped
from nbspam.store.model_file import is_model_like

TABLES = ("csv", "tsv", "jsonl")  # values of --format

A = TypeVar("A", bound=RawMessage | Skipped | SourcePiece)


class OutputFiles:
    """The files to write beside what is read, of which none may be lost.

    All that is read is compared with them, by device and inode, so that neither a link nor another
    path leads around that.
    """

    def __init__(self, files: Mapping[str, Path | None]) -> None:
        """Take the files by the options that name them; raises SourceError for one named twice."""
        self._files: dict[_Identity, tuple[str, Path]] = {}
        for option, path in files.items():
            if path is not None:
                other, _ = self._files.setdefault(_identity(path), (option, path))
                if other != option:
                    raise SourceError(
                        f"{option} {path}: {other} writes to the same file; name another file"
                    )

    def check(self, sources: Iterable[str], model: Path | None) -> None:
        """Raise SourceError if a file is a model or one of the sources, and would be lost.

        model: that is read, if one is.
        """
        if model is not None:
            self._refuse(model, "the model")
        for source in sources:
            self._refuse(0 if source == STDIN else source, "a source")
        for identity, (option, path) in self._files.items():
            if isinstance(identity, tuple) and is_model_like(path):  # a pipe is not opened
                raise _lost(option, path, "a model")

    def guarded(self, raws: Iterable[A]) -> Iterator[A]:
        """Yield messages or pieces; raises SourceError at one that is in a file to write.

        So what a folder or an index names is guarded too.
        """
        last = ""
        for raw in raws:
            for name in _files_of(raw) if self._files else ():
                if name != last:
                    self._refuse(name, "a source")
                    last = name
            yield raw

    def _refuse(self, name: Path | str | int, what: str) -> None:
        identity = _identity(name)
        if isinstance(identity, tuple) and identity in self._files:
            raise _lost(*self._files[identity], what)


def _files_of(raw: RawMessage | Skipped | SourcePiece) -> tuple[str, ...]:
    if isinstance(raw, Skipped):
        return ()
    if not isinstance(raw, RawMessage):
        return raw.files
    name = raw.source
    if isinstance(raw.content, str | bytes):  # `path:line` or `path:number`
        name = name.rpartition(":")[0] or name
    return (name,)


def _lost(option: str, path: Path, what: str) -> SourceError:
    return SourceError(f"{option} {path}: is {what}, and would be lost; name another file")


_Identity = tuple[int, int] | str  # device and inode of a regular file; the path of any other


def _identity(path: Path | str | int) -> _Identity:
    """Return which file a path or descriptor is."""
    with contextlib.suppress(OSError, ValueError):
        status = os.stat(path)  # noqa: PTH116 (a descriptor has no Path)
        if stat.S_ISREG(status.st_mode):
            return status.st_dev, status.st_ino
    return os.path.realpath(str(path))


# The table of `classify`


@contextlib.contextmanager
def verdict_table(
    output: Path | None,
    form: str,
    keeps_formulas: bool,
    read: tuple[Sequence[str], str],
    live: LiveInput,
) -> Iterator[VerdictTable]:
    """Open the table that `classify` writes, in a file or to standard output.

    form: the value of --format; if it was not given, the ending of the file decides.
    read: names of the sources and the model, which must not be the output.
    live: rows are flushed when no more input is there.
    Raises OptionError for options that do not go together, SourceError, and ModelError.
    """
    path = None if output == Path(STDIN) else output
    if path is not None and not is_typed("form"):
        form = form_of(path)
    elif form not in TABLES:
        raise OptionError(
            "--output and --keep-formulas are for tables; add --format csv, or leave them out"
        )
    elif path is not None and path.suffix.lower()[1:] in {*FORMS} - {form}:
        raise OptionError(f"--output {path}: is not for --format {form}; leave out one of them")
    if keeps_formulas and form not in ("csv", "tsv"):
        raise OptionError("--keep-formulas is for a CSV or a TSV; leave it out")
    files = OutputFiles({"--output": path})
    files.check(read[0], Path(read[1]))
    with opened(path) if path else contextlib.nullcontext(sys.stdout.buffer) as file:
        table = VerdictTable(TableWriter(file, form, keeps_formulas, note), live.would_block)
        table.guarded = files.guarded
        yield table
        table.close()
