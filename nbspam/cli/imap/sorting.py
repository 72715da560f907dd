"""What the commands of `nbspam imap` share: options, judging, learning, and what they print."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from nbspam.cli.accounts import MailAccount
from nbspam.cli.declared import DECIDES, option, section
from nbspam.cli.imap.teaching import (
    JUNK,
    TRUST_AFTER,
    LearnOptions,
    junk_of,
    learn_folders,
    seconds_of,
)
from nbspam.cli.notes import lock_wait, note, note_one_sided, note_young
from nbspam.cli.options import Cutting
from nbspam.cli.progress import progress
from nbspam.errors import OptionError, counted, one_line
from nbspam.filter import classified, open_filter
from nbspam.imap.address import SCHEME
from nbspam.imap.connection import Connection
from nbspam.labels import UNSURE
from nbspam.mailbox.filtering import FilterPlan, Judge, MailFilter, SortedMessage
from nbspam.mailbox.memory import Memory, opened_memory
from nbspam.mailbox.taught import TAUGHT_AS_HAM, classified_with_ledger
from nbspam.reading.raw_message import RawMessage
from nbspam.reading.skips import Skips
from nbspam.scoring.verdict import Verdict
from nbspam.store.lookup import Lookup
from nbspam.workers import executor

# Messages for which neither an index of the tokens nor processes pay.
_FEW = 20
_KEYWORD = re.compile(r"[$A-Za-z0-9_.+-]{1,60}")


@section("Mail")
class Sorting(NamedTuple):
    """How mail is sorted."""

    junk: str | None = JUNK
    mark: bool = option("Set the keyword $Junk on spam in place of moving it.", typed=DECIDES)
    unsure_keyword: str | None = option("Set this keyword on messages that are unsure.", "NAME")
    learn: bool = option(
        "Learn first, as nbspam imap learn does, then filter.",
        enables="--trust-after",
        typed=DECIDES,
    )
    trust_after: str | None = TRUST_AFTER
    move_taught: bool = option("Move messages that were taught as ham, too.")

    def check(self) -> None:
        """Raise OptionError for what cannot be, whatever the account."""
        if self.unsure_keyword is not None and not _KEYWORD.fullmatch(self.unsure_keyword):
            raise OptionError(
                f"--unsure-keyword {self.unsure_keyword!r} is not a keyword of IMAP; take letters,"
                " digits and hyphens, such as Unsure"
            )
        if self.trust_after is not None and not self.learn:
            raise OptionError("--trust-after goes with --learn alone; add that or leave it out")
        seconds_of(self.trust_after)


def check_sorting(cutting: Cutting, sorting: Sorting) -> None:
    """Raise OptionError for cut-offs and options that cannot be, whatever the account."""
    cutting.check()
    sorting.check()


class SortRequest(NamedTuple):
    """What one run of a command was asked for."""

    model: Path
    cutting: Cutting
    sorting: Sorting
    jobs: int
    form: str
    quiet: bool
    is_dry_run: bool = False
    judges_all: bool = False


def positive_class(model: Path) -> str:
    """Return the class that is moved as spam; raises OptionError and ModelError."""
    with Lookup(model) as lookup:
        metadata = lookup.metadata
    if metadata.settings.positive is None:
        raise OptionError(
            f"{model}: has no class that counts as spam; name it with train --spam-label"
        )
    note_one_sided(model, metadata)
    note_young(model, metadata)
    return metadata.settings.positive


def judge_with(request: SortRequest) -> Judge:
    """Return what judges messages with the model as it is by then."""
    model, cutting = request.model, request.cutting

    def judge(raws: Iterable[RawMessage], number: int) -> Iterator[Verdict]:
        if not number:
            return
        is_many = number > _FEW
        with open_filter(model, cutting.of, indexed=is_many) as spam_filter:
            where = executor(request.jobs if is_many else 1)
            with progress(request.quiet or not is_many, [SCHEME]) as shown:
                if request.sorting.move_taught:
                    found = classified(raws, Skips(), where, spam_filter)
                else:
                    found = classified_with_ledger(raws, where, spam_filter)
                for message in shown(found):
                    yield message.verdict

    return judge


def sort_once(
    connection: Connection,
    account: MailAccount,
    request: SortRequest,
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Learn if that was asked for, then judge and sort what has come; prints what was done."""
    junk = junk_of(account, connection, request.sorting.junk)
    with opened_memory(account.account, lock_wait(request.quiet)) as memory:
        if request.sorting.learn and not request.is_dry_run:
            teacher = LearnOptions(
                request.model,
                seconds_of(request.sorting.trust_after),
                request.jobs,
                request.form,
                request.quiet,
            )
            learn_folders(connection, account, memory, junk, teacher)
        positive = positive_class(request.model)
        folders = tuple(connection.named(name) for name in account.folders)
        plan = FilterPlan(
            folders,
            junk,
            positive,
            request.is_dry_run,
            request.sorting.mark,
            request.sorting.unsure_keyword,
            request.judges_all,
        )
        if not (request.quiet or request.judges_all):
            note_first(account, folders, memory)
        mail_filter = MailFilter(connection, memory, judge_with(request), plan, is_over)
        _print_outcomes(mail_filter, account, plan, request)


def note_first(account: MailAccount, folders: Sequence[str], memory: Memory) -> None:
    """Say that only unread mail of a folder is judged at the first run."""
    for folder in folders:
        if not memory.is_known(folder):
            note(
                f"{account.account.name}: {folder}: the first run judges its unread mail alone;"
                " nbspam imap filter --all judges all of it"
            )


def _print_outcomes(
    mail_filter: MailFilter, account: MailAccount, plan: FilterPlan, request: SortRequest
) -> None:
    numbers: Counter[tuple[str, str]] = Counter()
    try:
        for outcome in mail_filter.run():
            kind = outcome.verdict.verdict
            kind = kind if kind in (plan.positive, UNSURE) else "other"
            kind = TAUGHT_AS_HAM if outcome.verdict.reason == TAUGHT_AS_HAM else kind
            numbers[outcome.folder, kind] += 1
            if request.form == "json":
                click.echo(json.dumps(_as_json(account, outcome, plan)))
            elif request.is_dry_run:
                click.echo(outcome.verdict.as_line())
    finally:  # of a run that fails, too: what was done is done
        if request.form != "json" and not request.quiet:
            for folder in plan.folders:
                if sentence := _summary(numbers, folder, plan, mail_filter.leaves_deleted):
                    click.echo(f"{account.account.name}: {one_line(folder)}: {sentence}")


def _summary(
    numbers: Counter[tuple[str, str]], folder: str, plan: FilterPlan, leaves_deleted: bool
) -> str:
    """Return what was done in a folder; nothing if no mail of it was judged."""
    total = sum(n for (name, _), n in numbers.items() if name == folder)
    if not total:
        return ""
    would = "would be " if plan.is_dry_run else ""
    if plan.is_marked:
        what = f"{would}marked {plan.positive}"
    elif leaves_deleted:
        what = (
            f"{would}copied to {one_line(plan.junk)} and marked \\Deleted here (the server can"
            " neither move nor remove single messages)"
        )
    else:
        what = f"{would}moved to {one_line(plan.junk)}"
    spam, unsure = numbers[folder, plan.positive], numbers[folder, UNSURE]
    taught = numbers[folder, TAUGHT_AS_HAM]
    kept = f", {taught:,} {would}kept ({TAUGHT_AS_HAM})" if taught else ""
    return f"judged {counted(total, 'message')}, {spam:,} {what}, {unsure:,} unsure{kept}"


def _as_json(account: MailAccount, outcome: SortedMessage, plan: FilterPlan) -> dict[str, Any]:
    fields = {"account": account.name, "folder": outcome.folder, "uid": outcome.uid}
    fields |= outcome.verdict.as_json()
    fields["action"] = outcome.action
    fields["done"] = not plan.is_dry_run
    return fields
