"""`nbspam mail`: the mail of IMAP accounts and Maildirs."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click

from nbspam.cli import notes, options
from nbspam.cli.accounts import Place, mail_places
from nbspam.cli.command import LazyGroup, argument, command, flag, option, rare_flag, section
from nbspam.cli.progress import progress
from nbspam.cli.train import ClassSizes, Training, Writing, train_whole
from nbspam.errors import AccountError, LockedError, OptionError, Remedy, counted, one_line
from nbspam.filter import classified, open_filter
from nbspam.learning import update
from nbspam.learning.settings import TrainingSettings
from nbspam.learning.update import Change, PendingMessages
from nbspam.mailbox.account import SCHEME
from nbspam.mailbox.connection import JUNK_KEYWORDS, resolve_folder
from nbspam.mailbox.maildir import Maildir
from nbspam.mailbox.memory import Memory, lock_state
from nbspam.mailbox.moves import Mailbox, Mover
from nbspam.mailbox.sorting import Lessons, MailFilter, Stop, expand_patterns, open_mailbox, watch
from nbspam.names import HAM, SPAM, TAUGHT_AS_HAM, UNSURE
from nbspam.reading.message import RawMessage
from nbspam.reading.source import Skips
from nbspam.scoring.verdict import Verdict, rounded
from nbspam.store.lookup import Lookup
from nbspam.tokens.tokenized import TokenizedMessage
from nbspam.workers import PIECE, executor, in_batches, tokenized

_FILES = {
    "filter": ("mail:filter_", "Classify new mail and move spam to the junk folder"),
    "learn": ("mail:learn_", "Learn the junk folder as spam, other read mail as ham"),
    "watch": ("mail:watch_", "Filter mail as it arrives"),
}
# Up to so many messages, one process is faster.
_FEW = 20
_KEYWORD = re.compile(r"[$A-Za-z0-9_.+-]{1,60}")
_UNITS = {"m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_NO_CUT_OFFS = options.Cutting(None, None, None)
_NEW = Writing(True, False, True, False, False, verbose=False, max_ham_blocked=None)


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
      junk = "Spam"                          # if the server marks none as \\Junk
      tls = "starttls"                       # if port 993 is not there

    An account needs imapclient: pip install 'nbspam[imap]'.  docs/mail.md has recipes for cron and
    systemd.
    """


# Options


_JUNK = option(
    "--junk",
    metavar="FOLDER",
    help="The folder for spam. [default: the one that the config file names, or the server marks as"
    " \\Junk, or that is called Junk or Spam]",
)


def _seconds(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """Return the seconds of a duration such as 7d; raises OptionError."""
    if text is None:
        return None
    duration = re.fullmatch(r"(\d{1,6})\s?([mhdw])", text)
    if not duration:
        raise OptionError(f"--trust-after {text!r} is not a time; try 7d or 12h")
    return float(duration[1]) * _UNITS[duration[2]]


_TRUST_AFTER = option(
    seldom=True,
    metavar="TIME",
    callback=_seconds,
    needs="--learn",
    help="Learn what nbspam moved to the junk folder once it has been there this long (7d, 12h)."
    " [default: once it was seen there]",
)
_ACCOUNTS = argument("accounts", metavar="[PLACE]...", nargs=-1)


@section("Mail")
class Sorting(NamedTuple):
    """How mail is sorted."""

    learn: bool = flag(help="Learn first, as nbspam mail learn does, then filter.")
    junk: str | None = _JUNK
    mark: bool = flag(help="Set the keyword $Junk on spam instead of moving it.")
    unsure_keyword: str | None = option(metavar="NAME", help="Set this keyword on unsure messages.")
    trust_after: float | None = _TRUST_AFTER
    move_taught: bool = rare_flag(help="Also move messages that were taught as ham.")


class Request(NamedTuple):
    """The options of one run."""

    model: Path
    cutting: options.Cutting
    sorting: Sorting
    jobs: int
    form: str
    quiet: bool
    is_dry_run: bool = False
    judges_all: bool = False
    senders: options.SenderOptions = options.SenderOptions((), (), (), False)
    is_first: bool = True  # round of `watch`: what a model lacks is said once


def check_sorting(cutting: options.Cutting, sorting: Sorting) -> None:
    """Raise OptionError for options that are wrong with any account."""
    cutting.check()
    keyword = sorting.unsure_keyword
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
    cutting: options.Cutting,
    sorting: Sorting,
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
    unread mail of a folder.  A message that you move back from the junk folder stays where you put
    it, and so does one that the model has learned as ham, whatever its verdict; --move-taught moves
    that too.

    Each message is in exactly one folder whatever happens, and the next run completes one that was
    killed.

    Exit status: 0 on success, 1 on an error, 2 when the command line is wrong, 75 when the server
    is unreachable or another run works on the account for too long: try again later.

    \b
    Examples:
      nbspam mail filter ~/Maildir --dry-run
      nbspam mail filter imaps://hal@mail.example.org --dry-run
      nbspam mail filter home --learn -q
      nbspam mail filter home --spam-cutoff 0.99 --unsure-keyword Unsure
      nbspam mail filter --mark --format json
    """
    check_sorting(cutting, sorting)
    request = Request(model, cutting, sorting, jobs, form, quiet, dry_run, judges_all, senders)
    named = _places(accounts, senders)
    if not sorting.learn or dry_run:
        _classes(model, True, quiet)  # without a model there is no reason to connect
    _for_each(named, lambda connection: _sort(connection, request, lambda: False), dry_run)


@command("learn", heading="Mail")
def learn_(
    *,
    accounts: tuple[str, ...] = _ACCOUNTS,
    model: Path = options.MODEL,
    junk: str | None = _JUNK,
    trust_after: float | None = _TRUST_AFTER,
    dry_run: bool = rare_flag(
        help="Say what would be learned, and what looks like another class; change nothing."
    ),
    form: str = options.FORM,
    quiet: bool = options.QUIET,
    jobs: int = options.JOBS,
) -> None:
    """Learn the junk folder as spam, and read mail of other folders as ham.

    PLACE is as in nbspam mail filter.  The config file names the folders of ham (ham = ["INBOX",
    "Archive"]); otherwise they are those that are filtered.

    Each message is learned once.  One that you move into or out of the junk folder is moved in the
    model.  A message that nbspam itself moved there is not learned until you have seen it there, or
    --trust-after has passed, so that nbspam does not learn its own errors.  The keywords $Junk and
    Junk, $NotJunk and NonJunk, which mail programs set, say more than the folder.

    If there is no model, one is trained, as by nbspam train.

    Exit status: 0 on success, 1 on an error, 2 when the command line is wrong, 75 when the server
    is unreachable or another run works on the account for too long: try again later.

    \b
    Examples:
      nbspam mail learn home
      nbspam mail learn --trust-after 7d -q
    """
    sorting = Sorting(True, junk, False, None, trust_after, False)
    request = Request(model, _NO_CUT_OFFS, sorting, jobs, form, quiet, dry_run)
    if dry_run:
        Lookup(model).close()  # raises without a model

    def learn_from(connection: Mailbox) -> None:
        found = _junk_folder(connection, junk)
        with lock_state(connection.account.state, notes.lock_wait(quiet)) as place:
            _learn_folders(connection, Memory(place), found, request)
        notes.note_skips(connection.skips)

    _for_each(mail_places(accounts), learn_from, dry_run)


@command("watch", heading="Mail")
def watch_(
    *,
    accounts: tuple[str, ...] = argument("accounts", metavar="[PLACE]", nargs=-1),
    model: Path = options.MODEL,
    cutting: options.Cutting,
    sorting: Sorting,
    senders: options.SenderOptions,
    interval: int = option(
        seldom=True,
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

    It does what nbspam mail filter does whenever mail arrives in the first folder, and every four
    minutes.  A lost connection is made again, first after 5 seconds, later after up to 15 minutes.
    A wrong password ends it.

    \b
    Examples:
      nbspam mail watch home
      nbspam mail watch home --learn --trust-after 7d
    """
    check_sorting(cutting, sorting)
    named = _places(accounts, senders)
    if len(named) > 1:
        raise OptionError(
            f"one place is watched at a time, and there are {len(named)}; name one of"
            f" {', '.join(place.label for place in named)}, and watch the others in other runs"
        )
    if not sorting.learn:
        _classes(model, True, quiet)
    request = Request(model, cutting, sorting, jobs, form, quiet, senders=senders)
    with Stop() as stop:

        def sort(connection: Mailbox) -> None:
            nonlocal request
            try:
                _sort(connection, request, lambda: stop.is_asked)
            except update.OlderRulesError as error:  # mail is filtered with it
                if request.is_first:
                    notes.note(error.sentence(notes.REMEDIES))
            request = request._replace(is_first=False)

        watch(named[0], sort, stop, interval, notes.note)


def _places(names: Sequence[str], senders: options.SenderOptions) -> list[Place]:
    """Return the places to filter; raises OptionError, also for the lists of senders of each."""
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
            with open_mailbox(account, is_dry_run) as connection:
                work(connection)
        except (AccountError, LockedError, update.OlderRulesError) as error:
            if failure:
                notes.note(failure.sentence(notes.REMEDIES))
            failure = error
    if failure:
        raise failure


def _junk_folder(connection: Mailbox, junk: str | None) -> str:
    """Return the folder for spam; raises AccountError if there is none."""
    account = connection.account
    if named := junk or account.junk:
        found = resolve_folder(named, connection.folders())
        connection.status(found)  # raises if it is not there
    else:  # the one whose special use is \Junk (RFC 6154)
        listed = [folder for folder in connection.folders() if folder.is_selectable]
        marked = [folder.name for folder in listed if "\\junk" in folder.flags]
        if not marked or (len(marked) > 1 and isinstance(account, Maildir)):
            why = "several folders are for spam" if marked else connection.junk_rule
            raise AccountError(
                f"{account.name}: {why}; the folders are"
                f" {', '.join(folder.name for folder in listed)}",
                Remedy.NAME_JUNK,
            )
        found = marked[0]
    for other in expand_patterns(connection, (*account.folders, *account.ham), found):
        if other == found or connection.is_same(other, found):
            link = "" if other == found else f" (by a link: {other})"
            raise AccountError(
                f"{account.name}: {found} is both the folder for spam and one of the others{link}",
                Remedy.NAME_JUNK,
            )
    return found


# Filtering


def _classes(model: Path, is_first: bool, quiet: bool = True) -> tuple[str, tuple[str, ...]]:
    """Return the spam class of a model, and the others; raises OptionError and ModelError.

    is_first: say what the model lacks.  quiet: do not say that its rules are old.
    """
    with Lookup(model) as lookup:
        metadata = lookup.metadata
    if metadata.settings.positive is None:
        raise OptionError(
            f"{model}: has no class that counts as spam; name it with train --spam-label"
        )
    if is_first:
        notes.note_lacking(model, metadata)
    if not quiet:
        notes.note_older(model, metadata)
    positive = metadata.settings.positive
    return positive, tuple(name for name in metadata.settings.classes if name != positive)


def _class_movers(mover: Mover, folders: Sequence[str], others: Sequence[str]) -> dict[str, Mover]:
    """Return what moves the mail of classes other than spam to their folders.

    folders: those that are filtered.  others: the model's classes.
    Raises OptionError for another class or folder, and AccountError for one that is not there.
    """
    connection, movers = mover.connection, dict[str, Mover]()
    for name, folder in connection.account.class_folders:
        place = resolve_folder(folder, connection.folders())
        if name not in others or place in (mover.junk, *folders):
            raise OptionError(
                f"{connection.account.name}: class-folders: {name} = {folder!r}: the classes beside"
                f" spam are {', '.join(others)}, and their mail is moved neither to {mover.junk}"
                " nor to a folder that is filtered; correct it, or leave it out"
            )
        connection.status(place)  # raises if it is not there
        movers[name] = Mover(connection, mover.memory, place, is_of_spam=False)
    return movers


def _sort(connection: Mailbox, request: Request, is_over: Callable[[], bool]) -> None:
    """Learn if --learn is given, classify and move new mail, and print what was done.

    Raises OlderRulesError at the end if the model cannot learn.
    """
    account, sorting = connection.account, request.sorting
    senders = request.senders.lists(account.auth_host)
    junk = _junk_folder(connection, sorting.junk)

    def judge(raws: Iterable[RawMessage], number: int) -> Iterator[Verdict]:
        """Yield the verdicts of the model as it is after learning."""
        if not number:
            return
        is_many = number > _FEW
        with open_filter(request.model, request.cutting.of, senders=senders) as spam_filter:
            where = executor(request.jobs if is_many else 1)
            with progress(request.quiet or not is_many, [SCHEME]) as shown:
                finds_taught = not sorting.move_taught
                found = classified(raws, Skips(), where, spam_filter, finds_taught=finds_taught)
                for message in shown(found):
                    yield message.verdict

    learns, refusal = sorting.learn and not request.is_dry_run, None
    with lock_state(account.state, notes.lock_wait(request.quiet)) as place:
        memory = Memory(place)
        if learns:
            try:
                _learn_folders(connection, memory, junk, request)
            except update.OlderRulesError as error:  # mail is filtered with it
                refusal = error
        mover = Mover(connection, memory, junk)
        folders = expand_patterns(connection, account.folders, junk)
        positive, others = _classes(request.model, request.is_first and learns)
        mail = MailFilter(
            mover,
            judge,
            is_over,
            folders,
            positive,
            is_dry_run=request.is_dry_run,
            is_marked=sorting.mark,
            unsure_keyword=sorting.unsure_keyword,
            judges_all=request.judges_all,
            say=notes.note,
            class_movers={} if sorting.mark else _class_movers(mover, folders, others),
        )
        for folder in mail.folders:
            if not (request.quiet or request.judges_all or folder in memory.folders):
                notes.note(
                    f"{account.name}: {folder}: the first run classifies only unread mail;"
                    " nbspam mail filter --all classifies all of it"
                )
        _print_sorted(mail, request)
    notes.note_skips(connection.skips)
    connection.skips = Skips()
    if refusal:
        raise refusal


def _print_sorted(mail: MailFilter, request: Request) -> None:
    """Filter the folders and print each outcome, then a line for each folder."""
    account, junk = mail.mover.connection.account, one_line(mail.mover.junk)
    numbers: Counter[tuple[str, str]] = Counter()
    try:
        for outcome in mail.run():
            verdict = outcome.verdict
            kind = TAUGHT_AS_HAM if verdict.reason == TAUGHT_AS_HAM else verdict.verdict
            numbers[outcome.folder, kind] += 1
            if request.form == "json":
                place = {"account": account.label, "folder": outcome.folder, "uid": outcome.uid}
                action = {"action": outcome.action, "done": not mail.is_dry_run}
                click.echo(json.dumps(place | verdict.as_json() | action))
            elif mail.is_dry_run:
                click.echo(verdict.as_line())
        if mail.without_keyword and request.is_first and not request.quiet:
            notes.note(
                f"{account.name}: {', '.join(map(one_line, mail.without_keyword))}: spam is moved"
                f" without a keyword: there is no {' or '.join(JUNK_KEYWORDS)} to set; set it once"
                " with a mail program, or leave keywords out"
            )
    finally:  # a run that fails prints what it moved
        if request.form != "json" and not request.quiet:
            would = "would be " if mail.is_dry_run else ""
            what = f"moved to {junk}"
            if mail.is_marked:
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
                    for name, mover in mail.class_movers.items():
                        if n := numbers[folder, name]:
                            kept += f", {n:,} {name} {would}moved to {one_line(mover.junk)}"
                    click.echo(
                        f"{account.name}: {one_line(folder)}: classified"
                        f" {counted(total, 'message')}, {spam:,} {would}{what}, {unsure:,}"
                        f" unsure{kept}"
                    )


# Learning


def _learn_folders(connection: Mailbox, memory: Memory, junk: str, request: Request) -> None:
    """Learn what is new in the account's folders, and print what changed.

    A new model is trained as a whole if there is mail of both classes, as `nbspam train` does.
    """
    model, quiet, is_new = request.model, request.quiet, not request.model.exists()
    defaults, labels = TrainingSettings(), (SPAM, HAM)
    wanted = defaults.wanted
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
        wanted, labels = settings.wanted, (settings.positive, HAM if HAM in others else others[0])
    lessons = Lessons(connection, memory, junk, labels, request.sorting.trust_after)
    where, sizes, wait = executor(request.jobs), ClassSizes(), notes.lock_wait(quiet)
    withheld: list[str] = []

    def learn_each(messages: Iterable[TokenizedMessage]) -> PendingMessages:
        nonlocal withheld
        pending = PendingMessages(wanted)
        pending.is_presumed = lessons.is_presumed
        pending.add(messages, model)
        change = Change()
        if request.is_dry_run:
            change = update.preview(model, pending, defaults)
        elif pending.found:
            change = update.learn(model, pending, defaults, wait=wait)
        withheld = [lesson.source for lesson in change.surprising if not lesson.learned]
        _print_change(change, lessons.waiting, junk, connection.account, request)
        return pending

    if is_new:
        options.make_default_folder(model)
        memory.learned.clear()  # the model that learned them is gone
        trace = notes.NoTrace()
        training = Training(
            model, defaults, _NO_CUT_OFFS, _NEW, request.form, quiet, Skips(), trace, wait, sizes
        )
        train_whole(where, in_batches(lessons.messages(), *PIECE), [SCHEME], training, learn_each)
    else:
        found = tokenized(lessons.messages(), Skips(), where, True, wanted, skips_empty=True)
        with progress(quiet, [SCHEME]) as shown:
            pending = learn_each(shown(found))
        sizes.report_shared(*pending.shared(), quiet, strict=False)
    if not request.is_dry_run:
        lessons.commit(withheld)


def _print_change(
    change: Change, waiting: int, junk: str, account: Place, request: Request
) -> None:
    if request.form == "json":
        fields: dict[str, object] = {"account": account.label, "model": str(request.model)}
        fields |= notes.change_json(change) | {"waiting": waiting}
        click.echo(json.dumps(rounded(fields)))
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
                f"; not learning from {counted(waiting, 'message')} that nbspam moved; open them in"
                f" {one_line(junk)} first"
            )
        would = "would have " if request.is_dry_run else ""
        click.echo(f"{account.name}: {would}{notes.change_words(change)}{more}")
