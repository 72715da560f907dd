"""The room of large messages: never more than it has, first come first served, and nothing lost."""

import asyncio
import random

import pytest

from nbspam.serving.limits import Deadlines, Limits
from nbspam.serving.room import Room
from nbspam.serving.spamd import TEMPORARY, RefusedError


def in_room(size, scene, **limits):
    """Run a scene with a room of `size` bytes; all of it must be free at the end."""

    async def main():
        bounds = Limits(**limits)
        deadlines = Deadlines(bounds.timeout)
        room = Room(size, bounds, deadlines)
        await scene(room, deadlines)
        await asyncio.wait_for(room.take(size), 1)

    asyncio.run(main())


def test_a_large_message_is_not_overtaken():
    async def scene(room, _):
        order = []

        async def visit(n):
            await room.take(n)
            order.append(n)

        await room.take(90)
        tasks = []
        for n in (80, 5, 6):
            tasks.append(asyncio.create_task(visit(n)))
            await asyncio.sleep(0.001)
        assert order == []  # 5 would fit
        room.free(90)
        await asyncio.gather(*tasks)
        assert order == [80, 5, 6]
        for n in order:
            room.free(n)

    in_room(100, scene)


def test_who_waits_for_too_long_is_refused_and_the_next_goes_on():
    async def scene(room, _):
        await room.take(50)
        first = asyncio.create_task(room.take(60))
        await asyncio.sleep(0.02)
        second = asyncio.create_task(room.take(40))
        with pytest.raises(RefusedError, match="no room") as refused:
            await first
        assert refused.value.code == TEMPORARY
        await asyncio.wait_for(second, 1)
        room.free(40)
        room.free(50)

    in_room(100, scene, timeout=0.05)


def test_too_many_are_refused_at_once():
    async def scene(room, _):
        await room.take(10)
        waiting = [asyncio.create_task(room.take(95)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(RefusedError, match="too many"):
            await room.take(1)
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        room.free(10)

    in_room(100, scene, connections=3)


def test_a_client_that_has_room_and_is_slow_makes_room():
    async def scene(room, deadlines):
        async def silent():
            await room.take(100)
            try:
                async with deadlines.limit(holds_room=True):
                    await asyncio.sleep(50)
            finally:
                room.free(100)

        async def busy():
            async with deadlines.limit(holds_room=True) as wait:
                for _ in range(20):
                    await asyncio.sleep(0.01)
                    wait.progress(1 << 20)

        async def without_room():
            async with deadlines.limit():
                await asyncio.sleep(0.2)

        slow = asyncio.create_task(silent())
        others = [asyncio.create_task(busy()), asyncio.create_task(without_room())]
        await asyncio.sleep(0.12)
        assert not slow.done()  # nobody waits
        await asyncio.wait_for(room.take(10), 2)
        with pytest.raises(TimeoutError):
            await slow
        await asyncio.gather(*others)
        room.free(10)

    in_room(100, scene, grace=0.06, timeout=60)


def test_room_that_is_freed_in_the_moment_of_a_cancellation_is_not_lost():
    async def scene(room, _):
        await room.take(100)
        leaving = asyncio.create_task(room.take(100))
        staying = asyncio.create_task(room.take(100))
        await asyncio.sleep(0)
        leaving.cancel()
        room.free(100)
        await asyncio.wait_for(staying, 1)
        with pytest.raises(asyncio.CancelledError):
            await leaving
        room.free(100)

    in_room(100, scene)


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(5))
def test_whoever_leaves_leaves_nothing_behind(seed):
    chance = random.Random(seed)
    held = 0

    async def scene(room, _):
        async def visit():
            nonlocal held
            n = chance.randrange(1, 100)
            await asyncio.sleep(chance.random() / 20)
            await room.take(n)
            held += n
            assert held <= 100
            try:
                await asyncio.sleep(chance.random() / 50)
            finally:
                held -= n
                room.free(n)

        tasks = [asyncio.create_task(visit()) for _ in range(60)]
        for task in chance.sample(tasks, 25):
            await asyncio.sleep(chance.random() / 100)
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert {type(one) for one in results} <= {type(None), asyncio.CancelledError}

    in_room(100, scene)
