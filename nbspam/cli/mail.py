"""`nbspam mail`: the mail of IMAP accounts and Maildirs."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import click

from nbspam.cli import notes, options
from nbspam.cli.accounts import Place, find_junk_folder, mail_places, make_class_movers
from nbspam.cli.command import LazyGroup, argument, command, flag, option, rare_flag, section
from nbspam.cli.learning_options import LabelTally
from nbspam.cli.progress import progress
from nbspam.cli.train import ModelFileOptions, Training, train_whole
from nbspam.errors import AccountError, LockedError, OptionError, format_count, one_line
from nbspam.filter import open_filter
from nbspam.learning import update
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.update import Change, PendingMessages
from nbspam.mailbox.account import SCHEME, time_limit
from nbspam.mailbox.connection import JUNK_KEYWORDS
from nbspam.mailbox.memory import Memory, lock_state
from nbspam.mailbox.moves import Mailbox, Mover
from nbspam.mailbox.sorting import (
    MailFilter,
    MessagesToLearn,
    Stop,
    expand_patterns,
    open_mailbox,
    watch,
)
from nbspam.names import HAM, SPAM, TAUGHT_AS_HAM, UNSURE
from nbspam.reading.message import RawMessage
from nbspam.reading.source import Skips
from nbspam.scoring.verdict import Verdict, rounded
from nbspam.scoring.version import classify_messages
from nbspam.store.lookup import Lookup
from nbspam.tokens.tokenized import TokenizedMessage
from nbspam.workers import PIECE_LIMITS, batch_messages, make_executor, tokenize_messages

_FILES = {
    "filter": ("mail:filter_", "Classify new mail and move spam to the junk folder"),
    "learn": ("mail:learn_", "Learn the junk folder as spam, other read mail as ham"),
    "watch": ("mail:watch_", "Filter mail as it arrives"),
}
_MAX_FOR_ONE_PROCESS = 20  # messages; with fewer, a single process is faster
_KEYWORD = re.compile(r"[$A-Za-z0-9_.+-]{1,60}")
_UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_NO_CUT_OFFS = options.CutOffOptions(*[None] * 4)
_NEW_MODEL = ModelFileOptions(
    update=True,
    replace=False,
    ledger=True,
    dry_run=False,
    seen=False,
    verbose=False,
    max_ham_blocked=None,
)


@click.group("mail", cls=LazyGroup, files=_FILES)
def mail() -> None:
    """Filter the mail of IMAP accounts and Maildirs, and learn from it.

    A PLACE is a Maildir, such as ~/Maildir, or an account, imaps://USER@HOST, whose password is
    asked for.  The config file, ~/.config/nbspam/config.toml, can describe both:

    \b
      [mail.local]
      maildir = "~/Maildir"                  # or a folder of Maildirs, as mbsync makes it

    \b
      [mail.home]
      host = "mail.example.org"
      user = "hal"
      password-command = "pass show mail"    # or password-file, token-command
      folders = ["INBOX"]                    # to filter
      ham = ["INBOX", "Lists/*"]             # to learn as ham what was read there
      junk = "Spam"                          # if the server marks no folder \\Junk
      tls = "starttls"                       # if the server has no port 993

    An account needs imapclient: pip install 'nbspam[imap]'.  docs/mail.md has recipes for cron and
    systemd.
    """


# Options


_JUNK = option(
    "--junk",
    metavar="FOLDER",
    help="The folder for spam. [default: the folder that the config file names, else the folder"
    " that the server marks as \\Junk, else the folder called Junk or Spam]",
)


def _parse_duration(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """Parse a duration such as 7d into seconds; raises OptionError."""
    if text is None:
        return None
    if not (duration := re.fullmatch(r"(\d{1,6})\s?([mhdw])", text)):
        raise OptionError(f"--trust-after {text!r} is not a time; try 7d or 12h")
    return float(duration[1]) * _UNITS[duration[2]]


_TRUST_AFTER = option(
    advanced=True,
    metavar="TIME",
    callback=_parse_duration,
    requires="--learn",
    help="Learn a message that nbspam moved to the junk folder after this time (7d, 12h)."
    " [default: once it was seen there]",
)
_ACCOUNTS = argument("accounts", metavar="[PLACE]...", nargs=-1)


@section("Mail")
class SortOptions(NamedTuple):
    """The options for sorting mail."""

    learn: bool = flag(help="Learn first, as nbspam mail learn does, then filter.")
    junk: str | None = _JUNK
    mark: bool = flag(help="Set the keyword $Junk on spam instead of moving it.")
    unsure_keyword: str | None = option(metavar="NAME", help="Set this keyword on unsure messages.")
    trust_after: float | None = _TRUST_AFTER
    move_taught: bool = rare_flag(help="Also move messages that were taught as ham.")


class Request(NamedTuple):
    """The options of one run that filters or learns."""

    model: Path
    jobs: int
    form: str
    quiet: bool
    is_dry_run: bool = False
    is_first: bool = True  # the first round of `watch`, which prints the notes on the model


class Sorting(NamedTuple):
    """The options of a run that filters."""

    cut_off_options: options.CutOffOptions
    sort_options: SortOptions
    senders: options.SenderOptions
    judges_all: bool = False


def check_sorting(cut_off_options: options.CutOffOptions, sort_options: SortOptions) -> None:
    """Raise OptionError for options that are wrong with any account."""
    cut_off_options.check()
    keyword = sort_options.unsure_keyword
    if keyword is not None and not _KEYWORD.fullmatch(keyword):
        raise OptionError(
            f"--unsure-keyword {keyword!r} is not an IMAP keyword; choose letters, digits and"
            " hyphens, such as Unsure"
        )


# Commands


@command("filter", heading="Mail")
def filter_(
    *,
    accounts: tuple[str, ...] = _ACCOUNTS,
    model: Path = options.MODEL,
    cut_off_options: options.CutOffOptions,
    sort_options: SortOptions,
    senders: options.SenderOptions,
    dry_run: bool = flag(help="Print each verdict, and change nothing."),
    judges_all: bool = flag(
        "judges_all", "--all", help="Classify all mail of the folders, not only new mail."
    ),
    form: str = options.FORM,
    quiet: bool = options.QUIET,
    jobs: int = options.JOBS,
) -> None:
    """Classify the mail that arrived since the last run, and move spam to the junk folder.

    PLACE is a Maildir, imaps://USER@HOST, or the name of a table [mail.NAME] in the config file.
    Without one, all places of the config file are filtered.

    Ham and unsure messages stay untouched.  No message becomes read.  The first run classifies the
    unread mail of a folder.  A message that you move back from the junk folder stays there.  A
    message that the model has learned as ham also stays, unless --move-taught is given.

    No message is lost, whatever happens.  The next run completes the work of a killed run, and
    tries refused messages again.

    Exit status: 0 on success, 1 if nothing worked, 2 when the command line is wrong, 75 when the
    server is unreachable or another run works on the account for too long: try again later.

    \b
    Examples:
      nbspam mail filter ~/Maildir --dry-run
      nbspam mail filter imaps://hal@mail.example.org --dry-run
      nbspam mail filter home --learn -q
      nbspam mail filter home --spam-cutoff 0.99 --unsure-keyword Unsure
      nbspam mail filter --mark --format json
    """
    check_sorting(cut_off_options, sort_options)
    request = Request(model, jobs, form, quiet, dry_run)
    sorting = Sorting(cut_off_options, sort_options, senders, judges_all)
    named = _places(accounts, senders)
    if not sort_options.learn or dry_run:
        _read_classes(
            model, print_notes=True, quiet=quiet
        )  # raises without a model, before connecting
    _for_each(named, lambda connection: _sort(connection, request, sorting, lambda: False), dry_run)


@command("learn", heading="Mail")
def learn_(
    *,
    accounts: tuple[str, ...] = _ACCOUNTS,
    model: Path = options.MODEL,
    junk: str | None = _JUNK,
    trust_after: float | None = _TRUST_AFTER,
    dry_run: bool = rare_flag(
        help="Print the messages that would be learned, and those that look like another class;"
        " change nothing."
    ),
    form: str = options.FORM,
    quiet: bool = options.QUIET,
    jobs: int = options.JOBS,
) -> None:
    """Learn the junk folder as spam, and read mail of other folders as ham.

    PLACE is as in nbspam mail filter.  The config file names the folders of ham (ham = ["INBOX",
    "Archive"]); otherwise they are the filtered folders.

    Each message is learned once.  A message that you move into or out of the junk folder is moved
    to the other class.  A message that nbspam itself moved to the junk folder is not learned until
    you have seen it there, or the time of --trust-after has passed, so that nbspam does not learn
    its own errors.  The keywords $Junk, Junk, $NotJunk, NotJunk and NonJunk, which mail programs
    set, overrule the folder, and your move out of the junk folder overrules these keywords.

    Without a model, it trains a model as nbspam train does.

    Exit status: 0 on success, 1 on an error, 2 when the command line is wrong, 75 when the server
    is unreachable or another run works on the account for too long: try again later.

    \b
    Examples:
      nbspam mail learn home
      nbspam mail learn --trust-after 7d -q
    """
    request = Request(model, jobs, form, quiet, dry_run)
    if dry_run:
        Lookup(model).close()  # raises without a model

    def learn_from(connection: Mailbox) -> None:
        found = find_junk_folder(connection, junk)
        with ExitStack() as stack:
            stack.callback(_report_skips, connection)
            wait = notes.lock_wait(quiet)
            place = stack.enter_context(lock_state(connection.account.state, wait))
            _learn_folders(connection, Memory(place), found, request, trust_after)

    _for_each(mail_places(accounts), learn_from, dry_run)


@command("watch", heading="Mail")
def watch_(
    *,
    accounts: tuple[str, ...] = argument("accounts", metavar="[PLACE]", nargs=-1),
    model: Path = options.MODEL,
    cut_off_options: options.CutOffOptions,
    sort_options: SortOptions,
    senders: options.SenderOptions,
    interval: int = option(
        advanced=True,
        metavar="SECONDS",
        type=click.IntRange(5, 3600),
        default=120,
        help="How often to ask a server that does not announce new mail (IDLE).",
    ),
    form: str = options.FORM,
    quiet: bool = options.QUIET,
    jobs: int = options.JOBS,
) -> None:
    """Filter the mail of a place as it arrives, until SIGTERM or SIGINT.

    This does the work of nbspam mail filter whenever mail arrives in the first folder, and every
    four minutes.  A lost connection is made again, first after 5 seconds, later after up to 15
    minutes.  A wrong password ends the command.

    \b
    Examples:
      nbspam mail watch home
      nbspam mail watch home --learn --trust-after 7d
    """
    check_sorting(cut_off_options, sort_options)
    named = _places(accounts, senders)
    if len(named) > 1:
        raise OptionError(
            f"one place is watched at a time, and there are {len(named)}; name one of"
            f" {', '.join(place.label for place in named)}, and watch the others in other runs"
        )
    if not sort_options.learn:
        _read_classes(model, print_notes=True, quiet=quiet)
    request = Request(model, jobs, form, quiet)
    sorting = Sorting(cut_off_options, sort_options, senders)
    with Stop() as stop:

        def sort(connection: Mailbox) -> None:
            nonlocal request
            try:
                with time_limit(connection.account.name):
                    _sort(connection, request, sorting, lambda: stop.is_requested)
            except update.OlderRulesError as error:  # an older model still filters
                if request.is_first:
                    notes.note(str(error))
            request = request._replace(is_first=False)

        watch(named[0], sort, stop, interval, notes.note)


def _places(names: Sequence[str], senders: options.SenderOptions) -> list[Place]:
    """Return the places to filter; raises OptionError, also for the places' lists of senders."""
    places = mail_places(names)
    for place in places:
        senders.lists(place.auth_host)
    return places


def _for_each(accounts: Sequence[Place], work: Callable[[Mailbox], None], is_dry_run: bool) -> None:
    """Connect to each place and work on it; a failure at one place does not stop the others.

    Raises the last failure; earlier ones are printed.
    """
    failure = None
    for account in accounts:
        try:
            with time_limit(account.name), open_mailbox(account, is_dry_run) as connection:
                work(connection)
        except (AccountError, LockedError, update.OlderRulesError) as error:
            if failure:
                notes.note(str(failure))
            failure = error
    if failure:
        raise failure


# Filtering


def _read_classes(
    model: Path, *, print_notes: bool, quiet: bool = True
) -> tuple[str, tuple[str, ...]]:
    """Return the spam class and the other classes of a model; raises OptionError and ModelError.

    print_notes: print a note on missing messages.  quiet: print no note on old rules.
    """
    with Lookup(model) as lookup:
        metadata = lookup.metadata
    if metadata.settings.positive is None:
        raise OptionError(
            f"{model}: has no class that counts as spam; name it with train --spam-label"
        )
    if print_notes:
        notes.note_one_class(model, metadata)
    if not quiet:
        notes.note_older(model, metadata)
    positive = metadata.settings.positive
    return positive, tuple(name for name in metadata.settings.classes if name != positive)


def _sort(
    connection: Mailbox, request: Request, sorting: Sorting, should_stop: Callable[[], bool]
) -> None:
    """Learn if --learn is given, classify and move new mail, and print what was done.

    Raises OlderRulesError at the end if the model cannot learn.
    """
    account, sort_options = connection.account, sorting.sort_options
    senders = sorting.senders.lists(account.auth_host)
    junk = find_junk_folder(connection, sort_options.junk)

    def classify(raws: Iterable[RawMessage], number: int) -> Iterator[Verdict]:
        """Yield the verdicts; opens the model here, after it has learned new mail."""
        if not number:
            return
        use_processes = number > _MAX_FOR_ONE_PROCESS
        with open_filter(
            request.model, sorting.cut_off_options.for_model, senders=senders
        ) as spam_filter:
            workers = make_executor(request.jobs if use_processes else 1)
            with progress(request.quiet or not use_processes, [SCHEME]) as with_progress:
                find_taught = not sort_options.move_taught
                version = spam_filter.version
                found = classify_messages(raws, Skips(), workers, version, find_taught=find_taught)
                for message in with_progress(found):
                    yield message.verdict

    learns, refusal = sort_options.learn and not request.is_dry_run, None
    with ExitStack() as stack:
        stack.callback(_report_skips, connection)
        place = stack.enter_context(lock_state(account.state, notes.lock_wait(request.quiet)))
        memory = Memory(place)
        if learns:
            try:
                _learn_folders(connection, memory, junk, request, sort_options.trust_after)
            except update.OlderRulesError as error:  # an older model still filters
                refusal = error
        mover = Mover(connection, memory, junk)
        folders = expand_patterns(connection, account.folders, junk)
        positive, others = _read_classes(request.model, print_notes=request.is_first and learns)
        mail = MailFilter(
            mover,
            classify,
            should_stop,
            folders,
            positive,
            is_dry_run=request.is_dry_run,
            mark_only=sort_options.mark,
            unsure_keyword=sort_options.unsure_keyword,
            classify_all=sorting.judges_all,
            on_note=notes.note,
            class_movers={} if sort_options.mark else make_class_movers(mover, folders, others),
        )
        for folder in mail.folders:
            if not (request.quiet or sorting.judges_all or folder in memory.folders):
                notes.note(
                    f"{account.name}: {folder}: the first run classifies only unread mail;"
                    " nbspam mail filter --all classifies all of it"
                )
        _print_sorted(mail, request)
    if refusal:
        raise refusal


def _report_skips(connection: Mailbox) -> None:
    """Print the items that were left out, and clear them."""
    for line in connection.skips.report()[1:]:
        notes.note(f"{connection.account.name}: left out {line.strip()}")
    connection.skips = Skips()


def _print_sorted(mail: MailFilter, request: Request) -> None:
    """Filter the folders; print the outcomes, then a line for each folder."""
    account, junk = mail.mover.connection.account, one_line(mail.mover.junk)
    numbers: Counter[tuple[str, str]] = Counter()
    try:
        for outcome in mail.run():
            verdict = outcome.verdict
            kind = TAUGHT_AS_HAM if verdict.reason == TAUGHT_AS_HAM else verdict.verdict
            if outcome.action == "kept" and kind in (mail.positive, *mail.class_movers):
                kind = ""  # the server or the disk did not move it
            numbers[outcome.folder, kind] += 1
            if request.form == "json":
                place = {"account": account.label, "folder": outcome.folder, "uid": outcome.uid}
                action = {"action": outcome.action, "done": not mail.is_dry_run}
                click.echo(json.dumps(place | verdict.as_json() | action))
            elif mail.is_dry_run:
                fields = verdict.as_line().split("\t")
                click.echo("\t".join([*fields[:2], outcome.heading, *fields[2:]]))
        if mail.without_keyword and request.is_first and not request.quiet:
            notes.note(
                f"{account.name}: {', '.join(map(one_line, mail.without_keyword))}: spam is moved"
                f" without a keyword: there is no {' or '.join(JUNK_KEYWORDS)} to set; set it once"
                " with a mail program, or leave keywords out"
            )
    finally:  # also printed for a run that failed
        if request.form != "json" and not request.quiet:
            would = "would be " if mail.is_dry_run else ""
            what = f"moved to {junk}"
            if mail.mark_only:
                what = f"marked {mail.positive}"
            elif mail.mover.leaves_deleted:
                what = (
                    f"copied to {junk} and marked \\Deleted here (the server can neither move nor"
                    " remove single messages)"
                )
            for folder in mail.folders:
                kinds = (mail.positive, UNSURE, TAUGHT_AS_HAM)
                spam, unsure, taught = (numbers[folder, kind] for kind in kinds)
                if total := sum(n for (place, _), n in numbers.items() if place == folder):
                    kept = f", {taught:,} {would}kept ({TAUGHT_AS_HAM})" if taught else ""
                    if n := numbers[folder, ""]:
                        kept += f", {n:,} left where {'it is' if n == 1 else 'they are'}"
                    for name, mover in mail.class_movers.items():
                        if n := numbers[folder, name]:
                            kept += f", {n:,} {name} {would}moved to {one_line(mover.junk)}"
                    click.echo(
                        f"{account.name}: {one_line(folder)}: classified"
                        f" {format_count(total, 'message')}, {spam:,} {would}{what}, {unsure:,}"
                        f" unsure{kept}"
                    )


# Learning


def _learn_folders(
    connection: Mailbox, memory: Memory, junk: str, request: Request, trust_after: float | None
) -> None:
    """Learn the new mail of the account's folders, and print the change.

    Without a model, and with mail of both classes, it trains on all messages at once, as `nbspam
    train` does.
    """
    model, quiet, is_new = request.model, request.quiet, not request.model.exists()
    defaults, labels = TrainingSettings(), (SPAM, HAM)
    outputs = defaults.outputs
    if not is_new:
        with update.open_for_learning(model) as lookup:
            settings = lookup.metadata.settings
        others = [name for name in settings.classes if name != settings.positive]
        if settings.positive is None or (len(others) != 1 and HAM not in others):
            raise OptionError(
                f"{model}: has the classes {', '.join(settings.classes)}, and the folders are of"
                " spam and ham; name another model, or learn with nbspam train --label"
                " NAME=imaps://…"
            )
        outputs, labels = settings.outputs, (settings.positive, HAM if HAM in others else others[0])
    lessons = MessagesToLearn(connection, memory, junk, labels, trust_after)
    workers, tally, wait = make_executor(request.jobs), LabelTally(), notes.lock_wait(quiet)
    withheld: list[str] = []

    def learn_each(messages: Iterable[TokenizedMessage]) -> PendingMessages:
        nonlocal withheld
        pending = PendingMessages(outputs)
        pending.is_presumed = lessons.is_presumed
        pending.add(messages, model)
        change = Change()
        if request.is_dry_run or pending.occurrences:
            dry_run = request.is_dry_run
            change = update.learn(model, pending, defaults, wait=wait, dry_run=dry_run)
        withheld = [lesson.source for lesson in change.surprising if not lesson.learned]
        # A message that the user moved always looks like the class where it was before.
        surprising = tuple(
            lesson._replace(source=lessons.sender_and_subject(lesson.source))
            for lesson in change.surprising
            if not lessons.is_correction(lesson.source)
        )
        change = change._replace(surprising=surprising)
        _print_change(change, lessons.unconfirmed, junk, connection.account, request)
        return pending

    if is_new:
        options.make_default_folder(model)
        memory.learned.clear()  # because the model that learned them is gone
        training = Training(
            model, defaults, _NO_CUT_OFFS, _NEW_MODEL, request.form, quiet, Skips(), wait, tally
        )
        train_whole(
            workers,
            batch_messages(lessons.messages(), *PIECE_LIMITS),
            [SCHEME],
            training,
            learn_each,
        )
    else:
        found = tokenize_messages(
            lessons.messages(), Skips(), workers, True, outputs, skip_empty=True
        )
        with progress(quiet, [SCHEME]) as with_progress:
            pending = learn_each(with_progress(found))
        tally.note_shared_messages(*pending.messages_in_two_classes(), quiet, strict=False)
    if not request.is_dry_run:
        lessons.commit(withheld)
    connection.check()


def _print_change(
    change: Change, waiting: int, junk: str, account: Place, request: Request
) -> None:
    if request.form == "json":
        fields: dict[str, object] = {"account": account.label, "model": str(request.model)}
        click.echo(json.dumps(rounded({**fields, **notes.change_json(change), "waiting": waiting})))
        return

    def remedy(_: list[str], learned: bool) -> str:
        if learned:
            return f"move them into {junk}, or out of it, and learn again"
        return "mark each as not junk (the keyword $NotJunk), and learn again"

    notes.note_surprising(change, request.quiet, remedy, request.is_dry_run)
    if not request.quiet and (change.learned or change.moved or waiting):
        more = ""
        if waiting:
            more = (
                f"; not learning from {format_count(waiting, 'message')} that nbspam moved; open"
                f" them in {one_line(junk)} first"
            )
        would = "would have " if request.is_dry_run else ""
        click.echo(f"{account.name}: {would}{notes.change_words(change)}{more}")
