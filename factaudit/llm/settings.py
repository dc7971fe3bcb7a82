"""Which settings does a language model have? The same for engines, evaluators and the command
line."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import yaml
from pydantic import (
    BeforeValidator,
    PlainSerializer,
    PydanticSchemaGenerationError,
    TypeAdapter,
    ValidationError,
)

from factaudit.errors import FactauditError, UsageError, suggest_known_name
from factaudit.llm.local_server import LOCAL_BASE_URL, LocalModelServer
from factaudit.settings.spec_string import SPEC_FORM, parse_spec_string
from factaudit.settings.yaml_file import parse_plain_yaml
from factaudit.settings.yaml_paths import NameOrPath
from factaudit.signature import make_signature

#: Parameters that would change what comes back, not how the model is sampled.
_RESERVED_PARAMS = ("model", "messages", "stream", "n")
#: A name of a secret, as a key of JSON, or what looks like one.
_SECRET_PATTERN = re.compile(
    r'"[^"]*(?:api.?key|authorization|password|secret|bearer|credential|access.?token|cookie)[^"]*":'
    r"|\b(?:sk|hf|gsk|xai)[-_][\w-]{16,}|\bBearer\s+\S{8,}",
    re.IGNORECASE,
)
_ADDRESS_PATTERN = re.compile(r"https?://[\w.\[\]:-]+(/[^?#@\s]*)?", re.IGNORECASE)


@dataclass(frozen=True)
class LLMModelPrice:
    """US dollars per million tokens."""

    input: float
    output: float

    def cost(self, prompt_tokens: float, completion_tokens: float) -> float:
        """US dollars for so many tokens. A provider's discount on prompts that it has cached is not
        counted."""
        return (prompt_tokens * self.input + completion_tokens * self.output) / 1e6


def default_cache_path() -> Path:
    """``$FACTAUDIT_CACHE``, else ``.cache/factaudit/llm.sqlite`` in the working directory."""
    return Path(os.environ.get("FACTAUDIT_CACHE") or ".cache/factaudit/llm.sqlite")


@dataclass(kw_only=True)
class LLMSettings:
    """One model of one server, how it is asked, and what it costs.

    In a text ``NAME[:key=value,...]`` (``gpt-4o-mini:concurrency=64,params.seed=1``), in YAML a
    mapping.

    Args:
        model: its name, as the server has it.
        base_url: the server; by default ``OPENAI_BASE_URL``, else OpenAI's. ``local`` starts a
            llama.cpp server.
        api_key_env: the variable that holds the key; by default ``OPENAI_API_KEY``, which goes to
            OpenAI's server (or that of ``OPENAI_BASE_URL``) alone. The key itself is written
            nowhere.
        params: any parameters of the request. They take precedence over what a caller asks for by
            default, and a null takes that away: ``{temperature: null}``. ``max_completion_tokens``
            takes the place of ``max_tokens``. A parameter that the model refuses is left out from
            then on (``max_tokens`` becomes ``max_completion_tokens``).
        revision: tells apart models that have the same name and give other replies; part of every
            cache key.
        server_name: stands in cache keys in the place of the server's address. Give it where one
            server moves (to another port, say), so that its replies are found again; two servers
            with one name share their replies.
        batch: use the Batch API: half the price, within a day. The same command again goes on with
            what was submitted.
        concurrency: requests under way at a time.
        requests_per_minute, tokens_per_minute: limits of the account, which all that ask the same
            server with the same key keep together, in this process and others.
        timeout: seconds, of each attempt.
        max_retries: further attempts after one that failed in a way that may pass.
        prices: the model's, in US dollars per million tokens: ``{input: 0.15, output: 0.6}``; on
            the command line ``prices.input=0.15,prices.output=0.6``.
        cache: ``default``, a path, or ``none``: then nothing is kept, and a run that is started
            again asks everything again.
        client: an `openai.AsyncOpenAI`, `openai.AsyncAzureOpenAI` or what wraps one, a function
            that makes it, or the function's name, ``MODULE:FUNCTION``. Calls go through its
            ``chat.completions.create``.

    Raises `UsageError` for what cannot be.
    """

    #: In a YAML a model or a revision may look like a number.
    __pydantic_config__: ClassVar[dict[str, Any]] = {
        "coerce_numbers_to_str": True,
        "extra": "forbid",
    }

    model: NameOrPath = ""
    base_url: str | None = None
    api_key_env: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    revision: str = ""
    server_name: str = ""
    batch: bool = False
    concurrency: int = 16
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout: float = 60.0
    max_retries: int = 6
    prices: dict[str, float] | None = None
    cache: NameOrPath = "default"
    client: object = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_base_url(self.base_url)
        _check_request_params(self.params)
        is_local = self.base_url == LOCAL_BASE_URL
        if not self.model and not is_local:
            raise UsageError("option model: expected the name of a model")
        for name in ("concurrency", "timeout", "requests_per_minute", "tokens_per_minute"):
            if (value := getattr(self, name)) is not None and not value > 0:
                raise UsageError(f"{name}: expected more than 0, found {value!r}")
        if self.max_retries < 0:
            raise UsageError(f"max_retries: expected 0 or more, found {self.max_retries!r}")
        prices = self.prices or {"input": 0.0, "output": 0.0}
        if set(prices) != {"input", "output"} or not min(prices.values()) >= 0:
            raise UsageError("prices: expected {input, output} in US dollars per million tokens")
        if self.client is not None and (self.base_url is not None or self.batch):
            raise UsageError("client: base_url and the Batch API cannot be combined with it")
        if self.batch and (is_local or self.cache == "none"):
            raise UsageError("option batch: it needs a server with a Batch API, and a cache")

    @classmethod
    def from_value(cls, value: str | Mapping[str, Any] | LLMSettings) -> LLMSettings:
        """From a text or a mapping. Raises `UsageError`."""
        if isinstance(value, LLMSettings):
            return value
        if isinstance(value, str):
            model, options = parse_spec_string(value, "llm")
            if not model or "=" in model or "," in model:
                raise UsageError(f"llm {value!r}: expected {SPEC_FORM}")
            value = {"model": model, **options}
        if not isinstance(value, Mapping):
            raise UsageError(
                f"llm: expected a model's name or settings, found {type(value).__name__}"
            )
        return make_from_options(cls, value, "llm")

    def non_default_settings(self) -> dict[str, Any]:
        """The settings that are not as they are by default, for `experiment.yaml` of a run."""
        usual = LLMSettings(model="-")
        values = {one.name: getattr(self, one.name) for one in fields(LLMSettings)}
        if not isinstance(self.client, str | None):
            values["client"] = type(self.client).__qualname__
        return {name: value for name, value in values.items() if value != getattr(usual, name)}

    def client_key(self) -> tuple[str, str]:
        """Model and revision as cache keys and signatures have them: a local model's are its name
        and its weights."""
        if (local := self.local_model) is None:
            return self.model, self.revision
        return local.name, " ".join(filter(None, (local.checksum, self.revision)))

    @property
    def signature(self) -> str:
        """Every setting that can change a reply: model, revision, parameters and the server's name,
        if any; not its address, nor how fast it is asked."""
        return self.sign(self.params)

    def sign(self, params: Mapping[str, Any]) -> str:
        """The signature with other parameters."""
        model, revision = self.client_key()
        named = {"server": self.server_name} if self.server_name else {}
        return make_signature("llm", {"model": model, "revision": revision, **named, **params})

    @cached_property
    def local_model(self) -> LocalModelServer | None:
        """What ``base_url: local`` starts."""
        if self.base_url != LOCAL_BASE_URL:
            return None
        return LocalModelServer.find_model(self.model, self.concurrency)

    def cache_path(self) -> Path | None:
        """The cache's file; None where it is turned off."""
        if self.cache == "none":
            return None
        return default_cache_path() if self.cache == "default" else Path(self.cache)

    def request_params(self, default_params: Mapping[str, Any]) -> dict[str, Any]:
        """What is sent where a caller wants ``default_params`` by default.

        >>> settings = LLMSettings(model="m", params={"max_completion_tokens": 9})
        >>> settings.request_params({"max_tokens": 5, "seed": 1})
        {'seed': 1, 'max_completion_tokens': 9}
        """
        sent = dict(default_params)
        if "max_completion_tokens" in self.params:
            sent.pop("max_tokens", None)
        return {key: value for key, value in {**sent, **self.params}.items() if value is not None}

    def price(self) -> LLMModelPrice | None:
        """The price that these settings give, if any; a model that runs here costs nothing."""
        if self.base_url == LOCAL_BASE_URL:
            return LLMModelPrice(0.0, 0.0)
        return None if self.prices is None else LLMModelPrice(**self.prices)


def make_from_options(option_class: Any, given: Mapping[str, Any], what: str) -> Any:
    """Make what has its options for its fields, checked by their types. ``params.NAME`` is a key of
    ``params``.

    what: as an error calls it. Raises `UsageError` for an unknown option (with the nearest known
    one) or a value of the wrong type.
    """
    options = {key: value for key, value in given.items() if "." not in key}
    for key in given.keys() - options.keys():
        name, _, inner = key.partition(".")
        if isinstance(options.setdefault(name, {}), dict):
            options[name] = {**options[name], inner: _parse_param(key, given[key])}
    known = [
        name
        for name in getattr(option_class, "__dataclass_fields__", {})
        if not name.startswith("_")
    ]
    for key in options:
        if key not in known:
            where = ""
            if "params" in known:
                where = f"; a parameter of the request is params.{key}"
                if key in _RESERVED_PARAMS:
                    where = "; to ask a judge several times, give repeats=N" if key == "n" else ""
            raise UsageError(
                f"{what} has no option"
                f" {key!r}{suggest_known_name(str(key), known) if known else ''}{where}"
            )
    try:
        return TypeAdapter(option_class).validate_python(options)
    except PydanticSchemaGenerationError as error:
        raise UsageError(
            f"{what}: its class is no dataclass, or has an option of an unknown type"
        ) from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "options"
        raise UsageError(
            f"{what}, option {where}: {first['msg']}, found {first.get('input')!r}"
        ) from None


def _parse_param(key: str, value: Any) -> Any:
    """Of a text, the value is read as YAML's."""
    try:
        return parse_plain_yaml(value) if isinstance(value, str) else value
    except (yaml.YAMLError, ValueError, RecursionError):
        raise UsageError(f"{key}: the value is not YAML") from None


def _check_request_params(params: Mapping[str, Any]) -> None:
    """Refuse what would be a secret in run folders, caches and reports, and what is not the user's
    to set."""
    for key, value in params.items():
        if key in _RESERVED_PARAMS:
            raise UsageError(f"params: {key!r} is not a parameter to set here")
        if _SECRET_PATTERN.search(json.dumps({key: value}, default=str)):
            raise UsageError(
                f"params: {key!r} looks like a secret, and settings are written down: use"
                " api_key_env"
            )


def check_base_url(base_url: str | None) -> None:
    """Raise `UsageError` where an address is none, or has what must not stand in a run folder."""
    if base_url is None or base_url == LOCAL_BASE_URL:
        return
    # Not shown: it may have a password.
    if not _ADDRESS_PATTERN.fullmatch(base_url):
        raise UsageError(
            "base_url: expected 'local' or an address like http://localhost:8000/v1, without"
            " password or query"
        )


def _validate_llm_setting(value: Any) -> Any:
    # Inside a settings model, what is wrong is a problem like others, told with the line of its
    # key.
    try:
        return LLMSettings.from_value(value)
    except FactauditError as error:
        raise ValueError(str(error)) from None


LLM = LLMSettings
"""`LLMSettings`, as `factaudit` exports it."""

#: A field of a settings model that names a language model, in any form that
#: `LLMSettings.from_value` takes.
LLMField = Annotated[
    LLMSettings,
    BeforeValidator(_validate_llm_setting),
    PlainSerializer(LLMSettings.non_default_settings),
]
