"""Decomposing without a model: statements by rules, in the words of the text (`factaudit.text.clauses`)."""

from __future__ import annotations

from dataclasses import dataclass

from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.signature import make_signature
from factaudit.text.clauses import split_sentence_into_statements

#: What settings call it.
RULE_DECOMPOSER = "rules"


@dataclass(frozen=True)
class RuleDecomposer:
    """Stands where a model that decomposes stands: it answers the prompt with a list, and sends nothing."""

    @property
    def signature(self) -> str:
        return make_signature(RULE_DECOMPOSER, {"version": 1})

    async def ask(self, request: ChatRequest) -> ChatReply:
        """The statements of the sentence that ends the prompt, one a line."""
        line = request.messages[-1]["content"].rstrip("\n").rpartition("\n")[2]
        return ChatReply("ok", "\n".join(f"- {one}" for one in split_sentence_into_statements(line.partition(": ")[2])))
