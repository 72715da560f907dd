import bz2
import gzip
import json
import lzma
import re
import subprocess
import sys
from contextlib import contextmanager

import pytest
from many_cases import in_turn

MAIL = b"From: a@example.org\nSubject: prize\n\nwin a free prize now\n"


def test_a_message_on_standard_input_has_a_line(nbspam, model):
    found = nbspam("classify", "-m", model, stdin=b"win a free prize now")
    assert (found.code, found.err) == (0, "")
    assert re.fullmatch(r"spam\t[01]\.\d{4}\t-\n", found.out)


def test_a_dash_is_standard_input(nbspam, model):
    assert nbspam("classify", "-m", model, stdin=MAIL) == nbspam(
        "classify", "-m", model, "-", stdin=MAIL
    )


def test_each_row_of_a_table_has_a_line_in_order(nbspam, table, model):
    lines = nbspam("classify", "-m", model, table).out.splitlines()
    assert [f"{table}:{n}" for n in range(1, 31)] == [line.split("\t")[2] for line in lines]


def test_labels_are_ignored(nbspam, table, model):
    before = nbspam("classify", "-m", model, table).out
    swapped = table.read_text().replace("ham\t", "h\t").replace("spam\t", "ham\t")
    table.write_text(swapped.replace("h\t", "spam\t"))
    assert before == nbspam("classify", "-m", model, table).out


def test_sources_come_in_the_order_given(nbspam, model, tmp_path):
    for name in ("b.eml", "a.eml"):
        (tmp_path / name).write_bytes(MAIL)
    found = nbspam("classify", "-m", model, tmp_path / "b.eml", tmp_path / "a.eml")
    names = [line.split("\t")[2] for line in found.out.splitlines()]
    assert names == [str(tmp_path / "b.eml"), str(tmp_path / "a.eml")]


def test_one_message_scores_alone_as_among_others(nbspam, sample, sms_model, tmp_path):
    together = nbspam("classify", "-m", sms_model, "--format", "json", sample / "sms.tsv")
    rows = (sample / "sms.tsv").read_text(encoding="utf-8").splitlines()
    for number in (0, 7, 100, 303):
        expected = json.loads(together.out.splitlines()[number])
        (tmp_path / "one.txt").write_text(rows[number].split("\t", 1)[1], encoding="utf-8")
        alone = nbspam(
            *("classify", "-m", sms_model, "--format", "json", "--lines", tmp_path / "one.txt")
        )
        actual = json.loads(alone.out)
        assert pytest.approx(expected["log_odds"], rel=1e-9, abs=1e-9) == actual["log_odds"]


def test_every_odd_mail_gets_a_verdict(nbspam, sample, sms_model):
    found = nbspam("classify", "-m", sms_model, sample / "odd")
    assert (found.code, found.err) == (0, "")
    names = sorted(path.name for path in (sample / "odd").iterdir())
    lines = [line.split("\t") for line in found.out.splitlines()]
    assert names == [source.rsplit("/", 1)[1] for _, _, source, *_ in lines]
    assert {verdict for verdict, *_ in lines} <= {"ham", "spam", "unsure"}


def test_json_has_the_promised_fields(nbspam, model):
    found = json.loads(nbspam("classify", "-m", model, "--format", "json", stdin=MAIL).out)
    assert found.keys() == {"source", "verdict", "probability", "log_odds"}
    assert found["source"] == "-"
    assert found["verdict"] == "spam"
    assert found["log_odds"] > 0
    assert 0.5 < found["probability"] <= 1


def test_three_classes_have_a_probability_each(nbspam, three_classes, make_model):
    path = make_model(three_classes)
    for text, verdict in (
        (b"shoes in the shop", "promo"),
        (b"free cash prize", "spam"),
        (b"meeting notes", "ham"),
    ):
        found = json.loads(nbspam("classify", "-m", path, "--format", "json", stdin=text).out)
        assert verdict == found["verdict"]
        assert found["probabilities"].keys() == {"ham", "promo", "spam"}
        assert sum(found["probabilities"].values()) == pytest.approx(1)
        assert found["probability"] == found["probabilities"]["spam"]


def probability_of(nbspam, model, text):
    found = nbspam("classify", "-m", model, "--format", "json", stdin=text)
    return json.loads(found.out)["probability"]


def verdict_of(nbspam, model, text, *options):
    return nbspam("classify", "-m", model, *options, stdin=text).out.split("\t")[0]


def test_between_the_cut_offs_the_verdict_is_unsure(nbspam, model):
    text = b"free lunch"
    p = probability_of(nbspam, model, text)
    low, high = p / 2, (1 + p) / 2
    options = ("--ham-cutoff", low, "--spam-cutoff", high)
    assert verdict_of(nbspam, model, text, *options) == "unsure"
    assert verdict_of(nbspam, model, text, "--ham-cutoff", 0, "--spam-cutoff", low) == "spam"
    assert verdict_of(nbspam, model, text, "--ham-cutoff", high, "--spam-cutoff", 1) == "ham"


@pytest.fixture
def middling(nbspam, model):
    """Return a message that may be spam, and its probability."""
    text = b"free notes for the winner of the meeting"
    p = probability_of(nbspam, model, text)
    assert 0.5 < p < 0.9
    return text, p


def test_spam_begins_above_09_and_ham_ends_at_a_half(nbspam, model, middling):
    text, _ = middling
    assert verdict_of(nbspam, model, text) == "unsure"
    found = nbspam("classify", "-m", model, "--format", "json", model.parent / "messages.tsv")
    rows = [json.loads(line) for line in found.out.splitlines()]
    for row in rows:
        p = row["probability"]
        assert row["verdict"] == ("spam" if p > 0.9 else "ham" if p <= 0.5 else "unsure")
    assert {row["verdict"] for row in rows} >= {"spam", "ham"}


def test_the_models_cut_offs_hold_unless_an_option_is_given(nbspam, table, make_model, middling):
    text, p = middling
    loose = make_model(table, "--spam-cutoff", p - 0.01, name="loose.json")
    strict = make_model(table, "--ham-cost", 99, name="strict.json")
    assert verdict_of(nbspam, loose, text) == "spam"
    assert verdict_of(nbspam, strict, text) == "ham"
    # Options go first, each in the place of the model's own.
    assert verdict_of(nbspam, loose, text, "--spam-cutoff", 0.9) == "unsure"
    assert verdict_of(nbspam, loose, text, "--ham-cost", 99) == "ham"
    assert verdict_of(nbspam, strict, text, "--ham-cutoff", 0.5) == "unsure"
    assert verdict_of(nbspam, strict, text, "--spam-cutoff", 0.5) == "spam"
    assert json.loads(loose.read_text())["spam_cutoff"] == p - 0.01


def test_a_text_of_unknown_words_is_unsure_whatever_the_cut_offs_are(nbspam, model):
    for options in ((), ("--spam-cutoff", "0"), ("--spam-cutoff", "1", "--ham-cutoff", "1")):
        text = "всё о погоде и о море".encode()
        assert verdict_of(nbspam, model, text, *options) == "unsure"


def test_ham_cost_sets_the_cut_off(nbspam, model):
    text = b"free lunch prize"
    p = probability_of(nbspam, model, text)
    assert 0 < p < 1
    cost = p / (1 - p)
    assert verdict_of(nbspam, model, text, "--ham-cost", cost * 0.99) == "spam"
    assert verdict_of(nbspam, model, text, "--ham-cost", cost * 1.01) == "ham"


@in_turn(
    "options, wrong",
    [
        ("--spam-cutoff 1.5", "the spam cut-off must be between 0 and 1, not 1.5"),
        ("--spam-cutoff nan", "the spam cut-off must be between 0 and 1, not nan"),
        ("--ham-cutoff -1", "the ham cut-off must be between 0 and 1, not -1.0"),
        ("--ham-cutoff 0.9 --spam-cutoff 0.1", "the ham cut-off, 0.9, is above the spam cut-off"),
        ("--ham-cost 0", "the ham cost must be above 0, not 0.0"),
        ("--ham-cost -3", "the ham cost must be above 0, not -3.0"),
        ("--ham-cost inf", "the ham cost must be above 0, not inf"),
        ("--ham-cost 9 --spam-cutoff 0.9", "the ham cost sets both cut-offs"),
    ],
)
def test_cut_offs_that_make_no_sense_are_usage_errors(
    nbspam, model, assert_sentence, options, wrong
):
    found = nbspam("classify", "-m", model, *options.split(), stdin=b"free")
    assert_sentence(found, wrong, code=2)


def test_a_source_with_tabs_and_line_ends_stays_on_its_line(nbspam, model, tmp_path):
    path = tmp_path / "a\tb\nc.eml"
    path.write_bytes(MAIL)
    found = nbspam("classify", "-m", model, path)
    assert found.out.count("\n") == 1
    assert found.out.count("\t") == 2


def test_a_name_that_is_not_unicode_is_printed_all_the_same(program, model, tmp_path):
    (tmp_path / "mails").mkdir()
    name = bytes(tmp_path / "mails") + b"/\xff\xfe.eml"
    with open(name, "wb") as file:  # noqa: PTH123
        file.write(MAIL)
    for form in ("text", "json"):
        found = program("classify", "-m", model, "--format", form, tmp_path / "mails")
        assert (found.code, found.err) == (0, "")


def test_an_empty_message_has_a_verdict(nbspam, model):
    found = nbspam("classify", "-m", model, stdin=b"")
    assert (found.code, found.err) == (0, "")
    verdict, probability, *why = found.out.split("\t")
    assert (verdict, why) == ("unsure", ["-", "too few known words\n"])
    assert 0 < float(probability) < 0.5


GEORGIAN = "დილით ქარი ზღვიდან ბერავდა და ნავები ნაპირთან იდგა"


def test_an_sms_in_a_script_that_was_not_learned_is_unsure_for_a_reason(nbspam, sms_model):
    found = nbspam("classify", "-m", sms_model, stdin=GEORGIAN.encode())
    verdict, probability, source, reason = found.out.rstrip("\n").split("\t")
    assert (verdict, source, reason) == ("unsure", "-", "too few known words")
    assert float(probability) < 0.5
    found = nbspam("classify", "-m", sms_model, "--format", "json", stdin=GEORGIAN.encode())
    assert json.loads(found.out)["reason"] == "too few known words"
    terse = nbspam("classify", "-m", sms_model, "--terse", stdin=GEORGIAN.encode())
    assert terse.out.startswith("U 0.")


@pytest.mark.parametrize(
    ("sender", "line"),
    [
        ("Ann <ann@home.example>", r"unsure\t0\.00\d\d\t-\ttoo few known words\n"),
        ("Win <win@shop.example>", r"spam\t0\.9\d{3}\t-\n"),
    ],
)
def test_a_mail_in_a_script_that_was_not_learned_is_spam_by_its_header_or_unsure(
    nbspam, tmp_path, sender, line
):
    mail = "From: {}\nSubject: {}\nContent-Type: text/plain; charset=utf-8\n\n{}\n".format
    for i in range(200):
        for name, of in (("ham", "Ann <ann@home.example>"), ("spam", "Win <win@shop.example>")):
            path = tmp_path / name / str(i)
            path.parent.mkdir(exist_ok=True)
            path.write_text(
                mail(of, "a letter", f"{'lunch at noon' if name == 'ham' else 'a prize'} {i}")
            )
    sources = ("--ham", tmp_path / "ham", "--spam", tmp_path / "spam")
    assert nbspam("train", *sources, "-m", tmp_path / "m.json").code == 0
    raw = mail(sender, GEORGIAN, GEORGIAN).encode()
    found = nbspam("classify", "-m", tmp_path / "m.json", stdin=raw)
    assert re.fullmatch(line, found.out)


def test_lines_are_messages(nbspam, model, tmp_path):
    (tmp_path / "lines.txt").write_text("free prize\n\nmeeting at noon\n")
    found = nbspam("classify", "-m", model, "--lines", tmp_path / "lines.txt")
    sources = [line.split("\t")[2] for line in found.out.splitlines()]
    assert sources == [f"{tmp_path / 'lines.txt'}:{n}" for n in (1, 3)]


def test_a_model_of_one_class_is_an_error_or_unsure(nbspam, model, assert_sentence):
    fields = json.loads(model.read_text())
    lines = model.read_text().split('"tokens": {\n')[0].splitlines()
    changed = {
        "classes": ["spam"],
        "messages": [3],
        "derived": {"tokens": 1, "bias": [-1.0], "count_histograms": [{"1": 1}]},
    }
    head = [lines[0]]
    for key, value in fields.items():
        if key not in ("format", "version", "tokens", "learned"):
            head.append(f'"{key}": {json.dumps(changed.get(key, value))},')
    text = "\n".join(head) + '\n"tokens": {\n"free": [1]\n},"learned": {\n}}\n'
    model.write_text(text)
    found = nbspam("classify", "-m", model, stdin=b"free")
    if found.code:
        assert_sentence(found, model)
    else:
        assert found.out.startswith("unsure\t0.5000\t")


def test_a_compressed_message_on_standard_input_is_read_as_it_is(model):
    text = b"win a free prize now"
    command = [sys.executable, "-m", "nbspam", "classify", "-m", str(model)]
    answers = {
        subprocess.run(command, input=given, capture_output=True, check=True).stdout
        for given in (text, gzip.compress(text), lzma.compress(text), bz2.compress(text))
    }
    assert len(answers) == 1


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
