"""Many inputs, few cases: to pytest a case costs more than most of ours take."""

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def each(names: str, values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test with each of the values, as `pytest.mark.parametrize` does, but in one case.

    All are tried.  The first failure is shown, with what was given, and what else failed.  Each has
    a `tmp_path` of its own; other fixtures are shared.
    """
    parameters = [name.strip() for name in names.split(",")]
    rows = [dict(zip(parameters, row if parameters[1:] else (row,), strict=True)) for row in values]
    assert rows, "nothing to try"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def tried(**fixtures: Any) -> None:
            failures = []
            for number, row in enumerate(rows):
                mine = dict(fixtures)
                if "tmp_path" in mine:
                    mine["tmp_path"] /= f"each{number}"
                    mine["tmp_path"].mkdir()
                try:
                    test(**mine, **row)
                except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001 (raised below)
                    failures.append((failure, f"{row!r:.300}"))
            if failures:
                (first, given), *others = failures
                first.add_note("\n".join([f"given {given}", *(f"and {row}" for _, row in others)]))
                raise first

        signature = inspect.signature(test)
        left = [p for p in signature.parameters.values() if p.name not in parameters]
        tried.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return tried

    return decorate
