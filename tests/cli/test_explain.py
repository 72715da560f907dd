import json
import math
import re

import pytest
from harmless_pages import assert_harmless
from many_cases import in_turn
from terminals import on_a_terminal

from nbspam.display.cells import cell_width


def explained(nbspam, *arguments, **options):
    return json.loads(nbspam("explain", "--format", "json", *arguments, **options).out)


def close(expected):
    return pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_json_has_the_promised_fields(nbspam, model):
    found = explained(nbspam, "-m", model, stdin=b"win a free prize now xylophone")
    assert {
        *("source", "verdict", "probability", "log_odds", "bias", "sum_log_odds", "words")
    } <= found.keys()
    for word in found["words"]:
        assert {"token", "weight", "counts", "share"} <= word.keys()
        assert word["counts"].keys() == {"ham", "spam"}
    prize = next(word for word in found["words"] if word["token"] == "prize")
    assert prize["weight"] > 0
    assert prize["counts"] == {"ham": 0, "spam": 12}


def test_json_lists_all_words_whatever_is_shown(nbspam, model):
    text = b"win a free prize now for lunch at the meeting"
    assert explained(nbspam, "-m", model, stdin=text) == explained(
        nbspam, "-m", model, "--top", "1", stdin=text
    )


@in_turn("text", [b"win a free prize", b"meeting notes", b"", b"lunch prize"])
def test_the_score_is_that_of_classify(nbspam, model, text):
    found = explained(nbspam, "-m", model, stdin=text)
    classified = json.loads(nbspam("classify", "-m", model, "--format", "json", stdin=text).out)
    for name in ("source", "verdict", "probability", "log_odds"):
        assert classified[name] == found[name]


def sum_shown(text):
    """Return the sum that the text shows, and what its last column adds up to."""
    column = [
        float(match[1])
        for line in text.splitlines()
        if (match := re.search(r"([+-]\d+\.\d+)(?:  [+-]*)?$", line)) and "sum" not in line
    ]
    shown = re.search(r"^sum.*?([+-]\d+\.\d+)", text, re.MULTILINE)
    return float(shown[1]), sum(column)


def test_the_shares_add_up_to_the_score(nbspam, model):
    text = b"win a free prize now for lunch at the meeting"
    log_odds = explained(nbspam, "-m", model, stdin=text)["log_odds"]
    for top in (1, 3, 100):
        printed = nbspam("explain", "-m", model, "--top", top, stdin=text).out
        total, added = sum_shown(printed)
        assert total == pytest.approx(log_odds, abs=0.001)
        assert added == pytest.approx(total, abs=0.02)


def test_the_text_names_verdict_words_and_sum(nbspam, model):
    found = nbspam("explain", "-m", model, stdin=b"win a free prize now")
    assert (found.code, found.err) == (0, "")
    lines = found.out.splitlines()
    assert re.fullmatch(r"-: spam, probability [01]\.\d{4}", lines[0])
    assert any(line.startswith("prize ") for line in lines)
    assert any(line.startswith("sum") for line in lines)


def test_the_strongest_words_alone_are_shown(nbspam, model):
    text = b"win a free prize now for lunch at the meeting"
    few = nbspam("explain", "-m", model, "--top", "2", stdin=text).out
    all_of_it = nbspam("explain", "-m", model, "--top", "100", stdin=text).out
    assert len(few.splitlines()) < len(all_of_it.splitlines())


def test_tokens_never_seen_are_counted(nbspam, model):
    plain = explained(nbspam, "-m", model, stdin=b"free prize")
    strange = explained(nbspam, "-m", model, stdin=b"free prize xylophone")
    assert strange["unknown"] > plain["unknown"]
    assert "xylophone" not in [word["token"] for word in strange["words"]]


def test_a_row_of_a_table_is_named_by_its_line(nbspam, table, model):
    rows = nbspam("classify", "-m", model, "--format", "json", table).out.splitlines()
    found = explained(nbspam, "-m", model, f"{table}:3")
    expected = json.loads(rows[2])
    assert f"{table}:3" == expected["source"] == found["source"]
    assert expected["log_odds"] == found["log_odds"]


def test_each_name_that_classify_prints_can_be_explained(nbspam, sample, sms_model):
    mbox = sample / "mail" / "spam.mbox"
    for line in nbspam("classify", "-m", sms_model, mbox).out.splitlines()[:3]:
        verdict, probability, source = line.split("\t")
        found = explained(nbspam, "-m", sms_model, source)
        assert (verdict, source) == (found["verdict"], found["source"])
        assert f"{found['probability']:.4f}" == probability


def test_a_row_that_is_not_there_is_an_error(nbspam, table, model, assert_sentence):
    assert_sentence(nbspam("explain", "-m", model, f"{table}:99"), f"{table}:99")


def test_of_several_messages_the_first_is_explained_and_told(nbspam, table, model):
    found = nbspam("explain", "-m", model, table)
    assert found.code == 0
    assert found.out.startswith(f"{table}:1: ")
    assert found.err.startswith(f"nbspam: {table} holds several")


def test_words_are_the_models_strongest(nbspam, model):
    found = nbspam("explain", "--words", "--top", "3", "-m", model, "--format", "json")
    words = json.loads(found.out)
    assert words.keys() == {"ham", "spam"}
    assert [len(of_class) for of_class in words.values()] == [3, 3]
    for of_class in words.values():
        weights = [word["weight"] for word in of_class]
        assert sorted(weights, reverse=True) == weights
    assert words["spam"][0]["counts"]["ham"] == 0
    assert words["ham"][0]["counts"]["spam"] == 0


def test_words_of_three_classes(nbspam, three_classes, make_model):
    path = make_model(three_classes)
    words = json.loads(nbspam("explain", "--words", "-m", path, "--format", "json").out)
    assert words.keys() == {"ham", "promo", "spam"}
    tokens = [word["token"] for word in words["promo"]]
    assert any("shoes" in token for token in tokens)


def test_three_classes_are_explained(nbspam, three_classes, make_model):
    path = make_model(three_classes)
    found = explained(nbspam, "-m", path, stdin=b"shoes in the shop")
    assert found["verdict"] == "promo"
    assert sum(found["probabilities"].values()) == pytest.approx(1)
    text = nbspam("explain", "-m", path, stdin=b"shoes in the shop")
    assert text.code == 0
    assert text.out.startswith("-: promo")


IN_WORDS = {
    "calibration": "calibration: any message",
    "length": "calibration: its length",
    "caution": "caution for ham",
}


def test_the_text_has_the_calibrations_constants(nbspam, model):
    text = b"win a free prize now for lunch"
    printed = nbspam("explain", "-m", model, stdin=text).out
    constants = explained(nbspam, "-m", model, stdin=text)["constants"]
    assert constants.keys() == IN_WORDS.keys()
    for name, nats in constants.items():
        (line,) = (line for line in printed.splitlines() if line.startswith(IN_WORDS[name]))
        assert float(line.split()[-1]) == pytest.approx(nats, abs=0.0006)


@in_turn(
    "options",
    [
        (),
        ("--prior", "0.1"),
        ("--scoring", "sum"),
        ("--scoring", "sum", "--prior", ".9"),
    ],
)
@in_turn("text", [b"win a free prize now for lunch", b"xylophone", b""])
def test_the_sum_printed_is_the_log_odds(nbspam, table, make_model, options, text):
    path = make_model(table, "--replace", *options)
    found = explained(nbspam, "-m", path, stdin=text)
    total, added = sum_shown(nbspam("explain", "-m", path, "--top", "1000", stdin=text).out)
    assert total == pytest.approx(found["log_odds"], abs=0.0006)
    assert added == pytest.approx(total, abs=0.03)
    shares = sum(word["share"] for word in found["words"])
    assert close(found["log_odds"]) == shares + sum(found["constants"].values())


def test_a_prior_is_one_of_the_constants(nbspam, table, make_model):
    text = b"win a free prize"
    plain = explained(nbspam, "-m", make_model(table), stdin=text)
    fixed = explained(nbspam, "-m", make_model(table, "--prior", "0.1", "--replace"), stdin=text)
    new = fixed["constants"].keys() - plain["constants"].keys()
    assert len(new) == 1
    moved = fixed["log_odds"] - plain["log_odds"]
    assert close(moved) == fixed["constants"][new.pop()]
    assert moved < 0


def test_the_sum_of_three_classes_is_the_log_odds_of_the_most_probable(
    nbspam, three_classes, make_model
):
    path = make_model(three_classes)
    for text in (b"shoes in the shop", b"win a free prize", b"lunch at noon"):
        found = explained(nbspam, "-m", path, stdin=text)
        p = found["probabilities"][found["of"]]
        total, _ = sum_shown(nbspam("explain", "-m", path, "--top", "1000", stdin=text).out)
        assert total == pytest.approx(math.log(p) - math.log1p(-p), abs=0.001)


@pytest.mark.few(1)
@pytest.mark.parametrize("options", [(), ("--words",)])
def test_output_in_a_pipe_has_no_escape_codes(program, model, options):
    found = program("explain", "-m", model, *options, input=b"free prize")
    assert found.code == 0
    assert "\x1b" not in found.out


@pytest.mark.long
def test_no_color_on_a_terminal_is_heeded(model):
    assert "\x1b" in on_a_terminal("explain", "-m", model, "--words")
    assert "\x1b" not in on_a_terminal("explain", "-m", model, "--words", NO_COLOR="1")


def test_words_with_a_message_is_wrong_usage(nbspam, model):
    result = nbspam("explain", "--words", "-m", model, "message.txt")
    assert (result.code, "leave out message.txt" in result.err) == (2, True)


# What the model does not know


def test_a_text_in_a_script_the_model_has_not_seen_is_unsure_and_explain_says_why(nbspam, model):
    text = "see всё о погоде и о море, о ветре с востока, о зимнем береге и о старых лодках"
    found = explained(nbspam, "-m", model, stdin=text.encode())
    assert found["verdict"] == "unsure"
    known, of = found["known"], found["text"]
    assert 0 < known < of / 10
    words = [word for word in found["words"] if not word["token"].startswith("trait:")]
    printed = " ".join(nbspam("explain", "-m", model, stdin=text.encode()).out.split())
    assert (
        f"{found['unknown']} of {found['unknown'] + len(words)} tokens are unknown to the"
        f" model, and ignored; it knows {known} of {of} in the text, too few to call it ham "
    ) in printed
    assert "-: unsure (too few known words), probability 0." in printed
    assert " unsure (too few known words): the sum leans to ham by " in printed
    assert found["reason"] == "too few known words"
    page = nbspam("explain", "-m", model, "--format", "html", stdin=text.encode()).out
    assert "unsure</span> (too few known words), probability 0." in page
    plain = nbspam("explain", "-m", model, stdin=b"see you at the meeting").out
    assert "too few" not in plain


@in_turn("text, known", [("", "the text has none"), ("зима", "it knows 0 of 5 in the text")])
def test_of_what_nothing_is_known_of_explain_says_so(nbspam, sms_model, text, known):
    found = explained(nbspam, "-m", sms_model, stdin=text.encode())
    assert found["verdict"] == "unsure"
    assert found["sentences"][0].endswith(f"{known}, too few to call it ham or spam")
    assert found["sentences"][-1].endswith("which is the prior: the model knows none of its words.")


@pytest.mark.parametrize(
    ("ham", "spam", "others", "verdict", "why"),
    [
        (
            6,
            28,
            14,
            "unsure",
            "to spam by 0.33 nats, which is the prior: its known words lean to spam,"
            " too weakly to move it.",
        ),
        (
            12,
            8,
            3,
            "ham",
            "to ham by 0.60 nats, which is the prior: its known words lean to spam,"
            " too weakly to move it.",
        ),
        (
            12,
            8,
            14,
            "ham",
            "to ham by 0.29 nats, because of caution for ham: its words lean to spam, too weakly.",
        ),
    ],
)
def test_a_word_of_spam_that_a_young_model_does_not_call_spam_has_its_reason(
    nbspam, tmp_path, make_model, ham, spam, others, verdict, why
):
    rows = [f"ham\tthe offer of lunch {i} noon meeting\n" for i in range(ham)]
    rows += [f"spam\toffer win prize now {i}\n" for i in range(spam)]
    rows += [f"ham\tsee you at noon {i}\n" for i in range(others)]
    (tmp_path / "t.tsv").write_text("".join(rows))
    path = make_model(tmp_path / "t.tsv")
    found = explained(nbspam, "-m", path, stdin=b"offer")
    words = [word for word in found["words"] if not word["token"].startswith("trait:")]
    assert min(word["weight"] for word in words) > 0
    assert (found["verdict"], "reason" in found) == (verdict, False)  # the number decided
    assert found["sentences"] == [f"{verdict}: the sum leans {why}"]
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


def test_what_decided_has_signs_in_a_pipe(nbspam, model):
    lines = nbspam("explain", "-m", model, stdin=b"win a free prize now").out.splitlines()
    assert lines[2].startswith("  ")
    assert lines[2] == "  win a [+free prize+] now"
    ham = nbspam("explain", "-m", model, stdin=b"see you at the meeting").out
    assert "meeting-]" in ham


def test_a_mail_is_shown_with_its_subject_and_sender(nbspam, model):
    mail = b"Subject: a free prize\nFrom: Desk <a@b.example>\n\nclaim the prize today\n"
    shown = nbspam("explain", "-m", model, stdin=mail).out
    assert "\n  Subject: a " in shown
    assert "\n  From: Desk <a@b.example>\n" in shown
    message = explained(nbspam, "-m", model, stdin=mail)["message"]
    assert message["subject"] == "a free prize"
    assert message["from"] == "Desk <a@b.example>"
    assert message["text"] == "claim the prize today"
    pieces = [message["text"][start:end] for start, end, _ in message["highlights"]["text"]]
    assert any("prize" in piece for piece in pieces)


def test_colours_are_of_a_terminal_alone(model, tmp_path):
    (tmp_path / "m.txt").write_text("win a free prize now")
    arguments = ("explain", "-m", model, tmp_path / "m.txt")
    coloured = on_a_terminal(*arguments, COLUMNS="80")
    assert "\x1b[31m" in coloured
    assert "[+" not in coloured
    plain = on_a_terminal(*arguments, COLUMNS="80", NO_COLOR="1")
    assert "\x1b" not in plain
    assert "prize+]" in plain


@in_turn("form", ["text", "html", "json"])
def test_a_hostile_mail_commands_nothing(nbspam, model, form):
    shown = nbspam("explain", "-m", model, "--format", form, stdin=HOSTILE).out
    assert all(line.isprintable() for line in shown.splitlines())
    if form == "html":
        parsed = assert_harmless(shown)
        assert "<script src=//evil.example/x.js>" in parsed.text


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
        shown = on_a_terminal(
            "explain", "-m", sms_model, *arguments, COLUMNS=str(columns), NO_COLOR="1"
        )
        # The name of the message is whole, whatever its length: it is to be copied.
        lines = shown.splitlines()[1:]
        assert max(map(cell_width, lines)) <= columns


def test_the_numbers_line_up_whatever_the_words_are(nbspam, tmp_path, make_model):
    rows = "".join(f"spam\t免費 🚀 prize {i}\nham\tlunch café {i}\n" for i in range(12))
    (tmp_path / "t.tsv").write_text(rows, encoding="utf-8")
    path = make_model(tmp_path / "t.tsv")
    shown = nbspam("explain", "-m", path, stdin="免費 🚀 prize café".encode()).out.splitlines()
    (head,) = (line for line in shown if line.startswith("word"))
    words = [line for line in shown if re.match(r"\S.*  [+-]\d+\.\d{3}  +\d+  +\d+  ", line)]
    assert len(words) > 5
    ends = {cell_width(re.match(r".*?[+-]\d+\.\d{3}", line)[0]) for line in words}
    assert ends == {head.index("weight") + len("weight")}


def test_counts_stand_beside_totals(nbspam, model):
    for options in ((), ("--words",)):
        shown = nbspam("explain", "-m", model, *options, stdin=b"free prize").out
        assert re.search(r"^word +weight +in ham +in spam", shown, re.MULTILINE)
        assert re.search(r"^ +of 18 +of 12$", shown, re.MULTILINE)


def test_character_trigrams_are_folded_unless_asked_for(nbspam, model):
    text = b"win a free prize now"
    folded = nbspam("explain", "-m", model, "--top", "1000", stdin=text).out
    assert not re.search(r"^tri:", folded, re.MULTILINE)
    assert re.search(r"^\d+ character trigrams \(--fragments shows them\) ", folded, re.MULTILINE)
    shown = nbspam("explain", "-m", model, "--top", "1000", "--fragments", stdin=text).out
    assert re.search(r"^tri:pri +[+-]", shown, re.MULTILINE)
    assert "--fragments" not in shown
    assert sum_shown(shown)[1] == pytest.approx(sum_shown(shown)[0], abs=0.05)
    words = nbspam("explain", "-m", model, "--words").out
    assert "tri:" not in words
    assert "--fragments" in words
    assert "tri:" in nbspam("explain", "-m", model, "--words", "--fragments").out


def test_the_legend_tells_the_kinds_that_are_shown_once(nbspam, model):
    shown = nbspam("explain", "-m", model, stdin=b"Win a free prize").out
    assert shown.count("a number that every message has") == 1
    assert shown.count("the unit of log-odds") == 1
    assert "a word of a short text" not in shown  # the model has learned none of these
    assert "a character trigram" not in shown


def test_the_words_of_a_model_have_the_signs_of_an_explanation(nbspam, model):
    shown = nbspam("explain", "-m", model, "--words", "--top", "3").out
    ham, spam = shown.split("strongest for ")[1:3]
    assert re.findall(r"  ([+-])\d+\.\d{3}", ham) == ["-"] * 3
    assert re.findall(r"  ([+-])\d+\.\d{3}", spam) == ["+"] * 3


def test_a_page_of_the_models_words_is_wrong_usage(nbspam, model):
    found = nbspam("explain", "-m", model, "--words", "--format", "html")
    assert (found.code, found.out) == (2, "")


def test_the_page_has_the_message_the_words_and_the_reason(nbspam, model):
    text = b"win a free prize now"
    parsed = assert_harmless(nbspam("explain", "-m", model, "--format", "html", stdin=text).out)
    for part in ("spam, probability 0.", "win a free prize now", "of 18", "the sum leans to spam"):
        assert part in parsed.text


def test_a_model_of_one_class_is_explained_on_a_page(nbspam, tmp_path):
    (tmp_path / "t.txt").write_text("see you at lunch")
    path = tmp_path / "m.json"
    assert nbspam("train", "--update", "--ham", tmp_path / "t.txt", "-m", path).code == 0
    for form in ("text", "html", "json"):
        assert nbspam("explain", "-m", path, "--format", form, stdin=b"lunch").code == 0
