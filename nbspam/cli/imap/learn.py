"""`nbspam imap learn`."""

from pathlib import Path

from nbspam.cli.accounts import MailAccount, mail_accounts
from nbspam.cli.configured import configured
from nbspam.cli.imap.each_account import for_each
from nbspam.cli.imap.teaching import (
    ACCOUNTS,
    JUNK,
    TRUST_AFTER,
    LearnOptions,
    junk_of,
    learn_folders,
    seconds_of,
)
from nbspam.cli.notes import lock_wait
from nbspam.cli.options import FORM, JOBS, MODEL, QUIET
from nbspam.imap.connection import Connection
from nbspam.mailbox.memory import opened_memory


def _check(trust_after: str | None) -> None:
    """Raise OptionError for a time that is none."""
    seconds_of(trust_after)


@configured("learn", _check)
def command(
    *,
    accounts: tuple[str, ...] = ACCOUNTS,
    model: Path = MODEL,
    junk: str | None = JUNK,
    trust_after: str | None = TRUST_AFTER,
    form: str = FORM,
    quiet: bool = QUIET,
    jobs: int = JOBS,
) -> None:
    """Learn the junk folder as spam, and the mail that was read in other folders as ham.

    ACCOUNT is as in nbspam imap filter.  The folders of ham are the account's, ham = ["INBOX",
    "Archive"] in the config file, else those that are filtered.

    Each message is learned once.  One that you moved into the junk folder or out of it is moved in
    the model.  What nbspam itself moved there teaches nothing until you have seen it there, or
    --trust-after has passed: so it does not learn its own errors.

    If there is no model, one is trained, as by nbspam train.

    Exit status: 0 on success, 1 on an error, 2 when the command line is wrong, 75 when the server
    is away or another run is at work on the account for too long: try again later.

    \b
    Examples:
      nbspam imap learn home
      nbspam imap learn --trust-after 7d -q
    """
    teacher = LearnOptions(model, seconds_of(trust_after), jobs, form, quiet)

    def learn(connection: Connection, account: MailAccount) -> None:
        found = junk_of(account, connection, junk)
        with opened_memory(account.account, lock_wait(quiet)) as memory:
            learn_folders(connection, account, memory, found, teacher)

    for_each(mail_accounts(accounts), learn)
