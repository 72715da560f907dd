"""Lines of a text: a byte order mark, the charset that letters say, and where lines end."""

# ruff: noqa: E501

import json

from one_case import each

from nbspam.reading.lines import guess_charset
from nbspam.reading.source import ReadingOptions, Skips, TableOptions
from nbspam.reading.sources import read_labelled, read_unlabelled

TEXTS = {
    "cp1251": "Встреча перенесена, приходи в десять часов|Вам одобрен кредит, ответьте сегодня",
    "koi8-r": "Встреча перенесена, приходи в десять часов|Вам одобрен кредит, ответьте сегодня",
    "cp1252": "Où es-tu ? Le dîner est prêt, à bientôt|Félicitations, réclamez vos 500 € dès à présent",
    "cp1250": "Schůzka se přesouvá na zítřek, přijď včas|Wygrałeś nagrodę, odbierz ją już dziś, kliknij",
    "cp1254": "Toplantı yarına ertelendi, görüşürüz|Ödül kazandınız, şimdi tıklayın, ücretsiz çağrı",
    "cp1253": "Η συνάντηση μεταφέρθηκε για αύριο το πρωί|Κερδίσατε δωρεάν βραβείο, απαντήστε σήμερα",
    "cp1255": "הפגישה נדחתה למחר בבוקר, נתראה|זכית בפרס גדול, לחץ כאן עכשיו כדי לקבל",
    "cp1256": "تم تأجيل الاجتماع إلى الغد صباحا|مبروك لقد ربحت جائزة كبيرة اضغط هنا الآن",
    "gb18030": "会议改到明天上午十点，不要忘了带电脑|恭喜您中奖了，请点击链接领取您的免费手机",
    "big5": "會議改到明天上午十點，不要忘了帶電腦|恭喜您中獎了，請點擊連結領取您的免費手機",
    "cp932": "会議は明日の朝十時に変わりました|おめでとうございます、今すぐここをクリックしてください",
    "cp949": "회의는 내일 아침 열 시로 바뀌었습니다|축하합니다 지금 바로 여기를 눌러 상품을 받으세요",
}
TITLES = {
    "cp932": "Shift-JIS",
    "cp949": "EUC-KR",
    "gb18030": "GB18030",
    "big5": "Big5",
    "koi8-r": "KOI8-R",
}
PAIRS = {
    codec: [
        ("ham" if i % 2 == 0 else "spam", f"{text} {i}")
        for i in range(8)
        for text in [texts.split("|")[i % 2]]
    ]
    for codec, texts in TEXTS.items()
}


def read(path, label=None, **table):
    told, skips = [], Skips(strict=True)
    form = table.pop("form", None)
    options = ReadingOptions(TableOptions(**table), form, on_note=told.append)
    raws = (
        read_unlabelled(str(path), label, options, skips)
        if label
        else read_labelled(str(path), options, skips)
    )
    return [(raw.label, raw.content) for raw in raws], [
        str(what).partition(": ")[2] for what in told
    ]


def table(pairs, form):
    if form == "json":
        return json.dumps([{"label": a, "text": b} for a, b in pairs], ensure_ascii=False)
    if form == "jsonl":
        rows = ({"label": a, "text": b} for a, b in pairs)
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    delimiter = "\t" if form == "tsv" else ","
    quoted = ((a, b if form == "tsv" else f'"{b}"') for a, b in pairs)
    return "".join(f"{a}{delimiter}{b}\n" for a, b in [("label", "text"), *quoted])


@each("codec", TEXTS)
@each("form", ["csv", "tsv", "jsonl", "json"])
def test_letters_say_the_charset_and_the_user_is_told(codec, form, tmp_path):
    path = tmp_path / f"a.{form}"
    path.write_bytes(table(PAIRS[codec], form).encode(codec))
    title = TITLES.get(codec, codec.replace("cp", "Windows-"))
    line = f"is not UTF-8, and is read as {title}; name another encoding (--encoding)"
    assert read(path) == (PAIRS[codec], [line])
    assert read(path, encoding=codec) == (PAIRS[codec], [])
    path.write_bytes(table(PAIRS[codec], form).encode())
    assert read(path) == (PAIRS[codec], [])


@each(
    "text",
    [
        *("naïve", "50 €", "a café at nine", "“quoted”", "½ price £5", "café " + "£9, £££ " * 99),
        *("£5", "win £9, £££ now"),  # and no other letter
        "å£900 now, Ì_ u, " * 9,  # as in Kaggle's file, whose pounds were read wrongly before
    ],
)
def test_a_few_letters_are_windows_1252(text):
    assert guess_charset(text.encode("cp1252")) == "cp1252"


def test_lines_of_two_charsets_are_read_each_by_its_own(tmp_path):
    path = tmp_path / "a.tsv"
    text = "Встреча перенесена, приходи в десять часов"
    lines = [b"ham\t" + text.encode(("utf-8", "cp1251")[i % 2]) + b"\n" for i in range(8)]
    path.write_bytes(b"".join(lines))
    assert read(path)[0] == [("ham", text)] * 8


@each("mark", ["utf-16", "utf-32", "utf-8-sig"])
@each("line_end", ["\n", "\r\n", "\r"])
@each("form", ["csv", "tsv", "txt"])
@each("encoding", [None, "utf-16", "cp1252"])
def test_a_byte_order_mark_says_more_than_the_user(mark, line_end, form, encoding, tmp_path):
    pairs, path = PAIRS["cp1251"], tmp_path / f"a.{form}"
    content = table(pairs, "csv" if form == "csv" else "tsv").replace("\n", line_end)
    if form == "txt":
        content = content.partition(line_end)[2]
    path.write_bytes(content.encode(mark))
    assert read(path, encoding=encoding) == (pairs, [])


@each("content", [b"ham\ta\rspam\tb\rham\tc\r", b'ham,"a"\rspam,"b\nc"\rham,c', b"ham;a\rspam;b"])
def test_lines_may_end_with_cr_alone(content, tmp_path):
    path = tmp_path / ("a.tsv" if b"\t" in content else "a.csv")
    path.write_bytes(content)
    assert [label for label, _ in read(path)[0]] == ["ham", "spam", "ham"][
        : content.count(b"\r") + 1 - content.endswith(b"\r")
    ]
