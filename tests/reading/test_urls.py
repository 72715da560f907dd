"""URLs: no source, and no password of one in a sentence."""

import os

import pytest
from one_case import each

from nbspam.__main__ import describe
from nbspam.cli.notes import describe_failure
from nbspam.errors import ModelError, Remedy, SourceError
from nbspam.names import real_name
from nbspam.reading.source import ReadingOptions, Skips
from nbspam.reading.sources import read_messages


@each("url", ["https://h/a.csv", "s3://b/a.parquet", "file:///etc/passwd", "http://a:sec@h/x"])
def test_a_url_is_no_source(url):
    with pytest.raises(
        SourceError, match=r": is a URL, and sources are files; download it, or"
    ) as error:
        list(read_messages(url, ReadingOptions(), Skips()))
    assert ":sec@" not in str(error.value)


def test_no_path_of_this_machine_is_made_of_a_url(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "imaps:" / "h").mkdir(parents=True)
    monkeypatch.setattr(os, "lstat", lambda *_: pytest.fail("a path was looked up"))
    assert real_name("imaps://h/m") == "imaps://h/m"


@each(
    "url",
    ["https://hal:se:c@ret@127.0.0.1:1/x.mbox", "https://:sec@ret@[::1]:1/x", "ftp://a:sec@ret@h"],
)
def test_no_error_says_the_password_of_a_url(url):
    """Not even one that another library wrote."""
    rest = url.partition("://")[2]
    for error in (
        SourceError(f"{url}: cannot be read (no {url}, nor {rest})", Remedy.ALLOW_OUTSIDE),
        ModelError("no model", Remedy.CREATE_MODEL, path=url),
        OSError(1, "refused", url),
        ValueError(f"not a host: {url}"),
    ):
        for said in (str(error), describe_failure(error, describe)[1])[
            isinstance(error, OSError | ValueError) :
        ]:
            assert "ret@" not in said
            assert ":…@" in said
    for said in ("imaps://hal@a@h:993/a:b@c: d@e", "https://h:1/a:b@c: d", "no ://", "a:b@c"):
        assert str(SourceError(said)) == said
