"""`nbspam train --update`."""

import functools
import gzip
import json
import mailbox
import os
import stat

import pytest
from one_case import each

from nbspam.filter import open_filter

WORDS = {
    "spam": ("free prize", "win cash now", "click to claim"),
    "ham": ("lunch at noon", "meeting notes", "see you there"),
}


def mail(label, number, extra=b""):
    """Return an invented mail; `extra` is what software has put into its header."""
    words = WORDS[label]
    return (
        b"From: sender%d@example.org\nTo: me@example.com\nMessage-ID: <%d.%s@example.org>\n"
        b"Subject: %s\n%s\n%s, number %d\n"
        % (
            *(number, number, label.encode(), words[number % 3].encode()),
            *(extra, words[(number + 1) % 3].encode(), number),
        )
    )


def counts(model):
    fields = json.loads(model.read_text())
    return dict(zip(fields["classes"], fields["messages"], strict=True))


def printed(found):
    """Return what was printed as JSON."""
    assert found.code == 0
    return json.loads(found.out)


@pytest.fixture
def update(nbspam, tmp_path):
    """Return a function that updates model.json and returns what it printed."""

    def run(*arguments, stdin=b""):
        options = ("-m", tmp_path / "model.json", "--format", "json")
        return printed(nbspam("train", "--update", *options, *arguments, stdin=stdin))

    return run


@pytest.fixture
def maildir(tmp_path):
    """Return a Maildir of ten ham, with a Junk folder of ten spam in it, all of them read."""
    for folder, label in ((tmp_path / "Maildir", "ham"), (tmp_path / "Maildir" / ".Junk", "spam")):
        for name in ("cur", "new", "tmp"):
            (folder / name).mkdir(parents=True)
        for i in range(10):
            (folder / "cur" / f"17000000{i:02}.M{i}.host:2,S").write_bytes(mail(label, i))
    return tmp_path / "Maildir"


@pytest.fixture
def nightly(update, maildir):
    """Return a function that runs what cron runs every night, and returns its JSON."""
    return functools.partial(update, "--seen", "--spam", maildir / ".Junk", "--ham", maildir)


# The nightly line


def test_night_after_night(nbspam, nightly, maildir, tmp_path):
    """The first makes the model, the second changes nothing; then mail is moved, and some comes."""
    model = tmp_path / "model.json"
    assert nightly()["messages"] == {"ham": 10, "spam": 10}
    before, node = model.read_bytes(), model.stat().st_ino
    found = nightly()
    assert (found["learned"], found["moved"], found["unchanged"]) == (0, 0, 20)
    assert (before, node) == (model.read_bytes(), model.stat().st_ino)
    name = "1700000003.M3.host:2,S"
    (maildir / ".Junk" / "cur" / name).rename(maildir / "cur" / f"{name}F")
    found = nightly()
    assert (found["learned"], found["moved"], found["unchanged"]) == (0, 1, 19)
    assert counts(model) == {"ham": 11, "spam": 9}
    assert nightly()["moved"] == 0
    (maildir / "cur" / "1700000099.M1.host:2,RS").write_bytes(mail("ham", 99))
    assert nightly()["learned"] == 1
    assert counts(model) == {"ham": 12, "spam": 9}
    assert nbspam("model", "check", "-m", model).code == 0


SEEN = "cur/1.host:2,S cur/2.host:2,FRS cur/3.host,S=123,W=130:2,Sab".split()
UNSEEN = (
    "cur/4.host:2, cur/5.host:2,F cur/6.host:2,ST cur/7.host:2,T cur/8.host cur/9.S.host"
    " new/1.host new/2.host:2,S tmp/1.host:2,S"
).split()


def test_of_a_maildir_only_what_was_read_and_not_deleted_is_seen(nightly, maildir):
    nightly()
    for number, place in enumerate((*SEEN, *UNSEEN), 50):
        (maildir / place).write_bytes(mail("ham", number))
        assert nightly()["learned"] == (place in SEEN), place


SEEN_LINES = b"Status: RO\n", b"Status: R\nX-Status: AF\n", b"Status: ROA\r\n"
UNSEEN_LINES = (
    *(b"Status: O\n", b"", b"Status: RO\nX-Status: D\n", b"X-Status: R\n"),
    b"X-Old-Status: R\n",
)


def test_of_an_mbox_only_what_was_read_and_not_deleted_is_seen(nightly, tmp_path):
    nightly()
    box = tmp_path / "box"
    line = b"From sender@example.org Fri Mar  1 10:00:00 2024\n"
    body = b"not a header:\nStatus: RO\n"  # in the body it says nothing
    for number, lines in enumerate((*SEEN_LINES, *UNSEEN_LINES), 50):
        read = mail("ham", 100 + number, b"Status: RO\n")
        box.write_bytes(line + read + b"\n" + line + mail("ham", number, lines) + body + b"\n")
        assert nightly("--ham", box)["learned"] == 1 + (lines in SEEN_LINES), lines


def test_without_seen_unread_mail_is_learned_too(update, maildir):
    (maildir / "new" / "1.host").write_bytes(mail("ham", 50))
    assert update("--ham", maildir)["learned"] == 11


# The same message


@each(
    "extra",
    [
        b"X-Nbspam: spam, probability=0.998712, version=1.0\n",
        b"X-Nbspam: ham, probability=0.001, version=1.0\nX-Nbspam-Evidence: free prize\n",
        b"Status: RO\nX-Status: A\nContent-Length: 30\nLines: 1\nX-UID: 4\n",
    ],
)
@each("from_line", [b"", b"From sender@example.org Fri Mar  1 10:00:00 2024\n"])
@each("end", [b"\n", b"\r\n"])
def test_what_mail_software_adds_makes_no_other_message(nbspam, tmp_path, extra, from_line, end):
    model = tmp_path / "model.json"
    model.unlink(missing_ok=True)
    learn = ("train", "--update", "--spam", "-", "-m", model)
    assert nbspam(*learn, stdin=mail("spam", 1)) == (0, "", "")
    before = model.read_bytes()
    same = (from_line + mail("spam", 1, extra)).replace(b"\n", end)
    assert nbspam(*learn, stdin=same) == (0, "", "")
    assert before == model.read_bytes()
    assert nbspam("forget", "-m", model, stdin=same) == (0, "", "")
    assert counts(model) == {"ham": 0, "spam": 0}


def test_what_has_passed_through_is_the_same_message(passed, update, model, tmp_path):
    raw = mail("spam", 1)
    marked = passed(raw, "classify", "--passthrough", "-m", model)[1]
    assert b"X-Nbspam" in marked
    assert update("--spam", "-", stdin=marked)["learned"] == 1
    assert update("--spam", "-", stdin=raw)["unchanged"] == 1
    box = mailbox.mbox(tmp_path / "box")
    box.add(marked)
    box.close()
    assert update("--spam", tmp_path / "box")["unchanged"] == 1
    assert update("--ham", tmp_path / "box")["moved"] == 1


LONG = "our offer of today is a fine one, " * 20  # so that no trigram has the number


@pytest.mark.few(2)
@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("form", ["Subject: an offer\n\nnumber {}\n", LONG + "number {}"])
def test_texts_that_differ_in_a_number_are_learned_each(update, tmp_path, form, jobs):
    texts = [form.format(i) for i in range(1, 7)]
    for text in texts:  # one by one, as a user teaches them
        assert update("--spam", "-", stdin=text.encode())["learned"] == 1
    assert counts(tmp_path / "model.json") == {"ham": 0, "spam": 6}
    (tmp_path / "copies").mkdir()
    for i, text in enumerate(texts):
        (tmp_path / "copies" / str(i)).write_bytes(text.encode().replace(b"\n", b"\r\n"))
    found = update("-j", jobs, "--spam", tmp_path / "copies")
    assert (found["learned"], found["unchanged"]) == (0, 6)
    if "\n" not in form:
        lines, table = tmp_path / "lines", tmp_path / "t.jsonl"
        lines.write_text("\n".join(texts))
        table.write_text("".join(json.dumps({"label": "spam", "text": t}) + "\n" for t in texts))
        for source in (["--lines", "--spam", lines], [table]):
            assert update("-j", jobs, *source)["unchanged"] == 6
    with open_filter(tmp_path / "model.json") as spam_filter:
        assert spam_filter.learn(("spam", text.encode()) for text in texts).unchanged == 6
        assert spam_filter.forget(texts[0].encode() for _ in range(2)).forgotten == 1


# What it says


def test_one_message_from_standard_input_is_learned_in_silence(nbspam, model):
    learn = ("train", "--update", "--spam", "-", "-m", model)
    for _ in range(2):
        assert nbspam(*learn, stdin=mail("spam", 1)) == (0, "", "")
    assert counts(model) == {"ham": 18, "spam": 13}


def test_a_text_without_a_header_is_a_message_too(update):
    for learned in (1, 0):
        found = update("--ham", "-", stdin=b"Reminder: call me at noon")
        assert found["learned"] == learned


def test_as_text_it_says_what_it_did(nbspam, model, tmp_path):
    (tmp_path / "mail").write_bytes(mail("spam", 1))
    learn = ("train", "--update", "--spam", tmp_path / "mail", "-m", model)
    found = nbspam(*learn)
    assert (found.code, found.err) == (0, "")
    did, young = found.sentences.splitlines()
    assert did == f"{model}: learned 1 new message, moved 0 to another class, 0 already known"
    assert young.startswith("needs 82 more ham and 87 more spam; until then")
    assert nbspam(*learn, "-q") == (0, "", "")


def test_as_json_it_says_all_it_did(nbspam, table, model):
    with table.open("a") as file:
        file.write("only one cell\nspam\ta new prize\nham\ta new lunch\n")
    found = nbspam("train", "--update", table, "-m", model, "--format", "json")
    assert json.loads(found.out) == {
        "model": str(model),
        "learned": 2,
        "moved": 0,
        "unchanged": 30,
        "skipped": 1,
        "in_two_classes": 0,
    }
    assert "only one cell" not in found.out
    assert f"{table}:31" in found.err


def test_updates_come_to_what_training_comes_to(nbspam, table, make_model, tmp_path):
    lines = sorted(set(table.read_text().splitlines(keepends=True)))  # each message once
    table.write_text("".join(lines))
    whole = json.loads(make_model(table).read_text())
    model = tmp_path / "update.json"
    for i in range(0, len(lines), 7):
        (tmp_path / "part.tsv").write_text("".join(lines[i : i + 7]))
        assert nbspam("train", "--update", tmp_path / "part.tsv", "-m", model).code == 0
    fields = json.loads(model.read_text())
    for key in ("classes", "messages", "tokens", "learned"):
        assert list(whole[key]) == list(fields[key])
        assert whole[key] == fields[key]
    assert nbspam("model", "check", "-m", model).code == 0


def test_equal_rows_all_count_in_one_run(update, tmp_path):
    table = tmp_path / "rows.tsv"
    table.write_text("spam\tfree prize\n" * 3 + "ham\tlunch\n")
    assert update(table)["messages"] == {"ham": 1, "spam": 3}
    assert update(table)["unchanged"] == 4


def test_without_the_ledger_every_run_learns_anew(nbspam, update, table, make_model, model):
    for _ in range(2):
        assert update("--no-ledger", table)["learned"] == 30
    assert counts(model) == {"ham": 54, "spam": 36}
    assert nbspam("model", "check", "-m", model).code == 0
    model = make_model(table, "--no-ledger", "--replace")
    assert json.loads(model.read_text())["learned"] == {}
    assert update(table)["learned"] == 30


# One class


@each("label, other", [("spam", "ham"), ("ham", "spam")])
def test_a_model_of_one_class_is_unsure_and_says_so(nbspam, tmp_path, label, other):
    model = tmp_path / f"{label}.json"
    update = ("train", "--update", "-m", model)
    assert nbspam(*update, f"--{label}", "-", stdin=mail(label, 1)).code == 0
    found = nbspam("classify", "-m", model, stdin=mail(label, 2))
    assert found.out == "unsure\t0.5000\t-\ttoo few learned classes\n"
    assert found.err.startswith(f"nbspam: {model}: has learned only {label} so far")
    assert "train --update" in found.err
    assert nbspam("classify", "--exit-code", "-m", model, stdin=mail(label, 2)).code == 2
    assert nbspam(*update, f"--{other}", "-", stdin=mail(other, 1)).code == 0
    found = nbspam("classify", "-m", model, "--spam-cutoff", "0.5", stdin=mail(label, 1))
    assert found.out.startswith(f"{label}\t")
    assert found.err == ""


def test_an_empty_source_makes_a_model_that_is_unsure(nbspam, tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    model = tmp_path / "model.json"
    found = nbspam("train", "--update", "--spam", tmp_path / "folder", "-m", model)
    assert (found.code, found.err) == (0, "")
    found = nbspam("classify", "-m", model, stdin=mail("ham", 1))
    assert found.out.startswith("unsure\t0.5000")
    assert "has learned nothing so far" in found.err


EMPTY = [b"", b"\n", b" \r\n\n", gzip.compress(b"", mtime=0)]


@each("content", EMPTY[:3])
@each("options", [("--update",), ("--replace",)])
def test_an_empty_message_on_standard_input_is_an_error(
    nbspam, model, assert_sentence, content, options
):
    """What should have written it has failed: bogofilter learns nothing of it either."""
    before, new = model.read_bytes(), model.with_name("new.json")
    found = nbspam("train", *options, "--spam", "-", "-m", model, stdin=content)
    assert_sentence(found, "-: standard input is empty", "; check the command that writes it")
    assert model.read_bytes() == before
    assert nbspam("train", "--update", "--spam", "-", "-m", new, stdin=content).code == 1
    assert not new.exists()


def test_an_empty_pipe_is_an_error_too(program, model, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    arguments = ("train", "--update", "-m", model, "--spam", pipe)
    found = program(*arguments, shell=f": > {pipe} & {{}}")
    assert found.code == 1
    assert found.err == (
        f"nbspam: {pipe}: the pipe is empty, so there is no message to learn; check the command"
        " that writes it\n"
    )


@each("content", EMPTY)
@each("options", [(), ("--input-format", "message")])
def test_an_empty_file_is_not_learned_and_that_is_said(nbspam, model, tmp_path, content, options):
    """It may be an mbox with no mail in it, so it is no error."""
    path, before = tmp_path / "box", model.read_bytes()
    path.write_bytes(content)
    arguments = ("train", "--update", "--ham", path, "-m", model, *options)
    found = nbspam(*arguments)
    assert (found.code, "learned 0 new messages" in found.out) == (0, True)
    assert found.err == f"nbspam: {path}: the file is empty; nothing is learned from it\n"
    assert nbspam(*arguments, "-q") == (0, "", "")
    assert model.read_bytes() == before


@each("number, content", enumerate(EMPTY))
def test_an_empty_file_of_a_folder_or_a_list_is_skipped_and_named(
    nbspam, model, tmp_path, number, content
):
    folder = tmp_path / "folder"
    folder.mkdir(exist_ok=True)
    (folder / "1").write_bytes(content)
    (folder / "2").write_bytes(mail("ham", number))
    found = nbspam("train", "--update", "--ham", folder, "-m", model)
    assert "learned 1 new message" in found.out
    assert found.err == (
        f"nbspam: skipped 1 item that could not be read:\n  {folder}/1: the message is empty\n"
    )
    assert nbspam("train", "--strict", "--update", "--ham", folder, "-m", model).code == 0


def test_standard_input_with_no_message_of_many_is_no_error(nbspam, model, assert_sentence):
    before, update = model.read_bytes(), ("train", "--update", "-m", model)
    for name in ("mbox", "lines", "files", "files0"):
        found = nbspam(*update, "--ham", "-", "--input-format", name)
        assert (found.code, found.err) == (0, "")
        assert model.read_bytes() == before
    assert_sentence(nbspam("eval", "--spam", "-", "-m", model), "standard input is empty")
    header = b"Subject: win\n\n"  # alone is a message
    assert nbspam(*update, "--spam", "-", stdin=header) == (0, "", "")
    assert model.read_bytes() != before


@each("labels", [("spam",), ("ham", "spam")])
def test_cut_offs_of_a_new_model_are_stored(nbspam, tmp_path, labels):
    table, path = tmp_path / "some.tsv", tmp_path / f"{len(labels)}.json"
    table.write_text("label\ttext\n" + "".join(f"{label}\tsome {label}\n" for label in labels))
    assert nbspam("train", "--update", table, "-m", path, "--spam-cutoff", "0.99").code == 0
    info = printed(nbspam("model", "info", "-m", path, "--format", "json"))
    assert (info["spam_cutoff"], info["ham_cutoff"]) == pytest.approx((0.99, 0.5))
    path.unlink()
    options = ("--update", "--spam", "-", "-m", path, "--ham-cost", "9")
    assert nbspam("train", *options, stdin=b"Subject: a\n\nfree prize\n").code == 0
    info = printed(nbspam("model", "info", "-m", path, "--format", "json"))
    assert info["spam_cutoff"] == info["ham_cutoff"] == pytest.approx(0.9)


# What it refuses


@each(
    "options, parts",
    [
        (("--replace",), ("--update", "--replace")),
        (("--max-ham-blocked", "1%"), ("--max-ham-blocked and --update cannot be used together",)),
        (("--alpha", "0.7"), ("--alpha 0.7", "0.05", "--replace")),
        (("--prior", "0.3"), ("--prior 0.3", "--replace")),
        (("--scoring", "sum"), ("--scoring sum", "evidence", "--replace")),
        (("--spam-label", "junk"), ("--spam-label junk", "spam", "--replace")),
    ],
)
def test_options_that_contradict_are_refused(nbspam, table, model, assert_sentence, options, parts):
    before = model.read_bytes()
    found = nbspam("train", "--update", table, "-m", model, *options)
    assert_sentence(found, *parts, code=2)
    assert before == model.read_bytes()


def test_options_that_say_what_the_model_is_are_no_hindrance(update, table, model):
    for options in (("--alpha", "0.05"), ("--scoring", "evidence"), ("--spam-label", "Spam")):
        assert update(table, *options)["unchanged"] == 30


def test_a_class_that_the_model_has_not_and_a_source_that_is_none_leave_the_model(
    nbspam, three_classes, model, tmp_path, assert_sentence
):
    before, update = model.read_bytes(), ("train", "--update", "-m", model)
    assert_sentence(nbspam(*update, three_classes), model, "'promo'", "ham, spam", "--replace")
    sources = ("--spam", "-", "--ham", tmp_path / "none")
    assert_sentence(nbspam(*update, *sources, stdin=mail("spam", 1)), tmp_path / "none")
    for source in (("--ham", model), (model,)):
        assert_sentence(nbspam(*update, *source), model)
    assert before == model.read_bytes()


def act(nbspam, command, model):
    arguments = {"train": ("train", "--update", "--spam", "-"), "forget": ("forget",)}[command]
    return nbspam(*arguments, "-m", model, stdin=mail("spam", 1))


BOTH = each("command", ["train", "forget"])


@BOTH
def test_what_is_no_model_is_told_and_left(nbspam, model, tmp_path, command, assert_sentence):
    letter, folder, loop = tmp_path / "letter", tmp_path / "folder", tmp_path / f"loop-{command}"
    cut_off, missing = tmp_path / "cut.json", tmp_path / "none" / "model.json"
    cut_off.write_bytes(model.read_bytes()[:-10])
    letter.write_bytes(b"Dear Ann")
    folder.mkdir(exist_ok=True)
    loop.symlink_to(loop.name)
    for path, said in (
        *((cut_off, "truncated"), (letter, "not an nbspam model"), (folder, "")),
        *((loop, "symbolic links"), (missing, "")),
    ):
        before = path.read_bytes() if path.is_file() else None
        assert_sentence(act(nbspam, command, path), path, said)
        assert before is None or path.read_bytes() == before
    assert not list(folder.iterdir())
    assert loop.is_symlink()


def test_a_link_to_the_model_stays_a_link_wherever_it_leads(nbspam, model, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(model.name)
    for command, spam in (("train", 13), ("forget", 12)):
        assert act(nbspam, command, link) == (0, "", "")
        assert link.is_symlink()
        assert counts(model) == {"ham": 18, "spam": spam}
    model.unlink()
    assert act(nbspam, "train", link) == (0, "", "")
    assert link.is_symlink()
    assert counts(model) == {"ham": 0, "spam": 1}


@each("mode", [0o600, 0o640, 0o644])
def test_who_may_read_the_model_may_read_it_after_an_update(nbspam, model, mode):
    model.chmod(mode)
    for command in ("train", "forget"):
        before = model.stat().st_ino
        act(nbspam, command, model)
        after = model.stat()
        assert (stat.S_IMODE(after.st_mode), after.st_ino != before) == (mode, True)


def test_the_default_models_folder_is_made(nbspam, own_home):
    assert nbspam("train", "--update", "--ham", "-", stdin=mail("ham", 1)) == (0, "", "")
    (path,) = own_home.rglob("model.json")
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
@BOTH
def test_a_folder_that_is_read_only_is_told(nbspam, model, command, assert_sentence):
    if command == "forget":
        act(nbspam, "train", model)
    before = model.read_bytes()
    model.parent.chmod(0o500)
    try:
        assert_sentence(act(nbspam, command, model), model, "Permission denied")
    finally:
        model.parent.chmod(0o700)
    assert before == model.read_bytes()


# Messages that the ledger does not name

UNNAMED = (
    "nbspam: {}: has learned {} that its ledger does not name (imported, or learned with"
    " --no-ledger); one that is given again is counted twice, so give only newer mail\n"
)


def test_before_messages_are_counted_twice_that_is_said(nbspam, tmp_path):
    imported = tmp_path / "i.json"
    words = b"token,ham,spam\n(messages),4,3\nfree,0,3\nlunch,3,0\n"
    assert nbspam("model", "import", "-", "-m", imported, stdin=words).code == 0
    (tmp_path / "a.eml").write_bytes(mail("spam", 1))
    update = "train", "--update", "-m", imported, "--spam"
    assert nbspam(*update, tmp_path / "a.eml").err == UNNAMED.format(imported, "7 messages")
    assert counts(imported) == {"ham": 4, "spam": 4}
    assert nbspam(*update, tmp_path / "a.eml").err == ""  # which it knows by now
    (tmp_path / "b.eml").write_bytes(mail("spam", 2))
    for source in (("-",), (tmp_path / "b.eml", "-q"), (tmp_path / "b.eml", "--no-ledger")):
        assert nbspam(*update, *source, stdin=mail("spam", 3)).err == ""
    assert counts(imported) == {"ham": 4, "spam": 7}


def test_a_model_with_a_ledger_has_no_such_note(nbspam, table, model):
    for rows, options, said in (
        ("spam\tfree prize\nspam\tfree prize\nham\tsee you\n", (), ""),  # one of them twice
        ("spam\tprize for you\n", (), ""),
        ("spam\tprize for you\n", ("--no-ledger",), ""),
        ("spam\tprize for me\n", (), UNNAMED.format(model, "1 message")),
    ):
        table.write_text(rows)
        assert nbspam("train", "--update", table, "-m", model, *options).err == said
