"""`nbspam imap filter`."""

from pathlib import Path

from nbspam.cli.accounts import mail_accounts
from nbspam.cli.configured import configured
from nbspam.cli.declared import DECIDES, option
from nbspam.cli.imap.each_account import for_each
from nbspam.cli.imap.sorting import Sorting, SortRequest, check_sorting, positive_class, sort_once
from nbspam.cli.imap.teaching import ACCOUNTS
from nbspam.cli.options import FORM, JOBS, MODEL, QUIET, Cutting


@configured("filter", check_sorting)
def command(
    *,
    accounts: tuple[str, ...] = ACCOUNTS,
    model: Path = MODEL,
    cutting: Cutting,
    sorting: Sorting,
    dry_run: bool = option("Print each verdict, and change nothing.", under="Mail", typed=DECIDES),
    judges_all: bool = option(
        "Judge all mail of the folders, not only new mail.", "--all", under="Mail", typed=DECIDES
    ),
    form: str = FORM,
    quiet: bool = QUIET,
    jobs: int = JOBS,
) -> None:
    """Judge the mail that has come since the last run, and move spam to the junk folder.

    ACCOUNT is the name of a table [imap.NAME] in the config file, or imaps://USER@HOST, whose
    password is asked for.  Without one, all accounts of the config file are filtered.

    Ham and unsure messages stay untouched.  No message becomes read.  The first run judges the
    unread mail of a folder; every other run what has come since.  What you move back from the junk
    folder stays where you put it, and so does what the model has learned as ham, whatever its
    verdict; --move-taught moves that, too.

    A message is in exactly one folder whatever happens.  It is moved by MOVE; where the server does
    not have that, by COPY, and removed by its UID (UIDPLUS); where it has neither, the message
    stays, marked as deleted.  A run that was killed is ended by the next one.

    Exit status: 0 on success, 1 on an error, 2 when the command line is wrong, 75 when the server
    is away or another run is at work on the account for too long: try again later.

    \b
    Examples:
      nbspam imap filter imaps://hal@mail.example.org --dry-run
      nbspam imap filter home --learn -q
      nbspam imap filter home --spam-cutoff 0.99 --unsure-keyword Unsure
      nbspam imap filter --mark --format json
    """
    request = SortRequest(model, cutting, sorting, jobs, form, quiet, dry_run, judges_all)
    named = mail_accounts(accounts)
    if not sorting.learn or dry_run:
        positive_class(model)  # without a model there is no reason to connect
    for_each(named, lambda connection, account: sort_once(connection, account, request))
