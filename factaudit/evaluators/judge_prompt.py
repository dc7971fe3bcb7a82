"""A judge's prompt, and how the answer to it is read."""

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
from factaudit.yaml_file import parse_plain_yaml

_TEMPLATE_FIELDS = {"system", "user", "positive", "negative", "max_tokens", "last", "of_all"}
_PLACEHOLDER_PATTERN = re.compile(r"\{(claim|doc|mark)\}")


@dataclass(frozen=True)
class JudgePromptTemplate:
    """A prompt and how its answer is read.

    ``{claim}``, ``{doc}`` and ``{mark}`` are filled in. The mark is a word that occurs neither in the claim nor in the
    document, so neither can write the line that ends its block. ``last``: the answer is the word after the last
    "Answer:", not the first word. ``of_all``: the score is P(positive) of all tokens, not its share of both answers.
    """

    user: str
    positive: tuple[str, ...]
    negative: tuple[str, ...]
    system: str | None = None
    max_tokens: int = 8
    last: bool = False
    of_all: bool = False

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
                raise UsageError(
                    f"template {name}: unknown field {key!r}{suggest_known_name(str(key), sorted(_TEMPLATE_FIELDS))}"
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
        return cls(data["user"], words["positive"], words["negative"], system, limit, **flags)

    @property
    def needs_doc(self) -> bool:
        return "{doc}" in self.user

    @property
    def digest(self) -> str:
        """Changes with every word of the prompt and with how the answer is read."""
        read = [self.positive, self.negative, self.last, *(["of_all"] if self.of_all else [])]
        return hash_texts(self.system, self.user, json.dumps(read))

    def messages(self, claim: str, doc: str | None) -> tuple[ChatMessage, ...]:
        """The chat messages for one claim."""
        values = {"claim": claim, "doc": doc or "", "mark": _make_judge_prompt_end_mark(claim, doc)}
        # One pass: a claim with "{doc}" in it is text like any other.
        user = {"role": "user", "content": _PLACEHOLDER_PATTERN.sub(lambda match: values[match[1]], self.user)}
        return (user,) if self.system is None else ({"role": "system", "content": self.system}, user)

    def parse_score(self, text: str, tokens: Sequence[ChatReplyToken] | None = None) -> float | None:
        """The score in [0, 1] of a reply, None where it holds no answer.

        With log-probabilities it is P(positive) / (P(positive) + P(negative)) at the answer's token, where both are
        sums over the spellings among its likeliest alternatives (P(positive) with ``of_all``); else 1 or 0.
        """
        answer = self._find_answer(text)
        if answer is None:
            return None
        if tokens and (token := self._find_answer_token(tokens, answer)) is not None:
            mass = {True: 0.0, False: 0.0}
            for spelling, logprob in {token.text: token.logprob, **token.alternatives}.items():
                word = _normalise_answer_word(spelling)
                if word in self.positive or word in self.negative:
                    mass[word in self.positive] += math.exp(logprob)
            if (total := mass[True] + mass[False]) > 0:
                return min(mass[True], 1.0) if self.of_all else mass[True] / total
        return float(answer[1].lower() in self.positive)

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        words = "|".join(re.escape(word) for word in sorted((*self.positive, *self.negative), key=len, reverse=True))
        both = rf"(?!\s*(?:/|\bor\b|\band\b)\s*(?:{words})\b)"  # "Yes or No?" is the question
        return (
            re.compile(rf"[\W_]*({words})\b{both}", re.IGNORECASE),
            re.compile(rf"\banswer\b(?:\s+is)?[\W_]*({words})\b{both}", re.IGNORECASE),
        )

    def _find_answer(self, text: str) -> re.Match[str] | None:
        first, marked = self._patterns
        answers = list(marked.finditer(text))
        if self.last:
            return answers[-1] if answers else None
        return first.match(text) or (answers[-1] if answers else None)

    def has_whole_answer(self, text: str, max_tokens: int | None) -> bool:
        """Whether a reply that was cut off has its answer all the same: it begins with it, and something follows.

        max_tokens: of the reply's tokens; after the only one that was asked for nothing can follow.
        """
        answer = None if self.last else self._patterns[0].match(text)
        return answer is not None and (max_tokens == 1 or bool(text[answer.end() :].strip()))

    def _find_answer_token(self, tokens: Sequence[ChatReplyToken], answer: re.Match[str]) -> ChatReplyToken | None:
        """The token that the answer starts in; where the texts do not add up, the first (last) that reads like it."""
        position = 0
        for token in tokens:
            if position <= answer.start(1) < position + len(token.text):
                if _normalise_answer_word(token.text) == answer[1].lower():
                    return token
                break
            position += len(token.text)
        same = [token for token in tokens if _normalise_answer_word(token.text) == answer[1].lower()]
        return (same[-1] if self.last else same[0]) if same else None


def _normalise_answer_word(text: str) -> str:
    return text.strip().strip("\"'`*_.,:;!?()[]▁Ġ").strip().lower()


def _make_judge_prompt_end_mark(claim: str, doc: str | None) -> str:
    """A word that neither text holds. It hangs on the document alone where it can: prompts with the same document
    begin the same, and a server's prefix cache works; nobody can write a document that holds its own hash."""
    attempt = 0
    while True:
        mark = hash_texts(claim if doc is None else doc, str(attempt), length=6)
        if mark not in claim and (doc is None or mark not in doc):
            return mark
        attempt += 1
