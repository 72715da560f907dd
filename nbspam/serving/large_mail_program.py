"""What the process runs that reads large messages: tasks come on a channel, replies go back.

A task and a reply are a prefix with two lengths, a JSON object and bytes: the message, or the reply
to the client.  With a task comes the descriptor of the model if it is another one now.  The process
ends when the server has closed the channel, that is, in any case with the server.
"""

import json
import signal
import socket
import struct
from typing import Any

from nbspam.errors import NbspamError
from nbspam.filter import Filter
from nbspam.reading.message import parse
from nbspam.scoring.base import Base
from nbspam.scoring.classifier import Classifier
from nbspam.scoring.verdict import CutOffs
from nbspam.serving.answer import answer
from nbspam.serving.memory import give_back_freed_memory, limit_memory
from nbspam.serving.spamd import TEMPORARY, RefusedError, Request
from nbspam.store.index import IndexLayout, TokenIndex
from nbspam.store.lookup import Lookup
from nbspam.tokens.tokenized import Wanted, tokenize

PREFIX = struct.Struct("!QQ")  # how long the JSON object is, and how many bytes follow it

# Tokens whose weights are cached, and bytes of the model that are kept in memory: the server has
# both for the many small messages.
_CACHED_TOKENS = 10_000
_LAYOUT = IndexLayout(in_memory=0)

_Task = dict[str, Any]
_Reply = tuple[dict[str, Any], bytes]


class _Reader:
    """Does the tasks, with the model that came last."""

    def __init__(self) -> None:
        self._open_files: list[Lookup] = []
        self._filter: Filter | None = None

    def reply(self, task: _Task, message: bytes, handles: list[int]) -> _Reply:
        """Return the reply to a task, whatever happens.

        handles: of a model that is to be used from now on, and of its base; [] for the last one.
        """
        try:
            if handles:
                self._open(task["model"], handles)
            return self._done(task, message)
        except RefusedError as error:
            return {"refused": [error.code, str(error)]}, b""
        except NbspamError as error:
            return {"failed": str(error)}, b""
        except MemoryError:
            return {"refused": [TEMPORARY, "(it takes too much memory)"]}, b""
        except Exception as error:  # noqa: BLE001 (a message that fails must not end the process)
            return {"bug": f"{type(error).__name__}: {error}"}, b""

    def _open(self, model: dict[str, Any], handles: list[int]) -> None:
        """Use another model; raises ModelError."""
        self._filter = None
        while self._open_files:
            self._open_files.pop().close()
        for name, handle in zip(model["files"], handles, strict=True):
            self._open_files.append(Lookup(name, handle))
        own, *bases = [
            (lookup.metadata, TokenIndex(lookup, _LAYOUT).counts) for lookup in self._open_files
        ]
        make = Base(model["files"][1], *bases[0]).classifier if bases else Classifier
        classifier = make(*own, _CACHED_TOKENS)
        self._filter = Filter(classifier, CutOffs(*model["cut_offs"]))

    def _done(self, task: _Task, body: bytes) -> _Reply:
        """Tokenize a message, or answer a request about it."""
        request = Request(task.get("command", ""), body=body, compressed=task["compressed"])
        message = request.message(task["max_size"])
        if "wanted" in task:
            wanted = Wanted(*task["wanted"])
            tokenized = tokenize(parse(message), digest=True, wanted=wanted)
            times, traits, perhaps = tokenized.numbers
            numbers = {
                "digest": tokenized.digest,
                "times": times,
                "traits": traits,
                "perhaps_hidden": sorted(perhaps),
            }
            return numbers, "\n".join(tokenized.tokens).encode("utf-8", "surrogatepass")
        if self._filter is None:
            raise NbspamError("the model cannot be used; restart the server")
        request = request._replace(version=tuple(task["version"]))
        reply, judged = answer(request, message, self._filter, task["x_spam"])
        verdict = judged.verdict
        fields = {name: getattr(verdict, name) for name in ("verdict", "probability", "reason")}
        return fields, reply


def read_large_mail(handle: int, memory: int) -> None:
    """Do tasks until the channel is closed.

    handle: the channel's descriptor.  memory: bytes that this process may have.
    """
    # Signals to the group are the server's to obey: it finishes what was begun.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    give_back_freed_memory()
    limit_memory(memory)
    reader = _Reader()
    with socket.socket(fileno=handle) as channel:
        while _serve_one(reader, channel):
            pass


def _serve_one(reader: _Reader, channel: socket.socket) -> bool:
    """Do one task; return whether there was one."""
    prefix, handles, _, _ = socket.recv_fds(channel, PREFIX.size, 2)  # of a model and its base
    if len(prefix) < PREFIX.size:
        return False
    head, size = PREFIX.unpack(prefix)
    task = json.loads(_receive(channel, head))
    message = _receive(channel, size)
    reply, content = reader.reply(task, message, list(handles))
    head = json.dumps(reply).encode()
    channel.sendall(PREFIX.pack(len(head), len(content)) + head)
    channel.sendall(content)
    return True


def _receive(channel: socket.socket, n: int) -> bytes:
    """Return `n` bytes, read in one piece: joining pieces would take them twice."""
    data = channel.recv(n, socket.MSG_WAITALL) if n else b""
    if len(data) < n:
        raise EOFError
    return data
