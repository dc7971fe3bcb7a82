"""A real HTTP server on loopback that talks like an OpenAI-compatible one and misbehaves on
request.

    with FaultServer(plan=lambda body, attempt: Plan("reset") if attempt == 0 else Plan()) as
    server:
        ...  # server.url, server.seen, server.paid

`plan(body, attempt)` says what to do with one chat request: `attempt` counts from 0 how often the
very same request has come before, so a plan is a pure function and an outcome does not depend on
the order in which requests arrive. It also serves the Files and Batch endpoints.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from aiohttp import web

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


@dataclass(frozen=True)
class Plan:
    """What to do with one request: a fault, or the text to answer with (``p_yes`` gives the
    log-probabilities)."""

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
    """The server, in a thread of its own; a context manager. ``paid`` counts usable replies sent,
    per request body."""

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
    #: Called before an endpoint answers, with "METHOD /path"; may return a Plan that then breaks
    #: the connection.
    hook: Callable[[str], Plan | None] | None = None

    def __post_init__(self) -> None:
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> FaultServer:
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        runner = await self.start()
        self._ready.set()
        await self._stopped.wait()
        await runner.cleanup()

    async def start(self) -> web.AppRunner:
        application = web.Application(client_max_size=1 << 30)
        application.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.01)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.port, backlog=2048)
        await site.start()
        self.port = runner.addresses[0][1]
        return runner

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/chat/completions"):
            plan, answer = await self._chat(request)
        else:
            plan = self.hook(f"{request.method} {request.path}") if self.hook else None
            file = (
                (await request.post()).get("file")
                if request.content_type == "multipart/form-data"
                else None
            )
            data = file.file.read() if isinstance(file, web.FileField) else await request.read()
            answer = self.endpoint(request.method, request.path, data)
        assert request.transport is not None
        match plan and plan.fault:
            case "hang":
                await asyncio.Event().wait()
            case "close":
                request.transport.close()
            case "reset":
                head = (
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length:"
                    b" 999\r\n\r\n{"
                )
                request.transport.write(head)
                sock = request.transport.get_extra_info("socket")
                # close() sends RST
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                request.transport.abort()
        status, headers, body = answer
        return web.Response(
            status=status, headers={"Content-Type": "application/json", **headers}, body=body
        )

    async def _chat(self, request: web.Request) -> tuple[Plan, tuple[int, dict[str, str], bytes]]:
        body = await request.json()
        if self.keep:
            self.bodies.append(body)
            self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        plan = self.decide(body, self.plan)
        await asyncio.sleep(plan.delay)
        self.in_flight -= 1
        return plan, self.respond(plan, body)

    # What one chat request is answered with
    # ------------------------------------------------------------------------

    def decide(self, body: dict[str, Any], plan: Callable[[dict[str, Any], int], Plan]) -> Plan:
        key = fingerprint(body)
        attempt = self.seen[key]
        self.seen[key] += 1
        decided = plan(body, attempt)
        if decided.fault is None:
            self.paid[key] += 1
        return decided

    def respond(self, plan: Plan, body: Mapping[str, Any]) -> tuple[int, dict[str, str], bytes]:
        """Status, extra headers and body for one plan (connection faults are the connection's
        work)."""
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
                return _error(
                    400,
                    "This model's maximum context length is 4096 tokens",
                    "context_length_exceeded",
                )
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

    # Files and batches
    # ------------------------------------------------------------

    def endpoint(self, method: str, path: str, data: bytes) -> tuple[int, dict[str, str], bytes]:
        match method, path.removeprefix("/v1").strip("/").split("/"):
            case "POST", ["files"]:
                name = f"file-{len(self.files) + 1}"
                self.files[name] = data
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
                error = {
                    "code": "batch_expired",
                    "message": "This request could not be executed in time.",
                }
                errors.append(
                    {"id": "r", "custom_id": request["custom_id"], "response": None, "error": error}
                )
                continue
            if plan.fault == "lost":
                continue
            status, _, data = self.respond(plan, request["body"])
            try:
                body = json.loads(data)
            except ValueError:
                body = data.decode()
            line_out = {
                "id": "r",
                "custom_id": request["custom_id"],
                "response": {"status_code": status, "body": body},
            }
            (outputs if status == 200 else errors).append({**line_out, "error": None})
        random.Random(self.seed).shuffle(outputs)
        for kind, rows in (("output_file_id", outputs), ("error_file_id", errors)):
            if rows:
                name = f"file-{len(self.files) + 1}"
                self.files[name] = "".join(json.dumps(row) + "\n" for row in rows).encode()
                batch[kind] = name
        batch["status"] = "completed"
        batch["request_counts"] = {
            "total": len(lines),
            "completed": len(outputs),
            "failed": len(errors),
        }


def completion(plan: Plan, body: Mapping[str, Any]) -> dict[str, Any]:
    """A chat completion with ``plan``'s text; log-probabilities where asked for and known."""
    message = {"role": "assistant", "content": plan.text, "refusal": None}
    choice = {
        "index": 0,
        "message": message,
        "finish_reason": plan.finish,
        "logprobs": None,
    }
    if plan.fault == "refusal":
        message.update(content=None, refusal="I can't help with that.")
    if plan.fault == "content-filter":
        message["content"] = ""
        choice["finish_reason"] = "content_filter"
    if body.get("logprobs") and plan.p_yes is not None:
        alternatives = [("Yes", plan.p_yes), ("No", 1 - plan.p_yes)]
        top = [
            {"token": text, "logprob": math.log(p), "bytes": None}
            for text, p in alternatives
            if p > 0
        ]
        own = next((item["logprob"] for item in top if item["token"] == plan.text), -9.0)
        choice["logprobs"] = {
            "content": [{"token": plan.text, "logprob": own, "bytes": None, "top_logprobs": top}]
        }
    answer = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1700000000,
        "model": plan.model or body.get("model", "test"),
        "system_fingerprint": plan.fingerprint,
        "choices": [choice],
    }
    if plan.usage:
        prompt = sum(len(message["content"]) for message in body.get("messages", [])) // 4
        answer["usage"] = {
            "prompt_tokens": prompt,
            "completion_tokens": 1,
            "total_tokens": prompt + 1,
        }
    return answer


def fingerprint(body: Mapping[str, Any]) -> str:
    """What makes two requests the same: their whole body."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _error(status: int, message: str, code: str) -> tuple[int, dict[str, str], bytes]:
    return (
        status,
        {},
        json.dumps({"error": {"message": message, "type": "error", "code": code}}).encode(),
    )


def _json(value: Any) -> tuple[int, dict[str, str], bytes]:
    return 200, {}, json.dumps(value).encode()


def ask(server, *requests, model="m", **options):
    """The replies of a client to all requests at once, in their order."""
    from factaudit.llm import rate_limits
    from factaudit.llm.ask_all import ask_all
    from factaudit.llm.client import LLMClient

    if "client" not in options:
        options = {"base_url": server if isinstance(server, str) else server.url, **options}
    client = LLMClient(model, **{"timeout": 5.0, **options})
    with patch.object(rate_limits, "BACKOFF_SECONDS", 0.001):
        replies = dict(ask_all(client, enumerate(requests)))
    return [replies[number] for number in range(len(requests))]
