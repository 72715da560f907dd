#!/usr/bin/env python3
"""How many caught spams a spammer hides by adding words of ham in plain sight.

Usage:  python benchmarks/padding.py --spamassassin DIR [--spams N] [--words 50,200,...]
                                     [--training-half] [--markdown]

  --spamassassin  SpamAssassin public corpus 20030228, unpacked; or any folder with ham in
                  easy_ham, easy_ham_2 and hard_ham, and spam in spam and spam_2
  --spams         how many spams to pad; 200 by default
  --words         how many words to add; 50,200,500,1000 by default
  --training-half choose settings here: learn every second message of the training half, and take
                  spam and ham from the rest of it

The filters learn half of the corpus (P2 of docs/research/benchmarks.md): nbspam at once, and half
of it at once and the rest one by one; bogofilter.  The spams are the first of the other half, in a
fixed shuffle, that nbspam catches without added words, whichever way it has learned.  The words are
texts of the other half's ham, the same for all filters, visible and unchanged: behind the spam, in
front of it, or quoted behind it as if the spam were a reply.

Columns: per filter, the percentage called ham (P(spam), or the spamicity, is at most 0.5), and the
percentage called neither ham nor spam.
"""

import argparse
import email
import html
import itertools
import random
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from compare import place, shuffled
from partial_learning import begun, read
from peers import Bogofilter, Labelled

from nbspam.learning.learner import Learner
from nbspam.scoring.verdict import CutOffs, make_verdict
from nbspam.tokens.tokenized import TokenizedMessage

LEAST_WORDS = 20  # in a spam, and in a ham whose words are added
_MIME_FIELD = re.compile(rb"(?im)^(?:content-|mime-version)[^\n]*\n(?:[ \t][^\n]*\n)*")
_UNSEEN = re.compile(r"<(style|script|title|head)\b.*?</\1>|<!--.*?-->|<[^>]*>", re.I | re.S)

# Each shows a page, and a text of ham as HTML, to the reader of a mail.
PLACES: dict[str, Callable[[str, str], str]] = {
    "behind": lambda page, ham: f"{page}<p>{ham}</p>",
    "in front": lambda page, ham: f"<p>{ham}</p>{page}",
    "quoted": lambda page, ham: f"{page}<p>You wrote:</p><blockquote>{ham}</blockquote>",
}


def page_of(raw: bytes) -> str:
    """Return the text that a mail shows, as HTML without the frame of a page."""
    texts = {"text/plain": "", "text/html": ""}
    for part in email.message_from_bytes(raw).walk():
        kind, data = part.get_content_type(), part.get_payload(decode=True)
        if kind in texts and isinstance(data, bytes):
            texts[kind] = texts[kind] or data.decode("latin-1")
    source = re.sub(r"(?is).*<body[^>]*>|</body.*|</html>.*", "", texts["text/html"])
    return source if source.strip() else html.escape(texts["text/plain"]).replace("\n", "<br>\n")


def words_of(page: str) -> list[str]:
    """Return the words of a page."""
    return html.unescape(_UNSEEN.sub(" ", page)).split()


def padded(raw: bytes, way: Callable[[str, str], str], words: list[str]) -> bytes:
    """Return a spam with words added, with its own header."""
    head = raw.replace(b"\r\n", b"\n").partition(b"\n\n")[0] + b"\n"
    page = way(page_of(raw), html.escape(" ".join(words))) if words else page_of(raw)
    fields = b'MIME-Version: 1.0\nContent-Type: text/html; charset="latin-1"\n\n'
    body = f"<html><body>\n{page}\n</body></html>\n".encode("latin-1", "replace")
    return _MIME_FIELD.sub(b"", head) + fields + body


def learned(train: list[Labelled], work: Path) -> dict[str, Learner]:
    """Return nbspam's learners, by their names."""
    place(train, work / "train")
    messages = read(str(work / "train"))
    random.Random(1).shuffle(messages)
    one_by_one = begun(messages[::2])
    for message in messages[1::2]:
        one_by_one.learn(message.label or "", message.tokens, message.extras)
        one_by_one.refine(message.label or "", message.tokens, message.extras)
    return {"at once": begun(messages), "half one by one": one_by_one}


def tokenize(mails: list[bytes], work: Path) -> list[TokenizedMessage]:
    """Return mails as nbspam reads them."""
    shutil.rmtree(work, ignore_errors=True)
    for number, mail in enumerate(mails):
        path = work / "spam" / f"{number:04}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(mail)
    return read(str(work))


def verdicts(learner: Learner, messages: list[TokenizedMessage]) -> list[str]:
    """Return the verdict on each message."""
    classifier = learner.classifier()
    scores = [classifier.score(message.tokens, message.extras) for message in messages]
    return [make_verdict(classifier.metadata, score, CutOffs()).verdict for score in scores]


def shares(said: list[str]) -> str:
    """Return the percentages of messages called ham, and unsure."""
    return ", ".join(f"{100 * said.count(v) / len(said):.1f}" for v in ("ham", "unsure"))


def main() -> None:
    """Pad the spams and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--spamassassin", type=Path, required=True)
    parser.add_argument("--spams", type=int, default=200)
    parser.add_argument("--words", default="50,200,500,1000")
    parser.add_argument("--training-half", action="store_true")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    ham, spam = shuffled(options.spamassassin)
    if options.training_half:
        ham, spam = ham[::2], spam[::2]
    texts = [words_of(page_of(path.read_bytes())) for _, path in ham[1::2]]
    texts = [words for words in texts if len(words) >= LEAST_WORDS]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        nbspam = learned(ham[::2] + spam[::2], work)
        bogofilter = Bogofilter(work / "bogofilter")
        bogofilter.learn(ham[::2] + spam[::2])
        raws = [path.read_bytes() for _, path in spam[1::2]]
        raws = [raw for raw in raws if len(words_of(page_of(raw))) >= LEAST_WORDS]
        messages = tokenize([padded(raw, PLACES["behind"], []) for raw in raws], work / "mails")
        said = zip(*(verdicts(learner, messages) for learner in nbspam.values()), strict=True)
        is_caught = [set(both) == {"spam"} for both in said]
        raws = list(itertools.compress(raws, is_caught))[: options.spams]
        show(["words", "where", *(f"{name}, %" for name in (*nbspam, "bogofilter"))], options)
        for n, (name, way) in itertools.product(map(int, options.words.split(",")), PLACES.items()):
            rng, mails = random.Random(n), []
            for raw in raws:
                more = itertools.chain.from_iterable(rng.sample(texts, len(texts)))
                mails.append(padded(raw, way, list(itertools.islice(more, n))))
            messages = tokenize(mails, work / "mails")
            cells = [shares(verdicts(learner, messages)) for learner in nbspam.values()]
            paths = sorted((work / "mails").rglob("*[0-9]"))
            spamicity = bogofilter.spamicity([(True, path) for path in paths])
            cells.append(shares(list(bogofilter.scores(spamicity).verdicts)))
            show([str(n), name, *cells], options)


def show(cells: list[str], options: argparse.Namespace) -> None:
    """Print a row of the table."""
    row = f"| {' | '.join(cells)} |" if options.markdown else "".join(f"{c:24}" for c in cells)
    print(row, flush=True)


if __name__ == "__main__":
    main()
