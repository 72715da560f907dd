"""The ASGI application: what each request is answered, and by whom the filter may be taught."""

import asyncio
import json
import subprocess
import sys
import threading
import warnings
from importlib.metadata import version
from pathlib import Path

import pytest

import nbspam

pytest.importorskip("starlette", reason="starlette is not installed")
pytest.importorskip("httpx", reason="httpx is not installed")

with warnings.catch_warnings(action="ignore"):  # newer ones prefer httpx2
    from starlette.testclient import TestClient
from starlette.applications import Starlette
from starlette.routing import Mount

from nbspam import asgi
from nbspam.scoring.version import FilterVersion

ROOT = Path(__file__).parents[1]
TOKEN = {"Authorization": "Bearer secret"}
MAIL = {"Content-Type": "message/rfc822"}
SPAM = {"message": "win a free prize"}
PAIRS = [("spam", "win a free prize"), ("ham", "lunch at noon")] * 9


@pytest.fixture
def path(tmp_path):
    nbspam.train(PAIRS).save(tmp_path / "model.json")
    return tmp_path / "model.json"


@pytest.fixture
def client(path):
    with nbspam.open(path) as spam_filter:
        yield TestClient(asgi.application(spam_filter, "secret", max_bytes=1000))


def test_a_text_and_a_mail_are_classified_as_by_the_filter(client, path):
    mail = b"Subject: prize\n\nwin a free prize\n"
    with nbspam.open(path) as spam_filter:
        for body, headers, message in (
            (json.dumps(SPAM).encode(), {"Content-Type": "application/json"}, SPAM["message"]),
            (mail, MAIL, mail),
        ):
            answer = client.post("/classify", content=body, headers=headers).json()
            expected = spam_filter.classify(message).as_json()
            del expected["source"]
            assert answer == expected


def test_an_explanation_has_the_words_that_add_up(client, path):
    answer = client.post("/explain", json=SPAM).json()
    total = sum(answer["constants"].values()) + sum(word["share"] for word in answer["words"])
    assert total + answer["fragments"] == pytest.approx(answer["log_odds"], abs=1e-6)
    assert answer["words"][0]["counts"] == [0, 9]
    assert not any(word["token"].startswith("tri:") for word in answer["words"])


def test_an_explanation_is_of_the_verdict_though_the_model_changes_meanwhile(
    client, path, monkeypatch
):
    explain = FilterVersion.explain

    def explain_and_teach(version, message):
        with nbspam.open(path) as another:
            another.learn([("ham", f"win a free prize {'x' * i}") for i in range(9)])
        return explain(version, message)

    monkeypatch.setattr(FilterVersion, "explain", explain_and_teach)
    answer = client.post("/explain", json=SPAM).json()
    total = sum(answer["constants"].values()) + sum(word["share"] for word in answer["words"])
    assert total + answer["fragments"] == pytest.approx(answer["log_odds"], abs=1e-6)


def test_a_lesson_is_learned_once_and_forgotten(client, path):
    lesson = {"message": "see you at nine", "label": "ham"}
    answers = [client.post("/learn", json=lesson, headers=TOKEN).json() for _ in range(2)]
    assert answers == [
        {"learned": 1, "moved": 0, "unchanged": 0},
        {"learned": 0, "moved": 0, "unchanged": 1},
    ]
    with nbspam.open(path) as another:
        assert another.metadata.learned.messages == (10, 9)
    assert client.get("/health").json() == {"messages": {"ham": 10, "spam": 9}}
    assert client.post("/forget", json=lesson, headers=TOKEN).json()["forgotten"] == 1
    sent = client.post("/learn?label=spam", content=b"Subject: a\n\nbuy now", headers=TOKEN | MAIL)
    assert sent.json()["learned"] == 1
    for empty in (b"", b"\r\n"):
        sent = client.post("/learn?label=spam", content=empty, headers=TOKEN | MAIL)
        assert sent.json() == {"learned": 0, "moved": 0, "unchanged": 1}
    with nbspam.open(path) as another:
        assert another.metadata.learned.messages == (9, 10)


@pytest.mark.parametrize("page", ["/health", "/metrics"])
def test_a_changed_model_is_opened_in_a_thread(client, path, page, monkeypatch):
    reopen, threads = nbspam.Filter.reopen, []

    def watched(spam_filter):
        with pytest.raises(RuntimeError, match="no running event loop"):
            asyncio.get_running_loop()
        threads.append(threading.current_thread())
        reopen(spam_filter)

    with nbspam.open(path) as another:
        another.learn([("ham", "see you at nine")])
        monkeypatch.setattr(nbspam.Filter, "reopen", watched)
        assert client.get(page).status_code == 200
    assert len(threads) == 1


@pytest.mark.parametrize(
    "request_, status, said",
    [
        (("/learn", b"{}", {}), 401, "the token is missing or wrong"),
        (("/forget", b"{}", {"Authorization": "Bearer secre"}), 401, "the token is missing"),
        (("/learn", b"{}", {"Authorization": "Basic secret"}), 401, "the token is missing"),
        (("/classify", b"{", {}), 400, "the body is not JSON"),
        (("/classify", b"[" * 999, {}), 400, "the body is not JSON"),
        (("/classify", b"[]", {}), 422, "the body has no text"),
        (("/classify", b'{"message": 1}', {}), 422, "the body has no text"),
        (("/classify", b"\xff" * 1001, MAIL), 413, "the body is longer than 1,000 bytes"),
        (("/classify", b"a", {"Content-Type": "text/plain"}), 415, "the body is of the type"),
        (("/learn", b'{"message": "a b"}', TOKEN), 422, "the message has no label"),
        (("/learn", b'{"message": "a", "label": "x"}', TOKEN), 422, "'x' is not a class"),
        (("/nothing", b"", {}), 404, "Not Found"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(client, request_, status, said):
    where, body, headers = request_
    answer = client.post(
        where, content=body, headers={"Content-Type": "application/json"} | headers
    )
    assert answer.status_code == status
    assert answer.json()["error"].startswith(said)
    assert ("www-authenticate" in answer.headers) == (status == 401)


def test_without_a_token_nobody_teaches(path):
    with nbspam.open(path) as spam_filter:
        answer = TestClient(asgi.application(spam_filter)).post(
            "/learn", json=SPAM | {"label": "spam"}, headers={"Authorization": "Bearer "}
        )
    assert answer.status_code == 403


def test_a_damaged_model_is_reported_and_the_open_one_still_answers(client, path):
    damaged = path.with_name("damaged.json")
    damaged.write_text("{")
    damaged.replace(path)
    answer = client.get("/health")
    assert (answer.status_code, "model.json" in answer.json()["problem"]) == (503, True)
    assert client.post("/classify", json=SPAM).status_code == 200
    lesson = SPAM | {"label": "ham"}
    assert client.post("/learn", json=lesson, headers=TOKEN).status_code == 500


def test_a_lone_surrogate_is_answered(client):
    body = rb'{"message": "prize \ud800 \udfff win"}'
    headers = {"Content-Type": "application/json"}
    assert client.post("/explain", content=body, headers=headers).status_code == 200


def test_prometheus_reads_the_counts(client):
    parser = pytest.importorskip("prometheus_client.parser")
    client.post("/classify", json=SPAM)
    client.post("/learn", json=SPAM)
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in parser.text_string_to_metric_families(client.get("/metrics").text)
        for sample in family.samples
    }
    assert found["nbspam_http_requests_total", "/classify", "200"] == 1
    assert found["nbspam_http_requests_total", "/learn", "401"] == 1
    assert found["nbspam_http_verdicts_total", "spam"] == 1
    assert found["nbspam_http_verdicts_total", "unsure"] == 0


def test_the_name_of_a_class_is_quoted_for_prometheus():
    parser = pytest.importorskip("prometheus_client.parser")
    name = 'sp"am\\ \u00fc\u4e2d'
    spam_filter = nbspam.train([(name, "win"), ("ham", "lunch")] * 9, spam_label=name)
    page = TestClient(asgi.application(spam_filter)).get("/metrics").text
    samples = [s for f in parser.text_string_to_metric_families(page) for s in f.samples]
    assert name in {sample.labels.get("verdict") for sample in samples}


def test_a_client_that_disconnects_is_no_failure_of_the_server(client):
    received = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    ]
    sent = []
    scope = {"type": "http", "method": "POST", "path": "/classify", "query_string": b""}
    scope["headers"] = [(b"content-type", b"application/json")]

    async def receive():
        return received.pop(0)

    async def send(message):
        sent.append(message)

    asyncio.run(client.app(scope, receive, send))
    assert sent[0]["status"] == 400
    assert 'requests_total{path="/classify",status="400"} 1' in client.get("/metrics").text


def test_the_description_names_where_the_application_is_mounted(client):
    assert client.get("/openapi.json").json()["servers"] == [{"url": "/"}]
    mounted = Starlette(routes=[Mount("/spam", client.app)])
    description = TestClient(mounted).get("/spam/openapi.json").json()
    assert description["servers"] == [{"url": "/spam"}]


def test_the_environment_names_the_model(path, monkeypatch):
    asgi._environment_application.cache_clear()
    monkeypatch.delenv("NBSPAM_MODEL", raising=False)
    with pytest.raises(nbspam.OptionError, match="set NBSPAM_MODEL"):
        _ = asgi.app
    monkeypatch.setenv("NBSPAM_MODEL", str(path))
    monkeypatch.setenv("NBSPAM_TOKEN", "secret")
    client = TestClient(asgi.app)
    assert asgi.app is asgi.app
    lesson = {"message": "see you at ten", "label": "ham"}
    assert client.post("/learn", json=lesson, headers=TOKEN).status_code == 200
    asgi._environment_application.cache_clear()


def test_without_starlette_the_extra_is_named():
    program = "import sys; sys.modules['starlette'] = None; import nbspam.asgi"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    said = done.stderr.splitlines()[-1]
    assert said.startswith("ImportError: nbspam.asgi needs starlette; install it with: ")
    assert "nbspam[http]" in said


def test_each_path_is_described_and_each_described_path_exists(client):
    described = client.get("/openapi.json").json()["paths"]
    routes = {route.path: route.methods - {"HEAD"} for route in client.app.routes}
    assert {path: {m.upper() for m in methods} for path, methods in described.items()} == routes


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_description_is_true(client):
    """Requests drawn from the description get the answers that it describes."""
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    if tuple(map(int, version("schemathesis").split(".")[:2])) < (4, 32):
        pytest.skip("schemathesis before 4.32 leaves event loops open, which warn")
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    schema = schemathesis.openapi.from_asgi("/openapi.json", client.app)
    operations = [found.ok() for found in schema.get_all_operations()]
    assert len(operations) == 6
    cases = st.one_of([operation.as_strategy() for operation in operations])

    @given(cases)
    @settings(max_examples=60, deadline=None, suppress_health_check=[*HealthCheck])
    def ask(case):
        # The labels that a model knows are not in the description.
        without = [positive_data_acceptance] if case.path == "/learn" else []
        case.call_and_validate(headers=TOKEN, excluded_checks=without)

    ask()
