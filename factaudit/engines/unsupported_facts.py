"""Why a fact was found unsupported: it is put to the same model once more, with the whole page in place of passages."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

from factaudit.audit.retrieval import CONTRADICTED, NOT_IN_PAGE, NOT_IN_PASSAGES, UNEXPLAINED
from factaudit.engines.reply_formats import make_json_answer_params
from factaudit.knowledge.docdb import KnowledgePage
from factaudit.knowledge.retrieval import remove_special_tokens
from factaudit.llm.answer_extraction import extract_llm_answer
from factaudit.llm.chat_types import ChatReply, ChatRequest
from factaudit.llm.cost import approximate_token_count

#: Pages longer than this, in tokens, are not read whole: their facts stay unexplained.
MAX_PAGE_TOKENS = 24_000
#: What the model is to answer, and the reason that it is.
EXPLANATION_ANSWERS = {"Supported": NOT_IN_PASSAGES, "Contradicted": CONTRADICTED, "Not mentioned": NOT_IN_PAGE}
#: How such a prompt ends, by which it is told from others.
EXPLANATION_PROMPT_END = (
    "\nDoes the context support the input, contradict it, or not mention it? Answer Supported, Contradicted or Not "
    "mentioned.\nOutput:"
)
_ANSWER = re.compile(rf"\W*(?:answer|output)?\W*({'|'.join(EXPLANATION_ANSWERS)})\b", re.IGNORECASE)


def make_unsupported_fact_prompt(topic: str, title: str, page_text: str, fact_input: str) -> str:
    """The prompt with the whole page. fact_input: the fact as the verifier was given it
    (`factaudit.engines.fact_verification.make_fact_input`)."""
    task = f"Answer the question about {topic} based on the given context."
    return f"{task}\n\nTitle: {title}\nText: {page_text.strip()}\n\n{fact_input}{EXPLANATION_PROMPT_END}"


def parse_unsupported_fact_reply(reply: ChatReply) -> str:
    """What the page says of an unsupported fact; `UNEXPLAINED` where the reply does not begin with an answer.

    >>> [parse_unsupported_fact_reply(ChatReply("ok", text)) for text in ("Not mentioned.", "No.")]
    ['not in the page', 'unexplained']
    """
    answer = extract_llm_answer(reply)
    found = _ANSWER.match(answer.text) if answer.status == "ok" else None
    return EXPLANATION_ANSWERS[found[1].capitalize()] if found else UNEXPLAINED


async def explain_unsupported_fact(
    topic: str,
    page: KnowledgePage,
    passages: Sequence[str],
    fact_input: str,
    ask: Callable[[ChatRequest], Awaitable[ChatReply]],
    in_json: bool = False,
) -> str:
    """One of the reasons of `factaudit.audit.retrieval`.

    Where the passages were the whole page, a model that now supports the fact is at odds with itself: unexplained.
    """
    text = "\n\n".join(map(remove_special_tokens, page.passages))
    if approximate_token_count(text) > MAX_PAGE_TOKENS:
        return UNEXPLAINED
    prompt = make_unsupported_fact_prompt(topic, page.title, text, fact_input)
    params = {"temperature": 0.0, "max_tokens": 50}
    params |= make_json_answer_params([*EXPLANATION_ANSWERS]) if in_json else {}
    request = ChatRequest(({"role": "user", "content": prompt},), params)
    reason = parse_unsupported_fact_reply(await ask(request))
    return UNEXPLAINED if reason == NOT_IN_PASSAGES and len(passages) == len(page.passages) else reason
