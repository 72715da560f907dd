"""Working on several accounts in turn: what goes wrong with one keeps no other waiting."""

from collections.abc import Callable, Sequence

from nbspam.cli.accounts import MailAccount
from nbspam.cli.notes import REMEDIES, note
from nbspam.errors import AccountError, LockedError
from nbspam.imap.connection import Connection


def for_each(
    accounts: Sequence[MailAccount], work: Callable[[Connection, MailAccount], None]
) -> None:
    """Connect to each account and work on it.

    Raises the error of the last account that could not be used; those before it are said.
    """
    failed: list[AccountError | LockedError] = []
    for account in accounts:
        try:
            with Connection(account.account) as connection:
                work(connection, account)
        except (AccountError, LockedError) as error:
            failed.append(error)
    for each in failed[:-1]:
        note(each.sentence(REMEDIES))
    if failed:
        raise failed[-1]
