"""A message passes with its verdict; whatever fails, it passes unchanged."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from one_case import each
from waiting import unread, wait_until

import nbspam.cli.classify as classify_module

ROOT = Path(__file__).parents[2]
SPAM = b"From: a@example.org\nSubject: prize\n\nwin a free prize now\n"
HAM = b"From: b@example.org\nSubject: lunch\n\nlunch at noon, see you at the meeting\n"
HEADER = re.compile(
    rb"^X-Nbspam: (spam|ham|unsure), probability=([01]\.\d{6}),(?: reason=\S+,)? version=\S+\n",
    re.M,
)
TEMPFAIL = 75
PROGRAM = [sys.executable, "-m", "nbspam"]


def assert_unchanged(found, message, *parts, code=TEMPFAIL):
    returned, out, err = found
    err = err.lstrip("\n")  # click ends the line of ^C
    assert (returned, out) == (code, message)
    assert "Traceback" not in err
    assert err.startswith("nbspam: ")
    assert err.count("\n") == 1
    for part in parts:
        assert str(part) in err


# What goes well


@each("message, verdict", [(SPAM, "spam"), (HAM, "ham")])
def test_the_message_passes_with_the_verdict_that_classify_prints(
    nbspam, passed, program, model, message, verdict
):
    code, out, err = passed(message, "classify", "--passthrough", "-m", model)
    assert (code, err) == (0, "")
    assert message == HEADER.sub(b"", out)
    header = HEADER.search(out)
    assert header[1].decode() == verdict
    plain = nbspam("classify", "-m", model, stdin=message).out.split("\t")
    assert plain[:2] == [verdict, f"{float(header[2]):.4f}"]
    found = program("classify", "-p", "-m", model, input=message)
    assert (found.code, found.out.encode(), found.err) == (0, out, "")


def test_the_header_has_the_reason_where_the_probability_did_not_decide(nbspam, passed, model):
    raw = "Subject: зима\n\nвсё о погоде и о море\n".encode()
    _, once, _ = passed(raw, "classify", "-p", "-m", model)
    pattern = rb"^X-Nbspam: unsure, probability=0\.[0-4]\d{5}, reason=too-few-known-words, version="
    assert re.search(pattern, once, re.MULTILINE)
    _, twice, _ = passed(once, "classify", "-p", "-m", model)
    assert once == twice
    _, other, _ = passed(raw, "classify", "-p", "-m", model, "--header", "X-Mine")
    plain = nbspam("classify", "-m", model, stdin=raw)
    for marked in (once, other):  # whatever it is called, it is a mark and no word
        assert nbspam("classify", "-m", model, stdin=marked) == plain


def test_every_odd_mail_passes(passed, sample, sms_model):
    for path in sorted((sample / "odd").iterdir()):
        raw = path.read_bytes()
        code, out, _ = passed(raw, "classify", "-p", "-m", sms_model)
        assert code == 0, path.name
        rest = re.sub(rb"X-Nbspam: [^\r\n]*(\r\n|\n|\r)", b"", out)
        assert rest in (raw, b"\n" + raw, raw + b"\n", b"\r\n" + raw), path.name


def test_marks_are_as_asked_for_and_neither_theirs_nor_forged_ones_count(nbspam, passed, model):
    passing = ("classify", "-p", "-m", model)
    forged = b"X-Nbspam: ham, probability=0.000001, version=9\n" + SPAM
    assert passed(SPAM, *passing) == passed(forged, *passing)
    options = ("--subject-tag", "[SPAM]", "--evidence", "5", "--header", "X-Mine")
    _, once, _ = passed(SPAM, *passing, *options)
    assert b"Subject: [SPAM] prize\n" in once
    assert b"X-Mine-Tag: [SPAM]\n" in once
    assert re.search(rb'^X-Mine-Evidence:\s"[^\n]+" [+-]\d+\.\d\d', once, re.M)
    assert once == passed(once, *passing, *options)[1]
    as_json = ("classify", "-m", model, "--format", "json")
    assert nbspam(*as_json, stdin=SPAM) == nbspam(*as_json, stdin=once)
    assert b"[SPAM]" not in passed(HAM, *passing, "--subject-tag", "[SPAM]")[1]
    out = nbspam(*passing, "--evidence", "3", stdin=SPAM).out
    evidence = re.search(r"^X-Nbspam-Evidence:((?:.|\n )*)", out, re.M)[1]
    assert len(re.findall(r'"[^"]+" [+-]\d', evidence)) == 3
    assert '"free' in evidence or "prize" in evidence


def test_an_archive_passes_as_it_is(passed, model):
    raw = b"\x1f\x8b\x08\x00not really\n"
    _, out, _ = passed(raw, "classify", "-p", "-m", model)
    assert HEADER.sub(b"", out) == b"\n" + raw


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc to ask for memory")
@pytest.mark.few(1)
@pytest.mark.parametrize("size", [50 << 20, 200 << 20])
def test_a_message_larger_than_what_is_looked_at_passes_whole_in_bounded_memory(
    model, tmp_path, size
):
    source = tmp_path / "big"
    with source.open("wb") as file:
        file.write(SPAM)
        file.truncate(size)  # a hole: zeros that need no disk
    code = (
        "import pathlib, re, sys, runpy\n"
        "try:\n    runpy.run_module('nbspam', run_name='__main__')\n"
        "finally:\n    status = pathlib.Path('/proc/self/status').read_text()\n"
        "    print(re.search(r'VmHWM:\\s+(\\d+) kB', status)[1], file=sys.stderr)"
    )
    with source.open("rb") as stdin:
        process = subprocess.Popen(
            [sys.executable, "-c", code, "classify", "-p", "-m", str(model)],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"NBSPAM_DEBUG": "1"},  # else it leaves before it can be asked
        )
    with process:
        counted = sum(map(len, iter(lambda: process.stdout.read(1 << 20), b"")))
        kib = int(process.stderr.read().split()[-1])
    assert process.returncode == 0
    assert size < counted < size + 200
    assert 0 < kib < 160 << 10


# What goes wrong


BAD = [
    *("-m nowhere.json", "-m /", "-m {damaged}", "--bogus", "-x", "--passthrough=yes"),
    *("--evidence many", "--header", "--on-error panic", "--spam-cutoff 7", "--header Subject"),
    *("--header X¶Nbspam", "--subject-tag=a\nb", "--subject-tag=", "mail.eml", "--format json"),
    *("--lines", "--input-format tsv", "--input-format tsv --lines"),
    *("--help", "-h", "-ph --exit-code", "--bogus -h", "--version", "-V"),
]


@each("options", BAD)
def test_whatever_fails_the_message_passes_unchanged(passed, model, tmp_path, options):
    damaged = tmp_path / "damaged.json"
    damaged.write_bytes(model.read_bytes()[:300])
    options = [o.format(damaged=damaged).replace("¶", " ") for o in options.split(" ")]
    assert_unchanged(passed(SPAM, "classify", "-p", "-m", model, *options), SPAM)
    arguments = ("--on-error", "deliver", "--passthrough", "-m", model, *options)
    found = passed(SPAM, "classify", *arguments)
    assert_unchanged(found, SPAM, code=75 if "panic" in options else 0)


def test_whatever_the_bytes_they_pass_unchanged(passed):
    raw = b"From x\r\nSubject: a\r\n\r\n\0\r\xff no end"
    assert_unchanged(passed(raw, "classify", "-pm", "nowhere.json"), raw, "nowhere.json")


@each("option", ["-h", "--help", "-V", "--version"])
def test_help_of_the_program_does_not_take_the_place_of_the_message(passed, model, option):
    found = passed(SPAM, option, "classify", "-p", "-m", model)
    assert_unchanged(found, SPAM, f"nbspam: {option} prints")


@pytest.mark.few(1)
@pytest.mark.parametrize("shell", ["{} < /dev/null", "{} <&-"])
def test_help_where_there_is_no_message_to_read(program, shell):
    found = program("classify", "-p", "-h", shell=shell)
    assert (found.code, found.out) == (TEMPFAIL, "")
    assert found.err.count("\n") == 1


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "arguments, code, begin",
    [
        (("classify", "-p", "-h"), 0, "Usage:"),
        (("classify", "-p", "--bogus"), TEMPFAIL, ""),
        (("--version", "classify", "-p"), 0, "nbspam "),
    ],
)
def test_whoever_types_gets_help_and_is_not_waited_for(program, arguments, code, begin):
    ours, theirs = os.openpty()
    found = program(*arguments, stdin=theirs)
    os.close(ours)
    os.close(theirs)
    assert (found.code, found.out[: len(begin)], bool(found.out)) == (code, begin, bool(begin))
    assert code or found.err == ""


@each("error", [TypeError, MemoryError, RecursionError, KeyboardInterrupt, ImportError, OSError])
def test_whatever_is_raised_the_message_passes_unchanged(passed, model, monkeypatch, error):
    def fails(*_):
        raise error("no\nluck")

    monkeypatch.setattr("nbspam.cli.classify.parse", fails)
    for more in ((), ("--exit-code",)):
        assert_unchanged(passed(SPAM, "classify", "-p", "-m", model, *more), SPAM)


def test_an_error_of_our_own_is_one_sentence(nbspam, model, monkeypatch, assert_sentence):
    monkeypatch.setattr("nbspam.scoring.verdict.Verdict.as_line", lambda *_: 1 / 0)
    found = nbspam("classify", "-m", model, stdin=SPAM)
    assert_sentence(found, "internal error (ZeroDivisionError: division by zero)", "report")
    monkeypatch.setenv("NBSPAM_DEBUG", "1")
    found = nbspam("classify", "-m", model, stdin=SPAM)
    assert (found.code, "Traceback" in found.err, found.out) == (1, True, "")


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["click", "nbspam.cli.classify", "nbspam.serving.passthrough"])
def test_the_message_passes_where_a_package_is_missing(model, name):
    code = (
        f"import runpy, sys; sys.modules[{name!r}] = None;"
        "runpy.run_module('nbspam', run_name='__main__')"
    )

    def run(*options):
        command = [sys.executable, "-c", code, "classify", "-m", str(model), *options]
        done = subprocess.run(command, input=SPAM, capture_output=True, timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr.decode()

    assert_unchanged(run("-p"), SPAM, "missing", "reinstall nbspam")
    if name == "click":
        assert run("--exit-code")[:2] == (3, b"")
        assert run()[:2] == (1, b"")


def test_the_script_is_the_function_that_needs_no_click():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert scripts == {"nbspam": "nbspam_main:main"}


# What is full or closed, and what is said of it; nothing can be said on a closed standard error.
STREAMS = [
    ("-p <&-", "standard input is closed"),
    ("--exit-code > /dev/full", "No space left"),
    ("-p > /dev/full", "No space left"),
    ("-p >&-", "standard output is closed"),
    ("-p --on-error deliver --bogus > /dev/full", "No space left"),
    ("-p --bogus > /dev/full", "No space left"),
    *(("-p >&- 2>&-", ""), ("-p --bogus > /dev/full 2> /dev/full", "")),
    *(("--exit-code >&-", "closed"), ("--exit-code --bogus 2>&-", "")),
    ("--exit-code --bogus 2> /dev/full", ""),
]


@pytest.mark.few(3)
@pytest.mark.parametrize("shell, said", STREAMS)
def test_streams_that_are_closed_or_full(program, model, shell, said):
    message = SPAM if "<&-" not in shell else b""
    found = program("classify", "-m", model, shell="{} " + shell, input=message)
    assert (found.code, found.out) == (TEMPFAIL if shell[:2] == "-p" else 3, "")
    assert said in found.err
    assert found.err.count("\n") == bool(said)


@pytest.mark.parametrize("options, code", [("-p", TEMPFAIL), ("--exit-code TABLE TABLE", 3)])
def test_a_reader_that_goes_away(program, model, table, options, code):
    command = ("classify", "-m", model, *options.replace("TABLE", str(table)).split())
    found = program(*command, shell="({}; echo $? >&2) | true", input=SPAM)
    assert found.err.split("\n")[-2] == str(code)
    assert "Traceback" not in found.err
    assert code == TEMPFAIL or found.err == "3\n"


def test_a_writer_that_is_slow_and_does_not_block(model):
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    command = [*PROGRAM, "classify", "-p", "-m", str(model)]
    process = subprocess.Popen(command, stdin=reading, stdout=subprocess.PIPE)
    os.close(reading)
    for piece in (SPAM[:30], SPAM[30:]):
        os.write(writing, piece)
        wait_until(lambda: not unread(writing))
    os.close(writing)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, HEADER.sub(b"", out)) == (0, SPAM)


def test_an_interrupt_while_the_message_comes_in(model):
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen([*PROGRAM, "classify", "-p", "-m", str(model)], **pipes)
    process.stdin.write(SPAM[:30])
    process.stdin.flush()
    wait_until(lambda: not unread(process.stdin))  # it has loaded and waits for more
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(SPAM[30:], timeout=60)
    assert_unchanged((process.returncode, out, err.decode()), SPAM, "interrupted")


def test_a_user_without_a_home_is_told_to_name_the_model(passed, monkeypatch):
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert_unchanged(passed(SPAM, "classify", "-p"), SPAM, "--model")


@each(
    "option",
    [("--header", "X-A"), ("--subject-tag", "x"), ("--evidence", 3), ("--on-error", "deliver")],
)
def test_what_belongs_to_a_passage_is_refused_without(nbspam, model, assert_sentence, option):
    found = nbspam("classify", "-m", model, *option, stdin=SPAM)
    assert_sentence(found, option[0], "--passthrough", code=2)


# Exit codes


@each("more", [(), ("-p",)])
def test_the_exit_code_is_the_verdict_if_that_is_asked_for(nbspam, model, more):
    unsure = ("--spam-cutoff", "1", "--ham-cutoff", "0")
    for message, options, code in ((SPAM, (), 0), (HAM, (), 1), (SPAM, unsure, 2)):
        options = ("-m", model, *options, *more)
        found = nbspam("classify", "--exit-code", *options, stdin=message)
        assert (found.code, found.err) == (code, "")
        assert ("spam", "ham", "unsure")[code] in found.out
        assert nbspam("classify", *options, stdin=message).code == 0


def test_unsure_is_2_and_marked_with_the_default_cut_offs(nbspam, model):
    message = b"Subject: lunch\n\nfree notes for the winner of the meeting\n"
    found = nbspam("classify", "--exit-code", "-m", model, stdin=message)
    verdict, probability, _ = found.out.split("\t")
    assert (found.code, verdict) == (2, "unsure")
    assert 0.5 < float(probability) < 0.9
    options = ("--subject-tag", "[SPAM]")  # which unsure mail does not get
    for more, code in (((), 0), (("--exit-code",), 2)):
        found = nbspam("classify", "-p", "-m", model, *options, *more, stdin=message)
        assert (found.code, found.err) == (code, "")
        head, mark, body = found.out.partition("X-Nbspam: unsure, probability=0.")
        assert (head, mark != "") == ("Subject: lunch\n", True)
        assert body.endswith("\n\nfree notes for the winner of the meeting\n")
    options = ("--spam-cutoff", "0.5")
    found = nbspam("classify", "-p", "--exit-code", "-m", model, *options, stdin=message)
    assert (found.code, "\nX-Nbspam: spam, " in found.out) == (0, True)


@pytest.fixture
def places(tmp_path):
    """Return spam, ham, an empty folder, and a folder with a link that leads nowhere."""
    found = {name: tmp_path / name for name in ("spam", "ham", "empty", "dangling")}
    found["spam"].write_bytes(SPAM)
    found["ham"].write_bytes(HAM)
    found["empty"].mkdir()
    found["dangling"].mkdir()
    (found["dangling"] / "a").write_bytes(SPAM)
    (found["dangling"] / "b").symlink_to("nowhere")
    return found


@each(
    "arguments, code",
    [
        ("{spam} {ham}", 1),
        ("{ham} {spam}", 0),
        ("-m nowhere.json", 3),
        ("--bogus", 3),
        ("--spam-cutoff 7", 3),
        ("nowhere.eml", 3),
        ("--format xml", 3),
        ("{empty}", 3),
        ("{spam} {dangling}", 3),
    ],
)
def test_the_last_message_counts_and_any_error_is_3(nbspam, model, places, arguments, code):
    arguments = arguments.format(**places).split()
    found = nbspam("classify", "--exit-code", "-m", model, *arguments, stdin=SPAM)
    assert (found.code, found.err != "") == (code, code == 3)


@each("error", [TypeError, MemoryError, KeyboardInterrupt, EOFError])
def test_what_is_raised_is_3(nbspam, model, monkeypatch, error):
    def fails(*_):
        raise error

    monkeypatch.setattr(classify_module, "_verdict_code", fails)
    assert nbspam("classify", "--exit-code", "-m", model, stdin=SPAM).code == 3


def test_three_classes_are_spam_or_not(nbspam, three_classes, make_model):
    path = make_model(three_classes)
    for text, code in ((b"free prize winner", 0), (b"new shoes", 1), (b"lunch at noon", 1)):
        assert code == nbspam("classify", "--exit-code", "-m", path, stdin=text).code
    out = nbspam("classify", "-p", "-m", path, stdin=b"new shoes in the shop").out
    assert out.startswith("X-Nbspam: promo, probability=0.")


def test_no_class_that_counts_as_spam_is_an_error(
    nbspam, passed, tmp_path, make_model, assert_sentence
):
    table = tmp_path / "abc.tsv"
    table.write_text("".join(f"{c}\ttext {c} number {i}\n" for i in range(4) for c in "abc"))
    path = make_model(table)
    found = nbspam("classify", "--exit-code", "-m", path, stdin=b"text a")
    assert_sentence(found, "--spam-label", code=3)
    assert_unchanged(passed(SPAM, "classify", "-p", "--exit-code", "-m", path), SPAM)
    found = nbspam("classify", "-p", "-m", path, "--subject-tag", "[S]", stdin=b"text a number 1")
    assert (found.code, "[S]" in found.out) == (0, False)


# Beside bogofilter

BOGOFILTER = shutil.which("bogofilter")
BESIDE = [
    SPAM,
    SPAM.replace(b"\n", b"\r\n"),
    b"Subject: a\rb\n\nc\rd\n",
    b"Subject: gr\xfc\xdfe\n\n\xff\xfe",
    b"Subject: a\n\nb\0c\0",
    b"Subject: a\n\nno end",
    b"Subject: a\n b\n\tc\n\n",
    b"Subject: a\n \nTo: b\n\nc",
    b"From a@example.org Mon Jan  1 10:00:00 2024\nSubject: a\n\nb\n",
    b"junk\nSubject: a\n\nb\n",
    b"\nno header\n",
    b"\n",
    b"",
    b"MARK: Spam\nSubject: a\nMARK:\n x\n\ty\n\nb\n",
    b"X-A: b\n" * 1000 + b"\nc",
]


@pytest.mark.skipif(BOGOFILTER is None, reason="bogofilter is not installed")
@each("message", BESIDE)
def test_the_bytes_are_where_bogofilter_has_them(passed, model, tmp_path, message):
    """The same bytes at the same places, but for what bogofilter does otherwise.

    It ends a last line that has no end (here too, where that is all), and glues its header to it if
    that is a header's; adds an empty line after a header that ends without one; leaves forgeries in
    other letter case; puts its header below junk and below the lines of a text without a header.
    """
    folder = ("-d", str(tmp_path))
    if not (tmp_path / "wordlist.db").exists():
        subprocess.run([BOGOFILTER, *folder, "-s"], input=SPAM, check=True)
    theirs = subprocess.run(
        [BOGOFILTER, *folder, "-p", "-e"],
        input=message.replace(b"MARK", b"X-Bogosity"),
        capture_output=True,
        check=True,
    ).stdout
    _, ours, _ = passed(message.replace(b"MARK", b"X-Nbspam"), "classify", "-p", "-m", model)
    if message and not message.endswith(b"\n"):
        theirs = theirs.removesuffix(b"\n")
    wanted = re.sub(rb"X-Bogosity:[^\r\n]*", b"M", theirs)
    assert wanted == re.sub(rb"X-Nbspam:[^\r\n]*", b"M", ours)
