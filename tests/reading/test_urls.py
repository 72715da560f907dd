"""URLs that somebody else may have written: what they may open, and where they may lead."""

import os
from http.server import BaseHTTPRequestHandler
from typing import ClassVar

import pytest
from golden_tables import golden_table
from one_case import each
from web_servers import web_server

from nbspam.__main__ import described
from nbspam.cli.notes import outcome
from nbspam.errors import ModelError, Remedy, SourceError
from nbspam.names import real_name
from nbspam.reading.message import parse
from nbspam.reading.source import ReadingOptions, Skips, Source
from nbspam.reading.sources import labelled, unlabelled

pytest.importorskip("fsspec")
pytest.importorskip("aiohttp")

MAIL = b"Subject: one\n\ntext\n"


class Answers(BaseHTTPRequestHandler):
    """A web server of a dictionary: bytes, or where to go instead."""

    pages: ClassVar = {}
    asked: ClassVar = []

    def do_GET(self):
        self.asked.append(self.path)
        page = self.pages.get(self.path)
        if page is None:
            self.send_error(404)
            return
        self.send_response(302 if isinstance(page, str) else 200)
        if isinstance(page, str):
            self.send_header("Location", page)
            page = b""
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(page)

    do_HEAD = do_GET  # noqa: N815 (the name that is called)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def web():
    with web_server(Answers) as url:
        yield url


def read(name):
    return list(unlabelled(name, "spam", ReadingOptions(), Skips()))


@each("url", golden_table("reading/urls.table", 1, "schemes"))
def test_only_the_schemes_that_are_promised(tmp_path, url):
    file = tmp_path / "secret"
    file.write_bytes(MAIL)
    with pytest.raises(
        SourceError, match=r": URLs of this kind cannot be read; use s3:// or https://"
    ):
        read(url.format(file=file))


@each("location, said", golden_table("reading/urls.table", 2, "redirects"))
def test_a_redirect_stays_with_its_server(web, location, said):
    port = web.rpartition(":")[2]
    Answers.pages = {
        "/mail": MAIL,
        "/start": location.format(web=web, port=port),
        "/to-other": f"http://localhost:{port}/mail",
    }
    Answers.asked.clear()
    if said:
        with pytest.raises(SourceError, match=said):
            [raw.message() for raw in read(f"{web}/start")]
        assert "/mail" not in Answers.asked
    else:
        assert [raw.message() for raw in read(f"{web}/start")] == [parse(MAIL)]


def test_a_server_that_cannot_be_reached_is_looked_for_in_the_network():
    with pytest.raises(SourceError, match=r"cannot be read .*; check the address and the network$"):
        read("http://127.0.0.1:9/m.eml")


@each("index", [b"spam 1\nham a/2\n", b"spam /etc/passwd\nham ../1\n"])
def test_an_index_at_a_url_names_no_files(web, index):
    Answers.pages = {"/x/index": index, "/x/1": MAIL, "/x/a/2": MAIL, "/1": MAIL}
    Answers.asked.clear()
    with pytest.raises(SourceError, match=r"index: the file has no labels"):
        list(labelled(f"{web}/x/index", ReadingOptions(outside=True), Skips()))
    assert set(Answers.asked) == {"/x/index"}


def test_no_path_of_this_machine_is_made_of_a_url(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "https:" / "h").mkdir(parents=True)
    (tmp_path / "https:" / "h" / "m").write_bytes(MAIL)
    monkeypatch.setattr(os, "lstat", lambda *_: pytest.fail("a path was looked up"))
    assert real_name("https://h/m") == "https://h/m"
    assert real_name(Source("https://h/m").path) == "https://h/m"


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
        for said in (str(error), outcome(error, described)[1])[
            isinstance(error, OSError | ValueError) :
        ]:
            assert "ret@" not in said
            assert ":…@" in said
    for said in ("imaps://hal@a@h:993/a:b@c: d@e", "https://h:1/a:b@c: d", "no ://", "a:b@c"):
        assert str(SourceError(said)) == said
