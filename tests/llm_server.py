"""A real HTTP server on loopback that talks like an OpenAI-compatible one and misbehaves on request.

    with FaultServer(plan=lambda body, attempt: Plan("reset") if attempt == 0 else Plan()) as server:
        ...  # server.url, server.seen, server.paid

`plan(body, attempt)` says what to do with one chat request: `attempt` counts from 0 how often the very same request has
come before, so a plan is a pure function and an outcome does not depend on the order in which requests arrive. It also
serves the Files and Batch endpoints. ``python tests/llm_server.py --latency 0.1`` runs it alone, for the benchmarks.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import math
import random
import re
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from factaudit.llm.chat_types import ChatReply, ChatRequest

#: Ways to misbehave that pass when the request is sent again.
TRANSIENT = (
    "429",  # too many requests, no Retry-After
    "429-retry-after",
    "500",
    "503",
    "hang",  # never answers
    "reset",  # RST in the middle of the body
    "close",  # a clean close before any answer
    "truncated",  # a complete body that is half of a JSON text
    "not-json",
    "empty-choices",
    "wrong-shape",
)
#: Those that are an answer: sending again changes nothing.
LASTING = ("refusal", "content-filter", "content-filter-400", "context-length")


@dataclass(frozen=True)
class Plan:
    """What to do with one request: a fault, or the text to answer with (``p_yes`` gives the log-probabilities)."""

    fault: str | None = None
    text: str = "Yes"
    p_yes: float | None = None
    delay: float = 0.0
    retry_after: str = "0.01"
    usage: bool = True
    finish: str = "stop"
    model: str | None = None
    fingerprint: str | None = None


@dataclass
class FaultServer:
    """The server, in a thread of its own; a context manager. ``paid`` counts usable replies sent, per request body."""

    plan: Callable[[dict[str, Any], int], Plan] = lambda body, attempt: Plan()
    line_plan: Callable[[dict[str, Any], int], Plan] | None = None
    batch_polls: int = 1
    seed: int = 0
    port: int = 0
    seen: Counter[str] = field(default_factory=Counter)
    paid: Counter[str] = field(default_factory=Counter)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    keep: bool = True
    in_flight: int = 0
    most_in_flight: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    batches: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Called before an endpoint answers, with "METHOD /path"; may return a Plan with a fault to apply after the work.
    hook: Callable[[str], Plan | None] | None = None

    def __post_init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> FaultServer:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self.start())
        self._ready.set()
        self._loop.run_forever()
        self._server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", self.port, backlog=2048)
        self.port = self._server.sockets[0].getsockname()[1]

    # What one chat request is answered with ------------------------------------------------------------------------

    def decide(self, body: dict[str, Any], plan: Callable[[dict[str, Any], int], Plan]) -> Plan:
        key = fingerprint(body)
        attempt = self.seen[key]
        self.seen[key] += 1
        decided = plan(body, attempt)
        if decided.fault is None:
            self.paid[key] += 1
        return decided

    def respond(self, plan: Plan, body: Mapping[str, Any]) -> tuple[int, dict[str, str], bytes]:
        """Status, extra headers and body for one plan (connection faults are the connection's work)."""
        match plan.fault:
            case "429":
                return _error(429, "Rate limit reached", "rate_limit_exceeded")
            case "429-retry-after":
                status, headers, data = _error(429, "Rate limit reached", "rate_limit_exceeded")
                return status, {**headers, "Retry-After": plan.retry_after}, data
            case "500":
                return 500, {}, b"Internal Server Error"
            case "503":
                return _error(503, "The engine is overloaded", "overloaded")
            case "quota":
                return _error(429, "You exceeded your current quota", "insufficient_quota")
            case "unauthorized":
                return _error(401, "Incorrect API key provided", "invalid_api_key")
            case "no-model":
                return _error(404, "The model `x` does not exist", "model_not_found")
            case "bad-parameter":
                return _error(400, "Unsupported parameter: 'logprobs'", "unsupported_parameter")
            case "context-length":
                return _error(400, "This model's maximum context length is 4096 tokens", "context_length_exceeded")
            case "content-filter-400":
                return _error(400, "The response was filtered", "content_filter")
            case "not-json":
                return 200, {}, b"<html>gateway</html>"
            case "truncated":
                data = json.dumps(completion(plan, body)).encode()
                return 200, {}, data[: len(data) // 2]
            case "empty-choices":
                return 200, {}, json.dumps({**completion(plan, body), "choices": []}).encode()
            case "wrong-shape":
                return 200, {}, b'{"choices": [{"message": "Yes"}], "usage": 7}'
            case _:
                return 200, {}, json.dumps(completion(plan, body)).encode()

    # Files and batches -----------------------------------------------------------------------------------------------

    def endpoint(self, method: str, path: str, data: bytes) -> tuple[int, dict[str, str], bytes]:
        match method, path.partition("?")[0].removeprefix("/v1").strip("/").split("/"):
            case "POST", ["files"]:
                name = f"file-{len(self.files) + 1}"
                self.files[name] = _multipart_file(data)
                return _json({"id": name, "object": "file", "bytes": len(data), "purpose": "batch"})
            case "GET", ["files", name, "content"]:
                return 200, {"Content-Type": "application/octet-stream"}, self.files[name]
            case "POST", ["batches"]:
                name = f"batch_{len(self.batches) + 1}"
                batch = json.loads(data)
                self.batches[name] = {
                    "id": name,
                    "object": "batch",
                    "endpoint": batch["endpoint"],
                    "input_file_id": batch["input_file_id"],
                    "completion_window": batch["completion_window"],
                    "metadata": batch.get("metadata"),
                    "status": "in_progress",
                    "created_at": int(time.time()),
                    "polls": 0,
                }
                return _json(self.batches[name])
            case "GET", ["batches"]:
                newest_first = list(self.batches.values())[::-1]
                return _json({"object": "list", "data": newest_first, "has_more": False})
            case "GET", ["batches", name]:
                batch = self.batches[name]
                batch["polls"] += 1
                if batch["polls"] >= self.batch_polls and batch["status"] == "in_progress":
                    self._complete(batch)
                return _json(batch)
            case _:
                return _error(404, f"no such endpoint: {method} {path}", "not_found")

    def _complete(self, batch: dict[str, Any]) -> None:
        """Answer every line, in a shuffled order; lines with an HTTP error go to the error file."""
        outputs, errors = [], []
        lines = self.files[batch["input_file_id"]].decode().splitlines()
        for line in lines:
            request = json.loads(line)
            plan = self.decide(request["body"], self.line_plan or self.plan)
            if plan.fault == "expired":
                error = {"code": "batch_expired", "message": "This request could not be executed in time."}
                errors.append({"id": "r", "custom_id": request["custom_id"], "response": None, "error": error})
                continue
            if plan.fault == "lost":
                continue
            status, _, data = self.respond(plan, request["body"])
            try:
                body = json.loads(data)
            except ValueError:
                body = data.decode()
            line_out = {"id": "r", "custom_id": request["custom_id"], "response": {"status_code": status, "body": body}}
            (outputs if status == 200 else errors).append({**line_out, "error": None})
        random.Random(self.seed).shuffle(outputs)
        for kind, rows in (("output_file_id", outputs), ("error_file_id", errors)):
            if rows:
                name = f"file-{len(self.files) + 1}"
                self.files[name] = "".join(json.dumps(row) + "\n" for row in rows).encode()
                batch[kind] = name
        batch["status"] = "completed"
        batch["request_counts"] = {"total": len(lines), "completed": len(outputs), "failed": len(errors)}


class _Connection(asyncio.Protocol):
    """One keep-alive HTTP/1.1 connection; requests on it are answered one after another."""

    def __init__(self, server: FaultServer) -> None:
        self.server = server
        self.buffer = b""
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self.buffer[:end].decode("latin-1")
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head.split("\r\n")[1:])}
        if headers.get("transfer-encoding") == "chunked":
            if not self.buffer.endswith(b"0\r\n\r\n"):
                return
            body, self.buffer = _dechunk(self.buffer[end + 4 :]), b""
        else:
            length = int(headers.get("content-length", 0))
            if len(self.buffer) < end + 4 + length:
                return
            body, self.buffer = self.buffer[end + 4 : end + 4 + length], self.buffer[end + 4 + length :]
        method, path, _ = head.split("\r\n")[0].split(" ")
        if path.partition("?")[0].endswith("/chat/completions"):
            self.chat(headers, body)
        else:
            fault = self.server.hook(f"{method} {path}") if self.server.hook else None
            status, extra, out = self.server.endpoint(method, path, body)
            if fault is None or fault.fault is None:
                self.write(status, extra, out)
            else:
                self.apply(fault, {})

    def chat(self, headers: dict[str, str], data: bytes) -> None:
        server, body = self.server, json.loads(data)
        if server.keep:
            server.bodies.append(body)
            server.headers.append(headers)
        server.in_flight += 1
        server.most_in_flight = max(server.most_in_flight, server.in_flight)
        plan = server.decide(body, server.plan)
        if plan.delay:
            asyncio.get_running_loop().call_later(plan.delay, self.finish, plan, body)
        else:
            self.finish(plan, body)

    def finish(self, plan: Plan, body: dict[str, Any]) -> None:
        self.server.in_flight -= 1
        self.apply(plan, body)

    def apply(self, plan: Plan, body: dict[str, Any]) -> None:
        if self.transport.is_closing() or plan.fault == "hang":
            return
        if plan.fault == "close":
            self.transport.close()
            return
        if plan.fault == "reset":
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{")
            sock = self.transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # close() sends RST
            self.transport.abort()
            return
        self.write(*self.server.respond(plan, body))

    def write(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}"]
        if "Content-Type" not in headers:
            lines.append("Content-Type: application/json")
        lines += [f"{key}: {value}" for key, value in headers.items()]
        self.transport.write(("\r\n".join(lines) + "\r\n\r\n").encode() + body)


def completion(plan: Plan, body: Mapping[str, Any]) -> dict[str, Any]:
    """A chat completion with ``plan``'s text; log-probabilities where asked for and known."""
    message: dict[str, Any] = {"role": "assistant", "content": plan.text, "refusal": None}
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": plan.finish, "logprobs": None}
    if plan.fault == "refusal":
        message.update(content=None, refusal="I can't help with that.")
    if plan.fault == "content-filter":
        message["content"] = ""
        choice["finish_reason"] = "content_filter"
    if body.get("logprobs") and plan.p_yes is not None:
        alternatives = [("Yes", plan.p_yes), ("No", 1 - plan.p_yes)]
        top = [{"token": text, "logprob": math.log(p), "bytes": None} for text, p in alternatives if p > 0]
        own = next((item["logprob"] for item in top if item["token"] == plan.text), -9.0)
        choice["logprobs"] = {"content": [{"token": plan.text, "logprob": own, "bytes": None, "top_logprobs": top}]}
    answer: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": plan.model or body.get("model", "test"),
        "system_fingerprint": plan.fingerprint,
        "choices": [choice],
    }
    if plan.usage:
        prompt = sum(len(message["content"]) for message in body.get("messages", [])) // 4
        answer["usage"] = {"prompt_tokens": prompt, "completion_tokens": 1, "total_tokens": prompt + 1}
    return answer


def fingerprint(body: Mapping[str, Any]) -> str:
    """What makes two requests the same: their whole body."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _error(status: int, message: str, code: str) -> tuple[int, dict[str, str], bytes]:
    return status, {}, json.dumps({"error": {"message": message, "type": "error", "code": code}}).encode()


def _json(value: Any) -> tuple[int, dict[str, str], bytes]:
    return 200, {}, json.dumps(value).encode()


def _dechunk(data: bytes) -> bytes:
    out = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        out, data = out + data[:length], data[length + 2 :]
    return out


def _multipart_file(data: bytes) -> bytes:
    boundary = data[: data.index(b"\r\n")]
    for part in data.split(boundary):
        head, _, content = part.partition(b"\r\n\r\n")
        if re.search(rb'name="file"', head):
            return content.removesuffix(b"\r\n")
    raise ValueError("no part named 'file'")


async def _alone(latency: float) -> None:
    server = FaultServer(plan=lambda body, attempt: Plan(p_yes=0.75, delay=latency), keep=False)
    await server.start()
    print(server.port, flush=True)
    await asyncio.Event().wait()


def ask(server: FaultServer, *requests: ChatRequest, **options: Any) -> list[ChatReply]:
    """The replies of a client to all requests at once."""

    from factaudit.llm.client import LLMClient

    async def run() -> list[ChatReply]:
        async with LLMClient("m", **{"base_url": server.url, "backoff": 0.001, "timeout": 5.0, **options}) as client:
            return await asyncio.gather(*(client.ask(r) for r in requests))

    return asyncio.run(run())


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency", type=float, default=0.1)
    asyncio.run(_alone(parser.parse_args().latency))
