from hypothesis import given
from hypothesis import strategies as st

from nbspam.tokens.text import Memo


def counted(limit):
    """Return a memo of upper case, and the list of what it had to work out."""
    asked = []

    def upper(key):
        asked.append(key)
        return key.upper()

    return Memo(upper, limit), asked


def test_what_is_known_is_not_worked_out_again_but_a_full_memo_forgets():
    memo, asked = counted(10)
    assert list(map(memo.__getitem__, ["a", "b", "a"])) == ["A", "B", "A"]
    assert asked == ["a", "b"]
    memo, asked = counted(2)
    for key in ("a", "b", "c", "a"):
        assert memo[key] == key.upper()
        assert len(memo) <= 2
    assert asked == ["a", "b", "c", "a"]
    memo, _ = counted(10)
    assert memo["x" * 100_000] == "X" * 100_000
    assert not memo  # a long key is not kept


@given(st.lists(st.text(max_size=3)), st.integers(1, 5))
def test_a_memo_gives_what_its_function_gives(keys, limit):
    memo, _ = counted(limit)
    assert [key.upper() for key in keys] == [memo[key] for key in keys]
