"""A message passes with its verdict; whatever fails, it passes unchanged."""

import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from many_cases import in_turn
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


def by_program(message, *arguments, program=("-m", "nbspam")):
    """Return the same as the fixture `passed`, of a program of its own."""
    done = subprocess.run(
        [sys.executable, *program, *map(str, arguments)],
        input=message,
        capture_output=True,
        timeout=60,
        check=False,
        env=os.environ | {"PYTHONWARNINGS": "error"},
    )
    return done.returncode, done.stdout, done.stderr.decode()


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


def test_the_message_passes_with_its_verdict(model):
    for message, verdict in ((SPAM, b"spam"), (HAM, b"ham")):
        code, out, err = by_program(message, "classify", "-p", "-m", model)
        assert (code, err) == (0, "")
        assert HEADER.search(out)[1] == verdict
        assert message == HEADER.sub(b"", out)


def test_the_header_has_the_reason_where_the_probability_did_not_decide(nbspam, passed, model):
    raw = "Subject: зима\n\nвсё о погоде и о море\n".encode()
    _, once, _ = passed(raw, "classify", "-p", "-m", model)
    pattern = rb"^X-Nbspam: unsure, probability=0\.[0-4]\d{5}, reason=too-few-known-words, version="
    assert re.search(pattern, once, re.MULTILINE)
    _, twice, _ = passed(once, "classify", "-p", "-m", model)
    assert once == twice
    _, other, _ = passed(raw, "classify", "-p", "-m", model, "--header", "X-Mine")
    for marked in (once, other):  # whatever it is called, it is a mark and no word
        assert nbspam("classify", "-m", model, stdin=raw) == nbspam(
            "classify", "-m", model, stdin=marked
        )


def test_the_probability_is_the_one_that_classify_prints(nbspam, model):
    plain = nbspam("classify", "-m", model, stdin=SPAM).out.split("\t")
    out = nbspam("classify", "--passthrough", "-m", model, stdin=SPAM).out.encode()
    assert plain[:2] == [HEADER.search(out)[1].decode(), f"{float(HEADER.search(out)[2]):.4f}"]


def test_every_odd_mail_passes(passed, sample, sms_model):
    for path in sorted((sample / "odd").iterdir()):
        raw = path.read_bytes()
        code, out, _ = passed(raw, "classify", "-p", "-m", sms_model)
        assert code == 0, path.name
        rest = re.sub(rb"X-Nbspam: [^\r\n]*(\r\n|\n|\r)", b"", out)
        assert rest in (raw, b"\n" + raw, raw + b"\n", b"\r\n" + raw), path.name


def test_a_forged_verdict_neither_stays_nor_counts(nbspam, model):
    plain = nbspam("classify", "-p", "-m", model, stdin=SPAM).out
    forged = b"X-Nbspam: ham, probability=0.000001, version=9\n" + SPAM
    assert plain == nbspam("classify", "-p", "-m", model, stdin=forged).out


def test_the_verdict_of_a_passed_message_is_the_same(nbspam, model):
    options = ("--subject-tag", "[SPAM]", "--evidence", "5", "--header", "X-Mine")
    once = nbspam("classify", "-p", "-m", model, *options, stdin=SPAM).out.encode()
    assert b"Subject: [SPAM] prize\n" in once
    assert b"X-Mine-Tag: [SPAM]\n" in once
    assert re.search(rb'^X-Mine-Evidence:\s"[^\n]+" [+-]\d+\.\d\d', once, re.M)
    assert once == nbspam("classify", "-p", "-m", model, *options, stdin=once).out.encode()
    as_json = ("classify", "-m", model, "--format", "json")
    assert nbspam(*as_json, stdin=SPAM) == nbspam(*as_json, stdin=once)


def test_ham_is_not_tagged(nbspam, model):
    out = nbspam("classify", "-p", "-m", model, "--subject-tag", "[SPAM]", stdin=HAM).out
    assert "[SPAM]" not in out


def test_evidence_has_as_many_words_as_asked(nbspam, model):
    out = nbspam("classify", "-p", "-m", model, "--evidence", "3", stdin=SPAM).out
    evidence = re.search(r"^X-Nbspam-Evidence:((?:.|\n )*)", out, re.M)[1]
    assert len(re.findall(r'"[^"]+" [+-]\d', evidence)) == 3
    assert '"free' in evidence or "prize" in evidence


def test_an_archive_passes_as_it_is(passed, model):
    raw = b"\x1f\x8b\x08\x00not really\n"
    _, out, _ = passed(raw, "classify", "-p", "-m", model)
    assert HEADER.sub(b"", out) == b"\n" + raw


def test_three_classes(nbspam, three_classes, make_model):
    path = make_model(three_classes)
    out = nbspam("classify", "-p", "-m", path, stdin=b"new shoes in the shop").out
    assert out.startswith("X-Nbspam: promo, probability=0.")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc to ask for memory")
def test_a_message_larger_than_what_is_looked_at_passes_whole_in_bounded_memory(model, tmp_path):
    size = 200 << 20
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
    command = [sys.executable, "-c", code, "classify", "-p", "-m", str(model)]
    count = "import sys; print(sum(map(len, iter(lambda: sys.stdin.buffer.read(1 << 20), b''))))"
    with source.open("rb") as stdin:
        first = subprocess.Popen(
            command,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=os.environ | {"NBSPAM_DEBUG": "1"},  # else it leaves before it can be asked
        )
        counted = subprocess.run(
            [sys.executable, "-c", count], stdin=first.stdout, capture_output=True, check=True
        )
        first.stdout.close()
        kib = int(first.stderr.read().split()[-1])
        first.stderr.close()
        assert first.wait(60) == 0
    assert size < int(counted.stdout) < size + 200
    assert 0 < kib < 160 << 10


# What goes wrong


BAD = {
    "no model": ("-m", "nowhere.json"),
    "a folder for a model": ("-m", "/"),
    "a damaged model": ("-m", "{damaged}"),
    "no such option": ("--bogus",),
    "no such option, short": ("-x",),
    "a value for a flag": ("--passthrough=yes",),
    "a value that is none": ("--evidence", "many"),
    "a value that is missing": ("--header",),
    "no such choice": ("--on-error", "panic"),
    "cut-offs that make no sense": ("--spam-cutoff", "7"),
    "a header with a meaning": ("--header", "Subject"),
    "a header that is none": ("--header", "X Nbspam"),
    "a tag with a line end": ("--subject-tag", "a\nb"),
    "an empty tag": ("--subject-tag", ""),
    "a source": ("mail.eml",),
    "JSON": ("--format", "json"),
    "lines": ("--lines",),
    "input-format": ("--input-format", "tsv"),
    "two formats": ("--input-format", "tsv", "--lines"),
    "help": ("--help",),
    "help, short": ("-h",),
    "help, among others": ("-ph", "--exit-code"),
    "help, of a wrong command line": ("--bogus", "-h"),
    "the version": ("--version",),
    "the version, short": ("-V",),
}


@in_turn("case", BAD)
def test_whatever_fails_the_message_passes_unchanged(nbspam, model, tmp_path, case):
    damaged = tmp_path / "damaged.json"
    damaged.write_bytes(model.read_bytes()[:300])
    arguments = ["-m", str(model), *(a.format(damaged=damaged) for a in BAD[case])]
    found = nbspam("classify", "-p", *arguments, stdin=SPAM)
    assert_unchanged((found.code, found.out.encode(), found.err), SPAM)
    found = nbspam("classify", "--on-error", "deliver", "--passthrough", *arguments, stdin=SPAM)
    wanted = 75 if case == "no such choice" else 0
    assert_unchanged((found.code, found.out.encode(), found.err), SPAM, code=wanted)


@in_turn("option", ["-h", "--help", "-V", "--version"])
def test_help_of_the_program_does_not_take_the_place_of_the_message(nbspam, model, option):
    found = nbspam(option, "classify", "-p", "-m", model, stdin=SPAM)
    assert_unchanged((found.code, found.out.encode(), found.err), SPAM, f"nbspam: {option} prints")


@pytest.mark.few(1)
@pytest.mark.parametrize("shell", ["{} < /dev/null", "{} <&-"])
def test_help_where_there_is_no_message_to_read(program, shell):
    found = program("classify", "-p", "-h", shell=shell)
    assert (found.code, found.out) == (TEMPFAIL, "")
    assert found.err.count("\n") == 1


def test_whoever_types_gets_help(nbspam, model):
    assert "Usage:" in nbspam("classify", "-h", stdin=SPAM).out
    ours, theirs = os.openpty()
    for arguments in (("classify", "-p", "-h"), ("--version", "classify", "-p")):
        done = subprocess.run(
            [sys.executable, "-m", "nbspam", *arguments],
            stdin=theirs,
            capture_output=True,
            timeout=20,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert done.stdout.startswith((b"Usage:", b"nbspam "))
    os.close(ours)
    os.close(theirs)


def test_it_passes_unchanged_whatever_the_bytes(passed):
    raw = b"From x\r\nSubject: a\r\n\r\n\0\r\xff no end"
    assert_unchanged(passed(raw, "classify", "-pm", "nowhere.json"), raw, "nowhere.json")


@in_turn("error", [TypeError, MemoryError, RecursionError, KeyboardInterrupt, ImportError, OSError])
def test_whatever_is_raised_the_message_passes_unchanged(nbspam, model, monkeypatch, error):
    def fails(*_):
        raise error("no\nluck")

    monkeypatch.setattr("nbspam.cli.passing.parse", fails)
    found = nbspam("classify", "-p", "-m", model, stdin=SPAM)
    assert_unchanged((found.code, found.out.encode(), found.err), SPAM)
    found = nbspam("classify", "-p", "--exit-code", "-m", model, stdin=SPAM)
    assert_unchanged((found.code, found.out.encode(), found.err), SPAM)


def test_an_error_of_our_own_is_one_sentence(nbspam, model, monkeypatch, assert_sentence):
    monkeypatch.setattr(classify_module, "_line", lambda *_: 1 / 0)
    found = nbspam("classify", "-m", model, stdin=SPAM)
    assert_sentence(found, "internal error (ZeroDivisionError: division by zero)", "report")
    monkeypatch.setenv("NBSPAM_DEBUG", "1")
    found = nbspam("classify", "-m", model, stdin=SPAM)
    assert (found.code, "Traceback" in found.err, found.out) == (1, True, "")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "name", ["click", "nbspam.cli.classify", "nbspam.cli.passing", "nbspam.serving.passthrough"]
)
def test_the_message_passes_where_a_package_is_missing(model, name):
    code = (
        f"import runpy, sys; sys.modules[{name!r}] = None;"
        "runpy.run_module('nbspam', run_name='__main__')"
    )
    command = ("classify", "-m", model)
    found = by_program(SPAM, *command, "-p", program=("-c", code))
    assert_unchanged(found, SPAM, "missing", "reinstall nbspam")
    if name == "click":
        found = by_program(SPAM, *command, "--exit-code", program=("-c", code))
        assert (found[0], found[1]) == (3, b"")
        found = by_program(SPAM, *command, program=("-c", code))
        assert (found[0], found[1]) == (1, b"")


def test_the_script_is_the_function_that_needs_no_click():
    import tomllib

    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    assert scripts == {"nbspam": "nbspam_main:main"}


SHELL = '{} classify -p -m "$MODEL" '


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "shell, said",
    [
        (">&-", "standard output is closed"),
        ("--on-error deliver --bogus > /dev/full", "No space left"),
        ("<&-", "standard input is closed"),
        ("> /dev/full", "No space left"),
        ("--bogus > /dev/full", "No space left"),
        (">&- 2>&-", ""),
        ("--bogus > /dev/full 2> /dev/full", ""),
    ],
)
def test_streams_that_are_closed_or_full(program, model, shell, said):
    found = program(
        shell=SHELL + shell, env={"MODEL": str(model)}, input=SPAM if "<&-" not in shell else b""
    )
    assert found.code == TEMPFAIL
    assert said in found.err
    assert found.out == ""
    assert found.err.count("\n") == bool(said)


def test_a_reader_that_goes_away(program, model):
    shell = '({} classify -p -m "$MODEL"; echo $? >&2) | true'
    found = program(shell=shell, env={"MODEL": str(model)}, input=SPAM)
    assert found.err.split("\n")[-2] == "75"
    assert "Traceback" not in found.err


def test_a_writer_that_is_slow_and_does_not_block(model):
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    process = subprocess.Popen(
        [sys.executable, "-m", "nbspam", "classify", "-p", "-m", str(model)],
        stdin=reading,
        stdout=subprocess.PIPE,
    )
    os.close(reading)
    for piece in (SPAM[:30], SPAM[30:]):
        os.write(writing, piece)
        wait_until(lambda: not unread(writing))
    os.close(writing)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert HEADER.sub(b"", out) == SPAM


def test_an_interrupt_while_the_message_comes_in(model):
    process = subprocess.Popen(
        [sys.executable, "-m", "nbspam", "classify", "-p", "-m", str(model)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdin.write(SPAM[:30])
    process.stdin.flush()
    wait_until(lambda: not unread(process.stdin))  # it has loaded and waits for more
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(SPAM[30:], timeout=60)
    assert_unchanged((process.returncode, out, err.decode()), SPAM, "interrupted")


def test_a_terminal_is_not_waited_for(model):
    ours, theirs = os.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "nbspam", "classify", "-p", "--bogus"],
        stdin=theirs,
        capture_output=True,
        timeout=20,
        check=False,
    )
    os.close(ours)
    os.close(theirs)
    assert (done.returncode, done.stdout) == (TEMPFAIL, b"")


def test_a_user_without_a_home_is_told_to_name_the_model(nbspam, monkeypatch):
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    found = nbspam("classify", "-p", stdin=SPAM)
    assert_unchanged((found.code, found.out.encode(), found.err), SPAM, "--model")


@in_turn(
    "option",
    [("--header", "X-A"), ("--subject-tag", "x"), ("--evidence", 3), ("--on-error", "deliver")],
)
def test_what_belongs_to_a_passage_is_refused_without(nbspam, model, assert_sentence, option):
    found = nbspam("classify", "-m", model, *option, stdin=SPAM)
    assert_sentence(found, option[0], "--passthrough", code=2)


# Exit codes


def test_the_exit_code_is_the_verdict(nbspam, model):
    for message, code in ((SPAM, 0), (HAM, 1)):
        for more in ((), ("-p",)):
            found = nbspam("classify", "--exit-code", "-m", model, *more, stdin=message)
            assert (code, "") == (found.code, found.err)
    unsure = ("--spam-cutoff", "1", "--ham-cutoff", "0")
    for more in ((), ("-p",)):
        found = nbspam("classify", "--exit-code", "-m", model, *unsure, *more, stdin=SPAM)
        assert (found.code, re.search("unsure", found.out)[0]) == (2, "unsure")


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
    assert found.code == 0
    assert "\nX-Nbspam: spam, " in found.out


def test_without_it_the_exit_code_is_0(nbspam, model):
    for message, more in itertools.product((SPAM, HAM), ((), ("-p",))):
        assert nbspam("classify", "-m", model, *more, stdin=message).code == 0


def test_with_several_messages_the_last_one_counts(nbspam, model, tmp_path):
    for name, message in (("a", SPAM), ("b", HAM)):
        (tmp_path / name).write_bytes(message)
    a, b = tmp_path / "a", tmp_path / "b"
    assert nbspam("classify", "--exit-code", "-m", model, a, b).code == 1
    assert nbspam("classify", "--exit-code", "-m", model, b, a).code == 0


@pytest.fixture
def places(tmp_path):
    """Return an empty folder, a message, and a folder with a link that leads nowhere."""
    found = {name: tmp_path / name for name in ("empty", "good", "dangling")}
    found["empty"].mkdir()
    found["good"].write_bytes(SPAM)
    found["dangling"].mkdir()
    (found["dangling"] / "a").write_bytes(SPAM)
    (found["dangling"] / "b").symlink_to("nowhere")
    return found


@in_turn(
    "arguments",
    [
        ("-m", "nowhere.json"),
        ("--bogus",),
        ("--spam-cutoff", "7"),
        ("nowhere.eml",),
        ("--format", "xml"),
        ("{empty}",),
        ("{good}", "{dangling}"),
    ],
)
def test_any_error_is_3(nbspam, model, places, arguments):
    arguments = [argument.format(**places) for argument in arguments]
    found = nbspam("classify", "--exit-code", "-m", model, *arguments, stdin=SPAM)
    assert found.code == 3
    assert found.err


@in_turn("error", [TypeError, MemoryError, KeyboardInterrupt, EOFError])
def test_what_is_raised_is_3(nbspam, model, monkeypatch, error):
    def fails(*_):
        raise error

    monkeypatch.setattr(classify_module, "_line", fails)
    assert nbspam("classify", "--exit-code", "-m", model, stdin=SPAM).code == 3


@pytest.mark.few(1)
@pytest.mark.parametrize("shell", [">&-", "> /dev/full", "--bogus 2>&-", "--bogus 2> /dev/full"])
def test_streams_that_are_closed_or_full_are_3(program, model, shell):
    found = program(
        shell='{} classify --exit-code -m "$MODEL" ' + shell, env={"MODEL": str(model)}, input=SPAM
    )
    assert (found.code, found.out) == (3, "")


def test_a_reader_that_goes_away_is_3(program, model, table):
    shell = '({} classify --exit-code -m "$MODEL" "$TABLE" "$TABLE"; echo $? >&2) | true'
    found = program(shell=shell, env={"MODEL": str(model), "TABLE": str(table)}, input=b"")
    assert found.err == "3\n"


def test_three_classes_are_spam_or_not(nbspam, three_classes, make_model):
    path = make_model(three_classes)
    for text, code in ((b"free prize winner", 0), (b"new shoes", 1), (b"lunch at noon", 1)):
        assert code == nbspam("classify", "--exit-code", "-m", path, stdin=text).code


def test_no_class_that_counts_as_spam_is_an_error(nbspam, tmp_path, make_model, assert_sentence):
    table = tmp_path / "abc.tsv"
    table.write_text("".join(f"{c}\ttext {c} number {i}\n" for i in range(4) for c in "abc"))
    path = make_model(table)
    found = nbspam("classify", "--exit-code", "-m", path, stdin=b"text a")
    assert_sentence(found, "--spam-label", code=3)
    found = nbspam("classify", "-p", "--exit-code", "-m", path, stdin=SPAM)
    assert_unchanged((found.code, found.out.encode(), found.err), SPAM)
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
@in_turn("message", BESIDE)
def test_the_bytes_are_where_bogofilter_has_them(nbspam, passed, model, tmp_path, message):
    """The same bytes at the same places, but for what bogofilter does otherwise.

    It ends a last line that has no end (here too, where that is all), and glues its header to it if
    that is a header's; adds an empty line after a header that ends without one; leaves forgeries in
    other letter case; puts its header below junk and below the lines of a text without a header.
    """
    folder = ("-d", str(tmp_path))
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
