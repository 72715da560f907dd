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
from nbspam.reading import remote
from nbspam.reading.remote import RemotePath
from nbspam.reading.source import Skips, Source
from nbspam.reading.sources import ReadingOptions, labelled, unlabelled
from nbspam.store.writing import fetched

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


def read(name, reads=labelled, outside=False):
    more = ("spam",) if reads is unlabelled else ()
    return list(reads(name, *more, ReadingOptions(outside=outside), Skips()))


@each("url", golden_table("reading/urls.table", 1, "schemes"))
def test_only_the_schemes_that_are_promised(tmp_path, url):
    file = tmp_path / "secret"
    file.write_bytes(MAIL)
    with pytest.raises(SourceError, match=r": URLs of this kind cannot be read; use s3://, gs://"):
        read(url.format(file=file), unlabelled)
    with pytest.raises(Exception, match=r": URLs of this kind cannot be read; use s3://, gs://"):
        fetched(url.format(file=file))


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
            read(f"{web}/start", unlabelled)
        assert "/mail" not in Answers.asked
    else:
        assert len(read(f"{web}/start", unlabelled)) == 1


def test_an_index_at_a_url_names_what_lies_beneath_it(web):
    index = (
        b"spam 1\nham a/2\nham /etc/passwd\nham https://other.example/3\nham file:///etc/passwd\n"
    )
    found = ("1", "a/2", "/etc/passwd", "https://other.example/3", "file:///etc/passwd")
    Answers.pages = {"/x/index": index, **{f"/x/{name}": MAIL for name in found}}
    assert [raw.source for raw in read(f"{web}/x/index")] == [f"{web}/x/{name}" for name in found]
    assert {path for path in Answers.asked if "/x/" not in path} <= {"/mail", "/start", "/to-other"}


@each("name", ["../y/1", "a/../../1", "%2e%2e/y/1", "..%2fy%2f1", "a/..\\..\\1", ".."])
def test_an_index_at_a_url_leads_nowhere_else(web, name):
    Answers.pages = {"/x/index": b"spam 1\nham %b\n" % name.encode(), "/x/1": MAIL, "/y/1": MAIL}
    Answers.asked.clear()
    for outside in (False, True):
        with pytest.raises(SourceError, match=r"index:2: .* is outside the index's folder"):
            read(f"{web}/x/index", outside=outside)
    assert set(Answers.asked) <= {"/x/index", "/x/1"}


def test_what_a_server_lists_is_beneath_the_folder(monkeypatch):
    """Whatever names it gives: those of other hosts, of other schemes, of this machine."""

    class System:
        def ls(self, url, detail):
            names = "b/mail/", "b/mail/1", "c/2", "/etc/passwd", "file:///etc/group", "https://h/3"
            return [{"name": name, "type": "file", "size": 1} for name in names]

    monkeypatch.setattr(remote, "_system", lambda _: System())
    names = [str(path) for path in RemotePath("s3://b/mail").iterdir()]
    assert names == [f"s3://b/mail/{name}" for name in ("1", "2", "passwd", "group", "3")]


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
