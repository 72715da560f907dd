"""The model in use: open all the time, and another one as soon as the file is another."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nbspam.errors import ModelError, NbspamError
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.verdict import CutOffs
from nbspam.store.index import Index
from nbspam.store.metadata import Metadata

# Tokens whose weights are remembered between messages, 20 MB of them.  Of 2,000 real mails,
# shuffled, 57 % of a mail's tokens were among them; 47 % with half as many, 73 % with three times.
_REMEMBERED = 100_000

Say = Callable[[str], None]
CutOffsOf = Callable[[Metadata], CutOffs]
_Stamp = tuple[int, ...]  # what tells one version of a file from the next


class OpenModel:
    """One version of the model file."""

    def __init__(self, path: Path, cut_offs: CutOffsOf) -> None:
        """Open it; raises NbspamError when it is no model, or cannot serve."""
        self._lookup = Index(path)
        self._users = 1  # the server itself, as long as this is the newest version
        try:
            head = self._lookup.head
            if head.positive is None:
                raise ModelError(
                    f"{path}: no class of it is spam, so it cannot answer spamc; train with"
                    " --spam-label NAME"
                )
            self.cut_offs = cut_offs(head)
            self.classifier = self.fresh_classifier()
        except BaseException:
            self.leave()
            raise

    def fresh_classifier(self) -> Classifier:
        """Return a classifier that shares nothing with another thread's but the file."""
        return Classifier(self._lookup.head, self._lookup.counts, _REMEMBERED)

    def enter(self) -> None:
        """Keep the file open until `leave`."""
        self._users += 1

    def leave(self) -> None:
        """Close the file if this was the last user."""
        self._users -= 1
        if not self._users:
            self._lookup.__exit__()


class CurrentModel:
    """The newest version of a model file that can be used; belongs to one thread."""

    def __init__(self, path: Path, cut_offs: CutOffsOf, say: Say) -> None:
        """Open the model; raises NbspamError when there is none that can be used."""
        self._path, self._cut_offs, self._say = path, cut_offs, say
        self._seen = self._stamp()
        self._model = OpenModel(path, cut_offs)

    def _stamp(self) -> _Stamp:
        """Return what changes when the file is replaced or written to; empty when it is gone.

        The number of the inode cannot come back while the version that has it is open.
        """
        try:
            found = self._path.stat()
        except OSError:
            return ()
        return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns

    def refresh(self) -> None:
        """Open the file if it is another than the last seen; keep the old one if that fails."""
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp  # a version that cannot be used is complained of once
        try:
            newer = OpenModel(self._path, self._cut_offs)
        except NbspamError as error:
            self._say(f"{error}; going on with the model as it was")
            return
        self._model.leave()
        self._model = newer

    @contextmanager
    def use(self) -> Iterator[OpenModel]:
        """Give the newest usable version, open as long as it is used."""
        self.refresh()
        model = self._model
        model.enter()
        try:
            yield model
        finally:
            model.leave()

    def close(self) -> None:
        """Close the file once nobody uses it."""
        self._model.leave()
