"""Folders by their names: modified UTF-7, and what names of many languages mean."""

from one_case import each

from nbspam.reading.folder_names import (
    DRAFTS,
    JUNK,
    OLD_JUNK,
    TRASH,
    ListedFolder,
    decoded_name,
    resolve_folder,
    use_of_name,
    with_special_uses,
)


@each(
    "raw, name",
    [
        ("INBOX", "INBOX"),
        ("A &- B", "A & B"),
        ("Entw&APw-rfe", "Entwürfe"),
        ("&BCEEPwQwBDw-/2024", "Спам/2024"),
        ("&2D3eAA-", "😀"),
        ("a&b", None),
        ("&2D0-", None),
        ("&=-", None),
    ],
)
def test_a_name_is_decoded(raw, name):
    assert decoded_name(raw) == name


NAMES = {
    TRASH: "Trash|Deleted Items|Bin|Papierkorb|Gelöschte Elemente|Corbeille|Papelera"
    "|Lixeira|Cestino"
    "|Prullenbak|Slettet post|Papperskorgen|Roskakori|Kosz|Koš|Lomtár|Törölt elemek|Çöp Kutusu"
    "|Корзина|Удаленные|Кошик|已删除邮件|ゴミ箱|휴지통|אשפה",
    JUNK: "Junk|SPAM|Junk E-mail|Courrier indésirable|迷惑メール",
    DRAFTS: "Drafts|Entwürfe",
    "": "INBOX|Archive|Trashy|Sent|Binder",
}


def test_names_of_many_languages_show_the_use():
    for use, names in NAMES.items():
        assert {use_of_name(name) for name in names.split("|")} == {use}


def uses(*names, separator="/", marked=()):
    flags = {name: frozenset({use}) for name, use in marked}
    folders = [ListedFolder(name, separator, flags.get(name, frozenset())) for name in names]
    return [next(iter(f.flags), None) for f in with_special_uses(folders)]


def test_one_folder_is_for_spam_and_all_for_deleted_mail():
    assert uses("INBOX", "Spam", "Archive/Junk") == [None, JUNK, OLD_JUNK]
    assert uses("Junk", "Mail", marked=[("Mail", JUNK)]) == [OLD_JUNK, JUNK]
    assert uses("INBOX.Trash", "INBOX.Bin", separator=".") == [TRASH, TRASH]
    assert uses("[Gmail]/Spam", "[Gmail]/Trash") == [JUNK, TRASH]


def test_a_folder_is_found_in_another_spelling():
    folders = [ListedFolder(name, ".", frozenset()) for name in ("INBOX", "Lists.A & B", "ä")]
    for name, found in (
        ("Lists/A & B", "Lists.A & B"),
        ("Lists.A &- B", "Lists.A & B"),
        (".ä", "ä"),
        ("a\u0308", "ä"),
        ("inbox", "INBOX"),
        ("None", "None"),
    ):
        assert resolve_folder(name, folders) == found
