"""Evaluators that ask a language model: a judge with a document, one without, and Bespoke-MiniCheck."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

import yaml

from factaudit.errors import UsageError, hint
from factaudit.evaluators.base import Claim, Verdict
from factaudit.llm.batch import ask_all
from factaudit.llm.cache import default_path
from factaudit.llm.client import Client, check_url, identity
from factaudit.llm.cost import Budget, Usage
from factaudit.llm.local import LOCAL, LocalModel
from factaudit.llm.run import stream
from factaudit.llm.types import Message, Reply, Request, Token
from factaudit.signature import digest, signature

_FIELDS = {"system", "user", "positive", "negative", "max_tokens", "last"}
_NO_DOCUMENT = Reply("skipped", error="no document")
_PLACEHOLDER = re.compile(r"\{(claim|doc|mark)\}")


@dataclass(frozen=True)
class Template:
    """A prompt and how its answer is read.

    ``{claim}``, ``{doc}`` and ``{mark}`` are filled in. The mark is a word that occurs neither in the claim nor in the
    document, so neither can write the line that ends its block. ``last``: the answer is the word after the last
    "Answer:", not the first word.
    """

    user: str
    positive: tuple[str, ...]
    negative: tuple[str, ...]
    system: str | None = None
    max_tokens: int = 8
    last: bool = False

    @classmethod
    def load(cls, name: str) -> Template:
        """A template of ours by its name, or the user's by its path (YAML). Raises `UsageError`."""
        if name.endswith((".yaml", ".yml")):
            path = Path(name)
            if not path.is_file():
                raise UsageError(f"template: there is no file {name!r}")
            try:
                text = path.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise UsageError(f"template {name}: cannot be read as UTF-8 text ({error})") from error
        else:
            folder = files("factaudit.evaluators").joinpath("templates")
            known = sorted(entry.name.removesuffix(".yaml") for entry in folder.iterdir())
            if name not in known:
                raise UsageError(f"template: unknown name {name!r}{hint(name, known)}; a file's name ends in .yaml")
            text = folder.joinpath(f"{name}.yaml").read_text(encoding="utf-8")
        try:
            data = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise UsageError(f"template {name}: not YAML: {error}") from error
        if not isinstance(data, dict) or not isinstance(data.get("user"), str) or "{claim}" not in data["user"]:
            raise UsageError(f"template {name}: expected a mapping whose 'user' is a text with {{claim}} in it")
        for key in data:
            if key not in _FIELDS:
                raise UsageError(f"template {name}: unknown field {key!r}{hint(str(key), sorted(_FIELDS))}")
        words = {}
        for key in ("positive", "negative"):
            given = data.get(key)
            # YAML reads a bare yes or no as true or false; as answers they mean what they say.
            given = [given] if isinstance(given, str | bool) else given
            if not isinstance(given, list) or not given or not all(isinstance(w, str) and w.strip() for w in given):
                raise UsageError(f"template {name}: expected {key!r} to be a list of words in quotes, found {given!r}")
            words[key] = tuple(word.strip().lower() for word in given)
        system, limit = data.get("system"), data.get("max_tokens", 8)
        if not (system is None or isinstance(system, str)):
            raise UsageError(f"template {name}: expected 'system' to be a text, found {system!r}")
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            raise UsageError(f"template {name}: expected 'max_tokens' to be a whole number above 0, found {limit!r}")
        if not isinstance(last := data.get("last", False), bool):
            raise UsageError(f"template {name}: expected 'last' to be true or false, found {last!r}")
        return cls(data["user"], words["positive"], words["negative"], system, limit, last)

    @property
    def needs_doc(self) -> bool:
        return "{doc}" in self.user

    @property
    def digest(self) -> str:
        """Changes with every word of the prompt and with how the answer is read."""
        return digest(self.system, self.user, json.dumps([self.positive, self.negative, self.last]))

    def messages(self, claim: str, doc: str | None) -> tuple[Message, ...]:
        """The chat messages for one claim."""
        values = {"claim": claim, "doc": doc or "", "mark": _mark(claim, doc)}
        # One pass: a claim with "{doc}" in it is text like any other.
        user = {"role": "user", "content": _PLACEHOLDER.sub(lambda match: values[match[1]], self.user)}
        return (user,) if self.system is None else ({"role": "system", "content": self.system}, user)

    def read(self, text: str, tokens: Sequence[Token] | None = None) -> float | None:
        """The score in [0, 1] of a reply, None where it holds no answer.

        With log-probabilities it is P(positive) / (P(positive) + P(negative)) at the answer's token, where both are
        sums over the spellings among its likeliest alternatives; else 1 or 0.
        """
        answer = self._answer(text)
        if answer is None:
            return None
        if tokens and (token := self._token(tokens, answer)) is not None:
            mass = {True: 0.0, False: 0.0}
            for spelling, logprob in {token.text: token.logprob, **token.top}.items():
                word = _word(spelling)
                if word in self.positive or word in self.negative:
                    mass[word in self.positive] += math.exp(logprob)
            if (total := mass[True] + mass[False]) > 0:
                return mass[True] / total
        return float(answer[1].lower() in self.positive)

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        words = "|".join(re.escape(word) for word in sorted((*self.positive, *self.negative), key=len, reverse=True))
        return (
            re.compile(rf"[\W_]*({words})\b", re.IGNORECASE),
            re.compile(rf"\banswer\b(?:\s+is)?[\W_]*({words})\b", re.IGNORECASE),
        )

    def _answer(self, text: str) -> re.Match[str] | None:
        first, marked = self._patterns
        start = text.rfind("</think>") + len("</think>") if "</think>" in text else 0
        answers = list(marked.finditer(text, start))
        if self.last:
            return answers[-1] if answers else None
        return first.match(text, start) or (answers[-1] if answers else None)

    def _token(self, tokens: Sequence[Token], answer: re.Match[str]) -> Token | None:
        """The token that the answer starts in; where the texts do not add up, the first (last) that reads like it."""
        position = 0
        for token in tokens:
            if position <= answer.start(1) < position + len(token.text):
                if _word(token.text) == answer[1].lower():
                    return token
                break
            position += len(token.text)
        same = [token for token in tokens if _word(token.text) == answer[1].lower()]
        return (same[-1] if self.last else same[0]) if same else None


def _word(text: str) -> str:
    return text.strip().strip("\"'`*_.,:;!?()[]▁Ġ").strip().lower()


def _mark(claim: str, doc: str | None) -> str:
    """A word that neither text holds. It hangs on the document alone where it can: prompts with the same document
    begin the same, and a server's prefix cache works; nobody can write a document that holds its own hash."""
    attempt = 0
    while True:
        mark = digest(claim if doc is None else doc, str(attempt), length=6)
        if mark not in claim and (doc is None or mark not in doc):
            return mark
        attempt += 1


@dataclass(frozen=True)
class _Job:
    serial: int
    claim_id: str
    request: Request | None


@dataclass(kw_only=True)
class _Asks:
    """What all evaluators over a language model share: the options of the client, and the loop."""

    _name: ClassVar[str]
    #: In a YAML a revision may look like a number.
    __pydantic_config__: ClassVar[dict[str, Any]] = {"coerce_numbers_to_str": True}

    model: str = ""
    template: str = "default"
    base_url: str | None = None
    api_key_env: str = "OPENAI_API_KEY"
    n: int = 1
    temperature: float | None = 0.0
    max_tokens: int | None = None
    logprobs: bool = True
    top_logprobs: int = 20
    params: dict[str, Any] = field(default_factory=dict)
    revision: str = ""
    batch: bool = False
    concurrency: int = 16
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout: float = 60.0
    max_retries: int = 6
    cache: str = "default"

    def __post_init__(self) -> None:
        #: Shared by the evaluators of a run; the runner sets it.
        self.budget: Budget | None = None
        #: What this evaluator has used so far.
        self.usage = Usage()
        check_url(self.base_url)
        if not self.model and self.base_url != LOCAL:
            raise UsageError("option model: expected the name of a model")
        if self.n < 1:
            raise UsageError(f"option n: expected 1 or more samples, found {self.n}")
        if self.n > 1 and not self.temperature:
            raise UsageError("option n: samples at temperature 0 are all the same; set a temperature above 0")
        if not 0 <= self.top_logprobs <= 20:
            raise UsageError(f"option top_logprobs: expected 0 to 20, found {self.top_logprobs}")
        if self.batch and self.base_url == LOCAL:
            raise UsageError("option batch: the local server has no Batch API")
        if self.batch and self.cache_path() is None:
            raise UsageError("option batch: needs the cache, which is how a killed run finds its batches again")
        self._client("unused", base_url="http://unused", budget=Budget(prices={}))  # checks the rest of the options
        self._prompt = self._load_template()

    def _load_template(self) -> Template:
        return Template.load(self.template)

    def _client(self, model: str, **options: Any) -> Client:
        return Client(
            model,
            concurrency=self.concurrency,
            requests_per_minute=self.requests_per_minute,
            tokens_per_minute=self.tokens_per_minute,
            timeout=self.timeout,
            max_retries=self.max_retries,
            **options,
        )

    @property
    def signature(self) -> str:
        """Every setting that can change a verdict; not where the model is served, nor how fast it is asked."""
        model, revision = self.client_key()
        settings = {"model": model, "revision": revision, "template": self._prompt.digest, "n": self.n}
        return signature(self._name, {**settings, **self._params()})

    @property
    def verdict_name(self) -> str:
        """``NAME:MODEL``, with the template where it is not the usual one; never an address, which may hold a key."""
        name = f"{self._name}:{self.client_key()[0]}"
        # Of a template's file the name, not the folder: that is another on every machine.
        return name if self.template == type(self).template else f"{name}:{Path(self.template).stem}"

    def client_key(self) -> tuple[str, str]:
        """Model and revision as the cache has them."""
        return identity(self.model, self.revision, self._local)

    def cache_path(self) -> Path | None:
        """The cache's file; None where it is turned off by ``cache: none``."""
        if self.cache == "none":
            return None
        return default_path() if self.cache == "default" else Path(self.cache)

    def requests(self, claims: Iterable[Claim]) -> Iterator[Request]:
        """All requests that judging ``claims`` takes, in order."""
        return (job.request for job in self._jobs(claims) if job.request is not None)

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        """Yield verdicts as the replies come. Raises `FactauditError` where no claim can be judged."""
        client = self._client(
            self.model,
            base_url=self.base_url,
            api_key_env=self.api_key_env,
            cache=self.cache_path(),
            revision=self.revision,
            budget=self.budget,
            usage=self.usage,
        )
        samples: dict[int, list[Reply]] = {}
        with client.cache or nullcontext():
            for job, reply in self._replies(client, self._jobs(claims)):
                so_far = samples.setdefault(job.serial, [])
                so_far.append(reply)
                if len(so_far) == self.n:
                    yield self._verdict(job.claim_id, samples.pop(job.serial))

    def _replies(self, client: Client, jobs: Iterable[_Job]) -> Iterator[tuple[_Job, Reply]]:
        if self.batch:
            # A job without its request is small: of those that wait for a batch, no prompt stays in memory.
            pairs = ((_Job(job.serial, job.claim_id, None), job.request) for job in jobs)
            yield from ask_all(client, pairs, no_request=_NO_DOCUMENT)
            return

        async def ask(job: _Job) -> Reply:
            assert job.request is not None
            return await client.ask(job.request)

        # Twice as many as may be sent at a time: those that wait to be retried hold no place.
        yield from stream(
            ask, jobs, in_flight=2 * client.concurrency, now=lambda batch: _now(client, batch), session=client
        )

    def _jobs(self, claims: Iterable[Claim]) -> Iterator[_Job]:
        params = self._params()
        for serial, claim in enumerate(claims):
            if claim.doc is None and self._prompt.needs_doc:
                yield from [_Job(serial, claim.claim_id, None)] * self.n
                continue
            messages = self._prompt.messages(claim.claim, claim.doc)
            for sample in range(self.n):
                own = params if self.n == 1 else {**params, "seed": params.get("seed", 0) + sample}
                yield _Job(serial, claim.claim_id, Request(messages, own))

    def _params(self) -> dict[str, Any]:
        params: dict[str, Any] = {}
        if self.temperature is not None:
            params["temperature"] = self.temperature
        if "max_completion_tokens" not in self.params:
            params["max_tokens"] = self._prompt.max_tokens if self.max_tokens is None else self.max_tokens
        if self.logprobs:
            params["logprobs"] = True
            params["top_logprobs"] = self.top_logprobs
        return params | self.params

    def _verdict(self, claim_id: str, replies: Sequence[Reply]) -> Verdict:
        shown = [reply.text if reply.status == "ok" else reply.text or reply.error for reply in replies]
        raw = shown[0] if self.n == 1 else json.dumps(shown, ensure_ascii=False)
        for reply in replies:
            # A sample that never came makes the verdict one to ask for again; those that came are in the cache.
            if reply.status in ("error", "skipped"):
                return Verdict(claim_id, status=reply.status, raw=raw)
        read = [self._prompt.read(reply.text, reply.tokens) for reply in replies if reply.status == "ok"]
        if known := [score for score in read if score is not None]:
            return Verdict(claim_id, score=sum(known) / len(known), raw=raw)
        return Verdict(claim_id, status="unparsed" if read else "refused", raw=raw)

    @cached_property
    def _local(self) -> LocalModel | None:
        return LocalModel.find(self.model) if self.base_url == LOCAL else None


def _now(client: Client, jobs: Sequence[_Job]) -> list[Reply | None]:
    """What needs no waiting: replies that are cached, and claims that have no document to be judged by."""
    asked = [job.request for job in jobs if job.request is not None]
    cached = iter(client.cached(asked))
    return [_NO_DOCUMENT if job.request is None else next(cached) for job in jobs]


@dataclass(kw_only=True)
class LLMJudge(_Asks):
    """A judge prompt over any OpenAI-compatible server.

    ``template`` is the name of one of ours (default, short, reason) or the path of a YAML file. The score is
    P(yes) / (P(yes) + P(no)) at the answer's token where the server gives log-probabilities, else 1 or 0. ``n`` samples
    are asked for one by one (with seeds 0 to n - 1) and averaged, those without a yes or no left out. ``params`` are
    further parameters of the API; ``max_completion_tokens`` among them takes the place of ``max_tokens``.
    """

    _name = "llm"


@dataclass(kw_only=True)
class NoContext(_Asks):
    """The claim alone, "True or False?": what the model believes (Min et al. 2023, FActScore §4.1, "No-context LM")."""

    _name = "no-context"
    template: str = "no-context"

    def _load_template(self) -> Template:
        template = Template.load(self.template)
        if template.needs_doc:
            raise UsageError(f"template {self.template}: this evaluator sees no document, but the template has {{doc}}")
        return template


@dataclass(kw_only=True)
class BespokeMiniCheck(_Asks):
    """Bespoke-MiniCheck-7B (Tang et al. 2024, "MiniCheck") behind a server: ``ollama pull bespoke-minicheck``, or vLLM.

    The model was trained on a prompt of its own. Ollama's model brings the instructions in the server's template and
    wants "Document: ... Claim: ..." only, which is the default here; for a server that does not, ``template`` is a YAML
    file with the published instructions as ``system``. That prompt has no marked blocks, and so nothing but the
    training keeps the model from following an instruction in a document.
    """

    _name = "bespoke-minicheck"
    model: str = "bespoke-minicheck"
    template: str = ""
    max_tokens: int | None = 1

    def _load_template(self) -> Template:
        if self.template:
            return Template.load(self.template)
        return Template("Document: {doc}\nClaim: {claim}", ("yes",), ("no",), max_tokens=1)
