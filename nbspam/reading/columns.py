"""The columns of a table: which column has the messages, and which has their labels.

A column is the one that the user names, else the one that the model learned from, else the one that
a person would choose.  A column's name is a hint, which the column's cells must not contradict.

A column is measured by its cells in the first 200 rows that are not blank: the share with three
words or more, the share that differ, the mean number of words, and the share of identifiers and
numbers (dates, addresses, ids, URLs, user agents).  The thresholds are between the measures of
messages (sample_data, the SMS Spam Collection of UCI and of Kaggle, Indonesian SMS, 200 rows at a
time) and of other columns, which `tests/examples/layouts.py` makes:

    column                          three words     differ         words      identifiers
    messages in the six sets        0.96 to 1       0.98 to 1      11 to 23   0 to 0.01
    titles, bios, all different     1               1              6; 12      0
    titles of 6 posts, 30 bios      1               0.03; 0.15     6; 10      0
    names, platforms, languages     0               0.01 to 0.65   1 to 2     0
    identifiers and numbers         0 to 1          0.06 to 1      0 to 11    1

    threshold                       0.5             0.25                      0.5

If two columns are above the thresholds, such as messages and titles, their names decide.  If the
names are unknown, the table is refused unless one column's score is more than three times the
other's.  The score is the product of the first three measures and of the share of filled cells; at
most 40 words of a cell are counted.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nbspam.errors import Remedy, TableError
from nbspam.names import HAM, SPAM, answer_label, cell_label, normal_label
from nbspam.patterns import lazy_pattern
from nbspam.reading.source import Input

_NAMES_SHOWN, _NAME_SHOWN = 20, 40  # columns, and characters of each name, in an error

# Names of text columns in English and twenty other languages, as `column_key` returns them, the
# most certain first.
TEXT_NAMES = tuple(
    "text message sms body content v2 email mail comment messages messagetext smstext tweet"
    " post review msg txt contents comments teks pesan isi komentar texto mensaje comentario"
    " contenido mensagem comentário conteúdo texte commentaire contenu nachricht kommentar"
    " inhalt testo messaggio commento contenuto tekst bericht wiadomość treść komentarz zpráva"
    " komentář meddelande besked viesti üzenet szöveg mesaj metin yorum comentariu сообщение"
    " текст комментарий повідомлення коментар رسالة الرسالة نص النص تعليق پیام متن हिन्दी"
    " संदेश 内容 短信 文本 评论 訊息 內容 簡訊 本文 メッセージ 内容文 コメント 메시지 내용 문자 댓글"
    " tinnhắn nộidung vănbản ข้อความ μήνυμα κείμενο הודעה טקסט".split()
)
# Words in the names of columns that describe a message.
_OTHER_WORDS = frozenset(
    "id ids author user username name date time timestamp url link agent useragent ip title subject"
    " headline lang language type length len count num number no status bio description profile"
    " about signature location address sender from to recipient file filename path video tags"
    " keywords hash source index titel titre título titolo titulo título betreff asunto oggetto"
    " objet assunto onderwerp temat předmět ämne emne konu тема заголовок judul autor auteur"
    " absender автор имя nama pengirim penulis 标题 主题 作者 件名 タイトル 제목 작성자".split()
)
LABEL_NAMES = tuple(
    "label class v1 spam isspam target verdict junk isjunk labels ham isham spamham spamorham"
    " etiqueta etichetta étiquette etikett etiket etykieta štítek rótulo klasse classe clase kelas"
    " класс метка мітка 标签 標籤 类别 ラベル 라벨 레이블 nhãn ป้าย".split()
)
# The columns that `classify` adds to a table.
VERDICT_COLUMNS = ("verdict", "probability", "log_odds", "reason")
WEAK_LABEL_NAMES = ("category", "type", "kategorie", "kategori", "categoría", "catégorie", "tipo")
# A name that asks for a class, without blanks and signs: `is_spam`, `not spam`, `label_ham`.
_QUESTION = lazy_pattern(
    r"(?:labels?|class|category|target|type|v)?(?:is|was)?(?:it)?(not|nt|non|no|un|kein|pas)?"
    r"(?:(spam|junk)|ham|legit|legitimate|safe|genuine|benign|clean|real|normal)"
    r"(?:label|flag|message|msg|sms|mail|email|text|comment)?(?:ornot)?"
)
# A name that explains its values: `Ham (1) or Spam (0)`, `label (0=ham, 1=not ham)`.
_MEANINGS = (
    lazy_pattern(r"(?<![a-z])(?P<word>(?:no[nt]?[ _-])?[a-z]+)[ =:(_]*(?P<digit>[01])(?![^\W_])"),
    lazy_pattern(r"(?<![^\W_])(?P<digit>[01])[ =:_]*(?P<word>(?:no[nt]?[ _-])?[a-z]+)"),
)
LIKE_SPAM = frozenset("spam ham junk phishing smishing scam fraud label class target".split())
CLASS_NAMES = frozenset(
    {SPAM, HAM, "junk", "not spam", "no spam", "non-spam", "notspam", "phishing", "smishing"}
)
CLASS_WORDS = frozenset({SPAM, HAM, "junk"})  # names of columns, and of classes
_CLASSES_LIMIT = 20  # a column with more distinct values than this is not a label
# Missing labels in R, pandas, SQL and Excel, in lower case.
_MISSING = frozenset(("", "nan", "na", "<na>", "nat", "null", "n/a", "#n/a"))
LABEL_LENGTH = 24  # characters; a column with a longer value is not a label


def column_key(name: str) -> str:
    """Normalize a column's name for comparison: `Is spam?` equals `is_spam`."""
    return re.sub("[\\s_?'\"`\u200b\ufeff]+", "", name.lower())


def words_of(name: str) -> list[str]:
    """Split a name into words: `comment_text` and `commentText` have two."""
    return re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())


def class_meant_by_yes(name: str) -> str:
    """Return the class that 1 or yes means in a column with this name; "" if that is unknown."""
    name = name.rpartition(".")[2].lower()
    n_digits = len({*re.findall("[01]", name)})
    for pairs in _MEANINGS:
        asked = {(_class_asked_for(pair["word"]), pair["digit"]) for pair in pairs.finditer(name)}
        yes = [SPAM if (word == SPAM) == (digit == "1") else HAM for word, digit in asked if word]
        # `Spam (0/1)` explains neither number, and `Spam/Ham (1/0)` only seems to explain the 1
        if len(yes) == n_digits and len({*yes}) == 1:
            return yes[0]
    return _class_asked_for(name)


def _class_asked_for(name: str) -> str:
    """Return the class of the messages for which a question is true; "" for any other name."""
    found = _QUESTION.fullmatch(re.sub(r"[\W\d_]+", "", name))
    return "" if found is None else SPAM if (found[1] is None) == (found[2] is not None) else HAM


def is_label_name(name: str) -> bool:
    """Return whether a column's name is usual for labels, or asks for a class."""
    return column_key(name) in LABEL_NAMES or class_meant_by_yes(name) != ""


class Nested(str):
    """A cell that is an object or a list, and so neither a text nor a label."""

    paths: tuple[str, ...] = ()  # paths of its inner fields, such as `.a.b`


class Columns(NamedTuple):
    """The indices of a message's cells in a row."""

    names: tuple[str, ...]  # () for a table without a header
    text: int
    label: int | None
    width: int  # cells in a usual row
    yes: str = ""  # the class that "yes" in the label column means; "" for labels that are names
    joint: str = " "  # joins the cells into which a text was split
    # The usual labels, known only if the label follows the text; empty if they are unknown.
    values: frozenset[str] = frozenset()

    def fit_width(self, cells: Sequence[str]) -> Sequence[str]:
        """Fit a row to the usual width; a wider row has delimiters in its text.

        Empty cells at the end (Kaggle's) are left out.  The surplus cells are joined in the text,
        or in another column if only that makes the label a usual one.
        """
        cells = list(cells)
        while len(cells) > self.width and not cells[-1]:
            cells.pop()
        n_joined = len(cells) - self.width + 1
        if n_joined <= 1:
            return cells
        rows = [
            [*cells[:i], self.joint.join(cells[i : i + n_joined]), *cells[i + n_joined :]]
            for i in (self.text, *range(self.width))
        ]
        return next((row for row in rows if self.is_usual(row)), rows[0])

    def is_usual(self, cells: Sequence[str]) -> bool:
        """Return whether a fitted row's label is usual; True if usual labels are not known."""
        return not self.values or cells[self.label or 0].strip() in self.values

    def label_of(self, cells: Sequence[str]) -> str | None:
        """Return the label of a fitted row; None if it is missing."""
        if self.label is None or self.label >= len(cells):
            return None
        label = cell_class(cells[self.label])
        if self.yes:
            answer = answer_label(label)
            is_turned = self.yes == HAM and answer != label
            label = {HAM: SPAM, SPAM: HAM}[answer] if is_turned else cell_label(label)
        return None if label in _MISSING else label


def cell_class(cell: str) -> str:
    """Convert a cell to a class's name; pandas writes 1.0 for 1 in a column with a gap."""
    label = normal_label(cell)
    return label[:-2] if label.endswith(".0") and label[:-2].isdigit() else label


NUMBER = lazy_pattern(r"[-+]?\d+(?:[.,]\d+)*")

# Measures

_WORD = lazy_pattern(r"[^\W\d_]+")
_UNSPACED_SCRIPTS = lazy_pattern("[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff]")
_ADDRESS = lazy_pattern(r"<?[^\s<>@]+@[^\s<>@]+\.[^\s<>@]+>?,?")
_AGENT = lazy_pattern(r"[A-Za-z][\w.-]*/v?\d[\d.]*(?:[ ;,(]|$)")
_MAX_CELL = 2000  # characters of a cell that are measured


class Measure(NamedTuple):
    """The measures of a column's cells; all are shares, except `words`."""

    filled: float
    share_of_sentences: float  # three words or more
    distinct: float
    words: float  # the mean; at most 40 of a cell are counted
    share_not_text: float  # numbers, dates, addresses, ids, URLs, user agents

    @property
    def is_text(self) -> bool:
        """Whether the cells read like messages."""
        return (
            self.share_of_sentences >= 0.5 and self.distinct >= 0.25 and self.share_not_text < 0.5
        )

    @property
    def score(self) -> float:
        """How much the cells read like messages."""
        return self.filled * self.share_of_sentences * self.distinct * self.words


def _n_words(cell: str) -> float:
    """Count words; in scripts without spaces, two characters are a word."""
    n = len(_WORD.findall(cell))
    return n if cell.isascii() else n + len(_UNSPACED_SCRIPTS.findall(cell)) / 2


def _is_identifier_or_number(cell: str, words: float) -> bool:
    """Return whether a cell is a number, a date, an address, an id, a URL or a user agent."""
    pieces = cell.split()
    n = sum(map(len, pieces))
    if _AGENT.match(cell) or (len(pieces) <= 4 and _ADDRESS.fullmatch(pieces[-1])):
        return True
    if words <= 3 and 3 * sum(map(str.isdigit, cell)) >= n:
        return True
    is_one = len(pieces) == 1 and not _UNSPACED_SCRIPTS.search(cell)
    return is_one and ("://" in cell or (n >= 8 and not cell.rstrip("?!.,…)").isalpha()))


def measure(column: Sequence[str]) -> Measure:
    """Measure a column's cells."""
    filled = [cell for cell in column if cell.strip()]
    cells, n = [cell[:_MAX_CELL].strip() for cell in filled], len(filled) or 1
    words = list(map(_n_words, cells))
    nested = sum(isinstance(cell, Nested) for cell in filled)
    return Measure(
        filled=len(filled) / (len(column) or 1),
        share_of_sentences=sum(count >= 3 for count in words) / n,
        distinct=len(set(cells)) / n,
        words=sum(min(count, 40) for count in words) / n,
        share_not_text=min(1.0, (nested + sum(map(_is_identifier_or_number, cells, words))) / n),
    )


# The columns

# Kinds of label columns by values and name; the lowest is the best.
_CLASSES, _ANSWERS, _NAMED, _LIKE_LABEL, _BINARY, _WEAK, _UNNAMED, _CONSTANT = range(8)
_RIVAL_SHARE = 1 / 3  # a column with this share of the best score may be the text as well
_VALUES_SHOWN = 3
_MIN_LABEL_ROWS = 10  # rows needed to know the usual labels


class _Candidate(NamedTuple):
    """A column that may have the labels; the lowest is the best."""

    kind: int
    name_rank: int  # len(LABEL_NAMES) for an unusual name
    n: int  # classes
    column: int
    are_answers: bool  # whether the labels answer "is it spam?" or name classes
    split: tuple[int | None, ...]  # each row's class, numbered in the order of first occurrence

    @property
    def rank(self) -> tuple[int, bool, int]:
        """How good the column is; a column with the same rank is a rival."""
        return self.kind, self.name_rank < len(LABEL_NAMES), self.n


def _candidate(column: int, name: str, cells: Sequence[str]) -> _Candidate | None:
    """Judge a column as the label column; None if it cannot have the labels."""
    labels = ["" if isinstance(cell, Nested) else cell_class(cell) for cell in cells]
    given = [label for label in labels if label not in _MISSING]
    order = {label: i for i, label in enumerate(dict.fromkeys(given))}
    key, words, n, as_text = column_key(name), {*words_of(name)}, len(order), name_rank_of(name)
    is_question, is_named = class_meant_by_yes(name) != "", is_label_name(name)
    if (
        not 0 < n <= _CLASSES_LIMIT
        or max(map(len, order)) > LABEL_LENGTH
        or not (is_named or (4 * len(given) >= 3 * len(cells) and n <= max(2, len(given) // 2)))
    ):
        return None
    has_names = not CLASS_NAMES.isdisjoint(order)
    are_answers = {cell_label(label) for label in order} <= {SPAM, HAM}
    are_counts = words != set() and all(map(NUMBER.fullmatch, order))
    # The first condition that holds decides the kind; None: not a label.
    kinds = [
        (_CLASSES, has_names),
        (_ANSWERS, is_question and are_answers and n > 1),
        (_NAMED, is_named and (n > 1 or are_answers)),  # with one value the table may be sorted
        (_WEAK, is_named),
        (_CONSTANT, n == 1),
        (_LIKE_LABEL, not words.isdisjoint(LIKE_SPAM)),
        # such as `Phishing Email` in Kaggle's column `Email Type`
        (_LIKE_LABEL, n > 1 and not CLASS_NAMES.isdisjoint(words_of(" ".join(order)))),
        (None, as_text > 0),
        (_BINARY, are_answers),
        (_WEAK, key in WEAK_LABEL_NAMES),
        (None, as_text < 0 or are_counts),  # such as a language, or likes
        (_UNNAMED, True),
    ]
    kind = next(kind for kind, holds in kinds if holds)
    if kind is None:
        return None
    usual = key if key in LABEL_NAMES else "spam"
    rank = LABEL_NAMES.index(usual) if is_named else len(LABEL_NAMES)
    split = tuple(map(order.get, labels))
    return _Candidate(kind, rank, n, column, are_answers or has_names, split)


def _is_verdict(name: str, names: Sequence[str]) -> bool:
    """Return whether `classify` added a column of verdicts, which are not the user's labels."""
    number = name.removeprefix(VERDICT_COLUMNS[0])  # such as _2
    # The last column, mostly empty, may have been deleted.
    added = {f"{column}{number}" for column in VERDICT_COLUMNS[:-1]}
    return number != name and added <= {*names}


def _candidates(columns: Sequence[Sequence[str]], names: Sequence[str]) -> list[_Candidate]:
    """Return the columns that may have the labels, the best first."""
    found = (
        None if _is_verdict(name, names) else _candidate(i, name, column)
        for i, (name, column) in enumerate(zip(names, columns, strict=True))
    )
    best_first = sorted(filter(None, found), key=lambda candidate: candidate[:4])
    return best_first if len(columns) > 1 else []


def label_by_content(columns: Sequence[Sequence[str]]) -> int | None:
    """Find the column that looks most like labels, whatever its name; None if no column does."""
    return next((found.column for found in _candidates(columns, [""] * len(columns))), None)


def is_label_last(columns: Sequence[Sequence[str]]) -> bool:
    """Return whether the second of two columns has better labels than the first."""
    found = _candidates(columns, ["", ""])
    is_sure = len(found) == 1 or (found != [] and found[0].kind in (_CLASSES, _BINARY))
    return is_sure and found[0].column == 1


def _text_score(name: str, cells: Sequence[str]) -> tuple[bool, bool, bool, int, float]:
    """Rate how much a column reads like messages, by its cells and its name."""
    measured, rank = measure(cells), name_rank_of(name)
    if rank > 0:
        return measured.is_text, True, measured.share_not_text < 0.5, -rank, 0.0
    worth = measured.score if measured.is_text else sum(map(len, cells))
    return measured.is_text, False, measured.share_not_text < 0.5, rank, worth


def text_by_content(columns: Sequence[Sequence[str]], label: int | None) -> int | None:
    """Find the column that reads most like messages, else the longest; None without a column."""
    others = (i for i in range(len(columns)) if i != label)
    return max(others, key=lambda i: _text_score("", columns[i])[::4], default=None)


def name_rank_of(name: str) -> int:
    """Rank a text column's name: 1 is the best, 0 is unknown, -1 names another kind of column."""
    key, words = column_key(name), {*words_of(name)}
    if key in TEXT_NAMES:
        return 1 + TEXT_NAMES.index(key)
    if not words.isdisjoint(_OTHER_WORDS):
        return -1
    return 0 if words.isdisjoint(TEXT_NAMES) else 1 + len(TEXT_NAMES)


class _ColumnSearch(NamedTuple):
    """The search for the columns of a table."""

    source: Input
    names: list[str]  # column names; numbers in a table without names
    contents: list[list[str]]  # the sample's cells, by column

    @property
    def table(self) -> str:
        """The table's name in errors."""
        return self.source.title

    def find_named(self, names: Sequence[str | None]) -> int | None:
        """Find the first column with one of these names, in any case; None if it is missing."""
        # Exact names come first, because two names may differ only in a blank.
        keys = [name.lower() for name in self.names] + [column_key(name) for name in self.names]
        aliases = [key for name in names if name for key in (name.lower(), column_key(name))]
        return next((keys.index(key) % len(self.names) for key in aliases if key in keys), None)

    def find_required(self, name: str | None) -> int | None:
        """Find the column that the user names; raises TableError if it does not exist."""
        if name is None or (column := self.find_named([name])) is not None:
            return None if name is None else column
        problem = f"{self.table}: there is no column {name!r}"
        raise TableError(problem, Remedy.NAME_ONE_OF_COLUMNS, columns=_quoted_names(self.names))

    def note(self, role: str, column: int, evidence: str, remedy: Remedy) -> None:
        """Note which column was chosen as label or text (the role), and by which evidence."""
        problem = f"{self.table}: {role}: column {self.names[column][:_NAME_SHOWN]!r} ({evidence})"
        self.source.note(problem, remedy)

    def refuse_rivals(self, role: str, columns: Sequence[int], remedy: Remedy) -> None:
        """Raise TableError if two or more columns are equally likely."""
        if len(columns) > 1:
            rivals = _quoted_names([self.names[i] for i in columns[:_VALUES_SHOWN]])
            raise TableError(f"{self.table}: each of {rivals} may be the {role}", remedy)

    def label(self) -> int | None:
        """Find the label column; None without one.  Raises TableError for equally good columns.

        If the user gives a label, only a column that certainly has labels is found.
        A rival divides the rows in another way.  It has as good a name and as many values; or it
        has a usual name, if the best column, such as predictions, is found by its values only.
        """
        candidates = _candidates(self.contents, self.names)
        if self.source.label is not None:
            candidates = [c for c in candidates if c.kind <= _NAMED]
        if not candidates:
            column = self.find_named(LABEL_NAMES)
            is_free = column is not None and not _is_verdict(self.names[column], self.names)
            return column if is_free and not self._is_nested(column or 0) else None
        best, *others = candidates
        if not self.source.require_labels or best.n == 1:
            return best.column
        others = [other for other in others if other.split != best.split and other.n > 1]
        is_by_values = best.name_rank == len(LABEL_NAMES)
        usual = [o for o in others if o.are_answers and o.name_rank < best.name_rank]
        rivals = [o.column for o in others if o.rank == best.rank or (is_by_values and o in usual)]
        self.refuse_rivals(
            "label", [best.column, *rivals] if rivals else [], Remedy.NAME_LABEL_COLUMN
        )
        is_sure = best.kind <= _NAMED
        is_plain = best.kind == _LIKE_LABEL or (self.names == ["1", "2"] and best.n == 2)
        near = [o for o in others if o.are_answers and (o.kind <= _NAMED or not is_sure)]
        if near or not (is_sure or is_plain):
            shown = sorted({cell.strip() for cell in self.contents[best.column]} - {""})
            evidence = f"by content: {', '.join(shown[:_VALUES_SHOWN])}" + ", …" * (
                len(shown) > _VALUES_SHOWN
            )
            if near:
                evidence = f"{_quoted_names([self.names[o.column] for o in near])} may be it, too"
            self.note("label", best.column, evidence, Remedy.OTHER_LABEL_COLUMN)
        return best.column

    def text(self, label: int | None) -> int | None:
        """Find the text column; raises TableError if no column or two columns read like texts."""
        others = [i for i in range(len(self.names)) if i != label]
        others = [i for i in others if any(map(str.strip, self.contents[i]))] or others
        if len(others) < 2 and not any(map(self._is_nested, others)):
            return next(iter(others), None)
        scores = {i: _text_score(self.names[i], self.contents[i]) for i in others}
        best = max(others, key=lambda i: scores[i])
        is_text, is_named, may_be_text, order, worth = scores[best]
        if self._is_nested(best):
            problem = f"{self.table}: column {self.names[best]!r} has objects or lists"
            raise self.failure(problem, Remedy.NAME_THE_TEXT, [best])
        rivals = [i for i in others if i != best and scores[i][:2] == (is_text, is_named)]
        if is_text and is_named:
            near = [i for i in rivals if order - scores[i][3] < len(TEXT_NAMES) // 2]
            near.sort(key=lambda i: -scores[i][3])
            evidence = (
                f"by name; {_quoted_names(self.names[i] for i in near[:1])} reads like it, too"
            )
            if near:
                self.note("text", best, evidence, Remedy.NAME_TEXT_COLUMN)
            return best
        rivals = [
            i for i in rivals if scores[i][3] == order and scores[i][4] >= _RIVAL_SHARE * worth
        ]
        if is_text:
            self.refuse_rivals("text", [best, *rivals], Remedy.NAME_THE_TEXT)
        elif not (is_named or may_be_text):
            listed = _quoted_names(self.names)
            problem = f"{self.table}: no column among {listed} reads like messages"
            raise self.failure(problem, Remedy.NAME_THE_TEXT)
        if not (is_named and may_be_text):
            evidence = "by name alone" if is_named else "by content"
            self.note("text", best, evidence, Remedy.NAME_TEXT_COLUMN)
        return best

    def _is_nested(self, column: int) -> bool:
        cells = [cell for cell in self.contents[column] if cell]
        return 2 * sum(isinstance(cell, Nested) for cell in cells) > len(cells)

    def failure(self, problem: str, remedy: Remedy, columns: Sequence[int] = ()) -> TableError:
        """Make the error for a missing column, which names the inner fields of objects.

        columns: the columns with objects; () for all columns.
        """
        paths = dict.fromkeys(
            f"{self.names[i]}{path}"
            for i in columns or range(len(self.names))
            for cell in self.contents[i]
            for path in getattr(cell, "paths", ())
        )
        if not paths:
            return TableError(problem, remedy)
        return TableError(problem, Remedy.NAME_ONE_OF_COLUMNS, columns=_quoted_names(paths))


def find_columns(
    source: Input,
    header: Sequence[str] | None,
    sample: Sequence[Sequence[str]],
) -> Columns:
    """Find the columns of a table, and note uncertain choices.

    header: the column names; None without a header.
    Raises TableError when a column that the user names is missing, when a required label column is
    missing, or when two columns are equally likely.
    """
    options, require_labels = source.options.table, source.require_labels
    width = len(header) if header else usual_width(sample)
    names = list(header or ()) or [str(number + 1) for number in range(width)]
    whole = [row for row in sample if len(row) == width or not any(row[width:])]
    rows = whole if 10 * len(whole) >= len(sample) else sample
    search = _ColumnSearch(source, names, columns_of(rows, len(names)))
    text = search.find_required(options.text_column)
    label = search.find_required(options.label_column)
    learned = options.learned if header else ()
    if learned:
        text = search.find_named([name for name, _ in learned]) if text is None else text
        label = search.find_named([name for _, name in learned]) if label is None else label
    if label is None:
        label = search.label()
    if text is None or (text == label and options.text_column is None):
        text = search.text(label) if label is not None or not require_labels else None
        if learned and text is not None and options.text_column is None:
            evidence = f"the model learned from {learned[0][0][:_NAME_SHOWN]!r}, which it lacks"
            search.note("text", text, evidence, Remedy.NAME_TEXT_COLUMN)
    if text is None or text == label:  # the only column looked like labels, but is the text
        text, label = text or 0, None
    if require_labels and label is None:
        problem = f"{source.title}: no column among {_quoted_names(names)} looks like a label"
        raise search.failure(problem, Remedy.NAME_LABEL_COLUMN)
    if label is None:
        return Columns(tuple(header or ()), text, label, width)
    values = {row[label].strip() for row in whole if label < len(row)}
    classes = {*map(cell_class, values)}
    yes = "" if classes & {SPAM, HAM} else class_meant_by_yes(names[label])
    answers = sorted(name for name in classes if answer_label(name) == SPAM != name)
    if yes == HAM and require_labels and answers:
        problem = f"{answers[0]} in column {names[label][:_NAME_SHOWN]!r} means ham"
        source.note(f"{source.title}: {problem}", Remedy.OTHER_LABEL_COLUMN)
    is_known = label > text and len(values) <= _CLASSES_LIMIT and len(whole) >= _MIN_LABEL_ROWS
    usual = frozenset(values if is_known else ())
    return Columns(tuple(header or ()), text, label, width, yes, values=usual)


def columns_of(rows: Sequence[Sequence[str]], width: int) -> list[list[str]]:
    """Return the cells of each column."""
    return [[row[i] for row in rows if i < len(row)] for i in range(width)]


def usual_width(rows: Sequence[Sequence[str]]) -> int:
    """Return the smallest width, if possible above 1, that at least 10 % of the rows have.

    Wider rows are not preferred, because texts may contain commas.
    """
    widths = [len(row) for row in rows]
    common = [width for width in set(widths) if 10 * widths.count(width) >= len(widths)]
    return min([width for width in common if width > 1] or common or [0])


def _quoted_names(names: Iterable[str]) -> str:
    """Format column names for an error."""
    not_empty = [name for name in names if name]
    quoted = ", ".join(repr(name[:_NAME_SHOWN]) for name in not_empty[:_NAMES_SHOWN])
    more = len(not_empty) - _NAMES_SHOWN
    return f"{quoted} and {more} more" if more > 0 else quoted
