"""A model for each user, opened when his mail comes; some of them stay open.

Who has no model of his own has the base model's verdict, and so has who has taught his only a few
messages: it would block or miss more than the base.  A model that cannot be used is its user's
trouble alone: his requests fail, and spamc hands on his mail as it was.
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nbspam.filter import CutOffsOf
from nbspam.serving.current import CurrentModel, Keeping, OpenModel
from nbspam.serving.user_files import Stamp, UserFiles
from nbspam.store.index import IndexLayout
from nbspam.store.model_file import open_model_file

# Of each: weights of 1,000 tokens, some 200 KB, and an index of the file.
_KEEPING = Keeping(1_000, IndexLayout(entries=1 << 11, in_memory=0))
# Messages of each class from which on a user's own model judges.  P7's errors of 3,023 (docs/
# benchmarks.md): 1337 with one of each, 432 with five, 419 with ten, 181 with 20, 93 with 50.
ENOUGH = 20
OPEN_MODELS = 100  # users' models that stay open, of all workers


def open_user_model(path: Path, cut_offs: CutOffsOf) -> OpenModel:
    """Open a user's model; raises NbspamError.

    Whatever a user's model is to stand on (a base model beneath it) comes in here, and nowhere
    else.
    """
    return OpenModel(path, cut_offs, _KEEPING, open_model_file(path, follows_links=False))


class UserModels:
    """The newest versions of users' models above the base model; for use by one thread."""

    def __init__(
        self, base: CurrentModel, files: UserFiles, cut_offs: CutOffsOf, most: int = OPEN_MODELS
    ) -> None:
        """most: how many of them stay open."""
        self._base, self._files, self._cut_offs, self._most = base, files, cut_offs, most
        self._open: OrderedDict[Path, tuple[Stamp, OpenModel]] = OrderedDict()

    @property
    def n_unusable(self) -> int:
        """Whether the base model's file cannot be used: 1 or 0."""
        return self._base.n_unusable

    @property
    def n_open(self) -> int:
        """How many users' models are open."""
        return len(self._open)

    @contextmanager
    def use(self, user: str = "") -> Iterator[OpenModel]:
        """Give the newest version of a user's model, or the base; keeps it open while it is used.

        Raises NbspamError: the user's model cannot be used.
        """
        own = self._own(user) if user else None
        if own is None or min(own.filter.metadata.learned.messages) < ENOUGH:
            with self._base.use() as base:
                yield base
            return
        own.enter()
        try:
            yield own
        finally:
            own.filter.classifier.trim()
            own.leave()

    def _own(self, user: str) -> OpenModel | None:
        """Return a user's own model, None if there is none; raises NbspamError."""
        path = self._files.path(user)
        if path is None:
            return None
        stamp = self._files.stamp(path)
        if path in self._open:
            before, model = self._open[path]
            if before == stamp:
                self._open.move_to_end(path)
                return model
            self._close(path)
        if not stamp:
            return None
        model = open_user_model(path, self._cut_offs)
        self._open[path] = stamp, model
        while len(self._open) > self._most:
            self._close(next(iter(self._open)))
        return model

    def _close(self, path: Path) -> None:
        _, model = self._open.pop(path)
        model.leave()

    def refresh(self) -> None:
        """Open the base model's newest version; a user's is opened with his next mail."""
        self._base.refresh()

    def close(self) -> None:
        """Close all files once they are no longer used."""
        for path in list(self._open):
            self._close(path)
        self._base.close()
