"""A model for each user, opened when their mail comes; some of them stay open.

A user's model is read through the common one (`scoring/base.py`), from its first message on; users
without a model get the common model's verdict.  A model that cannot be used is its user's trouble
alone: their requests fail, and spamc outputs their mail as it was.
"""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nbspam.filter import CutOffsOf
from nbspam.serving.current import CurrentModel, Keeping, OpenModel
from nbspam.serving.user_files import Stamp, UserFiles
from nbspam.store.index import IndexLayout
from nbspam.store.lookup import open_model_file

# Of each: weights of 1,000 tokens, some 200 KB, and an index of the file.
_KEEPING = Keeping(1_000, IndexLayout(entries=1 << 11, in_memory=0))
OPEN_MODELS = 100  # users' models that stay open, of all workers


def open_user_model(path: Path, cut_offs: CutOffsOf, common: OpenModel) -> OpenModel:
    """Open a user's model, which is read through the common one; raises NbspamError."""
    handle = open_model_file(path, follows_links=False)
    return OpenModel(path, cut_offs, _KEEPING, handle, common)


class UserModels:
    """The newest versions of users' models beside the common one; for use by one thread."""

    def __init__(
        self, common: CurrentModel, files: UserFiles, cut_offs: CutOffsOf, most: int = OPEN_MODELS
    ) -> None:
        """common: opened as a base.  most: how many of them stay open."""
        self._common, self._files, self._cut_offs, self._most = common, files, cut_offs, most
        self._open: OrderedDict[Path, tuple[Stamp, OpenModel]] = OrderedDict()

    @property
    def n_unusable(self) -> int:
        """Whether the common model's file cannot be used: 1 or 0."""
        return self._common.n_unusable

    @property
    def n_open(self) -> int:
        """How many users' models are open."""
        return len(self._open)

    @contextmanager
    def use(self, user: str = "") -> Iterator[OpenModel]:
        """Give the newest version of a user's model, or the common one; it stays open meanwhile.

        Raises NbspamError: the user's model cannot be used.
        """
        with self._common.use() as common:
            own = self._own(user, common) if user else None
            if own is None:
                yield common
                return
            own.enter()
        try:
            yield own
        finally:
            own.filter.classifier.trim()
            own.leave()

    def _own(self, user: str, common: OpenModel) -> OpenModel | None:
        """Return a user's own model, None if there is none; raises NbspamError."""
        path = self._files.path(user)
        if path is None:
            return None
        stamp = self._files.stamp(path)
        if path in self._open:
            before, model = self._open[path]
            if before == stamp and model.base is common:
                self._open.move_to_end(path)
                return model
            self._close(path)
        if not stamp:
            return None
        model = open_user_model(path, self._cut_offs, common)
        self._open[path] = stamp, model
        while len(self._open) > self._most:
            self._close(next(iter(self._open)))
        return model

    def _close(self, path: Path) -> None:
        _, model = self._open.pop(path)
        model.leave()

    def refresh(self) -> None:
        """Open the common model's newest version; a user's is opened with their next mail."""
        self._common.refresh()

    def close(self) -> None:
        """Close all files once they are no longer used."""
        for path in list(self._open):
            self._close(path)
        self._common.close()
