"""`nbspam imap watch`."""

from pathlib import Path

import click

from nbspam.cli.accounts import mail_accounts
from nbspam.cli.configured import configured
from nbspam.cli.declared import argument, option
from nbspam.cli.imap.sorting import Sorting, SortRequest, check_sorting, positive_class, sort_once
from nbspam.cli.notes import note
from nbspam.cli.options import FORM, JOBS, MODEL, QUIET, Cutting
from nbspam.errors import OptionError
from nbspam.mailbox.watch import stop_at_signals, watch


@configured("watch", check_sorting)
def command(
    *,
    accounts: tuple[str, ...] = argument("[ACCOUNT]", nargs=-1),
    model: Path = MODEL,
    cutting: Cutting,
    sorting: Sorting,
    interval: int = option(
        "Look for mail so often where the server does not announce it (IDLE).",
        "SECONDS",
        takes=click.IntRange(5, 3600),
        under="Mail",
        default=120,
    ),
    form: str = FORM,
    quiet: bool = QUIET,
    jobs: int = JOBS,
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
