#!/usr/bin/env python3
"""What the dearest mail costs: processor time of hostile messages, beside ordinary HTML.

Usage:  python benchmarks/hostile.py [--mails N] [--largest KIB] [--seed S]

Each mail is one or several constructs of `CONSTRUCTS`, repeated until it has the size drawn for it
(1 KiB to --largest, 2,048 by default).  Printed are the dearest mails, their time as a multiple of
that of ordinary HTML of the same size, and the dearest of 32 KiB.
"""

import argparse
import base64
import random
import time
from collections.abc import Callable

from nbspam.reading.message import parse
from nbspam.tokens import html, text
from nbspam.tokens.tokenized import message_tokens

HEAD = "From: a@example.com\nSubject: offer\nMIME-Version: 1.0\n"
HTML = f'{HEAD}Content-Type: text/html; charset="utf-8"\n\n'
_WORDS = "meeting report friday offer account parcel invoice thanks regards morning".split()
_CLASSES = " ".join(f"c{i}" for i in range(1_999))


def _sheet(rule: Callable[[int], str], element: Callable[[int], str]) -> Callable[[int], str]:
    """Return a page of n rules and n elements."""
    return lambda n: (
        f"{HTML}<style>{''.join(map(rule, range(n)))}</style>{''.join(map(element, range(n)))}"
    )


def _page(element: Callable[[int], str]) -> Callable[[int], str]:
    return lambda n: HTML + "".join(map(element, range(n)))


def _text(piece: Callable[[int], str]) -> Callable[[int], str]:
    return lambda n: f"{HEAD}\n{''.join(map(piece, range(n)))}"


def _multipart(kind: str, part: Callable[[int], str]) -> Callable[[int], str]:
    return lambda n: (
        f'{HEAD}Content-Type: multipart/{kind}; boundary="b"\n\n'
        + "".join(f"--b\n{part(i)}\n" for i in range(n))
        + "--b--\n"
    )


def _nested(n: int) -> str:
    tops = (f'Content-Type: multipart/mixed; boundary="b{i}"\n\n--b{i}\n' for i in range(n))
    return f"{HEAD}{''.join(tops)}Content-Type: text/plain\n\nhello\n"


def ordinary(n: int) -> str:
    """Return a page of n lines as newsletters have them."""
    line = '<tr><td style="color:#333"><p>Hello <b>{}</b>, a <a href="http://x.example/{}">{}</a>\n'
    words = [_WORDS[i % len(_WORDS)] for i in range(n + 2)]
    rows = "".join(line.format(words[i], i, words[i + 2]) for i in range(n))
    return f"{HTML}<table>{rows}</table>"


# Name -> the mail of n pieces.
CONSTRUCTS: dict[str, Callable[[int], str]] = {
    "attribute selectors": _sheet(lambda i: f"[a{i}]{{opacity:0}}", lambda i: f"<i a{i}>w"),
    "descendants": _sheet(lambda i: "a " * 8 + "{opacity:0}", lambda i: "<a>w"),
    "one long selector": lambda n: f"{HTML}<style>{'a ' * n}{{opacity:0}}</style>{'<a>w' * n}",
    "children": _sheet(lambda i: "b>" * 8 + "b{color:#fff}", lambda i: "<b>w"),
    "classes": _sheet(
        lambda i: f".c{i}{{opacity:0}}",
        lambda i: f'<i class="{" ".join(f"c{i + j}" for j in range(20))}">w',
    ),
    "ids": _sheet(lambda i: f"#c{i},p#c{i}{{color:red}}", lambda i: f"<p id=c{i}>w"),
    "the same class": _sheet(lambda i: f".c{{color:#{i % 4096:03x}}}", lambda i: "<i class=c>w"),
    "doubtful colours": _sheet(lambda i: f"x .c{{color:#{i % 4096:03x}}}", lambda i: "<i class=c>"),
    "lists of selectors": lambda n: f"{HTML}<style>{'p,' * n}p{{opacity:0}}</style><p>w",
    ":is()": lambda n: f"{HTML}<style>{':is(a,' * n}b{')' * n}{{opacity:0}}</style><p>w",
    "@media": lambda n: f"{HTML}<style>{'@media screen{' * n}p{{opacity:0}}</style><p>w",
    "a long @media": lambda n: f"{HTML}<style>@media {'all and ' * n}{{p{{opacity:0}}</style><p>",
    "blanks in @media": lambda n: f"{HTML}<style>@media {' ' * n}x{{p{{opacity:0}}</style><p>w",
    "brackets": lambda n: f"{HTML}<style>{'[' * n}{{opacity:0}}</style><p>w",
    "comments in a sheet": lambda n: f"{HTML}<style>{'/* x */' * n}p{{color:red}}</style><p>w",
    "open comments": lambda n: f"{HTML}<style>{'/*' * n}</style><p>w",
    "sheets": _page(lambda i: f"<style>.c{i}{{opacity:0}}</style>"),
    "open sheets": lambda n: f"{HTML}{'<style>' * n}",
    "escapes": lambda n: f"{HTML}<style>{chr(92) + '64 ' * n}{{opacity:0}}</style><p>w",
    "declarations": _page(lambda i: f'<i style="{"opacity:0;" * 50}margin:{i}px">w'),
    "colours": _page(lambda i: f'<i style="color:rgb({i % 256},{i % 99},9)">w'),
    "blanks in styles": lambda n: f'{HTML}<i style="color:{" " * n}red">w',
    "colours far apart": _page(
        lambda i: f"<p style='color:#00{i * 7 % 65536:04x};background:#ff{i * 11 % 65536:04x}'>w"
    ),
    "filters": _page(lambda i: f'<i style="filter:{"x" * 99}({i})">w'),
    "semicolons": lambda n: f'{HTML}<i style="{";" * n}opacity:0">w',
    "long styles": lambda n: f'{HTML}<i style="{"".join(f"a{i}:b;" for i in range(n))}">w',
    "long lists of classes": lambda n: (
        f"{HTML}<style>{','.join(f'.c{i}' for i in range(1_999))}{{opacity:0;color:red}}</style>"
        + "".join(f'<i id=i{i} class="{_CLASSES}">w' for i in range(n))
    ),
    "more rules than are read": lambda n: (
        f"{HTML}<style>{'p,' * 2_001}p{{opacity:0}}</style>{'<p>w' * n}"
    ),
    "fonts": _page(lambda i: f'<i style="font:{"1 " * 60}{i}px">w'),
    "open tags": _page(lambda i: "<div>w"),
    "tags that close nothing": _page(lambda i: "<b>w</i>"),
    "crossed tags": lambda n: HTML + "<b>" * n + "</p></b>" * n,
    "list items": _page(lambda i: "<li>w<table>"),
    "cells": _page(lambda i: "<td>w<p>"),
    "attributes": _page(lambda i: f'<i {" ".join(f"a{j}={j}" for j in range(60))} b={i}>w'),
    "quotes": _page(lambda i: "<i \"'>w"),
    "open quotes": lambda n: f"{HTML}{'<a href=' + chr(34)}{'<' * n}",
    "open tags of sheets": lambda n: f"{HTML}{'<style ' * n}",
    "quotes in sheets' tags": lambda n: HTML + "<style a='\"" * n,
    "pairs of quotes": lambda n: HTML + "<p " + "'\"" * n,
    "blanks in a tag": lambda n: f"{HTML}<p a{' ' * n}b>w",
    "closing tags without a name": lambda n: HTML + "</ " * n,
    "ends of sheets": lambda n: HTML + "<style>" + "</style" * n,
    "less-than signs": lambda n: HTML + "<" * n,
    "open comment": lambda n: f"{HTML}{'<!--' * n}",
    "comments": _page(lambda i: "w<!-- x -->w"),
    "entities": _page(lambda i: "&#x41;&amp;&nbsp;&notanentity"),
    "long entities": lambda n: f"{HTML}&#{'9' * n};",
    "long entities in a tag": lambda n: f'{HTML}<p style="&#{"0" * n}9;&#{"9" * n};">w',
    "entities in tags": _page(lambda i: f'<p style="&#x41;&amp;&notanentity{i}">w'),
    "hidden": _page(lambda i: "<p hidden>w</p>v"),
    "links": _page(lambda i: f"<a href=http://h{i}.example/p{i}>w</a>"),
    "hosts": _text(lambda i: f"http://{'a.' * 60}{i}/ "),
    "long words": _text(lambda i: "x" * 500 + " "),
    "joints": _text(lambda i: "a-'b'-c-"),
    "spelled": _text(lambda i: "v.i.a.g.r.a "),
    "half spelled": _text(lambda i: "a a "),
    "leet": _text(lambda i: "a0a1a"),
    "underscores": _text(lambda i: "a_"),
    "signs": _text(lambda i: "!?!*$"),
    "capitals": _text(lambda i: "AbAB "),
    "digits": _text(lambda i: "1.000,"),
    "money": _text(lambda i: "$£€"),
    "marks": _text(lambda i: "a\u0301\u0327\u200b"),
    "unspaced": _text(lambda i: "漢字かな"),
    "tag characters": _text(lambda i: "a\U000e0041"),
    "many words": _text(lambda i: f"w{i:x} "),
    "uuencode": _text(lambda i: "begin 644 x\nM" + "9" * 60 + "\n"),
    "header fields": lambda n: "".join(f"X-A{i}: b\n" for i in range(n)) + HEAD + "\nhello",
    "Received lines": lambda n: "Received: from a.example by b.example; now\n" * n + HEAD + "\nhi",
    "encoded words": lambda n: f"Subject: {'=?utf-8?q?a=20b?= ' * n}\n{HEAD}\nhi",
    "folded lines": lambda n: f"Subject: a{chr(10) + ' b' * 1}{(chr(10) + ' b') * n}\n{HEAD}\nhi",
    "parameters": lambda n: f"{HEAD}Content-Type: text/plain;{' a=b;' * n}\n\nhi",
    "parts": _multipart("mixed", lambda i: "Content-Type: text/plain\n\nhello"),
    "empty parts": _multipart("mixed", lambda i: ""),
    "alternatives": _multipart("alternative", lambda i: f"Content-Type: text/html\n\n<p>a{i}"),
    "related": _multipart("related", lambda i: f"Content-Type: text/plain\n\na{i}"),
    "nested parts": _nested,
    "nested messages": lambda n: HEAD + "Content-Type: message/rfc822\n\n" * n + "hi",
    "boundaries": lambda n: f'{HEAD}Content-Type: multipart/mixed; boundary="b"\n\n{"--b" * n}',
    "base64 with padding": lambda n: (
        f"{HEAD}Content-Transfer-Encoding: base64\n\n" + (base64.b64encode(b"a").decode() * n)
    ),
    "quoted-printable": lambda n: (
        f"{HEAD}Content-Transfer-Encoding: quoted-printable\n\n" + "=41=\n" * n
    ),
    "a page of every kind": ordinary,
}  # fmt: skip


def of_size(make: Callable[[int], str], size: int) -> bytes:
    """Return the mail of a construct with about so many bytes."""
    per_piece = max(1, (len(make(64)) - len(make(32))) // 32)
    return make(max(1, size // per_piece)).encode("utf-8", "replace")[: size + 2_000]


def seconds(raw: bytes) -> float:
    """Return the processor time that reading and tokenizing a message takes, nothing remembered."""
    for memo in (
        html._tags,
        html._sheets,
        text._host_names,
    ):
        memo.clear()
    html._enter_element.cache_clear()
    html._effect_of.cache_clear()
    begun = time.process_time()
    message_tokens(parse(raw))
    return time.process_time() - begun


def main() -> None:
    """Measure, and print the dearest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mails", type=int, default=2_000)
    parser.add_argument("--largest", type=int, default=2_048, help="KiB")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    for make in CONSTRUCTS.values():  # compiles every pattern
        seconds(of_size(make, 2_000))
    found = []
    for _ in range(options.mails):
        size = int(1024 * options.largest ** rng.random())
        names = rng.sample(sorted(CONSTRUCTS), rng.choice((1, 1, 2, 3)))
        first, *others = (of_size(CONSTRUCTS[name], size // len(names)) for name in names)
        raw = first + b"".join(other.partition(b"\n\n")[2] for other in others)
        usual = min(seconds(of_size(ordinary, len(raw))) for _ in range(2))
        taken = seconds(raw)
        found.append((taken, taken / max(usual, 1e-3), len(raw) >> 10, " + ".join(names)))
    found.sort(reverse=True)
    print("the dearest of", len(found))
    for taken, ratio, kib, names in found[:8]:
        print(f"{1000 * taken:7.0f} ms  {ratio:5.1f} x ordinary HTML  {kib:5} KiB  {names}")
    print("the largest multiples of ordinary HTML")
    for taken, ratio, kib, names in sorted(found, key=lambda row: -row[1])[:8]:
        print(f"{1000 * taken:7.0f} ms  {ratio:5.1f} x ordinary HTML  {kib:5} KiB  {names}")
    print("of 32 KiB")
    small = sorted(((seconds(of_size(make, 32 << 10)), name) for name, make in CONSTRUCTS.items()))
    for taken, name in small[:-6:-1]:
        print(f"{1000 * taken:7.1f} ms  {name}")


if __name__ == "__main__":
    main()
