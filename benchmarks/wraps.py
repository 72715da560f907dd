#!/usr/bin/env python3
"""What a spam is saved in: 200 of P2's test half, plain and by each way in which mail is wrapped.

Usage:  python benchmarks/wraps.py --spamassassin DIR

Trains on P2's training half, draws 200 spams of its test half once (seed 36), and prints how many
are called spam, plain, wrapped, and compressed.  Then it trains on 200 ham and the spams as each
compression leaves them in Maildirs: the model must be the same, byte for byte.
"""

import argparse
import bz2
import gzip
import lzma
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import lz4.frame
import zstandard
from compare import shuffled

import nbspam
from nbspam.reading.message import extract_attached

DRAWN, SEED = 200, 36
FROM = b"From deals@example.org Tue Nov 25 10:00:00 2025\n"
HEAD = b"From: hal@example.net\nTo: hal@example.net\nSubject: %b\nMIME-Version: 1.0\n%b"
PARTS = (
    b'Content-Type: multipart/mixed; boundary="=_B"\n\n--=_B\nContent-Type: text/plain\n\n%b\n\n'
    b"--=_B\nContent-Type: %b\nContent-Disposition: attachment\n\n%b\n--=_B--\n"
)
REPORT = (
    b"Spam detection software has identified this message as spam.\nContent analysis details:\n"
    b" pts rule name\n 3.5 BAYES_99 Bayes"
)
PLIST = b'<?xml version="1.0"?>\n<!DOCTYPE plist PUBLIC "x" "y">\n<plist/>\n'


def report(kind: bytes) -> Callable[[bytes], bytes]:
    """Return what wraps a mail as SpamAssassin does: `report_safe` 1 or 2."""
    head = HEAD % (b"*****SPAM*****", b"X-Spam-Flag: YES\n")
    return lambda mail: head + PARTS % (REPORT, kind + b"; x-spam-type=original", mail)


def forwarded(mail: bytes) -> bytes:
    """Return what `--attached` finds in a mail that a user forwards."""
    [found] = extract_attached(
        HEAD % (b"Fwd", b"") + PARTS % (b"Learn this", b"message/rfc822", mail)
    )
    return found


def with_odd_line(mail: bytes) -> bytes:
    """Return a mail with a line in its header that is none."""
    first, end, rest = mail.partition(b"\n")
    while rest[:1] in (b" ", b"\t"):
        line, end, rest = rest.partition(b"\n")
        first += b"\n" + line
    return first + b"\nMicrosoft Mail Internet Headers Version 2.0" + end + rest


WRAPS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "report_safe 1": report(b"message/rfc822"),
    "report_safe 2": report(b"text/plain"),
    "forwarded, --attached": forwarded,
    "From_ lines": lambda mail: FROM + b">" + FROM + b">" + FROM + mail,
    "a blank line first": lambda mail: b"\n" + mail,
    "an odd line first": lambda mail: b"---- Forwarded message ----\n" + mail,
    "an odd line in the header": with_odd_line,
    ".emlx": lambda mail: b"%-10d\n" % len(mail) + mail + PLIST,
    "BOM and CRLF": lambda mail: b"\xef\xbb\xbf" + mail.replace(b"\n", b"\r\n"),
}
PACKS: dict[str, Callable[[bytes], bytes]] = {
    "not compressed": bytes,
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.compress,
    "lz4": lz4.frame.compress,
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--spamassassin", type=Path, required=True)
    ham, spam = shuffled(parser.parse_args().spamassassin)
    trained = [("ham", path.read_bytes()) for _, path in ham[::2]]
    spam_filter = nbspam.train(trained + [("spam", path.read_bytes()) for _, path in spam[::2]])
    drawn = [path.read_bytes() for _, path in random.Random(SEED).sample(spam[1::2], DRAWN)]
    bare = [m.partition(b"\n")[2] if m.startswith(b"From ") else m for m in drawn]
    for name, wrap in {**WRAPS, **PACKS}.items():
        verdicts = [spam_filter.classify(wrap(mail)).verdict for mail in bare]
        print(f"{name:26} {verdicts.count('spam')} of {DRAWN}")
    models = set()
    with tempfile.TemporaryDirectory() as folder:
        for number, pack in enumerate(PACKS.values()):
            places = [Path(folder, f"{kind}{number}") for kind in ("ham", "spam")]
            for place, mails in zip(places, ([m for _, m in trained[:DRAWN]], bare), strict=True):
                for part in ("cur", "new", "tmp"):
                    (place / part).mkdir(parents=True)
                for i, mail in enumerate(mails):
                    (place / "cur" / f"{i:03}:2,S").write_bytes(pack(mail))
            made = nbspam.train(ham=[places[0]], spam=[places[1]])
            made.save(Path(folder, "model.json"))
            models.add(Path(folder, "model.json").read_bytes())
    print(f"{len(models)} model of {len(PACKS)} compressions")


if __name__ == "__main__":
    main()
