#!/usr/bin/env python3
"""What spam gains by each trick: how much is called ham by nbspam and by bogofilter.

Usage:  python benchmarks/evasion.py --spamassassin DIR [--spams N] [--only GROUP,...] [--markdown]

  --spamassassin  SpamAssassin public corpus 20030228, unpacked; or any folder with ham in
                  easy_ham, easy_ham_2 and hard_ham, and spam in spam and spam_2
  --spams         the number of spams that each trick is played on; 50 by default
  --only          groups of `tricks.py`, such as shown,hidden
  --markdown      print a table for docs

Both filters learn half of the corpus (P2 of docs/research/benchmarks.md).  The spams are the first
of the other half, in a fixed shuffle, that both filters catch as HTML and as plain text and with
both headers; spams are padded with ham of the other half, and in the group `learned` of the first.
Each trick is played with the header that the spam came with, and with a neutral header: a ham's,
except for the Subject.  A row has, for each header, nbspam's verdicts ham and unsure, and how often
bogofilter's spamicity is at most 0.5, all in percent.

The groups that `tricks.py` has a promise for are checked, and for `shown` that each word of the
spam is read; honest mails (`honest.py`) must not be called spam.  Exit code 1: a promise is broken.
"""

import argparse
import email
import email.message
import html
import json
import random
import re
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

from compare import NBSPAM, place, shuffled
from honest import HONEST
from parts import AS_IN_SIGHT, UNSEEN
from peers import Bogofilter, Labelled, run
from tricks import (
    GROUPS_OF_TEXT,
    MORE_THAN_PLAIN,
    NONE,
    PLAIN_HTML,
    PLAIN_TEXT,
    PROMISES,
    Body,
    Spam,
    Trick,
)

from nbspam.reading.message import parse
from nbspam.tokens.tokenized import message_tokens

CUT_OFF = 0.5
GROUPS = GROUPS_OF_TEXT | {"unseen parts": UNSEEN, "as in sight": AS_IN_SIGHT}
LEAST_WORDS = 20  # of a spam's text, and of a ham's that spams are padded with
_MIME = re.compile(r"(?:content-|mime-version)", re.IGNORECASE)
_FIELD = re.compile(r"([!-9;-~]+):[^\n]*\n(?:[ \t][^\n]*\n)*")
_INSIDE = re.compile(r".*<body[^>]*>|</body.*|</html>.*", re.IGNORECASE | re.DOTALL)
_UNSEEN = re.compile(r"<(style|script|title)\b.*?</\1>|<!--.*?-->", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


class Source(NamedTuple):
    """A spam that tricks are played on."""

    spam: Spam
    own: str  # the fields of its header but those of MIME, each with its end
    neutral: str


class Judgement(NamedTuple):
    """The verdicts on a mail."""

    nbspam: str
    bogofilter_missed: bool


class Filters:
    """nbspam and bogofilter, both trained on the same messages."""

    def __init__(self, train: list[Labelled], work: Path) -> None:
        self._folder, self._model = work / "mails", str(work / "model.json")
        self._bogofilter = Bogofilter(work / "bogofilter")
        self._bogofilter.learn(train)
        place(train, work / "train")
        options = ["-q", "--replace", "--outside", "-m", self._model]
        run([*NBSPAM, "train", *options, str(work / "train")])

    def judge(self, mails: list[bytes]) -> list[Judgement]:
        """Classify mails with both filters."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        paths = [self._folder / f"{i:06}" for i in range(len(mails))]
        for path, mail in zip(paths, mails, strict=True):
            path.write_bytes(mail)
        command = ["classify", "-m", self._model, "--format", "json", str(self._folder)]
        rows = [json.loads(line) for line in run([*NBSPAM, *command]).splitlines()]
        verdicts = {Path(row["source"]).name: row["verdict"] for row in rows}
        spamicity = self._bogofilter.spamicity([(True, path) for path in paths])
        return [
            Judgement(verdicts[path.name], value <= CUT_OFF)
            for path, value in zip(paths, spamicity, strict=True)
        ]


def fields_of(raw: bytes, with_subject: bool) -> str:
    """Return the fields of a mail's header but those of MIME, each with its end."""
    head = raw.decode("latin-1").replace("\r\n", "\n").partition("\n\n")[0] + "\n"
    return "".join(
        field[0]
        for field in _FIELD.finditer(head)
        if not _MIME.match(field[1]) and (with_subject or field[1].lower() != "subject")
    )


def spam_of(raw: bytes) -> Spam:
    """Return a spam's text as plain text and as HTML, each made of the other if need be."""
    found = {"text/plain": "", "text/html": ""}
    for part in email.message_from_bytes(raw).walk():
        kind = part.get_content_type()
        if kind in found and not found[kind]:
            found[kind] = decoded(part)
    source = _INSIDE.sub("", found["text/html"])
    text = found["text/plain"]
    if source.strip():
        text = html.unescape(_TAG.sub(" ", _UNSEEN.sub(" ", source)))
    return Spam(text, source if source.strip() else html.escape(text).replace("\n", "<br>\n"))


def decoded(part: email.message.Message) -> str:
    """Return the text of a part."""
    data = part.get_payload(decode=True)
    charset = part.get_content_charset("latin-1")
    assert isinstance(data, bytes)
    try:
        return data.decode(charset, "replace")
    except LookupError:
        return data.decode("latin-1")


def mails_of(
    sources: list[Source], trick: Trick, ham: list[str], with_own: bool, rng: random.Random
) -> list[bytes]:
    """Return each spam with a trick played on it."""
    mails = []
    for source in sources:
        body: Body = trick(source.spam, rng.sample(ham, len(ham)), rng)
        head = source.own if with_own else source.neutral
        mails.append((head + body.fields + "\n").encode("latin-1", "replace") + body.body)
    return mails


def caught(
    spams: list[Path], hams: list[Path], filters: Filters, ham: list[str], number: int
) -> list[Source]:
    """Return the first spams that both filters catch without a trick, in any form."""
    sources = []
    for i, path in enumerate(spams):
        raw = path.read_bytes()
        spam = spam_of(raw)
        subject = re.search(r"(?mi)^subject:.*\n", raw.decode("latin-1") + "\n")
        neutral = fields_of(hams[i % len(hams)].read_bytes(), False)
        if len(spam.text.split()) >= LEAST_WORDS:
            own = fields_of(raw, True)
            sources.append(Source(spam, own, neutral + (subject[0] if subject else "")))
    missed: set[int] = set()
    for trick in NONE.values():
        for with_own in (True, False):
            mails = mails_of(sources, trick, ham, with_own, random.Random(1))
            judgements = enumerate(filters.judge(mails))
            missed.update(
                i for i, (verdict, is_missed) in judgements if verdict != "spam" or is_missed
            )
    return [source for i, source in enumerate(sources) if i not in missed][:number]


def shares(
    sources: list[Source], filters: Filters, ham: list[str], group: str
) -> dict[str, list[float]]:
    """Return the figures of each trick of a group: own header, then neutral.

    Of each header in this order: ham and unsure by nbspam, missed by bogofilter, in percent.
    """
    rows: dict[str, list[float]] = {name: [] for name in GROUPS[group]}
    for with_own in (True, False):
        mails = [
            mail
            for trick in GROUPS[group].values()
            for mail in mails_of(sources, trick, ham, with_own, random.Random(2))
        ]
        judgements, n = filters.judge(mails), len(sources)
        for i, row in enumerate(rows.values()):
            found = judgements[i * n : (i + 1) * n]
            row += [
                100 * sum(j.nbspam == verdict for j in found) / n for verdict in ("ham", "unsure")
            ]
            row.append(100 * sum(j.bogofilter_missed for j in found) / n)
    return rows


def unread(source: Source, trick: Trick, ham: list[str]) -> set[str]:
    """Return the words of a spam that are not read when it is shown by a trick."""
    plain, shown = (
        message_tokens(parse(mails_of([source], way, ham, True, random.Random(2))[0]))
        for way in (GROUPS["shown"][PLAIN_HTML], trick)
    )
    return {token for token in plain - shown if token.isalpha()}


def broken(group: str, rows: dict[str, list[float]]) -> list[str]:
    """Return the tricks of a group for which a promise is broken."""
    found = []
    for name, row in rows.items():
        limits = PROMISES.get(group, (100.0, 100.0))
        if group in MORE_THAN_PLAIN:
            plain = rows[PLAIN_HTML if "HTML" in name else PLAIN_TEXT]
            limits = plain[0] + MORE_THAN_PLAIN[group], plain[3] + MORE_THAN_PLAIN[group]
        if row[0] > limits[0] or row[3] > limits[1]:
            found.append(f"{group}: {name}")
    return found


def texts_of(paths: list[Path]) -> list[str]:
    """Return the texts of those mails that have enough words."""
    texts = [spam_of(path.read_bytes()).text for path in paths]
    return [text for text in texts if len(text.split()) >= LEAST_WORDS]


def main() -> None:
    """Play the tricks and print their table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spamassassin", type=Path, required=True)
    parser.add_argument("--spams", type=int, default=50)
    parser.add_argument("--only", default=",".join(GROUPS))
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    ham, spam = shuffled(options.spamassassin)
    hams = [path for _, path in ham[1::2]]
    learned, texts = (texts_of([path for _, path in ham[half::2]]) for half in (0, 1))
    problems = []
    with tempfile.TemporaryDirectory() as work:
        filters = Filters(ham[::2] + spam[::2], Path(work))
        honest = filters.judge([mail for _, mail, _ in HONEST])
        blocked = [case[0] for case, j in zip(HONEST, honest, strict=True) if j.nbspam == "spam"]
        problems += [f"honest: {name} is called spam" for name in blocked]
        n_ham = sum(judgement.nbspam == "ham" for judgement in honest)
        print(f"honest mails: {len(honest)}, {n_ham} called ham, {len(blocked)} spam", flush=True)
        sources = caught([path for _, path in spam[1::2]], hams, filters, texts, options.spams)
        print(f"{len(sources)} spams; percent called ham", flush=True)
        head = ["group", "trick", *["nbspam", "unsure", "bogofilter"] * 2]
        show(head, options.markdown)
        if options.markdown:
            print("|---" * len(head) + "|")
        for group in filter(GROUPS.get, options.only.split(",")):
            padding = learned if group == "learned" else texts
            rows = shares(sources, filters, padding, group)
            for name, row in rows.items():
                show([group, name, *[f"{share:.0f}" for share in row]], options.markdown)
            problems += broken(group, rows)
            for name, trick in GROUPS["shown"].items() if group == "shown" else ():
                missing = set().union(*(unread(source, trick, texts) for source in sources[:5]))
                problems += [f"not read in {name}: {sorted(missing)[:9]}"] if missing else []
    for problem in problems:
        print(f"BROKEN {problem}")
    raise SystemExit(bool(problems))


def show(cells: list[str], markdown: bool) -> None:
    """Print a row of the table."""
    if markdown:
        print(f"| {' | '.join(cell.replace('|', ' ') for cell in cells)} |", flush=True)
    else:
        print(
            f"{cells[0]:9} {cells[1][:50]:50}" + "".join(f"{c:>11}" for c in cells[2:]), flush=True
        )


if __name__ == "__main__":
    main()
