"""The columns of a table: which has the messages, which their labels, and which row names them.

A column is the one that the user names, else the one that the model learned from, else the one that
a person would choose.  Its name is a hint, which its cells must not contradict.

A column is measured by its cells in the first 200 rows that are not blank: the share with three
words or more, the share that differ, the mean number of words, and the share that are no texts
(numbers, dates, addresses, ids, URLs, user agents).  The thresholds lie between measures of
messages (sample_data, the SMS Spam Collection of UCI and of Kaggle, Indonesian SMS, 200 rows at a
time) and of other columns, which `tests/examples/layouts.py` makes:

                                    three words    differ     words    no texts
    messages of the six sets        .96 to 1       .98 to 1   11 to 23   0 to .01
    one title a row, one bio a row  1              1          6; 12      0
    titles of six posts, 30 bios    1              .03; .15   6; 10      0
    names, platforms, languages     0              .01 to .65 1 to 2     0
    ids, dates, addresses, numbers, 0 to 1         .06 to 1   0 to 11    1
      URLs, user agents

    threshold                       .5             .25                   .5

If two columns are above the thresholds, such as messages and titles, their names decide.  If the
names are unknown, the table is refused unless one column has three times the other's score: the
product of the first three measures (words beyond the 40th of a cell are not counted).
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nbspam.errors import Remedy, SourceError, TableError
from nbspam.names import HAM, SPAM, answer_label, cell_label, normal_label
from nbspam.patterns import lazy_pattern
from nbspam.reading.source import ReadingRequest, TableOptions

_NAMES_SHOWN, _NAME_SHOWN = 20, 40  # columns, and characters of each, in an error

# Names, as `column_key` returns them, the most certain first.  Of columns of texts, in English and
# twenty other languages.
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
# Which `classify` adds to a table.
VERDICT_COLUMNS = ("verdict", "probability", "log_odds", "reason")
_WEAK_LABEL_NAMES = ("category", "type", "kategorie", "kategori", "categoría", "catégorie", "tipo")
# The class that "yes" means in a column with such a name.
_YES_NO_NAMES = {
    **dict.fromkeys(("spam", "isspam", "junk", "isjunk"), SPAM),
    **dict.fromkeys(("ham", "isham", "notspam", "isnotspam"), HAM),
}
_LIKE_SPAM = frozenset("spam ham junk phishing smishing scam fraud label class target".split())
_CLASS_NAMES = frozenset(
    {SPAM, HAM, "junk", "not spam", "no spam", "non-spam", "notspam", "phishing", "smishing"}
)
_CLASSES_LIMIT = 20  # a column with more distinct values than this is not a label
# Labels that are none, in small letters, as R, pandas, SQL and Excel write them.
_MISSING = frozenset(("", "nan", "na", "<na>", "nat", "null", "n/a", "#n/a"))
LABEL_LENGTH = 24  # characters; a column with a longer value is not a label


def column_key(name: str) -> str:
    """Return a column's name for comparison: `Is spam?` equals `is_spam`."""
    return re.sub(r"[\s_?]+", "", name.lower().lstrip("\ufeff"))


def _words_of(name: str) -> list[str]:
    """Return the words of a name: two of `comment_text` and `commentText`."""
    return re.findall(r"[^\W\d_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())


class Nested(str):
    """A cell that is an object or a list, and so neither a text nor a label."""

    paths: tuple[str, ...] = ()  # of the fields in it, as `.a.b`


class Columns(NamedTuple):
    """The places of a message's cells in a row."""

    names: tuple[str, ...]  # where the table has them
    text: int
    label: int | None
    width: int  # cells in a usual row
    yes: str = ""  # the class that "yes" in the label column means; "" if labels are no answers
    joint: str = " "  # joins the cells into which a text was split
    values: frozenset[str] = frozenset()  # labels of rows of the usual width, if after the text

    def fitted(self, cells: Sequence[str]) -> Sequence[str]:
        """Return a row of the usual width; a wider one has delimiters in its text.

        Empty cells at the end (Kaggle's) are left out.  If the label is unusual with the surplus
        cells in the text, and usual with them in another column, they belong there.
        """
        cells = list(cells)
        while len(cells) > self.width and not cells[-1]:
            cells.pop()
        end = len(cells) - self.width + 1  # of the cells that are joined, counted from the first
        if end <= 1:
            return cells
        rows = [
            [*cells[:at], self.joint.join(cells[at : at + end]), *cells[at + end :]]
            for at in (self.text, *range(self.width))
        ]
        return next((row for row in rows if self.is_usual(row)), rows[0])

    def is_usual(self, cells: Sequence[str]) -> bool:
        """Return whether the label of a fitted row is a usual one, as far as these are known."""
        return not self.values or cells[self.label or 0].strip() in self.values

    def label_of(self, cells: Sequence[str]) -> str | None:
        """Return the label of a fitted row, or None if it has none."""
        if self.label is None or self.label >= len(cells):
            return None
        label = normal_label(cells[self.label])
        if label.endswith(".0") and label[:-2].isdigit():  # how pandas writes 1 beside a gap
            label = label[:-2]
        if self.yes:
            label = cell_label(label)
            if self.yes == HAM:
                label = {HAM: SPAM, SPAM: HAM}.get(label, label)
        return None if label in _MISSING else label


# Measures

_WORD = lazy_pattern(r"[^\W\d_]+")
_NO_BLANKS = lazy_pattern("[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff]")
_ADDRESS = lazy_pattern(r"<?[^\s<>@]+@[^\s<>@]+\.[^\s<>@]+>?,?")
_AGENT = lazy_pattern(r"[A-Za-z][\w.-]*/v?\d[\d.]*(?:[ ;,(]|$)")
_LONGEST_CELL = 2000  # characters that are looked at


class Measure(NamedTuple):
    """The measures of a column's cells; all are shares, except the words."""

    filled: float
    many: float  # have three words or more
    distinct: float
    words: float  # in the mean; at most 40 of a cell
    other: float  # are numbers, dates, addresses, ids, URLs, user agents

    @property
    def is_text(self) -> bool:
        """Whether they read like messages."""
        return self.many >= 0.5 and self.distinct >= 0.25 and self.other < 0.5

    @property
    def score(self) -> float:
        """How much they read like messages."""
        return self.filled * self.many * self.distinct * self.words


def _n_words(cell: str) -> float:
    """Return the number of words; in scripts without blanks, two characters are a word."""
    n = len(_WORD.findall(cell))
    return n if cell.isascii() else n + len(_NO_BLANKS.findall(cell)) / 2


def _is_no_text(cell: str, words: float) -> bool:
    """Return whether a cell is a number, a date, an address, an id, a URL or a user agent."""
    pieces = cell.split()
    n = sum(map(len, pieces))
    if _AGENT.match(cell) or (len(pieces) <= 4 and _ADDRESS.fullmatch(pieces[-1])):
        return True
    if words <= 3 and 3 * sum(map(str.isdigit, cell)) >= n:
        return True
    is_one = len(pieces) == 1 and not _NO_BLANKS.search(cell)
    return is_one and ("://" in cell or (n >= 8 and not cell.rstrip("?!.,…)").isalpha()))


def measure(column: Sequence[str]) -> Measure:
    """Return the measure of a column's cells."""
    filled = [cell for cell in column if cell.strip()]
    cells, n = [cell[:_LONGEST_CELL].strip() for cell in filled], len(filled) or 1
    words = list(map(_n_words, cells))
    nested = sum(isinstance(cell, Nested) for cell in filled)
    return Measure(
        filled=len(filled) / (len(column) or 1),
        many=sum(count >= 3 for count in words) / n,
        distinct=len(set(cells)) / n,
        words=sum(min(count, 40) for count in words) / n,
        other=min(1.0, (nested + sum(map(_is_no_text, cells, words))) / n),
    )


# The columns

# Kinds of labels, the likely first: values that mean ham and spam, any values, one value.
_BY_CLASSES, _BY_CONTENT, _UNNAMED, _CONSTANT = 0, 4, 6, 7
_RIVAL = 1 / 3  # of the best score; a column with more may be the text as well
_VALUES_SHOWN = 3
_ROWS_OF_LABELS = 10  # at least, to know the usual labels


def _label_kind(name: str, column: Sequence[str]) -> tuple[int, int, int] | None:
    """Return a column's rank as the label's, the lowest the best; None if it cannot be the label's.

    The rank is its kind, the rank of its name, and the number of its values.
    """
    cells = [cell.strip() for cell in column if cell.strip() and not isinstance(cell, Nested)]
    values = {cell.lower() for cell in cells}
    key, words, n = column_key(name), {*_words_of(name)}, len(values)
    is_named = key in LABEL_NAMES
    if (
        sum(isinstance(cell, Nested) for cell in column) > len(cells)
        or not 0 < n <= _CLASSES_LIMIT
        or max(map(len, values)) > LABEL_LENGTH
        or not (is_named or (4 * len(cells) >= 3 * len(column) and n <= max(2, len(cells) // 2)))
    ):
        return None
    if values & _CLASS_NAMES:
        kind = _BY_CLASSES
    elif key in _YES_NO_NAMES and {answer_label(value) for value in values} <= {SPAM, HAM}:
        kind = 1
    elif is_named and (n > 1 or answer_label(*values) in (SPAM, HAM)):
        kind = 2  # even with one value: the table may be sorted
    elif n == 1:
        kind = 5 if is_named else _CONSTANT
    elif words & _LIKE_SPAM:
        kind = 3
    elif _name_rank(name) > 0:
        return None
    elif {cell_label(value) for value in values} <= {SPAM, HAM}:
        kind = _BY_CONTENT
    else:
        kind = 5 if key in _WEAK_LABEL_NAMES else _UNNAMED
    return kind, LABEL_NAMES.index(key) if is_named else len(LABEL_NAMES), n


def _is_verdict(name: str, names: Sequence[str]) -> bool:
    """Return whether a column is of verdicts that `classify` added, which are no user's labels."""
    number = name.removeprefix(VERDICT_COLUMNS[0])  # such as _2
    # The last, mostly empty, may have been deleted.
    added = {f"{column}{number}" for column in VERDICT_COLUMNS[:-1]}
    return number != name and added <= {*names}


def _labels(columns: Sequence[Sequence[str]], names: Sequence[str]) -> list[tuple[int, ...]]:
    """Return the ranks of the columns that may be the label's, the best first, and their places."""
    if len(columns) < 2:
        return []
    kinds = (
        None if _is_verdict(name, names) else _label_kind(name, column)
        for name, column in zip(names, columns, strict=True)
    )
    return sorted((*kind, i) for i, kind in enumerate(kinds) if kind)


def label_by_content(columns: Sequence[Sequence[str]]) -> int | None:
    """Return the column that looks most like a label, whatever its name, if one does."""
    return next((rank[-1] for rank in _labels(columns, [""] * len(columns))), None)


def text_by_content(columns: Sequence[Sequence[str]], label: int | None) -> int | None:
    """Return the column that reads most like messages, else the longest; None if there is none."""

    def rank(i: int) -> tuple[float, int]:
        measured = measure(columns[i])
        return (measured.score, 0) if measured.is_text else (0, sum(map(len, columns[i])))

    return max((i for i in range(len(columns)) if i != label), key=rank, default=None)


def _name_rank(name: str) -> int:
    """Return a name's rank as the text's: 0 unknown, -1 another column's, from 1 on 1 the best."""
    key, words = column_key(name), _words_of(name)
    if key in TEXT_NAMES:
        return 1 + TEXT_NAMES.index(key)
    if _OTHER_WORDS.intersection(words):
        return -1
    return 1 + len(TEXT_NAMES) if set(words) & set(TEXT_NAMES) else 0


class _ColumnSearch(NamedTuple):
    """The search for the columns of a table."""

    table: str  # its name in an error
    names: list[str]  # of the columns; their numbers, where they have none
    contents: list[list[str]]  # the cells of the sample
    tell: Callable[[SourceError], None]

    def named(self, names: Sequence[str]) -> int | None:
        """Return the first column with one of these names, whatever the case, if there is one."""
        # The exact name first: two names may differ in a blank only.
        keys = [name.lower() for name in self.names] + [column_key(name) for name in self.names]
        aliases = [key for name in names for key in (name.lower(), column_key(name))]
        return next((keys.index(key) % len(self.names) for key in aliases if key in keys), None)

    def required(self, name: str | None, first: Sequence[str]) -> int | None:
        """Return the column that the user names; raises TableError if there is none.

        first: the first row of a table without a header; it may be a header with a mistyped name.
        """
        if name is None or (column := self.named([name])) is not None:
            return None if name is None else column
        names, row = self.names, [cell.strip() for cell in first]
        if row and len(set(row)) == len(row) and all(len(cell) <= _NAME_SHOWN for cell in row):
            names = row
        problem = f"{self.table}: there is no column {name!r}"
        raise TableError(problem, Remedy.NAME_ONE_OF_COLUMNS, columns=_quoted_names(names))

    def note(self, what: str, column: int, how: str, remedy: Remedy) -> None:
        """Tell the user which column was chosen for what, and why."""
        problem = f"{self.table}: {what}: column {self.names[column][:_NAME_SHOWN]!r} ({how})"
        self.tell(SourceError(problem, remedy))

    def refuse(self, what: str, columns: Sequence[int], remedy: Remedy) -> None:
        """Raise TableError: two or more columns are equally likely."""
        rivals = _quoted_names([self.names[i] for i in columns[:_VALUES_SHOWN]])
        raise TableError(f"{self.table}: each of {rivals} may be the {what}", remedy)

    def label(self, is_needed: bool) -> int | None:
        """Return the label's column, if there is one; raises TableError for two that may be it."""
        ranks = _labels(self.contents, self.names)
        if not ranks:
            column = self.named(LABEL_NAMES)
            is_free = column is not None and not _is_verdict(self.names[column], self.names)
            return column if is_free and not self._is_nested(column or 0) else None
        kind, name_rank, n, column = ranks[0]
        is_named = name_rank < len(LABEL_NAMES)
        if is_needed and kind in (_BY_CLASSES, _BY_CONTENT, _UNNAMED) and n > 1 and not is_named:
            rivals = [rank[-1] for rank in ranks if (rank[0], rank[2]) == (kind, n)]
            if any(self.contents[rival] != self.contents[column] for rival in rivals):
                self.refuse("label", rivals, Remedy.NAME_LABEL_COLUMN)
            if len(self.names) > 2 and kind != _BY_CLASSES:
                values = sorted({cell.strip() for cell in self.contents[column] if cell.strip()})
                how = f"by content: {', '.join(values[:_VALUES_SHOWN])}"
                how += ", …" * (n > _VALUES_SHOWN)
                self.note("label", column, how, Remedy.OTHER_LABEL_COLUMN)
        return column

    def text(self, label: int | None) -> int | None:
        """Return the text's column; raises TableError if no column or two read like it."""
        others = [i for i in range(len(self.names)) if i != label]
        if len(others) < 2 and not any(map(self._is_nested, others)):
            return next(iter(others), None)
        measures = {i: measure(self.contents[i]) for i in others}
        others = [i for i in others if measures[i].filled] or others
        ranks = {i: _name_rank(self.names[i]) for i in others}
        texts = [i for i in others if measures[i].is_text]
        named = sorted((i for i in others if ranks[i] > 0), key=lambda i: ranks[i])
        best = [i for i in named if i in texts]
        nested = [] if best else [i for i in named or others[:1] if self._is_nested(i)]
        if nested:
            problem = f"{self.table}: column {self.names[nested[0]]!r} has objects or lists"
            raise self.failure(problem, Remedy.NAME_THE_TEXT, nested)
        if len(others) < 2:
            return next(iter(others), None)
        if best:
            if len(best) > 1 and ranks[best[1]] - ranks[best[0]] < len(TEXT_NAMES) // 2:
                how = f"by name; {self.names[best[1]][:_NAME_SHOWN]!r} reads like it, too"
                self.note("text", best[0], how, Remedy.NAME_TEXT_COLUMN)
            return best[0]
        if texts:
            texts = [i for i in texts if ranks[i] == 0] or texts
            texts.sort(key=lambda i: -measures[i].score)
            least = _RIVAL * measures[texts[0]].score
            rivals = [i for i in texts if measures[i].score >= least]
            if len(rivals) > 1:
                self.refuse("text", rivals, Remedy.NAME_THE_TEXT)
        else:  # texts of a word or two
            plain = [i for i in others if measures[i].other < 0.5]
            if best := [i for i in named if i in plain] or named:
                if best[0] not in plain:
                    self.note("text", best[0], "by name alone", Remedy.NAME_TEXT_COLUMN)
                return best[0]
            if not plain:
                problem = (
                    f"{self.table}: no column among {_quoted_names(self.names)} reads like messages"
                )
                raise self.failure(problem, Remedy.NAME_THE_TEXT)
            texts = sorted(plain, key=lambda i: -sum(map(len, self.contents[i])))
        self.note("text", texts[0], "by content", Remedy.NAME_TEXT_COLUMN)
        return texts[0]

    def _is_nested(self, column: int) -> bool:
        cells = [cell for cell in self.contents[column] if cell]
        return 2 * sum(isinstance(cell, Nested) for cell in cells) > len(cells)

    def failure(self, problem: str, remedy: Remedy, columns: Sequence[int] = ()) -> TableError:
        """Return the error of a missing column; it names fields within the objects of columns.

        columns: all, if none is given.
        """
        paths = dict.fromkeys(
            f"{self.names[i]}{path}"
            for i in columns or range(len(self.names))
            for cell in self.contents[i]
            if isinstance(cell, Nested)
            for path in cell.paths
        )
        if not paths:
            return TableError(problem, remedy)
        return TableError(problem, Remedy.NAME_ONE_OF_COLUMNS, columns=_quoted_names(list(paths)))


def find_columns(
    table: str,
    header: Sequence[str] | None,
    sample: Sequence[Sequence[str]],
    request: ReadingRequest,
    first: Sequence[str] = (),
) -> Columns:
    """Return the columns of a table.

    table: its name in an error.  header: the names of the columns, if it has any.
    first: the first row where there is no header.
    Tells the user what is not certain.
    Raises TableError when a column that the user names is missing, when a label is needed and
    missing, or when two columns are equally likely.
    """
    options, needs_labels = request.options.table, request.needs_labels
    width = len(header) if header else usual_width(sample)
    names = list(header or ()) or [str(number + 1) for number in range(width)]
    whole = [row for row in sample if len(row) == width or not any(row[width:])]
    rows = whole if 10 * len(whole) >= len(sample) else sample
    contents = [[row[i] for row in rows if i < len(row)] for i in range(len(names))]
    search = _ColumnSearch(table, names, contents, request.options.tell)
    text = search.required(options.text_column, first)
    label = search.required(options.label_column, first)
    if header and options.learned:
        texts, labels = zip(*options.learned, strict=True)
        text = search.named(texts) if text is None else text
        label = search.named(list(filter(None, labels))) if label is None else label
    if label is None:
        label = search.label(needs_labels)
    no_label = f"{table}: no column among {_quoted_names(names)} looks like a label"
    if needs_labels and label is None:
        raise search.failure(no_label, Remedy.NAME_LABEL_COLUMN)
    if text is None or (text == label and options.text_column is None):
        is_other = header and options.learned and options.text_column is None
        text = search.text(label)
        if is_other and text is not None:
            how = f"the model learned from {options.learned[0][0][:_NAME_SHOWN]!r}, which it lacks"
            search.note("text", text, how, Remedy.NAME_TEXT_COLUMN)
    if text is None:
        text, label = 0, None  # the only column looked like a label; it is the text
    elif text == label:
        label = None
    if needs_labels and label is None:
        raise search.failure(no_label, Remedy.NAME_LABEL_COLUMN)
    yes, values = "", set[str]()
    if label is not None:
        yes = _YES_NO_NAMES.get(column_key(names[label].rpartition(".")[2]), "")
        values = {row[label].strip() for row in whole if label < len(row)}
    is_after = label is not None and label > text and len(values) <= _CLASSES_LIMIT
    known = frozenset(values if is_after and len(whole) >= _ROWS_OF_LABELS else ())
    return Columns(tuple(header or ()), text, label, width, yes, values=known)


def usual_width(rows: Sequence[Sequence[str]]) -> int:
    """Return the usual width: the least of one row in ten or more, since texts may have commas."""
    widths = [len(row) for row in rows]
    common = [width for width in set(widths) if 10 * widths.count(width) >= len(widths)]
    return min([width for width in common if width > 1] or common or [0])


def _quoted_names(names: Sequence[str]) -> str:
    """Return the names as an error lists them."""
    not_empty = [name for name in names if name]
    quoted = ", ".join(repr(name[:_NAME_SHOWN]) for name in not_empty[:_NAMES_SHOWN])
    more = len(not_empty) - _NAMES_SHOWN
    return f"{quoted} and {more} more" if more > 0 else quoted


# Header rows

_ROWS_ABOVE = 9  # a header, at most


def header_place(table: str, rows: list[Sequence[str]], request: ReadingRequest) -> int | None:
    """Return which of a table's first rows names the columns, if one does.

    A title may be above it: rows with fewer cells.  Tells the user of a header without usual names,
    or below other rows.
    """
    options, tell = request.options.table, request.options.tell
    if options.header_row is False:
        return None
    sizes, most = [sum(cell.strip() != "" for cell in row) for row in rows], 0
    places = range(min(_ROWS_ABOVE + 1, len(rows)))
    certain = next((i for i in places if _are_both_names(rows[i])), None)
    for i in places if certain is None or options.header_row else [certain]:
        others = [row for row in rows[i + 1 :] if row != rows[i]]
        is_usual = options.header_row or names_columns(rows[i], options)
        is_wide = sizes[i] > most and (sizes[i] > 1 or i == 0 or max(sizes) < 2)
        most = max(most, sizes[i])
        if i != certain and not (is_wide and (is_usual or is_header_row(rows[i], others))):
            continue
        if i or not is_usual:
            names = ", ".join(cell.strip() for cell in rows[i] if cell.strip())
            which = f"its row {i + 1}" if i else "its first row"
            problem = f"{table}: {which} names the columns ({names})"
            tell(SourceError(problem, Remedy.HEADER_IS_MESSAGE))
        return i
    return None


def names_columns(cells: Sequence[str], options: TableOptions) -> bool:
    """Return whether a row has a usual name of a column, so that it is a header."""
    names = [column_key(cell) for cell in cells]
    learned = (name for pair in options.learned for name in pair)
    known = (options.text_column, options.label_column, *learned)
    if {column_key(name) for name in known if name}.intersection(names):
        return True
    texts = [name for name, cell in zip(names, cells, strict=True) if _is_text_name(name, cell)]
    if {SPAM, HAM, "junk"}.intersection(names) and not texts:
        return False  # it may be the class of the first row
    return bool(texts) or any(name in LABEL_NAMES or name in _WEAK_LABEL_NAMES for name in names)


def has_row_names(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether each row begins with a number that the header leaves out, as R writes them."""
    numbers = [row[0] for row in rows if len(row) == len(header) + 1]
    return (
        len(header) > 0
        and 1 < len(rows) == len({*numbers})
        and all(map(_INDEX.fullmatch, numbers))
        and column_key(header[0]) in (*TEXT_NAMES, *LABEL_NAMES)
    )


def _are_both_names(cells: Sequence[str]) -> bool:
    """Return whether a row has the usual names of both columns, of texts and of labels."""
    names = {column_key(cell) for cell in cells}
    return not names.isdisjoint(TEXT_NAMES) and not names.isdisjoint(LABEL_NAMES)


def _is_text_name(key: str, cell: str) -> bool:
    """Return whether a cell is a usual name of texts, as `message` or `comment_text`."""
    return key in TEXT_NAMES or (
        re.fullmatch(r"\s*[A-Za-z]+(?:_[A-Za-z]+)+\s*", cell) is not None and _name_rank(cell) > 0
    )


# A row without usual names may be a header, too.
#
# A header read as a message adds a class (`y,x` above rows of 0 and 1: classes 0, 1, y); a message
# read as a header is lost.  So a row is a header only if all of this holds:
#
# - Each of its cells could be a name: short, not a number, none twice.  pandas writes two other
#   kinds: an empty cell over the index, which is a column of numbers, none twice; and 0, 1, 2 …
#   where the columns have no names.
# - The cell over the texts is one bare word, and most of the texts are not: of SMS one or two in a
#   hundred are ("Ok").  It may be several words ("Message text", "What they wrote") if one of them
#   is a usual name, if there are three columns or more, or if the cell over the labels of two
#   classes cannot well be a third: they are 0 and 1, or yes and no, and it is no such answer, or
#   it has several words ("Verdict of reviewer") and they, in 20 rows or more, have one.  Then
#   no cell of the row has a digit.
# - The cell over the labels occurs there only once, while the others repeat, and it is neither ham
#   nor spam, unless it is over numbers.  In a table of two classes the label of a first message
#   always repeats, unless the rest of the sample is of the other class, as in a sorted file: then a
#   row is a header only over numbers or over ham and spam, or with an index.  Where no column looks
#   like a label, the row must be one of words over a column of numbers or dates; that is enough
#   where there is one beside the labels, too.  Names that pandas counted may be like the labels
#   below them.
#
# Messages that are still lost: the message "1" of class 0, and a first message of one word (of a
# few, in three columns, or of a class "not sure" beside ham and spam) that is alone in its class in
# the sample.  A note says that the row was taken as a header.

_NAME_LENGTH = 40  # characters
_BARE_WORD = lazy_pattern(r"[^\W\d]\w*(?:[.-]\w+)*")  # a bare word, as an identifier is
_TITLE = lazy_pattern(r"[^\W\d_][^\d.!,;:]*")  # a few words
_INDEX = lazy_pattern(r"[0-9]+")
_DIGIT = lazy_pattern(r"\d")
_NUMBER = lazy_pattern(r"[-+]?\d+(?:[.,]\d+)*")
_ROWS_OF_ONE_WORD = 20  # labels, at least, beside which one of several words is none


def is_header_row(first: Sequence[str], others: Sequence[Sequence[str]]) -> bool:
    """Return whether a table's first row names its columns; others: the sample's other rows."""
    names = [cell.strip() for cell in first]
    while names and not names[-1]:
        names.pop()
    if len(names) < 2:
        return False
    columns = [[row[i].strip() for row in others if i < len(row)] for i in range(len(names))]
    columns = [[cell for cell in column if cell] for column in columns]
    # The index of a data frame; the rows may be shuffled.
    index = columns[0] if not names[0] else []
    has_index = 2 < len(index) == len(set(index)) and all(map(_INDEX.fullmatch, index))
    titles = names[1:] if has_index else names
    are_counted = titles == [str(number) for number in range(len(titles))]
    if not are_counted and not (
        len({name.lower() for name in titles}) == len(titles)
        and all(0 < len(name) <= _NAME_LENGTH and not _NUMBER.fullmatch(name) for name in titles)
    ):
        return False
    label = label_by_content(columns)
    text = text_by_content(columns, label)
    labels = [] if label is None else [normal_label(cell) for cell in columns[label]]
    classes, name = set(labels), "" if label is None else normal_label(names[label])
    if text is None or not (
        are_counted
        or _BARE_WORD.fullmatch(names[text])
        or _is_title(names[text], titles, _is_no_class(name, labels))
    ):
        return False
    words = sum(_BARE_WORD.fullmatch(cell) is not None for cell in columns[text])
    if len(columns[text]) < 2 or 4 * words > len(columns[text]):
        return False
    has_numbers = has_index or any(
        all(map(_DIGIT.search, column or [""])) and not _DIGIT.search(names[i])
        for i, column in enumerate(columns)
        if i not in (text, label)
    )
    if label is None:
        return has_numbers
    are_numbers = all(map(_NUMBER.fullmatch, labels))
    if not are_counted and (name in classes or (name in (HAM, SPAM) and not are_numbers)):
        return False
    if are_numbers or has_numbers:
        return len(labels) > 1
    return len(labels) >= 2 * len(classes) and (len(classes) > 1 or classes <= {HAM, SPAM})


def _is_title(name: str, names: Sequence[str], is_header: bool) -> bool:
    """Return whether several words may name the column of the texts; names: of all columns."""
    is_usual = any(word in TEXT_NAMES for word in re.findall(r"\w+", name.lower()))
    return (
        (is_usual or len(names) > 2 or is_header)
        and _TITLE.fullmatch(name) is not None
        and not any(map(_DIGIT.search, names))
    )


def _is_no_class(name: str, labels: list[str]) -> bool:
    """Return whether a cell cannot be a third class beside the two of the labels below it."""
    classes = set(labels)
    answers = {answer_label(label) for label in classes - {SPAM, HAM}}
    if len(classes) == 2 and answers == {SPAM, HAM}:
        return answer_label(name) not in answers
    many = len(classes) == 2 and len(labels) >= _ROWS_OF_ONE_WORD
    return many and " " in name and not any(" " in label for label in classes)
