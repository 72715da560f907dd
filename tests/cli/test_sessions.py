"""Sessions at a shell: what is typed, and all that is answered, in tests/golden/cli/sessions.

`NBSPAM_GOLDEN=new pytest -n0 tests/cli/test_sessions.py` writes the answers anew.

A session begins with `== title`, in a new folder with the files of `shelf`.  NBSPAM_MODEL names
model.json there; older, newer and first.json are of other tokenizer rules.  A line that begins with
`$ ` is typed, and `> ` continues it.  What it prints is indented by two blanks, `! ` begins a line
of standard error, and `[n]` is an exit code other than 0.  `…` stands for any text, also of several
lines if it stands alone, `¬` for a missing line end.

Numbers of many digits are shown with six.  Where a number has three digits or more after its point
the last may differ by one, as it does between processors and versions of libraries, and bytes by a
hundredth, as a model is longer by the digits that its numbers need.

`nbspam` is run in this process, with what comes before its pipe as standard input.  So are `json`,
which prints values of a document; `same`, which prints the names of the values that two documents
do not share; `page`, which prints the texts that a page lacks, a harmless one; and `change`, which
puts NEW in the place of OLD in a file that has it.  All else is a shell's, and so are the program
itself where it is called $NBSPAM, and $ALONE, a Python that has click alone.  A session whose title
ends with `(long)` is left to the long tests.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import click
import pytest
from harmless_pages import assert_harmless
from running import ROOT, run, run_raw, write_messages, write_three

from nbspam import __version__
from nbspam.tokens.tokenized import TOKENIZER_VERSION

SESSIONS = ROOT / "tests" / "golden" / "cli" / "sessions"
COMMAND = re.compile(
    r"(?:(?P<before>.*) \| )?(?P<names>(?:[A-Z_]+=\S* )*)nbspam(?P<words>(?: .*?)?)"
    r"(?: < (?P<source>\S+))?(?: > (?P<sink>\S+))?(?P<after> \| .*)?",
    re.S,
)
KNOWN_RULES = {
    str(TOKENIZER_VERSION + i): f"${n}" for i, n in ((-1, "OLDER"), (0, "RULES"), (1, "NEWER"))
}
OF_RULES = re.compile(r"((?:rules['\"]?:?|this program has|older.json has|program's) )(\d+)")
# Times that something took, and how versions of click quote and what they suggest.
VARYING = re.compile(
    r"(milliseconds=)[\d.]+|(^\S+:(?:sum|evidence) .*\S +?) *\d+\.\d$"
    r"|(no such (?:option|command))(?:: | ')([^';\n]*).*(?=; see nbspam)",
    re.MULTILINE,
)
MAILS = {
    "spam.eml": "From: a@example.org\nMessage-ID: <1@example.org>\nSubject: prize\n\n"
    "win a free prize now\n",
    "ham.eml": "From: b@example.org\nSubject: lunch\n\nlunch at noon, see you at the meeting\n",
    "unsure.eml": "Subject: lunch\n\nfree notes for the winner of the meeting\n",
}
NEARLY = re.compile(
    r"(\d+\.\d{3,}(?:e[+-]\d+)?|\d[\d,]*(?=(?: of [\d,]+)? bytes)"
    r'|(?<="bytes": )\d+|(?<="bytes_before": )\d+)'
)
STEP = re.compile(r"(\$ .*\n(?:> .*\n)*)((?:(?:  |! |\[).*\n)*)((?:\n|#.*\n)*)")


def sessions():
    for path in sorted(SESSIONS.glob("*.txt")):
        for text in re.split(r"^(?=== )", path.read_text("utf-8"), flags=re.M)[1:]:
            title = text.partition("\n")[0][3:]
            marks = [pytest.mark.long] if title.endswith("(long)") else []
            yield pytest.param(path, text, id=f"{path.stem}: {title}", marks=marks)


@pytest.fixture(scope="session")
def shelf(tmp_path_factory):
    """Return a folder with what sessions begin with."""
    folder = tmp_path_factory.mktemp("shelf")
    tables = {"model": write_messages(folder), "three": write_three(folder)}
    rows = (ROOT / "sample_data" / "sms.tsv").read_text("utf-8").splitlines(keepends=True)
    for name, n in (("sms.tsv", 100), ("base.tsv", 250)):
        (folder / name).write_text("".join(rows[:n]), "utf-8")
    for name, table in (tables | {"sms": folder / "base.tsv"}).items():
        assert run(["train", table, "-q", "-m", folder / f"{name}.json"])[::2] == (0, "")
    for name, text in MAILS.items():
        (folder / name).write_text(text)
    (folder / "alone").mkdir()
    for path in (ROOT / "nbspam", Path(click.__file__).parent):
        (folder / "alone" / path.name).symlink_to(path)
    for name, rules in {
        "older": TOKENIZER_VERSION - 1,
        "newer": TOKENIZER_VERSION + 1,
        "first": 1,
    }.items():
        shutil.copy(folder / "model.json", folder / f"{name}.json")
        change(folder / f"{name}.json", f'"rules": {TOKENIZER_VERSION}}}', f'"rules": {rules}}}')
    return folder


@pytest.mark.parametrize("path, text", list(sessions()))
def test_a_session(path, text, shelf, tmp_path, monkeypatch):
    folder = tmp_path / "folder"
    folder.mkdir()
    for file in shelf.glob("*.*"):
        if file.name in ("model.json", "spam.eml") or file.name in text:
            shutil.copy(file, folder)
    monkeypatch.chdir(folder)
    (folder / "sample_data").symlink_to(ROOT / "sample_data")
    own = {"HOME": tmp_path / "home", "PWD": folder, "NBSPAM_MODEL": "model.json"}
    own |= {"LOGNAME": "hal", "RULES": TOKENIZER_VERSION}
    own |= {"PYTHONWARNINGS": "error"}  # of that program
    own["VERSION"] = __version__
    for name, value in own.items():
        monkeypatch.setenv(name, str(value))
    python = shlex.quote(sys.executable)
    alone = f"env PYTHONPATH={shlex.quote(str(shelf / 'alone'))} {python} -S"
    programs = {"NBSPAM": f"{python} -m nbspam", "ALONE": alone}
    found, *steps = re.split(r"^(?=\$ )", text, flags=re.M)
    for step in steps:
        typed, expected, rest = STEP.fullmatch(step).groups()
        line = re.sub(r"^(\$|>) ", "", typed, flags=re.M).rstrip("\n")
        said = answered(re.sub(r"\$(NBSPAM|ALONE)\b", lambda m: programs[m[1]], line))
        places = {tmp_path / "home": "$HOME", folder: "$PWD", f"={__version__}": "=$VERSION"}
        places[python] = "$PYTHON"
        for place, name in places.items():
            said = said.replace(str(place), name)
        said = OF_RULES.sub(lambda m: m[1] + KNOWN_RULES.get(m[2], m[2]), said)
        found += typed + (expected if matches(expected, said) else said) + rest
    if found != text and os.environ.get("NBSPAM_GOLDEN") == "new":
        path.write_text(path.read_text("utf-8").replace(text, found), "utf-8")
    assert found == text


def matches(expected, said):
    """Return whether what is said is what is expected, but for the ends of numbers."""
    several = re.escape("  …\n")
    words, numbers = NEARLY.split(expected)[::2], NEARLY.findall(expected)
    texts = (re.escape(w).replace(several, "(?:.*\n)*").replace("…", ".*") for w in words)
    found = re.fullmatch(r"(\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?)".join(texts), said)
    return found is not None and all(map(near, numbers, found.groups()))


def near(expected, said):
    """Return whether the last digit of a fraction differs by one at most, or bytes by 1 %."""
    number, other = (Decimal(text.replace(",", "")) for text in (expected, said))
    last = number.as_tuple().exponent
    most = Decimal(10) ** last if last < 0 else number / 100
    return last == other.as_tuple().exponent and abs(number - other) <= most


def test_numbers_of_a_session_may_differ_at_their_ends():
    words = (
        "  p={}, {}\n  8 of 30 words, {} of 9,424 bytes\n  {{'bytes': {}, 'n': 9424}}\n  …\n  7 …\n"
    )
    words = words.replace("'", '"')
    usual = ("0.9961", "1.25000e-07", "8,963", "9424")
    for *numbers, is_same in (
        ("0.9962", "1.25001e-07", "8,971", "9432", True),
        *(("0.9963", *usual[1:], False), ("0.996", *usual[1:], False), (*usual[:3], "9624", False)),
        ("0.9961", "1.25000e-08", "8,963", "9424", False),
    ):
        said = words.format(*numbers).replace("  …\n", "  a\n  b\n").replace("…", "c")
        assert matches(words.format(*usual), said) == is_same
        assert not matches(words.format(*usual), said.replace("30", "31"))


def answered(line):
    """Return what a line prints, as a golden file has it."""
    parsed = COMMAND.fullmatch(line)
    if parsed is None:
        words = shlex.split(os.path.expandvars(line))
        if words[0] in BUILT_IN:
            return shown(BUILT_IN[words[0]](*words[1:]), "", 0)
        done = subprocess.run(["sh", "-c", line], stdin=subprocess.DEVNULL, capture_output=True)
        return shown(done.stdout, done.stderr.decode(), done.returncode)
    before, names, words, source, sink, after = parsed.groups()
    stdin = Path(source).read_bytes() if source else b""
    if before:
        stdin = subprocess.run(["sh", "-c", before], capture_output=True, check=True).stdout
    with pytest.MonkeyPatch.context() as patch:
        for name, _, value in (word.partition("=") for word in shlex.split(names)):
            patch.setenv(name, os.path.expandvars(value))
        code, out, err = run_raw(map(os.path.expandvars, shlex.split(words)), stdin)
    if sink:
        Path(sink).write_bytes(out)
        out = b""
    if after and after.startswith(" | json"):
        out = picked(out.decode(), *shlex.split(after)[2:])
    elif after:
        out = subprocess.run(["sh", "-c", after[3:]], input=out, capture_output=True).stdout
    return shown(out, err.decode(), code)


def shown(out, err, code):
    lines = [f"  {line}" for line in printable(out if isinstance(out, str) else out.decode())]
    lines += [f"! {line}" for line in printable(err)]
    return "".join(f"{line}\n" for line in [*lines, *([f"[{code}]"] if code else [])])


def printable(text):
    """Return the lines of a text, what commands a terminal as an escape."""
    text = VARYING.sub(lambda m: (m[1] or m[2] or f"{m[3]} '{m[4]}'") + "…", text)
    text = re.sub(r"\d+\.\d{8,}(e-\d+)?", lambda m: f"{float(m[0]):.6g}", text)
    if text and not text.endswith("\n"):
        text += "¬\n"
    kept = (c if c.isprintable() or c in "\t\n" else ascii(c)[1:-1] for c in text)
    return "".join(kept).split("\n")[:-1]


def picked(text, *paths):
    """Return the values at these paths, such as `words.0.token`; without one the whole document."""
    try:
        documents = [json.loads(text)]
    except json.JSONDecodeError:  # a line each
        documents = list(map(json.loads, text.splitlines()))
    found = []
    for document in documents:
        values = {}
        for path in paths:
            at = document
            with suppress(KeyError):
                for key in path.split("."):
                    at = at[int(key)] if isinstance(at, list) else at[key]
                values[path] = at
        found.append(json.dumps(values if paths else document, ensure_ascii=False))
    return "".join(f"{line}\n" for line in found)


def change(name, old, new):
    text = Path(name).read_text("utf-8")
    assert old in text, f"{old} is not in {name}"
    Path(name).write_text(text.replace(old, new), "utf-8")
    return ""


def same(one, other, *keys):
    """Return the names of the values that two documents do not share."""
    both = [json.loads(Path(name).read_text("utf-8")) for name in (one, other)]
    return "".join(f"{key}\n" for key in keys if both[0][key] != both[1][key])


def page(name, *texts):
    """Return the texts that a page lacks, which must be harmless."""
    has = assert_harmless(Path(name).read_text("ascii")).text
    return "".join(f"{text}\n" for text in texts if text not in has)


BUILT_IN = {
    "change": change,
    "page": page,
    "same": same,
    "json": lambda name, *paths: picked(Path(name).read_text(), *paths),
}
