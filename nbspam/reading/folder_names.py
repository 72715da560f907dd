"""The use of a folder by its name (spam, deleted mail, drafts), where the server marks no use."""

import base64
import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

JUNK, TRASH, DRAFTS = "\\junk", "\\trash", "\\drafts"  # RFC 6154
OLD_JUNK = "old junk"  # such as Archive.Spam next to Junk
# The last part of a name -> the use.  Names of deleted mail in the languages of Outlook, Apple
# Mail, Thunderbird, Gmail and Roundcube: English, German, French, Spanish, Catalan, Portuguese,
# Italian, Dutch, Danish, Norwegian, Swedish, Finnish, Polish, Czech, Slovak, Hungarian, Romanian,
# Croatian, Greek, Turkish, Russian, Ukrainian, Bulgarian, Hebrew, Arabic, Chinese, Japanese and
# Korean.
_TRASH_NAMES = """
trash|bin|deleted|deleted items|deleted messages|deleted objects|deleted mail|wastebasket|rubbish
papierkorb|gelöscht|gelöschte elemente|gelöschte objekte|gelöschte nachrichten|müll|mülleimer
geloescht|geloeschte elemente|geloeschte objekte
corbeille|éléments supprimés|messages supprimés|poubelle
papelera|papelera de reciclaje|elementos eliminados|mensajes eliminados|eliminados|borrados
paperera|elements suprimits|lixeira|lixo|itens excluídos|itens eliminados|mensagens eliminadas
cestino|posta eliminata|elementi eliminati|messaggi eliminati
prullenbak|prullenmand|verwijderde items|verwijderde berichten|verwijderd
papirkurv|slettet post|slettede elementer|slettede meldinger|søppel|søppelkurv
papperskorg|papperskorgen|borttagna objekt|raderade meddelanden
roskakori|roskat|poistetut|poistetut kohteet|poistetut viestit
kosz|elementy usunięte|usunięte|koš|odstraněná pošta|odstranené položky|kôš|smazané zprávy
kuka|lomtár|törölt elemek|törölt üzenetek|coș de gunoi|elemente șterse|mesaje șterse|gunoi
smeće|izbrisano|izbrisane stavke|κάδος|κάδος απορριμμάτων|διαγραμμένα|διαγραμμένα στοιχεία
çöp|çöp kutusu|silinmiş öğeler|silinmiş postalar
корзина|удаленные|удалённые|кошик|видалені|кошче|изтрити
אשפה|פריטים שנמחקו|סל מחזור|المهملات|العناصر المحذوفة
已删除邮件|已删除|垃圾桶|废纸篓|刪除的郵件|垃圾箱|ごみ箱|ゴミ箱|削除済みアイテム|휴지통|지운 편지함
"""
_JUNK_NAMES = """
junk|spam|junk e-mail|junk email|junk-e-mail|bulk mail|unerwünscht|indésirables|courrier indésirable
correo no deseado|posta indesiderata|ongewenste e-mail|skräppost|спам|垃圾邮件|迷惑メール
"""
_DRAFTS_NAMES = "drafts|draft|entwürfe|brouillons|borradores|bozze|concepten"


def _uses(names: str, use: str) -> dict[str, str]:
    return {_letters(name): use for name in re.split("[|\n]", names.strip())}


def _letters(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold().strip()


_BY_NAME = _uses(_JUNK_NAMES, JUNK) | _uses(_TRASH_NAMES, TRASH) | _uses(_DRAFTS_NAMES, DRAFTS)


def use_of_name(name: str) -> str:
    """Look up a folder's use by the last part of its name; "" if it is unknown."""
    return _BY_NAME.get(_letters(name), "")


class ListedFolder(NamedTuple):
    """A folder in the server's list."""

    name: str
    separator: str
    flags: frozenset[str]  # in lower case

    @property
    def is_selectable(self) -> bool:
        """Whether the folder can hold messages."""
        return not self.flags & {"\\noselect", "\\nonexistent"}

    @property
    def parts(self) -> list[str]:
        """The parts of the folder's name, in one spelling."""
        return _letters(self.name.replace(self.separator or "/", "/")).split("/")


def with_special_uses(folders: Iterable[ListedFolder]) -> list[ListedFolder]:
    """Add the special use that the name of a folder shows, such as \\Trash for Papierkorb.

    Deleted mail may be in several folders: Outlook has one next to the folder that the server
    marks.  Spam goes to one folder: the one that the server marks, else the topmost.
    """
    folders = list(folders)
    uses = {f.name: use_of_name(f.parts[-1]) for f in folders if f.is_selectable}
    is_marked = any(JUNK in folder.flags for folder in folders)
    top = min((len(f.parts) for f in folders if uses.get(f.name) == JUNK), default=0)
    found = []
    for folder in folders:
        use = uses.get(folder.name, "")
        if use == JUNK and JUNK not in folder.flags and (is_marked or len(folder.parts) > top):
            use = OLD_JUNK
        found.append(folder._replace(flags=folder.flags | ({use} if use else set())))
    return found


def decoded_name(name: str) -> str | None:
    """Decode a folder's name from IMAP's modified UTF-7 (RFC 3501, 5.1.3); None if it is invalid.

    Maildirs have such names on the disk, too.
    """

    def decode(match: re.Match[str]) -> str:
        data = match[1].replace(",", "/")
        padded = data + "=" * (-len(data) % 4)
        text = base64.b64decode(padded, validate=True).decode("utf-16-be") if data else "&"
        return text if match[0].endswith("-") else "\ud800"  # not closed by `-`, so invalid

    try:
        name = re.sub("&([^-]*)-?", decode, name)
        name.encode()
    except ValueError:  # invalid base64 or UTF-16, or half a character
        return None
    return name


def resolve_folder(name: str, folders: Iterable[ListedFolder]) -> str:
    """Return the folder that a user names, possibly in another spelling; unknown names unchanged.

    The separator may be written as /, letters may be composed differently, a dot may come first,
    and the name may be in modified UTF-7.
    """

    def normal(name: str, separator: str) -> str:
        name = unicodedata.normalize("NFC", name).removeprefix(".")
        return "INBOX" if name.upper() == "INBOX" else name.replace(separator or "/", "/")

    folders = list(folders)
    for spelling in (name, decoded_name(name) or name):
        equal = [
            f.name for f in folders if normal(f.name, f.separator) == normal(spelling, f.separator)
        ]
        if equal:
            return name if name in equal else equal[0]
    return name
