"""Names of classes and files as users write them; some names of classes have a meaning."""

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence

SPAM, HAM = "spam", "ham"
UNSURE = "unsure"  # the verdict that is not a class
# Why the user's lists decide a verdict, as every output says it.
ALLOWED_SENDER, BLOCKED_SENDER = "allowed sender", "blocked sender"
TAUGHT_AS_HAM = "taught as ham"  # the reason for a verdict of spam on mail that stays in its folder
LIST_FILE = "file:"  # prefix of a list's entry that names a file of entries

# Characters that a terminal or a file cannot take, and every kind of blank.  Compiled at the first
# label (`re` caches it), because classifying a message does not need it: 0.4 ms.
_NOT_IN_NAMES = "[\x00-\x20\x7f-\xa0\u2028\u2029\ud800-\udfff]+"
# Characters that nobody sees, such as marks that turn the text direction for the rest of a table,
# and signs around a label that was written by hand.
_INVISIBLE = "[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]"
_QUOTES = " '`\"\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u00ab\u00bb\u2039\u203a"


FEW = 5  # messages; a larger class does not come from typing mistakes
TIMES_LARGER = 10  # each of the two intended classes is this many times as large as a mistake

# Cells of a column called `spam`, which answers yes or no and names no class.  pandas writes 1.0
# and 0.0 in a column with a missing value.
_ANSWERS = {
    **dict.fromkeys(
        "1 1.0 true t yes y ja oui sí si sim да evet wahr vrai verdadero".split(), SPAM
    ),
    **dict.fromkeys("0 0.0 false f no n nein non não нет hayır falsch faux falso".split(), HAM),
}
# Other words for the two answers, which are answers only in such a column.
_OPINIONS = {
    **dict.fromkeys(("junk", "unwanted", "bad"), SPAM),
    **dict.fromkeys(("fine", "wanted", "good"), HAM),
}

# The answers of a column of any name.  By the convention of data sets and of scikit-learn, 1 and
# true are the positive class; yes and no are not among these answers, because they answer any
# question.
_BINARY = {"1": SPAM, "true": SPAM, "0": HAM, "false": HAM}


def binary_label(label: str) -> str:
    """Return spam for 1 and true, and ham for 0 and false; any other label unchanged."""
    return _BINARY.get(label.lower().removesuffix(".0"), label)


def answer_label(answer: str) -> str:
    """Return the class that an answer to "is it spam?" means; any other label unchanged."""
    return _ANSWERS.get(answer.lower(), answer)


def cell_label(cell: str) -> str:
    """Return the class that a cell of a column called `spam` means; any other label unchanged."""
    return _OPINIONS.get(cell.lower(), answer_label(cell))


def normal_label(label: str) -> str:
    """Return a label as the model names its class: `Spam` and `SPAM ` are `spam`.

    Letters become lower case.  A run of blanks, tabs, line ends and unprintable characters becomes
    one blank.  Invisible characters, quotes around the label, and `.`, `,`, `;` and `:` after it
    are removed.
    """
    if not label[-1:].isalnum() or not label[0].isalnum():
        label = re.sub(_INVISIBLE, "", label).strip()
        label = label.lstrip(_QUOTES).rstrip(f"{_QUOTES}.,;:") or label
    if not label.isprintable() or " " in label:
        label = re.sub(_NOT_IN_NAMES, " ", re.sub(_INVISIBLE, "", label)).strip()
    return label.lower()


def rare_classes(sizes: Mapping[str, int]) -> list[str]:
    """Return the classes with a few messages next to two large classes: probably mistyped labels.

    sizes: class -> its messages.
    """
    if len(sizes) < 3:
        return []
    second = sorted(sizes.values())[-2]
    return [name for name, n in sizes.items() if n <= FEW and TIMES_LARGER * n <= second]


def is_first_row(sources: Sequence[str], others: Iterable[str]) -> bool:
    """Return whether the only message is the first row of a table with more: possibly a header."""
    table, _, row = sources[0].rpartition(":")
    others = (name for name in others if name != sources[0])
    return len(sources) == 1 and row == "1" and any(o.startswith(f"{table}:") for o in others)


def doubt_words(labels: Mapping[str, tuple[float, int]]) -> str:
    """Describe the labels that look wrong: "about 26 of 539 ham look like spam"; "" without any.

    labels: class -> how many of its messages look like another class, and how many it has.
    """
    return " and ".join(
        f"about {max(1, round(wrong)):,} of {n:,} {label} look like"
        f" {next(other for other in labels if other != label) if len(labels) == 2 else 'others'}"
        for label, (wrong, n) in labels.items()
        if wrong >= 0.5
    )


def is_url(name: object) -> bool:
    """Return whether a name is a URL, such as the name of a folder at a mail server."""
    return "://" in str(name)


def absolute_name(name: object) -> str:
    """Return a file's absolute name; a URL unchanged."""
    return str(name) if is_url(name) else os.path.abspath(str(name))  # noqa: PTH100 (no pathlib)


def real_name(name: object) -> str:
    """Return a file's name with its links resolved; a URL unchanged."""
    return str(name) if is_url(name) else os.path.realpath(str(name))


def user_folder(variable: str, below: str) -> str | None:
    """Return the user's folder for files of a kind; None without a home, as a daemon may be.

    variable: a variable of the XDG specification, which ignores relative paths.
    below: the default in the home folder.  On macOS all files are in the folder for programs,
    except the config file: users look for that where git, uv and ruff have their config files.
    """
    is_hidden = sys.platform == "darwin" and variable != "XDG_CONFIG_HOME"
    folder = "" if is_hidden else os.environ.get(variable, "")
    if folder.startswith("/"):
        return folder.rstrip("/")
    home = os.path.expanduser("~").rstrip("/")  # noqa: PTH111 (no pathlib for one message)
    below = "Library/Application Support" if is_hidden else below
    return None if home.startswith("~") else f"{home}/{below}"


# Maildirs

MAILDIR_PARTS = "new", "cur"  # in the order in which messages move
_FLAGS = r"[^A-Za-z0-9=]2,([A-Za-z]*)(?=[.,]|$)"


def maildir_flags(name: str) -> "re.Match[str] | None":
    """Return the match of the flags in a message's name in a Maildir; group 1 is the flags.

    A colon precedes them, or its replacement on file systems without one: `;`, `!`, `-` …
    Fields that a program adds may follow.
    """
    return re.search(_FLAGS, name)


def remove_flags(name: str) -> str:
    """Return the part of a message's name in a Maildir that no program changes."""
    flags = maildir_flags(name)
    return name[: flags.start() if flags else None].partition(",")[0]
