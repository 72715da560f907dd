"""Learning while serving: in a thread of its own, all that has come in at once with one save."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple


class Lesson(NamedTuple):
    """A message to learn, or to forget."""

    message: bytes
    label: str | None  # "spam" or "ham"; None: forget it


# Learns some lessons in order, and returns of each whether it changed anything; raises NbspamError.
Learn = Callable[[list[Lesson]], list[bool]]


class Learner:
    """Takes lessons one by one and learns them together.

    A save rewrites the model, whose size does not depend on how much was learned: what arrives
    during a save waits for the next, and then shares it.
    """

    def __init__(self, learn: Learn) -> None:
        self._learn = learn
        self._lessons: list[tuple[Lesson, asyncio.Future[bool]]] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="learner")
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, lesson: Lesson) -> bool:
        """Return whether the lesson changed the model, once that is on the disk."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[bool] = loop.create_future()
        self._lessons.append((lesson, done))
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._go_on())
        return await done

    async def _go_on(self) -> None:
        loop = asyncio.get_running_loop()
        while self._lessons:
            batch, self._lessons = self._lessons, []
            lessons = [lesson for lesson, _ in batch]
            try:
                changed = await loop.run_in_executor(self._thread, self._learn, lessons)
            except Exception as error:  # noqa: BLE001 (each client is told)
                for _, done in batch:
                    if not done.done():
                        done.set_exception(error)
                continue
            for (_, done), new in zip(batch, changed, strict=True):
                if not done.done():
                    done.set_result(new)

    async def close(self) -> None:
        """Finish what was begun."""
        if self._task is not None:
            await self._task
        self._thread.shutdown()
