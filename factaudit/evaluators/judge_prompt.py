"""What is a language model asked about a claim, and how is its answer read?"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool

from factaudit.errors import UsageError, suggest_known_name
from factaudit.llm.chat_types import ChatMessage, ChatReplyToken
from factaudit.settings.yaml_file import YamlFile, check_yaml_settings
from factaudit.signature import hash_texts
from factaudit.text.stated_verdicts import (
    StatedVerdict,
    WordParser,
    make_answer_parser,
    normalise_answer_word,
    read_json_verdict,
    read_stated_verdict,
)

_PLACEHOLDER_PATTERN = re.compile(r"\{(claim|doc|mark)\}")
_TEMPLATES = Path(__file__).parent / "templates"


def _list_words(value: Any) -> Any:
    # YAML reads a bare yes or no as true or false; which of them was meant as a word nobody knows.
    words = [value] if isinstance(value, str) else value
    if (
        not isinstance(words, list)
        or not words
        or not all(isinstance(word, str) and word.strip() for word in words)
    ):
        raise ValueError("expected a list of words in quotes")
    return tuple(word.strip().lower() for word in words)


_Words = Annotated[tuple[str, ...], BeforeValidator(_list_words)]


class JudgePromptTemplate(BaseModel):
    """A prompt and how its answer is read: a YAML file with these keys.

    - ``user`` (needed), ``system``: the messages. ``{claim}``, ``{doc}`` and ``{mark}`` are filled
      in. The mark is a word that occurs neither in the claim nor in the document, so neither can
      write the line that ends its block.
    - ``positive``, ``negative`` (needed): the words that the answer may be, as lists.
    - ``max_tokens``: the most tokens of a reply (8).
    - ``last: true``: reasons come first, and the answer is the word after "Answer:".
    - ``json: FIELD``: the reply holds JSON, in a code fence or not, and the answer is the value of
      this field.
    - ``of_all: true``: the score is P(positive) of all tokens, not its share of both answers.

    How a reply is read: `factaudit.text.stated_verdicts`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    user: Annotated[str, Field(pattern=r"\{claim\}")]
    positive: _Words
    negative: _Words
    system: str | None = None
    max_tokens: Annotated[int, Field(ge=1)] = 8
    last: StrictBool = False
    of_all: StrictBool = False
    json_field: Annotated[str | None, Field(alias="json", min_length=1)] = None

    @classmethod
    def load(cls, name: str) -> JudgePromptTemplate:
        """A template of ours by its name, or the user's by its path (YAML). Raises
        `FactauditError`."""
        path = Path(name)
        if path.suffix not in (".yaml", ".yml"):
            path = _TEMPLATES / f"{name}.yaml"
            known = sorted(one.stem for one in _TEMPLATES.iterdir())
            if name not in known:
                near = suggest_known_name(name, known)
                raise UsageError(
                    f"template: unknown name {name!r}{near}; a file's name ends in .yaml"
                )
        file = YamlFile(path)
        return check_yaml_settings(cls, file.data, file)

    @property
    def needs_doc(self) -> bool:
        return "{doc}" in self.user

    @property
    def digest(self) -> str:
        """Changes with every word of the prompt and with how the answer is read."""
        return hash_texts(self.model_dump_json(exclude={"max_tokens"}))

    def messages(self, claim: str, doc: str | None) -> tuple[ChatMessage, ...]:
        """The chat messages for one claim."""
        values = {"claim": claim, "doc": doc or "", "mark": _make_judge_prompt_end_mark(claim, doc)}
        # One pass: a claim with "{doc}" in it is text like any other.
        user = {
            "role": "user",
            "content": _PLACEHOLDER_PATTERN.sub(lambda match: values[match[1]], self.user),
        }
        return (
            (user,) if self.system is None else ({"role": "system", "content": self.system}, user)
        )

    def parse_score(
        self, text: str, tokens: Sequence[ChatReplyToken] | None = None
    ) -> float | None:
        """The score in [0, 1] of a reply, None where it states no answer, or contradicts it.

        With log-probabilities it is P(positive) / (P(positive) + P(negative)) at the answer's
        token, where both are sums over the spellings among its likeliest alternatives; else 1 or 0.
        If the less likely answer was drawn, the score is 1 or 0 as well, so that it never
        contradicts the answer. With ``of_all`` the score is always P(positive).
        """
        if self.json_field is None:
            stated = read_stated_verdict(text, self._parse_answer, last=self.last)
        else:
            stated = read_json_verdict(text, self.json_field, self._parse_answer)
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


def _find_answer_token(
    tokens: Sequence[ChatReplyToken], stated: StatedVerdict
) -> ChatReplyToken | None:
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
    """A word that neither text holds. It hangs on the document alone where it can: prompts with the
    same document begin the same, and a server's prefix cache works; nobody can write a document
    that holds its own hash.
    """
    attempt = 0
    while True:
        mark = hash_texts(claim if doc is None else doc, str(attempt), length=6)
        if mark not in claim and (doc is None or mark not in doc):
            return mark
        attempt += 1
