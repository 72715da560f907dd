"""Which charset is recognised of tables that are not UTF-8: ours, and charset-normalizer's.

    pip install django charset-normalizer
    python benchmarks/table_charsets.py

The texts are Django's translations, which are in its package; each table is of so many of one
language, encoded as such tables are, and is right if it decodes to the same texts.
"""

import ast
import random
import re
import time
from collections import Counter
from pathlib import Path

import django
from charset_normalizer import from_bytes

from nbspam.reading.lines import guess_charset

LANGUAGES = {
    "cp1251": "ru uk bg mk be",
    "cp1252": "fr de es pt it sv fi da nb nn nl ca pt_BR is gl eu",
    "cp1250": "pl cs sk hu hr sl ro bs sr_Latn",
    "cp1256": "ar fa ar_DZ",
    "cp1253": "el",
    "cp1254": "tr",
    "cp1255": "he",
    "gb18030": "zh_Hans",
    "big5": "zh_Hant",
    "cp932": "ja",
    "cp949": "ko",
}
DRAWS = 5


def texts(language, codec):
    """Return the translations into a language that a codec can encode, as bytes."""
    found = set()
    for path in Path(django.__file__).parent.rglob(f"locale/{language}/LC_MESSAGES/*.po"):
        for match in re.finditer(
            r'^msgstr(?:\[\d\])? ((?:".*"\n?)+)', path.read_text("utf-8"), re.M
        ):
            text = " ".join("".join(map(ast.literal_eval, match[1].split("\n")[:-1])).split())
            if len(text) > 12 and "Project-Id" not in text:
                found.add(text)
    for text in sorted(found):
        try:
            yield text.encode(codec)
        except UnicodeError:
            continue


def theirs(data):
    """Return the codec that charset-normalizer names."""
    best = from_bytes(data).best()
    return best.encoding if best else ""


def is_right(data, codec, found):
    """Return whether one codec decodes as the other."""
    try:
        return data.decode(codec) == data.decode(found)
    except (LookupError, UnicodeError):
        return False


def main():
    """Print, for tables of several sizes, how many are right."""
    for rows in (200, 40, 8, 2):
        right, tables, seconds = Counter(), Counter(), Counter()
        for codec, languages in LANGUAGES.items():
            for language in languages.split():
                lines = list(texts(language, codec))
                for draw in range(DRAWS):
                    random.Random(draw).shuffle(lines)
                    data = b"".join(b"ham\t" + line + b"\n" for line in lines[:rows])
                    other = b"".join(line for line in lines[:rows] if not line.isascii())
                    if not other:
                        continue
                    tables[codec] += 1
                    for name, recognise, of in (
                        ("ours", guess_charset, other),
                        ("theirs", theirs, data),
                    ):
                        began = time.perf_counter()
                        right[name, codec] += is_right(data, codec, recognise(of))
                        seconds[name] += time.perf_counter() - began
        for name in ("ours", "theirs"):
            each = ", ".join(f"{codec} {right[name, codec]}/{n}" for codec, n in tables.items())
            total = sum(right[name, codec] for codec in tables)
            took = 1000 * seconds[name] / tables.total()
            print(f"{rows} rows, {name}: {total} of {tables.total()} ({took:.1f} ms): {each}")


if __name__ == "__main__":
    main()
