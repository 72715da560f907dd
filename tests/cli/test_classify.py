import bz2
import gzip
import json
import lzma
import re
from contextlib import contextmanager

import pytest
from one_case import each

MAIL = b"From: a@example.org\nSubject: prize\n\nwin a free prize now\n"


def test_a_message_on_standard_input_has_a_line_or_an_object(nbspam, as_json, model):
    found = nbspam("classify", "-m", model, stdin=MAIL)
    assert (found.code, found.err) == (0, "")
    assert re.fullmatch(r"spam\t[01]\.\d{4}\t-\n", found.out)
    assert nbspam("classify", "-m", model, "-", stdin=MAIL) == found
    found = as_json("classify", "-m", model, stdin=MAIL)
    assert found.keys() == {"source", "verdict", "probability", "log_odds"}
    assert (found["source"], found["verdict"], found["log_odds"] > 0) == ("-", "spam", True)
    assert 0.5 < found["probability"] <= 1


def test_each_row_of_a_table_has_a_line_whatever_its_label(nbspam, table, model):
    before = nbspam("classify", "-m", model, table).out
    lines = before.splitlines()
    assert [f"{table}:{n}" for n in range(1, 31)] == [line.split("\t")[2] for line in lines]
    swapped = table.read_text().replace("ham\t", "h\t").replace("spam\t", "ham\t")
    table.write_text(swapped.replace("h\t", "spam\t"))
    assert before == nbspam("classify", "-m", model, table).out


def test_sources_come_in_the_order_given_and_lines_are_messages(nbspam, model, tmp_path):
    for name in ("b.eml", "a.eml"):
        (tmp_path / name).write_bytes(MAIL)
    (tmp_path / "lines.txt").write_text("free prize\n\nmeeting at noon\n")
    files = [str(tmp_path / name) for name in ("b.eml", "a.eml")]
    for options, names in (
        (files, files),
        (["--lines", tmp_path / "lines.txt"], [f"{tmp_path / 'lines.txt'}:{n}" for n in (1, 3)]),
    ):
        found = nbspam("classify", "-m", model, *options)
        assert [line.split("\t")[2] for line in found.out.splitlines()] == names


def test_one_message_scores_alone_as_among_others(nbspam, as_json, sms, sms_model):
    together = nbspam("classify", "-m", sms_model, "--format", "json", sms).out.splitlines()
    rows = sms.read_bytes().splitlines()
    for number in (0, 7, 50, 99):
        expected = json.loads(together[number])["log_odds"]
        alone = as_json("classify", "-m", sms_model, stdin=rows[number].split(b"\t", 1)[1])
        assert pytest.approx(expected, rel=1e-9, abs=1e-9) == alone["log_odds"]


def test_every_odd_mail_gets_a_verdict(nbspam, sample, sms_model):
    found = nbspam("classify", "-m", sms_model, sample / "odd")
    assert (found.code, found.err) == (0, "")
    names = sorted(path.name for path in (sample / "odd").iterdir())
    lines = [line.split("\t") for line in found.out.splitlines()]
    assert names == [source.rsplit("/", 1)[1] for _, _, source, *_ in lines]
    assert {verdict for verdict, *_ in lines} <= {"ham", "spam", "unsure"}


def test_three_classes_have_a_probability_each(as_json, three_classes, make_model):
    path = make_model(three_classes)
    for text, verdict in (
        (b"shoes in the shop", "promo"),
        (b"free cash prize", "spam"),
        (b"meeting notes", "ham"),
    ):
        found = as_json("classify", "-m", path, stdin=text)
        assert verdict == found["verdict"]
        assert found["probabilities"].keys() == {"ham", "promo", "spam"}
        assert sum(found["probabilities"].values()) == pytest.approx(1)
        assert found["probability"] == found["probabilities"]["spam"]


# Cut-offs


@pytest.fixture
def verdict(nbspam, model):
    """Return a function that classifies a text, and returns the verdict."""

    def classify(text, *options, model=model):
        return nbspam("classify", "-m", model, *options, stdin=text).out.split("\t")[0]

    return classify


@pytest.fixture
def probability(as_json, model):
    return lambda text: as_json("classify", "-m", model, stdin=text)["probability"]


def test_between_the_cut_offs_the_verdict_is_unsure(verdict, probability):
    text = b"free lunch"
    p = probability(text)
    low, high = p / 2, (1 + p) / 2
    assert verdict(text, "--ham-cutoff", low, "--spam-cutoff", high) == "unsure"
    assert verdict(text, "--ham-cutoff", 0, "--spam-cutoff", low) == "spam"
    assert verdict(text, "--ham-cutoff", high, "--spam-cutoff", 1) == "ham"
    assert 0 < p < 1
    cost = p / (1 - p)
    assert verdict(text, "--ham-cost", cost * 0.99) == "spam"
    assert verdict(text, "--ham-cost", cost * 1.01) == "ham"
    unknown = "всё о погоде и о море".encode()
    for options in ((), ("--spam-cutoff", "0"), ("--spam-cutoff", "1", "--ham-cutoff", "1")):
        assert verdict(unknown, *options) == "unsure"


MIDDLING = b"free notes for the winner of the meeting"


def test_spam_begins_above_09_and_ham_ends_at_a_half(nbspam, model, table, verdict, probability):
    assert 0.5 < probability(MIDDLING) < 0.9
    assert verdict(MIDDLING) == "unsure"
    found = nbspam("classify", "-m", model, "--format", "json", table)
    rows = [json.loads(line) for line in found.out.splitlines()]
    for row in rows:
        p = row["probability"]
        assert row["verdict"] == ("spam" if p > 0.9 else "ham" if p <= 0.5 else "unsure")
    assert {row["verdict"] for row in rows} >= {"spam", "ham"}


def test_the_models_cut_offs_hold_unless_an_option_is_given(
    table, make_model, verdict, probability
):
    cut_off = probability(MIDDLING) - 0.01
    loose = make_model(table, "--spam-cutoff", cut_off, name="loose.json")
    strict = make_model(table, "--ham-cost", 99, name="strict.json")
    assert json.loads(loose.read_text())["spam_cutoff"] == cut_off
    for model, options, expected in (
        (loose, (), "spam"),
        (strict, (), "ham"),
        # Options go first, each in the place of the model's own.
        (loose, ("--spam-cutoff", 0.9), "unsure"),
        (loose, ("--ham-cost", 99), "ham"),
        (strict, ("--ham-cutoff", 0.5), "unsure"),
        (strict, ("--spam-cutoff", 0.5), "spam"),
    ):
        assert verdict(MIDDLING, *options, model=model) == expected


# Names and messages of other kinds


def test_a_source_with_tabs_and_line_ends_stays_on_its_line(nbspam, model, tmp_path):
    path = tmp_path / "a\tb\nc.eml"
    path.write_bytes(MAIL)
    found = nbspam("classify", "-m", model, path)
    assert (found.out.count("\n"), found.out.count("\t")) == (1, 2)


@pytest.mark.few(1)
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_name_that_is_not_unicode_is_printed_all_the_same(program, model, tmp_path, form):
    (tmp_path / "mails").mkdir()
    with open(bytes(tmp_path / "mails") + b"/\xff\xfe.eml", "wb") as file:  # noqa: PTH123
        file.write(MAIL)
    found = program("classify", "-m", model, "--format", form, tmp_path / "mails")
    assert (found.code, found.err) == (0, "")


@pytest.mark.few(1)
@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bz2.compress])
def test_a_compressed_message_on_standard_input_is_read_as_it_is(program, nbspam, model, compress):
    text = b"win a free prize now"
    found = program("classify", "-m", model, input=compress(text))
    assert found == nbspam("classify", "-m", model, stdin=text)


GEORGIAN = "დილით ქარი ზღვიდან ბერავდა და ნავები ნაპირთან იდგა"


@each("text", ["", GEORGIAN])
def test_a_text_of_which_too_little_is_known_is_unsure_for_a_reason(
    nbspam, as_json, sms_model, model, text
):
    for path in (model, sms_model):
        found = nbspam("classify", "-m", path, stdin=text.encode())
        assert (found.code, found.err) == (0, "")
        verdict, probability, *why = found.out.split("\t")
        assert (verdict, why) == ("unsure", ["-", "too few known words\n"])
        assert 0 < float(probability) < 0.5
        found = as_json("classify", "-m", path, stdin=text.encode())
        assert found["reason"] == "too few known words"


def test_a_mail_in_a_script_that_was_not_learned_is_spam_by_its_header_or_unsure(nbspam, tmp_path):
    mail = "From: {}\nSubject: {}\nContent-Type: text/plain; charset=utf-8\n\n{}\n".format
    ann, win = "Ann <ann@home.example>", "Win <win@shop.example>"
    for name, sender, text in (("ham", ann, "lunch at noon"), ("spam", win, "a prize")):
        (tmp_path / name).mkdir()
        for i in range(200):
            (tmp_path / name / str(i)).write_text(mail(sender, "a letter", f"{text} {i}"))
    sources = ("--ham", tmp_path / "ham", "--spam", tmp_path / "spam")
    assert nbspam("train", *sources, "-m", tmp_path / "m.json").code == 0
    for sender, line in (
        (ann, r"unsure\t0\.00\d\d\t-\ttoo few known words\n"),
        (win, r"spam\t0\.9\d{3}\t-\n"),
    ):
        raw = mail(sender, GEORGIAN, GEORGIAN).encode()
        found = nbspam("classify", "-m", tmp_path / "m.json", stdin=raw)
        assert re.fullmatch(line, found.out)


def test_a_model_of_one_class_is_an_error_or_unsure(nbspam, model, assert_sentence):
    fields = json.loads(model.read_text())
    lines = model.read_text().split('"tokens": {\n')[0].splitlines()
    derived = {"tokens": 1, "bias": [-1.0], "count_histograms": [{"1": 1}]}
    changed = {"classes": ["spam"], "messages": [3], "derived": derived}
    head = [lines[0]]
    for key, value in fields.items():
        if key not in ("format", "version", "tokens", "learned"):
            head.append(f'"{key}": {json.dumps(changed.get(key, value))},')
    model.write_text("\n".join(head) + '\n"tokens": {\n"free": [1]\n},"learned": {\n}}\n')
    found = nbspam("classify", "-m", model, stdin=b"free")
    if found.code:
        assert_sentence(found, model)
    else:
        assert found.out.startswith("unsure\t0.5000\t")


def test_long_work_shows_progress_on_a_terminal_and_only_there(
    nbspam, model, tmp_path, monkeypatch
):
    """Where the verdicts go elsewhere; they are the same with it."""
    source = tmp_path / "many.tsv"
    long = "lunch at noon " * 1_000  # so that the file is not one of a few messages
    source.write_text("".join(f"ham\t{long}{i}\n" for i in range(20)), encoding="utf-8")
    assert source.stat().st_size > 1 << 18
    quiet = nbspam("classify", source, "-m", model)
    assert quiet.err == ""
    used = []

    @contextmanager
    def progress(silent, sources):
        used.append((silent, list(sources)))
        yield iter

    monkeypatch.setattr("nbspam.cli.progress.progress", progress)
    assert nbspam("classify", source, "-m", model) == quiet
    assert used == [(False, [str(source)])]
