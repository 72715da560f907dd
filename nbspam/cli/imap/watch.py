"""`nbspam imap watch`."""

from pathlib import Path

import click

from nbspam.cli.accounts import mail_accounts
from nbspam.cli.configured import ConfiguredCommand, checked
from nbspam.cli.cut_off_options import Cutting, cut_off_options
from nbspam.cli.imap.sorting import (
    Sorting,
    SortRequest,
    check_sorting,
    positive_class,
    sort_once,
    sorting_options,
)
from nbspam.cli.notes import note
from nbspam.cli.options import (
    format_option,
    jobs_option,
    model_option,
    quiet_option,
)
from nbspam.errors import OptionError
from nbspam.mailbox.watch import stop_at_signals, watch


@click.command("watch", cls=ConfiguredCommand)
@click.argument("accounts", nargs=-1, metavar="[ACCOUNT]")
@model_option
@cut_off_options
@sorting_options
@click.option(
    "--interval",
    type=click.IntRange(5, 3600),
    default=120,
    show_default=True,
    metavar="SECONDS",
    help="Look for mail so often where the server does not announce it (IDLE).",
)
@format_option
@quiet_option
@jobs_option
@checked(check_sorting)
def command(
    accounts: tuple[str, ...],
    model: Path,
    cutting: Cutting,
    sorting: Sorting,
    interval: int,
    form: str,
    quiet: bool,
    jobs: int,
) -> None:
    """Filter the mail of an account as it comes, until SIGTERM or SIGINT.

    It does what nbspam imap filter does whenever the server announces mail in the first folder,
    and every four minutes.  When the connection is lost it connects again, after 5 seconds at
    first and 15 minutes at most.  A wrong password ends it.

    \b
    Examples:
      nbspam imap watch home
      nbspam imap watch home --learn --trust-after 7d
    """
    named = mail_accounts(accounts)
    if len(named) > 1:
        raise OptionError(
            f"one account is watched at a time, and there are {len(named)}; name one of"
            f" {', '.join(account.name for account in named)}, and start another for each other"
        )
    [account] = named
    if not sorting.learn:
        positive_class(model)
    request = SortRequest(model, cutting, sorting, jobs, form, quiet)
    with stop_at_signals() as stop:
        watch(
            account.account,
            account.folders[0],
            lambda connection: sort_once(connection, account, request, stop.is_asked),
            stop,
            interval,
            note,
        )
