"""Tables as people have them: the texts of sample_data, and columns beside the messages."""

# ruff: noqa: E501

import io
import json
import random
from pathlib import Path

import pandas as pd

SAMPLES = Path(__file__).parents[2] / "sample_data"
_NAMES = "Ann Bo Carla Dmitri Eve Farid Gwen Hugo Ines Jun Katya Luis Mona Nils Olga Pia".split()
_SURNAMES = (
    "Archer Baker Cruz Dahl Evans Fox Garcia Holm Ito Jensen Kaya Lopez Moreau Novak".split()
)
_BEFORE = "Review of|How to choose|My trip to|Ten facts about|Buying|The best|Why I left".split("|")
_THINGS = "the old harbour|a used bicycle|winter tents|this camera|garden chairs|Lisbon".split("|")
_WORK = "Teacher of maths|Nurse|Freelance designer|Retired engineer|Student of law|Chef".split("|")
_PLACES = "from Leeds|in Porto|near Oslo|in the far north|by the sea".split("|")
_LIKES = "who likes cats and long walks|mother of two, writes about bread|runs every morning".split(
    "|"
)
_AGENTS = [
    f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{n}.0"
    " Safari/537.36"
    for n in range(110, 122)
]


def messages(n, seed):
    """Return labels and texts: of SMS, and of other languages, one in ten."""
    found = []
    for name, share in (("sms.tsv", 0.9), ("other-languages.tsv", 0.1)):
        lines = (SAMPLES / name).read_text("utf-8").splitlines()
        pairs = [tuple(line.split("\t", 1)) for line in lines]
        found += random.Random(seed).sample(pairs, int(share * n))
    random.Random(seed).shuffle(found)
    return found


def other(kind, chance, i):
    """Return a cell of a column beside the messages; i: the number of its row."""
    one = chance.choice
    cells = {
        "id": lambda: str(1000 + i),
        "uuid": lambda: f"{chance.getrandbits(64):016x}",
        "name": lambda: f"{one(_NAMES)} {one(_SURNAMES)}",
        "address": lambda: f"{one(_NAMES).lower()}{i}@mail.example.org",
        "url": lambda: f"https://blog.example/{one(_NAMES).lower()}/post-{chance.randrange(999)}",
        "agent": lambda: one(_AGENTS),
        "date": lambda: (
            f"2024-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02} 10:{i % 60:02}"
        ),
        "when": lambda: f"{chance.randrange(1, 29)} March 2024, {i % 24}:15",
        "ip": lambda: f"10.0.{i % 200}.{chance.randrange(250)}",
        "phone": lambda: f"+44 7700 {900000 + i}",
        "likes": lambda: str(chance.randrange(900)),
        "title": lambda: f"{_BEFORE[i % 3]} {_THINGS[i % 2]}",  # of six posts
        "heading": lambda: f"{one(_BEFORE)} {one(_THINGS)}, part {i}",  # one a row
        "bio": lambda: f"{_WORK[i % 6]} {_PLACES[i % 5]}, {_LIKES[i % 3]}",  # of thirty authors
        "about": lambda: (
            f"{one(_WORK)} {one(_PLACES)} since {1950 + i % 70}, {one(_LIKES)}, {i} posts"
        ),
        "platform": lambda: one(["ios", "android", "web"]),
        "category": lambda: one(["bank", "retail", "family"]),
        "lang": lambda: one(["en", "de"]),
        "phrase": lambda: "Thank you for your message, we will answer soon",
    }
    return cells[kind]()


# A format, the columns in their order (`message` and `label` are the ones to find), what they are
# called (None: `c0`, `c1` …; "": there is no header), the labels for ham and spam, and whether the
# right ones are found and that is sure, or told, or which column may be two: then it is refused.
LAYOUTS = {
    "comments of a blog": ("csv", "id name address url ip date message label agent", "comment_ID comment_author comment_author_email comment_author_url comment_author_IP comment_date comment_content comment_approved comment_agent", "1 spam", "sure"),
    "the same in a stranger's names": ("csv", "id name address url ip date message label agent", None, "1 spam", "told"),
    "videos": ("csv", "uuid name when message title label", "COMMENT_ID AUTHOR DATE CONTENT VIDEO_NAME CLASS", "0 1", "sure"),
    "videos, renamed": ("tsv", "uuid name when message title label", None, "ham spam", "told"),
    "a form": ("csv", "name address message label", "name email comment spam", "0 1", "sure"),
    "a form in Indonesian": ("csv", "name phone message label", "nama telepon komentar label", "0 1", "sure"),
    "a form in Russian": ("tsv", "date name message label", "дата автор сообщение метка", "ham spam", "sure"),
    "a form in Chinese": ("jsonl", "date message label", "日期 内容 标签", "正常 spam", "sure"),
    "posts with headings": ("json", "id heading message label", "id title body label", "ham spam", "sure"),
    "posts with headings, renamed": ("csv", "id heading message label", None, "ham spam", "text"),
    "accounts": ("jsonl", "name about message label date", "user bio tweet is_spam created_at", "0 1", "sure"),
    "accounts, renamed": ("csv", "name about message label date", None, "ham spam", "text"),
    "accounts of few": ("parquet", "name bio message label", None, "ham spam", "told"),
    "SMS of two platforms": ("csv", "category platform message label", "category platform sms is_spam", "0 1", "sure"),
    "yes and no": ("xlsx", "label date message lang", "Junk? Received Text Language", "No Yes", "sure"),
    "a workbook, renamed": ("xlsx", "date message category label", None, "good bad", "told"),
    "two columns of words": ("csv", "platform message lang label", None, "keep drop", "label"),
    "the answer that was sent": ("csv", "message phrase label", "question answer label", "0 1", "told"),
    "no header": ("tsv", "label date message", "", "ham spam", "told"),
    "numbers and counts": ("parquet", "likes id message label ip", "n_likes key wording target ip", "0 1", "told"),
}  # fmt: skip


def layout(name, n=150, seed=7):
    """Return the bytes of a layout, the suffix of its file, its messages, and how sure that is."""
    form, kinds, names, labels, unsure = LAYOUTS[name]
    chance, (ham, spam) = random.Random(name), labels.split()
    pairs = messages(n, seed)
    columns = {
        kind: [
            text if kind == "message" else (spam if label == "spam" else ham) if kind == "label"
            else other(kind, chance, i)
            for i, (label, text) in enumerate(pairs)
        ]
        for kind in kinds.split()
    }  # fmt: skip
    frame = pd.DataFrame(columns)
    frame.columns = names.split() if names else [f"c{i}" for i in range(len(columns))]
    yes = {"is_spam", "spam", "Junk?"} & set(frame.columns)
    expected = [(label if yes else spam if label == "spam" else ham, text) for label, text in pairs]
    return written(frame, form, header=names != ""), f".{form}", expected, unsure


def written(frame, form, header=True):
    """Return a frame as a file of a form."""
    out = io.BytesIO()
    if form in ("csv", "tsv"):
        frame.to_csv(out, index=False, sep="," if form == "csv" else "\t", header=header)
    elif form == "json":
        out.write(frame.to_json(orient="records").encode())
    elif form == "jsonl":
        rows = frame.to_dict("records")
        out.write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())
    elif form == "parquet":
        frame.to_parquet(out)
    else:
        frame.to_excel(out, index=False)
    return out.getvalue()
