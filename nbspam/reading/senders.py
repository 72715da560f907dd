"""The user's lists of allowed and blocked senders, and whether a mail proves who sent it.

Anybody can write any address into From.  So an allowed sender counts only if the user's own mail
server reports, in its Authentication-Results field, that DMARC, DKIM or SPF passed for From's
domain (or if the user trusts From).  Only fields that no sender can have written are believed:
fields with the server's name, from the top of the header down to the first Received field below
them.  A server that follows RFC 8601 (section 5) removes incoming fields with its own name.

To prove a sender, the header is read strictly: it proves nothing if programs may disagree whether a
line is a header or text, or whether a word is an address or a name.  To block, a loose look is
enough.  This module is imported only if the user has lists.

Sources: RFC 5322 (addresses), RFC 8601 (Authentication-Results), RFC 7489 (alignment), RFC 3492.
"""

import os
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from nbspam.errors import OptionError, Remedy, one_line
from nbspam.names import ALLOWED_SENDER, BLOCKED_SENDER, LIST_FILE
from nbspam.reading.header_fields import HEAD, Header
from nbspam.reading.message import Message

_FILE_LIMIT = 16 << 20  # bytes
_VALUE_LIMIT = 16 << 10  # characters of one field; a longer one proves nothing
_SENDERS_LIMIT = 100  # addresses in From that are looked up
_DOMAIN_LIMIT, _LABEL_LIMIT = 253, 63  # characters; the limits of DNS

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_OUTSIDE = re.compile(rf'[^"()]+|{_QUOTED}|\(', re.DOTALL)
# A server may copy a quoted local part into a comment, and the quote can end the comment: `(a@b
# "x); dkim=pass …`.
_COMMENT = re.compile(r"[^()\"\\]+|\\.|[()]", re.DOTALL)
_FIELD = re.compile(rb"([!-9;-~]+):")
_NOT_IN_HEADER = re.compile(rb"[\r\0]|(?m:^[ \t]+$)")

# An address field becomes a string with one letter for each lexeme: a for an atom, q for a quoted
# string, s for blanks or a comment, any other character itself.  The patterns match that string.
_LEXEME = re.compile(rf'([^\s()<>\[\]:;@\\,."\x00-\x1f\x7f]+)|({_QUOTED})|(\s+)', re.DOTALL)
_SPEC = r"(?:a(?:\.a)*|q)@a(?:\.a)*"
_ONE_MAILBOX = re.compile(rf"[aqs.]*<s?({_SPEC})s?>s?|s?({_SPEC})s?")
# only from the start of a run of atoms, so in linear time
_ANY_SPEC = re.compile(rf"(?<!a\.){_SPEC}")

_DOMAIN = re.compile(r"[a-z0-9_*?-]+(?:\.[a-z0-9_*?-]+)*")
# Authentication-Results without its comments: the results are separated by semicolons, and each is
# `method=result`, an optional reason, and properties.  Servers write more characters into a value
# than RFC 8601 allows: `header.b=a/b+c=`, `smtp.remote-ip=2001:db8::1`.
_RESULT = re.compile(rf'(?:[^;"]|{_QUOTED})+', re.DOTALL)
_SERVER = re.compile(rf"\s*([^\s;=\"]+|{_QUOTED})(?:\s+1)?\s*", re.DOTALL)
_METHOD = re.compile(r"\s*([A-Za-z0-9_-]+(?:/\d+)?)\s*=\s*([A-Za-z0-9_-]+)(?:\s+|$)")
_VALUE = rf'{_QUOTED}(?:@[^\s;"\\]+)?|[^\s;"\\]+'
_PROPERTY = re.compile(rf"([A-Za-z0-9._-]+)\s*=\s*({_VALUE})(?:\s+|$)", re.DOTALL)
# The properties that name the domain that a method has checked.
_CHECKED = {
    "dmarc": ("header.from",),
    "dkim": ("header.d", "header.i"),
    "spf": ("smtp.mailfrom",),
}
_HELO = "smtp.helo"  # a name that the client chose


class Address(NamedTuple):
    """An address, or a pattern for addresses; in lower case, with an ASCII domain."""

    local: str
    domain: str

    def __str__(self) -> str:
        return f"{self.local}@{self.domain}"


class ListedSender(NamedTuple):
    """A sender on a list of the user's."""

    reason: str | None  # the verdict's reason; None: the sender is allowed, but may be forged
    address: str
    entry: str  # the list's entry
    doubt: str = ""  # why the sender may be forged


def _normalize(local: str, domain: str) -> Address | None:
    """Normalize an address for comparison; None for an invalid domain.

    Letters are only lowered, because IDNA of 2003 would turn straße.de into strasse.de, another
    domain.
    """

    def label(text: str) -> str:
        if text.isascii():
            return text.lower()
        # no domain has such a label, and encoding 240 characters takes 7 ms
        if len(text) > _LABEL_LIMIT:
            return "xn--"
        return "xn--" + unicodedata.normalize("NFC", text.lower()).encode("punycode").decode()

    if local.startswith('"'):
        local = re.sub(r"\\(.)", r"\1", local[1:-1], flags=re.DOTALL)
    if len(domain) > _DOMAIN_LIMIT:
        return None
    domain = ".".join(map(label, domain.split(".")))
    local = unicodedata.normalize("NFC", local.lower())
    return Address(local, domain) if _DOMAIN.fullmatch(domain) else None


# Lists


class _List:
    """A list of senders."""

    def __init__(self, name: str, entries: Iterable[str], follow_links: bool) -> None:
        """name: the option, for errors.  Raises OptionError for an entry that is not a sender."""
        # Entries to look up: their only wildcards are a local part `*` and a domain `*.…`.
        # All other entries are tried one by one.  They are grouped by their domain if it can be
        # looked up; "" is the group of the rest.
        self._exact: dict[Address, str] = {}
        self._patterns: dict[str, list[tuple[Address, str]]] = {}
        for entry, place in _expand_entries(name, entries, follow_links):
            local, at, domain = re.sub("^mailto:", "", entry, flags=re.IGNORECASE).rpartition("@")
            address = _normalize(local or "*", domain) if at else None
            if address is None or re.search(r'[\s<>,;]|^"|^@', local):
                raise OptionError(
                    f"{place}: {entry!r} is not a sender; write boss@example.org, @example.org,"
                    f" *@*.example.org, or {LIST_FILE}FILE for a file of such lines"
                )
            is_known = not _has_wildcard(address.domain.removeprefix("*."))
            if is_known and (address.local == "*" or not _has_wildcard(local)):
                self._exact[address] = entry
            else:
                patterns = self._patterns.setdefault(address.domain if is_known else "", [])
                patterns.append((address, entry))

    def best_match(self, addresses: Iterable[Address]) -> tuple[int, str, Address] | None:
        """Find the (rank, entry, address) that match most closely; None without a match.

        Ranks: 0 the address, 1 its domain, 2 a pattern of domains.
        """
        found = []
        for address in addresses:
            text = f"{address.local}\0{address.domain}"
            labels = address.domain.split(".")
            parents = (".".join(["*", *labels[i:]]) for i in range(1, len(labels)))
            for domain in (address.domain, *parents, ""):
                rank = 1 if domain == address.domain else 2
                for local, entry_rank in ((address.local, 2 * rank - 2), ("*", rank)):
                    if entry := self._exact.get(Address(local, domain)):
                        found.append((entry_rank, entry, address))
                patterns = self._patterns.get(domain, ())
                found += [
                    (rank, e, address) for p, e in patterns if _compile_pattern(p).fullmatch(text)
                ]
        return min(found, default=None)


def _expand_entries(
    name: str, entries: Iterable[str], follow_links: bool
) -> Iterator[tuple[str, str]]:
    """Yield each entry, also those in files, and its place for errors."""
    for entry in entries:
        if not entry.startswith(LIST_FILE):
            yield entry.strip(), name
            continue
        path = Path(entry.removeprefix(LIST_FILE))
        try:
            path = path.expanduser()  # RuntimeError: an unknown user
            flags = os.O_RDONLY | (0 if follow_links else os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(os.open(path, flags), "rb") as file:
                content = file.read(_FILE_LIMIT + 1)
            if len(content) > _FILE_LIMIT:
                raise ValueError(f"it is longer than {_FILE_LIMIT:,} bytes")
            text = content.decode("utf-8-sig")
        except (OSError, ValueError, RuntimeError) as error:
            is_not_utf_8 = isinstance(error, UnicodeError)
            why = "it is not UTF-8" if is_not_utf_8 else getattr(error, "strerror", None) or error
            raise OptionError(
                f"{name}: {path} cannot be read ({why}); correct it, or leave it out"
            ) from error
        for number, line in enumerate(text.splitlines(), 1):
            if line := re.sub(r"(?:^|\s)#.*", "", line).strip():
                yield line, f"{path}:{number}"


def _has_wildcard(text: str) -> bool:
    return "*" in text or "?" in text


@lru_cache(1 << 17)  # compiled on first use, because compiling 100,000 patterns takes 3 s
def _compile_pattern(pattern: Address) -> re.Pattern[str]:
    wild = {"*": ".*", "?": "."}
    parts = ("".join(wild.get(c) or re.escape(c) for c in part) for part in pattern)
    return re.compile("\0".join(parts), re.DOTALL)


class SenderLists:
    """The lists of allowed and blocked senders, and whom to believe about who sent a mail."""

    def __init__(
        self,
        allow: Iterable[str] = (),
        block: Iterable[str] = (),
        auth_hosts: Iterable[str] = (),
        trust_from: bool = False,
        common: "SenderLists | None" = None,
        follow_links: bool = True,
        names: tuple[str, str] = ("allow", "block"),
    ) -> None:
        """Read the lists; raises OptionError for an entry that is not a sender.

        auth_hosts: the names of the user's own servers in Authentication-Results.
        trust_from: believe From without a proof.
        common: lists for senders that are not on these lists.
        follow_links: False refuses a file of entries that is a link, which another user may make.
        names: the two options, for errors.
        """
        for name, entries in zip(names, (allow, block), strict=True):
            if isinstance(entries, str):
                raise OptionError(f"{name} is a text; give a list of senders")
        self._settings = (names[0], tuple(allow)), (names[1], tuple(block)), follow_links
        self._stamps: list[object] = []
        self._read(self._current_stamps())
        self.auth_hosts = tuple(host.strip().lower() for host in auth_hosts)
        self.trust_from, self._common = trust_from, common

    def _read(self, stamps: list[object]) -> None:
        *settings, follow_links = self._settings
        try:
            self._allow, self._block = (_List(*s, follow_links) for s in settings)
        finally:  # so that an unusable version of a file is reported only once
            self._stamps = stamps

    def _current_stamps(self) -> list[object]:
        """Return a value that changes when a file of entries changes."""
        allow, block, _ = self._settings
        stamps: list[object] = []
        for entry in (e for e in allow[1] + block[1] if e.startswith(LIST_FILE)):
            stamps.append(None)
            with suppress(OSError, ValueError, RuntimeError):
                s = Path(entry.removeprefix(LIST_FILE)).expanduser().stat()
                stamps[-1] = s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns
        return stamps

    def reread(self) -> bool:
        """Read the lists again if a file of entries has changed; return whether a file has changed.

        Raises OptionError once for a wrong entry or file; the lists stay unchanged then.
        """
        stamps = self._current_stamps()
        has_changed = stamps != self._stamps
        if has_changed:
            self._read(stamps)
        return has_changed

    def find_sender(self, message: Message) -> ListedSender | None:
        """Find the sender of a message on the lists; None if no list has it.  Never raises.

        The closest entry decides: an address before its domain, a domain before a pattern.  Among
        equally close entries, `block` decides.
        """
        values = [value for name, value in message.headers if name == "from"]
        senders = list(islice(chain.from_iterable(map(_addresses, values)), _SENDERS_LIMIT))
        if not senders:
            return None
        blocked, allowed = self._block.best_match(senders), self._allow.best_match(senders)
        found = None
        if allowed and not (blocked and blocked[0] <= allowed[0]):
            doubt = self._forgery_doubt(message, allowed[2])
            reason = None if doubt else ALLOWED_SENDER
            found = ListedSender(reason, str(allowed[2]), allowed[1], doubt)
        if blocked and (found is None or found.doubt):
            found = ListedSender(BLOCKED_SENDER, str(blocked[2]), blocked[1])
        if self._common and (found is None or found.doubt):
            return self._common.find_sender(message) or found
        return found

    def _forgery_doubt(self, message: Message, sender: Address) -> str:
        """Describe why From may be forged; "" if the sender is proven."""
        fields = _strict_fields(message.head)
        values = [value for name, value in fields if name == "from"]
        if len(values) != 1 or _one_address(values[0]) != sender:
            return "its header is malformed, or has not exactly one sender in From"
        if self.trust_from:
            return ""
        hosts = " or ".join(self.auth_hosts)
        if not hosts:
            return "no auth-host is set"
        results = _results_of(fields, self.auth_hosts)
        if results is None:
            return f"it has no Authentication-Results of {hosts}"
        if not _is_proven(results, sender.domain):
            return f"{hosts} reports no pass of DMARC, DKIM or SPF for {sender.domain}"
        return ""


def sender_lists(
    allow: Collection[str],
    block: Collection[str],
    auth_hosts: Collection[str],
    trust_from: bool,
    names: tuple[str, str] = ("allow", "block"),
) -> SenderLists | None:
    """Make the lists in a user's settings; None if they are empty.  Raises OptionError."""
    if not (allow or block):
        return None
    if allow and not (auth_hosts or trust_from):
        raise OptionError(
            f"{names[0]}: allowed senders need a proof, because anybody can write any address into"
            " From",
            Remedy.NAME_AUTH_HOST,
        )
    return SenderLists(allow, block, auth_hosts, trust_from, names=names)


# From


def _lexemes(value: str) -> tuple[str, list[str]]:
    """Split an address field into lexemes: their kinds, a character each, and their texts."""
    text = _without_comments(value[:_VALUE_LIMIT])
    text = value[:_VALUE_LIMIT] if text is None else text
    kinds, texts, at = "", [], 0
    while at < len(text):
        match = _LEXEME.match(text, at)
        kinds += "aqs"[(match.lastindex or 1) - 1] if match else text[at]
        texts.append(match[0] if match else text[at])
        at += len(texts[-1])
    return kinds, texts


def _without_comments(value: str) -> str | None:
    """Replace each comment in a structured value by a blank; None for a malformed value.

    A comment with a quotation mark proves nothing, though RFC 5322 allows it.
    """
    kept, depth, at = "", 0, 0
    while at < len(value):
        match = (_COMMENT if depth else _OUTSIDE).match(value, at)
        if match is None:
            return None
        if not depth:
            kept += " " if match[0] == "(" else match[0]
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        at = match.end()
    return None if depth else kept


def _address_at(texts: list[str], start: int, end: int) -> Address | None:
    local, _, domain = "\0".join(texts[start:end]).rpartition("\0@\0")
    return _normalize(local.replace("\0", ""), domain.replace("\0", ""))


def _addresses(value: str) -> Iterator[Address]:
    """Yield all addresses of a From field in any notation, except addresses in quoted names."""
    kinds, texts = _lexemes(value)
    for match in _ANY_SPEC.finditer(kinds):
        if address := _address_at(texts, *match.span()):
            yield address


def _one_address(value: str) -> Address | None:
    """Parse a From field that is strictly one mailbox; None for any other field."""
    if len(value) > _VALUE_LIMIT or _without_comments(value) is None:
        return None
    kinds, texts = _lexemes(value)
    match = _ONE_MAILBOX.fullmatch(kinds)
    return _address_at(texts, *match.span(match.lastindex or 1)) if match else None


# The server's report


def _strict_fields(head: bytes) -> list[Header]:
    """Return the header fields of a mail, unfolded; [] if programs may disagree about them.

    head: the start of the mail.
    """
    if head.startswith((b"From ", b">From ")):  # from an mbox, or from a delivery program
        head = head.partition(b"\n")[2]
    block, end, _ = head.replace(b"\r\n", b"\n").partition(b"\n\n")
    if _NOT_IN_HEADER.search(block) or (not end and len(head) >= HEAD):
        return []
    fields: list[tuple[str, bytes]] = []
    for line in block.rstrip(b"\n").split(b"\n"):
        if line[:1] in (b" ", b"\t") and fields:
            fields[-1] = fields[-1][0], fields[-1][1] + line
        elif match := _FIELD.match(line):
            fields.append((match[1].decode().lower(), line[match.end() :]))
        else:
            return []
    return [(name, value.decode("utf-8", "replace")) for name, value in fields]


class _Result(NamedTuple):
    method: str
    result: str
    properties: dict[str, str]


def _results_of(fields: list[Header], hosts: tuple[str, ...]) -> list[_Result] | None:
    """Collect the results of the user's own servers at the top of the header; None without any.

    All fields of these servers at the top count together.  A malformed field leaves no results,
    because the sender's text may have broken it to hide a failure.
    """
    results: list[_Result] | None = None
    for name, value in fields:
        if name == "received" and results is not None:
            break
        if name == "authentication-results":
            host, reported = authentication_results(value)
            if host in hosts:
                results = [*(results or ()), *reported]
            elif not host and any(own in value.lower() for own in hosts):
                return []
    return results


def authentication_results(value: str) -> tuple[str, list[_Result]]:
    """Parse a field into its server and results; the server of a malformed field is "".

    Properties after smtp.helo are dropped, in later results too, because the client chose that
    name, and a server that copies it unchanged also copies `x; dmarc=pass header.from=example.org`.
    """
    text = _without_comments(value) if len(value) <= _VALUE_LIMIT else None
    first, *others = _RESULT.findall(text or "") or [""]
    server = _SERVER.fullmatch(first)
    results, is_after_helo = list[_Result](), False
    for piece in others if server else ():
        if piece.strip() in ("", "none"):
            continue
        method = _METHOD.match(piece)
        at, properties, n = method.end() if method else 0, dict[str, str](), 0
        while match := _PROPERTY.match(piece, at):
            n, at = n + 1, match.end()
            properties[match[1].lower()] = _unquote(match[2])
        if method is None or at < len(piece) or n > len(properties):
            return "", []
        keys = list(properties)
        sound = [] if is_after_helo else keys[: keys.index(_HELO)] if _HELO in keys else keys
        is_after_helo |= _HELO in keys
        name = method[1].lower().removesuffix("/1")
        results.append(_Result(name, method[2].lower(), {key: properties[key] for key in sound}))
    return (_unquote(server[1]).lower() if server else ""), results


def _unquote(text: str) -> str:
    is_quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL) if is_quoted else text


def _is_proven(results: list[_Result], domain: str) -> bool:
    """Return whether DMARC, or an aligned DKIM or SPF, passed for a domain, and no DMARC failed.

    The domain itself and the domains above it are aligned.  DMARC's relaxed alignment also accepts
    domains below, within a registered domain, which requires a list of public suffixes.  A mail has
    one sender, so contradicting results of DMARC, or of SPF for MAIL FROM, do not count.
    """
    if any(r.method == "dmarc" and r.result == "fail" for r in results):
        return False
    for method, keys in _CHECKED.items():
        claims = {(r.result, _checked_domain(r, keys)) for r in results if r.method == method}
        if method == "spf":  # a result for HELO is about another name
            claims = {claim for claim in claims if claim[1]}
        if method != "dkim" and len(claims) > 1:
            continue
        for checked in (name for result, name in claims if result == "pass"):
            is_above = "." in checked and f".{domain}".endswith(f".{checked}")
            if checked == domain or (is_above and method != "dmarc"):
                return True
    return False


def _checked_domain(result: _Result, keys: tuple[str, ...]) -> str:
    named = [result.properties[key] for key in keys if key in result.properties]
    return _domain_of(named[0]) if named else ""


def _domain_of(value: str) -> str:
    address = _normalize("", value.rpartition("@")[2])
    return address.domain if address else ""


def sentence_on(sender: ListedSender) -> str:
    """Return the explanation line for a listed sender."""
    kind = "blocked" if sender.reason == BLOCKED_SENDER else "allowed"
    entry = f" ({sender.entry})" if sender.entry != sender.address else ""
    effect = f"this does not count: {sender.doubt}" if sender.doubt else "this decides"
    return one_line(f"{sender.address} is on the list of {kind} senders{entry}; {effect}")
