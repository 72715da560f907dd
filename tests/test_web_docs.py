"""The examples of docs/web.md: FastAPI, Django, the mounted service, and the test."""

import re
import warnings
from pathlib import Path

import pytest

import nbspam

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "web.md").read_text("utf-8")
FASTAPI, DJANGO, MOUNTING, TEST = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
PAIRS = [("spam", "win a free prize now"), ("ham", "see you at lunch")] * 10


@pytest.fixture
def model(tmp_path):
    nbspam.train(PAIRS).save(tmp_path / "model.json")
    return tmp_path / "model.json"


def test_the_test_of_the_application_passes(tmp_path, monkeypatch):
    pytest.importorskip("fastapi", reason="fastapi is not installed")
    pytest.importorskip("httpx", reason="httpx is not installed")
    (tmp_path / "shop.py").write_text(FASTAPI)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("NBSPAM_MODEL", "")  # which the test sets
    names = {}
    exec(TEST, names)
    with warnings.catch_warnings(action="ignore"):
        names["test_spam_is_marked"](tmp_path)


def test_the_service_is_mounted(model, monkeypatch):
    pytest.importorskip("fastapi", reason="fastapi is not installed")
    pytest.importorskip("httpx", reason="httpx is not installed")
    with warnings.catch_warnings(action="ignore"):
        from starlette.testclient import TestClient
    monkeypatch.setenv("NBSPAM_MODEL", str(model))
    names = {"__name__": "shop"}
    exec(FASTAPI + MOUNTING, names)
    client = TestClient(names["app"])
    answer = client.post("/spam/classify", json={"message": "a free prize"})
    assert answer.json()["verdict"] == "spam"
    assert client.post("/spam/learn", json={}).status_code == 401


def test_the_views_of_django(model):
    django = pytest.importorskip("django", reason="Django is not installed")
    from django.conf import settings
    from django.test import RequestFactory

    if not settings.configured:
        settings.configure(NBSPAM_MODEL=str(model), ALLOWED_HOSTS=["testserver"])
        django.setup()
    views = {}
    exec(DJANGO, views)
    post = RequestFactory().post
    assert b'"spam"' in views["comment"](post("/", {"text": "a free prize"})).content
    lesson = {"text": "a free prize", "label": "ham"}
    assert views["feedback"](post("/", lesson)).content == b'{"learned": 1}'
    assert views["comment"](RequestFactory().get("/")).status_code == 405
    views["spam_filter"]().close()
