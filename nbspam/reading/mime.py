"""The MIME tree of a mail: its leaves, decoded to text, and what mail programs show of them.

The standard library's email package is correct for valid mail; spam is seldom valid.  So this
reader makes parts of any bytes, and every loop has a bound.

Sources: RFC 2045 and 2046.
"""

import re
from itertools import islice, pairwise
from typing import NamedTuple

from nbspam.patterns import lazy_pattern
from nbspam.reading.charsets import decode, decode_transfer, decode_uu, is_identity
from nbspam.reading.header_fields import (
    MIME_FIELDS,
    PARAMETERS_LIMIT,
    Header,
    content_type,
    decode_words,
    parameters_of,
    split_header,
)

# A spammer chooses the input, so these limits bound time and memory, far above the mail in the
# corpora (deepest nesting 5, most parts 40).  A mail that exceeds a limit is never called ham.
TEXT_LIMIT = 2 << 20  # characters of text, over all parts of a message
LOWEST_OF_TEXT = 9  # the lowest byte of a text; lower bytes show binary data
DEPTH_LIMIT = 1_000  # multiparts inside one another
PARTS_LIMIT = 1_000  # parts of one message, and of one multipart
_WORK_LIMIT = 128 << 20  # bytes searched for parts; each level of a tree searches its bytes again
_DECODING_WORK = 8  # decoding a byte costs as much as searching this many bytes


class Part(NamedTuple):
    """A leaf of the MIME tree."""

    content_type: str  # lower case, such as "text/html"
    text: str  # decoded; empty for a part without text
    is_html: bool = False  # whether mail readers and browsers show the text as a page
    filename: str = ""
    is_attached: bool = False  # whether mail programs show it on demand only
    # Whether mail programs may hide the part: it is in an attached message or attachment, or is a
    # related part that is not the shown part.
    is_possibly_hidden: bool = False
    # The number of the multipart/alternative that contains the part, and of the version that the
    # part belongs to.
    version: tuple[int, int] | None = None


class _Node(NamedTuple):
    """A part before decoding, which may have parts."""

    content_type: str
    parameters: dict[str, str]
    fields: dict[str, str]
    body: bytes
    depth: int = 0
    is_possibly_hidden: bool = False
    version: tuple[int, int] | None = None
    is_contained: bool = False  # whether it is, or is in, a container that may be read in part only

    @property
    def is_attached(self) -> bool:
        """Whether mail programs show the part on demand only; they always show a mail's root."""
        disposition = self.fields.get("content-disposition", "").lower()
        is_inline = not disposition or disposition.startswith("inline")
        is_shown = self.content_type in _SHOWN or self.content_type.startswith("multipart/")
        return self.depth > 0 and not (is_inline and is_shown)

    @property
    def filename(self) -> str:
        if disposition := self.fields.get("content-disposition", ""):
            filename = parameters_of(disposition[:PARAMETERS_LIMIT]).get("filename")
            if filename:
                return decode_words(filename)
        return decode_words(self.parameters["name"]) if "name" in self.parameters else ""

    @property
    def is_container(self) -> bool:
        """Whether the part may have a text that can be read in part only."""
        is_named = self.filename.lower() in ("winmail.dat", "smime.p7m")
        return is_named or self.content_type in _CONTAINERS | {"application/pgp-encrypted"}

    @property
    def is_message(self) -> bool:
        """Whether the part is a whole message, by its type or its file's name."""
        is_named = self.filename.lower().endswith(".eml")
        return self.content_type in _MESSAGES or (is_named and not _may_be_text(self))

    @property
    def encoding(self) -> str:
        return self.fields.get("content-transfer-encoding", "")


_MESSAGE = "message/rfc822"
_MESSAGES = frozenset({_MESSAGE, "message/global", "message/news"})
_PAGE_TYPES = frozenset({"text/html", "application/xhtml+xml"})
# Types that mail programs show without a click.
_SHOWN = _PAGE_TYPES | {"text/plain", "text/enriched", "text/richtext"}
_TEXTUAL = frozenset({"application/xhtml+xml", "application/xml", "image/svg+xml"})
# Beginnings of types that may be other than text; unknown types are read as text.
_BINARY = frozenset("application audio font image model video".split())
# Containers with a text that mail programs show: S/MIME's signed mail, Outlook's winmail.dat.
_CONTAINERS = frozenset(
    f"application/{name}" for name in ("pkcs7-mime", "x-pkcs7-mime", "ms-tnef", "vnd.ms-tnef")
)
_TEXT_IN_BYTES = lazy_pattern(rb"[\t\n -~\x80-\xff]{4,}")
_UU_BEGIN = lazy_pattern(rb"^begin [0-7]{3,4} [^\n]*\n(?=[ -`]{2})", re.MULTILINE)
# Types whose folded lines are joined without a blank (RFC 5545); the other case is DelSp (RFC
# 3676).
_FOLDED = frozenset("text/calendar text/vcard text/x-vcard text/directory".split())
_FOLD = lazy_pattern(r"\r?\n[ \t]")
_FLOW = lazy_pattern(r"(?<!^--) \r?\n>* ?", re.MULTILINE)
_HTML_NAME = lazy_pattern(r"\.(?:[xsm]?html?|svg)$", re.IGNORECASE)
_TEXT_NAME = lazy_pattern(r"\.(?:[xsm]?html?|svg|txt|ics|eml)$", re.IGNORECASE)
_PAGE_BEGINS = lazy_pattern(
    r"\s{0,200}<(?:html|!doctype|head|body|meta|table|div|svg)\b", re.IGNORECASE
)
# In a text outside of the parts; a list's footer may have lines of dashes.  With every footer as a
# part, P3 had 80 errors in place of 72.
_OTHER_DELIMITER = lazy_pattern(rb"\n--[^\s]*[^\s-]")
_COMMENT = lazy_pattern(r"\([^()]*\)")
# The delimiter of a part, whatever the boundary claimed.
_ANY_DELIMITER = lazy_pattern(
    rb"(?:\A|\n)--[^\n]{1,200}\n(?=content-[a-z-]{1,30}[ \t]{0,9}:)", re.IGNORECASE
)


def mime_parts(headers: list[Header], body: bytes, limits: set[str]) -> list[Part]:
    """Return the leaves of the MIME tree in reading order.

    limits: receives the names of exceeded limits, such as "parts".
    """
    leaves = _leaves(_node(headers, body, 0), limits)
    names = [leaf.filename for leaf in leaves]
    texts = [_text(leaf, name, limits) for leaf, name in zip(leaves, names, strict=True)]
    read = [t for leaf, t in zip(leaves, texts, strict=True) if not leaf.is_contained]
    if len(read) < len(texts) and not any(map(str.strip, read)):
        limits.add("container")
    are_attached = [leaf.is_attached for leaf in leaves]
    return [
        Part(
            leaf.content_type,
            text,
            is_html(leaf.content_type, name, text),
            name,
            is_attached,
            leaf.is_possibly_hidden,
            leaf.version,
        )
        for leaf, name, text, is_attached in zip(
            leaves, names, fit_to_limit(texts, are_attached, limits), are_attached, strict=True
        )
    ]


def attached_messages(headers: list[Header], body: bytes) -> list[bytes]:
    """Return the messages attached to a mail, as they are: forwarded ones, and those in reports."""
    limits: set[str] = set()
    messages: list[bytes] = []
    nodes = [_node(headers, body, 0)]
    while nodes and len(messages) < PARTS_LIMIT:
        node = nodes.pop()
        is_original = node.parameters.get("x-spam-type") == "original"  # a filter's report
        if is_original or node.is_message or node.filename.lower().endswith(".eml"):
            messages.append(decode_transfer(node.body, node.encoding, limits))
        elif node.content_type.startswith("multipart/") and node.depth < DEPTH_LIMIT:
            nodes += reversed(_children(node, 0, limits))
    return messages


def normalize_line_ends(raw: bytes) -> bytes:
    """Remove a byte order mark, and end all lines with LF."""
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    if b"\r" in raw:  # CRLF, CRLF written as text once more, and the bare CR of old Macintoshes
        raw = raw.replace(b"\r\r\n", b"\n").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return raw


def fit_to_limit(texts: list[str], are_attached: list[bool], limits: set[str]) -> list[str]:
    """Cut the texts to TEXT_LIMIT characters in all, keeping a long text's start and end.

    Attached texts get the characters that are left.  Cutting attached texts does not count as
    exceeding the limit, because their words never count for ham.
    """
    if sum(map(len, texts)) <= TEXT_LIMIT:
        return texts
    fitted, remaining = texts.copy(), TEXT_LIMIT
    for is_attached in (False, True):
        indices = [i for i, flag in enumerate(are_attached) if flag is is_attached]
        if sum(len(texts[i]) for i in indices) > remaining:
            if not is_attached:
                limits.add("text")
            half = remaining // (2 * len(indices))
            for i in indices:
                if len(texts[i]) > 2 * half:
                    fitted[i] = texts[i][:half] + texts[i][len(texts[i]) - half :]
        remaining -= sum(len(fitted[i]) for i in indices)
    return fitted


def is_html(content_type: str, filename: str, text: str) -> bool:
    """Return whether a text is HTML, by its type, its file's name or its first tag."""
    if content_type in _PAGE_TYPES or content_type == "image/svg+xml":
        return True
    if filename and _HTML_NAME.search(filename):
        return True
    return text[:201].lstrip().startswith("<") and _PAGE_BEGINS.match(text) is not None


def _leaves(root: _Node, limits: set[str]) -> list[_Node]:
    """Return the leaves in reading order; a stack, and no recursion, allows deep nesting.

    The Subject of a message within the message is a leaf.
    """
    leaves: list[_Node] = []
    stack, work = [root], 0  # bytes searched
    while stack:
        if len(leaves) == PARTS_LIMIT:
            limits.add("parts")
            break
        node = stack.pop()
        body, media_type = node.body, node.content_type
        is_multipart, is_message = media_type.startswith("multipart/"), node.is_message
        is_container = media_type in _CONTAINERS or (
            media_type == "text/plain" and b"begin " in body
        )
        work += len(body) * (is_multipart + _DECODING_WORK * is_container)
        is_last = len(leaves) == PARTS_LIMIT - 1
        is_deep = node.depth >= DEPTH_LIMIT or work > _WORK_LIMIT or is_last
        if is_deep and (is_multipart or is_message or is_container):
            limits.add("depth")
        if is_multipart:
            # The boundary may be missing, or may not occur in the body.
            nodes = [] if is_deep else _children(node, len(leaves), limits)
            nodes = nodes or _parts_by_delimiter(node, limits)
            stack += reversed(nodes)
            if not nodes:
                leaves.append(node._replace(content_type="text/plain"))
        elif is_message and not is_deep:
            if not is_identity(node.encoding):  # although RFC 2046 forbids encodings here
                work += _DECODING_WORK * len(body)
                body = decode_transfer(body, node.encoding, limits)
            work += len(body)
            headers, body = split_header(body, limits)
            subject = decode_words(_value(headers, "subject")).encode("utf-8", "replace")
            node = node._replace(is_possibly_hidden=True)
            leaves.append(
                node._replace(content_type=_MESSAGE, parameters={}, fields={}, body=subject)
            )
            stack.append(_inherit_doubt(node, _node(headers, body, node.depth + 1)))
        else:
            node = node._replace(is_contained=node.is_contained or node.is_container)
            leaves.append(node)
            if is_container and not is_deep:
                stack += [
                    _inherit_doubt(node, inner) for inner in _parts_in_container(node, limits)
                ]
    return leaves


def _parts_in_container(container: _Node, limits: set[str]) -> list[_Node]:
    """Return the part in a container other than a multipart: uuencoded lines, or binary data."""
    data = decode_transfer(container.body, container.encoding, limits)
    if container.content_type not in _CONTAINERS:
        if not _UU_BEGIN.search(data):
            return []
        inside, attached = decode_uu(data, limits), {"content-disposition": "attachment"}
        kind = "application/octet-stream" if b"\0" in inside else "text/plain"
        return [_Node(kind, {}, attached, inside, container.depth + 1)]
    data = b"\n".join(_TEXT_IN_BYTES.findall(normalize_line_ends(data)))
    headers, body = split_header(data[max(0, data.find(b"Content-Type:")) :], limits)
    inner = _node(headers, body, container.depth + 1)
    return [inner._replace(is_possibly_hidden=container.is_attached)]


def _inherit_doubt(outer: _Node, inner: _Node) -> _Node:
    """Copy the outer part's doubt, version and container to an inner part."""
    return inner._replace(
        is_possibly_hidden=inner.is_possibly_hidden or outer.is_possibly_hidden,
        version=outer.version or inner.version,
        is_contained=outer.is_contained,
    )


def _value(headers: list[Header], name: str) -> str:
    return next((value for key, value in headers if key == name), "")


def _children(node: _Node, number: int, limits: set[str]) -> list[_Node]:
    """Split a multipart by its boundary, and set the doubt about each part.

    number: identifies the multipart in the message, except multiparts inside it.
    """
    default = _MESSAGE if node.content_type == "multipart/digest" else "text/plain"
    segments, outside = _split_parts(node.body, node.parameters, limits)
    parts = [split_header(segment, limits, is_part=True) for segment in segments]
    nodes = [_node(*part, node.depth + 1, default) for part in parts]
    if node.content_type == "multipart/related":
        ids = [_value(headers, "content-id") for headers, _ in parts]
        shown = _shown_related(nodes, ids, node.parameters.get("start", ""))
        nodes = [child._replace(is_possibly_hidden=shown != {i}) for i, child in enumerate(nodes)]
    elif node.content_type == "multipart/alternative":
        nodes = [child._replace(version=(number, i)) for i, child in enumerate(nodes)]
    # Alternatives inside an alternative are too rare to be worth comparing.
    is_nested = node.content_type == "multipart/alternative" and node.version is not None
    if node.is_attached or is_nested:
        node = node._replace(is_possibly_hidden=True)
    if nodes and _OTHER_DELIMITER.search(outside):  # programs may find another boundary
        text = _node([], outside, node.depth + 1)._replace(is_possibly_hidden=True)
        nodes += [text, *_parts_by_delimiter(text, limits)]
    return [_inherit_doubt(node, child) for child in nodes]


def _shown_related(nodes: list[_Node], ids: list[str], start: str) -> set[int]:
    """Return the parts that mail programs show for a multipart/related.

    The first part (RFC 2387), the part that `start` names, or the first page.
    """
    pages = [
        i
        for i, node in enumerate(nodes)
        if node.content_type in _PAGE_TYPES or node.content_type.startswith("multipart/")
    ]
    return {0, *pages[:1], *([ids.index(start)] if start in ids else [])}


def _node(headers: list[Header], body: bytes, depth: int, default: str = "text/plain") -> _Node:
    """Make a part with its MIME fields, its type and the type's parameters.

    Mail readers differ about repeated fields: this reader uses the first field, unless the body
    fits only to a later field, and decodes a body by the first two transfer encodings.
    default: the type of a part without Content-Type.
    """
    fields: dict[str, str] = {}
    types: list[str] = []
    for name, value in headers:
        if name not in MIME_FIELDS or not value:
            continue
        if name == "content-type":
            types.append(value)
        elif name == "content-transfer-encoding":
            value = _COMMENT.sub("", value.lower())
            if name not in fields or (is_identity(fields[name]) and not is_identity(value)):
                fields[name] = value
            elif "\n" not in fields[name] and value not in fields[name] and not is_identity(value):
                fields[name] += f"\n{value}"
        else:
            fields.setdefault(name, value)
    described = content_type(types[0] if types else "", default)
    for value in types[1:]:
        other, parameters = content_type(value, default)
        boundary = parameters.get("boundary", "").encode("utf-8", "replace")
        if other.startswith("multipart/") and boundary and b"--" + boundary in body:
            described = other, parameters
            break
    return _Node(*described, fields, body, depth)


def _parts_by_delimiter(node: _Node, limits: set[str]) -> list[_Node]:
    """Find everything in a body that looks like a part, at any depth, except multiparts.

    Some mail programs show such parts if the claimed boundary is wrong or the tree is deep.
    """
    node = node._replace(is_possibly_hidden=True)
    delimiters = islice(_ANY_DELIMITER.finditer(node.body), PARTS_LIMIT + 1)
    starts = [match.end() for match in delimiters]
    if len(starts) > PARTS_LIMIT:
        limits.add("parts")
        starts.pop()
    nodes = []
    for start, end in pairwise([*starts, len(node.body)]):
        headers, inside = split_header(node.body[start:end], limits)
        kind, _ = content_type(_value(headers, "content-type"), "text/plain")
        if not kind.startswith("multipart/"):
            nodes.append(_inherit_doubt(node, _node(headers, inside, node.depth + 1)))
    return nodes


def _may_be_text(leaf: _Node) -> bool:
    return leaf.content_type.partition("/")[0] not in _BINARY or leaf.content_type in _TEXTUAL


def _text(leaf: _Node, filename: str, limits: set[str]) -> str:
    """Decode the text of a leaf; "" for a leaf without text."""
    if not _may_be_text(leaf):
        # A page in an attachment is opened with one click.  Some programs show a root or a version
        # with a text, whatever its type.
        is_read = _TEXT_NAME.search(filename) is not None
        if not is_read:
            beginning = decode_transfer(leaf.body[:1024], leaf.encoding, set())
            if leaf.depth == 0 or leaf.version:
                is_read = min(beginning, default=0) >= LOWEST_OF_TEXT
            elif leaf.content_type == "application/octet-stream":
                is_read = is_html("", "", beginning.decode("latin-1"))
        if not is_read:
            return ""
    charset = leaf.parameters.get("charset", "")
    readings = [decode_transfer(leaf.body, name, limits) for name in leaf.encoding.split("\n")]
    text = "\n".join(decode(data, charset) for data in readings)
    if leaf.content_type in _FOLDED:
        return _FOLD.sub("", text).replace("\\n", "\n").replace("\\N", "\n")
    is_flowed = leaf.parameters.get("delsp", "").lower() == "yes"
    return _FLOW.sub("", text) if is_flowed and leaf.content_type == "text/plain" else text


def _split_parts(
    body: bytes, parameters: dict[str, str], limits: set[str]
) -> tuple[list[bytes], bytes]:
    """Split a body at the boundary's delimiter lines; no parts without such lines.

    Also returns the text outside of the parts.

    A delimiter is `--boundary` on a line of its own; a longer word that starts with it (such as the
    boundary of an inner multipart) is text.  Without an end delimiter, the last part ends with the
    body.  If there are too many parts, the middle parts are read as one text.
    """
    boundary = parameters.get("boundary", "").rstrip()
    if not boundary:
        return [], b""
    sign = b"\n--" + boundary.encode("utf-8", "replace")
    half = PARTS_LIMIT // 2
    *pieces, rest = (b"\n" + body).split(sign, half)
    pieces += rest.rsplit(sign, half)
    if len(pieces) > 2 * half and sign in pieces[half]:
        limits.add("parts")
    parts: list[list[bytes]] = []
    outside = pieces[0]
    for i, piece in enumerate(pieces[1:], start=1):
        line, _, content = piece.partition(b"\n")
        line = line.strip()
        if line == b"--":
            outside = b"\n".join([outside, sign.join([content, *pieces[i + 1 :]])])
            break
        if not line:
            parts.append([content])
        elif parts:
            parts[-1] += [sign, piece]
    return [b"".join(part) for part in parts], outside
