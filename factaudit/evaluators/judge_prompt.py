"""What is a language model asked about a claim, and how is its answer read?"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from pathlib import Path

import yaml

from factaudit.errors import UsageError, suggest_known_name
from factaudit.llm.chat_types import ChatMessage, ChatReplyToken
from factaudit.signature import hash_texts
from factaudit.text.stated_verdicts import (
    StatedVerdict,
    WordParser,
    make_answer_parser,
    normalise_answer_word,
    read_stated_verdict,
)
from factaudit.yaml_file import parse_plain_yaml

_TEMPLATE_FIELDS = ("system", "user", "positive", "negative", "max_tokens", "json", "last", "of_all")
_PLACEHOLDER_PATTERN = re.compile(r"\{(claim|doc|mark)\}")


@dataclass(frozen=True)
class JudgePromptTemplate:
    """A prompt and how its answer is read: a YAML file with these keys.

    - ``user`` (needed), ``system``: the messages. ``{claim}``, ``{doc}`` and ``{mark}`` are filled in. The mark is a
      word that occurs neither in the claim nor in the document, so neither can write the line that ends its block.
    - ``positive``, ``negative`` (needed): the words that the answer may be, as lists.
    - ``max_tokens``: the most tokens of a reply (8).
    - ``last: true``: reasons come first, and the answer is the word after "Answer:".
    - ``json: FIELD``: the reply holds JSON, in a code fence or not, and the answer is the value of this field.
    - ``of_all: true``: the score is P(positive) of all tokens, not its share of both answers.

    How a reply is read: `factaudit.text.stated_verdicts`.
    """

    user: str
    positive: tuple[str, ...]
    negative: tuple[str, ...]
    system: str | None = None
    max_tokens: int = 8
    last: bool = False
    of_all: bool = False
    json_field: str | None = None

    @classmethod
    def load(cls, name: str) -> JudgePromptTemplate:
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
                raise UsageError(
                    f"template: unknown name {name!r}{suggest_known_name(name, known)}; a file's name ends in .yaml"
                )
            text = folder.joinpath(f"{name}.yaml").read_text(encoding="utf-8")
        try:
            data = parse_plain_yaml(text)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise UsageError(f"template {name}: not YAML: {error}") from error
        if not isinstance(data, dict) or not isinstance(data.get("user"), str) or "{claim}" not in data["user"]:
            raise UsageError(f"template {name}: expected a mapping whose 'user' is a text with {{claim}} in it")
        for key in data:
            if key not in _TEMPLATE_FIELDS:
                meant = suggest_known_name(str(key), _TEMPLATE_FIELDS)
                raise UsageError(
                    f"template {name}: unknown field {key!r}{meant}; its fields are {', '.join(_TEMPLATE_FIELDS)}"
                )
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
        flags = {key: data.get(key, False) for key in ("last", "of_all")}
        for key, value in flags.items():
            if not isinstance(value, bool):
                raise UsageError(f"template {name}: expected {key!r} to be true or false, found {value!r}")
        json_field = data.get("json")
        if not (json_field is None or (isinstance(json_field, str) and json_field.strip())):
            raise UsageError(f"template {name}: expected 'json' to be the name of a field, found {json_field!r}")
        if json_field and flags["last"]:
            raise UsageError(f"template {name}: 'json' and 'last' are two places of the answer; give one")
        return cls(data["user"], words["positive"], words["negative"], system, limit, **flags, json_field=json_field)

    @property
    def needs_doc(self) -> bool:
        return "{doc}" in self.user

    @property
    def digest(self) -> str:
        """Changes with every word of the prompt and with how the answer is read."""
        read = [self.positive, self.negative, self.last, self.of_all, self.json_field]
        return hash_texts(self.system, self.user, json.dumps(read))

    def messages(self, claim: str, doc: str | None) -> tuple[ChatMessage, ...]:
        """The chat messages for one claim."""
        values = {"claim": claim, "doc": doc or "", "mark": _make_judge_prompt_end_mark(claim, doc)}
        # One pass: a claim with "{doc}" in it is text like any other.
        user = {"role": "user", "content": _PLACEHOLDER_PATTERN.sub(lambda match: values[match[1]], self.user)}
        return (user,) if self.system is None else ({"role": "system", "content": self.system}, user)

    def parse_score(self, text: str, tokens: Sequence[ChatReplyToken] | None = None) -> float | None:
        """The score in [0, 1] of a reply, None where it states no answer, or contradicts it.

        With log-probabilities it is P(positive) / (P(positive) + P(negative)) at the answer's token, where both are
        sums over the spellings among its likeliest alternatives (P(positive) with ``of_all``); else 1 or 0. A score
        never contradicts the answer: one that was drawn though it was the less likely is 1 or 0, too.
        """
        stated = read_stated_verdict(text, self._parse_answer, last=self.last, json_field=self.json_field)
        if stated is None:
            return None
        if tokens and (token := _find_answer_token(tokens, stated)) is not None:
            mass = [0.0, 0.0]
            for spelling, logprob in {token.text: token.logprob, **token.alternatives}.items():
                if (value := self._parse_answer(spelling)) is not None:
                    mass[value] += math.exp(logprob)
            if self.of_all and sum(mass) > 0:
                return min(mass[1], 1.0)
            if sum(mass) > 0 and (mass[1] > mass[0]) == bool(stated.value):
                return mass[1] / sum(mass)
        return float(stated.value)

    @cached_property
    def _parse_answer(self) -> WordParser:
        return make_answer_parser(self.positive, self.negative)

    def has_whole_answer(self, text: str, max_tokens: int | None) -> bool:
        """Whether a reply that was cut off has its answer all the same: it is the only token that was asked for."""
        return max_tokens == 1 and self.parse_score(text) is not None


def _find_answer_token(tokens: Sequence[ChatReplyToken], stated: StatedVerdict) -> ChatReplyToken | None:
    """The token that is the answer; where the texts do not add up, the last that reads like it."""
    said = normalise_answer_word(stated.words)
    position = 0
    for token in tokens:
        if position <= stated.start < position + len(token.text):
            if normalise_answer_word(token.text) == said:
                return token
            break
        position += len(token.text)
    same = [token for token in tokens if normalise_answer_word(token.text) == said]
    return same[-1] if same else None


def _make_judge_prompt_end_mark(claim: str, doc: str | None) -> str:
    """A word that neither text holds. It hangs on the document alone where it can: prompts with the same document
    begin the same, and a server's prefix cache works; nobody can write a document that holds its own hash."""
    attempt = 0
    while True:
        mark = hash_texts(claim if doc is None else doc, str(attempt), length=6)
        if mark not in claim and (doc is None or mark not in doc):
            return mark
        attempt += 1
