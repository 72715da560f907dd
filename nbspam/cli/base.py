"""The option --base, and the model that it names."""

import contextlib
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


def opened_base(
    base: str | None, indexed: bool = True
) -> "contextlib.AbstractContextManager[Base | None]":
    """Give the open base, None without one, for learning; indexed: as of `open_base`."""
    if base is None:
        return contextlib.nullcontext()
    from nbspam.scoring.base import open_base  # which a model without a base does without

    return open_base(base, indexed)
