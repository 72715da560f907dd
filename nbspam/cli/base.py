"""The option --base, and the model that it names."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from nbspam.cli.options import FileName

if TYPE_CHECKING:
    from nbspam.scoring.base import Base

base_option = click.option(
    "--base",
    type=FileName(readable=False),
    envvar="NBSPAM_BASE",
    metavar="FILE",
    help="Read the model through this shared one, whose counts are added to its own."
    " [default: $NBSPAM_BASE, or none]",
)


@contextlib.contextmanager
def opened_base(base: str | None, indexed: bool = True) -> "Iterator[Base | None]":
    """Give the open base, None without one; raises ModelError.

    indexed: False for one message, which is looked up fastest without an index.
    """
    if base is None:
        yield None
        return
    from nbspam.scoring.base import Base  # which a model without a base does without

    with Base.open(base, indexed) as opened:
        yield opened
