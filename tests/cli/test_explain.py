import math
import re

import pytest
from harmless_pages import assert_harmless
from one_case import each
from terminals import on_a_terminal

from nbspam.display.lines import cell_width

TEXT = b"win a free prize now for lunch at the meeting"


@pytest.fixture
def explained(as_json):
    """Return a function that explains a message, and returns the JSON of it."""
    return lambda *arguments, **options: as_json("explain", *arguments, **options)


@pytest.fixture
def shown(nbspam, model):
    """Return a function that explains a message by the model of the table, as text."""

    def run(text, *options):
        found = nbspam("explain", "-m", model, *options, stdin=text)
        assert (found.code, found.err) == (0, "")
        return found.out

    return run


def words_of(found):
    return [word for word in found["words"] if not word["token"].startswith("trait:")]


def sum_shown(text):
    """Return the sum that the text shows, and what its last column adds up to."""
    column = [
        float(match[1])
        for line in text.splitlines()
        if (match := re.search(r"([+-]\d+\.\d+)(?:  [+-]*)?$", line)) and "sum" not in line
    ]
    return float(re.search(r"^sum.*?([+-]\d+\.\d+)", text, re.MULTILINE)[1]), sum(column)


def test_json_has_the_promised_fields_of_all_words(explained, model):
    found = explained("-m", model, stdin=TEXT + b" xylophone")
    assert found == explained("-m", model, "--top", "1", stdin=TEXT + b" xylophone")
    promised = {"source", "verdict", "probability", "log_odds", "bias", "sum_log_odds", "words"}
    assert promised <= found.keys()
    for word in found["words"]:
        assert {"token", "weight", "counts", "share"} <= word.keys()
        assert word["counts"].keys() == {"ham", "spam"}
    prize = next(word for word in found["words"] if word["token"] == "prize")
    assert prize["weight"] > 0
    assert prize["counts"] == {"ham": 0, "spam": 12}
    assert found["unknown"] > explained("-m", model, stdin=TEXT)["unknown"]
    assert "xylophone" not in [word["token"] for word in found["words"]]


@each("text", [b"win a free prize", b"meeting notes", b"", b"lunch prize"])
def test_the_score_is_that_of_classify(explained, as_json, model, text):
    found = explained("-m", model, stdin=text)
    classified = as_json("classify", "-m", model, stdin=text)
    for name in ("source", "verdict", "probability", "log_odds"):
        assert classified[name] == found[name]


def test_the_text_names_verdict_words_and_constants_that_add_up(explained, shown, model):
    found = explained("-m", model, stdin=TEXT)
    printed = [shown(TEXT, "--top", top) for top in (1, 3, 100)]
    for text in printed:
        total, added = sum_shown(text)
        assert total == pytest.approx(found["log_odds"], abs=0.001)
        assert added == pytest.approx(total, abs=0.02)
    lines = printed[-1].splitlines()
    assert len(printed[0].splitlines()) < len(lines)
    assert re.fullmatch(r"-: (spam|unsure), probability [01]\.\d{4}", lines[0])
    assert any(line.startswith("prize ") for line in lines)
    constants = {
        "calibration": "baseline",
        "length": "adjustment for its length",
        "caution": "small-model adjustment",
    }
    assert found["constants"].keys() == constants.keys()
    for name, nats in found["constants"].items():
        (line,) = (line for line in lines if line.startswith(constants[name]))
        assert float(line.split()[-1]) == pytest.approx(nats, abs=0.0006)


@each("options", ["", "--prior 0.1", "--scoring sum", "--scoring sum --prior .9"])
def test_the_sum_printed_is_the_log_odds(nbspam, explained, table, make_model, options):
    path = make_model(table, "--replace", *options.split())
    for text in (b"win a free prize now for lunch", b"xylophone", b""):
        found = explained("-m", path, stdin=text)
        total, added = sum_shown(nbspam("explain", "-m", path, "--top", "1000", stdin=text).out)
        assert total == pytest.approx(found["log_odds"], abs=0.0006)
        assert added == pytest.approx(total, abs=0.03)
        sum_of_all = sum(w["share"] for w in found["words"]) + sum(found["constants"].values())
        assert sum_of_all == pytest.approx(found["log_odds"], rel=1e-9, abs=1e-9)


def test_a_prior_is_one_of_the_constants(explained, table, model, make_model):
    plain = explained("-m", model, stdin=TEXT)
    prior = make_model(table, "--prior", "0.1", name="prior.json")
    fixed = explained("-m", prior, stdin=TEXT)
    (new,) = fixed["constants"].keys() - plain["constants"].keys()
    moved = fixed["log_odds"] - plain["log_odds"]
    assert moved < 0
    assert moved == pytest.approx(fixed["constants"][new], rel=1e-9, abs=1e-9)


def test_a_message_is_named_as_classify_names_it(
    nbspam, explained, table, model, sample, sms_model, assert_sentence
):
    mbox = sample / "mail" / "spam.mbox"
    for source, own in ((table, model), (mbox, sms_model)):
        for line in nbspam("classify", "-m", own, source).out.splitlines()[:3]:
            verdict, probability, name = line.split("\t")
            found = explained("-m", own, name)
            assert (verdict, name) == (found["verdict"], found["source"])
            assert f"{found['probability']:.4f}" == probability
    found = nbspam("explain", "-m", model, table)  # of several, the first
    assert (found.code, found.out.startswith(f"{table}:1: ")) == (0, True)
    assert found.err.startswith(f"nbspam: {table} contains several")


def test_words_are_the_models_strongest(nbspam, as_json, model):
    words = as_json("explain", "--words", "--top", "3", "-m", model)
    assert words.keys() == {"ham", "spam"}
    for name, other in (("ham", "spam"), ("spam", "ham")):
        weights = [word["weight"] for word in words[name]]
        assert (len(weights), sorted(weights, reverse=True)) == (3, weights)
        assert words[name][0]["counts"][other] == 0
    text = nbspam("explain", "-m", model, "--words", "--top", "3").out
    ham, spam = text.split("strongest for ")[1:3]
    assert re.findall(r"  ([+-])\d+\.\d{3}", ham) == ["-"] * 3
    assert re.findall(r"  ([+-])\d+\.\d{3}", spam) == ["+"] * 3


def test_three_classes_are_explained(nbspam, explained, three_classes, make_model):
    path = make_model(three_classes)
    words = explained("--words", "-m", path)
    assert words.keys() == {"ham", "promo", "spam"}
    assert any("shoes" in word["token"] for word in words["promo"])
    for text, verdict in (
        (b"shoes in the shop", "promo"),
        (b"win a free prize", "spam"),
        (b"lunch at noon", "ham"),
    ):
        found = explained("-m", path, stdin=text)
        assert found["verdict"] == found["of"] == verdict
        assert sum(found["probabilities"].values()) == pytest.approx(1)
        p = found["probabilities"][verdict]
        printed = nbspam("explain", "-m", path, "--top", "1000", stdin=text)
        assert (printed.code, printed.out.startswith(f"-: {verdict}")) == (0, True)
        log_odds = math.log(p) - math.log1p(-p)
        assert sum_shown(printed.out)[0] == pytest.approx(log_odds, abs=0.001)


def test_a_model_of_one_class_is_explained(nbspam, tmp_path):
    path = tmp_path / "m.json"
    learn = ("train", "--update", "--ham", "-", "-m", path)
    assert nbspam(*learn, stdin=b"see you at lunch").code == 0
    for form in ("text", "html", "json"):
        assert nbspam("explain", "-m", path, "--format", form, stdin=b"lunch").code == 0


# Colours and widths


@pytest.mark.few(1)
@pytest.mark.parametrize("options", [(), ("--words",)])
def test_output_in_a_pipe_has_no_escape_codes(program, model, options):
    found = program("explain", "-m", model, *options, input=b"free prize")
    assert (found.code, "\x1b" in found.out) == (0, False)


def test_colours_are_of_a_terminal_alone(model, tmp_path):
    (tmp_path / "m.txt").write_text("win a free prize now")
    arguments = ("explain", "-m", model, tmp_path / "m.txt")
    coloured = on_a_terminal(*arguments, COLUMNS="80")
    assert ("\x1b[31m" in coloured, "[+" in coloured) == (True, False)
    plain = on_a_terminal(*arguments, COLUMNS="80", NO_COLOR="1")
    assert ("\x1b" in plain, "prize+]" in plain) == (False, True)


@pytest.mark.long
def test_the_colours_of_words_are_of_a_terminal_alone(model):
    assert "\x1b" in on_a_terminal("explain", "-m", model, "--words")
    assert "\x1b" not in on_a_terminal("explain", "-m", model, "--words", NO_COLOR="1")


@pytest.mark.parametrize("columns", [40, 80, 120])
@pytest.mark.long
def test_nothing_is_wider_than_the_terminal(sample, sms_model, tmp_path, columns):
    (tmp_path / "免費-m.eml").write_bytes(HOSTILE + b"x" * 300 + " 免費送".encode() * 50)
    for arguments in (
        (f"{sample / 'sms.tsv'}:98",),
        (f"{sample / 'sms.tsv'}:4", "--fragments", "--top", "100"),
        (tmp_path / "免費-m.eml",),
        ("--words",),
    ):
        command = ("explain", "-m", sms_model, *arguments)
        printed = on_a_terminal(*command, COLUMNS=str(columns), NO_COLOR="1")
        # The name of the message is whole, whatever its length: it is to be copied.
        assert max(map(cell_width, printed.splitlines()[1:])) <= columns


def test_the_numbers_line_up_whatever_the_words_are(nbspam, tmp_path, make_model):
    rows = "".join(f"spam\t免費 🚀 prize {i}\nham\tlunch café {i}\n" for i in range(12))
    (tmp_path / "t.tsv").write_text(rows, encoding="utf-8")
    path = make_model(tmp_path / "t.tsv")
    lines = nbspam("explain", "-m", path, stdin="免費 🚀 prize café".encode()).out.splitlines()
    (head,) = (line for line in lines if line.startswith("word"))
    words = [line for line in lines if re.match(r"\S.*  [+-]\d+\.\d{3}  +\d+  +\d+  ", line)]
    assert len(words) > 5
    ends = {cell_width(re.match(r".*?[+-]\d+\.\d{3}", line)[0]) for line in words}
    assert ends == {head.index("weight") + len("weight")}


# What the model does not know


def test_a_text_in_a_script_the_model_has_not_seen_is_unsure_and_explain_says_why(
    explained, shown, model
):
    text = "see всё о погоде и о море, о ветре с востока, о зимнем береге и о старых лодках"
    found = explained("-m", model, stdin=text.encode())
    assert (found["verdict"], found["reason"]) == ("unsure", "too few known words")
    known, of = found["known"], found["text"]
    assert 0 < known < of / 10
    printed = " ".join(shown(text.encode()).split())
    assert (
        f"{found['unknown']} of {found['unknown'] + len(words_of(found))} tokens are unknown to the"
        f" model, and ignored; it knows {known} of {of} in the text, too few to call it ham "
    ) in printed
    assert "-: unsure (too few known words), probability 0." in printed
    assert " unsure (too few known words): the evidence favours ham (log-odds -" in printed
    page = shown(text.encode(), "--format", "html")
    assert "unsure</span> (too few known words), probability 0." in page
    assert "too few" not in shown(b"see you at the meeting")


@each("text, known", [("", "the text has none"), ("зима", "it knows 0 of 5 in the text")])
def test_of_what_nothing_is_known_of_explain_says_so(explained, sms_model, text, known):
    found = explained("-m", sms_model, stdin=text.encode())
    assert found["verdict"] == "unsure"
    assert found["sentences"][0].endswith(f"{known}, too few to call it ham or spam")
    assert found["sentences"][-1].endswith(
        "this is due to the prior; the model knows none of its words."
    )


PRIOR = "this is due to the prior; its known words favour spam, too weakly to change it."


@each(
    "ham, spam, others, verdict, why",
    [
        (6, 28, 14, "unsure", f"spam (log-odds +0.33); {PRIOR}"),
        (12, 8, 3, "ham", f"ham (log-odds -0.60); {PRIOR}"),
        (12, 8, 14, "ham", "ham (log-odds -0.29); this is due to the small-model adjustment; its"
         " words favour spam, but too weakly."),
    ],
)  # fmt: skip
def test_a_word_of_spam_that_a_young_model_does_not_call_spam_has_its_reason(
    nbspam, explained, tmp_path, make_model, ham, spam, others, verdict, why
):
    rows = [f"ham\tthe offer of lunch {i} noon meeting\n" for i in range(ham)]
    rows += [f"spam\toffer win prize now {i}\n" for i in range(spam)]
    rows += [f"ham\tsee you at noon {i}\n" for i in range(others)]
    (tmp_path / "t.tsv").write_text("".join(rows))
    path = make_model(tmp_path / "t.tsv", "--replace")
    found = explained("-m", path, stdin=b"offer")
    assert min(word["weight"] for word in words_of(found)) > 0
    assert (found["verdict"], "reason" in found) == (verdict, False)  # the number decided
    assert found["sentences"] == [f"{verdict}: the evidence favours {why}"]
    printed = " ".join(nbspam("explain", "-m", path, stdin=b"offer").out.split())
    assert found["sentences"][0] in printed


# The message, with the words highlighted that decided

HOSTILE = (
    b"Subject: =?utf-8?q?free_prize_=3Cscript=3Ealert=281=29=3C/script=3E_=E2=80=AEgpj?=\n"
    b'From: "\x1b[31m<img src=x onerror=alert(1)>" <win@shop.example>\n'
    b"Content-Type: text/plain; charset=utf-8\n\n"
    b"\x1b[2J\x1b]0;owned\x07\x9b31m Claim your free prize\xe2\x80\xae \xe5\x85\x8d\xe8\xb2\xbb\n"
    b"</div><script src=//evil.example/x.js></script> see you at lunch, today\n"
)


@each("form", ["text", "html", "json"])
def test_a_hostile_mail_commands_nothing(shown, form):
    printed = shown(HOSTILE, "--format", form)
    assert all(line.isprintable() for line in printed.splitlines())
    if form == "html":
        assert "<script src=//evil.example/x.js>" in assert_harmless(printed).text


def test_a_mail_is_shown_with_its_subject_and_sender_and_what_decided(explained, shown, model):
    mail = b"Subject: a free prize\nFrom: Desk <a@b.example>\n\nclaim the prize today\n"
    printed = shown(mail)
    assert "\n  Subject: a " in printed
    assert "\n  From: Desk <a@b.example>\n" in printed
    message = explained("-m", model, stdin=mail)["message"]
    assert (message["subject"], message["from"]) == ("a free prize", "Desk <a@b.example>")
    assert message["text"] == "claim the prize today"
    pieces = [message["text"][start:end] for start, end, _ in message["highlights"]["text"]]
    assert any("prize" in piece for piece in pieces)
    assert shown(b"win a free prize now").splitlines()[2] == "  win a [+free prize+] now"
    assert "meeting-]" in shown(b"see you at the meeting")


def test_the_page_has_the_message_the_words_and_the_reason(shown):
    parsed = assert_harmless(shown(b"win a free prize now", "--format", "html"))
    for part in (
        "spam, probability 0.",
        "win a free prize now",
        "of 18",
        "the evidence favours spam",
    ):
        assert part in parsed.text


# The table of words


def test_counts_stand_beside_totals(shown, nbspam, model):
    for printed in (shown(b"free prize"), nbspam("explain", "-m", model, "--words").out):
        assert re.search(r"^word +weight +in ham +in spam", printed, re.MULTILINE)
        assert re.search(r"^ +of 18 +of 12$", printed, re.MULTILINE)


def test_character_trigrams_are_folded_unless_asked_for(shown):
    text = b"win a free prize now"
    folded = shown(text, "--top", "1000")
    assert not re.search(r"^tri:", folded, re.MULTILINE)
    assert re.search(r"^\d+ character trigrams \(--fragments shows them\) ", folded, re.MULTILINE)
    all_of_them = shown(text, "--top", "1000", "--fragments")
    assert re.search(r"^tri:pri +[+-]", all_of_them, re.MULTILINE)
    assert "--fragments" not in all_of_them
    total, added = sum_shown(all_of_them)
    assert added == pytest.approx(total, abs=0.05)
    words = shown(b"", "--words")
    assert ("tri:" in words, "--fragments" in words) == (False, True)
    assert "tri:" in shown(b"", "--words", "--fragments")


def test_the_legend_tells_the_kinds_that_are_shown_once(shown):
    printed = shown(b"Win a free prize")
    assert printed.count("a number that every message has") == 1
    assert printed.count("the unit of log-odds") == 1
    assert "a word of a short text" not in printed  # the model has learned none of these
    assert "a character trigram" not in printed
