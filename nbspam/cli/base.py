"""The option --base, and the model that it names."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from nbspam.cli.options import FileName

if TYPE_CHECKING:
    from nbspam.scoring.base import Base
    from nbspam.scoring.open_base import OpenBase

base_option = click.option(
    "--base",
    type=FileName(readable=False),
    envvar="NBSPAM_BASE",
    metavar="FILE",
    help="Put this shared model beneath the model: it counts as much as the model's own messages"
    " leave to it. [default: $NBSPAM_BASE, or none]",
)


@contextlib.contextmanager
def opened_base(base: str | None, indexed: bool = True) -> "Iterator[OpenBase | None]":
    """Give the open base, None without one; raises ModelError.

    indexed: False for one message, which is looked up fastest without an index.
    """
    if base is None:
        yield None
        return
    from nbspam.scoring.open_base import OpenBase  # which a model without a base does without

    with OpenBase(base, indexed) as opened:
        yield opened


def base_of(opened: "OpenBase | None") -> "Base | None":
    """Return an open base as learning takes it."""
    return None if opened is None else opened.base
