"""Ten ways in which a table or an export may be misread, four of each: none is silently wrong."""

# ruff: noqa: E501

import json
import re

import pandas as pd
import pytest
from one_case import each

from nbspam.errors import NbspamError
from nbspam.names import normal_label
from nbspam.reading.source import ReadingOptions, Skips, TableOptions
from nbspam.reading.sources import read_api_input, read_labelled, read_unlabelled

HAM = [f"call me when you are home, Ann, at {i}" for i in range(12)]
SPAM = [f"win a big prize now, reply yes to {i}" for i in range(12)]
PAIRS = [pair for h, s in zip(HAM, SPAM, strict=True) for pair in (("ham", h), ("spam", s))]


def rows(shape, header="", ham="ham", spam="spam"):
    """Return a CSV; shape: of a row, with its label, its text and its number."""
    lines = [
        shape.format(l=ham if label == "ham" else spam, t=f'"{text}"', i=i, m=i % 4, o=i // 2 % 2)
        for i, (label, text) in enumerate(PAIRS)
    ]
    return "\n".join([header] * bool(header) + lines) + "\n"


def chat(head, name="Ann: "):
    """Return a chat of 12 messages; head: of each, with its minute."""
    return "".join(f"{head.format(m=10 + i)}{name}{text}\n" for i, text in enumerate(HAM))


def smses(
    start="<?xml version='1.0'?>\n", element='<sms address="1" body="{t}" />', end="\n</smses>"
):
    return f"{start}<smses>\n" + "\n".join(element.format(t=text) for text in HAM) + end


def jsonl(**more):
    return "".join(json.dumps({"text": t, "label": v} | more) + "\n" for v, t in PAIRS)


PIECES = [
    {"id": 1, "type": "message", "text": [t[:9], {"type": "bold", "text": t[9:]}]} for t in HAM
]
ALL, ONE = PAIRS, [("ham", text) for text in HAM]  # what is read
NUMBERS = [(str(int(label == "spam")), text) for label, text in PAIRS]
# Kind: files or a file, with what is expected of them: messages, and part of a note; or part of the
# sentence with which they are refused.
KINDS = {
    "a value is no name": [
        ("a.csv", rows("sms,{l},{t}"), ALL, "text: column '3' (by content)"),
        ("a.csv", rows("{l},mail,{t},web"), ALL, "text: column '3' (by content)"),
        ("a.csv", rows("{i},message,{l},{t}"), ALL, "text: column '4' (by content)"),
        ("a.tsv", rows("tweet\t{l}\t{t}").replace('"', ""), ALL, "text: column '3' (by content)"),
        ("a.csv", "ham,message\n" + rows("{l},{t}"), [("ham", "message"), *ALL], "is a message"),
        ("a.csv", rows("{i},{l},{t}", "nr,kind,wording"), ALL, "names the columns"),
        ("a.csv", rows("{l},{t}", "0,1", "0", "1"), [(str(int(v == "spam")), t) for v, t in PAIRS], "names the columns (0, 1)"),
        ("a.csv", rows("{t},{l}", "body,spam"), [("spam", "body"), *ALL], "(body, spam) is a message: 'spam' occurs again"),
    ],
    "an answer is not a class name": [
        ("a.csv", rows("{i},{t},{l}", "id,text,not_spam"), ALL, ""),
        ("a.csv", rows("{t},{l}", "text,legitimate", "1", "0"), ALL, "1 in column 'legitimate' means ham"),
        ("a.csv", rows("{t},{l}", "text,Is Legit?", "Yes", "No"), ALL, "yes in column 'Is Legit?' means ham"),
        ("a.csv", rows("{t},{l}", "text,Ham (1) or Spam (0)", "1", "0"), ALL, "1 in column 'Ham (1) or Spam (0)' means ham"),
        ("a.csv", rows("{t},{l}", "text,label (0=ham; 1=spam)", "0", "1"), ALL, ""),
        ("a.csv", rows("{t},{l}", "text,nonspam"), ALL, ""),
        ("a.csv", rows("{t},{l}", "text,is_not_spam_1", "1", "0"), ALL, "1 in column 'is_not_spam_1' means ham"),
        ("a.csv", rows("{t},{l}", "text,no_spam=0", "0", "1"), ALL, ""),
        ("a.csv", rows("{t},{l},0", "text,label_ham,label_spam").replace("ham,0", "1,0").replace("spam,0", "0,1"), ALL, "means ham"),
        ("a.csv", rows("{t},{l}", "text,safe", "TRUE", "FALSE"), ALL, "true in column 'safe' means ham"),
        ("a.csv", rows("{t},{l}", "text,clean", "1", "0"), ALL, "1 in column 'clean' means ham"),
        ("a.csv", rows("{t},{l}", "text,isn't spam", "1", "0"), ALL, "1 in column \"isn't spam\" means ham"),
        ("a.csv", rows("{t},{l}", "text,Spam (0/1)", "0", "1"), ALL, ""),
        ("a.csv", rows("{t},{l}", "text,label: 0 spam 1 ham", "1", "0"), ALL, "1 in column 'label: 0 spam 1 ham' means ham"),
        ("a.csv", rows("{t},{l}", "text,spam0_ham1", "1", "0"), ALL, "1 in column 'spam0_ham1' means ham"),
        ("a.csv", rows("{t},{l}", "text,label (1=spam; 0=not spam)", "0", "1"), ALL, ""),
        ("a.csv", rows("{t},{l}", "text,Spam/Ham (1/0)", "0", "1"), NUMBERS, "'Spam/Ham (1/0)' (0, 1)"),
        ("a.csv", rows("{t},{l},0", "text,v1_ham,v1_spam").replace("ham,0", "True,False").replace("spam,0", "False,True"), ALL, "true in column 'v1_ham' means ham"),
        ("a.csv", rows("{t},{l},1", "text,label,safe", "0", "1"), NUMBERS, "labels are read from column 'label'"),
        ("a.csv", rows("{t},{l}", "texto,spam", "no", "sí"), ALL, ""),
        ("a.csv", rows("{t},{l}", "Text,Spam?", "FALSCH", "WAHR"), ALL, ""),
    ],
    "what was chosen is named, or refused": [
        ("a.csv", rows("{t},{l},{o}", "text,label_a,label_b", "0", "1"), "each of 'label_a', 'label_b' may be the label", ""),
        ("a.csv", rows("{o},{t},{l}", "final_label,text,annotator1_label", "0", "1"), "each of 'final_label', 'annotator1_label' may", ""),
        ("a.csv", rows("{i},{t},{l}", ",Email Text,Email Type", "Safe Email", "Phishing Email"), [({"ham": "safe email", "spam": "phishing email"}[v], t) for v, t in PAIRS], "labels are read from column 'Email Type'"),
        ("a.csv", rows("{t},{l}", "text,flagged", "0", "1"), [(str(int(v == "spam")), t) for v, t in PAIRS], "'flagged' (by content: 0, 1)"),
        ("a.csv", rows("{t},{l},{o}", "text,whoTarget,offensive", "0", "1"), [(str(int(v == "spam")), t) for v, t in PAIRS], "('offensive' may be it, too)"),
        ("a.csv", rows("{t},{l},{o}", "text,predicted,label"), "each of 'predicted', 'label' may be the label", ""),
        ("a.csv", rows("{t},{l},{o}", "text,folder,is_spam"), "each of 'folder', 'is_spam' may be the label", ""),
        ("a.csv", rows("{t},{l},{o}", "text,target,class", "0", "1"), "each of 'class', 'target' may be the label", ""),
    ],
    "a source may be a table of one class": [
        ("ham/a.csv", "text\n" + "".join(f'"{t}"\n' for t in HAM), ONE, ""),
        ("ham/a.jsonl", "".join(json.dumps({"id": i, "body": t}) + "\n" for i, t in enumerate(HAM)), ONE, ""),
        ("ham/part-0.json", json.dumps([{"sms": t, "likes": 3} for t in HAM]), ONE, ""),
        ("=spam a.csv", rows("{t},{l}", "text,label", "0", "0"), "has labels of its own, in column 'label' (ham)", ""),
        ("ham/a.tsv", "nr\tmessage\n" + "".join(f"{i}\t{t}\n" for i, t in enumerate(HAM)), ONE, ""),
    ],
    "an export yields messages, or says that it yields none": [
        ("=ham a.xml", smses(start="\ufeff"), ONE, "is an SMS backup"),
        ("=ham a.xml", smses(element="<sms\n  body = '{t}'\n  name='a > b'\n/>"), ONE, "is an SMS backup"),
        ("=ham a.xml", smses(element='<mms><parts><part ct="text/plain" text="{t}"/><part ct="image/png" data="AA"/></parts></mms>'), ONE, "is an SMS backup"),
        ("=ham a.xml", smses(end=""), ONE, "is an SMS backup"),
        ("=ham a.xml", smses(element='<sms body="{t}&#55357;&#0;" />'), [("ham", f"{t}\ufffd\ufffd") for t in HAM], "is an SMS backup"),
        ("=ham a.xml", "<?xml version='1.0'?><calls count='1'><call number='1'/></calls>", [], "there is no message in it"),
        ("=ham a.txt", chat("5/1/24, 9:{m} AM - "), ONE, "is an exported chat"),
        ("=ham a.txt", chat("[05.01.24, 09:{m}:33] "), ONE, "is an exported chat"),
        ("=ham a.txt", chat("2024年1月5日 9:{m} - ", "王: "), ONE, "is an exported chat"),
        ("=ham a.txt", chat("٥/١/٢٠٢٤، ٩:{m} ص - "), ONE, "is an exported chat"),
        ("=ham a.txt", chat("5-1-2024 klokken 9.{m} - "), ONE, "is an exported chat"),
        ("=ham a.xml", smses(element='<mms><parts><part ct="text/plain; charset=utf-8" text="{t}"/></parts></mms>'), ONE, "is an SMS backup"),
        ("=ham a.xml", "<?xml version='1.0'?>\n<allsms><sms><body>see you</body></sms></allsms>", "is XML, but not an SMS backup", ""),
        ("=ham a.xls", "<html><table><tr><td>see you</td></tr></table></html>", "is a table in HTML or XML", ""),
        ("=ham a.txt", chat("\u200f٥\u200f/١\u200f/٢٠٢٤، ٩:{m} م - "), ONE, "is an exported chat"),
        ("=ham a.txt", chat("2024-01-05 9 h {m} - "), ONE, "is an exported chat"),
        ("=ham a.txt", chat("2024년 1월 5일 오후 9:{m}, ", "박 : "), ONE, "is an exported chat"),
        ("=ham a.txt", "Ann 님과 카카오톡 대화\n\n" + chat("2024년 1월 5일 오후 9:{m}, "), ONE, "is an exported chat"),
        ("ham/a.txt", chat("5/1/24, 9:{m} AM - "), ONE, "is an exported chat"),
        ("ham/sms.xml", smses(), ONE, "is an SMS backup"),
        ("=ham a.json", json.dumps({"name": "Ann", "messages": PIECES}), ONE, ""),
        ("=ham a.json", json.dumps({"chats": {"list": [{"name": "A"}, {"messages": PIECES[:5]}]}, "left_chats": {"list": [{"messages": PIECES[5:]}]}}), ONE, ""),
        ("=ham a.json", json.dumps({"messages": [{"sender_name": "A", "content": f"grÃ¼n: {t}"} for t in HAM]}), [("ham", f"grün: {t}") for t in HAM], ""),
        ("=ham a.json", json.dumps({"messages": [{"sender": "A", "message": t} for t in HAM]}), ONE, ""),
        ("a.json", json.dumps({"messages": [{"text": t, "class": v} for v, t in PAIRS]}), ALL, ""),
        ("a.json", json.dumps({"messages": [{"text": t, "is_spam": v == "spam"} for v, t in PAIRS]}), ALL, ""),
        ("=ham a.json", json.dumps({"chats": {"list": [{"messages": PIECES[:5]}, {"messages": PIECES[5:]}]}}), ONE, ""),
        ("=ham a.json", json.dumps({"guild": {}, "messages": [{"id": "1", "type": "Default", "content": t, "author": {"name": "A"}} for t in HAM]}), ONE, ""),
        ("=ham a.json", json.dumps({"messageCount": 12, "messages": [{"type": 1, "body": t} for t in HAM]}), ONE, ""),
        ("=ham a.html", "<!DOCTYPE html>\n<html>\n <head>\n  <meta charset='utf-8'/>\n<title>Exported Data</title>", "is a page that Telegram exported", ""),
        ("a.json", json.dumps({"messages": PIECES}), "is an exported chat, without labels", ""),
        ("a.json", json.dumps({"messages": [{"type": "service", "text": ""}]}), "is an exported chat, without labels", ""),
        ("a.txt", chat("5/1/24, 9:{m} AM - "), "an exported chat has no labels", ""),
    ],
    "a sentence is true": [
        ("a.jsonl", json.dumps([{"label": v, "text": t} for v, t in PAIRS], indent=1), ALL, ""),
        ("a.jsonl", '[{"label": "ham", "text": "x"},\n {"label": "spam", "text": "y"}]', [("ham", "x"), ("spam", "y")], ""),
        ("a.tsv", "version https://git-lfs.github.com/spec/v1\noid sha256:a\nsize 5\n", "is a Git LFS pointer", ""),
        ("a.tsv", "\n<HTML><head></head></html>\n", "is a page of HTML", ""),
        ("a.csv", jsonl(), ALL, ""),
        ("a.tsv", json.dumps([{"label": v, "text": t} for v, t in PAIRS], indent=1), ALL, ""),
        ("a.csv", "<?xml version='1.0'?>\n<!-- saved from a page -->\n<html></html>\n", "is a page of HTML", ""),
        ("a.jsonl", "nothing\nof the kind\n", "no row can be read in it", ""),
        ("=ham a.csv", rows("{t},{l}", "text,label"), "has labels of its own, in column 'label' (spam)", ""),
        ("=spam a.csv", "text,label\nsee you,ham\n", "has labels of its own, in column 'label' (ham)", ""),
    ],
    "one odd row does not change the kind": [
        ("a.csv", rows("{l},{t}", "label,text") + '"""spam""",win\n', [*ALL, ("spam", "win")], ""),
        ("a.csv", rows("{t},{l}", "text,label") + 'win, "spam"\n', [*ALL, ("spam", "win")], ""),
        ("a.csv", rows("{l},{t}", "label,text") + "\ufeffspam,win\n\u200bham,see you\n", [*ALL, ("spam", "win"), ("ham", "see you")], ""),
        ("a.csv", rows("{l},{t}", "label,text") + "spam.,win\n'ham',see you\n«Spam»,buy\n", [*ALL, ("spam", "win"), ("ham", "see you"), ("spam", "buy")], ""),
        ("a.csv", rows("\u200e{l},{t}", "\u200blabel,'text'") + "\u202bspam\u202c,win\n", [*ALL, ("spam", "win")], ""),
        ("a.csv", rows("{t},{m}", "text,rating"), "no column among 'text', 'rating' looks like a label", ""),
        ("a.csv", rows("{t},{i}", "text,like_count"), "no column among 'text', 'like_count' looks like a label", ""),
        ("a.csv", rows("{t},{l}", "text,language", "en", "de"), "no column among 'text', 'language' looks", ""),
        ("a.csv", rows("{t},{l}", "text,mood", "sad", "glad"), [({"ham": "sad", "spam": "glad"}[v], t) for v, t in PAIRS], "'mood' (by content: glad, sad)"),
    ],
}  # fmt: skip
CASES = [(kind, *case) for kind, cases in KINDS.items() for case in cases]


def read(path, label="", **table):
    """Return labels and texts, and what is told and skipped."""
    told, skips = [], Skips()
    options = ReadingOptions(TableOptions(**table), on_note=lambda note: told.append(str(note)))
    raws = (
        read_unlabelled(str(path), label, options, skips)
        if label
        else read_labelled(str(path), options, skips)
    )
    return [(raw.label, raw.content) for raw in raws], "\n".join([*told, *skips.named])


@each("kind, name, content, expected, note", CASES)
def test_no_layout_is_silently_wrong(kind, name, content, expected, note, tmp_path):
    label, _, name = name.removeprefix("=").rpartition(" ")
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content, "utf-8")
    source = tmp_path if "/" in name else path
    if isinstance(expected, str):
        with pytest.raises(NbspamError, match=re.escape(expected)):
            read(source, label)
        return
    found, told = read(source, label)
    assert [(one, " ".join(text.split())) for one, text in found] == expected, (kind, told)
    assert note in told
    assert bool(told) == bool(note), told


@each(
    "text",
    [
        "<?xml:namespace prefix=o /><p>buy pills",  # Outlook's
        "<!---->" * 60 + "see you",
        "2020-01-05, 10:22 - start\n2020-01-05, 10:30 - end\n",
    ],
)
def test_a_text_like_an_export_is_one_message(text, tmp_path):
    path = tmp_path / "ham.txt"
    path.write_text(text)
    assert read(path, "ham") == ([("ham", path)], "")


def test_a_text_of_many_lines_is_told_to_be_one_message(tmp_path):
    path = tmp_path / "ham.txt"
    path.write_text("\n".join(HAM * 2))
    found, told = read(path, "ham")
    assert len(found) == 1
    assert "its lines are read as one message; if each is a message, name the file" in told
    assert read(tmp_path, "ham") == (found, told)
    path.write_text("\n\n".join(HAM * 2))
    assert read(path, "ham")[1] == ""


def test_the_lines_of_a_chat_are_told_to_have_dates(tmp_path):
    path, told = tmp_path / "chat.txt", []
    path.write_text(chat("5/1/24, 9:{m} AM - "))
    options = ReadingOptions(input_format="lines", on_note=lambda note: told.append(str(note)))
    assert len(list(read_unlabelled(str(path), "ham", options, Skips()))) == len(HAM)
    assert "its lines are read, with dates and names" in "".join(told)


CLASSES = {"names": ["spam", "ham"], "_type": "ClassLabel"}
# What the metadata says of the column, and its values.
SAID = {
    "class names": (CLASSES, lambda number: number),
    "their numbers": ({"names": {"0": "spam", "1": "ham"}}, lambda number: number),
    "a list": ({"feature": CLASSES, "_type": "Sequence"}, lambda number: [number]),
    "an object": ({"kind": CLASSES}, lambda number: {"kind": number}),
}


@each("form", [*SAID, "an index", "a category", "bytes", "one that is not known"])
def test_what_a_parquet_file_says_of_itself_counts(form, tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path, expected = tmp_path / "a.parquet", PAIRS
    frame = pd.DataFrame(PAIRS, columns=["label", "text"])
    column = "label.kind" if form == "an object" else None
    if form == "an index":
        frame.set_index("label").to_parquet(path)
    elif form == "bytes":
        frame.map(str.encode).to_parquet(path)
    elif form == "a category":
        frame.astype({"label": "category"}).to_parquet(path)
    else:
        numbers = [["spam", "ham"].index(label) for label, _ in PAIRS]
        if form == "one that is not known":
            numbers[0], expected = -1, PAIRS[1:]
        feature, value_of = SAID.get(form, SAID["class names"])
        table = pa.table({"text": frame.text, "label": pa.array(map(value_of, numbers))})
        said = json.dumps({"info": {"features": {"label": feature, "text": {"dtype": "string"}}}})
        pq.write_table(table.replace_schema_metadata({"huggingface": said}), path)
    assert read(path, label_column=column)[0] == expected


@each(
    "names",
    [
        "train-0.csv test-0.csv",
        "train.csv valid.csv test.csv",
        "training.csv dev.csv",
        "train.csv.gz test.csv",
        "sms_train.csv sms_test.csv sample_submission.csv",
        "split=train/0.csv split=test/0.csv",
        "data/train-0.csv data/test-0.csv",
    ],
)
def test_parts_for_training_are_read_and_the_others_named(names, tmp_path):
    first, *others = names.split()
    import gzip

    for name in names.split():
        content = rows("{l},{t}", "label,text").encode()
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    (tmp_path / "_SUCCESS").touch()
    found, told = read(tmp_path)
    assert found == ALL
    assert all(other in told for other in others)
    assert first not in told


def test_tables_of_an_only_sub_folder_are_read_only_if_it_is_called_data(tmp_path):
    for folder, other in (("parts", "README.md"), ("data", "train-1.csv")):
        place = tmp_path / other / folder
        place.mkdir(parents=True)
        (place / "train.csv").write_text(rows("{l},{t}", "label,text"))
        (place.parent / other).touch()
        found, told = read(tmp_path / other)
        assert (found, "train.csv" in told) == ([], True)


@each(
    "source",
    [
        lambda: [(text, label) for label, text in PAIRS],
        lambda: [{"label": label, "text": text} for label, text in PAIRS],
        lambda: pd.DataFrame(PAIRS).to_numpy(),
        lambda: [(text, {"ham": 0.0, "spam": 1.0}[label]) for label, text in PAIRS],
        lambda: pd.DataFrame(PAIRS, columns=["label", "text"]).set_index("label"),
    ],
)
def test_what_a_program_has_is_read_whichever_way_round(source):
    found = [
        ({"0": "ham", "1": "spam"}.get(raw.label, raw.label), raw.content)
        for raw in read_api_input(source(), [], ReadingOptions(), Skips(strict=True))
    ]
    assert found == PAIRS


def test_labels_by_hand_are_the_same_class():
    for written in (
        '"spam"',
        "'Spam'",
        " “spam” ",
        "spam.",
        "\ufeffspam",
        "sp\u00adam",
        "spam\u200b ,",
    ):
        assert normal_label(written) == "spam"
    for kept in ("-1", "c++", "#tag", "не спам", '"', "..."):
        assert normal_label(kept) == kept
