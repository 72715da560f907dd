"""A lazy pattern does what the compiled one does, and is compiled once."""

import re

from nbspam.patterns import lazy_pattern


def test_it_is_compiled_when_it_is_first_used(monkeypatch):
    compiled = []
    compile_now = re.compile
    monkeypatch.setattr(re, "compile", lambda *a: compiled.append(a) or compile_now(*a))
    pattern = lazy_pattern("A(b)", re.IGNORECASE)
    assert compiled == []
    assert pattern.findall("ab xAB") == ["b", "B"]
    assert pattern.findall("") == []
    assert compiled == [("A(b)", re.IGNORECASE)]


def test_it_has_every_method_of_a_pattern():
    pattern = lazy_pattern(rb"\s+")
    assert pattern.sub(b" ", b"a\n b") == b"a b"
    assert pattern.fullmatch(b" \t") is not None
    assert pattern.pattern == rb"\s+"
