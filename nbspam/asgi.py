"""An ASGI application: verdicts, explanations and lessons as JSON over HTTP.

    NBSPAM_MODEL=model.json NBSPAM_TOKEN=secret uvicorn nbspam.asgi:app

`application` makes an ASGI application from a filter, to mount in another application.  All
processes share the model file, so each knows what any of them has learned.  docs/web.md is the
manual; openapi.json, which the application serves, describes each request.
"""

import hmac
import json
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import cache, cached_property, partial
from importlib.resources import files
from typing import Any, NamedTuple

from nbspam.errors import LockedError, ModelError, NbspamError, OptionError, needs_extra
from nbspam.filter import AnyMessage, Filter, tokenize_message
from nbspam.library import open as open_model
from nbspam.names import UNSURE
from nbspam.scoring.verdict import rounded
from nbspam.scoring.version import FilterVersion
from nbspam.store.writing import LockWait
from nbspam.tokens.kinds import is_fragment

try:
    from anyio import CapacityLimiter, to_thread
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import Response
    from starlette.routing import Route
except ImportError as error:
    raise ImportError(needs_extra("nbspam.asgi", "starlette", "http")) from error

MAX_BYTES = 4 << 20  # bytes of a request body
_LOCK_SECONDS = 10.0  # seconds that a lesson waits for other processes' lessons
_JSON, _MAIL = "application/json", "message/rfc822"
Endpoint = Callable[[Request], Awaitable[Response]]


class Lesson(NamedTuple):
    """The message of a request, and its label if it has one."""

    message: AnyMessage
    label: str | None


def application(
    spam_filter: Filter, token: str | None = None, max_bytes: int = MAX_BYTES
) -> Starlette:
    """Make an ASGI application from a filter.

    token: clients that teach must send `Authorization: Bearer TOKEN`; without a token nobody can
    teach.
    max_bytes: the longest body of a request.

    >>> from nbspam.asgi import application
    >>> [route.path for route in application(spam_filter).routes][:2]
    ['/classify', '/explain']
    """
    service = _Service(spam_filter, (token or "").encode(), max_bytes)
    posts = {"classify": service.classify, "explain": service.explain}
    posts |= {"learn": service.learn, "forget": service.forget}
    gets = {"health": service.health, "metrics": service.metrics, "openapi.json": service.describe}
    return Starlette(
        routes=[
            *(
                Route(f"/{name}", service.count_requests(name, run), methods=["POST"])
                for name, run in posts.items()
            ),
            *(Route(f"/{name}", run, methods=["GET"]) for name, run in gets.items()),
        ],
        exception_handlers={HTTPException: _refuse},
    )


def __getattr__(name: str) -> Starlette:
    """Make `app` with the settings of the environment; raises NbspamError."""
    if name != "app":
        raise AttributeError(f"module 'nbspam.asgi' has no attribute {name!r}")
    return _environment_application()


@cache
def _environment_application() -> Starlette:
    if not (model := os.environ.get("NBSPAM_MODEL")):
        raise OptionError("no model is named; set NBSPAM_MODEL to a model file")
    return application(open_model(model), os.environ.get("NBSPAM_TOKEN"))


def _answer(value: dict[str, Any], status: int = 200) -> Response:
    value.pop("source", None)  # a verdict has a source
    # In ASCII: a message may have lone surrogates, which no other encoding of JSON can contain.
    return Response(json.dumps(value), status, media_type=_JSON)


def _quoted(name: str) -> str:
    """Quote a class's name, which is printable, for Prometheus."""
    return '"' + name.replace("\\", r"\\").replace('"', r"\"") + '"'


async def _refuse(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    answer = _answer({"error": error.detail}, error.status_code)
    answer.headers.update(error.headers or {})
    return answer


def _status(error: NbspamError) -> tuple[int, dict[str, str]]:
    """Return the status and headers of the answer to an error."""
    if isinstance(error, LockedError):
        return 503, {"Retry-After": "10"}
    return (500 if isinstance(error, ModelError) else 422), {}


class _Service:
    """The endpoints of an application, and what they have counted in this process."""

    def __init__(self, spam_filter: Filter, token: bytes, max_bytes: int) -> None:
        self._filter, self._token, self._max_bytes = spam_filter, token, max_bytes
        self._requests: Counter[tuple[str, int]] = Counter()
        self._verdicts: Counter[str] = Counter()
        self._seconds: Counter[str] = Counter()

    @cached_property
    def _lessons(self) -> CapacityLimiter:
        return CapacityLimiter(1)  # lessons wait for one lock, so one thread is enough

    def count_requests(self, name: str, run: Endpoint) -> Endpoint:
        """Return an endpoint that counts its requests and turns errors into answers."""

        async def counting(request: Request) -> Response:
            began, status = time.monotonic(), 500
            try:
                response = await run(request)
                status = response.status_code
                return response
            except HTTPException as error:
                status = error.status_code
                raise
            except NbspamError as error:
                status, headers = _status(error)
                raise HTTPException(status, str(error), headers) from error
            finally:
                self._requests[name, status] += 1
                self._seconds[name] += time.monotonic() - began  # type: ignore[assignment]

        return counting

    async def classify(self, request: Request) -> Response:
        """Answer the verdict on a message."""
        lesson = await self._lesson(request)
        verdict = await to_thread.run_sync(self._filter.classify, lesson.message)
        self._verdicts[verdict.verdict] += 1
        return _answer(verdict.as_json())

    async def explain(self, request: Request) -> Response:
        """Answer the verdict on a message and the shares of its words, without fragments."""
        lesson = await self._lesson(request)
        answer = await to_thread.run_sync(partial(_explain, self._filter, lesson.message))
        return _answer(answer)

    async def learn(self, request: Request) -> Response:
        """Learn a message; answers how many were new, moved and known."""
        message, label = await self._lesson(request, teaches=True)
        if label is None:
            raise HTTPException(422, "the message has no label; add one, such as spam")
        change = await self._teach(partial(self._filter.learn, [(label, message)]))
        return _answer({key: getattr(change, key) for key in ("learned", "moved", "unchanged")})

    async def forget(self, request: Request) -> Response:
        """Forget a message; answers how many were forgotten."""
        message, _ = await self._lesson(request, teaches=True)
        change = await self._teach(partial(self._filter.forget, [message]))
        return _answer({key: getattr(change, key) for key in ("forgotten", "unchanged")})

    async def health(self, _: Request) -> Response:
        """Answer whether the model file can be used, with status 503 if not."""
        metadata = (await self._version()).metadata
        problem, classes = self._filter.problem, metadata.settings.classes
        messages = dict(zip(classes, map(round, metadata.learned.messages), strict=True))
        answer = {"problem": problem} if problem else {}
        return _answer(answer | {"messages": messages}, 503 if problem else 200)

    async def metrics(self, _: Request) -> Response:
        """Answer what this process has counted, in Prometheus's text format."""
        classes = (await self._version()).classes
        verdicts = dict.fromkeys([*classes, UNSURE], 0) | self._verdicts
        families = {
            "requests_total": {
                f'path="/{name}",status="{status}"': n
                for (name, status), n in self._requests.items()
            },
            "request_seconds_total": {f'path="/{k}"': n for k, n in self._seconds.items()},
            "verdicts_total": {f"verdict={_quoted(name)}": n for name, n in verdicts.items()},
        }
        lines = []
        for family, samples in families.items():
            lines.append(f"# TYPE nbspam_http_{family} counter")
            lines += [f"nbspam_http_{family}{{{labels}}} {n}" for labels, n in samples.items()]
        return Response(
            "\n".join([*lines, ""]), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    async def describe(self, request: Request) -> Response:
        """Answer the description of all endpoints, and where the application is mounted."""
        document = json.loads(files("nbspam").joinpath("openapi.json").read_bytes())
        servers = [{"url": request.scope.get("root_path") or "/"}]
        return _answer(document | {"servers": servers})

    async def _version(self) -> FilterVersion:
        """Return the current model, which is opened in a thread if its file has changed."""
        return await to_thread.run_sync(lambda: self._filter.version)

    async def _teach(self, learn: Callable[..., Any]) -> Any:
        wait = LockWait(_LOCK_SECONDS)
        return await to_thread.run_sync(partial(learn, wait=wait), limiter=self._lessons)

    async def _lesson(self, request: Request, teaches: bool = False) -> Lesson:
        """Read a request; raises HTTPException."""
        if teaches:
            self._check_token(request)
        form = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if form not in (_JSON, _MAIL):
            raise HTTPException(
                415, f"the body is of the type {form or '?'}; send {_JSON} or {_MAIL}"
            )
        body = bytearray()
        try:
            async for piece in request.stream():
                body += piece
                if len(body) > self._max_bytes:
                    problem = f"the body is longer than {self._max_bytes:,} bytes"
                    raise HTTPException(413, f"{problem}; send a shorter message")
        except ClientDisconnect as error:  # nobody reads this answer, but it is counted
            raise HTTPException(400, "the client disconnected; send the whole body") from error
        if form == _MAIL:
            return Lesson(bytes(body), request.query_params.get("label"))
        try:
            fields = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise HTTPException(400, f"the body is not JSON ({error}); check it") from error
        fields = fields if isinstance(fields, dict) else {}
        message, label = fields.get("message"), fields.get("label")
        if not isinstance(message, str) or not isinstance(label, str | None):
            raise HTTPException(
                422,
                'the body has no text as "message"; send {"message": "…"}, and "label" to teach',
            )
        return Lesson(message, label)

    def _check_token(self, request: Request) -> None:
        if not self._token:
            raise HTTPException(403, "this server does not learn; start it with a token")
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        given_token = given.strip().encode("latin-1")
        if scheme.lower() != "bearer" or not hmac.compare_digest(given_token, self._token):
            raise HTTPException(
                401,
                "the token is missing or wrong; send it as Bearer",
                {"WWW-Authenticate": "Bearer"},
            )


def _explain(spam_filter: Filter, message: AnyMessage) -> dict[str, Any]:
    """Return the verdict, the constants, and the words but for fragments."""
    version = spam_filter.version  # a single version, because another process may teach meanwhile
    tokenized = tokenize_message(message, version.outputs)
    explanation, verdict = version.explain(tokenized), version.classify(tokenized)
    fields = {
        "of": explanation.of,
        "constants": dict(explanation.constants),
        "words": [word._asdict() for word in explanation.readable_words],
        "fragments": sum(word.share for word in explanation.words if is_fragment(word.token)),
        "unknown": explanation.unknown,
    }
    return {**verdict.as_json(), **rounded(fields)}
