#!/usr/bin/env python3
"""How many spams get past nbspam and bogofilter by each trick of spammers, side by side.

Usage:  python benchmarks/evasion.py --spamassassin DIR [--spams N] [--only GROUP,...] [--markdown]

  --spamassassin  SpamAssassin public corpus 20030228, unpacked; or any folder with ham in
                  easy_ham, easy_ham_2 and hard_ham, and spam in spam and spam_2
  --spams         how many spams each trick is played on; 100 by default
  --only          groups of `tricks.py`: none, words, encoding, structure, hidden ham, visible ham,
                  learned ham

Both filters learn half of the corpus (P2 of docs/research/benchmarks.md).  From the other half come
the spams, the first in a fixed shuffle that both filters catch as HTML and as plain text and with
both headers, and the ham that spams are padded with; learned ham is of the first half.  Each trick
is played on each spam with the header that it came with, and with a neutral one: that of a ham of
the other half, but for the Subject.  A spam flips when its P(spam), or bogofilter's spamicity,
falls to 0.5 or less.
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
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from compare import NBSPAM, place, shuffled
from peers import Bogofilter, Labelled, run
from tricks import GROUPS, LEARNED, NONE, Body, Spam, Trick

CUT_OFF = 0.5
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


class Filters:
    """nbspam and bogofilter, both trained on the same messages."""

    def __init__(self, train: list[Labelled], work: Path) -> None:
        self._folder, self._model = work / "mails", str(work / "model.json")
        self._bogofilter = Bogofilter(work / "bogofilter")
        self._bogofilter.learn(train)
        place(train, work / "train")
        options = ["-q", "--replace", "--outside", "-m", self._model]
        run([*NBSPAM, "train", *options, str(work / "train")])

    def flips(self, mails: list[bytes]) -> tuple[list[bool], list[bool]]:
        """Return of each mail whether nbspam, and bogofilter, take it for ham."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir()
        paths = [self._folder / f"{i:04}" for i in range(len(mails))]
        for path, mail in zip(paths, mails, strict=True):
            path.write_bytes(mail)
        command = ["classify", "-m", self._model, "--format", "json", str(self._folder)]
        rows = [json.loads(line) for line in run([*NBSPAM, *command]).splitlines()]
        probability = {Path(row["source"]).name: row["probability"] for row in rows}
        spamicity = self._bogofilter.spamicity([(True, path) for path in paths])
        return (
            [probability[path.name] <= CUT_OFF for path in paths],
            [value <= CUT_OFF for value in spamicity],
        )


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
            for flips in filters.flips(mails):
                missed.update(i for i, flip in enumerate(flips) if flip)
    return [source for i, source in enumerate(sources) if i not in missed][:number]


def rows(
    sources: list[Source],
    filters: Filters,
    ham: list[str],
    learned: list[str],
    groups: list[str],
) -> Iterator[tuple[str, str, list[float]]]:
    """Yield each trick's group and name, and how many percent flip.

    In this order: nbspam, bogofilter with the spams' own headers; both with neutral ones.
    """
    for group in groups:
        for name, trick in GROUPS[group].items():
            shares = []
            for with_own in (True, False):
                padding = learned if GROUPS[group] is LEARNED else ham
                mails = mails_of(sources, trick, padding, with_own, random.Random(2))
                shares += [100 * sum(flips) / len(flips) for flips in filters.flips(mails)]
            yield group, name, shares


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
    parser.add_argument("--spams", type=int, default=100)
    parser.add_argument("--only", default=",".join(GROUPS))
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    ham, spam = shuffled(options.spamassassin)
    hams = [path for _, path in ham[1::2]]
    learned, texts = (texts_of([path for _, path in ham[half::2]]) for half in (0, 1))
    with tempfile.TemporaryDirectory() as work:
        filters = Filters(ham[::2] + spam[::2], Path(work))
        sources = caught([path for _, path in spam[1::2]], hams, filters, texts, options.spams)
        head = ["group", "trick", "own: nbspam", "bogofilter", "neutral: nbspam", "bogofilter"]
        print(f"{len(sources)} spams; percent that flip", flush=True)
        show(head, options.markdown)
        if options.markdown:
            print("|---" * len(head) + "|")
        for group, name, shares in rows(sources, filters, texts, learned, options.only.split(",")):
            show([group, name, *[f"{share:.0f}" for share in shares]], options.markdown)


def show(cells: list[str], markdown: bool) -> None:
    """Print a row of the table."""
    if markdown:
        print(f"| {' | '.join(cell.replace('|', ' ') for cell in cells)} |", flush=True)
    else:
        print(f"{cells[0]:12} {cells[1]:45}" + "".join(f"{c:>16}" for c in cells[2:]), flush=True)


if __name__ == "__main__":
    main()
