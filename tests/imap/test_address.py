import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbspam.errors import AccountError
from nbspam.imap.address import FolderAddress, parse_address

ADDRESSES = {
    "imaps://hal@mail.example.org/INBOX": ("hal", "mail.example.org", None, "INBOX", None),
    "imaps://hal@example.org@mx:1993/a/b": ("hal@example.org", "mx", 1993, "a/b", None),
    "imaps://hal%40example.org@mx/a%20b": ("hal@example.org", "mx", None, "a b", None),
    "IMAPS://hal@[::1]:993/Entwürfe": ("hal", "::1", 993, "Entwürfe", None),
    "imaps://hal@[::1]/x": ("hal", "::1", None, "x", None),
    "imaps://hal@mx/INBOX/;UID=17": ("hal", "mx", None, "INBOX", 17),
    "imaps://hal@mx": ("hal", "mx", None, "", None),
    "imaps://hal@mx/": ("hal", "mx", None, "", None),
    "imaps://hal@mx/迷惑/100%25": ("hal", "mx", None, "迷惑/100%", None),
}
PROBLEMS = {
    "imaps://mx/INBOX": "is not the address of a folder",
    "imaps://@mx/INBOX": "is not the address of a folder",
    "imaps://hal@/INBOX": "is not the address of a folder",
    "imaps://hal:secret@mx/INBOX": "a password cannot stand in an address",
    "imaps://hal@mx:0/INBOX": "the port is not a number",
    "imaps://hal@mx:99999/INBOX": "the port is not a number",
    "imaps://hal@mx:²/INBOX": "the port is not a number",
    "imaps://hal@mx/INBOX/;UID=0": "is not the address of a message",
    "imaps://hal@mx/INBOX/;UID=x": "is not the address of a message",
    "imaps://hal@mx/%FF": "is not UTF-8",
    "imap://hal@mx/INBOX": "only imaps:// is read",
}


def test_parts():
    assert {text: parse_address(text) for text in ADDRESSES} == ADDRESSES


def test_what_is_none_is_one_sentence():
    for text, problem in PROBLEMS.items():
        with pytest.raises(AccountError, match=problem) as raised:
            parse_address(text)
        assert "secret" not in str(raised.value)
        assert "; " in str(raised.value)


texts = st.text(min_size=1, max_size=20).filter(lambda text: "\0" not in text)


@given(
    texts.filter(lambda user: ":" not in user and "/" not in user),
    st.sampled_from(["mx", "mail.example.org", "::1", "127.0.0.1"]),
    st.none() | st.integers(1, 65_535),
    texts,
    st.none() | st.integers(1, 2**32 - 1),
)
def test_the_text_of_an_address_is_read_again(user, host, port, folder, uid):
    try:
        (user + folder).encode()
    except UnicodeEncodeError:
        return
    address = FolderAddress(user, host, port, folder, uid)
    text = address.text if uid is None else address.message(uid)
    assert parse_address(text) == address
