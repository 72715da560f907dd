"""Maildirs on this machine, and what a user does there with another program."""

import os
from itertools import count

_LETTERS = {b"\\Seen": "S", b"\\Deleted": "T", b"\\Flagged": "F", b"$Forwarded": "P"}
_KEYWORDS = (b"Work", b"$junk", b"Junk", b"$NotJunk", b"NonJunk")
_numbers = count(1)


class LocalMailbox:
    """Has the methods of `imap_servers.Mailbox`."""

    def __init__(self, top, is_dotted=True):
        """is_dotted: Maildir++, whose other folders are beside cur and new of the inbox."""
        self.top, self.is_dotted = top, is_dotted
        for folder in ("INBOX", "Junk", "Trash"):
            self.create(folder)

    def path(self, folder):
        if not self.is_dotted:
            return self.top / folder
        return self.top if folder == "INBOX" else self.top / f".{folder.replace('/', '.')}"

    def create(self, folder):
        for part in ("cur", "new", "tmp"):
            (self.path(folder) / part).mkdir(parents=True)
        lines = [b"%d %s\n" % (n, keyword) for n, keyword in enumerate(self.keywords(folder))]
        (self.path(folder) / "dovecot-keywords").write_bytes(b"".join(lines))

    def keywords(self, folder):
        """Return the keywords of a folder, from the letter a on."""
        return _KEYWORDS if folder == "INBOX" else _KEYWORDS[::-1]

    def letters(self, folder, flags):
        keywords = [keyword.lower() for keyword in self.keywords(folder)]
        own = {f: chr(ord("a") + keywords.index(f.lower())) for f in flags if f.lower() in keywords}
        return {own.get(flag) or _LETTERS[flag] for flag in flags}

    def files(self, folder):
        paths = [p for part in ("cur", "new") for p in (self.path(folder) / part).iterdir()]
        return sorted(paths, key=lambda path: path.name)

    def address(self, number):
        """Return what nbspam calls a message of the inbox."""
        return str(self.files("INBOX")[number - 1])

    @property
    def name(self):
        return str(self.top)

    def put(self, *messages, folder="INBOX", flags=(), date=None):
        for message in messages:
            letters = "".join(sorted(self.letters(folder, flags)))
            part = f"cur/{next(_numbers):06}.host:2,{letters}"
            path = self.path(folder) / (part if flags else f"new/{next(_numbers):06}.host")
            path.write_bytes(message)
            if date:
                os.utime(path, (date.timestamp(), date.timestamp()))

    def all(self, folder="INBOX"):
        """Return of each message its bytes, flags and date."""
        found = []
        for path in self.files(folder):
            flags = frozenset(path.name.partition(":2,")[2])
            found.append((path.read_bytes(), flags, path.stat().st_mtime))
        return found

    def mails(self, folder="INBOX"):
        return [mail for mail, flags, _ in self.all(folder) if "T" not in flags]

    def flag(self, folder, flags, gone=()):
        """Set flags of all messages of a folder; gone: those that are taken away."""
        for path in self.files(folder):
            base, _, old = path.name.partition(":2,")
            new = ({*old} - self.letters(folder, gone)) | self.letters(folder, flags)
            path.rename(self.path(folder) / "cur" / f"{base}:2,{''.join(sorted(new))}")

    def move(self, source, target, *messages):
        """Move these messages as a mail program does, under new names; all if none is named."""
        paths = [p for p in self.files(source) if not messages or p.read_bytes() in messages]
        assert len(paths) == (len(messages) or len(paths))
        for path in paths:
            part, flags = path.parent.name, path.name.partition(":")[2]
            name = f"{next(_numbers):06}.host" + (f":{flags}" if flags else "")
            path.rename(self.path(target) / part / name)


def everywhere(mailbox, gone=None):
    """Return of each message the folder, the flags and the date; gone: a flag of those left out."""
    found = {}
    for folder in ("INBOX", "Junk", "Trash"):
        for mail, flags, date in mailbox.all(folder):
            if gone not in flags:
                assert mail not in found, "a message is in two folders, or twice in one"
                found[mail] = (folder, flags, date)
    return found


def folders_of(found):
    return {mail: folder for mail, (folder, *_) in found.items()}


def unmoved(found):
    """Return what a move changes nothing of."""
    return {mail: rest for mail, (_, *rest) in found.items()}
